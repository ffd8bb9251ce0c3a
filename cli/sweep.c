/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/sweep.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

static const char usage[] =
    "usage: kbtp sweep FILE [OPTIONS]\n"
    "\n"
    "Runs a timed scenario with each combination of some values and seeds, through GNU parallel,\n"
    "and makes one table of the results. It is the same whatever the order, and wherever they "
    "ran.\n"
    "kbtp-sweep(1) describes the file.\n"
    "\n"
    "  --print            print the commands, one a line, and run nothing\n"
    "  -j, --jobs N       runs at a time, on each machine (default: as many as it has cores)\n"
    "  --sshlogin LIST    machines, as GNU parallel takes them: :,host2,8/user@host3\n"
    "  --out FILE         where the table goes (default: standard output)\n"
    "  --format csv|jsonl default csv\n"
    "  --json             the same as --format jsonl\n"
    "\n"
    "exit status: the highest of any run: 0 done, 1 wrong data or status, or blocks lost,\n"
    "             2 bad input, 3 interrupted, 4 machine\n";

/* ---- options ----------------------------------------------------------------------------- */

enum { CSV, JSONL };

struct sweep_options {
    struct sweep_places places;
    const char *out;
    int format;
    bool print;
};
#define OPTIONS struct sweep_options
#include "cli/set.h"

SET_TRUE(print)

static bool set_jobs(const char *option, const char *value, void *into)
{
    uint64_t number;
    ((struct sweep_options *)into)->places.jobs = value;
    return cli_number(option, value, 1, 10000, &number);
}

static bool set_sshlogin(const char *option, const char *value, void *into)
{
    (void)option;
    ((struct sweep_options *)into)->places.sshlogin = value;
    return true;
}

SET_TEXT(out)

static bool set_format(const char *option, const char *value, void *into)
{
    static const char *const words[] = {[CSV] = "csv", [JSONL] = "jsonl", NULL};
    return cli_word(option, value, words, &((struct sweep_options *)into)->format);
}

static bool set_json(const char *option, const char *value, void *into)
{
    (void)option, (void)value;
    ((struct sweep_options *)into)->format = JSONL;
    return true;
}

static const struct cli_option options[] = {
    {"print", false, set_print}, {"jobs", true, set_jobs},     {"sshlogin", true, set_sshlogin},
    {"out", true, set_out},      {"format", true, set_format}, {"json", false, set_json},
    {NULL, false, NULL}};

/* ---- the command ------------------------------------------------------------------------- */

/* Hours later is too late. Returns an exit status. */
static int check_out(const struct sweep *sweep, const char *path)
{
    char folder[4096];
    const char *slash = strrchr(path, '/');
    snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - path) + 1 : 2,
             slash ? path : "./");
    if (cli_same_file(path, sweep->file) || cli_same_file(path, sweep->scenario)) {
        cli_complain("--out: %.200s is what the sweep is read from", path);
        return CLI_BAD_INPUT;
    }
    if (access(path, F_OK) == 0 ? access(path, W_OK) == 0 : access(folder, W_OK) == 0)
        return CLI_DONE;
    cli_complain("%.200s: cannot be written: %s", path, strerror(errno));
    return CLI_ENVIRONMENT;
}

/* A column that the file asks for and no run has. */
static bool complain_of_columns(const struct sweep_table *t)
{
    bool any = false;
    for (uint32_t run = 0; run < t->sweep->runs && !any; run++)
        any = t->rows[run].figures != NULL;
    for (unsigned i = 0; i < t->sweep->columns.count && any; i++)
        if (!t->seen[i]) {
            const struct sweep_value *column = &t->sweep->columns.all[i];
            cli_complain("%.200s:%zu:%zu: columns[%u]: no run has a '%.60s'", t->sweep->file,
                         column->place.line, column->place.column, i, column->text);
            return true;
        }
    return false;
}

/* main() looks whether standard output took it. */
static bool write_table(struct sweep_table *table, const struct sweep_options *o)
{
    int (*write)(void *, void *) = o->format == CSV ? sweep_write_csv : sweep_write_jsonl;
    if (o->out)
        return cli_write_file(o->out, write, table);
    if (write(table, stdout) != -ENOMEM)
        return true;
    cli_complain("no memory");
    return false;
}

static int run_and_write(const struct sweep *sweep, const struct sweep_options *o)
{
    struct sweep_table table;
    int status = CLI_ENVIRONMENT;
    if (!sweep_table_open(&table, sweep)) {
        cli_complain("no memory");
    } else {
        status = sweep_run_all(&table, &o->places);
        if (!write_table(&table, o))
            status = CLI_ENVIRONMENT;
        if (complain_of_columns(&table) && status < CLI_BAD_INPUT)
            status = CLI_BAD_INPUT;
    }
    sweep_table_close(&table);
    return status;
}

static void print_commands(const struct sweep *sweep)
{
    for (uint32_t run = 0; run < sweep->runs; run++) {
        sweep_print_command(stdout, sweep, run);
        putchar('\n');
    }
}

static int run(int argc, char **argv)
{
    struct sweep_options o = {.format = CSV};
    struct sweep sweep;
    const char *path = NULL;
    unsigned count;
    int status = cli_parse(&cli_sweep, argc, argv, options, &o, &path, 1, &count);
    if (status >= 0)
        return status;
    if (count == 0) {
        cli_complain("which file? `kbtp help sweep` says how");
        return CLI_BAD_INPUT;
    }
    if (!sweep_read(path, &sweep)) {
        status = CLI_BAD_INPUT;
    } else if (o.print) {
        print_commands(&sweep);
        status = CLI_DONE;
    } else {
        status = o.out ? check_out(&sweep, o.out) : CLI_DONE;
        if (status == CLI_DONE)
            status = run_and_write(&sweep, &o);
    }
    sweep_free(&sweep);
    return status;
}

const struct cli_command cli_sweep = {
    .name = "sweep",
    .does = "run a timed scenario with many values, here or elsewhere, into one table",
    .usage = usage,
    .run = run,
    .letters = "j",
};
