/* SPDX-License-Identifier: BSD-3-Clause */
/* Counters and gauges of a target (draft: Operational Considerations): each moves as it should and
 * no other does (R-OPER-03). */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "ref/counters.h"
#include "tests/ref/fixture.h"
#include "tests/ref/peer.h"

static struct kbtp_counters counted[PAIR_WORKERS];
static struct kbtp_counters due; /* what the sum over all workers must be */
static struct peer peer;

/* ---- what is expected -------------------------------------------------------------------- */

static struct kbtp_counters sum(void)
{
    struct kbtp_counters all = {0};
    for (uint32_t i = 0; i < pair.config.workers; i++)
        kbtp_worker_counters(pair.workers[i], &all);
    return all;
}

static void owe(enum kbtp_counter counter, uint64_t more)
{
    due.values[counter] += more;
}

static void owe_answer(enum kbtp_counted_opcode row, enum kbtp_status status)
{
    due.requests[row][status]++;
}

/* Everything is as it must be: what moved and what did not. */
static void expect_counters(void)
{
    struct kbtp_counters all = sum();
    for (uint32_t i = 0; i < KBTP_COUNTERS; i++) {
        if (all.values[i] != due.values[i])
            fprintf(stderr, "counter %u is %llu\n", i, (unsigned long long)all.values[i]);
        CU_ASSERT_EQUAL(all.values[i], due.values[i]);
    }
    for (uint32_t row = 0; row < KBTP_COUNTED_OPCODES; row++)
        for (uint32_t status = 0; status < KBTP_COUNTED_STATUSES; status++) {
            if (all.requests[row][status] != due.requests[row][status])
                fprintf(stderr, "row %u, status %u is %llu\n", row, status,
                        (unsigned long long)all.requests[row][status]);
            CU_ASSERT_EQUAL(all.requests[row][status], due.requests[row][status]);
        }
}

static void settle(void)
{
    for (uint32_t n = 0; n < 100; n++) {
        pair_poll(&pair);
        peer_poll(&peer);
    }
}

static void settle_up(void)
{
    settle();
    expect_counters();
}

static struct kbtp_gauges gauges_with(struct kbtp_session_gauges *sessions)
{
    struct kbtp_gauges gauges;
    kbtp_target_gauges(&pair.mem, &pair.target, sessions, &gauges);
    for (uint32_t i = 0; i < pair.config.workers; i++)
        kbtp_worker_gauges(pair.workers[i], &gauges);
    return gauges;
}

static int64_t gauge(enum kbtp_gauge which)
{
    return gauges_with(NULL).values[which];
}

static int64_t sessions_in(enum kbtp_session_state state)
{
    return gauges_with(NULL).values[KBTP_GAUGE_SESSIONS + state];
}

/* ---- opening and closing ----------------------------------------------------------------- */

static struct pair_config plain_config(void)
{
    struct pair_config config = pair_defaults();
    config.unchecked = true;
    config.quotas[1] = 1;
    config.target.retention_ns = 5000;
    return config;
}

/* All workers count from the beginning; nobody is connected. */
static void open_counting(const struct pair_config *config)
{
    memset(counted, 0, sizeof counted);
    due = (struct kbtp_counters){0};
    open_with(config);
    CU_ASSERT_EQUAL_FATAL(peer_open(&peer, another_handle()), 0);
    for (uint32_t i = 0; i < config->workers; i++)
        kbtp_worker_count_in(pair.workers[i], &counted[i]);
}

static void close_counting(void)
{
    peer_close(&peer);
    close_pair();
}

/* Initiator i has a new session now. */
static void connect_it(uint32_t i, enum kbtp_counter opened)
{
    CU_ASSERT_EQUAL_FATAL(pair_connect(&pair, i), 0);
    owe(KBTP_COUNT_ACCEPTED, 1);
    owe(opened, 1);
    owe_answer(KBTP_COUNTED_HELLO, KBTP_STATUS_OK);
}

/* As plain_config() says, with all three initiators. */
static void open_three(void)
{
    struct pair_config config = plain_config();
    open_counting(&config);
    for (uint32_t i = 0; i < 3; i++)
        connect_it(i, KBTP_COUNT_OPENED);
    settle_up();
}

