/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/cpu.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The access the agent stands before. Follows from the state, so it is not hashed. */
struct sim_next {
    uint32_t op; /* enum next_op */
    uint32_t octets;
    const char *at;
};

enum next_op { NEXT_NONE, NEXT_LOAD, NEXT_STORE, NEXT_ATOMIC, NEXT_READ, NEXT_WRITE };

/* What the running step may still do when a poll comes to a new access. */
enum sim_allowance {
    ALLOW_NONE,
    ALLOW_ACCESS, /* one access that does not move in pieces, if it can be made now */
    ALLOW_PIECE,  /* piece w->piece of the read or write the agent stands before */
};

#define MAX_PIECES 32u

static uint32_t words_of(uint32_t octets)
{
    return (octets + 7) / 8;
}

static uint64_t *results_of(const struct sim_agent *agent)
{
    return agent->cpu->more;
}

static uint32_t buffer_capacity(const struct sim_agent *agent)
{
    return agent->memory == SIM_MEMORY_SC ? 0 : agent->world->scenario->machine.store_buffer;
}

/* Events wait in the buffer too; they take no room from stores. */
static uint32_t buffer_entries(const struct sim_agent *agent)
{
    return 2 * buffer_capacity(agent);
}

static struct sim_buffered *buffer_of(const struct sim_agent *agent)
{
    return (struct sim_buffered *)(results_of(agent) + agent->program->max_accesses);
}

void *sim_cpu_private(const struct sim_agent *agent)
{
    return buffer_of(agent) + buffer_entries(agent);
}

static struct sim_next *next_of(const struct sim_agent *agent)
{
    return (struct sim_next *)((char *)sim_cpu_private(agent) +
                               words_of(agent->program->private_size) * 8);
}

bool sim_cpu_buffer_empty(const struct sim_agent *agent)
{
    return agent->cpu->buffered == 0;
}

static void observe(const struct sim_agent *agent, struct sim_access access)
{
    struct sim_world *w = agent->world;
    if (__builtin_expect(w->observe != NULL, 0)) {
        access.agent = agent->index;
        access.argument = agent->cpu->argument;
        w->observe(w->observe_context, &access);
    }
}

/* ---- store buffer ------------------------------------------------------------------------ */

static char *place_of(const struct sim_agent *agent, const struct sim_buffered *entry)
{
    return agent->world->arena.base + entry->place;
}

static bool overlaps(const struct sim_agent *agent, const struct sim_buffered *entry,
                     const char *at, uint32_t octets)
{
    const char *place = place_of(agent, entry);
    return entry->octets != 0 && place < at + octets && at < place + entry->octets;
}

static uint32_t buffered_stores(const struct sim_agent *agent)
{
    uint32_t stores = 0;
    for (uint32_t i = 0; i < agent->cpu->buffered; i++)
        stores += buffer_of(agent)[i].octets != 0;
    return stores;
}

static void buffer_push(struct sim_agent *agent, struct sim_buffered entry)
{
    struct sim_cpu *cpu = agent->cpu;
    if (cpu->buffered == buffer_entries(agent)) {
        sim_violate(agent->world, "bounded-poll", "%s publishes more than its buffer holds",
                    agent->name);
        return;
    }
    buffer_of(agent)[cpu->buffered++] = entry;
    agent->world->effect = true;
}

static struct sim_buffered buffer_take(struct sim_agent *agent, uint32_t index)
{
    struct sim_buffered *buffer = buffer_of(agent), taken = buffer[index];
    uint32_t last = --agent->cpu->buffered;
    memmove(&buffer[index], &buffer[index + 1], (last - index) * sizeof *buffer);
    memset(&buffer[last], 0, sizeof *buffer);
    return taken;
}

