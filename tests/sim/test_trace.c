/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sim/trace.h: a trace comes back as it was written, whatever is in its texts; a damaged one is
 * noticed; steps and their words belong together.
 */
#include "sim/trace.h"
#include "sim/utf8.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "sim/random.h"
#include "sim/visited.h"
#include "tests/run.h"

#define COUNT(array) (sizeof(array) / sizeof(array)[0])
#define WORLD "slots: 2\nblocks: 2\n"
#define AGENTS "allocators: [{name: a1, allocations: 1}]\nfreers: [{name: f1}]\n"
#define MINIMAL "kind: ring\n" WORLD AGENTS

static char choose[] = "a1 choose 0", access[] = "a1 access 0", drain[] = "f1 drain 1";
static char *steps[] = {choose, access, drain};

/* The fields of a trace are not const, but nobody writes to them. */
static char *mutable(const char *text)
{
    return (char *)(uintptr_t)text;
}

static struct sim_trace sample(void)
{
    return (struct sim_trace){
        .version = mutable("0.1.0"),
        .mutant = mutable("none"),
        .machine = {.memory = SIM_MEMORY_TSO, .store_buffer = 4, .tear = 8},
        .stepping = {.private_steps = true},
        .property = mutable("stuck"),
        .what = mutable("nothing can change any more, but a1 still waits with ticket 0"),
        .scenario_name = mutable("sample.yaml"),
        .scenario_text = mutable(MINIMAL),
        .seed = 17,
        .digest = UINT64_C(0x0123456789abcdef),
        .steps = steps,
        .steps_count = COUNT(steps),
    };
}

static char error[300];

/* One line without its newline. */
static bool is_one_line(const char *line)
{
    return line[0] != '\0' && strcspn(line, "\n\r") == strlen(line);
}

/* What sim_trace_write() writes; the status in *failed. */
static char *write_text(const struct sim_trace *trace, size_t *length, int *failed)
{
    char *text = NULL;
    FILE *out = open_memstream(&text, length);
    CU_ASSERT_PTR_NOT_NULL_FATAL(out);
    *failed = sim_trace_write(out, trace);
    fclose(out);
    return text;
}

/* Parses a copy that ends with its last octet, so that reading behind it is found. */
static struct sim_trace *parse_text(const char *text, size_t length)
{
    char *copy = malloc(length + (length == 0));
    CU_ASSERT_PTR_NOT_NULL_FATAL(copy);
    memcpy(copy, text, length);
    error[0] = '\0';
    struct sim_trace *trace = sim_trace_parse("t.trace", copy, length, error, sizeof error);
    free(copy);
    return trace;
}

static bool is_refused(const char *text, size_t length)
{
    struct sim_trace *trace = parse_text(text, length);
    sim_trace_free(trace);
    return trace == NULL && is_one_line(error);
}

static bool same_steps(const struct sim_trace *a, const struct sim_trace *b)
{
    for (unsigned i = 0; i < a->steps_count && i < b->steps_count; i++)
        if (strcmp(a->steps[i], b->steps[i]) != 0)
            return false;
    return a->steps_count == b->steps_count;
}

static bool same(const struct sim_trace *a, const struct sim_trace *b)
{
    return strcmp(a->version, b->version) == 0 && strcmp(a->mutant, b->mutant) == 0 &&
           memcmp(&a->machine, &b->machine, sizeof a->machine) == 0 &&
           a->stepping.private_steps == b->stepping.private_steps &&
           a->stepping.merged_drains == b->stepping.merged_drains &&
           strcmp(a->property, b->property) == 0 && strcmp(a->what, b->what) == 0 &&
           strcmp(a->scenario_name, b->scenario_name) == 0 &&
           strcmp(a->scenario_text, b->scenario_text) == 0 && a->seed == b->seed &&
           a->digest == b->digest && same_steps(a, b);
}

/* Does the trace come back as it is? */
static bool comes_back(const struct sim_trace *trace)
{
    size_t length;
    int failed;
    char *text = write_text(trace, &length, &failed);
    struct sim_trace *read = failed ? NULL : parse_text(text, length);
    bool well = read && same(trace, read);
    if (!well)
        fprintf(stderr, "\n%d, %s, from\n%s\n", failed, error, text);
    sim_trace_free(read);
    free(text);
    return well;
}

