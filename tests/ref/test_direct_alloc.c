/* SPDX-License-Identifier: BSD-3-Clause */
/* Direct Allocation (draft: Direct Modes): what is offered, and what the initiator library does
 * with it. */
#include <errno.h>
#include <string.h>

#include "tests/ref/direct.h"
#include "tests/ref/peer.h"

#define TIMER_REREAD 1u /* of an initiator */
#define TIMER_GIVE_UP 2u

static bool is_granted(uint32_t i)
{
    return kbtp_initiator_features(pair.initiators[i].initiator) & KBTP_FEATURE_DIRECT_ALLOC;
}

static struct kbtp_direct_store store_of(uint32_t i, uint32_t n, uint32_t length)
{
    struct pair_initiator *it = &pair.initiators[i];
    return (struct kbtp_direct_store){.handle = said(i)->handle_base + n,
                                      .data = it->data,
                                      .lkey = it->region.lkey,
                                      .length = length};
}

static int begin_store(uint32_t i, uint32_t n, uint32_t length)
{
    struct pair_initiator *it = &pair.initiators[i];
    struct kbtp_direct_store store = store_of(i, n, length);
    return kbtp_initiator_direct_store(it->initiator, &it->cpu, &store, n);
}

/* To its end. */
static struct kbtp_outcome direct_store(uint32_t i, uint32_t n, uint32_t length)
{
    CU_ASSERT_EQUAL_FATAL(begin_store(i, n, length), 0);
    struct kbtp_outcome outcome = pair_wait(&pair, i);
    CU_ASSERT_EQUAL(outcome.cookie, n);
    CU_ASSERT_EQUAL(outcome.opcode, KBTP_OP_BIND);
    return outcome;
}

/* ---- what is offered --------------------------------------------------------------------- */

/* R-SESS-24, -26, -27, R-QUOTA-09: a partition as large as the quota and a ring of its own each. */
static void what_is_offered(void)
{
    struct pair_config config = with_direct_alloc();
    config.target.addr_le = false;
    open_connected(&config);
    uint64_t next = 0;
    for (uint32_t i = 0; i < config.initiators; i++) {
        const struct kbtp_hello_ack *ack = said(i);
        CU_ASSERT_EQUAL(ack->features, KBTP_FEATURE_DIRECT_ALLOC);
        CU_ASSERT(is_granted(i));
        CU_ASSERT_EQUAL(ack->ticket_timeout_ms, TIMEOUT_MS);
        CU_ASSERT_EQUAL(ack->partition.count, config.quotas[i]);
        CU_ASSERT_EQUAL(ack->partition.tagged_offset,
                        pair.target.pool.first_offset + next * config.target.block_size);
        CU_ASSERT_EQUAL(ack->ring.count, 8); /* for 6, 5 and 5 blocks */
        CU_ASSERT_EQUAL(ack->head.count, 1);
        CU_ASSERT_EQUAL(ack->head.tagged_offset % 8, 0);
        CU_ASSERT_EQUAL(ack->ring.tagged_offset % 16, 0);
        CU_ASSERT(ack->partition.stag != ack->ring.stag && ack->ring.stag != ack->head.stag);
        for (uint32_t k = 0; k < config.quotas[i]; k++) {
            uint32_t sequence;
            CU_ASSERT_EQUAL(block_in(i, k, &sequence), (int32_t)next++);
            CU_ASSERT_EQUAL(sequence, k);
        }
    }
    CU_ASSERT_EQUAL(next, config.target.block_count);
    close_pair();
}

/* I-22: a quota of 1 has a ring of 2. A quota of 0 has none, and who may not have it has not. */
static void who_gets_what(void)
{
    struct pair_config config = with_direct_alloc();
    config.quotas[0] = 1;
    config.quotas[1] = 0;
    open_with(&config);
    pair.memory.grants[2].features = 0;
    for (uint32_t i = 0; i < config.initiators; i++)
        CU_ASSERT_EQUAL_FATAL(pair_connect(&pair, i), 0);
    CU_ASSERT_EQUAL(said(0)->ring.count, 2);
    CU_ASSERT(is_granted(0) && !is_granted(1) && !is_granted(2));
    CU_ASSERT_EQUAL(said(1)->partition.stag, 0);
    CU_ASSERT_EQUAL(said(2)->head.stag, 0);
    CU_ASSERT_EQUAL(begin_store(1, 0, 8), -ENOTSUP);
    close_pair();
}

