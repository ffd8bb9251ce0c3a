/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Direct allocation at the target (draft: Allocation Quotas, Direct Modes): tickets that initiators
 * take by themselves, BIND, and what becomes of tickets that are never bound.
 *
 * Only the worker that serves the session consumes slots of its partition's ring. So what a slot
 * shows it is sure to show until then, and the ring itself says which tickets are unbound.
 */
#include <assert.h>
#include <string.h>

#include "ref/worker_state.h"

#define DEFAULT_LOOKS 4u
#define TICKETS_PER_POLL 16u

static const struct kbtp_partition *partition_of(const struct kbtp_worker *w,
                                                 const struct kbtp_connection *c)
{
    return &w->target->pool.partitions[w->target->sessions.grants[c->session].partition - 1];
}

static uint32_t head_of(const struct kbtp_cpu *cpu, const struct kbtp_ring *ring)
{
    return kbtp_counter_ticket(mem_load64(cpu->mem, ring->head));
}

/* Whoever took a ticket from this one on is gone: it is taken again. No RNIC has anything to do
 * with this Head now, so a CPU may advance it (I-37). */
static void put_head_at(const struct kbtp_cpu *cpu, const struct kbtp_ring *ring, uint32_t ticket)
{
    uint64_t head = mem_load64(cpu->mem, ring->head), good = kbtp_ring_counter(ring, ticket);
    if (head != good)
        mem_fetch_add64(cpu->mem, ring->head, good - head);
}

/* ---- timer ------------------------------------------------------------------------------- */

static uint32_t looks_in_timeout(const struct kbtp_worker *w)
{
    uint32_t looks = w->target->config.ticket_looks;
    return looks != 0 ? looks : DEFAULT_LOOKS;
}

/* Behind those of retention and of probes. */
static uint32_t timer_of(const struct kbtp_worker *w, uint32_t session)
{
    return w->target->sessions.count + w->target->config.max_connections + session;
}

static int arm(const struct kbtp_worker *w, const struct kbtp_cpu *cpu, uint32_t session)
{
    uint64_t timeout = UINT64_C(1000000) * w->target->config.ticket_timeout_ms;
    if (timeout == 0)
        return 0; /* tickets wait for ever */
    return rdma_timer(cpu->rdma, timer_of(w, session), timeout / looks_in_timeout(w));
}

static void wait_for_timer(const struct kbtp_worker *w, const struct kbtp_cpu *cpu,
                           const struct kbtp_connection *c, struct kbtp_tickets *t)
{
    t->at = t->seen = t->expired = 0;
    t->stage = arm(w, cpu, c->session) == 0 ? KBTP_TICKETS_WAIT : KBTP_TICKETS_ARM;
}

void kbtp_tickets_expired(struct kbtp_worker *w, uint32_t session)
{
    for (uint32_t i = 0; i < w->target->config.max_connections; i++) {
        struct kbtp_connection *c = &w->connections[i];
        struct kbtp_tickets *t = kbtp_tickets_of(w, c);
        if (t && c->session == session && t->stage == KBTP_TICKETS_WAIT)
            t->stage = KBTP_TICKETS_LOOK;
    }
}

/* ---- a session begins -------------------------------------------------------------------- */

static bool bind_window(struct kbtp_worker *w, const struct kbtp_cpu *cpu,
                        struct kbtp_connection *c, struct kbtp_tickets *t)
{
    const struct kbtp_partition *partition = partition_of(w, c);
    uint64_t block_size = w->target->config.block_size;
    struct rdma_wr bind = {.op = RDMA_BIND,
                           .bind = {.window = &t->window,
                                    .region = &w->target->region,
                                    .offset = partition->first_block * block_size,
                                    .length = partition->block_count * block_size,
                                    .access = RDMA_REMOTE_WRITE}};
    if (kbtp_sends_post(cpu, &c->sends, kbtp_connection_number(w, c), &bind, KBTP_WR_BIND, 0,
                        NULL) != 0)
        return false;
    t->bound = 1;
    return true;
}

