/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ref/ring.h with one CPU and real memory: what the draft says (Free-Block Ring, Examples), in
 * octets.
 *
 * A fixture holds a ring and an image of what its memory shall be, made by hand, without any helper
 * of ref/ or net/. Each step changes the image as it shall change the memory, then compares all of
 * it: slots, counters, the octets around them, and the list of deferred frees. So a step that holds
 * changed nothing else. In the steps, ticket `k` is the one that is k after the ring's first.
 */
#include "ref/ring.h"

#include <errno.h>
#include <string.h>

#include "tests/run.h"

#define MOST_SLOTS 4096u
#define MOST_DEFERRED 16u
#define NONE UINT64_MAX
#define GUARD 0xa5

/*
 * Zero is a block like any other, and so is what differs from all ones in one bit or one half.
 * Those behind the sixteenth: see set_up_at().
 */
static uint64_t blocks[MOST_SLOTS] = {
    0x0000000000000000, 0xfffffffffffffffe, 0x00000000ffffffff, 0xffffffff00000000,
    0x7fffffffffffffff, 0x0123456789abcdef, 0x0000000000150000, 0x00ffffffffffffff,
    0x0100000000000000, 0x0000000000000001, 0x0000000000000002, 0x0000000000000003,
    0xffffffffffffff00, 0xffffffff7fffffff, 0xfffffffeffffffff, 0x1122334455667788};

/* Every script runs in each of these; a set bit is the second of two forms. */
enum variant {
    ADDR_LE = 1,   /* byte order of the Block Offsets */
    UNMASKED = 2,  /* counter form */
    UNORDERED = 4, /* which poll finishes the allocations */
    WRAP = 8,      /* the fourth ticket is 0, and the first slot is not slot 0 */
    VARIANTS = 16,
};

/* The memory of a ring, and octets that nobody may touch. */
struct places {
    uint8_t before_head[8];
    mem64 head;
    uint8_t before_tail[8];
    mem64 tail;
    uint8_t before_slots[16];
    struct kbtp_slot slots[MOST_SLOTS + 1]; /* one more than used is looked at */
};

struct fixture {
    struct mem m;
    struct kbtp_ring ring;
    struct kbtp_deferred deferred;
    struct kbtp_deferred_free frees[MOST_DEFERRED];
    _Alignas(16) struct places places;
    /* What `places` (octet by octet) and `deferred` shall be. */
    uint8_t image[sizeof(struct places)];
    struct kbtp_deferred_free free_image[MOST_DEFERRED];
    uint32_t free_count;
    /* As asked for. */
    unsigned n;
    unsigned variant;
    uint32_t first_ticket;
};

/* A slot's octets (draft: Ring Slot): Sequence, Reserved, Block Offset. */
static void slot_octets(uint8_t out[16], uint32_t sequence, uint64_t block_offset, bool addr_le)
{
    for (unsigned i = 0; i < 4; i++)
        out[i] = (uint8_t)(sequence >> (24 - 8 * i));
    memset(out + 4, 0, 4);
    for (unsigned i = 0; i < 8; i++)
        out[8 + i] = (uint8_t)(block_offset >> (addr_le ? 8 * i : 56 - 8 * i));
}

/* A counter (draft): Ticket in bits 63-32; below, 16 times the slot number or nothing. */
static uint64_t counter_at(uint32_t ticket, unsigned n, bool unmasked)
{
    uint64_t slot_number = ticket & ((UINT64_C(1) << n) - 1);
    return (uint64_t)ticket << 32 | (unmasked ? 0 : slot_number << 4);
}

/* A counter's octets are in the order of this machine. */
static uint64_t counter_in(const mem64 *place)
{
    uint64_t value;
    memcpy(&value, (const void *)place, sizeof value);
    return value;
}

/* Where in the image the slot of ticket k is. */
static uint8_t *image_of_slot(struct fixture *f, uint32_t k)
{
    size_t slot_number = (f->first_ticket + k) % (1u << f->n);
    return f->image + offsetof(struct places, slots) + 16 * slot_number;
}

/* Changes the image: the slot of ticket k has Sequence k and this Block Offset. */
static void expect_slot(struct fixture *f, uint32_t k, uint64_t block_offset)
{
    slot_octets(image_of_slot(f, k), f->first_ticket + k, block_offset, f->variant & ADDR_LE);
}

/* Shall the slot of ticket k now have Sequence `sequence_k` and this Block Offset? */
static bool slot_is(struct fixture *f, uint32_t k, uint32_t sequence_k, uint64_t block_offset)
{
    uint8_t octets[16];
    slot_octets(octets, f->first_ticket + sequence_k, block_offset, f->variant & ADDR_LE);
    return memcmp(image_of_slot(f, k), octets, 16) == 0;
}

/* May a free with ticket k write its slot (I-02)? */
static bool slot_is_consumed(struct fixture *f, uint32_t k)
{
    return slot_is(f, k, k - (1u << f->n), NONE);
}

enum counter { HEAD = offsetof(struct places, head), TAIL = offsetof(struct places, tail) };

