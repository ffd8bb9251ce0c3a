/* SPDX-License-Identifier: BSD-3-Clause */
/* Completion records (draft: Completion, InfiniBand and RoCEv2; I-28): to whom they are granted,
 * their octets, what is answered by message all the same, and what an initiator makes of those of a
 * wrong target. */
#include <errno.h>
#include <string.h>

#include "tests/ref/ends.h"
#include "tests/ref/fixture.h"

#define RECORDS KBTP_FEATURE_RECORD_COMPLETION
#define RECORD KBTP_FLAG_RECORD

static struct pair_config with_records(void)
{
    struct pair_config config = pair_defaults();
    config.features = RECORDS;
    return config;
}

static uint16_t granted(uint32_t i)
{
    return kbtp_initiator_features(pair.initiators[i].initiator);
}

/* ---- who has them ------------------------------------------------------------------------ */

/* What HELLO_ACK grants on a device that claims these bits. */
static uint16_t granted_over(const struct pair_config *config, uint32_t binding, uint32_t without)
{
    struct rdma *handles[PAIR_WORKERS + PAIR_INITIATORS];
    CU_ASSERT_FATAL(provider->open());
    provider->loop->caps.binding = binding;
    provider->loop->caps.bits &= ~without;
    for (uint32_t i = 0; i < PAIR_WORKERS + PAIR_INITIATORS; i++)
        handles[i] = another_handle();
    CU_ASSERT_EQUAL_FATAL(pair_open(&pair, config, handles), 0);
    CU_ASSERT_EQUAL_FATAL(pair_connect(&pair, 0), 0);
    uint16_t features = kbtp_initiator_target(pair.initiators[0].initiator)->features;
    CU_ASSERT_EQUAL(granted(0), features);
    close_pair();
    return features;
}

/* R-COMP-05, -06, R-SESS-18, R-RDMAP-07: never in the RDMAP binding, whatever the device promises;
 * elsewhere where Writes have an order. Only to those that ask and may. */
static void who_is_granted_records(void)
{
    struct pair_config config = with_records(), plain = pair_defaults();
    provider = &providers[0];
    CU_ASSERT_EQUAL(granted_over(&config, RDMA_BINDING_INFINIBAND, 0), RECORDS);
    CU_ASSERT_EQUAL(granted_over(&config, RDMA_BINDING_ROCE, 0), RECORDS);
    CU_ASSERT_EQUAL(granted_over(&config, RDMA_BINDING_RDMAP, 0), 0);
    CU_ASSERT_EQUAL(granted_over(&config, RDMA_BINDING_INFINIBAND, RDMA_CAP_ORDERED_WRITES), 0);
    CU_ASSERT_EQUAL(granted_over(&config, RDMA_BINDING_INFINIBAND, RDMA_CAP_IMM), 0);
    CU_ASSERT_EQUAL(granted_over(&plain, RDMA_BINDING_INFINIBAND, 0), 0);
}

/* ---- end to end -------------------------------------------------------------------------- */

static void expect_recorded(struct kbtp_outcome outcome, enum kbtp_status status)
{
    expect_status(outcome, status);
    CU_ASSERT_EQUAL(outcome.by_record, 1);
    CU_ASSERT_EQUAL(outcome.invalidated, 0);
}

/* R-COMP-03, R-FLAG-03, R-IB-01, -04, -05, R-ST-00: every operation, well and refused, says the
 * same as by message; the credits come back; with both byte orders (R-LE-03). */
