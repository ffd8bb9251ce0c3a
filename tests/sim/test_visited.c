/* SPDX-License-Identifier: BSD-3-Clause */
/* sim/visited.h, both forms of the set, filled with states of a small arena. */
#include "sim/visited.h"

#include <errno.h>

#include "tests/run.h"

#define STATES 200000u
#define NO_BOUND (SIZE_MAX / 2)

/* Every state is three numbers; the last octets of `c` follow from the others. */
struct fixture {
    struct sim_arena arena;
    uint32_t *a, *b, *c;
    size_t initial;
};

static void set_up(struct fixture *f)
{
    CU_ASSERT_EQUAL_FATAL(sim_arena_open(&f->arena, 4096), 0);
    f->a = sim_segment_new(&f->arena, "a", 200, SIM_STATE);
    sim_segment_new(&f->arena, "constant", 8, SIM_CONST);
    f->b = sim_segment_new(&f->arena, "b", 12, SIM_STATE);
    f->c = sim_segment_new(&f->arena, "c", 64, SIM_STATE);
    sim_segment_of(&f->arena, f->c)->hashed = 60;
    sim_arena_seal(&f->arena);
    f->initial = sim_arena_mark(&f->arena);
}

static void tear_down(struct fixture *f)
{
    sim_arena_close(&f->arena);
}

static void write_number(struct fixture *f, uint32_t *at, uint32_t number)
{
    sim_touch(&f->arena, sim_segment_of(&f->arena, at));
    *at = number;
}

/* Goes to state `number`; different numbers are different states. */
static void go_to(struct fixture *f, uint32_t number)
{
    sim_arena_undo(&f->arena, f->initial);
    sim_arena_begin(&f->arena);
    write_number(f, f->a + 49, number % 61);
    write_number(f, f->b, number / 61 % 53);
    write_number(f, f->c + 14, number / 61 / 53);
    sim_arena_commit(&f->arena);
}

/* Adds states [0, count): how often the answer was `expected`. */
static uint32_t add_all(struct fixture *f, struct sim_visited *set, uint32_t count, int expected)
{
    uint32_t as_expected = 0;
    for (uint32_t i = 0; i < count; i++) {
        go_to(f, i);
        as_expected += sim_visited_add(set, &f->arena) == expected;
    }
    return as_expected;
}

static void each_state_is_new_once(bool exact)
{
    struct fixture f;
    set_up(&f);
    struct sim_visited *set = sim_visited_new(exact, &f.arena, NO_BOUND);
    CU_ASSERT_PTR_NOT_NULL_FATAL(set);
    CU_ASSERT_EQUAL(sim_visited_count(set), 0);
    CU_ASSERT_EQUAL(add_all(&f, set, STATES, 1), STATES);
    CU_ASSERT_EQUAL(sim_visited_count(set), STATES);
    size_t octets = sim_visited_octets(set);
    CU_ASSERT_EQUAL(add_all(&f, set, STATES, 0), STATES);
    CU_ASSERT_EQUAL(sim_visited_count(set), STATES);
    CU_ASSERT_EQUAL(sim_visited_octets(set), octets);
    sim_visited_free(set);
    tear_down(&f);
}

static void each_fingerprint_is_new_once(void)
{
    each_state_is_new_once(false);
}

static void each_content_is_new_once(void)
{
    each_state_is_new_once(true);
}

/* A state that was added stays in the set while the set grows around it. */
static void growing_loses_nothing(bool exact)
{
    struct fixture f;
    set_up(&f);
    struct sim_visited *set = sim_visited_new(exact, &f.arena, NO_BOUND);
    CU_ASSERT_PTR_NOT_NULL_FATAL(set);
    size_t octets = sim_visited_octets(set);
    uint32_t growths = 0, added = 0, lost = 0;
    for (uint32_t i = 0; i < STATES; i++) {
        go_to(&f, i);
        added += sim_visited_add(set, &f.arena) == 1;
        if (sim_visited_octets(set) == octets)
            continue;
        CU_ASSERT_TRUE(sim_visited_octets(set) > octets);
        octets = sim_visited_octets(set);
        growths++;
        for (uint32_t known = 0; known <= i; known += 1 + i / 64) {
            go_to(&f, known);
            lost += sim_visited_add(set, &f.arena) != 0;
        }
    }
    CU_ASSERT_EQUAL(added, STATES);
    CU_ASSERT_TRUE(growths >= 3);
    CU_ASSERT_EQUAL(lost, 0);
    CU_ASSERT_EQUAL(sim_visited_count(set), STATES);
    sim_visited_free(set);
    tear_down(&f);
}

static void growing_loses_no_fingerprint(void)
{
    growing_loses_nothing(false);
}

static void growing_loses_no_content(void)
{
    growing_loses_nothing(true);
}

static void a_fingerprint_takes_8_octets(void)
{
    struct fixture f;
    set_up(&f);
    struct sim_visited *set = sim_visited_new(false, &f.arena, NO_BOUND);
    CU_ASSERT_PTR_NOT_NULL_FATAL(set);
    add_all(&f, set, STATES, 1);
    /* In a table that is at least 5/16 full once it has doubled. */
    CU_ASSERT_TRUE(sim_visited_octets(set) <= STATES * 8u * 16 / 5);
    CU_ASSERT_TRUE(sim_visited_octets(set) >= STATES * 8u);
    sim_visited_free(set);
    tear_down(&f);
}

