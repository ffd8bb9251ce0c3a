/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The free-block ring (draft: Free-Block Ring): N slots that list unallocated blocks, and two
 * counters, Head to allocate and Tail to free.
 *
 * Invariants, for every interleaving of allocators and freers:
 *   - every block is in exactly one place: a slot, an allocation, a bound entry, a deferred free;
 *   - a slot is written only after its previous content was consumed, in ticket order;
 *   - an allocation takes exactly the block that was written for its ticket.
 *
 * The counters are advanced by FetchAdd alone. `masked` is the draft's form: Ticket in bits 63-32,
 * Slot Offset in the low n+4 bits, each wrapping by itself. `unmasked` is the InfiniBand form
 * (draft: InfiniBand and RoCEv2): the low half stays zero. In both, the slot is computed from the
 * Ticket (I-38), so a counter is read the same way whoever advanced it.
 *
 * Atomics are atomic among agents of one kind only (I-37): advance one counter through CPUs or
 * through the RNIC, not through both.
 */
#ifndef KBTP_REF_RING_H
#define KBTP_REF_RING_H

#include <stdbool.h>
#include <stdint.h>

#include "net/mem.h"

/* I-22: outside this range the Slot Offset field does not exist or leaves the low half. */
#define KBTP_RING_MIN_SLOTS 2u
#define KBTP_RING_MAX_SLOTS (1u << 28)

/* The Block Offset of a consumed slot: all ones. */
#define KBTP_BLOCK_NONE UINT64_MAX

/* Add Data; one ticket, and in the masked form one slot of 16 octets. */
#define KBTP_COUNTER_ADD_MASKED 0x0000000100000010u
#define KBTP_COUNTER_ADD_UNMASKED 0x0000000100000000u

/* A slot in memory: Sequence in network order, Block Offset as ADDR_LE says. */
struct kbtp_slot {
    mem32 sequence;
    mem32 reserved;
    mem64 block_offset;
};

struct kbtp_ring_config {
    uint32_t slot_count;   /* N: a power of two, KBTP_RING_MIN_SLOTS to KBTP_RING_MAX_SLOTS */
    uint32_t block_count;  /* F: 0 to N */
    uint32_t first_ticket; /* 0 in the draft; tests start elsewhere to cross 2^32 */
    uint64_t first_offset; /* without a list of Block Offsets: that of the first block ... */
    uint64_t offset_step;  /* ... and from each to the next */
    bool unmasked;         /* counter form */
    bool addr_le;          /* byte order of the Block Offsets */
};

/* A ring as its users see it. Constant after kbtp_ring_init(); the memory is the caller's. */
struct kbtp_ring {
    struct kbtp_slot *slots; /* N of them, 16-octet aligned (I-39) */
    mem64 *head;             /* 8-octet aligned */
    mem64 *tail;
    struct kbtp_ring_config config;
};

/* The smallest legal N for F blocks (1 to 2^28), or 0 when there is none. */
uint32_t kbtp_ring_slots_for(uint32_t block_count);

/*
 * Fills `ring`, its slots and counters: block_offsets[0..F), or without a list (NULL) those that
 * the configuration says, go to the first F slots (draft: Initialization). Nobody else may look
 * yet. Returns 0, or -EINVAL when the configuration is
 * outside the ranges above, a place is misaligned or a block offset is all ones.
 */
int kbtp_ring_init(struct mem *m, struct kbtp_ring *ring, const struct kbtp_ring_config *config,
                   struct kbtp_slot *slots, mem64 *head, mem64 *tail,
                   const uint64_t *block_offsets);

/* Add Data and Add Mask for this ring's counters (the mask is zero in the unmasked form). */
uint64_t kbtp_ring_add_data(const struct kbtp_ring *ring);
uint64_t kbtp_ring_add_mask(const struct kbtp_ring *ring);

static inline uint32_t kbtp_counter_ticket(uint64_t counter)
{
    return (uint32_t)(counter >> 32);
}

/* What a counter holds at `ticket` and the slot `slot_number` goes with. */
uint64_t kbtp_ring_counter(const struct kbtp_ring *ring, uint32_t ticket);

static inline struct kbtp_slot *kbtp_ring_slot(const struct kbtp_ring *ring, uint32_t ticket)
{
    return &ring->slots[ticket & (ring->config.slot_count - 1)];
}

/*
 * One allocation, resumable at each stage: it may be left after any call and taken up by another
 * agent of the target. A ticket cannot be given back: once taken, the allocation is polled until it
 * has its block (I-04).
 */
