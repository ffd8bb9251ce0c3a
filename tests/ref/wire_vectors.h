/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages and their octets, written out by hand from the draft, for the tests of ref/wire.h; and
 * decoding where not an octet behind the end can be read.
 */
#ifndef KBTP_TESTS_REF_WIRE_VECTORS_H
#define KBTP_TESTS_REF_WIRE_VECTORS_H

#include "ref/wire.h"

#define WIRE_MAX_OCTETS 256u
#define WIRE_MAX_NAME 40u

/* ---- octets ------------------------------------------------------------------------------ */

/* Hex digits in pairs, with spaces between pairs: how many octets they are. */
size_t wire_from_hex(const char *hex, uint8_t out[WIRE_MAX_OCTETS]);
/* The end of a page behind which no octet can be read or written. */
uint8_t *wire_guarded_end(void);
/* Decodes a copy at the end of that page. */
int wire_decode(const uint8_t *octets, size_t length, bool addr_le, struct kbtp_message *out,
                struct kbtp_wire_error *error);
bool wire_same(const struct kbtp_message *a, const struct kbtp_message *b);
/* After an error: the header that could be read (NULL: none), and nothing else. */
bool wire_only_header(const struct kbtp_message *found, const struct kbtp_header *header);

/* Octets of the header behind Version, Opcode, Flags, in network order. */
#define IDS "0102030405060708 1112131415161718 2122 0000 "
/* Of a HELLO_ACK: what stands behind Features, and the descriptors of Direct Load. */
#define HELLO_ACK_HEX "0304 05060708 090a0b0c 0d0e0f10 1112131415161718 191a1b1c 1d1e1f20 "
#define TABLE_HEX \
    "21222324 25262728292a2b2c 2d2e2f30 3132333435363738 0000000000000000 " \
    "41424344 45464748494a4b4c 4d4e4f50 "

/* ---- vectors ----------------------------------------------------------------------------- */

struct wire_vector {
    const char *fields; /* "NAME WIDTH;" for each, in order */
    const char *network;
    const char *addr_le; /* NULL: the same */
    struct kbtp_message message;
};

#define WIRE_VECTORS 17u
/* Those that tests change. */
enum { WIRE_VECTOR_FULL_HELLO_ACK = 5, WIRE_VECTOR_LOAD = 6 };
extern const struct wire_vector wire_vectors[WIRE_VECTORS];

size_t wire_vector_octets(const struct wire_vector *v, bool addr_le, uint8_t out[WIRE_MAX_OCTETS]);
/* The name of the field that octet `at` belongs to, and where that begins. */
size_t wire_field_at(const struct wire_vector *v, size_t at, char name[WIRE_MAX_NAME]);

#endif
