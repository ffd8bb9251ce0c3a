/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/run.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli/cli.h"
#include "sim/read_file.h"
#include "sim/scenario_set.h"
#include "version.h"

#define FILE_LIMIT ((size_t)1 << 20)
#define ERROR_OCTETS 900u

static const char usage[] =
    "usage: kbtp run SCENARIO [OPTIONS]\n"
    "\n"
    "Runs a scenario of kind timed in simulated time: how many operations, how long they take, "
    "what\n"
    "CPUs, RNICs and links are used for. kbtp-timed(5) describes the file. Equal runs have equal\n"
    "digests, here and elsewhere.\n"
    "\n"
    "  --wire simgrid|fifo  how messages share links: as SimGrid says (default), or one after the\n"
    "                       other, which is faster\n"
    "  --platform FILE.xml  the network from a SimGrid platform, whose hosts have the names of "
    "pools\n"
    "                       and instances\n"
    "  --nic FILE           another cost model than the scenario's\n"
    "  --seed N             another seed than the scenario's\n"
    "  --set PATH=VALUE     another value in the scenario, such as instances[0].count=4; may be\n"
    "                       given several times\n"
    "  --csv FOLDER         write latency.csv and utilisation.csv there\n"
    "  --json               print one JSON object\n"
    "\n"
    "exit status: 0 done, 1 wrong data or status, or blocks lost, 2 bad input, 3 interrupted,\n"
    "             4 machine\n";

/* ---- options ----------------------------------------------------------------------------- */

#define SET(name, ...) \
    static bool set_##name(const char *option, const char *value, void *into) \
    { \
        struct run_options *o = into; \
        (void)option, (void)value; \
        __VA_ARGS__; \
    }

SET(wire, static const char *const words[] = {"simgrid", "fifo", NULL};
    return cli_word(option, value, words, &o->wire))
SET(platform, o->platform = value; return true)
SET(nic, o->nic = value; return true)
SET(seed, o->has_seed = true; return cli_number(option, value, 0, UINT64_MAX, &o->seed))
SET(csv, o->csv = value; return true)
SET(json, return o->json = true)

static bool set_set(const char *option, const char *value, void *into)
{
    struct run_options *o = into;
    if (o->settings_count == CLI_SETTINGS)
        return cli_complain("--%s is there more than %u times", option, CLI_SETTINGS), false;
    if (!strchr(value, '='))
        return cli_complain("--%s: '%.60s' is not PATH=VALUE", option, value), false;
    o->settings[o->settings_count++] = value;
    return true;
}

static const struct cli_option options[] = {
    {"wire", true, set_wire}, {"platform", true, set_platform},
    {"nic", true, set_nic},   {"seed", true, set_seed},
    {"csv", true, set_csv},   {"json", false, set_json},
    {"set", true, set_set},   {NULL, false, NULL}};

/* ---- files ------------------------------------------------------------------------------- */

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

/* "--set PATH=VALUE", and the path on its own. */
struct set_words {
    char called[512], path[128];
};

static void take_settings(const struct run_options *o, struct set_words *words,
                          struct sim_setting *settings)
{
    for (unsigned i = 0; i < o->settings_count; i++) {
        const char *word = o->settings[i], *sign = strchr(word, '=');
        snprintf(words[i].called, sizeof words[i].called, "--set %s", word);
        snprintf(words[i].path, sizeof words[i].path, "%.*s", (int)(sign - word), word);
        settings[i] = (struct sim_setting){
            .called = words[i].called, .path = words[i].path, .value = sign + 1};
    }
}

static struct sim_timed *read_timed(const char *path, const struct run_options *o)
{
    char error[ERROR_OCTETS], *text;
    size_t length;
    struct sim_timed *timed = NULL;
    struct set_words words[CLI_SETTINGS];
    struct sim_setting settings[CLI_SETTINGS];
    take_settings(o, words, settings);
    if (sim_read_file(path, FILE_LIMIT, &text, &length, error, sizeof error) == 0) {
        timed = sim_timed_parse_set(path, text, length, settings, o->settings_count, error,
                                    sizeof error);
        free(text);
    }
    if (!timed)
        cli_complain("%s", error);
    return timed;
}

