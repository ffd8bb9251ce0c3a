/* SPDX-License-Identifier: BSD-3-Clause */
/* Charts drawn to memory, and what is in the drawings. */
#ifndef KBTP_TESTS_SIM_CHART_FIXTURE_H
#define KBTP_TESTS_SIM_CHART_FIXTURE_H

#include <stdbool.h>

#include "sim/chart.h"

/* Text of so many columns; width 0: SVG. To be freed. */
char *draw(const struct chart *chart, unsigned width, bool utf8);
unsigned occurrences(const char *text, const char *what);

#endif
