/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ref/wire.h against octets that were written out by hand from the draft, in both settings of
 * ADDR_LE: what is well-formed, what is tolerated, and messages at random. What is refused:
 * test_wire_refused.c.
 */
#include "ref/wire.h"

#include <errno.h>
#include <string.h>

#include "sim/random.h"
#include "tests/ref/wire_vectors.h"
#include "tests/run.h"

#define RANDOM_MESSAGES 100000u

/*
 * R-GEN-04, R-HDR-01, R-LE-01 to -03, -05, R-DESC-01, -04 to -06, R-OPC-01 to -09, R-SESS-07, -16,
 * -19, -20, -23, R-COMP-07.
 *
 * Encoding gives the same octets, but for inline data: kbtp_wire_encode() does not write that by
 * design (ref/wire.h), as whoever sends a message has it elsewhere. So the octets of the vector are
 * put behind what was encoded, and it is decoding that says where they are.
 */
static void vectors_encode_and_decode(void)
{
    for (size_t i = 0; i < 2 * WIRE_VECTORS; i++) {
        const struct wire_vector *v = &wire_vectors[i / 2];
        uint8_t expected[WIRE_MAX_OCTETS], octets[WIRE_MAX_OCTETS] = {0};
        char name[WIRE_MAX_NAME];
        size_t length = wire_vector_octets(v, i % 2, expected);
        size_t inline_length = 0;
        if (v->message.header.opcode == 0x11 || v->message.header.opcode == 0x12)
            inline_length = v->message.operands.inline_length;
        CU_ASSERT_EQUAL(wire_field_at(v, length, name), length);
        CU_ASSERT_EQUAL(kbtp_wire_length(&v->message), length);
        int written = kbtp_wire_encode(&v->message, i % 2, octets, length - inline_length);
        CU_ASSERT_EQUAL(written, (int)(length - inline_length));
        memcpy(octets + length - inline_length, expected + length - inline_length, inline_length);
        CU_ASSERT_EQUAL(memcmp(octets, expected, length), 0);

        struct kbtp_message message;
        struct kbtp_wire_error error;
        CU_ASSERT_EQUAL(wire_decode(expected, length, i % 2, &message, &error), 0);
        CU_ASSERT_TRUE(wire_same(&message, &v->message));
    }
}

/* ---- the draft's examples -------------------------------------------------------------------- */

/* R-EX-01, R-FLAG-01, R-DESC-04, R-HDR-02 */
static void example_of_alloc_store(void)
{
    uint8_t example[WIRE_MAX_OCTETS], octets[WIRE_MAX_OCTETS] = {0};
    size_t length =
        wire_from_hex("01 12 00 01 00 00 00 00 00 00 00 07 00 00 00 00 00 00 40 01 00 00 00 00 "
                      "00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 08 4b 56 42 4c 4f 43 4b 21",
                      example);
    struct kbtp_message m;
    CU_ASSERT_EQUAL_FATAL(length, 48);
    CU_ASSERT_EQUAL_FATAL(wire_decode(example, length, false, &m, NULL), 0);
    CU_ASSERT_EQUAL(m.header.version, 1);
    CU_ASSERT_EQUAL(m.header.opcode, KBTP_OP_ALLOC_STORE);
    CU_ASSERT_EQUAL(m.header.flags, KBTP_FLAG_INLINE);
    CU_ASSERT_EQUAL(m.header.request_id, 7);
    CU_ASSERT_EQUAL(m.header.handle, 0x4001);
    CU_ASSERT_EQUAL(m.header.generation, 0);
    CU_ASSERT_EQUAL(m.header.status, KBTP_STATUS_OK);
    CU_ASSERT_EQUAL(m.operands.data.stag, 0);
    CU_ASSERT_EQUAL(m.operands.data.tagged_offset, 0);
    CU_ASSERT_EQUAL(m.operands.data.length, 8);
    CU_ASSERT_EQUAL(m.operands.inline_offset, 40);
    CU_ASSERT_EQUAL(m.operands.inline_length, 8);
    CU_ASSERT_EQUAL(memcmp(example + m.operands.inline_offset, "KVBLOCK!", 8), 0);

    CU_ASSERT_EQUAL(kbtp_wire_encode(&m, false, octets, sizeof octets), 40);
    memcpy(octets + 40, example + 40, 8);
    CU_ASSERT_EQUAL(memcmp(octets, example, length), 0);
}

