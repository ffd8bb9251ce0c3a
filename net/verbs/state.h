/* SPDX-License-Identifier: BSD-3-Clause */
/* What the files of this provider share. */
#ifndef KBTP_NET_VERBS_STATE_H
#define KBTP_NET_VERBS_STATE_H

#define RDMA_WITHOUT_CALLS
#include "net/verbs/verbs.h"

#include <infiniband/verbs.h>
#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <stdatomic.h>

#define VERBS_SGES 16u /* of a work request, at most */
#define VERBS_BATCH 32u
#define VERBS_LOOPS 2u /* of a handle */

/* ---- queues ------------------------------------------------------------------------------ */

/* A work request that was posted and is not complete. */
struct verbs_posted {
    uint64_t wr_id;
    uint32_t op;
    bool signaled;
    bool early;     /* completed, with this status, before one that was posted earlier */
    uint8_t status; /* enum rdma_status */
};

/* One of the two queues of a connection. Work requests have numbers that wrap; number i lies in
 * place i modulo the size, a power of 2. */
struct verbs_queue {
    struct verbs_posted *posted;
    uint32_t size;
    uint32_t depth;
    uint32_t next;  /* number of the next to be posted */
    uint32_t done;  /* all below are complete, and told */
    uint32_t early; /* that completed and cannot be told yet */
};

/*
 * The device's wr_id says whose completion it is: 16 bits of the connection's number, 15 of how
 * often it was used (so that what comes late from a queue pair that is gone is not taken for one of
 * its successor), one of the queue, 32 of the work request.
 */
#define VERBS_LIVES 0x7fffu

/* ---- connections --------------------------------------------------------------------------- */

enum verbs_state {
    VERBS_UNUSED,
    VERBS_REQUESTED,  /* a peer's; to be accepted or rejected */
    VERBS_RESOLVING,  /* address and route; no queue pair yet */
    VERBS_CONNECTING, /* connect or accept has begun */
    VERBS_CONNECTED,
    VERBS_LOST, /* its queue pair is in error, and nobody has said why: DISCONNECTED may follow */
    VERBS_REJECTED,
    VERBS_ENDING,  /* DISCONNECTED is or will be told; nothing is posted any more */
    VERBS_DRAINED, /* DRAINED is or will be told */
};

/* What rdma_connect() and rdma_post_recv() were given, until the queue pair is there. */
struct verbs_request {
    struct rdma_wr *receives; /* recv_depth */
    struct rdma_sge *sges;    /* max_sge for each of them */
    uint32_t count;
    uint32_t private_length;
    uint8_t private_data[RDMA_MAX_PRIVATE];
};

struct verbs_conn {
    struct verbs_handle *handle;
    struct rdma_cm_id *id;
    struct ibv_qp *qp;
    struct rdma_conn_config config;
    struct verbs_queue send, recv;
    struct verbs_request request;
    uint64_t deadline_ns; /* RESOLVING, CONNECTING, LOST */
    uint32_t number;
    uint32_t life;
    enum verbs_state state;
    uint32_t reads_out, reads_in; /* that a peer's request allows */
    uint32_t event_private_length;
    uint8_t event_private[RDMA_MAX_PRIVATE];
    bool received;          /* a receive that completed well was taken */
    bool told_connected;    /* the event was taken */
    bool told_disconnected; /* the event was taken */
    bool told_end;          /* DRAINED or REJECTED was taken */
    atomic_bool failed;     /* the device said so, to whatever thread */
    int gone;               /* REQUESTED: why the peer is not there any more */
};

/* ---- handles ------------------------------------------------------------------------------- */

/* Not moved, for the device's events, which any thread takes, lead to it. */
struct verbs_cq {
    struct verbs_handle *handle;
    struct ibv_cq *cq;
    uint32_t users;
    bool early;         /* some that completed early can be told now */
    atomic_bool broken; /* what was on it is lost */
};

/* A chain queue of kind LOOP. The numbers of its work requests begin with 0, and wrap. */
struct verbs_loop {
    char *memory;      /* the caller's: places */
    struct ibv_qp *qp; /* NULL: it has failed */
    uint32_t cq;
    uint32_t depth; /* 0: it does not exist */
    uint32_t put, enabled, completed;
    uint32_t completions;
    enum rdma_status status;
};

struct verbs_timer {
    uint64_t due_ns;
    bool armed;
    bool expired; /* and not told yet */
};

