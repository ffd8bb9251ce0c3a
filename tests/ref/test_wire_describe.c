/* SPDX-License-Identifier: BSD-3-Clause */
/* Names and layouts of ref/wire_names.h and ref/wire_layout.h, and octets in words. */
#include "ref/wire_describe.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/random.h"
#include "tests/run.h"

#define RANDOM_TEXTS 20000u

/* ---- names ----------------------------------------------------------------------------------- */

struct named {
    uint16_t value;
    const char *name;
};

static bool is_name(const struct named *names, size_t count, unsigned value, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (names[i].value == value)
            return name && strcmp(names[i].name, name) == 0;
    return name == NULL;
}

#define IS_NAME(names, value, name) is_name(names, sizeof(names) / sizeof *(names), value, name)

/* R-OPC-01 to R-OPC-09, R-IANA-01 */
static void names_of_opcodes(void)
{
    static const struct named names[] = {
        {0x01, "HELLO"}, {0x02, "HELLO_ACK"},   {0x10, "LOAD"},
        {0x11, "STORE"}, {0x12, "ALLOC_STORE"}, {0x13, "FREE"},
        {0x14, "BIND"},  {0x20, "COMPLETION"},  {0x30, "GOODBYE"},
    };
    for (unsigned value = 0; value < 256; value++) {
        CU_ASSERT_TRUE(IS_NAME(names, value, kbtp_opcode_name((uint8_t)value)));
        CU_ASSERT_EQUAL(kbtp_wire_shape((uint8_t)value)->known,
                        kbtp_opcode_name((uint8_t)value) != NULL);
        CU_ASSERT_EQUAL(kbtp_opcode_is_private((uint8_t)value), value >= 192);
    }
}

/* R-ST-00 to R-ST-10, R-IANA-01 */
static void names_of_statuses(void)
{
    static const struct named names[] = {
        {0, "OK"},        {1, "INVALID_HANDLE"}, {2, "STALE_GENERATION"},
        {3, "NOT_VALID"}, {4, "ALREADY_BOUND"},  {5, "NO_SPACE"},
        {6, "SEALED"},    {7, "NOT_SEALED"},     {8, "TOO_LARGE"},
        {9, "MALFORMED"}, {10, "INTERNAL"},      {11, "TICKET_ABANDONED"},
    };
    unsigned wrong = 0;
    for (unsigned value = 0; value < 65536; value++) {
        wrong += !IS_NAME(names, value, kbtp_status_name((uint16_t)value));
        wrong += kbtp_status_is_private((uint16_t)value) != (value >= 49152);
    }
    CU_ASSERT_EQUAL(wrong, 0);
}

/* R-FLAG-01, -02, -04, -05, -07, R-SESS-17 */
static void names_of_bits(void)
{
    static const struct named flags[] = {
        {1, "INLINE"}, {2, "SEAL"}, {4, "RECORD"}, {8, "INVALIDATE"}, {16, "ALLOW_UNSEALED"}};
    static const struct named goodbye[] = {{1, "RELEASE"}};
    static const struct named features[] = {
        {1, "DIRECT_LOAD"}, {2, "DIRECT_ALLOC"}, {4, "RECORD_COMPLETION"}, {8, "ADDR_LE"}};
    static const struct named entry[] = {{1, "VALID"}, {2, "SEALED"}};
    for (unsigned bit = 1; bit < 65536; bit *= 2) {
        for (unsigned opcode = 0; opcode < 256; opcode++) {
            const char *name = kbtp_flag_name((uint8_t)opcode, (uint16_t)bit);
            if (opcode >= 0x10 && opcode <= 0x13)
                CU_ASSERT_TRUE(IS_NAME(flags, bit, name))
            else if (opcode == 0x30)
                CU_ASSERT_TRUE(IS_NAME(goodbye, bit, name))
            else
                CU_ASSERT_PTR_NULL(name)
        }
        CU_ASSERT_TRUE(IS_NAME(features, bit, kbtp_feature_name((uint16_t)bit)));
        CU_ASSERT_TRUE(IS_NAME(entry, bit, kbtp_entry_flag_name((uint16_t)bit)));
    }
}

