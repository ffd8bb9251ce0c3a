/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/check.h"
#include "sim/protocol_world.h"

static void event(struct sim_world *w, uint32_t agent, uint32_t event, uint64_t tag)
{
    const struct sim_told *told = sim_protocol_told(w);
    const struct sim_request *request = sim_protocol_request(w, (uint32_t)tag);
    if (event != PROTOCOL_OUTCOME || request->expect == 0)
        return;
    uint32_t status = told->error != 0 ? SIM_STATUS_LOST : told->status;
    if (!(request->expect >> status & 1))
        sim_violate(w, sim_check_expected_status.property,
                    "%s is told status %u (15: lost), which its program does not expect",
                    w->agents[agent].name, status);
}

const struct sim_checker sim_check_expected_status = {
    .property = "expected-status",
    .says = "a request ends with one of the statuses that the scenario expects",
    .event = event,
};
