/* SPDX-License-Identifier: BSD-3-Clause */
/* Work requests without steps, for sim/device.c. */
#ifndef KBTP_SIM_RNIC_DIRECT_H
#define KBTP_SIM_RNIC_DIRECT_H

#include "sim/rnic_state.h"

int rnic_direct_post_send(struct sim_handle *h, uint32_t conn, const struct rdma_wr *wrs,
                          uint32_t count);
int rnic_direct_post_receives(struct sim_handle *h, uint32_t conn, const struct rdma_wr *wrs,
                              uint32_t count);
/* Connections are made, and end. */
void rnic_direct_settle(struct sim_world *w);

#endif
