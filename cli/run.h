/* SPDX-License-Identifier: BSD-3-Clause */
/* `kbtp run`: one run of a scenario in simulated time. */
#ifndef KBTP_CLI_RUN_H
#define KBTP_CLI_RUN_H

#include "cli/cli.h"
#include "sim/timed/run.h"

struct run_options {
    int wire; /* enum sim_wire_kind */
    bool wire_given;
    uint64_t seed;
    const char *platform, *nic, *csv, *perfetto, *runs;
    const char *settings[CLI_SETTINGS]; /* PATH=VALUE */
    unsigned settings_count;
    bool has_seed, check, json;
};

/* ---- run_words.c */

struct run_told {
    const char *path;
    const struct run_options *options;
    const struct sim_cost_model *model;
    const struct sim_timed_run *run;
    double wall_s;
};
void run_print_text(const struct run_told *told);
void run_print_json(const struct run_told *told);
/* Writes latency.csv and utilisation.csv into a folder. False after a complaint. */
bool run_write_csv(const struct run_told *told, const char *folder);

/* ---- run_picture.c */

struct run_picture;
/* NULL after a complaint. Then it is the context of its spans. */
struct run_picture *run_picture_begin(void);
void run_picture_span(void *context, const struct sim_timed_span *span);
/* Writes it, unless `path` is NULL, and frees it. False after a complaint. */
bool run_picture_end(struct run_picture *picture, const struct sim_timed_run *run,
                     const char *path);

#endif
