/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A chart as SVG, in one file without scripts or fonts. Agents stand at the left, memory at the
 * right; the gap between the two is as wide as needed for each action to end before its arrow does.
 * Lengths are whole pixels: no locale has a say.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sim/chart.h"
#include "sim/chart_draw.h"

#define ROW_HEIGHT 26u
#define ARROW_DOWN 16u /* from the top of a row to its arrow */
#define TEXT_DOWN 12u  /* to the base line of the action */
#define MARGIN 20u
#define HEAD_HEIGHT 24u
#define HEADS_TOP 64u
#define ROWS_TOP (HEADS_TOP + HEAD_HEIGHT + 34u) /* the values at the start in between */
#define REPEAT_HEIGHT (HEAD_HEIGHT + 16u)
#define FOOT_ROWS 20u /* charts longer than this have the names at the foot as well */
#define VALUE_HEIGHT 16u
#define LANE_MIN 66u
#define LANE_GAP 14u
#define DOT 4u         /* radius */
#define INDENT 9u      /* from the lifeline to the text */
#define POINT 8u       /* length of an arrow head */
#define ON_THE_WAY 22u /* pixels between the other lifeline and a message that is not there yet */
#define FOLD_FROM 4u
#define AGENT_COLOURS 6u

/* Sizes in pixels of the fonts in `style`, for the estimate of a text's width. */
enum font { ACTION_FONT = 11, FAULT_FONT = 12, NAME_FONT = 13, TITLE_FONT = 17 };

static const char style[] =
    "text{font-family:'DejaVu Sans',Verdana,Geneva,sans-serif;font-size:11px;fill:#1c2530}\n"
    ".title{font-size:17px;font-weight:bold}\n"
    ".sub{fill:#5a6675}\n"
    ".halo{paint-order:stroke;stroke:#fff;stroke-width:4px;stroke-linejoin:round}\n"
    ".step{fill:#7b8794;text-anchor:end}\n"
    ".mono{font-family:'DejaVu Sans Mono',Menlo,Consolas,monospace;text-anchor:middle}\n"
    ".name{font-size:13px;text-anchor:middle}\n"
    ".agent{fill:#fff;font-weight:bold}\n"
    ".memory{fill:#6b4a10}\n"
    ".life{opacity:.45;shape-rendering:crispEdges}\n"
    ".lm{stroke:#dcc79d;shape-rendering:crispEdges;stroke-dasharray:4 3}\n"
    ".head{fill:#fdf0d5;stroke:#b98224}\n"
    ".value{fill:#fffaf0;stroke:#b98224}\n"
    ".start{fill:#fff;stroke:#dcc79d}\n"
    ".line{fill:none;stroke-width:1.4}\n"
    ".ring{fill:#fff;stroke-width:1.4}\n"
    ".rule{stroke:#edf0f3;shape-rendering:crispEdges}\n"
    ".band{fill:#fbd9d6;stroke:#c62828}\n"
    ".fault{font-size:12px;font-weight:bold;fill:#8e1515}\n"
    ".red{fill:#c62828}\n"
    ".a0{fill:#1d5fa6;stroke:#1d5fa6}\n"
    ".a1{fill:#0b7f8f;stroke:#0b7f8f}\n"
    ".a2{fill:#5b4bb5;stroke:#5b4bb5}\n"
    ".a3{fill:#3a86d6;stroke:#3a86d6}\n"
    ".a4{fill:#3d6f7a;stroke:#3d6f7a}\n"
    ".a5{fill:#7e66cf;stroke:#7e66cf}\n";

struct place {
    unsigned x; /* of the lifeline */
    unsigned width;
    unsigned colour; /* agents */
};

struct drawing {
    const struct chart *chart;
    FILE *out;
    const char **held;    /* by lane: its value now */
    struct place *places; /* by lane */
    unsigned left;        /* behind the step numbers */
    unsigned lanes_end;   /* right edge of the last lane */
    unsigned width, height;
    uint32_t drawn; /* rows, a folded run for one */
};

/*
 * An upper bound, from DejaVu Sans and Verdana, which are wider than the other fonts that a viewer
 * may take for sans-serif.
 */
static unsigned text_width(const char *text, enum font font)
{
    unsigned hundredths = 0;
    for (uint32_t point; (point = chart_next_char(&text)) != 0;) {
        char c = (char)(point < 0x80 ? point : '@');
        if (strchr("ijlI.,:;'!()[]/| -tfr`", c))
            hundredths += 45;
        else if (strchr("mwMW@%", c))
            hundredths += 100;
        else if (strchr("#<>=+~", c) || (c >= 'A' && c <= 'Z'))
            hundredths += 82;
        else
            hundredths += 65;
    }
    unsigned bold = font == ACTION_FONT ? 100 : 112;
    return (hundredths * (unsigned)font * bold + 9999) / 10000;
}

