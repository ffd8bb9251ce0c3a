/* SPDX-License-Identifier: BSD-3-Clause */
/* What the subcommands share. Messages go to standard error, one clear line each. */
#ifndef KBTP_CLI_CLI_H
#define KBTP_CLI_CLI_H

#include <getopt.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Exit status, the same for every command. */
enum cli_status {
    CLI_DONE = 0,
    CLI_FOUND = 1,       /* a violation, a vacuous scenario */
    CLI_BAD_INPUT = 2,   /* command line, scenario or input file */
    CLI_STOPPED = 3,     /* at a bound, before it was complete */
    CLI_ENVIRONMENT = 4, /* the machine said no */
};

#define CLI_SETTINGS 32u /* --set PATH=VALUE, in one command */

struct cli_command {
    const char *name;
    const char *does;  /* a line for `kbtp help` */
    const char *usage; /* the whole text of `kbtp help NAME` */
    int (*run)(int argc, char **argv);
    const char *letters; /* "j": -j is short for the first option that begins so; or NULL */
};

extern const struct cli_command cli_explore, cli_replay, cli_run, cli_sweep, cli_decode, cli_policy;
/* Over devices of this machine. */
extern const struct cli_command cli_devices, cli_target, cli_load, cli_store, cli_alloc_store,
    cli_free, cli_run_real, cli_bench;

/* An option of a command and what becomes of its value. */
struct cli_option {
    const char *name;
    bool takes_value;
    /* Stores the value; false after cli_complain(). `into` is the command's own. */
    bool (*set)(const char *option, const char *value, void *into);
};

/*
 * Reads `--options` and at most `operands_max` operands. Returns -1 when the command goes on, else
 * the exit status (help was asked for, or something is wrong and was said).
 */
int cli_parse(const struct cli_command *command, int argc, char **argv,
              const struct cli_option *options, void *into, const char **operands,
              unsigned operands_max, unsigned *operands_count);

/* "kbtp explore: ..." on standard error. */
void cli_complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Values; false after a complaint that names `option`. Numbers take 0x. */
bool cli_number(const char *option, const char *value, uint64_t least, uint64_t most,
                uint64_t *number);
bool cli_size(const char *option, const char *value, uint64_t *octets); /* 64KiB, 1GiB */
bool cli_time(const char *option, const char *value, double *seconds);  /* 250ms, 2s, 5min */
/* One of `words` (NULL at the end): its index. */
bool cli_word(const char *option, const char *value, const char *const *words, int *index);

/*
 * Writes the file `path`. A regular file is replaced when all was written, not before; a pipe or
 * device is written to. Complains and returns false when that fails.
 */
bool cli_write_file(const char *path, int (*write)(void *context, void *file), void *context);

/* A copy of `text` for people: what would steer a terminal becomes '?'. */
void cli_printable(char *out, size_t size, const char *text);

/* Do both paths lead to one existing file? */
bool cli_same_file(const char *a, const char *b);

/* For charts: columns of standard output, and whether it can show more than ASCII. */
unsigned cli_width(void);
bool cli_utf8(void);

/* Mutants. The name this executable has, "none" for kbtp itself. */
const char *cli_mutant_self(void);
/*
 * Runs the command in the executable of mutant `name`. Returns only when that is this executable
 * (CLI_DONE), or when it cannot be: the exit status, after a complaint.
 */
int cli_become_mutant(const char *name, char **argv);
/* Prints their names, one a line. */
void cli_list_mutants(void);
/* Program name and path for a line to type. */
const char *cli_program(void);

#endif
