/* SPDX-License-Identifier: BSD-3-Clause */
/* The file of a sweep, docs/kbtp-sweep.1.scd describes it. */
#include <stdlib.h>
#include <string.h>

#include "cli/sweep.h"
#include "sim/read_file.h"
#include "sim/scenario_value.h"

#define ERROR_OCTETS 900u

static const struct sim_form form = {
    .what = "sweep", .begin = "scenario:", .page = "kbtp-sweep(1)", .schema = NULL};

#define complain_here(walk, ...) \
    sim_complain_at((walk)->text, (walk)->place, (walk)->path.text, __VA_ARGS__)

/* ---- values ------------------------------------------------------------------------------ */

/* One that a command line can hold. */
static bool check_characters(const struct sim_walk *walk)
{
    const char *value = (const char *)walk->event.data.scalar.value;
    size_t length = walk->event.data.scalar.length;
    for (size_t i = 0, n; i < length; i += n) {
        n = sim_printable(value + i, length - i);
        if (n == 0)
            return complain_here(walk,
                                 "has a line break or control character (octet 0x%02X), "
                                 "remove it",
                                 (unsigned char)value[i]);
    }
    return true;
}

static bool add_value(const struct sim_walk *walk, struct sweep_list *list)
{
    if (walk->event.type != YAML_SCALAR_EVENT)
        return complain_here(walk, "is not a single value, write one");
    if (!check_characters(walk))
        return false;
    if (list->count == list->room) {
        unsigned room = list->room ? 2 * list->room : 8;
        struct sweep_value *all = realloc(list->all, room * sizeof *all);
        if (!all)
            return complain_here(walk, SIM_NO_MEMORY);
        list->all = all;
        list->room = room;
    }
    char *text = strdup((const char *)walk->event.data.scalar.value);
    if (!text)
        return complain_here(walk, SIM_NO_MEMORY);
    list->all[list->count++] = (struct sweep_value){text, walk->place};
    return true;
}

static bool read_list(struct sim_walk *walk, struct sweep_list *list)
{
    size_t length = walk->path.length;
    if (walk->event.type != YAML_SEQUENCE_START_EVENT)
        return complain_here(walk, "is not a list, write one such as [1, 2]");
    while (sim_walk_next(walk)) {
        if (walk->event.type == YAML_SEQUENCE_END_EVENT)
            return list->count > 0 || complain_here(walk, "has no entry, write one or more");
        walk->place = sim_walk_place(walk);
        sim_path_add_entry(&walk->path, list->count);
        if (list->count == SWEEP_MAX_VALUES)
            return complain_here(walk, "is one entry too many, have at most %u", SWEEP_MAX_VALUES);
        if (!add_value(walk, list))
            return false;
        sim_string_cut(&walk->path, length);
        walk->place = list->place;
    }
    return false;
}

/* ---- keys -------------------------------------------------------------------------------- */

struct reading {
    struct sweep *sweep;
    struct sweep_list scenario;
    bool has_set;
};

static bool read_scenario(struct sim_walk *walk, struct reading *r)
{
    const char *file = r->sweep->file, *slash = strrchr(file, '/');
    if (!add_value(walk, &r->scenario))
        return false;
    const char *name = r->scenario.all->text;
    /* A name that begins with '-' is no option. */
    const char *folder = *name == '-' && !slash ? "./" : "";
    int octets = slash && *name != '/' ? (int)(slash - file) + 1 : 0;
    size_t size = strlen(folder) + (size_t)octets + strlen(name) + 1;
    r->sweep->scenario = malloc(size);
    if (!r->sweep->scenario)
        return complain_here(walk, SIM_NO_MEMORY);
    snprintf(r->sweep->scenario, size, "%s%.*s%s", folder, octets, file, name);
    return true;
}

static bool read_options(struct sim_walk *walk, struct reading *r)
{
    static const char *const ours[] = {"--csv", "--help", "--json", "--seed", "--set", NULL};
    struct sweep_list *options = &r->sweep->options;
    if (!read_list(walk, options))
        return false;
    for (unsigned i = 0; i < options->count; i++) {
        const char *option = options->all[i].text;
        size_t length = strcspn(option, "=");
        struct sim_string path = sim_entry_path("options", i, NULL);
        if (strcmp(option, "-h") == 0 || strcmp(option, "--") == 0)
            return sim_complain_at(walk->text, options->all[i].place, path.text,
                                   "'%s' cannot stand here, remove it", option);
        for (const char *const *our = ours; *our; our++) /* also when it is shortened */
            if (length > 2 && strncmp(*our, option, length) == 0)
                return sim_complain_at(walk->text, options->all[i].place, path.text,
                                       "'%s' is the sweep's own, remove it", *our);
    }
    return true;
}

