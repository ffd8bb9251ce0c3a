/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Whatever a peer sends harms nobody else. The octets of an input are a small program: the first
 * one says what the world is like (tests/fuzz/world.h), then come steps. The octet of a step has in
 * bits 3 to 0 what it does, in bit 4 which of the two hostile peers does it, in bits 7 to 5 a small
 * number n; arguments follow. Where octets are missing, zeros are read.
 *
 *    0  send LENGTH octets, which follow        8  disconnect
 *    1  send a request (see send_request())     9  connect, with n - 1 receives, or 16
 *    2  HELLO: ID, CREDITS, FEATURES           10  timer: of worker n & 1, of session n >> 1
 *    3  GOODBYE with Flags n                   11  send the last message n + 1 times more
 *    4  change the next message: OFFSET, VALUE 12  the connection is lost
 *    5  poll worker 0 n + 1 times              13  the good initiator asks something (n)
 *    6  poll worker 1 n + 1 times              14  RDMA itself: KIND, LENGTH, STAG (see use_rdma())
 *    7  poll the peer n + 1 times              15  the next message is longer: DELTA, signed
 */
#include <stddef.h>
#include <string.h>

#include "sim/device.h"
#include "tests/fuzz/world.h"

#define MAX_STEPS 96u
#define MAX_CHANGES 8u

int LLVMFuzzerTestOneInput(const uint8_t *octets, size_t count);

struct program {
    const uint8_t *octets;
    size_t count, at;
    struct world *world;
    struct hostile *hostile; /* who acts */
    uint32_t n;
    /* Of the next message: */
    struct {
        uint8_t offset, value;
    } changes[MAX_CHANGES];
    uint32_t changes_count;
    int32_t longer;
    uint64_t serial; /* Request IDs */
};

static uint8_t next(struct program *p)
{
    return p->at < p->count ? p->octets[p->at++] : 0;
}

/* ---- messages ---------------------------------------------------------------------------- */

/* A message of `length` octets, of which the buffer has more, with the changes that were asked. */
static void send_changed(struct program *p, uint8_t buffer[PEER_OCTETS], uint32_t length)
{
    int64_t changed = (int64_t)length + p->longer;
    length = changed < 0 ? 0 : changed > PEER_OCTETS ? PEER_OCTETS : (uint32_t)changed;
    for (uint32_t i = 0; i < p->changes_count; i++)
        buffer[p->changes[i].offset] = p->changes[i].value;
    p->changes_count = 0;
    p->longer = 0;
    hostile_send(p->hostile, buffer, length);
}

static void send_octets(struct program *p)
{
    uint8_t buffer[PEER_OCTETS] = {0};
    uint32_t length = next(p);
    for (uint32_t i = 0; i < length; i++)
        buffer[i] = next(p);
    send_changed(p, buffer, length);
}

static void send_message(struct program *p, const struct kbtp_message *message, uint32_t data)
{
    uint8_t buffer[PEER_OCTETS] = {0};
    bool addr_le = p->hostile->addr_le && message->header.opcode != KBTP_OP_HELLO;
    int length = kbtp_wire_encode(message, addr_le, buffer, sizeof buffer);
    if (length < 0)
        return;
    for (uint32_t i = 0; i < data; i++)
        buffer[(uint32_t)length + i] = (uint8_t)(0x30 + i);
    send_changed(p, buffer, (uint32_t)length + data);
}

/* Its own ID, that of anybody, or the good initiator's, which has a connection: it is refused. */
static void send_hello(struct program *p)
{
    static const uint8_t ids[] = {2, 3, 2, 3, 0x77, 1, 2, 0};
    uint8_t id = next(p);
    struct kbtp_message hello = peer_hello(ids[id % sizeof ids], next(p));
    hello.hello.requested_features = next(p);
    if (id & 0x80)
        hello.hello.completion_credits = UINT16_MAX;
    send_message(p, &hello, 0);
}

/* Half of them in the range that the peer has, or would have. */
static uint64_t choose_handle(const struct hostile *hostile, uint8_t choice)
{
    static const uint64_t extremes[] = {
        0,          UINT64_MAX, UINT64_C(1) << 63, UINT64_C(1) << 32,
        UINT32_MAX, 1,          UINT64_MAX - 15,   INT64_MAX};
    uint64_t n = choice & 15;
    uint64_t base = hostile->handle_count ? hostile->handle_base : hostile->first_handle + 16;
    switch (choice >> 4) {
    case 8:
    case 9:
    case 10:
        return hostile->first_handle + n; /* the good initiator's */
    case 11:
        return hostile->first_handle + 16 + n;
    case 12:
        return hostile->first_handle + 32 + n;
    case 13:
        return hostile->first_handle - 1 - n;
    case 14:
        return hostile->end_handle + n;
    case 15:
        return extremes[n % 8];
    default:
        return base + n;
    }
}

