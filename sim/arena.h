/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The memory of a simulated world: one mapping at a fixed address, made of segments.
 *
 * A step calls sim_touch() before its first write to a segment: the old octets go to the undo log.
 * sim_arena_commit() ends the step and brings the hash up to date, sim_arena_undo() takes steps
 * back. Only touched segments cost anything. The address is fixed so that pointers inside the arena
 * may be part of the state and hash alike in every run.
 */
#ifndef KBTP_SIM_ARENA_H
#define KBTP_SIM_ARENA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define SIM_ARENA_BASE 0x7ea000000000u
#define SIM_LINE 64u /* segments are aligned to this many octets */

enum sim_segment_kind {
    SIM_STATE, /* hashed, undone */
    SIM_CONST, /* not written after set-up */
};

struct sim_segment {
    const char *name; /* not owned */
    char *at;
    uint32_t size;   /* octets, undone */
    uint32_t hashed; /* the first so many octets are state; the rest follows from them */
    uint64_t hash;
    uint64_t stamp; /* the step that touched it last */
    uint8_t kind;
    bool granted;  /* memory that ref/ may reach through net/mem.h */
    uint8_t owner; /* 0: all agents share it; else private to the agent with this index + 1 */
};

struct sim_arena {
    char *base;
    size_t size, used;
    struct sim_segment *segments;
    uint32_t segments_count, segments_capacity;
    uint16_t *line_owner; /* per line of the arena, the segment it belongs to */
    uint64_t hash;        /* of the world: the sum of the segments' hashes */

    char *undo; /* grows; records are popped from its end */
    size_t undo_used, undo_size;
    size_t undo_start; /* where the running step's records begin */
    uint64_t step_stamp;
    bool failed; /* the undo log found no memory: the run must end */
};

/* Maps `size` octets at the fixed address. Returns 0 or -errno. */
int sim_arena_open(struct sim_arena *arena, size_t size);
/* The same wherever there is room: for worlds that are neither hashed nor replayed. */
int sim_arena_open_anywhere(struct sim_arena *arena, size_t size);
void sim_arena_close(struct sim_arena *arena);

/* A new zeroed segment, for set-up. Returns NULL when the arena or memory is used up. */
void *sim_segment_new(struct sim_arena *arena, const char *name, size_t size,
                      enum sim_segment_kind kind);
/*
 * New memory that agents reach, for set-up: many small segments, one after the other, so that a
 * step saves and hashes little. `owner`: as in struct sim_segment. NULL: as above.
 */
char *sim_region_new(struct sim_arena *arena, const char *name, size_t octets, uint32_t owner);
/* The segment that `at` lies in; `at` must come from sim_segment_new(). */
static inline struct sim_segment *sim_segment_of(struct sim_arena *arena, const void *at)
{
    size_t line = (size_t)((const char *)at - arena->base) / SIM_LINE;
    return &arena->segments[arena->line_owner[line]];
}
/* As above, or NULL when `at` is no address of a segment. */
struct sim_segment *sim_segment_find(struct sim_arena *arena, const void *at);

/* Computes every hash; call when set-up is complete. */
void sim_arena_seal(struct sim_arena *arena);

void sim_touch_record(struct sim_arena *arena, struct sim_segment *segment);

static inline void sim_touch(struct sim_arena *arena, struct sim_segment *segment)
{
    if (segment->stamp != arena->step_stamp)
        sim_touch_record(arena, segment);
}

/* A position to go back to. */
static inline size_t sim_arena_mark(const struct sim_arena *arena)
{
    return arena->undo_used;
}

/* Begins a step. */
static inline void sim_arena_begin(struct sim_arena *arena)
{
    arena->step_stamp++;
    arena->undo_start = arena->undo_used;
}

/* Ends the step: brings the hash up to date. */
void sim_arena_commit(struct sim_arena *arena);

/* Takes back everything since `mark`. */
void sim_arena_undo(struct sim_arena *arena, size_t mark);

/*
 * For runs too long to be undone step by step: a copy of everything (NULL when there is no memory;
 * free() it), to go back to it, and to forget how to undo the steps since `mark`.
 */
void *sim_arena_save(const struct sim_arena *arena);
void sim_arena_restore(struct sim_arena *arena, const void *saved);
static inline void sim_arena_forget(struct sim_arena *arena, size_t mark)
{
    arena->undo_used = arena->undo_start = mark;
}

/* Rehashes all; the name of a segment that changed without being touched, or NULL. */
const char *sim_arena_check(const struct sim_arena *arena);

#endif