static void every_operation_by_record(void)
{
    struct pair_config config = with_records();
    provider = &provider_infiniband;
    for (uint32_t addr_le = 0; addr_le < 2; addr_le++) {
        config.target.addr_le = addr_le;
        open_connected(&config);
        CU_ASSERT_EQUAL_FATAL(granted(0), RECORDS);
        for (uint32_t round = 0; round < 12; round++) {
            uint16_t how = (uint16_t)(RECORD | (round % 2 ? KBTP_FLAG_INLINE : 0));
            fill(0, (uint8_t)(0x10 + round));
            struct kbtp_outcome stored = run(0, KBTP_OP_ALLOC_STORE, 1, 24, how);
            expect_recorded(stored, KBTP_STATUS_OK);
            CU_ASSERT_EQUAL(stored.generation, 2 + 2 * round);
            CU_ASSERT_EQUAL(stored.data_length, 24);
            expect_recorded(run(0, KBTP_OP_STORE, 1, 32, how | KBTP_FLAG_SEAL), KBTP_STATUS_OK);
            fill(0, 0);
            struct kbtp_outcome loaded = run(0, KBTP_OP_LOAD, 1, 64, RECORD);
            expect_recorded(loaded, KBTP_STATUS_OK);
            CU_ASSERT(holds(0, (uint8_t)(0x10 + round), 32));
            CU_ASSERT_EQUAL(loaded.block_offset, stored.block_offset);
            CU_ASSERT_EQUAL(loaded.generation, stored.generation);
            expect_recorded(run(0, KBTP_OP_STORE, 1, 8, how), KBTP_STATUS_SEALED);
            expect_recorded(run(0, KBTP_OP_FREE, 1, 0, RECORD), KBTP_STATUS_OK);
            expect_recorded(run(0, KBTP_OP_LOAD, 1, 64, RECORD), KBTP_STATUS_NOT_VALID);
        }
        CU_ASSERT_EQUAL(kbtp_initiator_credits(pair.initiators[0].initiator), 4);
        close_pair();
    }
}

/* R-IB-05: as many at once as there are credits, messages between records; each has one outcome. */
static void many_at_once(void)
{
    struct pair_config config = with_records();
    provider = &provider_infiniband;
    open_connected(&config);
    expect_recorded(run(0, KBTP_OP_ALLOC_STORE, 0, 64, RECORD | KBTP_FLAG_SEAL), KBTP_STATUS_OK);
    for (uint32_t round = 0, sent = 0; round < 20; round++) {
        while (kbtp_initiator_credits(pair.initiators[0].initiator) != 0)
            submit(0, KBTP_OP_LOAD, 0, 64, sent % 3 ? RECORD : 0, sent), sent++;
        for (uint32_t first = sent - 4; first < sent; first++) {
            struct kbtp_outcome outcome = pair_wait(&pair, 0);
            expect_status(outcome, KBTP_STATUS_OK);
            CU_ASSERT_EQUAL(outcome.cookie, first);
            CU_ASSERT_EQUAL(outcome.by_record, first % 3 != 0);
        }
    }
    close_pair();
}

/* ---- the target's octets ----------------------------------------------------------------- */

#define ID 3u
static uint8_t slot[64];
static struct rdma_region slot_region;

static void settle_all(void)
{
    for (uint32_t n = 0; n < 60; n++) {
        pair_poll(&pair);
        peer_poll(&peer);
    }
}

static void say(const struct kbtp_message *message, bool addr_le)
{
    uint8_t octets[128];
    int length = kbtp_wire_encode(message, addr_le, octets, sizeof octets);
    CU_ASSERT_FATAL(length > 0);
    if (message->header.flags & KBTP_FLAG_INLINE)
        memset(octets + length, 0x5a, message->operands.data.length);
    length += message->header.flags & KBTP_FLAG_INLINE ? (int)message->operands.data.length : 0;
    CU_ASSERT_EQUAL_FATAL(peer_send(&peer, octets, (uint32_t)length), 0);
    settle_all();
}

