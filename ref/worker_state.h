/* SPDX-License-Identifier: BSD-3-Clause */
/* What a worker keeps about its connections and their requests; included by ref/worker*.c and
 * ref/request*.c only. All of it is private to one CPU and has no padding. */
#ifndef KBTP_REF_WORKER_STATE_H
#define KBTP_REF_WORKER_STATE_H

#include "ref/counters.h"
#include "ref/sends.h"
#include "ref/worker.h"

/*
 * NEW      received; begins when those before it have, and no earlier one is about its handle
 * ASKING   ALLOC_STORE: the RNIC takes its ticket; those behind begin after it
 * TICKET   ALLOC_STORE: has a ticket, its slot is not filled yet
 * STAGING  STORE: waits for a block to read into
 * FETCH    waits for room to post its RDMA Read
 * READING  its RDMA Read is posted
 * READY    takes effect when it is the oldest
 * LOCKED   STORE: no LOAD begins any more; waits until the last one has left
 * RELEASE  GOODBYE: frees what is bound, entry after entry
 * DONE     its completion is posted
 */
enum kbtp_stage {
    KBTP_STAGE_UNUSED,
    KBTP_STAGE_NEW,
    KBTP_STAGE_ASKING,
    KBTP_STAGE_TICKET,
    KBTP_STAGE_STAGING,
    KBTP_STAGE_FETCH,
    KBTP_STAGE_READING,
    KBTP_STAGE_READY,
    KBTP_STAGE_LOCKED,
    KBTP_STAGE_RELEASE,
    KBTP_STAGE_DONE,
};

#define KBTP_NO_STAGING UINT32_MAX

/* A request; it lives in the place that has the number of its receive buffer. */
struct kbtp_request {
    uint64_t request_id;
    uint64_t handle;
    uint64_t tagged_offset;
    uint64_t block_offset; /* to be answered */
    struct kbtp_alloc alloc;
    uint32_t stag;
    uint32_t length;        /* of the Data Descriptor */
    uint32_t inline_offset; /* of inline data in the receive buffer */
    uint32_t entry;         /* of the table; RELEASE: the next one to look at */
    uint32_t staging;       /* which staging block, or KBTP_NO_STAGING */
    uint32_t data_length;   /* to be answered; at first the octets received */
    uint16_t flags;
    uint16_t generation; /* the expected one, then the one to be answered */
    uint16_t status;
    uint8_t opcode; /* 0: of another Version */
    uint8_t stage;  /* enum kbtp_stage */
};
_Static_assert(sizeof(struct kbtp_request) == 4 * 8 + 16 + 6 * 4 + 8, "padding");

enum kbtp_connection_state {
    KBTP_CONNECTION_UNUSED,
    KBTP_CONNECTION_OPEN,  /* accepted; HELLO has not been answered */
    KBTP_CONNECTION_READY, /* has a session */
    KBTP_CONNECTION_LAST,  /* a last message is on its way: what came behind takes no effect */
    KBTP_CONNECTION_ENDING,
    KBTP_CONNECTION_DRAINED, /* gives back what its requests had taken */
};

/*
 * The tickets that an initiator with a partition has taken by itself (draft: Allocation Quotas,
 * Direct Modes). Nobody tells the target of a ticket: it looks at Head from time to time (I-21).
 *
 *   OFF       the session has no DIRECT_ALLOC, or none any more to watch
 *   ARM       the timer could not be armed yet
 *   WAIT      for the timer
 *   LOOK      at one ticket after the other, up to `seen`: how long has each had its block?
 *   DRAIN     one has had it too long; what was sent in time is still to be handled (I-20)
 *   REVOKE    the invalidation of the Partition STag is to be posted
 *   REVOKING  it is posted
 *   RECLAIM   what was abandoned goes back to the ring, one ticket after the other
 *   ENDING    the connection is drained: all that are not bound go back
 */
enum kbtp_tickets_stage {
    KBTP_TICKETS_OFF,
    KBTP_TICKETS_ARM,
    KBTP_TICKETS_WAIT,
    KBTP_TICKETS_LOOK,
    KBTP_TICKETS_DRAIN,
    KBTP_TICKETS_REVOKE,
    KBTP_TICKETS_REVOKING,
    KBTP_TICKETS_RECLAIM,
    KBTP_TICKETS_ENDING,
};