/* R-EX-02, R-OPC-08 */
static void example_of_completion(void)
{
    uint8_t example[WIRE_MAX_OCTETS], octets[WIRE_MAX_OCTETS] = {0};
    size_t length = wire_from_hex("01 20 00 00 00 00 00 00 00 00 00 07 00 00 00 00 00 00 40 01 "
                                  "00 05 00 00 00 00 00 08 00 00 00 00 00 00 00 00 00 15 00 00",
                                  example);
    struct kbtp_message m;
    CU_ASSERT_EQUAL_FATAL(length, 40);
    CU_ASSERT_EQUAL_FATAL(wire_decode(example, length, false, &m, NULL), 0);
    CU_ASSERT_EQUAL(m.header.opcode, KBTP_OP_COMPLETION);
    CU_ASSERT_EQUAL(m.header.flags, 0);
    CU_ASSERT_EQUAL(m.header.request_id, 7);
    CU_ASSERT_EQUAL(m.header.handle, 0x4001);
    CU_ASSERT_EQUAL(m.header.generation, 5);
    CU_ASSERT_EQUAL(m.header.status, KBTP_STATUS_OK);
    CU_ASSERT_EQUAL(m.completion.data_length, 8);
    CU_ASSERT_EQUAL(m.completion.block_offset, 0x150000);
    CU_ASSERT_EQUAL(kbtp_wire_encode(&m, false, octets, sizeof octets), 40);
    CU_ASSERT_EQUAL(memcmp(octets, example, length), 0);
}

/* ---- structures in memory -------------------------------------------------------------------- */

/* R-LE-05 */
static void record_octets(void)
{
    const struct kbtp_record record = {.request_id = 0x0102030405060708u,
                                       .status = 0x1112,
                                       .generation = 0x2122,
                                       .data_length = 0x31323334u,
                                       .block_offset = 0x4142434445464748u};
    uint8_t expected[WIRE_MAX_OCTETS], octets[KBTP_RECORD_OCTETS];
    CU_ASSERT_EQUAL_FATAL(
        wire_from_hex("0102030405060708 1112 2122 31323334 4142434445464748", expected),
        KBTP_RECORD_OCTETS);
    kbtp_record_encode(&record, octets);
    CU_ASSERT_EQUAL(memcmp(octets, expected, sizeof octets), 0);
    struct kbtp_record back;
    kbtp_record_decode(octets, &back);
    CU_ASSERT_EQUAL(memcmp(&back, &record, sizeof back), 0);
}

/* R-TBL-02, R-TBL-03, R-TBL-04, R-LE-04, R-LE-05; and that ref/table.c reads the same octets. */
static void entry_octets(void)
{
    static const char *const hex[] = {"8003 2122 31323334 4142434445464748",
                                      "8003 2122 31323334 4847464544434241"};
    const struct kbtp_entry entry = {.flags = 0x8003,
                                     .generation = 0x2122,
                                     .data_length = 0x31323334u,
                                     .block_offset = 0x4142434445464748u};
    for (int addr_le = 0; addr_le <= 1; addr_le++) {
        uint8_t expected[WIRE_MAX_OCTETS], octets[KBTP_ENTRY_OCTETS];
        CU_ASSERT_EQUAL_FATAL(wire_from_hex(hex[addr_le], expected), KBTP_ENTRY_OCTETS);
        kbtp_entry_encode(&entry, addr_le, octets);
        CU_ASSERT_EQUAL(memcmp(octets, expected, sizeof octets), 0);
        struct kbtp_entry back;
        kbtp_entry_decode(octets, addr_le, &back);
        CU_ASSERT_EQUAL(memcmp(&back, &entry, sizeof back), 0);

        struct mem m = {0};
        _Alignas(16) struct kbtp_table_entry memory[1];
        struct kbtp_table table = {.entries = memory, .entry_count = 1, .addr_le = addr_le};
        memcpy(memory, octets, sizeof octets);
        back = kbtp_table_read(&m, &table, 0);
        CU_ASSERT_EQUAL(memcmp(&back, &entry, sizeof back), 0);
    }
}

