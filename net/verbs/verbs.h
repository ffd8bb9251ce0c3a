/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The provider of net/rdma.h over rdma-core: libibverbs and librdmacm.
 *
 * A struct rdma_verbs is a device, opened once by a process; handles on it are opened with
 * rdma_verbs_handle(), one for each CPU (thread). Addresses are "IP:PORT" or "[IP]:PORT", numeric
 * (rdma_verbs_resolve() makes them of names, and may block).
 *
 * Beyond the interface:
 *   - Who has nothing to do waits in rdma_verbs_wait() for completions, events, timers and signals.
 *     Who never waits pays for no system call but the device's own: events are then looked for once
 *     in RDMA_VERBS_SPINS calls of rdma_event().
 *   - Whatever fails leaves a sentence: rdma_verbs_failure().
 *   - The process ignores SIGPIPE, or over siw a peer that is gone ends it: that driver sends to
 *     TCP within ibv_post_send().
 *   - All that is FLUSHED is so because the queue pair was destroyed, after which no device touches
 *     the memory; what had completed before is reported as it was, as far as it was taken by then.
 */
#ifndef KBTP_NET_VERBS_VERBS_H
#define KBTP_NET_VERBS_VERBS_H

#include "net/rdma.h"

#define RDMA_VERBS_WORDS 256u /* octets of a sentence, with its end */
#define RDMA_VERBS_ADDRESS 64u
#define RDMA_VERBS_SPINS 1024u

struct rdma_verbs;

struct rdma_verbs_config {
    const char *device; /* "rxe0"; NULL: the one that `address` is reached through */
    const char
        *address; /* a local one or a peer's, when no device is named; NULL: the only device */
    uint32_t connections; /* of one handle; up to 65535 */
    uint32_t timers;      /* of one handle */
    uint32_t connect_ms;  /* a peer that has not answered by then cannot be reached; 0: 5000 */
    uint32_t ack_timeout; /* of InfiniBand: 4.096 us * 2^n, 1 to 31; 0: 14 */
};

/*
 * Opens a device. Returns 0 or -errno, and then `words` says what failed and what to look at. The
 * strings are not needed afterwards.
 */
int rdma_verbs_open(const struct rdma_verbs_config *config, struct rdma_verbs **device,
                    char words[RDMA_VERBS_WORDS]);
/* After its handles are closed. */
void rdma_verbs_close(struct rdma_verbs *device);
const char *rdma_verbs_device_name(const struct rdma_verbs *device);

/* -ENOMEM and what the device says; `words` as above. */
int rdma_verbs_handle(struct rdma_verbs *device, struct rdma **handle,
                      char words[RDMA_VERBS_WORDS]);
/* Ends whatever is left of its connections and completion queues, at once. */
void rdma_verbs_handle_close(struct rdma *handle);

/*
 * Sleeps until something may have happened, a signal came, or timeout_ns have passed (negative: no
 * limit). The first call after something was taken only arms the completion queues and returns, so
 * that the caller looks once more. Returns 0 or -errno.
 */
int rdma_verbs_wait(struct rdma *handle, int64_t timeout_ns);
/* The same for several handles of one thread. */
#define RDMA_VERBS_WAITED 1024u
int rdma_verbs_wait_any(struct rdma *const *handles, uint32_t count, int64_t timeout_ns);
/* Ends the wait of the thread that has this handle, or its next one. For any thread. */
void rdma_verbs_wake(struct rdma *handle);

/* The port a handle listens at, when it was told to listen at port 0. 0: it does not listen. */
uint16_t rdma_verbs_port(const struct rdma *handle);

/* What failed last on this handle; "" when nothing has. */
const char *rdma_verbs_failure(const struct rdma *handle);

/* What was asked of the device since the handle was opened. */
struct rdma_verbs_counts {
    uint64_t registrations; /* regions and windows */
    uint64_t send_batches;  /* calls of ibv_post_send: at most one doorbell each */
    uint64_t recv_batches;
    uint64_t work_requests; /* in both */
    uint64_t looks;         /* for events, each a system call or more */
    uint64_t waits;         /* that slept */
};
void rdma_verbs_counts(const struct rdma *handle, struct rdma_verbs_counts *counts);

/* "HOST:PORT" or "[HOST]:PORT" to a numeric address. Blocks. Returns 0 or -errno with `words`. */
int rdma_verbs_resolve(const char *name, char address[RDMA_VERBS_ADDRESS],
                       char words[RDMA_VERBS_WORDS]);

/* ---- for those who list devices ------------------------------------------------------------ */

struct rdma_verbs_about {
    char name[64];
    char driver[32];    /* "siw", "rxe", "mlx5": what the kernel module calls itself */
    char transport[16]; /* "iWARP", "InfiniBand", "RoCE" */
    char state[16];     /* "active", "down", ... */
    char netdev[16];    /* network interface; "" for InfiniBand */
    char gid[64];       /* that connections use; "" when none can */
    char gid_why[96];   /* in words */
    struct rdma_caps caps;
    uint32_t max_regions;
    uint64_t max_region_octets;
};

/* Number `index` from 0, in the order of names. Returns 0, -ENOENT behind the last one, or -errno
 * with `words` when it is there and cannot be opened; the name is filled in then. */
int rdma_verbs_about(uint32_t index, struct rdma_verbs_about *about, char words[RDMA_VERBS_WORDS]);

#endif
