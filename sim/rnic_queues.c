/* SPDX-License-Identifier: BSD-3-Clause */
/* What a CPU and its RNIC share: send and receive queues, completion queues, events, timers. */
#include <assert.h>
#include <errno.h>

#include "sim/random.h"
#include "sim/rnic_state.h"

/* ---- may these be posted? ---------------------------------------------------------------- */

static int check_bind(const struct rdma_wr *wr)
{
    const uint32_t rights = RDMA_REMOTE_READ | RDMA_REMOTE_WRITE | RDMA_REMOTE_ATOMIC;
    bool legal = wr->bind.window && wr->bind.region && (wr->bind.access & ~rights) == 0 &&
                 wr->sge_count == 0 && (wr->flags & ~(RDMA_SIGNALED | RDMA_FENCE)) == 0;
    return legal ? 0 : -EINVAL;
}

int rnic_check_send(const struct sim_handle *h, const struct rnic_end *e, const struct rdma_wr *wr)
{
    const struct sim_rnic_config *config = &h->rnic->config;
    const uint32_t known_flags = RDMA_SIGNALED | RDMA_FENCE | RDMA_SOLICIT | RDMA_INLINE;
    int failed = rdma_request_check(wr, config->bits, e->max_sge, e->max_inline);
    if (failed)
        return failed;
    if (wr->op == RDMA_BIND)
        return check_bind(wr);
    if (wr->op > RDMA_LOCAL_INV || (wr->flags & ~known_flags) != 0 ||
        rdma_request_octets(wr) > config->max_message ||
        (rdma_is_answered(wr->op) && e->reads_out == 0))
        return -EINVAL;
    return 0;
}

int rnic_check_sends(const struct sim_handle *h, uint32_t conn, const struct rdma_wr *wrs,
                     uint32_t count)
{
    if (conn >= h->limits.connections)
        return -EINVAL;
    const struct rnic_end *e = h->ends[conn].state;
    rnic_look(h->w, h->ends[conn].segment);
    if (e->known > KNOWN_CONNECTED || (e->known < KNOWN_CONNECTED && !e->heard))
        return -ENOTCONN;
    if (rnic_is_managed(&h->ends[conn]))
        return -EBUSY;
    if (count > e->send_depth - e->posted)
        return -ENOMEM;
    for (uint32_t i = 0; i < count; i++) {
        int failed = rnic_check_send(h, e, &wrs[i]);
        if (failed)
            return failed;
    }
    return 0;
}

int rnic_check_receives(const struct sim_handle *h, uint32_t conn, const struct rdma_wr *wrs,
                        uint32_t count)
{
    if (conn >= h->limits.connections)
        return -EINVAL;
    const struct rnic_end *e = h->ends[conn].state;
    rnic_look(h->w, h->ends[conn].segment);
    if (e->state == END_FREE || e->state == END_REQUESTED || e->known >= KNOWN_DISCONNECTED)
        return -ENOTCONN;
    if (count > e->recv_depth - e->receives)
        return -ENOMEM;
    for (uint32_t i = 0; i < count; i++)
        if (wrs[i].sge_count > e->max_sge || rdma_request_octets(&wrs[i]) > UINT32_MAX)
            return -EINVAL;
    return 0;
}

/* ---- posting ----------------------------------------------------------------------------- */

/* Only what means something for this operation: equal requests have equal octets. */
void rnic_write_wqe(struct rnic_wqe *wqe, const struct rdma_wr *wr)
{
    *wqe = (struct rnic_wqe){.wr_id = wr->wr_id,
                             .length = (uint32_t)rdma_request_octets(wr),
                             .sge_count = wr->sge_count,
                             .op = wr->op,
                             .flags = wr->flags};
    if (wr->op == RDMA_WRITE || wr->op == RDMA_WRITE_IMM || rdma_is_answered(wr->op)) {
        wqe->remote_to = wr->remote_to;
        wqe->remote_stag = wr->remote_stag;
    }
    if (wr->op == RDMA_SEND_INV || wr->op == RDMA_WRITE_IMM || wr->op == RDMA_LOCAL_INV)
        wqe->imm_stag = wr->imm_stag;
    rdma_request_operands(wr, wqe->operand);
    if (wr->op == RDMA_BIND) {
        wqe->remote_to = wr->bind.offset;
        wqe->remote_stag = wr->bind.region->stag;
        wqe->imm_stag = wr->bind.window->stag;
        wqe->operand[0] = wr->bind.length;
        wqe->operand[1] = wr->bind.access;
    }
    if ((wr->flags & RDMA_INLINE) == 0) {
        if (wr->sge_count != 0)
            memcpy(wqe->sges, wr->sges, wr->sge_count * sizeof *wr->sges);
        return;
    }
    char *to = (char *)wqe->sges;
    for (uint32_t i = 0; i < wr->sge_count; i++) {
        if (wr->sges[i].length != 0)
            memcpy(to, wr->sges[i].addr, wr->sges[i].length);
        to += wr->sges[i].length;
    }
}

