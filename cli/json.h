/* SPDX-License-Identifier: BSD-3-Clause */
/* What the commands put into JSON. */
#ifndef KBTP_CLI_JSON_H
#define KBTP_CLI_JSON_H

#include <jansson.h>
#include <stdint.h>

/* JSON is UTF-8, a file name may be anything: what is not UTF-8 becomes `?`. NULL is null. */
json_t *cli_json_text(const char *text);
/* Digests: JSON numbers do not hold 64 bits everywhere. */
json_t *cli_json_hex(uint64_t value);
/* Prints the object as one line on standard output, and frees it. */
void cli_json_print(json_t *object);

#endif
