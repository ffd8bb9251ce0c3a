/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/trace.h"

#include <cyaml/cyaml.h>
#include <yaml.h>

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "sim/utf8.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#define FORMAT 1
#define FIRST_LINE "kbtp_trace: 1\n"
#define CHECKSUM_KEY "checksum: \"0x"
/* checksum: "0x0123456789abcdef" */
#define CHECKSUM_LINE (sizeof CHECKSUM_KEY - 1 + 16 + 2)

/* ---- steps in words ---------------------------------------------------------------------- */

/* Which numbers of a step its words tell, one after the other. */
enum step_number { END_OF_NUMBERS, QUEUE, PIECE, ARG };

static const struct {
    const char *word;
    uint8_t numbers[3]; /* enum step_number */
} step_words[SIM_STEP_KINDS] = {
    [SIM_STEP_CHOOSE] = {"choose", {ARG}},
    [SIM_STEP_ACCESS] = {"access", {QUEUE}},
    [SIM_STEP_PIECE] = {"piece", {PIECE}},
    [SIM_STEP_DRAIN] = {"drain", {QUEUE}},
    [SIM_STEP_FAULT] = {"dies", {QUEUE}},
    [SIM_STEP_CUT] = {"cuts", {ARG}},
    [SIM_STEP_EXPIRE] = {"expire", {QUEUE}},
    [SIM_STEP_FETCH] = {"fetch", {QUEUE}},
    [SIM_STEP_GATHER] = {"gather", {QUEUE, ARG}},
    [SIM_STEP_EMIT] = {"emit", {QUEUE}},
    [SIM_STEP_PLACE] = {"place", {QUEUE, PIECE, ARG}},
    [SIM_STEP_DELIVER] = {"deliver", {QUEUE}},
    [SIM_STEP_READ] = {"read", {QUEUE, PIECE, ARG}},
    [SIM_STEP_ATOMIC] = {"atomic", {QUEUE, PIECE}},
    [SIM_STEP_REPLY] = {"reply", {QUEUE}},
    [SIM_STEP_COMPLETE] = {"complete", {QUEUE}},
    [SIM_STEP_CONNECT] = {"connect", {QUEUE}},
    [SIM_STEP_NOTICE] = {"notice", {QUEUE}},
    [SIM_STEP_FLUSH] = {"flush", {QUEUE}},
    [SIM_STEP_SNAPSHOT] = {"snapshot", {QUEUE}},
    [SIM_STEP_GIVE_UP] = {"give-up", {QUEUE}},
    [SIM_STEP_SILENCE] = {"silences", {QUEUE}},
};

void sim_step_print(const struct sim_world *w, const struct sim_step *step, char *out, size_t size)
{
    size_t used = (size_t)snprintf(out, size, "%s %s", w->agents[step->agent].name,
                                   step_words[step->kind].word);
    const uint8_t *numbers = step_words[step->kind].numbers;
    for (unsigned i = 0; i < 3 && numbers[i] != END_OF_NUMBERS && used < size; i++) {
        uint32_t number = numbers[i] == QUEUE   ? step->queue
                          : numbers[i] == PIECE ? step->piece
                                                : step->arg;
        used += (size_t)snprintf(out + used, size - used, " %u", number);
    }
}

/* Has the agent steps of this kind? Only the environment kills and cuts, and does nothing else. */
static bool has_kind(const struct sim_agent *agent, unsigned kind)
{
    if (agent->rnic)
        return kind >= SIM_STEP_FETCH && kind <= SIM_STEP_GIVE_UP;
    if (!agent->cpu)
        return kind == SIM_STEP_FAULT || kind == SIM_STEP_CUT || kind == SIM_STEP_SILENCE;
    return kind <= SIM_STEP_DRAIN || kind == SIM_STEP_EXPIRE;
}

