/* SPDX-License-Identifier: BSD-3-Clause */
/* Connections, events, timers, regions and completion queues, on devices and on worlds. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "rnic_pair.h"
#include "sim/rnic.h"
#include "tests/run.h"

static struct pair pair;
static struct pair_side *const a = &pair.a, *const b = &pair.b;

/* Runs a test on each of them, not connected. */
static void on_all(void (*test)(void))
{
    for (int mode = 0; mode < PAIR_MODES; mode++) {
        pair_open(&pair, (enum pair_mode)mode, (struct sim_rnic_config){0});
        test();
        pair_close(&pair);
    }
}

static void on_all_connected(void (*test)(void))
{
    for (int mode = 0; mode < PAIR_MODES; mode++) {
        pair_open_connected(&pair, (enum pair_mode)mode, (struct sim_rnic_config){0});
        test();
        pair_close(&pair);
    }
}

static int begin(const void *private_data, uint32_t length)
{
    struct rdma_conn_config config = pair_config(a);
    return rdma_connect(a->rdma, "b", &config, NULL, 0, private_data, length, &a->conn);
}

static int accept(const void *private_data, uint32_t length)
{
    struct rdma_conn_config config = pair_config(b);
    return rdma_accept(b->rdma, b->conn, &config, NULL, 0, private_data, length);
}

/* ---- making connections ------------------------------------------------------------------ */

static void private_data_goes_both_ways(void)
{
    char much[RDMA_MAX_PRIVATE + 1];
    memset(much, 'x', sizeof much);
    CU_ASSERT_EQUAL(begin(much, sizeof much), -EINVAL);
    CU_ASSERT_EQUAL(begin("hello", 5), 0);
    struct rdma_event event = pair_event(b, RDMA_EVENT_REQUEST);
    b->conn = event.conn;
    CU_ASSERT(event.private_length == 5 && memcmp(event.private_data, "hello", 5) == 0);
    CU_ASSERT_EQUAL(event.private_data[5], 0);
    CU_ASSERT_EQUAL(accept(much, sizeof much), -EINVAL); /* the request stands */
    CU_ASSERT_EQUAL(accept(much, RDMA_MAX_PRIVATE), 0);
    CU_ASSERT_EQUAL(accept(NULL, 0), -EINVAL);
    CU_ASSERT_EQUAL(pair_event(b, RDMA_EVENT_CONNECTED).private_length, 0);
    event = pair_event(a, RDMA_EVENT_CONNECTED);
    CU_ASSERT(event.private_length == RDMA_MAX_PRIVATE &&
              memcmp(event.private_data, much, RDMA_MAX_PRIVATE) == 0);
    CU_ASSERT(pair_no_event(a) && pair_no_event(b));
}

static void rejected(void)
{
    for (int i = 0; i < 3; i++) {
        CU_ASSERT_EQUAL(begin("please", 6), 0);
        b->conn = pair_event(b, RDMA_EVENT_REQUEST).conn;
        CU_ASSERT_EQUAL(b->conn, 0);
        CU_ASSERT(pair_no_event(a));
        CU_ASSERT_EQUAL(rdma_destroy(a->rdma, a->conn), -EBUSY);
        CU_ASSERT_EQUAL(rdma_reject(b->rdma, b->conn, "no", 2), 0);
        CU_ASSERT_EQUAL(rdma_reject(b->rdma, b->conn, NULL, 0), -EINVAL);
        struct rdma_event event = pair_event(a, RDMA_EVENT_REJECTED);
        CU_ASSERT_EQUAL(event.error, -ECONNREFUSED);
        CU_ASSERT(event.private_length == 2 && memcmp(event.private_data, "no", 2) == 0);
        CU_ASSERT_EQUAL(rdma_destroy(a->rdma, a->conn), 0);
    }
    CU_ASSERT(pair_no_event(a) && pair_no_event(b));
}

