/* SPDX-License-Identifier: BSD-3-Clause */
/* The fifo wire, against times that were computed by hand. */
#include <errno.h>
#include <stdlib.h>

#include "tests/run.h"
#include "timed_traffic.h"

/* 12.5 octets a nanosecond: 1,250 octets take 100 ns. */
static const struct sim_topology_shape star = {
    .ports = 4, .octets_per_ns = 12.5, .latency_ns = 501};
/* Leaves of 2 ports; a leaf's links have the rate of one port. */
static const struct sim_topology_shape tree = {.ports = 6,
                                               .leaf_ports = 2,
                                               .oversubscription = 2,
                                               .octets_per_ns = 12.5,
                                               .latency_ns = 500,
                                               .spine_latency_ns = 301};

static void open_shape(struct traffic *t, const struct sim_topology_shape *shape)
{
    struct sim_topology topology;
    CU_ASSERT_EQUAL_FATAL(sim_topology_make(&topology, shape), 0);
    traffic_open(t, &topology, 16, 64);
}

static uint64_t arrival(const struct traffic_log *log, uint32_t message)
{
    for (uint32_t i = 0; i < log->count; i++)
        if (log->events[i].arrived && log->events[i].message == message)
            return log->events[i].at_ns;
    return 0;
}

static void test_one(void)
{
    struct traffic t;
    open_shape(&t, &star);
    uint32_t flow = traffic_flow(&t, 0, 1);
    traffic_send(&t, flow, 7, 1250);
    traffic_send(&t, flow, 10000, 1);     /* 0.08 ns */
    traffic_send(&t, flow, 20000, 12501); /* 1000.08 ns */
    const struct traffic_log *log = traffic_fifo(&t);
    CU_ASSERT_EQUAL(log->failed, 0);
    CU_ASSERT_EQUAL(arrival(log, 0), 7 + 100 + 501);
    CU_ASSERT_EQUAL(arrival(log, 1), 10000 + 1 + 501);
    CU_ASSERT_EQUAL(arrival(log, 2), 20000 + 1001 + 501);
    CU_ASSERT_EQUAL(log->count, 6);
    CU_ASSERT_EQUAL(t.wire->messages, 3);
    CU_ASSERT_EQUAL(t.topology.links[0].octets, 1250 + 1 + 12501);
    CU_ASSERT_EQUAL(t.topology.links[2 * 1 + 1].octets, 1250 + 1 + 12501);
    traffic_close(&t);
}

/* Of a flow the next one begins when the one before has left, not when it has arrived. */
static void test_pipelining(void)
{
    struct traffic t;
    open_shape(&t, &star);
    uint32_t flow = traffic_flow(&t, 0, 1);
    for (uint32_t i = 0; i < 4; i++)
        traffic_send(&t, flow, 0, 1250);
    traffic_send(&t, flow, 350, 1250); /* while the last one leaves */
    traffic_send(&t, flow, 500, 1250); /* just when it has */
    const struct traffic_log *log = traffic_fifo(&t);
    for (uint32_t i = 0; i < 4; i++)
        CU_ASSERT_EQUAL(arrival(log, i), 100 * (i + 1) + 501);
    CU_ASSERT_EQUAL(arrival(log, 4), 500 + 501);
    CU_ASSERT_EQUAL(arrival(log, 5), 600 + 501);
    traffic_close(&t);
}

/* The receiver's link takes one after the other, in the order of sending. */
static void test_two_senders(void)
{
    struct traffic t;
    open_shape(&t, &star);
    uint32_t a = traffic_flow(&t, 0, 2), b = traffic_flow(&t, 1, 2), c = traffic_flow(&t, 3, 1);
    traffic_send(&t, a, 0, 2500);
    traffic_send(&t, b, 50, 1250);
    traffic_send(&t, c, 50, 1250); /* shares nothing with them */
    const struct traffic_log *log = traffic_fifo(&t);
    CU_ASSERT_EQUAL(arrival(log, 0), 200 + 501);
    CU_ASSERT_EQUAL(arrival(log, 1), 300 + 501);
    CU_ASSERT_EQUAL(arrival(log, 2), 150 + 501);
    traffic_close(&t);
}

static void test_tree(void)
{
    struct traffic t;
    open_shape(&t, &tree);
    uint32_t within = traffic_flow(&t, 0, 1), across = traffic_flow(&t, 2, 4),
             beside = traffic_flow(&t, 3, 5);
    traffic_send(&t, within, 0, 1250);
    traffic_send(&t, across, 0, 1250);
    traffic_send(&t, beside, 0, 1250); /* behind it, from leaf to spine to leaf */
    const struct traffic_log *log = traffic_fifo(&t);
    CU_ASSERT_EQUAL(arrival(log, 0), 100 + 500);
    CU_ASSERT_EQUAL(arrival(log, 1), 100 + 500 + 301);
    CU_ASSERT_EQUAL(arrival(log, 2), 200 + 500 + 301);
    traffic_close(&t);
}

/* Of a link that is a fat pipe everyone has the whole rate. */
static void test_fat_pipe(void)
{
    struct traffic t;
    open_shape(&t, &star);
    t.topology.links[2 * 2 + 1].fat_pipe = true;
    uint32_t a = traffic_flow(&t, 0, 2), b = traffic_flow(&t, 1, 2);
    traffic_send(&t, a, 0, 2500);
    traffic_send(&t, b, 0, 1250);
    const struct traffic_log *log = traffic_fifo(&t);
    CU_ASSERT_EQUAL(arrival(log, 0), 200 + 501);
    CU_ASSERT_EQUAL(arrival(log, 1), 100 + 501);
    traffic_close(&t);
}

static uint32_t no_route(const struct sim_topology *topology, uint32_t from, uint32_t to,
                         uint32_t links[SIM_WIRE_MAX_ROUTE])
{
    (void)topology, (void)from, (void)to, (void)links;
    return 0;
}

static void test_no_route(void)
{
    struct traffic t;
    open_shape(&t, &star);
    t.topology.route = no_route;
    traffic_send(&t, traffic_flow(&t, 0, 2), 5, 2500);
    traffic_send(&t, traffic_flow(&t, 0, 1), 6, 2500);
    const struct traffic_log *log = traffic_fifo(&t);
    CU_ASSERT_EQUAL(log->failed, -ENETUNREACH);
    CU_ASSERT_EQUAL(log->count, 1);
    traffic_close(&t);
}

int main(void)
{
    const struct test tests[] = {
        {"one", test_one},   {"pipelining", test_pipelining}, {"two senders", test_two_senders},
        {"tree", test_tree}, {"fat pipe", test_fat_pipe},     {"no route", test_no_route}};
    return run_tests("timed wire", tests, sizeof tests / sizeof tests[0]);
}
