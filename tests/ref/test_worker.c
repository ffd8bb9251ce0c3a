/* SPDX-License-Identifier: BSD-3-Clause */
/* Workers: many requests in flight, credits, several workers on one pool, their limits and end. */
#include <errno.h>
#include <string.h>

#include "tests/ref/fixture.h"

/* ---- pipelines --------------------------------------------------------------------------- */

/* R-VAL-01, R-GEN-01: on one handle without waiting; each sees what those before it did. */
static void requests_of_one_handle_follow_each_other(void)
{
    open_pair();
    fill(0, 0x21);
    for (uint32_t round = 0; round < 20; round++) {
        submit(0, KBTP_OP_ALLOC_STORE, 0, 16, 0, 1);
        submit(0, KBTP_OP_STORE, 0, 24, KBTP_FLAG_INLINE | KBTP_FLAG_SEAL, 2);
        submit(0, KBTP_OP_LOAD, 0, 64, 0, 3);
        submit(0, KBTP_OP_FREE, 0, 0, 0, 4);
        for (uint32_t cookie = 1; cookie <= 4; cookie++) {
            struct kbtp_outcome outcome = pair_wait(&pair, 0);
            expect_status(outcome, KBTP_STATUS_OK);
            CU_ASSERT_EQUAL(outcome.cookie, cookie);
            CU_ASSERT_EQUAL(outcome.data_length, cookie == 1 ? 16 : cookie == 4 ? 0 : 24);
        }
    }
    CU_ASSERT_EQUAL(usage_of(0), 0);
    close_pair();
}

/* A request that is refused in the middle of others does not disturb them (R-VAL-11). */
static void refusals_among_others(void)
{
    struct pair_config config = pair_defaults();
    config.unchecked = true;
    open_connected(&config);
    submit(0, KBTP_OP_ALLOC_STORE, 0, 16, KBTP_FLAG_SEAL, 1);
    submit(0, KBTP_OP_STORE, 0, 16, 0, 2);
    submit(0, KBTP_OP_ALLOC_STORE, 99, 16, 0, 3);
    submit(0, KBTP_OP_LOAD, 0, 64, 0, 4);
    expect_status(pair_wait(&pair, 0), KBTP_STATUS_OK);
    expect_status(pair_wait(&pair, 0), KBTP_STATUS_SEALED);
    expect_status(pair_wait(&pair, 0), KBTP_STATUS_INVALID_HANDLE);
    expect_status(pair_wait(&pair, 0), KBTP_STATUS_OK);
    CU_ASSERT_EQUAL(usage_of(0), 1);
    close_pair();
}

/* ---- credits ----------------------------------------------------------------------------- */

/* Keeps as many LOADs outstanding as there are credits; every outcome must be good. */
static void run_full(uint32_t rounds, uint32_t credits)
{
    struct kbtp_initiator *initiator = pair.initiators[0].initiator;
    struct kbtp_operation load = pair_operation(&pair, 0, KBTP_OP_LOAD, 0, 64, 0);
    struct kbtp_outcome outcome;
    uint32_t sent = 0, told = 0;
    while (told < rounds) {
        while (sent < rounds && kbtp_initiator_credits(initiator) != 0) {
            CU_ASSERT_EQUAL_FATAL(pair_submit(&pair, 0, &load, sent), 0);
            sent++;
        }
        CU_ASSERT_FATAL(kbtp_initiator_outstanding(initiator) <= credits);
        if (sent < rounds)
            CU_ASSERT_EQUAL(pair_submit(&pair, 0, &load, 0), -EAGAIN);
        pair_poll(&pair);
        while (pair_take(&pair, 0, &outcome)) {
            CU_ASSERT_EQUAL_FATAL(outcome.error, 0);
            CU_ASSERT_EQUAL(outcome.cookie, told);
            CU_ASSERT_EQUAL(outcome.status, KBTP_STATUS_OK);
            told++;
        }
    }
}

/* I-27, R-SESS-08, -09, -35, -36: the smaller of both sides' credits; a send never finds the other
 * side without a receive, or the connection would end. */
static void credits_are_kept(void)
{
    static const struct {
        uint32_t depth, request_credits, credits;
    } cases[] = {{4, 4, 4}, {1, 4, 1}, {4, 1, 1}, {1, 1, 1}, {16, 5, 5}, {7, 30, 7}, {30, 30, 30}};
    for (uint32_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct pair_config config = pair_defaults();
        config.depth = cases[i].depth;
        config.target.request_credits = cases[i].request_credits;
        open_connected(&config);
        const struct kbtp_initiator *initiator = pair.initiators[0].initiator;
        /* As many as both have: the target never grants more than the initiator has receives. */
        CU_ASSERT_EQUAL(kbtp_initiator_target(initiator)->request_credits, cases[i].credits);
        CU_ASSERT_EQUAL(kbtp_initiator_credits(initiator), cases[i].credits);
        run(0, KBTP_OP_ALLOC_STORE, 0, 64, KBTP_FLAG_SEAL);
        run_full(300, cases[i].credits);
        CU_ASSERT_EQUAL(kbtp_initiator_outstanding(initiator), 0);
        CU_ASSERT_EQUAL(pair_goodbye(&pair, 0, true), 0); /* I-34: there is always room for it */
        close_pair();
    }
}

