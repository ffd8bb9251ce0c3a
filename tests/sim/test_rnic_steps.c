/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Simulated RNICs and the CPUs before them: doorbells in store buffers, what is snapshotted when,
 * buffers in flight, connections that are made and end in the middle of it all, timers.
 */
#include <errno.h>
#include <string.h>

#include "rnic_world.h"
#include "tests/run.h"

#define RDMAP SIM_ORDERING_RDMAP
#define INFINIBAND SIM_ORDERING_INFINIBAND
#define STRONG SIM_ORDERING_STRONG

static const enum sim_ordering orderings[] = {RDMAP, INFINIBAND, STRONG};
#define ORDERINGS 3
static const enum sim_memory memories[] = {SIM_MEMORY_SC, SIM_MEMORY_TSO, SIM_MEMORY_RELAXED};
#define MEMORIES 3

static struct rw_outcomes o;

static bool idle(struct sim_agent *a, const struct rw *w, struct rw_private *p)
{
    (void)a, (void)w, (void)p;
    return true;
}

static bool completed(struct sim_agent *a, const struct rw *w, uint32_t op)
{
    struct rdma_wc wc;
    if (!rw_poll(a, w, &wc))
        return false;
    CU_ASSERT_EQUAL(wc.status, RDMA_OK);
    CU_ASSERT_EQUAL(wc.op, op);
    return true;
}

/* Is there an outcome with this y? */
static bool has_y(uint64_t y)
{
    for (uint32_t i = 0; i < o.count; i++)
        if (o.all[i].y == y)
            return true;
    return false;
}

/* ---- doorbells --------------------------------------------------------------------------- */

/* Writes to y what is in x, which lies in memory that all share. */
static int write_y_from_x(struct sim_agent *a, const struct rw *w)
{
    struct rdma_wr wr = rw_remote(a, w, RDMA_WRITE, w->y, 0);
    return rw_post(a, w, &wr, w->x, 8);
}

static bool store_then_ring(struct sim_agent *a, const struct rw *w, struct rw_private *p)
{
    (void)p;
    mem_store64(&a->mem, w->z, 1); /* something else that waits in the buffer */
    mem_store64(&a->mem, w->x, 1);
    write_y_from_x(a, w);
    return true;
}

/* What was stored before is seen by the RNIC, however stores are reordered. */
static void doorbell_is_a_release(void)
{
    for (int i = 0; i < MEMORIES * ORDERINGS; i++) {
        rw_run((struct rw_test){.code = {store_then_ring, idle},
                                .agents = 2,
                                .memory = memories[i % MEMORIES],
                                .ordering = orderings[i / MEMORIES]},
               &o);
        CU_ASSERT(has_y(1));
        CU_ASSERT_FALSE(has_y(0));
    }
}

static bool ring_then_store(struct sim_agent *a, const struct rw *w, struct rw_private *p)
{
    (void)p;
    rw_write(a, w, w->y, 1, 0);
    mem_store64(&a->mem, w->x, 1);
    return true;
}

static bool load_x_y(struct sim_agent *a, const struct rw *w, struct rw_private *p)
{
    p->result[0] = mem_load64(&a->mem, w->x);
    p->result[1] = mem_load64(&a->mem, w->y);
    return true;
}

/* What is stored after it waits for nothing that the RNIC does. */
static void doorbell_and_later_stores(void)
{
    for (int i = 0; i < MEMORIES; i++) {
        rw_run((struct rw_test){.code = {ring_then_store, load_x_y},
                                .agents = 2,
                                .memory = memories[i]},
               &o);
        CU_ASSERT(rw_has(&o, 1, 1, 0));
        CU_ASSERT(rw_has(&o, 1, 1, 1));
        CU_ASSERT(rw_has(&o, 1, 0, 1));
    }
}

static bool three_doorbells(struct sim_agent *a, const struct rw *w, struct rw_private *p)
{
    (void)p;
    mem_store64(&a->mem, w->x, 1);
    for (uint64_t i = 1; i <= 3; i++)
        rw_write(a, w, w->y, i, 0);
    p->result[0] = mem_load64(&a->mem, w->z);
    return true;
}

static bool store_z_load_x(struct sim_agent *a, const struct rw *w, struct rw_private *p)
{
    mem_fetch_add64(&a->mem, w->z, 1);
    p->result[0] = mem_load64(&a->mem, w->x);
    return true;
}

