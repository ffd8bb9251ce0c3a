/* SPDX-License-Identifier: BSD-3-Clause */
/* Who may LOAD whose handles (draft: Session Establishment): a grant says whom it lets read. */
#include <errno.h>
#include <string.h>

#include "ref/chain_load.h"
#include "tests/ref/fixture.h"

#define HANDLES 16u
#define EVERYBODY 0u

/* Initiator i is of reader class i; masks of the three ranges. */
static struct pair_config with_readers(uint32_t first, uint32_t second, uint32_t third)
{
    struct pair_config config = pair_defaults();
    const uint32_t masks[] = {first, second, third};
    for (uint32_t i = 0; i < 3; i++) {
        config.readable_by[i] = masks[i];
        config.reader_class[i] = i;
    }
    return config;
}

/* Initiator i, of handle n in the range of `owner`. */
static struct kbtp_outcome ask(uint32_t i, uint8_t opcode, uint32_t owner, uint32_t n)
{
    struct kbtp_operation operation = pair_operation(&pair, i, opcode, n, 64, 0);
    operation.handle = pair.config.target.first_handle + owner * pair.config.handles + n;
    return pair_do(&pair, i, &operation);
}

/* The first and the last handle of every range hold octets 0xa0 + number of the owner. */
static void store_all(void)
{
    for (uint32_t i = 0; i < 3; i++) {
        fill(i, (uint8_t)(0xa0 + i));
        for (uint32_t n = 0; n < HANDLES; n += HANDLES - 1)
            expect_status(run(i, KBTP_OP_ALLOC_STORE, n, 40, KBTP_FLAG_SEAL), KBTP_STATUS_OK);
    }
}

/* Both ends of the range of `owner`; a refusal writes nothing. */
static void expect_reads(uint32_t i, uint32_t owner, bool may)
{
    for (uint32_t n = 0; n < HANDLES; n += HANDLES - 1) {
        fill(i, 0x11);
        struct kbtp_outcome outcome = ask(i, KBTP_OP_LOAD, owner, n);
        if (may)
            expect_status(outcome, KBTP_STATUS_OK);
        else
            expect_refused(outcome, KBTP_STATUS_INVALID_HANDLE, 0);
        CU_ASSERT_EQUAL(holds(i, (uint8_t)(0xa0 + owner), 40), may);
        CU_ASSERT_EQUAL(pair.initiators[i].data[0], may ? 0xa0 + owner : 0x11);
    }
}

/* The LOAD chain looks at no range: a connection has it only if its session may read all. */
static void expect_chain(uint32_t i, bool may)
{
    struct kbtp_chain_wr wrs[KBTP_LOAD_WRS];
    struct kbtp_chain_program program = {.wrs = NULL};
    CU_ASSERT_EQUAL(kbtp_chain_load_for(&pair.target.sessions, i, 0x10000, wrs, &program),
                    may ? 0 : -EACCES);
    CU_ASSERT_EQUAL(program.wrs != NULL, may);
}

/* R-SESS-29: without a mask everybody reads everything. */
static void everybody(void)
{
    struct pair_config config = with_readers(EVERYBODY, EVERYBODY, EVERYBODY);
    open_connected(&config);
    CU_ASSERT_EQUAL(pair.target.sessions.restricted, 0);
    CU_ASSERT_EQUAL(pair.target.pool.clears, false);
    store_all();
    for (uint32_t i = 0; i < 3; i++) {
        for (uint32_t owner = 0; owner < 3; owner++)
            expect_reads(i, owner, true);
        expect_chain(i, true);
    }
    close_pair();
}

/* Wrong peer: R-SESS-29, I-45. Each asks for everything; a range is read by its own initiator and
 * by the classes in its mask, whether or not its own class is one of them. */
static void those_of_the_mask(void)
{
    struct pair_config config = with_readers(1u << 2, EVERYBODY, 1u << 31);
    open_connected(&config);
    store_all();
    static const bool may[3][3] = {{1, 1, 0}, {0, 1, 0}, {1, 1, 1}};
    for (uint32_t i = 0; i < 3; i++) {
        for (uint32_t owner = 0; owner < 3; owner++)
            expect_reads(i, owner, may[i][owner]);
        expect_chain(i, may[i][0] && may[i][1] && may[i][2]);
    }
    close_pair();
}

