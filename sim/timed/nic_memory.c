/* SPDX-License-Identifier: BSD-3-Clause */
/* Regions and windows, and how messages reach memory. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sim/timed/nic_state.h"

/* STags: place << 8 | key, from 1 << 8 on; those of windows have the highest bit. */
#define WINDOW_BIT 0x80000000u
#define PLACES (1u << 22)

/* ---- regions ----------------------------------------------------------------------------- */

/* `count` + 1 of them, the new one zero. */
static bool grow(struct sim_nics *nics, void **list, uint32_t count, size_t octets)
{
    bool full = (count & (count - 1)) == 0; /* room for a power of two */
    if (full) {
        size_t room = count ? 2 * (size_t)count : 1;
        char *larger = realloc(*list, room * octets);
        if (!larger)
            return false;
        memset(larger + count * octets, 0, (room - count) * octets);
        nics->memory_octets += (room - count) * octets;
        *list = larger;
    }
    return true;
}

int nic_reg(struct rdma *r, void *addr, uint64_t length, uint32_t access, uint64_t wanted,
            struct rdma_region *region)
{
    struct nic_handle *h = nic_handle_of(r);
    struct nic *nic = h->nic;
    const struct sim_costs *costs = nic_nics(h)->costs;
    uint32_t place = 0;
    if (length == 0 || ((access & RDMA_PEER_CHANGES) && !(access & RDMA_LOCAL_WRITE)))
        return -EINVAL;
    while (place < nic->regions_count && nic->regions[place].used)
        place++;
    if (place == PLACES)
        return -ENOSPC;
    if (place == nic->regions_count) {
        if (!grow(nic->nics, (void **)&nic->regions, place, sizeof *nic->regions))
            return -ENOMEM;
        nic->regions_count++;
    }
    struct nic_region *it = &nic->regions[place];
    uint32_t key = (place + 1) << 8 | it->key;
    *it = (struct nic_region){.used = true, .valid = true, .key = it->key};
    it->phantom = nic_phantom_with(nic->nics, addr);
    it->region = (struct rdma_region){
        .addr = addr,
        .length = length,
        .base_to = nic->nics->config.bits & RDMA_CAP_BASE_TO ? wanted : (uintptr_t)addr,
        .lkey = key,
        .stag = key,
        .access = access,
        .id = place};
    *region = it->region;
    h->spent_ps += nic_ps(costs->register_ns + costs->register_page_ns * ((double)length / 4096));
    return 0;
}

static bool has_windows(const struct nic *nic, uint32_t region)
{
    for (uint32_t i = 0; i < nic->windows_count; i++)
        if (nic->windows[i].conn && nic->windows[i].region == region)
            return true;
    return false;
}

int nic_dereg(struct rdma *r, struct rdma_region *region)
{
    struct nic *nic = nic_handle_of(r)->nic;
    if (has_windows(nic, region->id))
        return -EBUSY;
    struct nic_region *it = &nic->regions[region->id];
    *it = (struct nic_region){.key = (uint8_t)(it->key + 1)};
    return 0;
}

static struct nic_region *region_of(const struct nic *nic, uint32_t stag)
{
    uint32_t place = (stag >> 8) - 1;
    if ((stag & WINDOW_BIT) || place >= nic->regions_count)
        return NULL;
    struct nic_region *it = &nic->regions[place];
    return it->used && it->valid && it->key == (stag & RDMA_STAG_KEY) ? it : NULL;
}

/* Without overflow: do these octets lie within? */
static bool within(uint64_t at, uint64_t length, uint64_t base, uint64_t octets)
{
    return at >= base && at - base <= octets && octets - (at - base) >= length;
}

static const struct nic_region *local(const struct nic *nic, const struct rdma_sge *sge,
                                      uint32_t access)
{
    const struct nic_region *it = region_of(nic, sge->lkey);
    bool fits =
        it && (it->region.access & access) == access &&
        within((uintptr_t)sge->addr, sge->length, (uintptr_t)it->region.addr, it->region.length);
    return fits ? it : NULL;
}

