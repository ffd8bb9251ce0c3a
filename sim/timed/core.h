/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A CPU that polls: what it does takes the time that its handles' calls and sim_nic_spend() add up.
 *
 * While it finds nothing it looks again and again, each look poll_ns after the one before: what
 * comes is found at the next look. Looks that find nothing are not simulated, and count as idle.
 */
#ifndef KBTP_SIM_TIMED_CORE_H
#define KBTP_SIM_TIMED_CORE_H

#include "sim/timed/nic.h"

struct sim_core {
    struct sim_clock *clock;
    /* What the CPU does from now on; returns the picoseconds that it takes. *again: it is to be run
     * again though nothing may come: what it waits for has no event. */
    uint64_t (*run)(void *context, bool *again);
    /* Is something there to be found? */
    bool (*has_news)(const void *context);
    void *context;
    const struct sim_costs *costs;
    uint64_t free_ps;                    /* the end of what it did last */
    uint64_t stall_from_ns, stall_to_ns; /* it does nothing in between */
    uint64_t busy_ps;                    /* but for looks that found nothing */
    bool planned;
    /* For pictures; may be NULL. */
    void (*watch)(void *watcher, const struct sim_core *core, uint64_t begin_ps, uint64_t end_ps);
    void *watcher;
};

/* Zero octets on cache lines of their own, as ref/ wants what CPUs share. They take memory when
 * they are touched: most of what is set up for the worst case never is. NULL: there are none. */
void *sim_core_memory(size_t octets);
void sim_core_memory_free(void *memory); /* NULL: nothing */
/* Something has come. */
void sim_core_wake(struct sim_core *core);
/* It begins at this time, if nothing comes before. */
void sim_core_begin(struct sim_core *core, uint64_t at_ns);

#endif
