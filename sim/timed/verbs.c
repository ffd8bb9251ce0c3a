/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/timed/verbs.h"

#include <stdlib.h>
#include <string.h>

#include "sim/timed/nic.h"
#include "sim/timed/topology.h"

#define STREAM 20000u /* messages */
#define MOST_OCTETS (1u << 30)

struct pair {
    const struct sim_costs *costs;
    const struct sim_verbs *verbs;
    struct sim_clock clock;
    struct sim_topology topology;
    struct sim_wire *wire;
    struct sim_nics *nics;
    struct rdma *handles[2];
    uint32_t conns[2];
    struct rdma_region regions[2];
    char *memory[2];
    uint64_t seen_ns; /* something came last */
};

static void seen(void *context)
{
    struct pair *p = context;
    p->seen_ns = p->clock.now_ns;
}

static void settle(struct pair *p)
{
    while (sim_clock_next(&p->clock) != SIM_CLOCK_NEVER)
        sim_clock_step(&p->clock);
}

static bool connect_pair(struct pair *p)
{
    struct rdma_event event;
    struct rdma_conn_config config = {.send_depth = p->verbs->depth + 1,
                                      .recv_depth = p->verbs->depth + 1,
                                      .max_sge = 1,
                                      .max_inline = p->verbs->max_inline,
                                      .reads_out = p->verbs->reads,
                                      .reads_in = p->verbs->reads};
    for (uint32_t i = 0; i < 2; i++)
        if (rdma_cq_create(p->handles[i], 2 * p->verbs->depth + 2, &config.cq) != 0)
            return false;
    if (rdma_listen(p->handles[1], "b") != 0 ||
        rdma_connect(p->handles[0], "b", &config, NULL, 0, NULL, 0, &p->conns[0]) != 0)
        return false;
    settle(p);
    if (rdma_event(p->handles[1], &event) != 1)
        return false;
    p->conns[1] = event.conn;
    if (rdma_accept(p->handles[1], p->conns[1], &config, NULL, 0, NULL, 0) != 0)
        return false;
    settle(p);
    return rdma_event(p->handles[0], &event) == 1 && rdma_event(p->handles[1], &event) == 1;
}

static bool open_pair(struct pair *p, const struct sim_costs *costs, const struct sim_verbs *verbs)
{
    const uint32_t access =
        RDMA_LOCAL_WRITE | RDMA_REMOTE_READ | RDMA_REMOTE_WRITE | RDMA_REMOTE_ATOMIC;
    double latency_ns = costs->link_latency_ns * (verbs->hops ? verbs->hops : 0.5);
    const struct sim_topology_shape shape = {.ports = 2,
                                             .octets_per_ns = costs->link_gbits_s / 8,
                                             .latency_ns = (uint32_t)(latency_ns + 0.5)};
    const struct sim_nic_config config = {.nics = 2,
                                          .bits = SIM_NIC_BITS,
                                          .max_message = MOST_OCTETS,
                                          .max_inline = verbs->max_inline,
                                          .max_reads = verbs->reads,
                                          .max_queue = verbs->depth + 1};
    *p = (struct pair){.costs = costs, .verbs = verbs, .clock.end_ns = SIM_CLOCK_NEVER - 1};
    if (sim_topology_make(&p->topology, &shape) != 0)
        return false;
    p->wire = sim_wire_fifo(&p->clock, &p->topology);
    p->nics = p->wire ? sim_nics_open(p->wire, costs, &config) : NULL;
    for (uint32_t i = 0; p->nics && i < 2; i++) {
        const struct sim_nic_limits limits = {.nic = i, .connections = 1, .cqs = 1};
        const struct sim_nic_cpu cpu = {.wake = seen, .written = seen, .context = p};
        p->handles[i] = sim_nic_handle(p->nics, &limits);
        p->memory[i] = calloc(1, verbs->octets + 8);
        if (!p->handles[i] || !p->memory[i] ||
            rdma_reg(p->handles[i], p->memory[i], verbs->octets + 8, access, 0, &p->regions[i]))
            return false;
        sim_nic_attach(p->handles[i], &cpu);
    }
    return p->nics && connect_pair(p);
}

static void close_pair(struct pair *p)
{
    sim_nics_close(p->nics);
    sim_wire_close(p->wire);
    if (p->topology.context)
        sim_topology_free(&p->topology);
    sim_clock_free(&p->clock);
    free(p->memory[0]);
    free(p->memory[1]);
}

