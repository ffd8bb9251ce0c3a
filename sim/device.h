/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The simulated RNIC as an ordinary provider within one process, without a world of steps: for unit
 * tests, benchmarks, and programs in which both sides live. Every call acts at once, to the end:
 * when rdma_post_send() returns, the peer's memory has the data and both completion queues their
 * completions. What cannot be seen here (orders, loss of what is on the way, SIM_RNR_FOREVER) is
 * what worlds are for.
 *
 * Registered memory may be any memory of the process. Nothing allocates after handles and
 * completion queues were made. Not for several threads at a time.
 *
 *     struct sim_device *dev = sim_device_open(&(struct sim_device_config){.rnic = {...}});
 *     struct rdma *target = sim_device_handle(dev, &limits);
 *     rdma_listen(target, "target");
 *     struct rdma *initiator = sim_device_handle(dev, &limits);
 *     rdma_connect(initiator, "target", ...);
 */
#ifndef KBTP_SIM_DEVICE_H
#define KBTP_SIM_DEVICE_H

#include "sim/rnic_config.h"

struct sim_device;

struct sim_device_config {
    struct sim_rnic_config rnic; /* zero: max_message 1 MiB, max_reads 16, 64 regions and windows */
    uint32_t hosts;              /* RNICs, each with STags of its own; 0: 1 */
    uint32_t handles;            /* in all; 0: 16 */
    uint64_t octets;             /* address space for queues; 0: 256 MiB */
};

/* NULL: no memory, or an illegal configuration. */
struct sim_device *sim_device_open(const struct sim_device_config *config);
/* All handles with it. */
void sim_device_close(struct sim_device *dev);

/*
 * A handle, owned by the device. NULL: no memory, none left, or illegal limits. In limits, 0 means:
 * connections 16, send_depth and recv_depth 64, max_sge 4, reads max_reads, timers 16, cqs 4.
 * Several handles may listen at one address: each connection goes to the next of them.
 */
struct rdma *sim_device_handle(struct sim_device *dev, const struct sim_rnic_limits *limits);

/*
 * The fault: both ends raise DISCONNECTED with -ECONNRESET and flush what is posted. -EINVAL: no
 * such connection, or it has ended.
 */
int sim_device_cut(struct rdma *handle, uint32_t conn);
/* The handle's host stops: all its connections are cut, and it may not be used any more. */
void sim_device_host_dies(struct rdma *handle);

/* Timers expire here only: lets timer `id` expire. False when it is not armed. */
bool sim_device_expire(struct rdma *handle, uint32_t id);
/* What it was armed with, or 0. */
uint64_t sim_device_timer_ns(const struct rdma *handle, uint32_t id);

#endif
