/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The insides of the simulated RNIC: what lies in the arena (struct rnic_...), what is constant
 * after set-up and lies outside (struct sim_handle, struct end, ...), and what its files call of
 * each other. Only sim/rnic*.c, sim/device.c, sim/cpu_rdma.c and sim/timed/picker.c look in here.
 *
 * An `end` is one side of a connection (a queue pair), a `link` what lies between its two ends: a
 * wire per direction. Places in queues are counted from the oldest entry that is still there, so
 * that equal contents have equal octets wherever the queue has been.
 */
#ifndef KBTP_SIM_RNIC_STATE_H
#define KBTP_SIM_RNIC_STATE_H

#include <string.h>

#include "net/request.h"
#include "sim/rnic.h"

/* ---- in the arena ------------------------------------------------------------------------ */

/* Octets that are hashed have no padding. */
#pragma GCC diagnostic push
#pragma GCC diagnostic error "-Wpadded"

struct rnic_region {
    uint64_t addr;
    uint64_t length;
    uint64_t base_to;
    uint32_t access;
    uint8_t used;
    uint8_t valid; /* not invalidated */
    uint8_t key;   /* of the STag; steps when the place is used again */
    uint8_t shape; /* 0: linear; strided: log2 of an element's octets, and of the stride below */
};

struct rnic_window {
    uint64_t addr; /* this and what follows: while it is bound */
    uint64_t length;
    uint64_t base_to;
    uint32_t access;
    uint32_t region; /* place of the region */
    uint32_t end;    /* + 1, whose send queue bound it; 0: it is not bound */
    uint8_t used;
    uint8_t key; /* of the STag; another at every bind */
    uint16_t reserved;
};

/* Of an RNIC. Windows follow the regions. */
struct rnic_host {
    uint32_t atomic; /* end + 1 whose atomic is between its read and its write */
    uint32_t reserved;
    struct rnic_region regions[];
};

enum wqe_state { WQE_POSTED, WQE_WAITING, WQE_DONE, WQE_FAILED };

/* Of a send queue. Stays until the completion that retires it is polled. */
struct rnic_wqe {
    uint64_t wr_id;
    uint64_t remote_to;
    uint64_t operand[4];  /* add, mask | compare, compare_mask, swap, swap_mask | length, access */
    uint32_t remote_stag; /* BIND: the region's, and remote_to the offset in it */
    uint32_t imm_stag;    /* BIND: what the window's will be */
    uint32_t length;
    uint32_t sge_count;
    uint16_t op;
    uint16_t flags;
    uint8_t state;  /* enum wqe_state */
    uint8_t status; /* FAILED: enum rdma_status */
    uint16_t reserved;
    struct rdma_sge sges[]; /* with RDMA_INLINE: the octets */
};

/* Of a receive queue. Stays until its completion is polled. */
struct rnic_receive {
    uint64_t wr_id;
    uint32_t length;
    uint32_t sge_count;
    struct rdma_sge sges[];
};

enum end_state {
    END_FREE,
    END_CONNECTING,  /* rdma_connect() was called */
    END_REQUESTED,   /* REQUEST was raised */
    END_ACCEPTED,    /* rdma_accept() was called, CONNECTED is not yet raised (INFINIBAND) */
    END_ESTABLISHED, /* CONNECTED was raised */
    END_REJECTED,    /* REJECTED was raised */
};

/* What the CPU was told by the events that it took. */
enum end_known { KNOWN_NOTHING, KNOWN_REQUEST, KNOWN_CONNECTED, KNOWN_DISCONNECTED, KNOWN_OVER };

