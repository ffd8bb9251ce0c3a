/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The runs of a sweep through GNU parallel. It gets a shell line for each on its standard input,
 * and passes on what each printed as a whole: figures or messages, and a last line that says which
 * run that was and how it ended.
 */
#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/sweep.h"

#define PARALLEL "parallel"
#define MARK "kbtp-sweep-run"

struct running {
    struct sweep_table *table;
    uint32_t done, failed;
    int worst;
    bool shows; /* progress */
    char *json; /* of the run whose lines these are */
    char *said; /* its messages */
    size_t said_length;
};

/* ---- interruption ------------------------------------------------------------------------ */

static volatile sig_atomic_t interrupted;
static volatile pid_t child;

/* GNU parallel ends its runs then. */
static void interrupt(int number)
{
    (void)number;
    interrupted = 1;
    if (child > 0)
        kill(child, SIGINT);
}

static void take_signals(void)
{
    struct sigaction action = {.sa_handler = interrupt, .sa_flags = SA_RESTART};
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

/* ---- starting ---------------------------------------------------------------------------- */

static int no_memory(void)
{
    cli_complain("no memory");
    return CLI_ENVIRONMENT;
}

/* A file without a name that has the lines; NULL: errno says why. */
static FILE *write_lines(const struct sweep *sweep)
{
    FILE *file = tmpfile();
    for (uint32_t run = 0; file && run < sweep->runs; run++) {
        fputs("{ ", file);
        sweep_print_command(file, sweep, run);
        fprintf(file, "; } 2>&1; printf '\\n" MARK " %%s %%s\\n' %u \"$?\"\n", run);
    }
    if (file && (fflush(file) != 0 || ferror(file) || fseek(file, 0, SEEK_SET) != 0)) {
        int failed = errno;
        fclose(file);
        errno = failed;
        file = NULL;
    }
    return file;
}

extern char **environ; /* unistd.h has it only with _GNU_SOURCE */

/* Returns 0 or -errno. */
static int spawn(const struct sweep_places *places, FILE *lines, int out)
{
    char *here = getcwd(NULL, 0);
    char *words[12] = {PARALLEL, "--plain", "--will-cite"}; /* no settings of the user's */
    unsigned count = 3;
    posix_spawn_file_actions_t actions;
    pid_t pid;
    if (places->jobs) {
        words[count++] = "--jobs";
        words[count++] = (char *)(uintptr_t)places->jobs;
    }
    if (places->sshlogin) { /* in the same folder there */
        words[count++] = "--sshlogin";
        words[count++] = (char *)(uintptr_t)places->sshlogin;
        words[count++] = "--workdir";
        words[count++] = here;
    }
    if (!here)
        return -errno;
    int failed = posix_spawn_file_actions_init(&actions);
    if (!failed) {
        failed = posix_spawn_file_actions_adddup2(&actions, fileno(lines), STDIN_FILENO);
        if (!failed)
            failed = posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
        if (!failed)
            failed = posix_spawnp(&pid, PARALLEL, &actions, NULL, words, environ);
        posix_spawn_file_actions_destroy(&actions);
    }
    free(here);
    if (!failed) {
        child = pid;
        if (interrupted) /* meanwhile */
            kill(pid, SIGINT);
    }
    return -failed;
}

/* ---- what comes back --------------------------------------------------------------------- */

static void show_progress(const struct running *r)
{
    if (r->shows)
        fprintf(stderr, "\r\033[K%u of %u runs, %u failed", r->done, r->table->sweep->runs,
                r->failed);
}

static void hide_progress(const struct running *r)
{
    if (r->shows)
        fputs("\r\033[K", stderr);
}

/* Keeps a line; when there is no memory the message is shorter. */
static void keep(struct running *r, const char *line)
{
    size_t length = strlen(line);
    char *said = realloc(r->said, r->said_length + length + 1);
    if (!said)
        return;
    memcpy(said + r->said_length, line, length + 1);
    r->said = said;
    r->said_length += length;
}

static void tell_failure(const struct running *r, uint32_t run, int status)
{
    fprintf(stderr, "kbtp sweep: status %d: ", status);
    sweep_print_command(stderr, r->table->sweep, run);
    putc('\n', stderr);
}

static void forget(struct running *r)
{
    free(r->json);
    free(r->said);
    r->json = r->said = NULL;
    r->said_length = 0;
}

/* A run has ended. Those that an interruption ended have no row. */
static void end_run(struct running *r, unsigned long run, int status)
{
    if (run >= r->table->sweep->runs || r->table->rows[run].status >= 0)
        return;
    if (status == CLI_DONE && !(r->json && sweep_table_take(r->table, (uint32_t)run, r->json)))
        status = CLI_ENVIRONMENT;
    if (!interrupted || status == CLI_DONE) {
        r->table->rows[run].status = status;
        r->done++;
        r->failed += status != CLI_DONE;
        int severity = status > CLI_ENVIRONMENT ? CLI_ENVIRONMENT : status;
        if (severity > r->worst)
            r->worst = severity;
        hide_progress(r);
        if (status != CLI_DONE)
            tell_failure(r, (uint32_t)run, status);
        if (r->said)
            fputs(r->said, stderr);
        show_progress(r);
    }
    forget(r);
}

static void take_line(struct running *r, char *line)
{
    char *end = line;
    if (strncmp(line, MARK, strlen(MARK)) == 0) {
        unsigned long run = strtoul(line + strlen(MARK), &end, 10);
        long status = strtol(end, &end, 10);
        end_run(r, run, (int)status);
    } else if (line[0] == '{') {
        free(r->json);
        r->json = strdup(line);
    } else if (strcmp(line, "\n") != 0)
        keep(r, line);
}

/* Returns the status of GNU parallel as waitpid() tells it. */
static int read_runs(struct running *r, FILE *in)
{
    char *line = NULL;
    size_t size = 0;
    int status = 0;
    show_progress(r);
    while (getline(&line, &size, in) > 0)
        take_line(r, line);
    hide_progress(r);
    if (r->said)
        fputs(r->said, stderr);
    free(line);
    forget(r);
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    child = 0; /* its number may be another's now */
    return status;
}

/* ---- the whole --------------------------------------------------------------------------- */

/* Runs without a result: the host was lost, or GNU parallel could not do its work. */
static void tell_lost(struct running *r, int status)
{
    uint32_t lost = r->table->sweep->runs - r->done;
    if (interrupted) {
        cli_complain("interrupted: %u of %u runs are done", r->done, r->table->sweep->runs);
        r->worst = r->worst > CLI_STOPPED ? r->worst : CLI_STOPPED;
        return;
    }
    if (lost == 0)
        return;
    for (uint32_t run = 0; run < r->table->sweep->runs; run++)
        if (r->table->rows[run].status < 0)
            r->table->rows[run].status = CLI_ENVIRONMENT;
    cli_complain("%u of %u runs have no result: `" PARALLEL "`, which must be GNU parallel, ended "
                 "with status %d",
                 lost, r->table->sweep->runs,
                 WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
    r->worst = CLI_ENVIRONMENT;
}

static int run_with(struct running *r, const struct sweep_places *places, FILE *lines)
{
    int ends[2];
    if (pipe(ends) != 0) {
        cli_complain("no pipe: %s", strerror(errno));
        return CLI_ENVIRONMENT;
    }
    FILE *in = fdopen(ends[0], "r");
    int failed = in ? spawn(places, lines, ends[1]) : -errno;
    close(ends[1]);
    if (failed == -ENOENT)
        cli_complain("GNU parallel is not installed (Debian: apt-get install parallel); --print "
                     "prints the commands");
    else if (failed)
        cli_complain("cannot run GNU parallel: %s", strerror(-failed));
    else
        tell_lost(r, read_runs(r, in));
    if (in)
        fclose(in);
    else
        close(ends[0]);
    return failed ? CLI_ENVIRONMENT : r->worst;
}

int sweep_run_all(struct sweep_table *table, const struct sweep_places *places)
{
    struct running r = {.table = table, .shows = isatty(STDERR_FILENO)};
    if (setenv("PARALLEL_SHELL", "/bin/sh", 1) != 0)
        return no_memory();
    FILE *lines = write_lines(table->sweep);
    if (!lines) {
        cli_complain("no temporary file: %s", strerror(errno));
        return CLI_ENVIRONMENT;
    }
    take_signals();
    int status = run_with(&r, places, lines);
    fclose(lines);
    return status;
}