static unsigned value_width(const char *value)
{
    return chart_columns(value) * 7 + 10;
}

static bool holds_same(const struct drawing *d, const struct chart_row *row)
{
    return row->value[0] == '\0' || strcmp(row->value, d->held[row->memory_lane]) == 0;
}

/* How many rows from `first` on are drawn as one. */
static uint32_t run_length(const struct drawing *d, uint32_t first)
{
    const struct chart *chart = d->chart;
    const struct chart_row *row = &chart->rows[first];
    uint32_t run = 0;
    if (row->kind != CHART_READ || !chart_is_access(chart, row))
        return 1;
    for (; first + run < chart->rows_count; run++) {
        const struct chart_row *next = &row[run];
        if (next->kind != CHART_READ || next->agent_lane != row->agent_lane ||
            next->memory_lane != row->memory_lane || strcmp(next->text, row->text) != 0 ||
            !holds_same(d, next))
            break;
    }
    return run >= FOLD_FROM ? run : 1;
}

static void row_text(char *text, size_t size, const struct chart_row *row, uint32_t run)
{
    if (run > 1)
        snprintf(text, size, "%s … ×%u", row->text, run);
    else
        snprintf(text, size, "%s", row->text);
}

static void step_text(char *text, size_t size, const struct chart_row *row, uint32_t run)
{
    if (row[run - 1].step != row->step)
        snprintf(text, size, "%u–%u", row->step, row[run - 1].step);
    else
        snprintf(text, size, "%u", row->step);
}

static void widen(unsigned *width, unsigned needed)
{
    if (*width < needed)
        *width = needed;
}

/* Width of each lane, of the step numbers, and the number of rows to draw. */
static void measure(struct drawing *d)
{
    const struct chart *chart = d->chart;
    char step[32];
    unsigned steps = 0;
    for (uint32_t i = 0; i < chart->lanes_count; i++) {
        d->places[i].width = LANE_MIN;
        widen(&d->places[i].width, text_width(chart->lanes[i].name, NAME_FONT) + 16);
        if (chart->lanes[i].kind == CHART_MEMORY)
            widen(&d->places[i].width, value_width(chart->lanes[i].value));
    }
    for (uint32_t i = 0, run; i < chart->rows_count; i += run) {
        const struct chart_row *row = &chart->rows[i];
        run = run_length(d, i);
        step_text(step, sizeof step, row, run);
        widen(&steps, text_width(step, ACTION_FONT));
        if (chart_held_update(chart, d->held, row))
            widen(&d->places[row->memory_lane].width, value_width(row->value));
        d->drawn++;
    }
    chart_held_start(chart, d->held);
    d->left = MARGIN + steps + 10;
}

static unsigned place_lanes(struct drawing *d, enum chart_lane_kind kind, unsigned at)
{
    unsigned colour = 0;
    for (uint32_t i = 0; i < d->chart->lanes_count; i++) {
        if (d->chart->lanes[i].kind != kind)
            continue;
        d->places[i].x = at + d->places[i].width / 2;
        d->places[i].colour = colour++ % AGENT_COLOURS;
        at += d->places[i].width + LANE_GAP;
    }
    return at;
}

static unsigned agent_x(const struct drawing *d, const struct chart_row *row)
{
    return chart_lane_is(d->chart, row->agent_lane, CHART_AGENT) ? d->places[row->agent_lane].x
                                                                 : d->left;
}

/* Where the words of a message begin: above its arrow if they fit there, else behind it. */
static unsigned message_x(const struct drawing *d, const struct chart_row *row, bool *above)
{
    unsigned a = d->places[row->agent_lane].x, b = d->places[row->memory_lane].x;
    unsigned left = a < b ? a : b, right = a < b ? b : a;
    *above = left + INDENT + text_width(row->text, ACTION_FONT) + POINT <= right;
    return (*above ? left : right) + INDENT;
}

static unsigned words_x(const struct drawing *d, const struct chart_row *row)
{
    bool above;
    return chart_is_message(d->chart, row) ? message_x(d, row, &above) : agent_x(d, row) + INDENT;
}