/* ---- operations -------------------------------------------------------------------------- */

/* An operation of initiator i, which is answered with `status`. */
static void answered(uint32_t i, uint8_t opcode, uint32_t n, uint32_t length, uint16_t flags,
                     enum kbtp_status status)
{
    expect_status(run(i, opcode, n, length, flags), status);
    owe_answer(kbtp_counted_opcode(opcode), status);
}

/* R-OPER-03: by Opcode and Status, and the octets of those that were OK. */
static void operations(void)
{
    open_three();
    fill(0, 0x11);
    answered(0, KBTP_OP_ALLOC_STORE, 0, 32, KBTP_FLAG_SEAL, KBTP_STATUS_OK);
    owe(KBTP_COUNT_STORED_READ, 32);
    expect_counters();
    answered(0, KBTP_OP_ALLOC_STORE, 1, 16, KBTP_FLAG_INLINE, KBTP_STATUS_OK);
    owe(KBTP_COUNT_STORED_INLINE, 16);
    expect_counters();
    answered(0, KBTP_OP_ALLOC_STORE, 0, 8, 0, KBTP_STATUS_ALREADY_BOUND);
    answered(0, KBTP_OP_ALLOC_STORE, 20, 8, 0, KBTP_STATUS_INVALID_HANDLE);
    answered(0, KBTP_OP_ALLOC_STORE, 2, 65, 0, KBTP_STATUS_TOO_LARGE);
    answered(1, KBTP_OP_ALLOC_STORE, 0, 0, 0, KBTP_STATUS_OK); /* no octets at all */
    answered(1, KBTP_OP_ALLOC_STORE, 1, 8, 0, KBTP_STATUS_NO_SPACE);
    expect_counters();
    answered(0, KBTP_OP_STORE, 1, 24, 0, KBTP_STATUS_OK);
    owe(KBTP_COUNT_STORED_READ, 24);
    expect_counters();
    answered(0, KBTP_OP_STORE, 1, 8, KBTP_FLAG_INLINE, KBTP_STATUS_OK);
    owe(KBTP_COUNT_STORED_INLINE, 8);
    answered(0, KBTP_OP_STORE, 0, 8, 0, KBTP_STATUS_SEALED);
    answered(0, KBTP_OP_STORE, 2, 8, KBTP_FLAG_INLINE, KBTP_STATUS_NOT_VALID);
    answered(0, KBTP_OP_STORE, 20, 8, 0, KBTP_STATUS_INVALID_HANDLE);
    expect_counters();
    answered(0, KBTP_OP_LOAD, 0, 64, 0, KBTP_STATUS_OK);
    owe(KBTP_COUNT_LOADED, 32);
    expect_counters();
    answered(0, KBTP_OP_LOAD, 1, 64, KBTP_FLAG_ALLOW_UNSEALED, KBTP_STATUS_OK);
    owe(KBTP_COUNT_LOADED, 8);
    answered(0, KBTP_OP_LOAD, 1, 64, 0, KBTP_STATUS_NOT_SEALED);
    answered(0, KBTP_OP_LOAD, 2, 64, 0, KBTP_STATUS_NOT_VALID);
    answered(0, KBTP_OP_LOAD, 0, 31, 0, KBTP_STATUS_TOO_LARGE);
    answered(0, KBTP_OP_LOAD, 99, 64, 0, KBTP_STATUS_INVALID_HANDLE);
    expect_counters();
    struct kbtp_operation stale = pair_operation(&pair, 0, KBTP_OP_FREE, 1, 0, 0);
    stale.generation = 9;
    expect_status(pair_do(&pair, 0, &stale), KBTP_STATUS_STALE_GENERATION);
    owe_answer(KBTP_COUNTED_FREE, KBTP_STATUS_STALE_GENERATION);
    answered(0, KBTP_OP_FREE, 2, 0, 0, KBTP_STATUS_NOT_VALID);
    answered(0, KBTP_OP_FREE, 1, 0, 0, KBTP_STATUS_OK);
    settle_up();
    close_counting();
}

