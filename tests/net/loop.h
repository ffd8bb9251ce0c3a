/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The most trivial provider of net/rdma.h: handles of one process that exchange messages by memcpy,
 * at once. What it does is plain to see, so that tests of ref/ and of other providers can be
 * compared with it. Strong ordering; no windows, no chains. All memory is inside.
 */
#ifndef KBTP_TESTS_NET_LOOP_H
#define KBTP_TESTS_NET_LOOP_H

#include "net/rdma.h"

#define LOOP_HANDLES 8u
#define LOOP_CONNS 16u
#define LOOP_QUEUE 64u
#define LOOP_CQ 4096u
#define LOOP_REGIONS 256u
#define LOOP_EVENTS 64u

struct loop_recv {
    uint64_t wr_id;
    char *addr;
    uint32_t length;
};

enum loop_state { LOOP_UNUSED, LOOP_REQUESTED, LOOP_CONNECTING, LOOP_CONNECTED, LOOP_ENDED };

struct loop_conn {
    enum loop_state state;
    struct loop_handle *peer;
    uint32_t peer_conn;
    struct rdma_conn_config config;
    struct loop_recv recv[LOOP_QUEUE];
    uint32_t recv_first, recv_count;
    uint32_t flushed; /* FLUSHED completions that are not polled yet */
    bool drained_told;
};

struct loop_handle {
    struct rdma rdma; /* first */
    struct loop *loop;
    const char *address; /* listening, or NULL */
    struct loop_conn conns[LOOP_CONNS];
    struct rdma_wc cq[LOOP_CQ]; /* one per handle */
    uint32_t cq_first, cq_count, cqs;
    struct rdma_event events[LOOP_EVENTS];
    uint32_t events_first, events_count;
};

struct loop {
    struct rdma_caps caps;
    struct loop_handle handles[LOOP_HANDLES];
    uint32_t handles_count;
    struct rdma_region regions[LOOP_REGIONS];
    uint64_t random;
    uint32_t turn;
};

void loop_init(struct loop *loop);
struct rdma *loop_handle(struct loop *loop);
/* The connection is lost at both ends. */
void loop_cut(struct rdma *r, uint32_t conn);
/* What is left: regions, connections. */
uint32_t loop_regions(const struct loop *loop);
uint32_t loop_connections(const struct loop *loop);

#endif
