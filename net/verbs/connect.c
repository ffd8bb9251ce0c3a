/* SPDX-License-Identifier: BSD-3-Clause */
/* How connections begin. Nothing here waits: librdmacm says in events how far it is. */
#include "net/verbs/state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#define RETRIES 7           /* of a packet that nobody answers */
#define RNR_RETRIES 3       /* of a message that finds no receive */
#define POLITE_NS 20000000u /* so long a request is left to others, who may be looking rarely */

static struct verbs_conn *free_conn(struct verbs_handle *h)
{
    for (uint32_t i = 0; i < h->device->config.connections; i++)
        if (h->conns[i].state == VERBS_UNUSED)
            return &h->conns[i];
    return NULL;
}

/* ---- queue pairs ------------------------------------------------------------------------- */

static bool within_device(const struct verbs_handle *h, const struct rdma_conn_config *config)
{
    const struct rdma_caps *caps = &h->device->caps;
    return config->cq < h->cq_count && h->cqs[config->cq] && config->send_depth > 0 &&
           config->send_depth <= caps->max_queue && config->recv_depth > 0 &&
           config->recv_depth <= caps->max_queue && config->max_sge <= caps->max_sge &&
           config->max_inline <= caps->max_inline && config->reads_out <= caps->max_reads &&
           config->reads_in <= caps->max_reads;
}

static bool make_queue(struct verbs_queue *q, uint32_t depth)
{
    uint32_t size = 1;
    while (size < depth)
        size *= 2;
    *q = (struct verbs_queue){
        .posted = calloc(size, sizeof *q->posted), .size = size, .depth = depth};
    return q->posted;
}

/* What a connection keeps besides its queue pair. */
static int make_queues(struct verbs_conn *c, const struct rdma_conn_config *config)
{
    c->config = *config;
    if (!make_queue(&c->send, config->send_depth) || !make_queue(&c->recv, config->recv_depth)) {
        free(c->send.posted);
        free(c->recv.posted);
        c->send.posted = c->recv.posted = NULL;
        return verbs_failed(c->handle, "calloc", ENOMEM);
    }
    c->handle->cqs[config->cq]->users++;
    return 0;
}

static void free_queues(struct verbs_conn *c)
{
    c->handle->cqs[c->config.cq]->users--;
    free(c->send.posted);
    free(c->recv.posted);
    c->send = c->recv = (struct verbs_queue){.posted = NULL};
}

static int make_queue_pair(struct verbs_conn *c)
{
    struct ibv_cq *cq = c->handle->cqs[c->config.cq]->cq;
    uint32_t sges = c->config.max_sge ? c->config.max_sge : 1;
    struct ibv_qp_init_attr init = {.qp_context = c,
                                    .send_cq = cq,
                                    .recv_cq = cq,
                                    .qp_type = IBV_QPT_RC,
                                    .cap = {.max_send_wr = c->config.send_depth,
                                            .max_recv_wr = c->config.recv_depth,
                                            .max_send_sge = sges,
                                            .max_recv_sge = sges,
                                            .max_inline_data = c->config.max_inline}};
    if (rdma_create_qp(c->id, c->handle->device->pd, &init) != 0)
        return verbs_failed(c->handle, "rdma_create_qp", verbs_error(-1));
    c->qp = c->id->qp;
    return 0;
}

static struct rdma_conn_param parameters(const struct verbs_conn *c, const void *private_data,
                                         uint32_t private_length)
{
    return (struct rdma_conn_param){
        .private_data = private_length ? private_data : NULL,
        .private_data_len = (uint8_t)private_length,
        .responder_resources = (uint8_t)verbs_smaller(c->config.reads_in, 255),
        .initiator_depth = (uint8_t)verbs_smaller(c->config.reads_out, 255),
        .retry_count = RETRIES,
        .rnr_retry_count = RNR_RETRIES};
}

