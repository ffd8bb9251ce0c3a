/* SPDX-License-Identifier: BSD-3-Clause */
#include "ref/wire_layout.h"

#include <stddef.h>

#include "ref/wire.h"

/* Where the members of the C structures are; nothing lies between them. */
#define IN(structure, member) offsetof(struct structure, member)

_Static_assert(sizeof(struct kbtp_header) == 24, "padding");
_Static_assert(sizeof(struct kbtp_data_descriptor) == 16, "padding");
_Static_assert(sizeof(struct kbtp_completion_descriptor) == 16, "padding");
_Static_assert(sizeof(struct kbtp_direct_descriptor) == 16, "padding");
_Static_assert(sizeof(struct kbtp_hello) == 20, "padding");
_Static_assert(sizeof(struct kbtp_hello_ack) == 120, "padding");
_Static_assert(sizeof(struct kbtp_operands) == 40, "padding");
_Static_assert(sizeof(struct kbtp_bind) == 16, "padding");
_Static_assert(sizeof(struct kbtp_completion) == 16, "padding");
_Static_assert(sizeof(struct kbtp_message) == 144, "padding");
_Static_assert(sizeof(struct kbtp_record) == 24, "padding");
_Static_assert(sizeof(struct kbtp_entry) == 16, "padding");
_Static_assert(sizeof(struct kbtp_slot_value) == 16, "padding");

/* ---- structures ------------------------------------------------------------------------------ */

#define NUMBER KBTP_FIELD_NUMBER
#define HEX KBTP_FIELD_HEX
#define RESERVED KBTP_FIELD_RESERVED
#define NETWORK KBTP_ORDER_NETWORK
#define ADDRESS KBTP_ORDER_ADDRESS
#define HOST KBTP_ORDER_HOST

static const struct kbtp_field header[] = {
    {"Version", 0, 1, NUMBER, NETWORK, IN(kbtp_header, version)},
    {"Opcode", 1, 1, KBTP_FIELD_OPCODE, NETWORK, IN(kbtp_header, opcode)},
    {"Flags", 2, 2, KBTP_FIELD_FLAGS, NETWORK, IN(kbtp_header, flags)},
    {"Request ID", 4, 8, HEX, NETWORK, IN(kbtp_header, request_id)},
    {"Block Handle", 12, 8, HEX, ADDRESS, IN(kbtp_header, handle)},
    {"Generation", 20, 2, KBTP_FIELD_GENERATION, NETWORK, IN(kbtp_header, generation)},
    {"Status", 22, 2, KBTP_FIELD_STATUS, NETWORK, IN(kbtp_header, status)},
};

static const struct kbtp_field hello[] = {
    {"Requested Features", 0, 2, KBTP_FIELD_FEATURES, NETWORK, IN(kbtp_hello, requested_features)},
    {"Completion Credits", 2, 2, NUMBER, NETWORK, IN(kbtp_hello, completion_credits)},
    {"Initiator ID", 4, 16, KBTP_FIELD_SECRET, NETWORK, IN(kbtp_hello, initiator_id)},
};

static const struct kbtp_field hello_ack[] = {
    {"Features", 0, 2, KBTP_FIELD_FEATURES, NETWORK, IN(kbtp_hello_ack, features)},
    {"Request Credits", 2, 2, NUMBER, NETWORK, IN(kbtp_hello_ack, request_credits)},
    {"Block Size", 4, 4, NUMBER, NETWORK, IN(kbtp_hello_ack, block_size)},
    {"Max Inline", 8, 4, NUMBER, NETWORK, IN(kbtp_hello_ack, max_inline)},
    {"Allocation Quota", 12, 4, NUMBER, NETWORK, IN(kbtp_hello_ack, allocation_quota)},
    {"Handle Base", 16, 8, HEX, NETWORK, IN(kbtp_hello_ack, handle_base)},
    {"Handle Count", 24, 4, NUMBER, NETWORK, IN(kbtp_hello_ack, handle_count)},
    {"Ticket Timeout (ms)", 28, 4, NUMBER, NETWORK, IN(kbtp_hello_ack, ticket_timeout_ms)},
};

static const struct kbtp_field direct_descriptor[] = {
    {"STag", 0, 4, HEX, NETWORK, IN(kbtp_direct_descriptor, stag)},
    {"Tagged Offset", 4, 8, HEX, NETWORK, IN(kbtp_direct_descriptor, tagged_offset)},
    {"Count", 12, 4, NUMBER, NETWORK, IN(kbtp_direct_descriptor, count)},
};

static const struct kbtp_field table_base[] = {
    {"Table Base Handle", 0, 8, HEX, NETWORK, 0},
    {"Reserved", 8, 8, RESERVED, NETWORK, 0},
};

