/* SPDX-License-Identifier: BSD-3-Clause */
/* A protocol world comes to rest by itself, in one fixed order. */
#include <errno.h>

#include "sim/protocol_agents.h"

#define MAX_ROUNDS 10000u

/* The first step of an agent that is neither a fault nor a request of a program. Who comes for a
 * session of another one connects, and says no more until it is called. */
static bool next_step(const struct sim_world *w, uint32_t agent, uint32_t called,
                      struct sim_step *step)
{
    const struct sim_protocol_world *p = sim_protocol_of(w);
    struct sim_step steps[SIM_MAX_STEPS];
    uint32_t count = w->agents[agent].ops->enabled(&w->agents[agent], steps);
    bool waits =
        agent >= p->first_initiator + p->sessions && !(called >> (agent - p->first_initiator) & 1);
    for (uint32_t i = 0; i < count; i++) {
        bool submits = steps[i].kind == SIM_STEP_CHOOSE && steps[i].arg >> 16 == CHOICE_SUBMIT;
        bool second =
            waits && steps[i].kind == SIM_STEP_CHOOSE && steps[i].arg >> 16 != CHOICE_CONNECT;
        if (submits || second || sim_step_is_environment(&steps[i]))
            continue;
        *step = steps[i];
        return true;
    }
    return false;
}

/* Does no step change anything? Every agent has looked once more, and is between two polls. */
static bool round_of_steps(struct sim_world *w, uint32_t called)
{
    bool effect = false;
    for (uint32_t i = 0; i < w->agents_count; i++) {
        struct sim_step step;
        do {
            if (!next_step(w, i, called, &step))
                break;
            sim_world_step(w, &step);
            effect |= w->effect;
        } while (!w->agents[i].ops->at_rest(&w->agents[i]) && !w->violation.property);
    }
    return effect;
}

int protocol_settle(struct sim_world *w, uint32_t called)
{
    for (uint32_t round = 0; round < MAX_ROUNDS; round++)
        if (!round_of_steps(w, called) || w->violation.property)
            return 0;
    return -ETIMEDOUT;
}
