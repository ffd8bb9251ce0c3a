/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A text is checked against the schema first, so that complaints have the right place and words:
 * those of libcyaml come through its log, often with the line before. It then reads what it cannot
 * refuse any more.
 */
#include "sim/scenario_schema.h"

#include <cyaml/cyaml.h>

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "sim/scenario.h"

/* ---- the schema -------------------------------------------------------------------------- */

/*
 * Numbers are strings here and booleans an enumeration: libcyaml alone would take "4x" for 4,
 * "010" for 8 and "flase" for true.
 */
static const cyaml_strval_t kinds[] = {{"ring", SIM_KIND_RING}};
static const cyaml_strval_t agents[] = {{"cpu", SIM_AGENT_CPU}, {"rnic", SIM_AGENT_RNIC}};
static const cyaml_strval_t memories[] = {
    {"sc", SIM_MEMORY_SC}, {"tso", SIM_MEMORY_TSO}, {"relaxed", SIM_MEMORY_RELAXED}};
static const cyaml_strval_t tears[] = {{"8", 8}, {"4", 4}};
static const cyaml_strval_t dma_orders[] = {
    {"any", SIM_DMA_ANY}, {"ascending", SIM_DMA_ASCENDING}, {"descending", SIM_DMA_DESCENDING}};
static const cyaml_strval_t counter_forms[] = {{"masked", SIM_COUNTERS_MASKED},
                                               {"unmasked", SIM_COUNTERS_UNMASKED}};
static const cyaml_strval_t completions[] = {{"deferred", SIM_FREE_COMPLETES_DEFERRED},
                                             {"written", SIM_FREE_COMPLETES_WRITTEN}};
static const cyaml_strval_t booleans[] = {{"false", false}, {"true", true}};

#define OPTIONAL CYAML_FLAG_OPTIONAL
#define REQUIRED CYAML_FLAG_DEFAULT
#define STRING(type, key, need) \
    CYAML_FIELD_STRING_PTR(#key, need, struct type, key, 0, CYAML_UNLIMITED)
#define CHOICE(type, key, words) \
    CYAML_FIELD_ENUM_PTR(#key, OPTIONAL | CYAML_FLAG_STRICT, struct type, key, words, \
                         CYAML_ARRAY_LEN(words))
#define LIST(key, need, entry, least, most) \
    CYAML_FIELD_SEQUENCE(#key, (need) | CYAML_FLAG_POINTER, struct sim_raw_scenario, key, entry, \
                         least, most)

static const cyaml_schema_field_t allocator_fields[] = {
    STRING(sim_raw_allocator, name, REQUIRED),
    CHOICE(sim_raw_allocator, agent, agents),
    STRING(sim_raw_allocator, allocations, REQUIRED),
    CYAML_FIELD_END,
};
static const cyaml_schema_value_t allocator_schema = {
    CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, struct sim_raw_allocator, allocator_fields)};

static const cyaml_schema_field_t freer_fields[] = {
    STRING(sim_raw_freer, name, REQUIRED),
    CYAML_FIELD_END,
};
static const cyaml_schema_value_t freer_schema = {
    CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, struct sim_raw_freer, freer_fields)};

static const cyaml_schema_value_t event_schema = {
    CYAML_VALUE_STRING(CYAML_FLAG_POINTER, char *, 0, CYAML_UNLIMITED)};

static const cyaml_schema_field_t scenario_fields[] = {
    CYAML_FIELD_ENUM("kind", CYAML_FLAG_STRICT, struct sim_raw_scenario, kind, kinds,
                     CYAML_ARRAY_LEN(kinds)),
    STRING(sim_raw_scenario, title, OPTIONAL),
    CHOICE(sim_raw_scenario, memory, memories),
    STRING(sim_raw_scenario, store_buffer, OPTIONAL),
    CHOICE(sim_raw_scenario, tear, tears),
    CHOICE(sim_raw_scenario, dma_order, dma_orders),
    STRING(sim_raw_scenario, slots, REQUIRED),
    STRING(sim_raw_scenario, blocks, REQUIRED),
    STRING(sim_raw_scenario, first_block, OPTIONAL),
    STRING(sim_raw_scenario, block_size, OPTIONAL),
    STRING(sim_raw_scenario, first_ticket, OPTIONAL),
    STRING(sim_raw_scenario, first_generation, OPTIONAL),
    STRING(sim_raw_scenario, quota, OPTIONAL),
    STRING(sim_raw_scenario, handles, OPTIONAL),
    STRING(sim_raw_scenario, crashes, OPTIONAL),
    CHOICE(sim_raw_scenario, counters, counter_forms),
    CHOICE(sim_raw_scenario, free_completes, completions),
    CHOICE(sim_raw_scenario, address_le, booleans),
    LIST(allocators, REQUIRED, &allocator_schema, 1, SIM_MAX_ALLOCATORS),
    LIST(freers, REQUIRED, &freer_schema, 1, SIM_MAX_FREERS),
    LIST(must_reach, OPTIONAL, &event_schema, 0, SIM_MAX_MUST_REACH),
    CYAML_FIELD_END,
};
static const cyaml_schema_value_t scenario_schema = {
    CYAML_VALUE_MAPPING(CYAML_FLAG_POINTER, struct sim_raw_scenario, scenario_fields)};

