/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An RNIC a message at a time (sim/timed/nic) against one a step at a time (sim/timed/picker), with
 * the same cost model: both say how long an operation takes.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rnic_world.h"
#include "round_costs.h"
#include "sim/read_file.h"
#include "sim/timed/verbs.h"
#include "tests/run.h"

#define OCTETS 8u

static uint32_t rounds; /* of the operation, one after the other */

/* ---- an operation again and again, each as soon as the one before has ended --------------- */

static bool reads(struct sim_agent *a, const struct rw *w, struct rw_private *p)
{
    if (p->stage && !rw_completed(a, w, RDMA_READ))
        return false;
    if (p->stage == rounds)
        return true;
    CU_ASSERT_EQUAL(rw_read(a, w, w->x, RW_SINK, RDMA_SIGNALED), 0);
    p->stage++;
    return false;
}

static bool fetch_adds(struct sim_agent *a, const struct rw *w, struct rw_private *p)
{
    if (p->stage && !rw_completed(a, w, RDMA_FETCH_ADD))
        return false;
    if (p->stage == rounds)
        return true;
    CU_ASSERT_EQUAL(rw_fetch_add(a, w, w->x, 1, 0, RW_SINK, RDMA_SIGNALED), 0);
    p->stage++;
    return false;
}

/* The receives were posted with the connection: there are two. Only the last SEND is signaled. */
static bool sends(struct sim_agent *a, const struct rw *w, struct rw_private *p)
{
    struct rdma_wc wc;
    bool first = a->index == 0, comes = !(first && p->stage == 0);
    if (comes && !rw_poll(a, w, &wc))
        return false;
    if (comes)
        CU_ASSERT(wc.op == RDMA_RECV && wc.status == RDMA_OK);
    if (first && p->stage == rounds)
        return true;
    CU_ASSERT_EQUAL(rw_send(a, w, p->stage, 0), 0);
    p->stage++;
    return !first && p->stage == rounds;
}

/* Each waits for the other's value in its own host's memory. Nobody looks at completions: the send
 * queue has room for all. */
static bool writes(struct sim_agent *a, const struct rw *w, struct rw_private *p)
{
    bool first = a->index == 0;
    const mem64 *mine = first ? w->x : w->y, *its = first ? w->y : w->x;
    uint64_t awaited = first ? p->stage : p->stage + 1;
    if (awaited && mem_load64(&a->mem, mine) != awaited)
        return false;
    if (first && p->stage == rounds)
        return true;
    CU_ASSERT_EQUAL(rw_write(a, w, its, p->stage + 1, 0), 0);
    p->stage++;
    return !first && p->stage == rounds;
}

/* ---- as many as the queue takes, always --------------------------------------------------- */

#define DEPTH 4u

static uint16_t stream_op;

static bool streams(struct sim_agent *a, const struct rw *w, struct rw_private *p)
{
    if (p->stage - p->result[0] == DEPTH || p->stage == rounds)
        p->result[0] += rw_completed(a, w, stream_op);
    if (p->result[0] == rounds)
        return true;
    if (p->stage - p->result[0] == DEPTH || p->stage == rounds)
        return false;
    CU_ASSERT_EQUAL(stream_op == RDMA_READ ? rw_read(a, w, w->x, RW_SINK, RDMA_SIGNALED)
                                           : rw_write(a, w, w->x, 1, RDMA_SIGNALED),
                    0);
    p->stage++;
    return false;
}

/* Two WRITEs behind one doorbell, again and again. */
static bool pairs(struct sim_agent *a, const struct rw *w, struct rw_private *p)
{
    if (p->stage && !rw_completed(a, w, RDMA_WRITE))
        return false;
    if (p->stage == rounds)
        return true;
    struct rdma_wr wrs[2];
    const struct rdma_sge sge = {w->buffer[a->index] + RW_SOURCE, 8, w->own[a->index].lkey};
    for (uint32_t i = 0; i < 2; i++) {
        wrs[i] = rw_remote(a, w, RDMA_WRITE, w->x, i == 0 ? 0 : RDMA_SIGNALED);
        wrs[i].sges = &sge;
        wrs[i].sge_count = 1;
    }
    CU_ASSERT_EQUAL(rdma_post_send(&a->rdma, w->conn[a->index], wrs, 2), 0);
    p->stage++;
    return false;
}

static const struct kind {
    const char *name;
    uint32_t op;
    rw_code first, second;
    uint32_t rounds; /* at most */
    bool one_way;
} kinds[] = {{"READ", RDMA_READ, reads, rw_idle, 5, false},
             {"FetchAdd", RDMA_FETCH_ADD, fetch_adds, rw_idle, 5, false},
             {"SEND", RDMA_SEND, sends, sends, 2, true},
             {"WRITE", RDMA_WRITE, writes, writes, 4, true}};

