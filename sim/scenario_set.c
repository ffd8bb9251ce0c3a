/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/scenario_set.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/scenario_text.h"

#define MAX_STEPS 8u /* no form is deeper */

/* ---- the path ---------------------------------------------------------------------------- */

/* A key, or without one an entry of a list. */
struct step {
    char key[64];
    unsigned entry;
    size_t end; /* of the path's octets that lead here */
};

struct way {
    struct step steps[MAX_STEPS];
    unsigned count;
};

static bool blame(struct sim_text *text, struct sim_setting *setting, const char *what,
                  const char *path, size_t length)
{
    char before[128];
    snprintf(before, sizeof before, "%.*s", (int)length, path);
    setting->blamed = true;
    sim_complain_by(text, setting->called, "%s%s%s", before, *before ? " " : "", what);
    return false;
}

/* "[0]" */
static bool read_entry(const char *path, size_t *at, struct step *step)
{
    char *end;
    const char *digits = path + *at + 1;
    unsigned long entry = strtoul(digits, &end, 10);
    if (!isdigit((unsigned char)*digits) || (*digits == '0' && end != digits + 1) || *end != ']' ||
        entry > 9999)
        return false;
    step->entry = (unsigned)entry;
    *at = (size_t)(end + 1 - path);
    return true;
}

static bool read_key(const char *path, size_t *at, struct step *step)
{
    size_t length = strspn(path + *at, SIM_NAME_CHARACTERS);
    if (length == 0 || length >= sizeof step->key)
        return false;
    memcpy(step->key, path + *at, length);
    *at += length;
    return true;
}

static bool read_way(struct sim_text *text, struct sim_setting *setting, struct way *way)
{
    const char *path = setting->path;
    *way = (struct way){.count = 0};
    for (size_t at = 0; way->count < MAX_STEPS;) {
        struct step *step = &way->steps[way->count++];
        bool good =
            path[at] == '[' && at > 0 ? read_entry(path, &at, step) : read_key(path, &at, step);
        step->end = at;
        if (!good || (path[at] && path[at] != '.' && path[at] != '['))
            break;
        if (!path[at])
            return true;
        at += path[at] == '.';
    }
    return blame(text, setting, "is no path, write one such as instances[0].count", path,
                 strlen(path));
}

/* ---- the place --------------------------------------------------------------------------- */

/* Where what is set goes: in the place of `removed` octets, between what stands around it. */
struct gap {
    size_t at, removed;
    unsigned from;      /* the first step that is new; all of them are there: the count */
    const char *before; /* a value: a blank, if one is needed */
    const char *after;
    size_t indent; /* behind that */
};

/* libyaml counts characters. */
static size_t octet_of(const struct sim_text *text, yaml_mark_t mark)
{
    size_t at = 0;
    for (size_t left = mark.index; at < text->length; at++)
        if (((unsigned char)text->octets[at] & 0xc0) != 0x80 && left-- == 0)
            break;
    return at;
}

/* From the start of a node to its end. */
static bool skip(struct sim_walk *walk)
{
    for (unsigned depth = 0;;) {
        yaml_event_type_t type = walk->event.type;
        depth += type == YAML_MAPPING_START_EVENT || type == YAML_SEQUENCE_START_EVENT;
        depth -= type == YAML_MAPPING_END_EVENT || type == YAML_SEQUENCE_END_EVENT;
        if (depth == 0)
            return true;
        if (!sim_walk_next(walk))
            return false;
    }
}

/* A new key goes before the first one, or between the two brackets. */
static void gap_in_mapping(const struct sim_walk *walk, bool flow, struct gap *gap)
{
    const struct sim_text *text = walk->text;
    bool empty = walk->event.type == YAML_MAPPING_END_EVENT;
    *gap = (struct gap){.at = octet_of(text, walk->event.start_mark), .before = ""};
    gap->after = empty ? "" : flow ? ", " : "\n";
    gap->indent = flow ? 0 : walk->event.start_mark.column;
}