_Static_assert(CYAML_ARRAY_LEN(scenario_fields) - 1 <= SIM_MAX_KEYS, "check_key(): a bit each");

/* ---- the check --------------------------------------------------------------------------- */

#define complain_here(walk, ...) \
    sim_complain_at((walk)->text, (walk)->place, (walk)->path.text, __VA_ARGS__)

/* The letters to insert, delete or replace to make b of a; many when a is longer than any key. */
static unsigned edit_distance(const char *a, const char *b)
{
    unsigned row[33];
    size_t columns = strlen(b);
    if (strlen(a) >= CYAML_ARRAY_LEN(row) || columns >= CYAML_ARRAY_LEN(row))
        return UINT32_MAX;
    for (unsigned j = 0; j <= columns; j++)
        row[j] = j;
    for (unsigned i = 1; a[i - 1] != '\0'; i++) {
        unsigned diagonal = row[0];
        row[0] = i;
        for (unsigned j = 1; j <= columns; j++) {
            unsigned replaced = diagonal + (a[i - 1] != b[j - 1]);
            unsigned other = (row[j] < row[j - 1] ? row[j] : row[j - 1]) + 1;
            diagonal = row[j];
            row[j] = replaced < other ? replaced : other;
        }
    }
    return row[columns];
}

static bool complain_unknown_key(const struct sim_walk *walk, const cyaml_schema_field_t *fields)
{
    const char *key = (const char *)walk->event.data.scalar.value;
    const char *nearest = NULL;
    unsigned least = 3; /* two slips are a slip, three are another word */
    for (; fields->key != NULL; fields++) {
        unsigned distance = edit_distance(key, fields->key);
        if (distance < least) {
            least = distance;
            nearest = fields->key;
        }
    }
    if (nearest != NULL)
        return complain_here(walk, "unknown key, did you mean '%s'?", nearest);
    return complain_here(walk, "unknown key, remove it or take one of kbtp-scenario(5)");
}

static bool check_characters(const struct sim_walk *walk)
{
    const char *value = (const char *)walk->event.data.scalar.value;
    size_t length = walk->event.data.scalar.length;
    for (size_t i = 0, n; i < length; i += n) {
        n = sim_printable(value + i, length - i);
        if (n == 0 && value[i] == '\n')
            return complain_here(walk, "has a line break, write it in one line");
        if (n == 0)
            return complain_here(walk, "has a control character (octet 0x%02X), remove it",
                                 (unsigned char)value[i]);
    }
    return true;
}

static bool check_word(const struct sim_walk *walk, const cyaml_schema_value_t *schema)
{
    const char *value = (const char *)walk->event.data.scalar.value;
    const cyaml_strval_t *words = schema->enumeration.strings;
    uint32_t count = schema->enumeration.count;
    struct sim_string all = {.length = 0};
    for (uint32_t i = 0; i < count; i++) {
        if (strcmp(value, words[i].str) == 0)
            return true;
        const char *before = i + 1 < count ? ", " : " or ";
        sim_string_add(&all, "%s%s", i > 0 ? before : "", words[i].str);
    }
    return complain_here(walk, "%s is not known here, write %s", sim_quoted(value).text, all.text);
}

static bool check_value(struct sim_walk *walk, const cyaml_schema_value_t *schema);

static bool check_list(struct sim_walk *walk, const cyaml_schema_value_t *schema)
{
    size_t length = walk->path.length;
    for (unsigned count = 0;; count++) {
        if (!sim_walk_next(walk))
            return false;
        if (walk->event.type == YAML_SEQUENCE_END_EVENT)
            return count >= schema->sequence.min ||
                   complain_here(walk, "has no entry, list 1 to %u", schema->sequence.max);
        walk->place = sim_walk_place(walk);
        sim_path_add_entry(&walk->path, count);
        if (count == schema->sequence.max)
            return complain_here(walk, "is one entry too many, list at most %u", count);
        sim_walk_mark(walk);
        if (!check_value(walk, schema->sequence.entry))
            return false;
        sim_string_cut(&walk->path, length);
    }
}

