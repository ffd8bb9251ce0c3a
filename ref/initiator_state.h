/* SPDX-License-Identifier: BSD-3-Clause */
/* What an initiator keeps; included by ref/initiator.c, ref/direct_load.c and
 * ref/back_off.c only. All of it is
 * private to one CPU and has no padding. */
#ifndef KBTP_REF_INITIATOR_STATE_H
#define KBTP_REF_INITIATOR_STATE_H

#include "ref/initiator.h"
#include "ref/sends.h"

/* A request without outcome; its place's number is the low half of the Request ID. */
struct kbtp_pending {
    uint64_t request_id;
    uint64_t cookie;
    uint64_t handle;
    uint32_t opcode; /* 0: the place is free */
    uint32_t length; /* octets that it may bring or take */
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
    uint8_t *entries;             /* depth copies of table entries, for direct loads */
    uint8_t *receives;            /* depth + 1 */
    uint64_t serial;              /* of the last request of this connection */
    struct kbtp_sends sends;
    struct rdma_region region; /* of all buffers */
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
    uint16_t unchecked;
    uint16_t drained;
    uint16_t requested;   /* features */
    uint16_t features;    /* requested, granted, and of use */
    uint16_t releasing;   /* GOODBYE with RELEASE was said */
    uint16_t leaving;     /* it wanted the end: GOODBYE, or disconnected */
    uint32_t range_count; /* of the session before; 0: there was none */
    uint64_t range_base;
    uint32_t same_range; /* as then */
    uint32_t reserved;
    struct kbtp_back_off back_off;
};

/* The next of `depth` places for requests; there must be one. */
uint32_t kbtp_free_place(const struct kbtp_initiator *i);
/* The connection ends, unless it does already; `why` is told when all is over. */
void kbtp_initiator_abort(struct kbtp_initiator *i, const struct kbtp_cpu *cpu, int why);
/* A request has its outcome: its place is free again. */
void kbtp_settle(struct kbtp_initiator *i, struct kbtp_pending *pending,
                 struct kbtp_outcome *outcome);

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
    uint16_t generation; /* as the first look showed it */
    uint16_t stage;      /* enum kbtp_direct_stage */
    uint32_t reserved;
};

/* Can these descriptors be used? */
bool kbtp_direct_load_offer_is_good(const struct kbtp_hello_ack *ack);
/* A READ for the request in `place` has completed well; true with an outcome. */
bool kbtp_direct_load_read(struct kbtp_initiator *i, const struct kbtp_cpu *cpu, uint32_t place,
                           struct kbtp_outcome *outcome);

#endif
