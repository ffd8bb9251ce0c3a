/* SPDX-License-Identifier: BSD-3-Clause */
/* librdmacm: connections within this process. */
#include "tests/net/fake/state.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

static struct fake_id *fake_of(struct rdma_cm_id *id)
{
    return (struct fake_id *)id;
}

static struct fake_events *channel_of(const struct fake_id *it)
{
    return (struct fake_events *)it->id.channel;
}

/* -1 with errno. */
static int refuse(int error)
{
    errno = error;
    return -1;
}

/* ---- events ------------------------------------------------------------------------------------ */

static void append(struct fake_events *channel, struct fake_cm_event *event)
{
    struct fake_cm_event **at = &channel->first;
    while (*at)
        at = &(*at)->next;
    event->next = NULL;
    *at = event;
    fake_ready(channel->channel.fd, true);
}

/* Octets that InfiniBand carries are as many as there is place for. */
static struct fake_cm_event *tell(struct fake_id *it, struct fake_id *counts,
                                  enum rdma_cm_event_type type, int status,
                                  const struct rdma_conn_param *param, uint8_t room)
{
    struct fake_cm_event *event = calloc(1, sizeof *event);
    event->event = (struct rdma_cm_event){.id = &it->id, .event = type, .status = status};
    event->counts = counts;
    if (param) {
        uint8_t length = param->private_data ? param->private_data_len : 0;
        event->event.param.conn = *param;
        if (length)
            memcpy(event->private_data, param->private_data, length);
        if (fake.config.kind == FAKE_RXE)
            length = room;
        event->event.param.conn.private_data = length ? event->private_data : NULL;
        event->event.param.conn.private_data_len = length;
    }
    if (!channel_of(counts)) { /* a call that waits: nobody wants it */
        free(event);
        return NULL;
    }
    append(channel_of(counts), event);
    return event;
}

static void forget_events(struct fake_id *it)
{
    struct fake_events *channel = channel_of(it);
    for (struct fake_cm_event **at = channel ? &channel->first : NULL; at && *at;) {
        struct fake_cm_event *event = *at;
        if (event->counts == it) {
            *at = event->next;
            free(event);
        } else {
            at = &event->next;
        }
    }
    if (channel)
        fake_ready(channel->channel.fd, channel->first != NULL);
}

static void established(struct fake_id *it)
{
    it->told_nothing = false;
    (void)tell(it, it, RDMA_CM_EVENT_ESTABLISHED, 0, NULL, 0);
}

/* Whoever asked has got the answer: both can send. */
static void answered(struct fake_id *it)
{
    struct fake_qp *mine = (struct fake_qp *)it->id.qp;
    struct fake_qp *theirs = it->peer ? (struct fake_qp *)it->peer->id.qp : NULL;
    it->state = FAKE_CONNECTED;
    if (mine && mine->qp.state != IBV_QPS_ERR)
        mine->qp.state = IBV_QPS_RTS;
    if (mine && theirs) {
        mine->peer = theirs;
        theirs->peer = mine;
    }
    if (!it->peer)
        return;
    it->peer->state = FAKE_CONNECTED;
    it->peer->told_nothing = true;
    if (!fake.config.late_rtu)
        established(it->peer);
    if (theirs)
        fake_run(theirs);
}

void fake_first_message(struct fake_qp *qp)
{
    if (!qp->id || !qp->id->told_nothing || qp->id->comm_est)
        return;
    qp->id->comm_est = true;
    fake_raise(IBV_EVENT_COMM_EST, qp, NULL);
}

int rdma_get_cm_event(struct rdma_event_channel *channel, struct rdma_cm_event **out)
{
    struct fake_events *events = (struct fake_events *)channel;
    (void)pthread_mutex_lock(&fake_lock);
    struct fake_cm_event *event = events->first;
    int result = 0;
    if (!event) {
        result = fake_nothing(channel->fd, "rdma_get_cm_event");
    } else if (fake_call("rdma_get_cm_event", ENOMEM)) {
        result = -1;
    } else {
        events->first = event->next;
        event->counts->events.reported++;
        if (event->event.event == RDMA_CM_EVENT_CONNECT_REQUEST)
            fake_of(event->event.id)->listener = NULL; /* it is the caller's now */
        if (event->event.event == RDMA_CM_EVENT_CONNECT_RESPONSE) {
            answered(fake_of(event->event.id));
            event->event.event = RDMA_CM_EVENT_ESTABLISHED;
        }
        fake_ready(channel->fd, events->first != NULL);
        *out = &event->event;
    }
    (void)pthread_mutex_unlock(&fake_lock);
    return result;
}

