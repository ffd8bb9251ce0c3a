/* SPDX-License-Identifier: BSD-3-Clause */
/* What an initiator keeps; included by the files of the initiator only. All of it is private to one
 * CPU and has no padding. */
#ifndef KBTP_REF_INITIATOR_STATE_H
#define KBTP_REF_INITIATOR_STATE_H

#include "ref/initiator.h"
#include "ref/sends.h"

/* A request without outcome; its place's number is the low half of the Request ID. */
struct kbtp_pending {
    uint64_t request_id;
    uint64_t cookie;
    uint64_t handle;
    uint16_t opcode; /* 0: the place is free */
    uint16_t flags;
    uint32_t length; /* octets that it may bring or take */
    uint32_t stag;   /* that its completion may invalidate; 0: none */
    uint32_t reserved;
};

/* When another try is made: ref/back_off.c. */
struct kbtp_back_off {
    uint64_t first_ns, longest_ns;
    uint16_t retries;
    uint16_t lost;  /* after a loss, too */
    uint16_t tried; /* since the last session, or since the caller connected */
    uint16_t reserved;
};

struct kbtp_initiator {
    const char *address;
    struct kbtp_pending *pending; /* depth */
    struct kbtp_direct *direct;   /* depth; NULL unless direct loads are wanted */
    uint8_t *entries;             /* depth copies of table entries or ring slots */
    uint8_t *receives;            /* depth + 1 */
    uint64_t serial;              /* of the last request of this connection */
    struct kbtp_sends sends;
    struct rdma_region region; /* of all buffers */
    uint8_t *records;          /* depth slots for completion records, the caller's; NULL: none */
    struct rdma_region record_region;
    struct kbtp_hello_ack target;
    uint8_t initiator_id[KBTP_INITIATOR_ID_OCTETS];
    uint32_t state; /* enum kbtp_initiator_state */
    int32_t why;
    uint32_t cq;
    uint32_t conn; /* valid unless DOWN */
    uint32_t depth;
    uint32_t credits; /* of the session */
    uint32_t outstanding;
    uint32_t usage; /* ALLOC_STOREs not known to have failed or to be freed */
    uint32_t max_inline;
    uint8_t unchecked;
    uint8_t patient;
    uint16_t drained;
    uint16_t requested; /* features */
    uint16_t features;  /* requested, granted, and of use */
    uint16_t releasing; /* GOODBYE with RELEASE was said */
    uint16_t leaving;   /* it wanted the end: GOODBYE, or disconnected */
    uint16_t unmasked;
    uint16_t reread_armed;  /* timer 1 */
    uint16_t give_up_armed; /* timer 2 */
    uint16_t reserved;
    uint32_t reread_ns;
    uint32_t give_up_looks;
    uint32_t held;        /* tickets in `usage` that the target has back when the session ends */
    uint32_t range_count; /* of the session before; 0: there was none */
    uint64_t range_base;
    uint32_t same_range; /* as then */
    uint32_t reserved2;
    struct kbtp_back_off back_off;
};

/* The next of `depth` places for requests; there must be one. */
uint32_t kbtp_free_place(const struct kbtp_initiator *i);
/* The connection ends, unless it does already; `why` is told when all is over. */
void kbtp_initiator_abort(struct kbtp_initiator *i, const struct kbtp_cpu *cpu, int why);
/* A request has its outcome: its place is free again. */
void kbtp_settle(struct kbtp_initiator *i, struct kbtp_pending *pending,
                 struct kbtp_outcome *outcome);

/* An answer has come, by message or record; `invalidated`: the STag that went with it, or 0. False
 * when it answers nothing that was asked, brings more than there is room for, or took back what it
 * was not to. */
bool kbtp_answered(struct kbtp_initiator *i, const struct kbtp_record *answer, uint32_t invalidated,
                   struct kbtp_outcome *outcome);

/* ---- ref/record_slots.c ------------------------------------------------------------------ */

/* Makes ready the slot of the request in `place`. */
void kbtp_record_arm(const struct kbtp_initiator *i, const struct kbtp_cpu *cpu, uint32_t place,
                     struct kbtp_completion_descriptor *slot);
