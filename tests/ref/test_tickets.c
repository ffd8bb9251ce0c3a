/* SPDX-License-Identifier: BSD-3-Clause */
/* Tickets that a hand-made initiator takes (draft: Direct Modes, Allocation Quotas): what BIND
 * checks, and what becomes of tickets that are not bound. */
#include <string.h>

#include "tests/ref/direct.h"
#include "tests/ref/peer.h"

/* Behind those of retention and of probes; ref/tickets.c. */
static uint32_t timer_of(uint32_t session)
{
    return pair.target.sessions.count + pair.config.target.max_connections + session;
}

/* The Ticket Timeout's timer of session i expires once, wherever it is served. */
static bool look(uint32_t i)
{
    bool expired = false;
    for (uint32_t worker = 0; worker < pair.config.workers; worker++)
        expired |= provider->expire(pair.worker_cpus[worker].rdma, timer_of(i));
    pair_settle(&pair);
    return expired;
}

/* ---- a hand-made initiator --------------------------------------------------------------- */

static struct peer peer;
static struct kbtp_hello_ack ack;

static void move(void)
{
    for (uint32_t n = 0; n < 100; n++) {
        pair_poll(&pair);
        peer_poll(&peer);
    }
}

static void greet(void)
{
    struct kbtp_message hello = peer_hello(1, 4), answer;
    hello.hello.requested_features = KBTP_FEATURE_DIRECT_ALLOC;
    CU_ASSERT_EQUAL_FATAL(peer_connect(&peer, "target"), 0);
    move();
    CU_ASSERT_EQUAL_FATAL(peer_send_message(&peer, &hello), 0);
    move();
    CU_ASSERT_EQUAL_FATAL(peer_take(&peer, &answer), 0);
    CU_ASSERT_EQUAL_FATAL(answer.header.status, KBTP_STATUS_OK);
    CU_ASSERT_EQUAL_FATAL(answer.hello_ack.features, KBTP_FEATURE_DIRECT_ALLOC);
    ack = answer.hello_ack;
}

/* It has session 0, with 6 blocks. */
static void open_raw(void)
{
    struct pair_config config = with_direct_alloc();
    config.initiators = 2;
    config.quotas[0] = 6;
    open_with(&config);
    CU_ASSERT_EQUAL_FATAL(peer_open(&peer, another_handle()), 0);
    greet();
}

static void hang_up(void)
{
    peer_disconnect(&peer);
    move();
    CU_ASSERT_EQUAL(peer.state, PEER_DOWN);
}

static void close_raw(void)
{
    hang_up();
    peer_close(&peer);
    close_pair();
}

static void post(const struct rdma_wr *wr)
{
    struct rdma_wr signaled = *wr;
    signaled.flags |= RDMA_SIGNALED;
    CU_ASSERT_EQUAL_FATAL(rdma_post_send(peer.rdma, peer.conn, &signaled, 1), 0);
    move();
}

static void add_to_head(uint64_t add, uint64_t mask)
{
    struct rdma_sge sge = {peer.sends, 8, peer.region.lkey};
    struct rdma_wr wr = {.op = RDMA_FETCH_ADD,
                         .sges = &sge,
                         .sge_count = 1,
                         .remote_to = ack.head.tagged_offset,
                         .remote_stag = ack.head.stag,
                         .fetch_add = {.add = add, .mask = mask}};
    post(&wr);
}

static uint32_t take_ticket(void)
{
    uint64_t counter;
    if (pair.target.config.unmasked)
        add_to_head(KBTP_COUNTER_ADD_UNMASKED, 0);
    else
        add_to_head(KBTP_COUNTER_ADD_MASKED, UINT64_C(0x8000000080000000) | ack.ring.count * 8);
    memcpy(&counter, peer.sends, sizeof counter);
    return kbtp_counter_ticket(counter);
}

static struct kbtp_slot_value read_slot(uint32_t ticket)
{
    struct rdma_sge sge = {peer.sends, KBTP_SLOT_OCTETS, peer.region.lkey};
    struct rdma_wr read = {.op = RDMA_READ,
                           .sges = &sge,
                           .sge_count = 1,
                           .remote_to = ack.ring.tagged_offset + ticket % ack.ring.count * 16,
                           .remote_stag = ack.ring.stag};
    struct kbtp_slot_value slot;
    post(&read);
    kbtp_slot_decode(peer.sends, false, &slot);
    return slot;
}

