/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The order of messages: the rules of RFC 5040 section 5.5 that can be observed, and those of RFC
 * 7306 for atomics and immediate data, in each of the three orderings. A test is named after the
 * rule. Rules 1 and 2 follow from each direction of each connection having a wire of its own; 7 and
 * 8 are the property buffer-in-flight (test_rnic_steps.c); 13, 14 and 16 are how the engine is
 * made.
 */
#include "rnic_world.h"
#include "tests/run.h"

#define RDMAP SIM_ORDERING_RDMAP
#define STRONG SIM_ORDERING_STRONG

static struct rw_outcomes o;

static void run_two(enum sim_ordering ordering, rw_code a, rw_code b)
{
    rw_run((struct rw_test){.code = {a, b}, .agents = 2, .ordering = ordering}, &o);
}

/* ---- what CPUs do ------------------------------------------------------------------------ */

static bool load_y_x(struct sim_agent *a, const struct rw *w, struct rw_private *p)
{
    p->result[0] = mem_load64(&a->mem, w->y);
    p->result[1] = mem_load64(&a->mem, w->x);
    return true;
}

static bool store_x_y(struct sim_agent *a, const struct rw *w, struct rw_private *p)
{
    (void)p;
    mem_store64(&a->mem, w->x, 1);
    mem_store64(&a->mem, w->y, 1);
    return true;
}

static bool store_x(struct sim_agent *a, const struct rw *w, struct rw_private *p)
{
    (void)p;
    mem_store64(&a->mem, w->x, 1);
    return true;
}

/* Waits for a receive; then what it brought, and x. */
static bool receive_load_x(struct sim_agent *a, const struct rw *w, struct rw_private *p)
{
    if (!rw_take(a, w, RDMA_RECV, RW_RECEIVE, &p->result[0]))
        return false;
    p->result[1] = mem_load64(&a->mem, w->x);
    return true;
}

static bool receive_store_x(struct sim_agent *a, const struct rw *w, struct rw_private *p)
{
    if (!rw_completed(a, w, RDMA_RECV))
        return false;
    return store_x(a, w, p);
}

/* ---- rule 3: tagged and untagged messages are placed in any order ------------------------ */

static bool write_x_y(struct sim_agent *a, const struct rw *w, struct rw_private *p)
{
    (void)p;
    rw_write(a, w, w->x, 1, 0);
    rw_write(a, w, w->y, 1, 0);
    return true;
}

static void rule_3_write_then_write(void)
{
    for (int i = 0; i < RW_ORDERINGS; i++) {
        run_two(rw_orderings[i], write_x_y, load_y_x);
        CU_ASSERT_EQUAL(rw_has(&o, 1, 1, 0), rw_orderings[i] == RDMAP);
        CU_ASSERT(rw_has(&o, 1, 0, 0));
        CU_ASSERT(rw_has(&o, 1, 0, 1));
        CU_ASSERT(rw_has(&o, 1, 1, 1));
    }
}

static bool write_x_twice(struct sim_agent *a, const struct rw *w, struct rw_private *p)
{
    (void)p;
    rw_write(a, w, w->x, 1, 0);
    rw_write(a, w, w->x, 2, 0);
    return true;
}

/* Not even the last of two WRITEs to one place need stay. */
static void rule_3_same_place(void)
{
    for (int i = 0; i < RW_ORDERINGS; i++) {
        bool first_stays = false;
        run_two(rw_orderings[i], write_x_twice, rw_idle);
        for (uint32_t j = 0; j < o.count; j++)
            first_stays = first_stays || o.all[j].x == 1;
        CU_ASSERT_EQUAL(first_stays, rw_orderings[i] == RDMAP);
        CU_ASSERT(o.count >= 1);
    }
}

static bool write_pair(struct sim_agent *a, const struct rw *w, struct rw_private *p)
{
    const uint64_t pair[2] = {1, 1};
    struct rdma_wr wr = rw_remote(a, w, RDMA_WRITE, w->pair, RDMA_INLINE);
    (void)p;
    rw_post(a, w, &wr, pair, sizeof pair);
    return true;
}

static bool load_pair(struct sim_agent *a, const struct rw *w, struct rw_private *p)
{
    p->result[0] = mem_load64(&a->mem, w->pair + 1);
    p->result[1] = mem_load64(&a->mem, w->pair);
    return true;
}

