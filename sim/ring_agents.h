/* SPDX-License-Identifier: BSD-3-Clause */
/* The agents of a ring world; only sim/ring_*.c look in here. */
#ifndef KBTP_SIM_RING_AGENTS_H
#define KBTP_SIM_RING_AGENTS_H

#include "ref/pool.h"
#include "sim/cpu.h"
#include "sim/ring_world.h"

/* The world as its programs and the environment see it. */
struct ring_world {
    struct sim_ring_world view; /* first: what checkers see */
    struct kbtp_pool pool;
    uint32_t allocators, freers; /* agents 0.. are allocators, then freers, then the fault */
    struct sim_program allocator_program, freer_program;
};

static inline struct ring_world *ring_world_of(const struct sim_world *w)
{
    return w->kind;
}

/* Octets that are hashed have no padding, neither here nor in what ref/ puts into them. */
#pragma GCC diagnostic push
#pragma GCC diagnostic error "-Wpadded"
_Static_assert(sizeof(struct kbtp_alloc) == 8 + 4 + 4, "padding");
_Static_assert(sizeof(struct kbtp_deferred) == 8 + 4 + 4, "padding");
_Static_assert(sizeof(struct kbtp_deferred_free) == 8 + 4 + 4, "padding");

/* Private state of an allocator. */
struct allocator {
    struct kbtp_alloc alloc;
    uint32_t remaining; /* allocations to make */
    uint32_t entry;     /* of the table, for the allocation in progress */
};

enum allocator_result {
    ALLOCATOR_TOOK_TICKET,
    ALLOCATOR_WAITS,
    ALLOCATOR_HAS_BLOCK,
    ALLOCATOR_BOUND
};

/* Private state of a freer. */
struct freer {
    struct kbtp_deferred deferred; /* its memory are the frees below: inside the arena */
    uint32_t entry;                /* of the table, for the free in progress */
    uint32_t zero;
    struct kbtp_deferred_free frees[]; /* block_count of them */
};

/* Arguments of a freer's polls: a block to free, or a deferred free to look at again. */
#define RING_RETRY 0x100u

#pragma GCC diagnostic pop

extern const struct sim_program ring_allocator_program, ring_freer_program;
/* The environment: an allocator may die between FetchAdd and the consumption of its slot. */
extern const struct sim_agent_ops ring_fault_ops;

#endif
