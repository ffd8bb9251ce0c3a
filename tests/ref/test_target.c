/* SPDX-License-Identifier: BSD-3-Clause */
/* Target and initiator, end to end over the trivial provider: what each operation does, says, and
 * leaves alone. */
#include <errno.h>
#include <string.h>

#include "tests/net/loop.h"
#include "tests/ref/pair.h"
#include "tests/run.h"

static struct loop loop;
static struct pair pair;

static void open_with(const struct pair_config *config)
{
    struct rdma *handles[PAIR_WORKERS + PAIR_INITIATORS];
    loop_init(&loop);
    for (uint32_t i = 0; i < PAIR_WORKERS + PAIR_INITIATORS; i++)
        handles[i] = loop_handle(&loop);
    CU_ASSERT_EQUAL_FATAL(pair_open(&pair, config, handles), 0);
}

static void open_pair(void)
{
    struct pair_config config = pair_defaults();
    open_with(&config);
    for (uint32_t i = 0; i < config.initiators; i++)
        CU_ASSERT_EQUAL_FATAL(pair_connect(&pair, i), 0);
}

/* Everything was given back. */
static void close_pair(void)
{
    CU_ASSERT_EQUAL(pair_close(&pair), 0);
    CU_ASSERT_EQUAL(loop_regions(&loop), 0);
    CU_ASSERT_EQUAL(loop_connections(&loop), 0);
}

static struct kbtp_outcome run(uint32_t i, uint8_t opcode, uint32_t n, uint32_t length,
                               uint16_t flags)
{
    struct kbtp_operation operation = pair_operation(&pair, i, opcode, n, length, flags);
    return pair_do(&pair, i, &operation);
}

static void expect_status(struct kbtp_outcome outcome, enum kbtp_status status)
{
    CU_ASSERT_EQUAL(outcome.error, 0);
    CU_ASSERT_EQUAL(outcome.status, status);
    CU_ASSERT_EQUAL(outcome.cookie, 77);
}

static void fill(uint32_t i, uint8_t octet)
{
    memset(pair.initiators[i].data, octet, PAIR_BUFFER);
}

static bool holds(uint32_t i, uint8_t octet, uint32_t length)
{
    for (uint32_t at = 0; at < length; at++)
        if (pair.initiators[i].data[at] != octet)
            return false;
    return pair.initiators[i].data[length] != octet;
}

static void a_block_moves_end_to_end(void)
{
    open_pair();
    for (uint32_t inline_data = 0; inline_data < 2; inline_data++) {
        uint16_t flags = (uint16_t)(KBTP_FLAG_SEAL | (inline_data ? KBTP_FLAG_INLINE : 0));
        uint32_t length = inline_data ? 32 : 64;
        fill(0, (uint8_t)(0x41 + inline_data));
        struct kbtp_outcome stored = run(0, KBTP_OP_ALLOC_STORE, inline_data, length, flags);
        expect_status(stored, KBTP_STATUS_OK);
        CU_ASSERT_EQUAL(stored.generation, 2);
        CU_ASSERT_EQUAL(stored.data_length, length);
        fill(1, 0);
        struct kbtp_operation load = pair_operation(&pair, 1, KBTP_OP_LOAD, 0, 64, 0);
        load.handle = 0x4000 + inline_data;
        struct kbtp_outcome loaded = pair_do(&pair, 1, &load);
        expect_status(loaded, KBTP_STATUS_OK);
        CU_ASSERT_EQUAL(loaded.generation, stored.generation);
        CU_ASSERT_EQUAL(loaded.block_offset, stored.block_offset);
        CU_ASSERT_EQUAL(loaded.data_length, length);
        CU_ASSERT_TRUE(holds(1, (uint8_t)(0x41 + inline_data), length));
        struct kbtp_outcome freed = run(0, KBTP_OP_FREE, inline_data, 0, 0);
        expect_status(freed, KBTP_STATUS_OK);
        CU_ASSERT_EQUAL(freed.generation, 3);
    }
    close_pair();
}

int main(void)
{
    static const struct test tests[] = {
        {"a block moves end to end", a_block_moves_end_to_end},
    };
    return run_tests("ref/target", tests, sizeof tests / sizeof *tests);
}
