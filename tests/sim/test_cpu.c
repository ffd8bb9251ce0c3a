/* SPDX-License-Identifier: BSD-3-Clause */
/* Store buffers, atomics, pieces and re-execution, by litmus tests with known outcomes. */
#include <string.h>

#include "litmus.h"
#include "tests/run.h"

static const enum sim_memory memories[] = {SIM_MEMORY_SC, SIM_MEMORY_TSO, SIM_MEMORY_RELAXED};

/* The outcomes under every way to step, which must be the same; what is returned is the default. */
static void run(struct litmus litmus, struct outcomes *outcomes)
{
    static struct outcomes other;
    litmus.check_commute = true;
    litmus_run(&litmus, outcomes);
    CU_ASSERT_EQUAL(outcomes->report.result, SIM_OK);
    for (int way = 1; way < 4; way++) {
        litmus.no_private_steps = way & 1;
        litmus.merged_drains = way & 2;
        litmus_run(&litmus, &other);
        CU_ASSERT_EQUAL(other.report.result, SIM_OK);
        CU_ASSERT(litmus_same(outcomes, &other));
    }
}

static void run_two(enum sim_memory memory, litmus_code a, litmus_code b, struct outcomes *outcomes)
{
    run((struct litmus){.code = {a, b}, .agents = 2, .memory = memory}, outcomes);
}

static struct outcomes o;

/* ---- store buffering: x = 1; r = y  |  y = 1; r = x -------------------------------------- */

static void sb_x(struct mem *m, const struct litmus_shared *s, uint64_t *r)
{
    mem_store64(m, s->x, 1);
    r[0] = mem_load64(m, s->y);
}

static void sb_y(struct mem *m, const struct litmus_shared *s, uint64_t *r)
{
    mem_store64(m, s->y, 1);
    r[0] = mem_load64(m, s->x);
}

static void sb_y_atomic(struct mem *m, const struct litmus_shared *s, uint64_t *r)
{
    mem_fetch_add64(m, s->y, 1);
    r[0] = mem_load64(m, s->x);
}

static void sb_x_atomic(struct mem *m, const struct litmus_shared *s, uint64_t *r)
{
    mem_fetch_add64(m, s->x, 1);
    r[0] = mem_load64(m, s->y);
}

static void test_store_buffering(void)
{
    for (int i = 0; i < 3; i++) {
        run_two(memories[i], sb_x, sb_y, &o);
        CU_ASSERT_EQUAL(litmus_has(&o, 0, 0, 0, 0), memories[i] != SIM_MEMORY_SC);
        CU_ASSERT(litmus_has(&o, 0, 0, 1, 0));
        CU_ASSERT(litmus_has(&o, 1, 0, 0, 0));
        CU_ASSERT(litmus_has(&o, 1, 0, 1, 0));
        run_two(memories[i], sb_x_atomic, sb_y_atomic, &o);
        CU_ASSERT_FALSE(litmus_has(&o, 0, 0, 0, 0));
        CU_ASSERT_EQUAL(o.count, 3);
    }
}

/* An atomic makes all earlier stores visible first. */
static void drained_y(struct mem *m, const struct litmus_shared *s, uint64_t *r)
{
    mem_store64(m, s->y, 1);
    mem_fetch_add64(m, s->z, 1);
    r[0] = mem_load64(m, s->x);
}

static void drained_x(struct mem *m, const struct litmus_shared *s, uint64_t *r)
{
    mem_store64(m, s->x, 1);
    mem_cas64(m, s->z, 100, 100);
    r[0] = mem_load64(m, s->y);
}

static void test_atomic_drains(void)
{
    for (int i = 0; i < 3; i++) {
        run_two(memories[i], drained_x, drained_y, &o);
        CU_ASSERT_FALSE(litmus_has(&o, 0, 0, 0, 0));
    }
}

/* ---- message passing: x = 1; y = 1  |  r0 = y; r1 = x ------------------------------------ */

static void mp_plain(struct mem *m, const struct litmus_shared *s, uint64_t *r)
{
    (void)r;
    mem_store64(m, s->x, 1);
    mem_store64(m, s->y, 1);
}

static void mp_release(struct mem *m, const struct litmus_shared *s, uint64_t *r)
{
    (void)r;
    mem_store64(m, s->x, 1);
    mem_store_release64(m, s->y, 1);
}

/* A release orders what is before it, not what comes after. */
static void mp_release_first(struct mem *m, const struct litmus_shared *s, uint64_t *r)
{
    (void)r;
    mem_store_release64(m, s->x, 1);
    mem_store64(m, s->y, 1);
}