/* Block Offsets are Tagged Offsets of the Partition STag too (I-14). */
static void describe(const struct kbtp_partition *partition, const struct kbtp_tickets *t,
                     uint32_t timeout_ms, struct kbtp_hello_ack *ack)
{
    ack->ticket_timeout_ms = timeout_ms != 0 ? timeout_ms : UINT32_MAX;
    ack->partition = (struct kbtp_direct_descriptor){.stag = t->window.stag,
                                                     .tagged_offset = t->window.base_to,
                                                     .count = partition->block_count};
    ack->ring = (struct kbtp_direct_descriptor){.stag = partition->ring_region.stag,
                                                .tagged_offset = partition->ring_region.base_to,
                                                .count = partition->ring.config.slot_count};
    ack->head = (struct kbtp_direct_descriptor){.stag = partition->head_region.stag,
                                                .tagged_offset = partition->head_region.base_to,
                                                .count = 1};
}

bool kbtp_tickets_begin(struct kbtp_worker *w, const struct kbtp_cpu *cpu,
                        struct kbtp_connection *c, uint16_t *granted, struct kbtp_hello_ack *ack)
{
    struct kbtp_tickets *t = kbtp_tickets_of(w, c);
    bool wanted = t && (*granted & KBTP_FEATURE_DIRECT_ALLOC);
    *granted &= (uint16_t)~KBTP_FEATURE_DIRECT_ALLOC;
    if (!t)
        return true;
    const struct kbtp_partition *partition = partition_of(w, c);
    const struct kbtp_session *session = &w->target->sessions.sessions[c->session];
    t->oldest = (uint32_t)mem_load64(cpu->mem, &session->oldest_ticket);
    t->beyond = t->settled = t->oldest;
    /* Through another connection it may have been turned since the last session ended: an STag that
     * was told once works on all of them (net/rdma.h). */
    put_head_at(cpu, &partition->ring, t->oldest);
    if (!wanted || arm(w, cpu, c->session) != 0)
        return true;
    if (!bind_window(w, cpu, c, t)) {
        kbtp_connection_lost(w, cpu, c);
        return false;
    }
    t->granted = 1;
    t->stage = KBTP_TICKETS_WAIT;
    *granted |= KBTP_FEATURE_DIRECT_ALLOC;
    describe(partition, t, w->target->config.ticket_timeout_ms, ack);
    return true;
}

/* ---- usage ------------------------------------------------------------------------------- */

/* Those taken by the initiator are seen in Head alone. */
bool kbtp_tickets_within_quota(const struct kbtp_worker *w, const struct kbtp_cpu *cpu,
                               const struct kbtp_connection *c, uint32_t usage)
{
    const struct kbtp_tickets *t = kbtp_tickets_of(w, c);
    uint32_t taken = t && t->granted ? head_of(cpu, kbtp_ring_of(w, c)) - t->settled : 0;
    return (uint64_t)usage + taken <= w->target->sessions.grants[c->session].quota;
}

void kbtp_tickets_ask(const struct kbtp_worker *w, const struct kbtp_cpu *cpu,
                      const struct kbtp_connection *c)
{
    struct kbtp_tickets *t = kbtp_tickets_of(w, c);
    t->asked = head_of(cpu, kbtp_ring_of(w, c));
    t->asking = 1;
}

void kbtp_tickets_asked(const struct kbtp_worker *w, const struct kbtp_connection *c)
{
    struct kbtp_tickets *t = kbtp_tickets_of(w, c);
    t->asked = t->asking = 0;
}

bool kbtp_tickets_asking(const struct kbtp_worker *w, const struct kbtp_connection *c)
{
    return kbtp_tickets_of(w, c)->asking;
}

void kbtp_tickets_settle(const struct kbtp_worker *w, const struct kbtp_connection *c)
{
    struct kbtp_tickets *t = kbtp_tickets_of(w, c);
    if (t)
        t->settled++;
}

/* ---- one ticket -------------------------------------------------------------------------- */

/* One that an ALLOC_STORE of this session has taken is no initiator's. */
static bool is_own(const struct kbtp_worker *w, const struct kbtp_connection *c, uint32_t ticket)
{
    for (uint32_t n = 0; n < c->order_count; n++) {
        const struct kbtp_request *request = kbtp_nth_request(w, c, n);
        if (request->alloc.stage == KBTP_ALLOC_WAIT && request->alloc.ticket == ticket)
            return true;
    }
    return false;
}

/* A BIND for it has come, and waits for the requests before it; but not when one of these, an
 * ALLOC_STORE, waits for this ticket's slot: it would for ever (I-18). */
