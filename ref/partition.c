/* SPDX-License-Identifier: BSD-3-Clause */
#include "ref/partition.h"

#include <errno.h>

int kbtp_partition_init(const struct kbtp_cpu *cpu, struct kbtp_partition *partition,
                        const struct kbtp_ring_config *config)
{
    struct kbtp_ring where = partition->ring;
    struct kbtp_ring_config own = *config;
    own.block_count = partition->block_count;
    own.slot_count = kbtp_partition_slots(partition->block_count);
    own.first_offset = config->first_offset + partition->first_block * config->offset_step;
    int failed =
        kbtp_ring_init(cpu->mem, &partition->ring, &own, where.slots, where.head, where.tail, NULL);
    if (failed)
        return failed;
    failed = rdma_reg(cpu->rdma, where.slots, own.slot_count * sizeof(struct kbtp_slot),
                      RDMA_REMOTE_READ, 0, &partition->ring_region);
    if (failed)
        return failed;
    failed = rdma_reg(cpu->rdma, where.head, sizeof(mem64), RDMA_LOCAL_WRITE | RDMA_REMOTE_ATOMIC,
                      0, &partition->head_region);
    if (failed)
        rdma_dereg(cpu->rdma, &partition->ring_region);
    return failed;
}

int kbtp_partition_end(const struct kbtp_cpu *cpu, struct kbtp_partition *partition)
{
    int failed = rdma_dereg(cpu->rdma, &partition->head_region);
    int failed_too = rdma_dereg(cpu->rdma, &partition->ring_region);
    return failed ? failed : failed_too;
}