/* A peer with the ID of initiator 2, and a session that has records. */
static void open_peer(bool addr_le, uint16_t wanted)
{
    struct pair_config config = with_records();
    config.target.addr_le = addr_le;
    provider = &provider_infiniband;
    open_with(&config);
    CU_ASSERT_EQUAL_FATAL(peer_open(&peer, another_handle()), 0);
    CU_ASSERT_EQUAL_FATAL(rdma_reg(peer.rdma, slot, sizeof slot,
                                   RDMA_LOCAL_WRITE | RDMA_REMOTE_WRITE, 0x7000, &slot_region),
                          0);
    CU_ASSERT_EQUAL_FATAL(peer_connect(&peer, "target"), 0);
    settle_all();
    struct kbtp_message hello = peer_hello(ID, 4), ack;
    hello.hello.requested_features = wanted;
    say(&hello, false);
    CU_ASSERT_EQUAL_FATAL(peer_take(&peer, &ack), 0);
    CU_ASSERT_EQUAL(ack.hello_ack.features & RECORDS, wanted);
    memset(slot, 0xee, sizeof slot);
}

static void close_peer(void)
{
    peer_disconnect(&peer);
    settle_all();
    CU_ASSERT_EQUAL(rdma_dereg(peer.rdma, &slot_region), 0);
    peer_close(&peer);
    close_pair();
}

/* Data Length 8 of inline data for handle 0x4020, a record to octet 16 of the slots. */
static struct kbtp_message request_for(uint8_t opcode, uint64_t request_id, uint16_t flags)
{
    struct kbtp_message request = peer_request(opcode, request_id, 0x4020, flags);
    request.operands.data.length = opcode == KBTP_OP_FREE ? 0 : 8;
    request.operands.completion = (struct kbtp_completion_descriptor){
        .tagged_offset = slot_region.base_to + 16, .stag = slot_region.stag};
    return request;
}

static bool untouched(uint32_t from, uint32_t to)
{
    while (from < to)
        if (slot[from++] != 0xee)
            return false;
    return true;
}

/* R-COMP-03, R-IB-04, R-LE-03, -05: 24 octets in network order, whatever ADDR_LE says, by RDMA
 * Write with Immediate, and no message. The immediate is the low half of the Request ID (I-28). */
static void octets_of_a_record(void)
{
    static const uint8_t bound[] = {0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef,
                                    0,    0,    0,    2,    0,    0,    0,    8,
                                    0,    0,    0,    0,    0,    0x10, 0x00, 0};
    for (uint32_t addr_le = 0; addr_le < 2; addr_le++) {
        uint32_t imm = 0;
        struct kbtp_message message;
        open_peer(addr_le, RECORDS);
        const uint16_t flags = RECORD | KBTP_FLAG_INLINE;
        struct kbtp_message request =
            request_for(KBTP_OP_ALLOC_STORE, UINT64_C(0x0123456789abcdef), flags);
        say(&request, addr_le);
        CU_ASSERT_EQUAL(peer_take_immediate(&peer, &imm), 0);
        CU_ASSERT_EQUAL(imm, 0x89abcdef);
        CU_ASSERT_EQUAL(memcmp(slot + 16, bound, sizeof bound), 0);
        CU_ASSERT(untouched(0, 16) && untouched(40, 64));
        say(&request, addr_le); /* ALREADY_BOUND: length and offset are 0 (I-45) */
        CU_ASSERT_EQUAL(peer_take_immediate(&peer, &imm), 0);
        CU_ASSERT_EQUAL(slot[16 + 9], KBTP_STATUS_ALREADY_BOUND);
        CU_ASSERT_EQUAL(slot[16 + 11], 2);
        CU_ASSERT_EQUAL(slot[16 + 15], 0);
        CU_ASSERT_EQUAL(slot[16 + 21], 0);
        CU_ASSERT_EQUAL(peer_take(&peer, &message), -EAGAIN);
        close_peer();
    }
}

/* The next answer is a message, and no record was written. */
static void expect_message(enum kbtp_status status, uint32_t invalidated)
{
    struct kbtp_message message = {0};
    uint32_t flags = peer.got_flags[0], imm = peer.got_imm[0];
    CU_ASSERT_EQUAL(peer_take(&peer, &message), 0);
    CU_ASSERT_EQUAL(message.header.opcode, KBTP_OP_COMPLETION);
    CU_ASSERT_EQUAL(message.header.status, status);
    CU_ASSERT_EQUAL(flags & RDMA_WC_INVALIDATED ? imm : 0, invalidated);
    CU_ASSERT(untouched(0, 64));
}