static void mp_read(struct mem *m, const struct litmus_shared *s, uint64_t *r)
{
    r[0] = mem_load64(m, s->y);
    r[1] = mem_load64(m, s->x);
}

static void test_message_passing(void)
{
    for (int i = 0; i < 3; i++) {
        bool relaxed = memories[i] == SIM_MEMORY_RELAXED;
        run_two(memories[i], mp_plain, mp_read, &o);
        CU_ASSERT_EQUAL(litmus_has(&o, 0, 0, 1, 0), relaxed);
        CU_ASSERT(litmus_has(&o, 0, 0, 1, 1));
        run_two(memories[i], mp_release, mp_read, &o);
        CU_ASSERT_FALSE(litmus_has(&o, 0, 0, 1, 0));
        run_two(memories[i], mp_release_first, mp_read, &o);
        CU_ASSERT_EQUAL(litmus_has(&o, 0, 0, 1, 0), relaxed);
    }
}

/* ---- one place: its stores stay in order, its owner sees them at once -------------------- */

static void twice(struct mem *m, const struct litmus_shared *s, uint64_t *r)
{
    mem_store64(m, s->x, 1);
    mem_store64(m, s->x, 2);
    r[0] = mem_load64(m, s->x);
}

static void look_twice(struct mem *m, const struct litmus_shared *s, uint64_t *r)
{
    r[0] = mem_load64(m, s->x);
    r[1] = mem_load64(m, s->x);
}

static void test_coherence(void)
{
    for (int i = 0; i < 3; i++) {
        run_two(memories[i], twice, look_twice, &o);
        for (uint32_t j = 0; j < o.count; j++) {
            CU_ASSERT_EQUAL(o.all[j].result[0][0], 2);
            CU_ASSERT(o.all[j].result[1][0] <= o.all[j].result[1][1]);
            CU_ASSERT_EQUAL(o.all[j].x, 2);
        }
        CU_ASSERT_EQUAL(o.count, 6);
    }
}

static void store_one(struct mem *m, const struct litmus_shared *s, uint64_t *r)
{
    mem_store64(m, s->x, 1);
    r[0] = mem_load64(m, s->x);
}

static void store_two(struct mem *m, const struct litmus_shared *s, uint64_t *r)
{
    (void)r;
    mem_store64(m, s->x, 2);
}

/* A forwarded load is no private step: the CPU may be slow and read what came after its store. */
static void test_forwarding(void)
{
    for (int i = 0; i < 3; i++) {
        run_two(memories[i], store_one, store_two, &o);
        CU_ASSERT(litmus_has(&o, 1, 0, 0, 0));
        CU_ASSERT(litmus_has(&o, 2, 0, 0, 0));
        CU_ASSERT_FALSE(litmus_has(&o, 0, 0, 0, 0));
    }
}

/* A load that a buffered store covers in part waits until that is visible. */
static void halves(struct mem *m, const struct litmus_shared *s, uint64_t *r)
{
    mem_store32(m, s->low, 1);
    mem_store32(m, s->high, 2);
    r[0] = mem_load64(m, s->x);
}

static void test_partial_forwarding(void)
{
    uint32_t words[2] = {1, 2};
    uint64_t both;
    memcpy(&both, words, sizeof both);
    for (int i = 0; i < 3; i++) {
        run((struct litmus){.code = {halves}, .agents = 1, .memory = memories[i]}, &o);
        CU_ASSERT_EQUAL(o.count, 1);
        CU_ASSERT_EQUAL(o.all[0].result[0][0], both);
    }
}

/* ---- the buffer's size ------------------------------------------------------------------- */

static void store_three(struct mem *m, const struct litmus_shared *s, uint64_t *r)
{
    mem_store64(m, s->x, 1);
    mem_store64(m, s->z, 1);
    mem_store64(m, s->z + 1, 1);
    r[0] = mem_load64(m, s->y);
}

static void test_full_buffer(void)
{
    for (uint32_t size = 1; size <= 4; size++) {
        run((struct litmus){.code = {store_three, sb_y_atomic},
                            .agents = 2,
                            .memory = SIM_MEMORY_TSO,
                            .store_buffer = size},
            &o);
        /* x must have drained before the load as soon as three stores do not fit. */
        CU_ASSERT_EQUAL(litmus_has(&o, 0, 0, 0, 0), size >= 3);
    }
}

/* ---- atomics ----------------------------------------------------------------------------- */

static void add_one(struct mem *m, const struct litmus_shared *s, uint64_t *r)
{
    r[0] = mem_fetch_add64(m, s->x, 1);
}