static bool may_drain(const struct sim_agent *agent, uint32_t index)
{
    if (index == 0)
        return true;
    const struct sim_buffered *buffer = buffer_of(agent), *entry = &buffer[index];
    if (agent->memory != SIM_MEMORY_RELAXED || entry->release)
        return false;
    for (uint32_t i = 0; i < index; i++)
        if (overlaps(agent, &buffer[i], place_of(agent, entry), entry->octets))
            return false;
    return true;
}

/* Events are noticed only through what they set off, so they do not wait once they may go. */
static void drain_events(struct sim_agent *agent)
{
    while (agent->cpu->buffered != 0 && buffer_of(agent)[0].octets == 0) {
        struct sim_buffered event = buffer_take(agent, 0);
        agent->world->ops->published(agent->world, agent->index, event.event, event.value);
    }
}

static void drain(struct sim_agent *agent, uint32_t index)
{
    struct sim_buffered entry = buffer_take(agent, index);
    char *at = place_of(agent, &entry);
    agent->world->effect = true;
    sim_write(agent->world, agent->index, at, &entry.value, entry.octets);
    observe(agent, (struct sim_access){
                       .kind = SIM_DRAIN, .at = at, .octets = entry.octets, .value = entry.value});
    drain_events(agent);
}

void sim_cpu_publish(struct sim_agent *agent, uint32_t event, uint64_t value)
{
    if (agent->cpu->buffered == 0)
        agent->world->ops->published(agent->world, agent->index, event, value);
    else
        buffer_push(agent,
                    (struct sim_buffered){.value = value, .release = 1, .event = (uint16_t)event});
}

/* ---- one access -------------------------------------------------------------------------- */

static struct sim_agent *agent_of(struct mem *m)
{
    return (struct sim_agent *)m;
}

/* Can this access be made in the present state, or does the agent's own buffer stand before it? */
static bool may_make(const struct sim_agent *agent, enum next_op op, const char *at,
                     uint32_t octets)
{
    const struct sim_cpu *cpu = agent->cpu;
    if (cpu->buffered == 0)
        return op != NEXT_NONE;
    switch (op) {
    case NEXT_STORE:
        return buffered_stores(agent) < buffer_capacity(agent);
    case NEXT_ATOMIC:
        return agent->world->stepping.merged_drains;
    case NEXT_LOAD: /* forwarded whole or not at all */
        for (uint32_t i = 0; i < cpu->buffered; i++) {
            const struct sim_buffered *entry = &buffer_of(agent)[i];
            if (overlaps(agent, entry, at, octets) &&
                (place_of(agent, entry) != at || entry->octets != octets))
                return false;
        }
        return true;
    default:
        return false;
    }
}

__attribute__((noreturn)) static void stop_before(struct sim_agent *agent, enum next_op op,
                                                  const char *at, uint32_t octets)
{
    *next_of(agent) = (struct sim_next){.op = op, .octets = octets, .at = at};
    longjmp(agent->world->stop, 1);
}

/* Nothing outside what was granted is read or written: the poll ends before it happens. */
static void check_granted(struct sim_agent *agent, const char *at, uint32_t octets)
{
    struct sim_segment *segment = sim_segment_find(&agent->world->arena, at);
    if (segment && segment->granted && at + octets <= segment->at + segment->size)
        return;
    sim_violate(agent->world, "granted-memory", "%s reaches for %u octets outside its memory",
                agent->name, octets);
    stop_before(agent, NEXT_NONE, NULL, 0);
}

static void log_results(struct sim_agent *agent, const uint64_t *values, uint32_t count)
{
    struct sim_cpu *cpu = agent->cpu;
    if (cpu->accesses + count > agent->program->max_accesses) {
        sim_violate(agent->world, "bounded-poll", "%s makes more than %u accesses in one poll",
                    agent->name, agent->program->max_accesses);
        stop_before(agent, NEXT_NONE, NULL, 0);
    }
    if (values)
        memcpy(&results_of(agent)[cpu->accesses], values, count * sizeof *values);
    cpu->accesses += count;
    agent->world->cursor = cpu->accesses;
}

