/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Chain queues of kind LOOP: a queue pair that is connected with itself, so that the device does to
 * this device's memory what it does for peers. The work requests lie in the caller's memory
 * until the doorbell; their completions come to a queue of their own.
 */
#include "net/verbs/state.h"

#include <string.h>

#define RETRIES 7u
#define RNR_TIMER 12u
#define HOPS 1u

/* One place. */
struct verbs_place {
    struct ibv_send_wr wr;
    struct ibv_sge sge;
};
#define PLACE_OCTETS ((uint32_t)(sizeof(struct verbs_place) + 63) / 64 * 64)

static struct verbs_place *place_of(const struct verbs_loop *loop, uint32_t number)
{
    return (struct verbs_place *)(loop->memory + (size_t)(number % loop->depth) * PLACE_OCTETS);
}

static uint32_t loop_octets(struct rdma *r, uint32_t depth)
{
    const struct rdma_caps *caps = &verbs_of(r)->device->caps;
    bool can = (caps->bits & RDMA_CAP_LOOP) && depth <= caps->max_queue && depth <= caps->max_cq;
    /* Numbers wrap: places of other depths would not follow each other then. */
    return can && (depth & (depth - 1)) == 0 ? depth * PLACE_OCTETS : 0;
}

/* ---- making ------------------------------------------------------------------------------ */

static int modify(struct verbs_handle *h, struct ibv_qp *qp, struct ibv_qp_attr *attr,
                  enum ibv_qp_state state, int mask)
{
    attr->qp_state = state;
    int result = ibv_modify_qp(qp, attr, mask | IBV_QP_STATE);
    return result ? verbs_failed(h, "ibv_modify_qp", verbs_error(result)) : 0;
}

