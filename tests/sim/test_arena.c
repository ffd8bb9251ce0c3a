/* SPDX-License-Identifier: BSD-3-Clause */
/* sim/arena.h: what is touched can be taken back, and the hash always tells what memory holds. */
#include "sim/arena.h"

#include <errno.h>
#include <stdlib.h>

#include "tests/run.h"

#define ARENA_OCTETS (UINT32_C(1) << 20)
#define SEGMENTS 10u
#define SPACE 4096u /* more than all segments take */
#define MARKS 64u   /* nested ones in the random test */

/* The last one holds 40 octets of state, and 24 that follow from it. */
static const uint32_t sizes[SEGMENTS] = {1, 7, 8, 63, 64, 65, 128, 200, 1000, 64};
#define DERIVED 9u
#define DERIVED_HASHED 40u

struct fixture {
    struct sim_arena arena;
    char *at[SEGMENTS];
};

static void set_up(struct fixture *f)
{
    CU_ASSERT_EQUAL_FATAL(sim_arena_open(&f->arena, ARENA_OCTETS), 0);
    for (uint32_t i = 0; i < SEGMENTS; i++) {
        f->at[i] = sim_segment_new(&f->arena, "segment", sizes[i], SIM_STATE);
        CU_ASSERT_PTR_NOT_NULL_FATAL(f->at[i]);
    }
    f->arena.segments[DERIVED].hashed = DERIVED_HASHED;
    sim_arena_seal(&f->arena);
}

static void tear_down(struct fixture *f)
{
    sim_arena_close(&f->arena);
}

static uint64_t chance = 0x9e3779b97f4a7c15u;

static uint32_t random_below(uint32_t below)
{
    chance ^= chance << 13;
    chance ^= chance >> 7;
    chance ^= chance << 17;
    return (uint32_t)(chance >> 32) % below;
}

/* A step that writes one octet. */
static void write_octet(struct fixture *f, uint32_t segment, uint32_t offset, char octet)
{
    sim_arena_begin(&f->arena);
    sim_touch(&f->arena, sim_segment_of(&f->arena, f->at[segment]));
    f->at[segment][offset] = octet;
    sim_arena_commit(&f->arena);
}

/* Hashing everything anew must find nothing new. */
static bool hash_is_fresh(struct sim_arena *arena)
{
    uint64_t hash = arena->hash;
    bool checked = sim_arena_check(arena) == NULL;
    sim_arena_seal(arena);
    return checked && hash == arena->hash;
}

/* ---- the mapping and its segments -------------------------------------------------------- */

static void the_address_is_fixed(void)
{
    struct fixture f;
    set_up(&f);
    CU_ASSERT_EQUAL((uintptr_t)f.arena.base, SIM_ARENA_BASE);
    CU_ASSERT_EQUAL((uintptr_t)f.at[0], SIM_ARENA_BASE);
    tear_down(&f);
}

static void a_second_arena_is_refused(void)
{
    struct fixture f;
    set_up(&f);
    f.at[0][0] = 7;
    struct sim_arena second;
    CU_ASSERT_EQUAL(sim_arena_open(&second, ARENA_OCTETS), -EEXIST);
    CU_ASSERT_PTR_NULL(second.base);
    sim_arena_close(&second); /* nothing is left to close, and the first is not harmed */
    CU_ASSERT_EQUAL(f.at[0][0], 7);
    tear_down(&f);
    CU_ASSERT_EQUAL(sim_arena_open(&second, ARENA_OCTETS), 0);
    sim_arena_close(&second);
}

static void no_mapping_is_so_large(void)
{
    struct sim_arena arena;
    CU_ASSERT_EQUAL(sim_arena_open(&arena, SIZE_MAX / 2), -ENOMEM);
    CU_ASSERT_PTR_NULL(arena.base);
    sim_arena_close(&arena);
}

static void segments_are_aligned_and_zero(void)
{
    struct fixture f;
    set_up(&f);
    for (uint32_t i = 0; i < SEGMENTS; i++) {
        CU_ASSERT_EQUAL((uintptr_t)f.at[i] % SIM_LINE, 0);
        uint32_t sum = 0;
        for (uint32_t j = 0; j < sizes[i]; j++)
            sum += (unsigned char)f.at[i][j];
        CU_ASSERT_EQUAL(sum, 0);
        CU_ASSERT_TRUE(i == 0 || f.at[i] >= f.at[i - 1] + sizes[i - 1]);
    }
    tear_down(&f);
}

