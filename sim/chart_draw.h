/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the two drawings of a chart (chart_text.c, chart_svg.c) share: characters, and what the
 * memory lanes hold while the rows are walked. Included by sim/chart*.c only.
 */
#ifndef KBTP_SIM_CHART_DRAW_H
#define KBTP_SIM_CHART_DRAW_H

#include "sim/chart.h"

/* Stands for what cannot be shown: an ill-formed octet, a control character. */
#define CHART_UNPRINTABLE 0xfffdu
/* The names are repeated after as many rows, so that they are on every screen. */
#define CHART_HEADER_EVERY 40u

/* The code point at *text, which moves behind it. 0 at the end, where *text stays. */
uint32_t chart_next_char(const char **text);
/* Columns in a terminal: a code point each. */
unsigned chart_columns(const char *text);

/* Whether `lane` is a lane of this kind: a row may name none, with any other number. */
bool chart_lane_is(const struct chart *chart, uint32_t lane, enum chart_lane_kind kind);
/* Whether the row has an arrow to or from memory. */
bool chart_is_access(const struct chart *chart, const struct chart_row *row);
/* Whether it has one from one agent to another. */
bool chart_is_message(const struct chart *chart, const struct chart_row *row);

/* held[lane]: what each lane holds before the first row. To be freed; NULL when out of memory. */
const char **chart_held_new(const struct chart *chart);
void chart_held_start(const struct chart *chart, const char **held);
/* Walks over a row. True when its lane now holds another value. */
bool chart_held_update(const struct chart *chart, const char **held, const struct chart_row *row);

/* 0, or -EIO when something could not be written to `out`. */
int chart_flush(FILE *out);

#endif
