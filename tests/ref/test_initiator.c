/* SPDX-License-Identifier: BSD-3-Clause */
/* The initiator: what it sends, and what it refuses to send. The target is a hand-made peer. */
#include <errno.h>
#include <string.h>

#include "tests/ref/ends.h"
#include "tests/ref/fixture.h"

/* ---- what it sends ----------------------------------------------------------------------- */

/* R-SESS-01, -03 to -05, -07, -08, -10, -35, R-HDR-02, -06, -08: HELLO comes first, and nothing
 * more before HELLO_ACK. */
static void hello(void)
{
    struct kbtp_initiator_config config = plain_config();
    open_ends(&config);
    for (uint32_t round = 0; round < 2; round++) {
        struct kbtp_message message = begin(), ack = good_ack();
        CU_ASSERT_EQUAL(message.header.opcode, KBTP_OP_HELLO);
        CU_ASSERT_EQUAL(message.header.flags, 0);
        CU_ASSERT_EQUAL(message.header.request_id, 0);
        CU_ASSERT_EQUAL(message.header.handle, 0);
        CU_ASSERT_EQUAL(message.header.generation, 0);
        CU_ASSERT_EQUAL(message.header.status, 0);
        CU_ASSERT_EQUAL(message.hello.requested_features, 0);
        CU_ASSERT_EQUAL(message.hello.completion_credits, 4);
        CU_ASSERT_EQUAL(memcmp(message.hello.initiator_id, config.initiator_id, 16), 0);
        CU_ASSERT_EQUAL(submit_it(KBTP_OP_LOAD, 0x4000, 64, 0), -ENOTCONN);
        CU_ASSERT_EQUAL(kbtp_initiator_credits(initiator), 0);
        CU_ASSERT_EQUAL(kbtp_initiator_goodbye(initiator, &cpu, false), -ENOTCONN);
        CU_ASSERT_EQUAL(kbtp_initiator_connect(initiator, &cpu), -EISCONN);
        tell(&ack);
        CU_ASSERT_EQUAL(kbtp_initiator_state(initiator), KBTP_INITIATOR_READY);
        CU_ASSERT_EQUAL(kbtp_initiator_credits(initiator), 4);
        peer_disconnect(&peer);
        settle();
        expect_down(-ECONNRESET);
    }
    close_ends();
}

/* R-HDR-04, -06, -08, -09, R-DESC-04, R-LE-01, -02, -06: ADDR_LE as the target wants it. */
static void requests(void)
{
    struct kbtp_initiator_config config = plain_config();
    for (int addr_le = 0; addr_le < 2; addr_le++) {
        struct kbtp_message ack = good_ack(), message;
        ack.hello_ack.features = addr_le ? KBTP_FEATURE_ADDR_LE : 0;
        open_ends(&config);
        begin_with(&ack);
        struct kbtp_operation it = operation(KBTP_OP_STORE, 0x4001, 48, KBTP_FLAG_SEAL);
        it.generation = 9;
        CU_ASSERT_EQUAL(kbtp_initiator_submit(initiator, &cpu, &it, 3), 0);
        CU_ASSERT_EQUAL(submit_it(KBTP_OP_ALLOC_STORE, 0x4002, 16, KBTP_FLAG_INLINE), 0);
        settle();
        CU_ASSERT_EQUAL_FATAL(peer.got_count, 2);
        const uint8_t *octets = peer.receives[peer.got[0]];
        CU_ASSERT_EQUAL(kbtp_wire_decode(octets, peer.got_octets[0], addr_le, &message, NULL), 0);
        CU_ASSERT_EQUAL(message.header.handle, 0x4001);
        CU_ASSERT_EQUAL(message.header.generation, 9);
        CU_ASSERT_EQUAL(message.header.status, 0);
        CU_ASSERT_EQUAL(message.header.flags, KBTP_FLAG_SEAL);
        CU_ASSERT_EQUAL(message.operands.data.stag, 0x1234);
        CU_ASSERT_EQUAL(message.operands.data.tagged_offset, 0x5678);
        CU_ASSERT_EQUAL(message.operands.data.length, 48);
        CU_ASSERT_EQUAL(octets[addr_le ? 12 : 19], 1); /* Block Handle 0x4001 */
        uint64_t first_id = message.header.request_id;
        octets = peer.receives[peer.got[1]];
        CU_ASSERT_EQUAL(kbtp_wire_decode(octets, peer.got_octets[1], addr_le, &message, NULL), 0);
        CU_ASSERT_EQUAL(message.operands.data.stag, 0);
        CU_ASSERT_EQUAL(memcmp(octets + message.operands.inline_offset, "0123456789abcdef", 16), 0);
        CU_ASSERT_NOT_EQUAL(message.header.request_id, first_id);
        close_ends();
    }
}

