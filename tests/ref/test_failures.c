/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Everything that a device can refuse, fails in turn: the k-th call of each operation, for every k
 * that set-up, a short run of all requests, and the end make; then the k-th completion of each
 * kind, with each status. Each run must end, somebody must be told, and afterwards, with a healthy
 * device, sessions reconnect and every block can be allocated, stored, loaded and freed.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "ref/counters.h"
#include "tests/net/failing.h"
#include "tests/ref/fixture.h"

#define OCTETS 32u /* of every store */

static struct failing_plan plan;
static struct failing handles[PAIR_WORKERS + PAIR_INITIATORS];
static struct kbtp_counters counted[PAIR_WORKERS];
static uint32_t problems;            /* that somebody was told of */
static uint32_t runs, injected_runs; /* of all tests */

#define ERRORS 8u /* more than failing_error() has of any call */

/* How often each was injected, over the present provider. */
static uint32_t injected_errors[FAILING_CALLS][ERRORS];
static uint32_t injected_statuses[RDMA_RECV + 1][RDMA_LOST + 1];

/* ---- a run ------------------------------------------------------------------------------- */

static int open_failing(void)
{
    struct rdma *rdmas[PAIR_WORKERS + PAIR_INITIATORS];
    struct pair_config config = pair_defaults();
    config.unchecked = true;
    config.target.first_generation = 0; /* random: a call that may fail */
    config.target.retention_ns = 1000;
    config.handles = 8;
    config.features =
        KBTP_FEATURE_DIRECT_LOAD | KBTP_FEATURE_DIRECT_ALLOC | KBTP_FEATURE_RECORD_COMPLETION;
    config.target.ticket_timeout_ms = 1000;
    CU_ASSERT_FATAL(provider->open());
    if (provider->loop) /* where records are granted */
        provider->loop->caps.binding = RDMA_BINDING_INFINIBAND;
    for (uint32_t i = 0; i < PAIR_WORKERS + PAIR_INITIATORS; i++)
        rdmas[i] = failing_handle(&handles[i], another_handle(), &plan);
    int failed = pair_open(&pair, &config, rdmas);
    memset(counted, 0, sizeof counted);
    for (uint32_t i = 0; i < PAIR_WORKERS && !failed; i++)
        kbtp_worker_count_in(pair.workers[i], &counted[i]);
    return failed;
}

static void note(int error)
{
    problems += error != 0;
}

static bool is_ready(uint32_t i)
{
    return kbtp_initiator_state(pair.initiators[i].initiator) == KBTP_INITIATOR_READY;
}

static uint8_t octet_of(uint32_t i, uint32_t n)
{
    return (uint8_t)(16 * (i + 1) + n);
}

/* There is an outcome for each request. What was loaded is what is always stored there. */
static void take_outcome(uint32_t i)
{
    struct kbtp_outcome outcome = pair_wait(&pair, i);
    if (plan.call != FAILING_DISCONNECT) /* or it comes when it is asked to disconnect again */
        CU_ASSERT_NOT_EQUAL(outcome.error, -ETIMEDOUT);
    note(outcome.error);
    if (outcome.error == 0 && outcome.status == KBTP_STATUS_OK && outcome.opcode == KBTP_OP_LOAD)
        CU_ASSERT(holds(i, octet_of(i, (uint32_t)outcome.handle % 8), OCTETS));
}

static bool send_one(uint32_t i, uint8_t opcode, uint32_t n, uint16_t flags)
{
    struct kbtp_operation operation =
        pair_operation(&pair, i, opcode, n, opcode == KBTP_OP_LOAD ? 64 : OCTETS, flags);
    int failed = pair_submit(&pair, i, &operation, n);
    note(failed);
    return failed == 0;
}

static void do_one(uint32_t i, uint8_t opcode, uint32_t n, uint16_t flags)
{
    fill(i, opcode == KBTP_OP_LOAD ? 0 : octet_of(i, n));
    if (send_one(i, opcode, n, flags))
        take_outcome(i);
}

