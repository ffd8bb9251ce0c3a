/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The flows of a timed run, for who wants to send them without it.
 *
 *     flows record SCENARIO.yaml > FLOWS     runs it over SimGrid, and writes what the wire got
 *     flows play < FLOWS                     sends them over our wire on SimGrid, and nothing else
 *
 * FLOWS: ports and octets per nanosecond of all their links, which are a star, and how many
 * messages; then a line for each in the order in which they begin: nanosecond, flow, from, to,
 * octets. Of a flow, which is what one queue pair sends, one is on its way at a time. `play` prints
 * how many were sent, when the last one had left, and the seconds of the processor that it took,
 * but for reading and building.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "sim/read_file.h"
#include "sim/timed/run.h"

#define MOST_FLOWS (1u << 20)
#define LINE 256u

struct record {
    uint64_t start_ns;
    uint32_t flow, from, to, octets;
};

/* Both of SimGrid: one a process, and there is one of these. */
static struct {
    struct sim_wire_ops ops; /* of the wire, but for `begin` */
    int (*begin)(struct sim_wire *wire, struct sim_wire_flow *flow);
    const struct sim_wire_flow **flows; /* by hash */
    uint32_t *numbers, flows_count;
    struct record *records;
    uint64_t count, room;
} recorder;

static struct {
    struct sim_clock clock;
    struct sim_wire *wire;
    struct sim_wire_flow *flows;
    struct sim_wire_message *messages;
    struct record *records;
    uint64_t count, next, through, last_ns;
} player;

static int complain(const char *what)
{
    fprintf(stderr, "flows: %s\n", what);
    return 2;
}

/* ---- recording --------------------------------------------------------------------------- */

static uint32_t number_of(const struct sim_wire_flow *flow)
{
    uint32_t at = (uint32_t)((uintptr_t)flow / 64 * 0x9e3779b1u) % MOST_FLOWS;
    while (recorder.flows[at] && recorder.flows[at] != flow)
        at = (at + 1) % MOST_FLOWS;
    if (!recorder.flows[at]) {
        recorder.flows[at] = flow;
        recorder.numbers[at] = recorder.flows_count++;
    }
    return recorder.numbers[at];
}

static int record_begin(struct sim_wire *wire, struct sim_wire_flow *flow)
{
    if (recorder.flows_count == MOST_FLOWS / 2)
        return -ENOSPC;
    if (recorder.count == recorder.room) {
        recorder.room = recorder.room ? 2 * recorder.room : 1024;
        struct record *larger = realloc(recorder.records, recorder.room * sizeof *recorder.records);
        if (!larger)
            return -ENOMEM;
        recorder.records = larger;
    }
    recorder.records[recorder.count++] = (struct record){
        wire->clock->now_ns, number_of(flow), flow->from, flow->to, flow->under_way->octets};
    return recorder.begin(wire, flow);
}

static void opened(void *context, struct sim_wire *wire)
{
    (void)context;
    recorder.ops = *wire->ops;
    recorder.begin = recorder.ops.begin;
    recorder.ops.begin = record_begin;
    wire->ops = &recorder.ops;
}

static void write_records(const struct sim_topology *topology)
{
    printf("%" PRIu32 " %.17g %" PRIu64 "\n", topology->ports, topology->links[0].octets_per_ns,
           recorder.count);
    for (uint64_t i = 0; i < recorder.count; i++) {
        const struct record *r = &recorder.records[i];
        printf("%" PRIu64 " %" PRIu32 " %" PRIu32 " %" PRIu32 " %" PRIu32 "\n", r->start_ns,
               r->flow, r->from, r->to, r->octets);
    }
}

static int run_and_record(const struct sim_timed *timed, const struct sim_costs *costs)
{
    static struct sim_timed_run run;
    const struct sim_timed_options options = {.wire = SIM_WIRE_SIMGRID, .opened = opened};
    char why[900];
    recorder.flows = calloc(MOST_FLOWS, sizeof *recorder.flows);
    recorder.numbers = calloc(MOST_FLOWS, sizeof *recorder.numbers);
    if (!recorder.flows || !recorder.numbers)
        return complain("no memory");
    int failed = sim_timed_run(&run, timed, costs, &options, why, sizeof why);
    if (!failed)
        write_records(&run.topology);
    sim_timed_close(&run);
    free(recorder.flows);
    free(recorder.numbers);
    free(recorder.records);
    return failed ? complain(why) : 0;
}

static char *read_text(const char *path, size_t *length)
{
    char error[900], *text = NULL;
    if (sim_read_file(path, 1u << 20, &text, length, error, sizeof error) != 0)
        complain(error);
    return text;
}

