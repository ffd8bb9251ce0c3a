/* SPDX-License-Identifier: BSD-3-Clause */
/* The accesses of net/mem.h: what is repeated, what must wait, what each of them does. */
#include "sim/cpu_state.h"
#include "sim/rnic_state.h"

bool cpu_may_make(const struct sim_agent *agent, enum next_op op, const char *at, uint32_t octets)
{
    const struct sim_cpu *cpu = agent->cpu;
    if (cpu->buffered == 0)
        return op != NEXT_NONE;
    switch (op) {
    case NEXT_STORE:
    case NEXT_POST:
    case NEXT_POST_RECEIVE:
        return cpu_buffered_stores(agent) < buffer_capacity(agent);
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
    case NEXT_POLL:
    case NEXT_EVENT:
        return true;
    default:
        return false;
    }
}

void cpu_stop_before(struct sim_agent *agent, enum next_op op, const char *at, uint32_t octets)
{
    *next_of(agent) = (struct sim_next){.op = op, .octets = octets, .at = at};
    longjmp(agent->world->stop, 1);
}

/* ---- what may be reached ----------------------------------------------------------------- */

/* May this agent use memory of this owner? */
static bool is_granted(const struct sim_agent *agent, const struct sim_segment *segment)
{
    if (!segment->granted)
        return false;
    if (segment->owner == 0)
        return !agent->handle || !agent->handle->limits.isolated;
    return segment->owner == agent->index + 1;
}

/*
 * Nothing outside what was granted is read or written: the poll ends before it happens. True when
 * the memory is private to this agent.
 */
static bool check_granted(struct sim_agent *agent, const char *at, uint32_t octets)
{
    const struct sim_segment *segment = sim_segment_find(&agent->world->arena, at);
    if (segment && at + octets <= segment->at + segment->size && is_granted(agent, segment))
        return segment->owner != 0;
    sim_violate(agent->world, "granted-memory", "%s reaches for %u octets outside its memory",
                agent->name, octets);
    cpu_stop_before(agent, NEXT_NONE, NULL, 0);
}

/* What lies in segments one behind the other that all are private to the agent, or all shared. */
static bool check_granted_range(struct sim_agent *agent, const char *at, uint32_t octets)
{
    bool private = false;
    for (uint32_t done = 0; done < octets;) {
        const struct sim_segment *segment = sim_segment_find(&agent->world->arena, at + done);
        uint32_t rest = octets - done;
        if (segment && (size_t)(segment->at + segment->size - (at + done)) < rest)
            rest = (uint32_t)(segment->at + segment->size - (at + done));
        bool here = check_granted(agent, at + done, rest);
        if (done != 0 && here != private)
            check_granted(agent, NULL, octets);
        private = here;
        done += rest;
    }
    return private;
}

/* Buffers that are posted belong to the device until their completion was polled. */
static inline void check_in_flight(struct sim_agent *agent, const char *at, uint32_t octets,
                                   bool writes)
{
    if (__builtin_expect(!agent->handle, 1) ||
        !rnic_is_in_flight(agent->handle, at, octets, writes))
        return;
    sim_violate(agent->world, "buffer-in-flight", "%s %s %u octets of a buffer that it has posted",
                agent->name, writes ? "writes" : "reads", octets);
    cpu_stop_before(agent, NEXT_NONE, NULL, 0);
}

/* ---- results ----------------------------------------------------------------------------- */

void cpu_need_results(struct sim_agent *agent, uint32_t count)
{
    if (agent->cpu->accesses + count <= agent->program->max_accesses)
        return;
    sim_violate(agent->world, "bounded-poll", "%s makes more than %u accesses in one poll",
                agent->name, agent->program->max_accesses);
    cpu_stop_before(agent, NEXT_NONE, NULL, 0);
}

void cpu_log(struct sim_agent *agent, const uint64_t *values, uint32_t count)
{
    struct sim_cpu *cpu = agent->cpu;
    cpu_need_results(agent, count);
    if (values)
        memcpy(&results_of(agent)[cpu->accesses], values, count * sizeof *values);
    cpu->accesses += count;
    agent->world->cursor = cpu->accesses;
}

void cpu_was_quiet(struct sim_agent *agent, uint32_t count)
{
    struct sim_cpu *cpu = agent->cpu;
    if (cpu->quiet + count == cpu->accesses)
        cpu->quiet = (uint16_t)cpu->accesses;
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
    cpu_stop_before(agent, NEXT_NONE, NULL, 0);
}

void cpu_check_transfer(struct sim_agent *agent, enum next_op op, const char *at, uint32_t octets)
{
    check_granted(agent, at, octets);
    check_pure(agent, op, at, octets);
}

