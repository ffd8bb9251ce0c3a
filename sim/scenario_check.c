/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A text is checked against the schema first, so that complaints have the right place and words:
 * those of libcyaml come through its log, often with the line before. It then reads what it cannot
 * refuse any more.
 */
#include "sim/scenario_check.h"

#include <cyaml/cyaml.h>

#include <stdint.h>
#include <string.h>

#include "sim/kind.h"
#include "sim/scenario_schema.h"

/* ---- the check --------------------------------------------------------------------------- */

#define OPTIONAL CYAML_FLAG_OPTIONAL
#define KIND "kind"

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

static const cyaml_schema_field_t *find_field(const cyaml_schema_field_t *fields, const char *key)
{
    for (; fields->key != NULL; fields++)
        if (strcmp(fields->key, key) == 0)
            return fields;
    return NULL;
}

static const cyaml_schema_field_t *fields_of(const struct sim_kind *kind)
{
    return kind->schema->mapping.fields;
}

/* A kind, other than `but`, whose scenarios have this key. */
static const struct sim_kind *kind_with(const char *key, const struct sim_kind *but)
{
    for (uint32_t i = 0; i < sim_kinds_count; i++)
        if (&sim_kinds[i] != but && find_field(fields_of(&sim_kinds[i]), key) != NULL)
            return &sim_kinds[i];
    return NULL;
}

/* The key that resembles this one most, should any do so more than *least. */
static void find_nearest(const cyaml_schema_field_t *fields, const char *key, const char **nearest,
                         unsigned *least)
{
    for (; fields->key != NULL; fields++) {
        unsigned distance = edit_distance(key, fields->key);
        if (distance < *least) {
            *least = distance;
            *nearest = fields->key;
        }
    }
}

static const char *begin_of(const struct sim_text *text)
{
    return text->form != NULL ? text->form->begin : "kind: ring";
}

/* The fields of the mapping that is the value of a field, or each entry of it; NULL: none is. */
static const cyaml_schema_field_t *fields_below(const cyaml_schema_field_t *field)
{
    const cyaml_schema_value_t *value = &field->value;
    if (value->type == CYAML_SEQUENCE)
        value = value->sequence.entry;
    return value->type == CYAML_MAPPING ? value->mapping.fields : NULL;
}

/* Where a file that is no scenario has this key: "at the top or in 'default'"; else nothing. */
static struct sim_string places_of(const struct sim_form *form, const char *key)
{
    struct sim_string all = {.length = 0};
    const cyaml_schema_field_t *field = form->schema->mapping.fields;
    if (find_field(field, key) != NULL)
        sim_string_add(&all, "at the top");
    for (; field->key != NULL; field++) {
        const cyaml_schema_field_t *below = fields_below(field);
        if (below != NULL && find_field(below, key) != NULL)
            sim_string_add(&all, "%sin %s'%s'", all.length > 0 ? " or " : "",
                           field->value.type == CYAML_SEQUENCE ? "an entry of " : "", field->key);
    }
    return all;
}

/* Without `fields`: a scenario whose kind is not known yet. */
static bool complain_unknown_key(const struct sim_walk *walk, const cyaml_schema_field_t *fields)
{
    const char *key = (const char *)walk->event.data.scalar.value;
    const char *nearest = NULL;
    unsigned least = 3; /* two slips are a slip, three are another word */
    if (walk->text->form != NULL) {
        const struct sim_string places = places_of(walk->text->form, key);
        if (places.length > 0)
            return complain_here(walk, "is not a key of this place, write it %s", places.text);
    }
    if (fields != NULL)
        find_nearest(fields, key, &nearest, &least);
    for (uint32_t i = 0; fields == NULL && i < sim_kinds_count; i++)
        find_nearest(fields_of(&sim_kinds[i]), key, &nearest, &least);
    if (nearest != NULL)
        return complain_here(walk, "unknown key, did you mean '%s'?", nearest);
    return complain_here(walk, "unknown key, remove it or take one of %s",
                         walk->text->form != NULL ? walk->text->form->page : "kbtp-scenario(5)");
}

