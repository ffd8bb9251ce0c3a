/* SPDX-License-Identifier: BSD-3-Clause */
/* The send queues of the trivial provider: what each work request does. */
#include <errno.h>
#include <string.h>

#include "net/mem.h"
#include "net/request.h"
#include "tests/net/loop.h"

/* ---- memory ------------------------------------------------------------------------------ */

bool loop_local_ok(const struct loop *loop, const struct rdma_sge *sge, uint32_t access)
{
    const struct rdma_region *region = &loop->regions[(sge->lkey - 0x1000) % LOOP_REGIONS];
    const char *at = sge->addr, *base = region->addr;
    return region->lkey == sge->lkey && (region->access & access) == access && at >= base &&
           at + sge->length <= base + region->length;
}

/* What the peer shows to whoever comes through this connection. */
static char *remote(const struct loop_conn *c, const struct rdma_wr *wr, uint32_t length,
                    uint32_t access)
{
    struct loop *loop = c->peer->loop;
    uint32_t stag = wr->remote_stag;
    uint64_t to = wr->remote_to;
    char *in_window = loop_window_at(c->peer, c->peer_conn, wr, length, access);
    if (in_window)
        return in_window;
    const struct rdma_region *region = &loop->regions[(stag - 0x2000) % LOOP_REGIONS];
    if (region->stag != stag || (region->access & access) != access || to < region->base_to ||
        to - region->base_to > region->length || region->length - (to - region->base_to) < length)
        return NULL;
    return (char *)region->addr + (to - region->base_to);
}

static bool gathers_from_inline(const struct loop_send *send)
{
    return send->wr.flags & RDMA_INLINE;
}

/* The octets of a work request, one behind the other, from or to its SGEs. */
static void gather(const struct loop_send *send, char *to)
{
    if (gathers_from_inline(send)) {
        memcpy(to, send->octets, send->length);
        return;
    }
    for (uint32_t i = 0; i < send->wr.sge_count; i++) {
        memcpy(to, send->sges[i].addr, send->sges[i].length);
        to += send->sges[i].length;
    }
}

static void scatter(const struct rdma_sge *sges, const char *from, uint32_t length)
{
    for (uint32_t at = 0; at < length; sges++) {
        uint32_t piece = sges->length < length - at ? sges->length : length - at;
        memcpy(sges->addr, from + at, piece);
        at += piece;
    }
}

/* From the pieces of a message to those of a receive. */
static void transfer(const struct loop_send *send, const struct loop_recv *recv)
{
    const struct rdma_sge *to = recv->sges;
    uint32_t used = 0; /* octets of `to` */
    struct rdma_sge all = {.length = send->length};
    const struct rdma_sge *from = send->sges;
    char octets[LOOP_INLINE];
    if (gathers_from_inline(send)) {
        memcpy(octets, send->octets, send->length);
        all.addr = octets;
        from = &all;
    }
    for (uint32_t done = 0, at = 0; done < send->length;) {
        uint32_t here = from->length - at, there = to->length - used;
        uint32_t piece = here < there ? here : there;
        if (piece != 0)
            memcpy((char *)to->addr + used, (const char *)from->addr + at, piece);
        done += piece;
        at += piece;
        used += piece;
        if (at == from->length)
            from++, at = 0;
        if (used == to->length)
            to++, used = 0;
    }
}

/* ---- lies -------------------------------------------------------------------------------- */

static void place_late(struct loop *loop)
{
    struct loop_late *late = &loop->late;
    if (!late->to)
        return;
    memcpy(late->to, late->octets, late->length);
    late->to = NULL;
}

void loop_late_poll(struct loop *loop)
{
    if (loop->late.to && --loop->late.polls == 0)
        place_late(loop);
}

static void delay(struct loop *loop, char *to, const void *octets, uint32_t length, uint32_t polls)
{
    place_late(loop);
    loop->late = (struct loop_late){.to = to, .length = length, .polls = polls};
    memcpy(loop->late.octets, octets, length);
}

/* A WRITE that comes too late: after a later one, or after its completion. */
static bool written_late(struct loop *loop, const struct loop_send *send, char *to)
{
    uint32_t lies = loop->lies & (RDMA_CAP_ORDERED_WRITES | RDMA_CAP_WRITE_ACKED);
    char octets[sizeof loop->late.octets];
    if (!lies || loop->late.to || send->length > sizeof octets)
        return false;
    gather(send, octets);
    delay(loop, to, octets, send->length, lies & RDMA_CAP_WRITE_ACKED ? 2 : 1);
    return true;
}

/* ---- what each does ---------------------------------------------------------------------- */

/* At this end of the connection. */
static bool invalidate(struct loop_handle *h, uint32_t conn, uint32_t stag, bool by_peer)
{
    struct loop *loop = h->loop;
    if (loop_window_invalidate(h, conn, stag, by_peer))
        return true;
    struct rdma_region *region = &loop->regions[(stag - 0x2000) % LOOP_REGIONS];
    if (stag == 0 || region->stag != stag || loop_has_windows(loop, region->id))
        return false;
    if (loop_does(loop, RDMA_CAP_INV_REGION))
        region->stag = 0;
    return true;
}

