/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/check.h"
#include "sim/ring_world.h"

static void wrote(struct sim_world *w, const struct sim_write *write)
{
    const struct sim_ring_world *ring = sim_ring_of(w);
    const char *entry = sim_ring_entry_at(ring, write->at);
    if (!entry || !sim_ring_entry_is_valid(entry))
        return;
    uint32_t number = (uint32_t)(entry - ring->table) / 16;
    const struct sim_ring_entry *ghost = &ring->entries[number];
    uint32_t index = sim_ring_block_at(ring, sim_ring_offset(ring, entry));
    if (ghost->state == RING_UNBOUND || index != ghost->block ||
        sim_ring_entry_length(entry) != sim_ring_length(ring, index))
        sim_violate(w, sim_check_entry_published_whole.property,
                    "%s makes entry %u show VALID with a block or length that is not this bind's",
                    w->agents[write->agent].name, number);
}

const struct sim_checker sim_check_entry_published_whole = {
    .property = "entry-published-whole",
    .says = "an entry seen VALID shows the block and length of that very bind",
    .wrote = wrote,
};
