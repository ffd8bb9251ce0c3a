/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * SimGrid's wire against the fifo wire: the same to the nanosecond and in the same order while no
 * two flows share a link, and near it when they do.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/run.h"
#include "timed_traffic.h"

#define GBIT 0.125 /* octets a nanosecond */

static void open_shape(struct traffic *t, struct sim_topology_shape shape, uint32_t flows,
                       uint32_t messages)
{
    struct sim_topology topology;
    CU_ASSERT_EQUAL_FATAL(sim_topology_make(&topology, &shape), 0);
    traffic_open(t, &topology, flows, messages);
}

/* ---- nobody meets ------------------------------------------------------------------------ */

#define PORTS 16u

/*
 * Port i sends to i ^ 1: each link has one flow. Half of the messages take whole nanoseconds, few
 * different ones, and begin on a grid, so that much happens at the same time.
 */
static void plan_apart(struct traffic *t, uint32_t gbits, uint64_t from_ns, uint32_t messages)
{
    uint64_t seed = 0x2545f4914f6cdd1du + gbits;
    uint64_t at_ns[PORTS];
    for (uint32_t i = 0; i < PORTS; i++) {
        traffic_flow(t, i, i ^ 1u);
        at_ns[i] = from_ns;
    }
    for (uint32_t m = 0; m < messages; m++) {
        uint32_t flow = traffic_chance(&seed, PORTS), octets;
        if (traffic_chance(&seed, 2))
            octets = gbits * (1 + traffic_chance(&seed, 4)); /* 8 ns and more */
        else
            octets = 1 + traffic_chance(&seed, 1u << traffic_chance(&seed, 17));
        traffic_send(t, flow, at_ns[flow], octets);
        if (traffic_chance(&seed, 3))
            at_ns[flow] += 8u * traffic_chance(&seed, 64);
        if (traffic_chance(&seed, 20) == 0)
            at_ns[flow] += traffic_chance(&seed, 100000);
    }
}

static void check_apart(uint32_t gbits, uint32_t latency_ns, uint64_t from_ns, uint32_t messages)
{
    struct traffic t;
    open_shape(&t,
               (struct sim_topology_shape){
                   .ports = PORTS, .octets_per_ns = gbits * GBIT, .latency_ns = latency_ns},
               PORTS, messages);
    plan_apart(&t, gbits, from_ns, messages);
    struct traffic_log *simgrid = traffic_simgrid(&t);
    const struct traffic_log *fifo = traffic_fifo(&t);
    CU_ASSERT_EQUAL(fifo->count, 2 * messages);
    CU_ASSERT_TRUE(traffic_is_same(fifo, simgrid));
    traffic_log_free(&t, simgrid);
    traffic_close(&t);
}

static void test_apart(void)
{
    check_apart(100, 500, 0, 10000);
}

/* Whole Gbit/s up to 2,000, up to 100 s. */
static void test_rates(void)
{
    static const uint32_t gbits[] = {1, 7, 10, 25, 97, 200, 400, 800, 1999, 2000};
    for (uint32_t i = 0; i < sizeof gbits / sizeof gbits[0]; i++) {
        check_apart(gbits[i], 600, 0, 2000);
        check_apart(gbits[i], 0, 99000000001u, 2000);
    }
}

/* ---- they meet --------------------------------------------------------------------------- */

static void send_many(struct traffic *t, uint32_t flow, uint32_t count, uint64_t *seed)
{
    for (uint32_t i = 0; i < count; i++)
        traffic_send(t, flow, 0, 4096 + traffic_chance(seed, 61440));
}

/* The last one arrives nearly when it does on the fifo wire; two runs are one. */
static void check_near(struct traffic *t)
{
    struct traffic_log *simgrid = traffic_simgrid(t), *again = traffic_simgrid(t);
    const struct traffic_log *fifo = traffic_fifo(t);
    CU_ASSERT_EQUAL(simgrid->failed, 0);
    CU_ASSERT_EQUAL(simgrid->count, 2 * t->messages_count);
    CU_ASSERT_EQUAL(fifo->count, 2 * t->messages_count);
    CU_ASSERT_TRUE(traffic_is_same(simgrid, again));
    double ratio = (double)simgrid->end_ns / (double)fifo->end_ns;
    CU_ASSERT(ratio > 0.94 && ratio < 1.06);
    if (ratio <= 0.94 || ratio >= 1.06)
        printf("%.4f of the time of fifo\n", ratio);
    traffic_log_free(t, again);
    traffic_log_free(t, simgrid);
    traffic_close(t);
}

