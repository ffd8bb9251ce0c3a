/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/check.h"
#include "sim/protocol_world.h"

/* At rest nothing is on its way: a block that is neither free nor bound has been lost. */
static void quiescent(struct sim_world *w)
{
    const struct sim_protocol_world *p = sim_protocol_of(w);
    for (uint32_t i = 0; i < p->ring.block_count; i++) {
        const struct sim_ring_block *block = &p->ring.ghost->blocks[i];
        if (block->place != RING_IN_RING && block->place != RING_BOUND)
            sim_violate(w, sim_check_nothing_lost.property,
                        "nothing can change any more, but block %u is %s", p->ring.first_block + i,
                        block->place == RING_HELD ? "taken and not bound"
                                                  : "freed and not in the ring");
    }
}

const struct sim_checker sim_check_nothing_lost = {
    .property = "nothing-lost",
    .says = "whenever nothing can change any more, every block is in the ring or bound",
    .quiescent = quiescent,
};
