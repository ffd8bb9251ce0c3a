/* SPDX-License-Identifier: BSD-3-Clause */
/* Reading the files that a user names, whatever they turn out to be. */
#ifndef KBTP_SIM_READ_FILE_H
#define KBTP_SIM_READ_FILE_H

#include <stddef.h>

/* Of a YAML file, for libyaml's time can grow with the square of the length. */
#define SIM_TEXT_LIMIT ((size_t)1 << 20)

/*
 * Reads a whole regular file of at most `limit` octets (so much memory is taken) into a new buffer,
 * with a final NUL that does not count. Returns 0, or -1 with one line in `error` (size octets),
 * "PATH: what, what to do". A directory, a device, an empty or a larger file is an error that says
 * so.
 */
int sim_read_file(const char *path, size_t limit, char **text, size_t *length, char *error,
                  size_t size);

#endif
