/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Time in worlds of steps: a cost model gives each step a duration, and the next one is that which
 * is due first. For walks (sim/explore.h, SIM_TIMED); what each step costs is in picker.c.
 *
 * A step is due so long after it became possible, or after what it needs is free: its CPU, a side
 * of its RNIC, PCIe, the link. Steps that are due at the same time come in the order in which they
 * became possible. Durations vary by chance, by `spread` times themselves for one in two and much
 * more for a few, and a CPU is interrupted now and then, so that runs with other seeds are other
 * races; with 0 they are the model's.
 *
 * An RNIC makes one message of an end at a time, step by step, but is said to work at the ones
 * behind it meanwhile, as RNICs do: what a message waits for besides its turn begins when its work
 * request is known. So it takes as long as a message at a time does (sim/timed/nic.h).
 *
 * Timers are due when they expire, and a run in which nothing else happens any more goes on until
 * some of them have. Losses and stops of the environment come after random times, 5 to 160 us on
 * average, another average in each run. A CPU that has looked in vain looks again when something
 * has happened: looks in between would find nothing.
 */
#ifndef KBTP_SIM_TIMED_PICKER_H
#define KBTP_SIM_TIMED_PICKER_H

#include "sim/timed/costs.h"
#include "sim/world.h"

struct sim_picker;

/* NULL: no memory. World and costs outlast it. */
struct sim_picker *sim_picker_new(const struct sim_world *w, const struct sim_costs *costs,
                                  double spread);
void sim_picker_free(struct sim_picker *picker);

/* A run begins, from the initial state, at time 0. */
void sim_picker_begin(struct sim_picker *picker, uint64_t seed);
/*
 * Nothing happens any more: is the run to go on until one of the timers among these steps expires?
 * Not for ever, as a timer may be set again and again.
 */
bool sim_picker_goes_on(struct sim_picker *picker, const struct sim_step *steps, uint32_t count);
/* Which of the enabled steps (1 or more) is next: its index. It is to be run. */
uint32_t sim_picker_next(struct sim_picker *picker, const struct sim_step *steps, uint32_t count);
/* It has been run. */
void sim_picker_after(struct sim_picker *picker, const struct sim_step *step);
uint64_t sim_picker_now_ns(const struct sim_picker *picker);
/* What happened in the last step, from the world's observer. */
void sim_picker_observe(struct sim_picker *picker, const struct sim_access *access);

#endif
