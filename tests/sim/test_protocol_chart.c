/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the chart of a protocol world tells of a short run. Linked with
 * -Wl,--wrap=realloc,--wrap=calloc the suite also makes every allocation fail in turn; without,
 * that test says that it is skipped.
 */
#include "sim/protocol_chart.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sim/kind.h"
#include "tests/run.h"
#include "tests/sim/chart_fixture.h"
#include "tests/sim/svg.h"
#include "tests/sim/wrapped.h"

/* ---- runs -------------------------------------------------------------------------------- */

#define HEAD \
    "kind: protocol\nslots: 2\nblocks: 2\nfirst_block: 100\nblock_size: 16\nhandles: 1\n" \
    "workers: [{name: W0}]\n"
#define X \
    "initiators:\n  - name: X\n    workers: [W0]\n    quota: 1\n    reconnects: 1\n    program:\n"
#define STORE "      - {op: alloc_store, handle: 0, inline: true, seal: true}\n"
#define STORE_BY_READ "      - {op: alloc_store, handle: 0, seal: true}\n"
#define LOAD "      - {op: load, handle: 0}\n"
#define FREE "      - {op: free, handle: 0, generation: current}\n"
#define MAX_STEPS 2000u
#define MAX_ROUNDS 120u

struct run {
    struct sim_scenario *scenario;
    struct sim_world *world;
    struct sim_step steps[MAX_STEPS];
    uint32_t count;
    struct chart chart;
    struct sim_replay replay;
};

static struct sim_world *build(const struct sim_scenario *scenario)
{
    const struct sim_stepping stepping = {.private_steps = true};
    char error[256] = "";
    struct sim_world *w = sim_world_new(scenario, &stepping, error, sizeof error);
    CU_ASSERT_STRING_EQUAL(error, "");
    CU_ASSERT_PTR_NOT_NULL_FATAL(w);
    return w;
}

/* The first step of an agent; one of the environment only if it breaks a connection and may. */
static bool first_step(const struct sim_world *w, uint32_t agent, bool cut, struct sim_step *step)
{
    static struct sim_step steps[SIM_MAX_STEPS];
    uint32_t count = w->agents[agent].ops->enabled(&w->agents[agent], steps);
    for (uint32_t i = 0; i < count; i++) {
        if (sim_step_is_environment(&steps[i]) && !(cut && steps[i].kind == SIM_STEP_CUT))
            continue;
        *step = steps[i];
        return true;
    }
    return false;
}

/*
 * Every agent in turn makes a step; the environment cuts in round `cut`. Where connections can end
 * CPUs look again and again, and some are always within a look.
 */
static void make_steps(struct run *run, uint32_t cut)
{
    struct sim_world *w = build(run->scenario);
    for (uint32_t round = 1;
         round <= MAX_ROUNDS && !w->violation.property && !sim_world_quiescent(w); round++)
        for (uint32_t i = 0; i < w->agents_count && !w->violation.property; i++) {
            struct sim_step step;
            if (!first_step(w, i, round == cut, &step))
                continue;
            CU_ASSERT_FATAL(run->count < MAX_STEPS);
            run->steps[run->count++] = step;
            sim_world_step(w, &step);
        }
    sim_world_free(w);
}

static void draw_chart(struct run *run)
{
    chart_free(&run->chart);
    sim_world_free(run->world);
    run->world = build(run->scenario);
    sim_kind_chart(run->world, run->steps, run->count, &run->chart, &run->replay);
}

static struct run *run_new(const char *text, uint32_t cut)
{
    char error[256] = "";
    struct run *run = calloc(1, sizeof *run);
    CU_ASSERT_PTR_NOT_NULL_FATAL(run);
    run->scenario = sim_scenario_parse("s.yaml", text, strlen(text), error, sizeof error);
    CU_ASSERT_STRING_EQUAL(error, "");
    CU_ASSERT_PTR_NOT_NULL_FATAL(run->scenario);
    chart_init(&run->chart);
    make_steps(run, cut);
    draw_chart(run);
    CU_ASSERT_FALSE(run->chart.failed);
    return run;
}

