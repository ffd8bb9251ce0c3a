/* SPDX-License-Identifier: BSD-3-Clause */
/* Values of a sweep are tried on the scenario before anything is run. */
#include <stdlib.h>
#include <string.h>

#include "cli/sweep.h"
#include "sim/read_file.h"
#include "sim/scenario_set.h"
#include "sim/timed/timed.h"

#define ERROR_OCTETS 900u
#define MAX_TRIES 1000u /* of a value that is wrong: with other values of the others */

struct trying {
    const struct sweep *sweep;
    const char *octets; /* of the scenario */
    size_t length;
    char error[ERROR_OCTETS];
    struct sim_setting settings[SWEEP_MAX_PARAMETERS];
    char called[SWEEP_MAX_PARAMETERS][400];
};

/* Complaints about a value name its place in the file of the sweep. */
static void set(struct trying *t, unsigned parameter, unsigned value)
{
    const struct sweep_list *list = &t->sweep->parameters[parameter];
    const struct sweep_value *v = &list->all[value];
    struct sim_string path = {.length = 0};
    sim_path_add_key(&path, "set");
    sim_path_add_key(&path, list->key);
    sim_path_add_entry(&path, value);
    /* The end of a long name says most. */
    size_t length = strlen(t->sweep->file);
    const char *file = t->sweep->file + (length > 200 ? length - 200 : 0);
    snprintf(t->called[parameter], sizeof t->called[parameter], "%s:%zu:%zu: %s", file,
             v->place.line, v->place.column, path.text);
    t->settings[parameter] =
        (struct sim_setting){.called = t->called[parameter], .path = list->key, .value = v->text};
}

static bool parses(struct trying *t)
{
    struct sim_timed *timed =
        sim_timed_parse_set(t->sweep->scenario, t->octets, t->length, t->settings,
                            t->sweep->parameters_count, t->error, sizeof t->error);
    sim_timed_free(timed);
    return timed != NULL;
}

/* Is this value wrong next to whatever the others are? *works: it can be read. */
static bool is_wrong(struct trying *t, unsigned parameter, unsigned value, bool *works)
{
    const struct sweep *s = t->sweep;
    uint32_t combinations = s->runs / (s->seeds.count ? s->seeds.count : 1);
    combinations /= s->parameters[parameter].count;
    for (uint32_t n = 0; n < combinations && n < MAX_TRIES; n++) {
        uint32_t rest = n;
        for (unsigned i = 0; i < s->parameters_count; i++) {
            unsigned count = s->parameters[i].count;
            set(t, i, i == parameter ? value : rest % count);
            rest /= i == parameter ? 1 : count;
        }
        if (parses(t))
            *works = true;
        if (!t->settings[parameter].blamed)
            return false;
    }
    return true;
}

bool sweep_check_values(const struct sim_text *text, const struct sweep *sweep,
                        struct sim_place scenario_place)
{
    struct trying *t = calloc(1, sizeof *t);
    char *octets = NULL;
    bool works = false, wrong = false;
    if (!t)
        return sim_complain_at(text, sim_top_of_text, "", SIM_NO_MEMORY);
    t->sweep = sweep;
    if (sim_read_file(sweep->scenario, SIM_TEXT_LIMIT, &octets, &t->length, t->error,
                      sizeof t->error) != 0) {
        sim_complain_at(text, scenario_place, "scenario", "%s", t->error);
        free(t);
        return false;
    }
    t->octets = octets;
    for (unsigned p = 0; p < sweep->parameters_count && !wrong; p++)
        for (unsigned v = 0; v < sweep->parameters[p].count && !wrong; v++)
            wrong = is_wrong(t, p, v, &works);
    if (sweep->parameters_count == 0)
        works = parses(t);
    if (wrong || !works)
        snprintf(text->error, text->error_size, "%s", t->error);
    free(octets);
    free(t);
    return works && !wrong;
}