/* Changes the image: the counter is at ticket k. */
static void expect_counter(struct fixture *f, enum counter which, uint32_t k)
{
    uint64_t value = counter_at(f->first_ticket + k, f->n, f->variant & UNMASKED);
    memcpy(f->image + which, &value, sizeof value);
}

/* Changes the image: the deferred free at `index` is in its slot, those behind it move up. */
static void expect_deferred_written(struct fixture *f, uint32_t index)
{
    expect_slot(f, f->free_image[index].ticket - f->first_ticket,
                f->free_image[index].block_offset);
    for (uint32_t i = index; i + 1 < f->free_count; i++)
        f->free_image[i] = f->free_image[i + 1];
    f->free_count--;
    memset(&f->free_image[f->free_count], 0, sizeof f->free_image[0]);
}

static bool as_expected(const struct fixture *f)
{
    size_t octets = offsetof(struct places, slots) + ((size_t)16 << f->n) + 16;
    return memcmp(&f->places, f->image, octets) == 0 && f->deferred.count == f->free_count &&
           memcmp(f->frees, f->free_image, sizeof f->frees) == 0;
}

/* A new ring of 2^n slots and F = block_count, and its image (draft: Initialization). */
static void set_up_at(struct fixture *f, unsigned n, uint32_t block_count, unsigned variant,
                      uint32_t first_ticket)
{
    const uint32_t slot_count = 1u << n;
    for (uint32_t i = 16; i < block_count; i++)
        blocks[i] = (uint64_t)i << 32 | i;
    *f = (struct fixture){.n = n, .variant = variant, .first_ticket = first_ticket};
    f->deferred = (struct kbtp_deferred){.frees = f->frees, .capacity = MOST_DEFERRED};
    memset(&f->places, GUARD, sizeof f->places);
    memset(f->image, GUARD, sizeof f->image);
    struct kbtp_ring_config config = {.slot_count = slot_count,
                                      .block_count = block_count,
                                      .first_ticket = first_ticket,
                                      .unmasked = variant & UNMASKED,
                                      .addr_le = variant & ADDR_LE};
    CU_ASSERT_EQUAL_FATAL(kbtp_ring_init(&f->m, &f->ring, &config, f->places.slots, &f->places.head,
                                         &f->places.tail, blocks),
                          0);
    for (uint32_t s = 0; s < slot_count; s++)
        expect_slot(f, s < block_count ? s : s - slot_count, s < block_count ? blocks[s] : NONE);
    expect_counter(f, HEAD, 0);
    expect_counter(f, TAIL, block_count);
}

/* The same in the given variant; false when there are no more of them. */
static bool set_up(struct fixture *f, unsigned n, uint32_t block_count, unsigned variant)
{
    set_up_at(f, n, block_count, variant, variant & WRAP ? UINT32_MAX - 2 : 0);
    return variant < VARIANTS;
}

/* Step: an allocation takes ticket k. The same is told by the FetchAdd of somebody else. */
static bool takes(struct fixture *f, struct kbtp_alloc *alloc, uint32_t k)
{
    struct kbtp_alloc adopted = {0};
    kbtp_ring_adopt_ticket(&adopted, counter_in(&f->places.head));
    *alloc = (struct kbtp_alloc){0};
    kbtp_ring_take_ticket(&f->m, &f->ring, alloc);
    expect_counter(f, HEAD, k + 1);
    return alloc->ticket == f->first_ticket + k && alloc->stage == KBTP_ALLOC_WAIT &&
           memcmp(alloc, &adopted, sizeof adopted) == 0 && as_expected(f);
}

/* Step: the allocation takes this block out of its slot. */
static bool obtains(struct fixture *f, struct kbtp_alloc *alloc, uint64_t block_offset)
{
    const uint32_t ticket = alloc->ticket;
    if (alloc->stage != KBTP_ALLOC_WAIT)
        return false;
    bool done = f->variant & UNORDERED ? kbtp_ring_poll_unordered(&f->m, &f->ring, alloc)
                                       : kbtp_ring_poll_ordered(&f->m, &f->ring, alloc);
    expect_slot(f, ticket - f->first_ticket, NONE);
    return done && alloc->stage == KBTP_ALLOC_DONE && alloc->ticket == ticket &&
           alloc->block_offset == block_offset && as_expected(f);
}

/* Step: the allocation's slot does not serve it, whichever way it looks. */
static bool waits(struct fixture *f, struct kbtp_alloc *alloc)
{
    const struct kbtp_alloc before = *alloc;
    return before.stage == KBTP_ALLOC_WAIT && !kbtp_ring_poll_ordered(&f->m, &f->ring, alloc) &&
           !kbtp_ring_poll_unordered(&f->m, &f->ring, alloc) &&
           memcmp(alloc, &before, sizeof before) == 0 && as_expected(f);
}

/* An allocation from first to last: takes(), obtains(). */
static bool allocates(struct fixture *f, uint32_t k, uint64_t block_offset)
{
    struct kbtp_alloc alloc;
    return takes(f, &alloc, k) && obtains(f, &alloc, block_offset);
}

