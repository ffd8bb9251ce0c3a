/* SPDX-License-Identifier: BSD-3-Clause */
/* `kbtp run-real`: the command line, and how two worlds are compared. */
#include "cli/run_real.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli/cli.h"
#include "cli/json.h"
#include "cli/real.h"
#include "cli/scenario_file.h"

#define OPTIONS struct run_real_options
#include "cli/set.h"

#define MAX_SCENARIOS 256u
#define ERROR_OCTETS 1000u
#define DEFAULT_TIMEOUT 10.0

static const char usage[] =
    "usage: kbtp run-real SCENARIO --simulated | --listen HOST:PORT --trusted-network [--both]\n"
    "       kbtp run-real --list SCENARIO...\n"
    "\n"
    "Makes the requests of a scenario of kind protocol in one order, one turn after the other, in "
    "the\n"
    "simulator or over an RDMA device, with a target and initiators of its own; and prints a line "
    "for\n"
    "each, in the same form.\n"
    "\n"
    "  --simulated         in the simulator\n"
    "  --listen HOST:PORT  over the device that has HOST; port 0: one that is free\n"
    "  --both              in both, and compares: the first line that differs is shown\n"
    "  --list              only says which scenarios can be run so, and why the others cannot\n"
    "  --trusted-network   the network lets in only who is trusted; required with --listen\n"
    "  --device NAME       the RDMA device; default the one that has HOST\n"
    "  --timeout TIME      for what comes of a turn, over a device; default 10s\n"
    "  --json              print one JSON object\n"
    "\n"
    "exit status: 0 done, 1 a difference, a status that the scenario does not expect, a "
    "violation,\n"
    "             2 bad command line or scenario, 4 no device, or one that cannot serve it\n"
    "example: kbtp run-real scenarios/races/quota.yaml --both --listen 192.0.2.1:0 "
    "--trusted-network\n";

/* ---- options ----------------------------------------------------------------------------- */

SET_TEXT(listen)
SET_TEXT(device)
SET_TRUE(simulated)
SET_TRUE(both)
SET_TRUE(list)
SET_TRUE(trusted)
SET_TRUE(json)

static bool set_timeout(const char *option, const char *value, void *into)
{
    return cli_time(option, value, &((struct run_real_options *)into)->timeout);
}

static const struct cli_option options[] = {{"simulated", false, set_simulated},
                                            {"listen", true, set_listen},
                                            {"both", false, set_both},
                                            {"list", false, set_list},
                                            {"trusted-network", false, set_trusted},
                                            {"device", true, set_device},
                                            {"timeout", true, set_timeout},
                                            {"json", false, set_json},
                                            {NULL, false, NULL}};

/* False after a complaint. */
static bool check(const struct run_real_options *o, unsigned scenarios)
{
    if (scenarios == 0)
        cli_complain("which scenario? e.g. `kbtp run-real scenarios/races/quota.yaml --simulated`");
    else if (o->list && (o->simulated || o->listen || o->both || o->json))
        cli_complain("--list runs nothing: leave the other options away");
    else if (o->list)
        return true;
    else if (scenarios > 1)
        cli_complain("one scenario at a time; several are for --list");
    else if (o->simulated && (o->listen || o->both))
        cli_complain("--simulated is for the simulator alone; for both worlds say --both");
    else if (!o->simulated && !o->listen)
        cli_complain(o->both ? "over which device? --listen HOST:PORT, with its address"
                             : "where? --simulated, or --listen HOST:PORT over an RDMA device");
    else
        return o->simulated || real_trusted(o->trusted);
    return false;
}

/* ---- scenarios --------------------------------------------------------------------------- */

/* NULL after a complaint. */
static struct sim_scenario *read_scenario(const char *path)
{
    char *text;
    struct sim_scenario *scenario = scenario_file_read(path, &text);
    free(text);
    return scenario;
}

static int list(const char *const *paths, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        char why[200] = "", shown[512];
        struct sim_scenario *scenario = read_scenario(paths[i]);
        if (!scenario)
            return CLI_BAD_INPUT;
        bool suits = sim_in_turn_suits(scenario, why, sizeof why);
        cli_printable(shown, sizeof shown, paths[i]);
        printf("%-4s %s%s%s\n", suits ? "yes" : "no", shown, suits ? "" : ": ", why);
        sim_scenario_free(scenario);
    }
    return CLI_DONE;
}

/* ---- what is printed --------------------------------------------------------------------- */

/* What was run; NULL where it was not. */
struct worlds {
    const struct sim_in_turn *simulated, *device;
};

static const struct sim_in_turn *either(const struct worlds *worlds)
{
    return worlds->simulated ? worlds->simulated : worlds->device;
}

/* Index of the first line that differs; -1: none does, or there is nothing to compare with. */
static int64_t first_difference(const struct worlds *worlds)
{
    if (!worlds->simulated || !worlds->device)
        return -1;
    uint32_t at = sim_in_turn_compare(worlds->simulated, worlds->device);
    return at < worlds->simulated->count || at < worlds->device->count ? (int64_t)at : -1;
}

