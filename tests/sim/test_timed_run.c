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
                          "  - {name: x, pool: store, handles: 8, %s%s}\n",
                          strstr(more, "depth") ? "" : "depth: 2, ", more);
    struct sim_timed *timed = sim_timed_parse("run", text, (size_t)length, error, sizeof error);
    CU_ASSERT_PTR_NOT_NULL_FATAL(timed);
    return timed;
}

/* Runs, and leaves what came of it in `run`, which is closed. */
static void run_with(const struct sim_costs *costs, const char *more,
                     const struct sim_timed_options *options)
{
    char why[900];
    struct sim_timed *timed = scenario_of(more);
    CU_ASSERT_EQUAL(sim_timed_run(&run, timed, costs, options, why, sizeof why), 0);
    CU_ASSERT_STRING_EQUAL(run.load.wrong, "");
    sim_timed_close(&run);
    sim_timed_free(timed);
}

static void run_it(const char *more, const struct sim_timed_options *options)
{
    run_with(&round_costs, more, options);
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

/* What targets' CPUs did is the requests', all of it; and each kind has its own. */
static void cpu_time(void)
{
    struct sim_costs costs = round_costs;
    const struct sim_timed_options options = {.wire = SIM_WIRE_FIFO};
    costs.load_ns = 1000;
    costs.store_ns = 3000;
    run_with(&costs, "operations: 2000, mix: {load: 1, store: 1, alloc_free: 1}", &options);
    uint64_t all_ps = run.reads_ps;
    for (uint32_t i = 0; i < KBTP_COUNTED_OPCODES; i++)
        all_ps += run.served_ps[i];
    CU_ASSERT(run.target_cpu_ps > 0);
    CU_ASSERT(fabs((double)all_ps / (double)run.target_cpu_ps - 1) < 0.001);
    CU_ASSERT_EQUAL(run.served[KBTP_COUNTED_STORE], run.load.kinds[SIM_MIX_STORE].latency.count);
    run_with(&costs, "operations: 1000", &options);
    /* what is done, besides at most three looks that find something and three that are posted */
    double load_ns = (double)run.served_ps[KBTP_COUNTED_LOAD] / 1000 / 1000;
    CU_ASSERT(load_ns > 1000 &&
              load_ns < 1000 + 3 * (costs.poll_ns + costs.take_ns + costs.post_ns + costs.ring_ns));
    /* one at a time: all of them take the same */
    run_with(&costs, "operations: 1000, depth: 1", &options);
    const struct sim_load_measured *loads = &run.load.kinds[SIM_MIX_LOAD];
    double mean_ns = (double)loads->latency_ps / 1e6;
    CU_ASSERT_DOUBLE_EQUAL((double)sim_histogram_at(&loads->latency, 0.5), mean_ns, 0.01 * mean_ns);
    CU_ASSERT_DOUBLE_EQUAL((double)sim_histogram_at(&loads->latency, 1), mean_ns, 0.01 * mean_ns);
}

/* A worker finds those that have something to do among more than a word has bits. */
static void many_connections(void)
{
    const struct sim_timed_options options = {.wire = SIM_WIRE_FIFO};
    run_it("count: 130, per_host: 130, operations: 5, mix: {load: 1, alloc_free: 1}", &options);
    CU_ASSERT_TRUE(run.over && run.whole);
    CU_ASSERT_EQUAL(run.load.kinds[SIM_MIX_LOAD].latency.count +
                        run.load.kinds[SIM_MIX_ALLOC_STORE].latency.count +
                        run.load.kinds[SIM_MIX_FREE].latency.count,
                    130 * 5);
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
    const struct test tests[] = {{"in flight", in_flight},
                                 {"cpu time", cpu_time},
                                 {"many connections", many_connections},
                                 {"stuck", stuck},
                                 {"stopped", stopped}};
    return run_tests("timed run", tests, sizeof tests / sizeof tests[0]);
}