/* ---- messages that no good initiator sends ----------------------------------------------- */

static void send_message(const struct kbtp_message *message)
{
    CU_ASSERT_EQUAL_FATAL(peer_send_message(&peer, message), 0);
    settle();
}

/* Its first octets only. */
static void send_part(const struct kbtp_message *message, uint32_t octets)
{
    uint8_t image[PEER_OCTETS];
    CU_ASSERT_FATAL(kbtp_wire_encode(message, false, image, sizeof image) >= (int)octets);
    CU_ASSERT_EQUAL_FATAL(peer_send(&peer, image, octets), 0);
    settle();
}

static void connect_peer(void)
{
    CU_ASSERT_EQUAL_FATAL(peer_connect(&peer, "target"), 0);
    settle();
    CU_ASSERT_EQUAL_FATAL(peer.state, PEER_CONNECTED);
    owe(KBTP_COUNT_ACCEPTED, 1);
    expect_counters();
}

/* With the Initiator ID of initiator 2, which stays away. */
static void say_hello(enum kbtp_counter opened)
{
    struct kbtp_message hello = peer_hello(3, 4);
    connect_peer();
    send_message(&hello);
    owe(opened, 1);
    owe_answer(KBTP_COUNTED_HELLO, KBTP_STATUS_OK);
    expect_counters();
}

/* R-OPER-03: what is not well-formed, and what ends the connection. None of that is a loss. */
static void malformed(void)
{
    bool immediates = can(RDMA_CAP_IMM);
    struct pair_config config = plain_config();
    open_counting(&config);
    struct kbtp_message load = peer_request(KBTP_OP_LOAD, 1, 0x4020, 0);
    struct kbtp_message bind = peer_request(KBTP_OP_BIND, 2, 0x4020, 0);
    say_hello(KBTP_COUNT_OPENED);
    send_part(&load, KBTP_HEADER_OCTETS); /* without its descriptor */
    owe(KBTP_COUNT_MALFORMED, 1);
    owe_answer(KBTP_COUNTED_LOAD, KBTP_STATUS_MALFORMED);
    expect_counters();
    send_message(&bind); /* well-formed, but not granted */
    owe_answer(KBTP_COUNTED_BIND, KBTP_STATUS_MALFORMED);
    expect_counters();
    send_part(&load, KBTP_HEADER_OCTETS - 1);
    owe(KBTP_COUNT_MALFORMED, 1);
    owe(KBTP_COUNT_RETAINED, 1);
    expect_counters();
    CU_ASSERT_EQUAL(peer.state, PEER_DOWN);

    say_hello(KBTP_COUNT_RESTORED);
    uint8_t other[KBTP_HEADER_OCTETS] = {9, KBTP_OP_LOAD};
    CU_ASSERT_EQUAL_FATAL(peer_send(&peer, other, sizeof other), 0);
    owe(KBTP_COUNT_MALFORMED, 1);
    owe(KBTP_COUNT_RETAINED, 1);
    owe_answer(KBTP_COUNTED_OTHER, KBTP_STATUS_MALFORMED);
    settle_up();
    CU_ASSERT_EQUAL(peer.state, PEER_DOWN);

    say_hello(KBTP_COUNT_RESTORED);
    if (immediates) {
        struct rdma_wr immediate = {.op = RDMA_WRITE_IMM, .flags = RDMA_SIGNALED};
        CU_ASSERT_EQUAL_FATAL(rdma_post_send(peer.rdma, peer.conn, &immediate, 1), 0);
    } else { /* something else that nobody can answer */
        send_part(&load, KBTP_HEADER_OCTETS - 1);
    }
    owe(KBTP_COUNT_MALFORMED, 1);
    owe(KBTP_COUNT_RETAINED, 1);
    settle_up();
    CU_ASSERT_EQUAL(peer.state, PEER_DOWN);

    connect_peer(); /* something else before HELLO */
    struct kbtp_message free = peer_request(KBTP_OP_FREE, 3, 0x4020, 0);
    send_message(&free);
    owe_answer(KBTP_COUNTED_FREE, KBTP_STATUS_MALFORMED);
    expect_counters();
    close_counting();
}

