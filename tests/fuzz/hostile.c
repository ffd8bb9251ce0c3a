/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/fuzz/hostile.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CANARY 0xee

void fuzz_check(bool is_so, const char *what)
{
    if (is_so)
        return;
    fprintf(stderr, "fuzz: it is not so that %s\n", what);
    abort();
}

void hostile_open(struct hostile *it, struct rdma *rdma)
{
    memset(it, 0, sizeof *it);
    fuzz_check(peer_open(&it->peer, rdma) == 0, "a hostile peer finds a device");
    fuzz_check(rdma_reg(rdma, it->data, sizeof it->data,
                        RDMA_LOCAL_WRITE | RDMA_REMOTE_READ | RDMA_REMOTE_WRITE, 0x9000,
                        &it->region) == 0,
               "a hostile peer has memory");
}

void hostile_close(struct hostile *it)
{
    peer_close(&it->peer);
    rdma_dereg(it->peer.rdma, &it->region);
}

/* ---- sending ----------------------------------------------------------------------------- */

void hostile_connect(struct hostile *it, uint32_t receives)
{
    hostile_poll(it);
    if (it->peer.state != PEER_DOWN)
        return;
    it->sent_count = it->answered = 0;
    it->must_end = it->ready = false;
    memset(&it->table, 0, sizeof it->table);
    memset(&it->pool, 0, sizeof it->pool);
    memset(&it->partition, 0, sizeof it->partition);
    memset(&it->ring, 0, sizeof it->ring);
    memset(&it->head, 0, sizeof it->head);
    memset(it->tickets, 0, sizeof it->tickets);
    it->tickets_count = 0;
    it->takes_tickets = it->plays_foul = it->was_looked_at = false;
    it->handle_base = 0;
    it->handle_count = 0;
    it->peer.receives_wanted = receives < PEER_RECEIVES ? receives : PEER_RECEIVES;
    peer_connect(&it->peer, "target");
}

static uint64_t big_endian(const uint8_t *octets, uint32_t count)
{
    uint64_t value = 0;
    for (uint32_t i = 0; i < count; i++)
        value = value << 8 | octets[i];
    return value;
}

static uint64_t little_endian(const uint8_t *octets, uint32_t count)
{
    uint64_t value = 0;
    for (uint32_t i = count; i-- > 0;)
        value = value << 8 | octets[i];
    return value;
}

/* The common header of the draft, read by hand. */
static void remember(struct hostile *it, const uint8_t *octets, uint32_t length)
{
    if (length < KBTP_HEADER_OCTETS) {
        it->must_end = true;
        return;
    }
    it->sent[it->sent_count++] = (struct hostile_sent){
        .version = octets[0],
        .opcode = octets[1],
        .flags = (uint16_t)big_endian(octets + 2, 2),
        .request_id = big_endian(octets + 4, 8),
        .handle = big_endian(octets + 12, 8),
        .handle_le = little_endian(octets + 12, 8),
        .generation = (uint16_t)big_endian(octets + 20, 2),
        .length = length >= 40 ? (uint32_t)big_endian(octets + 36, 4) : 0,
        .length_le = length >= 40 ? (uint32_t)little_endian(octets + 36, 4) : 0,
        .credits = length >= 28 ? (uint16_t)big_endian(octets + 26, 2) : 0,
        .features = length >= 26 ? (uint16_t)big_endian(octets + 24, 2) : 0,
        .ticket = length >= 28 ? (uint32_t)big_endian(octets + 24, 4) : 0,
        .bound = length >= 32 ? (uint32_t)big_endian(octets + 28, 4) : 0,
    };
}

void hostile_send(struct hostile *it, const uint8_t *octets, uint32_t length)
{
    if (it->peer.state != PEER_CONNECTED || it->sent_count == HOSTILE_SENT ||
        length > sizeof it->last)
        return;
    memmove(it->last, octets, length);
    it->last_octets = length;
    if (peer_send(&it->peer, it->last, length) == 0 && it->peer.failed == RDMA_OK)
        remember(it, it->last, length);
}

/* It touches no memory but its own. */
static bool is_harmless(enum rdma_op op, uint32_t length)
{
    return op == RDMA_NOOP || (op == RDMA_WRITE && length == 0);
}

