/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/ref/peer.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#define RECEIVE_ID 1000u

int peer_open(struct peer *peer, struct rdma *rdma)
{
    *peer = (struct peer){.rdma = rdma, .receives_wanted = PEER_RECEIVES};
    int failed = rdma_cq_create(rdma, 64, &peer->cq);
    if (!failed)
        failed = rdma_reg(rdma, peer->receives, sizeof peer->receives + sizeof peer->sends,
                          RDMA_LOCAL_WRITE, 0, &peer->region);
    return failed;
}

void peer_close(struct peer *peer)
{
    peer_disconnect(peer);
    for (uint32_t n = 0; n < 100; n++)
        peer_poll(peer);
    rdma_dereg(peer->rdma, &peer->region);
    rdma_cq_destroy(peer->rdma, peer->cq);
}

/* ---- connecting -------------------------------------------------------------------------- */

static struct rdma_conn_config config_of(const struct peer *peer)
{
    return (struct rdma_conn_config){.cq = peer->cq,
                                     .send_depth = 16,
                                     .recv_depth = PEER_RECEIVES,
                                     .max_sge = 1,
                                     .reads_out = 1,
                                     .reads_in = 1};
}

static int post_receive(struct peer *peer, uint32_t number)
{
    struct rdma_sge sge = {peer->receives[number], PEER_OCTETS, peer->region.lkey};
    struct rdma_wr wr = {
        .wr_id = RECEIVE_ID + number, .op = RDMA_RECV, .sges = &sge, .sge_count = 1};
    return rdma_post_recv(peer->rdma, peer->conn, &wr, 1);
}

static int post_receives(struct peer *peer)
{
    int failed = 0;
    for (uint32_t i = 0; i < peer->receives_wanted && !failed; i++)
        failed = post_receive(peer, i);
    return failed;
}

int peer_connect(struct peer *peer, const char *address)
{
    struct rdma_conn_config config = config_of(peer);
    int failed = rdma_connect(peer->rdma, address, &config, NULL, 0, NULL, 0, &peer->conn);
    if (failed)
        return failed;
    peer->state = PEER_CONNECTING;
    peer->failed = RDMA_OK;
    peer->got_count = 0;
    return post_receives(peer);
}

int peer_listen(struct peer *peer, const char *address)
{
    return rdma_listen(peer->rdma, address);
}

void peer_disconnect(struct peer *peer)
{
    if (peer->state != PEER_DOWN)
        rdma_disconnect(peer->rdma, peer->conn);
}

/* ---- what happens ------------------------------------------------------------------------ */

static void completed(struct peer *peer, const struct rdma_wc *wc)
{
    if (wc->status != RDMA_OK) {
        if (wc->status != RDMA_FLUSHED && peer->failed == RDMA_OK)
            peer->failed = wc->status;
    } else if (wc->wr_id >= RECEIVE_ID) {
        peer->got[peer->got_count] = (uint32_t)wc->wr_id - RECEIVE_ID;
        peer->got_imm[peer->got_count] = wc->imm;
        peer->got_flags[peer->got_count] = wc->flags;
        peer->got_octets[peer->got_count++] = wc->length;
    }
}

static void accept_it(struct peer *peer, uint32_t conn)
{
    struct rdma_conn_config config = config_of(peer);
    if (peer->state != PEER_DOWN || rdma_accept(peer->rdma, conn, &config, NULL, 0, NULL, 0) != 0) {
        rdma_reject(peer->rdma, conn, NULL, 0);
        return;
    }
    peer->conn = conn;
    peer->state = PEER_CONNECTING;
    peer->got_count = 0;
    post_receives(peer);
}

static void happened(struct peer *peer, const struct rdma_event *event)
{
    switch (event->kind) {
    case RDMA_EVENT_REQUEST:
        accept_it(peer, event->conn);
        break;
    case RDMA_EVENT_CONNECTED:
        peer->state = PEER_CONNECTED;
        break;
    case RDMA_EVENT_DISCONNECTED:
        peer->state = PEER_ENDED;
        break;
    case RDMA_EVENT_REJECTED:
    case RDMA_EVENT_DRAINED:
        rdma_destroy(peer->rdma, peer->conn);
        peer->state = PEER_DOWN;
        break;
    default:
        break;
    }
}

