/* SPDX-License-Identifier: BSD-3-Clause */
/* The receiving side: what messages do when they arrive, and what is answered. */
#include <string.h>

#include "net/mem.h"
#include "sim/timed/nic_state.h"

/* ---- acknowledgements -------------------------------------------------------------------- */

static void acknowledged(void *context, uint64_t number)
{
    struct nic_message *m = context;
    struct nic_conn *c = m->from;
    uint32_t epoch = m->epoch, wqe = m->wqe;
    uint8_t status = m->status;
    (void)number;
    nic_message_free(c->nic->nics, m);
    if (epoch == c->epoch)
        nic_done(c, wqe, status);
}

/*
 * The sender of a message that was delivered, or refused, learns of it; it has no completion to
 * wait for unless it asked for one, and then nobody can tell when it was done.
 */
static void acknowledge(struct nic_message *m, uint8_t status)
{
    struct nic_conn *c = m->from;
    struct sim_nics *nics = c->nic->nics;
    const struct nic_wqe *wqe = nic_wqe(c, m->wqe);
    m->status = status;
    if (status == RDMA_OK && !(wqe->flags & RDMA_SIGNALED)) {
        acknowledged(m, 0);
        return;
    }
    uint64_t at_ps = m->received_ps + c->flow->latency_ns * (uint64_t)PS +
                     nic_ps(nics->costs->acknowledge_ns + nics->costs->completion_ns);
    sim_clock_at(nics->clock, nic_ns(nic_later(at_ps, nic_now_ps(nics))), acknowledged, m,
                 (uintptr_t)c);
}

/* ---- what is answered -------------------------------------------------------------------- */

/* The answer, whose octets have been read, leaves. */
static void answer_leaves(void *context, uint64_t number)
{
    struct nic_message *m = context;
    struct nic_conn *c = m->from;
    (void)number;
    if (m->epoch == c->epoch)
        nic_send(m);
    else
        nic_message_free(c->nic->nics, m);
}

static uint64_t executed(const struct nic_wqe *wqe, uint64_t before)
{
    if (wqe->op == RDMA_FETCH_ADD)
        return mem_masked_sum64(before, wqe->operand[0], wqe->operand[1]);
    if ((before ^ wqe->operand[0]) & wqe->operand[1])
        return before;
    return (before & ~wqe->operand[3]) | (wqe->operand[2] & wqe->operand[3]);
}

/* What is asked for, in an answer; an atomic is executed in this moment. */
static struct nic_message *prepare(const struct nic_conn *c, const struct nic_wqe *wqe)
{
    const struct sim_phantom *phantom = NULL;
    bool reads = wqe->op == RDMA_READ;
    uint32_t length = wqe->length;
    char *at = nic_remote(c, wqe->remote_stag, wqe->remote_to, length,
                          reads ? RDMA_REMOTE_READ : RDMA_REMOTE_ATOMIC, &phantom);
    struct nic_message *m = nic_message_new(c->nic->nics, length, phantom ? 0 : length);
    if (!m || length == 0)
        return m;
    if (!at || (!reads && phantom) || !nic_take(m, at, phantom)) {
        m->length = 0;
        m->status = RDMA_REMOTE_ACCESS;
    } else if (!reads) {
        uint64_t before, after;
        memcpy(&before, at, sizeof before);
        after = executed(wqe, before);
        memcpy(at, &after, sizeof after);
    }
    return m;
}

/* `m` has brought a request to this end. */
static void answer(struct nic_conn *c, struct nic_message *m)
{
    struct sim_nics *nics = c->nic->nics;
    struct nic *nic = c->nic;
    const struct nic_wqe *wqe = nic_wqe(m->from, m->wqe);
    uint64_t ready_ps = nic_later(m->received_ps, nic_now_ps(nics)); /* it may have had to wait */
    struct nic_message *reply = prepare(c, wqe);
    if (!reply)
        return;
    c->refuses = reply->status != RDMA_OK;
    reply->from = c;
    reply->epoch = c->epoch;
    reply->wqe = m->wqe;
    reply->kind = NIC_ANSWER;
    reply->op = (uint8_t)wqe->op;
    if (wqe->op != RDMA_READ) {
        uint64_t occupied_ps = nic_ps(nics->costs->atomic_ns);
        nic->atomic_free_ps = nic_later(nic->atomic_free_ps, ready_ps) + occupied_ps;
        nic->use.atomic_busy_ps += occupied_ps;
        ready_ps = nic->atomic_free_ps + nic_ps(nics->costs->atomic_latency_ns);
    }
    reply->wire.octets = sim_costs_wire_octets(nics->costs, reply->length);
    uint64_t leaves_ps =
        nic_leaves_ps(c, reply, wqe->op == RDMA_READ ? reply->length : 0, ready_ps);
    sim_clock_at(nics->clock, nic_ns(leaves_ps), answer_leaves, reply, (uintptr_t)c);
    nic_message_free(nics, m);
}

static void answered(struct nic_conn *c, struct nic_message *m)
{
    const struct nic_wqe *wqe = nic_wqe(c, m->wqe);
    uint32_t number = m->wqe;
    uint8_t status = m->status;
    if (status == RDMA_OK && !nic_scatter(c, m, wqe->sges, wqe->sge_count))
        status = RDMA_LOCAL_ERROR;
    nic_message_free(c->nic->nics, m);
    nic_done(c, number, status);
}

/* ---- what is delivered ------------------------------------------------------------------- */

static uint8_t write_octets(const struct nic_conn *c, const struct nic_message *m,
                            const struct nic_wqe *wqe)
{
    const struct sim_phantom *phantom = NULL;
    if (m->length == 0)
        return RDMA_OK;
    char *at =
        nic_remote(c, wqe->remote_stag, wqe->remote_to, m->length, RDMA_REMOTE_WRITE, &phantom);
    return at && nic_put(m, at, phantom) ? RDMA_OK : RDMA_REMOTE_ACCESS;
}

