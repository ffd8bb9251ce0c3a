/* SPDX-License-Identifier: BSD-3-Clause */
/* The insides of the RNICs in simulated time. Only sim/timed/nic*.c look in here. */
#ifndef KBTP_SIM_TIMED_NIC_STATE_H
#define KBTP_SIM_TIMED_NIC_STATE_H

#include "net/request.h"
#include "sim/timed/nic.h"

#define PS 1000u     /* of a nanosecond */
#define NIC_LINE 64u /* octets, of a cache */

struct nic_phantom {
    struct sim_phantom phantom; /* first */
    struct nic_phantom *next;
};

struct nic_region {
    struct rdma_region region;
    const struct sim_phantom *phantom; /* NULL: real memory */
    bool used, valid;
    uint8_t key;
};

struct nic_window {
    const struct nic_conn *conn; /* whose send queue bound it; NULL: it is not bound */
    char *addr;
    uint64_t length, base_to;
    uint32_t access, region;
    uint8_t key;
    bool used;
};

struct nic {
    struct sim_nics *nics;
    uint32_t index;
    uint64_t send_free_ps, receive_free_ps, dma_read_free_ps, dma_write_free_ps, atomic_free_ps;
    struct sim_nic_use use;
    struct nic_region *regions;
    uint32_t regions_count; /* the largest that was used */
    struct nic_window *windows;
    uint32_t windows_count;
    struct nic_handle *handles; /* the first, nic_handle.next */
};

enum nic_wqe_state { NIC_WQE_POSTED, NIC_WQE_BEGUN, NIC_WQE_DONE };

/* Of a send queue, until it is done and all before it are. What all of them use comes first. */
struct nic_wqe {
    uint64_t wr_id;
    uint64_t remote_to; /* BIND: the offset in the region */
    uint16_t op, flags;
    uint8_t state, status;
    uint32_t sge_count, length;
    uint32_t remote_stag; /* BIND: the region's */
    uint32_t imm_stag;    /* BIND: the window's */
    struct rdma_sge sges[SIM_NIC_SGES];
    uint64_t operand[4];  /* add, mask | compare, compare_mask, swap, swap_mask | length, access */
    char inline_octets[]; /* max_inline of the connection */
};

struct nic_receive {
    uint64_t wr_id;
    uint32_t sge_count, length;
    struct rdma_sge sges[]; /* max_sge of the connection */
};

enum nic_conn_state {
    NIC_FREE,
    NIC_CONNECTING, /* the request is on its way, or its answer */
    NIC_REQUESTED,  /* at the listener: to be accepted or rejected */
    NIC_REJECTED,
    NIC_CONNECTED,
    NIC_ENDED
};

/*
 * One end of a connection. Send queue: numbers from 0, modulo 2^32, in places modulo sends_room, a
 * power of two: as many as were needed at once so far. Queues are as deep as the worst case wants;
 * what is never used would only be memory between what is.
 */
struct nic_conn {
    /* A line of what sending needs, one of what receiving needs, then the rest. */
    struct nic *nic;       /* of the handle */
    struct nic_conn *peer; /* the same connection's, while its epoch is peer_epoch */
    uint32_t epoch, peer_epoch;
    enum nic_conn_state state;
    uint32_t reads; /* READs and atomics begun and not done */
    char *sends;    /* struct nic_wqe */
    uint32_t sends_room, wqe_octets;
    uint32_t posted, rung, begun, done;

    struct nic_handle *handle;
    struct sim_wire_flow *flow; /* what this end sends; it has a way as soon as there is a peer */
    uint64_t fetched_ps;        /* the work requests behind the last doorbell are there */
    uint64_t leaves_ps;         /* the last message that was made is; messages keep their order */
    uint64_t delivered_ps;      /* the last message to this end; they keep their order */
    char *receives;             /* struct nic_receive, recv_depth of them */
    uint32_t receive_first, receive_count;
    uint32_t index;
    bool refuses;  /* a message could not be delivered: nothing behind it is */
    bool may_send; /* CONNECTED or a receive was taken, and DISCONNECTED was not */
    bool drained_told;

    struct rdma_conn_config config;
    uint32_t flushed; /* FLUSHED completions that are not polled yet */
};

struct nic_cqe {
    struct rdma_wc wc;
    const void *at; /* of a receive: where its octets begin; NULL: there are none */
};

struct nic_cq {
    struct nic_cqe *entries; /* places modulo `room`, as of a send queue */
    uint32_t first, count, room, depth;
    uint32_t connections; /* that use it */
    bool used, overflowed;
};

struct nic_timer {
    uint64_t generation; /* of the one that is armed; others that come were replaced */
    bool armed;
};

