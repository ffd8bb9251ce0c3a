/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What chains of work requests cost in simulated time: work requests of a queue in its order, one
 * after the completion of the other (WAIT), and each fetched after that (WAIT and ENABLE).
 */
#include <stdio.h>
#include <stdlib.h>

#include "chain_world.h"
#include "round_costs.h"
#include "sim/read_file.h"
#include "tests/run.h"

/* A WRITE of 8 octets within the RNIC, to its completion: both sides, and what PCIe takes. */
#define WRITE_NS (40 + 300.4 + 60 + 200.4)

static uint32_t length; /* of the chain */

/* All are enabled, and fetched, together. */
static void in_order(const struct cw *w)
{
    for (uint32_t i = 0; i < length; i++)
        cw_put_write(w, i, 0, 1, RDMA_SIGNALED);
    cw_enable(w, &w->loop, length);
}

static void by_completion(const struct cw *w)
{
    struct rdma_wr wait = {.op = RDMA_WAIT};
    wait.wait.queue = w->loop.id;
    for (uint32_t i = 0; i < length; i++) {
        if (i != 0) {
            wait.wait.count = w->first + i;
            cw_put(w, &w->loop, 2 * i - 1, &wait);
        }
        cw_put_write(w, 2 * i, 0, 1, RDMA_SIGNALED);
    }
    cw_enable(w, &w->loop, 2 * length - 1);
}

static void by_doorbell(const struct cw *w)
{
    for (uint32_t i = 0; i < length; i++) {
        if (i != 0)
            cw_put_stage(w, i - 1, &w->loop, i, &w->loop, i + 1);
        cw_put_write(w, i, 0, 1, RDMA_SIGNALED);
    }
    cw_enable(w, &w->loop, 1);
    cw_enable(w, &w->ctrl, 2 * (length - 1));
}

static double run_ns(void (*set_up)(const struct cw *w), const struct sim_costs *costs,
                     uint32_t of_length)
{
    static struct cw_outcomes outcomes;
    const struct cw_test test = {
        .set_up = set_up, .ordering = SIM_ORDERING_INFINIBAND, .send_depth = 8, .costs = costs};
    length = of_length;
    return cw_run_ns(&test, &outcomes);
}

/* What one more work request takes. */
static double more_ns(void (*set_up)(const struct cw *w), const struct sim_costs *costs)
{
    return (run_ns(set_up, costs, 4) - run_ns(set_up, costs, 2)) / 2;
}

static void each_has_its_time(void)
{
    const struct sim_costs *c = &round_costs;
    CU_ASSERT_DOUBLE_EQUAL(more_ns(in_order, c), c->send_message_ns, 0.5);
    CU_ASSERT_DOUBLE_EQUAL(more_ns(by_completion, c), WRITE_NS + c->wait_ns, 1.5);
    CU_ASSERT_DOUBLE_EQUAL(more_ns(by_doorbell, c),
                           WRITE_NS + c->wait_ns + c->enable_ns + c->chain_fetch_ns, 1.5);
}

/* docs/validation.md has these figures. */
static void of_a_model(void)
{
    char error[900], *text;
    size_t octets;
    CU_ASSERT_FATAL(sim_read_file(NIC, 1u << 20, &text, &octets, error, sizeof error) == 0);
    struct sim_cost_model *model = sim_cost_model_parse(NIC, text, octets, error, sizeof error);
    CU_ASSERT_PTR_NOT_NULL_FATAL(model);
    printf("| one more WRITE, in order | %.0f |\n", more_ns(in_order, &model->costs));
    printf("| one more WRITE behind a WAIT | %.0f |\n", more_ns(by_completion, &model->costs));
    printf("| one more WRITE behind WAIT and ENABLE | %.0f |\n",
           more_ns(by_doorbell, &model->costs));
    sim_cost_model_free(model);
    free(text);
}

int main(void)
{
    const struct test tests[] = {{"each has its time", each_has_its_time},
                                 {"of a model", of_a_model}};
    return run_tests("sim/timed chains", tests, sizeof tests / sizeof *tests);
}