/* Doorbells take room in the buffer as stores do, and leave it in order. */
static void doorbells_fill_the_buffer(void)
{
    for (uint32_t size = 1; size <= 4; size++) {
        bool both_zero = false;
        rw_run((struct rw_test){.code = {three_doorbells, store_z_load_x},
                                .agents = 2,
                                .memory = SIM_MEMORY_TSO,
                                .ordering = STRONG,
                                .store_buffer = size},
               &o);
        for (uint32_t i = 0; i < o.count; i++) {
            both_zero |= o.all[i].result[0][0] == 0 && o.all[i].result[1][0] == 0;
            CU_ASSERT_EQUAL(o.all[i].y, 3);
        }
        CU_ASSERT_EQUAL(both_zero, size == 4);
    }
}

/* ---- what is taken when ------------------------------------------------------------------ */

static bool change_after_posting(struct sim_agent *a, const struct rw *w, struct rw_private *p)
{
    uint64_t value = 7;
    struct rdma_sge sge = {&value, sizeof value, 0};
    struct rdma_wr wr = rw_remote(a, w, RDMA_WRITE, w->y, RDMA_INLINE);
    (void)p;
    wr.sges = &sge;
    wr.sge_count = 1;
    CU_ASSERT_EQUAL(rdma_post_send(&a->rdma, w->conn[0], &wr, 1), 0);
    value = 8;
    wr.remote_to += 8;
    sge.length = 0;
    return true;
}

/* The work request, and inline data, are what they were when posted. */
static void work_request_is_snapshotted(void)
{
    for (int i = 0; i < ORDERINGS; i++) {
        rw_run((struct rw_test){.code = {change_after_posting, idle},
                                .agents = 2,
                                .memory = SIM_MEMORY_RELAXED,
                                .ordering = orderings[i]},
               &o);
        CU_ASSERT_EQUAL(o.count, 1);
        CU_ASSERT(has_y(7));
    }
}

static bool ring_then_flag(struct sim_agent *a, const struct rw *w, struct rw_private *p)
{
    (void)p;
    write_y_from_x(a, w);
    mem_store64(&a->mem, w->z, 1);
    return true;
}

static bool store_x_after_flag(struct sim_agent *a, const struct rw *w, struct rw_private *p)
{
    p->result[0] = mem_load64(&a->mem, w->z);
    if (p->result[0] == 1)
        mem_store64(&a->mem, w->x, 1);
    return true;
}

/* Other data is read by the RNIC some time after the doorbell: another CPU can still change it. */
static void data_is_gathered_later(void)
{
    for (int i = 0; i < ORDERINGS; i++) {
        bool changed = false, unchanged = false;
        rw_run((struct rw_test){.code = {ring_then_flag, store_x_after_flag},
                                .agents = 2,
                                .ordering = orderings[i]},
               &o);
        for (uint32_t j = 0; j < o.count; j++) {
            changed |= o.all[j].result[1][0] == 1 && o.all[j].y == 1;
            unchanged |= o.all[j].result[1][0] == 1 && o.all[j].y == 0;
        }
        CU_ASSERT(changed && unchanged);
    }
}

/* ---- buffers in flight, and memory that is not granted ----------------------------------- */

static void expect_violation(struct rw_test test, const char *property)
{
    for (int i = 0; i < 2 * MEMORIES; i++) {
        test.agents = 2;
        test.memory = memories[i / 2];
        test.private_steps = i % 2;
        if (!test.code[1])
            test.code[1] = idle;
        rw_explore(&test, &o);
        CU_ASSERT_EQUAL_FATAL(o.report.result, SIM_VIOLATION);
        CU_ASSERT_STRING_EQUAL(o.report.violation.property, property);
    }
}

static bool read_posted_receive(struct sim_agent *a, const struct rw *w, struct rw_private *p)
{
    p->result[0] = rw_word(a, w, RW_RECEIVE);
    return true;
}

static bool write_posted_receive(struct sim_agent *a, const struct rw *w, struct rw_private *p)
{
    (void)p;
    mem_fill(&a->mem, w->buffer[a->index] + RW_RECEIVE + 24, 1, 8);
    return true;
}

static bool write_after_doorbell(struct sim_agent *a, const struct rw *w, struct rw_private *p)
{
    (void)p;
    write_y_from_x(a, w);
    mem_store64(&a->mem, w->x, 1);
    return true;
}

static bool write_source_of_send(struct sim_agent *a, const struct rw *w, struct rw_private *p)
{
    struct rdma_wr wr = {.op = RDMA_SEND};
    const uint64_t value = 1;
    (void)p;
    rw_post(a, w, &wr, w->buffer[0] + RW_SOURCE, 8);
    mem_write(&a->mem, w->buffer[0] + RW_SOURCE + 4, &value, 8);
    return true;
}

