/* SPDX-License-Identifier: BSD-3-Clause */
/* Posting and polling. */
#include "net/verbs/state.h"

#include <endian.h>
#include <stdlib.h>

#include "net/request.h"

#define RECV_QUEUE (1ull << 32)

static uint64_t pack(const struct verbs_conn *c, bool recv, uint32_t number)
{
    return (uint64_t)c->number << 48 | (uint64_t)(c->life & VERBS_LIVES) << 33 |
           (recv ? RECV_QUEUE : 0) | number;
}

/* ---- completion queues ----------------------------------------------------------------------- */

int verbs_cq_create(struct rdma *r, uint32_t depth, uint32_t *cq)
{
    struct verbs_handle *h = verbs_of(r);
    if (depth == 0 || depth > h->device->caps.max_cq)
        return -EINVAL;
    uint32_t number = 0;
    while (number < h->cq_count && h->cqs[number])
        number++;
    if (number == h->cq_count) {
        struct verbs_cq **larger = realloc(h->cqs, (number + 1) * sizeof *larger);
        if (!larger)
            return verbs_failed(h, "realloc", ENOMEM);
        h->cqs = larger;
        h->cqs[number] = NULL;
        h->cq_count++;
    }
    struct verbs_cq *made = calloc(1, sizeof *made);
    if (!made)
        return verbs_failed(h, "calloc", ENOMEM);
    made->handle = h;
    made->cq = ibv_create_cq(h->device->context, (int)depth, made, h->completions, 0);
    if (!made->cq) {
        free(made);
        return verbs_failed(h, "ibv_create_cq", verbs_error(-1));
    }
    h->cqs[number] = made;
    h->armed = false;
    *cq = number;
    return 0;
}

static struct verbs_cq *cq_of(struct verbs_handle *h, uint32_t cq)
{
    return cq < h->cq_count ? h->cqs[cq] : NULL;
}

int verbs_cq_destroy(struct rdma *r, uint32_t cq)
{
    struct verbs_handle *h = verbs_of(r);
    struct verbs_cq *q = cq_of(h, cq);
    if (!q)
        return -EINVAL;
    if (q->users)
        return -EBUSY;
    int result = ibv_destroy_cq(q->cq);
    if (result != 0)
        return verbs_failed(h, "ibv_destroy_cq", verbs_error(result));
    free(q);
    h->cqs[cq] = NULL;
    return 0;
}

int verbs_cq_arm(struct rdma *r, uint32_t cq, bool solicited_only)
{
    struct verbs_handle *h = verbs_of(r);
    struct verbs_cq *q = cq_of(h, cq);
    if (!q)
        return -EINVAL;
    int result = ibv_req_notify_cq(q->cq, solicited_only);
    return result ? verbs_failed(h, "ibv_req_notify_cq", verbs_error(result)) : 0;
}

/* ---- posting --------------------------------------------------------------------------------- */

static const enum ibv_wr_opcode opcodes[] = {
    [RDMA_NOOP] = IBV_WR_RDMA_WRITE, /* of no octets, which looks at no STag */
    [RDMA_SEND] = IBV_WR_SEND,
    [RDMA_SEND_INV] = IBV_WR_SEND_WITH_INV,
    [RDMA_WRITE] = IBV_WR_RDMA_WRITE,
    [RDMA_WRITE_IMM] = IBV_WR_RDMA_WRITE_WITH_IMM,
    [RDMA_READ] = IBV_WR_RDMA_READ,
    [RDMA_FETCH_ADD] = IBV_WR_ATOMIC_FETCH_AND_ADD,
    [RDMA_CAS] = IBV_WR_ATOMIC_CMP_AND_SWP,
    [RDMA_BIND] = IBV_WR_BIND_MW,
    [RDMA_LOCAL_INV] = IBV_WR_LOCAL_INV,
};