void cpu_take_turn(struct sim_agent *agent, enum next_op op, const char *at, uint32_t octets,
                   bool at_once)
{
    struct sim_world *w = agent->world;
    check_pure(agent, op, at, octets);
    bool can = cpu_may_make(agent, op, at, octets);
    if (at_once && can) {
        leave_behind(agent);
        return;
    }
    if (w->allowance != ALLOW_ACCESS || !can)
        cpu_stop_before(agent, op, at, octets);
    w->allowance = ALLOW_NONE;
    leave_behind(agent);
}

/* ---- loads and stores -------------------------------------------------------------------- */

static struct sim_agent *agent_of(struct mem *m)
{
    return (struct sim_agent *)m;
}

static uint64_t load(struct sim_agent *agent, const void *place, uint32_t octets)
{
    const char *at = place;
    uint64_t value;
    if (repeated(agent, &value))
        return value;
    bool private = check_granted(agent, at, octets);
    check_in_flight(agent, at, octets, false);
    cpu_take_turn(agent, NEXT_LOAD, at, octets, private);
    struct sim_world *w = agent->world;
    value = value_at(at, octets);
    sim_footprint_note(w, at, octets, false);
    for (uint32_t i = 0; i < agent->cpu->buffered; i++) /* the youngest store to it, if any */
        if (overlaps(agent, &buffer_of(agent)[i], at, octets))
            value = buffer_of(agent)[i].value;
    if (agent->cpu->buffered != 0 && !private)
        sim_reach(w, SIM_REACH_LOAD_BEFORE_STORE);
    cpu_observe(agent,
                (struct sim_access){.kind = SIM_LOAD, .at = at, .octets = octets, .value = value});
    cpu_log(agent, &value, 1);
    if (private)
        cpu_was_quiet(agent, 1);
    return value;
}

static void store(struct sim_agent *agent, void *place, uint32_t octets, uint64_t value,
                  int release)
{
    char *at = place;
    uint64_t nothing = 0;
    if (repeated(agent, &nothing))
        return;
    bool private = check_granted(agent, at, octets);
    check_in_flight(agent, at, octets, true);
    bool buffered = agent->memory != SIM_MEMORY_SC && !private;
    /* Nobody sees a store enter the buffer; only its drain is a choice. */
    cpu_take_turn(agent, NEXT_STORE, at, octets,
                  private || (buffered && agent->world->stepping.private_steps));
    if (buffered)
        cpu_buffer_push(agent,
                        (struct sim_buffered){.value = value,
                                              .place = (uint32_t)(at - agent->world->arena.base),
                                              .octets = (uint8_t)octets,
                                              .release = (uint8_t)release});
    else
        sim_write(agent->world, agent->index, at, &value, octets);
    if (!buffered && !private)
        agent->world->shown = true;
    cpu_observe(
        agent,
        (struct sim_access){
            .kind = SIM_STORE, .at = at, .octets = octets, .buffered = buffered, .value = value});
    cpu_log(agent, &nothing, 1);
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
    check_granted(agent, at, 8);
    check_in_flight(agent, at, 8, true);
    cpu_take_turn(agent, NEXT_ATOMIC, at, 8, false);
    while (agent->cpu->buffered != 0) /* only with merged drains */
        cpu_drain(agent, 0);
    old = value_at(at, 8);
    uint64_t value = after(old, a, b);
    agent->world->shown = true;
    sim_footprint_note(agent->world, at, 8, false);
    sim_write(agent->world, agent->index, at, &value, 8);
    cpu_observe(agent, (struct sim_access){
                           .kind = SIM_ATOMIC, .at = at, .octets = 8, .value = value, .old = old});
    cpu_log(agent, &old, 1);
    return old;
}

static uint64_t after_swap(uint64_t old, uint64_t expected, uint64_t desired)
{
    return old == expected ? desired : old;
}

/* ---- many octets of a CPU ---------------------------------------------------------------- */

/* Octets up to the next boundary between pieces. */
static uint32_t natural(const struct sim_agent *agent, const char *at, uint32_t rest)
{
    uint32_t tear = agent->world->scenario->machine.tear;
    uint32_t octets = tear - (uint32_t)((uintptr_t)at % tear);
    return octets < rest ? octets : rest;
}

