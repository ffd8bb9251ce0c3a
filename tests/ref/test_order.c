/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests that overlap: what begins early, what waits, and in which order effects come. Here the
 * device holds RDMA Reads and Writes back until it is told. */
#include <errno.h>
#include <string.h>

#include "tests/ref/fixture.h"

#define ELSEWHERE 4096u /* in the buffer of an initiator: where LOADs go */

/* One worker. Handles of initiator 0: 0 is sealed, 1 and 2 are not; 32 octets of 0x11. */
static void open_prepared(void)
{
    struct pair_config config = pair_defaults();
    config.workers = 1;
    config.unchecked = true;
    open_connected(&config);
    fill(0, 0x11);
    for (uint32_t n = 0; n < 3; n++)
        expect_status(run(0, KBTP_OP_ALLOC_STORE, n, 32, n == 0 ? KBTP_FLAG_SEAL : 0),
                      KBTP_STATUS_OK);
    fill(0, 0x22);
}

/* Initiator i loads handle n of initiator 0 to ELSEWHERE. */
static void submit_load(uint32_t i, uint32_t n, uint64_t cookie)
{
    struct kbtp_operation load =
        pair_operation(&pair, 0, KBTP_OP_LOAD, n, 64, KBTP_FLAG_ALLOW_UNSEALED);
    load.stag = pair.initiators[i].region.stag;
    load.tagged_offset += ELSEWHERE;
    CU_ASSERT_EQUAL_FATAL(pair_submit(&pair, i, &load, cookie), 0);
}

static uint8_t loaded_octet(uint32_t i)
{
    return pair.initiators[i].data[ELSEWHERE];
}

static struct kbtp_entry entry(uint32_t n)
{
    return kbtp_table_read(&pair.mem, &pair.target.pool.table, n);
}

static uint8_t first_octet(uint32_t n)
{
    uint32_t block = kbtp_pool_block(&pair.target.pool, entry(n).block_offset);
    return (uint8_t)pair.memory.blocks[block * 64];
}

static void expect_nothing_yet(uint32_t i)
{
    pair_settle(&pair);
    CU_ASSERT_EQUAL(pair.initiators[i].outcomes_count, 0);
}

static void expect_next(uint32_t i, uint64_t cookie, enum kbtp_status status)
{
    struct kbtp_outcome outcome = {.error = -EAGAIN};
    CU_ASSERT(pair_take(&pair, i, &outcome));
    expect_status(outcome, status);
    CU_ASSERT_EQUAL(outcome.cookie, cookie);
}

/* ---- behind a STORE whose data is not there ---------------------------------------------- */

/* R-VAL-01, R-RDMAP-05: the LOAD of another handle writes at once and completes in turn (I-41). */
static void a_load_overtakes_a_store_but_completes_after_it(void)
{
    open_prepared();
    hold(1u << RDMA_READ);
    submit(0, KBTP_OP_STORE, 1, 24, 0, 1);
    submit_load(0, 0, 2);
    expect_nothing_yet(0);
    CU_ASSERT_EQUAL(look_at_workers().reads, 1);
    CU_ASSERT_EQUAL(look_at_workers().loads, 1);
    CU_ASSERT_EQUAL(loaded_octet(0), 0x11);
    CU_ASSERT_EQUAL(entry(1).data_length, 32);
    CU_ASSERT_EQUAL(first_octet(1), 0x11);
    let_go();
    CU_ASSERT_EQUAL(entry(1).data_length, 24);
    CU_ASSERT_EQUAL(first_octet(1), 0x22);
    expect_next(0, 1, KBTP_STATUS_OK);
    expect_next(0, 2, KBTP_STATUS_OK);
    CU_ASSERT_EQUAL(look_at_workers().loads, 0);
    close_pair();
}

