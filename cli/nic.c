/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/nic.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "sim/read_file.h"

/* The folder that holds `path`, with its last '/', or nothing. */
static void folder_of(const char *path, char *out, size_t size)
{
    const char *slash = strrchr(path, '/');
    snprintf(out, size, "%.*s", slash ? (int)(slash - path) + 1 : 0, path);
}

static bool is_path(const char *name)
{
    size_t length = strlen(name);
    return strchr(name, '/') || (length > 5 && strcmp(name + length - 5, ".yaml") == 0);
}

/* Where models may be: from the scenario's folder, and from the program's, installed or built. */
static const struct place {
    bool by_program;
    const char *folder;
} places[] = {{false, ""},
              {false, "nic/"},
              {false, "../nic/"},
              {true, "../share/kbtp/scenarios/nic/"},
              {true, "../../scenarios/nic/"}};

/* False when there is none of this name. */
static bool find_nic(const char *scenario, const char *name, char *out, size_t size)
{
    char by_scenario[2048], by_program[1024], program[1024] = "";
    folder_of(scenario, by_scenario, sizeof by_scenario);
    if (is_path(name)) {
        snprintf(out, size, "%s%s", name[0] == '/' ? "" : by_scenario, name);
        return true;
    }
    ssize_t octets = readlink("/proc/self/exe", program, sizeof program - 1);
    program[octets > 0 ? octets : 0] = '\0';
    folder_of(program, by_program, sizeof by_program);
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        const struct place *place = &places[i];
        snprintf(out, size, "%s%s%s.yaml", place->by_program ? by_program : by_scenario,
                 place->folder, name);
        if (access(out, R_OK) == 0)
            return true;
    }
    return false;
}

struct sim_cost_model *nic_read(const char *file, const char *scenario, const char *name)
{
    char path[4096], error[900], *text;
    size_t length;
    struct sim_cost_model *model = NULL;
    if (file)
        snprintf(path, sizeof path, "%s", file);
    else if (!find_nic(scenario, name, path, sizeof path)) {
        cli_complain("%.200s: nic: there is no cost model %.60s, write its path or give --nic FILE",
                     scenario, name);
        return NULL;
    }
    if (sim_read_file(path, SIM_TEXT_LIMIT, &text, &length, error, sizeof error) == 0) {
        model = sim_cost_model_parse(path, text, length, error, sizeof error);
        free(text);
    }
    if (!model)
        cli_complain("%s", error);
    return model;
}