/* One side of a connection; send queue and receive queue follow. */
struct rnic_end {
    uint8_t state; /* enum end_state */
    uint8_t known; /* enum end_known */
    uint8_t side;  /* of its link: 0 connected, 1 listened */
    uint8_t noticed;
    uint8_t stopped; /* nothing more is sent, placed or read; what is posted is flushed */
    uint8_t halted;  /* a work request failed: no later one begins */
    uint8_t drained; /* DRAINED was raised */
    uint8_t heard;   /* the CPU took a receive that completed well */
    uint32_t link;   /* + 1 */
    uint32_t cq;
    uint32_t send_depth, recv_depth, max_sge, max_inline;
    uint32_t reads_out, reads_in;
    /* Send queue, from the oldest that is not retired: posted >= rung >= launched >= completed. */
    uint32_t posted;    /* by the CPU */
    uint32_t rung;      /* the doorbell was seen */
    uint32_t launched;  /* left for the wire, or done without */
    uint32_t completed; /* in order */
    uint32_t silent;    /* the last so many of them without a completion: the next retires them */
    uint32_t head;      /* of receives, in devices only; else 0 */
    /* Receive queue: receives >= receives_rung >= taken. */
    uint32_t receives, receives_rung, taken;
    int32_t error;
    uint32_t private_length;
    uint32_t reserved;
    uint8_t private_data[RDMA_MAX_PRIVATE]; /* to go, or of an event to take */
};

enum packet_type { PACKET_MESSAGE = 1, PACKET_REQUEST, PACKET_RESPONSE };

/* A message on the way, in the making, or a READ or atomic being answered. The payload follows. */
struct rnic_packet {
    uint64_t remote_to;
    uint64_t operand[4];
    uint32_t stag;
    uint32_t imm_stag;
    uint32_t length; /* of the payload; of a READ request, the octets wanted */
    uint16_t op;
    uint16_t flags;
    uint8_t type; /* enum packet_type */
    uint8_t done; /* a READ or atomic: the answer is complete; a WRITE: all of it was placed */
    uint16_t reserved;
    uint32_t moved_count;
    uint64_t moved[]; /* a bit for each piece of memory that was read or written */
};

/* What an end is working on: the message in the making, then its peer's READs and atomics. */
struct rnic_stage {
    uint32_t making; /* the first packet is a message in the making */
    uint32_t reads;
};

struct rnic_wire {
    uint32_t packets;
    uint32_t reserved;
};

enum link_state {
    LINK_FREE,
    LINK_REQUESTING, /* the request is on its way */
    LINK_REQUESTED,
    LINK_ACCEPTED, /* the answer is on its way */
    LINK_REJECTED, /* so it is */
    LINK_ESTABLISHED,
};

enum link_ending { LINK_LIVES, LINK_CUT, LINK_FAILED, LINK_CLOSED };

struct rnic_link_side {
    uint32_t handle; /* + 1; 0: there is no end here, or no more */
    uint32_t conn;
    uint8_t stopped; /* as its end */
    uint8_t refuses; /* an error here: nothing more is placed */
    uint8_t silent;  /* the host here is dead, and the other one does not know */
    uint8_t owes;    /* that: an answer to what was sent here */
};

struct rnic_link {
    uint8_t state;  /* enum link_state */
    uint8_t ending; /* enum link_ending */
    uint8_t closer; /* CLOSED: by which side */
    uint8_t may_be_lost;
    int32_t error;       /* of the events that tell */
    uint32_t handles[2]; /* + 1; whose ends they are or were */
    uint32_t owed;       /* CLOSED: so many messages of the closer arrive in any case */
    struct rnic_link_side sides[2];
};

/*
 * Of an end whose RNIC has chains. Its send queue then holds what was fetched: all its places are
 * rung for.
 */
struct rnic_chain {
    uint64_t memory;  /* of the places; 0: not managed */
    uint32_t depth;   /* places */
    uint32_t put;     /* this and what follows: numbers and counts, absolute */
    uint32_t enabled; /* put >= enabled, unless an ENABLE says too much; >= fetched >= completed */
    uint32_t fetched;
    uint32_t completed;
    uint32_t completions;
    uint32_t received; /* completions of receives, if `counts_receives` */
    uint8_t counts_receives;
    uint8_t kind;   /* enum rdma_chain_kind */
    uint8_t status; /* enum rdma_status: why it failed */
    uint8_t reserved;
};

/* What new links begin with. */
struct rnic_defaults {
    uint64_t may_be_lost;
};

