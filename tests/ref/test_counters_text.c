/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of counters and gauges, going through it, and its text for Prometheus (R-OPER-03). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ref/counters.h"
#include "tests/ref/fixture.h"

/* ---- text -------------------------------------------------------------------------------- */

#define TEXT_OCTETS 65536u

static char text[TEXT_OCTETS + 1];

/* Takes `word` off the front of *at. */
static bool take(const char **at, const char *word)
{
    size_t length = strlen(word);
    if (strncmp(*at, word, length) != 0)
        return false;
    *at += length;
    return true;
}

/* Takes a quoted value off, and undoes its escapes. */
static void take_quoted(const char **at, char *value, size_t octets)
{
    size_t length = 0;
    CU_ASSERT_FATAL(take(at, "\""));
    for (; **at != '"'; (*at)++) {
        char c = **at;
        CU_ASSERT_FATAL(c != '\0' && c != '\n' && length + 1 < octets);
        if (c == '\\') {
            c = *++*at;
            CU_ASSERT_FATAL(c == '\\' || c == '"' || c == 'n');
            if (c == 'n')
                c = '\n';
        }
        value[length++] = c;
    }
    ++*at;
    value[length] = '\0';
}

static void expect_label(const char **at, const struct kbtp_label *label, bool first)
{
    char value[128];
    CU_ASSERT_FATAL(take(at, first ? "{" : ","));
    CU_ASSERT_FATAL(take(at, label->name));
    CU_ASSERT_FATAL(take(at, "="));
    take_quoted(at, value, sizeof value);
    CU_ASSERT_STRING_EQUAL(value, label->value);
}

static void expect_head(const char **at, const struct kbtp_metric *metric)
{
    char line[512];
    snprintf(line, sizeof line, "# HELP %s %s\n# TYPE %s %s\n", metric->name, metric->help,
             metric->name, metric->type == KBTP_METRIC_COUNTER ? "counter" : "gauge");
    CU_ASSERT_FATAL(take(at, line));
}

static void expect_sample(const char **at, const struct kbtp_report *report,
                          const struct kbtp_sample *sample)
{
    char *end;
    if (sample->index == 0)
        expect_head(at, sample->metric);
    CU_ASSERT_FATAL(take(at, sample->metric->name));
    for (uint32_t n = 0; n < report->label_count; n++)
        expect_label(at, &report->labels[n], n == 0);
    for (uint32_t n = 0; n < sample->label_count; n++)
        expect_label(at, &sample->labels[n], report->label_count + n == 0);
    if (report->label_count + sample->label_count != 0)
        CU_ASSERT_FATAL(take(at, "}"));
    CU_ASSERT_FATAL(take(at, " "));
    if (sample->metric->type == KBTP_METRIC_COUNTER) {
        CU_ASSERT_EQUAL(strtoull(*at, &end, 10), (uint64_t)sample->value);
    } else {
        CU_ASSERT_EQUAL(strtoll(*at, &end, 10), sample->value);
    }
    *at = end;
    CU_ASSERT_FATAL(take(at, "\n"));
}

/* The text is what the iterator says, in its order, and nothing else. Returns the number of lines
 * with a number. */
static uint32_t expect_text(const struct kbtp_report *report)
{
    struct kbtp_counters_iterator iterator = {0};
    struct kbtp_sample sample;
    const char *at = text;
    uint32_t samples = 0;
    size_t length = kbtp_counters_text(report, text, TEXT_OCTETS);
    CU_ASSERT_FATAL(length < TEXT_OCTETS);
    CU_ASSERT_EQUAL(strlen(text), length);
    while (kbtp_counters_next(report, &iterator, &sample)) {
        expect_sample(&at, report, &sample);
        samples++;
    }
    CU_ASSERT_FALSE(kbtp_counters_next(report, &iterator, &sample));
    CU_ASSERT_STRING_EQUAL(at, "");
    return samples;
}

/* The number behind `series` in the text. */
static long long shown(const char *series)
{
    size_t length = strlen(series);
    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, series, length) == 0 && line[length] == ' ')
            return strtoll(line + length + 1, NULL, 10);
    }
    CU_FAIL("it is not in the text");
    return -1;
}

