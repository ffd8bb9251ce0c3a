/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages for which no receive is posted, between simulated RNICs in every order of steps: they
 * fail, or wait (config.rnr_retry).
 */
#include <errno.h>

#include "rnic_world.h"
#include "sim/device.h"
#include "tests/run.h"

static struct rw_outcomes o;

/* Those that have it. */
static const enum sim_ordering orderings[] = {SIM_ORDERING_INFINIBAND, SIM_ORDERING_STRONG};
#define ORDERINGS 2

static void post_receive(struct sim_agent *a, const struct rw *w)
{
    struct rdma_sge sge = {w->buffer[a->index] + RW_RECEIVE, 16, w->own[a->index].lkey};
    struct rdma_wr receive = {.wr_id = 100, .sges = &sge, .sge_count = 1};
    CU_ASSERT_EQUAL(rdma_post_recv(&a->rdma, w->conn[a->index], &receive, 1), 0);
}

static struct rw_test waiting(rw_code of_a, rw_code of_b, enum sim_ordering ordering)
{
    return (struct rw_test){.code = {of_a, of_b},
                            .agents = 2,
                            .ordering = ordering,
                            .rnr_retry = SIM_RNR_FOREVER,
                            .no_receives = true};
}

/* SENDs these values, of which the last one is signaled: `count`, counting up from `first`. */
static void post_sends(struct sim_agent *a, const struct rw *w, uint64_t first, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        CU_ASSERT_EQUAL(rw_send(a, w, first + i, i + 1 == count ? RDMA_SIGNALED : 0), 0);
}

/* The same in the first poll; true when the last one is complete. */
static bool sends(struct sim_agent *a, const struct rw *w, struct rw_private *p, uint64_t first,
                  uint32_t count)
{
    if (p->stage != 0)
        return rw_completed(a, w, RDMA_SEND);
    post_sends(a, w, first, count);
    p->stage = 1;
    return false;
}

/* ---- order ------------------------------------------------------------------------------- */

/* Everything before the SENDs comes through, nothing behind them. */
static bool write_send_send_write(struct sim_agent *a, const struct rw *w, struct rw_private *p)
{
    if (p->stage == 0) {
        CU_ASSERT_EQUAL(rw_write(a, w, w->x, 1, 0), 0);
        CU_ASSERT_EQUAL(rw_send(a, w, 5, 0), 0);
        CU_ASSERT_EQUAL(rw_send(a, w, 6, 0), 0);
        CU_ASSERT_EQUAL(rw_write(a, w, w->y, 1, RDMA_SIGNALED), 0);
        p->stage = 1;
        return false;
    }
    return rw_completed(a, w, RDMA_WRITE);
}

static bool wait_for_x_then_receive(struct sim_agent *a, const struct rw *w, struct rw_private *p)
{
    uint64_t value;
    if (p->stage == 0) {
        if (mem_load64(&a->mem, w->x) == 0)
            return false; /* it comes without a receive */
        p->result[2] = mem_load64(&a->mem, w->y);
        post_receive(a, w);
        p->stage = 1;
        return false;
    }
    if (!rw_take(a, w, RDMA_RECV, RW_RECEIVE, &value))
        return false;
    p->result[p->stage - 1] = value;
    if (p->stage == 1) {
        p->result[3] = mem_load64(&a->mem, w->y);
        post_receive(a, w);
    }
    return ++p->stage == 3;
}

static void order_is_kept(void)
{
    for (int i = 0; i < ORDERINGS * 2; i++) {
        struct rw_test test =
            waiting(write_send_send_write, wait_for_x_then_receive, orderings[i / 2]);
        test.memory = i % 2 ? SIM_MEMORY_TSO : SIM_MEMORY_SC;
        rw_run(test, &o);
        CU_ASSERT_EQUAL(o.count, 1);
        CU_ASSERT(rw_has(&o, 1, 5, 6));
        CU_ASSERT(o.all[0].result[1][2] == 0 && o.all[0].result[1][3] == 0 && o.all[0].y == 1);
    }
}

/* The same when messages arrive at once: an isolated CPU has no other way to tell of x. */
static bool send_send(struct sim_agent *a, const struct rw *w, struct rw_private *p)
{
    return sends(a, w, p, 5, 2);
}

static bool receive_one_by_one(struct sim_agent *a, const struct rw *w, struct rw_private *p)
{
    if (p->stage == 0) {
        post_receive(a, w);
        p->stage = 1;
        return false;
    }
    if (!rw_take(a, w, RDMA_RECV, RW_RECEIVE, &p->result[p->stage - 1]))
        return false;
    if (p->stage == 1)
        post_receive(a, w);
    return ++p->stage == 3;
}