/* ---- sessions and connections ------------------------------------------------------------ */

static void lose(uint32_t i)
{
    settle();
    provider->cut(pair.initiators[i].cpu.rdma, 0); /* its only one */
    settle();
    CU_ASSERT_FATAL(pair_is_down(&pair, i));
    owe(KBTP_COUNT_LOST, 1);
}

/* R-OPER-03: opened, restored, refused, ended and expired sessions. */
static void sessions(void)
{
    struct pair_config config = plain_config();
    open_counting(&config);
    CU_ASSERT_EQUAL(sessions_in(KBTP_SESSION_FREE), 3);
    for (uint32_t i = 0; i < 3; i++)
        connect_it(i, KBTP_COUNT_OPENED);
    settle_up();
    CU_ASSERT_EQUAL(sessions_in(KBTP_SESSION_ACTIVE), 3);
    CU_ASSERT_EQUAL(gauge(KBTP_GAUGE_CONNECTIONS), 3);

    connect_peer(); /* with the ID of an active one */
    struct kbtp_message hello = peer_hello(3, 4);
    send_message(&hello);
    owe(KBTP_COUNT_REFUSED, 1);
    owe_answer(KBTP_COUNTED_HELLO, KBTP_STATUS_INTERNAL);
    expect_counters();
    connect_peer(); /* without a credit */
    hello = peer_hello(3, 0);
    send_message(&hello);
    owe(KBTP_COUNT_REFUSED, 1);
    owe_answer(KBTP_COUNTED_HELLO, KBTP_STATUS_MALFORMED);
    expect_counters();
    connect_peer(); /* and nothing said at all */
    peer_disconnect(&peer);
    owe(KBTP_COUNT_LOST, 1);
    settle_up();

    for (uint32_t n = 0; n < 3; n++)
        answered(0, KBTP_OP_ALLOC_STORE, n, 8, KBTP_FLAG_INLINE, KBTP_STATUS_OK);
    owe(KBTP_COUNT_STORED_INLINE, 24);
    lose(0);
    owe(KBTP_COUNT_RETAINED, 1);
    expect_counters();
    CU_ASSERT_EQUAL(sessions_in(KBTP_SESSION_RETAINED), 1);
    CU_ASSERT_EQUAL(sessions_in(KBTP_SESSION_ACTIVE), 2);
    connect_it(0, KBTP_COUNT_RESTORED);
    settle_up();
    CU_ASSERT_EQUAL(pair_goodbye(&pair, 0, false), 0);
    owe_answer(KBTP_COUNTED_GOODBYE, KBTP_STATUS_OK);
    owe(KBTP_COUNT_RETAINED, 1);
    settle_up();
    for (uint32_t i = 0; i < 2; i++)
        provider->expire(pair.worker_cpus[i].rdma, 0); /* the older one ends nothing */
    owe(KBTP_COUNT_EXPIRED, 1);
    owe(KBTP_COUNT_RELEASED_BLOCKS, 3);
    settle_up();
    CU_ASSERT_EQUAL(sessions_in(KBTP_SESSION_FREE), 1);

    answered(1, KBTP_OP_ALLOC_STORE, 5, 8, KBTP_FLAG_INLINE, KBTP_STATUS_OK);
    owe(KBTP_COUNT_STORED_INLINE, 8);
    CU_ASSERT_EQUAL(pair_goodbye(&pair, 1, true), 0);
    owe_answer(KBTP_COUNTED_GOODBYE, KBTP_STATUS_OK);
    owe(KBTP_COUNT_RELEASED, 1);
    owe(KBTP_COUNT_RELEASED_BLOCKS, 1);
    settle_up();
    CU_ASSERT_EQUAL(sessions_in(KBTP_SESSION_FREE), 2);
    close_counting();
}

