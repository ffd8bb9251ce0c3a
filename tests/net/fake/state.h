/* SPDX-License-Identifier: BSD-3-Clause */
/* Between the files of this rdma-core. */
#ifndef KBTP_TESTS_NET_FAKE_STATE_H
#define KBTP_TESTS_NET_FAKE_STATE_H

#include <infiniband/verbs.h>
#include <pthread.h>
#include <rdma/rdma_cma.h>

#include "tests/net/fake/fake.h"

#define FAKE_MRS 1024u
#define FAKE_MWS 64u
#define FAKE_SGES 32u
#define FAKE_INLINE 512u
#define FAKE_WRS 1024u
#define FAKE_CQES 8192u
#define FAKE_PRIVATE 256u
#define FAKE_WINDOW_KEY 0x800000u

/* ---- what is destroyed waits for its events ------------------------------------------------- */

struct fake_reported {
    uint32_t reported, acknowledged;
};

/* ---- memory ---------------------------------------------------------------------------------- */

struct fake_mr {
    struct ibv_mr mr;
    uint64_t base; /* Tagged Offset of the first octet */
    unsigned access;
    uint32_t windows; /* bound to it */
    bool valid;
};

struct fake_mw {
    struct ibv_mw mw; /* its rkey is the caller's */
    uint32_t rkey;
    struct fake_qp *qp; /* NULL: it is not bound */
    struct fake_mr *mr;
    uint64_t base, length;
    unsigned access;
};

/* ---- queues ------------------------------------------------------------------------------ */

struct fake_channel {
    struct ibv_comp_channel channel;
    struct fake_cq *first; /* with events that nobody took */
};

struct fake_cqe {
    struct ibv_wc wc;
    uint32_t qp_num;
    uint32_t number; /* of a work request in the send queue; 0: a receive */
};

struct fake_cq {
    struct ibv_cq cq;
    struct fake_cqe *entries;
    uint32_t size, first, count;
    struct fake_reported completion, async;
    struct fake_cq *next;  /* of those with events */
    struct fake_cq *other; /* of the device */
    bool queued, armed, solicited_only, overrun;
};

struct fake_send {
    struct ibv_send_wr wr; /* its SGEs are those below */
    struct ibv_sge sges[FAKE_SGES];
    char octets[FAKE_INLINE]; /* IBV_SEND_INLINE */
    uint64_t length;
    uint32_t number;    /* from 1 */
    uint32_t mw_rkey;   /* of the window when it was posted */
    struct fake_mw *mw; /* BIND */
};

struct fake_recv {
    uint64_t wr_id, length;
    struct ibv_sge sges[FAKE_SGES];
    int count;
};

struct fake_qp {
    struct ibv_qp qp;
    struct ibv_qp_cap cap;
    struct fake_qp *peer; /* NULL: none, or it is gone */
    struct fake_id *id;
    struct fake_send *sends;
    struct fake_recv *recvs;
    uint32_t sends_first, sends_count, recvs_first, recvs_count;
    uint32_t posted, retired; /* in the send queue; taken with completions */
    struct fake_reported async;
    struct fake_qp *other; /* of the device */
    bool running;
};

/* ---- connections ------------------------------------------------------------------------- */

enum fake_cm {
    FAKE_IDLE,
    FAKE_LISTENING,
    FAKE_RESOLVED,
    FAKE_ROUTED,
    FAKE_ASKING,    /* rdma_connect() */
    FAKE_REQUESTED, /* a child that was not accepted yet */
    FAKE_ACCEPTED,  /* it was, and the other end has not seen it yet */
    FAKE_CONNECTED,
    FAKE_OVER,
};

struct fake_cm_event {
    struct rdma_cm_event event;
    struct fake_id *counts; /* whose event it is */
    struct fake_cm_event *next;
    char private_data[FAKE_PRIVATE];
};

struct fake_events {
    struct rdma_event_channel channel;
    struct fake_cm_event *first;
};

