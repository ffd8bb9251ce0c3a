/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/replay.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/counted.h"
#include "cli/json.h"
#include "cli/trace_file.h"
#include "sim/kind.h"
#include "sim/protocol_counts.h"
#include "version.h"

static const char usage[] =
    "usage: kbtp replay TRACE [OPTIONS]\n"
    "\n"
    "Runs the steps of a trace again, prints what each does, and says whether the property still\n"
    "fails. A trace that names a mutant is run with that mutant.\n"
    "\n"
    "  --until N        only the first N steps, then what memory holds\n"
    "  --msc FILE.svg   also draw a message sequence chart\n"
    "  --counters       also print what the target has counted then, as text for Prometheus\n"
    "  --json           print one JSON object\n"
    "\n"
    "exit status: 0 nothing fails, 1 a property fails, 2 bad input, 4 machine\n";

struct replay_options {
    uint64_t until;
    const char *msc;
    bool json, counters;
};

static bool set_until(const char *option, const char *value, void *into)
{
    return cli_number(option, value, 1, UINT32_MAX, &((struct replay_options *)into)->until);
}

static bool set_msc(const char *option, const char *value, void *into)
{
    (void)option;
    ((struct replay_options *)into)->msc = value;
    return true;
}

static bool set_counters(const char *option, const char *value, void *into)
{
    (void)option, (void)value;
    return ((struct replay_options *)into)->counters = true;
}

static bool set_json(const char *option, const char *value, void *into)
{
    (void)option, (void)value;
    return ((struct replay_options *)into)->json = true;
}

static const struct cli_option options[] = {
    {"until", true, set_until}, {"msc", true, set_msc}, {"counters", false, set_counters},
    {"json", false, set_json},  {NULL, false, NULL},
};

/* A replay under way. */
struct run {
    const char *path;
    const struct replay_options *options;
    const struct sim_trace *trace;
    struct sim_world *world;
    struct chart chart;
    struct sim_replay replay;
    struct sim_step *steps;
    uint32_t count; /* to be made */
    bool whole;     /* not cut by --until */
};

static bool fails(const struct run *run)
{
    return run->replay.end == SIM_REPLAY_VIOLATION;
}

static bool as_recorded(const struct run *run)
{
    return run->replay.digest == run->trace->digest;
}

static void print_steps(const struct run *run)
{
    uint32_t last = 0;
    for (uint32_t i = 0; i < run->chart.rows_count; i++) {
        const struct chart_row *row = &run->chart.rows[i];
        if (row->kind == CHART_FAULT && i + 1 == run->chart.rows_count && fails(run))
            continue; /* said below */
        if (row->step != last)
            printf("%4" PRIu32 "  ", row->step);
        else
            printf("      ");
        last = row->step;
        printf("%-*s  ", (int)SIM_MAX_NAME, run->chart.lanes[row->agent_lane].name);
        if (row->kind >= CHART_MESSAGE)
            printf("to %s: ", run->chart.lanes[row->memory_lane].name);
        printf("%s", row->text);
        if (row->value[0])
            printf("   [%s now %s]", run->chart.lanes[row->memory_lane].name, row->value);
        putchar('\n');
    }
}

/* What every place holds where --until stopped. */
static void print_memory(const struct run *run)
{
    puts("\nmemory then:");
    for (uint32_t lane = 0; lane < run->chart.lanes_count; lane++) {
        if (run->chart.lanes[lane].kind == CHART_AGENT || run->chart.lanes[lane].value[0] == '\0')
            continue;
        const char *value = run->chart.lanes[lane].value;
        for (uint32_t i = 0; i < run->chart.rows_count; i++)
            if (run->chart.rows[i].value[0] && run->chart.rows[i].memory_lane == lane)
                value = run->chart.rows[i].value;
        printf("      %-*s  %s\n", (int)SIM_MAX_NAME, run->chart.lanes[lane].name, value);
    }
}