/* R-OPER-03: who finds no room, or comes too late; a target that stops has not lost anybody. */
static void rejections(void)
{
    struct pair_config config = plain_config();
    config.workers = 1;
    config.target.max_connections = 2;
    open_counting(&config);
    connect_it(0, KBTP_COUNT_OPENED);
    connect_it(1, KBTP_COUNT_OPENED);
    CU_ASSERT_EQUAL(pair_connect(&pair, 2), -ECONNREFUSED);
    owe(KBTP_COUNT_REJECTED, 1);
    settle_up();
    kbtp_worker_stop(pair.workers[0], &pair.worker_cpus[0]);
    owe(KBTP_COUNT_RETAINED, 2);
    settle_up();
    CU_ASSERT_EQUAL(pair_connect(&pair, 2), -ECONNREFUSED);
    owe(KBTP_COUNT_REJECTED, 1);
    settle_up();
    close_counting();
}

/* R-OPER-03: whoever goes before he was connected is lost, too. */
static void gone_at_once(void)
{
    struct pair_config config = plain_config();
    struct pair_initiator *it = &pair.initiators[0];
    open_counting(&config);
    struct kbtp_outcome none;
    CU_ASSERT_EQUAL_FATAL(pair_begin(&pair, 0), 0);
    CU_ASSERT_EQUAL(kbtp_initiator_poll(it->initiator, &it->cpu, &none, 1), 0); /* it asks */
    for (uint32_t n = 0; n < 10; n++) /* accepted, which the initiator does not notice */
        for (uint32_t i = 0; i < 2; i++)
            pair_poll_worker(&pair, i);
    owe(KBTP_COUNT_ACCEPTED, 1);
    expect_counters();
    kbtp_initiator_disconnect(it->initiator, &it->cpu);
    owe(KBTP_COUNT_LOST, 1);
    settle_up();
    CU_ASSERT_EQUAL(gauge(KBTP_GAUGE_CONNECTIONS), 0);
    close_counting();
}

/* ---- the ring, as another worker has it -------------------------------------------------- */

#define BLOCKS 16u /* of pair_defaults() */

/* Nothing that the test itself frees has to wait. */
static struct kbtp_deferred_free no_frees[1];
static struct kbtp_deferred none_deferred = {.frees = no_frees, .capacity = 1};

static void take_ticket(struct kbtp_alloc *alloc)
{
    *alloc = (struct kbtp_alloc){0};
    kbtp_ring_take_ticket(&pair.mem, &pair.target.pool.ring, alloc);
}

static bool poll_ticket(struct kbtp_alloc *alloc)
{
    return kbtp_ring_poll_ordered(&pair.mem, &pair.target.pool.ring, alloc);
}

static void give_back(const struct kbtp_alloc *alloc)
{
    CU_ASSERT_EQUAL(
        kbtp_ring_free(&pair.mem, &pair.target.pool.ring, &none_deferred, alloc->block_offset),
        KBTP_FREE_WRITTEN);
}

/* ---- losses ------------------------------------------------------------------------------ */

/* R-OPER-03: the block of an ALLOC_STORE whose data cannot be read comes back. */
static void a_reclaimed_block(void)
{
    open_three();
    struct kbtp_operation operation = pair_operation(&pair, 0, KBTP_OP_ALLOC_STORE, 0, 64, 0);
    operation.tagged_offset += PAIR_BUFFER - 63;
    CU_ASSERT_EQUAL(pair_do(&pair, 0, &operation).error, -ECONNRESET);
    CU_ASSERT_EQUAL_FATAL(pair_disconnect(&pair, 0), 0);
    owe(KBTP_COUNT_LOST, 1);
    owe(KBTP_COUNT_DROPPED, 1);
    owe(KBTP_COUNT_RECLAIMED_BLOCKS, 1);
    owe(KBTP_COUNT_RETAINED, 1);
    settle_up();
    close_counting();
}

/* R-OPER-03: the ticket of an ALLOC_STORE that was lost while it waited. The test has all blocks,
 * as another worker may: the ring's occupancy is below zero then. */
