/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/ring_world.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/check.h"
#include "sim/ring_agents.h"

const char *const sim_ring_reach_names[] = {
    [SIM_REACH_LOAD_BEFORE_STORE] = "load-before-store",
    [RING_REACH_DEFERRAL] = "deferral",
    [RING_REACH_TWO_DEFERRALS] = "two-deferrals",
    [RING_REACH_DEFERRED_WRITE] = "deferred-write",
    [RING_REACH_WAIT] = "wait",
    [RING_REACH_UNCONFIRMED] = "unconfirmed",
    [RING_REACH_RING_WRAP] = "ring-wrap",
    [RING_REACH_TICKET_WRAP] = "ticket-wrap",
    [RING_REACH_GENERATION_WRAP] = "generation-wrap",
    [RING_REACH_CRASH] = "crash",
    [RING_REACH_QUOTA_FULL] = "quota-full",
};

/* ---- ghost records ----------------------------------------------------------------------- */

static void slot_wrote(struct sim_world *w, const char *slot)
{
    struct sim_ring_world *ring = sim_ring_of(w);
    uint32_t index = sim_ring_block_at(ring, sim_ring_offset(ring, slot));
    if (index == RING_NO_BLOCK || ring->ghost->blocks[index].place != RING_FREEING)
        return;
    struct sim_ring_block *block = &ring->ghost->blocks[index];
    sim_ghost_write(w, block, sizeof *block);
    *block = (struct sim_ring_block){.place = RING_IN_RING};
}

static void entry_wrote(struct sim_world *w, const char *at)
{
    struct sim_ring_world *ring = sim_ring_of(w);
    struct sim_ring_entry *entry = &ring->entries[(at - ring->table) / 16];
    uint16_t generation = sim_ring_entry_generation(at);
    sim_ghost_write(w, entry, sizeof *entry);
    if (generation < entry->generation)
        sim_reach(w, RING_REACH_GENERATION_WRAP);
    entry->generation = generation;
    if (entry->state == RING_BINDING && sim_ring_entry_is_valid(at)) {
        struct sim_ring_block *block = &ring->ghost->blocks[entry->block];
        sim_ghost_write(w, block, sizeof *block);
        entry->state = RING_ENTRY_BOUND;
        block->place = RING_BOUND;
    }
}

static void ring_wrote(struct sim_world *w, const struct sim_write *write)
{
    struct sim_ring_world *ring = sim_ring_of(w);
    const char *slot = sim_ring_slot_at(ring, write->at);
    if (slot && write->octets == 8)
        slot_wrote(w, slot);
    if (sim_ring_entry_at(ring, write->at) == write->at)
        entry_wrote(w, write->at);
}

static void ring_published(struct sim_world *w, uint32_t agent, uint32_t event, uint64_t value)
{
    struct sim_ring_world *ring = sim_ring_of(w);
    struct sim_ring_ghost *ghost = ring->ghost;
    sim_event(w, agent, event, value);
    if (event == RING_NOW_BOUND) {
        sim_ghost_write(w, &ghost->blocks[value], sizeof ghost->blocks[value]);
        ghost->blocks[value].place = RING_BOUND;
        return;
    }
    sim_ghost_write(w, &ghost->usage, sizeof ghost->usage);
    ghost->usage--;
    if (ring->entry_count != 0) {
        sim_ghost_write(w, &ring->entries[value], sizeof(struct sim_ring_entry));
        ring->entries[value].state = RING_UNBOUND;
        ring->entries[value].block = 0;
    }
}

static bool ring_open_requests(struct sim_world *w, char *why, size_t size)
{
    const struct ring_world *world = ring_world_of(w);
    for (uint32_t i = 0; i < world->allocators; i++) {
        const struct sim_agent *agent = &w->agents[i];
        const struct allocator *a = sim_cpu_private(agent);
        if (agent->cpu->dead || (a->alloc.stage == KBTP_ALLOC_IDLE && a->remaining == 0))
            continue;
        if (a->alloc.stage == KBTP_ALLOC_IDLE)
            snprintf(why, size, "%s cannot begin its next allocation", agent->name);
        else
            snprintf(why, size, "%s still waits with ticket %u", agent->name, a->alloc.ticket);
        return true;
    }
    if (world->view.ghost->crashed)
        return false; /* frees of the slot that a dead allocator never consumes stay deferred */
    for (uint32_t i = 0; i < world->freers; i++) {
        const struct sim_agent *agent = &w->agents[world->allocators + i];
        const struct freer *f = sim_cpu_private(agent);
        if (f->deferred.count != 0) {
            snprintf(why, size, "%s still defers the free with ticket %u", agent->name,
                     f->frees[0].ticket);
            return true;
        }
    }
    return false;
}

/* ---- words ------------------------------------------------------------------------------- */

