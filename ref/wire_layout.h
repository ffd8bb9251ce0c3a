/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Where every field of every structure of the draft lies: one table per structure, which encoding,
 * decoding, describing and the tests share, and one list of parts per message.
 */
#ifndef KBTP_REF_WIRE_LAYOUT_H
#define KBTP_REF_WIRE_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ref/octets.h"
#include "ref/wire_names.h"

/* What a field holds, for those who show it. */
enum kbtp_field_kind {
    KBTP_FIELD_NUMBER,   /* a count, a length, a Generation: people read it in decimal */
    KBTP_FIELD_HEX,      /* an offset, a key, a handle, an id: people read it in hexadecimal */
    KBTP_FIELD_RESERVED, /* zero when written, ignored when read */
    KBTP_FIELD_OPCODE,
    KBTP_FIELD_STATUS,
    KBTP_FIELD_FLAGS, /* of the message's Opcode */
    KBTP_FIELD_ENTRY_FLAGS,
    KBTP_FIELD_FEATURES,
    KBTP_FIELD_GENERATION, /* zero means "any" in requests */
    KBTP_FIELD_OFFSET,     /* Block Offset of a slot: all ones is empty */
    KBTP_FIELD_SECRET,     /* octets that nobody else may see */
    KBTP_FIELD_OCTETS,     /* inline data, and what belongs to no field */
};

enum kbtp_field_order {
    KBTP_ORDER_NETWORK,
    KBTP_ORDER_ADDRESS, /* little-endian with ADDR_LE, else network order */
    KBTP_ORDER_HOST,    /* as the memory of the machine has it */
};

struct kbtp_field {
    const char *name; /* as in the draft */
    uint8_t offset;   /* octets from the beginning of the structure */
    uint8_t width;    /* octets: 1, 2, 4, 8 or 16 */
    uint8_t kind;     /* enum kbtp_field_kind */
    uint8_t order;    /* enum kbtp_field_order */
    uint8_t member;   /* offset in the C structure of a member of the same width; if not RESERVED */
};

enum kbtp_layout_id {
    KBTP_LAYOUT_HEADER,
    KBTP_LAYOUT_HELLO,
    KBTP_LAYOUT_HELLO_ACK,
    KBTP_LAYOUT_TABLE, /* the direct-mode descriptors */
    KBTP_LAYOUT_TABLE_BASE,
    KBTP_LAYOUT_POOL,
    KBTP_LAYOUT_PARTITION,
    KBTP_LAYOUT_RING,
    KBTP_LAYOUT_HEAD,
    KBTP_LAYOUT_DATA_DESCRIPTOR,
    KBTP_LAYOUT_COMPLETION_DESCRIPTOR,
    KBTP_LAYOUT_BIND,
    KBTP_LAYOUT_COMPLETION,
    KBTP_LAYOUT_RECORD,
    KBTP_LAYOUT_ENTRY,
    KBTP_LAYOUT_SLOT,
    KBTP_LAYOUT_COUNTER, /* Head or Tail: only described, never encoded or decoded here */
    KBTP_LAYOUTS,
};

/* A structure. Its fields lie one behind the other and fill it. */
struct kbtp_layout {
    const char *name;
    const struct kbtp_field *fields;
    uint8_t fields_count;
    uint8_t octets;
};

extern const struct kbtp_layout kbtp_layouts[KBTP_LAYOUTS];

/* When a part is in a message. */
enum kbtp_part_condition {
    KBTP_PART_ALWAYS,
    KBTP_PART_RECORD,      /* the flag RECORD */
    KBTP_PART_DIRECT_LOAD, /* the feature, in a HELLO_ACK with status OK */
    KBTP_PART_DIRECT_ALLOC,
};

/* A structure in a message, behind the ones before it. */
struct kbtp_part {
    uint8_t layout;    /* enum kbtp_layout_id */
    uint8_t condition; /* enum kbtp_part_condition */
    uint8_t member;    /* offset in struct kbtp_message */
};

#define KBTP_MAX_PARTS 7u

/* A message: what comes behind the common header. */
struct kbtp_shape {
    struct kbtp_part parts[KBTP_MAX_PARTS];
    uint8_t parts_count;
    bool known;         /* the Opcode is the draft's */
    bool inline_legal;  /* INLINE adds data behind the last part */
    bool inline_faulty; /* INLINE is an error (I-44) */
    bool addresses;     /* Block Handle is an address field: the initiator sends it after HELLO */
};

/* Where in a message the Opcode is, on which the order of the Block Handle depends. */
#define KBTP_OPCODE_OFFSET 1u

/* Of any Opcode; `known` is false in that of an unknown one. */
const struct kbtp_shape *kbtp_wire_shape(uint8_t opcode);

/* Is the part in a message with these Flags and (HELLO_ACK with status OK, else 0) Features? */
static inline bool kbtp_part_present(const struct kbtp_part *part, uint16_t flags,
                                     uint16_t features)
{
    switch ((enum kbtp_part_condition)part->condition) {
    case KBTP_PART_ALWAYS:
        return true;
    case KBTP_PART_RECORD:
        return flags & KBTP_FLAG_RECORD;
    case KBTP_PART_DIRECT_LOAD:
        return features & KBTP_FEATURE_DIRECT_LOAD;
    case KBTP_PART_DIRECT_ALLOC:
        return features & KBTP_FEATURE_DIRECT_ALLOC;
    }
    return false;
}

/* Are the octets of the field the other way round than in a register of this machine? */
static inline bool kbtp_field_swapped(const struct kbtp_field *field, bool addr_le)
{
    bool little = field->order == KBTP_ORDER_ADDRESS && addr_le;
    return field->order != KBTP_ORDER_HOST && little == KBTP_HOST_IS_BIG;
}

struct kbtp_wire_error; /* ref/wire.h */

/*
 * Are `length` octets one structure of this layout, no more and no less? 0, or -EBADMSG and what is
 * wrong (KBTP_WIRE_SHORT or KBTP_WIRE_TRAILING) in `error`, which may be NULL.
 */
int kbtp_layout_check(enum kbtp_layout_id as, size_t length, struct kbtp_wire_error *error);

#endif