static void add_one_in_two(struct mem *m, const struct litmus_shared *s, uint64_t *r)
{
    r[0] = mem_load64(m, s->x);
    mem_store64(m, s->x, r[0] + 1);
}

static void add_masked(struct mem *m, const struct litmus_shared *s, uint64_t *r)
{
    /* Two fields of 4 bits, each gets 9: the carry out of the lower one is lost. */
    r[0] = mem_fetch_add_masked64(m, s->x, 0x99, 0x88);
}

static void swap_if_zero(struct mem *m, const struct litmus_shared *s, uint64_t *r)
{
    r[0] = mem_cas64(m, s->x, 0, 7);
}

static void test_atomics(void)
{
    for (int i = 0; i < 3; i++) {
        run_two(memories[i], add_one, add_one, &o);
        CU_ASSERT_EQUAL(o.count, 2);
        for (uint32_t j = 0; j < o.count; j++)
            CU_ASSERT_EQUAL(o.all[j].x, 2);
        run_two(memories[i], add_one_in_two, add_one_in_two, &o);
        CU_ASSERT(litmus_has(&o, 0, 0, 0, 0)); /* a ticket is lost */
        run_two(memories[i], add_masked, add_masked, &o);
        for (uint32_t j = 0; j < o.count; j++)
            CU_ASSERT_EQUAL(o.all[j].x, 0x22);
        run_two(memories[i], swap_if_zero, swap_if_zero, &o);
        CU_ASSERT_EQUAL(o.count, 2);
        CU_ASSERT(litmus_has(&o, 0, 0, 7, 0));
    }
}

/* ---- pieces ------------------------------------------------------------------------------ */

static void read_pair(struct mem *m, const struct litmus_shared *s, uint64_t *r)
{
    mem_read(m, r, s->z, 16);
}

static void write_pair(struct mem *m, const struct litmus_shared *s, uint64_t *r)
{
    (void)r;
    mem_store64(m, s->z, 1);
    mem_store64(m, s->z + 1, 1);
}

/*
 * The writer goes from low to high, so only a reader from low to high sees new after old. A CPU's
 * mem_read tears as well: it is loads from low to high, whatever the order of an RNIC's pieces is.
 */
static void test_torn_read(void)
{
    const enum sim_dma_order orders[] = {SIM_DMA_ANY, SIM_DMA_ASCENDING, SIM_DMA_DESCENDING};
    for (int i = 0; i < 3; i++) {
        struct litmus litmus = {.code = {read_pair, write_pair},
                                .kind = {SIM_AGENT_RNIC, SIM_AGENT_CPU},
                                .agents = 2,
                                .dma_order = orders[i]};
        run(litmus, &o);
        CU_ASSERT_EQUAL(litmus_has(&o, 0, 1, 0, 0), orders[i] != SIM_DMA_DESCENDING);
        CU_ASSERT(litmus_has(&o, 1, 0, 0, 0));
        litmus.kind[0] = SIM_AGENT_CPU;
        run(litmus, &o);
        CU_ASSERT(litmus_has(&o, 0, 1, 0, 0));
        CU_ASSERT(litmus_has(&o, 1, 0, 0, 0));
    }
}

static void write_ones(struct mem *m, const struct litmus_shared *s, uint64_t *r)
{
    (void)r;
    mem_store64(m, s->x, UINT64_MAX);
}

static void write_pair_at_once(struct mem *m, const struct litmus_shared *s, uint64_t *r)
{
    const uint64_t pair[2] = {1, 1};
    (void)r;
    mem_write(m, s->z, pair, sizeof pair);
}

static void fill_pair(struct mem *m, const struct litmus_shared *s, uint64_t *r)
{
    (void)r;
    mem_fill(m, s->z, 1, 16);
}

static void load_x(struct mem *m, const struct litmus_shared *s, uint64_t *r)
{
    r[0] = mem_load64(m, s->x);
}

static void load_pair(struct mem *m, const struct litmus_shared *s, uint64_t *r)
{
    r[0] = mem_load64(m, s->z + 1);
    r[1] = mem_load64(m, s->z);
}