static void every_fault_has_words(void)
{
    for (int fault = KBTP_WIRE_WELL; fault <= KBTP_WIRE_TRAILING; fault++)
        CU_ASSERT_STRING_NOT_EQUAL(kbtp_wire_fault_words((enum kbtp_wire_fault)fault),
                                   "unknown fault");
}

/* ---- layouts --------------------------------------------------------------------------------- */

static void fields_fill_their_structures(void)
{
    for (unsigned id = 0; id < KBTP_LAYOUTS; id++) {
        const struct kbtp_layout *layout = &kbtp_layouts[id];
        unsigned at = 0;
        CU_ASSERT_PTR_NOT_NULL_FATAL(layout->name);
        for (unsigned i = 0; i < layout->fields_count; i++) {
            const struct kbtp_field *field = &layout->fields[i];
            CU_ASSERT_EQUAL(field->offset, at);
            CU_ASSERT_TRUE(field->width == 1 || field->width == 2 || field->width == 4 ||
                           field->width == 8 || field->kind == KBTP_FIELD_SECRET);
            at += field->width;
        }
        CU_ASSERT_EQUAL(layout->octets, at);
    }
}

/* Names, keys and places are for hexadecimal; people count the rest. */
static void numbers_and_names(void)
{
    static const char hex[] = "Request ID;Block Handle;STag;Tagged Offset;Handle Base;"
                              "Table Base Handle;Block Offset;";
    for (unsigned id = 0; id < KBTP_LAYOUTS; id++)
        for (unsigned i = 0; i < kbtp_layouts[id].fields_count; i++) {
            const struct kbtp_field *field = &kbtp_layouts[id].fields[i];
            char name[40];
            snprintf(name, sizeof name, "%s;", field->name);
            bool is_hex = field->kind == KBTP_FIELD_HEX || field->kind == KBTP_FIELD_OFFSET;
            CU_ASSERT_EQUAL(is_hex, strstr(hex, name) != NULL);
        }
}

/* R-LE-01 to R-LE-05: these follow ADDR_LE and no others. */
static void address_fields(void)
{
    unsigned found = 0;
    for (unsigned id = 0; id < KBTP_LAYOUTS; id++)
        for (unsigned i = 0; i < kbtp_layouts[id].fields_count; i++) {
            const char *name = kbtp_layouts[id].fields[i].name;
            bool in_request =
                id == KBTP_LAYOUT_DATA_DESCRIPTOR || id == KBTP_LAYOUT_COMPLETION_DESCRIPTOR;
            bool address = (id == KBTP_LAYOUT_HEADER && strcmp(name, "Block Handle") == 0) ||
                           (in_request && strcmp(name, "Reserved") != 0) ||
                           ((id == KBTP_LAYOUT_ENTRY || id == KBTP_LAYOUT_SLOT) &&
                            strcmp(name, "Block Offset") == 0);
            CU_ASSERT_EQUAL(kbtp_layouts[id].fields[i].order == KBTP_ORDER_ADDRESS, address);
            found += address;
        }
    CU_ASSERT_EQUAL(found, 8);
}

static void one_structure_is_checked(void)
{
    struct kbtp_wire_error error;
    CU_ASSERT_EQUAL(kbtp_layout_check(KBTP_LAYOUT_SLOT, 16, &error), 0);
    CU_ASSERT_EQUAL(kbtp_layout_check(KBTP_LAYOUT_SLOT, 7, &error), -EBADMSG);
    CU_ASSERT_EQUAL(error.fault, KBTP_WIRE_SHORT);
    CU_ASSERT_STRING_EQUAL(error.field, "Reserved");
    CU_ASSERT_EQUAL(error.octet, 7);
    CU_ASSERT_EQUAL(kbtp_layout_check(KBTP_LAYOUT_SLOT, 17, &error), -EBADMSG);
    CU_ASSERT_EQUAL(error.fault, KBTP_WIRE_TRAILING);
    CU_ASSERT_EQUAL(error.octet, 16);
    CU_ASSERT_EQUAL(kbtp_layout_check(KBTP_LAYOUT_SLOT, 0, NULL), -EBADMSG);
}

/* ---- octets in words ------------------------------------------------------------------------- */

