/* SPDX-License-Identifier: BSD-3-Clause */
/* How connections are made. How they end: sim/rnic_end.c. */
#include <assert.h>
#include <errno.h>

#include "sim/rnic_state.h"

/* ---- finding a place for it -------------------------------------------------------------- */

static struct end *free_end(struct sim_handle *h)
{
    for (uint32_t i = 0; i < h->limits.connections; i++) {
        rnic_look(h->w, h->ends[i].segment);
        if (h->ends[i].state->state == END_FREE)
            return &h->ends[i];
    }
    return NULL;
}

/* The lowest of its links that is free; its number + 1, or 0. Devices have one pool for all. */
static uint32_t free_link(const struct sim_handle *h)
{
    const struct sim_rnics *rnics = h->w->rnics;
    uint32_t first = rnics->immediate ? 0 : h->first_link;
    uint32_t end = rnics->immediate ? rnics->links_count : first + h->limits.links;
    for (uint32_t i = first; i < end; i++) {
        rnic_look(h->w, rnics->links[i].segment);
        if (rnics->links[i].state->state == LINK_FREE)
            return i + 1;
    }
    return 0;
}

static int check_config(const struct sim_handle *h, const struct rdma_conn_config *config,
                        const struct rdma_wr *receives, uint32_t count, uint32_t private_length)
{
    const struct sim_rnic_limits *limits = &h->limits;
    if (config->cq >= limits->cqs || !h->cqs[config->cq].state || !h->cqs[config->cq].state->used ||
        config->send_depth > limits->send_depth || config->recv_depth > limits->recv_depth ||
        config->max_sge > limits->max_sge || config->max_inline > h->rnic->config.max_inline ||
        config->reads_out > limits->reads || config->reads_in > limits->reads ||
        private_length > RDMA_MAX_PRIVATE)
        return -EINVAL;
    if (count > config->recv_depth)
        return -ENOMEM;
    for (uint32_t i = 0; i < count; i++)
        if (receives[i].sge_count > config->max_sge)
            return -EINVAL;
    return 0;
}

static void configure(struct end *end, const struct rdma_conn_config *config)
{
    struct rnic_end *e = end->state;
    e->cq = config->cq;
    e->send_depth = config->send_depth;
    e->recv_depth = config->recv_depth;
    e->max_sge = config->max_sge;
    e->max_inline = config->max_inline;
    e->reads_out = config->reads_out;
    e->reads_in = config->reads_in;
}

static void put_private(struct end *end, const void *octets, uint32_t length)
{
    rnic_touch(end->handle->w, end->segment);
    memset(end->state->private_data, 0, sizeof end->state->private_data);
    if (length != 0)
        memcpy(end->state->private_data, octets, length);
    end->state->private_length = length;
}

/* Private data that goes with a request or an answer arrives: then it is the event's. */
static uint32_t move_private(struct end *from, struct end *to)
{
    uint32_t length = from->state->private_length;
    put_private(to, from->state->private_data, length);
    put_private(from, NULL, 0);
    return length;
}

static int post_first(struct sim_handle *h, struct end *end, const struct rdma_wr *receives,
                      uint32_t count)
{
    int failed = rnic_post_receives(h, end->conn, receives, count);
    if (!failed)
        rnic_ring(h, end->conn, true, count);
    return failed;
}

/* ---- connect ----------------------------------------------------------------------------- */

/* Devices: whoever listens there, taking turns. */
static struct sim_handle *listener_at(struct sim_rnics *rnics, const char *address)
{
    struct sim_handle *best = NULL;
    for (uint32_t i = 0; i < rnics->handles_count; i++) {
        struct sim_handle *h = rnics->handles[i];
        if (h->address && !h->port->dead && strcmp(h->address, address) == 0 &&
            (!best || h->served < best->served))
            best = h;
    }
    if (best)
        best->served = ++rnics->turn;
    return best;
}

