/* SPDX-License-Identifier: BSD-3-Clause */
/* Steps and their words in a trace belong together: sim_step_print(), sim_step_parse(). */
#include "sim/trace.h"

#include <string.h>

#include "sim/random.h"
#include "sim/visited.h"
#include "tests/run.h"

/* Every kind of step: stores drain, reads come in pieces, an allocator dies. */
static const char busy_world[] =
    "kind: ring\nslots: 2\nblocks: 2\nmemory: relaxed\ntear: 4\ncrashes: 1\n"
    "allocators:\n"
    "- {name: cpu-1, allocations: 2}\n"
    "- {name: ABCDEFGHIJKLMNO, agent: rnic, allocations: 1}\n"
    "freers: [{name: _}]\n";

struct exploration {
    struct sim_world *w;
    struct sim_visited *visited;
    uint32_t met[SIM_STEP_KINDS]; /* by kind */
    uint32_t wrong;
};

static void check_words(struct exploration *e, const struct sim_step *step)
{
    char words[64];
    struct sim_step parsed;
    sim_step_print(e->w, step, words, sizeof words);
    if (!sim_step_parse(e->w, words, &parsed) || memcmp(&parsed, step, sizeof parsed) != 0)
        e->wrong++;
    e->met[step->kind]++;
}

/* Depth first from the present state. */
static void check_all(struct exploration *e)
{
    struct sim_step enabled[SIM_MAX_STEPS];
    uint32_t count = sim_world_enabled(e->w, enabled);
    if (sim_visited_add(e->visited, &e->w->arena) != 1)
        return;
    for (uint32_t i = 0; i < count; i++) {
        check_words(e, &enabled[i]);
        size_t mark = sim_arena_mark(&e->w->arena);
        CU_ASSERT_TRUE_FATAL(sim_world_step(e->w, &enabled[i]));
        check_all(e);
        sim_arena_undo(&e->w->arena, mark);
    }
}

/* A world of this text; both are freed by free_world(). */
static struct sim_world *new_world(const char *text)
{
    static const struct sim_stepping stepping = {.private_steps = true};
    char error[300];
    struct sim_scenario *s = sim_scenario_parse("s.yaml", text, strlen(text), error, sizeof error);
    CU_ASSERT_PTR_NOT_NULL_FATAL(s);
    struct sim_world *w = sim_world_new(s, &stepping, error, sizeof error);
    CU_ASSERT_PTR_NOT_NULL_FATAL(w);
    return w;
}

static void free_world(struct sim_world *w)
{
    struct sim_scenario *scenario = (struct sim_scenario *)(uintptr_t)w->scenario;
    sim_world_free(w);
    sim_scenario_free(scenario);
}

/* The number of states; all enabled steps are checked. */
static uint64_t check_world(struct exploration *e, const char *text)
{
    e->w = new_world(text);
    e->visited = sim_visited_new(false, &e->w->arena, SIZE_MAX / 2);
    CU_ASSERT_PTR_NOT_NULL_FATAL(e->visited);
    check_all(e);
    CU_ASSERT_EQUAL(e->wrong, 0);
    uint64_t states = sim_visited_count(e->visited);
    sim_visited_free(e->visited);
    free_world(e->w);
    return states;
}

static void every_enabled_step_has_words(void)
{
    struct exploration e = {0};
    CU_ASSERT_TRUE(check_world(&e, busy_world) > 1000);
    for (unsigned kind = SIM_STEP_CHOOSE; kind <= SIM_STEP_FAULT; kind++)
        CU_ASSERT_TRUE(e.met[kind] != 0);
}

/*
 * Requests that need every kind of message but atomics, connections that break, an initiator that
 * stops, a target that restarts. No world of scenarios arms timers; tests/sim/test_rnic_steps.c
 * does.
 */
static const char remote_world[] = "kind: protocol\nslots: 2\nblocks: 2\nblock_size: 16\n"
                                   "handles: 1\ncredits: 1\nmax_inline: 16\n"
                                   "workers: [{name: worker-1}]\n"
                                   "initiators:\n"
                                   "- name: ABCDEFGHIJ\n"
                                   "  workers: [worker-1]\n"
                                   "  quota: 1\n"
                                   "  reconnects: 1\n"
                                   "  program:\n"
                                   "  - {op: alloc_store, handle: 0}\n"
                                   "  - {op: load, handle: 0, allow_unsealed: true}\n"
                                   "  - {op: goodbye}\n"
                                   "losses: 1\nstops: 1\nsilent_stops: 1\nrestarts: 1\n";

static bool is_met_there(unsigned kind)
{
    return kind != SIM_STEP_PIECE && kind != SIM_STEP_EXPIRE && kind != SIM_STEP_ATOMIC &&
           kind != SIM_STEP_SNAPSHOT; /* test_rnic_chain_order.c */
}

