/* SPDX-License-Identifier: BSD-3-Clause */
/* The searches agree with each other, end where they should, and say so the same way every time. */
#include "sim/explore.h"

#include <string.h>

#include "tests/run.h"

#define HEAD "kind: ring\nslots: 4\nblocks: 4\n"

/* Worlds small enough for every way to search. */
static const char *const small_worlds[] = {
    HEAD "allocators: [{name: a1, allocations: 2}]\nfreers: [{name: f1}]\n",
    HEAD "allocators: [{name: a1, allocations: 1}, {name: a2, allocations: 1}]\n"
         "freers: [{name: f1}]\n",
    HEAD "allocators: [{name: a1, allocations: 2}, {name: a2, allocations: 1}]\n"
         "freers: [{name: f1}, {name: f2}]\n",
    HEAD "allocators: [{name: r1, agent: rnic, allocations: 1}, {name: a2, allocations: 1}]\n"
         "freers: [{name: f1}]\n",
    HEAD "handles: 1\nallocators: [{name: a1, allocations: 1}, {name: a2, allocations: 1}]\n"
         "freers: [{name: f1}]\n",
    "kind: ring\nslots: 2\nblocks: 2\nhandles: 2\n"
    "allocators: [{name: a1, allocations: 1}, {name: a2, allocations: 2}]\n"
    "freers: [{name: f1}]\n",
    "kind: ring\nslots: 2\nblocks: 2\n"
    "allocators: [{name: a1, allocations: 2}, {name: a2, allocations: 2}]\n"
    "freers: [{name: f1}]\n",
    "kind: ring\nslots: 2\nblocks: 2\nfree_completes: written\n"
    "allocators: [{name: r1, agent: rnic, allocations: 2}, {name: a2, allocations: 2}]\n"
    "freers: [{name: f1}]\n",
    "kind: ring\nslots: 2\nblocks: 2\nhandles: 1\nfree_completes: written\n"
    "allocators: [{name: a1, allocations: 1}, {name: a2, allocations: 2}]\n"
    "freers: [{name: f1}]\n",
    "kind: ring\nslots: 2\nblocks: 2\ncrashes: 1\n"
    "allocators: [{name: a1, allocations: 2}, {name: a2, allocations: 2}]\n"
    "freers: [{name: f1}]\n",
};

static const char two_laps[] =
    HEAD "allocators: [{name: a1, allocations: 3}, {name: a2, allocations: 3}]\n"
         "freers: [{name: f1}]\n"
         "must_reach: [deferral]\n";

static struct sim_scenario *parse(const char *text)
{
    char error[300] = "";
    struct sim_scenario *scenario =
        sim_scenario_parse("test.yaml", text, strlen(text), error, sizeof error);
    if (!scenario)
        puts(error);
    CU_ASSERT_PTR_NOT_NULL_FATAL(scenario);
    return scenario;
}

struct setting {
    enum sim_memory memory;
    uint32_t tear;
    struct sim_stepping stepping;
};

static const struct setting standard = {SIM_MEMORY_TSO, 8, {.private_steps = true}};

/* The report's trace is freed: only figures are looked at. */
static struct sim_report search(const char *text, struct setting setting,
                                struct sim_explore options)
{
    struct sim_scenario *scenario = parse(text);
    scenario->machine.memory = setting.memory;
    scenario->machine.tear = setting.tear;
    char error[200] = "";
    struct sim_world *w = sim_world_new(scenario, &setting.stepping, error, sizeof error);
    CU_ASSERT_PTR_NOT_NULL_FATAL(w);
    uint64_t hash = w->arena.hash;
    struct sim_report report;
    CU_ASSERT_EQUAL(sim_explore(w, &options, &report), 0);
    CU_ASSERT_EQUAL(w->arena.hash, hash);
    CU_ASSERT_PTR_NULL(sim_arena_check(&w->arena));
    sim_report_free(&report);
    sim_world_free(w);
    sim_scenario_free(scenario);
    return report;
}

static const struct sim_explore exhaustive = {.mode = SIM_EXHAUSTIVE};

/* Builds that rehash everything after each step try a part of the variants, and of the largest
 * world, in whose states the most steps are compared, a part. */
#ifdef SIM_REHASH
#define STRIDE 5
#define CROWD_STATES 100
#else
#define STRIDE 1
#define CROWD_STATES 2000
#endif

/* ---- reductions -------------------------------------------------------------------------- */

static bool same_property(const struct sim_report *a, const struct sim_report *b)
{
    if (!a->violation.property || !b->violation.property)
        return a->violation.property == b->violation.property;
    return strcmp(a->violation.property, b->violation.property) == 0;
}