int verbs_acceptable(const struct rdma_caps *caps, const struct rdma_wr *wr, uint32_t max_sge,
                     uint32_t max_inline)
{
    uint32_t sges = wr->op == RDMA_READ ? caps->max_read_sge : caps->max_sge;
    int failed = rdma_request_check(wr, caps->bits, sges < max_sge ? sges : max_sge, max_inline);
    if (failed)
        return failed;
    if (wr->op == RDMA_LOCAL_INV && (caps->bits & RDMA_CAP_WINDOW) == 0)
        return -ENOTSUP;
    bool misaligned = rdma_is_atomic(wr->op) && wr->remote_to % 8 != 0;
    bool lost =
        wr->op == RDMA_SEND_INV && wr->flags & RDMA_INLINE && caps->binding == RDMA_BINDING_RDMAP;
    return misaligned || lost || rdma_request_octets(wr) > caps->max_message ? -EINVAL : 0;
}

/* Could the connection execute this? 0 or -errno. */
static int acceptable(struct verbs_conn *c, const struct rdma_wr *wr)
{
    int error =
        verbs_acceptable(&c->handle->device->caps, wr, c->config.max_sge, c->config.max_inline);
    return error == 0 && wr->op == RDMA_BIND ? verbs_window_ready(c, wr) : error;
}

static unsigned flags_of(const struct rdma_wr *wr)
{
    unsigned flags = 0;
    flags |= wr->flags & RDMA_SIGNALED ? IBV_SEND_SIGNALED : 0u;
    flags |= wr->flags & RDMA_FENCE ? IBV_SEND_FENCE : 0u;
    flags |= wr->flags & RDMA_SOLICIT ? IBV_SEND_SOLICITED : 0u;
    flags |= wr->flags & RDMA_INLINE ? IBV_SEND_INLINE : 0u;
    return flags;
}

static void copy_sges(const struct rdma_sge *from, uint32_t count, struct ibv_sge *to)
{
    for (uint32_t i = 0; i < count; i++)
        to[i] = (struct ibv_sge){(uint64_t)(uintptr_t)from[i].addr, from[i].length, from[i].lkey};
}

void verbs_translate(const struct rdma_wr *wr, struct ibv_send_wr *out, struct ibv_sge *sges)
{
    *out = (struct ibv_send_wr){.sg_list = sges,
                                .num_sge = (int)wr->sge_count,
                                .opcode = opcodes[wr->op],
                                .send_flags = flags_of(wr)};
    copy_sges(wr->sges, wr->sge_count, sges);
    switch (wr->op) {
    case RDMA_SEND_INV:
        out->wr.rdma.rkey = wr->imm_stag; /* where siw's library takes it from */
        __attribute__((fallthrough));
    case RDMA_LOCAL_INV:
        out->invalidate_rkey = wr->imm_stag;
        break;
    case RDMA_WRITE_IMM:
        out->imm_data = htobe32(wr->imm_stag);
        __attribute__((fallthrough));
    case RDMA_WRITE:
    case RDMA_READ:
        out->wr.rdma.remote_addr = wr->remote_to;
        out->wr.rdma.rkey = wr->remote_stag;
        break;
    case RDMA_FETCH_ADD:
    case RDMA_CAS:
        out->wr.atomic.remote_addr = wr->remote_to;
        out->wr.atomic.rkey = wr->remote_stag;
        out->wr.atomic.compare_add = wr->op == RDMA_CAS ? wr->cas.compare : wr->fetch_add.add;
        out->wr.atomic.swap = wr->op == RDMA_CAS ? wr->cas.swap : 0;
        break;
    case RDMA_NOOP:
        out->num_sge = 0;
        break;
    default:
        break;
    }
}

static void translate(struct verbs_conn *c, const struct rdma_wr *wr, struct ibv_send_wr *out,
                      struct ibv_sge *sges)
{
    verbs_translate(wr, out, sges);
    out->wr_id = pack(c, false, c->send.next);
    if (wr->op == RDMA_BIND)
        verbs_window_bind(c, wr, out);
}

static void remember(struct verbs_queue *q, uint64_t wr_id, uint32_t op, bool late)
{
    q->posted[q->next & (q->size - 1)] =
        (struct verbs_posted){.wr_id = wr_id, .op = op, .late = late};
    q->next++;
    q->late += late;
}

static bool may_send(const struct verbs_conn *c)
{
    return (c->told_connected || c->received) && !c->told_disconnected;
}

