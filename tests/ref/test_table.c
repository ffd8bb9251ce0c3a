/* SPDX-License-Identifier: BSD-3-Clause */
/* ref/table.h and ref/pool.h, as octets in memory: what the draft says, spelled out by hand. */
#include "ref/table.h"

#include <errno.h>
#include <string.h>

#include "ref/pool.h"
#include "tests/run.h"

#define ENTRIES 4u

/* A table, and guard entries on both sides that nobody may touch. */
struct fixture {
    struct mem m;
    struct kbtp_table table;
    _Alignas(16) struct kbtp_table_entry memory[ENTRIES + 2];
};

static int set_up(struct fixture *f, bool addr_le, const uint16_t *generations)
{
    *f = (struct fixture){0};
    memset(f->memory, 0xa5, sizeof f->memory);
    return kbtp_table_init(&f->m, &f->table, f->memory + 1, ENTRIES, addr_le, generations);
}

static const uint16_t generations_1234[ENTRIES] = {1, 2, 3, 4};

/* The 16 octets of an entry (draft: Block Table), made without any helper of ref/ or net/. */
static void entry_octets(uint8_t out[16], unsigned flags, unsigned generation, uint32_t data_length,
                         uint64_t block_offset, bool addr_le)
{
    out[0] = (uint8_t)(flags >> 8);
    out[1] = (uint8_t)flags;
    out[2] = (uint8_t)(generation >> 8);
    out[3] = (uint8_t)generation;
    for (unsigned i = 0; i < 4; i++)
        out[4 + i] = (uint8_t)(data_length >> (24 - 8 * i));
    for (unsigned i = 0; i < 8; i++)
        out[8 + i] = (uint8_t)(block_offset >> (addr_le ? 8 * i : 56 - 8 * i));
}

/* What the table's memory shall be: entry `index` these octets, the other entries never bound. */
static bool memory_is(const struct fixture *f, uint32_t index, const uint8_t octets[16])
{
    uint8_t expected[sizeof f->memory];
    memset(expected, 0xa5, sizeof expected);
    for (uint32_t i = 0; i < ENTRIES; i++)
        entry_octets(expected + 16 + (size_t)16 * i, 0, generations_1234[i], 0, 0, false);
    memcpy(expected + 16 + (size_t)16 * index, octets, 16);
    return memcmp(f->memory, expected, sizeof expected) == 0;
}

/* R-TBL-01, -03, -11 */
static void init_starts_with_the_given_generations(void)
{
    for (int addr_le = 0; addr_le <= 1; addr_le++) {
        struct fixture f;
        CU_ASSERT_EQUAL(set_up(&f, addr_le, generations_1234), 0);
        uint8_t first[16];
        entry_octets(first, 0, 1, 0, 0, addr_le);
        CU_ASSERT_TRUE(memory_is(&f, 0, first));
        for (uint32_t i = 0; i < ENTRIES; i++) {
            struct kbtp_entry entry = kbtp_table_read(&f.m, &f.table, i);
            CU_ASSERT_EQUAL(entry.generation, generations_1234[i]);
            CU_ASSERT_EQUAL(entry.flags, 0);
        }
    }
}

/* R-TBL-06, -11 */
static void init_refuses_generation_zero(void)
{
    for (uint32_t zero = 0; zero < ENTRIES; zero++) {
        uint16_t generations[ENTRIES];
        memcpy(generations, generations_1234, sizeof generations);
        generations[zero] = 0;
        struct fixture f;
        CU_ASSERT_EQUAL(set_up(&f, false, generations), -EINVAL);
    }
}

static void init_refuses_a_misaligned_place(void)
{
    _Alignas(16) char memory[16 * (ENTRIES + 1)] = {0};
    struct mem m = {0};
    struct kbtp_table table;
    for (size_t off = 0; off <= 16; off++) {
        struct kbtp_table_entry *entries = (void *)(memory + off);
        int expected = off % 16 == 0 ? 0 : -EINVAL;
        CU_ASSERT_EQUAL(kbtp_table_init(&m, &table, entries, ENTRIES, false, generations_1234),
                        expected);
    }
}

