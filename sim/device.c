/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/device.h"

#include <errno.h>
#include <stdlib.h>

#include "sim/rnic_build.h"
#include "sim/rnic_direct.h"

#define DEFAULT_OCTETS (UINT64_C(256) << 20)

struct sim_device {
    struct sim_world w;
    struct sim_scenario scenario;
    uint32_t handles; /* how many there may be */
};

/* ---- net/rdma.h -------------------------------------------------------------------------- */

static struct sim_handle *handle_of(struct rdma *r)
{
    return (struct sim_handle *)r;
}

static void device_caps(struct rdma *r, struct rdma_caps *caps)
{
    rnic_caps(handle_of(r), caps);
}

static int device_reg(struct rdma *r, void *addr, uint64_t length, uint32_t access,
                      uint64_t wanted_base, struct rdma_region *region)
{
    return rnic_reg(handle_of(r), addr, length, access, wanted_base, region);
}

static int device_dereg(struct rdma *r, struct rdma_region *region)
{
    return rnic_dereg(handle_of(r), region);
}

static int device_window_alloc(struct rdma *r, struct rdma_window *window)
{
    return rnic_window_alloc(handle_of(r), window);
}

static int device_window_free(struct rdma *r, struct rdma_window *window)
{
    return rnic_window_free(handle_of(r), window);
}

static int device_cq_create(struct rdma *r, uint32_t depth, uint32_t *cq)
{
    return rnic_cq_create(handle_of(r), depth, cq);
}

static int device_cq_destroy(struct rdma *r, uint32_t cq)
{
    return rnic_cq_destroy(handle_of(r), cq);
}

static int device_cq_poll(struct rdma *r, uint32_t cq, struct rdma_wc *wc, uint32_t count)
{
    return rnic_cq_poll(handle_of(r), cq, wc, count);
}

static int device_cq_arm(struct rdma *r, uint32_t cq, bool solicited_only)
{
    return rnic_cq_arm(handle_of(r), cq, solicited_only);
}

static int device_listen(struct rdma *r, const char *address)
{
    struct sim_handle *h = handle_of(r);
    if (h->address || !address || !address[0])
        return -EINVAL;
    h->address = strdup(address);
    if (!h->address)
        return -ENOMEM;
    h->port->listening = 1;
    return 0;
}

static int device_connect(struct rdma *r, const char *address,
                          const struct rdma_conn_config *config, const struct rdma_wr *receives,
                          uint32_t count, const void *private_data, uint32_t private_length,
                          uint32_t *conn)
{
    int failed = rnic_connect(handle_of(r), address, config, receives, count, private_data,
                              private_length, conn);
    rnic_direct_settle(handle_of(r)->w);
    return failed;
}

static int device_accept(struct rdma *r, uint32_t conn, const struct rdma_conn_config *config,
                         const struct rdma_wr *receives, uint32_t count, const void *private_data,
                         uint32_t private_length)
{
    int failed =
        rnic_accept(handle_of(r), conn, config, receives, count, private_data, private_length);
    rnic_direct_settle(handle_of(r)->w);
    return failed;
}

static int device_reject(struct rdma *r, uint32_t conn, const void *private_data,
                         uint32_t private_length)
{
    int failed = rnic_reject(handle_of(r), conn, private_data, private_length);
    rnic_direct_settle(handle_of(r)->w);
    return failed;
}

static int device_disconnect(struct rdma *r, uint32_t conn)
{
    int failed = rnic_disconnect(handle_of(r), conn);
    rnic_direct_settle(handle_of(r)->w);
    return failed;
}

static int device_destroy(struct rdma *r, uint32_t conn)
{
    return rnic_destroy(handle_of(r), conn);
}

static int device_event(struct rdma *r, struct rdma_event *event)
{
    return rnic_event(handle_of(r), event);
}

static int device_post_send(struct rdma *r, uint32_t conn, const struct rdma_wr *wrs,
                            uint32_t count)
{
    return rnic_direct_post_send(handle_of(r), conn, wrs, count);
}

static int device_post_recv(struct rdma *r, uint32_t conn, const struct rdma_wr *wrs,
                            uint32_t count)
{
    return rnic_direct_post_receives(handle_of(r), conn, wrs, count);
}

static int device_timer(struct rdma *r, uint32_t id, uint64_t delay_ns)
{
    return rnic_timer(handle_of(r), id, delay_ns);
}

static int device_random(struct rdma *r, void *octets, uint32_t length)
{
    return rnic_random(handle_of(r), octets, length);
}

