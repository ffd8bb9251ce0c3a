/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The initiator: one session with a target (draft: Session Establishment, Operations).
 *
 * Requests are submitted and their outcomes polled; nothing blocks, and nothing allocates after
 * kbtp_initiator_init(). The caller registers the buffers that requests name, and leaves them alone
 * until the outcome is there.
 *
 *     kbtp_initiator_init(&i, &cpu, &config, private_memory, buffers);
 *     kbtp_initiator_connect(i, &cpu);
 *     while (kbtp_initiator_state(i) != KBTP_INITIATOR_READY)
 *         kbtp_initiator_poll(i, &cpu, outcomes, 16);       // DOWN again: see kbtp_initiator_why()
 *     kbtp_initiator_submit(i, &cpu, &operation, cookie);   // -EAGAIN: poll first
 *     count = kbtp_initiator_poll(i, &cpu, outcomes, 16);
 *
 * When the connection is lost every request that had no outcome gets one with error -ECONNRESET:
 * the target may have done it or not (I-35). After that the initiator is DOWN and may connect
 * again, with the same Initiator ID, to find its handles as they were.
 */
#ifndef KBTP_REF_INITIATOR_H
#define KBTP_REF_INITIATOR_H

#include "ref/cpu.h"
#include "ref/wire.h"

struct kbtp_initiator;

#define KBTP_MAX_RETRIES 63u

struct kbtp_initiator_config {
    const char *address; /* of the target, for rdma_connect(); lives as long as the initiator */
    uint8_t initiator_id[KBTP_INITIATOR_ID_OCTETS]; /* a secret of 128 random bits */
    uint32_t depth;      /* requests outstanding at most, 1 to 4096: Completion Credits */
    uint32_t max_inline; /* octets of inline data that will ever be sent */
    uint16_t features;   /* to request: KBTP_FEATURE_DIRECT_LOAD, _DIRECT_ALLOC, and
                            KBTP_FEATURE_RECORD_COMPLETION */
    bool unchecked;      /* for testers: sends what a good initiator would not */
    bool patient;        /* for testers: waits for blocks of its own, however long that takes */
    bool unmasked;       /* the target's counters are in the InfiniBand form (I-38), as they are
                            anyway where the device cannot mask */
    /* DIRECT_ALLOC: how long to wait before a slot that had no block yet is read again (0: 20 us).
     * This and giving up need the device's timers 1 and 2. */
    uint32_t reread_ns;
    uint32_t give_up_looks; /* into which half the Ticket Timeout is divided; 0: 4 */
    void *records; /* RECORD_COMPLETION: depth * KBTP_RECORD_OCTETS octets, aligned to 8, which the
                      target may write */
    /*
     * A target that has this initiator's session still, and an answer from its connection, says
     * INTERNAL (I-16): so many times another try is made, 0 to KBTP_MAX_RETRIES, after
     * retry_first_ns, twice that, ..., retry_longest_ns at most, each shortened by chance by up to
     * a half. With retry_lost also after a connection that was lost or refused. The handle needs
     * timer 0 then.
     */
    uint64_t retry_first_ns, retry_longest_ns;
    uint32_t retries;
    bool retry_lost;
};

enum kbtp_initiator_state {
    KBTP_INITIATOR_DOWN,
    KBTP_INITIATOR_CONNECTING, /* up to HELLO_ACK */
    KBTP_INITIATOR_READY,
    KBTP_INITIATOR_ENDING,  /* until the connection is drained and every request has its outcome */
    KBTP_INITIATOR_WAITING, /* until the next try, config.retries */
};

/* A request. */
struct kbtp_operation {
    uint64_t handle;
    uint64_t tagged_offset; /* of the buffer: destination of LOAD, source of stores */
    const void *data;       /* with INLINE: copied by kbtp_initiator_submit() */
    uint32_t stag;
    uint32_t length;     /* octets of the buffer or of the inline data */
    uint16_t generation; /* expected; 0: any */
    uint16_t flags;      /* enum kbtp_flag; RECORD when it was granted: the library has the slot */
    uint8_t opcode;      /* LOAD, STORE, ALLOC_STORE, FREE */
};

struct kbtp_outcome {
    uint64_t cookie;
    uint64_t handle;
    uint64_t block_offset;
    uint32_t data_length; /* octets */
    int32_t error;        /* 0, or -ECONNRESET: nobody knows whether it was done */
    uint16_t status;      /* enum kbtp_status, when error is 0 */
    uint16_t generation;
    uint8_t opcode;      /* or KBTP_INVALIDATION */
    uint8_t by_record;   /* the completion was a record */
    uint8_t invalidated; /* the STag of the buffer is not valid any more */
    uint8_t reserved;
};

/* The caller's memory, aligned to 8 and to 64. */
void kbtp_initiator_memory(const struct kbtp_initiator_config *config, size_t *private_octets,
                           size_t *buffer_octets);

