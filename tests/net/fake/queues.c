/* SPDX-License-Identifier: BSD-3-Clause */
/* Completion queues and queue pairs. */
#include "tests/net/fake/state.h"

#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* ---- completion channels --------------------------------------------------------------------- */

struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *context)
{
    struct fake_channel *channel = NULL;
    (void)pthread_mutex_lock(&fake_lock);
    if (!fake_call("ibv_create_comp_channel", EMFILE)) {
        channel = calloc(1, sizeof *channel);
        channel->channel.context = context;
        channel->channel.fd = eventfd(0, EFD_CLOEXEC);
        fake.channels++;
    }
    (void)pthread_mutex_unlock(&fake_lock);
    return channel ? &channel->channel : NULL;
}

int ibv_destroy_comp_channel(struct ibv_comp_channel *channel)
{
    (void)pthread_mutex_lock(&fake_lock);
    int error = channel->refcnt ? EBUSY : 0;
    if (error) {
        fake_breaks("a completion channel is destroyed that is in use");
    } else {
        (void)close(channel->fd);
        free(channel);
        fake.channels--;
    }
    (void)pthread_mutex_unlock(&fake_lock);
    return error;
}

int ibv_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq, void **cq_context)
{
    struct fake_channel *events = (struct fake_channel *)channel;
    (void)pthread_mutex_lock(&fake_lock);
    struct fake_cq *first = events->first;
    int result = 0;
    if (!first) {
        result = fake_nothing(channel->fd, "ibv_get_cq_event");
    } else if (fake_call("ibv_get_cq_event", EIO)) {
        result = -1;
    } else {
        first->completion.reported++;
        first->queued = false;
        events->first = first->next;
        *cq = &first->cq;
        *cq_context = first->cq.cq_context;
        fake_ready(channel->fd, events->first != NULL);
    }
    (void)pthread_mutex_unlock(&fake_lock);
    return result;
}

void ibv_ack_cq_events(struct ibv_cq *cq, unsigned int nevents)
{
    (void)pthread_mutex_lock(&fake_lock);
    for (unsigned int i = 0; i < nevents; i++)
        fake_acknowledged(&((struct fake_cq *)cq)->completion);
    (void)pthread_mutex_unlock(&fake_lock);
}

static void notify(struct fake_cq *cq)
{
    struct fake_channel *channel = (struct fake_channel *)cq->cq.channel;
    cq->armed = false;
    if (!channel || cq->queued)
        return;
    cq->queued = true;
    cq->next = channel->first;
    channel->first = cq;
    fake_ready(channel->channel.fd, true);
}

static void forget(struct fake_cq *cq)
{
    struct fake_channel *channel = (struct fake_channel *)cq->cq.channel;
    for (struct fake_cq **at = channel ? &channel->first : NULL; at && *at; at = &(*at)->next)
        if (*at == cq) {
            *at = cq->next;
            break;
        }
    if (channel)
        fake_ready(channel->channel.fd, channel->first != NULL);
}

/* ---- completion queues ------------------------------------------------------------------- */

struct ibv_cq *ibv_create_cq(struct ibv_context *context, int cqe, void *cq_context,
                             struct ibv_comp_channel *channel, int comp_vector)
{
    struct fake_cq *cq = NULL;
    (void)comp_vector;
    (void)pthread_mutex_lock(&fake_lock);
    if (cqe < 1 || (uint32_t)cqe > FAKE_CQES) {
        errno = EINVAL;
    } else if (!fake_call("ibv_create_cq", ENOMEM)) {
        cq = calloc(1, sizeof *cq);
        cq->cq = (struct ibv_cq){
            .context = context, .channel = channel, .cq_context = cq_context, .cqe = cqe};
        cq->size = (uint32_t)cqe;
        cq->entries = calloc(cq->size, sizeof *cq->entries);
        cq->other = fake.cqs;
        fake.cqs = cq;
        if (channel)
            channel->refcnt++;
    }
    (void)pthread_mutex_unlock(&fake_lock);
    return cq ? &cq->cq : NULL;
}

static void drop_async(const void *element)
{
    struct fake_async **at = &fake.async;
    while (*at) {
        struct fake_async *event = *at;
        if (event->event.element.cq == element || event->event.element.qp == element) {
            *at = event->next;
            free(event);
        } else {
            at = &event->next;
        }
    }
    fake_ready(fake.contexts[0].async_fd, fake.async != NULL);
}