/* Can it be written, but not read? */
static bool is_not_taken(const struct sim_trace *trace)
{
    size_t length;
    int failed;
    char *text = write_text(trace, &length, &failed);
    struct sim_trace *read = failed ? NULL : parse_text(text, length);
    bool well = !failed && !read;
    sim_trace_free(read);
    free(text);
    return well;
}

/* ---- there and back ---------------------------------------------------------------------- */

static void a_trace_comes_back(void)
{
    struct sim_trace trace = sample();
    CU_ASSERT_TRUE(comes_back(&trace));
    sim_trace_free(NULL);
}

static void every_option_comes_back(void)
{
    struct sim_trace trace = sample();
    uint32_t lost = 0;
    for (uint32_t i = 0; i < 3 * 16 * 2 * 3 * 4 * 3; i++) {
        trace.machine.memory = (enum sim_memory)(i % 3);
        trace.machine.store_buffer = i / 3 % 16 + 1;
        trace.machine.tear = i / 48 % 2 ? 4 : 8;
        trace.machine.dma_order = (enum sim_dma_order)(i / 96 % 3);
        trace.stepping.private_steps = i / 288 % 2;
        trace.stepping.merged_drains = i / 576 % 2;
        trace.machine.ordering = (enum sim_ordering)(i / 1152);
        lost += !comes_back(&trace);
    }
    CU_ASSERT_EQUAL(lost, 0);
}

static void every_seed_and_digest_comes_back(void)
{
    struct sim_trace trace = sample();
    for (uint64_t number = UINT64_MAX; number != 0; number >>= 3) {
        trace.digest = number;
        trace.seed = number / 3;
        CU_ASSERT_TRUE(comes_back(&trace));
        trace.seed = number & INT64_MAX;
        CU_ASSERT_TRUE(comes_back(&trace));
    }
    trace.seed = UINT64_C(1) << 63; /* no search has such a seed */
    CU_ASSERT_TRUE(is_not_taken(&trace));
    trace.digest = trace.seed = 0;
    CU_ASSERT_TRUE(comes_back(&trace));
}

static void few_and_many_steps_come_back(void)
{
    struct sim_trace trace = sample();
    trace.steps_count = 0;
    CU_ASSERT_TRUE(comes_back(&trace));
    trace.steps_count = 10000;
    trace.steps = calloc(trace.steps_count, sizeof *trace.steps);
    CU_ASSERT_PTR_NOT_NULL_FATAL(trace.steps);
    for (unsigned i = 0; i < trace.steps_count; i++)
        trace.steps[i] = steps[i % COUNT(steps)];
    CU_ASSERT_TRUE(comes_back(&trace));
    free(trace.steps);
}

/* "-" alone would begin another list. */
static void names_of_any_agent_come_back(void)
{
    static const char *const names[] = {"-",  "--",   "---",  "-x", "_",   "0",
                                        "1-", "true", "null", "no", "0x1", "ABCDEFGHIJKLMN-"};
    struct sim_trace trace = sample();
    for (size_t i = 0; i < COUNT(names); i++) {
        char step[64], *only[] = {step};
        snprintf(step, sizeof step, "%s choose 2147483649", names[i]);
        trace.steps = only;
        trace.steps_count = 1;
        CU_ASSERT_TRUE(comes_back(&trace));
    }
}

/* ---- texts ------------------------------------------------------------------------------- */

