/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Windows of simulated RNICs in every order of steps: what is on its way when they are bound,
 * invalidated, or end. The rules themselves: test_rnic_windows.c.
 */
#include <errno.h>

#include "rnic_world.h"
#include "tests/run.h"

static struct rw_outcomes o;

/* What B has bound before the search begins: constant. */
static struct rdma_window window;
static struct rdma_region *shown; /* the region that it shows all of */

static int bind(struct rdma *r, uint32_t conn, struct rdma_window *it,
                const struct rdma_region *region, uint64_t offset, uint64_t length)
{
    struct rdma_wr wr = {.op = RDMA_BIND,
                         .flags = RDMA_SIGNALED,
                         .bind = {.window = it,
                                  .region = region,
                                  .offset = offset,
                                  .length = length,
                                  .access = region->access & (RDMA_REMOTE_READ | RDMA_REMOTE_WRITE |
                                                              RDMA_REMOTE_ATOMIC)}};
    return rdma_post_send(r, conn, &wr, 1);
}

static void bind_all(struct sim_world *w, struct rw *rw, struct rdma_region *region)
{
    struct rdma *r = &w->agents[1].rdma;
    struct rdma_wc wc;
    shown = region;
    w->direct = true;
    CU_ASSERT_EQUAL_FATAL(rdma_window_alloc(r, &window), 0);
    CU_ASSERT_EQUAL_FATAL(bind(r, rw->conn[1], &window, region, 0, region->length), 0);
    CU_ASSERT_EQUAL_FATAL(rdma_cq_poll(r, rw->cq[1], &wc, 1), 1);
    CU_ASSERT_EQUAL(wc.status, RDMA_OK);
    w->direct = false;
}

static void bind_shared(struct sim_world *w, struct rw *rw)
{
    bind_all(w, rw, &rw->shared[1]);
}

static void bind_private(struct sim_world *w, struct rw *rw)
{
    bind_all(w, rw, &rw->own[1]);
}

static struct rdma_wr through_window(uint16_t op, const struct rw *w, const mem64 *at)
{
    return (struct rdma_wr){.op = op,
                            .flags = RDMA_SIGNALED,
                            .remote_to = (uint64_t)((const char *)at - (const char *)w->x),
                            .remote_stag = window.stag};
}

/* Posts one work request with its data, and then waits for its status: true when that is there. */
static bool post_once(struct sim_agent *a, const struct rw *w, struct rw_private *p,
                      struct rdma_wr wr, const void *at, uint32_t octets)
{
    if (p->stage != 0)
        return rw_take_status(a, w, p);
    CU_ASSERT_EQUAL(rw_post(a, w, &wr, at, octets), 0);
    p->stage = 1;
    return false;
}

static void post_invalidation(struct sim_agent *a, const struct rw *w, uint32_t stag)
{
    struct rdma_wr wr = {.op = RDMA_LOCAL_INV, .flags = RDMA_SIGNALED, .imm_stag = stag};
    CU_ASSERT_EQUAL(rdma_post_send(&a->rdma, w->conn[a->index], &wr, 1), 0);
}

/* The same with LOCAL_INV of the window. */
static bool invalidate_once(struct sim_agent *a, const struct rw *w, struct rw_private *p)
{
    if (p->stage != 0)
        return rw_take_status(a, w, p);
    post_invalidation(a, w, window.stag);
    p->stage = 1;
    return false;
}

/* What A and B do with a window of B's that shows all of its shared memory. */
static struct rw_test over_shared(rw_code of_a, rw_code of_b, enum sim_ordering ordering)
{
    return (struct rw_test){.code = {of_a, of_b},
                            .agents = 2,
                            .ordering = ordering,
                            .no_receives = true,
                            .set_up = bind_shared};
}

/* Looks at pair as soon as nothing may reach it any more. */
static bool invalidate_then_look(struct sim_agent *a, const struct rw *w, struct rw_private *p)
{
    if (!invalidate_once(a, w, p))
        return false;
    p->result[1] = mem_load64(&a->mem, w->pair);
    p->result[2] = mem_load64(&a->mem, w->pair + 1);
    return true;
}

/* ---- against what is being placed -------------------------------------------------------- */

