/* SPDX-License-Identifier: BSD-3-Clause */
/* A target of a timed run: a pool, and a CPU for each of its workers. */
#ifndef KBTP_SIM_TIMED_SERVE_H
#define KBTP_SIM_TIMED_SERVE_H

#include "ref/counters.h"
#include "ref/worker.h"
#include "sim/timed/core.h"
#include "sim/timed/timed.h"

/* Of its pool's name and its number in it: the names of two pools may begin alike. */
#define SIM_SERVE_ADDRESS (SIM_TIMED_NAME + 12u)

struct sim_worker_cpu {
    struct sim_target *target;
    struct kbtp_worker *worker;
    struct sim_nic_mem mem;
    struct kbtp_cpu cpu;
    struct sim_core core;
    void *private_memory, *buffers;
    double requests_ns;                      /* of those that were taken in this run */
    uint64_t requests[KBTP_COUNTED_OPCODES]; /* taken in this run, and completions of ... */
    uint64_t reads, writes;
    struct kbtp_counters counters;
};

struct sim_target {
    const struct sim_timed_pool *pool;
    struct sim_nics *nics;
    uint32_t nic;
    char address[SIM_SERVE_ADDRESS];
    const struct sim_phantom *phantom; /* the blocks, or NULL */
    struct kbtp_target target;
    struct kbtp_cpu cpu; /* of the first worker: it sets up */
    struct kbtp_grant *grants;
    void *shared, *blocks;
    struct sim_worker_cpu *workers;
    uint32_t workers_count; /* that were made */
    /* CPU time of all workers, by the opcode of the request; `reads_ps` is for
     * the RDMA Reads of stores. */
    uint64_t cpu_ps[KBTP_COUNTED_OPCODES], served[KBTP_COUNTED_OPCODES], reads_ps;
    int failed; /* what a poll returned */
};

/* Number `number` of the scenario's pool `pool`. 0 or -errno; either way it is over with
 * sim_target_close(). */
int sim_target_open(struct sim_target *target, struct sim_nics *nics, uint32_t nic,
                    const struct sim_timed *scenario, uint32_t pool, uint32_t number,
                    const struct sim_costs *costs);
void sim_target_close(struct sim_target *target);
/* Ends its connections, when all have gone. */
void sim_worker_stop(struct sim_worker_cpu *worker);
/* Every block is in the ring again, and nobody holds a ticket. */
bool sim_target_is_whole(struct sim_target *target);

#endif
