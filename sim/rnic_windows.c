/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Type 2B memory windows: a part of a region, for one connection, until it is invalidated or the
 * connection is destroyed. A window lives in two places: the CPU's struct rdma_window, which gets
 * its next STag when a BIND is posted, and the RNIC's table, where the BIND takes effect.
 */
#include <errno.h>

#include "sim/rnic_state.h"

int rnic_window_alloc(struct sim_handle *h, struct rdma_window *window)
{
    const struct sim_rnic *rnic = h->rnic;
    uint32_t place = 0;
    if ((rnic->config.bits & RDMA_CAP_WINDOW) == 0)
        return -ENOTSUP;
    rnic_look(h->w, rnic->segment);
    while (place < rnic->config.windows && rnic_window(rnic, place)->used)
        place++;
    if (place == rnic->config.windows)
        return -ENOMEM;
    rnic_touch(h->w, rnic->segment);
    struct rnic_window *it = rnic_window(rnic, place);
    it->used = 1;
    *window = (struct rdma_window){.stag = rnic_stag(rnic, rnic->config.regions + place, it->key),
                                   .id = place};
    return 0;
}

int rnic_window_free(struct sim_handle *h, const struct rdma_window *window)
{
    const struct sim_rnic *rnic = h->rnic;
    rnic_look(h->w, rnic->segment);
    if (!rnic_names_window(rnic, window->stag) ||
        rnic_stag_place(window->stag) != rnic->config.regions + window->id ||
        !rnic_window(rnic, window->id)->used)
        return -EINVAL;
    rnic_touch(h->w, rnic->segment);
    /* Its STags were told to peers, also that of a BIND that was never executed. */
    *rnic_window(rnic, window->id) =
        (struct rnic_window){.key = (uint8_t)((window->stag & RDMA_STAG_KEY) + 1)};
    return 0;
}

bool rnic_names_window(const struct sim_rnic *rnic, uint32_t stag)
{
    uint32_t place = rnic_stag_place(stag), first = rnic->config.regions;
    return place >= first && place < first + rnic->config.windows &&
           rnic_stag(rnic, place, (uint8_t)(stag & RDMA_STAG_KEY)) == stag;
}

struct rnic_window *rnic_window_of(const struct end *end, uint32_t stag)
{
    const struct sim_rnic *rnic = end->handle->rnic;
    if (!rnic_names_window(rnic, stag))
        return NULL;
    struct rnic_window *window = rnic_window(rnic, rnic_stag_place(stag) - rnic->config.regions);
    return window->end == end->index + 1 && window->key == (stag & RDMA_STAG_KEY) ? window : NULL;
}

bool rnic_bind(struct end *end, const struct rnic_wqe *wqe)
{
    const struct sim_rnic *rnic = end->handle->rnic;
    uint64_t offset = wqe->remote_to, length = wqe->operand[0];
    uint32_t access = (uint32_t)wqe->operand[1];
    rnic_look(rnic->w, rnic->segment);
    const struct rnic_region *r = rnic_region_of(rnic, wqe->remote_stag);
    if (!r || !rdma_may_bind(r->access, r->length, access, offset, length) ||
        !rnic_names_window(rnic, wqe->imm_stag))
        return false;
    struct rnic_window *window =
        rnic_window(rnic, rnic_stag_place(wqe->imm_stag) - rnic->config.regions);
    if (!window->used || window->end != 0)
        return false; /* 2B: bound again only after it was invalidated */
    rnic_touch(rnic->w, rnic->segment);
    *window = (struct rnic_window){.addr = r->addr + offset,
                                   .length = length,
                                   .base_to = r->base_to + offset,
                                   .access = access,
                                   .region = rnic_stag_place(wqe->remote_stag),
                                   .end = end->index + 1,
                                   .used = 1,
                                   .key = (uint8_t)(wqe->imm_stag & RDMA_STAG_KEY)};
    return true;
}

void rnic_unbind(struct rnic_window *window)
{
    *window = (struct rnic_window){.used = 1, .key = window->key};
}

void rnic_unbind_all(const struct end *end)
{
    const struct sim_rnic *rnic = end->handle->rnic;
    if (rnic->config.windows == 0)
        return;
    rnic_look(rnic->w, rnic->segment);
    for (uint32_t i = 0; i < rnic->config.windows; i++)
        if (rnic_window(rnic, i)->end == end->index + 1) {
            rnic_touch(rnic->w, rnic->segment);
            rnic_unbind(rnic_window(rnic, i));
        }
}

bool rnic_has_windows(const struct sim_rnic *rnic, uint32_t place)
{
    for (uint32_t i = 0; i < rnic->config.windows; i++)
        if (rnic_window(rnic, i)->end != 0 && rnic_window(rnic, i)->region == place)
            return true;
    return false;
}
