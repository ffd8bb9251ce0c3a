/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages that no good initiator sends: what the target answers, whether the connection ends, and
 * that nothing else happens. */
#include <errno.h>
#include <string.h>

#include "tests/ref/fixture.h"
#include "tests/ref/peer.h"

static struct peer peer;

/* Initiator 2 of the pair stays away; the peer has its Initiator ID when it says HELLO. */
#define ID 3u

static void settle(void)
{
    for (uint32_t n = 0; n < 60; n++) {
        pair_poll(&pair);
        peer_poll(&peer);
    }
}

static void connect_peer(void)
{
    CU_ASSERT_EQUAL_FATAL(peer_connect(&peer, "target"), 0);
    settle();
    CU_ASSERT_EQUAL_FATAL(peer.state, PEER_CONNECTED);
}

static void open_peer(void)
{
    struct pair_config config = pair_defaults();
    open_with(&config);
    CU_ASSERT_EQUAL_FATAL(peer_open(&peer, another_handle()), 0);
}

static void close_peer(void)
{
    peer_disconnect(&peer);
    settle();
    peer_close(&peer);
    close_pair();
}

static void send(const void *octets, uint32_t length)
{
    CU_ASSERT_EQUAL_FATAL(peer_send(&peer, octets, length), 0);
    settle();
}

static void send_message(const struct kbtp_message *message)
{
    CU_ASSERT_EQUAL_FATAL(peer_send_message(&peer, message), 0);
    settle();
}

/* The next message is of this opcode and status. */
static struct kbtp_message expect(uint8_t opcode, enum kbtp_status status)
{
    struct kbtp_message message = {0};
    CU_ASSERT_EQUAL(peer_take(&peer, &message), 0);
    CU_ASSERT_EQUAL(message.header.version, 1);
    CU_ASSERT_EQUAL(message.header.opcode, opcode);
    CU_ASSERT_EQUAL(message.header.status, status);
    return message;
}

static void expect_nothing(void)
{
    struct kbtp_message message;
    CU_ASSERT_EQUAL(peer_take(&peer, &message), -EAGAIN);
}

/* It has ended, without another word. */
static void expect_end(void)
{
    expect_nothing();
    CU_ASSERT_EQUAL(peer.state, PEER_DOWN);
    CU_ASSERT_EQUAL(look_at_workers().connections, 0);
}

static void say_hello(void)
{
    struct kbtp_message hello = peer_hello(ID, 4);
    connect_peer();
    send_message(&hello);
    expect(KBTP_OP_HELLO_ACK, KBTP_STATUS_OK);
}

/* R-VAL-11: the session goes on. */
static void expect_session_works(void)
{
    struct kbtp_message free = peer_request(KBTP_OP_FREE, 99, 0x4020, 0);
    send_message(&free);
    struct kbtp_message answer = expect(KBTP_OP_COMPLETION, KBTP_STATUS_NOT_VALID);
    CU_ASSERT_EQUAL(answer.header.request_id, 99);
    expect_nothing();
    CU_ASSERT_EQUAL(peer.state, PEER_CONNECTED);
}

/* MALFORMED, with Request ID and handle echoed, Generation and body zero (I-30, I-45). */
static void expect_malformed(uint64_t request_id, uint64_t handle)
{
    struct kbtp_message answer = expect(KBTP_OP_COMPLETION, KBTP_STATUS_MALFORMED);
    CU_ASSERT_EQUAL(answer.header.request_id, request_id);
    CU_ASSERT_EQUAL(answer.header.handle, handle);
    CU_ASSERT_EQUAL(answer.header.generation, 0);
    CU_ASSERT_EQUAL(answer.completion.data_length, 0);
    CU_ASSERT_EQUAL(answer.completion.block_offset, 0);
}

static uint32_t encoded(const struct kbtp_message *message, uint8_t octets[PEER_OCTETS])
{
    int length = kbtp_wire_encode(message, false, octets, PEER_OCTETS);
    CU_ASSERT_FATAL(length > 0);
    return (uint32_t)length;
}

/* ---- before HELLO ------------------------------------------------------------------------ */

/* I-30: below 24 octets nothing can be echoed: the end, without an answer. */
static void no_header(void)
{
    static const uint8_t octets[KBTP_HEADER_OCTETS] = {1, KBTP_OP_HELLO};
    static const uint32_t lengths[] = {0, 1, 23};
    open_peer();
    for (uint32_t i = 0; i < 6; i++) {
        if (i < 3)
            connect_peer();
        else
            say_hello();
        send(octets, lengths[i % 3]);
        expect_end();
    }
    close_peer();
}