/* A completion. */
struct rnic_cqe {
    uint64_t wr_id;
    uint32_t conn;
    uint32_t length;
    uint32_t imm;
    uint32_t retires; /* work requests of its queue leave when it is polled */
    uint32_t receive; /* of the receive queue */
    uint16_t flags;
    uint8_t op;
    uint8_t status;
};

struct rnic_cq {
    uint32_t count;
    uint32_t head; /* in devices only; else 0 */
    uint32_t depth;
    uint8_t overflowed;
    uint8_t armed; /* 1: for all, 2: for solicited ones */
    uint8_t used;
    uint8_t reserved;
    struct rnic_cqe entries[];
};

struct rnic_event {
    uint32_t kind; /* enum rdma_event_kind */
    uint32_t conn;
    int32_t error;
    uint32_t private_length; /* the octets are the end's */
};

/* Of a handle: timers (8 octets each: armed with so many ns) and events follow. */
struct rnic_port {
    uint64_t random;   /* rdma_random() calls so far */
    uint32_t connects; /* so far, if that makes a difference */
    uint32_t events;
    uint32_t dead;
    uint32_t listening;
};

#pragma GCC diagnostic pop

/* ---- constant after set-up --------------------------------------------------------------- */

struct end {
    struct sim_handle *handle;
    uint32_t conn;
    uint32_t index; /* of its RNIC's */
    struct rnic_end *state;
    struct sim_segment *segment;
    struct rnic_stage *stage; /* NULL in devices */
    struct sim_segment *stage_segment;
    struct rnic_chain *chain; /* NULL without chains */
    struct sim_segment *chain_segment;
    struct end *next_dirty;
    bool dirty;
};

struct cq {
    struct rnic_cq *state;
    struct sim_segment *segment;
};

struct link {
    struct rnic_link *state;
    struct sim_segment *segment;
    struct {
        struct rnic_wire *state;
        struct sim_segment *segment;
    } wires[2]; /* by the side that sends */
    uint32_t
        capacity; /* of each wire, in messages; answers that may pass by have room of their own */
};

struct sim_rnic {
    struct sim_world *w;
    uint32_t index;
    uint32_t agent; /* UINT32_MAX in devices */
    struct sim_rnic_config config;
    struct rnic_host *host;
    struct sim_segment *segment;
    struct end **ends;
    uint32_t ends_count;
};

/* A CPU's handle. */
struct sim_handle {
    struct rdma rdma; /* of a device; an agent's is agent->rdma */
    struct sim_world *w;
    struct sim_rnic *rnic;
    struct sim_agent *agent; /* NULL in devices */
    uint32_t index;
    struct sim_rnic_limits limits;
    struct rnic_port *port;
    struct sim_segment *port_segment;
    struct end *ends; /* by conn; behind those two for each loop */
    struct cq *cqs;
    uint32_t first_link; /* limits.links of them */
    uint32_t first_loop; /* limits.loops links more */
    uint32_t wqe_octets, receive_octets;
    uint32_t *route; /* agents */
    uint32_t route_count;
    uint32_t served; /* devices: when it listened, counted, to take turns */
    char *address;   /* devices: where it listens */
};

/* All of a world. */
struct sim_rnics {
    struct sim_rnic *rnics[SIM_MAX_AGENTS];
    uint32_t rnics_count;
    struct sim_handle **handles;
    uint32_t handles_count, handles_capacity;
    struct link *links;
    uint32_t links_count;
    struct rnic_defaults *defaults;
    struct sim_segment *defaults_segment;
    bool immediate;         /* a device: no steps, no wires, nothing is hashed or undone */
    uint32_t packet_words;  /* of `moved` */
    uint32_t packet_octets; /* header, moved, payload */
    uint32_t turn;          /* devices: which listener was served last */
    struct end *dirty;      /* ends that may have something to do */
};

#define SIM_RNIC_MAX_CQ 65536u
/* Events that can wait: CONNECTED and DISCONNECTED of each connection, and timers. */
#define SIM_RNIC_EVENTS(limits) (3 * (limits)->connections + (limits)->timers)

