/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The trivial provider (tests/net/loop.h) for several threads: one that uses each handle, as
 * net/rdma.h wants it, and one more for each device, which executes work requests meanwhile.
 *
 * A lock is held within the calls of the provider only, and by no more of them than must be: what a
 * call changes is its own handle and the one at the other end of its connection. So two workers
 * share no lock, and nothing orders what they do but the memory of ref/ itself; ThreadSanitizer
 * sees that. Only what is rare (regions, listening, connecting) locks all.
 */
#ifndef KBTP_TESTS_NET_THREADED_H
#define KBTP_TESTS_NET_THREADED_H

#include <pthread.h>

#include "tests/net/loop.h"

struct threaded_handle {
    struct rdma rdma; /* first */
    struct threaded *device;
    struct loop_handle *inner;
    pthread_mutex_t lock;
};

struct threaded {
    struct loop loop;
    struct threaded_handle handles[LOOP_HANDLES];
    uint32_t count;
};

/* Before there are threads, and after. 0, or an error. */
int threaded_init(struct threaded *device);
void threaded_end(struct threaded *device);
struct rdma *threaded_handle(struct threaded *device);

/* This handle executes these operations (1 << enum rdma_op) in threaded_execute() only. */
void threaded_hold(struct rdma *r, uint32_t operations);
/* For the device's own thread: executes what was held, on each connection. */
void threaded_execute(struct rdma *r);
/* Timer `id` expires; false: it is not armed. */
bool threaded_expire(struct rdma *r, uint32_t id);

#endif
