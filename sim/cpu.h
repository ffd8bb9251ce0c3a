/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An agent that runs ref/ code: a CPU, or an RNIC that runs the same operations as a chain would.
 *
 * Code runs in polls. A step is one access that another agent can see: the poll is run again from
 * its start with the results of its earlier accesses, makes the next one, goes on to where it
 * stands before the one after that, and is left there (longjmp; its private state is rolled back).
 * So a poll in progress is its private state plus the list of results.
 *
 * A CPU's stores enter its store buffer and drain in later steps (TSO: in order; relaxed: in any
 * order but that a release waits for all earlier ones, and stores to one place stay in order). An
 * atomic waits for an empty buffer. Loads are not reordered among each other: a documented limit.
 * mem_read, mem_write and mem_fill of a CPU are loads and stores of naturally aligned pieces, from
 * the lowest address on; in memory that is private to it (struct sim_segment, owner) all happens at
 * once. Calls of net/rdma.h: sim/cpu_rdma.h. An agent of kind RNIC has no buffer; whatever is
 * larger than a piece moves in pieces, without order between them.
 */
#ifndef KBTP_SIM_CPU_H
#define KBTP_SIM_CPU_H

#include "sim/world.h"

#define SIM_MAX_CHOICES 128u

/* What an agent runs. The functions below are told the agent's private state. */
struct sim_program {
    uint32_t private_size; /* octets */
    /* Octets more that tell of the way here, not of the state: undone with it, not hashed. */
    uint32_t path_size;
    uint32_t max_accesses; /* of one poll: more is the violation `bounded-poll` */
    /* Runs ref/ code through agent->mem; a deterministic function of private and argument. */
    int (*poll)(struct sim_agent *agent, void *private, uint32_t argument);
    /* Once, when a poll ended with `result`: ghost records, sim_cpu_publish(). */
    void (*ended)(struct sim_agent *agent, void *private, uint32_t argument, int result);
    /*
     * What can be begun, when no poll is due. `begin` of a choice writes (sim_ghost_write) the
     * ghost records on which the choice rests, so that dependent steps are seen to be.
     */
    uint32_t (*choices)(const struct sim_agent *agent, const void *private,
                        uint32_t out[SIM_MAX_CHOICES]);
    /* Once, before the poll of a choice: claims. */
    void (*begin)(struct sim_agent *agent, void *private, uint32_t argument);
    /* Is another poll due without any choice? */
    bool (*due)(const void *private);
    /* May this timer, which is armed, expire now? NULL: any may at any time. */
    bool (*may_expire)(const struct sim_agent *agent, uint32_t timer);
};

/* Octets that are hashed have no padding. */
#pragma GCC diagnostic push
#pragma GCC diagnostic error "-Wpadded"

#define SIM_DOORBELL 2u

/*
 * A store that is not yet visible, or an event that takes effect once all earlier ones are, or a
 * doorbell: a release store that the RNIC sees.
 */
struct sim_buffered {
    uint64_t value;  /* doorbell: work requests; 1 << 32 for receives */
    uint32_t place;  /* offset in the arena; doorbell: the connection; 0 for an event */
    uint8_t octets;  /* 0 for an event or doorbell */
    uint8_t release; /* 1: a release; SIM_DOORBELL */
    uint16_t event;
};

/* What stands at the start of an agent's segment; private state, path and `next` follow. */
struct sim_cpu {
    uint32_t polling; /* a poll is due or in progress */
    uint32_t argument;
    uint32_t accesses; /* results so far */
    uint32_t pieces;   /* moved of the read or write in progress */
    uint32_t buffered; /* entries in the store buffer */
    uint16_t dead;
    uint16_t quiet;  /* results with which the poll began that were no steps and changed nothing */
    uint64_t more[]; /* results, store buffer, private state, path, struct sim_next */
};

#pragma GCC diagnostic pop

int sim_cpu_add(struct sim_world *w, const char *name, enum sim_agent_kind kind,
                const struct sim_program *program);
void *sim_cpu_private(const struct sim_agent *agent);
/* Its path_size octets, aligned to 8; zero at first. */
void *sim_cpu_path(const struct sim_agent *agent);
bool sim_cpu_buffer_empty(const struct sim_agent *agent);
/*
 * Stores to this place that wait in the buffer, so that only the agent itself sees them yet: the
 * oldest first, as octets in memory. Returns how many there are, `most` at most.
 */
uint32_t sim_cpu_waiting(const struct sim_agent *agent, const void *at, uint64_t *octets,
                         uint32_t most);
/* From `ended`: an event that behaves as a release store of the agent (a doorbell does). */
void sim_cpu_publish(struct sim_agent *agent, uint32_t event, uint64_t value);
/* The agent makes no further step. */
void sim_cpu_kill(struct sim_agent *agent);
/* Runs the agents that need no choice up to their first access; ends set-up. */
void sim_cpu_start(struct sim_world *w);

#endif