/*
 * All items as "OCTET+LENGTH FIELD=VALUE(WORDS)", with ".." for a field that is cut off; octets
 * that are no number have no value.
 */
static const char *describe(enum kbtp_layout_id as, const void *octets, size_t length, bool addr_le)
{
    static char text[4000];
    struct kbtp_wire_cursor cursor;
    struct kbtp_wire_item item;
    size_t used = 0;
    text[0] = 0;
    kbtp_wire_describe(&cursor, as, octets, length, addr_le);
    while (kbtp_wire_next(&cursor, &item)) {
        char value[40] = "", words[KBTP_MAX_WORDS + 2] = "";
        if (!item.whole)
            snprintf(value, sizeof value, "..");
        else if (item.kind != KBTP_FIELD_OCTETS && item.kind != KBTP_FIELD_SECRET)
            snprintf(value, sizeof value, "=%llx", (unsigned long long)item.value);
        if (item.words[0])
            snprintf(words, sizeof words, "(%s)", item.words);
        used += (size_t)snprintf(text + used, sizeof text - used, "%zu+%zu %s%s%s; ", item.octet,
                                 item.length, item.field, value, words);
    }
    CU_ASSERT_FALSE(kbtp_wire_next(&cursor, &item)); /* the end stays the end */
    return text;
}

/* R-EX-01 */
static void example_in_words(void)
{
    static const char example[48] = "\x01\x12\0\x01\0\0\0\0\0\0\0\x07\0\0\0\0\0\0\x40\x01\0\0\0\0"
                                    "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x08KVBLOCK!";
    CU_ASSERT_STRING_EQUAL(
        describe(KBTP_LAYOUT_HEADER, example, sizeof example, false),
        "0+1 Version=1; 1+1 Opcode=12(ALLOC_STORE); 2+2 Flags=1(INLINE); 4+8 Request ID=7; "
        "12+8 Block Handle=4001; 20+2 Generation=0(any); 22+2 Status=0(OK); 24+4 STag=0; "
        "28+8 Tagged Offset=0; 36+4 Length=8; 40+8 Inline Data; ");
    CU_ASSERT_STRING_EQUAL(describe(KBTP_LAYOUT_HEADER, example, 13, false),
                           "0+1 Version=1; 1+1 Opcode=12(ALLOC_STORE); 2+2 Flags=1(INLINE); "
                           "4+8 Request ID=7; 12+1 Block Handle..; ");
    CU_ASSERT_PTR_NOT_NULL(strstr(describe(KBTP_LAYOUT_HEADER, example, 45, false),
                                  "36+4 Length=8; 40+5 Inline Data..; "));
    /* With the other byte order the Length is too large for what is there. */
    CU_ASSERT_PTR_NOT_NULL(strstr(describe(KBTP_LAYOUT_HEADER, example, sizeof example, true),
                                  "12+8 Block Handle=140000000000000; 20+2 Generation=0(any); "
                                  "22+2 Status=0(OK); 24+4 STag=0; 28+8 Tagged Offset=0; "
                                  "36+4 Length=8000000; 40+8 Inline Data..; "));
    CU_ASSERT_STRING_EQUAL(describe(KBTP_LAYOUT_HEADER, example, 0, false), "");
}

static bool tells(const uint8_t *octets, size_t length, const char *words)
{
    return strstr(describe(KBTP_LAYOUT_HEADER, octets, length, false), words) != NULL;
}