/* R-RDMAP-03: it takes windows, masked FetchAdd, and atomics that are atomic against CPUs (or a
 * queue pair of the device with itself, which this one has not). */
static void what_the_device_must_do(void)
{
    static const uint32_t needed[] = {RDMA_CAP_WINDOW, RDMA_CAP_FETCH_ADD, RDMA_CAP_MASKED,
                                      RDMA_CAP_ATOMIC_CPU};
    for (uint32_t i = 0; i < sizeof needed / sizeof *needed; i++) {
        struct rdma *handles[PAIR_WORKERS + PAIR_INITIATORS];
        struct pair_config config = with_direct_alloc();
        CU_ASSERT_FATAL(provider->open());
        provider->loop->caps.bits &= ~needed[i];
        for (uint32_t n = 0; n < PAIR_WORKERS + PAIR_INITIATORS; n++)
            handles[n] = another_handle();
        CU_ASSERT_EQUAL_FATAL(pair_open(&pair, &config, handles), 0);
        for (uint32_t n = 0; n < config.initiators; n++) {
            CU_ASSERT_EQUAL_FATAL(pair_connect(&pair, n), 0);
            CU_ASSERT_FALSE(is_granted(n));
        }
        expect_status(run(0, KBTP_OP_ALLOC_STORE, 0, 8, 0), KBTP_STATUS_OK); /* as always */
        close_pair();
    }
}

/* ---- allocating -------------------------------------------------------------------------- */

static void load_back(uint32_t i, uint32_t n, uint8_t octet, uint32_t length)
{
    fill(i, 0);
    struct kbtp_outcome loaded = run(i, KBTP_OP_LOAD, n, 64, KBTP_FLAG_ALLOW_UNSEALED);
    expect_status(loaded, KBTP_STATUS_OK);
    CU_ASSERT_EQUAL(loaded.data_length, length);
    CU_ASSERT(holds(i, octet, length));
}

/* R-DA-01 to -04, -08, R-RING-20, R-DA-10, R-FREE-08: allocated, loaded, freed, several laps. */
static void as_an_alloc_store(void)
{
    struct pair_config config = with_direct_alloc();
    open_connected(&config);
    for (uint32_t lap = 0; lap < 40; lap++)
        for (uint32_t i = 0; i < config.initiators; i++) {
            uint32_t length = 1 + (lap * 7 + i) % config.target.block_size, n = lap % 3, sequence;
            uint32_t ticket = ticket_of(ring_of(i)->head);
            fill(i, (uint8_t)(lap + 1));
            struct kbtp_outcome stored = direct_store(i, n, length);
            expect_status(stored, KBTP_STATUS_OK);
            CU_ASSERT_EQUAL(stored.data_length, length);
            CU_ASSERT_EQUAL(stored.block_offset - said(i)->partition.tagged_offset,
                            (ticket % config.quotas[i]) * (uint64_t)config.target.block_size);
            CU_ASSERT_EQUAL(block_in(i, ticket, &sequence), -1);
            CU_ASSERT_EQUAL(sequence, ticket);
            CU_ASSERT_EQUAL(usage_of(i), 1);
            load_back(i, n, (uint8_t)(lap + 1), length);
            expect_status(run(i, KBTP_OP_FREE, n, 0, 0), KBTP_STATUS_OK);
            CU_ASSERT_EQUAL(usage_of(i), 0);
        }
    expect_status(direct_store(0, 0, 0), KBTP_STATUS_OK); /* nothing to write */
    close_pair();
}

/* R-ST-07: not sealed, since BIND cannot seal (I-07): a plain LOAD finds NOT_SEALED. */
static void is_not_sealed(void)
{
    struct pair_config config = with_direct_alloc();
    open_connected(&config);
    fill(0, 5);
    expect_status(direct_store(0, 0, 64), KBTP_STATUS_OK);
    expect_status(run(0, KBTP_OP_LOAD, 0, 64, 0), KBTP_STATUS_NOT_SEALED);
    fill(0, 6);
    expect_status(run(0, KBTP_OP_STORE, 0, 64, KBTP_FLAG_SEAL), KBTP_STATUS_OK);
    expect_status(run(0, KBTP_OP_LOAD, 0, 64, 0), KBTP_STATUS_OK);
    close_pair();
}