/* The same for tickets k to before `end`, with the blocks of the same numbers. */
static bool allocates_from(struct fixture *f, uint32_t k, uint32_t end)
{
    while (k < end && allocates(f, k, blocks[k]))
        k++;
    return k == end;
}

/* Step: a free takes ticket k and writes its slot at once. */
static bool frees(struct fixture *f, uint32_t k, uint64_t block_offset)
{
    int result = kbtp_ring_free(&f->m, &f->ring, &f->deferred, block_offset);
    expect_counter(f, TAIL, k + 1);
    expect_slot(f, k, block_offset);
    return result == KBTP_FREE_WRITTEN && as_expected(f);
}

/* Step: a free takes ticket k and is deferred; its slot stays as it is. */
static bool defers(struct fixture *f, uint32_t k, uint64_t block_offset)
{
    int result = kbtp_ring_free(&f->m, &f->ring, &f->deferred, block_offset);
    expect_counter(f, TAIL, k + 1);
    f->free_image[f->free_count++] =
        (struct kbtp_deferred_free){.block_offset = block_offset, .ticket = f->first_ticket + k};
    return result == KBTP_FREE_DEFERRED && as_expected(f);
}

#define WRONG UINT32_MAX

/* Step: another look at the deferred free at `index`. Returns how many it wrote, or WRONG. */
static uint32_t retry(struct fixture *f, uint32_t index)
{
    if (index >= f->free_count || index >= f->deferred.count)
        return WRONG;
    bool consumed = slot_is_consumed(f, f->free_image[index].ticket - f->first_ticket);
    if (consumed)
        expect_deferred_written(f, index);
    bool written = kbtp_ring_retry_deferred(&f->m, &f->ring, &f->deferred, index);
    return written == consumed && as_expected(f) ? written : WRONG;
}

/* Step: another look at all of them, the oldest first. */
static uint32_t retry_all(struct fixture *f)
{
    uint32_t expected = 0;
    for (uint32_t i = 0; i < f->free_count;)
        if (slot_is_consumed(f, f->free_image[i].ticket - f->first_ticket)) {
            expect_deferred_written(f, i);
            expected++;
        } else {
            i++;
        }
    uint32_t written = kbtp_ring_retry_all(&f->m, &f->ring, &f->deferred);
    return written == expected && as_expected(f) ? written : WRONG;
}

/* Step: somebody else leaves these octets in the slot of ticket k. */
static void is_overwritten(struct fixture *f, uint32_t k, uint32_t sequence, uint64_t block_offset)
{
    uint8_t *image = image_of_slot(f, k);
    slot_octets(image, sequence, block_offset, f->variant & ADDR_LE);
    memcpy((uint8_t *)&f->places + (image - f->image), image, 16);
}

/* R-RING-05, -07 to -10, -14, -16, R-EX-03: the table of the draft's Examples. */
static void the_counter_table_of_the_draft(void)
{
    static const struct {
        uint32_t ticket, offset;
        uint64_t counter;
    } rows[] = {
        {0, 0, 0x0000000100000010u},  {1, 16, 0x0000000200000020u}, {2, 32, 0x0000000300000030u},
        {3, 48, 0x0000000400000000u}, {4, 0, 0x0000000500000010u},
    };
    struct fixture f;
    set_up(&f, 2, 4, 0);
    CU_ASSERT_EQUAL(kbtp_ring_add_data(&f.ring), 0x0000000100000010u);
    CU_ASSERT_EQUAL(kbtp_ring_add_mask(&f.ring), 0x8000000080000020u);
    mem64 counter = {0};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        uint64_t returned =
            mem_fetch_add_masked64(&f.m, &counter, 0x0000000100000010u, 0x8000000080000020u);
        CU_ASSERT_EQUAL(returned >> 32, rows[i].ticket);
        CU_ASSERT_EQUAL(returned & 0xffffffffu, rows[i].offset);
        CU_ASSERT_EQUAL(counter_in(&counter), rows[i].counter);

        struct kbtp_alloc alloc = {0};
        kbtp_ring_take_ticket(&f.m, &f.ring, &alloc);
        CU_ASSERT_EQUAL(alloc.ticket, rows[i].ticket);
        CU_ASSERT_EQUAL(counter_in(&f.places.head), rows[i].counter);
    }
}

/* How many of `steps` FetchAdds from `ticket` on go wrong, on a counter of 2^n slots. */
static unsigned wrong_fetch_adds(unsigned n, bool unmasked, uint32_t ticket, uint32_t steps)
{
    struct mem m = {0};
    const struct kbtp_ring ring = {.config = {.slot_count = 1u << n, .unmasked = unmasked}};
    mem64 counter = {counter_at(ticket, n, unmasked)};
    unsigned wrong = 0;
    for (; steps > 0; steps--, ticket++) {
        const uint64_t before = counter_at(ticket, n, unmasked);
        wrong += kbtp_ring_counter(&ring, ticket) != before;
        wrong += kbtp_counter_ticket(before) != ticket;
        wrong += mem_fetch_add_masked64(&m, &counter, kbtp_ring_add_data(&ring),
                                        kbtp_ring_add_mask(&ring)) != before;
        wrong += counter_in(&counter) != counter_at(ticket + 1, n, unmasked);
    }
    return wrong;
}

