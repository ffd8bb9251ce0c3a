/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/scenario_file.h"

#include <stdlib.h>

#include "cli/cli.h"
#include "cli/trace_file.h"
#include "sim/read_file.h"
#include "sim/scenario.h"

#define ERROR_OCTETS 1000u /* a list of all events fits */

char *scenario_file_text(const char *path, size_t *length)
{
    char error[ERROR_OCTETS], *text;
    if (sim_read_file(path, SIM_TEXT_LIMIT, &text, length, error, sizeof error) == 0)
        return text;
    cli_complain("%s", error);
    return NULL;
}

struct sim_scenario *scenario_file_read(const char *path, char **text)
{
    char error[ERROR_OCTETS];
    size_t length;
    struct sim_scenario *scenario = NULL;
    *text = scenario_file_text(path, &length);
    if (!*text)
        return NULL;
    if (trace_file_is(*text))
        cli_complain("%s is a trace, no scenario: `kbtp replay` runs it again", path);
    else if (!(scenario = sim_scenario_parse(path, *text, length, error, sizeof error)))
        cli_complain("%s", error);
    if (!scenario) {
        free(*text);
        *text = NULL;
    }
    return scenario;
}