static bool has_bind(const struct kbtp_worker *w, const struct kbtp_connection *c, uint32_t ticket)
{
    uint32_t slots = kbtp_ring_of(w, c)->config.slot_count;
    for (uint32_t n = 0; n < c->order_count; n++) {
        const struct kbtp_request *request = kbtp_nth_request(w, c, n);
        if (request->alloc.stage == KBTP_ALLOC_WAIT &&
            ((request->alloc.ticket - ticket) & (slots - 1)) == 0)
            return false;
        if (request->opcode == KBTP_OP_BIND && request->alloc.ticket == ticket &&
            request->stage != KBTP_STAGE_DONE)
            return true;
    }
    return false;
}

static uint8_t *looks_at(const struct kbtp_worker *w, const struct kbtp_connection *c,
                         uint32_t ticket)
{
    const struct kbtp_partition *partition = partition_of(w, c);
    return &w->looks[partition->first_slot + (ticket & (partition->ring.config.slot_count - 1))];
}

/* Head may not tell it: whoever can advance it can turn it back. */
void kbtp_tickets_consumed(const struct kbtp_worker *w, const struct kbtp_connection *c,
                           uint32_t ticket)
{
    struct kbtp_tickets *t = kbtp_tickets_of(w, c);
    if (t && ticket - t->oldest >= t->beyond - t->oldest)
        t->beyond = ticket + 1;
}

static void consume(struct kbtp_worker *w, const struct kbtp_cpu *cpu, struct kbtp_connection *c,
                    uint32_t ticket)
{
    kbtp_ring_consume(cpu->mem, kbtp_ring_of(w, c), ticket);
    *looks_at(w, c, ticket) = 0;
    kbtp_tickets_consumed(w, c, ticket);
}

/* The slot of an abandoned ticket is consumed, and its block gets a new one. */
static void recycle(struct kbtp_worker *w, const struct kbtp_cpu *cpu, struct kbtp_connection *c,
                    uint32_t ticket, uint64_t block_offset)
{
    consume(w, cpu, c, ticket);
    kbtp_pool_return(cpu->mem, &w->target->pool, &w->deferred, block_offset);
    kbtp_count(w, KBTP_COUNT_RECLAIMED_TICKETS);
}

enum kbtp_status kbtp_tickets_bind(struct kbtp_worker *w, const struct kbtp_cpu *cpu,
                                   struct kbtp_connection *c, const struct kbtp_request *request)
{
    const struct kbtp_ring *ring = kbtp_ring_of(w, c);
    uint32_t ticket = request->alloc.ticket;
    uint32_t before_head = head_of(cpu, ring) - ticket;
    if (before_head == 0 || before_head > INT32_MAX || is_own(w, c, ticket))
        return KBTP_STATUS_MALFORMED; /* the initiator has not taken it (I-08) */
    uint64_t block_offset;
    enum kbtp_slot_state slot = kbtp_ring_look(cpu->mem, ring, ticket, &block_offset);
    if (slot == KBTP_SLOT_PAST)
        return KBTP_STATUS_TICKET_ABANDONED; /* or bound before */
    if (slot == KBTP_SLOT_NOT_FILLED || block_offset != request->block_offset)
        return KBTP_STATUS_MALFORMED;
    if (!kbtp_tickets_within_quota(w, cpu, c, c->usage))
        return KBTP_STATUS_NO_SPACE;
    consume(w, cpu, c, ticket);
    kbtp_tickets_settle(w, c);
    return KBTP_STATUS_OK;
}

/* ---- the Ticket Timeout ------------------------------------------------------------------ */

/* How many looks it has had a block by now. Its time begins when it is first seen taken and its
 * slot filled, whichever is later (I-09). */
static void look_at(struct kbtp_worker *w, const struct kbtp_cpu *cpu, struct kbtp_connection *c,
                    struct kbtp_tickets *t, uint32_t ticket)
{
    uint64_t block_offset;
    enum kbtp_slot_state slot =
        is_own(w, c, ticket) ? KBTP_SLOT_NOT_FILLED
                             : kbtp_ring_look(cpu->mem, kbtp_ring_of(w, c), ticket, &block_offset);
    if (slot == KBTP_SLOT_PAST && ticket == t->oldest)
        t->oldest++;
    if (slot != KBTP_SLOT_FILLED)
        return;
    uint8_t *looks = looks_at(w, c, ticket);
    if (*looks <= looks_in_timeout(w))
        ++*looks;
    if (*looks > looks_in_timeout(w))
        t->expired = 1;
}

/* Only the N oldest can have a block. One that the RNIC is just taking for the target is not to be
 * taken for the initiator's. */
