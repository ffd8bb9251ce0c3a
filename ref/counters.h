/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a target has done, and what goes on in it, in numbers (draft: Operational Considerations).
 *
 * Every number is described once, in the table that kbtp_metric() shows; whoever prints, compares
 * or draws them goes through kbtp_counters_next(). kbtp_counters_text() writes all in the text
 * format of Prometheus (version 0.0.4).
 *
 *     struct kbtp_counters memory[W] = {0};          // one for each worker, on lines of its own
 *     kbtp_worker_count_in(worker, &memory[i]);      // after kbtp_worker_init()
 *     ...
 *     struct kbtp_counters sum = {0};
 *     struct kbtp_gauges gauges;
 *     kbtp_target_gauges(mem, target, sessions, &gauges);
 *     kbtp_worker_counters(worker, &sum);            // for each worker
 *     kbtp_worker_gauges(worker, &gauges);           // for each worker
 *     struct kbtp_report report = {.counters = &sum, .gauges = &gauges};
 *     size_t octets = kbtp_counters_text(&report, text, sizeof text);
 *
 * A worker counts in memory that only it touches, with plain additions, and only when it was given
 * some. What it counts decides nothing: how it got into a state is no part of the state. Whatever
 * asks a worker is called by the thread that the worker belongs to; the sum may go from one thread
 * to the next.
 *
 * Sessions have numbers here; an Initiator ID is a secret and does not appear.
 */
#ifndef KBTP_REF_COUNTERS_H
#define KBTP_REF_COUNTERS_H

#include "ref/worker.h"

/* ---- counters ---------------------------------------------------------------------------- */

enum kbtp_counter {
    KBTP_COUNT_DROPPED,   /* requests */
    KBTP_COUNT_MALFORMED, /* messages */
    KBTP_COUNT_LOADED,    /* octets */
    KBTP_COUNT_STORED_INLINE,
    KBTP_COUNT_STORED_READ,
    KBTP_COUNT_ACCEPTED, /* connections */
    KBTP_COUNT_REJECTED,
    KBTP_COUNT_LOST,
    KBTP_COUNT_OPENED, /* sessions */
    KBTP_COUNT_RESTORED,
    KBTP_COUNT_REFUSED,
    KBTP_COUNT_RETAINED,
    KBTP_COUNT_RELEASED,
    KBTP_COUNT_EXPIRED,
    KBTP_COUNT_FREES_DEFERRED, /* filled in by kbtp_worker_counters() only */
    KBTP_COUNT_FREES_WRITTEN,
    KBTP_COUNT_FREES_PINNED,
    KBTP_COUNT_RECLAIMED_TICKETS,
    KBTP_COUNT_RECLAIMED_BLOCKS,
    KBTP_COUNT_RELEASED_BLOCKS,
    KBTP_COUNTERS
};

/* Rows of answered requests. */
enum kbtp_counted_opcode {
    KBTP_COUNTED_OTHER, /* another Version, an unknown Opcode, or one that targets send */
    KBTP_COUNTED_HELLO,
    KBTP_COUNTED_LOAD,
    KBTP_COUNTED_STORE,
    KBTP_COUNTED_ALLOC_STORE,
    KBTP_COUNTED_FREE,
    KBTP_COUNTED_BIND,
    KBTP_COUNTED_GOODBYE,
    KBTP_COUNTED_OPCODES
};
enum kbtp_counted_opcode kbtp_counted_opcode(uint8_t opcode);

#define KBTP_COUNTED_STATUSES (KBTP_STATUS_TICKET_ABANDONED + 1)

/* All zero at first. */
struct kbtp_counters {
    uint64_t values[KBTP_COUNTERS];
    uint64_t requests[KBTP_COUNTED_OPCODES][KBTP_COUNTED_STATUSES];
};

/*
 * From now on the worker adds what it does to `counters`, which is the caller's and lasts until the
 * worker ends or counts elsewhere. NULL, and before the first call: nothing is counted.
 */
void kbtp_worker_count_in(struct kbtp_worker *worker, struct kbtp_counters *counters);

/* Adds what the worker has counted to `sum`; nothing when it does not count. */
void kbtp_worker_counters(const struct kbtp_worker *worker, struct kbtp_counters *sum);

/* ---- gauges ------------------------------------------------------------------------------ */

