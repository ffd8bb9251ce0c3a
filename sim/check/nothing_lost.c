/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/check.h"
#include "sim/protocol_world.h"

/* At rest nothing is on its way: a block that is neither free nor bound has been lost. */

/* Direct allocations that have no outcome yet. */
static uint32_t under_way(const struct sim_world *w, uint32_t initiator)
{
    const struct sim_protocol_world *p = sim_protocol_of(w);
    const struct sim_initiator *s = &w->scenario->protocol.initiators[initiator];
    uint32_t count = 0;
    for (uint32_t i = 0; i < s->program_count; i++)
        count += s->program[i].direct && s->program[i].op == SIM_REQUEST_ALLOC_STORE &&
                 p->requests[p->first_tag[initiator] + i].outcomes == 0;
    return count;
}

static void check_tickets(struct sim_world *w, uint32_t initiator)
{
    uint32_t oldest;
    bool parted = sim_protocol_is_parted(w, initiator, &oldest);
    uint32_t lost = parted ? sim_protocol_tickets_before(w, initiator, oldest).with_block
                           : sim_protocol_tickets(w, initiator).with_block;
    if (!parted && (lost <= under_way(w, initiator) || sim_protocol_may_time_out(w, initiator)))
        return;
    if (lost != 0)
        sim_violate(w, sim_check_nothing_lost.property,
                    "nothing can change any more, but %u block%s in %s's ring %s there for tickets "
                    "that nobody has",
                    lost, lost == 1 ? "" : "s", w->scenario->protocol.initiators[initiator].name,
                    lost == 1 ? "is" : "are");
}

/* All that is in a ring can be had: no ticket of the past has it. */
static void check_shared(struct sim_world *w)
{
    const struct sim_ring_world *ring = sim_ring_of(w);
    const struct sim_ring_memory *memory = &ring->rings[0];
    uint32_t there = (uint32_t)(sim_ring_counter_value(memory->tail) >> 32) -
                     (uint32_t)(sim_ring_counter_value(memory->head) >> 32);
    uint32_t free = 0;
    for (uint32_t i = 0; i < memory->block_count; i++)
        free += ring->ghost->blocks[i].place == RING_IN_RING;
    if (there != free)
        sim_violate(w, sim_check_nothing_lost.property,
                    "nothing can change any more, and %u block%s in the ring, but Tail is %d "
                    "tickets ahead of Head",
                    free, free == 1 ? " is" : "s are", (int)there);
}

/* A free waits for a slot of the block's own ring, and the ticket that has it may be abandoned some
 * time: then it is written. */
static bool may_be_written(const struct sim_world *w, uint32_t block)
{
    for (uint32_t i = 0; i < sim_protocol_of(w)->initiators; i++)
        if (sim_protocol_has_in_partition(w, i, block))
            return sim_protocol_may_time_out(w, i) && sim_protocol_tickets(w, i).with_block != 0;
    return false;
}

static void quiescent(struct sim_world *w)
{
    const struct sim_protocol_world *p = sim_protocol_of(w);
    for (uint32_t i = 0; i < p->initiators; i++)
        check_tickets(w, i);
    check_shared(w);
    for (uint32_t i = 0; i < p->ring.block_count; i++) {
        const struct sim_ring_block *block = &p->ring.ghost->blocks[i];
        if (block->place == RING_FREEING && may_be_written(w, i))
            continue;
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