/* R-RING-05, -07 to -10, -31, -32, R-IB-02: no slot is needed to count in a ring of 2^28
 * of them. */
static void the_counters_of_every_n(void)
{
    for (unsigned n = 1; n <= 28; n++) {
        struct kbtp_ring ring = {.config = {.slot_count = 1u << n}};
        CU_ASSERT_EQUAL(kbtp_ring_add_data(&ring), 0x0000000100000010u);
        CU_ASSERT_EQUAL(kbtp_ring_add_mask(&ring),
                        UINT64_C(1) << 63 | UINT64_C(1) << 31 | UINT64_C(1) << (n + 3));
        ring.config.unmasked = true;
        CU_ASSERT_EQUAL(kbtp_ring_add_data(&ring), 0x0000000100000000u);
        CU_ASSERT_EQUAL(kbtp_ring_add_mask(&ring), 0);

        const uint32_t slot_count = 1u << n;
        const uint32_t laps = n <= 12 ? 2 * slot_count : 0;
        for (int unmasked = 0; unmasked <= 1; unmasked++) {
            CU_ASSERT_EQUAL(wrong_fetch_adds(n, unmasked, 0, 5), 0);
            CU_ASSERT_EQUAL(wrong_fetch_adds(n, unmasked, slot_count - 2, 5), 0);
            CU_ASSERT_EQUAL(wrong_fetch_adds(n, unmasked, 5 * slot_count - 2, 5), 0);
            CU_ASSERT_EQUAL(wrong_fetch_adds(n, unmasked, 0x7ffffffe, 5), 0);
            CU_ASSERT_EQUAL(wrong_fetch_adds(n, unmasked, 0xfffffffe, 5), 0);
            CU_ASSERT_EQUAL(wrong_fetch_adds(n, unmasked, 0 - slot_count - 3, laps), 0);
        }
    }
}

/* R-RING-05, -09, -16, -22, -31, R-IB-03: from 300 tickets before the wrap to 300 behind it. */
static void real_rings_cross_the_ring_end_and_the_ticket_wrap(void)
{
    static struct fixture f;
    for (unsigned n = 1; n <= 12; n++)
        for (unsigned variant = 0; variant <= UNMASKED; variant += UNMASKED) {
            const uint32_t block_count = (1u << n) - (1u << n) / 4;
            set_up_at(&f, n, block_count, variant, 0u - 300);
            for (uint32_t k = 0; k < 600; k++) {
                CU_ASSERT_TRUE(allocates(&f, k, blocks[k % block_count]));
                CU_ASSERT_TRUE(frees(&f, block_count + k, blocks[k % block_count]));
            }
        }
}

/* R-RING-01, -32 (I-22): a power of two, not smaller than F, from 2 to 2^28. */
static void slots_for_a_number_of_blocks(void)
{
    CU_ASSERT_EQUAL(kbtp_ring_slots_for(0), 0);
    CU_ASSERT_EQUAL(kbtp_ring_slots_for(1), 2);
    CU_ASSERT_EQUAL(kbtp_ring_slots_for(2), 2);
    for (unsigned n = 2; n < 28; n++) {
        CU_ASSERT_EQUAL(kbtp_ring_slots_for((1u << n) - 1), 1u << n);
        CU_ASSERT_EQUAL(kbtp_ring_slots_for(1u << n), 1u << n);
        CU_ASSERT_EQUAL(kbtp_ring_slots_for((1u << n) + 1), 2u << n);
    }
    CU_ASSERT_EQUAL(kbtp_ring_slots_for(1u << 28), 1u << 28);
    CU_ASSERT_EQUAL(kbtp_ring_slots_for((1u << 28) + 1), 0);
    CU_ASSERT_EQUAL(kbtp_ring_slots_for(UINT32_MAX), 0);
}

/* Is kbtp_ring_init() refused, and is neither the memory nor the ring written? */
static bool is_refused(const struct kbtp_ring_config *config, size_t misplaced_slots,
                       size_t misplaced_head, size_t misplaced_tail, const uint64_t *block_offsets)
{
    struct {
        _Alignas(16) uint8_t head[16], tail[16], slots[16 * 17];
        struct kbtp_ring ring;
    } place, before;
    struct mem m = {0};
    memset(&place, GUARD, sizeof place);
    memset(&before, GUARD, sizeof before);
    int result = kbtp_ring_init(&m, &place.ring, config, (void *)(place.slots + misplaced_slots),
                                (void *)(place.head + misplaced_head),
                                (void *)(place.tail + misplaced_tail), block_offsets);
    return result == -EINVAL && memcmp(&place, &before, sizeof place) == 0;
}

static bool size_is_refused(uint32_t slot_count, uint32_t block_count)
{
    struct kbtp_ring_config config = {.slot_count = slot_count, .block_count = block_count};
    return is_refused(&config, 0, 0, 0, blocks);
}

