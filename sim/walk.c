/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Walks from the initial state to a quiescent one. SIM_RANDOM picks every enabled step alike.
 * SIM_PCT gives every agent, and every agent's store buffer, a random priority and lets the highest
 * go on; at d - 1 random moments the running one falls to the bottom (Burckhardt et al., ASPLOS
 * 2010). An agent that looks and finds nothing new yields; and so does, some time, one that always
 * finds something, as its timers expire again and again or what it asks leaves a trace. SIM_TIMED
 * picks what is due first.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sim/explore.h"
#include "sim/random.h"
#include "sim/timed/picker.h"
#include "sim/visited.h"

#define MAX_WALK_STEPS 10000000u /* a longer walk does not end by itself */
#define TOLD_STEPS 2000u         /* so many of its steps are kept then */
#define MAX_CHANGES 32u
#define MAX_FRUITLESS 16u           /* steps on end without effect, then others go on */
#define MAX_UNYIELDING 2000u        /* steps without yielding, then others go on */
#define ACTORS (2 * SIM_MAX_AGENTS) /* an agent's polls and its store buffer */

struct walk {
    struct sim_step *steps;
    uint32_t count, size;
    uint64_t chance;
    struct sim_picker *picker; /* of SIM_TIMED */
    uint64_t priority[ACTORS]; /* the highest goes first */
    uint64_t lowest;           /* what the next one that falls gets */
    uint32_t changes[MAX_CHANGES];
    uint32_t changes_count;
    uint32_t fruitless[ACTORS]; /* steps on end that changed nothing */
    uint32_t made[ACTORS];      /* steps since it fell last */
};

static uint32_t actor_of(const struct sim_step *step)
{
    return 2u * step->agent + (step->kind == SIM_STEP_DRAIN);
}

static void fall(struct walk *walk, uint32_t actor)
{
    walk->priority[actor] = walk->lowest--;
    walk->made[actor] = 0;
}

static void walk_begin(struct walk *walk, const struct sim_explore *options, uint64_t run,
                       uint32_t longest)
{
    walk->count = 0;
    walk->chance = sim_mix64(options->seed) ^ sim_mix64(run + 1);
    walk->lowest = UINT64_C(1) << 32;
    if (walk->picker)
        sim_picker_begin(walk->picker, walk->chance);
    memset(walk->fruitless, 0, sizeof walk->fruitless);
    memset(walk->made, 0, sizeof walk->made);
    for (uint32_t i = 0; i < ACTORS; i++)
        walk->priority[i] = walk->lowest + 1 + (sim_random64(&walk->chance) >> 1);
    walk->changes_count = options->pct_depth > 0 ? options->pct_depth - 1 : 0;
    if (walk->changes_count > MAX_CHANGES)
        walk->changes_count = MAX_CHANGES;
    for (uint32_t i = 0; i < walk->changes_count; i++)
        walk->changes[i] = 1 + sim_random_below(&walk->chance, longest ? longest : 100);
}

/* Among the enabled steps of the highest actor, any. */
static uint32_t pick_by_priority(struct walk *walk, const struct sim_step *steps, uint32_t count)
{
    uint32_t best = 0;
    for (uint32_t i = 1; i < count; i++)
        if (walk->priority[actor_of(&steps[i])] > walk->priority[actor_of(&steps[best])])
            best = i;
    uint32_t actor = actor_of(&steps[best]), same = 0;
    for (uint32_t i = 0; i < count; i++)
        same += actor_of(&steps[i]) == actor;
    uint32_t skip = sim_random_below(&walk->chance, same);
    for (uint32_t i = best;; i++)
        if (actor_of(&steps[i]) == actor && skip-- == 0)
            return i;
}

static uint32_t pick(struct sim_search *search, struct walk *walk, const struct sim_step *steps,
                     uint32_t count)
{
    if (walk->picker)
        return sim_picker_next(walk->picker, steps, count);
    return search->options->mode == SIM_PCT ? pick_by_priority(walk, steps, count)
                                            : sim_random_below(&walk->chance, count);
}

static void pct_after(struct walk *walk, const struct sim_world *w, const struct sim_step *step)
{
    const struct sim_agent *agent = &w->agents[step->agent];
    for (uint32_t i = 0; i < walk->changes_count; i++)
        if (walk->changes[i] == walk->count)
            fall(walk, actor_of(step));
    uint32_t *fruitless = &walk->fruitless[actor_of(step)];
    *fruitless = w->effect ? 0 : *fruitless + 1;
    bool looked_in_vain = *fruitless != 0 && agent->ops->at_rest(agent);
    if (looked_in_vain || *fruitless == MAX_FRUITLESS) {
        fall(walk, actor_of(step));
        *fruitless = 0;
    } else if (++walk->made[actor_of(step)] >= MAX_UNYIELDING) {
        fall(walk, actor_of(step));
    }
}