int rnic_post_sends(struct sim_handle *h, uint32_t conn, const struct rdma_wr *wrs, uint32_t count)
{
    int failed = rnic_check_sends(h, conn, wrs, count);
    if (failed)
        return failed;
    struct end *end = &h->ends[conn];
    rnic_touch(h->w, end->segment);
    for (uint32_t i = 0; i < count; i++) {
        if (wrs[i].op == RDMA_BIND)
            rdma_window_posted(&wrs[i]);
        rnic_write_wqe(rnic_wqe(end, end->state->posted++), &wrs[i]);
    }
    return 0;
}

int rnic_post_receives(struct sim_handle *h, uint32_t conn, const struct rdma_wr *wrs,
                       uint32_t count)
{
    int failed = rnic_check_receives(h, conn, wrs, count);
    if (failed)
        return failed;
    struct end *end = &h->ends[conn];
    rnic_touch(h->w, end->segment);
    for (uint32_t i = 0; i < count; i++) {
        struct rnic_receive *receive = rnic_receive(end, end->state->receives++);
        receive->wr_id = wrs[i].wr_id;
        receive->length = (uint32_t)rdma_request_octets(&wrs[i]);
        receive->sge_count = wrs[i].sge_count;
        if (wrs[i].sge_count != 0)
            memcpy(receive->sges, wrs[i].sges, wrs[i].sge_count * sizeof *wrs[i].sges);
    }
    return 0;
}

void rnic_ring(struct sim_handle *h, uint32_t conn, bool receives, uint32_t count)
{
    struct end *end = &h->ends[conn];
    if (end->state->state == END_FREE)
        return; /* its host stopped while the doorbell was in the store buffer */
    rnic_touch(h->w, end->segment);
    if (receives)
        end->state->receives_rung += count;
    else
        end->state->rung += count;
    rnic_stir(end);
}

static bool touches(const struct rdma_sge *sges, uint32_t count, const char *at, uint32_t octets)
{
    for (uint32_t i = 0; i < count; i++) {
        const char *first = sges[i].addr;
        if (at < first + sges[i].length && first < at + octets)
            return true;
    }
    return false;
}

static bool is_posted(const struct end *end, const char *at, uint32_t octets, bool writes)
{
    for (uint32_t i = 0; i < end->state->posted; i++) {
        const struct rnic_wqe *wqe = rnic_wqe(end, i);
        if ((wqe->flags & RDMA_INLINE) == 0 && (writes || rdma_is_answered(wqe->op)) &&
            touches(wqe->sges, wqe->sge_count, at, octets))
            return true;
    }
    for (uint32_t i = 0; i < end->state->receives; i++) {
        const struct rnic_receive *receive = rnic_receive(end, i);
        if (touches(receive->sges, receive->sge_count, at, octets))
            return true;
    }
    return false;
}

/* Only this CPU puts buffers there and takes them out again: no other's step changes the answer. */
bool rnic_is_in_flight(const struct sim_handle *h, const char *at, uint32_t octets, bool writes)
{
    for (uint32_t i = 0; i < h->limits.connections; i++)
        if (h->ends[i].state->state != END_FREE && is_posted(&h->ends[i], at, octets, writes))
            return true;
    return false;
}

/* ---- completion queues ------------------------------------------------------------------- */

static void cq_touch(struct sim_handle *h, struct cq *cq)
{
    rnic_touch(h->w, cq->segment);
}

static bool cq_exists(const struct sim_handle *h, uint32_t cq)
{
    return cq < h->limits.cqs && h->cqs[cq].state && h->cqs[cq].state->used;
}

