/* SPDX-License-Identifier: BSD-3-Clause */
/* When an initiator tries again (I-16). */
#include <errno.h>

#include "tests/ref/ends.h"
#include "tests/ref/fixture.h"

#define TRIES 5u

static struct kbtp_initiator_config patient(void)
{
    struct kbtp_initiator_config config = plain_config();
    config.retries = TRIES;
    config.retry_first_ns = 1000;
    config.retry_longest_ns = 5000;
    return config;
}

static struct kbtp_message refusal(uint16_t status)
{
    return (struct kbtp_message){
        .header = {.version = 1, .opcode = KBTP_OP_HELLO_ACK, .status = status}};
}

static void expect_state(enum kbtp_initiator_state state)
{
    CU_ASSERT_EQUAL(kbtp_initiator_state(initiator), state);
}

/* The time of its wait is over, and it connects: HELLO is heard. */
static void next_try(void)
{
    expect_state(KBTP_INITIATOR_WAITING);
    settle();
    expect_state(KBTP_INITIATOR_WAITING); /* not before */
    CU_ASSERT_FATAL(provider->expire(cpu.rdma, 0));
    settle();
    expect_state(KBTP_INITIATOR_CONNECTING);
    CU_ASSERT_EQUAL(heard().header.opcode, KBTP_OP_HELLO);
}

/* So often, and no more; then it says why, and can be told to begin anew. */
static void so_many_tries(void)
{
    struct kbtp_initiator_config config = patient();
    struct kbtp_message no = refusal(KBTP_STATUS_INTERNAL);
    open_ends(&config);
    for (uint32_t round = 0; round < 2; round++) {
        begin_with(&no);
        for (uint32_t i = 0; i < TRIES; i++) {
            next_try();
            tell(&no);
        }
        expect_down(KBTP_STATUS_INTERNAL);
        CU_ASSERT_FALSE(provider->expire(cpu.rdma, 0));
    }
    close_ends();
}

/* A session in between: tries are counted anew. */
static void a_session_counts_anew(void)
{
    struct kbtp_initiator_config config = patient();
    struct kbtp_message no = refusal(KBTP_STATUS_INTERNAL), yes = good_ack();
    config.retry_lost = true;
    open_ends(&config);
    begin_with(&no);
    for (uint32_t i = 0; i < 3 * TRIES; i++) {
        next_try();
        tell(i % TRIES == TRIES - 1 ? &yes : &no);
        if (i % TRIES != TRIES - 1)
            continue;
        expect_state(KBTP_INITIATOR_READY);
        provider->cut(cpu.rdma, 0);
        settle();
        CU_ASSERT_EQUAL(kbtp_initiator_why(initiator), -ECONNRESET);
    }
    expect_state(KBTP_INITIATOR_WAITING);
    close_ends();
}

/* What will not pass is not tried again; nor is a loss, unless that is asked for. */
static void other_reasons_stay(void)
{
    static const uint16_t statuses[] = {KBTP_STATUS_NO_SPACE, KBTP_STATUS_MALFORMED};
    struct kbtp_initiator_config config = patient();
    open_ends(&config);
    for (uint32_t i = 0; i < 2; i++) {
        struct kbtp_message no = refusal(statuses[i]);
        begin_with(&no);
        expect_down(statuses[i]);
    }
    struct kbtp_message yes = good_ack(), senseless = good_ack();
    senseless.hello_ack.request_credits = 0;
    begin_with(&senseless);
    expect_down(-EPROTO);
    begin_with(&yes);
    provider->cut(cpu.rdma, 0);
    settle();
    expect_down(-ECONNRESET);
    close_ends();
}

