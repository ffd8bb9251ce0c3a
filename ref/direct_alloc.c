/* SPDX-License-Identifier: BSD-3-Clause */
/* Direct Allocation: the initiator takes tickets and writes blocks by itself (draft: Direct Modes;
 * I-03, I-14, I-17, I-19). */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "ref/initiator_state.h"
#include "ref/octets.h"
#include "ref/ring.h"

#define TIMER_REREAD 1u /* 0: ref/back_off.c */
#define TIMER_GIVE_UP 2u
#define DEFAULT_REREAD_NS 20000u
#define DEFAULT_LOOKS 4u

static bool masks(const struct kbtp_initiator *i, const struct rdma_caps *caps)
{
    return !i->unmasked && (caps->bits & RDMA_CAP_MASKED);
}

/* Everybody looks at the Ticket alone; only RDMAP asks for the Add Mask (I-38). */
static bool may_leave_masks(const struct kbtp_initiator *i, const struct rdma_caps *caps)
{
    return i->unmasked || caps->binding != RDMA_BINDING_RDMAP;
}

/* I-14, I-22, I-39: a ring that works, and block offsets that can be checked. */
bool kbtp_direct_alloc_offer_is_good(const struct kbtp_initiator *i, const struct rdma_caps *caps)
{
    const struct kbtp_hello_ack *ack = &i->target;
    uint32_t n = ack->ring.count;
    return (caps->bits & RDMA_CAP_FETCH_ADD) && (masks(i, caps) || may_leave_masks(i, caps)) &&
           n >= KBTP_RING_MIN_SLOTS && n <= KBTP_RING_MAX_SLOTS && (n & (n - 1)) == 0 &&
           ack->partition.count != 0 && ack->partition.count <= n &&
           ack->ring.tagged_offset % KBTP_SLOT_OCTETS == 0 && ack->head.tagged_offset % 8 == 0 &&
           ack->block_size != 0;
}

static bool is_in_partition(const struct kbtp_hello_ack *ack, uint64_t block_offset)
{
    uint64_t from_first = block_offset - ack->partition.tagged_offset;
    return from_first % ack->block_size == 0 && from_first / ack->block_size < ack->partition.count;
}

/* ---- timers ------------------------------------------------------------------------------ */

static uint32_t looks_until_given_up(const struct kbtp_initiator *i)
{
    return i->give_up_looks != 0 ? i->give_up_looks : DEFAULT_LOOKS;
}

/* It is not needed where tickets wait for ever. */
static int arm_give_up(struct kbtp_initiator *i, const struct kbtp_cpu *cpu)
{
    if (i->give_up_armed || i->patient || i->target.ticket_timeout_ms == UINT32_MAX)
        return 0;
    uint64_t half = UINT64_C(500000) * i->target.ticket_timeout_ms;
    uint64_t delay = half / looks_until_given_up(i);
    int failed = rdma_timer(cpu->rdma, TIMER_GIVE_UP, delay != 0 ? delay : 1);
    i->give_up_armed = failed == 0;
    return failed;
}

static int arm_reread(struct kbtp_initiator *i, const struct kbtp_cpu *cpu)
{
    if (i->reread_armed)
        return 0;
    uint32_t delay = i->reread_ns != 0 ? i->reread_ns : DEFAULT_REREAD_NS;
    int failed = rdma_timer(cpu->rdma, TIMER_REREAD, delay);
    i->reread_armed = failed == 0;
    return failed;
}

/* ---- work requests ----------------------------------------------------------------------- */

static int take_ticket(struct kbtp_initiator *i, const struct kbtp_cpu *cpu, uint32_t place)
{
    uint32_t slot_bit = i->target.ring.count * 8; /* bit n + 3 */
    struct rdma_sge sge = {.addr = i->entries + place * KBTP_SLOT_OCTETS,
                           .length = sizeof(uint64_t),
                           .lkey = i->region.lkey};
    struct rdma_wr add = {.op = RDMA_FETCH_ADD,
                          .sges = &sge,
                          .sge_count = 1,
                          .remote_to = i->target.head.tagged_offset,
                          .remote_stag = i->target.head.stag,
                          .fetch_add = {.add = KBTP_COUNTER_ADD_MASKED,
                                        .mask = UINT64_C(0x8000000080000000) | slot_bit}};
    struct rdma_caps caps;
    rdma_caps(cpu->rdma, &caps);
    if (!masks(i, &caps)) {
        add.fetch_add.add = KBTP_COUNTER_ADD_UNMASKED;
        add.fetch_add.mask = 0;
    }
    return kbtp_sends_post(cpu, &i->sends, i->conn, &add, KBTP_WR_READ, place, NULL);
}

/* The slot is computed from the Ticket, whatever the low half of the counter says (I-38). */
static int read_slot(struct kbtp_initiator *i, const struct kbtp_cpu *cpu, uint32_t place)
{
    uint64_t slot = i->direct[place].ticket & (i->target.ring.count - 1);
    return kbtp_direct_read(i, cpu, place, i->target.ring.tagged_offset + slot * KBTP_SLOT_OCTETS,
                            i->target.ring.stag);
}

