/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The messages and the memory structures of the draft as octets, and as C structures in host order.
 *
 * A message is a common header of 24 octets and a body (draft: Messages, Session Establishment).
 * Which parts the body has follows from Opcode, Flags and, in HELLO_ACK, from Features. The layout
 * of every structure stands in one table (ref/wire_layout.h), from which encoding, decoding and
 * describing (ref/wire_describe.h) work.
 *
 * Byte order: all fields are in network order. With `addr_le` (the target set ADDR_LE) exactly
 * these are little-endian: Block Handle in the messages that the initiator sends after HELLO; STag,
 * Tagged Offset and Length of Data and Completion Descriptors; Block Offset of table entries and
 * ring slots. COMPLETION, BIND's body, HELLO_ACK and completion records do not change, not even the
 * Block Handle in a COMPLETION (I-13). HELLO is sent before anybody can know of ADDR_LE: it
 * does not change.
 *
 * The structures have no pointers and no padding, and the members that a message does not use are
 * zero after decoding: equal messages have equal octets in memory, which the simulator hashes.
 *
 * Nothing here keeps state, allocates or touches shared memory. Octets that a peer may write at the
 * same time (entries, slots, records) are copied first, as net/mem.h asks.
 */
#ifndef KBTP_REF_WIRE_H
#define KBTP_REF_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ref/table.h"
#include "ref/wire_names.h"

#define KBTP_WIRE_VERSION 1u /* Version of the common header */

/* Sizes in octets. */
#define KBTP_HEADER_OCTETS 24u
#define KBTP_DESCRIPTOR_OCTETS 16u /* each kind of descriptor */
#define KBTP_HELLO_OCTETS 44u      /* header and body, as the next ones */
#define KBTP_HELLO_ACK_OCTETS 56u  /* without descriptors; with an error status always */
#define KBTP_HELLO_ACK_MAX_OCTETS 152u
#define KBTP_BIND_OCTETS 40u
#define KBTP_COMPLETION_OCTETS 40u
#define KBTP_REQUEST_MAX_OCTETS 56u /* of any message to the target, without inline data */
#define KBTP_TO_INITIATOR_MAX_OCTETS KBTP_HELLO_ACK_MAX_OCTETS
#define KBTP_RECORD_OCTETS 24u
#define KBTP_ENTRY_OCTETS 16u
#define KBTP_SLOT_OCTETS 16u
#define KBTP_INITIATOR_ID_OCTETS 16u

/* ---- messages in host order ------------------------------------------------------------------ */

struct kbtp_header {
    uint64_t request_id;
    uint64_t handle;     /* Block Handle */
    uint16_t flags;      /* enum kbtp_flag, enum kbtp_goodbye_flag; unknown bits are kept */
    uint16_t generation; /* request: the expected one, 0 any; completion: the entry's */
    uint16_t status;     /* enum kbtp_status; 0 in requests */
    uint8_t version;     /* KBTP_WIRE_VERSION */
    uint8_t opcode;      /* enum kbtp_opcode */
};

struct kbtp_data_descriptor {
    uint64_t tagged_offset;
    uint32_t stag;
    uint32_t length; /* octets; of the inline data with INLINE */
};

struct kbtp_completion_descriptor {
    uint64_t tagged_offset; /* of a record slot of KBTP_RECORD_OCTETS */
    uint32_t stag;
    uint32_t reserved; /* 0 */
};

struct kbtp_direct_descriptor {
    uint64_t tagged_offset;
    uint32_t stag;
    uint32_t count;
};

struct kbtp_hello {
    uint16_t requested_features; /* enum kbtp_feature */
    uint16_t completion_credits;
    uint8_t initiator_id[KBTP_INITIATOR_ID_OCTETS]; /* a secret: into no log and no trace */
};

/* The Target Descriptor. What Features does not grant is zero. */
struct kbtp_hello_ack {
    uint64_t handle_base;
    uint32_t block_size;       /* octets */
    uint32_t max_inline;       /* octets */
    uint32_t allocation_quota; /* blocks */
    uint32_t handle_count;
    uint32_t ticket_timeout_ms;
    uint16_t features; /* enum kbtp_feature; unknown bits are kept */
    uint16_t request_credits;
    /* DIRECT_LOAD */
    struct kbtp_direct_descriptor table; /* count: entries */
    uint64_t table_base_handle;
    struct kbtp_direct_descriptor pool; /* count: F */
    /* DIRECT_ALLOC */
    struct kbtp_direct_descriptor partition; /* count: the quota */
    struct kbtp_direct_descriptor ring;      /* count: N */
    struct kbtp_direct_descriptor head;      /* count: 1 */
};

/* The body of LOAD, STORE, ALLOC_STORE and FREE. */
struct kbtp_operands {
    struct kbtp_data_descriptor data;             /* zero in FREE */
    struct kbtp_completion_descriptor completion; /* with RECORD, else zero */
    uint32_t inline_offset; /* decoded: where in the message the inline data begins, else 0 */
    uint32_t inline_length; /* decoded: its octets, equal to data.length; 0 without INLINE */
};

struct kbtp_bind {
    uint64_t block_offset;
    uint32_t ticket;
    uint32_t data_length; /* octets */
};

struct kbtp_completion {
    uint64_t block_offset;
    uint32_t data_length; /* octets */
    uint32_t reserved;    /* 0 */
};

struct kbtp_message {
    struct kbtp_header header;
    union {
        struct kbtp_hello hello;
        struct kbtp_hello_ack hello_ack; /* the largest */
        struct kbtp_operands operands;
        struct kbtp_bind bind;
        struct kbtp_completion completion;
    };
};

