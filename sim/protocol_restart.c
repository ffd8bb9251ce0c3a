/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The target of a protocol world restarts (I-11): its host dies, and in the same step it is as new.
 * What it is then was copied when the world was built, just after it had started; only its block
 * table differs from one life to the next, and was made for each by kbtp_target_init() itself.
 */
#include <errno.h>
#include <string.h>

#include "sim/protocol_agents.h"
#include "sim/protocol_counts.h"
#include "sim/rnic.h"

/* Far enough apart: no life gets to the Generations of another. */
#define GENERATIONS_APART 100u

/* In the arena, constant. */
struct protocol_restart {
    char *tables[SIM_MAX_RESTARTS]; /* of the lives after the first */
    char *as_new;                   /* octets of the segments below, one after the other */
    uint32_t *segments;             /* their indices */
    uint32_t count;
    uint32_t of_target; /* so many of the arena's first segments are the target's memory */
};

/* 65535 is followed by 1 (R-TAB-03). */
uint16_t protocol_first_generation(const struct sim_scenario *s, uint32_t life)
{
    return (uint16_t)((s->first_generation - 1 + GENERATIONS_APART * life) % UINT16_MAX + 1);
}

uint32_t protocol_life(const struct sim_world *w)
{
    const struct protocol_world *p = protocol_world_of(w);
    return p->restart && p->faults ? 1 + p->faults->restarts : 0;
}

static uint32_t table_octets(const struct sim_world *w)
{
    return 16u * sim_ring_of(w)->entry_count;
}

int protocol_restart_memory(struct sim_world *w, uint32_t segments)
{
    struct protocol_world *p = protocol_world_of(w);
    if (w->scenario->protocol.restarts == 0)
        return 0;
    p->restart = sim_segment_new(&w->arena, "as new", sizeof *p->restart, SIM_CONST);
    if (!p->restart)
        return -ENOMEM;
    p->restart->of_target = segments;
    for (uint32_t i = 0; i < w->scenario->protocol.restarts; i++) {
        p->restart->tables[i] =
            sim_segment_new(&w->arena, "table as new", table_octets(w), SIM_CONST);
        if (!p->restart->tables[i])
            return -ENOMEM;
    }
    return 0;
}

void protocol_restart_table(struct sim_world *w, uint32_t life)
{
    memcpy(protocol_world_of(w)->restart->tables[life - 1], sim_ring_of(w)->table, table_octets(w));
}

/* Its memory, its workers, or what their RNIC keeps of them. */
static bool is_target(const struct sim_world *w, const struct sim_segment *segment)
{
    const struct protocol_world *p = protocol_world_of(w);
    if (segment->kind != SIM_STATE)
        return false;
    if (segment - w->arena.segments < p->restart->of_target ||
        (segment->owner != 0 && segment->owner <= p->view.workers))
        return true;
    for (uint32_t i = 0; i < p->view.workers; i++)
        if (segment == w->agents[i].segment || sim_rnic_is_of_host(w, i, segment))
            return true;
    return false;
}

int protocol_restart_rest(struct sim_world *w)
{
    struct protocol_restart *restart = protocol_world_of(w)->restart;
    uint32_t all = w->arena.segments_count, octets = 0;
    if (!restart)
        return 0;
    restart->segments =
        sim_segment_new(&w->arena, "segments as new", all * sizeof *restart->segments, SIM_CONST);
    if (!restart->segments)
        return -ENOMEM;
    for (uint32_t i = 0; i < all; i++)
        if (is_target(w, &w->arena.segments[i])) {
            restart->segments[restart->count++] = i;
            octets += w->arena.segments[i].size;
        }
    restart->as_new = sim_segment_new(&w->arena, "octets as new", octets, SIM_CONST);
    if (!restart->as_new)
        return -ENOMEM;
    char *to = restart->as_new;
    for (uint32_t i = 0; i < restart->count; i++) {
        const struct sim_segment *segment = &w->arena.segments[restart->segments[i]];
        memcpy(to, segment->at, segment->size);
        to += segment->size;
    }
    return 0;
}

void protocol_restart(struct sim_world *w)
{
    const struct protocol_world *p = protocol_world_of(w);
    const struct protocol_restart *restart = p->restart;
    const char *from = restart->as_new;
    for (uint32_t i = 0; i < p->view.workers; i++)
        sim_cpu_kill(&w->agents[i]);
    for (uint32_t i = 0; i < p->view.workers; i++)
        sim_rnic_host_dies(w, i);
    for (uint32_t i = 0; i < restart->count; i++) {
        struct sim_segment *segment = &w->arena.segments[restart->segments[i]];
        sim_touch(&w->arena, segment);
        sim_footprint_note(w, segment->at, segment->size, true);
        memcpy(segment->at, from, segment->size);
        from += segment->size;
    }
    memcpy(p->view.ring.table, restart->tables[p->faults->restarts - 1], table_octets(w));
    protocol_forget(w);
    sim_reach(w, PROTOCOL_REACH_RESTARTED);
}
