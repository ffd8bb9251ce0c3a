/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The block table (draft: Block Table): one 16-octet entry per handle, which says to which block
 * the handle is bound.
 *
 * Invariants, for every reader at every moment:
 *   - an entry seen VALID names the block, the length and the Generation of one and the same bind:
 *     Data Length and Block Offset become visible before Flags and Generation;
 *   - Flags and Generation change together, in one 32-bit store;
 *   - the Generation is never zero and changes at every bind and unbind.
 *
 * Writers of one entry exclude each other (the requests of one handle come over one connection, in
 * order); readers need no lock.
 */
#ifndef KBTP_REF_TABLE_H
#define KBTP_REF_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "net/mem.h"

enum kbtp_entry_flag {
    KBTP_ENTRY_VALID = 0x0001,
    KBTP_ENTRY_SEALED = 0x0002,
};

/* An entry in memory: network order, but for the Block Offset, which follows ADDR_LE. */
struct kbtp_table_entry {
    mem32 flags_generation; /* Flags in the upper half, Generation in the lower */
    mem32 data_length;      /* octets */
    mem64 block_offset;
};

/* An entry in host order. */
struct kbtp_entry {
    uint64_t block_offset;
    uint32_t data_length; /* octets */
    uint16_t generation;  /* 1 to 65535 */
    uint16_t flags;       /* enum kbtp_entry_flag */
};

/* A table as its users see it; constant after kbtp_table_init(). The memory is the caller's. */
struct kbtp_table {
    struct kbtp_table_entry *entries; /* 16-octet aligned (I-39) */
    uint32_t entry_count;
    bool addr_le;
};

/* 1, 2, ..., 65535, 1, ... (draft: incremented by one, skipping zero). */
static inline uint16_t kbtp_generation_next(uint16_t generation)
{
    return generation == UINT16_MAX ? 1 : (uint16_t)(generation + 1);
}

/*
 * Fills `table` and makes every entry unbound; generations[i] (not zero; NULL: 1) is where entry i
 * starts: a target that was restarted starts elsewhere than before (I-11), here or by
 * kbtp_table_start(). Nobody else may look yet. Returns
 * 0, or -EINVAL when a place is misaligned or a generation is zero.
 */
int kbtp_table_init(struct mem *m, struct kbtp_table *table, struct kbtp_table_entry *entries,
                    uint32_t entry_count, bool addr_le, const uint16_t *generations);

void kbtp_table_start(struct mem *m, const struct kbtp_table *table, uint32_t index,
                      uint16_t generation);

/*
 * Reads entry `index` (below entry_count), Flags and Generation first. If it is VALID and the
 * caller keeps writers away, all fields belong together; else compare the Generation again after
 * use.
 */
struct kbtp_entry kbtp_table_read(struct mem *m, const struct kbtp_table *table, uint32_t index);

/*
 * Binds entry `index`, which must not be VALID, to a block whose data is already written. Returns
 * the new Generation.
 */
uint16_t kbtp_table_bind(struct mem *m, const struct kbtp_table *table, uint32_t index,
                         uint64_t block_offset, uint32_t data_length, bool sealed);

/*
 * After a STORE into the block of entry `index`, which must be VALID and not SEALED: Data Length
 * becomes visible after the block's data, SEALED (when set) after Data Length, in the same word as
 * the Generation (I-26).
 */
void kbtp_table_update(struct mem *m, const struct kbtp_table *table, uint32_t index,
                       uint32_t data_length, bool sealed);

/* Clears VALID and SEALED of entry `index`, which must be VALID. Returns the new Generation. */
uint16_t kbtp_table_unbind(struct mem *m, const struct kbtp_table *table, uint32_t index);

#endif
