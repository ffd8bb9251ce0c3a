/* SPDX-License-Identifier: BSD-3-Clause */
/* How connections end. */
#include "net/verbs/state.h"

#include <stdlib.h>

#define PATIENCE_NS 200000000u /* with librdmacm, when a queue pair is in error */

void verbs_set_state(struct verbs_conn *c, enum verbs_state state)
{
    bool was = c->state != VERBS_CONNECTED && c->state != VERBS_UNUSED;
    bool is = state != VERBS_CONNECTED && state != VERBS_UNUSED;
    c->handle->moving += (uint32_t)is - (uint32_t)was;
    if ((c->state == VERBS_UNUSED) != (state == VERBS_UNUSED))
        atomic_fetch_add(&c->handle->used, state == VERBS_UNUSED ? UINT32_MAX : 1u);
    c->state = state;
}

static void to_error(struct verbs_conn *c)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
    if (c->qp)
        (void)ibv_modify_qp(c->qp, &attr, IBV_QP_STATE); /* where it fails it has ended already */
}

void verbs_end(struct verbs_conn *c, int error)
{
    switch (c->state) {
    case VERBS_REQUESTED: /* who accepts is told */
        c->gone = error ? error : -ECONNRESET;
        break;
    case VERBS_RESOLVING:
        verbs_tell(c, RDMA_EVENT_REJECTED, error ? error : -ECONNRESET);
        verbs_set_state(c, VERBS_REJECTED);
        break;
    case VERBS_CONNECTING:
        to_error(c);
        if (!c->received) {
            verbs_tell(c, RDMA_EVENT_REJECTED, error ? error : -ECONNRESET);
            verbs_set_state(c, VERBS_REJECTED);
            break;
        }
        /* Its peer has been connected, though nobody said so here. */
        verbs_tell(c, RDMA_EVENT_CONNECTED, 0);
        verbs_tell(c, RDMA_EVENT_DISCONNECTED, error);
        verbs_set_state(c, VERBS_ENDING);
        (void)rdma_disconnect(c->id);
        break;
    case VERBS_CONNECTED:
    case VERBS_LOST:
        to_error(c);
        verbs_tell(c, RDMA_EVENT_DISCONNECTED, error);
        verbs_set_state(c, VERBS_ENDING);
        (void)rdma_disconnect(c->id); /* tells the peer, or answers it */
        break;
    default:
        break;
    }
}

void verbs_lose(struct verbs_conn *c)
{
    if (c->state == VERBS_CONNECTING)
        verbs_end(c, -ECONNRESET);
    if (c->state != VERBS_CONNECTED)
        return;
    c->deadline_ns = verbs_now_ns() + PATIENCE_NS;
    verbs_set_state(c, VERBS_LOST);
    verbs_set_clock(c->handle);
}

int verbs_disconnect(struct rdma *r, uint32_t conn)
{
    struct verbs_handle *h = verbs_of(r);
    struct verbs_conn *c = verbs_conn_of(h, conn);
    if (!c || !(c->state == VERBS_CONNECTED || c->state == VERBS_LOST || c->told_connected ||
                c->received))
        return -EINVAL;
    verbs_end(c, 0);
    return 0;
}

/* ---- what was posted --------------------------------------------------------------------- */

/* The queue pair goes: from here on nothing of the connection touches memory. What the completion
 * queue still holds is taken first, or not at all. */
static void drop_queue_pair(struct verbs_conn *c)
{
    verbs_windows_end(c);
    if (c->qp)
        rdma_destroy_qp(c->id);
    c->qp = NULL;
}

static uint32_t flush_queue(struct verbs_conn *c, struct verbs_queue *q, struct rdma_wc *wc,
                            uint32_t count)
{
    uint32_t n = 0;
    for (; n < count && q->done != q->next; n++) {
        const struct verbs_posted *posted = &q->posted[q->done++ & (q->size - 1)];
        wc[n] = (struct rdma_wc){.wr_id = posted->wr_id,
                                 .conn = c->number,
                                 .op = (uint8_t)posted->op,
                                 .status = RDMA_FLUSHED};
    }
    return n;
}

/* Nothing is left that completes? */
static void drained(struct verbs_conn *c)
{
    if (c->send.done != c->send.next || c->recv.done != c->recv.next)
        return;
    drop_queue_pair(c);
    verbs_tell(c, RDMA_EVENT_DRAINED, 0);
    verbs_set_state(c, VERBS_DRAINED);
}

uint32_t verbs_flush(struct verbs_handle *h, uint32_t cq, struct rdma_wc *wc, uint32_t count)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < h->device->config.connections; i++) {
        struct verbs_conn *c = &h->conns[i];
        if (c->state != VERBS_ENDING || c->config.cq != cq || !c->told_disconnected)
            continue;
        if (c->qp) {
            drop_queue_pair(c); /* what came in the meantime is taken by the next poll */
            continue;
        }
        n += flush_queue(c, &c->send, wc + n, count - n);
        n += flush_queue(c, &c->recv, wc + n, count - n);
        drained(c);
    }
    return n;
}

void verbs_drain(struct verbs_handle *h)
{
    for (uint32_t i = 0; i < h->device->config.connections; i++) {
        struct verbs_conn *c = &h->conns[i];
        if (c->state != VERBS_ENDING || !c->told_disconnected)
            continue;
        if (atomic_load(&h->cqs[c->config.cq]->broken)) { /* nobody can be told of these */
            c->send.done = c->send.next;
            c->recv.done = c->recv.next;
        }
        drained(c);
    }
}

void verbs_end_broken(struct verbs_handle *h)
{
    for (uint32_t i = 0; i < h->device->config.connections; i++) {
        struct verbs_conn *c = &h->conns[i];
        if (c->send.posted && atomic_load(&h->cqs[c->config.cq]->broken))
            verbs_end(c, -EIO);
    }
}

/* ---- freeing ----------------------------------------------------------------------------- */

void verbs_conn_free(struct verbs_conn *c)
{
    struct verbs_handle *h = c->handle;
    drop_queue_pair(c);
    if (c->send.posted)
        h->cqs[c->config.cq]->users--;
    if (c->id)
        (void)rdma_destroy_id(c->id);
    free(c->send.posted);
    free(c->recv.posted);
    free(c->request.receives);
    free(c->request.sges);
    verbs_set_state(c, VERBS_UNUSED);
    uint32_t number = c->number, life = c->life + 1;
    *c = (struct verbs_conn){.handle = h, .number = number, .life = life};
}

int verbs_destroy(struct rdma *r, uint32_t conn)
{
    struct verbs_handle *h = verbs_of(r);
    struct verbs_conn *c = verbs_conn_of(h, conn);
    if (!c || c->state == VERBS_UNUSED)
        return -EINVAL;
    if (!c->told_end)
        return -EBUSY;
    verbs_conn_free(c);
    return 0;
}