static void isolated(void)
{
    for (int i = 0; i < ORDERINGS; i++) {
        struct rw_test test = waiting(send_send, receive_one_by_one, orderings[i]);
        test.isolated = true;
        rw_run(test, &o);
        CU_ASSERT_EQUAL(o.count, 1);
        CU_ASSERT(rw_has(&o, 1, 5, 6));
    }
}

static bool sent_and_nothing_else(struct sim_agent *a, const struct rw *w, struct rw_private *p)
{
    struct rdma_wc wc;
    struct rdma_event event;
    if (p->stage == 0) {
        post_sends(a, w, 5, 1);
        p->stage = 1;
        return false;
    }
    p->result[0] = 1; /* looked behind the SEND */
    CU_ASSERT_FALSE(rw_poll(a, w, &wc) || rw_event(a, &event));
    return false;
}

static void forever(void)
{
    for (int i = 0; i < ORDERINGS; i++) {
        struct rw_test test = waiting(sent_and_nothing_else, rw_idle, orderings[i]);
        rw_run(test, &o);
        CU_ASSERT_EQUAL(o.count, 1);
        CU_ASSERT(rw_has(&o, 0, 1, 0));
    }
}

/* ---- what does not wait ------------------------------------------------------------------ */

/* As many as the wire takes; then B's READ is answered all the same, and after it B receives. */
static bool send_four(struct sim_agent *a, const struct rw *w, struct rw_private *p)
{
    return sends(a, w, p, 0, 4);
}

static bool read_then_receive_four(struct sim_agent *a, const struct rw *w, struct rw_private *p)
{
    uint64_t value;
    if (p->stage == 0) {
        CU_ASSERT_EQUAL(rw_fetch_add(a, w, w->z, 1, 0, RW_SINK, RDMA_SIGNALED), 0);
        CU_ASSERT_EQUAL(rw_read(a, w, w->z, RW_SOURCE, RDMA_SIGNALED), 0);
        p->stage = 1;
        return false;
    }
    if (p->stage == 1) {
        if (rw_take(a, w, RDMA_FETCH_ADD, RW_SINK, &p->result[0]))
            p->stage = 2;
        return false;
    }
    if (p->stage == 2) {
        if (rw_take(a, w, RDMA_READ, RW_SOURCE, &p->result[1])) {
            post_receive(a, w);
            p->stage = 3;
        }
        return false;
    }
    if (!rw_take(a, w, RDMA_RECV, RW_RECEIVE, &value))
        return false;
    CU_ASSERT_EQUAL(value, p->stage - 3);
    if (++p->stage == 7) {
        p->result[2] = 1;
        return true;
    }
    post_receive(a, w);
    return false;
}

static void answers_pass_by(void)
{
    for (int i = 0; i < ORDERINGS; i++) {
        struct rw_test test = waiting(send_four, read_then_receive_four, orderings[i]);
        rw_run(test, &o);
        CU_ASSERT(o.count > 0);
        for (uint32_t j = 0; j < o.count; j++) {
            CU_ASSERT_EQUAL(o.all[j].z, 1);
            CU_ASSERT_EQUAL(o.all[j].result[1][2], 1); /* it came to its end */
        }
        CU_ASSERT(rw_has(&o, 1, 0, 1));
    }
}

static bool write_imm(struct sim_agent *a, const struct rw *w, struct rw_private *p)
{
    struct rdma_wr wr = rw_remote(a, w, RDMA_WRITE_IMM, w->x, RDMA_INLINE | RDMA_SIGNALED);
    const uint64_t value = 1;
    if (p->stage == 0) {
        CU_ASSERT_EQUAL(rw_post(a, w, &wr, &value, sizeof value), 0);
        p->stage = 1;
        return false;
    }
    return rw_completed(a, w, RDMA_WRITE_IMM);
}

static bool look_then_receive(struct sim_agent *a, const struct rw *w, struct rw_private *p)
{
    if (p->stage == 0) {
        p->result[0] = mem_load64(&a->mem, w->x);
        post_receive(a, w);
        p->stage = 1;
        return false;
    }
    if (!rw_completed(a, w, RDMA_RECV))
        return false;
    p->result[1] = mem_load64(&a->mem, w->x);
    return true;
}

static void data_of_write_imm(void)
{
    for (int i = 0; i < ORDERINGS; i++) {
        struct rw_test test = waiting(write_imm, look_then_receive, orderings[i]);
        rw_run(test, &o);
        CU_ASSERT_EQUAL(o.count, 2);
        CU_ASSERT(rw_has(&o, 1, 0, 1));
        CU_ASSERT(rw_has(&o, 1, 1, 1)); /* placed, though no receive was posted */
    }
}

/* ---- the end ----------------------------------------------------------------------------- */

