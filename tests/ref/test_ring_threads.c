/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ref/ring.h between threads, on real memory: allocators take blocks and hand them to freers, for
 * thousands of laps. R-RING-16, -26 to -31; under ThreadSanitizer also -25, as the contents of a
 * block are plain memory, which the ring must pass on from who frees it to who allocates it.
 *
 * Nothing here orders one worker's use of a block and the next one's but the ring and the mutex of
 * the hand-over: what the workers keep books with is relaxed.
 */
#include "ref/ring.h"

#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tests/run.h"

#define MOST_WORKERS 4u
#define MOST_SLOTS 16u
#define MOST_OPEN 3u /* allocations of one worker */
#define NONE UINT64_MAX
#define TIME_LIMIT_S 60
#define ALLOCATIONS 10000u /* in each run */
#define PATIENCE 16u       /* fruitless rounds until a worker lets the others run */

struct setting {
    uint32_t slot_count;
    uint32_t block_count;
    uint32_t allocators; /* workers that allocate only */
    uint32_t freers;     /* workers that free only */
    uint32_t both;       /* workers that do both */
    uint32_t allocations;
};

/* Blocks on their way from the allocators to the freers. There is room for all of them. */
struct hand_over {
    pthread_mutex_t mutex;
    uint64_t blocks[MOST_SLOTS];
    uint32_t count;
    uint32_t first; /* index of the oldest */
};

struct world {
    _Alignas(64) struct kbtp_slot slots[MOST_SLOTS];
    _Alignas(64) mem64 head;
    struct kbtp_ring_config config;
    const struct setting *setting;
    _Alignas(64) mem64 tail;
    struct kbtp_ring ring;
    struct hand_over hand_over;
    uint64_t contents[MOST_SLOTS]; /* of the blocks: how often allocated and freed */
    _Atomic uint32_t holder[MOST_SLOTS];
    _Atomic uint32_t allocations_begun;
    _Atomic uint32_t frees_done;
    _Atomic uint32_t wrong; /* a block that is none of ours, or is held twice, or does not fit */
    _Atomic uint32_t late;  /* the time is over */
};

struct worker {
    struct world *world;
    uint32_t number; /* from 1 */
    bool allocates, frees;
    bool allocated_all; /* there are no more allocations to begin */
    struct mem m;
    struct kbtp_alloc allocs[MOST_OPEN];
    struct kbtp_deferred deferred;
    struct kbtp_deferred_free frees_deferred[MOST_SLOTS];
    uint64_t random;
};

/* Of the whole program, so that it ends by itself in whatever way a ring goes wrong. */
static time_t deadline_s;

static time_t now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec;
}

static uint64_t offset_of_block(uint32_t number)
{
    return (uint64_t)(number + 1) << 32 | 0x8000;
}

/* MOST_SLOTS for what is none of the blocks. */
static uint32_t block_at(uint64_t block_offset, uint32_t block_count)
{
    for (uint32_t b = 0; b < block_count; b++)
        if (offset_of_block(b) == block_offset)
            return b;
    return MOST_SLOTS;
}

static void count_wrong(struct world *world)
{
    atomic_fetch_add_explicit(&world->wrong, 1, memory_order_relaxed);
}

/* A worker has got this block from the ring. */
static void begins_to_hold(struct worker *worker, uint64_t block_offset)
{
    struct world *world = worker->world;
    uint32_t b = block_at(block_offset, world->config.block_count);
    if (b == MOST_SLOTS ||
        atomic_exchange_explicit(&world->holder[b], worker->number, memory_order_relaxed) != 0)
        count_wrong(world);
    else
        world->contents[b]++;
}

/* A worker is about to give this block back to the ring. */
static void ends_to_hold(struct worker *worker, uint64_t block_offset)
{
    struct world *world = worker->world;
    uint32_t b = block_at(block_offset, world->config.block_count);
    if (b == MOST_SLOTS)
        return;
    world->contents[b]++;
    if (atomic_exchange_explicit(&world->holder[b], 0, memory_order_relaxed) == 0)
        count_wrong(world);
}

static void push(struct world *world, uint64_t block_offset)
{
    struct hand_over *hand_over = &world->hand_over;
    pthread_mutex_lock(&hand_over->mutex);
    if (hand_over->count == MOST_SLOTS)
        count_wrong(world);
    else
        hand_over->blocks[(hand_over->first + hand_over->count++) % MOST_SLOTS] = block_offset;
    pthread_mutex_unlock(&hand_over->mutex);
}

static bool pop(struct world *world, uint64_t *block_offset)
{
    struct hand_over *hand_over = &world->hand_over;
    pthread_mutex_lock(&hand_over->mutex);
    bool any = hand_over->count > 0;
    if (any) {
        *block_offset = hand_over->blocks[hand_over->first];
        hand_over->first = (hand_over->first + 1) % MOST_SLOTS;
        hand_over->count--;
    }
    pthread_mutex_unlock(&hand_over->mutex);
    return any;
}