/* At the start of a mapping: to the value of the key. Not there: `found` is false. */
static bool to_key(struct sim_walk *walk, const char *key, struct gap *gap, bool *found)
{
    bool flow = walk->event.data.mapping_start.style == YAML_FLOW_MAPPING_STYLE;
    *found = false;
    for (bool first = true; sim_walk_next(walk); first = false) {
        if (first)
            gap_in_mapping(walk, flow, gap);
        if (walk->event.type == YAML_MAPPING_END_EVENT)
            return true;
        bool here = walk->event.type == YAML_SCALAR_EVENT &&
                    strcmp((const char *)walk->event.data.scalar.value, key) == 0;
        if (!skip(walk) || !sim_walk_next(walk))
            return false;
        if (here)
            return *found = true;
        if (!skip(walk))
            return false;
    }
    return false;
}

/* At the start of a list: to an entry, or to the end of the list. */
static bool to_entry(struct sim_walk *walk, unsigned entry, unsigned *count)
{
    for (*count = 0; sim_walk_next(walk); ++*count) {
        if (walk->event.type == YAML_SEQUENCE_END_EVENT || *count == entry)
            return true;
        if (!skip(walk))
            return false;
    }
    return false;
}

static bool gap_at_value(struct sim_walk *walk, struct sim_setting *setting, struct gap *gap)
{
    struct sim_text *text = walk->text;
    const char *path = setting->path;
    if (walk->event.type != YAML_SCALAR_EVENT)
        return blame(text, setting, "is more than a value, set something in it", path,
                     strlen(path));
    yaml_scalar_style_t style = walk->event.data.scalar.style;
    size_t end = octet_of(text, walk->event.end_mark);
    gap->at = octet_of(text, walk->event.start_mark);
    gap->removed = end - gap->at;
    gap->before = gap->removed ? "" : " ";
    gap->after = /* those end with their line */
        style == YAML_LITERAL_SCALAR_STYLE || style == YAML_FOLDED_SCALAR_STYLE ? "\n" : "";
    gap->indent = 0;
    return true;
}

/* A step that leads nowhere from the present node. */
static bool lost(struct sim_walk *walk, struct sim_setting *setting, const struct way *way,
                 unsigned at)
{
    bool list = walk->event.type == YAML_SEQUENCE_START_EVENT;
    const char *what = list                  ? "is a list, write which entry, such as [0]"
                       : *way->steps[at].key ? "has no keys"
                                             : "is not a list";
    return blame(walk->text, setting, what, setting->path, at > 0 ? way->steps[at - 1].end : 0);
}

/* One step from the present node. *more: something is there. */
static bool take_step(struct sim_walk *walk, struct sim_setting *setting, const struct way *way,
                      unsigned at, struct gap *gap, bool *more)
{
    const struct step *step = &way->steps[at];
    yaml_event_type_t type = walk->event.type;
    char what[96];
    unsigned count;
    if (*step->key && type == YAML_MAPPING_START_EVENT)
        return to_key(walk, step->key, gap, more);
    if (*step->key || type != YAML_SEQUENCE_START_EVENT)
        return lost(walk, setting, way, at);
    if (!to_entry(walk, step->entry, &count))
        return false;
    *more = walk->event.type != YAML_SEQUENCE_END_EVENT;
    snprintf(what, sizeof what, "has %u %s, counted from 0, and gets no new one", count,
             count == 1 ? "entry" : "entries");
    return *more || blame(walk->text, setting, what, setting->path, way->steps[at - 1].end);
}

/* A key that is not there can only have keys below it. */
static bool check_new(struct sim_text *text, struct sim_setting *setting, const struct way *way,
                      unsigned from)
{
    for (unsigned i = from; i < way->count; i++)
        if (!*way->steps[i].key)
            return blame(text, setting, "is not there", setting->path, way->steps[i - 1].end);
    return true;
}

static bool find_gap(struct sim_walk *walk, struct sim_setting *setting, const struct way *way,
                     struct gap *gap)
{
    bool more = true;
    unsigned at = 0;
    if (!sim_walk_next(walk) ||
        (walk->event.type == YAML_DOCUMENT_START_EVENT && !sim_walk_next(walk)))
        return false;
    while (at < way->count && more) {
        if (!take_step(walk, setting, way, at, gap, &more))
            return false;
        at += more;
    }
    gap->from = at;
    return more ? gap_at_value(walk, setting, gap) : check_new(walk->text, setting, way, at);
}

/* ---- the text ---------------------------------------------------------------------------- */

