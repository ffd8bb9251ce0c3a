/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A scenario: what world to build and what it must reach, as read from YAML. The language is
 * documented in docs/kbtp-scenario.5.scd; scenario_schema.c holds the one schema of it.
 */
#ifndef KBTP_SIM_SCENARIO_H
#define KBTP_SIM_SCENARIO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum sim_world_kind_id { SIM_KIND_RING };
enum sim_agent_kind { SIM_AGENT_CPU, SIM_AGENT_RNIC };
enum sim_memory { SIM_MEMORY_SC, SIM_MEMORY_TSO, SIM_MEMORY_RELAXED };
enum sim_dma_order { SIM_DMA_ANY, SIM_DMA_ASCENDING, SIM_DMA_DESCENDING };
enum sim_counters { SIM_COUNTERS_MASKED, SIM_COUNTERS_UNMASKED };
enum sim_free_completes { SIM_FREE_COMPLETES_DEFERRED, SIM_FREE_COMPLETES_WRITTEN };

#define SIM_MAX_ALLOCATORS 8u
#define SIM_MAX_FREERS 4u
#define SIM_MAX_ALLOCATIONS 1000u
#define SIM_MAX_SLOTS 65536u
#define SIM_MAX_NAME 15u
#define SIM_ENVIRONMENT_NAME "fault" /* of the agent whose steps are faults */
#define SIM_MAX_MUST_REACH 32u

struct sim_allocator {
    char *name;
    enum sim_agent_kind agent;
    uint32_t allocations; /* K: 1 to SIM_MAX_ALLOCATIONS */
};

struct sim_freer {
    char *name;
};

/* How the machine behaves; the command line can override each. */
struct sim_machine {
    enum sim_memory memory;
    uint32_t store_buffer; /* entries, 1 to 16 */
    uint32_t tear;         /* octets of a DMA piece: 8 or 4 */
    enum sim_dma_order dma_order;
};

struct sim_scenario {
    enum sim_world_kind_id kind;
    char *title;
    struct sim_machine machine;

    /* kind ring */
    uint32_t slots;       /* N: a power of two, 2 to SIM_MAX_SLOTS */
    uint32_t blocks;      /* F: 1 to N, and at most 64 */
    uint32_t first_block; /* number of the first block */
    uint64_t block_size;  /* octets; Block Offset = block number * block_size */
    uint32_t first_ticket;
    uint32_t first_generation; /* 1 to 65535 */
    uint32_t quota;            /* usage at most this; 0: no quota */
    uint32_t handles;          /* table entries per allocator; 0: no block table in this world */
    uint32_t crashes;          /* how many allocators may die between FetchAdd and slot read */
    enum sim_counters counters;
    enum sim_free_completes free_completes;
    bool addr_le;
    struct sim_allocator *allocators;
    unsigned allocators_count; /* 1 to SIM_MAX_ALLOCATORS */
    struct sim_freer *freers;
    unsigned freers_count; /* 1 to SIM_MAX_FREERS */

    char **must_reach;
    unsigned must_reach_count;
};

/*
 * Reads the scenario in text[0..length). `name` is what messages call it ("deferred-free.yaml").
 * Returns NULL with one line in `error` (size octets), "NAME:LINE:COLUMN: KEY: what, what to do",
 * without a newline, when it is not a legal scenario. Free with sim_scenario_free().
 */
struct sim_scenario *sim_scenario_parse(const char *name, const char *text, size_t length,
                                        char *error, size_t size);
void sim_scenario_free(struct sim_scenario *scenario);

#endif