/* Line breaks of YAML 1.1 beside \n: NEL, LS and PS; also BOM, DEL and other controls. */
static const char *const texts[] = {
    "",
    "\n",
    "\n\n\n",
    " ",
    "  \n ",
    "\t",
    "no final newline",
    "one\n",
    "one\n\n",
    "\none",
    "one\n\n\ntwo",
    "one\n\n\n\n",
    " leading",
    "    leading\n  less\n none\n",
    "\n   leading after a blank line\n",
    "trailing \n  \n\t\n \t",
    "\tindented: with\ttabs\n\t\t- x\n",
    "# comment\n",
    "key: value # comment",
    "'quotes' \"double\" `back`",
    "\"",
    "\\",
    "back\\slash \\n \\x41 \\\" \\",
    "a: b: c:\n- d: ::\n",
    "- item\n--- \n...\n---\n",
    "%YAML 1.1\n--- !tag &anchor *alias\n",
    "|2+\n  > folded\n",
    "{flow: [a, b], ? key}\n",
    "checksum: \"0x0000000000000000\"\n",
    "UTF-8: \xc3\xa4 \xe2\x82\xac \xf0\x9f\x98\x80 \xc2\xa0\n",
    "\xef\xbb\xbfkind: ring\n",
    "in the \xef\xbb\xbf middle\n\xef\xbb\xbf\n",
    "CRLF\r\n\r\nCRLF\r\n",
    "CRLF at the end only\r\n",
    "CR\rCR\r\r",
    "\r",
    "\r\n",
    "\n\r",
    "mixed\r\n\n\r\n\r x\n",
    "NEL\xc2\x85NEL\n\xc2\x85",
    "LS\xe2\x80\xa8 and PS\xe2\x80\xa9",
    "\xe2\x80\xa8",
    "# comment\xe2\x80\xa8kind: ring\n",
    "bell\a delete\x7f escape\x1b[2J unit\x1f\x01",
    "C1 \xc2\x80 \xc2\x9f",
    "not a character \xef\xbf\xbe \xef\xbf\xbf \xf0\x9f\xbf\xbf",
    "edges \xc3\xbf\xdf\xbf\xe0\xa0\x80\xed\x9f\xbf\xee\x80\x80\xf0\x90\x80\x80\xf4\x8f\xbf\xbf",
};

static void any_scenario_comes_back(void)
{
    struct sim_trace trace = sample();
    for (size_t i = 0; i < COUNT(texts); i++) {
        trace.scenario_text = mutable(texts[i]);
        CU_ASSERT_TRUE(comes_back(&trace));
    }
}

/* Controls would steer the terminal on which replay prints these. */
static bool has_control(const char *text)
{
    unsigned octets;
    for (; *text; text += octets)
        if (sim_utf8_is_control(sim_utf8(text, SIZE_MAX, &octets)))
            return true;
    return false;
}

static void any_plain_word_comes_back(void)
{
    uint32_t plain = 0;
    for (size_t i = 0; i < COUNT(texts); i++) {
        struct sim_trace trace = sample();
        trace.version = trace.mutant = trace.property = trace.what = mutable(texts[i]);
        if (has_control(texts[i])) {
            CU_ASSERT_TRUE(is_not_taken(&trace));
            continue;
        }
        trace.scenario_name = mutable(texts[i]);
        CU_ASSERT_TRUE(comes_back(&trace));
        plain++;
    }
    CU_ASSERT_TRUE(plain > 5);
}

static void a_large_scenario_comes_back(void)
{
    size_t length = 1 << 20;
    char *text = malloc(length + 1);
    CU_ASSERT_PTR_NOT_NULL_FATAL(text);
    memset(text, '#', length);
    text[length] = '\0';
    struct sim_trace trace = sample();
    trace.scenario_text = text;
    CU_ASSERT_TRUE(comes_back(&trace));
    for (size_t i = 0; i < length; i += 77)
        text[i] = '\n';
    CU_ASSERT_TRUE(comes_back(&trace));
    text[length - 1] = '\r';
    CU_ASSERT_TRUE(comes_back(&trace));
    free(text);
}

/* Random texts of what is delicate in YAML. */
static void random_scenarios_come_back(void)
{
    static const char *const pieces[] = {
        " ",
        "  ",
        "\n",
        "\n",
        "\t",
        "\r",
        "\r\n",
        "#",
        " #",
        ":",
        ": ",
        "-",
        "- ",
        "?",
        "\"",
        "\\",
        "'",
        "a",
        "b",
        "|",
        ">",
        "%",
        "&",
        "*",
        "!",
        "\x7f",
        "\xc2\x85",
        "\xe2\x80\xa8",
        "\xef\xbb\xbf",
        ",",
        "[",
        "}",
        "...",
    };
    uint32_t lost = 0, chance = 12345;
    struct sim_trace trace = sample();
    for (uint32_t i = 0; i < 5000; i++) {
        char text[64];
        size_t used = 0;
        for (uint32_t left = chance >> 16 & 15; left > 0; left--) {
            chance = chance * 1103515245u + 12345u;
            const char *piece = pieces[(chance >> 16) % COUNT(pieces)];
            memcpy(text + used, piece, strlen(piece));
            used += strlen(piece);
        }
        text[used] = '\0';
        chance = chance * 1103515245u + 12345u;
        trace.scenario_text = text;
        lost += !comes_back(&trace);
    }
    CU_ASSERT_EQUAL(lost, 0);
}