/* The listener has two places, and so has who connects. */
static void no_place_is_left(void)
{
    struct rdma_conn_config config = pair_config(a);
    uint32_t conn;
    for (uint32_t i = 0; i < 2; i++) {
        CU_ASSERT_EQUAL(begin(NULL, 0), 0);
        CU_ASSERT_EQUAL(a->conn, i);
        CU_ASSERT_EQUAL(pair_event(b, RDMA_EVENT_REQUEST).conn, i);
    }
    CU_ASSERT_EQUAL(rdma_connect(a->rdma, "b", &config, NULL, 0, NULL, 0, &conn), -ENOSPC);
    CU_ASSERT_EQUAL(rdma_reject(b->rdma, 0, NULL, 0), 0);
    CU_ASSERT_EQUAL(pair_event(a, RDMA_EVENT_REJECTED).conn, 0);
    CU_ASSERT_EQUAL(rdma_destroy(a->rdma, 0), 0);
    CU_ASSERT_EQUAL(begin(NULL, 0), 0);
    CU_ASSERT_EQUAL(a->conn, 0); /* the lowest that is free */
    CU_ASSERT_EQUAL(pair_event(b, RDMA_EVENT_REQUEST).conn, 0);
}

static void bad_configurations(void)
{
    struct rdma_conn_config good = pair_config(a);
    struct rdma_wr receives[5] = {0};
    uint32_t conn;
    for (int i = 0; i < 7; i++) {
        struct rdma_conn_config bad = good;
        uint32_t *const fields[] = {&bad.cq,         &bad.send_depth, &bad.recv_depth, &bad.max_sge,
                                    &bad.max_inline, &bad.reads_out,  &bad.reads_in};
        *fields[i] = 1000;
        CU_ASSERT_EQUAL(rdma_connect(a->rdma, "b", &bad, NULL, 0, NULL, 0, &conn), -EINVAL);
    }
    CU_ASSERT_EQUAL(rdma_connect(a->rdma, "b", &good, receives, 5, NULL, 0, &conn), -ENOMEM);
    receives[0].sge_count = 4;
    CU_ASSERT_EQUAL(rdma_connect(a->rdma, "b", &good, receives, 1, NULL, 0, &conn), -EINVAL);
    CU_ASSERT_EQUAL(rdma_accept(b->rdma, 0, &good, NULL, 0, NULL, 0), -EINVAL);
    CU_ASSERT_EQUAL(rdma_disconnect(a->rdma, 0), -EINVAL);
    CU_ASSERT_EQUAL(rdma_destroy(a->rdma, 0), -EINVAL);
    CU_ASSERT(pair_no_event(a) && pair_no_event(b));
}

/* Each side begins no more READs than the other takes. */
static void reads_are_negotiated(void)
{
    struct rdma_conn_config of_a = pair_config(a), of_b = pair_config(b);
    struct rdma_wr read = {.op = RDMA_READ};
    of_b.reads_in = 0;
    CU_ASSERT_EQUAL(rdma_connect(a->rdma, "b", &of_a, NULL, 0, NULL, 0, &a->conn), 0);
    b->conn = pair_event(b, RDMA_EVENT_REQUEST).conn;
    CU_ASSERT_EQUAL(rdma_accept(b->rdma, b->conn, &of_b, NULL, 0, NULL, 0), 0);
    pair_event(a, RDMA_EVENT_CONNECTED);
    pair_event(b, RDMA_EVENT_CONNECTED);
    CU_ASSERT_EQUAL(pair_post(a, &read, 0, 8), -EINVAL);
    read.remote_stag = a->region.stag;
    read.flags = RDMA_SIGNALED;
    CU_ASSERT_EQUAL(pair_post(b, &read, 0, 8), 0);
    CU_ASSERT_EQUAL(pair_wc(b).status, RDMA_OK);
}

/* ---- ending them ------------------------------------------------------------------------- */

static void disconnected(void)
{
    struct rdma_wr noop = {.op = RDMA_NOOP, .flags = RDMA_SIGNALED};
    CU_ASSERT_EQUAL(rdma_disconnect(a->rdma, a->conn), 0);
    CU_ASSERT_EQUAL(rdma_disconnect(a->rdma, a->conn), 0); /* changes nothing */
    /* Until the event is taken, what is posted is flushed. */
    CU_ASSERT_EQUAL(rdma_post_send(a->rdma, a->conn, &noop, 1), 0);
    CU_ASSERT_EQUAL(pair_receive(a, 3, 0, 8), 0);
    pair_ends(a, 0, 4);
    CU_ASSERT_EQUAL(rdma_post_send(a->rdma, a->conn, &noop, 1), -ENOTCONN);
    struct rdma_event event = pair_event(b, RDMA_EVENT_DISCONNECTED);
    CU_ASSERT_EQUAL(event.error, 0);
    CU_ASSERT_EQUAL(rdma_post_send(b->rdma, b->conn, &noop, 1), -ENOTCONN);
    CU_ASSERT_EQUAL(pair_receive(b, 3, 0, 8), -ENOTCONN);
    CU_ASSERT_EQUAL(rdma_disconnect(b->rdma, b->conn), 0);
    for (uint64_t i = 1; i <= 2; i++) {
        struct rdma_wc wc = pair_wc(b);
        CU_ASSERT(wc.status == RDMA_FLUSHED && wc.wr_id == i);
    }
    pair_event(b, RDMA_EVENT_DRAINED);
    CU_ASSERT_EQUAL(rdma_destroy(b->rdma, b->conn), 0);
    CU_ASSERT_EQUAL(rdma_destroy(b->rdma, b->conn), -EINVAL);
}

