/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The world of one input: a target with two workers on the in-process device, initiator 0, which is
 * good and holds blocks, and two hostile peers. Sessions 1 and 2 are theirs to take: session 1 is
 * for ID 2, session 2 for whoever comes first. Each side has an RNIC of its own, so that nobody's
 * STags reach the memory of another.
 */
#ifndef KBTP_TESTS_FUZZ_WORLD_H
#define KBTP_TESTS_FUZZ_WORLD_H

#include "tests/fuzz/hostile.h"
#include "tests/ref/pair.h"

#define WORLD_HOSTILES 2u
#define WORLD_KEPT 5u /* handles 0 to 4 of the good initiator are bound; it plays with the next */

/* What a world is like; any octet is good. */
enum world_option {
    WORLD_ADDR_LE = 1u << 0,
    WORLD_UNMASKED = 1u << 1,
    WORLD_NO_SEND_INV = 1u << 2,
    WORLD_WRAPS = 1u << 3,     /* tickets and Generations are about to */
    WORLD_ONE_READ = 1u << 4,  /* at a time */
    WORLD_ALLOCATES = 1u << 5, /* in the end initiators take every block, and give it back */
    WORLD_DIRECT = 1u << 6,    /* everybody may have DIRECT_LOAD, the hostile peers too */
    WORLD_TICKETS = 1u << 7,   /* and DIRECT_ALLOC: everybody has a partition */
};

struct world {
    struct sim_device *device;
    struct pair pair;
    struct rdma *workers[PAIR_WORKERS];
    struct hostile hostiles[WORLD_HOSTILES];
    struct kbtp_table_entry kept[WORLD_KEPT]; /* as they have to stay */
    uint32_t options;
};

void world_open(struct world *world, uint32_t options);
/* Ends all; everything must have been given back. */
void world_close(struct world *world);

/* Moves everybody until nothing moves any more. */
void world_settle(struct world *world);
/* The good initiator asks for something: LOADs, or binds and frees its spare handle. */
void world_good_asks(struct world *world, uint32_t what);
/* A retention timer of a worker, when it is armed. */
void world_timer(struct world *world, uint32_t worker, uint32_t session);
/* The timer of the Ticket Timeout of a hostile peer's session, wherever it is armed. */
void world_ticket_timer(struct world *world, uint32_t session);
/* Everything is at rest: nothing but the hostile sessions has changed, no block is lost. */
void world_check(struct world *world);
/* The hostile peers go for good: their sessions end, and the world is as it was. */
void world_forgets_hostiles(struct world *world);

/* The Generation of a handle as the table has it; 1 of none. */
uint16_t world_generation(struct world *world, uint64_t handle);

#endif
