/* SPDX-License-Identifier: BSD-3-Clause */
/* net/rdma.h of agents: within a poll an access of it (sim/cpu_rdma.h), else at once. */
#include <errno.h>

#include "sim/cpu_rdma.h"
#include "sim/rnic_build.h"

static struct sim_agent *agent_of(struct rdma *r)
{
    return (struct sim_agent *)((char *)r - offsetof(struct sim_agent, rdma));
}

/* Outside a poll: the handle. Within one: NULL. */
static struct sim_handle *direct_handle(struct rdma *r)
{
    struct sim_agent *agent = agent_of(r);
    return agent->world->polling == agent ? NULL : agent->handle;
}

/* The call has had its effect. */
static int acted(struct sim_handle *h, int result)
{
    if (h->w->direct)
        sim_rnic_run(h->w);
    return result;
}

static void agent_caps(struct rdma *r, struct rdma_caps *caps)
{
    rnic_caps(agent_of(r)->handle, caps);
}

static int agent_reg(struct rdma *r, void *addr, uint64_t length, uint32_t access,
                     uint64_t wanted_base, struct rdma_region *region)
{
    struct sim_handle *h = direct_handle(r);
    return h ? rnic_reg(h, addr, length, access, wanted_base, region)
             : cpu_poll_rdma_ops.reg(r, addr, length, access, wanted_base, region);
}

static int agent_dereg(struct rdma *r, struct rdma_region *region)
{
    struct sim_handle *h = direct_handle(r);
    return h ? rnic_dereg(h, region) : cpu_poll_rdma_ops.dereg(r, region);
}

static int agent_window_alloc(struct rdma *r, struct rdma_window *window)
{
    struct sim_handle *h = direct_handle(r);
    return h ? rnic_window_alloc(h, window) : cpu_poll_rdma_ops.window_alloc(r, window);
}

static int agent_window_free(struct rdma *r, struct rdma_window *window)
{
    struct sim_handle *h = direct_handle(r);
    return h ? rnic_window_free(h, window) : cpu_poll_rdma_ops.window_free(r, window);
}

/* What is for set-up is refused within a poll. */
static int agent_cq_create(struct rdma *r, uint32_t depth, uint32_t *cq)
{
    struct sim_handle *h = direct_handle(r);
    return h ? rnic_cq_create(h, depth, cq) : -ENOTSUP;
}

static int agent_cq_destroy(struct rdma *r, uint32_t cq)
{
    struct sim_handle *h = direct_handle(r);
    return h ? rnic_cq_destroy(h, cq) : -ENOTSUP;
}

static int agent_cq_poll(struct rdma *r, uint32_t cq, struct rdma_wc *wc, uint32_t count)
{
    struct sim_handle *h = direct_handle(r);
    return h ? acted(h, rnic_cq_poll(h, cq, wc, count))
             : cpu_poll_rdma_ops.cq_poll(r, cq, wc, count);
}

static int agent_cq_arm(struct rdma *r, uint32_t cq, bool solicited_only)
{
    struct sim_handle *h = direct_handle(r);
    return h ? rnic_cq_arm(h, cq, solicited_only) : cpu_poll_rdma_ops.cq_arm(r, cq, solicited_only);
}

static int agent_listen(struct rdma *r, const char *address)
{
    struct sim_handle *h = direct_handle(r);
    if (!h)
        return -ENOTSUP;
    (void)address; /* sim_rnic_route() says who comes */
    rnic_touch(h->w, h->port_segment);
    h->port->listening = 1;
    return 0;
}

static int agent_connect(struct rdma *r, const char *address, const struct rdma_conn_config *config,
                         const struct rdma_wr *receives, uint32_t count, const void *private_data,
                         uint32_t private_length, uint32_t *conn)
{
    struct sim_handle *h = direct_handle(r);
    return h ? acted(h, rnic_connect(h, address, config, receives, count, private_data,
                                     private_length, conn))
             : cpu_poll_rdma_ops.connect(r, address, config, receives, count, private_data,
                                         private_length, conn);
}

