/* SPDX-License-Identifier: BSD-3-Clause */
/* Octets that tell whose they are: what a block must hold follows from a key. */
#ifndef KBTP_CLI_PATTERN_H
#define KBTP_CLI_PATTERN_H

#include <stddef.h>
#include <stdint.h>

/* Of the content number `version` of a handle. */
uint64_t pattern_key(uint64_t seed, uint64_t handle, uint64_t version);

/* `data` is aligned to 8. */
void pattern_fill(void *data, size_t octets, uint64_t key);
/* The first octet that is not as pattern_fill() wrote it, or `octets`: all are. */
size_t pattern_differs(const void *data, size_t octets, uint64_t key);

#endif
