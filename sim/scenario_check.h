/* SPDX-License-Identifier: BSD-3-Clause */
/* Has a text the form of a scenario, or the one that it is to have? Included by sim/scenario*.c. */
#ifndef KBTP_SIM_SCENARIO_CHECK_H
#define KBTP_SIM_SCENARIO_CHECK_H

#include "sim/scenario_text.h"

/*
 * Is it one plain YAML mapping with the keys of its kind, or of its form? Sets the kind and the
 * marks of the text. False after a complaint.
 */
bool sim_scenario_check(struct sim_text *text);

#endif
