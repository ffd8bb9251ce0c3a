/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/net/loop.h"

#include <errno.h>
#include <string.h>

#include "sim/random.h"

/* ---- regions ----------------------------------------------------------------------------- */

static void caps(struct rdma *r, struct rdma_caps *out)
{
    *out = loop_self(r)->loop->caps;
}

static int reg(struct rdma *r, void *addr, uint64_t length, uint32_t access, uint64_t wanted,
               struct rdma_region *region)
{
    struct rdma_region *regions = loop_self(r)->loop->regions;
    uint32_t remote_changes = RDMA_REMOTE_WRITE | RDMA_REMOTE_ATOMIC;
    if (length == 0 || ((access & remote_changes) && !(access & RDMA_LOCAL_WRITE)))
        return -EINVAL;
    const struct loop *loop = loop_self(r)->loop;
    bool as_wanted = loop_does(loop, RDMA_CAP_BASE_TO);
    for (uint32_t i = 0; i < LOOP_REGIONS; i++) {
        if (regions[i].length != 0)
            continue;
        regions[i] = (struct rdma_region){
            .addr = addr,
            .length = length,
            .base_to = as_wanted ? wanted : (uintptr_t)addr + i * loop->base_step,
            .lkey = 0x1000 + i,
            .stag = 0x2000 + i,
            .access = access,
            .id = i};
        *region = regions[i];
        return 0;
    }
    return -ENOSPC;
}

static int dereg(struct rdma *r, struct rdma_region *region)
{
    if (loop_has_windows(loop_self(r)->loop, region->id))
        return -EBUSY;
    memset(&loop_self(r)->loop->regions[region->id], 0, sizeof *region);
    return 0;
}

/* ---- completions and events -------------------------------------------------------------- */

static int cq_create(struct rdma *r, uint32_t depth, uint32_t *cq)
{
    struct loop_handle *h = loop_self(r);
    if (depth == 0 || depth > LOOP_CQ)
        return -EINVAL;
    h->cq_depth = depth;
    *cq = h->cqs++;
    return 0;
}

static int cq_destroy(struct rdma *r, uint32_t cq)
{
    struct loop_handle *h = loop_self(r);
    (void)cq;
    for (uint32_t i = 0; i < LOOP_CONNS; i++)
        if (h->conns[i].state != LOOP_UNUSED)
            return -EBUSY;
    h->cqs--;
    h->cq_count = 0;
    return 0;
}

void loop_complete(struct loop_handle *h, struct rdma_wc wc, uint32_t number)
{
    h->overflowed |= h->cq_count == h->cq_depth;
    if (!h->overflowed)
        h->cq[(h->cq_first + h->cq_count++) % LOOP_CQ] = (struct loop_wc){wc, number};
}

static void tell(struct loop_handle *h, uint32_t kind, uint32_t conn, int error)
{
    h->events[(h->events_first + h->events_count++) % LOOP_EVENTS] =
        (struct rdma_event){.kind = kind, .conn = conn, .error = error};
}

static void maybe_drained(struct loop_handle *h, uint32_t conn)
{
    struct loop_conn *c = &h->conns[conn];
    if (c->state == LOOP_ENDED && c->flushed == 0 && !c->drained_told) {
        c->drained_told = true;
        tell(h, RDMA_EVENT_DRAINED, conn, 0);
    }
}

/* A completion is taken: its work request, and those before it, leave the queue. */
static void taken_from_queue(struct loop_handle *h, const struct loop_wc *entry)
{
    struct loop_conn *c = &h->conns[entry->wc.conn];
    if (entry->number != 0)
        c->retired = entry->number;
    else if (entry->wc.status == RDMA_OK && c->state == LOOP_CONNECTED)
        c->may_send = true;
    if (entry->wc.status == RDMA_FLUSHED) {
        c->flushed--;
        maybe_drained(h, entry->wc.conn);
    }
}

static int cq_poll(struct rdma *r, uint32_t cq, struct rdma_wc *wc, uint32_t count)
{
    struct loop_handle *h = loop_self(r);
    uint32_t taken = 0;
    (void)cq;
    if (h->overflowed)
        return -EIO;
    loop_late_poll(h->loop);
    for (; taken < count && h->cq_count != 0; taken++) {
        struct loop_wc entry = h->cq[h->cq_first];
        h->cq_first = (h->cq_first + 1) % LOOP_CQ;
        h->cq_count--;
        wc[taken] = entry.wc;
        taken_from_queue(h, &entry);
    }
    return (int)taken;
}