static uint32_t choose_length(uint8_t choice)
{
    static const uint32_t extremes[] = {UINT32_MAX, 1u << 31, INT32_MAX, 4096,
                                        65536,      1u << 20, 513,       256};
    return choice < 248 ? choice % 128 : extremes[choice - 248];
}

static uint16_t choose_generation(struct world *world, uint64_t handle, uint8_t choice)
{
    uint16_t now = world_generation(world, handle);
    const uint16_t choices[8] = {0,     0, 0, now, now, (uint16_t)(now + 1), (uint16_t)(now - 1),
                                 0xffff};
    return choices[choice & 7];
}

static uint32_t choose_stag(const struct hostile *hostile, uint8_t choice)
{
    const uint32_t choices[4] = {hostile->region.stag, hostile->region.stag,
                                 hostile->peer.region.stag, choice};
    return choices[choice & 3];
}

/* KIND (opcode; bits 7 to 3: Flags), HANDLE, LENGTH, GENERATION (bits 2 to 0; 5 to 3: Tagged
 * Offset), STAG. */
static void send_request(struct program *p)
{
    static const uint8_t opcodes[8] = {KBTP_OP_LOAD,        KBTP_OP_STORE, KBTP_OP_ALLOC_STORE,
                                       KBTP_OP_FREE,        KBTP_OP_BIND,  KBTP_OP_COMPLETION,
                                       KBTP_OP_ALLOC_STORE, KBTP_OP_LOAD};
    uint8_t kind = next(p), handle = next(p), length = next(p), choice = next(p), stag = next(p);
    const uint64_t offsets[8] = {0, 0, 0, 8, HOSTILE_DATA - 8, HOSTILE_DATA, UINT64_MAX - 0x9000,
                                 1};
    struct kbtp_message message =
        peer_request(opcodes[kind & 7], ++p->serial, choose_handle(p->hostile, handle), kind >> 3);
    message.header.generation = choose_generation(p->world, message.header.handle, choice);
    uint32_t data = 0;
    if (opcodes[kind & 7] < KBTP_OP_FREE) {
        message.operands.data = (struct kbtp_data_descriptor){
            .tagged_offset = p->hostile->region.base_to + offsets[choice >> 3 & 7],
            .stag = choose_stag(p->hostile, stag),
            .length = choose_length(length)};
        data = message.header.flags & KBTP_FLAG_INLINE ? message.operands.data.length : 0;
    }
    send_message(p, &message, data < 128 ? data : 128);
}

static void send_goodbye(struct program *p)
{
    struct kbtp_message message = peer_request(KBTP_OP_GOODBYE, ++p->serial, 0, (uint16_t)p->n);
    send_message(p, &message, 0);
}

static void send_again(struct program *p)
{
    uint8_t copy[PEER_OCTETS];
    memcpy(copy, p->hostile->last, sizeof copy);
    for (uint32_t i = 0; i <= p->n; i++)
        hostile_send(p->hostile, copy, p->hostile->last_octets);
}

/* ---- steps ------------------------------------------------------------------------------- */

/* BIND of the n-th last ticket to handle `handle`: its own Block Offset, or one nearby. */
static void send_bind(struct program *p, uint32_t n, uint8_t handle, uint8_t how)
{
    struct hostile_ticket *ticket = hostile_nth_ticket(p->hostile, n);
    static const int32_t elsewhere[8] = {0, 0, 0, 0, 64, -64, 8, 1 << 20};
    static const uint32_t lengths[4] = {64, 0, 65, 17};
    struct kbtp_message message =
        peer_request(KBTP_OP_BIND, ++p->serial, choose_handle(p->hostile, handle), 0);
    message.header.generation =
        choose_generation(p->world, message.header.handle, how & 0x40 ? 3 + (how & 1) : 0);
    message.bind = (struct kbtp_bind){
        .block_offset = ticket->block_offset + (uint64_t)(int64_t)elsewhere[how & 7],
        .ticket = ticket->ticket + (how & 0x80 ? how >> 5 & 1 ? 1 : UINT32_MAX : 0),
        .data_length = lengths[how >> 3 & 3]};
    send_message(p, &message, 0);
}

