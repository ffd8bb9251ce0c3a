/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The text of a scenario while it is read: its YAML events, where its keys stand, and complaints
 * about it. Included by sim/scenario*.c, and by those who read YAML files of another form.
 *
 * A path is the way from the top of the scenario, whose path is empty, to a key or a list entry:
 * "allocators[1].agent". Keys with unusual characters stand in quotes, so that no two places have
 * the same path.
 */
#ifndef KBTP_SIM_SCENARIO_TEXT_H
#define KBTP_SIM_SCENARIO_TEXT_H

#include <stdbool.h>
#include <stddef.h>

#include <yaml.h>

#include "sim/scenario.h"
#include "sim/scenario_line.h"

/* Keys are plain, and names legal, if they have no others. */
#define SIM_NAME_CHARACTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-"

#define SIM_NO_MEMORY "cannot be read (out of memory), give this program more memory"

/* Both are counted from one. */
struct sim_place {
    size_t line;
    size_t column; /* in characters */
};

extern const struct sim_place sim_top_of_text;

/* Where a key or list entry stands. */
struct sim_mark {
    struct sim_string path;
    struct sim_place place;
};

struct sim_kind;
struct sim_settings;
struct cyaml_schema_value;

/* What a file is that is no scenario. */
struct sim_form {
    const char *what;                        /* messages call the whole so: "policy" */
    const char *begin;                       /* what it can begin with: "initiators:" */
    const char *page;                        /* which manual page has its keys: "kbtp-policy(5)" */
    const struct cyaml_schema_value *schema; /* of a mapping */
};

struct sim_text {
    const char *name; /* what messages call it */
    const char *octets;
    size_t length;
    char *error; /* where complaints go */
    size_t error_size;
    const struct sim_form *form; /* NULL: it is a scenario */
    const struct sim_kind *kind; /* what the key `kind` says; NULL before it came */
    struct sim_mark *marks;      /* as many as the schemas allow; free() releases them */
    unsigned marks_count, marks_room;
    struct sim_settings *settings; /* what was changed in it (sim/scenario_set.h), or NULL */
};

struct sim_text sim_text_of(const char *name, const char *octets, size_t length,
                            const struct sim_form *form, char *error, size_t error_size);
/* Complains when it is beyond SIM_TEXT_LIMIT. */
bool sim_text_fits(const struct sim_text *text);

/*
 * A walk over the events of the text, but for starts of the stream and ends of documents. It sets
 * `event`; who walks sets path and place.
 */
struct sim_walk {
    struct sim_text *text;
    yaml_parser_t parser;
    yaml_event_t event;
    struct sim_string path;
    struct sim_place place;
};

void sim_path_add_key(struct sim_string *path, const char *key);
void sim_path_add_entry(struct sim_string *path, unsigned index);

/*
 * Writes "NAME:LINE:COLUMN: PATH: what is wrong, what to do" as the error line. An empty path: it
 * is about the whole. Always false, so that what checks something can end with it.
 */
bool sim_complain_at(const struct sim_text *text, struct sim_place place, const char *path,
                     const char *format, ...) __attribute__((format(printf, 4, 5)));
/* The same, at the mark that has this path. */
bool sim_complain(const struct sim_text *text, const char *path, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* "WHO: what is wrong, what to do": about what is not in the text. */
bool sim_complain_by(const struct sim_text *text, const char *who, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* These complain when they return false. A walk that was opened has to be closed. */
bool sim_walk_open(struct sim_walk *walk, struct sim_text *text);
bool sim_walk_next(struct sim_walk *walk);
/* Remembers where the present path is. */
bool sim_walk_mark(const struct sim_walk *walk);
void sim_walk_close(struct sim_walk *walk);

/*
 * Reads a text that is one plain YAML mapping of its form: makes raw values of it, as the schema
 * says, and marks its keys. Then `read` makes `whole` of them; it may take strings out (leave NULL)
 * that free() releases. False after a complaint, also when there is no memory for `whole` (NULL).
 */
bool sim_form_read(struct sim_text *text,
                   bool (*read)(const struct sim_text *text, void *raw, void *whole), void *whole);

struct sim_place sim_place_of_octet(const char *octets, size_t length, size_t offset);
/* Where the present event starts. */
struct sim_place sim_walk_place(const struct sim_walk *walk);
/* The mark with this path, of those from number `first` on; or NULL. */
const struct sim_mark *sim_text_marked(const struct sim_text *text, unsigned first,
                                       const char *path);

#endif
