/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Nothing allocates after set-up: neither ref/ nor the devices below. malloc() and its like are
 * wrapped by the linker (tests/CMakeLists.txt), and count while they are watched.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sim/random.h"
#include "tests/ref/fixture.h"

/* ---- what is watched --------------------------------------------------------------------- */

/* A compiler takes malloc() for a function that never looks at what this file keeps. */
static volatile bool watched;
static volatile uint32_t calls;

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *old, size_t size);
void *__real_aligned_alloc(size_t alignment, size_t size);
void __real_free(void *memory);

void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *old, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size);
void __wrap_free(void *memory);

void *__wrap_malloc(size_t size)
{
    calls += watched;
    return __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
    calls += watched;
    return __real_calloc(count, size);
}

void *__wrap_realloc(void *old, size_t size)
{
    calls += watched;
    return __real_realloc(old, size);
}

void *__wrap_aligned_alloc(size_t alignment, size_t size)
{
    calls += watched;
    return __real_aligned_alloc(alignment, size);
}

void __wrap_free(void *memory)
{
    calls += watched;
    __real_free(memory);
}

/* ---- a long run -------------------------------------------------------------------------- */

#define ROUNDS 10000u

static uint64_t seed;
static uint32_t good[4], refused, lost, losses, goodbyes; /* what there was */

static void submit_something(uint32_t i)
{
    static const uint8_t opcodes[] = {KBTP_OP_LOAD, KBTP_OP_STORE, KBTP_OP_ALLOC_STORE,
                                      KBTP_OP_FREE};
    uint8_t opcode = opcodes[sim_random_below(&seed, 4)];
    uint32_t n = sim_random_below(&seed, 16), length = sim_random_below(&seed, 33);
    uint16_t flags = 0;
    if (opcode == KBTP_OP_LOAD) {
        flags = KBTP_FLAG_ALLOW_UNSEALED;
        length = 64;
    } else if (opcode != KBTP_OP_FREE) {
        flags = (uint16_t)(sim_random_below(&seed, 2) * KBTP_FLAG_INLINE);
    }
    struct kbtp_operation operation = pair_operation(&pair, i, opcode, n, length, flags);
    int failed = pair_submit(&pair, i, &operation, 0);
    CU_ASSERT(failed == 0 || failed == -EAGAIN || failed == -ENOTCONN);
}

static void look_at_outcomes(uint32_t i)
{
    struct kbtp_outcome outcome;
    while (pair_take(&pair, i, &outcome)) {
        if (outcome.error)
            lost++;
        else if (outcome.status != KBTP_STATUS_OK)
            refused++;
        else
            good[outcome.opcode - KBTP_OP_LOAD]++;
    }
}

static void something_happens(uint32_t i)
{
    struct pair_initiator *it = &pair.initiators[i];
    if (kbtp_initiator_state(it->initiator) == KBTP_INITIATOR_DOWN) {
        CU_ASSERT_EQUAL(kbtp_initiator_connect(it->initiator, &it->cpu), 0);
    } else if (kbtp_initiator_state(it->initiator) != KBTP_INITIATOR_READY) {
        return;
    } else if (sim_random_below(&seed, 200) == 0) {
        provider->cut(it->cpu.rdma, 0);
        losses++;
    } else if (kbtp_initiator_outstanding(it->initiator) == 0 &&
               sim_random_below(&seed, 100) == 0) {
        goodbyes +=
            kbtp_initiator_goodbye(it->initiator, &it->cpu, sim_random_below(&seed, 2)) == 0;
    } else {
        submit_something(i);
    }
}

static void a_long_run_allocates_nothing(void)
{
    struct pair_config config = pair_defaults();
    config.unchecked = true;
    open_with(&config);
    seed = 42;
    memset(good, 0, sizeof good);
    refused = lost = losses = goodbyes = calls = 0;
    watched = true;
    for (uint32_t round = 0; round < ROUNDS; round++) {
        for (uint32_t n = 0; n < 12; n++)
            something_happens(n % 3);
        for (uint32_t i = 0; i < 3; i++)
            look_at_outcomes(i);
        pair_poll(&pair);
    }
    watched = false;
    CU_ASSERT_EQUAL(calls, 0);
    for (uint32_t i = 0; i < 4; i++)
        CU_ASSERT(good[i] > 100);
    CU_ASSERT(refused > 100);
    CU_ASSERT(lost > 20);
    CU_ASSERT(losses > 20);
    CU_ASSERT(goodbyes > 20);
    close_pair();
}

/* The counting itself works. */
static void an_allocation_would_be_seen(void)
{
    calls = 0;
    watched = true;
    void *volatile memory = malloc(8);
    free(memory);
    watched = false;
    CU_ASSERT_EQUAL(calls, 2);
}

int main(void)
{
    static const struct test tests[] = {
        {"an allocation would be seen", an_allocation_would_be_seen},
        {"a long run allocates nothing", a_long_run_allocates_nothing},
    };
    return run_over_providers("ref/no_allocation", tests, sizeof tests / sizeof *tests, PROVIDERS);
}