/* R-RING-01, -32 (I-22): n = 0, n = 29 and further away, no power of two, F > N. */
static void init_refuses_an_illegal_size(void)
{
    static const uint32_t illegal[] = {
        1,  1u << 29, 1u << 30,       1u << 31,       0,         3, 5, 6, 7,
        12, 15,       (1u << 28) - 1, (1u << 28) + 1, UINT32_MAX};
    for (size_t i = 0; i < sizeof illegal / sizeof illegal[0]; i++)
        for (uint32_t block_count = 0; block_count <= 4; block_count++)
            CU_ASSERT_TRUE(size_is_refused(illegal[i], block_count));
    for (uint32_t slot_count = 2; slot_count <= 16; slot_count *= 2) {
        CU_ASSERT_TRUE(size_is_refused(slot_count, slot_count + 1));
        CU_ASSERT_TRUE(size_is_refused(slot_count, 2 * slot_count));
        CU_ASSERT_TRUE(size_is_refused(slot_count, UINT32_MAX));
    }
}

/* R-RING-02; slots are aligned to 16 octets (I-39). */
static void init_refuses_a_misaligned_place(void)
{
    const struct kbtp_ring_config config = {.slot_count = 4, .block_count = 3};
    for (size_t by = 0; by < 16; by++) {
        CU_ASSERT_EQUAL(is_refused(&config, by, 0, 0, blocks), by % 16 != 0);
        if (by <= 8) {
            CU_ASSERT_EQUAL(is_refused(&config, 0, by, 0, blocks), by % 8 != 0);
            CU_ASSERT_EQUAL(is_refused(&config, 0, 0, by, blocks), by % 8 != 0);
        }
    }
}

/* R-RING-04, R-POOL-04: all ones is no block, but what lies behind the F-th is not looked at. */
static void init_refuses_all_ones_as_a_block(void)
{
    for (uint32_t block_count = 1; block_count <= 4; block_count++) {
        const struct kbtp_ring_config config = {.slot_count = 4, .block_count = block_count};
        for (uint32_t at = 0; at < 4; at++) {
            uint64_t block_offsets[4];
            memcpy(block_offsets, blocks, sizeof block_offsets);
            block_offsets[at] = NONE;
            CU_ASSERT_EQUAL(is_refused(&config, 0, 0, 0, block_offsets), at < block_count);
        }
    }
}

/* R-RING-01, -03, -04, -12, -13, -14, -15, -31: the image of set_up_at() is that of the draft. */
static void initial_contents(void)
{
    static const uint32_t first_tickets[] = {
        0, 1, 7, 0x7ffffffb, UINT32_MAX - 15, UINT32_MAX - 4, UINT32_MAX - 1, UINT32_MAX};
    static struct fixture f;
    for (unsigned n = 1; n <= 4; n++)
        for (uint32_t block_count = 1; block_count <= 1u << n; block_count++)
            for (unsigned i = 0; i < 8 * VARIANTS; i++) {
                set_up_at(&f, n, block_count, i / 8, first_tickets[i % 8]);
                CU_ASSERT_TRUE(as_expected(&f));
            }
}

/* R-RING-04, -16 to -19, -22, -28: slots that were never filled, then slots that were consumed. */
static void an_allocation_waits_until_its_slot_is_filled(void)
{
    struct fixture f;
    for (unsigned variant = 0; set_up(&f, 2, 2, variant); variant++) {
        struct kbtp_alloc alloc;
        CU_ASSERT_TRUE(allocates_from(&f, 0, 2));
        for (uint32_t k = 2; k < 10; k++) {
            CU_ASSERT_TRUE(takes(&f, &alloc, k));
            CU_ASSERT_TRUE(waits(&f, &alloc));
            CU_ASSERT_TRUE(frees(&f, k, blocks[k % 2]));
            CU_ASSERT_TRUE(obtains(&f, &alloc, blocks[k % 2]));
        }
    }
}

/* R-RING-17, -31: both conditions, and each of the 32 bits of the Sequence. */
static void a_slot_serves_its_own_ticket_only(void)
{
    struct fixture f;
    for (unsigned variant = 0; set_up(&f, 2, 4, variant); variant++) {
        struct kbtp_alloc alloc;
        CU_ASSERT_TRUE(allocates(&f, 0, blocks[0]));
        CU_ASSERT_TRUE(takes(&f, &alloc, 1));
        for (unsigned bit = 0; bit < 32; bit++) {
            is_overwritten(&f, 1, alloc.ticket ^ 1u << bit, blocks[1]);
            CU_ASSERT_TRUE(waits(&f, &alloc));
        }
        is_overwritten(&f, 1, alloc.ticket - 4, blocks[2]);
        CU_ASSERT_TRUE(waits(&f, &alloc));
        is_overwritten(&f, 1, alloc.ticket, NONE);
        CU_ASSERT_TRUE(waits(&f, &alloc));
        is_overwritten(&f, 1, alloc.ticket, blocks[3]);
        CU_ASSERT_TRUE(obtains(&f, &alloc, blocks[3]));
    }
}

/* R-RING-23, -24, -27, -30, R-EX-04: the draft's example of a shared ring; its block 100 is block
 * 0 here. */
