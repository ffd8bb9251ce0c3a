/* SPDX-License-Identifier: BSD-3-Clause */
#include "litmus.h"

#include <CUnit/Basic.h>
#include <stdlib.h>
#include <string.h>

#include "bare_world.h"

uint64_t *litmus_ghost;

/* The test that runs: the callbacks below have no other way to it. */
static const struct litmus *running;
static struct litmus_shared shared;
static struct outcomes *collected;

static int poll_code(struct sim_agent *agent, void *private, uint32_t argument)
{
    struct litmus_private *p = private;
    (void)argument;
    CU_ASSERT_EQUAL(p->done, 0); /* whatever an earlier try changed was rolled back */
    p->done = 1;
    running->code[agent->index](&agent->mem, &shared, p->result);
    return 0;
}

static void poll_ended(struct sim_agent *agent, void *private, uint32_t argument, int result)
{
    (void)private, (void)argument, (void)result;
    if (running->ended)
        running->ended(agent);
}

static bool is_due(const void *private)
{
    return ((const struct litmus_private *)private)->done == 0;
}

static const struct sim_program program = {
    .private_size = sizeof(struct litmus_private),
    .max_accesses = 8,
    .poll = poll_code,
    .ended = poll_ended,
    .choices = bare_choices,
    .due = is_due,
};

/* Asked in every quiescent state: the place to look at what came out. */
static bool collect(struct sim_world *w, char *why, size_t size)
{
    struct outcome now = {0};
    (void)why, (void)size;
    for (uint32_t i = 0; i < w->agents_count; i++) {
        const struct litmus_private *p = sim_cpu_private(&w->agents[i]);
        memcpy(now.result[i], p->result, sizeof now.result[i]);
    }
    memcpy(&now.x, (const void *)shared.x, sizeof now.x);
    for (uint32_t i = 0; i < collected->count; i++)
        if (memcmp(&collected->all[i], &now, sizeof now) == 0)
            return false;
    CU_ASSERT_FATAL(collected->count < LITMUS_OUTCOMES);
    collected->all[collected->count++] = now;
    return false;
}

static void no_words(struct sim_world *w, const struct sim_access *access, char *out, size_t size)
{
    (void)w, (void)access;
    if (size)
        out[0] = 0;
}

static const struct sim_world_ops ops = {
    .wrote = bare_wrote,
    .published = bare_published,
    .open_requests = collect,
    .describe = no_words,
};

static void build(struct sim_world *w)
{
    CU_ASSERT_EQUAL_FATAL(sim_arena_open(&w->arena, 1 << 20), 0);
    shared.x = bare_segment(w, "word", 8, 0);
    shared.low = (mem32 *)(void *)shared.x;
    shared.high = shared.low + 1;
    shared.y = bare_segment(w, "word", 8, 0);
    shared.z = bare_segment(w, "word", 16, 0);
    litmus_ghost = sim_segment_new(&w->arena, "ghost", 64, SIM_STATE);
    w->ops = &ops;
    for (uint32_t i = 0; i < running->agents; i++)
        CU_ASSERT_FATAL(sim_cpu_add(w, "agent", running->kind[i], &program) >= 0);
    sim_cpu_start(w);
    sim_arena_seal(&w->arena);
    w->arena.undo_used = w->arena.undo_start = 0;
}

void litmus_run(const struct litmus *litmus, struct outcomes *outcomes)
{
    struct sim_scenario scenario = {
        .machine = {.memory = litmus->memory,
                    .store_buffer = litmus->store_buffer ? litmus->store_buffer : 4,
                    .tear = litmus->tear ? litmus->tear : 8,
                    .dma_order = litmus->dma_order}};
    struct sim_world *w = calloc(1, sizeof *w);
    CU_ASSERT_PTR_NOT_NULL_FATAL(w);
    memset(outcomes, 0, sizeof *outcomes);
    running = litmus;
    collected = outcomes;
    w->scenario = &scenario;
    w->stepping = (struct sim_stepping){.private_steps = !litmus->no_private_steps,
                                        .merged_drains = litmus->merged_drains};
    build(w);
    uint64_t hash = w->arena.hash;
    struct sim_explore options = {.mode = SIM_EXHAUSTIVE, .check_commute = litmus->check_commute};
    CU_ASSERT_EQUAL(sim_explore(w, &options, &outcomes->report), 0);
    CU_ASSERT_EQUAL(w->arena.hash, hash);
    if (outcomes->report.result == SIM_OK)
        CU_ASSERT_PTR_NULL(sim_arena_check(&w->arena));
    sim_report_free(&outcomes->report);
    sim_arena_close(&w->arena);
    free(w);
}

bool litmus_has(const struct outcomes *outcomes, uint64_t a0, uint64_t a1, uint64_t b0, uint64_t b1)
{
    for (uint32_t i = 0; i < outcomes->count; i++) {
        const struct outcome *o = &outcomes->all[i];
        if (o->result[0][0] == a0 && o->result[0][1] == a1 && o->result[1][0] == b0 &&
            o->result[1][1] == b1)
            return true;
    }
    return false;
}

bool litmus_same(const struct outcomes *a, const struct outcomes *b)
{
    uint32_t found = 0;
    for (uint32_t i = 0; i < a->count; i++)
        for (uint32_t j = 0; j < b->count; j++)
            found += memcmp(&a->all[i], &b->all[j], sizeof a->all[i]) == 0;
    return found == a->count && a->count == b->count;
}