/* R-RING-03, R-LE-04, R-LE-05 */
static void slot_octets(void)
{
    static const char *const hex[] = {"11121314 00000000 2122232425262728",
                                      "11121314 00000000 2827262524232221"};
    const struct kbtp_slot_value slot = {.sequence = 0x11121314u,
                                         .block_offset = 0x2122232425262728u};
    for (int addr_le = 0; addr_le <= 1; addr_le++) {
        uint8_t expected[WIRE_MAX_OCTETS], octets[KBTP_SLOT_OCTETS];
        CU_ASSERT_EQUAL_FATAL(wire_from_hex(hex[addr_le], expected), KBTP_SLOT_OCTETS);
        struct kbtp_slot_value back = slot;
        back.reserved = 1; /* written as zero all the same */
        kbtp_slot_encode(&back, addr_le, octets);
        CU_ASSERT_EQUAL(memcmp(octets, expected, sizeof octets), 0);
        octets[4] = 0xff; /* ignored */
        kbtp_slot_decode(octets, addr_le, &back);
        CU_ASSERT_EQUAL(memcmp(&back, &slot, sizeof back), 0);
    }
}

/* ---- what is tolerated ----------------------------------------------------------------------- */

/* R-FLAG-07: bits without a meaning change nothing, and are kept. */
static void unknown_flags_are_kept(void)
{
    for (size_t i = 0; i < WIRE_VECTORS; i++) {
        const struct wire_vector *v = &wire_vectors[i];
        uint8_t octets[WIRE_MAX_OCTETS];
        size_t length = wire_vector_octets(v, false, octets);
        bool has_flags = (v->message.header.opcode & 0xfc) == 0x10; /* LOAD to FREE */
        for (unsigned bit = 0; bit < 16; bit++) {
            if (has_flags && (bit == 0 || bit == 2))
                continue; /* INLINE and RECORD change the body */
            octets[2] = (uint8_t)(v->message.header.flags >> 8 | 1u << bit >> 8);
            octets[3] = (uint8_t)(v->message.header.flags | 1u << bit);
            struct kbtp_message expected = v->message, message;
            expected.header.flags |= (uint16_t)(1u << bit);
            CU_ASSERT_EQUAL(wire_decode(octets, length, false, &message, NULL), 0);
            CU_ASSERT_TRUE(wire_same(&message, &expected));
        }
    }
}

/* R-COMP-07, R-SESS-20, R-DESC-05 */
static void reserved_is_ignored_and_written_as_zero(void)
{
    static const struct {
        const char *hex;
        size_t reserved, width;
    } cases[] = {
        {"01 20 0000 " IDS "31323334 00000000 4142434445464748", 28, 4},
        {"01 10 0004 " IDS "31323334 4142434445464748 51525354 61626364 7172737475767778 00000000",
         52, 4},
        {"01 13 0004 " IDS "61626364 7172737475767778 00000000", 36, 4},
        {"01 02 0000 " IDS "0001 " HELLO_ACK_HEX TABLE_HEX, 80, 8},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint8_t octets[WIRE_MAX_OCTETS], zeros[WIRE_MAX_OCTETS], back[WIRE_MAX_OCTETS];
        struct kbtp_message message, clean;
        size_t length = wire_from_hex(cases[i].hex, zeros);
        memcpy(octets, zeros, length);
        memset(octets + cases[i].reserved, 0xff, cases[i].width);
        CU_ASSERT_EQUAL(wire_decode(zeros, length, false, &clean, NULL), 0);
        CU_ASSERT_EQUAL(wire_decode(octets, length, false, &message, NULL), 0);
        CU_ASSERT_TRUE(wire_same(&message, &clean));
        if (i == 0)
            message.completion.reserved = UINT32_MAX;
        else if (i < 3)
            message.operands.completion.reserved = UINT32_MAX;
        CU_ASSERT_EQUAL(kbtp_wire_encode(&message, false, back, sizeof back), (int)length);
        CU_ASSERT_EQUAL(memcmp(back, zeros, length), 0);
    }
}

/* I-47: 32 octets of body that mean nothing. */
static void hello_ack_with_an_error(void)
{
    struct kbtp_message m =
        wire_vectors[WIRE_VECTOR_FULL_HELLO_ACK].message; /* with all descriptors */
    m.header.status = KBTP_STATUS_INVALID_HANDLE;
    CU_ASSERT_EQUAL(kbtp_wire_length(&m), KBTP_HELLO_ACK_OCTETS);
    uint8_t octets[WIRE_MAX_OCTETS], expected[WIRE_MAX_OCTETS] = {0};
    wire_from_hex("01 02 0000 0102030405060708 1112131415161718 2122 0001", expected);
    CU_ASSERT_EQUAL(kbtp_wire_encode(&m, false, octets, sizeof octets), KBTP_HELLO_ACK_OCTETS);
    CU_ASSERT_EQUAL(memcmp(octets, expected, KBTP_HELLO_ACK_OCTETS), 0);

    struct kbtp_message back;
    struct kbtp_wire_error error;
    memset(octets + 24, 0xff, 32);
    CU_ASSERT_EQUAL(wire_decode(octets, 56, false, &back, &error), 0);
    CU_ASSERT_TRUE(wire_only_header(&back, &m.header));
    CU_ASSERT_EQUAL(wire_decode(octets, 55, false, &back, &error), -EBADMSG);
    CU_ASSERT_STRING_EQUAL(error.field, "Ticket Timeout (ms)");
    CU_ASSERT_EQUAL(wire_decode(octets, 72, false, &back, &error), -EBADMSG);
    CU_ASSERT_EQUAL(error.fault, KBTP_WIRE_TRAILING);
}