static bool is_one_way(uint32_t op)
{
    return op == RDMA_SEND || op == RDMA_WRITE;
}

static bool post(struct pair *p)
{
    const struct sim_verbs *v = p->verbs;
    uint32_t length = v->op == RDMA_FETCH_ADD ? 8 : v->octets;
    const struct rdma_sge to = {p->memory[1], v->octets, p->regions[1].lkey};
    const struct rdma_sge from = {p->memory[0], length, p->regions[0].lkey};
    const struct rdma_wr receive = {.sges = &to, .sge_count = 1};
    const bool is_inline = is_one_way(v->op) && length <= v->max_inline;
    const struct rdma_wr wr = {.op = (uint16_t)v->op,
                               .flags = RDMA_SIGNALED | (is_inline ? RDMA_INLINE : 0),
                               .sges = &from,
                               .sge_count = 1,
                               .remote_stag = p->regions[1].stag,
                               .fetch_add = {.add = 1}};
    return (v->op != RDMA_SEND || rdma_post_recv(p->handles[1], p->conns[1], &receive, 1) == 0) &&
           rdma_post_send(p->handles[0], p->conns[0], &wr, 1) == 0;
}

/* When the other side has seen it, or this one its completion; a look that finds nothing takes
 * poll_ns, so that half of that passes before the one that finds it begins. */
static double latency_ns(struct pair *p)
{
    const struct sim_verbs *v = p->verbs;
    uint64_t begin_ns = p->clock.now_ns, there_ns;
    double looks_ns = p->costs->poll_ns / 2;
    struct rdma_wc wc;
    sim_nic_run(p->handles[0], 0);
    sim_nic_run(p->handles[1], 0);
    if (!post(p))
        return -1;
    if (is_one_way(v->op)) { /* what comes first is that, and its acknowledgement later */
        p->seen_ns = 0;
        while (p->seen_ns == 0 && sim_clock_next(&p->clock) != SIM_CLOCK_NEVER)
            sim_clock_step(&p->clock);
    } else {
        settle(p);
    }
    there_ns = p->seen_ns;
    settle(p);
    for (uint32_t i = 0; i < 2; i++)
        while (rdma_cq_poll(p->handles[i], 0, &wc, 1) == 1)
            if (wc.status != RDMA_OK)
                return -1;
    if (v->op != RDMA_WRITE) /* which is looked for in memory */
        looks_ns += p->costs->poll_ns + p->costs->take_ns;
    return (double)(there_ns - begin_ns) + looks_ns;
}

double sim_verbs_latency_ns(const struct sim_costs *costs, const struct sim_verbs *verbs)
{
    struct pair p;
    double ns = open_pair(&p, costs, verbs) ? latency_ns(&p) : -1;
    close_pair(&p);
    return ns;
}

/* As soon as one has completed the next is posted; each takes its time, as a CPU has it. */
static double stream_rate(struct pair *p)
{
    struct rdma_wc wc;
    uint64_t begin_ns = p->clock.now_ns, free_ps = begin_ns * 1000;
    uint32_t posted = 0, done = 0;
    while (done < STREAM) {
        sim_nic_run(p->handles[0],
                    free_ps > p->clock.now_ns * 1000 ? free_ps - p->clock.now_ns * 1000 : 0);
        sim_nic_run(p->handles[1], 0);
        while (rdma_cq_poll(p->handles[1], 0, &wc, 1) == 1)
            ;
        while (rdma_cq_poll(p->handles[0], 0, &wc, 1) == 1)
            done++;
        while (posted - done < p->verbs->depth && posted < STREAM) {
            if (!post(p))
                return -1;
            posted++;
        }
        free_ps = p->clock.now_ns * 1000 + sim_nic_spent_ps(p->handles[0]);
        p->seen_ns = 0;
        while (p->seen_ns == 0 && sim_clock_next(&p->clock) != SIM_CLOCK_NEVER)
            sim_clock_step(&p->clock);
        if (p->seen_ns == 0 && done < STREAM && !sim_nic_has_news(p->handles[0]))
            return -1;
    }
    return STREAM / ((double)(p->clock.now_ns - begin_ns) / 1e9);
}

double sim_verbs_rate(const struct sim_costs *costs, const struct sim_verbs *verbs)
{
    struct pair p;
    double rate = open_pair(&p, costs, verbs) ? stream_rate(&p) : -1;
    close_pair(&p);
    return rate;
}
