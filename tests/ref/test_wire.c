/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ref/wire.h against octets that were written out by hand from the draft, in both settings of
 * ADDR_LE; cut off at every octet, too long, and at random. Octets to decode lie before a page that
 * nobody may touch.
 */
#include "ref/wire.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "sim/random.h"
#include "tests/run.h"

#define MAX_OCTETS 256u
#define RANDOM_MESSAGES 100000u

/* ---- octets ---------------------------------------------------------------------------------- */

/* Hex digits in pairs, with spaces between pairs: how many octets they are. */
static size_t from_hex(const char *hex, uint8_t out[MAX_OCTETS])
{
    static const char digits[] = "0123456789abcdef";
    size_t count = 0;
    for (; *hex; hex++) {
        if (*hex == ' ')
            continue;
        size_t high = (size_t)(strchr(digits, hex[0]) - digits);
        size_t low = (size_t)(strchr(digits, hex[1]) - digits);
        out[count++] = (uint8_t)(high << 4 | low);
        hex++;
    }
    return count;
}

/* The end of a page behind which no octet can be read. */
static uint8_t *guarded_end(void)
{
    static uint8_t *end;
    if (!end) {
        size_t page = (size_t)sysconf(_SC_PAGESIZE);
        uint8_t *pages =
            mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        CU_ASSERT_FATAL(pages != MAP_FAILED);
        CU_ASSERT_EQUAL_FATAL(mprotect(pages + page, page, PROT_NONE), 0);
        end = pages + page;
    }
    return end;
}

/* Decodes a copy at the end of that page. */
static int decode(const uint8_t *octets, size_t length, bool addr_le, struct kbtp_message *out,
                  struct kbtp_wire_error *error)
{
    uint8_t *at = guarded_end() - length;
    memcpy(at, octets, length);
    return kbtp_wire_decode(at, length, addr_le, out, error);
}

static bool same(const struct kbtp_message *a, const struct kbtp_message *b)
{
    return memcmp(a, b, sizeof *a) == 0;
}

/* ---- vectors --------------------------------------------------------------------------------- */

#define HEADER_FIELDS \
    "Version 1;Opcode 1;Flags 2;Request ID 8;Block Handle 8;Generation 2;Status 2;"
#define DATA_FIELDS "STag 4;Tagged Offset 8;Length 4;"
#define RECORD_SLOT_FIELDS "STag 4;Tagged Offset 8;Reserved 4;"
#define HELLO_ACK_FIELDS \
    "Features 2;Request Credits 2;Block Size 4;Max Inline 4;Allocation Quota 4;Handle Base 8;" \
    "Handle Count 4;Ticket Timeout (ms) 4;"
#define DIRECT_FIELDS "STag 4;Tagged Offset 8;Count 4;"
#define DIRECT_LOAD_FIELDS DIRECT_FIELDS "Table Base Handle 8;Reserved 8;" DIRECT_FIELDS
#define DIRECT_ALLOC_FIELDS DIRECT_FIELDS DIRECT_FIELDS DIRECT_FIELDS

/* Octets of the header behind Version, Opcode, Flags: in network order, and with ADDR_LE. */
#define IDS "0102030405060708 1112131415161718 2122 0000 "
#define IDS_LE "0102030405060708 1817161514131211 2122 0000 "
#define IDS_NONE "0000000000000000 0000000000000000 0000 0000 "

#define HEADER(an_opcode, some_flags) \
    .header = {.version = 1, \
               .opcode = (an_opcode), \
               .flags = (some_flags), \
               .request_id = 0x0102030405060708u, \
               .handle = 0x1112131415161718u, \
               .generation = 0x2122}
#define DATA \
    { \
        .stag = 0x31323334u, .tagged_offset = 0x4142434445464748u, .length = 0x51525354u \
    }
#define RECORD_SLOT \
    { \
        .stag = 0x61626364u, .tagged_offset = 0x7172737475767778u \
    }
