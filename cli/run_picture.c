/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The beginning of a timed run for https://ui.perfetto.dev: Chrome's trace event format, a process
 * for each host, a thread for each CPU, side of the RNIC, and place of a request.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/run.h"

#define MOST_SPANS 200000u /* what a browser shows with ease */
#define TRACKS 256u        /* of one kind */

struct run_picture {
    FILE *out;
    char *text;
    size_t octets;
    uint32_t spans;
};

static const struct {
    const char *name, *category;
} kinds[] = {
    [SIM_TRACK_WORKER] = {"worker", "cpu"},    [SIM_TRACK_INSTANCE] = {"CPU", "cpu"},
    [SIM_TRACK_REQUEST] = {"request", "kbtp"}, [SIM_TRACK_SEND] = {"RNIC sends", "rnic"},
    [SIM_TRACK_WIRE] = {"wire", "wire"},       [SIM_TRACK_RECEIVE] = {"RNIC receives", "rnic"}};

struct run_picture *run_picture_begin(void)
{
    struct run_picture *p = calloc(1, sizeof *p);
    if (p)
        p->out = open_memstream(&p->text, &p->octets);
    if (!p || !p->out) {
        cli_complain("no memory for --perfetto");
        free(p);
        return NULL;
    }
    fputs("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n", p->out);
    return p;
}

void run_picture_span(void *context, const struct sim_timed_span *span)
{
    struct run_picture *p = context;
    bool cpu = span->kind == SIM_TRACK_WORKER || span->kind == SIM_TRACK_INSTANCE;
    if (p->spans == MOST_SPANS)
        return;
    p->spans++;
    fprintf(p->out,
            "{\"ph\":\"X\",\"pid\":%u,\"tid\":%u,\"ts\":%.6f,\"dur\":%.6f,\"name\":\"%s\","
            "\"cat\":\"%s\",\"args\":{\"octets\":%u}},\n",
            span->host + 1, (unsigned)span->kind * TRACKS + span->track % TRACKS,
            (double)span->begin_ps / 1e6, (double)(span->end_ps - span->begin_ps) / 1e6,
            cpu ? "runs" : span->name, kinds[span->kind].category, span->octets);
}

static int write_text(void *context, void *file)
{
    const struct run_picture *p = context;
    return fwrite(p->text, 1, p->octets, file) == p->octets ? 0 : -1;
}

/* Hosts and their tracks have names. */
static void name_tracks(struct run_picture *p, const struct sim_timed_run *run)
{
    char name[48];
    for (uint32_t host = 0; host < run->topology.ports; host++) {
        sim_timed_host_name(run->scenario, host, name, sizeof name);
        fprintf(p->out,
                "{\"ph\":\"M\",\"pid\":%u,\"name\":\"process_name\",\"args\":{\"name\":\"%s\"}},\n",
                host + 1, name);
        for (uint32_t kind = 0; kind < sizeof kinds / sizeof *kinds; kind++)
            for (uint32_t n = 0; n < (kind == SIM_TRACK_REQUEST ? 32u : 1u); n++)
                fprintf(p->out,
                        "{\"ph\":\"M\",\"pid\":%u,\"tid\":%u,\"name\":\"thread_name\","
                        "\"args\":{\"name\":\"%s %u\"}},\n",
                        host + 1, kind * TRACKS + n, kinds[kind].name, n);
    }
}

bool run_picture_end(struct run_picture *p, const struct sim_timed_run *run, const char *path)
{
    bool well = true;
    if (path) {
        name_tracks(p, run);
        fprintf(p->out,
                "{\"ph\":\"M\",\"pid\":0,\"name\":\"process_name\",\"args\":{\"name\":\"kbtp "
                "run\"}}\n]}\n");
    }
    well = fclose(p->out) == 0;
    if (!well)
        cli_complain("no memory for --perfetto");
    if (well && path)
        well = cli_write_file(path, write_text, p);
    free(p->text);
    free(p);
    return well;
}
