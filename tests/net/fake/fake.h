/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An rdma-core for tests: within one process, the calls of libibverbs and librdmacm that net/verbs
 * makes, linked instead of those libraries. A device whose queue pairs are connected to each other,
 * and an IP network of a few addresses. Several threads may use it; one lock protects all.
 *
 * It is as real devices are where they are inconvenient: descriptors block unless they were told
 * not to (then it ends the process instead of hanging), what is destroyed waits for events that are
 * not acknowledged, completions outlive their queue pair, error completions hold garbage, a send
 * queue is full until completions are polled. Rules of rdma-core that callers break are counted.
 *
 * Addresses, all of them with any port: FAKE_HERE is the device's own. The others are peers that
 * do not answer in some way.
 */
#ifndef KBTP_TESTS_NET_FAKE_FAKE_H
#define KBTP_TESTS_NET_FAKE_FAKE_H

#include <stdbool.h>
#include <stdint.h>

struct rdma_cm_id;

#define FAKE_HERE "10.0.0.1"
#define FAKE_NO_ADDRESS "10.0.0.2"  /* no answer to rdma_resolve_addr() */
#define FAKE_BAD_ADDRESS "10.0.0.3" /* ADDR_ERROR, -ETIMEDOUT */
#define FAKE_BAD_ROUTE "10.0.0.4"   /* ROUTE_ERROR, -ETIMEDOUT */
#define FAKE_UNREACHABLE "10.0.0.5" /* UNREACHABLE, -ETIMEDOUT, for rdma_connect() */
#define FAKE_SILENT "10.0.0.6"      /* no answer to rdma_connect() */

/* Linux's drivers of software: what they can do, and their ways. */
enum fake_kind { FAKE_SIW, FAKE_RXE };

struct fake_config {
    enum fake_kind kind;
    uint32_t devices;     /* 0, 1 or 2, of which the first is used */
    bool lazy;            /* work is done when the sender polls, not when it posts */
    bool late_reads;      /* what is posted behind a READ completes before it, as on siw */
    uint32_t wrong_write; /* the n-th RDMA Write, from 1, brings a wrong last octet; 0: none does */
    bool late_rtu;        /* who accepts is not told ESTABLISHED before rdma_notify() */
};

/* Names of the devices: "fake0", "fake1". */
void fake_open(const struct fake_config *config);
/* Frees whatever is left; returns how much that was. */
uint32_t fake_close(void);
/* Regions, windows, completion queues, queue pairs, protection domains, channels, and ids. */
uint32_t fake_left(void);
/* Regions, windows, completion queues and queue pairs alone. */
uint32_t fake_used(void);

/* Call number n from now on fails, the first is 1; 0: none. Looking for what is not there does not
 * count as a call. */
void fake_fail(uint32_t n);
/* Calls since then. */
uint32_t fake_calls(void);
/* Which one failed, and with what errno; NULL: none. */
const char *fake_failed(int *error);

/* Rules that the caller broke, and the last of them in words. */
uint32_t fake_breaches(void);
const char *fake_breach(void);

/* The connection is lost at both ends. */
void fake_cut(struct rdma_cm_id *id);
/* The device fails: IBV_EVENT_DEVICE_FATAL, and nothing works any more. */
void fake_die(void);

#endif
