/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/kind.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "sim/protocol_chart.h"
#include "sim/protocol_counts.h"
#include "sim/protocol_world.h"
#include "sim/ring_chart.h"
#include "sim/ring_world.h"
#include "sim/scenario_schema.h"
#include "sim/scenario_value.h"

const struct sim_kind sim_kinds[] = {
    [SIM_KIND_RING] =
        {
            .name = "ring",
            .reach_names = sim_ring_reach_names,
            .reach_count = RING_REACH_COUNT,
            .schema = &sim_ring_schema,
            .read = sim_scenario_read_ring,
            .describe = sim_ring_describe_world,
            .build = sim_ring_world_build,
            .chart = sim_ring_chart,
            .chart_legend = "slots show Sequence: block",
        },
    [SIM_KIND_PROTOCOL] =
        {
            .name = "protocol",
            .remote = true,
            .reach_names = sim_protocol_reach_names,
            .reach_count = PROTOCOL_REACH_COUNT,
            .schema = &sim_protocol_schema,
            .read = sim_scenario_read_protocol,
            .describe = sim_protocol_describe_world,
            .build = sim_protocol_world_build,
            .chart = sim_protocol_chart,
            .chart_legend = "slots show Sequence: block, entries Generation: block; X#2 is the "
                            "data of X's request 2",
            .statistics = sim_protocol_statistics,
        },
};
const uint32_t sim_kinds_count = sizeof sim_kinds / sizeof *sim_kinds;

const struct sim_kind *sim_kind_named(const char *name)
{
    for (uint32_t i = 0; i < sim_kinds_count; i++)
        if (strcmp(sim_kinds[i].name, name) == 0)
            return &sim_kinds[i];
    return NULL;
}

int sim_kind_reach_index(const struct sim_kind *kind, const char *name)
{
    for (uint32_t i = 0; i < kind->reach_count; i++)
        if (strcmp(kind->reach_names[i], name) == 0)
            return (int)i;
    return -1;
}

void sim_kind_chart(struct sim_world *w, const struct sim_step *steps, uint32_t count,
                    struct chart *chart, struct sim_replay *replay)
{
    const struct sim_kind *kind = sim_kind_of(w->scenario);
    if (kind->chart)
        kind->chart(w, steps, count, chart, replay);
    else
        sim_replay(w, steps, count, replay);
}

void sim_kind_say(char *out, size_t size, const char *format, ...)
{
    size_t used = strlen(out);
    va_list args;
    va_start(args, format);
    vsnprintf(out + used, size - used, format, args);
    va_end(args);
}
