/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * STags that are valid for a single request (draft: Security Considerations): a window is bound for
 * it, and its completion takes the STag back, however it ends (I-29). That one is gone is found by
 * using it. What an initiator makes of a target that takes back something else.
 */
#include <errno.h>
#include <string.h>

#include "tests/ref/ends.h"
#include "tests/ref/fixture.h"

#define INVALIDATE KBTP_FLAG_INVALIDATE
#define PIECE 64u /* octets of the buffer of one request */
#define WINDOWS 4u

static uint8_t data[WINDOWS * PIECE];
static struct rdma_region region;
static struct rdma_window windows[WINDOWS];

static struct pair_initiator *first(void)
{
    return &pair.initiators[0];
}

static void open_with_windows(const struct pair_config *config)
{
    open_connected(config);
    const uint32_t access =
        RDMA_LOCAL_WRITE | RDMA_REMOTE_READ | RDMA_REMOTE_WRITE | RDMA_BIND_WINDOW;
    CU_ASSERT_EQUAL_FATAL(rdma_reg(first()->cpu.rdma, data, sizeof data, access, 0x9000, &region),
                          0);
    for (uint32_t i = 0; i < WINDOWS; i++)
        CU_ASSERT_EQUAL_FATAL(rdma_window_alloc(first()->cpu.rdma, &windows[i]), 0);
}

static void close_windows(void)
{
    for (uint32_t i = 0; i < WINDOWS; i++)
        CU_ASSERT_EQUAL(rdma_window_free(first()->cpu.rdma, &windows[i]), 0);
    CU_ASSERT_EQUAL(rdma_dereg(first()->cpu.rdma, &region), 0);
    close_pair();
}

/* Window n for piece n, with just the right that the operation needs. */
static struct kbtp_operation in_window(uint32_t n, uint8_t opcode, uint32_t handle, uint32_t length,
                                       uint16_t flags)
{
    uint32_t access = opcode == KBTP_OP_LOAD ? RDMA_REMOTE_WRITE : RDMA_REMOTE_READ;
    CU_ASSERT_EQUAL_FATAL(kbtp_initiator_bind(first()->initiator, &first()->cpu, &windows[n],
                                              &region, n * PIECE, PIECE, access),
                          0);
    struct kbtp_operation operation = pair_operation(&pair, 0, opcode, handle, length, flags);
    operation.data = data + n * PIECE;
    operation.stag = windows[n].stag;
    operation.tagged_offset = windows[n].base_to;
    return operation;
}

static struct kbtp_outcome run_in_window(uint8_t opcode, uint32_t handle, uint32_t length,
                                         uint16_t flags)
{
    struct kbtp_operation operation = in_window(0, opcode, handle, length, flags);
    struct kbtp_outcome outcome = pair_do(&pair, 0, &operation);
    windows[0].bound = 0;
    return outcome;
}

/* A target that still has the STag loads into it: is it let in? If not, the connection ends. */
static bool is_valid(uint32_t stag, uint64_t tagged_offset)
{
    struct kbtp_operation load =
        pair_operation(&pair, 0, KBTP_OP_LOAD, 0, PIECE, KBTP_FLAG_ALLOW_UNSEALED);
    load.stag = stag;
    load.tagged_offset = tagged_offset;
    struct kbtp_outcome outcome = pair_do(&pair, 0, &load);
    if (outcome.error == 0) {
        expect_status(outcome, KBTP_STATUS_OK); /* else it would not be used */
        return true;
    }
    CU_ASSERT_EQUAL(outcome.error, -ECONNRESET);
    pair_settle(&pair);
    CU_ASSERT_EQUAL_FATAL(pair_connect(&pair, 0), 0);
    return false;
}

static void expect_revoked(struct kbtp_outcome outcome, enum kbtp_status status)
{
    expect_status(outcome, status);
    CU_ASSERT_EQUAL(outcome.invalidated, 1);
    CU_ASSERT_EQUAL(outcome.by_record, 0);
}

static int invalidate(uint32_t stag)
{
    return kbtp_initiator_invalidate(first()->initiator, &first()->cpu, stag, 8);
}

/* ---- the way it is meant ----------------------------------------------------------------- */

