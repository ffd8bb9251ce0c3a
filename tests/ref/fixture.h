/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What tests of ref/ begin and end with: a pair over a provider, connected, and short words for
 * what they do again and again.
 */
#ifndef KBTP_TESTS_REF_FIXTURE_H
#define KBTP_TESTS_REF_FIXTURE_H

#include "tests/net/provider.h"
#include "tests/ref/pair.h"
#include "tests/run.h"

extern struct pair pair;
extern const struct provider *provider; /* the one that tests run over now */

/* A device, and a pair on it; the second one also connects all. */
void open_with(const struct pair_config *config);
void open_connected(const struct pair_config *config);
/* As pair_defaults() says. */
void open_pair(void);
/* Everything was given back. */
void close_pair(void);
/* The only connection of initiator i is lost; both ends notice. */
void lose_connection(uint32_t i);
/* What HELLO_ACK told initiator i. */
const struct kbtp_hello_ack *said(uint32_t i);
/* One more handle on the device. */
struct rdma *another_handle(void);

/* An operation of initiator i on its handle n, to its end. */
struct kbtp_outcome run(uint32_t i, uint8_t opcode, uint32_t n, uint32_t length, uint16_t flags);
/* Sent only. */
void submit(uint32_t i, uint8_t opcode, uint32_t n, uint32_t length, uint16_t flags,
            uint64_t cookie);
/* There was an answer, and it had this status. */
void expect_status(struct kbtp_outcome outcome, enum kbtp_status status);
/* An error: Data Length and Block Offset are 0 (I-45). */
void expect_refused(struct kbtp_outcome outcome, enum kbtp_status status, uint16_t generation);

/*
 * When everything is settled: from now on no worker's device executes these operations (1 << enum
 * rdma_op), as loop_hold() says; and again all, until everything is settled. Over the loop only.
 */
void hold(uint32_t operations);
void let_go(void);

void fill(uint32_t i, uint8_t octet);
/* The buffer has exactly `length` of these octets. */
bool holds(uint32_t i, uint8_t octet, uint32_t length);

enum kbtp_session_state state_of(uint32_t session);
/* Blocks of a session, as its worker counts them; UINT32_MAX when no connection serves it. */
uint32_t usage_of(uint32_t session);
/* Sums over both workers. */
struct kbtp_worker_look look_at_workers(void);

/*
 * Every block can be had: each initiator, which must be READY and unchecked, allocates its quota
 * and not one more, all blocks differ and hold what is stored; then all are freed.
 */
void expect_all_blocks(void);

/* Has the device all these (enum rdma_cap)? Else says what is not tested. */
bool can(uint32_t bits);

/* Runs the tests over providers[0..count). */
int run_over_providers(const char *suite, const struct test *tests, size_t count,
                       uint32_t provider_count);
/* The same over those of all that have these capabilities. */
int run_over_capable(const char *suite, const struct test *tests, size_t count, uint32_t bits);

#endif
