/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Work requests of devices (sim/device.h): each is executed to its end when it is posted. The same
 * rules as in steps, with nothing in between: no wire, no pieces, and the memory may be anywhere.
 */
#include <errno.h>

#include "sim/rnic_direct.h"

/* Moves octets from one list of places to another, until one of them has no more. */
static void copy_between(const struct rdma_sge *to, uint32_t to_count, const struct rdma_sge *from,
                         uint32_t from_count)
{
    uint32_t filled = 0, taken = 0; /* octets of *to, *from */
    while (to_count != 0 && from_count != 0) {
        uint32_t room = to->length - filled, rest = from->length - taken;
        uint32_t n = rest < room ? rest : room;
        if (n != 0)
            memmove((char *)to->addr + filled, (const char *)from->addr + taken, n);
        filled += n;
        taken += n;
        if (n == room) {
            to++;
            to_count--;
            filled = 0;
        }
        if (n == rest) {
            from++;
            from_count--;
            taken = 0;
        }
    }
}

static uint32_t length_of(const struct rdma_wr *wr)
{
    return (uint32_t)rdma_request_octets(wr); /* checked: at most max_message */
}

/* ---- operations: what they return is their status ---------------------------------------- */

/* Places a SEND, or the word of a WRITE_IMM, into the peer's oldest receive. */
static enum rdma_status deliver(struct end *peer, const struct rdma_wr *wr, uint32_t length)
{
    struct rnic_end *p = peer->state;
    bool send = wr->op != RDMA_WRITE_IMM;
    if (p->receives_rung == p->taken)
        return RDMA_RNR;
    const struct rnic_receive *receive = rnic_receive(peer, p->taken);
    struct rnic_cqe cqe = {.op = RDMA_RECV, .length = length};
    if (send && length > receive->length)
        cqe.status = RDMA_LENGTH_ERROR;
    else if (send && !rnic_local_ok(peer->handle->rnic, receive->sges, receive->sge_count,
                                    RDMA_LOCAL_WRITE))
        cqe.status = RDMA_LOCAL_ERROR;
    else if (wr->op == RDMA_SEND_INV && !rnic_invalidate(peer, wr->imm_stag, true))
        return RDMA_REMOTE_ACCESS;
    if (cqe.status == RDMA_OK) {
        if (send)
            copy_between(receive->sges, receive->sge_count, wr->sges, wr->sge_count);
        if (wr->op != RDMA_SEND)
            cqe.imm = wr->imm_stag;
        cqe.flags = wr->op == RDMA_SEND_INV    ? RDMA_WC_INVALIDATED
                    : wr->op == RDMA_WRITE_IMM ? RDMA_WC_IMM | RDMA_WC_WRITE_IMM
                                               : 0;
    }
    rnic_receive_done(peer, &cqe);
    return cqe.status == RDMA_LOCAL_ERROR ? RDMA_REMOTE_ERROR : cqe.status;
}

static enum rdma_status write_remote(struct end *peer, const struct rdma_wr *wr, uint32_t length)
{
    if (length != 0) {
        char *at = rnic_remote(peer, wr->remote_stag, wr->remote_to, length, RDMA_REMOTE_WRITE);
        if (!at)
            return RDMA_REMOTE_ACCESS;
        copy_between(&(struct rdma_sge){.addr = at, .length = length}, 1, wr->sges, wr->sge_count);
    }
    return wr->op == RDMA_WRITE_IMM ? deliver(peer, wr, length) : RDMA_OK;
}

static enum rdma_status read_remote(struct end *peer, const struct rdma_wr *wr, uint32_t length)
{
    if (length == 0)
        return RDMA_OK;
    char *at = rnic_remote(peer, wr->remote_stag, wr->remote_to, length, RDMA_REMOTE_READ);
    if (!at)
        return RDMA_REMOTE_ACCESS;
    copy_between(wr->sges, wr->sge_count, &(struct rdma_sge){.addr = at, .length = length}, 1);
    return RDMA_OK;
}

