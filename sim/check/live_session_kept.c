/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/check.h"
#include "sim/protocol_world.h"
#include "sim/rnic.h"

/*
 * I-16: a HELLO by itself ends no live session. It ends with its connection: when that was lost, or
 * its initiator is gone, or has said GOODBYE; where answers may be late, also then.
 */
static void event(struct sim_world *w, uint32_t agent, uint32_t event, uint64_t session)
{
    if (event != PROTOCOL_SESSION_ENDS || w->scenario->protocol.probes == SIM_PROBES_LATE)
        return;
    const struct sim_wire_ghost *ghost = sim_protocol_of(w)->wire[session];
    struct sim_link_info info = sim_rnic_link(w, ghost->link);
    if (info.established && !info.ending && !ghost->leaving)
        sim_violate(w, sim_check_live_session_kept.property,
                    "%s ends the session of %s, whose connection lives", w->agents[agent].name,
                    w->scenario->protocol.initiators[session].name);
}

const struct sim_checker sim_check_live_session_kept = {
    .property = "live-session-kept",
    .says = "a session ends only when its connection is lost, or its initiator is gone or leaves",
    .event = event,
};
