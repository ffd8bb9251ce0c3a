/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "sim/check.h"
#include "sim/cpu.h"
#include "sim/protocol_world.h"

#define MOST_WAITING 4u /* stores to one slot in one store buffer */

/*
 * Has the writer taken the block, and only its mark in the slot is not visible yet? Relaxed memory
 * lets the data overtake the mark (and the writer's own free, whose slot it took at once). That
 * harms nobody: until the mark is visible the slot, and with it the ticket, stay the writer's.
 */
static bool is_taken_by(const struct sim_world *w, uint32_t agent, uint32_t block)
{
    const struct sim_ring_world *ring = sim_ring_of(w);
    const struct sim_ring_memory *memory = sim_ring_of_block(ring, block);
    for (uint32_t i = 0; i < memory->slot_count; i++) {
        char slot[16] = {0};
        uint64_t waiting[MOST_WAITING];
        const char *at = memory->slots + 16u * i + 8;
        uint32_t count = sim_cpu_waiting(&w->agents[agent], at, waiting, MOST_WAITING);
        memcpy(slot + 8, at, 8);
        for (uint32_t j = 0; j < count; j++) {
            if (waiting[j] == UINT64_MAX &&
                sim_ring_block_at(ring, sim_ring_offset(ring, slot)) == block)
                return true;
            memcpy(slot + 8, &waiting[j], 8);
        }
    }
    return false;
}

/* Then the initiator whose ticket it is may write the block (draft: Direct Modes). */
static bool is_in_slot_of_taken_ticket(const struct sim_ring_world *ring, uint32_t block)
{
    const struct sim_ring_memory *memory = sim_ring_of_block(ring, block);
    uint32_t head = (uint32_t)(sim_ring_counter_value(memory->head) >> 32);
    for (uint32_t i = 0; memory->owner && i < memory->slot_count; i++) {
        const char *slot = memory->slots + 16u * i;
        if (sim_ring_block_at(ring, sim_ring_offset(ring, slot)) == block)
            return head - sim_ring_sequence(slot) - 1 <= INT32_MAX;
    }
    return false;
}

static bool is_zero(const struct sim_write *write)
{
    for (uint32_t i = 0; i < write->octets; i++)
        if (write->at[i] != 0)
            return false;
    return true;
}

static void wrote(struct sim_world *w, const struct sim_write *write)
{
    static const char *const places[] = {
        [RING_IN_RING] = "is free", [RING_BOUND] = "is sealed", [RING_FREEING] = "is being freed"};
    const struct sim_protocol_world *p = sim_protocol_of(w);
    uint32_t index = sim_protocol_block(p, write->at);
    if (index == RING_NO_BLOCK)
        return;
    const struct sim_ring_block *block = &p->ring.ghost->blocks[index];
    if (w->agents[write->agent].rnic && block->place != RING_HELD) {
        if (!is_in_slot_of_taken_ticket(&p->ring, index))
            sim_violate(w, sim_check_block_quiet.property,
                        "an RDMA Write reaches block %u, which %s", p->ring.first_block + index,
                        block->place == RING_IN_RING ? "nobody has taken" : "is not being stored");
        return;
    }
    if (block->place == RING_HELD || is_taken_by(w, write->agent, index))
        return;
    if (block->place == RING_FREEING && sim_protocol_clears(w) && is_zero(write))
        return;
    const char *entry = p->ring.table + 16u * block->entry;
    if (block->place == RING_BOUND && !sim_ring_entry_is_sealed(entry))
        return; /* a STORE */
    sim_violate(w, sim_check_block_quiet.property, "%s writes into block %u, which %s",
                w->agents[write->agent].name, p->ring.first_block + index, places[block->place]);
}

const struct sim_checker sim_check_block_quiet = {
    .property = "block-quiet",
    .says = "only a block that was taken, or is bound and not sealed, is written",
    .wrote = wrote,
};