/* R-SESS-02, -04, -06, R-OPC-01, I-47: HELLO_ACK MALFORMED with a body of zeros, and the end. */
static void hello_refused(const uint8_t *octets, uint32_t length)
{
    static const struct kbtp_hello_ack zeros;
    connect_peer();
    send(octets, length);
    struct kbtp_message ack = expect(KBTP_OP_HELLO_ACK, KBTP_STATUS_MALFORMED);
    CU_ASSERT_EQUAL(ack.header.request_id, 0);
    CU_ASSERT_EQUAL(ack.header.handle, 0);
    CU_ASSERT_EQUAL(ack.header.generation, 0);
    CU_ASSERT_EQUAL(memcmp(&ack.hello_ack, &zeros, sizeof zeros), 0);
    expect_end();
}

static void bad_hellos(void)
{
    uint8_t octets[PEER_OCTETS] = {0};
    struct kbtp_message hello = peer_hello(ID, 4), without_credits = peer_hello(ID, 0);
    open_peer();
    hello_refused(octets, encoded(&without_credits, octets)); /* I-27 */
    uint32_t length = encoded(&hello, octets);
    hello_refused(octets, length - 1);
    hello_refused(octets, KBTP_HEADER_OCTETS);
    hello_refused(octets, length + 1);
    hello_refused(octets, 88); /* as much as a receive buffer takes */
    octets[0] = 2;             /* R-HDR-02: which Version is spoken is in the answer */
    hello_refused(octets, length);
    hello_refused(octets, KBTP_HEADER_OCTETS);
    octets[0] = 0;
    octets[1] = 0xee;
    hello_refused(octets, length);
    say_hello(); /* the session was not touched */
    expect_session_works();
    close_peer();
}

/* I-47: anything else before HELLO is answered once, and the end. */
static void requests_before_hello(void)
{
    static const uint8_t opcodes[] = {
        KBTP_OP_LOAD,    KBTP_OP_STORE,      KBTP_OP_ALLOC_STORE, KBTP_OP_FREE, KBTP_OP_BIND,
        KBTP_OP_GOODBYE, KBTP_OP_COMPLETION, KBTP_OP_HELLO_ACK,   0x77,         0};
    open_peer();
    for (uint32_t i = 0; i < sizeof opcodes; i++) {
        uint8_t octets[PEER_OCTETS] = {0};
        struct kbtp_message request = peer_request(KBTP_OP_FREE, 1234, 0x4020, 0);
        encoded(&request, octets);
        octets[1] = opcodes[i];
        connect_peer();
        send(octets, 40);
        expect_malformed(1234, 0x4020);
        expect_end();
    }
    close_peer();
}

/* ---- in a session ------------------------------------------------------------------------ */

/* I-30, I-44, R-ST-09, R-IANA-01: answered, and the session goes on. */
static void unknown_and_misplaced_opcodes(void)
{
    open_peer();
    say_hello();
    for (uint32_t opcode = 0; opcode < 256; opcode++) {
        uint8_t octets[PEER_OCTETS] = {0};
        if ((opcode >= KBTP_OP_LOAD && opcode <= KBTP_OP_FREE) || opcode == KBTP_OP_HELLO ||
            opcode == KBTP_OP_GOODBYE)
            continue;
        struct kbtp_message request = peer_request(KBTP_OP_FREE, 7 + opcode, 0x4020, 0xffff & ~1);
        encoded(&request, octets);
        octets[1] = (uint8_t)opcode;
        /* Also as they should be: BIND and COMPLETION, then HELLO_ACK. */
        for (uint32_t length = 40; length <= 56; length += 16) {
            send(octets, length);
            expect_malformed(7 + opcode, 0x4020);
        }
    }
    expect_session_works();
    close_peer();
}

/* Lengths that disagree: too short, trailing octets, INLINE that says something else (I-30).
 * R-OPC-03 to -06, -09, R-DESC-08, R-ST-09 */
