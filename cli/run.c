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
#include "cli/nic.h"
#include "cli/scenario_file.h"
#include "sim/scenario_set.h"
#include "version.h"

#define ERROR_OCTETS 900u
#define DEFAULT_RUNS "1000"

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
    "  --perfetto FILE      write what CPUs, RNICs and requests do at the beginning, for\n"
    "                       https://ui.perfetto.dev\n"
    "  --csv FOLDER         write latency.csv and utilisation.csv there\n"
    "  --check              a scenario of kind ring or protocol, step by step in time: every "
    "property\n"
    "                       that kbtp explore checks; runs differ by chance\n"
    "  --runs N             with --check: how many (default 1000)\n"
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

SET(wire, static const char *const words[] = {"simgrid", "fifo", NULL}; o->wire_given = true;
    return cli_word(option, value, words, &o->wire))
SET(platform, o->platform = value; return true)
SET(nic, o->nic = value; return true)
SET(seed, o->has_seed = true; return cli_number(option, value, 0, INT64_MAX, &o->seed)) /* JSON */
SET(csv, o->csv = value; return true)
SET(perfetto, o->perfetto = value; return true)
SET(check, return o->check = true)
SET(runs, o->runs = value; return true)
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
    {"wire", true, set_wire},    {"platform", true, set_platform},
    {"nic", true, set_nic},      {"seed", true, set_seed},
    {"csv", true, set_csv},      {"perfetto", true, set_perfetto},
    {"check", false, set_check}, {"runs", true, set_runs},
    {"set", true, set_set},      {"json", false, set_json},
    {NULL, false, NULL}};

/* ---- settings ---------------------------------------------------------------------------- */

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
    if (run->late) {
        cli_complain("%u days of simulated time have passed, and it is not over: lower operations, "
                     "think or stall",
                     SIM_TIMED_MOST_DAYS);
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
    struct run_picture *picture = NULL;
    struct sim_timed_options how = {.wire = (enum sim_wire_kind)o->wire,
                                    .platform = o->platform,
                                    .has_seed = o->has_seed,
                                    .seed = o->seed,
                                    .samples_all = o->csv != NULL,
                                    .stop = &interrupted};
    if (!run) {
        cli_complain("no memory");
        return CLI_ENVIRONMENT;
    }
    if (o->perfetto && !(picture = run_picture_begin())) {
        free(run);
        return CLI_ENVIRONMENT;
    }
    take_signals();
    how.span = picture ? run_picture_span : NULL;
    how.context = picture;
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
    if (picture && !run_picture_end(picture, run, failed ? NULL : o->perfetto))
        status = CLI_ENVIRONMENT;
    sim_timed_close(run);
    free(run);
    return status;
}

/* ---- the command ------------------------------------------------------------------------- */

/* A scenario of steps is explored, in time. */
static int run_steps(const char *path, const struct run_options *o)
{
    char seed[24];
    const char *argv[16] = {"explore", path, "--mode", "timed"};
    int argc = 4;
    snprintf(seed, sizeof seed, "%ju", (uintmax_t)o->seed);
    argv[argc++] = "--runs";
    argv[argc++] = o->runs ? o->runs : DEFAULT_RUNS;
    if (o->has_seed) {
        argv[argc++] = "--seed";
        argv[argc++] = seed;
    }
    if (o->nic) {
        argv[argc++] = "--nic";
        argv[argc++] = o->nic;
    }
    if (o->json)
        argv[argc++] = "--json";
    optind = 0; /* these are parsed anew */
    return cli_explore.run(argc, (char **)(uintptr_t)argv);
}

/* What steps have not: it would only be left out. */
static bool check_steps_options(const struct run_options *o)
{
    const char *option = o->settings_count ? "set"
                         : o->wire_given   ? "wire"
                         : o->platform     ? "platform"
                         : o->csv          ? "csv"
                         : o->perfetto     ? "perfetto"
                                           : NULL;
    if (option)
        cli_complain("--%s is for scenarios of kind timed", option);
    return !option;
}

/* What the text is, and whether the options go with it. */
static int run_text(const char *path, const struct run_options *o, const char *text, size_t length)
{
    char error[ERROR_OCTETS];
    bool timed_kind = sim_timed_is(text, length);
    if (timed_kind && (o->check || o->runs)) {
        cli_complain("%.200s is of kind timed, where data is always checked: leave --check and "
                     "--runs away",
                     path);
        return CLI_BAD_INPUT;
    }
    if (o->check)
        return check_steps_options(o) ? run_steps(path, o) : CLI_BAD_INPUT;
    struct set_words words[CLI_SETTINGS];
    struct sim_setting settings[CLI_SETTINGS];
    take_settings(o, words, settings);
    struct sim_timed *timed =
        sim_timed_parse_set(path, text, length, settings, o->settings_count, error, sizeof error);
    if (!timed) {
        cli_complain("%s", error);
        return CLI_BAD_INPUT;
    }
    struct sim_cost_model *model = nic_read(o->nic, path, timed->nic);
    int status = model ? run_model(path, o, timed, model) : CLI_BAD_INPUT;
    sim_cost_model_free(model);
    sim_timed_free(timed);
    return status;
}

static int run(int argc, char **argv)
{
    struct run_options o = {.wire = SIM_WIRE_SIMGRID};
    const char *path = NULL;
    unsigned count;
    int status = cli_parse(&cli_run, argc, argv, options, &o, &path, 1, &count);
    if (status >= 0)
        return status;
    if (count == 0) {
        cli_complain("which scenario? `kbtp help run` says how");
        return CLI_BAD_INPUT;
    }
    size_t length;
    char *text = scenario_file_text(path, &length);
    if (!text)
        return CLI_BAD_INPUT;
    status = run_text(path, &o, text, length);
    free(text);
    return status;
}

const struct cli_command cli_run = {
    .name = "run",
    .does = "run a scenario in simulated time: latencies, rates, what limits them",
    .usage = usage,
    .run = run,
};