/* An unsignaled work request that was done is not flushed, and does not keep DRAINED back. */
static void unsignaled_is_not_flushed(void)
{
    struct rdma_wr noop = {.op = RDMA_NOOP};
    CU_ASSERT_EQUAL(rdma_post_send(a->rdma, a->conn, &noop, 1), 0);
    CU_ASSERT_EQUAL(rdma_disconnect(b->rdma, b->conn), 0);
    pair_ends(b, 0, 2);
    pair_ends(a, 0, 2);
}

/* What was done before the end is told first. */
static void completions_before_the_end(void)
{
    struct rdma_wr send = {.wr_id = 5, .op = RDMA_SEND, .flags = RDMA_SIGNALED};
    CU_ASSERT_EQUAL(pair_post(a, &send, 0, 8), 0);
    CU_ASSERT_EQUAL(rdma_disconnect(a->rdma, a->conn), 0);
    CU_ASSERT(pair_wc(a).status == RDMA_OK && pair_wc(b).status == RDMA_OK);
    pair_ends(a, 0, 2);
    pair_ends(b, 0, 1);
}

static void cut(void)
{
    if (pair.mode == PAIR_DEVICE) {
        CU_ASSERT_EQUAL(sim_device_cut(a->rdma, a->conn), 0);
        CU_ASSERT_EQUAL(sim_device_cut(a->rdma, a->conn), -EINVAL);
        CU_ASSERT_EQUAL(sim_device_cut(a->rdma, 1), -EINVAL);
    } else {
        struct sim_link_info info = sim_rnic_link(pair.world, 0);
        CU_ASSERT(info.exists && info.established && !info.ending);
        CU_ASSERT(info.agent[0] == 0 && info.agent[1] == 2);
        CU_ASSERT(sim_rnic_cut(pair.world, 0));
        CU_ASSERT_FALSE(sim_rnic_cut(pair.world, 0));
        CU_ASSERT(sim_rnic_link(pair.world, 0).ending);
        sim_rnic_run(pair.world);
    }
    pair_ends(b, -ECONNRESET, 2);
    pair_ends(a, -ECONNRESET, 2);
    if (pair.mode != PAIR_DEVICE)
        CU_ASSERT_FALSE(sim_rnic_link(pair.world, 0).exists);
}

static void host_dies(void)
{
    if (pair.mode == PAIR_DEVICE) {
        sim_device_host_dies(a->rdma);
    } else {
        sim_rnic_host_dies(pair.world, 0);
        sim_rnic_run(pair.world);
    }
    CU_ASSERT(pair_no_event(a) && pair_no_wc(a));
    pair_ends(b, -ECONNRESET, 2);
}

/* Its peer is told nothing, until it sends something and is not answered. */
static void host_falls_silent(void)
{
    if (pair.mode == PAIR_DEVICE)
        return;
    sim_rnic_host_falls_silent(pair.world, 0);
    sim_rnic_run(pair.world);
    CU_ASSERT(pair_no_event(b) && pair_no_wc(b));
    CU_ASSERT(sim_rnic_link(pair.world, 0).exists);
    CU_ASSERT_FALSE(sim_rnic_link(pair.world, 0).established);
    CU_ASSERT_FALSE(sim_rnic_link(pair.world, 0).ending);
    struct rdma_wr wr = {.wr_id = 3, .op = RDMA_WRITE, .flags = RDMA_SIGNALED};
    CU_ASSERT_EQUAL(pair_post(b, &wr, 0, 0), 0);
    /* RFC 5040 5.5: a Write is complete when it has left; then it is the connection that fails. */
    struct rdma_wc wc = pair_wc(b);
    CU_ASSERT_EQUAL(wc.wr_id, 3);
    CU_ASSERT_EQUAL(wc.status, pair.mode == PAIR_RDMAP ? RDMA_FLUSHED : RDMA_LOST);
    pair_ends(b, -ETIMEDOUT, 2);
    CU_ASSERT_FALSE(sim_rnic_link(pair.world, 0).exists);
}