/* KIND (bits 2 to 0; 5 to 3: of the ticket that was taken n tickets ago), LENGTH, STAG. */
static void use_tickets(struct program *p, uint8_t kind, uint8_t length, uint8_t stag)
{
    static const uint64_t adds[8] = {KBTP_COUNTER_ADD_UNMASKED,
                                     0,
                                     UINT64_C(0xffffffff00000000),
                                     1,
                                     UINT64_MAX,
                                     1ULL << 63,
                                     UINT64_C(0x4000000000000000),
                                     0x1000};
    static const uint64_t masks[4] = {0, UINT64_C(0x8000000080000000), UINT64_MAX, 1ULL << 35};
    uint32_t n = kind >> 3 & 7;
    switch (kind & 7) {
    case 0:
        hostile_takes_ticket(p->hostile);
        break;
    case 1:
        hostile_add_to_head(p->hostile, adds[stag & 7] * (length ? length : 1), masks[stag >> 6]);
        break;
    case 2:
        hostile_reads_slot(p->hostile, n);
        break;
    case 3:
        hostile_writes_block(p->hostile, n, stag, length);
        break;
    case 4:
        hostile_writes(p->hostile, 4 * (int64_t)stag - 64, length);
        break;
    case 5:
        send_bind(p, n, length, stag);
        break;
    case 6:
        for (uint32_t i = 0; i <= n; i++) {
            world_ticket_timer(p->world, 1 + (length & 1));
            for (uint32_t k = 0; k < stag % 16; k++)
                pair_poll_worker(&p->world->pair, k % 2);
        }
        break;
    default: /* all of it */
        hostile_takes_ticket(p->hostile);
        hostile_reads_slot(p->hostile, 0);
        hostile_writes_block(p->hostile, 0, 0, 64);
        send_bind(p, 0, length, stag);
        break;
    }
}

/* KIND with bit 6: see use_tickets(); with bit 4: a Read of what was granted, bit 3 says of what,
 * at 4 * STAG; else any operation. With bit 5 it uses an STag that was granted. */
static void use_rdma(struct program *p)
{
    static const enum rdma_op ops[8] = {RDMA_WRITE, RDMA_WRITE_IMM, RDMA_READ, RDMA_FETCH_ADD,
                                        RDMA_CAS,   RDMA_SEND_INV,  RDMA_NOOP, RDMA_WRITE_IMM};
    uint8_t kind = next(p), length = next(p), stag = next(p);
    if (kind & 64) {
        use_tickets(p, kind, length, stag);
        return;
    }
    if (kind & 16) {
        hostile_direct_read(p->hostile, kind & 8, UINT64_C(4) * stag, length);
        return;
    }
    const struct kbtp_direct_descriptor *granted =
        kind & 8 ? &p->hostile->table : &p->hostile->pool;
    enum rdma_op op = ops[kind & 7];
    bool atomic = op == RDMA_FETCH_ADD || op == RDMA_CAS;
    bool known = (kind & 32) && granted->stag != 0;
    hostile_rdma(p->hostile, op, known ? granted->stag : stag,
                 known      ? granted->tagged_offset
                 : kind & 8 ? 0x100000
                            : 0,
                 atomic            ? 8
                 : op == RDMA_NOOP ? 0
                                   : length);
}

static void change_next(struct program *p)
{
    uint8_t offset = next(p), value = next(p);
    if (p->changes_count == MAX_CHANGES)
        return;
    p->changes[p->changes_count].offset = offset;
    p->changes[p->changes_count++].value = value;
}

static void poll_worker(struct program *p, uint32_t worker)
{
    for (uint32_t i = 0; i <= p->n; i++)
        pair_poll_worker(&p->world->pair, worker);
}

static void step(struct program *p, uint8_t octet)
{
    p->hostile = &p->world->hostiles[octet >> 4 & 1];
    p->n = octet >> 5;
    switch (octet & 15) {
    case 0:
        send_octets(p);
        break;
    case 1:
        send_request(p);
        break;
    case 2:
        send_hello(p);
        break;
    case 3:
        send_goodbye(p);
        break;
    case 4:
        change_next(p);
        break;
    case 5:
    case 6:
        poll_worker(p, (octet & 15) - 5);
        break;
    case 7:
        for (uint32_t i = 0; i <= p->n; i++)
            hostile_poll(p->hostile);
        break;
    case 8:
        peer_disconnect(&p->hostile->peer);
        break;
    case 9:
        hostile_connect(p->hostile, p->n ? p->n - 1 : PEER_RECEIVES);
        break;
    case 10:
        world_timer(p->world, p->n & 1, p->n >> 1);
        break;
    case 11:
        send_again(p);
        break;
    case 12:
        if (p->hostile->peer.state != PEER_DOWN)
            sim_device_cut(p->hostile->peer.rdma, p->hostile->peer.conn);
        break;
    case 13:
        world_good_asks(p->world, p->n);
        break;
    case 14:
        use_rdma(p);
        break;
    default:
        p->longer = (next(p) ^ 0x80) - 0x80;
        break;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *octets, size_t count)
{
    static struct world world;
    struct program program = {.octets = octets, .count = count, .world = &world};
    world_open(&world, next(&program));
    for (uint32_t steps = 0; steps < MAX_STEPS && program.at < count; steps++)
        step(&program, next(&program));
    world_settle(&world);
    world_check(&world);
    world_forgets_hostiles(&world);
    world_close(&world);
    return 0;
}
