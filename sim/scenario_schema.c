/* SPDX-License-Identifier: BSD-3-Clause */
/* The schemas, which the check (scenario_check.c) and libcyaml share. */
#include "sim/scenario_schema.h"

#include <stdint.h>
#include <stdlib.h>

#include "sim/kind.h"
#include "sim/scenario_check.h"
#include "sim/scenario_fields.h"

/* ---- words ------------------------------------------------------------------------------- */

/*
 * Numbers are strings here and booleans an enumeration: libcyaml alone would take "4x" for 4,
 * "010" for 8 and "flase" for true.
 */
static const cyaml_strval_t agents[] = {{"cpu", SIM_AGENT_CPU}, {"rnic", SIM_AGENT_RNIC}};
static const cyaml_strval_t memories[] = {
    {"sc", SIM_MEMORY_SC}, {"tso", SIM_MEMORY_TSO}, {"relaxed", SIM_MEMORY_RELAXED}};
static const cyaml_strval_t tears[] = {{"8", 8}, {"4", 4}};
static const cyaml_strval_t dma_orders[] = {
    {"any", SIM_DMA_ANY}, {"ascending", SIM_DMA_ASCENDING}, {"descending", SIM_DMA_DESCENDING}};
static const cyaml_strval_t orderings[] = {{"rdmap", SIM_ORDERING_RDMAP},
                                           {"infiniband", SIM_ORDERING_INFINIBAND},
                                           {"strong", SIM_ORDERING_STRONG}};
static const cyaml_strval_t counter_forms[] = {{"masked", SIM_COUNTERS_MASKED},
                                               {"unmasked", SIM_COUNTERS_UNMASKED}};
static const cyaml_strval_t atomicities[] = {{"global", SIM_ATOMICS_GLOBAL},
                                             {"adapter", SIM_ATOMICS_ADAPTER}};
static const cyaml_strval_t completions[] = {{"deferred", SIM_FREE_COMPLETES_DEFERRED},
                                             {"written", SIM_FREE_COMPLETES_WRITTEN}};
static const cyaml_strval_t booleans[] = {{"false", false}, {"true", true}};
static const cyaml_strval_t retentions[] = {
    {"false", SIM_RETENTION_LASTS}, {"true", SIM_RETENTION_ENDS}, {"late", SIM_RETENTION_LATE}};
static const cyaml_strval_t probes[] = {
    {"none", SIM_PROBES_NONE}, {"timely", SIM_PROBES_TIMELY}, {"late", SIM_PROBES_LATE}};
/* By their values. */
static const cyaml_strval_t ops[] = {{"load", SIM_REQUEST_LOAD},
                                     {"store", SIM_REQUEST_STORE},
                                     {"alloc_store", SIM_REQUEST_ALLOC_STORE},
                                     {"free", SIM_REQUEST_FREE},
                                     {"goodbye", SIM_REQUEST_GOODBYE}};
static const cyaml_strval_t generations[] = {{"any", SIM_GENERATION_ANY},
                                             {"current", SIM_GENERATION_CURRENT},
                                             {"stale", SIM_GENERATION_STALE}};

const char *sim_raw_op_name(enum sim_request_op op)
{
    return ops[op].str;
}

static const cyaml_schema_value_t string_schema = STRING_ENTRY;

/* ---- what scenarios of every kind have --------------------------------------------------- */

#define FIRST_FIELDS \
    STRING(sim_raw_scenario, kind, REQUIRED), STRING(sim_raw_scenario, title, OPTIONAL), \
        CHOICE(sim_raw_scenario, memory, memories), \
        STRING(sim_raw_scenario, store_buffer, OPTIONAL), CHOICE(sim_raw_scenario, tear, tears), \
        CHOICE(sim_raw_scenario, dma_order, dma_orders), \
        STRING(sim_raw_scenario, slots, REQUIRED), STRING(sim_raw_scenario, blocks, REQUIRED), \
        STRING(sim_raw_scenario, first_block, OPTIONAL), \
        STRING(sim_raw_scenario, block_size, OPTIONAL), \
        STRING(sim_raw_scenario, first_ticket, OPTIONAL), \
        STRING(sim_raw_scenario, first_generation, OPTIONAL), \
        CHOICE(sim_raw_scenario, counters, counter_forms), \
        CHOICE(sim_raw_scenario, address_le, booleans)