/* Returns 0, -EINVAL for a number outside its range, a depth beyond the device's queues or inline
 * data beyond its messages, or what the device returned. */
int kbtp_initiator_init(struct kbtp_initiator **initiator, const struct kbtp_cpu *cpu,
                        const struct kbtp_initiator_config *config, void *private_memory,
                        void *buffers);

/* Begins a session. 0, -EISCONN unless DOWN or WAITING (then it waits no longer, and the tries are
 * counted anew), or what rdma_connect() returned. */
int kbtp_initiator_connect(struct kbtp_initiator *initiator, const struct kbtp_cpu *cpu);

enum kbtp_initiator_state kbtp_initiator_state(const struct kbtp_initiator *initiator);

/* What HELLO_ACK said; valid when READY. */
const struct kbtp_hello_ack *kbtp_initiator_target(const struct kbtp_initiator *initiator);

/*
 * Does the target give the handles that it gave before, in the session before this one? False: all
 * that is remembered of Handles and Generations is void (I-11), for the initiator has another
 * range, or there was no session before. True does not prove that the target has not started again:
 * it does not say so. One that begins with another config.first_handle each time can be told by
 * this; else its Generations differ from those before in all but 1 of 65,535 cases.
 * Valid when READY.
 */
bool kbtp_initiator_same_range(const struct kbtp_initiator *initiator);

/* Of the requested features those that the target has granted, and whose descriptors make sense;
 * 0 unless READY. */
uint16_t kbtp_initiator_features(const struct kbtp_initiator *initiator);

/* Why the last session ended or was not begun: 0 (GOODBYE, and the target disconnected), -errno of
 * the connection (after GOODBYE: nobody knows whether it was heard, I-34), -EPROTO for messages
 * that make no sense, or the status of HELLO_ACK (positive). */
int kbtp_initiator_why(const struct kbtp_initiator *initiator);

/*
 * Allocation Quota in use, as far as this side knows: ALLOC_STOREs that were sent, less those
 * refused and those freed. A lost outcome counts as a block that is bound. Whoever has found out
 * since (by LOADs, say) what is bound says so; so does a new process that comes back to what an
 * earlier one has bound. -EBUSY while requests are outstanding.
 */
uint32_t kbtp_initiator_usage(const struct kbtp_initiator *initiator);
int kbtp_initiator_set_usage(struct kbtp_initiator *initiator, uint32_t blocks);

/* Requests that can be submitted now (draft: Request Credits), and without outcome. */
uint32_t kbtp_initiator_credits(const struct kbtp_initiator *initiator);
uint32_t kbtp_initiator_outstanding(const struct kbtp_initiator *initiator);

/*
 * Sends a request; `cookie` comes back in its outcome. Returns 0, or with nothing sent
 *   -ENOTCONN  not READY
 *   -EAGAIN    no credit left: poll
 *   -EMSGSIZE  more inline data than Max Inline or than config.max_inline
 *   -EDQUOT    an ALLOC_STORE beyond the Allocation Quota (draft: MUST NOT exceed)
 *   -EINVAL    another opcode, flags that make no sense for it (I-44), a handle that is not the
 *              initiator's own to store to or free
 * or what rdma_post_send() returned: then the connection ends.
 */
int kbtp_initiator_submit(struct kbtp_initiator *initiator, const struct kbtp_cpu *cpu,
                          const struct kbtp_operation *operation, uint64_t cookie);

/*
 * A direct load (draft: Direct Modes): reads the entry twice, the block, and the entry again, each
 * when the one before has completed, and asks nothing of the target. Its outcome is that of a LOAD;
 * what a target would have found the initiator finds: STALE_GENERATION, NOT_VALID, NOT_SEALED,
 * TOO_LARGE, and STALE_GENERATION also when the entry has changed while it was read. Only with
 * status OK does the buffer hold the block; otherwise it may hold anything. It takes one of the
 * places of config.depth, as a request does.
 *
 * Why twice: a read of 16 octets has no order inside. Once the first look has shown a Generation,
 * the second one's Block Offset and Data Length are of that or a later binding, and if the third
 * shows the same Generation still, of that one (I-06). That a Generation comes again, after 65,535
 * binds and frees between two looks, is not detected (I-23).
 *
 * Returns 0; -ENOTCONN, -EAGAIN as above; -ENOTSUP when DIRECT_LOAD was not granted, -EINVAL for a
 * handle that is not in the table, or what rdma_post_send() returned: then the connection ends.
 */
struct kbtp_direct_load {
    uint64_t handle;
    void *into; /* the buffer, and the lkey of its region */
    uint32_t lkey;
    uint32_t length;     /* octets that it has */
    uint16_t generation; /* expected; 0: any */
};
int kbtp_initiator_direct_load(struct kbtp_initiator *initiator, const struct kbtp_cpu *cpu,
                               const struct kbtp_direct_load *load, uint64_t cookie);