/* I-28, R-COMP-04: a record cannot invalidate; what cannot be parsed has no slot; without RECORD,
 * or not granted, the answer is a message. */
static void what_is_answered_by_message(void)
{
    struct kbtp_message request;
    open_peer(false, RECORDS);
    request = request_for(KBTP_OP_LOAD, 6, RECORD | KBTP_FLAG_INVALIDATE);
    say(&request, false);
    expect_message(KBTP_STATUS_MALFORMED, 0); /* STag 0: a plain SEND (I-29) */
    request = request_for(KBTP_OP_FREE, 7, RECORD | KBTP_FLAG_INVALIDATE);
    say(&request, false);
    expect_message(KBTP_STATUS_MALFORMED, 0);
    request = request_for(KBTP_OP_FREE, 8, 0);
    say(&request, false);
    expect_message(KBTP_STATUS_NOT_VALID, 0);
    uint8_t octets[64];
    request = request_for(KBTP_OP_LOAD, 9, RECORD);
    int length = kbtp_wire_encode(&request, false, octets, sizeof octets);
    for (int cut = 1; cut < 16; cut++) { /* within the Completion Descriptor */
        CU_ASSERT_EQUAL_FATAL(peer_send(&peer, octets, (uint32_t)(length - cut)), 0);
        settle_all();
        expect_message(KBTP_STATUS_MALFORMED, 0);
    }
    CU_ASSERT_EQUAL(peer_send(&peer, octets, (uint32_t)length + 1), 0);
    settle_all();
    expect_message(KBTP_STATUS_MALFORMED, 0);
    close_peer();
    open_peer(false, 0);
    request = request_for(KBTP_OP_FREE, 7, RECORD | KBTP_FLAG_INVALIDATE);
    say(&request, false);
    expect_message(KBTP_STATUS_NOT_VALID, 0); /* not granted: the descriptor is read over */
    request = request_for(KBTP_OP_GOODBYE, 7, RECORD);
    CU_ASSERT_EQUAL(peer.state, PEER_CONNECTED);
    close_peer();
}

/* A slot that is not there ends the connection, and nothing more: what was done stays done. */
static void a_slot_that_is_not_there(void)
{
    open_peer(false, RECORDS);
    struct kbtp_message request = request_for(KBTP_OP_ALLOC_STORE, 6, RECORD | KBTP_FLAG_INLINE);
    request.operands.completion.stag += 5;
    say(&request, false);
    CU_ASSERT_EQUAL(peer.state, PEER_DOWN);
    CU_ASSERT_EQUAL(state_of(2), KBTP_SESSION_RETAINED);
    CU_ASSERT_EQUAL(kbtp_table_read(&pair.mem, &pair.target.pool.table, 32).flags,
                    KBTP_ENTRY_VALID);
    close_peer();
}

/* ---- the initiator, with a target made by hand ------------------------------------------- */

static uint64_t slots[4 * 3];

static void open_initiator(uint16_t features)
{
    struct kbtp_initiator_config config = plain_config();
    struct kbtp_message ack = good_ack();
    provider = &provider_infiniband;
    config.features = RECORDS;
    config.records = slots;
    ack.hello_ack.features = features;
    open_ends(&config);
    struct kbtp_message said = begin();
    CU_ASSERT_EQUAL(said.hello.requested_features, RECORDS);
    tell(&ack);
    CU_ASSERT_EQUAL_FATAL(kbtp_initiator_state(initiator), KBTP_INITIATOR_READY);
}

/* Submits a LOAD of 64 octets with RECORD; the request as the target has it. */
static struct kbtp_message load_by_record(void)
{
    CU_ASSERT_EQUAL_FATAL(submit_it(KBTP_OP_LOAD, 0x4000, 64, RECORD), 0);
    settle();
    struct kbtp_message request = heard();
    CU_ASSERT_EQUAL(request.header.flags, RECORD);
    CU_ASSERT_EQUAL(request.operands.completion.reserved, 0);
    return request;
}

