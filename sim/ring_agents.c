/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/ring_agents.h"

#include <string.h>

/* ---- allocators -------------------------------------------------------------------------- */

static int allocator_poll(struct sim_agent *agent, void *private, uint32_t argument)
{
    struct allocator *a = private;
    struct ring_world *world = ring_world_of(agent->world);
    (void)argument;
    if (a->alloc.stage == KBTP_ALLOC_IDLE) {
        kbtp_ring_take_ticket(&agent->mem, &world->pool.ring, &a->alloc);
        return ALLOCATOR_TOOK_TICKET;
    }
    if (a->alloc.stage == KBTP_ALLOC_DONE) {
        uint32_t block = sim_ring_block_at(&world->view, a->alloc.block_offset);
        kbtp_table_bind(&agent->mem, &world->pool.table, a->entry, a->alloc.block_offset,
                        sim_ring_length(&world->view, block), true);
        return ALLOCATOR_BOUND;
    }
    bool done = agent->kind == SIM_AGENT_RNIC
                    ? kbtp_ring_poll_unordered(&agent->mem, &world->pool.ring, &a->alloc)
                    : kbtp_ring_poll_ordered(&agent->mem, &world->pool.ring, &a->alloc);
    return done ? ALLOCATOR_HAS_BLOCK : ALLOCATOR_WAITS;
}

static void took_ticket(struct sim_world *w, uint32_t ticket)
{
    uint32_t first = w->scenario->first_ticket;
    if (ticket != first && ticket % w->scenario->slots == 0)
        sim_reach(w, RING_REACH_RING_WRAP);
    if (ticket < first)
        sim_reach(w, RING_REACH_TICKET_WRAP);
}

static void has_block(struct sim_agent *agent, struct allocator *a)
{
    struct sim_world *w = agent->world;
    struct ring_world *world = ring_world_of(w);
    struct sim_ring_ghost *ghost = world->view.ghost;
    sim_event(w, agent->index, RING_HANDED_OUT, a->alloc.block_offset);
    if (w->violation.property)
        return;
    uint32_t index = sim_ring_block_at(&world->view, a->alloc.block_offset);
    struct sim_ring_block *block = &ghost->blocks[index];
    sim_ghost_write(w, block, sizeof *block);
    *block = (struct sim_ring_block){
        .place = RING_HELD, .agent = (uint8_t)agent->index, .entry = (uint16_t)a->entry};
    if (world->view.entry_count != 0) {
        sim_ghost_write(w, &world->view.entries[a->entry], sizeof(struct sim_ring_entry));
        world->view.entries[a->entry].block = (uint8_t)index;
        return; /* the next poll binds it */
    }
    memset(&a->alloc, 0, sizeof a->alloc);
    sim_cpu_publish(agent, RING_NOW_BOUND, index);
}

static void allocator_ended(struct sim_agent *agent, void *private, uint32_t argument, int result)
{
    struct allocator *a = private;
    struct sim_world *w = agent->world;
    (void)argument;
    switch (result) {
    case ALLOCATOR_TOOK_TICKET:
        took_ticket(w, a->alloc.ticket);
        break;
    case ALLOCATOR_WAITS:
        sim_reach(w, RING_REACH_WAIT);
        if (agent->kind == SIM_AGENT_RNIC && w->poll_accesses > 2) /* 16 octets are two results */
            sim_reach(w, RING_REACH_UNCONFIRMED);
        break;
    case ALLOCATOR_HAS_BLOCK:
        has_block(agent, a);
        break;
    default:
        memset(&a->alloc, 0, sizeof a->alloc);
        a->entry = 0;
    }
}