static void messages_in_words(void)
{
    uint8_t m[200] = {0x01, 0x10, 0xff, 0xff, [22] = 0x12, 0x34};
    CU_ASSERT_TRUE(tells(m, 40,
                         "Flags=ffff(INLINE, SEAL, RECORD, INVALIDATE, ALLOW_UNSEALED, "
                         "unknown 0xffe0); "));
    CU_ASSERT_TRUE(tells(m, 56, "Status=1234(unknown); "));
    m[22] = 0xc0;
    CU_ASSERT_TRUE(tells(m, 56, "Status=c034(private use); "));
    CU_ASSERT_TRUE(tells(m, 56,
                         "36+4 Length=0; 40+4 STag=0; 44+8 Tagged Offset=0; "
                         "52+4 Reserved=0; "));
    m[55] = 1;
    CU_ASSERT_TRUE(tells(m, 57, "52+4 Reserved=1(not zero, ignored); 56+1 Trailing Octets; "));

    uint8_t goodbye[25] = {0x01, 0x30, 0x00, 0x01};
    CU_ASSERT_TRUE(tells(goodbye, 25, "Flags=1(RELEASE); "));
    CU_ASSERT_TRUE(tells(goodbye, 25, "Generation=0; 22+2 Status=0(OK); 24+1 Trailing Octets; "));
    goodbye[1] = 0x31;
    CU_ASSERT_TRUE(tells(goodbye, 25, "Opcode=31(unknown); 2+2 Flags=1(unknown 0x0001); "));
    CU_ASSERT_TRUE(tells(goodbye, 25, "24+1 Unknown Body; "));
    goodbye[1] = 0xc0;
    CU_ASSERT_TRUE(tells(goodbye, 24, "Opcode=c0(private use); "));
    m[0] = 2;
    CU_ASSERT_TRUE(tells(m, 57, "22+2 Status=c034(private use); 24+33 Unknown Body; "));

    uint8_t hello[44] = {0x01, 0x01, [24] = 0xf0, 0x0f};
    CU_ASSERT_TRUE(tells(hello, 44,
                         "24+2 Requested Features=f00f(DIRECT_LOAD, DIRECT_ALLOC, "
                         "RECORD_COMPLETION, ADDR_LE, unknown 0xf000); "
                         "26+2 Completion Credits=0; 28+16 Initiator ID; "));
    CU_ASSERT_TRUE(tells(hello, 43, "28+15 Initiator ID..; "));
}

/* R-SESS-20, R-SESS-23, I-47 */
static void hello_ack_in_words(void)
{
    uint8_t ack[152] = {0x01, 0x02, [25] = 0x03, [151] = 1};
    struct kbtp_wire_cursor cursor;
    struct kbtp_wire_item item;
    const char *previous = "";
    char structures[200] = "";
    kbtp_wire_describe(&cursor, KBTP_LAYOUT_HEADER, ack, sizeof ack, true);
    while (kbtp_wire_next(&cursor, &item)) {
        if (strcmp(previous, item.structure) != 0) {
            size_t used = strlen(structures);
            snprintf(structures + used, sizeof structures - used, "%zu %s; ", item.octet,
                     item.structure);
        }
        previous = item.structure;
    }
    CU_ASSERT_STRING_EQUAL(structures, "0 header; 24 HELLO_ACK; 56 Table descriptor; "
                                       "72 Table base; 88 Pool descriptor; "
                                       "104 Partition descriptor; 120 Ring descriptor; "
                                       "136 Head descriptor; ");
    CU_ASSERT_TRUE(tells(ack, 152, "148+4 Count=1; "));
    ack[23] = 1;
    CU_ASSERT_TRUE(tells(ack, 152, "52+4 Ticket Timeout (ms)=0; 56+96 Trailing Octets; "));
}

/* R-TBL-02, R-RING-03, -04, R-LE-04, -05 */
static void structures_in_words(void)
{
    uint8_t o[17] = {0x00, 0x03, 0x00, 0x05, [7] = 9, [13] = 0x15};
    CU_ASSERT_STRING_EQUAL(
        describe(KBTP_LAYOUT_ENTRY, o, 16, false),
        "0+2 Flags=3(VALID, SEALED); 2+2 Generation=5; 4+4 Data Length=9; 8+8 Block "
        "Offset=150000; ");
    o[0] = 0x80;
    o[3] = 0;
    CU_ASSERT_STRING_EQUAL(
        describe(KBTP_LAYOUT_ENTRY, o, 17, true),
        "0+2 Flags=8003(VALID, SEALED, unknown 0x8000); 2+2 Generation=0(never valid); "
        "4+4 Data Length=9; 8+8 Block Offset=150000000000; 16+1 Trailing Octets; ");
    CU_ASSERT_STRING_EQUAL(describe(KBTP_LAYOUT_SLOT, o, 16, true),
                           "0+4 Sequence=80030000; 4+4 Reserved=9(not zero, ignored); 8+8 Block "
                           "Offset=150000000000; ");
    memset(o + 8, 0xff, 8);
    CU_ASSERT_PTR_NOT_NULL(strstr(describe(KBTP_LAYOUT_SLOT, o, 16, false),
                                  "Block Offset=ffffffffffffffff(consumed); "));
    uint8_t record[24] = {[7] = 7, [9] = 11, [11] = 5, [15] = 8, [21] = 0x15};
    for (int addr_le = 0; addr_le <= 1; addr_le++)
        CU_ASSERT_STRING_EQUAL(describe(KBTP_LAYOUT_RECORD, record, 24, addr_le),
                               "0+8 Request ID=7; 8+2 Status=b(TICKET_ABANDONED); "
                               "10+2 Generation=5; 12+4 Data Length=8; 16+8 Block "
                               "Offset=150000; ");
}

