/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/ref/direct.h"

#include <string.h>

struct pair_config with_direct_alloc(void)
{
    struct pair_config config = pair_defaults();
    config.features = KBTP_FEATURE_DIRECT_ALLOC;
    config.target.ticket_timeout_ms = TIMEOUT_MS;
    config.target.ticket_looks = LOOKS;
    return config;
}

const struct kbtp_ring *ring_of(uint32_t i)
{
    return &pair.memory.partitions[pair.memory.grants[i].partition - 1].ring;
}

uint32_t ticket_of(const mem64 *counter)
{
    return kbtp_counter_ticket(mem_load64(&pair.mem, counter));
}

int32_t block_in(uint32_t i, uint32_t ticket, uint32_t *sequence)
{
    uint8_t octets[KBTP_SLOT_OCTETS];
    struct kbtp_slot_value slot;
    memcpy(octets, kbtp_ring_slot(ring_of(i), ticket), sizeof octets);
    kbtp_slot_decode(octets, false, &slot);
    *sequence = slot.sequence;
    return slot.block_offset == KBTP_BLOCK_NONE
               ? -1
               : (int32_t)kbtp_pool_block(&pair.target.pool, slot.block_offset);
}
