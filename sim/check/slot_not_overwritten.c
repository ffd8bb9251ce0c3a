/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "sim/check.h"
#include "sim/ring_world.h"

static void wrote(struct sim_world *w, const struct sim_write *write)
{
    static const unsigned char consumed[8] = {255, 255, 255, 255, 255, 255, 255, 255};
    const struct sim_ring_world *ring = sim_ring_of(w);
    const char *slot = sim_ring_slot_at(ring, write->at);
    if (!slot || write->octets != 8 || memcmp(write->old, consumed, 8) == 0)
        return;
    uint32_t index = sim_ring_block_at(ring, sim_ring_offset(ring, slot));
    if (index != RING_NO_BLOCK)
        sim_violate(w, sim_check_slot_not_overwritten.property,
                    "%s writes block %u into slot %u, whose block was not consumed",
                    w->agents[write->agent].name, ring->first_block + index,
                    (uint32_t)(slot - sim_ring_memory_at(ring, slot)->slots) / 16);
}

const struct sim_checker sim_check_slot_not_overwritten = {
    .property = "slot-not-overwritten",
    .says = "a slot is written only after its previous block was consumed",
    .wrote = wrote,
};