static struct kbtp_record record_for(const struct kbtp_message *request)
{
    return (struct kbtp_record){
        .request_id = request->header.request_id, .data_length = 8, .generation = 5};
}

/* Writes `length` octets of a record into the slot of a request; with an immediate, which is
 * anything. */
static void write_record(const struct kbtp_message *request, const struct kbtp_record *record,
                         uint32_t length, bool immediate)
{
    uint8_t octets[KBTP_RECORD_OCTETS];
    const struct rdma_wr how = {.op = immediate ? RDMA_WRITE_IMM : RDMA_WRITE,
                                .imm_stag = 0xabadcafe,
                                .remote_stag = request->operands.completion.stag,
                                .remote_to = request->operands.completion.tagged_offset};
    kbtp_record_encode(record, octets);
    CU_ASSERT_EQUAL_FATAL(peer_send_as(&peer, &how, octets, length), 0);
    settle();
}

/* R-IB-05: it waits for the immediate, whose value it ignores; nothing is taken from the slot
 * before. Answers may be messages too. */
static void the_immediate_counts(void)
{
    open_initiator(RECORDS);
    for (uint32_t round = 0; round < 3; round++) {
        uint32_t before = outcomes_count;
        struct kbtp_message request = load_by_record();
        struct kbtp_record record = record_for(&request);
        write_record(&request, &record, KBTP_RECORD_OCTETS, false);
        CU_ASSERT_EQUAL(outcomes_count, before);
        if (round == 1) { /* by message after all */
            struct kbtp_message said = completion(request.header.request_id, KBTP_STATUS_MALFORMED);
            tell(&said);
        } else {
            write_record(&request, &record, KBTP_RECORD_OCTETS, true);
        }
        CU_ASSERT_EQUAL_FATAL(outcomes_count, before + 1);
        CU_ASSERT_EQUAL(outcomes[before].by_record, round != 1);
        CU_ASSERT_EQUAL(outcomes[before].error, 0);
        CU_ASSERT_EQUAL(outcomes[before].cookie, 3);
        CU_ASSERT_EQUAL(outcomes[before].generation, 5);
        CU_ASSERT_EQUAL(outcomes[before].data_length, 8);
        CU_ASSERT_EQUAL(kbtp_initiator_credits(initiator), 4);
    }
    close_ends();
}

/* While the record of a later request is half there, the immediate speaks for the earlier one. */
static void one_record_for_each_immediate(void)
{
    open_initiator(RECORDS);
    struct kbtp_message first = load_by_record(), second = load_by_record();
    struct kbtp_record one = record_for(&first), two = record_for(&second);
    two.status = KBTP_STATUS_NOT_VALID;
    two.data_length = 0;
    write_record(&second, &two, 8, false); /* its Request ID, and a status of 0 as yet */
    write_record(&first, &one, KBTP_RECORD_OCTETS, true);
    CU_ASSERT_EQUAL_FATAL(outcomes_count, 1);
    CU_ASSERT_EQUAL(outcomes[0].data_length, 8);
    write_record(&second, &two, KBTP_RECORD_OCTETS, true);
    CU_ASSERT_EQUAL_FATAL(outcomes_count, 2);
    CU_ASSERT_EQUAL(outcomes[1].status, KBTP_STATUS_NOT_VALID);
    close_ends();
}

