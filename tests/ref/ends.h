/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An initiator and a hand-made target (tests/ref/peer.h), for tests of the initiator alone.
 */
#ifndef KBTP_TESTS_REF_ENDS_H
#define KBTP_TESTS_REF_ENDS_H

#include "ref/initiator.h"
#include "tests/ref/peer.h"

extern struct kbtp_cpu cpu;
extern struct kbtp_initiator *initiator;
extern struct peer peer;
extern struct kbtp_outcome outcomes[16]; /* all that were told */
extern uint32_t outcomes_count;

/* Depth 4, 32 octets inline, an ID of 0xa0, 0xa1, ... */
struct kbtp_initiator_config plain_config(void);
void open_ends(const struct kbtp_initiator_config *config);
/* Connects up to HELLO, which is returned; then answers it; both, and expects READY. */
struct kbtp_message begin(void);
void begin_with(const struct kbtp_message *ack);
void open_ready(const struct kbtp_initiator_config *config);
/* Everything was given back. */
void close_ends(void);
/* Polls both until nothing moves any more. */
void settle(void);

/* A good HELLO_ACK: 4 credits, blocks of 64 octets, 16 inline, 16 handles from 0x4000, quota 2. */
struct kbtp_message good_ack(void);
/* A COMPLETION with Generation 5, Data Length 8, Block Offset 0x777. */
struct kbtp_message completion(uint64_t request_id, uint16_t status);
/* The target says it. */
void tell(const struct kbtp_message *message);
/* What the target heard, the oldest first. */
struct kbtp_message heard(void);

/* An operation on STag 0x1234, Tagged Offset 0x5678; with cookie 3. */
struct kbtp_operation operation(uint8_t opcode, uint64_t handle, uint32_t length, uint16_t flags);
int submit_it(uint8_t opcode, uint64_t handle, uint32_t length, uint16_t flags);
/* Submits a LOAD and gives its Request ID. */
uint64_t load(void);

/* Both ends are down, and the initiator says why. */
void expect_down(int why);

#endif
