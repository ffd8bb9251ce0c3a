/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/check.h"
#include "sim/protocol_world.h"
#include "sim/rnic.h"

/* An RDMA Write into a partition after its STag was invalidated (I-17). */
static bool is_late_write(const struct sim_world *w, const struct sim_message *message)
{
    uint32_t initiator = sim_protocol_initiator(w, message->from);
    return message->op == RDMA_WRITE && message->status == RDMA_REMOTE_ACCESS &&
           initiator != SIM_NOBODY && w->scenario->protocol.ticket_timeout;
}

/* Credits are kept, and nobody names memory that is not there: so every message finds its place. */
static void message(struct sim_world *w, const struct sim_message *message)
{
    if (message->phase == SIM_DELIVERED && message->status != RDMA_OK && !is_late_write(w, message))
        sim_violate(w, sim_check_well_delivered.property, "a %s of %s to %s ends with %s",
                    sim_rdma_op_name(message->op), w->agents[message->from].name,
                    w->agents[message->to].name, sim_rdma_status_name(message->status));
}

const struct sim_checker sim_check_well_delivered = {
    .property = "well-delivered",
    .says = "every message finds a receive or the memory it is for",
    .message = message,
};