static void test_torn_write(void)
{
    struct litmus litmus = {.code = {load_x, write_ones},
                            .kind = {SIM_AGENT_CPU, SIM_AGENT_RNIC},
                            .agents = 2,
                            .tear = 4};
    run(litmus, &o);
    CU_ASSERT_EQUAL(o.count, 4); /* nothing, either half, both */
    litmus.tear = 8;
    run(litmus, &o);
    CU_ASSERT_EQUAL(o.count, 2);
    litmus.code[0] = load_pair;
    litmus.code[1] = write_pair_at_once;
    run(litmus, &o);
    CU_ASSERT(litmus_has(&o, 1, 0, 0, 0));
    litmus.dma_order = SIM_DMA_ASCENDING;
    run(litmus, &o);
    CU_ASSERT_FALSE(litmus_has(&o, 1, 0, 0, 0));
    litmus.code[1] = fill_pair;
    run(litmus, &o);
    CU_ASSERT(litmus_has(&o, 0x0101010101010101, 0x0101010101010101, 0, 0));
}

/* ---- many octets of a CPU ---------------------------------------------------------------- */

static void write_pair_then_look(struct mem *m, const struct litmus_shared *s, uint64_t *r)
{
    const uint64_t pair[2] = {1, 1};
    mem_write(m, s->z, pair, sizeof pair);
    r[0] = mem_load64(m, s->x);
    mem_read(m, &r[1], s->z + 1, 8);
}

static void add_x_then_look(struct mem *m, const struct litmus_shared *s, uint64_t *r)
{
    mem_fetch_add64(m, s->x, 1);
    r[0] = mem_load64(m, s->z + 1);
    r[1] = mem_load64(m, s->z);
}

/* They are stores: they enter the buffer, drain as stores do, and are forwarded to its owner. */
static void test_write_is_stores(void)
{
    for (int i = 0; i < 3; i++) {
        run_two(memories[i], write_pair_then_look, add_x_then_look, &o);
        bool buffered = false, reordered = false;
        for (uint32_t j = 0; j < o.count; j++) {
            const struct outcome *at = &o.all[j];
            CU_ASSERT_EQUAL(at->result[0][1], 1);
            buffered |= at->result[0][0] == 0 && at->result[1][0] == 0;
            reordered |= at->result[1][0] == 1 && at->result[1][1] == 0;
        }
        CU_ASSERT_EQUAL(buffered, memories[i] != SIM_MEMORY_SC);
        CU_ASSERT_EQUAL(reordered, memories[i] == SIM_MEMORY_RELAXED);
    }
}

static void fill_odd(struct mem *m, const struct litmus_shared *s, uint64_t *r)
{
    mem_fill(m, (char *)s->z + 3, 7, 10); /* pieces of 5 and 5 octets */
    mem_read(m, r, s->z, 16);
}

static void look_at_odd(struct mem *m, const struct litmus_shared *s, uint64_t *r)
{
    mem_read(m, &r[0], (const char *)s->z + 3, 5);
    mem_read(m, &r[1], s->z + 1, 5);
}

static void test_unaligned(void)
{
    for (int i = 0; i < 3; i++) {
        run_two(memories[i], fill_odd, look_at_odd, &o);
        for (uint32_t j = 0; j < o.count; j++) {
            CU_ASSERT_EQUAL(o.all[j].result[0][0], 0x0707070707000000);
            CU_ASSERT_EQUAL(o.all[j].result[0][1], 0x0000000707070707);
        }
        CU_ASSERT(litmus_has(&o, 0x0707070707000000, 0x0707070707, 0, 0x0707070707));
        CU_ASSERT(litmus_has(&o, 0x0707070707000000, 0x0707070707, 0x0707070707, 0));
    }
}

/* ---- what must not happen ---------------------------------------------------------------- */

static void reach_outside(struct mem *m, const struct litmus_shared *s, uint64_t *r)
{
    (void)s;
    r[0] = mem_load64(m, (const mem64 *)litmus_ghost);
}

static void reach_across(struct mem *m, const struct litmus_shared *s, uint64_t *r)
{
    mem_read(m, r, s->x, 16);
}

static void reach_out_of_arena(struct mem *m, const struct litmus_shared *s, uint64_t *r)
{
    static mem64 outside;
    (void)s;
    r[0] = mem_load64(m, &outside);
}

static void access_too_often(struct mem *m, const struct litmus_shared *s, uint64_t *r)
{
    for (int i = 0; i < 9; i++)
        r[0] += mem_load64(m, s->x);
}

static void move_too_much(struct mem *m, const struct litmus_shared *s, uint64_t *r)
{
    (void)r;
    mem_fill(m, s->z, 0, 16);
    static const char much[1024];
    mem_write(m, s->z, much, 16);
    mem_read(m, r, s->z, 16);
    for (int i = 0; i < 4; i++)
        mem_read(m, r, s->z, 16);
}