static int agent_accept(struct rdma *r, uint32_t conn, const struct rdma_conn_config *config,
                        const struct rdma_wr *receives, uint32_t count, const void *private_data,
                        uint32_t private_length)
{
    struct sim_handle *h = direct_handle(r);
    return h ? acted(h, rnic_accept(h, conn, config, receives, count, private_data, private_length))
             : cpu_poll_rdma_ops.accept(r, conn, config, receives, count, private_data,
                                        private_length);
}

static int agent_reject(struct rdma *r, uint32_t conn, const void *private_data,
                        uint32_t private_length)
{
    struct sim_handle *h = direct_handle(r);
    return h ? acted(h, rnic_reject(h, conn, private_data, private_length))
             : cpu_poll_rdma_ops.reject(r, conn, private_data, private_length);
}

static int agent_disconnect(struct rdma *r, uint32_t conn)
{
    struct sim_handle *h = direct_handle(r);
    return h ? acted(h, rnic_disconnect(h, conn)) : cpu_poll_rdma_ops.disconnect(r, conn);
}

static int agent_destroy(struct rdma *r, uint32_t conn)
{
    struct sim_handle *h = direct_handle(r);
    return h ? rnic_destroy(h, conn) : cpu_poll_rdma_ops.destroy(r, conn);
}

static int agent_event(struct rdma *r, struct rdma_event *event)
{
    struct sim_handle *h = direct_handle(r);
    return h ? rnic_event(h, event) : cpu_poll_rdma_ops.event(r, event);
}

static int agent_post_send(struct rdma *r, uint32_t conn, const struct rdma_wr *wrs, uint32_t count)
{
    struct sim_handle *h = direct_handle(r);
    if (!h)
        return cpu_poll_rdma_ops.post_send(r, conn, wrs, count);
    int failed = rnic_post_sends(h, conn, wrs, count);
    if (!failed)
        rnic_ring(h, conn, false, count);
    return acted(h, failed);
}

static int agent_post_recv(struct rdma *r, uint32_t conn, const struct rdma_wr *wrs, uint32_t count)
{
    struct sim_handle *h = direct_handle(r);
    if (!h)
        return cpu_poll_rdma_ops.post_recv(r, conn, wrs, count);
    int failed = rnic_post_receives(h, conn, wrs, count);
    if (!failed)
        rnic_ring(h, conn, true, count);
    return acted(h, failed);
}

static int agent_timer(struct rdma *r, uint32_t id, uint64_t delay_ns)
{
    struct sim_handle *h = direct_handle(r);
    return h ? rnic_timer(h, id, delay_ns) : cpu_poll_rdma_ops.timer(r, id, delay_ns);
}

static int agent_random(struct rdma *r, void *octets, uint32_t length)
{
    struct sim_handle *h = direct_handle(r);
    return h ? rnic_random(h, octets, length) : cpu_poll_rdma_ops.random(r, octets, length);
}

const struct rdma_ops rnic_agent_rdma_ops = {
    .caps = agent_caps,
    .reg = agent_reg,
    .dereg = agent_dereg,
    .window_alloc = agent_window_alloc,
    .window_free = agent_window_free,
    .cq_create = agent_cq_create,
    .cq_destroy = agent_cq_destroy,
    .cq_poll = agent_cq_poll,
    .cq_arm = agent_cq_arm,
    .listen = agent_listen,
    .connect = agent_connect,
    .accept = agent_accept,
    .reject = agent_reject,
    .disconnect = agent_disconnect,
    .destroy = agent_destroy,
    .event = agent_event,
    .post_send = agent_post_send,
    .post_recv = agent_post_recv,
    .timer = agent_timer,
    .random = agent_random,
    .chain = &rnic_agent_chain_ops,
};