static void wrong_lengths(void)
{
    static const struct {
        uint8_t opcode;
        uint16_t flags;
        uint32_t length, octets;
    } cases[] = {
        {KBTP_OP_LOAD, 0, 8, 24},
        {KBTP_OP_LOAD, 0, 8, 39},
        {KBTP_OP_LOAD, 0, 8, 41},
        {KBTP_OP_LOAD, KBTP_FLAG_RECORD, 8, 40},
        {KBTP_OP_LOAD, KBTP_FLAG_INLINE, 8, 48}, /* I-44 */
        {KBTP_OP_LOAD, KBTP_FLAG_INLINE, 0, 40},
        {KBTP_OP_FREE, 0, 0, 25},
        {KBTP_OP_FREE, 0, 0, 40},
        {KBTP_OP_FREE, KBTP_FLAG_INLINE, 0, 24},
        {KBTP_OP_STORE, 0, 8, 48},
        {KBTP_OP_STORE, KBTP_FLAG_INLINE, 8, 47},
        {KBTP_OP_STORE, KBTP_FLAG_INLINE, 8, 49},
        {KBTP_OP_ALLOC_STORE, KBTP_FLAG_INLINE, 8, 40},
        {KBTP_OP_ALLOC_STORE, KBTP_FLAG_INLINE, 0, 41},
        {KBTP_OP_ALLOC_STORE, KBTP_FLAG_INLINE, UINT32_MAX, 48},
        {KBTP_OP_ALLOC_STORE, KBTP_FLAG_INLINE | KBTP_FLAG_RECORD, 8, 48},
        {KBTP_OP_GOODBYE, 0, 0, 25},
    };
    open_peer();
    say_hello();
    for (uint32_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint8_t octets[PEER_OCTETS] = {0};
        struct kbtp_message request = peer_request(KBTP_OP_STORE, i, 0x4021, 0);
        request.operands.data.length = cases[i].length;
        encoded(&request, octets);
        octets[1] = cases[i].opcode;
        octets[2] = (uint8_t)(cases[i].flags >> 8);
        octets[3] = (uint8_t)cases[i].flags;
        send(octets, cases[i].octets);
        expect_malformed(i, 0x4021);
        CU_ASSERT_EQUAL(usage_of(2), 0);
    }
    expect_session_works();
    close_peer();
}

/* I-31, R-ST-09: what cannot be parsed is MALFORMED, whatever else is wrong. I-29: without a parsed
 * STag a plain message. */
static void malformed_comes_first(void)
{
    open_peer();
    say_hello();
    uint8_t octets[PEER_OCTETS] = {0};
    struct kbtp_message request = peer_request(KBTP_OP_STORE, 5, UINT64_MAX, KBTP_FLAG_INVALIDATE);
    request.header.generation = 9;
    request.operands.data.length = 65;
    request.operands.data.stag = 0x2000;
    send(octets, encoded(&request, octets) + 1);
    expect_malformed(5, UINT64_MAX);
    expect_session_works();
    close_peer();
}

/* I-28, R-COMP-04, R-RDMAP-07: RECORD is not granted, so the Completion Descriptor is read over. */
static void records_are_not_written(void)
{
    open_peer();
    say_hello();
    struct kbtp_message request = peer_request(KBTP_OP_ALLOC_STORE, 5, 0x4020, KBTP_FLAG_RECORD);
    send_message(&request);
    expect(KBTP_OP_COMPLETION, KBTP_STATUS_OK);
    request = peer_request(KBTP_OP_FREE, 6, 0x4020, KBTP_FLAG_RECORD);
    send_message(&request);
    expect(KBTP_OP_COMPLETION, KBTP_STATUS_OK);
    close_peer();
}

/* I-44, R-HDR-03: unknown flags and Status are ignored; any Request ID comes back. */
static void the_rest_is_ignored(void)
{
    static const uint64_t ids[] = {0, UINT64_MAX, UINT64_C(0x0123456789abcdef)};
    open_peer();
    say_hello();
    for (uint32_t i = 0; i < 3; i++) {
        struct kbtp_message request = peer_request(KBTP_OP_FREE, ids[i], 0x4020, 0xfff2);
        request.header.status = 7;
        send_message(&request);
        struct kbtp_message answer = expect(KBTP_OP_COMPLETION, KBTP_STATUS_NOT_VALID);
        CU_ASSERT_EQUAL(answer.header.request_id, ids[i]);
        CU_ASSERT_EQUAL(answer.header.handle, 0x4020); /* R-HDR-07 */
        CU_ASSERT_EQUAL(answer.header.flags, 0);
        CU_ASSERT_EQUAL(answer.completion.reserved, 0); /* R-COMP-07 */
    }
    close_peer();
}

/* I-47: a second HELLO, and I-30: another Version (R-HDR-02), are answered; then the connection
 * ends, and the session is retained. */
static void what_ends_a_session(void)
{
    uint8_t octets[PEER_OCTETS] = {0};
    open_peer();
    for (uint32_t i = 0; i < 3; i++) {
        struct kbtp_message message =
            i == 0 ? peer_hello(ID, 4) : peer_request(KBTP_OP_FREE, 8, 0x4021, 0);
        say_hello();
        uint32_t length = encoded(&message, octets);
        octets[0] = i == 1 ? 2 : i == 2 ? 0 : 1;
        send(octets, length);
        if (i == 0)
            expect_malformed(0, 0);
        else
            expect_malformed(8, 0x4021);
        expect_end();
    }
    close_peer();
}

