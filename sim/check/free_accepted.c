/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/check.h"
#include "sim/ring_world.h"

static void event(struct sim_world *w, uint32_t agent, uint32_t event, uint64_t value)
{
    if (event == RING_FREE_REFUSED)
        sim_violate(w, sim_check_free_accepted.property,
                    "%s is refused the free of block %u, which was bound", w->agents[agent].name,
                    sim_ring_of(w)->first_block + (uint32_t)value);
}

const struct sim_checker sim_check_free_accepted = {
    .property = "free-accepted",
    .says = "the free of a bound block is never refused",
    .event = event,
};