/* xorshift64, below `limit`. */
static uint32_t pick(struct worker *worker, uint32_t limit)
{
    worker->random ^= worker->random << 13;
    worker->random ^= worker->random >> 7;
    worker->random ^= worker->random << 17;
    return (uint32_t)(worker->random >> 32) % limit;
}

/* Returns true when the worker has taken one more ticket. */
static bool begin(struct worker *worker, struct kbtp_alloc *alloc)
{
    struct world *world = worker->world;
    if (worker->allocated_all)
        return false;
    uint32_t begun = atomic_fetch_add_explicit(&world->allocations_begun, 1, memory_order_relaxed);
    worker->allocated_all = begun >= world->setting->allocations;
    if (!worker->allocated_all)
        kbtp_ring_take_ticket(&worker->m, &world->ring, alloc);
    return !worker->allocated_all;
}

/*
 * Begins an allocation or looks at the slot of one. With several of them open, slots stay
 * unconsumed for a while, so that frees are deferred. Returns true when one got further.
 */
static bool allocate(struct worker *worker)
{
    struct world *world = worker->world;
    struct kbtp_alloc *alloc = &worker->allocs[pick(worker, MOST_OPEN)];
    if (alloc->stage == KBTP_ALLOC_IDLE)
        return begin(worker, alloc);
    bool done = pick(worker, 2) ? kbtp_ring_poll_unordered(&worker->m, &world->ring, alloc)
                                : kbtp_ring_poll_ordered(&worker->m, &world->ring, alloc);
    if (!done)
        return false;
    begins_to_hold(worker, alloc->block_offset);
    push(world, alloc->block_offset);
    *alloc = (struct kbtp_alloc){0};
    return true;
}

/* Now and then a look at the deferred frees, and one block out of the hand-over if there is any. */
static bool free_blocks(struct worker *worker)
{
    struct world *world = worker->world;
    uint64_t block_offset;
    bool further = pick(worker, 4) == 0 &&
                   kbtp_ring_retry_all(&worker->m, &world->ring, &worker->deferred) > 0;
    if (pop(world, &block_offset)) {
        ends_to_hold(worker, block_offset);
        if (kbtp_ring_free(&worker->m, &world->ring, &worker->deferred, block_offset) < 0)
            count_wrong(world);
        atomic_fetch_add_explicit(&world->frees_done, 1, memory_order_relaxed);
        further = true;
    }
    return further;
}

static bool has_ended(const struct worker *worker)
{
    const struct world *world = worker->world;
    if (worker->allocates && !worker->allocated_all)
        return false;
    for (uint32_t i = 0; i < MOST_OPEN; i++)
        if (worker->allocs[i].stage != KBTP_ALLOC_IDLE)
            return false;
    return !worker->frees || (worker->deferred.count == 0 &&
                              atomic_load_explicit(&world->frees_done, memory_order_relaxed) >=
                                  world->setting->allocations);
}

static void *work(void *argument)
{
    struct worker *worker = argument;
    struct world *world = worker->world;
    uint32_t fruitless = 0;
    for (uint32_t round = 1; !has_ended(worker); round++) {
        bool further = worker->allocates && allocate(worker);
        further |= worker->frees && free_blocks(worker);
        fruitless = further ? 0 : fruitless + 1;
        if (fruitless < PATIENCE && round % 1024 != 0)
            continue;
        if (now_s() >= deadline_s)
            atomic_store_explicit(&world->late, 1, memory_order_relaxed);
        /* The ring is broken: who waits may wait for ever. */
        if (atomic_load_explicit(&world->late, memory_order_relaxed) != 0 ||
            atomic_load_explicit(&world->wrong, memory_order_relaxed) != 0)
            break;
        sched_yield();
        fruitless = 0;
    }
    return NULL;
}

static void set_up(struct world *world, const struct setting *setting, bool unmasked, bool addr_le)
{
    uint64_t block_offsets[MOST_SLOTS];
    for (uint32_t b = 0; b < setting->block_count; b++)
        block_offsets[b] = offset_of_block(b);
    memset(world, 0, sizeof *world);
    world->setting = setting;
    world->config = (struct kbtp_ring_config){
        .slot_count = setting->slot_count,
        .block_count = setting->block_count,
        .first_ticket = 0 - setting->allocations / 2, /* R-RING-31: half of them before the wrap */
        .unmasked = unmasked,
        .addr_le = addr_le,
    };
    struct mem m = {0};
    CU_ASSERT_EQUAL_FATAL(kbtp_ring_init(&m, &world->ring, &world->config, world->slots,
                                         &world->head, &world->tail, block_offsets),
                          0);
    CU_ASSERT_EQUAL_FATAL(pthread_mutex_init(&world->hand_over.mutex, NULL), 0);
}

