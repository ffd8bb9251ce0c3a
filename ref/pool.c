/* SPDX-License-Identifier: BSD-3-Clause */
#include "ref/pool.h"

#include <errno.h>

int kbtp_pool_free(struct mem *m, const struct kbtp_pool *pool, struct kbtp_deferred *deferred,
                   uint32_t index)
{
    if (deferred->count == deferred->capacity)
        return -ENOSPC;
    uint64_t block_offset = kbtp_table_read(m, &pool->table, index).block_offset;
    kbtp_table_unbind(m, &pool->table, index);
    /* The FetchAdd on Tail in here orders the entry update before anything done to the ring. */
    return kbtp_ring_free(m, &pool->ring, deferred, block_offset);
}
