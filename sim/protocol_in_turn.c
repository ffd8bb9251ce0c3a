/* SPDX-License-Identifier: BSD-3-Clause */
/* A protocol world in which requests are made in turn. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "sim/in_turn.h"
#include "sim/protocol_agents.h"

struct simulated {
    struct sim_world *w;
    uint32_t called; /* 1 << initiator: those that may say HELLO */
};

static int violated(const struct sim_world *w)
{
    return w->violation.property ? -EPROTO : w->arena.failed ? -ENOMEM : 0;
}

static int rest(void *world)
{
    const struct simulated *s = world;
    int failed = protocol_settle(s->w, s->called);
    return failed ? failed : violated(s->w);
}

/* The simulated initiator connects by itself. */
static int connect_one(void *world, uint32_t initiator)
{
    ((struct simulated *)world)->called |= 1u << initiator;
    return 0;
}

static bool find_choice(const struct sim_agent *agent, uint32_t choice, struct sim_step *step)
{
    struct sim_step steps[SIM_MAX_STEPS];
    uint32_t count = agent->ops->enabled(agent, steps);
    for (uint32_t i = 0; i < count; i++)
        if (steps[i].kind == SIM_STEP_CHOOSE && steps[i].arg == choice) {
            *step = steps[i];
            return true;
        }
    return false;
}

static int submit(void *world, uint32_t initiator, uint32_t request)
{
    struct sim_world *w = ((struct simulated *)world)->w;
    struct sim_agent *agent = &w->agents[sim_protocol_of(w)->first_initiator + initiator];
    struct sim_step step;
    if (!find_choice(agent, CHOICE(CHOICE_SUBMIT, request), &step))
        return -ENOTCONN;
    do
        (void)sim_world_step(w, &step);
    while (!violated(w) && !agent->ops->at_rest(agent) && sim_next_of_its_own(agent, &step));
    return violated(w);
}

static struct kbtp_initiator *library_of(const struct simulated *s, uint32_t initiator)
{
    return protocol_initiator_of(s->w, initiator)->library;
}

static uint16_t refused(void *world, uint32_t initiator)
{
    const struct simulated *s = world;
    return protocol_initiator_of(s->w, initiator)->refused
               ? (uint16_t)kbtp_initiator_why(library_of(s, initiator))
               : KBTP_STATUS_OK;
}

/* Or was it so when this one, who connects by himself, did so? */
static bool is_over(void *world, uint32_t initiator)
{
    const struct simulated *s = world;
    return kbtp_initiator_state(library_of(s, initiator)) != KBTP_INITIATOR_DOWN ||
           protocol_is_over(s->w, sim_protocol_of(s->w)->first_initiator + initiator);
}

static void told(void *context, uint32_t initiator, uint32_t request,
                 const struct kbtp_outcome *outcome, const void *buffer)
{
    sim_in_turn_told(context, initiator, request, outcome, buffer);
}

static const struct sim_in_turn_ops ops = {
    .connect = connect_one,
    .submit = submit,
    .rest = rest,
    .refused = refused,
    .is_over = is_over,
};

int sim_in_turn_simulate(struct sim_in_turn *t, char *why, size_t size)
{
    const struct sim_stepping stepping = {.private_steps = true};
    char unfinished[24] = "";
    struct simulated s = {.w = sim_world_new(t->scenario, &stepping, why, size)};
    if (!s.w)
        return -ENOMEM;
    t->ops = &ops;
    t->world = &s;
    protocol_world_of(s.w)->listener = (struct protocol_listener){told, t};
    int failed = sim_in_turn_run(t, unfinished, sizeof unfinished);
    protocol_world_of(s.w)->listener.told = NULL;
    if (!failed)
        sim_world_judge_quiescent(s.w);
    if (!failed)
        failed = violated(s.w);
    if (failed == -EPROTO)
        (void)snprintf(why, size, "violation of %s: %s", s.w->violation.property,
                       s.w->violation.text);
    else if (failed == -EBUSY)
        (void)snprintf(why, size, "%s has no outcome, and nothing can change any more", unfinished);
    else if (failed)
        (void)snprintf(why, size, "the simulated world: %s", strerror(-failed));
    sim_world_free(s.w);
    return failed == -EBUSY ? -EPROTO : failed;
}
