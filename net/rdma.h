/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The RDMA interface: what the protocol asks of an RDMA NIC, whoever provides it. Providers are
 * libibverbs with librdmacm, RDMAP over DDP over MPA over TCP in user space, and the simulated
 * RNIC. Each call below names what it stands for in the first two.
 *
 * A `struct rdma` is one CPU's handle on a device; its provider opens and closes it. Regions and
 * windows belong to the device: the keys work through every handle on it. Completion queues,
 * connections, events and timers belong to the handle they were made with, and only one CPU at a
 * time uses a handle.
 *
 * Rules:
 *   - Nothing blocks. There is no clock. A negative return is -errno, and then nothing was done.
 *   - Nothing is assumed: rdma_caps() says what a device can do. A call or a work request that
 *     needs a bit that is not set returns -ENOTSUP.
 *   - There are no protection domains: an ordinary region's STag works on every connection of the
 *     device. Only a window (RDMA_CAP_WINDOW) is confined to one connection.
 *   - The end of a connection is always the same: DISCONNECTED, then every work request still
 *     posted completes FLUSHED, then DRAINED, and from then on nothing of that connection reads or
 *     writes memory, here or at the peer's request. Memory may be reused after DRAINED, or after
 *     the completion of a LOCAL_INV, or after the return of rdma_dereg(), and not before.
 *   - Posting is a release: what this CPU wrote before is seen by the device when it executes the
 *     work request. Polling a completion is an acquire.
 */
#ifndef KBTP_NET_RDMA_H
#define KBTP_NET_RDMA_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rdma;

/* ---- what a device can do ---------------------------------------------------------------- */

enum rdma_cap {
    /* SEND_INV is executed and invalidates at the receiver what INV_REGION or INV_WINDOW says. */
    RDMA_CAP_SEND_INV = 1u << 0,
    RDMA_CAP_INV_REGION = 1u << 1, /* regions can be invalidated remotely (iWARP: any STag) */
    RDMA_CAP_INV_WINDOW = 1u << 2, /* windows can be invalidated remotely (InfiniBand: only them) */
    RDMA_CAP_IMM = 1u << 3,        /* WRITE_IMM (RFC 7306 section 6: Immediate Data) */
    RDMA_CAP_FETCH_ADD = 1u << 4,  /* FETCH_ADD without a mask */
    RDMA_CAP_MASKED = 1u << 5,     /* FETCH_ADD with an Add Mask, CAS with masks (RFC 7306) */
    RDMA_CAP_CAS = 1u << 6,
    RDMA_CAP_ATOMIC_CPU = 1u << 7, /* RNIC atomics are atomic against those of CPUs too (I-37) */
    RDMA_CAP_WINDOW = 1u << 8,     /* type 2B windows: valid on one connection */
    RDMA_CAP_BASE_TO = 1u << 9,    /* rdma_reg() gives the base Tagged Offset that was wanted */
    /* The data of a WRITE becomes visible before that of a later one of the same connection. */
    RDMA_CAP_ORDERED_WRITES = 1u << 10,
    /* A WRITE's completion proves that the data was placed (not so: RFC 5040 5.5 rule 9). */
    RDMA_CAP_WRITE_ACKED = 1u << 11,
    RDMA_CAP_SOLICITED = 1u << 12, /* rdma_cq_arm() can wait for solicited events alone */
    RDMA_CAP_CHAIN = 1u << 13,     /* the operations of struct rdma_chain_ops */
    RDMA_CAP_CHAIN_WAITD = 1u << 14,
    RDMA_CAP_CHAIN_CENABLE = 1u << 15,
    RDMA_CAP_CHAIN_CQE = 1u << 16, /* a chain can read the octets of completions */
    RDMA_CAP_CHAIN_STRIDED = 1u << 17,
    RDMA_CAP_LOOP = 1u << 18, /* chain queues of kind LOOP; without CHAIN, nothing else of chains */
};

enum rdma_binding { RDMA_BINDING_RDMAP, RDMA_BINDING_INFINIBAND, RDMA_BINDING_ROCE };

struct rdma_caps {
    uint32_t bits;        /* enum rdma_cap */
    uint32_t binding;     /* enum rdma_binding */
    uint32_t max_message; /* octets of one SEND, WRITE or READ */
    uint32_t max_inline;  /* octets of a work request with RDMA_INLINE; 0: none */
    uint32_t max_sge;     /* of SEND, WRITE and RECV; at least 1 */
    uint32_t max_read_sge;
    uint32_t max_reads;     /* READs and atomics in progress, per connection and direction */
    uint32_t max_private;   /* octets of private data with connect, accept, reject */
    uint32_t max_queue;     /* work requests of one send or receive queue */
    uint32_t max_cq;        /* entries of a completion queue */
    uint8_t wqe_big_endian; /* of the fields of a work request in memory (chains) */
    uint8_t atomic_memory_big_endian; /* of the 64-bit words that atomics change */
    uint8_t atomic_reply_big_endian;  /* of the 8 octets that an atomic returns */
    uint8_t reserved;
};

