/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/check.h"
#include "sim/ring_world.h"

static const char *const places[] = {[RING_IN_RING] = "free",
                                     [RING_HELD] = "taken",
                                     [RING_BOUND] = "bound already",
                                     [RING_FREEING] = "being freed"};

static void wrote(struct sim_world *w, const struct sim_write *write)
{
    const struct sim_ring_world *ring = sim_ring_of(w);
    const char *entry = sim_ring_entry_at(ring, write->at);
    if (!entry || write->at != entry || write->octets != 4)
        return;
    bool was = sim_ring_entry_is_valid(write->old), is = sim_ring_entry_is_valid(entry);
    uint32_t index = sim_ring_block_at(ring, sim_ring_offset(ring, entry));
    if (!is || was || index == RING_NO_BLOCK || ring->ghost->blocks[index].place == RING_HELD)
        return;
    sim_violate(w, sim_check_bind_taken.property, "%s binds block %u, which is %s",
                w->agents[write->agent].name, ring->first_block + index,
                places[ring->ghost->blocks[index].place]);
}

const struct sim_checker sim_check_bind_taken = {
    .property = "bind-taken",
    .says = "only a block that an allocation took from the ring is bound, once",
    .wrote = wrote,
};
