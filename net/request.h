/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What an operation asks of whoever executes it, and which work requests no provider takes: for
 * providers (net/rdma.h says it to those who post).
 */
#ifndef KBTP_NET_REQUEST_H
#define KBTP_NET_REQUEST_H

#include "net/rdma.h"

/* Its SGEs are what is sent: it may be INLINE. */
static inline bool rdma_sends_octets(uint32_t op)
{
    return op == RDMA_SEND || op == RDMA_SEND_INV || op == RDMA_WRITE || op == RDMA_WRITE_IMM;
}

static inline bool rdma_is_atomic(uint32_t op)
{
    return op == RDMA_FETCH_ADD || op == RDMA_CAS;
}

/* The peer's answer completes it and fills its SGEs, which need LOCAL_WRITE; RDMA_FENCE waits for
 * it, and reads_out bounds how many there are. */
static inline bool rdma_is_answered(uint32_t op)
{
    return op == RDMA_READ || rdma_is_atomic(op);
}

/* The octets of all its SGEs. */
uint64_t rdma_request_octets(const struct rdma_wr *wr);
/* The operands of an atomic: add, mask, 0, 0 or compare, compare_mask, swap, swap_mask; else 0. */
void rdma_request_operands(const struct rdma_wr *wr, uint64_t operand[4]);

#define RDMA_STAG_KEY 0xffu /* of an STag: what its owner may choose */

/* A BIND is posted: fills in what its window will be, with the next key. */
void rdma_window_posted(const struct rdma_wr *wr);
/* What a BIND may give of a region of `region_length` octets with the rights `region_access`. */
bool rdma_may_bind(uint32_t region_access, uint64_t region_length, uint32_t access, uint64_t offset,
                   uint64_t length);

/*
 * What rdma_post_send() says about a work request with these bits (enum rdma_cap) and limits of the
 * connection, whatever else a provider does not take. -ENOTSUP: a bit is missing. -EINVAL: it is
 * none; it has more SGEs or octets than can be; it is an atomic without one SGE of 8 octets; it is
 * INLINE, and too long or sends nothing.
 */
int rdma_request_check(const struct rdma_wr *wr, uint32_t bits, uint32_t max_sge,
                       uint32_t max_inline);

#endif
