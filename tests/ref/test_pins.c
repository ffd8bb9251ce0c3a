/* SPDX-License-Identifier: BSD-3-Clause */
/* Pins: who returns a freed block, and that readers and a writer exclude each other (I-01, I-40),
 * for every order of their steps, and with threads. */
#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "ref/pool.h"
#include "tests/run.h"

static struct mem mem;

/* ---- single steps ------------------------------------------------------------------------ */

static void readers_come_and_go(void)
{
    mem64 pins = {0};
    for (uint64_t n = 0; n < 5; n++) {
        CU_ASSERT_EQUAL(kbtp_pin(&mem, &pins), KBTP_PIN_TAKEN);
        CU_ASSERT_EQUAL(mem_load64(&mem, &pins), n + 1);
        CU_ASSERT_FALSE(kbtp_pins_quiet(&mem, &pins));
    }
    for (uint64_t n = 5; n-- > 0;) {
        CU_ASSERT_FALSE(kbtp_unpin(&mem, &pins));
        CU_ASSERT_EQUAL(kbtp_pins_quiet(&mem, &pins), n == 0);
    }
    CU_ASSERT_EQUAL(mem_load64(&mem, &pins), 0);
}

static void a_free_without_readers_returns_at_once(void)
{
    mem64 pins = {0};
    CU_ASSERT_TRUE(kbtp_pins_freed(&mem, &pins));
    CU_ASSERT_EQUAL(mem_load64(&mem, &pins), 0);
}

static void the_last_reader_returns_a_freed_block(void)
{
    mem64 pins = {0};
    for (uint32_t n = 0; n < 3; n++)
        kbtp_pin(&mem, &pins);
    CU_ASSERT_FALSE(kbtp_pins_freed(&mem, &pins));
    CU_ASSERT_FALSE(kbtp_unpin(&mem, &pins));
    CU_ASSERT_FALSE(kbtp_unpin(&mem, &pins));
    CU_ASSERT_TRUE(kbtp_unpin(&mem, &pins));
    CU_ASSERT_EQUAL(mem_load64(&mem, &pins), 0);
}

static void a_writer_stops_new_readers(void)
{
    mem64 pins = {0};
    kbtp_pin(&mem, &pins);
    kbtp_pins_lock(&mem, &pins);
    CU_ASSERT_EQUAL(kbtp_pin(&mem, &pins), KBTP_PIN_REFUSED);
    CU_ASSERT_FALSE(kbtp_pins_quiet(&mem, &pins));
    CU_ASSERT_FALSE(kbtp_unpin(&mem, &pins));
    CU_ASSERT_TRUE(kbtp_pins_quiet(&mem, &pins));
    kbtp_pins_unlock(&mem, &pins);
    CU_ASSERT_EQUAL(kbtp_pin(&mem, &pins), KBTP_PIN_TAKEN);
    kbtp_unpin(&mem, &pins);
    CU_ASSERT_EQUAL(mem_load64(&mem, &pins), 0);
}

/* ---- every order of steps ---------------------------------------------------------------- */

/* R-RING-26, -27: two readers (pin, and unpin when it was taken) and one FREE, step by step in
 * every order: exactly one of them returns the block, and only when no reader has it. */
static void exactly_one_returns_the_block(void)
{
    uint32_t orders = 0;
    for (uint32_t code = 0; code < 243; code++) { /* who makes each of five steps */
        uint32_t steps[3] = {0}, rest = code, returned = 0, reading = 0;
        mem64 pins = {0};
        for (uint32_t n = 0; n < 5; n++, rest /= 3) {
            uint32_t who = rest % 3;
            bool returns = false;
            if (who == 2) {
                returns = kbtp_pins_freed(&mem, &pins);
            } else if (steps[who] == 0) {
                CU_ASSERT_EQUAL(kbtp_pin(&mem, &pins), KBTP_PIN_TAKEN);
                reading++;
            } else if (steps[who] == 1) {
                returns = kbtp_unpin(&mem, &pins);
                reading--;
            }
            steps[who]++;
            returned += returns;
            CU_ASSERT(!returns || reading == 0);
            if (steps[0] > 2 || steps[1] > 2 || steps[2] > 1)
                break;
        }
        if (steps[0] != 2 || steps[1] != 2 || steps[2] != 1)
            continue;
        orders++;
        CU_ASSERT_EQUAL(returned, 1);
        CU_ASSERT_EQUAL(mem_load64(&mem, &pins), 0);
    }
    CU_ASSERT_EQUAL(orders, 30); /* 5! / (2! 2! 1!) */
}

/* ---- a pool ------------------------------------------------------------------------------ */

#define BLOCKS 4u