/* Request IDs begin anew with a connection: what lies in a slot from before is no answer. */
static void slots_are_cleared_before_reuse(void)
{
    struct kbtp_message ack = good_ack();
    ack.hello_ack.features = RECORDS;
    open_initiator(RECORDS);
    struct kbtp_message before = load_by_record();
    struct kbtp_record record = record_for(&before);
    write_record(&before, &record, KBTP_RECORD_OCTETS, false);
    peer_disconnect(&peer);
    settle();
    CU_ASSERT_EQUAL(outcomes[0].error, -ECONNRESET);
    begin_with(&ack);
    struct kbtp_message after = load_by_record();
    CU_ASSERT_EQUAL(after.header.request_id, before.header.request_id);
    const struct rdma_wr immediate = {.op = RDMA_WRITE_IMM};
    CU_ASSERT_EQUAL(peer_send_as(&peer, &immediate, "", 0), 0);
    settle();
    expect_down(-EPROTO);
    CU_ASSERT_EQUAL_FATAL(outcomes_count, 2);
    CU_ASSERT_EQUAL(outcomes[1].error, -ECONNRESET);
    close_ends();
}

/* Wrong peer: R-COMP-03. Each of these ends the connection, and nobody is told anything but that
 * the outcome is unknown. */
static void wrong_records(void)
{
    for (uint32_t wrong = 0; wrong < 5; wrong++) {
        open_initiator(wrong == 0 ? 0 : RECORDS);
        struct kbtp_message request = {0};
        if (wrong == 0) { /* records were not granted: it does not ask for one */
            CU_ASSERT_EQUAL(submit_it(KBTP_OP_LOAD, 0x4000, 64, RECORD), -EINVAL);
            CU_ASSERT_EQUAL(submit_it(KBTP_OP_LOAD, 0x4000, 64, 0), 0);
            request.operands.completion.tagged_offset = 0;
        } else {
            request = load_by_record();
        }
        struct kbtp_record record = record_for(&request);
        record.request_id += wrong == 1 ? 1 : 0;                 /* of another place */
        record.request_id += wrong == 2 ? UINT64_C(1) << 16 : 0; /* of a later request */
        record.data_length = wrong == 3 ? 65 : 8;                /* more than there is room for */
        write_record(&request, &record, wrong == 0 ? 0 : KBTP_RECORD_OCTETS, true);
        if (wrong == 4) { /* for the second time */
            CU_ASSERT_EQUAL(outcomes_count, 1);
            write_record(&request, &record, KBTP_RECORD_OCTETS, true);
        }
        expect_down(-EPROTO);
        CU_ASSERT_EQUAL_FATAL(outcomes_count, 1);
        CU_ASSERT_EQUAL(outcomes[0].error, wrong == 4 ? 0 : -ECONNRESET);
        close_ends();
    }
}

/* What it refuses: RECORD with INVALIDATE, no memory or memory out of place for the slots. */
static void what_is_refused(void)
{
    struct kbtp_initiator_config config = plain_config();
    struct kbtp_initiator *other;
    static uint64_t private_memory[512];
    static uint8_t buffers[4096];
    open_initiator(RECORDS);
    CU_ASSERT_EQUAL(submit_it(KBTP_OP_LOAD, 0x4000, 64, RECORD | KBTP_FLAG_INVALIDATE), -EINVAL);
    config.features = RECORDS;
    CU_ASSERT_EQUAL(kbtp_initiator_init(&other, &cpu, &config, private_memory, buffers), -EINVAL);
    config.records = (uint8_t *)slots + 4;
    CU_ASSERT_EQUAL(kbtp_initiator_init(&other, &cpu, &config, private_memory, buffers), -EINVAL);
    close_ends();
}

int main(void)
{
    static const struct test tests[] = {
        {"who is granted records", who_is_granted_records},
        {"every operation by record", every_operation_by_record},
        {"many at once", many_at_once},
        {"octets of a record", octets_of_a_record},
        {"what is answered by message", what_is_answered_by_message},
        {"a slot that is not there", a_slot_that_is_not_there},
        {"the immediate counts", the_immediate_counts},
        {"one record for each immediate", one_record_for_each_immediate},
        {"slots are cleared before reuse", slots_are_cleared_before_reuse},
        {"wrong records", wrong_records},
        {"what is refused", what_is_refused},
    };
    return run_tests("completion records", tests, sizeof tests / sizeof *tests);
}