int rdma_ack_cm_event(struct rdma_cm_event *it)
{
    struct fake_cm_event *event = (struct fake_cm_event *)it;
    (void)pthread_mutex_lock(&fake_lock);
    fake_acknowledged(&event->counts->events);
    free(event);
    (void)pthread_mutex_unlock(&fake_lock);
    return 0;
}

struct rdma_event_channel *rdma_create_event_channel(void)
{
    struct fake_events *channel = NULL;
    (void)pthread_mutex_lock(&fake_lock);
    if (!fake_call("rdma_create_event_channel", ENODEV)) {
        channel = calloc(1, sizeof *channel);
        channel->channel.fd = eventfd(0, EFD_CLOEXEC);
        fake.channels++;
    }
    (void)pthread_mutex_unlock(&fake_lock);
    return channel ? &channel->channel : NULL;
}

void rdma_destroy_event_channel(struct rdma_event_channel *channel)
{
    (void)pthread_mutex_lock(&fake_lock);
    for (const struct fake_id *id = fake.ids; id; id = id->other)
        if (id->id.channel == channel)
            fake_breaks("an event channel is destroyed that is in use");
    (void)close(channel->fd);
    free(channel);
    fake.channels--;
    (void)pthread_mutex_unlock(&fake_lock);
}

/* ---- ids ------------------------------------------------------------------------------------------ */

static struct fake_id *make_id(struct rdma_event_channel *channel, void *context)
{
    struct fake_id *it = calloc(1, sizeof *it);
    it->id.channel = channel;
    it->id.context = context;
    it->id.ps = RDMA_PS_TCP;
    it->other = fake.ids;
    fake.ids = it;
    return it;
}

int rdma_create_id(struct rdma_event_channel *channel, struct rdma_cm_id **id, void *context,
                   enum rdma_port_space ps)
{
    (void)ps;
    (void)pthread_mutex_lock(&fake_lock);
    bool failed = fake_call("rdma_create_id", ENOMEM);
    if (!failed)
        *id = &make_id(channel, context)->id;
    (void)pthread_mutex_unlock(&fake_lock);
    return failed ? -1 : 0;
}

static void free_id(struct fake_id *it)
{
    struct fake_id **at = &fake.ids;
    while (*at != it)
        at = &(*at)->other;
    *at = it->other;
    free(it);
}

void fake_free_ids(void)
{
    while (fake.ids) {
        forget_events(fake.ids);
        free_id(fake.ids);
    }
}

/* What the other end learns when this one goes. */
static void leave(struct fake_id *it)
{
    struct fake_id *peer = it->peer;
    it->peer = NULL;
    if (!peer)
        return;
    peer->peer = NULL;
    if (peer->state == FAKE_ASKING) {
        (void)tell(peer, peer, RDMA_CM_EVENT_REJECTED, 28, NULL, 0);
    } else if (peer->state == FAKE_REQUESTED) {
        if (fake.config.kind == FAKE_RXE && !peer->listener)
            (void)tell(peer, peer, RDMA_CM_EVENT_REJECTED, 4, NULL, 0);
    } else if (peer->state == FAKE_ACCEPTED || peer->state == FAKE_CONNECTED) {
        (void)tell(peer, peer, RDMA_CM_EVENT_DISCONNECTED, 0, NULL, 0);
        if (fake.config.kind == FAKE_SIW && peer->id.qp)
            fake_to_error((struct fake_qp *)peer->id.qp);
    }
    peer->state = FAKE_OVER;
}

/* A listener goes: nobody will ever see these. */
static void drop_requests(struct fake_id *listener)
{
    struct fake_id *next;
    for (struct fake_id *id = fake.ids; id; id = next) {
        next = id->other;
        if (id->listener == listener) {
            leave(id);
            free_id(id);
            next = fake.ids; /* begin anew */
        }
    }
}

int rdma_destroy_id(struct rdma_cm_id *id)
{
    struct fake_id *it = fake_of(id);
    (void)pthread_mutex_lock(&fake_lock);
    if (id->qp)
        fake_breaks("an id is destroyed before its queue pair");
    leave(it);
    fake_wait(&it->events, "rdma_destroy_id");
    forget_events(it);
    drop_requests(it);
    free_id(it);
    (void)pthread_mutex_unlock(&fake_lock);
    return 0;
}

