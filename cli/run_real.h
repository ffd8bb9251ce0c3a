/* SPDX-License-Identifier: BSD-3-Clause */
/* `kbtp run-real`: the requests of a scenario in turn, simulated and over a device. */
#ifndef KBTP_CLI_RUN_REAL_H
#define KBTP_CLI_RUN_REAL_H

#include "sim/in_turn.h"

struct run_real_options {
    const char *listen, *device;
    double timeout; /* seconds for what comes of the requests of a turn */
    bool simulated, both, list, trusted, json;
};

/*
 * Runs the requests of t->scenario over a device: its target and its initiators are all in this
 * thread, each CPU with a handle of its own. CLI_DONE, or what to exit with, after a complaint.
 */
int run_real_over_device(const struct run_real_options *options, struct sim_in_turn *t);

#endif
