/* SPDX-License-Identifier: BSD-3-Clause */
#include "ref/pool.h"

#include <assert.h>
#include <errno.h>

#include "ref/partition.h"

/* The ring that lists a block when it is free. */
static const struct kbtp_ring *ring_of(const struct kbtp_pool *pool, uint64_t block_offset)
{
    uint32_t low = 0, high = pool->partition_count;
    uint32_t block = high != 0 ? kbtp_pool_block(pool, block_offset) : 0;
    while (low < high) { /* the first partition that begins behind the block */
        uint32_t middle = (low + high) / 2;
        if (pool->partitions[middle].first_block <= block)
            low = middle + 1;
        else
            high = middle;
    }
    return low == 0 ? &pool->ring : &pool->partitions[low - 1].ring;
}

/* The FetchAdd on Tail in here orders the entry update, and the clearing, before anything done to
 * the ring. The whole block: a shorter store left the tail of the one before. */
int kbtp_pool_return(struct mem *m, const struct kbtp_pool *pool, struct kbtp_deferred *deferred,
                     uint64_t block_offset)
{
    if (pool->clears)
        mem_fill(m, kbtp_pool_octets(pool, kbtp_pool_block(pool, block_offset)), 0,
                 pool->block_size);
    return kbtp_ring_free(m, ring_of(pool, block_offset), deferred, block_offset);
}

uint32_t kbtp_pool_retry_all(struct mem *m, const struct kbtp_pool *pool,
                             struct kbtp_deferred *deferred)
{
    uint32_t written = 0;
    for (uint32_t i = 0; i < deferred->count;) {
        const struct kbtp_ring *ring = ring_of(pool, deferred->frees[i].block_offset);
        if (kbtp_ring_retry_deferred(m, ring, deferred, i))
            written++;
        else
            i++;
    }
    return written;
}

int kbtp_pool_free(struct mem *m, const struct kbtp_pool *pool, struct kbtp_deferred *deferred,
                   uint32_t index)
{
    if (deferred->count == deferred->capacity)
        return -ENOSPC;
    uint64_t block_offset = kbtp_table_read(m, &pool->table, index).block_offset;
    kbtp_table_unbind(m, &pool->table, index);
    if (pool->pins && !kbtp_pins_freed(m, &pool->pins[kbtp_pool_block(pool, block_offset)]))
        return KBTP_FREE_PINNED;
    return kbtp_pool_return(m, pool, deferred, block_offset);
}

/* The last reader has left a block that was freed. */
static void return_block(struct mem *m, const struct kbtp_pool *pool,
                         struct kbtp_deferred *deferred, uint32_t block)
{
    int failed = kbtp_pool_return(m, pool, deferred, kbtp_pool_offset(pool, block));
    assert(failed >= 0 && "a deferred list has room for every block");
}

static bool same_bind(const struct kbtp_entry *a, const struct kbtp_entry *b)
{
    return (b->flags & KBTP_ENTRY_VALID) && a->generation == b->generation &&
           a->block_offset == b->block_offset;
}

bool kbtp_pool_pin(struct mem *m, const struct kbtp_pool *pool, struct kbtp_deferred *deferred,
                   uint32_t index, struct kbtp_entry *entry)
{
    struct kbtp_entry before = kbtp_table_read(m, &pool->table, index);
    *entry = before;
    if (!(before.flags & KBTP_ENTRY_VALID))
        return true;
    uint32_t block = kbtp_pool_block(pool, before.block_offset);
    if (block >= pool->block_count)
        return false; /* torn: the entry was bound anew while it was read */
    enum kbtp_pin_result pinned = kbtp_pin(m, &pool->pins[block]);
    if (pinned == KBTP_PIN_REFUSED_FREED)
        return_block(m, pool, deferred, block);
    if (pinned != KBTP_PIN_TAKEN)
        return false;
    /* It may have been freed before it was pinned: only now what the entry says is sure to stay. */
    *entry = kbtp_table_read(m, &pool->table, index);
    if (same_bind(&before, entry))
        return true;
    kbtp_pool_unpin(m, pool, deferred, block);
    entry->flags = 0;
    return false;
}

void kbtp_pool_unpin(struct mem *m, const struct kbtp_pool *pool, struct kbtp_deferred *deferred,
                     uint32_t block)
{
    if (kbtp_unpin(m, &pool->pins[block]))
        return_block(m, pool, deferred, block);
}
