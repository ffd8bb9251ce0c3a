/* SPDX-License-Identifier: BSD-3-Clause */
#include "ref/table.h"

#include <errno.h>

#include "ref/octets.h"

static uint32_t pack(uint16_t flags, uint16_t generation)
{
    return octets_be32((uint32_t)flags << 16 | generation);
}

static uint16_t load_generation(struct mem *m, const struct kbtp_table_entry *entry)
{
    return (uint16_t)octets_be32(mem_load32(m, &entry->flags_generation));
}

int kbtp_table_init(struct mem *m, struct kbtp_table *table, struct kbtp_table_entry *entries,
                    uint32_t entry_count, bool addr_le, const uint16_t *generations)
{
    if ((uintptr_t)entries % 16 != 0)
        return -EINVAL;
    for (uint32_t i = 0; i < entry_count; i++) {
        uint16_t generation = generations ? generations[i] : 1;
        if (generation == 0)
            return -EINVAL;
        mem_store64(m, &entries[i].block_offset, 0);
        mem_store32(m, &entries[i].data_length, 0);
        mem_store_release32(m, &entries[i].flags_generation, pack(0, generation));
    }
    *table =
        (struct kbtp_table){.entries = entries, .entry_count = entry_count, .addr_le = addr_le};
    return 0;
}

void kbtp_table_start(struct mem *m, const struct kbtp_table *table, uint32_t index,
                      uint16_t generation)
{
    mem_store_release32(m, &table->entries[index].flags_generation, pack(0, generation));
}

struct kbtp_entry kbtp_table_read(struct mem *m, const struct kbtp_table *table, uint32_t index)
{
    const struct kbtp_table_entry *entry = &table->entries[index];
    uint32_t flags_generation = octets_be32(mem_load32(m, &entry->flags_generation));
    uint32_t data_length = octets_be32(mem_load32(m, &entry->data_length));
    uint64_t block_offset = octets_address64(mem_load64(m, &entry->block_offset), table->addr_le);
    return (struct kbtp_entry){
        .block_offset = block_offset,
        .data_length = data_length,
        .generation = (uint16_t)flags_generation,
        .flags = (uint16_t)(flags_generation >> 16),
    };
}

uint16_t kbtp_table_bind(struct mem *m, const struct kbtp_table *table, uint32_t index,
                         uint64_t block_offset, uint32_t data_length, bool sealed)
{
    struct kbtp_table_entry *entry = &table->entries[index];
    uint16_t generation = kbtp_generation_next(load_generation(m, entry));
    uint16_t flags = (uint16_t)(KBTP_ENTRY_VALID | (sealed ? KBTP_ENTRY_SEALED : 0));
    mem_store32(m, &entry->data_length, octets_be32(data_length));
    mem_store64(m, &entry->block_offset, octets_address64(block_offset, table->addr_le));
    /* The publication: whoever sees VALID sees the two above, and the block's data. */
    mem_store_release32(m, &entry->flags_generation, pack(flags, generation));
    return generation;
}

void kbtp_table_update(struct mem *m, const struct kbtp_table *table, uint32_t index,
                       uint32_t data_length, bool sealed)
{
    struct kbtp_table_entry *entry = &table->entries[index];
    mem_store_release32(m, &entry->data_length, octets_be32(data_length));
    if (sealed)
        mem_store_release32(m, &entry->flags_generation,
                            pack(KBTP_ENTRY_VALID | KBTP_ENTRY_SEALED, load_generation(m, entry)));
}

uint16_t kbtp_table_unbind(struct mem *m, const struct kbtp_table *table, uint32_t index)
{
    struct kbtp_table_entry *entry = &table->entries[index];
    uint16_t generation = kbtp_generation_next(load_generation(m, entry));
    mem_store_release32(m, &entry->flags_generation, pack(0, generation));
    return generation;
}
