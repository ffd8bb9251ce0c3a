/* SPDX-License-Identifier: BSD-3-Clause */
/* What happens by itself, and waiting for it. */
#include "net/verbs/state.h"

#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#define FDS 8

uint64_t verbs_now_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void verbs_tell(struct verbs_conn *c, enum rdma_event_kind kind, int error)
{
    struct verbs_handle *h = c->handle;
    uint32_t at = (h->events_first + h->events_count) % h->events_size;
    h->events[at] = (struct rdma_event){.kind = kind, .conn = c->number, .error = error};
    if (kind == RDMA_EVENT_REQUEST || kind == RDMA_EVENT_CONNECTED || kind == RDMA_EVENT_REJECTED) {
        h->events[at].private_length = c->event_private_length;
        memcpy(h->events[at].private_data, c->event_private, c->event_private_length);
    }
    h->events_count++;
}

/* ---- timers ------------------------------------------------------------------------------ */

bool verbs_has_deadline(const struct verbs_conn *c)
{
    return c->state == VERBS_RESOLVING || c->state == VERBS_LOST ||
           (c->state == VERBS_CONNECTING && !c->received);
}

void verbs_set_clock(struct verbs_handle *h)
{
    uint64_t due = UINT64_MAX;
    for (uint32_t i = 0; i < h->device->config.timers; i++)
        if (h->timers[i].armed && h->timers[i].due_ns < due)
            due = h->timers[i].due_ns;
    for (uint32_t i = 0; h->moving && i < h->device->config.connections; i++) {
        const struct verbs_conn *c = &h->conns[i];
        if (verbs_has_deadline(c) && c->deadline_ns < due)
            due = c->deadline_ns;
    }
    struct itimerspec when = {.it_value = {0, 0}}; /* none */
    if (due != UINT64_MAX)
        when.it_value = (struct timespec){(time_t)(due / 1000000000u),
                                          due % 1000000000u ? (long)(due % 1000000000u) : 1};
    (void)timerfd_settime(h->timer_fd, TFD_TIMER_ABSTIME, &when, NULL);
}

int verbs_timer(struct rdma *r, uint32_t id, uint64_t delay_ns)
{
    struct verbs_handle *h = verbs_of(r);
    if (id >= h->device->config.timers)
        return -EINVAL;
    struct verbs_timer *timer = &h->timers[id];
    if (timer->expired)
        h->expired--;
    if (delay_ns == 0 && !timer->armed) {
        *timer = (struct verbs_timer){.armed = false};
        return 0;
    }
    uint64_t now = verbs_now_ns();
    *timer = (struct verbs_timer){.armed = delay_ns != 0,
                                  .due_ns = delay_ns < UINT64_MAX - now ? now + delay_ns
                                                                        : UINT64_MAX - 1};
    verbs_set_clock(h);
    return 0;
}

static void clock_rang(struct verbs_handle *h)
{
    uint64_t times, now = verbs_now_ns();
    if (read(h->timer_fd, &times, sizeof times) < 0)
        return; /* set anew in the meantime */
    for (uint32_t i = 0; i < h->device->config.timers; i++)
        if (h->timers[i].armed && h->timers[i].due_ns <= now) {
            h->timers[i].armed = false;
            h->timers[i].expired = true;
            h->expired++;
        }
    for (uint32_t i = 0; h->moving && i < h->device->config.connections; i++) {
        struct verbs_conn *c = &h->conns[i];
        if (verbs_has_deadline(c) && c->deadline_ns <= now)
            verbs_end(c, c->state == VERBS_LOST ? -ECONNRESET
                                                : verbs_failed(h, "rdma_connect", ETIMEDOUT));
    }
    verbs_set_clock(h);
}

/* ---- asynchronous events ----------------------------------------------------------------- */

static void wake(struct verbs_handle *h)
{
    uint64_t one = 1;
    ssize_t written = write(h->wake_fd, &one, sizeof one);
    (void)written; /* it is awake when this is full */
}

static void wake_all(struct rdma_verbs *d)
{
    (void)pthread_mutex_lock(&d->lock);
    for (struct verbs_handle *h = d->handles; h; h = h->next)
        wake(h);
    (void)pthread_mutex_unlock(&d->lock);
}

/* Events of the device, which may be another handle's. They are acknowledged at the end: until then
 * what they are about stays. */
static void take_async(struct rdma_verbs *d)
{
    struct ibv_async_event event;
    while (ibv_get_async_event(d->context, &event) == 0) {
        struct verbs_conn *c;
        struct verbs_cq *q;
        switch (event.event_type) {
        case IBV_EVENT_QP_FATAL:
        case IBV_EVENT_QP_REQ_ERR:
        case IBV_EVENT_QP_ACCESS_ERR:
            c = event.element.qp->qp_context;
            if (!c)
                break; /* a LOOP queue's: its completions tell it as well */
            atomic_store(&c->failed, true);
            wake(c->handle);
            break;
        case IBV_EVENT_COMM_EST:
            c = event.element.qp->qp_context;
            if (c)
                (void)rdma_notify(c->id, IBV_EVENT_COMM_EST);
            break;
        case IBV_EVENT_CQ_ERR:
            q = event.element.cq->cq_context;
            atomic_store(&q->broken, true);
            wake(q->handle);
            break;
        case IBV_EVENT_DEVICE_FATAL:
            atomic_store(&d->dead, true);
            wake_all(d);
            break;
        default:
            break;
        }
        ibv_ack_async_event(&event);
    }
}

static void take_failures(struct verbs_handle *h)
{
    bool dead = atomic_load(&h->device->dead);
    for (uint32_t i = 0; i < h->device->config.connections; i++) {
        struct verbs_conn *c = &h->conns[i];
        if (c->state != VERBS_UNUSED && (dead || atomic_exchange(&c->failed, false)))
            verbs_end(c, dead ? -ENODEV : -ECONNRESET);
    }
    verbs_end_broken(h);
}