static void print_text(const struct run *run)
{
    const struct sim_trace *trace = run->trace;
    printf("scenario    %s, mutant %s, found with seed %" PRIu64 "\n\n", trace->scenario_name,
           trace->mutant, trace->seed);
    print_steps(run);
    if (!run->whole) {
        print_memory(run);
        printf("\nstopped     after %" PRIu32 " of %u steps\n", run->replay.steps_run,
               trace->steps_count);
    }
    if (fails(run))
        printf("\n%s %s: %s\n",
               strcmp(run->world->violation.property, trace->property) == 0
                   ? "still fails"
                   : "another property fails:",
               run->world->violation.property, run->world->violation.text);
    else if (run->whole)
        printf("\nno longer fails: %s\n", trace->property);
    printf("digest      0x%016" PRIx64 "%s\n", run->replay.digest,
           !run->whole        ? ""
           : as_recorded(run) ? ", as recorded"
                              : ", not the recorded one: the program has changed");
}

/* ---- counters ---------------------------------------------------------------------------- */

static json_t *counters_json(const struct run *run)
{
    struct sim_statistics statistics;
    sim_kind_of(run->world->scenario)->statistics(run->world, &statistics);
    const struct kbtp_report report = {.counters = &statistics.counters,
                                       .gauges = &statistics.gauges};
    return counted_json(&report);
}

/* False when there is no memory. */
static bool print_counters(const struct run *run)
{
    struct sim_statistics statistics;
    sim_kind_of(run->world->scenario)->statistics(run->world, &statistics);
    const struct kbtp_report report = {.counters = &statistics.counters,
                                       .gauges = &statistics.gauges};
    size_t octets;
    char *text = counted_text(&report, &octets);
    if (!text)
        return false;
    printf("\n%s", text);
    free(text);
    return true;
}

static bool may_count(const struct run *run)
{
    const struct sim_kind *kind = sim_kind_of(run->world->scenario);
    if (!run->options->counters || kind->statistics)
        return true;
    cli_complain("--counters: %.200s is of kind %s, where no target counts; leave it away",
                 run->path, kind->name);
    return false;
}

/* ------------------------------------------------------------------------------------------ */

static void print_json(const struct run *run)
{
    json_t *all = json_object();
    json_object_set_new(all, "trace", cli_json_text(run->path));
    json_object_set_new(all, "scenario", cli_json_text(run->trace->scenario_name));
    json_object_set_new(all, "mutant", cli_json_text(run->trace->mutant));
    json_object_set_new(all, "recorded_property", cli_json_text(run->trace->property));
    json_object_set_new(all, "property",
                        cli_json_text(fails(run) ? run->world->violation.property : NULL));
    json_object_set_new(all, "what", cli_json_text(fails(run) ? run->world->violation.text : NULL));
    json_object_set_new(all, "seed", json_integer((json_int_t)run->trace->seed));
    json_object_set_new(all, "steps", json_integer(run->replay.steps_run));
    json_object_set_new(all, "digest", cli_json_hex(run->replay.digest));
    json_object_set_new(all, "recorded_digest", cli_json_hex(run->trace->digest));
    json_object_set_new(all, "as_recorded", json_boolean(run->whole && as_recorded(run)));
    if (run->options->counters)
        json_object_set_new(all, "counters", counters_json(run));
    cli_json_print(all);
}

static int write_svg(void *context, void *file)
{
    return chart_write_svg(context, file);
}

/* The steps of the trace in this world; complains about one that names nothing. */
static bool parse_steps(struct run *run)
{
    const struct sim_trace *trace = run->trace;
    run->steps = calloc(trace->steps_count + 1u, sizeof *run->steps);
    if (!run->steps) {
        cli_complain("no memory for the steps");
        return false;
    }
    for (unsigned i = 0; i < trace->steps_count; i++)
        if (!sim_step_parse(run->world, trace->steps[i], &run->steps[i])) {
            cli_complain("%s: step %u, '%.40s', names no step of this scenario", run->path, i + 1,
                         trace->steps[i]);
            return false;
        }
    run->whole = run->options->until == 0 || run->options->until >= trace->steps_count;
    run->count = run->whole ? trace->steps_count : (uint32_t)run->options->until;
    return true;
}