/* R-FLAG-01, R-DESC-04, I-48 */
static void inline_data(void)
{
    uint8_t octets[56] = {0x01, 0x12, 0x00, 0x01, [24] = 1, [30] = 2};
    struct kbtp_message m;
    CU_ASSERT_EQUAL(wire_decode(octets, 40, false, &m, NULL), 0);
    CU_ASSERT_EQUAL(m.operands.inline_offset, 40);
    CU_ASSERT_EQUAL(m.operands.inline_length, 0);
    /* What INLINE leaves without a meaning is kept by the reader, and zero from the writer. */
    CU_ASSERT_EQUAL(m.operands.data.stag, 0x01000000);
    CU_ASSERT_EQUAL(m.operands.data.tagged_offset, 0x0000020000000000);
    m.operands.data.length = UINT32_MAX;
    CU_ASSERT_EQUAL(kbtp_wire_length(&m), UINT64_C(40) + UINT32_MAX);
    CU_ASSERT_EQUAL(kbtp_wire_encode(&m, false, octets, sizeof octets), 40);
    for (unsigned i = 24; i < 40; i++)
        CU_ASSERT_EQUAL(octets[i], i < 36 ? 0 : 0xff);
}

/* ---- at random ------------------------------------------------------------------------------- */

static uint64_t chance = 1;

static void random_octets(void *out, size_t count)
{
    for (size_t i = 0; i < count; i++)
        ((uint8_t *)out)[i] = (uint8_t)(sim_random64(&chance) >> 32);
}

/* A message of any kind that can be encoded, with values of any kind. */
static struct kbtp_message random_message(void)
{
    static const uint8_t opcodes[] = {0x01, 0x02, 0x10, 0x11, 0x12, 0x13, 0x14, 0x20, 0x30};
    struct kbtp_message m, raw;
    random_octets(&raw, sizeof raw);
    memset(&m, 0, sizeof m);
    m.header = raw.header;
    m.header.version = 1;
    m.header.opcode = opcodes[sim_random_below(&chance, sizeof opcodes)];
    bool operands = m.header.opcode >= 0x10 && m.header.opcode <= 0x13;
    if (m.header.opcode == KBTP_OP_HELLO) {
        m.hello = raw.hello;
    } else if (m.header.opcode == KBTP_OP_HELLO_ACK) {
        if (sim_random_below(&chance, 4) == 0) {
            m.header.status |= 1; /* an error: the body is zeros (I-47) */
            return m;
        }
        m.header.status = 0;
        m.hello_ack = raw.hello_ack;
        if (!(m.hello_ack.features & KBTP_FEATURE_DIRECT_LOAD)) {
            memset(&m.hello_ack.table, 0, sizeof m.hello_ack.table);
            memset(&m.hello_ack.pool, 0, sizeof m.hello_ack.pool);
            m.hello_ack.table_base_handle = 0;
        }
        if (!(m.hello_ack.features & KBTP_FEATURE_DIRECT_ALLOC))
            memset(&m.hello_ack.partition, 0, 3 * sizeof m.hello_ack.partition);
    } else if (operands) {
        bool store = m.header.opcode == KBTP_OP_STORE || m.header.opcode == KBTP_OP_ALLOC_STORE;
        if (!store)
            m.header.flags &= (uint16_t)~KBTP_FLAG_INLINE;
        if (m.header.opcode != KBTP_OP_FREE)
            m.operands.data = raw.operands.data;
        if (m.header.flags & KBTP_FLAG_RECORD)
            m.operands.completion = raw.operands.completion;
        m.operands.completion.reserved = 0;
        if (store && (m.header.flags & KBTP_FLAG_INLINE)) {
            uint32_t length = sim_random_below(&chance, 100);
            m.operands.data = (struct kbtp_data_descriptor){.length = length};
            m.operands.inline_length = length;
            m.operands.inline_offset = m.header.flags & KBTP_FLAG_RECORD ? 56 : 40;
        }
    } else if (m.header.opcode == KBTP_OP_BIND) {
        m.bind = raw.bind;
    } else if (m.header.opcode == KBTP_OP_COMPLETION) {
        m.completion = raw.completion;
        m.completion.reserved = 0;
    }
    return m;
}

