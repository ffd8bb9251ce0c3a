/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A hand-made peer: one connection over which a test sends whatever octets it likes, and looks at
 * those that come back. As initiator it talks to a target, as target to an initiator.
 */
#ifndef KBTP_TESTS_REF_PEER_H
#define KBTP_TESTS_REF_PEER_H

#include "net/rdma.h"
#include "ref/wire.h"

#define PEER_RECEIVES 16u
#define PEER_OCTETS 512u /* of a receive, and of a message to send */

enum peer_state { PEER_DOWN, PEER_CONNECTING, PEER_CONNECTED, PEER_ENDED };

struct peer {
    struct rdma *rdma;
    uint8_t receives[PEER_RECEIVES][PEER_OCTETS];
    uint8_t sends[PEER_OCTETS];
    struct rdma_region region;
    uint32_t cq;
    uint32_t conn;
    enum peer_state state;
    uint32_t receives_wanted; /* how many are posted when it connects */
    enum rdma_status failed;  /* of the first work request that failed, FLUSHED aside */
    uint32_t got[PEER_RECEIVES], got_octets[PEER_RECEIVES];    /* buffers not yet taken */
    uint32_t got_imm[PEER_RECEIVES], got_flags[PEER_RECEIVES]; /* as in struct rdma_wc */
    uint32_t got_count;
};

/* 0 or an error of the device. */
int peer_open(struct peer *peer, struct rdma *rdma);
/* Ends the connection when there is one; polls the device alone. */
void peer_close(struct peer *peer);

int peer_connect(struct peer *peer, const char *address);
int peer_listen(struct peer *peer, const char *address);
void peer_disconnect(struct peer *peer);
/* Takes completions and events; accepts whoever comes. After the end the connection is destroyed,
 * and the peer DOWN again. */
void peer_poll(struct peer *peer);

/* 0 or an error of the device. */
int peer_send(struct peer *peer, const void *octets, uint32_t length);
/* The same with another operation: op, imm_stag, remote_stag and remote_to of `how`. */
int peer_send_as(struct peer *peer, const struct rdma_wr *how, const void *octets, uint32_t length);
int peer_send_message(struct peer *peer, const struct kbtp_message *message);
/* The oldest message: its octets, which must be those of a message; -EAGAIN: there is none,
 * -EBADMSG. Its buffer is posted again. */
int peer_take(struct peer *peer, struct kbtp_message *message);

/* The oldest is an immediate: its value. -EAGAIN: there is nothing, -EBADMSG: it is a message. */
int peer_take_immediate(struct peer *peer, uint32_t *imm);

/* Messages that tests begin with. */
struct kbtp_message peer_hello(uint8_t id, uint16_t credits);
struct kbtp_message peer_request(uint8_t opcode, uint64_t request_id, uint64_t handle,
                                 uint16_t flags);

#endif