#define HELLO_ACK_BODY(some_features) \
    .features = (some_features), .request_credits = 0x0304, .block_size = 0x05060708u, \
    .max_inline = 0x090a0b0cu, .allocation_quota = 0x0d0e0f10u, \
    .handle_base = 0x1112131415161718u, .handle_count = 0x191a1b1cu, \
    .ticket_timeout_ms = 0x1d1e1f20u
#define HELLO_ACK_HEX "0304 05060708 090a0b0c 0d0e0f10 1112131415161718 191a1b1c 1d1e1f20 "
#define TABLE \
    .table = {.stag = 0x21222324u, .tagged_offset = 0x25262728292a2b2cu, .count = 0x2d2e2f30u}, \
    .table_base_handle = 0x3132333435363738u, \
    .pool = {.stag = 0x41424344u, .tagged_offset = 0x45464748494a4b4cu, .count = 0x4d4e4f50u}
#define TABLE_HEX \
    "21222324 25262728292a2b2c 2d2e2f30 3132333435363738 0000000000000000 " \
    "41424344 45464748494a4b4c 4d4e4f50 "
#define PARTITION \
    .partition = {.stag = 0x51525354u, \
                  .tagged_offset = 0x55565758595a5b5cu, \
                  .count = 0x5d5e5f60u}, \
    .ring = {.stag = 0x61626364u, .tagged_offset = 0x65666768696a6b6cu, .count = 0x6d6e6f70u}, \
    .head = {.stag = 0x71727374u, .tagged_offset = 0x75767778797a7b78u, .count = 0x7d7e7f80u}
#define PARTITION_HEX \
    "51525354 55565758595a5b5c 5d5e5f60 61626364 65666768696a6b6c 6d6e6f70 " \
    "71727374 75767778797a7b78 7d7e7f80 "

struct vector {
    const char *fields; /* "NAME WIDTH;" for each, in order */
    const char *network;
    const char *addr_le; /* NULL: the same */
    struct kbtp_message message;
};

