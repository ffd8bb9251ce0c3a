/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/check.h"
#include "sim/protocol_world.h"

static void complain(struct sim_world *w, const struct sim_write *write, const char *entry,
                     const char *what)
{
    uint32_t number = (uint32_t)(entry - sim_ring_of(w)->table) / 16;
    sim_violate(w, sim_check_entry_has_data.property, "%s makes entry %u show VALID %s",
                w->agents[write->agent].name, number, what);
}

/* Whoever sees the entry VALID finds in the block the whole data of one request for this handle. */
static void wrote(struct sim_world *w, const struct sim_write *write)
{
    const struct sim_protocol_world *p = sim_protocol_of(w);
    const char *entry = sim_ring_entry_at(&p->ring, write->at);
    if (!entry || !sim_ring_entry_is_valid(entry))
        return;
    uint32_t number = (uint32_t)(entry - p->ring.table) / 16;
    uint32_t block = sim_ring_block_at(&p->ring, sim_ring_offset(&p->ring, entry));
    uint32_t length = sim_ring_entry_length(entry);
    if (block == RING_NO_BLOCK || length > p->ring.block_size) {
        complain(w, write, entry, "with a block or length that cannot be");
        return;
    }
    if (length == 0)
        return;
    uint32_t tag = sim_protocol_tag(p->blocks + block * p->ring.block_size, length);
    const struct sim_request *request = sim_protocol_request(w, tag);
    if (!request || request->op == SIM_REQUEST_LOAD || request->length != length ||
        request->owner * p->handles + request->handle != number)
        complain(w, write, entry, "while its data is not in the block");
}

const struct sim_checker sim_check_entry_has_data = {
    .property = "entry-has-data",
    .says = "an entry seen VALID names a block with the whole data of one store to that handle",
    .wrote = wrote,
};
