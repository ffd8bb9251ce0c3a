/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A chart as text, a line a row:
 *
 *     step  X  Y  target  action                      Head       slot 0
 *        1  ●  │    │   ⇄ FetchAdd Head -> ticket 0  [ticket 1]  0: 100
 *
 * When the memory lanes do not fit, only those that change get a column; when these do not fit
 * either none does, and what changed stands behind the action: "[Head = ticket 1]". Actions are
 * cut to keep the lines in the width; faults and the titles go on in the next line instead.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sim/chart.h"
#include "sim/chart_draw.h"

#define WIDTH_MIN 60u
#define STEP_MIN 4u
#define GAP 2u
/* Memory gets columns only if the actions keep as many; longer ones are cut. */
#define ACTION_KEEP 40u
#define ACTION_MIN 12u
#define ARROW_WIDTH 3u

static const char at_the_start[] = "at the start";

struct glyphs {
    const char *lifeline, *dot, *cut, *unprintable;
    const char *line, *dashes, *ring, *left, *right; /* of messages */
    const char *arrows[CHART_ARRIVES + 1];
};

static const struct glyphs unicode = {
    .lifeline = "│",
    .dot = "●",
    .cut = "…",
    .unprintable = "\ufffd",
    .line = "─",
    .dashes = "╌",
    .ring = "○",
    .left = "◀",
    .right = "▶",
    .arrows = {[CHART_READ] = "←",
               [CHART_WRITE] = "→",
               [CHART_BOTH] = "⇄",
               [CHART_LOCAL] = "",
               [CHART_FAULT] = "!!"},
};
static const struct glyphs ascii = {
    .lifeline = "|",
    .dot = "*",
    .cut = "...",
    .unprintable = "?",
    .line = "-",
    .dashes = ".",
    .ring = "o",
    .left = "<",
    .right = ">",
    .arrows = {[CHART_READ] = "<-",
               [CHART_WRITE] = "->",
               [CHART_BOTH] = "<>",
               [CHART_LOCAL] = "",
               [CHART_FAULT] = "!!"},
};

struct page {
    const struct chart *chart;
    FILE *out;
    const struct glyphs *glyphs;
    const char **held; /* by lane: its value now */
    unsigned *columns; /* by lane: columns it takes; 0: it is not drawn */
    unsigned width, step_width, arrow_at, action_at, action_width;
    unsigned column;  /* of the line being written */
    unsigned written; /* columns of it that were written: blanks wait for what follows them */
};

static void put_char(struct page *page, const char *octets, size_t length)
{
    if (page->column >= page->width)
        return;
    for (; page->written < page->column; page->written++)
        putc(' ', page->out);
    fwrite(octets, 1, length, page->out);
    page->written = ++page->column;
}

static void put_chars(struct page *page, const char *text, unsigned count)
{
    for (; count > 0; count--) {
        const char *at = text;
        uint32_t point = chart_next_char(&text);
        if (point == 0)
            return;
        if (point == CHART_UNPRINTABLE || (point > 0x7e && page->glyphs == &ascii))
            put_char(page, page->glyphs->unprintable, strlen(page->glyphs->unprintable));
        else
            put_char(page, at, (size_t)(text - at));
    }
}

/* At most `limit` columns, and at most those that are left in the line. */
static void put_text(struct page *page, const char *text, unsigned limit)
{
    unsigned left = page->width - page->column;
    unsigned room = limit < left ? limit : left;
    if (chart_columns(text) <= room) {
        put_chars(page, text, room);
        return;
    }
    unsigned cut = chart_columns(page->glyphs->cut);
    cut = cut < room ? cut : room;
    put_chars(page, text, room - cut);
    put_chars(page, page->glyphs->cut, cut);
}

static void go_to(struct page *page, unsigned column)
{
    if (column > page->column)
        page->column = column < page->width ? column : page->width;
}

static void end_line(struct page *page)
{
    putc('\n', page->out);
    page->column = page->written = 0;
}

