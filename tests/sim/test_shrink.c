/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sim_shrink() and sim_replay() on a violation that needs no mutant: one of two allocators dies
 * between its FetchAdd and its slot, and the other gets stuck at that slot.
 */
#include "sim/replay.h"

#include <stdlib.h>
#include <string.h>

#include "sim/explore.h"
#include "tests/run.h"

#define LONGEST 100000u
#define SHORTEST 28u /* what every trace so far came down to */

static const char deadly[] = "kind: ring\n"
                             "slots: 4\n"
                             "blocks: 4\n"
                             "memory: sc\n"
                             "crashes: 1\n"
                             "allocators:\n"
                             "- {name: a1, allocations: 4}\n"
                             "- {name: a2, allocations: 4}\n"
                             "freers: [{name: f1}]\n";

/* Here a look of the allocator that waits takes four steps. */
static const char deadly_rnic[] = "kind: ring\n"
                                  "slots: 2\n"
                                  "blocks: 2\n"
                                  "memory: sc\n"
                                  "tear: 4\n"
                                  "crashes: 1\n"
                                  "allocators:\n"
                                  "- {name: a1, agent: rnic, allocations: 2}\n"
                                  "- {name: a2, agent: rnic, allocations: 2}\n"
                                  "freers: [{name: f1}]\n";

/* A world, and the steps to a violation in it. */
struct fixture {
    struct sim_scenario *scenario;
    struct sim_world *w;
    uint64_t initial; /* hash */
    struct sim_step steps[LONGEST];
    uint32_t count;
};

static struct fixture *set_up(const char *text)
{
    static const struct sim_stepping stepping = {.private_steps = true};
    char error[300];
    struct fixture *f = calloc(1, sizeof *f);
    CU_ASSERT_PTR_NOT_NULL_FATAL(f);
    f->scenario = sim_scenario_parse("s.yaml", text, strlen(text), error, sizeof error);
    CU_ASSERT_PTR_NOT_NULL_FATAL(f->scenario);
    f->w = sim_world_new(f->scenario, &stepping, error, sizeof error);
    CU_ASSERT_PTR_NOT_NULL_FATAL(f->w);
    f->initial = f->w->arena.hash;
    return f;
}

static void tear_down(struct fixture *f)
{
    sim_world_free(f->w);
    sim_scenario_free(f->scenario);
    free(f);
}

/* The world must be as it was, ready for the next. */
static bool is_initial(struct fixture *f)
{
    struct sim_arena *arena = &f->w->arena;
    return arena->hash == f->initial && sim_arena_check(arena) == NULL &&
           sim_arena_mark(arena) == 0 && !f->w->violation.property;
}

/* Fills f->steps with the steps to `stuck`. */
static void explore(struct fixture *f, enum sim_mode mode, uint64_t seed)
{
    struct sim_explore options = {.mode = mode, .seed = seed, .runs = 1000000, .pct_depth = 3};
    struct sim_report report;
    CU_ASSERT_EQUAL_FATAL(sim_explore(f->w, &options, &report), 0);
    CU_ASSERT_EQUAL_FATAL(report.result, SIM_VIOLATION);
    CU_ASSERT_STRING_EQUAL(report.violation.property, "stuck");
    CU_ASSERT_FATAL(report.trace_steps <= LONGEST);
    f->count = report.trace_steps;
    memcpy(f->steps, report.trace, f->count * sizeof *f->steps);
    sim_report_free(&report);
    CU_ASSERT_TRUE(is_initial(f));
}

/* Replays; the digest when that ends in `stuck`, else 0. */
static uint64_t digest_of(struct fixture *f, const struct sim_step *steps, uint32_t count)
{
    struct sim_replay replay;
    size_t mark = sim_arena_mark(&f->w->arena);
    sim_replay(f->w, steps, count, &replay);
    bool stuck = replay.end == SIM_REPLAY_VIOLATION && replay.steps_run == count &&
                 strcmp(f->w->violation.property, "stuck") == 0;
    f->w->violation.property = NULL;
    sim_arena_undo(&f->w->arena, mark);
    CU_ASSERT_TRUE(is_initial(f));
    return stuck ? replay.digest : 0;
}

