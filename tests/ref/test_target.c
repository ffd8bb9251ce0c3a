/* SPDX-License-Identifier: BSD-3-Clause */
/* Target and initiator, end to end: what each operation does when all is well, and says. */
#include <errno.h>
#include <string.h>

#include "ref/octets.h"
#include "tests/ref/fixture.h"

static uint32_t block_of(struct kbtp_outcome outcome)
{
    return kbtp_pool_block(&pair.target.pool, outcome.block_offset);
}

static const uint8_t *octets_of(uint32_t block)
{
    return (const uint8_t *)pair.memory.blocks + block * 64;
}

static bool all_are(const uint8_t *octets, size_t count, uint8_t octet)
{
    for (size_t i = 0; i < count; i++)
        if (octets[i] != octet)
            return false;
    return true;
}

/* Initiator 1 loads handle n of initiator 0 into a buffer of `length`. */
static struct kbtp_outcome load_foreign(uint32_t n, uint32_t length, uint16_t flags)
{
    struct kbtp_operation load = pair_operation(&pair, 0, KBTP_OP_LOAD, n, length, flags);
    load.stag = pair.initiators[1].region.stag;
    load.tagged_offset = pair.initiators[1].region.base_to;
    fill(1, 0);
    return pair_do(&pair, 1, &load);
}

/* R-EXEC-02. R-LOAD-01, -04, -06, R-ALLOC-04, -07, R-FREE-02, R-SESS-29, R-COMP-01, -02, R-ST-00,
 * R-GEN-03. */