/* A host is all handles on its RNIC. */
static void a_host_is_all_its_handles(void)
{
    const struct sim_device_config config = {.hosts = 2, .rnic.bits = SIM_RNIC_BITS};
    const struct sim_rnic_limits here = {0}, there = {.host = 1};
    struct sim_device *device = sim_device_open(&config);
    CU_ASSERT_PTR_NOT_NULL_FATAL(device);
    struct rdma *listener = sim_device_handle(device, &there);
    struct rdma *handles[2] = {sim_device_handle(device, &here), sim_device_handle(device, &here)};
    struct rdma_conn_config conn = {.send_depth = 1, .recv_depth = 1, .max_sge = 1};
    struct rdma_event event;
    uint32_t number;
    CU_ASSERT_EQUAL(rdma_listen(listener, "there"), 0);
    CU_ASSERT_EQUAL(rdma_cq_create(listener, 8, &conn.cq), 0);
    for (uint32_t i = 0; i < 2; i++) {
        uint32_t cq = conn.cq;
        CU_ASSERT_EQUAL(rdma_cq_create(handles[i], 8, &conn.cq), 0);
        CU_ASSERT_EQUAL(rdma_connect(handles[i], "there", &conn, NULL, 0, NULL, 0, &number), 0);
        conn.cq = cq;
        CU_ASSERT_EQUAL_FATAL(rdma_event(listener, &event), 1);
        CU_ASSERT_EQUAL(rdma_accept(listener, event.conn, &conn, NULL, 0, NULL, 0), 0);
        CU_ASSERT_EQUAL(rdma_event(listener, &event), 1);
        CU_ASSERT_EQUAL(event.kind, RDMA_EVENT_CONNECTED);
    }
    sim_device_host_dies(handles[0]);
    uint32_t lost = 0, drained = 0;
    for (uint32_t i = 0; i < 4; i++) {
        CU_ASSERT_EQUAL(rdma_event(listener, &event), 1);
        lost += event.kind == RDMA_EVENT_DISCONNECTED && event.error == -ECONNRESET;
        drained += event.kind == RDMA_EVENT_DRAINED;
    }
    CU_ASSERT_EQUAL(lost, 2);
    CU_ASSERT_EQUAL(drained, 2);
    sim_device_close(device);
}

/* As many connections, one after the other, as anybody likes. */
static void connections_one_after_the_other(void)
{
    for (int i = 0; i < 20; i++) {
        struct rdma_wr send = {.wr_id = 5, .op = RDMA_SEND, .flags = RDMA_SIGNALED};
        CU_ASSERT_EQUAL(begin(NULL, 0), 0);
        b->conn = pair_event(b, RDMA_EVENT_REQUEST).conn;
        CU_ASSERT_EQUAL(accept(NULL, 0), 0);
        pair_event(a, RDMA_EVENT_CONNECTED);
        pair_event(b, RDMA_EVENT_CONNECTED);
        CU_ASSERT_EQUAL(pair_receive(b, 1, 0, 8), 0);
        CU_ASSERT_EQUAL(pair_post(a, &send, 0, 8), 0);
        CU_ASSERT_EQUAL(pair_wc(a).status, RDMA_OK);
        CU_ASSERT_EQUAL(pair_wc(b).status, RDMA_OK);
        CU_ASSERT_EQUAL(rdma_disconnect(i % 2 ? a->rdma : b->rdma, i % 2 ? a->conn : b->conn), 0);
        pair_ends(a, 0, 0);
        pair_ends(b, 0, 0);
    }
}

/* ---- set-up ------------------------------------------------------------------------------ */