void hostile_rdma(struct hostile *it, enum rdma_op op, uint32_t stag, uint64_t to, uint32_t length)
{
    static const uint8_t canary[8] = {CANARY, CANARY, CANARY, CANARY,
                                      CANARY, CANARY, CANARY, CANARY};
    if (it->peer.state != PEER_CONNECTED)
        return;
    struct rdma_sge sge = {it->data, length, it->region.lkey};
    struct rdma_wr wr = {.op = (uint16_t)op,
                         .flags = RDMA_SIGNALED,
                         .sges = &sge,
                         .sge_count = length != 0,
                         .remote_to = to,
                         .remote_stag = stag,
                         .imm_stag = stag};
    if (op == RDMA_FETCH_ADD)
        wr.fetch_add.add = 1;
    /* net/rdma.h has no protection domains. Who guesses the STag of a Head spoils another's ring;
     * and where RDMA_CAP_INV_REGION is, whoever knows a region's STag can invalidate it for all. */
    if (hostile_knows_as_head(it, stag) ||
        (op == RDMA_SEND_INV && hostile_knows_as_region(it, stag)))
        return;
    memcpy(it->data, canary, sizeof canary);
    if (rdma_post_send(it->peer.rdma, it->peer.conn, &wr, 1) != 0)
        return;
    peer_poll(&it->peer);
    bool may_read = op == RDMA_READ && (it->direct_world || hostile_knows_as_ring(it, stag) ||
                                        (it->partitions && length == 0));
    fuzz_check(may_read || memcmp(it->data, canary, sizeof canary) == 0,
               "no peer reads the target's memory");
    if (may_read && it->peer.failed == RDMA_OK)
        return; /* an STag that was guessed: net/rdma.h has no protection domains */
    /* An immediate is no message: there is nothing to answer. Had the target received the SEND, its
     * answer would answer nothing. */
    if (!is_harmless(op, length))
        it->must_end = true;
}

void hostile_direct_read(struct hostile *it, bool of_table, uint64_t at, uint32_t length)
{
    const struct kbtp_direct_descriptor *granted = of_table ? &it->table : &it->pool;
    const char *octets = of_table ? it->table_octets : it->pool_octets;
    uint32_t there = of_table ? it->table_length : it->pool_length;
    if (it->peer.state != PEER_CONNECTED || granted->stag == 0 || length == 0)
        return;
    struct rdma_sge sge = {it->data, length, it->region.lkey};
    struct rdma_wr wr = {.op = RDMA_READ,
                         .flags = RDMA_SIGNALED,
                         .sges = &sge,
                         .sge_count = 1,
                         .remote_to = granted->tagged_offset + at,
                         .remote_stag = granted->stag};
    memset(it->data, CANARY, length);
    if (rdma_post_send(it->peer.rdma, it->peer.conn, &wr, 1) != 0)
        return;
    peer_poll(&it->peer);
    bool inside = at <= there && length <= there - at, read = it->peer.failed == RDMA_OK;
    if (it->peer.state != PEER_CONNECTED || it->must_end)
        return; /* it was to end anyway */
    fuzz_check(read == inside, "what is granted is read, and no octet more");
    if (read)
        fuzz_check(memcmp(it->data, octets + at, length) == 0, "a read brings what is there");
    else
        it->must_end = true;
}

/* ---- judging ----------------------------------------------------------------------------- */

static bool is_store(uint8_t opcode)
{
    return opcode == KBTP_OP_STORE || opcode == KBTP_OP_ALLOC_STORE || opcode == KBTP_OP_FREE ||
           opcode == KBTP_OP_BIND;
}

static uint16_t next_generation(uint16_t generation)
{
    return generation == UINT16_MAX ? 1 : (uint16_t)(generation + 1);
}

