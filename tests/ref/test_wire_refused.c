/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ref/wire.h refuses what is cut off at any octet, too long, or contradicts itself, and says where;
 * and encodes nothing into too small a place.
 */
#include "ref/wire.h"

#include <errno.h>
#include <string.h>

#include "tests/ref/wire_vectors.h"
#include "tests/run.h"

/* R-OPC-01 to R-OPC-09, I-30 */
static void cut_off_at_every_octet(void)
{
    for (size_t i = 0; i < 2 * WIRE_VECTORS; i++) {
        const struct wire_vector *v = &wire_vectors[i / 2];
        uint8_t octets[WIRE_MAX_OCTETS];
        size_t whole = wire_vector_octets(v, i % 2, octets);
        for (size_t length = 0; length < whole; length++) {
            struct kbtp_message message;
            struct kbtp_wire_error error;
            char name[WIRE_MAX_NAME];
            bool headless = length < KBTP_HEADER_OCTETS;
            wire_field_at(v, length, name);
            CU_ASSERT_EQUAL(wire_decode(octets, length, i % 2, &message, &error), -EBADMSG);
            CU_ASSERT_STRING_EQUAL(error.field, name);
            CU_ASSERT_EQUAL(error.octet, length);
            CU_ASSERT_EQUAL(error.found, length);
            CU_ASSERT_TRUE(error.wanted > length && error.wanted <= whole);
            CU_ASSERT_EQUAL(error.fault, headless ? KBTP_WIRE_NO_HEADER : KBTP_WIRE_SHORT);
            CU_ASSERT_TRUE(wire_only_header(&message, headless ? NULL : &v->message.header));
            CU_ASSERT_EQUAL(wire_decode(octets, length, i % 2, &message, NULL), -EBADMSG);
        }
    }
}

/* R-OPC-01 to R-OPC-09, R-DESC-08 */
static void too_long(void)
{
    for (size_t i = 0; i < 2 * WIRE_VECTORS; i++) {
        const struct wire_vector *v = &wire_vectors[i / 2];
        uint8_t octets[WIRE_MAX_OCTETS] = {0};
        size_t whole = wire_vector_octets(v, i % 2, octets);
        bool has_inline = strstr(v->fields, KBTP_INLINE_DATA) != NULL;
        for (size_t more = 1; more <= 20; more++) {
            struct kbtp_message message;
            struct kbtp_wire_error error;
            CU_ASSERT_EQUAL(wire_decode(octets, whole + more, i % 2, &message, &error), -EBADMSG);
            CU_ASSERT_TRUE(wire_only_header(&message, &v->message.header));
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
        CU_ASSERT_EQUAL(wire_decode(octets, sizeof octets, false, &message, &error), -EBADMSG);
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
    const struct wire_vector *load = &wire_vectors[WIRE_VECTOR_LOAD];
    for (unsigned value = 0; value < 256; value++) {
        uint8_t octets[WIRE_MAX_OCTETS];
        struct kbtp_message message, wrong = load->message;
        struct kbtp_wire_error error;
        size_t length = wire_vector_octets(load, false, octets);
        octets[0] = wrong.header.version = (uint8_t)value;
        if (value != 1) {
            CU_ASSERT_EQUAL(wire_decode(octets, length, false, &message, &error), -EBADMSG);
            CU_ASSERT_EQUAL(error.fault, KBTP_WIRE_BAD_VERSION);
            CU_ASSERT_EQUAL(error.wanted, 1);
            CU_ASSERT_EQUAL(error.octet, 0);
            CU_ASSERT_STRING_EQUAL(error.field, "Version");
            CU_ASSERT_EQUAL(error.found, value);
            CU_ASSERT_TRUE(wire_only_header(&message, &wrong.header));
            CU_ASSERT_EQUAL(kbtp_wire_encode(&wrong, false, octets, sizeof octets), -EINVAL);
            CU_ASSERT_EQUAL(kbtp_wire_length(&wrong), 0);
        }
        octets[0] = wrong.header.version = 1;
        octets[1] = wrong.header.opcode = (uint8_t)value;
        if (!kbtp_opcode_name((uint8_t)value)) {
            CU_ASSERT_EQUAL(wire_decode(octets, length, false, &message, &error), -EBADMSG);
            CU_ASSERT_EQUAL(error.fault, KBTP_WIRE_BAD_OPCODE);
            CU_ASSERT_EQUAL(error.octet, 1);
            CU_ASSERT_STRING_EQUAL(error.field, "Opcode");
            CU_ASSERT_EQUAL(error.found, value);
            CU_ASSERT_TRUE(wire_only_header(&message, &wrong.header));
            wrong.header.handle = 0x1817161514131211u; /* as an initiator would send it */
            CU_ASSERT_EQUAL(wire_decode(octets, length, true, &message, &error), -EBADMSG);
            CU_ASSERT_TRUE(wire_only_header(&message, &wrong.header));
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
            CU_ASSERT_EQUAL(wire_decode(octets, length, false, &message, &error), -EBADMSG);
            CU_ASSERT_EQUAL(error.fault, KBTP_WIRE_BAD_INLINE);
            CU_ASSERT_STRING_EQUAL(error.field, "Flags");
            CU_ASSERT_EQUAL(error.octet, 2);
        }
        CU_ASSERT_EQUAL(kbtp_wire_encode(&message, false, octets, sizeof octets), -EINVAL);
    }
}

static void too_small_a_place(void)
{
    for (size_t i = 0; i < 2 * WIRE_VECTORS; i++) {
        const struct wire_vector *v = &wire_vectors[i / 2];
        uint8_t scratch[WIRE_MAX_OCTETS], untouched[WIRE_MAX_OCTETS];
        memset(untouched, 0xa5, sizeof untouched);
        int whole = kbtp_wire_encode(&v->message, i % 2, scratch, sizeof scratch);
        CU_ASSERT_TRUE_FATAL(whole >= (int)KBTP_HEADER_OCTETS);
        for (size_t size = 0; size < (size_t)whole; size++) {
            uint8_t *out = wire_guarded_end() - size;
            memset(out - 16, 0xa5, size + 16);
            CU_ASSERT_EQUAL(kbtp_wire_encode(&v->message, i % 2, out, size), -ENOSPC);
            CU_ASSERT_EQUAL(memcmp(out - 16, untouched, size + 16), 0);
        }
        uint8_t *out = wire_guarded_end() - whole;
        CU_ASSERT_EQUAL(kbtp_wire_encode(&v->message, i % 2, out, (size_t)whole), whole);
        CU_ASSERT_EQUAL(memcmp(out, scratch, (size_t)whole), 0);
        memset(scratch, 0xa5, sizeof scratch);
        CU_ASSERT_EQUAL(kbtp_wire_encode(&v->message, i % 2, scratch, sizeof scratch), whole);
        CU_ASSERT_EQUAL(memcmp(scratch + whole, untouched, sizeof scratch - (size_t)whole), 0);
    }
}
int main(void)
{
    static const struct test tests[] = {
        {"cut off at every octet", cut_off_at_every_octet},
        {"too long", too_long},
        {"Length disagrees with the inline data", inline_length_disagrees},
        {"every Version and every Opcode", version_and_opcode},
        {"INLINE of LOAD and FREE", inline_of_load_and_free},
        {"too small a place to encode into", too_small_a_place},
    };
    return run_tests("ref/wire_refused", tests, sizeof tests / sizeof tests[0]);
}