static uint32_t switches(const struct fixture *f)
{
    uint32_t sum = 0;
    for (uint32_t i = 1; i < f->count; i++)
        sum += f->steps[i].agent != f->steps[i - 1].agent;
    return sum;
}

static void check_shrunk(struct fixture *f)
{
    uint32_t found = f->count, found_switches = switches(f);
    CU_ASSERT_NOT_EQUAL(digest_of(f, f->steps, f->count), 0);
    CU_ASSERT_EQUAL(sim_shrink(f->w, "stuck", f->steps, &f->count, NULL), 0);
    CU_ASSERT_TRUE(is_initial(f));
    CU_ASSERT_TRUE(f->count <= found);
    CU_ASSERT_TRUE(f->count <= SHORTEST);
    CU_ASSERT_TRUE(f->count < found || switches(f) <= found_switches);
    uint64_t digest = digest_of(f, f->steps, f->count);
    CU_ASSERT_NOT_EQUAL(digest, 0);
    CU_ASSERT_EQUAL(digest_of(f, f->steps, f->count), digest);
}

static void a_trace_of_the_search_is_shrunk(void)
{
    struct fixture *f = set_up(deadly);
    explore(f, SIM_EXHAUSTIVE, 0);
    check_shrunk(f);
    tear_down(f);
}

static void traces_of_walks_are_shrunk(void)
{
    struct fixture *f = set_up(deadly);
    uint32_t shorter = 0;
    for (uint64_t seed = 1; seed <= 10; seed++) {
        explore(f, seed % 2 ? SIM_RANDOM : SIM_PCT, seed);
        uint32_t found = f->count;
        check_shrunk(f);
        shorter += f->count < found;
    }
    CU_ASSERT_TRUE(shorter >= 5);
    tear_down(f);
}

/* With the buffers of TSO there are drains to take along, and looks that find nothing. */
static void a_trace_with_store_buffers_is_shrunk(void)
{
    char text[sizeof deadly + 8];
    const char *memory = strstr(deadly, "memory: sc\n");
    snprintf(text, sizeof text, "%.*smemory: tso\n%s", (int)(memory - deadly), deadly,
             memory + strlen("memory: sc\n"));
    struct fixture *f = set_up(text);
    explore(f, SIM_RANDOM, 7);
    check_shrunk(f);
    tear_down(f);
}

/* No step of the result can be left out. */
static void the_result_is_minimal(void)
{
    struct fixture *f = set_up(deadly);
    explore(f, SIM_RANDOM, 3);
    CU_ASSERT_EQUAL(sim_shrink(f->w, "stuck", f->steps, &f->count, NULL), 0);
    struct sim_step *rest = calloc(f->count, sizeof *rest);
    CU_ASSERT_PTR_NOT_NULL_FATAL(rest);
    uint32_t still = 0;
    for (uint32_t left_out = 0; left_out < f->count; left_out++) {
        memcpy(rest, f->steps, left_out * sizeof *rest);
        memcpy(rest + left_out, f->steps + left_out + 1, (f->count - 1 - left_out) * sizeof *rest);
        still += digest_of(f, rest, f->count - 1) != 0;
    }
    CU_ASSERT_EQUAL(still, 0);
    free(rest);
    tear_down(f);
}