static void a_block_moves_end_to_end(void)
{
    open_pair();
    for (uint32_t inline_data = 0; inline_data < 2; inline_data++) {
        uint16_t flags = (uint16_t)(KBTP_FLAG_SEAL | (inline_data ? KBTP_FLAG_INLINE : 0));
        uint32_t length = inline_data ? 32 : 64;
        fill(0, (uint8_t)(0x41 + inline_data));
        struct kbtp_outcome stored = run(0, KBTP_OP_ALLOC_STORE, inline_data, length, flags);
        expect_status(stored, KBTP_STATUS_OK);
        CU_ASSERT_EQUAL(stored.cookie, 77);
        CU_ASSERT_EQUAL(stored.opcode, KBTP_OP_ALLOC_STORE);
        CU_ASSERT_EQUAL(stored.handle, 0x4000 + inline_data);
        CU_ASSERT_EQUAL(stored.generation, 2);
        CU_ASSERT_EQUAL(stored.data_length, length);
        struct kbtp_outcome loaded = load_foreign(inline_data, 64, 0);
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

/* I-45: STORE and ALLOC_STORE say what the entry says, FREE length 0 and the old offset. R-HDR-05,
 * R-STORE-05, -08, R-TBL-03 to -05, R-FREE-02 */
static void completions_say_what_the_entry_says(void)
{
    open_pair();
    struct kbtp_outcome bound = run(0, KBTP_OP_ALLOC_STORE, 3, 40, 0);
    struct kbtp_entry entry = kbtp_table_read(&pair.mem, &pair.target.pool.table, 3);
    CU_ASSERT_EQUAL(bound.generation, entry.generation);
    CU_ASSERT_EQUAL(bound.block_offset, entry.block_offset);
    CU_ASSERT_EQUAL(bound.data_length, entry.data_length);
    struct kbtp_outcome stored = run(0, KBTP_OP_STORE, 3, 20, KBTP_FLAG_SEAL);
    entry = kbtp_table_read(&pair.mem, &pair.target.pool.table, 3);
    CU_ASSERT_EQUAL(stored.generation, entry.generation);
    CU_ASSERT_EQUAL(stored.generation, bound.generation);
    CU_ASSERT_EQUAL(stored.block_offset, bound.block_offset);
    CU_ASSERT_EQUAL(stored.data_length, 20);
    CU_ASSERT_EQUAL(entry.flags, KBTP_ENTRY_VALID | KBTP_ENTRY_SEALED);
    struct kbtp_outcome freed = run(0, KBTP_OP_FREE, 3, 0, 0);
    entry = kbtp_table_read(&pair.mem, &pair.target.pool.table, 3);
    CU_ASSERT_EQUAL(freed.generation, entry.generation);
    CU_ASSERT_EQUAL(freed.block_offset, bound.block_offset);
    CU_ASSERT_EQUAL(freed.data_length, 0);
    CU_ASSERT_EQUAL(entry.flags, 0);
    close_pair();
}

/* R-ALLOC-06, R-FREE-02, R-TBL-06, -07: each bind and unbind is one step, and 0xffff is followed by
 * 1. */
static void generations_skip_zero(void)
{
    struct pair_config config = pair_defaults();
    config.target.first_generation = 0xfffe;
    open_connected(&config);
    static const uint16_t expected[] = {0xffff, 1, 2, 3};
    for (uint32_t i = 0; i < 4; i++) {
        struct kbtp_outcome outcome = run(0, i % 2 ? KBTP_OP_FREE : KBTP_OP_ALLOC_STORE, 0, 8, 0);
        expect_status(outcome, KBTP_STATUS_OK);
        CU_ASSERT_EQUAL(outcome.generation, expected[i]);
    }
    close_pair();
}

/* R-VAL-07, -10, R-ALLOC-09: the Generation expected is the one before the step, or 0. */
static void the_right_generation_passes(void)
{
    open_pair();
    static const uint8_t opcodes[] = {KBTP_OP_ALLOC_STORE, KBTP_OP_STORE, KBTP_OP_LOAD,
                                      KBTP_OP_FREE};
    uint16_t generation = 1;
    for (uint32_t round = 0; round < 2; round++)
        for (uint32_t i = 0; i < 4; i++) {
            struct kbtp_operation operation =
                pair_operation(&pair, 0, opcodes[i], 0, 16, i == 2 ? KBTP_FLAG_ALLOW_UNSEALED : 0);
            operation.generation = round ? generation : 0;
            struct kbtp_outcome outcome = pair_do(&pair, 0, &operation);
            expect_status(outcome, KBTP_STATUS_OK);
            generation = outcome.generation;
        }
    CU_ASSERT_EQUAL(generation, 5);
    close_pair();
}

/* R-STORE-04, -05, R-LOAD-04, R-DESC-03, R-FLAG-01, R-POOL-02: exactly the octets named, from the
 * block's start; the others, of this block and of all blocks, stay. */
static void exactly_the_octets_move(void)
{
    static const uint32_t lengths[] = {1, 7, 8, 31, 32, 33, 63, 64};
    open_pair();
    memset(pair.memory.blocks, 0xee, 16 * 64);
    uint32_t block = block_of(run(0, KBTP_OP_ALLOC_STORE, 0, 0, 0));
    for (uint32_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
        for (uint32_t inline_data = 0; inline_data < (lengths[i] <= 32 ? 2u : 1u); inline_data++) {
            memset(pair.memory.blocks, 0xee, 16 * 64);
            fill(0, (uint8_t)(i + 1));
            expect_status(run(0, KBTP_OP_STORE, 0, lengths[i], inline_data ? KBTP_FLAG_INLINE : 0),
                          KBTP_STATUS_OK);
            CU_ASSERT(all_are(octets_of(block), lengths[i], (uint8_t)(i + 1)));
            CU_ASSERT(all_are(octets_of(block) + lengths[i], 64 - lengths[i], 0xee));
            CU_ASSERT(all_are(octets_of(0), block * 64, 0xee));
            CU_ASSERT(all_are(octets_of(block + 1), (15 - block) * 64, 0xee));
            struct kbtp_outcome loaded = load_foreign(0, 64, KBTP_FLAG_ALLOW_UNSEALED);
            CU_ASSERT_EQUAL(loaded.data_length, lengths[i]);
            CU_ASSERT(holds(1, (uint8_t)(i + 1), lengths[i]));
        }
    close_pair();
}

/* R-LOAD-05, I-43: the buffer may be just large enough, and larger than a block. */
static void load_buffers_may_be_larger(void)
{
    open_pair();
    fill(0, 0x77);
    run(0, KBTP_OP_ALLOC_STORE, 0, 50, KBTP_FLAG_SEAL);
    static const uint32_t lengths[] = {50, 51, 64, 65, 4096, PAIR_BUFFER};
    for (uint32_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        struct kbtp_outcome loaded = load_foreign(0, lengths[i], 0);
        expect_status(loaded, KBTP_STATUS_OK);
        CU_ASSERT_EQUAL(loaded.data_length, 50);
        CU_ASSERT(holds(1, 0x77, 50));
    }
    close_pair();
}

/* R-LOAD-03, R-FLAG-02, -05: ALLOW_UNSEALED lets an unsealed block be loaded, and a sealed one as
 * well. */
static void unsealed_blocks_are_loaded_when_allowed(void)
{
    open_pair();
    run(0, KBTP_OP_ALLOC_STORE, 0, 8, 0);
    run(0, KBTP_OP_ALLOC_STORE, 1, 8, KBTP_FLAG_SEAL);
    expect_status(load_foreign(0, 8, KBTP_FLAG_ALLOW_UNSEALED), KBTP_STATUS_OK);
    expect_status(load_foreign(1, 8, KBTP_FLAG_ALLOW_UNSEALED), KBTP_STATUS_OK);
    expect_status(load_foreign(0, 8, 0), KBTP_STATUS_NOT_SEALED);
    expect_status(run(0, KBTP_OP_STORE, 0, 8, KBTP_FLAG_SEAL), KBTP_STATUS_OK);
    expect_status(load_foreign(0, 8, 0), KBTP_STATUS_OK); /* R-STORE-06 */
    close_pair();
}

/* I-48, R-LOAD-08: nothing is read or written, so no STag is looked at. */
static void nothing_moves_for_zero_octets(void)
{
    open_pair();
    for (uint32_t n = 0; n < 2; n++) {
        struct kbtp_operation store =
            pair_operation(&pair, 0, KBTP_OP_ALLOC_STORE, n, 0, n ? KBTP_FLAG_INLINE : 0);
        store.stag = 0xdead;
        store.tagged_offset = UINT64_MAX;
        struct kbtp_outcome outcome = pair_do(&pair, 0, &store);
        expect_status(outcome, KBTP_STATUS_OK);
        CU_ASSERT_EQUAL(outcome.data_length, 0);
        store.opcode = KBTP_OP_STORE;
        store.flags |= KBTP_FLAG_SEAL;
        expect_status(pair_do(&pair, 0, &store), KBTP_STATUS_OK);
        struct kbtp_operation load = pair_operation(&pair, 0, KBTP_OP_LOAD, n, 0, 0);
        load.stag = 0xdead;
        outcome = pair_do(&pair, 0, &load);
        expect_status(outcome, KBTP_STATUS_OK);
        CU_ASSERT_EQUAL(outcome.data_length, 0);
        CU_ASSERT_NOT_EQUAL(outcome.block_offset, 0);
    }
    /* A mapped STORE of nothing makes a block empty. */
    run(0, KBTP_OP_ALLOC_STORE, 5, 64, 0);
    expect_status(run(0, KBTP_OP_STORE, 5, 0, 0), KBTP_STATUS_OK);
    CU_ASSERT_EQUAL(run(0, KBTP_OP_LOAD, 5, 0, KBTP_FLAG_ALLOW_UNSEALED).data_length, 0);
    close_pair();
}

/* R-SESS-17, R-LE-01, -02, -04 to -06, R-POOL-03, R-TBL-01: the target says which order address
 * fields are in; both ways all works, and entries and slots are in that order, too. */
static void addresses_may_be_little_endian(void)
{
    if (!can(RDMA_CAP_BASE_TO))
        return;
    for (int addr_le = 0; addr_le < 2; addr_le++) {
        struct pair_config config = pair_defaults();
        config.target.addr_le = addr_le;
        open_connected(&config);
        CU_ASSERT_EQUAL(kbtp_initiator_target(pair.initiators[0].initiator)->features,
                        addr_le ? KBTP_FEATURE_ADDR_LE : 0);
        fill(0, 0x31);
        struct kbtp_outcome stored = run(0, KBTP_OP_ALLOC_STORE, 7, 48, KBTP_FLAG_SEAL);
        expect_status(stored, KBTP_STATUS_OK);
        CU_ASSERT_EQUAL(stored.block_offset, 0x100000); /* I-13: completions do not change */
        uint64_t in_memory = mem_load64(&pair.mem, &pair.memory.entries[7].block_offset);
        CU_ASSERT_EQUAL(in_memory, octets_address64(0x100000, addr_le));
        in_memory = mem_load64(&pair.mem, &pair.memory.slots[1].block_offset);
        CU_ASSERT_EQUAL(in_memory, octets_address64(0x100040, addr_le));
        expect_status(load_foreign(7, 48, 0), KBTP_STATUS_OK);
        CU_ASSERT(holds(1, 0x31, 48));
        expect_status(run(0, KBTP_OP_STORE, 7, 8, KBTP_FLAG_INLINE), KBTP_STATUS_SEALED);
        expect_status(run(0, KBTP_OP_FREE, 7, 0, 0), KBTP_STATUS_OK);
        close_pair();
    }
}

/* ---- INVALIDATE -------------------------------------------------------------------------- */

/* Runs an operation that names a region of its own; is the STag gone afterwards? */
static bool invalidates(uint8_t opcode, uint32_t n, uint16_t flags, enum kbtp_status status)
{
    struct pair_initiator *it = &pair.initiators[0];
    struct kbtp_operation operation = pair_operation(&pair, 0, opcode, n, 8, flags);
    struct rdma_region region;
    static uint64_t octets[8];
    const uint32_t access = RDMA_LOCAL_WRITE | RDMA_REMOTE_READ | RDMA_REMOTE_WRITE;
    CU_ASSERT_EQUAL_FATAL(rdma_reg(it->cpu.rdma, octets, sizeof octets, access, 0x9000, &region),
                          0);
    operation.stag = region.stag;
    operation.tagged_offset = region.base_to;
    expect_status(pair_do(&pair, 0, &operation), status);
    struct kbtp_operation probe = pair_operation(&pair, 0, KBTP_OP_LOAD, 0, 8, 0);
    probe.stag = region.stag;
    probe.tagged_offset = region.base_to;
    struct kbtp_outcome outcome = pair_do(&pair, 0, &probe);
    if (outcome.error == -ECONNRESET) {
        CU_ASSERT_EQUAL_FATAL(pair_disconnect(&pair, 0), 0);
        CU_ASSERT_EQUAL_FATAL(pair_connect(&pair, 0), 0);
    } else {
        expect_status(outcome, KBTP_STATUS_OK);
    }
    CU_ASSERT_EQUAL(rdma_dereg(it->cpu.rdma, &region), 0);
    return outcome.error == -ECONNRESET;
}

/* I-29, R-COMP-01, R-FLAG-04, -06, R-RDMAP-04: on every outcome of a request that has an STag, and
 * of no other. */
static void completions_invalidate_when_asked(void)
{
    if (!can(RDMA_CAP_INV_REGION))
        return;
    struct pair_config config = pair_defaults();
    config.unchecked = true;
    open_connected(&config);
    run(0, KBTP_OP_ALLOC_STORE, 0, 8, KBTP_FLAG_SEAL);
    const uint16_t flag = KBTP_FLAG_INVALIDATE;
    CU_ASSERT_FALSE(invalidates(KBTP_OP_LOAD, 0, 0, KBTP_STATUS_OK));
    CU_ASSERT(invalidates(KBTP_OP_LOAD, 0, flag, KBTP_STATUS_OK));
    CU_ASSERT(invalidates(KBTP_OP_LOAD, 1, flag, KBTP_STATUS_NOT_VALID));
    CU_ASSERT(invalidates(KBTP_OP_ALLOC_STORE, 1, flag, KBTP_STATUS_OK));
    CU_ASSERT(invalidates(KBTP_OP_STORE, 1, flag, KBTP_STATUS_OK));
    CU_ASSERT(invalidates(KBTP_OP_STORE, 0, flag, KBTP_STATUS_SEALED));
    CU_ASSERT(invalidates(KBTP_OP_STORE, 99, flag, KBTP_STATUS_INVALID_HANDLE));
    CU_ASSERT_FALSE(invalidates(KBTP_OP_STORE, 1, flag | KBTP_FLAG_INLINE, KBTP_STATUS_OK));
    CU_ASSERT_FALSE(invalidates(KBTP_OP_FREE, 1, flag, KBTP_STATUS_OK));
    close_pair();
}

static bool is_clear(uint64_t block_offset)
{
    const struct kbtp_pool *pool = &pair.target.pool;
    const char *at = kbtp_pool_octets(pool, kbtp_pool_block(pool, block_offset));
    for (uint32_t i = 0; i < pool->block_size; i++)
        if (at[i] != 0)
            return false;
    return true;
}

/* I-36, R-FREE-07, R-SEC-09: the whole block, when it is freed and when its owner goes; only where
 * there are several trust domains. */
static void blocks_are_cleared_between_trust_domains(void)
{
    for (uint32_t domains = 0; domains < 2; domains++) {
        struct pair_config config = pair_defaults();
        config.domains = domains;
        open_connected(&config);
        fill(0, 0x77);
        struct kbtp_outcome freed = run(0, KBTP_OP_ALLOC_STORE, 0, 64, KBTP_FLAG_SEAL);
        struct kbtp_outcome kept = run(0, KBTP_OP_ALLOC_STORE, 1, 64, KBTP_FLAG_SEAL);
        CU_ASSERT_FALSE(is_clear(freed.block_offset));
        expect_status(run(0, KBTP_OP_FREE, 0, 0, 0), KBTP_STATUS_OK);
        CU_ASSERT_EQUAL(is_clear(freed.block_offset), domains);
        CU_ASSERT_FALSE(is_clear(kept.block_offset));
        CU_ASSERT_EQUAL(pair_goodbye(&pair, 0, true), 0);
        pair_settle(&pair);
        CU_ASSERT_EQUAL(is_clear(kept.block_offset), domains);
        close_pair();
    }
}

int main(void)
{
    static const struct test tests[] = {
        {"a block moves end to end", a_block_moves_end_to_end},
        {"completions say what the entry says", completions_say_what_the_entry_says},
        {"generations skip zero", generations_skip_zero},
        {"the right generation passes", the_right_generation_passes},
        {"exactly the octets move", exactly_the_octets_move},
        {"load buffers may be larger", load_buffers_may_be_larger},
        {"unsealed blocks are loaded when allowed", unsealed_blocks_are_loaded_when_allowed},
        {"nothing moves for zero octets", nothing_moves_for_zero_octets},
        {"addresses may be little-endian", addresses_may_be_little_endian},
        {"completions invalidate when asked", completions_invalidate_when_asked},
        {"blocks are cleared between trust domains", blocks_are_cleared_between_trust_domains},
    };
    return run_over_providers("ref/target", tests, sizeof tests / sizeof *tests, PROVIDERS);
}
