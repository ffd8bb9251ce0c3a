/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/check.h"
#include "sim/protocol_world.h"

/* A Block Offset appears in a slot: whoever takes the block next may be of another trust domain. */
static void wrote(struct sim_world *w, const struct sim_write *write)
{
    const struct sim_protocol_world *p = sim_protocol_of(w);
    const char *slot = sim_ring_slot_at(&p->ring, write->at);
    if (!slot || write->at != slot + 8 || !sim_protocol_clears(w))
        return;
    uint32_t index = sim_ring_block_at(&p->ring, sim_ring_offset(&p->ring, slot));
    if (index == RING_NO_BLOCK)
        return;
    const char *block = p->blocks + index * p->ring.block_size;
    for (uint32_t i = 0; i < p->ring.block_size; i++)
        if (block[i] != 0) {
            sim_violate(w, sim_check_cleared_first.property,
                        "%s puts block %u back into the ring with data of somebody in it",
                        w->agents[write->agent].name, p->ring.first_block + index);
            return;
        }
}

const struct sim_checker sim_check_cleared_first = {
    .property = "cleared-first",
    .says = "where there are several trust domains, a block that goes back to the ring is clear",
    .wrote = wrote,
};
