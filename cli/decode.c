/* SPDX-License-Identifier: BSD-3-Clause */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/json.h"
#include "ref/wire_describe.h"
#include "sim/read_file.h"

#define MAX_TEXT (16u << 20) /* octets of a file or of standard input */
#define MAX_OPERANDS 4096u
#define ROW_OCTETS 8u /* of octets shown in a line */

static const char usage[] =
    "usage: kbtp decode [HEX ... | FILE | -] [OPTIONS]\n"
    "\n"
    "Says in words what a message of the protocol holds, field by field, and what is wrong with "
    "it.\n"
    "Octets are pairs of hex digits: operands, a file, or standard input (without operand, or -).\n"
    "White space, colons, commas and 0x may stand between them, comments go from # to the line's\n"
    "end.\n"
    "\n"
    "  --as WHAT    what the octets are: message (default), entry (of the block table), slot (of "
    "the\n"
    "               ring), record (completion record), counter (Head or Tail, this machine's "
    "order)\n"
    "  --addr-le    address fields are little-endian: the target has set ADDR_LE\n"
    "  --json       print one JSON object\n"
    "\n"
    "exit status: 0 well-formed, 1 malformed, 2 bad input, 4 machine\n";

struct decode_options {
    int as; /* index in as_words */
    bool addr_le;
    bool json;
};

static const char *const as_words[] = {"message", "entry", "slot", "record", "counter", NULL};
static const enum kbtp_layout_id as_layouts[] = {KBTP_LAYOUT_HEADER, KBTP_LAYOUT_ENTRY,
                                                 KBTP_LAYOUT_SLOT, KBTP_LAYOUT_RECORD,
                                                 KBTP_LAYOUT_COUNTER};

static bool set_as(const char *option, const char *value, void *into)
{
    return cli_word(option, value, as_words, &((struct decode_options *)into)->as);
}

static bool set_addr_le(const char *option, const char *value, void *into)
{
    (void)option, (void)value;
    return ((struct decode_options *)into)->addr_le = true;
}

static bool set_json(const char *option, const char *value, void *into)
{
    (void)option, (void)value;
    return ((struct decode_options *)into)->json = true;
}

static const struct cli_option options[] = {
    {"as", true, set_as},
    {"addr-le", false, set_addr_le},
    {"json", false, set_json},
    {NULL, false, NULL},
};

/* ---- hex to octets --------------------------------------------------------------------------- */

struct octets {
    uint8_t *octets;
    size_t count;
};

/* Where hex text is wrong, and how. */
struct hex_error {
    size_t line, column; /* from 1 */
    char what[80];
};

static bool is_separator(char c)
{
    return isspace((unsigned char)c) || c == ':' || c == ',';
}

static unsigned digit_value(char c)
{
    return isdigit((unsigned char)c) ? (unsigned)(c - '0')
                                     : (unsigned)(tolower((unsigned char)c) - 'a') + 10;
}

static bool wrong_at(const char *text, size_t at, const char *what, struct hex_error *error)
{
    error->line = error->column = 1;
    for (size_t i = 0; i < at; i++) {
        error->column = text[i] == '\n' ? 1 : error->column + 1;
        error->line += text[i] == '\n';
    }
    snprintf(error->what, sizeof error->what, "%s", what);
    return false;
}

static bool wrong_character(const char *text, size_t at, struct hex_error *error)
{
    char what[40];
    unsigned char c = (unsigned char)text[at];
    snprintf(what, sizeof what,
             c > 0x20 && c < 0x7f ? "'%c' is no hex digit" : "octet 0x%02x is no hex digit", c);
    return wrong_at(text, at, what, error);
}

/* Appends the octets of `text` to `into`, which has room for length / 2 more. */
static bool parse_hex(const char *text, size_t length, struct octets *into, struct hex_error *error)
{
    for (size_t i = 0; i < length;) {
        if (text[i] == '#') {
            const char *end = memchr(text + i, '\n', length - i);
            i = end ? (size_t)(end - text) : length;
            continue;
        }
        if (is_separator(text[i])) {
            i++;
            continue;
        }
        const size_t group = i;
        if (length - i >= 2 && text[i] == '0' && (text[i + 1] == 'x' || text[i + 1] == 'X'))
            i += 2;
        const size_t digits = i;
        for (; i < length && isxdigit((unsigned char)text[i]); i++)
            if ((i - digits) % 2 == 1)
                into->octets[into->count++] =
                    (uint8_t)(digit_value(text[i - 1]) << 4 | digit_value(text[i]));
        if (i < length && !is_separator(text[i]) && text[i] != '#')
            return wrong_character(text, i, error);
        if ((i - digits) % 2 == 1)
            return wrong_at(text, group, "half an octet: write two hex digits for each", error);
        if (i == digits)
            return wrong_at(text, group, "no digits behind 0x", error);
    }
    return true;
}