int ibv_destroy_cq(struct ibv_cq *cq)
{
    struct fake_cq *mine = (struct fake_cq *)cq, **at = &fake.cqs;
    (void)pthread_mutex_lock(&fake_lock);
    int error = fake_call("ibv_destroy_cq", EBUSY) ? EBUSY : 0;
    for (const struct fake_qp *qp = fake.qps; qp; qp = qp->other)
        if (qp->qp.send_cq == cq || qp->qp.recv_cq == cq) {
            fake_breaks("a completion queue is destroyed that is in use");
            error = EBUSY;
        }
    if (error == 0) {
        drop_async(mine);
        forget(mine);
        fake_wait(&mine->completion, "ibv_destroy_cq");
        fake_wait(&mine->async, "ibv_destroy_cq");
        while (*at != mine)
            at = &(*at)->other;
        *at = mine->other;
        if (cq->channel)
            cq->channel->refcnt--;
        free(mine->entries);
        free(mine);
    }
    (void)pthread_mutex_unlock(&fake_lock);
    return error;
}

/* The last completion goes before those of READs. */
static void overtake(struct fake_cq *cq)
{
    for (uint32_t i = cq->count - 1; i > 0; i--) {
        struct fake_cqe *last = &cq->entries[(cq->first + i) % cq->size];
        struct fake_cqe *before = &cq->entries[(cq->first + i - 1) % cq->size];
        if (last->qp_num != before->qp_num || before->wc.status != IBV_WC_SUCCESS ||
            before->wc.opcode != IBV_WC_RDMA_READ)
            return;
        struct fake_cqe late = *before;
        *before = *last;
        *last = late;
    }
}

void fake_complete(struct fake_qp *qp, struct ibv_wc wc, uint32_t number, bool solicited)
{
    struct fake_cq *cq = (struct fake_cq *)(number ? qp->qp.send_cq : qp->qp.recv_cq);
    wc.qp_num = qp->qp.qp_num;
    if (wc.status != IBV_WC_SUCCESS) { /* nothing else is valid then */
        wc.opcode = (enum ibv_wc_opcode)0x55;
        wc.wc_flags = UINT32_MAX;
        wc.byte_len = UINT32_MAX;
    }
    if (cq->overrun)
        return;
    if (cq->count == cq->size) {
        cq->overrun = true;
        fake_raise(IBV_EVENT_CQ_ERR, NULL, cq);
        return;
    }
    cq->entries[(cq->first + cq->count++) % cq->size] =
        (struct fake_cqe){.wc = wc, .qp_num = qp->qp.qp_num, .number = number};
    if (fake.config.late_reads && wc.status == IBV_WC_SUCCESS && wc.opcode != IBV_WC_RDMA_READ)
        overtake(cq);
    if (cq->armed && (!cq->solicited_only || solicited || wc.status != IBV_WC_SUCCESS))
        notify(cq);
}

static struct fake_qp *qp_of(uint32_t number)
{
    for (struct fake_qp *qp = fake.qps; qp; qp = qp->other)
        if (qp->qp.qp_num == number)
            return qp;
    return NULL;
}

int fake_poll_cq(struct ibv_cq *it, int count, struct ibv_wc *wc)
{
    struct fake_cq *cq = (struct fake_cq *)it;
    int taken = 0;
    (void)pthread_mutex_lock(&fake_lock);
    for (struct fake_qp *qp = fake.qps; qp && fake.config.lazy; qp = qp->other)
        if (qp->qp.send_cq == it)
            fake_run(qp);
    if (cq->overrun || (cq->count > 0 && fake_call("ibv_poll_cq", EIO))) {
        taken = -1;
        errno = EIO;
    }
    for (; taken >= 0 && taken < count && cq->count > 0; taken++) {
        const struct fake_cqe *entry = &cq->entries[cq->first];
        struct fake_qp *qp = qp_of(entry->qp_num);
        if (qp && entry->number)
            qp->retired = entry->number > qp->retired ? entry->number : qp->retired;
        wc[taken] = entry->wc;
        cq->first = (cq->first + 1) % cq->size;
        cq->count--;
    }
    (void)pthread_mutex_unlock(&fake_lock);
    return taken;
}

int fake_req_notify_cq(struct ibv_cq *it, int solicited_only)
{
    struct fake_cq *cq = (struct fake_cq *)it;
    (void)pthread_mutex_lock(&fake_lock);
    int error = fake_call("ibv_req_notify_cq", EIO) ? EIO : 0;
    if (error == 0) {
        cq->solicited_only = solicited_only && (!cq->armed || cq->solicited_only);
        cq->armed = true;
    }
    (void)pthread_mutex_unlock(&fake_lock);
    return error;
}

/* ---- queue pairs ------------------------------------------------------------------------- */