static bool write_pair(struct sim_agent *a, const struct rw *w, struct rw_private *p)
{
    const uint64_t values[2] = {1, 2};
    struct rdma_wr wr = through_window(RDMA_WRITE, w, w->pair);
    wr.flags |= RDMA_INLINE;
    return post_once(a, w, p, wr, values, sizeof values);
}

/* In all outcomes memory is what B found; which of them there are. */
static uint32_t kinds_of_pair(void)
{
    uint32_t kinds = 0;
    for (uint32_t i = 0; i < o.count; i++) {
        const struct rw_outcome *it = &o.all[i];
        CU_ASSERT_EQUAL(it->result[1][1], it->pair[0]);
        CU_ASSERT_EQUAL(it->result[1][2], it->pair[1]);
        kinds |= 1u << ((it->pair[0] != 0) | (it->pair[1] != 0) << 1);
        /* What was placed whole was not refused, and what was not placed was. */
        bool whole = it->pair[0] && it->pair[1], told = it->result[0][0] == 1 + RDMA_REMOTE_ACCESS;
        CU_ASSERT_FALSE(told && whole);
    }
    return kinds;
}

static void write_is_cut_short(void)
{
    for (int i = 0; i < RW_ORDERINGS; i++) {
        struct rw_test test = over_shared(write_pair, invalidate_then_look, rw_orderings[i]);
        test.memory = SIM_MEMORY_TSO;
        rw_run(test, &o);
        CU_ASSERT_EQUAL(kinds_of_pair(), 0xf); /* nothing, either half, all */
    }
}

/* Also when messages of A arrive at once where nobody can tell. */
static void write_of_isolated(void)
{
    for (int i = 0; i < RW_ORDERINGS; i++) {
        struct rw_test test = over_shared(write_pair, invalidate_then_look, rw_orderings[i]);
        test.isolated = true;
        rw_run(test, &o);
        CU_ASSERT_EQUAL(kinds_of_pair(), 0xf);
    }
}

/* ---- memory that only B looks at --------------------------------------------------------- */

#define FOUND 7u /* in the buffer, when a WRITE came through */

static struct rdma_wr to_buffer(void)
{
    return (struct rdma_wr){.op = RDMA_WRITE,
                            .flags = RDMA_SIGNALED | RDMA_INLINE,
                            .remote_to = RW_SINK,
                            .remote_stag = window.stag};
}

static bool write_buffer(struct sim_agent *a, const struct rw *w, struct rw_private *p)
{
    const uint64_t value = FOUND;
    return post_once(a, w, p, to_buffer(), &value, sizeof value);
}

/* Looks twice at the buffer, and then for long enough that a late WRITE would be seen. */
static bool invalidate_then_read(struct sim_agent *a, const struct rw *w, struct rw_private *p)
{
    if (p->stage < 2) {
        if (invalidate_once(a, w, p)) {
            p->result[1] = rw_word(a, w, RW_SINK);
            p->stage = 2;
        }
        return false;
    }
    struct rdma_event event;
    if (p->result[1] == 0 && !rw_event(a, &event))
        return false; /* the WRITE, which comes too late, ends the connection */
    p->result[2] = rw_word(a, w, RW_SINK);
    return true;
}

/* The WRITE comes through or not, and what B finds after its LOCAL_INV does not change any more. */
static void expect_before_or_never(rw_code of_a, rw_code of_b)
{
    for (int i = 0; i < RW_ORDERINGS * 2; i++) {
        bool before = false, refused = false;
        struct rw_test test = over_shared(of_a, of_b, rw_orderings[i / 2]);
        test.isolated = i % 2;
        test.set_up = bind_private;
        rw_run(test, &o);
        for (uint32_t j = 0; j < o.count; j++) {
            const uint64_t *found = o.all[j].result[1];
            CU_ASSERT_EQUAL(found[1], found[2]);
            CU_ASSERT(found[1] == FOUND || found[1] == 0);
            before |= found[1] == FOUND;
            refused |= found[1] == 0;
        }
        CU_ASSERT(before && refused);
    }
}

static void private_memory(void)
{
    expect_before_or_never(write_buffer, invalidate_then_read);
}

/* ---- when it is executed ----------------------------------------------------------------- */