/* With and without private steps and merged drains: the same quiescent states and verdicts. */
static void test_reductions(void)
{
    uint64_t full_states = 0, reduced_states = 0;
    for (size_t i = 0; i < sizeof small_worlds / sizeof *small_worlds; i++) {
        for (int variant = 0; variant < 6; variant += STRIDE) {
            struct setting setting = {
                (enum sim_memory)(variant % 3), variant < 3 ? 8 : 4, {.private_steps = true}};
            struct sim_report reduced = search(small_worlds[i], setting, exhaustive);
            reduced_states += reduced.states;
            for (int way = 1; way < 4; way++) {
                setting.stepping =
                    (struct sim_stepping){.private_steps = !(way & 1), .merged_drains = way & 2};
                struct sim_report full = search(small_worlds[i], setting, exhaustive);
                CU_ASSERT_EQUAL(full.result, reduced.result);
                CU_ASSERT(same_property(&full, &reduced));
                if (reduced.result != SIM_OK)
                    continue; /* a violation ends the search before all quiescent states are met */
                CU_ASSERT_EQUAL(full.quiescent, reduced.quiescent);
                CU_ASSERT_EQUAL(full.quiescent_digest, reduced.quiescent_digest);
                full_states += full.states;
            }
        }
    }
    CU_ASSERT(full_states > 3 * reduced_states); /* else nothing was reduced */
}

/* A timer that may expire at any moment hides no state in which nothing else goes on, though a poll
 * takes several accesses. */
static void test_armed_timer(void)
{
    static const char world[] =
        "kind: protocol\nslots: 2\nblocks: 1\nfirst_block: 100\nblock_size: 8\nhandles: 1\n"
        "credits: 1\nworkers: [{name: W0}]\ninitiators:\n"
        "  - {name: X, workers: [W0], quota: 1, gives_up: false,\n"
        "     program: [{op: alloc_store, handle: 0, direct: true}]}\n"
        "ticket_timeout: true\n";
    struct sim_report report = search(world, standard, exhaustive);
    CU_ASSERT_EQUAL(report.result, SIM_OK);
    CU_ASSERT_EQUAL(report.quiescent, 8); /* in 6 of them the Ticket Timeout runs */
}

static void test_commute(void)
{
    struct sim_explore options = exhaustive;
    options.check_commute = true;
    for (size_t i = 0; i < sizeof small_worlds / sizeof *small_worlds; i++) {
        for (int variant = 0; variant < 12; variant += STRIDE) {
            struct setting setting = {(enum sim_memory)(variant % 3),
                                      variant % 2 ? 8 : 4,
                                      {.private_steps = variant < 6}};
            struct sim_report checked = search(small_worlds[i], setting, options);
            struct sim_report plain = search(small_worlds[i], setting, exhaustive);
            CU_ASSERT_EQUAL(checked.result, plain.result);
            CU_ASSERT(same_property(&checked, &plain));
            CU_ASSERT_EQUAL(checked.states, plain.states);
            CU_ASSERT_EQUAL(checked.digest, plain.digest);
            CU_ASSERT(i == 0 || checked.commuted > 0);
        }
    }
}

/* Whole states and fingerprints: the same states. */
static void test_exact(void)
{
    struct sim_explore exact = exhaustive;
    exact.exact = true;
    for (size_t i = 0; i < sizeof small_worlds / sizeof *small_worlds; i++) {
        struct sim_report a = search(small_worlds[i], standard, exhaustive);
        struct sim_report b = search(small_worlds[i], standard, exact);
        CU_ASSERT_EQUAL(a.states, b.states);
        CU_ASSERT_EQUAL(a.transitions, b.transitions);
        CU_ASSERT_EQUAL(a.digest, b.digest);
        CU_ASSERT_EQUAL(a.depth_max, b.depth_max);
        CU_ASSERT_EQUAL(b.collision, 0);
        CU_ASSERT(a.collision > 0);
    }
}

/* ---- ends -------------------------------------------------------------------------------- */