/* True with the result when this access was made in an earlier step. */
static bool repeated(struct sim_agent *agent, uint64_t *result)
{
    struct sim_world *w = agent->world;
    if (w->cursor >= agent->cpu->accesses)
        return false;
    *result = results_of(agent)[w->cursor++];
    return true;
}

/*
 * A poll is a function of its private state and the results so far. So it comes again to the access
 * it was left before; if not, it looks at something that it should not.
 */
static void check_pure(struct sim_agent *agent, enum next_op op, const char *at, uint32_t octets)
{
    const struct sim_next *next = next_of(agent);
    if (next->op == NEXT_NONE ||
        (next->op == (uint32_t)op && next->at == at && next->octets == octets))
        return;
    sim_violate(agent->world, "pure-poll", "%s comes to another access than it was left before",
                agent->name);
    stop_before(agent, NEXT_NONE, NULL, 0);
}

/* The access stood before is being made: the next one to come to is another. */
static void leave_behind(struct sim_agent *agent)
{
    *next_of(agent) = (struct sim_next){.op = NEXT_NONE};
}

/* Returns when the running step makes this access; else leaves the agent standing before it. */
static void take_turn(struct sim_agent *agent, enum next_op op, const char *at, uint32_t octets)
{
    struct sim_world *w = agent->world;
    check_granted(agent, at, octets);
    check_pure(agent, op, at, octets);
    bool can = may_make(agent, op, at, octets);
    /* Nobody sees a store enter the buffer; only its drain is a choice. */
    bool at_once =
        op == NEXT_STORE && agent->memory != SIM_MEMORY_SC && w->stepping.private_steps && can;
    if (at_once) {
        leave_behind(agent);
        return;
    }
    if (w->allowance != ALLOW_ACCESS || !can)
        stop_before(agent, op, at, octets);
    w->allowance = ALLOW_NONE;
    leave_behind(agent);
}

static uint64_t value_at(const char *at, uint32_t octets)
{
    uint64_t value = 0;
    memcpy(&value, at, octets);
    return value;
}

static uint64_t load(struct sim_agent *agent, const void *place, uint32_t octets)
{
    const char *at = place;
    uint64_t value;
    if (repeated(agent, &value))
        return value;
    take_turn(agent, NEXT_LOAD, at, octets);
    struct sim_world *w = agent->world;
    value = value_at(at, octets);
    sim_footprint_note(w, at, octets, false);
    for (uint32_t i = 0; i < agent->cpu->buffered; i++) /* the youngest store to it, if any */
        if (overlaps(agent, &buffer_of(agent)[i], at, octets))
            value = buffer_of(agent)[i].value;
    if (agent->cpu->buffered != 0)
        sim_reach(w, SIM_REACH_LOAD_BEFORE_STORE);
    observe(agent,
            (struct sim_access){.kind = SIM_LOAD, .at = at, .octets = octets, .value = value});
    log_results(agent, &value, 1);
    return value;
}

static void store(struct sim_agent *agent, void *place, uint32_t octets, uint64_t value,
                  int release)
{
    char *at = place;
    uint64_t nothing = 0;
    if (repeated(agent, &nothing))
        return;
    take_turn(agent, NEXT_STORE, at, octets);
    bool buffered = agent->memory != SIM_MEMORY_SC;
    if (buffered)
        buffer_push(agent, (struct sim_buffered){.value = value,
                                                 .place = (uint32_t)(at - agent->world->arena.base),
                                                 .octets = (uint8_t)octets,
                                                 .release = (uint8_t)release});
    else
        sim_write(agent->world, agent->index, at, &value, octets);
    observe(
        agent,
        (struct sim_access){
            .kind = SIM_STORE, .at = at, .octets = octets, .buffered = buffered, .value = value});
    log_results(agent, &nothing, 1);
}

/* ---- reads and writes in pieces ---------------------------------------------------------- */

