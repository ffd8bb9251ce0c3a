/* SPDX-License-Identifier: BSD-3-Clause */
/* Building a protocol world. */
#include "sim/protocol_world.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/check.h"
#include "sim/program.h"
#include "sim/protocol_agents.h"
#include "sim/protocol_counts.h"
#include "sim/rnic.h"

#define ADDRESS "target"
#define MAX_READS 4u
#define WORKER_SGES 1u
#define BUFFERS_BASE UINT64_C(0x100000) /* Tagged Offset of the first buffer of an initiator */

/* ---- quiescence -------------------------------------------------------------------------- */

static bool worker_is_busy(const struct sim_world *w, uint32_t worker, char *why, size_t size)
{
    struct kbtp_worker_look look;
    kbtp_worker_look(protocol_worker_of(w, worker), &look);
    if (look.requests == 0 && look.deferred == 0 && look.loads == 0 && look.releases == 0)
        return false;
    snprintf(why, size, "%s has %u requests, %u deferred frees, %u loads and %u releases open",
             w->agents[worker].name, look.requests, look.deferred, look.loads, look.releases);
    return true;
}

/* A ticket of its partition has a block, and will be bound or abandoned: its own poll is due, or a
 * timer. One for which a later ticket waits is abandoned, if anything: it was due before (I-18). */
static bool a_timer_helps(const struct sim_world *w, uint32_t initiator)
{
    const struct protocol_initiator *it = protocol_initiator_of(w, initiator);
    struct sim_tickets tickets = sim_protocol_tickets(w, initiator);
    if (kbtp_initiator_waiting(it->library) != 0 && w->scenario->protocol.ticket_timeout &&
        (w->scenario->protocol.initiators[initiator].gives_up || tickets.unbound == 0))
        return true; /* it gives up some time, or sees that its ticket was abandoned */
    bool is_due = tickets.with_block > tickets.earlier;
    return (is_due && kbtp_initiator_outstanding(it->library) != 0) ||
           (tickets.with_block != 0 && sim_protocol_may_time_out(w, initiator));
}

static bool a_timer_helps_somebody(const struct sim_world *w)
{
    for (uint32_t i = 0; i < sim_protocol_of(w)->initiators; i++)
        if (a_timer_helps(w, i))
            return true;
    return false;
}

/* An initiator that lost its last connection, or waits for one that did, is through; and so is one
 * that was refused. */
static bool is_stranded(const struct sim_world *w, uint32_t initiator)
{
    const struct protocol_initiator *it = protocol_initiator_of(w, initiator);
    bool faults = protocol_had_faults(w) || w->scenario->protocol.ticket_timeout;
    return (faults || it->refused) && kbtp_initiator_outstanding(it->library) == 0;
}

/* Does time go on: until a connection has answered, or another try is made? Then nothing is
 * decided. */
static bool time_runs(const struct sim_world *w)
{
    const struct sim_protocol_world *p = sim_protocol_of(w);
    for (uint32_t i = 0; i < p->workers; i++) {
        struct kbtp_worker_look look;
        kbtp_worker_look(protocol_worker_of(w, i), &look);
        if (look.probes != 0)
            return true;
    }
    for (uint32_t i = 0; i < p->initiators; i++)
        if (!w->agents[p->first_initiator + i].cpu->dead &&
            kbtp_initiator_state(protocol_initiator_of(w, i)->library) == KBTP_INITIATOR_WAITING)
            return true;
    return false;
}

/* One that comes when another has stopped, or all have gone and their retention is over, need not
 * come. */
static bool is_uncalled(const struct sim_world *w, uint32_t initiator)
{
    const struct sim_initiator *s = &w->scenario->protocol.initiators[initiator];
    const struct protocol_initiator *it = protocol_initiator_of(w, initiator);
    return (s->restart && it->next == 0 && !protocol_has_stopped(w, s->session)) ||
           (s->stranger && it->next == 0 && sim_protocol_is_retained(w, s->session));
}