/* R-SEC-03, -04, R-FLAG-04, R-DESC-02: a block goes in and comes out through windows, whose STags
 * are gone when the outcomes are there; what a second use of one would write is not written. */
static void a_window_for_each_request(void)
{
    struct pair_config config = pair_defaults();
    open_with_windows(&config);
    uint32_t stags[12];
    for (uint32_t round = 0; round < 4; round++) {
        memset(data, (int)(0x20 + round), PIECE);
        expect_revoked(run_in_window(KBTP_OP_ALLOC_STORE, 0, 40, INVALIDATE), KBTP_STATUS_OK);
        stags[3 * round] = windows[0].stag;
        memset(data, (int)(0x30 + round), PIECE);
        expect_revoked(run_in_window(KBTP_OP_STORE, 0, 48, INVALIDATE | KBTP_FLAG_SEAL),
                       KBTP_STATUS_OK);
        stags[3 * round + 1] = windows[0].stag;
        memset(data, 0, sizeof data);
        expect_revoked(run_in_window(KBTP_OP_LOAD, 0, 64, INVALIDATE), KBTP_STATUS_OK);
        stags[3 * round + 2] = windows[0].stag;
        for (uint32_t i = 0; i < PIECE; i++)
            CU_ASSERT_EQUAL(data[i], i < 48 ? 0x30 + round : 0);
        memset(data, 0xee, sizeof data);
        CU_ASSERT_FALSE(is_valid(stags[3 * round + round % 3], windows[0].base_to));
        for (uint32_t i = 0; i < sizeof data; i++)
            CU_ASSERT_EQUAL(data[i], 0xee);
        expect_status(run(0, KBTP_OP_FREE, 0, 0, 0), KBTP_STATUS_OK);
    }
    for (uint32_t i = 0; i < 12; i++)
        for (uint32_t j = 0; j < i; j++)
            CU_ASSERT_NOT_EQUAL(stags[i], stags[j]);
    close_windows();
}

/* R-SEC-03: requests that are outstanding at once have STags of their own, and each completion
 * takes back that of its request alone. */
static void several_at_once(void)
{
    struct pair_config config = pair_defaults();
    open_with_windows(&config);
    fill(0, 0x5c);
    expect_status(run(0, KBTP_OP_ALLOC_STORE, 0, 32, KBTP_FLAG_SEAL), KBTP_STATUS_OK);
    for (uint32_t round = 0; round < 5; round++) {
        memset(data, 0, sizeof data);
        for (uint32_t i = 0; i < WINDOWS; i++) {
            struct kbtp_operation load = in_window(i, KBTP_OP_LOAD, 0, PIECE, INVALIDATE);
            CU_ASSERT_EQUAL_FATAL(pair_submit(&pair, 0, &load, i), 0);
        }
        for (uint32_t i = 0; i < WINDOWS; i++) {
            struct kbtp_outcome outcome = pair_wait(&pair, 0);
            expect_revoked(outcome, KBTP_STATUS_OK);
            CU_ASSERT_EQUAL(outcome.cookie, i);
            CU_ASSERT_EQUAL(data[i * PIECE + 31], 0x5c);
            CU_ASSERT_EQUAL(data[i * PIECE + 32], 0);
            windows[i].bound = 0;
        }
    }
    close_windows();
}

/* I-29, R-FLAG-04: on every outcome of a request that could be parsed. */
static void however_it_ends(void)
{
    struct pair_config config = pair_defaults();
    config.unchecked = true;
    open_with_windows(&config);
    static const struct {
        uint8_t opcode;
        uint8_t handle;
        uint8_t length;
        uint8_t status;
    } cases[] = {
        {KBTP_OP_ALLOC_STORE, 0, 40, KBTP_STATUS_OK},
        {KBTP_OP_ALLOC_STORE, 0, 8, KBTP_STATUS_ALREADY_BOUND},
        {KBTP_OP_LOAD, 0, 39, KBTP_STATUS_TOO_LARGE},
        {KBTP_OP_LOAD, 0, 40, KBTP_STATUS_NOT_SEALED},
        {KBTP_OP_LOAD, 1, 40, KBTP_STATUS_NOT_VALID},
        {KBTP_OP_LOAD, 99, 40, KBTP_STATUS_INVALID_HANDLE},
        {KBTP_OP_STORE, 1, 8, KBTP_STATUS_NOT_VALID},
        {KBTP_OP_STORE, 0, 65, KBTP_STATUS_TOO_LARGE},
        {KBTP_OP_STORE, 16, 8, KBTP_STATUS_INVALID_HANDLE},
        {KBTP_OP_STORE, 0, 0, KBTP_STATUS_OK}, /* it reads nothing (I-48), but has an STag */
    };
    for (uint32_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint16_t flags = INVALIDATE;
        if (cases[i].opcode == KBTP_OP_LOAD && cases[i].status == KBTP_STATUS_TOO_LARGE)
            flags |= KBTP_FLAG_ALLOW_UNSEALED;
        expect_revoked(run_in_window(cases[i].opcode, cases[i].handle, cases[i].length, flags),
                       cases[i].status);
        /* After a store of nothing there would be nothing to load. */
        CU_ASSERT(cases[i].length == 0 || !is_valid(windows[0].stag, windows[0].base_to));
    }
    close_windows();
}