/* Who wanted the end gets it: GOODBYE, a disconnection, one while it waits. */
static void what_is_wanted_stays(void)
{
    struct kbtp_initiator_config config = patient();
    struct kbtp_message no = refusal(KBTP_STATUS_INTERNAL), yes = good_ack();
    config.retry_lost = true;
    open_ends(&config);
    for (uint32_t way = 0; way < 3; way++) {
        begin_with(way == 2 ? &no : &yes);
        if (way == 0) {
            CU_ASSERT_EQUAL(kbtp_initiator_goodbye(initiator, &cpu, false), 0);
            settle();
            heard();
            provider->cut(cpu.rdma, 0);
        } else {
            kbtp_initiator_disconnect(initiator, &cpu);
        }
        settle();
        expect_state(KBTP_INITIATOR_DOWN);
        CU_ASSERT_FALSE(provider->expire(cpu.rdma, 0));
    }
    /* The caller need not wait. */
    begin_with(&no);
    expect_state(KBTP_INITIATOR_WAITING);
    begin_with(&yes);
    expect_state(KBTP_INITIATOR_READY);
    CU_ASSERT_FALSE(provider->expire(cpu.rdma, 0));
    close_ends();
}

/* I-11: another range, be it of another start or length, voids what is remembered; so does none. */
static void another_range_is_noticed(void)
{
    static const struct {
        uint64_t base;
        uint32_t count;
        bool same;
    } sessions[] = {{0x4000, 16, false}, {0x4000, 16, true}, {0x4010, 16, false},
                    {0x4010, 17, false}, {0x4010, 17, true}, {0x4000, 16, false}};
    struct kbtp_initiator_config config = plain_config();
    open_ends(&config);
    for (uint32_t i = 0; i < 6; i++) {
        struct kbtp_message ack = good_ack(), no = refusal(KBTP_STATUS_INTERNAL);
        ack.hello_ack.handle_base = sessions[i].base;
        ack.hello_ack.handle_count = sessions[i].count;
        begin_with(&no); /* is no session */
        begin_with(&ack);
        CU_ASSERT_EQUAL(kbtp_initiator_same_range(initiator), sessions[i].same);
        provider->cut(cpu.rdma, 0);
        settle();
    }
    close_ends();
}

static void bad_numbers_are_refused(void)
{
    struct kbtp_initiator_config good = patient(), bad = good;
    static uint64_t memory[1024], others[1024];
    struct kbtp_initiator *none;
    open_ends(&good);
    bad.retries = KBTP_MAX_RETRIES + 1;
    CU_ASSERT_EQUAL(kbtp_initiator_init(&none, &cpu, &bad, memory, others), -EINVAL);
    bad = good;
    bad.retry_first_ns = 0;
    CU_ASSERT_EQUAL(kbtp_initiator_init(&none, &cpu, &bad, memory, others), -EINVAL);
    bad = good;
    bad.retry_longest_ns = 999;
    CU_ASSERT_EQUAL(kbtp_initiator_init(&none, &cpu, &bad, memory, others), -EINVAL);
    close_ends();
}

/* 1000, 2000, 4000, 5000, 5000 ns, each shortened by a half at most. */
static void waits_grow(void)
{
    static const uint64_t longest[TRIES] = {1000, 2000, 4000, 5000, 5000};
    struct kbtp_initiator_config config = patient();
    struct kbtp_message no = refusal(KBTP_STATUS_INTERNAL);
    open_ends(&config);
    begin_with(&no);
    for (uint32_t i = 0; i < TRIES; i++) {
        uint64_t wait = ((struct loop_handle *)cpu.rdma)->timers[0];
        CU_ASSERT(wait <= longest[i] && wait >= longest[i] / 2);
        next_try();
        tell(&no);
    }
    close_ends();
}

int main(void)
{
    static const struct test tests[] = {
        {"so many tries", so_many_tries},
        {"a session counts anew", a_session_counts_anew},
        {"other reasons stay", other_reasons_stay},
        {"what is wanted stays", what_is_wanted_stays},
        {"another range is noticed", another_range_is_noticed},
        {"bad numbers are refused", bad_numbers_are_refused},
    };
    static const struct test of_loop[] = {
        {"waits grow", waits_grow},
    };
    return run_over_providers("ref/back-off", tests, sizeof tests / sizeof *tests, PROVIDERS) ||
           run_over_providers("ref/back-off", of_loop, sizeof of_loop / sizeof *of_loop, 1);
}