static enum rdma_status deliver(struct loop_handle *h, const struct loop_conn *c,
                                const struct loop_send *send, bool immediate)
{
    struct loop_conn *other = &c->peer->conns[c->peer_conn];
    if (other->recv_count == 0)
        return RDMA_RNR;
    struct loop_recv *recv = &other->recv[other->recv_first];
    if (!immediate && recv->length < send->length)
        return RDMA_LENGTH_ERROR;
    struct rdma_wc wc = {
        .wr_id = recv->wr_id, .conn = c->peer_conn, .op = RDMA_RECV, .length = send->length};
    if (immediate) {
        wc.flags = RDMA_WC_IMM | RDMA_WC_WRITE_IMM;
        wc.imm = loop_does(h->loop, RDMA_CAP_IMM) ? send->wr.imm_stag : 0;
    } else {
        transfer(send, recv);
    }
    if (send->wr.op == RDMA_SEND_INV) {
        if (!invalidate(c->peer, c->peer_conn, send->wr.imm_stag, true))
            return RDMA_REMOTE_ACCESS;
        wc.flags = RDMA_WC_INVALIDATED;
        wc.imm = send->wr.imm_stag;
    }
    other->recv_first = (other->recv_first + 1) % LOOP_QUEUE;
    other->recv_count--;
    loop_complete(c->peer, wc, 0);
    return RDMA_OK;
}

/* Between the local pieces and the peer's memory. */
static enum rdma_status move(const struct loop_conn *c, const struct loop_send *send, bool reads)
{
    struct loop *loop = c->peer->loop;
    if (send->length == 0)
        return RDMA_OK;
    char *at = remote(c, &send->wr, send->length, reads ? RDMA_REMOTE_READ : RDMA_REMOTE_WRITE);
    if (!at)
        return RDMA_REMOTE_ACCESS;
    if (reads)
        scatter(send->sges, at, send->length);
    else if (!written_late(loop, send, at))
        gather(send, at);
    return RDMA_OK;
}

static uint64_t sum(const struct loop *loop, const struct rdma_wr *wr, uint64_t before)
{
    if (!loop_does(loop, RDMA_CAP_FETCH_ADD))
        return before;
    uint64_t mask = loop_does(loop, RDMA_CAP_MASKED) ? wr->fetch_add.mask : 0;
    return mem_masked_sum64(before, wr->fetch_add.add, mask);
}

static uint64_t swapped(const struct loop *loop, const struct rdma_wr *wr, uint64_t before)
{
    bool equal = ((before ^ wr->cas.compare) & wr->cas.compare_mask) == 0;
    if (!equal && loop_does(loop, RDMA_CAP_CAS))
        return before;
    return (before & ~wr->cas.swap_mask) | (wr->cas.swap & wr->cas.swap_mask);
}

/* One CPU does it all, so plain steps are atomic. */
static enum rdma_status atomic(const struct loop_conn *c, const struct loop_send *send)
{
    struct loop *loop = c->peer->loop;
    char *at = remote(c, &send->wr, 8, RDMA_REMOTE_ATOMIC);
    if (!at)
        return RDMA_REMOTE_ACCESS;
    uint64_t before, after;
    memcpy(&before, at, 8);
    scatter(send->sges, (const char *)&before, 8);
    after =
        send->wr.op == RDMA_CAS ? swapped(loop, &send->wr, before) : sum(loop, &send->wr, before);
    if (loop->lies & RDMA_CAP_ATOMIC_CPU)
        delay(loop, at, &after, 8, 1);
    else
        memcpy(at, &after, 8);
    return RDMA_OK;
}

static bool local_memory_ok(const struct loop *loop, const struct loop_send *send)
{
    for (uint32_t i = 0; i < send->wr.sge_count && !gathers_from_inline(send); i++)
        if (send->sges[i].length != 0 &&
            !loop_local_ok(loop, &send->sges[i],
                           rdma_is_answered(send->wr.op) ? RDMA_LOCAL_WRITE : 0))
            return false;
    return true;
}

static enum rdma_status execute(struct loop_handle *h, const struct loop_conn *c,
                                const struct loop_send *send)
{
    if (!local_memory_ok(h->loop, send))
        return RDMA_LOCAL_ERROR;
    if (send->length > h->loop->real.max_message)
        return RDMA_LENGTH_ERROR;
    if (send->wr.op != RDMA_WRITE)
        place_late(h->loop);
    switch (send->wr.op) {
    case RDMA_SEND:
    case RDMA_SEND_INV:
        return deliver(h, c, send, false);
    case RDMA_WRITE:
        return move(c, send, false);
    case RDMA_WRITE_IMM: {
        enum rdma_status status = move(c, send, false);
        return status == RDMA_OK ? deliver(h, c, send, true) : status;
    }
    case RDMA_READ:
        return move(c, send, true);
    case RDMA_FETCH_ADD:
    case RDMA_CAS:
        return atomic(c, send);
    case RDMA_BIND:
        return loop_bind(h, (uint32_t)(c - h->conns), &send->wr, send->bind_stag);
    case RDMA_LOCAL_INV:
        return invalidate(h, (uint32_t)(c - h->conns), send->wr.imm_stag, false) ? RDMA_OK
                                                                                 : RDMA_LOCAL_ERROR;
    default: /* RDMA_NOOP */
        return RDMA_OK;
    }
}