/* So many, or which. */
static bool read_seeds(struct sim_walk *walk, struct reading *r)
{
    struct sweep_list *seeds = &r->sweep->seeds;
    uint64_t number;
    char text[16];
    if (walk->event.type != YAML_SCALAR_EVENT) {
        if (!read_list(walk, seeds))
            return false;
        for (unsigned i = 0; i < seeds->count; i++)
            if (!sim_is_number(seeds->all[i].text, &number) || number > INT64_MAX)
                return sim_complain_at(walk->text, seeds->all[i].place,
                                       sim_entry_path("seeds", i, NULL).text,
                                       "%s is not a number, write one from 0 to 2^63 - 1",
                                       sim_quoted(seeds->all[i].text).text);
        return true;
    }
    if (!sim_is_number((const char *)walk->event.data.scalar.value, &number) || number == 0 ||
        number > SWEEP_MAX_RUNS)
        return complain_here(walk, "%s is not a number from 1 to %u, write how many or a list",
                             sim_quoted((const char *)walk->event.data.scalar.value).text,
                             SWEEP_MAX_RUNS);
    seeds->all = calloc(number, sizeof *seeds->all);
    for (; seeds->all && seeds->count < number; seeds->count++) {
        snprintf(text, sizeof text, "%u", seeds->count + 1);
        seeds->all[seeds->count] = (struct sweep_value){strdup(text), walk->place};
        if (!seeds->all[seeds->count].text)
            break;
    }
    return seeds->count == number || complain_here(walk, SIM_NO_MEMORY);
}

/* At a key of a mapping, which becomes part of the path. */
static bool take_key(struct sim_walk *walk)
{
    walk->place = sim_walk_place(walk);
    if (walk->event.type != YAML_SCALAR_EVENT)
        return complain_here(walk, "has a key that is no word, write a word before the ':'");
    sim_path_add_key(&walk->path, (const char *)walk->event.data.scalar.value);
    return check_characters(walk);
}

static bool read_parameter(struct sim_walk *walk, struct sweep *sweep)
{
    if (!take_key(walk))
        return false;
    const char *key = (const char *)walk->event.data.scalar.value;
    for (unsigned i = 0; i < sweep->parameters_count; i++)
        if (strcmp(sweep->parameters[i].key, key) == 0)
            return complain_here(walk, "is here for the second time, keep one of them");
    if (sweep->parameters_count == SWEEP_MAX_PARAMETERS)
        return complain_here(walk, "is one too many, have at most %u", SWEEP_MAX_PARAMETERS);
    struct sweep_list *parameter = &sweep->parameters[sweep->parameters_count++];
    *parameter = (struct sweep_list){.key = strdup(key), .place = walk->place};
    if (!parameter->key)
        return complain_here(walk, SIM_NO_MEMORY);
    return sim_walk_next(walk) && read_list(walk, parameter);
}

static bool read_set(struct sim_walk *walk, struct reading *r)
{
    struct sim_place place = walk->place;
    size_t length = walk->path.length;
    if (walk->event.type != YAML_MAPPING_START_EVENT)
        return complain_here(walk, "is not a mapping, write paths and lists, such as "
                                   "'instances[0].count: [1, 2]'");
    while (sim_walk_next(walk)) {
        if (walk->event.type == YAML_MAPPING_END_EVENT)
            return true;
        if (!read_parameter(walk, r->sweep))
            return false;
        sim_string_cut(&walk->path, length);
        walk->place = place;
    }
    return false;
}

static bool read_columns(struct sim_walk *walk, struct reading *r)
{
    static const char *const others[] = {"scenario", "wall_s", "memory_octets", NULL};
    struct sweep_list *columns = &r->sweep->columns;
    if (!read_list(walk, columns))
        return false;
    for (unsigned i = 0; i < columns->count; i++)
        for (const char *const *other = others; *other; other++)
            if (strcmp(columns->all[i].text, *other) == 0)
                return sim_complain_at(walk->text, columns->all[i].place,
                                       sim_entry_path("columns", i, NULL).text,
                                       "'%s' depends on where it is run, remove it", *other);
    return true;
}

/* ---- the whole --------------------------------------------------------------------------- */

static const struct {
    const char *key;
    bool (*read)(struct sim_walk *walk, struct reading *r);
} keys[] = {{"scenario", read_scenario},
            {"options", read_options},
            {"seeds", read_seeds},
            {"set", read_set},
            {"columns", read_columns}};
