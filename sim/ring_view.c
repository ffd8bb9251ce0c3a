/* SPDX-License-Identifier: BSD-3-Clause */
/* A ring world's memory, read in the draft's formats and put in words. */
#include <stdio.h>
#include <string.h>

#include "ref/table.h"
#include "sim/kind.h"
#include "sim/ring_world.h"

/* ---- memory in the draft's formats ------------------------------------------------------- */

static uint64_t big_endian(const char *at, uint32_t octets)
{
    uint64_t value = 0;
    for (uint32_t i = 0; i < octets; i++)
        value = value << 8 | (unsigned char)at[i];
    return value;
}

static uint64_t little_endian(const char *at, uint32_t octets)
{
    uint64_t value = 0;
    for (uint32_t i = octets; i-- > 0;)
        value = value << 8 | (unsigned char)at[i];
    return value;
}

uint32_t sim_ring_sequence(const char *slot)
{
    return (uint32_t)big_endian(slot, 4);
}

uint64_t sim_ring_offset(const struct sim_ring_world *ring, const char *slot_or_entry)
{
    const char *at = slot_or_entry + 8;
    return ring->addr_le ? little_endian(at, 8) : big_endian(at, 8);
}

uint16_t sim_ring_entry_flags(const char *entry)
{
    return (uint16_t)big_endian(entry, 2);
}

bool sim_ring_entry_is_valid(const char *entry)
{
    return (sim_ring_entry_flags(entry) & KBTP_ENTRY_VALID) != 0;
}

bool sim_ring_entry_is_sealed(const char *entry)
{
    return (sim_ring_entry_flags(entry) & KBTP_ENTRY_SEALED) != 0;
}

uint16_t sim_ring_entry_generation(const char *entry)
{
    return (uint16_t)big_endian(entry + 2, 2);
}

uint32_t sim_ring_entry_length(const char *entry)
{
    return (uint32_t)big_endian(entry + 4, 4);
}

uint64_t sim_ring_counter_value(const char *counter)
{
    uint64_t value;
    memcpy(&value, counter, sizeof value);
    return value;
}

uint64_t sim_ring_offset_of(const struct sim_ring_world *ring, uint32_t index)
{
    return (ring->first_block + (uint64_t)index) * ring->block_size;
}

uint32_t sim_ring_block_at(const struct sim_ring_world *ring, uint64_t block_offset)
{
    uint64_t number = block_offset / ring->block_size;
    if (block_offset % ring->block_size != 0 || number < ring->first_block ||
        number - ring->first_block >= ring->block_count)
        return RING_NO_BLOCK;
    return (uint32_t)(number - ring->first_block);
}

uint32_t sim_ring_length(const struct sim_ring_world *ring, uint32_t index)
{
    (void)ring;
    return 1000 + index;
}

static const char *element_at(const char *base, uint32_t count, const char *at)
{
    if (!base || at < base || at >= base + 16u * (size_t)count)
        return NULL;
    return at - (at - base) % 16;
}

const char *sim_ring_slot_at(const struct sim_ring_world *ring, const char *at)
{
    const char *slot = NULL;
    for (uint32_t i = 0; i < ring->rings_count && !slot; i++)
        slot = element_at(ring->rings[i].slots, ring->rings[i].slot_count, at);
    return slot;
}

const struct sim_ring_memory *sim_ring_memory_at(const struct sim_ring_world *ring, const char *at)
{
    for (uint32_t i = 0; i < ring->rings_count; i++) {
        const struct sim_ring_memory *it = &ring->rings[i];
        if (at == it->head || at == it->tail || element_at(it->slots, it->slot_count, at))
            return it;
    }
    return NULL;
}

const struct sim_ring_memory *sim_ring_of_block(const struct sim_ring_world *ring, uint32_t index)
{
    uint32_t i = 0;
    while (index - ring->rings[i].first_block >= ring->rings[i].block_count)
        i++;
    return &ring->rings[i];
}

const char *sim_ring_entry_at(const struct sim_ring_world *ring, const char *at)
{
    return element_at(ring->table, ring->entry_count, at);
}

/* ---- words ------------------------------------------------------------------------------- */

