/* SPDX-License-Identifier: BSD-3-Clause */
/* What a hostile peer does with DIRECT_ALLOC past the target: it takes tickets, reads slots, and
 * writes blocks. Whatever it writes, no octet changes but where it may write. */
#include <string.h>

#include "tests/fuzz/hostile.h"

#define POOL_MOST 1024u
#define WRITTEN 0xdd

uint32_t hostile_head(const struct hostile *it)
{
    const struct kbtp_ring *ring = &it->partitions[it->session].ring;
    return kbtp_counter_ticket(*(const uint64_t *)ring->head);
}

struct hostile_ticket *hostile_nth_ticket(struct hostile *it, uint32_t n)
{
    return &it->tickets[(it->tickets_count - 1 - n) % HOSTILE_TICKETS];
}

bool hostile_knows_as_head(const struct hostile *it, uint32_t stag)
{
    for (uint32_t i = 0; it->partitions && i < it->partitions_count; i++)
        if (it->partitions[i].head_region.stag == stag)
            return true;
    return false;
}

bool hostile_knows_as_ring(const struct hostile *it, uint32_t stag)
{
    for (uint32_t i = 0; it->partitions && i < it->partitions_count; i++)
        if (it->partitions[i].ring_region.stag == stag)
            return true;
    return false;
}

bool hostile_knows_as_region(const struct hostile *it, uint32_t stag)
{
    return hostile_knows_as_head(it, stag) || hostile_knows_as_ring(it, stag) ||
           (it->direct_world &&
            (stag == it->target->table_region.stag || stag == it->target->pool_region.stag)) ||
           (it->partition.stag != 0 && stag == it->partition.stag);
}

/* One operation of its own. Did it end well? No answer: the connection was to end anyway. */
static bool does(struct hostile *it, const struct rdma_wr *what, uint32_t length, bool *well)
{
    struct rdma_sge sge = {it->data, length, it->region.lkey};
    struct rdma_wr wr = *what;
    wr.flags = RDMA_SIGNALED;
    wr.sges = &sge;
    wr.sge_count = length != 0;
    if (it->peer.state != PEER_CONNECTED || it->head.stag == 0 ||
        rdma_post_send(it->peer.rdma, it->peer.conn, &wr, 1) != 0)
        return false;
    peer_poll(&it->peer);
    *well = it->peer.failed == RDMA_OK;
    if (it->peer.state != PEER_CONNECTED || it->must_end)
        return false;
    it->must_end = !*well;
    return true;
}

void hostile_add_to_head(struct hostile *it, uint64_t add, uint64_t mask)
{
    const struct rdma_wr wr = {.op = RDMA_FETCH_ADD,
                               .remote_to = it->head.tagged_offset,
                               .remote_stag = it->head.stag,
                               .fetch_add = {.add = add, .mask = mask}};
    bool well;
    it->takes_tickets = it->plays_foul = it->head.stag != 0;
    if (does(it, &wr, 8, &well))
        fuzz_check(well, "the own Head can be advanced");
}

void hostile_takes_ticket(struct hostile *it)
{
    const struct rdma_wr wr = {
        .op = RDMA_FETCH_ADD,
        .remote_to = it->head.tagged_offset,
        .remote_stag = it->head.stag,
        .fetch_add = {.add = KBTP_COUNTER_ADD_MASKED,
                      .mask = UINT64_C(0x8000000080000000) | it->ring.count * 8}};
    bool well;
    uint64_t counter;
    it->takes_tickets |= it->head.stag != 0;
    if (!does(it, &wr, 8, &well))
        return;
    fuzz_check(well, "a ticket can be taken");
    memcpy(&counter, it->data, sizeof counter);
    it->tickets_count++;
    *hostile_nth_ticket(it, 0) = (struct hostile_ticket){.ticket = kbtp_counter_ticket(counter)};
}

