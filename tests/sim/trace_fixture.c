/* SPDX-License-Identifier: BSD-3-Clause */
#include "trace_fixture.h"

#include <CUnit/Basic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

char error_line[300];

static char choose[] = "a1 choose 0", access[] = "a1 access 0", drain[] = "f1 drain 1";
static char *steps[] = {choose, access, drain};

char *mutable(const char *text)
{
    return (char *)(uintptr_t)text;
}

struct sim_trace sample(void)
{
    return (struct sim_trace){
        .version = mutable("0.1.0"),
        .mutant = mutable("none"),
        .machine = {.memory = SIM_MEMORY_TSO, .store_buffer = 4, .tear = 8},
        .stepping = {.private_steps = true},
        .property = mutable("stuck"),
        .what = mutable("nothing can change any more, but a1 still waits with ticket 0"),
        .scenario_name = mutable("sample.yaml"),
        .scenario_text = mutable(MINIMAL),
        .seed = 17,
        .digest = UINT64_C(0x0123456789abcdef),
        .steps = steps,
        .steps_count = COUNT(steps),
    };
}

char *write_text(const struct sim_trace *trace, size_t *length, int *failed)
{
    char *text = NULL;
    FILE *out = open_memstream(&text, length);
    CU_ASSERT_PTR_NOT_NULL_FATAL(out);
    *failed = sim_trace_write(out, trace);
    fclose(out);
    return text;
}

struct sim_trace *parse_text(const char *text, size_t length)
{
    char *copy = malloc(length + (length == 0));
    CU_ASSERT_PTR_NOT_NULL_FATAL(copy);
    memcpy(copy, text, length);
    error_line[0] = '\0';
    struct sim_trace *trace =
        sim_trace_parse("t.trace", copy, length, error_line, sizeof error_line);
    free(copy);
    return trace;
}
