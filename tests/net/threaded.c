/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/net/threaded.h"

#include <string.h>

static struct threaded_handle *self(struct rdma *r)
{
    return (struct threaded_handle *)r;
}

static struct rdma *inner(struct rdma *r)
{
    return &self(r)->inner->rdma;
}

/* ---- locks: always those of lower numbers first ------------------------------------------- */

static void lock(struct threaded_handle *h)
{
    pthread_mutex_lock(&h->lock);
}

static void unlock(struct threaded_handle *h)
{
    pthread_mutex_unlock(&h->lock);
}

static void lock_all(struct threaded *device)
{
    for (uint32_t i = 0; i < device->count; i++)
        lock(&device->handles[i]);
}

static void unlock_all(struct threaded *device)
{
    for (uint32_t i = 0; i < device->count; i++)
        unlock(&device->handles[i]);
}

/* The handle at the other end, or NULL; asked with the own lock held. */
static struct threaded_handle *peer_of(const struct threaded_handle *h, uint32_t conn)
{
    const struct loop_handle *peer = h->inner->conns[conn].peer;
    return peer ? &h->device->handles[peer - h->device->loop.handles] : NULL;
}

/* Both ends of a connection. Returns the other one, or NULL, for unlock_both(). */
static struct threaded_handle *lock_both(struct threaded_handle *h, uint32_t conn)
{
    lock(h);
    struct threaded_handle *peer = peer_of(h, conn);
    while (peer && peer < h) {
        unlock(h);
        lock(peer);
        lock(h);
        struct threaded_handle *now = peer_of(h, conn);
        if (now == peer)
            return peer;
        unlock(peer);
        peer = now;
    }
    if (peer)
        lock(peer);
    return peer;
}

static void unlock_both(struct threaded_handle *h, struct threaded_handle *peer)
{
    if (peer)
        unlock(peer);
    unlock(h);
}

/* ---- calls that change what all share ------------------------------------------------------ */

static void caps(struct rdma *r, struct rdma_caps *out)
{
    rdma_caps(inner(r), out); /* constant */
}

static int reg(struct rdma *r, void *addr, uint64_t length, uint32_t access, uint64_t wanted_base,
               struct rdma_region *region)
{
    lock_all(self(r)->device);
    int result = rdma_reg(inner(r), addr, length, access, wanted_base, region);
    unlock_all(self(r)->device);
    return result;
}

static int dereg(struct rdma *r, struct rdma_region *region)
{
    lock_all(self(r)->device);
    int result = rdma_dereg(inner(r), region);
    unlock_all(self(r)->device);
    return result;
}

static int window_alloc(struct rdma *r, struct rdma_window *window)
{
    lock_all(self(r)->device);
    int result = rdma_window_alloc(inner(r), window);
    unlock_all(self(r)->device);
    return result;
}

static int window_free(struct rdma *r, struct rdma_window *window)
{
    lock_all(self(r)->device);
    int result = rdma_window_free(inner(r), window);
    unlock_all(self(r)->device);
    return result;
}

static int threaded_listen(struct rdma *r, const char *address)
{
    lock_all(self(r)->device);
    int result = rdma_listen(inner(r), address);
    unlock_all(self(r)->device);
    return result;
}

static int threaded_connect(struct rdma *r, const char *address,
                            const struct rdma_conn_config *config, const struct rdma_wr *receives,
                            uint32_t count, const void *private_data, uint32_t private_length,
                            uint32_t *conn)
{
    lock_all(self(r)->device);
    int result = rdma_connect(inner(r), address, config, receives, count, private_data,
                              private_length, conn);
    unlock_all(self(r)->device);
    return result;
}

static int threaded_random(struct rdma *r, void *octets, uint32_t length)
{
    lock_all(self(r)->device);
    int result = rdma_random(inner(r), octets, length);
    unlock_all(self(r)->device);
    return result;
}

/* ---- calls about the own handle ------------------------------------------------------------ */

static int cq_create(struct rdma *r, uint32_t depth, uint32_t *cq)
{
    lock(self(r));
    int result = rdma_cq_create(inner(r), depth, cq);
    unlock(self(r));
    return result;
}

static int cq_destroy(struct rdma *r, uint32_t cq)
{
    lock(self(r));
    int result = rdma_cq_destroy(inner(r), cq);
    unlock(self(r));
    return result;
}

static int cq_poll(struct rdma *r, uint32_t cq, struct rdma_wc *wc, uint32_t count)
{
    lock(self(r));
    int result = rdma_cq_poll(inner(r), cq, wc, count);
    unlock(self(r));
    return result;
}