/* R-QUOTA-04: the whole quota at once, and not one more; mixed with ALLOC_STORE (I-15). */
static void within_the_quota(void)
{
    struct pair_config config = with_direct_alloc();
    config.depth = 6;
    open_connected(&config);
    fill(0, 9);
    for (uint32_t n = 0; n < 2; n++)
        CU_ASSERT_EQUAL(begin_store(0, n, 64), 0);
    submit(0, KBTP_OP_ALLOC_STORE, 2, 64, 0, 2);
    for (uint32_t n = 3; n < 4; n++)
        CU_ASSERT_EQUAL(begin_store(0, n, 64), 0);
    for (uint32_t n = 0; n < 4; n++)
        expect_status(pair_wait(&pair, 0), KBTP_STATUS_OK);
    expect_status(run(0, KBTP_OP_ALLOC_STORE, 4, 8, 0), KBTP_STATUS_OK);
    expect_status(direct_store(0, 5, 8), KBTP_STATUS_OK);
    CU_ASSERT_EQUAL(usage_of(0), 6);
    CU_ASSERT_EQUAL(begin_store(0, 6, 8), -EDQUOT);
    for (uint32_t n = 0; n < 6; n++)
        expect_status(run(0, KBTP_OP_FREE, n, 0, 0), KBTP_STATUS_OK);
    CU_ASSERT_EQUAL(ticket_of(ring_of(0)->tail) - ticket_of(ring_of(0)->head), 6);
    close_pair();
}

/* What the library does not even begin. */
static void what_is_not_begun(void)
{
    struct pair_config config = with_direct_alloc();
    open_connected(&config);
    CU_ASSERT_EQUAL(begin_store(0, config.handles, 8), -EINVAL);
    CU_ASSERT_EQUAL(begin_store(0, 0, config.target.block_size + 1), -EMSGSIZE);
    CU_ASSERT_EQUAL(pair_disconnect(&pair, 0), 0);
    CU_ASSERT_EQUAL(begin_store(0, 0, 8), -ENOTCONN);
    close_pair();
}

/* R-DA-11: its handle is bound already; the ticket is held until the session ends. */
static void a_bind_that_is_refused(void)
{
    struct pair_config config = with_direct_alloc();
    open_connected(&config);
    expect_status(direct_store(0, 0, 8), KBTP_STATUS_OK);
    expect_status(direct_store(0, 0, 8), KBTP_STATUS_ALREADY_BOUND);
    CU_ASSERT_EQUAL(usage_of(0), 1);
    CU_ASSERT_EQUAL(kbtp_initiator_usage(pair.initiators[0].initiator), 2);
    CU_ASSERT_EQUAL(pair_disconnect(&pair, 0), 0);
    CU_ASSERT_EQUAL(kbtp_initiator_usage(pair.initiators[0].initiator), 1);
    pair_settle(&pair);
    CU_ASSERT_EQUAL(ticket_of(ring_of(0)->tail) - ticket_of(ring_of(0)->head), 5);
    CU_ASSERT_EQUAL_FATAL(pair_connect(&pair, 0), 0);
    for (uint32_t n = 1; n < 6; n++)
        expect_status(direct_store(0, n, 8), KBTP_STATUS_OK);
    close_pair();
}

/* ---- offers that make no sense ----------------------------------------------------------- */

static void good_offer(struct kbtp_hello_ack *offer)
{
    *offer = (struct kbtp_hello_ack){.features = KBTP_FEATURE_DIRECT_ALLOC,
                                     .request_credits = 4,
                                     .block_size = 64,
                                     .handle_count = 4,
                                     .allocation_quota = 6,
                                     .ticket_timeout_ms = TIMEOUT_MS,
                                     .partition = {.stag = 1, .tagged_offset = 0x1000, .count = 6},
                                     .ring = {.stag = 2, .tagged_offset = 0x2000, .count = 8},
                                     .head = {.stag = 3, .tagged_offset = 0x3000, .count = 1}};
}

