/* SPDX-License-Identifier: BSD-3-Clause */
#include "ref/wire_names.h"
#include "sim/check.h"
#include "sim/protocol_world.h"

/* Has the owner of the entry asked for this change, or stayed away for too long? */
static bool is_asked_for(const struct sim_world *w, uint32_t number, uint8_t opcode)
{
    const struct sim_protocol_world *p = sim_protocol_of(w);
    uint32_t owner = sim_protocol_owner(p, number);
    if ((p->wire[owner]->releasing || p->wire[owner]->expired) && opcode == KBTP_OP_FREE)
        return true;
    for (uint32_t i = 0; i < p->initiators; i++)
        for (uint32_t j = 0; j < p->wire[i]->open_count; j++)
            if (sim_protocol_session(w, i) == owner && p->wire[i]->open[j].entry == number &&
                (p->wire[i]->open[j].opcode == opcode ||
                 (opcode == KBTP_OP_ALLOC_STORE && p->wire[i]->open[j].opcode == KBTP_OP_BIND)))
                return true;
    return false;
}

static void wrote(struct sim_world *w, const struct sim_write *write)
{
    const struct sim_protocol_world *p = sim_protocol_of(w);
    const char *entry = sim_ring_entry_at(&p->ring, write->at);
    if (!entry || write->at != entry)
        return;
    uint32_t number = (uint32_t)(entry - p->ring.table) / 16;
    bool was = sim_ring_entry_is_valid(write->old), is = sim_ring_entry_is_valid(entry);
    uint8_t opcode = is && !was ? KBTP_OP_ALLOC_STORE : was && !is ? KBTP_OP_FREE : KBTP_OP_STORE;
    if (!is_asked_for(w, number, opcode))
        sim_violate(w, sim_check_own_handles.property,
                    "%s changes entry %u, of %s, who has not asked for it",
                    w->agents[write->agent].name, number,
                    w->scenario->protocol.initiators[sim_protocol_owner(p, number)].name);
}

static void event(struct sim_world *w, uint32_t agent, uint32_t event, uint64_t tag)
{
    const struct sim_protocol_world *p = sim_protocol_of(w);
    const struct sim_told *told = sim_protocol_told(w);
    (void)tag;
    if (event != PROTOCOL_COMPLETED || !told->open || told->header->status != KBTP_STATUS_OK)
        return;
    bool own = told->open->entry != SIM_NO_ENTRY &&
               (told->open->opcode == KBTP_OP_LOAD || sim_protocol_owner(p, told->open->entry) ==
                                                          sim_protocol_session(w, told->initiator));
    if (!own)
        sim_violate(w, sim_check_own_handles.property,
                    "%s answers %s with OK for a handle outside its range", w->agents[agent].name,
                    w->scenario->protocol.initiators[told->initiator].name);
}

const struct sim_checker sim_check_own_handles = {
    .property = "own-handles",
    .says = "an entry changes only at the request of the initiator in whose range its handle is",
    .wrote = wrote,
    .event = event,
};
