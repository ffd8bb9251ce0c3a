/* SPDX-License-Identifier: BSD-3-Clause */
/* When things happen over the RNIC in simulated time: sums that can be done by hand. */
#include <stdlib.h>
#include <string.h>

#include "round_costs.h"
#include "sim/timed/nic.h"
#include "sim/timed/topology.h"
#include "tests/run.h"

#define OCTETS (1u << 20)

static struct {
    struct sim_clock clock;
    struct sim_topology topology;
    struct sim_wire *wire;
    struct sim_nics *nics;
    struct rdma *a, *b;
    uint32_t conn_a, conn_b;
    char *memory_a, *memory_b;
    struct rdma_region region_a, region_b;
    uint64_t woken_ns; /* when something came to `b`, or to `a`, last */
} x;

static void woken(void *context)
{
    (void)context;
    x.woken_ns = x.clock.now_ns;
}

static void settle(void)
{
    while (sim_clock_next(&x.clock) != SIM_CLOCK_NEVER)
        sim_clock_step(&x.clock);
}

static void connect(void)
{
    struct rdma_conn_config config = {.send_depth = 64,
                                      .recv_depth = 64,
                                      .max_sge = 2,
                                      .max_inline = 256,
                                      .reads_out = 2,
                                      .reads_in = 2};
    struct rdma_event event;
    rdma_cq_create(x.a, 256, &config.cq);
    rdma_cq_create(x.b, 256, &config.cq);
    CU_ASSERT_FATAL(rdma_listen(x.b, "b") == 0);
    CU_ASSERT_FATAL(rdma_connect(x.a, "b", &config, NULL, 0, NULL, 0, &x.conn_a) == 0);
    settle();
    CU_ASSERT_EQUAL(x.clock.now_ns, 1400); /* handling, and the way */
    CU_ASSERT_FATAL(rdma_event(x.b, &event) == 1 && event.kind == RDMA_EVENT_REQUEST);
    x.conn_b = event.conn;
    CU_ASSERT_FATAL(rdma_accept(x.b, x.conn_b, &config, NULL, 0, NULL, 0) == 0);
    settle();
    CU_ASSERT_EQUAL(x.clock.now_ns, 2800);
    CU_ASSERT_FATAL(rdma_event(x.b, &event) == 1 && event.kind == RDMA_EVENT_CONNECTED);
    CU_ASSERT_FATAL(rdma_event(x.a, &event) == 1 && event.kind == RDMA_EVENT_CONNECTED);
}

static void open_two(void)
{
    const uint32_t all =
        RDMA_LOCAL_WRITE | RDMA_REMOTE_READ | RDMA_REMOTE_WRITE | RDMA_REMOTE_ATOMIC;
    const struct sim_topology_shape shape = {.ports = 2, .octets_per_ns = 10, .latency_ns = 400};
    const struct sim_nic_config config = {.nics = 2,
                                          .bits = SIM_NIC_BITS,
                                          .max_message = OCTETS,
                                          .max_inline = 256,
                                          .max_reads = 16,
                                          .max_queue = 64};
    const struct sim_nic_cpu cpu = {.wake = woken};
    memset(&x, 0, sizeof x);
    x.clock.end_ns = SIM_CLOCK_NEVER - 1;
    CU_ASSERT_FATAL(sim_topology_make(&x.topology, &shape) == 0);
    x.wire = sim_wire_fifo(&x.clock, &x.topology);
    CU_ASSERT_FATAL(x.wire != NULL);
    x.nics = sim_nics_open(x.wire, &round_costs, &config);
    CU_ASSERT_FATAL(x.nics != NULL);
    x.a = sim_nic_handle(x.nics, &(struct sim_nic_limits){0, 2, 1, 1});
    x.b = sim_nic_handle(x.nics, &(struct sim_nic_limits){1, 2, 1, 1});
    x.memory_a = calloc(1, OCTETS);
    x.memory_b = calloc(1, OCTETS);
    CU_ASSERT_FATAL(x.a && x.b && x.memory_a && x.memory_b);
    CU_ASSERT_FATAL(rdma_reg(x.a, x.memory_a, OCTETS, all, 0, &x.region_a) == 0);
    CU_ASSERT_FATAL(rdma_reg(x.b, x.memory_b, OCTETS, all, 0, &x.region_b) == 0);
    connect();
    sim_nic_attach(x.a, &cpu);
    sim_nic_attach(x.b, &cpu);
}

static void close_two(void)
{
    free(x.memory_a);
    free(x.memory_b);
    sim_nics_close(x.nics);
    sim_wire_close(x.wire);
    sim_topology_free(&x.topology);
    sim_clock_free(&x.clock);
}