int rdma_migrate_id(struct rdma_cm_id *id, struct rdma_event_channel *channel)
{
    struct fake_id *it = fake_of(id);
    struct fake_events *from = channel_of(it);
    (void)pthread_mutex_lock(&fake_lock);
    bool failed = fake_call("rdma_migrate_id", ENOMEM);
    fake_wait(&it->events, "rdma_migrate_id");
    for (struct fake_cm_event **at = &from->first; *at && !failed;) {
        struct fake_cm_event *event = *at;
        if (event->counts == it) {
            *at = event->next;
            append((struct fake_events *)channel, event);
        } else {
            at = &event->next;
        }
    }
    fake_ready(from->channel.fd, from->first != NULL);
    if (!failed)
        id->channel = channel;
    (void)pthread_mutex_unlock(&fake_lock);
    return failed ? -1 : 0;
}

int rdma_set_option(struct rdma_cm_id *id, int level, int name, void *value, size_t octets)
{
    (void)level, (void)value, (void)octets;
    (void)pthread_mutex_lock(&fake_lock);
    bool failed = fake_call("rdma_set_option", ENOSYS);
    if (name == RDMA_OPTION_ID_REUSEADDR)
        fake_of(id)->reuse = true;
    else
        failed |= fake.config.kind == FAKE_SIW;
    (void)pthread_mutex_unlock(&fake_lock);
    return failed ? refuse(ENOSYS) : 0;
}

int rdma_create_qp(struct rdma_cm_id *id, struct ibv_pd *pd, struct ibv_qp_init_attr *init)
{
    (void)pthread_mutex_lock(&fake_lock);
    struct fake_qp *qp = fake_call("rdma_create_qp", ENOMEM) ? NULL : fake_make_qp(pd, init);
    if (qp) {
        qp->qp.state = IBV_QPS_INIT;
        qp->id = fake_of(id);
        id->qp = &qp->qp;
    }
    (void)pthread_mutex_unlock(&fake_lock);
    return qp ? 0 : -1;
}

void rdma_destroy_qp(struct rdma_cm_id *id)
{
    (void)pthread_mutex_lock(&fake_lock);
    fake_free_qp((struct fake_qp *)id->qp);
    id->qp = NULL;
    (void)pthread_mutex_unlock(&fake_lock);
}

/* ---- addresses -------------------------------------------------------------------------------------- */

static bool is_address(const struct sockaddr *address, const char *name)
{
    struct in_addr other;
    (void)inet_pton(AF_INET, name, &other);
    return address->sa_family == AF_INET &&
           ((const struct sockaddr_in *)(const void *)address)->sin_addr.s_addr == other.s_addr;
}

static uint16_t port_of(const struct sockaddr *address)
{
    return ntohs(((const struct sockaddr_in *)(const void *)address)->sin_port);
}

static struct fake_id *listener_at(uint16_t port)
{
    for (struct fake_id *id = fake.ids; id; id = id->other)
        if (id->state == FAKE_LISTENING && id->port == port)
            return id;
    return NULL;
}

int rdma_bind_addr(struct rdma_cm_id *id, struct sockaddr *address)
{
    struct fake_id *it = fake_of(id);
    (void)pthread_mutex_lock(&fake_lock);
    int error = fake_call("rdma_bind_addr", EADDRINUSE) ? EADDRINUSE : 0;
    bool any = is_address(address, "0.0.0.0");
    if (!error && !any && !is_address(address, FAKE_HERE))
        error = EADDRNOTAVAIL;
    if (!error) {
        it->port = port_of(address) ? port_of(address) : ++fake.port;
        id->route.addr.src_storage = *(struct sockaddr_storage *)(void *)address;
        if (!any)
            id->verbs = &fake.contexts[0];
    }
    (void)pthread_mutex_unlock(&fake_lock);
    return error ? refuse(error) : 0;
}

int rdma_listen(struct rdma_cm_id *id, int backlog)
{
    struct fake_id *it = fake_of(id);
    (void)backlog;
    (void)pthread_mutex_lock(&fake_lock);
    int error = fake_call("rdma_listen", EADDRINUSE) || listener_at(it->port) ? EADDRINUSE : 0;
    if (!error)
        it->state = FAKE_LISTENING;
    (void)pthread_mutex_unlock(&fake_lock);
    return error ? refuse(error) : 0;
}

