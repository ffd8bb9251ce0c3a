/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Worlds of kind `ring`: allocators take blocks from one free-block ring, freers return any bound
 * block at any time; with `handles`, a block table says what is bound. The agents run ref/ring,
 * ref/table and ref/pool. Requests come from an environment that respects the quota.
 *
 * Below is what checkers look at: memory in the draft's formats, and ghost records.
 */
#ifndef KBTP_SIM_RING_WORLD_H
#define KBTP_SIM_RING_WORLD_H

#include "sim/world.h"

#define SIM_RING_MAX_BLOCKS SIM_MAX_BLOCKS

enum sim_ring_place { RING_IN_RING, RING_HELD, RING_BOUND, RING_FREEING };
enum sim_ring_entry_state { RING_UNBOUND, RING_BINDING, RING_ENTRY_BOUND, RING_ENTRY_FREEING };

/* Told to checkers, before the ghost records change. */
enum sim_ring_event {
    RING_HANDED_OUT = 1, /* an allocation got this Block Offset */
    RING_NOW_BOUND,      /* block index: its allocation completed */
    RING_FREE_REFUSED,   /* block index */
    RING_FREE_COMPLETED, /* table entry, 0 without a table */
    RING_EVENTS_END,
};

enum sim_ring_reach {
    RING_REACH_DEFERRAL = SIM_REACH_OF_KIND,
    RING_REACH_TWO_DEFERRALS,
    RING_REACH_DEFERRED_WRITE,
    RING_REACH_WAIT,
    RING_REACH_UNCONFIRMED,
    RING_REACH_RING_WRAP,
    RING_REACH_TICKET_WRAP,
    RING_REACH_GENERATION_WRAP,
    RING_REACH_CRASH,
    RING_REACH_QUOTA_FULL,
    RING_REACH_COUNT,
};

/* Octets that are hashed have no padding. */
#pragma GCC diagnostic push
#pragma GCC diagnostic error "-Wpadded"

/* By block index. */
struct sim_ring_block {
    uint8_t place;  /* enum sim_ring_place */
    uint8_t agent;  /* who holds or frees it */
    uint16_t entry; /* table entry it is meant for or bound to */
};

/* By table entry. */
struct sim_ring_entry {
    uint16_t generation; /* last seen in memory */
    uint8_t state;       /* enum sim_ring_entry_state */
    uint8_t block;       /* index, while not UNBOUND */
};

struct sim_ring_ghost {
    uint32_t usage; /* handles bound and tickets taken, all initiators together */
    uint32_t crashed;
    struct sim_ring_block blocks[]; /* block_count of them */
};

#pragma GCC diagnostic pop

/* One free-block ring, and the blocks it lists when they are free: from first_block on. */
struct sim_ring_memory {
    char *slots;       /* 16 octets each: Sequence 4, Reserved 4, Block Offset 8 */
    char *head, *tail; /* 8 octets each, host order */
    const char *owner; /* whose partition it is; NULL: all share it */
    uint32_t slot_count;
    uint32_t first_block, block_count; /* an index, below those of the world */
};

#define SIM_MAX_RINGS (1u + SIM_MAX_INITIATORS)

struct sim_ring_world {
    struct sim_ring_memory rings[SIM_MAX_RINGS]; /* the shared one comes first */
    uint32_t rings_count;
    char *table; /* 16 octets an entry, or NULL */
    uint32_t entry_count;
    struct sim_ring_ghost *ghost;
    struct sim_ring_entry *entries;
    uint32_t block_count, first_block;
    uint64_t block_size;
    bool addr_le, unmasked;
    bool held_may_return; /* a block that was taken may go back without having been bound */
};

#define RING_NO_BLOCK UINT32_MAX

static inline struct sim_ring_world *sim_ring_of(const struct sim_world *w)
{
    return w->kind;
}

/* Fields in the draft's formats. */
uint32_t sim_ring_sequence(const char *slot);
uint64_t sim_ring_offset(const struct sim_ring_world *ring, const char *slot_or_entry);
uint16_t sim_ring_entry_flags(const char *entry);
bool sim_ring_entry_is_valid(const char *entry);
bool sim_ring_entry_is_sealed(const char *entry);
uint16_t sim_ring_entry_generation(const char *entry);
uint32_t sim_ring_entry_length(const char *entry);
uint64_t sim_ring_counter_value(const char *counter);

/* The Block Offset of block `index`. */
uint64_t sim_ring_offset_of(const struct sim_ring_world *ring, uint32_t index);
/* Which block a Block Offset names: an index below block_count, or RING_NO_BLOCK. */
uint32_t sim_ring_block_at(const struct sim_ring_world *ring, uint64_t block_offset);
/* The Data Length an allocation stores with block `index`. */
uint32_t sim_ring_length(const struct sim_ring_world *ring, uint32_t index);
/* The ring with the slot or counter that `at` lies in, or NULL. */
const struct sim_ring_memory *sim_ring_memory_at(const struct sim_ring_world *ring, const char *at);
/* The ring that lists block `index` when it is free. */
const struct sim_ring_memory *sim_ring_of_block(const struct sim_ring_world *ring, uint32_t index);
/* The slot or table entry that `at` lies in, or NULL. */
const char *sim_ring_slot_at(const struct sim_ring_world *ring, const char *at);
const char *sim_ring_entry_at(const struct sim_ring_world *ring, const char *at);

/* "block 101", "empty", or the number. */
void sim_ring_describe_offset(const struct sim_ring_world *ring, uint64_t offset, char *out,
                              size_t size);
/* The place and the value of an access: "slot 0 Block Offset", "block 101". */
void sim_ring_describe_place(const struct sim_world *w, const struct sim_access *access,
                             char *place, char *value, size_t size);
/* What a slot or entry shows, for charts: "4: 101", "gen 3 VALID". */
void sim_ring_describe_slot(const struct sim_world *w, const char *slot, char *out, size_t size);
void sim_ring_describe_entry(const struct sim_world *w, uint32_t number, char *out, size_t size);

extern const char *const sim_ring_reach_names[RING_REACH_COUNT];

/* For the table of kinds (sim/kind.h). */
bool sim_ring_describe_world(const struct sim_scenario *s, unsigned line, char *out, size_t size);
int sim_ring_world_build(struct sim_world *w);

#endif