void hostile_reads_slot(struct hostile *it, uint32_t n)
{
    struct hostile_ticket *ticket = hostile_nth_ticket(it, n);
    uint32_t number = it->ring.count ? ticket->ticket % it->ring.count : 0;
    const struct rdma_wr wr = {.op = RDMA_READ,
                               .remote_to =
                                   it->ring.tagged_offset + (uint64_t)number * KBTP_SLOT_OCTETS,
                               .remote_stag = it->ring.stag};
    struct kbtp_slot_value slot;
    bool well;
    if (!does(it, &wr, KBTP_SLOT_OCTETS, &well))
        return;
    fuzz_check(well, "the own ring can be read");
    const struct kbtp_ring *ring = &it->partitions[it->session].ring;
    fuzz_check(memcmp(it->data, &ring->slots[number], KBTP_SLOT_OCTETS) == 0,
               "a slot is read as it is");
    kbtp_slot_decode(it->data, it->addr_le, &slot);
    ticket->filled = slot.sequence == ticket->ticket && slot.block_offset != KBTP_BLOCK_NONE;
    ticket->block_offset = slot.block_offset;
}

static bool asked_to_bind(const struct hostile *it, uint32_t ticket)
{
    for (uint32_t i = 0; i < it->sent_count; i++)
        if (it->sent[i].opcode == KBTP_OP_BIND && it->sent[i].ticket == ticket)
            return true;
    return false;
}

/* A ticket whose block it has seen and which it never asked to be bound: when the block is gone, it
 * was abandoned, and the right to write with it. */
static bool was_abandoned(const struct hostile *it)
{
    const struct kbtp_ring *ring = &it->partitions[it->session].ring;
    for (uint32_t n = 0; n < HOSTILE_TICKETS && !it->plays_foul; n++) {
        const struct hostile_ticket *ticket = &it->tickets[n];
        struct kbtp_slot_value slot;
        if (!ticket->filled || asked_to_bind(it, ticket->ticket))
            continue;
        kbtp_slot_decode((const uint8_t *)kbtp_ring_slot(ring, ticket->ticket), it->addr_le, &slot);
        if (slot.sequence != ticket->ticket || slot.block_offset == KBTP_BLOCK_NONE)
            return true;
    }
    return false;
}

void hostile_writes(struct hostile *it, int64_t at, uint32_t length)
{
    const struct rdma_wr wr = {.op = RDMA_WRITE,
                               .remote_to = it->partition.tagged_offset + (uint64_t)at,
                               .remote_stag = it->partition.stag};
    char before[POOL_MOST];
    bool well;
    if (length == 0 || length > HOSTILE_DATA || it->head.stag == 0)
        return;
    const struct kbtp_partition *partition = &it->partitions[it->session];
    uint32_t octets = partition->block_count * it->block_octets;
    bool inside = at >= 0 && at + length <= octets;
    uint32_t first = partition->first_block * it->block_octets + (uint32_t)(inside ? at : 0);
    memcpy(before, it->pool_octets, it->pool_length);
    memset(it->data, WRITTEN, length);
    bool abandoned = was_abandoned(it), judged = does(it, &wr, length, &well);
    if (judged && (well || !it->was_looked_at))
        fuzz_check(well == inside, "the own partition can be written, and no octet more");
    if (judged && well) {
        fuzz_check(!abandoned, "nothing is written after a ticket was abandoned");
        memset(before + first, WRITTEN, length);
    }
    if (judged)
        fuzz_check(memcmp(before, it->pool_octets, it->pool_length) == 0,
                   "a write changes what it is for");
}

void hostile_writes_block(struct hostile *it, uint32_t n, uint32_t at, uint32_t length)
{
    const struct hostile_ticket *ticket = hostile_nth_ticket(it, n);
    if (ticket->filled)
        hostile_writes(it, (int64_t)(ticket->block_offset - it->partition.tagged_offset) + at,
                       length);
}
