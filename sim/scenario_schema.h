/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The form of a scenario, for each kind of world: which keys there are, and whether they have a
 * value, a word out of a few or a list. What the values mean is up to scenario_value.h. Included by
 * sim/scenario*.c and sim/kind.c only.
 */
#ifndef KBTP_SIM_SCENARIO_SCHEMA_H
#define KBTP_SIM_SCENARIO_SCHEMA_H

#include "sim/scenario_text.h"

struct cyaml_schema_value;
extern const struct cyaml_schema_value sim_ring_schema, sim_protocol_schema;

#define SIM_MAX_EXPECT 13u /* entries of `expect` */

/* NULL: the key is not there. The members have the names of the keys. */
struct sim_raw_allocator {
    char *name;
    int *agent; /* enum sim_agent_kind */
    char *allocations;
};

struct sim_raw_named {
    char *name;
};

struct sim_raw_request {
    int op; /* enum sim_request_op */
    char *handle;
    char *length;
    int *inline_data; /* the key `inline` */
    int *seal;
    int *allow_unsealed;
    int *direct;
    int *record;
    int *invalidate;
    int *release;
    int *generation; /* enum sim_request_generation */
    char *after;
    char **expect;
    unsigned expect_count;
};

struct sim_raw_initiator {
    char *name;
    char **workers;
    unsigned workers_count;
    char *quota;
    char *depth;
    char *reconnects;
    char *trust_domain;
    int *gives_up;
    char *retries;
    char *same_id;
    char *restart_of;
    char *follows;
    int *spared;
    char *spared_until;
    struct sim_raw_request *program;
    unsigned program_count;
};

/* The keys of all kinds. */
struct sim_raw_scenario {
    char *kind;
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
    int *counters; /* enum sim_counters */
    int *address_le;
    char **must_reach;
    unsigned must_reach_count;
    char *handles;

    char *quota;
    char *crashes;
    int *free_completes; /* enum sim_free_completes */
    struct sim_raw_allocator *allocators;
    unsigned allocators_count;
    struct sim_raw_named *freers;
    unsigned freers_count;

    int *ordering; /* enum sim_ordering */
    int *atomics;  /* enum sim_atomics */
    char *credits;
    char *max_inline;
    char *losses;
    char *stops;
    char *silent_stops;
    char *restarts;
    int *connected;
    int *retention_ends; /* enum sim_retention */
    int *probes;         /* enum sim_probes */
    int *ticket_timeout;
    struct sim_raw_named *workers;
    unsigned workers_count;
    struct sim_raw_initiator *initiators;
    unsigned initiators_count;
};

/* The word for an operation: "alloc_store". */
const char *sim_raw_op_name(enum sim_request_op op);

#endif