static int cq_arm(struct rdma *r, uint32_t cq, bool solicited_only)
{
    (void)cq;
    return solicited_only && !loop_does(loop_self(r)->loop, RDMA_CAP_SOLICITED) ? -ENOTSUP : 0;
}

static int event(struct rdma *r, struct rdma_event *out)
{
    struct loop_handle *h = loop_self(r);
    if (h->events_count == 0)
        return 0;
    *out = h->events[h->events_first];
    h->events_first = (h->events_first + 1) % LOOP_EVENTS;
    h->events_count--;
    if (out->kind == RDMA_EVENT_CONNECTED || out->kind == RDMA_EVENT_DISCONNECTED)
        h->conns[out->conn].may_send = out->kind == RDMA_EVENT_CONNECTED;
    return 1;
}

/* ---- connections ------------------------------------------------------------------------- */

static int loop_listen(struct rdma *r, const char *address)
{
    loop_self(r)->address = address;
    return 0;
}

static int lowest_free(const struct loop_handle *h)
{
    for (int i = 0; i < (int)LOOP_CONNS; i++)
        if (h->conns[i].state == LOOP_UNUSED)
            return i;
    return -ENOSPC;
}

static struct loop_handle *listener(struct loop *loop, const char *address)
{
    for (uint32_t i = 0; i < loop->handles_count; i++) {
        struct loop_handle *h = &loop->handles[(loop->turn + i) % loop->handles_count];
        if (h->address && strcmp(h->address, address) == 0) {
            loop->turn = (uint32_t)(h - loop->handles) + 1;
            return h;
        }
    }
    return NULL;
}

void loop_flush_one(struct loop_handle *h, uint32_t conn, uint64_t wr_id, uint32_t number)
{
    h->conns[conn].flushed++;
    loop_complete(h, (struct rdma_wc){.wr_id = wr_id, .conn = conn, .status = RDMA_FLUSHED},
                  number);
}

static bool receive_ok(const struct loop_handle *h, const struct loop_conn *c,
                       const struct rdma_wr *wr)
{
    if (wr->sge_count > c->config.max_sge || wr->sge_count > LOOP_SGES)
        return false;
    for (uint32_t i = 0; i < wr->sge_count; i++)
        if (!loop_local_ok(h->loop, &wr->sges[i], RDMA_LOCAL_WRITE))
            return false;
    return true;
}

static void append_receive(struct loop_conn *c, const struct rdma_wr *wr)
{
    struct loop_recv *recv = &c->recv[(c->recv_first + c->recv_count++) % LOOP_QUEUE];
    *recv = (struct loop_recv){.wr_id = wr->wr_id, .sge_count = wr->sge_count};
    for (uint32_t i = 0; i < wr->sge_count; i++) {
        recv->sges[i] = wr->sges[i];
        recv->length += wr->sges[i].length;
    }
}

static int post_recv(struct rdma *r, uint32_t conn, const struct rdma_wr *wrs, uint32_t count)
{
    struct loop_handle *h = loop_self(r);
    struct loop_conn *c = &h->conns[conn];
    if (c->recv_count + count > LOOP_QUEUE || c->recv_count + count > c->config.recv_depth)
        return -ENOMEM;
    for (uint32_t i = 0; i < count; i++)
        if (!receive_ok(h, c, &wrs[i]))
            return -EINVAL;
    for (uint32_t i = 0; i < count; i++) {
        if (c->state == LOOP_ENDED)
            loop_flush_one(h, conn, wrs[i].wr_id, 0);
        else
            append_receive(c, &wrs[i]);
    }
    return 0;
}

static bool config_ok(const struct loop *loop, const struct rdma_conn_config *config)
{
    const struct rdma_caps *real = &loop->real;
    return config->send_depth <= real->max_queue && config->recv_depth <= real->max_queue &&
           config->max_sge <= real->max_sge && config->max_inline <= real->max_inline &&
           config->reads_out <= real->max_reads && config->reads_in <= real->max_reads;
}