/*
 * A direct allocation (draft: Direct Modes): takes a ticket by FetchAdd, reads its slot until the
 * block is there and once more to confirm it, writes the data into the block, and sends BIND, whose
 * outcome this is (opcode BIND). The block is not sealed (I-07). It counts in Allocation Quota from
 * the start, and takes one of the places of config.depth.
 *
 * It gives up, with status TICKET_ABANDONED though nothing was bound, when half the Ticket Timeout
 * has passed since the FetchAdd was posted (I-17), or the slot shows that the ticket was abandoned
 * (I-19). After this or a BIND that was refused for that reason this session writes no more blocks
 * directly: the target takes the right to do so away, and the next RDMA Write would end the
 * connection. All that were on their way give up too, and new ones are -ENOTSUP. Of what a refused
 * BIND or a given up ticket holds in the quota only TICKET_ABANDONED from the target frees it
 * before the session ends.
 *
 * Several may be under way, each goes on by itself: none waits for an older one to be bound (I-18).
 *
 * Returns 0; -ENOTCONN, -EAGAIN, -EDQUOT as above; -ENOTSUP when DIRECT_ALLOC was not granted or
 * there is no more of it, -EINVAL for a handle that is not the initiator's own, -EMSGSIZE for more
 * than Block Size, or what arming the timer returned; or what rdma_post_send() returned: then the
 * connection ends.
 */
struct kbtp_direct_store {
    uint64_t handle;
    const void *data; /* in registered memory, until the outcome is there */
    uint32_t lkey;
    uint32_t length;     /* octets */
    uint16_t generation; /* expected; 0: any */
};
int kbtp_initiator_direct_store(struct kbtp_initiator *initiator, const struct kbtp_cpu *cpu,
                                const struct kbtp_direct_store *store, uint64_t cookie);

/* Those of them whose slot had no block when it was read last. */
uint32_t kbtp_initiator_waiting(const struct kbtp_initiator *initiator);

/*
 * STags that are valid for a single request (draft: SHOULD; RDMA_CAP_WINDOW): a window of the
 * caller, bound for it, and the flag INVALIDATE.
 *
 *     rdma_window_alloc(cpu.rdma, &window);
 *     kbtp_initiator_bind(i, &cpu, &window, &region, offset, length, RDMA_REMOTE_WRITE);  // LOAD
 *     operation.stag = window.stag; operation.tagged_offset = window.base_to;
 *     operation.flags |= KBTP_FLAG_INVALIDATE;
 *     kbtp_initiator_submit(i, &cpu, &operation, cookie);
 *     ... its outcome says `invalidated`: window.bound = 0, and it may be bound again
 *
 * A target may be unable to, and a completion record never invalidates: then the caller does, with
 * kbtp_initiator_invalidate(). Before that a target can still reach the buffer. `invalidated` is
 * what this side's device says. A completion that takes back another STag than its request's ends
 * the connection. When the initiator is DOWN, windows that it had bound are not any more.
 *
 * Bind: 0; -ENOTCONN, -EAGAIN as above, or what rdma_post_send() returned. A bind that fails later
 * ends the connection.
 */
int kbtp_initiator_bind(struct kbtp_initiator *initiator, const struct kbtp_cpu *cpu,
                        struct rdma_window *window, const struct rdma_region *region,
                        uint64_t offset, uint64_t length, uint32_t access);

/* Invalidates an STag that is valid on this connection; when its outcome is there, with this
 * opcode, nobody reaches the memory through it. It takes one of the places of config.depth. Returns
 * as kbtp_initiator_bind(). */
#define KBTP_INVALIDATION 0xffu /* no Opcode of the draft, in its place */
int kbtp_initiator_invalidate(struct kbtp_initiator *initiator, const struct kbtp_cpu *cpu,
                              uint32_t stag, uint64_t cookie);

/* Takes up to `count` outcomes (at least 1 is asked for); returns how many, or -EIO. */
int kbtp_initiator_poll(struct kbtp_initiator *initiator, const struct kbtp_cpu *cpu,
                        struct kbtp_outcome *outcomes, uint32_t count);

/* Ends the session; the target keeps what is bound, or with `release` frees it. 0, -ENOTCONN, or
 * -EBUSY while requests are outstanding (I-34). Poll until DOWN. */
int kbtp_initiator_goodbye(struct kbtp_initiator *initiator, const struct kbtp_cpu *cpu,
                           bool release);

/* Ends the connection without a word, or the wait for the next try. Poll until DOWN. */
void kbtp_initiator_disconnect(struct kbtp_initiator *initiator, const struct kbtp_cpu *cpu);

/* Gives back what init took; DOWN only. */
int kbtp_initiator_end(struct kbtp_initiator *initiator, const struct kbtp_cpu *cpu);

#endif