/* R-VAL-01, R-DESC-02, I-40: the LOAD of the same handle sees what was stored. */
static void a_load_of_the_same_handle_waits(void)
{
    open_prepared();
    hold(1u << RDMA_READ);
    submit(0, KBTP_OP_STORE, 1, 24, 0, 1);
    submit_load(0, 1, 2);
    expect_nothing_yet(0);
    CU_ASSERT_EQUAL(loaded_octet(0), 0x22); /* untouched */
    CU_ASSERT_EQUAL(look_at_workers().loads, 0);
    memset(pair.initiators[0].data, 0x33, 24);
    let_go();
    expect_next(0, 1, KBTP_STATUS_OK);
    expect_next(0, 2, KBTP_STATUS_OK);
    CU_ASSERT_EQUAL(loaded_octet(0), 0x33);
    CU_ASSERT_EQUAL(pair.initiators[0].data[ELSEWHERE + 24], 0x22);
    close_pair();
}

/* R-VAL-01: nothing that others can see comes before the effect of an earlier request; I-05: the
 * ticket of an ALLOC_STORE is not held up by data of others. */
static void effects_are_in_order(void)
{
    open_prepared();
    hold(1u << RDMA_READ);
    submit(0, KBTP_OP_STORE, 1, 24, 0, 1);
    submit(0, KBTP_OP_STORE, 2, 8, KBTP_FLAG_INLINE | KBTP_FLAG_SEAL, 2);
    submit(0, KBTP_OP_ALLOC_STORE, 3, 8, KBTP_FLAG_INLINE, 3);
    submit(0, KBTP_OP_FREE, 0, 0, 0, 4);
    expect_nothing_yet(0);
    CU_ASSERT_EQUAL(entry(2).flags, KBTP_ENTRY_VALID);
    CU_ASSERT_EQUAL(first_octet(2), 0x11);
    CU_ASSERT_EQUAL(entry(3).flags, 0);
    CU_ASSERT_EQUAL(entry(0).flags, KBTP_ENTRY_VALID | KBTP_ENTRY_SEALED);
    CU_ASSERT_EQUAL(usage_of(0), 4);               /* R-QUOTA-03: a ticket counts */
    CU_ASSERT_EQUAL(look_at_workers().tickets, 0); /* its slot is consumed */
    CU_ASSERT_EQUAL(pair_submit(&pair, 0, &(struct kbtp_operation){.opcode = KBTP_OP_FREE}, 5),
                    -EAGAIN); /* four credits are out */
    let_go();
    for (uint64_t cookie = 1; cookie <= 4; cookie++)
        expect_next(0, cookie, KBTP_STATUS_OK);
    CU_ASSERT_EQUAL(entry(2).flags, KBTP_ENTRY_VALID | KBTP_ENTRY_SEALED);
    CU_ASSERT_EQUAL(entry(3).flags, KBTP_ENTRY_VALID);
    CU_ASSERT_EQUAL(entry(0).flags, 0);
    CU_ASSERT_EQUAL(usage_of(0), 3);
    close_pair();
}

/* R-QUOTA-05: the unit comes back when the FREE completes, not before. */
static void a_unit_comes_back_with_the_completion(void)
{
    open_prepared();
    for (uint32_t n = 3; n < 6; n++)
        run(0, KBTP_OP_ALLOC_STORE, n, 8, 0);
    hold(1u << RDMA_READ);
    submit(0, KBTP_OP_STORE, 1, 24, 0, 1);
    submit(0, KBTP_OP_ALLOC_STORE, 6, 8, 0, 2); /* before the FREE: over the quota */
    submit(0, KBTP_OP_FREE, 0, 0, 0, 3);
    submit(0, KBTP_OP_ALLOC_STORE, 7, 8, KBTP_FLAG_INLINE, 4); /* after it */
    expect_nothing_yet(0);
    CU_ASSERT_EQUAL(usage_of(0), 6);
    let_go();
    expect_next(0, 1, KBTP_STATUS_OK);
    expect_next(0, 2, KBTP_STATUS_NO_SPACE);
    expect_next(0, 3, KBTP_STATUS_OK);
    expect_next(0, 4, KBTP_STATUS_OK);
    CU_ASSERT_EQUAL(usage_of(0), 6);
    close_pair();
}