static void do_four_at_once(uint32_t i)
{
    uint32_t sent = 0;
    fill(i, octet_of(i, 3));
    sent += send_one(i, KBTP_OP_ALLOC_STORE, 3, 0);
    sent += send_one(i, KBTP_OP_STORE, 3, KBTP_FLAG_SEAL);
    sent += send_one(i, KBTP_OP_ALLOC_STORE, 4, KBTP_FLAG_INLINE);
    sent += send_one(i, KBTP_OP_FREE, 3, 0);
    while (sent-- > 0)
        take_outcome(i);
}

/* A LOAD into a region that the completion invalidates. */
static void load_and_invalidate(uint32_t i, uint32_t n)
{
    static uint64_t octets[8];
    struct rdma_region region;
    struct rdma *rdma = pair.initiators[i].cpu.rdma;
    const uint32_t access = RDMA_LOCAL_WRITE | RDMA_REMOTE_WRITE;
    int failed = rdma_reg(rdma, octets, sizeof octets, access, 0, &region);
    note(failed);
    if (failed)
        return;
    struct kbtp_operation load =
        pair_operation(&pair, i, KBTP_OP_LOAD, n, 64, KBTP_FLAG_INVALIDATE);
    load.stag = region.stag;
    load.tagged_offset = region.base_to;
    failed = pair_submit(&pair, i, &load, 0);
    if (!failed)
        failed = pair_wait(&pair, i).error;
    note(failed);
    failed = rdma_dereg(rdma, &region);
    note(failed);
    if (failed) /* as the caller of a device would: again */
        CU_ASSERT_EQUAL(rdma_dereg(rdma, &region), 0);
}

/* Past the target. */
static void load_directly(uint32_t i, uint32_t n)
{
    struct pair_initiator *it = &pair.initiators[i];
    struct kbtp_direct_load load = {.handle = pair.config.target.first_handle +
                                              i * pair.config.handles + n,
                                    .into = it->data,
                                    .lkey = it->region.lkey,
                                    .length = 64};
    fill(i, 0);
    int failed = kbtp_initiator_direct_load(it->initiator, &it->cpu, &load, n);
    note(failed);
    if (!failed)
        take_outcome(i);
}

/* Two at once, by itself; the ticket of one that fails is taken back with the connection. */
static void store_directly(uint32_t i, uint32_t n)
{
    struct pair_initiator *it = &pair.initiators[i];
    uint32_t begun = 0;
    for (uint32_t k = 0; k < 2; k++) {
        struct kbtp_direct_store store = {.handle = pair.config.target.first_handle +
                                                    i * pair.config.handles + n + k,
                                          .data = it->data,
                                          .lkey = it->region.lkey,
                                          .length = 64};
        int failed = kbtp_initiator_direct_store(it->initiator, &it->cpu, &store, n + k);
        note(failed);
        begun += failed == 0;
    }
    while (begun-- > 0)
        take_outcome(i);
}

/* Its retention ends while it is away, if it has got that far. */
static void let_retention_end(uint32_t i)
{
    note(is_ready(i) ? pair_goodbye(&pair, i, false) : -ENOTCONN);
    pair_settle(&pair);
    for (uint32_t worker = 0; worker < PAIR_WORKERS; worker++)
        provider->expire(handles[worker].inner, i);
    pair_settle(&pair);
    note(pair_is_down(&pair, i) ? pair_connect(&pair, i) : -EISCONN);
}