#define OTHER_KIND "is a key of kind %s, remove it or write 'kind: %s'"

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

static bool check_kind(const struct sim_walk *walk)
{
    const char *value = (const char *)walk->event.data.scalar.value;
    struct sim_string all = {.length = 0};
    walk->text->kind = sim_kind_named(value);
    for (uint32_t i = 0; i < sim_kinds_count; i++)
        sim_string_add(&all, "%s%s", i > 0 ? " or " : "", sim_kinds[i].name);
    if (strcmp(value, "timed") == 0) /* sim/timed/timed.h */
        return complain_here(walk, "'timed' has no steps, use `kbtp run`, or write %s", all.text);
    return walk->text->kind != NULL ||
           complain_here(walk, "%s is not known here, write %s", sim_quoted(value).text, all.text);
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
        if (!sim_walk_mark(walk) || !check_value(walk, schema->sequence.entry))
            return false;
        sim_string_cut(&walk->path, length);
    }
}

/* The top of the scenario is the one mapping whose fields depend on the kind. */
static bool is_scenario(const struct sim_walk *walk)
{
    return walk->path.length == 0 && walk->text->form == NULL;
}

/* At a key that is a word: its field, or NULL after a complaint. */
static const cyaml_schema_field_t *known_field(const struct sim_walk *walk,
                                               const cyaml_schema_field_t *fields, bool scenario)
{
    const char *key = (const char *)walk->event.data.scalar.value;
    const struct sim_kind *kind = walk->text->kind, *other = NULL;
    if (scenario)
        fields = kind != NULL ? fields_of(kind) : NULL;
    const cyaml_schema_field_t *field = fields != NULL ? find_field(fields, key) : NULL;
    if (scenario && field == NULL)
        other = kind_with(key, kind);
    if (other != NULL && kind != NULL)
        complain_here(walk, OTHER_KIND, other->name, other->name);
    else if (other != NULL)
        field = find_field(fields_of(other), key);
    else if (field == NULL)
        complain_unknown_key(walk, fields);
    return field;
}

/* At a key: the schema of its value, or NULL after a complaint. `first` as in check_mapping(). */
static const cyaml_schema_value_t *check_key(struct sim_walk *walk,
                                             const cyaml_schema_field_t *fields, unsigned first)
{
    bool scenario = is_scenario(walk);
    walk->place = sim_walk_place(walk);
    if (walk->event.type != YAML_SCALAR_EVENT) {
        complain_here(walk, "has a key that is no word, write a word before the ':'");
        return NULL;
    }
    sim_path_add_key(&walk->path, (const char *)walk->event.data.scalar.value);
    if (!check_characters(walk))
        return NULL;
    const cyaml_schema_field_t *field = known_field(walk, fields, scenario);
    if (field == NULL)
        return NULL;
    if (sim_text_marked(walk->text, first, walk->path.text) != NULL) {
        complain_here(walk, "is here for the second time, keep one of them");
        return NULL;
    }
    return sim_walk_mark(walk) ? &field->value : NULL;
}

static bool check_missing(struct sim_walk *walk, const cyaml_schema_field_t *fields, unsigned first)
{
    size_t length = walk->path.length;
    for (; fields->key != NULL; fields++) {
        sim_path_add_key(&walk->path, fields->key);
        if ((fields->value.flags & OPTIONAL) == 0 &&
            sim_text_marked(walk->text, first, walk->path.text) == NULL)
            return complain_here(walk, "is required and missing, add it");
        sim_string_cut(&walk->path, length);
    }
    return true;
}

/* Keys that came before `kind` can be of another one. */
static bool check_kinds_agree(const struct sim_walk *walk)
{
    const struct sim_text *text = walk->text;
    for (unsigned i = 0; i < text->marks_count; i++) {
        const char *path = text->marks[i].path.text;
        const struct sim_kind *other = kind_with(path, text->kind);
        if (other != NULL && find_field(fields_of(text->kind), path) == NULL)
            return sim_complain_at(text, text->marks[i].place, path, OTHER_KIND, other->name,
                                   other->name);
    }
    return true;
}

