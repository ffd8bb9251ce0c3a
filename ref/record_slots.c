/* SPDX-License-Identifier: BSD-3-Clause */
/* Completion records at the initiator: the slots they come to (draft: Completion; I-28). */
#include "ref/initiator_state.h"

static uint8_t *slot_of(const struct kbtp_initiator *i, uint32_t place)
{
    return i->records + place * (size_t)KBTP_RECORD_OCTETS;
}

/* Cleared: Request IDs begin anew with each connection, and what an earlier one left must not be
 * taken for an answer. */
void kbtp_record_arm(const struct kbtp_initiator *i, const struct kbtp_cpu *cpu, uint32_t place,
                     struct kbtp_completion_descriptor *slot)
{
    mem_fill(cpu->mem, slot_of(i, place), 0, KBTP_RECORD_OCTETS);
    *slot = (struct kbtp_completion_descriptor){
        .tagged_offset = i->record_region.base_to + place * (uint64_t)KBTP_RECORD_OCTETS,
        .stag = i->record_region.stag};
}

/* The oldest request that may be answered by a record, and was sent after `request_id`. */
static const struct kbtp_pending *oldest_after(const struct kbtp_initiator *i, uint64_t request_id)
{
    const struct kbtp_pending *oldest = NULL;
    for (uint32_t place = 0; place < i->depth; place++) {
        const struct kbtp_pending *pending = &i->pending[place];
        if ((pending->flags & KBTP_FLAG_RECORD) && pending->request_id > request_id &&
            (!oldest || pending->request_id < oldest->request_id))
            oldest = pending;
    }
    return oldest;
}

/*
 * The immediate means nothing (I-28). Just one record is whole for each that comes: that of a later
 * request may be half written. Answers come in the order of requests (draft: Operations), so it is
 * the oldest of those that have their Request ID.
 */
bool kbtp_record_came(struct kbtp_initiator *i, const struct kbtp_cpu *cpu,
                      struct kbtp_outcome *outcome)
{
    const struct kbtp_pending *pending = i->records ? oldest_after(i, 0) : NULL;
    for (; pending; pending = oldest_after(i, pending->request_id)) {
        uint8_t image[KBTP_RECORD_OCTETS];
        struct kbtp_record record;
        mem_read(cpu->mem, image, slot_of(i, (uint32_t)(pending - i->pending)), sizeof image);
        kbtp_record_decode(image, &record);
        if (record.request_id != pending->request_id)
            continue;
        outcome->by_record = 1;
        return kbtp_answered(i, &record, 0, outcome);
    }
    return false;
}