int rnic_cq_create(struct sim_handle *h, uint32_t depth, uint32_t *cq)
{
    if (depth == 0 || depth > SIM_RNIC_MAX_CQ)
        return -EINVAL;
    for (uint32_t i = 0; i < h->limits.cqs; i++) {
        struct cq *c = &h->cqs[i];
        if (c->state && (c->state->used || c->state->depth < depth))
            continue;
        if (!c->state) {
            c->state =
                sim_segment_new(&h->w->arena, "completions",
                                sizeof *c->state + depth * sizeof(struct rnic_cqe), SIM_STATE);
            if (!c->state)
                return -ENOMEM;
            c->segment = sim_segment_of(&h->w->arena, c->state);
            c->state->depth = depth;
        }
        cq_touch(h, c);
        c->state->used = 1;
        *cq = i;
        return 0;
    }
    return -ENOMEM;
}

int rnic_cq_destroy(struct sim_handle *h, uint32_t cq)
{
    if (!cq_exists(h, cq))
        return -EINVAL;
    for (uint32_t i = 0; i < h->limits.connections; i++)
        if (h->ends[i].state->state != END_FREE && h->ends[i].state->state != END_REQUESTED &&
            h->ends[i].state->cq == cq)
            return -EBUSY;
    struct cq *c = &h->cqs[cq];
    cq_touch(h, c);
    uint32_t depth = c->state->depth;
    memset(c->state, 0, sizeof *c->state + depth * sizeof(struct rnic_cqe));
    c->state->depth = depth;
    return 0;
}

int rnic_cq_arm(struct sim_handle *h, uint32_t cq, bool solicited_only)
{
    if (!cq_exists(h, cq))
        return -EINVAL;
    cq_touch(h, &h->cqs[cq]);
    h->cqs[cq].state->armed = solicited_only ? 2 : 1;
    return 0;
}

static void cq_push(struct sim_handle *h, uint32_t cq, const struct rnic_cqe *cqe)
{
    struct rnic_cq *c = h->cqs[cq].state;
    cq_touch(h, &h->cqs[cq]);
    c->armed = 0;
    if (c->count == c->depth) {
        c->overflowed = 1;
        return;
    }
    uint32_t at = c->head + c->count++;
    c->entries[at >= c->depth ? at - c->depth : at] = *cqe;
}

void rnic_complete(struct end *end, uint64_t wr_id, uint32_t op, uint32_t status, uint32_t length)
{
    struct rnic_end *e = end->state;
    cq_push(end->handle, e->cq,
            &(struct rnic_cqe){.wr_id = wr_id,
                               .conn = end->conn,
                               .length = length,
                               .retires = e->silent + 1,
                               .op = (uint8_t)op,
                               .status = (uint8_t)status});
    e->silent = 0;
}

void rnic_receive_done(struct end *end, const struct rnic_cqe *cqe)
{
    struct rnic_end *e = end->state;
    struct rnic_cqe full = *cqe;
    full.wr_id = rnic_receive(end, e->taken++)->wr_id;
    full.conn = end->conn;
    full.retires = 1;
    full.receive = 1;
    cq_push(end->handle, e->cq, &full);
    rnic_chain_received(end);
}

/* Takes the oldest entry out. */
static struct rnic_cqe cq_pop(const struct sim_handle *h, struct rnic_cq *c)
{
    struct rnic_cqe cqe = c->entries[c->head];
    c->count--;
    if (h->w->rnics->immediate) {
        c->head = c->head + 1 == c->depth ? 0 : c->head + 1;
    } else {
        memmove(&c->entries[0], &c->entries[1], c->count * sizeof cqe);
        memset(&c->entries[c->count], 0, sizeof cqe);
    }
    return cqe;
}

void rnic_retire_sends(struct end *end, uint32_t count)
{
    struct rnic_end *e = end->state;
    e->posted -= count;
    if (end->handle->w->rnics->immediate)
        return;
    e->rung -= count;
    e->launched -= count;
    e->completed -= count;
    size_t octets = end->handle->wqe_octets;
    memmove(rnic_wqe(end, 0), rnic_wqe(end, count), e->posted * octets);
    memset(rnic_wqe(end, e->posted), 0, count * octets);
}