/* No YAML can hold these; none is a scenario. */
static const char *const no_texts[] = {
    "kind: ring\n" WORLD AGENTS "# \xff\n",
    "# \x80\n" MINIMAL,
    "# \xc3\n" MINIMAL,
    "# \xc0\xaf\n" MINIMAL,
    "# \xe0\x80\xaf\n" MINIMAL,
    "# \xed\xa0\x80\n" MINIMAL,
    "# \xf4\x90\x80\x80\n" MINIMAL,
    "# \xf8\x88\x80\x80\x80\n" MINIMAL,
    MINIMAL "# \xf0\x9f\x98",
};

static void a_scenario_that_is_not_utf8_is_not_written(void)
{
    for (size_t i = 0; i < COUNT(no_texts); i++) {
        const char *text = no_texts[i];
        CU_ASSERT_PTR_NULL(sim_scenario_parse("s", text, strlen(text), error, sizeof error));
        struct sim_trace trace = sample();
        trace.scenario_text = mutable(text);
        size_t length;
        int failed;
        char *written = write_text(&trace, &length, &failed);
        CU_ASSERT_EQUAL(failed, -EILSEQ);
        CU_ASSERT_EQUAL(length, 0);
        free(written);
    }
}

/* A file name may be anything; the trace shall be readable all the same. */
static void a_name_that_is_not_utf8_is_made_readable(void)
{
    struct sim_trace trace = sample();
    trace.scenario_name = mutable("a\xff\xc3.yaml\xed\xa0\x80");
    size_t length;
    int failed;
    char *text = write_text(&trace, &length, &failed);
    CU_ASSERT_EQUAL(failed, 0);
    struct sim_trace *read = parse_text(text, length);
    CU_ASSERT_PTR_NOT_NULL_FATAL(read);
#define REPLACED "\xef\xbf\xbd"
    CU_ASSERT_STRING_EQUAL(read->scenario_name,
                           "a" REPLACED REPLACED ".yaml" REPLACED REPLACED REPLACED);
    sim_trace_free(read);
    free(text);
}

static void what_cannot_be_written_is_told(void)
{
    struct sim_trace trace = sample();
    FILE *full = fopen("/dev/full", "w");
    if (!full) {
        fputs("no /dev/full here; ", stderr);
        return;
    }
    CU_ASSERT_EQUAL(sim_trace_write(full, &trace), -EIO);
    fclose(full);
}

/* ---- damage ------------------------------------------------------------------------------ */

static char *sample_text(size_t *length)
{
    struct sim_trace trace = sample();
    int failed;
    char *text = write_text(&trace, length, &failed);
    CU_ASSERT_EQUAL_FATAL(failed, 0);
    CU_ASSERT_FALSE_FATAL(is_refused(text, *length));
    return text;
}

static void every_truncation_is_refused(void)
{
    size_t length;
    char *text = sample_text(&length);
    uint32_t taken = 0;
    for (size_t i = 0; i < length; i++)
        taken += !is_refused(text, i);
    CU_ASSERT_EQUAL(taken, 0);
    for (size_t i = 1; i < length; i++) /* from the front */
        taken += !is_refused(text + i, length - i);
    CU_ASSERT_EQUAL(taken, 0);
    free(text);
}

static void every_changed_octet_is_refused(void)
{
    size_t length;
    char *text = sample_text(&length);
    uint32_t taken = 0;
    for (size_t i = 0; i < length; i++)
        for (unsigned change = 1; change < 256; change++) {
            unsigned char octet = (unsigned char)text[i];
            text[i] = (char)(octet ^ change);
            taken += !is_refused(text, length);
            text[i] = (char)octet;
        }
    CU_ASSERT_EQUAL(taken, 0);
    free(text);
}

static void every_octet_more_or_less_is_refused(void)
{
    size_t length;
    char *text = sample_text(&length), *changed = malloc(length + 1);
    CU_ASSERT_PTR_NOT_NULL_FATAL(changed);
    uint32_t taken = 0;
    for (size_t i = 0; i < length; i++) {
        memcpy(changed, text, i);
        memcpy(changed + i, text + i + 1, length - i - 1);
        taken += !is_refused(changed, length - 1);
    }
    for (size_t i = 0; i <= length; i++)
        for (const char *more = "\n x0\"#"; *more; more++) {
            memcpy(changed, text, i);
            changed[i] = *more;
            memcpy(changed + i + 1, text + i, length - i);
            taken += !is_refused(changed, length + 1);
        }
    CU_ASSERT_EQUAL(taken, 0);
    free(changed);
    free(text);
}