/* ---- memory ------------------------------------------------------------------------------ */

enum rdma_access {
    RDMA_LOCAL_WRITE = 1u << 0, /* by this device: receives, sinks of READs and atomics */
    RDMA_REMOTE_READ = 1u << 1,
    RDMA_REMOTE_WRITE = 1u << 2,
    RDMA_REMOTE_ATOMIC = 1u << 3,
    RDMA_BIND_WINDOW = 1u << 4,
};

/* Registered memory. Tagged Offset base_to + i names octet i. */
struct rdma_region {
    void *addr;
    uint64_t length;  /* octets */
    uint64_t base_to; /* what it is, which need not be what was wanted: RDMA_CAP_BASE_TO */
    uint32_t lkey;    /* for SGEs */
    uint32_t stag;    /* for the peer; has no remote rights unless registered with some */
    uint32_t access;  /* enum rdma_access */
    uint32_t id;      /* the provider's */
};

/* What a window cannot give when its region has not LOCAL_WRITE; other rights need none. */
#define RDMA_PEER_CHANGES (RDMA_REMOTE_WRITE | RDMA_REMOTE_ATOMIC)

/*
 * A type 2B memory window: part of a region, for the peer of the one connection whose send queue
 * executed the BIND (RDMA_BIND). Through any other connection its STag is none. It ends with a
 * LOCAL_INV posted to that connection, with a SEND_INV that came through it, with rdma_destroy() of
 * it or with rdma_window_free(); then, and not before, it may be bound again, to any connection.
 * A successful rdma_post_send() of a BIND has filled in what the window will be.
 */
struct rdma_window {
    uint64_t length;
    uint64_t base_to; /* the region's + the offset of the BIND: octets keep their Tagged Offsets */
    uint32_t stag;    /* changes at every bind; what was told of earlier ones is of no more use */
    uint32_t bound;   /* a BIND was posted; cleared by nobody but the caller */
    uint32_t id;      /* the provider's */
    uint32_t reserved;
};

struct rdma_sge {
    void *addr;
    uint32_t length;
    uint32_t lkey;
};

/* ---- work requests ----------------------------------------------------------------------- */

/*
 * In brackets: what libibverbs calls it; the message of RFC 5040 or RFC 7306. "Placed" and
 * "delivered" are RFC 5040's words. Unless said otherwise a completion means that the local memory
 * of the work request may be reused; it says nothing about the peer (RFC 5040 5.5 rule 9).
 * Completions of one queue come in the order of posting.
 */