/* Memory larger than a segment is made of several: there must be no gap between them. */
static void whole_lines_follow_each_other(void)
{
    struct sim_arena arena;
    CU_ASSERT_EQUAL_FATAL(sim_arena_open(&arena, ARENA_OCTETS), 0);
    char *end = arena.base;
    for (uint32_t lines = 1; lines <= 16; lines++) {
        char *at = sim_segment_new(&arena, "lines", lines * SIM_LINE, SIM_STATE);
        CU_ASSERT_PTR_EQUAL(at, end);
        end = at + lines * SIM_LINE;
    }
    sim_arena_close(&arena);
}

static void find_knows_what_is_inside(void)
{
    struct fixture f;
    set_up(&f);
    uint32_t wrong = 0;
    for (uint32_t i = 0; i < SEGMENTS; i++) {
        uint32_t space = (sizes[i] + SIM_LINE - 1) / SIM_LINE * SIM_LINE;
        for (uint32_t j = 0; j < space; j++) {
            struct sim_segment *inside = j < sizes[i] ? &f.arena.segments[i] : NULL;
            wrong += sim_segment_find(&f.arena, f.at[i] + j) != inside;
        }
    }
    CU_ASSERT_EQUAL(wrong, 0);
    tear_down(&f);
}

static void find_knows_what_is_outside(void)
{
    struct fixture f;
    set_up(&f);
    CU_ASSERT_PTR_NULL(sim_segment_find(&f.arena, NULL));
    CU_ASSERT_PTR_NULL(sim_segment_find(&f.arena, &f));
    CU_ASSERT_PTR_NULL(sim_segment_find(&f.arena, (void *)(uintptr_t)(SIM_ARENA_BASE - 1)));
    CU_ASSERT_PTR_NULL(sim_segment_find(&f.arena, f.arena.base + f.arena.used));
    CU_ASSERT_PTR_NULL(sim_segment_find(&f.arena, f.arena.base + ARENA_OCTETS));
    CU_ASSERT_PTR_NULL(sim_segment_find(&f.arena, (void *)UINTPTR_MAX));
    tear_down(&f);
}

/* Agents keep a pointer to their segment while others are added. */
static void a_segment_stays_where_it_is(void)
{
    struct sim_arena arena;
    CU_ASSERT_EQUAL_FATAL(sim_arena_open(&arena, ARENA_OCTETS), 0);
    char *at = sim_segment_new(&arena, "first", 8, SIM_STATE);
    struct sim_segment *first = sim_segment_of(&arena, at);
    for (uint32_t i = 0; i < 5000; i++)
        CU_ASSERT_PTR_NOT_NULL_FATAL(sim_segment_new(&arena, "more", 8, SIM_STATE));
    CU_ASSERT_PTR_EQUAL(sim_segment_of(&arena, at), first);
    CU_ASSERT_PTR_EQUAL(arena.segments, first);
    sim_arena_close(&arena);
}

static void a_full_arena_gives_no_segment(void)
{
    struct sim_arena arena;
    CU_ASSERT_EQUAL_FATAL(sim_arena_open(&arena, 4096), 0);
    CU_ASSERT_PTR_NULL(sim_segment_new(&arena, "none", 0, SIM_STATE));
    CU_ASSERT_PTR_NULL(sim_segment_new(&arena, "large", 4097, SIM_STATE));
    CU_ASSERT_PTR_NULL(sim_segment_new(&arena, "huge", SIZE_MAX, SIM_STATE));
    CU_ASSERT_PTR_NULL(sim_segment_new(&arena, "huge", SIZE_MAX - SIM_LINE, SIM_STATE));
    CU_ASSERT_PTR_NOT_NULL(sim_segment_new(&arena, "most", 4096 - SIM_LINE, SIM_STATE));
    CU_ASSERT_PTR_NULL(sim_segment_new(&arena, "large", SIM_LINE + 1, SIM_STATE));
    CU_ASSERT_PTR_NOT_NULL(sim_segment_new(&arena, "rest", SIM_LINE, SIM_STATE));
    CU_ASSERT_PTR_NULL(sim_segment_new(&arena, "none left", 1, SIM_STATE));
    CU_ASSERT_EQUAL(arena.segments_count, 2);
    sim_arena_close(&arena);
}

static void segments_are_at_most_65535(void)
{
    struct sim_arena arena;
    CU_ASSERT_EQUAL_FATAL(sim_arena_open(&arena, (size_t)SIM_LINE << 17), 0);
    uint32_t count = 0;
    while (sim_segment_new(&arena, "segment", 1, SIM_STATE))
        count++;
    CU_ASSERT_EQUAL(count, UINT16_MAX);
    char *last = arena.base + (size_t)SIM_LINE * (UINT16_MAX - 1);
    CU_ASSERT_PTR_EQUAL(sim_segment_find(&arena, last), &arena.segments[UINT16_MAX - 1]);
    sim_arena_close(&arena);
}