/* At a key: finds the schema of its value. `seen` has a bit for each field that came before. */
static bool check_key(struct sim_walk *walk, const cyaml_schema_field_t *fields, uint32_t *seen,
                      const cyaml_schema_value_t **value)
{
    walk->place = sim_walk_place(walk);
    if (walk->event.type != YAML_SCALAR_EVENT)
        return complain_here(walk, "has a key that is no word, write a word before the ':'");
    const char *key = (const char *)walk->event.data.scalar.value;
    sim_path_add_key(&walk->path, key);
    if (!check_characters(walk))
        return false;
    unsigned i = 0;
    while (fields[i].key != NULL && strcmp(fields[i].key, key) != 0)
        i++;
    if (fields[i].key == NULL)
        return complain_unknown_key(walk, fields);
    if ((*seen >> i & 1) != 0)
        return complain_here(walk, "is here for the second time, keep one of them");
    *seen |= UINT32_C(1) << i;
    *value = &fields[i].value;
    sim_walk_mark(walk);
    return true;
}

static bool check_mapping(struct sim_walk *walk, const cyaml_schema_field_t *fields)
{
    struct sim_place start = walk->place;
    size_t length = walk->path.length;
    uint32_t seen = 0;
    for (;;) {
        const cyaml_schema_value_t *value = NULL;
        if (!sim_walk_next(walk))
            return false;
        if (walk->event.type == YAML_MAPPING_END_EVENT)
            break;
        if (!check_key(walk, fields, &seen, &value) || !sim_walk_next(walk) ||
            !check_value(walk, value))
            return false;
        sim_string_cut(&walk->path, length);
    }
    walk->place = start;
    for (unsigned i = 0; fields[i].key != NULL; i++)
        if ((seen >> i & 1) == 0 && (fields[i].value.flags & OPTIONAL) == 0) {
            sim_path_add_key(&walk->path, fields[i].key);
            return complain_here(walk, "is required and missing, add it");
        }
    return true;
}

static bool check_value(struct sim_walk *walk, const cyaml_schema_value_t *schema)
{
    yaml_event_type_t type = walk->event.type;
    if (type == YAML_ALIAS_EVENT)
        return complain_here(walk, "is an alias, write the value itself");
    if (schema->type == CYAML_MAPPING) {
        if (type == YAML_MAPPING_START_EVENT)
            return check_mapping(walk, schema->mapping.fields);
        return complain_here(walk, "is not a mapping, %s",
                             walk->path.length == 0 ? "start with 'kind: ring'"
                                                    : "write keys with values, such as 'name: X'");
    }
    if (schema->type == CYAML_SEQUENCE) {
        if (type == YAML_SEQUENCE_START_EVENT)
            return check_list(walk, schema);
        return complain_here(walk, "is not a list, write one '- ' for each entry");
    }
    if (type != YAML_SCALAR_EVENT)
        return complain_here(walk, "is a list or a mapping, write a single value");
    return check_characters(walk) && (schema->type != CYAML_ENUM || check_word(walk, schema));
}

/* One document with one scenario. */
static bool check_events(struct sim_walk *walk)
{
    if (!sim_walk_next(walk))
        return false;
    if (walk->event.type == YAML_STREAM_END_EVENT)
        return complain_here(walk, "is empty, start with 'kind: ring'");
    if (!sim_walk_next(walk))
        return false;
    walk->place = sim_walk_place(walk);
    if (!check_value(walk, &scenario_schema) || !sim_walk_next(walk))
        return false;
    walk->place = sim_walk_place(walk);
    return walk->event.type == YAML_STREAM_END_EVENT ||
           complain_here(walk, "a second document starts here, keep one in each file");
}

static bool check(struct sim_text *text)
{
    struct sim_walk walk;
    if (!sim_walk_open(&walk, text))
        return false;
    bool good = check_events(&walk);
    sim_walk_close(&walk);
    return good;
}

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

struct sim_raw_scenario *sim_scenario_load(struct sim_text *text)
{
    cyaml_data_t *data = NULL;
    if (!check(text))
        return NULL;
    cyaml_err_t failed = cyaml_load_data((const uint8_t *)text->octets, text->length, &settings,
                                         &scenario_schema, &data, NULL);
    if (failed != CYAML_OK) { /* little else than want of memory */
        sim_complain_at(text, sim_top_of_text, "",
                        "cannot be read (%s), give this program more memory",
                        cyaml_strerror(failed));
        return NULL;
    }
    return data;
}

void sim_scenario_unload(struct sim_raw_scenario *raw)
{
    cyaml_free(&settings, &scenario_schema, raw, 0);
}