/* ---- the queue --------------------------------------------------------------------------- */

static struct loop_send *nth(struct loop_conn *c, uint32_t n)
{
    return &c->sends[(c->sends_first + n) % LOOP_QUEUE];
}

static void execute_some(struct loop_handle *h, struct loop_conn *c)
{
    bool read_waits = false;
    for (uint32_t n = 0; n < c->sends_count; n++) {
        struct loop_send *send = nth(c, n);
        if (send->executed && send->status != RDMA_OK)
            return;
        if (send->executed)
            continue;
        if (h->held & 1u << send->wr.op) {
            if (!rdma_is_answered(send->wr.op)) /* what is written or sent is placed in order */
                return;
            read_waits = true;
            continue;
        }
        if ((send->wr.flags & RDMA_FENCE) && read_waits)
            return;
        send->status = execute(h, c, send);
        send->executed = true;
        if (send->status != RDMA_OK)
            return;
    }
}

void loop_progress(struct loop_handle *h, uint32_t conn)
{
    struct loop_conn *c = &h->conns[conn];
    if (c->state != LOOP_CONNECTED)
        return;
    execute_some(h, c);
    while (c->sends_count != 0 && nth(c, 0)->executed && !h->completions_held) {
        struct loop_send send = *nth(c, 0);
        c->sends_first = (c->sends_first + 1) % LOOP_QUEUE;
        c->sends_count--;
        if (send.status == RDMA_OK && !(send.wr.flags & RDMA_SIGNALED))
            continue;
        struct rdma_wc wc = {.wr_id = send.wr.wr_id,
                             .conn = conn,
                             .op = (uint8_t)send.wr.op,
                             .status = (uint8_t)send.status,
                             .length = rdma_is_answered(send.wr.op) ? send.length : 0};
        loop_complete(h, wc, send.number);
        if (send.status != RDMA_OK) {
            loop_end_both(h, conn, -ECONNRESET);
            return;
        }
    }
}

/* ---- posting ----------------------------------------------------------------------------- */

static int check(const struct loop *loop, const struct loop_conn *c, const struct rdma_wr *wr)
{
    uint32_t sges = c->config.max_sge < loop->real.max_sge ? c->config.max_sge : loop->real.max_sge;
    int failed = rdma_request_check(wr, loop->caps.bits, sges, c->config.max_inline);
    if (failed)
        return failed;
    if (wr->op == RDMA_SEND_INV && !loop_does(loop, RDMA_CAP_SEND_INV))
        return -ENOTSUP;
    return rdma_is_atomic(wr->op) && wr->remote_to % 8 != 0 ? -EINVAL : 0;
}

static void append(struct loop_conn *c, const struct rdma_wr *wr)
{
    struct loop_send *send = nth(c, c->sends_count++);
    char *to = send->octets;
    *send = (struct loop_send){
        .wr = *wr, .number = ++c->posted, .length = (uint32_t)rdma_request_octets(wr)};
    for (uint32_t i = 0; i < wr->sge_count; i++) {
        send->sges[i] = wr->sges[i];
        if (wr->flags & RDMA_INLINE) {
            memcpy(to, wr->sges[i].addr, wr->sges[i].length);
            to += wr->sges[i].length;
        }
    }
    send->wr.sges = send->sges;
    if (wr->op == RDMA_BIND)
        send->bind_stag = wr->bind.window->stag;
}

int loop_post_send(struct rdma *r, uint32_t conn, const struct rdma_wr *wrs, uint32_t count)
{
    struct loop_handle *h = loop_self(r);
    struct loop_conn *c = &h->conns[conn];
    if (!c->may_send)
        return -ENOTCONN;
    if (c->posted - c->retired + count > c->config.send_depth)
        return -ENOMEM;
    for (uint32_t i = 0; i < count; i++) {
        int failed = check(h->loop, c, &wrs[i]);
        if (failed)
            return failed;
    }
    for (uint32_t i = 0; i < count; i++) {
        if (wrs[i].op == RDMA_BIND)
            rdma_window_posted(&wrs[i]);
        if (c->state == LOOP_ENDED)
            loop_flush_one(h, conn, wrs[i].wr_id, ++c->posted);
        else
            append(c, &wrs[i]);
    }
    loop_progress(h, conn);
    return 0;
}