/* ---- the hash ---------------------------------------------------------------------------- */

static void every_octet_of_state_counts(void)
{
    struct fixture f;
    set_up(&f);
    uint64_t initial = f.arena.hash;
    for (uint32_t i = 0; i < SEGMENTS; i++)
        for (uint32_t j = 0; j < f.arena.segments[i].hashed; j += j < 70 ? 1 : 97) {
            size_t mark = sim_arena_mark(&f.arena);
            write_octet(&f, i, j, 1);
            CU_ASSERT_NOT_EQUAL(f.arena.hash, initial);
            sim_arena_undo(&f.arena, mark);
            CU_ASSERT_EQUAL(f.arena.hash, initial);
        }
    tear_down(&f);
}

static void equal_octets_in_two_segments_differ(void)
{
    struct sim_arena arena;
    CU_ASSERT_EQUAL_FATAL(sim_arena_open(&arena, ARENA_OCTETS), 0);
    char *a = sim_segment_new(&arena, "a", 16, SIM_STATE);
    char *b = sim_segment_new(&arena, "b", 16, SIM_STATE);
    a[3] = 1;
    sim_arena_seal(&arena);
    uint64_t in_a = arena.hash;
    a[3] = 0;
    b[3] = 1;
    sim_arena_seal(&arena);
    CU_ASSERT_NOT_EQUAL(arena.hash, in_a);
    sim_arena_close(&arena);
}

static void what_follows_from_state_is_undone_but_not_hashed(void)
{
    struct fixture f;
    set_up(&f);
    uint64_t initial = f.arena.hash;
    write_octet(&f, DERIVED, DERIVED_HASHED, 5);
    write_octet(&f, DERIVED, sizes[DERIVED] - 1, 6);
    CU_ASSERT_EQUAL(f.arena.hash, initial);
    CU_ASSERT_TRUE(hash_is_fresh(&f.arena));
    sim_arena_undo(&f.arena, 0);
    CU_ASSERT_EQUAL(f.at[DERIVED][DERIVED_HASHED], 0);
    CU_ASSERT_EQUAL(f.at[DERIVED][sizes[DERIVED] - 1], 0);
    CU_ASSERT_EQUAL(f.arena.hash, initial);
    tear_down(&f);
}

static void constants_are_no_state(void)
{
    struct sim_arena arena;
    CU_ASSERT_EQUAL_FATAL(sim_arena_open(&arena, ARENA_OCTETS), 0);
    char *constant = sim_segment_new(&arena, "constant", 16, SIM_CONST);
    sim_segment_new(&arena, "state", 16, SIM_STATE);
    sim_arena_seal(&arena);
    uint64_t initial = arena.hash;
    constant[0] = 1;
    sim_arena_seal(&arena);
    CU_ASSERT_EQUAL(arena.hash, initial);
    sim_arena_close(&arena);
}

static void a_write_without_touch_is_named(void)
{
    struct sim_arena arena;
    CU_ASSERT_EQUAL_FATAL(sim_arena_open(&arena, ARENA_OCTETS), 0);
    char *state = sim_segment_new(&arena, "state", 100, SIM_STATE);
    char *constant = sim_segment_new(&arena, "constant", 100, SIM_CONST);
    sim_arena_seal(&arena);
    CU_ASSERT_PTR_NULL(sim_arena_check(&arena));
    constant[99] = 1;
    const char *name = sim_arena_check(&arena);
    CU_ASSERT_PTR_NOT_NULL_FATAL(name);
    CU_ASSERT_STRING_EQUAL(name, "constant");
    state[99] = 1;
    name = sim_arena_check(&arena);
    CU_ASSERT_PTR_NOT_NULL_FATAL(name);
    CU_ASSERT_STRING_EQUAL(name, "state");
    state[99] = constant[99] = 0;
    CU_ASSERT_PTR_NULL(sim_arena_check(&arena));
    sim_arena_close(&arena);
}

