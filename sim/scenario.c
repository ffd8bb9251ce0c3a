/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A text is read in three passes: check_yaml() makes sure that it is one plain YAML mapping,
 * load() has libcyaml read it after the schema below, build() converts and checks the rest.
 *
 * Every message names a key by its path ("allocators[1].agent"). Where that key stands is looked up
 * in the text (place_of), because the positions that libcyaml reports are those of the last event
 * it remembers, often on the line before.
 */
#include "sim/scenario.h"

#include <cyaml/cyaml.h>
#include <yaml.h>

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* libyaml's time can grow with the square of the length. */
#define TEXT_LIMIT ((size_t)1 << 20)

#define DEFAULT_BLOCK_SIZE UINT64_C(0x100004000) /* 4 GiB + 16 KiB */
#define MAX_QUOTA 1000000u

/* ---- the schema --------------------------------------------------------------------------- */

/*
 * Numbers are strings here and booleans an enumeration: libcyaml alone would take "4x"
 * for 4, "010" for 8 and "flase" for true.
 */
#define OPTIONAL CYAML_FLAG_OPTIONAL
#define REQUIRED CYAML_FLAG_DEFAULT

/* Key, need, member of struct sim_scenario (all uint32_t), default, smallest, largest value. */
/* clang-format off */
#define NUMBERS(N) \
    N(store_buffer, OPTIONAL, machine.store_buffer, 4, 1, 16), \
    N(slots, REQUIRED, slots, 0, 2, SIM_MAX_SLOTS), \
    N(blocks, REQUIRED, blocks, 0, 1, 64), \
    N(first_block, OPTIONAL, first_block, 0, 0, UINT32_MAX), \
    N(first_ticket, OPTIONAL, first_ticket, 0, 0, UINT32_MAX), \
    N(first_generation, OPTIONAL, first_generation, 1, 1, 65535), \
    N(handles, OPTIONAL, handles, 0, 0, 64), \
    N(crashes, OPTIONAL, crashes, 0, 0, 8)
#define NUMBER_NAME(key, ...) NUMBER_##key
#define NUMBER_RULE(key, need, member, fallback, least, most) \
    {#key, offsetof(struct sim_scenario, member), fallback, least, most}
/* clang-format on */

enum { NUMBERS(NUMBER_NAME), NUMBER_COUNT };

struct number_rule {
    const char *key;
    size_t offset; /* in struct sim_scenario */
    uint32_t fallback;
    uint32_t least;
    uint32_t most;
};

static const struct number_rule number_rules[] = {NUMBERS(NUMBER_RULE)};
static const struct number_rule allocations_rule = {"allocations", 0, 0, 1, SIM_MAX_ALLOCATIONS};

struct raw_allocator {
    char *name;
    int *agent;
    char *allocations;
};

struct raw_freer {
    char *name;
};

/* What the schema reads. NULL: the key is not there. */
struct raw_scenario {
    int kind;
    char *title;
    int *memory;
    int *tear;
    int *dma_order;
    char *numbers[NUMBER_COUNT];
    char *block_size;
    char *quota;
    int *counters;
    int *free_completes;
    int *address_le;
    struct raw_allocator *allocators;
    unsigned allocators_count;
    struct raw_freer *freers;
    unsigned freers_count;
    char **must_reach;
    unsigned must_reach_count;
};

static const cyaml_strval_t kinds[] = {{"ring", SIM_KIND_RING}};
static const cyaml_strval_t agents[] = {{"cpu", SIM_AGENT_CPU}, {"rnic", SIM_AGENT_RNIC}};
static const cyaml_strval_t memories[] = {
    {"sc", SIM_MEMORY_SC}, {"tso", SIM_MEMORY_TSO}, {"relaxed", SIM_MEMORY_RELAXED}};
static const cyaml_strval_t tears[] = {{"8", 8}, {"4", 4}};
static const cyaml_strval_t dma_orders[] = {
    {"any", SIM_DMA_ANY}, {"ascending", SIM_DMA_ASCENDING}, {"descending", SIM_DMA_DESCENDING}};
static const cyaml_strval_t counter_forms[] = {{"masked", SIM_COUNTERS_MASKED},
                                               {"unmasked", SIM_COUNTERS_UNMASKED}};
static const cyaml_strval_t completions[] = {{"deferred", SIM_FREE_COMPLETES_DEFERRED},
                                             {"written", SIM_FREE_COMPLETES_WRITTEN}};
static const cyaml_strval_t booleans[] = {{"false", false}, {"true", true}};

#define STRING(type, key, need, member) \
    CYAML_FIELD_STRING_PTR(key, need, struct type, member, 0, CYAML_UNLIMITED)
#define CHOICE(type, key, member, words) \
    CYAML_FIELD_ENUM_PTR(key, OPTIONAL | CYAML_FLAG_STRICT, struct type, member, words, \
                         CYAML_ARRAY_LEN(words))
#define LIST(key, need, member, entry, least, most) \
    CYAML_FIELD_SEQUENCE(key, (need) | CYAML_FLAG_POINTER, struct raw_scenario, member, entry, \
                         least, most)
#define NUMBER_FIELD(key, need, ...) STRING(raw_scenario, #key, need, numbers[NUMBER_##key])

static const cyaml_schema_field_t allocator_fields[] = {
    STRING(raw_allocator, "name", REQUIRED, name),
    CHOICE(raw_allocator, "agent", agent, agents),
    STRING(raw_allocator, "allocations", REQUIRED, allocations),
    CYAML_FIELD_END,
};
static const cyaml_schema_value_t allocator_schema = {
    CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, struct raw_allocator, allocator_fields)};