/* How soon a peer is missed: of InfiniBand; others refuse the option. */
static void set_timeout(const struct verbs_handle *h, struct rdma_cm_id *id)
{
    uint8_t timeout = (uint8_t)h->device->config.ack_timeout;
    (void)rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &timeout, sizeof timeout);
}

/* ---- listening --------------------------------------------------------------------------- */

static int start_listening(struct verbs_handle *h, const char *address)
{
    struct rdma_verbs *d = h->device;
    struct sockaddr_storage to;
    if (!verbs_parse_address(address, &to) || strlen(address) >= sizeof d->listener.address) {
        (void)snprintf(h->words, sizeof h->words, "%.100s: not of the form IP:PORT or [IP]:PORT",
                       address);
        return -EINVAL;
    }
    struct rdma_cm_id *id;
    if (rdma_create_id(d->listening, &id, NULL, RDMA_PS_TCP) != 0)
        return verbs_failed(h, "rdma_create_id", verbs_error(-1));
    int on = 1;
    (void)rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &on, sizeof on);
    const char *call = NULL;
    if (rdma_bind_addr(id, (struct sockaddr *)&to) != 0)
        call = "rdma_bind_addr";
    else if (rdma_listen(id, 128) != 0)
        call = "rdma_listen";
    if (call) {
        int error = verbs_failed(h, call, verbs_error(-1));
        (void)rdma_destroy_id(id);
        return error;
    }
    d->listener.id = id;
    memcpy(d->listener.address, address, strlen(address) + 1);
    return 0;
}

static void stop_listening(struct rdma_verbs *d)
{
    (void)rdma_destroy_id(d->listener.id);
    d->listener = (struct verbs_listener){.id = NULL};
}

int verbs_listen(struct rdma *r, const char *address)
{
    struct verbs_handle *h = verbs_of(r);
    struct rdma_verbs *d = h->device;
    struct epoll_event event = {.events = EPOLLIN, .data.fd = d->listening->fd};
    int error = 0;
    if (atomic_load(&h->listening))
        return -EINVAL;
    (void)pthread_mutex_lock(&d->lock);
    if (d->listener.handles == 0)
        error = start_listening(h, address);
    else if (strcmp(d->listener.address, address) != 0)
        error = -EINVAL; /* one address for all handles */
    /* A request wakes those alone who can take it. */
    if (error == 0 && epoll_ctl(h->epoll, EPOLL_CTL_ADD, d->listening->fd, &event) != 0) {
        error = verbs_failed(h, "epoll_ctl", errno);
        if (d->listener.handles == 0)
            stop_listening(d);
    }
    if (error == 0) {
        d->listener.handles++;
        atomic_store(&h->listening, true);
    }
    (void)pthread_mutex_unlock(&d->lock);
    return error;
}

void verbs_stop_listening(struct verbs_handle *h)
{
    struct rdma_verbs *d = h->device;
    (void)pthread_mutex_lock(&d->lock);
    if (atomic_exchange(&h->listening, false)) {
        (void)epoll_ctl(h->epoll, EPOLL_CTL_DEL, d->listening->fd, NULL);
        if (--d->listener.handles == 0)
            stop_listening(d);
    }
    (void)pthread_mutex_unlock(&d->lock);
}

uint16_t rdma_verbs_port(const struct rdma *handle)
{
    const struct verbs_handle *h = (const struct verbs_handle *)handle;
    return atomic_load(&h->listening) ? ntohs(rdma_get_src_port(h->device->listener.id)) : 0;
}

/* Should this request be left to another handle, which has fewer connections? */
static bool leave_to_others(struct verbs_handle *h)
{
    uint32_t used = atomic_load(&h->used), least = used;
    (void)pthread_mutex_lock(&h->device->lock);
    for (const struct verbs_handle *other = h->device->handles; other; other = other->next)
        if (atomic_load(&other->listening))
            least = verbs_smaller(least, atomic_load(&other->used));
    (void)pthread_mutex_unlock(&h->device->lock);
    uint64_t now = verbs_now_ns();
    if (least >= used)
        return false;
    if (h->left_ns == 0 || now - h->left_ns > 2u * POLITE_NS) /* that was another one */
        h->left_ns = now;
    return now - h->left_ns < POLITE_NS || used == h->device->config.connections;
}