static struct rdma_wr wr_of(uint16_t op, const struct rdma_sge *sge, uint16_t flags)
{
    return (struct rdma_wr){.op = op,
                            .flags = flags,
                            .sges = sge,
                            .sge_count = 1,
                            .remote_stag = x.region_b.stag,
                            .fetch_add = {.add = 5}};
}

/* From the call until the completion can be seen. */
static uint64_t takes_ns(uint16_t op, uint32_t octets, uint16_t flags)
{
    const struct rdma_sge sge = {x.memory_a, octets, x.region_a.lkey};
    const struct rdma_wr wr = wr_of(op, &sge, flags | RDMA_SIGNALED);
    struct rdma_wc wc;
    uint64_t begin_ns = x.clock.now_ns;
    sim_nic_run(x.a, 0);
    CU_ASSERT_FATAL(rdma_post_send(x.a, x.conn_a, &wr, 1) == 0);
    settle();
    CU_ASSERT_FATAL(rdma_cq_poll(x.a, 0, &wc, 1) == 1 && wc.status == RDMA_OK);
    return x.woken_ns - begin_ns;
}

#define POSTED (20 + 30 + 100) /* post, ring, doorbell */
#define WAY (40 + 400 + 60)    /* to the other RNIC's host, of nothing */

static void a_write_and_its_acknowledgement(void)
{
    open_two();
    /* 1,000 octets: read, on the wire, written; the acknowledgement does not wait for the latter */
    CU_ASSERT_EQUAL(takes_ns(RDMA_WRITE, 1000, 0), POSTED + 300 + 50 + WAY + 100 + 400 + 5 + 50);
    /* four packets: only the first is waited for at PCIe, the wire is the slowest */
    CU_ASSERT_EQUAL(takes_ns(RDMA_WRITE, 4000, 0), POSTED + 300 + 50 + WAY + 400 + 400 + 5 + 50);
    /* inline: no reading, but the CPU hands it over */
    CU_ASSERT_EQUAL(takes_ns(RDMA_WRITE, 200, RDMA_INLINE), 200 + POSTED + WAY + 20 + 400 + 5 + 50);
    close_two();
}

static void a_send_and_its_receive(void)
{
    open_two();
    const struct rdma_sge sge = {x.memory_b, 2000, x.region_b.lkey};
    const struct rdma_wr receive = {.sges = &sge, .sge_count = 1};
    const struct rdma_sge from = {x.memory_a, 2000, x.region_a.lkey};
    const struct rdma_wr wr = wr_of(RDMA_SEND, &from, 0);
    struct rdma_wc wc;
    uint64_t begin_ns = x.clock.now_ns;
    memset(x.memory_a, 7, 2000);
    CU_ASSERT_FATAL(rdma_post_recv(x.b, x.conn_b, &receive, 1) == 0);
    sim_nic_run(x.a, 0);
    CU_ASSERT_FATAL(rdma_post_send(x.a, x.conn_a, &wr, 1) == 0);
    CU_ASSERT_EQUAL(sim_nic_spent_ps(x.a), 50000);
    settle();
    /* two packets: read one, both on the wire, the last is written */
    CU_ASSERT_EQUAL(x.woken_ns - begin_ns, POSTED + 300 + 50 + WAY + 200 + 50 + 200 + 50);
    sim_nic_run(x.b, 0);
    CU_ASSERT_FATAL(rdma_cq_poll(x.b, 0, &wc, 1) == 1 && wc.length == 2000);
    CU_ASSERT_EQUAL(sim_nic_spent_ps(x.b), 10000);
    CU_ASSERT(memcmp(x.memory_a, x.memory_b, 2000) == 0);
    close_two();
}

static void reads_and_atomics(void)
{
    open_two();
    memset(x.memory_b, 9, 1000);
    CU_ASSERT_EQUAL(takes_ns(RDMA_READ, 1000, 0),
                    POSTED + WAY + 300 + 50 + WAY + 100 + 50 + 200 + 50);
    CU_ASSERT(x.memory_a[0] == 9 && x.memory_a[999] == 9);
    uint64_t word = 1000;
    memcpy(x.memory_b, &word, 8);
    /* 0.8 ns on the wire, and half of that into memory: it is seen in the next whole nanosecond */
    CU_ASSERT_EQUAL(takes_ns(RDMA_FETCH_ADD, 8, 0), POSTED + WAY + 70 + 25 + WAY + 200 + 50 + 2);
    memcpy(&word, x.memory_b, 8);
    CU_ASSERT_EQUAL(word, 1005);
    memcpy(&word, x.memory_a, 8);
    CU_ASSERT_EQUAL(word, 1000);
    close_two();
}