/* The step of this agent that `word` and the numbers tell. */
static struct sim_step step_of(const struct sim_agent *agent, const char *word,
                               const unsigned numbers[3])
{
    struct sim_step step = {.agent = (uint8_t)agent->index};
    for (unsigned kind = SIM_STEP_CHOOSE; kind < SIM_STEP_KINDS; kind++)
        if (has_kind(agent, kind) && strcmp(word, step_words[kind].word) == 0)
            step.kind = (uint8_t)kind;
    for (unsigned i = 0; i < 3; i++) {
        unsigned which = step_words[step.kind].numbers[i];
        if (which == QUEUE)
            step.queue = (uint8_t)numbers[i];
        else if (which == PIECE)
            step.piece = (uint8_t)numbers[i];
        else if (which == ARG)
            step.arg = numbers[i];
    }
    return step;
}

bool sim_step_parse(const struct sim_world *w, const char *text, struct sim_step *step)
{
    char name[SIM_MAX_NAME + 2], word[16], printed[SIM_MAX_NAME + 48];
    unsigned numbers[3] = {0};
    int words = 0;
    if (sscanf(text, "%16s %15s%n", name, word, &words) != 2)
        return false;
    char *rest = (char *)(uintptr_t)text + words;
    for (int i = 0; i < 3; i++)
        numbers[i] = (unsigned)strtoul(rest, &rest, 10);
    for (uint32_t i = 0; i < w->agents_count; i++) {
        if (strcmp(w->agents[i].name, name) != 0)
            continue;
        *step = step_of(&w->agents[i], word, numbers);
        if (step->kind == 0)
            continue;
        /* sscanf and strtoul are lenient with spaces and numbers. */
        sim_step_print(w, step, printed, sizeof printed);
        return strcmp(printed, text) == 0;
    }
    return false;
}

/* ---- writing ----------------------------------------------------------------------------- */

static const char *const memories[] = {"sc", "tso", "relaxed"};
static const char *const orders[] = {"any", "ascending", "descending"};
static const char *const orderings[] = {"rdmap", "infiniband", "strong"};
static const char *const words[] = {"false", "true"};

/* Where the emitter's octets go. */
struct sink {
    FILE *file;
    XXH64_state_t *sum;
};

static int write_octets(void *context, unsigned char *octets, size_t count)
{
    struct sink *sink = context;
    XXH64_update(sink->sum, octets, count);
    return fwrite(octets, 1, count, sink->file) == count;
}

/* The emitter frees an event, also one that it does not take. */
static bool emit(yaml_emitter_t *emitter, yaml_event_t *event, int made)
{
    return made && yaml_emitter_emit(emitter, event);
}

static bool emit_scalar(yaml_emitter_t *emitter, const char *text, yaml_scalar_style_t style)
{
    yaml_event_t event;
    return emit(emitter, &event,
                yaml_scalar_event_initialize(&event, NULL, NULL, (const yaml_char_t *)text,
                                             (int)strlen(text), 1, 1, style));
}

static bool emit_pair(yaml_emitter_t *emitter, const char *key, const char *text,
                      yaml_scalar_style_t style)
{
    return emit_scalar(emitter, key, YAML_PLAIN_SCALAR_STYLE) && emit_scalar(emitter, text, style);
}

static bool emit_string(yaml_emitter_t *emitter, const char *key, const char *text)
{
    return emit_pair(emitter, key, text, YAML_DOUBLE_QUOTED_SCALAR_STYLE);
}

static bool emit_word(yaml_emitter_t *emitter, const char *key, const char *text)
{
    return emit_pair(emitter, key, text, YAML_PLAIN_SCALAR_STYLE);
}

static bool emit_number(yaml_emitter_t *emitter, const char *key, uint64_t number)
{
    char text[24];
    snprintf(text, sizeof text, "%" PRIu64, number);
    return emit_word(emitter, key, text);
}

/*
 * A literal block reads well, but every line break in it is read as a line feed, and one that ends
 * in empty lines makes libyaml end the document.
 */