int verbs_post_send(struct rdma *r, uint32_t conn, const struct rdma_wr *wrs, uint32_t count)
{
    struct verbs_handle *h = verbs_of(r);
    struct verbs_conn *c = verbs_conn_of(h, conn);
    if (!c || !may_send(c))
        return -ENOTCONN;
    if (count > c->send.depth - (c->send.next - c->send.done))
        return -ENOMEM;
    for (uint32_t i = 0; i < count; i++) {
        int error = acceptable(c, &wrs[i]);
        if (error != 0)
            return error;
    }
    h->counts.work_requests += count;
    while (count > 0) {
        uint32_t now = 0;
        do {
            translate(c, &wrs[now], &h->wrs[now], &h->sges[(size_t)now * VERBS_SGES]);
            h->wrs[now].next = &h->wrs[now + 1];
            remember(&c->send, wrs[now].wr_id, wrs[now].op,
                     wrs[now].op == RDMA_READ && wrs[now].flags & RDMA_SIGNALED);
            now++;
        } while (now < count && now < VERBS_BATCH && !verbs_window_waits(c, &wrs[now]));
        h->wrs[now - 1].next = NULL;
        struct ibv_send_wr *bad = NULL;
        if (c->state == VERBS_CONNECTED || c->state == VERBS_CONNECTING) {
            int result = ibv_post_send(c->qp, h->wrs, &bad);
            h->counts.send_batches++;
            /* Drivers do not say for sure what of it went: the end completes all of it. */
            if (result != 0)
                verbs_end(c, verbs_failed(h, "ibv_post_send", verbs_error(result)));
        }
        for (uint32_t i = 0; i < now; i++)
            verbs_window_posted(c, &wrs[i]);
        wrs += now;
        count -= now;
    }
    return 0;
}

/* Posts receives, at most VERBS_BATCH at a time; those posted are remembered. Returns 0 or what the
 * device said. */
static int give_receives(struct verbs_conn *c, const struct rdma_wr *wrs, uint32_t count)
{
    struct verbs_handle *h = c->handle;
    int result = 0;
    h->counts.work_requests += count;
    while (count > 0) {
        uint32_t now = count < VERBS_BATCH ? count : VERBS_BATCH;
        for (uint32_t i = 0; i < now; i++) {
            struct ibv_sge *sges = &h->sges[(size_t)i * VERBS_SGES];
            copy_sges(wrs[i].sges, wrs[i].sge_count, sges);
            h->recvs[i] = (struct ibv_recv_wr){.wr_id = pack(c, true, c->recv.next),
                                               .next = i + 1 < now ? &h->recvs[i + 1] : NULL,
                                               .sg_list = sges,
                                               .num_sge = (int)wrs[i].sge_count};
            remember(&c->recv, wrs[i].wr_id, RDMA_RECV, false);
        }
        struct ibv_recv_wr *bad = NULL;
        if (result == 0 && c->state != VERBS_ENDING && c->state != VERBS_LOST) {
            result = ibv_post_recv(c->qp, h->recvs, &bad);
            h->counts.recv_batches++;
        }
        wrs += now;
        count -= now;
    }
    return result;
}

static int receivable(const struct verbs_conn *c, const struct rdma_wr *wrs, uint32_t count)
{
    if (count > c->recv.depth - (c->recv.next - c->recv.done))
        return -ENOMEM;
    for (uint32_t i = 0; i < count; i++)
        if (wrs[i].sge_count > c->config.max_sge || wrs[i].sge_count > VERBS_SGES)
            return -EINVAL;
    return 0;
}

int verbs_post_receives(struct verbs_conn *c, const struct rdma_wr *wrs, uint32_t count)
{
    int error = receivable(c, wrs, count);
    if (error != 0)
        return error;
    int result = give_receives(c, wrs, count);
    return result ? verbs_failed(c->handle, "ibv_post_recv", verbs_error(result)) : 0;
}

