/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/check.h"
#include "sim/ring_world.h"

static void wrote(struct sim_world *w, const struct sim_write *write)
{
    const struct sim_ring_world *ring = sim_ring_of(w);
    const char *entry = sim_ring_entry_at(ring, write->at);
    if (!entry || write->at != entry)
        return;
    uint16_t old = sim_ring_entry_generation(write->old), new = sim_ring_entry_generation(entry);
    bool was_valid = sim_ring_entry_is_valid(write->old);
    bool is_valid = sim_ring_entry_is_valid(entry);
    uint16_t next = old == UINT16_MAX ? 1 : (uint16_t)(old + 1);
    uint16_t wanted = was_valid != is_valid ? next : old;
    if (write->octets != 4 || new == 0 || new != wanted)
        sim_violate(w, sim_check_generation_steps.property,
                    "%s gives entry %u Generation %u after %u, VALID %d after %d",
                    w->agents[write->agent].name, (uint32_t)(entry - ring->table) / 16, new, old,
                    is_valid, was_valid);
}

const struct sim_checker sim_check_generation_steps = {
    .property = "generation-steps",
    .says = "each bind and unbind moves the Generation on by one, never to zero, with the flags",
    .wrote = wrote,
};