static bool initiator_is_busy(const struct sim_world *w, uint32_t initiator, char *why, size_t size)
{
    const struct sim_initiator *s = &w->scenario->protocol.initiators[initiator];
    const struct protocol_initiator *it = protocol_initiator_of(w, initiator);
    uint32_t outstanding = kbtp_initiator_outstanding(it->library);
    if (protocol_has_stopped(w, initiator) || is_uncalled(w, initiator))
        return false;
    if (outstanding == 0 &&
        ((it->next == s->program_count && !it->goodbye) || is_stranded(w, initiator)))
        return false;
    if (outstanding != 0)
        snprintf(why, size, "%u requests of %s have no outcome", outstanding, s->name);
    else
        snprintf(why, size, "%s cannot go on to request %u", s->name, it->next + 1);
    return true;
}

static bool open_requests(struct sim_world *w, char *why, size_t size)
{
    const struct sim_protocol_world *p = sim_protocol_of(w);
    if (time_runs(w) || a_timer_helps_somebody(w))
        return false;
    for (uint32_t i = 0; i < p->initiators; i++)
        if (initiator_is_busy(w, i, why, size))
            return true;
    for (uint32_t i = 0; i < p->workers; i++)
        if (worker_is_busy(w, i, why, size))
            return true;
    return false;
}

static const struct sim_world_ops protocol_ops = {
    .wrote = protocol_wrote,
    .message = protocol_message,
    .open_requests = open_requests,
    .describe = protocol_describe,
};

/* ---- memory ------------------------------------------------------------------------------ */

static bool has_partition(const struct sim_initiator *s)
{
    return sim_program_allocates_directly(s) && s->quota != 0;
}

/* Partitions lie behind the blocks that all share, in the order of the initiators. */
static int partitions_memory(struct sim_world *w, struct sim_protocol_world *p,
                             struct kbtp_target_memory *memory)
{
    const struct sim_protocol_part *part = &w->scenario->protocol;
    uint32_t slots = 0, shared = w->scenario->blocks;
    memory->partitions = sim_segment_new(
        &w->arena, "partitions", part->initiators_count * sizeof *memory->partitions, SIM_CONST);
    if (!memory->partitions)
        return -ENOMEM;
    for (uint32_t i = 0; i < part->sessions_count; i++)
        shared -= has_partition(&part->initiators[i]) ? part->initiators[i].quota : 0;
    p->ring.rings[0].block_count = shared;
    for (uint32_t i = 0; i < part->sessions_count; i++) {
        const struct sim_initiator *s = &part->initiators[i];
        if (!has_partition(s))
            continue;
        uint32_t n = kbtp_partition_slots(s->quota);
        struct kbtp_partition *partition = &memory->partitions[p->ring.rings_count - 1];
        struct sim_ring_memory *ring = &p->ring.rings[p->ring.rings_count++];
        *ring = (struct sim_ring_memory){
            .slots = sim_region_new(&w->arena, "partition's slots", 16u * (size_t)n, 0),
            .head = sim_region_new(&w->arena, "partition's Head", 8, 0),
            .tail = sim_region_new(&w->arena, "partition's Tail", 8, 0),
            .owner = s->name,
            .slot_count = n,
            .first_block = shared,
            .block_count = s->quota};
        if (!ring->slots || !ring->head || !ring->tail)
            return -ENOMEM;
        /* As kbtp_target_init() will find it, and as kbtp_worker_memory() needs it before. */
        partition->ring = (struct kbtp_ring){.slots = (void *)ring->slots,
                                             .head = (void *)ring->head,
                                             .tail = (void *)ring->tail,
                                             .config.slot_count = n};
        partition->first_slot = slots;
        shared += s->quota;
        slots += n;
    }
    return 0;
}

