/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * `kbtp target`: serves a block pool over devices of this machine.
 *
 * The main thread sets everything up, waits for a signal, and takes everything down. Each worker
 * has a thread and a handle of its own. What others want of a worker they leave in an atomic of
 * its struct and wake it: to stop, and to add what it has counted to a sum.
 */
#ifndef KBTP_CLI_TARGET_H
#define KBTP_CLI_TARGET_H

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "cli/policy.h"
#include "net/verbs/verbs.h"
#include "ref/counters.h"

#define TARGET_MAX_THREADS 256u
/* Sessions that metrics show one by one: Prometheus likes no more. */
#define TARGET_SHOWN_SESSIONS 1024u

struct target_options {
    const char *listen, *device, *policy, *metrics;
    uint64_t blocks, block_size, max_inline;
    uint64_t sessions, quota, handles; /* of the default grant; quota UINT64_MAX: not given */
    uint64_t first_handle;             /* UINT64_MAX: a random one */
    uint64_t connections, credits, threads;
    double retention, ticket_timeout; /* seconds; 0: for ever */
    uint16_t features;                /* enum kbtp_feature */
    bool trusted, poll, json;
    bool grants_given; /* one of the options that a policy replaces */
};

struct server;

struct server_worker {
    struct server *server;
    struct mem mem;
    struct kbtp_cpu cpu;
    struct kbtp_worker *worker;
    void *private_memory, *buffers;
    size_t private_octets, buffer_octets;
    pthread_t thread;
    struct kbtp_counters counters;
    int failed;           /* what ended its thread, -errno; for who has joined it */
    atomic_uint asked;    /* how often it was to say what it has counted */
    atomic_uint answered; /* == asked: the sum belongs to who asks, else to this worker */
    atomic_bool idle;     /* after the stop began */
    bool started;
    char apart[64]; /* no two workers write to one line */
};

/* What all workers have counted, for one who asks. */
struct server_sum {
    struct kbtp_counters counters;
    struct kbtp_gauges gauges;
    struct kbtp_session_gauges *sessions; /* NULL: too many */
};

struct server {
    const struct target_options *options;
    struct policy policy; /* or only its grants */
    struct kbtp_target_config config;
    struct rdma_verbs *device;
    struct kbtp_target target;
    void *shared, *blocks;
    size_t shared_octets, blocks_octets;
    struct server_worker *workers;
    uint32_t worker_count;
    bool made;                        /* target */
    char address[RDMA_VERBS_ADDRESS]; /* where it listens */
    atomic_bool stopping, over;
    struct server_sum sum;
    struct server_metrics *metrics;
};

/* ---- target_setup.c: all return what to exit with, after a complaint, or CLI_DONE */

int server_open(struct server *server, const struct target_options *options);
void server_close(struct server *server);

/* ---- target_serve.c */

/* Starts the threads. */
int server_start(struct server *server);
/* Until a signal comes: its number. SERVER_FAILED: a worker has failed. All are blocked by then. */
#define SERVER_FAILED SIGUSR1
int server_wait(void);
/* Stops the workers and waits for their threads; false after a complaint: they were not idle. */
bool server_stop(struct server *server);
/* Adds up what all have counted, into server->sum. For one thread at a time; after server_stop()
 * nobody is asked. False: a worker does not answer. */
bool server_count(struct server *server);

/* ---- target_metrics.c */

int metrics_start(struct server *server, const char *address);
void metrics_stop(struct server *server);
/* That it has; 0: there are none. */
uint16_t metrics_port(const struct server *server);

/* ---- target_words.c */

void server_says_ready(const struct server *server);
void server_says_ended(struct server *server, int signal_number, bool clean);

#endif