/* R-OPER-03: per operation and status, ring occupancy, and quota use per initiator. */
static void text_says_it(void)
{
    struct kbtp_counters counted[PAIR_WORKERS] = {0}, all = {0};
    struct kbtp_session_gauges of[3];
    struct kbtp_gauges gauges;
    struct pair_config config = pair_defaults();
    config.unchecked = true;
    open_with(&config);
    for (uint32_t i = 0; i < 2; i++)
        kbtp_worker_count_in(pair.workers[i], &counted[i]);
    for (uint32_t i = 0; i < 3; i++)
        CU_ASSERT_EQUAL_FATAL(pair_connect(&pair, i), 0);
    expect_status(run(0, KBTP_OP_ALLOC_STORE, 0, 64, KBTP_FLAG_SEAL), KBTP_STATUS_OK);
    expect_status(run(0, KBTP_OP_ALLOC_STORE, 1, 0, 0), KBTP_STATUS_OK);
    expect_status(run(0, KBTP_OP_LOAD, 0, 64, 0), KBTP_STATUS_OK);
    expect_status(run(0, KBTP_OP_LOAD, 9, 64, 0), KBTP_STATUS_NOT_VALID);
    pair_settle(&pair);
    kbtp_target_gauges(&pair.mem, &pair.target, of, &gauges);
    for (uint32_t i = 0; i < 2; i++) {
        kbtp_worker_counters(pair.workers[i], &all);
        kbtp_worker_gauges(pair.workers[i], &gauges);
    }
    struct kbtp_report report = {.counters = &all, .gauges = &gauges};
    CU_ASSERT(expect_text(&report) > KBTP_COUNTED_OPCODES * KBTP_COUNTED_STATUSES);
    CU_ASSERT_EQUAL(shown("kbtp_requests_total{opcode=\"ALLOC_STORE\",status=\"OK\"}"), 2);
    CU_ASSERT_EQUAL(shown("kbtp_requests_total{opcode=\"LOAD\",status=\"NOT_VALID\"}"), 1);
    CU_ASSERT_EQUAL(shown("kbtp_requests_total{opcode=\"other\",status=\"MALFORMED\"}"), 0);
    CU_ASSERT_EQUAL(shown("kbtp_loaded_octets_total"), 64);
    CU_ASSERT_EQUAL(shown("kbtp_stored_octets_total{by=\"read\"}"), 64);
    CU_ASSERT_EQUAL(shown("kbtp_sessions_opened_total{kind=\"new\"}"), 3);
    CU_ASSERT_EQUAL(shown("kbtp_ring_tickets"), config.target.block_count - 2);
    CU_ASSERT_EQUAL(shown("kbtp_sessions{state=\"active\"}"), 3);
    CU_ASSERT_EQUAL(shown("kbtp_session_blocks{session=\"0\"}"), 2);
    CU_ASSERT_EQUAL(shown("kbtp_session_quota_blocks{session=\"2\"}"), config.quotas[2]);
    close_pair();
}

#define MADE_UP 12u /* sessions */

/* A report of made-up numbers, each another one, without a target. */
static struct kbtp_report made_up(struct kbtp_counters *counters, struct kbtp_gauges *gauges,
                                  struct kbtp_session_gauges *of)
{
    uint64_t next = 1;
    for (uint32_t i = 0; i < KBTP_COUNTERS; i++)
        counters->values[i] = next++;
    for (uint32_t row = 0; row < KBTP_COUNTED_OPCODES; row++)
        for (uint32_t status = 0; status < KBTP_COUNTED_STATUSES; status++)
            counters->requests[row][status] = next++;
    for (uint32_t i = 0; i < KBTP_GAUGES; i++)
        gauges->values[i] = (int64_t)next++;
    for (uint32_t n = 0; n < MADE_UP; n++, next += 2)
        of[n] = (struct kbtp_session_gauges){(uint32_t)next, (uint32_t)next + 1};
    gauges->sessions = of;
    gauges->session_count = MADE_UP;
    return (struct kbtp_report){.counters = counters, .gauges = gauges};
}

/* Each number is shown, once, by one metric; names and labels are such as Prometheus takes, and no
 * two series are the same. */