enum rdma_op {
    RDMA_NOOP, /* completes when all before it have */
    /*
     * [IBV_WR_SEND; Send] Takes one receive of the peer, in order; everything written before on
     * this connection is readable there when the receive completes (rule 10). Errors: LENGTH_ERROR
     * and the end of the connection when the receive is too small, RNR when there is none.
     */
    RDMA_SEND,
    /* [IBV_WR_SEND_WITH_INV; Send with Invalidate] imm_stag: invalidated before the peer's receive
     * completes. REMOTE_ACCESS when it cannot be: a region without INV_REGION, without remote
     * rights or with a window bound to it, a window without INV_WINDOW or of another connection,
     * or nothing that is valid. */
    RDMA_SEND_INV,
    /* [IBV_WR_RDMA_WRITE; RDMA Write] WRITE_ACKED: its completion proves placement. A zero-length
     * WRITE checks no STag. */
    RDMA_WRITE,
    /* [IBV_WR_RDMA_WRITE_WITH_IMM; RDMA Write, then Immediate Data] Takes one receive. */
    RDMA_WRITE_IMM,
    /* [IBV_WR_RDMA_READ; RDMA Read Request, RDMA Read Response] Its completion means that the data
     * is in the local memory. A later work request may be executed before (RDMA_FENCE). */
    RDMA_READ,
    /* [IBV_WR_ATOMIC_FETCH_AND_ADD, masked: vendors; Atomic Request, AOpCode FetchAdd] The old
     * value is in the one SGE of 8 octets when it completes. remote_to is a multiple of 8. */
    RDMA_FETCH_ADD,
    /* [IBV_WR_ATOMIC_CMP_AND_SWP; Atomic Request, AOpCode CmpSwap] */
    RDMA_CAS,
    /* [IBV_WR_BIND_MW; none] Window bind: the new STag is valid for later work requests of this
     * connection, and at the peer for what it sends after it was told. The STag is known when
     * posted, so that a SEND behind the BIND may tell it. LOCAL_ERROR: the window is bound, or was
     * freed; the region is invalid or has not BIND_WINDOW; of `access` (REMOTE_READ, REMOTE_WRITE,
     * REMOTE_ATOMIC) the peer could change memory, and the region has not LOCAL_WRITE; the octets
     * are none, or not all the region's. No SGEs. */
    RDMA_BIND,
    /* [IBV_WR_LOCAL_INV; none] Of a window that this connection bound, or a region. When it
     * completes nothing of the peer reaches the memory through this STag any more, nor do further
     * octets of a message whose placement had begun (which then fails). LOCAL_ERROR: it is not
     * valid, a window of another connection, or a region with a window bound to it. */
    RDMA_LOCAL_INV,
    /* Of chains only. */
    RDMA_WAIT,    /* until the completions of `queue` number `count` (absolute, modulo 2^32) */
    RDMA_ENABLE,  /* lets the work requests of `queue` below `count` be fetched */
    RDMA_WAITD,   /* until the 8 octets at the SGE, masked, equal `value` */
    RDMA_CENABLE, /* as ENABLE, of one of two queues, as the 8 octets at the SGE say */
    /* [ibv_post_recv; none] Not for rdma_post_send(); in completions it also stands for WRITE_IMM
     * (RDMA_WC_WRITE_IMM). */
    RDMA_RECV,
};

enum rdma_flag {
    RDMA_SIGNALED = 1u << 0, /* completes with an entry in the queue even when all went well */
    RDMA_FENCE = 1u << 1,    /* not before earlier READs and atomics of this connection are done */
    RDMA_SOLICIT = 1u << 2,  /* [IBV_SEND_SOLICITED; Send with Solicited Event] */
    RDMA_INLINE = 1u << 3,   /* the data is taken when posted: its memory is free on return; of
                                SEND_INV not with RDMA_BINDING_RDMAP: siw ends the connection */
};

struct rdma_wr {
    uint64_t wr_id; /* comes back in the completion */
    const struct rdma_sge *sges;
    uint64_t remote_to; /* WRITE, READ, atomics */
    uint32_t remote_stag;
    uint16_t op;    /* enum rdma_op */
    uint16_t flags; /* enum rdma_flag */
    uint32_t sge_count;
    uint32_t imm_stag; /* WRITE_IMM: immediate; SEND_INV, LOCAL_INV: STag to invalidate */
    union {
        struct {
            uint64_t add, mask; /* mask 0: none */
        } fetch_add;
        struct {
            uint64_t compare, compare_mask, swap, swap_mask; /* all ones: no mask */
        } cas;
        struct {
            struct rdma_window *window;
            const struct rdma_region *region;
            uint64_t offset, length; /* octets of the region */
            uint32_t access;
        } bind;
        struct {
            uint32_t queue, count;
        } wait, enable;
        struct {
            uint64_t value, mask;
        } waitd;
        struct {
            uint64_t value, mask;
            uint32_t queue, count, otherwise_queue, otherwise_count;
        } cenable;
    };
};

/* ---- completions ------------------------------------------------------------------------- */

enum rdma_status {
    RDMA_OK,
    RDMA_FLUSHED,       /* the connection ended before it was done; the peer may have seen it */
    RDMA_LOCAL_ERROR,   /* lkey, bounds or rights of the local memory */
    RDMA_LENGTH_ERROR,  /* does not fit the receive, or max_message */
    RDMA_REMOTE_ACCESS, /* STag, bounds or rights at the peer */
    RDMA_REMOTE_ERROR,
    RDMA_RNR,  /* the peer has no receive posted */
    RDMA_LOST, /* the peer does not answer */
};

enum rdma_wc_flag {
    RDMA_WC_IMM = 1u << 0,         /* imm is valid */
    RDMA_WC_INVALIDATED = 1u << 1, /* imm is the STag that was invalidated (not said by all) */
    RDMA_WC_WRITE_IMM = 1u << 2,   /* a receive that a WRITE_IMM took: its memory is untouched */
};

/* Any status but OK ends the connection; then wr_id, conn and status alone are valid. */
struct rdma_wc {
    uint64_t wr_id;
    uint32_t conn;
    uint8_t op;      /* enum rdma_op */
    uint8_t status;  /* enum rdma_status */
    uint16_t flags;  /* enum rdma_wc_flag */
    uint32_t length; /* octets received */
    uint32_t imm;
};