/* An immediate has come; true with an outcome, false when there is no record. */
bool kbtp_record_came(struct kbtp_initiator *i, const struct kbtp_cpu *cpu,
                      struct kbtp_outcome *outcome);

/* ---- ref/initiator_windows.c ------------------------------------------------------------- */

/* The LOCAL_INV in `place` has completed. */
void kbtp_invalidated(struct kbtp_initiator *i, uint32_t place, struct kbtp_outcome *outcome);

/* ---- ref/back_off.c ---------------------------------------------------------------------- */

bool kbtp_back_off_is_legal(const struct kbtp_initiator_config *config);
struct kbtp_back_off kbtp_back_off(const struct kbtp_initiator_config *config);
/* The connection is gone; true: its timer runs, and when it has expired another try is due. */
bool kbtp_back_off_begins(struct kbtp_initiator *i, const struct kbtp_cpu *cpu);
/* There is a session, or nobody wants one. */
void kbtp_back_off_ends(struct kbtp_initiator *i, const struct kbtp_cpu *cpu);

/* ---- ref/direct_load.c ------------------------------------------------------------------- */

/* A direct load in progress, by the place of its request. */
struct kbtp_direct {
    void *into;
    uint64_t block_offset; /* as the second look at the entry showed it */
    uint32_t lkey;
    uint32_t data_length;
    uint32_t ticket;     /* DIRECT_ALLOC */
    uint16_t generation; /* as the first look showed it; DIRECT_ALLOC: to be sent */
    uint8_t stage;       /* enum kbtp_direct_stage */
    uint8_t looks;       /* DIRECT_ALLOC: of the timer that makes it give up */
};

enum kbtp_direct_stage {
    KBTP_DIRECT_NONE,
    /* What the READ that is posted brings; ref/direct_load.c. */
    KBTP_DIRECT_FIRST,  /* the entry: its Generation */
    KBTP_DIRECT_SECOND, /* the entry: Block Offset and Data Length */
    KBTP_DIRECT_BLOCK,
    KBTP_DIRECT_THIRD, /* the entry: is it still the same binding? */
    /* ref/direct_alloc.c */
    KBTP_DIRECT_TICKET,  /* the FetchAdd is posted */
    KBTP_DIRECT_SLOT,    /* a READ of the slot is */
    KBTP_DIRECT_WAIT,    /* it was not filled: until it is read again */
    KBTP_DIRECT_CONFIRM, /* it was: read once more */
};

/* Can these descriptors be used? */
bool kbtp_direct_load_offer_is_good(const struct kbtp_hello_ack *ack);
bool kbtp_direct_alloc_offer_is_good(const struct kbtp_initiator *i, const struct rdma_caps *caps);
/* The first work request of what is in `place` was posted, or could not be: then nothing is there,
 * and the connection ends. Returns `failed`. */
int kbtp_direct_begun(struct kbtp_initiator *i, const struct kbtp_cpu *cpu, uint32_t place,
                      int failed);
/* A READ for the request in `place`, into its copy of an entry or slot. */
int kbtp_direct_read(struct kbtp_initiator *i, const struct kbtp_cpu *cpu, uint32_t place,
                     uint64_t remote_to, uint32_t stag);
/* A READ for the request in `place` has completed well; true with an outcome. */
bool kbtp_direct_load_read(struct kbtp_initiator *i, const struct kbtp_cpu *cpu, uint32_t place,
                           struct kbtp_outcome *outcome);

/* ---- ref/direct_alloc.c ------------------------------------------------------------------ */

/* The FetchAdd or a READ for the request in `place` has completed well; true with an outcome. */
bool kbtp_direct_alloc_read(struct kbtp_initiator *i, const struct kbtp_cpu *cpu, uint32_t place,
                            struct kbtp_outcome *outcome);
/* One of its timers has expired. */
void kbtp_direct_alloc_expired(struct kbtp_initiator *i, const struct kbtp_cpu *cpu,
                               uint32_t timer);
/* A BIND was refused: what its ticket holds. */
void kbtp_direct_alloc_refused(struct kbtp_initiator *i, uint16_t status);
/* The session is over. */
void kbtp_direct_alloc_end(struct kbtp_initiator *i, const struct kbtp_cpu *cpu);

#endif
