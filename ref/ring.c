/* SPDX-License-Identifier: BSD-3-Clause */
#include "ref/ring.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "ref/octets.h"

static uint64_t offset_to_memory(const struct kbtp_ring *ring, uint64_t block_offset)
{
    return octets_address64(block_offset, ring->config.addr_le);
}

static uint64_t offset_from_memory(const struct kbtp_ring *ring, uint64_t word)
{
    return octets_address64(word, ring->config.addr_le);
}

uint32_t kbtp_ring_slots_for(uint32_t block_count)
{
    if (block_count == 0 || block_count > KBTP_RING_MAX_SLOTS)
        return 0;
    uint32_t slots = KBTP_RING_MIN_SLOTS;
    while (slots < block_count)
        slots *= 2;
    return slots;
}

uint64_t kbtp_ring_add_data(const struct kbtp_ring *ring)
{
    return ring->config.unmasked ? KBTP_COUNTER_ADD_UNMASKED : KBTP_COUNTER_ADD_MASKED;
}

/* bit 63 | bit 31 | bit (n+3), and bit (n+3) = 2^n * 8. */
uint64_t kbtp_ring_add_mask(const struct kbtp_ring *ring)
{
    if (ring->config.unmasked)
        return 0;
    return (UINT64_C(1) << 63) | (UINT64_C(1) << 31) | (uint64_t)ring->config.slot_count * 8;
}

uint64_t kbtp_ring_counter(const struct kbtp_ring *ring, uint32_t ticket)
{
    uint64_t slot_offset = ring->config.unmasked ? 0 : (ticket % ring->config.slot_count) * 16;
    return (uint64_t)ticket << 32 | slot_offset;
}

static bool config_is_legal(const struct kbtp_ring_config *config)
{
    uint32_t n = config->slot_count;
    return n >= KBTP_RING_MIN_SLOTS && n <= KBTP_RING_MAX_SLOTS && (n & (n - 1)) == 0 &&
           config->block_count <= n;
}

static uint64_t initial_offset(const struct kbtp_ring_config *config, const uint64_t *block_offsets,
                               uint32_t index)
{
    return block_offsets ? block_offsets[index]
                         : config->first_offset + index * config->offset_step;
}

int kbtp_ring_init(struct mem *m, struct kbtp_ring *ring, const struct kbtp_ring_config *config,
                   struct kbtp_slot *slots, mem64 *head, mem64 *tail, const uint64_t *block_offsets)
{
    if (!config_is_legal(config) || (uintptr_t)slots % 16 != 0 || (uintptr_t)head % 8 != 0 ||
        (uintptr_t)tail % 8 != 0)
        return -EINVAL;
    for (uint32_t i = 0; i < config->block_count; i++)
        if (initial_offset(config, block_offsets, i) == KBTP_BLOCK_NONE)
            return -EINVAL;

    *ring = (struct kbtp_ring){.slots = slots, .head = head, .tail = tail, .config = *config};
    for (uint32_t i = 0; i < config->slot_count; i++) {
        uint32_t ticket = config->first_ticket + i;
        struct kbtp_slot *slot = kbtp_ring_slot(ring, ticket);
        bool filled = i < config->block_count;
        uint32_t sequence = filled ? ticket : ticket - config->slot_count;
        uint64_t block_offset = filled ? initial_offset(config, block_offsets, i) : KBTP_BLOCK_NONE;
        mem_store64(m, &slot->block_offset, offset_to_memory(ring, block_offset));
        mem_store32(m, &slot->reserved, 0);
        mem_store32(m, &slot->sequence, octets_be32(sequence));
    }
    mem_store64(m, head, kbtp_ring_counter(ring, config->first_ticket));
    mem_store_release64(m, tail,
                        kbtp_ring_counter(ring, config->first_ticket + config->block_count));
    return 0;
}

/* FetchAdd on Head or Tail: the ticket from before. */
static uint32_t next_ticket(struct mem *m, const struct kbtp_ring *ring, mem64 *counter)
{
    uint64_t before =
        ring->config.unmasked
            ? mem_fetch_add64(m, counter, KBTP_COUNTER_ADD_UNMASKED)
            : mem_fetch_add_masked64(m, counter, KBTP_COUNTER_ADD_MASKED, kbtp_ring_add_mask(ring));
    return kbtp_counter_ticket(before);
}

