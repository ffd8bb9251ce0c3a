/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What perftest measures, in simulated time: two hosts, one connection, one operation again and
 * again. For comparing a cost model with published figures.
 */
#ifndef KBTP_SIM_TIMED_VERBS_H
#define KBTP_SIM_TIMED_VERBS_H

#include "sim/timed/costs.h"

struct sim_verbs {
    uint32_t op;         /* RDMA_SEND, WRITE, READ, FETCH_ADD */
    uint32_t octets;     /* of a message */
    uint32_t max_inline; /* up to so many are sent with the work request; not of READs, atomics */
    uint32_t depth;      /* of a stream: work requests under way */
    uint32_t reads;      /* of them, READs and atomics at most */
    uint32_t hops;       /* switches; with 0 a cable: half of the model's link_latency_ns */
};

/*
 * SEND and WRITE: one way, from the call that posts until the other side has seen it (perftest
 * halves what it measures); READ and FETCH_ADD: from the call until its completion was taken.
 * Nanoseconds; below 0: no memory.
 */
double sim_verbs_latency_ns(const struct sim_costs *costs, const struct sim_verbs *verbs);
/* Messages a second of a stream of many; below 0: no memory. */
double sim_verbs_rate(const struct sim_costs *costs, const struct sim_verbs *verbs);

#endif
