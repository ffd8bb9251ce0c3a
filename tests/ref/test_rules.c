/* SPDX-License-Identifier: BSD-3-Clause */
/* Rules of the draft that need an eye between two steps, or a peer that breaks them. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "ref/counters.h"
#include "tests/ref/fixture.h"
#include "tests/ref/peer.h"

#define FIRST_HANDLE 0x4000u

/* ---- the order of addresses ---------------------------------------------------------------- */

static struct peer hand;
static uint8_t data[64]; /* that the target may read */
static struct rdma_region region;

static void settle_both(void)
{
    for (uint32_t n = 0; n < 100; n++) {
        pair_poll(&pair);
        peer_poll(&hand);
    }
}

/* A peer with the session of initiator 0. */
static void open_hand(bool addr_le)
{
    struct pair_config config = pair_defaults();
    struct kbtp_message hello = peer_hello(1, 4), ack;
    config.target.addr_le = addr_le;
    config.target.first_handle = FIRST_HANDLE;
    open_with(&config);
    CU_ASSERT_EQUAL_FATAL(peer_open(&hand, another_handle()), 0);
    CU_ASSERT_EQUAL_FATAL(rdma_reg(hand.rdma, data, sizeof data, RDMA_REMOTE_READ, 0x9000, &region),
                          0);
    CU_ASSERT_EQUAL_FATAL(peer_connect(&hand, "target"), 0);
    settle_both();
    CU_ASSERT_EQUAL(peer_send_message(&hand, &hello), 0);
    settle_both();
    CU_ASSERT_EQUAL_FATAL(peer_take(&hand, &ack), 0);
    CU_ASSERT_EQUAL(ack.hello_ack.features, addr_le ? KBTP_FEATURE_ADDR_LE : 0);
}

static void close_hand(void)
{
    peer_disconnect(&hand);
    settle_both();
    CU_ASSERT_EQUAL(rdma_dereg(hand.rdma, &region), 0);
    peer_close(&hand);
    close_pair();
}

/* A store of the peer's memory; what is in the other order was turned already. */
static struct kbtp_message store_of(uint64_t handle, uint32_t stag, uint64_t at, uint32_t length)
{
    struct kbtp_message message = peer_request(KBTP_OP_ALLOC_STORE, 7, handle, 0);
    message.operands.data = (struct kbtp_data_descriptor){at, stag, length};
    return message;
}

static void send_in_order(const struct kbtp_message *message, bool addr_le)
{
    uint8_t octets[KBTP_HELLO_ACK_MAX_OCTETS];
    int length = kbtp_wire_encode(message, addr_le, octets, sizeof octets);
    CU_ASSERT_FATAL(length > 0);
    CU_ASSERT_EQUAL(peer_send(&hand, octets, (uint32_t)length), 0);
    settle_both();
}

static uint16_t status_answered(void)
{
    struct kbtp_message answer;
    CU_ASSERT_EQUAL_FATAL(peer_take(&hand, &answer), 0);
    CU_ASSERT_EQUAL(answer.header.opcode, KBTP_OP_COMPLETION);
    return answer.header.status;
}

/* Nothing was bound, and no block is lost. */
static void expect_no_effect(void)
{
    CU_ASSERT_EQUAL(kbtp_table_read(&pair.mem, &pair.target.pool.table, 1).flags, 0);
    CU_ASSERT_EQUAL(look_at_workers().requests, 0);
    uint32_t tail = kbtp_counter_ticket(mem_load64(&pair.mem, pair.memory.tail));
    uint32_t head = kbtp_counter_ticket(mem_load64(&pair.mem, pair.memory.head));
    CU_ASSERT_EQUAL(tail - head, pair.config.target.block_count);
}

/*
 * Wrong peer: R-LE-01, -02. It sends one address field in the order that was not agreed, the others
 * as they should be: that is another handle, length, STag or Tagged Offset, and no guess is made.
 */
