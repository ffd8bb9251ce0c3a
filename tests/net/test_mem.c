/* SPDX-License-Identifier: BSD-3-Clause */
/* net/mem.h without a simulator: the masked sum, moving octets, and FetchAdd between threads. */
#define _GNU_SOURCE /* pthread_attr_setaffinity_np */
#include "net/mem.h"

#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "tests/run.h"

/* splitmix64: every run of the test sees the same numbers. */
static uint64_t next_random(uint64_t *state)
{
    *state += 0x9e3779b97f4a7c15u;
    uint64_t z = *state;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* RFC 7306 section 5.1 as an adder of single bits: a carry out of a masked bit is dropped. */
static uint64_t sum_bit_by_bit(uint64_t value, uint64_t add, uint64_t mask)
{
    uint64_t sum = 0;
    unsigned carry = 0;
    for (unsigned bit = 0; bit < 64; bit++) {
        unsigned ones = (unsigned)(value >> bit & 1) + (unsigned)(add >> bit & 1) + carry;
        sum |= (uint64_t)(ones & 1) << bit;
        carry = mask >> bit & 1 ? 0 : ones >> 1;
    }
    return sum;
}

/* A dense, a sparse, an almost full, an empty or a full mask, or that of a ring of 2^n slots. */
static uint64_t random_mask(uint64_t *state, unsigned kind)
{
    uint64_t a = next_random(state);
    uint64_t b = next_random(state);
    uint64_t c = next_random(state);
    switch (kind % 6) {
    case 0:
        return a;
    case 1:
        return a & b & c;
    case 2:
        return a | b | c;
    case 3:
        return 0;
    case 4:
        return UINT64_MAX;
    default:
        return UINT64_C(1) << 63 | UINT64_C(1) << 31 | UINT64_C(1) << (a % 28 + 4);
    }
}

/* R-RING-09 */
static void masked_sum_is_that_of_the_rfc(void)
{
    uint64_t state = 1;
    unsigned differ = 0;
    for (unsigned i = 0; i < 600000; i++) {
        uint64_t value = next_random(&state);
        uint64_t add = next_random(&state);
        uint64_t mask = random_mask(&state, i);
        differ += mem_masked_sum64(value, add, mask) != sum_bit_by_bit(value, add, mask);
    }
    CU_ASSERT_EQUAL(differ, 0);

    /* Values of the draft: 4 slots, Ticket and Slot Offset both wrap and neither carries. */
    CU_ASSERT_EQUAL(mem_masked_sum64(0xffffffff00000030u, 0x0000000100000010u, 0x8000000080000020u),
                    0);
    CU_ASSERT_EQUAL(mem_masked_sum64(0x0000000300000030u, 0x0000000100000010u, 0x8000000080000020u),
                    0x0000000400000000u);
}

static void masked_fetch_add_returns_what_was_there(void)
{
    struct mem m = {0};
    uint64_t state = 2;
    mem64 word = {0};
    for (unsigned i = 0; i < 1000; i++) {
        uint64_t before = mem_load64(&m, &word);
        uint64_t add = next_random(&state);
        uint64_t mask = random_mask(&state, i);
        CU_ASSERT_EQUAL(mem_fetch_add_masked64(&m, &word, add, mask), before);
        CU_ASSERT_EQUAL(mem_load64(&m, &word), sum_bit_by_bit(before, add, mask));
    }
}

#define LENGTH_MAX 64u
#define ALIGNMENTS 8u
/* Guard octets before and after, so that a write outside its place shows. */
#define GUARD 16u
#define BUFFER (GUARD + ALIGNMENTS + LENGTH_MAX + GUARD)

struct move_case {
    _Alignas(16) char shared[BUFFER];
    _Alignas(16) char private[BUFFER];
    char expected[BUFFER];
    size_t shared_at, private_at, octets;
};

static void fill_random(char *buffer, uint64_t *state)
{
    for (size_t i = 0; i < BUFFER; i++)
        buffer[i] = (char)next_random(state);
}

/* Runs `check` with both places at all alignments and with all lengths. */
static void for_all_moves(bool (*check)(struct mem *m, struct move_case *c))
{
    struct mem m = {0};
    struct move_case c;
    uint64_t state = 3;
    unsigned differ = 0;
    for (size_t shared = 0; shared < ALIGNMENTS; shared++)
        for (size_t private = 0; private < ALIGNMENTS; private ++)
            for (size_t octets = 0; octets <= LENGTH_MAX; octets++) {
                fill_random(c.shared, &state);
                fill_random(c.private, &state);
                c.shared_at = GUARD + shared;
                c.private_at = GUARD + private;
                c.octets = octets;
                differ += !check(&m, &c);
            }
    CU_ASSERT_EQUAL(differ, 0);
}

static bool read_is_memcpy(struct mem *m, struct move_case *c)
{
    memcpy(c->expected, c->private, BUFFER);
    memcpy(c->expected + c->private_at, c->shared + c->shared_at, c->octets);
    mem_read(m, c->private + c->private_at, c->shared + c->shared_at, c->octets);
    return memcmp(c->private, c->expected, BUFFER) == 0;
}

static bool write_is_memcpy(struct mem *m, struct move_case *c)
{
    memcpy(c->expected, c->shared, BUFFER);
    memcpy(c->expected + c->shared_at, c->private + c->private_at, c->octets);
    mem_write(m, c->shared + c->shared_at, c->private + c->private_at, c->octets);
    return memcmp(c->shared, c->expected, BUFFER) == 0;
}

static bool fill_is_memset(struct mem *m, struct move_case *c)
{
    uint8_t octet = (uint8_t)c->private[0];
    memcpy(c->expected, c->shared, BUFFER);
    memset(c->expected + c->shared_at, octet, c->octets);
    mem_fill(m, c->shared + c->shared_at, octet, c->octets);
    return memcmp(c->shared, c->expected, BUFFER) == 0;
}

static void read_moves_exactly_its_octets(void)
{
    for_all_moves(read_is_memcpy);
}

static void write_moves_exactly_its_octets(void)
{
    for_all_moves(write_is_memcpy);
}

static void fill_sets_exactly_its_octets(void)
{
    for_all_moves(fill_is_memset);
}

/* Two threads take tickets of one ring of 4 slots; the Ticket crosses 2^32 on the way. */
#define RING_ADD 0x0000000100000010u
#define RING_MASK 0x8000000080000020u
#define FIRST_TICKET 0xfffffff8u
#define TICKETS_EACH 1000000u

struct taker {
    mem64 *head;
    pthread_barrier_t *start;
    uint64_t counters[TICKETS_EACH]; /* what each FetchAdd returned */
};

static void *take_tickets(void *argument)
{
    struct taker *taker = argument;
    struct mem m = {0};
    pthread_barrier_wait(taker->start);
    for (uint32_t i = 0; i < TICKETS_EACH; i++)
        taker->counters[i] = mem_fetch_add_masked64(&m, taker->head, RING_ADD, RING_MASK);
    return NULL;
}

/* Counts each ticket in `taken`; returns how many counters no FetchAdd can have returned. */
static unsigned count_tickets(const struct taker *taker, unsigned *taken)
{
    unsigned wrong = 0;
    for (uint32_t i = 0; i < TICKETS_EACH; i++) {
        uint32_t ticket = (uint32_t)(taker->counters[i] >> 32);
        uint32_t index = ticket - FIRST_TICKET;
        if (index < 2 * TICKETS_EACH && (uint32_t)taker->counters[i] == ticket % 4 * 16)
            taken[index]++;
        else
            wrong++;
    }
    return wrong;
}

/*
 * Thread `number` starts on a CPU of its own, as far as there are several: on a busy machine both
 * would otherwise take turns on one, a million FetchAdds at a time.
 */
static int start_taker(pthread_t *thread, struct taker *taker, int number)
{
    cpu_set_t allowed, chosen;
    CPU_ZERO(&chosen);
    if (sched_getaffinity(0, sizeof allowed, &allowed) != 0)
        return -1;
    int nth = number % CPU_COUNT(&allowed);
    for (size_t cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &allowed) && nth-- == 0)
            CPU_SET(cpu, &chosen);
    pthread_attr_t attributes;
    if (pthread_attr_init(&attributes) != 0)
        return -1;
    int error = pthread_attr_setaffinity_np(&attributes, sizeof chosen, &chosen);
    if (error == 0)
        error = pthread_create(thread, &attributes, take_tickets, taker);
    pthread_attr_destroy(&attributes);
    return error;
}