/* ---- looking and waiting ----------------------------------------------------------------- */

static void take_completion_events(struct verbs_handle *h)
{
    struct ibv_cq *cq;
    void *context;
    while (ibv_get_cq_event(h->completions, &cq, &context) == 0)
        ibv_ack_cq_events(cq, 1);
    h->armed = false;
}

static int look(struct verbs_handle *h, int timeout_ms)
{
    struct epoll_event ready[FDS];
    int count = epoll_wait(h->epoll, ready, FDS, timeout_ms);
    h->spins = 0;
    h->counts.looks++;
    if (count < 0)
        return errno == EINTR ? 0 : verbs_failed(h, "epoll_wait", errno);
    for (int i = 0; i < count; i++) {
        int fd = ready[i].data.fd;
        if (fd == h->channel->fd)
            verbs_channel(h);
        else if (fd == h->completions->fd)
            take_completion_events(h);
        else if (fd == h->timer_fd)
            clock_rang(h);
        else if (fd == h->device->listening->fd)
            verbs_requests(h);
        else if (fd == h->device->context->async_fd)
            take_async(h->device);
        else if (fd == h->wake_fd) {
            uint64_t times;
            (void)!read(h->wake_fd, &times, sizeof times);
            take_failures(h);
        }
    }
    return 0;
}

static bool take_expired(struct verbs_handle *h, struct rdma_event *event)
{
    for (uint32_t i = 0; h->expired > 0 && i < h->device->config.timers; i++)
        if (h->timers[i].expired) {
            h->timers[i].expired = false;
            h->expired--;
            *event = (struct rdma_event){.kind = RDMA_EVENT_TIMER, .conn = i};
            return true;
        }
    return false;
}

int verbs_event(struct rdma *r, struct rdma_event *event)
{
    struct verbs_handle *h = verbs_of(r);
    if (h->events_count == 0 && h->moving > 0)
        verbs_drain(h);
    if (h->events_count == 0 && (h->moving > 0 || ++h->spins >= RDMA_VERBS_SPINS)) {
        int error = look(h, 0);
        if (error != 0)
            return error;
    }
    if (h->events_count == 0)
        return take_expired(h, event);
    *event = h->events[h->events_first];
    h->events_first = (h->events_first + 1) % h->events_size;
    h->events_count--;
    struct verbs_conn *c = &h->conns[event->conn];
    if (event->kind == RDMA_EVENT_CONNECTED)
        c->told_connected = true;
    else if (event->kind == RDMA_EVENT_DISCONNECTED)
        c->told_disconnected = true;
    else if (event->kind == RDMA_EVENT_DRAINED || event->kind == RDMA_EVENT_REJECTED)
        c->told_end = true;
    h->armed = false;
    return 1;
}

/* 1: it has told all there is; 0: it may have more to tell; or -errno. */
static int may_wait(struct verbs_handle *h)
{
    if (h->events_count > 0 || h->expired > 0)
        return 0;
    for (uint32_t i = 0; h->moving && i < h->device->config.connections; i++)
        if (h->conns[i].state == VERBS_ENDING && h->conns[i].told_disconnected)
            return 0; /* polling goes on with it */
    if (h->armed)
        return 1;
    for (uint32_t i = 0; i < h->cq_count; i++) {
        int error = h->cqs[i] ? verbs_cq_arm(&h->rdma, i, false) : 0;
        if (error != 0)
            return error;
    }
    h->armed = true;
    return 0;
}

static int milliseconds(int64_t timeout_ns)
{
    int64_t ms = timeout_ns < 0 ? -1 : timeout_ns / 1000000 + (timeout_ns % 1000000 != 0);
    return ms > INT32_MAX ? INT32_MAX : (int)ms;
}

int rdma_verbs_wait(struct rdma *handle, int64_t timeout_ns)
{
    struct verbs_handle *h = verbs_of(handle);
    int may = may_wait(h);
    if (may <= 0)
        return may;
    h->counts.waits++;
    return look(h, milliseconds(timeout_ns));
}

int rdma_verbs_wait_any(struct rdma *const *handles, uint32_t count, int64_t timeout_ns)
{
    bool all_may = true;
    if (count == 0 || count > RDMA_VERBS_WAITED)
        return -EINVAL;
    for (uint32_t i = 0; i < count; i++) {
        int may = may_wait(verbs_of(handles[i]));
        if (may < 0)
            return may;
        all_may &= may == 1;
    }
    if (!all_may)
        return 0;
    struct pollfd fds[RDMA_VERBS_WAITED];
    for (uint32_t i = 0; i < count; i++)
        fds[i] = (struct pollfd){.fd = verbs_of(handles[i])->epoll, .events = POLLIN};
    verbs_of(handles[0])->counts.waits++;
    if (poll(fds, count, milliseconds(timeout_ns)) < 0)
        return errno == EINTR ? 0 : verbs_failed(verbs_of(handles[0]), "poll", errno);
    for (uint32_t i = 0; i < count; i++) {
        int error = fds[i].revents ? look(verbs_of(handles[i]), 0) : 0;
        if (error != 0)
            return error;
    }
    return 0;
}

void rdma_verbs_wake(struct rdma *handle)
{
    wake(verbs_of(handle));
}

int verbs_random(struct rdma *r, void *octets, uint32_t length)
{
    (void)r;
    char *at = octets;
    while (length > 0) {
        ssize_t got = getrandom(at, length, 0);
        if (got < 0 && errno != EINTR)
            return -errno;
        if (got > 0) {
            at += got;
            length -= (uint32_t)got;
        }
    }
    return 0;
}
