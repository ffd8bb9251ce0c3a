/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/trace_file.h"

#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "sim/read_file.h"
#include "version.h"

#define STEP_TEXT 48u

static int write_trace(void *context, void *file)
{
    return sim_trace_write(file, context);
}

static void free_steps(char **steps, uint32_t count)
{
    for (uint32_t i = 0; steps && i < count; i++)
        free(steps[i]);
    free(steps);
}

static char **steps_in_words(const struct sim_world *w, const struct sim_report *report)
{
    char **steps = calloc(report->trace_steps + 1u, sizeof *steps);
    for (uint32_t i = 0; steps && i < report->trace_steps; i++) {
        steps[i] = malloc(STEP_TEXT);
        if (!steps[i]) {
            free_steps(steps, report->trace_steps);
            return NULL;
        }
        sim_step_print(w, &report->trace[i], steps[i], STEP_TEXT);
    }
    return steps;
}

bool trace_file_write(const char *path, const struct sim_world *w, const struct sim_report *report,
                      uint64_t seed, uint64_t digest, const char *scenario_path,
                      const char *scenario_text)
{
    const char *slash = strrchr(scenario_path, '/');
    char **steps = steps_in_words(w, report);
    if (!steps) {
        cli_complain("no memory for the trace");
        return false;
    }
    struct sim_trace trace = {
        .version = (char *)(uintptr_t)KBTP_VERSION,
        .mutant = (char *)(uintptr_t)cli_mutant_self(),
        .machine = w->scenario->machine,
        .stepping = w->stepping,
        .property = (char *)(uintptr_t)report->violation.property,
        .what = (char *)(uintptr_t)report->violation.text,
        .scenario_name = (char *)(uintptr_t)(slash ? slash + 1 : scenario_path),
        .scenario_text = (char *)(uintptr_t)scenario_text,
        .seed = seed,
        .digest = digest,
        .steps = steps,
        .steps_count = report->trace_steps,
    };
    bool well = cli_write_file(path, write_trace, &trace);
    free_steps(steps, report->trace_steps);
    return well;
}

bool trace_file_is(const char *text)
{
    return strncmp(text, SIM_TRACE_FIRST_KEY, sizeof SIM_TRACE_FIRST_KEY - 1) == 0;
}

struct sim_trace *trace_file_read(const char *path)
{
    char error[400], *text;
    size_t length;
    if (sim_read_file(path, SIM_MAX_TRACE_OCTETS, &text, &length, error, sizeof error) != 0) {
        cli_complain("%s", error);
        return NULL;
    }
    struct sim_trace *trace = sim_trace_parse(path, text, length, error, sizeof error);
    if (!trace)
        cli_complain("%s", error);
    free(text);
    return trace;
}