static void garbage_is_refused(void)
{
    char octets[512] = {0};
    uint32_t taken = 0;
    uint64_t chance = 88172645463325252u;
    for (size_t length = 0; length <= sizeof octets; length++)
        taken += !is_refused(octets, length);
    for (uint32_t i = 0; i < 5000; i++) {
        for (size_t j = 0; j < sizeof octets; j++) {
            chance ^= chance << 13;
            chance ^= chance >> 7;
            chance ^= chance << 17;
            octets[j] = (char)(chance >> 33);
        }
        if (i % 2)
            snprintf(octets, sizeof octets, "kbtp_trace: 1\n");
        taken += !is_refused(octets, chance % (sizeof octets + 1));
    }
    CU_ASSERT_EQUAL(taken, 0);
}

/* An error line that does not fit is cut. */
static void the_error_line_fits_its_buffer(void)
{
    char name[600], small[64];
    memset(name, 'n', sizeof name);
    name[sizeof name - 1] = '\0';
    for (size_t size = 1; size <= sizeof small; size++) {
        memset(small, '\n', sizeof small);
        CU_ASSERT_PTR_NULL(sim_trace_parse(name, "x", 1, small, size));
        CU_ASSERT_TRUE(strlen(small) < size);
        CU_ASSERT_TRUE(size == 1 || is_one_line(small));
    }
}

/* ---- whole, but not what this program writes --------------------------------------------- */

#define FORGED_OCTETS 4096u

/* The sample with the text `old` replaced, and the checksum made to fit; its length. */
static size_t forge(char forged[FORGED_OCTETS], const char *old, const char *new)
{
    size_t length;
    char *text = sample_text(&length);
    const char *place = strstr(text, old);
    CU_ASSERT_PTR_NOT_NULL_FATAL(place);
    size_t body = (size_t)(strstr(text, "checksum:") - text);
    int size = snprintf(forged, FORGED_OCTETS, "%.*s%s%.*s", (int)(place - text), text, new,
                        (int)(text + body - place - (ptrdiff_t)strlen(old)), place + strlen(old));
    CU_ASSERT_FATAL(size > 0 && (size_t)size + 64 < FORGED_OCTETS);
    size += snprintf(forged + size, 64, "checksum: \"0x%016llx\"\n",
                     (unsigned long long)XXH64(forged, (size_t)size, 0));
    free(text);
    return (size_t)size;
}

static bool changed_is_refused(const char *old, const char *new)
{
    char forged[FORGED_OCTETS];
    return is_refused(forged, forge(forged, old, new));
}

static void a_trace_without_ordering_is_read(void)
{
    char forged[FORGED_OCTETS];
    struct sim_trace *trace = parse_text(forged, forge(forged, "ordering: rdmap\n", ""));
    CU_ASSERT_PTR_NOT_NULL_FATAL(trace);
    CU_ASSERT_EQUAL(trace->machine.ordering, SIM_ORDERING_RDMAP);
    sim_trace_free(trace);
}

static void another_format_is_refused(void)
{
    CU_ASSERT_FALSE_FATAL(changed_is_refused("version: \"0.1.0\"\n", "version: \"9\"\n"));
    CU_ASSERT_TRUE(changed_is_refused("kbtp_trace: 1", "kbtp_trace: 2"));
    CU_ASSERT_TRUE(changed_is_refused("kbtp_trace: 1", "# kbtp_trace: 1"));
    CU_ASSERT_TRUE(changed_is_refused("version: \"0.1.0\"\n", ""));
    CU_ASSERT_TRUE(changed_is_refused("version:", "kbtp_trace: 2\nversion:"));
    CU_ASSERT_TRUE(changed_is_refused("version:", "vision:"));
    CU_ASSERT_TRUE(changed_is_refused("version:", "more: 1\nversion:"));
    CU_ASSERT_TRUE(changed_is_refused("version:", "version: []\nversion:"));
    CU_ASSERT_TRUE(changed_is_refused("version: \"", "version: \"\xff"));
    CU_ASSERT_TRUE(changed_is_refused("version: ", "version: [["));
    CU_ASSERT_TRUE(changed_is_refused("version: ", "version: *alias "));
    CU_ASSERT_TRUE(changed_is_refused("steps:", "steps: []\nstops:"));
}