/* A hand-made target offers this to an initiator: does it take it? */
static bool takes(const struct kbtp_hello_ack *offer)
{
    struct peer peer;
    struct kbtp_message hello,
        welcome = {.header = {.version = KBTP_WIRE_VERSION, .opcode = KBTP_OP_HELLO_ACK},
                   .hello_ack = *offer};
    struct rdma *handles[2] = {another_handle(), another_handle()};
    struct kbtp_initiator_config own = {
        .address = "other", .depth = 2, .features = KBTP_FEATURE_DIRECT_ALLOC};
    static uint64_t private_memory[512], buffers[4096];
    struct mem mem = {.sim = NULL};
    const struct kbtp_cpu cpu = {&mem, handles[1]};
    struct kbtp_initiator *initiator;
    CU_ASSERT_EQUAL_FATAL(peer_open(&peer, handles[0]), 0);
    CU_ASSERT_EQUAL_FATAL(peer_listen(&peer, "other"), 0);
    CU_ASSERT_EQUAL_FATAL(kbtp_initiator_init(&initiator, &cpu, &own, private_memory, buffers), 0);
    CU_ASSERT_EQUAL_FATAL(kbtp_initiator_connect(initiator, &cpu), 0);
    struct kbtp_outcome outcome;
    bool said_it = false, taken = false;
    for (uint32_t n = 0; n < 200; n++) {
        kbtp_initiator_poll(initiator, &cpu, &outcome, 1);
        peer_poll(&peer);
        if (!said_it && peer_take(&peer, &hello) == 0)
            said_it = peer_send_message(&peer, &welcome) == 0;
        taken |= kbtp_initiator_features(initiator) & KBTP_FEATURE_DIRECT_ALLOC;
    }
    CU_ASSERT(said_it);
    CU_ASSERT_EQUAL(kbtp_initiator_state(initiator), KBTP_INITIATOR_READY); /* without it */
    kbtp_initiator_disconnect(initiator, &cpu);
    for (uint32_t n = 0; n < 100; n++) {
        kbtp_initiator_poll(initiator, &cpu, &outcome, 1);
        peer_poll(&peer);
    }
    CU_ASSERT_EQUAL(kbtp_initiator_end(initiator, &cpu), 0);
    peer_close(&peer);
    return taken;
}

/* Wrong peer: R-SESS-26, R-RDMAP-03 (I-14, I-22, I-39). What cannot work is not used. */
static void offers_that_make_no_sense(void)
{
    struct kbtp_hello_ack offer;
    for (uint32_t i = 0; i < 11; i++) {
        CU_ASSERT_FATAL(provider->open());
        good_offer(&offer);
        offer.head.tagged_offset += i == 1 ? 4 : 0;
        offer.ring.tagged_offset += i == 2 ? 8 : 0;
        offer.ring.count = i == 3 ? 1 : i == 4 ? 7 : i == 5 ? 0 : i == 6 ? 1u << 29 : 8;
        offer.partition.count = i == 7 ? 0 : i == 8 ? 9 : 6;
        if (i >= 9) /* this side's device has not the atomics */
            provider->loop->caps.bits &= ~(uint32_t)(i == 9 ? RDMA_CAP_FETCH_ADD : RDMA_CAP_MASKED);
        CU_ASSERT_EQUAL(takes(&offer), i == 0);
        provider->close();
    }
}

/* ---- the initiator gives up -------------------------------------------------------------- */

/* All of session 0 is bound, and one more begins: it finds no block in its slot. */
static void begin_one_too_many(void)
{
    struct pair_config config = with_direct_alloc();
    config.unchecked = true;
    config.depth = 3;
    open_connected(&config);
    for (uint32_t n = 0; n < 6; n++)
        expect_status(direct_store(0, n, 8), KBTP_STATUS_OK);
    CU_ASSERT_EQUAL(begin_store(0, 6, 8), 0);
    pair_settle(&pair);
    CU_ASSERT_EQUAL(pair.initiators[0].outcomes_count, 0);
}

static bool expire_own(uint32_t id)
{
    bool expired = provider->expire(pair.initiators[0].cpu.rdma, id);
    pair_settle(&pair);
    return expired;
}

/* R-DA-02: the slot is read again from time to time until its block is there. */
static void it_waits(void)
{
    begin_one_too_many();
    for (uint32_t n = 0; n < 5; n++)
        CU_ASSERT(expire_own(TIMER_REREAD));
    CU_ASSERT_EQUAL(pair.initiators[0].outcomes_count, 0);
    submit(0, KBTP_OP_FREE, 3, 0, 0, 33);
    expect_status(pair_wait(&pair, 0), KBTP_STATUS_OK);
    CU_ASSERT(expire_own(TIMER_REREAD));
    struct kbtp_outcome outcome = pair_wait(&pair, 0);
    expect_status(outcome, KBTP_STATUS_OK);
    CU_ASSERT_EQUAL(outcome.cookie, 6);
    CU_ASSERT(expire_own(TIMER_GIVE_UP)); /* none is under way: it stops */
    CU_ASSERT_FALSE(expire_own(TIMER_GIVE_UP));
    close_pair();
}

