/* SPDX-License-Identifier: BSD-3-Clause */
/* Connections, from the first message of the handshake to DRAINED. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sim/timed/nic_state.h"

/* The handshake's messages are few and small: they take their latencies, and occupy nothing. */
struct nic_handshake {
    struct nic_conn *from, *to;
    uint32_t from_epoch, to_epoch;
    uint32_t kind; /* enum rdma_event_kind that comes of it; NONE: the peer learns of the end */
    int error;
    uint32_t private_length;
    uint8_t private_data[RDMA_MAX_PRIVATE];
    struct nic_handshake *next; /* of all, or of the free ones */
    struct nic_handshake *next_free;
};

/* ---- connections of a handle ------------------------------------------------------------- */

static struct nic_conn *conn_of(struct rdma *r, uint32_t conn)
{
    struct nic_handle *h = nic_handle_of(r);
    return conn < h->limits.connections && h->conns[conn].state != NIC_FREE ? &h->conns[conn]
                                                                            : NULL;
}

static struct nic_conn *lowest_free(struct nic_handle *h)
{
    for (uint32_t i = 0; i < h->limits.connections; i++)
        if (h->conns[i].state == NIC_FREE)
            return &h->conns[i];
    return NULL;
}

/* What it was is forgotten, but for what tells this connection from the next one. */
static void forget(struct nic_conn *c)
{
    *c = (struct nic_conn){.nic = c->nic,
                           .handle = c->handle,
                           .index = c->index,
                           .epoch = c->epoch + 1,
                           .state = NIC_FREE};
}

void nic_conn_free(struct nic_conn *c)
{
    struct sim_nics *nics = c->nic->nics;
    c->handle->cqs[c->config.cq].connections -= c->receives != NULL;
    nic_release(nics, c->sends, c->sends_room, c->wqe_octets);
    nic_release(nics, c->receives, c->config.recv_depth, nic_receive_octets(c));
    c->sends = c->receives = NULL;
    c->sends_room = 0;
    if (c->flow && !c->flow->under_way && !c->flow->first) {
        struct nic_flow *flow = (struct nic_flow *)c->flow;
        flow->next_free = nics->free_flows;
        nics->free_flows = flow;
    }
    c->flow = NULL;
}

/* What a connection sends. It may outlast it: what is on the way then still takes its time. */
static struct sim_wire_flow *flow_new(struct sim_nics *nics)
{
    struct nic_flow *flow = nics->free_flows;
    if (flow) {
        nics->free_flows = flow->next_free;
    } else {
        flow = nic_allocate_lines(nics, 1, sizeof *flow);
        if (!flow)
            return NULL;
        flow->next = nics->flows;
        nics->flows = flow;
    }
    return &flow->flow;
}

void nic_flows_free(struct sim_nics *nics)
{
    for (struct nic_flow *flow = nics->flows, *next; flow; flow = next) {
        next = flow->next;
        free(flow);
    }
}

static bool config_ok(const struct nic_handle *h, const struct rdma_conn_config *config)
{
    struct rdma_caps caps;
    nic_ops.caps((struct rdma *)(uintptr_t)&h->rdma, &caps);
    return config->cq < h->limits.cqs && h->cqs[config->cq].used &&
           config->send_depth <= caps.max_queue && config->recv_depth <= caps.max_queue &&
           config->max_sge <= caps.max_sge && config->max_inline <= caps.max_inline &&
           config->reads_out <= caps.max_reads && config->reads_in <= caps.max_reads;
}

static int make_queues(struct nic_conn *c, const struct rdma_conn_config *config)
{
    struct sim_nics *nics = c->nic->nics;
    c->config = *config;
    c->wqe_octets = (uint32_t)sizeof(struct nic_wqe) + (config->max_inline + 7) / 8 * 8;
    c->flow = flow_new(nics);
    c->receives = nic_allocate(nics, config->recv_depth, nic_receive_octets(c));
    c->handle->cqs[config->cq].connections += c->receives != NULL;
    if (c->flow && c->receives)
        return 0;
    nic_conn_free(c);
    return -ENOMEM;
}

/* ---- receives ---------------------------------------------------------------------------- */

void nic_flush(struct nic_conn *c, uint64_t wr_id)
{
    const struct rdma_wc wc = {.wr_id = wr_id, .conn = c->index, .status = RDMA_FLUSHED};
    c->flushed++;
    nic_complete(c, &wc, NULL);
}

static bool receive_ok(const struct nic_conn *c, const struct rdma_wr *wr)
{
    if (wr->sge_count > c->config.max_sge)
        return false;
    for (uint32_t i = 0; i < wr->sge_count; i++)
        if (!nic_local_ok(c->nic, &wr->sges[i], RDMA_LOCAL_WRITE))
            return false;
    return true;
}

static void append_receive(struct nic_conn *c, const struct rdma_wr *wr)
{
    struct nic_receive *receive = nic_receive(c, c->receive_count++);
    receive->wr_id = wr->wr_id;
    receive->sge_count = wr->sge_count;
    receive->length = 0;
    for (uint32_t i = 0; i < wr->sge_count; i++) {
        receive->sges[i] = wr->sges[i];
        receive->length += wr->sges[i].length;
    }
}