/* The pieces of one message have no order in any ordering, unless the machine gives them one. */
static void pieces_of_one_message(void)
{
    for (int i = 0; i < RW_ORDERINGS; i++)
        for (int order = SIM_DMA_ANY; order <= SIM_DMA_DESCENDING; order++) {
            rw_run((struct rw_test){.code = {write_pair, load_pair},
                                    .agents = 2,
                                    .ordering = rw_orderings[i],
                                    .dma_order = (enum sim_dma_order)order},
                   &o);
            CU_ASSERT_EQUAL(rw_has(&o, 1, 1, 0), order != SIM_DMA_ASCENDING);
            CU_ASSERT(rw_has(&o, 1, 0, 1));
        }
}

/* ---- rule 4: a Send's buffer is indeterminate until it is delivered ---------------------- */

/* B's receives lie in shared memory, where C can look at them before they are delivered. */
static void receive_into_pair(struct sim_world *w, struct rw *rw)
{
    struct rdma_sge sge = {rw->pair, 16, rw->shared[1].lkey};
    struct rdma_wr receive = {.wr_id = 7, .sges = &sge, .sge_count = 1};
    CU_ASSERT_EQUAL(rdma_post_recv(&w->agents[1].rdma, rw->conn[1], &receive, 1), 0);
}

static bool send_one(struct sim_agent *a, const struct rw *w, struct rw_private *p)
{
    (void)p;
    rw_send(a, w, 1, 0);
    return true;
}

static bool look_for_receive(struct sim_agent *a, const struct rw *w, struct rw_private *p)
{
    struct rdma_wc wc;
    p->result[0] = rw_poll(a, w, &wc);
    return true;
}

static bool load_pair_then_flag(struct sim_agent *a, const struct rw *w, struct rw_private *p)
{
    p->result[0] = mem_load64(&a->mem, w->pair);
    mem_store64(&a->mem, w->y, 1);
    return true;
}

static bool look_after_flag(struct sim_agent *a, const struct rw *w, struct rw_private *p)
{
    p->result[1] = mem_load64(&a->mem, w->y);
    look_for_receive(a, w, p);
    return true;
}

static void rule_4_send_before_delivery(void)
{
    for (int i = 0; i < RW_ORDERINGS; i++) {
        bool placed_but_not_delivered = false;
        rw_run((struct rw_test){.code = {send_one, look_after_flag, load_pair_then_flag},
                                .agents = 3,
                                .ordering = rw_orderings[i],
                                .no_receives = true,
                                .set_up = receive_into_pair},
               &o);
        for (uint32_t j = 0; j < o.count; j++)
            placed_but_not_delivered |= o.all[j].result[2][0] == 1 && o.all[j].result[1][1] == 1 &&
                                        o.all[j].result[1][0] == 0;
        CU_ASSERT(placed_but_not_delivered);
    }
}

/* ---- rules 5 and 10: what was written before is there when the Send is delivered --------- */

static bool write_x_send(struct sim_agent *a, const struct rw *w, struct rw_private *p)
{
    (void)p;
    rw_write(a, w, w->x, 5, 0);
    rw_send(a, w, 6, 0);
    return true;
}

static void rules_5_and_10_write_then_send(void)
{
    for (int i = 0; i < RW_ORDERINGS; i++) {
        run_two(rw_orderings[i], write_x_send, receive_load_x);
        CU_ASSERT_EQUAL(o.count, 1);
        CU_ASSERT(rw_has(&o, 1, 6, 5));
    }
}

/* RFC 7306 section 6: so it is with Immediate Data. */
static bool write_x_imm(struct sim_agent *a, const struct rw *w, struct rw_private *p)
{
    uint64_t value = 5;
    struct rdma_wr wr = rw_remote(a, w, RDMA_WRITE_IMM, w->x, RDMA_INLINE);
    (void)p;
    rw_write(a, w, w->y, 4, 0);
    wr.imm_stag = 77;
    rw_post(a, w, &wr, &value, sizeof value);
    return true;
}

static bool receive_imm(struct sim_agent *a, const struct rw *w, struct rw_private *p)
{
    struct rdma_wc wc;
    if (!rw_poll(a, w, &wc))
        return false;
    CU_ASSERT_EQUAL(wc.flags, RDMA_WC_IMM | RDMA_WC_WRITE_IMM);
    CU_ASSERT_EQUAL(wc.imm, 77);
    return load_y_x(a, w, p);
}

static void immediate_data_after_write(void)
{
    for (int i = 0; i < RW_ORDERINGS; i++) {
        run_two(rw_orderings[i], write_x_imm, receive_imm);
        CU_ASSERT_EQUAL(o.count, 1);
        CU_ASSERT(rw_has(&o, 1, 4, 5));
    }
}