static void run_free(struct run *run)
{
    chart_free(&run->chart);
    sim_world_free(run->world);
    sim_scenario_free(run->scenario);
    free(run);
}

/* ---- what it tells ----------------------------------------------------------------------- */

struct told {
    const char *from, *text, *to, *value;
    enum chart_row_kind kind;
};

static void check_rows(const struct chart *chart, const struct told *told, uint32_t count)
{
    CU_ASSERT_EQUAL(chart->rows_count, count);
    for (uint32_t i = 0; i < count && i < chart->rows_count; i++) {
        const struct chart_row *row = &chart->rows[i];
        CU_ASSERT_STRING_EQUAL(row->text, told[i].text);
        CU_ASSERT_EQUAL(row->kind, told[i].kind);
        CU_ASSERT_STRING_EQUAL(chart->lanes[row->agent_lane].name, told[i].from);
        CU_ASSERT_STRING_EQUAL(row->value, told[i].value ? told[i].value : "");
        if (told[i].to)
            CU_ASSERT_STRING_EQUAL(chart->lanes[row->memory_lane].name, told[i].to);
        CU_ASSERT(i == 0 || row->step >= row[-1].step);
    }
}

static const struct chart_row *find(const struct chart *chart, const char *text)
{
    for (uint32_t i = 0; i < chart->rows_count; i++)
        if (strcmp(chart->rows[i].text, text) == 0)
            return &chart->rows[i];
    return NULL;
}

static const struct told story[] = {
    {"X", "submits request 1: ALLOC_STORE 0, inline", NULL, NULL, CHART_LOCAL},
    {"X-rnic", "ALLOC_STORE h0, inline 16, SEAL", "rnic", NULL, CHART_MESSAGE},
    {"W0", "takes ALLOC_STORE h0 of X", NULL, NULL, CHART_LOCAL},
    {"W0", "loads entry 0: generation 1, not VALID", "entry 0", NULL, CHART_READ},
    {"W0", "FetchAdd Head: ticket 0", "Head", "1", CHART_BOTH},
    {"W0", "loads slot 0: Sequence 0, block 100", "slot 0", NULL, CHART_READ},
    {"W0", "drains slot 0: empty", "slot 0", "0: empty", CHART_WRITE},
    {"W0", "drains block 100: X#1", "block 100", "X#1", CHART_WRITE},
    {"W0", "loads entry 0: generation 1, not VALID", "entry 0", NULL, CHART_READ},
    {"W0", "drains entry 0: 16 octets, block 100, VALID, generation 2, SEALED", "entry 0",
     "gen 2: 100", CHART_WRITE},
    {"rnic", "COMPLETION OK, h0 gen 2", "X-rnic", NULL, CHART_MESSAGE},
    {"X", "is told OK, Generation 2, request 1: ALLOC_STORE 0, inline", NULL, NULL, CHART_LOCAL},
};

static void test_story(void)
{
    struct run *run = run_new(HEAD X STORE, 0);
    check_rows(&run->chart, story, sizeof story / sizeof *story);
    CU_ASSERT_EQUAL(run->replay.end, SIM_REPLAY_RAN);
    CU_ASSERT_EQUAL(run->replay.steps_run, run->count);
    run_free(run);
}

static const struct chart_lane *lane(const struct chart *chart, const char *name)
{
    for (uint32_t i = 0; i < chart->lanes_count; i++)
        if (strcmp(chart->lanes[i].name, name) == 0)
            return &chart->lanes[i];
    CU_FAIL("no such lane");
    return chart->lanes;
}