static void run_workers(struct world *world)
{
    static struct worker workers[MOST_WORKERS];
    const struct setting *setting = world->setting;
    const uint32_t count = setting->allocators + setting->freers + setting->both;
    pthread_t threads[MOST_WORKERS];
    uint32_t started = 0;
    for (; started < count; started++) {
        struct worker *worker = &workers[started];
        *worker = (struct worker){
            .world = world,
            .number = started + 1,
            .random = started + 1,
            .allocates = started < setting->allocators + setting->both,
            .frees = started >= setting->allocators,
            .deferred = {.frees = worker->frees_deferred, .capacity = setting->block_count},
        };
        if (pthread_create(&threads[started], NULL, work, worker) != 0)
            break;
    }
    CU_ASSERT_EQUAL(started, count);
    if (started < count)
        atomic_store_explicit(&world->late, 1, memory_order_relaxed);
    for (uint32_t i = 0; i < started; i++)
        CU_ASSERT_EQUAL(pthread_join(threads[i], NULL), 0);
}

/* The octets of a slot (draft: Ring Slot). */
static uint64_t octets_at(const struct kbtp_slot *slot, unsigned at, unsigned count, bool little)
{
    uint8_t octets[16];
    memcpy(octets, (const void *)slot, sizeof octets);
    uint64_t value = 0;
    for (unsigned i = 0; i < count; i++)
        value = value << 8 | octets[at + (little ? count - 1 - i : i)];
    return value;
}

static void check_counter(const struct world *world, const mem64 *place, uint32_t ticket)
{
    uint64_t value;
    memcpy(&value, (const void *)place, sizeof value);
    CU_ASSERT_EQUAL(value >> 32, ticket);
    CU_ASSERT_EQUAL(value & UINT32_MAX,
                    world->config.unmasked ? 0 : 16 * (ticket % world->config.slot_count));
}

/* Every block is in the ring once, in the slots from Head to Tail; the other slots are consumed. */
static void check_end(const struct world *world)
{
    const struct kbtp_ring_config *config = &world->config;
    const uint32_t head = config->first_ticket + world->setting->allocations;
    uint32_t found[MOST_SLOTS + 1] = {0};
    uint64_t contents = 0;
    check_counter(world, &world->head, head);
    check_counter(world, &world->tail, head + config->block_count);
    for (uint32_t i = 0; i < config->slot_count; i++) {
        const struct kbtp_slot *slot = &world->slots[(head + i) % config->slot_count];
        const bool filled = i < config->block_count;
        uint64_t block_offset = octets_at(slot, 8, 8, config->addr_le);
        CU_ASSERT_EQUAL(octets_at(slot, 0, 4, false),
                        (uint32_t)(head + i - (filled ? 0 : config->slot_count)));
        CU_ASSERT_EQUAL(octets_at(slot, 4, 4, false), 0);
        CU_ASSERT_EQUAL(block_offset == NONE, !filled);
        if (filled)
            found[block_at(block_offset, config->block_count)]++;
    }
    for (uint32_t b = 0; b < config->block_count; b++) {
        CU_ASSERT_EQUAL(found[b], 1);
        CU_ASSERT_EQUAL(world->holder[b], 0);
        contents += world->contents[b];
    }
    CU_ASSERT_EQUAL(contents, 2 * (uint64_t)world->setting->allocations);
}

/* Both counter forms, each with one of the byte orders. */
static void run(const struct setting *setting)
{
    static struct world world;
    for (int unmasked = 0; unmasked <= 1; unmasked++) {
        set_up(&world, setting, unmasked, unmasked);
        run_workers(&world);
        CU_ASSERT_EQUAL(world.wrong, 0);
        CU_ASSERT_EQUAL(world.late, 0);
        if (world.wrong == 0 && world.late == 0)
            check_end(&world);
        pthread_mutex_destroy(&world.hand_over.mutex);
    }
}

static void three_allocators_and_one_freer(void)
{
    run(&(struct setting){8, 8, .allocators = 3, .freers = 1, .allocations = ALLOCATIONS});
}

static void two_allocators_and_two_freers(void)
{
    run(&(struct setting){4, 3, .allocators = 2, .freers = 2, .allocations = ALLOCATIONS});
}

static void one_allocator_and_three_freers(void)
{
    run(&(struct setting){4, 4, .allocators = 1, .freers = 3, .allocations = ALLOCATIONS});
}

static void four_workers_that_do_both(void)
{
    run(&(struct setting){8, 5, .both = 4, .allocations = ALLOCATIONS});
}

static void four_workers_and_two_slots(void)
{
    run(&(struct setting){2, 2, .both = 4, .allocations = ALLOCATIONS});
}

int main(void)
{
    static const struct test tests[] = {
        {"three allocators and one freer", three_allocators_and_one_freer},
        {"two allocators and two freers", two_allocators_and_two_freers},
        {"one allocator and three freers", one_allocator_and_three_freers},
        {"four workers that do both", four_workers_that_do_both},
        {"four workers and two slots", four_workers_and_two_slots},
    };
    deadline_s = now_s() + TIME_LIMIT_S;
    alarm(TIME_LIMIT_S + 10); /* in case a call does not return */
    return run_tests("ref/ring between threads", tests, sizeof tests / sizeof tests[0]);
}
