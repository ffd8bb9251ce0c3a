/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A trace file: the steps to a violation with all that is needed to run them again (the scenario's
 * text, options, the mutant), as YAML. Its last line is a checksum of what precedes it, so that a
 * truncated or edited file is noticed.
 */
#ifndef KBTP_SIM_TRACE_H
#define KBTP_SIM_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "sim/scenario.h"
#include "sim/world.h"

#define SIM_MAX_TRACE_OCTETS (UINT32_C(16) << 20)

#define SIM_TRACE_FIRST_KEY "kbtp_trace:"

struct sim_trace {
    char *version; /* of the program that wrote it */
    char *mutant;  /* "none" or a name */
    struct sim_machine machine;
    struct sim_stepping stepping;
    char *property;
    char *what;
    char *scenario_name; /* file name without directories */
    char *scenario_text;
    uint64_t seed;   /* of the search that found it */
    uint64_t digest; /* of the replay */
    char **steps;    /* "X access": agent, what, number */
    unsigned steps_count;
};

/* Words for a step: "X choose 5", "X access", "X piece 1", "X drain 0", "fault dies 2". */
void sim_step_print(const struct sim_world *w, const struct sim_step *step, char *out, size_t size);
/* The step that `text` names in this world; false when there is none. */
bool sim_step_parse(const struct sim_world *w, const char *text, struct sim_step *step);

/*
 * Writes a trace file. Returns 0, or -ENOMEM, -EIO, -EILSEQ (the scenario's text is no UTF-8); then
 * a part of it may have been written.
 */
int sim_trace_write(FILE *out, const struct sim_trace *trace);
/* NULL with one line in `error` when text[0..length) is not a whole, unchanged trace. */
struct sim_trace *sim_trace_parse(const char *name, const char *text, size_t length, char *error,
                                  size_t size);
void sim_trace_free(struct sim_trace *trace);

#endif