static int loop_connect(struct rdma *r, const char *address, const struct rdma_conn_config *config,
                        const struct rdma_wr *receives, uint32_t count, const void *private_data,
                        uint32_t private_length, uint32_t *conn)
{
    struct loop_handle *h = loop_self(r), *peer = listener(h->loop, address);
    int mine = lowest_free(h), theirs = peer ? lowest_free(peer) : -1;
    (void)private_data, (void)private_length;
    if (!config_ok(h->loop, config))
        return -EINVAL;
    if (mine < 0)
        return -ENOSPC;
    h->conns[mine] = (struct loop_conn){.state = LOOP_CONNECTING, .config = *config};
    *conn = (uint32_t)mine;
    if (theirs < 0) {
        tell(h, RDMA_EVENT_REJECTED, *conn, -ECONNREFUSED);
        return 0;
    }
    int failed = post_recv(r, *conn, receives, count);
    if (failed) {
        memset(&h->conns[mine], 0, sizeof h->conns[mine]);
        return failed;
    }
    h->conns[mine].peer = peer;
    h->conns[mine].peer_conn = (uint32_t)theirs;
    peer->conns[theirs] =
        (struct loop_conn){.state = LOOP_REQUESTED, .peer = h, .peer_conn = *conn};
    tell(peer, RDMA_EVENT_REQUEST, (uint32_t)theirs, 0);
    return 0;
}

static int loop_accept(struct rdma *r, uint32_t conn, const struct rdma_conn_config *config,
                       const struct rdma_wr *receives, uint32_t count, const void *private_data,
                       uint32_t private_length)
{
    struct loop_handle *h = loop_self(r);
    struct loop_conn *c = &h->conns[conn];
    (void)private_data, (void)private_length;
    if (!config_ok(h->loop, config))
        return -EINVAL;
    c->config = *config;
    int failed = post_recv(r, conn, receives, count);
    if (failed)
        return failed;
    c->state = c->peer->conns[c->peer_conn].state = LOOP_CONNECTED;
    tell(h, RDMA_EVENT_CONNECTED, conn, 0);
    tell(c->peer, RDMA_EVENT_CONNECTED, c->peer_conn, 0);
    return 0;
}

static int reject(struct rdma *r, uint32_t conn, const void *private_data, uint32_t private_length)
{
    struct loop_handle *h = loop_self(r);
    struct loop_conn *c = &h->conns[conn];
    (void)private_data, (void)private_length;
    tell(c->peer, RDMA_EVENT_REJECTED, c->peer_conn, -ECONNREFUSED);
    memset(c, 0, sizeof *c);
    return 0;
}

static void flush(struct loop_handle *h, uint32_t conn, int error)
{
    struct loop_conn *c = &h->conns[conn];
    c->state = LOOP_ENDED;
    tell(h, RDMA_EVENT_DISCONNECTED, conn, error);
    for (; c->sends_count != 0; c->sends_count--) {
        const struct loop_send *send = &c->sends[c->sends_first];
        loop_flush_one(h, conn, send->wr.wr_id, send->number);
        c->sends_first = (c->sends_first + 1) % LOOP_QUEUE;
    }
    for (; c->recv_count != 0; c->recv_count--) {
        loop_flush_one(h, conn, c->recv[c->recv_first].wr_id, 0);
        c->recv_first = (c->recv_first + 1) % LOOP_QUEUE;
    }
    maybe_drained(h, conn);
}

void loop_end_both(struct loop_handle *h, uint32_t conn, int error)
{
    struct loop_conn *c = &h->conns[conn];
    struct loop_handle *peer = c->peer;
    if (c->state != LOOP_CONNECTED)
        return;
    flush(h, conn, error);
    flush(peer, c->peer_conn, error);
}

static int loop_disconnect(struct rdma *r, uint32_t conn)
{
    struct loop_conn *c = &loop_self(r)->conns[conn];
    if (c->state != LOOP_CONNECTED && c->state != LOOP_ENDED)
        return -EINVAL;
    loop_end_both(loop_self(r), conn, 0);
    return 0;
}

static int destroy(struct rdma *r, uint32_t conn)
{
    struct loop_conn *c = &loop_self(r)->conns[conn];
    if (c->state == LOOP_CONNECTED || (c->state == LOOP_ENDED && !c->drained_told))
        return -EBUSY;
    loop_windows_end(loop_self(r), conn);
    memset(c, 0, sizeof *c);
    return 0;
}