struct kbtp_tickets {
    struct rdma_window window; /* over the partition */
    uint32_t stage;
    uint32_t granted; /* DIRECT_ALLOC; BIND is a request of this session */
    uint32_t bound;   /* the window is: RDMA Writes of the initiator reach the partition */
    uint32_t oldest;  /* no ticket before it is unbound */
    uint32_t beyond;  /* none from it on was consumed */
    uint32_t settled; /* Head less this are those taken in this session and not yet bound */
    uint32_t at;      /* LOOK, RECLAIM: the next ticket */
    uint32_t seen;    /* LOOK, RECLAIM, ENDING: up to here */
    uint32_t drain;   /* DRAIN: completions that may have come before it began */
    uint32_t expired; /* LOOK: one is */
    uint32_t asking;  /* the RNIC takes one for an ALLOC_STORE */
    uint32_t asked;   /* `asking`: no ticket before this one is that */
};

/* FetchAdds on Heads of partitions that the RNIC executes for this worker (ref/asks.c); one of a
 * connection at a time. */
struct kbtp_asks {
    struct rdma_chain_queue queue;
    char *memory;             /* of the queue */
    uint8_t *answers;         /* 8 octets for each of its places, in w->region */
    uint32_t *by;             /* for each of its places: the connection */
    uint32_t depth;           /* 0: there are none, CPUs take tickets as RNICs do */
    uint32_t asked, answered; /* numbers of work requests */
    uint32_t exists;          /* the queue */
    uint32_t broken;          /* it has failed; a new one is made when all is answered */
    uint32_t reserved;
};

/* A connection that is asked whether it lives (I-16). */
enum kbtp_probing {
    KBTP_PROBING_NOT,
    KBTP_PROBING_WAITS,  /* its time runs; the send queue has no room yet */
    KBTP_PROBING_POSTED, /* its time runs */
};

struct kbtp_connection {
    struct kbtp_sends sends;
    struct kbtp_request *requests; /* request_credits + 1 */
    uint16_t *order;               /* their numbers, the oldest first, from order_first on */
    uint32_t *loads;               /* blocks of posted RDMA Writes, the oldest first */
    uint8_t *receives;             /* buffers, one per request */
    uint32_t order_first, order_count;
    uint32_t loads_first, loads_count;
    uint32_t state;   /* enum kbtp_connection_state */
    uint32_t session; /* valid when has_session */
    uint32_t usage;   /* blocks bound and tickets taken (draft: Allocation Quotas) */
    uint8_t has_session;
    uint8_t released;  /* GOODBYE with RELEASE is done */
    uint16_t features; /* that HELLO_ACK has granted */
    uint64_t name;     /* kbtp_session_open() */
    uint32_t probe;    /* enum kbtp_probing */
    uint32_t reserved;
};
_Static_assert(sizeof(struct kbtp_connection) ==
                   sizeof(struct kbtp_sends) + 4 * 8 + 8 * 4 + 8 + 2 * 4,
               "padding");

/*
 * A session that this worker has ended last: how long it is kept (draft: "a retention time of its
 * choosing"; I-33).
 */
enum kbtp_retention_stage {
    KBTP_RETENTION_NONE,
    KBTP_RETENTION_BEGINS,  /* its timer, which has its number, could not be armed yet */
    KBTP_RETENTION_LASTS,   /* armed */
    KBTP_RETENTION_RELEASE, /* over: what is bound is freed, entry after entry */
};

struct kbtp_retention {
    uint64_t name; /* what kbtp_session_end() returned */
    uint32_t stage;
    uint32_t next; /* RELEASE: the handle of its range to look at */
};