/* ---- rule 6: a Read's sink is indeterminate until the response is delivered -------------- */

static bool read_into_z(struct sim_agent *a, const struct rw *w, struct rw_private *p)
{
    struct rdma_wr wr = rw_remote(a, w, RDMA_READ, w->x, RDMA_SIGNALED);
    struct rdma_wc wc;
    if (p->stage == 0) {
        p->stage = 1;
        rw_post(a, w, &wr, w->z, 8);
        return false;
    }
    p->result[1] = mem_load64(&a->mem, w->y);
    p->result[0] = rw_poll(a, w, &wc);
    return true;
}

static bool load_z_then_flag(struct sim_agent *a, const struct rw *w, struct rw_private *p)
{
    p->result[0] = mem_load64(&a->mem, w->z);
    mem_store64(&a->mem, w->y, 1);
    return true;
}

static void x_is_one(struct sim_world *w, struct rw *rw)
{
    (void)w;
    *(uint64_t *)(void *)rw->x = 1;
}

static void rule_6_read_sink(void)
{
    for (int i = 0; i < RW_ORDERINGS; i++) {
        bool placed_but_not_completed = false;
        rw_run((struct rw_test){.code = {read_into_z, load_z_then_flag},
                                .agents = 2,
                                .ordering = rw_orderings[i],
                                .set_up = x_is_one},
               &o);
        for (uint32_t j = 0; j < o.count; j++)
            placed_but_not_completed |= o.all[j].result[1][0] == 1 && o.all[j].result[0][1] == 1 &&
                                        o.all[j].result[0][0] == 0;
        CU_ASSERT(placed_but_not_completed);
    }
}

/* ---- rule 9: local completion says nothing about the peer -------------------------------- */

static bool write_x_wait_store_y(struct sim_agent *a, const struct rw *w, struct rw_private *p)
{
    if (p->stage == 0) {
        p->stage = 1;
        rw_write(a, w, w->x, 1, RDMA_SIGNALED);
        return false;
    }
    if (!rw_completed(a, w, RDMA_WRITE))
        return false;
    mem_store64(&a->mem, w->y, 1);
    return true;
}

static void rule_9_write_completion(void)
{
    for (int i = 0; i < RW_ORDERINGS; i++) {
        run_two(rw_orderings[i], write_x_wait_store_y, load_y_x);
        CU_ASSERT_EQUAL(rw_has(&o, 1, 1, 0), rw_orderings[i] == RDMAP);
        CU_ASSERT(rw_has(&o, 1, 1, 1));
    }
}

/* ---- rules 11 and 17: so it is with Read Responses --------------------------------------- */

/* B writes x of A, then flags y: if A's READ finds the flag, the WRITE went before the response. */
static bool read_y_load_x(struct sim_agent *a, const struct rw *w, struct rw_private *p)
{
    if (p->stage == 0) {
        p->stage = 1;
        rw_read(a, w, w->y, RW_SINK, RDMA_SIGNALED);
        return false;
    }
    if (!rw_take(a, w, RDMA_READ, RW_SINK, &p->result[0]))
        return false;
    p->result[1] = mem_load64(&a->mem, w->x);
    return true;
}

static void rule_11_response_after_write(void)
{
    for (int i = 0; i < RW_ORDERINGS; i++) {
        run_two(rw_orderings[i], read_y_load_x, write_x_wait_store_y);
        CU_ASSERT(rw_has(&o, 0, 1, 1));
        CU_ASSERT(rw_has(&o, 0, 0, 0));
        CU_ASSERT_FALSE(rw_has(&o, 0, 1, 0));
    }
}

/* ---- rule 12: a Read begins when it is delivered, and may be read after later Writes ----- */

static bool write_x_read_x(struct sim_agent *a, const struct rw *w, struct rw_private *p)
{
    if (p->stage == 0) {
        p->stage = 1;
        rw_write(a, w, w->x, 1, 0);
        rw_read(a, w, w->x, RW_SINK, RDMA_SIGNALED);
        return false;
    }
    return rw_take(a, w, RDMA_READ, RW_SINK, &p->result[0]);
}

static void rule_12_write_then_read(void)
{
    for (int i = 0; i < RW_ORDERINGS; i++) {
        run_two(rw_orderings[i], write_x_read_x, rw_idle);
        CU_ASSERT_EQUAL(o.count, 1);
        CU_ASSERT(rw_has(&o, 0, 1, 0));
    }
}

