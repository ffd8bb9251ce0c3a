/* SPDX-License-Identifier: BSD-3-Clause */
/* The file that keeps an initiator's ID, a secret (R-SESS-11, R-SESS-12): 32 hexadecimal digits, as
 * in policies, that its owner alone can read. */
#ifndef KBTP_CLI_IDENTITY_H
#define KBTP_CLI_IDENTITY_H

#include <stdint.h>

#include "ref/wire.h"

/* Reads it; makes it when it is not there. CLI_DONE, or what to exit with, after a complaint. */
int identity_read(const char *path, uint8_t id[KBTP_INITIATOR_ID_OCTETS]);

/* One that nobody keeps. As above. */
int identity_random(uint8_t id[KBTP_INITIATOR_ID_OCTETS]);

#endif
