/* SPDX-License-Identifier: BSD-3-Clause */
#include "ref/wire.h"

#include <errno.h>
#include <string.h>

#include "ref/wire_layout.h"

/* ---- one structure --------------------------------------------------------------------------- */

/* Between octets and a member of the same width; the same in both directions. */
static inline void copy_field(uint8_t *to, const uint8_t *from, unsigned width, bool swapped)
{
    uint64_t value64;
    uint32_t value32;
    uint16_t value16;
    switch (width) {
    case 8:
        memcpy(&value64, from, sizeof value64);
        value64 = swapped ? __builtin_bswap64(value64) : value64;
        memcpy(to, &value64, sizeof value64);
        break;
    case 4:
        memcpy(&value32, from, sizeof value32);
        value32 = swapped ? __builtin_bswap32(value32) : value32;
        memcpy(to, &value32, sizeof value32);
        break;
    case 2:
        memcpy(&value16, from, sizeof value16);
        value16 = swapped ? __builtin_bswap16(value16) : value16;
        memcpy(to, &value16, sizeof value16);
        break;
    case 1:
        *to = *from;
        break;
    default:
        memcpy(to, from, KBTP_INITIATOR_ID_OCTETS);
    }
}

static inline void get_structure(enum kbtp_layout_id id, const uint8_t *octets, bool addr_le,
                                 void *structure)
{
    const struct kbtp_layout *layout = &kbtp_layouts[id];
    for (unsigned i = 0; i < layout->fields_count; i++) {
        const struct kbtp_field *field = &layout->fields[i];
        if (field->kind != KBTP_FIELD_RESERVED)
            copy_field((uint8_t *)structure + field->member, octets + field->offset, field->width,
                       kbtp_field_swapped(field, addr_le));
    }
}

static inline void put_structure(enum kbtp_layout_id id, const void *structure, bool addr_le,
                                 uint8_t *out)
{
    const struct kbtp_layout *layout = &kbtp_layouts[id];
    for (unsigned i = 0; i < layout->fields_count; i++) {
        const struct kbtp_field *field = &layout->fields[i];
        if (field->kind == KBTP_FIELD_RESERVED)
            memset(out + field->offset, 0, field->width);
        else
            copy_field(out + field->offset, (const uint8_t *)structure + field->member,
                       field->width, kbtp_field_swapped(field, addr_le));
    }
}

/* ---- what a message consists of -------------------------------------------------------------- */

/* The body of a HELLO_ACK with an error means nothing (I-47). */
static inline bool body_counts(const struct kbtp_header *header)
{
    return header->opcode != KBTP_OP_HELLO_ACK || header->status == KBTP_STATUS_OK;
}

/* Those that say which descriptors follow. */
static inline uint16_t features_of(const struct kbtp_message *message)
{
    if (message->header.opcode != KBTP_OP_HELLO_ACK || !body_counts(&message->header))
        return 0;
    return message->hello_ack.features;
}

static inline bool has_inline(const struct kbtp_shape *shape, const struct kbtp_header *header)
{
    return shape->inline_legal && (header->flags & KBTP_FLAG_INLINE);
}

/* Version, Opcode and Flags. */
static inline enum kbtp_wire_fault judge(const struct kbtp_header *header,
                                         const struct kbtp_shape *shape)
{
    if (header->version != KBTP_WIRE_VERSION)
        return KBTP_WIRE_BAD_VERSION;
    if (!shape->known)
        return KBTP_WIRE_BAD_OPCODE;
    if (shape->inline_faulty && (header->flags & KBTP_FLAG_INLINE))
        return KBTP_WIRE_BAD_INLINE;
    return KBTP_WIRE_WELL;
}

/* The octets of a message that can be encoded, without inline data. */
static size_t octets_of(const struct kbtp_message *message, const struct kbtp_shape *shape)
{
    const uint16_t features = features_of(message);
    size_t octets = KBTP_HEADER_OCTETS;
    for (unsigned i = 0; i < shape->parts_count; i++)
        if (kbtp_part_present(&shape->parts[i], message->header.flags, features))
            octets += kbtp_layouts[shape->parts[i].layout].octets;
    return octets;
}

size_t kbtp_wire_length(const struct kbtp_message *message)
{
    const struct kbtp_shape *shape = kbtp_wire_shape(message->header.opcode);
    if (judge(&message->header, shape) != KBTP_WIRE_WELL)
        return 0;
    size_t inline_octets = has_inline(shape, &message->header) ? message->operands.data.length : 0;
    return octets_of(message, shape) + inline_octets;
}

/* ---- encoding -------------------------------------------------------------------------------- */