/* The words of `text`; the lines that follow start below the first one. */
static void put_wrapped(struct page *page, const char *text)
{
    unsigned indent = page->column;
    for (text += strspn(text, " "); *text; text += strspn(text, " ")) {
        unsigned word = 0;
        for (const char *at = text; *at && *at != ' '; word++)
            chart_next_char(&at);
        if (page->column > indent) {
            if (page->column + 1 + word > page->width) {
                end_line(page);
                page->column = indent;
            } else {
                page->column++;
            }
        }
        for (; word > 0; word--) {
            if (page->column == page->width) { /* longer than a line */
                end_line(page);
                page->column = indent;
            }
            put_chars(page, text, 1);
            chart_next_char(&text);
        }
    }
    end_line(page);
}

static void widen(unsigned *columns, const char *text)
{
    unsigned needed = chart_columns(text);
    if (*columns < needed)
        *columns = needed;
}

/* Columns of each lane and the longest action. */
static unsigned measure(struct page *page, bool *changes)
{
    const struct chart *chart = page->chart;
    unsigned action = ACTION_MIN;
    for (uint32_t i = 0; i < chart->lanes_count; i++) {
        page->columns[i] = 1;
        widen(&page->columns[i], chart->lanes[i].name);
        if (chart->lanes[i].kind == CHART_MEMORY)
            widen(&page->columns[i], chart->lanes[i].value);
    }
    for (uint32_t i = 0; i < chart->rows_count; i++) {
        const struct chart_row *row = &chart->rows[i];
        if (row->kind != CHART_FAULT)
            widen(&action, row->text);
        if (!chart_held_update(chart, page->held, row))
            continue;
        changes[row->memory_lane] = true;
        widen(&page->columns[row->memory_lane], row->value);
    }
    chart_held_start(chart, page->held);
    return action;
}

/* The agents get half of the line; long names are cut. */
static void place_agents(struct page *page)
{
    const struct chart *chart = page->chart;
    unsigned agents = 0;
    unsigned most_step = 0;
    for (uint32_t i = 0; i < chart->lanes_count; i++)
        agents += chart->lanes[i].kind == CHART_AGENT;
    for (uint32_t i = 0; i < chart->rows_count; i++)
        most_step = most_step < chart->rows[i].step ? chart->rows[i].step : most_step;
    page->step_width = 1;
    for (; most_step >= 10; most_step /= 10)
        page->step_width++;
    page->step_width = page->step_width < STEP_MIN ? STEP_MIN : page->step_width;

    unsigned half = page->width / 2 - page->step_width - GAP;
    unsigned most = agents > 0 ? half / agents : 0;
    most = most > GAP + 1 ? most - GAP : 1;
    page->arrow_at = page->step_width + GAP;
    for (uint32_t i = 0; i < chart->lanes_count; i++) {
        if (chart->lanes[i].kind != CHART_AGENT)
            continue;
        page->columns[i] = page->columns[i] < most ? page->columns[i] : most;
        page->arrow_at += page->columns[i] + GAP;
    }
    page->action_at = page->arrow_at + ARROW_WIDTH;
}

/* A blank, a mark on both sides, the value. */
static unsigned cells_width(const struct page *page)
{
    unsigned total = 0;
    for (uint32_t i = 0; i < page->chart->lanes_count; i++)
        if (page->chart->lanes[i].kind == CHART_MEMORY && page->columns[i] > 0)
            total += page->columns[i] + 3;
    return total;
}

static void drop_cells(struct page *page, const bool *keep)
{
    for (uint32_t i = 0; i < page->chart->lanes_count; i++)
        if (page->chart->lanes[i].kind == CHART_MEMORY && !(keep && keep[i]))
            page->columns[i] = 0;
}

static int lay_out(struct page *page)
{
    page->held = chart_held_new(page->chart);
    page->columns = calloc(page->chart->lanes_count + 1, sizeof *page->columns);
    bool *changes = calloc(page->chart->lanes_count + 1, sizeof *changes);
    if (!page->held || !page->columns || !changes) {
        free(changes);
        return -ENOMEM;
    }
    unsigned action = measure(page, changes);
    place_agents(page);
    unsigned room = page->width > page->action_at ? page->width - page->action_at : 0;
    unsigned keep = action < ACTION_KEEP ? action : ACTION_KEEP;
    if (keep + cells_width(page) > room)
        drop_cells(page, changes);
    if (keep + cells_width(page) > room)
        drop_cells(page, NULL);
    free(changes);
    unsigned cells = cells_width(page);
    page->action_width = cells > 0 && action < room - cells ? action : room - cells;
    return 0;
}