static bool read_sink_of_read(struct sim_agent *a, const struct rw *w, struct rw_private *p)
{
    rw_read(a, w, w->x, RW_SINK, RDMA_SIGNALED);
    p->result[0] = rw_word(a, w, RW_SINK);
    return true;
}

/* What is allowed: reading a source, anything after the completion, anything else. */
static bool leave_buffers_alone(struct sim_agent *a, const struct rw *w, struct rw_private *p)
{
    const uint64_t value = 3;
    struct rdma_wr wr = {.op = RDMA_SEND, .flags = RDMA_SIGNALED};
    if (p->stage == 0) {
        mem_write(&a->mem, w->buffer[0] + RW_SOURCE, &value, 8);
        rw_post(a, w, &wr, w->buffer[0] + RW_SOURCE, 8);
        p->result[0] = rw_word(a, w, RW_SOURCE);
        mem_fill(&a->mem, w->buffer[0] + RW_SOURCE + 8, 1, 8);
        p->stage = 1;
        return false;
    }
    if (!completed(a, w, RDMA_SEND))
        return false;
    mem_fill(&a->mem, w->buffer[0] + RW_SOURCE, 0, 8);
    return true;
}

static void buffers_in_flight(void)
{
    static const rw_code wrong[] = {read_posted_receive, write_posted_receive, write_after_doorbell,
                                    write_source_of_send, read_sink_of_read};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        expect_violation((struct rw_test){.code = {wrong[i]}}, "buffer-in-flight");
    for (int i = 0; i < MEMORIES; i++) {
        rw_run((struct rw_test){.code = {leave_buffers_alone, idle},
                                .agents = 2,
                                .memory = memories[i]},
               &o);
        CU_ASSERT(rw_has(&o, 0, 3, 0));
    }
}

static bool read_memory_of_another(struct sim_agent *a, const struct rw *w, struct rw_private *p)
{
    mem_read(&a->mem, p->result, w->buffer[1], 8);
    return true;
}

static bool load_x(struct sim_agent *a, const struct rw *w, struct rw_private *p)
{
    p->result[0] = mem_load64(&a->mem, w->x);
    return true;
}

static bool read_beyond_buffer(struct sim_agent *a, const struct rw *w, struct rw_private *p)
{
    mem_read(&a->mem, p->result, w->buffer[0] + RW_BUFFER - 8, 16);
    return true;
}

static void granted_memory(void)
{
    expect_violation((struct rw_test){.code = {read_memory_of_another}}, "granted-memory");
    expect_violation((struct rw_test){.code = {read_beyond_buffer}}, "granted-memory");
    expect_violation((struct rw_test){.code = {load_x}, .isolated = true}, "granted-memory");
}

/* ---- an isolated CPU --------------------------------------------------------------------- */

static bool ask(struct sim_agent *a, const struct rw *w, struct rw_private *p)
{
    if (p->stage == 0) {
        p->stage = 1;
        rw_send(a, w, 20, 0);
        return false;
    }
    if (!completed(a, w, RDMA_RECV))
        return false;
    p->result[0] = rw_word(a, w, RW_RECEIVE);
    return true;
}

/* Counts in shared memory, which others use too, and answers. */
static bool answer(struct sim_agent *a, const struct rw *w, struct rw_private *p)
{
    if (!completed(a, w, RDMA_RECV))
        return false;
    p->result[0] = rw_word(a, w, RW_RECEIVE);
    p->result[1] = mem_fetch_add64(&a->mem, w->x, p->result[0]);
    rw_send(a, w, p->result[0] + p->result[1], 0);
    return true;
}

static bool add_one(struct sim_agent *a, const struct rw *w, struct rw_private *p)
{
    p->result[0] = mem_fetch_add64(&a->mem, w->x, 1);
    return true;
}

/* What an isolated CPU's messages need not wait for makes no difference but in states. */
static void isolated(void)
{
    static struct rw_outcomes other;
    for (int i = 0; i < ORDERINGS; i++) {
        struct rw_test test = {.code = {ask, answer, add_one},
                               .agents = 3,
                               .memory = SIM_MEMORY_TSO,
                               .ordering = orderings[i]};
        rw_run(test, &other);
        test.isolated = true;
        rw_run(test, &o);
        CU_ASSERT(rw_same(&o, &other));
        CU_ASSERT(o.report.states < other.report.states);
        CU_ASSERT(rw_has(&o, 0, 20, 0));
        CU_ASSERT(rw_has(&o, 0, 21, 0));
    }
}

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
    if (!completed(a, w, RDMA_RECV))
        return false;
    p->result[1] = rw_word(a, w, RW_RECEIVE);
    return true;
}

