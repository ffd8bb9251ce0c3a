/* SPDX-License-Identifier: BSD-3-Clause */
/* A HELLO for a session whose connection is not known to be over (I-16). */
#include <errno.h>

#include "tests/ref/fixture.h"

/* A second host with the Initiator ID of initiator 0. */
static struct kbtp_initiator *twin;
static struct kbtp_cpu twin_cpu;
static uint64_t memory[1024], buffers[1024];

static void open_with_twin(uint32_t retries)
{
    struct pair_config config = pair_defaults();
    config.initiators = 2;
    config.unchecked = true;
    config.target.probe_ns = 5000;
    open_connected(&config);
    struct kbtp_initiator_config twin_config = pair.initiators[0].config;
    twin_config.retries = retries;
    twin_config.retry_first_ns = twin_config.retry_longest_ns = 1000;
    twin_cpu = (struct kbtp_cpu){&pair.mem, another_handle()};
    CU_ASSERT_EQUAL_FATAL(kbtp_initiator_init(&twin, &twin_cpu, &twin_config, memory, buffers), 0);
    expect_status(run(0, KBTP_OP_ALLOC_STORE, 2, 8, KBTP_FLAG_SEAL), KBTP_STATUS_OK);
}

static void poll_all(void)
{
    struct kbtp_outcome outcome;
    for (uint32_t n = 0; n < 100; n++) {
        pair_poll(&pair);
        kbtp_initiator_poll(twin, &twin_cpu, &outcome, 1);
    }
}

static void twin_comes(void)
{
    CU_ASSERT_EQUAL_FATAL(kbtp_initiator_connect(twin, &twin_cpu), 0);
    poll_all();
}

static void twin_is_rejected(void)
{
    CU_ASSERT_EQUAL(kbtp_initiator_state(twin), KBTP_INITIATOR_DOWN);
    CU_ASSERT_EQUAL(kbtp_initiator_why(twin), KBTP_STATUS_INTERNAL);
}

/* It has the session, with the block that initiator 0 had bound. */
static void twin_is_accepted(void)
{
    CU_ASSERT_EQUAL(kbtp_initiator_state(twin), KBTP_INITIATOR_READY);
    CU_ASSERT_EQUAL(kbtp_initiator_target(twin)->handle_base, 0x4000);
    CU_ASSERT_EQUAL(state_of(0), KBTP_SESSION_ACTIVE);
    CU_ASSERT_EQUAL(usage_of(0), 1);
    CU_ASSERT(pair_is_down(&pair, 0));
}

static void close_with_twin(void)
{
    kbtp_initiator_disconnect(twin, &twin_cpu);
    poll_all();
    CU_ASSERT_EQUAL(kbtp_initiator_end(twin, &twin_cpu), 0);
    close_pair();
}

/* The worker that serves session 0, and how many of its timers for connections were armed. */
static uint32_t time_is_over(void)
{
    uint32_t armed = 0;
    for (uint32_t i = 0; i < pair.config.workers; i++)
        for (uint32_t conn = 0; conn < pair.config.target.max_connections; conn++)
            armed += provider->expire(pair.worker_cpus[i].rdma, pair.target.sessions.count + conn);
    poll_all();
    return armed;
}

/* R-SESS-14: again and again the first one answers, and goes on undisturbed. */
static void who_lives_is_kept(void)
{
    open_with_twin(0);
    for (uint32_t round = 0; round < 3; round++) {
        twin_comes();
        twin_is_rejected();
        CU_ASSERT_EQUAL(look_at_workers().probes, 0);
        CU_ASSERT_EQUAL(time_is_over(), 0);
        expect_status(run(0, KBTP_OP_LOAD, 2, 64, 0), KBTP_STATUS_OK);
    }
    CU_ASSERT_EQUAL(state_of(0), KBTP_SESSION_ACTIVE);
    close_with_twin();
}

#define PROBES (1u << RDMA_WRITE | 1u << RDMA_READ)

/* R-SESS-15, -33: without an answer in time the old connection ends, and the HELLO that waited
 * finds everything. The rejections of before do not count as answers. */
static void who_is_silent_is_replaced(void)
{
    open_with_twin(0);
    twin_comes();
    twin_is_rejected();
    hold(PROBES);
    twin_comes();
    CU_ASSERT_EQUAL(kbtp_initiator_state(twin), KBTP_INITIATOR_CONNECTING);
    CU_ASSERT_EQUAL(look_at_workers().probes, 1);
    CU_ASSERT_EQUAL(look_at_workers().hellos, 1);
    CU_ASSERT_EQUAL(state_of(0), KBTP_SESSION_ACTIVE);
    CU_ASSERT_EQUAL(time_is_over(), 1);
    twin_is_accepted();
    CU_ASSERT_EQUAL(look_at_workers().probes, 0);
    let_go();
    CU_ASSERT_EQUAL(time_is_over(), 0);
    close_with_twin();
}

/* An answer that comes while the HELLO waits. */
static void a_late_answer_counts(void)
{
    open_with_twin(0);
    hold(PROBES);
    twin_comes();
    CU_ASSERT_EQUAL(look_at_workers().probes, 1);
    let_go();
    poll_all();
    twin_is_rejected();
    CU_ASSERT_EQUAL(time_is_over(), 0);
    expect_status(run(0, KBTP_OP_LOAD, 2, 64, 0), KBTP_STATUS_OK);
    close_with_twin();
}

/* The connection is lost while it is asked: its timer is forgotten, and nothing else ends later. */
static void a_loss_is_an_answer(void)
{
    open_with_twin(0);
    hold(PROBES);
    twin_comes();
    CU_ASSERT_EQUAL(look_at_workers().probes, 1);
    provider->cut(pair.initiators[0].cpu.rdma, 0);
    poll_all();
    twin_is_accepted();
    CU_ASSERT_EQUAL(time_is_over(), 0);
    let_go();
    twin_is_accepted();
    close_with_twin();
}

/* Who is rejected tries again by itself, until the old connection is over. */
static void who_waits_is_accepted(void)
{
    open_with_twin(2);
    twin_comes();
    CU_ASSERT_EQUAL(kbtp_initiator_state(twin), KBTP_INITIATOR_WAITING);
    CU_ASSERT_EQUAL(kbtp_initiator_why(twin), KBTP_STATUS_INTERNAL);
    CU_ASSERT_EQUAL(pair_disconnect(&pair, 0), 0);
    pair_settle(&pair);
    CU_ASSERT(provider->expire(twin_cpu.rdma, 0));
    poll_all();
    twin_is_accepted();
    close_with_twin();
}

int main(void)
{
    static const struct test tests[] = {
        {"who lives is kept", who_lives_is_kept},
        {"who waits is accepted", who_waits_is_accepted},
    };
    static const struct test of_loop[] = {
        {"who is silent is replaced", who_is_silent_is_replaced},
        {"a late answer counts", a_late_answer_counts},
        {"a loss is an answer", a_loss_is_an_answer},
    };
    return run_over_providers("ref/half open", tests, sizeof tests / sizeof *tests, PROVIDERS) ||
           run_over_providers("ref/half open", of_loop, sizeof of_loop / sizeof *of_loop, 1);
}