static void put_header(struct page *page)
{
    const struct chart *chart = page->chart;
    go_to(page, page->step_width - STEP_MIN);
    put_text(page, "step", STEP_MIN);
    unsigned at = page->step_width + GAP;
    for (uint32_t i = 0; i < chart->lanes_count; i++) {
        if (chart->lanes[i].kind != CHART_AGENT)
            continue;
        go_to(page, at);
        put_text(page, chart->lanes[i].name, page->columns[i]);
        at += page->columns[i] + GAP;
    }
    go_to(page, page->action_at);
    put_text(page, "action", page->action_width);
    at = page->action_at + page->action_width;
    for (uint32_t i = 0; i < chart->lanes_count; i++) {
        if (chart->lanes[i].kind != CHART_MEMORY || page->columns[i] == 0)
            continue;
        go_to(page, at + 2);
        put_text(page, chart->lanes[i].name, page->columns[i]);
        at += page->columns[i] + 3;
    }
    end_line(page);
}

static void put_lifelines(struct page *page, uint32_t acting)
{
    const struct chart *chart = page->chart;
    unsigned at = page->step_width + GAP;
    for (uint32_t i = 0; i < chart->lanes_count; i++) {
        if (chart->lanes[i].kind != CHART_AGENT)
            continue;
        go_to(page, at + (page->columns[i] - 1) / 2);
        put_chars(page, i == acting ? page->glyphs->dot : page->glyphs->lifeline, 1);
        at += page->columns[i] + GAP;
    }
}

static unsigned lifeline_at(const struct page *page, uint32_t lane)
{
    unsigned at = page->step_width + GAP;
    for (uint32_t i = 0; i < lane; i++)
        if (page->chart->lanes[i].kind == CHART_AGENT)
            at += page->columns[i] + GAP;
    return at + (page->columns[lane] - 1) / 2;
}

/* What stands at a column between the two ends of a message, or at one of them. */
static const char *message_glyph(const struct page *page, const struct chart_row *row,
                                 unsigned column)
{
    const struct glyphs *glyphs = page->glyphs;
    unsigned from = lifeline_at(page, row->agent_lane), to = lifeline_at(page, row->memory_lane);
    if (column == from)
        return row->kind == CHART_ARRIVES ? glyphs->ring : glyphs->dot;
    if (row->kind != CHART_LEAVES && column == to)
        return to > from ? glyphs->right : glyphs->left;
    if (column == to)
        return glyphs->lifeline;
    if (row->kind == CHART_LEAVES && (to > from ? column + 1 == to : column == to + 1))
        return glyphs->ring;
    return row->kind == CHART_MESSAGE ? glyphs->line : glyphs->dashes;
}

static bool is_within(unsigned column, unsigned a, unsigned b)
{
    return a < b ? column >= a && column <= b : column >= b && column <= a;
}

/* The lifelines, with an arrow across them. */
static void put_message(struct page *page, const struct chart_row *row)
{
    unsigned from = lifeline_at(page, row->agent_lane), to = lifeline_at(page, row->memory_lane);
    unsigned column = 0;
    for (uint32_t i = 0; i < page->chart->lanes_count; i++) {
        if (page->chart->lanes[i].kind != CHART_AGENT)
            continue;
        for (unsigned end = lifeline_at(page, i); column <= end; column++) {
            bool arrow = is_within(column, from, to);
            if (!arrow && column != end)
                continue;
            go_to(page, column);
            put_chars(page, arrow ? message_glyph(page, row, column) : page->glyphs->lifeline, 1);
        }
    }
}

/* The value of each memory lane; `changed` is the one to mark. */
static void put_cells(struct page *page, uint32_t changed)
{
    const struct chart *chart = page->chart;
    unsigned at = page->action_at + page->action_width;
    for (uint32_t i = 0; i < chart->lanes_count; i++) {
        if (chart->lanes[i].kind != CHART_MEMORY || page->columns[i] == 0)
            continue;
        go_to(page, at + (i == changed ? 1 : 2));
        if (i == changed)
            put_chars(page, "[", 1);
        put_text(page, page->held[i], page->columns[i]);
        if (i == changed)
            put_chars(page, "]", 1);
        at += page->columns[i] + 3;
    }
}

