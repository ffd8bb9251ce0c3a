/* SPDX-License-Identifier: BSD-3-Clause */
/* The chain operations of agents: within a poll an access (sim/cpu_rdma.h), else at once. */
#include <errno.h>

#include "sim/cpu_rdma.h"
#include "sim/rnic_build.h"

static struct sim_agent *agent_of(struct rdma *r)
{
    return (struct sim_agent *)((char *)r - offsetof(struct sim_agent, rdma));
}

static bool is_polling(struct rdma *r)
{
    struct sim_agent *agent = agent_of(r);
    return agent->world->polling == agent;
}

/* NULL: this device has no chains. */
static struct sim_handle *handle_of(struct rdma *r)
{
    struct sim_handle *h = agent_of(r)->handle;
    return (h->rnic->config.bits & RDMA_CAP_CHAIN) != 0 ? h : NULL;
}

/* The call has had its effect. */
static int acted(const struct sim_handle *h, int result)
{
    if (h->w->direct)
        sim_rnic_run(h->w);
    return result;
}

static uint32_t chain_octets(struct rdma *r, uint32_t depth)
{
    const struct sim_handle *h = handle_of(r);
    return h ? rnic_chain_octets(h, depth) : 0;
}

/* What is for set-up is refused within a poll. */
static int chain_create(struct rdma *r, const struct rdma_chain_config *config,
                        struct rdma_chain_queue *queue)
{
    struct sim_handle *h = handle_of(r);
    return h && !is_polling(r) ? rnic_chain_create(h, config, queue) : -ENOTSUP;
}

static int chain_destroy(struct rdma *r, struct rdma_chain_queue *queue)
{
    struct sim_handle *h = handle_of(r);
    return h && !is_polling(r) ? acted(h, rnic_chain_destroy(h, queue)) : -ENOTSUP;
}

static int chain_put(struct rdma *r, const struct rdma_chain_queue *queue, uint32_t number,
                     const struct rdma_wr *wr)
{
    struct sim_handle *h = handle_of(r);
    if (!h)
        return -ENOTSUP;
    return is_polling(r) ? cpu_poll_chain_ops.put(r, queue, number, wr)
                         : rnic_chain_put(h, queue, number, wr);
}

static int chain_enable(struct rdma *r, const struct rdma_chain_queue *queue, uint32_t limit)
{
    struct sim_handle *h = handle_of(r);
    if (!h)
        return -ENOTSUP;
    return is_polling(r) ? cpu_poll_chain_ops.enable(r, queue, limit)
                         : acted(h, rnic_chain_ring(h, queue, limit));
}

static int chain_state(struct rdma *r, const struct rdma_chain_queue *queue,
                       struct rdma_chain_state *state)
{
    struct sim_handle *h = handle_of(r);
    if (!h)
        return -ENOTSUP;
    return is_polling(r) ? cpu_poll_chain_ops.state(r, queue, state)
                         : rnic_chain_state(h, queue, state);
}

static int chain_field(struct rdma *r, const struct rdma_chain_queue *queue, uint32_t number,
                       uint32_t field, uint32_t sge, uint32_t lane, void **at)
{
    const struct sim_handle *h = handle_of(r);
    return h ? rnic_chain_field(h, queue, number, field, sge, lane, at) : -ENOTSUP;
}

static int chain_encode(struct rdma *r, uint32_t field, uint64_t value, uint8_t octets[8])
{
    const struct sim_handle *h = handle_of(r);
    return h ? rnic_chain_encode(h, field, value, octets) : -ENOTSUP;
}

static int chain_reg_strided(struct rdma *r, void *addr, uint32_t count, uint32_t octets,
                             uint32_t stride, uint32_t access, struct rdma_region *region)
{
    struct sim_handle *h = handle_of(r);
    return h && !is_polling(r) ? rnic_reg_strided(h, addr, count, octets, stride, access, region)
                               : -ENOTSUP;
}

const struct rdma_chain_ops rnic_agent_chain_ops = {
    .octets = chain_octets,
    .create = chain_create,
    .destroy = chain_destroy,
    .put = chain_put,
    .enable = chain_enable,
    .state = chain_state,
    .field = chain_field,
    .encode = chain_encode,
    .reg_strided = chain_reg_strided,
};