static struct sim_handle *listener_for(struct sim_handle *h, const char *address)
{
    if (h->w->rnics->immediate)
        return listener_at(h->w->rnics, address);
    uint32_t turn = h->port->connects;
    if (h->route_count == 0)
        return NULL;
    return h->w->agents[h->route[turn < h->route_count ? turn : h->route_count - 1]].handle;
}

/* Counts as far as it makes a difference. */
static void count_connect(struct sim_handle *h)
{
    rnic_touch(h->w, h->port_segment);
    if (h->port->connects + 1 < h->route_count || h->limits.connects != 0)
        h->port->connects++;
}

int rnic_connect(struct sim_handle *h, const char *address, const struct rdma_conn_config *config,
                 const struct rdma_wr *receives, uint32_t count, const void *private_data,
                 uint32_t private_length, uint32_t *conn)
{
    int failed = check_config(h, config, receives, count, private_length);
    if (failed)
        return failed;
    rnic_look(h->w, h->port_segment);
    struct end *end = free_end(h);
    uint32_t link = free_link(h);
    if (!end || !link || (h->limits.connects != 0 && h->port->connects == h->limits.connects))
        return -ENOSPC;
    struct sim_handle *listener = listener_for(h, address);
    count_connect(h);

    struct link *l = &h->w->rnics->links[link - 1];
    rnic_touch(h->w, l->segment);
    rnic_look(h->w, h->w->rnics->defaults_segment);
    *l->state = (struct rnic_link){
        .state = LINK_REQUESTING,
        .may_be_lost = (uint8_t)h->w->rnics->defaults->may_be_lost,
        .handles = {h->index + 1, listener ? listener->index + 1 : 0},
        .sides = {{.handle = h->index + 1, .conn = end->conn},
                  {.handle = listener ? listener->index + 1 : 0}},
    };
    rnic_touch(h->w, end->segment);
    end->state->state = END_CONNECTING;
    end->state->link = link;
    configure(end, config);
    put_private(end, private_data, private_length);
    rnic_stir(end);
    *conn = end->conn;
    return post_first(h, end, receives, count);
}

/* ---- the listening side ------------------------------------------------------------------ */

static bool is_requested(const struct sim_handle *h, uint32_t conn)
{
    return conn < h->limits.connections && h->ends[conn].state->state == END_REQUESTED &&
           h->ends[conn].state->known == KNOWN_REQUEST;
}

void rnic_established(struct end *end, uint32_t private_length)
{
    rnic_touch(end->handle->w, end->segment);
    end->state->state = END_ESTABLISHED;
    rnic_raise(end->handle, RDMA_EVENT_CONNECTED, end->conn, 0, private_length);
    rnic_stir(end);
}

int rnic_accept(struct sim_handle *h, uint32_t conn, const struct rdma_conn_config *config,
                const struct rdma_wr *receives, uint32_t count, const void *private_data,
                uint32_t private_length)
{
    if (!is_requested(h, conn))
        return -EINVAL;
    int failed = check_config(h, config, receives, count, private_length);
    if (failed)
        return failed;
    struct end *end = &h->ends[conn];
    struct link *link = rnic_link_of(end);
    rnic_touch(h->w, end->segment);
    configure(end, config);
    end->state->state = END_ACCEPTED;
    failed = post_first(h, end, receives, count);
    assert(!failed); /* all is checked */
    put_private(end, private_data, private_length);
    rnic_look(h->w, link->segment);
    rnic_stir(end);
    if (link->state->ending != LINK_LIVES)
        return 0; /* REJECTED follows */
    rnic_touch(h->w, link->segment);
    link->state->state = LINK_ACCEPTED;
    rnic_stir(rnic_peer(end));
    /* InfiniBand: what the peer sends first may arrive before the word that it is ready. */
    if (h->rnic->config.ordering != SIM_ORDERING_INFINIBAND || h->w->rnics->immediate)
        rnic_established(end, 0);
    return 0;
}