/* Two segments that have changed places: as different as any other two states. */
static void mirrored_states_differ(void)
{
    struct sim_arena arena;
    CU_ASSERT_EQUAL_FATAL(sim_arena_open(&arena, 1 << 16), 0);
    uint64_t *words[8];
    for (int i = 0; i < 8; i++)
        words[i] = sim_segment_new(&arena, "word", 8, SIM_STATE);
    uint64_t nearest = UINT64_MAX;
    for (uint64_t value = 1; value <= 20000; value++)
        for (int i = 0; i + 1 < 8; i++) {
            uint64_t other = value * 0x9e3779b97f4a7c15u;
            *words[i] = value;
            *words[i + 1] = other;
            sim_arena_seal(&arena);
            uint64_t hash = arena.hash;
            *words[i] = other;
            *words[i + 1] = value;
            sim_arena_seal(&arena);
            uint64_t distance = hash > arena.hash ? hash - arena.hash : arena.hash - hash;
            nearest = distance < nearest ? distance : nearest;
        }
    /* Among 140,000 pairs chance brings two no nearer than 2^64 / 280,000, give or take. */
    CU_ASSERT_TRUE(nearest > UINT64_C(1) << 38);
    sim_arena_close(&arena);
}

/* ---- steps ------------------------------------------------------------------------------- */

static void what_is_saved_comes_back(void)
{
    struct fixture f;
    set_up(&f);
    uint64_t hash = f.arena.hash;
    void *saved = sim_arena_save(&f.arena);
    CU_ASSERT_PTR_NOT_NULL_FATAL(saved);
    size_t mark = sim_arena_mark(&f.arena);
    write_octet(&f, 2, 0, 1);
    sim_arena_commit(&f.arena);
    CU_ASSERT_NOT_EQUAL(f.arena.hash, hash);
    sim_arena_forget(&f.arena, mark);
    uint64_t changed = f.arena.hash;
    sim_arena_undo(&f.arena, mark); /* nothing is left to undo */
    CU_ASSERT_EQUAL(f.arena.hash, changed);
    sim_arena_restore(&f.arena, saved);
    CU_ASSERT_EQUAL(f.arena.hash, hash);
    CU_ASSERT_PTR_NULL(sim_arena_check(&f.arena));
    free(saved);
    tear_down(&f);
}

static void touching_again_saves_nothing(void)
{
    struct fixture f;
    set_up(&f);
    write_octet(&f, 4, 0, 1);
    size_t mark = sim_arena_mark(&f.arena);
    sim_arena_begin(&f.arena);
    sim_touch(&f.arena, &f.arena.segments[4]);
    size_t once = sim_arena_mark(&f.arena);
    f.at[4][0] = 2;
    sim_touch(&f.arena, &f.arena.segments[4]);
    f.at[4][0] = 3;
    CU_ASSERT_EQUAL(sim_arena_mark(&f.arena), once);
    sim_arena_commit(&f.arena);
    sim_arena_undo(&f.arena, mark);
    CU_ASSERT_EQUAL(f.at[4][0], 1);
    tear_down(&f);
}

static void a_step_is_undone_before_its_commit(void)
{
    struct fixture f;
    set_up(&f);
    uint64_t initial = f.arena.hash;
    sim_arena_begin(&f.arena);
    sim_touch(&f.arena, &f.arena.segments[5]);
    memset(f.at[5], 9, sizes[5]);
    sim_arena_undo(&f.arena, 0);
    CU_ASSERT_EQUAL(f.at[5][64], 0);
    CU_ASSERT_EQUAL(f.arena.hash, initial);
    CU_ASSERT_TRUE(hash_is_fresh(&f.arena));
    tear_down(&f);
}

static void marks_nest(void)
{
    struct fixture f;
    set_up(&f);
    size_t marks[4];
    uint64_t hashes[4];
    for (uint32_t i = 0; i < 4; i++) {
        marks[i] = sim_arena_mark(&f.arena);
        hashes[i] = f.arena.hash;
        write_octet(&f, 6, i, 1);
        write_octet(&f, 7, 0, (char)(i + 1));
    }
    sim_arena_undo(&f.arena, marks[2]);
    CU_ASSERT_EQUAL(f.arena.hash, hashes[2]);
    CU_ASSERT_EQUAL(f.at[6][2], 0);
    CU_ASSERT_EQUAL(f.at[7][0], 2);
    write_octet(&f, 7, 0, 77); /* another branch from there */
    sim_arena_undo(&f.arena, marks[2]);
    CU_ASSERT_EQUAL(f.arena.hash, hashes[2]);
    sim_arena_undo(&f.arena, marks[0]);
    CU_ASSERT_EQUAL(f.arena.hash, hashes[0]);
    CU_ASSERT_EQUAL(f.at[7][0], 0);
    CU_ASSERT_EQUAL(sim_arena_mark(&f.arena), 0);
    tear_down(&f);
}