static struct sim_cost_model *read_model(const char *path)
{
    char error[ERROR_OCTETS], *text;
    size_t length;
    struct sim_cost_model *model = NULL;
    if (sim_read_file(path, FILE_LIMIT, &text, &length, error, sizeof error) == 0) {
        model = sim_cost_model_parse(path, text, length, error, sizeof error);
        free(text);
    }
    if (!model)
        cli_complain("%s", error);
    return model;
}

/* ---- the run ----------------------------------------------------------------------------- */

static volatile sig_atomic_t interrupted;

static void interrupt(int number)
{
    (void)number;
    interrupted = 1;
}

static void take_signals(void)
{
    struct sigaction action = {.sa_handler = interrupt};
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static int judge(const struct sim_timed_run *run)
{
    if (*run->load.wrong) {
        cli_complain("%s", run->load.wrong);
        return CLI_FOUND;
    }
    for (uint32_t i = 0; i < run->targets_count; i++)
        if (run->targets[i].failed) {
            cli_complain("a completion queue of target %s: %s", run->targets[i].address,
                         strerror(-run->targets[i].failed));
            return CLI_FOUND;
        }
    if (interrupted) {
        cli_complain("interrupted after %.6f s of simulated time", (double)run->clock.now_ns / 1e9);
        return CLI_STOPPED;
    }
    if (!run->over) {
        cli_complain("stuck: nothing happens any more after %.6f s of simulated time, and %ju "
                     "requests have no outcome",
                     (double)run->clock.now_ns / 1e9, (uintmax_t)run->load.outstanding);
        return CLI_FOUND;
    }
    if (!run->whole) {
        cli_complain("blocks are lost: all sessions have gone, and not all blocks are free");
        return CLI_FOUND;
    }
    return CLI_DONE;
}

static int run_model(const char *path, const struct run_options *o, const struct sim_timed *timed,
                     const struct sim_cost_model *model)
{
    char why[ERROR_OCTETS] = "";
    struct sim_timed_run *run = calloc(1, sizeof *run);
    const struct sim_timed_options how = {.wire = (enum sim_wire_kind)o->wire,
                                          .platform = o->platform,
                                          .has_seed = o->has_seed,
                                          .seed = o->seed,
                                          .samples_all = o->csv != NULL,
                                          .stop = &interrupted};
    if (!run) {
        cli_complain("no memory");
        return CLI_ENVIRONMENT;
    }
    take_signals();
    double begin_s = now_s();
    int failed = sim_timed_run(run, timed, &model->costs, &how, why, sizeof why);
    const struct run_told told = {path, o, model, run, now_s() - begin_s};
    int status;
    if (failed) {
        cli_complain("%s", why);
        status = failed == -EINVAL ? CLI_BAD_INPUT : CLI_ENVIRONMENT;
    } else {
        status = judge(run);
        if (status == CLI_DONE && o->csv && !run_write_csv(&told, o->csv))
            status = CLI_ENVIRONMENT;
        if (status == CLI_DONE && o->json)
            run_print_json(&told);
        else if (status == CLI_DONE)
            run_print_text(&told);
    }
    sim_timed_close(run);
    free(run);
    return status;
}

static int run(int argc, char **argv)
{
    struct run_options o = {.wire = SIM_WIRE_SIMGRID};
    const char *path = NULL;
    char nic[4096];
    unsigned count;
    int status = cli_parse(&cli_run, argc, argv, options, &o, &path, 1, &count);
    if (status >= 0)
        return status;
    if (count == 0) {
        cli_complain("which scenario? `kbtp help run` says how");
        return CLI_BAD_INPUT;
    }
    struct sim_timed *timed = read_timed(path, &o);
    if (!timed)
        return CLI_BAD_INPUT;
    if (o.nic)
        snprintf(nic, sizeof nic, "%s", o.nic);
    else
        find_nic(path, timed->nic, nic, sizeof nic);
    struct sim_cost_model *model = read_model(nic);
    status = model ? run_model(path, &o, timed, model) : CLI_BAD_INPUT;
    sim_cost_model_free(model);
    sim_timed_free(timed);
    return status;
}

const struct cli_command cli_run = {
    .name = "run",
    .does = "run a scenario in simulated time: latencies, rates, what limits them",
    .usage = usage,
    .run = run,
};