static void regions(void)
{
    struct rdma_region r[4];
    CU_ASSERT_EQUAL(rdma_reg(a->rdma, a->memory, 0, 0, 0, &r[0]), -EINVAL);
    CU_ASSERT_EQUAL(rdma_reg(a->rdma, a->memory, 8, RDMA_REMOTE_WRITE, 0, &r[0]), -EINVAL);
    CU_ASSERT_EQUAL(rdma_reg(a->rdma, a->memory, 8, RDMA_REMOTE_ATOMIC, 0, &r[0]), -EINVAL);
    for (int i = 0; i < 3; i++) {
        CU_ASSERT_EQUAL(rdma_reg(a->rdma, a->memory, 8, 0, 77, &r[i]), 0);
        CU_ASSERT_EQUAL(r[i].base_to, 77);
        CU_ASSERT_EQUAL(r[i].addr, a->memory);
    }
    CU_ASSERT_EQUAL(rdma_reg(a->rdma, a->memory, 8, 0, 0, &r[3]), -ENOSPC);
    CU_ASSERT_EQUAL(rdma_dereg(a->rdma, &r[1]), 0);
    CU_ASSERT_EQUAL(rdma_dereg(a->rdma, &r[1]), -EINVAL);
    CU_ASSERT_EQUAL(rdma_reg(a->rdma, a->memory, 8, 0, 0, &r[3]), 0);
    CU_ASSERT_EQUAL(r[3].id, r[1].id);
    CU_ASSERT_NOT_EQUAL(r[3].stag, r[1].stag);
    if (pair.mode != PAIR_DEVICE) {
        static char outside[8];
        CU_ASSERT_EQUAL(rdma_dereg(a->rdma, &r[0]), 0);
        CU_ASSERT_EQUAL(rdma_reg(a->rdma, outside, 8, 0, 0, &r[0]), -EINVAL);
    }
}

static void base_is_told(void)
{
    for (int mode = 0; mode < PAIR_MODES; mode++) {
        struct rdma_region r;
        pair_open(&pair, (enum pair_mode)mode,
                  (struct sim_rnic_config){.bits = SIM_RNIC_BITS & ~RDMA_CAP_BASE_TO});
        CU_ASSERT_EQUAL(rdma_reg(a->rdma, a->memory, 8, 0, 77, &r), 0);
        CU_ASSERT_EQUAL(r.base_to, (uint64_t)(uintptr_t)a->memory);
        pair_close(&pair);
    }
}

static void completion_queues(void)
{
    uint32_t cq, third;
    CU_ASSERT_EQUAL(rdma_cq_create(a->rdma, 0, &cq), -EINVAL);
    CU_ASSERT_EQUAL(rdma_cq_create(a->rdma, 1u << 30, &cq), -EINVAL);
    CU_ASSERT_EQUAL(rdma_cq_create(a->rdma, 3, &cq), 0);
    CU_ASSERT_EQUAL(cq, 1);
    CU_ASSERT_EQUAL(rdma_cq_create(a->rdma, 3, &third), -ENOMEM);
    CU_ASSERT_EQUAL(rdma_cq_destroy(a->rdma, a->cq), -EBUSY);
    CU_ASSERT_EQUAL(rdma_cq_destroy(a->rdma, cq), 0);
    CU_ASSERT_EQUAL(rdma_cq_destroy(a->rdma, cq), -EINVAL);
    CU_ASSERT_EQUAL(rdma_cq_create(a->rdma, 2, &third), 0);
    CU_ASSERT_EQUAL(third, cq);
    CU_ASSERT_EQUAL(rdma_cq_arm(a->rdma, cq, true), 0);
    CU_ASSERT_EQUAL(rdma_cq_arm(a->rdma, 7, true), -EINVAL);
    struct rdma_wc wc;
    CU_ASSERT_EQUAL(rdma_cq_poll(a->rdma, 7, &wc, 1), -EINVAL);
}

static void overflow(void)
{
    struct rdma_conn_config config = pair_config(a);
    struct rdma_wr noops[2] = {{.op = RDMA_NOOP, .flags = RDMA_SIGNALED},
                               {.op = RDMA_NOOP, .flags = RDMA_SIGNALED}};
    struct rdma_wc wc;
    CU_ASSERT_EQUAL(rdma_cq_create(a->rdma, 1, &config.cq), 0);
    CU_ASSERT_EQUAL(rdma_connect(a->rdma, "b", &config, NULL, 0, NULL, 0, &a->conn), 0);
    b->conn = pair_event(b, RDMA_EVENT_REQUEST).conn;
    CU_ASSERT_EQUAL(accept(NULL, 0), 0);
    pair_event(a, RDMA_EVENT_CONNECTED);
    CU_ASSERT_EQUAL(rdma_post_send(a->rdma, a->conn, noops, 2), 0);
    CU_ASSERT_EQUAL(rdma_cq_poll(a->rdma, config.cq, &wc, 1), -EIO);
}