/* The action, and "[place = value]" when the place has no column; the value is cut last. */
static void put_action(struct page *page, const struct chart_row *row, bool changed)
{
    char note[2 * CHART_NAME + 16] = "";
    go_to(page, page->action_at);
    if (changed && page->columns[row->memory_lane] == 0)
        snprintf(note, sizeof note, "  [%s = %s]", page->chart->lanes[row->memory_lane].name,
                 row->value);
    unsigned noted = chart_columns(note);
    unsigned room = page->action_width > ACTION_MIN ? page->action_width - ACTION_MIN : 0;
    put_text(page, row->text, page->action_width - (noted < room ? noted : room));
    put_text(page, note, page->width);
}

static void put_row(struct page *page, const struct chart_row *row, bool same_step)
{
    char step[16];
    if (!same_step) {
        snprintf(step, sizeof step, "%*u", (int)page->step_width, row->step);
        put_chars(page, step, page->step_width);
    }
    const char *arrow = page->glyphs->arrows[row->kind];
    if (row->kind == CHART_FAULT) { /* across the lifelines, to break the calm */
        go_to(page, page->step_width + GAP);
        put_chars(page, arrow, 2);
        go_to(page, page->column + 1);
        put_wrapped(page, row->text);
        return;
    }
    if (chart_is_message(page->chart, row))
        put_message(page, row);
    else
        put_lifelines(page, row->agent_lane);
    go_to(page, page->arrow_at);
    if (chart_is_access(page->chart, row))
        put_chars(page, arrow, 2);
    bool changed = chart_held_update(page->chart, page->held, row);
    put_action(page, row, changed);
    put_cells(page, changed ? row->memory_lane : UINT32_MAX);
    end_line(page);
}

/* Nobody would learn what the lanes without a column hold: "at the start: slot 0 = 0: 100, ...". */
static void put_start_of_dropped(struct page *page)
{
    const struct chart *chart = page->chart;
    unsigned listed = 0;
    for (uint32_t i = 0; i < chart->lanes_count; i++) {
        const struct chart_lane *lane = &chart->lanes[i];
        char entry[2 * CHART_NAME + 16];
        if (lane->kind != CHART_MEMORY || page->columns[i] > 0)
            continue;
        snprintf(entry, sizeof entry, "%s = %s", lane->name, lane->value[0] ? lane->value : "-");
        if (listed++ == 0) {
            put_text(page, at_the_start, page->width);
            put_text(page, ": ", 2);
        } else {
            put_chars(page, ",", 1);
            if (page->column + 2 + chart_columns(entry) > page->width) {
                end_line(page);
                page->column = (unsigned)sizeof at_the_start + 1;
            } else {
                go_to(page, page->column + 1);
            }
        }
        put_text(page, entry, page->width - 1);
    }
    if (listed > 0)
        end_line(page);
}

static void put_start(struct page *page)
{
    if (cells_width(page) == 0)
        return;
    put_lifelines(page, UINT32_MAX);
    go_to(page, page->action_at);
    put_text(page, at_the_start, page->action_width);
    put_cells(page, UINT32_MAX);
    end_line(page);
}

static void put_page(struct page *page)
{
    const struct chart *chart = page->chart;
    if (chart->title[0])
        put_wrapped(page, chart->title);
    if (chart->subtitle[0])
        put_wrapped(page, chart->subtitle);
    put_start_of_dropped(page);
    if (chart->title[0] || chart->subtitle[0])
        end_line(page);
    for (uint32_t i = 0; i < chart->rows_count || i == 0; i++) {
        bool repeat = i > 0 && i % CHART_HEADER_EVERY == 0;
        if (repeat)
            end_line(page);
        if (repeat || i == 0)
            put_header(page);
        if (i == 0)
            put_start(page);
        if (i < chart->rows_count)
            put_row(page, &chart->rows[i],
                    i > 0 && !repeat && chart->rows[i].step == chart->rows[i - 1].step);
    }
}

int chart_print_text(const struct chart *chart, FILE *out, unsigned width, bool utf8)
{
    struct page page = {
        .chart = chart,
        .out = out,
        .glyphs = utf8 ? &unicode : &ascii,
        .width = width < WIDTH_MIN ? WIDTH_MIN : width,
    };
    int error = chart->failed ? -ENOMEM : lay_out(&page);
    if (error == 0) {
        put_page(&page);
        error = chart_flush(out);
    }
    free(page.held);
    free(page.columns);
    return error;
}