static void test_incast(void)
{
    struct traffic t;
    uint64_t seed = 11;
    open_shape(
        &t,
        (struct sim_topology_shape){.ports = 17, .octets_per_ns = 100 * GBIT, .latency_ns = 500},
        16, 16 * 20);
    for (uint32_t i = 1; i <= 16; i++)
        send_many(&t, traffic_flow(&t, i, 0), 20, &seed);
    check_near(&t);
}

static void test_all_to_all(void)
{
    struct traffic t;
    uint64_t seed = 12;
    open_shape(
        &t, (struct sim_topology_shape){.ports = 8, .octets_per_ns = 100 * GBIT, .latency_ns = 500},
        56, 56 * 10);
    for (uint32_t shift = 1; shift < 8; shift++)
        for (uint32_t i = 0; i < 8; i++)
            send_many(&t, traffic_flow(&t, i, (i + shift) % 8), 10, &seed);
    check_near(&t);
}

/* Everyone sends to the other leaves: what is between them bounds all. */
static void test_fat_tree(void)
{
    struct traffic t;
    uint64_t seed = 13;
    open_shape(&t,
               (struct sim_topology_shape){.ports = 32,
                                           .leaf_ports = 8,
                                           .oversubscription = 4,
                                           .octets_per_ns = 100 * GBIT,
                                           .latency_ns = 500,
                                           .spine_latency_ns = 400},
               96, 96 * 10);
    for (uint32_t leaf = 1; leaf < 4; leaf++)
        for (uint32_t i = 0; i < 32; i++)
            send_many(&t, traffic_flow(&t, i, (i + 8 * leaf) % 32), 10, &seed);
    check_near(&t);
}

/* Two flows to one port have half of its rate each, and a fat pipe lets both have all. */
static void check_two(bool fat_pipe, uint64_t first_ns, uint64_t second_ns)
{
    struct traffic t;
    open_shape(
        &t, (struct sim_topology_shape){.ports = 3, .octets_per_ns = 100 * GBIT, .latency_ns = 500},
        2, 2);
    t.topology.links[2 * 2 + 1].fat_pipe = fat_pipe;
    traffic_send(&t, traffic_flow(&t, 0, 2), 0, 12500);
    traffic_send(&t, traffic_flow(&t, 1, 2), 500, 12500);
    struct traffic_log *log = traffic_simgrid(&t);
    CU_ASSERT_EQUAL_FATAL(log->count, 4);
    CU_ASSERT_EQUAL(log->events[2].message, 0);
    CU_ASSERT_EQUAL(log->events[2].at_ns, first_ns);
    CU_ASSERT_EQUAL(log->events[3].at_ns, second_ns);
    traffic_log_free(&t, log);
    traffic_close(&t);
}

static void test_shares(void)
{
    check_two(false, 1500 + 500, 2000 + 500);
    check_two(true, 1000 + 500, 1500 + 500);
}

/* ---- what is in a process of its own ----------------------------------------------------- */

struct outcome {
    int result;
    uint64_t at_ns;
    char why[300];
};

/* What `work` writes, in another process; its result is -1 when that does not end well. */
static struct outcome apart(void (*work)(struct outcome *outcome, const void *with),
                            const void *with)
{
    struct outcome *shared =
        mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CU_ASSERT_PTR_NOT_EQUAL_FATAL(shared, MAP_FAILED);
    fflush(stdout);
    pid_t child = fork();
    CU_ASSERT_FATAL(child >= 0);
    if (child == 0) {
        work(shared, with);
        _exit(0);
    }
    int status = -1;
    CU_ASSERT_EQUAL(waitpid(child, &status, 0), child);
    struct outcome outcome = *shared;
    if (status != 0)
        outcome.result = -1;
    munmap(shared, sizeof *shared);
    return outcome;
}

static void open_wire(struct traffic *t, uint64_t end_ns, struct outcome *outcome)
{
    open_shape(
        t, (struct sim_topology_shape){.ports = 2, .octets_per_ns = 100 * GBIT, .latency_ns = 500},
        1, 2);
    t->clock.end_ns = end_ns;
    t->wire = sim_wire_simgrid(&t->clock, &t->topology, outcome->why, sizeof outcome->why);
    t->log = calloc(1, sizeof *t->log + 4 * sizeof t->log->events[0]);
    if (!t->wire || !t->log)
        _exit(1);
    traffic_flow(t, 0, 1);
}

static void open_twice(struct outcome *outcome, const void *with)
{
    struct traffic t;
    (void)with;
    struct sigaction before, after;
    sigaction(SIGINT, NULL, &before);
    open_wire(&t, SIM_CLOCK_NEVER - 1, outcome);
    sigaction(SIGINT, NULL, &after);
    sim_wire_close(t.wire);
    outcome->result = before.sa_handler == after.sa_handler &&
                      !sim_wire_simgrid(&t.clock, &t.topology, outcome->why, sizeof outcome->why);
}

