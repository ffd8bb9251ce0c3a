/* SPDX-License-Identifier: BSD-3-Clause */
/* Regions and windows: of the device, for all handles. */
#include "net/verbs/state.h"

#include <stdlib.h>
#include <string.h>

static unsigned access_flags(uint32_t access)
{
    unsigned flags = 0;
    flags |= access & RDMA_LOCAL_WRITE ? IBV_ACCESS_LOCAL_WRITE : 0u;
    flags |= access & RDMA_REMOTE_READ ? IBV_ACCESS_REMOTE_READ : 0u;
    flags |= access & RDMA_REMOTE_WRITE ? IBV_ACCESS_REMOTE_WRITE : 0u;
    flags |= access & RDMA_REMOTE_ATOMIC ? IBV_ACCESS_REMOTE_ATOMIC : 0u;
    flags |= access & RDMA_BIND_WINDOW ? IBV_ACCESS_MW_BIND : 0u;
    return flags;
}

/* A free place of a table that grows; its number, or -ENOMEM. The lock is held. */
static int place(void **table, uint32_t *count, size_t octets, bool (*is_free)(const void *))
{
    for (uint32_t i = 0; i < *count; i++)
        if (is_free((char *)*table + i * octets))
            return (int)i;
    uint32_t more = *count ? *count * 2 : 16;
    void *larger = more < 1u << 30 ? realloc(*table, more * octets) : NULL;
    if (!larger)
        return -ENOMEM;
    memset((char *)larger + *count * octets, 0, (more - *count) * octets);
    int number = (int)*count;
    *table = larger;
    *count = more;
    return number;
}

static bool mr_free(const void *at)
{
    return ((const struct verbs_mr *)at)->mr == NULL;
}

static bool mw_free(const void *at)
{
    return !((const struct verbs_mw *)at)->used;
}

/* ---- regions ------------------------------------------------------------------------------- */

int verbs_reg(struct rdma *r, void *addr, uint64_t length, uint32_t access, uint64_t wanted_base,
              struct rdma_region *region)
{
    struct verbs_handle *h = verbs_of(r);
    struct rdma_verbs *d = h->device;
    if (length == 0 || (access & RDMA_PEER_CHANGES && !(access & RDMA_LOCAL_WRITE)))
        return -EINVAL;
    if ((access & RDMA_BIND_WINDOW && !(d->caps.bits & RDMA_CAP_WINDOW)) ||
        (access & RDMA_REMOTE_ATOMIC && !(d->caps.bits & RDMA_CAP_FETCH_ADD)))
        return -ENOTSUP;
    uint64_t base = (uint64_t)(uintptr_t)addr;
    (void)wanted_base; /* without BASE_TO */
    struct ibv_mr *mr = ibv_reg_mr_iova(d->pd, addr, length, base, access_flags(access));
    if (!mr)
        return verbs_failed(h, "ibv_reg_mr_iova", verbs_error(-1));
    (void)pthread_mutex_lock(&d->lock);
    void *table = d->mrs;
    int number = place(&table, &d->mr_count, sizeof *d->mrs, mr_free);
    d->mrs = table;
    if (number >= 0)
        d->mrs[number] = (struct verbs_mr){mr};
    (void)pthread_mutex_unlock(&d->lock);
    if (number < 0) {
        (void)ibv_dereg_mr(mr);
        return verbs_failed(h, "realloc", ENOMEM);
    }
    h->counts.registrations++;
    *region = (struct rdma_region){.addr = addr,
                                   .length = length,
                                   .base_to = base,
                                   .lkey = mr->lkey,
                                   .stag = mr->rkey,
                                   .access = access,
                                   .id = (uint32_t)number};
    return 0;
}

int verbs_dereg(struct rdma *r, struct rdma_region *region)
{
    struct verbs_handle *h = verbs_of(r);
    struct rdma_verbs *d = h->device;
    struct ibv_mr *mr = NULL;
    (void)pthread_mutex_lock(&d->lock);
    if (region->id < d->mr_count)
        mr = d->mrs[region->id].mr;
    int result = mr ? ibv_dereg_mr(mr) : 0;
    if (mr && result == 0)
        d->mrs[region->id].mr = NULL;
    (void)pthread_mutex_unlock(&d->lock);
    if (!mr)
        return -EINVAL;
    if (result == 0)
        return 0;
    (void)verbs_failed(h, "ibv_dereg_mr", verbs_error(result));
    return -EBUSY; /* a window; drivers say EINVAL or EBUSY */
}

/* ---- windows ------------------------------------------------------------------------------- */

