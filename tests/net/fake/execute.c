/* SPDX-License-Identifier: BSD-3-Clause */
/* What work requests do. */
#include "tests/net/fake/state.h"

#include <string.h>

static bool is_iwarp(void)
{
    return fake.config.kind == FAKE_SIW;
}

/* ---- octets ------------------------------------------------------------------------------ */

/* Octets of a list of SGEs, in pieces. */
struct cursor {
    const struct ibv_sge *sge;
    uint32_t used;
};

static char *next_piece(struct cursor *at, uint64_t *length)
{
    while (at->used == at->sge->length) {
        at->sge++;
        at->used = 0;
    }
    if (*length > at->sge->length - at->used)
        *length = at->sge->length - at->used;
    char *piece = (char *)(uintptr_t)at->sge->addr + at->used;
    at->used += (uint32_t)*length;
    return piece;
}

static void gather(const struct fake_send *send, char *to)
{
    struct cursor from = {send->sges, 0};
    if (send->wr.send_flags & IBV_SEND_INLINE) {
        memcpy(to, send->octets, send->length);
        return;
    }
    for (uint64_t done = 0, piece; done < send->length; done += piece) {
        piece = send->length - done;
        const char *at = next_piece(&from, &piece);
        memcpy(to + done, at, piece);
    }
}

static void scatter(const struct ibv_sge *sges, const char *from, uint64_t length)
{
    struct cursor to = {sges, 0};
    for (uint64_t done = 0, piece; done < length; done += piece) {
        piece = length - done;
        char *at = next_piece(&to, &piece);
        memcpy(at, from + done, piece);
    }
}

static bool local_ok(const struct fake_send *send, bool sink)
{
    for (int i = 0; i < send->wr.num_sge && !(send->wr.send_flags & IBV_SEND_INLINE); i++)
        if (send->sges[i].length && !fake_local(&send->sges[i], sink ? IBV_ACCESS_LOCAL_WRITE : 0))
            return false;
    return true;
}

static bool receive_ok(const struct fake_recv *recv)
{
    for (int i = 0; i < recv->count; i++)
        if (recv->sges[i].length && !fake_local(&recv->sges[i], IBV_ACCESS_LOCAL_WRITE))
            return false;
    return true;
}

/* ---- one of each ------------------------------------------------------------------------- */

/* The peer's queue pair ends because of what came. */
static void peer_fails(struct fake_qp *peer, enum ibv_event_type why)
{
    fake_to_error(peer);
    fake_raise(why, peer, NULL);
}

static void receive_from(const struct fake_send *send, const struct fake_recv *recv)
{
    if (send->wr.send_flags & IBV_SEND_INLINE) {
        scatter(recv->sges, send->octets, send->length);
        return;
    }
    struct cursor from = {send->sges, 0}, to = {recv->sges, 0};
    for (uint64_t done = 0, piece; done < send->length; done += piece) {
        piece = send->length - done;
        struct cursor look = to;
        (void)next_piece(&look, &piece); /* both have so much in one piece */
        const char *source = next_piece(&from, &piece);
        memcpy(next_piece(&to, &piece), source, piece);
    }
}

/* siw's library looks for it where a WRITE has its STag. */
static uint32_t invalidated_by(const struct ibv_send_wr *wr)
{
    return is_iwarp() ? wr->wr.rdma.rkey : wr->invalidate_rkey;
}