/* R-FLAG-06: nothing goes with INLINE, FREE or without the flag; then the STag is still
 * good, and the initiator takes it back itself. */
static void what_is_not_invalidated(void)
{
    struct pair_config config = pair_defaults();
    config.unchecked = true;
    open_with_windows(&config);
    expect_status(run(0, KBTP_OP_ALLOC_STORE, 0, 8, KBTP_FLAG_SEAL), KBTP_STATUS_OK);
    static const struct {
        uint8_t opcode, handle;
        uint16_t flags;
    } cases[] = {{KBTP_OP_ALLOC_STORE, 1, INVALIDATE | KBTP_FLAG_INLINE},
                 {KBTP_OP_FREE, 1, INVALIDATE},
                 {KBTP_OP_LOAD, 0, 0}};
    for (uint32_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct kbtp_operation load = in_window(0, KBTP_OP_LOAD, 0, 8, 0);
        struct kbtp_operation it =
            pair_operation(&pair, 0, cases[i].opcode, cases[i].handle, 8, cases[i].flags);
        it.stag = load.stag;
        it.tagged_offset = load.tagged_offset;
        struct kbtp_outcome outcome = pair_do(&pair, 0, &it);
        expect_status(outcome, KBTP_STATUS_OK);
        CU_ASSERT_EQUAL(outcome.invalidated, 0);
        CU_ASSERT(is_valid(load.stag, load.tagged_offset));
        CU_ASSERT_EQUAL(invalidate(load.stag), 0);
        outcome = pair_wait(&pair, 0);
        expect_revoked(outcome, KBTP_STATUS_OK);
        CU_ASSERT_EQUAL(outcome.opcode, KBTP_INVALIDATION);
        CU_ASSERT_EQUAL(outcome.cookie, 8);
        CU_ASSERT_FALSE(is_valid(load.stag, load.tagged_offset));
        windows[0].bound = 0;
    }
    close_windows();
}

/* A refused LOAD to STag 0: nothing to invalidate, a plain message, and the session goes on. */
static void no_stag_no_invalidation(void)
{
    struct pair_config config = pair_defaults();
    config.unchecked = true;
    open_with_windows(&config);
    struct kbtp_operation load = pair_operation(&pair, 0, KBTP_OP_LOAD, 3, 8, INVALIDATE);
    load.stag = 0;
    struct kbtp_outcome outcome = pair_do(&pair, 0, &load);
    expect_status(outcome, KBTP_STATUS_NOT_VALID);
    CU_ASSERT_EQUAL(outcome.invalidated, 0);
    CU_ASSERT_EQUAL(kbtp_initiator_state(first()->initiator), KBTP_INITIATOR_READY);
    close_windows();
}