static const struct kbtp_field data_descriptor[] = {
    {"STag", 0, 4, HEX, ADDRESS, IN(kbtp_data_descriptor, stag)},
    {"Tagged Offset", 4, 8, HEX, ADDRESS, IN(kbtp_data_descriptor, tagged_offset)},
    {"Length", 12, 4, NUMBER, ADDRESS, IN(kbtp_data_descriptor, length)},
};

static const struct kbtp_field completion_descriptor[] = {
    {"STag", 0, 4, HEX, ADDRESS, IN(kbtp_completion_descriptor, stag)},
    {"Tagged Offset", 4, 8, HEX, ADDRESS, IN(kbtp_completion_descriptor, tagged_offset)},
    {"Reserved", 12, 4, RESERVED, NETWORK, 0},
};

static const struct kbtp_field bind[] = {
    {"Ticket", 0, 4, NUMBER, NETWORK, IN(kbtp_bind, ticket)},
    {"Data Length", 4, 4, NUMBER, NETWORK, IN(kbtp_bind, data_length)},
    {"Block Offset", 8, 8, HEX, NETWORK, IN(kbtp_bind, block_offset)},
};

static const struct kbtp_field completion[] = {
    {"Data Length", 0, 4, NUMBER, NETWORK, IN(kbtp_completion, data_length)},
    {"Reserved", 4, 4, RESERVED, NETWORK, 0},
    {"Block Offset", 8, 8, HEX, NETWORK, IN(kbtp_completion, block_offset)},
};

static const struct kbtp_field record[] = {
    {"Request ID", 0, 8, HEX, NETWORK, IN(kbtp_record, request_id)},
    {"Status", 8, 2, KBTP_FIELD_STATUS, NETWORK, IN(kbtp_record, status)},
    {"Generation", 10, 2, KBTP_FIELD_GENERATION, NETWORK, IN(kbtp_record, generation)},
    {"Data Length", 12, 4, NUMBER, NETWORK, IN(kbtp_record, data_length)},
    {"Block Offset", 16, 8, HEX, NETWORK, IN(kbtp_record, block_offset)},
};

static const struct kbtp_field entry[] = {
    {"Flags", 0, 2, KBTP_FIELD_ENTRY_FLAGS, NETWORK, IN(kbtp_entry, flags)},
    {"Generation", 2, 2, KBTP_FIELD_GENERATION, NETWORK, IN(kbtp_entry, generation)},
    {"Data Length", 4, 4, NUMBER, NETWORK, IN(kbtp_entry, data_length)},
    {"Block Offset", 8, 8, HEX, ADDRESS, IN(kbtp_entry, block_offset)},
};

static const struct kbtp_field slot[] = {
    {"Sequence", 0, 4, NUMBER, NETWORK, IN(kbtp_slot_value, sequence)},
    {"Reserved", 4, 4, RESERVED, NETWORK, 0},
    {"Block Offset", 8, 8, KBTP_FIELD_OFFSET, ADDRESS, IN(kbtp_slot_value, block_offset)},
};

/* One integer in memory: Ticket in bits 63-32, Slot Offset in the low ones. */
static const struct kbtp_field counter[] = {
#if KBTP_HOST_IS_BIG
    {"Ticket", 0, 4, NUMBER, HOST, 0},
    {"Slot Offset", 4, 4, NUMBER, HOST, 0},
#else
    {"Slot Offset", 0, 4, NUMBER, HOST, 0},
    {"Ticket", 4, 4, NUMBER, HOST, 0},
#endif
};

#define LAYOUT(name, fields, octets) \
    { \
        name, fields, sizeof(fields) / sizeof *(fields), octets \
    }

const struct kbtp_layout kbtp_layouts[KBTP_LAYOUTS] = {
    [KBTP_LAYOUT_HEADER] = LAYOUT("header", header, KBTP_HEADER_OCTETS),
    [KBTP_LAYOUT_HELLO] = LAYOUT("HELLO", hello, 20),
    [KBTP_LAYOUT_HELLO_ACK] = LAYOUT("HELLO_ACK", hello_ack, 32),
    [KBTP_LAYOUT_TABLE] = LAYOUT("Table descriptor", direct_descriptor, 16),
    [KBTP_LAYOUT_TABLE_BASE] = LAYOUT("Table base", table_base, 16),
    [KBTP_LAYOUT_POOL] = LAYOUT("Pool descriptor", direct_descriptor, 16),
    [KBTP_LAYOUT_PARTITION] = LAYOUT("Partition descriptor", direct_descriptor, 16),
    [KBTP_LAYOUT_RING] = LAYOUT("Ring descriptor", direct_descriptor, 16),
    [KBTP_LAYOUT_HEAD] = LAYOUT("Head descriptor", direct_descriptor, 16),
    [KBTP_LAYOUT_DATA_DESCRIPTOR] = LAYOUT("Data Descriptor", data_descriptor, 16),
    [KBTP_LAYOUT_COMPLETION_DESCRIPTOR] =
        LAYOUT("Completion Descriptor", completion_descriptor, 16),
    [KBTP_LAYOUT_BIND] = LAYOUT("BIND", bind, 16),
    [KBTP_LAYOUT_COMPLETION] = LAYOUT("COMPLETION", completion, 16),
    [KBTP_LAYOUT_RECORD] = LAYOUT("completion record", record, KBTP_RECORD_OCTETS),
    [KBTP_LAYOUT_ENTRY] = LAYOUT("table entry", entry, KBTP_ENTRY_OCTETS),
    [KBTP_LAYOUT_SLOT] = LAYOUT("ring slot", slot, KBTP_SLOT_OCTETS),
    [KBTP_LAYOUT_COUNTER] = LAYOUT("ring counter", counter, 8),
};