/* A READ that comes before the initiator knows that it is connected has its answer from there. */
static void a_read_before_connected(void)
{
    open_two();
    struct rdma_conn_config config = {
        .send_depth = 4, .recv_depth = 4, .max_sge = 1, .reads_out = 1, .reads_in = 1};
    const struct rdma_sge sge = {x.memory_b, 1000, x.region_b.lkey};
    struct rdma_wr wr = wr_of(RDMA_READ, &sge, RDMA_SIGNALED);
    struct rdma_event event;
    struct rdma_wc wc;
    uint32_t conn;
    wr.remote_stag = x.region_a.stag;
    memset(x.memory_a, 3, 1000);
    CU_ASSERT_FATAL(rdma_connect(x.a, "b", &config, NULL, 0, NULL, 0, &conn) == 0);
    settle();
    CU_ASSERT_FATAL(rdma_event(x.b, &event) == 1 && event.kind == RDMA_EVENT_REQUEST);
    conn = event.conn;
    uint64_t begin_ns = x.clock.now_ns, seen_ns = 0;
    sim_nic_run(x.b, 0);
    CU_ASSERT_FATAL(rdma_accept(x.b, conn, &config, NULL, 0, NULL, 0) == 0);
    CU_ASSERT_FATAL(rdma_event(x.b, &event) == 1 && event.kind == RDMA_EVENT_CONNECTED);
    CU_ASSERT_FATAL(rdma_post_send(x.b, conn, &wr, 1) == 0);
    while (seen_ns == 0 && sim_clock_next(&x.clock) != SIM_CLOCK_NEVER) {
        sim_clock_step(&x.clock);
        seen_ns = rdma_cq_poll(x.b, 0, &wc, 1) == 1 ? x.clock.now_ns : 0;
    }
    CU_ASSERT(seen_ns != 0 && wc.status == RDMA_OK && x.memory_b[999] == 3);
    CU_ASSERT_EQUAL(seen_ns - begin_ns, POSTED + WAY + 300 + 50 + WAY + 100 + 50 + 200 + 50);
    close_two();
}

/* Many behind one doorbell are fetched together; then the slowest stage decides. */
static void a_stream_is_as_fast_as_its_slowest_stage(void)
{
    open_two();
    struct rdma_wr wrs[64];
    const struct rdma_sge sge = {x.memory_a, 8, x.region_a.lkey};
    struct rdma_wc wc;
    for (uint32_t i = 0; i < 64; i++)
        wrs[i] = wr_of(RDMA_WRITE, &sge, i == 63 ? RDMA_SIGNALED : 0);
    uint64_t begin_ns = x.clock.now_ns;
    sim_nic_run(x.a, 0);
    CU_ASSERT_FATAL(rdma_post_send(x.a, x.conn_a, wrs, 64) == 0);
    settle();
    CU_ASSERT_FATAL(rdma_cq_poll(x.a, 0, &wc, 1) == 1);
    uint64_t alone_ns = 64 * 20 + 30 + 100 + 1000 + 300 + WAY + 400 + 5 + 50;
    uint64_t took_ns = x.woken_ns - begin_ns;
    CU_ASSERT(took_ns >= alone_ns + 63 * 10 && took_ns <= alone_ns + 63 * 10 + 4);
    CU_ASSERT_EQUAL(sim_nic_used(x.nics, 0)->sent, 64);
    CU_ASSERT_EQUAL(sim_nic_used(x.nics, 1)->receive_busy_ps, 64 * 10000);
    close_two();
}

/* Two READs may be under way (reads_out): the third waits for the first. */
static void reads_are_limited(void)
{
    open_two();
    struct rdma_wr wrs[3];
    const struct rdma_sge sge = {x.memory_a, 1000, x.region_a.lkey};
    for (uint32_t i = 0; i < 3; i++)
        wrs[i] = wr_of(RDMA_READ, &sge, RDMA_SIGNALED);
    uint64_t begin_ns = x.clock.now_ns;
    sim_nic_run(x.a, 0);
    CU_ASSERT_FATAL(rdma_post_send(x.a, x.conn_a, wrs, 3) == 0);
    settle();
    uint64_t one_ns = WAY + 300 + 50 + WAY + 100 + 50 + 200 + 50;
    CU_ASSERT_EQUAL(x.woken_ns - begin_ns, 3 * 20 + 30 + 100 + 1000 + 2 * one_ns);
    close_two();
}