/* ---- where the octets come from -------------------------------------------------------------- */

static int no_memory(void)
{
    cli_complain("no memory for the octets");
    return CLI_ENVIRONMENT;
}

/* The octets of a whole text; an exit status. `name` is for complaints. */
static int octets_of_text(const char *name, const char *text, size_t length, struct octets *into)
{
    struct hex_error error;
    into->octets = malloc(length / 2 + 1);
    if (!into->octets)
        return no_memory();
    if (parse_hex(text, length, into, &error))
        return CLI_DONE;
    cli_complain("%.200s:%zu:%zu: %s", name, error.line, error.column, error.what);
    return CLI_BAD_INPUT;
}

static int octets_of_input(struct octets *into)
{
    char *text = malloc(MAX_TEXT + 1);
    if (!text)
        return no_memory();
    size_t length = fread(text, 1, MAX_TEXT + 1, stdin);
    int status = CLI_BAD_INPUT;
    if (ferror(stdin))
        cli_complain("standard input: cannot be read: %s", strerror(errno));
    else if (length > MAX_TEXT)
        cli_complain("standard input: is larger than 16 MiB");
    else
        status = octets_of_text("standard input", text, length, into);
    free(text);
    return status;
}

static int octets_of_file(const char *path, struct octets *into)
{
    char error[400], *text;
    size_t length;
    if (sim_read_file(path, MAX_TEXT, &text, &length, error, sizeof error) != 0) {
        cli_complain("%s", error);
        return CLI_BAD_INPUT;
    }
    int status = octets_of_text(path, text, length, into);
    free(text);
    return status;
}

/* What is hex is taken for that; else a single operand is the name of a file. */
static int octets_of_operands(const char *const *operands, unsigned count, struct octets *into)
{
    size_t length = 0;
    for (unsigned i = 0; i < count; i++)
        length += strlen(operands[i]);
    into->octets = malloc(length / 2 + 1);
    if (!into->octets)
        return no_memory();
    for (unsigned i = 0; i < count; i++) {
        struct hex_error error;
        if (parse_hex(operands[i], strlen(operands[i]), into, &error))
            continue;
        if (count > 1) {
            cli_complain("'%.60s', character %zu: %s", operands[i], error.column, error.what);
            return CLI_BAD_INPUT;
        }
        if (access(operands[i], F_OK) != 0) {
            cli_complain("'%.60s', character %zu: %s; as a file: %s", operands[i], error.column,
                         error.what, strerror(errno));
            return CLI_BAD_INPUT;
        }
        free(into->octets);
        *into = (struct octets){0};
        return octets_of_file(operands[i], into);
    }
    return CLI_DONE;
}

static int read_octets(const char *const *operands, unsigned count, struct octets *into)
{
    int status = count == 0 || (count == 1 && strcmp(operands[0], "-") == 0)
                     ? octets_of_input(into)
                     : octets_of_operands(operands, count, into);
    if (status == CLI_DONE && into->count == 0) {
        cli_complain("there are no octets; give hex digits, a file or standard input");
        return CLI_BAD_INPUT;
    }
    return status;
}

/* ---- words ----------------------------------------------------------------------------------- */

#define MAX_LINE 200u

/* Decoding under way. */
struct decoding {
    const struct decode_options *options;
    const struct octets *octets;
    struct kbtp_wire_error error; /* fault: WELL when nothing is wrong */
};

static struct kbtp_wire_error judge(const struct decode_options *o, const struct octets *octets)
{
    struct kbtp_wire_error error = {0};
    struct kbtp_message message;
    if (as_layouts[o->as] == KBTP_LAYOUT_HEADER)
        kbtp_wire_decode(octets->octets, octets->count, o->addr_le, &message, &error);
    else
        kbtp_layout_check(as_layouts[o->as], octets->count, &error);
    return error;
}

