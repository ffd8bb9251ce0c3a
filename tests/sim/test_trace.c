/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sim/trace.h: a trace comes back as it was written, whatever is in its texts. Damaged traces:
 * test_trace_damage.c; the words of steps: test_trace_steps.c.
 */
#include "sim/trace.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sim/utf8.h"
#include "tests/run.h"
#include "trace_fixture.h"

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
        fprintf(stderr, "\n%d, %s, from\n%s\n", failed, error_line, text);
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
    char **const steps = trace.steps;
    const unsigned few = trace.steps_count;
    trace.steps_count = 0;
    CU_ASSERT_TRUE(comes_back(&trace));
    trace.steps_count = 10000;
    trace.steps = calloc(trace.steps_count, sizeof *trace.steps);
    CU_ASSERT_PTR_NOT_NULL_FATAL(trace.steps);
    for (unsigned i = 0; i < trace.steps_count; i++)
        trace.steps[i] = steps[i % few];
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
    MINIMAL "# \xff\n",
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
        CU_ASSERT_PTR_NULL(
            sim_scenario_parse("s", text, strlen(text), error_line, sizeof error_line));
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
    };
    return run_tests("sim/trace", tests, sizeof tests / sizeof tests[0]);
}
