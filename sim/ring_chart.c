/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/ring_chart.h"

#include <stdio.h>
#include <string.h>

#include "sim/ring_world.h"

#define MAX_PLACES 16u /* more slots than this are not drawn as lanes of their own */

/* Lanes: agents, Head, Tail, slots, entries. */
struct lanes {
    struct sim_world *w;
    struct chart *chart;
    struct sim_replay *replay;
    uint32_t head, tail, slots, slot_lanes, entries, entry_lanes;
};

static void value_of(const struct lanes *lanes, uint32_t lane, char *out, size_t size)
{
    const struct sim_ring_world *ring = sim_ring_of(lanes->w);
    if (lane == lanes->head || lane == lanes->tail) {
        uint64_t value =
            sim_ring_counter_value(lane == lanes->head ? ring->rings[0].head : ring->rings[0].tail);
        snprintf(out, size, "%u", (uint32_t)(value >> 32));
    } else if (lane >= lanes->entries) {
        sim_ring_describe_entry(lanes->w, lane - lanes->entries, out, size);
    } else {
        sim_ring_describe_slot(lanes->w, ring->rings[0].slots + 16u * (lane - lanes->slots), out,
                               size);
    }
}

static uint32_t add_lane(struct lanes *lanes, enum chart_lane_kind kind, const char *name)
{
    struct chart_lane *lane = chart_add_lane(lanes->chart);
    if (lane) {
        lane->kind = kind;
        snprintf(lane->name, sizeof lane->name, "%s", name);
    }
    return lanes->chart->lanes_count - 1;
}

static void add_lanes(struct lanes *lanes)
{
    const struct sim_ring_world *ring = sim_ring_of(lanes->w);
    char name[CHART_NAME];
    for (uint32_t i = 0; i < lanes->w->agents_count; i++)
        add_lane(lanes, CHART_AGENT, lanes->w->agents[i].name);
    lanes->head = add_lane(lanes, CHART_MEMORY, "Head");
    lanes->tail = add_lane(lanes, CHART_MEMORY, "Tail");
    lanes->slots = lanes->chart->lanes_count;
    lanes->slot_lanes = ring->rings[0].slot_count <= MAX_PLACES ? ring->rings[0].slot_count : 0;
    for (uint32_t i = 0; i < lanes->slot_lanes; i++) {
        snprintf(name, sizeof name, "slot %u", i);
        add_lane(lanes, CHART_MEMORY, name);
    }
    lanes->entries = lanes->chart->lanes_count;
    lanes->entry_lanes = ring->entry_count <= MAX_PLACES ? ring->entry_count : 0;
    for (uint32_t i = 0; i < lanes->entry_lanes; i++) {
        snprintf(name, sizeof name, "entry %u", i);
        add_lane(lanes, CHART_MEMORY, name);
    }
    for (uint32_t i = lanes->head; i < lanes->chart->lanes_count && !lanes->chart->failed; i++)
        value_of(lanes, i, lanes->chart->lanes[i].value, CHART_NAME);
}

/* The lane of an address, or UINT32_MAX when it has none. */
static uint32_t lane_of(const struct lanes *lanes, const char *at)
{
    const struct sim_ring_world *ring = sim_ring_of(lanes->w);
    const char *element;
    if (at == ring->rings[0].head)
        return lanes->head;
    if (at == ring->rings[0].tail)
        return lanes->tail;
    if (lanes->slot_lanes && (element = sim_ring_slot_at(ring, at)))
        return lanes->slots + (uint32_t)(element - ring->rings[0].slots) / 16;
    if (lanes->entry_lanes && (element = sim_ring_entry_at(ring, at)))
        return lanes->entries + (uint32_t)(element - ring->table) / 16;
    return UINT32_MAX;
}

static enum chart_row_kind row_kind(const struct sim_access *access)
{
    switch (access->kind) {
    case SIM_LOAD:
    case SIM_READ:
        return CHART_READ;
    case SIM_ATOMIC:
        return CHART_BOTH;
    case SIM_STORE:
        return access->buffered ? CHART_LOCAL : CHART_WRITE;
    case SIM_DRAIN:
    case SIM_WRITE:
        return CHART_WRITE;
    case SIM_DIED:
        return CHART_FAULT;
    default:
        return CHART_LOCAL;
    }
}

static void observe(void *context, const struct sim_access *access)
{
    struct lanes *lanes = context;
    char text[160];
    /* That an agent begins or looks again shows by what it does next. */
    lanes->w->ops->describe(lanes->w, access, text, sizeof text);
    if (text[0] == 0 || (access->kind == SIM_CHOSEN && !strstr(text, "free block")))
        return;
    struct chart_row *row = chart_add_row(lanes->chart);
    if (!row)
        return;
    row->step = lanes->replay->steps_run + 1;
    row->agent_lane = access->agent;
    row->kind = row_kind(access);
    snprintf(row->text, sizeof row->text, "%.*s", (int)sizeof row->text - 1, text);
    uint32_t lane = access->at ? lane_of(lanes, access->at) : UINT32_MAX;
    if (lane == UINT32_MAX) {
        row->kind = row->kind == CHART_FAULT ? CHART_FAULT : CHART_LOCAL;
        return;
    }
    row->memory_lane = lane;
    if (row->kind == CHART_WRITE || row->kind == CHART_BOTH)
        value_of(lanes, lane, row->value, sizeof row->value);
}

void sim_ring_chart(struct sim_world *w, const struct sim_step *steps, uint32_t count,
                    struct chart *chart, struct sim_replay *replay)
{
    struct lanes lanes = {.w = w, .chart = chart, .replay = replay};
    add_lanes(&lanes);
    w->observe = observe;
    w->observe_context = &lanes;
    sim_replay(w, steps, count, replay);
    w->observe = NULL;
    if (replay->end != SIM_REPLAY_VIOLATION)
        return;
    struct chart_row *row = chart_add_row(chart);
    if (!row)
        return;
    row->step = replay->steps_run;
    row->kind = CHART_FAULT;
    row->agent_lane = count ? steps[count - 1].agent : 0;
    snprintf(row->text, sizeof row->text, "%s: %.*s", w->violation.property,
             (int)sizeof row->text - 3 - (int)strlen(w->violation.property), w->violation.text);
}