static void test_lanes(void)
{
    static const char *const agents[] = {"X", "X-rnic", "rnic", "W0"};
    struct run *run = run_new(HEAD X STORE, 0);
    const struct chart *chart = &run->chart;
    for (uint32_t i = 0; i < 4; i++) {
        CU_ASSERT_STRING_EQUAL(chart->lanes[i].name, agents[i]);
        CU_ASSERT_EQUAL(chart->lanes[i].kind, CHART_AGENT);
    }
    CU_ASSERT_STRING_EQUAL(lane(chart, "Head")->value, "0");
    CU_ASSERT_STRING_EQUAL(lane(chart, "slot 0")->value, "0: 100");
    CU_ASSERT_STRING_EQUAL(lane(chart, "entry 0")->value, "gen 1: -");
    CU_ASSERT_STRING_EQUAL(lane(chart, "block 100")->value, "-");
    CU_ASSERT_STRING_EQUAL(lane(chart, "X's session")->value, "active");
    /* Touched by nobody: known, not drawn. */
    CU_ASSERT_EQUAL(lane(chart, "Head")->kind, CHART_MEMORY);
    CU_ASSERT_EQUAL(lane(chart, "Tail")->kind, CHART_IDLE);
    CU_ASSERT_EQUAL(lane(chart, "slot 1")->kind, CHART_IDLE);
    CU_ASSERT_EQUAL(lane(chart, "block 101")->kind, CHART_IDLE);
    for (unsigned width = 0; width <= 160; width += 80) {
        char *text = draw(chart, width, true);
        CU_ASSERT_PTR_NOT_NULL(strstr(text, "block 100"));
        CU_ASSERT_PTR_NULL(strstr(text, "block 101"));
        CU_ASSERT_PTR_NULL(strstr(text, "Tail"));
        free(text);
    }
    run_free(run);
}

/* Where lanes get many, an initiator and its RNIC share one. */
static void test_shared_lanes(void)
{
    struct run *run =
        run_new(HEAD X STORE "  - {name: Y, workers: [W0], quota: 0, program: [{op: load, "
                             "handle: X.0}]}\n"
                             "  - {name: Z, workers: [W0], quota: 0, program: [{op: free, "
                             "handle: 0}]}\n",
                0);
    const struct chart *chart = &run->chart;
    for (uint32_t i = 0; i < chart->lanes_count; i++)
        CU_ASSERT_PTR_NULL(strstr(chart->lanes[i].name, SIM_RNIC_SUFFIX));
    const struct chart_row *row = find(chart, "LOAD h0");
    CU_ASSERT_PTR_NOT_NULL_FATAL(row);
    CU_ASSERT_STRING_EQUAL(chart->lanes[row->agent_lane].name, "Y");
    CU_ASSERT_STRING_EQUAL(chart->lanes[row->memory_lane].name, "rnic");
    run_free(run);
}

static void check_kind(const struct chart *chart, const char *text, enum chart_row_kind kind,
                       const char *value)
{
    const struct chart_row *row = find(chart, text);
    CU_ASSERT_PTR_NOT_NULL(row);
    if (!row)
        return;
    CU_ASSERT_EQUAL(row->kind, kind);
    CU_ASSERT_STRING_EQUAL(row->value, value);
}

static void test_messages_and_pieces(void)
{
    struct run *run = run_new(HEAD X STORE_BY_READ LOAD, 0);
    const struct chart *chart = &run->chart;
    check_kind(chart, "Read Request 16", CHART_MESSAGE, "");
    check_kind(chart, "Read Response 16: X#1 leaves", CHART_LEAVES, "");
    check_kind(chart, "places Read Response in block 100: X#1", CHART_WRITE, "X#1");
    check_kind(chart, "Read Response 16: X#1 arrives", CHART_ARRIVES, "");
    check_kind(chart, "finds its RDMA Read done", CHART_LOCAL, "");
    check_kind(chart, "pins block 100: 1 reader", CHART_BOTH, "1");
    check_kind(chart, "begins RDMA Write to X for W0", CHART_LOCAL, "");
    check_kind(chart, "reads block 100 for RDMA Write to X: X#1", CHART_READ, "");
    check_kind(chart, "RDMA Write 16: X#1", CHART_MESSAGE, "");
    CU_ASSERT_EQUAL(lane(chart, "pins 100")->kind, CHART_MEMORY);
    run_free(run);
}