uint16_t rdma_get_src_port(struct rdma_cm_id *id)
{
    return htons(fake_of(id)->port);
}

int rdma_resolve_addr(struct rdma_cm_id *id, struct sockaddr *from, struct sockaddr *to,
                      int timeout_ms)
{
    struct fake_id *it = fake_of(id);
    (void)from, (void)timeout_ms;
    (void)pthread_mutex_lock(&fake_lock);
    int error = fake_call("rdma_resolve_addr", ENODEV) ? ENODEV : 0;
    bool bad = is_address(to, FAKE_BAD_ADDRESS);
    if (!error && bad && !id->channel)
        error = ETIMEDOUT;
    if (!error) {
        id->route.addr.dst_storage = *(struct sockaddr_storage *)(void *)to;
        id->verbs = bad ? NULL : &fake.contexts[0];
        it->state = FAKE_RESOLVED;
        if (!is_address(to, FAKE_NO_ADDRESS))
            (void)tell(it, it, bad ? RDMA_CM_EVENT_ADDR_ERROR : RDMA_CM_EVENT_ADDR_RESOLVED,
                       bad ? -ETIMEDOUT : 0, NULL, 0);
    }
    (void)pthread_mutex_unlock(&fake_lock);
    return error ? refuse(error) : 0;
}

int rdma_resolve_route(struct rdma_cm_id *id, int timeout_ms)
{
    struct fake_id *it = fake_of(id);
    (void)timeout_ms;
    (void)pthread_mutex_lock(&fake_lock);
    int error = fake_call("rdma_resolve_route", EINVAL) || it->state != FAKE_RESOLVED ? EINVAL : 0;
    bool bad = is_address(&id->route.addr.dst_addr, FAKE_BAD_ROUTE);
    if (!error) {
        it->state = FAKE_ROUTED;
        (void)tell(it, it, bad ? RDMA_CM_EVENT_ROUTE_ERROR : RDMA_CM_EVENT_ROUTE_RESOLVED,
                   bad ? -ETIMEDOUT : 0, NULL, 0);
    }
    (void)pthread_mutex_unlock(&fake_lock);
    return error ? refuse(error) : 0;
}

/* ---- connections -------------------------------------------------------------------------------------- */

/* As the other end sees them. */
static struct rdma_conn_param turned(const struct rdma_conn_param *param)
{
    struct rdma_conn_param other = *param;
    other.responder_resources = param->initiator_depth;
    other.initiator_depth = param->responder_resources;
    return other;
}

static void ask(struct fake_id *it, const struct rdma_conn_param *param)
{
    struct fake_id *listener = listener_at(port_of(&it->id.route.addr.dst_addr));
    const struct sockaddr *to = &it->id.route.addr.dst_addr;
    it->state = FAKE_ASKING;
    if (is_address(to, FAKE_SILENT))
        return;
    if (is_address(to, FAKE_UNREACHABLE)) {
        (void)tell(it, it, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT, NULL, 0);
    } else if (!listener) {
        bool iwarp = fake.config.kind == FAKE_SIW;
        (void)tell(it, it, RDMA_CM_EVENT_REJECTED, iwarp ? -ECONNREFUSED : 8, NULL, 0);
    } else {
        struct rdma_conn_param theirs = turned(param);
        struct fake_id *child = make_id(listener->id.channel, listener->id.context);
        child->id.verbs = &fake.contexts[0];
        child->state = FAKE_REQUESTED;
        child->child = true;
        child->listener = listener;
        child->peer = it;
        it->peer = child;
        struct fake_cm_event *event =
            tell(child, listener, RDMA_CM_EVENT_CONNECT_REQUEST, 0, &theirs, 56);
        event->event.listen_id = &listener->id;
    }
}

int rdma_connect(struct rdma_cm_id *id, struct rdma_conn_param *param)
{
    (void)pthread_mutex_lock(&fake_lock);
    struct fake_id *it = fake_of(id);
    int error = fake_call("rdma_connect", ENOMEM) ? ENOMEM : 0;
    if (!error && (it->state != FAKE_ROUTED || !id->qp || param->private_data_len > 56))
        error = EINVAL;
    if (!error)
        ask(it, param);
    (void)pthread_mutex_unlock(&fake_lock);
    return error ? refuse(error) : 0;
}

