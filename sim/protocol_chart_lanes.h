/* SPDX-License-Identifier: BSD-3-Clause */
/* The lanes of a protocol world's chart; only sim/protocol_chart*.c look in here. */
#ifndef KBTP_SIM_PROTOCOL_CHART_LANES_H
#define KBTP_SIM_PROTOCOL_CHART_LANES_H

#include "sim/chart.h"
#include "sim/protocol_agents.h"

/* Memory of one sort: a lane for each of its elements, or none at all. */
enum protocol_place {
    PLACE_HEAD,
    PLACE_TAIL,
    PLACE_SLOT,
    PLACE_ENTRY,
    PLACE_PINS,
    PLACE_BLOCK,
    PLACE_SESSION,
    PLACES,
};

struct protocol_lanes {
    struct sim_world *w;
    struct chart *chart;
    uint32_t agents[SIM_MAX_AGENTS]; /* by agent: its lane */
    struct {
        const char *at;
        uint32_t octets; /* of an element */
        uint32_t count;
        uint32_t lane; /* of the first element */
    } places[PLACES];
};

/* Adds them to an empty chart, with what memory holds now. */
void protocol_lanes_add(struct protocol_lanes *lanes, struct sim_world *w, struct chart *chart);
/* The lane of an address and where its element begins; UINT32_MAX when it has none. */
uint32_t protocol_lanes_find(const struct protocol_lanes *lanes, const char *at,
                             const char **element, enum protocol_place *place);
/* What a lane of memory holds now. */
void protocol_lanes_value(const struct protocol_lanes *lanes, uint32_t lane, char *out,
                          size_t size);

#endif