static void put_quoted(FILE *out, const char *value)
{
    putc('"', out);
    for (const char *c = value; *c; c++)
        if (*c == '"' || *c == '\\')
            fprintf(out, "\\%c", *c);
        else if ((unsigned char)*c < 0x20 || *c == 0x7f)
            fprintf(out, "\\x%02X", (unsigned char)*c);
        else
            putc(*c, out);
    putc('"', out);
}

/* `network: {leaf_ports: "4"}`, of which the first so many keys are there. */
static void put_new(FILE *out, const struct sim_setting *setting, const struct way *way,
                    const struct gap *gap)
{
    fputs(gap->before, out);
    for (unsigned i = gap->from; i < way->count; i++)
        fprintf(out, "%s%s: ", i > gap->from ? "{" : "", way->steps[i].key);
    put_quoted(out, setting->value);
    for (unsigned i = gap->from + 1; i < way->count; i++)
        putc('}', out);
    fprintf(out, "%s%*s", gap->after, (int)gap->indent, "");
}

/* Makes the new text; the one before is freed if it was made here. */
static bool splice(struct sim_text *text, struct sim_setting *setting, const struct way *way,
                   const struct gap *gap)
{
    char *octets = NULL;
    size_t length = 0, end = gap->at + gap->removed;
    FILE *out = open_memstream(&octets, &length);
    if (!out)
        return sim_complain(text, "", SIM_NO_MEMORY);
    fwrite(text->octets, 1, gap->at, out);
    put_new(out, setting, way, gap);
    fwrite(text->octets + end, 1, text->length - end, out);
    bool failed = ferror(out) != 0;
    if (fclose(out) != 0 || failed || !octets) {
        free(octets);
        return sim_complain(text, "", SIM_NO_MEMORY);
    }
    unsigned created = gap->from < way->count ? gap->from : way->count - 1;
    setting->edit = (struct sim_edit){gap->at, gap->removed, length - (text->length - gap->removed),
                                      way->steps[created].end};
    if (text->settings->done++ > 0)
        free((void *)(uintptr_t)text->octets);
    text->octets = octets;
    text->length = length;
    return true;
}

static bool apply(struct sim_text *text, struct sim_setting *setting)
{
    struct sim_walk walk;
    struct way way;
    struct gap gap = {.at = 0};
    if (!read_way(text, setting, &way) || !sim_walk_open(&walk, text))
        return false;
    bool found = find_gap(&walk, setting, &way, &gap);
    sim_walk_close(&walk);
    return found && splice(text, setting, &way, &gap);
}

bool sim_settings_apply(struct sim_text *text, struct sim_settings *settings)
{
    settings->octets = text->octets;
    settings->length = text->length;
    settings->done = 0;
    text->settings = settings;
    for (unsigned i = 0; i < settings->count; i++)
        if (!apply(text, &settings->all[i]))
            return false;
    return true;
}

void sim_settings_end(struct sim_text *text)
{
    if (text->settings && text->settings->done > 0)
        free((void *)(uintptr_t)text->octets);
}

/* ---- complaints -------------------------------------------------------------------------- */

/* Is that what is new with this setting, or below it? */
static bool is_new(const struct sim_setting *setting, const char *path)
{
    size_t created = setting->edit.created;
    return strncmp(path, setting->path, created) == 0 &&
           (path[created] == '\0' || path[created] == '.' || path[created] == '[');
}

static size_t octet_of_place(const char *octets, size_t length, struct sim_place place)
{
    size_t at = 0;
    for (size_t line = 1; line < place.line && at < length; at++)
        line += octets[at] == '\n';
    for (size_t column = 1; at < length && octets[at] != '\n'; at++)
        if (((unsigned char)octets[at] & 0xc0) != 0x80 && column++ == place.column)
            break;
    return at;
}

struct sim_setting *sim_settings_blame(const struct sim_text *text, const char *path,
                                       struct sim_place *place)
{
    const struct sim_settings *settings = text->settings;
    for (unsigned i = settings->done; i-- > 0;)
        if (is_new(&settings->all[i], path))
            return &settings->all[i];
    size_t at = octet_of_place(text->octets, text->length, *place);
    for (unsigned i = settings->done; i-- > 0;) {
        const struct sim_edit *edit = &settings->all[i].edit;
        if (at >= edit->at + edit->inserted)
            at = at - edit->inserted + edit->removed;
        else if (at > edit->at)
            return &settings->all[i];
    }
    *place = sim_place_of_octet(settings->octets, settings->length, at);
    return NULL;
}