/* R-GEN-05, R-HDR-08, R-DESC-07, R-SESS-29, -37: what it refuses to send (I-43, I-44); the session
 * goes on. */
static void refused_requests(void)
{
    static const struct {
        uint64_t handle;
        uint32_t length;
        int error;
        uint16_t flags;
        uint8_t opcode;
    } cases[] = {
        {0x4000, 8, -EINVAL, 0, KBTP_OP_BIND},
        {0x4000, 8, -EINVAL, 0, KBTP_OP_HELLO},
        {0x4000, 8, -EINVAL, 0, 0},
        {0x4000, 8, -EINVAL, KBTP_FLAG_INLINE, KBTP_OP_LOAD},
        {0x4000, 8, -EINVAL, KBTP_FLAG_SEAL, KBTP_OP_LOAD},
        {0x4000, 8, -EINVAL, KBTP_FLAG_RECORD, KBTP_OP_LOAD},
        {0x4000, 8, -EINVAL, KBTP_FLAG_ALLOW_UNSEALED, KBTP_OP_STORE},
        {0x4000, 8, -EINVAL, KBTP_FLAG_INLINE | KBTP_FLAG_INVALIDATE, KBTP_OP_STORE},
        {0x4000, 0, -EINVAL, KBTP_FLAG_INVALIDATE, KBTP_OP_FREE},
        {0x4000, 0, -EINVAL, 0x8000, KBTP_OP_FREE},
        {0x3fff, 8, -EINVAL, 0, KBTP_OP_STORE},
        {0x4010, 0, -EINVAL, 0, KBTP_OP_FREE},
        {UINT64_MAX, 8, -EINVAL, 0, KBTP_OP_ALLOC_STORE},
        {0x4000, 17, -EMSGSIZE, KBTP_FLAG_INLINE, KBTP_OP_STORE},
        {0x4000, 33, -EMSGSIZE, KBTP_FLAG_INLINE, KBTP_OP_STORE},
    };
    struct kbtp_initiator_config config = plain_config();
    open_ready(&config);
    for (uint32_t i = 0; i < sizeof cases / sizeof *cases; i++)
        CU_ASSERT_EQUAL(
            submit_it(cases[i].opcode, cases[i].handle, cases[i].length, cases[i].flags),
            cases[i].error);
    CU_ASSERT_EQUAL(submit_it(KBTP_OP_LOAD, 0x9999, 64, 0), 0); /* another's range: it may */
    settle();
    CU_ASSERT_EQUAL(peer.got_count, 1);
    close_ends();
}

/* R-QUOTA-04: bound and outstanding together; a unit is back when FREE completed or the store was
 * refused. R-COMP-08: the COMPLETION of the FREE has a Data Length and a Block Offset. */
