/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A provider around another one: all calls pass through, but the k-th of one operation fails, or
 * the k-th completion of one kind. One plan for several handles: it counts over all of them.
 */
#ifndef KBTP_TESTS_NET_FAILING_H
#define KBTP_TESTS_NET_FAILING_H

#include "net/rdma.h"

/* Those of struct rdma_ops, and of struct rdma_chain_ops for LOOP queues, that can fail. */
enum failing_call {
    FAILING_REG,
    FAILING_DEREG,
    FAILING_WINDOW_ALLOC,
    FAILING_WINDOW_FREE,
    FAILING_CQ_CREATE,
    FAILING_CQ_DESTROY,
    FAILING_CQ_POLL,
    FAILING_CQ_ARM,
    FAILING_LISTEN,
    FAILING_CONNECT,
    FAILING_ACCEPT,
    FAILING_DISCONNECT,
    FAILING_DESTROY,
    FAILING_POST_SEND,
    FAILING_POST_RECV,
    FAILING_TIMER,
    FAILING_RANDOM,
    FAILING_CHAIN_CREATE,
    FAILING_CHAIN_DESTROY,
    FAILING_CHAIN_PUT,
    FAILING_CHAIN_ENABLE,
    FAILING_CHAIN_STATE,
    FAILING_CALLS,
};

const char *failing_call_name(enum failing_call call);
/* The n-th error that this call may return, or 0 when there are no more. */
int failing_error(enum failing_call call, uint32_t n);

struct failing_plan {
    /* Which call fails, from 1; 0: none. */
    enum failing_call call;
    uint32_t call_number;
    int error;
    /* Which completion, from 1; 0: none. RDMA_RECV: those of receives. */
    enum rdma_op op;
    uint32_t completion_number;
    enum rdma_status status;
    /* The rdma_chain_state() that says so many are completed says this status too; 0: none. */
    uint32_t chain_number;
    void (*cut)(struct rdma *r, uint32_t conn); /* ends a connection of the inner provider */

    uint32_t calls[FAILING_CALLS];       /* made up to now */
    uint32_t completions[RDMA_RECV + 1]; /* that were OK */
    bool injected;
};

#define FAILING_CONNS 16u

/*
 * A call that fails was not passed on. A completion that fails ends its connection, and those of
 * its queue behind it are FLUSHED; all of them say nothing but wr_id, conn and status.
 */
struct failing {
    struct rdma rdma; /* first */
    struct rdma *inner;
    struct failing_plan *plan;
    bool broken[FAILING_CONNS]; /* the send queue of this connection has failed */
};

struct rdma *failing_handle(struct failing *failing, struct rdma *wrapped,
                            struct failing_plan *plan);

#endif