static uint8_t take_receive(struct nic_conn *c, const struct nic_message *m,
                            const struct nic_wqe *wqe)
{
    struct rdma_wc wc = {.conn = c->index, .op = RDMA_RECV, .length = m->length};
    if (c->receive_count == 0)
        return RDMA_RNR;
    const struct nic_receive *receive = nic_receive(c, 0);
    if (wqe->op == RDMA_WRITE_IMM) {
        wc.flags = RDMA_WC_IMM | RDMA_WC_WRITE_IMM;
        wc.imm = wqe->imm_stag;
    } else if (receive->length < m->length) {
        return RDMA_LENGTH_ERROR;
    } else if (!nic_scatter(c, m, receive->sges, receive->sge_count)) {
        return RDMA_REMOTE_ERROR;
    }
    if (wqe->op == RDMA_SEND_INV) {
        if (!nic_invalidate(c, wqe->imm_stag, true))
            return RDMA_REMOTE_ACCESS;
        wc.flags = RDMA_WC_INVALIDATED;
        wc.imm = wqe->imm_stag;
    }
    wc.wr_id = receive->wr_id;
    nic_receive_taken(c);
    nic_complete(c, &wc, m->length && wqe->op != RDMA_WRITE_IMM ? receive->sges[0].addr : NULL);
    return RDMA_OK;
}

static uint8_t deliver(struct nic_conn *c, const struct nic_message *m)
{
    const struct nic_wqe *wqe = nic_wqe(m->from, m->wqe);
    uint8_t status = RDMA_OK;
    if (wqe->op == RDMA_WRITE || wqe->op == RDMA_WRITE_IMM)
        status = write_octets(c, m, wqe);
    if (status == RDMA_OK && wqe->op != RDMA_WRITE)
        status = take_receive(c, m, wqe);
    return status;
}

/* It is in memory, and seen: at the end `number` points to, the peer of the other while that is in
 * the same epoch. */
static void delivered(void *context, uint64_t number)
{
    struct nic_message *m = context;
    struct nic_conn *from = m->from, *c = (struct nic_conn *)(uintptr_t)number;
    if (m->epoch != from->epoch || from->peer_epoch != c->epoch || c->refuses ||
        (c->state != NIC_CONNECTED && c->state != NIC_CONNECTING)) {
        nic_message_free(from->nic->nics, m);
        return;
    }
    if (m->kind == NIC_ANSWER) {
        answered(c, m);
    } else if (rdma_is_answered(m->op)) {
        answer(c, m);
    } else {
        uint8_t status = deliver(c, m);
        c->refuses = status != RDMA_OK;
        if (m->op == RDMA_WRITE && c->handle->cpu.written)
            c->handle->cpu.written(c->handle->cpu.context);
        acknowledge(m, status);
    }
}

/* ---- arrival ----------------------------------------------------------------------------- */

/* Does it end with a completion that somebody polls for? */
static bool completes(const struct nic_message *m)
{
    return m->kind == NIC_ANSWER || m->op == RDMA_SEND || m->op == RDMA_SEND_INV ||
           m->op == RDMA_WRITE_IMM;
}

void nic_arrives(struct sim_wire_flow *flow, struct sim_wire_message *message, uint64_t at_ns)
{
    struct nic_message *m = (struct nic_message *)message;
    const struct nic_conn *from = m->from;
    struct sim_nics *nics = from->nic->nics;
    if (m->epoch != from->epoch) {
        nic_message_free(nics, m);
        return;
    }
    const struct sim_costs *costs = nics->costs;
    struct nic *nic = &nics->nics[flow->to];
    uint64_t occupied_ps = nic_ps(costs->receive_message_ns);
    uint64_t here_ps = nic_later(at_ns * PS, m->whole_ps + flow->latency_ns * (uint64_t)PS);
    uint64_t begin_ps = nic_later(here_ps, nic->receive_free_ps);
    nic->receive_free_ps = begin_ps + occupied_ps;
    nic->use.receive_busy_ps += occupied_ps;
    nic->use.received++;
    m->received_ps = begin_ps + nic_ps(costs->receive_latency_ns);
    uint64_t seen_ps = m->received_ps;
    if (m->length != 0) { /* a packet is written when it is here as a whole, while the next comes */
        uint32_t last = sim_costs_last_packet(costs, m->length);
        uint64_t writes_ps = nic_ps(m->length / costs->dma_write_gbytes_s);
        uint64_t last_ps = nic_ps(last / costs->dma_write_gbytes_s);
        nic->dma_write_free_ps =
            nic_later(nic->dma_write_free_ps + writes_ps - last_ps, seen_ps) + last_ps;
        nic->use.dma_write_busy_ps += writes_ps;
        seen_ps = nic->dma_write_free_ps + nic_ps(costs->dma_write_ns);
    }
    if (completes(m))
        seen_ps += nic_ps(costs->completion_ns);
    struct nic_conn *c = from->peer;
    c->delivered_ps = seen_ps = nic_later(c->delivered_ps, seen_ps);
    if (nics->watch.span) {
        nics->watch.span(nics->watch.context, SIM_SPAN_WIRE, nic->index, m->op, m->wire.octets,
                         m->begun_ps, here_ps);
        nics->watch.span(nics->watch.context, SIM_SPAN_RECEIVE, nic->index, m->op, m->length,
                         begin_ps, seen_ps);
    }
    sim_clock_plan(nics->clock, nic_ns(seen_ps), message->sequence, delivered, m, (uintptr_t)c);
}