/* The second STORE waits for the one staging block (I-25). */
static void staging_is_waited_for(void)
{
    struct pair_config config = pair_defaults();
    config.target.staging = 1;
    config.workers = 1;
    open_connected(&config);
    run(0, KBTP_OP_ALLOC_STORE, 0, 0, 0);
    run(0, KBTP_OP_ALLOC_STORE, 1, 0, 0);
    hold(1u << RDMA_READ);
    fill(0, 0x44);
    submit(0, KBTP_OP_STORE, 0, 64, 0, 1);
    submit(0, KBTP_OP_STORE, 1, 64, 0, 2);
    expect_nothing_yet(0);
    CU_ASSERT_EQUAL(look_at_workers().reads, 1);
    CU_ASSERT_EQUAL(look_at_workers().requests, 2);
    let_go();
    expect_next(0, 1, KBTP_STATUS_OK);
    expect_next(0, 2, KBTP_STATUS_OK);
    CU_ASSERT_EQUAL(first_octet(0), 0x44);
    CU_ASSERT_EQUAL(first_octet(1), 0x44);
    close_pair();
}

/* ---- while a LOAD is in progress --------------------------------------------------------- */

/* R-RDMAP-05, I-40: a STORE and a LOAD of one block exclude each other. */
static void a_store_waits_for_loads_and_stops_new_ones(void)
{
    open_prepared();
    fill(1, 0);
    fill(2, 0);
    hold(1u << RDMA_WRITE);
    submit_load(1, 1, 1);
    pair_settle(&pair);
    CU_ASSERT_EQUAL(look_at_workers().loads, 1);
    submit(0, KBTP_OP_STORE, 1, 32, KBTP_FLAG_INLINE, 2);
    pair_settle(&pair);
    submit_load(2, 1, 3);
    pair_settle(&pair);
    CU_ASSERT_EQUAL(look_at_workers().locked, 1);
    CU_ASSERT_EQUAL(look_at_workers().loads, 1); /* the third has not begun */
    CU_ASSERT_EQUAL(first_octet(1), 0x11);
    expect_nothing_yet(0);
    let_go();
    expect_next(1, 1, KBTP_STATUS_OK);
    expect_next(0, 2, KBTP_STATUS_OK);
    expect_next(2, 3, KBTP_STATUS_OK);
    CU_ASSERT_EQUAL(loaded_octet(1), 0x11);
    CU_ASSERT_EQUAL(loaded_octet(2), 0x22);
    close_pair();
}

/* I-01, R-LOAD-07, R-FREE-05: the FREE completes at once, the block comes back when nobody reads it
 * any more, and the LOAD gets what it named. */
static void a_freed_block_comes_back_after_its_loads(void)
{
    open_prepared();
    for (uint32_t i = 0; i < 3; i++)
        for (uint32_t n = i ? 0 : 3; n < pair.config.quotas[i]; n++)
            expect_status(run(i, KBTP_OP_ALLOC_STORE, n, 8, 0), KBTP_STATUS_OK);
    uint64_t block_offset = entry(0).block_offset;
    fill(0, 0x55);
    hold(1u << RDMA_WRITE);
    submit_load(1, 0, 1);
    pair_settle(&pair);
    expect_status(run(0, KBTP_OP_FREE, 0, 0, 0), KBTP_STATUS_OK);
    CU_ASSERT_EQUAL(usage_of(0), 5);
    submit(0, KBTP_OP_ALLOC_STORE, 9, 32, KBTP_FLAG_INLINE, 2);
    expect_nothing_yet(0);
    CU_ASSERT_EQUAL(look_at_workers().tickets, 1);
    let_go();
    struct kbtp_outcome outcome = pair_wait(&pair, 1);
    expect_status(outcome, KBTP_STATUS_OK);
    CU_ASSERT_EQUAL(outcome.generation, 2);
    CU_ASSERT_EQUAL(outcome.block_offset, block_offset);
    CU_ASSERT_EQUAL(loaded_octet(1), 0x11);
    outcome = pair_wait(&pair, 0);
    expect_status(outcome, KBTP_STATUS_OK);
    CU_ASSERT_EQUAL(outcome.block_offset, block_offset);
    CU_ASSERT_EQUAL(first_octet(9), 0x55);
    close_pair();
}

