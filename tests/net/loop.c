/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/net/loop.h"

#include <errno.h>
#include <string.h>

#include "sim/random.h"

static struct loop_handle *self(struct rdma *r)
{
    return (struct loop_handle *)r;
}

/* ---- regions ----------------------------------------------------------------------------- */

static void caps(struct rdma *r, struct rdma_caps *out)
{
    *out = self(r)->loop->caps;
}

static int reg(struct rdma *r, void *addr, uint64_t length, uint32_t access, uint64_t wanted,
               struct rdma_region *region)
{
    struct rdma_region *regions = self(r)->loop->regions;
    uint32_t remote_changes = RDMA_REMOTE_WRITE | RDMA_REMOTE_ATOMIC;
    if (length == 0 || ((access & remote_changes) && !(access & RDMA_LOCAL_WRITE)))
        return -EINVAL;
    for (uint32_t i = 0; i < LOOP_REGIONS; i++) {
        if (regions[i].length != 0)
            continue;
        regions[i] = (struct rdma_region){.addr = addr,
                                          .length = length,
                                          .base_to = wanted,
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
    memset(&self(r)->loop->regions[region->id], 0, sizeof *region);
    return 0;
}

static bool local_ok(struct loop *loop, const struct rdma_sge *sge, uint32_t access)
{
    const struct rdma_region *region = &loop->regions[(sge->lkey - 0x1000) % LOOP_REGIONS];
    const char *at = sge->addr, *base = region->addr;
    return region->lkey == sge->lkey && (region->access & access) == access && at >= base &&
           at + sge->length <= base + region->length;
}

static char *remote(struct loop *loop, uint32_t stag, uint64_t to, uint32_t length, uint32_t access)
{
    const struct rdma_region *region = &loop->regions[(stag - 0x2000) % LOOP_REGIONS];
    if (region->stag != stag || (region->access & access) != access || to < region->base_to ||
        to - region->base_to > region->length || region->length - (to - region->base_to) < length)
        return NULL;
    return (char *)region->addr + (to - region->base_to);
}

static int no_window(struct rdma *r, struct rdma_window *window)
{
    (void)r, (void)window;
    return -ENOTSUP;
}

/* ---- completions and events -------------------------------------------------------------- */

static int cq_create(struct rdma *r, uint32_t depth, uint32_t *cq)
{
    struct loop_handle *h = self(r);
    if (depth == 0 || depth > LOOP_CQ)
        return -EINVAL;
    *cq = h->cqs++;
    return 0;
}

static int cq_destroy(struct rdma *r, uint32_t cq)
{
    (void)cq;
    self(r)->cqs--;
    return 0;
}

static void complete(struct loop_handle *h, struct rdma_wc wc)
{
    h->cq[(h->cq_first + h->cq_count++) % LOOP_CQ] = wc;
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

static int cq_poll(struct rdma *r, uint32_t cq, struct rdma_wc *wc, uint32_t count)
{
    struct loop_handle *h = self(r);
    uint32_t taken = 0;
    (void)cq;
    for (; taken < count && h->cq_count != 0; taken++) {
        wc[taken] = h->cq[h->cq_first];
        h->cq_first = (h->cq_first + 1) % LOOP_CQ;
        h->cq_count--;
        if (wc[taken].status == RDMA_FLUSHED) {
            h->conns[wc[taken].conn].flushed--;
            maybe_drained(h, wc[taken].conn);
        }
    }
    return (int)taken;
}

static int cq_arm(struct rdma *r, uint32_t cq, bool solicited_only)
{
    (void)r, (void)cq, (void)solicited_only;
    return 0;
}

static int event(struct rdma *r, struct rdma_event *out)
{
    struct loop_handle *h = self(r);
    if (h->events_count == 0)
        return 0;
    *out = h->events[h->events_first];
    h->events_first = (h->events_first + 1) % LOOP_EVENTS;
    h->events_count--;
    return 1;
}

/* ---- connections ------------------------------------------------------------------------- */

static int loop_listen(struct rdma *r, const char *address)
{
    self(r)->address = address;
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

static int post_recv(struct rdma *r, uint32_t conn, const struct rdma_wr *wrs, uint32_t count)
{
    struct loop_handle *h = self(r);
    struct loop_conn *c = &h->conns[conn];
    if (c->recv_count + count > LOOP_QUEUE || c->recv_count + count > c->config.recv_depth)
        return -ENOMEM;
    for (uint32_t i = 0; i < count; i++) {
        if (!local_ok(h->loop, wrs[i].sges, RDMA_LOCAL_WRITE))
            return -EINVAL;
        if (c->state == LOOP_ENDED) {
            c->flushed++;
            complete(h,
                     (struct rdma_wc){.wr_id = wrs[i].wr_id, .conn = conn, .status = RDMA_FLUSHED});
            continue;
        }
        c->recv[(c->recv_first + c->recv_count++) % LOOP_QUEUE] =
            (struct loop_recv){wrs[i].wr_id, wrs[i].sges[0].addr, wrs[i].sges[0].length};
    }
    return 0;
}

static int loop_connect(struct rdma *r, const char *address, const struct rdma_conn_config *config,
                        const struct rdma_wr *receives, uint32_t count, const void *private_data,
                        uint32_t private_length, uint32_t *conn)
{
    struct loop_handle *h = self(r), *peer = listener(h->loop, address);
    int mine = lowest_free(h), theirs = peer ? lowest_free(peer) : -1;
    (void)private_data, (void)private_length;
    if (mine < 0)
        return -ENOSPC;
    h->conns[mine] = (struct loop_conn){.state = LOOP_CONNECTING, .config = *config};
    *conn = (uint32_t)mine;
    if (theirs < 0) {
        tell(h, RDMA_EVENT_REJECTED, *conn, -ECONNREFUSED);
        return 0;
    }
    h->conns[mine].peer = peer;
    h->conns[mine].peer_conn = (uint32_t)theirs;
    peer->conns[theirs] =
        (struct loop_conn){.state = LOOP_REQUESTED, .peer = h, .peer_conn = *conn};
    tell(peer, RDMA_EVENT_REQUEST, (uint32_t)theirs, 0);
    return post_recv(r, *conn, receives, count);
}

static int loop_accept(struct rdma *r, uint32_t conn, const struct rdma_conn_config *config,
                       const struct rdma_wr *receives, uint32_t count, const void *private_data,
                       uint32_t private_length)
{
    struct loop_handle *h = self(r);
    struct loop_conn *c = &h->conns[conn];
    (void)private_data, (void)private_length;
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
    struct loop_handle *h = self(r);
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
    for (; c->recv_count != 0; c->recv_count--) {
        c->flushed++;
        complete(h, (struct rdma_wc){.wr_id = c->recv[c->recv_first].wr_id,
                                     .conn = conn,
                                     .status = RDMA_FLUSHED});
        c->recv_first = (c->recv_first + 1) % LOOP_QUEUE;
    }
    maybe_drained(h, conn);
}

static void end_both(struct loop_handle *h, uint32_t conn, int error)
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
    struct loop_conn *c = &self(r)->conns[conn];
    if (c->state != LOOP_CONNECTED && c->state != LOOP_ENDED)
        return -EINVAL;
    end_both(self(r), conn, 0);
    return 0;
}

static int destroy(struct rdma *r, uint32_t conn)
{
    struct loop_conn *c = &self(r)->conns[conn];
    if (c->state == LOOP_CONNECTED || (c->state == LOOP_ENDED && !c->drained_told))
        return -EBUSY;
    memset(c, 0, sizeof *c);
    return 0;
}

/* ---- messages ---------------------------------------------------------------------------- */

static enum rdma_status deliver(struct loop_handle *h, const struct loop_conn *c,
                                const struct rdma_wr *wr, uint32_t length, bool immediate)
{
    struct loop_handle *peer = c->peer;
    struct loop_conn *other = &peer->conns[c->peer_conn];
    (void)h;
    if (other->recv_count == 0)
        return RDMA_RNR;
    struct loop_recv *recv = &other->recv[other->recv_first];
    if (!immediate && recv->length < length)
        return RDMA_LENGTH_ERROR;
    struct rdma_wc wc = {
        .wr_id = recv->wr_id, .conn = c->peer_conn, .op = RDMA_RECV, .length = length};
    char *to = recv->addr;
    for (uint32_t i = 0; i < wr->sge_count && !immediate; i++) {
        memcpy(to, wr->sges[i].addr, wr->sges[i].length);
        to += wr->sges[i].length;
    }
    if (immediate) {
        wc.flags = RDMA_WC_IMM | RDMA_WC_WRITE_IMM;
        wc.imm = wr->imm_stag;
    }
    if (wr->op == RDMA_SEND_INV) {
        struct rdma_region *region = &h->loop->regions[(wr->imm_stag - 0x2000) % LOOP_REGIONS];
        if (region->stag != wr->imm_stag)
            return RDMA_REMOTE_ACCESS;
        region->stag = 0;
        wc.flags = RDMA_WC_INVALIDATED;
        wc.imm = wr->imm_stag;
    }
    other->recv_first = (other->recv_first + 1) % LOOP_QUEUE;
    other->recv_count--;
    complete(peer, wc);
    return RDMA_OK;
}

/* Between the local pieces of `wr` and the peer's memory. */
static enum rdma_status move(struct loop *loop, const struct rdma_wr *wr, uint32_t length,
                             bool reads)
{
    if (length == 0)
        return RDMA_OK;
    char *at = remote(loop, wr->remote_stag, wr->remote_to, length,
                      reads ? RDMA_REMOTE_READ : RDMA_REMOTE_WRITE);
    if (!at)
        return RDMA_REMOTE_ACCESS;
    for (uint32_t i = 0; i < wr->sge_count; i++) {
        if (reads)
            memcpy(wr->sges[i].addr, at, wr->sges[i].length);
        else
            memcpy(at, wr->sges[i].addr, wr->sges[i].length);
        at += wr->sges[i].length;
    }
    return RDMA_OK;
}

static enum rdma_status execute(struct loop_handle *h, struct loop_conn *c,
                                const struct rdma_wr *wr)
{
    uint32_t length = 0;
    for (uint32_t i = 0; i < wr->sge_count; i++) {
        length += wr->sges[i].length;
        if (!(wr->flags & RDMA_INLINE) &&
            !local_ok(h->loop, &wr->sges[i], wr->op == RDMA_READ ? RDMA_LOCAL_WRITE : 0))
            return RDMA_LOCAL_ERROR;
    }
    if (length > h->loop->caps.max_message)
        return RDMA_LENGTH_ERROR;
    enum rdma_status status;
    switch (wr->op) {
    case RDMA_NOOP:
        return RDMA_OK;
    case RDMA_SEND:
    case RDMA_SEND_INV:
        return deliver(h, c, wr, length, false);
    case RDMA_WRITE:
    case RDMA_WRITE_IMM:
        status = move(h->loop, wr, length, false);
        return status == RDMA_OK && wr->op == RDMA_WRITE_IMM ? deliver(h, c, wr, length, true)
                                                             : status;
    case RDMA_READ:
        return move(h->loop, wr, length, true);
    default:
        return RDMA_REMOTE_ERROR;
    }
}

static int post_send(struct rdma *r, uint32_t conn, const struct rdma_wr *wrs, uint32_t count)
{
    struct loop_handle *h = self(r);
    struct loop_conn *c = &h->conns[conn];
    if (c->state != LOOP_CONNECTED && c->state != LOOP_ENDED)
        return -ENOTCONN;
    for (uint32_t i = 0; i < count; i++) {
        enum rdma_status status = RDMA_FLUSHED;
        if (c->state == LOOP_CONNECTED)
            status = execute(h, c, &wrs[i]);
        if (status == RDMA_OK && !(wrs[i].flags & RDMA_SIGNALED))
            continue;
        c->flushed += status == RDMA_FLUSHED;
        complete(h, (struct rdma_wc){.wr_id = wrs[i].wr_id,
                                     .conn = conn,
                                     .op = (uint8_t)wrs[i].op,
                                     .status = (uint8_t)status});
        if (status != RDMA_OK && status != RDMA_FLUSHED)
            end_both(h, conn, -ECONNRESET);
    }
    return 0;
}

static int timer(struct rdma *r, uint32_t id, uint64_t delay_ns)
{
    (void)r, (void)id, (void)delay_ns;
    return 0;
}

static int loop_random(struct rdma *r, void *octets, uint32_t length)
{
    uint8_t *out = octets;
    for (uint32_t i = 0; i < length; i++)
        out[i] = (uint8_t)sim_random64(&self(r)->loop->random);
    return 0;
}

static const struct rdma_ops loop_ops = {
    .caps = caps,
    .reg = reg,
    .dereg = dereg,
    .window_alloc = no_window,
    .window_free = no_window,
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
    .post_send = post_send,
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
        .bits = RDMA_CAP_SEND_INV | RDMA_CAP_INV_REGION | RDMA_CAP_IMM | RDMA_CAP_BASE_TO |
                RDMA_CAP_ORDERED_WRITES | RDMA_CAP_WRITE_ACKED,
        .binding = RDMA_BINDING_RDMAP,
        .max_message = 1u << 30,
        .max_inline = 256,
        .max_sge = 4,
        .max_read_sge = 4,
        .max_reads = 16,
        .max_private = RDMA_MAX_PRIVATE,
        .max_queue = LOOP_QUEUE,
        .max_cq = LOOP_CQ,
    };
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
    end_both(self(r), conn, -ECONNRESET);
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