static bool invalidate_then_tell(struct sim_agent *a, const struct rw *w, struct rw_private *p)
{
    if (p->stage == 0) {
        post_invalidation(a, w, window.stag);
        mem_store64(&a->mem, w->x, 1);
        p->stage = 1;
        return false;
    }
    return rw_take_status(a, w, p);
}

static bool write_when_told(struct sim_agent *a, const struct rw *w, struct rw_private *p)
{
    return p->stage == 0 && mem_load64(&a->mem, w->x) == 0 ? false : write_pair(a, w, p);
}

/* It is posted, and everybody knows; but until it completes a WRITE may still come through. */
static void later_than_posted(void)
{
    for (int i = 0; i < RW_ORDERINGS; i++) {
        bool written = false, refused = false;
        rw_run(over_shared(write_when_told, invalidate_then_tell, rw_orderings[i]), &o);
        for (uint32_t j = 0; j < o.count; j++) {
            written |= o.all[j].pair[0] && o.all[j].pair[1];
            refused |= !o.all[j].pair[0] && !o.all[j].pair[1];
        }
        CU_ASSERT(written && refused);
    }
}

/* Both behind one doorbell. */
static bool tell_then_write_buffer(struct sim_agent *a, const struct rw *w, struct rw_private *p)
{
    uint64_t values[2] = {1, FOUND};
    struct rdma_sge sges[2] = {{&values[0], 8, 0}, {&values[1], 8, 0}};
    struct rdma_wr wrs[2] = {rw_remote(a, w, RDMA_WRITE, w->x, RDMA_INLINE), to_buffer()};
    if (p->stage != 0)
        return rw_take_status(a, w, p);
    for (int i = 0; i < 2; i++) {
        wrs[i].sges = &sges[i];
        wrs[i].sge_count = 1;
    }
    CU_ASSERT_EQUAL(rdma_post_send(&a->rdma, w->conn[0], wrs, 2), 0);
    p->stage = 1;
    return false;
}

static bool invalidate_when_told(struct sim_agent *a, const struct rw *w, struct rw_private *p)
{
    return p->stage == 0 && mem_load64(&a->mem, w->x) == 0 ? false : invalidate_then_read(a, w, p);
}

/* A's earlier WRITE is all that B waits for: the other may be on its way yet. */
static void earlier_than_arrived(void)
{
    expect_before_or_never(tell_then_write_buffer, invalidate_when_told);
}

/* ---- against READs and atomics ----------------------------------------------------------- */

static bool add_pair(struct sim_agent *a, const struct rw *w, struct rw_private *p)
{
    struct rdma_wr wr = through_window(RDMA_FETCH_ADD, w, w->pair);
    wr.fetch_add.add = 5;
    return post_once(a, w, p, wr, w->buffer[0] + RW_SINK, 8);
}

/* Not even the second half of an atomic whose first was executed. */
static void atomic_is_cut_short(void)
{
    for (int i = 0; i < RW_ORDERINGS; i++) {
        bool added = false, refused = false;
        struct rw_test test = over_shared(add_pair, invalidate_then_look, rw_orderings[i]);
        test.bits = SIM_RNIC_BITS & ~(uint32_t)RDMA_CAP_ATOMIC_CPU;
        rw_run(test, &o);
        for (uint32_t j = 0; j < o.count; j++) {
            CU_ASSERT_EQUAL(o.all[j].result[1][1], o.all[j].pair[0]);
            added |= o.all[j].pair[0] == 5 && o.all[j].result[0][0] == 1 + RDMA_OK;
            refused |= o.all[j].pair[0] == 0 && o.all[j].result[0][0] == 1 + RDMA_REMOTE_ACCESS;
        }
        CU_ASSERT(added && refused);
    }
}

static bool read_pair(struct sim_agent *a, const struct rw *w, struct rw_private *p)
{
    struct rdma_wr wr = through_window(RDMA_READ, w, w->pair);
    if (!post_once(a, w, p, wr, w->buffer[0] + RW_SINK, 8))
        return false;
    p->result[1] = rw_word(a, w, RW_SINK);
    return true;
}

/* After the completion the memory is B's own: what it writes then is read by nobody. */
static bool invalidate_then_store(struct sim_agent *a, const struct rw *w, struct rw_private *p)
{
    if (!invalidate_then_look(a, w, p))
        return false;
    mem_store64(&a->mem, w->pair, 9);
    return true;
}

