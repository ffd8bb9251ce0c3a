/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A target with its workers and some initiators in one process, over whatever provider the handles
 * belong to; memory comes from malloc, so that sanitizers see every octet out of place.
 */
#ifndef KBTP_TESTS_REF_PAIR_H
#define KBTP_TESTS_REF_PAIR_H

#include "ref/initiator.h"
#include "ref/worker.h"

#define PAIR_WORKERS 2u
#define PAIR_INITIATORS 3u
#define PAIR_BUFFER 65536u

struct pair_config {
    struct kbtp_target_config target; /* session_count is set by pair_open() */
    uint32_t quotas[PAIR_INITIATORS];
    uint32_t handles; /* per session */
    uint32_t depth;   /* of initiators */
    uint32_t workers, initiators;
    bool unchecked;
};

struct pair_initiator {
    struct kbtp_cpu cpu;
    struct kbtp_initiator *initiator;
    struct kbtp_initiator_config config;
    void *private_memory, *buffers;
    uint8_t *data; /* PAIR_BUFFER octets, for remote reading and writing */
    struct rdma_region region;
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

/* Polls everybody once, workers first. Outcomes of initiator i go to out[i], counts to counts[i]. */
void pair_poll(struct pair *pair);
/* Connects initiator i and polls until it is READY; 0, or kbtp_initiator_why(), or -ETIMEDOUT. */
int pair_connect(struct pair *pair, uint32_t i);
/* Submits and polls everybody until the outcome is there. */
struct kbtp_outcome pair_do(struct pair *pair, uint32_t i, const struct kbtp_operation *operation);
/* Polls until nothing moves for a while. */
void pair_settle(struct pair *pair);

/* Operations on handle number n of initiator i's range. */
struct kbtp_operation pair_operation(const struct pair *pair, uint32_t i, uint8_t opcode,
                                     uint32_t n, uint32_t length, uint16_t flags);

#endif
