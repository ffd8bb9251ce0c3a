/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A block pool: F blocks, the block table, the free-block rings and the pins, and the steps of the
 * draft's operations that touch several of them.
 *
 * The first blocks are shared: one ring lists those that are free. Each partition behind them has a
 * ring of its own (draft: Allocation Quotas), and its blocks never leave it.
 */
#ifndef KBTP_REF_POOL_H
#define KBTP_REF_POOL_H

#include "ref/pins.h"
#include "ref/ring.h"
#include "ref/table.h"

/* The blocks of one initiator that allocates by itself; ref/partition.h. */
struct kbtp_partition;

/* Constant after set-up. */
struct kbtp_pool {
    struct kbtp_ring ring;                   /* of the shared blocks */
    const struct kbtp_partition *partitions; /* in the order of their blocks */
    struct kbtp_table table;
    mem64 *pins;           /* one per block; NULL in a pool that nobody loads from */
    char *blocks;          /* the octets of the first block; the others follow */
    uint64_t first_offset; /* its Block Offset */
    uint32_t block_size;   /* octets */
    uint32_t block_count;
    uint32_t clears; /* a block is cleared before it goes back to the ring (I-36) */
    uint32_t partition_count;
};

/* Which block a Block Offset names; below block_count for every offset that the pool handed out. */
static inline uint32_t kbtp_pool_block(const struct kbtp_pool *pool, uint64_t block_offset)
{
    return (uint32_t)((block_offset - pool->first_offset) / pool->block_size);
}

static inline char *kbtp_pool_octets(const struct kbtp_pool *pool, uint32_t block)
{
    return pool->blocks + (uint64_t)block * pool->block_size;
}

static inline uint64_t kbtp_pool_offset(const struct kbtp_pool *pool, uint32_t block)
{
    return pool->first_offset + (uint64_t)block * pool->block_size;
}

/* As enum kbtp_free_result: the block is still read, and its last reader returns it. */
#define KBTP_FREE_PINNED 2

/*
 * Block Free, steps 2 and 3: unbinds entry `index`, which must be VALID, and returns its block to
 * the ring after the entry update is visible and nobody reads it any more (I-01). Returns as
 * kbtp_ring_free(), or KBTP_FREE_PINNED; on -ENOSPC the entry is still bound.
 */
int kbtp_pool_free(struct mem *m, const struct kbtp_pool *pool, struct kbtp_deferred *deferred,
                   uint32_t index);

/*
 * A block that nobody uses any more goes back to the ring, cleared where it may next be somebody
 * else's (draft: Block Free). Returns as kbtp_ring_free().
 */
int kbtp_pool_return(struct mem *m, const struct kbtp_pool *pool, struct kbtp_deferred *deferred,
                     uint64_t block_offset);

/* Looks at every deferred free once, as kbtp_ring_retry_all(), each in its block's ring. */
uint32_t kbtp_pool_retry_all(struct mem *m, const struct kbtp_pool *pool,
                             struct kbtp_deferred *deferred);

/*
 * A LOAD of entry `index` begins: `entry` is what it shows, and when it is VALID its block stays
 * bound and unchanged until kbtp_pool_unpin(). False when a STORE has the block: try again later.
 * `deferred` is for a block that was freed in just that moment.
 */
bool kbtp_pool_pin(struct mem *m, const struct kbtp_pool *pool, struct kbtp_deferred *deferred,
                   uint32_t index, struct kbtp_entry *entry);

/* The LOAD has ended: nothing reads the block for it any more. */
void kbtp_pool_unpin(struct mem *m, const struct kbtp_pool *pool, struct kbtp_deferred *deferred,
                     uint32_t block);

#endif
