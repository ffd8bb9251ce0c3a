/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The draft's Examples, with a real target and the draft's numbers, octet for octet: the messages
 * on the wire, and what ring, table and blocks hold in memory then. R-EX-01 to -04, R-GEN-04.
 */
#include <string.h>

#include "tests/ref/ends.h"
#include "tests/ref/fixture.h"
#include "tests/ref/wire_vectors.h"

static const char alloc_store[] =
    "01 12 00 01 00 00 00 00 00 00 00 07 00 00 00 00 00 00 40 01 00 00 00 00 "
    "00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 08 4b 56 42 4c 4f 43 4b 21";
static const char its_completion[] =
    "01 20 00 00 00 00 00 00 00 00 00 07 00 00 00 00 00 00 40 01 00 05 00 00 "
    "00 00 00 08 00 00 00 00 00 00 00 00 00 15 00 00";

/* In memory, from `at` on, are these octets. */
static bool holds_octets(const volatile void *at, const char *hex)
{
    uint8_t expected[WIRE_MAX_OCTETS];
    size_t length = wire_from_hex(hex, expected);
    return memcmp((const void *)at, expected, length) == 0;
}

/* The oldest message that the peer has got is this one; its buffer is posted again. */
static void expect_message(struct peer *by, const char *hex)
{
    uint8_t expected[WIRE_MAX_OCTETS];
    struct kbtp_message message;
    size_t length = wire_from_hex(hex, expected);
    CU_ASSERT_FATAL(by->got_count != 0);
    CU_ASSERT_EQUAL(by->got_octets[0], length);
    CU_ASSERT_EQUAL(memcmp(by->receives[by->got[0]], expected, length), 0);
    CU_ASSERT_EQUAL(peer_take(by, &message), 0);
}

static void send_hex(struct peer *by, const char *hex)
{
    uint8_t octets[WIRE_MAX_OCTETS];
    size_t length = wire_from_hex(hex, octets);
    CU_ASSERT_EQUAL_FATAL(peer_send(by, octets, (uint32_t)length), 0);
}

/* ---- messages ------------------------------------------------------------------------------ */

static void settle_both(struct peer *hand)
{
    for (uint32_t n = 0; n < 100; n++) {
        peer_poll(hand);
        pair_poll(&pair);
    }
}

/* Block 42 of a pool of 32 KiB blocks is the next one that is free. */
static void open_pool_of_the_example(void)
{
    struct pair_config config = pair_defaults();
    config.target.block_count = 64;
    config.target.block_size = 32768;
    config.target.first_offset = 0;
    config.target.first_generation = 4;
    config.target.first_handle = 0x4000;
    config.handles = 64;
    config.workers = 1;
    config.initiators = 1;
    config.quotas[0] = 64;
    open_connected(&config);
    for (uint32_t n = 0; n < 42; n++)
        expect_status(run(0, KBTP_OP_ALLOC_STORE, n + 2, 0, KBTP_FLAG_INLINE), KBTP_STATUS_OK);
    CU_ASSERT_EQUAL_FATAL(pair_goodbye(&pair, 0, false), 0);
}

/* R-EX-01, -02, R-TBL-01, -02, R-ALLOC-04: octets sent to a target by hand, and what it answers. */
static void the_target_answers(void)
{
    if (!can(RDMA_CAP_BASE_TO))
        return;
    struct peer hand;
    struct kbtp_message hello = peer_hello(1, 4), ack;
    open_pool_of_the_example();
    const char *entry = (const char *)&pair.memory.entries[1];
    const char *slot = (const char *)&pair.memory.slots[42];
    CU_ASSERT(holds_octets(entry, "00 00 00 04 00 00 00 00 00 00 00 00 00 00 00 00"));
    CU_ASSERT(holds_octets(slot, "00 00 00 2a 00 00 00 00 00 00 00 00 00 15 00 00"));
    CU_ASSERT_EQUAL_FATAL(peer_open(&hand, another_handle()), 0);
    CU_ASSERT_EQUAL_FATAL(peer_connect(&hand, "target"), 0);
    settle_both(&hand);
    CU_ASSERT_EQUAL_FATAL(peer_send_message(&hand, &hello), 0);
    settle_both(&hand);
    CU_ASSERT_EQUAL_FATAL(peer_take(&hand, &ack), 0);
    CU_ASSERT_EQUAL(ack.hello_ack.block_size, 32768);

    send_hex(&hand, alloc_store);
    settle_both(&hand);
    expect_message(&hand, its_completion);
    CU_ASSERT(holds_octets(entry, "00 01 00 05 00 00 00 08 00 00 00 00 00 15 00 00"));
    CU_ASSERT(holds_octets(slot, "00 00 00 2a 00 00 00 00 ff ff ff ff ff ff ff ff"));
    CU_ASSERT(holds_octets(pair.memory.blocks + 0x150000, "4b 56 42 4c 4f 43 4b 21 00"));

    peer_disconnect(&hand);
    settle_both(&hand);
    peer_close(&hand);
    close_pair();
}