/* R-RING-05, -10: a counter is one integer of this machine. */
static void counter_in_words(void)
{
    uint64_t counter = UINT64_C(0x0000000300000030);
    const char *text = describe(KBTP_LAYOUT_COUNTER, &counter, sizeof counter, true);
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "Ticket=3; "));
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "Slot Offset=30; "));
}

/*
 * Whatever the octets: each is in one item, in order; and items say what decoding says. Copies on
 * the heap let AddressSanitizer see a read too far.
 */
static void random_octets_are_covered(void)
{
    uint64_t chance = 2;
    unsigned wrong = 0, good = 0;
    for (unsigned i = 0; i < RANDOM_TEXTS; i++) {
        static const uint8_t opcodes[] = {0x01, 0x02, 0x10, 0x11, 0x12,
                                          0x13, 0x14, 0x20, 0x30, 0x99};
        enum kbtp_layout_id as =
            i % 4 ? KBTP_LAYOUT_HEADER : (enum kbtp_layout_id)(i / 4 % KBTP_LAYOUTS);
        size_t length = sim_random_below(&chance, 170), at = 0;
        uint8_t *octets = malloc(length ? length : 1);
        for (size_t k = 0; k < length; k++)
            octets[k] = (uint8_t)(sim_random_below(&chance, 3) ? 0 : sim_random64(&chance));
        if (length > 1) {
            octets[0] = i % 16 != 1;
            octets[1] = opcodes[sim_random_below(&chance, sizeof opcodes)];
        }
        struct kbtp_wire_cursor cursor;
        struct kbtp_wire_item item;
        bool whole = true, left_over = false;
        kbtp_wire_describe(&cursor, as, octets, length, i % 2);
        while (kbtp_wire_next(&cursor, &item)) {
            wrong += item.octet != at || item.length == 0 || !whole || left_over;
            wrong += strlen(item.words) >= KBTP_MAX_WORDS - 1;
            at = item.octet + item.length;
            whole = item.whole;
            left_over = strcmp(item.field, KBTP_TRAILING_OCTETS) == 0 ||
                        strcmp(item.field, KBTP_UNKNOWN_BODY) == 0;
        }
        wrong += at != length;
        struct kbtp_message message;
        if (as == KBTP_LAYOUT_HEADER &&
            kbtp_wire_decode(octets, length, i % 2, &message, NULL) == 0) {
            good++;
            wrong += !whole || left_over;
        }
        free(octets);
    }
    CU_ASSERT_EQUAL(wrong, 0);
    CU_ASSERT_TRUE(good > 20);
}

int main(void)
{
    static const struct test tests[] = {
        {"names of opcodes", names_of_opcodes},
        {"names of statuses", names_of_statuses},
        {"names of bits", names_of_bits},
        {"every fault has words", every_fault_has_words},
        {"fields fill their structures", fields_fill_their_structures},
        {"numbers and names", numbers_and_names},
        {"address fields", address_fields},
        {"one structure is checked", one_structure_is_checked},
        {"the example in words", example_in_words},
        {"messages in words", messages_in_words},
        {"HELLO_ACK in words", hello_ack_in_words},
        {"structures in words", structures_in_words},
        {"a counter in words", counter_in_words},
        {"random octets are covered", random_octets_are_covered},
    };
    return run_tests("ref/wire_describe", tests, sizeof tests / sizeof tests[0]);
}
