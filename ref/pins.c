/* SPDX-License-Identifier: BSD-3-Clause */
#include "ref/pins.h"

/* Freed and nobody reads: one of those who see this takes the block, by the swap. */
static bool take_freed(struct mem *m, mem64 *pins, uint64_t now)
{
    return now == KBTP_PIN_FREED && mem_cas64(m, pins, KBTP_PIN_FREED, 0) == KBTP_PIN_FREED;
}

enum kbtp_pin_result kbtp_pin(struct mem *m, mem64 *pins)
{
    uint64_t before = mem_fetch_add64(m, pins, KBTP_PIN_READER);
    if (!(before & KBTP_PIN_WRITER))
        return KBTP_PIN_TAKEN;
    return kbtp_unpin(m, pins) ? KBTP_PIN_REFUSED_FREED : KBTP_PIN_REFUSED;
}

bool kbtp_unpin(struct mem *m, mem64 *pins)
{
    uint64_t before = mem_fetch_add64(m, pins, -KBTP_PIN_READER);
    return take_freed(m, pins, before - KBTP_PIN_READER);
}

/*
 * The atomic comes after the entry update and a reader looks at the entry after its own: so either
 * the reader sees the update, or it is counted here.
 */
bool kbtp_pins_freed(struct mem *m, mem64 *pins)
{
    uint64_t before = mem_fetch_add64(m, pins, KBTP_PIN_FREED);
    return take_freed(m, pins, before + KBTP_PIN_FREED);
}

void kbtp_pins_lock(struct mem *m, mem64 *pins)
{
    mem_fetch_add64(m, pins, KBTP_PIN_WRITER);
}

bool kbtp_pins_quiet(struct mem *m, const mem64 *pins)
{
    return (mem_load64(m, pins) & KBTP_PIN_READERS) == 0;
}

void kbtp_pins_unlock(struct mem *m, mem64 *pins)
{
    mem_fetch_add64(m, pins, -KBTP_PIN_WRITER);
}