static int post_receives(struct nic_conn *c, const struct rdma_wr *wrs, uint32_t count)
{
    if (c->receive_count + count > c->config.recv_depth)
        return -ENOMEM;
    for (uint32_t i = 0; i < count; i++)
        if (!receive_ok(c, &wrs[i]))
            return -EINVAL;
    for (uint32_t i = 0; i < count; i++) {
        if (c->state == NIC_ENDED)
            nic_flush(c, wrs[i].wr_id);
        else
            append_receive(c, &wrs[i]);
    }
    c->handle->spent_ps += count * nic_ps(c->nic->nics->costs->post_ns);
    return 0;
}

int nic_post_recv(struct rdma *r, uint32_t conn, const struct rdma_wr *wrs, uint32_t count)
{
    struct nic_conn *c = conn_of(r, conn);
    return c && c->receives ? post_receives(c, wrs, count) : -EINVAL;
}

/* ---- the handshake ----------------------------------------------------------------------- */

/* Whoever is asked for something may have to answer before it is CONNECTED. */
static void set_flow(struct nic_conn *c)
{
    *c->flow =
        (struct sim_wire_flow){.from = c->nic->index, .to = c->peer->nic->index, .context = c};
    if (c->flow->from != c->flow->to)
        sim_wire_latency_ns(c->nic->nics->wire, c->flow);
}

static void requested(struct nic_handshake *shake)
{
    struct nic_conn *from = shake->from, *to = lowest_free(shake->to->handle);
    if (!to) { /* as a listener whose backlog is full */
        nic_tell(from->handle, RDMA_EVENT_REJECTED, from->index, -ECONNREFUSED, NULL, 0);
        from->state = NIC_REJECTED;
        return;
    }
    to->state = NIC_REQUESTED;
    to->peer = from;
    to->peer_epoch = shake->from_epoch;
    from->peer = to;
    from->peer_epoch = to->epoch;
    set_flow(from);
    nic_tell(to->handle, RDMA_EVENT_REQUEST, to->index, 0, shake->private_data,
             shake->private_length);
}

static void comes(void *context, uint64_t number)
{
    struct nic_handshake *shake = context;
    struct nic_conn *to = shake->to;
    struct sim_nics *nics = nic_nics(to->handle);
    (void)number;
    if (shake->kind == RDMA_EVENT_REQUEST) {
        if (shake->from->epoch == shake->from_epoch)
            requested(shake);
    } else if (to->epoch == shake->to_epoch) {
        if (shake->kind == RDMA_EVENT_NONE) {
            nic_end(to, shake->error);
        } else {
            to->state = shake->kind == RDMA_EVENT_CONNECTED ? NIC_CONNECTED : NIC_REJECTED;
            nic_tell(to->handle, shake->kind, to->index, shake->error, shake->private_data,
                     shake->private_length);
        }
    }
    shake->next_free = nics->free_handshakes;
    nics->free_handshakes = shake;
}

static struct nic_handshake *handshake_new(struct sim_nics *nics)
{
    struct nic_handshake *shake = nics->free_handshakes;
    if (shake) {
        nics->free_handshakes = shake->next_free;
        return shake;
    }
    shake = nic_allocate(nics, 1, sizeof *shake);
    if (shake) {
        shake->next = nics->handshakes;
        nics->handshakes = shake;
    }
    return shake;
}

void nic_handshakes_free(struct sim_nics *nics)
{
    for (struct nic_handshake *shake = nics->handshakes, *next; shake; shake = next) {
        next = shake->next;
        free(shake);
    }
}

/* A message of the handshake, from the end of what the CPU does now. */
static int shake_hands(struct nic_conn *from, struct nic_conn *to, uint32_t kind, int error,
                       const void *private_data, uint32_t private_length)
{
    struct sim_nics *nics = from->nic->nics;
    struct nic_handshake *shake = handshake_new(nics);
    if (!shake)
        return -ENOMEM;
    shake->from = from;
    shake->to = to;
    shake->from_epoch = from->epoch;
    shake->to_epoch = to->epoch;
    shake->kind = kind;
    shake->error = error;
    shake->private_length = private_length;
    if (private_length)
        memcpy(shake->private_data, private_data, private_length);
    struct sim_wire_flow way = {.from = from->nic->index, .to = to->nic->index};
    uint64_t latency_ns = way.from == way.to ? 0 : sim_wire_latency_ns(nics->wire, &way);
    uint64_t at_ps = nic_now_ps(nics) + from->handle->spent_ps + nic_ps(nics->costs->connect_ns);
    sim_clock_at(nics->clock, nic_ns(at_ps) + latency_ns, comes, shake, 0);
    return 0;
}

