/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The numbers of the protocol and their names (draft: KBTP Opcodes, KBTP Status Codes, Common
 * Header, Session Establishment, IANA Considerations). Every name is spelled as in the draft and
 * stands once, in the tables of wire_names.c. Flags of table entries: ref/table.h.
 *
 * The functions give constant strings, or NULL for a number that the draft does not define.
 */
#ifndef KBTP_REF_WIRE_NAMES_H
#define KBTP_REF_WIRE_NAMES_H

#include <stdbool.h>
#include <stdint.h>

enum kbtp_opcode {
    KBTP_OP_HELLO = 0x01,
    KBTP_OP_HELLO_ACK = 0x02,
    KBTP_OP_LOAD = 0x10,
    KBTP_OP_STORE = 0x11,
    KBTP_OP_ALLOC_STORE = 0x12,
    KBTP_OP_FREE = 0x13,
    KBTP_OP_BIND = 0x14,
    KBTP_OP_COMPLETION = 0x20,
    KBTP_OP_GOODBYE = 0x30,
};

enum kbtp_status {
    KBTP_STATUS_OK = 0,
    KBTP_STATUS_INVALID_HANDLE = 1,
    KBTP_STATUS_STALE_GENERATION = 2,
    KBTP_STATUS_NOT_VALID = 3,
    KBTP_STATUS_ALREADY_BOUND = 4,
    KBTP_STATUS_NO_SPACE = 5,
    KBTP_STATUS_SEALED = 6,
    KBTP_STATUS_NOT_SEALED = 7,
    KBTP_STATUS_TOO_LARGE = 8,
    KBTP_STATUS_MALFORMED = 9,
    KBTP_STATUS_INTERNAL = 10,
    KBTP_STATUS_TICKET_ABANDONED = 11,
};

/* Flags of LOAD, STORE, ALLOC_STORE and FREE. */
enum kbtp_flag {
    KBTP_FLAG_INLINE = 0x0001,
    KBTP_FLAG_SEAL = 0x0002,
    KBTP_FLAG_RECORD = 0x0004,
    KBTP_FLAG_INVALIDATE = 0x0008,
    KBTP_FLAG_ALLOW_UNSEALED = 0x0010,
};

/* Flags of GOODBYE. */
enum kbtp_goodbye_flag {
    KBTP_GOODBYE_RELEASE = 0x0001,
};

enum kbtp_feature {
    KBTP_FEATURE_DIRECT_LOAD = 0x0001,
    KBTP_FEATURE_DIRECT_ALLOC = 0x0002,
    KBTP_FEATURE_RECORD_COMPLETION = 0x0004,
    KBTP_FEATURE_ADDR_LE = 0x0008,
};

/* "ALLOC_STORE" */
const char *kbtp_opcode_name(uint8_t opcode);

/* "STALE_GENERATION" */
const char *kbtp_status_name(uint16_t status);

/* The name of one bit in the Flags of a message with this opcode: "RECORD". */
const char *kbtp_flag_name(uint8_t opcode, uint16_t bit);

/* The name of one bit of Features and Requested Features: "ADDR_LE". */
const char *kbtp_feature_name(uint16_t bit);

/* The name of one bit in the Flags of a table entry: "SEALED". */
const char *kbtp_entry_flag_name(uint16_t bit);

/*
 * The upper quarter of a value space is for private use (draft: IANA Considerations). For the bits
 * of flags and features that is bits 15 to 12 (I-53).
 */
static inline bool kbtp_opcode_is_private(uint8_t opcode)
{
    return opcode >= 0xc0;
}

static inline bool kbtp_status_is_private(uint16_t status)
{
    return status >= 0xc000;
}

#endif