static void judge_hello_ack(struct hostile *it, const struct hostile_sent *sent,
                            const struct kbtp_message *ack)
{
    fuzz_check(!it->ready, "a session has one HELLO_ACK");
    fuzz_check(ack->header.request_id == 0 && ack->header.handle == 0 && ack->header.flags == 0 &&
                   ack->header.generation == 0,
               "the header of a HELLO_ACK is zero");
    if (ack->header.status != KBTP_STATUS_OK) {
        static const struct kbtp_hello_ack zeros;
        fuzz_check(memcmp(&ack->hello_ack, &zeros, sizeof zeros) == 0,
                   "a HELLO_ACK that refuses discloses nothing");
        it->must_end = true;
        return;
    }
    fuzz_check(sent->opcode == KBTP_OP_HELLO && sent->version == 1, "only HELLO makes a session");
    fuzz_check(ack->hello_ack.request_credits != 0 &&
                   ack->hello_ack.request_credits <= sent->credits,
               "Request Credits are at most the Completion Credits");
    uint16_t features = ack->hello_ack.features;
    uint16_t may_have = (it->direct_world ? KBTP_FEATURE_DIRECT_LOAD : 0) |
                        (it->partitions ? KBTP_FEATURE_DIRECT_ALLOC : 0) | KBTP_FEATURE_ADDR_LE;
    fuzz_check((features & ~sent->features & ~KBTP_FEATURE_ADDR_LE) == 0 &&
                   (features & ~may_have) == 0,
               "nobody is granted what it did not ask for, or may not have");
    if (features & KBTP_FEATURE_DIRECT_LOAD) {
        it->table = ack->hello_ack.table;
        it->pool = ack->hello_ack.pool;
    }
    it->ready = true;
    it->handle_base = ack->hello_ack.handle_base;
    it->handle_count = ack->hello_ack.handle_count;
    it->session = (uint32_t)(it->handle_base - it->first_handle) / it->handle_count;
    if (features & KBTP_FEATURE_DIRECT_ALLOC) {
        it->partition = ack->hello_ack.partition;
        it->ring = ack->hello_ack.ring;
        it->head = ack->hello_ack.head;
    }
}

/* It took effect, or something of it was looked at that is not everybody's to know. */
static void judge_range(const struct hostile *it, const struct hostile_sent *sent,
                        const struct kbtp_header *answer)
{
    uint16_t status = answer->status;
    bool has_table = answer->handle - it->first_handle < it->end_handle - it->first_handle;
    bool own = answer->handle - it->handle_base < it->handle_count;
    if (!has_table || (is_store(sent->opcode) && !own))
        fuzz_check(status == KBTP_STATUS_INVALID_HANDLE || status == KBTP_STATUS_MALFORMED,
                   "only handles of its own range are stored to or freed, and of the table loaded");
    if (status == KBTP_STATUS_INVALID_HANDLE || status == KBTP_STATUS_MALFORMED)
        fuzz_check(answer->generation == 0 || (sent->opcode == KBTP_OP_BIND && own),
                   "nothing is told of an entry that was not looked at");
}

/* `sent` expects a Generation. */
static void judge_generation(const struct hostile_sent *sent, const struct kbtp_header *answer)
{
    uint16_t expected = sent->generation;
    bool changed = sent->opcode == KBTP_OP_ALLOC_STORE || sent->opcode == KBTP_OP_FREE ||
                   sent->opcode == KBTP_OP_BIND;
    switch (answer->status) {
    case KBTP_STATUS_INVALID_HANDLE:
    case KBTP_STATUS_MALFORMED:
        break;
    case KBTP_STATUS_STALE_GENERATION:
        fuzz_check(answer->generation != expected, "a stale Generation is another one");
        break;
    case KBTP_STATUS_OK:
        if (changed)
            expected = next_generation(expected);
        /* fall through */
    default:
        if (answer->status != KBTP_STATUS_TOO_LARGE || sent->opcode == KBTP_OP_LOAD)
            fuzz_check(answer->generation == expected, "another Generation is stale");
    }
}

static bool is_status_of(uint8_t opcode, uint16_t status)
{
    switch (status) {
    case KBTP_STATUS_OK:
    case KBTP_STATUS_INVALID_HANDLE:
    case KBTP_STATUS_STALE_GENERATION:
        return opcode == KBTP_OP_LOAD || is_store(opcode);
    case KBTP_STATUS_NOT_VALID:
        return opcode != KBTP_OP_ALLOC_STORE && opcode != KBTP_OP_BIND;
    case KBTP_STATUS_ALREADY_BOUND:
    case KBTP_STATUS_NO_SPACE:
        return opcode == KBTP_OP_ALLOC_STORE || opcode == KBTP_OP_BIND;
    case KBTP_STATUS_TICKET_ABANDONED:
        return opcode == KBTP_OP_BIND;
    case KBTP_STATUS_SEALED:
        return opcode == KBTP_OP_STORE;
    case KBTP_STATUS_NOT_SEALED:
        return opcode == KBTP_OP_LOAD;
    case KBTP_STATUS_TOO_LARGE:
        return opcode != KBTP_OP_FREE;
    default:
        return status == KBTP_STATUS_MALFORMED;
    }
}