#define KEYS (sizeof keys / sizeof *keys)

static struct sweep_list *list_of(struct reading *r, size_t key)
{
    struct sweep *s = r->sweep;
    struct sweep_list *const lists[KEYS] = {&r->scenario, &s->options, &s->seeds, NULL,
                                            &s->columns};
    return lists[key];
}

static bool read_key(struct sim_walk *walk, struct reading *r)
{
    size_t i = 0;
    if (!take_key(walk))
        return false;
    while (i < KEYS && strcmp(keys[i].key, (const char *)walk->event.data.scalar.value) != 0)
        i++;
    if (i == KEYS)
        return complain_here(walk,
                             "unknown key, write one of scenario, options, seeds, set and columns");
    struct sweep_list *list = list_of(r, i);
    if (list ? list->place.line != 0 : r->has_set)
        return complain_here(walk, "is here for the second time, keep one of them");
    if (list)
        list->place = walk->place;
    else
        r->has_set = true;
    return sim_walk_next(walk) && keys[i].read(walk, r);
}

static bool read_keys(struct sim_walk *walk, struct reading *r)
{
    if (!sim_walk_next(walk) ||
        (walk->event.type == YAML_DOCUMENT_START_EVENT && !sim_walk_next(walk)))
        return false;
    if (walk->event.type != YAML_MAPPING_START_EVENT)
        return complain_here(walk, "is not a mapping, start with 'scenario: FILE.yaml'");
    while (sim_walk_next(walk) && walk->event.type != YAML_MAPPING_END_EVENT) {
        if (!read_key(walk, r))
            return false;
        sim_string_cut(&walk->path, 0);
        walk->place = sim_top_of_text;
    }
    if (walk->event.type != YAML_MAPPING_END_EVENT || !sim_walk_next(walk))
        return false;
    if (walk->event.type != YAML_STREAM_END_EVENT)
        return sim_complain_at(walk->text, sim_walk_place(walk), "",
                               "a second document starts here, keep one in each file");
    return r->scenario.count > 0 || sim_complain_at(walk->text, sim_top_of_text, "scenario",
                                                    "is required and missing, add it");
}

static bool count_runs(const struct sim_text *text, struct sweep *s)
{
    uint64_t runs = s->seeds.count ? s->seeds.count : 1;
    for (unsigned i = 0; i < s->parameters_count; i++) {
        struct sim_string path = {.length = 0};
        sim_path_add_key(&path, "set");
        sim_path_add_key(&path, s->parameters[i].key);
        runs *= s->parameters[i].count;
        if (runs > SWEEP_MAX_RUNS)
            return sim_complain_at(text, s->parameters[i].place, path.text,
                                   "makes %ju runs, have at most %u", (uintmax_t)runs,
                                   SWEEP_MAX_RUNS);
        if (s->seeds.count && strcmp(s->parameters[i].key, "seed") == 0)
            return sim_complain_at(text, s->parameters[i].place, path.text,
                                   "there are 'seeds', remove one of both");
    }
    s->runs = (uint32_t)runs;
    return true;
}

static void free_list(struct sweep_list *list)
{
    for (unsigned i = 0; i < list->count; i++)
        free(list->all[i].text);
    free(list->all);
    free(list->key);
}

static bool read_text(struct sim_text *text, struct sweep *sweep)
{
    struct sim_walk walk;
    struct reading r = {.sweep = sweep};
    if (!sim_walk_open(&walk, text))
        return false;
    bool good = read_keys(&walk, &r);
    sim_walk_close(&walk);
    good = good && count_runs(text, sweep) && sweep_check_values(text, sweep, r.scenario.place);
    free_list(&r.scenario);
    return good;
}

bool sweep_read(const char *path, struct sweep *sweep)
{
    char error[ERROR_OCTETS], *octets;
    struct sim_text text = {
        .name = path, .error = error, .error_size = sizeof error, .form = &form};
    bool good = false;
    *sweep = (struct sweep){.file = path};
    if (sim_read_file(path, SIM_TEXT_LIMIT, &octets, &text.length, error, sizeof error) == 0) {
        text.octets = octets;
        good = read_text(&text, sweep);
        free(octets);
    }
    if (!good)
        cli_complain("%s", error);
    return good;
}

void sweep_free(struct sweep *sweep)
{
    free(sweep->scenario);
    free_list(&sweep->seeds);
    free_list(&sweep->options);
    free_list(&sweep->columns);
    for (unsigned i = 0; i < sweep->parameters_count; i++)
        free_list(&sweep->parameters[i]);
}
