/* SPDX-License-Identifier: BSD-3-Clause */
/* Phantom memory, and what CPUs find there. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "sim/timed/nic_state.h"

/* ---- phantom memory ---------------------------------------------------------------------- */

struct sim_phantom *sim_nic_phantom(struct sim_nics *nics, uint64_t count, uint32_t block)
{
    struct nic_phantom *made = nic_allocate(nics, 1, sizeof *made);
    struct sim_phantom *phantom = &made->phantom;
    if (!made)
        return NULL;
    phantom->octets = count * block;
    phantom->block = block;
    phantom->tags = nic_allocate(nics, count, sizeof *phantom->tags);
    phantom->base = count <= UINT64_MAX / block
                        ? mmap(NULL, phantom->octets, PROT_NONE,
                               MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)
                        : MAP_FAILED;
    if (!phantom->tags || phantom->base == MAP_FAILED) {
        free(phantom->tags);
        free(made);
        return NULL;
    }
    made->next = nics->phantoms;
    nics->phantoms = made;
    return phantom;
}

void nic_phantoms_free(struct sim_nics *nics)
{
    for (struct nic_phantom *it = nics->phantoms, *next; it; it = next) {
        next = it->next;
        munmap(it->phantom.base, it->phantom.octets);
        free(it->phantom.tags);
        free(it);
    }
}

struct sim_tag *sim_phantom_tag(const struct sim_phantom *phantom, const void *at)
{
    return &phantom->tags[(uint64_t)((const char *)at - phantom->base) / phantom->block];
}

static bool contains(const struct sim_phantom *phantom, const void *at)
{
    return (const char *)at >= phantom->base && (const char *)at < phantom->base + phantom->octets;
}

const struct sim_phantom *nic_phantom_with(const struct sim_nics *nics, const void *addr)
{
    for (const struct nic_phantom *it = nics->phantoms; it; it = it->next)
        if (contains(&it->phantom, addr))
            return &it->phantom;
    return NULL;
}

/* ---- what CPUs do ------------------------------------------------------------------------ */

/*
 * What a CPU copies to the start of a block is its tag, the rest is nothing; and back. Words of
 * their own (slots, entries, pins) are never in phantom memory. One CPU runs at a time.
 */
static struct mem native;

/* Its tag, when `at` is the start of a block. */
static struct sim_tag *start_tag(const struct sim_phantom *phantom, const void *at)
{
    uint64_t offset = (uint64_t)((const char *)at - phantom->base);
    return offset % phantom->block == 0 ? sim_phantom_tag(phantom, at) : NULL;
}

static const struct sim_phantom *seen_by(const struct mem *m, const void *at)
{
    const struct sim_phantom *phantom = ((const struct sim_nic_mem *)m)->phantom;
    return phantom && contains(phantom, at) ? phantom : NULL;
}

static size_t tag_octets(size_t octets)
{
    return octets < sizeof(struct sim_tag) ? octets : sizeof(struct sim_tag);
}

static void copies(const struct mem *m, size_t octets)
{
    struct nic_handle *h = nic_handle_of(((const struct sim_nic_mem *)m)->handle);
    h->spent_ps += nic_ps((double)octets / nic_nics(h)->costs->copy_gbytes_s);
}

static void cpu_read(struct mem *m, void *to, const void *at, size_t octets)
{
    const struct sim_phantom *phantom = seen_by(m, at);
    if (!phantom) {
        mem_read(&native, to, at, octets);
        return;
    }
    const struct sim_tag *tag = start_tag(phantom, at);
    memset(to, 0, octets);
    if (tag)
        memcpy(to, tag, tag_octets(octets));
}

static void cpu_write(struct mem *m, void *at, const void *from, size_t octets)
{
    const struct sim_phantom *phantom = seen_by(m, at);
    struct sim_tag *tag = phantom ? start_tag(phantom, at) : NULL;
    copies(m, octets);
    if (!phantom)
        mem_write(&native, at, from, octets);
    else if (tag)
        memcpy(tag, from, tag_octets(octets));
}

static void cpu_fill(struct mem *m, void *at, uint8_t octet, size_t octets)
{
    const struct sim_phantom *phantom = seen_by(m, at);
    struct sim_tag *tag = phantom ? start_tag(phantom, at) : NULL;
    copies(m, octets);
    if (!phantom)
        mem_fill(&native, at, octet, octets);
    else if (tag)
        memset(tag, octet, sizeof *tag);
}

static uint32_t cpu_load32(struct mem *m, const mem32 *at)
{
    (void)m;
    return mem_load32(&native, at);
}

static uint64_t cpu_load64(struct mem *m, const mem64 *at)
{
    (void)m;
    return mem_load64(&native, at);
}

static void cpu_store32(struct mem *m, mem32 *at, uint32_t value, int release)
{
    (void)m, (void)release;
    mem_store_release32(&native, at, value);
}

static void cpu_store64(struct mem *m, mem64 *at, uint64_t value, int release)
{
    (void)m, (void)release;
    mem_store_release64(&native, at, value);
}

static uint64_t cpu_fetch_add64(struct mem *m, mem64 *at, uint64_t add, uint64_t mask)
{
    (void)m;
    return mem_fetch_add_masked64(&native, at, add, mask);
}

static uint64_t cpu_cas64(struct mem *m, mem64 *at, uint64_t expected, uint64_t desired)
{
    (void)m;
    return mem_cas64(&native, at, expected, desired);
}

void sim_nic_mem(struct sim_nic_mem *mem, const struct sim_phantom *phantom, struct rdma *handle)
{
    static const struct mem_ops ops = {cpu_load32,  cpu_load64,      cpu_store32,
                                       cpu_store64, cpu_fetch_add64, cpu_cas64,
                                       cpu_read,    cpu_write,       cpu_fill};
    *mem = (struct sim_nic_mem){.mem.sim = &ops, .phantom = phantom, .handle = handle};
}
