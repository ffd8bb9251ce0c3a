/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/explore.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/json.h"
#include "cli/nic.h"
#include "cli/scenario_file.h"
#include "cli/trace_file.h"
#include "sim/kind.h"
#include "sim/replay.h"

#define DEFAULT_RUNS 10000u
#define DEFAULT_PCT_DEPTH 3u
#define DEFAULT_SPREAD 4
#define UNSET (-1)
#define ENOUGH_STATES 100000u /* to speak of octets a state */
#define LEAST_MEMORY (UINT64_C(4) << 20)
#define ERROR_OCTETS 1000u

static const char usage[] =
    "usage: kbtp explore SCENARIO [OPTIONS]\n"
    "\n"
    "Explores the interleavings of a scenario. On a violation it shrinks the steps that lead "
    "there\n"
    "and draws them.\n"
    "\n"
    "  --mode exhaustive|random|pct|timed\n"
    "                                every interleaving (default), or random walks, or walks in\n"
    "                                which each step takes its time (kbtp run --check)\n"
    "  --seed N                      of random, pct and timed (default 1)\n"
    "  --runs N                      walks of random, pct and timed (default 10000)\n"
    "  --nic FILE, --spread N        timed: the cost model, and how much longer steps take by\n"
    "                                chance (default 4)\n"
    "  --pct-depth N                 pct: N - 1 forced preemptions a walk (default 3)\n"
    "  --max-states N, --max-seconds TIME, --max-memory SIZE\n"
    "                                stop there, say what was covered, exit 3\n"
    "                                (memory: default three quarters of the machine's)\n"
    "  --exact                       keep whole states instead of 64-bit fingerprints\n"
    "  --check-commute               also try every pair of independent steps both ways\n"
    "  --mutant NAME|list            use a ref/ with one deliberate error\n"
    "  --memory sc|tso|relaxed, --store-buffer N, --tear 8|4, --dma-order "
    "any|ascending|descending\n"
    "                                override the scenario\n"
    "  --ordering rdmap|infiniband|strong  of RDMA operations, in worlds of kind protocol\n"
    "  --execution software          who serves requests (no others yet)\n"
    "  --no-private-steps            let every step be a choice (slow; a cross-check)\n"
    "  --merged-drains               an atomic drains the store buffer itself (a cross-check)\n"
    "  --trace FILE                  write the shrunk trace of a violation; replay runs it again\n"
    "  --json                        print one JSON object\n"
    "\n"
    "exit status: 0 ok, 1 violation or vacuous, 2 bad input, 3 stopped at a bound, 4 machine\n"
    "example: kbtp explore scenarios/races/deferred-free.yaml --memory relaxed\n";

struct explore_options {
    struct sim_explore search;
    struct sim_stepping stepping;
    const char *mutant, *trace, *nic;
    int memory, tear, dma_order, ordering, store_buffer; /* UNSET: as the scenario says */
    bool json, runs_given, pct_depth_given, spread_given;
};

/* ---- options ----------------------------------------------------------------------------- */

static const char *const modes[] = {"exhaustive", "random", "pct", "timed", NULL};
static const char *const memories[] = {"sc", "tso", "relaxed", NULL};
static const char *const orders[] = {"any", "ascending", "descending", NULL};
static const char *const orderings[] = {"rdmap", "infiniband", "strong", NULL};

static bool set_mode(const char *option, const char *value, void *into)
{
    int mode = 0;
    bool well = cli_word(option, value, modes, &mode);
    ((struct explore_options *)into)->search.mode = (enum sim_mode)mode;
    return well;
}

static bool set_seed(const char *option, const char *value, void *into)
{
    return cli_number(option, value, 0, INT64_MAX, &((struct explore_options *)into)->search.seed);
}

static bool set_runs(const char *option, const char *value, void *into)
{
    struct explore_options *o = into;
    o->runs_given = true;
    return cli_number(option, value, 1, UINT64_C(1) << 48, &o->search.runs);
}