static struct kbtp_pool pool;
static _Alignas(64) struct kbtp_slot slots[BLOCKS];
static _Alignas(64) struct kbtp_table_entry entries[2];
static mem64 head, tail, pins_of_pool[BLOCKS];
static struct kbtp_deferred_free frees[2][BLOCKS];

static void open_pool(void)
{
    struct kbtp_ring_config config = {
        .slot_count = BLOCKS, .block_count = BLOCKS, .first_offset = 0x1000, .offset_step = 8};
    static char blocks[BLOCKS * 8];
    memset(pins_of_pool, 0, sizeof pins_of_pool);
    pool = (struct kbtp_pool){.pins = pins_of_pool,
                              .blocks = blocks,
                              .first_offset = 0x1000,
                              .block_size = 8,
                              .block_count = BLOCKS};
    CU_ASSERT_EQUAL_FATAL(kbtp_ring_init(&mem, &pool.ring, &config, slots, &head, &tail, NULL), 0);
    CU_ASSERT_EQUAL_FATAL(kbtp_table_init(&mem, &pool.table, entries, 2, false, NULL), 0);
}

static uint64_t allocate_and_bind(struct mem *m, uint32_t index)
{
    struct kbtp_alloc alloc = {0};
    kbtp_ring_take_ticket(m, &pool.ring, &alloc);
    while (!kbtp_ring_poll_ordered(m, &pool.ring, &alloc))
        ;
    kbtp_table_bind(m, &pool.table, index, alloc.block_offset, 8, true);
    return alloc.block_offset;
}

static uint32_t tickets_of_tail(void)
{
    return kbtp_counter_ticket(mem_load64(&mem, &tail));
}

static void a_pinned_block_returns_with_its_pin(void)
{
    struct kbtp_deferred deferred = {.frees = frees[0], .capacity = BLOCKS};
    struct kbtp_entry entry;
    open_pool();
    CU_ASSERT_TRUE(kbtp_pool_pin(&mem, &pool, &deferred, 0, &entry)); /* nothing to pin */
    CU_ASSERT_EQUAL(entry.flags, 0);
    uint64_t block_offset = allocate_and_bind(&mem, 0);
    CU_ASSERT_TRUE(kbtp_pool_pin(&mem, &pool, &deferred, 0, &entry));
    CU_ASSERT_EQUAL(entry.block_offset, block_offset);
    CU_ASSERT_EQUAL(entry.flags, KBTP_ENTRY_VALID | KBTP_ENTRY_SEALED);
    CU_ASSERT_EQUAL(kbtp_pool_free(&mem, &pool, &deferred, 0), KBTP_FREE_PINNED);
    CU_ASSERT_EQUAL(kbtp_table_read(&mem, &pool.table, 0).flags, 0);
    CU_ASSERT_EQUAL(tickets_of_tail(), BLOCKS);
    kbtp_pool_unpin(&mem, &pool, &deferred, kbtp_pool_block(&pool, block_offset));
    CU_ASSERT_EQUAL(tickets_of_tail(), BLOCKS + 1);
    CU_ASSERT_EQUAL(deferred.count, 0);
}

static void a_block_with_a_writer_is_not_pinned(void)
{
    struct kbtp_deferred deferred = {.frees = frees[0], .capacity = BLOCKS};
    struct kbtp_entry entry;
    open_pool();
    uint32_t block = kbtp_pool_block(&pool, allocate_and_bind(&mem, 0));
    kbtp_pins_lock(&mem, &pins_of_pool[block]);
    CU_ASSERT_FALSE(kbtp_pool_pin(&mem, &pool, &deferred, 0, &entry));
    kbtp_pins_unlock(&mem, &pins_of_pool[block]);
    CU_ASSERT_TRUE(kbtp_pool_pin(&mem, &pool, &deferred, 0, &entry));
    kbtp_pool_unpin(&mem, &pool, &deferred, block);
    CU_ASSERT_EQUAL(kbtp_pool_free(&mem, &pool, &deferred, 0), KBTP_FREE_WRITTEN);
}

/* A full list of deferred frees refuses with nothing done. */
static void a_full_list_refuses(void)
{
    struct kbtp_deferred none = {.frees = frees[0]};
    open_pool();
    allocate_and_bind(&mem, 0);
    CU_ASSERT_EQUAL(kbtp_pool_free(&mem, &pool, &none, 0), -ENOSPC);
    CU_ASSERT_EQUAL(kbtp_table_read(&mem, &pool.table, 0).flags & KBTP_ENTRY_VALID,
                    KBTP_ENTRY_VALID);
    CU_ASSERT_EQUAL(tickets_of_tail(), BLOCKS);
}