static void addresses_in_the_wrong_order(void)
{
    for (int addr_le = 0; addr_le < 2; addr_le++) {
        open_hand(addr_le);
        uint32_t stag = region.stag;
        uint64_t at = region.base_to;
        struct kbtp_message wrong = store_of(__builtin_bswap64(FIRST_HANDLE + 1), stag, at, 64);
        send_in_order(&wrong, addr_le);
        CU_ASSERT_EQUAL(status_answered(), KBTP_STATUS_INVALID_HANDLE);
        wrong = store_of(FIRST_HANDLE + 1, stag, at, __builtin_bswap32(64));
        send_in_order(&wrong, addr_le);
        CU_ASSERT_EQUAL(status_answered(), KBTP_STATUS_TOO_LARGE);
        expect_no_effect();
        wrong = store_of(FIRST_HANDLE + 1, __builtin_bswap32(stag), at, 64);
        send_in_order(&wrong, addr_le);
        CU_ASSERT_NOT_EQUAL(hand.state, PEER_CONNECTED); /* its own device refuses the Read */
        expect_no_effect();
        close_hand();

        open_hand(addr_le);
        wrong = store_of(FIRST_HANDLE + 1, region.stag, __builtin_bswap64(region.base_to), 64);
        send_in_order(&wrong, addr_le);
        CU_ASSERT_NOT_EQUAL(hand.state, PEER_CONNECTED);
        expect_no_effect();
        close_hand();
    }
}

/* R-LE-01, -02: the same message in the order that was agreed is good. */
static void addresses_in_the_right_order(void)
{
    for (int addr_le = 0; addr_le < 2; addr_le++) {
        open_hand(addr_le);
        struct kbtp_message good = store_of(FIRST_HANDLE + 1, region.stag, region.base_to, 64);
        send_in_order(&good, addr_le);
        CU_ASSERT_EQUAL(status_answered(), KBTP_STATUS_OK);
        close_hand();
    }
}

/* ---- between two steps --------------------------------------------------------------------- */

static uint64_t tickets_taken(void)
{
    return kbtp_counter_ticket(mem_load64(&pair.mem, pair.memory.head));
}

/* R-ALLOC-03: the ticket is taken and its slot consumed while the data is still awaited. */
static void block_before_data(void)
{
    struct kbtp_slot *slot;
    open_pair();
    slot = &pair.memory.slots[0];
    hold(1u << RDMA_READ);
    submit(0, KBTP_OP_ALLOC_STORE, 0, 64, 0, 1);
    pair_settle(&pair);
    CU_ASSERT_EQUAL(look_at_workers().reads, 1);
    CU_ASSERT_EQUAL(tickets_taken(), 1);
    uint8_t octets[16];
    mem_read(&pair.mem, octets, slot, sizeof octets);
    for (uint32_t i = 8; i < 16; i++)
        CU_ASSERT_EQUAL(octets[i], 0xff);
    CU_ASSERT_EQUAL(kbtp_table_read(&pair.mem, &pair.target.pool.table, 0).flags, 0);
    let_go();
    expect_status(pair_wait(&pair, 0), KBTP_STATUS_OK);
    close_pair();
}

/* R-OPER-01: what HELLO_ACK has said stays, whatever is done; a new target may say other things. */
static void quotas_do_not_change(void)
{
    struct kbtp_hello_ack before;
    struct pair_config config = pair_defaults();
    for (uint32_t quota = 3; quota < 6; quota++) {
        config.quotas[0] = quota;
        config.handles = 8 * quota;
        open_connected(&config);
        before = *kbtp_initiator_target(pair.initiators[0].initiator);
        CU_ASSERT_EQUAL(before.allocation_quota, quota);
        CU_ASSERT_EQUAL(before.handle_count, 8 * quota);
        expect_status(run(0, KBTP_OP_ALLOC_STORE, 0, 64, 0), KBTP_STATUS_OK);
        expect_status(run(0, KBTP_OP_FREE, 0, 0, 0), KBTP_STATUS_OK);
        CU_ASSERT_EQUAL(pair_disconnect(&pair, 0), 0);
        CU_ASSERT_EQUAL_FATAL(pair_connect(&pair, 0), 0);
        const struct kbtp_hello_ack *after = kbtp_initiator_target(pair.initiators[0].initiator);
        CU_ASSERT_EQUAL(memcmp(after, &before, sizeof before), 0);
        close_pair();
    }
}

/* ---- a direct load, read by read ----------------------------------------------------------- */

static char *entry_of(uint32_t n)
{
    return (char *)&pair.memory.entries[n];
}

/* Of initiator 1, who loads handle 0: READs that are posted. */
static uint32_t reads_posted(void)
{
    return loop_self(pair.initiators[1].cpu.rdma)->conns[0].sends_count;
}

