/* SPDX-License-Identifier: BSD-3-Clause */
/* The initiator against targets that answer nonsense, refuse, or go away: the connection ends, it
 * is told why, and every request has its outcome. */
#include <errno.h>
#include <string.h>

#include "tests/ref/ends.h"
#include "tests/ref/fixture.h"

/* The initiator is DOWN for this reason, and then a good session works. */
static void expect_end_and_recovery(int why)
{
    struct kbtp_message ack = good_ack();
    settle();
    expect_down(why);
    CU_ASSERT_EQUAL(kbtp_initiator_outstanding(initiator), 0);
    outcomes_count = 0;
    peer.got_count = 0;
    begin_with(&ack);
    struct kbtp_message answer = completion(load(), KBTP_STATUS_OK);
    tell(&answer);
    CU_ASSERT_EQUAL_FATAL(outcomes_count, 1);
    CU_ASSERT_EQUAL(outcomes[0].error, 0);
    CU_ASSERT_EQUAL(outcomes[0].status, KBTP_STATUS_OK);
    peer_disconnect(&peer);
    settle();
    outcomes_count = 0;
}

static void open_plain(void)
{
    struct kbtp_initiator_config config = plain_config();
    open_ends(&config);
}

static uint32_t encode(const struct kbtp_message *message, uint8_t octets[PEER_OCTETS])
{
    int length = kbtp_wire_encode(message, false, octets, PEER_OCTETS);
    CU_ASSERT_FATAL(length > 0);
    return (uint32_t)length;
}

/* ---- instead of a good HELLO_ACK --------------------------------------------------------- */

/* What the target says is what the caller is told. */
static void refusals(void)
{
    static const uint16_t statuses[] = {KBTP_STATUS_NO_SPACE, KBTP_STATUS_MALFORMED,
                                        KBTP_STATUS_INTERNAL, 0xc123};
    open_plain();
    for (uint32_t i = 0; i < 4; i++) {
        struct kbtp_message ack = good_ack();
        ack.header.status = statuses[i];
        begin_with(&ack);
        expect_end_and_recovery(statuses[i]);
    }
    close_ends();
}

/* R-HDR-02 */
static void bad_first_answers(void)
{
    static const struct {
        uint8_t opcode, version;
        uint16_t credits;
        int longer; /* octets more, or less */
    } cases[] = {
        {KBTP_OP_HELLO_ACK, 1, 0, 0}, /* no credits (I-27) */
        {KBTP_OP_HELLO_ACK, 2, 4, 0},
        {KBTP_OP_HELLO_ACK, 1, 4, -1},
        {KBTP_OP_HELLO_ACK, 1, 4, -32},
        {KBTP_OP_HELLO_ACK, 1, 4, -55},
        {KBTP_OP_HELLO_ACK, 1, 4, 1},
        {KBTP_OP_COMPLETION, 1, 4, -16},
        {KBTP_OP_HELLO, 1, 4, -12},
        {KBTP_OP_GOODBYE, 1, 4, -32},
        {0x55, 1, 4, 0},
    };
    open_plain();
    for (uint32_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint8_t octets[PEER_OCTETS] = {0};
        struct kbtp_message ack = good_ack();
        ack.hello_ack.request_credits = cases[i].credits;
        begin();
        uint32_t length = encode(&ack, octets) + (uint32_t)cases[i].longer;
        octets[0] = cases[i].version;
        octets[1] = cases[i].opcode;
        CU_ASSERT_EQUAL(peer_send(&peer, octets, length), 0);
        expect_end_and_recovery(-EPROTO);
    }
    close_ends();
}

/* I-46: what was not asked for is not used, and the session works. More credits than receives are
 * not used either. */
static void generous_targets(void)
{
    static const uint16_t features[] = {
        KBTP_FEATURE_DIRECT_LOAD, KBTP_FEATURE_DIRECT_ALLOC, KBTP_FEATURE_RECORD_COMPLETION,
        KBTP_FEATURE_DIRECT_LOAD | KBTP_FEATURE_DIRECT_ALLOC, 0xfff0};
    open_plain();
    for (uint32_t i = 0; i < sizeof features / sizeof *features; i++) {
        struct kbtp_message ack = good_ack();
        ack.hello_ack.features = features[i];
        ack.hello_ack.request_credits = UINT16_MAX;
        begin_with(&ack);
        CU_ASSERT_EQUAL(kbtp_initiator_state(initiator), KBTP_INITIATOR_READY);
        CU_ASSERT_EQUAL(kbtp_initiator_credits(initiator), 4);
        struct kbtp_message answer = completion(load(), KBTP_STATUS_OK);
        tell(&answer);
        CU_ASSERT_EQUAL(outcomes_count, 1);
        peer_disconnect(&peer);
        settle();
        outcomes_count = 0;
    }
    close_ends();
}