bool nic_local_ok(const struct nic *nic, const struct rdma_sge *sge, uint32_t access)
{
    return sge->length == 0 || local(nic, sge, access) != NULL;
}

/* ---- windows ----------------------------------------------------------------------------- */

static struct nic_window *window_of(const struct nic *nic, uint32_t stag)
{
    uint32_t place = (stag & ~WINDOW_BIT) >> 8;
    if (!(stag & WINDOW_BIT) || place >= nic->windows_count || !nic->windows[place].used)
        return NULL;
    return &nic->windows[place];
}

/* The one that is bound to this connection with this STag. */
static struct nic_window *bound(const struct nic_conn *c, uint32_t stag)
{
    struct nic_window *it = window_of(c->nic, stag);
    return it && it->conn == c && it->key == (stag & RDMA_STAG_KEY) ? it : NULL;
}

int nic_window_alloc(struct rdma *r, struct rdma_window *window)
{
    struct nic *nic = nic_handle_of(r)->nic;
    uint32_t place = 0;
    if (!(nic->nics->config.bits & RDMA_CAP_WINDOW))
        return -ENOTSUP;
    while (place < nic->windows_count && nic->windows[place].used)
        place++;
    if (place == PLACES)
        return -ENOMEM;
    if (place == nic->windows_count) {
        if (!grow(nic->nics, (void **)&nic->windows, place, sizeof *nic->windows))
            return -ENOMEM;
        nic->windows_count++;
    }
    nic->windows[place].used = true;
    *window = (struct rdma_window){.stag = WINDOW_BIT | place << 8 | nic->windows[place].key,
                                   .id = place};
    return 0;
}

int nic_window_free(struct rdma *r, struct rdma_window *window)
{
    struct nic_window *it = window_of(nic_handle_of(r)->nic, window->stag);
    if (!it)
        return -EINVAL;
    *it = (struct nic_window){.key = (uint8_t)((window->stag + 1) & RDMA_STAG_KEY)};
    return 0;
}

bool nic_bind(struct nic_conn *c, const struct nic_wqe *wqe)
{
    const struct nic *nic = c->nic;
    const struct nic_region *from = region_of(nic, wqe->remote_stag);
    struct nic_window *it = window_of(nic, wqe->imm_stag);
    uint64_t offset = wqe->remote_to, length = wqe->operand[0];
    uint32_t access = (uint32_t)wqe->operand[1];
    if (!it || it->conn || !from ||
        !rdma_may_bind(from->region.access, from->region.length, access, offset, length))
        return false;
    *it = (struct nic_window){.conn = c,
                              .addr = (char *)from->region.addr + offset,
                              .length = length,
                              .base_to = from->region.base_to + offset,
                              .access = access,
                              .region = from->region.id,
                              .key = (uint8_t)(wqe->imm_stag & RDMA_STAG_KEY),
                              .used = true};
    return true;
}

bool nic_invalidate(const struct nic_conn *c, uint32_t stag, bool by_peer)
{
    const struct nic *nic = c->nic;
    uint32_t bits = nic->nics->config.bits;
    struct nic_window *window = bound(c, stag);
    if (window && by_peer && !(bits & RDMA_CAP_INV_WINDOW))
        return false;
    if (window) {
        window->conn = NULL;
        return true;
    }
    struct nic_region *region = region_of(nic, stag);
    const uint32_t remote = RDMA_REMOTE_READ | RDMA_REMOTE_WRITE | RDMA_REMOTE_ATOMIC;
    if (!region || has_windows(nic, region->region.id) ||
        (by_peer && (!(bits & RDMA_CAP_INV_REGION) || !(region->region.access & remote))))
        return false;
    region->valid = false;
    return true;
}

void nic_windows_end(const struct nic_conn *c)
{
    const struct nic *nic = c->nic;
    for (uint32_t i = 0; i < nic->windows_count; i++)
        if (nic->windows[i].conn == c)
            nic->windows[i].conn = NULL;
}

/* ---- what a peer reaches ----------------------------------------------------------------- */