static bool set_pct_depth(const char *option, const char *value, void *into)
{
    struct explore_options *o = into;
    uint64_t depth = 0;
    bool well = cli_number(option, value, 1, 32, &depth);
    o->search.pct_depth = (uint32_t)depth;
    o->pct_depth_given = true;
    return well;
}

static bool set_nic(const char *option, const char *value, void *into)
{
    (void)option;
    ((struct explore_options *)into)->nic = value;
    return true;
}

static bool set_spread(const char *option, const char *value, void *into)
{
    struct explore_options *o = into;
    char *end;
    o->spread_given = true;
    o->search.spread = strtod(value, &end);
    if (*value >= '0' && *value <= '9' && *end == '\0' && o->search.spread <= 1000)
        return true;
    cli_complain("--%s: '%.40s' is not a number from 0 to 1000", option, value);
    return false;
}

static bool set_max_states(const char *option, const char *value, void *into)
{
    return cli_number(option, value, 1, UINT64_C(1) << 60,
                      &((struct explore_options *)into)->search.max_states);
}

static bool set_max_seconds(const char *option, const char *value, void *into)
{
    return cli_time(option, value, &((struct explore_options *)into)->search.max_seconds);
}

static bool set_max_memory(const char *option, const char *value, void *into)
{
    uint64_t octets = 0;
    if (!cli_size(option, value, &octets))
        return false;
    ((struct explore_options *)into)->search.max_memory_octets = octets;
    if (octets < LEAST_MEMORY)
        cli_complain("--%s: %s is too little to begin with: 4MiB at least", option, value);
    return octets >= LEAST_MEMORY;
}

static bool set_memory(const char *option, const char *value, void *into)
{
    return cli_word(option, value, memories, &((struct explore_options *)into)->memory);
}

static bool set_dma_order(const char *option, const char *value, void *into)
{
    return cli_word(option, value, orders, &((struct explore_options *)into)->dma_order);
}

static bool set_ordering(const char *option, const char *value, void *into)
{
    return cli_word(option, value, orderings, &((struct explore_options *)into)->ordering);
}

static bool set_tear(const char *option, const char *value, void *into)
{
    static const char *const tears[] = {"8", "4", NULL};
    int index = 0;
    bool well = cli_word(option, value, tears, &index);
    ((struct explore_options *)into)->tear = index == 0 ? 8 : 4;
    return well;
}

static bool set_store_buffer(const char *option, const char *value, void *into)
{
    uint64_t entries = 0;
    bool well = cli_number(option, value, 1, 16, &entries);
    ((struct explore_options *)into)->store_buffer = (int)entries;
    return well;
}

static bool set_execution(const char *option, const char *value, void *into)
{
    (void)into;
    if (strcmp(value, "software") == 0)
        return true;
    cli_complain("--%s: '%.40s': no world can run chains yet; only 'software' is known", option,
                 value);
    return false;
}

static bool set_exact(const char *option, const char *value, void *into)
{
    (void)option, (void)value;
    return ((struct explore_options *)into)->search.exact = true;
}

static bool set_check_commute(const char *option, const char *value, void *into)
{
    (void)option, (void)value;
    return ((struct explore_options *)into)->search.check_commute = true;
}

static bool set_no_private_steps(const char *option, const char *value, void *into)
{
    (void)option, (void)value;
    ((struct explore_options *)into)->stepping.private_steps = false;
    return true;
}

static bool set_merged_drains(const char *option, const char *value, void *into)
{
    (void)option, (void)value;
    return ((struct explore_options *)into)->stepping.merged_drains = true;
}

static bool set_mutant(const char *option, const char *value, void *into)
{
    (void)option;
    ((struct explore_options *)into)->mutant = value;
    return true;
}

static bool set_trace(const char *option, const char *value, void *into)
{
    ((struct explore_options *)into)->trace = value;
    if (value[0] == 0)
        cli_complain("--%s: the file has no name", option);
    return value[0] != 0;
}

