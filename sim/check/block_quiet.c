/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/check.h"
#include "sim/protocol_world.h"

static void wrote(struct sim_world *w, const struct sim_write *write)
{
    static const char *const places[] = {
        [RING_IN_RING] = "is free", [RING_BOUND] = "is sealed", [RING_FREEING] = "is being freed"};
    const struct sim_protocol_world *p = sim_protocol_of(w);
    uint32_t index = sim_protocol_block(p, write->at);
    if (index == RING_NO_BLOCK)
        return;
    const struct sim_ring_block *block = &p->ring.ghost->blocks[index];
    if (block->place == RING_HELD)
        return;
    const char *entry = p->ring.table + 16u * block->entry;
    if (block->place == RING_BOUND && !(sim_ring_entry_flags(entry) & 2))
        return; /* a STORE */
    sim_violate(w, sim_check_block_quiet.property, "%s writes into block %u, which %s",
                w->agents[write->agent].name, p->ring.first_block + index, places[block->place]);
}

const struct sim_checker sim_check_block_quiet = {
    .property = "block-quiet",
    .says = "only a block that was taken, or is bound and not sealed, is written",
    .wrote = wrote,
};