/* Initiator 0 has bound handle 0, sealed, with 40 octets of 0x5a. READs of initiator 1 wait. */
static void begin_direct_load(void)
{
    struct pair_config config = pair_defaults();
    config.features = KBTP_FEATURE_DIRECT_LOAD;
    open_connected(&config);
    fill(0, 0x5a);
    expect_status(run(0, KBTP_OP_ALLOC_STORE, 0, 40, KBTP_FLAG_SEAL), KBTP_STATUS_OK);
    fill(1, 0);
    pair_settle(&pair);
    loop_hold(pair.initiators[1].cpu.rdma, 1u << RDMA_READ);
    struct pair_initiator *it = &pair.initiators[1];
    struct kbtp_direct_load load = {.handle = config.target.first_handle,
                                    .into = it->data,
                                    .lkey = it->region.lkey,
                                    .length = 64};
    CU_ASSERT_EQUAL_FATAL(kbtp_initiator_direct_load(it->initiator, &it->cpu, &load, 9), 0);
    pair_settle(&pair);
}

/* The one READ that is posted is executed; what follows is posted and waits. */
static void let_one_go(void)
{
    loop_hold(pair.initiators[1].cpu.rdma, 0);
    loop_hold(pair.initiators[1].cpu.rdma, 1u << RDMA_READ);
    pair_settle(&pair);
}

static void end_direct_load(void)
{
    loop_hold(pair.initiators[1].cpu.rdma, 0);
    pair_settle(&pair);
    close_pair();
}

#define DIRECT_READS 4u /* entry, entry, block, entry */

/* R-DL-02, -03: no read is posted before the last one has completed. */
static void one_read_at_a_time(void)
{
    struct kbtp_outcome outcome;
    begin_direct_load();
    for (uint32_t n = 0; n < DIRECT_READS; n++) {
        CU_ASSERT_EQUAL(reads_posted(), 1);
        CU_ASSERT_FALSE(pair_take(&pair, 1, &outcome));
        let_one_go();
    }
    CU_ASSERT_EQUAL(reads_posted(), 0);
    CU_ASSERT_FATAL(pair_take(&pair, 1, &outcome));
    expect_status(outcome, KBTP_STATUS_OK);
    CU_ASSERT(holds(1, 0x5a, 40));
    end_direct_load();
}

/* R-FREE-06, R-DL-04: freed, or freed and bound anew, between any two of the reads. */
static void freed_between_reads(void)
{
    for (uint32_t at = 1; at < DIRECT_READS; at++)
        for (uint32_t again = 0; again < 2; again++) {
            struct kbtp_outcome outcome = {0};
            begin_direct_load();
            for (uint32_t n = 0; n < at; n++)
                let_one_go();
            expect_status(run(0, KBTP_OP_FREE, 0, 0, 0), KBTP_STATUS_OK);
            if (again)
                expect_status(run(0, KBTP_OP_ALLOC_STORE, 0, 40, KBTP_FLAG_SEAL), KBTP_STATUS_OK);
            for (uint32_t n = at; n < DIRECT_READS; n++)
                let_one_go();
            CU_ASSERT_FATAL(pair_take(&pair, 1, &outcome));
            expect_status(outcome, KBTP_STATUS_STALE_GENERATION);
            CU_ASSERT_EQUAL(outcome.data_length, 0);
            end_direct_load();
        }
}

/*
 * R-DL-05: one read of the entry was torn: with the right Flags and Generation, but the Data Length
 * or Block Offset of an earlier binding. The first one's are not used; of the two behind it both
 * must agree.
 */
static void torn_entries(void)
{
    static const uint32_t places[] = {7, 15}; /* last octets of Data Length and Block Offset */
    static const char octets[] = {39, 0x40};  /* less, and the next block */
    for (uint32_t torn = 0; torn < DIRECT_READS; torn++)
        for (uint32_t field = 0; field < 2; field++) {
            struct kbtp_outcome outcome = {0};
            begin_direct_load();
            for (uint32_t n = 0; n < DIRECT_READS; n++) {
                char *octet = entry_of(0) + places[field], right = *octet;
                if (n == torn)
                    *octet = octets[field];
                let_one_go();
                *octet = right;
            }
            CU_ASSERT_FATAL(pair_take(&pair, 1, &outcome));
            bool used = torn == 1 || torn == 3;
            expect_status(outcome, used ? KBTP_STATUS_STALE_GENERATION : KBTP_STATUS_OK);
            if (!used)
                CU_ASSERT(holds(1, 0x5a, 40));
            end_direct_load();
        }
}