static void test_bounds(void)
{
    struct sim_explore options = exhaustive;
    struct sim_report whole = search(two_laps, standard, options);
    CU_ASSERT_EQUAL(whole.result, SIM_OK);
    options.max_states = whole.states;
    CU_ASSERT_EQUAL(search(two_laps, standard, options).result, SIM_OK);
    options.max_states = 1000;
    struct sim_report report = search(two_laps, standard, options);
    CU_ASSERT_EQUAL(report.result, SIM_INCOMPLETE);
    CU_ASSERT_EQUAL(report.bound, SIM_BOUND_STATES);
    CU_ASSERT_EQUAL(report.states, 1001);
    options = exhaustive;
    options.max_memory_octets = 4u << 20;
    report = search("kind: ring\nslots: 4\nblocks: 4\nmemory: tso\n"
                    "allocators: [{name: a1, allocations: 6}, {name: a2, allocations: 6}]\n"
                    "freers: [{name: f1}]\n",
                    standard, options);
    CU_ASSERT_EQUAL(report.result, SIM_INCOMPLETE);
    CU_ASSERT_EQUAL(report.bound, SIM_BOUND_MEMORY);
    CU_ASSERT(report.memory_octets <= 5u << 20);
    CU_ASSERT(report.states > 100000);
    static const volatile sig_atomic_t stop = 1;
    options = exhaustive;
    options.stop = &stop;
    report = search(two_laps, standard, options);
    CU_ASSERT_EQUAL(report.bound, SIM_BOUND_STOP);
    options = exhaustive;
    options.max_seconds = 1e-9;
    report = search(two_laps, standard, options);
    CU_ASSERT_EQUAL(report.bound, SIM_BOUND_SECONDS);
}

static void test_vacuous(void)
{
    static const char never[] = HEAD
        "allocators: [{name: a1, allocations: 1}]\nfreers: [{name: f1}]\nmust_reach: [deferral]\n";
    struct sim_explore walks = {.mode = SIM_RANDOM, .seed = 1, .runs = 10};
    CU_ASSERT_EQUAL(search(never, standard, exhaustive).result, SIM_VACUOUS);
    CU_ASSERT_EQUAL(search(never, standard, walks).result, SIM_VACUOUS);
}

/* ---- walks ------------------------------------------------------------------------------- */

static void test_walks(void)
{
    struct sim_report all = search(two_laps, standard, exhaustive);
    const enum sim_mode modes[] = {SIM_RANDOM, SIM_PCT};
    for (int i = 0; i < 2; i++) {
        struct sim_explore options = {.mode = modes[i], .seed = 7, .runs = 2000, .pct_depth = 3};
        struct sim_report first = search(two_laps, standard, options);
        struct sim_report again = search(two_laps, standard, options);
        CU_ASSERT_EQUAL(first.result, SIM_OK); /* a deferral was reached */
        CU_ASSERT_EQUAL(first.runs, 2000);
        CU_ASSERT_EQUAL(first.quiescent, 2000);
        CU_ASSERT(first.states > 1000);
        CU_ASSERT(first.states < all.states);
        CU_ASSERT_EQUAL(first.digest, again.digest);
        CU_ASSERT_EQUAL(first.states, again.states);
        CU_ASSERT_EQUAL(memcmp(first.reached, again.reached, sizeof first.reached), 0);
        options.seed = 8;
        CU_ASSERT_NOT_EQUAL(search(two_laps, standard, options).digest, first.digest);
    }
}

/* A dead allocator strands the others: both kinds of walks come to it. */
static void test_walks_find(void)
{
    static const char crash[] =
        HEAD "crashes: 1\nallocators: [{name: a1, allocations: 4}, {name: a2, allocations: 4}]\n"
             "freers: [{name: f1}]\n";
    const enum sim_mode modes[] = {SIM_RANDOM, SIM_PCT};
    for (int i = 0; i < 2; i++) {
        struct sim_explore options = {.mode = modes[i], .seed = 1, .runs = 10000, .pct_depth = 3};
        struct sim_report report = search(crash, standard, options);
        CU_ASSERT_EQUAL_FATAL(report.result, SIM_VIOLATION);
        CU_ASSERT_STRING_EQUAL(report.violation.property, "stuck");
        CU_ASSERT(report.runs < 10000);
    }
}

/* As many steps at once as a scenario can bring about. */
static void test_many_steps(void)
{
    static const char crowd[] = "kind: ring\nslots: 64\nblocks: 64\nquota: none\nallocators:\n"
                                "- {name: a1, allocations: 9}\n- {name: a2, allocations: 9}\n"
                                "- {name: a3, allocations: 9}\n- {name: a4, allocations: 9}\n"
                                "- {name: a5, allocations: 9}\n- {name: a6, allocations: 9}\n"
                                "- {name: a7, allocations: 9}\n- {name: a8, allocations: 9}\n"
                                "freers: [{name: f1}, {name: f2}, {name: f3}, {name: f4}]\n";
    struct sim_explore walks = {.mode = SIM_PCT, .seed = 1, .runs = 50, .pct_depth = 3};
    CU_ASSERT_EQUAL(search(crowd, standard, walks).result, SIM_OK);
    struct sim_explore some = {.max_states = CROWD_STATES, .check_commute = true};
    CU_ASSERT_EQUAL(search(crowd, standard, some).result, SIM_INCOMPLETE);
}