static const struct vector vectors[] = {
    {HEADER_FIELDS "Requested Features 2;Completion Credits 2;Initiator ID 16;",
     "01 01 0000 " IDS_NONE "f00d 4142 a0a1a2a3a4a5a6a7a8a9aaabacadaeaf",
     NULL,
     {.header = {.version = 1, .opcode = 0x01},
      .hello = {.requested_features = 0xf00d,
                .completion_credits = 0x4142,
                .initiator_id = {0xa0, 0xa1, 0xa2, 0xa3, 0xa4, 0xa5, 0xa6, 0xa7, 0xa8, 0xa9, 0xaa,
                                 0xab, 0xac, 0xad, 0xae, 0xaf}}}},
    /* Even a handle in a HELLO: ADDR_LE is not known yet. */
    {HEADER_FIELDS "Requested Features 2;Completion Credits 2;Initiator ID 16;",
     "01 01 0000 " IDS "0001 0002 00000000000000000000000000000003",
     NULL,
     {HEADER(0x01, 0),
      .hello = {.requested_features = 1, .completion_credits = 2, .initiator_id = {[15] = 3}}}},
    {HEADER_FIELDS HELLO_ACK_FIELDS,
     "01 02 0000 " IDS "f00c " HELLO_ACK_HEX,
     NULL,
     {HEADER(0x02, 0), .hello_ack = {HELLO_ACK_BODY(0xf00c)}}},
    {HEADER_FIELDS HELLO_ACK_FIELDS DIRECT_LOAD_FIELDS,
     "01 02 0000 " IDS "0009 " HELLO_ACK_HEX TABLE_HEX,
     NULL,
     {HEADER(0x02, 0), .hello_ack = {HELLO_ACK_BODY(0x0009), TABLE}}},
    {HEADER_FIELDS HELLO_ACK_FIELDS DIRECT_ALLOC_FIELDS,
     "01 02 0000 " IDS "0002 " HELLO_ACK_HEX PARTITION_HEX,
     NULL,
     {HEADER(0x02, 0), .hello_ack = {HELLO_ACK_BODY(0x0002), PARTITION}}},
    {HEADER_FIELDS HELLO_ACK_FIELDS DIRECT_LOAD_FIELDS DIRECT_ALLOC_FIELDS,
     "01 02 0000 " IDS "0003 " HELLO_ACK_HEX TABLE_HEX PARTITION_HEX,
     NULL,
     {HEADER(0x02, 0), .hello_ack = {HELLO_ACK_BODY(0x0003), TABLE, PARTITION}}},
    {HEADER_FIELDS DATA_FIELDS,
     "01 10 8010 " IDS "31323334 4142434445464748 51525354",
     "01 10 8010 " IDS_LE "34333231 4847464544434241 54535251",
     {HEADER(0x10, 0x8010), .operands = {.data = DATA}}},
    {HEADER_FIELDS DATA_FIELDS RECORD_SLOT_FIELDS,
     "01 10 0004 " IDS "31323334 4142434445464748 51525354 61626364 7172737475767778 00000000",
     "01 10 0004 " IDS_LE "34333231 4847464544434241 54535251 64636261 7877767574737271 00000000",
     {HEADER(0x10, 0x0004), .operands = {.data = DATA, .completion = RECORD_SLOT}}},
    {HEADER_FIELDS DATA_FIELDS,
     "01 11 0002 " IDS "31323334 4142434445464748 51525354",
     "01 11 0002 " IDS_LE "34333231 4847464544434241 54535251",
     {HEADER(0x11, 0x0002), .operands = {.data = DATA}}},
    {HEADER_FIELDS DATA_FIELDS RECORD_SLOT_FIELDS "Inline Data 3;",
     "01 11 0007 " IDS "00000000 0000000000000000 00000003 61626364 7172737475767778 00000000 "
     "818283",
     "01 11 0007 " IDS_LE "00000000 0000000000000000 03000000 64636261 7877767574737271 00000000 "
     "818283",
     {HEADER(0x11, 0x0007), .operands = {.data = {.length = 3},
                                         .completion = RECORD_SLOT,
                                         .inline_offset = 56,
                                         .inline_length = 3}}},
    {HEADER_FIELDS DATA_FIELDS "Inline Data 2;",
     "01 12 0009 " IDS "00000000 0000000000000000 00000002 9192",
     "01 12 0009 " IDS_LE "00000000 0000000000000000 02000000 9192",
     {HEADER(0x12, 0x0009),
      .operands = {.data = {.length = 2}, .inline_offset = 40, .inline_length = 2}}},
    {HEADER_FIELDS DATA_FIELDS RECORD_SLOT_FIELDS,
     "01 12 0004 " IDS "31323334 4142434445464748 51525354 61626364 7172737475767778 00000000",
     "01 12 0004 " IDS_LE "34333231 4847464544434241 54535251 64636261 7877767574737271 00000000",
     {HEADER(0x12, 0x0004), .operands = {.data = DATA, .completion = RECORD_SLOT}}},
    {HEADER_FIELDS, "01 13 0008 " IDS, "01 13 0008 " IDS_LE, {HEADER(0x13, 0x0008)}},
    {HEADER_FIELDS RECORD_SLOT_FIELDS,
     "01 13 0004 " IDS "61626364 7172737475767778 00000000",
     "01 13 0004 " IDS_LE "64636261 7877767574737271 00000000",
     {HEADER(0x13, 0x0004), .operands = {.completion = RECORD_SLOT}}},
    {HEADER_FIELDS "Ticket 4;Data Length 4;Block Offset 8;",
     "01 14 ffff " IDS "31323334 41424344 5152535455565758",
     "01 14 ffff " IDS_LE "31323334 41424344 5152535455565758",
     {HEADER(0x14, 0xffff), .bind = {.ticket = 0x31323334u,
                                     .data_length = 0x41424344u,
                                     .block_offset = 0x5152535455565758u}}},
    {HEADER_FIELDS "Data Length 4;Reserved 4;Block Offset 8;",
     "01 20 0000 0102030405060708 1112131415161718 2122 000b 31323334 00000000 4142434445464748",
     NULL,
     {.header = {.version = 1,
                 .opcode = 0x20,
                 .request_id = 0x0102030405060708u,
                 .handle = 0x1112131415161718u,
                 .generation = 0x2122,
                 .status = 11},
      .completion = {.data_length = 0x31323334u, .block_offset = 0x4142434445464748u}}},
    {HEADER_FIELDS, "01 30 0001 " IDS, "01 30 0001 " IDS_LE, {HEADER(0x30, 0x0001)}},
};

