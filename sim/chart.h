/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A message sequence chart of a run: a lane for each agent, a lane for each place in memory, a row
 * for each access. Built by whoever runs the steps, drawn here as text for a terminal or as SVG.
 */
#ifndef KBTP_SIM_CHART_H
#define KBTP_SIM_CHART_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define CHART_NAME 24u
#define CHART_TEXT 256u
#define CHART_MAX_LANES 1024u
#define CHART_MAX_ROWS (1u << 20)

enum chart_lane_kind {
    CHART_AGENT,
    CHART_MEMORY,
    CHART_IDLE, /* in no drawing: see chart_rest_idle_lanes() */
};

struct chart_lane {
    char name[CHART_NAME];  /* "X", "Head", "slot 0" */
    char value[CHART_NAME]; /* memory lanes: what it holds at the start: "ticket 0", "0: 100" */
    enum chart_lane_kind kind;
};

enum chart_row_kind {
    CHART_READ,  /* an arrow from memory to agent */
    CHART_WRITE, /* an arrow from agent to memory: it is visible now */
    CHART_BOTH,  /* an atomic */
    CHART_LOCAL, /* no memory: a store into the own buffer, a choice, a result */
    CHART_FAULT, /* a violation or a fault, drawn loudly */

    /* A message, an arrow from agent_lane to the agent's lane that `memory_lane` names. */
    CHART_MESSAGE, /* it leaves and arrives, for all that anybody can tell */
    CHART_LEAVES,  /* it is on the way */
    CHART_ARRIVES, /* it was on the way */
};

struct chart_row {
    uint32_t step; /* number in the trace, from 1; rows of one step share it */
    uint32_t agent_lane;
    uint32_t memory_lane;   /* not used for LOCAL and FAULT; of messages an agent's lane */
    char text[CHART_TEXT];  /* "FetchAdd Head -> ticket 0" */
    char value[CHART_NAME]; /* what memory_lane holds after this row; "" when unchanged */
    enum chart_row_kind kind;
};

struct chart {
    char title[160];
    char subtitle[160];
    struct chart_lane *lanes;
    uint32_t lanes_count;
    struct chart_row *rows;
    uint32_t rows_count, rows_capacity;
    bool failed; /* an addition found no memory; drawing reports it */
};

void chart_init(struct chart *chart);
void chart_free(struct chart *chart);
/*
 * Both return the new element, zeroed, or NULL when there is no memory or the bound is reached.
 * Lanes come before rows. The element is valid until the next addition of its kind.
 */
struct chart_lane *chart_add_lane(struct chart *chart);
struct chart_row *chart_add_row(struct chart *chart);
/* Lanes that no row touches become IDLE. */
void chart_rest_idle_lanes(struct chart *chart);

/*
 * The strings are UTF-8; what is ill-formed is drawn as a replacement character, and so are control
 * characters. Both return 0, -ENOMEM (also when an addition failed before; nothing is written then)
 * or -EIO. `width` is that of the terminal in columns (at least 60). Without `utf8` only ASCII is
 * written. In SVG, four or more reads in a row that find the same are drawn as one.
 */
int chart_print_text(const struct chart *chart, FILE *out, unsigned width, bool utf8);
int chart_write_svg(const struct chart *chart, FILE *out);

#endif