/* R-TBL-01 to -05, R-FREE-02, R-LE-04, -05 */
static void bind_and_unbind_write_the_octets_of_the_draft(void)
{
    const uint64_t block_offset = 0x0123456789abcdefu;
    const uint32_t data_length = 0xfedcba98u;
    for (unsigned knobs = 0; knobs < 4; knobs++) {
        bool addr_le = knobs & 1;
        bool sealed = knobs & 2;
        struct fixture f;
        CU_ASSERT_EQUAL_FATAL(set_up(&f, addr_le, generations_1234), 0);
        uint8_t octets[16];

        CU_ASSERT_EQUAL(kbtp_table_bind(&f.m, &f.table, 2, block_offset, data_length, sealed), 4);
        entry_octets(octets, sealed ? 3 : 1, 4, data_length, block_offset, addr_le);
        CU_ASSERT_TRUE(memory_is(&f, 2, octets));
        struct kbtp_entry entry = kbtp_table_read(&f.m, &f.table, 2);
        CU_ASSERT_EQUAL(entry.flags, sealed ? 3 : 1);
        CU_ASSERT_EQUAL(entry.generation, 4);
        CU_ASSERT_EQUAL(entry.data_length, data_length);
        CU_ASSERT_EQUAL(entry.block_offset, block_offset);

        /* Only VALID and SEALED go; nothing else changes, as the draft asks for no more. */
        CU_ASSERT_EQUAL(kbtp_table_unbind(&f.m, &f.table, 2), 5);
        entry_octets(octets, 0, 5, data_length, block_offset, addr_le);
        CU_ASSERT_TRUE(memory_is(&f, 2, octets));
    }
}

/* R-TBL-06, -07, R-ALLOC-06, R-FREE-02 */
static void generation_65535_is_followed_by_1(void)
{
    static const uint16_t generations[ENTRIES] = {65535, 65534, 65533, 1};
    struct fixture f;
    CU_ASSERT_EQUAL_FATAL(set_up(&f, false, generations), 0);
    CU_ASSERT_EQUAL(kbtp_table_bind(&f.m, &f.table, 0, 0, 1, true), 1);
    CU_ASSERT_EQUAL(kbtp_table_unbind(&f.m, &f.table, 0), 2);
    CU_ASSERT_EQUAL(kbtp_table_bind(&f.m, &f.table, 1, 0, 1, true), 65535);
    CU_ASSERT_EQUAL(kbtp_table_unbind(&f.m, &f.table, 1), 1);
    CU_ASSERT_EQUAL(kbtp_table_bind(&f.m, &f.table, 2, 0, 1, true), 65534);
    CU_ASSERT_EQUAL(kbtp_table_unbind(&f.m, &f.table, 2), 65535);
}

/* The Generation as it lies in memory. */
static unsigned generation_of(const struct fixture *f, uint32_t index)
{
    uint8_t octets[16];
    memcpy(octets, &f->table.entries[index], sizeof octets);
    return (unsigned)octets[2] << 8 | octets[3];
}

/* R-TBL-06, -07 */
static void a_cycle_of_65535_binds_and_unbinds(void)
{
    struct fixture f;
    CU_ASSERT_EQUAL_FATAL(set_up(&f, false, generations_1234), 0);
    const unsigned start = generation_of(&f, 0);
    unsigned zeros = 0, unchanged = 0, unlike_returned = 0, first_repeat = 0, repeats = 0;
    for (unsigned cycle = 1; cycle <= 65536; cycle++) {
        unsigned before = generation_of(&f, 0);
        unsigned returned = kbtp_table_bind(&f.m, &f.table, 0, 0, 1, true);
        unsigned bound = generation_of(&f, 0);
        unlike_returned += returned != bound;
        returned = kbtp_table_unbind(&f.m, &f.table, 0);
        unsigned unbound = generation_of(&f, 0);
        unlike_returned += returned != unbound;
        zeros += bound == 0 || unbound == 0;
        unchanged += bound == before || unbound == bound;
        if (unbound == start) {
            repeats++;
            if (first_repeat == 0)
                first_repeat = cycle;
        }
    }
    CU_ASSERT_EQUAL(zeros, 0);
    CU_ASSERT_EQUAL(unchanged, 0);
    CU_ASSERT_EQUAL(unlike_returned, 0);
    CU_ASSERT_EQUAL(first_repeat, 65535);
    CU_ASSERT_EQUAL(repeats, 1);
}

