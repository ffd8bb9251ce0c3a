/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A block pool: the block table and the free-block ring together, and the steps of the draft's
 * operations that touch both.
 */
#ifndef KBTP_REF_POOL_H
#define KBTP_REF_POOL_H

#include "ref/ring.h"
#include "ref/table.h"

struct kbtp_pool {
    struct kbtp_ring ring;
    struct kbtp_table table;
};

/*
 * Block Free, steps 2 and 3: unbinds entry `index`, which must be VALID, and returns its block to
 * the ring after the entry update is visible. Returns as kbtp_ring_free(); on -ENOSPC the entry is
 * still bound.
 */
int kbtp_pool_free(struct mem *m, const struct kbtp_pool *pool, struct kbtp_deferred *deferred,
                   uint32_t index);

#endif
