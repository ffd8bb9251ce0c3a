/* SPDX-License-Identifier: BSD-3-Clause */
#include "ref/wire_describe.h"

#include <string.h>

#include "ref/ring.h"

/* ---- words ----------------------------------------------------------------------------------- */

/* Appends; what does not fit is left out (KBTP_MAX_WORDS holds all names of any field). */
static void append(char *words, const char *more)
{
    size_t used = strlen(words);
    for (; *more && used + 1 < KBTP_MAX_WORDS; more++)
        words[used++] = *more;
    words[used] = 0;
}

static void append_listed(char *words, const char *more)
{
    if (words[0])
        append(words, ", ");
    append(words, more);
}

static void append_hex16(char *words, uint16_t value)
{
    char text[] = "0x0000";
    for (unsigned i = 0; i < 4; i++)
        text[2 + i] = "0123456789abcdef"[value >> (12 - 4 * i) & 15];
    append(words, text);
}

static const char *bit_name(const struct kbtp_wire_cursor *cursor, enum kbtp_field_kind kind,
                            uint16_t bit)
{
    switch (kind) {
    case KBTP_FIELD_FLAGS:
        return kbtp_flag_name(cursor->opcode, bit);
    case KBTP_FIELD_ENTRY_FLAGS:
        return kbtp_entry_flag_name(bit);
    default:
        return kbtp_feature_name(bit);
    }
}

static void name_bits(const struct kbtp_wire_cursor *cursor, struct kbtp_wire_item *item)
{
    uint16_t unknown = 0;
    for (unsigned i = 0; i < 16; i++) {
        uint16_t bit = (uint16_t)(item->value & 1u << i);
        const char *name = bit ? bit_name(cursor, item->kind, bit) : NULL;
        if (name)
            append_listed(item->words, name);
        else
            unknown |= bit;
    }
    if (unknown) {
        append_listed(item->words, "unknown ");
        append_hex16(item->words, unknown);
    }
    if (item->value == 0)
        append(item->words, "none");
}

static void name_number(struct kbtp_wire_item *item, const char *name, bool is_private)
{
    append(item->words, name ? name : is_private ? "private use" : "unknown");
}

/* A Generation of zero: any in a request, none in an entry, no statement elsewhere. */
static const char *generation_zero(const struct kbtp_wire_cursor *cursor)
{
    if (cursor->layout == KBTP_LAYOUT_ENTRY)
        return "never valid";
    bool request = cursor->message && cursor->shape->addresses && cursor->shape->parts_count > 0;
    return request ? "any" : "";
}

static void put_words(const struct kbtp_wire_cursor *cursor, struct kbtp_wire_item *item)
{
    switch (item->kind) {
    case KBTP_FIELD_OPCODE:
        name_number(item, kbtp_opcode_name((uint8_t)item->value),
                    kbtp_opcode_is_private((uint8_t)item->value));
        break;
    case KBTP_FIELD_STATUS:
        name_number(item, kbtp_status_name((uint16_t)item->value),
                    kbtp_status_is_private((uint16_t)item->value));
        break;
    case KBTP_FIELD_FLAGS:
    case KBTP_FIELD_ENTRY_FLAGS:
    case KBTP_FIELD_FEATURES:
        name_bits(cursor, item);
        break;
    case KBTP_FIELD_GENERATION:
        append(item->words, item->value == 0 ? generation_zero(cursor) : "");
        break;
    case KBTP_FIELD_OFFSET:
        append(item->words, item->value == KBTP_BLOCK_NONE ? "consumed" : "");
        break;
    case KBTP_FIELD_RESERVED:
        append(item->words, item->value == 0 ? "" : "not zero, ignored");
        break;
    case KBTP_FIELD_NUMBER:
    case KBTP_FIELD_HEX:
    case KBTP_FIELD_SECRET:
    case KBTP_FIELD_OCTETS:
        break;
    }
}

/* ---- the iterator ---------------------------------------------------------------------------- */

/* The value of a whole field of 1, 2, 4 or 8 octets. */
static uint64_t value_of(const struct kbtp_field *field, const uint8_t *octets, bool addr_le)
{
    /* Network order, unless octets lie in this machine's order and that is the other. */
    bool little = !KBTP_HOST_IS_BIG != kbtp_field_swapped(field, addr_le);
    uint64_t value = 0;
    for (unsigned i = 0; i < field->width; i++)
        value = value << 8 | octets[little ? field->width - 1 - i : i];
    return value;
}