static bool read_x_then(struct sim_agent *a, const struct rw *w, struct rw_private *p,
                        uint16_t flags)
{
    if (p->stage == 0) {
        p->stage = 1;
        rw_read(a, w, w->x, RW_SINK, RDMA_SIGNALED);
        rw_write(a, w, w->x, 1, flags);
        return false;
    }
    return rw_take(a, w, RDMA_READ, RW_SINK, &p->result[0]);
}

static bool read_x_write_x(struct sim_agent *a, const struct rw *w, struct rw_private *p)
{
    return read_x_then(a, w, p, 0);
}

static bool read_x_fence_write_x(struct sim_agent *a, const struct rw *w, struct rw_private *p)
{
    return read_x_then(a, w, p, RDMA_FENCE);
}

static void rule_12_read_then_write(void)
{
    for (int i = 0; i < RW_ORDERINGS; i++) {
        run_two(rw_orderings[i], read_x_write_x, rw_idle);
        CU_ASSERT_EQUAL(rw_has(&o, 0, 1, 0), rw_orderings[i] != STRONG);
        CU_ASSERT(rw_has(&o, 0, 0, 0));
        run_two(rw_orderings[i], read_x_fence_write_x, rw_idle);
        CU_ASSERT_EQUAL(o.count, 1);
        CU_ASSERT(rw_has(&o, 0, 0, 0));
    }
}

/* ---- rule 15: completions come in the order of posting ----------------------------------- */

static bool read_and_send(struct sim_agent *a, const struct rw *w, struct rw_private *p)
{
    struct rdma_wc wc;
    if (p->stage == 0) {
        rw_read(a, w, w->x, RW_SINK, RDMA_SIGNALED);
        rw_send(a, w, 1, RDMA_SIGNALED);
        p->stage = 1;
        return false;
    }
    if (!rw_poll(a, w, &wc))
        return false;
    p->result[p->stage - 1] = wc.op;
    return p->stage++ == 2;
}

static void rule_15_completions_in_order(void)
{
    for (int i = 0; i < RW_ORDERINGS; i++) {
        run_two(rw_orderings[i], read_and_send, rw_idle);
        CU_ASSERT_EQUAL(o.count, 1);
        CU_ASSERT(rw_has(&o, 0, RDMA_READ, RDMA_SEND));
    }
}

/* ---- rule 18: a later Send may be delivered before a Read is answered -------------------- */

static bool read_x_send(struct sim_agent *a, const struct rw *w, struct rw_private *p)
{
    if (p->stage == 0) {
        p->stage = 1;
        rw_read(a, w, w->x, RW_SINK, RDMA_SIGNALED);
        rw_send(a, w, 1, 0);
        return false;
    }
    return rw_take(a, w, RDMA_READ, RW_SINK, &p->result[0]);
}

static void rule_18_send_overtakes_read(void)
{
    for (int i = 0; i < RW_ORDERINGS; i++) {
        run_two(rw_orderings[i], read_x_send, receive_store_x);
        CU_ASSERT_EQUAL(rw_has(&o, 0, 1, 0), rw_orderings[i] != STRONG);
        CU_ASSERT(rw_has(&o, 0, 0, 0));
    }
}

/* ---- rule 19: a Read completes with its data --------------------------------------------- */

static void rule_19_read_completes_with_data(void)
{
    for (int i = 0; i < RW_ORDERINGS; i++) {
        rw_run((struct rw_test){.code = {read_x_send, rw_idle},
                                .agents = 2,
                                .ordering = rw_orderings[i],
                                .set_up = x_is_one},
               &o);
        CU_ASSERT_EQUAL(o.count, 1);
        CU_ASSERT(rw_has(&o, 0, 1, 0));
    }
}

/* ---- rule 20: Reads are answered in order, but read in any ------------------------------- */

static bool read_y_read_x(struct sim_agent *a, const struct rw *w, struct rw_private *p)
{
    if (p->stage == 0) {
        p->stage = 1;
        rw_read(a, w, w->y, RW_SINK, 0);
        rw_read(a, w, w->x, RW_SINK + 8, RDMA_SIGNALED);
        return false;
    }
    if (!rw_take(a, w, RDMA_READ, RW_SINK, &p->result[0]))
        return false;
    p->result[1] = rw_word(a, w, RW_SINK + 8);
    return true;
}