void kbtp_ring_take_ticket(struct mem *m, const struct kbtp_ring *ring, struct kbtp_alloc *alloc)
{
    assert(alloc->stage == KBTP_ALLOC_IDLE);
    alloc->ticket = next_ticket(m, ring, ring->head);
    alloc->stage = KBTP_ALLOC_WAIT;
}

void kbtp_ring_adopt_ticket(struct kbtp_alloc *alloc, uint64_t counter)
{
    assert(alloc->stage == KBTP_ALLOC_IDLE);
    alloc->ticket = kbtp_counter_ticket(counter);
    alloc->stage = KBTP_ALLOC_WAIT;
}

/* The slot is this allocation's: take the block and mark the slot consumed. */
static void consume(struct mem *m, const struct kbtp_ring *ring, struct kbtp_slot *slot,
                    struct kbtp_alloc *alloc, uint64_t block_offset)
{
    mem_store64(m, &slot->block_offset, offset_to_memory(ring, KBTP_BLOCK_NONE));
    alloc->block_offset = block_offset;
    alloc->stage = KBTP_ALLOC_DONE;
}

bool kbtp_ring_poll_ordered(struct mem *m, const struct kbtp_ring *ring, struct kbtp_alloc *alloc)
{
    assert(alloc->stage == KBTP_ALLOC_WAIT);
    struct kbtp_slot *slot = kbtp_ring_slot(ring, alloc->ticket);
    /* Sequence first: the freer stores it last, so the Block Offset seen next is this ticket's. */
    uint32_t sequence = octets_be32(mem_load32(m, &slot->sequence));
    if (sequence != alloc->ticket)
        return false;
    uint64_t block_offset = offset_from_memory(ring, mem_load64(m, &slot->block_offset));
    if (block_offset == KBTP_BLOCK_NONE)
        return false;
    consume(m, ring, slot, alloc, block_offset);
    return true;
}

/* A slot as an unordered read returns it: octets as they lie in memory. */
struct slot_image {
    uint32_t sequence;
    uint32_t reserved;
    uint64_t block_offset;
};

bool kbtp_ring_poll_unordered(struct mem *m, const struct kbtp_ring *ring, struct kbtp_alloc *alloc)
{
    assert(alloc->stage == KBTP_ALLOC_WAIT);
    struct kbtp_slot *slot = kbtp_ring_slot(ring, alloc->ticket);
    struct slot_image image;
    mem_read(m, &image, slot, sizeof image);
    uint64_t block_offset = offset_from_memory(ring, image.block_offset);
    if (octets_be32(image.sequence) != alloc->ticket || block_offset == KBTP_BLOCK_NONE)
        return false;
    /* The Sequence is ours: the slot is complete and stays. What was read with it may be older. */
    struct slot_image again;
    mem_read(m, &again, slot, sizeof again);
    if (again.sequence != image.sequence || again.block_offset != image.block_offset)
        return false;
    consume(m, ring, slot, alloc, block_offset);
    return true;
}

/* As _ordered, but every Sequence beyond this ticket's says that it has had its block (I-19). */
enum kbtp_slot_state kbtp_ring_look(struct mem *m, const struct kbtp_ring *ring, uint32_t ticket,
                                    uint64_t *block_offset)
{
    struct kbtp_slot *slot = kbtp_ring_slot(ring, ticket);
    uint32_t sequence = octets_be32(mem_load32(m, &slot->sequence));
    if (sequence != ticket)
        return sequence - ticket <= INT32_MAX ? KBTP_SLOT_PAST : KBTP_SLOT_NOT_FILLED;
    *block_offset = offset_from_memory(ring, mem_load64(m, &slot->block_offset));
    return *block_offset == KBTP_BLOCK_NONE ? KBTP_SLOT_PAST : KBTP_SLOT_FILLED;
}

void kbtp_ring_consume(struct mem *m, const struct kbtp_ring *ring, uint32_t ticket)
{
    mem_store64(m, &kbtp_ring_slot(ring, ticket)->block_offset,
                offset_to_memory(ring, KBTP_BLOCK_NONE));
}