/* A device with short queues: then messages wait for room. Each credit needs a receive. */
static void short_queues(void)
{
    for (uint32_t depth = 2; depth < 12; depth++) {
        uint32_t credits = depth - 1 < 3 ? depth - 1 : 3;
        struct pair_config config = pair_defaults();
        struct rdma *handles[PAIR_WORKERS + PAIR_INITIATORS];
        config.initiators = config.workers = 1;
        config.depth = credits;
        config.target.request_credits = credits + 1;
        CU_ASSERT_FATAL(provider->open());
        handles[0] = another_handle();
        handles[1] = another_handle();
        provider->loop->caps.max_queue = depth; /* all that both sides believe */
        if (credits + 2 > depth) {
            CU_ASSERT_EQUAL(pair_open(&pair, &config, handles), -EINVAL);
            config.target.request_credits = credits;
        }
        CU_ASSERT_EQUAL_FATAL(pair_open(&pair, &config, handles), 0);
        CU_ASSERT_EQUAL_FATAL(pair_connect(&pair, 0), 0);
        run(0, KBTP_OP_ALLOC_STORE, 0, 64, KBTP_FLAG_SEAL);
        run_full(100, credits);
        close_pair();
    }
}

/* ---- several workers --------------------------------------------------------------------- */

/* R-QUOTA-08, R-RING-26, -27: what one worker stores the other loads, and what one frees the other
 * hands out. */
static void two_workers_share_a_pool(void)
{
    struct pair_config config = pair_defaults();
    struct kbtp_worker_look look;
    config.unchecked = true;
    open_connected(&config);
    for (uint32_t i = 0; i < 2; i++) {
        kbtp_worker_look(pair.workers[i], &look);
        CU_ASSERT(look.connections == 1 || look.connections == 2);
    }
    for (uint32_t round = 0; round < 5; round++) {
        fill(0, (uint8_t)(round + 1));
        fill(1, 0);
        expect_status(run(0, KBTP_OP_ALLOC_STORE, 0, 64, KBTP_FLAG_SEAL), KBTP_STATUS_OK);
        struct kbtp_operation load = pair_operation(&pair, 0, KBTP_OP_LOAD, 0, 64, 0);
        load.stag = pair.initiators[1].region.stag;
        load.tagged_offset = pair.initiators[1].region.base_to;
        expect_status(pair_do(&pair, 1, &load), KBTP_STATUS_OK);
        CU_ASSERT(holds(1, (uint8_t)(round + 1), 64));
        expect_status(run(0, KBTP_OP_FREE, 0, 0, 0), KBTP_STATUS_OK);
        expect_all_blocks();
    }
    close_pair();
}

/* Beyond max_connections a connection is rejected; when one has ended there is room again. */
static void too_many_connections(void)
{
    struct pair_config config = pair_defaults();
    config.workers = 1;
    config.target.max_connections = 2;
    open_with(&config);
    CU_ASSERT_EQUAL(pair_connect(&pair, 0), 0);
    CU_ASSERT_EQUAL(pair_connect(&pair, 1), 0);
    CU_ASSERT_EQUAL(pair_connect(&pair, 2), -ECONNREFUSED);
    expect_status(run(0, KBTP_OP_ALLOC_STORE, 0, 8, 0), KBTP_STATUS_OK);
    CU_ASSERT_EQUAL(pair_goodbye(&pair, 0, false), 0);
    pair_settle(&pair);
    CU_ASSERT_EQUAL(pair_connect(&pair, 2), 0);
    CU_ASSERT_EQUAL(pair_connect(&pair, 0), -ECONNREFUSED);
    close_pair();
}

/* ---- the end ----------------------------------------------------------------------------- */

