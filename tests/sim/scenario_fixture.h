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

/* The same of kind protocol: lines 1 to 5, two for the initiators, four for X, its requests. */
#define PROTOCOL_HEAD \
    "kind: protocol\nslots: 4\nblocks: 4\nhandles: 2\nworkers: [{name: W0}, {name: W1}]\n"
#define PROTOCOL_Y \
    "initiators:\n" \
    "  - {name: Y, workers: [W1], quota: 1, program: [{op: load, handle: 0}, " \
    "{op: free, handle: 1}]}\n"
#define PROTOCOL_X "  - name: X\n    workers: [W0, W1]\n    quota: 2\n    program:\n"
#define PROTOCOL_MINIMAL PROTOCOL_HEAD PROTOCOL_Y PROTOCOL_X "      - {op: store, handle: 0}\n"

#define EVERY_PROTOCOL_KEY \
    "kind: protocol\n" \
    "title: every key\n" \
    "memory: relaxed\n" \
    "store_buffer: 2\n" \
    "tear: 4\n" \
    "dma_order: descending\n" \
    "ordering: strong\n" \
    "slots: 8\n" \
    "blocks: 6\n" \
    "first_block: 100\n" \
    "block_size: 32\n" \
    "first_ticket: 0xFFFFFFFE\n" \
    "first_generation: 65535\n" \
    "counters: unmasked\n" \
    "address_le: true\n" \
    "handles: 3\n" \
    "credits: 4\n" \
    "max_inline: 24\n" \
    "workers: [{name: W0}, {name: ten_letter}]\n" \
    "initiators:\n" \
    "  - name: X\n" \
    "    workers: [ten_letter, W0, W0]\n" \
    "    quota: 4\n" \
    "    depth: 3\n" \
    "    reconnects: 2\n" \
    "    program:\n" \
    "      - {op: alloc_store, handle: 2, length: 24, seal: true, inline: true}\n" \
    "      - {op: store, handle: Y.1, length: 0x2000, invalidate: true, expect: [TOO_LARGE]}\n" \
    "      - {op: load, handle: 1.2, after: 1.2, allow_unsealed: true, generation: stale,\n" \
    "         invalidate: true, expect: [STALE_GENERATION, NOT_VALID, LOST]}\n" \
    "      - {op: free, handle: outside, after: X.2, generation: current}\n" \
    "      - {op: goodbye, release: true, after: Y.1}\n" \
    "  - {name: Y, workers: [W0], quota: 0, program: [{op: free, handle: 0}]}\n" \
    "  - name: 1\n" \
    "    workers: [W0]\n" \
    "    quota: 2\n" \
    "    program: [{op: load, handle: 0, length: 0}, {op: free, handle: X.0, after: X.1}]\n" \
    "losses: 4\n" \
    "stops: 2\n" \
    "must_reach: [pinned-free, in-doubt]\n"

struct refusal {
    const char *text;
    const char *expected;
};

/* What the latest parse left: an error, or nothing. */
extern char error_line[900];

/* One line without its newline, of printable characters: what a terminal may be given. */
bool is_one_line(const char *line);
struct sim_scenario *parse_octets(const char *text, size_t length);
/* A scenario that must be legal. */
struct sim_scenario *parse(const char *text);
/* The minimal scenario with one more line. */
struct sim_scenario *parse_with(const char *line);
/* Every key that has one value, but kind and title; those of the other kind are 0. */
void check_settings(const struct sim_scenario *s, const struct sim_scenario *expected);
/* A text that must be refused with an error line that starts with "s.yaml:" and `expected`. */
void refuse_octets(const char *text, size_t length, const char *expected);
void refuse(const char *text, const char *expected);
void refuse_with(const char *line, const char *expected);
void refuse_each(const struct refusal *refusals, size_t count);

#endif
