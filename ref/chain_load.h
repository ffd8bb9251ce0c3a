/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Block Load as a chain (draft: Block Load, RNIC Execution): the LOADs of one connection are
 * answered by the RNIC. Between the receive and the completion no CPU has a part.
 *
 * It is a proof that the interface carries chains; kbtp_target does not offer it. What it does for
 * a LOAD of 40 octets whose Length is the entry's Data Length, with or without ALLOW_UNSEALED and
 * INVALIDATE: the RDMA Write of the block, and COMPLETION with OK; for any other such LOAD,
 * COMPLETION with INVALID_HANDLE, STALE_GENERATION, NOT_VALID or NOT_SEALED, in the order of I-31
 * and without Data Length and Block Offset (I-45): octet for octet what the software target sends.
 * With INVALIDATE the completion takes the STag back, where the device can (I-29).
 *
 * How a chain decides: it always runs whole. Each check is a CAS on a word of scratch memory that
 * holds both sides, and clears a bit of a verdict; the verdict and the entry's Flags are put into
 * the address of a READ of the look-up table, and what that brings is the Status, the operation
 * codes of the last two work requests (WRITE or NOOP; SEND, SEND_INV or NOOP), and which of the
 * entry's fields the completion shows.
 *
 * What it cannot do, so that whoever uses it sees to it:
 *   - Nobody changes the table or frees blocks meanwhile: no block is pinned (I-01), and the two
 *     halves of an entry are read in no order.
 *   - Whatever is not such a request - another Opcode, Version or Flag, Length other than Data
 *     Length (a smaller Data Length is legal, which a CAS cannot see) - is not answered: both last
 *     work requests stay NOOPs, and the run is over. Handing it over to software (a punt) is not
 *     there yet.
 *   - How long a message is it does not see. Of one shorter than 40 octets the missing ones are
 *     those of before, in which Length is 0xffffffff, so that it is not answered; a longer one does
 *     not fit the receive, and ends the connection.
 *   - A handle of the range's upper 48 bits but beyond the table stops the loop: the device refuses
 *     the READ, the queue fails, and no later request of this connection is answered.
 *   - Who may read which range (R-SESS-29) no work request looks at: the chain reads whatever the
 *     view of the table shows. It is for sessions that may read every range, which
 *     kbtp_chain_load_for() sees to.
 *   - ADDR_LE is not selected. SGEs of a receive: 10; 14 or 17 where fields are little-endian.
 */
#ifndef KBTP_REF_CHAIN_LOAD_H
#define KBTP_REF_CHAIN_LOAD_H

#include "ref/chain.h"
#include "ref/session.h"

/* The look-up table, one for all connections; constant once it is filled. */
#define KBTP_CHAIN_LOAD_LOOKUP_OCTETS (4u << 16)
/* Elements of the table lie at multiples of this in its strided view. */
#define KBTP_CHAIN_LOAD_STRIDE 256u

/* Number of each work request in the program, by what it does. */
enum kbtp_chain_load_wr {
    /* LOOP, first part: patches what the next one reads. */
    KBTP_LOAD_HANDLE,
    KBTP_LOAD_SINK,     /* the request's STag becomes that of the RDMA Write */
    KBTP_LOAD_TAKEN,    /* and the one that the completion invalidates, if it does */
    KBTP_LOAD_EXPECTED, /* the request's Generation becomes what is compared with */
    /* Second part. */
    KBTP_LOAD_ENTRY,
    KBTP_LOAD_SPREAD, /* the entry's fields, to where they are needed */
    KBTP_LOAD_BODY,
    KBTP_LOAD_LENGTH,
    KBTP_LOAD_CHECK_HEADER,
    KBTP_LOAD_CHECK_UNSEALED, /* the Flags that a LOAD may have */
    KBTP_LOAD_CHECK_INVALIDATE,
    KBTP_LOAD_VERDICT_1,
    KBTP_LOAD_CHECK_HANDLE,
    KBTP_LOAD_VERDICT_2,
    KBTP_LOAD_CHECK_LENGTH,
    KBTP_LOAD_VERDICT_3,
    KBTP_LOAD_CHECK_GENERATION,
    KBTP_LOAD_CHECK_ANY, /* Generation 0 */
    KBTP_LOAD_VERDICT_4,
    /* Third part. */
    KBTP_LOAD_LOOKUP,
    /* CONN. */
    KBTP_LOAD_WRITE,
    KBTP_LOAD_SEND,
    /* CTRL: the parts, one after the other. */
    KBTP_LOAD_WAIT_RECEIVE,
    KBTP_LOAD_ENABLE_1,
    KBTP_LOAD_WAIT_1,
    KBTP_LOAD_ENABLE_2,
    KBTP_LOAD_WAIT_2,
    KBTP_LOAD_ENABLE_3,
    KBTP_LOAD_WAIT_3,
    KBTP_LOAD_ENABLE_CONN,
    KBTP_LOAD_WRS,
};

/* The program. The handles' upper 48 bits are 0, and whose it is nobody has asked: see
 * kbtp_chain_load_for(). */
extern const struct kbtp_chain_program kbtp_chain_load;

/*
 * The program for the connection of session `index`, whose target has handles from `first_handle`
 * on. `memory` is for it. -EINVAL unless that is a multiple of 65536; -EACCES when there is a range
 * that this session may not read, which software would answer with INVALID_HANDLE: the connection
 * is one for software.
 */
int kbtp_chain_load_for(const struct kbtp_sessions *sessions, uint32_t index, uint64_t first_handle,
                        struct kbtp_chain_wr memory[KBTP_LOAD_WRS],
                        struct kbtp_chain_program *program);

/*
 * Fills the look-up table, of KBTP_CHAIN_LOAD_LOOKUP_OCTETS. Then, for struct kbtp_chain_config:
 *   lookup  it, registered for REMOTE_READ
 *   table   rdma_chain_reg_strided() of the block table, 16 octets each, KBTP_CHAIN_LOAD_STRIDE
 *   pool    the blocks, registered so that Tagged Offset is Block Offset
 * -ENOTSUP, or an error of the device.
 */
int kbtp_chain_load_fill(const struct kbtp_cpu *cpu, void *lookup);

#endif