/* Behind the agent's lifeline, unless only the whole band is long enough. */
static unsigned fault_x(const struct drawing *d, const struct chart_row *row)
{
    unsigned x = agent_x(d, row);
    return x + INDENT + text_width(row->text, FAULT_FONT) <= d->lanes_end ? x : d->left;
}

/* How many pixels memory has to move right for the actions to end before their arrows do. */
static unsigned fit_accesses(struct drawing *d)
{
    const struct chart *chart = d->chart;
    char text[CHART_TEXT + 32];
    unsigned shift = 0;
    for (uint32_t i = 0, run; i < chart->rows_count; i += run) {
        const struct chart_row *row = &chart->rows[i];
        run = run_length(d, i);
        if (!chart_is_access(chart, row))
            continue;
        row_text(text, sizeof text, row, run);
        unsigned end = agent_x(d, row) + INDENT + text_width(text, ACTION_FONT);
        unsigned room = d->places[row->memory_lane].x - POINT;
        if (chart_held_update(chart, d->held, row))
            room -= value_width(row->value) / 2;
        widen(&shift, end > room ? end - room : 0);
    }
    chart_held_start(chart, d->held);
    return shift;
}

/* Where the longest of the lanes, the titles and the texts without an arrow ends. */
static unsigned right_end(const struct drawing *d)
{
    const struct chart *chart = d->chart;
    unsigned end = d->lanes_end;
    widen(&end, MARGIN + text_width(chart->title, TITLE_FONT));
    widen(&end, MARGIN + text_width(chart->subtitle, ACTION_FONT));
    for (uint32_t i = 0; i < chart->rows_count; i++) {
        const struct chart_row *row = &chart->rows[i];
        if (row->kind == CHART_FAULT)
            widen(&end, fault_x(d, row) + 2 * INDENT + text_width(row->text, FAULT_FONT));
        else if (!chart_is_access(chart, row))
            widen(&end, words_x(d, row) + text_width(row->text, ACTION_FONT));
    }
    return end;
}

/* Top of the n-th drawn row. */
static unsigned row_top(uint32_t n)
{
    return ROWS_TOP + n * ROW_HEIGHT + n / CHART_HEADER_EVERY * REPEAT_HEIGHT;
}

static int lay_out(struct drawing *d)
{
    const struct chart *chart = d->chart;
    d->held = chart_held_new(chart);
    d->places = calloc(chart->lanes_count + 1, sizeof *d->places);
    if (!d->held || !d->places)
        return -ENOMEM;
    measure(d);
    unsigned memory = place_lanes(d, CHART_AGENT, d->left) + LANE_GAP;
    place_lanes(d, CHART_MEMORY, memory);
    d->lanes_end = place_lanes(d, CHART_MEMORY, memory + fit_accesses(d)) - LANE_GAP;
    d->width = right_end(d) + MARGIN;
    d->height = d->drawn > 0 ? row_top(d->drawn - 1) + ROW_HEIGHT + 12 : ROWS_TOP;
    d->height += d->drawn > FOOT_ROWS ? HEAD_HEIGHT + MARGIN : MARGIN;
    return 0;
}

static void put_text(struct drawing *d, const char *text)
{
    for (const char *at = text; chart_next_char(&text) != 0; at = text) {
        const char *again = at;
        if (chart_next_char(&again) == CHART_UNPRINTABLE)
            fputs("\ufffd", d->out);
        else if (*at == '<')
            fputs("&lt;", d->out);
        else if (*at == '>')
            fputs("&gt;", d->out);
        else if (*at == '&')
            fputs("&amp;", d->out);
        else if (*at == '"')
            fputs("&quot;", d->out);
        else
            fwrite(at, 1, (size_t)(text - at), d->out);
    }
}

static void put_label(struct drawing *d, const char *class, unsigned x, unsigned y,
                      const char *text)
{
    fprintf(d->out, "<text class=\"%s\" x=\"%u\" y=\"%u\">", class, x, y);
    put_text(d, text);
    fputs("</text>\n", d->out);
}

static void put_box(struct drawing *d, const char *class, unsigned x, unsigned y, unsigned width,
                    unsigned height)
{
    fprintf(d->out, "<rect class=\"%s\" x=\"%u\" y=\"%u\" width=\"%u\" height=\"%u\" rx=\"3\"/>\n",
            class, x - width / 2, y, width, height);
}