static const char *line_at(const struct sim_in_turn *t, int64_t at)
{
    return at < t->count ? t->lines[at] : "(no line)";
}

static json_t *lines_json(const struct sim_in_turn *t)
{
    if (!t)
        return json_null();
    json_t *lines = json_array();
    for (uint32_t i = 0; i < t->count; i++)
        json_array_append_new(lines, cli_json_text(t->lines[i]));
    return lines;
}

static void print_json(const char *path, const struct worlds *worlds)
{
    bool compared = worlds->simulated && worlds->device;
    json_t *all = json_object();
    json_object_set_new(all, "scenario", cli_json_text(path));
    json_object_set_new(all, "same",
                        compared ? json_boolean(first_difference(worlds) < 0) : json_null());
    json_object_set_new(all, "unexpected", json_integer(either(worlds)->unexpected));
    json_object_set_new(all, "simulated", lines_json(worlds->simulated));
    json_object_set_new(all, "device", lines_json(worlds->device));
    cli_json_print(all);
}

static void print_lines(const struct sim_in_turn *t, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        puts(t->lines[i]);
}

static void print_text(const struct worlds *worlds)
{
    const struct sim_in_turn *t = either(worlds);
    int64_t at = first_difference(worlds);
    print_lines(t, at < 0 ? t->count : (uint32_t)at);
    if (at >= 0)
        printf("DIFFERENT in line %d:\nsimulated   %s\ndevice      %s\n", (int)at + 1,
               line_at(worlds->simulated, at), line_at(worlds->device, at));
    else if (worlds->simulated && worlds->device)
        printf("the same in both worlds: %u lines\n", t->count);
}

static int tell(const char *path, const struct run_real_options *o, const struct worlds *worlds)
{
    uint32_t unexpected = either(worlds)->unexpected;
    if (o->json)
        print_json(path, worlds);
    else
        print_text(worlds);
    if (unexpected)
        cli_complain("%.200s: %u statuses that `expect` does not name, or STags still valid", path,
                     unexpected);
    return unexpected || first_difference(worlds) >= 0 ? CLI_FOUND : CLI_DONE;
}

/* ---- the command ------------------------------------------------------------------------- */

static struct sim_in_turn *new_run(const struct sim_scenario *scenario)
{
    struct sim_in_turn *t = calloc(1, sizeof *t);
    if (t)
        t->scenario = scenario;
    else
        cli_complain("no memory");
    return t;
}

static int simulate(struct sim_in_turn *t)
{
    char why[ERROR_OCTETS];
    int failed = sim_in_turn_simulate(t, why, sizeof why);
    if (failed)
        cli_complain("in the simulator: %s", why);
    return failed == -EPROTO ? CLI_FOUND : failed ? CLI_ENVIRONMENT : CLI_DONE;
}

static int run_worlds(const char *path, const struct run_real_options *o,
                      const struct sim_scenario *scenario)
{
    struct sim_in_turn *simulated = o->simulated || o->both ? new_run(scenario) : NULL;
    struct sim_in_turn *device = o->listen ? new_run(scenario) : NULL;
    const struct worlds worlds = {simulated, device};
    int status = CLI_DONE;
    if ((!simulated && (o->simulated || o->both)) || (!device && o->listen))
        status = CLI_ENVIRONMENT;
    if (status == CLI_DONE && device)
        status = run_real_over_device(o, device);
    if (status == CLI_DONE && simulated)
        status = simulate(simulated);
    if (status == CLI_DONE)
        status = tell(path, o, &worlds);
    else if (device && !o->json) /* how far it came */
        print_lines(device, device->count);
    free(simulated);
    free(device);
    return status;
}

static int run_one(const char *path, const struct run_real_options *o)
{
    char why[200];
    struct sim_scenario *scenario = read_scenario(path);
    if (!scenario)
        return CLI_BAD_INPUT;
    int status = CLI_BAD_INPUT;
    if (sim_in_turn_suits(scenario, why, sizeof why))
        status = run_worlds(path, o, scenario);
    else
        cli_complain("%.200s cannot be run so: %s", path, why);
    sim_scenario_free(scenario);
    return status;
}

static int run(int argc, char **argv)
{
    struct run_real_options o = {.timeout = DEFAULT_TIMEOUT};
    const char *paths[MAX_SCENARIOS];
    unsigned count;
    int status = cli_parse(&cli_run_real, argc, argv, options, &o, paths, MAX_SCENARIOS, &count);
    if (status >= 0)
        return status;
    if (!check(&o, count))
        return CLI_BAD_INPUT;
    return o.list ? list(paths, count) : run_one(paths[0], &o);
}

const struct cli_command cli_run_real = {
    .name = "run-real",
    .does = "run a scenario's requests over an RDMA device, and compare with the simulator",
    .usage = usage,
    .run = run,
};
