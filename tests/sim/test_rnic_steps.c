/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Simulated RNICs and the CPUs before them: doorbells in store buffers, what is snapshotted when,
 * buffers in flight, timers. Connections that begin and end: test_rnic_lifetimes.c.
 */
#include <errno.h>
#include <string.h>

#include "rnic_world.h"
#include "tests/run.h"

static const enum sim_memory memories[] = {SIM_MEMORY_SC, SIM_MEMORY_TSO, SIM_MEMORY_RELAXED};
#define MEMORIES 3

static struct rw_outcomes o;

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
    for (int i = 0; i < MEMORIES * RW_ORDERINGS; i++) {
        rw_run((struct rw_test){.code = {store_then_ring, rw_idle},
                                .agents = 2,
                                .memory = memories[i % MEMORIES],
                                .ordering = rw_orderings[i / MEMORIES]},
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
                                .ordering = SIM_ORDERING_STRONG,
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
    for (int i = 0; i < RW_ORDERINGS; i++) {
        rw_run((struct rw_test){.code = {change_after_posting, rw_idle},
                                .agents = 2,
                                .memory = SIM_MEMORY_RELAXED,
                                .ordering = rw_orderings[i]},
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
    for (int i = 0; i < RW_ORDERINGS; i++) {
        bool changed = false, unchanged = false;
        rw_run((struct rw_test){.code = {ring_then_flag, store_x_after_flag},
                                .agents = 2,
                                .ordering = rw_orderings[i]},
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
            test.code[1] = rw_idle;
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
    if (!rw_completed(a, w, RDMA_SEND))
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
        rw_run((struct rw_test){.code = {leave_buffers_alone, rw_idle},
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
    return rw_take(a, w, RDMA_RECV, RW_RECEIVE, &p->result[0]);
}

/* Counts in shared memory, which others use too, and answers. */
static bool answer(struct sim_agent *a, const struct rw *w, struct rw_private *p)
{
    if (!rw_take(a, w, RDMA_RECV, RW_RECEIVE, &p->result[0]))
        return false;
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
    for (int i = 0; i < RW_ORDERINGS; i++) {
        struct rw_test test = {.code = {ask, answer, add_one},
                               .agents = 3,
                               .memory = SIM_MEMORY_TSO,
                               .ordering = rw_orderings[i]};
        rw_run(test, &other);
        test.isolated = true;
        rw_run(test, &o);
        CU_ASSERT(rw_same(&o, &other));
        CU_ASSERT(o.report.states < other.report.states);
        CU_ASSERT(rw_has(&o, 0, 20, 0));
        CU_ASSERT(rw_has(&o, 0, 21, 0));
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
    struct rw_test test = {.code = {look_for_timer, rw_idle}, .agents = 2, .timers = 1};
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
    for (int i = 0; i < RW_ORDERINGS; i++) {
        memset(told, 0, sizeof told);
        rw_run((struct rw_test){.code = {write_read_send, rw_idle},
                                .agents = 2,
                                .ordering = rw_orderings[i],
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
        {"timers", timers},
        {"calls within polls", calls_within_polls},
        {"messages", messages},
    };
    return run_tests("rnic_steps", tests, sizeof tests / sizeof *tests);
}