/* Its own peer: numbers of packets begin alike at both ends. */
static int connect_with_itself(struct verbs_handle *h, struct ibv_qp *qp)
{
    const struct rdma_verbs *d = h->device;
    uint8_t reads = (uint8_t)verbs_smaller(d->caps.max_reads, 16);
    struct ibv_qp_attr attr = {.port_num = 1,
                               .qp_access_flags = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE |
                                                  IBV_ACCESS_REMOTE_ATOMIC,
                               .path_mtu = d->port.active_mtu,
                               .dest_qp_num = qp->qp_num,
                               .max_dest_rd_atomic = reads,
                               .max_rd_atomic = reads,
                               .min_rnr_timer = RNR_TIMER,
                               .timeout = (uint8_t)d->config.ack_timeout,
                               .retry_cnt = RETRIES,
                               .rnr_retry = RETRIES,
                               .ah_attr = {.port_num = 1, .dlid = d->port.lid}};
    struct ibv_gid_entry gid;
    if (verbs_best_gid(d->context, &gid)) {
        attr.ah_attr.is_global = 1;
        attr.ah_attr.grh = (struct ibv_global_route){
            .dgid = gid.gid, .sgid_index = (uint8_t)gid.gid_index, .hop_limit = HOPS};
    } else if (d->caps.binding == RDMA_BINDING_ROCE) {
        return verbs_failed(h, "ibv_query_gid_table", ENODATA);
    }
    int error =
        modify(h, qp, &attr, IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
    if (error == 0)
        error = modify(h, qp, &attr, IBV_QPS_RTR,
                       IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                           IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
    if (error == 0)
        error = modify(h, qp, &attr, IBV_QPS_RTS,
                       IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                           IBV_QP_MAX_QP_RD_ATOMIC);
    return error;
}

static int make_queue_pair(struct verbs_handle *h, struct verbs_loop *loop)
{
    struct ibv_cq *cq = h->cqs[loop->cq]->cq;
    struct ibv_qp_init_attr init = {
        .send_cq = cq,
        .recv_cq = cq,
        .qp_type = IBV_QPT_RC,
        .cap = {
            .max_send_wr = loop->depth, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1}};
    loop->qp = ibv_create_qp(h->device->pd, &init);
    if (!loop->qp)
        return verbs_failed(h, "ibv_create_qp", verbs_error(-1));
    int error = connect_with_itself(h, loop->qp);
    if (error != 0) {
        (void)ibv_destroy_qp(loop->qp);
        loop->qp = NULL;
    }
    return error;
}

static int loop_create(struct rdma *r, const struct rdma_chain_config *config,
                       struct rdma_chain_queue *queue)
{
    struct verbs_handle *h = verbs_of(r);
    uint32_t id = 0;
    if (config->kind != RDMA_CHAIN_LOOP || !(h->device->caps.bits & RDMA_CAP_LOOP))
        return -ENOTSUP;
    if (loop_octets(r, config->depth) == 0 || (uintptr_t)config->memory % 64 != 0)
        return -EINVAL;
    while (id < VERBS_LOOPS && h->loops[id].depth != 0)
        id++;
    if (id == VERBS_LOOPS)
        return -ENOSPC;
    struct verbs_loop loop = {.memory = config->memory, .depth = config->depth};
    int error = verbs_cq_create(r, config->depth, &loop.cq);
    if (error != 0)
        return error;
    error = make_queue_pair(h, &loop);
    if (error != 0) {
        (void)verbs_cq_destroy(r, loop.cq);
        return error;
    }
    h->loops[id] = loop;
    *queue = (struct rdma_chain_queue){.id = id, .kind = config->kind, .depth = config->depth};
    return 0;
}

static struct verbs_loop *loop_of(struct verbs_handle *h, const struct rdma_chain_queue *queue)
{
    bool is =
        queue->kind == RDMA_CHAIN_LOOP && queue->id < VERBS_LOOPS && h->loops[queue->id].depth != 0;
    return is ? &h->loops[queue->id] : NULL;
}

/* Nothing of it lands any more; what was enabled is over. */
static void drop_queue_pair(struct verbs_loop *loop)
{
    if (loop->qp)
        (void)ibv_destroy_qp(loop->qp);
    loop->qp = NULL;
}

static void fail(struct verbs_loop *loop, enum rdma_status status)
{
    loop->status = status;
    drop_queue_pair(loop);
}

static int loop_destroy(struct rdma *r, struct rdma_chain_queue *queue)
{
    struct verbs_handle *h = verbs_of(r);
    struct verbs_loop *loop = loop_of(h, queue);
    if (!loop)
        return -EINVAL;
    fail(loop, loop->status == RDMA_OK ? RDMA_FLUSHED : loop->status);
    int error = verbs_cq_destroy(r, loop->cq);
    if (error == 0)
        *loop = (struct verbs_loop){.depth = 0};
    return error;
}

void verbs_loops_end(struct verbs_handle *h)
{
    for (uint32_t i = 0; i < VERBS_LOOPS; i++)
        drop_queue_pair(&h->loops[i]);
}

/* ---- posting ----------------------------------------------------------------------------- */

static int loop_put(struct rdma *r, const struct rdma_chain_queue *queue, uint32_t number,
                    const struct rdma_wr *wr)
{
    struct verbs_handle *h = verbs_of(r);
    struct verbs_loop *loop = loop_of(h, queue);
    bool has = wr->op == RDMA_NOOP || wr->op == RDMA_WRITE || wr->op == RDMA_READ ||
               wr->op == RDMA_FETCH_ADD || wr->op == RDMA_CAS;
    if (!loop || number - loop->enabled > loop->put - loop->enabled)
        return -EINVAL;
    if (number - loop->completed >= loop->depth)
        return -ENOMEM;
    if (!has || wr->flags & RDMA_INLINE)
        return wr->op >= RDMA_WAIT && wr->op < RDMA_RECV ? -ENOTSUP : -EINVAL;
    int error = verbs_acceptable(&h->device->caps, wr, 1, 0);
    if (error != 0)
        return error;
    struct verbs_place *place = place_of(loop, number);
    verbs_translate(wr, &place->wr, &place->sge);
    place->wr.wr_id = number;
    if (number == loop->put)
        loop->put++;
    return 0;
}

static int loop_enable(struct rdma *r, const struct rdma_chain_queue *queue, uint32_t limit)
{
    struct verbs_handle *h = verbs_of(r);
    struct verbs_loop *loop = loop_of(h, queue);
    if (!loop || limit - loop->enabled > loop->put - loop->enabled)
        return -EINVAL;
    struct ibv_send_wr *first = NULL, **next = &first, *bad;
    for (; loop->enabled != limit; loop->enabled++) {
        *next = &place_of(loop, loop->enabled)->wr;
        (*next)->next = NULL;
        next = &(*next)->next;
    }
    if (!first || !loop->qp)
        return 0;
    h->counts.work_requests += limit - (uint32_t)first->wr_id;
    h->counts.send_batches++;
    int result = ibv_post_send(loop->qp, first, &bad);
    if (result != 0) {
        (void)verbs_failed(h, "ibv_post_send", verbs_error(result));
        fail(loop, RDMA_LOCAL_ERROR);
    }
    return 0;
}

/* ---- how far it is ----------------------------------------------------------------------- */

static void completed(struct verbs_loop *loop, const struct ibv_wc *wc)
{
    if (wc->status != IBV_WC_SUCCESS) {
        fail(loop, verbs_status_of(wc->status));
        return;
    }
    loop->completed = (uint32_t)wc->wr_id + 1; /* and those before it that were not signaled */
    loop->completions++;
}

static void poll(struct verbs_handle *h, struct verbs_loop *loop)
{
    struct ibv_wc wcs[VERBS_BATCH];
    int got = 0;
    do {
        got = ibv_poll_cq(h->cqs[loop->cq]->cq, (int)VERBS_BATCH, wcs);
        if (got < 0) {
            (void)verbs_failed(h, "ibv_poll_cq", verbs_error(got));
            fail(loop, RDMA_LOCAL_ERROR);
        }
        for (int i = 0; i < got && loop->qp; i++)
            completed(loop, &wcs[i]);
        if (got > 0)
            h->armed = false;
    } while (got == (int)VERBS_BATCH && loop->qp);
    if (loop->qp && (atomic_load(&h->device->dead) || atomic_load(&h->cqs[loop->cq]->broken)))
        fail(loop, RDMA_LOST);
}

static int loop_state(struct rdma *r, const struct rdma_chain_queue *queue,
                      struct rdma_chain_state *state)
{
    struct verbs_handle *h = verbs_of(r);
    struct verbs_loop *loop = loop_of(h, queue);
    if (!loop)
        return -EINVAL;
    if (loop->qp)
        poll(h, loop);
    if (!loop->qp) { /* those that were enabled are flushed */
        loop->completions += loop->enabled - loop->completed;
        loop->completed = loop->enabled;
    }
    *state = (struct rdma_chain_state){.enabled = loop->enabled,
                                       .completed = loop->completed,
                                       .completions = loop->completions,
                                       .status = loop->status};
    return 0;
}

/* ---- what these queues have not ---------------------------------------------------------- */

static int no_field(struct rdma *r, const struct rdma_chain_queue *queue, uint32_t number,
                    uint32_t field, uint32_t sge, uint32_t lane, void **at)
{
    (void)r, (void)queue, (void)number, (void)field, (void)sge, (void)lane, (void)at;
    return -ENOTSUP;
}

static int no_encode(struct rdma *r, uint32_t field, uint64_t value, uint8_t octets[8])
{
    (void)r, (void)field, (void)value, (void)octets;
    return -ENOTSUP;
}

static int no_strided(struct rdma *r, void *addr, uint32_t count, uint32_t octets, uint32_t stride,
                      uint32_t access, struct rdma_region *region)
{
    (void)r, (void)addr, (void)count, (void)octets, (void)stride, (void)access, (void)region;
    return -ENOTSUP;
}

const struct rdma_chain_ops verbs_loop_ops = {.octets = loop_octets,
                                              .create = loop_create,
                                              .destroy = loop_destroy,
                                              .put = loop_put,
                                              .enable = loop_enable,
                                              .state = loop_state,
                                              .field = no_field,
                                              .encode = no_encode,
                                              .reg_strided = no_strided};