static bool set_json(const char *option, const char *value, void *into)
{
    (void)option, (void)value;
    return ((struct explore_options *)into)->json = true;
}

static const struct cli_option options[] = {
    {"mode", true, set_mode},
    {"seed", true, set_seed},
    {"runs", true, set_runs},
    {"pct-depth", true, set_pct_depth},
    {"max-states", true, set_max_states},
    {"max-seconds", true, set_max_seconds},
    {"max-memory", true, set_max_memory},
    {"memory", true, set_memory},
    {"store-buffer", true, set_store_buffer},
    {"tear", true, set_tear},
    {"dma-order", true, set_dma_order},
    {"ordering", true, set_ordering},
    {"execution", true, set_execution},
    {"exact", false, set_exact},
    {"check-commute", false, set_check_commute},
    {"no-private-steps", false, set_no_private_steps},
    {"merged-drains", false, set_merged_drains},
    {"nic", true, set_nic},
    {"spread", true, set_spread},
    {"mutant", true, set_mutant},
    {"trace", true, set_trace},
    {"json", false, set_json},
    {NULL, false, NULL},
};

/* Options that say nothing together are refused rather than passed over. */
static bool options_agree(const struct explore_options *o)
{
    bool exhaustive = o->search.mode == SIM_EXHAUSTIVE;
    if (exhaustive && (o->runs_given || o->pct_depth_given))
        cli_complain("--runs and --pct-depth are for --mode random, pct and timed");
    else if (o->pct_depth_given && o->search.mode != SIM_PCT)
        cli_complain("--pct-depth is for --mode pct");
    else if (o->search.mode != SIM_TIMED && (o->nic || o->spread_given))
        cli_complain("--nic and --spread are for --mode timed");
    else if (!exhaustive && o->search.check_commute)
        cli_complain("--check-commute is for --mode exhaustive");
    else
        return true;
    return false;
}

/* ---- progress and interruption ----------------------------------------------------------- */

static volatile sig_atomic_t interrupted;

static void interrupt(int signal_number)
{
    (void)signal_number;
    interrupted = 1;
}

