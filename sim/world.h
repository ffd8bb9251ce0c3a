/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A world of steps: everything that can happen is a step of some agent. Enabled steps are derived
 * from state, never stored; who picks the next one makes the difference between exploring, random
 * walks and replay.
 */
#ifndef KBTP_SIM_WORLD_H
#define KBTP_SIM_WORLD_H

#include <setjmp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net/mem.h"
#include "sim/arena.h"
#include "sim/scenario.h"

#define SIM_MAX_AGENTS 16u
#define SIM_MAX_STEPS 1280u /* enabled in one state: ring_world.c shows that it suffices */
#define SIM_MAX_CHECKERS 16u
#define SIM_MAX_REACH 16u
#define SIM_MAX_FOOTPRINT 32u
#define SIM_MAX_PRIVATE 4096u /* octets of an agent's private state */

enum sim_step_kind {
    SIM_STEP_CHOOSE = 1, /* begin what `arg` names, and make the first access */
    SIM_STEP_ACCESS,     /* make the one visible access the agent stands before */
    SIM_STEP_PIECE,      /* move piece `piece` of the read or write the agent stands before */
    SIM_STEP_DRAIN,      /* entry `queue` of the store buffer becomes visible */
    SIM_STEP_FAULT,      /* agent `queue` dies */
};

/* A trace is a list of these. */
struct sim_step {
    uint8_t kind; /* enum sim_step_kind */
    uint8_t agent;
    uint8_t queue;
    uint8_t piece;
    uint32_t arg;
};

/* What a step did to memory, for traces, charts and checkers. */
enum sim_access_kind {
    SIM_LOAD,
    SIM_STORE,  /* into the own store buffer, or at once when there is none */
    SIM_DRAIN,  /* a buffered store becomes visible */
    SIM_ATOMIC, /* a FetchAdd or compare-and-swap */
    SIM_READ,   /* a piece of a read */
    SIM_WRITE,  /* a piece of a write */
    SIM_CHOSEN, /* value: the argument */
    SIM_RESULT, /* a poll ended; value: its result */
    SIM_DIED,
};

/* Reached in any kind of world; the kind's own follow. */
enum { SIM_REACH_LOAD_BEFORE_STORE, SIM_REACH_OF_KIND };

struct sim_access {
    enum sim_access_kind kind;
    uint32_t agent;
    const void *at;
    uint32_t octets;
    uint32_t argument; /* of the poll that makes the access */
    bool buffered;     /* STORE: not visible yet */
    uint64_t value;    /* loaded, stored, or what an atomic left; octets as in memory */
    uint64_t old;      /* ATOMIC: from before */
};

/* A write that becomes visible now. `at` already holds the new octets. */
struct sim_write {
    uint32_t agent;
    uint32_t octets;
    const char *at;
    const char *old; /* the octets from before */
};

struct sim_world;

/* A property, judged from memory, the wire and ghost records; calls nothing in ref/. */
struct sim_checker {
    const char *property;
    const char *says; /* one sentence: what holds while it is silent */
    void (*wrote)(struct sim_world *w, const struct sim_write *write);
    void (*event)(struct sim_world *w, uint32_t agent, uint32_t event, uint64_t value);
    void (*quiescent)(struct sim_world *w);
};

/* Judged in every kind of world, by the world itself; without functions. */
extern const struct sim_checker sim_always[];
extern const uint32_t sim_always_count;

struct sim_agent {
    struct mem mem; /* first: the agent is found from the handle */
    const struct sim_agent_ops *ops;
    struct sim_world *world;
    const char *name;
    const struct sim_program *program;
    uint32_t index;
    enum sim_agent_kind kind;
    enum sim_memory memory; /* SC for an RNIC: what it writes is visible at once */
    struct sim_cpu *cpu;    /* in the arena */
    struct sim_segment *segment;
};

/*
 * What kinds of agents do. Steps of kind FAULT are the environment's: a world is quiescent whether
 * or not one is enabled.
 */
struct sim_agent_ops {
    /* Appends the enabled steps to out; returns how many (never above SIM_MAX_STEPS in sum). */
    uint32_t (*enabled)(const struct sim_agent *agent, struct sim_step *out);
    void (*run)(struct sim_agent *agent, const struct sim_step *step);
    /* Is the agent between two polls, with nothing read, buffered or half moved? */
    bool (*at_rest)(const struct sim_agent *agent);
};

struct sim_range {
    const char *at;
    uint32_t octets;
    bool writes;
};

/* Ranges touched by one step, recorded while `footprint` of the world is set. */
struct sim_footprint {
    uint32_t count;
    bool overflowed; /* too many: depends on everything */
    struct sim_range ranges[SIM_MAX_FOOTPRINT];
};