struct nic_handle {
    struct rdma rdma; /* first */
    struct nic *nic;
    struct nic_handle *next; /* of its RNIC */
    uint32_t number;         /* of all */
    struct sim_nic_limits limits;
    struct sim_nic_cpu cpu;
    uint64_t spent_ps;
    char *address; /* it listens at, or NULL */
    struct nic_handle *next_listener;
    uint64_t requests; /* for connections, that came there */
    struct nic_conn *conns;
    struct nic_cq *cqs;
    struct nic_timer *timers;
    struct rdma_event *events;
    uint32_t events_first, events_count, events_room;
};

enum nic_message_kind { NIC_REQUEST, NIC_ANSWER };

/* On its way, or about to be. What is looked at wherever it comes is in its first line. */
struct nic_message {
    struct sim_wire_message wire; /* first; wire.next of a free one: the next free one */
    struct nic_conn *from;
    uint32_t epoch;    /* of `from` */
    uint32_t wqe;      /* number: of `from` (REQUEST) or its peer (ANSWER) */
    uint32_t length;   /* octets that are moved */
    uint8_t kind;      /* enum nic_message_kind */
    uint8_t op;        /* enum rdma_op */
    uint8_t status;    /* of an ANSWER: not OK: it brings nothing else */
    bool is_phantom;   /* a tag is moved in place of octets */
    uint64_t whole_ps; /* not before its last octet leaves */
    uint64_t received_ps;

    struct nic_message *next; /* of all */
    uint64_t begun_ps;        /* on the wire */
    uint32_t room;            /* octets */
    char octets[];
};
_Static_assert(offsetof(struct nic_message, next) == NIC_LINE, "a line");

struct nic_flow {
    struct sim_wire_flow flow; /* first */
    struct nic_flow *next;     /* of all */
    struct nic_flow *next_free;
};

#define NIC_CLASSES 32u /* of message sizes: powers of two */

struct sim_nics {
    struct sim_wire *wire;
    struct sim_clock *clock;
    const struct sim_costs *costs;
    struct sim_nic_config config;
    struct sim_nic_watch watch;
    struct nic_handle *listeners;
    struct nic_handshake *handshakes, *free_handshakes;
    struct nic_flow *flows, *free_flows;
    struct nic_phantom *phantoms; /* a list */
    struct nic_message *messages, *free_messages[NIC_CLASSES];
    uint64_t random, digest;
    uint64_t under_way, most_under_way;
    uint64_t timers_armed; /* and those that were replaced: events of the clock */
    uint32_t handles_count;
    size_t memory_octets;
    struct nic nics[];
};

static inline struct nic_handle *nic_handle_of(struct rdma *r)
{
    return (struct nic_handle *)r;
}

static inline struct sim_nics *nic_nics(const struct nic_handle *h)
{
    return h->nic->nics;
}

static inline uint64_t nic_ps(double ns)
{
    return (uint64_t)(ns * PS + 0.5);
}

/* The whole nanosecond in which it has happened. */
static inline uint64_t nic_ns(uint64_t ps)
{
    return (ps + PS - 1) / PS;
}

static inline uint64_t nic_now_ps(const struct sim_nics *nics)
{
    return nics->clock->now_ns * PS;
}

static inline struct nic_wqe *nic_wqe(const struct nic_conn *c, uint32_t number)
{
    size_t place = number & (c->sends_room - 1);
    return (struct nic_wqe *)(void *)(c->sends + place * c->wqe_octets);
}

static inline size_t nic_receive_octets(const struct nic_conn *c)
{
    return sizeof(struct nic_receive) + c->config.max_sge * sizeof(struct rdma_sge);
}

/* The n-th of those that are posted, or the place of the next one. */
static inline struct nic_receive *nic_receive(const struct nic_conn *c, uint32_t n)
{
    uint32_t place = c->receive_first + n;
    place -= place >= c->config.recv_depth ? c->config.recv_depth : 0;
    return (struct nic_receive *)(void *)(c->receives + place * nic_receive_octets(c));
}

static inline void nic_receive_taken(struct nic_conn *c)
{
    c->receive_first = c->receive_first + 1 == c->config.recv_depth ? 0 : c->receive_first + 1;
    c->receive_count--;
}