int rnic_reject(struct sim_handle *h, uint32_t conn, const void *private_data,
                uint32_t private_length)
{
    if (!is_requested(h, conn) || private_length > RDMA_MAX_PRIVATE)
        return -EINVAL;
    struct end *end = &h->ends[conn];
    struct link *link = rnic_link_of(end);
    rnic_touch(h->w, link->segment);
    struct end *peer = rnic_peer(end);
    if (peer && link->state->ending == LINK_LIVES) {
        put_private(peer, private_data, private_length);
        link->state->state = LINK_REJECTED;
        rnic_stir(peer);
    }
    rnic_release(end);
    return 0;
}

/* ---- the handshake goes on --------------------------------------------------------------- */

bool rnic_can_connect(const struct end *end)
{
    const struct rnic_end *e = end->state;
    if (e->state != END_CONNECTING && e->state != END_ACCEPTED)
        return false;
    const struct rnic_link *link = rnic_link_of(end)->state;
    if (link->ending != LINK_LIVES)
        return true;
    if (e->state == END_ACCEPTED)
        return link->state == LINK_ESTABLISHED;
    return link->state != LINK_REQUESTED;
}

static void rejected(struct end *end, int error, uint32_t private_length)
{
    rnic_touch(end->handle->w, end->segment);
    end->state->state = END_REJECTED;
    rnic_raise(end->handle, RDMA_EVENT_REJECTED, end->conn, error, private_length);
}

/* The request arrives at the listener, if it has room for it. */
static void request_arrives(struct end *end, struct link *link)
{
    struct sim_world *w = end->handle->w;
    struct rnic_link_side *side = &link->state->sides[1];
    struct sim_handle *listener = side->handle ? w->rnics->handles[side->handle - 1] : NULL;
    struct end *other = NULL;
    if (listener) {
        rnic_look(w, listener->port_segment);
        if (!listener->port->dead && listener->port->listening)
            other = free_end(listener);
    }
    if (!other) {
        side->handle = 0;
        put_private(end, NULL, 0);
        rejected(end, -ECONNREFUSED, 0);
        return;
    }
    side->conn = other->conn;
    link->state->state = LINK_REQUESTED;
    rnic_touch(w, other->segment);
    other->state->state = END_REQUESTED;
    other->state->side = 1;
    other->state->link = end->state->link;
    rnic_raise(listener, RDMA_EVENT_REQUEST, other->conn, 0, move_private(end, other));
}

/* Each side has at most as many READs in progress as the other takes. */
static void negotiate(struct rnic_end *a, struct rnic_end *b)
{
    if (a->reads_out > b->reads_in)
        a->reads_out = b->reads_in;
    if (b->reads_out > a->reads_in)
        b->reads_out = a->reads_in;
}

/* Something has arrived, before the word that the peer is ready: so it was, whatever came after. */
static bool has_heard(const struct end *end)
{
    return end->state->taken != 0 || end->state->heard;
}

void rnic_do_connect(struct end *end)
{
    struct link *link = rnic_link_of(end);
    rnic_touch(end->handle->w, link->segment);
    rnic_observe(end, (struct sim_access){.kind = SIM_CONNECT});
    if (end->state->state == END_ACCEPTED) {
        if (link->state->ending == LINK_LIVES || has_heard(end)) {
            rnic_established(end, 0);
        } else {
            put_private(end, NULL, 0);
            rejected(end, link->state->error, 0);
        }
        return;
    }
    struct end *peer = rnic_peer(end);
    if (link->state->ending != LINK_LIVES) {
        put_private(end, NULL, 0);
        rejected(end, link->state->error, 0);
    } else if (link->state->state == LINK_REQUESTING) {
        request_arrives(end, link);
    } else if (link->state->state == LINK_REJECTED) {
        rejected(end, -ECONNREFUSED, end->state->private_length);
    } else {
        link->state->state = LINK_ESTABLISHED;
        rnic_touch(end->handle->w, peer->segment);
        negotiate(end->state, peer->state);
        rnic_established(end, move_private(peer, end));
        rnic_stir(peer);
    }
}