/* ---- nothing is wrong in these ----------------------------------------------------------- */

#define SMALL "kind: protocol\nslots: 2\nblock_size: 8\n"

/* More requests than a block has octets: what is told of a request is no Block Offset. */
static void test_many_requests(void)
{
    static const char many[] =
        SMALL "blocks: 2\nhandles: 2\nworkers: [{name: W0}]\ninitiators:\n"
              "- {name: X, workers: [W0], quota: 2, program: [\n"
              "  {op: alloc_store, handle: 0, inline: true},\n"
              "  {op: alloc_store, handle: 1, inline: true}, {op: load, handle: outside},\n"
              "  {op: load, handle: outside}, {op: load, handle: outside},\n"
              "  {op: load, handle: outside}, {op: load, handle: outside},\n"
              "  {op: load, handle: outside}]}\n";
    CU_ASSERT_EQUAL(search(many, standard, exhaustive).result, SIM_OK);
}

/* X gives up a ticket, and an ALLOC_STORE waits for its slot until it times out; usage counts that
 * one's ticket. Meanwhile completions wait behind the invalidation, and a FREE overtakes that of
 * the ALLOC_STORE before it. */
static void test_waits_for_timeout(void)
{
    static const char waits[] =
        SMALL "blocks: 2\nhandles: 3\ncredits: 3\nworkers: [{name: W0}]\ninitiators:\n"
              "- {name: X, workers: [W0], quota: 2, depth: 3, program: [\n"
              "  {op: alloc_store, handle: 0, direct: true},\n"
              "  {op: alloc_store, handle: 1, inline: true, seal: true},\n"
              "  {op: free, handle: 1}, {op: alloc_store, handle: 2, inline: true}]}\n"
              "ticket_timeout: true\nmust_reach: [wait, ticket-abandoned]\n";
    struct sim_explore walks = {.mode = SIM_RANDOM, .seed = 1, .runs = 1000 / STRIDE};
    CU_ASSERT_EQUAL(search(waits, standard, walks).result, SIM_OK);
    walks = (struct sim_explore){.mode = SIM_PCT, .seed = 7, .runs = 1000 / STRIDE, .pct_depth = 5};
    CU_ASSERT_EQUAL(search(waits, standard, walks).result, SIM_OK);
}

/* W1 asks again and again, which is seen in memory, whether a session has ended yet; W0, which is
 * to end it, has its turn all the same. */
static void test_walks_are_fair(void)
{
    static const char asks[] =
        SMALL "blocks: 1\nhandles: 1\nworkers: [{name: W0}, {name: W1}]\ninitiators:\n"
              "- {name: X, workers: [W0], quota: 1, program: [{op: goodbye}]}\n"
              "- {name: Y, same_id: X, workers: [W1], quota: 0, program: [{op: goodbye}]}\n"
              "- {name: Z, follows: X, workers: [W1], quota: 0, program: [{op: goodbye}]}\n"
              "retention_ends: true\n";
    struct sim_explore walks = {.mode = SIM_PCT, .seed = 1, .runs = 3000 / STRIDE, .pct_depth = 3};
    struct sim_report report = search(asks, standard, walks);
    CU_ASSERT_EQUAL(report.result, SIM_OK);
    CU_ASSERT(report.depth_max < 10000);
}

static void test_repeats(void)
{
    struct sim_report first = search(two_laps, standard, exhaustive);
    struct sim_report again = search(two_laps, standard, exhaustive);
    CU_ASSERT_EQUAL(first.digest, again.digest);
    CU_ASSERT_EQUAL(first.states, again.states);
    CU_ASSERT_EQUAL(first.transitions, again.transitions);
    CU_ASSERT_EQUAL(first.depth_max, again.depth_max);
    struct setting other = standard;
    other.memory = SIM_MEMORY_SC;
    CU_ASSERT_NOT_EQUAL(search(two_laps, other, exhaustive).digest, first.digest);
}

int main(void)
{
    static const struct test tests[] = {
        {"reductions reach the same quiescent states", test_reductions},
        {"an armed timer hides no quiescent state", test_armed_timer},
        {"independent steps commute", test_commute},
        {"fingerprints and whole states agree", test_exact},
        {"bounds", test_bounds},
        {"vacuous", test_vacuous},
        {"walks", test_walks},
        {"walks find a violation", test_walks_find},
        {"many steps at once", test_many_steps},
        {"many requests", test_many_requests},
        {"what waits for a timeout", test_waits_for_timeout},
        {"walks are fair", test_walks_are_fair},
        {"equal runs, equal digests", test_repeats},
    };
    return run_tests("explore", tests, sizeof tests / sizeof *tests);
}