struct fake_id {
    struct rdma_cm_id id;
    enum fake_cm state;
    struct fake_id *peer;     /* ASKING to CONNECTED */
    struct fake_id *listener; /* REQUESTED */
    struct fake_reported events;
    uint16_t port;     /* in the host's order */
    bool reuse;        /* RDMA_OPTION_ID_REUSEADDR */
    bool told_nothing; /* of ESTABLISHED, though it is */
    bool comm_est;     /* IBV_EVENT_COMM_EST was raised */
    bool child;
    struct fake_id *other; /* of the device */
};

/* ---- all --------------------------------------------------------------------------------- */

struct fake_async {
    struct ibv_async_event event;
    struct fake_async *next;
};

struct fake {
    struct fake_config config;
    struct ibv_device devices[2];
    struct ibv_context contexts[2];
    struct fake_mr *mrs[FAKE_MRS];
    struct fake_mw *mws[FAKE_MWS];
    struct fake_cq *cqs;
    struct fake_qp *qps;
    struct fake_id *ids;
    struct fake_async *async;
    uint32_t pds, channels, next_number;
    uint32_t calls, fails, writes;
    const char *failed;
    int failed_errno;
    uint32_t breaches;
    char breach[128];
    uint8_t keys;
    uint16_t port;
    bool dead;
};

extern struct fake fake;
extern pthread_mutex_t fake_lock;

/* device.c */
/* A call is made; true: it fails, and errno is set. */
bool fake_call(const char *name, int error);
void fake_breaks(const char *rule);
/* Waits until all events are acknowledged. */
void fake_wait(const struct fake_reported *events, const char *what);
void fake_acknowledged(struct fake_reported *events);
/* Descriptors are ready while there is something. */
void fake_ready(int fd, bool ready);
/* There is nothing: fails with EAGAIN, or ends the process where a real call would block. */
int fake_nothing(int fd, const char *call);
void fake_raise(enum ibv_event_type type, struct fake_qp *qp, struct fake_cq *cq);

/* memory.c */
struct fake_mr *fake_local(const struct ibv_sge *sge, unsigned access);
/* Octets that a peer asks for through this queue pair, or NULL. */
char *fake_remote(const struct fake_qp *through, uint32_t rkey, uint64_t to, uint64_t length,
                  unsigned access);
enum ibv_wc_status fake_bind(struct fake_qp *qp, const struct fake_send *send);
/* By the peer with SEND_INV, or here with LOCAL_INV. */
bool fake_invalidate(struct fake_qp *qp, uint32_t rkey, bool by_peer);
/* Was a window bound to it? */
bool fake_unbind_all(struct fake_qp *qp);
int fake_dealloc_mw(struct ibv_mw *it);
struct ibv_mw *fake_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type);

/* queues.c */
int fake_poll_cq(struct ibv_cq *it, int count, struct ibv_wc *wc);
int fake_req_notify_cq(struct ibv_cq *it, int solicited_only);
int fake_post_send(struct ibv_qp *it, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
int fake_post_recv(struct ibv_qp *it, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
void fake_complete(struct fake_qp *qp, struct ibv_wc wc, uint32_t number, bool solicited);
struct fake_qp *fake_make_qp(struct ibv_pd *pd, const struct ibv_qp_init_attr *init);
void fake_free_qp(struct fake_qp *qp);
/* To the error state, with all that was posted flushed. */
void fake_to_error(struct fake_qp *qp);

/* execute.c */
void fake_run(struct fake_qp *qp);

/* cm.c */
static inline struct fake_id *fake_of(struct rdma_cm_id *id)
{
    return (struct fake_id *)id;
}

/* -1 with errno. */
static inline int fake_refuse(int error)
{
    errno = error;
    return -1;
}

struct fake_id *fake_make_id(struct rdma_event_channel *channel, void *context);
/* An event about `it`, which `counts` has to acknowledge. InfiniBand carries as many octets of
 * private data as there is room for. */
struct fake_cm_event *fake_tell(struct fake_id *it, struct fake_id *counts,
                                enum rdma_cm_event_type type, int status,
                                const struct rdma_conn_param *param, uint8_t room);
void fake_established(struct fake_id *it);
bool fake_hears_late(const struct fake_id *it);
void fake_first_message(struct fake_qp *qp);
void fake_free_ids(void);

/* connect.c */
/* Both ends are in error, and told. */
void fake_lost(struct fake_qp *qp);

#endif