#define VECTORS (sizeof vectors / sizeof *vectors)

static size_t vector_octets(const struct vector *v, bool addr_le, uint8_t out[MAX_OCTETS])
{
    return from_hex(addr_le && v->addr_le ? v->addr_le : v->network, out);
}

/* Of a vector: the name of the field that octet `at` belongs to, and where that begins. */
static size_t field_at(const struct vector *v, size_t at, char name[40])
{
    size_t begin = 0;
    for (const char *field = v->fields; *field; field = strchr(field, ';') + 1) {
        const char *end = strchr(field, ';');
        const char *space = end;
        while (*space != ' ')
            space--;
        size_t width = (size_t)(space[1] - '0');
        if (end - space == 3)
            width = 10 * width + (size_t)(space[2] - '0');
        snprintf(name, 40, "%.*s", (int)(space - field), field);
        if (at < begin + width)
            return begin;
        begin += width;
    }
    snprintf(name, 40, "the end");
    return begin;
}

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
    for (size_t i = 0; i < 2 * VECTORS; i++) {
        const struct vector *v = &vectors[i / 2];
        uint8_t expected[MAX_OCTETS], octets[MAX_OCTETS] = {0};
        char name[40];
        size_t length = vector_octets(v, i % 2, expected);
        size_t inline_length = 0;
        if (v->message.header.opcode == 0x11 || v->message.header.opcode == 0x12)
            inline_length = v->message.operands.inline_length;
        CU_ASSERT_EQUAL(field_at(v, length, name), length);
        CU_ASSERT_EQUAL(kbtp_wire_length(&v->message), length);
        int written = kbtp_wire_encode(&v->message, i % 2, octets, length - inline_length);
        CU_ASSERT_EQUAL(written, (int)(length - inline_length));
        memcpy(octets + length - inline_length, expected + length - inline_length, inline_length);
        CU_ASSERT_EQUAL(memcmp(octets, expected, length), 0);

        struct kbtp_message message;
        struct kbtp_wire_error error;
        CU_ASSERT_EQUAL(decode(expected, length, i % 2, &message, &error), 0);
        CU_ASSERT_TRUE(same(&message, &v->message));
    }
}

/* ---- the draft's examples -------------------------------------------------------------------- */

/* R-EX-01, R-FLAG-01, R-DESC-04, R-HDR-02 */
static void example_of_alloc_store(void)
{
    uint8_t example[MAX_OCTETS], octets[MAX_OCTETS] = {0};
    size_t length =
        from_hex("01 12 00 01 00 00 00 00 00 00 00 07 00 00 00 00 00 00 40 01 00 00 00 00 "
                 "00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 08 4b 56 42 4c 4f 43 4b 21",
                 example);
    struct kbtp_message m;
    CU_ASSERT_EQUAL_FATAL(length, 48);
    CU_ASSERT_EQUAL_FATAL(decode(example, length, false, &m, NULL), 0);
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
    uint8_t example[MAX_OCTETS], octets[MAX_OCTETS] = {0};
    size_t length = from_hex("01 20 00 00 00 00 00 00 00 00 00 07 00 00 00 00 00 00 40 01 "
                             "00 05 00 00 00 00 00 08 00 00 00 00 00 00 00 00 00 15 00 00",
                             example);
    struct kbtp_message m;
    CU_ASSERT_EQUAL_FATAL(length, 40);
    CU_ASSERT_EQUAL_FATAL(decode(example, length, false, &m, NULL), 0);
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
    uint8_t expected[MAX_OCTETS], octets[KBTP_RECORD_OCTETS];
    CU_ASSERT_EQUAL_FATAL(
        from_hex("0102030405060708 1112 2122 31323334 4142434445464748", expected),
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
        uint8_t expected[MAX_OCTETS], octets[KBTP_ENTRY_OCTETS];
        CU_ASSERT_EQUAL_FATAL(from_hex(hex[addr_le], expected), KBTP_ENTRY_OCTETS);
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
        uint8_t expected[MAX_OCTETS], octets[KBTP_SLOT_OCTETS];
        CU_ASSERT_EQUAL_FATAL(from_hex(hex[addr_le], expected), KBTP_SLOT_OCTETS);
        struct kbtp_slot_value back = slot;
        back.reserved = 1; /* written as zero all the same */
        kbtp_slot_encode(&back, addr_le, octets);
        CU_ASSERT_EQUAL(memcmp(octets, expected, sizeof octets), 0);
        octets[4] = 0xff; /* ignored */
        kbtp_slot_decode(octets, addr_le, &back);
        CU_ASSERT_EQUAL(memcmp(&back, &slot, sizeof back), 0);
    }
}