static void keep_private(struct verbs_conn *c, const struct rdma_conn_param *param)
{
    c->event_private_length =
        param->private_data ? verbs_smaller(param->private_data_len, RDMA_MAX_PRIVATE) : 0;
    if (c->event_private_length)
        memcpy(c->event_private, param->private_data, c->event_private_length);
}

/* A peer wants to connect. The event is acknowledged here: an id with one that is not cannot move
 * to another channel. */
static void take_request(struct verbs_handle *h, struct rdma_cm_event *event)
{
    struct rdma_cm_id *id = event->id;
    struct verbs_conn *c = id->verbs == h->device->context ? free_conn(h) : NULL;
    if (c) {
        c->id = id;
        c->reads_in = event->param.conn.responder_resources;
        c->reads_out = event->param.conn.initiator_depth;
        keep_private(c, &event->param.conn);
    }
    (void)rdma_ack_cm_event(event);
    if (!c || rdma_migrate_id(id, h->channel) != 0) {
        if (c)
            *c = (struct verbs_conn){.handle = h, .number = c->number, .life = c->life};
        (void)rdma_reject(id, NULL, 0);
        (void)rdma_destroy_id(id);
        return;
    }
    id->context = c;
    verbs_set_state(c, VERBS_REQUESTED);
    verbs_tell(c, RDMA_EVENT_REQUEST, 0);
}

void verbs_requests(struct verbs_handle *h)
{
    struct rdma_cm_event *event;
    if (!atomic_load(&h->listening) || leave_to_others(h) ||
        rdma_get_cm_event(h->device->listening, &event) != 0)
        return;
    h->left_ns = 0;
    if (event->event == RDMA_CM_EVENT_CONNECT_REQUEST)
        take_request(h, event); /* one at a time: the next one may be another handle's */
    else
        (void)rdma_ack_cm_event(event);
}

static int answer(struct verbs_conn *c, const struct rdma_wr *receives, uint32_t count,
                  const void *private_data, uint32_t private_length)
{
    struct verbs_handle *h = c->handle;
    set_timeout(h, c->id);
    int error = make_queue_pair(c);
    if (error == 0)
        error = verbs_post_receives(c, receives, count);
    if (error != 0)
        return error;
    struct rdma_conn_param param = parameters(c, private_data, private_length);
    if (c->reads_in)
        param.responder_resources = (uint8_t)verbs_smaller(param.responder_resources, c->reads_in);
    if (c->reads_out)
        param.initiator_depth = (uint8_t)verbs_smaller(param.initiator_depth, c->reads_out);
    return rdma_accept(c->id, &param) ? verbs_failed(h, "rdma_accept", verbs_error(-1)) : 0;
}

int verbs_accept(struct rdma *r, uint32_t conn, const struct rdma_conn_config *config,
                 const struct rdma_wr *receives, uint32_t count, const void *private_data,
                 uint32_t private_length)
{
    struct verbs_handle *h = verbs_of(r);
    struct verbs_conn *c = verbs_conn_of(h, conn);
    if (!c || c->state != VERBS_REQUESTED || private_length > RDMA_MAX_PRIVATE ||
        !within_device(h, config))
        return -EINVAL;
    c->event_private_length = 0; /* that was the request's */
    if (c->gone) {
        verbs_tell(c, RDMA_EVENT_REJECTED, c->gone);
        verbs_set_state(c, VERBS_REJECTED);
        return 0;
    }
    int error = make_queues(c, config);
    if (error != 0)
        return error;
    error = answer(c, receives, count, private_data, private_length);
    if (error != 0) {
        if (c->qp)
            rdma_destroy_qp(c->id);
        c->qp = NULL;
        free_queues(c);
        c->life++; /* who accepts once more sees none of this */
        return error;
    }
    c->deadline_ns = verbs_now_ns() + h->device->config.connect_ms * 1000000ull;
    verbs_set_state(c, VERBS_CONNECTING);
    verbs_set_clock(h);
    return 0;
}