enum kbtp_gauge {
    KBTP_GAUGE_RING_TICKETS, /* may be below zero */
    KBTP_GAUGE_OLDEST_TICKET,
    KBTP_GAUGE_DEFERRED,
    KBTP_GAUGE_PINS,
    KBTP_GAUGE_CONNECTIONS,
    KBTP_GAUGE_REQUESTS,
    KBTP_GAUGE_TICKETS,
    KBTP_GAUGE_SESSIONS, /* one for each state, from here on */
    KBTP_GAUGES = KBTP_GAUGE_SESSIONS + KBTP_SESSION_RETAINED + 1
};

struct kbtp_session_gauges {
    uint32_t usage; /* blocks, as the quota counts them */
    uint32_t quota;
};

struct kbtp_gauges {
    int64_t values[KBTP_GAUGES];
    struct kbtp_session_gauges *sessions; /* one each, or NULL: not wanted */
    uint32_t session_count;               /* 0 without `sessions` */
    uint32_t reserved;
};

/*
 * Sets `gauges` to what shared memory says: the ring and the sessions. `sessions` is memory for
 * session_count of them, or NULL. While workers run, each number is right by itself and they need
 * not go together.
 */
void kbtp_target_gauges(struct mem *m, const struct kbtp_target *target,
                        struct kbtp_session_gauges *sessions, struct kbtp_gauges *gauges);

/*
 * Adds what one worker knows: its deferred frees, pins, connections and requests, and the usage of
 * the sessions that it serves, without which that of an ACTIVE session is 0.
 */
void kbtp_worker_gauges(const struct kbtp_worker *worker, struct kbtp_gauges *gauges);

/* ---- the table --------------------------------------------------------------------------- */

enum kbtp_metric_type {
    KBTP_METRIC_COUNTER,
    KBTP_METRIC_GAUGE,
};

/* Where the numbers of a metric are; says also what its labels are. */
enum kbtp_metric_source {
    KBTP_METRIC_REQUESTS,      /* counters->requests: opcode, status */
    KBTP_METRIC_COUNTERS,      /* counters->values */
    KBTP_METRIC_GAUGES,        /* gauges->values */
    KBTP_METRIC_STATES,        /* the same: state of a session */
    KBTP_METRIC_SESSION_USAGE, /* gauges->sessions: number of a session */
    KBTP_METRIC_SESSION_QUOTA,
};

#define KBTP_METRIC_LABELS 2u

struct kbtp_metric {
    const char *name, *help;
    const char *labels[KBTP_METRIC_LABELS]; /* their names; NULL: fewer */
    const char *values[2];                  /* of the label, where the source does not say them */
    uint32_t type;                          /* enum kbtp_metric_type */
    uint32_t source;                        /* enum kbtp_metric_source */
    uint32_t first;                         /* of `count` numbers, one for each value */
    uint32_t count;                         /* of the label; of sessions: 0, as many as there are */
};

/* The n-th metric, or NULL when there are no more. */
const struct kbtp_metric *kbtp_metric(uint32_t n);

/* ---- going through all ------------------------------------------------------------------- */

struct kbtp_label {
    const char *name;  /* [a-zA-Z_][a-zA-Z0-9_]* */
    const char *value; /* UTF-8 */
};

/* What is to be shown. */
struct kbtp_report {
    const struct kbtp_counters *counters; /* NULL: none */
    const struct kbtp_gauges *gauges;     /* NULL: none */
    const struct kbtp_label *labels;      /* that every line of text begins with */
    uint32_t label_count;
    uint32_t reserved;
};

struct kbtp_counters_iterator {
    uint32_t metric; /* both zero to begin with */
    uint32_t index;
};

struct kbtp_sample {
    const struct kbtp_metric *metric;
    /* Of this metric only. The values may lie in `text`: they last as long as the sample. */
    struct kbtp_label labels[KBTP_METRIC_LABELS];
    uint32_t label_count;
    uint32_t index; /* among those of its metric */
    int64_t value;  /* of a counter: to be taken as uint64_t */
    char text[16];
};

/* The next number, in the order of the table; false: there are no more. */
bool kbtp_counters_next(const struct kbtp_report *report, struct kbtp_counters_iterator *iterator,
                        struct kbtp_sample *sample);

/*
 * Writes the report as text. Returns its length without the NUL at the end; when that is not below
 * `octets`, only the beginning was written (with a NUL, unless `octets` is 0), and it is to be
 * called again with more room. `text` may be NULL when `octets` is 0.
 */
size_t kbtp_counters_text(const struct kbtp_report *report, char *text, size_t octets);

#endif
