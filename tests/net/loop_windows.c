/* SPDX-License-Identifier: BSD-3-Clause */
/* Windows of the trivial provider: a part of a region, for one connection. */
#include <errno.h>

#include "net/request.h"
#include "tests/net/loop.h"

#define FIRST_STAG 0x10000u /* place << 8 | key */

/* The window with this STag, bound or not. */
static struct loop_window *window_of(struct loop *loop, uint32_t stag)
{
    uint32_t place = (stag - FIRST_STAG) >> 8;
    return stag >= FIRST_STAG && place < LOOP_WINDOWS && loop->windows[place].used
               ? &loop->windows[place]
               : NULL;
}

/* The one that is bound with this STag. A lie: to whichever connection. */
static struct loop_window *bound_window(struct loop *loop, const struct loop_handle *h,
                                        uint32_t conn, uint32_t stag)
{
    struct loop_window *it = window_of(loop, stag);
    if (!it || !it->of || it->stag != stag)
        return NULL;
    bool here = it->of == h && it->conn == conn;
    return here || !loop_does(loop, RDMA_CAP_WINDOW) ? it : NULL;
}

int loop_window_alloc(struct rdma *r, struct rdma_window *window)
{
    struct loop *loop = loop_self(r)->loop;
    if (!(loop->caps.bits & RDMA_CAP_WINDOW))
        return -ENOTSUP;
    for (uint32_t i = 0; i < LOOP_WINDOWS; i++) {
        struct loop_window *it = &loop->windows[i];
        if (it->used)
            continue;
        it->used = true;
        *window =
            (struct rdma_window){.stag = FIRST_STAG | i << 8 | (it->stag & RDMA_STAG_KEY), .id = i};
        return 0;
    }
    return -ENOMEM;
}

int loop_window_free(struct rdma *r, struct rdma_window *window)
{
    struct loop_window *it = window_of(loop_self(r)->loop, window->stag);
    if (!it)
        return -EINVAL;
    *it = (struct loop_window){.stag = window->stag + 1};
    return 0;
}

enum rdma_status loop_bind(struct loop_handle *h, uint32_t conn, const struct rdma_wr *wr,
                           uint32_t stag)
{
    const struct rdma_region *region = &h->loop->regions[wr->bind.region->id];
    uint64_t offset = wr->bind.offset, length = wr->bind.length;
    struct loop_window *it = window_of(h->loop, stag);
    if (!it || it->of || region->stag == 0 || region->stag != wr->bind.region->stag ||
        !rdma_may_bind(region->access, region->length, wr->bind.access, offset, length))
        return RDMA_LOCAL_ERROR;
    *it = (struct loop_window){.of = h,
                               .conn = conn,
                               .addr = (char *)region->addr + offset,
                               .length = length,
                               .base_to = region->base_to + offset,
                               .access = wr->bind.access,
                               .region = region->id,
                               .stag = stag,
                               .used = true};
    return RDMA_OK;
}

char *loop_window_at(struct loop_handle *h, uint32_t conn, const struct rdma_wr *wr,
                     uint32_t length, uint32_t access)
{
    const struct loop_window *it = bound_window(h->loop, h, conn, wr->remote_stag);
    uint64_t to = wr->remote_to;
    if (!it || (it->access & access) != access || to < it->base_to ||
        to - it->base_to > it->length || it->length - (to - it->base_to) < length)
        return NULL;
    return it->addr + (to - it->base_to);
}

bool loop_window_invalidate(struct loop_handle *h, uint32_t conn, uint32_t stag, bool by_peer)
{
    struct loop_window *it = bound_window(h->loop, h, conn, stag);
    if (!it || (by_peer && !(h->loop->caps.bits & RDMA_CAP_INV_WINDOW)))
        return false;
    if (!by_peer || loop_does(h->loop, RDMA_CAP_INV_WINDOW))
        it->of = NULL;
    return true;
}

void loop_windows_end(struct loop_handle *h, uint32_t conn)
{
    for (uint32_t i = 0; i < LOOP_WINDOWS; i++)
        if (h->loop->windows[i].of == h && h->loop->windows[i].conn == conn)
            h->loop->windows[i].of = NULL;
}

bool loop_has_windows(const struct loop *loop, uint32_t region)
{
    for (uint32_t i = 0; i < LOOP_WINDOWS; i++)
        if (loop->windows[i].of && loop->windows[i].region == region)
            return true;
    return false;
}

uint32_t loop_windows(const struct loop *loop)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < LOOP_WINDOWS; i++)
        count += loop->windows[i].used;
    return count;
}
