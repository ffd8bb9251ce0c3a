/* SPDX-License-Identifier: BSD-3-Clause */
/* sim/timed/clock.h: events happen in the order of (time, sequence), whoever planned them when. */
#include "sim/timed/clock.h"

#include <stdlib.h>

#include "tests/run.h"
#include "timed_traffic.h"
#include "wrapped.h"

struct happened {
    struct sim_clock clock;
    uint32_t count;
    uint64_t numbers[16];
};

static void note(void *context, uint64_t number)
{
    struct happened *h = context;
    h->numbers[h->count++] = number;
}

static void run(struct sim_clock *clock)
{
    while (sim_clock_next(clock) != SIM_CLOCK_NEVER)
        sim_clock_step(clock);
}

static void test_order(void)
{
    struct happened h = {.clock.end_ns = SIM_CLOCK_NEVER};
    uint64_t early = sim_clock_sequence(&h.clock);
    sim_clock_at(&h.clock, 20, note, &h, 3);
    sim_clock_at(&h.clock, 10, note, &h, 1);
    sim_clock_at(&h.clock, 20, note, &h, 4);
    sim_clock_plan(&h.clock, 20, early, note, &h, 2); /* planned last, its place taken first */
    sim_clock_at(&h.clock, 0, note, &h, 0);
    CU_ASSERT_EQUAL(sim_clock_next(&h.clock), 0);
    run(&h.clock);
    CU_ASSERT_EQUAL_FATAL(h.count, 5);
    for (uint64_t i = 0; i < 5; i++)
        CU_ASSERT_EQUAL(h.numbers[i], i);
    CU_ASSERT_EQUAL(h.clock.now_ns, 20);
    CU_ASSERT_EQUAL(h.clock.happened, 5);
    CU_ASSERT_EQUAL(h.clock.most, 5);
    sim_clock_free(&h.clock);
}

static void stop(void *context, uint64_t number)
{
    note(context, number);
    ((struct happened *)context)->clock.stopped = true;
}

static void test_end(void)
{
    struct happened h = {.clock.end_ns = 20};
    sim_clock_at(&h.clock, 20, note, &h, 0);
    sim_clock_at(&h.clock, 21, note, &h, 1);
    run(&h.clock);
    CU_ASSERT_EQUAL(h.count, 1);
    h.clock.end_ns = 30;
    sim_clock_at(&h.clock, 22, stop, &h, 2);
    sim_clock_at(&h.clock, 23, note, &h, 3);
    run(&h.clock);
    CU_ASSERT_EQUAL(h.count, 3);
    CU_ASSERT_EQUAL(h.clock.now_ns, 22);
    sim_clock_free(&h.clock);
}

/* ---- against a list that is sorted ------------------------------------------------------- */

#define EVENTS 20000u
#define TIMES 500u /* so that many fall together */

struct planned {
    uint64_t at_ns, sequence;
};

static struct planned planned[EVENTS], came[EVENTS];
static uint32_t planned_count, came_count;
static uint64_t seed = 0x9e3779b97f4a7c15u;

static void plan_some(struct sim_clock *clock, uint32_t count);

/* Some of those that come plan others. */
static void comes(void *context, uint64_t number)
{
    struct sim_clock *clock = context;
    came[came_count++] = (struct planned){clock->now_ns, clock->current};
    CU_ASSERT_EQUAL(clock->current, planned[number].sequence);
    plan_some(clock, traffic_chance(&seed, 3));
}

static void plan_some(struct sim_clock *clock, uint32_t count)
{
    for (; count > 0 && planned_count < EVENTS; count--) {
        struct planned *p = &planned[planned_count];
        *p = (struct planned){clock->now_ns + traffic_chance(&seed, TIMES),
                              sim_clock_sequence(clock)};
        sim_clock_plan(clock, p->at_ns, p->sequence, comes, clock, planned_count++);
    }
}

static int compare(const void *a, const void *b)
{
    const struct planned *p = a, *q = b;
    if (p->at_ns != q->at_ns)
        return p->at_ns < q->at_ns ? -1 : 1;
    return p->sequence < q->sequence ? -1 : p->sequence > q->sequence;
}

static void test_sorted(void)
{
    struct sim_clock clock = {.end_ns = SIM_CLOCK_NEVER};
    plan_some(&clock, EVENTS / 4);
    run(&clock);
    CU_ASSERT_EQUAL_FATAL(came_count, EVENTS);
    qsort(planned, EVENTS, sizeof planned[0], compare);
    uint32_t wrong = 0;
    for (uint32_t i = 0; i < EVENTS; i++)
        wrong += compare(&planned[i], &came[i]) != 0;
    CU_ASSERT_EQUAL(wrong, 0);
    sim_clock_free(&clock);
}

/* The run is void, and says so. */
static void test_no_memory(void)
{
    struct happened h = {.clock.end_ns = SIM_CLOCK_NEVER};
    wrapped = 0;
    fail_at = 1;
    sim_clock_at(&h.clock, 1, note, &h, 0);
    CU_ASSERT_TRUE(h.clock.no_memory);
    CU_ASSERT_EQUAL(sim_clock_next(&h.clock), SIM_CLOCK_NEVER);
    sim_clock_free(&h.clock);

    for (unsigned n = 2; n <= 4; n++) { /* at first, and when it grows */
        h = (struct happened){.clock.end_ns = SIM_CLOCK_NEVER};
        wrapped = 0;
        fail_at = n;
        uint32_t i;
        for (i = 0; !h.clock.no_memory && i < EVENTS; i++)
            sim_clock_at(&h.clock, i, note, &h, 0);
        fail_at = 0;
        CU_ASSERT_TRUE(h.clock.no_memory);
        CU_ASSERT_EQUAL(h.clock.count, i - 1);
        CU_ASSERT_EQUAL(sim_clock_next(&h.clock), SIM_CLOCK_NEVER);
        sim_clock_free(&h.clock);
    }
}

int main(void)
{
    const struct test tests[] = {{"order", test_order},
                                 {"end", test_end},
                                 {"sorted", test_sorted},
                                 {"no memory", test_no_memory}};
    return run_tests("timed clock", tests, sizeof tests / sizeof tests[0]);
}