/* All requests, both kinds of GOODBYE and the end of a retention; whatever fails, it goes on. */
static void run_all(void)
{
    for (uint32_t i = 0; i < 3; i++)
        note(pair_connect(&pair, i));
    for (uint32_t i = 0; i < 3; i++) {
        do_one(i, KBTP_OP_ALLOC_STORE, 0, KBTP_FLAG_SEAL);
        do_one(i, KBTP_OP_ALLOC_STORE, 1, KBTP_FLAG_INLINE);
        do_one(i, KBTP_OP_STORE, 1, 0);
        do_one(i, KBTP_OP_STORE, 1, KBTP_FLAG_INLINE | KBTP_FLAG_SEAL);
        do_one(i, KBTP_OP_LOAD, 1, 0);
        do_one(i, KBTP_OP_LOAD, 7, 0); /* NOT_VALID */
        do_one(i, KBTP_OP_LOAD, 1, KBTP_FLAG_RECORD);
        do_four_at_once(i);
        do_one(i, KBTP_OP_FREE, 1, 0);
    }
    struct rdma_caps caps;
    rdma_caps(handles[0].inner, &caps);
    if (caps.bits & RDMA_CAP_INV_REGION)
        load_and_invalidate(2, 0);
    load_directly(2, 0);
    const uint32_t needed = RDMA_CAP_WINDOW | RDMA_CAP_FETCH_ADD;
    if (!(needed & ~caps.bits))
        store_directly(2, 5);
    for (uint32_t i = 0; i < 2; i++) {
        note(is_ready(i) ? pair_goodbye(&pair, i, i == 1) : -ENOTCONN);
        note(pair_is_down(&pair, i) ? pair_connect(&pair, i) : -EISCONN);
    }
    do_one(0, KBTP_OP_LOAD, 0, 0);
    do_one(1, KBTP_OP_ALLOC_STORE, 1, 0);
    let_retention_end(2);
    do_one(2, KBTP_OP_LOAD, 0, 0); /* NOT_VALID */
    for (uint32_t i = 0; i < 3; i++)
        note(!is_ready(i));
    note(pair.error);
}

/* ---- afterwards -------------------------------------------------------------------------- */

static void disarm(void)
{
    plan.call_number = plan.completion_number = plan.chain_number = 0;
    pair.error = 0;
}

/* Twice: the first time the device may have refused. */
static void get_down(uint32_t i)
{
    for (uint32_t n = 0; n < 2 && !pair_is_down(&pair, i); n++)
        pair_disconnect(&pair, i);
    CU_ASSERT_FATAL(pair_is_down(&pair, i));
    pair.initiators[i].outcomes_count = 0;
    CU_ASSERT_EQUAL(kbtp_initiator_outstanding(pair.initiators[i].initiator), 0);
}

/* R-OPER-03: no connection and no session is left, so each that began is counted where it ended,
 * however it did. (Nobody sends here what ends a connection in another way.) */
static void expect_balance(void)
{
    struct kbtp_counters sum = {0};
    for (uint32_t i = 0; i < PAIR_WORKERS; i++)
        kbtp_worker_counters(pair.workers[i], &sum);
    const uint64_t *values = sum.values;
    uint64_t goodbyes = sum.requests[KBTP_COUNTED_GOODBYE][KBTP_STATUS_OK];
    CU_ASSERT_EQUAL(values[KBTP_COUNT_ACCEPTED],
                    values[KBTP_COUNT_LOST] + values[KBTP_COUNT_REFUSED] + goodbyes);
    CU_ASSERT_EQUAL(values[KBTP_COUNT_OPENED] + values[KBTP_COUNT_RESTORED],
                    values[KBTP_COUNT_RETAINED] + values[KBTP_COUNT_RELEASED]);
    CU_ASSERT_EQUAL(values[KBTP_COUNT_FREES_DEFERRED], values[KBTP_COUNT_FREES_WRITTEN]);
}

/* R-RING-26, R-QUOTA-18: no block is lost, and none is bound or used in the end. */
static void expect_recovery(void)
{
    for (uint32_t i = 0; i < 3; i++)
        get_down(i);
    for (uint32_t i = 0; i < 3; i++) {
        CU_ASSERT_EQUAL_FATAL(pair_connect(&pair, i), 0);
        CU_ASSERT_EQUAL(pair_goodbye(&pair, i, true), 0);
        CU_ASSERT_EQUAL_FATAL(pair_connect(&pair, i), 0);
        CU_ASSERT_EQUAL(usage_of(i), 0);
    }
    expect_all_blocks();
    for (uint32_t i = 0; i < 3; i++)
        CU_ASSERT_EQUAL(pair_goodbye(&pair, i, true), 0);
    pair_settle(&pair);
    for (uint32_t i = 0; i < 3; i++) {
        CU_ASSERT_EQUAL(state_of(i), KBTP_SESSION_FREE);
        CU_ASSERT_EQUAL(mem_load64(&pair.mem, &pair.memory.sessions[i].usage), 0);
    }
    for (uint32_t block = 0; block < 16; block++)
        CU_ASSERT_EQUAL(mem_load64(&pair.mem, &pair.memory.pins[block]), 0);
    CU_ASSERT_EQUAL(look_at_workers().deferred, 0);
    expect_balance();
}