/* Requests in flight get their outcome, sessions are retained, nobody comes in any more. */
static void stopping(void)
{
    struct pair_config config = pair_defaults();
    config.workers = 1;
    open_connected(&config);
    struct kbtp_worker *worker = pair.workers[0];
    run(0, KBTP_OP_ALLOC_STORE, 0, 8, 0);
    submit(0, KBTP_OP_LOAD, 0, 64, KBTP_FLAG_ALLOW_UNSEALED, 5);
    CU_ASSERT_FALSE(kbtp_worker_idle(worker));
    kbtp_worker_stop(worker, &pair.worker_cpus[0]);
    pair_settle(&pair);
    CU_ASSERT(kbtp_worker_idle(worker));
    CU_ASSERT_EQUAL(look_at_workers().connections, 0);
    struct kbtp_outcome outcome = pair_wait(&pair, 0);
    CU_ASSERT_EQUAL(outcome.error, -ECONNRESET);
    CU_ASSERT_EQUAL(outcome.cookie, 5);
    for (uint32_t i = 0; i < 3; i++) {
        CU_ASSERT(pair_is_down(&pair, i));
        CU_ASSERT_EQUAL(state_of(i), KBTP_SESSION_RETAINED);
        CU_ASSERT_EQUAL(mem_load64(&pair.mem, &pair.memory.sessions[i].usage), i == 0);
        CU_ASSERT_EQUAL(pair_connect(&pair, i), -ECONNREFUSED);
    }
    CU_ASSERT_EQUAL(kbtp_worker_deferred(worker), 0);
    close_pair();
}

/* R-QUOTA-18, I-04, I-25: a source that cannot be read ends the connection; the block is given
 * back, and a mapped block is as it was. */
static void data_that_cannot_be_read(void)
{
    static const uint8_t opcodes[] = {KBTP_OP_ALLOC_STORE, KBTP_OP_STORE};
    struct pair_config config = pair_defaults();
    config.unchecked = true;
    open_connected(&config);
    fill(0, 0x31);
    run(0, KBTP_OP_ALLOC_STORE, 1, 32, 0);
    for (uint32_t round = 0; round < 40; round++) {
        struct kbtp_operation operation =
            pair_operation(&pair, 0, opcodes[round % 2], round % 2, 64, 0);
        operation.tagged_offset += PAIR_BUFFER - 63;
        CU_ASSERT_EQUAL(pair_do(&pair, 0, &operation).error, -ECONNRESET);
        CU_ASSERT_EQUAL_FATAL(pair_disconnect(&pair, 0), 0);
        CU_ASSERT_EQUAL_FATAL(pair_connect(&pair, 0), 0);
        CU_ASSERT_EQUAL(usage_of(0), 1);
    }
    fill(0, 0);
    struct kbtp_outcome outcome = run(0, KBTP_OP_LOAD, 1, 64, KBTP_FLAG_ALLOW_UNSEALED);
    CU_ASSERT_EQUAL(outcome.data_length, 32);
    CU_ASSERT_EQUAL(outcome.generation, 2);
    CU_ASSERT(holds(0, 0x31, 32));
    run(0, KBTP_OP_FREE, 1, 0, 0);
    expect_all_blocks();
    close_pair();
}

/* A buffer that cannot be written ends the connection, and the block is not kept. */
static void buffers_that_cannot_be_written(void)
{
    struct pair_config config = pair_defaults();
    config.unchecked = true;
    open_connected(&config);
    run(0, KBTP_OP_ALLOC_STORE, 0, 64, KBTP_FLAG_SEAL);
    for (uint32_t round = 0; round < 10; round++) {
        struct kbtp_operation load = pair_operation(&pair, 0, KBTP_OP_LOAD, 0, 64, 0);
        load.stag ^= 0x55;
        CU_ASSERT_EQUAL(pair_do(&pair, 0, &load).error, -ECONNRESET);
        CU_ASSERT_EQUAL_FATAL(pair_disconnect(&pair, 0), 0);
        CU_ASSERT_EQUAL_FATAL(pair_connect(&pair, 0), 0);
    }
    pair_settle(&pair);
    for (uint32_t block = 0; block < 16; block++)
        CU_ASSERT_EQUAL(mem_load64(&pair.mem, &pair.memory.pins[block]), 0);
    expect_status(run(0, KBTP_OP_FREE, 0, 0, 0), KBTP_STATUS_OK);
    expect_all_blocks();
    close_pair();
}

int main(void)
{
    static const struct test tests[] = {
        {"requests of one handle follow each other", requests_of_one_handle_follow_each_other},
        {"refusals among others", refusals_among_others},
        {"credits are kept", credits_are_kept},
        {"two workers share a pool", two_workers_share_a_pool},
        {"too many connections", too_many_connections},
        {"stopping", stopping},
        {"data that cannot be read", data_that_cannot_be_read},
        {"buffers that cannot be written", buffers_that_cannot_be_written},
    };
    static const struct test of_loop[] = {
        {"short queues", short_queues},
    };
    return run_over_providers("ref/worker", tests, sizeof tests / sizeof *tests, PROVIDERS) ||
           run_over_providers("ref/worker", of_loop, sizeof of_loop / sizeof *of_loop, 1);
}
