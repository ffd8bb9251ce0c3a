/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A timed run as a whole: what a scenario of kind `timed` describes is built, fills its handles, is
 * measured, and leaves; at the end every block is free again.
 */
#ifndef KBTP_SIM_TIMED_RUN_H
#define KBTP_SIM_TIMED_RUN_H

#include "sim/timed/load.h"
#include "sim/timed/serve.h"
#include "sim/timed/topology.h"

/* 30 days: of the 213 that 64 bits of picoseconds hold, so that what is planned cannot overflow. */
#define SIM_TIMED_MOST_DAYS 30u
#define SIM_TIMED_MOST_NS (SIM_TIMED_MOST_DAYS * UINT64_C(86400) * 1000000000)

enum sim_wire_kind { SIM_WIRE_SIMGRID, SIM_WIRE_FIFO };

/* What went on since the run began, at one moment. */
struct sim_timed_sample {
    uint64_t at_ns;
    uint64_t done;           /* operations */
    uint64_t target_busy_ps; /* CPUs of all targets together */
};
#define SIM_TIMED_SAMPLES 512u

enum sim_timed_track {
    SIM_TRACK_WORKER,   /* number `track` of the host's */
    SIM_TRACK_INSTANCE, /* the same */
    SIM_TRACK_REQUEST,  /* `track`: its place, of all instances of the host */
    SIM_TRACK_SEND,     /* of the host's RNIC */
    SIM_TRACK_WIRE,     /* messages to the host */
    SIM_TRACK_RECEIVE,
};

struct sim_timed_span {
    uint32_t host;
    enum sim_timed_track kind;
    uint32_t track;
    const char *name; /* "LOAD", "WRITE", "" */
    uint32_t octets;
    uint64_t begin_ps, end_ps;
};

struct sim_timed_options {
    enum sim_wire_kind wire;
    const char *platform; /* a SimGrid XML file, or NULL */
    bool has_seed;
    uint64_t seed;            /* instead of the scenario's */
    bool samples_all;         /* sampled is wanted */
    const volatile int *stop; /* set from outside: ends the run; may be NULL */
    /* What CPUs, RNICs and requests did, for a picture; may be NULL. */
    void (*span)(void *context, const struct sim_timed_span *span);
    /* The wire is made, and nothing has been sent: for who records it (bench/). May be NULL. */
    void (*opened)(void *context, struct sim_wire *wire);
    void *context;
};

struct sim_timed_run {
    const struct sim_timed *scenario;
    const struct sim_costs *costs;
    struct sim_timed_options options;
    struct sim_clock clock;
    struct sim_topology topology;
    struct sim_wire *wire;
    struct sim_nics *nics;
    struct sim_target *targets;
    struct sim_instance *instances;
    uint32_t targets_count, instances_count; /* that were begun to be made */
    struct sim_load_run load;
    /* What is measured, from the end of the filling on. */
    uint64_t began_ns, ended_ns;
    uint64_t events;        /* of the clock, in all */
    uint64_t messages;      /* of the wire, in all */
    uint64_t target_cpu_ps; /* while it was measured, of all targets */
    uint64_t instance_cpu_ps;
    uint64_t *link_octets;    /* by link, while it was measured */
    struct sim_nic_use *used; /* by port, the same */
    uint64_t served[KBTP_COUNTED_OPCODES], served_ps[KBTP_COUNTED_OPCODES], reads_ps;
    uint64_t digest; /* of the whole run */
    bool whole;      /* all blocks were free at the end */
    bool over;       /* everything was done */
    bool late;       /* it is not, but SIM_TIMED_MOST_NS have passed */
    struct sim_timed_sample samples[SIM_TIMED_SAMPLES];
    uint32_t samples_count;
    /* With options.samples_all: by sample, the octets of each link, then of each port the
     * picoseconds for which its sending and its receiving side were busy. */
    uint64_t *sampled;
    uint64_t sample_ns; /* between two of them */
};

/*
 * Runs it. 0: it has run as far as it could: see run->load.wrong, run->over. Or -errno with one
 * line in `why`, what could not be built; -EINVAL: the platform is wrong. Either way it is over
 * with sim_timed_close().
 */
int sim_timed_run(struct sim_timed_run *run, const struct sim_timed *scenario,
                  const struct sim_costs *costs, const struct sim_timed_options *options, char *why,
                  size_t size);
/* run_watch.c: lets everything be told to options.span. */
void sim_timed_watch(struct sim_timed_run *run);
/* Values of a sample in run->sampled. */
uint32_t sim_timed_sampled(const struct sim_timed_run *run);
void sim_timed_close(struct sim_timed_run *run);

#endif