static void read_finds_nothing_later(void)
{
    for (int i = 0; i < RW_ORDERINGS; i++) {
        bool read = false, refused = false;
        struct rw_test test = over_shared(read_pair, invalidate_then_store, rw_orderings[i]);
        test.memory = SIM_MEMORY_TSO;
        rw_run(test, &o);
        for (uint32_t j = 0; j < o.count; j++) {
            CU_ASSERT_EQUAL(o.all[j].result[0][1], 0);
            read |= o.all[j].result[0][0] == 1 + RDMA_OK;
            refused |= o.all[j].result[0][0] == 1 + RDMA_REMOTE_ACCESS;
        }
        CU_ASSERT(read && refused);
    }
}

/* ---- SEND_INV ---------------------------------------------------------------------------- */

static bool write_then_send_inv(struct sim_agent *a, const struct rw *w, struct rw_private *p)
{
    const uint64_t values[2] = {1, 2};
    struct rdma_wr write = through_window(RDMA_WRITE, w, w->pair), late = write;
    struct rdma_wr send = {.op = RDMA_SEND_INV, .flags = RDMA_INLINE, .imm_stag = window.stag};
    (void)p;
    write.flags = RDMA_INLINE;
    CU_ASSERT_EQUAL(rw_post(a, w, &write, values, sizeof values), 0);
    CU_ASSERT_EQUAL(rw_post(a, w, &send, values, 8), 0);
    late.flags = RDMA_INLINE;
    CU_ASSERT_EQUAL(rw_post(a, w, &late, values + 1, 8), 0); /* not any more */
    return true;
}

static bool receive_then_look(struct sim_agent *a, const struct rw *w, struct rw_private *p)
{
    struct rdma_wc wc;
    if (!rw_poll(a, w, &wc))
        return false;
    CU_ASSERT_EQUAL(wc.status, RDMA_OK);
    CU_ASSERT(wc.flags == RDMA_WC_INVALIDATED && wc.imm == window.stag);
    p->result[0] = 1;
    p->result[1] = mem_load64(&a->mem, w->pair);
    p->result[2] = mem_load64(&a->mem, w->pair + 1);
    return true;
}

/*
 * On InfiniBand and with strong ordering nothing of the later WRITE is placed before; RDMAP places
 * in any order, so it may be, and then it is the sender's fault.
 */
static void send_inv_is_the_end(void)
{
    for (int i = 0; i < RW_ORDERINGS; i++) {
        struct rw_test test = over_shared(write_then_send_inv, receive_then_look, rw_orderings[i]);
        test.no_receives = false;
        rw_run(test, &o);
        CU_ASSERT(o.count > 0);
        for (uint32_t j = 0; j < o.count; j++) {
            const uint64_t *found = o.all[j].result[1];
            CU_ASSERT_EQUAL(found[0], 1);
            CU_ASSERT(found[1] == o.all[j].pair[0] && found[2] == o.all[j].pair[1]);
            CU_ASSERT(found[2] == 2 &&
                      (found[1] == 1 || (found[1] == 2 && rw_orderings[i] == SIM_ORDERING_RDMAP)));
        }
    }
}

/* Either of them is too late. */
static bool send_inv(struct sim_agent *a, const struct rw *w, struct rw_private *p)
{
    struct rdma_wr send = {
        .op = RDMA_SEND_INV, .flags = RDMA_INLINE | RDMA_SIGNALED, .imm_stag = window.stag};
    const uint64_t value = 1;
    return post_once(a, w, p, send, &value, sizeof value);
}

static bool invalidate(struct sim_agent *a, const struct rw *w, struct rw_private *p)
{
    struct rdma_wc wc;
    if (p->stage == 0) {
        post_invalidation(a, w, window.stag);
        p->stage = 1;
        return false;
    }
    if (!rw_poll(a, w, &wc))
        return false;
    if (wc.op == RDMA_LOCAL_INV || (wc.status != RDMA_OK && wc.wr_id == 0))
        p->result[0] = 1u + wc.status;
    return p->result[0] != 0;
}