/* What the end of a poll means. */
static void describe_result(struct sim_world *w, const struct sim_access *access, char *out,
                            size_t size)
{
    const struct ring_world *world = ring_world_of(w);
    const struct sim_agent *agent = &w->agents[access->agent];
    int result = (int)(int64_t)access->value;
    out[0] = 0;
    if (access->agent < world->allocators) {
        const struct allocator *a = sim_cpu_private(agent);
        char block[32];
        sim_ring_describe_offset(&world->view, a->alloc.block_offset, block, sizeof block);
        if (result == ALLOCATOR_HAS_BLOCK)
            snprintf(out, size, "has %s with ticket %u", block, a->alloc.ticket);
        else if (result == ALLOCATOR_WAITS)
            snprintf(out, size, "must look again (ticket %u)", a->alloc.ticket);
        return;
    }
    const struct freer *f = sim_cpu_private(agent);
    if (access->argument & RING_RETRY) {
        snprintf(out, size, result ? "the deferred free is written" : "still deferred");
    } else if (result == KBTP_FREE_DEFERRED && f->deferred.count != 0) {
        const struct kbtp_deferred_free *newest = &f->frees[f->deferred.count - 1];
        snprintf(out, size, "defers the free of block %u (ticket %u)",
                 world->view.first_block + access->argument, newest->ticket);
    }
}

static void ring_describe(struct sim_world *w, const struct sim_access *access, char *out,
                          size_t size)
{
    const struct ring_world *world = ring_world_of(w);
    char place[64], value[64];
    if (access->kind == SIM_RESULT) {
        describe_result(w, access, out, size);
        return;
    }
    if (access->kind == SIM_CHOSEN) {
        if (access->agent < world->allocators)
            snprintf(out, size, "begins an allocation");
        else if (access->argument & RING_RETRY)
            snprintf(out, size, "looks at its deferred free %u", access->argument & ~RING_RETRY);
        else
            snprintf(out, size, "begins to free block %u",
                     world->view.first_block + access->argument);
        return;
    }
    if (access->kind == SIM_DIED) {
        snprintf(out, size, "dies");
        return;
    }
    sim_ring_describe_place(w, access, place, value, sizeof place);
    switch (access->kind) {
    case SIM_ATOMIC:
        snprintf(out, size, "FetchAdd %s: ticket %u", place, kbtp_counter_ticket(access->old));
        break;
    case SIM_LOAD:
    case SIM_READ:
        snprintf(out, size, "%s %s: %s", access->kind == SIM_LOAD ? "loads" : "reads", place,
                 value);
        break;
    default:
        snprintf(out, size, "%s %s: %s",
                 access->buffered            ? "buffers"
                 : access->kind == SIM_DRAIN ? "drains"
                 : access->kind == SIM_WRITE ? "writes"
                                             : "stores",
                 place, value);
    }
}

/*
 * Enabled at once, at most: by an allocator its 64 choices of an entry (an access or the pieces of
 * a transfer are fewer), the drains of its buffer, and its death; by a freer its deferred frees and
 * all that is bound, which are different blocks, and its drains.
 */
#define MAX_DRAINS 32u
_Static_assert(SIM_MAX_ALLOCATORS *(64u + MAX_DRAINS + 1u) +
                       SIM_MAX_FREERS * (SIM_RING_MAX_BLOCKS + MAX_DRAINS) <=
                   SIM_MAX_STEPS,
               "SIM_MAX_STEPS");
_Static_assert(2 * SIM_RING_MAX_BLOCKS <= SIM_MAX_CHOICES, "SIM_MAX_CHOICES");
_Static_assert(RING_REACH_COUNT <= SIM_MAX_REACH, "SIM_MAX_REACH");

/* ---- building ---------------------------------------------------------------------------- */

static const struct sim_world_ops ring_ops = {
    .wrote = ring_wrote,
    .published = ring_published,
    .open_requests = ring_open_requests,
    .describe = ring_describe,
};

static int build_memory(struct sim_world *w, struct ring_world *world)
{
    const struct sim_scenario *s = w->scenario;
    struct sim_ring_world *view = &world->view;
    struct sim_ring_memory *ring = &view->rings[0];
    view->rings_count = 1;
    ring->slot_count = s->slots;
    ring->block_count = s->blocks;
    view->block_count = s->blocks;
    view->first_block = s->first_block;
    view->block_size = s->block_size;
    view->addr_le = s->addr_le;
    view->unmasked = s->counters == SIM_COUNTERS_UNMASKED;
    view->entry_count = s->ring.handles * s->ring.allocators_count;
    ring->head = sim_region_new(&w->arena, "Head", 8, 0);
    ring->tail = sim_region_new(&w->arena, "Tail", 8, 0);
    ring->slots = sim_region_new(&w->arena, "ring slots", 16u * (size_t)s->slots, 0);
    view->ghost =
        sim_segment_new(&w->arena, "ghost records",
                        sizeof *view->ghost + s->blocks * sizeof view->ghost->blocks[0], SIM_STATE);
    if (!ring->head || !ring->tail || !ring->slots || !view->ghost)
        return -ENOMEM;
    if (view->entry_count == 0)
        return 0;
    view->table = sim_region_new(&w->arena, "block table", 16u * (size_t)view->entry_count, 0);
    view->entries = sim_segment_new(&w->arena, "ghost entries",
                                    view->entry_count * sizeof *view->entries, SIM_STATE);
    return view->table && view->entries ? 0 : -ENOMEM;
}