/* What the device did not take back when it was asked it keeps. */
static bool is_kept(void)
{
    return plan.injected && (plan.call == FAILING_DEREG || plan.call == FAILING_CQ_DESTROY ||
                             plan.call == FAILING_DESTROY || plan.call == FAILING_WINDOW_FREE ||
                             plan.call == FAILING_CHAIN_DESTROY);
}

static void close_failing(void)
{
    int failed = pair_close(&pair);
    note(failed);
    note(pair.error);
    if (is_kept()) {
        CU_ASSERT(failed == 0 || failed == -EBUSY || failed == plan.error);
    } else {
        CU_ASSERT_EQUAL(failed, 0);
        CU_ASSERT_EQUAL(provider->left(), 0);
    }
}

static void count_injected(const struct failing_plan *done)
{
    injected_runs++;
    if (done->completion_number != 0)
        injected_statuses[done->op][done->status]++;
    for (uint32_t n = 0; done->call_number != 0 && n < ERRORS; n++)
        injected_errors[done->call][n] += failing_error(done->call, n) == done->error;
}

/* One run with this plan; was anything injected? */
static bool try(const struct failing_plan *wanted)
{
    plan = *wanted;
    plan.cut = provider->cut;
    problems = 0;
    runs++;
    int failed = open_failing();
    if (failed) {
        CU_ASSERT(plan.injected);
        CU_ASSERT_EQUAL(failed, plan.error);
        CU_ASSERT_EQUAL(provider->left(), 0);
        problems++;
    } else {
        run_all();
        if (plan.injected) {
            disarm();
            expect_recovery();
        }
        close_failing();
    }
    /* To destroy a connection too early, to end what has ended, to be asked again for a timer or a
     * ticket: nobody needs to know. */
    if (plan.call != FAILING_DESTROY && plan.call != FAILING_DISCONNECT &&
        plan.call != FAILING_TIMER && !(plan.call == FAILING_CHAIN_PUT && plan.error == -ENOMEM))
        CU_ASSERT_EQUAL(problems != 0, plan.injected);
    provider->close();
    if (plan.injected)
        count_injected(wanted);
    return plan.injected;
}

/* ---- tests ------------------------------------------------------------------------------- */

/* R-RDMAP-05: the plan that injects nothing: all goes well. Counting begins here anew. */
static void nothing_fails(void)
{
    const struct failing_plan none = {0};
    memset(injected_errors, 0, sizeof injected_errors);
    memset(injected_statuses, 0, sizeof injected_statuses);
    CU_ASSERT_FALSE(try(&none));
    CU_ASSERT_EQUAL(problems, 0);
}

/* For every k up to the first that is not reached. */
static void each_call(enum failing_call call)
{
    for (uint32_t n = 0; failing_error(call, n) != 0; n++) {
        struct failing_plan wanted = {.call = call, .error = failing_error(call, n)};
        do
            wanted.call_number++;
        while (try(&wanted));
    }
}

static void calls_of_set_up_and_end_fail(void)
{
    static const enum failing_call calls[] = {
        FAILING_REG,         FAILING_DEREG,     FAILING_WINDOW_ALLOC,
        FAILING_WINDOW_FREE, FAILING_CQ_CREATE, FAILING_LISTEN,
        FAILING_CQ_DESTROY,  FAILING_RANDOM,    FAILING_TIMER};
    for (uint32_t i = 0; i < sizeof calls / sizeof *calls; i++)
        each_call(calls[i]);
}

static void calls_about_connections_fail(void)
{
    static const enum failing_call calls[] = {FAILING_CONNECT, FAILING_ACCEPT, FAILING_DISCONNECT,
                                              FAILING_DESTROY};
    for (uint32_t i = 0; i < sizeof calls / sizeof *calls; i++)
        each_call(calls[i]);
}

static void sends_fail(void)
{
    each_call(FAILING_POST_SEND);
}

static void receives_fail(void)
{
    each_call(FAILING_POST_RECV);
}