static int timer(struct rdma *r, uint32_t id, uint64_t delay_ns)
{
    if (id >= LOOP_TIMERS)
        return -EINVAL;
    loop_self(r)->timers[id] = delay_ns;
    return 0;
}

static int loop_random(struct rdma *r, void *octets, uint32_t length)
{
    uint8_t *out = octets;
    for (uint32_t i = 0; i < length; i++)
        out[i] = (uint8_t)sim_random64(&loop_self(r)->loop->random);
    return 0;
}

static const struct rdma_ops loop_ops = {
    .caps = caps,
    .reg = reg,
    .dereg = dereg,
    .window_alloc = loop_window_alloc,
    .window_free = loop_window_free,
    .cq_create = cq_create,
    .cq_destroy = cq_destroy,
    .cq_poll = cq_poll,
    .cq_arm = cq_arm,
    .listen = loop_listen,
    .connect = loop_connect,
    .accept = loop_accept,
    .reject = reject,
    .disconnect = loop_disconnect,
    .destroy = destroy,
    .event = event,
    .post_send = loop_post_send,
    .post_recv = post_recv,
    .timer = timer,
    .random = loop_random,
};

/* ---- for tests --------------------------------------------------------------------------- */

void loop_init(struct loop *loop)
{
    memset(loop, 0, sizeof *loop);
    loop->random = 1;
    loop->caps = (struct rdma_caps){
        .bits = RDMA_CAP_SEND_INV | RDMA_CAP_INV_REGION | RDMA_CAP_INV_WINDOW | RDMA_CAP_WINDOW |
                RDMA_CAP_IMM | RDMA_CAP_FETCH_ADD | RDMA_CAP_MASKED | RDMA_CAP_CAS |
                RDMA_CAP_ATOMIC_CPU | RDMA_CAP_BASE_TO | RDMA_CAP_ORDERED_WRITES |
                RDMA_CAP_WRITE_ACKED | RDMA_CAP_SOLICITED,
        .binding = RDMA_BINDING_RDMAP,
        .max_message = LOOP_MESSAGE,
        .max_inline = LOOP_INLINE,
        .max_sge = LOOP_SGES,
        .max_read_sge = LOOP_SGES,
        .max_reads = 16,
        .max_private = RDMA_MAX_PRIVATE,
        .max_queue = LOOP_QUEUE,
        .max_cq = LOOP_CQ,
    };
    loop->real = loop->caps;
}

struct rdma *loop_handle(struct loop *loop)
{
    if (loop->handles_count == LOOP_HANDLES)
        return NULL;
    struct loop_handle *h = &loop->handles[loop->handles_count++];
    h->rdma.ops = &loop_ops;
    h->loop = loop;
    return &h->rdma;
}

void loop_cut(struct rdma *r, uint32_t conn)
{
    loop_end_both(loop_self(r), conn, -ECONNRESET);
}

bool loop_expire(struct rdma *r, uint32_t id)
{
    struct loop_handle *h = loop_self(r);
    if (id >= LOOP_TIMERS || h->timers[id] == 0)
        return false;
    h->timers[id] = 0;
    tell(h, RDMA_EVENT_TIMER, id, 0);
    return true;
}

static void progress_all(struct loop_handle *h)
{
    for (uint32_t i = 0; i < LOOP_CONNS; i++)
        loop_progress(h, i);
}

void loop_hold(struct rdma *r, uint32_t operations)
{
    loop_self(r)->held = operations;
    progress_all(loop_self(r));
}

void loop_hold_completions(struct rdma *r, bool held)
{
    loop_self(r)->completions_held = held;
    progress_all(loop_self(r));
}

uint32_t loop_regions(const struct loop *loop)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < LOOP_REGIONS; i++)
        count += loop->regions[i].length != 0;
    return count;
}

uint32_t loop_connections(const struct loop *loop)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < loop->handles_count; i++)
        for (uint32_t j = 0; j < LOOP_CONNS; j++)
            count += loop->handles[i].conns[j].state != LOOP_UNUSED;
    return count;
}

uint32_t loop_cqs(const struct loop *loop)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < loop->handles_count; i++)
        count += loop->handles[i].cqs;
    return count;
}
