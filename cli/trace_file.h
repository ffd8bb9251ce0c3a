/* SPDX-License-Identifier: BSD-3-Clause */
/* Trace files as the commands write and read them (format: sim/trace.h). */
#ifndef KBTP_CLI_TRACE_FILE_H
#define KBTP_CLI_TRACE_FILE_H

#include <stdbool.h>

#include "sim/explore.h"
#include "sim/trace.h"

/* Writes the report's trace; complains and returns false when that fails. */
bool trace_file_write(const char *path, const struct sim_world *w, const struct sim_report *report,
                      uint64_t seed, uint64_t digest, const char *scenario_path,
                      const char *scenario_text);

/* Does this text begin as a trace does? */
bool trace_file_is(const char *text);

/* NULL after a complaint. Free with sim_trace_free(). */
struct sim_trace *trace_file_read(const char *path);

#endif