static void values_out_of_range_are_refused(void)
{
    CU_ASSERT_TRUE(changed_is_refused("memory: tso", "memory: fast"));
    CU_ASSERT_TRUE(changed_is_refused("memory: tso", "memory: 3"));
    CU_ASSERT_TRUE(changed_is_refused("store_buffer: 4", "store_buffer: 0"));
    CU_ASSERT_TRUE(changed_is_refused("store_buffer: 4", "store_buffer: 17"));
    CU_ASSERT_TRUE(changed_is_refused("store_buffer: 4", "store_buffer: -1"));
    CU_ASSERT_TRUE(changed_is_refused("store_buffer: 4", "store_buffer: 4294967300"));
    CU_ASSERT_TRUE(changed_is_refused("seed: 17", "seed: 18446744073709551616"));
    CU_ASSERT_TRUE(changed_is_refused("seed: 17", "seed: x"));
    CU_ASSERT_TRUE(changed_is_refused("tear: 8", "tear: 0"));
    CU_ASSERT_TRUE(changed_is_refused("tear: 8", "tear: 16"));
    CU_ASSERT_TRUE(changed_is_refused("dma_order: any", "dma_order: none"));
    CU_ASSERT_TRUE(changed_is_refused("ordering: rdmap", "ordering: weak"));
    CU_ASSERT_TRUE(changed_is_refused("digest: \"0x", "digest: \""));
    CU_ASSERT_TRUE(changed_is_refused("digest: \"0x", "digest: \"0xx"));
    CU_ASSERT_TRUE(changed_is_refused("digest: \"0x", "digest: \"0x1"));
    CU_ASSERT_TRUE(changed_is_refused("- a1 choose 0", "- [a1]"));
    CU_ASSERT_TRUE(changed_is_refused("- a1 choose 0", "- \"\""));
    CU_ASSERT_TRUE(changed_is_refused("- a1 choose 0", "- a1 choose 00000000000000000000000000000"
                                                       "00000000000000000000000000000000000000"));
}

/* ---- steps ------------------------------------------------------------------------------- */

/* Every kind of step: stores drain, reads come in pieces, an allocator dies. */
static const char busy_world[] = "kind: ring\n" WORLD "memory: relaxed\ntear: 4\ncrashes: 1\n"
                                 "allocators:\n"
                                 "- {name: cpu-1, allocations: 2}\n"
                                 "- {name: ABCDEFGHIJKLMNO, agent: rnic, allocations: 1}\n"
                                 "freers: [{name: _}]\n";

struct exploration {
    struct sim_world *w;
    struct sim_visited *visited;
    uint32_t met[SIM_STEP_KINDS]; /* by kind */
    uint32_t wrong;
};

static void check_words(struct exploration *e, const struct sim_step *step)
{
    char words[64];
    struct sim_step parsed;
    sim_step_print(e->w, step, words, sizeof words);
    if (!sim_step_parse(e->w, words, &parsed) || memcmp(&parsed, step, sizeof parsed) != 0)
        e->wrong++;
    e->met[step->kind]++;
}

/* Depth first from the present state. */
static void check_all(struct exploration *e)
{
    struct sim_step enabled[SIM_MAX_STEPS];
    uint32_t count = sim_world_enabled(e->w, enabled);
    if (sim_visited_add(e->visited, &e->w->arena) != 1)
        return;
    for (uint32_t i = 0; i < count; i++) {
        check_words(e, &enabled[i]);
        size_t mark = sim_arena_mark(&e->w->arena);
        CU_ASSERT_TRUE_FATAL(sim_world_step(e->w, &enabled[i]));
        check_all(e);
        sim_arena_undo(&e->w->arena, mark);
    }
}

/* A world of this text; both are freed by free_world(). */
static struct sim_world *new_world(const char *text)
{
    static const struct sim_stepping stepping = {.private_steps = true};
    struct sim_scenario *s = sim_scenario_parse("s.yaml", text, strlen(text), error, sizeof error);
    CU_ASSERT_PTR_NOT_NULL_FATAL(s);
    struct sim_world *w = sim_world_new(s, &stepping, error, sizeof error);
    CU_ASSERT_PTR_NOT_NULL_FATAL(w);
    return w;
}

static void free_world(struct sim_world *w)
{
    struct sim_scenario *scenario = (struct sim_scenario *)(uintptr_t)w->scenario;
    sim_world_free(w);
    sim_scenario_free(scenario);
}