static void retire_receives(struct end *end, const struct rnic_cqe *cqe)
{
    struct rnic_end *e = end->state;
    uint32_t count = cqe->retires;
    if (cqe->status == RDMA_OK) {
        e->heard = 1;
        if (e->state == END_ACCEPTED) /* who hears the peer is connected */
            rnic_established(end, 0);
    }
    e->receives -= count;
    e->receives_rung -= count;
    e->taken -= count;
    if (end->handle->w->rnics->immediate) {
        e->head += count;
        if (e->head >= end->handle->limits.recv_depth)
            e->head -= end->handle->limits.recv_depth;
        return;
    }
    size_t octets = end->handle->receive_octets;
    memmove(rnic_receive(end, 0), rnic_receive(end, count), e->receives * octets);
    memset(rnic_receive(end, e->receives), 0, count * octets);
}

int rnic_cq_poll(struct sim_handle *h, uint32_t cq, struct rdma_wc *wc, uint32_t count)
{
    if (!cq_exists(h, cq))
        return -EINVAL;
    struct rnic_cq *c = h->cqs[cq].state;
    rnic_look(h->w, h->cqs[cq].segment);
    if (c->overflowed)
        return -EIO;
    if (count > c->count)
        count = c->count;
    if (count != 0)
        cq_touch(h, &h->cqs[cq]);
    for (uint32_t i = 0; i < count; i++) {
        struct rnic_cqe cqe = cq_pop(h, c);
        struct end *end = &h->ends[cqe.conn];
        rnic_touch(h->w, end->segment);
        if (cqe.receive && cqe.status == RDMA_OK && end->state->known == KNOWN_REQUEST)
            end->state->known = KNOWN_CONNECTED; /* the peer could not send otherwise */
        if (cqe.receive)
            retire_receives(end, &cqe);
        else
            rnic_retire_sends(end, cqe.retires);
        wc[i] = (struct rdma_wc){.wr_id = cqe.wr_id,
                                 .conn = cqe.conn,
                                 .op = cqe.op,
                                 .status = cqe.status,
                                 .flags = cqe.flags,
                                 .length = cqe.length,
                                 .imm = cqe.imm};
        if (__builtin_expect(end->state->noticed, 0))
            rnic_look_drained(end);
    }
    return (int)count;
}

/* ---- events ------------------------------------------------------------------------------ */

void rnic_raise(struct sim_handle *h, uint32_t kind, uint32_t conn, int error,
                uint32_t private_length)
{
    struct rnic_port *port = h->port;
    assert(port->events < SIM_RNIC_EVENTS(&h->limits));
    rnic_touch(h->w, h->port_segment);
    rnic_events(h)[port->events++] = (struct rnic_event){
        .kind = kind, .conn = conn, .error = error, .private_length = private_length};
}

static void drop_event(struct sim_handle *h, uint32_t place)
{
    struct rnic_event *events = rnic_events(h);
    uint32_t last = --h->port->events;
    memmove(&events[place], &events[place + 1], (last - place) * sizeof *events);
    memset(&events[last], 0, sizeof *events);
}

/* The CPU knows now. */
static void event_taken(struct sim_handle *h, struct rdma_event *event)
{
    static const uint8_t knows[] = {
        [RDMA_EVENT_REQUEST] = KNOWN_REQUEST, [RDMA_EVENT_CONNECTED] = KNOWN_CONNECTED,
        [RDMA_EVENT_REJECTED] = KNOWN_OVER,   [RDMA_EVENT_DISCONNECTED] = KNOWN_DISCONNECTED,
        [RDMA_EVENT_DRAINED] = KNOWN_OVER,
    };
    struct end *end = &h->ends[event->conn];
    rnic_touch(h->w, end->segment);
    end->state->known = knows[event->kind];
    if (event->private_length != 0) {
        memcpy(event->private_data, end->state->private_data, event->private_length);
        memset(end->state->private_data, 0, sizeof end->state->private_data);
        end->state->private_length = 0;
    }
    rnic_look_drained(end);
}

int rnic_event(struct sim_handle *h, struct rdma_event *event)
{
    rnic_look(h->w, h->port_segment);
    if (h->port->events == 0)
        return 0;
    rnic_touch(h->w, h->port_segment);
    struct rnic_event first = rnic_events(h)[0];
    drop_event(h, 0);
    *event = (struct rdma_event){.kind = first.kind,
                                 .conn = first.conn,
                                 .error = first.error,
                                 .private_length = first.private_length};
    if (first.kind != RDMA_EVENT_TIMER)
        event_taken(h, event);
    return 1;
}