static uint32_t allocator_choices(const struct sim_agent *agent, const void *private,
                                  uint32_t out[SIM_MAX_CHOICES])
{
    const struct allocator *a = private;
    struct sim_world *w = agent->world;
    const struct sim_ring_world *ring = sim_ring_of(w);
    if (a->remaining == 0)
        return 0;
    /* The first access is an atomic, which waits for the buffer: to begin before is no gain. */
    if (w->stepping.private_steps && !sim_cpu_buffer_empty(agent))
        return 0;
    if (w->scenario->ring.quota != 0 && ring->ghost->usage >= w->scenario->ring.quota)
        return 0;
    if (ring->entry_count == 0) {
        out[0] = 0;
        return 1;
    }
    /* Any handle of its own that is not bound. */
    uint32_t count = 0, handles = w->scenario->ring.handles;
    for (uint32_t i = agent->index * handles; i < (agent->index + 1) * handles; i++)
        if (ring->entries[i].state == RING_UNBOUND)
            out[count++] = i;
    return count;
}

static void allocator_begin(struct sim_agent *agent, void *private, uint32_t argument)
{
    struct allocator *a = private;
    struct sim_world *w = agent->world;
    struct sim_ring_world *ring = sim_ring_of(w);
    a->remaining--;
    sim_ghost_write(w, &ring->ghost->usage, sizeof ring->ghost->usage);
    ring->ghost->usage++;
    if (ring->ghost->usage == w->scenario->ring.quota)
        sim_reach(w, RING_REACH_QUOTA_FULL);
    if (ring->entry_count != 0) {
        a->entry = argument;
        sim_ghost_write(w, &ring->entries[a->entry], sizeof(struct sim_ring_entry));
        ring->entries[a->entry].state = RING_BINDING;
    }
}

static bool allocator_due(const void *private)
{
    const struct allocator *a = private;
    return a->alloc.stage != KBTP_ALLOC_IDLE;
}

const struct sim_program ring_allocator_program = {
    .private_size = sizeof(struct allocator),
    .max_accesses = 6, /* an unordered slot read and its confirmation are two results each */
    .poll = allocator_poll,
    .ended = allocator_ended,
    .choices = allocator_choices,
    .begin = allocator_begin,
    .due = allocator_due,
};

/* ---- freers ------------------------------------------------------------------------------ */

static int freer_poll(struct sim_agent *agent, void *private, uint32_t argument)
{
    struct freer *f = private;
    struct ring_world *world = ring_world_of(agent->world);
    if (argument & RING_RETRY)
        return kbtp_ring_retry_deferred(&agent->mem, &world->pool.ring, &f->deferred,
                                        argument & ~RING_RETRY);
    if (world->view.entry_count != 0)
        return kbtp_pool_free(&agent->mem, &world->pool, &f->deferred, f->entry);
    return kbtp_ring_free(&agent->mem, &world->pool.ring, &f->deferred,
                          sim_ring_offset_of(&world->view, argument));
}

/* Is another free waiting for the slot of the one that was just deferred? */
static bool slot_has_two(const struct sim_world *w, const struct freer *newest)
{
    const struct ring_world *world = ring_world_of(w);
    uint32_t slots = w->scenario->slots, same = 0;
    uint32_t ticket = newest->frees[newest->deferred.count - 1].ticket;
    for (uint32_t i = 0; i < world->freers; i++) {
        const struct freer *f = sim_cpu_private(&w->agents[world->allocators + i]);
        for (uint32_t j = 0; j < f->deferred.count; j++)
            same += f->frees[j].ticket % slots == ticket % slots;
    }
    return same > 1;
}

static void freer_ended(struct sim_agent *agent, void *private, uint32_t argument, int result)
{
    struct freer *f = private;
    struct sim_world *w = agent->world;
    bool late = w->scenario->ring.free_completes == SIM_FREE_COMPLETES_WRITTEN;
    if (argument & RING_RETRY) {
        if (result != 0) {
            sim_reach(w, RING_REACH_DEFERRED_WRITE);
            if (late)
                sim_cpu_publish(agent, RING_FREE_COMPLETED, f->entry);
        }
        f->entry = 0;
        return;
    }
    if (result < 0) {
        sim_event(w, agent->index, RING_FREE_REFUSED, argument);
        return;
    }
    if (result == KBTP_FREE_DEFERRED) {
        sim_reach(w, RING_REACH_DEFERRAL);
        if (slot_has_two(w, f))
            sim_reach(w, RING_REACH_TWO_DEFERRALS);
        if (late) {
            f->entry = 0;
            return;
        }
    }
    sim_cpu_publish(agent, RING_FREE_COMPLETED, f->entry);
    f->entry = 0;
}

