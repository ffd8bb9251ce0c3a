/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sim/replay.h"

#define MAX_COMPLETION 20000u /* steps to a quiescent state, for `stuck` */

/* The shortest failing list so far, and the one that is tried. */
struct shrink {
    struct sim_world *w;
    const char *property;
    struct sim_step *best, *wanted, *made;
    uint32_t best_count, made_count, capacity;
};

static bool property_fails(const struct shrink *shrink)
{
    const char *violated = shrink->w->violation.property;
    return violated && strcmp(violated, shrink->property) == 0;
}

static bool make_step(struct shrink *shrink, const struct sim_step *step)
{
    shrink->made[shrink->made_count++] = *step;
    return sim_world_step(shrink->w, step);
}

/* Makes one step that gets the world on, if there is one. */
static bool make_any_step(struct shrink *shrink)
{
    struct sim_world *w = shrink->w;
    struct sim_step steps[SIM_MAX_STEPS];
    uint32_t count = sim_world_enabled(w, steps);
    for (uint32_t i = 0; i < count; i++) {
        if (steps[i].kind == SIM_STEP_FAULT)
            continue;
        size_t mark = sim_arena_mark(&w->arena);
        uint64_t before = w->arena.hash;
        make_step(shrink, &steps[i]);
        if (w->arena.hash != before)
            return true;
        sim_arena_undo(&w->arena, mark);
        shrink->made_count--;
    }
    return false;
}

/* Whoever is stuck is so only when all others are done: lets them finish. */
static void run_to_rest(struct shrink *shrink)
{
    struct sim_world *w = shrink->w;
    while (!w->violation.property && shrink->made_count < shrink->capacity) {
        if (sim_world_quiescent(w)) {
            sim_world_judge_quiescent(w);
            return;
        }
        if (!make_any_step(shrink))
            return;
    }
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
    for (uint32_t i = 0; i < count && !w->violation.property; i++)
        if (sim_world_is_enabled(w, &shrink->wanted[i]))
            make_step(shrink, &shrink->wanted[i]);
    if (!w->violation.property)
        run_to_rest(shrink);
    bool better =
        property_fails(shrink) && (shrink->made_count < shrink->best_count ||
                                   (as_short && shrink->made_count == shrink->best_count));
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
        for (uint32_t from = 0; from < shrink->best_count;)
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
    struct sim_step *kept = malloc(shrink->best_count * sizeof *kept);
    if (!kept)
        return false;
    uint32_t kept_count = shrink->best_count;
    memcpy(kept, shrink->best, kept_count * sizeof *kept);
    bool better = try_wanted(shrink, kept_count, true);
    if (better && shrink->best_count == kept_count &&
        switches(shrink->best, kept_count) >= old_switches) {
        memcpy(shrink->best, kept, kept_count * sizeof *kept);
        better = false;
    }
    free(kept);
    return better;
}

static bool join_runs(struct shrink *shrink)
{
    bool any = false;
    for (uint32_t from = 1; from < shrink->best_count;) {
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

int sim_shrink(struct sim_world *w, const char *property, struct sim_step *steps, uint32_t *count)
{
    if (*count == 0)
        return 0;
    struct shrink shrink = {
        .w = w, .property = property, .capacity = *count + MAX_COMPLETION, .best_count = *count};
    /* Steps made beyond those wanted are at most one more than the capacity. */
    size_t octets = (shrink.capacity + 2u) * sizeof *steps;
    shrink.best = malloc(octets);
    shrink.wanted = malloc(octets);
    shrink.made = malloc(octets);
    bool counted = w->count_reached;
    w->count_reached = false;
    if (shrink.best && shrink.wanted && shrink.made) {
        memcpy(shrink.best, steps, *count * sizeof *steps);
        while (remove_steps(&shrink) || join_runs(&shrink))
            ;
        memcpy(steps, shrink.best, shrink.best_count * sizeof *steps);
        *count = shrink.best_count;
    }
    w->count_reached = counted;
    int failed = shrink.best && shrink.wanted && shrink.made ? 0 : -ENOMEM;
    free(shrink.best);
    free(shrink.wanted);
    free(shrink.made);
    return failed;
}
