/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The form of a scenario: which keys there are, and whether they have a value, a word out of a few
 * or a list. What the values mean is up to scenario.c. Included by sim/scenario*.c only.
 */
#ifndef KBTP_SIM_SCENARIO_SCHEMA_H
#define KBTP_SIM_SCENARIO_SCHEMA_H

#include "sim/scenario_text.h"

/* NULL: the key is not there. The members have the names of the keys. */
struct sim_raw_allocator {
    char *name;
    int *agent; /* enum sim_agent_kind */
    char *allocations;
};

struct sim_raw_freer {
    char *name;
};

struct sim_raw_scenario {
    int kind; /* enum sim_world_kind_id */
    char *title;
    int *memory; /* enum sim_memory */
    char *store_buffer;
    int *tear;
    int *dma_order; /* enum sim_dma_order */
    char *slots;
    char *blocks;
    char *first_block;
    char *block_size;
    char *first_ticket;
    char *first_generation;
    char *quota;
    char *handles;
    char *crashes;
    int *counters;       /* enum sim_counters */
    int *free_completes; /* enum sim_free_completes */
    int *address_le;
    struct sim_raw_allocator *allocators;
    unsigned allocators_count;
    struct sim_raw_freer *freers;
    unsigned freers_count;
    char **must_reach;
    unsigned must_reach_count;
};

/*
 * Reads a text that is one plain YAML mapping of this form, and marks its keys. Returns NULL after
 * a complaint about any other. Strings may be taken out (leave NULL), then free() releases them;
 * sim_scenario_unload() releases the rest.
 */
struct sim_raw_scenario *sim_scenario_load(struct sim_text *text);
void sim_scenario_unload(struct sim_raw_scenario *raw);

#endif