static void write_block(uint64_t block_offset, uint8_t octet)
{
    struct rdma_sge sge = {peer.sends, 64, peer.region.lkey};
    struct rdma_wr write = {.op = RDMA_WRITE,
                            .sges = &sge,
                            .sge_count = 1,
                            .remote_to = block_offset,
                            .remote_stag = ack.partition.stag};
    memset(peer.sends, octet, 64);
    post(&write);
}

static void send_bind(uint32_t n, uint32_t ticket, uint64_t block_offset, uint32_t length)
{
    struct kbtp_message message = peer_request(KBTP_OP_BIND, 500 + n, ack.handle_base + n, 0);
    message.bind =
        (struct kbtp_bind){.block_offset = block_offset, .ticket = ticket, .data_length = length};
    CU_ASSERT_EQUAL_FATAL(peer_send_message(&peer, &message), 0);
}

static enum kbtp_status answer_to(uint32_t n)
{
    struct kbtp_message answer;
    CU_ASSERT_EQUAL_FATAL(peer_take(&peer, &answer), 0);
    CU_ASSERT_EQUAL(answer.header.opcode, KBTP_OP_COMPLETION);
    CU_ASSERT_EQUAL(answer.header.request_id, 500 + n);
    return (enum kbtp_status)answer.header.status;
}

static enum kbtp_status bind(uint32_t n, uint32_t ticket, uint64_t block_offset, uint32_t length)
{
    send_bind(n, ticket, block_offset, length);
    move();
    return answer_to(n);
}

/* All blocks of session 0 are free: a ticket each, and none beyond. */
static void expect_free(uint32_t count)
{
    CU_ASSERT_EQUAL(ticket_of(ring_of(0)->tail) - ticket_of(ring_of(0)->head), count);
    for (uint32_t k = 0; k < count; k++) {
        uint32_t sequence, ticket = ticket_of(ring_of(0)->head) + k;
        CU_ASSERT(block_in(0, ticket, &sequence) >= 0);
        CU_ASSERT_EQUAL(sequence, ticket);
    }
}

/* Wrong peer: R-DA-05 to -08, -11, -12, R-SEC-07 (I-08). What BIND refuses has no effect: the
 * ticket can still be bound. */
static void what_bind_checks(void)
{
    open_raw();
    uint32_t t = take_ticket();
    struct kbtp_slot_value slot = read_slot(t), next = read_slot(t + 1);
    write_block(slot.block_offset, 0x77);
    CU_ASSERT_EQUAL(bind(16, t, slot.block_offset, 64), KBTP_STATUS_INVALID_HANDLE);
    CU_ASSERT_EQUAL(bind(0, t, slot.block_offset, 65), KBTP_STATUS_TOO_LARGE);
    CU_ASSERT_EQUAL(bind(0, t + 1, next.block_offset, 64), KBTP_STATUS_MALFORMED); /* not taken */
    CU_ASSERT_EQUAL(bind(0, t - 1, slot.block_offset, 64), KBTP_STATUS_TICKET_ABANDONED);
    CU_ASSERT_EQUAL(bind(0, t, next.block_offset, 64), KBTP_STATUS_MALFORMED);
    CU_ASSERT_EQUAL(bind(0, t, slot.block_offset + 16, 64), KBTP_STATUS_MALFORMED);
    CU_ASSERT_EQUAL(bind(0, t + 8, slot.block_offset, 64), KBTP_STATUS_MALFORMED);
    CU_ASSERT_EQUAL(usage_of(0), 0);
    CU_ASSERT_EQUAL(read_slot(t).block_offset, slot.block_offset);
    CU_ASSERT_EQUAL(bind(0, t, slot.block_offset, 64), KBTP_STATUS_OK);
    CU_ASSERT_EQUAL(bind(0, t, slot.block_offset, 64), KBTP_STATUS_ALREADY_BOUND);
    CU_ASSERT_EQUAL(bind(1, t, slot.block_offset, 64), KBTP_STATUS_TICKET_ABANDONED);
    CU_ASSERT_EQUAL(usage_of(0), 1);
    close_raw();
}

/* Wrong peer: R-QUOTA-16, -17, R-DA-07. More tickets than the quota: refused, and nothing is
 * lost. */
