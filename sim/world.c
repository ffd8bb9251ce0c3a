/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/world.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "sim/rnic_build.h"

const struct sim_checker sim_always[] = {
    {.property = "stuck",
     .says = "whenever nothing can change any more, nothing that was begun is left undone"},
    {.property = "granted-memory",
     .says = "nothing outside the memory an agent was granted is read or written"},
    {.property = "bounded-poll", .says = "a poll comes to its end within its bound of accesses"},
    {.property = "pure-poll",
     .says = "a poll that is run again comes again to the access it was left before"},
    {.property = "buffer-in-flight",
     .says =
         "from its posting until its completion is polled, a CPU leaves a buffer to the device"},
};
const uint32_t sim_always_count = sizeof sim_always / sizeof *sim_always;

bool sim_world_step(struct sim_world *w, const struct sim_step *step)
{
    struct sim_agent *agent = &w->agents[step->agent];
    sim_arena_begin(&w->arena);
    w->effect = false;
    agent->ops->run(agent, step);
    if (w->rnics)
        rnic_settle(w);
    sim_arena_commit(&w->arena);
#ifdef SIM_REHASH
    const char *untouched = sim_arena_check(&w->arena);
    if (untouched)
        sim_violate(w, "declared-writes", "a step of %s changed %s without declaring it",
                    agent->name, untouched);
#endif
    return !w->violation.property && !w->arena.failed;
}

uint32_t sim_world_enabled(const struct sim_world *w, struct sim_step out[SIM_MAX_STEPS])
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < w->agents_count; i++)
        count += w->agents[i].ops->enabled(&w->agents[i], out + count);
    assert(count <= SIM_MAX_STEPS);
    return count;
}

bool sim_world_is_enabled(const struct sim_world *w, const struct sim_step *step)
{
    if (step->agent >= w->agents_count)
        return false;
    struct sim_step steps[SIM_MAX_STEPS];
    uint32_t count = w->agents[step->agent].ops->enabled(&w->agents[step->agent], steps);
    for (uint32_t i = 0; i < count; i++)
        if (memcmp(&steps[i], step, sizeof *step) == 0)
            return true;
    return false;
}

bool sim_next_of_its_own(const struct sim_agent *agent, struct sim_step *step)
{
    struct sim_step steps[SIM_MAX_STEPS];
    uint32_t count = agent->ops->enabled(agent, steps);
    for (uint32_t i = 0; i < count; i++)
        if (!sim_step_is_environment(&steps[i])) {
            *step = steps[i];
            return true;
        }
    return false;
}

/* Does this step, and what its agent does up to the end of its poll, change anything? */
static bool step_has_effect(struct sim_world *w, struct sim_step step)
{
    struct sim_agent *agent = &w->agents[step.agent];
    for (;;) {
        if (!sim_world_step(w, &step) || w->effect)
            return true;
        if (agent->ops->at_rest(agent) || !sim_next_of_its_own(agent, &step))
            return false;
    }
}

bool sim_world_quiescent(struct sim_world *w)
{
    for (uint32_t i = 0; i < w->agents_count; i++)
        if (!w->agents[i].ops->at_rest(&w->agents[i]))
            return false;
    struct sim_step steps[SIM_MAX_STEPS];
    uint32_t count = sim_world_enabled(w, steps);
    size_t mark = sim_arena_mark(&w->arena);
    bool counted = w->count_reached, quiescent = true;
    w->count_reached = false;
    void (*observer)(void *, const struct sim_access *) = w->observe;
    w->observe = NULL;
    for (uint32_t i = 0; i < count && quiescent; i++) {
        if (sim_step_is_environment(&steps[i]))
            continue;
        if (step_has_effect(w, steps[i]))
            quiescent = false;
        sim_arena_undo(&w->arena, mark);
        w->violation.property = NULL;
    }
    w->count_reached = counted;
    w->observe = observer;
    return quiescent;
}

void sim_world_judge_quiescent(struct sim_world *w)
{
    char why[160];
    if (w->ops->open_requests(w, why, sizeof why)) {
        sim_violate(w, "stuck", "nothing can change any more, but %s", why);
        return;
    }
    for (uint32_t i = 0; i < w->checkers_count; i++)
        if (w->checkers[i]->quiescent)
            w->checkers[i]->quiescent(w);
}

void sim_violate(struct sim_world *w, const char *property, const char *format, ...)
{
    if (w->violation.property)
        return; /* the first one counts */
    w->violation.property = property;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(w->violation.text, sizeof w->violation.text, format, arguments);
    va_end(arguments);
}

void sim_write(struct sim_world *w, uint32_t agent, void *at, const void *octets, uint32_t count)
{
    char old[8];
    sim_touch(&w->arena, sim_segment_of(&w->arena, at));
    sim_footprint_note(w, at, count, true);
    w->effect = true;
    memcpy(old, at, count);
    memcpy(at, octets, count);
    struct sim_write write = {.agent = agent, .octets = count, .at = at, .old = old};
    for (uint32_t i = 0; i < w->checkers_count; i++)
        if (w->checkers[i]->wrote)
            w->checkers[i]->wrote(w, &write);
    w->ops->wrote(w, &write);
}

void sim_event(struct sim_world *w, uint32_t agent, uint32_t event, uint64_t value)
{
    for (uint32_t i = 0; i < w->checkers_count; i++)
        if (w->checkers[i]->event)
            w->checkers[i]->event(w, agent, event, value);
}

void sim_ghost_write(struct sim_world *w, const void *at, uint32_t octets)
{
    sim_touch(&w->arena, sim_segment_of(&w->arena, at));
    sim_footprint_note(w, at, octets, true);
    w->effect = true;
}

void sim_footprint_add(struct sim_world *w, const void *at, uint32_t octets, bool writes)
{
    struct sim_footprint *footprint = w->footprint;
    if (footprint->count == SIM_MAX_FOOTPRINT) {
        footprint->overflowed = true;
        return;
    }
    footprint->ranges[footprint->count++] =
        (struct sim_range){.at = at, .octets = octets, .writes = writes};
}

static bool ranges_conflict(const struct sim_range *a, const struct sim_range *b)
{
    return (a->writes || b->writes) && a->at < b->at + b->octets && b->at < a->at + a->octets;
}

bool sim_footprints_disjoint(const struct sim_footprint *a, const struct sim_footprint *b)
{
    if (a->overflowed || b->overflowed)
        return false;
    for (uint32_t i = 0; i < a->count; i++)
        for (uint32_t j = 0; j < b->count; j++)
            if (ranges_conflict(&a->ranges[i], &b->ranges[j]))
                return false;
    return true;
}