/* May somebody connect to it? */
static bool request_may_come(const struct sim_handle *h)
{
    const struct sim_rnics *rnics = h->w->rnics;
    if (!h->port->listening)
        return false;
    for (uint32_t i = 0; i < rnics->handles_count; i++) {
        const struct sim_handle *from = rnics->handles[i];
        for (uint32_t j = 0; j < from->route_count; j++) {
            rnic_look(h->w, from->port_segment);
            if (h->w->agents[from->route[j]].handle == h &&
                (from->limits.connects == 0 || from->port->connects < from->limits.connects))
                return true;
        }
    }
    for (uint32_t i = 0; i < rnics->links_count; i++) {
        const struct rnic_link *link = rnics->links[i].state;
        rnic_look(h->w, rnics->links[i].segment);
        if (link->state == LINK_REQUESTING && link->sides[1].handle == h->index + 1)
            return true;
    }
    return false;
}

/* Is this end connected for as long as its own CPU wants? */
static bool is_settled(const struct end *end)
{
    const struct rnic_end *e = end->state;
    rnic_look(end->handle->w, end->segment);
    if (e->state == END_FREE)
        return true;
    const struct link *link = rnic_link_of(end);
    const struct end *peer = rnic_peer(end);
    rnic_look(end->handle->w, link->segment);
    return e->state == END_ESTABLISHED && e->known == KNOWN_CONNECTED && !e->noticed &&
           link->state->ending == LINK_LIVES && !link->state->may_be_lost && peer &&
           peer->handle->limits.never_disconnects;
}

bool rnic_event_may_come(const struct sim_handle *h)
{
    for (uint32_t i = 0; i < h->limits.timers; i++)
        if (rnic_timers(h)[i] != 0)
            return true;
    for (uint32_t i = 0; i < h->limits.connections; i++)
        if (!is_settled(&h->ends[i]))
            return true;
    return request_may_come(h);
}

int rnic_timer(struct sim_handle *h, uint32_t id, uint64_t delay_ns)
{
    if (id >= h->limits.timers)
        return -EINVAL;
    rnic_touch(h->w, h->port_segment);
    /* Exploring, a timer may expire at any time: how long it runs is no state. */
    rnic_timers(h)[id] = h->w->rnics->immediate ? delay_ns : delay_ns != 0;
    for (uint32_t i = 0; i < h->port->events; i++)
        if (rnic_events(h)[i].kind == RDMA_EVENT_TIMER && rnic_events(h)[i].conn == id) {
            drop_event(h, i);
            break;
        }
    return 0;
}

bool rnic_expire(struct sim_handle *h, uint32_t id)
{
    if (id >= h->limits.timers || rnic_timers(h)[id] == 0)
        return false;
    rnic_touch(h->w, h->port_segment);
    rnic_timers(h)[id] = 0;
    rnic_raise(h, RDMA_EVENT_TIMER, id, 0, 0);
    return true;
}

/* ---- random octets, capabilities --------------------------------------------------------- */

int rnic_random(struct sim_handle *h, void *octets, uint32_t length)
{
    rnic_touch(h->w, h->port_segment);
    uint64_t chance = sim_mix64(h->rnic->config.seed + 1) ^
                      sim_mix64((uint64_t)(h->index + 1) << 32 | ++h->port->random);
    for (uint32_t i = 0; i < length; i += 8) {
        uint64_t word = sim_random64(&chance);
        memcpy((char *)octets + i, &word, length - i < 8 ? length - i : 8);
    }
    return 0;
}

void rnic_caps(const struct sim_handle *h, struct rdma_caps *caps)
{
    const struct sim_rnic_config *config = &h->rnic->config;
    const struct sim_rnic_limits *limits = &h->limits;
    *caps = (struct rdma_caps){
        .bits = config->bits,
        .binding = config->binding,
        .max_message = config->max_message,
        .max_inline = config->max_inline,
        .max_sge = limits->max_sge,
        .max_read_sge = limits->max_sge,
        .max_reads = limits->reads,
        .max_private = RDMA_MAX_PRIVATE,
        .max_queue =
            limits->send_depth > limits->recv_depth ? limits->send_depth : limits->recv_depth,
        .max_cq = SIM_RNIC_MAX_CQ,
        .wqe_big_endian = config->wqe_big_endian,
        .atomic_memory_big_endian = config->atomic_memory_big_endian,
        .atomic_reply_big_endian = config->atomic_reply_big_endian,
    };
}
