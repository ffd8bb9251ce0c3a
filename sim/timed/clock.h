/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Simulated time: events in the order of (time, sequence). Time is in whole nanoseconds from 0; the
 * sequence is taken when an event is planned, or earlier, so that the order of events at the same
 * time never depends on who finds out first (architecture.md, SimGrid's ties).
 *
 * What is planned cannot be taken back: who may not want it any more looks when it comes.
 */
#ifndef KBTP_SIM_TIMED_CLOCK_H
#define KBTP_SIM_TIMED_CLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SIM_CLOCK_NEVER UINT64_MAX

/* `context` and `number` are the planner's. */
typedef void sim_clock_fn(void *context, uint64_t number);

/* When an event happens among the others: the sequence, and below it the place of what happens. */
struct sim_clock_key {
    uint64_t at_ns;
    uint64_t order;
};

struct sim_clock_event {
    sim_clock_fn *happens;
    void *context;
    uint64_t number;
    uint64_t next_free; /* place + 1; 0: none */
};

/* All zero at first, but for end_ns and stop. */
struct sim_clock {
    uint64_t now_ns;
    uint64_t sequence;              /* the next one */
    uint64_t current;               /* that of the event which happens now, or happened last */
    uint64_t happened;              /* events, so far */
    uint64_t end_ns;                /* nothing later happens; SIM_CLOCK_NEVER: no bound */
    struct sim_clock_key *keys;     /* a heap */
    struct sim_clock_event *events; /* by place */
    uint64_t first_free;            /* place + 1; 0: none */
    size_t count, room, most;       /* most: that were planned at once */
    bool stopped;                   /* nothing more happens; ... */
    const volatile int *stop;       /* ... the same when it is not 0, from outside; NULL: nobody */
    bool no_memory;                 /* an event could not be planned: the run is void, and stops */
};

void sim_clock_free(struct sim_clock *clock);

/* The place of an event among those of the same time, if it is planned later. */
static inline uint64_t sim_clock_sequence(struct sim_clock *clock)
{
    return clock->sequence++;
}

/* Plans an event, not before now_ns; of 2^40 sequences, and of 2^24 at once: more is no memory.
 * What `context` points to is fetched into the caches shortly before, and `number`, if it is an
 * address, too. Without memory nothing is planned, and no_memory is set. */
void sim_clock_plan(struct sim_clock *clock, uint64_t at_ns, uint64_t sequence,
                    sim_clock_fn *happens, void *context, uint64_t number);

static inline void sim_clock_at(struct sim_clock *clock, uint64_t at_ns, sim_clock_fn *happens,
                                void *context, uint64_t number)
{
    sim_clock_plan(clock, at_ns, sim_clock_sequence(clock), happens, context, number);
}

/* When the next event happens; SIM_CLOCK_NEVER: there is none, or the run has ended. */
uint64_t sim_clock_next(const struct sim_clock *clock);
/* It happens. */
void sim_clock_step(struct sim_clock *clock);

#endif
