/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/ring_world.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ref/pool.h"
#include "sim/check.h"
#include "sim/cpu.h"

/* A segment of the ring or the table: small, so that a step saves and hashes little. */
#define REGION_SEGMENT_OCTETS 256u

static const char *const reach_names[] = {
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

/* The world as its programs and the environment see it. */
struct ring_world {
    struct sim_ring_world view; /* first: what checkers see */
    struct kbtp_pool pool;
    uint32_t allocators, freers; /* agents 0.. are allocators, then freers, then the fault */
    struct sim_program allocator_program, freer_program;
};

static struct ring_world *world_of(const struct sim_world *w)
{
    return w->kind;
}

int sim_ring_reach_index(const char *name)
{
    for (int i = 0; i < RING_REACH_COUNT; i++)
        if (strcmp(reach_names[i], name) == 0)
            return i;
    return -1;
}

/* ---- memory in the draft's formats -------------------------------------------------------- */

static uint64_t big_endian(const char *at, uint32_t octets)
{
    uint64_t value = 0;
    for (uint32_t i = 0; i < octets; i++)
        value = value << 8 | (unsigned char)at[i];
    return value;
}

static uint64_t little_endian(const char *at, uint32_t octets)
{
    uint64_t value = 0;
    for (uint32_t i = octets; i-- > 0;)
        value = value << 8 | (unsigned char)at[i];
    return value;
}

uint32_t sim_ring_sequence(const char *slot)
{
    return (uint32_t)big_endian(slot, 4);
}

uint64_t sim_ring_offset(const struct sim_ring_world *ring, const char *slot_or_entry)
{
    const char *at = slot_or_entry + 8;
    return ring->addr_le ? little_endian(at, 8) : big_endian(at, 8);
}

uint16_t sim_ring_entry_flags(const char *entry)
{
    return (uint16_t)big_endian(entry, 2);
}

uint16_t sim_ring_entry_generation(const char *entry)
{
    return (uint16_t)big_endian(entry + 2, 2);
}

uint32_t sim_ring_entry_length(const char *entry)
{
    return (uint32_t)big_endian(entry + 4, 4);
}

uint64_t sim_ring_counter_value(const char *counter)
{
    uint64_t value;
    memcpy(&value, counter, sizeof value);
    return value;
}

static uint64_t offset_of_block(const struct sim_ring_world *ring, uint32_t index)
{
    return (ring->first_block + (uint64_t)index) * ring->block_size;
}

uint32_t sim_ring_block_at(const struct sim_ring_world *ring, uint64_t block_offset)
{
    uint64_t number = block_offset / ring->block_size;
    if (block_offset % ring->block_size != 0 || number < ring->first_block ||
        number - ring->first_block >= ring->block_count)
        return RING_NO_BLOCK;
    return (uint32_t)(number - ring->first_block);
}

uint32_t sim_ring_length(const struct sim_ring_world *ring, uint32_t index)
{
    (void)ring;
    return 1000 + index;
}

static const char *element_at(const char *base, uint32_t count, const char *at)
{
    if (!base || at < base || at >= base + 16u * (size_t)count)
        return NULL;
    return at - (at - base) % 16;
}

const char *sim_ring_slot_at(const struct sim_ring_world *ring, const char *at)
{
    return element_at(ring->slots, ring->slot_count, at);
}

const char *sim_ring_entry_at(const struct sim_ring_world *ring, const char *at)
{
    return element_at(ring->table, ring->entry_count, at);
}

/* ---- allocators --------------------------------------------------------------------------- */

struct allocator {
    struct kbtp_alloc alloc;
    uint32_t remaining; /* allocations to make */
    uint32_t entry;     /* of the table, for the allocation in progress */
};

enum allocator_result { ALLOCATOR_TOOK_TICKET, ALLOCATOR_WAITS, ALLOCATOR_HAS_BLOCK, ALLOCATOR_BOUND };

static int allocator_poll(struct sim_agent *agent, void *private, uint32_t argument)
{
    struct allocator *a = private;
    struct ring_world *world = world_of(agent->world);
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
    struct ring_world *world = world_of(w);
    struct sim_ring_ghost *ghost = world->view.ghost;
    sim_event(w, agent->index, RING_HANDED_OUT, a->alloc.block_offset);
    if (w->violation.property)
        return;
    uint32_t index = sim_ring_block_at(&world->view, a->alloc.block_offset);
    struct sim_ring_block *block = &ghost->blocks[index];
    sim_ghost_write(w, block, sizeof *block);
    *block = (struct sim_ring_block){
        .place = RING_HELD, .agent = (uint8_t)agent->index, .entry = (uint8_t)a->entry};
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

/* The allocator's lowest entry that is free to be bound, or UINT32_MAX. */
static uint32_t free_entry(const struct sim_agent *agent)
{
    const struct sim_ring_world *ring = sim_ring_of(agent->world);
    uint32_t handles = agent->world->scenario->handles;
    for (uint32_t i = agent->index * handles; i < (agent->index + 1) * handles; i++) {
        sim_ghost_read(agent->world, &ring->entries[i], sizeof ring->entries[i]);
        if (ring->entries[i].state == RING_UNBOUND)
            return i;
    }
    return UINT32_MAX;
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
    if (w->scenario->quota != 0 && ring->ghost->usage >= w->scenario->quota)
        return 0;
    if (ring->entry_count != 0 && free_entry(agent) == UINT32_MAX)
        return 0;
    out[0] = 0;
    return 1;
}

static void allocator_begin(struct sim_agent *agent, void *private, uint32_t argument)
{
    struct allocator *a = private;
    struct sim_world *w = agent->world;
    struct sim_ring_world *ring = sim_ring_of(w);
    (void)argument;
    a->remaining--;
    sim_ghost_write(w, &ring->ghost->usage, sizeof ring->ghost->usage);
    ring->ghost->usage++;
    if (ring->ghost->usage == w->scenario->quota)
        sim_reach(w, RING_REACH_QUOTA_FULL);
    if (ring->entry_count != 0) {
        a->entry = free_entry(agent);
        sim_ghost_write(w, &ring->entries[a->entry], sizeof(struct sim_ring_entry));
        ring->entries[a->entry].state = RING_BINDING;
    }
}

static bool allocator_due(const void *private)
{
    const struct allocator *a = private;
    return a->alloc.stage != KBTP_ALLOC_IDLE;
}

static const struct sim_program allocator_program = {
    .private_size = sizeof(struct allocator),
    .max_accesses = 6, /* an unordered slot read and its confirmation are two results each */
    .poll = allocator_poll,
    .ended = allocator_ended,
    .choices = allocator_choices,
    .begin = allocator_begin,
    .due = allocator_due,
};

/* ---- freers ------------------------------------------------------------------------------- */

struct freer {
    struct kbtp_deferred deferred; /* its memory are the frees below: inside the arena */
    uint32_t entry;                /* of the table, for the free in progress */
    uint32_t zero;
    struct kbtp_deferred_free frees[]; /* block_count of them */
};

/* Arguments of a freer's polls: a block to free, or a deferred free to look at again. */
#define RETRY 0x100u

static int freer_poll(struct sim_agent *agent, void *private, uint32_t argument)
{
    struct freer *f = private;
    struct ring_world *world = world_of(agent->world);
    if (argument & RETRY)
        return kbtp_ring_retry_deferred(&agent->mem, &world->pool.ring, &f->deferred,
                                        argument & ~RETRY);
    if (world->view.entry_count != 0)
        return kbtp_pool_free(&agent->mem, &world->pool, &f->deferred, f->entry);
    return kbtp_ring_free(&agent->mem, &world->pool.ring, &f->deferred,
                          offset_of_block(&world->view, argument));
}

/* Is another free waiting for the slot of the one that was just deferred? */
static bool slot_has_two(const struct sim_world *w, const struct freer *newest)
{
    const struct ring_world *world = world_of(w);
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
    bool late = w->scenario->free_completes == SIM_FREE_COMPLETES_WRITTEN;
    if (argument & RETRY) {
        if (result == 0)
            return;
        sim_reach(w, RING_REACH_DEFERRED_WRITE);
        if (late)
            sim_cpu_publish(agent, RING_FREE_COMPLETED, 0);
        return;
    }
    if (result < 0) {
        sim_violate(w, "free-accepted", "%s is refused the free of a bound block: %d", agent->name,
                    result);
        return;
    }
    if (result == KBTP_FREE_DEFERRED) {
        sim_reach(w, RING_REACH_DEFERRAL);
        if (slot_has_two(w, f))
            sim_reach(w, RING_REACH_TWO_DEFERRALS);
        if (late)
            return;
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
        out[count++] = RETRY | i;
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
    if (argument & RETRY)
        return;
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

static const struct sim_program freer_program = {
    .private_size = sizeof(struct freer), /* and the deferred frees */
    .max_accesses = 6,                    /* the slot of a free; kbtp_pool_free() makes more */
    .poll = freer_poll,
    .ended = freer_ended,
    .choices = freer_choices,
    .begin = freer_begin,
    .due = freer_due,
};

/* ---- an allocator may die between FetchAdd and the consumption of its slot ------------------ */

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
    if (sim_ring_of(w)->ghost->crashed == w->scenario->crashes)
        return 0;
    for (uint32_t i = 0; i < world_of(w)->allocators; i++)
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

static const struct sim_agent_ops fault_ops = {
    .enabled = fault_enabled,
    .run = fault_run,
    .at_rest = fault_at_rest,
};

/* ---- ghost records ------------------------------------------------------------------------ */

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
    if (entry->state == RING_BINDING && (sim_ring_entry_flags(at) & 1)) {
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
    const struct ring_world *world = world_of(w);
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

/* ---- words -------------------------------------------------------------------------------- */

static void describe_offset(const struct sim_ring_world *ring, uint64_t offset, char *out,
                            size_t size)
{
    uint32_t index = sim_ring_block_at(ring, offset);
    if (offset == UINT64_MAX)
        snprintf(out, size, "empty");
    else if (index == RING_NO_BLOCK)
        snprintf(out, size, "%#llx", (unsigned long long)offset);
    else
        snprintf(out, size, "block %u", ring->first_block + index);
}

void sim_ring_describe_slot(const struct sim_world *w, uint32_t number, char *out, size_t size)
{
    const struct sim_ring_world *ring = sim_ring_of(w);
    const char *slot = ring->slots + 16u * number;
    char block[32];
    describe_offset(ring, sim_ring_offset(ring, slot), block, sizeof block);
    snprintf(out, size, "%u: %s", sim_ring_sequence(slot),
             strncmp(block, "block ", 6) == 0 ? block + 6 : block);
}

void sim_ring_describe_entry(const struct sim_world *w, uint32_t number, char *out, size_t size)
{
    const struct sim_ring_world *ring = sim_ring_of(w);
    const char *entry = ring->table + 16u * number;
    char block[32];
    describe_offset(ring, sim_ring_offset(ring, entry), block, sizeof block);
    snprintf(out, size, "gen %u%s", sim_ring_entry_generation(entry),
             sim_ring_entry_flags(entry) & 1 ? " VALID" : "");
}

/* The place and the value of an access: "slot 0 Block Offset", "block 101". */
static void describe_place(const struct sim_world *w, const struct sim_access *access, char *place,
                           char *value, size_t size)
{
    const struct sim_ring_world *ring = sim_ring_of(w);
    const char *at = access->at, *element;
    char image[16] = {0};
    snprintf(value, size, "%#llx", (unsigned long long)access->value);
    if (at == ring->head || at == ring->tail) {
        snprintf(place, size, at == ring->head ? "Head" : "Tail");
        snprintf(value, size, "ticket %u", kbtp_counter_ticket(access->value));
        return;
    }
    bool is_slot = (element = sim_ring_slot_at(ring, at)) != NULL;
    if (!is_slot)
        element = sim_ring_entry_at(ring, at);
    uint32_t field = (uint32_t)(at - element);
    uint32_t number = (uint32_t)(element - (is_slot ? ring->slots : ring->table)) / 16;
    memcpy(image + field, &access->value, access->octets);
    static const char *const slot_fields[] = {"Sequence", "Reserved", "Block Offset",
                                              "Block Offset (2nd half)"};
    static const char *const entry_fields[] = {"Flags and Generation", "Data Length",
                                               "Block Offset", "Block Offset (2nd half)"};
    const char *name = (is_slot ? slot_fields : entry_fields)[field / 4];
    if (field == 0 && access->octets == 8)
        name = is_slot ? "Sequence, Reserved" : "Flags, Generation, Data Length";
    snprintf(place, size, "%s %u %s", is_slot ? "slot" : "entry", number, name);
    if (field == 0 && is_slot)
        snprintf(value, size, "%u", sim_ring_sequence(image));
    else if (field == 0)
        snprintf(value, size, "%sgeneration %u", sim_ring_entry_flags(image) & 1 ? "VALID, " : "",
                 sim_ring_entry_generation(image));
    else if (field == 4 && !is_slot)
        snprintf(value, size, "%u octets", sim_ring_entry_length(image));
    else if (field == 8 && access->octets == 8)
        describe_offset(ring, sim_ring_offset(ring, image), value, size);
}

/* What the end of a poll means. */
static void describe_result(struct sim_world *w, const struct sim_access *access, char *out,
                            size_t size)
{
    const struct ring_world *world = world_of(w);
    const struct sim_agent *agent = &w->agents[access->agent];
    int result = (int)(int64_t)access->value;
    out[0] = 0;
    if (access->agent < world->allocators) {
        const struct allocator *a = sim_cpu_private(agent);
        char block[32];
        describe_offset(&world->view, a->alloc.block_offset, block, sizeof block);
        if (result == ALLOCATOR_HAS_BLOCK)
            snprintf(out, size, "has %s with ticket %u", block, a->alloc.ticket);
        else if (result == ALLOCATOR_WAITS)
            snprintf(out, size, "must look again (ticket %u)", a->alloc.ticket);
        return;
    }
    const struct freer *f = sim_cpu_private(agent);
    if (access->argument & RETRY) {
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
    const struct ring_world *world = world_of(w);
    char place[64], value[64];
    if (access->kind == SIM_RESULT) {
        describe_result(w, access, out, size);
        return;
    }
    if (access->kind == SIM_CHOSEN) {
        if (access->agent < world->allocators)
            snprintf(out, size, "begins an allocation");
        else if (access->argument & RETRY)
            snprintf(out, size, "looks at its deferred free %u", access->argument & ~RETRY);
        else
            snprintf(out, size, "begins to free block %u",
                     world->view.first_block + access->argument);
        return;
    }
    if (access->kind == SIM_DIED) {
        snprintf(out, size, "dies");
        return;
    }
    describe_place(w, access, place, value, sizeof place);
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

/* ---- building ----------------------------------------------------------------------------- */

static const struct sim_world_ops ring_ops = {
    .wrote = ring_wrote,
    .published = ring_published,
    .open_requests = ring_open_requests,
    .describe = ring_describe,
};

/* Memory that agents reach: small segments, one after the other. */
static char *region_new(struct sim_world *w, const char *name, size_t octets)
{
    char *first = NULL;
    for (size_t done = 0; done < octets; done += REGION_SEGMENT_OCTETS) {
        size_t rest = octets - done;
        char *at = sim_segment_new(&w->arena, name,
                                   rest < REGION_SEGMENT_OCTETS ? rest : REGION_SEGMENT_OCTETS,
                                   SIM_STATE);
        if (!at)
            return NULL;
        sim_segment_of(&w->arena, at)->granted = true;
        if (!first)
            first = at;
    }
    return first;
}

static int build_memory(struct sim_world *w, struct ring_world *world)
{
    const struct sim_scenario *s = w->scenario;
    struct sim_ring_world *view = &world->view;
    view->slot_count = s->slots;
    view->block_count = s->blocks;
    view->first_block = s->first_block;
    view->block_size = s->block_size;
    view->addr_le = s->addr_le;
    view->unmasked = s->counters == SIM_COUNTERS_UNMASKED;
    view->entry_count = s->handles * s->allocators_count;
    view->head = region_new(w, "Head", 8);
    view->tail = region_new(w, "Tail", 8);
    view->slots = region_new(w, "ring slots", 16u * (size_t)s->slots);
    view->ghost = sim_segment_new(
        &w->arena, "ghost records",
        sizeof *view->ghost + s->blocks * sizeof view->ghost->blocks[0], SIM_STATE);
    if (!view->head || !view->tail || !view->slots || !view->ghost)
        return -ENOMEM;
    if (view->entry_count == 0)
        return 0;
    view->table = region_new(w, "block table", 16u * (size_t)view->entry_count);
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
        offsets[i] = offset_of_block(&world->view, i);
    return kbtp_ring_init(&direct, &world->pool.ring, &config, (void *)world->view.slots,
                          (void *)world->view.head, (void *)world->view.tail, offsets);
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
    world->allocators = s->allocators_count;
    world->freers = s->freers_count;
    world->allocator_program = allocator_program;
    world->freer_program = freer_program;
    world->freer_program.private_size += s->blocks * (uint32_t)sizeof(struct kbtp_deferred_free);
    if (world->view.entry_count != 0)
        world->freer_program.max_accesses = 12;
    for (uint32_t i = 0; i < s->allocators_count; i++) {
        int index = sim_cpu_add(w, s->allocators[i].name, s->allocators[i].agent,
                                &world->allocator_program);
        if (index < 0)
            return index;
        struct allocator *a = sim_cpu_private(&w->agents[index]);
        a->remaining = s->allocators[i].allocations;
    }
    for (uint32_t i = 0; i < s->freers_count; i++) {
        int index = sim_cpu_add(w, s->freers[i].name, SIM_AGENT_CPU, &world->freer_program);
        if (index < 0)
            return index;
        struct freer *f = sim_cpu_private(&w->agents[index]);
        f->deferred = (struct kbtp_deferred){.frees = f->frees, .capacity = s->blocks};
    }
    if (s->crashes == 0)
        return 0;
    w->agents[w->agents_count] = (struct sim_agent){
        .ops = &fault_ops, .world = w, .name = "fault", .index = w->agents_count};
    w->agents_count++;
    return 0;
}

static void add_checkers(struct sim_world *w, bool table)
{
    static const struct sim_checker *const of_ring[] = {
        &sim_check_block_exists,      &sim_check_block_once,     &sim_check_slot_not_overwritten,
        &sim_check_sequence_in_order, &sim_check_counter_by_one, &sim_check_ring_whole};
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
    w->reach_names = reach_names;
    w->reach_count = RING_REACH_COUNT;
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