static yaml_scalar_style_t style_of(const char *text)
{
    size_t length = strlen(text);
    bool literal = length > 1 && text[length - 2] != '\n';
    unsigned octets;
    for (const char *c = text; *c; c += octets) {
        uint32_t code = sim_utf8(c, SIZE_MAX, &octets);
        literal = literal && (code == '\n' || !sim_utf8_is_control(code));
    }
    return literal ? YAML_LITERAL_SCALAR_STYLE : YAML_DOUBLE_QUOTED_SCALAR_STYLE;
}

/* What is no character, or would steer a terminal, becomes U+FFFD. NULL: there is no memory. */
static char *made_readable(const char *text)
{
    char *copy = malloc(3 * strlen(text) + 1), *out = copy;
    unsigned octets;
    for (; copy && *text; text += octets) {
        bool well = !sim_utf8_is_control(sim_utf8(text, SIZE_MAX, &octets));
        memcpy(out, well ? text : "\xef\xbf\xbd", well ? octets : 3);
        out += well ? octets : 3;
    }
    if (copy)
        *out = 0;
    return copy;
}

static bool is_utf8(const char *text)
{
    unsigned octets;
    for (; *text; text += octets)
        if (sim_utf8(text, SIZE_MAX, &octets) == SIM_NO_CHARACTER)
            return false;
    return true;
}

static bool emit_steps(yaml_emitter_t *emitter, const struct sim_trace *trace)
{
    yaml_event_t event;
    bool well = emit_scalar(emitter, "steps", YAML_PLAIN_SCALAR_STYLE) &&
                emit(emitter, &event,
                     yaml_sequence_start_event_initialize(&event, NULL, NULL, 1,
                                                          YAML_BLOCK_SEQUENCE_STYLE));
    for (unsigned i = 0; well && i < trace->steps_count; i++)
        well = emit_scalar(emitter, trace->steps[i], YAML_PLAIN_SCALAR_STYLE);
    return well && emit(emitter, &event, yaml_sequence_end_event_initialize(&event));
}

static bool emit_fields(yaml_emitter_t *emitter, const struct sim_trace *trace,
                        const char *scenario_name)
{
    char digest[24];
    snprintf(digest, sizeof digest, "0x%016" PRIx64, trace->digest);
    return emit_number(emitter, "kbtp_trace", FORMAT) &&
           emit_string(emitter, "version", trace->version) &&
           emit_string(emitter, "mutant", trace->mutant) &&
           emit_string(emitter, "property", trace->property) &&
           emit_string(emitter, "what", trace->what) &&
           emit_word(emitter, "memory", memories[trace->machine.memory]) &&
           emit_number(emitter, "store_buffer", trace->machine.store_buffer) &&
           emit_number(emitter, "tear", trace->machine.tear) &&
           emit_word(emitter, "dma_order", orders[trace->machine.dma_order]) &&
           emit_word(emitter, "ordering", orderings[trace->machine.ordering]) &&
           emit_word(emitter, "private_steps", words[trace->stepping.private_steps]) &&
           emit_word(emitter, "merged_drains", words[trace->stepping.merged_drains]) &&
           emit_number(emitter, "seed", trace->seed) && emit_string(emitter, "digest", digest) &&
           emit_string(emitter, "scenario_name", scenario_name) &&
           emit_pair(emitter, "scenario", trace->scenario_text, style_of(trace->scenario_text)) &&
           emit_steps(emitter, trace);
}