static const cyaml_schema_field_t freer_fields[] = {
    STRING(raw_freer, "name", REQUIRED, name),
    CYAML_FIELD_END,
};
static const cyaml_schema_value_t freer_schema = {
    CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, struct raw_freer, freer_fields)};

static const cyaml_schema_value_t must_reach_schema = {
    CYAML_VALUE_STRING(CYAML_FLAG_POINTER, char *, 1, CYAML_UNLIMITED)};

static const cyaml_schema_field_t scenario_fields[] = {
    CYAML_FIELD_ENUM("kind", CYAML_FLAG_STRICT, struct raw_scenario, kind, kinds,
                     CYAML_ARRAY_LEN(kinds)),
    STRING(raw_scenario, "title", OPTIONAL, title),
    CHOICE(raw_scenario, "memory", memory, memories),
    CHOICE(raw_scenario, "tear", tear, tears),
    CHOICE(raw_scenario, "dma_order", dma_order, dma_orders),
    NUMBERS(NUMBER_FIELD),
    STRING(raw_scenario, "block_size", OPTIONAL, block_size),
    STRING(raw_scenario, "quota", OPTIONAL, quota),
    CHOICE(raw_scenario, "counters", counters, counter_forms),
    CHOICE(raw_scenario, "free_completes", free_completes, completions),
    CHOICE(raw_scenario, "address_le", address_le, booleans),
    LIST("allocators", REQUIRED, allocators, &allocator_schema, 1, SIM_MAX_ALLOCATORS),
    LIST("freers", REQUIRED, freers, &freer_schema, 1, SIM_MAX_FREERS),
    LIST("must_reach", OPTIONAL, must_reach, &must_reach_schema, 0, SIM_MAX_MUST_REACH),
    CYAML_FIELD_END,
};
static const cyaml_schema_value_t scenario_schema = {
    CYAML_VALUE_MAPPING(CYAML_FLAG_POINTER, struct raw_scenario, scenario_fields)};

/* ---- the error line ----------------------------------------------------------------------- */

/*
 * One line of text for a person, in the caller's buffer. What comes from the input goes through
 * line_add(), which lets nothing pass that could move a terminal's cursor or break the line.
 */
struct line {
    char *out;
    size_t size;
    size_t length;
    size_t dots; /* where "..." goes should the line not fit */
    bool full;
};

/* The octets of the character at text[0], or 0 if it is no printable character in UTF-8. */
static size_t printable(const char *text, size_t length)
{
    static const uint32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
    unsigned char first = (unsigned char)text[0];
    if (first < 0x80)
        return first >= 0x20 && first != 0x7f;
    size_t need = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
    if (first < 0xc2 || first > 0xf4 || need > length)
        return 0;
    uint32_t code = first & (0x7fu >> need);
    for (size_t i = 1; i < need; i++) {
        if (((unsigned char)text[i] & 0xc0) != 0x80)
            return 0;
        code = code << 6 | ((unsigned char)text[i] & 0x3f);
    }
    bool control = code < 0xa0 || code == 0x2028 || code == 0x2029;
    bool invalid = code < smallest[need] || code > 0x10ffff || (code >> 11) == 0x1b;
    return control || invalid ? 0 : need;
}

static void line_put(struct line *line, const char *octets, size_t count)
{
    if (line->full || line->length + count >= line->size) {
        line->full = true;
        return;
    }
    memcpy(line->out + line->length, octets, count);
    line->length += count;
    if (line->length + sizeof "..." <= line->size)
        line->dots = line->length;
}

static void line_add(struct line *line, const char *text)
{
    for (size_t left = strlen(text), n; left > 0; text += n, left -= n) {
        n = printable(text, left);
        if (n > 0) {
            line_put(line, text, n);
            continue;
        }
        char escaped[8];
        n = 1;
        line_put(line, escaped,
                 (size_t)snprintf(escaped, sizeof escaped, "\\x%02X", (unsigned char)text[0]));
    }
}

static void line_end(struct line *line)
{
    if (line->size == 0)
        return;
    if (line->full) {
        line->length = line->dots;
        for (int i = 0; i < 3 && line->length + 1 < line->size; i++)
            line->out[line->length++] = '.';
    }
    line->out[line->length] = '\0';
}

/* Of a long name the end says most; half the line is left for the message. */
static void line_add_name(struct line *line, const char *name)
{
    size_t length = strlen(name);
    if (length <= line->size / 2) {
        line_add(line, name);
        return;
    }
    const char *end = name + length - line->size / 2;
    while (((unsigned char)*end & 0xc0) == 0x80)
        end++;
    line_add(line, "...");
    line_add(line, end);
}

/* Writes NAME, `where` and the message as the error line. */
static void write_error(char *error, size_t size, const char *name, const char *where,
                        const char *format, va_list args) __attribute__((format(printf, 5, 0)));

static void write_error(char *error, size_t size, const char *name, const char *where,
                        const char *format, va_list args)
{
    struct line line = {.out = error, .size = size};
    char message[512];
    vsnprintf(message, sizeof message, format, args);
    line_add_name(&line, name);
    line_add(&line, where);
    line_add(&line, message);
    line_end(&line);
}

/* A short string, cut when it is full. */
struct string {
    char text[128];
    size_t length;
};