enum kbtp_alloc_stage {
    KBTP_ALLOC_IDLE = 0, /* no ticket */
    KBTP_ALLOC_WAIT,     /* the slot was not yet seen with this ticket */
    KBTP_ALLOC_DONE,     /* the slot is consumed, block_offset is the caller's */
};

struct kbtp_alloc {
    uint64_t block_offset; /* valid when DONE */
    uint32_t ticket;       /* valid from WAIT on */
    uint32_t stage;        /* enum kbtp_alloc_stage */
};

/* Takes a ticket: FetchAdd on Head. IDLE -> WAIT. */
void kbtp_ring_take_ticket(struct mem *m, const struct kbtp_ring *ring, struct kbtp_alloc *alloc);

/* The same for a FetchAdd made elsewhere (by a chain, or by an initiator). IDLE -> WAIT. */
void kbtp_ring_adopt_ticket(struct kbtp_alloc *alloc, uint64_t counter);

/*
 * Looks at the slot once; if it holds this ticket's block, consumes it. Returns true when DONE.
 *
 * `_ordered` loads Sequence, then Block Offset: whoever sees the new Sequence sees the new offset.
 * `_unordered` is for a reader whose slot read has no order inside, such as an RDMA Read of 16
 * octets: it reads once more to confirm both values (I-03).
 */
bool kbtp_ring_poll_ordered(struct mem *m, const struct kbtp_ring *ring, struct kbtp_alloc *alloc);
bool kbtp_ring_poll_unordered(struct mem *m, const struct kbtp_ring *ring,
                              struct kbtp_alloc *alloc);

/* A slot as its ticket's owner finds it. */
enum kbtp_slot_state {
    KBTP_SLOT_NOT_FILLED, /* for this ticket: it holds something older */
    KBTP_SLOT_FILLED,     /* with this ticket's block */
    KBTP_SLOT_PAST,       /* this ticket's block was taken */
};

/*
 * Looks at the slot of a ticket that somebody else has taken, an initiator; Block Offset is set
 * when it is FILLED. kbtp_ring_consume() marks a slot consumed that is: whoever may do so is the
 * only one that does, as with an allocation.
 */
enum kbtp_slot_state kbtp_ring_look(struct mem *m, const struct kbtp_ring *ring, uint32_t ticket,
                                    uint64_t *block_offset);
void kbtp_ring_consume(struct mem *m, const struct kbtp_ring *ring, uint32_t ticket);

/*
 * How many tickets have been taken since the oldest one whose block is still in its slot, itself
 * counted; 0: there is none. Above N some allocation waits for just that slot (I-05). Looks at each
 * slot in turn, while others may go on.
 */
uint32_t kbtp_ring_oldest(struct mem *m, const struct kbtp_ring *ring);

/*
 * Frees whose slot was not yet consumed. One list per worker; no other agent touches it. The oldest
 * comes first. The memory is the caller's: block_count entries are always enough.
 */
struct kbtp_deferred_free {
    uint64_t block_offset;
    uint32_t ticket;
    uint32_t reserved;
};

struct kbtp_deferred {
    struct kbtp_deferred_free *frees;
    uint32_t count;
    uint32_t capacity;
};

enum kbtp_free_result { KBTP_FREE_WRITTEN = 0, KBTP_FREE_DEFERRED = 1 };

/*
 * Returns a block: FetchAdd on Tail, then the slot is written if it was consumed by the allocation
 * one lap earlier, else the free is appended to `deferred` (draft: Free, with the test of I-02).
 * The table entry must have been updated before. Returns enum kbtp_free_result, or -ENOSPC with
 * nothing done when `deferred` is full.
 */
int kbtp_ring_free(struct mem *m, const struct kbtp_ring *ring, struct kbtp_deferred *deferred,
                   uint64_t block_offset);

/*
 * Looks at deferred free `index` (below count) again and writes it if its slot is consumed by now;
 * it then leaves the list, the later ones move up. Returns true when written.
 */
bool kbtp_ring_retry_deferred(struct mem *m, const struct kbtp_ring *ring,
                              struct kbtp_deferred *deferred, uint32_t index);

/*
 * Looks at every deferred free once. To be called whenever a slot was consumed, and while the list
 * is not empty. Returns how many were written.
 */
uint32_t kbtp_ring_retry_all(struct mem *m, const struct kbtp_ring *ring,
                             struct kbtp_deferred *deferred);

#endif