struct sim_violation {
    const char *property; /* NULL while there is none */
    char text[240];
};

/* Options that change how the world steps, not what it means. */
struct sim_stepping {
    bool private_steps; /* what no other agent can notice happens at once */
    bool merged_drains; /* an atomic drains the store buffer within its own step */
};

struct sim_world_ops {
    /* A write became visible: bring ghost records up to date (after the checkers looked). */
    void (*wrote)(struct sim_world *w, const struct sim_write *write);
    /* A published event of a program took effect (sim_cpu_publish). */
    void (*published)(struct sim_world *w, uint32_t agent, uint32_t event, uint64_t value);
    /* Are requests open? Then `why` (size octets) says which. Asked in quiescent states. */
    bool (*open_requests)(struct sim_world *w, char *why, size_t size);
    /* Words for an access, for one trace line. */
    void (*describe)(struct sim_world *w, const struct sim_access *access, char *out, size_t size);
};

struct sim_world {
    struct sim_arena arena;
    const struct sim_world_ops *ops;
    const struct sim_scenario *scenario;
    void *kind; /* of the kind of world, not in the arena, constant after set-up */
    struct sim_stepping stepping;

    struct sim_agent agents[SIM_MAX_AGENTS];
    uint32_t agents_count;
    const struct sim_checker *checkers[SIM_MAX_CHECKERS];
    uint32_t checkers_count;

    const char *const *reach_names; /* of this kind of world */
    uint32_t reach_count;
    uint64_t reached[SIM_MAX_REACH]; /* by how many transitions */
    bool count_reached;

    /* Of the running or last step. */
    /*
     * It changed memory, ghost records, a store buffer, or an agent's private state at the end of a
     * poll: more than what an agent has read so far. Where no step has an effect, all is quiet.
     */
    bool effect;
    struct sim_violation violation;
    struct sim_footprint *footprint;                                 /* record here, when set */
    void (*observe)(void *context, const struct sim_access *access); /* tell here, when set */
    void *observe_context;

    /* The poll being re-executed. */
    jmp_buf stop;
    uint32_t cursor;    /* accesses repeated so far */
    uint32_t allowance; /* enum sim_allowance, in cpu.c */
    uint32_t piece;
    uint32_t poll_accesses; /* results of the poll that ended last */
    /* The agent's private state at the start of the poll. */
    _Alignas(8) char rollback[SIM_MAX_PRIVATE];
};

/* Runs one step, which must be enabled. False when a violation was found or memory ran out. */
bool sim_world_step(struct sim_world *w, const struct sim_step *step);
/* All enabled steps, in a fixed order. */
uint32_t sim_world_enabled(const struct sim_world *w, struct sim_step out[SIM_MAX_STEPS]);
bool sim_world_is_enabled(const struct sim_world *w, const struct sim_step *step);
/*
 * Does no step change anything but what has been read? Tries each enabled step and runs its agent
 * on to the end of its poll; leaves the state as it was. Then sim_world_judge_quiescent() looks for
 * open requests (`stuck`) and asks the checkers.
 */
bool sim_world_quiescent(struct sim_world *w);
void sim_world_judge_quiescent(struct sim_world *w);

/* For agents, kinds of worlds and checkers. */
void sim_violate(struct sim_world *w, const char *property, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* A write of at most 8 octets becomes visible. */
void sim_write(struct sim_world *w, uint32_t agent, void *at, const void *octets, uint32_t count);
/* Something happened to ghost records: checkers are told. */
void sim_event(struct sim_world *w, uint32_t agent, uint32_t event, uint64_t value);
/* Before the first write to ghost records at `at`. */
void sim_ghost_write(struct sim_world *w, const void *at, uint32_t octets);

void sim_footprint_add(struct sim_world *w, const void *at, uint32_t octets, bool writes);
bool sim_footprints_disjoint(const struct sim_footprint *a, const struct sim_footprint *b);

static inline void sim_reach(struct sim_world *w, uint32_t what)
{
    if (w->count_reached)
        w->reached[what]++;
}

static inline void sim_footprint_note(struct sim_world *w, const void *at, uint32_t octets,
                                      bool writes)
{
    if (__builtin_expect(w->footprint != NULL, 0))
        sim_footprint_add(w, at, octets, writes);
}

/* A world of the scenario's kind; NULL with one line in `error` when it cannot be built. */
struct sim_world *sim_world_new(const struct sim_scenario *scenario,
                                const struct sim_stepping *stepping, char *error, size_t size);
void sim_world_free(struct sim_world *w);

#endif