static void equal_traces_are_shrunk_alike(void)
{
    struct fixture *f = set_up(deadly), *g;
    explore(f, SIM_RANDOM, 5);
    struct sim_step *found = malloc(f->count * sizeof *found);
    CU_ASSERT_PTR_NOT_NULL_FATAL(found);
    uint32_t found_count = f->count;
    memcpy(found, f->steps, found_count * sizeof *found);
    CU_ASSERT_EQUAL(sim_shrink(f->w, "stuck", f->steps, &f->count, NULL), 0);
    uint32_t count = f->count;
    struct sim_step *once = malloc(count * sizeof *once);
    CU_ASSERT_PTR_NOT_NULL_FATAL(once);
    memcpy(once, f->steps, count * sizeof *once);
    tear_down(f);

    g = set_up(deadly);
    memcpy(g->steps, found, found_count * sizeof *found);
    g->count = found_count;
    CU_ASSERT_EQUAL(sim_shrink(g->w, "stuck", g->steps, &g->count, NULL), 0);
    CU_ASSERT_EQUAL(g->count, count);
    CU_ASSERT_EQUAL(memcmp(g->steps, once, count * sizeof *once), 0);
    /* And there is nothing left to shrink. */
    CU_ASSERT_EQUAL(sim_shrink(g->w, "stuck", g->steps, &g->count, NULL), 0);
    CU_ASSERT_EQUAL(g->count, count);
    CU_ASSERT_EQUAL(memcmp(g->steps, once, count * sizeof *once), 0);
    tear_down(g);
    free(once);
    free(found);
}

/* Exchanges neighbours where that makes more switches and still leads to `stuck`. */
static void scramble(struct fixture *f)
{
    for (uint32_t i = 1; i < f->count; i++) {
        struct sim_step first = f->steps[i - 1], second = f->steps[i];
        uint32_t before = switches(f);
        f->steps[i - 1] = second;
        f->steps[i] = first;
        if (switches(f) > before && digest_of(f, f->steps, f->count) != 0)
            continue;
        f->steps[i - 1] = first;
        f->steps[i] = second;
    }
}

/* Steps of which none can go are still put in order. */
static void a_scrambled_trace_is_put_in_order(void)
{
    static const char *const worlds[] = {deadly, deadly_rnic};
    for (size_t i = 0; i < sizeof worlds / sizeof worlds[0]; i++) {
        struct fixture *f = set_up(worlds[i]);
        explore(f, SIM_RANDOM, 1);
        CU_ASSERT_EQUAL(sim_shrink(f->w, "stuck", f->steps, &f->count, NULL), 0);
        uint32_t count = f->count, least = switches(f);
        scramble(f);
        uint32_t scrambled = switches(f);
        CU_ASSERT_NOT_EQUAL(digest_of(f, f->steps, f->count), 0);
        CU_ASSERT_EQUAL(sim_shrink(f->w, "stuck", f->steps, &f->count, NULL), 0);
        CU_ASSERT_EQUAL(f->count, count);
        CU_ASSERT_TRUE(scrambled > least);
        CU_ASSERT_TRUE(switches(f) <= least);
        CU_ASSERT_NOT_EQUAL(digest_of(f, f->steps, f->count), 0);
        tear_down(f);
    }
}

/* Whoever asks to stop gets what there is by then. */
static void shrinking_stops_when_told(void)
{
    static const volatile sig_atomic_t stop = 1;
    struct fixture *f = set_up(deadly);
    explore(f, SIM_RANDOM, 1);
    uint32_t found = f->count;
    uint64_t digest = digest_of(f, f->steps, f->count);
    CU_ASSERT_EQUAL(sim_shrink(f->w, "stuck", f->steps, &f->count, &stop), 0);
    CU_ASSERT_TRUE(is_initial(f));
    CU_ASSERT_EQUAL(f->count, found);
    CU_ASSERT_EQUAL(digest_of(f, f->steps, f->count), digest);
    tear_down(f);
}

/* What does not fail cannot be shrunk. */
static void another_property_leaves_the_steps_alone(void)
{
    struct fixture *f = set_up(deadly);
    explore(f, SIM_EXHAUSTIVE, 0);
    uint32_t found = f->count;
    uint64_t digest = digest_of(f, f->steps, f->count);
    CU_ASSERT_EQUAL(sim_shrink(f->w, "block-once", f->steps, &f->count, NULL), 0);
    CU_ASSERT_TRUE(is_initial(f));
    CU_ASSERT_EQUAL(f->count, found);
    CU_ASSERT_EQUAL(digest_of(f, f->steps, f->count), digest);
    tear_down(f);
}