static void phantom_memory_moves_tags(void)
{
    open_two();
    const struct sim_phantom *blocks = sim_nic_phantom(x.nics, 1u << 20, 1u << 20); /* a terabyte */
    struct sim_nic_mem mem;
    struct rdma_region region;
    CU_ASSERT_FATAL(blocks != NULL);
    CU_ASSERT_FATAL(rdma_reg(x.b, blocks->base, blocks->octets, RDMA_REMOTE_READ, 0, &region) == 0);
    char *block = blocks->base + 1000 * (size_t)blocks->block;
    const struct sim_tag tag = {.content = 42, .length = 1u << 20};
    struct sim_tag found;
    sim_nic_mem(&mem, blocks, x.b);
    sim_nic_run(x.b, 0);
    mem_write(&mem.mem, block, &tag, sizeof tag);
    CU_ASSERT_EQUAL(sim_nic_spent_ps(x.b), 1600); /* copying takes time */
    const struct rdma_sge sge = {x.memory_a, 1u << 20, x.region_a.lkey};
    struct rdma_wr wr = wr_of(RDMA_READ, &sge, RDMA_SIGNALED);
    struct rdma_wc wc;
    wr.remote_stag = region.stag;
    wr.remote_to = region.base_to + 1000 * (uint64_t)blocks->block;
    uint64_t begin_ns = x.clock.now_ns;
    sim_nic_run(x.a, 0);
    CU_ASSERT_FATAL(rdma_post_send(x.a, x.conn_a, &wr, 1) == 0);
    settle();
    CU_ASSERT_FATAL(rdma_cq_poll(x.a, 0, &wc, 1) == 1 && wc.status == RDMA_OK);
    CU_ASSERT(x.woken_ns - begin_ns > (1u << 20) / 10); /* it took as long as the octets would */
    memcpy(&found, x.memory_a, sizeof found);
    CU_ASSERT(found.content == 42 && found.length == 1u << 20);
    mem_fill(&mem.mem, block, 0, blocks->block);
    mem_read(&mem.mem, &found, block, sizeof found);
    CU_ASSERT_EQUAL(found.content, 0);
    /* none of it and some of real memory are real octets */
    CU_ASSERT_FATAL(rdma_reg(x.a, blocks->base, blocks->octets, RDMA_LOCAL_WRITE, 0, &region) == 0);
    const struct rdma_sge two[] = {{block, 0, region.lkey},
                                   {x.memory_a + 4096, 4096, x.region_a.lkey}};
    struct rdma_wr write = wr_of(RDMA_WRITE, two, RDMA_SIGNALED);
    write.sge_count = 2;
    memset(x.memory_a + 4096, 5, 4096);
    CU_ASSERT_FATAL(rdma_post_send(x.a, x.conn_a, &write, 1) == 0);
    settle();
    CU_ASSERT_FATAL(rdma_cq_poll(x.a, 0, &wc, 1) == 1 && wc.status == RDMA_OK);
    CU_ASSERT(x.memory_b[0] == 5 && x.memory_b[4095] == 5 && x.memory_b[4096] == 0);
    /* in the middle of a block there is nothing to read remotely */
    wr.remote_to += 8;
    struct rdma_sge small = {x.memory_a, 8, x.region_a.lkey};
    wr.sges = &small;
    CU_ASSERT_FATAL(rdma_post_send(x.a, x.conn_a, &wr, 1) == 0);
    settle();
    CU_ASSERT_FATAL(rdma_cq_poll(x.a, 0, &wc, 1) == 1 && wc.status == RDMA_REMOTE_ACCESS);
    close_two();
}

static void timers_expire_on_time(void)
{
    open_two();
    struct rdma_event event;
    uint64_t begin_ns = x.clock.now_ns;
    sim_nic_run(x.a, 0);
    sim_nic_spend(x.a, 500);
    CU_ASSERT(rdma_timer(x.a, 0, 10000) == 0);
    CU_ASSERT(rdma_timer(x.a, 0, 20000) == 0); /* instead */
    settle();
    CU_ASSERT_EQUAL(x.woken_ns - begin_ns, 20500);
    CU_ASSERT(rdma_event(x.a, &event) == 1 && event.kind == RDMA_EVENT_TIMER);
    CU_ASSERT(rdma_event(x.a, &event) == 0);
    CU_ASSERT(rdma_timer(x.a, 0, 10000) == 0 && rdma_timer(x.a, 0, 0) == 0);
    settle();
    CU_ASSERT(rdma_event(x.a, &event) == 0);
    close_two();
}

int main(void)
{
    static const struct test tests[] = {
        {"a WRITE and its acknowledgement", a_write_and_its_acknowledgement},
        {"a SEND and its receive", a_send_and_its_receive},
        {"READs and atomics", reads_and_atomics},
        {"a READ before CONNECTED", a_read_before_connected},
        {"a stream is as fast as its slowest stage", a_stream_is_as_fast_as_its_slowest_stage},
        {"READs are limited", reads_are_limited},
        {"phantom memory moves tags", phantom_memory_moves_tags},
        {"timers expire on time", timers_expire_on_time},
    };
    return run_tests("sim/timed nic", tests, sizeof tests / sizeof *tests);
}