static void put_heads(struct drawing *d, unsigned top)
{
    for (uint32_t i = 0; i < d->chart->lanes_count; i++) {
        const struct chart_lane *lane = &d->chart->lanes[i];
        const struct place *place = &d->places[i];
        if (lane->kind == CHART_IDLE)
            continue;
        char class[] = "a0";
        class[1] = (char)('0' + place->colour);
        put_box(d, lane->kind == CHART_AGENT ? class : "head", place->x, top, place->width,
                HEAD_HEIGHT);
        put_label(d, lane->kind == CHART_AGENT ? "name agent" : "name memory", place->x, top + 17,
                  lane->name);
    }
}

static void put_lifelines(struct drawing *d)
{
    unsigned bottom = d->height - MARGIN;
    for (uint32_t i = 0; i < d->chart->lanes_count; i++) {
        unsigned x = d->places[i].x;
        char class[] = "life a0";
        if (d->chart->lanes[i].kind == CHART_IDLE)
            continue;
        class[6] = (char)('0' + d->places[i].colour);
        fprintf(d->out, "<path class=\"%s\" d=\"M%u %uV%u\"/>\n",
                d->chart->lanes[i].kind == CHART_AGENT ? class : "lm", x, HEADS_TOP, bottom);
    }
}

static void put_value(struct drawing *d, const char *class, uint32_t lane, unsigned middle)
{
    const char *value = d->held[lane];
    unsigned x = d->places[lane].x;
    put_box(d, class, x, middle - VALUE_HEIGHT / 2, value_width(value), VALUE_HEIGHT);
    put_label(d, "mono", x, middle + 4, value);
}

static void put_start(struct drawing *d)
{
    for (uint32_t i = 0; i < d->chart->lanes_count; i++)
        if (d->chart->lanes[i].kind == CHART_MEMORY && d->held[i][0])
            put_value(d, "start", i, HEADS_TOP + HEAD_HEIGHT + 17);
}

/* `end` is the edge of the value's box, or the lifeline. */
static void put_arrow(struct drawing *d, const struct chart_row *row, unsigned end, unsigned y)
{
    const struct place *from = &d->places[row->agent_lane];
    bool to_agent = row->kind != CHART_WRITE;
    bool to_memory = row->kind != CHART_READ;
    unsigned start = from->x + DOT + 1;
    fprintf(d->out, "<g class=\"a%u\"><path class=\"line\" d=\"M%u %uH%u\"/>", from->colour,
            to_agent ? start + POINT - 2 : start, y, to_memory ? end - POINT + 2 : end);
    if (to_agent)
        fprintf(d->out, "<path stroke=\"none\" d=\"M%u %ul%u -4v8z\"/>", start, y, POINT);
    if (to_memory)
        fprintf(d->out, "<path stroke=\"none\" d=\"M%u %ul-%u -4v8z\"/>", end, y, POINT);
    else
        fprintf(d->out, "<circle class=\"ring\" cx=\"%u\" cy=\"%u\" r=\"3\"/>", end, y);
    fputs("</g>\n", d->out);
}

static void put_dot(struct drawing *d, uint32_t agent, unsigned y, bool red)
{
    char class[] = "a0";
    class[1] = (char)('0' + d->places[agent].colour);
    fprintf(d->out, "<circle class=\"%s\" cx=\"%u\" cy=\"%u\" r=\"%u\"/>\n", red ? "red" : class,
            d->places[agent].x, y, DOT);
}

/* From lifeline to lifeline; what is on the way ends before the other one, or begins hollow. */
static void put_message(struct drawing *d, const struct chart_row *row, unsigned top)
{
    unsigned from = d->places[row->agent_lane].x, to = d->places[row->memory_lane].x;
    unsigned y = top + ARROW_DOWN, colour = d->places[row->agent_lane].colour;
    int way = to > from ? 1 : -1;
    bool arrives = row->kind != CHART_LEAVES;
    int end = (int)to - way * (arrives ? (int)POINT - 2 : (int)ON_THE_WAY);
    bool above;
    unsigned x = message_x(d, row, &above);
    put_label(d, "halo", x, above ? top + TEXT_DOWN : y + 4, row->text);
    fprintf(d->out, "<g class=\"a%u\"><path class=\"line\"%s d=\"M%d %uH%d\"/>", colour,
            row->kind == CHART_MESSAGE ? "" : " stroke-dasharray=\"5 3\"",
            (int)from + way * (int)(DOT + 1), y, end);
    if (arrives)
        fprintf(d->out, "<path stroke=\"none\" d=\"M%u %ul%d -4v8z\"/>", to, y, -way * (int)POINT);
    else
        fprintf(d->out, "<circle class=\"ring\" cx=\"%d\" cy=\"%u\" r=\"3\"/>", end, y);
    if (row->kind == CHART_ARRIVES)
        fprintf(d->out, "<circle class=\"ring\" cx=\"%u\" cy=\"%u\" r=\"%u\"/>", from, y, DOT);
    fputs("</g>\n", d->out);
    if (row->kind != CHART_ARRIVES)
        put_dot(d, row->agent_lane, y, false);
}