static void connections_are_made(void)
{
    for (int i = 0; i < ORDERINGS; i++) {
        struct rw_test test = {.code = {connect_with_receive, accept_and_receive},
                               .agents = 2,
                               .memory = SIM_MEMORY_TSO,
                               .ordering = orderings[i],
                               .unconnected = true};
        rw_run(test, &o);
        CU_ASSERT(rw_has(&o, 0, RDMA_EVENT_CONNECTED, 6));
        CU_ASSERT(rw_has(&o, 1, 12, 0));
        /* A message may be there before CONNECTED only on InfiniBand. On the others its CPU can
         * still look at the completion first. */
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
 * DRAINED
 * when everything was flushed. result[0]: receives that completed well; result[1]: sends.
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
        if (completed(a, w, RDMA_SEND)) {
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
    for (int i = 0; i < ORDERINGS; i++) {
        struct rw_test test = {.code = {send_then_end, until_drained},
                               .agents = 2,
                               .memory = SIM_MEMORY_TSO,
                               .ordering = orderings[i]};
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
    for (int i = 0; i < ORDERINGS; i++) {
        bool completed_but_lost = false, lost = false, arrived = false;
        rw_run((struct rw_test){.code = {send_then_drain, until_drained},
                                .agents = 2,
                                .ordering = orderings[i],
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
        CU_ASSERT_EQUAL(completed_but_lost, orderings[i] == RDMAP);
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
    for (int i = 0; i < ORDERINGS; i++) {
        struct rw_test test = {.code = {send_twice_then_drain, until_drained},
                               .agents = 2,
                               .ordering = orderings[i],
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
    for (int i = 0; i < ORDERINGS * 2; i++) {
        bool written = false, unwritten = false;
        rw_run((struct rw_test){.code = {write_x_then_drain, drain_then_look},
                                .agents = 2,
                                .ordering = orderings[i / 2],
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
    if (!completed(a, w, RDMA_FETCH_ADD))
        return false;
    p->result[0] = 1;
    return true;
}

static void host_dies(void)
{
    for (int i = 0; i < ORDERINGS; i++) {
        bool died = false;
        rw_run((struct rw_test){.code = {write_x_then_drain, idle, add_y_wait},
                                .agents = 3,
                                .third_connects = true,
                                .ordering = orderings[i],
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
    for (int i = 0; i < ORDERINGS; i++) {
        rw_run((struct rw_test){.code = {idle, take_two_events, disconnect},
                                .agents = 3,
                                .third_connects = true,
                                .ordering = orderings[i],
                                .cuts = 1},
               &o);
        CU_ASSERT(rw_has(&o, 1, 0, 1));
        CU_ASSERT(rw_has(&o, 1, 1, 2));
    }
}

/* ---- timers ------------------------------------------------------------------------------ */

static bool look_for_timer(struct sim_agent *a, const struct rw *w, struct rw_private *p)
{
    struct rdma_event event;
    (void)w;
    CU_ASSERT_EQUAL(rdma_timer(&a->rdma, 0, 1000), 0);
    p->result[0] = rw_event(a, &event);
    if (p->result[0] == 1)
        CU_ASSERT(event.kind == RDMA_EVENT_TIMER && event.conn == 0);
    return true;
}

static bool cancel_timer(struct sim_agent *a, const struct rw *w, struct rw_private *p)
{
    struct rdma_event event;
    (void)w;
    rdma_timer(&a->rdma, 0, 1000);
    CU_ASSERT_EQUAL(rdma_timer(&a->rdma, 0, 0), 0);
    p->result[0] = rw_event(a, &event);
    return true;
}

static void timers(void)
{
    struct rw_test test = {.code = {look_for_timer, idle}, .agents = 2, .timers = 1};
    rw_run(test, &o);
    CU_ASSERT(rw_has(&o, 0, 0, 0));
    CU_ASSERT(rw_has(&o, 0, 1, 0));
    test.code[0] = cancel_timer;
    rw_run(test, &o);
    CU_ASSERT_EQUAL(o.count, 1);
    CU_ASSERT(rw_has(&o, 0, 0, 0));
}

/* ---- calls within polls ------------------------------------------------------------------ */

static bool register_and_draw(struct sim_agent *a, const struct rw *w, struct rw_private *p)
{
    struct rdma_region region, again;
    uint64_t octets[2];
    CU_ASSERT_EQUAL(rdma_random(&a->rdma, octets, sizeof octets), 0);
    CU_ASSERT_EQUAL(rdma_reg(&a->rdma, w->buffer[0], 8, RDMA_LOCAL_WRITE, 3, &region), 0);
    CU_ASSERT_EQUAL(region.base_to, 3);
    CU_ASSERT_EQUAL(rdma_dereg(&a->rdma, &region), 0);
    CU_ASSERT_EQUAL(rdma_reg(&a->rdma, w->buffer[0], 8, 0, 0, &again), 0);
    p->result[0] = octets[0] != octets[1];
    p->result[1] = region.stag != again.stag;
    CU_ASSERT_EQUAL(rdma_cq_arm(&a->rdma, w->cq[0], false), 0);
    uint32_t cq;
    CU_ASSERT_EQUAL(rdma_cq_create(&a->rdma, 1, &cq), -ENOTSUP);
    CU_ASSERT_EQUAL(rdma_listen(&a->rdma, ""), -ENOTSUP);
    return true;
}

static void calls_within_polls(void)
{
    rw_run((struct rw_test){.code = {register_and_draw, add_one}, .agents = 2}, &o);
    CU_ASSERT_EQUAL(o.count, 1);
    CU_ASSERT(rw_has(&o, 0, 1, 1));
}

/* ---- what checkers are told -------------------------------------------------------------- */

static uint32_t told[2][RDMA_RECV];

static void message(struct sim_world *w, const struct sim_message *m)
{
    uint64_t value = 0;
    told[m->phase][m->op]++;
    CU_ASSERT_EQUAL(m->link, 0);
    CU_ASSERT(m->from + m->to == 1);
    CU_ASSERT_EQUAL(m->length, 8);
    CU_ASSERT_EQUAL(m->payload == NULL, m->op == RDMA_READ && !m->response);
    if (m->payload)
        memcpy(&value, m->payload, sizeof value);
    if (m->op == RDMA_SEND)
        CU_ASSERT(value == 6 && m->from == 0 && (m->phase == SIM_SENT || m->wr_id == 100));
    if (m->op == RDMA_WRITE)
        CU_ASSERT(value == 5 && m->remote_to == 0 && m->stag != 0);
    if (m->op == RDMA_READ && m->response && value != 5)
        sim_violate(w, "test", "a READ brings %u", (unsigned)value);
}

static bool write_read_send(struct sim_agent *a, const struct rw *w, struct rw_private *p)
{
    (void)p;
    rw_write(a, w, w->x, 5, 0);
    rw_read(a, w, w->x, RW_SINK, 0);
    rw_send(a, w, 6, 0);
    return true;
}

static void messages(void)
{
    static const struct sim_checker checker = {.property = "test", .message = message};
    for (int i = 0; i < ORDERINGS; i++) {
        memset(told, 0, sizeof told);
        rw_run((struct rw_test){.code = {write_read_send, idle},
                                .agents = 2,
                                .ordering = orderings[i],
                                .checker = &checker},
               &o);
        for (int phase = 0; phase < 2; phase++)
            CU_ASSERT(told[phase][RDMA_WRITE] && told[phase][RDMA_READ] && told[phase][RDMA_SEND]);
    }
}

int main(void)
{
    static const struct test tests[] = {
        {"a doorbell is a release", doorbell_is_a_release},
        {"a doorbell and later stores", doorbell_and_later_stores},
        {"doorbells fill the buffer", doorbells_fill_the_buffer},
        {"work requests are snapshotted", work_request_is_snapshotted},
        {"data is gathered later", data_is_gathered_later},
        {"buffers in flight", buffers_in_flight},
        {"granted memory", granted_memory},
        {"an isolated CPU", isolated},
        {"connections are made", connections_are_made},
        {"disconnect", disconnected},
        {"cut", cut},
        {"cut of an isolated CPU", cut_of_isolated},
        {"nothing lands after DRAINED", nothing_lands_after_drained},
        {"a host dies", host_dies},
        {"events of two connections", events_of_two_connections},
        {"timers", timers},
        {"calls within polls", calls_within_polls},
        {"messages", messages},
    };
    return run_tests("rnic_steps", tests, sizeof tests / sizeof *tests);
}
