/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Every checker, shown what it must object to and what it must not: writes are made by hand, past
 * ref/, in a world that has taken no step.
 */
#include <string.h>

#include "sim/check.h"
#include "sim/ring_world.h"
#include "tests/run.h"

static const char scenario_text[] =
    "kind: ring\nslots: 4\nblocks: 3\nfirst_block: 100\nhandles: 2\nmemory: sc\n"
    "first_generation: 0xffff\n"
    "allocators: [{name: a1, allocations: 2}]\nfreers: [{name: f1}]\n";

#define ALLOCATOR 0u
#define FREER 1u

static struct sim_scenario *scenario;
static struct sim_world *w;
static struct sim_ring_world *ring;

static void set_up(const char *extra)
{
    char text[600], error[200] = "";
    snprintf(text, sizeof text, "%s%s", scenario_text, extra);
    scenario = sim_scenario_parse("test.yaml", text, strlen(text), error, sizeof error);
    CU_ASSERT_PTR_NOT_NULL_FATAL(scenario);
    struct sim_stepping stepping = {.private_steps = true};
    w = sim_world_new(scenario, &stepping, error, sizeof error);
    CU_ASSERT_PTR_NOT_NULL_FATAL(w);
    ring = sim_ring_of(w);
    sim_arena_begin(&w->arena);
}

static void tear_down(void)
{
    sim_world_free(w);
    sim_scenario_free(scenario);
}

/* What was objected to since the last call, or "". */
static const char *objection(void)
{
    static char property[64];
    snprintf(property, sizeof property, "%s", w->violation.property ? w->violation.property : "");
    w->violation.property = NULL;
    return property;
}

static void big_endian(unsigned char *out, uint64_t value, unsigned octets)
{
    for (unsigned i = octets; i-- > 0; value >>= 8)
        out[i] = (unsigned char)value;
}

static void write_field(uint32_t agent, char *at, uint64_t value, unsigned octets)
{
    unsigned char image[8];
    big_endian(image, value, octets);
    sim_write(w, agent, at, image, octets);
}

static char *slot(uint32_t number)
{
    return ring->rings[0].slots + 16u * number;
}

static char *entry(uint32_t number)
{
    return ring->table + 16u * number;
}

/* Changes memory behind the checkers' back. */
static void place(char *at, uint64_t value, unsigned octets)
{
    unsigned char image[8];
    big_endian(image, value, octets);
    memcpy(at, image, octets);
}

static void test_block_exists(void)
{
    set_up("");
    sim_event(w, ALLOCATOR, RING_HANDED_OUT, sim_ring_offset_of(ring, 2));
    CU_ASSERT_STRING_EQUAL(objection(), "");
    sim_event(w, ALLOCATOR, RING_HANDED_OUT, UINT64_MAX);
    CU_ASSERT_STRING_EQUAL(objection(), "block-exists");
    sim_event(w, ALLOCATOR, RING_HANDED_OUT, sim_ring_offset_of(ring, 2) + 1);
    CU_ASSERT_STRING_EQUAL(objection(), "block-exists");
    sim_event(w, ALLOCATOR, RING_HANDED_OUT, sim_ring_offset_of(ring, 3));
    CU_ASSERT_STRING_EQUAL(objection(), "block-exists");
    sim_event(w, ALLOCATOR, RING_HANDED_OUT, 99 * ring->block_size);
    CU_ASSERT_STRING_EQUAL(objection(), "block-exists");
    tear_down();
}

static void test_block_once(void)
{
    set_up("");
    const enum sim_ring_place elsewhere[] = {RING_HELD, RING_BOUND, RING_FREEING};
    for (int i = 0; i < 3; i++) {
        ring->ghost->blocks[1].place = (uint8_t)elsewhere[i];
        sim_event(w, ALLOCATOR, RING_HANDED_OUT, sim_ring_offset_of(ring, 1));
        CU_ASSERT_STRING_EQUAL(objection(), "block-once");
    }
    /* Slot 3 is the consumed one. A block that is not being freed must not appear there. */
    ring->ghost->blocks[1].place = RING_HELD;
    write_field(FREER, slot(3) + 8, sim_ring_offset_of(ring, 1), 8);
    CU_ASSERT_STRING_EQUAL(objection(), "block-once");
    place(slot(3) + 8, UINT64_MAX, 8);
    ring->ghost->blocks[1].place = RING_FREEING;
    place(entry(0), 0x00010005, 4); /* VALID, and names the block that is freed */
    place(entry(0) + 8, sim_ring_offset_of(ring, 1), 8);
    write_field(FREER, slot(3) + 8, sim_ring_offset_of(ring, 1), 8);
    CU_ASSERT_STRING_EQUAL(objection(), "block-once");
    place(slot(3) + 8, UINT64_MAX, 8);
    place(entry(0), 0x00000006, 4);
    ring->ghost->blocks[1].place = RING_FREEING;
    write_field(FREER, slot(3) + 8, sim_ring_offset_of(ring, 1), 8);
    CU_ASSERT_STRING_EQUAL(objection(), "");
    CU_ASSERT_EQUAL(ring->ghost->blocks[1].place, RING_IN_RING);
    tear_down();
}

