/* SPDX-License-Identifier: BSD-3-Clause */
/* `kbtp run`: one run of a scenario in simulated time. */
#ifndef KBTP_CLI_RUN_H
#define KBTP_CLI_RUN_H

#include "cli/cli.h"
#include "sim/timed/run.h"

struct run_options {
    int wire; /* enum sim_wire_kind */
    uint64_t seed;
    const char *platform, *nic, *csv, *runs;
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

#endif