static void beyond_the_quota(void)
{
    open_raw();
    uint32_t first = take_ticket();
    for (uint32_t k = 1; k < 20; k++)
        CU_ASSERT_EQUAL(take_ticket(), first + k);
    CU_ASSERT_EQUAL(bind(0, first, read_slot(first).block_offset, 64), KBTP_STATUS_NO_SPACE);
    CU_ASSERT_EQUAL(usage_of(0), 0);
    hang_up();
    pair_settle(&pair);
    expect_free(6);
    greet();
    uint32_t again = take_ticket();
    CU_ASSERT_EQUAL(again, first + 6); /* the others are nobody's, and are taken again */
    CU_ASSERT_EQUAL(bind(0, again, read_slot(again).block_offset, 64), KBTP_STATUS_OK);
    close_raw();
}

/* The same while all that it may have is bound: its tickets get no block any more, and the next
 * session takes them again. */
static void beyond_the_quota_and_all_bound(void)
{
    open_raw();
    for (uint32_t n = 0; n < 6; n++) {
        uint32_t t = take_ticket();
        CU_ASSERT_EQUAL(bind(n, t, read_slot(t).block_offset, 64), KBTP_STATUS_OK);
    }
    for (uint32_t k = 0; k < 9; k++)
        take_ticket();
    hang_up();
    greet();
    struct kbtp_message free_it = peer_request(KBTP_OP_FREE, 500, ack.handle_base, 0);
    CU_ASSERT_EQUAL(peer_send_message(&peer, &free_it), 0);
    move();
    CU_ASSERT_EQUAL(answer_to(0), KBTP_STATUS_OK);
    expect_free(1);
    uint32_t t = take_ticket();
    CU_ASSERT_EQUAL(t, 6);
    CU_ASSERT_EQUAL(bind(0, t, read_slot(t).block_offset, 64), KBTP_STATUS_OK);
    close_raw();
}

/* Wrong peer: R-SESS-24, -25, R-DA-09, R-RING-11. The Partition STag is for its own blocks and for
 * this connection, the Ring STag for reading, and the Head for FetchAdd alone. */
static void what_the_stags_open(void)
{
    for (uint32_t i = 0; i < 5; i++) {
        open_raw();
        uint64_t first = ack.partition.tagged_offset, end = first + UINT64_C(6) * 64;
        struct rdma_sge sge = {peer.sends, 8, peer.region.lkey};
        const struct rdma_wr wrong[] = {
            {.op = RDMA_WRITE, .remote_to = first - 8, .remote_stag = ack.partition.stag},
            {.op = RDMA_WRITE, .remote_to = end - 4, .remote_stag = ack.partition.stag},
            {.op = RDMA_READ, .remote_to = first, .remote_stag = ack.partition.stag},
            {.op = RDMA_WRITE, .remote_to = ack.ring.tagged_offset, .remote_stag = ack.ring.stag},
            {.op = RDMA_READ, .remote_to = ack.head.tagged_offset, .remote_stag = ack.head.stag},
        };
        struct rdma_wr wr = wrong[i];
        wr.sges = &sge;
        wr.sge_count = 1;
        post(&wr);
        CU_ASSERT_EQUAL(peer.failed, RDMA_REMOTE_ACCESS);
        CU_ASSERT_EQUAL(peer.state, PEER_DOWN);
        pair_settle(&pair);
        expect_free(6);
        close_raw();
    }
}

/* What is there after the session that has played with its Head is as good as new. */
static void expect_all_can_be_bound(void)
{
    hang_up();
    pair_settle(&pair);
    expect_free(6);
    greet();
    for (uint32_t n = 0; n < 6; n++) {
        uint32_t t = take_ticket();
        CU_ASSERT_EQUAL(bind(n, t, read_slot(t).block_offset, 64), KBTP_STATUS_OK);
    }
    close_raw();
}

/* Wrong peer: R-QUOTA-17, -18. Whatever an initiator adds to its Head, also when an ALLOC_STORE of
 * its own waits for a ticket that has had its block: the session ends, and nothing is lost. */
