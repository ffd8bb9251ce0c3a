/* SPDX-License-Identifier: BSD-3-Clause */
/* The sending side: from posted work requests to messages on the wire, and to completions. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sim/timed/nic_state.h"

#define LEAST_ROOM 256u /* octets of a message: those of the protocol fit */

/* ---- messages ---------------------------------------------------------------------------- */

static uint32_t class_of(uint32_t room)
{
    return room <= LEAST_ROOM ? 0 : 32u - (uint32_t)__builtin_clz((room - 1) / LEAST_ROOM);
}

struct nic_message *nic_message_new(struct sim_nics *nics, uint32_t length, uint32_t room)
{
    uint32_t class = class_of(room);
    struct nic_message *m = nics->free_messages[class];
    if (m) {
        nics->free_messages[class] = (struct nic_message *)m->wire.next;
    } else {
        room = LEAST_ROOM << class;
        m = nic_allocate_lines(nics, 1, sizeof *m + room);
        if (!m) {
            nics->clock->no_memory = nics->clock->stopped = true;
            return NULL;
        }
        m->next = nics->messages;
        nics->messages = m;
        m->room = room;
    }
    m->status = RDMA_OK;
    m->is_phantom = false;
    m->length = length;
    m->whole_ps = 0;
    if (++nics->under_way > nics->most_under_way)
        nics->most_under_way = nics->under_way;
    return m;
}

void nic_message_free(struct sim_nics *nics, struct nic_message *m)
{
    uint32_t class = class_of(m->room);
    m->wire.next = (struct sim_wire_message *)nics->free_messages[class]; /* its first member */
    nics->free_messages[class] = m;
    nics->under_way--;
}

uint64_t nic_leaves_ps(struct nic_conn *c, struct nic_message *m, uint32_t dma_octets,
                       uint64_t ready_ps)
{
    struct nic *nic = c->nic;
    const struct sim_costs *costs = nic->nics->costs;
    uint64_t begin_ps = nic_later(ready_ps, nic->send_free_ps);
    uint64_t occupied_ps = nic_ps(costs->send_message_ns);
    nic->send_free_ps = begin_ps + occupied_ps;
    nic->use.send_busy_ps += occupied_ps;
    nic->use.sent++;
    uint64_t leaves_ps = begin_ps + nic_ps(costs->send_latency_ns);
    if (dma_octets != 0) {
        uint64_t reads_ps = nic_ps(dma_octets / costs->dma_read_gbytes_s);
        uint64_t first_ps = nic_later(leaves_ps, nic->dma_read_free_ps);
        nic->dma_read_free_ps = first_ps + reads_ps;
        nic->use.dma_read_busy_ps += reads_ps;
        /* A packet leaves when it is there as a whole, while the next one is read. */
        uint32_t first = sim_costs_first_packet(costs, dma_octets);
        uint32_t last = sim_costs_last_packet(costs, dma_octets);
        uint64_t latency_ps = nic_ps(costs->dma_read_ns);
        leaves_ps = first_ps + latency_ps + nic_ps(first / costs->dma_read_gbytes_s);
        m->whole_ps = first_ps + latency_ps + reads_ps +
                      nic_ps((last + costs->header_octets) * 8 / costs->link_gbits_s);
    }
    c->leaves_ps = nic_later(c->leaves_ps, leaves_ps);
    if (nic->nics->watch.span)
        nic->nics->watch.span(nic->nics->watch.context, SIM_SPAN_SEND, nic->index, m->op, m->length,
                              begin_ps, c->leaves_ps);
    return c->leaves_ps;
}

void nic_send(struct nic_message *m)
{
    struct sim_nics *nics = m->from->nic->nics;
    struct sim_wire_flow *flow = m->from->flow;
    m->begun_ps = nic_now_ps(nics);
    if (flow->from != flow->to) {
        sim_wire_send(nics->wire, flow, &m->wire);
    } else { /* it turns round within the RNIC */
        m->wire.sequence = sim_clock_sequence(nics->clock);
        nic_arrives(flow, &m->wire, nics->clock->now_ns);
    }
}

/* ---- beginning --------------------------------------------------------------------------- */

static bool is_here(uint32_t op)
{
    return op == RDMA_NOOP || op == RDMA_BIND || op == RDMA_LOCAL_INV;
}