static bool check_whole(struct sim_walk *walk, const cyaml_schema_field_t *fields, unsigned first)
{
    if (!is_scenario(walk))
        return check_missing(walk, fields, first);
    if (walk->text->kind != NULL)
        return check_kinds_agree(walk) && check_missing(walk, fields_of(walk->text->kind), first);
    sim_path_add_key(&walk->path, KIND);
    return complain_here(walk, "is required and missing, add it");
}

static bool check_mapping(struct sim_walk *walk, const cyaml_schema_field_t *fields)
{
    struct sim_place start = walk->place;
    size_t length = walk->path.length;
    unsigned first = walk->text->marks_count; /* the mapping's marks begin with this number */
    for (;;) {
        if (!sim_walk_next(walk))
            return false;
        if (walk->event.type == YAML_MAPPING_END_EVENT)
            break;
        const cyaml_schema_value_t *value = check_key(walk, fields, first);
        if (value == NULL || !sim_walk_next(walk) || !check_value(walk, value))
            return false;
        sim_string_cut(&walk->path, length);
    }
    walk->place = start;
    return check_whole(walk, fields, first);
}

/* A word, a number or a text. */
static bool check_scalar(const struct sim_walk *walk, const cyaml_schema_value_t *schema)
{
    if (!check_characters(walk))
        return false;
    if (walk->text->form == NULL && strcmp(walk->path.text, KIND) == 0)
        return check_kind(walk);
    return schema->type != CYAML_ENUM || check_word(walk, schema);
}

static bool check_value(struct sim_walk *walk, const cyaml_schema_value_t *schema)
{
    yaml_event_type_t type = walk->event.type;
    if (type == YAML_ALIAS_EVENT)
        return complain_here(walk, "is an alias, write the value itself");
    if (schema->type == CYAML_MAPPING) {
        if (type == YAML_MAPPING_START_EVENT)
            return check_mapping(walk, schema->mapping.fields);
        if (walk->path.length == 0)
            return complain_here(walk, "is not a mapping, start with '%s'", begin_of(walk->text));
        return complain_here(walk, "is not a mapping, write keys with values, such as 'name: X'");
    }
    if (schema->type == CYAML_SEQUENCE) {
        if (type == YAML_SEQUENCE_START_EVENT)
            return check_list(walk, schema);
        return complain_here(walk, "is not a list, write one '- ' for each entry");
    }
    if (type != YAML_SCALAR_EVENT)
        return complain_here(walk, "is a list or a mapping, write a single value");
    return check_scalar(walk, schema);
}

/*
 * Of a file that is no YAML that is what to say, rather than what its beginning seems to be: behind
 * a bracket that is not closed everything is misread.
 */
static void look_for_syntax(struct sim_walk *walk)
{
    while (walk->parser.error == YAML_NO_ERROR && walk->event.type != YAML_STREAM_END_EVENT &&
           sim_walk_next(walk))
        ;
}

/* One document with one scenario. */
static bool check_events(struct sim_walk *walk)
{
    if (!sim_walk_next(walk))
        return false;
    if (walk->event.type == YAML_STREAM_END_EVENT)
        return complain_here(walk, "is empty, start with '%s'", begin_of(walk->text));
    if (!sim_walk_next(walk))
        return false;
    walk->place = sim_walk_place(walk);
    const struct sim_form *form = walk->text->form;
    if (!check_value(walk, form != NULL ? form->schema : sim_kinds->schema) || !sim_walk_next(walk))
        return false;
    walk->place = sim_walk_place(walk);
    return walk->event.type == YAML_STREAM_END_EVENT ||
           complain_here(walk, "a second document starts here, keep one in each file");
}

bool sim_scenario_check(struct sim_text *text)
{
    struct sim_walk walk;
    if (!sim_walk_open(&walk, text))
        return false;
    bool good = check_events(&walk);
    if (!good && text->form != NULL)
        look_for_syntax(&walk);
    sim_walk_close(&walk);
    return good;
}
