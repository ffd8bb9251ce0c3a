/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Calls of net/rdma.h within a poll: accesses of the agent that is run again, with results that are
 * logged and repeated as those of loads are (sim/cpu.h).
 *
 * A post is private: its doorbell enters the store buffer (with SC it is a visible access). Polling
 * a completion queue and looking for events are visible, but an event that is there is taken at
 * once. All other calls wait for an empty store buffer and are visible.
 */
#ifndef KBTP_SIM_CPU_RDMA_H
#define KBTP_SIM_CPU_RDMA_H

#include "net/rdma.h"

extern const struct rdma_ops cpu_poll_rdma_ops;
/* Only what may be called in a poll; a put is one step: nobody looks before it is enabled. */
extern const struct rdma_chain_ops cpu_poll_chain_ops;

#endif