static bool remember(struct sim_search *search, struct walk *walk, const struct sim_step *step)
{
    if (walk->count == walk->size) {
        uint32_t size = walk->size ? walk->size * 2 : 1024;
        struct sim_step *steps = realloc(walk->steps, size * sizeof *steps);
        if (!steps)
            return false;
        walk->steps = steps;
        walk->size = size;
        search->path_octets = size * sizeof *steps;
    }
    walk->steps[walk->count++] = *step;
    return true;
}

static void end_quiescent(struct sim_search *search)
{
    struct sim_report *report = search->report;
    report->quiescent++;
    report->quiescent_digest += sim_mix64(search->w->arena.hash);
    sim_world_judge_quiescent(search->w);
}

static bool count_state(struct sim_search *search)
{
    const struct sim_arena *arena = &search->w->arena;
    int added = sim_visited_add(search->visited, arena);
    if (added < 0)
        sim_search_full(search, added);
    search->report->digest = sim_mix64(search->report->digest ^ arena->hash);
    return added >= 0;
}

/* One walk. False when the search is over: the report says why. */
static bool walk_once(struct sim_search *search, struct walk *walk)
{
    struct sim_world *w = search->w;
    bool by_priority = search->options->mode == SIM_PCT;
    for (bool idle = true; walk->count < MAX_WALK_STEPS; idle = !w->effect) {
        struct sim_step steps[SIM_MAX_STEPS];
        uint32_t count = sim_world_enabled(w, steps);
        if ((idle || count == 0) && sim_world_quiescent(w) &&
            !(walk->picker && sim_picker_goes_on(walk->picker, steps, count))) {
            end_quiescent(search);
            break;
        }
        if (count == 0) {
            sim_violate(w, "stuck", "no step is possible, but not every agent is at rest");
            break;
        }
        uint32_t at = pick(search, walk, steps, count);
        bool well = sim_world_step(w, &steps[at]);
        search->report->transitions++;
        search->depth = walk->count + 1;
        if (!remember(search, walk, &steps[at]) || (!well && !w->violation.property)) {
            search->report->result = SIM_NO_MEMORY;
            return false;
        }
        if (w->violation.property)
            break;
        if (by_priority)
            pct_after(walk, w, &steps[at]);
        else if (walk->picker)
            sim_picker_after(walk->picker, &steps[at]);
        if (!count_state(search) || !sim_search_goes_on(search))
            return false;
        sim_arena_forget(&w->arena, 0);
    }
    if (walk->count == MAX_WALK_STEPS)
        sim_violate(w, "comes-to-rest", "a walk of %u steps did not end", MAX_WALK_STEPS);
    if (walk->picker)
        search->report->simulated_ns += sim_picker_now_ns(walk->picker);
    if (walk->count > search->report->depth_max)
        search->report->depth_max = walk->count;
    if (walk->count == MAX_WALK_STEPS)
        walk->count = TOLD_STEPS;
    if (w->violation.property)
        sim_search_violation(search);
    return !w->violation.property;
}

static void observe(void *context, const struct sim_access *access)
{
    sim_picker_observe(context, access);
}

/* 0 or -ENOMEM. */
static int make_picker(struct sim_search *search, struct walk *walk)
{
    if (search->options->mode != SIM_TIMED)
        return 0;
    walk->picker = sim_picker_new(search->w, search->options->costs, search->options->spread);
    search->w->observe = walk->picker ? observe : NULL;
    search->w->observe_context = walk->picker;
    return walk->picker ? 0 : -ENOMEM;
}

int sim_walk(struct sim_search *search)
{
    struct sim_report *report = search->report;
    struct sim_world *w = search->w;
    struct walk walk = {0};
    void *start = sim_arena_save(&w->arena);
    if (!start || make_picker(search, &walk) != 0) {
        free(start);
        return -ENOMEM;
    }
    bool goes_on = count_state(search);
    for (uint64_t run = 0; goes_on && run < search->options->runs; run++) {
        walk_begin(&walk, search->options, run, report->depth_max);
        goes_on = walk_once(search, &walk);
        report->runs += goes_on;
        sim_arena_forget(&w->arena, 0);
        sim_arena_restore(&w->arena, start);
    }
    free(start);
    if (walk.picker)
        w->observe = NULL;
    sim_picker_free(walk.picker);
    if (goes_on)
        report->result = sim_all_reached(w) ? SIM_OK : SIM_VACUOUS;
    if (report->result == SIM_VIOLATION) {
        report->trace = walk.steps;
        report->trace_steps = walk.count;
        return report->trace ? 0 : -ENOMEM;
    }
    free(walk.steps);
    return 0;
}