/* The parts of kbtp_target_memory, each in segments of its own. */
static int target_memory(struct sim_world *w, struct kbtp_target_memory *memory)
{
    const struct sim_scenario *s = w->scenario;
    const struct sim_protocol_part *part = &s->protocol;
    uint32_t entries = part->handles * part->sessions_count;
    size_t sessions = part->sessions_count * sizeof(struct kbtp_session);
    *memory = (struct kbtp_target_memory){
        .slots = (void *)sim_region_new(&w->arena, "ring slots", 16u * (size_t)s->slots, 0),
        .head = (void *)sim_region_new(&w->arena, "Head", 8, 0),
        .tail = (void *)sim_region_new(&w->arena, "Tail", 8, 0),
        .entries = (void *)sim_region_new(&w->arena, "block table", 16u * (size_t)entries, 0),
        .pins = (void *)sim_region_new(&w->arena, "pins", 8u * (size_t)s->blocks, 0),
        .sessions = (void *)sim_region_new(&w->arena, "sessions", sessions, 0),
        .sessions_lock = (void *)sim_region_new(&w->arena, "sessions lock", 8, 0),
        .grants = sim_segment_new(&w->arena, "grants",
                                  part->sessions_count * sizeof(struct kbtp_grant), SIM_CONST),
        .blocks = sim_region_new(&w->arena, "block pool", s->blocks * (size_t)s->block_size, 0),
    };
    return memory->slots && memory->head && memory->tail && memory->entries && memory->pins &&
                   memory->sessions && memory->sessions_lock && memory->grants && memory->blocks
               ? 0
               : -ENOMEM;
}

static int ghost_memory(struct sim_world *w, struct sim_protocol_world *p)
{
    const struct sim_protocol_part *part = &w->scenario->protocol;
    uint32_t tags = 0;
    for (uint32_t i = 0; i < part->initiators_count; i++) {
        p->first_tag[i] = tags;
        tags += part->initiators[i].program_count;
        p->wire[i] = sim_segment_new(
            &w->arena, "ghost wire",
            sizeof *p->wire[i] + (part->credits + 1) * sizeof p->wire[i]->open[0], SIM_STATE);
        if (!p->wire[i])
            return -ENOMEM;
    }
    p->requests =
        sim_segment_new(&w->arena, "ghost requests", tags * sizeof *p->requests, SIM_STATE);
    p->ring.ghost = sim_segment_new(
        &w->arena, "ghost blocks",
        sizeof *p->ring.ghost + p->ring.block_count * sizeof p->ring.ghost->blocks[0], SIM_STATE);
    return p->requests && p->ring.ghost ? protocol_counts_memory(w) : -ENOMEM;
}

static void fill_view(const struct sim_world *w, struct sim_protocol_world *p,
                      const struct kbtp_target_memory *memory)
{
    const struct sim_scenario *s = w->scenario;
    p->ring = (struct sim_ring_world){
        .rings = {{.slots = (char *)memory->slots,
                   .slot_count = s->slots,
                   .head = (char *)memory->head,
                   .tail = (char *)memory->tail}},
        .rings_count = 1,
        .table = (char *)memory->entries,
        .entry_count = s->protocol.handles * s->protocol.sessions_count,
        .block_count = s->blocks,
        .first_block = s->first_block,
        .block_size = s->block_size,
        .addr_le = s->addr_le,
        .unmasked = s->counters == SIM_COUNTERS_UNMASKED,
        .held_may_return = true,
    };
    p->pins = (char *)memory->pins;
    p->blocks = memory->blocks;
    p->sessions = s->protocol.sessions_count;
    p->handles = s->protocol.handles;
    p->credits = s->protocol.credits;
}

/* ---- agents ------------------------------------------------------------------------------ */

/* Can no connection ever end? Then a look for events is no step. */
static bool never_ends(const struct sim_protocol_part *part)
{
    for (uint32_t i = 0; i < part->initiators_count; i++) {
        const struct sim_initiator *s = &part->initiators[i];
        if (s->program[s->program_count - 1].op == SIM_REQUEST_GOODBYE)
            return false;
    }
    return part->losses + part->stops + part->silent_stops + part->restarts == 0 &&
           part->probes == SIM_PROBES_NONE && part->sessions_count == part->initiators_count &&
           !part->ticket_timeout;
}

