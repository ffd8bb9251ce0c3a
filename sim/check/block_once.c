/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/check.h"
#include "sim/ring_world.h"

static const char *const places[] = {[RING_IN_RING] = "in the ring",
                                     [RING_HELD] = "held by an allocation",
                                     [RING_BOUND] = "bound",
                                     [RING_FREEING] = "being freed"};

/* `index` must be in `place`; what happens to it otherwise is told by `what`. */
static void expect(struct sim_world *w, uint32_t index, enum sim_ring_place place, uint32_t agent,
                   const char *what)
{
    const struct sim_ring_world *ring = sim_ring_of(w);
    const struct sim_ring_block *block = &ring->ghost->blocks[index];
    if (block->place != place)
        sim_violate(w, sim_check_block_once.property, "%s %s block %u, which is %s (%s)",
                    w->agents[agent].name, what, ring->first_block + index, places[block->place],
                    w->agents[block->agent].name);
}

static void event(struct sim_world *w, uint32_t agent, uint32_t event, uint64_t value)
{
    uint32_t index = sim_ring_block_at(sim_ring_of(w), value);
    if (event == RING_HANDED_OUT && index != RING_NO_BLOCK)
        expect(w, index, RING_IN_RING, agent, "is handed");
}

/* A block that appears in a slot must come from the free that holds it, and be bound nowhere. */
static void slot_wrote(struct sim_world *w, const char *slot, const struct sim_write *write)
{
    const struct sim_ring_world *ring = sim_ring_of(w);
    uint32_t index = sim_ring_block_at(ring, sim_ring_offset(ring, slot));
    if (index == RING_NO_BLOCK)
        return;
    bool unbound = ring->held_may_return && ring->ghost->blocks[index].place == RING_HELD;
    expect(w, index, unbound ? RING_HELD : RING_FREEING, write->agent, "puts into the ring");
    for (uint32_t i = 0; i < ring->entry_count; i++) {
        const char *entry = ring->table + 16u * i;
        if (sim_ring_entry_is_valid(entry) &&
            sim_ring_block_at(ring, sim_ring_offset(ring, entry)) == index)
            sim_violate(w, sim_check_block_once.property,
                        "block %u is in the ring while entry %u is VALID and names it",
                        ring->first_block + index, i);
    }
}

static void wrote(struct sim_world *w, const struct sim_write *write)
{
    const char *slot = sim_ring_slot_at(sim_ring_of(w), write->at);
    if (slot && write->octets == 8)
        slot_wrote(w, slot, write);
}

const struct sim_checker sim_check_block_once = {
    .property = "block-once",
    .says = "every block is in exactly one place: ring, allocation, bound entry or free",
    .event = event,
    .wrote = wrote,
};