struct verbs_handle {
    struct rdma rdma; /* first */
    struct rdma_verbs *device;
    struct rdma_event_channel *channel;
    struct ibv_comp_channel *completions;
    int epoll, timer_fd, wake_fd;
    struct verbs_conn *conns;
    struct verbs_cq **cqs; /* NULL: a number that is free */
    struct verbs_timer *timers;
    struct verbs_loop loops[VERBS_LOOPS];
    struct rdma_event *events; /* a ring; what a connection can tell fits */
    uint32_t events_size, events_first, events_count;
    uint32_t cq_count;
    uint32_t moving;  /* connections that are neither CONNECTED nor UNUSED */
    uint32_t expired; /* timers */
    uint32_t spins;   /* calls of rdma_event() since the last look */
    atomic_uint used; /* connections */
    atomic_bool listening;
    bool armed;                /* all completion queues are, and nothing was taken since */
    struct verbs_handle *next; /* of the device */
    uint64_t left_ns; /* since when a request is left to a handle with fewer connections; 0: none */
    struct rdma_verbs_counts counts;
    struct ibv_send_wr *wrs; /* for one batch: VERBS_BATCH */
    struct ibv_recv_wr *recvs;
    struct ibv_sge *sges; /* VERBS_BATCH * VERBS_SGES */
    char words[RDMA_VERBS_WORDS];
};

/* ---- the device ---------------------------------------------------------------------------- */

struct verbs_mr {
    struct ibv_mr *mr; /* NULL: a place that is free */
};

struct verbs_mw {
    struct ibv_mw *mw;       /* NULL: to be made anew by the next BIND; as the device has it */
    struct verbs_conn *conn; /* whose send queue bound it last */
    uint32_t stag;           /* after what is being posted */
    bool used;
};

struct verbs_listener {
    struct rdma_cm_id *id;
    uint32_t handles;
    char address[RDMA_VERBS_ADDRESS];
};

struct rdma_verbs {
    struct ibv_context *context; /* librdmacm's */
    struct ibv_pd *pd;
    struct ibv_device_attr attr;
    struct ibv_port_attr port;
    struct rdma_caps caps;
    struct rdma_verbs_config config;
    char name[64];
    char driver[32];
    unsigned invalidated_flag;            /* of a completion: imm is the STag that was */
    struct rdma_event_channel *listening; /* requests come here, for all handles */
    pthread_mutex_t lock;                 /* of all below */
    struct verbs_listener listener;       /* one address */
    struct verbs_mr *mrs;
    uint32_t mr_count;
    struct verbs_mw *mws;
    uint32_t mw_count;
    struct verbs_handle *handles;
    atomic_bool dead; /* the device failed or was removed */
};