/* Fills the set to its bound; everything it holds must still be right. */
static void fill_up(bool exact, size_t max_octets)
{
    struct fixture f;
    set_up(&f);
    struct sim_visited *set = sim_visited_new(exact, &f.arena, max_octets);
    CU_ASSERT_PTR_NOT_NULL_FATAL(set);
    uint32_t added = 0, above = 0;
    int answer = 1;
    while (answer == 1 && added < STATES) {
        go_to(&f, added);
        answer = sim_visited_add(set, &f.arena);
        added += answer == 1;
        above += sim_visited_octets(set) > max_octets;
    }
    CU_ASSERT_EQUAL(answer, -ENOSPC);
    CU_ASSERT_EQUAL(sim_visited_count(set), added);
    uint32_t wrong = 0;
    for (uint32_t i = 0; i <= added; i += 1 + added / 1000) {
        go_to(&f, i);
        wrong += sim_visited_add(set, &f.arena) > 0;
        above += sim_visited_octets(set) > max_octets;
    }
    CU_ASSERT_EQUAL(wrong, 0);
    CU_ASSERT_EQUAL(above, 0);
    CU_ASSERT_EQUAL(sim_visited_count(set), added);
    sim_visited_free(set);
    tear_down(&f);
}

static void the_memory_bound_holds(void)
{
    static const size_t bounds[] = {0,       1,       1000,    4096,    65536,
                                    524287,  524288,  1000000, 1048576, 1500000,
                                    1572863, 1572864, 1572865, 2000000, UINT32_C(3) << 20};
    for (size_t i = 0; i < sizeof bounds / sizeof bounds[0]; i++) {
        fill_up(false, bounds[i]);
        fill_up(true, bounds[i]);
    }
}

/* As if all contents of a segment, and all states, had one hash. */
static void force_hashes(struct fixture *f, uint64_t hash)
{
    for (uint32_t i = 0; i < f->arena.segments_count; i++)
        f->arena.segments[i].hash = hash;
    f->arena.hash = hash;
}

static void exact_tells_equal_hashes_apart(void)
{
    static const uint64_t hashes[] = {0, 1, UINT64_C(0x0123456789abcdef), UINT64_MAX};
    for (size_t i = 0; i < sizeof hashes / sizeof hashes[0]; i++) {
        struct fixture f;
        set_up(&f);
        struct sim_visited *exact = sim_visited_new(true, &f.arena, NO_BOUND);
        struct sim_visited *prints = sim_visited_new(false, &f.arena, NO_BOUND);
        CU_ASSERT_PTR_NOT_NULL_FATAL(exact);
        CU_ASSERT_PTR_NOT_NULL_FATAL(prints);
        for (uint32_t pass = 0; pass < 2; pass++)
            for (uint32_t number = 0; number < 1000; number++) {
                go_to(&f, number);
                force_hashes(&f, hashes[i]);
                CU_ASSERT_EQUAL(sim_visited_add(exact, &f.arena), pass == 0);
                CU_ASSERT_EQUAL(sim_visited_add(prints, &f.arena), pass == 0 && number == 0);
            }
        CU_ASSERT_EQUAL(sim_visited_count(exact), 1000);
        CU_ASSERT_EQUAL(sim_visited_count(prints), 1);
        sim_visited_free(exact);
        sim_visited_free(prints);
        tear_down(&f);
    }
}

/* Two segments that exchange their contents make another state. */
static void exact_knows_segments_apart(void)
{
    struct sim_arena arena;
    CU_ASSERT_EQUAL_FATAL(sim_arena_open(&arena, 4096), 0);
    char *a = sim_segment_new(&arena, "a", 8, SIM_STATE);
    char *b = sim_segment_new(&arena, "b", 8, SIM_STATE);
    a[0] = 1;
    sim_arena_seal(&arena);
    struct sim_visited *set = sim_visited_new(true, &arena, NO_BOUND);
    CU_ASSERT_PTR_NOT_NULL_FATAL(set);
    CU_ASSERT_EQUAL(sim_visited_add(set, &arena), 1);
    a[0] = 0;
    b[0] = 1;
    sim_arena_seal(&arena);
    CU_ASSERT_EQUAL(sim_visited_add(set, &arena), 1);
    CU_ASSERT_EQUAL(sim_visited_add(set, &arena), 0);
    sim_visited_free(set);
    sim_arena_close(&arena);
}

static void what_follows_from_state_makes_no_state(void)
{
    for (int exact = 0; exact <= 1; exact++) {
        struct fixture f;
        set_up(&f);
        struct sim_visited *set = sim_visited_new(exact, &f.arena, NO_BOUND);
        CU_ASSERT_PTR_NOT_NULL_FATAL(set);
        CU_ASSERT_EQUAL(sim_visited_add(set, &f.arena), 1);
        sim_arena_begin(&f.arena);
        write_number(&f, f.c + 15, 1); /* behind the hashed octets */
        sim_arena_commit(&f.arena);
        CU_ASSERT_EQUAL(sim_visited_add(set, &f.arena), 0);
        sim_visited_free(set);
        tear_down(&f);
    }
}

static void no_set_can_be_freed(void)
{
    sim_visited_free(NULL);
}

int main(void)
{
    static const struct test tests[] = {
        {"each fingerprint is new once", each_fingerprint_is_new_once},
        {"each content is new once", each_content_is_new_once},
        {"growing loses no fingerprint", growing_loses_no_fingerprint},
        {"growing loses no content", growing_loses_no_content},
        {"a fingerprint takes 8 octets", a_fingerprint_takes_8_octets},
        {"the memory bound holds", the_memory_bound_holds},
        {"exact tells equal hashes apart", exact_tells_equal_hashes_apart},
        {"exact knows segments apart", exact_knows_segments_apart},
        {"what follows from state makes no state", what_follows_from_state_makes_no_state},
        {"no set can be freed", no_set_can_be_freed},
    };
    return run_tests("sim/visited", tests, sizeof tests / sizeof tests[0]);
}