static uint32_t freer_choices(const struct sim_agent *agent, const void *private,
                              uint32_t out[SIM_MAX_CHOICES])
{
    const struct freer *f = private;
    struct sim_world *w = agent->world;
    const struct sim_ring_world *ring = sim_ring_of(w);
    uint32_t count = 0;
    for (uint32_t i = 0; i < f->deferred.count; i++)
        out[count++] = RING_RETRY | i;
    /* Without a table the first access is an atomic, as for allocators. */
    if (w->stepping.private_steps && ring->entry_count == 0 && !sim_cpu_buffer_empty(agent))
        return count;
    for (uint32_t i = 0; i < ring->block_count; i++)
        if (ring->ghost->blocks[i].place == RING_BOUND)
            out[count++] = i;
    return count;
}

static void freer_begin(struct sim_agent *agent, void *private, uint32_t argument)
{
    struct sim_world *w = agent->world;
    struct sim_ring_world *ring = sim_ring_of(w);
    struct freer *f = private;
    if (argument & RING_RETRY) { /* whose entry is it for? */
        uint64_t offset = f->frees[argument & ~RING_RETRY].block_offset;
        uint32_t deferred = sim_ring_block_at(ring, offset);
        if (deferred != RING_NO_BLOCK)
            f->entry = ring->ghost->blocks[deferred].entry;
        return;
    }
    struct sim_ring_block *block = &ring->ghost->blocks[argument];
    sim_ghost_write(w, block, sizeof *block);
    block->place = RING_FREEING;
    block->agent = (uint8_t)agent->index;
    if (ring->entry_count != 0) {
        f->entry = block->entry;
        sim_ghost_write(w, &ring->entries[f->entry], sizeof(struct sim_ring_entry));
        ring->entries[f->entry].state = RING_ENTRY_FREEING;
    }
}

static bool freer_due(const void *private)
{
    (void)private;
    return false;
}

const struct sim_program ring_freer_program = {
    .private_size = sizeof(struct freer), /* and the deferred frees */
    .max_accesses = 6,                    /* the slot of a free; kbtp_pool_free() makes more */
    .poll = freer_poll,
    .ended = freer_ended,
    .choices = freer_choices,
    .begin = freer_begin,
    .due = freer_due,
};

/* ---- an allocator may die between FetchAdd and the consumption of its slot --------------- */

static bool may_die(const struct sim_world *w, uint32_t agent)
{
    const struct allocator *a = sim_cpu_private(&w->agents[agent]);
    return !w->agents[agent].cpu->dead && a->alloc.stage == KBTP_ALLOC_WAIT &&
           w->agents[agent].ops->at_rest(&w->agents[agent]);
}

static uint32_t fault_enabled(const struct sim_agent *agent, struct sim_step *out)
{
    const struct sim_world *w = agent->world;
    uint32_t count = 0;
    if (sim_ring_of(w)->ghost->crashed == w->scenario->ring.crashes)
        return 0;
    for (uint32_t i = 0; i < ring_world_of(w)->allocators; i++)
        if (may_die(w, i))
            out[count++] = (struct sim_step){
                .kind = SIM_STEP_FAULT, .agent = (uint8_t)agent->index, .queue = (uint8_t)i};
    return count;
}

static void fault_run(struct sim_agent *agent, const struct sim_step *step)
{
    struct sim_world *w = agent->world;
    struct sim_ring_ghost *ghost = sim_ring_of(w)->ghost;
    sim_ghost_write(w, &ghost->crashed, sizeof ghost->crashed);
    ghost->crashed++;
    sim_reach(w, RING_REACH_CRASH);
    sim_cpu_kill(&w->agents[step->queue]);
}

static bool fault_at_rest(const struct sim_agent *agent)
{
    (void)agent;
    return true;
}

const struct sim_agent_ops ring_fault_ops = {
    .enabled = fault_enabled,
    .run = fault_run,
    .at_rest = fault_at_rest,
};