static void both_invalidate(void)
{
    for (int i = 0; i < RW_ORDERINGS * 2; i++) {
        bool mine = false, theirs = false;
        struct rw_test test = over_shared(send_inv, invalidate, rw_orderings[i / 2]);
        test.isolated = i % 2;
        test.no_receives = false;
        rw_run(test, &o);
        for (uint32_t j = 0; j < o.count; j++) {
            uint64_t a = o.all[j].result[0][0] - 1, b = o.all[j].result[1][0] - 1;
            CU_ASSERT(b == RDMA_OK || b == RDMA_LOCAL_ERROR || b == RDMA_FLUSHED);
            CU_ASSERT_FALSE(a == RDMA_REMOTE_ACCESS && b == RDMA_LOCAL_ERROR);
            if (rw_orderings[i / 2] != SIM_ORDERING_RDMAP) /* there it says no more than: sent */
                CU_ASSERT_FALSE(a == RDMA_OK && b == RDMA_OK);
            mine |= b == RDMA_OK;
            theirs |= b == RDMA_LOCAL_ERROR;
        }
        CU_ASSERT(mine && theirs);
    }
}

/* ---- in polls ---------------------------------------------------------------------------- */

/* B: allocates, binds x, tells A the STag, and takes all back when A says that it has written. */
static bool lend(struct sim_agent *a, const struct rw *w, struct rw_private *p)
{
    struct rdma_wc wc;
    if (p->stage == 0) {
        CU_ASSERT_EQUAL(rdma_window_alloc(&a->rdma, &p->window), 0);
        uint32_t before = p->window.stag;
        CU_ASSERT_EQUAL(bind(&a->rdma, w->conn[1], &p->window, &w->shared[1], 0, 8), 0);
        CU_ASSERT(p->window.stag != before && p->window.length == 8);
        rw_send(a, w, p->window.stag, 0);
        p->stage = 1;
        return false;
    }
    if (!rw_poll(a, w, &wc))
        return false;
    CU_ASSERT_EQUAL(wc.status, RDMA_OK);
    if (wc.op == RDMA_RECV) {
        p->result[0] = mem_load64(&a->mem, w->x);
        post_invalidation(a, w, p->window.stag);
    } else if (wc.op == RDMA_LOCAL_INV) {
        CU_ASSERT_EQUAL(rdma_window_free(&a->rdma, &p->window), 0);
        p->result[1] = 1;
    }
    return p->result[1] != 0;
}

static bool borrow(struct sim_agent *a, const struct rw *w, struct rw_private *p)
{
    uint64_t stag;
    (void)p;
    if (!rw_take(a, w, RDMA_RECV, RW_RECEIVE, &stag))
        return false;
    struct rdma_wr wr = through_window(RDMA_WRITE, w, w->x);
    const uint64_t value = 4;
    wr.flags = RDMA_INLINE;
    wr.remote_stag = (uint32_t)stag;
    CU_ASSERT_EQUAL(rw_post(a, w, &wr, &value, sizeof value), 0);
    rw_send(a, w, 0, 0);
    return true;
}

static void lent_and_taken_back(void)
{
    for (int i = 0; i < RW_ORDERINGS * 2; i++) {
        struct rw_test test = over_shared(borrow, lend, rw_orderings[i / 2]);
        test.memory = SIM_MEMORY_TSO;
        test.isolated = i % 2;
        test.no_receives = false;
        test.set_up = NULL;
        rw_run(test, &o);
        CU_ASSERT_EQUAL(o.count, 1);
        CU_ASSERT(rw_has(&o, 1, 4, 1));
    }
}

/* B shows y instead of x; A, which uses the STag from before, never changes y. */
static bool show_y_instead(struct sim_agent *a, const struct rw *w, struct rw_private *p)
{
    struct rdma_wc wc;
    if (p->stage == 0) {
        post_invalidation(a, w, window.stag);
        p->window = window;
        uint64_t y = (uint64_t)((char *)w->y - (char *)w->x);
        CU_ASSERT_EQUAL(bind(&a->rdma, w->conn[1], &p->window, &w->shared[1], y, 8), 0);
        CU_ASSERT_NOT_EQUAL(p->window.stag, window.stag);
        p->stage = 1;
        return false;
    }
    if (!rw_poll(a, w, &wc))
        return false;
    p->result[p->stage++] = 1u + wc.status;
    if (p->stage < 3)
        return false;
    p->result[0] = mem_load64(&a->mem, w->y);
    return true;
}

