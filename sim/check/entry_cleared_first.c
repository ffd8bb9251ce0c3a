/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/check.h"
#include "sim/ring_world.h"

/* When a freer takes a ticket, the entry of the block it frees must already be seen cleared. */
static void wrote(struct sim_world *w, const struct sim_write *write)
{
    const struct sim_ring_world *ring = sim_ring_of(w);
    if (write->at != ring->rings[0].tail)
        return;
    for (uint32_t i = 0; i < ring->entry_count; i++) {
        const struct sim_ring_entry *entry = &ring->entries[i];
        if (entry->state == RING_ENTRY_FREEING &&
            ring->ghost->blocks[entry->block].agent == write->agent &&
            sim_ring_entry_is_valid(ring->table + 16u * i))
            sim_violate(w, sim_check_entry_cleared_first.property,
                        "%s takes a ticket from Tail while entry %u, which it frees, is VALID",
                        w->agents[write->agent].name, i);
    }
}

const struct sim_checker sim_check_entry_cleared_first = {
    .property = "entry-cleared-first",
    .says = "a free takes its ticket from Tail only after its table entry is cleared",
    .wrote = wrote,
};