static const struct rdma_ops device_ops = {
    .caps = device_caps,
    .reg = device_reg,
    .dereg = device_dereg,
    .window_alloc = device_window_alloc,
    .window_free = device_window_free,
    .cq_create = device_cq_create,
    .cq_destroy = device_cq_destroy,
    .cq_poll = device_cq_poll,
    .cq_arm = device_cq_arm,
    .listen = device_listen,
    .connect = device_connect,
    .accept = device_accept,
    .reject = device_reject,
    .disconnect = device_disconnect,
    .destroy = device_destroy,
    .event = device_event,
    .post_send = device_post_send,
    .post_recv = device_post_recv,
    .timer = device_timer,
    .random = device_random,
};

/* ---- opening and closing ----------------------------------------------------------------- */

static void fill_in(struct sim_rnic_config *config)
{
    if (config->max_message == 0)
        config->max_message = 1u << 20;
    if (config->max_reads == 0)
        config->max_reads = 16;
    if (config->regions == 0)
        config->regions = 64;
    if (config->windows == 0)
        config->windows = 64;
}

struct sim_device *sim_device_open(const struct sim_device_config *config)
{
    struct sim_rnic_config rnic = config->rnic;
    uint32_t hosts = config->hosts ? config->hosts : 1;
    fill_in(&rnic);
    if (hosts > SIM_MAX_AGENTS || !rnic_config_legal(&rnic) || rnic.rnr_retry == SIM_RNR_FOREVER)
        return NULL;
    struct sim_device *dev = calloc(1, sizeof *dev);
    if (!dev)
        return NULL;
    dev->scenario.machine.tear = 8;
    dev->w.scenario = &dev->scenario;
    dev->handles = config->handles ? config->handles : 16;
    bool well = sim_arena_open_anywhere(&dev->w.arena,
                                        config->octets ? config->octets : DEFAULT_OCTETS) == 0;
    for (uint32_t i = 0; well && i < hosts; i++)
        well = rnic_new(&dev->w, &rnic, true) != NULL;
    if (well)
        return dev;
    sim_device_close(dev);
    return NULL;
}

void sim_device_close(struct sim_device *dev)
{
    if (!dev)
        return;
    rnic_free_all(&dev->w);
    sim_arena_close(&dev->w.arena);
    free(dev);
}

static uint32_t or_default(uint32_t value, uint32_t otherwise)
{
    return value ? value : otherwise;
}

struct rdma *sim_device_handle(struct sim_device *dev, const struct sim_rnic_limits *limits)
{
    struct sim_rnics *rnics = dev->w.rnics;
    if (limits->host >= rnics->rnics_count || rnics->handles_count == dev->handles)
        return NULL;
    struct sim_rnic *rnic = rnics->rnics[limits->host];
    struct sim_rnic_limits full = *limits;
    full.connections = or_default(limits->connections, 16);
    full.send_depth = or_default(limits->send_depth, 64);
    full.recv_depth = or_default(limits->recv_depth, 64);
    full.max_sge = or_default(limits->max_sge, 4);
    full.reads = or_default(limits->reads, rnic->config.max_reads);
    full.timers = or_default(limits->timers, 16);
    full.cqs = or_default(limits->cqs, 4);
    struct sim_handle *h = rnic_handle_new(rnic, &full);
    if (!h)
        return NULL;
    h->rdma.ops = &device_ops;
    return &h->rdma;
}

/* ---- the environment --------------------------------------------------------------------- */

int sim_device_cut(struct rdma *handle, uint32_t conn)
{
    struct sim_handle *h = handle_of(handle);
    if (conn >= h->limits.connections || h->ends[conn].state->state == END_FREE ||
        !sim_rnic_cut(h->w, h->ends[conn].state->link - 1))
        return -EINVAL;
    rnic_direct_settle(h->w);
    return 0;
}

void sim_device_host_dies(struct rdma *handle)
{
    const struct sim_handle *dying = handle_of(handle);
    struct sim_rnics *rnics = dying->w->rnics;
    for (uint32_t i = 0; i < rnics->handles_count; i++)
        if (rnics->handles[i]->rnic == dying->rnic)
            rnic_host_dies(rnics->handles[i], false);
    rnic_direct_settle(handle_of(handle)->w);
}

bool sim_device_expire(struct rdma *handle, uint32_t id)
{
    return rnic_expire(handle_of(handle), id);
}

uint64_t sim_device_timer_ns(const struct rdma *handle, uint32_t id)
{
    const struct sim_handle *h = (const struct sim_handle *)handle;
    return id < h->limits.timers ? rnic_timers(h)[id] : 0;
}
