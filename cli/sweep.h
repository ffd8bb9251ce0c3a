/* SPDX-License-Identifier: BSD-3-Clause */
/* `kbtp sweep`: a grid of timed runs, in any order and anywhere, and one table of what came. */
#ifndef KBTP_CLI_SWEEP_H
#define KBTP_CLI_SWEEP_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "cli/cli.h"
#include "sim/scenario_text.h"

#define SWEEP_MAX_RUNS 100000u
#define SWEEP_MAX_VALUES 1000u /* of one list */
#define SWEEP_MAX_PARAMETERS CLI_SETTINGS

struct sweep_value {
    char *text;
    struct sim_place place;
};

/* What stands behind a key of the file. */
struct sweep_list {
    char *key; /* of a parameter: the path in the scenario */
    struct sim_place place;
    struct sweep_value *all;
    unsigned count, room;
};

struct sweep {
    const char *file;
    char *scenario;            /* its path from where we are */
    struct sweep_list seeds;   /* none: the scenario's */
    struct sweep_list options; /* of kbtp run */
    struct sweep_list columns; /* none: those of sweep_rows.c */
    struct sweep_list parameters[SWEEP_MAX_PARAMETERS];
    unsigned parameters_count;
    uint32_t runs;
};

/* ---- sweep_file.c, sweep_check.c */

/* Reads and checks the file. False after a complaint; sweep_free() in any case. */
bool sweep_read(const char *path, struct sweep *sweep);
void sweep_free(struct sweep *sweep);
/*
 * Are paths and values such that the scenario can be read with them? A value that is only wrong
 * next to some value of another parameter is good: that run fails, others do not.
 */
bool sweep_check_values(const struct sim_text *text, const struct sweep *sweep,
                        struct sim_place scenario_place);

/* ---- sweep_words.c: runs are numbered; seeds change fastest, then the last parameter. */

/* Which value of parameter `parameter` run `run` has, and which seed. */
const char *sweep_value_of(const struct sweep *sweep, uint32_t run, unsigned parameter);
const char *sweep_seed_of(const struct sweep *sweep, uint32_t run); /* NULL: the scenario's */
/* A command line for the shell that does the run. */
void sweep_print_command(FILE *out, const struct sweep *sweep, uint32_t run);

/* ---- sweep_rows.c */

struct sweep_row {
    int status;      /* exit status of the run; -1: there is none yet */
    json_t *figures; /* a list, as the columns; NULL if it failed */
};

struct sweep_table {
    const struct sweep *sweep;
    struct sweep_row *rows;
    const char **columns;
    bool *seen; /* has a run such a figure? */
    unsigned columns_count;
};

bool sweep_table_open(struct sweep_table *table, const struct sweep *sweep); /* false: no memory */
void sweep_table_close(struct sweep_table *table);
/* Takes the figures of a run from what `kbtp run --json` printed; false: that is none. */
bool sweep_table_take(struct sweep_table *table, uint32_t run, const char *json);
/* Writes rows that have a status, by their numbers; for cli_write_file(). */
int sweep_write_csv(void *table, void *file);
int sweep_write_jsonl(void *table, void *file);

/* ---- sweep_run.c */

struct sweep_places {
    const char *jobs, *sshlogin; /* options of GNU parallel, or NULL */
};

/*
 * Does all runs through GNU parallel and fills the table. Returns the worst exit status of a run,
 * or another after a complaint.
 */
int sweep_run_all(struct sweep_table *table, const struct sweep_places *places);

#endif