/* A message longer than the receive buffer ends the connection by itself (I-30). */
static void too_long(void)
{
    if (!can(RDMA_CAP_WRITE_ACKED))
        return;
    uint8_t octets[PEER_OCTETS] = {0};
    struct kbtp_message request = peer_request(KBTP_OP_ALLOC_STORE, 5, 0x4020, KBTP_FLAG_INLINE);
    request.operands.data.length = 49;
    open_peer();
    say_hello();
    send(octets, encoded(&request, octets) + 49);
    CU_ASSERT_EQUAL(peer.failed, RDMA_LENGTH_ERROR);
    expect_end();
    say_hello();
    expect_session_works();
    close_peer();
}

/* R-SESS-36, I-27: one request above the credits finds a receive, another one does not: that ends
 * the connection, and nothing is lost. */
static void more_requests_than_credits(void)
{
    bool is_told = can(RDMA_CAP_WRITE_ACKED); /* whoever sends, of what the peer makes of it */
    for (uint32_t count = 5; count <= 6; count++) {
        open_peer();
        say_hello();
        for (uint32_t i = 0; i < count; i++) {
            struct kbtp_message request = peer_request(KBTP_OP_ALLOC_STORE, i, 0x4020 + i, 0);
            CU_ASSERT_EQUAL(peer_send_message(&peer, &request), 0);
        }
        settle();
        CU_ASSERT_EQUAL(peer.failed, count == 5 || !is_told ? RDMA_OK : RDMA_RNR);
        if (count == 5) {
            for (uint32_t i = 0; i < count; i++)
                expect(KBTP_OP_COMPLETION, KBTP_STATUS_OK);
            expect_nothing();
        } else {
            CU_ASSERT_EQUAL(peer.state, PEER_DOWN);
        }
        close_peer();
    }
}

static void send_in_version_2(struct kbtp_message message)
{
    uint8_t octets[PEER_OCTETS];
    int length = kbtp_wire_encode(&message, false, octets, sizeof octets);
    CU_ASSERT_FATAL(length > 0);
    octets[0] = 2;
    CU_ASSERT_EQUAL(peer_send(&peer, octets, (uint32_t)length), 0);
}

/* I-30, I-47: behind a message that ends the connection nothing takes effect, though it may be
 * there already. */
static void nothing_behind_the_last_message(void)
{
    struct kbtp_message hello = peer_hello(ID, 4);
    struct kbtp_message load = peer_request(KBTP_OP_LOAD, 1, 0x4000, 0);
    struct kbtp_message store = peer_request(KBTP_OP_ALLOC_STORE, 2, 0x4000, 0);
    struct kbtp_message other = peer_request(KBTP_OP_FREE, 3, 0x4000, 0);
    struct kbtp_message stranger = peer_hello(ID, 0); /* without a credit: refused */
    open_peer();
    const struct kbtp_message *const before_hello[] = {&load, &stranger, NULL};
    for (uint32_t i = 0; i < 3; i++) {
        CU_ASSERT_EQUAL_FATAL(peer_connect(&peer, "target"), 0);
        settle();
        if (before_hello[i]) {
            CU_ASSERT_EQUAL(peer_send_message(&peer, before_hello[i]), 0);
        } else {
            send_in_version_2(other);
        }
        CU_ASSERT_EQUAL(peer_send_message(&peer, &hello), 0);
        CU_ASSERT_EQUAL(peer_send_message(&peer, &store), 0);
        settle();
        expect(i == 0 ? KBTP_OP_COMPLETION : KBTP_OP_HELLO_ACK, KBTP_STATUS_MALFORMED);
        expect_nothing();
        CU_ASSERT_EQUAL(peer.state, PEER_DOWN);
        CU_ASSERT_EQUAL(state_of(ID - 1), KBTP_SESSION_FREE);
    }
    say_hello();
    send_in_version_2(other);
    CU_ASSERT_EQUAL(peer_send_message(&peer, &store), 0);
    settle();
    expect(KBTP_OP_COMPLETION, KBTP_STATUS_MALFORMED);
    expect_nothing();
    CU_ASSERT_EQUAL(state_of(ID - 1), KBTP_SESSION_RETAINED);
    CU_ASSERT_EQUAL(mem_load64(&pair.mem, &pair.memory.sessions[ID - 1].usage), 0);
    close_peer();
}

int main(void)
{
    static const struct test tests[] = {
        {"no header", no_header},
        {"bad HELLOs", bad_hellos},
        {"requests before HELLO", requests_before_hello},
        {"unknown and misplaced opcodes", unknown_and_misplaced_opcodes},
        {"wrong lengths", wrong_lengths},
        {"MALFORMED comes first", malformed_comes_first},
        {"records are not written", records_are_not_written},
        {"the rest is ignored", the_rest_is_ignored},
        {"what ends a session", what_ends_a_session},
        {"too long", too_long},
        {"more requests than credits", more_requests_than_credits},
        {"nothing behind the last message", nothing_behind_the_last_message},
    };
    return run_over_providers("ref/malformed", tests, sizeof tests / sizeof *tests, PROVIDERS);
}