static void timers(void)
{
    struct sim_agent *agent = pair.mode == PAIR_DEVICE ? NULL : &pair.world->agents[0];
    struct sim_step steps[SIM_MAX_STEPS];
    CU_ASSERT_EQUAL(rdma_timer(a->rdma, 2, 1000), -EINVAL);
    CU_ASSERT_EQUAL(rdma_timer(a->rdma, 1, 1000), 0);
    for (int i = 0; i < 2; i++) {
        if (!agent) {
            CU_ASSERT_EQUAL(sim_device_timer_ns(a->rdma, 1), 1000);
            CU_ASSERT_FALSE(sim_device_expire(a->rdma, 0));
            CU_ASSERT(sim_device_expire(a->rdma, 1));
            CU_ASSERT_FALSE(sim_device_expire(a->rdma, 1));
        } else {
            CU_ASSERT_EQUAL_FATAL(agent->ops->enabled(agent, steps), 1);
            CU_ASSERT(steps[0].kind == SIM_STEP_EXPIRE && steps[0].queue == 1);
            agent->ops->run(agent, &steps[0]);
            CU_ASSERT_EQUAL(agent->ops->enabled(agent, steps), 0);
        }
        if (i == 0) {
            /* What has expired, but was not taken, is forgotten when the timer is set again. */
            CU_ASSERT_EQUAL(rdma_timer(a->rdma, 1, 1000), 0);
            CU_ASSERT(pair_no_event(a));
        }
    }
    CU_ASSERT_EQUAL(pair_event(a, RDMA_EVENT_TIMER).conn, 1);
    CU_ASSERT_EQUAL(rdma_timer(a->rdma, 0, 5), 0);
    CU_ASSERT_EQUAL(rdma_timer(a->rdma, 0, 0), 0);
    CU_ASSERT(agent ? agent->ops->enabled(agent, steps) == 0 : !sim_device_expire(a->rdma, 0));
}

static void random_octets(void)
{
    char first[3][20], again[3][20];
    for (int mode = 0; mode < 2; mode++) {
        pair_open(&pair, mode ? PAIR_RDMAP : PAIR_DEVICE, (struct sim_rnic_config){0});
        for (int i = 0; i < 3; i++)
            CU_ASSERT_EQUAL(rdma_random(i == 2 ? b->rdma : a->rdma, mode ? again[i] : first[i], 20),
                            0);
        pair_close(&pair);
    }
    CU_ASSERT_EQUAL(memcmp(first, again, sizeof first), 0);
    CU_ASSERT_NOT_EQUAL(memcmp(first[0], first[1], 20), 0);
    CU_ASSERT_NOT_EQUAL(memcmp(first[0], first[2], 20), 0);
}

static void capabilities(void)
{
    struct rdma_caps caps;
    rdma_caps(a->rdma, &caps);
    uint32_t ordered = RDMA_CAP_ORDERED_WRITES | RDMA_CAP_WRITE_ACKED;
    CU_ASSERT_EQUAL(caps.bits, SIM_RNIC_BITS | (pair.mode == PAIR_RDMAP ? 0 : ordered));
    CU_ASSERT(caps.max_message == 256 && caps.max_inline == 48 && caps.max_sge == 3 &&
              caps.max_read_sge == 3 && caps.max_reads == 2 && caps.max_queue == 4);
}

/* ---- devices only ------------------------------------------------------------------------ */

