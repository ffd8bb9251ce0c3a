/* SPDX-License-Identifier: BSD-3-Clause */
/* Registered memory, and who may do what with it. */
#include <errno.h>

#include "sim/rnic_state.h"

/*
 * STags and lkeys: host, place in its table, and a key that steps when the place is used again.
 * Windows have places behind those of the regions (rnic_windows.c).
 */
#define HOST_SHIFT 20u
#define PLACE_SHIFT 8u
#define PLACE_MASK 0xfffu

uint32_t rnic_stag(const struct sim_rnic *rnic, uint32_t place, uint8_t key)
{
    return (rnic->index + 1) << HOST_SHIFT | (place + 1) << PLACE_SHIFT | key;
}

uint32_t rnic_stag_place(uint32_t stag)
{
    return (stag >> PLACE_SHIFT & PLACE_MASK) - 1;
}

static uint32_t key_of(const struct sim_rnic *rnic, uint32_t place)
{
    return rnic_stag(rnic, place, rnic->host->regions[place].key);
}

int rnic_reg(struct sim_handle *h, void *addr, uint64_t length, uint32_t access,
             uint64_t wanted_base, struct rdma_region *region)
{
    struct sim_rnic *rnic = h->rnic;
    if (length == 0 || ((access & (RDMA_REMOTE_WRITE | RDMA_REMOTE_ATOMIC)) != 0 &&
                        (access & RDMA_LOCAL_WRITE) == 0))
        return -EINVAL;
    if (!h->w->rnics->immediate && (!sim_segment_find(&h->w->arena, addr) ||
                                    !sim_segment_find(&h->w->arena, (char *)addr + length - 1)))
        return -EINVAL; /* outside the world */
    uint32_t place = 0;
    while (place < rnic->config.regions && rnic->host->regions[place].used)
        place++;
    if (place == rnic->config.regions)
        return -ENOSPC;
    rnic_touch(h->w, rnic->segment);
    struct rnic_region *r = &rnic->host->regions[place];
    *r = (struct rnic_region){
        .addr = (uint64_t)(uintptr_t)addr,
        .length = length,
        .base_to = rnic->config.bits & RDMA_CAP_BASE_TO ? wanted_base : (uint64_t)(uintptr_t)addr,
        .access = access,
        .used = 1,
        .valid = 1,
        .key = r->key};
    *region = (struct rdma_region){.addr = addr,
                                   .length = length,
                                   .base_to = r->base_to,
                                   .lkey = key_of(rnic, place),
                                   .stag = key_of(rnic, place),
                                   .access = access,
                                   .id = place};
    return 0;
}

static bool is_power(uint32_t n)
{
    return n != 0 && (n & (n - 1)) == 0;
}

/* Windows and CPUs have no use for one: its memory is a linear region's as well. */
int rnic_reg_strided(struct sim_handle *h, void *addr, uint32_t count, uint32_t octets,
                     uint32_t stride, uint32_t access, struct rdma_region *region)
{
    const uint32_t remote = RDMA_REMOTE_READ | RDMA_REMOTE_WRITE | RDMA_REMOTE_ATOMIC;
    if ((h->rnic->config.bits & RDMA_CAP_CHAIN_STRIDED) == 0)
        return -ENOTSUP;
    if (!is_power(octets) || !is_power(stride) || octets >= stride || stride > 32768 ||
        (access & ~(remote | RDMA_LOCAL_WRITE)) != 0)
        return -EINVAL;
    int failed = rnic_reg(h, addr, (uint64_t)count * octets, access, 0, region);
    if (failed)
        return failed;
    struct rnic_region *r = &h->rnic->host->regions[region->id];
    r->shape = (uint8_t)(__builtin_ctz(octets) << 4 | __builtin_ctz(stride));
    r->base_to = region->base_to = 0;
    region->length = (uint64_t)count * stride;
    return 0;
}

int rnic_dereg(struct sim_handle *h, struct rdma_region *region)
{
    struct sim_rnic *rnic = h->rnic;
    if (region->id >= rnic->config.regions || !rnic->host->regions[region->id].used ||
        key_of(rnic, region->id) != region->stag)
        return -EINVAL;
    rnic_look(h->w, rnic->segment);
    if (rnic_has_windows(rnic, region->id))
        return -EBUSY;
    rnic_touch(h->w, rnic->segment);
    uint8_t key = rnic->host->regions[region->id].key;
    rnic->host->regions[region->id] = (struct rnic_region){.key = (uint8_t)(key + 1)};
    return 0;
}

