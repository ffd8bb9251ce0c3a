/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/check.h"
#include "sim/protocol_world.h"

static void event(struct sim_world *w, uint32_t agent, uint32_t event, uint64_t tag)
{
    const struct sim_told *told = sim_protocol_told(w);
    (void)tag;
    if (event == PROTOCOL_COMPLETED && told->open && told->place != 0)
        sim_violate(w, sim_check_requests_in_order.property,
                    "%s answers a request of %s before %u that came earlier", w->agents[agent].name,
                    w->scenario->protocol.initiators[told->initiator].name, told->place);
}

const struct sim_checker sim_check_requests_in_order = {
    .property = "requests-in-order",
    .says = "the requests of a connection are answered in the order in which they were sent",
    .event = event,
};