/* The number of states; all enabled steps are checked. */
static uint64_t check_world(struct exploration *e, const char *text)
{
    e->w = new_world(text);
    e->visited = sim_visited_new(false, &e->w->arena, SIZE_MAX / 2);
    CU_ASSERT_PTR_NOT_NULL_FATAL(e->visited);
    check_all(e);
    CU_ASSERT_EQUAL(e->wrong, 0);
    uint64_t states = sim_visited_count(e->visited);
    sim_visited_free(e->visited);
    free_world(e->w);
    return states;
}

static void every_enabled_step_has_words(void)
{
    struct exploration e = {0};
    CU_ASSERT_TRUE(check_world(&e, busy_world) > 1000);
    for (unsigned kind = SIM_STEP_CHOOSE; kind <= SIM_STEP_FAULT; kind++)
        CU_ASSERT_TRUE(e.met[kind] != 0);
}

/*
 * Requests that need every kind of message but atomics, connections that break, an initiator that
 * stops. No world of scenarios arms timers; tests/sim/test_rnic_steps.c does.
 */
static const char remote_world[] = "kind: protocol\nslots: 2\nblocks: 2\nblock_size: 16\n"
                                   "handles: 1\ncredits: 1\nmax_inline: 16\n"
                                   "workers: [{name: worker-1}]\n"
                                   "initiators:\n"
                                   "- name: ABCDEFGHIJ\n"
                                   "  workers: [worker-1]\n"
                                   "  quota: 1\n"
                                   "  reconnects: 1\n"
                                   "  program:\n"
                                   "  - {op: alloc_store, handle: 0}\n"
                                   "  - {op: load, handle: 0, allow_unsealed: true}\n"
                                   "  - {op: goodbye}\n"
                                   "losses: 1\nstops: 1\n";

static bool is_met_there(unsigned kind)
{
    return kind != SIM_STEP_PIECE && kind != SIM_STEP_EXPIRE && kind != SIM_STEP_ATOMIC;
}

/* Walks, each of its own way, in which all enabled steps are checked. */
static void every_remote_step_has_words(void)
{
    struct exploration e = {.w = new_world(remote_world)};
    struct sim_step enabled[SIM_MAX_STEPS];
    uint64_t chance = 1;
    e.w->stepping.private_steps = false;
    size_t mark = sim_arena_mark(&e.w->arena);
    for (int walk = 0; walk < 100; walk++) {
        for (int i = 0; i < 500; i++) {
            uint32_t count = sim_world_enabled(e.w, enabled);
            for (uint32_t j = 0; j < count; j++)
                check_words(&e, &enabled[j]);
            const struct sim_step *step = &enabled[sim_random_below(&chance, count)];
            /* Faults are rare, or nothing else would be met. */
            if (sim_step_is_environment(step) && sim_random_below(&chance, 100) != 0)
                continue;
            if (!sim_world_step(e.w, step))
                break;
        }
        CU_ASSERT_PTR_NULL(e.w->violation.property);
        sim_arena_undo(&e.w->arena, mark);
    }
    for (unsigned kind = SIM_STEP_CHOOSE; kind < SIM_STEP_KINDS; kind++)
        CU_ASSERT_EQUAL(e.met[kind] != 0, is_met_there(kind));
    CU_ASSERT_EQUAL(e.wrong, 0);
    free_world(e.w);
}