int nic_listen(struct rdma *r, const char *address)
{
    struct nic_handle *h = nic_handle_of(r), **last = &nic_nics(h)->listeners;
    if (h->address || !address || !*address)
        return -EINVAL;
    h->address = strdup(address);
    if (!h->address)
        return -ENOMEM;
    while (*last)
        last = &(*last)->next_listener;
    *last = h;
    return 0;
}

/* The one at this address that has had the fewest; NULL: nobody listens. */
static struct nic_handle *listener(const struct sim_nics *nics, const char *address)
{
    struct nic_handle *next = NULL;
    for (struct nic_handle *h = nics->listeners; h; h = h->next_listener)
        if (strcmp(h->address, address) == 0 && (!next || h->requests < next->requests))
            next = h;
    if (next)
        next->requests++;
    return next;
}

int nic_connect(struct rdma *r, const char *address, const struct rdma_conn_config *config,
                const struct rdma_wr *receives, uint32_t count, const void *private_data,
                uint32_t private_length, uint32_t *conn)
{
    struct nic_handle *h = nic_handle_of(r), *peer;
    struct nic_conn *c = lowest_free(h);
    if (!config_ok(h, config) || private_length > RDMA_MAX_PRIVATE)
        return -EINVAL;
    if (!c)
        return -ENOSPC;
    int failed = make_queues(c, config);
    if (failed)
        return failed;
    c->state = NIC_CONNECTING;
    failed = post_receives(c, receives, count);
    peer = failed ? NULL : listener(nic_nics(h), address);
    if (!failed && peer)
        failed =
            shake_hands(c, &peer->conns[0], RDMA_EVENT_REQUEST, 0, private_data, private_length);
    else if (!failed) /* nobody is there: that takes as long as an answer of its own host */
        failed = shake_hands(c, c, RDMA_EVENT_REJECTED, -ECONNREFUSED, NULL, 0);
    if (failed) {
        nic_conn_free(c);
        forget(c);
        return failed;
    }
    *conn = c->index;
    return 0;
}

int nic_accept(struct rdma *r, uint32_t conn, const struct rdma_conn_config *config,
               const struct rdma_wr *receives, uint32_t count, const void *private_data,
               uint32_t private_length)
{
    struct nic_conn *c = conn_of(r, conn);
    if (!c || c->state != NIC_REQUESTED || !config_ok(c->handle, config) ||
        private_length > RDMA_MAX_PRIVATE)
        return -EINVAL;
    int failed = make_queues(c, config);
    if (failed)
        return failed;
    failed = post_receives(c, receives, count);
    if (!failed)
        failed = shake_hands(c, c->peer, RDMA_EVENT_CONNECTED, 0, private_data, private_length);
    if (failed) {
        nic_conn_free(c);
        c->receive_count = 0;
        return failed;
    }
    set_flow(c);
    c->state = NIC_CONNECTED;
    nic_tell(c->handle, RDMA_EVENT_CONNECTED, conn, 0, NULL, 0);
    return 0;
}

int nic_reject(struct rdma *r, uint32_t conn, const void *private_data, uint32_t private_length)
{
    struct nic_conn *c = conn_of(r, conn);
    if (!c || c->state != NIC_REQUESTED || private_length > RDMA_MAX_PRIVATE)
        return -EINVAL;
    int failed =
        shake_hands(c, c->peer, RDMA_EVENT_REJECTED, -ECONNREFUSED, private_data, private_length);
    forget(c);
    return failed;
}

/* ---- the end ----------------------------------------------------------------------------- */

void nic_end(struct nic_conn *c, int error)
{
    if (c->state != NIC_CONNECTED)
        return;
    struct nic_conn *peer = c->peer;
    if (peer->epoch == c->peer_epoch &&
        (peer->state == NIC_CONNECTED || peer->state == NIC_CONNECTING) &&
        shake_hands(c, peer, RDMA_EVENT_NONE, error, NULL, 0) != 0)
        c->nic->nics->clock->no_memory = c->nic->nics->clock->stopped = true;
    c->state = NIC_ENDED;
    c->epoch++; /* what is on the way does not arrive */
    nic_tell(c->handle, RDMA_EVENT_DISCONNECTED, c->index, error, NULL, 0);
    for (; c->done != c->posted; c->done++)
        nic_flush(c, nic_wqe(c, c->done)->wr_id);
    for (; c->receive_count != 0; nic_receive_taken(c))
        nic_flush(c, nic_receive(c, 0)->wr_id);
    nic_look_drained(c);
}

int nic_disconnect(struct rdma *r, uint32_t conn)
{
    struct nic_conn *c = conn_of(r, conn);
    if (!c || (c->state != NIC_CONNECTED && c->state != NIC_ENDED))
        return -EINVAL;
    nic_end(c, 0);
    return 0;
}

int nic_destroy(struct rdma *r, uint32_t conn)
{
    struct nic_conn *c = conn_of(r, conn);
    if (!c || (c->state != NIC_REJECTED && !(c->state == NIC_ENDED && c->drained_told)))
        return -EBUSY;
    nic_windows_end(c);
    nic_conn_free(c);
    forget(c);
    return 0;
}