static void string_add(struct string *string, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void string_add(struct string *string, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    size_t room = sizeof string->text - string->length;
    int n = vsnprintf(string->text + string->length, room, format, args);
    va_end(args);
    string->length += n < 0 ? 0 : (size_t)n < room ? (size_t)n : room - 1;
}

static void string_cut(struct string *string, size_t length)
{
    string->length = length;
    string->text[length] = '\0';
}

/* A value of the input in quotes. */
static struct string quoted(const char *value)
{
    struct string string = {.length = 0};
    size_t length = strlen(value);
    bool cut = length > 40;
    if (cut)
        for (length = 40; length > 0 && ((unsigned char)value[length] & 0xc0) == 0x80;)
            length--;
    string_add(&string, "'%.*s%s'", (int)length, value, cut ? "..." : "");
    return string;
}

/* ---- complaints --------------------------------------------------------------------------- */

/*
 * A path is the way from the top of the scenario, whose path is empty, to a key or a list entry.
 * Keys with unusual characters stand in quotes, so that no two places have the same path.
 */
#define NAME_CHARACTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-"

static void path_add_key(struct string *path, const char *key)
{
    bool plain = key[0] != '\0' && key[strspn(key, NAME_CHARACTERS)] == '\0';
    const char *quote = plain ? "" : "'";
    string_add(path, "%s%s%s%s", path->length > 0 ? "." : "", quote, key, quote);
}

static void path_add_entry(struct string *path, unsigned index)
{
    string_add(path, "[%u]", index);
}

/* A place in the text, both counted from one. */
struct place {
    size_t line;
    size_t column; /* in characters */
};

static const struct place top_of_text = {1, 1};

#define NO_MEMORY "cannot be read (out of memory), give this program more memory"

struct reader {
    const char *name;
    const char *text;
    size_t length;
    char *error;
    size_t size;
};

static void complain_at(const struct reader *r, struct place place, const char *key,
                        const char *format, ...) __attribute__((format(printf, 4, 5)));

/* Writes NAME:LINE:COLUMN: KEY: what is wrong, what to do. No key: it is about the whole. */
static void complain_at(const struct reader *r, struct place place, const char *key,
                        const char *format, ...)
{
    char where[256];
    snprintf(where, sizeof where, ":%zu:%zu: %s: ", place.line, place.column,
             key[0] != '\0' ? key : "scenario");
    va_list args;
    va_start(args, format);
    write_error(r->error, r->size, r->name, where, format, args);
    va_end(args);
}

/* ---- places in the text ------------------------------------------------------------------- */

/*
 * A walk over the events of the text that knows the path to each node.
 *
 * It ends where collections are nested much deeper than in any scenario: libyaml has no bound of
 * its own, and its time grows with the square of the depth.
 */
#define WALK_LEVELS 16u

enum role { ROLE_NONE, ROLE_ROOT, ROLE_KEY, ROLE_VALUE, ROLE_ENTRY };

struct level {
    bool is_list;
    bool value_next; /* in a mapping */
    unsigned count;  /* in a list */
    size_t path_length;
};

struct walk {
    yaml_parser_t parser;
    yaml_event_t event;
    enum role role;     /* of the node that the event starts, else ROLE_NONE */
    struct string path; /* to that node */
    struct place place; /* of its key if it has one, else its own */
    bool too_deep;
    unsigned depth; /* how many collections are open */
    struct level levels[WALK_LEVELS];
};

static struct place place_of_mark(yaml_mark_t mark)
{
    return (struct place){.line = mark.line + 1, .column = mark.column + 1};
}

static bool walk_open(struct walk *w, const struct reader *r)
{
    memset(w, 0, sizeof *w);
    if (!yaml_parser_initialize(&w->parser))
        return false;
    yaml_parser_set_encoding(&w->parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&w->parser, (const unsigned char *)r->text, r->length);
    return true;
}

static void walk_close(struct walk *w)
{
    yaml_event_delete(&w->event);
    yaml_parser_delete(&w->parser);
}

static void walk_enter_node(struct walk *w)
{
    struct level *level = w->depth > 0 ? &w->levels[w->depth - 1] : NULL;
    if (level == NULL)
        w->role = ROLE_ROOT;
    else if (level->is_list)
        w->role = ROLE_ENTRY;
    else
        w->role = level->value_next ? ROLE_VALUE : ROLE_KEY;

    if (w->role == ROLE_KEY || w->role == ROLE_VALUE)
        level->value_next = !level->value_next;
    if (w->role == ROLE_VALUE)
        return; /* its path and its place are those of its key */
    w->place = place_of_mark(w->event.start_mark);
    if (w->role == ROLE_ROOT)
        return;
    string_cut(&w->path, level->path_length);
    if (w->role == ROLE_ENTRY)
        path_add_entry(&w->path, level->count++);
    else if (w->event.type == YAML_SCALAR_EVENT)
        path_add_key(&w->path, (const char *)w->event.data.scalar.value);
}

/* Goes to the next event; false when the text is no YAML from here on, or nested too deep. */
static bool walk_next(struct walk *w)
{
    yaml_event_delete(&w->event);
    w->role = ROLE_NONE;
    if (!yaml_parser_parse(&w->parser, &w->event)) {
        memset(&w->event, 0, sizeof w->event);
        return false;
    }
    switch (w->event.type) {
    case YAML_ALIAS_EVENT:
    case YAML_SCALAR_EVENT:
        walk_enter_node(w);
        break;
    case YAML_SEQUENCE_START_EVENT:
    case YAML_MAPPING_START_EVENT:
        walk_enter_node(w);
        w->too_deep = w->depth == WALK_LEVELS;
        if (w->too_deep)
            return false;
        w->levels[w->depth++] = (struct level){
            .is_list = w->event.type == YAML_SEQUENCE_START_EVENT,
            .path_length = w->path.length,
        };
        break;
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT:
        string_cut(&w->path, w->levels[--w->depth].path_length);
        break;
    default:
        break;
    }
    return true;
}

/* Where the key or list entry `path` stands for the `occurrence`-th time (from one). */
static struct place place_of(const struct reader *r, const char *path, unsigned occurrence)
{
    struct place place = top_of_text;
    struct walk w;
    if (!walk_open(&w, r))
        return place;
    while (walk_next(&w) && w.event.type != YAML_STREAM_END_EVENT) {
        if (w.role != ROLE_ROOT && w.role != ROLE_KEY && w.role != ROLE_ENTRY)
            continue;
        if (strcmp(w.path.text, path) == 0 && --occurrence == 0) {
            place = w.place;
            break;
        }
    }
    walk_close(&w);
    return place;
}

/* The same, looking up where the key stands. */
#define complain(r, key, ...) complain_at(r, place_of(r, key, 1), key, __VA_ARGS__)

/* ---- first pass: one plain YAML mapping --------------------------------------------------- */

/* libyaml gives the octet, not the line, when it does not get as far as characters. */
static struct place place_of_octet(const struct reader *r, size_t offset)
{
    struct place place = top_of_text;
    for (size_t i = 0; i < offset && i < r->length; i++) {
        if (r->text[i] == '\n')
            place = (struct place){.line = place.line + 1, .column = 1};
        else if (((unsigned char)r->text[i] & 0xc0) != 0x80)
            place.column++;
    }
    return place;
}

static void complain_syntax(const struct reader *r, const struct walk *w)
{
    const yaml_parser_t *parser = &w->parser;
    if (w->too_deep) {
        complain_at(r, w->place, w->path.text,
                    "is nested too deep, no key has more than a list of mappings");
        return;
    }
    if (parser->error == YAML_READER_ERROR) {
        complain_at(r, place_of_octet(r, parser->problem_offset), "",
                    "is not UTF-8 text (%s), remove what stands here", parser->problem);
        return;
    }
    if (parser->error == YAML_MEMORY_ERROR || parser->problem == NULL) {
        complain_at(r, top_of_text, "", NO_MEMORY);
        return;
    }
    char context[128] = "";
    if (parser->context != NULL && parser->context_mark.line != parser->problem_mark.line)
        snprintf(context, sizeof context, " %s from line %zu on", parser->context,
                 parser->context_mark.line + 1);
    complain_at(r, place_of_mark(parser->problem_mark), "",
                "is not YAML: %s%s, check quotes, brackets and indentation (spaces, no tabs)",
                parser->problem, context);
}

static bool check_scalar(const struct reader *r, const struct walk *w)
{
    const char *value = (const char *)w->event.data.scalar.value;
    size_t length = w->event.data.scalar.length;
    for (size_t i = 0, n; i < length; i += n) {
        n = printable(value + i, length - i);
        if (n > 0)
            continue;
        if (value[i] == '\n')
            complain_at(r, w->place, w->path.text, "has a line break, write it in one line");
        else
            complain_at(r, w->place, w->path.text,
                        "has a control character (octet 0x%02X), remove it",
                        (unsigned char)value[i]);
        return false;
    }
    return true;
}

static bool check_node(const struct reader *r, const struct walk *w)
{
    yaml_event_type_t type = w->event.type;
    if (type == YAML_ALIAS_EVENT) {
        complain_at(r, w->place, w->path.text, "is an alias, write the value itself");
        return false;
    }
    if (w->role == ROLE_ROOT && type != YAML_MAPPING_START_EVENT) {
        complain_at(r, w->place, "", "is not a mapping, start with 'kind: ring'");
        return false;
    }
    if (w->role == ROLE_KEY && type != YAML_SCALAR_EVENT) {
        complain_at(r, w->place, w->path.text,
                    "has a list or a mapping for a key, write a word before the ':'");
        return false;
    }
    return type != YAML_SCALAR_EVENT || check_scalar(r, w);
}

/* Walks on to the end of the stream, or to what is wrong. */
static bool check_events(const struct reader *r, struct walk *w)
{
    unsigned documents = 0;
    for (;;) {
        if (!walk_next(w)) {
            complain_syntax(r, w);
            return false;
        }
        if (w->event.type == YAML_STREAM_END_EVENT)
            break;
        if (w->event.type == YAML_DOCUMENT_START_EVENT && documents++ == 1) {
            complain_at(r, place_of_mark(w->event.start_mark), "",
                        "a second document starts here, keep one in each file");
            return false;
        }
        if (w->role != ROLE_NONE && !check_node(r, w))
            return false;
    }
    if (documents == 0)
        complain_at(r, top_of_text, "", "is empty, start with 'kind: ring'");
    return documents == 1;
}

/* A scenario needs no YAML directive, and libyaml's time grows with the square of their number. */
static bool check_directives(const struct reader *r)
{
    for (size_t i = 0; i < r->length; i++)
        if (r->text[i] == '%' && (i == 0 || r->text[i - 1] == '\n' || r->text[i - 1] == '\r')) {
            complain_at(r, place_of_octet(r, i), "", "has a line that starts with %%, remove it");
            return false;
        }
    return true;
}

static bool check_yaml(const struct reader *r)
{
    struct walk w;
    if (!check_directives(r))
        return false;
    if (!walk_open(&w, r)) {
        complain_at(r, top_of_text, "", NO_MEMORY);
        return false;
    }
    bool good = check_events(r, &w);
    walk_close(&w);
    return good;
}

/* ---- second pass: the schema. libcyaml tells what is wrong through its log ------------------ */

struct capture {
    char message[256]; /* the first, without its newline */
    char trace[4][96]; /* innermost first: "  in mapping field 'agent' (line: 3, column: 2)" */
    unsigned trace_count;
};

static void capture_log(cyaml_log_t level, void *context, const char *format, va_list args)
    __attribute__((format(printf, 3, 0)));

static void capture_log(cyaml_log_t level, void *context, const char *format, va_list args)
{
    struct capture *capture = context;
    char text[sizeof capture->message];
    (void)level;
    vsnprintf(text, sizeof text, format, args);
    text[strcspn(text, "\n")] = '\0';
    if (strncmp(text, "  in ", 5) == 0) {
        if (capture->trace_count < CYAML_ARRAY_LEN(capture->trace))
            snprintf(capture->trace[capture->trace_count++], sizeof capture->trace[0], "%.*s",
                     (int)sizeof capture->trace[0] - 1, text);
    } else if (capture->message[0] == '\0') {
        memcpy(capture->message, text, sizeof text);
    }
}

/* Strings that libcyaml allocates end up in struct sim_scenario, whose owner knows only free(). */
static void *allocate(void *context, void *old, size_t size)
{
    (void)context;
    if (size == 0) {
        free(old);
        return NULL;
    }
    return realloc(old, size);
}

static cyaml_config_t cyaml_settings(struct capture *capture)
{
    return (cyaml_config_t){
        .log_fn = capture_log,
        .log_ctx = capture,
        .mem_fn = allocate,
        .log_level = CYAML_LOG_ERROR,
        .flags = CYAML_CFG_NO_ALIAS,
    };
}

/* What libcyaml refused. */
struct refusal {
    cyaml_err_t code;
    struct string key;
    struct place place;
    const cyaml_schema_value_t *schema; /* of the value, or of the mapping with the wrong keys */
    const char *message;
};

/* The rest of the message after `start`, or NULL when it does not start so. */
static const char *message_after(const struct refusal *refusal, const char *start)
{
    size_t length = strlen(start);
    return strncmp(refusal->message, start, length) == 0 ? refusal->message + length : NULL;
}

/* Takes one step of the backtrace, from a collection to one of its values. */
static void follow(struct refusal *refusal, const char *step, bool innermost)
{
    char field[32];
    unsigned entry;
    if (refusal->schema->type == CYAML_MAPPING &&
        sscanf(step, " in mapping field '%31[^']'", field) == 1) {
        path_add_key(&refusal->key, field);
        for (const cyaml_schema_field_t *f = refusal->schema->mapping.fields; f->key != NULL; f++)
            if (strcmp(f->key, field) == 0) {
                refusal->schema = &f->value;
                break;
            }
    } else if (refusal->schema->type == CYAML_SEQUENCE &&
               sscanf(step, " in sequence entry '%u'", &entry) == 1) {
        /* The number is how many entries were accepted, the one being read included. */
        if (innermost && refusal->code == CYAML_ERR_SEQUENCE_ENTRIES_MIN)
            return;
        if (innermost && refusal->code == CYAML_ERR_SEQUENCE_ENTRIES_MAX) {
            path_add_entry(&refusal->key, entry);
            return;
        }
        path_add_entry(&refusal->key, entry > 0 ? entry - 1 : 0);
        refusal->schema = refusal->schema->sequence.entry;
    }
}

/* Turns the backtrace into the path and the place of what was refused. */
static void locate(const struct reader *r, const struct capture *capture, struct refusal *refusal)
{
    /* When a key is unknown or missing, the innermost step is the field that was read before. */
    bool of_keys =
        refusal->code == CYAML_ERR_INVALID_KEY || refusal->code == CYAML_ERR_MAPPING_FIELD_MISSING;
    for (unsigned i = capture->trace_count; i-- > (of_keys ? 1 : 0);)
        follow(refusal, capture->trace[i], i == 0);

    const char *key;
    if ((key = message_after(refusal, "Load: Missing required mapping field: ")) != NULL) {
        refusal->place = place_of(r, refusal->key.text, 1);
        path_add_key(&refusal->key, key);
        return;
    }
    if ((key = message_after(refusal, "Load: Unexpected key: ")) != NULL)
        path_add_key(&refusal->key, key);
    bool twice = message_after(refusal, "Load: Mapping field already seen: ") != NULL;
    refusal->place = place_of(r, refusal->key.text, twice ? 2 : 1);
}

/* The number of letters to insert, delete or replace to make b of a; words of a key's length. */
static unsigned edit_distance(const char *a, const char *b)
{
    unsigned row[33];
    size_t columns = strlen(b);
    if (strlen(a) >= CYAML_ARRAY_LEN(row) || columns >= CYAML_ARRAY_LEN(row))
        return UINT32_MAX;
    for (unsigned j = 0; j <= columns; j++)
        row[j] = j;
    for (unsigned i = 1; a[i - 1] != '\0'; i++) {
        unsigned diagonal = row[0];
        row[0] = i;
        for (unsigned j = 1; j <= columns; j++) {
            unsigned replaced = diagonal + (a[i - 1] != b[j - 1]);
            diagonal = row[j];
            unsigned other = (row[j] < row[j - 1] ? row[j] : row[j - 1]) + 1;
            row[j] = replaced < other ? replaced : other;
        }
    }
    return row[columns];
}

static void complain_unknown_key(const struct reader *r, const struct refusal *refusal)
{
    const char *key = message_after(refusal, "Load: Unexpected key: ");
    const char *nearest = NULL;
    unsigned least = 3; /* two slips are a slip, three are another word */
    for (const cyaml_schema_field_t *f = refusal->schema->mapping.fields; f->key != NULL; f++) {
        unsigned distance = key != NULL ? edit_distance(key, f->key) : UINT32_MAX;
        if (distance < least) {
            least = distance;
            nearest = f->key;
        }
    }
    if (nearest != NULL)
        complain_at(r, refusal->place, refusal->key.text, "unknown key, did you mean '%s'?",
                    nearest);
    else
        complain_at(r, refusal->place, refusal->key.text,
                    "unknown key, remove it or take one of kbtp-scenario(5)");
}

/* The words of an enumeration: "sc, tso or relaxed". */
static struct string words_of(const cyaml_schema_value_t *schema)
{
    struct string words = {.length = 0};
    uint32_t count = schema->enumeration.count;
    for (uint32_t i = 0; i < count; i++) {
        const char *before = i + 1 < count ? ", " : " or ";
        string_add(&words, "%s%s", i > 0 ? before : "", schema->enumeration.strings[i].str);
    }
    return words;
}

static void complain_value(const struct reader *r, const struct refusal *refusal)
{
    const char *key = refusal->key.text;
    const char *word = message_after(refusal, "Load: Invalid ENUM value: ");
    if (word != NULL)
        complain_at(r, refusal->place, key, "%s is not known here, write %s", quoted(word).text,
                    words_of(refusal->schema).text);
    else if (refusal->schema->type == CYAML_SEQUENCE)
        complain_at(r, refusal->place, key, "is not a list, write one '- ' for each entry");
    else if (refusal->schema->type == CYAML_MAPPING)
        complain_at(r, refusal->place, key,
                    "is not a mapping, write keys with values, such as 'name: X'");
    else
        complain_at(r, refusal->place, key, "is a list or a mapping, write a single value");
}

static void complain_refused(const struct reader *r, const struct capture *capture,
                             cyaml_err_t code)
{
    struct refusal refusal = {
        .code = code, .schema = &scenario_schema, .message = capture->message};
    locate(r, capture, &refusal);
    const char *key = refusal.key.text;
    switch (code) {
    case CYAML_ERR_INVALID_KEY:
        complain_unknown_key(r, &refusal);
        break;
    case CYAML_ERR_MAPPING_FIELD_MISSING:
        complain_at(r, refusal.place, key, "is required and missing, add it");
        break;
    case CYAML_ERR_UNEXPECTED_EVENT:
        complain_at(r, refusal.place, key, "is here for the second time, keep one of them");
        break;
    case CYAML_ERR_SEQUENCE_ENTRIES_MIN:
        complain_at(r, refusal.place, key, "has no entry, list 1 to %u",
                    refusal.schema->sequence.max);
        break;
    case CYAML_ERR_SEQUENCE_ENTRIES_MAX:
        complain_at(r, refusal.place, key, "is one entry too many, list at most %u",
                    refusal.schema->sequence.max);
        break;
    case CYAML_ERR_STRING_LENGTH_MIN:
        complain_at(r, refusal.place, key, "is empty, write a name or remove the entry");
        break;
    case CYAML_ERR_INVALID_VALUE:
        complain_value(r, &refusal);
        break;
    default: /* the first pass has left little else than want of memory */
        complain_at(r, refusal.place, key, "cannot be read (%s), give this program more memory",
                    cyaml_strerror(code));
    }
}

static struct raw_scenario *load(const struct reader *r)
{
    struct capture capture = {.trace_count = 0};
    cyaml_config_t settings = cyaml_settings(&capture);
    cyaml_data_t *data = NULL;
    cyaml_err_t code = cyaml_load_data((const uint8_t *)r->text, r->length, &settings,
                                       &scenario_schema, &data, NULL);
    if (code != CYAML_OK) {
        complain_refused(r, &capture, code);
        return NULL;
    }
    return data;
}

static void unload(struct raw_scenario *raw)
{
    struct capture capture = {.trace_count = 0};
    cyaml_config_t settings = cyaml_settings(&capture);
    cyaml_free(&settings, &scenario_schema, raw, 0);
}

/* ---- third pass: the values --------------------------------------------------------------- */

/* Reads decimal digits or 0x and hexadecimal ones; a leading zero could mean octal, so no number. */
static bool read_digits(const char *text, uint64_t *value, const char **end)
{
    bool hexadecimal = text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
    const char *digits = hexadecimal ? text + 2 : text;
    size_t count = strspn(digits, hexadecimal ? "0123456789abcdefABCDEF" : "0123456789");
    if (count == 0 || (!hexadecimal && count > 1 && digits[0] == '0'))
        return false;
    errno = 0;
    *value = strtoull(digits, NULL, hexadecimal ? 16 : 10);
    *end = digits + count;
    return errno == 0;
}

static bool read_integer(const char *text, uint64_t *value)
{
    const char *end;
    return read_digits(text, value, &end) && *end == '\0';
}

static bool read_octets(const char *text, uint64_t *value)
{
    static const char *const suffixes[] = {"", "KiB", "MiB", "GiB", "TiB"};
    const char *end;
    if (!read_digits(text, value, &end))
        return false;
    for (unsigned i = 0; i < CYAML_ARRAY_LEN(suffixes); i++)
        if (strcmp(end, suffixes[i]) == 0)
            return !__builtin_mul_overflow(*value, UINT64_C(1) << (10 * i), value);
    return false;
}

static bool read_number(const struct reader *r, const char *key, const struct number_rule *rule,
                        const char *text, uint32_t *out)
{
    uint64_t value;
    if (text == NULL) {
        *out = rule->fallback;
        return true;
    }
    if (!read_integer(text, &value) || value < rule->least || value > rule->most) {
        complain(r, key, "%s is not a number from %u to %u, write it in decimal or as 0x...",
                 quoted(text).text, rule->least, rule->most);
        return false;
    }
    *out = (uint32_t)value;
    return true;
}

static bool read_numbers(const struct reader *r, const struct raw_scenario *raw,
                         struct sim_scenario *s)
{
    for (unsigned i = 0; i < NUMBER_COUNT; i++) {
        const struct number_rule *rule = &number_rules[i];
        uint32_t *out = (uint32_t *)((char *)s + rule->offset);
        if (!read_number(r, rule->key, rule, raw->numbers[i], out))
            return false;
    }
    return true;
}

static bool check_ring(const struct reader *r, const struct sim_scenario *s)
{
    if ((s->slots & (s->slots - 1)) != 0) {
        uint32_t below = 2;
        while (below * 2 < s->slots)
            below *= 2;
        complain(r, "slots", "%u is not a power of two, write %u or %u", s->slots, below,
                 below * 2);
        return false;
    }
    if (s->blocks > s->slots) {
        complain(r, "blocks", "%u blocks do not fit into %u slots, write at most %u or add slots",
                 s->blocks, s->slots, s->slots);
        return false;
    }
    return true;
}

static bool read_block_size(const struct reader *r, const struct raw_scenario *raw,
                            struct sim_scenario *s)
{
    const char *text = raw->block_size;
    s->block_size = DEFAULT_BLOCK_SIZE;
    if (text != NULL && (!read_octets(text, &s->block_size) || s->block_size == 0)) {
        complain(r, "block_size",
                 "%s is not a size from 1 to 2^64 - 1 octets, write a number, with KiB, MiB, "
                 "GiB or TiB if you like",
                 quoted(text).text);
        return false;
    }
    /* The Block Offset of all ones means "consumed", so that no block may reach it. */
    uint64_t end;
    uint64_t blocks = (uint64_t)s->first_block + s->blocks;
    if (__builtin_mul_overflow(blocks, s->block_size, &end) || end == UINT64_MAX) {
        complain(r, text != NULL ? "block_size" : "first_block",
                 "%ju blocks of %ju octets reach 2^64 - 1, lower block_size or first_block",
                 (uintmax_t)blocks, (uintmax_t)s->block_size);
        return false;
    }
    return true;
}

static bool read_quota(const struct reader *r, const struct raw_scenario *raw,
                       struct sim_scenario *s)
{
    uint64_t quota = s->blocks;
    if (raw->quota != NULL && strcmp(raw->quota, "none") == 0)
        quota = 0;
    else if (raw->quota != NULL && (!read_integer(raw->quota, &quota) || quota > MAX_QUOTA)) {
        complain(r, "quota", "%s is not a number from 1 to %u, write one, or none",
                 quoted(raw->quota).text, MAX_QUOTA);
        return false;
    }
    s->quota = (uint32_t)quota;
    return true;
}

static int choice(const int *chosen, int fallback)
{
    return chosen != NULL ? *chosen : fallback;
}

static void read_choices(const struct raw_scenario *raw, struct sim_scenario *s)
{
    s->kind = (enum sim_world_kind_id)raw->kind;
    s->machine.memory = (enum sim_memory)choice(raw->memory, SIM_MEMORY_TSO);
    s->machine.tear = (uint32_t)choice(raw->tear, 8);
    s->machine.dma_order = (enum sim_dma_order)choice(raw->dma_order, SIM_DMA_ANY);
    s->counters = (enum sim_counters)choice(raw->counters, SIM_COUNTERS_MASKED);
    s->free_completes =
        (enum sim_free_completes)choice(raw->free_completes, SIM_FREE_COMPLETES_DEFERRED);
    s->addr_le = choice(raw->address_le, false);
}

/* A string changes hands. */
static char *take(char **string)
{
    char *taken = *string;
    *string = NULL;
    return taken;
}

static struct string entry_path(const char *list, unsigned index, const char *key)
{
    struct string path = {.length = 0};
    path_add_key(&path, list);
    path_add_entry(&path, index);
    path_add_key(&path, key);
    return path;
}

static bool take_agents(const struct reader *r, struct raw_scenario *raw, struct sim_scenario *s)
{
    s->allocators = calloc(raw->allocators_count, sizeof *s->allocators);
    s->freers = calloc(raw->freers_count, sizeof *s->freers);
    if (s->allocators == NULL || s->freers == NULL) {
        complain(r, "allocators", NO_MEMORY);
        return false;
    }
    s->allocators_count = raw->allocators_count;
    s->freers_count = raw->freers_count;
    for (unsigned i = 0; i < s->freers_count; i++)
        s->freers[i].name = take(&raw->freers[i].name);
    for (unsigned i = 0; i < s->allocators_count; i++) {
        struct sim_allocator *allocator = &s->allocators[i];
        allocator->name = take(&raw->allocators[i].name);
        allocator->agent = (enum sim_agent_kind)choice(raw->allocators[i].agent, SIM_AGENT_CPU);
        struct string path = entry_path("allocators", i, "allocations");
        if (!read_number(r, path.text, &allocations_rule, raw->allocators[i].allocations,
                         &allocator->allocations))
            return false;
    }
    return true;
}

/* Agent `index`, counted through the allocators and then the freers: its name, and the path to it. */
static const char *agent_name(const struct sim_scenario *s, unsigned index, struct string *path)
{
    if (index < s->allocators_count) {
        *path = entry_path("allocators", index, "name");
        return s->allocators[index].name;
    }
    index -= s->allocators_count;
    *path = entry_path("freers", index, "name");
    return s->freers[index].name;
}

static bool check_names(const struct reader *r, const struct sim_scenario *s)
{
    for (unsigned i = 0; i < s->allocators_count + s->freers_count; i++) {
        struct string path;
        const char *name = agent_name(s, i, &path);
        size_t length = strlen(name);
        if (length == 0 || length > SIM_MAX_NAME || strspn(name, NAME_CHARACTERS) != length) {
            complain(r, path.text, "%s is not a name, write 1 to %u of A-Z a-z 0-9 _ -",
                     quoted(name).text, SIM_MAX_NAME);
            return false;
        }
        for (unsigned j = 0; j < i; j++) {
            struct string other;
            if (strcmp(agent_name(s, j, &other), name) != 0)
                continue;
            complain(r, path.text, "'%s' is also %s, choose another name", name, other.text);
            return false;
        }
    }
    return true;
}

static void take_must_reach(struct raw_scenario *raw, struct sim_scenario *s)
{
    s->must_reach = raw->must_reach;
    s->must_reach_count = raw->must_reach_count;
    raw->must_reach = NULL;
    raw->must_reach_count = 0;
}

static bool build(const struct reader *r, struct raw_scenario *raw, struct sim_scenario *s)
{
    s->title = take(&raw->title);
    read_choices(raw, s);
    take_must_reach(raw, s);
    return read_numbers(r, raw, s) && check_ring(r, s) && read_block_size(r, raw, s) &&
           read_quota(r, raw, s) && take_agents(r, raw, s) && check_names(r, s);
}

struct sim_scenario *sim_scenario_parse(const char *name, const char *text, size_t length,
                                        char *error, size_t size)
{
    static const char byte_order_mark[] = "\xef\xbb\xbf";
    struct reader r = {name, text, length, error, size};
    if (length >= 3 && memcmp(text, byte_order_mark, 3) == 0) {
        r.text += 3;
        r.length -= 3;
    }
    if (r.length == 0 || r.length > TEXT_LIMIT) {
        complain_at(&r, top_of_text, "",
                    r.length == 0 ? "is empty, start with 'kind: ring'"
                                  : "is larger than 1 MiB, shorten it");
        return NULL;
    }
    struct raw_scenario *raw = check_yaml(&r) ? load(&r) : NULL;
    if (raw == NULL)
        return NULL;
    struct sim_scenario *s = calloc(1, sizeof *s);
    if (s == NULL) {
        complain_at(&r, top_of_text, "", NO_MEMORY);
    } else if (!build(&r, raw, s)) {
        sim_scenario_free(s);
        s = NULL;
    }
    unload(raw);
    return s;
}

void sim_scenario_free(struct sim_scenario *scenario)
{
    if (scenario == NULL)
        return;
    for (unsigned i = 0; i < scenario->allocators_count; i++)
        free(scenario->allocators[i].name);
    for (unsigned i = 0; i < scenario->freers_count; i++)
        free(scenario->freers[i].name);
    for (unsigned i = 0; i < scenario->must_reach_count; i++)
        free(scenario->must_reach[i]);
    free(scenario->allocators);
    free(scenario->freers);
    free(scenario->must_reach);
    free(scenario->title);
    free(scenario);
}

/* ---- reading a file ----------------------------------------------------------------------- */

static int complain_file(const char *path, char *error, size_t size, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

static int complain_file(const char *path, char *error, size_t size, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    write_error(error, size, path, ": ", format, args);
    va_end(args);
    return -1;
}

/* What a file that is not a regular one is called, or NULL. */
static const char *special_kind(mode_t mode)
{
    switch (mode & S_IFMT) {
    case S_IFREG:
        return NULL;
    case S_IFDIR:
        return "directory";
    case S_IFIFO:
        return "pipe";
    case S_IFSOCK:
        return "socket";
    default:
        return "device";
    }
}

/* Reads to the end, or past `limit`. Returns NULL with errno set when it cannot. */
static char *read_to_end(int fd, size_t expected, size_t limit, size_t *length)
{
    size_t capacity = expected + 2; /* one to see the end of the file, one for the NUL */
    char *text = malloc(capacity);
    *length = 0;
    while (text != NULL) {
        ssize_t n = read(fd, text + *length, capacity - 1 - *length);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            break;
        *length += (size_t)n;
        text[*length] = '\0';
        if (n == 0 || *length > limit)
            return text;
        if (*length + 1 < capacity)
            continue;
        char *larger = realloc(text, capacity *= 2);
        if (larger == NULL)
            break;
        text = larger;
    }
    free(text);
    return NULL;
}

int sim_read_file(const char *path, size_t limit, char **text, size_t *length, char *error,
                  size_t size)
{
    /* Only a regular file is opened: opening a pipe waits, opening a device can do anything. */
    struct stat status;
    if (stat(path, &status) != 0)
        return complain_file(path, error, size, "cannot be read: %s", strerror(errno));
    if (special_kind(status.st_mode) != NULL)
        return complain_file(path, error, size, "is a %s, name a regular file",
                             special_kind(status.st_mode));
    if ((uintmax_t)status.st_size > limit)
        return complain_file(path, error, size, "is larger than %zu octets", limit);

    /* The name may lead elsewhere by now; O_NONBLOCK then keeps a pipe from waiting. */
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    size_t read_length = 0;
    char *read_text = fd >= 0 ? read_to_end(fd, (size_t)status.st_size, limit, &read_length) : NULL;
    int read_error = errno;
    if (fd >= 0)
        close(fd);
    if (read_text == NULL)
        return complain_file(path, error, size, "cannot be read: %s", strerror(read_error));
    if (read_length == 0 || read_length > limit) {
        free(read_text);
        return read_length == 0
                   ? complain_file(path, error, size, "is empty")
                   : complain_file(path, error, size, "is larger than %zu octets", limit);
    }
    *text = read_text;
    *length = read_length;
    return 0;
}