static uint32_t largest_message(const struct sim_scenario *s)
{
    uint32_t largest = KBTP_TO_INITIATOR_MAX_OCTETS;
    if (KBTP_REQUEST_MAX_OCTETS + s->protocol.max_inline > largest)
        largest = KBTP_REQUEST_MAX_OCTETS + s->protocol.max_inline;
    return s->block_size > largest ? (uint32_t)s->block_size : largest;
}

/* `max_inline`: just what its CPUs use, since every work request has room for it. */
static int add_rnic(struct sim_world *w, const char *name, uint32_t regions, uint32_t windows,
                    uint32_t max_inline, bool loops)
{
    const struct sim_scenario *s = w->scenario;
    bool rdmap = s->machine.ordering == SIM_ORDERING_RDMAP;
    uint32_t lacking = s->counters == SIM_COUNTERS_UNMASKED ? RDMA_CAP_MASKED : 0;
    if (s->atomics == SIM_ATOMICS_ADAPTER)
        lacking |= RDMA_CAP_ATOMIC_CPU;
    struct sim_rnic_config config = {
        .ordering = s->machine.ordering,
        .bits = (SIM_RNIC_BITS | (loops ? SIM_RNIC_CHAIN_BITS : 0)) & ~lacking,
        .binding = rdmap ? RDMA_BINDING_RDMAP : RDMA_BINDING_INFINIBAND,
        .max_message = largest_message(s),
        .max_inline = max_inline,
        .max_reads = MAX_READS,
        .regions = regions,
        .windows = windows,
        .seed = 1};
    return sim_rnic_add(w, name, &config);
}

static bool goes_to(const struct sim_initiator *s, uint32_t worker)
{
    for (uint32_t i = 0; i < s->workers_count; i++)
        if (s->workers[i] == worker)
            return true;
    return false;
}

/* Connections of a worker at once: each initiator's, and while it comes again its old one. */
static uint32_t connections_of(const struct sim_protocol_part *part, uint32_t worker)
{
    uint32_t connections = 0;
    for (uint32_t i = 0; i < part->initiators_count; i++)
        if (goes_to(&part->initiators[i], worker))
            connections += PROTOCOL_LINKS(&part->initiators[i]);
    return connections != 0 ? connections : 1;
}

/* Do workers have the RNIC take tickets for them (ref/asks.c)? */
static bool asks_for_tickets(const struct sim_scenario *s)
{
    bool partitions = false;
    for (uint32_t i = 0; i < s->protocol.initiators_count; i++)
        partitions |= has_partition(&s->protocol.initiators[i]);
    return partitions && s->atomics == SIM_ATOMICS_ADAPTER;
}

static uint32_t most_connections(const struct sim_protocol_part *part)
{
    uint32_t most = 0;
    for (uint32_t i = 0; i < part->workers_count; i++)
        if (connections_of(part, i) > most)
            most = connections_of(part, i);
    return most;
}

/* Of a worker: of each session, then of each connection. */
static uint32_t worker_timers(const struct sim_protocol_part *part, uint32_t connections)
{
    if (part->ticket_timeout)
        return 2 * part->sessions_count + connections;
    if (part->probes != SIM_PROBES_NONE)
        return part->sessions_count + connections;
    return part->retention != SIM_RETENTION_LASTS ? part->sessions_count : 0;
}

static int add_worker(struct sim_world *w, struct protocol_world *world, uint32_t worker,
                      const struct kbtp_worker_memory *need)
{
    const struct sim_protocol_part *part = &w->scenario->protocol;
    world->worker_program = protocol_worker_program;
    world->worker_program.private_size = (uint32_t)need->private_octets;
    world->worker_program.path_size = sizeof(struct kbtp_counters);
    world->worker_program.max_accesses += (uint32_t)w->scenario->block_size / 4;
    return sim_cpu_add(w, part->workers[worker].name, SIM_AGENT_CPU, &world->worker_program);
}