/* ---- small things ------------------------------------------------------------------------ */

/* Before a write to a segment of the RNICs. */
static inline void rnic_touch(struct sim_world *w, struct sim_segment *segment)
{
    if (w->rnics->immediate)
        return;
    sim_touch(&w->arena, segment);
    sim_footprint_note(w, segment->at, segment->size, true);
    w->effect = true;
}

/* A step depends on a segment. */
static inline void rnic_look(struct sim_world *w, const struct sim_segment *segment)
{
    sim_footprint_note(w, segment->at, segment->size, false);
}

static inline struct rnic_wqe *rnic_wqe(const struct end *end, uint32_t place)
{
    return (struct rnic_wqe *)((char *)(end->state + 1) + place * end->handle->wqe_octets);
}

static inline struct rnic_receive *rnic_receive(const struct end *end, uint32_t place)
{
    const struct sim_handle *h = end->handle;
    uint32_t at = end->state->head + place;
    if (at >= h->limits.recv_depth)
        at -= h->limits.recv_depth;
    return (struct rnic_receive *)((char *)(end->state + 1) +
                                   (size_t)h->limits.send_depth * h->wqe_octets +
                                   (size_t)at * h->receive_octets);
}

static inline struct link *rnic_link_of(const struct end *end)
{
    return &end->handle->w->rnics->links[end->state->link - 1];
}

static inline struct end *rnic_end_at(const struct sim_world *w, const struct rnic_link *link,
                                      uint32_t side)
{
    const struct rnic_link_side *s = &link->sides[side];
    if (s->handle == 0 || (side == 1 && link->state == LINK_REQUESTING))
        return NULL;
    return &w->rnics->handles[s->handle - 1]->ends[s->conn];
}

/* The other end, or NULL when there is none any more. */
static inline struct end *rnic_peer(const struct end *end)
{
    return rnic_end_at(end->handle->w, rnic_link_of(end)->state, 1u - end->state->side);
}

static inline struct rnic_packet *rnic_packet(const struct sim_world *w, void *queue,
                                              uint32_t place)
{
    return (struct rnic_packet *)((char *)queue + sizeof(uint64_t) +
                                  (size_t)place * w->rnics->packet_octets);
}

static inline char *rnic_payload(const struct sim_world *w, struct rnic_packet *packet)
{
    return (char *)&packet->moved[w->rnics->packet_words];
}

/* The message in the making, and READs and atomics of the peer. */
static inline struct rnic_packet *rnic_making(const struct end *end)
{
    return rnic_packet(end->handle->w, end->stage, 0);
}

static inline struct rnic_packet *rnic_read(const struct end *end, uint32_t place)
{
    return rnic_packet(end->handle->w, end->stage, place + 1);
}

static inline uint64_t *rnic_timers(const struct sim_handle *handle)
{
    return (uint64_t *)(handle->port + 1);
}

static inline struct rnic_event *rnic_events(const struct sim_handle *handle)
{
    return (struct rnic_event *)(rnic_timers(handle) + handle->limits.timers);
}

/* Windows have the places behind those of the regions. */
static inline struct rnic_window *rnic_window(const struct sim_rnic *rnic, uint32_t place)
{
    return (struct rnic_window *)&rnic->host->regions[rnic->config.regions] + place;
}

/* Done by the RNIC alone: no message leaves. */
static inline bool rnic_is_local(uint32_t op)
{
    return op == RDMA_NOOP || op == RDMA_BIND || op == RDMA_LOCAL_INV || op == RDMA_WAIT ||
           op == RDMA_ENABLE;
}

/* One of the two ends of a LOOP or CTRL queue. */
static inline bool rnic_is_loop(const struct end *end)
{
    return end->conn >= end->handle->limits.connections;
}

/* Do its work requests come from the memory of a chain queue? */
static inline bool rnic_is_managed(const struct end *end)
{
    return end->chain && end->chain->memory != 0;
}