/* ---- what is refused ------------------------------------------------------------------------- */

/* After an error: the header that could be read, and nothing else. */
static bool only_header(const struct kbtp_message *found, const struct kbtp_header *header)
{
    struct kbtp_message expected;
    memset(&expected, 0, sizeof expected);
    if (header)
        expected.header = *header;
    return same(found, &expected);
}

/* R-OPC-01 to R-OPC-09, I-30 */
static void cut_off_at_every_octet(void)
{
    for (size_t i = 0; i < 2 * VECTORS; i++) {
        const struct vector *v = &vectors[i / 2];
        uint8_t octets[MAX_OCTETS];
        size_t whole = vector_octets(v, i % 2, octets);
        for (size_t length = 0; length < whole; length++) {
            struct kbtp_message message;
            struct kbtp_wire_error error;
            char name[40];
            bool headless = length < KBTP_HEADER_OCTETS;
            field_at(v, length, name);
            CU_ASSERT_EQUAL(decode(octets, length, i % 2, &message, &error), -EBADMSG);
            CU_ASSERT_STRING_EQUAL(error.field, name);
            CU_ASSERT_EQUAL(error.octet, length);
            CU_ASSERT_EQUAL(error.found, length);
            CU_ASSERT_TRUE(error.wanted > length && error.wanted <= whole);
            CU_ASSERT_EQUAL(error.fault, headless ? KBTP_WIRE_NO_HEADER : KBTP_WIRE_SHORT);
            CU_ASSERT_TRUE(only_header(&message, headless ? NULL : &v->message.header));
            CU_ASSERT_EQUAL(decode(octets, length, i % 2, &message, NULL), -EBADMSG);
        }
    }
}

/* R-OPC-01 to R-OPC-09, R-DESC-08 */
static void too_long(void)
{
    for (size_t i = 0; i < 2 * VECTORS; i++) {
        const struct vector *v = &vectors[i / 2];
        uint8_t octets[MAX_OCTETS] = {0};
        size_t whole = vector_octets(v, i % 2, octets);
        bool has_inline = strstr(v->fields, KBTP_INLINE_DATA) != NULL;
        for (size_t more = 1; more <= 20; more++) {
            struct kbtp_message message;
            struct kbtp_wire_error error;
            CU_ASSERT_EQUAL(decode(octets, whole + more, i % 2, &message, &error), -EBADMSG);
            CU_ASSERT_TRUE(only_header(&message, &v->message.header));
            CU_ASSERT_EQUAL(error.fault, has_inline ? KBTP_WIRE_LENGTH : KBTP_WIRE_TRAILING);
            CU_ASSERT_STRING_EQUAL(error.field, has_inline ? "Length" : KBTP_TRAILING_OCTETS);
            CU_ASSERT_EQUAL(error.octet, has_inline ? 36 : whole);
            CU_ASSERT_EQUAL(error.found - error.wanted, more);
        }
    }
}