struct kbtp_worker {
    const struct kbtp_target *target;
    struct kbtp_retention *retentions;   /* one per session; NULL: for ever */
    struct kbtp_connection *connections; /* by the device's number */
    uint64_t *busy;                      /* a bit for each: kbtp_connection_is_busy() */
    struct kbtp_tickets *tickets;        /* of each connection; NULL without partitions */
    uint8_t *looks;                      /* a partition's slot after the other's: looks at its
                                            ticket since it has a block */
    struct kbtp_counters *counters;      /* of this worker only; NULL: it does not count */
    struct kbtp_deferred deferred;
    struct kbtp_asks asks;
    uint8_t *staging; /* blocks */
    uint8_t *staging_used;
    struct rdma_region region; /* of all buffers */
    uint32_t cq;
    uint32_t receive_octets; /* of one buffer */
    uint32_t requests;       /* per connection */
    uint32_t send_depth;     /* per connection */
    uint32_t stopping;
    uint32_t reserved;
};

static inline struct kbtp_request *kbtp_nth_request(const struct kbtp_worker *w,
                                                    const struct kbtp_connection *c, uint32_t n)
{
    return &c->requests[c->order[(c->order_first + n) % w->requests]];
}

/* Of a connection whose session has a partition; else NULL. */
static inline struct kbtp_tickets *kbtp_tickets_of(const struct kbtp_worker *w,
                                                   const struct kbtp_connection *c)
{
    if (!w->tickets || !c->has_session || w->target->sessions.grants[c->session].partition == 0)
        return NULL;
    return &w->tickets[c - w->connections];
}

/* The ring that serves its allocations. */
static inline const struct kbtp_ring *kbtp_ring_of(const struct kbtp_worker *w,
                                                   const struct kbtp_connection *c)
{
    uint32_t partition = w->target->sessions.grants[c->session].partition;
    return partition == 0 ? &w->target->pool.ring : &w->target->pool.partitions[partition - 1].ring;
}

/* Requests of this connection are received and take effect. */
static inline bool kbtp_connection_serves(const struct kbtp_connection *c)
{
    return c->state == KBTP_CONNECTION_OPEN || c->state == KBTP_CONNECTION_READY;
}

/* Has a poll anything to do for it, though nothing may have come? Of the others, which are most
 * where there are many, it does not even look at the state. */
static inline bool kbtp_connection_is_busy(const struct kbtp_worker *w,
                                           const struct kbtp_connection *c)
{
    bool looks = w->tickets || w->target->config.probe_ns != 0;
    return c->order_count != 0 || c->state == KBTP_CONNECTION_DRAINED ||
           (looks && c->state != KBTP_CONNECTION_UNUSED);
}

static inline uint32_t kbtp_connection_number(const struct kbtp_worker *w,
                                              const struct kbtp_connection *c)
{
    return (uint32_t)(c - w->connections);
}

static inline void kbtp_count(const struct kbtp_worker *w, enum kbtp_counter counter)
{
    if (w->counters)
        w->counters->values[counter]++;
}

/* A request was answered; a GOODBYE, which has no completion, is done. */
static inline void kbtp_count_request(const struct kbtp_worker *w, uint8_t opcode, uint16_t status)
{
    if (w->counters)
        w->counters->requests[kbtp_counted_opcode(opcode)][status]++;
}

/* ---- ref/worker.c ------------------------------------------------------------------------ */

/* The connection ends now, for good: nothing of it takes effect any more. */
void kbtp_connection_end(struct kbtp_worker *w, const struct kbtp_cpu *cpu,
                         struct kbtp_connection *c);
/* The same, and neither side has wanted it. */
void kbtp_connection_lost(struct kbtp_worker *w, const struct kbtp_cpu *cpu,
                          struct kbtp_connection *c);
/* Looks at the deferred frees again. */
void kbtp_retry_deferred(struct kbtp_worker *w, const struct kbtp_cpu *cpu);

/* ---- ref/request.c ----------------------------------------------------------------------- */

/* A message of `octets` lies in receive buffer `number`. False: it has no header, end the
 * connection (I-30). */
bool kbtp_request_received(struct kbtp_worker *w, const struct kbtp_cpu *cpu,
                           struct kbtp_connection *c, uint32_t number, uint32_t octets);
/* Its RDMA Read has completed well. */
void kbtp_request_data_is_there(struct kbtp_request *request);
/* The ticket that the RNIC was asked for has come, in `counter`; or it has not, if not `well`. */
void kbtp_request_has_ticket(struct kbtp_worker *w, struct kbtp_connection *c, bool well,
                             uint64_t counter);
