/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sim/trace.h: a trace that was damaged is refused with one line, and so is one that is whole, but
 * not what this program writes.
 */
#include "sim/trace.h"

#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "tests/run.h"
#include "trace_fixture.h"

/* One line without its newline. */
static bool is_one_line(const char *line)
{
    return line[0] != '\0' && strcspn(line, "\n\r") == strlen(line);
}

static bool is_refused(const char *text, size_t length)
{
    struct sim_trace *trace = parse_text(text, length);
    sim_trace_free(trace);
    return trace == NULL && is_one_line(error_line);
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

int main(void)
{
    static const struct test tests[] = {
        {"every truncation is refused", every_truncation_is_refused},
        {"every changed octet is refused", every_changed_octet_is_refused},
        {"every octet more or less is refused", every_octet_more_or_less_is_refused},
        {"garbage is refused", garbage_is_refused},
        {"the error line fits its buffer", the_error_line_fits_its_buffer},
        {"another format is refused", another_format_is_refused},
        {"a trace without ordering is read", a_trace_without_ordering_is_read},
        {"values out of range are refused", values_out_of_range_are_refused},
    };
    return run_tests("sim/trace damage", tests, sizeof tests / sizeof tests[0]);
}