static int attach_worker(struct sim_world *w, uint32_t worker, uint32_t rnic)
{
    const struct sim_protocol_part *part = &w->scenario->protocol;
    struct sim_rnic_limits limits = {.connections = most_connections(part),
                                     .send_depth = 2 * (part->credits + 1),
                                     .recv_depth = part->credits + 1,
                                     .max_sge = WORKER_SGES,
                                     .reads = MAX_READS,
                                     .cqs = 1,
                                     .timers = worker_timers(part, most_connections(part)),
                                     .loops = asks_for_tickets(w->scenario),
                                     .never_disconnects = never_ends(part)};
    return sim_rnic_attach(w, worker, rnic, &limits);
}

static struct kbtp_initiator_config library_config(const struct sim_world *w, uint32_t initiator,
                                                   const char *address)
{
    struct kbtp_initiator_config config = sim_program_initiator(w->scenario, initiator);
    config.address = address;
    config.records = sim_protocol_of(w)->records[initiator];
    return config;
}

static int add_initiator(struct sim_world *w, struct protocol_world *world, uint32_t initiator)
{
    const struct sim_initiator *s = &w->scenario->protocol.initiators[initiator];
    struct kbtp_initiator_config config = library_config(w, initiator, ADDRESS);
    size_t private_octets, buffer_octets;
    kbtp_initiator_memory(&config, &private_octets, &buffer_octets);
    world->initiator_programs[initiator] = protocol_initiator_program;
    world->windows_at[initiator] = (uint32_t)(sizeof(struct protocol_initiator) + private_octets);
    world->initiator_programs[initiator].private_size =
        world->windows_at[initiator] +
        sim_program_windows(s) * (uint32_t)sizeof(struct rdma_window);
    return sim_cpu_add(w, s->name, SIM_AGENT_CPU, &world->initiator_programs[initiator]);
}

static uint32_t longest_inline(const struct sim_initiator *s)
{
    uint32_t longest = 0;
    for (uint32_t i = 0; i < s->program_count; i++)
        if (s->program[i].inline_data && s->program[i].length > longest)
            longest = s->program[i].length;
    return longest;
}

static int attach_initiator(struct sim_world *w, struct protocol_world *world, uint32_t initiator)
{
    const struct sim_protocol_part *part = &w->scenario->protocol;
    const struct sim_initiator *s = &part->initiators[initiator];
    snprintf(world->names[initiator], sizeof world->names[initiator], "%s" SIM_RNIC_SUFFIX,
             s->name);
    int rnic = add_rnic(w, world->names[initiator], s->program_count + 2, sim_program_windows(s),
                        KBTP_REQUEST_MAX_OCTETS + longest_inline(s), false);
    if (rnic < 0)
        return rnic;
    struct sim_rnic_limits limits = {.connections = 1,
                                     .send_depth = 2 * (s->depth + 2),
                                     .recv_depth = s->depth + 1,
                                     .max_sge = 1,
                                     .reads = MAX_READS,
                                     .cqs = 1,
                                     .timers = sim_program_allocates_directly(s) ? 3
                                               : s->retries != 0                 ? 1
                                                                                 : 0,
                                     .links = PROTOCOL_LINKS(s),
                                     .isolated = !sim_program_asks_for_records(s),
                                     .never_disconnects = never_ends(part)};
    uint32_t agent = world->view.first_initiator + initiator;
    int failed = sim_rnic_attach(w, agent, (uint32_t)rnic, &limits);
    return failed ? failed : sim_rnic_route(w, agent, s->workers, s->workers_count);
}