static uint32_t piece_size(const struct sim_agent *agent)
{
    return agent->world->scenario->machine.tear;
}

static uint32_t pieces_of(const struct sim_agent *agent, uint32_t octets)
{
    return (octets + piece_size(agent) - 1) / piece_size(agent);
}

/* The octets of piece `piece` of a transfer, from *first on. */
static uint32_t piece_span(const struct sim_agent *agent, uint32_t octets, uint32_t piece,
                           uint32_t *first)
{
    *first = piece * piece_size(agent);
    uint32_t rest = octets - *first;
    return rest < piece_size(agent) ? rest : piece_size(agent);
}

/* Moves the piece this step is for; true when it was the last one. */
static bool move_piece(struct sim_agent *agent, enum next_op op, char *at, char *data,
                       uint32_t octets)
{
    struct sim_world *w = agent->world;
    struct sim_cpu *cpu = agent->cpu;
    uint32_t first, count = piece_span(agent, octets, w->piece, &first);
    w->allowance = ALLOW_NONE;
    cpu->pieces |= 1u << w->piece;
    if (op == NEXT_READ) {
        memcpy(data + first, at + first, count);
        sim_footprint_note(w, at + first, count, false);
    } else {
        sim_write(w, agent->index, at + first, data + first, count);
    }
    observe(agent, (struct sim_access){.kind = op == NEXT_READ ? SIM_READ : SIM_WRITE,
                                       .at = at + first,
                                       .octets = count,
                                       .value = value_at(data + first, count)});
    uint32_t pieces = pieces_of(agent, octets);
    return cpu->pieces == (uint32_t)((UINT64_C(1) << pieces) - 1);
}

/* Stands before the transfer until all its pieces are moved; data is where they come from or go. */
static void transfer(struct sim_agent *agent, enum next_op op, const void *place, char *data,
                     uint32_t octets)
{
    struct sim_cpu *cpu = agent->cpu;
    char *at = (char *)(uintptr_t)place;
    check_granted(agent, at, octets);
    check_pure(agent, op, at, octets);
    if (pieces_of(agent, octets) > MAX_PIECES ||
        (op == NEXT_READ && cpu->accesses + words_of(octets) > agent->program->max_accesses)) {
        sim_violate(agent->world, "bounded-poll", "%s moves %u octets at once", agent->name,
                    octets);
        stop_before(agent, NEXT_NONE, NULL, 0);
    }
    if (agent->world->allowance != ALLOW_PIECE || !move_piece(agent, op, at, data, octets))
        stop_before(agent, op, at, octets);
    cpu->pieces = 0;
    leave_behind(agent);
}

static void read_pieces(struct sim_agent *agent, void *to, const void *at, uint32_t octets)
{
    struct sim_world *w = agent->world;
    struct sim_cpu *cpu = agent->cpu;
    if (w->cursor >= cpu->accesses) {
        /* What has arrived so far lies where the results will be. */
        transfer(agent, NEXT_READ, at, (char *)&results_of(agent)[cpu->accesses], octets);
        cpu->accesses += words_of(octets);
    }
    memcpy(to, &results_of(agent)[w->cursor], octets);
    w->cursor += words_of(octets);
}

static void write_pieces(struct sim_agent *agent, void *at, const void *from, uint32_t octets)
{
    uint64_t nothing = 0;
    if (repeated(agent, &nothing))
        return;
    transfer(agent, NEXT_WRITE, at, (char *)(uintptr_t)from, octets);
    log_results(agent, &nothing, 1);
}

/* ---- net/mem.h --------------------------------------------------------------------------- */

static bool in_pieces(const struct sim_agent *agent, uint32_t octets)
{
    return agent->kind == SIM_AGENT_RNIC && octets > piece_size(agent);
}

static uint32_t sim_load32(struct mem *m, const mem32 *at)
{
    return (uint32_t)load(agent_of(m), at, 4);
}

