/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a simulated RNIC is like, and what a handle on it may use: for worlds (sim/rnic.h),
 * scenarios, and programs (sim/device.h) alike.
 */
#ifndef KBTP_SIM_RNIC_CONFIG_H
#define KBTP_SIM_RNIC_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#include "net/rdma.h"

/* Of each connection; sim/rnic.h says what they mean. */
enum sim_ordering { SIM_ORDERING_RDMAP, SIM_ORDERING_INFINIBAND, SIM_ORDERING_STRONG };

/* Everything that is simulated. ORDERED_WRITES and WRITE_ACKED follow from the ordering. */
#define SIM_RNIC_BITS \
    (RDMA_CAP_SEND_INV | RDMA_CAP_INV_REGION | RDMA_CAP_INV_WINDOW | RDMA_CAP_IMM | \
     RDMA_CAP_FETCH_ADD | RDMA_CAP_MASKED | RDMA_CAP_CAS | RDMA_CAP_ATOMIC_CPU | RDMA_CAP_WINDOW | \
     RDMA_CAP_BASE_TO | RDMA_CAP_SOLICITED)

/* And in worlds, with limits.loops and shared memory (sim/rnic.h). */
#define SIM_RNIC_CHAIN_BITS (RDMA_CAP_CHAIN | RDMA_CAP_CHAIN_STRIDED | RDMA_CAP_LOOP)

/* A message for which no receive is posted waits for one, however long that takes. */
#define SIM_RNR_FOREVER 7u

struct sim_rnic_config {
    enum sim_ordering ordering;
    uint32_t bits;        /* of SIM_RNIC_BITS, SIM_RNIC_CHAIN_BITS; others are left out */
    uint32_t binding;     /* enum rdma_binding */
    uint32_t max_message; /* octets; the same for all RNICs that talk to each other */
    uint32_t max_inline;
    uint32_t max_reads; /* of one connection and direction */
    uint32_t regions;   /* at once */
    uint32_t windows;   /* at once; 0: none, without WINDOW and INV_WINDOW */
    /*
     * What becomes of a message for which no receive is posted ("receiver not ready"), as in
     * InfiniBand: below SIM_RNR_FOREVER it fails (sim/rnic.h). The same for all RNICs that talk to
     * each other; with RDMAP, which has no such thing, 0.
     */
    uint32_t rnr_retry;
    uint32_t chain_first; /* number of the first work request of chain queues */
    uint64_t seed;        /* of rdma_random() */
    bool wqe_big_endian, atomic_memory_big_endian, atomic_reply_big_endian;
};

/* Of one handle. Memory is laid out for exactly this much, so worlds say what they need. */
struct sim_rnic_limits {
    uint32_t connections; /* at once; in a world 53 of all handles together */
    uint32_t send_depth, recv_depth;
    uint32_t max_sge;
    uint32_t reads;    /* in progress per connection and direction; up to config.max_reads */
    uint32_t timers;   /* ids below this */
    uint32_t cqs;      /* completion queues */
    uint32_t wire;     /* messages on the way per connection and direction; 0: send_depth */
    uint32_t links;    /* connections it made of which an end still exists; 0: as many as can be */
    uint32_t host;     /* sim/device.h only: which RNIC, below config.hosts */
    uint32_t connects; /* rdma_connect() succeeds so often in all; 0: without limit */
    uint32_t loops;    /* chain queues of kinds LOOP and CTRL */
    /*
     * The CPU touches no shared memory (granted-memory watches over it): all that it learns and
     * lets others know goes through its connections.
     */
    bool isolated;
    /*
     * It never calls rdma_disconnect(): what it has posted is not lost by that, and while nothing
     * else can end its connections, a look for events that finds none is no step.
     */
    bool never_disconnects;
};

#endif
