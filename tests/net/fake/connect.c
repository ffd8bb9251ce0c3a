/* SPDX-License-Identifier: BSD-3-Clause */
/* librdmacm: addresses, and connections within this process. */
#include "tests/net/fake/state.h"

#include <arpa/inet.h>

/* ---- addresses --------------------------------------------------------------------------- */

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
    return error ? fake_refuse(error) : 0;
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
    return error ? fake_refuse(error) : 0;
}

uint16_t rdma_get_src_port(struct rdma_cm_id *id)
{
    return htons(fake_of(id)->port);
}

int rdma_resolve_addr(struct rdma_cm_id *id, struct sockaddr *src_addr, struct sockaddr *dst_addr,
                      int timeout_ms)
{
    struct fake_id *it = fake_of(id);
    (void)src_addr, (void)timeout_ms;
    (void)pthread_mutex_lock(&fake_lock);
    int error = fake_call("rdma_resolve_addr", ENODEV) ? ENODEV : 0;
    bool bad = is_address(dst_addr, FAKE_BAD_ADDRESS);
    if (!error && bad && !id->channel)
        error = ETIMEDOUT;
    if (!error) {
        id->route.addr.dst_storage = *(struct sockaddr_storage *)(void *)dst_addr;
        id->verbs = bad ? NULL : &fake.contexts[0];
        it->state = FAKE_RESOLVED;
        if (!is_address(dst_addr, FAKE_NO_ADDRESS))
            (void)fake_tell(it, it, bad ? RDMA_CM_EVENT_ADDR_ERROR : RDMA_CM_EVENT_ADDR_RESOLVED,
                            bad ? -ETIMEDOUT : 0, NULL, 0);
    }
    (void)pthread_mutex_unlock(&fake_lock);
    return error ? fake_refuse(error) : 0;
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
        (void)fake_tell(it, it, bad ? RDMA_CM_EVENT_ROUTE_ERROR : RDMA_CM_EVENT_ROUTE_RESOLVED,
                        bad ? -ETIMEDOUT : 0, NULL, 0);
    }
    (void)pthread_mutex_unlock(&fake_lock);
    return error ? fake_refuse(error) : 0;
}

/* ---- connections ------------------------------------------------------------------------- */

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
        (void)fake_tell(it, it, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT, NULL, 0);
    } else if (!listener) {
        bool iwarp = fake.config.kind == FAKE_SIW;
        (void)fake_tell(it, it, RDMA_CM_EVENT_REJECTED, iwarp ? -ECONNREFUSED : 8, NULL, 0);
    } else {
        struct rdma_conn_param theirs = turned(param);
        struct fake_id *child = fake_make_id(listener->id.channel, listener->id.context);
        child->id.verbs = &fake.contexts[0];
        child->state = FAKE_REQUESTED;
        child->child = true;
        child->listener = listener;
        child->peer = it;
        it->peer = child;
        struct fake_cm_event *event =
            fake_tell(child, listener, RDMA_CM_EVENT_CONNECT_REQUEST, 0, &theirs, 56);
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
    return error ? fake_refuse(error) : 0;
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
        (void)fake_tell(it->peer, it->peer, RDMA_CM_EVENT_CONNECT_RESPONSE, 0, &theirs, 196);
    }
    (void)pthread_mutex_unlock(&fake_lock);
    return error ? fake_refuse(error) : 0;
}

int rdma_reject(struct rdma_cm_id *id, const void *private_data, uint8_t private_data_len)
{
    struct fake_id *it = fake_of(id);
    (void)pthread_mutex_lock(&fake_lock);
    int error = fake_call("rdma_reject", EIO) ? EIO : it->state != FAKE_REQUESTED ? EINVAL : 0;
    if (!error && it->peer) {
        struct rdma_conn_param param = {.private_data = private_data,
                                        .private_data_len = private_data_len};
        struct fake_id *peer = it->peer;
        (void)fake_tell(peer, peer, RDMA_CM_EVENT_REJECTED,
                        fake.config.kind == FAKE_SIW ? -ECONNREFUSED : 28, &param, 148);
        peer->peer = it->peer = NULL;
        peer->state = FAKE_OVER;
    }
    it->state = error ? it->state : FAKE_OVER;
    (void)pthread_mutex_unlock(&fake_lock);
    return error ? fake_refuse(error) : 0;
}

/* One end learns that there is no connection any more. */
static void over(struct fake_id *it)
{
    if (!it || (it->state != FAKE_CONNECTED && it->state != FAKE_ACCEPTED))
        return;
    it->state = FAKE_OVER;
    it->told_nothing = false;
    (void)fake_tell(it, it, RDMA_CM_EVENT_DISCONNECTED, 0, NULL, 0);
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
        if (!fake_hears_late(it)) {
            over(peer);
            over(it);
        }
    }
    (void)pthread_mutex_unlock(&fake_lock);
    return error ? fake_refuse(error) : 0;
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
        fake_established(it);
    (void)pthread_mutex_unlock(&fake_lock);
    return error ? fake_refuse(error) : 0;
}