static void what_is_wrong(const struct kbtp_wire_error *error, char *out, size_t size)
{
    const char *words = kbtp_wire_fault_words(error->fault);
    switch (error->fault) {
    case KBTP_WIRE_BAD_VERSION:
        snprintf(out, size, "%s but %" PRIu64, words, error->found);
        break;
    case KBTP_WIRE_BAD_OPCODE:
        snprintf(out, size, "%s: 0x%02" PRIx64, words, error->found);
        break;
    case KBTP_WIRE_NO_HEADER:
    case KBTP_WIRE_SHORT:
        snprintf(out, size, "%s: at least %" PRIu64 " octets are needed, %" PRIu64 " are there",
                 words, error->wanted, error->found);
        break;
    case KBTP_WIRE_LENGTH:
        snprintf(out, size, "%s: it says %" PRIu64 " octets, %" PRIu64 " follow", words,
                 error->wanted, error->found);
        break;
    case KBTP_WIRE_TRAILING:
        snprintf(out, size, "%s: it is after %" PRIu64 " octets, %" PRIu64 " are there", words,
                 error->wanted, error->found);
        break;
    case KBTP_WIRE_BAD_INLINE:
    case KBTP_WIRE_WELL:
        snprintf(out, size, "%s", words);
        break;
    }
}

static bool is_octets(const struct kbtp_wire_item *item)
{
    return item->kind == KBTP_FIELD_OCTETS || item->kind == KBTP_FIELD_SECRET;
}

/* The value as people read it, without the words. */
static void value_text(const struct kbtp_wire_item *item, char *out, size_t size)
{
    switch (item->kind) {
    case KBTP_FIELD_HEX:
    case KBTP_FIELD_OFFSET:
        snprintf(out, size, "0x%" PRIx64, item->value);
        break;
    case KBTP_FIELD_OPCODE:
    case KBTP_FIELD_FLAGS:
    case KBTP_FIELD_ENTRY_FLAGS:
    case KBTP_FIELD_FEATURES:
        snprintf(out, size, "0x%0*" PRIx64, 2 * (int)item->length, item->value);
        break;
    case KBTP_FIELD_NUMBER:
    case KBTP_FIELD_RESERVED:
    case KBTP_FIELD_GENERATION:
    case KBTP_FIELD_STATUS:
        snprintf(out, size, "%" PRIu64, item->value);
        break;
    case KBTP_FIELD_SECRET:
    case KBTP_FIELD_OCTETS:
        out[0] = 0;
        break;
    }
}

/* Octets as characters, those that are none as dots. */
static void characters(const uint8_t *octets, size_t count, char *out)
{
    for (size_t i = 0; i < count; i++)
        out[i] = (char)(octets[i] >= 0x20 && octets[i] < 0x7f ? octets[i] : '.');
    out[count] = 0;
}

/* ---- text ------------------------------------------------------------------------------------ */

static void print_row(size_t octet, const uint8_t *octets, size_t count, const char *field,
                      const char *text)
{
    char range[48], raw[3 * ROW_OCTETS + 1] = "";
    if (count > 1)
        snprintf(range, sizeof range, "%zu-%zu", octet, octet + count - 1);
    else
        snprintf(range, sizeof range, "%zu", octet);
    for (size_t i = 0; i < count; i++)
        snprintf(raw + 3 * i, sizeof raw - 3 * i, "%02x ", octets[i]);
    if (text[0])
        printf("  %-9s %-24s  %-20s %s\n", range, raw, field, text);
    else
        printf("  %-9s %-24s  %s\n", range, raw, field);
}

static void print_item(const struct decoding *d, const struct kbtp_wire_item *item)
{
    const uint8_t *octets = d->octets->octets + item->octet;
    for (size_t row = 0; row < item->length; row += ROW_OCTETS) {
        size_t count = item->length - row < ROW_OCTETS ? item->length - row : ROW_OCTETS;
        char value[24] = "", shown[ROW_OCTETS + 1] = "", text[MAX_LINE];
        if (item->kind == KBTP_FIELD_OCTETS)
            characters(octets + row, count, shown);
        else if (item->whole)
            value_text(item, value, sizeof value);
        bool last = row + count == item->length;
        snprintf(text, sizeof text, "%s%s%s%s%s", value, shown, item->words[0] ? "  " : "",
                 item->words, item->whole || !last ? "" : "(cut off)");
        print_row(item->octet + row, octets + row, count, row == 0 ? item->field : "", text);
    }
}

static void print_verdict(const struct decoding *d)
{
    const struct kbtp_wire_error *error = &d->error;
    if (error->fault == KBTP_WIRE_WELL) {
        printf("\nwell-formed %s of %zu octets\n", as_words[d->options->as], d->octets->count);
        return;
    }
    char what[MAX_LINE];
    what_is_wrong(error, what, sizeof what);
    if (strcmp(error->structure, KBTP_REST) == 0)
        printf("\nmalformed at octet %zu, %s: %s\n", error->octet, error->field, what);
    else
        printf("\nmalformed at octet %zu, %s of %s: %s\n", error->octet, error->field,
               error->structure, what);
}

