/* SPDX-License-Identifier: BSD-3-Clause */
/* A trace for tests of sim/trace.h, written to memory and read from there. */
#ifndef KBTP_TESTS_SIM_TRACE_FIXTURE_H
#define KBTP_TESTS_SIM_TRACE_FIXTURE_H

#include <stddef.h>

#include "sim/trace.h"

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

/* The shortest scenario; the one of the sample. */
#define MINIMAL \
    "kind: ring\nslots: 2\nblocks: 2\n" \
    "allocators: [{name: a1, allocations: 1}]\nfreers: [{name: f1}]\n"

/* Why the latest parse_text() failed, or "". */
extern char error_line[300];

/* The fields of a trace are not const, but nobody writes to them. */
char *mutable(const char *text);
/* A trace of three steps; nothing in it is to be freed. */
struct sim_trace sample(void);
/* What sim_trace_write() writes, to be freed; the status in *failed. */
char *write_text(const struct sim_trace *trace, size_t *length, int *failed);
/* Parses a copy that ends with its last octet, so that reading behind it is found. */
struct sim_trace *parse_text(const char *text, size_t length);

#endif
