/* SPDX-License-Identifier: BSD-3-Clause */
/* Running recorded steps again, and making the list that fails shorter. */
#ifndef KBTP_SIM_REPLAY_H
#define KBTP_SIM_REPLAY_H

#include <signal.h>

#include "sim/world.h"

enum sim_replay_end {
    SIM_REPLAY_VIOLATION,   /* w->violation says which */
    SIM_REPLAY_RAN,         /* all steps were made, nothing is wrong */
    SIM_REPLAY_NOT_ENABLED, /* step `steps_run` (from 0) cannot be made: another world or program */
    SIM_REPLAY_NO_MEMORY,
};

struct sim_replay {
    enum sim_replay_end end;
    uint32_t steps_run;
    uint64_t digest; /* of every state on the way; equal runs give equal digests */
};

/*
 * Makes the steps one after the other, from the present state. If they lead to a quiescent state,
 * that is judged too. Leaves the world where the steps ended; the caller undoes.
 */
void sim_replay(struct sim_world *w, const struct sim_step *steps, uint32_t count,
                struct sim_replay *replay);

/*
 * Delta debugging: removes steps as long as `property` still fails from the initial state, then
 * reorders them so that fewer switches between agents remain. steps[0..*count) is shortened in
 * place; the world is left as it was. Ends early, with what was reached by then, when *stop becomes
 * set (it may be NULL) and after 30 million steps made. Returns 0, or -ENOMEM with the list as it
 * was.
 */
int sim_shrink(struct sim_world *w, const char *property, struct sim_step *steps, uint32_t *count,
               const volatile sig_atomic_t *stop);

#endif