/* What later fields and parts depend on. */
static void remember(struct kbtp_wire_cursor *cursor, const struct kbtp_field *field,
                     uint64_t value)
{
    if (cursor->layout == KBTP_LAYOUT_HEADER) {
        if (field->kind == KBTP_FIELD_NUMBER)
            cursor->version = (uint8_t)value;
        else if (field->kind == KBTP_FIELD_OPCODE)
            cursor->opcode = (uint8_t)value;
        else if (field->kind == KBTP_FIELD_FLAGS)
            cursor->flags = (uint16_t)value;
        else if (field->kind == KBTP_FIELD_STATUS)
            cursor->status = (uint16_t)value;
        cursor->shape = kbtp_wire_shape(cursor->opcode);
    } else if (cursor->layout == KBTP_LAYOUT_HELLO_ACK && field->kind == KBTP_FIELD_FEATURES) {
        cursor->features = cursor->status == KBTP_STATUS_OK ? (uint16_t)value : 0;
    } else if (cursor->layout == KBTP_LAYOUT_DATA_DESCRIPTOR && field->kind == KBTP_FIELD_NUMBER &&
               cursor->shape->inline_legal && (cursor->flags & KBTP_FLAG_INLINE)) {
        cursor->inline_left = value;
    }
}

/* To the structure behind the one that was read; KBTP_LAYOUTS when there is none. */
static void next_structure(struct kbtp_wire_cursor *cursor)
{
    cursor->begin += kbtp_layouts[cursor->layout].octets;
    cursor->layout = KBTP_LAYOUTS;
    cursor->field = 0;
    if (!cursor->message || cursor->version != KBTP_WIRE_VERSION)
        return;
    while (cursor->part < cursor->shape->parts_count) {
        const struct kbtp_part *part = &cursor->shape->parts[cursor->part++];
        if (kbtp_part_present(part, cursor->flags, cursor->features)) {
            cursor->layout = part->layout;
            return;
        }
    }
}

static void take_field(struct kbtp_wire_cursor *cursor, struct kbtp_wire_item *item)
{
    const struct kbtp_layout *layout = &kbtp_layouts[cursor->layout];
    const struct kbtp_field *field = &layout->fields[cursor->field++];
    const bool addr_le =
        cursor->addr_le && (cursor->layout != KBTP_LAYOUT_HEADER || cursor->shape->addresses);
    item->octet = cursor->begin + field->offset;
    item->length = cursor->length - item->octet;
    item->structure = layout->name;
    item->field = field->name;
    item->kind = field->kind;
    item->whole = item->length >= field->width;
    if (!item->whole)
        return;
    item->length = field->width;
    if (field->width <= sizeof item->value) {
        item->value = value_of(field, cursor->octets + item->octet, addr_le);
        remember(cursor, field, item->value);
    }
    put_words(cursor, item);
}

/* Behind the last structure: inline data, then what does not belong there. */
static void take_rest(struct kbtp_wire_cursor *cursor, struct kbtp_wire_item *item)
{
    bool body_known =
        !cursor->message || (cursor->version == KBTP_WIRE_VERSION && cursor->shape->known);
    item->octet = cursor->begin;
    item->length = cursor->length - cursor->begin;
    item->structure = KBTP_REST;
    item->field = body_known ? KBTP_TRAILING_OCTETS : KBTP_UNKNOWN_BODY;
    item->kind = KBTP_FIELD_OCTETS;
    item->whole = true;
    if (cursor->inline_left > 0) {
        item->field = KBTP_INLINE_DATA;
        item->whole = item->length >= cursor->inline_left;
        if (item->whole)
            item->length = (size_t)cursor->inline_left;
        cursor->inline_left = 0;
    }
    cursor->begin += item->length;
}

void kbtp_wire_describe(struct kbtp_wire_cursor *cursor, enum kbtp_layout_id as,
                        const uint8_t *octets, size_t length, bool addr_le)
{
    *cursor = (struct kbtp_wire_cursor){
        .octets = octets,
        .length = length,
        .shape = kbtp_wire_shape(0),
        .layout = (uint8_t)as,
        .message = as == KBTP_LAYOUT_HEADER,
        .addr_le = addr_le,
    };
}

bool kbtp_wire_next(struct kbtp_wire_cursor *cursor, struct kbtp_wire_item *item)
{
    *item = (struct kbtp_wire_item){0};
    if (cursor->layout < KBTP_LAYOUTS && cursor->field == kbtp_layouts[cursor->layout].fields_count)
        next_structure(cursor);
    size_t at = cursor->begin;
    if (cursor->layout < KBTP_LAYOUTS)
        at += kbtp_layouts[cursor->layout].fields[cursor->field].offset;
    if (at >= cursor->length)
        return false;
    if (cursor->layout < KBTP_LAYOUTS)
        take_field(cursor, item);
    else
        take_rest(cursor, item);
    return true;
}