static void test_slot_not_overwritten(void)
{
    set_up("");
    ring->ghost->blocks[2].place = RING_FREEING;
    write_field(FREER, slot(0) + 8, sim_ring_offset_of(ring, 2), 8);
    CU_ASSERT_STRING_EQUAL(objection(), "slot-not-overwritten");
    ring->ghost->blocks[2].place = RING_FREEING;
    place(slot(0) + 8, UINT64_MAX << 32, 8); /* consumed by half: still not consumed */
    write_field(FREER, slot(0) + 8, sim_ring_offset_of(ring, 2), 8);
    CU_ASSERT_STRING_EQUAL(objection(), "slot-not-overwritten");
    write_field(ALLOCATOR, slot(0) + 8, UINT64_MAX, 8); /* to consume is no overwriting */
    CU_ASSERT_STRING_EQUAL(objection(), "");
    ring->ghost->blocks[2].place = RING_FREEING;
    write_field(FREER, slot(0) + 8, sim_ring_offset_of(ring, 2), 8);
    CU_ASSERT_STRING_EQUAL(objection(), "");
    tear_down();
}

static void test_sequence_in_order(void)
{
    set_up("");
    write_field(FREER, slot(1), 5, 4);
    CU_ASSERT_STRING_EQUAL(objection(), "");
    write_field(FREER, slot(1), 13, 4);
    CU_ASSERT_STRING_EQUAL(objection(), "sequence-in-order");
    write_field(FREER, slot(2), 2, 4);
    CU_ASSERT_STRING_EQUAL(objection(), "sequence-in-order");
    write_field(FREER, slot(2), 6, 4); /* after 2 */
    CU_ASSERT_STRING_EQUAL(objection(), "");
    place(slot(2), 0xfffffffe, 4);
    write_field(FREER, slot(2), 2, 4); /* across the wrap */
    CU_ASSERT_STRING_EQUAL(objection(), "");
    tear_down();
}

static void write_counter(char *counter, uint64_t value)
{
    sim_write(w, FREER, counter, &value, 8);
}

static void test_counter_by_one(void)
{
    set_up("");
    write_counter(ring->rings[0].head, 0x0000000100000010);
    CU_ASSERT_STRING_EQUAL(objection(), "");
    write_counter(ring->rings[0].head, 0x0000000100000010); /* a ticket twice */
    CU_ASSERT_STRING_EQUAL(objection(), "counter-by-one");
    write_counter(ring->rings[0].head, 0x0000000200000010); /* the Slot Offset stays behind */
    CU_ASSERT_STRING_EQUAL(objection(), "counter-by-one");
    write_counter(ring->rings[0].tail, 0x0000000400000000); /* 3 + 1, and round */
    CU_ASSERT_STRING_EQUAL(objection(), "");
    write_counter(ring->rings[0].tail, 0x0000000600000020);
    CU_ASSERT_STRING_EQUAL(objection(), "counter-by-one");
    tear_down();
    set_up("counters: unmasked\n");
    write_counter(ring->rings[0].head, 0x0000000100000000);
    CU_ASSERT_STRING_EQUAL(objection(), "");
    write_counter(ring->rings[0].head, 0x0000000200000010);
    CU_ASSERT_STRING_EQUAL(objection(), "counter-by-one");
    tear_down();
}

static void test_free_accepted(void)
{
    set_up("");
    sim_event(w, FREER, RING_FREE_COMPLETED, 0);
    CU_ASSERT_STRING_EQUAL(objection(), "");
    sim_event(w, FREER, RING_FREE_REFUSED, 1);
    CU_ASSERT_STRING_EQUAL(objection(), "free-accepted");
    tear_down();
}

static void test_ring_whole(void)
{
    set_up("");
    sim_check_ring_whole.quiescent(w);
    CU_ASSERT_STRING_EQUAL(objection(), "");
    uint64_t second = sim_ring_offset_of(ring, 1);
    place(slot(0) + 8, second, 8); /* one block twice, another lost */
    sim_check_ring_whole.quiescent(w);
    CU_ASSERT_STRING_EQUAL(objection(), "ring-whole");
    place(slot(0) + 8, UINT64_MAX, 8); /* lost */
    sim_check_ring_whole.quiescent(w);
    CU_ASSERT_STRING_EQUAL(objection(), "ring-whole");
    place(slot(0) + 8, sim_ring_offset_of(ring, 0), 8);
    place(slot(0), 4, 4); /* for another ticket */
    sim_check_ring_whole.quiescent(w);
    CU_ASSERT_STRING_EQUAL(objection(), "ring-whole");
    place(slot(0), 0, 4);
    place(slot(3) + 8, second, 8); /* a block more than there is */
    sim_check_ring_whole.quiescent(w);
    CU_ASSERT_STRING_EQUAL(objection(), "ring-whole");
    place(slot(3) + 8, UINT64_MAX, 8);
    uint64_t tail = 0x0000000400000000;
    memcpy(ring->rings[0].tail, &tail, 8);
    sim_check_ring_whole.quiescent(w);
    CU_ASSERT_STRING_EQUAL(objection(), "ring-whole");
    tear_down();
}