static void a_head_that_was_turned(void)
{
    static const uint64_t adds[] = {
        UINT64_C(5) << 32, UINT64_C(1) << 62, UINT64_C(1) << 63,           0x30,
        UINT64_MAX,        UINT64_MAX << 32,  UINT64_C(0xc000000000000000)};
    for (uint32_t i = 0; i < sizeof adds / sizeof *adds; i++) {
        open_raw();
        uint32_t t = take_ticket();
        add_to_head(adds[i], 0);
        enum kbtp_status status = bind(0, t, read_slot(t).block_offset, 64);
        CU_ASSERT(status == KBTP_STATUS_OK || status == KBTP_STATUS_MALFORMED ||
                  status == KBTP_STATUS_NO_SPACE);
        hang_up();
        greet();
        struct kbtp_message free_it = peer_request(KBTP_OP_FREE, 500, ack.handle_base, 0);
        CU_ASSERT_EQUAL(peer_send_message(&peer, &free_it), 0);
        move();
        CU_ASSERT_EQUAL(answer_to(0),
                        status == KBTP_STATUS_OK ? KBTP_STATUS_OK : KBTP_STATUS_NOT_VALID);
        expect_all_can_be_bound();
    }
}

static void a_head_that_was_turned_back(void)
{
    open_raw();
    take_ticket();
    take_ticket();
    uint32_t t = take_ticket();
    CU_ASSERT_EQUAL(bind(0, t, read_slot(t).block_offset, 64), KBTP_STATUS_OK);
    add_to_head(UINT64_MAX << 32, 0);
    struct kbtp_message store = peer_request(KBTP_OP_ALLOC_STORE, 501, ack.handle_base + 1, 0);
    CU_ASSERT_EQUAL(peer_send_message(&peer, &store), 0); /* is given the third one again */
    struct kbtp_message free_it = peer_request(KBTP_OP_FREE, 500, ack.handle_base, 0);
    CU_ASSERT_EQUAL(peer_send_message(&peer, &free_it), 0);
    move();
    hang_up();
    pair_settle(&pair);
    expect_free(5);
    greet();
    CU_ASSERT_EQUAL(peer_send_message(&peer, &free_it), 0);
    move();
    CU_ASSERT_EQUAL(answer_to(0), KBTP_STATUS_OK);
    expect_all_can_be_bound();
}

/* Wrong peer: R-QUOTA-17. The STag of a Head works on every connection of the device: who was told
 * it can use it when the session is over. The next one has all of its tickets. */
static void a_head_that_was_turned_between_sessions(void)
{
    static const uint64_t adds[] = {UINT64_C(5) << 32, UINT64_C(1) << 63, UINT64_MAX << 32, 0x30};
    struct kbtp_hello_ack told;
    for (uint32_t i = 0; i < sizeof adds / sizeof *adds; i++) {
        open_raw();
        told = ack;
        hang_up();
        CU_ASSERT_EQUAL_FATAL(peer_connect(&peer, "target"), 0); /* it says no HELLO */
        move();
        ack = told;
        add_to_head(adds[i], 0);
        hang_up();
        greet();
        expect_free(6);
        expect_all_can_be_bound();
    }
}

/* ---- the Ticket Timeout ------------------------------------------------------------------ */

/* R-QUOTA-06, -10 to -15, R-ST-11: a ticket is bound in time, or its block goes back when nobody
 * can write it any more; that is said to a late BIND, and the session has no direct writes from
 * then on. */
static void a_ticket_is_abandoned(void)
{
    open_raw();
    uint32_t t = take_ticket(), u = take_ticket(), sequence;
    struct kbtp_slot_value slot = read_slot(t), other = read_slot(u);
    write_block(slot.block_offset, 0x11);
    write_block(other.block_offset, 0x22);
    for (uint32_t n = 0; n < LOOKS; n++) {
        CU_ASSERT(look(0));
        move();
        CU_ASSERT_EQUAL(read_slot(t).block_offset, slot.block_offset);
    }
    CU_ASSERT_EQUAL(bind(1, u, other.block_offset, 64), KBTP_STATUS_OK); /* just in time */
    CU_ASSERT(look(0));
    move();
    CU_ASSERT_EQUAL(block_in(0, t, &sequence), -1);
    CU_ASSERT_EQUAL(sequence, t);
    expect_free(5);
    CU_ASSERT_EQUAL(bind(0, t, slot.block_offset, 64), KBTP_STATUS_TICKET_ABANDONED);
    CU_ASSERT_EQUAL(usage_of(0), 1);
    /* The unit is there again, and requests are served as before. */
    struct kbtp_message stored = peer_request(KBTP_OP_ALLOC_STORE, 502, ack.handle_base + 2, 0);
    CU_ASSERT_EQUAL(peer_send_message(&peer, &stored), 0);
    move();
    CU_ASSERT_EQUAL(answer_to(2), KBTP_STATUS_OK);
    /* No direct write reaches any block, and what it tries is the end (I-17). */
    write_block(other.block_offset, 0x33);
    CU_ASSERT_EQUAL(peer.failed, RDMA_REMOTE_ACCESS);
    pair_settle(&pair);
    greet();
    uint32_t v = take_ticket();
    write_block(read_slot(v).block_offset, 0x44);
    CU_ASSERT_EQUAL(bind(3, v, read_slot(v).block_offset, 64), KBTP_STATUS_OK);
    close_raw();
}