static uint64_t sim_load64(struct mem *m, const mem64 *at)
{
    uint64_t value;
    if (!in_pieces(agent_of(m), 8))
        return load(agent_of(m), at, 8);
    read_pieces(agent_of(m), &value, at, 8);
    return value;
}

static void sim_store32(struct mem *m, mem32 *at, uint32_t value, int release)
{
    store(agent_of(m), at, 4, value, release);
}

static void sim_store64(struct mem *m, mem64 *at, uint64_t value, int release)
{
    if (in_pieces(agent_of(m), 8))
        write_pieces(agent_of(m), at, &value, 8);
    else
        store(agent_of(m), at, 8, value, release);
}

/* An atomic: what `after` makes of the old value is left there. */
static uint64_t atomic64(struct sim_agent *agent, mem64 *place,
                         uint64_t (*after)(uint64_t old, uint64_t a, uint64_t b), uint64_t a,
                         uint64_t b)
{
    char *at = (char *)place;
    uint64_t old;
    if (repeated(agent, &old))
        return old;
    take_turn(agent, NEXT_ATOMIC, at, 8);
    while (agent->cpu->buffered != 0) /* only with merged drains */
        drain(agent, 0);
    old = value_at(at, 8);
    uint64_t value = after(old, a, b);
    sim_footprint_note(agent->world, at, 8, false);
    sim_write(agent->world, agent->index, at, &value, 8);
    observe(agent, (struct sim_access){
                       .kind = SIM_ATOMIC, .at = at, .octets = 8, .value = value, .old = old});
    log_results(agent, &old, 1);
    return old;
}

static uint64_t after_swap(uint64_t old, uint64_t expected, uint64_t desired)
{
    return old == expected ? desired : old;
}

static uint64_t sim_fetch_add64(struct mem *m, mem64 *at, uint64_t add, uint64_t mask)
{
    return atomic64(agent_of(m), at, mem_masked_sum64, add, mask);
}

static uint64_t sim_cas64(struct mem *m, mem64 *at, uint64_t expected, uint64_t desired)
{
    return atomic64(agent_of(m), at, after_swap, expected, desired);
}

static void sim_read(struct mem *m, void *to, const void *at, size_t octets)
{
    read_pieces(agent_of(m), to, at, (uint32_t)octets);
}

static void sim_write_mem(struct mem *m, void *at, const void *from, size_t octets)
{
    write_pieces(agent_of(m), at, from, (uint32_t)octets);
}

static void sim_fill(struct mem *m, void *at, uint8_t octet, size_t octets)
{
    char pattern[MAX_PIECES * 8];
    memset(pattern, octet, sizeof pattern);
    /* A longer fill is refused by transfer() before it looks at the pattern. */
    write_pieces(agent_of(m), at, pattern, (uint32_t)octets);
}

static const struct mem_ops sim_mem_ops = {
    .load32 = sim_load32,
    .load64 = sim_load64,
    .store32 = sim_store32,
    .store64 = sim_store64,
    .fetch_add64 = sim_fetch_add64,
    .cas64 = sim_cas64,
    .read = sim_read,
    .write = sim_write_mem,
    .fill = sim_fill,
};

/* ---- polls ------------------------------------------------------------------------------- */

/* The poll came to its end: its accesses are history. */
static void poll_ended(struct sim_agent *agent, int result)
{
    struct sim_world *w = agent->world;
    struct sim_cpu *cpu = agent->cpu;
    void *private = sim_cpu_private(agent);
    uint32_t argument = cpu->argument;
    if (w->cursor < cpu->accesses || next_of(agent)->op != NEXT_NONE)
        sim_violate(w, "pure-poll", "%s ends its poll before the access it was left before",
                    agent->name);
    if (memcmp(private, w->rollback, agent->program->private_size) != 0)
        w->effect = true;
    memset(results_of(agent), 0, cpu->accesses * sizeof(uint64_t));
    w->poll_accesses = cpu->accesses;
    cpu->accesses = 0;
    observe(agent, (struct sim_access){.kind = SIM_RESULT, .value = (uint64_t)(int64_t)result});
    agent->program->ended(agent, private, argument, result);
    cpu->argument = 0;
    cpu->polling = agent->program->due(private);
    *next_of(agent) = (struct sim_next){.op = NEXT_NONE};
}