/* Walks, each of its own way, in which all enabled steps are checked. */
static void every_remote_step_has_words(void)
{
    struct exploration e = {.w = new_world(remote_world)};
    struct sim_step enabled[SIM_MAX_STEPS];
    uint64_t chance = 1;
    e.w->stepping.private_steps = false;
    size_t mark = sim_arena_mark(&e.w->arena);
    for (int walk = 0; walk < 100; walk++) {
        for (int i = 0; i < 500; i++) {
            uint32_t count = sim_world_enabled(e.w, enabled);
            for (uint32_t j = 0; j < count; j++)
                check_words(&e, &enabled[j]);
            const struct sim_step *step = &enabled[sim_random_below(&chance, count)];
            /* Faults are rare, or nothing else would be met. */
            if (sim_step_is_environment(step) && sim_random_below(&chance, 100) != 0)
                continue;
            if (!sim_world_step(e.w, step))
                break;
        }
        CU_ASSERT_PTR_NULL(e.w->violation.property);
        sim_arena_undo(&e.w->arena, mark);
    }
    for (unsigned kind = SIM_STEP_CHOOSE; kind < SIM_STEP_KINDS; kind++)
        CU_ASSERT_EQUAL(e.met[kind] != 0, is_met_there(kind));
    CU_ASSERT_EQUAL(e.wrong, 0);
    free_world(e.w);
}

static void every_number_has_words(void)
{
    struct exploration e = {.w = new_world(busy_world)};
    for (uint32_t i = 0; i < 32; i++) {
        uint32_t arg = UINT32_C(1) << i;
        check_words(&e, &(struct sim_step){.kind = SIM_STEP_CHOOSE, .arg = arg});
        check_words(&e, &(struct sim_step){.kind = SIM_STEP_CHOOSE, .arg = arg - 1 + arg});
        check_words(&e, &(struct sim_step){.kind = SIM_STEP_PIECE, .piece = (uint8_t)i});
        check_words(&e, &(struct sim_step){.kind = SIM_STEP_DRAIN, .queue = (uint8_t)i});
    }
    free_world(e.w);
    e.w = new_world(remote_world);
    uint8_t rnic = 0, fault = 0;
    for (uint32_t i = 0; i < e.w->agents_count; i++) {
        if (e.w->agents[i].rnic)
            rnic = (uint8_t)i;
        if (strcmp(e.w->agents[i].name, SIM_ENVIRONMENT_NAME) == 0)
            fault = (uint8_t)i;
    }
    for (uint32_t i = 0; i < 32; i++) {
        uint32_t arg = UINT32_C(1) << i;
        uint8_t low = (uint8_t)(arg >> i % 8), all = (uint8_t)(255 - i);
        check_words(&e, &(struct sim_step){SIM_STEP_CUT, fault, 0, 0, arg});
        check_words(&e, &(struct sim_step){SIM_STEP_EXPIRE, 0, all, 0, 0});
        check_words(&e, &(struct sim_step){SIM_STEP_GATHER, rnic, low, 0, arg});
        check_words(&e, &(struct sim_step){SIM_STEP_PLACE, rnic, low, all, arg});
        check_words(&e, &(struct sim_step){SIM_STEP_READ, rnic, all, low, arg});
        check_words(&e, &(struct sim_step){SIM_STEP_ATOMIC, rnic, low, all, 0});
    }
    CU_ASSERT_EQUAL(e.wrong, 0);
    free_world(e.w);
}

static void garbage_is_no_step(void)
{
    static const char *const garbage[] = {
        "",
        " ",
        "_",
        "_ choose",
        "_ choose ",
        "choose 0",
        "_ 0",
        "_ choose 0 0",
        "_ choose 0x1",
        "_ choose 0\n",
        "_ choose 0 ",
        " _ choose 0",
        "_  choose 0",
        "_\tchoose 0",
        "_ choose -1",
        "_ choose +1",
        "_ choose 01",
        "_ choose 4294967296",
        "_ choose 18446744073709551617",
        "_ choose 99999999999999999999999",
        "_ chose 0",
        "_ CHOOSE 0",
        "_ choosechoosechoosechoose 0",
        "__ choose 0",
        "nobody choose 0",
        "ABCDEFGHIJKLMN choose 0",
        "ABCDEFGHIJKLMNOP choose 0",
        "ABCDEFGHIJKLMNOPQRSTUVWXYZ choose 0",
        "_ piece 256",
        "_ drain 256",
        "_ access 4294967296",
        "fault dies 256",
        "fault cuts 0 0",
        "_ expire 256",
        "_ gather 0 0",
        "%s %n 0",
    };
    struct sim_world *w = new_world(busy_world);
    for (size_t i = 0; i < sizeof garbage / sizeof garbage[0]; i++) {
        struct sim_step step;
        bool taken = sim_step_parse(w, garbage[i], &step);
        if (taken)
            fprintf(stderr, "\n'%s' is taken for a step\n", garbage[i]);
        CU_ASSERT_FALSE(taken);
    }
    free_world(w);
}

int main(void)
{
    static const struct test tests[] = {
        {"every enabled step has words", every_enabled_step_has_words},
        {"every remote step has words", every_remote_step_has_words},
        {"every number has words", every_number_has_words},
        {"garbage is no step", garbage_is_no_step},
    };
    return run_tests("sim/trace steps", tests, sizeof tests / sizeof tests[0]);
}