static int add_agents(struct sim_world *w, struct protocol_world *world,
                      const struct kbtp_worker_memory *need)
{
    const struct sim_protocol_part *part = &w->scenario->protocol;
    struct sim_protocol_world *p = &world->view;
    p->workers = part->workers_count;
    p->initiators = part->initiators_count;
    p->first_initiator = p->workers;
    int index = 0;
    for (uint32_t i = 0; i < p->workers && index >= 0; i++)
        index = add_worker(w, world, i, need);
    for (uint32_t i = 0; i < p->initiators && index >= 0; i++)
        index = add_initiator(w, world, i);
    if (index < 0)
        return index;
    uint32_t partitions = p->ring.rings_count - 1, loops = asks_for_tickets(w->scenario);
    int rnic = add_rnic(w, SIM_TARGET_RNIC_NAME, 3 + (1 + loops) * p->workers + 2 * partitions,
                        partitions != 0 ? p->workers * most_connections(part) : 0,
                        KBTP_HELLO_ACK_OCTETS, loops);
    if (rnic < 0)
        return rnic;
    int failed = 0;
    for (uint32_t i = 0; i < p->workers && !failed; i++)
        failed = attach_worker(w, i, (uint32_t)rnic);
    for (uint32_t i = 0; i < p->initiators && !failed; i++)
        failed = attach_initiator(w, world, i);
    return failed;
}

static int add_faults(struct sim_world *w, struct protocol_world *world)
{
    const struct sim_protocol_part *part = &w->scenario->protocol;
    if (part->losses + part->stops + part->silent_stops + part->restarts == 0)
        return 0;
    world->faults = sim_segment_new(&w->arena, "ghost faults", sizeof *world->faults, SIM_STATE);
    if (!world->faults || w->agents_count == SIM_MAX_AGENTS)
        return -ENOMEM;
    w->agents[w->agents_count] = (struct sim_agent){.ops = &protocol_fault_ops,
                                                    .world = w,
                                                    .name = SIM_ENVIRONMENT_NAME,
                                                    .index = w->agents_count};
    w->agents_count++;
    sim_rnic_may_be_lost_default(w, true);
    return 0;
}

/* ---- the protocol's parts ---------------------------------------------------------------- */

/* In the life after so many restarts. */
static struct kbtp_target_config target_config(const struct sim_scenario *s, uint32_t life)
{
    struct kbtp_target_config config = sim_program_target(s);
    config.max_connections = most_connections(&s->protocol);
    config.first_generation = protocol_first_generation(s, life);
    return config;
}

/* What its block table will be after each restart (I-11): a target that has no worker shows. */
static int look_at_lives(struct sim_world *w, const struct kbtp_cpu *cpu,
                         const struct kbtp_target_memory *memory)
{
    struct kbtp_target *target = protocol_world_of(w)->target;
    int failed = 0;
    for (uint32_t life = w->scenario->protocol.restarts; life != 0 && !failed; life--) {
        struct kbtp_target_config config = target_config(w->scenario, life);
        failed = kbtp_target_init(target, cpu, &config, memory);
        if (failed)
            return failed;
        protocol_restart_table(w, life);
        failed = kbtp_target_end(target, cpu);
    }
    return failed;
}

static int start_target(struct sim_world *w, struct protocol_world *world,
                        const struct kbtp_target_memory *memory,
                        const struct kbtp_worker_memory *need)
{
    const struct sim_protocol_part *part = &w->scenario->protocol;
    struct kbtp_target_config config = target_config(w->scenario, 0);
    struct mem direct = {.sim = NULL};
    for (uint32_t i = 0; i < part->sessions_count; i++)
        memory->grants[i] = sim_program_grant(part, i);
    struct kbtp_cpu cpu = {&direct, &w->agents[0].rdma};
    int failed = look_at_lives(w, &cpu, memory);
    if (!failed)
        failed = kbtp_target_init(world->target, &cpu, &config, memory);
    for (uint32_t i = 0; i < part->workers_count && !failed; i++) {
        struct kbtp_worker *worker;
        char *buffers = sim_region_new(&w->arena, "worker buffers", need->buffer_octets, i + 1);
        if (!buffers)
            return -ENOMEM;
        cpu.rdma = &w->agents[i].rdma;
        failed = kbtp_worker_init(&worker, world->target, &cpu, ADDRESS,
                                  sim_cpu_private(&w->agents[i]), buffers);
        if (!failed)
            protocol_counts_worker(w, i);
    }
    return failed;
}