int verbs_window_alloc(struct rdma *r, struct rdma_window *window)
{
    struct verbs_handle *h = verbs_of(r);
    struct rdma_verbs *d = h->device;
    if (!(d->caps.bits & RDMA_CAP_WINDOW))
        return -ENOTSUP;
    struct ibv_mw *mw = ibv_alloc_mw(d->pd, IBV_MW_TYPE_2);
    if (!mw)
        return verbs_failed(h, "ibv_alloc_mw", verbs_error(-1));
    (void)pthread_mutex_lock(&d->lock);
    void *table = d->mws;
    int number = place(&table, &d->mw_count, sizeof *d->mws, mw_free);
    d->mws = table;
    if (number >= 0)
        d->mws[number] = (struct verbs_mw){.mw = mw, .stag = mw->rkey, .used = true};
    (void)pthread_mutex_unlock(&d->lock);
    if (number < 0) {
        (void)ibv_dealloc_mw(mw);
        return verbs_failed(h, "realloc", ENOMEM);
    }
    h->counts.registrations++;
    *window = (struct rdma_window){.id = (uint32_t)number};
    return 0;
}

int verbs_window_free(struct rdma *r, struct rdma_window *window)
{
    struct verbs_handle *h = verbs_of(r);
    struct rdma_verbs *d = h->device;
    int result = -EINVAL;
    (void)pthread_mutex_lock(&d->lock);
    if (window->id < d->mw_count && d->mws[window->id].used) {
        struct verbs_mw *w = &d->mws[window->id];
        int error = w->mw ? ibv_dealloc_mw(w->mw) : 0;
        if (error == 0)
            *w = (struct verbs_mw){.mw = NULL};
        result = error ? verbs_failed(h, "ibv_dealloc_mw", verbs_error(error)) : 0;
    }
    (void)pthread_mutex_unlock(&d->lock);
    return result;
}

int verbs_window_ready(struct verbs_conn *c, const struct rdma_wr *wr)
{
    struct rdma_verbs *d = c->handle->device;
    const struct rdma_region *region = wr->bind.region;
    int result = -EINVAL;
    if (!(d->caps.bits & RDMA_CAP_WINDOW))
        return -ENOTSUP;
    (void)pthread_mutex_lock(&d->lock);
    if (wr->bind.window->id < d->mw_count && d->mws[wr->bind.window->id].used &&
        region->id < d->mr_count && d->mrs[region->id].mr) {
        struct verbs_mw *w = &d->mws[wr->bind.window->id];
        if (!w->mw && (w->mw = ibv_alloc_mw(d->pd, IBV_MW_TYPE_2)))
            w->stag = w->mw->rkey;
        result = w->mw ? 0 : verbs_failed(c->handle, "ibv_alloc_mw", verbs_error(-1));
    }
    (void)pthread_mutex_unlock(&d->lock);
    return result;
}

void verbs_window_bind(struct verbs_conn *c, const struct rdma_wr *wr, struct ibv_send_wr *out)
{
    struct rdma_verbs *d = c->handle->device;
    struct rdma_window *window = wr->bind.window;
    (void)pthread_mutex_lock(&d->lock);
    struct verbs_mw *w = &d->mws[window->id];
    uint64_t base_to = wr->bind.region->base_to + wr->bind.offset;
    w->conn = c;
    w->stag = ibv_inc_rkey(w->mw->rkey);
    out->bind_mw.mw = w->mw; /* whose rkey is still what it was: drivers read both */
    out->bind_mw.rkey = w->stag;
    out->bind_mw.bind_info =
        (struct ibv_mw_bind_info){.mr = d->mrs[wr->bind.region->id].mr,
                                  .addr = base_to,
                                  .length = wr->bind.length,
                                  .mw_access_flags = access_flags(wr->bind.access)};
    *window = (struct rdma_window){.length = wr->bind.length,
                                   .base_to = base_to,
                                   .stag = w->stag,
                                   .bound = 1,
                                   .id = window->id};
    (void)pthread_mutex_unlock(&d->lock);
}

bool verbs_window_waits(struct verbs_conn *c, const struct rdma_wr *wr)
{
    struct rdma_verbs *d = c->handle->device;
    if (wr->op != RDMA_BIND)
        return false;
    (void)pthread_mutex_lock(&d->lock);
    const struct verbs_mw *w = &d->mws[wr->bind.window->id];
    bool waits = w->stag != w->mw->rkey;
    (void)pthread_mutex_unlock(&d->lock);
    return waits;
}

void verbs_window_posted(struct verbs_conn *c, const struct rdma_wr *wr)
{
    struct rdma_verbs *d = c->handle->device;
    if (wr->op != RDMA_BIND)
        return;
    (void)pthread_mutex_lock(&d->lock);
    struct verbs_mw *w = &d->mws[wr->bind.window->id];
    w->mw->rkey = w->stag;
    (void)pthread_mutex_unlock(&d->lock);
}

/*
 * A window that is still bound when its queue pair goes holds up drivers and its region. Freeing it
 * revokes it; it is made anew when it is bound again.
 */
void verbs_windows_end(struct verbs_conn *c)
{
    struct rdma_verbs *d = c->handle->device;
    (void)pthread_mutex_lock(&d->lock);
    for (uint32_t i = 0; i < d->mw_count; i++)
        if (d->mws[i].conn == c) {
            if (d->mws[i].mw && ibv_dealloc_mw(d->mws[i].mw) == 0)
                d->mws[i].mw = NULL;
            d->mws[i].conn = NULL;
        }
    (void)pthread_mutex_unlock(&d->lock);
}