static int record(const char *path)
{
    char error[900] = "no file";
    size_t length, model_length;
    char *text = read_text(path, &length), *model_text = NULL;
    struct sim_timed *timed =
        text ? sim_timed_parse(path, text, length, error, sizeof error) : NULL;
    struct sim_cost_model *model = NULL;
    if (timed && (model_text = read_text(timed->nic, &model_length)))
        model = sim_cost_model_parse(timed->nic, model_text, model_length, error, sizeof error);
    int status = model ? run_and_record(timed, &model->costs) : complain(error);
    if (model)
        sim_cost_model_free(model);
    if (timed)
        sim_timed_free(timed);
    free(text);
    free(model_text);
    return status;
}

/* ---- playing ----------------------------------------------------------------------------- */

static void arrives(struct sim_wire_flow *flow, struct sim_wire_message *message, uint64_t at_ns)
{
    (void)flow, (void)message;
    player.through++;
    if (at_ns > player.last_ns)
        player.last_ns = at_ns;
}

/* Those that begin now are sent; then those of the next time. */
static void send_some(void *context, uint64_t number)
{
    (void)context, (void)number;
    for (; player.next < player.count; player.next++) {
        const struct record *r = &player.records[player.next];
        if (r->start_ns > player.clock.now_ns) {
            sim_clock_at(&player.clock, r->start_ns, send_some, NULL, 0);
            return;
        }
        struct sim_wire_message *message = &player.messages[player.next];
        message->octets = r->octets;
        player.flows[r->flow].from = r->from;
        player.flows[r->flow].to = r->to;
        sim_wire_send(player.wire, &player.flows[r->flow], message);
    }
}

/* `count` numbers of a line. */
static bool read_numbers(char *line, uint64_t *numbers, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        char *end;
        numbers[i] = strtoull(line, &end, 10);
        if (end == line)
            return false;
        line = end;
    }
    return true;
}

static bool read_record(struct record *r)
{
    char line[LINE];
    uint64_t n[5];
    if (!fgets(line, sizeof line, stdin) || !read_numbers(line, n, 5) || n[1] >= MOST_FLOWS)
        return false;
    *r = (struct record){n[0], (uint32_t)n[1], (uint32_t)n[2], (uint32_t)n[3], (uint32_t)n[4]};
    return true;
}

static bool read_records(uint32_t *ports, double *octets_per_ns)
{
    char line[LINE], *rest;
    if (!fgets(line, sizeof line, stdin))
        return false;
    *ports = (uint32_t)strtoul(line, &rest, 10);
    *octets_per_ns = strtod(rest, &rest);
    player.count = strtoull(rest, NULL, 10);
    player.records = calloc(player.count + 1, sizeof *player.records);
    player.messages = calloc(player.count + 1, sizeof *player.messages);
    player.flows = calloc(MOST_FLOWS, sizeof *player.flows);
    if (!player.records || !player.messages || !player.flows)
        return false;
    for (uint64_t i = 0; i < player.count; i++)
        if (!read_record(&player.records[i]))
            return false;
    return *ports != 0 && *octets_per_ns > 0;
}

static double used_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static int play(void)
{
    char why[900];
    struct sim_topology topology;
    struct sim_topology_shape shape = {0};
    if (!read_records(&shape.ports, &shape.octets_per_ns))
        return complain("these are no flows, or there is no memory for them");
    if (sim_topology_make(&topology, &shape) != 0)
        return complain("no memory");
    player.clock.end_ns = SIM_CLOCK_NEVER - 1;
    player.wire = sim_wire_simgrid(&player.clock, &topology, why, sizeof why);
    if (!player.wire)
        return complain(why);
    player.wire->arrives = arrives;
    sim_clock_at(&player.clock, 0, send_some, NULL, 0);
    double before_s = used_s();
    int failed = sim_wire_run(player.wire);
    double took_s = used_s() - before_s;
    if (failed || player.through != player.count)
        return complain("the run ended early");
    printf("%" PRIu64 " %" PRIu64 " %.3f\n", player.through, player.last_ns, took_s);
    sim_wire_close(player.wire);
    sim_topology_free(&topology);
    sim_clock_free(&player.clock);
    free(player.records);
    free(player.messages);
    free(player.flows);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "record") == 0)
        return record(argv[2]);
    if (argc == 2 && strcmp(argv[1], "play") == 0)
        return play();
    return complain("usage: flows record SCENARIO.yaml > FLOWS | flows play < FLOWS");
}
