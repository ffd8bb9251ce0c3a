/* SPDX-License-Identifier: BSD-3-Clause */
#include "rnic_pair.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bare_world.h"
#include "sim/rnic.h"
#include "tests/run.h"

static const struct sim_rnic_limits limits = {.connections = 2,
                                              .send_depth = 4,
                                              .recv_depth = 4,
                                              .max_sge = 3,
                                              .reads = 2,
                                              .timers = 2,
                                              .cqs = 2};

static int no_poll(struct sim_agent *agent, void *private, uint32_t argument)
{
    (void)agent, (void)private, (void)argument;
    return 0;
}

static bool never(const void *private)
{
    (void)private;
    return false;
}

static const struct sim_program program = {
    .private_size = 8, .max_accesses = 1, .poll = no_poll, .choices = bare_choices, .due = never};

static const struct sim_world_ops ops = {.wrote = bare_wrote};

static void open_world(struct pair *pair, const struct sim_rnic_config *config)
{
    struct sim_world *w = calloc(1, sizeof *w);
    CU_ASSERT_PTR_NOT_NULL_FATAL(w);
    pair->world = w;
    pair->scenario.machine.tear = 8;
    w->scenario = &pair->scenario;
    w->ops = &ops;
    w->direct = true;
    w->stepping.private_steps = pair->mode == PAIR_INFINIBAND; /* must make no difference */
    CU_ASSERT_EQUAL_FATAL(sim_arena_open(&w->arena, 1 << 22), 0);
    struct pair_side *sides[] = {&pair->a, &pair->b};
    for (int i = 0; i < 2; i++) {
        int cpu = sim_cpu_add(w, i ? "B" : "A", SIM_AGENT_CPU, &program);
        int rnic = sim_rnic_add(w, i ? "B-rnic" : "A-rnic", config);
        CU_ASSERT_FATAL(cpu >= 0 && rnic >= 0);
        CU_ASSERT_EQUAL_FATAL(sim_rnic_attach(w, (uint32_t)cpu, (uint32_t)rnic, &limits), 0);
        sides[i]->rdma = &w->agents[cpu].rdma;
        sides[i]->memory = sim_segment_new(&w->arena, "memory", PAIR_OCTETS, SIM_STATE);
        CU_ASSERT_PTR_NOT_NULL_FATAL(sides[i]->memory);
    }
    const uint32_t to = 2;
    CU_ASSERT_EQUAL_FATAL(sim_rnic_route(w, 0, &to, 1), 0);
    sim_cpu_start(w);
}

static void open_device(struct pair *pair, const struct sim_rnic_config *config)
{
    struct sim_device_config device = {.rnic = *config, .hosts = 2};
    struct sim_rnic_limits of_b = limits;
    of_b.host = 1;
    pair->device = sim_device_open(&device);
    CU_ASSERT_PTR_NOT_NULL_FATAL(pair->device);
    pair->a.rdma = sim_device_handle(pair->device, &limits);
    pair->b.rdma = sim_device_handle(pair->device, &of_b);
    pair->a.memory = calloc(1, PAIR_OCTETS);
    pair->b.memory = calloc(1, PAIR_OCTETS);
    CU_ASSERT_FATAL(pair->a.rdma && pair->b.rdma && pair->a.memory && pair->b.memory);
}

void pair_open(struct pair *pair, enum pair_mode mode, struct sim_rnic_config config)
{
    static const enum sim_ordering orderings[] = {SIM_ORDERING_STRONG, SIM_ORDERING_RDMAP,
                                                  SIM_ORDERING_INFINIBAND, SIM_ORDERING_STRONG};
    const uint32_t all = RDMA_LOCAL_WRITE | RDMA_REMOTE_READ | RDMA_REMOTE_WRITE |
                         RDMA_REMOTE_ATOMIC | RDMA_BIND_WINDOW;
    config.ordering = orderings[mode];
    config.bits = config.bits ? config.bits : SIM_RNIC_BITS;
    config.max_message = 256;
    config.max_inline = 48;
    config.max_reads = 2;
    config.regions = 4;
    config.windows = 2;
    config.seed = 7;
    memset(pair, 0, sizeof *pair);
    pair->mode = mode;
    if (mode == PAIR_DEVICE)
        open_device(pair, &config);
    else
        open_world(pair, &config);
    struct pair_side *sides[] = {&pair->a, &pair->b};
    for (int i = 0; i < 2; i++) {
        CU_ASSERT_EQUAL_FATAL(rdma_cq_create(sides[i]->rdma, 16, &sides[i]->cq), 0);
        CU_ASSERT_EQUAL_FATAL(rdma_reg(sides[i]->rdma, sides[i]->memory, PAIR_OCTETS, all,
                                       4096u * (unsigned)i, &sides[i]->region),
                              0);
    }
    CU_ASSERT_EQUAL_FATAL(rdma_listen(pair->b.rdma, "b"), 0);
}