/* ---- connections and events -------------------------------------------------------------- */

/* A connection is named by a number, the lowest that is free in its handle. */
struct rdma_conn_config {
    uint32_t cq;         /* completions of both queues */
    uint32_t send_depth; /* work requests posted to the send queue and not yet completed. One that
                            is not signaled leaves when a later one completes */
    uint32_t recv_depth;
    uint32_t max_sge;
    uint32_t max_inline; /* octets */
    uint32_t reads_out;  /* READs and atomics this side has in progress; more wait in the queue */
    uint32_t reads_in;   /* the same for the peer */
    uint32_t reserved;
};

#define RDMA_MAX_PRIVATE 56u

enum rdma_event_kind {
    RDMA_EVENT_NONE,
    RDMA_EVENT_REQUEST,      /* a peer wants `conn`: rdma_accept() or rdma_reject() */
    RDMA_EVENT_CONNECTED,    /* after connect or accept */
    RDMA_EVENT_REJECTED,     /* instead of CONNECTED: `error` says why; rdma_destroy() it */
    RDMA_EVENT_DISCONNECTED, /* once per CONNECTED, whoever began it; `error` 0: in good order */
    RDMA_EVENT_DRAINED,      /* once after DISCONNECTED, when all FLUSHED were polled */
    RDMA_EVENT_TIMER,        /* `conn` is the timer's id */
};

struct rdma_event {
    uint32_t kind; /* enum rdma_event_kind */
    uint32_t conn;
    int32_t error; /* -errno or 0 */
    uint32_t private_length;
    uint8_t private_data[RDMA_MAX_PRIVATE];
};

/* ---- chains ------------------------------------------------------------------------------ */

/*
 * A chain is a program of work requests that the device runs by itself: they lie in memory, wait
 * there until they are enabled, and may be patched until they are fetched. What sets one off is a
 * completion that a WAIT counts, what it does with it follows from the octets that receives and
 * READs placed into the fields of later work requests.
 *
 * Queues. A chain queue has `depth` places in memory of the caller. Its work requests have absolute
 * numbers, the first is `first`; number i lies in place (i - first) modulo depth. Numbers, counts
 * and limits are 32 bits wide and wrap: "below" and "at least" mean a difference of less than 2^31.
 *
 *     put      written into its place [a store into the buffer of the queue pair]
 *     enabled  its number is below the queue's limit, which ENABLE or rdma_chain_enable() raised,
 *              and which never falls
 *     fetched  the device has copied its octets: at any time after it was enabled, never before,
 *              and long before it is executed if the device likes. A patch that comes later is
 *              lost, one that comes in between may be
 *     done     as after rdma_post_send()
 *
 * Work requests of a queue are executed in order, with the exceptions of enum rdma_op; RDMA_FENCE
 * orders what reads memory behind the READ or atomic that writes it. What patches a work request
 * must be done before it is enabled: WAIT for it, then ENABLE.
 *
 * Completions of a chain queue are counted, and go to no completion queue: one for each work
 * request with RDMA_SIGNALED, and one for each that fails or is FLUSHED, with or without. So a WAIT
 * also goes on after an error: what is harmful then must be a NOOP until a patch makes it more.
 *
 * The memory of queues, and whatever a chain patches or reads, is shared memory: between
 * rdma_chain_put() and completion nobody but the device touches the place.
 */
enum rdma_chain_kind {
    /* A queue pair of its own, both ends here: NOOP, READ, WRITE, atomics, WAIT, ENABLE; STags are
     * those of regions of this device. With RDMA_CAP_LOOP alone neither WAIT nor ENABLE, and
     * nothing can be patched: then it is the way to have the RNIC do what the CPU may not, as
     * atomics are that must be so towards the RNIC's (I-37). */
    RDMA_CHAIN_LOOP,
    RDMA_CHAIN_CTRL, /* WAIT and ENABLE alone */
    /* The send queue of a connection, from CONNECTED on: rdma_post_send() is refused from then on.
     * All that the connection could send, and WAIT, ENABLE. */
    RDMA_CHAIN_SEND,
    /* Names a connection's receive queue, so that WAIT can count its completions, which go to the
     * completion queue as ever. No work requests; receives are posted with rdma_post_recv(), and
     * their SGEs may be fields of work requests. */
    RDMA_CHAIN_RECV,
};

