/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Chain programs: work requests as data, with the places in each other and in scratch memory to
 * which they move octets (draft: RNIC Execution). A program is put into the queues of a device
 * (net/rdma.h, chains) once for each receive credit: a run. Where a field lies, and how a value is
 * encoded, is asked of the device; nothing here knows the layout of a work request.
 *
 * Queues of a connection that is served by a chain: CTRL runs as far as it may and lets the others
 * be fetched; LOOP moves octets within the target; CONN is the connection's send queue. The
 * receives of the connection set off a run each, in order.
 *
 * A run has KBTP_CHAIN_SCRATCH octets of scratch memory, in which words are 8 octets in the order
 * in which they lie there: what a program says about CAS is said in such octets, and becomes
 * operands as the device's atomics see memory.
 *
 * The memory of chains is shared memory. To the device's peers it is open as far as a loop needs:
 * scratch memory, look-up table and the view of the block table are registered with remote rights,
 * and regions have no owner (net/rdma.h). Whoever guesses an STag may use it on any connection.
 */
#ifndef KBTP_REF_CHAIN_H
#define KBTP_REF_CHAIN_H

#include <stdbool.h>
#include <stdint.h>

#include "ref/cpu.h"

#define KBTP_CHAIN_SCRATCH 256u /* octets of a run; aligned to as many */
#define KBTP_CHAIN_LOCAL 6u     /* places of a work request */
#define KBTP_CHAIN_SGES 32u     /* at most, of a device with fields in the other order */

enum kbtp_chain_queue { KBTP_CHAIN_CTRL, KBTP_CHAIN_LOOP, KBTP_CHAIN_CONN, KBTP_CHAIN_QUEUES };
#define KBTP_CHAIN_RECEIVES KBTP_CHAIN_QUEUES /* WAIT can count them too */

/* Where octets lie. */
enum kbtp_chain_at {
    KBTP_AT_NOWHERE,
    KBTP_AT_SCRATCH, /* `octets` from `offset` on */
    /* `octets` of a field of work request `wr`, from `lane` on (0: the most significant). */
    KBTP_AT_FIELD,
    /* The same of an operand of an atomic; lane 0 is what meets the lowest octet in memory. */
    KBTP_AT_OPERAND,
    KBTP_AT_TABLE, /* the beginning of these regions */
    KBTP_AT_LOOKUP,
    KBTP_AT_POOL,
};

struct kbtp_chain_place {
    uint8_t at; /* enum kbtp_chain_at */
    uint8_t octets;
    uint8_t offset; /* SCRATCH */
    uint8_t wr;     /* FIELD, OPERAND: number in the program */
    uint8_t field;  /* enum rdma_chain_field */
    uint8_t sge;
    uint8_t lane;
    uint8_t reserved;
};

struct kbtp_chain_wr {
    uint16_t op;    /* enum rdma_op */
    uint16_t flags; /* enum rdma_flag */
    uint8_t queue;  /* enum kbtp_chain_queue */
    /*
     * WAIT: until `other` has counted `number` completions of this run; ENABLE: its first `number`
     * work requests of this run.
     */
    uint8_t other;
    uint8_t number;
    uint8_t local_count;
    struct kbtp_chain_place remote;
    struct kbtp_chain_place local[KBTP_CHAIN_LOCAL];
    /* CAS: when the masked octets are equal, those bits are cleared. */
    uint8_t compare[8], mask[8], clear[8];
};

/* Constant. */
struct kbtp_chain_program {
    const struct kbtp_chain_wr *wrs;
    const struct kbtp_chain_place *receive; /* where the octets of a message go, in this order */
    const uint8_t *scratch;                 /* what a run begins with */
    uint32_t wrs_count;
    uint32_t receive_count;
};

/* A connection that is served so. */
struct kbtp_chain {
    struct rdma_chain_queue queues[KBTP_CHAIN_QUEUES + 1];
    struct rdma_region scratch, table, lookup, pool;
    uint32_t conn;
    uint32_t runs;   /* of which the queues hold so many at once */
    uint32_t posted; /* runs so far */
    uint32_t atomic_big_endian;
};

struct kbtp_chain_config {
    void *memory;             /* kbtp_chain_octets(), aligned to KBTP_CHAIN_SCRATCH */
    struct rdma_region table; /* see the program */
    struct rdma_region lookup;
    struct rdma_region pool;
    uint32_t conn; /* CONNECTED; nothing was posted to its send queue */
    uint32_t runs; /* at least 1 */
};

/* Octets of memory for the queues and scratch memory of one connection; 0: no chains. */
uint64_t kbtp_chain_octets(const struct kbtp_cpu *cpu, const struct kbtp_chain_program *program,
                           uint32_t runs);

/*
 * Makes the queues. 0, -EINVAL (no runs, memory not aligned, or in a region whose Tagged Offsets
 * are not), -ENOTSUP (the device has no chains, masks or SGEs enough for the program), or an error
 * of the device; then nothing is left.
 */
int kbtp_chain_init(const struct kbtp_cpu *cpu, struct kbtp_chain *chain,
                    const struct kbtp_chain_program *program,
                    const struct kbtp_chain_config *config);

/*
 * Posts one run more: its scratch memory, its work requests, its receive (wr_id: its number), and
 * then CTRL's doorbell. -ENOMEM while the run whose places it takes is not over: ask
 * kbtp_chain_done(). The peer may be told of the credit after that. After another error the
 * connection is of no use any more.
 */
int kbtp_chain_post(const struct kbtp_cpu *cpu, struct kbtp_chain *chain,
                    const struct kbtp_chain_program *program);

/* How many runs are over, or a negative error: -EIO when a queue has failed. */
int kbtp_chain_done(const struct kbtp_cpu *cpu, const struct kbtp_chain *chain, uint32_t *runs);

/* After rdma_destroy() of the connection. */
int kbtp_chain_end(const struct kbtp_cpu *cpu, struct kbtp_chain *chain);

#endif
