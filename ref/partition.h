/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Partitions (draft: Allocation Quotas, Direct Modes): for each initiator that may allocate by
 * itself as many blocks as its quota is, one after the other, and a ring with a Head of its own.
 * The initiator takes tickets from that Head by FetchAdd and reads the slots; it writes neither.
 *
 * Who has no DIRECT_ALLOC in a session, though its grant has, is served from the same ring (I-15):
 * its blocks are there.
 */
#ifndef KBTP_REF_PARTITION_H
#define KBTP_REF_PARTITION_H

#include "ref/cpu.h"
#include "ref/ring.h"

/* Constant after set-up. */
struct kbtp_partition {
    struct kbtp_ring ring;
    struct rdma_region ring_region; /* for the peer to read */
    struct rdma_region head_region; /* for the peer's FetchAdd */
    uint32_t first_block;
    uint32_t block_count; /* the quota */
    uint32_t first_slot;  /* slots of all partitions before it */
    uint32_t reserved;
};

/* What a device must be able to do for DIRECT_ALLOC: the Partition STag is valid on one connection
 * (R-SESS-25), and the Head is advanced for the peer and for the target: by the device and CPUs,
 * or by the device alone (I-37). */
static inline bool kbtp_partitions_can_be(const struct rdma_caps *caps, bool unmasked)
{
    uint32_t needed = RDMA_CAP_WINDOW | RDMA_CAP_FETCH_ADD | (unmasked ? 0u : RDMA_CAP_MASKED);
    return (caps->bits & needed) == needed &&
           (caps->bits & (RDMA_CAP_ATOMIC_CPU | RDMA_CAP_LOOP)) != 0;
}

/* N of the ring of so many blocks (I-22). */
static inline uint32_t kbtp_partition_slots(uint32_t block_count)
{
    return kbtp_ring_slots_for(block_count);
}

/*
 * Fills the ring, whose slots, head and tail must be where they are to lie, and registers it.
 * `config` says what all rings have alike. Returns 0, -EINVAL, or what registering returned; then
 * nothing is registered.
 */
int kbtp_partition_init(const struct kbtp_cpu *cpu, struct kbtp_partition *partition,
                        const struct kbtp_ring_config *config);
int kbtp_partition_end(const struct kbtp_cpu *cpu, struct kbtp_partition *partition);

#endif