/* R-EX-01, -02: an initiator sends the octets, with a Request ID of its own, and understands the
 * answer. */
static void the_initiator_asks(void)
{
    struct kbtp_initiator_config config = plain_config();
    uint8_t octets[WIRE_MAX_OCTETS];
    open_ready(&config);
    struct kbtp_operation store = {.opcode = KBTP_OP_ALLOC_STORE,
                                   .handle = 0x4001,
                                   .flags = KBTP_FLAG_INLINE,
                                   .data = "KVBLOCK!",
                                   .length = 8};
    CU_ASSERT_EQUAL_FATAL(kbtp_initiator_submit(initiator, &cpu, &store, 3), 0);
    settle();
    CU_ASSERT_FATAL(peer.got_count == 1 && peer.got_octets[0] == 48);
    memcpy(octets, peer.receives[peer.got[0]], 48);
    CU_ASSERT(holds_octets(octets, "01 12 00 01"));
    CU_ASSERT(holds_octets(octets + 12, alloc_store + 12 * sizeof "01"));
    heard();

    uint8_t answer[WIRE_MAX_OCTETS];
    CU_ASSERT_EQUAL(wire_from_hex(its_completion, answer), 40);
    memcpy(answer + 4, octets + 4, 8); /* its Request ID */
    CU_ASSERT_EQUAL(peer_send(&peer, answer, 40), 0);
    settle();
    CU_ASSERT_EQUAL_FATAL(outcomes_count, 1);
    CU_ASSERT_EQUAL(outcomes[0].cookie, 3);
    CU_ASSERT_EQUAL(outcomes[0].handle, 0x4001);
    CU_ASSERT_EQUAL(outcomes[0].generation, 5);
    CU_ASSERT_EQUAL(outcomes[0].status, KBTP_STATUS_OK);
    CU_ASSERT_EQUAL(outcomes[0].data_length, 8);
    CU_ASSERT_EQUAL(outcomes[0].block_offset, 0x150000);
    close_ends();
}

/* ---- the ring ------------------------------------------------------------------------------ */

/* Blocks 100 to 103, of 64 octets, on a ring of four slots: Block Offsets 0x1900 to 0x19c0. */
static void open_ring_of_four(uint32_t blocks)
{
    struct pair_config config = pair_defaults();
    config.target.block_count = blocks;
    config.target.slot_count = 4;
    config.target.first_offset = UINT64_C(100) * 64;
    config.initiators = 2;
    config.quotas[0] = 1;
    config.quotas[1] = blocks - 1;
    open_connected(&config);
}

static uint64_t head(void)
{
    return mem_load64(&pair.mem, pair.memory.head);
}

static uint64_t tail(void)
{
    return mem_load64(&pair.mem, pair.memory.tail);
}

static bool slot_holds(uint32_t slot, const char *hex)
{
    return holds_octets((const char *)&pair.memory.slots[slot], hex);
}

/* Y's handle n is bound to block `number`. */
static void allocates(uint32_t n, uint32_t number)
{
    struct kbtp_outcome outcome = run(1, KBTP_OP_ALLOC_STORE, n, 8, KBTP_FLAG_INLINE);
    expect_status(outcome, KBTP_STATUS_OK);
    CU_ASSERT_EQUAL(outcome.block_offset, UINT64_C(64) * number);
}