/* R-DESC-08: Length is wrong, the octets are there. */
static void inline_length_disagrees(void)
{
    static const uint32_t lengths[] = {0, 7, 9, 256, UINT32_MAX};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        uint8_t octets[48] = {0x01, 0x11, 0x00, 0x01, [36] = (uint8_t)(lengths[i] >> 24)};
        octets[37] = (uint8_t)(lengths[i] >> 16);
        octets[38] = (uint8_t)(lengths[i] >> 8);
        octets[39] = (uint8_t)lengths[i];
        struct kbtp_message message;
        struct kbtp_wire_error error;
        CU_ASSERT_EQUAL(decode(octets, sizeof octets, false, &message, &error), -EBADMSG);
        if (lengths[i] < 8) {
            CU_ASSERT_EQUAL(error.fault, KBTP_WIRE_LENGTH);
            CU_ASSERT_STRING_EQUAL(error.structure, "Data Descriptor");
            CU_ASSERT_EQUAL(error.wanted, lengths[i]);
            CU_ASSERT_EQUAL(error.found, 8);
        } else {
            CU_ASSERT_EQUAL(error.fault, KBTP_WIRE_SHORT);
            CU_ASSERT_STRING_EQUAL(error.field, KBTP_INLINE_DATA);
            CU_ASSERT_EQUAL(error.octet, 48);
            CU_ASSERT_EQUAL(error.wanted, UINT64_C(40) + lengths[i]);
        }
    }
}

/* R-HDR-02, I-30: Versions but 1, Opcodes that are none; the header stays for the answer. */
static void version_and_opcode(void)
{
    const struct vector *load = &vectors[6];
    for (unsigned value = 0; value < 256; value++) {
        uint8_t octets[MAX_OCTETS];
        struct kbtp_message message, wrong = load->message;
        struct kbtp_wire_error error;
        size_t length = vector_octets(load, false, octets);
        octets[0] = wrong.header.version = (uint8_t)value;
        if (value != 1) {
            CU_ASSERT_EQUAL(decode(octets, length, false, &message, &error), -EBADMSG);
            CU_ASSERT_EQUAL(error.fault, KBTP_WIRE_BAD_VERSION);
            CU_ASSERT_EQUAL(error.wanted, 1);
            CU_ASSERT_EQUAL(error.octet, 0);
            CU_ASSERT_STRING_EQUAL(error.field, "Version");
            CU_ASSERT_EQUAL(error.found, value);
            CU_ASSERT_TRUE(only_header(&message, &wrong.header));
            CU_ASSERT_EQUAL(kbtp_wire_encode(&wrong, false, octets, sizeof octets), -EINVAL);
            CU_ASSERT_EQUAL(kbtp_wire_length(&wrong), 0);
        }
        octets[0] = wrong.header.version = 1;
        octets[1] = wrong.header.opcode = (uint8_t)value;
        if (!kbtp_opcode_name((uint8_t)value)) {
            CU_ASSERT_EQUAL(decode(octets, length, false, &message, &error), -EBADMSG);
            CU_ASSERT_EQUAL(error.fault, KBTP_WIRE_BAD_OPCODE);
            CU_ASSERT_EQUAL(error.octet, 1);
            CU_ASSERT_STRING_EQUAL(error.field, "Opcode");
            CU_ASSERT_EQUAL(error.found, value);
            CU_ASSERT_TRUE(only_header(&message, &wrong.header));
            wrong.header.handle = 0x1817161514131211u; /* as an initiator would send it */
            CU_ASSERT_EQUAL(decode(octets, length, true, &message, &error), -EBADMSG);
            CU_ASSERT_TRUE(only_header(&message, &wrong.header));
            CU_ASSERT_EQUAL(kbtp_wire_encode(&wrong, false, octets, sizeof octets), -EINVAL);
            CU_ASSERT_EQUAL(kbtp_wire_length(&wrong), 0);
        }
    }
}

