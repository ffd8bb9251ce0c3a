/* SPDX-License-Identifier: BSD-3-Clause */
/* The cost model that a scenario or an option names. */
#ifndef KBTP_CLI_NIC_H
#define KBTP_CLI_NIC_H

#include "sim/timed/costs.h"

#define NIC_DEFAULT "connectx5"

/*
 * From `file`, or when that is NULL what a scenario calls `name`: a path from the scenario's
 * folder, or the name of a model there, in nic/ or ../nic/, or among those that are installed or
 * lie in the sources of this build. NULL after a complaint. Free with sim_cost_model_free().
 */
struct sim_cost_model *nic_read(const char *file, const char *scenario, const char *name);

#endif