static int tell(struct run *run)
{
    if (run->replay.end == SIM_REPLAY_NO_MEMORY || run->chart.failed) {
        cli_complain("no memory to replay %s", run->path);
        return CLI_ENVIRONMENT;
    }
    if (run->replay.end == SIM_REPLAY_NOT_ENABLED) {
        cli_complain("%s: step %" PRIu32
                     ", '%s', cannot be made here: the trace is of kbtp %s, this "
                     "is %s, and code, mutant or machine are not the same; explore again",
                     run->path, run->replay.steps_run + 1, run->trace->steps[run->replay.steps_run],
                     run->trace->version, KBTP_VERSION);
        return CLI_BAD_INPUT;
    }
    if (run->options->json)
        print_json(run);
    else
        print_text(run);
    if (run->options->msc && !cli_write_file(run->options->msc, write_svg, &run->chart))
        return CLI_ENVIRONMENT;
    if (run->options->msc && !run->options->json)
        printf("chart       %s\n", run->options->msc);
    if (run->options->counters && !run->options->json && !print_counters(run)) {
        cli_complain("no memory for the counters");
        return CLI_ENVIRONMENT;
    }
    return fails(run) ? CLI_FOUND : CLI_DONE;
}

static int replay(struct run *run)
{
    if (!may_count(run) || !parse_steps(run))
        return CLI_BAD_INPUT;
    chart_init(&run->chart);
    snprintf(run->chart.title, sizeof run->chart.title, "%s: %s", run->trace->scenario_name,
             run->trace->property);
    snprintf(run->chart.subtitle, sizeof run->chart.subtitle, "%" PRIu32 " steps, mutant %s; %s",
             run->count, run->trace->mutant, sim_kind_of(run->world->scenario)->chart_legend);
    sim_kind_chart(run->world, run->steps, run->count, &run->chart, &run->replay);
    int status = tell(run);
    chart_free(&run->chart);
    return status;
}

static int with_trace(const char *path, const struct replay_options *o, struct sim_trace *trace)
{
    char error[1000];
    struct sim_scenario *scenario =
        sim_scenario_parse(trace->scenario_name, trace->scenario_text, strlen(trace->scenario_text),
                           error, sizeof error);
    if (!scenario) {
        cli_complain("%s: the scenario in it: %s", path, error);
        return CLI_BAD_INPUT;
    }
    scenario->machine = trace->machine;
    struct run run = {.path = path, .options = o, .trace = trace};
    run.world = sim_world_new(scenario, &trace->stepping, error, sizeof error);
    int status = CLI_ENVIRONMENT;
    if (run.world)
        status = replay(&run);
    else
        cli_complain("%s", error);
    free(run.steps);
    sim_world_free(run.world);
    sim_scenario_free(scenario);
    return status;
}

static int run(int argc, char **argv)
{
    struct replay_options o = {0};
    const char *path = NULL;
    unsigned operands;
    int status = cli_parse(&cli_replay, argc, argv, options, &o, &path, 1, &operands);
    if (status >= 0)
        return status;
    if (!path) {
        cli_complain("which trace? `kbtp explore SCENARIO --trace FILE` writes one");
        return CLI_BAD_INPUT;
    }
    if (o.msc && cli_same_file(path, o.msc)) {
        cli_complain("--msc: would overwrite the trace %.200s; choose another file", path);
        return CLI_BAD_INPUT;
    }
    struct sim_trace *trace = trace_file_read(path);
    if (!trace)
        return CLI_BAD_INPUT;
    status = cli_become_mutant(trace->mutant, argv);
    if (status == CLI_DONE)
        status = with_trace(path, &o, trace);
    sim_trace_free(trace);
    return status;
}

const struct cli_command cli_replay = {
    .name = "replay",
    .does = "run a trace again",
    .usage = usage,
    .run = run,
};
