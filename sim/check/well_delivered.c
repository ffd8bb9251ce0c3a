/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/check.h"
#include "sim/rnic.h"

/* Credits are kept, and nobody names memory that is not there: so every message finds its place. */
static void message(struct sim_world *w, const struct sim_message *message)
{
    if (message->phase == SIM_DELIVERED && message->status != RDMA_OK)
        sim_violate(w, sim_check_well_delivered.property, "a %s of %s to %s ends with %s",
                    sim_rdma_op_name(message->op), w->agents[message->from].name,
                    w->agents[message->to].name, sim_rdma_status_name(message->status));
}

const struct sim_checker sim_check_well_delivered = {
    .property = "well-delivered",
    .says = "every message finds a receive or the memory it is for",
    .message = message,
};