/* A buffer for each request: filled with its tag, or empty for a LOAD. */
static int register_buffers(struct sim_world *w, struct protocol_world *world, uint32_t initiator)
{
    const struct sim_initiator *s = &w->scenario->protocol.initiators[initiator];
    uint32_t agent = world->view.first_initiator + initiator;
    struct protocol_initiator *it = protocol_initiator_of(w, initiator);
    uint64_t base = BUFFERS_BASE * (initiator + 1);
    for (uint32_t i = 0; i < s->program_count; i++) {
        const struct sim_request *request = &s->program[i];
        if (request->length == 0)
            continue;
        /* What comes before a record is shared: it is placed piece by piece. */
        bool shared = request->record && request->op == SIM_REQUEST_LOAD;
        char *at = sim_region_new(&w->arena, "buffers", request->length, shared ? 0 : agent + 1);
        if (!at)
            return -ENOMEM;
        if (request->op != SIM_REQUEST_LOAD)
            memset(at, (int)(world->view.first_tag[initiator] + i + 1), request->length);
        uint32_t access = RDMA_LOCAL_WRITE | RDMA_REMOTE_READ | RDMA_REMOTE_WRITE |
                          (request->invalidate ? RDMA_BIND_WINDOW : 0);
        int failed = rdma_reg(&w->agents[agent].rdma, at, request->length, access, base,
                              &world->regions[initiator][i]);
        if (!failed && request->invalidate)
            failed = rdma_window_alloc(&w->agents[agent].rdma,
                                       protocol_window_of(world, s, it, initiator, i));
        if (failed)
            return failed;
        base += SIM_MAX_LENGTH_OCTETS;
    }
    return 0;
}

/* Slots of records are shared with the RNIC that writes them: they are seen piece by piece. */
static int make_slots(struct sim_world *w, struct protocol_world *world, uint32_t initiator)
{
    const struct sim_initiator *s = &w->scenario->protocol.initiators[initiator];
    if (!sim_program_asks_for_records(s))
        return 0;
    world->view.records[initiator] =
        sim_region_new(&w->arena, "record slots", s->depth * (size_t)KBTP_RECORD_OCTETS, 0);
    return world->view.records[initiator] ? 0 : -ENOMEM;
}

static int start_initiator(struct sim_world *w, struct protocol_world *world, uint32_t initiator,
                           const char *address)
{
    int failed = make_slots(w, world, initiator);
    if (failed)
        return failed;
    struct kbtp_initiator_config config = library_config(w, initiator, address);
    uint32_t agent = world->view.first_initiator + initiator;
    struct mem direct = {.sim = NULL};
    struct kbtp_cpu cpu = {&direct, &w->agents[agent].rdma};
    struct protocol_initiator *it = protocol_initiator_of(w, initiator);
    size_t private_octets, buffer_octets;
    kbtp_initiator_memory(&config, &private_octets, &buffer_octets);
    char *buffers = sim_region_new(&w->arena, "initiator buffers", buffer_octets, agent + 1);
    if (!buffers)
        return -ENOMEM;
    failed = kbtp_initiator_init(&it->library, &cpu, &config, it + 1, buffers);
    return failed ? failed : register_buffers(w, world, initiator);
}

static int start(struct sim_world *w, struct protocol_world *world,
                 const struct kbtp_target_memory *memory, const struct kbtp_worker_memory *need)
{
    char *address = sim_segment_new(&w->arena, "address", sizeof ADDRESS, SIM_CONST);
    if (!address)
        return -ENOMEM;
    memcpy(address, ADDRESS, sizeof ADDRESS);
    int failed = start_target(w, world, memory, need);
    for (uint32_t i = 0; i < world->view.initiators && !failed; i++)
        failed = start_initiator(w, world, i, address);
    return failed;
}

