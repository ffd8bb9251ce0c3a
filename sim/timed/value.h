/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Values that only files about time have (sim/scenario_value.h has the rest). Functions that return
 * a bool complain when it is false.
 */
#ifndef KBTP_SIM_TIMED_VALUE_H
#define KBTP_SIM_TIMED_VALUE_H

#include "sim/scenario_text.h"

/* A value of the key at `path`: NULL, which means `fallback`, or a decimal number in this range. */
bool sim_read_decimal(const struct sim_text *text, const char *path, const char *raw,
                      double fallback, double least, double most, double *out);
/* A time, "250ms": in whole nanoseconds. */
bool sim_read_time(const struct sim_text *text, const char *path, const char *raw,
                   uint64_t fallback, uint64_t least, uint64_t most, uint64_t *ns);
/* A number, perhaps with KiB, MiB, GiB or TiB behind it. */
bool sim_read_size(const struct sim_text *text, const char *path, const char *raw,
                   uint64_t fallback, uint64_t least, uint64_t most, uint64_t *octets);

#endif