static int fill_ring(const struct sim_scenario *s, struct ring_world *world)
{
    struct mem direct = {.sim = NULL};
    struct kbtp_ring_config config = {.slot_count = s->slots,
                                      .block_count = s->blocks,
                                      .first_ticket = s->first_ticket,
                                      .unmasked = world->view.unmasked,
                                      .addr_le = s->addr_le};
    uint64_t offsets[SIM_RING_MAX_BLOCKS];
    for (uint32_t i = 0; i < s->blocks; i++)
        offsets[i] = sim_ring_offset_of(&world->view, i);
    return kbtp_ring_init(&direct, &world->pool.ring, &config, (void *)world->view.rings[0].slots,
                          (void *)world->view.rings[0].head, (void *)world->view.rings[0].tail,
                          offsets);
}

static int fill_table(const struct sim_scenario *s, struct ring_world *world)
{
    struct mem direct = {.sim = NULL};
    struct sim_ring_world *view = &world->view;
    uint16_t *generations = calloc(view->entry_count + 1u, sizeof *generations);
    if (!generations)
        return -ENOMEM;
    for (uint32_t i = 0; i < view->entry_count; i++) {
        generations[i] = (uint16_t)s->first_generation;
        view->entries[i].generation = generations[i];
    }
    int failed = kbtp_table_init(&direct, &world->pool.table, (void *)view->table,
                                 view->entry_count, s->addr_le, generations);
    free(generations);
    return failed;
}

static int add_agents(struct sim_world *w, struct ring_world *world)
{
    const struct sim_scenario *s = w->scenario;
    world->allocators = s->ring.allocators_count;
    world->freers = s->ring.freers_count;
    world->allocator_program = ring_allocator_program;
    world->freer_program = ring_freer_program;
    world->freer_program.private_size += s->blocks * (uint32_t)sizeof(struct kbtp_deferred_free);
    if (world->view.entry_count != 0)
        world->freer_program.max_accesses = 12;
    for (uint32_t i = 0; i < s->ring.allocators_count; i++) {
        int index = sim_cpu_add(w, s->ring.allocators[i].name, s->ring.allocators[i].agent,
                                &world->allocator_program);
        if (index < 0)
            return index;
        struct allocator *a = sim_cpu_private(&w->agents[index]);
        a->remaining = s->ring.allocators[i].allocations;
    }
    for (uint32_t i = 0; i < s->ring.freers_count; i++) {
        int index = sim_cpu_add(w, s->ring.freers[i].name, SIM_AGENT_CPU, &world->freer_program);
        if (index < 0)
            return index;
        struct freer *f = sim_cpu_private(&w->agents[index]);
        f->deferred = (struct kbtp_deferred){.frees = f->frees, .capacity = s->blocks};
    }
    if (s->ring.crashes == 0)
        return 0;
    w->agents[w->agents_count] = (struct sim_agent){
        .ops = &ring_fault_ops, .world = w, .name = SIM_ENVIRONMENT_NAME, .index = w->agents_count};
    w->agents_count++;
    return 0;
}

static void add_checkers(struct sim_world *w, bool table)
{
    static const struct sim_checker *const of_ring[] = {
        &sim_check_block_exists,      &sim_check_block_once,     &sim_check_slot_not_overwritten,
        &sim_check_sequence_in_order, &sim_check_counter_by_one, &sim_check_free_accepted,
        &sim_check_ring_whole};
    static const struct sim_checker *const of_table[] = {&sim_check_entry_published_whole,
                                                         &sim_check_generation_steps,
                                                         &sim_check_entry_cleared_first};
    for (size_t i = 0; i < sizeof of_ring / sizeof *of_ring; i++)
        w->checkers[w->checkers_count++] = of_ring[i];
    for (size_t i = 0; table && i < sizeof of_table / sizeof *of_table; i++)
        w->checkers[w->checkers_count++] = of_table[i];
}

int sim_ring_world_build(struct sim_world *w)
{
    struct ring_world *world = calloc(1, sizeof *world);
    if (!world)
        return -ENOMEM;
    w->kind = world;
    w->ops = &ring_ops;
    int failed = build_memory(w, world);
    if (!failed)
        failed = fill_ring(w->scenario, world);
    if (!failed && world->view.entry_count != 0)
        failed = fill_table(w->scenario, world);
    if (!failed)
        failed = add_agents(w, world);
    if (failed)
        return failed;
    add_checkers(w, world->view.entry_count != 0);
    sim_cpu_start(w);
    return 0;
}