static void put_part(const struct kbtp_message *message, const struct kbtp_part *part,
                     bool inline_data, bool addr_le, uint8_t *out)
{
    if (!body_counts(&message->header)) {
        memset(out, 0, kbtp_layouts[part->layout].octets);
    } else if (inline_data && part->layout == KBTP_LAYOUT_DATA_DESCRIPTOR) {
        const struct kbtp_data_descriptor data = {.length = message->operands.data.length};
        put_structure(part->layout, &data, addr_le, out);
    } else {
        put_structure(part->layout, (const uint8_t *)message + part->member, addr_le, out);
    }
}

int kbtp_wire_encode(const struct kbtp_message *message, bool addr_le, uint8_t *out, size_t size)
{
    const struct kbtp_header *header = &message->header;
    const struct kbtp_shape *shape = kbtp_wire_shape(header->opcode);
    if (judge(header, shape) != KBTP_WIRE_WELL)
        return -EINVAL;
    if (size < octets_of(message, shape))
        return -ENOSPC;
    const uint16_t features = features_of(message);
    put_structure(KBTP_LAYOUT_HEADER, header, addr_le && shape->addresses, out);
    unsigned at = KBTP_HEADER_OCTETS;
    for (unsigned i = 0; i < shape->parts_count; i++) {
        const struct kbtp_part *part = &shape->parts[i];
        if (!kbtp_part_present(part, header->flags, features))
            continue;
        put_part(message, part, has_inline(shape, header), addr_le, out + at);
        at += kbtp_layouts[part->layout].octets;
    }
    return (int)at;
}

/* ---- what is wrong --------------------------------------------------------------------------- */

const char *kbtp_wire_fault_words(enum kbtp_wire_fault fault)
{
    switch (fault) {
    case KBTP_WIRE_WELL:
        return "nothing is wrong";
    case KBTP_WIRE_NO_HEADER:
        return "the octets end before the header does";
    case KBTP_WIRE_BAD_VERSION:
        return "the version is not 1";
    case KBTP_WIRE_BAD_OPCODE:
        return "the opcode is unknown";
    case KBTP_WIRE_BAD_INLINE:
        return "INLINE is for STORE and ALLOC_STORE only";
    case KBTP_WIRE_SHORT:
        return "the octets end here";
    case KBTP_WIRE_LENGTH:
        return "more inline data follows than the length says";
    case KBTP_WIRE_TRAILING:
        return "octets follow behind the end";
    }
    return "unknown fault";
}

static int fail(struct kbtp_wire_error *error, struct kbtp_wire_error what)
{
    if (error)
        *error = what;
    return -EBADMSG;
}

static int fail_header(struct kbtp_wire_error *error, enum kbtp_wire_fault fault,
                       const struct kbtp_header *header)
{
    /* Index in the header's table, and the value there. */
    unsigned i = 2;
    uint64_t found = header->flags;
    if (fault == KBTP_WIRE_BAD_VERSION)
        i = 0, found = header->version;
    else if (fault == KBTP_WIRE_BAD_OPCODE)
        i = 1, found = header->opcode;
    const struct kbtp_layout *layout = &kbtp_layouts[KBTP_LAYOUT_HEADER];
    return fail(error, (struct kbtp_wire_error){
                           .structure = layout->name,
                           .field = layout->fields[i].name,
                           .octet = layout->fields[i].offset,
                           .wanted = fault == KBTP_WIRE_BAD_VERSION ? KBTP_WIRE_VERSION : 0,
                           .found = found,
                           .fault = fault,
                       });
}

/* The structure that begins at `begin` is not whole. */
static int fail_short(struct kbtp_wire_error *error, enum kbtp_wire_fault fault,
                      enum kbtp_layout_id id, size_t begin, size_t length)
{
    const struct kbtp_layout *layout = &kbtp_layouts[id];
    const struct kbtp_field *field = layout->fields;
    while (begin + field->offset + field->width <= length)
        field++;
    return fail(error, (struct kbtp_wire_error){
                           .structure = layout->name,
                           .field = field->name,
                           .octet = length,
                           .wanted = begin + layout->octets,
                           .found = length,
                           .fault = fault,
                       });
}

/* More or less inline data follows at `at` than Length says. */
static int fail_inline(struct kbtp_wire_error *error, size_t at, uint32_t wanted, size_t length)
{
    const struct kbtp_layout *layout = &kbtp_layouts[KBTP_LAYOUT_DATA_DESCRIPTOR];
    const struct kbtp_field *last = &layout->fields[layout->fields_count - 1]; /* Length */
    if (length - at < wanted)
        return fail(error, (struct kbtp_wire_error){
                               .structure = KBTP_REST,
                               .field = KBTP_INLINE_DATA,
                               .octet = length,
                               .wanted = (uint64_t)at + wanted,
                               .found = length,
                               .fault = KBTP_WIRE_SHORT,
                           });
    return fail(error, (struct kbtp_wire_error){
                           .structure = layout->name,
                           .field = last->name,
                           .octet = KBTP_HEADER_OCTETS + last->offset,
                           .wanted = wanted,
                           .found = length - at,
                           .fault = KBTP_WIRE_LENGTH,
                       });
}