int rdma_accept(struct rdma_cm_id *id, struct rdma_conn_param *param)
{
    struct fake_id *it = fake_of(id);
    (void)pthread_mutex_lock(&fake_lock);
    int error = fake_call("rdma_accept", ENOMEM) ? ENOMEM : 0;
    if (!error && (it->state != FAKE_REQUESTED || !it->peer || !id->qp))
        error = fake.config.kind == FAKE_SIW ? ECONNRESET : EINVAL;
    if (!error) {
        struct rdma_conn_param theirs = turned(param);
        it->state = FAKE_ACCEPTED;
        id->qp->state = IBV_QPS_RTS;
        (void)tell(it->peer, it->peer, RDMA_CM_EVENT_CONNECT_RESPONSE, 0, &theirs, 196);
    }
    (void)pthread_mutex_unlock(&fake_lock);
    return error ? refuse(error) : 0;
}

int rdma_reject(struct rdma_cm_id *id, const void *private_data, uint8_t length)
{
    struct fake_id *it = fake_of(id);
    (void)pthread_mutex_lock(&fake_lock);
    int error = fake_call("rdma_reject", EIO) ? EIO : it->state != FAKE_REQUESTED ? EINVAL : 0;
    if (!error && it->peer) {
        struct rdma_conn_param param = {.private_data = private_data, .private_data_len = length};
        struct fake_id *peer = it->peer;
        (void)tell(peer, peer, RDMA_CM_EVENT_REJECTED,
                   fake.config.kind == FAKE_SIW ? -ECONNREFUSED : 28, &param, 148);
        peer->peer = it->peer = NULL;
        peer->state = FAKE_OVER;
    }
    it->state = error ? it->state : FAKE_OVER;
    (void)pthread_mutex_unlock(&fake_lock);
    return error ? refuse(error) : 0;
}

/* One end learns that there is no connection any more. */
static void over(struct fake_id *it)
{
    if (!it || (it->state != FAKE_CONNECTED && it->state != FAKE_ACCEPTED))
        return;
    it->state = FAKE_OVER;
    it->told_nothing = false;
    (void)tell(it, it, RDMA_CM_EVENT_DISCONNECTED, 0, NULL, 0);
}

int rdma_disconnect(struct rdma_cm_id *id)
{
    struct fake_id *it = fake_of(id);
    (void)pthread_mutex_lock(&fake_lock);
    struct fake_id *peer = it->peer;
    int error = fake_call("rdma_disconnect", EIO) || fake.dead ? EIO : 0;
    if (!error && it->state != FAKE_CONNECTED && it->state != FAKE_ACCEPTED)
        error = EINVAL;
    if (!error) {
        if (id->qp)
            fake_to_error((struct fake_qp *)id->qp);
        if (fake.config.kind == FAKE_SIW && peer && peer->id.qp)
            fake_to_error((struct fake_qp *)peer->id.qp);
        over(peer);
        over(it);
    }
    (void)pthread_mutex_unlock(&fake_lock);
    return error ? refuse(error) : 0;
}

void fake_lost(struct fake_qp *qp)
{
    struct fake_id *it = qp->id, *peer = it ? it->peer : NULL;
    fake_to_error(qp);
    if (peer && peer->id.qp)
        fake_to_error((struct fake_qp *)peer->id.qp);
    over(it);
    over(peer);
}

void fake_cut(struct rdma_cm_id *id)
{
    (void)pthread_mutex_lock(&fake_lock);
    struct fake_qp *qp = (struct fake_qp *)id->qp, *peer = qp ? qp->peer : NULL;
    if (qp)
        fake_to_error(qp);
    if (qp)
        fake_raise(IBV_EVENT_QP_FATAL, qp, NULL);
    if (peer)
        fake_to_error(peer);
    if (peer)
        fake_raise(IBV_EVENT_QP_FATAL, peer, NULL);
    (void)pthread_mutex_unlock(&fake_lock);
}

int rdma_notify(struct rdma_cm_id *id, enum ibv_event_type event)
{
    struct fake_id *it = fake_of(id);
    (void)pthread_mutex_lock(&fake_lock);
    int error = fake_call("rdma_notify", EINVAL) ? EINVAL : 0;
    if (!error && event == IBV_EVENT_COMM_EST && it->told_nothing)
        established(it);
    (void)pthread_mutex_unlock(&fake_lock);
    return error ? refuse(error) : 0;
}