/* The device of the target cannot: a plain message. The initiator sees that, and does it itself. */
static void a_target_that_cannot(void)
{
    struct pair_config config = pair_defaults();
    if (!provider->loop)
        return;
    open_with_windows(&config);
    pair.target.caps.bits &= ~(uint32_t)RDMA_CAP_SEND_INV;
    expect_status(run(0, KBTP_OP_ALLOC_STORE, 0, 8, KBTP_FLAG_SEAL), KBTP_STATUS_OK);
    struct kbtp_outcome outcome = run_in_window(KBTP_OP_LOAD, 0, 8, INVALIDATE);
    expect_status(outcome, KBTP_STATUS_OK);
    CU_ASSERT_EQUAL(outcome.invalidated, 0);
    CU_ASSERT(is_valid(windows[0].stag, windows[0].base_to));
    CU_ASSERT_EQUAL(invalidate(windows[0].stag), 0);
    expect_revoked(pair_wait(&pair, 0), KBTP_STATUS_OK);
    expect_status(run_in_window(KBTP_OP_LOAD, 0, 8, INVALIDATE), KBTP_STATUS_OK); /* bound anew */
    close_windows();
}

/* ---- what cannot be ---------------------------------------------------------------------- */

static int bind_first(void)
{
    return kbtp_initiator_bind(first()->initiator, &first()->cpu, &windows[0], &region, 0, PIECE,
                               RDMA_REMOTE_WRITE);
}

/* Without a session, without room, twice; and a loss while it is under way. */
static void what_is_refused(void)
{
    struct pair_config config = pair_defaults();
    open_with_windows(&config);
    CU_ASSERT_EQUAL(bind_first(), 0);
    for (uint32_t i = 0; i < 4; i++) {
        struct kbtp_operation load = pair_operation(&pair, 0, KBTP_OP_LOAD, 0, 8, 0);
        CU_ASSERT_EQUAL(pair_submit(&pair, 0, &load, i), 0);
    }
    CU_ASSERT_EQUAL(invalidate(windows[0].stag), -EAGAIN);
    for (uint32_t i = 0; i < 4; i++)
        expect_status(pair_wait(&pair, 0), KBTP_STATUS_NOT_VALID);
    CU_ASSERT_EQUAL(bind_first(), 0); /* it is bound: 2B */
    pair_settle(&pair);
    CU_ASSERT(pair_is_down(&pair, 0));
    CU_ASSERT_EQUAL(bind_first(), -ENOTCONN);
    CU_ASSERT_EQUAL(invalidate(windows[0].stag), -ENOTCONN);
    CU_ASSERT_EQUAL_FATAL(pair_connect(&pair, 0), 0);
    CU_ASSERT_EQUAL(bind_first(), 0); /* with the connection went the window */
    CU_ASSERT_EQUAL(invalidate(windows[0].stag + 0x100), 0);
    struct kbtp_outcome outcome = pair_wait(&pair, 0);
    CU_ASSERT_EQUAL(outcome.error, -ECONNRESET);
    CU_ASSERT_EQUAL(outcome.opcode, KBTP_INVALIDATION);
    CU_ASSERT_EQUAL(outcome.cookie, 8);
    CU_ASSERT_EQUAL(outcome.invalidated, 0);
    pair_settle(&pair);
    CU_ASSERT_EQUAL_FATAL(pair_connect(&pair, 0), 0);
    uint32_t bound = 0;
    int failed = 0;
    for (; bound < WINDOWS && failed == 0; bound++)
        failed = kbtp_initiator_bind(first()->initiator, &first()->cpu, &windows[bound], &region, 0,
                                     PIECE, RDMA_REMOTE_WRITE);
    CU_ASSERT_EQUAL(failed, 0);
    close_windows();
}

/* A bind leaves room for the request that is to use the window, and for GOODBYE: of 12 places in
 * the send queue, of which HELLO has one still, the last two. */
static void no_room_for_a_bind(void)
{
    struct pair_config config = pair_defaults();
    if (!provider->loop)
        return;
    open_with_windows(&config);
    loop_hold_completions(first()->cpu.rdma, true);
    for (uint32_t i = 0; i < 4; i++) {
        CU_ASSERT_EQUAL(bind_first(), 0);
        CU_ASSERT_EQUAL(invalidate(windows[0].stag), 0);
    }
    for (uint32_t i = 1; i < WINDOWS; i++)
        CU_ASSERT_EQUAL(kbtp_initiator_bind(first()->initiator, &first()->cpu, &windows[i], &region,
                                            0, PIECE, RDMA_REMOTE_READ),
                        i < 2 ? 0 : -EAGAIN);
    loop_hold_completions(first()->cpu.rdma, false);
    for (uint32_t i = 0; i < 4; i++)
        expect_revoked(pair_wait(&pair, 0), KBTP_STATUS_OK);
    CU_ASSERT_EQUAL(bind_first(), 0);
    close_windows();
}