static int fail_trailing(struct kbtp_wire_error *error, size_t end, size_t length)
{
    return fail(error, (struct kbtp_wire_error){
                           .structure = KBTP_REST,
                           .field = KBTP_TRAILING_OCTETS,
                           .octet = end,
                           .wanted = end,
                           .found = length,
                           .fault = KBTP_WIRE_TRAILING,
                       });
}

int kbtp_layout_check(enum kbtp_layout_id as, size_t length, struct kbtp_wire_error *error)
{
    if (length < kbtp_layouts[as].octets)
        return fail_short(error, KBTP_WIRE_SHORT, as, 0, length);
    if (length > kbtp_layouts[as].octets)
        return fail_trailing(error, kbtp_layouts[as].octets, length);
    return 0;
}

/* ---- decoding -------------------------------------------------------------------------------- */

/* The body of a message whose header is in `out` and well. */
static int get_body(const uint8_t *octets, size_t length, bool addr_le,
                    const struct kbtp_shape *shape, struct kbtp_message *out,
                    struct kbtp_wire_error *error)
{
    size_t at = KBTP_HEADER_OCTETS;
    for (unsigned i = 0; i < shape->parts_count; i++) {
        const struct kbtp_part *part = &shape->parts[i];
        if (!kbtp_part_present(part, out->header.flags, features_of(out)))
            continue;
        if (length - at < kbtp_layouts[part->layout].octets)
            return fail_short(error, KBTP_WIRE_SHORT, part->layout, at, length);
        if (body_counts(&out->header))
            get_structure(part->layout, octets + at, addr_le, (uint8_t *)out + part->member);
        at += kbtp_layouts[part->layout].octets;
    }
    if (has_inline(shape, &out->header)) {
        if (length - at != out->operands.data.length)
            return fail_inline(error, at, out->operands.data.length, length);
        out->operands.inline_offset = (uint32_t)at;
        out->operands.inline_length = out->operands.data.length;
    } else if (length > at) {
        return fail_trailing(error, at, length);
    }
    return 0;
}

int kbtp_wire_decode(const uint8_t *octets, size_t length, bool addr_le, struct kbtp_message *out,
                     struct kbtp_wire_error *error)
{
    memset(out, 0, sizeof *out);
    if (length < KBTP_HEADER_OCTETS)
        return fail_short(error, KBTP_WIRE_NO_HEADER, KBTP_LAYOUT_HEADER, 0, length);
    /* The Opcode says whether the Block Handle follows ADDR_LE. */
    const struct kbtp_shape *shape = kbtp_wire_shape(octets[KBTP_OPCODE_OFFSET]);
    get_structure(KBTP_LAYOUT_HEADER, octets, addr_le && shape->addresses, &out->header);
    enum kbtp_wire_fault fault = judge(&out->header, shape);
    if (fault != KBTP_WIRE_WELL)
        return fail_header(error, fault, &out->header);
    if (get_body(octets, length, addr_le, shape, out, error) == 0)
        return 0;
    memset((uint8_t *)out + sizeof out->header, 0, sizeof *out - sizeof out->header);
    return -EBADMSG;
}

/* ---- structures in memory -------------------------------------------------------------------- */

void kbtp_record_encode(const struct kbtp_record *record, uint8_t out[KBTP_RECORD_OCTETS])
{
    put_structure(KBTP_LAYOUT_RECORD, record, false, out);
}

void kbtp_record_decode(const uint8_t octets[KBTP_RECORD_OCTETS], struct kbtp_record *out)
{
    get_structure(KBTP_LAYOUT_RECORD, octets, false, out);
}

void kbtp_entry_encode(const struct kbtp_entry *entry, bool addr_le, uint8_t out[KBTP_ENTRY_OCTETS])
{
    put_structure(KBTP_LAYOUT_ENTRY, entry, addr_le, out);
}

void kbtp_entry_decode(const uint8_t octets[KBTP_ENTRY_OCTETS], bool addr_le,
                       struct kbtp_entry *out)
{
    get_structure(KBTP_LAYOUT_ENTRY, octets, addr_le, out);
}

void kbtp_slot_encode(const struct kbtp_slot_value *slot, bool addr_le,
                      uint8_t out[KBTP_SLOT_OCTETS])
{
    put_structure(KBTP_LAYOUT_SLOT, slot, addr_le, out);
}

void kbtp_slot_decode(const uint8_t octets[KBTP_SLOT_OCTETS], bool addr_le,
                      struct kbtp_slot_value *out)
{
    *out = (struct kbtp_slot_value){0};
    get_structure(KBTP_LAYOUT_SLOT, octets, addr_le, out);
}
