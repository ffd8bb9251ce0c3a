/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/trace.h"

#include <cyaml/cyaml.h>

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#define FORMAT 1
#define FIRST_LINE "kbtp_trace: 1\n"
#define CHECKSUM_KEY "checksum: \"0x"
/* checksum: "0x0123456789abcdef" */
#define CHECKSUM_LINE (sizeof CHECKSUM_KEY - 1 + 16 + 2)

/* ---- steps in words ------------------------------------------------------------------------- */

static const char *const step_words[] = {
    [SIM_STEP_CHOOSE] = "choose", [SIM_STEP_ACCESS] = "access", [SIM_STEP_PIECE] = "piece",
    [SIM_STEP_DRAIN] = "drain",   [SIM_STEP_FAULT] = "dies",
};

static uint32_t step_number(const struct sim_step *step)
{
    switch (step->kind) {
    case SIM_STEP_CHOOSE:
        return step->arg;
    case SIM_STEP_PIECE:
        return step->piece;
    default:
        return step->queue;
    }
}

void sim_step_print(const struct sim_world *w, const struct sim_step *step, char *out, size_t size)
{
    snprintf(out, size, "%s %s %u", w->agents[step->agent].name, step_words[step->kind],
             step_number(step));
}

/* Has the agent steps of this kind? Only the environment kills, and it does nothing else. */
static bool has_kind(const struct sim_agent *agent, unsigned kind)
{
    return (kind == SIM_STEP_FAULT) == (agent->cpu == NULL);
}

/* The step of this agent that `word` and `number` tell. */
static struct sim_step step_of(const struct sim_agent *agent, const char *word, unsigned number)
{
    struct sim_step step = {.agent = (uint8_t)agent->index};
    for (unsigned kind = SIM_STEP_CHOOSE; kind <= SIM_STEP_FAULT; kind++)
        if (has_kind(agent, kind) && strcmp(word, step_words[kind]) == 0)
            step.kind = (uint8_t)kind;
    if (step.kind == SIM_STEP_CHOOSE)
        step.arg = number;
    else if (step.kind == SIM_STEP_PIECE)
        step.piece = (uint8_t)number;
    else
        step.queue = (uint8_t)number;
    return step;
}

bool sim_step_parse(const struct sim_world *w, const char *text, struct sim_step *step)
{
    char name[SIM_MAX_NAME + 2], word[16], printed[SIM_MAX_NAME + 32];
    const char *digits = strrchr(text, ' ');
    if (sscanf(text, "%16s %15s", name, word) != 2 || !digits)
        return false;
    unsigned number = (unsigned)strtoul(digits, NULL, 10);
    for (uint32_t i = 0; i < w->agents_count; i++) {
        if (strcmp(w->agents[i].name, name) != 0)
            continue;
        *step = step_of(&w->agents[i], word, number);
        if (step->kind == 0)
            continue;
        /* sscanf and strtoul are lenient with spaces and numbers. */
        sim_step_print(w, step, printed, sizeof printed);
        return strcmp(printed, text) == 0;
    }
    return false;
}

/* ---- writing -------------------------------------------------------------------------------- */

static const char *const memories[] = {"sc", "tso", "relaxed"};
static const char *const orders[] = {"any", "ascending", "descending"};

/* The file's text. (open_memstream() does not tell when it has found no memory.) */
struct buffer {
    char *text;
    size_t length, size;
    bool failed; /* no memory: the text is of no use */
};

static void put(struct buffer *buffer, const char *octets, size_t count)
{
    size_t size = buffer->size ? buffer->size : 4096;
    while (size - buffer->length < count)
        size *= 2;
    if (size != buffer->size) {
        char *grown = buffer->failed ? NULL : realloc(buffer->text, size);
        if (!grown) {
            buffer->failed = true;
            return;
        }
        buffer->text = grown;
        buffer->size = size;
    }
    memcpy(buffer->text + buffer->length, octets, count);
    buffer->length += count;
}

static void put_text(struct buffer *out, const char *text)
{
    put(out, text, strlen(text));
}

