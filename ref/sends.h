/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The send queue of one connection: which of its places are taken, and the memory that messages are
 * sent from. Used by both sides; only ref/ looks in here.
 *
 * A work request that is not signaled leaves the queue when a later one completes; so every wr_id
 * carries how many were posted up to it, and each completion retires all those. Some messages are
 * signaled for this alone.
 */
#ifndef KBTP_REF_SENDS_H
#define KBTP_REF_SENDS_H

#include "ref/cpu.h"
#include "ref/octets.h"
#include "ref/wire.h"

/* What a work request was for, in the upper 8 bits of its wr_id; then 24 bits of `detail`. */
enum kbtp_wr_kind {
    KBTP_WR_RECEIVE = 1, /* detail: the buffer */
    KBTP_WR_MESSAGE,
    KBTP_WR_LAST,       /* a message after which the connection ends */
    KBTP_WR_READ,       /* detail: the request */
    KBTP_WR_WRITE,      /* of a LOAD, or of a direct allocation */
    KBTP_WR_BIND,       /* of a window */
    KBTP_WR_INVALIDATE, /* detail: the place among the requests */
    KBTP_WR_REVOKE,     /* of the window over a partition */
    KBTP_WR_PROBE,      /* does the peer live? */
};

static inline uint64_t kbtp_wr_id(enum kbtp_wr_kind kind, uint32_t detail, uint32_t posted)
{
    return (uint64_t)kind << 56 | (uint64_t)detail << 32 | posted;
}

static inline enum kbtp_wr_kind kbtp_wr_kind(uint64_t wr_id)
{
    return (enum kbtp_wr_kind)(wr_id >> 56);
}

static inline uint32_t kbtp_wr_detail(uint64_t wr_id)
{
    return (uint32_t)(wr_id >> 32) & 0xffffff;
}

/* The counter that an atomic of this device has brought, as it lies in memory. */
static inline uint64_t kbtp_atomic_reply(const struct rdma_caps *caps, uint64_t octets)
{
    return caps->atomic_reply_big_endian ? octets_address64(octets, false) : octets;
}

struct kbtp_sends {
    uint8_t *slots; /* registered memory: `depth` times slot_octets */
    uint32_t slot_octets;
    uint32_t lkey;
    uint32_t depth;
    uint32_t max_inline; /* octets that may be posted inline */
    uint32_t posted, retired;
    uint32_t unsignaled;           /* posted since the last signaled one */
    uint32_t no_inline_invalidate; /* a SEND_INV is not posted inline (net/rdma.h: RDMAP) */
};

/* Work requests that can be posted now. */
static inline uint32_t kbtp_sends_room(const struct kbtp_sends *sends)
{
    return sends->depth - (sends->posted - sends->retired);
}

/* A completion of the send queue, of any status. */
static inline void kbtp_sends_retire(struct kbtp_sends *sends, uint64_t wr_id)
{
    sends->retired = (uint32_t)wr_id;
}

/* For those who post the same again and again: a queue that is empty is as it was at first. */
static inline void kbtp_sends_rest(struct kbtp_sends *sends)
{
    if (sends->retired == sends->posted)
        sends->posted = sends->retired = 0;
}

/* A message to send, with the octets that follow what kbtp_wire_encode() writes; or a completion
 * record, which a WRITE_IMM brings to its slot. */
struct kbtp_outgoing {
    const struct kbtp_message *message;
    const void *data;
    uint32_t data_length;
    uint32_t invalidate; /* STag, with SEND_INV; 0: plain SEND */
    bool addr_le;
    bool last;                        /* KBTP_WR_LAST */
    const struct kbtp_record *record; /* instead of the message; NULL: none */
    struct kbtp_completion_descriptor slot;
};

/*
 * Posts `before` (anything but a SEND, always signaled; NULL: none), then the message or record
 * (NULL: none),
 * behind one doorbell. There must be room for them. Returns 0 or what rdma_post_send() returned;
 * then nothing was posted.
 */
int kbtp_sends_post(const struct kbtp_cpu *cpu, struct kbtp_sends *sends, uint32_t conn,
                    struct rdma_wr *before, enum kbtp_wr_kind kind, uint32_t detail,
                    const struct kbtp_outgoing *outgoing);

#endif