struct rdma_chain_config {
    uint32_t kind;  /* enum rdma_chain_kind */
    uint32_t conn;  /* SEND, RECV */
    uint32_t depth; /* work requests; not RECV. RDMA_CAP_LOOP alone: a power of 2 */
    uint32_t reserved;
    void *memory; /* rdma_chain_octets(), aligned to 64; not RECV */
};

struct rdma_chain_queue {
    uint32_t id;    /* for rdma_wr.wait and .enable */
    uint32_t kind;  /* enum rdma_chain_kind */
    uint32_t depth; /* work requests */
    uint32_t first; /* number of the first work request; so many completions are counted before */
    /* Its memory, LOCAL_WRITE: the lkey of SGEs that patch it. Zero with RDMA_CAP_LOOP alone. */
    struct rdma_region region;
};

struct rdma_chain_state {
    uint32_t enabled;     /* the limit */
    uint32_t completed;   /* all work requests below are done; their places are free */
    uint32_t completions; /* as WAIT counts them */
    uint32_t status;      /* enum rdma_status: why it failed; FLUSHED: its connection ended. Nothing
                        is begun any more */
};

/* What of a work request can be patched. In brackets: octets. */
enum rdma_chain_field {
    RDMA_FIELD_OP,           /* [1] */
    RDMA_FIELD_IMM_STAG,     /* [4] */
    RDMA_FIELD_REMOTE_TO,    /* [8] */
    RDMA_FIELD_REMOTE_STAG,  /* [4] */
    RDMA_FIELD_SGE_TO,       /* [8] not the address: the Tagged Offset in the region of the lkey */
    RDMA_FIELD_SGE_LENGTH,   /* [4] */
    RDMA_FIELD_SGE_LKEY,     /* [4] */
    RDMA_FIELD_ADD,          /* [8] FETCH_ADD, and so on */
    RDMA_FIELD_ADD_MASK,     /* [8] */
    RDMA_FIELD_COMPARE,      /* [8] */
    RDMA_FIELD_COMPARE_MASK, /* [8] */
    RDMA_FIELD_SWAP,         /* [8] */
    RDMA_FIELD_SWAP_MASK,    /* [8] */
    RDMA_FIELD_QUEUE,        /* [8] WAIT, ENABLE */
    RDMA_FIELD_COUNT,        /* [8] */
    RDMA_FIELDS,
};

/* What a provider implements; the calls below the others say what each is. */
struct rdma_chain_ops {
    uint32_t (*octets)(struct rdma *r, uint32_t depth);
    int (*create)(struct rdma *r, const struct rdma_chain_config *config,
                  struct rdma_chain_queue *queue);
    int (*destroy)(struct rdma *r, struct rdma_chain_queue *queue);
    int (*put)(struct rdma *r, const struct rdma_chain_queue *queue, uint32_t number,
               const struct rdma_wr *wr);
    int (*enable)(struct rdma *r, const struct rdma_chain_queue *queue, uint32_t limit);
    int (*state)(struct rdma *r, const struct rdma_chain_queue *queue,
                 struct rdma_chain_state *state);
    int (*field)(struct rdma *r, const struct rdma_chain_queue *queue, uint32_t number,
                 uint32_t field, uint32_t sge, uint32_t lane, void **at);
    int (*encode)(struct rdma *r, uint32_t field, uint64_t value, uint8_t octets[8]);
    int (*reg_strided)(struct rdma *r, void *addr, uint32_t count, uint32_t octets, uint32_t stride,
                       uint32_t access, struct rdma_region *region);
};

/* ---- operations -------------------------------------------------------------------------- */

/* What a provider implements; the calls below say what each is. */
struct rdma_ops {
    void (*caps)(struct rdma *r, struct rdma_caps *caps);
    int (*reg)(struct rdma *r, void *addr, uint64_t length, uint32_t access, uint64_t wanted_base,
               struct rdma_region *region);
    int (*dereg)(struct rdma *r, struct rdma_region *region);
    int (*window_alloc)(struct rdma *r, struct rdma_window *window);
    int (*window_free)(struct rdma *r, struct rdma_window *window);
    int (*cq_create)(struct rdma *r, uint32_t depth, uint32_t *cq);
    int (*cq_destroy)(struct rdma *r, uint32_t cq);
    int (*cq_poll)(struct rdma *r, uint32_t cq, struct rdma_wc *wc, uint32_t count);
    int (*cq_arm)(struct rdma *r, uint32_t cq, bool solicited_only);
    int (*listen)(struct rdma *r, const char *address);
    int (*connect)(struct rdma *r, const char *address, const struct rdma_conn_config *config,
                   const struct rdma_wr *receives, uint32_t count, const void *private_data,
                   uint32_t private_length, uint32_t *conn);
    int (*accept)(struct rdma *r, uint32_t conn, const struct rdma_conn_config *config,
                  const struct rdma_wr *receives, uint32_t count, const void *private_data,
                  uint32_t private_length);
    int (*reject)(struct rdma *r, uint32_t conn, const void *private_data, uint32_t private_length);
    int (*disconnect)(struct rdma *r, uint32_t conn);
    int (*destroy)(struct rdma *r, uint32_t conn);
    int (*event)(struct rdma *r, struct rdma_event *event);
    int (*post_send)(struct rdma *r, uint32_t conn, const struct rdma_wr *wrs, uint32_t count);
    int (*post_recv)(struct rdma *r, uint32_t conn, const struct rdma_wr *wrs, uint32_t count);
    int (*timer)(struct rdma *r, uint32_t id, uint64_t delay_ns);
    int (*random)(struct rdma *r, void *octets, uint32_t length);
    const struct rdma_chain_ops *chain; /* may be null without RDMA_CAP_CHAIN and RDMA_CAP_LOOP */
};