static void a_reclaimed_ticket(void)
{
    struct kbtp_alloc allocs[BLOCKS] = {0};
    open_three();
    CU_ASSERT_EQUAL(gauge(KBTP_GAUGE_RING_TICKETS), BLOCKS);
    for (uint32_t n = 0; n < BLOCKS; n++) {
        take_ticket(&allocs[n]);
        CU_ASSERT_FATAL(poll_ticket(&allocs[n]));
    }
    CU_ASSERT_EQUAL(gauge(KBTP_GAUGE_RING_TICKETS), 0);
    submit(0, KBTP_OP_ALLOC_STORE, 0, 8, KBTP_FLAG_INLINE, 1);
    submit(0, KBTP_OP_LOAD, 3, 64, 0, 2);
    settle_up(); /* neither is answered */
    CU_ASSERT_EQUAL(gauge(KBTP_GAUGE_RING_TICKETS), -1);
    CU_ASSERT_EQUAL(gauge(KBTP_GAUGE_TICKETS), 1);
    CU_ASSERT_EQUAL(gauge(KBTP_GAUGE_REQUESTS), 2);
    lose(0);
    expect_counters(); /* nothing can be reclaimed yet */
    CU_ASSERT_EQUAL(sessions_in(KBTP_SESSION_ENDING), 1);
    for (uint32_t n = 0; n < BLOCKS; n++)
        give_back(&allocs[n]);
    owe(KBTP_COUNT_DROPPED, 2);
    owe(KBTP_COUNT_RECLAIMED_TICKETS, 1);
    owe(KBTP_COUNT_RETAINED, 1);
    settle_up();
    CU_ASSERT_EQUAL(gauge(KBTP_GAUGE_RING_TICKETS), BLOCKS);
    CU_ASSERT_EQUAL(gauge(KBTP_GAUGE_REQUESTS), 0);
    close_counting();
}

/* R-OPER-03: a RELEASE that the connection does not outlive comes to its end, and counts. */
static void a_release_cut_short(void)
{
    open_three();
    answered(0, KBTP_OP_ALLOC_STORE, 15, 0, 0, KBTP_STATUS_OK);
    settle_up();
    CU_ASSERT_EQUAL_FATAL(
        kbtp_initiator_goodbye(pair.initiators[0].initiator, &pair.initiators[0].cpu, true), 0);
    for (uint32_t n = 0; n < 100 && gauge(KBTP_GAUGE_REQUESTS) == 0; n++)
        for (uint32_t i = 0; i < 2; i++)
            pair_poll_worker(&pair, i);
    CU_ASSERT_EQUAL(gauge(KBTP_GAUGE_REQUESTS), 1); /* it looks at one handle a poll */
    provider->cut(pair.initiators[0].cpu.rdma, 0);
    owe(KBTP_COUNT_LOST, 1);
    owe_answer(KBTP_COUNTED_GOODBYE, KBTP_STATUS_OK);
    owe(KBTP_COUNT_RELEASED, 1);
    owe(KBTP_COUNT_RELEASED_BLOCKS, 1);
    settle_up();
    close_counting();
}

/* ---- frees ------------------------------------------------------------------------------- */

/* R-OPER-03: a free whose slot is not consumed yet, as the test has its ticket, and later is. */
static void a_deferred_free(void)
{
    struct kbtp_alloc alloc = {0};
    open_three();
    for (uint32_t round = 1; round <= 2; round++) {
        take_ticket(&alloc);
        for (uint32_t n = 0; n < BLOCKS && gauge(KBTP_GAUGE_DEFERRED) == 0; n++) {
            answered(0, KBTP_OP_ALLOC_STORE, 0, 0, 0, KBTP_STATUS_OK);
            answered(0, KBTP_OP_FREE, 0, 0, 0, KBTP_STATUS_OK);
        }
        owe(KBTP_COUNT_FREES_DEFERRED, 1);
        settle_up();
        CU_ASSERT_EQUAL(gauge(KBTP_GAUGE_DEFERRED), 1);
        CU_ASSERT_FATAL(poll_ticket(&alloc));
        owe(KBTP_COUNT_FREES_WRITTEN, 1);
        settle_up();
        CU_ASSERT_EQUAL(gauge(KBTP_GAUGE_DEFERRED), 0);
        give_back(&alloc);
    }
    close_counting();
}