static void expect_violation(litmus_code code, const char *property)
{
    litmus_run(&(struct litmus){.code = {code}, .agents = 1}, &o);
    CU_ASSERT_EQUAL_FATAL(o.report.result, SIM_VIOLATION);
    CU_ASSERT_STRING_EQUAL(o.report.violation.property, property);
}

static void test_bounds(void)
{
    expect_violation(reach_outside, "granted-memory");
    expect_violation(reach_across, "granted-memory");
    expect_violation(reach_out_of_arena, "granted-memory");
    expect_violation(access_too_often, "bounded-poll");
    expect_violation(move_too_much, "bounded-poll");
}

/* Polls that look at what is neither private nor a result: another place, fewer accesses. */
static int looks;

static void another_place_each_time(struct mem *m, const struct litmus_shared *s, uint64_t *r)
{
    r[0] = mem_load64(m, looks++ % 2 ? s->x : s->y);
    r[1] = mem_load64(m, s->x);
}

static void fewer_accesses_each_time(struct mem *m, const struct litmus_shared *s, uint64_t *r)
{
    for (int i = looks++; i < 3; i++)
        r[0] += mem_load64(m, s->x);
}

static void test_pure_polls(void)
{
    looks = 0;
    expect_violation(another_place_each_time, "pure-poll");
    looks = 0;
    expect_violation(fewer_accesses_each_time, "pure-poll");
}

/* ---- steps that lie about what they touch ------------------------------------------------ */

/* The order in which agents end is remembered, and nobody is told. */
static void remember_order(struct sim_agent *agent)
{
    sim_touch(&agent->world->arena, sim_segment_of(&agent->world->arena, litmus_ghost));
    *litmus_ghost = *litmus_ghost * 4 + agent->index + 1;
}

static void remember_order_and_say_so(struct sim_agent *agent)
{
    sim_ghost_write(agent->world, litmus_ghost, 8);
    *litmus_ghost = *litmus_ghost * 4 + agent->index + 1;
}

static void load_own_x(struct mem *m, const struct litmus_shared *s, uint64_t *r)
{
    r[0] = mem_load64(m, s->x);
}

static void load_own_y(struct mem *m, const struct litmus_shared *s, uint64_t *r)
{
    r[0] = mem_load64(m, s->y);
}

static void test_commute_finds_lies(void)
{
    struct litmus litmus = {.code = {load_own_x, load_own_y},
                            .agents = 2,
                            .check_commute = true,
                            .ended = remember_order};
    litmus_run(&litmus, &o);
    CU_ASSERT_EQUAL_FATAL(o.report.result, SIM_VIOLATION);
    CU_ASSERT_STRING_EQUAL(o.report.violation.property, "steps-commute");
    litmus.ended = remember_order_and_say_so;
    litmus_run(&litmus, &o);
    CU_ASSERT_EQUAL(o.report.result, SIM_OK);
    litmus.ended = NULL;
    litmus_run(&litmus, &o);
    CU_ASSERT_EQUAL(o.report.result, SIM_OK);
    CU_ASSERT(o.report.commuted > 0);
}

#ifdef SIM_REHASH
/* A write that is not declared at all is named by builds that rehash everything. */
static void write_in_secret(struct sim_agent *agent)
{
    *litmus_ghost += agent->index + 1;
}

static void test_undeclared_write(void)
{
    litmus_run(&(struct litmus){.code = {load_own_x}, .agents = 1, .ended = write_in_secret}, &o);
    CU_ASSERT_EQUAL_FATAL(o.report.result, SIM_VIOLATION);
    CU_ASSERT_STRING_EQUAL(o.report.violation.property, "declared-writes");
}
#endif

int main(void)
{
    static const struct test tests[] = {
        {"store buffering", test_store_buffering},
        {"atomics drain the store buffer", test_atomic_drains},
        {"message passing", test_message_passing},
        {"coherence of one place", test_coherence},
        {"forwarded loads", test_forwarding},
        {"partly covered loads", test_partial_forwarding},
        {"a full store buffer", test_full_buffer},
        {"atomics", test_atomics},
        {"torn reads", test_torn_read},
        {"torn writes", test_torn_write},
        {"a CPU's writes are stores", test_write_is_stores},
        {"unaligned octets", test_unaligned},
        {"bounds of memory and polls", test_bounds},
        {"impure polls", test_pure_polls},
        {"commuting steps", test_commute_finds_lies},
#ifdef SIM_REHASH
        {"undeclared writes", test_undeclared_write},
#endif
    };
    return run_tests("cpu", tests, sizeof tests / sizeof *tests);
}
