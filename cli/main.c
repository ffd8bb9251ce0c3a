/* SPDX-License-Identifier: BSD-3-Clause */
#include <locale.h>
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "version.h"

static const struct cli_command *const commands[] = {
    &cli_explore,     &cli_replay,  &cli_run,      &cli_sweep, &cli_decode,
    &cli_policy,      &cli_devices, &cli_target,   &cli_load,  &cli_store,
    &cli_alloc_store, &cli_free,    &cli_run_real, &cli_bench};

static void print_help(FILE *out)
{
    fputs("kbtp: reference implementation and simulator of the KV Cache Block Transfer Protocol\n"
          "\n"
          "usage: kbtp COMMAND [OPTIONS] ...\n"
          "       kbtp help [COMMAND]\n"
          "       kbtp --version\n"
          "\n",
          out);
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        fprintf(out, "  %-11s %s\n", commands[i]->name, commands[i]->does);
    fputs("\nexit status: 0 nothing wrong, 1 something found, 2 bad input, 3 stopped at a bound,\n"
          "             4 the machine failed\n",
          out);
}

static const struct cli_command *find(const char *name)
{
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        if (strcmp(commands[i]->name, name) == 0)
            return commands[i];
    return NULL;
}

static int unknown(const char *name)
{
    char shown[41];
    snprintf(shown, sizeof shown, "%s", name);
    for (char *c = shown; *c; c++)
        if ((unsigned char)*c < 0x20 || *c == 0x7f)
            *c = '?';
    fprintf(stderr, "kbtp: there is no command '%s'; `kbtp help` lists them\n", shown);
    return CLI_BAD_INPUT;
}

static int help(int argc, char **argv)
{
    if (argc > 3) {
        fputs("kbtp help: takes one command at most\n", stderr);
        return CLI_BAD_INPUT;
    }
    if (argc < 3) {
        print_help(stdout);
        return CLI_DONE;
    }
    const struct cli_command *command = find(argv[2]);
    if (!command)
        return unknown(argv[2]);
    fputs(command->usage, stdout);
    return CLI_DONE;
}

static int dispatch(int argc, char **argv)
{
    if (argc < 2) {
        fputs("kbtp: which command? `kbtp help` lists them\n", stderr);
        return CLI_BAD_INPUT;
    }
    const char *name = argv[1];
    if (strcmp(name, "--version") == 0 && argc == 2) {
        printf("kbtp %s\n", KBTP_VERSION);
        return CLI_DONE;
    }
    if (strcmp(name, "help") == 0)
        return help(argc, argv);
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0) {
        print_help(stdout);
        return CLI_DONE;
    }
    const struct cli_command *command = find(name);
    return command ? command->run(argc - 1, argv + 1) : unknown(name);
}

int main(int argc, char **argv)
{
    setlocale(LC_CTYPE, "");
    int status = dispatch(argc, argv);
    /* What could not be written was not said. */
    if (fflush(stdout) != 0 || ferror(stdout)) {
        perror("kbtp: standard output");
        return CLI_ENVIRONMENT;
    }
    return status;
}