static inline bool rnic_takes_receive(uint32_t op)
{
    return op == RDMA_SEND || op == RDMA_SEND_INV || op == RDMA_WRITE_IMM;
}

/* May be noticed by whoever steps next: look at it before the running step ends. */
static inline void rnic_stir(struct end *end)
{
    struct sim_rnics *rnics = end->handle->w->rnics;
    if (end->dirty)
        return;
    end->dirty = true;
    end->next_dirty = rnics->dirty;
    rnics->dirty = end;
}

/* ---- regions: rnic_regions.c ------------------------------------------------------------- */

int rnic_reg(struct sim_handle *h, void *addr, uint64_t length, uint32_t access,
             uint64_t wanted_base, struct rdma_region *region);
int rnic_dereg(struct sim_handle *h, struct rdma_region *region);
int rnic_reg_strided(struct sim_handle *h, void *addr, uint32_t count, uint32_t octets,
                     uint32_t stride, uint32_t access, struct rdma_region *region);
/* May the device use this local memory so? `access`: 0 or RDMA_LOCAL_WRITE. */
bool rnic_local_ok(const struct sim_rnic *rnic, const struct rdma_sge *sges, uint32_t count,
                   uint32_t access);
/*
 * Where `length` octets at a Tagged Offset are for whoever comes through this end's connection, or
 * NULL without the right to them.
 */
char *rnic_remote(const struct end *end, uint32_t stag, uint64_t to, uint64_t length,
                  uint32_t access);
/* By a work request of this end, or by its peer. False when it cannot be. */
bool rnic_invalidate(struct end *end, uint32_t stag, bool by_peer);
uint32_t rnic_stag(const struct sim_rnic *rnic, uint32_t place, uint8_t key);
uint32_t rnic_stag_place(uint32_t stag);
/* The valid region with this STag or lkey, or NULL. */
struct rnic_region *rnic_region_of(const struct sim_rnic *rnic, uint32_t key);

/* ---- windows: rnic_windows.c ------------------------------------------------------------- */

int rnic_window_alloc(struct sim_handle *h, struct rdma_window *window);
int rnic_window_free(struct sim_handle *h, const struct rdma_window *window);
/* Does it name a window of this RNIC, be it one that is bound or not? Constant. */
bool rnic_names_window(const struct sim_rnic *rnic, uint32_t stag);
/* The window with this STag if it is bound to this end's connection, or NULL. */
struct rnic_window *rnic_window_of(const struct end *end, uint32_t stag);
/* A BIND of this end is executed; false when it cannot be. */
bool rnic_bind(struct end *end, const struct rnic_wqe *wqe);
void rnic_unbind(struct rnic_window *window);
/* The connection is over, and its windows with it. */
void rnic_unbind_all(const struct end *end);
/* Is a window bound to the region at `place`? */
bool rnic_has_windows(const struct sim_rnic *rnic, uint32_t place);

/* ---- atomics: rnic_atomic.c -------------------------------------------------------------- */

/* What an atomic leaves where it found `octets`, and what the initiator gets; as in memory. */
uint64_t rnic_atomic_result(const struct sim_rnic *target, uint32_t op, const uint64_t operand[4],
                            uint64_t octets);
uint64_t rnic_atomic_reply(const struct sim_rnic *initiator, const struct sim_rnic *target,
                           uint64_t octets);

/* ---- queues and events: rnic_queues.c ---------------------------------------------------- */

/* Would these be taken? 0 or -errno. */
int rnic_check_sends(const struct sim_handle *h, uint32_t conn, const struct rdma_wr *wrs,
                     uint32_t count);
int rnic_check_receives(const struct sim_handle *h, uint32_t conn, const struct rdma_wr *wrs,
                        uint32_t count);
void rnic_write_wqe(struct rnic_wqe *wqe, const struct rdma_wr *wr);
/* Puts them into the queue, where the RNIC sees them after the doorbell. */
int rnic_post_sends(struct sim_handle *h, uint32_t conn, const struct rdma_wr *wrs, uint32_t count);
int rnic_post_receives(struct sim_handle *h, uint32_t conn, const struct rdma_wr *wrs,
                       uint32_t count);