/* The ticket was taken, unless Head was turned back since; the block is one of its own. */
static void judge_bind(const struct hostile *it, const struct hostile_sent *sent,
                       const struct kbtp_message *answer)
{
    fuzz_check(it->head.stag != 0, "only who was granted DIRECT_ALLOC binds");
    uint32_t before_head = hostile_head(it) - sent->ticket;
    fuzz_check(it->plays_foul || (before_head != 0 && before_head <= INT32_MAX),
               "only a ticket that was taken is bound");
    fuzz_check(answer->completion.data_length == sent->bound, "so much is bound as was said");
    uint64_t at = answer->completion.block_offset - it->partition.tagged_offset;
    fuzz_check(at < (uint64_t)it->partition.count * it->block_octets && at % it->block_octets == 0,
               "what is bound is a block of the own partition");
}

static void judge_completion(struct hostile *it, const struct hostile_sent *sent,
                             const struct kbtp_message *answer)
{
    const struct kbtp_header *header = &answer->header;
    bool well = header->status == KBTP_STATUS_OK;
    fuzz_check(header->request_id == sent->request_id, "an answer has the Request ID");
    fuzz_check(header->handle == sent->handle || (it->addr_le && header->handle == sent->handle_le),
               "an answer has the Block Handle");
    fuzz_check(header->flags == 0 && answer->completion.reserved == 0, "the reserved is zero");
    fuzz_check(is_status_of(sent->opcode, header->status), "the status is one of this operation");
    fuzz_check(well ||
                   (answer->completion.block_offset == 0 && answer->completion.data_length == 0),
               "a refusal has no block");
    if (!it->ready || sent->version != 1 || sent->opcode == KBTP_OP_HELLO) {
        fuzz_check(header->status == KBTP_STATUS_MALFORMED, "what ends a session is MALFORMED");
        it->must_end = true;
        return;
    }
    judge_range(it, sent, header);
    if (sent->generation != 0)
        judge_generation(sent, header);
    if (well && sent->opcode == KBTP_OP_BIND)
        judge_bind(it, sent, answer);
    uint32_t length =
        it->addr_le && sent->length_le > sent->length ? sent->length_le : sent->length;
    if (well && sent->opcode != KBTP_OP_FREE && sent->opcode != KBTP_OP_BIND)
        fuzz_check(answer->completion.data_length <= length,
                   "no more is loaded than there is room");
}

static void judge(struct hostile *it, const struct kbtp_message *answer)
{
    fuzz_check(it->answered < it->sent_count, "every answer answers a message");
    const struct hostile_sent *sent = &it->sent[it->answered++];
    fuzz_check(answer->header.version == 1, "an answer has Version 1");
    if (answer->header.opcode == KBTP_OP_HELLO_ACK)
        judge_hello_ack(it, sent, answer);
    else if (answer->header.opcode == KBTP_OP_COMPLETION)
        judge_completion(it, sent, answer);
    else
        fuzz_check(false, "an answer is a COMPLETION or a HELLO_ACK");
}

void hostile_poll(struct hostile *it)
{
    struct kbtp_message answer;
    int taken;
    peer_poll(&it->peer);
    while ((taken = peer_take(&it->peer, &answer)) != -EAGAIN) {
        fuzz_check(taken == 0, "an answer is well-formed");
        judge(it, &answer);
    }
}

void hostile_check(const struct hostile *it, bool waits)
{
    if (it->peer.state == PEER_DOWN)
        return;
    fuzz_check(it->peer.state == PEER_CONNECTED, "a connection is there or not");
    fuzz_check(!it->must_end || (waits && it->takes_tickets),
               "a connection ends after what ends it");
    fuzz_check(it->answered == it->sent_count || (waits && it->takes_tickets),
               "every message is answered");
}
