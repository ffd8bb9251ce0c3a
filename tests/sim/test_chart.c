/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The chart's two drawings. Linked with -Wl,--wrap=realloc,--wrap=calloc the suite also makes every
 * allocation fail in turn; without, that test says that it is skipped.
 */
#include "sim/chart.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sim/chart_draw.h"
#include "tests/run.h"
#include "tests/sim/chart_fixture.h"
#include "tests/sim/svg.h"
#include "tests/sim/wrapped.h"

enum { X, Y, TARGET, HEAD, TAIL, SLOT0, SLOT1, LANES };
static const struct chart_lane lanes[LANES] = {
    {"X", "", CHART_AGENT},
    {"Y", "", CHART_AGENT},
    {"target", "", CHART_AGENT},
    {"Head", "ticket 0", CHART_MEMORY},
    {"Tail", "ticket 2", CHART_MEMORY},
    {"slot 0", "0: 100", CHART_MEMORY},
    {"slot 1", "1: 101", CHART_MEMORY},
};

static void add_lanes(struct chart *chart)
{
    chart_init(chart);
    for (unsigned i = 0; i < LANES; i++) {
        struct chart_lane *lane = chart_add_lane(chart);
        if (lane)
            *lane = lanes[i];
    }
}

static void add(struct chart *chart, uint32_t agent, uint32_t memory, enum chart_row_kind kind,
                const char *text, const char *value)
{
    uint32_t step = chart->rows_count > 0 ? chart->rows[chart->rows_count - 1].step + 1 : 1;
    struct chart_row *row = chart_add_row(chart);
    if (!row)
        return;
    row->step = step;
    row->agent_lane = agent;
    row->memory_lane = memory;
    row->kind = kind;
    snprintf(row->text, sizeof row->text, "%s", text);
    snprintf(row->value, sizeof row->value, "%s", value);
}

static void add_rows(struct chart *chart)
{
    add(chart, X, HEAD, CHART_BOTH, "FetchAdd Head -> ticket 0", "ticket 1");
    add(chart, X, SLOT0, CHART_READ, "reads slot 0 Sequence -> 0", "");
    add(chart, X, SLOT0, CHART_READ, "reads slot 0 Block Offset -> block 100", "");
    add(chart, X, 0, CHART_LOCAL, "block 100 is X's", "");
    add(chart, X, SLOT0, CHART_WRITE, "consumes slot 0", "0: -");
    add(chart, TARGET, TAIL, CHART_BOTH, "FetchAdd Tail -> ticket 2", "ticket 3");
    for (unsigned i = 0; i < 5; i++)
        add(chart, Y, SLOT1, CHART_READ, "reads slot 1 Sequence -> 1", "");
    add(chart, TARGET, SLOT0, CHART_WRITE, "drains slot 0 Sequence = 2", "2: 100");
    add(chart, TARGET, 0, CHART_FAULT,
        "slot-not-overwritten: slot 0 held block 101, not consumed, when ticket 2 was written", "");
}

static void typical(struct chart *chart)
{
    add_lanes(chart);
    add_rows(chart);
    snprintf(chart->title, sizeof chart->title, "slot-not-overwritten");
    snprintf(
        chart->subtitle, sizeof chart->subtitle,
        "kbtp replay scenarios/ring/deferred-free.yaml --mutant ring-no-deferral 0.1.1.2.0.0.1");
}

