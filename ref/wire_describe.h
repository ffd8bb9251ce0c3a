/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Octets in words: an iterator over the fields of a message or a structure, for the command line
 * and for traces. It works on anything, as far as the octets go; what is wrong with a message,
 * kbtp_wire_decode() says. It prints nothing and allocates nothing.
 *
 *     struct kbtp_wire_cursor cursor;
 *     struct kbtp_wire_item item;
 *     kbtp_wire_describe(&cursor, KBTP_LAYOUT_HEADER, octets, length, addr_le);
 *     while (kbtp_wire_next(&cursor, &item))
 *         ...
 *
 * The items cover every octet exactly once, in ascending order.
 */
#ifndef KBTP_REF_WIRE_DESCRIBE_H
#define KBTP_REF_WIRE_DESCRIBE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ref/wire.h"
#include "ref/wire_layout.h"

#define KBTP_MAX_WORDS 96u

/* A field that was found, or octets that belong to none. */
struct kbtp_wire_item {
    size_t octet;          /* where it begins */
    size_t length;         /* octets of it that are there: at least 1 */
    const char *structure; /* as kbtp_layout.name; "rest" for what is in none */
    const char *field;     /* as kbtp_field.name, or KBTP_INLINE_DATA, KBTP_TRAILING_OCTETS, ... */
    uint64_t value;        /* of a whole field of up to 8 octets, else 0 */
    enum kbtp_field_kind kind;
    bool whole; /* false: the octets end within it, there is no value */
    /* What the value means ("INLINE, SEAL", "ALLOC_STORE", "any"); "" if the number says it all. */
    char words[KBTP_MAX_WORDS];
};

/* Where the iterator is. Its members are its own. */
struct kbtp_wire_cursor {
    const uint8_t *octets;
    size_t length;
    size_t begin;                   /* of the structure that is being read */
    uint64_t inline_left;           /* octets, by Length */
    const struct kbtp_shape *shape; /* of a message's Opcode */
    uint16_t flags, status, features;
    uint8_t version, opcode;
    uint8_t layout; /* enum kbtp_layout_id, KBTP_LAYOUTS behind the last structure */
    uint8_t field;  /* the next one */
    uint8_t part;   /* the next one */
    bool message;   /* else one structure */
    bool addr_le;
};

/*
 * Begins: `as` is KBTP_LAYOUT_HEADER for a whole message, else the one structure that the octets
 * hold. The octets must stay where they are.
 */
void kbtp_wire_describe(struct kbtp_wire_cursor *cursor, enum kbtp_layout_id as,
                        const uint8_t *octets, size_t length, bool addr_le);

/* The next item; false at the end. */
bool kbtp_wire_next(struct kbtp_wire_cursor *cursor, struct kbtp_wire_item *item);

#endif
