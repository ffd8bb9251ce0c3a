/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef KBTP_TESTS_SIM_CHAIN_HOSTS_H
#define KBTP_TESTS_SIM_CHAIN_HOSTS_H

#include "sim/rnic.h"

/* Gives the first two CPUs of a world an RNIC each. The second one has the chain queues, the first
 * one connects to it. */
void chain_hosts(struct sim_world *w, const char *const rnics[2],
                 const struct sim_rnic_config *config, uint32_t depth, uint32_t max_sge);

#endif