static void test_growth(void)
{
    struct chart chart;
    chart_init(&chart);
    for (unsigned i = 0; i < 40; i++) {
        struct chart_lane *lane = chart_add_lane(&chart);
        CU_ASSERT_PTR_NOT_NULL_FATAL(lane);
        CU_ASSERT_EQUAL(lane->name[0], 0);
        snprintf(lane->name, sizeof lane->name, "lane %u", i);
    }
    for (uint32_t i = 0; i < 1000; i++) {
        struct chart_row *row = chart_add_row(&chart);
        CU_ASSERT_PTR_NOT_NULL_FATAL(row);
        CU_ASSERT_EQUAL(row->step, 0);
        row->step = i + 1;
    }
    CU_ASSERT_EQUAL(chart.lanes_count, 40);
    CU_ASSERT_EQUAL(chart.rows_count, 1000);
    CU_ASSERT_STRING_EQUAL(chart.lanes[7].name, "lane 7");
    for (uint32_t i = 0; i < 1000; i++)
        CU_ASSERT_EQUAL(chart.rows[i].step, i + 1);
    CU_ASSERT_FALSE(chart.failed);
    chart_free(&chart);
    CU_ASSERT_EQUAL(chart.rows_count, 0);
}

static void test_bounds(void)
{
    struct chart chart;
    chart_init(&chart);
    for (unsigned i = 0; i < CHART_MAX_LANES; i++)
        CU_ASSERT_PTR_NOT_NULL_FATAL(chart_add_lane(&chart));
    free(draw(&chart, 60, true));
    free(draw(&chart, 0, true));
    CU_ASSERT_PTR_NULL(chart_add_lane(&chart));
    CU_ASSERT_TRUE(chart.failed);

    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    CU_ASSERT_PTR_NOT_NULL_FATAL(out);
    CU_ASSERT_EQUAL(chart_print_text(&chart, out, 80, true), -ENOMEM);
    CU_ASSERT_EQUAL(chart_write_svg(&chart, out), -ENOMEM);
    fclose(out);
    CU_ASSERT_EQUAL(size, 0);
    free(text);

    chart.failed = false;
    chart.rows_count = chart.rows_capacity = CHART_MAX_ROWS; /* as if it had grown so far */
    CU_ASSERT_PTR_NULL(chart_add_row(&chart));
    CU_ASSERT_TRUE(chart.failed);
    chart.rows_count = chart.rows_capacity = 0;
    chart_free(&chart);
}

static void test_no_memory(void)
{
    struct chart chart;
    bool failed = true;
    wrapped = 0;
    add_lanes(&chart);
    chart_free(&chart);
    if (wrapped == 0) {
        printf("skipped: not linked with -Wl,--wrap=realloc,--wrap=calloc ");
        return;
    }
    for (unsigned n = 1; failed; n++) {
        FILE *out = fopen("/dev/null", "w");
        CU_ASSERT_PTR_NOT_NULL_FATAL(out);
        CU_ASSERT_FATAL(n < 100);
        wrapped = 0;
        fail_at = n;
        typical(&chart);
        bool building = chart.failed;
        int text = chart_print_text(&chart, out, 100, true);
        int svg = chart_write_svg(&chart, out);
        failed = text != 0 || svg != 0;
        CU_ASSERT_TRUE(text == 0 || text == -ENOMEM);
        CU_ASSERT_TRUE(svg == 0 || svg == -ENOMEM);
        CU_ASSERT_TRUE(!building || (text != 0 && svg != 0));
        CU_ASSERT_EQUAL(failed, wrapped >= n);
        fail_at = 0;
        chart_free(&chart);
        fclose(out);
    }
}

static void check_lines(const char *text, unsigned width, bool utf8)
{
    while (*text) {
        const char *end = strchr(text, '\n');
        CU_ASSERT_PTR_NOT_NULL_FATAL(end);
        CU_ASSERT(end == text || end[-1] != ' ');
        unsigned columns = 0;
        while (text < end) {
            CU_ASSERT(utf8 || (unsigned char)*text < 0x80);
            CU_ASSERT_NOT_EQUAL(chart_next_char(&text), CHART_UNPRINTABLE);
            columns++;
        }
        CU_ASSERT(columns <= width);
        text = end + 1;
    }
}