static inline uint32_t verbs_smaller(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* NULL: there is no such number. */
static inline struct verbs_conn *verbs_conn_of(struct verbs_handle *h, uint32_t conn)
{
    return conn < h->device->config.connections ? &h->conns[conn] : NULL;
}

static inline struct verbs_handle *verbs_of(struct rdma *r)
{
    return (struct verbs_handle *)r;
}

/* ---- failure.c ----------------------------------------------------------------------------- */

/*
 * Puts "DEVICE: CALL: errno in words[; what to look at]" into words. Returns -error. `error` is
 * positive.
 */
int verbs_words(char words[RDMA_VERBS_WORDS], const char *device, const char *call, int error);
int verbs_failed(struct verbs_handle *h, const char *call, int error);
/* errno of a call that has just returned an error in the way of `result`: -1 with errno, or the
 * error itself, with either sign. */
int verbs_error(int result);

/* ---- device.c ------------------------------------------------------------------------------ */

/* Fills in attr, port, caps and driver. Returns 0 or -errno with words. */
int verbs_learn(struct rdma_verbs *device, char words[RDMA_VERBS_WORDS]);

/* The GID with which a queue pair is to be reached, as librdmacm would choose most likely. False:
 * there is none. */
bool verbs_best_gid(struct ibv_context *context, struct ibv_gid_entry *gid);

/* ---- memory.c ------------------------------------------------------------------------------ */

int verbs_reg(struct rdma *r, void *addr, uint64_t length, uint32_t access, uint64_t wanted_base,
              struct rdma_region *region);
int verbs_dereg(struct rdma *r, struct rdma_region *region);
int verbs_window_alloc(struct rdma *r, struct rdma_window *window);
int verbs_window_free(struct rdma *r, struct rdma_window *window);
/* Can this BIND be posted? 0 or -errno. */
int verbs_window_ready(struct verbs_conn *c, const struct rdma_wr *wr);
/* Fills in the device's work request, and what the window will be. */
void verbs_window_bind(struct verbs_conn *c, const struct rdma_wr *wr, struct ibv_send_wr *out);
/* Would this BIND come behind another one of its window that the device was not given yet? What a
 * window was is read when its BIND is posted. */
bool verbs_window_waits(struct verbs_conn *c, const struct rdma_wr *wr);
/* The device was given this BIND. */
void verbs_window_posted(struct verbs_conn *c, const struct rdma_wr *wr);
/* Takes the windows of a connection away from its peer. */
void verbs_windows_end(struct verbs_conn *c);

/* ---- queues.c ------------------------------------------------------------------------------ */

int verbs_cq_create(struct rdma *r, uint32_t depth, uint32_t *cq);
int verbs_cq_destroy(struct rdma *r, uint32_t cq);
int verbs_cq_poll(struct rdma *r, uint32_t cq, struct rdma_wc *wc, uint32_t count);
int verbs_cq_arm(struct rdma *r, uint32_t cq, bool solicited_only);
int verbs_post_send(struct rdma *r, uint32_t conn, const struct rdma_wr *wrs, uint32_t count);
int verbs_post_recv(struct rdma *r, uint32_t conn, const struct rdma_wr *wrs, uint32_t count);
/* Posts receives to a queue pair that was just made; 0 or -errno. */
int verbs_post_receives(struct verbs_conn *c, const struct rdma_wr *wrs, uint32_t count);
/* Keeps them until there is one; 0 or -errno. */
int verbs_keep_receives(struct verbs_conn *c, const struct rdma_wr *wrs, uint32_t count);

/* Could a queue with such limits execute this (of BIND only in general)? 0 or -errno. */
int verbs_acceptable(const struct rdma_caps *caps, const struct rdma_wr *wr, uint32_t max_sge,
                     uint32_t max_inline);
/* Without wr_id, and what verbs_window_bind() does. */
void verbs_translate(const struct rdma_wr *wr, struct ibv_send_wr *out, struct ibv_sge *sges);
enum rdma_status verbs_status_of(enum ibv_wc_status status);

/* ---- loop.c -------------------------------------------------------------------------------- */

extern const struct rdma_chain_ops verbs_loop_ops;
/* The handle is closed. */
void verbs_loops_end(struct verbs_handle *h);

/* ---- connect.c ----------------------------------------------------------------------------- */

int verbs_listen(struct rdma *r, const char *address);
int verbs_connect(struct rdma *r, const char *address, const struct rdma_conn_config *config,
                  const struct rdma_wr *receives, uint32_t count, const void *private_data,
                  uint32_t private_length, uint32_t *conn);
int verbs_accept(struct rdma *r, uint32_t conn, const struct rdma_conn_config *config,
                 const struct rdma_wr *receives, uint32_t count, const void *private_data,
                 uint32_t private_length);
int verbs_reject(struct rdma *r, uint32_t conn, const void *private_data, uint32_t private_length);
/* Reads the channels: connections begin, go on and end. */
void verbs_channel(struct verbs_handle *h);
void verbs_requests(struct verbs_handle *h);
bool verbs_parse_address(const char *address, struct sockaddr_storage *to);
void verbs_stop_listening(struct verbs_handle *h);

/* ---- end.c --------------------------------------------------------------------------------- */

/* A connection that has a queue pair or waits for one has come to its end; `error` is -errno or 0.
 * Does nothing when it has already. */
void verbs_end(struct verbs_conn *c, int error);
int verbs_disconnect(struct rdma *r, uint32_t conn);
int verbs_destroy(struct rdma *r, uint32_t conn);
/* Goes on with the end of connections of which nothing is left to be polled. */
void verbs_drain(struct verbs_handle *h);
/* The connections of a completion queue that is broken end. */
void verbs_end_broken(struct verbs_handle *h);
/* Completes what is left of the connections of this queue; nothing is in the device's queue. */
uint32_t verbs_flush(struct verbs_handle *h, uint32_t cq, struct rdma_wc *wc, uint32_t count);
/* What was posted to a connection is flushed. Drivers do so before librdmacm is told that the peer
 * has disconnected; whether it was that is known later. */
void verbs_lose(struct verbs_conn *c);
/* Gives everything of a connection back, at once. */
void verbs_conn_free(struct verbs_conn *c);
void verbs_set_state(struct verbs_conn *c, enum verbs_state state);

/* ---- events.c ------------------------------------------------------------------------------ */

void verbs_tell(struct verbs_conn *c, enum rdma_event_kind kind, int error);
int verbs_event(struct rdma *r, struct rdma_event *event);
int verbs_timer(struct rdma *r, uint32_t id, uint64_t delay_ns);
int verbs_random(struct rdma *r, void *octets, uint32_t length);
uint64_t verbs_now_ns(void);
/* Sets the clock for whatever is due first: timers and connections that are being made. */
void verbs_set_clock(struct verbs_handle *h);
/* How long it stays so matters? */
bool verbs_has_deadline(const struct verbs_conn *c);

#endif
