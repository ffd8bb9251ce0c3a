/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Nothing allocates after set-up: neither ref/ nor the devices below. malloc() and its like are
 * wrapped by the linker (tests/CMakeLists.txt), and count while they are watched. What allocates
 * within the C library is not seen; tests/install/symbols.sh shows that ref/ calls nothing such.
 */
#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "sim/random.h"
#include "tests/ref/fixture.h"

/* ---- what is watched --------------------------------------------------------------------- */

/* A compiler takes malloc() for a function that never looks at what this file keeps. */
static volatile bool watched;
static volatile uint32_t calls;

/* A call of this name counts, and goes on to the real one. */
#define WATCH(type, name, parameters, arguments) \
    type __real_##name parameters; \
    type __wrap_##name parameters; \
    type __wrap_##name parameters \
    { \
        calls += watched; \
        return __real_##name arguments; \
    }

WATCH(void *, malloc, (size_t size), (size))
WATCH(void *, calloc, (size_t count, size_t size), (count, size))
WATCH(void *, realloc, (void *old, size_t size), (old, size))
WATCH(void *, reallocarray, (void *old, size_t count, size_t size), (old, count, size))
WATCH(void *, aligned_alloc, (size_t alignment, size_t size), (alignment, size))
WATCH(void *, memalign, (size_t alignment, size_t size), (alignment, size))
WATCH(int, posix_memalign, (void **at, size_t alignment, size_t size), (at, alignment, size))
WATCH(char *, strdup, (const char *text), (text))
WATCH(char *, strndup, (const char *text, size_t size), (text, size))
WATCH(void *, mmap, (void *at, size_t size, int prot, int flags, int file, off_t offset),
      (at, size, prot, flags, file, offset))
WATCH(int, munmap, (void *memory, size_t size), (memory, size))
WATCH(void *, sbrk, (intptr_t more), (more))

void __real_free(void *memory);
void __wrap_free(void *memory);

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
    CU_ASSERT(provider->real || calls == 0);
    for (uint32_t i = 0; i < 4; i++)
        CU_ASSERT(good[i] > 100);
    CU_ASSERT(refused > 100);
    CU_ASSERT(lost > 20);
    CU_ASSERT(losses > 20);
    CU_ASSERT(goodbyes > 20);
    close_pair();
}

static void *volatile memory; /* so that the compiler keeps what nobody uses */

static void expect_calls(uint32_t count)
{
    CU_ASSERT_EQUAL(calls, count);
    CU_ASSERT_PTR_NOT_NULL(memory);
    free(memory);
    CU_ASSERT_EQUAL(calls, count + 1);
    calls = 0;
}

/* The counting itself works. */
static void an_allocation_would_be_seen(void)
{
    void *at = NULL;
    calls = 0;
    watched = true;
    memory = malloc(8);
    expect_calls(1);
    memory = calloc(1, 8);
    memory = realloc(memory, 16);
    memory = reallocarray(memory, 3, 8);
    expect_calls(3);
    memory = aligned_alloc(64, 64);
    expect_calls(1);
    memory = memalign(64, 64);
    expect_calls(1);
    CU_ASSERT_EQUAL(posix_memalign(&at, 64, 64), 0);
    memory = at;
    expect_calls(1);
    memory = strdup("octets");
    expect_calls(1);
    memory = strndup("octets", 3);
    expect_calls(1);
    memory = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CU_ASSERT_EQUAL(munmap(memory, 4096), 0);
    CU_ASSERT_PTR_NOT_EQUAL(sbrk(0), NULL);
    CU_ASSERT_EQUAL(calls, 3);
    watched = false;
}

int main(void)
{
    static const struct test tests[] = {
        {"an allocation would be seen", an_allocation_would_be_seen},
        {"a long run allocates nothing", a_long_run_allocates_nothing},
    };
    return run_over_providers("ref/no_allocation", tests, sizeof tests / sizeof *tests, PROVIDERS);
}
