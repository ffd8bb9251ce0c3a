/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory that another agent (a CPU or an RNIC) can see is touched only through this header.
 *
 * Shared words have types of their own, so that a plain access does not compile. Every call takes
 * the handle of the CPU that makes it: with no simulator behind it (`sim` null) an access is the
 * C11 atomic of the same name, inlined; otherwise it is a step of the simulated world.
 *
 * Orders. Loads are acquire. `store` is relaxed, `store_release` is a release. The atomics are
 * sequentially consistent: all earlier stores of this CPU are visible before they take effect.
 * `read`, `write` and `fill` move octets and may tear anywhere between naturally aligned pieces of
 * 4 octets; nothing may be concluded from the order in which their pieces take effect.
 *
 * Values are in the host's byte order; ref/octets.h turns them into the order of the draft.
 * Pointers are naturally aligned. No call fails.
 */
#ifndef KBTP_NET_MEM_H
#define KBTP_NET_MEM_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

typedef struct {
    _Atomic uint32_t word;
} mem32;

typedef struct {
    _Atomic uint64_t word;
} mem64;

struct mem;

/* The simulator's side of each call below. */
struct mem_ops {
    uint32_t (*load32)(struct mem *m, const mem32 *at);
    uint64_t (*load64)(struct mem *m, const mem64 *at);
    void (*store32)(struct mem *m, mem32 *at, uint32_t value, int release);
    void (*store64)(struct mem *m, mem64 *at, uint64_t value, int release);
    uint64_t (*fetch_add64)(struct mem *m, mem64 *at, uint64_t add, uint64_t mask);
    uint64_t (*cas64)(struct mem *m, mem64 *at, uint64_t expected, uint64_t desired);
    void (*read)(struct mem *m, void *to, const void *at, size_t octets);
    void (*write)(struct mem *m, void *at, const void *from, size_t octets);
    void (*fill)(struct mem *m, void *at, uint8_t octet, size_t octets);
};

/* One per CPU. */
struct mem {
    const struct mem_ops *sim;
};

/*
 * The sum a masked FetchAdd leaves (RFC 7306 section 5.1): each set bit of `mask` is the most
 * significant bit of a field, and a field's carry out is discarded. A zero mask is the plain sum.
 */
static inline uint64_t mem_masked_sum64(uint64_t value, uint64_t add, uint64_t mask)
{
    return ((value & ~mask) + (add & ~mask)) ^ ((value ^ add) & mask);
}

static inline uint32_t mem_load32(struct mem *m, const mem32 *at)
{
    if (m->sim)
        return m->sim->load32(m, at);
    return atomic_load_explicit(&at->word, memory_order_acquire);
}

static inline uint64_t mem_load64(struct mem *m, const mem64 *at)
{
    if (m->sim)
        return m->sim->load64(m, at);
    return atomic_load_explicit(&at->word, memory_order_acquire);
}

static inline void mem_store32(struct mem *m, mem32 *at, uint32_t value)
{
    if (m->sim)
        m->sim->store32(m, at, value, 0);
    else
        atomic_store_explicit(&at->word, value, memory_order_relaxed);
}

static inline void mem_store64(struct mem *m, mem64 *at, uint64_t value)
{
    if (m->sim)
        m->sim->store64(m, at, value, 0);
    else
        atomic_store_explicit(&at->word, value, memory_order_relaxed);
}

static inline void mem_store_release32(struct mem *m, mem32 *at, uint32_t value)
{
    if (m->sim)
        m->sim->store32(m, at, value, 1);
    else
        atomic_store_explicit(&at->word, value, memory_order_release);
}

static inline void mem_store_release64(struct mem *m, mem64 *at, uint64_t value)
{
    if (m->sim)
        m->sim->store64(m, at, value, 1);
    else
        atomic_store_explicit(&at->word, value, memory_order_release);
}

/* Adds and returns the value from before. */
static inline uint64_t mem_fetch_add64(struct mem *m, mem64 *at, uint64_t add)
{
    if (m->sim)
        return m->sim->fetch_add64(m, at, add, 0);
    return atomic_fetch_add_explicit(&at->word, add, memory_order_seq_cst);
}

/*
 * As fetch_add64 with the sum of mem_masked_sum64. CPUs have no such instruction: natively it is a
 * loop of compare-and-swap. That loop takes effect at its one successful swap, so the simulator
 * makes it a single step.
 */
static inline uint64_t mem_fetch_add_masked64(struct mem *m, mem64 *at, uint64_t add, uint64_t mask)
{
    if (m->sim)
        return m->sim->fetch_add64(m, at, add, mask);
    uint64_t old = atomic_load_explicit(&at->word, memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(&at->word, &old, mem_masked_sum64(old, add, mask),
                                                  memory_order_seq_cst, memory_order_relaxed))
        ;
    return old;
}

/* Stores `desired` if the word equals `expected`; returns what the word was. */
static inline uint64_t mem_cas64(struct mem *m, mem64 *at, uint64_t expected, uint64_t desired)
{
    if (m->sim)
        return m->sim->cas64(m, at, expected, desired);
    atomic_compare_exchange_strong_explicit(&at->word, &expected, desired, memory_order_seq_cst,
                                            memory_order_seq_cst);
    return expected;
}

/*
 * The three below move octets between shared memory and memory only the caller sees. Natively they
 * go piece by piece, 8 octets where the place is aligned to 8, else 4, else 1, with acquire loads
 * and relaxed stores.
 */
void mem_read_native(void *to, const void *at, size_t octets);
void mem_write_native(void *at, const void *from, size_t octets);
void mem_fill_native(void *at, uint8_t octet, size_t octets);

static inline void mem_read(struct mem *m, void *to, const void *at, size_t octets)
{
    if (m->sim)
        m->sim->read(m, to, at, octets);
    else
        mem_read_native(to, at, octets);
}

static inline void mem_write(struct mem *m, void *at, const void *from, size_t octets)
{
    if (m->sim)
        m->sim->write(m, at, from, octets);
    else
        mem_write_native(at, from, octets);
}

static inline void mem_fill(struct mem *m, void *at, uint8_t octet, size_t octets)
{
    if (m->sim)
        m->sim->fill(m, at, octet, octets);
    else
        mem_fill_native(at, octet, octets);
}

#endif