struct rnic_region *rnic_region_of(const struct sim_rnic *rnic, uint32_t key)
{
    uint32_t place = rnic_stag_place(key);
    if (place >= rnic->config.regions)
        return NULL;
    struct rnic_region *r = &rnic->host->regions[place];
    return r->valid && key_of(rnic, place) == key ? r : NULL;
}

/* Nothing is checked of a place without octets. */
static bool place_ok(const struct sim_rnic *rnic, const struct rdma_sge *sge, uint32_t access)
{
    if (sge->length == 0)
        return true;
    const struct rnic_region *r = rnic_region_of(rnic, sge->lkey);
    uint64_t at = (uint64_t)(uintptr_t)sge->addr;
    return r && r->shape == 0 && (r->access & access) == access && at >= r->addr &&
           at - r->addr <= r->length && sge->length <= r->length - (at - r->addr);
}

bool rnic_local_ok(const struct sim_rnic *rnic, const struct rdma_sge *sges, uint32_t count,
                   uint32_t access)
{
    rnic_look(rnic->w, rnic->segment);
    for (uint32_t i = 0; i < count; i++)
        if (!place_ok(rnic, &sges[i], access))
            return false;
    return true;
}

/* Octets with rights: a region, or the part of one that a window shows. */
struct extent {
    uint64_t addr, length, base_to;
    uint32_t access;
    uint32_t shape;
};

/* The offset in memory of `length` octets that lie in one element; false: in none. */
static bool unstride(uint32_t shape, uint64_t length, uint64_t *to)
{
    uint64_t octets = UINT64_C(1) << (shape >> 4), stride = UINT64_C(1) << (shape & 15);
    uint64_t within = *to % stride;
    if (within + length > octets)
        return false;
    *to = *to / stride * octets + within;
    return true;
}

/* Without rights: there is none with this STag for whoever comes through this end. */
static struct extent extent_of(const struct end *end, uint32_t stag)
{
    const struct rnic_window *window = rnic_window_of(end, stag);
    if (window)
        return (struct extent){window->addr, window->length, window->base_to, window->access, 0};
    const struct rnic_region *r = rnic_region_of(end->handle->rnic, stag);
    if (r)
        return (struct extent){r->addr, r->length, r->base_to, r->access, r->shape};
    return (struct extent){0};
}

char *rnic_remote(const struct end *end, uint32_t stag, uint64_t to, uint64_t length,
                  uint32_t access)
{
    rnic_look(end->handle->w, end->handle->rnic->segment);
    struct extent at = extent_of(end, stag);
    if ((at.access & access) != access || to < at.base_to)
        return NULL;
    to -= at.base_to;
    if (at.shape != 0 && !unstride(at.shape, length, &to))
        return NULL;
    if (to > at.length || length > at.length - to)
        return NULL;
    return (char *)(uintptr_t)(at.addr + to);
}

/* Regions are invalidated through any connection: there are no protection domains. */
static bool invalidate_region(struct sim_rnic *rnic, uint32_t stag, bool by_peer)
{
    const uint32_t remote = RDMA_REMOTE_READ | RDMA_REMOTE_WRITE | RDMA_REMOTE_ATOMIC;
    struct rnic_region *r = rnic_region_of(rnic, stag);
    if (!r || rnic_has_windows(rnic, rnic_stag_place(stag)) ||
        (by_peer && ((rnic->config.bits & RDMA_CAP_INV_REGION) == 0 || (r->access & remote) == 0)))
        return false;
    rnic_touch(rnic->w, rnic->segment);
    r->valid = 0;
    return true;
}

static bool invalidate_window(struct end *end, uint32_t stag, bool by_peer)
{
    const struct sim_rnic *rnic = end->handle->rnic;
    struct rnic_window *window = rnic_window_of(end, stag);
    if (!window || (by_peer && (rnic->config.bits & RDMA_CAP_INV_WINDOW) == 0))
        return false;
    rnic_touch(rnic->w, rnic->segment);
    rnic_unbind(window);
    return true;
}

bool rnic_invalidate(struct end *end, uint32_t stag, bool by_peer)
{
    struct sim_rnic *rnic = end->handle->rnic;
    rnic_look(rnic->w, rnic->segment);
    return rnic_names_window(rnic, stag) ? invalidate_window(end, stag, by_peer)
                                         : invalidate_region(rnic, stag, by_peer);
}