static bool send_then_disconnect(struct sim_agent *a, const struct rw *w, struct rw_private *p)
{
    struct rdma_event event;
    if (p->stage == 0) {
        post_sends(a, w, 5, 1);
        CU_ASSERT_EQUAL(rdma_disconnect(&a->rdma, w->conn[0]), 0);
        p->stage = 1;
        return false;
    }
    rw_take_status(a, w, p);
    if (rw_event(a, &event) && event.kind == RDMA_EVENT_DRAINED) {
        CU_ASSERT_EQUAL(rdma_destroy(&a->rdma, w->conn[0]), 0);
        return true;
    }
    return false;
}

static bool until_drained(struct sim_agent *a, const struct rw *w, struct rw_private *p)
{
    struct rdma_event event;
    (void)p;
    if (!rw_event(a, &event) || event.kind != RDMA_EVENT_DRAINED)
        return false;
    CU_ASSERT_EQUAL(rdma_destroy(&a->rdma, w->conn[1]), 0);
    return true;
}

static void flushed_at_the_end(void)
{
    for (int i = 0; i < ORDERINGS; i++) {
        struct rw_test test = waiting(send_then_disconnect, until_drained, orderings[i]);
        rw_run(test, &o);
        CU_ASSERT_EQUAL(o.count, 1);
        CU_ASSERT(rw_has(&o, 0, 1 + RDMA_FLUSHED, 0));
    }
}

/* ---- failing ----------------------------------------------------------------------------- */

static bool send_and_see(struct sim_agent *a, const struct rw *w, struct rw_private *p)
{
    if (p->stage != 0)
        return rw_take_status(a, w, p);
    post_sends(a, w, 5, 1);
    p->stage = 1;
    return false;
}

/* The load makes the time a choice: a receive alone is posted as early as can be. */
static bool receive_some_time(struct sim_agent *a, const struct rw *w, struct rw_private *p)
{
    if (p->stage != 0)
        return rw_take_status(a, w, p);
    p->result[1] = mem_load64(&a->mem, w->z);
    post_receive(a, w);
    p->stage = 1;
    return false;
}

/* So often as it is tried: there is a receive in time, or there is none. */
static void tried_so_often(void)
{
    static struct rw_outcomes at_once;
    for (int i = 0; i < ORDERINGS; i++) {
        struct rw_test test = waiting(send_and_see, receive_some_time, orderings[i]);
        test.rnr_retry = 0;
        rw_run(test, &at_once);
        CU_ASSERT_EQUAL(at_once.count, 2);
        CU_ASSERT(rw_has(&at_once, 0, 1 + RDMA_OK, 0));
        CU_ASSERT(rw_has(&at_once, 0, 1 + RDMA_RNR, 0));
        test.rnr_retry = 3;
        rw_run(test, &o);
        CU_ASSERT(rw_same(&o, &at_once));
        test.rnr_retry = SIM_RNR_FOREVER;
        rw_run(test, &o);
        CU_ASSERT_EQUAL(o.count, 1);
        CU_ASSERT(rw_has(&o, 0, 1 + RDMA_OK, 0));
    }
}

static void not_everywhere(void)
{
    struct sim_device_config config = {.rnic = {.ordering = SIM_ORDERING_STRONG}};
    static const struct {
        enum sim_ordering ordering;
        uint32_t retry;
        bool legal;
    } tries[] = {{SIM_ORDERING_STRONG, SIM_RNR_FOREVER - 1, true},
                 {SIM_ORDERING_STRONG, SIM_RNR_FOREVER, false}, /* nothing waits in a device */
                 {SIM_ORDERING_STRONG, SIM_RNR_FOREVER + 1, false},
                 {SIM_ORDERING_RDMAP, 1, false},
                 {SIM_ORDERING_RDMAP, 0, true}};
    for (size_t i = 0; i < sizeof tries / sizeof *tries; i++) {
        config.rnic.ordering = tries[i].ordering;
        config.rnic.rnr_retry = tries[i].retry;
        struct sim_device *device = sim_device_open(&config);
        CU_ASSERT_EQUAL(device != NULL, tries[i].legal);
        sim_device_close(device);
    }
}

int main(void)
{
    static const struct test tests[] = {
        {"order is kept", order_is_kept},
        {"order is kept for an isolated CPU", isolated},
        {"a message waits forever", forever},
        {"answers pass by", answers_pass_by},
        {"the data of WRITE_IMM", data_of_write_imm},
        {"flushed at the end", flushed_at_the_end},
        {"tried so often", tried_so_often},
        {"not everywhere", not_everywhere},
    };
    return run_tests("rnic_receives", tests, sizeof tests / sizeof *tests);
}