/* Entry 0 is about to be bound to block 2. */
static void begin_bind(void)
{
    ring->entries[0] =
        (struct sim_ring_entry){.generation = 0xffff, .state = RING_BINDING, .block = 2};
    ring->ghost->blocks[2] = (struct sim_ring_block){.place = RING_HELD};
    place(entry(0), 0x0000ffff, 4);
    place(entry(0) + 4, sim_ring_length(ring, 2), 4);
    place(entry(0) + 8, sim_ring_offset_of(ring, 2), 8);
}

static void test_entry_published_whole(void)
{
    set_up("");
    begin_bind();
    write_field(ALLOCATOR, entry(0), 0x00030001, 4);
    CU_ASSERT_STRING_EQUAL(objection(), "");
    CU_ASSERT_EQUAL(ring->ghost->blocks[2].place, RING_BOUND);
    write_field(ALLOCATOR, entry(0) + 4, 7, 4); /* changed under VALID */
    CU_ASSERT_STRING_EQUAL(objection(), "entry-published-whole");
    begin_bind();
    place(entry(0) + 8, sim_ring_offset_of(ring, 1), 8); /* the block of an earlier bind */
    write_field(ALLOCATOR, entry(0), 0x00030001, 4);
    CU_ASSERT_STRING_EQUAL(objection(), "entry-published-whole");
    begin_bind();
    place(entry(0) + 4, 3, 4);
    write_field(ALLOCATOR, entry(0), 0x00030001, 4);
    CU_ASSERT_STRING_EQUAL(objection(), "entry-published-whole");
    begin_bind();
    ring->entries[0].state = RING_UNBOUND; /* nobody binds it */
    write_field(ALLOCATOR, entry(0), 0x00030001, 4);
    CU_ASSERT_STRING_EQUAL(objection(), "entry-published-whole");
    tear_down();
}

static void test_generation_steps(void)
{
    set_up("");
    begin_bind();
    write_field(ALLOCATOR, entry(0), 0x00030000, 4); /* zero */
    CU_ASSERT_STRING_EQUAL(objection(), "generation-steps");
    begin_bind();
    write_field(ALLOCATOR, entry(0), 0x0003ffff, 4); /* VALID with the old Generation */
    CU_ASSERT_STRING_EQUAL(objection(), "generation-steps");
    begin_bind();
    write_field(ALLOCATOR, entry(0), 0x00030001, 4);
    CU_ASSERT_STRING_EQUAL(objection(), "");
    write_field(FREER, entry(0), 0x00000001, 4); /* cleared with the old Generation */
    CU_ASSERT_STRING_EQUAL(objection(), "generation-steps");
    place(entry(0), 0x00010001, 4);
    write_field(FREER, entry(0), 0x00030001, 4); /* to seal is no bind */
    CU_ASSERT_STRING_EQUAL(objection(), "");
    write_field(FREER, entry(0), 0x00000002, 4);
    CU_ASSERT_STRING_EQUAL(objection(), "");
    tear_down();
}

static void test_entry_cleared_first(void)
{
    set_up("");
    ring->entries[1] = (struct sim_ring_entry){.state = RING_ENTRY_FREEING, .block = 2};
    ring->ghost->blocks[2] = (struct sim_ring_block){.place = RING_FREEING, .agent = FREER};
    place(entry(1), 0x00030001, 4);
    write_counter(ring->rings[0].tail, 0x0000000400000000);
    CU_ASSERT_STRING_EQUAL(objection(), "entry-cleared-first");
    place(entry(1), 0x00000002, 4);
    write_counter(ring->rings[0].tail, 0x0000000500000010);
    CU_ASSERT_STRING_EQUAL(objection(), "");
    tear_down();
}

int main(void)
{
    static const struct test tests[] = {
        {"block-exists", test_block_exists},
        {"block-once", test_block_once},
        {"slot-not-overwritten", test_slot_not_overwritten},
        {"sequence-in-order", test_sequence_in_order},
        {"counter-by-one", test_counter_by_one},
        {"free-accepted", test_free_accepted},
        {"ring-whole", test_ring_whole},
        {"entry-published-whole", test_entry_published_whole},
        {"generation-steps", test_generation_steps},
        {"entry-cleared-first", test_entry_cleared_first},
    };
    return run_tests("checkers", tests, sizeof tests / sizeof *tests);
}