struct rdma {
    const struct rdma_ops *ops;
};

/* librdmacm has calls with the same names: a file that uses those defines RDMA_WITHOUT_CALLS. */
#ifndef RDMA_WITHOUT_CALLS

/* [ibv_query_device_ex, ibv_query_port; what both ends of the stack can do] Never fails. */
static inline void rdma_caps(struct rdma *r, struct rdma_caps *caps)
{
    r->ops->caps(r, caps);
}

/*
 * [ibv_reg_mr_iova; an STag] Registers memory of the caller, who keeps it until rdma_dereg(). Reads
 * and writes of CPUs go on as before. -EINVAL: length 0, REMOTE_WRITE or REMOTE_ATOMIC without
 * LOCAL_WRITE. -ENOMEM: no memory, or beyond the limit of locked memory. -ENOSPC: no key is left.
 */
static inline int rdma_reg(struct rdma *r, void *addr, uint64_t length, uint32_t access,
                           uint64_t wanted_base, struct rdma_region *region)
{
    return r->ops->reg(r, addr, length, access, wanted_base, region);
}

/* [ibv_dereg_mr] -EBUSY while a window is bound to it, also one whose connection has ended but was
 * not destroyed. On return no peer reaches the memory. */
static inline int rdma_dereg(struct rdma *r, struct rdma_region *region)
{
    return r->ops->dereg(r, region);
}

/* [ibv_alloc_mw with IBV_MW_TYPE_2; a stream STag] Not bound to anything yet. -ENOTSUP: without
 * RDMA_CAP_WINDOW. -ENOMEM: no memory, or none is left. */
static inline int rdma_window_alloc(struct rdma *r, struct rdma_window *window)
{
    return r->ops->window_alloc(r, window);
}

/* [ibv_dealloc_mw] Not while a BIND of it is posted. One that is bound is invalidated: on return no
 * peer reaches memory through it. -EINVAL: it is none any more. */
static inline int rdma_window_free(struct rdma *r, struct rdma_window *window)
{
    return r->ops->window_free(r, window);
}

/*
 * [ibv_create_cq] A queue of `depth` completions; who posts sees to it that it never overflows.
 * -EINVAL: depth 0 or above max_cq. -ENOMEM.
 */
static inline int rdma_cq_create(struct rdma *r, uint32_t depth, uint32_t *cq)
{
    return r->ops->cq_create(r, depth, cq);
}

/* [ibv_destroy_cq] -EBUSY while a connection uses it. */
static inline int rdma_cq_destroy(struct rdma *r, uint32_t cq)
{
    return r->ops->cq_destroy(r, cq);
}

/* [ibv_poll_cq] Takes up to `count` completions, the oldest first; returns how many. -EIO: the
 * queue has overflowed, and everything on it is lost. */
static inline int rdma_cq_poll(struct rdma *r, uint32_t cq, struct rdma_wc *wc, uint32_t count)
{
    return r->ops->cq_poll(r, cq, wc, count);
}

/* [ibv_req_notify_cq] The next completion (or solicited one, or error) wakes whoever waits in the
 * provider's own way. Look once more after arming. */
static inline int rdma_cq_arm(struct rdma *r, uint32_t cq, bool solicited_only)
{
    return r->ops->cq_arm(r, cq, solicited_only);
}

/*
 * [rdma_bind_addr, rdma_listen; a TCP listener] `address` is the provider's, "HOST:PORT" in real
 * networks. Several handles of a device may listen at one address: each REQUEST comes to one of
 * them. -EADDRINUSE, -EADDRNOTAVAIL, -EINVAL.
 */