static double run_ns(const struct kind *kind, const struct sim_costs *costs, uint32_t count)
{
    static struct rw_outcomes outcomes;
    const struct rw_test test = {.code = {kind->first, kind->second},
                                 .agents = 2,
                                 .ordering = SIM_ORDERING_INFINIBAND,
                                 .costs = costs};
    rounds = count;
    rw_explore(&test, &outcomes);
    CU_ASSERT_EQUAL(outcomes.report.result, SIM_OK);
    CU_ASSERT_EQUAL(outcomes.report.quiescent, 1);
    return (double)outcomes.report.simulated_ns;
}

/* Of a table in docs/validation.md. */
static void print_row(const char *name, const char *what, double steps_ns, double messages_ns)
{
    printf("| %s | %s | %.0f | %.0f | %+.1f %% |\n", name, what, steps_ns, messages_ns,
           (steps_ns / messages_ns - 1) * 100);
}

static void compare(const char *name, const struct sim_costs *costs, const struct kind *kind)
{
    const struct sim_verbs verbs = {
        .op = kind->op, .octets = OCTETS, .max_inline = 16, .depth = 1, .reads = 1, .hops = 1};
    double steps_ns =
        (run_ns(kind, costs, kind->rounds) - run_ns(kind, costs, 1)) / (kind->rounds - 1);
    double messages_ns = sim_verbs_latency_ns(costs, &verbs);
    if (kind->one_way)
        steps_ns /= 2;
    CU_ASSERT(fabs(steps_ns / messages_ns - 1) < 0.01);
    print_row(name, kind->name, steps_ns, messages_ns);
}

/* Of one in a stream. */
static double stream_ns(const struct sim_costs *costs, uint16_t op)
{
    const struct kind kind = {.first = streams, .second = rw_idle};
    stream_op = op;
    return (run_ns(&kind, costs, 60) - run_ns(&kind, costs, 20)) / 40;
}

static void compare_streams(const char *name, const struct sim_costs *costs, uint16_t op)
{
    const struct sim_verbs verbs = {
        .op = op, .octets = OCTETS, .max_inline = 16, .depth = DEPTH, .reads = 2, .hops = 1};
    double steps_ns = stream_ns(costs, op);
    double messages_ns = 1e9 / sim_verbs_rate(costs, &verbs);
    CU_ASSERT(fabs(steps_ns / messages_ns - 1) < 0.06);
    print_row(name, op == RDMA_READ ? "stream of READs" : "stream of WRITEs", steps_ns,
              messages_ns);
}

static void levels(void)
{
    static const char *const names[] = {"connectx3-qdr", "mlx4-qdr-pcie2", "connectx4-edr",
                                        "connectx5"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char path[1024], error[900], *text;
        size_t length;
        snprintf(path, sizeof path, NICS "/%s.yaml", names[i]);
        CU_ASSERT_FATAL(sim_read_file(path, 1u << 20, &text, &length, error, sizeof error) == 0);
        struct sim_cost_model *model =
            sim_cost_model_parse(path, text, length, error, sizeof error);
        CU_ASSERT_PTR_NOT_NULL_FATAL(model);
        for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
            compare(names[i], &model->costs, &kinds[k]);
        compare_streams(names[i], &model->costs, RDMA_WRITE);
        compare_streams(names[i], &model->costs, RDMA_READ);
        sim_cost_model_free(model);
        free(text);
    }
}

/* Nothing is sent faster than that. */
static void slow_links(void)
{
    struct sim_costs costs = round_costs;
    costs.link_gbits_s = 0.01;
    double passes_ns = sim_costs_wire_octets(&costs, OCTETS) * 8 / costs.link_gbits_s;
    CU_ASSERT_DOUBLE_EQUAL(stream_ns(&costs, RDMA_WRITE), passes_ns, 0.01 * passes_ns);
}

/* A single work request comes with its doorbell, more are fetched. */
static void fetching(void)
{
    const struct kind together = {.first = pairs, .second = rw_idle};
    struct sim_costs costs = round_costs;
    double none_ns[2], some_ns[2];
    for (uint32_t i = 0; i < 2; i++) {
        costs.wqe_fetch_ns = 0;
        none_ns[i] = run_ns(i == 0 ? &kinds[0] : &together, &costs, 5);
        costs.wqe_fetch_ns = 7000;
        some_ns[i] = run_ns(i == 0 ? &kinds[0] : &together, &costs, 5);
    }
    CU_ASSERT_DOUBLE_EQUAL(some_ns[0], none_ns[0], 0.5);
    CU_ASSERT_DOUBLE_EQUAL(some_ns[1] - none_ns[1], 5 * 7000, 5);
}

int main(void)
{
    const struct test tests[] = {{"each operation, each cost model", levels},
                                 {"slow links", slow_links},
                                 {"fetching", fetching}};
    return run_tests("sim/timed levels", tests, sizeof tests / sizeof *tests);
}
