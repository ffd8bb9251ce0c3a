/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The providers of net/rdma.h that work within one process, in one table: what is tested over one
 * is tested over all. One device at a time.
 */
#ifndef KBTP_TESTS_NET_PROVIDER_H
#define KBTP_TESTS_NET_PROVIDER_H

#include "tests/net/loop.h"

struct provider {
    const char *name;
    bool (*open)(void); /* false: no memory */
    void (*close)(void);
    struct rdma *(*handle)(void); /* up to 8 */
    /* The connection is lost at both ends. */
    void (*cut)(struct rdma *r, uint32_t conn);
    bool (*expire)(struct rdma *r, uint32_t id); /* a timer; false: it is not armed */
    /* Regions, connections and completion queues in use; 0 when it cannot be told. */
    uint32_t (*left)(void);
    struct loop *loop; /* with its knobs, or NULL */
    /* As programs use it: connections take memory, and whoever has fewer of them gets the next. */
    bool real;
};

/* The trivial one, the simulated RNIC, that in simulated time, where each call lets happen what
 * comes of it, and net/verbs on an rdma-core for tests (tests/net/fake), once like the driver siw
 * and once like rxe. */
#define PROVIDERS 5u
#define FIRST_VERBS_PROVIDER 3u
extern const struct provider providers[PROVIDERS];
/* The simulated RNIC as an InfiniBand device is: Writes have an order, atomics no mask, and only
 * windows can be invalidated by the peer. */
extern const struct provider provider_infiniband;

#endif