static void listeners_take_turns(void)
{
    struct sim_device *dev = sim_device_open(&(struct sim_device_config){.handles = 4});
    CU_ASSERT_PTR_NOT_NULL_FATAL(dev);
    struct rdma *r[4];
    uint32_t cq[4], conn;
    struct rdma_event event;
    for (int i = 0; i < 4; i++) {
        r[i] = sim_device_handle(dev, &(struct sim_rnic_limits){.connections = 8});
        CU_ASSERT_PTR_NOT_NULL_FATAL(r[i]);
        CU_ASSERT_EQUAL(rdma_cq_create(r[i], 4, &cq[i]), 0);
        if (i != 0)
            CU_ASSERT_EQUAL(rdma_listen(r[i], "here"), 0);
    }
    CU_ASSERT_PTR_NULL(sim_device_handle(dev, &(struct sim_rnic_limits){0}));
    CU_ASSERT_EQUAL(rdma_listen(r[1], "there"), -EINVAL);
    struct rdma_conn_config config = {.cq = cq[0]};
    for (int i = 0; i < 6; i++) {
        CU_ASSERT_EQUAL(rdma_connect(r[0], "here", &config, NULL, 0, NULL, 0, &conn), 0);
        CU_ASSERT_EQUAL(rdma_event(r[1 + i % 3], &event), 1);
        CU_ASSERT_EQUAL(event.kind, RDMA_EVENT_REQUEST);
    }
    CU_ASSERT_EQUAL(rdma_connect(r[0], "nowhere", &config, NULL, 0, NULL, 0, &conn), 0);
    CU_ASSERT_EQUAL(rdma_event(r[0], &event), 1);
    CU_ASSERT(event.kind == RDMA_EVENT_REJECTED && event.error == -ECONNREFUSED);
    sim_device_close(dev);
}

/* Two devices do not know of each other; an illegal one is refused. */
static void devices(void)
{
    struct sim_device *one = sim_device_open(&(struct sim_device_config){0});
    struct sim_device *two = sim_device_open(&(struct sim_device_config){0});
    CU_ASSERT_PTR_NOT_NULL(one);
    CU_ASSERT_PTR_NOT_NULL(two);
    CU_ASSERT_PTR_NULL(sim_device_open(&(struct sim_device_config){.hosts = 1000}));
    CU_ASSERT_PTR_NULL(sim_device_open(&(struct sim_device_config){.rnic.regions = 100000}));
    CU_ASSERT_PTR_NULL(sim_device_open(&(struct sim_device_config){.octets = 64}));
    CU_ASSERT_PTR_NULL(sim_device_handle(one, &(struct sim_rnic_limits){.host = 1}));
    CU_ASSERT_PTR_NULL(sim_device_handle(one, &(struct sim_rnic_limits){.max_sge = 1000}));
    sim_device_close(one);
    sim_device_close(two);
    sim_device_close(NULL);
}

/* ---- tests ------------------------------------------------------------------------------- */

#define ON_ALL(name, how) \
    static void all_##name(void) \
    { \
        how(name); \
    }
ON_ALL(private_data_goes_both_ways, on_all)
ON_ALL(rejected, on_all)
ON_ALL(no_place_is_left, on_all)
ON_ALL(bad_configurations, on_all)
ON_ALL(reads_are_negotiated, on_all)
ON_ALL(disconnected, on_all_connected)
ON_ALL(unsignaled_is_not_flushed, on_all_connected)
ON_ALL(completions_before_the_end, on_all_connected)
ON_ALL(cut, on_all_connected)
ON_ALL(host_dies, on_all_connected)
ON_ALL(host_falls_silent, on_all_connected)
ON_ALL(connections_one_after_the_other, on_all)
ON_ALL(regions, on_all)
ON_ALL(completion_queues, on_all_connected)
ON_ALL(overflow, on_all)
ON_ALL(timers, on_all)
ON_ALL(capabilities, on_all)

int main(void)
{
    static const struct test tests[] = {
        {"connect and accept", all_private_data_goes_both_ways},
        {"reject", all_rejected},
        {"no place is left", all_no_place_is_left},
        {"bad configurations", all_bad_configurations},
        {"reads are negotiated", all_reads_are_negotiated},
        {"disconnect", all_disconnected},
        {"unsignaled at the end", all_unsignaled_is_not_flushed},
        {"completions before the end", all_completions_before_the_end},
        {"cut", all_cut},
        {"a host dies", all_host_dies},
        {"a host falls silent", all_host_falls_silent},
        {"a host is all its handles", a_host_is_all_its_handles},
        {"one after the other", all_connections_one_after_the_other},
        {"regions", all_regions},
        {"base Tagged Offsets", base_is_told},
        {"completion queues", all_completion_queues},
        {"overflow", all_overflow},
        {"timers", all_timers},
        {"random octets", random_octets},
        {"capabilities", all_capabilities},
        {"listeners take turns", listeners_take_turns},
        {"devices", devices},
    };
    return run_tests("rnic_connect", tests, sizeof tests / sizeof *tests);
}