static void every_number_is_shown_once(void)
{
    struct kbtp_counters counters;
    struct kbtp_gauges gauges;
    struct kbtp_session_gauges of[MADE_UP];
    struct kbtp_report report = made_up(&counters, &gauges, of);
    uint32_t numbers = KBTP_COUNTERS + KBTP_COUNTED_OPCODES * KBTP_COUNTED_STATUSES + KBTP_GAUGES;
    bool seen[512] = {false};
    struct kbtp_counters_iterator iterator = {0};
    struct kbtp_sample sample;
    while (kbtp_counters_next(&report, &iterator, &sample)) {
        CU_ASSERT_FATAL(sample.value >= 1 && sample.value < 512);
        CU_ASSERT_FALSE(seen[sample.value]);
        seen[sample.value] = true;
        for (uint32_t n = 0; n < sample.label_count; n++)
            CU_ASSERT_PTR_NOT_NULL_FATAL(sample.labels[n].value);
    }
    for (uint32_t i = 1; i <= numbers + 2 * MADE_UP; i++)
        CU_ASSERT(seen[i]);
    CU_ASSERT_EQUAL(expect_text(&report), numbers + 2 * MADE_UP);
    CU_ASSERT_PTR_NOT_NULL(kbtp_metric(0));
    for (uint32_t i = 0; kbtp_metric(i); i++) {
        const struct kbtp_metric *metric = kbtp_metric(i);
        CU_ASSERT_EQUAL(strspn(metric->name, "abcdefghijklmnopqrstuvwxyz_"), strlen(metric->name));
        bool total = strlen(metric->name) > 6 &&
                     strcmp(metric->name + strlen(metric->name) - 6, "_total") == 0;
        CU_ASSERT_EQUAL(total, metric->type == KBTP_METRIC_COUNTER);
        for (uint32_t j = 0; j < i; j++)
            CU_ASSERT_STRING_NOT_EQUAL(metric->name, kbtp_metric(j)->name);
    }
    report.gauges = NULL;
    expect_text(&report);
    CU_ASSERT_PTR_NULL(strstr(text, "gauge"));
    report = (struct kbtp_report){.gauges = &gauges};
    expect_text(&report);
    CU_ASSERT_PTR_NULL(strstr(text, "counter"));
    report.gauges = NULL;
    CU_ASSERT_EQUAL(expect_text(&report), 0);
}

/* Labels of the caller are escaped; the largest and the smallest numbers are written whole. */
static void escapes_and_large_numbers(void)
{
    static const struct kbtp_label labels[] = {{"target", "a \"b\"\\n\n\\"}, {"empty", ""}};
    struct kbtp_counters counters;
    struct kbtp_gauges gauges;
    struct kbtp_session_gauges of[MADE_UP];
    struct kbtp_report report = made_up(&counters, &gauges, of);
    counters.values[KBTP_COUNT_LOADED] = UINT64_MAX;
    gauges.values[KBTP_GAUGE_RING_TICKETS] = INT64_MIN;
    report.labels = labels;
    report.label_count = 2;
    expect_text(&report);
    CU_ASSERT_PTR_NOT_NULL(
        strstr(text, "kbtp_loaded_octets_total{target=\"a \\\"b\\\"\\\\n\\n\\\\\",empty=\"\"} "
                     "18446744073709551615\n"));
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "empty=\"\"} -9223372036854775808\n"));
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "empty=\"\",session=\"11\"} "));
}

/* Never an octet beyond the buffer, a NUL at its end, and always the length that is needed. */
static void a_buffer_too_small(void)
{
    static char whole[TEXT_OCTETS];
    struct kbtp_counters counters;
    struct kbtp_gauges gauges;
    struct kbtp_session_gauges of[MADE_UP];
    struct kbtp_report report = made_up(&counters, &gauges, of);
    size_t length = kbtp_counters_text(&report, whole, sizeof whole);
    CU_ASSERT_FATAL(length < sizeof whole);
    CU_ASSERT_EQUAL(kbtp_counters_text(&report, NULL, 0), length);
    for (size_t octets = 1; octets <= length + 1; octets += octets < length - 40 ? 37 : 1) {
        memset(text, '#', sizeof text);
        CU_ASSERT_EQUAL_FATAL(kbtp_counters_text(&report, text, octets), length);
        CU_ASSERT_EQUAL_FATAL(memcmp(text, whole, octets - 1), 0);
        CU_ASSERT_EQUAL_FATAL(text[octets - 1], '\0');
        CU_ASSERT_EQUAL_FATAL(text[octets], '#');
    }
}

int main(void)
{
    static const struct test tests[] = {
        {"the text says it", text_says_it},
    };
    static const struct test of_table[] = {
        {"every number is shown once", every_number_is_shown_once},
        {"escapes and large numbers", escapes_and_large_numbers},
        {"a buffer too small", a_buffer_too_small},
    };
    return run_tests("ref/counters_text", of_table, sizeof of_table / sizeof *of_table) ||
           run_over_providers("ref/counters_text", tests, sizeof tests / sizeof *tests, PROVIDERS);
}
