/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/commute.h"

#include <string.h>

enum pair_end { PAIR_RAN, PAIR_DISABLED, PAIR_VIOLATED };

/* a then b; where that ends. */
static enum pair_end run_both(struct sim_world *w, const struct sim_step *a,
                              const struct sim_step *b, uint64_t *hash)
{
    size_t mark = sim_arena_mark(&w->arena);
    enum pair_end end = PAIR_VIOLATED;
    if (sim_world_step(w, a)) {
        if (!sim_world_is_enabled(w, b))
            end = PAIR_DISABLED;
        else if (sim_world_step(w, b))
            end = PAIR_RAN;
    }
    *hash = w->arena.hash;
    w->violation.property = NULL; /* the search comes to it by itself */
    sim_arena_undo(&w->arena, mark);
    return end;
}

/* A checker that looks at what its step does not declare shows by verdicts that differ. */
static bool commute(struct sim_world *w, const struct sim_step *a, const struct sim_step *b,
                    uint64_t *pairs)
{
    uint64_t ab, ba;
    enum pair_end ab_end = run_both(w, a, b, &ab), ba_end = run_both(w, b, a, &ba);
    if (ab_end == PAIR_DISABLED || ab_end != ba_end)
        return false;
    *pairs += ab_end == PAIR_RAN;
    return ab_end == PAIR_VIOLATED || ab == ba;
}

/* What the step touches, found by running it. */
static void footprint_of(struct sim_world *w, const struct sim_step *step,
                         struct sim_footprint *footprint)
{
    size_t mark = sim_arena_mark(&w->arena);
    footprint->count = 0;
    footprint->overflowed = false;
    w->footprint = footprint;
    sim_world_step(w, step);
    w->footprint = NULL;
    w->violation.property = NULL;
    sim_arena_undo(&w->arena, mark);
}

static bool check_pairs(struct sim_world *w, const struct sim_step *steps, uint32_t count,
                        uint64_t *pairs)
{
    for (uint32_t i = 0; i < count; i++) {
        struct sim_footprint first, second;
        footprint_of(w, &steps[i], &first);
        for (uint32_t j = i + 1; j < count; j++) {
            if (steps[i].agent == steps[j].agent)
                continue;
            footprint_of(w, &steps[j], &second);
            if (!sim_footprints_disjoint(&first, &second))
                continue;
            if (!commute(w, &steps[i], &steps[j], pairs)) {
                sim_violate(w, "steps-commute", "steps of %s and %s do not commute",
                            w->agents[steps[i].agent].name, w->agents[steps[j].agent].name);
                return false;
            }
        }
    }
    return true;
}

bool sim_commute_check(struct sim_world *w, uint64_t *pairs)
{
    struct sim_step steps[SIM_MAX_STEPS];
    uint32_t count = sim_world_enabled(w, steps);
    bool counted = w->count_reached;
    w->count_reached = false;
    bool well = check_pairs(w, steps, count, pairs);
    w->count_reached = counted;
    return well;
}