void pair_close(struct pair *pair)
{
    if (pair->device) {
        sim_device_close(pair->device);
        free(pair->a.memory);
        free(pair->b.memory);
    }
    sim_world_free(pair->world);
}

struct rdma_conn_config pair_config(const struct pair_side *side)
{
    return (struct rdma_conn_config){.cq = side->cq,
                                     .send_depth = 4,
                                     .recv_depth = 4,
                                     .max_sge = 3,
                                     .max_inline = 48,
                                     .reads_out = 2,
                                     .reads_in = 2};
}

void pair_open_connected(struct pair *pair, enum pair_mode mode, struct sim_rnic_config config)
{
    pair_open(pair, mode, config);
    struct pair_side *sides[] = {&pair->a, &pair->b};
    struct rdma_sge sges[2][2];
    struct rdma_wr wrs[2][2];
    for (int i = 0; i < 2; i++)
        for (uint32_t j = 0; j < 2; j++) {
            sges[i][j] =
                (struct rdma_sge){sides[i]->memory + 256 + 64 * j, 64, sides[i]->region.lkey};
            wrs[i][j] = (struct rdma_wr){.wr_id = 1 + j, .sges = &sges[i][j], .sge_count = 1};
        }
    struct rdma_conn_config ca = pair_config(&pair->a), cb = pair_config(&pair->b);
    CU_ASSERT_EQUAL_FATAL(rdma_connect(pair->a.rdma, "b", &ca, wrs[0], 2, NULL, 0, &pair->a.conn),
                          0);
    pair->b.conn = pair_event(&pair->b, RDMA_EVENT_REQUEST).conn;
    CU_ASSERT_EQUAL_FATAL(rdma_accept(pair->b.rdma, pair->b.conn, &cb, wrs[1], 2, NULL, 0), 0);
    CU_ASSERT_EQUAL(pair_event(&pair->a, RDMA_EVENT_CONNECTED).conn, pair->a.conn);
    CU_ASSERT_EQUAL(pair_event(&pair->b, RDMA_EVENT_CONNECTED).conn, pair->b.conn);
}

int pair_receive(struct pair_side *side, uint64_t wr_id, uint32_t offset, uint32_t octets)
{
    struct rdma_sge sge = {side->memory + offset, octets, side->region.lkey};
    struct rdma_wr wr = {.wr_id = wr_id, .sges = &sge, .sge_count = 1};
    return rdma_post_recv(side->rdma, side->conn, &wr, 1);
}

int pair_post(struct pair_side *side, struct rdma_wr *wr, uint32_t offset, uint32_t octets)
{
    struct rdma_sge sge = {side->memory + offset, octets, side->region.lkey};
    wr->sges = &sge;
    wr->sge_count = 1;
    return rdma_post_send(side->rdma, side->conn, wr, 1);
}

struct rdma_wc pair_wc(struct pair_side *side)
{
    struct rdma_wc wc = {0};
    CU_ASSERT_EQUAL_FATAL(rdma_cq_poll(side->rdma, side->cq, &wc, 1), 1);
    CU_ASSERT_EQUAL(wc.conn, side->conn);
    return wc;
}

bool pair_no_wc(struct pair_side *side)
{
    struct rdma_wc wc;
    return rdma_cq_poll(side->rdma, side->cq, &wc, 1) == 0;
}

struct rdma_event pair_event(struct pair_side *side, uint32_t kind)
{
    struct rdma_event event = {0};
    CU_ASSERT_EQUAL_FATAL(rdma_event(side->rdma, &event), 1);
    CU_ASSERT_EQUAL(event.kind, kind);
    return event;
}

bool pair_no_event(struct pair_side *side)
{
    struct rdma_event event;
    return rdma_event(side->rdma, &event) == 0;
}

void pair_ends(struct pair_side *side, int error, uint32_t flushed)
{
    struct rdma_event event = pair_event(side, RDMA_EVENT_DISCONNECTED);
    CU_ASSERT_EQUAL(event.error, error);
    CU_ASSERT_EQUAL(event.conn, side->conn);
    for (uint32_t i = 0; i < flushed; i++) {
        CU_ASSERT(pair_no_event(side)); /* DRAINED comes last */
        CU_ASSERT_EQUAL(rdma_destroy(side->rdma, side->conn), -EBUSY);
        CU_ASSERT_EQUAL(pair_wc(side).status, RDMA_FLUSHED);
    }
    CU_ASSERT(pair_no_wc(side));
    pair_event(side, RDMA_EVENT_DRAINED);
    CU_ASSERT_EQUAL(rdma_destroy(side->rdma, side->conn), 0);
    CU_ASSERT(pair_no_event(side));
}