/* How many tickets ago was that one taken whose block is in the slot? 0: it is empty, or free. */
static uint32_t age_of(struct mem *m, const struct kbtp_ring *ring, struct kbtp_slot *slot,
                       uint32_t head)
{
    uint32_t sequence = mem_load32(m, &slot->sequence);
    if (offset_from_memory(ring, mem_load64(m, &slot->block_offset)) == KBTP_BLOCK_NONE)
        return 0;
    if (mem_load32(m, &slot->sequence) != sequence)
        return 0; /* it was written meanwhile: the block is of the next lap */
    uint32_t age = head - octets_be32(sequence);
    return age <= INT32_MAX ? age : 0;
}

uint32_t kbtp_ring_oldest(struct mem *m, const struct kbtp_ring *ring)
{
    uint32_t head = kbtp_counter_ticket(mem_load64(m, ring->head)), oldest = 0;
    for (uint32_t i = 0; i < ring->config.slot_count; i++) {
        uint32_t age = age_of(m, ring, &ring->slots[i], head);
        oldest = age > oldest ? age : oldest;
    }
    return oldest;
}

/*
 * Was the slot consumed by the allocation one lap before ticket u? All ones alone is not enough:
 * the slot may still be owed to an earlier free (I-02). Sequence first: it only grows, so seen at
 * u - N it can pass on only through this free, and the Block Offset read next belongs to that lap.
 */
static bool is_consumed(struct mem *m, const struct kbtp_ring *ring, uint32_t ticket)
{
    struct kbtp_slot *slot = kbtp_ring_slot(ring, ticket);
    uint32_t sequence = octets_be32(mem_load32(m, &slot->sequence));
    if (sequence != ticket - ring->config.slot_count)
        return false;
    return offset_from_memory(ring, mem_load64(m, &slot->block_offset)) == KBTP_BLOCK_NONE;
}

/* Block Offset before Sequence: a reader of the new Sequence then reads the new Block Offset. */
static void write_slot(struct mem *m, const struct kbtp_ring *ring, uint32_t ticket,
                       uint64_t block_offset)
{
    struct kbtp_slot *slot = kbtp_ring_slot(ring, ticket);
    mem_store64(m, &slot->block_offset, offset_to_memory(ring, block_offset));
    mem_store_release32(m, &slot->sequence, octets_be32(ticket));
}

int kbtp_ring_free(struct mem *m, const struct kbtp_ring *ring, struct kbtp_deferred *deferred,
                   uint64_t block_offset)
{
    assert(block_offset != KBTP_BLOCK_NONE);
    if (deferred->count == deferred->capacity)
        return -ENOSPC;
    uint32_t ticket = next_ticket(m, ring, ring->tail);
    if (is_consumed(m, ring, ticket)) {
        write_slot(m, ring, ticket, block_offset);
        return KBTP_FREE_WRITTEN;
    }
    deferred->frees[deferred->count++] =
        (struct kbtp_deferred_free){.block_offset = block_offset, .ticket = ticket};
    return KBTP_FREE_DEFERRED;
}

bool kbtp_ring_retry_deferred(struct mem *m, const struct kbtp_ring *ring,
                              struct kbtp_deferred *deferred, uint32_t index)
{
    assert(index < deferred->count);
    struct kbtp_deferred_free *entry = &deferred->frees[index];
    if (!is_consumed(m, ring, entry->ticket))
        return false;
    write_slot(m, ring, entry->ticket, entry->block_offset);
    deferred->count--;
    memmove(entry, entry + 1, (deferred->count - index) * sizeof *entry);
    deferred->frees[deferred->count] = (struct kbtp_deferred_free){0};
    return true;
}

uint32_t kbtp_ring_retry_all(struct mem *m, const struct kbtp_ring *ring,
                             struct kbtp_deferred *deferred)
{
    uint32_t written = 0;
    for (uint32_t i = 0; i < deferred->count;) {
        if (kbtp_ring_retry_deferred(m, ring, deferred, i))
            written++;
        else
            i++;
    }
    return written;
}