static enum rdma_status atomic(struct end *end, struct end *peer, const struct rdma_wr *wr)
{
    char *at = rnic_remote(peer, wr->remote_stag, wr->remote_to, 8, RDMA_REMOTE_ATOMIC);
    if (!at)
        return RDMA_REMOTE_ACCESS;
    if ((uintptr_t)at % 8 != 0)
        return RDMA_REMOTE_ERROR;
    uint64_t operand[4];
    rdma_request_operands(wr, operand);
    uint64_t old;
    memcpy(&old, at, sizeof old);
    uint64_t after = rnic_atomic_result(peer->handle->rnic, wr->op, operand, old);
    memcpy(at, &after, sizeof after);
    old = rnic_atomic_reply(end->handle->rnic, peer->handle->rnic, old);
    memcpy(wr->sges->addr, &old, sizeof old);
    return RDMA_OK;
}

static enum rdma_status execute(struct end *end, struct end *peer, const struct rdma_wr *wr)
{
    const struct sim_rnic *rnic = end->handle->rnic;
    uint32_t length = length_of(wr);
    if ((wr->flags & RDMA_INLINE) == 0 &&
        !rnic_local_ok(rnic, wr->sges, wr->sge_count,
                       rdma_is_answered(wr->op) ? RDMA_LOCAL_WRITE : 0))
        return RDMA_LOCAL_ERROR;
    switch (wr->op) {
    case RDMA_SEND:
    case RDMA_SEND_INV:
        return deliver(peer, wr, length);
    case RDMA_WRITE:
    case RDMA_WRITE_IMM:
        return write_remote(peer, wr, length);
    case RDMA_READ:
        return read_remote(peer, wr, length);
    case RDMA_FETCH_ADD:
    case RDMA_CAS:
        return atomic(end, peer, wr);
    case RDMA_BIND: {
        struct rnic_wqe wqe;
        rnic_write_wqe(&wqe, wr);
        return rnic_bind(end, &wqe) ? RDMA_OK : RDMA_LOCAL_ERROR;
    }
    case RDMA_LOCAL_INV:
        return rnic_invalidate(end, wr->imm_stag, false) ? RDMA_OK : RDMA_LOCAL_ERROR;
    default:
        return RDMA_OK;
    }
}

/* ---- posting ----------------------------------------------------------------------------- */

int rnic_direct_post_send(struct sim_handle *h, uint32_t conn, const struct rdma_wr *wrs,
                          uint32_t count)
{
    int failed = rnic_check_sends(h, conn, wrs, count);
    if (failed)
        return failed;
    struct end *end = &h->ends[conn];
    struct rnic_end *e = end->state;
    for (uint32_t i = 0; i < count; i++) {
        const struct rdma_wr *wr = &wrs[i];
        enum rdma_status status = RDMA_FLUSHED;
        e->posted++;
        if (wr->op == RDMA_BIND)
            rdma_window_posted(wr);
        if (!e->stopped && !e->halted)
            status = execute(end, rnic_peer(end), wr);
        if (status == RDMA_OK && (wr->flags & RDMA_SIGNALED) == 0) {
            e->silent++;
            continue;
        }
        rnic_complete(end, wr->wr_id, wr->op, status, rdma_is_answered(wr->op) ? length_of(wr) : 0);
        if (status != RDMA_OK && status != RDMA_FLUSHED) {
            e->halted = 1;
            rnic_fail(end, -ECONNABORTED);
        }
    }
    rnic_direct_settle(h->w);
    return 0;
}

int rnic_direct_post_receives(struct sim_handle *h, uint32_t conn, const struct rdma_wr *wrs,
                              uint32_t count)
{
    int failed = rnic_post_receives(h, conn, wrs, count);
    if (failed)
        return failed;
    h->ends[conn].state->receives_rung += count;
    if (h->ends[conn].state->stopped) {
        rnic_stir(&h->ends[conn]);
        rnic_direct_settle(h->w);
    }
    return 0;
}

void rnic_direct_settle(struct sim_world *w)
{
    struct sim_rnics *rnics = w->rnics;
    while (rnics->dirty) {
        struct end *end = rnics->dirty;
        rnics->dirty = end->next_dirty;
        end->dirty = false;
        while (rnic_can_connect(end))
            rnic_do_connect(end);
        if (rnic_can_notice(end))
            rnic_do_notice(end);
        if (rnic_can_flush(end))
            rnic_do_flush(end);
    }
}