/* The doorbell for `count` more of them. */
void rnic_ring(struct sim_handle *h, uint32_t conn, bool receives, uint32_t count);
int rnic_cq_create(struct sim_handle *h, uint32_t depth, uint32_t *cq);
int rnic_cq_destroy(struct sim_handle *h, uint32_t cq);
int rnic_cq_arm(struct sim_handle *h, uint32_t cq, bool solicited_only);
int rnic_cq_poll(struct sim_handle *h, uint32_t cq, struct rdma_wc *wc, uint32_t count);
/* A completion of the send queue, whose first `launched` places it may retire. */
void rnic_complete(struct end *end, uint64_t wr_id, uint32_t op, uint32_t status, uint32_t length);
/* The oldest receive that is not taken completes; the rest of `cqe` is filled in. */
void rnic_receive_done(struct end *end, const struct rnic_cqe *cqe);
void rnic_raise(struct sim_handle *h, uint32_t kind, uint32_t conn, int error,
                uint32_t private_length);
int rnic_event(struct sim_handle *h, struct rdma_event *event);
/* False: nothing that others do now raises an event of this handle. */
bool rnic_event_may_come(const struct sim_handle *h);
/* Does this memory belong to work requests that are posted and whose completion was not polled? */
bool rnic_is_in_flight(const struct sim_handle *h, const char *at, uint32_t octets, bool writes);
int rnic_timer(struct sim_handle *h, uint32_t id, uint64_t delay_ns);
bool rnic_expire(struct sim_handle *h, uint32_t id);
int rnic_random(struct sim_handle *h, void *octets, uint32_t length);
void rnic_caps(const struct sim_handle *h, struct rdma_caps *caps);

/* A work request of this end: 0 or -errno. */
int rnic_check_send(const struct sim_handle *h, const struct rnic_end *e, const struct rdma_wr *wr);
/* The oldest `count` of the send queue leave it. */
void rnic_retire_sends(struct end *end, uint32_t count);

/* ---- chains: rnic_chain.c, rnic_chain_wqe.c, rnic_chain_calls.c -------------------------- */

#define SIM_RNIC_WQE_OCTETS 64u /* in memory, without SGEs */

uint32_t rnic_chain_wqe_octets(const struct sim_handle *h);
uint32_t rnic_chain_octets(const struct sim_handle *h, uint32_t depth);
int rnic_chain_create(struct sim_handle *h, const struct rdma_chain_config *config,
                      struct rdma_chain_queue *queue);
int rnic_chain_destroy(struct sim_handle *h, struct rdma_chain_queue *queue);
int rnic_chain_put(struct sim_handle *h, const struct rdma_chain_queue *queue, uint32_t number,
                   const struct rdma_wr *wr);
int rnic_chain_ring(struct sim_handle *h, const struct rdma_chain_queue *queue, uint32_t limit);
int rnic_chain_state(struct sim_handle *h, const struct rdma_chain_queue *queue,
                     struct rdma_chain_state *state);
int rnic_chain_field(const struct sim_handle *h, const struct rdma_chain_queue *queue,
                     uint32_t number, uint32_t field, uint32_t sge, uint32_t lane, void **at);
int rnic_chain_encode(const struct sim_handle *h, uint32_t field, uint64_t value,
                      uint8_t octets[8]);
/* The end whose queue this is, or NULL; that of a work request's number. */
struct end *rnic_chain_end(const struct sim_handle *h, const struct rdma_chain_queue *queue);
char *rnic_chain_place(const struct end *end, uint32_t number);
/* 0 or -errno: may it be put there? */
int rnic_chain_check(const struct end *end, const struct rdma_wr *wr);
void rnic_chain_write(const struct end *end, uint32_t number, const struct rdma_wr *wr);
/* The octets of a place, as they are now; false when they are no work request of this number. */
bool rnic_chain_read(const struct end *end, uint32_t number, struct rnic_wqe *wqe);