/*
 * Writes the octets of `message`, without inline data, to out[0..size). Returns how many they are;
 * the sender appends operands.data.length octets of inline data, or sends them from elsewhere.
 *
 * Reserved fields are written as zero; so are STag and Tagged Offset with INLINE, and the body of a
 * HELLO_ACK with a status other than OK (I-47), which therefore discloses nothing. The members
 * inline_offset and inline_length do not count. All else is written as it stands, unknown flag bits
 * too: to send what is sensible is the caller's part.
 *
 * Returns -ENOSPC when `size` is too small, -EINVAL when the Version is not 1, the Opcode is
 * unknown or INLINE is set in LOAD or FREE; then nothing was written.
 */
int kbtp_wire_encode(const struct kbtp_message *message, bool addr_le, uint8_t *out, size_t size);

/*
 * How many octets the message has, inline data included. Version, Opcode and Flags must be such
 * that it can be encoded, else 0.
 */
size_t kbtp_wire_length(const struct kbtp_message *message);

/* ---- decoding -------------------------------------------------------------------------------- */

/* What is wrong with octets. The numbers `wanted` and `found` are for words about it. */
enum kbtp_wire_fault {
    KBTP_WIRE_WELL = 0,
    KBTP_WIRE_NO_HEADER,   /* octets end in the header; wanted: its 24, found: those there */
    KBTP_WIRE_BAD_VERSION, /* wanted: 1, found: the Version */
    KBTP_WIRE_BAD_OPCODE,  /* found: the Opcode, which is unknown */
    KBTP_WIRE_BAD_INLINE,  /* INLINE in LOAD or FREE (I-44); found: the Flags */
    KBTP_WIRE_SHORT,    /* octets end in the field; wanted: at least so many, found: those there */
    KBTP_WIRE_LENGTH,   /* wanted: inline octets by Length, found: those there, which are more */
    KBTP_WIRE_TRAILING, /* wanted: the end of the message, found: octets there */
};

/* The first thing that is wrong. It has pointers to constant strings: not for hashed memory. */
struct kbtp_wire_error {
    const char *structure; /* as kbtp_layout.name */
    const char *field;     /* as kbtp_field.name, or one of those below */
    size_t octet;          /* where the field begins; where octets end, the first missing one */
    uint64_t wanted;
    uint64_t found;
    enum kbtp_wire_fault fault;
};

/* What is in no structure: its "structure" is the rest, its "field" one of the others. */
#define KBTP_REST "rest"
#define KBTP_INLINE_DATA "Inline Data"
#define KBTP_TRAILING_OCTETS "Trailing Octets"
#define KBTP_UNKNOWN_BODY "Unknown Body" /* of another Version or an unknown Opcode */

/*
 * Reads a whole message of `length` octets (of a Send). Nothing beyond is read. Returns 0 and the
 * message in `out`, or -EBADMSG and what is wrong in `error`, which may be NULL.
 *
 * After an error `out` has the header, for an answer that echoes Request ID and Block Handle, and a
 * body of zeros. With KBTP_WIRE_NO_HEADER it is all zeros, and the session must be closed (I-30);
 * after KBTP_WIRE_BAD_VERSION it is closed after the answer.
 *
 * Conservative where the draft is silent: a message ends where its last part ends; unknown flag
 * and feature bits, reserved fields, and STag and Tagged Offset with INLINE are no errors; with
 * RECORD a Completion Descriptor is there whether or not records were granted (I-28); the body of a
 * HELLO_ACK with a status other than OK has 32 octets that mean nothing (I-47).
 *
 * Direction, credits, ranges and lengths against limits are judged by the caller.
 */
int kbtp_wire_decode(const uint8_t *octets, size_t length, bool addr_le, struct kbtp_message *out,
                     struct kbtp_wire_error *error);

/* A clause about the fault, without numbers: "the octets end in this field". */
const char *kbtp_wire_fault_words(enum kbtp_wire_fault fault);

/* ---- structures in memory -------------------------------------------------------------------- */

/* A completion record (draft: Completion). */
struct kbtp_record {
    uint64_t request_id;
    uint64_t block_offset;
    uint32_t data_length; /* octets */
    uint16_t status;      /* enum kbtp_status */
    uint16_t generation;
};

/* A ring slot in host order; in shared memory it is struct kbtp_slot of ref/ring.h. */
struct kbtp_slot_value {
    uint64_t block_offset; /* KBTP_BLOCK_NONE: consumed */
    uint32_t sequence;
    uint32_t reserved; /* 0 */
};

void kbtp_record_encode(const struct kbtp_record *record, uint8_t out[KBTP_RECORD_OCTETS]);
void kbtp_record_decode(const uint8_t octets[KBTP_RECORD_OCTETS], struct kbtp_record *out);

/* Copies of entries and slots, such as a direct mode reads; struct kbtp_entry is in ref/table.h. */
void kbtp_entry_encode(const struct kbtp_entry *entry, bool addr_le,
                       uint8_t out[KBTP_ENTRY_OCTETS]);
void kbtp_entry_decode(const uint8_t octets[KBTP_ENTRY_OCTETS], bool addr_le,
                       struct kbtp_entry *out);
void kbtp_slot_encode(const struct kbtp_slot_value *slot, bool addr_le,
                      uint8_t out[KBTP_SLOT_OCTETS]);
void kbtp_slot_decode(const uint8_t octets[KBTP_SLOT_OCTETS], bool addr_le,
                      struct kbtp_slot_value *out);

#endif
