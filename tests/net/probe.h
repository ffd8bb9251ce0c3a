/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Finds out by doing whether a device honours what rdma_caps() says, over two handles of any
 * provider in one process. Each probe makes its own connection from a to b, which listens at
 * `address`, and gives everything back. Not for several threads at a time.
 *
 * An answer can be as good as: what was tried works. A promise about all orders or races can only
 * be refuted; then the answer is PROBE_UNKNOWN and says so.
 *
 * Eight bits are hardly tried. WINDOW and INV_WINDOW: whether a window can be had, not whether it
 * can be bound or invalidated, or is confined to its connection. CHAIN and CHAIN_*: whether there
 * are operations at all, the same for all five. SOLICITED: whether arming is refused, not what
 * wakes whom. A device that lies about these in any other way passes, with PROBE_UNKNOWN.
 */
#ifndef KBTP_TESTS_NET_PROBE_H
#define KBTP_TESTS_NET_PROBE_H

#include "net/rdma.h"

enum probe_result {
    PROBE_HONOURED,
    PROBE_BROKEN,  /* claimed, and not done; or done without being claimed */
    PROBE_UNKNOWN, /* not claimed, or cannot be seen from here */
};

struct probe_answer {
    enum probe_result result;
    const char *words; /* a clause: "the carry went into the next field" */
};

/* One bit of enum rdma_cap. */
struct probe_answer probe_cap(struct rdma *a, struct rdma *b, const char *address,
                              enum rdma_cap bit);

/* Numbers of struct rdma_caps. */
enum probe_limit {
    PROBE_MAX_SGE,
    PROBE_MAX_READ_SGE,
    PROBE_MAX_INLINE,
    PROBE_MAX_MESSAGE,
    PROBE_MAX_QUEUE,
    PROBE_MAX_READS,
    PROBE_LIMITS,
};

/* As much as that is used, or as much as the probe has memory for. */
struct probe_answer probe_limit(struct rdma *a, struct rdma *b, const char *address,
                                enum probe_limit limit);

/* "INV_REGION", "max_sge"; NULL for what is not there. */
const char *probe_cap_name(enum rdma_cap bit);
const char *probe_limit_name(enum probe_limit limit);

#endif