static void test_folds(void)
{
    struct run *run = run_new(HEAD X STORE FREE, 0);
    const struct chart *chart = &run->chart;
    check_kind(chart, "loads entry 0: VALID, generation 2, SEALED, 16 octets, block 100, 3 times",
               CHART_READ, "");
    check_kind(chart, "drains slot 0: block 100, Sequence 2", CHART_WRITE, "2: 100");
    /* Nobody reads the block: its pins are not drawn. */
    check_kind(chart, "marks block 100 freed: 0 readers, freed", CHART_LOCAL, "freed");
    CU_ASSERT_EQUAL(lane(chart, "pins 100")->kind, CHART_IDLE);
    CU_ASSERT(chart->rows_count < run->count / 2);
    for (uint32_t i = 0; i < chart->rows_count; i++) {
        CU_ASSERT_PTR_NULL(strstr(chart->rows[i].text, "polls"));
        CU_ASSERT_PTR_NULL(strstr(chart->rows[i].text, "looks for"));
        CU_ASSERT_PTR_NULL(strstr(chart->rows[i].text, "buffers"));
        CU_ASSERT_PTR_NULL(strstr(chart->rows[i].text, "posts"));
    }
    run_free(run);
}

static void test_loss(void)
{
    struct run *run = run_new(HEAD X STORE LOAD "losses: 1\n", 8);
    const struct chart *chart = &run->chart;
    check_kind(chart, "the connection of X to W0 breaks", CHART_FAULT, "");
    CU_ASSERT_PTR_NOT_NULL(find(chart, "learns of the end of its connection to X"));
    CU_ASSERT_PTR_NOT_NULL(find(chart, "X's request for a connection arrives"));
    CU_ASSERT_PTR_NOT_NULL(find(chart, "is asked for a connection by X"));
    CU_ASSERT_PTR_NOT_NULL(find(chart, "takes HELLO of X"));
    CU_ASSERT_PTR_NOT_NULL(find(chart, "takes HELLO_ACK OK"));
    check_kind(chart, "atomic on X's session: ending", CHART_BOTH, "ending");
    for (uint32_t i = 0; i < chart->rows_count; i++)
        CU_ASSERT_PTR_NULL(strstr(chart->rows[i].text, "its peer"));
    run_free(run);
}

static void test_violation(void)
{
    struct run *run = run_new(HEAD X "      - {op: free, handle: 0, expect: [OK]}\n", 0);
    const struct chart *chart = &run->chart;
    CU_ASSERT_EQUAL(run->replay.end, SIM_REPLAY_VIOLATION);
    CU_ASSERT_FATAL(chart->rows_count > 0);
    const struct chart_row *last = &chart->rows[chart->rows_count - 1];
    CU_ASSERT_EQUAL(last->kind, CHART_FAULT);
    CU_ASSERT_EQUAL(strncmp(last->text, "expected-status: ", 17), 0);
    CU_ASSERT_EQUAL(last->step, run->count);
    check_kind(chart, "COMPLETION NOT_VALID, h0 gen 1", CHART_MESSAGE, "");
    run_free(run);
}

/* What the rows tell last of each place is what memory holds; checkers stay what they were. */
static void test_values(void)
{
    struct run *run = run_new(HEAD X STORE_BY_READ LOAD FREE, 0);
    const struct chart *chart = &run->chart;
    struct chart now;
    struct sim_replay replay;
    uint32_t checkers = run->world->checkers_count;
    chart_init(&now);
    sim_kind_chart(run->world, run->steps, 0, &now, &replay);
    CU_ASSERT_EQUAL(run->world->checkers_count, checkers);
    CU_ASSERT_EQUAL_FATAL(now.lanes_count, chart->lanes_count);
    for (uint32_t i = 0; i < now.lanes_count; i++) {
        const char *value = chart->lanes[i].value;
        for (uint32_t j = 0; j < chart->rows_count; j++)
            if (chart->rows[j].value[0] && chart->rows[j].memory_lane == i)
                value = chart->rows[j].value;
        CU_ASSERT_STRING_EQUAL(value, now.lanes[i].value);
    }
    chart_free(&now);
    run_free(run);
}