/* R-RING-12 to -15: F = 3 in a ring of N = 4: the last slot is of one lap before. */
static void a_ring_begins(void)
{
    if (!can(RDMA_CAP_BASE_TO | RDMA_CAP_MASKED))
        return;
    open_ring_of_four(3);
    CU_ASSERT(slot_holds(0, "00 00 00 00 00 00 00 00 00 00 00 00 00 00 19 00"));
    CU_ASSERT(slot_holds(1, "00 00 00 01 00 00 00 00 00 00 00 00 00 00 19 40"));
    CU_ASSERT(slot_holds(2, "00 00 00 02 00 00 00 00 00 00 00 00 00 00 19 80"));
    CU_ASSERT(slot_holds(3, "ff ff ff ff 00 00 00 00 ff ff ff ff ff ff ff ff"));
    CU_ASSERT_EQUAL(head(), 0);
    CU_ASSERT_EQUAL(tail(), UINT64_C(0x0000000300000030));
    close_pair();
}

/* R-EX-03, R-RING-05, -07 to -09, -22: the counter values of the draft, left by a target that
 * allocates; the fifth allocation takes what a free has put into slot 0. */
static void head_advances(void)
{
    if (!can(RDMA_CAP_BASE_TO | RDMA_CAP_MASKED))
        return;
    static const uint64_t values[] = {0x0000000100000010, 0x0000000200000020, 0x0000000300000030};
    open_ring_of_four(4);
    for (uint32_t n = 0; n < 3; n++) {
        allocates(n, 100 + n);
        CU_ASSERT_EQUAL(head(), values[n]);
    }
    expect_status(run(1, KBTP_OP_FREE, 0, 0, 0), KBTP_STATUS_OK);
    CU_ASSERT_EQUAL(tail(), UINT64_C(0x0000000500000010));
    CU_ASSERT(slot_holds(0, "00 00 00 04 00 00 00 00 00 00 00 00 00 00 19 00"));
    allocates(3, 103);
    CU_ASSERT_EQUAL(head(), UINT64_C(0x0000000400000000));
    expect_status(run(1, KBTP_OP_FREE, 1, 0, 0), KBTP_STATUS_OK);
    allocates(4, 100);
    CU_ASSERT_EQUAL(head(), UINT64_C(0x0000000500000010));
    close_pair();
}

/*
 * R-EX-04, R-RING-23, -24, -27, -30, R-FREE-05: X's chain has taken ticket 0 and is delayed. A
 * chain does on the target's ring what this test does: FetchAdd, and later the rest.
 */
static void a_free_is_deferred(void)
{
    if (!can(RDMA_CAP_BASE_TO | RDMA_CAP_MASKED))
        return;
    struct kbtp_alloc x = {0};
    open_ring_of_four(4);
    const struct kbtp_ring *ring = &pair.target.pool.ring;
    kbtp_ring_take_ticket(&pair.mem, ring, &x);
    CU_ASSERT_EQUAL(x.ticket, 0);
    allocates(0, 101);
    allocates(1, 102);
    allocates(2, 103);
    expect_status(run(1, KBTP_OP_FREE, 0, 0, 0), KBTP_STATUS_OK);
    pair_settle(&pair);
    CU_ASSERT_EQUAL(tail(), UINT64_C(0x0000000500000010)); /* ticket 4 is taken */
    CU_ASSERT_EQUAL(look_at_workers().deferred, 1);
    CU_ASSERT(slot_holds(0, "00 00 00 00 00 00 00 00 00 00 00 00 00 00 19 00"));

    CU_ASSERT(kbtp_ring_poll_ordered(&pair.mem, ring, &x));
    CU_ASSERT_EQUAL(x.block_offset, 64 * 100);
    CU_ASSERT(slot_holds(0, "00 00 00 00 00 00 00 00 ff ff ff ff ff ff ff ff"));
    pair_settle(&pair);
    CU_ASSERT_EQUAL(look_at_workers().deferred, 0);
    CU_ASSERT(slot_holds(0, "00 00 00 04 00 00 00 00 00 00 00 00 00 00 19 40"));
    allocates(3, 101);
    CU_ASSERT_EQUAL(head(), UINT64_C(0x0000000500000010));
    CU_ASSERT(slot_holds(0, "00 00 00 04 00 00 00 00 ff ff ff ff ff ff ff ff"));
    close_pair();
}

int main(void)
{
    static const struct test tests[] = {
        {"the target answers ALLOC_STORE", the_target_answers},
        {"the initiator asks", the_initiator_asks},
        {"a ring begins", a_ring_begins},
        {"Head advances", head_advances},
        {"a free is deferred", a_free_is_deferred},
    };
    return run_over_providers("ref/examples", tests, sizeof tests / sizeof *tests, PROVIDERS);
}