static void test_once(void)
{
    struct outcome outcome = apart(open_twice, NULL);
    CU_ASSERT_EQUAL(outcome.result, 1);
    CU_ASSERT_PTR_NOT_NULL(strstr(outcome.why, "once a process"));
}

/* It ends with a message on its way. */
static void run_to_end(struct outcome *outcome, const void *with)
{
    struct traffic t;
    (void)with;
    open_wire(&t, 100, outcome);
    t.wire->arrives = traffic_arrives;
    traffic_send(&t, 0, 10, 12500);
    int first = sim_wire_run(t.wire);
    outcome->at_ns = t.clock.now_ns;
    t.clock.end_ns = SIM_CLOCK_NEVER;
    outcome->result = first == 0 ? sim_wire_run(t.wire) : 1;
}

static void test_cut(void)
{
    struct outcome outcome = apart(run_to_end, NULL);
    CU_ASSERT_EQUAL(outcome.result, -ECANCELED);
    CU_ASSERT_EQUAL(outcome.at_ns, 10);
}

/* When nothing is left it may begin anew. */
static void run_again(struct outcome *outcome, const void *with)
{
    struct traffic t;
    (void)with;
    open_wire(&t, SIM_CLOCK_NEVER - 1, outcome);
    t.wire->arrives = traffic_arrives;
    traffic_send(&t, 0, 10, 12500);
    int first = sim_wire_run(t.wire);
    traffic_send(&t, 0, 5000, 12500);
    outcome->result = first == 0 ? sim_wire_run(t.wire) : 1;
    outcome->at_ns = t.clock.now_ns;
}

static void test_again(void)
{
    struct outcome outcome = apart(run_again, NULL);
    CU_ASSERT_EQUAL(outcome.result, 0);
    CU_ASSERT_EQUAL(outcome.at_ns, 5000 + 1000 + 500);
}

static void open_elsewhere(struct outcome *outcome, const void *with)
{
    struct sim_clock clock = {0};
    struct sim_topology topology = {0};
    setenv("KBTP_SIMGRID", with, 1);
    outcome->result = !sim_wire_simgrid(&clock, &topology, outcome->why, sizeof outcome->why);
}

static void test_not_there(void)
{
    struct outcome outcome = apart(open_elsewhere, "/nowhere/kbtp-simgrid.so");
    CU_ASSERT_EQUAL(outcome.result, 1);
    CU_ASSERT_PTR_NOT_NULL(strstr(outcome.why, "/nowhere/kbtp-simgrid.so"));
    CU_ASSERT_PTR_NOT_NULL(strstr(outcome.why, "install SimGrid"));
}

/* ---- platforms from files ---------------------------------------------------------------- */

#define XML \
    "<?xml version='1.0'?>\n" \
    "<!DOCTYPE platform SYSTEM \"https://simgrid.org/simgrid.dtd\">\n" \
    "<platform version=\"4.1\">\n<zone id=\"z\" routing=\"Full\">\n" \
    "<host id=\"a\" speed=\"1Gf\"/><host id=\"b\" speed=\"1Gf\"/><host id=\"c\" speed=\"1Gf\"/>\n"
#define ROUTE(from, to, links) "<route src=\"" from "\" dst=\"" to "\">" links "</route>\n"
#define VIA(link) "<link_ctn id=\"" link "\"/>"
#define LINK(id, rate, more) \
    "<link id=\"" id "\" bandwidth=\"" rate "\" latency=\"250ns\" " more "/>\n"
#define ROUTES \
    ROUTE("a", "b", VIA("l") VIA("m")) \
    ROUTE("b", "c", VIA("m") VIA("fat")) ROUTE("a", "c", VIA("l"))
#define FAT LINK("fat", "50GBps", "sharing_policy=\"FATPIPE\"")
#define END "</zone></platform>\n"

struct platform {
    const char *xml;
    bool simgrid; /* the wire; else fifo */
};

static char platform_path[64];