/* Runs the poll that is due, and those after it, until the agent stands before an access. */
static void run_polls(struct sim_agent *agent, enum sim_allowance allowance, uint32_t piece)
{
    struct sim_world *w = agent->world;
    w->allowance = allowance;
    w->piece = piece;
    while (agent->cpu->polling && !w->violation.property) {
        memcpy(w->rollback, sim_cpu_private(agent), agent->program->private_size);
        w->cursor = 0;
        if (setjmp(w->stop)) {
            memcpy(sim_cpu_private(agent), w->rollback, agent->program->private_size);
            return;
        }
        int result = agent->program->poll(agent, sim_cpu_private(agent), agent->cpu->argument);
        poll_ended(agent, result);
    }
}

/* ---- the agent --------------------------------------------------------------------------- */

static uint32_t enabled_pieces(const struct sim_agent *agent, uint32_t octets, struct sim_step *out)
{
    uint32_t pieces = pieces_of(agent, octets), moved = agent->cpu->pieces, count = 0;
    enum sim_dma_order order = agent->world->scenario->machine.dma_order;
    for (uint32_t i = 0; i < pieces; i++) {
        uint32_t piece = order == SIM_DMA_DESCENDING ? pieces - 1 - i : i;
        if (moved & 1u << piece)
            continue;
        out[count++] = (struct sim_step){
            .kind = SIM_STEP_PIECE, .agent = (uint8_t)agent->index, .piece = (uint8_t)piece};
        if (order != SIM_DMA_ANY)
            break;
    }
    return count;
}

static uint32_t enabled_choices(const struct sim_agent *agent, struct sim_step *out)
{
    uint32_t choices[SIM_MAX_CHOICES];
    uint32_t count = agent->program->choices(agent, sim_cpu_private(agent), choices);
    for (uint32_t i = 0; i < count; i++)
        out[i] = (struct sim_step){
            .kind = SIM_STEP_CHOOSE, .agent = (uint8_t)agent->index, .arg = choices[i]};
    return count;
}

static uint32_t cpu_enabled(const struct sim_agent *agent, struct sim_step *out)
{
    const struct sim_cpu *cpu = agent->cpu;
    uint32_t count = 0;
    for (uint32_t i = 0; i < cpu->buffered; i++)
        if (may_drain(agent, i))
            out[count++] = (struct sim_step){
                .kind = SIM_STEP_DRAIN, .agent = (uint8_t)agent->index, .queue = (uint8_t)i};
    if (cpu->dead)
        return count;
    if (!cpu->polling)
        return count + enabled_choices(agent, out + count);
    const struct sim_next *next = next_of(agent);
    if (!may_make(agent, next->op, next->at, next->octets))
        return count;
    if (next->op == NEXT_READ || next->op == NEXT_WRITE)
        return count + enabled_pieces(agent, next->octets, out + count);
    out[count++] = (struct sim_step){.kind = SIM_STEP_ACCESS, .agent = (uint8_t)agent->index};
    return count;
}

static void choose(struct sim_agent *agent, uint32_t argument)
{
    struct sim_cpu *cpu = agent->cpu;
    cpu->polling = 1;
    cpu->argument = argument;
    observe(agent, (struct sim_access){.kind = SIM_CHOSEN, .value = argument});
    agent->program->begin(agent, sim_cpu_private(agent), argument);
    run_polls(agent, agent->world->stepping.private_steps ? ALLOW_ACCESS : ALLOW_NONE, 0);
}

