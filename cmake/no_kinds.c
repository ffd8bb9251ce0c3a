/* SPDX-License-Identifier: BSD-3-Clause */
/* libkbtp-sim has no kinds of worlds: a device is one without steps, which sim_world_new() does not
 * make. */
#include "sim/kind.h"

const struct sim_kind sim_kinds[1];
const uint32_t sim_kinds_count;
