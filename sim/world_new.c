/* SPDX-License-Identifier: BSD-3-Clause */
/* Making a world of a kind: apart from sim/world.c, so that a device needs no kinds. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/kind.h"
#include "sim/rnic_build.h"
#include "sim/world.h"

#define ARENA_OCTETS (UINT64_C(256) << 20)

struct sim_world *sim_world_new(const struct sim_scenario *scenario,
                                const struct sim_stepping *stepping, char *error, size_t size)
{
    const struct sim_kind *kind = sim_kind_of(scenario);
    struct sim_world *w = calloc(1, sizeof *w);
    if (!w) {
        snprintf(error, size, "no memory for a world");
        return NULL;
    }
    w->scenario = scenario;
    w->stepping = *stepping;
    w->reach_names = kind->reach_names;
    w->reach_count = kind->reach_count;
    int failed = sim_arena_open(&w->arena, ARENA_OCTETS);
    if (failed) {
        snprintf(error, size, "cannot map the arena at %#llx: %s",
                 (unsigned long long)SIM_ARENA_BASE, strerror(-failed));
        free(w);
        return NULL;
    }
    failed = kind->build(w);
    if (failed) {
        if (failed == -ENOMEM)
            snprintf(error, size, "no memory for the world of this scenario");
        else
            snprintf(error, size, "a world of kind %s cannot be built: %s", kind->name,
                     strerror(-failed));
        sim_world_free(w);
        return NULL;
    }
    sim_arena_seal(&w->arena);
    /* What happened before the first step is not to be undone. */
    w->arena.undo_used = w->arena.undo_start = 0;
    return w;
}

void sim_world_free(struct sim_world *w)
{
    if (!w)
        return;
    rnic_free_all(w);
    sim_arena_close(&w->arena);
    free(w->kind);
    free(w);
}