int verbs_keep_receives(struct verbs_conn *c, const struct rdma_wr *wrs, uint32_t count)
{
    struct verbs_request *to = &c->request;
    int error = receivable(c, wrs, count);
    if (error == 0 && count > c->recv.depth - to->count)
        error = -ENOMEM;
    for (uint32_t i = 0; error == 0 && i < count; i++, to->count++) {
        struct rdma_sge *sges = &to->sges[(size_t)to->count * c->config.max_sge];
        to->receives[to->count] = wrs[i];
        to->receives[to->count].sges = sges;
        for (uint32_t s = 0; s < wrs[i].sge_count; s++)
            sges[s] = wrs[i].sges[s];
    }
    return error;
}

int verbs_post_recv(struct rdma *r, uint32_t conn, const struct rdma_wr *wrs, uint32_t count)
{
    struct verbs_handle *h = verbs_of(r);
    struct verbs_conn *c = verbs_conn_of(h, conn);
    bool may = c && !c->told_disconnected && !c->told_end && c->state != VERBS_UNUSED &&
               c->state != VERBS_REQUESTED;
    if (!may)
        return -ENOTCONN;
    if (c->state == VERBS_REJECTED)
        return 0; /* nothing of it completes, which will be told */
    if (c->state == VERBS_RESOLVING)
        return verbs_keep_receives(c, wrs, count);
    int error = receivable(c, wrs, count);
    if (error != 0)
        return error;
    int result = give_receives(c, wrs, count);
    if (result != 0)
        verbs_end(c, verbs_failed(h, "ibv_post_recv", verbs_error(result)));
    return 0;
}

/* ---- polling ----------------------------------------------------------------------------- */

enum rdma_status verbs_status_of(enum ibv_wc_status status)
{
    switch (status) {
    case IBV_WC_SUCCESS:
        return RDMA_OK;
    case IBV_WC_LOC_LEN_ERR:
        return RDMA_LENGTH_ERROR;
    case IBV_WC_LOC_QP_OP_ERR:
    case IBV_WC_LOC_PROT_ERR:
    case IBV_WC_LOC_ACCESS_ERR:
    case IBV_WC_MW_BIND_ERR:
        return RDMA_LOCAL_ERROR;
    case IBV_WC_REM_ACCESS_ERR:
        return RDMA_REMOTE_ACCESS;
    case IBV_WC_RNR_RETRY_EXC_ERR:
        return RDMA_RNR;
    case IBV_WC_RETRY_EXC_ERR:
    case IBV_WC_RESP_TIMEOUT_ERR:
        return RDMA_LOST;
    case IBV_WC_WR_FLUSH_ERR:
        return RDMA_FLUSHED;
    default:
        return RDMA_REMOTE_ERROR;
    }
}

/* What a receive says. */
static void received(const struct verbs_conn *c, const struct ibv_wc *from, struct rdma_wc *wc)
{
    wc->length = from->byte_len;
    if (from->opcode == IBV_WC_RECV_RDMA_WITH_IMM)
        wc->flags |= RDMA_WC_WRITE_IMM;
    if (from->wc_flags & IBV_WC_WITH_IMM) {
        wc->flags |= RDMA_WC_IMM;
        wc->imm = be32toh(from->imm_data);
    } else if (from->wc_flags & c->handle->device->invalidated_flag) {
        wc->flags |= RDMA_WC_INVALIDATED;
        wc->imm = from->invalidated_rkey;
    }
}

static struct verbs_posted *posted_of(const struct verbs_queue *q, uint32_t number)
{
    return &q->posted[number & (q->size - 1)];
}

/* siw tells of a WRITE or SEND as soon as it is sent, before a READ that was posted earlier is
 * done. It is held until all before it were told of. */
static bool must_wait(struct verbs_handle *h, struct verbs_queue *q, uint32_t number,
                      enum rdma_status status)
{
    struct verbs_posted *posted = posted_of(q, number);
    q->late -= posted->late;
    posted->late = false;
    if (q->late == 0 && q->held == 0)
        return false;
    for (uint32_t n = q->done; n != number && !posted->held; n++)
        posted->held = posted_of(q, n)->late || posted_of(q, n)->held;
    posted->status = (uint8_t)status;
    q->held += posted->held;
    h->holds |= posted->held;
    return posted->held;
}

