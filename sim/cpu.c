/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/cpu.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sim/cpu_state.h"
#include "sim/rnic_state.h"

#define MAX_POLLS 1000u /* in one step */

void *sim_cpu_private(const struct sim_agent *agent)
{
    return private_of(agent);
}

void *sim_cpu_path(const struct sim_agent *agent)
{
    return path_of(agent);
}

/* ---- polls ------------------------------------------------------------------------------- */

/* The poll came to its end: its accesses are history. */
static void poll_ended(struct sim_agent *agent, int result)
{
    struct sim_world *w = agent->world;
    struct sim_cpu *cpu = agent->cpu;
    void *private = private_of(agent);
    uint32_t argument = cpu->argument;
    if (w->cursor < cpu->accesses || next_of(agent)->op != NEXT_NONE)
        sim_violate(w, "pure-poll", "%s ends its poll before the access it was left before",
                    agent->name);
    if (memcmp(private, w->rollback, agent->program->private_size) != 0)
        w->effect = true;
    memset(results_of(agent), 0, cpu->accesses * sizeof(uint64_t));
    w->poll_accesses = cpu->accesses;
    cpu->accesses = 0;
    cpu->quiet = 0;
    cpu_observe(agent, (struct sim_access){.kind = SIM_RESULT, .value = (uint64_t)(int64_t)result});
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
    w->polls = 0;
    while (agent->cpu->polling && !w->violation.property) {
        if (++w->polls > MAX_POLLS)
            sim_violate(w, "bounded-poll", "%s polls on and on and looks at nothing", agent->name);
        memcpy(w->rollback, private_of(agent), rolled_octets(agent->program));
        w->cursor = 0;
        if (setjmp(w->stop)) {
            w->polling = NULL;
            memcpy(private_of(agent), w->rollback, rolled_octets(agent->program));
            return;
        }
        w->polling = agent;
        int result = agent->program->poll(agent, private_of(agent), agent->cpu->argument);
        w->polling = NULL;
        poll_ended(agent, result);
    }
}

/* ---- the agent --------------------------------------------------------------------------- */

static uint32_t enabled_choices(const struct sim_agent *agent, struct sim_step *out)
{
    uint32_t choices[SIM_MAX_CHOICES];
    uint32_t count = agent->program->choices(agent, private_of(agent), choices);
    for (uint32_t i = 0; i < count; i++)
        out[i] = (struct sim_step){
            .kind = SIM_STEP_CHOOSE, .agent = (uint8_t)agent->index, .arg = choices[i]};
    return count;
}

static uint32_t enabled_timers(const struct sim_agent *agent, struct sim_step *out)
{
    const struct sim_handle *h = agent->handle;
    bool (*may_expire)(const struct sim_agent *, uint32_t) = agent->program->may_expire;
    uint32_t count = 0;
    for (uint32_t i = 0; h && i < h->limits.timers; i++)
        if (rnic_timers(h)[i] != 0 && (!may_expire || may_expire(agent, i)))
            out[count++] = (struct sim_step){
                .kind = SIM_STEP_EXPIRE, .agent = (uint8_t)agent->index, .queue = (uint8_t)i};
    return count;
}

static uint32_t cpu_enabled(const struct sim_agent *agent, struct sim_step *out)
{
    const struct sim_cpu *cpu = agent->cpu;
    uint32_t count = 0;
    for (uint32_t i = 0; i < cpu->buffered; i++)
        if (cpu_may_drain(agent, i))
            out[count++] = (struct sim_step){
                .kind = SIM_STEP_DRAIN, .agent = (uint8_t)agent->index, .queue = (uint8_t)i};
    if (cpu->dead)
        return count;
    count += enabled_timers(agent, out + count);
    if (!cpu->polling)
        return count + enabled_choices(agent, out + count);
    const struct sim_next *next = next_of(agent);
    if (!cpu_may_make(agent, (enum next_op)next->op, next->at, next->octets))
        return count;
    if (next->op == NEXT_READ || next->op == NEXT_WRITE)
        return count + cpu_enabled_pieces(agent, next->octets, out + count);
    out[count++] = (struct sim_step){.kind = SIM_STEP_ACCESS, .agent = (uint8_t)agent->index};
    return count;
}

