/* SPDX-License-Identifier: BSD-3-Clause */
/* Cost models as YAML. */
#include <stdlib.h>
#include <string.h>

#include "sim/scenario_fields.h"
#include "sim/scenario_text.h"
#include "sim/scenario_value.h"
#include "sim/timed/costs.h"
#include "sim/timed/value.h"

/* ---- the form ---------------------------------------------------------------------------- */

/* NULL: the key is not there. */
struct raw_figure {
    char *value;
    int *basis; /* the key `is`: enum sim_figure_basis */
    char *source;
};

struct raw_model {
    char *title;
#define COSTS_MEMBER(key, least, most, what) struct raw_figure *key;
    SIM_COSTS(COSTS_MEMBER)
#undef COSTS_MEMBER
};

static const cyaml_strval_t bases[] = {{"published", SIM_FIGURE_PUBLISHED},
                                       {"input", SIM_FIGURE_INPUT},
                                       {"measured", SIM_FIGURE_MEASURED},
                                       {"assumed", SIM_FIGURE_ASSUMED}};

static const cyaml_schema_field_t figure_fields[] = {
    STRING(raw_figure, value, REQUIRED),
    CHOICE_AS(raw_figure, "is", basis, bases),
    STRING(raw_figure, source, OPTIONAL),
    CYAML_FIELD_END,
};

static const cyaml_schema_field_t model_fields[] = {
    STRING(raw_model, title, REQUIRED),
#define COSTS_FIELD(key, least, most, what) MAPPING(raw_model, key, REQUIRED, figure_fields),
    SIM_COSTS(COSTS_FIELD)
#undef COSTS_FIELD
        CYAML_FIELD_END,
};
static const cyaml_schema_value_t model_schema = WHOLE(raw_model, model_fields);

static const struct sim_form form = {
    .what = "cost model", .begin = "title:", .page = "kbtp-nic(5)", .schema = &model_schema};

/* ---- values ------------------------------------------------------------------------------ */

static struct sim_string path_of(const char *figure, const char *key)
{
    struct sim_string path = {.length = 0};
    sim_path_add_key(&path, figure);
    sim_path_add_key(&path, key);
    return path;
}

static bool read_figure(const struct sim_text *text, unsigned number, struct raw_figure *raw,
                        struct sim_cost_model *model)
{
    const struct sim_figure *figure = &sim_figures[number];
    struct sim_figure_source *source = &model->sources[number];
    if (!sim_read_decimal(text, path_of(figure->key, "value").text, raw->value, 0, figure->least,
                          figure->most, sim_figure_value(&model->costs, number)))
        return false;
    source->basis = (enum sim_figure_basis)sim_choice(raw->basis, SIM_FIGURE_PUBLISHED);
    if (source->basis != SIM_FIGURE_ASSUMED && (!raw->source || !*raw->source))
        return sim_complain(text, figure->key,
                            "has no source, write where the figure is from, or 'is: assumed'");
    source->source = sim_take(&raw->source);
    return true;
}

static bool read_model(const struct sim_text *text, void *what, void *whole)
{
    struct raw_model *raw = what;
    struct sim_cost_model *model = whole;
    struct raw_figure *const figures[SIM_FIGURES] = {
#define COSTS_RAW(key, least, most, what) raw->key,
        SIM_COSTS(COSTS_RAW)
#undef COSTS_RAW
    };
    model->title = sim_take(&raw->title);
    for (unsigned i = 0; i < SIM_FIGURES; i++)
        if (!read_figure(text, i, figures[i], model))
            return false;
    return true;
}

struct sim_cost_model *sim_cost_model_parse(const char *name, const char *text, size_t length,
                                            char *error, size_t size)
{
    struct sim_text t = sim_text_of(name, text, length, &form, error, size);
    struct sim_cost_model *model = calloc(1, sizeof *model);
    if (sim_form_read(&t, read_model, model))
        return model;
    sim_cost_model_free(model);
    return NULL;
}