/* The octets of the work request are read, and go to the peer. */
static void leaves(void *context, uint64_t number)
{
    struct nic_message *m = context;
    struct nic_conn *c = m->from;
    struct sim_nics *nics = c->nic->nics;
    bool well = true;
    (void)number;
    if (c->epoch != m->epoch) {
        nic_message_free(nics, m);
        return;
    }
    const struct nic_wqe *wqe = nic_wqe(c, m->wqe);
    if (wqe->flags & RDMA_INLINE)
        memcpy(m->octets, wqe->inline_octets, m->length);
    else if (rdma_sends_octets(wqe->op))
        well = nic_gather(c, m, wqe->sges, wqe->sge_count);
    else
        for (uint32_t i = 0; i < wqe->sge_count; i++)
            well = well && nic_local_ok(c->nic, &wqe->sges[i], RDMA_LOCAL_WRITE);
    if (well && wqe->length > nics->config.max_message)
        m->status = RDMA_LENGTH_ERROR;
    else if (!well)
        m->status = RDMA_LOCAL_ERROR;
    if (m->status == RDMA_OK) {
        nic_send(m);
        return;
    }
    uint32_t failed = m->wqe;
    uint8_t status = m->status;
    nic_message_free(nics, m);
    nic_done(c, failed, status);
}

static void begin_message(struct nic_conn *c, uint32_t number, const struct nic_wqe *wqe)
{
    struct sim_nics *nics = c->nic->nics;
    bool octets = rdma_sends_octets(wqe->op);
    bool too_long = wqe->length > nics->config.max_message;
    uint32_t length = octets && !too_long ? wqe->length : 0;
    bool phantom = length > LEAST_ROOM && nic_is_phantom(c, wqe->sges, wqe->sge_count, length);
    struct nic_message *m = nic_message_new(nics, length, phantom ? 0 : length);
    if (!m)
        return;
    m->from = c;
    m->epoch = c->epoch;
    m->wqe = number;
    m->kind = NIC_REQUEST;
    m->op = (uint8_t)wqe->op;
    m->wire.octets = sim_costs_wire_octets(nics->costs, m->length);
    uint64_t ready_ps = nic_later(nic_now_ps(nics), c->fetched_ps);
    uint64_t leaves_ps = nic_leaves_ps(c, m, wqe->flags & RDMA_INLINE ? 0 : m->length, ready_ps);
    sim_clock_at(nics->clock, nic_ns(leaves_ps), leaves, m, (uintptr_t)c);
}

/* Of work requests that send nothing `number` is that of the work request and the epoch. */
static void done_here(void *context, uint64_t number)
{
    struct nic_conn *c = context;
    uint32_t wqe_number = (uint32_t)number;
    if ((uint32_t)(number >> 32) != c->epoch)
        return;
    const struct nic_wqe *wqe = nic_wqe(c, wqe_number);
    bool well = true;
    if (wqe->op == RDMA_BIND)
        well = nic_bind(c, wqe);
    else if (wqe->op == RDMA_LOCAL_INV)
        well = nic_invalidate(c, wqe->imm_stag, false);
    nic_done(c, wqe_number, well ? RDMA_OK : RDMA_LOCAL_ERROR);
}

/* In the order of the queue: what was begun before has left, or will leave, before. */
static void begin_here(struct nic_conn *c, uint32_t number)
{
    struct sim_nics *nics = c->nic->nics;
    struct nic *nic = c->nic;
    uint64_t occupied_ps = nic_ps(nics->costs->send_message_ns);
    uint64_t begin_ps = nic_later(nic_later(nic_now_ps(nics), c->fetched_ps), nic->send_free_ps);
    nic->send_free_ps = begin_ps + occupied_ps;
    nic->use.send_busy_ps += occupied_ps;
    c->leaves_ps = nic_later(c->leaves_ps, begin_ps + occupied_ps);
    sim_clock_at(nics->clock, nic_ns(c->leaves_ps), done_here, c,
                 (uint64_t)c->epoch << 32 | number);
}

void nic_go_on(struct nic_conn *c)
{
    while (c->state == NIC_CONNECTED && c->begun != c->rung) {
        struct nic_wqe *wqe = nic_wqe(c, c->begun);
        if ((wqe->flags & RDMA_FENCE) && c->reads != 0)
            return;
        if (rdma_is_answered(wqe->op) && c->reads == c->config.reads_out)
            return;
        wqe->state = NIC_WQE_BEGUN;
        c->reads += rdma_is_answered(wqe->op);
        if (is_here(wqe->op))
            begin_here(c, c->begun++);
        else
            begin_message(c, c->begun++, wqe);
    }
}

/* ---- completions ------------------------------------------------------------------------- */

/* The oldest leave the queue: those that are signaled, or failed, with a completion. */
static void complete_some(struct nic_conn *c)
{
    while (c->state == NIC_CONNECTED && c->done != c->posted) {
        const struct nic_wqe *wqe = nic_wqe(c, c->done);
        if (wqe->state != NIC_WQE_DONE)
            return;
        c->done++;
        if (wqe->status == RDMA_OK && !(wqe->flags & RDMA_SIGNALED))
            continue;
        const struct rdma_wc wc = {.wr_id = wqe->wr_id,
                                   .conn = c->index,
                                   .op = (uint8_t)wqe->op,
                                   .status = wqe->status,
                                   .length = rdma_is_answered(wqe->op) ? wqe->length : 0};
        nic_complete(c, &wc, NULL);
        if (wqe->status != RDMA_OK) {
            nic_end(c, -ECONNRESET);
            return;
        }
    }
}