void peer_poll(struct peer *peer)
{
    struct rdma_wc wc;
    struct rdma_event event;
    while (rdma_cq_poll(peer->rdma, peer->cq, &wc, 1) == 1)
        completed(peer, &wc);
    if (rdma_event(peer->rdma, &event) == 1)
        happened(peer, &event);
}

/* ---- messages ---------------------------------------------------------------------------- */

int peer_send_as(struct peer *peer, const struct rdma_wr *how, const void *octets, uint32_t length)
{
    struct rdma_sge sge = {peer->sends, length, peer->region.lkey};
    struct rdma_wr wr = {.op = how->op,
                         .flags = RDMA_SIGNALED,
                         .sges = &sge,
                         .sge_count = length ? 1 : 0,
                         .imm_stag = how->imm_stag,
                         .remote_stag = how->remote_stag,
                         .remote_to = how->remote_to};
    if (length > sizeof peer->sends)
        return -EMSGSIZE;
    memcpy(peer->sends, octets, length);
    int failed = rdma_post_send(peer->rdma, peer->conn, &wr, 1);
    struct rdma_wc wc;
    while (rdma_cq_poll(peer->rdma, peer->cq, &wc, 1) == 1)
        completed(peer, &wc); /* the octets may change again */
    return failed;
}

int peer_send(struct peer *peer, const void *octets, uint32_t length)
{
    const struct rdma_wr send = {.op = RDMA_SEND};
    return peer_send_as(peer, &send, octets, length);
}

int peer_send_message(struct peer *peer, const struct kbtp_message *message)
{
    uint8_t octets[KBTP_HELLO_ACK_MAX_OCTETS];
    int length = kbtp_wire_encode(message, false, octets, sizeof octets);
    return length < 0 ? length : peer_send(peer, octets, (uint32_t)length);
}

static void drop_oldest(struct peer *peer)
{
    uint32_t *const all[] = {peer->got, peer->got_octets, peer->got_imm, peer->got_flags};
    peer->got_count--;
    for (uint32_t i = 0; i < sizeof all / sizeof *all; i++)
        memmove(all[i], all[i] + 1, peer->got_count * sizeof *all[i]);
}

int peer_take_immediate(struct peer *peer, uint32_t *imm)
{
    if (peer->got_count == 0)
        return -EAGAIN;
    if (!(peer->got_flags[0] & RDMA_WC_WRITE_IMM))
        return -EBADMSG;
    uint32_t number = peer->got[0];
    *imm = peer->got_imm[0];
    drop_oldest(peer);
    return post_receive(peer, number);
}

int peer_take(struct peer *peer, struct kbtp_message *message)
{
    if (peer->got_count == 0)
        return -EAGAIN;
    uint32_t number = peer->got[0], length = peer->got_octets[0];
    drop_oldest(peer);
    int failed = kbtp_wire_decode(peer->receives[number], length, false, message, NULL);
    post_receive(peer, number);
    return failed;
}

struct kbtp_message peer_hello(uint8_t id, uint16_t credits)
{
    struct kbtp_message message = {
        .header = {.version = KBTP_WIRE_VERSION, .opcode = KBTP_OP_HELLO},
        .hello = {.completion_credits = credits}};
    memset(message.hello.initiator_id, id, sizeof message.hello.initiator_id);
    return message;
}

struct kbtp_message peer_request(uint8_t opcode, uint64_t request_id, uint64_t handle,
                                 uint16_t flags)
{
    return (struct kbtp_message){.header = {.version = KBTP_WIRE_VERSION,
                                            .opcode = opcode,
                                            .flags = flags,
                                            .request_id = request_id,
                                            .handle = handle}};
}