static void rule_20_two_reads(void)
{
    for (int i = 0; i < RW_ORDERINGS; i++) {
        run_two(rw_orderings[i], read_y_read_x, store_x_y);
        CU_ASSERT_EQUAL(rw_has(&o, 0, 1, 0), rw_orderings[i] == RDMAP);
        CU_ASSERT(rw_has(&o, 0, 0, 0));
        CU_ASSERT(rw_has(&o, 0, 0, 1));
        CU_ASSERT(rw_has(&o, 0, 1, 1));
    }
}

/* ---- RFC 7306: atomics ------------------------------------------------------------------- */

static bool add_y_add_x(struct sim_agent *a, const struct rw *w, struct rw_private *p)
{
    if (p->stage == 0) {
        p->stage = 1;
        rw_fetch_add(a, w, w->y, 10, 0, RW_SINK, 0);
        rw_fetch_add(a, w, w->x, 10, 0, RW_SINK + 8, RDMA_SIGNALED);
        return false;
    }
    if (!rw_take(a, w, RDMA_FETCH_ADD, RW_SINK, &p->result[0]))
        return false;
    p->result[1] = rw_word(a, w, RW_SINK + 8);
    return true;
}

static bool add_x_cpu_add_y(struct sim_agent *a, const struct rw *w, struct rw_private *p)
{
    (void)p;
    mem_fetch_add64(&a->mem, w->x, 1);
    mem_fetch_add64(&a->mem, w->y, 1);
    return true;
}

/* Two atomics are executed in order, also where READs are not. */
static void atomics_in_order(void)
{
    for (int i = 0; i < RW_ORDERINGS; i++) {
        run_two(rw_orderings[i], add_y_add_x, add_x_cpu_add_y);
        CU_ASSERT_FALSE(rw_has(&o, 0, 1, 0));
        CU_ASSERT(rw_has(&o, 0, 0, 1));
        CU_ASSERT(rw_has(&o, 0, 1, 1));
        for (uint32_t j = 0; j < o.count; j++)
            CU_ASSERT(o.all[j].x == 11 && o.all[j].y == 11);
    }
}

static bool write_x_add_x(struct sim_agent *a, const struct rw *w, struct rw_private *p)
{
    if (p->stage == 0) {
        p->stage = 1;
        rw_write(a, w, w->x, 5, 0);
        rw_fetch_add(a, w, w->x, 1, 0, RW_SINK, RDMA_SIGNALED);
        return false;
    }
    return rw_take(a, w, RDMA_FETCH_ADD, RW_SINK, &p->result[0]);
}

static bool add_x_write_x(struct sim_agent *a, const struct rw *w, struct rw_private *p)
{
    if (p->stage == 0) {
        p->stage = 1;
        rw_fetch_add(a, w, w->x, 1, 0, RW_SINK, RDMA_SIGNALED);
        rw_write(a, w, w->x, 5, 0);
        return false;
    }
    return rw_take(a, w, RDMA_FETCH_ADD, RW_SINK, &p->result[0]);
}

static void atomics_and_writes(void)
{
    for (int i = 0; i < RW_ORDERINGS; i++) {
        run_two(rw_orderings[i], write_x_add_x, rw_idle);
        CU_ASSERT_EQUAL(o.count, 1);
        CU_ASSERT(rw_has(&o, 0, 5, 0) && o.all[0].x == 6);
        run_two(rw_orderings[i], add_x_write_x, rw_idle);
        CU_ASSERT_EQUAL(rw_has(&o, 0, 5, 0), rw_orderings[i] != STRONG);
        CU_ASSERT(rw_has(&o, 0, 0, 0));
    }
}

static bool add_x_from_afar(struct sim_agent *a, const struct rw *w, struct rw_private *p)
{
    if (p->stage == 0) {
        p->stage = 1;
        rw_fetch_add(a, w, w->x, 1, 0, RW_SINK, RDMA_SIGNALED);
        return false;
    }
    return rw_take(a, w, RDMA_FETCH_ADD, RW_SINK, &p->result[0]);
}

static bool add_x_here(struct sim_agent *a, const struct rw *w, struct rw_private *p)
{
    p->result[0] = mem_fetch_add64(&a->mem, w->x, 1);
    return true;
}

static bool both_added(void)
{
    for (uint32_t j = 0; j < o.count; j++)
        if (o.all[j].x != 2)
            return false;
    return true;
}

