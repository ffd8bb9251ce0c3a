/* SPDX-License-Identifier: BSD-3-Clause */
#include "ref/wire_names.h"
#include "sim/check.h"
#include "sim/protocol_world.h"

static void complain(struct sim_world *w, uint32_t agent, const struct sim_told *told,
                     const char *what)
{
    sim_violate(w, sim_check_effect_first.property, "%s answers %s with OK before %s",
                w->agents[agent].name, w->scenario->protocol.initiators[told->initiator].name,
                what);
}

static bool holds_data(const struct sim_world *w, const char *entry, uint32_t tag)
{
    const struct sim_protocol_world *p = sim_protocol_of(w);
    uint32_t block = sim_ring_block_at(&p->ring, sim_ring_offset(&p->ring, entry));
    return block != RING_NO_BLOCK && sim_protocol_tag(p->blocks + block * p->ring.block_size,
                                                      sim_ring_entry_length(entry)) == tag;
}

static void check_bound(struct sim_world *w, uint32_t agent, const struct sim_told *told,
                        const char *entry, const struct sim_request *request, uint32_t tag)
{
    const struct sim_header *header = told->header;
    if (!sim_ring_entry_is_valid(entry) || sim_ring_entry_generation(entry) != header->generation ||
        sim_ring_offset(sim_ring_of(w), entry) != header->block_offset ||
        sim_ring_entry_length(entry) != request->length || header->data_length != request->length)
        complain(w, agent, told, "the entry shows what was stored");
    else if (request->length != 0 && !holds_data(w, entry, tag))
        complain(w, agent, told, "the block holds what was stored");
    else if (request->seal != sim_ring_entry_is_sealed(entry))
        complain(w, agent, told, "the entry is sealed as it was asked");
}

/* The completion may wait in the send queue until a later request of the same connection has
 * changed the entry: that one's effect is seen then. */
static bool is_overtaken(const struct sim_world *w, const struct sim_told *told)
{
    const struct sim_wire_ghost *ghost = sim_protocol_of(w)->wire[told->initiator];
    for (uint32_t i = told->place + 1; i < ghost->open_count; i++)
        if (ghost->open[i].delivered && ghost->open[i].entry == told->open->entry &&
            ghost->open[i].opcode != KBTP_OP_LOAD)
            return true;
    return false;
}

/* When the completion leaves, everybody can see what was done. */
static void event(struct sim_world *w, uint32_t agent, uint32_t event, uint64_t tag)
{
    const struct sim_told *told = sim_protocol_told(w);
    if (event != PROTOCOL_COMPLETED || !told->open || told->header->status != KBTP_STATUS_OK ||
        told->open->entry == SIM_NO_ENTRY || is_overtaken(w, told))
        return;
    const struct sim_request *request = sim_protocol_request(w, (uint32_t)tag);
    const char *entry = sim_ring_of(w)->table + 16u * told->open->entry;
    if (request->op == SIM_REQUEST_ALLOC_STORE || request->op == SIM_REQUEST_STORE)
        check_bound(w, agent, told, entry, request, (uint32_t)tag);
    else if (request->op == SIM_REQUEST_FREE &&
             (sim_ring_entry_is_valid(entry) ||
              sim_ring_entry_generation(entry) != told->header->generation))
        complain(w, agent, told, "the entry is cleared");
}

const struct sim_checker sim_check_effect_first = {
    .property = "effect-first",
    .says = "a request is answered OK only when everybody can see what it did",
    .event = event,
};