static void a_free_of_an_unconsumed_slot_is_deferred(void)
{
    struct fixture f;
    for (unsigned variant = 0; set_up(&f, 2, 4, variant); variant++) {
        struct kbtp_alloc x;
        CU_ASSERT_TRUE(takes(&f, &x, 0));
        CU_ASSERT_TRUE(allocates_from(&f, 1, 4));
        CU_ASSERT_TRUE(defers(&f, 4, blocks[1]));
        CU_ASSERT_EQUAL(retry(&f, 0), 0);
        CU_ASSERT_EQUAL(retry_all(&f), 0);
        CU_ASSERT_TRUE(obtains(&f, &x, blocks[0]));
        CU_ASSERT_TRUE(frees(&f, 5, blocks[2])); /* another slot, for which nothing waits */
        CU_ASSERT_EQUAL(retry(&f, 0), 1);
        CU_ASSERT_TRUE(allocates(&f, 4, blocks[1]));
        CU_ASSERT_TRUE(allocates(&f, 5, blocks[2]));
    }
}

/* R-RING-24, -29, -31 (I-02): all ones, and the Sequence of one lap before in each of its bits. */
static void a_slot_is_consumed_by_the_ticket_one_lap_before_only(void)
{
    struct fixture f;
    for (unsigned variant = 0; set_up(&f, 2, 4, variant); variant++) {
        CU_ASSERT_TRUE(allocates(&f, 0, blocks[0]));
        const uint32_t one_lap_before = f.first_ticket;
        is_overwritten(&f, 4, one_lap_before - 4, NONE);
        CU_ASSERT_TRUE(defers(&f, 4, blocks[0]));
        for (unsigned bit = 0; bit < 32; bit++) {
            is_overwritten(&f, 4, one_lap_before ^ 1u << bit, NONE);
            CU_ASSERT_EQUAL(retry(&f, 0), 0);
        }
        for (uint32_t i = 0; i < 16; i++) {
            is_overwritten(&f, 4, one_lap_before, blocks[i]);
            CU_ASSERT_EQUAL(retry(&f, 0), 0);
        }
        is_overwritten(&f, 4, one_lap_before, NONE);
        CU_ASSERT_EQUAL(retry(&f, 0), 1);
    }
}

/*
 * R-RING-24, -28, -29, -30: two frees of slot 0, whose first ticket is read late. Read before the
 * second of them, this is trace B of I-02: the slot is all ones then, but owed to the first.
 */
static void frees_of_one_slot_are_written_in_ticket_order(void)
{
    struct fixture f;
    for (unsigned i = 0; set_up(&f, 2, 4, i / 2); i++) {
        const bool trace_b = i % 2;
        struct kbtp_alloc late, fourth, eighth;
        CU_ASSERT_TRUE(takes(&f, &late, 0));
        CU_ASSERT_TRUE(allocates_from(&f, 1, 4));
        CU_ASSERT_TRUE(defers(&f, 4, blocks[1]));
        if (trace_b)
            CU_ASSERT_TRUE(obtains(&f, &late, blocks[0]));
        CU_ASSERT_TRUE(takes(&f, &fourth, 4));
        CU_ASSERT_TRUE(frees(&f, 5, blocks[2]));
        CU_ASSERT_TRUE(frees(&f, 6, blocks[3]));
        CU_ASSERT_TRUE(allocates(&f, 5, blocks[2]));
        CU_ASSERT_TRUE(frees(&f, 7, blocks[2]));
        CU_ASSERT_TRUE(allocates(&f, 6, blocks[3]));
        CU_ASSERT_TRUE(allocates(&f, 7, blocks[2]));
        CU_ASSERT_TRUE(defers(&f, 8, blocks[3]));
        CU_ASSERT_TRUE(takes(&f, &eighth, 8));
        CU_ASSERT_TRUE(waits(&f, &fourth));
        if (!trace_b) {
            CU_ASSERT_EQUAL(retry_all(&f), 0);
            CU_ASSERT_TRUE(obtains(&f, &late, blocks[0]));
        }
        CU_ASSERT_EQUAL(retry(&f, 1), 0); /* consumed, but not its turn */
        CU_ASSERT_EQUAL(retry_all(&f), 1);
        CU_ASSERT_EQUAL(retry(&f, 0), 0); /* its turn, but not consumed */
        CU_ASSERT_TRUE(waits(&f, &eighth));
        CU_ASSERT_TRUE(obtains(&f, &fourth, blocks[1]));
        CU_ASSERT_TRUE(waits(&f, &eighth));
        CU_ASSERT_EQUAL(retry(&f, 0), 1);
        CU_ASSERT_TRUE(obtains(&f, &eighth, blocks[3]));
        CU_ASSERT_EQUAL(retry_all(&f), 0); /* nothing left */
    }
}