static int cq_arm(struct rdma *r, uint32_t cq, bool solicited_only)
{
    lock(self(r));
    int result = rdma_cq_arm(inner(r), cq, solicited_only);
    unlock(self(r));
    return result;
}

static int event(struct rdma *r, struct rdma_event *out)
{
    lock(self(r));
    int result = rdma_event(inner(r), out);
    unlock(self(r));
    return result;
}

static int post_recv(struct rdma *r, uint32_t conn, const struct rdma_wr *wrs, uint32_t count)
{
    lock(self(r));
    int result = rdma_post_recv(inner(r), conn, wrs, count);
    unlock(self(r));
    return result;
}

static int timer(struct rdma *r, uint32_t id, uint64_t delay_ns)
{
    lock(self(r));
    int result = rdma_timer(inner(r), id, delay_ns);
    unlock(self(r));
    return result;
}

/* ---- calls about both ends of a connection ------------------------------------------------- */

static int threaded_accept(struct rdma *r, uint32_t conn, const struct rdma_conn_config *config,
                           const struct rdma_wr *receives, uint32_t count, const void *private_data,
                           uint32_t private_length)
{
    struct threaded_handle *peer = lock_both(self(r), conn);
    int result = rdma_accept(inner(r), conn, config, receives, count, private_data, private_length);
    unlock_both(self(r), peer);
    return result;
}

static int reject(struct rdma *r, uint32_t conn, const void *private_data, uint32_t private_length)
{
    struct threaded_handle *peer = lock_both(self(r), conn);
    int result = rdma_reject(inner(r), conn, private_data, private_length);
    unlock_both(self(r), peer);
    return result;
}

static int threaded_disconnect(struct rdma *r, uint32_t conn)
{
    struct threaded_handle *peer = lock_both(self(r), conn);
    int result = rdma_disconnect(inner(r), conn);
    unlock_both(self(r), peer);
    return result;
}

static int destroy(struct rdma *r, uint32_t conn)
{
    struct threaded_handle *peer = lock_both(self(r), conn);
    int result = rdma_destroy(inner(r), conn);
    unlock_both(self(r), peer);
    return result;
}

static int post_send(struct rdma *r, uint32_t conn, const struct rdma_wr *wrs, uint32_t count)
{
    struct threaded_handle *peer = lock_both(self(r), conn);
    int result = rdma_post_send(inner(r), conn, wrs, count);
    unlock_both(self(r), peer);
    return result;
}

static const struct rdma_ops threaded_ops = {
    .caps = caps,
    .reg = reg,
    .dereg = dereg,
    .window_alloc = window_alloc,
    .window_free = window_free,
    .cq_create = cq_create,
    .cq_destroy = cq_destroy,
    .cq_poll = cq_poll,
    .cq_arm = cq_arm,
    .listen = threaded_listen,
    .connect = threaded_connect,
    .accept = threaded_accept,
    .reject = reject,
    .disconnect = threaded_disconnect,
    .destroy = destroy,
    .event = event,
    .post_send = post_send,
    .post_recv = post_recv,
    .timer = timer,
    .random = threaded_random,
};

/* ---- the device ---------------------------------------------------------------------------- */

int threaded_init(struct threaded *device)
{
    loop_init(&device->loop);
    device->count = 0;
    int failed = 0;
    for (uint32_t i = 0; i < LOOP_HANDLES && !failed; i++)
        failed = pthread_mutex_init(&device->handles[i].lock, NULL);
    return failed;
}

void threaded_end(struct threaded *device)
{
    for (uint32_t i = 0; i < LOOP_HANDLES; i++)
        pthread_mutex_destroy(&device->handles[i].lock);
}

struct rdma *threaded_handle(struct threaded *device)
{
    struct rdma *made = loop_handle(&device->loop);
    if (!made)
        return NULL;
    struct threaded_handle *h = &device->handles[device->count++];
    h->rdma.ops = &threaded_ops;
    h->device = device;
    h->inner = loop_self(made);
    return &h->rdma;
}

void threaded_hold(struct rdma *r, uint32_t operations)
{
    lock(self(r));
    self(r)->inner->held = operations;
    unlock(self(r));
}

void threaded_execute(struct rdma *r)
{
    struct threaded_handle *h = self(r);
    for (uint32_t conn = 0; conn < LOOP_CONNS; conn++) {
        struct threaded_handle *peer = lock_both(h, conn);
        uint32_t held = h->inner->held;
        h->inner->held = 0;
        loop_progress(h->inner, conn);
        h->inner->held = held;
        unlock_both(h, peer);
    }
}

bool threaded_expire(struct rdma *r, uint32_t id)
{
    lock(self(r));
    bool armed = loop_expire(inner(r), id);
    unlock(self(r));
    return armed;
}
