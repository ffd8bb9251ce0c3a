/* SPDX-License-Identifier: BSD-3-Clause */
/* What sim/rnic.c makes for worlds and devices alike. */
#ifndef KBTP_SIM_RNIC_BUILD_H
#define KBTP_SIM_RNIC_BUILD_H

#include "sim/rnic_state.h"

#define SIM_RNIC_MAX_SGE 16u
#define SIM_RNIC_MAX_REGIONS 4095u /* windows included */

/*
 * RNICs have at most half of all steps: 12 of each end that are no pieces of memory, and as many
 * pieces as this; beyond that they offer fewer of them at a time.
 */
#define SIM_RNIC_PIECE_STEPS 384u
#define SIM_RNIC_MAX_ENDS ((SIM_MAX_STEPS / 2 - SIM_RNIC_PIECE_STEPS) / 12)

bool rnic_config_legal(const struct sim_rnic_config *config);
/* NULL: no memory. The world owns them. */
struct sim_rnic *rnic_new(struct sim_world *w, const struct sim_rnic_config *config,
                          bool immediate);
struct sim_handle *rnic_handle_new(struct sim_rnic *rnic, const struct sim_rnic_limits *limits);
void rnic_free_all(struct sim_world *w);
void rnic_host_dies(struct sim_handle *h, bool silently);

extern const struct sim_agent_ops rnic_agent_ops;
extern const struct rdma_ops rnic_agent_rdma_ops;
extern const struct rdma_chain_ops rnic_agent_chain_ops;

#endif
