/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/check.h"

/* Judged by the initiators' program: their library takes every request that it asks for. */
const struct sim_checker sim_check_initiator_accepts = {
    .property = "initiator-accepts",
    .says = "the initiator library takes what it says it can take",
};
