/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/check.h"
#include "sim/protocol_world.h"

/* The completion takes back the STag that its request has put at risk, and no other. */
static void event(struct sim_world *w, uint32_t agent, uint32_t event, uint64_t tag)
{
    const struct sim_told *told = sim_protocol_told(w);
    (void)tag;
    if (event != PROTOCOL_COMPLETED || !told->open || told->invalidates == told->open->invalidate)
        return;
    sim_violate(w, sim_check_stag_revoked.property,
                "%s answers %s and invalidates STag %#x, not %#x (0: none)", w->agents[agent].name,
                w->scenario->protocol.initiators[told->initiator].name, told->invalidates,
                told->open->invalidate);
}

const struct sim_checker sim_check_stag_revoked = {
    .property = "stag-revoked",
    .says = "the completion of a request with INVALIDATE invalidates its STag, and none else does",
    .event = event,
};
