/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The kinds of worlds. All that differs between them stands in one table, so that who reads
 * scenarios, builds worlds or draws charts names none of them. A new kind is a line there, and a
 * part of struct sim_scenario.
 */
#ifndef KBTP_SIM_KIND_H
#define KBTP_SIM_KIND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sim/chart.h"
#include "sim/replay.h"
#include "sim/scenario.h"
#include "sim/world.h"

struct cyaml_schema_value;
struct sim_raw_scenario;
struct sim_statistics; /* sim/protocol_counts.h */
struct sim_text;

struct sim_kind {
    const char *name; /* as the key `kind` says it */
    bool remote;      /* agents reach memory by RDMA too: `ordering` means something */
    const char *const *reach_names; /* what must_reach can name, by enum sim_..._reach */
    uint32_t reach_count;

    /* Form and values of its scenarios: sim/scenario_schema.h, sim/scenario_value.h. */
    const struct cyaml_schema_value *schema;
    bool (*read)(const struct sim_text *text, struct sim_raw_scenario *raw, struct sim_scenario *s);
    /* Line `line`, from 0, of what is in the world, in words; false behind the last one. */
    bool (*describe)(const struct sim_scenario *s, unsigned line, char *out, size_t size);

    /*
     * Fills an empty world: memory, agents, checkers, `ops` and `kind`. 0, or a negative errno
     * code; sim_world_new() then takes down what there is.
     */
    int (*build)(struct sim_world *w);

    /* As sim_ring_chart(). NULL: the kind has no charts, only steps. */
    void (*chart)(struct sim_world *w, const struct sim_step *steps, uint32_t count,
                  struct chart *chart, struct sim_replay *replay);
    const char *chart_legend; /* how to read the chart's memory */

    /* What a target has counted on the way to this state. NULL: the kind has none. */
    void (*statistics)(const struct sim_world *w, struct sim_statistics *statistics);
};

extern const struct sim_kind sim_kinds[]; /* by enum sim_world_kind_id */
extern const uint32_t sim_kinds_count;

static inline const struct sim_kind *sim_kind_of(const struct sim_scenario *s)
{
    return &sim_kinds[s->kind];
}

/* NULL if no kind has this name. */
const struct sim_kind *sim_kind_named(const char *name);
/* Index of a name in `reach_names`, or -1. */
int sim_kind_reach_index(const struct sim_kind *kind, const char *name);
/* Replays the steps, and draws them in an empty chart if the kind can. */
void sim_kind_chart(struct sim_world *w, const struct sim_step *steps, uint32_t count,
                    struct chart *chart, struct sim_replay *replay);

/* For `describe`: adds to the string in out[0..size), what does not fit is cut off. */
void sim_kind_say(char *out, size_t size, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
