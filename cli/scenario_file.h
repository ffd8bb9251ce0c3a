/* SPDX-License-Identifier: BSD-3-Clause */
/* Scenario files as the commands read them. */
#ifndef KBTP_CLI_SCENARIO_FILE_H
#define KBTP_CLI_SCENARIO_FILE_H

#include <stddef.h>

struct sim_scenario;

/* The whole file, with a final NUL that does not count; free() it. NULL after a complaint. */
char *scenario_file_text(const char *path, size_t *length);
/* A scenario of steps, and its text; sim_scenario_free(), free(). NULL, and no text, after a
 * complaint. */
struct sim_scenario *scenario_file_read(const char *path, char **text);

#endif