static void no_steps_stay_none(void)
{
    struct fixture *f = set_up(deadly);
    CU_ASSERT_EQUAL(sim_shrink(f->w, "block-once", f->steps, &f->count, NULL), 0);
    CU_ASSERT_EQUAL(f->count, 0);
    CU_ASSERT_TRUE(is_initial(f));
    tear_down(f);
}

/* Shrinking makes many steps, but they count for nothing. */
static void shrinking_reaches_nothing(void)
{
    struct fixture *f = set_up(deadly);
    explore(f, SIM_EXHAUSTIVE, 0);
    uint64_t reached[SIM_MAX_REACH];
    memcpy(reached, f->w->reached, sizeof reached);
    for (int counts = 0; counts <= 1; counts++) {
        f->w->count_reached = counts;
        CU_ASSERT_EQUAL(sim_shrink(f->w, "stuck", f->steps, &f->count, NULL), 0);
        CU_ASSERT_EQUAL(f->w->count_reached, counts);
        CU_ASSERT_EQUAL(memcmp(f->w->reached, reached, sizeof reached), 0);
    }
    tear_down(f);
}

/* ---- replay ------------------------------------------------------------------------------ */

static void replay_stops_at_a_step_that_cannot_be_made(void)
{
    struct fixture *f = set_up(deadly);
    explore(f, SIM_EXHAUSTIVE, 0);
    struct sim_replay replay;
    f->steps[f->count / 2] = (struct sim_step){.kind = SIM_STEP_PIECE, .piece = 9};
    sim_replay(f->w, f->steps, f->count, &replay);
    CU_ASSERT_EQUAL(replay.end, SIM_REPLAY_NOT_ENABLED);
    CU_ASSERT_EQUAL(replay.steps_run, f->count / 2);
    sim_arena_undo(&f->w->arena, 0);
    f->steps[0].agent = 255;
    sim_replay(f->w, f->steps, f->count, &replay);
    CU_ASSERT_EQUAL(replay.end, SIM_REPLAY_NOT_ENABLED);
    CU_ASSERT_EQUAL(replay.steps_run, 0);
    CU_ASSERT_TRUE(is_initial(f));
    tear_down(f);
}

static void replay_of_a_part_finds_nothing(void)
{
    struct fixture *f = set_up(deadly);
    explore(f, SIM_EXHAUSTIVE, 0);
    CU_ASSERT_EQUAL(sim_shrink(f->w, "stuck", f->steps, &f->count, NULL), 0);
    struct sim_replay replay;
    uint64_t last = 0;
    for (uint32_t count = 0; count < f->count; count++) {
        sim_replay(f->w, f->steps, count, &replay);
        CU_ASSERT_EQUAL(replay.end, SIM_REPLAY_RAN);
        CU_ASSERT_EQUAL(replay.steps_run, count);
        CU_ASSERT_NOT_EQUAL(replay.digest, last);
        last = replay.digest;
        sim_arena_undo(&f->w->arena, 0);
    }
    CU_ASSERT_TRUE(is_initial(f));
    tear_down(f);
}

int main(void)
{
    static const struct test tests[] = {
        {"a trace of the search is shrunk", a_trace_of_the_search_is_shrunk},
        {"traces of walks are shrunk", traces_of_walks_are_shrunk},
        {"a trace with store buffers is shrunk", a_trace_with_store_buffers_is_shrunk},
        {"the result is minimal", the_result_is_minimal},
        {"equal traces are shrunk alike", equal_traces_are_shrunk_alike},
        {"a scrambled trace is put in order", a_scrambled_trace_is_put_in_order},
        {"shrinking stops when told", shrinking_stops_when_told},
        {"another property leaves the steps alone", another_property_leaves_the_steps_alone},
        {"no steps stay none", no_steps_stay_none},
        {"shrinking reaches nothing", shrinking_reaches_nothing},
        {"replay stops at a step that cannot be made", replay_stops_at_a_step_that_cannot_be_made},
        {"replay of a part finds nothing", replay_of_a_part_finds_nothing},
    };
    return run_tests("sim/shrink", tests, sizeof tests / sizeof tests[0]);
}
