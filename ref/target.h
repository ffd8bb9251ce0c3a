/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The target: a block pool that initiators load from and store to (draft: Operations).
 *
 * A target is one shared part (struct kbtp_target: pool, ring, table, pins, sessions), which is
 * constant after set-up but for the words in shared memory, and workers (ref/worker.h), each with
 * its own CPU, connections and completion queue. All memory is the caller's; after set-up nothing
 * allocates.
 *
 *     struct kbtp_target_config config = {...};
 *     struct kbtp_target_memory memory;
 *     struct kbtp_grant grants[] = {...};             // session_count of them
 *     size_t octets = kbtp_target_octets(&config, grants);
 *     void *shared = aligned_alloc(64, (octets + 63) / 64 * 64);
 *     kbtp_target_layout(&config, grants, shared, &memory);
 *     memory.blocks = ...;                            // block_count * block_size octets
 *     kbtp_target_init(&target, &cpu, &config, &memory);
 *     ... kbtp_worker_init() for each worker, then kbtp_worker_poll() again and again
 */
#ifndef KBTP_REF_TARGET_H
#define KBTP_REF_TARGET_H

#include "ref/cpu.h"
#include "ref/partition.h"
#include "ref/pool.h"
#include "ref/session.h"

#define KBTP_MAX_CREDITS 4096u
#define KBTP_MAX_TICKET_LOOKS 250u

struct kbtp_target_config {
    uint32_t block_count;     /* F: 1 to 2^28 */
    uint32_t slot_count;      /* N; 0: the smallest legal one */
    uint32_t block_size;      /* octets: a multiple of 8 */
    uint32_t max_inline;      /* octets of inline data: up to block_size */
    uint64_t first_offset;    /* Block Offset of the first block, where the device lets us choose */
    uint64_t first_handle;    /* Table Base Handle */
    uint32_t request_credits; /* 1 to KBTP_MAX_CREDITS: requests outstanding per connection */
    uint32_t max_connections; /* per worker */
    uint32_t staging;         /* blocks per worker that STOREs by RDMA Read use (I-25): 1 or more */
    uint32_t session_count;
    uint64_t retention_ns;     /* a session without a connection is kept so long; 0: for ever. Each
                                  worker's device needs a timer per session */
    uint64_t probe_ns;         /* a connection is lost that does not answer for so long when another
                                  comes with its Initiator ID (I-16); 0: that one is rejected at
                                  once. Each worker's device needs a timer per connection, which
                                  have the numbers after those of sessions */
    uint32_t first_ticket;     /* 0 in the draft; tests begin elsewhere */
    uint16_t features;         /* that grants may have: KBTP_FEATURE_DIRECT_LOAD, _DIRECT_ALLOC, and
                                  KBTP_FEATURE_RECORD_COMPLETION where the device orders Writes */
    uint16_t first_generation; /* of every handle; 0: random ones, as a target does (I-11) */
    /* DIRECT_ALLOC: a ticket that is not bound within this time is abandoned, at most ticket_looks
     * + 1 looks after it was first seen with a block (I-09, I-21). 0: it waits for ever. Generous
     * is better: an abandoned ticket ends direct allocation for its session (I-17). Each worker's
     * device needs a timer per session, on top of those of retention. */
    uint32_t ticket_timeout_ms;
    uint32_t ticket_looks; /* into which it is divided, 1 to 250; 0: 4 */
    bool addr_le;
    bool unmasked; /* counters in the InfiniBand form; so they are, too, where the device cannot
                      mask its FetchAdd and the binding is not RDMAP (I-38) */
};

/* Where everything lies. Alignment: 64 octets for slots and entries, 8 for the rest (I-39). */
struct kbtp_target_memory {
    struct kbtp_slot *slots; /* kbtp_target_slots() of them */
    mem64 *head, *tail;
    struct kbtp_table_entry *entries; /* the sum of all handle counts */
    mem64 *pins;                      /* block_count */
    struct kbtp_session *sessions;    /* session_count */
    mem64 *sessions_lock;
    struct kbtp_grant *grants; /* session_count: filled in by the caller, private to it */
    /* kbtp_target_partitions() of them, zero but for ring.slots, head and tail; constant later */
    struct kbtp_partition *partitions;
    char *blocks; /* block_count * block_size octets, which hold nobody's data */
};

struct kbtp_target {
    struct kbtp_pool pool;
    struct kbtp_sessions sessions;
    struct kbtp_target_config config;
    struct rdma_region region; /* the pool's; without rights for peers */
    /* DIRECT_LOAD: the same blocks, and the table, for peers to read. */
    struct rdma_region pool_region, table_region;
    uint32_t features; /* of config.features those that the device can serve */
    /* The queue through which each worker has the RNIC take tickets of partitions: its depth and
     * its memory. 0: CPUs may do that themselves (RDMA_CAP_ATOMIC_CPU, I-37). */
    uint32_t ask_depth, ask_octets;
    uint32_t reserved;
    struct rdma_caps caps;
};

/* N of the ring of the shared blocks. */
uint32_t kbtp_target_slots(const struct kbtp_target_config *config);

/* Will this grant have a partition, if the device can serve it? And how many will. */
bool kbtp_target_has_partition(const struct kbtp_target_config *config,
                               const struct kbtp_grant *grant);
uint32_t kbtp_target_partitions(const struct kbtp_target_config *config,
                                const struct kbtp_grant *grants);

/*
 * Octets of one area for everything but grants and blocks, and how it is divided; memory->grants
 * are these afterwards.
 */
size_t kbtp_target_octets(const struct kbtp_target_config *config, const struct kbtp_grant *grants);
void kbtp_target_layout(const struct kbtp_target_config *config, struct kbtp_grant *grants,
                        void *area, struct kbtp_target_memory *memory);

/* Tickets that a worker has the RNIC take at a time, where CPUs may not (I-37). */
uint32_t kbtp_target_ask_depth(const struct kbtp_target_config *config,
                               const struct rdma_caps *caps);

/*
 * Fills everything and registers the pool through cpu->rdma. Nobody else may look yet. Returns 0,
 * -EINVAL when a number is outside its range or more than the device can (a block or the largest
 * request in one message, a receive per credit and one more), or a place is misaligned, or what
 * registering returned.
 */
int kbtp_target_init(struct kbtp_target *target, const struct kbtp_cpu *cpu,
                     const struct kbtp_target_config *config,
                     const struct kbtp_target_memory *memory);

/* After the last worker has ended. */
int kbtp_target_end(struct kbtp_target *target, const struct kbtp_cpu *cpu);

#endif
