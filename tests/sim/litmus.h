/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Litmus tests: a few agents, each running one short function once over shared words, explored
 * exhaustively; the outcomes are what the agents read.
 */
#ifndef KBTP_TESTS_SIM_LITMUS_H
#define KBTP_TESTS_SIM_LITMUS_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/cpu.h"
#include "sim/explore.h"

#define LITMUS_AGENTS 4
#define LITMUS_RESULTS 4
#define LITMUS_OUTCOMES 256

/* Shared memory of a litmus test: each word in a segment of its own. */
struct litmus_shared {
    mem64 *x, *y, *z;  /* x and y alone, z beside w: 16 octets that are read at once */
    mem32 *low, *high; /* the halves of x */
};

struct litmus_private {
    uint64_t result[LITMUS_RESULTS];
    uint64_t done;
};

typedef void (*litmus_code)(struct mem *m, const struct litmus_shared *s, uint64_t *result);

struct litmus {
    litmus_code code[LITMUS_AGENTS];
    enum sim_agent_kind kind[LITMUS_AGENTS];
    uint32_t agents;
    enum sim_memory memory;
    enum sim_dma_order dma_order;
    uint32_t store_buffer; /* 0: 4 */
    uint32_t tear;         /* 0: 8 */
    bool no_private_steps, merged_drains, check_commute;
    /* Called once when an agent's function ended; may be NULL. */
    void (*ended)(struct sim_agent *agent);
};

/* What the agents read, agent after agent, and what x held at the end. */
struct outcome {
    uint64_t result[LITMUS_AGENTS][LITMUS_RESULTS];
    uint64_t x;
};

struct outcomes {
    struct outcome all[LITMUS_OUTCOMES];
    uint32_t count;
    struct sim_report report;
};

/* Explores; the outcomes of quiescent states, each once. */
void litmus_run(const struct litmus *litmus, struct outcomes *outcomes);
/* Is there an outcome with these first two results of agents 0 and 1? */
bool litmus_has(const struct outcomes *outcomes, uint64_t a0, uint64_t a1, uint64_t b0,
                uint64_t b1);
bool litmus_same(const struct outcomes *a, const struct outcomes *b);

/* The ghost words of a litmus world, for `ended`: one segment. */
extern uint64_t *litmus_ghost;

#endif