/* A short text. */
static void put_format(struct buffer *out, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void put_format(struct buffer *out, const char *format, ...)
{
    char text[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    put_text(out, text);
}

/* The octets of the character that `text` starts with, and its number; 0 if it is not UTF-8. */
static size_t character(const char *text, uint32_t *code)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    unsigned char first = (unsigned char)text[0];
    size_t count = first < 0x80 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
    if ((first >= 0x80 && first < 0xc2) || first > 0xf4)
        return 0;
    *code = count == 1 ? first : first & (0x7fu >> count);
    for (size_t i = 1; i < count; i++) {
        unsigned char next = (unsigned char)text[i]; /* a final NUL ends this */
        if ((next & 0xc0) != 0x80)
            return 0;
        *code = *code << 6 | (next & 0x3f);
    }
    bool surrogate = *code >= 0xd800 && *code <= 0xdfff;
    return *code < least[count] || *code > 0x10ffff || surrogate ? 0 : count;
}

/* YAML has these only as escapes: NEL, LS and PS would break the line, others are not allowed. */
static bool needs_escape(uint32_t code)
{
    return code < 0x20 || (code >= 0x7f && code < 0xa0) || code == 0x2028 || code == 0x2029 ||
           code == 0xfeff || code == 0xfffe || code == 0xffff;
}

/* A double-quoted string in one line. What is not UTF-8 (in a file name) is replaced. */
static void write_quoted(struct buffer *out, const char *text)
{
    put_text(out, "\"");
    for (size_t count; *text; text += count) {
        uint32_t code;
        count = character(text, &code);
        if (count == 0) {
            put_text(out, "\xef\xbf\xbd"); /* U+FFFD */
            count = 1;
        } else if (needs_escape(code)) {
            put_format(out, code < 0x100 ? "\\x%02" PRIX32 : "\\u%04" PRIX32, code);
        } else {
            if (code == '"' || code == '\\')
                put_text(out, "\\");
            put(out, text, count);
        }
    }
    put_text(out, "\"\n");
}

/* A literal block that keeps every line as it is. */
static void write_literal(struct buffer *out, const char *text)
{
    put_text(out, text[0] && text[strlen(text) - 1] == '\n' ? "|2+\n" : "|2-\n");
    while (*text) {
        size_t line = strcspn(text, "\n");
        put_text(out, "  ");
        put(out, text, line);
        put_text(out, "\n");
        text += line + (text[line] == '\n');
    }
}

enum form { FORM_LITERAL, FORM_QUOTED, FORM_NONE };

/* In which form YAML holds the whole text, the readable one if it can. */
static enum form form_of(const char *text)
{
    enum form form = FORM_LITERAL;
    for (size_t count; *text; text += count) {
        uint32_t code;
        count = character(text, &code);
        if (count == 0)
            return FORM_NONE;
        if (needs_escape(code) && code != '\n' && code != '\t')
            form = FORM_QUOTED;
    }
    return form;
}

static void write_string(struct buffer *out, const char *key, const char *text)
{
    put_format(out, "%s: ", key);
    write_quoted(out, text);
}

static void write_steps(struct buffer *out, const struct sim_trace *trace)
{
    put_text(out, trace->steps_count != 0 ? "steps:\n" : "steps: []\n");
    for (unsigned i = 0; i < trace->steps_count; i++) {
        put_text(out, "- ");
        if (trace->steps[i][0] == '-') { /* an agent may have this name, and YAML lists begin so */
            write_quoted(out, trace->steps[i]);
            continue;
        }
        put_text(out, trace->steps[i]);
        put_text(out, "\n");
    }
}

static void write_body(struct buffer *out, const struct sim_trace *trace, enum form form)
{
    put_text(out, FIRST_LINE);
    write_string(out, "version", trace->version);
    write_string(out, "mutant", trace->mutant);
    write_string(out, "property", trace->property);
    write_string(out, "what", trace->what);
    put_format(out, "memory: %s\nstore_buffer: %" PRIu32 "\ntear: %" PRIu32 "\ndma_order: %s\n",
               memories[trace->machine.memory], trace->machine.store_buffer, trace->machine.tear,
               orders[trace->machine.dma_order]);
    put_format(out, "private_steps: %s\nmerged_drains: %s\n",
               trace->stepping.private_steps ? "true" : "false",
               trace->stepping.merged_drains ? "true" : "false");
    put_format(out, "seed: %" PRIu64 "\n", trace->seed);
    put_format(out, "digest: \"0x%016" PRIx64 "\"\n", trace->digest);
    write_string(out, "scenario_name", trace->scenario_name);
    put_text(out, "scenario: ");
    if (form == FORM_LITERAL)
        write_literal(out, trace->scenario_text);
    else
        write_quoted(out, trace->scenario_text);
    write_steps(out, trace);
}

static void print_checksum(char line[CHECKSUM_LINE + 1], uint64_t sum)
{
    snprintf(line, CHECKSUM_LINE + 1, CHECKSUM_KEY "%016" PRIx64 "\"\n", sum);
}

int sim_trace_write(FILE *out, const struct sim_trace *trace)
{
    enum form form = form_of(trace->scenario_text);
    if (form == FORM_NONE)
        return -EILSEQ; /* no scenario either */
    struct buffer body = {0};
    char checksum[CHECKSUM_LINE + 1];
    write_body(&body, trace, form);
    if (!body.failed) {
        print_checksum(checksum, XXH64(body.text, body.length, 0));
        fwrite(body.text, 1, body.length, out);
        fputs(checksum, out);
    }
    free(body.text);
    if (body.failed)
        return -ENOMEM;
    return fflush(out) != 0 || ferror(out) ? -EIO : 0;
}

/* ---- reading -------------------------------------------------------------------------------- */

/* The schema's view; `raw` so that numbers are checked here. */
struct raw_trace {
    uint32_t format;
    uint64_t seed;
    char *version, *mutant, *property, *what, *scenario_name, *scenario, *digest, *checksum;
    int memory, dma_order;
    uint32_t store_buffer, tear;
    bool private_steps, merged_drains;
    char **steps;
    unsigned steps_count;
};

static const cyaml_strval_t memory_values[] = {{"sc", 0}, {"tso", 1}, {"relaxed", 2}};
static const cyaml_strval_t order_values[] = {{"any", 0}, {"ascending", 1}, {"descending", 2}};
static const cyaml_schema_value_t step_value = {
    CYAML_VALUE_STRING(CYAML_FLAG_POINTER, char, 1, 64)};

#define STRING(member) \
    CYAML_FIELD_STRING_PTR(#member, CYAML_FLAG_POINTER, struct raw_trace, member, 0, \
                           CYAML_UNLIMITED)

static const cyaml_schema_field_t trace_fields[] = {
    CYAML_FIELD_UINT("kbtp_trace", CYAML_FLAG_DEFAULT, struct raw_trace, format),
    STRING(version),
    STRING(mutant),
    STRING(property),
    STRING(what),
    CYAML_FIELD_ENUM("memory", CYAML_FLAG_STRICT, struct raw_trace, memory, memory_values, 3),
    CYAML_FIELD_UINT("store_buffer", CYAML_FLAG_DEFAULT, struct raw_trace, store_buffer),
    CYAML_FIELD_UINT("tear", CYAML_FLAG_DEFAULT, struct raw_trace, tear),
    CYAML_FIELD_ENUM("dma_order", CYAML_FLAG_STRICT, struct raw_trace, dma_order, order_values, 3),
    CYAML_FIELD_BOOL("private_steps", CYAML_FLAG_DEFAULT, struct raw_trace, private_steps),
    CYAML_FIELD_BOOL("merged_drains", CYAML_FLAG_DEFAULT, struct raw_trace, merged_drains),
    CYAML_FIELD_UINT("seed", CYAML_FLAG_DEFAULT, struct raw_trace, seed),
    STRING(digest),
    STRING(scenario_name),
    STRING(scenario),
    CYAML_FIELD_SEQUENCE("steps", CYAML_FLAG_POINTER, struct raw_trace, steps, &step_value, 0,
                         CYAML_UNLIMITED),
    STRING(checksum),
    CYAML_FIELD_END,
};
static const cyaml_schema_value_t trace_schema = {
    CYAML_VALUE_MAPPING(CYAML_FLAG_POINTER, struct raw_trace, trace_fields)};

static const cyaml_config_t reading = {
    .log_level = CYAML_LOG_ERROR + 1, /* quiet: the checksum has spoken before */
    .log_fn = NULL,
    .mem_fn = cyaml_mem,
    .flags = CYAML_CFG_NO_ALIAS,
};

/* Whole and unchanged? Else says what is wrong. */
static bool check_sum(const char *name, const char *text, size_t length, char *error, size_t size)
{
    if (length < sizeof FIRST_LINE - 1 || memcmp(text, FIRST_LINE, sizeof FIRST_LINE - 1) != 0) {
        snprintf(error, size,
                 "%s:1:1: this is no trace: its first line must be `kbtp_trace: %d`, as "
                 "`kbtp explore --trace` writes it",
                 name, FORMAT);
        return false;
    }
    size_t body = length - CHECKSUM_LINE, key = sizeof CHECKSUM_KEY - 1;
    if (length < sizeof FIRST_LINE - 1 + CHECKSUM_LINE || text[body - 1] != '\n' ||
        memcmp(text + body, CHECKSUM_KEY, key) != 0 || memcmp(text + length - 2, "\"\n", 2) != 0) {
        snprintf(error, size,
                 "%s: the trace is cut off: its last line must be `checksum`; make it again", name);
        return false;
    }
    char expected[CHECKSUM_LINE + 1];
    print_checksum(expected, XXH64(text, body, 0));
    if (memcmp(text + body, expected, CHECKSUM_LINE) != 0) {
        snprintf(error, size,
                 "%s: the trace was changed after it was written (checksum); make it again", name);
        return false;
    }
    return true;
}

static bool parse_digest(const char *text, uint64_t *digest)
{
    char printed[sizeof "0x" + 16];
    *digest = strtoull(text, NULL, 16);
    snprintf(printed, sizeof printed, "0x%016" PRIx64, *digest);
    return strcmp(printed, text) == 0; /* strtoull is lenient */
}

static bool is_legal(const struct raw_trace *raw, uint64_t *digest)
{
    return raw->format == FORMAT && (raw->tear == 4 || raw->tear == 8) && raw->store_buffer >= 1 &&
           raw->store_buffer <= 16 && parse_digest(raw->digest, digest);
}

/* Takes the strings over from `raw`. */
static struct sim_trace *take_over(struct raw_trace *raw, uint64_t digest)
{
    struct sim_trace *trace = calloc(1, sizeof *trace);
    if (!trace)
        return NULL;
    *trace = (struct sim_trace){
        .version = raw->version,
        .mutant = raw->mutant,
        .machine = {.memory = (enum sim_memory)raw->memory,
                    .store_buffer = raw->store_buffer,
                    .tear = raw->tear,
                    .dma_order = (enum sim_dma_order)raw->dma_order},
        .stepping = {.private_steps = raw->private_steps, .merged_drains = raw->merged_drains},
        .property = raw->property,
        .what = raw->what,
        .scenario_name = raw->scenario_name,
        .scenario_text = raw->scenario,
        .seed = raw->seed,
        .digest = digest,
        .steps = raw->steps,
        .steps_count = raw->steps_count,
    };
    free(raw->digest);
    free(raw->checksum);
    free(raw);
    return trace;
}

struct sim_trace *sim_trace_parse(const char *name, const char *text, size_t length, char *error,
                                  size_t size)
{
    if (!check_sum(name, text, length, error, size))
        return NULL;
    struct raw_trace *raw = NULL;
    uint64_t digest = 0;
    cyaml_err_t failed = cyaml_load_data((const uint8_t *)text, length, &reading, &trace_schema,
                                         (cyaml_data_t **)&raw, NULL);
    bool legal = failed == CYAML_OK && is_legal(raw, &digest);
    struct sim_trace *trace = legal ? take_over(raw, digest) : NULL;
    if (!trace) {
        snprintf(error, size, "%s: not a trace that this program can read: %s", name,
                 failed  ? cyaml_strerror(failed)
                 : legal ? "no memory for it"
                         : "a value is out of its range");
        if (raw)
            cyaml_free(&reading, &trace_schema, raw, 0);
    }
    return trace;
}

void sim_trace_free(struct sim_trace *trace)
{
    if (!trace)
        return;
    free(trace->version);
    free(trace->mutant);
    free(trace->property);
    free(trace->what);
    free(trace->scenario_name);
    free(trace->scenario_text);
    for (unsigned i = 0; i < trace->steps_count; i++)
        free(trace->steps[i]);
    free(trace->steps);
    free(trace);
}
