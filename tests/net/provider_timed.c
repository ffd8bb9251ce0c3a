/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/net/provider_timed.h"

#include <stddef.h>

#include "sim/timed/nic_state.h"
#include "sim/timed/topology.h"

#define PORTS 8u

static struct sim_clock time_line;
static struct sim_topology topology;
static struct sim_wire *wire;
static struct sim_nics *nics;
static uint32_t handles;

/* Any will do: what comes of a call does not depend on how long it takes. */
static const struct sim_costs costs = {.doorbell_ns = 100,
                                       .inline_gbytes_s = 1,
                                       .wqe_fetch_ns = 200,
                                       .send_message_ns = 10,
                                       .send_latency_ns = 50,
                                       .receive_message_ns = 10,
                                       .receive_latency_ns = 50,
                                       .dma_read_ns = 300,
                                       .dma_read_gbytes_s = 12,
                                       .dma_write_ns = 200,
                                       .dma_write_gbytes_s = 12,
                                       .completion_ns = 50,
                                       .atomic_ns = 100,
                                       .connect_ns = 1000,
                                       .link_gbits_s = 100,
                                       .link_latency_ns = 500,
                                       .mtu_octets = 4096,
                                       .header_octets = 60,
                                       .copy_gbytes_s = 10,
                                       .poll_ns = 10,
                                       .post_ns = 20};

static void settle(void)
{
    while (sim_clock_next(&time_line) != SIM_CLOCK_NEVER)
        sim_clock_step(&time_line);
}

/* ---- calls that something comes of ------------------------------------------------------- */

static int settled(int result)
{
    settle();
    return result;
}

static int connect_and_settle(struct rdma *r, const char *address,
                              const struct rdma_conn_config *config, const struct rdma_wr *receives,
                              uint32_t count, const void *private_data, uint32_t private_length,
                              uint32_t *conn)
{
    return settled(
        nic_ops.connect(r, address, config, receives, count, private_data, private_length, conn));
}

static int accept_and_settle(struct rdma *r, uint32_t conn, const struct rdma_conn_config *config,
                             const struct rdma_wr *receives, uint32_t count,
                             const void *private_data, uint32_t private_length)
{
    return settled(nic_ops.accept(r, conn, config, receives, count, private_data, private_length));
}

static int reject_and_settle(struct rdma *r, uint32_t conn, const void *private_data,
                             uint32_t private_length)
{
    return settled(nic_ops.reject(r, conn, private_data, private_length));
}

static int disconnect_and_settle(struct rdma *r, uint32_t conn)
{
    return settled(nic_ops.disconnect(r, conn));
}

static int post_send_and_settle(struct rdma *r, uint32_t conn, const struct rdma_wr *wrs,
                                uint32_t count)
{
    return settled(nic_ops.post_send(r, conn, wrs, count));
}

/* The clock is not told. */
static int arm(struct rdma *r, uint32_t id, uint64_t delay_ns)
{
    const struct nic_handle *h = nic_handle_of(r);
    if (id >= h->limits.timers)
        return -EINVAL;
    h->timers[id].armed = delay_ns != 0;
    return 0;
}

/* ---- the provider ------------------------------------------------------------------------ */

bool provider_timed_open(void)
{
    const struct sim_topology_shape shape = {
        .ports = PORTS, .octets_per_ns = 12.5, .latency_ns = 500};
    const struct sim_nic_config config = {.nics = PORTS,
                                          .bits = SIM_NIC_BITS,
                                          .binding = RDMA_BINDING_RDMAP,
                                          .max_message = 1u << 20,
                                          .max_inline = 256,
                                          .max_reads = 16,
                                          .max_queue = 512,
                                          .seed = 1};
    time_line = (struct sim_clock){.end_ns = SIM_CLOCK_NEVER - 1};
    handles = 0;
    if (sim_topology_make(&topology, &shape) != 0)
        return false;
    wire = sim_wire_fifo(&time_line, &topology);
    nics = wire ? sim_nics_open(wire, &costs, &config) : NULL;
    return nics != NULL;
}

void provider_timed_close(void)
{
    sim_nics_close(nics);
    sim_wire_close(wire);
    sim_topology_free(&topology);
    sim_clock_free(&time_line);
}

/* All are handles of one device, as with the others: what is sent turns round within the RNIC. */
struct rdma *provider_timed_handle(void)
{
    static struct rdma_ops ops;
    const struct sim_nic_limits limits = {.connections = 16, .timers = 32, .cqs = 4};
    struct rdma *r = sim_nic_handle(nics, &limits);
    ops = nic_ops;
    ops.connect = connect_and_settle;
    ops.accept = accept_and_settle;
    ops.reject = reject_and_settle;
    ops.disconnect = disconnect_and_settle;
    ops.post_send = post_send_and_settle;
    ops.timer = arm;
    if (r)
        r->ops = &ops;
    return r;
}

void provider_timed_cut(struct rdma *r, uint32_t conn)
{
    sim_nic_cut(r, conn);
    settle();
}

bool provider_timed_expire(struct rdma *r, uint32_t id)
{
    return sim_nic_expire(r, id);
}

uint32_t provider_timed_left(void)
{
    uint32_t left = 0;
    const struct nic *nic = &nics->nics[0];
    for (uint32_t i = 0; i < nic->regions_count; i++)
        left += nic->regions[i].used;
    for (uint32_t i = 0; i < nic->windows_count; i++)
        left += nic->windows[i].used;
    for (const struct nic_handle *h = nic->handles; h; h = h->next) {
        for (uint32_t i = 0; i < h->limits.connections; i++)
            left += h->conns[i].state != NIC_FREE;
        for (uint32_t i = 0; i < h->limits.cqs; i++)
            left += h->cqs[i].used;
    }
    return left;
}
