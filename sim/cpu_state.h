/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The insides of an agent that runs ref/ code, for sim/cpu*.c: polls (cpu.c), the store buffer
 * (cpu_buffer.c), accesses of net/mem.h (cpu_access.c) and of net/rdma.h (cpu_rdma.c).
 */
#ifndef KBTP_SIM_CPU_STATE_H
#define KBTP_SIM_CPU_STATE_H

#include "sim/cpu.h"

/* The access the agent stands before. Follows from the state, so it is not hashed. */
struct sim_next {
    uint32_t op; /* enum next_op */
    uint32_t octets;
    const char *at;
};

enum next_op {
    NEXT_NONE,
    NEXT_LOAD,
    NEXT_STORE,
    NEXT_ATOMIC,
    NEXT_READ,
    NEXT_WRITE,
    NEXT_POST,         /* a doorbell, which takes room in the store buffer */
    NEXT_POST_RECEIVE, /* so does this one */
    NEXT_POLL,
    NEXT_EVENT,
    NEXT_CALL,
};

/* What the running step may still do when a poll comes to a new access. */
enum sim_allowance {
    ALLOW_NONE,
    ALLOW_ACCESS, /* one access that does not move in pieces, if it can be made now */
    ALLOW_PIECE,  /* piece w->piece of the read or write the agent stands before */
};

#define SIM_MAX_FILL 256u /* octets that a fill writes at once */

static inline uint32_t words_of(uint32_t octets)
{
    return (octets + 7) / 8;
}

static inline uint64_t *results_of(const struct sim_agent *agent)
{
    return agent->cpu->more;
}

static inline uint32_t buffer_capacity(const struct sim_agent *agent)
{
    return agent->memory == SIM_MEMORY_SC ? 0 : agent->world->scenario->machine.store_buffer;
}

/* Events wait in the buffer too; they take no room from stores. */
static inline uint32_t buffer_entries(const struct sim_agent *agent)
{
    return 2 * buffer_capacity(agent);
}

static inline struct sim_buffered *buffer_of(const struct sim_agent *agent)
{
    return (struct sim_buffered *)(results_of(agent) + agent->program->max_accesses);
}

static inline void *private_of(const struct sim_agent *agent)
{
    return buffer_of(agent) + buffer_entries(agent);
}

static inline char *path_of(const struct sim_agent *agent)
{
    return (char *)private_of(agent) + words_of(agent->program->private_size) * 8;
}

/* Private state and path: what a poll that is left is rolled back by. */
static inline uint32_t rolled_octets(const struct sim_program *program)
{
    return words_of(program->private_size) * 8 + words_of(program->path_size) * 8;
}

static inline struct sim_next *next_of(const struct sim_agent *agent)
{
    return (struct sim_next *)((char *)private_of(agent) + rolled_octets(agent->program));
}

static inline char *place_of(const struct sim_agent *agent, const struct sim_buffered *entry)
{
    return agent->world->arena.base + entry->place;
}

static inline bool overlaps(const struct sim_agent *agent, const struct sim_buffered *entry,
                            const char *at, uint32_t octets)
{
    const char *place = place_of(agent, entry);
    return entry->octets != 0 && place < at + octets && at < place + entry->octets;
}

static inline uint64_t value_at(const char *at, uint32_t octets)
{
    uint64_t value = 0;
    memcpy(&value, at, octets);
    return value;
}

/* True with the result when this access was made in an earlier step. */
static inline bool repeated(struct sim_agent *agent, uint64_t *result)
{
    struct sim_world *w = agent->world;
    if (w->cursor >= agent->cpu->accesses)
        return false;
    *result = results_of(agent)[w->cursor++];
    return true;
}

/* The access stood before is being made: the next one to come to is another. */
static inline void leave_behind(struct sim_agent *agent)
{
    *next_of(agent) = (struct sim_next){.op = NEXT_NONE};
}

static inline void cpu_observe(const struct sim_agent *agent, struct sim_access access)
{
    struct sim_world *w = agent->world;
    if (__builtin_expect(w->observe != NULL, 0)) {
        access.agent = agent->index;
        access.argument = agent->cpu->argument;
        w->observe(w->observe_context, &access);
    }
}

/* ---- cpu_buffer.c ------------------------------------------------------------------------ */

/* Stores and doorbells in it. */
uint32_t cpu_buffered_stores(const struct sim_agent *agent);
void cpu_buffer_push(struct sim_agent *agent, struct sim_buffered entry);
bool cpu_may_drain(const struct sim_agent *agent, uint32_t index);
void cpu_drain(struct sim_agent *agent, uint32_t index);

/* ---- cpu_access.c ------------------------------------------------------------------------ */

/* The poll is left here; what it does next is another step's. */
__attribute__((noreturn)) void cpu_stop_before(struct sim_agent *agent, enum next_op op,
                                               const char *at, uint32_t octets);
/* Can this access be made in the present state, or does the agent's own buffer stand before it? */
bool cpu_may_make(const struct sim_agent *agent, enum next_op op, const char *at, uint32_t octets);
/*
 * Returns when the running step makes this access, which `at_once` makes private; else leaves the
 * agent standing before it.
 */
void cpu_take_turn(struct sim_agent *agent, enum next_op op, const char *at, uint32_t octets,
                   bool at_once);
/* Is there room for `count` results more? Else the poll ends here (bounded-poll). */
void cpu_need_results(struct sim_agent *agent, uint32_t count);
void cpu_log(struct sim_agent *agent, const uint64_t *values, uint32_t count);
/* What was just logged, `count` results, was no step and changed nothing. */
void cpu_was_quiet(struct sim_agent *agent, uint32_t count);

/* Granted, and the access the agent was left before? */
void cpu_check_transfer(struct sim_agent *agent, enum next_op op, const char *at, uint32_t octets);

extern const struct mem_ops cpu_mem_ops;

/* ---- cpu_rdma.c -------------------------------------------------------------------------- */

/* A doorbell reaches the RNIC. */
void cpu_doorbell(struct sim_agent *agent, const struct sim_buffered *entry);

/* ---- cpu_pieces.c ------------------------------------------------------------------------ */

void cpu_read_pieces(struct sim_agent *agent, void *to, const void *at, uint32_t octets);
void cpu_write_pieces(struct sim_agent *agent, void *at, const void *from, uint32_t octets);
/* Those of the read or write in progress that may be moved next. */
uint32_t cpu_enabled_pieces(const struct sim_agent *agent, uint32_t octets, struct sim_step *out);

#endif
