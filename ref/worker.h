/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A worker of a target: the connections that one CPU serves.
 *
 * kbtp_worker_poll() takes what has completed, moves every request on as far as it can go, and
 * returns. Nothing in it blocks: a request that waits (for its slot, for data, for a loader to
 * leave, for the requests before it) is looked at again in the next poll.
 *
 * Requests of a connection begin in order and take effect in order: what they change, and their
 * completions. In between they overlap: a LOAD behind a STORE whose RDMA Read is under way posts
 * its RDMA Write at once, unless both are about the same handle. A FREE begins when all before it
 * are complete.
 */
#ifndef KBTP_REF_WORKER_H
#define KBTP_REF_WORKER_H

#include "ref/target.h"

struct kbtp_worker;

/* The caller's memory: `private_octets` that only this worker touches, aligned to 8, and
 * `buffer_octets` that the device reads and writes, aligned to 64. */
struct kbtp_worker_memory {
    size_t private_octets;
    size_t buffer_octets;
};
void kbtp_worker_memory(const struct kbtp_target *target, struct kbtp_worker_memory *memory);

/*
 * Makes a worker in private_memory, and listens at `address`. Returns 0 or what the device
 * returned; then nothing is left behind.
 */
int kbtp_worker_init(struct kbtp_worker **worker, const struct kbtp_target *target,
                     const struct kbtp_cpu *cpu, const char *address, void *private_memory,
                     void *buffers);

/*
 * Takes up to `budget` completions (at least 1), or one event when there are none, and moves
 * requests on. Returns how many it took: 0 when there was nothing new, though requests may wait, or
 * -EIO when the completion queue is broken: the worker will never be idle then, and what is left is
 * to close the device, and to start the target again. Until then it is to be polled all the same:
 * it still consumes the slots of its tickets, and writes its deferred frees, for which others wait.
 */
int kbtp_worker_poll(struct kbtp_worker *worker, const struct kbtp_cpu *cpu, uint32_t budget);

/* Ends every connection; poll until kbtp_worker_idle(). */
void kbtp_worker_stop(struct kbtp_worker *worker, const struct kbtp_cpu *cpu);
/* No connection is left and no freed block waits for its slot. */
bool kbtp_worker_idle(const struct kbtp_worker *worker);
/*
 * What goes on in a worker: for those who watch it, and those who would rather sleep than poll.
 * Each poll does some of releases and leaving. Nothing tells that deferred, tickets, locked, hellos
 * or drained, or other requests without a READ or a load of theirs, can go on: poll now and then.
 */
struct kbtp_worker_look {
    uint32_t deferred;    /* frees that wait for their slot */
    uint32_t connections; /* in use */
    uint32_t requests;    /* received and not yet answered; of these */
    uint32_t tickets;     /* wait for their slot to be filled */
    uint32_t reads;       /* have their RDMA Read posted */
    uint32_t locked;      /* wait for loads to end */
    uint32_t hellos;      /* wait for the old connection of their session */
    uint32_t loads;       /* RDMA Writes posted and not yet complete */
    uint32_t probes;      /* connections that are asked whether they live */
    uint32_t releases;    /* sessions whose retention is over, and which still have blocks */
    uint32_t leaving;     /* those of a GOODBYE with RELEASE */
    uint32_t drained;     /* connections that are over, but for what they had taken */
};
void kbtp_worker_look(const struct kbtp_worker *worker, struct kbtp_worker_look *look);
/* Does something wait that no completion, event or timer will tell of: deferred, releases, drained,
 * tickets, locked, hellos, leaving? After a poll; it does not look at connections without. Not said
 * are a timer that could not be set, a probe without room, and what other workers ask for. */
bool kbtp_worker_waits(const struct kbtp_worker *worker);
uint32_t kbtp_worker_deferred(const struct kbtp_worker *worker);
/* Usage of a session (blocks) that a connection of this worker serves now; false: none does. */
bool kbtp_worker_usage(const struct kbtp_worker *worker, uint32_t session, uint32_t *usage);

/* Gives back what init took from the device; the worker must be idle. */
int kbtp_worker_end(struct kbtp_worker *worker, const struct kbtp_cpu *cpu);

#endif
