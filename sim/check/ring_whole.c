/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "sim/check.h"
#include "sim/ring_world.h"

static void lost(struct sim_world *w, uint32_t slot, const char *what)
{
    sim_violate(w, sim_check_ring_whole.property,
                "everything is freed, yet slot %u does not hold %s", slot, what);
}

/* All is freed: the F tickets from Head on have a block each, no block twice, the rest is empty. */
static void quiescent(struct sim_world *w)
{
    const struct sim_ring_world *ring = sim_ring_of(w);
    const struct sim_ring_memory *memory = &ring->rings[0]; /* these worlds have one */
    if (ring->ghost->crashed)
        return; /* what a dead allocation held is lost: I-04 */
    uint32_t head = (uint32_t)(sim_ring_counter_value(memory->head) >> 32);
    uint32_t tail = (uint32_t)(sim_ring_counter_value(memory->tail) >> 32);
    if (tail - head != ring->block_count)
        sim_violate(w, sim_check_ring_whole.property,
                    "everything is freed, yet Tail is %u tickets ahead of Head, not %u",
                    tail - head, ring->block_count);
    bool seen[SIM_RING_MAX_BLOCKS] = {false};
    for (uint32_t i = 0; i < memory->slot_count; i++) {
        uint32_t ticket = head + i, slot_number = ticket % memory->slot_count;
        const char *slot = memory->slots + 16u * slot_number;
        uint64_t offset = sim_ring_offset(ring, slot);
        if (i >= ring->block_count) {
            if (sim_ring_sequence(slot) != ticket - memory->slot_count || offset != UINT64_MAX)
                lost(w, slot_number, "the empty mark");
            continue;
        }
        uint32_t index = sim_ring_block_at(ring, offset);
        if (sim_ring_sequence(slot) != ticket || index == RING_NO_BLOCK || seen[index])
            lost(w, slot_number, "a block of its own for the next ticket");
        else
            seen[index] = true;
    }
}

const struct sim_checker sim_check_ring_whole = {
    .property = "ring-whole",
    .says = "when everything is freed, every block is in the ring once, in ticket order",
    .quiescent = quiescent,
};
