/* SPDX-License-Identifier: BSD-3-Clause */
/* The requests of initiators, in scenarios of kind protocol. Included by sim/scenario*.c only. */
#ifndef KBTP_SIM_SCENARIO_REQUEST_H
#define KBTP_SIM_SCENARIO_REQUEST_H

#include "sim/scenario_schema.h"

/*
 * Reads request `index` of initiator `initiator`, whose names and numbers of requests are all read.
 * False after a complaint.
 */
bool sim_scenario_read_request(const struct sim_text *text, const struct sim_raw_request *raw,
                               struct sim_scenario *s, uint32_t initiator, uint32_t index);

/* Can every request begin when those it waits for complete? Complains of a circle. */
bool sim_scenario_check_order(const struct sim_text *text, const struct sim_protocol_part *p);

#endif