static void put_fault(struct drawing *d, const struct chart_row *row, unsigned top)
{
    unsigned x = fault_x(d, row);
    fprintf(d->out,
            "<rect class=\"band\" x=\"%u\" y=\"%u\" width=\"%u\" height=\"%u\" rx=\"3\"/>\n",
            d->left - 4, top + 2, d->width - MARGIN - d->left + 8, ROW_HEIGHT - 4);
    if (x != d->left)
        put_dot(d, row->agent_lane, top + ROW_HEIGHT / 2, true);
    put_label(d, "fault", x + INDENT, top + ROW_HEIGHT / 2 + 4, row->text);
}

static void put_row(struct drawing *d, const struct chart_row *row, uint32_t run, unsigned top)
{
    const struct chart *chart = d->chart;
    char text[CHART_TEXT + 32];
    unsigned x = agent_x(d, row);
    row_text(text, sizeof text, row, run);
    if (row->kind == CHART_FAULT) {
        put_fault(d, row, top);
        return;
    }
    if (chart_is_message(chart, row)) {
        put_message(d, row, top);
        return;
    }
    if (!chart_is_access(chart, row)) {
        if (x != d->left)
            put_dot(d, row->agent_lane, top + TEXT_DOWN, false);
        put_label(d, "halo", x + INDENT, top + TEXT_DOWN + 4, text);
        return;
    }
    bool changed = chart_held_update(chart, d->held, row);
    unsigned end = d->places[row->memory_lane].x;
    if (changed) {
        put_value(d, "value", row->memory_lane, top + ARROW_DOWN);
        end -= value_width(row->value) / 2 + 1;
    }
    put_label(d, "halo", x + INDENT, top + TEXT_DOWN, text);
    put_arrow(d, row, end, top + ARROW_DOWN);
    put_dot(d, row->agent_lane, top + ARROW_DOWN, false);
}

/* The step's number, and a rule above it across the chart. */
static void put_step(struct drawing *d, const struct chart_row *row, uint32_t run, unsigned top)
{
    char step[32];
    step_text(step, sizeof step, row, run);
    fprintf(d->out, "<path class=\"rule\" d=\"M%u %uH%u\"/>\n", MARGIN, top, d->width - MARGIN);
    put_label(d, "step", d->left - 10, top + TEXT_DOWN + 4, step);
}

static void put_rows(struct drawing *d)
{
    const struct chart *chart = d->chart;
    uint32_t n = 0;
    for (uint32_t i = 0, run; i < chart->rows_count; i += run, n++) {
        unsigned top = row_top(n);
        run = run_length(d, i);
        bool repeat = n > 0 && n % CHART_HEADER_EVERY == 0;
        if (repeat)
            put_heads(d, top - REPEAT_HEIGHT + 8);
        const struct chart_row *row = &chart->rows[i];
        if (i == 0 || repeat || row->step != row[-1].step || row[run - 1].step != row->step)
            put_step(d, row, run, top);
        put_row(d, row, run, top);
    }
    if (n > FOOT_ROWS)
        put_heads(d, d->height - MARGIN - HEAD_HEIGHT);
}

static void put_drawing(struct drawing *d)
{
    fprintf(d->out,
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%u\" height=\"%u\" "
            "viewBox=\"0 0 %u %u\" role=\"img\">\n<title>",
            d->width, d->height, d->width, d->height);
    put_text(d, d->chart->title);
    fprintf(d->out,
            "</title>\n<style>\n%s</style>\n"
            "<rect width=\"%u\" height=\"%u\" fill=\"#fff\"/>\n",
            style, d->width, d->height);
    put_label(d, "title", MARGIN, 30, d->chart->title);
    put_label(d, "sub", MARGIN, 49, d->chart->subtitle);
    put_lifelines(d);
    put_heads(d, HEADS_TOP);
    put_start(d);
    put_rows(d);
    fputs("</svg>\n", d->out);
}

int chart_write_svg(const struct chart *chart, FILE *out)
{
    struct drawing drawing = {.chart = chart, .out = out};
    int error = chart->failed ? -ENOMEM : lay_out(&drawing);
    if (error == 0) {
        put_drawing(&drawing);
        error = chart_flush(out);
    }
    free(drawing.held);
    free(drawing.places);
    return error;
}
