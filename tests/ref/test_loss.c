/* SPDX-License-Identifier: BSD-3-Clause */
/* A connection is lost while requests are at each of their stages: what they had taken comes back,
 * what they had not done is not done, and the session finds its handles as they were (R-QUOTA-18,
 * R-SESS-15, I-04, I-10, I-25). */
#include <errno.h>
#include <string.h>

#include "tests/ref/fixture.h"

/* One worker. Initiator 0 has bound handle 0, unsealed, 32 octets of 0x11. */
static void open_prepared(void)
{
    struct pair_config config = pair_defaults();
    config.workers = 1;
    config.unchecked = true;
    open_connected(&config);
    fill(0, 0x11);
    expect_status(run(0, KBTP_OP_ALLOC_STORE, 0, 32, 0), KBTP_STATUS_OK);
    fill(0, 0x22);
}

/* The connection of initiator 0 is lost, `outstanding` requests with it; it connects again. */
static void lose(uint32_t outstanding)
{
    struct kbtp_outcome outcome;
    pair_settle(&pair);
    CU_ASSERT_EQUAL(look_at_workers().requests, outstanding);
    provider->cut(pair.initiators[0].cpu.rdma, 0);
    pair_settle(&pair);
    CU_ASSERT(pair_is_down(&pair, 0));
    for (uint32_t i = 0; i < outstanding; i++) {
        CU_ASSERT(pair_take(&pair, 0, &outcome));
        CU_ASSERT_EQUAL(outcome.error, -ECONNRESET);
    }
    CU_ASSERT_FALSE(pair_take(&pair, 0, &outcome));
}

static void connect_again(uint32_t usage)
{
    CU_ASSERT_EQUAL_FATAL(pair_connect(&pair, 0), 0);
    CU_ASSERT_EQUAL(usage_of(0), usage);
}

static void expect_old_data(void)
{
    fill(0, 0);
    struct kbtp_outcome outcome = run(0, KBTP_OP_LOAD, 0, 64, KBTP_FLAG_ALLOW_UNSEALED);
    expect_status(outcome, KBTP_STATUS_OK);
    CU_ASSERT_EQUAL(outcome.data_length, 32);
    CU_ASSERT_EQUAL(outcome.generation, 2);
    CU_ASSERT(holds(0, 0x11, 32));
    expect_status(run(0, KBTP_OP_FREE, 0, 0, 0), KBTP_STATUS_OK);
}

static void while_data_is_read(void)
{
    open_prepared();
    for (uint32_t round = 0; round < 8; round++) {
        hold(1u << RDMA_READ);
        submit(0, KBTP_OP_ALLOC_STORE, 1, 64, 0, 1);
        submit(0, KBTP_OP_STORE, 0, 64, KBTP_FLAG_SEAL, 2);
        submit(0, KBTP_OP_ALLOC_STORE, 2, 8, KBTP_FLAG_INLINE, 3);
        submit(0, KBTP_OP_FREE, 0, 0, 0, 4);
        lose(4);
        let_go();
        connect_again(1);
    }
    expect_old_data();
    expect_all_blocks();
    close_pair();
}

/* The STORE has locked the block, and waits for a LOAD: the lock is taken off. */
static void while_a_block_is_locked(void)
{
    open_prepared();
    hold(1u << RDMA_WRITE);
    struct kbtp_operation load =
        pair_operation(&pair, 0, KBTP_OP_LOAD, 0, 64, KBTP_FLAG_ALLOW_UNSEALED);
    load.stag = pair.initiators[1].region.stag;
    CU_ASSERT_EQUAL(pair_submit(&pair, 1, &load, 1), 0);
    pair_settle(&pair);
    submit(0, KBTP_OP_STORE, 0, 8, KBTP_FLAG_INLINE, 2);
    pair_settle(&pair);
    CU_ASSERT_EQUAL(look_at_workers().locked, 1);
    lose(1); /* the LOAD is answered, as far as its worker knows */
    let_go();
    expect_status(pair_wait(&pair, 1), KBTP_STATUS_OK);
    connect_again(1);
    expect_old_data();
    expect_all_blocks();
    close_pair();
}

/* The ticket is taken, and no block is there yet: it comes back when it is. The session waits. */
static void while_a_slot_is_waited_for(void)
{
    open_prepared();
    for (uint32_t i = 0; i < 3; i++)
        for (uint32_t n = i ? 0 : 1; n < pair.config.quotas[i]; n++)
            expect_status(run(i, KBTP_OP_ALLOC_STORE, n, 8, 0), KBTP_STATUS_OK);
    hold(1u << RDMA_WRITE);
    struct kbtp_operation load =
        pair_operation(&pair, 0, KBTP_OP_LOAD, 0, 64, KBTP_FLAG_ALLOW_UNSEALED);
    load.stag = pair.initiators[1].region.stag;
    CU_ASSERT_EQUAL(pair_submit(&pair, 1, &load, 1), 0);
    pair_settle(&pair);
    expect_status(run(0, KBTP_OP_FREE, 0, 0, 0), KBTP_STATUS_OK);
    submit(0, KBTP_OP_ALLOC_STORE, 9, 8, 0, 2);
    pair_settle(&pair);
    CU_ASSERT_EQUAL(look_at_workers().tickets, 1);
    lose(1);
    CU_ASSERT_EQUAL(pair_begin(&pair, 0), 0);
    pair_settle(&pair);
    CU_ASSERT_EQUAL(look_at_workers().hellos, 1); /* I-10 */
    let_go();
    expect_status(pair_wait(&pair, 1), KBTP_STATUS_OK);
    pair_settle(&pair);
    CU_ASSERT_EQUAL(usage_of(0), 5);
    CU_ASSERT_EQUAL(look_at_workers().hellos, 0);
    for (uint32_t i = 0; i < 3; i++)
        for (uint32_t n = i ? 0 : 1; n < pair.config.quotas[i]; n++)
            expect_status(run(i, KBTP_OP_FREE, n, 0, 0), KBTP_STATUS_OK);
    expect_all_blocks();
    close_pair();
}

/* The LOAD's Write is posted: the block is not pinned for ever. */
static void while_a_block_is_loaded(void)
{
    open_prepared();
    for (uint32_t round = 0; round < 4; round++) {
        hold(1u << RDMA_WRITE);
        submit(0, KBTP_OP_LOAD, 0, 64, KBTP_FLAG_ALLOW_UNSEALED, 1);
        submit(0, KBTP_OP_LOAD, 0, 64, KBTP_FLAG_ALLOW_UNSEALED, 2);
        pair_settle(&pair);
        CU_ASSERT_EQUAL(look_at_workers().loads, 2);
        provider->cut(pair.initiators[0].cpu.rdma, 0);
        let_go();
        CU_ASSERT_EQUAL(look_at_workers().loads, 0);
        CU_ASSERT_EQUAL(pair_wait(&pair, 0).error, -ECONNRESET);
        CU_ASSERT_EQUAL(pair_wait(&pair, 0).error, -ECONNRESET);
        connect_again(1);
    }
    expect_old_data();
    expect_all_blocks();
    close_pair();
}

int main(void)
{
    static const struct test tests[] = {
        {"while data is read", while_data_is_read},
        {"while a block is locked", while_a_block_is_locked},
        {"while a slot is waited for", while_a_slot_is_waited_for},
        {"while a block is loaded", while_a_block_is_loaded},
    };
    return run_over_providers("ref/loss", tests, sizeof tests / sizeof *tests, 1);
}