/* R-OPER-03: a block that is freed while the test reads it, by FREE and by RELEASE. */
static void pinned_frees(void)
{
    open_three();
    for (uint32_t round = 0; round < 2; round++) {
        struct kbtp_entry entry;
        answered(0, KBTP_OP_ALLOC_STORE, 0, 0, 0, KBTP_STATUS_OK);
        CU_ASSERT_FATAL(kbtp_pool_pin(&pair.mem, &pair.target.pool, &none_deferred, 0, &entry));
        if (round == 0) {
            answered(0, KBTP_OP_FREE, 0, 0, 0, KBTP_STATUS_OK);
        } else {
            CU_ASSERT_EQUAL(pair_goodbye(&pair, 0, true), 0);
            owe_answer(KBTP_COUNTED_GOODBYE, KBTP_STATUS_OK);
            owe(KBTP_COUNT_RELEASED, 1);
            owe(KBTP_COUNT_RELEASED_BLOCKS, 1);
        }
        owe(KBTP_COUNT_FREES_PINNED, 1);
        settle_up();
        CU_ASSERT_EQUAL(gauge(KBTP_GAUGE_RING_TICKETS), BLOCKS - 1);
        kbtp_pool_unpin(&pair.mem, &pair.target.pool, &none_deferred,
                        kbtp_pool_block(&pair.target.pool, entry.block_offset));
        settle_up();
        CU_ASSERT_EQUAL(gauge(KBTP_GAUGE_RING_TICKETS), BLOCKS);
    }
    close_counting();
}

/* ---- gauges ------------------------------------------------------------------------------ */

static int64_t readers(void)
{
    int64_t count = 0;
    for (uint32_t block = 0; block < pair.config.target.block_count; block++)
        count += (int64_t)(mem_load64(&pair.mem, &pair.memory.pins[block]) & KBTP_PIN_READERS);
    return count;
}

/* R-OPER-03: quota use of each session, whoever knows it, and the blocks that are in the ring. */
static void quota_use(void)
{
    static const uint32_t usage[PAIR_INITIATORS] = {4, 1, 0};
    struct kbtp_session_gauges of[PAIR_INITIATORS];
    open_three();
    for (uint32_t n = 0; n < 4; n++)
        answered(0, KBTP_OP_ALLOC_STORE, n, 0, 0, KBTP_STATUS_OK);
    answered(1, KBTP_OP_ALLOC_STORE, 0, 0, 0, KBTP_STATUS_OK);
    for (uint32_t round = 0; round < 3; round++) {
        struct kbtp_gauges gauges = gauges_with(of);
        CU_ASSERT_EQUAL(gauges.session_count, 3);
        CU_ASSERT_EQUAL(gauges.values[KBTP_GAUGE_RING_TICKETS], BLOCKS - 4 - 1);
        for (uint32_t i = 0; i < 3; i++) {
            CU_ASSERT_EQUAL(of[i].usage, usage[i]);
            CU_ASSERT_EQUAL(of[i].quota, pair.config.quotas[i]);
        }
        CU_ASSERT_EQUAL(gauges.values[KBTP_GAUGE_SESSIONS + KBTP_SESSION_RETAINED], round == 1);
        if (round == 0)
            lose(0);
        else if (round == 1)
            CU_ASSERT_EQUAL_FATAL(pair_connect(&pair, 0), 0);
    }
    close_counting();
}

/* R-OPER-03: what is under way. */
static void pins_and_requests(void)
{
    open_three();
    answered(0, KBTP_OP_ALLOC_STORE, 0, 64, KBTP_FLAG_SEAL, KBTP_STATUS_OK);
    owe(KBTP_COUNT_STORED_READ, 64);
    settle_up();
    hold(1u << RDMA_WRITE | 1u << RDMA_READ);
    for (uint32_t n = 0; n < 2; n++)
        submit(0, KBTP_OP_LOAD, 0, 64, 0, n);
    submit(2, KBTP_OP_ALLOC_STORE, 0, 16, 0, 1);
    settle();
    CU_ASSERT_EQUAL(gauge(KBTP_GAUGE_PINS), 2);
    CU_ASSERT_EQUAL(readers(), 2);
    CU_ASSERT_EQUAL(gauge(KBTP_GAUGE_REQUESTS), 1); /* the LOADs are answered behind their Writes */
    let_go();
    for (uint32_t n = 0; n < 2; n++)
        owe_answer(KBTP_COUNTED_LOAD, KBTP_STATUS_OK);
    owe(KBTP_COUNT_LOADED, 128);
    owe_answer(KBTP_COUNTED_ALLOC_STORE, KBTP_STATUS_OK);
    owe(KBTP_COUNT_STORED_READ, 16);
    settle_up();
    CU_ASSERT_EQUAL(gauge(KBTP_GAUGE_PINS), 0);
    CU_ASSERT_EQUAL(readers(), 0);
    CU_ASSERT_EQUAL(gauge(KBTP_GAUGE_REQUESTS), 0);
    close_counting();
}