static inline int rdma_listen(struct rdma *r, const char *address)
{
    return r->ops->listen(r, address);
}

/*
 * [rdma_resolve_addr, rdma_resolve_route, rdma_create_qp, ibv_post_recv, rdma_connect; MPA Request]
 * Starts a connection; `receives` are posted before the peer can send. CONNECTED or REJECTED
 * follows (REJECTED also when the peer cannot be reached or does not answer in time). -EINVAL:
 * something in `config` is beyond the device. -ENOSPC: no connection is left. -ENOMEM.
 */
static inline int rdma_connect(struct rdma *r, const char *address,
                               const struct rdma_conn_config *config,
                               const struct rdma_wr *receives, uint32_t count,
                               const void *private_data, uint32_t private_length, uint32_t *conn)
{
    return r->ops->connect(r, address, config, receives, count, private_data, private_length, conn);
}

/*
 * [rdma_create_qp, ibv_post_recv, rdma_accept; MPA Reply] After REQUEST. CONNECTED follows, or
 * REJECTED when the peer has gone. On an error the request stands: reject it.
 */
static inline int rdma_accept(struct rdma *r, uint32_t conn, const struct rdma_conn_config *config,
                              const struct rdma_wr *receives, uint32_t count,
                              const void *private_data, uint32_t private_length)
{
    return r->ops->accept(r, conn, config, receives, count, private_data, private_length);
}

/* [rdma_reject; MPA Reply with R] After REQUEST; `conn` is free again, also after an error. */
static inline int rdma_reject(struct rdma *r, uint32_t conn, const void *private_data,
                              uint32_t private_length)
{
    return r->ops->reject(r, conn, private_data, private_length);
}

/* [rdma_disconnect; Terminate or close] Begins the end of a connection (see the rules above).
 * Calling it again changes nothing. -EINVAL: not connected. */
static inline int rdma_disconnect(struct rdma *r, uint32_t conn)
{
    return r->ops->disconnect(r, conn);
}

/* [rdma_destroy_qp, rdma_destroy_id] After DRAINED or REJECTED; frees the number. -EBUSY: too
 * early. */
static inline int rdma_destroy(struct rdma *r, uint32_t conn)
{
    return r->ops->destroy(r, conn);
}

/* [rdma_get_cm_event, rdma_ack_cm_event, ibv_get_async_event] Takes the oldest event: 1, or 0 when
 * there is none. */
static inline int rdma_event(struct rdma *r, struct rdma_event *event)
{
    return r->ops->event(r, event);
}

/*
 * [ibv_post_send; the messages of enum rdma_op] Posts all of them behind one doorbell, or none.
 * -ENOMEM: the queue is full. -EINVAL: an operation, flag, length or number of SGEs is beyond the
 * connection. -ENOTCONN: neither CONNECTED nor a receive that completed well was taken yet, or
 * DISCONNECTED was. Whatever was posted completes in the end.
 */
static inline int rdma_post_send(struct rdma *r, uint32_t conn, const struct rdma_wr *wrs,
                                 uint32_t count)
{
    return r->ops->post_send(r, conn, wrs, count);
}

/* [ibv_post_recv; a buffer of DDP queue 0] As rdma_post_send(), but from rdma_connect() or
 * rdma_accept() on; wr_id and SGEs count. */
static inline int rdma_post_recv(struct rdma *r, uint32_t conn, const struct rdma_wr *wrs,
                                 uint32_t count)
{
    return r->ops->post_recv(r, conn, wrs, count);
}

/* Arms timer `id` (the caller's numbers, from 0) to expire once, after delay_ns; 0 cancels it. */
static inline int rdma_timer(struct rdma *r, uint32_t id, uint64_t delay_ns)
{
    return r->ops->timer(r, id, delay_ns);
}

/* [getrandom] Octets that nobody can guess (in the simulator: that follow from the seed). */
static inline int rdma_random(struct rdma *r, void *octets, uint32_t length)
{
    return r->ops->random(r, octets, length);
}

/*
 * ---- calls about chains ------------------------------------------------------------------
 *
 * All return -ENOTSUP without RDMA_CAP_CHAIN; with RDMA_CAP_LOOP alone, those do not that tell the
 * octets, create and destroy LOOP queues, put, enable and tell the state.
 */

/* Octets of memory of a queue with so many places; 0: no chains, or no such depth. */
static inline uint32_t rdma_chain_octets(struct rdma *r, uint32_t depth)
{
    return r->ops->chain ? r->ops->chain->octets(r, depth) : 0;
}

