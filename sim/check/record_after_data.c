/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/check.h"
#include "sim/protocol_world.h"

/* The LOAD whose record comes to this slot, and which is not over yet; 0: none. */
static uint32_t load_of(const struct sim_world *w, uint32_t initiator, uint32_t slot)
{
    const struct sim_protocol_world *p = sim_protocol_of(w);
    uint32_t count = w->scenario->protocol.initiators[initiator].program_count;
    for (uint32_t i = 0; i < count; i++) {
        const struct sim_request_ghost *ghost = &p->requests[p->first_tag[initiator] + i];
        if (ghost->slot == slot + 1 && ghost->outcomes == 0 && ghost->recorded != 0)
            return p->first_tag[initiator] + i + 1;
    }
    return 0;
}

/*
 * An octet of the record is there: so is all that was loaded. Of a record of nothing but zeros
 * nobody can tell.
 */
static void wrote(struct sim_world *w, const struct sim_write *write)
{
    const struct sim_protocol_world *p = sim_protocol_of(w);
    uint32_t slot, initiator = sim_protocol_record(w, write->at, &slot);
    if (initiator == SIM_NOBODY || write->agent == p->first_initiator + initiator)
        return;
    uint32_t tag = load_of(w, initiator, slot);
    bool zero = write->at[0] == 0 && sim_protocol_tag(write->at, write->octets) == 0;
    for (uint32_t i = 0; i < write->octets && zero; i++)
        zero = write->at[i] == 0;
    if (tag == 0 || zero)
        return;
    uint32_t length = p->requests[tag - 1].recorded - 1;
    const struct sim_request *load = sim_protocol_request(w, tag);
    if (load->op == SIM_REQUEST_LOAD && length != 0 && length <= load->length &&
        sim_protocol_tag(sim_protocol_buffer(w, tag), length) == 0)
        sim_violate(w, sim_check_record_after_data.property,
                    "%s can see the completion record of a LOAD before its data",
                    w->scenario->protocol.initiators[initiator].name);
}

const struct sim_checker sim_check_record_after_data = {
    .property = "record-after-data",
    .says = "a completion record becomes visible after the data of its LOAD",
    .wrote = wrote,
};
