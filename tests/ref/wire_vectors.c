/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/ref/wire_vectors.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/run.h"

/* ---- octets ---------------------------------------------------------------------------------- */

size_t wire_from_hex(const char *hex, uint8_t out[WIRE_MAX_OCTETS])
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

uint8_t *wire_guarded_end(void)
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

int wire_decode(const uint8_t *octets, size_t length, bool addr_le, struct kbtp_message *out,
                struct kbtp_wire_error *error)
{
    uint8_t *at = wire_guarded_end() - length;
    memcpy(at, octets, length);
    return kbtp_wire_decode(at, length, addr_le, out, error);
}

bool wire_same(const struct kbtp_message *a, const struct kbtp_message *b)
{
    return memcmp(a, b, sizeof *a) == 0;
}

bool wire_only_header(const struct kbtp_message *found, const struct kbtp_header *header)
{
    struct kbtp_message expected;
    memset(&expected, 0, sizeof expected);
    if (header)
        expected.header = *header;
    return wire_same(found, &expected);
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

/* As IDS, with ADDR_LE, and of a header that has none. */
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
#define TABLE \
    .table = {.stag = 0x21222324u, .tagged_offset = 0x25262728292a2b2cu, .count = 0x2d2e2f30u}, \
    .table_base_handle = 0x3132333435363738u, \
    .pool = {.stag = 0x41424344u, .tagged_offset = 0x45464748494a4b4cu, .count = 0x4d4e4f50u}
#define PARTITION \
    .partition = {.stag = 0x51525354u, \
                  .tagged_offset = 0x55565758595a5b5cu, \
                  .count = 0x5d5e5f60u}, \
    .ring = {.stag = 0x61626364u, .tagged_offset = 0x65666768696a6b6cu, .count = 0x6d6e6f70u}, \
    .head = {.stag = 0x71727374u, .tagged_offset = 0x75767778797a7b78u, .count = 0x7d7e7f80u}
#define PARTITION_HEX \
    "51525354 55565758595a5b5c 5d5e5f60 61626364 65666768696a6b6c 6d6e6f70 " \
    "71727374 75767778797a7b78 7d7e7f80 "

const struct wire_vector wire_vectors[WIRE_VECTORS] = {
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
    [WIRE_VECTOR_FULL_HELLO_ACK] =
        {HEADER_FIELDS HELLO_ACK_FIELDS DIRECT_LOAD_FIELDS DIRECT_ALLOC_FIELDS,
         "01 02 0000 " IDS "0003 " HELLO_ACK_HEX TABLE_HEX PARTITION_HEX,
         NULL,
         {HEADER(0x02, 0), .hello_ack = {HELLO_ACK_BODY(0x0003), TABLE, PARTITION}}},
    [WIRE_VECTOR_LOAD] = {HEADER_FIELDS DATA_FIELDS,
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

size_t wire_vector_octets(const struct wire_vector *v, bool addr_le, uint8_t out[WIRE_MAX_OCTETS])
{
    return wire_from_hex(addr_le && v->addr_le ? v->addr_le : v->network, out);
}

size_t wire_field_at(const struct wire_vector *v, size_t at, char name[WIRE_MAX_NAME])
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
        snprintf(name, WIRE_MAX_NAME, "%.*s", (int)(space - field), field);
        if (at < begin + width)
            return begin;
        begin += width;
    }
    snprintf(name, WIRE_MAX_NAME, "the end");
    return begin;
}