/* The target ends before it answers, or rejects. */
static void no_answer(void)
{
    open_plain();
    begin();
    peer_disconnect(&peer);
    expect_end_and_recovery(-ECONNRESET);
    begin();
    kbtp_initiator_disconnect(initiator, &cpu);
    expect_end_and_recovery(-ECONNRESET);
    CU_ASSERT_EQUAL(kbtp_initiator_connect(initiator, &cpu), 0);
    kbtp_initiator_disconnect(initiator, &cpu); /* before it is connected */
    expect_end_and_recovery(-ECONNRESET);
    peer.state = PEER_CONNECTED; /* it is busy, and rejects */
    CU_ASSERT_EQUAL(kbtp_initiator_connect(initiator, &cpu), 0);
    settle();
    CU_ASSERT_EQUAL(kbtp_initiator_state(initiator), KBTP_INITIATOR_DOWN);
    CU_ASSERT_EQUAL(kbtp_initiator_why(initiator), -ECONNREFUSED);
    peer.state = PEER_DOWN;
    close_ends();
}

/* ---- in a session ------------------------------------------------------------------------ */

/* With two requests outstanding the target sends this; both are lost. */
static void nonsense(const uint8_t *octets, uint32_t length)
{
    struct kbtp_message ack = good_ack();
    begin_with(&ack);
    load();
    load();
    CU_ASSERT_EQUAL(peer_send(&peer, octets, length), 0);
    settle();
    CU_ASSERT_EQUAL_FATAL(outcomes_count, 2);
    for (uint32_t i = 0; i < 2; i++) {
        CU_ASSERT_EQUAL(outcomes[i].error, -ECONNRESET); /* I-35 */
        CU_ASSERT_EQUAL(outcomes[i].cookie, 3);
        CU_ASSERT_EQUAL(outcomes[i].handle, 0x4000);
        CU_ASSERT_EQUAL(outcomes[i].opcode, KBTP_OP_LOAD);
    }
    expect_end_and_recovery(-EPROTO);
}

static void messages_that_make_no_sense(void)
{
    uint8_t octets[PEER_OCTETS] = {0};
    struct kbtp_message ack = good_ack(), answer = completion(0x10000, KBTP_STATUS_OK);
    static const uint64_t unknown[] = {0, 0x10001, 0x10002, 0x1000f, 0x1ffff, UINT64_MAX};
    open_plain();
    nonsense(octets, encode(&ack, octets)); /* HELLO_ACK twice */
    for (uint32_t i = 0; i < sizeof unknown / sizeof *unknown; i++) {
        struct kbtp_message stray = completion(unknown[i], KBTP_STATUS_OK);
        nonsense(octets, encode(&stray, octets));
    }
    answer.completion.data_length = 65; /* the buffer has 64 */
    uint32_t length = encode(&answer, octets);
    nonsense(octets, length);
    answer.completion.data_length = UINT32_MAX;
    nonsense(octets, encode(&answer, octets));
    answer.completion.data_length = 64;
    encode(&answer, octets);
    nonsense(octets, length - 1); /* truncated */
    nonsense(octets, KBTP_HEADER_OCTETS);
    nonsense(octets, 0);
    nonsense(octets, length + 1);
    octets[0] = 2;
    nonsense(octets, length);
    octets[0] = 1;
    for (uint32_t opcode = 0; opcode < 256; opcode += 5) {
        if (opcode == KBTP_OP_COMPLETION)
            continue;
        octets[1] = (uint8_t)opcode;
        nonsense(octets, length);
    }
    close_ends();
}

/* The second COMPLETION of a request answers nothing that was asked. */
static void a_completion_twice(void)
{
    struct kbtp_message ack = good_ack();
    open_plain();
    begin_with(&ack);
    struct kbtp_message answer = completion(load(), KBTP_STATUS_OK);
    load();
    tell(&answer);
    tell(&answer);
    CU_ASSERT_EQUAL_FATAL(outcomes_count, 2);
    CU_ASSERT_EQUAL(outcomes[0].error, 0);
    CU_ASSERT_EQUAL(outcomes[1].error, -ECONNRESET);
    expect_end_and_recovery(-EPROTO);
    close_ends();
}

/* The place of a request is used again, but not its Request ID: a late answer is not taken for
 * that of another request. */