struct fake_qp *fake_make_qp(struct ibv_pd *pd, const struct ibv_qp_init_attr *init)
{
    bool iwarp = fake.config.kind == FAKE_SIW;
    const struct ibv_qp_cap *cap = &init->cap;
    if (cap->max_inline_data > (iwarp ? 80 : FAKE_INLINE) || cap->max_send_wr > FAKE_WRS ||
        cap->max_recv_wr > FAKE_WRS || cap->max_send_sge > (iwarp ? 6 : FAKE_SGES) ||
        cap->max_recv_sge > (iwarp ? 6 : FAKE_SGES) || init->qp_type != IBV_QPT_RC) {
        errno = EINVAL;
        return NULL;
    }
    struct fake_qp *qp = calloc(1, sizeof *qp);
    qp->qp = (struct ibv_qp){.context = pd->context,
                             .qp_context = init->qp_context,
                             .pd = pd,
                             .send_cq = init->send_cq,
                             .recv_cq = init->recv_cq,
                             .qp_num = ++fake.next_number,
                             .state = IBV_QPS_RESET,
                             .qp_type = IBV_QPT_RC};
    qp->cap = *cap;
    qp->sends = calloc(cap->max_send_wr ? cap->max_send_wr : 1, sizeof *qp->sends);
    qp->recvs = calloc(cap->max_recv_wr ? cap->max_recv_wr : 1, sizeof *qp->recvs);
    qp->other = fake.qps;
    fake.qps = qp;
    return qp;
}

void fake_free_qp(struct fake_qp *qp)
{
    struct fake_qp **at = &fake.qps;
    if (fake_unbind_all(qp))
        fake_breaks("a queue pair is destroyed while a window is bound to it");
    drop_async(qp);
    fake_wait(&qp->async, "ibv_destroy_qp");
    if (qp->peer)
        qp->peer->peer = NULL;
    while (*at != qp)
        at = &(*at)->other;
    *at = qp->other;
    free(qp->sends);
    free(qp->recvs);
    free(qp);
}

struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *qp_init_attr)
{
    (void)pthread_mutex_lock(&fake_lock);
    struct fake_qp *qp = fake_call("ibv_create_qp", ENOMEM) ? NULL : fake_make_qp(pd, qp_init_attr);
    (void)pthread_mutex_unlock(&fake_lock);
    return qp ? &qp->qp : NULL;
}

int ibv_destroy_qp(struct ibv_qp *qp)
{
    (void)pthread_mutex_lock(&fake_lock);
    fake_free_qp((struct fake_qp *)qp);
    (void)pthread_mutex_unlock(&fake_lock);
    return 0;
}

void fake_to_error(struct fake_qp *qp)
{
    qp->qp.state = IBV_QPS_ERR;
    for (; qp->sends_count > 0; qp->sends_count--) {
        const struct fake_send *send = &qp->sends[qp->sends_first];
        qp->sends_first = (qp->sends_first + 1) % qp->cap.max_send_wr;
        fake_complete(qp, (struct ibv_wc){.wr_id = send->wr.wr_id, .status = IBV_WC_WR_FLUSH_ERR},
                      send->number, false);
    }
    for (; qp->recvs_count > 0; qp->recvs_count--) {
        uint64_t wr_id = qp->recvs[qp->recvs_first].wr_id;
        qp->recvs_first = (qp->recvs_first + 1) % qp->cap.max_recv_wr;
        fake_complete(qp, (struct ibv_wc){.wr_id = wr_id, .status = IBV_WC_WR_FLUSH_ERR}, 0, false);
    }
}

/* Without librdmacm, as far as a queue pair that is its own peer goes: what the InfiniBand
 * specification demands of each step. */
static int step(struct fake_qp *qp, const struct ibv_qp_attr *attr, int mask)
{
    static const struct {
        enum ibv_qp_state from;
        int demanded;
    } steps[] = {
        [IBV_QPS_INIT] = {IBV_QPS_RESET, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS},
        [IBV_QPS_RTR] = {IBV_QPS_INIT, IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                                           IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
                                           IBV_QP_MIN_RNR_TIMER},
        [IBV_QPS_RTS] = {IBV_QPS_RTR, IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                                          IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC}};
    if (attr->qp_state < IBV_QPS_INIT || attr->qp_state > IBV_QPS_RTS ||
        fake.config.kind == FAKE_SIW || qp->qp.state != steps[attr->qp_state].from ||
        mask != (IBV_QP_STATE | steps[attr->qp_state].demanded))
        return EINVAL;
    if (attr->qp_state == IBV_QPS_RTR) {
        if (attr->dest_qp_num != qp->qp.qp_num || !attr->ah_attr.is_global)
            return EINVAL;
        qp->peer = qp;
    }
    qp->qp.state = attr->qp_state;
    return 0;
}