/* Once: a device whose queue has overflowed for good cannot be drained. */
static void polls_fail(void)
{
    each_call(FAILING_CQ_POLL);
}

/* Those of the protocol. */
static const enum rdma_op ops[] = {RDMA_SEND,      RDMA_SEND_INV, RDMA_WRITE, RDMA_READ,
                                   RDMA_FETCH_ADD, RDMA_BIND,     RDMA_RECV};

#define OPS (sizeof ops / sizeof *ops)

static void completions_fail(void)
{
    for (uint32_t i = 0; i < OPS; i++)
        for (uint32_t status = RDMA_FLUSHED; status <= RDMA_LOST; status++) {
            struct failing_plan wanted = {.op = ops[i], .status = (enum rdma_status)status};
            do
                wanted.completion_number++;
            while (try(&wanted));
        }
}

/* R-QUOTA-18, I-37: the RNIC that takes tickets for the target fails; a new queue does it then. */
static void asking_fails(void)
{
    for (enum failing_call call = FAILING_CHAIN_CREATE; call <= FAILING_CHAIN_STATE; call++)
        each_call(call);
    for (uint32_t status = RDMA_FLUSHED; status <= RDMA_LOST; status++) {
        struct failing_plan wanted = {.status = (enum rdma_status)status};
        do
            wanted.chain_number++;
        while (try(&wanted));
        CU_ASSERT(wanted.chain_number > 4);
    }
    for (enum failing_call call = FAILING_CHAIN_CREATE; call <= FAILING_CHAIN_STATE; call++)
        for (uint32_t n = 0; failing_error(call, n) != 0; n++)
            CU_ASSERT_NOT_EQUAL(injected_errors[call][n], 0);
}

/* Nobody waits for completions; RNICs that are asked for tickets are tested by themselves. */
static bool is_called(enum failing_call call)
{
    return call != FAILING_CQ_ARM && call < FAILING_CHAIN_CREATE;
}

/*
 * The tests before have injected each error of each call and each status of each op at least once;
 * else they would pass by failing nothing.
 */
static void everything_was_injected(void)
{
    for (enum failing_call call = 0; call < FAILING_CALLS; call++)
        for (uint32_t n = 0; failing_error(call, n) != 0; n++) {
            CU_ASSERT_FATAL(n < ERRORS);
            CU_ASSERT_EQUAL(injected_errors[call][n] != 0, is_called(call));
            if ((injected_errors[call][n] != 0) != is_called(call))
                printf("%s, error %d: %u times\n", failing_call_name(call), failing_error(call, n),
                       injected_errors[call][n]);
        }
    for (uint32_t i = 0; i < OPS; i++)
        for (uint32_t status = RDMA_FLUSHED; status <= RDMA_LOST; status++) {
            CU_ASSERT_NOT_EQUAL(injected_statuses[ops[i]][status], 0);
            if (injected_statuses[ops[i]][status] == 0)
                printf("op %d, status %u: never\n", ops[i], status);
        }
}

int main(void)
{
    static const struct test tests[] = {
        {"nothing fails", nothing_fails},
        {"calls of set-up and end fail", calls_of_set_up_and_end_fail},
        {"calls about connections fail", calls_about_connections_fail},
        {"sends fail", sends_fail},
        {"receives fail", receives_fail},
        {"polls fail", polls_fail},
        {"completions fail", completions_fail},
        {"everything was injected", everything_was_injected},
    };
    /* Over net/verbs each run takes many system calls, and these ask most of it. */
    static const struct test of_real[] = {
        {"nothing fails", nothing_fails},
        {"calls about connections fail", calls_about_connections_fail},
    };
    static const struct test of_loops[] = {{"asking fails", asking_fails}};
    int failed = run_over_providers("ref/failures", tests, sizeof tests / sizeof *tests, 2);
    for (uint32_t i = FIRST_VERBS_PROVIDER; i < PROVIDERS; i++) {
        provider = &providers[i];
        failed |= run_tests(provider->name, of_real, sizeof of_real / sizeof *of_real);
    }
    failed |= run_over_capable("ref/failures", of_loops, 1, RDMA_CAP_LOOP);
    printf("%u runs, %u with a failure\n", runs, injected_runs);
    return failed;
}
