/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The lives of connections between simulated RNICs, in every order of steps: they are made, and end
 * in the middle of it all, for one side, for both, with a host.
 */
#include <errno.h>
#include <string.h>

#include "rnic_world.h"
#include "tests/run.h"

static struct rw_outcomes o;

/* ---- connections are made ---------------------------------------------------------------- */

/* Private memory of a function that connects: stages. */
enum { BEGIN, WAITS, UP };

/* Accepts; then which comes first: CONNECTED or what the peer sends? */
static bool accept_and_receive(struct sim_agent *a, const struct rw *w, struct rw_private *p)
{
    struct rdma_event event;
    struct rdma_wc wc;
    if (p->stage == BEGIN) {
        if (!rw_event(a, &event))
            return false;
        CU_ASSERT(event.kind == RDMA_EVENT_REQUEST && event.conn == 0 &&
                  event.private_length == 2 && memcmp(event.private_data, "hi", 2) == 0);
        struct rdma_conn_config config = rw_config(w, 1);
        struct rdma_sge sge = {w->buffer[1] + RW_RECEIVE, 16, w->own[1].lkey};
        struct rdma_wr receive = {.wr_id = 100, .sges = &sge, .sge_count = 1};
        CU_ASSERT_EQUAL(rdma_accept(&a->rdma, 0, &config, &receive, 1, NULL, 0), 0);
        p->stage = WAITS;
        return false;
    }
    if (rw_poll(a, w, &wc)) {
        CU_ASSERT(wc.status == RDMA_OK && wc.wr_id == 100);
        p->result[0] = p->result[0] * 10 + 2;
        /* It is heard, so it can be answered. */
        CU_ASSERT_EQUAL(rw_send(a, w, 6, 0), 0);
    }
    if (p->result[0] % 10 != 1 && p->result[0] < 10 && rw_event(a, &event)) {
        CU_ASSERT_EQUAL(event.kind, RDMA_EVENT_CONNECTED);
        p->result[0] = p->result[0] * 10 + 1;
    }
    return p->result[0] > 10;
}

static bool reject(struct sim_agent *a, const struct rw *w, struct rw_private *p)
{
    struct rdma_event event;
    (void)w, (void)p;
    if (!rw_event(a, &event))
        return false;
    CU_ASSERT_EQUAL(rdma_reject(&a->rdma, event.conn, NULL, 0), 0);
    return true;
}

/* A receives the answer that it has no receive for: RNR would end the connection. */
static bool connect_with_receive(struct sim_agent *a, const struct rw *w, struct rw_private *p)
{
    struct rdma_event event;
    uint32_t conn;
    if (p->stage == BEGIN) {
        struct rdma_conn_config config = rw_config(w, 0);
        struct rdma_sge sge = {w->buffer[0] + RW_RECEIVE, 16, w->own[0].lkey};
        struct rdma_wr receive = {.wr_id = 100, .sges = &sge, .sge_count = 1};
        CU_ASSERT_EQUAL(rdma_connect(&a->rdma, "", &config, &receive, 1, "hi", 2, &conn), 0);
        p->stage = WAITS;
        return false;
    }
    if (p->stage == WAITS) {
        if (!rw_event(a, &event))
            return false;
        p->result[0] = event.kind;
        if (event.kind != RDMA_EVENT_CONNECTED) {
            CU_ASSERT_EQUAL(rdma_destroy(&a->rdma, 0), 0);
            return true;
        }
        CU_ASSERT_EQUAL(rw_send(a, w, 5, 0), 0);
        p->stage = UP;
        return false;
    }
    return rw_take(a, w, RDMA_RECV, RW_RECEIVE, &p->result[1]);
}

static void connections_are_made(void)
{
    for (int i = 0; i < RW_ORDERINGS; i++) {
        struct rw_test test = {.code = {connect_with_receive, accept_and_receive},
                               .agents = 2,
                               .memory = SIM_MEMORY_TSO,
                               .ordering = rw_orderings[i],
                               .unconnected = true};
        rw_run(test, &o);
        CU_ASSERT(rw_has(&o, 0, RDMA_EVENT_CONNECTED, 6));
        CU_ASSERT(rw_has(&o, 1, 12, 0));
        /*
         * A message may be there before CONNECTED only on InfiniBand. On the others its CPU can
         * still look at the completion first.
         */
        CU_ASSERT(rw_has(&o, 1, 21, 0));
        CU_ASSERT_EQUAL(o.count, 2);
        test.code[1] = reject;
        rw_run(test, &o);
        CU_ASSERT_EQUAL(o.count, 1);
        CU_ASSERT(rw_has(&o, 0, RDMA_EVENT_REJECTED, 0));
    }
}

/* ---- connections end --------------------------------------------------------------------- */

/*
 * Takes what comes until the connection is drained, and checks the order: DISCONNECTED, then
 * DRAINED when everything was flushed. result[0]: receives that completed well; result[1]: sends;
 * result[2]: all completions; result[3]: was there DISCONNECTED?
 */