/* From a to b, and from c to b; at_ns is when both are there. */
static void read_and_run(struct outcome *outcome, const void *with)
{
    static const struct sim_host hosts[] = {{"c", "hosts[0].name"}, {"a", ""}, {"b", ""}};
    const struct platform *platform = with;
    struct sim_topology topology;
    FILE *file = fopen(platform_path, "w");
    if (!file || fputs(platform->xml, file) < 0 || fclose(file) != 0)
        _exit(1);
    int failed =
        sim_topology_read(platform_path, hosts, 3, &topology, outcome->why, sizeof outcome->why);
    outcome->result = failed;
    if (failed)
        return;
    struct traffic t;
    traffic_open(&t, &topology, 2, 2);
    t.log = calloc(1, sizeof *t.log + 4 * sizeof t.log->events[0]);
    t.wire = platform->simgrid
                 ? sim_wire_simgrid(&t.clock, &t.topology, outcome->why, sizeof outcome->why)
                 : sim_wire_fifo(&t.clock, &t.topology);
    if (!t.wire || !t.log)
        _exit(1);
    t.wire->arrives = traffic_arrives;
    traffic_send(&t, traffic_flow(&t, 1, 2), 0, 12500);
    traffic_send(&t, traffic_flow(&t, 0, 2), 5000, 12500);
    outcome->result = sim_wire_run(t.wire);
    outcome->at_ns = t.log->events[1].at_ns * 1000000 + t.clock.now_ns;
}

static struct outcome read_xml(const char *xml, bool simgrid)
{
    const struct platform platform = {xml, simgrid};
    return apart(read_and_run, &platform);
}

static void test_platform(void)
{
    for (int simgrid = 0; simgrid <= 1; simgrid++) {
        struct outcome outcome = read_xml(
            XML LINK("l", "25GBps", "") LINK("m", "12.5GBps", "") FAT ROUTES END, simgrid != 0);
        CU_ASSERT_EQUAL(outcome.result, 0);
        CU_ASSERT_STRING_EQUAL(outcome.why, "");
        CU_ASSERT_EQUAL(outcome.at_ns, UINT64_C(1500) * 1000000 + 5000 + 1500);
    }
}

static void check_refused(const char *xml, int result, const char *says)
{
    struct outcome outcome = read_xml(xml, false);
    CU_ASSERT_EQUAL(outcome.result, result);
    CU_ASSERT_EQUAL(strncmp(outcome.why, platform_path, strlen(platform_path)), 0);
    CU_ASSERT_PTR_NOT_NULL(strstr(outcome.why, says));
    if (outcome.result != result || !strstr(outcome.why, says))
        printf("%d: %s\n", outcome.result, outcome.why);
}

static void test_refused(void)
{
    check_refused(XML LINK("l", "0Bps", "") LINK("m", "12.5GBps", "") FAT ROUTES END, -EINVAL,
                  "link l has a bandwidth of 0");
    check_refused(XML LINK("l", "-1Bps", "") LINK("m", "12.5GBps", "") FAT ROUTES END, -EINVAL, "");
    check_refused(XML LINK("l", "lots", "") LINK("m", "12.5GBps", "") FAT ROUTES END, -EINVAL,
                  "lots");
    check_refused(XML ROUTES END, -EINVAL, "");
    check_refused(XML LINK("l", "25GBps", ""), -EINVAL, "");
    check_refused("no XML at all", -EINVAL, "");
    check_refused(XML LINK("l", "25GBps", "") LINK("m", "1GBps", "")
                      ROUTE("a", "b", VIA("l") VIA("m")) END,
                  -ENETUNREACH, "from host c to a");
    check_refused("<?xml version='1.0'?>\n"
                  "<!DOCTYPE platform SYSTEM \"https://simgrid.org/simgrid.dtd\">\n"
                  "<platform version=\"4.1\"><zone id=\"z\" routing=\"Full\">"
                  "<host id=\"a\" speed=\"1Gf\"/><host id=\"b\" speed=\"1Gf\"/>" END,
                  -ENOENT, "there is no host c, for which hosts[0].name asks");
}

static void read_nothing(struct outcome *outcome, const void *with)
{
    struct sim_topology topology;
    outcome->result =
        sim_topology_read(with, NULL, 0, &topology, outcome->why, sizeof outcome->why);
}

static void test_no_file(void)
{
    struct outcome outcome = apart(read_nothing, "/nowhere/platform.xml");
    CU_ASSERT_EQUAL(outcome.result, -ENOENT);
    CU_ASSERT_STRING_EQUAL(outcome.why, "/nowhere/platform.xml: No such file or directory");
}

int main(void)
{
    snprintf(platform_path, sizeof platform_path, "timed-simgrid-%ld.xml", (long)getpid());
    const struct test tests[] = {
        {"apart", test_apart},           {"rates", test_rates},       {"incast", test_incast},
        {"all to all", test_all_to_all}, {"fat tree", test_fat_tree}, {"shares", test_shares},
        {"once a process", test_once},   {"cut", test_cut},           {"again", test_again},
        {"not there", test_not_there},   {"platform", test_platform}, {"refused", test_refused},
        {"no file", test_no_file}};
    int status = run_tests("timed simgrid", tests, sizeof tests / sizeof tests[0]);
    remove(platform_path);
    return status;
}
