/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/check.h"
#include "sim/ring_world.h"

static void event(struct sim_world *w, uint32_t agent, uint32_t event, uint64_t value)
{
    if (event == RING_HANDED_OUT && sim_ring_block_at(sim_ring_of(w), value) == RING_NO_BLOCK)
        sim_violate(w, sim_check_block_exists.property,
                    value == UINT64_MAX ? "%s takes the empty mark (all ones) for a block"
                                        : "%s takes %#llx, which is no block of the pool",
                    w->agents[agent].name, (unsigned long long)value);
}

const struct sim_checker sim_check_block_exists = {
    .property = "block-exists",
    .says = "what an allocation takes is the offset of a block of the pool",
    .event = event,
};