void nic_done(struct nic_conn *c, uint32_t number, uint8_t status)
{
    struct nic_wqe *wqe = nic_wqe(c, number);
    wqe->state = NIC_WQE_DONE;
    wqe->status = status;
    if (rdma_is_answered(wqe->op))
        c->reads--;
    complete_some(c);
    nic_go_on(c);
}

/* ---- posting ----------------------------------------------------------------------------- */

static int check(const struct nic_conn *c, const struct rdma_wr *wr)
{
    int failed =
        rdma_request_check(wr, c->nic->nics->config.bits, c->config.max_sge, c->config.max_inline);
    if (failed)
        return failed;
    return rdma_is_atomic(wr->op) && wr->remote_to % 8 != 0 ? -EINVAL : 0;
}

static void set_operands(struct nic_wqe *wqe, const struct rdma_wr *wr)
{
    rdma_request_operands(wr, wqe->operand);
    if (wr->op == RDMA_BIND) {
        rdma_window_posted(wr);
        wqe->operand[0] = wr->bind.length;
        wqe->operand[1] = wr->bind.access;
        wqe->remote_to = wr->bind.offset;
        wqe->remote_stag = wr->bind.region->stag;
        wqe->imm_stag = wr->bind.window->stag;
    }
}

static void append(struct nic_conn *c, const struct rdma_wr *wr)
{
    struct nic_wqe *wqe = nic_wqe(c, c->posted);
    char *to = wqe->inline_octets;
    wqe->wr_id = wr->wr_id;
    wqe->remote_to = wr->remote_to;
    wqe->remote_stag = wr->remote_stag;
    wqe->imm_stag = wr->imm_stag;
    wqe->sge_count = wr->sge_count;
    wqe->length = (uint32_t)rdma_request_octets(wr);
    wqe->op = wr->op;
    wqe->flags = wr->flags;
    wqe->state = NIC_WQE_POSTED;
    wqe->status = RDMA_OK;
    for (uint32_t i = 0; i < wr->sge_count; i++) {
        wqe->sges[i] = wr->sges[i];
        if (wr->flags & RDMA_INLINE) {
            memcpy(to, wr->sges[i].addr, wr->sges[i].length);
            to += wr->sges[i].length;
        }
    }
    if (wr->flags & RDMA_INLINE)
        c->handle->spent_ps += nic_ps(wqe->length / c->nic->nics->costs->inline_gbytes_s);
    set_operands(wqe, wr);
    c->posted++;
}

/* The RNIC learns of so many more work requests. */
static void rings(void *context, uint64_t number)
{
    struct nic_conn *c = context;
    struct sim_nics *nics = c->nic->nics;
    if ((uint32_t)(number >> 32) != c->epoch)
        return;
    uint32_t count = (uint32_t)number;
    c->rung += count;
    c->fetched_ps = nic_now_ps(nics) + nic_ps(count > 1 ? nics->costs->wqe_fetch_ns : 0);
    nic_go_on(c);
}

int nic_post_send(struct rdma *r, uint32_t conn, const struct rdma_wr *wrs, uint32_t count)
{
    struct nic_handle *h = nic_handle_of(r);
    struct sim_nics *nics = nic_nics(h);
    struct nic_conn *c = conn < h->limits.connections ? &h->conns[conn] : NULL;
    if (!c || !c->may_send)
        return -ENOTCONN;
    uint32_t there = c->posted - c->done;
    if (there + count > c->config.send_depth)
        return -ENOMEM;
    for (uint32_t i = 0; i < count; i++) {
        int failed = check(c, &wrs[i]);
        if (failed)
            return failed;
    }
    if (there + count > c->sends_room &&
        !nic_ring_grow(nics, (void **)&c->sends, &c->sends_room, there + count, c->done, there,
                       c->wqe_octets))
        return -ENOMEM;
    h->spent_ps += nic_ps(nics->costs->post_ns * count + nics->costs->ring_ns);
    for (uint32_t i = 0; i < count; i++) {
        append(c, &wrs[i]);
        if (c->state == NIC_ENDED)
            nic_flush(c, wrs[i].wr_id);
    }
    if (c->state == NIC_ENDED) {
        c->done = c->posted;
        return 0;
    }
    uint64_t rings_ps = nic_now_ps(nics) + h->spent_ps + nic_ps(nics->costs->doorbell_ns);
    sim_clock_at(nics->clock, nic_ns(rings_ps), rings, c, (uint64_t)c->epoch << 32 | count);
    return 0;
}