/* The data, and behind the same doorbell BIND: what was written before a Send is readable when
 * that is received. */
static int write_and_bind(struct kbtp_initiator *i, const struct kbtp_cpu *cpu, uint32_t place)
{
    const struct kbtp_pending *pending = &i->pending[place];
    const struct kbtp_direct *direct = &i->direct[place];
    struct rdma_sge sge = {
        .addr = direct->into, .length = direct->data_length, .lkey = direct->lkey};
    struct rdma_wr write = {.op = RDMA_WRITE,
                            .sges = &sge,
                            .sge_count = 1,
                            .remote_to = direct->block_offset,
                            .remote_stag = i->target.partition.stag};
    struct kbtp_message message = {.header = {.version = KBTP_WIRE_VERSION,
                                              .opcode = KBTP_OP_BIND,
                                              .request_id = pending->request_id,
                                              .handle = pending->handle,
                                              .generation = direct->generation},
                                   .bind = {.block_offset = direct->block_offset,
                                            .ticket = direct->ticket,
                                            .data_length = direct->data_length}};
    struct kbtp_outgoing outgoing = {.message = &message,
                                     .addr_le = i->target.features & KBTP_FEATURE_ADDR_LE};
    return kbtp_sends_post(cpu, &i->sends, i->conn, direct->data_length != 0 ? &write : NULL,
                           KBTP_WR_WRITE, place, &outgoing);
}

/* ---- beginning --------------------------------------------------------------------------- */

static int check(const struct kbtp_initiator *i, const struct kbtp_direct_store *store)
{
    if (!(i->features & KBTP_FEATURE_DIRECT_ALLOC))
        return -ENOTSUP;
    if (store->length > i->target.block_size)
        return -EMSGSIZE;
    if (i->unchecked)
        return 0;
    if (store->handle - i->target.handle_base >= i->target.handle_count)
        return -EINVAL;
    return i->usage >= i->target.allocation_quota ? -EDQUOT : 0;
}

int kbtp_initiator_direct_store(struct kbtp_initiator *initiator, const struct kbtp_cpu *cpu,
                                const struct kbtp_direct_store *store, uint64_t cookie)
{
    struct kbtp_initiator *i = initiator;
    if (i->state != KBTP_INITIATOR_READY)
        return -ENOTCONN;
    int failed = check(i, store);
    if (failed)
        return failed;
    if (kbtp_initiator_credits(i) == 0)
        return -EAGAIN;
    failed = arm_give_up(i, cpu);
    if (failed)
        return failed;
    uint32_t place = kbtp_free_place(i);
    i->pending[place] = (struct kbtp_pending){.request_id = ++i->serial << 16 | place,
                                              .cookie = cookie,
                                              .handle = store->handle,
                                              .opcode = KBTP_OP_BIND,
                                              .length = store->length};
    union {
        const void *from;
        void *into; /* it is only read */
    } data = {.from = store->data};
    i->direct[place] = (struct kbtp_direct){.into = data.into,
                                            .lkey = store->lkey,
                                            .data_length = store->length,
                                            .generation = store->generation,
                                            .stage = KBTP_DIRECT_TICKET};
    failed = kbtp_direct_begun(i, cpu, place, take_ticket(i, cpu, place));
    i->usage += failed == 0;
    return failed;
}

/* ---- going on ---------------------------------------------------------------------------- */

static void give_up(struct kbtp_initiator *i, uint32_t place, struct kbtp_outcome *outcome)
{
    i->features &= (uint16_t)~KBTP_FEATURE_DIRECT_ALLOC;
    i->held++;
    *outcome = (struct kbtp_outcome){.status = KBTP_STATUS_TICKET_ABANDONED};
    kbtp_settle(i, &i->pending[place], outcome);
}

void kbtp_direct_alloc_refused(struct kbtp_initiator *i, uint16_t status)
{
    if (status == KBTP_STATUS_TICKET_ABANDONED) {
        i->features &= (uint16_t)~KBTP_FEATURE_DIRECT_ALLOC;
        i->usage--;
    } else {
        i->held++;
    }
}

static uint32_t ticket_that_came(const struct kbtp_initiator *i, const struct kbtp_cpu *cpu,
                                 uint32_t place)
{
    struct rdma_caps caps;
    uint64_t counter;
    rdma_caps(cpu->rdma, &caps);
    mem_read(cpu->mem, &counter, i->entries + place * KBTP_SLOT_OCTETS, sizeof counter);
    return kbtp_counter_ticket(kbtp_atomic_reply(&caps, counter));
}

static struct kbtp_slot_value slot_that_came(const struct kbtp_initiator *i,
                                             const struct kbtp_cpu *cpu, uint32_t place)
{
    uint8_t image[KBTP_SLOT_OCTETS];
    struct kbtp_slot_value slot;
    mem_read(cpu->mem, image, i->entries + place * KBTP_SLOT_OCTETS, sizeof image);
    kbtp_slot_decode(image, i->target.features & KBTP_FEATURE_ADDR_LE, &slot);
    return slot;
}