#define LAST_FIELDS \
    LIST(sim_raw_scenario, must_reach, OPTIONAL, &string_schema, 0, SIM_MAX_MUST_REACH), \
        CYAML_FIELD_END

/* ---- kind ring --------------------------------------------------------------------------- */

static const cyaml_schema_field_t allocator_fields[] = {
    STRING(sim_raw_allocator, name, REQUIRED),
    CHOICE(sim_raw_allocator, agent, agents),
    STRING(sim_raw_allocator, allocations, REQUIRED),
    CYAML_FIELD_END,
};
static const cyaml_schema_value_t allocator_schema = ENTRY(sim_raw_allocator, allocator_fields);

static const cyaml_schema_field_t named_fields[] = {
    STRING(sim_raw_named, name, REQUIRED),
    CYAML_FIELD_END,
};
static const cyaml_schema_value_t named_schema = ENTRY(sim_raw_named, named_fields);

static const cyaml_schema_field_t ring_fields[] = {
    FIRST_FIELDS,
    STRING(sim_raw_scenario, quota, OPTIONAL),
    STRING(sim_raw_scenario, handles, OPTIONAL),
    STRING(sim_raw_scenario, crashes, OPTIONAL),
    CHOICE(sim_raw_scenario, free_completes, completions),
    LIST(sim_raw_scenario, allocators, REQUIRED, &allocator_schema, 1, SIM_MAX_ALLOCATORS),
    LIST(sim_raw_scenario, freers, REQUIRED, &named_schema, 1, SIM_MAX_FREERS),
    LAST_FIELDS,
};
const cyaml_schema_value_t sim_ring_schema = WHOLE(sim_raw_scenario, ring_fields);

/* ---- kind protocol ----------------------------------------------------------------------- */

static const cyaml_schema_field_t request_fields[] = {
    CYAML_FIELD_ENUM("op", CYAML_FLAG_STRICT, struct sim_raw_request, op, ops,
                     CYAML_ARRAY_LEN(ops)),
    STRING(sim_raw_request, handle, OPTIONAL),
    STRING(sim_raw_request, length, OPTIONAL),
    CHOICE_AS(sim_raw_request, "inline", inline_data, booleans),
    CHOICE(sim_raw_request, seal, booleans),
    CHOICE(sim_raw_request, allow_unsealed, booleans),
    CHOICE(sim_raw_request, direct, booleans),
    CHOICE(sim_raw_request, record, booleans),
    CHOICE(sim_raw_request, invalidate, booleans),
    CHOICE(sim_raw_request, release, booleans),
    CHOICE(sim_raw_request, generation, generations),
    STRING(sim_raw_request, after, OPTIONAL),
    LIST(sim_raw_request, expect, OPTIONAL, &string_schema, 1, SIM_MAX_EXPECT),
    CYAML_FIELD_END,
};
static const cyaml_schema_value_t request_schema = ENTRY(sim_raw_request, request_fields);