static void every_number_has_words(void)
{
    struct exploration e = {.w = new_world(busy_world)};
    for (uint32_t i = 0; i < 32; i++) {
        uint32_t arg = UINT32_C(1) << i;
        check_words(&e, &(struct sim_step){.kind = SIM_STEP_CHOOSE, .arg = arg});
        check_words(&e, &(struct sim_step){.kind = SIM_STEP_CHOOSE, .arg = arg - 1 + arg});
        check_words(&e, &(struct sim_step){.kind = SIM_STEP_PIECE, .piece = (uint8_t)i});
        check_words(&e, &(struct sim_step){.kind = SIM_STEP_DRAIN, .queue = (uint8_t)i});
    }
    free_world(e.w);
    e.w = new_world(remote_world);
    uint8_t rnic = 0, fault = 0;
    for (uint32_t i = 0; i < e.w->agents_count; i++) {
        if (e.w->agents[i].rnic)
            rnic = (uint8_t)i;
        if (strcmp(e.w->agents[i].name, SIM_ENVIRONMENT_NAME) == 0)
            fault = (uint8_t)i;
    }
    for (uint32_t i = 0; i < 32; i++) {
        uint32_t arg = UINT32_C(1) << i;
        uint8_t low = (uint8_t)(arg >> i % 8), all = (uint8_t)(255 - i);
        check_words(&e, &(struct sim_step){SIM_STEP_CUT, fault, 0, 0, arg});
        check_words(&e, &(struct sim_step){SIM_STEP_EXPIRE, 0, all, 0, 0});
        check_words(&e, &(struct sim_step){SIM_STEP_GATHER, rnic, low, 0, arg});
        check_words(&e, &(struct sim_step){SIM_STEP_PLACE, rnic, low, all, arg});
        check_words(&e, &(struct sim_step){SIM_STEP_READ, rnic, all, low, arg});
        check_words(&e, &(struct sim_step){SIM_STEP_ATOMIC, rnic, low, all, 0});
    }
    CU_ASSERT_EQUAL(e.wrong, 0);
    free_world(e.w);
}

static void garbage_is_no_step(void)
{
    static const char *const garbage[] = {
        "",
        " ",
        "_",
        "_ choose",
        "_ choose ",
        "choose 0",
        "_ 0",
        "_ choose 0 0",
        "_ choose 0x1",
        "_ choose 0\n",
        "_ choose 0 ",
        " _ choose 0",
        "_  choose 0",
        "_\tchoose 0",
        "_ choose -1",
        "_ choose +1",
        "_ choose 01",
        "_ choose 4294967296",
        "_ choose 18446744073709551617",
        "_ choose 99999999999999999999999",
        "_ chose 0",
        "_ CHOOSE 0",
        "_ choosechoosechoosechoose 0",
        "__ choose 0",
        "nobody choose 0",
        "ABCDEFGHIJKLMN choose 0",
        "ABCDEFGHIJKLMNOP choose 0",
        "ABCDEFGHIJKLMNOPQRSTUVWXYZ choose 0",
        "_ piece 256",
        "_ drain 256",
        "_ access 4294967296",
        "fault dies 256",
        "fault cuts 0 0",
        "_ expire 256",
        "_ gather 0 0",
        "%s %n 0",
    };
    struct sim_world *w = new_world(busy_world);
    for (size_t i = 0; i < COUNT(garbage); i++) {
        struct sim_step step;
        bool taken = sim_step_parse(w, garbage[i], &step);
        if (taken)
            fprintf(stderr, "\n'%s' is taken for a step\n", garbage[i]);
        CU_ASSERT_FALSE(taken);
    }
    free_world(w);
}

int main(void)
{
    static const struct test tests[] = {
        {"a trace comes back", a_trace_comes_back},
        {"every option comes back", every_option_comes_back},
        {"every seed and digest comes back", every_seed_and_digest_comes_back},
        {"few and many steps come back", few_and_many_steps_come_back},
        {"names of any agent come back", names_of_any_agent_come_back},
        {"any scenario comes back", any_scenario_comes_back},
        {"any plain word comes back", any_plain_word_comes_back},
        {"a large scenario comes back", a_large_scenario_comes_back},
        {"random scenarios come back", random_scenarios_come_back},
        {"a scenario that is not UTF-8 is not written", a_scenario_that_is_not_utf8_is_not_written},
        {"a name that is not UTF-8 is made readable", a_name_that_is_not_utf8_is_made_readable},
        {"what cannot be written is told", what_cannot_be_written_is_told},
        {"every truncation is refused", every_truncation_is_refused},
        {"every changed octet is refused", every_changed_octet_is_refused},
        {"every octet more or less is refused", every_octet_more_or_less_is_refused},
        {"garbage is refused", garbage_is_refused},
        {"the error line fits its buffer", the_error_line_fits_its_buffer},
        {"another format is refused", another_format_is_refused},
        {"a trace without ordering is read", a_trace_without_ordering_is_read},
        {"values out of range are refused", values_out_of_range_are_refused},
        {"every enabled step has words", every_enabled_step_has_words},
        {"every remote step has words", every_remote_step_has_words},
        {"every number has words", every_number_has_words},
        {"garbage is no step", garbage_is_no_step},
    };
    return run_tests("sim/trace", tests, sizeof tests / sizeof tests[0]);
}