char *nic_remote(const struct nic_conn *c, uint32_t stag, uint64_t to, uint64_t length,
                 uint32_t access, const struct sim_phantom **phantom)
{
    const struct nic *nic = c->nic;
    const struct nic_window *window = bound(c, stag);
    if (window) {
        if ((window->access & access) != access ||
            !within(to, length, window->base_to, window->length))
            return NULL;
        *phantom = nic->regions[window->region].phantom;
        return window->addr + (to - window->base_to);
    }
    const struct nic_region *it = region_of(nic, stag);
    if (!it || (it->region.access & access) != access ||
        !within(to, length, it->region.base_to, it->region.length))
        return NULL;
    *phantom = it->phantom;
    return (char *)it->region.addr + (to - it->region.base_to);
}

/* ---- octets and tags --------------------------------------------------------------------- */

/* Where the tag of the block at `at` is; NULL: it is in the middle of one, or of more than one. */
static struct sim_tag *whole_tag(const struct sim_phantom *phantom, const char *at, uint32_t length)
{
    uint64_t offset = (uint64_t)(at - phantom->base);
    bool whole = offset % phantom->block == 0 && length <= phantom->block;
    return whole ? sim_phantom_tag(phantom, at) : NULL;
}

static uint32_t image_octets(uint32_t length)
{
    return length < sizeof(struct sim_tag) ? length : (uint32_t)sizeof(struct sim_tag);
}

bool nic_take(struct nic_message *m, const char *at, const struct sim_phantom *phantom)
{
    m->is_phantom = phantom != NULL;
    if (!phantom) {
        memcpy(m->octets, at, m->length);
        return true;
    }
    const struct sim_tag *tag = whole_tag(phantom, at, m->length);
    if (tag)
        memcpy(m->octets, tag, image_octets(m->length));
    return tag != NULL;
}

bool nic_put(const struct nic_message *m, char *at, const struct sim_phantom *phantom)
{
    if (!phantom) {
        memcpy(at, m->octets, m->is_phantom ? image_octets(m->length) : m->length);
        return true;
    }
    struct sim_tag *tag = whole_tag(phantom, at, m->length);
    if (!tag)
        return false;
    *tag = (struct sim_tag){0};
    memcpy(tag, m->octets, image_octets(m->length));
    return true;
}

bool nic_is_phantom(const struct nic_conn *c, const struct rdma_sge *sges, uint32_t count,
                    uint32_t length)
{
    const struct nic_region *it = count ? local(c->nic, &sges[0], 0) : NULL;
    return it && it->phantom && sges[0].length == length;
}

bool nic_gather(const struct nic_conn *c, struct nic_message *m, const struct rdma_sge *sges,
                uint32_t count)
{
    char *to = m->octets;
    m->is_phantom = false;
    for (uint32_t i = 0; i < count; i++) {
        if (sges[i].length == 0)
            continue;
        const struct nic_region *it = local(c->nic, &sges[i], 0);
        bool fits = it && (it->phantom ? sges[i].length == m->length : m->room >= m->length);
        if (!fits) /* what was phantom memory may be real by now */
            return false;
        if (it->phantom)
            return nic_take(m, sges[i].addr, it->phantom);
        memcpy(to, sges[i].addr, sges[i].length);
        to += sges[i].length;
    }
    return true;
}

bool nic_scatter(const struct nic_conn *c, const struct nic_message *m, const struct rdma_sge *sges,
                 uint32_t count)
{
    const char *from = m->octets;
    uint32_t left = m->length;
    for (uint32_t i = 0; i < count && left != 0; i++) {
        uint32_t piece = sges[i].length < left ? sges[i].length : left;
        if (piece == 0)
            continue;
        const struct nic_region *it = local(c->nic, &sges[i], RDMA_LOCAL_WRITE);
        if (!it || ((it->phantom || m->is_phantom) && piece != m->length))
            return false;
        if (it->phantom || m->is_phantom)
            return nic_put(m, sges[i].addr, it->phantom);
        memcpy(sges[i].addr, from, piece);
        from += piece;
        left -= piece;
    }
    return true;
}

void nic_memory_free(struct nic *nic)
{
    free(nic->regions);
    free(nic->windows);
}