static void test_text_width(void)
{
    struct chart chart;
    typical(&chart);
    for (unsigned width = 60; width <= 200; width++)
        for (unsigned utf8 = 0; utf8 < 2; utf8++) {
            char *text = draw(&chart, width, utf8);
            check_lines(text, width, utf8);
            for (unsigned i = 0; i < LANES; i++)
                CU_ASSERT_PTR_NOT_NULL(strstr(text, lanes[i].name));
            CU_ASSERT_EQUAL(
                occurrences(text, "[ticket 1]") + occurrences(text, "[Head = ticket 1]"), 1);
            CU_ASSERT_EQUAL(occurrences(text, "[0: -]") + occurrences(text, "[slot 0 = 0: -]"), 1);
            CU_ASSERT_EQUAL(occurrences(text, utf8 ? "●" : "*"), chart.rows_count - 1);
            CU_ASSERT_EQUAL(occurrences(text, utf8 ? "⇄" : "<>"), 2);
            CU_ASSERT_EQUAL(occurrences(text, "!! slot-not-overwritten:"), 1);
            free(text);
        }
    chart_free(&chart);
}

/* All lanes in columns, then those that change, then none. */
static void test_text_columns(void)
{
    struct chart chart;
    typical(&chart);
    char *all = draw(&chart, 120, true);
    CU_ASSERT_PTR_NOT_NULL(strstr(all, "Head       Tail       slot 0   slot 1\n"));
    CU_ASSERT_PTR_NOT_NULL(strstr(all, "   1  ●  │    │     ⇄  FetchAdd Head "));
    CU_ASSERT_PTR_NOT_NULL(strstr(all, " [ticket 1]  ticket 2   0: 100   1: 101\n"));
    CU_ASSERT_PTR_NOT_NULL(strstr(all, "  ticket 1   ticket 2  [0: -]    1: 101\n"));
    CU_ASSERT_PTR_NULL(strstr(all, "at the start:"));
    char *some = draw(&chart, 95, true);
    CU_ASSERT_PTR_NOT_NULL(strstr(some, "Head       Tail       slot 0\n"));
    CU_ASSERT_PTR_NOT_NULL(strstr(some, "at the start: slot 1 = 1: 101\n"));
    char *none = draw(&chart, 70, true);
    CU_ASSERT_PTR_NOT_NULL(strstr(none, "target     action\n"));
    CU_ASSERT_PTR_NOT_NULL(strstr(none, "FetchAdd Head -> ticket 0  [Head = ticket 1]\n"));
    CU_ASSERT_PTR_NOT_NULL(strstr(none, "at the start: Head = ticket 0, Tail = ticket 2,"));
    free(all);
    free(some);
    free(none);
    chart_free(&chart);
}

static void test_text_header_repeated(void)
{
    struct chart chart;
    add_lanes(&chart);
    for (unsigned i = 0; i < 121; i++)
        add(&chart, Y, SLOT1, CHART_READ, "reads slot 1", "");
    char *text = draw(&chart, 120, false);
    CU_ASSERT_EQUAL(occurrences(text, "step  X  Y  target"), 4);
    CU_ASSERT_EQUAL(occurrences(text, "\n"),
                    121 + 4 + 3 + 1); /* rows, headers, blanks, the start */
    free(text);
    chart_free(&chart);
}

/* Whatever the strings are, lines stay in the width and SVG stays well-formed. */
static void hostile(struct chart *chart)
{
    static const char *const texts[] = {
        "\x1b[2J\a\n",
        "\xff\xc0\xaf\xed\xa0\x80",
        "<b a=\"1\">&amp;]]></text>",
        "é…→ 日本語",
        "cut \xe2\x94",
        "",
    };
    chart_init(chart);
    for (unsigned i = 0; i < 32; i++) {
        struct chart_lane *lane = chart_add_lane(chart);
        CU_ASSERT_PTR_NOT_NULL_FATAL(lane);
        lane->kind = i % 2 ? CHART_MEMORY : CHART_AGENT;
        snprintf(lane->name, sizeof lane->name, "%s", texts[i % 6]);
        memset(lane->value, 'W', sizeof lane->value - 1);
    }
    for (unsigned i = 0; i < 300; i++) { /* agents and lanes that are none as well */
        add(chart, i * 2 % 36, (i * 10 + 1) % 41, (enum chart_row_kind)(i % (CHART_ARRIVES + 1)),
            texts[i % 6], texts[i % 5]);
        if (i % 7 == 0)
            memset(chart->rows[i].text, 'w', sizeof chart->rows[i].text - 1);
    }
    chart->rows[299].step = UINT32_MAX;
    memset(chart->title, 'T', sizeof chart->title - 1);
    memset(chart->subtitle, '<', sizeof chart->subtitle - 1);
}

