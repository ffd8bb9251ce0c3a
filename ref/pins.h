/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Who uses the octets of a block (I-01, I-40): a word per block counts the LOADs in progress, says
 * whether a STORE changes the block, and whether it was freed meanwhile.
 *
 * Invariants, for every interleaving:
 *   - a block goes back to the ring only when nobody reads it, exactly once per FREE;
 *   - a STORE into a bound block and a LOAD of it exclude each other.
 *
 * A pin says nothing about what the block is bound to: whoever pins looks at the entry again
 * afterwards. A block that is in the ring may be pinned for a moment by somebody who then finds
 * that the entry has changed; that disturbs nobody.
 */
#ifndef KBTP_REF_PINS_H
#define KBTP_REF_PINS_H

#include <stdbool.h>
#include <stdint.h>

#include "net/mem.h"

/* Readers are counted in the low half. */
#define KBTP_PIN_READER (UINT64_C(1))
#define KBTP_PIN_READERS UINT64_C(0xffffffff)
#define KBTP_PIN_FREED (UINT64_C(1) << 32)  /* goes back to the ring when the last reader leaves */
#define KBTP_PIN_WRITER (UINT64_C(1) << 33) /* a STORE waits for the readers, then writes */

/* A reader comes. */
enum kbtp_pin_result {
    KBTP_PIN_TAKEN,
    KBTP_PIN_REFUSED,       /* a STORE has or wants the block: try again later */
    KBTP_PIN_REFUSED_FREED, /* the same, and the caller must now return the block to the ring: it
                               was freed while this reader was counted for a moment */
};
enum kbtp_pin_result kbtp_pin(struct mem *m, mem64 *pins);

/* A reader leaves. True when the caller must now return the block to the ring. */
bool kbtp_unpin(struct mem *m, mem64 *pins);

/* The entry was unbound. True when the caller must return the block to the ring itself. */
bool kbtp_pins_freed(struct mem *m, mem64 *pins);

/*
 * A STORE comes: no reader enters from now on. It may write when kbtp_pins_quiet(). One STORE at a
 * time: those of a handle come over one connection, in order.
 */
void kbtp_pins_lock(struct mem *m, mem64 *pins);
bool kbtp_pins_quiet(struct mem *m, const mem64 *pins);
/* After the entry was updated. */
void kbtp_pins_unlock(struct mem *m, mem64 *pins);

#endif
