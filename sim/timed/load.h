/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An instance of a timed run: one CPU, its sessions with targets, and what it asks of them.
 *
 * A session has `depth` places, each with a buffer of a block, for one request at a time. In three
 * phases: it binds the handles that are to be bound, waits for all others, does what is measured,
 * waits for all others, and leaves with RELEASE.
 */
#ifndef KBTP_SIM_TIMED_LOAD_H
#define KBTP_SIM_TIMED_LOAD_H

#include "ref/initiator.h"
#include "sim/histogram.h"
#include "sim/timed/core.h"
#include "sim/timed/serve.h"
#include "sim/timed/timed.h"

enum sim_load_phase { SIM_LOAD_FILLS, SIM_LOAD_MEASURES, SIM_LOAD_LEAVES };

#define SIM_LOAD_STATUSES 16u /* enum kbtp_status */

struct sim_load_measured {
    uint64_t statuses[SIM_LOAD_STATUSES];
    uint64_t octets;
    double latency_ps;            /* the sum of all */
    struct sim_histogram latency; /* ns */
};

struct sim_session;

/* What all instances share. */
struct sim_load_run {
    struct sim_nics *nics;
    struct sim_clock *clock;
    const struct sim_costs *costs;
    uint64_t seed;
    enum sim_load_phase phase;
    uint32_t instances, done; /* those that have ended the phase */
    void (*phase_over)(void *context);
    void *context;
    struct sim_load_measured kinds[SIM_MIX_KINDS];
    uint64_t outstanding;  /* requests */
    double outstanding_ps; /* times picoseconds, since it is measured */
    uint64_t changed_ps;   /* up to when that is added up */
    uint64_t verified_octets;
    char wrong[300]; /* the first thing that should not have been, in words; "": nothing */
    /* For pictures; may be NULL. */
    void (*watch)(void *context, const struct sim_session *session, uint32_t place,
                  uint64_t begin_ps, uint64_t end_ps);
};

struct sim_place {
    uint64_t begun_ps;
    uint64_t thinks_until_ns; /* it is not to be used before */
    uint32_t handle;
    uint32_t kind; /* enum sim_mix_kind */
};

struct sim_session {
    struct sim_instance *instance;
    struct sim_nic_mem mem;
    struct kbtp_cpu cpu;
    struct kbtp_initiator *initiator;
    struct kbtp_initiator_config config;
    void *private_memory, *buffers;
    char *data;      /* `depth` blocks; ... */
    char *real_data; /* ... which are in memory, or NULL */
    /* Where the library can read what is stored inline, of those that are not; or NULL. */
    char *inline_data;
    struct rdma_region region;
    const struct kbtp_hello_ack *ack;
    struct sim_mix mix;
    struct sim_place *places;
    uint32_t *idle; /* places */
    uint32_t *lists;
    uint64_t *versions;    /* of each handle's content */
    uint16_t *generations; /* of each handle */
    uint32_t idle_count, block_size;
    bool connecting, ready, leaving, gone;
};

struct sim_instance {
    struct sim_load_run *run;
    const struct sim_timed_instances *group;
    uint32_t number; /* of all */
    uint32_t nic;
    struct sim_core core;
    struct sim_session *sessions;
    uint32_t sessions_count, next; /* whose turn it is */
    uint64_t random;
    uint64_t to_begin;  /* operations; UINT64_MAX: as many as the time allows */
    uint64_t *arrivals; /* ring: when those came that are not begun yet; `rate` */
    uint32_t arrivals_first, arrivals_count, arrivals_room;
    uint64_t outstanding;
    bool done; /* with the present phase */
    bool stalls;
    int failed;
};

/*
 * 0 or -errno; either way it is over with sim_instance_close(). A session with each of these
 * targets, all of one pool, which outlast it.
 */
int sim_instance_open(struct sim_instance *instance, struct sim_load_run *run,
                      const struct sim_timed_instances *group, uint32_t number, uint32_t nic,
                      const struct sim_target *const *targets, uint32_t sessions, uint64_t seed);
/* The next phase begins (run->phase). */
void sim_instance_begin(struct sim_instance *instance);
void sim_instance_close(struct sim_instance *instance);
/* Nothing is begun any more: what is outstanding ends. */
void sim_instance_stop(struct sim_instance *instance);

/* ---- for load_open.c */
void sim_instance_core(struct sim_instance *instance);

#endif