/* I-44: it would change the length. */
static void inline_of_load_and_free(void)
{
    static const uint8_t opcodes[] = {KBTP_OP_LOAD, KBTP_OP_FREE};
    for (unsigned i = 0; i < 2; i++) {
        uint8_t octets[40] = {0x01, opcodes[i], 0x00, 0x01};
        struct kbtp_message message;
        struct kbtp_wire_error error;
        for (size_t length = 24; length <= 40; length += 16) {
            CU_ASSERT_EQUAL(decode(octets, length, false, &message, &error), -EBADMSG);
            CU_ASSERT_EQUAL(error.fault, KBTP_WIRE_BAD_INLINE);
            CU_ASSERT_STRING_EQUAL(error.field, "Flags");
            CU_ASSERT_EQUAL(error.octet, 2);
        }
        CU_ASSERT_EQUAL(kbtp_wire_encode(&message, false, octets, sizeof octets), -EINVAL);
    }
}

static void too_small_a_place(void)
{
    for (size_t i = 0; i < 2 * VECTORS; i++) {
        const struct vector *v = &vectors[i / 2];
        uint8_t scratch[MAX_OCTETS], untouched[MAX_OCTETS];
        memset(untouched, 0xa5, sizeof untouched);
        int whole = kbtp_wire_encode(&v->message, i % 2, scratch, sizeof scratch);
        CU_ASSERT_TRUE_FATAL(whole >= (int)KBTP_HEADER_OCTETS);
        for (size_t size = 0; size < (size_t)whole; size++) {
            uint8_t *out = guarded_end() - size;
            memset(out - 16, 0xa5, size + 16);
            CU_ASSERT_EQUAL(kbtp_wire_encode(&v->message, i % 2, out, size), -ENOSPC);
            CU_ASSERT_EQUAL(memcmp(out - 16, untouched, size + 16), 0);
        }
        uint8_t *out = guarded_end() - whole;
        CU_ASSERT_EQUAL(kbtp_wire_encode(&v->message, i % 2, out, (size_t)whole), whole);
        CU_ASSERT_EQUAL(memcmp(out, scratch, (size_t)whole), 0);
        memset(scratch, 0xa5, sizeof scratch);
        CU_ASSERT_EQUAL(kbtp_wire_encode(&v->message, i % 2, scratch, sizeof scratch), whole);
        CU_ASSERT_EQUAL(memcmp(scratch + whole, untouched, sizeof scratch - (size_t)whole), 0);
    }
}

/* ---- what is tolerated ----------------------------------------------------------------------- */