int verbs_reject(struct rdma *r, uint32_t conn, const void *private_data, uint32_t private_length)
{
    struct verbs_handle *h = verbs_of(r);
    struct verbs_conn *c = verbs_conn_of(h, conn);
    if (!c || c->state != VERBS_REQUESTED || private_length > RDMA_MAX_PRIVATE)
        return -EINVAL;
    int result = rdma_reject(c->id, private_data, (uint8_t)private_length);
    int error = result ? verbs_failed(h, "rdma_reject", verbs_error(result)) : 0;
    verbs_conn_free(c);
    return error;
}

/* ---- connecting -------------------------------------------------------------------------- */

/* Receives can be posted when there is a queue pair, and for that the route must be known. */
static int keep_receives(struct verbs_conn *c, const struct rdma_wr *receives, uint32_t count)
{
    uint32_t sges = c->config.max_sge ? c->config.max_sge : 1;
    c->request.receives = calloc(c->recv.depth, sizeof *c->request.receives);
    c->request.sges = calloc((size_t)c->recv.depth * sges, sizeof *c->request.sges);
    if (!c->request.receives || !c->request.sges)
        return verbs_failed(c->handle, "calloc", ENOMEM);
    return verbs_keep_receives(c, receives, count);
}

static int begin(struct verbs_conn *c, const struct sockaddr_storage *to)
{
    struct verbs_handle *h = c->handle;
    if (rdma_create_id(h->channel, &c->id, c, RDMA_PS_TCP) != 0) {
        c->id = NULL;
        return verbs_failed(h, "rdma_create_id", verbs_error(-1));
    }
    struct sockaddr_storage address = *to;
    if (rdma_resolve_addr(c->id, NULL, (struct sockaddr *)&address,
                          (int)h->device->config.connect_ms) != 0)
        return verbs_failed(h, "rdma_resolve_addr", verbs_error(-1));
    return 0;
}

int verbs_connect(struct rdma *r, const char *address, const struct rdma_conn_config *config,
                  const struct rdma_wr *receives, uint32_t count, const void *private_data,
                  uint32_t private_length, uint32_t *conn)
{
    struct verbs_handle *h = verbs_of(r);
    struct sockaddr_storage to;
    if (!verbs_parse_address(address, &to) || private_length > RDMA_MAX_PRIVATE ||
        !within_device(h, config) || count > config->recv_depth)
        return -EINVAL;
    struct verbs_conn *c = free_conn(h);
    if (!c)
        return -ENOSPC;
    int error = make_queues(c, config);
    if (error != 0)
        return error;
    verbs_set_state(c, VERBS_RESOLVING);
    error = keep_receives(c, receives, count);
    if (error == 0) {
        c->request.private_length = private_length;
        if (private_length)
            memcpy(c->request.private_data, private_data, private_length);
        error = begin(c, &to);
    }
    if (error != 0) {
        verbs_conn_free(c);
        return error;
    }
    c->deadline_ns = verbs_now_ns() + h->device->config.connect_ms * 1000000ull;
    verbs_set_clock(h);
    *conn = c->number;
    return 0;
}