/* R-LOAD-07: the same when the data is long there; it is the Write's completion that counts. */
static void a_pin_lasts_until_the_write_completes(void)
{
    open_prepared();
    pair_settle(&pair);
    loop_hold_completions(pair.worker_cpus[0].rdma, true);
    submit_load(1, 0, 1);
    pair_settle(&pair);
    expect_next(1, 1, KBTP_STATUS_OK);
    CU_ASSERT_EQUAL(look_at_workers().loads, 1);
    uint64_t tail = mem_load64(&pair.mem, pair.memory.tail);
    submit(0, KBTP_OP_FREE, 0, 0, 0, 2);
    pair_settle(&pair);
    expect_next(0, 2, KBTP_STATUS_OK);
    CU_ASSERT_EQUAL(mem_load64(&pair.mem, pair.memory.tail), tail);
    loop_hold_completions(pair.worker_cpus[0].rdma, false);
    pair_settle(&pair);
    CU_ASSERT_NOT_EQUAL(mem_load64(&pair.mem, pair.memory.tail), tail);
    CU_ASSERT_EQUAL(look_at_workers().loads, 0);
    close_pair();
}

/* A lost connection ends its LOADs, too: the block goes on. */
static void a_pin_ends_with_its_connection(void)
{
    open_prepared();
    hold(1u << RDMA_WRITE);
    submit_load(1, 0, 1);
    pair_settle(&pair);
    submit(0, KBTP_OP_FREE, 0, 0, 0, 2);
    pair_settle(&pair);
    uint64_t tail = mem_load64(&pair.mem, pair.memory.tail);
    CU_ASSERT_EQUAL(pair_disconnect(&pair, 1), 0);
    pair_settle(&pair);
    CU_ASSERT_NOT_EQUAL(mem_load64(&pair.mem, pair.memory.tail), tail);
    struct kbtp_outcome outcome = pair_wait(&pair, 1);
    CU_ASSERT_EQUAL(outcome.error, -ECONNRESET);
    CU_ASSERT_EQUAL(outcome.cookie, 1);
    let_go();
    for (uint32_t n = 1; n < 3; n++)
        run(0, KBTP_OP_FREE, n, 0, 0);
    CU_ASSERT_EQUAL(pair_connect(&pair, 1), 0);
    pair.initiators[0].outcomes_count = 0;
    expect_all_blocks();
    close_pair();
}

int main(void)
{
    static const struct test tests[] = {
        {"a LOAD overtakes a STORE but completes after it",
         a_load_overtakes_a_store_but_completes_after_it},
        {"a LOAD of the same handle waits", a_load_of_the_same_handle_waits},
        {"effects are in order", effects_are_in_order},
        {"a unit comes back with the completion", a_unit_comes_back_with_the_completion},
        {"staging is waited for", staging_is_waited_for},
        {"a STORE waits for LOADs and stops new ones", a_store_waits_for_loads_and_stops_new_ones},
        {"a freed block comes back after its LOADs", a_freed_block_comes_back_after_its_loads},
        {"a pin lasts until the Write completes", a_pin_lasts_until_the_write_completes},
        {"a pin ends with its connection", a_pin_ends_with_its_connection},
    };
    return run_over_providers("ref/order", tests, sizeof tests / sizeof *tests, 1);
}