static void begin_to_look(struct kbtp_worker *w, const struct kbtp_cpu *cpu,
                          struct kbtp_connection *c, struct kbtp_tickets *t)
{
    const struct kbtp_ring *ring = kbtp_ring_of(w, c);
    uint32_t unbound = (t->asking ? t->asked : head_of(cpu, ring)) - t->oldest;
    t->at = t->oldest;
    t->seen = t->oldest + (unbound < ring->config.slot_count ? unbound : ring->config.slot_count);
}

static void look(struct kbtp_worker *w, const struct kbtp_cpu *cpu, struct kbtp_connection *c,
                 struct kbtp_tickets *t)
{
    if (t->at == t->seen)
        begin_to_look(w, cpu, c, t);
    for (uint32_t n = 0; n < TICKETS_PER_POLL && t->at != t->seen; n++)
        look_at(w, cpu, c, t, t->at++);
    if (t->at != t->seen)
        return;
    if (t->expired) {
        t->drain = w->target->config.max_connections * (w->send_depth + w->requests);
        t->stage = KBTP_TICKETS_DRAIN;
    } else {
        wait_for_timer(w, cpu, c, t);
    }
}

static void begin_to_reclaim(struct kbtp_tickets *t)
{
    t->at = t->oldest;
    t->stage = KBTP_TICKETS_RECLAIM;
}

/* It has had its block too long, and nothing that was sent in time wants to bind it. */
static bool is_abandoned(const struct kbtp_worker *w, const struct kbtp_cpu *cpu,
                         const struct kbtp_connection *c, uint32_t ticket, uint64_t *block_offset)
{
    return *looks_at(w, c, ticket) > looks_in_timeout(w) && !has_bind(w, c, ticket) &&
           kbtp_ring_look(cpu->mem, kbtp_ring_of(w, c), ticket, block_offset) == KBTP_SLOT_FILLED;
}

static bool one_is_abandoned(const struct kbtp_worker *w, const struct kbtp_cpu *cpu,
                             const struct kbtp_connection *c, const struct kbtp_tickets *t)
{
    uint64_t block_offset;
    for (uint32_t ticket = t->oldest; ticket != t->seen; ticket++)
        if (is_abandoned(w, cpu, c, ticket, &block_offset))
            return true;
    return false;
}

/* What was sent before the time was over has been received by now, and what could be bound is. */
static void drain(struct kbtp_worker *w, const struct kbtp_cpu *cpu, struct kbtp_connection *c,
                  struct kbtp_tickets *t, uint32_t taken, bool emptied)
{
    t->drain -= emptied || taken > t->drain ? t->drain : taken;
    if (t->drain != 0)
        return;
    if (!one_is_abandoned(w, cpu, c, t))
        wait_for_timer(w, cpu, c, t);
    else if (t->bound)
        t->stage = KBTP_TICKETS_REVOKE;
    else
        begin_to_reclaim(t);
}

/* Draft, MUST: before a block is reclaimed no RDMA Write of the initiator can reach it. */
static void revoke(struct kbtp_worker *w, const struct kbtp_cpu *cpu, struct kbtp_connection *c,
                   struct kbtp_tickets *t)
{
    if (kbtp_sends_room(&c->sends) < 2) /* one is for completions */
        return;
    struct rdma_wr invalidate = {.op = RDMA_LOCAL_INV, .imm_stag = t->window.stag};
    t->stage = KBTP_TICKETS_REVOKING;
    if (kbtp_sends_post(cpu, &c->sends, kbtp_connection_number(w, c), &invalidate, KBTP_WR_REVOKE,
                        0, NULL) != 0)
        kbtp_connection_lost(w, cpu, c);
}

void kbtp_tickets_revoked(struct kbtp_worker *w, struct kbtp_connection *c)
{
    struct kbtp_tickets *t = kbtp_tickets_of(w, c);
    assert(t && t->stage == KBTP_TICKETS_REVOKING);
    t->bound = 0;
    begin_to_reclaim(t);
}

static void reclaim_at(struct kbtp_worker *w, const struct kbtp_cpu *cpu, struct kbtp_connection *c,
                       struct kbtp_tickets *t, uint32_t ticket)
{
    uint64_t block_offset;
    if (!is_abandoned(w, cpu, c, ticket, &block_offset))
        return;
    recycle(w, cpu, c, ticket, block_offset);
    kbtp_tickets_settle(w, c);
    if (ticket == t->oldest)
        t->oldest++;
}

