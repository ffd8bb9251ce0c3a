/* SPDX-License-Identifier: BSD-3-Clause */
/* The end of sessions that nobody comes back to (draft: Session Establishment; I-33). */
#include <errno.h>

#include "tests/ref/fixture.h"

static struct pair_config keeps_for_a_while(void)
{
    struct pair_config config = pair_defaults();
    config.unchecked = true;
    config.target.retention_ns = 5000;
    return config;
}

/* Lets the timer of a session expire at every worker; returns at how many it was armed. */
static uint32_t time_passes(uint32_t session)
{
    uint32_t armed = 0;
    for (uint32_t i = 0; i < pair.config.workers; i++)
        armed += provider->expire(pair.worker_cpus[i].rdma, session);
    pair_settle(&pair);
    return armed;
}

/* R-SESS-34: as RELEASE, all that is bound is freed, once, and only of this session; the quota is
 * free. */
static void what_nobody_comes_back_to_is_freed(void)
{
    struct pair_config config = keeps_for_a_while();
    open_connected(&config);
    uint16_t bound[4];
    for (uint32_t i = 0; i < 2; i++)
        for (uint32_t n = 0; n < 4; n++) {
            struct kbtp_outcome stored = run(i, KBTP_OP_ALLOC_STORE, 3 * n, 8, KBTP_FLAG_SEAL);
            expect_status(stored, KBTP_STATUS_OK);
            if (i == 0)
                bound[n] = stored.generation;
        }
    CU_ASSERT_EQUAL(time_passes(0), 0); /* it has a connection */
    lose_connection(0);
    CU_ASSERT_EQUAL(state_of(0), KBTP_SESSION_RETAINED);
    CU_ASSERT_EQUAL(time_passes(1), 0);
    CU_ASSERT_EQUAL(time_passes(0), 1);
    CU_ASSERT_EQUAL(state_of(0), KBTP_SESSION_FREE);
    CU_ASSERT_EQUAL(time_passes(0), 0);
    CU_ASSERT_EQUAL_FATAL(pair_connect(&pair, 0), 0);
    for (uint32_t n = 0; n < 4; n++) {
        struct kbtp_outcome gone = run(0, KBTP_OP_LOAD, 3 * n, 64, 0);
        /* The range is the same one, and its Generations go on: old handles are stale. */
        expect_refused(gone, KBTP_STATUS_NOT_VALID, (uint16_t)(bound[n] + 1));
        expect_status(run(1, KBTP_OP_FREE, 3 * n, 0, 0), KBTP_STATUS_OK);
    }
    expect_all_blocks();
    close_pair();
}

/* R-SESS-33: a connection in time finds everything as it was; the timer of an earlier retention, at
 * whichever worker, ends nothing then, and nothing later. */
static void whoever_comes_in_time_finds_all(void)
{
    struct pair_config config = keeps_for_a_while();
    open_connected(&config);
    expect_status(run(0, KBTP_OP_ALLOC_STORE, 0, 8, KBTP_FLAG_SEAL), KBTP_STATUS_OK);
    for (uint32_t round = 0; round < 4; round++) { /* the workers take turns */
        lose_connection(0);
        CU_ASSERT_EQUAL_FATAL(pair_connect(&pair, 0), 0);
        CU_ASSERT(time_passes(0) >= 1);
        CU_ASSERT_EQUAL(state_of(0), KBTP_SESSION_ACTIVE);
        expect_status(run(0, KBTP_OP_LOAD, 0, 64, 0), KBTP_STATUS_OK);
    }
    lose_connection(0); /* armed by one worker ... */
    CU_ASSERT_EQUAL_FATAL(pair_connect(&pair, 0), 0);
    lose_connection(0); /* ... and, for a later retention, by the other one */
    CU_ASSERT_EQUAL(state_of(0), KBTP_SESSION_RETAINED);
    uint32_t armed = time_passes(0);
    CU_ASSERT(armed == 2 || (armed == 1 && provider->real));
    CU_ASSERT_EQUAL(state_of(0), KBTP_SESSION_FREE);
    CU_ASSERT_EQUAL_FATAL(pair_connect(&pair, 0), 0);
    expect_all_blocks();
    close_pair();
}

/* The worker whose connection serves a session. */
static uint32_t server_of(uint32_t session)
{
    uint32_t usage;
    for (uint32_t i = 0; i < pair.config.workers; i++)
        if (kbtp_worker_usage(pair.workers[i], session, &usage))
            return i;
    return UINT32_MAX;
}