static void add_checkers(struct sim_world *w)
{
    static const struct sim_checker *const all[] = {
        &sim_check_block_once,      &sim_check_slot_not_overwritten, &sim_check_sequence_in_order,
        &sim_check_counter_by_one,  &sim_check_generation_steps,     &sim_check_bind_taken,
        &sim_check_entry_has_data,  &sim_check_block_quiet,          &sim_check_load_exact,
        &sim_check_effect_first,    &sim_check_completes_once,       &sim_check_requests_in_order,
        &sim_check_own_handles,     &sim_check_within_quota,         &sim_check_well_delivered,
        &sim_check_expected_status, &sim_check_nothing_lost,         &sim_check_initiator_accepts,
        &sim_check_cleared_first,   &sim_check_counters_agree,       &sim_check_record_after_data,
        &sim_check_stag_revoked,    &sim_check_live_session_kept};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        w->checkers[w->checkers_count++] = all[i];
    _Static_assert(sizeof all / sizeof *all <= SIM_MAX_CHECKERS, "SIM_MAX_CHECKERS");
}

/* ---- sessions at the start --------------------------------------------------------------- */

static bool all_ready(const struct sim_world *w)
{
    const struct sim_protocol_world *p = sim_protocol_of(w);
    for (uint32_t i = 0; i < p->sessions; i++)
        if (kbtp_initiator_state(protocol_initiator_of(w, i)->library) != KBTP_INITIATOR_READY)
            return false;
    return true;
}

/* Makes all connections in one fixed order, before anything is explored. */
static int connect_all(struct sim_world *w)
{
    sim_arena_seal(&w->arena); /* builds that rehash everything look from the first step on */
    int failed = protocol_settle(w, 0);
    return failed || w->violation.property || all_ready(w) ? failed : -ETIMEDOUT;
}

int sim_protocol_world_build(struct sim_world *w)
{
    struct protocol_world *world = calloc(1, sizeof *world);
    if (!world)
        return -ENOMEM;
    w->kind = world;
    w->ops = &protocol_ops;
    /* What a worker needs follows from the target's configuration and partitions alone. */
    struct kbtp_target sized = {.config = target_config(w->scenario, 0),
                                .caps = {.max_queue = UINT16_MAX, .max_cq = UINT16_MAX}};
    struct kbtp_worker_memory need;
    struct kbtp_target_memory memory;
    int failed = target_memory(w, &memory);
    world->target = sim_segment_new(&w->arena, "target", sizeof *world->target, SIM_CONST);
    if (failed || !world->target)
        return -ENOMEM;
    fill_view(w, &world->view, &memory);
    failed = partitions_memory(w, &world->view, &memory);
    if (failed)
        return failed;
    uint32_t segments = w->arena.segments_count; /* of them some are its constants */
    sized.pool.partitions = memory.partitions;
    sized.pool.partition_count = world->view.ring.rings_count - 1;
    if (asks_for_tickets(w->scenario)) {
        sized.ask_depth = kbtp_target_ask_depth(&sized.config, &sized.caps);
        sized.ask_octets = sim_rnic_chain_octets(WORKER_SGES, sized.ask_depth);
    }
    kbtp_worker_memory(&sized, &need);
    failed = ghost_memory(w, &world->view);
    if (!failed)
        failed = add_agents(w, world, &need);
    if (!failed)
        failed = protocol_restart_memory(w, segments);
    if (!failed)
        failed = start(w, world, &memory, &need);
    if (!failed)
        failed = add_faults(w, world);
    if (failed)
        return failed;
    add_checkers(w);
    sim_cpu_start(w);
    failed = protocol_restart_rest(w);
    if (failed)
        return failed;
    return w->scenario->protocol.connected ? connect_all(w) : 0;
}
