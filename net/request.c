/* SPDX-License-Identifier: BSD-3-Clause */
#include "net/request.h"

#include <string.h>

uint64_t rdma_request_octets(const struct rdma_wr *wr)
{
    uint64_t octets = 0;
    for (uint32_t i = 0; i < wr->sge_count; i++)
        octets += wr->sges[i].length;
    return octets;
}

void rdma_request_operands(const struct rdma_wr *wr, uint64_t operand[4])
{
    memset(operand, 0, 4 * sizeof *operand);
    if (wr->op == RDMA_FETCH_ADD) {
        operand[0] = wr->fetch_add.add;
        operand[1] = wr->fetch_add.mask;
    } else if (wr->op == RDMA_CAS) {
        operand[0] = wr->cas.compare;
        operand[1] = wr->cas.compare_mask;
        operand[2] = wr->cas.swap;
        operand[3] = wr->cas.swap_mask;
    }
}

void rdma_window_posted(const struct rdma_wr *wr)
{
    struct rdma_window *window = wr->bind.window;
    window->stag = (window->stag & ~RDMA_STAG_KEY) | ((window->stag + 1) & RDMA_STAG_KEY);
    window->base_to = wr->bind.region->base_to + wr->bind.offset;
    window->length = wr->bind.length;
    window->bound = 1;
}

bool rdma_may_bind(uint32_t region_access, uint64_t region_length, uint32_t access, uint64_t offset,
                   uint64_t length)
{
    return (region_access & RDMA_BIND_WINDOW) &&
           (!(access & RDMA_PEER_CHANGES) || (region_access & RDMA_LOCAL_WRITE)) && length != 0 &&
           offset <= region_length && length <= region_length - offset;
}

static uint32_t needed_bits(const struct rdma_wr *wr)
{
    switch (wr->op) {
    case RDMA_SEND_INV:
        return RDMA_CAP_SEND_INV;
    case RDMA_WRITE_IMM:
        return RDMA_CAP_IMM;
    case RDMA_FETCH_ADD:
        return RDMA_CAP_FETCH_ADD | (wr->fetch_add.mask ? RDMA_CAP_MASKED : 0u);
    case RDMA_CAS:
        return RDMA_CAP_CAS |
               ((wr->cas.compare_mask & wr->cas.swap_mask) == UINT64_MAX ? 0u : RDMA_CAP_MASKED);
    case RDMA_BIND:
        return RDMA_CAP_WINDOW;
    case RDMA_WAIT:
    case RDMA_ENABLE:
        return RDMA_CAP_CHAIN;
    case RDMA_WAITD:
        return RDMA_CAP_CHAIN_WAITD;
    case RDMA_CENABLE:
        return RDMA_CAP_CHAIN_CENABLE;
    default:
        return 0;
    }
}

int rdma_request_check(const struct rdma_wr *wr, uint32_t bits, uint32_t max_sge,
                       uint32_t max_inline)
{
    if (needed_bits(wr) & ~bits)
        return -ENOTSUP;
    if (wr->op >= RDMA_RECV || wr->sge_count > max_sge)
        return -EINVAL;
    uint64_t octets = rdma_request_octets(wr);
    bool is_inline = wr->flags & RDMA_INLINE;
    if (octets > UINT32_MAX || (rdma_is_atomic(wr->op) && (wr->sge_count != 1 || octets != 8)) ||
        (is_inline && (!rdma_sends_octets(wr->op) || octets > max_inline)))
        return -EINVAL;
    return 0;
}
