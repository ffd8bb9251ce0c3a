/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "sim/check.h"
#include "sim/ring_world.h"

/* What follows `old` (draft: Free-Block Ring; unmasked: InfiniBand and RoCEv2). */
static uint64_t advanced(const struct sim_ring_world *ring, const struct sim_ring_memory *memory,
                         uint64_t old)
{
    uint32_t ticket = (uint32_t)(old >> 32) + 1;
    uint64_t slot_offset = ring->unmasked ? 0 : 16u * (uint64_t)(ticket % memory->slot_count);
    return (uint64_t)ticket << 32 | slot_offset;
}

static void wrote(struct sim_world *w, const struct sim_write *write)
{
    const struct sim_ring_world *ring = sim_ring_of(w);
    const struct sim_ring_memory *memory = sim_ring_memory_at(ring, write->at);
    if (!memory || (write->at != memory->head && write->at != memory->tail))
        return;
    const char *name = write->at == memory->head ? "Head" : "Tail";
    if (write->octets != 8) {
        sim_violate(w, sim_check_counter_by_one.property, "%s writes a part of %s",
                    w->agents[write->agent].name, name);
        return;
    }
    uint64_t old = sim_ring_counter_value(write->old), new = sim_ring_counter_value(write->at);
    if (new != advanced(ring, memory, old))
        sim_violate(w, sim_check_counter_by_one.property,
                    "%s leaves %s at %#llx after %#llx: no FetchAdd of one ticket does",
                    w->agents[write->agent].name, name, (unsigned long long)new,
                    (unsigned long long)old);
}

const struct sim_checker sim_check_counter_by_one = {
    .property = "counter-by-one",
    .says = "Head and Tail advance by exactly one ticket and one slot at a time",
    .wrote = wrote,
};