/* ---- messages -------------------------------------------------------------------------------- */

#define DATA \
    { \
        KBTP_LAYOUT_DATA_DESCRIPTOR, KBTP_PART_ALWAYS, IN(kbtp_message, operands.data) \
    }
#define RECORD_SLOT \
    { \
        KBTP_LAYOUT_COMPLETION_DESCRIPTOR, KBTP_PART_RECORD, IN(kbtp_message, operands.completion) \
    }

/* Indexes into shapes[], by Opcode. */
enum { UNKNOWN, HELLO, HELLO_ACK, LOAD, STORE, FREE, BIND, COMPLETION, GOODBYE };

static const uint8_t shape_of[256] = {
    [KBTP_OP_HELLO] = HELLO, [KBTP_OP_HELLO_ACK] = HELLO_ACK,   [KBTP_OP_LOAD] = LOAD,
    [KBTP_OP_STORE] = STORE, [KBTP_OP_ALLOC_STORE] = STORE,     [KBTP_OP_FREE] = FREE,
    [KBTP_OP_BIND] = BIND,   [KBTP_OP_COMPLETION] = COMPLETION, [KBTP_OP_GOODBYE] = GOODBYE,
};

static const struct kbtp_shape shapes[] = {
    [UNKNOWN] = {.addresses = true}, /* whoever sends it to a target means the handle so */
    [HELLO] =
        {
            .known = true,
            .parts = {{KBTP_LAYOUT_HELLO, KBTP_PART_ALWAYS, IN(kbtp_message, hello)}},
            .parts_count = 1,
        },
    [HELLO_ACK] =
        {
            .known = true,
            .parts =
                {
                    {KBTP_LAYOUT_HELLO_ACK, KBTP_PART_ALWAYS, IN(kbtp_message, hello_ack)},
                    {KBTP_LAYOUT_TABLE, KBTP_PART_DIRECT_LOAD, IN(kbtp_message, hello_ack.table)},
                    {KBTP_LAYOUT_TABLE_BASE, KBTP_PART_DIRECT_LOAD,
                     IN(kbtp_message, hello_ack.table_base_handle)},
                    {KBTP_LAYOUT_POOL, KBTP_PART_DIRECT_LOAD, IN(kbtp_message, hello_ack.pool)},
                    {KBTP_LAYOUT_PARTITION, KBTP_PART_DIRECT_ALLOC,
                     IN(kbtp_message, hello_ack.partition)},
                    {KBTP_LAYOUT_RING, KBTP_PART_DIRECT_ALLOC, IN(kbtp_message, hello_ack.ring)},
                    {KBTP_LAYOUT_HEAD, KBTP_PART_DIRECT_ALLOC, IN(kbtp_message, hello_ack.head)},
                },
            .parts_count = 7,
        },
    [LOAD] =
        {
            .known = true,
            .addresses = true,
            .inline_faulty = true,
            .parts = {DATA, RECORD_SLOT},
            .parts_count = 2,
        },
    [STORE] =
        {
            .known = true,
            .addresses = true,
            .inline_legal = true,
            .parts = {DATA, RECORD_SLOT},
            .parts_count = 2,
        },
    [FREE] =
        {
            .known = true,
            .addresses = true,
            .inline_faulty = true,
            .parts = {RECORD_SLOT},
            .parts_count = 1,
        },
    [BIND] =
        {
            .known = true,
            .addresses = true,
            .parts = {{KBTP_LAYOUT_BIND, KBTP_PART_ALWAYS, IN(kbtp_message, bind)}},
            .parts_count = 1,
        },
    [COMPLETION] =
        {
            .known = true,
            .parts = {{KBTP_LAYOUT_COMPLETION, KBTP_PART_ALWAYS, IN(kbtp_message, completion)}},
            .parts_count = 1,
        },
    [GOODBYE] = {.known = true, .addresses = true},
};

const struct kbtp_shape *kbtp_wire_shape(uint8_t opcode)
{
    return &shapes[shape_of[opcode]];
}
