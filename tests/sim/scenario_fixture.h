/* SPDX-License-Identifier: BSD-3-Clause */
/* Scenarios for the tests of the language, and what to expect of a text. */
#ifndef KBTP_TESTS_SIM_SCENARIO_FIXTURE_H
#define KBTP_TESTS_SIM_SCENARIO_FIXTURE_H

#include <stdbool.h>
#include <stddef.h>

#include "sim/scenario.h"

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

/* The shortest scenario, to be taken apart by the tests: lines 1 to 3, and four more. */
#define HEAD "kind: ring\nslots: 4\nblocks: 3\n"
#define ALLOCATORS "allocators:\n  - {name: X, allocations: 2}\n"
#define FREERS "freers:\n  - {name: target}\n"
#define TAIL ALLOCATORS FREERS
#define MINIMAL HEAD TAIL

/* A legal scenario with every key; those that have a default have another value. */
#define EVERY_KEY \
    "# A comment.\n" \
    "kind: ring\n" \
    "title: \"Zwei Freigaben: gleicher Slot \xc3\xa4\"\n" \
    "memory: relaxed\n" \
    "store_buffer: 2\n" \
    "tear: 4\n" \
    "dma_order: descending\n" \
    "slots: 16\n" \
    "blocks: 12\n" \
    "first_block: 100\n" \
    "block_size: 32KiB\n" \
    "first_ticket: 0xFFFFFFFE\n" \
    "first_generation: 65535\n" \
    "quota: 7\n" \
    "handles: 3\n" \
    "crashes: 1\n" \
    "counters: unmasked\n" \
    "free_completes: written\n" \
    "address_le: true\n" \
    "allocators:\n" \
    "  - name: chain_of-X\n" \
    "    agent: rnic\n" \
    "    allocations: 1000\n" \
    "  - {name: Y, allocations: 0x10, agent: cpu}\n" \
    "freers: [{name: 1}, {name: fifteen_letters}]\n" \
    "must_reach: [deferral, 'ring-wrap', \"wait\"]\n"

struct refusal {
    const char *text;
    const char *expected;
};

/* What the latest parse left: an error, or nothing. */
extern char error_line[512];

/* One line without its newline, of printable characters: what a terminal may be given. */
bool is_one_line(const char *line);
struct sim_scenario *parse_octets(const char *text, size_t length);
/* A scenario that must be legal. */
struct sim_scenario *parse(const char *text);
/* The minimal scenario with one more line. */
struct sim_scenario *parse_with(const char *line);
/* A text that must be refused with an error line that starts with "s.yaml:" and `expected`. */
void refuse_octets(const char *text, size_t length, const char *expected);
void refuse(const char *text, const char *expected);
void refuse_with(const char *line, const char *expected);
void refuse_each(const struct refusal *refusals, size_t count);

#endif