static void the_quota_is_not_exceeded(void)
{
    struct kbtp_initiator_config config = plain_config();
    open_ready(&config);
    uint64_t ids[2];
    for (uint32_t i = 0; i < 2; i++) {
        CU_ASSERT_EQUAL(submit_it(KBTP_OP_ALLOC_STORE, 0x4000 + i, 8, 0), 0);
        settle();
        ids[i] = heard().header.request_id;
    }
    CU_ASSERT_EQUAL(submit_it(KBTP_OP_ALLOC_STORE, 0x4002, 8, 0), -EDQUOT);
    struct kbtp_message answer = completion(ids[0], KBTP_STATUS_ALREADY_BOUND);
    tell(&answer);
    answer = completion(ids[1], KBTP_STATUS_OK);
    tell(&answer);
    CU_ASSERT_EQUAL(submit_it(KBTP_OP_ALLOC_STORE, 0x4002, 8, 0), 0);
    CU_ASSERT_EQUAL(submit_it(KBTP_OP_ALLOC_STORE, 0x4003, 8, 0), -EDQUOT);
    CU_ASSERT_EQUAL(submit_it(KBTP_OP_FREE, 0x4001, 0, 0), 0);
    CU_ASSERT_EQUAL(submit_it(KBTP_OP_ALLOC_STORE, 0x4003, 8, 0), -EDQUOT);
    settle();
    heard();
    answer = completion(heard().header.request_id, KBTP_STATUS_OK);
    tell(&answer);
    CU_ASSERT_EQUAL(submit_it(KBTP_OP_ALLOC_STORE, 0x4003, 8, 0), 0);
    close_ends();
}

/* I-35, R-QUOTA-04: a lost ALLOC_STORE counts as bound, until the caller says that it is not. */
static void a_lost_store_counts_until_the_caller_knows(void)
{
    struct kbtp_initiator_config config = plain_config();
    struct kbtp_message ack = good_ack(); /* with a quota of 2 */
    open_ready(&config);
    for (uint64_t n = 0; n < 2; n++)
        CU_ASSERT_EQUAL(submit_it(KBTP_OP_ALLOC_STORE, 0x4000 + n, 8, 0), 0);
    CU_ASSERT_EQUAL(kbtp_initiator_usage(initiator), 2);
    CU_ASSERT_EQUAL(kbtp_initiator_set_usage(initiator, 0), -EBUSY);
    provider->cut(cpu.rdma, 0);
    settle();
    expect_down(-ECONNRESET);
    CU_ASSERT_EQUAL(outcomes_count, 2);
    begin_with(&ack);
    CU_ASSERT_EQUAL(kbtp_initiator_usage(initiator), 2);
    CU_ASSERT_EQUAL(submit_it(KBTP_OP_ALLOC_STORE, 0x4002, 8, 0), -EDQUOT);
    CU_ASSERT_EQUAL(kbtp_initiator_set_usage(initiator, 1), 0);
    CU_ASSERT_EQUAL(submit_it(KBTP_OP_ALLOC_STORE, 0x4002, 8, 0), 0);
    CU_ASSERT_EQUAL(kbtp_initiator_usage(initiator), 2);
    close_ends();
}

/* R-SESS-35: as many as there are credits, one more when an outcome was told, in whatever order the
 * completions come. */
static void completions_in_any_order(void)
{
    struct kbtp_initiator_config config = plain_config();
    open_ready(&config);
    uint64_t ids[4];
    for (uint32_t i = 0; i < 4; i++)
        ids[i] = load();
    CU_ASSERT_EQUAL(submit_it(KBTP_OP_LOAD, 0x4000, 64, 0), -EAGAIN);
    CU_ASSERT_EQUAL(kbtp_initiator_goodbye(initiator, &cpu, false), -EBUSY); /* I-34 */
    static const uint32_t order[] = {2, 0, 3, 1};
    for (uint32_t i = 0; i < 4; i++) {
        struct kbtp_message answer = completion(ids[order[i]], KBTP_STATUS_OK);
        answer.header.handle = 0xbad; /* I-13: matched by Request ID alone */
        tell(&answer);
        CU_ASSERT_EQUAL_FATAL(outcomes_count, i + 1);
        CU_ASSERT_EQUAL(outcomes[i].handle, 0x4000);
        CU_ASSERT_EQUAL(outcomes[i].cookie, 3);
        CU_ASSERT_EQUAL(outcomes[i].generation, 5);
        CU_ASSERT_EQUAL(outcomes[i].block_offset, 0x777);
        CU_ASSERT_EQUAL(kbtp_initiator_credits(initiator), i + 1);
    }
    close_ends();
}