static bool write_y(struct sim_agent *a, const struct rw *w, struct rw_private *p)
{
    const uint64_t value = 3;
    struct rdma_wr wr = through_window(RDMA_WRITE, w, w->y);
    wr.flags |= RDMA_INLINE;
    return post_once(a, w, p, wr, &value, sizeof value);
}

static void stale_after_rebind(void)
{
    for (int i = 0; i < RW_ORDERINGS; i++) {
        bool before = false, never = false;
        rw_run(over_shared(write_y, show_y_instead, rw_orderings[i]), &o);
        for (uint32_t j = 0; j < o.count; j++) {
            CU_ASSERT_EQUAL(o.all[j].result[1][0], o.all[j].y);
            before |= o.all[j].y == 3;
            never |= o.all[j].y == 0;
        }
        CU_ASSERT(before && never);
    }
}

/* ---- one connection ---------------------------------------------------------------------- */

static void another_connection(void)
{
    for (int i = 0; i < RW_ORDERINGS; i++) {
        rw_run((struct rw_test){.code = {rw_idle, rw_idle, write_y},
                                .agents = 3,
                                .third_connects = true,
                                .ordering = rw_orderings[i],
                                .no_receives = true,
                                .set_up = bind_shared},
               &o);
        CU_ASSERT(o.count > 0);
        for (uint32_t j = 0; j < o.count; j++) {
            CU_ASSERT_EQUAL(o.all[j].y, 0);
            if (rw_orderings[i] != SIM_ORDERING_RDMAP)
                CU_ASSERT_EQUAL(o.all[j].result[2][0], 1 + RDMA_REMOTE_ACCESS);
        }
    }
}

/* Ends the connection that the window is bound to, and takes the region back. */
static bool end_then_dereg(struct sim_agent *a, const struct rw *w, struct rw_private *p)
{
    struct rdma_event event;
    struct rdma_region region = *shown;
    if (p->stage == 0) {
        CU_ASSERT_EQUAL(rdma_disconnect(&a->rdma, w->conn[1]), 0);
        p->stage = 1;
        return false;
    }
    if (!rw_event(a, &event))
        return false;
    if (event.kind == RDMA_EVENT_DISCONNECTED) {
        CU_ASSERT_EQUAL(rdma_dereg(&a->rdma, &region), -EBUSY);
        return false;
    }
    CU_ASSERT_EQUAL(event.kind, RDMA_EVENT_DRAINED);
    p->result[1] = mem_load64(&a->mem, w->pair);
    p->result[2] = mem_load64(&a->mem, w->pair + 1);
    CU_ASSERT_EQUAL(rdma_destroy(&a->rdma, w->conn[1]), 0);
    CU_ASSERT_EQUAL(rdma_dereg(&a->rdma, &region), 0);
    p->result[0] = 1;
    return true;
}

static void ends_with_its_connection(void)
{
    for (int i = 0; i < RW_ORDERINGS; i++) {
        rw_run(over_shared(write_pair, end_then_dereg, rw_orderings[i]), &o);
        uint32_t kinds = kinds_of_pair();
        CU_ASSERT((kinds & 1) && (kinds & 8));
        for (uint32_t j = 0; j < o.count; j++)
            CU_ASSERT_EQUAL(o.all[j].result[1][0], 1);
    }
}

int main(void)
{
    static const struct test tests[] = {
        {"LOCAL_INV against a WRITE", write_is_cut_short},
        {"LOCAL_INV against an isolated CPU", write_of_isolated},
        {"LOCAL_INV, private memory", private_memory},
        {"LOCAL_INV is executed later than posted", later_than_posted},
        {"LOCAL_INV before what is on its way", earlier_than_arrived},
        {"LOCAL_INV against an atomic", atomic_is_cut_short},
        {"LOCAL_INV against a READ", read_finds_nothing_later},
        {"SEND_INV", send_inv_is_the_end},
        {"SEND_INV against LOCAL_INV", both_invalidate},
        {"lent and taken back", lent_and_taken_back},
        {"stale STag after a rebind", stale_after_rebind},
        {"another connection", another_connection},
        {"ends with its connection", ends_with_its_connection},
    };
    return run_tests("rnic_window_races", tests, sizeof tests / sizeof *tests);
}