static bool emit_document(yaml_emitter_t *emitter, const struct sim_trace *trace)
{
    yaml_event_t event;
    char *name = made_readable(trace->scenario_name); /* a file name may be anything */
    bool well =
        name &&
        emit(emitter, &event, yaml_stream_start_event_initialize(&event, YAML_UTF8_ENCODING)) &&
        emit(emitter, &event, yaml_document_start_event_initialize(&event, NULL, NULL, NULL, 1)) &&
        emit(
            emitter, &event,
            yaml_mapping_start_event_initialize(&event, NULL, NULL, 1, YAML_BLOCK_MAPPING_STYLE)) &&
        emit_fields(emitter, trace, name) &&
        emit(emitter, &event, yaml_mapping_end_event_initialize(&event)) &&
        emit(emitter, &event, yaml_document_end_event_initialize(&event, 1)) &&
        emit(emitter, &event, yaml_stream_end_event_initialize(&event));
    free(name);
    return well;
}

static void print_checksum(char line[CHECKSUM_LINE + 1], uint64_t sum)
{
    snprintf(line, CHECKSUM_LINE + 1, CHECKSUM_KEY "%016" PRIx64 "\"\n", sum);
}

int sim_trace_write(FILE *out, const struct sim_trace *trace)
{
    if (!is_utf8(trace->scenario_text))
        return -EILSEQ; /* no scenario either */
    yaml_emitter_t emitter;
    struct sink sink = {.file = out, .sum = XXH64_createState()};
    if (!sink.sum || !yaml_emitter_initialize(&emitter)) {
        XXH64_freeState(sink.sum);
        return -ENOMEM;
    }
    XXH64_reset(sink.sum, 0);
    yaml_emitter_set_output(&emitter, write_octets, &sink);
    yaml_emitter_set_unicode(&emitter, 1);
    yaml_emitter_set_width(&emitter, -1);
    int failed = emit_document(&emitter, trace) ? 0 : ferror(out) ? -EIO : -ENOMEM;
    yaml_emitter_delete(&emitter);
    char checksum[CHECKSUM_LINE + 1];
    print_checksum(checksum, XXH64_digest(sink.sum));
    XXH64_freeState(sink.sum);
    if (!failed && (fputs(checksum, out) == EOF || fflush(out) != 0 || ferror(out)))
        failed = -EIO;
    return failed;
}

/* ---- reading ----------------------------------------------------------------------------- */

/* The schema's view; `raw` so that numbers are checked here. */
struct raw_trace {
    uint32_t format;
    uint64_t seed;
    char *version, *mutant, *property, *what, *scenario_name, *scenario, *digest, *checksum;
    int memory, dma_order, ordering;
    uint32_t store_buffer, tear;
    bool private_steps, merged_drains;
    char **steps;
    unsigned steps_count;
};

static const cyaml_strval_t memory_values[] = {{"sc", 0}, {"tso", 1}, {"relaxed", 2}};
static const cyaml_strval_t order_values[] = {{"any", 0}, {"ascending", 1}, {"descending", 2}};
static const cyaml_strval_t ordering_values[] = {{"rdmap", 0}, {"infiniband", 1}, {"strong", 2}};
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
    /* Older traces have none; that is the first. */
    CYAML_FIELD_ENUM("ordering", CYAML_FLAG_STRICT | CYAML_FLAG_OPTIONAL, struct raw_trace,
                     ordering, ordering_values, 3),
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

/* May be printed: holds no control characters. */
static bool is_plain(const char *text)
{
    unsigned octets;
    for (; *text; text += octets)
        if (sim_utf8_is_control(sim_utf8(text, SIZE_MAX, &octets)))
            return false;
    return true;
}

static bool is_legal(const struct raw_trace *raw, uint64_t *digest)
{
    return is_plain(raw->version) && is_plain(raw->mutant) && is_plain(raw->property) &&
           is_plain(raw->what) && is_plain(raw->scenario_name) && raw->seed <= INT64_MAX &&
           raw->format == FORMAT && (raw->tear == 4 || raw->tear == 8) && raw->store_buffer >= 1 &&
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
                    .dma_order = (enum sim_dma_order)raw->dma_order,
                    .ordering = (enum sim_ordering)raw->ordering},
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
