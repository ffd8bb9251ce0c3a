/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The most trivial provider of net/rdma.h: handles of one process that exchange messages by memcpy,
 * at once. What it does is plain to see, so that tests of ref/ and of other providers can be
 * compared with it. Strong ordering; no chains. All memory is inside.
 *
 * It is strict where real devices are strict only sometimes: a queue that is too full, a completion
 * queue that overflows, a post before CONNECTED or after DISCONNECTED was taken all fail.
 *
 * Tests turn knobs: work requests or completions can be held back, connections cut, and
 * capabilities claimed that are not there.
 */
#ifndef KBTP_TESTS_NET_LOOP_H
#define KBTP_TESTS_NET_LOOP_H

#include "net/rdma.h"

#define LOOP_HANDLES 8u
#define LOOP_CONNS 16u
#define LOOP_QUEUE 64u
#define LOOP_CQ 4096u
#define LOOP_REGIONS 256u
#define LOOP_WINDOWS 8u
#define LOOP_EVENTS 64u
#define LOOP_TIMERS 32u
#define LOOP_SGES 4u
#define LOOP_INLINE 256u
#define LOOP_MESSAGE (1u << 30)

struct loop_recv {
    uint64_t wr_id;
    struct rdma_sge sges[LOOP_SGES];
    uint32_t sge_count;
    uint32_t length;
};

/* A work request whose completion has not been raised yet. */
struct loop_send {
    struct rdma_wr wr; /* its SGEs are those below */
    struct rdma_sge sges[LOOP_SGES];
    char octets[LOOP_INLINE]; /* of RDMA_INLINE */
    uint32_t length;
    uint32_t number;    /* of this connection, from 1 */
    uint32_t bind_stag; /* of BIND: what the window's will be */
    enum rdma_status status;
    bool executed;
};

enum loop_state { LOOP_UNUSED, LOOP_REQUESTED, LOOP_CONNECTING, LOOP_CONNECTED, LOOP_ENDED };

struct loop_conn {
    enum loop_state state;
    struct loop_handle *peer;
    uint32_t peer_conn;
    struct rdma_conn_config config;
    struct loop_recv recv[LOOP_QUEUE];
    uint32_t recv_first, recv_count;
    struct loop_send sends[LOOP_QUEUE];
    uint32_t sends_first, sends_count;
    uint32_t posted, retired; /* work requests: up to which number */
    uint32_t flushed;         /* FLUSHED completions that are not polled yet */
    bool may_send;            /* CONNECTED or a receive was taken, and DISCONNECTED was not */
    bool drained_told;
};

struct loop_wc {
    struct rdma_wc wc;
    uint32_t number; /* of the work request; 0: a receive */
};

struct loop_handle {
    struct rdma rdma; /* first */
    struct loop *loop;
    const char *address; /* listening, or NULL */
    struct loop_conn conns[LOOP_CONNS];
    struct loop_wc cq[LOOP_CQ]; /* one per handle */
    uint32_t cq_first, cq_count, cq_depth, cqs;
    struct rdma_event events[LOOP_EVENTS];
    uint32_t events_first, events_count;
    uint64_t timers[LOOP_TIMERS]; /* armed with, ns; they expire in loop_expire() only */
    uint32_t held;                /* 1 << enum rdma_op: not executed yet */
    bool completions_held;
    bool overflowed;
};

struct loop_window {
    struct loop_handle *of; /* whose connection `conn` it is bound to; NULL: it is not bound */
    uint32_t conn;
    uint32_t access;
    char *addr;
    uint64_t length;
    uint64_t base_to;
    uint32_t region;
    uint32_t stag;
    bool used;
};

/* What a lie does too late. */
struct loop_late {
    char *to;
    char octets[64];
    uint32_t length;
    uint32_t polls; /* until it is placed */
};

struct loop {
    struct rdma_caps caps; /* as claimed */
    struct rdma_caps real; /* numbers that hold */
    uint32_t lies;         /* bits of `caps` that are claimed and not honoured */
    uint64_t base_step;    /* without RDMA_CAP_BASE_TO: so much further on each region begins */
    struct loop_handle handles[LOOP_HANDLES];
    uint32_t handles_count;
    struct rdma_region regions[LOOP_REGIONS];
    struct loop_window windows[LOOP_WINDOWS];
    struct loop_late late;
    uint64_t random;
    uint32_t turn;
};

void loop_init(struct loop *loop);
struct rdma *loop_handle(struct loop *loop);
/* The connection is lost at both ends. */
void loop_cut(struct rdma *r, uint32_t conn);
/*
 * From now on this handle does not execute these operations (1 << enum rdma_op); 0: it executes
 * what was held. Those behind a held READ or atomic are executed but for RDMA_FENCE, those behind
 * any other wait; completions keep their order.
 */
void loop_hold(struct rdma *r, uint32_t operations);
/* Work requests of this handle are executed, but their completions are not raised. */
void loop_hold_completions(struct rdma *r, bool held);
/* Timer `id` expires; false: it is not armed. */
bool loop_expire(struct rdma *r, uint32_t id);
/* What is left: regions, windows, connections, completion queues. */
uint32_t loop_windows(const struct loop *loop);
uint32_t loop_regions(const struct loop *loop);
uint32_t loop_connections(const struct loop *loop);
uint32_t loop_cqs(const struct loop *loop);

/* ---- between the files of this provider -------------------------------------------------- */

static inline struct loop_handle *loop_self(struct rdma *r)
{
    return (struct loop_handle *)r;
}

/* Is the capability claimed and there? */
static inline bool loop_does(const struct loop *loop, uint32_t bit)
{
    return loop->caps.bits & ~loop->lies & bit;
}

/* loop.c */
void loop_complete(struct loop_handle *h, struct rdma_wc wc, uint32_t number);
void loop_flush_one(struct loop_handle *h, uint32_t conn, uint64_t wr_id, uint32_t number);
void loop_end_both(struct loop_handle *h, uint32_t conn, int error);

/* loop_windows.c */
int loop_window_alloc(struct rdma *r, struct rdma_window *window);
int loop_window_free(struct rdma *r, struct rdma_window *window);
enum rdma_status loop_bind(struct loop_handle *h, uint32_t conn, const struct rdma_wr *wr,
                           uint32_t stag);
/* Where what a peer asks for is, for who comes through this connection; or NULL. */
char *loop_window_at(struct loop_handle *h, uint32_t conn, const struct rdma_wr *wr,
                     uint32_t length, uint32_t access);
bool loop_window_invalidate(struct loop_handle *h, uint32_t conn, uint32_t stag, bool by_peer);
/* The connection is destroyed. */
void loop_windows_end(struct loop_handle *h, uint32_t conn);
bool loop_has_windows(const struct loop *loop, uint32_t region);

/* loop_send.c */
bool loop_local_ok(const struct loop *loop, const struct rdma_sge *sge, uint32_t access);
int loop_post_send(struct rdma *r, uint32_t conn, const struct rdma_wr *wrs, uint32_t count);
/* Executes and completes what is not held. */
void loop_progress(struct loop_handle *h, uint32_t conn);
/* A poll: what is late is a step nearer. */
void loop_late_poll(struct loop *loop);

#endif