static enum ibv_wc_status deliver(const struct fake_send *send, struct fake_qp *peer)
{
    bool with_data = send->wr.opcode != IBV_WR_RDMA_WRITE_WITH_IMM;
    if (peer->recvs_count == 0)
        return IBV_WC_RNR_RETRY_EXC_ERR;
    struct fake_recv *recv = &peer->recvs[peer->recvs_first];
    struct ibv_wc wc = {.wr_id = recv->wr_id,
                        .opcode = with_data ? IBV_WC_RECV : IBV_WC_RECV_RDMA_WITH_IMM,
                        .byte_len = (uint32_t)send->length};
    enum ibv_wc_status status = IBV_WC_SUCCESS;
    if (with_data && send->length > recv->length) {
        wc.status = IBV_WC_LOC_LEN_ERR;
        status = IBV_WC_REM_INV_REQ_ERR;
    } else if (with_data && !receive_ok(recv)) {
        wc.status = IBV_WC_LOC_PROT_ERR;
        status = IBV_WC_REM_OP_ERR;
    } else if (send->wr.opcode == IBV_WR_SEND_WITH_INV &&
               !fake_invalidate(peer, invalidated_by(&send->wr), true)) {
        return IBV_WC_REM_ACCESS_ERR;
    }
    if (status == IBV_WC_SUCCESS && with_data)
        receive_from(send, recv);
    if (send->wr.opcode == IBV_WR_SEND_WITH_INV && !is_iwarp()) {
        wc.wc_flags = 4; /* as rxe numbers it, not as IBV_WC_WITH_INV */
        wc.invalidated_rkey = send->wr.invalidate_rkey;
    }
    if (!with_data) {
        wc.wc_flags = IBV_WC_WITH_IMM;
        wc.imm_data = send->wr.imm_data;
    }
    peer->recvs_first = (peer->recvs_first + 1) % peer->cap.max_recv_wr;
    peer->recvs_count--;
    fake_complete(peer, wc, 0, send->wr.send_flags & IBV_SEND_SOLICITED);
    fake_first_message(peer);
    return status;
}

static enum ibv_wc_status move(const struct fake_send *send, struct fake_qp *peer, bool reads)
{
    if (send->length == 0)
        return IBV_WC_SUCCESS;
    if (send->length > (is_iwarp() ? UINT32_MAX : 8u << 20))
        return IBV_WC_LOC_LEN_ERR;
    char *at = fake_remote(peer, send->wr.wr.rdma.rkey, send->wr.wr.rdma.remote_addr, send->length,
                           reads ? IBV_ACCESS_REMOTE_READ : IBV_ACCESS_REMOTE_WRITE);
    if (!at)
        return IBV_WC_REM_ACCESS_ERR;
    if (reads)
        scatter(send->sges, at, send->length);
    else
        gather(send, at);
    if (!reads && ++fake.writes == fake.config.wrong_write)
        at[send->length - 1] ^= 1;
    return IBV_WC_SUCCESS;
}