static void reclaim(struct kbtp_worker *w, const struct kbtp_cpu *cpu, struct kbtp_connection *c,
                    struct kbtp_tickets *t)
{
    for (uint32_t n = 0; n < TICKETS_PER_POLL && t->at != t->seen; n++)
        reclaim_at(w, cpu, c, t, t->at++);
    if (t->at == t->seen)
        wait_for_timer(w, cpu, c, t);
}

void kbtp_tickets_advance(struct kbtp_worker *w, const struct kbtp_cpu *cpu,
                          struct kbtp_connection *c, uint32_t taken, bool emptied)
{
    struct kbtp_tickets *t = kbtp_tickets_of(w, c);
    if (!t)
        return;
    if (t->stage == KBTP_TICKETS_ARM)
        wait_for_timer(w, cpu, c, t);
    else if (t->stage == KBTP_TICKETS_LOOK)
        look(w, cpu, c, t);
    else if (t->stage == KBTP_TICKETS_DRAIN)
        drain(w, cpu, c, t, taken, emptied);
    if (t->stage == KBTP_TICKETS_REVOKE)
        revoke(w, cpu, c, t);
    else if (t->stage == KBTP_TICKETS_RECLAIM)
        reclaim(w, cpu, c, t);
}

/* ---- the connection has ended ------------------------------------------------------------ */

/*
 * Up to which ticket there may be one that is not bound, or a slot that is consumed though it is
 * behind Head. What Head says is what the initiator has made of it by FetchAdd: it may be far from
 * every ticket that has a block, in either direction.
 */
static uint32_t end_of_tickets(const struct kbtp_cpu *cpu, const struct kbtp_ring *ring,
                               const struct kbtp_tickets *t)
{
    uint32_t taken = head_of(cpu, ring) - t->oldest, consumed = t->beyond - t->oldest;
    uint32_t last = taken > consumed ? taken : consumed;
    uint32_t filled = kbtp_counter_ticket(mem_load64(cpu->mem, ring->tail)) - t->oldest;
    return t->oldest + (last < filled ? last : filled);
}

/* In order: a later one may wait for the free that waits for this one. False: its slot is not
 * filled yet. */
static bool recycle_oldest(struct kbtp_worker *w, const struct kbtp_cpu *cpu,
                           struct kbtp_connection *c, struct kbtp_tickets *t)
{
    uint64_t block_offset;
    enum kbtp_slot_state slot =
        kbtp_ring_look(cpu->mem, kbtp_ring_of(w, c), t->oldest, &block_offset);
    if (slot == KBTP_SLOT_NOT_FILLED)
        return false;
    if (slot == KBTP_SLOT_FILLED)
        recycle(w, cpu, c, t->oldest, block_offset);
    t->oldest++;
    return true;
}

/*
 * Its connection can take no ticket and write nothing any more, and its requests are gone. A ticket
 * that a free was made for gets its block, and is waited for: later frees may wait for its slot.
 * Those beyond have no block coming.
 */
bool kbtp_tickets_end(struct kbtp_worker *w, const struct kbtp_cpu *cpu, struct kbtp_connection *c)
{
    struct kbtp_tickets *t = kbtp_tickets_of(w, c);
    if (!t)
        return true;
    const struct kbtp_ring *ring = kbtp_ring_of(w, c);
    if (t->stage != KBTP_TICKETS_ENDING) {
        if (t->stage != KBTP_TICKETS_OFF)
            rdma_timer(cpu->rdma, timer_of(w, c->session), 0);
        t->seen = end_of_tickets(cpu, ring, t);
        t->stage = KBTP_TICKETS_ENDING;
    }
    for (uint32_t n = 0; n < TICKETS_PER_POLL && t->oldest != t->seen; n++)
        if (!recycle_oldest(w, cpu, c, t))
            return false;
    if (t->oldest != t->seen)
        return false;
    put_head_at(cpu, ring, t->oldest);
    return true;
}

void kbtp_tickets_forget(struct kbtp_worker *w, const struct kbtp_cpu *cpu,
                         struct kbtp_connection *c)
{
    struct kbtp_tickets *t = kbtp_tickets_of(w, c);
    if (!t)
        return;
    const struct kbtp_partition *partition = partition_of(w, c);
    mem_store64(cpu->mem, &w->target->sessions.sessions[c->session].oldest_ticket, t->oldest);
    memset(w->looks + partition->first_slot, 0, partition->ring.config.slot_count);
    *t = (struct kbtp_tickets){.window = {.stag = t->window.stag, .id = t->window.id}};
}