/* I-17: data that was written before the invalidation may be bound after it. */
static void another_ticket_after_the_invalidation(void)
{
    open_raw();
    uint32_t t = take_ticket();
    for (uint32_t n = 0; n < LOOKS; n++)
        look(0);
    uint32_t u = take_ticket();
    struct kbtp_slot_value slot = read_slot(u);
    write_block(slot.block_offset, 0x22);
    look(0);
    move();
    uint32_t sequence;
    CU_ASSERT_EQUAL(block_in(0, t, &sequence), -1);
    CU_ASSERT_EQUAL(bind(1, u, slot.block_offset, 64), KBTP_STATUS_OK);
    close_raw();
}

/* I-09: a ticket that waits for a block is not abandoned, however long; its time begins with the
 * block. */
static void a_ticket_without_a_block_until(bool bound_in_time)
{
    open_raw();
    for (uint32_t n = 0; n < 6; n++) {
        uint32_t t = take_ticket();
        CU_ASSERT_EQUAL(bind(n, t, read_slot(t).block_offset, 64), KBTP_STATUS_OK);
    }
    struct kbtp_message free_it = peer_request(KBTP_OP_FREE, 500, ack.handle_base, 0);
    uint32_t t = take_ticket(); /* one too many, for a while */
    for (uint32_t n = 0; n < 3 * LOOKS; n++)
        CU_ASSERT(look(0));
    CU_ASSERT_EQUAL(peer_send_message(&peer, &free_it), 0);
    move();
    CU_ASSERT_EQUAL(answer_to(0), KBTP_STATUS_OK);
    struct kbtp_slot_value slot = read_slot(t);
    CU_ASSERT_EQUAL(slot.sequence, t);
    for (uint32_t n = 0; n < LOOKS; n++)
        CU_ASSERT(look(0));
    if (bound_in_time) {
        CU_ASSERT_EQUAL(bind(0, t, slot.block_offset, 64), KBTP_STATUS_OK);
    } else { /* it was not forgotten: its block goes back */
        CU_ASSERT(look(0));
        move();
        expect_free(1);
        CU_ASSERT_EQUAL(bind(0, t, slot.block_offset, 64), KBTP_STATUS_TICKET_ABANDONED);
    }
    close_raw();
}

static void a_ticket_without_a_block(void)
{
    a_ticket_without_a_block_until(true);
    a_ticket_without_a_block_until(false);
}

/* A block is written, and the next look is the last. */
static uint32_t take_and_write(struct kbtp_slot_value *slot)
{
    uint32_t t = take_ticket();
    *slot = read_slot(t);
    write_block(slot->block_offset, 0x55);
    for (uint32_t n = 0; n < LOOKS; n++)
        look(0);
    return t;
}

/* The BIND that was sent is good, and the right to write was not taken away. */
static void expect_nothing_abandoned(void)
{
    move();
    CU_ASSERT_EQUAL(answer_to(0), KBTP_STATUS_OK);
    uint32_t u = take_ticket();
    write_block(read_slot(u).block_offset, 0x66);
    CU_ASSERT_EQUAL(bind(1, u, read_slot(u).block_offset, 64), KBTP_STATUS_OK);
}

/* R-QUOTA-11, I-20: a BIND that has arrived when the time is over is handled first, and then there
 * is nothing to abandon. */
static void a_bind_at_the_timeout(void)
{
    struct kbtp_slot_value slot;
    open_raw();
    uint32_t t = take_and_write(&slot);
    send_bind(0, t, slot.block_offset, 64);
    CU_ASSERT(look(0)); /* the event, and behind it the message */
    expect_nothing_abandoned();
    close_raw();
}

/* R-QUOTA-11, I-20: the last look is over, and then a BIND comes that was on its way: what has been
 * received is handled before anything is taken back. */