/* Moves the requests of a connection on as far as they can go. */
void kbtp_requests_advance(struct kbtp_worker *w, const struct kbtp_cpu *cpu,
                           struct kbtp_connection *c);
/* After the connection was drained: gives back what its requests had taken. False: not all yet. */
bool kbtp_requests_reclaim(struct kbtp_worker *w, const struct kbtp_cpu *cpu,
                           struct kbtp_connection *c);
/* The completion queue is broken, and no request can go on: gives back the tickets that wait. */
void kbtp_requests_leave_tickets(struct kbtp_worker *w, const struct kbtp_cpu *cpu,
                                 struct kbtp_connection *c);

/* ---- ref/request_session.c: HELLO, GOODBYE, and what is not allowed ---------------------- */

/* The oldest request, which is none of the four operations or comes before HELLO. */
void kbtp_session_request(struct kbtp_worker *w, const struct kbtp_cpu *cpu,
                          struct kbtp_connection *c, struct kbtp_request *request);
/* Frees the next handle of the session; true when none is left. */
bool kbtp_release_next(struct kbtp_worker *w, const struct kbtp_cpu *cpu, struct kbtp_connection *c,
                       struct kbtp_request *request);

/* ---- ref/half_open.c: is there anybody at the other end? --------------------------------- */

/* In each poll, of a connection that serves: somebody may ask. */
void kbtp_probe_advance(struct kbtp_worker *w, const struct kbtp_cpu *cpu,
                        struct kbtp_connection *c);
/* What was posted has completed well. */
void kbtp_probe_answered(struct kbtp_worker *w, const struct kbtp_cpu *cpu,
                         struct kbtp_connection *c);
/* Its timer, of number session count + connection, has expired. */
void kbtp_probe_expired(struct kbtp_worker *w, const struct kbtp_cpu *cpu,
                        struct kbtp_connection *c);
/* The connection ends: nothing is to be found out any more. */
void kbtp_probe_end(struct kbtp_worker *w, const struct kbtp_cpu *cpu, struct kbtp_connection *c);

/* ---- ref/retention.c: sessions without a connection -------------------------------------- */

/* Frees what handle `n` of a session's range is bound to; false: nothing. */
bool kbtp_release_handle(struct kbtp_worker *w, const struct kbtp_cpu *cpu, uint32_t session,
                         uint32_t n);
/* Session `session` is RETAINED from now on. */
void kbtp_retain(struct kbtp_worker *w, const struct kbtp_cpu *cpu, uint32_t session,
                 uint64_t name);
/* Its timer has expired. */
void kbtp_retention_expired(struct kbtp_worker *w, const struct kbtp_cpu *cpu, uint32_t session);
/* Moves all on; in each poll. */
void kbtp_retentions_advance(struct kbtp_worker *w, const struct kbtp_cpu *cpu);
/* How many are being released. */
uint32_t kbtp_retentions_releases(const struct kbtp_worker *w);
/* No timer expires any more: what is RETAINED stays so. */
void kbtp_retentions_stop(struct kbtp_worker *w, const struct kbtp_cpu *cpu);

/* ---- ref/tickets.c: direct allocation ---------------------------------------------------- */

/* HELLO: the session begins, with DIRECT_ALLOC if `granted` says so and it can be had. Describes it
 * in `ack` and binds the window. False when the connection had to be ended. */
bool kbtp_tickets_begin(struct kbtp_worker *w, const struct kbtp_cpu *cpu,
                        struct kbtp_connection *c, uint16_t *granted, struct kbtp_hello_ack *ack);
/* May this session have so many tickets and blocks? `usage` counts those that the target knows. */
bool kbtp_tickets_within_quota(const struct kbtp_worker *w, const struct kbtp_cpu *cpu,
                               const struct kbtp_connection *c, uint32_t usage);
/* The RNIC is asked for a ticket; until kbtp_tickets_asked() nobody knows which. */
void kbtp_tickets_ask(const struct kbtp_worker *w, const struct kbtp_cpu *cpu,
                      const struct kbtp_connection *c);