static void test_text_hostile(void)
{
    struct chart chart;
    hostile(&chart);
    for (unsigned width = 60; width <= 1500; width += 37)
        for (unsigned utf8 = 0; utf8 < 2; utf8++) {
            char *text = draw(&chart, width, utf8);
            for (const char *line = text; *line; line = strchr(line, '\n') + 1) {
                unsigned columns = 0;
                for (const char *at = line; *at != '\n'; columns++)
                    chart_next_char(&at);
                CU_ASSERT(columns <= width);
            }
            CU_ASSERT_PTR_NULL(strpbrk(text, "\x1b\a"));
            free(text);
        }
    chart_free(&chart);
}

static void test_svg_well_formed(void)
{
    struct chart chart;
    CU_ASSERT_FALSE(svg_well_formed("<?xml ?>\n<svg><g></svg></g>")); /* the scanner's own test */
    CU_ASSERT_FALSE(svg_well_formed("<?xml ?>\n<svg>&</svg>"));
    CU_ASSERT_FALSE(svg_well_formed("<?xml ?>\n<svg a=\"<\"></svg>"));
    CU_ASSERT_TRUE(svg_well_formed("<?xml ?>\n<svg a=\"/>\"><g/>&lt;</svg>\n"));

    typical(&chart);
    char *svg = draw(&chart, 0, true);
    char *again = draw(&chart, 0, true);
    CU_ASSERT_TRUE(svg_well_formed(svg));
    CU_ASSERT_STRING_EQUAL(svg, again);
    CU_ASSERT_EQUAL(occurrences(svg, "class=\"band\""), 1);
    CU_ASSERT_EQUAL(occurrences(svg, "class=\"value\""), 4);
    CU_ASSERT_EQUAL(occurrences(svg, "class=\"start\""), 4);
    CU_ASSERT_EQUAL(occurrences(svg, "class=\"ring\""), 3);
    for (unsigned i = 0; i < LANES; i++)
        CU_ASSERT_PTR_NOT_NULL(strstr(svg, lanes[i].name));
    free(svg);
    free(again);
    chart_free(&chart);

    hostile(&chart);
    svg = draw(&chart, 0, true);
    CU_ASSERT_TRUE(svg_well_formed(svg));
    free(svg);
    chart_free(&chart);

    chart_init(&chart);
    svg = draw(&chart, 0, true);
    CU_ASSERT_TRUE(svg_well_formed(svg));
    free(svg);
    free(draw(&chart, 60, true));
    chart_free(&chart);
}

static void test_svg_escapes(void)
{
    struct chart chart;
    add_lanes(&chart);
    snprintf(chart.title, sizeof chart.title, "<title> & \"more\"");
    add(&chart, X, HEAD, CHART_WRITE, "a<b>&\"c\"", "<&>");
    char *svg = draw(&chart, 0, true);
    CU_ASSERT_TRUE(svg_well_formed(svg));
    CU_ASSERT_EQUAL(occurrences(svg, "&lt;title&gt; &amp; &quot;more&quot;"), 2);
    CU_ASSERT_EQUAL(occurrences(svg, ">a&lt;b&gt;&amp;&quot;c&quot;<"), 1);
    CU_ASSERT_EQUAL(occurrences(svg, ">&lt;&amp;&gt;<"), 1);
    free(svg);
    chart_free(&chart);
}