static void print_text(const struct decoding *d)
{
    struct kbtp_wire_cursor cursor;
    struct kbtp_wire_item item;
    const char *structure = NULL;
    kbtp_wire_describe(&cursor, as_layouts[d->options->as], d->octets->octets, d->octets->count,
                       d->options->addr_le);
    while (kbtp_wire_next(&cursor, &item)) {
        if (item.structure != structure)
            puts(item.structure);
        structure = item.structure;
        print_item(d, &item);
    }
    print_verdict(d);
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static json_t *json_octets(const uint8_t *octets, size_t count)
{
    char *text = malloc(2 * count + 1);
    if (!text)
        return NULL;
    text[0] = 0;
    for (size_t i = 0; i < count; i++)
        snprintf(text + 2 * i, 3, "%02x", octets[i]);
    json_t *string = json_string(text);
    free(text);
    return string;
}

/* Hex digits for what a JSON number may not hold, null when it is not all there. */
static json_t *json_value(const struct kbtp_wire_item *item, const uint8_t *octets)
{
    if (!item->whole)
        return json_null();
    if (is_octets(item))
        return json_octets(octets, item->length);
    return item->length == 8 ? cli_json_hex(item->value) : json_integer((json_int_t)item->value);
}

static json_t *json_text(const struct kbtp_wire_item *item, const uint8_t *octets)
{
    if (item->kind != KBTP_FIELD_OCTETS)
        return json_string(item->whole ? item->words : "cut off");
    char *text = malloc(item->length + 1);
    if (!text)
        return NULL;
    characters(octets, item->length, text);
    json_t *string = json_string(text);
    free(text);
    return string;
}

static json_t *json_item(const struct decoding *d, const struct kbtp_wire_item *item)
{
    const uint8_t *octets = d->octets->octets + item->octet;
    json_t *all = json_object();
    json_object_set_new(all, "octet", json_integer((json_int_t)item->octet));
    json_object_set_new(all, "length", json_integer((json_int_t)item->length));
    json_object_set_new(all, "structure", json_string(item->structure));
    json_object_set_new(all, "field", json_string(item->field));
    json_object_set_new(all, "raw", json_octets(octets, item->length));
    json_object_set_new(all, "value", json_value(item, octets));
    json_object_set_new(all, "text", json_text(item, octets));
    return all;
}

static json_t *json_error(const struct kbtp_wire_error *error)
{
    if (error->fault == KBTP_WIRE_WELL)
        return json_null();
    char what[MAX_LINE];
    what_is_wrong(error, what, sizeof what);
    json_t *all = json_object();
    json_object_set_new(all, "octet", json_integer((json_int_t)error->octet));
    json_object_set_new(all, "structure", json_string(error->structure));
    json_object_set_new(all, "field", json_string(error->field));
    json_object_set_new(all, "what", json_string(what));
    return all;
}

static void print_json(const struct decoding *d)
{
    struct kbtp_wire_cursor cursor;
    struct kbtp_wire_item item;
    json_t *fields = json_array();
    kbtp_wire_describe(&cursor, as_layouts[d->options->as], d->octets->octets, d->octets->count,
                       d->options->addr_le);
    while (kbtp_wire_next(&cursor, &item))
        json_array_append_new(fields, json_item(d, &item));
    json_t *all = json_object();
    json_object_set_new(all, "as", json_string(as_words[d->options->as]));
    json_object_set_new(all, "addr_le", json_boolean(d->options->addr_le));
    json_object_set_new(all, "octets", json_integer((json_int_t)d->octets->count));
    json_object_set_new(all, "fields", fields);
    json_object_set_new(all, "error", json_error(&d->error));
    cli_json_print(all);
}

static int run(int argc, char **argv)
{
    static const char *operands[MAX_OPERANDS];
    struct decode_options o = {0};
    unsigned count;
    int status = cli_parse(&cli_decode, argc, argv, options, &o, operands, MAX_OPERANDS, &count);
    if (status >= 0)
        return status;
    struct octets octets = {0};
    status = read_octets(operands, count, &octets);
    if (status == CLI_DONE) {
        const struct decoding d = {&o, &octets, judge(&o, &octets)};
        if (o.json)
            print_json(&d);
        else
            print_text(&d);
        status = d.error.fault == KBTP_WIRE_WELL ? CLI_DONE : CLI_FOUND;
    }
    free(octets.octets);
    return status;
}

const struct cli_command cli_decode = {
    .name = "decode",
    .does = "say in words what a message holds",
    .usage = usage,
    .run = run,
};