/* The agent's own memory: nobody can get in between. */
static void read_private(struct sim_agent *agent, void *to, const char *at, uint32_t octets)
{
    struct sim_cpu *cpu = agent->cpu;
    check_in_flight(agent, at, octets, false);
    cpu_take_turn(agent, NEXT_LOAD, at, octets, true);
    cpu_need_results(agent, words_of(octets));
    sim_footprint_note(agent->world, at, octets, false);
    memcpy(to, at, octets);
    memcpy(&results_of(agent)[cpu->accesses], at, octets);
    cpu_observe(agent, (struct sim_access){.kind = SIM_READ,
                                           .at = at,
                                           .octets = octets,
                                           .value = value_at(at, octets < 8 ? octets : 8)});
    cpu_log(agent, NULL, words_of(octets));
    cpu_was_quiet(agent, words_of(octets));
}

static void write_private(struct sim_agent *agent, char *at, const char *from, uint32_t octets)
{
    uint64_t nothing = 0;
    check_in_flight(agent, at, octets, true);
    cpu_take_turn(agent, NEXT_STORE, at, octets, true);
    for (uint32_t done = 0, n; done < octets; done += n) {
        n = octets - done < 8 ? octets - done : 8;
        sim_write(agent->world, agent->index, at + done, from + done, n);
    }
    cpu_observe(agent, (struct sim_access){.kind = SIM_WRITE,
                                           .at = at,
                                           .octets = octets,
                                           .value = value_at(at, octets < 8 ? octets : 8)});
    cpu_log(agent, &nothing, 1);
}

static void read_octets(struct sim_agent *agent, void *to, const void *place, uint32_t octets)
{
    const struct sim_cpu *cpu = agent->cpu;
    struct sim_world *w = agent->world;
    const char *at = place;
    char *out = to;
    if (octets == 0)
        return;
    if (check_granted_range(agent, at, octets)) {
        if (w->cursor >= cpu->accesses) {
            read_private(agent, to, at, octets);
        } else {
            memcpy(to, &results_of(agent)[w->cursor], octets);
            w->cursor += words_of(octets);
        }
        return;
    }
    for (uint32_t n; octets != 0; octets -= n, at += n, out += n) {
        n = natural(agent, at, octets);
        uint64_t value = load(agent, at, n);
        memcpy(out, &value, n);
    }
}

static void write_octets(struct sim_agent *agent, void *place, const void *octets, uint32_t count)
{
    const char *from = octets;
    char *at = place;
    uint64_t nothing;
    if (count == 0)
        return;
    if (check_granted_range(agent, at, count)) {
        if (!repeated(agent, &nothing))
            write_private(agent, at, from, count);
        return;
    }
    for (uint32_t n; count != 0; count -= n, at += n, from += n) {
        n = natural(agent, at, count);
        store(agent, at, n, value_at(from, n), 0);
    }
}

/* ---- net/mem.h --------------------------------------------------------------------------- */

/* An RNIC moves whatever is larger than a piece in pieces. */
static bool in_pieces(const struct sim_agent *agent, uint32_t octets)
{
    return agent->kind == SIM_AGENT_RNIC && octets > agent->world->scenario->machine.tear;
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
    cpu_read_pieces(agent_of(m), &value, at, 8);
    return value;
}

static void sim_store32(struct mem *m, mem32 *at, uint32_t value, int release)
{
    store(agent_of(m), at, 4, value, release);
}

static void sim_store64(struct mem *m, mem64 *at, uint64_t value, int release)
{
    if (in_pieces(agent_of(m), 8))
        cpu_write_pieces(agent_of(m), at, &value, 8);
    else
        store(agent_of(m), at, 8, value, release);
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
    if (agent_of(m)->kind == SIM_AGENT_RNIC)
        cpu_read_pieces(agent_of(m), to, at, (uint32_t)octets);
    else
        read_octets(agent_of(m), to, at, (uint32_t)octets);
}

static void sim_write_mem(struct mem *m, void *at, const void *from, size_t octets)
{
    if (agent_of(m)->kind == SIM_AGENT_RNIC)
        cpu_write_pieces(agent_of(m), at, from, (uint32_t)octets);
    else
        write_octets(agent_of(m), at, from, (uint32_t)octets);
}

static void sim_fill(struct mem *m, void *at, uint8_t octet, size_t octets)
{
    char pattern[SIM_MAX_FILL];
    size_t size = octets < sizeof pattern ? octets : sizeof pattern;
    memset(pattern, octet, size);
    if (agent_of(m)->kind == SIM_AGENT_RNIC) {
        /* A longer fill is refused before the pattern is looked at. */
        cpu_write_pieces(agent_of(m), at, pattern, (uint32_t)octets);
        return;
    }
    for (size_t done = 0, n; done < octets; done += n) {
        n = octets - done < size ? octets - done : size;
        write_octets(agent_of(m), (char *)at + done, pattern, (uint32_t)n);
    }
}

const struct mem_ops cpu_mem_ops = {
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
