/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/trace.h"

#include <cyaml/cyaml.h>

#include <errno.h>
#include <inttypes.h>
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

bool sim_step_parse(const struct sim_world *w, const char *text, struct sim_step *step)
{
    char name[SIM_MAX_NAME + 2], word[16];
    unsigned number;
    int end = 0;
    if (sscanf(text, "%16s %15s %u%n", name, word, &number, &end) != 3 || text[end] != 0)
        return false;
    *step = (struct sim_step){0};
    for (uint32_t i = 0; i < w->agents_count; i++) {
        if (strcmp(w->agents[i].name, name) != 0)
            continue;
        step->agent = (uint8_t)i;
        for (uint8_t kind = SIM_STEP_CHOOSE; kind <= SIM_STEP_FAULT; kind++)
            if (strcmp(word, step_words[kind]) == 0)
                step->kind = kind;
    }
    if (step->kind == SIM_STEP_CHOOSE)
        step->arg = number;
    else if (step->kind == SIM_STEP_PIECE)
        step->piece = (uint8_t)number;
    else
        step->queue = (uint8_t)number;
    return step->kind != 0 && step_number(step) == number;
}

/* ---- writing -------------------------------------------------------------------------------- */

static const char *const memories[] = {"sc", "tso", "relaxed"};
static const char *const orders[] = {"any", "ascending", "descending"};

/* A double-quoted YAML string on one line. */
static void write_quoted(FILE *out, const char *key, const char *text)
{
    fprintf(out, "%s: \"", key);
    for (; *text; text++) {
        if (*text == '"' || *text == '\\')
            fputc('\\', out);
        if ((unsigned char)*text >= 0x20)
            fputc(*text, out);
    }
    fputs("\"\n", out);
}

/* A literal block that keeps every line as it is. */
static void write_literal(FILE *out, const char *key, const char *text)
{
    fprintf(out, "%s: |2%s\n", key, text[0] && text[strlen(text) - 1] == '\n' ? "+" : "-");
    while (*text) {
        size_t line = strcspn(text, "\n");
        fprintf(out, "  %.*s\n", (int)line, text);
        text += line + (text[line] == '\n');
    }
}

static void write_body(FILE *out, const struct sim_trace *trace)
{
    fputs(FIRST_LINE, out);
    write_quoted(out, "version", trace->version);
    write_quoted(out, "mutant", trace->mutant);
    write_quoted(out, "property", trace->property);
    write_quoted(out, "what", trace->what);
    fprintf(out, "memory: %s\nstore_buffer: %" PRIu32 "\ntear: %" PRIu32 "\ndma_order: %s\n",
            memories[trace->machine.memory], trace->machine.store_buffer, trace->machine.tear,
            orders[trace->machine.dma_order]);
    fprintf(out, "private_steps: %s\nmerged_drains: %s\n",
            trace->stepping.private_steps ? "true" : "false",
            trace->stepping.merged_drains ? "true" : "false");
    fprintf(out, "digest: \"0x%016" PRIx64 "\"\n", trace->digest);
    write_quoted(out, "scenario_name", trace->scenario_name);
    write_literal(out, "scenario", trace->scenario_text);
    fputs("steps:\n", out);
    for (unsigned i = 0; i < trace->steps_count; i++)
        fprintf(out, "- %s\n", trace->steps[i]);
}

int sim_trace_write(FILE *out, const struct sim_trace *trace)
{
    char *text = NULL;
    size_t length = 0;
    FILE *body = open_memstream(&text, &length);
    if (!body)
        return -errno;
    write_body(body, trace);
    if (fclose(body) != 0) {
        free(text);
        return -ENOMEM;
    }
    fwrite(text, 1, length, out);
    fprintf(out, CHECKSUM_KEY "%016" PRIx64 "\"\n", (uint64_t)XXH64(text, length, 0));
    free(text);
    return fflush(out) != 0 || ferror(out) ? -EIO : 0;
}

/* ---- reading -------------------------------------------------------------------------------- */

/* The schema's view; `raw` so that numbers are checked here. */
struct raw_trace {
    uint32_t format;
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
    size_t body = length - CHECKSUM_LINE;
    uint64_t sum;
    if (length < CHECKSUM_LINE || text[body - 1] != '\n' ||
        sscanf(text + body, CHECKSUM_KEY "%16" SCNx64 "\"\n", &sum) != 1) {
        snprintf(error, size,
                 "%s: the trace is cut off: its last line must be `checksum`; make it again", name);
        return false;
    }
    if (sum != XXH64(text, body, 0)) {
        snprintf(error, size,
                 "%s: the trace was changed after it was written (checksum); make it again", name);
        return false;
    }
    return true;
}

static bool parse_digest(const char *text, uint64_t *digest)
{
    int end = 0;
    return sscanf(text, "0x%16" SCNx64 "%n", digest, &end) == 1 && text[end] == 0;
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
    struct sim_trace *trace = NULL;
    if (failed == CYAML_OK && is_legal(raw, &digest))
        trace = take_over(raw, digest);
    if (!trace) {
        snprintf(error, size, "%s: not a trace that this program can read: %s", name,
                 failed == CYAML_OK ? "a value is out of its range" : cyaml_strerror(failed));
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