static inline uint64_t nic_later(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* ---- nic.c */

void *nic_allocate(struct sim_nics *nics, size_t count, size_t octets);
/* The same on lines of its own. */
void *nic_allocate_lines(struct sim_nics *nics, size_t count, size_t octets);
void nic_release(struct sim_nics *nics, void *memory, size_t count, size_t octets);
/*
 * A ring in which number n is at place n modulo *room, a power of two or 0, gets room for `need`
 * numbers from `first` on, of which there are `count`. False: no memory, and the run is over.
 */
bool nic_ring_grow(struct sim_nics *nics, void **ring, uint32_t *room, uint32_t need,
                   uint32_t first, uint32_t count, size_t octets);
void nic_wake(struct nic_handle *h);
/* Raises an event; it may be lost without memory, and then the run stops. */
void nic_tell(struct nic_handle *h, uint32_t kind, uint32_t conn, int error,
              const void *private_data, uint32_t private_length);
void nic_complete(struct nic_conn *c, const struct rdma_wc *wc, const void *at);
/* DRAINED, if it is time. */
void nic_look_drained(struct nic_conn *c);
void nic_note(struct sim_nics *nics, uint64_t a, uint64_t b, uint64_t c);

/* ---- nic_memory.c */

extern const struct rdma_ops nic_ops;
int nic_reg(struct rdma *r, void *addr, uint64_t length, uint32_t access, uint64_t wanted,
            struct rdma_region *region);
int nic_dereg(struct rdma *r, struct rdma_region *region);
int nic_window_alloc(struct rdma *r, struct rdma_window *window);
int nic_window_free(struct rdma *r, struct rdma_window *window);
bool nic_bind(struct nic_conn *c, const struct nic_wqe *wqe);
bool nic_invalidate(const struct nic_conn *c, uint32_t stag, bool by_peer);
void nic_windows_end(const struct nic_conn *c);
bool nic_local_ok(const struct nic *nic, const struct rdma_sge *sge, uint32_t access);
/* What comes through this end of a connection finds there, or NULL. */
char *nic_remote(const struct nic_conn *c, uint32_t stag, uint64_t to, uint64_t length,
                 uint32_t access, const struct sim_phantom **phantom);
/* From memory into a message, and back: false: phantom memory does not go together with this. */
bool nic_gather(const struct nic_conn *c, struct nic_message *m, const struct rdma_sge *sges,
                uint32_t count);
bool nic_scatter(const struct nic_conn *c, const struct nic_message *m, const struct rdma_sge *sges,
                 uint32_t count);
bool nic_take(struct nic_message *m, const char *at, const struct sim_phantom *phantom);
bool nic_put(const struct nic_message *m, char *at, const struct sim_phantom *phantom);
void nic_memory_free(struct nic *nic);
/* Are all of these `length` octets in phantom memory? A message with them then needs no room. */
bool nic_is_phantom(const struct nic_conn *c, const struct rdma_sge *sges, uint32_t count,
                    uint32_t length);

/* ---- nic_phantom.c */

const struct sim_phantom *nic_phantom_with(const struct sim_nics *nics, const void *addr);
void nic_phantoms_free(struct sim_nics *nics);

/* ---- nic_connect.c */

int nic_listen(struct rdma *r, const char *address);
int nic_connect(struct rdma *r, const char *address, const struct rdma_conn_config *config,
                const struct rdma_wr *receives, uint32_t count, const void *private_data,
                uint32_t private_length, uint32_t *conn);
int nic_accept(struct rdma *r, uint32_t conn, const struct rdma_conn_config *config,
               const struct rdma_wr *receives, uint32_t count, const void *private_data,
               uint32_t private_length);
int nic_reject(struct rdma *r, uint32_t conn, const void *private_data, uint32_t private_length);
int nic_disconnect(struct rdma *r, uint32_t conn);
int nic_destroy(struct rdma *r, uint32_t conn);
int nic_post_recv(struct rdma *r, uint32_t conn, const struct rdma_wr *wrs, uint32_t count);
/* This end ends now, the other one when it hears of it. */
void nic_end(struct nic_conn *c, int error);
void nic_flush(struct nic_conn *c, uint64_t wr_id);
void nic_conn_free(struct nic_conn *c);
void nic_handshakes_free(struct sim_nics *nics);
void nic_flows_free(struct sim_nics *nics);

/* ---- nic_send.c */

int nic_post_send(struct rdma *r, uint32_t conn, const struct rdma_wr *wrs, uint32_t count);
/* Begins work requests that were rung for and need not wait. */
void nic_go_on(struct nic_conn *c);
/* Work request `number` is done, or has failed. */
void nic_done(struct nic_conn *c, uint32_t number, uint8_t status);
/* Of `length` octets, with room for so many. NULL: no memory, and the run is over. */
struct nic_message *nic_message_new(struct sim_nics *nics, uint32_t length, uint32_t room);
void nic_message_free(struct sim_nics *nics, struct nic_message *m);
/* When a message of so many octets of memory leaves, if it can be begun at `ready_ps`. */
uint64_t nic_leaves_ps(struct nic_conn *c, struct nic_message *m, uint32_t dma_octets,
                       uint64_t ready_ps);
/* It leaves now. */
void nic_send(struct nic_message *m);

/* ---- nic_receive.c */

void nic_arrives(struct sim_wire_flow *flow, struct sim_wire_message *message, uint64_t at_ns);

#endif