/* ---- several workers, and none ----------------------------------------------------------- */

/* R-OPER-03: each worker counts its own; a sum may go on growing. */
static void sums_over_workers(void)
{
    open_three();
    for (uint32_t i = 0; i < 3; i++)
        answered(i, KBTP_OP_ALLOC_STORE, 0, 8, KBTP_FLAG_INLINE, KBTP_STATUS_OK);
    owe(KBTP_COUNT_STORED_INLINE, 24);
    settle_up();
    uint64_t accepted[2], stored[2];
    for (uint32_t i = 0; i < 2; i++) {
        struct kbtp_counters one = {0};
        kbtp_worker_counters(pair.workers[i], &one);
        accepted[i] = one.values[KBTP_COUNT_ACCEPTED];
        stored[i] = one.values[KBTP_COUNT_STORED_INLINE];
        CU_ASSERT_EQUAL(stored[i], 8 * accepted[i]);
        CU_ASSERT(accepted[i] == 1 || accepted[i] == 2);
    }
    CU_ASSERT_EQUAL(accepted[0] + accepted[1], 3);
    struct kbtp_counters twice = sum();
    for (uint32_t i = 0; i < 2; i++)
        kbtp_worker_counters(pair.workers[i], &twice);
    CU_ASSERT_EQUAL(twice.values[KBTP_COUNT_ACCEPTED], 2 * due.values[KBTP_COUNT_ACCEPTED]);
    CU_ASSERT_EQUAL(twice.requests[KBTP_COUNTED_ALLOC_STORE][KBTP_STATUS_OK],
                    2 * due.requests[KBTP_COUNTED_ALLOC_STORE][KBTP_STATUS_OK]);
    close_counting();
}

/* A worker without memory for counters has none, and works. */
static void nothing_is_counted(void)
{
    static const struct kbtp_counters zero;
    open_three();
    for (uint32_t i = 0; i < 2; i++)
        kbtp_worker_count_in(pair.workers[i], NULL);
    struct kbtp_counters before[2], after = sum();
    memcpy(before, counted, sizeof before);
    expect_status(run(0, KBTP_OP_ALLOC_STORE, 0, 8, 0), KBTP_STATUS_OK);
    CU_ASSERT_EQUAL(pair_goodbye(&pair, 0, true), 0);
    settle();
    CU_ASSERT_EQUAL(memcmp(before, counted, sizeof before), 0);
    CU_ASSERT_EQUAL(memcmp(&after, &zero, sizeof zero), 0);
    close_counting();
}

int main(void)
{
    static const struct test tests[] = {
        {"operations", operations},
        {"malformed", malformed},
        {"sessions", sessions},
        {"rejections", rejections},
        {"gone at once", gone_at_once},
        {"a reclaimed block", a_reclaimed_block},
        {"a reclaimed ticket", a_reclaimed_ticket},
        {"a RELEASE cut short", a_release_cut_short},
        {"a deferred free", a_deferred_free},
        {"pinned frees", pinned_frees},
        {"quota use", quota_use},
        {"sums over workers", sums_over_workers},
        {"nothing is counted", nothing_is_counted},
    };
    static const struct test of_loop[] = {
        {"pins and requests", pins_and_requests},
    };
    return run_over_providers("ref/counters", tests, sizeof tests / sizeof *tests, PROVIDERS) ||
           run_over_providers("ref/counters", of_loop, sizeof of_loop / sizeof *of_loop, 1);
}