/* I-45: a refusal is the same, whatever the entry is: bound, free, or of another Generation. */
static void a_refusal_tells_nothing(void)
{
    struct pair_config config = with_readers(1u << 0, EVERYBODY, EVERYBODY);
    open_connected(&config);
    store_all();
    expect_refused(ask(1, KBTP_OP_LOAD, 0, 0), KBTP_STATUS_INVALID_HANDLE, 0); /* sealed */
    expect_refused(ask(1, KBTP_OP_LOAD, 0, 1), KBTP_STATUS_INVALID_HANDLE, 0); /* never bound */
    expect_status(run(0, KBTP_OP_FREE, 0, 0, 0), KBTP_STATUS_OK);
    expect_refused(ask(1, KBTP_OP_LOAD, 0, 0), KBTP_STATUS_INVALID_HANDLE, 0);
    struct kbtp_operation stale = pair_operation(&pair, 0, KBTP_OP_LOAD, HANDLES - 1, 64, 0);
    stale.generation = 0x7777;
    expect_refused(pair_do(&pair, 1, &stale), KBTP_STATUS_INVALID_HANDLE, 0);
    /* And as one beyond every range. */
    expect_refused(ask(1, KBTP_OP_LOAD, 3, 0), KBTP_STATUS_INVALID_HANDLE, 0);
    close_pair();
}

/* Who may not read what another stores does not find it in a block that was freed. */
static void freed_blocks_are_cleared(void)
{
    struct pair_config config = with_readers(1u << 0, EVERYBODY, EVERYBODY);
    open_connected(&config);
    store_all();
    for (uint32_t n = 0; n < HANDLES; n += HANDLES - 1)
        expect_status(run(0, KBTP_OP_FREE, n, 0, 0), KBTP_STATUS_OK);
    uint32_t octets = config.target.block_count * config.target.block_size;
    for (uint32_t at = 0; at < octets; at++)
        CU_ASSERT_NOT_EQUAL((uint8_t)pair.memory.blocks[at], 0xa0);
    close_pair();
}

/* Of 1 to 9 ranges of different sizes, each entry has the owner that it has. */
static void owners_are_found(void)
{
    for (uint32_t count = 1; count < 10; count++) {
        struct mem m = {0};
        struct kbtp_sessions all;
        struct kbtp_session sessions[10];
        struct kbtp_grant grants[10] = {0};
        mem64 lock;
        for (uint32_t i = 0; i < count; i++)
            grants[i] = (struct kbtp_grant){
                .handle_count = 1 + i * 5 % 7, .readable_by = 1u << i, .reader_class = i};
        CU_ASSERT_FATAL(kbtp_sessions_init(&m, &all, sessions, grants, &lock, count, 0) > 0);
        for (uint32_t owner = 0, entry = 0; owner < count; owner++)
            for (uint32_t n = 0; n < grants[owner].handle_count; n++, entry++)
                for (uint32_t i = 0; i < count; i++)
                    CU_ASSERT_EQUAL(kbtp_session_may_read(&all, i, entry), i == owner);
    }
}

/* R-DL-01: DIRECT_LOAD exposes all blocks, so only who may read all of them can have it. */
static void direct_load_for_those_who_read_all(void)
{
    static const struct {
        uint32_t mask, reader_class;
        uint16_t features; /* of the reader */
        int64_t result;
    } cases[] = {
        {EVERYBODY, 1, KBTP_FEATURE_DIRECT_LOAD, 8},
        {1u << 1, 1, KBTP_FEATURE_DIRECT_LOAD, 8},
        {1u << 0, 1, KBTP_FEATURE_DIRECT_LOAD, -EINVAL},
        {1u << 0, 1, KBTP_FEATURE_DIRECT_ALLOC, 8}, /* exposes its own partition */
        {1u << 0, 1, 0, 8},
        {EVERYBODY, 31, 0, 8},
        {EVERYBODY, 32, 0, -EINVAL},
    };
    for (uint32_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct mem m = {0};
        struct kbtp_sessions all;
        struct kbtp_session sessions[2];
        mem64 lock;
        struct kbtp_grant grants[2] = {
            /* Who restricts may read all itself: the other one lets everybody. */
            {.features = KBTP_FEATURE_DIRECT_LOAD, .handle_count = 4, .readable_by = cases[i].mask},
            {.features = cases[i].features,
             .handle_count = 4,
             .reader_class = cases[i].reader_class}};
        CU_ASSERT_EQUAL(kbtp_sessions_init(&m, &all, sessions, grants, &lock, 2, 0),
                        cases[i].result);
    }
}

int main(void)
{
    static const struct test tests[] = {
        {"everybody", everybody},
        {"those of the mask", those_of_the_mask},
        {"a refusal tells nothing", a_refusal_tells_nothing},
        {"freed blocks are cleared", freed_blocks_are_cleared},
        {"owners are found", owners_are_found},
        {"DIRECT_LOAD for those who read all", direct_load_for_those_who_read_all},
    };
    return run_over_providers("ref/readers", tests, sizeof tests / sizeof *tests, PROVIDERS);
}