bool rnic_can_snapshot(const struct end *end);
void rnic_do_snapshot(struct end *end);
bool rnic_wait_is_over(const struct end *end, const struct rnic_wqe *wait);
/* False: there is no such queue. */
bool rnic_wait_is_legal(const struct end *end, const struct rnic_wqe *wait);
bool rnic_enable(const struct end *end, const struct rnic_wqe *enable);
/* The oldest work request of a managed queue is done, or failed. */
void rnic_chain_completed(struct end *end, bool counts, uint8_t status);
/* A receive completed. */
void rnic_chain_received(const struct end *end);
/* The connection is over. */
void rnic_chain_forget(struct end *end);

/* ---- connections: rnic_connect.c --------------------------------------------------------- */

int rnic_connect(struct sim_handle *h, const char *address, const struct rdma_conn_config *config,
                 const struct rdma_wr *receives, uint32_t count, const void *private_data,
                 uint32_t private_length, uint32_t *conn);
int rnic_accept(struct sim_handle *h, uint32_t conn, const struct rdma_conn_config *config,
                const struct rdma_wr *receives, uint32_t count, const void *private_data,
                uint32_t private_length);
int rnic_reject(struct sim_handle *h, uint32_t conn, const void *private_data,
                uint32_t private_length);
int rnic_disconnect(struct sim_handle *h, uint32_t conn);
int rnic_destroy(struct sim_handle *h, uint32_t conn);
/* The handshake goes on at this end. */
bool rnic_can_connect(const struct end *end);
/* CONNECTED is raised. */
void rnic_established(struct end *end, uint32_t private_length);
void rnic_do_connect(struct end *end);

/* ---- the end of a connection: rnic_end.c ------------------------------------------------- */

bool rnic_can_notice(const struct end *end);
void rnic_do_notice(struct end *end);
bool rnic_can_flush(const struct end *end);
void rnic_do_flush(struct end *end);
/* A message or work request failed: the connection ends. */
void rnic_fail(struct end *end, int error);
/* Raises DRAINED when it is time. */
void rnic_look_drained(struct end *end);
/* The host of this end dies without a word. */
void rnic_falls_silent(struct end *end);
/* Something is sent to a peer that may be dead. */
void rnic_sent_to(const struct end *end, bool response);
/* Nobody answers what was sent: that has been tried often enough. */
bool rnic_can_give_up(const struct end *end);
void rnic_do_give_up(struct end *end);
/* The end is forgotten; the link too when it was the last one. */
void rnic_release(struct end *end);

/* ---- memory in pieces: rnic_memory.c ----------------------------------------------------- */

/* Memory that one message is gathered from or placed into. */
struct rnic_memory {
    const struct rdma_sge *sges;
    uint32_t count;
    uint32_t length; /* octets of the message */
};

/* Which pieces to move. */
enum rnic_which { RNIC_ALL, RNIC_PRIVATE, RNIC_ONE };

uint32_t rnic_pieces(const struct sim_world *w, const struct rnic_memory *memory);
/* Are all moved but, unless private_too, those in private memory? */
bool rnic_all_moved(const struct end *end, const struct rnic_packet *packet,
                    const struct rnic_memory *memory, bool private_too);
/*
 * Appends `step` for each piece that may be moved next; returns how many. `room`: at most so many.
 */
uint32_t rnic_offer(const struct end *end, const struct rnic_packet *packet,
                    const struct rnic_memory *memory, bool private_too, struct sim_step step,
                    struct sim_step *out, uint32_t room);
/* Memory to payload, and back. The packet's segment is touched already. False: nothing moved. */
bool rnic_gather(const struct end *end, struct rnic_packet *packet,
                 const struct rnic_memory *memory, enum rnic_which which, uint32_t piece,
                 enum sim_access_kind kind);
bool rnic_place(const struct end *end, struct rnic_packet *packet, const struct rnic_memory *memory,
                enum rnic_which which, uint32_t piece);
bool rnic_overlap(const struct rnic_memory *a, const struct rnic_memory *b);

/* ---- the requesting side: rnic_send.c ---------------------------------------------------- */