/* R-TBL-12: Flags that nobody has defined are zero, and where they are not, nobody minds. */
static void undefined_flags(void)
{
    struct kbtp_outcome outcome = {0};
    begin_direct_load();
    expect_status(run(0, KBTP_OP_ALLOC_STORE, 1, 40, 0), KBTP_STATUS_OK);
    expect_status(run(0, KBTP_OP_STORE, 1, 20, KBTP_FLAG_SEAL), KBTP_STATUS_OK);
    expect_status(run(0, KBTP_OP_FREE, 1, 0, 0), KBTP_STATUS_OK);
    for (uint32_t n = 0; n < pair.config.handles * pair.config.initiators; n++) {
        CU_ASSERT_EQUAL(entry_of(n)[0], 0);
        CU_ASSERT_EQUAL(entry_of(n)[1], n == 0 ? KBTP_ENTRY_VALID | KBTP_ENTRY_SEALED : 0);
    }
    entry_of(0)[0] = 0x70;
    entry_of(0)[1] |= 0x5c;
    for (uint32_t n = 0; n < DIRECT_READS; n++)
        let_one_go();
    CU_ASSERT_FATAL(pair_take(&pair, 1, &outcome));
    expect_status(outcome, KBTP_STATUS_OK);
    end_direct_load();
}

/* ---- secrets ------------------------------------------------------------------------------- */

static bool contains(const char *text, size_t length, const void *part, size_t octets)
{
    for (size_t at = 0; at + octets <= length; at++)
        if (memcmp(text + at, part, octets) == 0)
            return true;
    return false;
}

/* R-SESS-12: no metric tells an Initiator ID, neither as it is nor in hex: four octets of it would
 * be too many. */
static void metrics_tell_no_id(void)
{
    static char text[65536];
    struct kbtp_counters counted[PAIR_WORKERS] = {0}, sum = {0};
    struct kbtp_session_gauges sessions[PAIR_INITIATORS];
    struct kbtp_gauges gauges;
    struct pair_config config = pair_defaults();
    open_with(&config);
    for (uint32_t i = 0; i < config.initiators; i++)
        memset(pair.memory.grants[i].initiator_id, (int)(0xa5 + i), KBTP_INITIATOR_ID_OCTETS);
    for (uint32_t i = 0; i < config.workers; i++)
        kbtp_worker_count_in(pair.workers[i], &counted[i]);
    CU_ASSERT_NOT_EQUAL(pair_connect(&pair, 0), 0); /* it is not known now */
    memset(pair.memory.grants[0].initiator_id, 1, KBTP_INITIATOR_ID_OCTETS);
    CU_ASSERT_EQUAL(pair_connect(&pair, 0), 0);
    kbtp_target_gauges(&pair.mem, &pair.target, sessions, &gauges);
    for (uint32_t i = 0; i < config.workers; i++) {
        kbtp_worker_counters(pair.workers[i], &sum);
        kbtp_worker_gauges(pair.workers[i], &gauges);
    }
    struct kbtp_report report = {.counters = &sum, .gauges = &gauges};
    size_t length = kbtp_counters_text(&report, text, sizeof text);
    CU_ASSERT_FATAL(length != 0 && length < sizeof text);
    for (uint32_t i = 0; i < config.initiators; i++) {
        const uint8_t *id = pair.memory.grants[i].initiator_id;
        char hex[9], capital[9];
        snprintf(hex, sizeof hex, "%02x%02x%02x%02x", id[0], id[1], id[2], id[3]);
        snprintf(capital, sizeof capital, "%02X%02X%02X%02X", id[0], id[1], id[2], id[3]);
        CU_ASSERT_FALSE(contains(text, length, id, 4));
        CU_ASSERT_FALSE(contains(text, length, hex, 8));
        CU_ASSERT_FALSE(contains(text, length, capital, 8));
    }
    close_pair();
}

int main(void)
{
    static const struct test tests[] = {
        {"addresses in the wrong order", addresses_in_the_wrong_order},
        {"addresses in the right order", addresses_in_the_right_order},
        {"the block before the data", block_before_data},
        {"quotas do not change", quotas_do_not_change},
        {"one read at a time", one_read_at_a_time},
        {"freed between reads", freed_between_reads},
        {"torn entries", torn_entries},
        {"undefined flags", undefined_flags},
        {"metrics tell no ID", metrics_tell_no_id},
    };
    return run_over_providers("ref/rules", tests, sizeof tests / sizeof *tests, 1);
}
