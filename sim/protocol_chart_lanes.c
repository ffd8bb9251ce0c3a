/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/protocol_chart_lanes.h"

#include <stdio.h>
#include <string.h>

#include "sim/kind.h"
#include "sim/protocol_chart.h"

#define MAX_ELEMENTS 16u /* more than this of a sort are not drawn as lanes of their own */

/* ---- values ------------------------------------------------------------------------------ */

/* "gen 2: 101", "gen 3: -" */
static void describe_entry(const struct sim_ring_world *ring, const char *entry, char *out,
                           size_t size)
{
    uint32_t block = sim_ring_block_at(ring, sim_ring_offset(ring, entry));
    out[0] = '\0';
    sim_kind_say(out, size, "gen %u: ", sim_ring_entry_generation(entry));
    if (!sim_ring_entry_is_valid(entry))
        sim_kind_say(out, size, "-");
    else if (block == RING_NO_BLOCK)
        sim_kind_say(out, size, "?");
    else
        sim_kind_say(out, size, "%u", ring->first_block + block);
}

/* "2", "1 freed", "STORE" */
static void describe_pins(uint64_t pins, char *out, size_t size)
{
    uint32_t readers = (uint32_t)(pins & KBTP_PIN_READERS);
    out[0] = '\0';
    if (readers != 0 || pins == 0)
        sim_kind_say(out, size, "%u", readers);
    if (pins & KBTP_PIN_FREED)
        sim_kind_say(out, size, "%sfreed", readers ? " " : "");
    if (pins & KBTP_PIN_WRITER)
        sim_kind_say(out, size, "%sSTORE", readers ? " " : "");
}

static void describe_session(const char *at, char *out, size_t size)
{
    uint64_t state = sim_ring_counter_value(at + offsetof(struct kbtp_session, state));
    out[0] = '\0';
    sim_kind_say(out, size, "%s", kbtp_session_state_name(state));
    if (kbtp_session_state_in(state) == KBTP_SESSION_RETAINED)
        sim_kind_say(out, size, ", uses %u",
                     (uint32_t)sim_ring_counter_value(at + offsetof(struct kbtp_session, usage)));
}

static void describe(const struct protocol_lanes *lanes, enum protocol_place place, uint32_t number,
                     char *out, size_t size)
{
    const struct sim_protocol_world *p = sim_protocol_of(lanes->w);
    const char *at = lanes->places[place].at + (size_t)number * lanes->places[place].octets;
    switch (place) {
    case PLACE_SLOT:
        sim_ring_describe_slot(lanes->w, at, out, size);
        break;
    case PLACE_ENTRY:
        describe_entry(&p->ring, at, out, size);
        break;
    case PLACE_PINS:
        describe_pins(sim_ring_counter_value(at), out, size);
        break;
    case PLACE_BLOCK:
        sim_protocol_describe_octets(lanes->w, at, lanes->places[place].octets, out, size);
        break;
    case PLACE_SESSION:
        describe_session(at, out, size);
        break;
    default: /* Head and Tail */
        snprintf(out, size, "%u", (uint32_t)(sim_ring_counter_value(at) >> 32));
    }
}

void protocol_lanes_value(const struct protocol_lanes *lanes, uint32_t lane, char *out, size_t size)
{
    for (unsigned place = 0; place < PLACES; place++)
        if (lane - lanes->places[place].lane < lanes->places[place].count)
            describe(lanes, (enum protocol_place)place, lane - lanes->places[place].lane, out,
                     size);
}

/* ---- lanes ------------------------------------------------------------------------------- */

static struct chart_lane *add_lane(struct protocol_lanes *lanes, enum chart_lane_kind kind)
{
    struct chart_lane *lane = chart_add_lane(lanes->chart);
    if (lane)
        lane->kind = kind;
    return lane;
}

#define INITIATORS_WITH_RNICS 2u /* with more, an initiator and its RNIC share a lane */

static void add_agent(struct protocol_lanes *lanes, uint32_t agent)
{
    const char *name = lanes->w->agents[agent].name;
    struct chart_lane *lane = add_lane(lanes, CHART_AGENT);
    if (lane)
        snprintf(lane->name, sizeof lane->name, "%s",
                 strcmp(name, SIM_TARGET_RNIC_NAME) == 0 ? "rnic" : name);
    lanes->agents[agent] = lanes->chart->lanes_count - 1;
}