/* ---- drawings ---------------------------------------------------------------------------- */

static void test_arrows(void)
{
    struct run *run = run_new(HEAD X STORE_BY_READ LOAD, 0);
    char *text = draw(&run->chart, 120, true), *svg = draw(&run->chart, 0, true);
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "●──────▶    │      ALLOC_STORE h0, 16 octets"));
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "◀──────●    │      Read Request 16"));
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "●╌╌╌╌╌○│    │      Read Response 16: X#1 leaves"));
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "○╌╌╌╌╌╌▶    │      Read Response 16: X#1 arrives"));
    CU_ASSERT_EQUAL(occurrences(svg, "stroke-dasharray=\"5 3\""), 2);
    free(text);
    free(svg);
    run_free(run);
}

static void test_deterministic(void)
{
    struct run *run = run_new(HEAD X STORE_BY_READ LOAD FREE "losses: 1\n", 20);
    char *text = draw(&run->chart, 100, true), *svg = draw(&run->chart, 0, true);
    CU_ASSERT_TRUE(svg_well_formed(svg));
    draw_chart(run);
    char *text_again = draw(&run->chart, 100, true), *svg_again = draw(&run->chart, 0, true);
    CU_ASSERT_STRING_EQUAL(text, text_again);
    CU_ASSERT_STRING_EQUAL(svg, svg_again);
    free(text);
    free(svg);
    free(text_again);
    free(svg_again);
    run_free(run);
}

static void test_no_memory(void)
{
    struct run *run = run_new(HEAD X STORE, 0);
    if (wrapped == 0) {
        printf("skipped: not linked with -Wl,--wrap=realloc,--wrap=calloc ");
        run_free(run);
        return;
    }
    for (unsigned n = 1, failed = 1; failed; n++) {
        FILE *out = fopen("/dev/null", "w");
        CU_ASSERT_PTR_NOT_NULL_FATAL(out);
        CU_ASSERT_FATAL(n < 200);
        chart_free(&run->chart);
        sim_world_free(run->world);
        run->world = build(run->scenario);
        wrapped = 0;
        fail_at = n;
        sim_kind_chart(run->world, run->steps, run->count, &run->chart, &run->replay);
        bool building = run->chart.failed || run->replay.end == SIM_REPLAY_NO_MEMORY;
        CU_ASSERT_EQUAL(building, wrapped >= n);
        int svg = chart_write_svg(&run->chart, out);
        int text = chart_print_text(&run->chart, out, 100, true);
        CU_ASSERT(svg == 0 || svg == -ENOMEM);
        CU_ASSERT(text == 0 || text == -ENOMEM);
        CU_ASSERT(!run->chart.failed || (svg == -ENOMEM && text == -ENOMEM));
        failed = wrapped >= n;
        fail_at = 0;
        fclose(out);
    }
    check_rows(&run->chart, story, sizeof story / sizeof *story);
    run_free(run);
}

static const struct test tests[] = {
    {"the story of a store", test_story},
    {"lanes", test_lanes},
    {"lanes that initiators share with RNICs", test_shared_lanes},
    {"messages, and pieces of memory", test_messages_and_pieces},
    {"what is folded or left out", test_folds},
    {"a lost connection", test_loss},
    {"a violation", test_violation},
    {"values are those of memory", test_values},
    {"arrows", test_arrows},
    {"drawn twice: the same octets", test_deterministic},
    {"no memory, at each allocation", test_no_memory},
};

int main(void)
{
    return run_tests("protocol chart", tests, sizeof tests / sizeof *tests);
}