#define SLOTS 2u
#define BLOCK_A UINT64_C(0x1000)
#define BLOCK_B UINT64_C(0x2000)

/* A pool of two blocks, the first of them allocated and bound to entry 0. */
struct pool_fixture {
    struct mem m;
    struct kbtp_pool pool;
    mem64 head, tail;
    struct kbtp_deferred_free frees[1];
    struct kbtp_deferred deferred;
    _Alignas(16) struct kbtp_slot slots[SLOTS];
    _Alignas(16) struct kbtp_table_entry entries[ENTRIES];
};

static void set_up_pool(struct pool_fixture *f)
{
    static const uint64_t blocks[SLOTS] = {BLOCK_A, BLOCK_B};
    *f = (struct pool_fixture){.deferred = {.frees = f->frees, .capacity = 1}};
    struct kbtp_ring_config config = {.slot_count = SLOTS, .block_count = SLOTS};
    CU_ASSERT_EQUAL_FATAL(
        kbtp_ring_init(&f->m, &f->pool.ring, &config, f->slots, &f->head, &f->tail, blocks), 0);
    CU_ASSERT_EQUAL_FATAL(
        kbtp_table_init(&f->m, &f->pool.table, f->entries, ENTRIES, false, generations_1234), 0);
    struct kbtp_alloc alloc = {0};
    kbtp_ring_take_ticket(&f->m, &f->pool.ring, &alloc);
    CU_ASSERT_TRUE_FATAL(kbtp_ring_poll_ordered(&f->m, &f->pool.ring, &alloc));
    CU_ASSERT_EQUAL(alloc.block_offset, BLOCK_A);
    kbtp_table_bind(&f->m, &f->pool.table, 0, alloc.block_offset, 7, false);
}

static void pool_free_without_room_does_nothing(void)
{
    struct pool_fixture f;
    set_up_pool(&f);
    f.frees[0] = (struct kbtp_deferred_free){.block_offset = BLOCK_B, .ticket = 2};
    f.deferred.count = 1;
    struct pool_fixture before;
    memcpy(&before, &f, sizeof before);

    CU_ASSERT_EQUAL(kbtp_pool_free(&f.m, &f.pool, &f.deferred, 0), -ENOSPC);
    CU_ASSERT_EQUAL(memcmp(&before, &f, sizeof f), 0);
    uint8_t octets[16];
    entry_octets(octets, 1, 2, 7, BLOCK_A, false);
    CU_ASSERT_EQUAL(memcmp(&f.entries[0], octets, sizeof octets), 0);
}

/* R-FREE-02, -03, R-RING-22 */
static void pool_free_unbinds_and_returns_the_block(void)
{
    struct pool_fixture f;
    set_up_pool(&f);
    CU_ASSERT_EQUAL(kbtp_pool_free(&f.m, &f.pool, &f.deferred, 0), KBTP_FREE_WRITTEN);
    uint8_t octets[16];
    entry_octets(octets, 0, 3, 7, BLOCK_A, false);
    CU_ASSERT_EQUAL(memcmp(&f.entries[0], octets, sizeof octets), 0);
    /* Slot 0 now holds the block for ticket 2: Sequence, Reserved, Block Offset. */
    static const uint8_t slot[16] = {0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x10, 0};
    CU_ASSERT_EQUAL(memcmp(&f.slots[0], slot, sizeof slot), 0);
    CU_ASSERT_EQUAL(f.deferred.count, 0);
}

int main(void)
{
    static const struct test tests[] = {
        {"init starts with the given generations", init_starts_with_the_given_generations},
        {"init refuses generation zero", init_refuses_generation_zero},
        {"init refuses a misaligned place", init_refuses_a_misaligned_place},
        {"bind and unbind write the octets of the draft",
         bind_and_unbind_write_the_octets_of_the_draft},
        {"generation 65535 is followed by 1", generation_65535_is_followed_by_1},
        {"a cycle of 65535 binds and unbinds", a_cycle_of_65535_binds_and_unbinds},
        {"pool free without room does nothing", pool_free_without_room_does_nothing},
        {"pool free unbinds and returns the block", pool_free_unbinds_and_returns_the_block},
    };
    return run_tests("ref/table", tests, sizeof tests / sizeof tests[0]);
}