/*
 * [mlx5dv: queue pairs with IBV_QP_CREATE_CROSS_CHANNEL and MANAGED_SEND] For set-up. -EINVAL:
 * kind, depth or memory; SEND and RECV: no such connection; SEND: work requests were posted, or
 * it is a chain's already. -ENOSPC: no LOOP or CTRL queue is left. Errors of rdma_reg().
 */
static inline int rdma_chain_create(struct rdma *r, const struct rdma_chain_config *config,
                                    struct rdma_chain_queue *queue)
{
    return r->ops->chain ? r->ops->chain->create(r, config, queue) : -ENOTSUP;
}

/* Nothing of a LOOP or CTRL queue lands after the return. A queue of a connection ends with it: for
 * SEND -EBUSY before rdma_destroy(). */
static inline int rdma_chain_destroy(struct rdma *r, struct rdma_chain_queue *queue)
{
    return r->ops->chain ? r->ops->chain->destroy(r, queue) : -ENOTSUP;
}

/*
 * Writes a work request into its place: to post it, and to restore it after patches, for its next
 * turn. Fields that its `op` does not use keep what is given, for the op that a patch makes of it.
 * -ENOMEM: the place is not free (struct rdma_chain_state, completed). -EINVAL: it is enabled
 * already; the kind of queue has no such op; SGEs or flags are beyond the device, INLINE is one of
 * them; an lkey is unknown (RDMA_CAP_LOOP alone: LOCAL_ERROR when it is executed). -ENOTSUP.
 */
static inline int rdma_chain_put(struct rdma *r, const struct rdma_chain_queue *queue,
                                 uint32_t number, const struct rdma_wr *wr)
{
    return r->ops->chain ? r->ops->chain->put(r, queue, number, wr) : -ENOTSUP;
}

/*
 * The doorbell: as an ENABLE with this count, and a release. -EINVAL: work requests below `limit`
 * were not put. (An ENABLE cannot look: what it enables and nobody put fails with LOCAL_ERROR.)
 */
static inline int rdma_chain_enable(struct rdma *r, const struct rdma_chain_queue *queue,
                                    uint32_t limit)
{
    return r->ops->chain ? r->ops->chain->enable(r, queue, limit) : -ENOTSUP;
}

/* How far it is: an acquire, as polling. */
static inline int rdma_chain_state(struct rdma *r, const struct rdma_chain_queue *queue,
                                   struct rdma_chain_state *state)
{
    return r->ops->chain ? r->ops->chain->state(r, queue, state) : -ENOTSUP;
}

/*
 * The place of octet `lane` (0: the most significant) of a field; with RDMA_FIELD_SGE_* of SGE
 * number `sge`, else 0. Returns the field's octets. Lanes follow each other upwards when fields are
 * big-endian, else downwards (rdma_caps.wqe_big_endian). -EINVAL: no such field, SGE or lane.
 */
static inline int rdma_chain_field(struct rdma *r, const struct rdma_chain_queue *queue,
                                   uint32_t number, uint32_t field, uint32_t sge, uint32_t lane,
                                   void **at)
{
    return r->ops->chain ? r->ops->chain->field(r, queue, number, field, sge, lane, at) : -ENOTSUP;
}

/*
 * What a field must hold for `value` (enum rdma_op: the device's own number), in the order in which
 * it lies in memory: for look-up tables. Returns how many octets. -EINVAL: not of this field.
 */
static inline int rdma_chain_encode(struct rdma *r, uint32_t field, uint64_t value,
                                    uint8_t octets[8])
{
    return r->ops->chain ? r->ops->chain->encode(r, field, value, octets) : -ENOTSUP;
}

/*
 * [mlx5dv_wr_mr_interleaved] As rdma_reg() of `count` elements of `octets` each, one behind the
 * other, at Tagged Offsets that are `stride` apart and begin at 0: octet j of element i is at i *
 * stride + j, and nothing at what lies between. So that octets of a number can be those of its
 * element's offset. For remote access only. Both are powers of 2, octets < stride <= 32768, else
 * -EINVAL. -ENOTSUP without RDMA_CAP_CHAIN_STRIDED.
 */
static inline int rdma_chain_reg_strided(struct rdma *r, void *addr, uint32_t count,
                                         uint32_t octets, uint32_t stride, uint32_t access,
                                         struct rdma_region *region)
{
    return r->ops->chain
               ? r->ops->chain->reg_strided(r, addr, count, octets, stride, access, region)
               : -ENOTSUP;
}

#endif /* RDMA_WITHOUT_CALLS */

#endif
