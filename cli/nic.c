/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/nic.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "sim/read_file.h"

#define FILE_LIMIT ((size_t)1 << 20)

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

/*
 * Where the cost model is that a scenario names: a path from the scenario's folder, or the name of
 * one beside it, in ../nic/, or among those that are installed.
 */
static void find_nic(const char *scenario, const char *name, char *out, size_t size)
{
    static const char *const places[] = {"%snic/%s.yaml", "%s../nic/%s.yaml",
                                         "%s../share/kbtp/scenarios/nic/%s.yaml"};
    char folder[2048], program[1024] = "";
    folder_of(scenario, folder, sizeof folder);
    if (is_path(name)) {
        snprintf(out, size, "%s%s", name[0] == '/' ? "" : folder, name);
        return;
    }
    snprintf(out, size, "%s%s.yaml", folder, name);
    for (size_t i = 0; access(out, R_OK) != 0 && i < sizeof places / sizeof *places; i++) {
        if (i == 2) {
            ssize_t octets = readlink("/proc/self/exe", program, sizeof program - 1);
            program[octets > 0 ? octets : 0] = '\0';
            folder_of(program, folder, sizeof folder);
        }
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
        snprintf(out, size, places[i], folder, name);
#pragma GCC diagnostic pop
    }
    if (access(out, R_OK) != 0) /* what a complaint is to name */
        snprintf(out, size, "%s.yaml", name);
}

struct sim_cost_model *nic_read(const char *file, const char *scenario, const char *name)
{
    char path[4096], error[900], *text;
    size_t length;
    struct sim_cost_model *model = NULL;
    if (file)
        snprintf(path, sizeof path, "%s", file);
    else
        find_nic(scenario, name, path, sizeof path);
    if (sim_read_file(path, FILE_LIMIT, &text, &length, error, sizeof error) == 0) {
        model = sim_cost_model_parse(path, text, length, error, sizeof error);
        free(text);
    }
    if (!model)
        cli_complain("%s", error);
    return model;
}
