/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Exploring a world: every interleaving (depth first, each state once), random walks, walks by PCT
 * priorities (few well-placed preemptions), or walks in which each step takes its time. All find
 * the first violation and the steps to it.
 */
#ifndef KBTP_SIM_EXPLORE_H
#define KBTP_SIM_EXPLORE_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sim/world.h"

enum sim_mode { SIM_EXHAUSTIVE, SIM_RANDOM, SIM_PCT, SIM_TIMED };

enum sim_result {
    SIM_OK,         /* complete, nothing wrong, everything reached */
    SIM_VIOLATION,  /* a property does not hold: see violation and trace */
    SIM_VACUOUS,    /* complete, but something of must_reach was never reached */
    SIM_INCOMPLETE, /* stopped at a bound */
    SIM_NO_MEMORY,  /* the machine had no memory for what the bounds allow */
};

enum sim_bound {
    SIM_BOUND_NONE,
    SIM_BOUND_STATES,
    SIM_BOUND_SECONDS,
    SIM_BOUND_MEMORY,
    SIM_BOUND_STOP
};

struct sim_progress {
    uint64_t states, transitions, runs;
    uint32_t depth, depth_max;
    size_t memory_octets;
    double seconds;
};

struct sim_explore {
    enum sim_mode mode;
    uint64_t seed;      /* of walks */
    uint64_t runs;      /* walks */
    uint32_t pct_depth; /* bug depth d: d - 1 priority changes a walk */
    /* Of SIM_TIMED (sim/timed/picker.h), which has private steps too (struct sim_stepping). */
    const struct sim_costs *costs;
    double spread;
    uint64_t max_states; /* 0: no bound, here and below */
    double max_seconds;
    size_t max_memory_octets;
    bool exact;
    bool check_commute;                /* see sim/commute.h; exhaustive only */
    const volatile sig_atomic_t *stop; /* set from outside: end with SIM_BOUND_STOP; may be NULL */
    /* Called about twice a second; may be NULL. */
    void (*progress)(void *context, const struct sim_progress *progress);
    void *progress_context;
};

struct sim_report {
    enum sim_result result;
    enum sim_bound bound;
    uint64_t states;       /* different ones */
    uint64_t transitions;  /* steps made */
    uint64_t runs;         /* walks made */
    uint64_t simulated_ns; /* of SIM_TIMED, all walks together */
    uint64_t quiescent;    /* different quiescent states (exhaustive), quiescent ends (walks) */
    uint64_t quiescent_digest;
    uint64_t commuted; /* pairs of steps that were shown to commute */
    uint32_t depth_max;
    double seconds;
    size_t memory_octets; /* at most, of states, path and undo log */
    double collision;     /* probability that two states were taken for one */
    uint64_t digest;      /* of everything that was visited; equal runs give equal digests */
    uint64_t reached[SIM_MAX_REACH];
    struct sim_violation violation;
    struct sim_step *trace; /* to the violation; owned by the report */
    uint32_t trace_steps;
};

/*
 * Explores `w` from its present state, which is its initial one, and leaves it there. Returns 0 or
 * -ENOMEM when not even a beginning could be made. Free the report with sim_report_free().
 */
int sim_explore(struct sim_world *w, const struct sim_explore *options, struct sim_report *report);
void sim_report_free(struct sim_report *report);

/* Shared by the modes (explore.c, walk.c). */
struct sim_search {
    struct sim_world *w;
    const struct sim_explore *options;
    struct sim_report *report;
    struct sim_visited *visited;
    size_t path_octets; /* of frames and steps */
    double started, next_progress;
    uint64_t next_look;
    uint32_t depth;
};

/* Looks at bounds and tells progress, now and then; false when the search must end. */
bool sim_search_goes_on(struct sim_search *search);
/* Ends the search after sim_visited_add() returned an error. */
void sim_search_full(struct sim_search *search, int failed);
/* Copies the violation; the trace is the report's to fill. */
void sim_search_violation(struct sim_search *search);
/* Did every must_reach name happen? */
bool sim_all_reached(const struct sim_world *w);
/* The walks of SIM_RANDOM and SIM_PCT. */
int sim_walk(struct sim_search *search);

#endif