/* R-OPC-09, I-34: GOODBYE, and the target's disconnection is its answer. */
static void goodbye(void)
{
    struct kbtp_initiator_config config = plain_config();
    open_ends(&config);
    for (uint32_t release = 0; release < 2; release++) {
        struct kbtp_message ack = good_ack(), message;
        begin_with(&ack);
        CU_ASSERT_EQUAL(kbtp_initiator_goodbye(initiator, &cpu, release), 0);
        settle();
        message = heard();
        CU_ASSERT_EQUAL(message.header.opcode, KBTP_OP_GOODBYE);
        CU_ASSERT_EQUAL(message.header.flags, release ? KBTP_GOODBYE_RELEASE : 0);
        CU_ASSERT_EQUAL(kbtp_initiator_state(initiator), KBTP_INITIATOR_ENDING);
        CU_ASSERT_EQUAL(submit_it(KBTP_OP_LOAD, 0x4000, 64, 0), -ENOTCONN);
        struct kbtp_message answer = completion(message.header.request_id, KBTP_STATUS_OK);
        tell(&answer); /* unexpected: accepted */
        peer_disconnect(&peer);
        settle();
        expect_down(0);
    }
    close_ends();
}

/* I-34, I-35: when the connection fails after GOODBYE, nobody knows whether the target has heard
 * it. Then what was bound still counts; after the target's disconnection it does not. */
static void a_goodbye_that_was_lost(void)
{
    struct kbtp_initiator_config config = plain_config();
    open_ends(&config);
    for (uint32_t round = 0; round < 3; round++) {
        struct kbtp_message ack = good_ack();
        begin_with(&ack);
        for (uint64_t n = 0; n < 2; n++) {
            CU_ASSERT_EQUAL(submit_it(KBTP_OP_ALLOC_STORE, 0x4000 + n, 8, 0), round ? -EDQUOT : 0);
            settle();
            if (round != 0)
                continue;
            struct kbtp_message answer = completion(heard().header.request_id, KBTP_STATUS_OK);
            tell(&answer);
        }
        CU_ASSERT_EQUAL(kbtp_initiator_goodbye(initiator, &cpu, true), 0);
        settle();
        CU_ASSERT_EQUAL(heard().header.opcode, KBTP_OP_GOODBYE);
        if (round == 0)
            provider->cut(cpu.rdma, 0);
        else if (round == 1)
            kbtp_initiator_disconnect(initiator, &cpu); /* it was tired of waiting */
        else
            peer_disconnect(&peer);
        settle();
        expect_down(round == 2 ? 0 : -ECONNRESET);
    }
    struct kbtp_message ack = good_ack();
    begin_with(&ack);
    CU_ASSERT_EQUAL(submit_it(KBTP_OP_ALLOC_STORE, 0x4000, 8, 0), 0);
    close_ends();
}

int main(void)
{
    static const struct test tests[] = {
        {"HELLO", hello},
        {"requests", requests},
        {"refused requests", refused_requests},
        {"the quota is not exceeded", the_quota_is_not_exceeded},
        {"a lost store counts until the caller knows", a_lost_store_counts_until_the_caller_knows},
        {"completions in any order", completions_in_any_order},
        {"GOODBYE", goodbye},
        {"a GOODBYE that was lost", a_goodbye_that_was_lost},
    };
    return run_over_providers("ref/initiator", tests, sizeof tests / sizeof *tests, PROVIDERS);
}
