/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sim/replay.h"

/* What shrinking may cost: long lists stay longer than they need be, but come to an end. */
#define MAX_STEPS_MADE UINT64_C(30000000)

/* Steps of a poll that finds nothing: there is room for them, though they are taken back. */
#define LONGEST_LOOK 512u

/* The shortest failing list so far, and the one that is tried. */
struct shrink {
    struct sim_world *w;
    const char *property;
    struct sim_step *best, *wanted, *made, *kept;
    uint32_t best_count, made_count, capacity;
    uint32_t limit; /* more steps than this are of no use */
    uint64_t steps_made;
    const volatile sig_atomic_t *stop;
};

static bool stopped(const struct shrink *shrink)
{
    return (shrink->stop && *shrink->stop) || shrink->steps_made > MAX_STEPS_MADE;
}

static bool property_fails(const struct shrink *shrink)
{
    const char *violated = shrink->w->violation.property;
    return violated && strcmp(violated, shrink->property) == 0;
}

static bool make_step(struct shrink *shrink, const struct sim_step *step)
{
    shrink->made[shrink->made_count++] = *step;
    shrink->steps_made++;
    return sim_world_step(shrink->w, step);
}

/*
 * Makes a step and what its agent does then, until something changes or its poll ends. False when
 * nothing has changed.
 */
static bool make_poll(struct shrink *shrink, struct sim_step step)
{
    struct sim_world *w = shrink->w;
    const struct sim_agent *agent = &w->agents[step.agent];
    while (shrink->made_count < shrink->capacity) {
        if (!make_step(shrink, &step) || w->effect)
            return true;
        if (agent->ops->at_rest(agent) || !sim_next_of_its_own(agent, &step))
            return false;
    }
    return true;
}

/*
 * Gets the world on, if that is possible. A look that finds nothing is taken back: whoever waits
 * would make it again and again, and the others nothing.
 */
static bool make_progress(struct shrink *shrink)
{
    struct sim_world *w = shrink->w;
    struct sim_step steps[SIM_MAX_STEPS];
    uint32_t count = sim_world_enabled(w, steps);
    for (uint32_t i = 0; i < count; i++) {
        const struct sim_agent *agent = &w->agents[steps[i].agent];
        if (sim_step_is_environment(&steps[i]))
            continue;
        size_t mark = sim_arena_mark(&w->arena);
        uint32_t made = shrink->made_count;
        bool rests = agent->ops->at_rest(agent);
        if (make_poll(shrink, steps[i]) || !rests)
            return true;
        sim_arena_undo(&w->arena, mark);
        shrink->made_count = made;
    }
    return false;
}

/* Whoever is stuck is so only when all others are done: lets them finish. */
static void run_to_rest(struct shrink *shrink)
{
    struct sim_world *w = shrink->w;
    while (make_progress(shrink))
        if (w->violation.property || w->arena.failed || shrink->made_count > shrink->limit)
            return;
    if (sim_world_quiescent(w))
        sim_world_judge_quiescent(w);
}

/*
 * Tries the wanted steps, passing over those that are not enabled. True when the property fails and
 * the steps made are fewer than the best (or as many, with `as_short`); they are the best then.
 */
static bool try_wanted(struct shrink *shrink, uint32_t count, bool as_short)
{
    struct sim_world *w = shrink->w;
    size_t mark = sim_arena_mark(&w->arena);
    w->violation.property = NULL;
    shrink->made_count = 0;
    shrink->limit = as_short ? shrink->best_count : shrink->best_count - 1;
    bool well = true;
    for (uint32_t i = 0; i < count && well; i++)
        if (sim_world_is_enabled(w, &shrink->wanted[i]))
            well = make_step(shrink, &shrink->wanted[i]);
    if (well)
        run_to_rest(shrink);
    bool better = property_fails(shrink) && shrink->made_count <= shrink->limit;
    w->violation.property = NULL;
    sim_arena_undo(&w->arena, mark);
    if (better) {
        memcpy(shrink->best, shrink->made, shrink->made_count * sizeof *shrink->made);
        shrink->best_count = shrink->made_count;
    }
    return better;
}