/* Number `number` and those before it that were not signaled are told of. */
static struct rdma_wc tell(struct verbs_conn *c, struct verbs_queue *q, uint32_t number,
                           enum rdma_status status)
{
    const struct verbs_posted *posted = posted_of(q, number);
    q->done = number + 1;
    return (struct rdma_wc){.wr_id = posted->wr_id,
                            .conn = c->number,
                            .op = (uint8_t)posted->op,
                            .status = (uint8_t)status};
}

/* The first that is held, when nothing is late before it. */
static bool may_tell(const struct verbs_queue *q, uint32_t *number)
{
    for (*number = q->done; q->held && !posted_of(q, *number)->late; ++*number)
        if (posted_of(q, *number)->held)
            return true;
    return false;
}

static uint32_t tell_held(struct verbs_handle *h, uint32_t cq, struct rdma_wc *wc, uint32_t count)
{
    uint32_t taken = 0, number;
    h->holds = false;
    for (uint32_t i = 0; i < h->device->config.connections; i++) {
        struct verbs_conn *c = &h->conns[i];
        while (c->config.cq == cq && taken < count && may_tell(&c->send, &number)) {
            struct verbs_posted *posted = posted_of(&c->send, number);
            posted->held = false;
            c->send.held--;
            wc[taken++] = tell(c, &c->send, number, posted->status);
        }
        h->holds |= c->send.held != 0;
    }
    return taken;
}

/* One of the device's; false: nobody waits for it. */
static bool take(struct verbs_handle *h, const struct ibv_wc *from, struct rdma_wc *wc)
{
    struct verbs_conn *c = verbs_conn_of(h, (uint32_t)(from->wr_id >> 48));
    bool recv = from->wr_id & RECV_QUEUE;
    uint32_t number = (uint32_t)from->wr_id;
    if (!c || c->state == VERBS_UNUSED || c->state == VERBS_REJECTED ||
        (from->wr_id >> 33 & VERBS_LIVES) != (c->life & VERBS_LIVES))
        return false;
    enum rdma_status status = verbs_status_of(from->status);
    if (status == RDMA_FLUSHED) { /* told when the queue pair is gone */
        verbs_lose(c);
        return false;
    }
    if (status != RDMA_OK)
        verbs_end(c, -ECONNRESET);
    struct verbs_queue *q = recv ? &c->recv : &c->send;
    if (number - q->done >= q->next - q->done)
        return false; /* told before */
    /* A receive that is too small is no valid place for a message to InfiniBand. */
    if (from->status == IBV_WC_REM_INV_REQ_ERR && posted_of(q, number)->op <= RDMA_SEND_INV)
        status = RDMA_LENGTH_ERROR;
    if (must_wait(h, q, number, status))
        return false;
    *wc = tell(c, q, number, status);
    if (recv && status == RDMA_OK) {
        c->received = true;
        received(c, from, wc);
    }
    return true;
}

int verbs_cq_poll(struct rdma *r, uint32_t cq, struct rdma_wc *wc, uint32_t count)
{
    struct verbs_handle *h = verbs_of(r);
    struct verbs_cq *q = cq_of(h, cq);
    if (!q)
        return -EINVAL;
    uint32_t taken = 0;
    bool empty = false;
    while (!atomic_load(&q->broken) && !empty && taken < count) {
        struct ibv_wc from[VERBS_BATCH];
        uint32_t want = count - taken < VERBS_BATCH ? count - taken : VERBS_BATCH;
        int got = ibv_poll_cq(q->cq, (int)want, from);
        if (got < 0) {
            atomic_store(&q->broken, true);
            (void)verbs_failed(h, "ibv_poll_cq", verbs_error(got));
            break;
        }
        for (int i = 0; i < got; i++)
            taken += take(h, &from[i], &wc[taken]);
        empty = (uint32_t)got < want;
    }
    if (atomic_load(&q->broken)) {
        verbs_end_broken(h);
        return -EIO;
    }
    if (h->holds && taken < count)
        taken += tell_held(h, cq, wc + taken, count - taken);
    if (empty && h->moving && taken < count)
        taken += verbs_flush(h, cq, wc + taken, count - taken);
    if (taken > 0)
        h->armed = false;
    return (int)taken;
}
