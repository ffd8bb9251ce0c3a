/* SPDX-License-Identifier: BSD-3-Clause */
/* What tests of Direct Allocation share: pairs with partitions, and what lies in their rings. */
#ifndef KBTP_TESTS_REF_DIRECT_H
#define KBTP_TESTS_REF_DIRECT_H

#include "tests/ref/fixture.h"

#define TIMEOUT_MS 400u
#define LOOKS 4u

struct pair_config with_direct_alloc(void);
/* The ring of session i's partition. */
const struct kbtp_ring *ring_of(uint32_t i);
uint32_t ticket_of(const mem64 *counter);
/* What the slot of a ticket holds: Sequence, and the block's number or -1. */
int32_t block_in(uint32_t i, uint32_t ticket, uint32_t *sequence);

#endif