/* ---- with threads ------------------------------------------------------------------------ */

#define ROUNDS 20000u

static _Atomic bool stop;
static _Atomic uint32_t mixed, loads;

/* Binds and frees handle 0; each block holds the Generation it is bound with, twice. */
static void *owner(void *unused)
{
    struct mem m = {0};
    struct kbtp_deferred deferred = {.frees = frees[0], .capacity = BLOCKS};
    (void)unused;
    for (uint32_t n = 0; n < ROUNDS || loads < 100; n++) {
        struct kbtp_alloc alloc = {0};
        kbtp_ring_take_ticket(&m, &pool.ring, &alloc);
        while (!kbtp_ring_poll_ordered(&m, &pool.ring, &alloc))
            kbtp_ring_retry_all(&m, &pool.ring, &deferred);
        uint32_t next = kbtp_generation_next(kbtp_table_read(&m, &pool.table, 0).generation);
        const uint32_t words[2] = {next, next};
        mem_write(&m, kbtp_pool_octets(&pool, kbtp_pool_block(&pool, alloc.block_offset)), words,
                  8);
        kbtp_table_bind(&m, &pool.table, 0, alloc.block_offset, 8, true);
        int freed = kbtp_pool_free(&m, &pool, &deferred, 0);
        mixed += freed < 0;
        kbtp_ring_retry_all(&m, &pool.ring, &deferred);
    }
    stop = true;
    while (deferred.count != 0)
        kbtp_ring_retry_all(&m, &pool.ring, &deferred);
    return NULL;
}

static void *loader(void *unused)
{
    struct mem m = {0};
    struct kbtp_deferred deferred = {.frees = frees[1], .capacity = BLOCKS};
    (void)unused;
    while (!stop) {
        struct kbtp_entry entry;
        if (!kbtp_pool_pin(&m, &pool, &deferred, 0, &entry) || !(entry.flags & KBTP_ENTRY_VALID))
            continue;
        uint32_t words[2], block = kbtp_pool_block(&pool, entry.block_offset);
        mem_read(&m, words, kbtp_pool_octets(&pool, block), 8);
        mixed += words[0] != entry.generation || words[1] != entry.generation;
        loads++;
        kbtp_pool_unpin(&m, &pool, &deferred, block);
        kbtp_ring_retry_all(&m, &pool.ring, &deferred);
    }
    while (deferred.count != 0)
        kbtp_ring_retry_all(&m, &pool.ring, &deferred);
    return NULL;
}

/* R-LOAD-07, R-RING-26: a pinned block has the octets of its Generation, and no block is lost. */
static void loads_race_with_frees(void)
{
    pthread_t threads[2];
    open_pool();
    stop = false;
    mixed = loads = 0;
    CU_ASSERT_EQUAL_FATAL(pthread_create(&threads[0], NULL, loader, NULL), 0);
    CU_ASSERT_EQUAL_FATAL(pthread_create(&threads[1], NULL, owner, NULL), 0);
    pthread_join(threads[1], NULL);
    pthread_join(threads[0], NULL);
    CU_ASSERT_EQUAL(mixed, 0);
    CU_ASSERT(loads >= 100);
    bool seen[BLOCKS] = {false};
    for (uint32_t n = 0; n < BLOCKS; n++) {
        struct kbtp_alloc alloc = {0};
        kbtp_ring_take_ticket(&mem, &pool.ring, &alloc);
        CU_ASSERT_TRUE_FATAL(kbtp_ring_poll_ordered(&mem, &pool.ring, &alloc));
        uint32_t block = kbtp_pool_block(&pool, alloc.block_offset);
        CU_ASSERT_FATAL(block < BLOCKS);
        CU_ASSERT_FALSE(seen[block]);
        seen[block] = true;
        CU_ASSERT_EQUAL(mem_load64(&mem, &pins_of_pool[block]), 0);
    }
}

int main(void)
{
    static const struct test tests[] = {
        {"readers come and go", readers_come_and_go},
        {"a FREE without readers returns at once", a_free_without_readers_returns_at_once},
        {"the last reader returns a freed block", the_last_reader_returns_a_freed_block},
        {"a writer stops new readers", a_writer_stops_new_readers},
        {"exactly one returns the block", exactly_one_returns_the_block},
        {"a pinned block returns with its pin", a_pinned_block_returns_with_its_pin},
        {"a block with a writer is not pinned", a_block_with_a_writer_is_not_pinned},
        {"a full list refuses", a_full_list_refuses},
        {"LOADs race with FREEs", loads_race_with_frees},
    };
    return run_tests("ref/pins", tests, sizeof tests / sizeof *tests);
}
