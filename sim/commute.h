/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two enabled steps whose footprints do not meet must commute: a;b and b;a end in the same state
 * and neither disables the other. This finds state that is not canonical and footprints that lie.
 */
#ifndef KBTP_SIM_COMMUTE_H
#define KBTP_SIM_COMMUTE_H

#include "sim/world.h"

/*
 * Tries every pair of enabled steps of the present state and leaves the state as it was. Adds the
 * pairs that commuted to *pairs. False with the violation `steps-commute` set when a pair does not.
 */
bool sim_commute_check(struct sim_world *w, uint64_t *pairs);

#endif
