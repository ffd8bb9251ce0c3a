/* SPDX-License-Identifier: BSD-3-Clause */
#include "chain_hosts.h"

#include <CUnit/Basic.h>

void chain_hosts(struct sim_world *w, const char *const rnics[2],
                 const struct sim_rnic_config *config, uint32_t depth, uint32_t max_sge)
{
    for (uint32_t i = 0; i < 2; i++) {
        struct sim_rnic_limits limits = {.connections = 1,
                                         .send_depth = depth,
                                         .recv_depth = 2,
                                         .max_sge = max_sge,
                                         .reads = 2,
                                         .cqs = 1,
                                         .loops = i == 1 ? 2 : 0};
        int rnic = sim_rnic_add(w, rnics[i], config);
        CU_ASSERT_FATAL(rnic >= 0);
        CU_ASSERT_EQUAL_FATAL(sim_rnic_attach(w, i, (uint32_t)rnic, &limits), 0);
    }
    const uint32_t to = 1;
    CU_ASSERT_EQUAL_FATAL(sim_rnic_route(w, 0, &to, 1), 0);
}
