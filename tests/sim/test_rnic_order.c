/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The order of messages: the rules of RFC 5040 section 5.5 that can be observed, and those of RFC
 * 7306 for atomics, in each of the three orderings. A test is named after the rule.
 */
#include <string.h>

#include "rnic_world.h"
#include "tests/run.h"

static const enum sim_ordering orderings[] = {SIM_ORDERING_RDMAP, SIM_ORDERING_INFINIBAND,
                                              SIM_ORDERING_STRONG};
#define ORDERINGS 3

static struct rw_outcomes o;

static void run_two(enum sim_ordering ordering, rw_code a, rw_code b)
{
    rw_run((struct rw_test){.code = {a, b}, .agents = 2, .ordering = ordering}, &o);
}

/* ---- what one CPU does ------------------------------------------------------------------- */

/* Does nothing. */
static bool idle(struct sim_agent *a, const struct rw *w, struct rw_private *p)
{
    (void)a, (void)w, (void)p;
    return true;
}

static bool load_y_x(struct sim_agent *a, const struct rw *w, struct rw_private *p)
{
    p->result[0] = mem_load64(&a->mem, w->y);
    p->result[1] = mem_load64(&a->mem, w->x);
    return true;
}

/* Waits for a completion, which must be good, then ends as `then` says. */
static bool completed(struct sim_agent *a, const struct rw *w, struct rw_private *p, uint32_t op)
{
    struct rdma_wc wc;
    (void)p;
    if (!rw_poll(a, w, &wc))
        return false;
    CU_ASSERT_EQUAL(wc.status, RDMA_OK);
    CU_ASSERT_EQUAL(wc.op, op);
    return true;
}

static bool receive_load_x(struct sim_agent *a, const struct rw *w, struct rw_private *p)
{
    if (!completed(a, w, p, RDMA_RECV))
        return false;
    p->result[0] = rw_word(a, w, RW_RECEIVE);
    p->result[1] = mem_load64(&a->mem, w->x);
    return true;
}

/* ---- rule 3: tagged and untagged messages may be placed in any order --------------------- */

static bool write_x_y(struct sim_agent *a, const struct rw *w, struct rw_private *p)
{
    (void)p;
    rw_write(a, w, w->x, 1, 0);
    rw_write(a, w, w->y, 1, 0);
    return true;
}

static void rule_3_write_then_write(void)
{
    for (int i = 0; i < ORDERINGS; i++) {
        run_two(orderings[i], write_x_y, load_y_x);
        CU_ASSERT_EQUAL(rw_has(&o, 1, 1, 0), orderings[i] == SIM_ORDERING_RDMAP);
        CU_ASSERT(rw_has(&o, 1, 0, 0));
        CU_ASSERT(rw_has(&o, 1, 0, 1));
        CU_ASSERT(rw_has(&o, 1, 1, 1));
    }
}

int main(void)
{
    static const struct test tests[] = {
        {"rule 3: WRITE then WRITE", rule_3_write_then_write},
    };
    (void)idle, (void)receive_load_x;
    return run_tests("rnic_order", tests, sizeof tests / sizeof *tests);
}