/* R-RING-30: four frees deferred on four slots, consumed in another order. */
static void retries_count_and_keep_the_order_of_the_others(void)
{
    struct fixture f;
    for (unsigned variant = 0; set_up(&f, 3, 8, variant); variant++) {
        struct kbtp_alloc stalled[4];
        for (uint32_t k = 0; k < 4; k++)
            CU_ASSERT_TRUE(takes(&f, &stalled[k], k));
        CU_ASSERT_TRUE(allocates_from(&f, 4, 8));
        for (uint32_t k = 8; k < 12; k++)
            CU_ASSERT_TRUE(defers(&f, k, blocks[k - 4]));

        CU_ASSERT_TRUE(obtains(&f, &stalled[1], blocks[1]));
        CU_ASSERT_EQUAL(retry(&f, 0), 0);
        CU_ASSERT_EQUAL(retry(&f, 1), 1); /* leaves tickets 8, 10, 11 */
        CU_ASSERT_EQUAL(retry_all(&f), 0);
        CU_ASSERT_TRUE(obtains(&f, &stalled[3], blocks[3]));
        CU_ASSERT_TRUE(obtains(&f, &stalled[0], blocks[0]));
        CU_ASSERT_EQUAL(retry_all(&f), 2); /* leaves ticket 10 */
        CU_ASSERT_TRUE(obtains(&f, &stalled[2], blocks[2]));
        CU_ASSERT_EQUAL(retry_all(&f), 1);
        for (uint32_t k = 8; k < 12; k++)
            CU_ASSERT_TRUE(allocates(&f, k, blocks[k - 4]));
    }
}

/* R-RING-26: a free that could not be remembered takes no ticket. */
static void a_free_without_room_does_nothing(void)
{
    struct fixture f;
    for (unsigned variant = 0; set_up(&f, 2, 4, variant); variant++) {
        struct kbtp_alloc stalled;
        f.deferred.capacity = 1;
        CU_ASSERT_TRUE(takes(&f, &stalled, 0));
        CU_ASSERT_TRUE(allocates_from(&f, 1, 4));
        CU_ASSERT_TRUE(defers(&f, 4, blocks[1]));
        CU_ASSERT_EQUAL(kbtp_ring_free(&f.m, &f.ring, &f.deferred, blocks[2]), -ENOSPC);
        CU_ASSERT_TRUE(as_expected(&f));
        struct kbtp_deferred nowhere = {0};
        CU_ASSERT_EQUAL(kbtp_ring_free(&f.m, &f.ring, &nowhere, blocks[2]), -ENOSPC);
        CU_ASSERT_TRUE(as_expected(&f));
        CU_ASSERT_TRUE(obtains(&f, &stalled, blocks[0]));
        CU_ASSERT_EQUAL(retry_all(&f), 1);
        CU_ASSERT_TRUE(frees(&f, 5, blocks[2]));
    }
}

/*
 * R-RING-24, -26, -29: trace A of I-02. One freer is stopped between its FetchAdd and its write,
 * when it has already found slot 0 consumed; another gets the same slot one lap later.
 */
static void two_freers_of_one_slot(void)
{
    struct fixture f;
    for (unsigned variant = 0; set_up(&f, 2, 4, variant); variant++) {
        struct kbtp_alloc fourth;
        CU_ASSERT_TRUE(allocates_from(&f, 0, 4));
        /* The first freer, by hand: ticket 4, for block 0. */
        uint64_t returned = mem_fetch_add_masked64(
            &f.m, &f.places.tail, kbtp_ring_add_data(&f.ring), kbtp_ring_add_mask(&f.ring));
        CU_ASSERT_EQUAL(returned >> 32, (uint32_t)(f.first_ticket + 4));
        expect_counter(&f, TAIL, 5);
        CU_ASSERT_TRUE(takes(&f, &fourth, 4));
        for (uint32_t k = 5; k < 8; k++) {
            CU_ASSERT_TRUE(frees(&f, k, blocks[k - 4]));
            CU_ASSERT_TRUE(allocates(&f, k, blocks[k - 4]));
        }
        CU_ASSERT_TRUE(defers(&f, 8, blocks[1])); /* all ones, Sequence 0: owed to ticket 4 */
        CU_ASSERT_EQUAL(retry(&f, 0), 0);
        CU_ASSERT_TRUE(waits(&f, &fourth));
        is_overwritten(&f, 4, f.first_ticket + 4, blocks[0]); /* the first freer goes on */
        CU_ASSERT_EQUAL(retry(&f, 0), 0);
        CU_ASSERT_TRUE(obtains(&f, &fourth, blocks[0]));
        CU_ASSERT_EQUAL(retry(&f, 0), 1);
        CU_ASSERT_TRUE(allocates(&f, 8, blocks[1]));
    }
}

#define RANDOM_STEPS 6000u

/* What a queue of blocks says: the k-th that is put in is the k-th that is taken out. */
struct model {
    struct fixture f;
    uint64_t random;
    uint64_t block_of[RANDOM_STEPS + 16]; /* by ticket */
    uint32_t head, tail;                  /* next tickets */
    struct kbtp_alloc open[32];
    uint32_t open_count;
    uint64_t held[16];
    uint32_t held_count;
    unsigned wrong;
};

/* xorshift64, below `limit`. */
static uint32_t pick(struct model *model, uint32_t limit)
{
    model->random ^= model->random << 13;
    model->random ^= model->random >> 7;
    model->random ^= model->random << 17;
    return (uint32_t)(model->random >> 32) % limit;
}