static void an_old_request_id(void)
{
    struct kbtp_message ack = good_ack();
    open_plain();
    begin_with(&ack);
    uint64_t first = load();
    struct kbtp_message answer = completion(first, KBTP_STATUS_OK);
    tell(&answer);
    CU_ASSERT_NOT_EQUAL(load(), first);
    tell(&answer);
    CU_ASSERT_EQUAL_FATAL(outcomes_count, 2);
    CU_ASSERT_EQUAL(outcomes[1].error, -ECONNRESET);
    expect_end_and_recovery(-EPROTO);
    close_ends();
}

/* Any status is handed on, also one that nobody knows; the session goes on. */
static void every_status(void)
{
    struct kbtp_message ack = good_ack();
    open_plain();
    begin_with(&ack);
    static const uint16_t statuses[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 0xc000, 0xffff};
    for (uint32_t i = 0; i < sizeof statuses / sizeof *statuses; i++) {
        struct kbtp_message answer = completion(load(), statuses[i]);
        tell(&answer);
        CU_ASSERT_EQUAL_FATAL(outcomes_count, 1);
        CU_ASSERT_EQUAL(outcomes[0].error, 0);
        CU_ASSERT_EQUAL(outcomes[0].status, statuses[i]);
        outcomes_count = 0;
    }
    CU_ASSERT_EQUAL(kbtp_initiator_credits(initiator), 4);
    close_ends();
}

/* Outcomes of a lost connection come in the order of the requests, also a few at a time. */
static void lost_outcomes_in_order(void)
{
    struct kbtp_message ack = good_ack();
    struct kbtp_outcome outcome;
    open_plain();
    begin_with(&ack);
    uint64_t first = load();
    for (uint64_t cookie = 11; cookie < 14; cookie++) {
        struct kbtp_operation it = operation(KBTP_OP_LOAD, cookie, 64, 0);
        CU_ASSERT_EQUAL(kbtp_initiator_submit(initiator, &cpu, &it, cookie), 0);
    }
    struct kbtp_message answer = completion(first, KBTP_STATUS_OK);
    tell(&answer);
    struct kbtp_operation it = operation(KBTP_OP_FREE, 0x4000, 0, 0);
    CU_ASSERT_EQUAL(kbtp_initiator_submit(initiator, &cpu, &it, 14), 0);
    peer_disconnect(&peer);
    uint64_t expected = 11;
    for (uint32_t n = 0; n < 100; n++) {
        peer_poll(&peer);
        if (kbtp_initiator_poll(initiator, &cpu, &outcome, 1) != 1)
            continue;
        CU_ASSERT_EQUAL(outcome.cookie, expected++);
        CU_ASSERT_EQUAL(outcome.error, -ECONNRESET);
    }
    CU_ASSERT_EQUAL(expected, 15);
    CU_ASSERT_EQUAL(kbtp_initiator_state(initiator), KBTP_INITIATOR_DOWN);
    close_ends();
}

/* Numbers out of range are refused before anything is taken from the device. */
static void bad_configurations(void)
{
    struct kbtp_initiator_config config = plain_config();
    struct kbtp_initiator *none;
    static const struct {
        uint32_t depth, max_inline;
    } cases[] = {{0, 0}, {4097, 0}, {4, UINT32_MAX}};
    open_ends(&config);
    for (uint32_t i = 0; i < 3; i++) {
        config.depth = cases[i].depth;
        config.max_inline = cases[i].max_inline;
        CU_ASSERT_EQUAL(kbtp_initiator_init(&none, &cpu, &config, NULL, NULL), -EINVAL);
    }
    struct rdma_caps caps;
    rdma_caps(cpu.rdma, &caps);
    config = plain_config();
    config.max_inline = caps.max_message - KBTP_REQUEST_MAX_OCTETS + 1;
    CU_ASSERT_EQUAL(kbtp_initiator_init(&none, &cpu, &config, NULL, NULL), -EINVAL);
    config = plain_config();
    for (config.depth = caps.max_queue; config.depth <= 4096; config.depth++)
        CU_ASSERT_EQUAL(kbtp_initiator_init(&none, &cpu, &config, NULL, NULL), -EINVAL);
    close_ends();
}

int main(void)
{
    static const struct test tests[] = {
        {"refusals", refusals},
        {"bad first answers", bad_first_answers},
        {"generous targets", generous_targets},
        {"no answer", no_answer},
        {"messages that make no sense", messages_that_make_no_sense},
        {"a COMPLETION twice", a_completion_twice},
        {"an old Request ID", an_old_request_id},
        {"every status", every_status},
        {"lost outcomes in order", lost_outcomes_in_order},
        {"bad configurations", bad_configurations},
    };
    return run_over_providers("ref/nonsense", tests, sizeof tests / sizeof *tests, PROVIDERS);
}
