/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the software target sends: a target in this process with a table of entries of all sorts,
 * and its answers to whatever octets are sent to it.
 */
#ifndef KBTP_TESTS_SIM_CHAIN_LOAD_SOFTWARE_H
#define KBTP_TESTS_SIM_CHAIN_LOAD_SOFTWARE_H

#include <stdbool.h>
#include <stdint.h>

#include "ref/session.h"

#define SOFTWARE_HANDLES 48u
#define SOFTWARE_BLOCKS 16u
#define SOFTWARE_BLOCK 64u /* octets */
#define SOFTWARE_FIRST_HANDLE UINT64_C(0x0102030405060000)
#define SOFTWARE_FIRST_OFFSET UINT64_C(0x100000)

/* The handles, from the first on. */
enum software_handle {
    SEALED_16, /* sealed, 16 octets */
    UNSEALED_16,
    UNBOUND,
    SEALED_64,
    SEALED_7,
    SEALED_0,
    FREED,       /* Generation 3 */
    BOUND_TWICE, /* sealed, 8 octets, Generation 4 */
};

struct software_answer {
    uint8_t completion[KBTP_COMPLETION_OCTETS];
    uint8_t data[SOFTWARE_BLOCK]; /* the initiator's memory, 0xee where nothing was written */
    bool answered;
};

/* Over the simulated device; false when something went wrong. */
bool software_open(void);
void software_close(void);
#define SOFTWARE_ASKER 2u /* session that asks; what is bound is in the range of 0 */
const struct kbtp_sessions *software_sessions(void);
/* Copies of table and blocks. */
void software_memory(uint8_t entries[SOFTWARE_HANDLES * KBTP_ENTRY_OCTETS],
                     uint8_t blocks[SOFTWARE_BLOCKS * SOFTWARE_BLOCK]);
/* Sends the request, with this STag and Tagged Offset instead of what it has. */
void software_ask(const struct kbtp_message *request, struct software_answer *answer);

#endif
