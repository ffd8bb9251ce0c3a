/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Values that somebody sets in a YAML text before it is read: `kbtp run --set PATH=VALUE`. A path
 * is what complaints call a place (sim/scenario_text.h): "instances[0].count".
 *
 * It is the text that is changed, and no more of it than the value, so that complaints about the
 * rest name the places of the file.
 */
#ifndef KBTP_SIM_SCENARIO_SET_H
#define KBTP_SIM_SCENARIO_SET_H

#include <stdbool.h>
#include <stddef.h>

struct sim_text;
struct sim_place;

/* `removed` octets became `inserted` others. */
struct sim_edit {
    size_t at, removed, inserted;
    size_t created; /* so much of the path (octets) leads to the first thing that is new */
};

struct sim_setting {
    const char *called; /* what complaints about it begin with: "--set instances[0].count=4" */
    const char *path;
    const char *value;
    bool blamed; /* the complaint is about it */
    struct sim_edit edit;
};

struct sim_settings {
    struct sim_setting *all;
    unsigned count;
    unsigned done;      /* of them stand in the text */
    const char *octets; /* the text before */
    size_t length;
};

/*
 * Replaces the values at these paths, or adds them, one after the other; entries of lists are not
 * added. `text` then has other octets, until sim_settings_end(). False after a complaint.
 */
bool sim_settings_apply(struct sim_text *text, struct sim_settings *settings);
void sim_settings_end(struct sim_text *text);

/*
 * Whom a complaint about this path and place is about: a setting, or NULL and `place` becomes that
 * of the text before.
 */
struct sim_setting *sim_settings_blame(const struct sim_text *text, const char *path,
                                       struct sim_place *place);

#endif
