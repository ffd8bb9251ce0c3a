/* SPDX-License-Identifier: BSD-3-Clause */
/* A timed run as a whole: what is counted, and how it ends when it does not come to its end. */
#include "sim/timed/run.h"

#include <math.h>
#include <string.h>

#include "round_costs.h"
#include "tests/run.h"

static struct sim_timed_run run;

/* Requests of 4 KiB; `more`: what else the instances do. */
static struct sim_timed *scenario_of(const char *more)
{
    char text[512], error[900];
    int length = snprintf(text, sizeof text,
                          "kind: timed\n"
                          "nic: none\n"
                          "pools:\n"
                          "  - {name: store, block_size: 4KiB}\n"
                          "instances:\n"
                          "  - {name: x, pool: store, depth: 2, handles: 8, %s}\n",
                          more);
    struct sim_timed *timed = sim_timed_parse("run", text, (size_t)length, error, sizeof error);
    CU_ASSERT_PTR_NOT_NULL_FATAL(timed);
    return timed;
}

/* Runs, and leaves what came of it in `run`, which is closed. */
static void run_it(const char *more, const struct sim_timed_options *options)
{
    char why[900];
    struct sim_timed *timed = scenario_of(more);
    CU_ASSERT_EQUAL(sim_timed_run(&run, timed, &round_costs, options, why, sizeof why), 0);
    CU_ASSERT_STRING_EQUAL(run.load.wrong, "");
    sim_timed_close(&run);
    sim_timed_free(timed);
}

/* Little's law: what is in flight, added up over time, is what all latencies are together. */
static void check_little(const char *more)
{
    const struct sim_timed_options options = {.wire = SIM_WIRE_FIFO};
    run_it(more, &options);
    CU_ASSERT_TRUE(run.over && run.whole);
    double latency_ps = (double)run.load.kinds[SIM_MIX_LOAD].latency_ps;
    CU_ASSERT(latency_ps > 0);
    CU_ASSERT(fabs((double)run.load.outstanding_ps / latency_ps - 1) < 0.01);
    CU_ASSERT_EQUAL(run.load.outstanding, 0);
}

/* Those that came by themselves are without outcome while they wait, too. */
static void in_flight(void)
{
    check_little("operations: 2000");
    check_little("operations: 2000, think: 3us");
    check_little("operations: 2000, rate: 100000");
    check_little("operations: 2000, rate: 10000000"); /* most of them wait for long */
    CU_ASSERT_EQUAL(run.load.kinds[SIM_MIX_LOAD].latency.count, 2000);
}

/* ---- runs that do not come to their end -------------------------------------------------- */

static uint32_t sent;

/* In the midst of what is measured the instance's CPU is never run again. */
static void forget_wake_up(void *context, const struct sim_timed_span *span)
{
    (void)context;
    if (span->kind == SIM_TRACK_SEND && run.load.phase == SIM_LOAD_MEASURES && ++sent > 100)
        run.instances[0].core.planned = true;
}

static int (*begin)(struct sim_wire *wire, struct sim_wire_flow *flow);

/* A message is lost. */
static int lose(struct sim_wire *wire, struct sim_wire_flow *flow)
{
    if (run.load.phase == SIM_LOAD_MEASURES && ++sent == 100)
        return 0;
    return begin(wire, flow);
}

static void let_lose(void *context, struct sim_wire *wire)
{
    static struct sim_wire_ops ops;
    (void)context;
    begin = wire->ops->begin;
    ops = *wire->ops;
    ops.begin = lose;
    wire->ops = &ops;
}

/* It ends, and does not say that it is over. */
static void stuck(void)
{
    const struct sim_timed_options forgets = {.wire = SIM_WIRE_FIFO, .span = forget_wake_up};
    const struct sim_timed_options loses = {.wire = SIM_WIRE_FIFO, .opened = let_lose};
    sent = 0;
    run_it("operations: 2000", &forgets);
    CU_ASSERT_FALSE(run.over || run.whole);
    CU_ASSERT(run.clock.now_ns < 1000000); /* which is when nothing happened any more */
    sent = 0;
    run_it("operations: 2000", &loses);
    CU_ASSERT_FALSE(run.over || run.whole);
    CU_ASSERT_EQUAL(run.load.outstanding, 2);
}

static volatile int stop;
static enum sim_load_phase stops_in;

static void stop_it(void *context, const struct sim_timed_span *span)
{
    (void)context;
    stop |= span->kind == SIM_TRACK_SEND && run.load.phase == stops_in;
}

/* From outside, whatever it does at that time. */
static void stopped(void)
{
    const struct sim_timed_options options = {
        .wire = SIM_WIRE_FIFO, .span = stop_it, .stop = &stop};
    for (stops_in = SIM_LOAD_FILLS; stops_in <= SIM_LOAD_LEAVES; stops_in++) {
        stop = 0;
        run_it("operations: 2000", &options);
        CU_ASSERT_TRUE(stop && !run.over);
        CU_ASSERT_EQUAL(run.load.phase, stops_in);
    }
}

int main(void)
{
    const struct test tests[] = {{"in flight", in_flight}, {"stuck", stuck}, {"stopped", stopped}};
    return run_tests("timed run", tests, sizeof tests / sizeof tests[0]);
}
