/* SPDX-License-Identifier: BSD-3-Clause */
/* Has a text the form of a scenario? Included by sim/scenario*.c only. */
#ifndef KBTP_SIM_SCENARIO_CHECK_H
#define KBTP_SIM_SCENARIO_CHECK_H

#include "sim/scenario_text.h"

/*
 * Is it one plain YAML mapping with the keys of its kind? Sets the kind and the marks of the text.
 * False after a complaint.
 */
bool sim_scenario_check(struct sim_text *text);

#endif
