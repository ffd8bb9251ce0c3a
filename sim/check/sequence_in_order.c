/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/check.h"
#include "sim/ring_world.h"

static void wrote(struct sim_world *w, const struct sim_write *write)
{
    const struct sim_ring_world *ring = sim_ring_of(w);
    const char *slot = sim_ring_slot_at(ring, write->at);
    if (!slot || write->at != slot)
        return;
    const struct sim_ring_memory *memory = sim_ring_memory_at(ring, slot);
    uint32_t old = sim_ring_sequence(write->old), new = sim_ring_sequence(slot);
    if (write->octets != 4 || new != old + memory->slot_count)
        sim_violate(w, sim_check_sequence_in_order.property,
                    "%s gives slot %u Sequence %u after %u: ticket %u is passed over",
                    w->agents[write->agent].name, (uint32_t)(slot - memory->slots) / 16, new, old,
                    old + memory->slot_count);
}

const struct sim_checker sim_check_sequence_in_order = {
    .property = "sequence-in-order",
    .says = "a slot serves its tickets one lap after the other, none is passed over",
    .wrote = wrote,
};