static void cpu_run(struct sim_agent *agent, const struct sim_step *step)
{
    struct sim_world *w = agent->world;
    sim_touch(&w->arena, agent->segment);
    sim_footprint_note(w, agent->segment->at, agent->segment->size, true);
    switch (step->kind) {
    case SIM_STEP_CHOOSE:
        choose(agent, step->arg);
        break;
    case SIM_STEP_ACCESS:
        run_polls(agent, ALLOW_ACCESS, 0);
        break;
    case SIM_STEP_PIECE:
        run_polls(agent, ALLOW_PIECE, step->piece);
        break;
    case SIM_STEP_DRAIN:
        drain(agent, step->queue);
        /* A store that a full buffer held back can enter it now. */
        if (agent->cpu->polling && !agent->cpu->dead && next_of(agent)->op == NEXT_STORE)
            run_polls(agent, ALLOW_NONE, 0);
        break;
    default:
        assert(false && "a step this agent has not");
    }
}

static bool cpu_at_rest(const struct sim_agent *agent)
{
    const struct sim_cpu *cpu = agent->cpu;
    if (cpu->buffered != 0)
        return false;
    bool due = !cpu->dead && agent->program->due(sim_cpu_private(agent));
    return cpu->accesses == 0 && cpu->pieces == 0 && cpu->polling == due;
}

static const struct sim_agent_ops cpu_ops = {
    .enabled = cpu_enabled,
    .run = cpu_run,
    .at_rest = cpu_at_rest,
};

void sim_cpu_kill(struct sim_agent *agent)
{
    struct sim_cpu *cpu = agent->cpu;
    sim_touch(&agent->world->arena, agent->segment);
    sim_footprint_note(agent->world, agent->segment->at, agent->segment->size, true);
    memset(results_of(agent), 0, agent->program->max_accesses * sizeof(uint64_t));
    cpu->accesses = 0;
    cpu->pieces = 0;
    cpu->polling = 0;
    cpu->argument = 0;
    cpu->dead = 1;
    *next_of(agent) = (struct sim_next){.op = NEXT_NONE};
    agent->world->effect = true;
    observe(agent, (struct sim_access){.kind = SIM_DIED});
}

int sim_cpu_add(struct sim_world *w, const char *name, enum sim_agent_kind kind,
                const struct sim_program *program)
{
    if (w->agents_count == SIM_MAX_AGENTS)
        return -ENOSPC;
    struct sim_agent *agent = &w->agents[w->agents_count];
    *agent = (struct sim_agent){
        .mem = {.sim = &sim_mem_ops},
        .ops = &cpu_ops,
        .world = w,
        .name = name,
        .program = program,
        .index = w->agents_count,
        .kind = kind,
        .memory = kind == SIM_AGENT_RNIC ? SIM_MEMORY_SC : w->scenario->machine.memory,
    };
    size_t size = sizeof(struct sim_cpu) + program->max_accesses * sizeof(uint64_t) +
                  buffer_entries(agent) * sizeof(struct sim_buffered) +
                  words_of(program->private_size) * 8 + sizeof(struct sim_next);
    agent->cpu = sim_segment_new(&w->arena, name, size, SIM_STATE);
    if (!agent->cpu || program->private_size > SIM_MAX_PRIVATE)
        return -ENOMEM;
    agent->segment = sim_segment_of(&w->arena, agent->cpu);
    agent->segment->hashed = (uint32_t)(size - sizeof(struct sim_next));
    return (int)w->agents_count++;
}

void sim_cpu_start(struct sim_world *w)
{
    for (uint32_t i = 0; i < w->agents_count; i++) {
        struct sim_agent *agent = &w->agents[i];
        if (agent->ops != &cpu_ops)
            continue;
        agent->cpu->polling = agent->program->due(sim_cpu_private(agent));
        run_polls(agent, ALLOW_NONE, 0);
    }
}