/* R-RING-16, -31 */
static void two_threads_get_every_ticket_once(void)
{
    static struct taker takers[2];
    static unsigned taken[2 * TICKETS_EACH];
    mem64 head = {(uint64_t)FIRST_TICKET << 32};
    pthread_barrier_t start;
    pthread_t threads[2];
    CU_ASSERT_EQUAL_FATAL(pthread_barrier_init(&start, NULL, 2), 0);
    for (int i = 0; i < 2; i++) {
        takers[i].head = &head;
        takers[i].start = &start;
        CU_ASSERT_EQUAL_FATAL(start_taker(&threads[i], &takers[i], i), 0);
    }
    unsigned wrong = 0;
    for (unsigned i = 0; i < 2; i++) {
        CU_ASSERT_EQUAL_FATAL(pthread_join(threads[i], NULL), 0);
        wrong += count_tickets(&takers[i], taken);
    }
    pthread_barrier_destroy(&start);

    CU_ASSERT_EQUAL(wrong, 0);
    unsigned not_once = 0;
    for (uint32_t i = 0; i < 2 * TICKETS_EACH; i++)
        not_once += taken[i] != 1;
    CU_ASSERT_EQUAL(not_once, 0);
    struct mem m = {0};
    uint32_t next = FIRST_TICKET + 2 * TICKETS_EACH;
    CU_ASSERT_EQUAL(mem_load64(&m, &head), (uint64_t)next << 32 | (uint64_t)16 * (next % 4));
}

int main(void)
{
    static const struct test tests[] = {
        {"the masked sum is that of RFC 7306", masked_sum_is_that_of_the_rfc},
        {"a masked FetchAdd returns what was there", masked_fetch_add_returns_what_was_there},
        {"read moves exactly its octets", read_moves_exactly_its_octets},
        {"write moves exactly its octets", write_moves_exactly_its_octets},
        {"fill sets exactly its octets", fill_sets_exactly_its_octets},
        {"two threads get every ticket once", two_threads_get_every_ticket_once},
    };
    return run_tests("net/mem", tests, sizeof tests / sizeof tests[0]);
}