void sim_ring_describe_offset(const struct sim_ring_world *ring, uint64_t offset, char *out,
                              size_t size)
{
    uint32_t index = sim_ring_block_at(ring, offset);
    if (offset == UINT64_MAX)
        snprintf(out, size, "empty");
    else if (index == RING_NO_BLOCK)
        snprintf(out, size, "%#llx", (unsigned long long)offset);
    else
        snprintf(out, size, "block %u", ring->first_block + index);
}

void sim_ring_describe_slot(const struct sim_world *w, const char *slot, char *out, size_t size)
{
    const struct sim_ring_world *ring = sim_ring_of(w);
    char block[32];
    sim_ring_describe_offset(ring, sim_ring_offset(ring, slot), block, sizeof block);
    snprintf(out, size, "%u: %s", sim_ring_sequence(slot),
             strncmp(block, "block ", 6) == 0 ? block + 6 : block);
}

void sim_ring_describe_entry(const struct sim_world *w, uint32_t number, char *out, size_t size)
{
    const struct sim_ring_world *ring = sim_ring_of(w);
    const char *entry = ring->table + 16u * number;
    snprintf(out, size, "gen %u%s", sim_ring_entry_generation(entry),
             sim_ring_entry_is_valid(entry) ? " VALID" : "");
}

void sim_ring_describe_place(const struct sim_world *w, const struct sim_access *access,
                             char *place, char *value, size_t size)
{
    const struct sim_ring_world *ring = sim_ring_of(w);
    const char *at = access->at, *element;
    char image[16] = {0};
    snprintf(value, size, "%#llx", (unsigned long long)access->value);
    const struct sim_ring_memory *memory = sim_ring_memory_at(ring, at);
    int of = memory && memory->owner ? snprintf(place, size, "%s's ", memory->owner) : 0;
    char *rest = place + of;
    size_t room = size - (size_t)of;
    if (memory && (at == memory->head || at == memory->tail)) {
        snprintf(rest, room, at == memory->head ? "Head" : "Tail");
        snprintf(value, size, "ticket %u", (uint32_t)(access->value >> 32));
        return;
    }
    bool is_slot = memory && (element = sim_ring_slot_at(ring, at)) != NULL;
    if (!is_slot)
        element = sim_ring_entry_at(ring, at);
    uint32_t field = (uint32_t)(at - element);
    uint32_t number = (uint32_t)(element - (is_slot ? memory->slots : ring->table)) / 16;
    memcpy(image + field, &access->value, access->octets);
    static const char *const slot_fields[] = {"Sequence", "Reserved", "Block Offset",
                                              "Block Offset (2nd half)"};
    static const char *const entry_fields[] = {"Flags and Generation", "Data Length",
                                               "Block Offset", "Block Offset (2nd half)"};
    const char *name = (is_slot ? slot_fields : entry_fields)[field / 4];
    if (field == 0 && access->octets == 8)
        name = is_slot ? "Sequence, Reserved" : "Flags, Generation, Data Length";
    snprintf(rest, room, "%s %u %s", is_slot ? "slot" : "entry", number, name);
    if (field == 0 && is_slot)
        snprintf(value, size, "%u", sim_ring_sequence(image));
    else if (field == 0)
        snprintf(value, size, "%sgeneration %u", sim_ring_entry_is_valid(image) ? "VALID, " : "",
                 sim_ring_entry_generation(image));
    else if (field == 4 && !is_slot)
        snprintf(value, size, "%u octets", sim_ring_entry_length(image));
    else if (field == 8 && access->octets == 8)
        sim_ring_describe_offset(ring, sim_ring_offset(ring, image), value, size);
}

/* ---- the world --------------------------------------------------------------------------- */

bool sim_ring_describe_world(const struct sim_scenario *s, unsigned line, char *out, size_t size)
{
    const struct sim_ring_part *ring = &s->ring;
    out[0] = '\0';
    if (line > 0)
        return false;
    sim_kind_say(out, size, "N = %u, F = %u", s->slots, s->blocks);
    for (unsigned i = 0; i < ring->allocators_count; i++)
        sim_kind_say(out, size, ", %s (%s, %u allocation%s)", ring->allocators[i].name,
                     ring->allocators[i].agent == SIM_AGENT_RNIC ? "rnic" : "cpu",
                     ring->allocators[i].allocations,
                     ring->allocators[i].allocations == 1 ? "" : "s");
    for (unsigned i = 0; i < ring->freers_count; i++)
        sim_kind_say(out, size, ", %s (frees)", ring->freers[i].name);
    return true;
}