static void model_polls(struct model *model, uint32_t index)
{
    struct kbtp_alloc *alloc = &model->open[index];
    const uint32_t k = alloc->ticket - model->f.first_ticket;
    if (k >= model->tail || !slot_is(&model->f, k, k, model->block_of[k])) {
        model->wrong += !waits(&model->f, alloc);
        return;
    }
    model->f.variant ^= pick(model, 2) ? UNORDERED : 0;
    model->wrong += !obtains(&model->f, alloc, model->block_of[k]);
    model->held[model->held_count++] = model->block_of[k];
    *alloc = model->open[--model->open_count];
}

static void model_frees(struct model *model)
{
    uint64_t *held = &model->held[pick(model, model->held_count)];
    const uint32_t k = model->tail++;
    const uint64_t block_offset = model->block_of[k] = *held;
    *held = model->held[--model->held_count];
    model->wrong += slot_is_consumed(&model->f, k) ? !frees(&model->f, k, block_offset)
                                                   : !defers(&model->f, k, block_offset);
}

static void model_steps(struct model *model)
{
    uint32_t what = pick(model, 16);
    if (what < 4 && model->open_count < 2u << model->f.n)
        model->wrong += !takes(&model->f, &model->open[model->open_count++], model->head++);
    else if (what < 9 && model->open_count > 0)
        model_polls(model, pick(model, model->open_count));
    else if (what < 13 && model->held_count > 0)
        model_frees(model);
    else if (what < 15 && model->f.free_count > 0)
        model->wrong += retry(&model->f, pick(model, model->f.free_count)) == WRONG;
    else
        model->wrong += retry_all(&model->f) == WRONG;
}

/* No new tickets: everything that is open, held or deferred finds its way back into the ring. */
static void model_ends(struct model *model, uint32_t block_count)
{
    for (uint32_t rounds = 0; rounds < 128; rounds++) {
        for (uint32_t i = model->open_count; i > 0; i--)
            model_polls(model, i - 1);
        while (model->held_count > 0)
            model_frees(model);
        model->wrong += retry_all(&model->f) == WRONG;
    }
    model->wrong += model->open_count != 0 || model->f.free_count != 0;
    model->wrong += model->tail != model->head + block_count;
    for (uint32_t b = 0; b < block_count; b++) {
        uint32_t found = 0;
        for (uint32_t k = model->head; k < model->tail; k++)
            found += slot_is(&model->f, k, k, blocks[b]);
        model->wrong += found != 1;
    }
}

/* R-RING-16, -26 to -31: random interleavings of one worker's steps, over many laps. */
static void random_laps_agree_with_a_queue_of_blocks(void)
{
    static const uint32_t block_counts[] = {1, 2, 3, 4, 5, 8, 9, 16};
    static struct model model;
    for (unsigned i = 0; i < 8 * VARIANTS; i++) {
        const uint32_t block_count = block_counts[i % 8];
        const unsigned n = i % 8 / 2 + 1;
        model = (struct model){.random = i + 1, .tail = block_count};
        memcpy(model.block_of, blocks, block_count * sizeof blocks[0]);
        set_up(&model.f, n, block_count, i / 8);
        for (uint32_t step = 0; step < RANDOM_STEPS && model.wrong == 0; step++)
            model_steps(&model);
        CU_ASSERT_EQUAL_FATAL(model.wrong, 0);
        CU_ASSERT_TRUE(model.head > 20u << n);
        model_ends(&model, block_count);
        CU_ASSERT_EQUAL(model.wrong, 0);
    }
}

int main(void)
{
    static const struct test tests[] = {
        {"the counter table of the draft", the_counter_table_of_the_draft},
        {"the counters of every n", the_counters_of_every_n},
        {"real rings cross the ring end and the ticket wrap",
         real_rings_cross_the_ring_end_and_the_ticket_wrap},
        {"slots for a number of blocks", slots_for_a_number_of_blocks},
        {"init refuses an illegal size", init_refuses_an_illegal_size},
        {"init refuses a misaligned place", init_refuses_a_misaligned_place},
        {"init refuses all ones as a block", init_refuses_all_ones_as_a_block},
        {"initial contents", initial_contents},
        {"an allocation waits until its slot is filled",
         an_allocation_waits_until_its_slot_is_filled},
        {"a slot serves its own ticket only", a_slot_serves_its_own_ticket_only},
        {"a free of an unconsumed slot is deferred", a_free_of_an_unconsumed_slot_is_deferred},
        {"a slot is consumed by the ticket one lap before only",
         a_slot_is_consumed_by_the_ticket_one_lap_before_only},
        {"frees of one slot are written in ticket order (I-02 trace B)",
         frees_of_one_slot_are_written_in_ticket_order},
        {"retries count and keep the order of the others",
         retries_count_and_keep_the_order_of_the_others},
        {"a free without room does nothing", a_free_without_room_does_nothing},
        {"two freers of one slot (I-02 trace A)", two_freers_of_one_slot},
        {"random laps agree with a queue of blocks", random_laps_agree_with_a_queue_of_blocks},
    };
    return run_tests("ref/ring", tests, sizeof tests / sizeof tests[0]);
}
