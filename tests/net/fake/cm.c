/* SPDX-License-Identifier: BSD-3-Clause */
/* librdmacm: events and ids. */
#include "tests/net/fake/state.h"

#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

static struct fake_events *channel_of(const struct fake_id *it)
{
    return (struct fake_events *)it->id.channel;
}

/* ---- events ------------------------------------------------------------------------------ */

static void append(struct fake_events *channel, struct fake_cm_event *event)
{
    struct fake_cm_event **at = &channel->first;
    while (*at)
        at = &(*at)->next;
    event->next = NULL;
    *at = event;
    fake_ready(channel->channel.fd, true);
}

struct fake_cm_event *fake_tell(struct fake_id *it, struct fake_id *counts,
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

void fake_established(struct fake_id *it)
{
    it->told_nothing = false;
    (void)fake_tell(it, it, RDMA_CM_EVENT_ESTABLISHED, 0, NULL, 0);
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
        fake_established(it->peer);
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

int rdma_get_cm_event(struct rdma_event_channel *channel, struct rdma_cm_event **event)
{
    struct fake_events *events = (struct fake_events *)channel;
    (void)pthread_mutex_lock(&fake_lock);
    struct fake_cm_event *next = events->first;
    int result = 0;
    if (!next) {
        result = fake_nothing(channel->fd, "rdma_get_cm_event");
    } else if (fake_call("rdma_get_cm_event", ENOMEM)) {
        result = -1;
    } else {
        events->first = next->next;
        next->counts->events.reported++;
        if (next->event.event == RDMA_CM_EVENT_CONNECT_REQUEST)
            fake_of(next->event.id)->listener = NULL; /* it is the caller's now */
        if (next->event.event == RDMA_CM_EVENT_CONNECT_RESPONSE) {
            answered(fake_of(next->event.id));
            next->event.event = RDMA_CM_EVENT_ESTABLISHED;
        }
        fake_ready(channel->fd, events->first != NULL);
        *event = &next->event;
    }
    (void)pthread_mutex_unlock(&fake_lock);
    return result;
}

int rdma_ack_cm_event(struct rdma_cm_event *event)
{
    struct fake_cm_event *taken = (struct fake_cm_event *)event;
    (void)pthread_mutex_lock(&fake_lock);
    fake_acknowledged(&taken->counts->events);
    free(taken);
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

/* ---- ids --------------------------------------------------------------------------------- */

struct fake_id *fake_make_id(struct rdma_event_channel *channel, void *context)
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
        *id = &fake_make_id(channel, context)->id;
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

/* Whoever has accepted and was not told ESTABLISHED cannot disconnect on InfiniBand: the other end
 * learns of it when the id goes, and then it is rejected. */
bool fake_hears_late(const struct fake_id *it)
{
    return fake.config.kind == FAKE_RXE && it->told_nothing;
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
        (void)fake_tell(peer, peer, RDMA_CM_EVENT_REJECTED, 28, NULL, 0);
    } else if (peer->state == FAKE_REQUESTED) {
        if (fake.config.kind == FAKE_RXE && !peer->listener)
            (void)fake_tell(peer, peer, RDMA_CM_EVENT_REJECTED, 4, NULL, 0);
    } else if (peer->state == FAKE_ACCEPTED || peer->state == FAKE_CONNECTED) {
        if (fake_hears_late(it))
            (void)fake_tell(peer, peer, RDMA_CM_EVENT_REJECTED, 28, NULL, 0);
        else
            (void)fake_tell(peer, peer, RDMA_CM_EVENT_DISCONNECTED, 0, NULL, 0);
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

int rdma_set_option(struct rdma_cm_id *id, int level, int optname, void *optval, size_t optlen)
{
    (void)level, (void)optval, (void)optlen;
    (void)pthread_mutex_lock(&fake_lock);
    bool failed = fake_call("rdma_set_option", ENOSYS);
    if (optname == RDMA_OPTION_ID_REUSEADDR)
        fake_of(id)->reuse = true;
    else
        failed |= fake.config.kind == FAKE_SIW;
    (void)pthread_mutex_unlock(&fake_lock);
    return failed ? fake_refuse(ENOSYS) : 0;
}

int rdma_create_qp(struct rdma_cm_id *id, struct ibv_pd *pd, struct ibv_qp_init_attr *qp_init_attr)
{
    (void)pthread_mutex_lock(&fake_lock);
    struct fake_qp *qp =
        fake_call("rdma_create_qp", ENOMEM) ? NULL : fake_make_qp(pd, qp_init_attr);
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