/* R-FLAG-07: bits without a meaning change nothing, and are kept. */
static void unknown_flags_are_kept(void)
{
    for (size_t i = 0; i < VECTORS; i++) {
        const struct vector *v = &vectors[i];
        uint8_t octets[MAX_OCTETS];
        size_t length = vector_octets(v, false, octets);
        bool has_flags = (v->message.header.opcode & 0xfc) == 0x10; /* LOAD to FREE */
        for (unsigned bit = 0; bit < 16; bit++) {
            if (has_flags && (bit == 0 || bit == 2))
                continue; /* INLINE and RECORD change the body */
            octets[2] = (uint8_t)(v->message.header.flags >> 8 | 1u << bit >> 8);
            octets[3] = (uint8_t)(v->message.header.flags | 1u << bit);
            struct kbtp_message expected = v->message, message;
            expected.header.flags |= (uint16_t)(1u << bit);
            CU_ASSERT_EQUAL(decode(octets, length, false, &message, NULL), 0);
            CU_ASSERT_TRUE(same(&message, &expected));
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
        uint8_t octets[MAX_OCTETS], zeros[MAX_OCTETS], back[MAX_OCTETS];
        struct kbtp_message message, clean;
        size_t length = from_hex(cases[i].hex, zeros);
        memcpy(octets, zeros, length);
        memset(octets + cases[i].reserved, 0xff, cases[i].width);
        CU_ASSERT_EQUAL(decode(zeros, length, false, &clean, NULL), 0);
        CU_ASSERT_EQUAL(decode(octets, length, false, &message, NULL), 0);
        CU_ASSERT_TRUE(same(&message, &clean));
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
    struct kbtp_message m = vectors[5].message; /* with all descriptors */
    m.header.status = KBTP_STATUS_INVALID_HANDLE;
    CU_ASSERT_EQUAL(kbtp_wire_length(&m), KBTP_HELLO_ACK_OCTETS);
    uint8_t octets[MAX_OCTETS], expected[MAX_OCTETS] = {0};
    from_hex("01 02 0000 0102030405060708 1112131415161718 2122 0001", expected);
    CU_ASSERT_EQUAL(kbtp_wire_encode(&m, false, octets, sizeof octets), KBTP_HELLO_ACK_OCTETS);
    CU_ASSERT_EQUAL(memcmp(octets, expected, KBTP_HELLO_ACK_OCTETS), 0);

    struct kbtp_message back;
    struct kbtp_wire_error error;
    memset(octets + 24, 0xff, 32);
    CU_ASSERT_EQUAL(decode(octets, 56, false, &back, &error), 0);
    CU_ASSERT_TRUE(only_header(&back, &m.header));
    CU_ASSERT_EQUAL(decode(octets, 55, false, &back, &error), -EBADMSG);
    CU_ASSERT_STRING_EQUAL(error.field, "Ticket Timeout (ms)");
    CU_ASSERT_EQUAL(decode(octets, 72, false, &back, &error), -EBADMSG);
    CU_ASSERT_EQUAL(error.fault, KBTP_WIRE_TRAILING);
}

/* R-FLAG-01, R-DESC-04, I-48 */
static void inline_data(void)
{
    uint8_t octets[56] = {0x01, 0x12, 0x00, 0x01, [24] = 1, [30] = 2};
    struct kbtp_message m;
    CU_ASSERT_EQUAL(decode(octets, 40, false, &m, NULL), 0);
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
        uint8_t octets[MAX_OCTETS];
        random_octets(octets, sizeof octets);
        kinds[m.header.opcode]++;
        refusals += m.header.opcode == KBTP_OP_HELLO_ACK && m.header.status != KBTP_STATUS_OK;
        int written = kbtp_wire_encode(&m, i % 2, octets, sizeof octets);
        size_t length = kbtp_wire_length(&m);
        wrong += written < (int)KBTP_HEADER_OCTETS || (size_t)written > length;
        wrong += decode(octets, length, i % 2, &back, NULL) != 0 || !same(&m, &back);
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
        uint8_t octets[MAX_OCTETS], again[MAX_OCTETS];
        random_octets(octets, sizeof octets);
        size_t length = sim_random_below(&chance, MAX_OCTETS);
        if (i % 8 != 0) {
            kbtp_wire_encode(&m, i % 2, octets, sizeof octets);
            length = kbtp_wire_length(&m);
            octets[sim_random_below(&chance, (uint32_t)length)] ^= (uint8_t)(1u << i % 8);
        }
        if (decode(octets, length, i % 2, &back, &error) != 0) {
            bad++;
            wrong += error.fault == KBTP_WIRE_WELL || error.octet > length || !error.field[0];
            continue;
        }
        good++;
        wrong += kbtp_wire_encode(&back, i % 2, again, sizeof again) < 0;
        wrong += kbtp_wire_length(&back) != length;
        wrong += decode(again, length, i % 2, &m, NULL) != 0;
        if (has_inline_data(&back)) /* what means nothing then is written as zero */
            back.operands.data = (struct kbtp_data_descriptor){.length = back.operands.data.length};
        wrong += !same(&m, &back);
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
        {"cut off at every octet", cut_off_at_every_octet},
        {"too long", too_long},
        {"Length disagrees with the inline data", inline_length_disagrees},
        {"every Version and every Opcode", version_and_opcode},
        {"INLINE of LOAD and FREE", inline_of_load_and_free},
        {"too small a place to encode into", too_small_a_place},
        {"unknown flags are kept", unknown_flags_are_kept},
        {"reserved is ignored, and written as zero", reserved_is_ignored_and_written_as_zero},
        {"HELLO_ACK with an error", hello_ack_with_an_error},
        {"inline data", inline_data},
        {"random messages come back", random_messages_come_back},
        {"random octets are judged", random_octets_are_judged},
    };
    return run_tests("ref/wire", tests, sizeof tests / sizeof tests[0]);
}