/* The log must grow without losing what it holds. */
static void the_undo_log_grows(void)
{
    struct fixture f;
    set_up(&f);
    uint64_t initial = f.arena.hash;
    uint32_t steps = 0;
    for (; f.arena.undo_size < UINT32_C(8) << 20; steps++)
        write_octet(&f, 8, steps % sizes[8], (char)(steps / sizes[8] + 1));
    CU_ASSERT_FALSE(f.arena.failed);
    CU_ASSERT_NOT_EQUAL(f.arena.hash, initial);
    sim_arena_undo(&f.arena, 0);
    CU_ASSERT_EQUAL(f.arena.hash, initial);
    CU_ASSERT_TRUE(hash_is_fresh(&f.arena));
    CU_ASSERT_TRUE(f.at[8][0] == 0 && memcmp(f.at[8], f.at[8] + 1, sizes[8] - 1) == 0);
    tear_down(&f);
}

/* ---- random steps and undos, against a shadow -------------------------------------------- */

/* What a mark must bring back. */
struct shadow {
    size_t mark;
    uint64_t hash;
    char octets[SPACE];
};

static void random_step(struct fixture *f)
{
    sim_arena_begin(&f->arena);
    for (uint32_t writes = 1 + random_below(6); writes > 0; writes--) {
        uint32_t i = random_below(SEGMENTS);
        sim_touch(&f->arena, sim_segment_of(&f->arena, f->at[i]));
        for (uint32_t octets = random_below(4); octets > 0; octets--)
            f->at[i][random_below(sizes[i])] = (char)random_below(3);
    }
    sim_arena_commit(&f->arena);
}

static bool is_as(const struct fixture *f, const struct shadow *shadow)
{
    return f->arena.hash == shadow->hash &&
           memcmp(f->arena.base, shadow->octets, f->arena.used) == 0;
}

static void random_sequences_follow_a_shadow(void)
{
    struct fixture f;
    set_up(&f);
    CU_ASSERT_FATAL(f.arena.used <= SPACE);
    struct shadow *shadows = calloc(MARKS, sizeof *shadows);
    CU_ASSERT_PTR_NOT_NULL_FATAL(shadows);
    uint32_t depth = 0, stale = 0, unlike = 0, undos = 0;
    for (uint32_t i = 0; i < 20000; i++) {
        if (depth < MARKS && (depth == 0 || random_below(5) < 3)) {
            struct shadow *shadow = &shadows[depth++];
            shadow->mark = sim_arena_mark(&f.arena);
            shadow->hash = f.arena.hash;
            memcpy(shadow->octets, f.arena.base, f.arena.used);
            for (uint32_t steps = random_below(3); steps > 0; steps--)
                random_step(&f);
        } else {
            depth = depth - 1 - random_below(depth < 3 ? depth : 3);
            sim_arena_undo(&f.arena, shadows[depth].mark);
            unlike += !is_as(&f, &shadows[depth]);
            undos++;
        }
        stale += !hash_is_fresh(&f.arena);
    }
    CU_ASSERT_EQUAL(stale, 0);
    CU_ASSERT_EQUAL(unlike, 0);
    CU_ASSERT_TRUE(undos > 5000);
    free(shadows);
    tear_down(&f);
}

int main(void)
{
    static const struct test tests[] = {
        {"the address is fixed", the_address_is_fixed},
        {"a second arena is refused", a_second_arena_is_refused},
        {"no mapping is so large", no_mapping_is_so_large},
        {"segments are aligned and zero", segments_are_aligned_and_zero},
        {"whole lines follow each other", whole_lines_follow_each_other},
        {"find knows what is inside", find_knows_what_is_inside},
        {"find knows what is outside", find_knows_what_is_outside},
        {"a segment stays where it is", a_segment_stays_where_it_is},
        {"a full arena gives no segment", a_full_arena_gives_no_segment},
        {"segments are at most 65535", segments_are_at_most_65535},
        {"every octet of state counts", every_octet_of_state_counts},
        {"equal octets in two segments differ", equal_octets_in_two_segments_differ},
        {"what follows from state is undone but not hashed",
         what_follows_from_state_is_undone_but_not_hashed},
        {"constants are no state", constants_are_no_state},
        {"a write without touch is named", a_write_without_touch_is_named},
        {"mirrored states differ", mirrored_states_differ},
        {"what is saved comes back", what_is_saved_comes_back},
        {"touching again saves nothing", touching_again_saves_nothing},
        {"a step is undone before its commit", a_step_is_undone_before_its_commit},
        {"marks nest", marks_nest},
        {"the undo log grows", the_undo_log_grows},
        {"random sequences follow a shadow", random_sequences_follow_a_shadow},
    };
    return run_tests("sim/arena", tests, sizeof tests / sizeof tests[0]);
}