/* From left to right as messages go: initiators and their RNICs, the target's RNIC, workers. */
static void add_agents(struct protocol_lanes *lanes)
{
    const struct sim_protocol_world *p = sim_protocol_of(lanes->w);
    uint32_t target_rnic = p->first_initiator + p->initiators;
    for (uint32_t i = 0; i < p->initiators; i++) {
        add_agent(lanes, p->first_initiator + i);
        if (p->initiators <= INITIATORS_WITH_RNICS)
            add_agent(lanes, target_rnic + 1 + i);
        else
            lanes->agents[target_rnic + 1 + i] = lanes->agents[p->first_initiator + i];
    }
    add_agent(lanes, target_rnic);
    for (uint32_t i = 0; i < p->workers; i++)
        add_agent(lanes, i);
    for (uint32_t i = target_rnic + 1 + p->initiators; i < lanes->w->agents_count; i++)
        add_agent(lanes, i);
}

static void name_lane(const struct protocol_lanes *lanes, enum protocol_place place,
                      uint32_t number, char *out, size_t size)
{
    static const char *const names[] = {
        [PLACE_HEAD] = "Head",       [PLACE_TAIL] = "Tail", [PLACE_SLOT] = "slot",
        [PLACE_ENTRY] = "entry",     [PLACE_PINS] = "pins", [PLACE_BLOCK] = "block",
        [PLACE_SESSION] = "session",
    };
    if (place == PLACE_PINS || place == PLACE_BLOCK)
        number += sim_ring_of(lanes->w)->first_block;
    if (place == PLACE_HEAD || place == PLACE_TAIL)
        snprintf(out, size, "%s", names[place]);
    else if (place == PLACE_SESSION)
        snprintf(out, size, "%s's session", lanes->w->scenario->protocol.initiators[number].name);
    else
        snprintf(out, size, "%s %u", names[place], number);
}

static void add_place(struct protocol_lanes *lanes, enum protocol_place place, const void *at,
                      size_t octets, uint32_t count)
{
    lanes->places[place].at = at;
    lanes->places[place].octets = (uint32_t)octets;
    lanes->places[place].lane = lanes->chart->lanes_count;
    lanes->places[place].count = count <= MAX_ELEMENTS ? count : 0;
    for (uint32_t i = 0; i < lanes->places[place].count; i++) {
        struct chart_lane *lane = add_lane(lanes, CHART_MEMORY);
        if (!lane)
            return;
        name_lane(lanes, place, i, lane->name, sizeof lane->name);
        describe(lanes, place, i, lane->value, sizeof lane->value);
    }
}

void protocol_lanes_add(struct protocol_lanes *lanes, struct sim_world *w, struct chart *chart)
{
    const struct protocol_world *world = protocol_world_of(w);
    const struct sim_protocol_world *p = &world->view;
    *lanes = (struct protocol_lanes){.w = w, .chart = chart};
    add_agents(lanes);
    /* The ring that all share, or where there is no such the first partition's. */
    const struct sim_ring_memory *ring = &p->ring.rings[p->ring.rings[0].block_count == 0];
    add_place(lanes, PLACE_HEAD, ring->head, 8, 1);
    add_place(lanes, PLACE_TAIL, ring->tail, 8, 1);
    add_place(lanes, PLACE_SLOT, ring->slots, 16, ring->slot_count);
    add_place(lanes, PLACE_ENTRY, p->ring.table, 16, p->ring.entry_count);
    add_place(lanes, PLACE_PINS, p->pins, 8, p->ring.block_count);
    add_place(lanes, PLACE_BLOCK, p->blocks, p->ring.block_size, p->ring.block_count);
    add_place(lanes, PLACE_SESSION, world->target->sessions.sessions, sizeof(struct kbtp_session),
              p->initiators);
}

uint32_t protocol_lanes_find(const struct protocol_lanes *lanes, const char *at,
                             const char **element, enum protocol_place *place)
{
    for (unsigned i = 0; at && i < PLACES; i++) {
        const char *first = lanes->places[i].at;
        uint32_t octets = lanes->places[i].octets;
        if (at < first || at >= first + (size_t)octets * lanes->places[i].count)
            continue;
        uint32_t number = (uint32_t)((size_t)(at - first) / octets);
        *element = first + (size_t)number * octets;
        *place = (enum protocol_place)i;
        return lanes->places[i].lane + number;
    }
    return UINT32_MAX;
}