/* `reads` equal reads by Y, the last but one changing the value when `value` is given. */
static char *draw_reads(unsigned reads, const char *value)
{
    struct chart chart;
    add_lanes(&chart);
    add(&chart, X, SLOT1, CHART_READ, "reads slot 1", "");
    for (unsigned i = 0; i < reads; i++)
        add(&chart, Y, SLOT1, CHART_READ, "reads slot 1", i + 2 == reads ? value : "");
    add(&chart, Y, SLOT1, CHART_WRITE, "reads slot 1", "");
    char *svg = draw(&chart, 0, true);
    chart_free(&chart);
    return svg;
}

static void test_svg_folds(void)
{
    char *three = draw_reads(3, "");
    CU_ASSERT_EQUAL(occurrences(three, "×"), 0);
    CU_ASSERT_EQUAL(occurrences(three, ">reads slot 1"), 5);
    char *four = draw_reads(4, "");
    CU_ASSERT_EQUAL(occurrences(four, ">reads slot 1 … ×4<"), 1);
    CU_ASSERT_EQUAL(occurrences(four, ">reads slot 1"), 3);
    CU_ASSERT_EQUAL(occurrences(four, ">2–5<"), 1);
    char *many = draw_reads(50, "1: 101"); /* what it holds already */
    CU_ASSERT_EQUAL(occurrences(many, ">reads slot 1 … ×50<"), 1);
    char *change = draw_reads(9, "5: 107");
    CU_ASSERT_EQUAL(occurrences(change, ">reads slot 1 … ×7<"), 1);
    CU_ASSERT_EQUAL(occurrences(change, ">reads slot 1"), 5);
    free(three);
    free(four);
    free(many);
    free(change);
}

static unsigned svg_width(const struct chart *chart)
{
    char *svg = draw(chart, 0, true);
    const char *width = strstr(svg, " width=\"");
    CU_ASSERT_PTR_NOT_NULL_FATAL(width);
    unsigned pixels = (unsigned)strtoul(width + 8, NULL, 10);
    free(svg);
    return pixels;
}

static void test_svg_width_grows(void)
{
    struct chart chart;
    add_lanes(&chart);
    unsigned narrow = svg_width(&chart);
    for (unsigned i = 0; i < 9; i++) {
        struct chart_lane *lane = chart_add_lane(&chart);
        CU_ASSERT_PTR_NOT_NULL_FATAL(lane);
        snprintf(lane->name, sizeof lane->name, "entry %u", i);
        lane->kind = CHART_MEMORY;
    }
    CU_ASSERT(svg_width(&chart) >= narrow + 9 * 60);
    chart_free(&chart);
}

static void test_full_disk(void)
{
    struct chart chart;
    typical(&chart);
    for (unsigned svg = 0; svg < 2; svg++) {
        FILE *out = fopen("/dev/full", "w");
        CU_ASSERT_PTR_NOT_NULL_FATAL(out);
        int error = svg ? chart_write_svg(&chart, out) : chart_print_text(&chart, out, 80, true);
        CU_ASSERT_EQUAL(error, -EIO);
        fclose(out);
    }
    chart_free(&chart);
}

static const struct test tests[] = {
    {"lanes and rows grow", test_growth},
    {"bounds are refused", test_bounds},
    {"no memory, at each allocation", test_no_memory},
    {"text: within the width", test_text_width},
    {"text: which lanes get columns", test_text_columns},
    {"text: header every 40 rows", test_text_header_repeated},
    {"text: hostile strings", test_text_hostile},
    {"svg: well-formed", test_svg_well_formed},
    {"svg: escapes", test_svg_escapes},
    {"svg: folds equal reads", test_svg_folds},
    {"svg: width grows with lanes", test_svg_width_grows},
    {"a full disk is reported", test_full_disk},
};

int main(void)
{
    return run_tests("chart", tests, sizeof tests / sizeof *tests);
}