/* An old timer alone: the later retention, at another worker, lasts. */
static void an_old_timer_ends_nothing(void)
{
    struct pair_config config = keeps_for_a_while();
    open_connected(&config);
    expect_status(run(0, KBTP_OP_ALLOC_STORE, 0, 8, KBTP_FLAG_SEAL), KBTP_STATUS_OK);
    uint32_t first = server_of(0);
    lose_connection(0);
    CU_ASSERT_EQUAL_FATAL(pair_connect(&pair, 0), 0);
    uint32_t second = server_of(0);
    CU_ASSERT_FATAL(first + second == 1 || provider->real); /* they take turns */
    lose_connection(0);
    if (first != second) {
        CU_ASSERT(provider->expire(pair.worker_cpus[first].rdma, 0));
        pair_settle(&pair);
        CU_ASSERT_EQUAL(state_of(0), KBTP_SESSION_RETAINED);
    }
    CU_ASSERT(provider->expire(pair.worker_cpus[second].rdma, 0));
    pair_settle(&pair);
    CU_ASSERT_EQUAL(state_of(0), KBTP_SESSION_FREE);
    CU_ASSERT_EQUAL_FATAL(pair_connect(&pair, 0), 0);
    expect_all_blocks();
    close_pair();
}

/* RELEASE leaves nothing to be kept. Without a retention time a session is kept for ever. */
static void when_nothing_is_timed(void)
{
    struct pair_config config = keeps_for_a_while();
    open_connected(&config);
    expect_status(run(0, KBTP_OP_ALLOC_STORE, 0, 8, 0), KBTP_STATUS_OK);
    CU_ASSERT_EQUAL(pair_goodbye(&pair, 0, true), 0);
    pair_settle(&pair);
    CU_ASSERT_EQUAL(state_of(0), KBTP_SESSION_FREE);
    CU_ASSERT_EQUAL(time_passes(0), 0);
    CU_ASSERT_EQUAL(pair_goodbye(&pair, 1, false), 0);
    pair_settle(&pair);
    CU_ASSERT_EQUAL(time_passes(1), 1);
    CU_ASSERT_EQUAL(state_of(1), KBTP_SESSION_FREE);
    close_pair();

    config.target.retention_ns = 0;
    open_connected(&config);
    expect_status(run(0, KBTP_OP_ALLOC_STORE, 0, 8, 0), KBTP_STATUS_OK);
    lose_connection(0);
    CU_ASSERT_EQUAL(time_passes(0), 0);
    CU_ASSERT_EQUAL(state_of(0), KBTP_SESSION_RETAINED);
    close_pair();
}

/* A block that is still read when retention ends goes back to the ring after its reader. */
static void readers_keep_their_block(void)
{
    struct pair_config config = keeps_for_a_while();
    open_connected(&config);
    fill(0, 0x5a);
    expect_status(run(0, KBTP_OP_ALLOC_STORE, 0, 64, KBTP_FLAG_SEAL), KBTP_STATUS_OK);
    hold(1u << RDMA_WRITE);
    struct kbtp_operation load = pair_operation(&pair, 0, KBTP_OP_LOAD, 0, 64, 0);
    struct pair_initiator *reader = &pair.initiators[1];
    load.tagged_offset = reader->region.base_to;
    load.stag = reader->region.stag;
    fill(1, 0);
    CU_ASSERT_EQUAL_FATAL(pair_submit(&pair, 1, &load, 1), 0);
    lose_connection(0);
    CU_ASSERT_EQUAL(time_passes(0), 1);
    CU_ASSERT_EQUAL(state_of(0), KBTP_SESSION_FREE);
    CU_ASSERT_EQUAL(mem_load64(&pair.mem, &pair.memory.pins[0]), KBTP_PIN_FREED | KBTP_PIN_READER);
    let_go();
    expect_status(pair_wait(&pair, 1), KBTP_STATUS_OK);
    CU_ASSERT(holds(1, 0x5a, 64));
    CU_ASSERT_EQUAL(mem_load64(&pair.mem, &pair.memory.pins[0]), 0);
    CU_ASSERT_EQUAL_FATAL(pair_connect(&pair, 0), 0);
    expect_all_blocks();
    close_pair();
}

int main(void)
{
    static const struct test tests[] = {
        {"what nobody comes back to is freed", what_nobody_comes_back_to_is_freed},
        {"whoever comes in time finds all", whoever_comes_in_time_finds_all},
        {"an old timer ends nothing", an_old_timer_ends_nothing},
        {"when nothing is timed", when_nothing_is_timed},
    };
    /* Only the loop holds a Write back. */
    static const struct test of_loop[] = {
        {"readers keep their block", readers_keep_their_block},
    };
    return run_over_providers("ref/retention", tests, sizeof tests / sizeof *tests, PROVIDERS) ||
           run_over_providers("ref/retention", of_loop, sizeof of_loop / sizeof *of_loop, 1);
}