void kbtp_tickets_asked(const struct kbtp_worker *w, const struct kbtp_connection *c);
bool kbtp_tickets_asking(const struct kbtp_worker *w, const struct kbtp_connection *c);
/* A ticket is bound, or was taken for an ALLOC_STORE: it is counted there now. */
void kbtp_tickets_settle(const struct kbtp_worker *w, const struct kbtp_connection *c);
/* The slot of one is: for a BIND, for an ALLOC_STORE, or because it is abandoned. */
void kbtp_tickets_consumed(const struct kbtp_worker *w, const struct kbtp_connection *c,
                           uint32_t ticket);
/* A BIND, of whose handle nothing speaks against it: OK and the slot is consumed, or why not. */
enum kbtp_status kbtp_tickets_bind(struct kbtp_worker *w, const struct kbtp_cpu *cpu,
                                   struct kbtp_connection *c, const struct kbtp_request *request);
/* Its timer has expired. */
void kbtp_tickets_expired(struct kbtp_worker *w, uint32_t session);
/* The window's invalidation has completed: no RDMA Write reaches the partition any more. */
void kbtp_tickets_revoked(struct kbtp_worker *w, struct kbtp_connection *c);
/* Moves on; in each poll, which has taken so many completions, `emptied`: all that there were. */
void kbtp_tickets_advance(struct kbtp_worker *w, const struct kbtp_cpu *cpu,
                          struct kbtp_connection *c, uint32_t taken, bool emptied);
/* After the connection was drained and its requests given back: what was not bound is abandoned.
 * False: not all yet. */
bool kbtp_tickets_end(struct kbtp_worker *w, const struct kbtp_cpu *cpu, struct kbtp_connection *c);
/* Before its session is handed on. */
void kbtp_tickets_forget(struct kbtp_worker *w, const struct kbtp_cpu *cpu,
                         struct kbtp_connection *c);

/* ---- ref/asks.c -------------------------------------------------------------------------- */

/* Whether tickets of this connection are to be asked for. */
static inline bool kbtp_asks(const struct kbtp_worker *w, const struct kbtp_connection *c)
{
    return w->asks.depth != 0 && kbtp_tickets_of(w, c);
}

/* With the worker; the second fails as rdma_chain_destroy() does. */
int kbtp_asks_begin(struct kbtp_worker *w, const struct kbtp_cpu *cpu);
int kbtp_asks_end(struct kbtp_worker *w, const struct kbtp_cpu *cpu);
/* Asks for a ticket of this connection's partition. -EAGAIN: later; else the device failed. */
int kbtp_ask(struct kbtp_worker *w, const struct kbtp_cpu *cpu, struct kbtp_connection *c);
/* In each poll: hands out those that have come. */
void kbtp_asks_advance(struct kbtp_worker *w, const struct kbtp_cpu *cpu);

/* ---- ref/answer.c ------------------------------------------------------------------------ */

/* Reposts the receive buffer, then posts the completion of a request (after `write`, the RDMA Write
 * of a LOAD, unless NULL). There must be room. False when the connection had to be ended. */
bool kbtp_answer(struct kbtp_worker *w, const struct kbtp_cpu *cpu, struct kbtp_connection *c,
                 struct kbtp_request *request, struct rdma_wr *write);
/* The same for any message; `last`: the connection ends when it was sent. */
bool kbtp_answer_with(struct kbtp_worker *w, const struct kbtp_cpu *cpu, struct kbtp_connection *c,
                      struct kbtp_request *request, const struct kbtp_message *message, bool last,
                      struct rdma_wr *write);
/* Does the request ask for what cannot be done together, a record and an invalidation (I-28)? */
bool kbtp_asks_too_much(const struct kbtp_connection *c, const struct kbtp_request *request);
/* A receive into buffer `number`, as a work request; `sge` must live as long as it. */
struct rdma_wr kbtp_receive(const struct kbtp_worker *w, const struct kbtp_connection *c,
                            uint32_t number, struct rdma_sge *sge);
int kbtp_post_receive(const struct kbtp_worker *w, const struct kbtp_cpu *cpu,
                      const struct kbtp_connection *c, uint32_t number);

#endif
