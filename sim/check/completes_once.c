/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/check.h"
#include "sim/protocol_world.h"

static void event(struct sim_world *w, uint32_t agent, uint32_t event, uint64_t tag)
{
    const struct sim_protocol_world *p = sim_protocol_of(w);
    const struct sim_told *told = sim_protocol_told(w);
    if (event == PROTOCOL_COMPLETED && !told->open)
        sim_violate(w, sim_check_completes_once.property,
                    "%s answers Request ID %#llx of %s, which is not open", w->agents[agent].name,
                    (unsigned long long)told->header->request_id,
                    w->scenario->protocol.initiators[told->initiator].name);
    if (event == PROTOCOL_OUTCOME && p->requests[tag - 1].outcomes != 0)
        sim_violate(w, sim_check_completes_once.property,
                    "%s is told the outcome of a request for the second time",
                    w->agents[agent].name);
}

const struct sim_checker sim_check_completes_once = {
    .property = "completes-once",
    .says = "every request is answered, and its initiator told, exactly once",
    .event = event,
};