static bool until_drained(struct sim_agent *a, const struct rw *w, struct rw_private *p)
{
    struct rdma_event event;
    struct rdma_wc wc;
    if (rw_poll(a, w, &wc)) {
        CU_ASSERT(wc.status == RDMA_OK || wc.status == RDMA_FLUSHED);
        if (wc.status == RDMA_OK)
            p->result[wc.op == RDMA_RECV ? 0 : 1]++;
        p->result[2]++;
        return false;
    }
    if (!rw_event(a, &event))
        return false;
    if (event.kind == RDMA_EVENT_DISCONNECTED) {
        CU_ASSERT_EQUAL(p->result[3], 0);
        p->result[3] = 1;
        CU_ASSERT_EQUAL(rw_send(a, w, 0, 0), -ENOTCONN);
        return false;
    }
    CU_ASSERT_EQUAL(event.kind, RDMA_EVENT_DRAINED);
    CU_ASSERT_EQUAL(p->result[3], 1);
    CU_ASSERT_EQUAL(rw_poll(a, w, &wc), 0);
    CU_ASSERT_EQUAL(rdma_destroy(&a->rdma, w->conn[a->index]), 0);
    return true;
}

static bool send_then_end(struct sim_agent *a, const struct rw *w, struct rw_private *p)
{
    if (p->stage == 0) {
        p->stage = 1;
        rw_send(a, w, 5, RDMA_SIGNALED);
        rdma_disconnect(&a->rdma, w->conn[0]);
        return false;
    }
    return until_drained(a, w, p);
}

static bool wait_then_end(struct sim_agent *a, const struct rw *w, struct rw_private *p)
{
    if (p->stage == 0) {
        rw_send(a, w, 5, RDMA_SIGNALED);
        p->stage = 1;
        return false;
    }
    if (p->stage == 1) {
        if (rw_completed(a, w, RDMA_SEND)) {
            rdma_disconnect(&a->rdma, w->conn[0]);
            p->stage = 2;
        }
        return false;
    }
    return until_drained(a, w, p);
}

/* Everybody ended as they should: all that was posted completed. */
static void all_ended(uint64_t posted_a, uint64_t posted_b)
{
    for (uint32_t i = 0; i < o.count; i++) {
        CU_ASSERT_EQUAL(o.all[i].result[0][2], posted_a);
        CU_ASSERT_EQUAL(o.all[i].result[1][2], posted_b);
    }
    CU_ASSERT(o.count > 0);
}

static bool received(uint64_t count)
{
    for (uint32_t i = 0; i < o.count; i++)
        if (o.all[i].result[1][0] == count)
            return true;
    return false;
}

static void disconnected(void)
{
    for (int i = 0; i < RW_ORDERINGS; i++) {
        struct rw_test test = {.code = {send_then_end, until_drained},
                               .agents = 2,
                               .memory = SIM_MEMORY_TSO,
                               .ordering = rw_orderings[i]};
        rw_run(test, &o);
        all_ended(3, 2);
        CU_ASSERT(received(0) && received(1));
        /* Once it has completed it arrives: it was placed, or the stream is closed in order. */
        test.code[0] = wait_then_end;
        rw_run(test, &o);
        all_ended(2, 2);
        CU_ASSERT(received(1));
        CU_ASSERT_FALSE(received(0));
    }
}

static bool send_then_drain(struct sim_agent *a, const struct rw *w, struct rw_private *p)
{
    if (p->stage == 0) {
        p->stage = 1;
        p->result[4] = rw_send(a, w, 5, RDMA_SIGNALED) != 0;
        return false;
    }
    return p->result[4] ? true : until_drained(a, w, p);
}

/* The fault may never strike: the functions need not end. */
static void cut(void)
{
    for (int i = 0; i < RW_ORDERINGS; i++) {
        bool completed_but_lost = false, lost = false, arrived = false;
        rw_run((struct rw_test){.code = {send_then_drain, until_drained},
                                .agents = 2,
                                .ordering = rw_orderings[i],
                                .cuts = 1},
               &o);
        for (uint32_t j = 0; j < o.count; j++) {
            const uint64_t *of_a = o.all[j].result[0], *of_b = o.all[j].result[1];
            if (of_a[3] == 0)
                continue;
            completed_but_lost |= of_a[1] == 1 && of_b[0] == 0;
            lost |= of_a[1] == 0 && of_b[0] == 0;
            arrived |= of_b[0] == 1;
        }
        CU_ASSERT(lost && arrived);
        CU_ASSERT_EQUAL(completed_but_lost, rw_orderings[i] == SIM_ORDERING_RDMAP);
    }
}

static bool send_twice_then_drain(struct sim_agent *a, const struct rw *w, struct rw_private *p)
{
    if (p->stage == 0) {
        p->stage = 1;
        if (rw_send(a, w, 5, 0) == 0)
            rw_send(a, w, 6, 0);
        return false;
    }
    return until_drained(a, w, p);
}

/* Messages of an isolated CPU arrive in steps of their own while they may be lost. */
static void cut_of_isolated(void)
{
    static struct rw_outcomes other;
    for (int i = 0; i < RW_ORDERINGS; i++) {
        struct rw_test test = {.code = {send_twice_then_drain, until_drained},
                               .agents = 2,
                               .ordering = rw_orderings[i],
                               .cuts = 1};
        rw_run(test, &other);
        test.isolated = true;
        rw_run(test, &o);
        CU_ASSERT(rw_same(&o, &other));
        CU_ASSERT(received(0) && received(1) && received(2));
    }
}