int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int attr_mask)
{
    (void)pthread_mutex_lock(&fake_lock);
    int error = fake_call("ibv_modify_qp", EINVAL) || fake.dead ? EINVAL : 0;
    if (error == 0 && attr_mask == IBV_QP_STATE && attr->qp_state == IBV_QPS_ERR)
        fake_to_error((struct fake_qp *)qp);
    else if (error == 0)
        error = step((struct fake_qp *)qp, attr, attr_mask);
    (void)pthread_mutex_unlock(&fake_lock);
    return error;
}

/* ---- posting ----------------------------------------------------------------------------- */

static int post_one(struct fake_qp *qp, const struct ibv_send_wr *wr)
{
    bool iwarp = fake.config.kind == FAKE_SIW;
    bool no_data = wr->opcode == IBV_WR_BIND_MW || wr->opcode == IBV_WR_LOCAL_INV;
    bool refused = wr->opcode == IBV_WR_SEND_WITH_IMM || wr->opcode == IBV_WR_RDMA_WRITE_WITH_IMM ||
                   wr->opcode == IBV_WR_ATOMIC_CMP_AND_SWP ||
                   wr->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD || no_data;
    if ((iwarp && refused) || wr->num_sge < 0 || (uint32_t)wr->num_sge > qp->cap.max_send_sge ||
        (iwarp && wr->opcode == IBV_WR_RDMA_READ && wr->num_sge > 1) ||
        (qp->qp.state != IBV_QPS_RTS && qp->qp.state != IBV_QPS_ERR))
        return EINVAL;
    if (qp->posted - qp->retired >= qp->cap.max_send_wr)
        return ENOMEM;
    struct fake_send *send = &qp->sends[(qp->sends_first + qp->sends_count) % qp->cap.max_send_wr];
    *send = (struct fake_send){.wr = *wr};
    for (int i = 0; i < wr->num_sge; i++) {
        send->sges[i] = wr->sg_list[i];
        send->length += wr->sg_list[i].length;
    }
    send->wr.sg_list = send->sges;
    if (wr->send_flags & IBV_SEND_INLINE) {
        if (send->length > qp->cap.max_inline_data)
            return EINVAL;
        char *to = send->octets;
        for (int i = 0; i < wr->num_sge; i++) {
            memcpy(to, (const void *)(uintptr_t)wr->sg_list[i].addr, wr->sg_list[i].length);
            to += wr->sg_list[i].length;
        }
    }
    if (wr->opcode == IBV_WR_BIND_MW)
        send->mw_rkey = wr->bind_mw.mw->rkey;
    send->number = ++qp->posted;
    qp->sends_count++;
    return 0;
}

int fake_post_send(struct ibv_qp *it, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
    struct fake_qp *qp = (struct fake_qp *)it;
    (void)pthread_mutex_lock(&fake_lock);
    int error = fake_call("ibv_post_send", ENOMEM) ? ENOMEM : 0;
    for (; wr && error == 0; wr = error ? wr : wr->next)
        error = post_one(qp, wr);
    if (error)
        *bad = wr;
    if (qp->qp.state == IBV_QPS_ERR)
        fake_to_error(qp);
    else if (!fake.config.lazy)
        fake_run(qp);
    (void)pthread_mutex_unlock(&fake_lock);
    return error;
}

int fake_post_recv(struct ibv_qp *it, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
    struct fake_qp *qp = (struct fake_qp *)it;
    (void)pthread_mutex_lock(&fake_lock);
    int error = fake_call("ibv_post_recv", ENOMEM) ? ENOMEM : 0;
    for (; wr && error == 0; wr = wr->next) {
        *bad = wr;
        if (qp->recvs_count == qp->cap.max_recv_wr)
            error = ENOMEM;
        else if (wr->num_sge < 0 || (uint32_t)wr->num_sge > qp->cap.max_recv_sge ||
                 qp->qp.state == IBV_QPS_RESET)
            error = EINVAL;
        if (error)
            break;
        struct fake_recv *recv =
            &qp->recvs[(qp->recvs_first + qp->recvs_count++) % qp->cap.max_recv_wr];
        *recv = (struct fake_recv){.wr_id = wr->wr_id, .count = wr->num_sge};
        for (int i = 0; i < wr->num_sge; i++) {
            recv->sges[i] = wr->sg_list[i];
            recv->length += wr->sg_list[i].length;
        }
    }
    if (qp->qp.state == IBV_QPS_ERR)
        fake_to_error(qp);
    (void)pthread_mutex_unlock(&fake_lock);
    return error;
}