static void a_bind_after_the_last_look(void)
{
    struct kbtp_slot_value slot;
    open_raw();
    uint32_t t = take_and_write(&slot);
    for (uint32_t worker = 0; worker < pair.config.workers; worker++)
        if (provider->expire(pair.worker_cpus[worker].rdma, timer_of(0)))
            pair_poll_worker(&pair, worker); /* once: it looks, and decides nothing */
    send_bind(0, t, slot.block_offset, 64);
    expect_nothing_abandoned();
    close_raw();
}

/* I-18: an ALLOC_STORE waits for the slot of an older ticket, whose BIND is behind it. After the
 * Ticket Timeout that is abandoned; until then a STORE between them holds nothing that others need
 * (one staging block is all there is). */
static void a_bind_behind_what_waits_for_it(void)
{
    struct pair_config config = with_direct_alloc();
    config.initiators = 2;
    config.workers = 1;
    config.target.staging = 1;
    open_with(&config);
    CU_ASSERT_EQUAL_FATAL(peer_open(&peer, another_handle()), 0);
    greet();
    CU_ASSERT_EQUAL_FATAL(pair_connect(&pair, 1), 0);
    uint32_t t = take_ticket();
    struct kbtp_slot_value slot = read_slot(t);
    struct kbtp_message free_it = peer_request(KBTP_OP_FREE, 500, ack.handle_base, 0);
    for (uint32_t k = 1; k < 8; k++) {
        uint32_t u = take_ticket();
        CU_ASSERT_EQUAL(bind(0, u, read_slot(u).block_offset, 64), KBTP_STATUS_OK);
        if (k == 7)
            break; /* it stays */
        CU_ASSERT_EQUAL(peer_send_message(&peer, &free_it), 0);
        move();
        CU_ASSERT_EQUAL(answer_to(0), KBTP_STATUS_OK);
    }
    struct kbtp_message next = peer_request(KBTP_OP_ALLOC_STORE, 501, ack.handle_base + 1, 0);
    CU_ASSERT_EQUAL(peer_send_message(&peer, &next), 0); /* the eighth: of the first one's slot */
    next = peer_request(KBTP_OP_STORE, 500, ack.handle_base, 0);
    next.operands.data =
        (struct kbtp_data_descriptor){.tagged_offset = pair.initiators[0].region.base_to,
                                      .stag = pair.initiators[0].region.stag,
                                      .length = 64};
    CU_ASSERT_EQUAL(peer_send_message(&peer, &next), 0);
    send_bind(2, t, slot.block_offset, 64);
    move();
    expect_status(run(1, KBTP_OP_ALLOC_STORE, 0, 64, 0), KBTP_STATUS_OK);
    expect_status(run(1, KBTP_OP_STORE, 0, 64, 0), KBTP_STATUS_OK);
    for (uint32_t n = 0; n <= LOOKS; n++)
        CU_ASSERT(look(0));
    move();
    CU_ASSERT_EQUAL(answer_to(1), KBTP_STATUS_OK);
    CU_ASSERT_EQUAL(answer_to(0), KBTP_STATUS_OK);
    CU_ASSERT_EQUAL(answer_to(2), KBTP_STATUS_TICKET_ABANDONED);
    CU_ASSERT_EQUAL(usage_of(0), 2);
    hang_up();
    peer_close(&peer);
    close_pair();
}

int main(void)
{
    static const struct test tests[] = {
        {"what BIND checks", what_bind_checks},
        {"beyond the quota", beyond_the_quota},
        {"beyond the quota, and all bound", beyond_the_quota_and_all_bound},
        {"what the STags open", what_the_stags_open},
        {"a Head that was turned", a_head_that_was_turned},
        {"a Head that was turned back", a_head_that_was_turned_back},
        {"a Head that was turned between sessions", a_head_that_was_turned_between_sessions},
        {"a ticket is abandoned", a_ticket_is_abandoned},
        {"another ticket after the invalidation", another_ticket_after_the_invalidation},
        {"a ticket without a block", a_ticket_without_a_block},
        {"a BIND at the timeout", a_bind_at_the_timeout},
        {"a BIND after the last look", a_bind_after_the_last_look},
        {"a BIND behind what waits for it", a_bind_behind_what_waits_for_it},
    };
    return run_over_capable("ref/tickets", tests, sizeof tests / sizeof *tests,
                            RDMA_CAP_WINDOW | RDMA_CAP_FETCH_ADD);
}