/* ---- a wrong target ---------------------------------------------------------------------- */

/* Wrong peer: R-FLAG-04, -06. A completion takes back what was not asked for, or HELLO_ACK takes
 * back anything: the session ends, and the outcome of the request is unknown. */
static void it_takes_back_something_else(void)
{
    for (uint32_t wrong = 0; wrong < 3; wrong++) {
        struct kbtp_initiator_config config = plain_config();
        struct rdma_region mine, other;
        struct kbtp_message ack = good_ack(), said = ack;
        static uint64_t octets[2];
        uint8_t image[KBTP_HELLO_ACK_MAX_OCTETS];
        open_ends(&config);
        begin();
        CU_ASSERT_EQUAL(
            rdma_reg(cpu.rdma, &octets[0], 8, RDMA_LOCAL_WRITE | RDMA_REMOTE_WRITE, 0, &mine), 0);
        CU_ASSERT_EQUAL(
            rdma_reg(cpu.rdma, &octets[1], 8, RDMA_LOCAL_WRITE | RDMA_REMOTE_WRITE, 0, &other), 0);
        if (wrong != 0) {
            tell(&ack);
            struct kbtp_operation it = operation(KBTP_OP_LOAD, 0x4000, 8, wrong == 1 ? 0 : 8);
            it.stag = mine.stag;
            CU_ASSERT_EQUAL_FATAL(kbtp_initiator_submit(initiator, &cpu, &it, 3), 0);
            settle();
            said = completion(heard().header.request_id, KBTP_STATUS_OK);
        }
        const struct rdma_wr how = {.op = RDMA_SEND_INV,
                                    .imm_stag = wrong == 2 ? other.stag : mine.stag};
        int length = kbtp_wire_encode(&said, false, image, sizeof image);
        CU_ASSERT_EQUAL(peer_send_as(&peer, &how, image, (uint32_t)length), 0);
        settle();
        expect_down(-EPROTO);
        CU_ASSERT_EQUAL(outcomes_count, wrong != 0);
        CU_ASSERT(wrong == 0 || outcomes[0].error == -ECONNRESET);
        CU_ASSERT_EQUAL(rdma_dereg(cpu.rdma, &mine), 0);
        CU_ASSERT_EQUAL(rdma_dereg(cpu.rdma, &other), 0);
        close_ends();
    }
}

/* The answer to an invalidation is this side's device's to give. */
static void it_answers_an_invalidation(void)
{
    struct kbtp_initiator_config config = plain_config();
    open_ready(&config);
    loop_hold(cpu.rdma, 1u << RDMA_LOCAL_INV);
    CU_ASSERT_EQUAL(kbtp_initiator_invalidate(initiator, &cpu, 0x2000, 4), 0);
    struct kbtp_message said = completion(UINT64_C(1) << 16, KBTP_STATUS_OK);
    tell(&said);
    settle();
    CU_ASSERT_EQUAL(kbtp_initiator_why(initiator), -EPROTO);
    CU_ASSERT_EQUAL(outcomes_count, 1);
    CU_ASSERT_EQUAL(outcomes[0].error, -ECONNRESET);
    close_ends();
}

int main(void)
{
    static const struct test tests[] = {
        {"a window for each request", a_window_for_each_request},
        {"several at once", several_at_once},
        {"however it ends", however_it_ends},
        {"what is not invalidated", what_is_not_invalidated},
        {"no STag, no invalidation", no_stag_no_invalidation},
        {"a target that cannot", a_target_that_cannot},
        {"what is refused", what_is_refused},
        {"no room for a bind", no_room_for_a_bind},
    };
    static const struct test wrong[] = {
        {"it takes back something else", it_takes_back_something_else},
        {"it answers an invalidation", it_answers_an_invalidation},
    };
    const size_t count = sizeof tests / sizeof *tests;
    provider = &provider_infiniband;
    int failed = run_tests("STags for a single request, InfiniBand", tests, count);
    if (!failed)
        failed = run_over_providers("STags for a single request", tests, count, 1);
    return failed ? failed : run_over_providers("a target that takes back too much", wrong, 2, 1);
}