/* R-DA-13, I-17: half the Ticket Timeout after its FetchAdd it gives up, and all with it. */
static void it_gives_up(void)
{
    begin_one_too_many();
    CU_ASSERT_EQUAL(begin_store(0, 7, 8), 0);
    for (uint32_t n = 0; n < 4; n++) {
        CU_ASSERT_EQUAL(pair.initiators[0].outcomes_count, 0);
        CU_ASSERT(expire_own(TIMER_GIVE_UP));
    }
    CU_ASSERT(expire_own(TIMER_REREAD));
    for (uint32_t n = 6; n < 8; n++) {
        struct kbtp_outcome outcome = pair_wait(&pair, 0);
        expect_status(outcome, KBTP_STATUS_TICKET_ABANDONED);
        CU_ASSERT_EQUAL(outcome.cookie, n);
    }
    CU_ASSERT_FALSE(is_granted(0));
    CU_ASSERT_EQUAL(begin_store(0, 8, 8), -ENOTSUP);
    CU_ASSERT_EQUAL(kbtp_initiator_usage(pair.initiators[0].initiator), 8);
    CU_ASSERT_EQUAL(pair_disconnect(&pair, 0), 0);
    CU_ASSERT_EQUAL(kbtp_initiator_usage(pair.initiators[0].initiator), 6);
    CU_ASSERT_EQUAL_FATAL(pair_connect(&pair, 0), 0);
    CU_ASSERT(is_granted(0));
    close_pair();
}

/* R-DA-13, I-19: it sees that its ticket was abandoned: the slot has gone on to a later one. */
static void it_sees_that_it_was_abandoned(void)
{
    begin_one_too_many();
    struct kbtp_slot *slot = kbtp_ring_slot(ring_of(0), 6);
    uint8_t octets[KBTP_SLOT_OCTETS];
    const struct kbtp_slot_value later = {.block_offset = KBTP_BLOCK_NONE, .sequence = 6 + 8};
    kbtp_slot_encode(&later, false, octets);
    uint8_t before[KBTP_SLOT_OCTETS];
    memcpy(before, slot, sizeof before);
    memcpy(slot, octets, sizeof octets);
    CU_ASSERT(expire_own(TIMER_REREAD));
    expect_status(pair_wait(&pair, 0), KBTP_STATUS_TICKET_ABANDONED);
    memcpy(slot, before, sizeof before);
    close_pair();
}

/* A connection that is lost before BIND: nothing is bound, and that is known. */
static void a_loss_before_bind(void)
{
    begin_one_too_many();
    CU_ASSERT_EQUAL(kbtp_initiator_usage(pair.initiators[0].initiator), 7);
    CU_ASSERT_EQUAL(pair_disconnect(&pair, 0), 0);
    CU_ASSERT_EQUAL(pair_wait(&pair, 0).error, -ECONNRESET);
    CU_ASSERT_EQUAL(kbtp_initiator_usage(pair.initiators[0].initiator), 6);
    close_pair();
}

int main(void)
{
    static const struct test tests[] = {
        {"what is offered", what_is_offered},
        {"who gets what", who_gets_what},
        {"as an ALLOC_STORE", as_an_alloc_store},
        {"is not sealed", is_not_sealed},
        {"within the quota", within_the_quota},
        {"what is not begun", what_is_not_begun},
        {"a BIND that is refused", a_bind_that_is_refused},
        {"it waits", it_waits},
        {"it gives up", it_gives_up},
        {"it sees that it was abandoned", it_sees_that_it_was_abandoned},
        {"a loss before BIND", a_loss_before_bind},
    };
    static const struct test of_loop[] = {
        {"what the device must do", what_the_device_must_do},
        {"offers that make no sense", offers_that_make_no_sense},
    };
    return run_over_capable("ref/direct_alloc", tests, sizeof tests / sizeof *tests,
                            RDMA_CAP_WINDOW | RDMA_CAP_FETCH_ADD) ||
           run_over_providers("ref/direct_alloc", of_loop, sizeof of_loop / sizeof *of_loop, 1);
}