static const cyaml_schema_field_t initiator_fields[] = {
    STRING(sim_raw_initiator, name, REQUIRED),
    LIST(sim_raw_initiator, workers, REQUIRED, &string_schema, 1, SIM_MAX_CONNECTIONS),
    STRING(sim_raw_initiator, quota, REQUIRED),
    STRING(sim_raw_initiator, depth, OPTIONAL),
    STRING(sim_raw_initiator, reconnects, OPTIONAL),
    STRING(sim_raw_initiator, trust_domain, OPTIONAL),
    CHOICE(sim_raw_initiator, gives_up, booleans),
    STRING(sim_raw_initiator, retries, OPTIONAL),
    STRING(sim_raw_initiator, same_id, OPTIONAL),
    STRING(sim_raw_initiator, restart_of, OPTIONAL),
    STRING(sim_raw_initiator, follows, OPTIONAL),
    CHOICE(sim_raw_initiator, spared, booleans),
    STRING(sim_raw_initiator, spared_until, OPTIONAL),
    LIST(sim_raw_initiator, program, REQUIRED, &request_schema, 1, SIM_MAX_REQUESTS),
    CYAML_FIELD_END,
};
static const cyaml_schema_value_t initiator_schema = ENTRY(sim_raw_initiator, initiator_fields);

static const cyaml_schema_field_t protocol_fields[] = {
    FIRST_FIELDS,
    CHOICE(sim_raw_scenario, ordering, orderings),
    CHOICE(sim_raw_scenario, atomics, atomicities),
    STRING(sim_raw_scenario, handles, REQUIRED),
    STRING(sim_raw_scenario, credits, OPTIONAL),
    STRING(sim_raw_scenario, max_inline, OPTIONAL),
    LIST(sim_raw_scenario, workers, REQUIRED, &named_schema, 1, SIM_MAX_WORKERS),
    LIST(sim_raw_scenario, initiators, REQUIRED, &initiator_schema, 1, SIM_MAX_INITIATORS),
    STRING(sim_raw_scenario, losses, OPTIONAL),
    STRING(sim_raw_scenario, stops, OPTIONAL),
    STRING(sim_raw_scenario, silent_stops, OPTIONAL),
    STRING(sim_raw_scenario, restarts, OPTIONAL),
    CHOICE(sim_raw_scenario, connected, booleans),
    CHOICE(sim_raw_scenario, retention_ends, retentions),
    CHOICE(sim_raw_scenario, probes, probes),
    CHOICE(sim_raw_scenario, ticket_timeout, booleans),
    LAST_FIELDS,
};
const cyaml_schema_value_t sim_protocol_schema = WHOLE(sim_raw_scenario, protocol_fields);

/* ---- reading ----------------------------------------------------------------------------- */

/* What libcyaml allocates is released by free(). */
static void *allocate(void *context, void *old, size_t size)
{
    (void)context;
    if (size != 0)
        return realloc(old, size);
    free(old);
    return NULL;
}

static const cyaml_config_t settings = {
    .mem_fn = allocate,
    .log_level = CYAML_LOG_ERROR, /* and no log_fn */
    .flags = CYAML_CFG_NO_ALIAS,
};

static const cyaml_schema_value_t *schema_of(const struct sim_text *text)
{
    return text->form != NULL ? text->form->schema : text->kind->schema;
}

static void *load(struct sim_text *text)
{
    cyaml_data_t *data = NULL;
    if (!sim_scenario_check(text))
        return NULL;
    cyaml_err_t failed = cyaml_load_data((const uint8_t *)text->octets, text->length, &settings,
                                         schema_of(text), &data, NULL);
    if (failed != CYAML_OK) { /* little else than want of memory */
        sim_complain_at(text, sim_top_of_text, "",
                        "cannot be read (%s), give this program more memory",
                        cyaml_strerror(failed));
        return NULL;
    }
    return data;
}

bool sim_form_read(struct sim_text *text,
                   bool (*read)(const struct sim_text *text, void *raw, void *whole), void *whole)
{
    void *raw = load(text);
    bool good = false;
    if (raw != NULL) {
        good = whole != NULL ? read(text, raw, whole) : sim_complain(text, "", SIM_NO_MEMORY);
        cyaml_free(&settings, schema_of(text), raw, 0);
    }
    free(text->marks);
    text->marks = NULL;
    text->marks_count = text->marks_room = 0;
    return good;
}