static void choose(struct sim_agent *agent, uint32_t argument)
{
    struct sim_cpu *cpu = agent->cpu;
    cpu->polling = 1;
    cpu->argument = argument;
    cpu_observe(agent, (struct sim_access){.kind = SIM_CHOSEN, .value = argument});
    agent->program->begin(agent, private_of(agent), argument);
    run_polls(agent, agent->world->stepping.private_steps ? ALLOW_ACCESS : ALLOW_NONE, 0);
}

/* What a full buffer held back can enter it when something has drained. */
static bool is_held_back(uint32_t op)
{
    return op == NEXT_STORE || op == NEXT_POST || op == NEXT_POST_RECEIVE;
}

static void expire(struct sim_agent *agent, uint32_t timer)
{
    rnic_expire(agent->handle, timer);
    cpu_observe(agent,
                (struct sim_access){.kind = SIM_EXPIRE, .cpu = agent->index, .value = timer});
}

static void cpu_run(struct sim_agent *agent, const struct sim_step *step)
{
    struct sim_world *w = agent->world;
    if (step->kind == SIM_STEP_EXPIRE) {
        expire(agent, step->queue);
        return;
    }
    w->shown = false;
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
        cpu_drain(agent, step->queue);
        if (agent->cpu->polling && !agent->cpu->dead && is_held_back(next_of(agent)->op))
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
    bool due = !cpu->dead && agent->program->due(private_of(agent));
    return cpu->accesses == cpu->quiet && cpu->pieces == 0 && cpu->polling == due;
}

static enum sim_cost cpu_cost(const struct sim_agent *agent, const struct sim_step *step)
{
    if (step->kind == SIM_STEP_EXPIRE)
        return SIM_COST_NONE;
    if (step->kind == SIM_STEP_DRAIN && buffer_of(agent)[step->queue].release == SIM_DOORBELL)
        return SIM_COST_DOORBELL;
    return SIM_COST_CPU;
}

static const struct sim_agent_ops cpu_ops = {
    .enabled = cpu_enabled,
    .run = cpu_run,
    .at_rest = cpu_at_rest,
    .cost = cpu_cost,
};

void sim_cpu_kill(struct sim_agent *agent)
{
    struct sim_cpu *cpu = agent->cpu;
    sim_touch(&agent->world->arena, agent->segment);
    sim_footprint_note(agent->world, agent->segment->at, agent->segment->size, true);
    memset(results_of(agent), 0, agent->program->max_accesses * sizeof(uint64_t));
    cpu->accesses = 0;
    cpu->quiet = 0;
    cpu->pieces = 0;
    cpu->polling = 0;
    cpu->argument = 0;
    cpu->dead = 1;
    *next_of(agent) = (struct sim_next){.op = NEXT_NONE};
    agent->world->effect = true;
    cpu_observe(agent, (struct sim_access){.kind = SIM_DIED});
}

int sim_cpu_add(struct sim_world *w, const char *name, enum sim_agent_kind kind,
                const struct sim_program *program)
{
    if (w->agents_count == SIM_MAX_AGENTS)
        return -ENOSPC;
    struct sim_agent *agent = &w->agents[w->agents_count];
    *agent = (struct sim_agent){
        .mem = {.sim = &cpu_mem_ops},
        .ops = &cpu_ops,
        .world = w,
        .name = name,
        .program = program,
        .index = w->agents_count,
        .kind = kind,
        .memory = kind == SIM_AGENT_RNIC ? SIM_MEMORY_SC : w->scenario->machine.memory,
    };
    size_t size = sizeof(struct sim_cpu) + program->max_accesses * sizeof(uint64_t) +
                  buffer_entries(agent) * sizeof(struct sim_buffered) + rolled_octets(program) +
                  sizeof(struct sim_next);
    agent->cpu = sim_segment_new(&w->arena, name, size, SIM_STATE);
    if (!agent->cpu || rolled_octets(program) > SIM_MAX_PRIVATE)
        return -ENOMEM;
    agent->segment = sim_segment_of(&w->arena, agent->cpu);
    agent->segment->hashed =
        (uint32_t)(size - sizeof(struct sim_next)) - words_of(program->path_size) * 8;
    return (int)w->agents_count++;
}

void sim_cpu_start(struct sim_world *w)
{
    for (uint32_t i = 0; i < w->agents_count; i++) {
        struct sim_agent *agent = &w->agents[i];
        if (agent->ops != &cpu_ops)
            continue;
        w->shown = false;
        agent->cpu->polling = agent->program->due(private_of(agent));
        run_polls(agent, ALLOW_NONE, 0);
    }
    if (w->rnics)
        rnic_settle(w);
}
