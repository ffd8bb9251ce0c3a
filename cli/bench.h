/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * `kbtp bench`: drives a target over devices of this machine, and measures.
 *
 * One thread drives all connections, each a session of its own with an identity for once. All
 * memory is allocated and registered before the first request; what is measured is begun and ended
 * with no request outstanding, and in between nothing is allocated and nobody waits for anything
 * but outcomes.
 *
 * A connection has `depth` places, each with a buffer, for one request at a time; and handles of
 * its range, each in at most one request at a time, so that it is known what a handle holds.
 */
#ifndef KBTP_CLI_BENCH_H
#define KBTP_CLI_BENCH_H

#include <stdbool.h>
#include <stddef.h>

#include "net/verbs/verbs.h"
#include "ref/initiator.h"
#include "sim/histogram.h"
#include "sim/mix.h"

#define BENCH_STATUSES (KBTP_STATUS_TICKET_ABANDONED + 1u)

struct bench_options {
    const char *name; /* of the target, as it was typed */
    char address[RDMA_VERBS_ADDRESS];
    const char *device, *target_metrics;
    double warm_up, duration, timeout; /* seconds */
    uint64_t count;                    /* of operations; 0: as many as the duration takes */
    uint32_t weights[SIM_MIX_DRAWS];
    uint64_t length; /* octets of each; 0: Block Size */
    uint64_t depth, connections;
    uint64_t handles; /* of each connection; 0: as many as make sense */
    uint64_t seed;
    bool depth_given, is_inline, invalidate, verify, poll, json, trusted;
};

struct bench_measured {
    uint64_t statuses[BENCH_STATUSES];
    uint64_t octets;
    struct sim_histogram latency; /* ns */
};

struct bench_result {
    struct bench_measured kinds[SIM_MIX_KINDS];
    struct rdma_verbs_counts counts; /* of all connections, while it was measured */
    uint64_t verified_octets;
    double seconds, cpu_s;
    double target_cpu_s; /* below 0: not known */
    uint32_t block_size, length, depth, handles;
    char wrong[400]; /* what should not have been, in words; "": nothing */
    bool interrupted;
};

struct bench_place {
    char *data; /* `length` octets of the region */
    struct rdma_window window;
    uint64_t begun_ns;
    uint64_t holds; /* the key of its octets */
    uint32_t handle;
    uint32_t kind; /* enum sim_mix_kind */
    uint32_t length;
    bool revoking; /* only its window is left to be invalidated */
};

struct bench_handle {
    uint64_t version; /* how often it was stored to */
    uint16_t generation;
};

struct bench_session {
    struct mem mem;
    struct kbtp_cpu cpu;
    struct kbtp_initiator *initiator;
    struct kbtp_initiator_config config;
    void *private_memory, *buffers;
    size_t private_octets, buffer_octets;
    const struct kbtp_hello_ack *target;
    struct bench_place *places;
    struct bench_handle *handles;
    struct sim_mix mix;
    uint32_t *idle; /* places */
    uint32_t idle_count;
    uint32_t next; /* the place of a request that is to be submitted; has_next */
    bool has_next, leaves;
};

struct bench {
    const struct bench_options *options;
    struct rdma_verbs *device;
    struct bench_session *sessions;
    struct rdma **waiting; /* the handle of each session */
    char *data;            /* of all places */
    void *lists;           /* places, handles and lists of all sessions */
    size_t data_octets, lists_octets;
    struct rdma_region region; /* of data */
    uint32_t count;            /* sessions */
    uint32_t depth, length, handles;
    uint64_t random;
    uint64_t to_begin; /* operations that may be begun yet */
    bool fills, measures;
    struct bench_result *result;
};

/* ---- bench_session.c */

/* What to exit with, after a complaint, or CLI_DONE. Either way it is over with bench_close(). */

int bench_open(struct bench *bench, const struct bench_options *options,
               struct bench_result *result);
/* Sessions without outstanding requests end, and what they have bound is free. False: the target
 * has not let go in time. */
bool bench_leave(struct bench *bench);
void bench_close(struct bench *bench);
/* Something on a session's connection failed. */
int bench_complain(const struct bench *bench, const struct bench_session *session, const char *what,
                   int failed);

/* ---- bench_work.c */

/* Places and handles of a session that is READY; `lists` has room for two numbers a handle. */
void bench_work_init(struct bench *bench, struct bench_session *session, uint32_t *lists);
/* Begins requests until nothing more can be begun. 0 or what kbtp_initiator_submit() returned. */
int bench_begin(struct bench *bench, struct bench_session *session);
/* What came of a request. 0, or -errno of the connection. */
int bench_ended(struct bench *bench, struct bench_session *session,
                const struct kbtp_outcome *outcome, uint64_t now_ns);
/* That no request is about. */
bool bench_is_idle(const struct bench_session *session);

/* ---- bench_run.c */

/* Ctrl-C and SIGTERM end what is under way, in good order, from now on. */
void bench_take_signals(void);
bool bench_interrupted(void);

/* Fills the handles, warms up, and measures. */
int bench_run(struct bench *bench);

/* ---- bench_words.c */

/* Says what was measured, and returns what to exit with. */
int bench_tell(const struct bench_options *options, const struct bench_result *result);
const char *bench_kind_name(uint32_t kind);

#endif