/* Without the steps [from, from + chunk). */
static bool try_without(struct shrink *shrink, uint32_t from, uint32_t chunk)
{
    uint32_t count = shrink->best_count;
    if (from + chunk > count)
        chunk = count - from;
    memcpy(shrink->wanted, shrink->best, from * sizeof *shrink->best);
    memcpy(shrink->wanted + from, shrink->best + from + chunk,
           (count - from - chunk) * sizeof *shrink->best);
    return try_wanted(shrink, count - chunk, false);
}

static bool remove_steps(struct shrink *shrink)
{
    uint32_t before = shrink->best_count;
    for (uint32_t chunk = shrink->best_count / 2; chunk >= 1; chunk /= 2)
        for (uint32_t from = 0; from < shrink->best_count && !stopped(shrink);)
            if (!try_without(shrink, from, chunk))
                from += chunk;
    return shrink->best_count < before;
}

static uint32_t switches(const struct sim_step *steps, uint32_t count)
{
    uint32_t sum = 0;
    for (uint32_t i = 1; i < count; i++)
        sum += steps[i].agent != steps[i - 1].agent;
    return sum;
}

/* Moves the run of one agent's steps at [from, to) to behind the agent's previous step. */
static bool try_earlier(struct shrink *shrink, uint32_t from, uint32_t to)
{
    uint32_t behind = from;
    while (behind > 0 && shrink->best[behind - 1].agent != shrink->best[from].agent)
        behind--;
    if (behind == 0)
        return false;
    uint32_t run = to - from, old_switches = switches(shrink->best, shrink->best_count);
    memcpy(shrink->wanted, shrink->best, behind * sizeof *shrink->best);
    memcpy(shrink->wanted + behind, shrink->best + from, run * sizeof *shrink->best);
    memcpy(shrink->wanted + behind + run, shrink->best + behind,
           (from - behind) * sizeof *shrink->best);
    memcpy(shrink->wanted + to, shrink->best + to,
           (shrink->best_count - to) * sizeof *shrink->best);
    if (switches(shrink->wanted, shrink->best_count) >= old_switches)
        return false;
    uint32_t kept_count = shrink->best_count;
    memcpy(shrink->kept, shrink->best, kept_count * sizeof *shrink->kept);
    bool better = try_wanted(shrink, kept_count, true);
    if (better && shrink->best_count == kept_count &&
        switches(shrink->best, kept_count) >= old_switches) {
        memcpy(shrink->best, shrink->kept, kept_count * sizeof *shrink->kept);
        better = false;
    }
    return better;
}

static bool join_runs(struct shrink *shrink)
{
    bool any = false;
    for (uint32_t from = 1; from < shrink->best_count && !stopped(shrink);) {
        uint32_t to = from + 1;
        while (to < shrink->best_count && shrink->best[to].agent == shrink->best[from].agent)
            to++;
        if (shrink->best[from - 1].agent != shrink->best[from].agent &&
            try_earlier(shrink, from, to)) {
            any = true;
            continue;
        }
        from = to;
    }
    return any;
}

int sim_shrink(struct sim_world *w, const char *property, struct sim_step *steps, uint32_t *count,
               const volatile sig_atomic_t *stop)
{
    if (*count == 0)
        return 0;
    struct shrink shrink = {.w = w,
                            .property = property,
                            .capacity = *count + LONGEST_LOOK,
                            .best_count = *count,
                            .stop = stop};
    size_t octets = shrink.capacity * sizeof *steps;
    shrink.best = malloc(octets);
    shrink.wanted = malloc(octets);
    shrink.made = malloc(octets);
    shrink.kept = malloc(octets);
    bool well = shrink.best && shrink.wanted && shrink.made && shrink.kept;
    bool counted = w->count_reached;
    w->count_reached = false;
    if (well) {
        memcpy(shrink.best, steps, *count * sizeof *steps);
        memcpy(shrink.wanted, steps, *count * sizeof *steps);
        /* Some properties are those of a search: no steps show that they fail. */
        bool shown = try_wanted(&shrink, *count, true);
        while (shown && !stopped(&shrink) && (remove_steps(&shrink) || join_runs(&shrink)))
            ;
        well = !w->arena.failed;
    }
    w->count_reached = counted;
    if (well) {
        memcpy(steps, shrink.best, shrink.best_count * sizeof *steps);
        *count = shrink.best_count;
    }
    free(shrink.best);
    free(shrink.wanted);
    free(shrink.made);
    free(shrink.kept);
    return well ? 0 : -ENOMEM;
}
