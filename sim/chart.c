/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/chart.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sim/chart_draw.h"
#include "sim/utf8.h"

void chart_init(struct chart *chart)
{
    memset(chart, 0, sizeof *chart);
}

void chart_free(struct chart *chart)
{
    free(chart->lanes);
    free(chart->rows);
    memset(chart, 0, sizeof *chart);
}

struct chart_lane *chart_add_lane(struct chart *chart)
{
    struct chart_lane *grown = NULL;
    if (chart->lanes_count < CHART_MAX_LANES)
        grown = realloc(chart->lanes, (chart->lanes_count + 1) * sizeof *grown);
    if (!grown) {
        chart->failed = true;
        return NULL;
    }
    chart->lanes = grown;
    return memset(&chart->lanes[chart->lanes_count++], 0, sizeof *grown);
}

struct chart_row *chart_add_row(struct chart *chart)
{
    if (chart->rows_count == chart->rows_capacity) {
        uint32_t capacity = chart->rows_capacity ? chart->rows_capacity * 2 : 64;
        struct chart_row *grown = NULL;
        if (capacity <= CHART_MAX_ROWS)
            grown = realloc(chart->rows, capacity * sizeof *grown);
        if (!grown) {
            chart->failed = true;
            return NULL;
        }
        chart->rows = grown;
        chart->rows_capacity = capacity;
    }
    return memset(&chart->rows[chart->rows_count++], 0, sizeof *chart->rows);
}

uint32_t chart_next_char(const char **text)
{
    unsigned octets;
    uint32_t point = sim_utf8(*text, SIZE_MAX, &octets);
    if (point == 0)
        return 0;
    *text += octets;
    /* XML 1.0 2.2 has no controls either, and none of the last two. */
    if (sim_utf8_is_control(point) || point == 0xfffe || point == 0xffff)
        return CHART_UNPRINTABLE;
    return point;
}

unsigned chart_columns(const char *text)
{
    unsigned columns = 0;
    while (chart_next_char(&text))
        columns++;
    return columns;
}

bool chart_lane_is(const struct chart *chart, uint32_t lane, enum chart_lane_kind kind)
{
    return lane < chart->lanes_count && chart->lanes[lane].kind == kind;
}

bool chart_is_access(const struct chart *chart, const struct chart_row *row)
{
    return row->kind < CHART_LOCAL && chart_lane_is(chart, row->agent_lane, CHART_AGENT) &&
           chart_lane_is(chart, row->memory_lane, CHART_MEMORY);
}

bool chart_is_message(const struct chart *chart, const struct chart_row *row)
{
    return row->kind >= CHART_MESSAGE && row->agent_lane != row->memory_lane &&
           chart_lane_is(chart, row->agent_lane, CHART_AGENT) &&
           chart_lane_is(chart, row->memory_lane, CHART_AGENT);
}

static bool is_idle(const struct chart *chart, uint32_t lane)
{
    for (uint32_t i = 0; i < chart->rows_count; i++) {
        const struct chart_row *row = &chart->rows[i];
        bool other = chart_is_access(chart, row) || chart_is_message(chart, row);
        if (row->agent_lane == lane || (other && row->memory_lane == lane))
            return false;
    }
    return true;
}

void chart_rest_idle_lanes(struct chart *chart)
{
    for (uint32_t i = 0; i < chart->lanes_count; i++)
        if (is_idle(chart, i))
            chart->lanes[i].kind = CHART_IDLE;
}

const char **chart_held_new(const struct chart *chart)
{
    const char **held = calloc(chart->lanes_count + 1, sizeof *held);
    if (held)
        chart_held_start(chart, held);
    return held;
}

void chart_held_start(const struct chart *chart, const char **held)
{
    for (uint32_t i = 0; i < chart->lanes_count; i++)
        held[i] = chart->lanes[i].value;
}

bool chart_held_update(const struct chart *chart, const char **held, const struct chart_row *row)
{
    if (!chart_is_access(chart, row) || row->value[0] == '\0' ||
        strcmp(held[row->memory_lane], row->value) == 0)
        return false;
    held[row->memory_lane] = row->value;
    return true;
}

int chart_flush(FILE *out)
{
    return fflush(out) == 0 && !ferror(out) ? 0 : -EIO;
}