static int go_on(struct verbs_conn *c)
{
    struct verbs_handle *h = c->handle;
    if (c->id->verbs != h->device->context) {
        (void)snprintf(h->words, sizeof h->words, "%.60s: the peer is reached through %.60s",
                       h->device->name,
                       c->id->verbs ? ibv_get_device_name(c->id->verbs->device) : "no RDMA device");
        return -ENODEV;
    }
    set_timeout(h, c->id);
    int error = make_queue_pair(c);
    if (error == 0)
        error = verbs_post_receives(c, c->request.receives, c->request.count);
    if (error != 0)
        return error;
    struct rdma_conn_param param =
        parameters(c, c->request.private_data, c->request.private_length);
    if (rdma_connect(c->id, &param) != 0)
        return verbs_failed(h, "rdma_connect", verbs_error(-1));
    verbs_set_state(c, VERBS_CONNECTING);
    return 0;
}

/* ---- what librdmacm says ----------------------------------------------------------------- */

/* A status of an event is an errno with either sign, or a reason of InfiniBand. */
static int refused(struct verbs_conn *c, const struct rdma_cm_event *event)
{
    int status = event->status;
    if (event->event == RDMA_CM_EVENT_REJECTED) {
        keep_private(c, &event->param.conn);
        return verbs_failed(c->handle, "rdma_connect", status < 0 ? -status : ECONNREFUSED);
    }
    const char *call = "rdma_connect";
    if (event->event == RDMA_CM_EVENT_ADDR_ERROR)
        call = "rdma_resolve_addr";
    else if (event->event == RDMA_CM_EVENT_ROUTE_ERROR)
        call = "rdma_resolve_route";
    int error = status < 0 ? -status : status;
    if (error == 0)
        error = event->event == RDMA_CM_EVENT_UNREACHABLE ? EHOSTUNREACH : EIO;
    return verbs_failed(c->handle, call, error);
}

static bool was_connected(const struct verbs_conn *c)
{
    return c->state == VERBS_CONNECTED || c->state == VERBS_LOST;
}

static void take(struct verbs_conn *c, const struct rdma_cm_event *event)
{
    int error = 0;
    switch (event->event) {
    case RDMA_CM_EVENT_ADDR_RESOLVED:
        if (c->state == VERBS_RESOLVING &&
            rdma_resolve_route(c->id, (int)c->handle->device->config.connect_ms) != 0)
            verbs_end(c, verbs_failed(c->handle, "rdma_resolve_route", verbs_error(-1)));
        break;
    case RDMA_CM_EVENT_ROUTE_RESOLVED:
        error = c->state == VERBS_RESOLVING ? go_on(c) : 0;
        if (error != 0)
            verbs_end(c, error);
        break;
    case RDMA_CM_EVENT_ESTABLISHED:
        if (c->state != VERBS_CONNECTING)
            break;
        keep_private(c, &event->param.conn);
        verbs_set_state(c, VERBS_CONNECTED);
        verbs_tell(c, RDMA_EVENT_CONNECTED, 0);
        verbs_set_clock(c->handle);
        break;
    case RDMA_CM_EVENT_ADDR_ERROR:
    case RDMA_CM_EVENT_ROUTE_ERROR:
    case RDMA_CM_EVENT_CONNECT_ERROR:
    case RDMA_CM_EVENT_UNREACHABLE:
        verbs_end(c, refused(c, event));
        break;
    case RDMA_CM_EVENT_REJECTED:
        /* A peer of InfiniBand's CM that ends before it has heard that it is connected rejects. */
        verbs_end(c, was_connected(c) ? 0 : refused(c, event));
        break;
    case RDMA_CM_EVENT_DISCONNECTED:
        verbs_end(c, 0);
        break;
    case RDMA_CM_EVENT_DEVICE_REMOVAL:
        verbs_end(c, -ENODEV);
        break;
    default: /* TIMEWAIT_EXIT, ADDR_CHANGE */
        break;
    }
}

void verbs_channel(struct verbs_handle *h)
{
    struct rdma_cm_event *event;
    while (rdma_get_cm_event(h->channel, &event) == 0) {
        struct verbs_conn *c = event->id->context;
        if (c)
            take(c, event);
        (void)rdma_ack_cm_event(event);
    }
}