/*
 * R-GEN-04: nothing is lost on the way, in either order. The octets of inline data are whatever
 * stood there before: kbtp_wire_encode() leaves them to the sender.
 */
static void random_messages_come_back(void)
{
    unsigned kinds[256] = {0}, refusals = 0, wrong = 0;
    for (unsigned i = 0; i < RANDOM_MESSAGES; i++) {
        struct kbtp_message m = random_message(), back;
        uint8_t octets[WIRE_MAX_OCTETS];
        random_octets(octets, sizeof octets);
        kinds[m.header.opcode]++;
        refusals += m.header.opcode == KBTP_OP_HELLO_ACK && m.header.status != KBTP_STATUS_OK;
        int written = kbtp_wire_encode(&m, i % 2, octets, sizeof octets);
        size_t length = kbtp_wire_length(&m);
        wrong += written < (int)KBTP_HEADER_OCTETS || (size_t)written > length;
        wrong += wire_decode(octets, length, i % 2, &back, NULL) != 0 || !wire_same(&m, &back);
    }
    CU_ASSERT_EQUAL(wrong, 0);
    for (unsigned i = 0; i < 256; i++)
        CU_ASSERT_EQUAL(kinds[i] > 10000, kbtp_opcode_name((uint8_t)i) != NULL);
    CU_ASSERT(refusals > 2000 && kinds[KBTP_OP_HELLO_ACK] - refusals > 2000);
}

static bool has_inline_data(const struct kbtp_message *m)
{
    return (m->header.opcode == KBTP_OP_STORE || m->header.opcode == KBTP_OP_ALLOC_STORE) &&
           m->header.flags & KBTP_FLAG_INLINE;
}

/* Octets at random, and good messages with one octet changed: what decodes encodes to the same. */
static void random_octets_are_judged(void)
{
    unsigned good = 0, bad = 0, wrong = 0;
    for (unsigned i = 0; i < RANDOM_MESSAGES; i++) {
        struct kbtp_message m = random_message(), back;
        struct kbtp_wire_error error = {.fault = KBTP_WIRE_WELL};
        uint8_t octets[WIRE_MAX_OCTETS], again[WIRE_MAX_OCTETS];
        random_octets(octets, sizeof octets);
        size_t length = sim_random_below(&chance, WIRE_MAX_OCTETS);
        if (i % 8 != 0) {
            kbtp_wire_encode(&m, i % 2, octets, sizeof octets);
            length = kbtp_wire_length(&m);
            octets[sim_random_below(&chance, (uint32_t)length)] ^= (uint8_t)(1u << i % 8);
        }
        if (wire_decode(octets, length, i % 2, &back, &error) != 0) {
            bad++;
            wrong += error.fault == KBTP_WIRE_WELL || error.octet > length || !error.field[0];
            continue;
        }
        good++;
        wrong += kbtp_wire_encode(&back, i % 2, again, sizeof again) < 0;
        wrong += kbtp_wire_length(&back) != length;
        wrong += wire_decode(again, length, i % 2, &m, NULL) != 0;
        if (has_inline_data(&back)) /* what means nothing then is written as zero */
            back.operands.data = (struct kbtp_data_descriptor){.length = back.operands.data.length};
        wrong += !wire_same(&m, &back);
    }
    CU_ASSERT_EQUAL(wrong, 0);
    CU_ASSERT_TRUE(good > 10000 && bad > 10000);
}
int main(void)
{
    static const struct test tests[] = {
        {"vectors encode and decode", vectors_encode_and_decode},
        {"the draft's example of ALLOC_STORE", example_of_alloc_store},
        {"the draft's example of COMPLETION", example_of_completion},
        {"the octets of a completion record", record_octets},
        {"the octets of a table entry", entry_octets},
        {"the octets of a ring slot", slot_octets},
        {"unknown flags are kept", unknown_flags_are_kept},
        {"reserved is ignored, and written as zero", reserved_is_ignored_and_written_as_zero},
        {"HELLO_ACK with an error", hello_ack_with_an_error},
        {"inline data", inline_data},
        {"random messages come back", random_messages_come_back},
        {"random octets are judged", random_octets_are_judged},
    };
    return run_tests("ref/wire", tests, sizeof tests / sizeof tests[0]);
}
