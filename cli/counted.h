/* SPDX-License-Identifier: BSD-3-Clause */
/* How the commands show what a target has counted (ref/counters.h). */
#ifndef KBTP_CLI_COUNTED_H
#define KBTP_CLI_COUNTED_H

#include <jansson.h>
#include <stdbool.h>

#include "ref/counters.h"

/* A list of objects: name, labels, value. */
json_t *counted_json(const struct kbtp_report *report);

/* As text for Prometheus, allocated, with its length; NULL: no memory. */
char *counted_text(const struct kbtp_report *report, size_t *octets);

/* The numbers that are not zero, one a line, on standard output. */
void counted_print(const struct kbtp_report *report);

#endif