/*
 * What the slot shows. A read of 16 octets may bring the Sequence of this ticket with an older
 * Block Offset, or with the empty mark; but once the Sequence was this ticket's, what is read
 * after that is what was written for it (I-03), and the empty mark says that the block was taken
 * back.
 */
static void judge_slot(struct kbtp_direct *direct, const struct kbtp_slot_value *slot,
                       bool *abandoned)
{
    bool again = direct->stage == KBTP_DIRECT_CONFIRM;
    bool empty = slot->block_offset == KBTP_BLOCK_NONE;
    *abandoned = slot->sequence != direct->ticket ? slot->sequence - direct->ticket <= INT32_MAX
                                                  : again && empty;
    if (slot->sequence != direct->ticket)
        direct->stage = KBTP_DIRECT_WAIT;
    else if (again && slot->block_offset == direct->block_offset)
        direct->stage = KBTP_DIRECT_NONE;
    else
        direct->stage = KBTP_DIRECT_CONFIRM;
    direct->block_offset = slot->block_offset;
}

/* The next thing to do, as `stage` says. */
static int go_on(struct kbtp_initiator *i, const struct kbtp_cpu *cpu, uint32_t place)
{
    const struct kbtp_direct *direct = &i->direct[place];
    switch (direct->stage) {
    case KBTP_DIRECT_WAIT:
        kbtp_sends_rest(&i->sends);
        return arm_reread(i, cpu);
    case KBTP_DIRECT_NONE:
        if (!is_in_partition(&i->target, direct->block_offset))
            return -EPROTO;
        return write_and_bind(i, cpu, place);
    default:
        return read_slot(i, cpu, place);
    }
}

bool kbtp_direct_alloc_read(struct kbtp_initiator *i, const struct kbtp_cpu *cpu, uint32_t place,
                            struct kbtp_outcome *outcome)
{
    struct kbtp_direct *direct = &i->direct[place];
    bool abandoned = false;
    if (direct->stage == KBTP_DIRECT_TICKET) {
        direct->ticket = ticket_that_came(i, cpu, place);
        direct->stage = KBTP_DIRECT_SLOT;
    } else {
        struct kbtp_slot_value slot = slot_that_came(i, cpu, place);
        judge_slot(direct, &slot, &abandoned);
    }
    if (abandoned || direct->looks >= looks_until_given_up(i) ||
        !(i->features & KBTP_FEATURE_DIRECT_ALLOC)) {
        give_up(i, place, outcome);
        return true;
    }
    int failed = go_on(i, cpu, place);
    if (failed)
        kbtp_initiator_abort(i, cpu, failed);
    else if (direct->stage == KBTP_DIRECT_NONE) /* the BIND is an ordinary request */
        *direct = (struct kbtp_direct){0};
    return false;
}

uint32_t kbtp_initiator_waiting(const struct kbtp_initiator *initiator)
{
    uint32_t count = 0;
    for (uint32_t place = 0; initiator->direct && place < initiator->depth; place++)
        count += initiator->direct[place].stage == KBTP_DIRECT_WAIT;
    return count;
}

/* ---- timers have expired ----------------------------------------------------------------- */

static void reread(struct kbtp_initiator *i, const struct kbtp_cpu *cpu)
{
    i->reread_armed = 0;
    for (uint32_t place = 0; place < i->depth && i->state == KBTP_INITIATOR_READY; place++) {
        if (i->direct[place].stage != KBTP_DIRECT_WAIT)
            continue;
        i->direct[place].stage = KBTP_DIRECT_SLOT;
        int failed = read_slot(i, cpu, place);
        if (failed)
            kbtp_initiator_abort(i, cpu, failed);
    }
}

/* Those under way are a look older. They see it when what they wait for is there. */
static void grow_older(struct kbtp_initiator *i, const struct kbtp_cpu *cpu)
{
    bool any = false;
    i->give_up_armed = 0;
    for (uint32_t place = 0; place < i->depth; place++) {
        struct kbtp_direct *direct = &i->direct[place];
        if (direct->stage < KBTP_DIRECT_TICKET)
            continue;
        any = true;
        if (direct->looks < looks_until_given_up(i))
            direct->looks++;
    }
    int failed = any && i->state == KBTP_INITIATOR_READY ? arm_give_up(i, cpu) : 0;
    if (failed) /* it could not know any more when to stop writing */
        kbtp_initiator_abort(i, cpu, failed);
}

void kbtp_direct_alloc_expired(struct kbtp_initiator *i, const struct kbtp_cpu *cpu, uint32_t timer)
{
    if (!i->direct)
        return;
    if (timer == TIMER_REREAD)
        reread(i, cpu);
    else if (timer == TIMER_GIVE_UP)
        grow_older(i, cpu);
}

void kbtp_direct_alloc_end(struct kbtp_initiator *i, const struct kbtp_cpu *cpu)
{
    if (i->reread_armed)
        rdma_timer(cpu->rdma, TIMER_REREAD, 0);
    if (i->give_up_armed)
        rdma_timer(cpu->rdma, TIMER_GIVE_UP, 0);
    i->reread_armed = i->give_up_armed = 0;
    i->usage -= i->held < i->usage ? i->held : i->usage;
    i->held = 0;
}