static enum ibv_wc_status change(const struct fake_send *send, struct fake_qp *peer)
{
    uint64_t to = send->wr.wr.atomic.remote_addr, compare = send->wr.wr.atomic.compare_add;
    char *at = fake_remote(peer, send->wr.wr.atomic.rkey, to, 8, IBV_ACCESS_REMOTE_ATOMIC);
    if (to % 8 != 0)
        return IBV_WC_REM_INV_REQ_ERR;
    if (!at)
        return IBV_WC_REM_ACCESS_ERR;
    uint64_t *word = (uint64_t *)(void *)at, before = compare;
    if (send->wr.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD)
        before = __atomic_fetch_add(word, compare, __ATOMIC_SEQ_CST);
    else
        (void)__atomic_compare_exchange_n(word, &before, send->wr.wr.atomic.swap, false,
                                          __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
    scatter(send->sges, (const char *)&before, 8);
    return IBV_WC_SUCCESS;
}

static enum ibv_wc_status execute(struct fake_qp *qp, const struct fake_send *send)
{
    enum ibv_wr_opcode op = send->wr.opcode;
    bool sink = op == IBV_WR_RDMA_READ || op == IBV_WR_ATOMIC_FETCH_AND_ADD ||
                op == IBV_WR_ATOMIC_CMP_AND_SWP;
    if (!local_ok(send, sink))
        return IBV_WC_LOC_PROT_ERR;
    /* siw takes it when it is posted, and then ends the queue pair. */
    if (is_iwarp() && op == IBV_WR_SEND_WITH_INV && send->wr.send_flags & IBV_SEND_INLINE)
        return IBV_WC_LOC_QP_OP_ERR;
    switch (op) {
    case IBV_WR_SEND:
    case IBV_WR_SEND_WITH_INV:
        return deliver(send, qp->peer);
    case IBV_WR_RDMA_WRITE:
        return move(send, qp->peer, false);
    case IBV_WR_RDMA_WRITE_WITH_IMM: {
        enum ibv_wc_status status = move(send, qp->peer, false);
        return status == IBV_WC_SUCCESS ? deliver(send, qp->peer) : status;
    }
    case IBV_WR_RDMA_READ:
        return move(send, qp->peer, true);
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
    case IBV_WR_ATOMIC_CMP_AND_SWP:
        return change(send, qp->peer);
    case IBV_WR_BIND_MW:
        return fake_bind(qp, send);
    case IBV_WR_LOCAL_INV:
        return fake_invalidate(qp, send->wr.invalidate_rkey, false) ? IBV_WC_SUCCESS
                                                                    : IBV_WC_MW_BIND_ERR;
    default:
        return IBV_WC_LOC_QP_OP_ERR;
    }
}

/* ---- the queue --------------------------------------------------------------------------- */

static bool is_remote(enum ibv_wc_status status)
{
    return status == IBV_WC_REM_ACCESS_ERR || status == IBV_WC_REM_INV_REQ_ERR ||
           status == IBV_WC_REM_OP_ERR || status == IBV_WC_RNR_RETRY_EXC_ERR;
}

/* iWARP: what is sent is complete when it is gone; then a Terminate comes back. */
static void after_failure(struct fake_qp *qp, const struct fake_send *send,
                          enum ibv_wc_status status)
{
    struct fake_qp *peer = qp->peer;
    struct ibv_wc wc = {.wr_id = send->wr.wr_id, .status = status};
    if (is_iwarp() && is_remote(status)) {
        bool reads = send->wr.opcode == IBV_WR_RDMA_READ;
        wc.status = reads ? IBV_WC_WR_FLUSH_ERR : IBV_WC_SUCCESS;
        wc.opcode = send->wr.opcode == IBV_WR_RDMA_WRITE ? IBV_WC_RDMA_WRITE : IBV_WC_SEND;
        if (reads || send->wr.send_flags & IBV_SEND_SIGNALED)
            fake_complete(qp, wc, send->number, false);
        fake_lost(qp);
        return;
    }
    fake_complete(qp, wc, send->number, false);
    fake_to_error(qp);
    if (is_iwarp())
        fake_lost(qp);
    else if (status == IBV_WC_REM_ACCESS_ERR)
        peer_fails(peer, IBV_EVENT_QP_ACCESS_ERR);
    else if (is_remote(status) && status != IBV_WC_RNR_RETRY_EXC_ERR)
        peer_fails(peer, IBV_EVENT_QP_REQ_ERR);
}

static const enum ibv_wc_opcode names[] = {
    [IBV_WR_RDMA_WRITE] = IBV_WC_RDMA_WRITE,
    [IBV_WR_RDMA_WRITE_WITH_IMM] = IBV_WC_RDMA_WRITE,
    [IBV_WR_SEND] = IBV_WC_SEND,
    [IBV_WR_RDMA_READ] = IBV_WC_RDMA_READ,
    [IBV_WR_ATOMIC_CMP_AND_SWP] = IBV_WC_COMP_SWAP,
    [IBV_WR_ATOMIC_FETCH_AND_ADD] = IBV_WC_FETCH_ADD,
    [IBV_WR_LOCAL_INV] = IBV_WC_LOCAL_INV,
    [IBV_WR_BIND_MW] = IBV_WC_BIND_MW,
    [IBV_WR_SEND_WITH_INV] = IBV_WC_SEND,
};

/* Whoever is not there, or not yet, or in error does not answer: retries go on, and on. */
void fake_run(struct fake_qp *qp)
{
    while (qp->sends_count > 0 && qp->qp.state == IBV_QPS_RTS && qp->peer &&
           qp->peer->qp.state == IBV_QPS_RTS) {
        struct fake_send send = qp->sends[qp->sends_first];
        send.wr.sg_list = send.sges;
        qp->sends_first = (qp->sends_first + 1) % qp->cap.max_send_wr;
        qp->sends_count--;
        enum ibv_wc_status status = execute(qp, &send);
        if (status != IBV_WC_SUCCESS)
            after_failure(qp, &send, status);
        else if (send.wr.send_flags & IBV_SEND_SIGNALED)
            fake_complete(qp,
                          (struct ibv_wc){.wr_id = send.wr.wr_id,
                                          .opcode = names[send.wr.opcode],
                                          .byte_len = (uint32_t)send.length},
                          send.number, false);
    }
}
