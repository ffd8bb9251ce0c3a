/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A target with its workers and some initiators in one process, over whatever provider the handles
 * belong to; memory comes from malloc, so that sanitizers see every octet out of place.
 */
#ifndef KBTP_TESTS_REF_PAIR_H
#define KBTP_TESTS_REF_PAIR_H

#include "ref/initiator.h"
#include "ref/worker.h"

/* At most; a program that wants more is built with others (tests/CMakeLists.txt). */
#ifndef PAIR_WORKERS
#define PAIR_WORKERS 2u
#define PAIR_INITIATORS 3u
#endif
#define PAIR_BUFFER 65536u

#define PAIR_OUTCOMES 64u

struct pair_config {
    struct kbtp_target_config target; /* session_count and features are set by pair_open() */
    const struct kbtp_grant *grants;  /* what sessions have, instead of what is said below */
    uint32_t grants_count;
    uint32_t quotas[PAIR_INITIATORS];
    uint32_t readable_by[PAIR_INITIATORS], reader_class[PAIR_INITIATORS]; /* of grants */
    uint32_t handles;                                                     /* per session */
    uint32_t depth;                                                       /* of initiators */
    uint32_t workers, initiators;
    bool domains;      /* each is a trust domain of its own */
    uint16_t features; /* that all may have and ask for */
    bool unchecked;    /* initiators send what good ones would not */
    bool unknown;      /* grants are for whoever comes */
    bool last_unknown; /* the last one is */
};

struct pair_initiator {
    struct kbtp_cpu cpu;
    struct kbtp_initiator *initiator;
    struct kbtp_initiator_config config;
    void *private_memory, *buffers;
    uint8_t *records; /* slots, when features has RECORD_COMPLETION */
    uint8_t *data;    /* PAIR_BUFFER octets, for remote reading and writing */
    struct rdma_region region;
    struct kbtp_outcome outcomes[PAIR_OUTCOMES]; /* not yet taken, the oldest first */
    uint32_t outcomes_count;
};

struct pair {
    struct mem mem; /* native */
    struct pair_config config;
    struct kbtp_target target;
    struct kbtp_target_memory memory;
    void *shared;
    struct kbtp_cpu worker_cpus[PAIR_WORKERS];
    struct kbtp_worker *workers[PAIR_WORKERS];
    void *worker_private[PAIR_WORKERS], *worker_buffers[PAIR_WORKERS];
    struct pair_initiator initiators[PAIR_INITIATORS];
    int error; /* the first that a poll returned */
};

/* 16 blocks of 64 octets, 16 handles a session, 4 credits, 2 workers, 3 initiators. */
struct pair_config pair_defaults(void);
/*
 * handles[0..workers) are the workers', then come those of the initiators. Returns 0 or the first
 * error, with everything that was done undone.
 */
int pair_open(struct pair *pair, const struct pair_config *config, struct rdma *const *handles);
/* Ends all; returns 0 or the first error. */
int pair_close(struct pair *pair);

/* Polls everybody once, workers first. Outcomes wait for pair_take(). */
void pair_poll(struct pair *pair);
void pair_poll_worker(struct pair *pair, uint32_t i);
/* Polls until nothing moves any more. */
void pair_settle(struct pair *pair);

/* Begins to connect initiator i. */
int pair_begin(struct pair *pair, uint32_t i);
/* The same, and polls until it is READY; 0, or kbtp_initiator_why(), or -ETIMEDOUT. */
int pair_connect(struct pair *pair, uint32_t i);
/* Both poll until it is DOWN; the second one returns kbtp_initiator_why(). */
int pair_disconnect(struct pair *pair, uint32_t i);
int pair_goodbye(struct pair *pair, uint32_t i, bool release);
bool pair_is_down(const struct pair *pair, uint32_t i);

int pair_submit(struct pair *pair, uint32_t i, const struct kbtp_operation *operation,
                uint64_t cookie);
/* The oldest outcome of initiator i that is there; or waits for it (error -ETIMEDOUT). */
bool pair_take(struct pair *pair, uint32_t i, struct kbtp_outcome *outcome);
struct kbtp_outcome pair_wait(struct pair *pair, uint32_t i);
/* Submits with cookie 77, and waits. */
struct kbtp_outcome pair_do(struct pair *pair, uint32_t i, const struct kbtp_operation *operation);

/* Operations on handle number n of initiator i's range. */
struct kbtp_operation pair_operation(const struct pair *pair, uint32_t i, uint8_t opcode,
                                     uint32_t n, uint32_t length, uint16_t flags);

#endif