/* I-37: an RNIC's atomics are atomic among themselves, against CPUs only if it says so. */
static void atomics_against_cpus(void)
{
    for (int i = 0; i < RW_ORDERINGS; i++) {
        struct rw_test test = {
            .code = {add_x_from_afar, add_x_here}, .agents = 2, .ordering = rw_orderings[i]};
        rw_run(test, &o);
        CU_ASSERT(both_added());
        CU_ASSERT_EQUAL(o.count, 2);
        test.bits = SIM_RNIC_BITS & ~(uint32_t)RDMA_CAP_ATOMIC_CPU;
        rw_run(test, &o);
        CU_ASSERT_FALSE(both_added()); /* one is lost */
    }
}

/* C sits on host 1, too; its requests come back to the RNIC they left from. */
static void atomics_among_themselves(void)
{
    for (int i = 0; i < RW_ORDERINGS; i++) {
        rw_run((struct rw_test){.code = {add_x_from_afar, rw_idle, add_x_from_afar},
                                .agents = 3,
                                .third_connects = true,
                                .ordering = rw_orderings[i],
                                .bits = SIM_RNIC_BITS & ~(uint32_t)RDMA_CAP_ATOMIC_CPU},
               &o);
        CU_ASSERT(both_added());
        CU_ASSERT_EQUAL(o.count, 2);
    }
}

/* ---- FENCE: what is gathered after a READ has landed ------------------------------------- */

static bool read_then_send_sink(struct sim_agent *a, const struct rw *w, struct rw_private *p,
                                uint16_t flags)
{
    struct rdma_wr wr = {.op = RDMA_SEND, .flags = flags};
    (void)p;
    rw_read(a, w, w->x, RW_SINK, 0);
    rw_post(a, w, &wr, w->buffer[a->index] + RW_SINK, 8);
    return true;
}

static bool read_send_sink(struct sim_agent *a, const struct rw *w, struct rw_private *p)
{
    return read_then_send_sink(a, w, p, 0);
}

static bool read_fence_send_sink(struct sim_agent *a, const struct rw *w, struct rw_private *p)
{
    return read_then_send_sink(a, w, p, RDMA_FENCE);
}

static bool receive_only(struct sim_agent *a, const struct rw *w, struct rw_private *p)
{
    return rw_take(a, w, RDMA_RECV, RW_RECEIVE, &p->result[0]);
}

static void fence_before_gathering(void)
{
    for (int i = 0; i < RW_ORDERINGS; i++) {
        struct rw_test test = {.code = {read_send_sink, receive_only},
                               .agents = 2,
                               .ordering = rw_orderings[i],
                               .set_up = x_is_one};
        rw_run(test, &o);
        CU_ASSERT_EQUAL(rw_has(&o, 1, 0, 0), rw_orderings[i] != STRONG);
        CU_ASSERT(rw_has(&o, 1, 1, 0));
        test.code[0] = read_fence_send_sink;
        rw_run(test, &o);
        CU_ASSERT_EQUAL(o.count, 1);
        CU_ASSERT(rw_has(&o, 1, 1, 0));
    }
}

int main(void)
{
    static const struct test tests[] = {
        {"rule 3: WRITE then WRITE", rule_3_write_then_write},
        {"rule 3: WRITE then WRITE of the same place", rule_3_same_place},
        {"pieces of one message", pieces_of_one_message},
        {"rule 4: a Send's buffer before delivery", rule_4_send_before_delivery},
        {"rules 5 and 10: WRITE then SEND", rules_5_and_10_write_then_send},
        {"RFC 7306 6: WRITE then WRITE_IMM", immediate_data_after_write},
        {"rule 6: a READ's sink before completion", rule_6_read_sink},
        {"rule 9: completion of a WRITE", rule_9_write_completion},
        {"rules 11 and 17: response after WRITE", rule_11_response_after_write},
        {"rule 12: WRITE then READ", rule_12_write_then_read},
        {"rule 12: READ then WRITE, FENCE", rule_12_read_then_write},
        {"rule 15: completions in order", rule_15_completions_in_order},
        {"rule 18: SEND overtakes READ", rule_18_send_overtakes_read},
        {"rule 19: READ completes with its data", rule_19_read_completes_with_data},
        {"rule 20: two READs", rule_20_two_reads},
        {"RFC 7306: atomics in order", atomics_in_order},
        {"RFC 7306: atomics and WRITEs", atomics_and_writes},
        {"I-37: atomics and CPUs", atomics_against_cpus},
        {"atomics of one RNIC", atomics_among_themselves},
        {"FENCE", fence_before_gathering},
    };
    return run_tests("rnic_order", tests, sizeof tests / sizeof *tests);
}