/* The first Ctrl-C ends the search in order, a second one the program. */
static void catch_interrupts(void)
{
    struct sigaction action = {.sa_handler = interrupt, .sa_flags = (int)SA_RESETHAND};
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

static void show_progress(void *context, const struct sim_progress *p)
{
    (void)context;
    fprintf(stderr,
            "\r\033[K%.2f M states, %.2f M/s, depth %" PRIu32 " (%" PRIu32 "), %.0f MB, %.0f s",
            (double)p->states * 1e-6, (double)p->states * 1e-6 / (p->seconds + 1e-9), p->depth,
            p->depth_max, (double)p->memory_octets * 1e-6, p->seconds);
    if (p->runs)
        fprintf(stderr, ", %" PRIu64 " walks", p->runs);
    fflush(stderr);
}

/* ---- what is printed --------------------------------------------------------------------- */

/* A finished search and all that was made of it. */
struct outcome {
    const char *scenario_path;
    char shown_path[512]; /* for people */
    const struct sim_scenario *scenario;
    const struct explore_options *options;
    const struct sim_world *world;
    const struct sim_report *report;
    uint32_t found_depth; /* steps of the violation before shrinking */
    uint64_t trace_digest;
    const char *trace_path; /* written, or NULL */
};

static const char *const result_words[] = {"ok", "violation", "vacuous", "incomplete", "no memory"};
static const char *const bound_words[] = {"", "states", "seconds", "memory", "interrupted"};

static json_t *reached_json(const struct outcome *o)
{
    json_t *reached = json_object();
    for (unsigned i = 0; i < o->scenario->must_reach_count; i++) {
        const char *name = o->scenario->must_reach[i];
        for (uint32_t j = 0; j < o->world->reach_count; j++)
            if (strcmp(o->world->reach_names[j], name) == 0)
                json_object_set_new(reached, name, json_integer((json_int_t)o->report->reached[j]));
    }
    return reached;
}

/* The i-th property that is checked in this world, or NULL. */
static const struct sim_checker *checked(const struct sim_world *w, uint32_t i)
{
    if (i < sim_always_count)
        return &sim_always[i];
    i -= sim_always_count;
    return i < w->checkers_count ? w->checkers[i] : NULL;
}

static json_t *checked_json(const struct outcome *o)
{
    json_t *names = json_array();
    for (uint32_t i = 0; checked(o->world, i); i++)
        json_array_append_new(names, cli_json_text(checked(o->world, i)->property));
    return names;
}

/* NULL where it means nothing. */
static const char *ordering_of(const struct sim_scenario *s)
{
    return sim_kind_of(s)->remote ? orderings[s->machine.ordering] : NULL;
}

static void print_json(const struct outcome *o)
{
    const struct sim_report *r = o->report;
    bool violated = r->result == SIM_VIOLATION;
    json_t *all = json_object();
    json_object_set_new(all, "scenario", cli_json_text(o->scenario_path));
    json_object_set_new(all, "mode", cli_json_text(modes[o->options->search.mode]));
    json_object_set_new(all, "execution", cli_json_text("software"));
    json_object_set_new(all, "mutant", cli_json_text(cli_mutant_self()));
    json_object_set_new(all, "memory", cli_json_text(memories[o->scenario->machine.memory]));
    json_object_set_new(all, "ordering", cli_json_text(ordering_of(o->scenario)));
    json_object_set_new(all, "seed", json_integer((json_int_t)o->options->search.seed));
    json_object_set_new(all, "result", cli_json_text(result_words[r->result]));
    json_object_set_new(all, "bound", cli_json_text(r->bound ? bound_words[r->bound] : NULL));
    json_object_set_new(all, "property", cli_json_text(violated ? r->violation.property : NULL));
    json_object_set_new(all, "what", cli_json_text(violated ? r->violation.text : NULL));
    json_object_set_new(all, "checked", checked_json(o));
    json_object_set_new(all, "reached", reached_json(o));
    json_object_set_new(all, "states", json_integer((json_int_t)r->states));
    json_object_set_new(all, "transitions", json_integer((json_int_t)r->transitions));
    json_object_set_new(all, "walks", json_integer((json_int_t)r->runs));
    json_object_set_new(all, "quiescent", json_integer((json_int_t)r->quiescent));
    json_object_set_new(all, "quiescent_digest", cli_json_hex(r->quiescent_digest));
    json_object_set_new(all, "commuting_pairs", json_integer((json_int_t)r->commuted));
    json_object_set_new(all, "depth_max", json_integer(r->depth_max));
    json_object_set_new(all, "states_per_s", json_real((double)r->states / (r->seconds + 1e-9)));
    json_object_set_new(all, "seconds", json_real(r->seconds));
    json_object_set_new(all, "memory_octets", json_integer((json_int_t)r->memory_octets));
    json_object_set_new(all, "collision_probability", json_real(r->collision));
    json_object_set_new(all, "digest", cli_json_hex(r->digest));
    json_object_set_new(all, "trace", cli_json_text(o->trace_path));
    json_object_set_new(all, "trace_steps", violated ? json_integer(r->trace_steps) : json_null());
    json_object_set_new(all, "trace_digest",
                        violated ? cli_json_hex(o->trace_digest) : json_null());
    json_object_set_new(all, "found_depth", violated ? json_integer(o->found_depth) : json_null());
    cli_json_print(all);
}

static void print_world(const struct outcome *o)
{
    const struct sim_scenario *s = o->scenario;
    printf("scenario    %s%s%s\n", o->shown_path, s->title ? ": " : "", s->title ? s->title : "");
    char line[512];
    for (unsigned i = 0; sim_kind_of(s)->describe(s, i, line, sizeof line); i++)
        printf("%-11s %s\n", i == 0 ? "world" : "", line);
    printf("machine     memory %s", memories[s->machine.memory]);
    if (s->machine.memory != SIM_MEMORY_SC)
        printf(" (store buffer of %" PRIu32 ")", s->machine.store_buffer);
    printf(", DMA in pieces of %" PRIu32 " octets, order %s", s->machine.tear,
           orders[s->machine.dma_order]);
    if (ordering_of(s))
        printf(", RDMA ordering %s", ordering_of(s));
    putchar('\n');
    if (strcmp(cli_mutant_self(), "none") != 0)
        printf("mutant      %s\n", cli_mutant_self());
}

static void print_result(const struct outcome *o)
{
    const struct sim_report *r = o->report;
    switch (r->result) {
    case SIM_OK:
        if (o->options->search.mode == SIM_EXHAUSTIVE)
            puts("result      ok: every interleaving explored, nothing wrong");
        else
            printf("result      ok: nothing wrong in %" PRIu64 " walks\n", r->runs);
        break;
    case SIM_VIOLATION:
        printf("result      VIOLATION of %s: %s\n", r->violation.property, r->violation.text);
        break;
    case SIM_VACUOUS:
        puts("result      VACUOUS: nothing wrong, but what must be reached never was (see below)");
        break;
    case SIM_INCOMPLETE:
        printf("result      incomplete: stopped at the bound (%s); nothing wrong in what was "
               "covered\n",
               bound_words[r->bound]);
        break;
    default:
        puts("result      the machine has no more memory");
    }
}

static void print_figures(const struct outcome *o)
{
    const struct sim_report *r = o->report;
    printf("explored    %s, seed %" PRIu64 ": %" PRIu64 " states, %" PRIu64
           " transitions, depth %" PRIu32 ", %" PRIu64 " quiescent\n",
           modes[o->options->search.mode], o->options->search.seed, r->states, r->transitions,
           r->depth_max, r->quiescent);
    printf("            %.2f s, %.2f M states/s, %.1f MB", r->seconds,
           (double)r->states * 1e-6 / (r->seconds + 1e-9), (double)r->memory_octets * 1e-6);
    if (r->states >= ENOUGH_STATES)
        printf(" (%.0f octets a state)", (double)r->memory_octets / (double)r->states);
    if (r->collision > 0)
        printf(", two states confused with probability %.1e", r->collision);
    putchar('\n');
    if (r->commuted)
        printf("commute     %" PRIu64 " pairs of independent steps, each tried both ways\n",
               r->commuted);
    printf("digest      0x%016" PRIx64 "\n", r->digest);
}

/* What a search that ended early did not come to says nothing. */
static void print_reached(const char *name, uint64_t times, enum sim_result result)
{
    if (times != 0)
        printf("%-11s %-22s by %" PRIu64 " transitions\n", "reached", name, times);
    else if (result == SIM_VACUOUS)
        printf("%-11s %-22s\n", "NOT REACHED", name);
}

static void print_properties(const struct outcome *o)
{
    const struct sim_report *r = o->report;
    if (r->result == SIM_OK || r->result == SIM_VACUOUS) {
        const char *word = o->options->search.mode == SIM_EXHAUSTIVE ? "proved" : "held";
        for (uint32_t i = 0; checked(o->world, i); i++)
            printf("%-11s %-22s %s\n", word, checked(o->world, i)->property,
                   checked(o->world, i)->says);
    }
    for (unsigned i = 0; i < o->scenario->must_reach_count; i++) {
        const char *name = o->scenario->must_reach[i];
        for (uint32_t j = 0; j < o->world->reach_count; j++)
            if (strcmp(o->world->reach_names[j], name) == 0)
                print_reached(name, r->reached[j], r->result);
    }
}

/* ---- a violation ------------------------------------------------------------------------- */

static int draw(struct sim_world *w, const struct outcome *o)
{
    const struct sim_report *r = o->report;
    struct chart chart;
    struct sim_replay replay;
    chart_init(&chart);
    snprintf(chart.title, sizeof chart.title, "%.70s%s%s: %s", o->shown_path,
             strcmp(cli_mutant_self(), "none") ? " with mutant " : "",
             strcmp(cli_mutant_self(), "none") ? cli_mutant_self() : "", r->violation.property);
    snprintf(chart.subtitle, sizeof chart.subtitle,
             "%" PRIu32 " steps (found at depth %" PRIu32 ", shrunk); %s", r->trace_steps,
             o->found_depth, sim_kind_of(o->scenario)->chart_legend);
    size_t mark = sim_arena_mark(&w->arena);
    sim_kind_chart(w, r->trace, r->trace_steps, &chart, &replay);
    sim_arena_undo(&w->arena, mark);
    w->violation.property = NULL;
    putchar('\n');
    int failed = chart_print_text(&chart, stdout, cli_width(), cli_utf8());
    chart_free(&chart);
    return failed;
}

/* Shrinks the report's trace; what is violated then may be worded differently. */
static int shrink(struct sim_world *w, struct sim_report *report, struct outcome *o)
{
    o->found_depth = report->trace_steps;
    int failed = sim_shrink(w, report->violation.property, report->trace, &report->trace_steps,
                            &interrupted);
    if (failed)
        return failed;
    struct sim_replay replay;
    size_t mark = sim_arena_mark(&w->arena);
    sim_replay(w, report->trace, report->trace_steps, &replay);
    if (replay.end == SIM_REPLAY_VIOLATION)
        report->violation = w->violation;
    o->trace_digest = replay.digest;
    w->violation.property = NULL;
    sim_arena_undo(&w->arena, mark);
    return 0;
}

/* False when the chart could not be drawn. */
static bool print_violation(struct sim_world *w, struct outcome *o)
{
    int failed = draw(w, o);
    if (failed == -ENOMEM)
        cli_complain("no memory to draw the chart"); /* main() complains of standard output */
    if (failed)
        return false;
    if (o->trace_path)
        printf("\nreplay it:  %s replay %s\ndraw it:    %s replay %s --msc chart.svg\n",
               cli_program(), o->trace_path, cli_program(), o->trace_path);
    else
        puts("\nto keep it: add --trace FILE");
    return true;
}

/* ---- the command ------------------------------------------------------------------------- */

static void override(struct sim_machine *machine, const struct explore_options *o)
{
    if (o->memory != UNSET)
        machine->memory = (enum sim_memory)o->memory;
    if (o->tear != UNSET)
        machine->tear = (uint32_t)o->tear;
    if (o->dma_order != UNSET)
        machine->dma_order = (enum sim_dma_order)o->dma_order;
    if (o->ordering != UNSET)
        machine->ordering = (enum sim_ordering)o->ordering;
    if (o->store_buffer != UNSET)
        machine->store_buffer = (uint32_t)o->store_buffer;
}

static size_t default_memory(void)
{
    long pages = sysconf(_SC_PHYS_PAGES), octets = sysconf(_SC_PAGESIZE);
    return pages > 0 && octets > 0 ? (size_t)pages / 4 * 3 * (size_t)octets : SIZE_MAX / 2;
}

static int exit_status(const struct sim_report *report)
{
    switch (report->result) {
    case SIM_OK:
        return CLI_DONE;
    case SIM_INCOMPLETE:
        return CLI_STOPPED;
    case SIM_NO_MEMORY:
        return CLI_ENVIRONMENT;
    default:
        return CLI_FOUND;
    }
}

/* Prints all of it and writes the trace file. */
static int tell(struct sim_world *w, struct outcome *o, struct sim_report *report,
                const char *scenario_text)
{
    int status = exit_status(report);
    if (report->result == SIM_VIOLATION) {
        if (shrink(w, report, o) != 0) {
            cli_complain("no memory to shrink the trace");
            return CLI_ENVIRONMENT;
        }
        const char *path = o->options->trace;
        if (path && !trace_file_write(path, w, report, o->options->search.seed, o->trace_digest,
                                      o->scenario_path, scenario_text))
            status = CLI_ENVIRONMENT; /* what was found is told all the same */
        else
            o->trace_path = path;
    }
    if (o->options->json) {
        print_json(o);
        return status;
    }
    print_world(o);
    print_result(o);
    print_figures(o);
    print_properties(o);
    if (report->result == SIM_VIOLATION && !print_violation(w, o))
        status = CLI_ENVIRONMENT;
    return status;
}

static int explore(const char *path, struct explore_options *o, struct sim_scenario *scenario,
                   const char *scenario_text)
{
    char error[ERROR_OCTETS];
    if (o->ordering != UNSET && !sim_kind_of(scenario)->remote) {
        cli_complain("--ordering: %.200s is of kind %s, where nothing goes by RDMA; leave it away",
                     path, sim_kind_of(scenario)->name);
        return CLI_BAD_INPUT;
    }
    struct sim_cost_model *model = NULL;
    if (o->search.mode == SIM_TIMED) {
        model = nic_read(o->nic, path, NIC_DEFAULT);
        if (!model)
            return CLI_BAD_INPUT;
        o->search.costs = &model->costs;
        o->stepping.private_steps = false; /* each of them takes its time */
    }
    override(&scenario->machine, o);
    struct sim_world *w = sim_world_new(scenario, &o->stepping, error, sizeof error);
    if (!w) {
        cli_complain("%s", error);
        sim_cost_model_free(model);
        return CLI_ENVIRONMENT;
    }
    bool shows = isatty(STDERR_FILENO) && !o->json;
    o->search.progress = shows ? show_progress : NULL;
    o->search.stop = &interrupted;
    catch_interrupts();
    struct sim_report report;
    int failed = sim_explore(w, &o->search, &report);
    if (shows)
        fputs("\r\033[K", stderr);
    struct outcome outcome = {
        .scenario_path = path, .scenario = scenario, .options = o, .world = w, .report = &report};
    cli_printable(outcome.shown_path, sizeof outcome.shown_path, path);
    int status = CLI_ENVIRONMENT;
    if (failed)
        cli_complain("%s", strerror(-failed));
    else
        status = tell(w, &outcome, &report, scenario_text);
    sim_report_free(&report);
    sim_world_free(w);
    sim_cost_model_free(model);
    return status;
}

static int run(int argc, char **argv)
{
    struct explore_options o = {
        .search = {.seed = 1,
                   .runs = DEFAULT_RUNS,
                   .pct_depth = DEFAULT_PCT_DEPTH,
                   .spread = DEFAULT_SPREAD},
        .stepping = {.private_steps = true},
        .memory = UNSET,
        .tear = UNSET,
        .dma_order = UNSET,
        .ordering = UNSET,
        .store_buffer = UNSET,
    };
    const char *path = NULL;
    unsigned operands;
    int status = cli_parse(&cli_explore, argc, argv, options, &o, &path, 1, &operands);
    if (status >= 0)
        return status;
    if (!options_agree(&o))
        return CLI_BAD_INPUT;
    if (o.mutant && strcmp(o.mutant, "list") == 0) {
        cli_list_mutants();
        return CLI_DONE;
    }
    if (o.mutant && (status = cli_become_mutant(o.mutant, argv)) != CLI_DONE)
        return status;
    if (!path) {
        cli_complain("which scenario? e.g. `kbtp explore scenarios/races/deferred-free.yaml`");
        return CLI_BAD_INPUT;
    }
    if (o.search.max_memory_octets == 0)
        o.search.max_memory_octets = default_memory();
    if (o.trace && cli_same_file(path, o.trace)) {
        cli_complain("--trace: would overwrite the scenario %.200s; choose another file", path);
        return CLI_BAD_INPUT;
    }
    char *text;
    struct sim_scenario *scenario = scenario_file_read(path, &text);
    status = scenario ? explore(path, &o, scenario, text) : CLI_BAD_INPUT;
    sim_scenario_free(scenario);
    free(text);
    return status;
}

const struct cli_command cli_explore = {
    .name = "explore",
    .does = "explore the interleavings of a scenario",
    .usage = usage,
    .run = run,
};