static bool write_x_then_drain(struct sim_agent *a, const struct rw *w, struct rw_private *p)
{
    if (p->stage == 0) {
        p->stage = 1;
        rw_write(a, w, w->x, 1, RDMA_SIGNALED);
        rw_fetch_add(a, w, w->y, 1, 0, RW_SINK, RDMA_SIGNALED);
        return false;
    }
    return until_drained(a, w, p);
}

/* Looks at x and y when nothing more may come. */
static bool drain_then_look(struct sim_agent *a, const struct rw *w, struct rw_private *p)
{
    if (p->stage == 0) {
        p->stage = until_drained(a, w, p);
        return false;
    }
    p->result[4] = mem_load64(&a->mem, w->x);
    p->result[5] = mem_load64(&a->mem, w->y);
    return true;
}

static void nothing_lands_after_drained(void)
{
    for (int i = 0; i < RW_ORDERINGS * 2; i++) {
        bool written = false, unwritten = false;
        rw_run((struct rw_test){.code = {write_x_then_drain, drain_then_look},
                                .agents = 2,
                                .ordering = rw_orderings[i / 2],
                                .bits = i % 2 ? 0 : SIM_RNIC_BITS & ~RDMA_CAP_ATOMIC_CPU,
                                .cuts = 1,
                                .no_receives = true},
               &o);
        for (uint32_t j = 0; j < o.count; j++) {
            const uint64_t *of_b = o.all[j].result[1];
            if (of_b[3] == 0)
                continue; /* the fault did not strike */
            written |= of_b[4] == 1;
            unwritten |= of_b[4] == 0;
            CU_ASSERT_EQUAL(of_b[4], o.all[j].x);
            CU_ASSERT_EQUAL(of_b[5], o.all[j].y);
        }
        CU_ASSERT(written && unwritten);
    }
}

/* The host of A stops: B ends as ever, and C's atomics on the same RNIC go on. */
static bool add_y_wait(struct sim_agent *a, const struct rw *w, struct rw_private *p)
{
    if (p->stage == 0) {
        p->stage = 1;
        rw_fetch_add(a, w, w->y, 10, 0, RW_SINK, RDMA_SIGNALED);
        return false;
    }
    if (!rw_completed(a, w, RDMA_FETCH_ADD))
        return false;
    p->result[0] = 1;
    return true;
}

static void host_dies(void)
{
    for (int i = 0; i < RW_ORDERINGS; i++) {
        bool died = false;
        rw_run((struct rw_test){.code = {write_x_then_drain, rw_idle, add_y_wait},
                                .agents = 3,
                                .third_connects = true,
                                .ordering = rw_orderings[i],
                                .bits = SIM_RNIC_BITS & ~RDMA_CAP_ATOMIC_CPU,
                                .cuts = 1,
                                .dies = true,
                                .no_receives = true},
               &o);
        for (uint32_t j = 0; j < o.count; j++) {
            CU_ASSERT_EQUAL(o.all[j].result[2][0], 1);
            CU_ASSERT(o.all[j].y == 10 || o.all[j].y == 11);
            died |= o.all[j].y == 10;
        }
        CU_ASSERT(died);
    }
}

/* One connection may be lost, another is ended by its peer: each event is taken, in any order. */
static bool take_two_events(struct sim_agent *a, const struct rw *w, struct rw_private *p)
{
    struct rdma_event event;
    struct rdma_wc wc;
    if (rw_poll(a, w, &wc) || !rw_event(a, &event))
        return false;
    if (event.kind == RDMA_EVENT_DISCONNECTED)
        p->result[event.conn] = ++p->result[2];
    return p->result[1] != 0;
}

static bool disconnect(struct sim_agent *a, const struct rw *w, struct rw_private *p)
{
    (void)p;
    CU_ASSERT_EQUAL(rdma_disconnect(&a->rdma, w->conn[a->index]), 0);
    return true;
}

static void events_of_two_connections(void)
{
    for (int i = 0; i < RW_ORDERINGS; i++) {
        rw_run((struct rw_test){.code = {rw_idle, take_two_events, disconnect},
                                .agents = 3,
                                .third_connects = true,
                                .ordering = rw_orderings[i],
                                .cuts = 1},
               &o);
        CU_ASSERT(rw_has(&o, 1, 0, 1));
        CU_ASSERT(rw_has(&o, 1, 1, 2));
    }
}

int main(void)
{
    static const struct test tests[] = {
        {"connections are made", connections_are_made},
        {"disconnect", disconnected},
        {"cut", cut},
        {"cut of an isolated CPU", cut_of_isolated},
        {"nothing lands after DRAINED", nothing_lands_after_drained},
        {"a host dies", host_dies},
        {"events of two connections", events_of_two_connections},
    };
    return run_tests("rnic_lifetimes", tests, sizeof tests / sizeof *tests);
}