bool rnic_can_fetch(const struct end *end);
bool rnic_fetches_at_once(const struct end *end); /* is nobody concerned by it? */
void rnic_do_fetch(struct end *end);
struct rnic_memory rnic_source(const struct end *end); /* of the message in the making */
bool rnic_source_awaited(const struct end *end);       /* a READ under way changes it */
bool rnic_can_emit(const struct end *end);
void rnic_do_emit(struct end *end);
bool rnic_can_complete(const struct end *end);
bool rnic_completes_silently(const struct end *end);
bool rnic_completes_at_once(const struct end *end);
void rnic_do_complete(struct end *end);
/* The READ or atomic number `number` of those under way; UINT32_MAX if there are fewer. */
uint32_t rnic_awaited(const struct end *end, uint32_t number);
/* The oldest SEND or WRITE on the way was placed at the peer. */
void rnic_acknowledge(struct end *end);
/* It was refused there; and so was a READ or atomic, by number. */
void rnic_refuse(struct end *end, uint8_t status);
void rnic_fail_awaited(struct end *end, uint32_t number, uint8_t status);
/* A work request fails: no later one begins, and the connection ends. */
void rnic_fail_wqe(struct end *end, uint32_t place, uint8_t status);

/* ---- messages that arrive: rnic_receive.c ------------------------------------------------ */

/* Does the engine look at what arrives? */
bool rnic_receives(const struct end *end);
uint32_t rnic_inbound_count(const struct end *end);
struct rnic_packet *rnic_inbound(const struct end *end, uint32_t place);
/*
 * The place of what is delivered next, or UINT32_MAX: the first, or what passes by while that one
 * waits for a receive.
 */
uint32_t rnic_inbound_next(const struct end *end);
/* Where message `place` goes: enum rdma_status. */
uint8_t rnic_sink(const struct end *end, uint32_t place, struct rnic_memory *memory,
                  struct rdma_sge *tagged);
bool rnic_sink_gathered(const struct end *end, uint32_t place); /* by a request yet to be made */
bool rnic_may_place(const struct end *end, uint32_t place);
/* `private_too`: all must have been placed; else delivery itself places what is private. */
bool rnic_can_deliver(const struct end *end, bool private_too);
void rnic_do_deliver(struct end *end);
bool rnic_delivers_at_once(const struct end *end);
void rnic_do_place(struct end *end, uint32_t place, enum rnic_which which, uint32_t piece);

/* ---- READs and atomics of the peer: rnic_respond.c --------------------------------------- */

bool rnic_may_respond(const struct end *end, uint32_t place);
/*
 * Tells the peer that its READ or atomic fails: the one at `place`, or with `place` all that lie
 * here, the one that arrives.
 */
void rnic_refuse_read(struct end *end, uint32_t place, uint8_t status);
/* Of a READ: the memory, or false when it may not be read. */
bool rnic_read_source(const struct end *end, uint32_t place, struct rnic_memory *memory,
                      struct rdma_sge *tagged);
void rnic_do_read(struct end *end, uint32_t place, enum rnic_which which, uint32_t piece);
bool rnic_can_atomic(const struct end *end, uint32_t place);
void rnic_do_atomic(struct end *end, uint32_t place);
bool rnic_can_reply(const struct end *end);
void rnic_do_reply(struct end *end);

/* ---- steps: rnic_step.c ------------------------------------------------------------------ */

/* At the end of a step: takes at once what no other agent can notice. */
void rnic_settle(struct sim_world *w);
/* Can nobody tell a message that just left from one that has arrived? */
bool rnic_at_once(const struct end *end);
/* Is there room for one more from this end? Also when nobody will receive it. */
bool rnic_wire_room(const struct end *end, bool response);
/* Puts it there, or drops it. */
void rnic_send(struct end *end, struct rnic_packet *packet);
void rnic_observe(const struct end *end, struct sim_access access);
/* Checkers are told: a message was sent by this end, or delivered to it. */
void rnic_tell(const struct end *end, struct rnic_packet *packet, bool delivered, uint8_t status,
               uint64_t wr_id);

#endif
