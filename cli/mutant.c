/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A mutant of ref/ is an executable kbtp-mutant-NAME beside kbtp, linked with the changed code and
 * otherwise the same. It knows its name from its own path.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "mutants.h"

#define PREFIX "kbtp-mutant-"

static const char *const mutants[] = {KBTP_MUTANTS, NULL};

/* The path of this executable in `path`; the part behind the last slash is returned. */
static char *self_path(char path[PATH_MAX])
{
    ssize_t length = readlink("/proc/self/exe", path, PATH_MAX - 1);
    path[length < 0 ? 0 : length] = 0;
    char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

const char *cli_program(void)
{
    static char path[PATH_MAX];
    char *name = self_path(path);
    if (strncmp(name, PREFIX, sizeof PREFIX - 1) == 0)
        memcpy(name, "kbtp", sizeof "kbtp"); /* is shorter */
    char here[PATH_MAX];
    size_t length = getcwd(here, sizeof here) ? strlen(here) : 0;
    if (length > 1 && strncmp(path, here, length) == 0 && path[length] == '/')
        return path + length + 1;
    return path;
}

const char *cli_mutant_self(void)
{
    static char path[PATH_MAX];
    const char *name = self_path(path);
    return strncmp(name, PREFIX, sizeof PREFIX - 1) == 0 ? name + sizeof PREFIX - 1 : "none";
}

static bool is_known(const char *name)
{
    for (unsigned i = 0; mutants[i]; i++)
        if (strcmp(mutants[i], name) == 0)
            return true;
    return false;
}

void cli_list_mutants(void)
{
    char path[PATH_MAX], target[PATH_MAX + 64];
    unsigned found = 0;
    *self_path(path) = 0;
    for (unsigned i = 0; mutants[i]; i++) {
        snprintf(target, sizeof target, "%s" PREFIX "%s", path, mutants[i]);
        if (access(target, X_OK) != 0)
            continue;
        puts(mutants[i]);
        found++;
    }
    if (found == 0)
        cli_complain("mutants come with the build, not with the installation");
}

int cli_become_mutant(const char *name, char **argv)
{
    char path[PATH_MAX], target[PATH_MAX + 64];
    if (strcmp(name, cli_mutant_self()) == 0)
        return CLI_DONE;
    if (strcmp(name, "none") != 0 && !is_known(name)) {
        cli_complain("there is no mutant '%.60s'; `kbtp explore --mutant list` prints them", name);
        return CLI_BAD_INPUT;
    }
    *self_path(path) = 0;
    if (strcmp(name, "none") == 0)
        snprintf(target, sizeof target, "%skbtp", path);
    else
        snprintf(target, sizeof target, "%s" PREFIX "%s", path, name);
    fflush(stdout);
    execv(target, argv - 1); /* with the word before the command */
    cli_complain(
        "cannot run the mutant %s: %s; mutants come with the build, not with the installation",
        target, strerror(errno));
    return CLI_ENVIRONMENT;
}
