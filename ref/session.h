/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The sessions of a target (draft: Session Establishment), shared by its workers: who has which
 * handle range and quota, and whether a connection serves it now.
 *
 *   FREE -> ACTIVE -> ENDING -> RETAINED (or FREE, after RELEASE) -> ACTIVE ...
 *                                        -> ENDING (the retention time is over) -> FREE
 *
 * Invariants:
 *   - at most one connection serves a session, and no request of an earlier connection can still
 *     take effect when it does (I-10): ENDING lasts until that connection is drained and all it had
 *     taken is given back;
 *   - a handle range never changes hands while a session has it, and never overlaps another;
 *   - a HELLO ends no ACTIVE session: it has the session's worker ask whether the connection lives,
 *     and waits for the answer (I-16, ref/half_open.c).
 */
#ifndef KBTP_REF_SESSION_H
#define KBTP_REF_SESSION_H

#include <stdbool.h>
#include <stdint.h>

#include "net/mem.h"
#include "ref/wire.h"

enum kbtp_session_state {
    KBTP_SESSION_FREE,
    KBTP_SESSION_ACTIVE,
    KBTP_SESSION_ENDING,
    KBTP_SESSION_RETAINED,
};

/* What the session of one initiator has. Constant. */
struct kbtp_grant {
    uint8_t initiator_id[KBTP_INITIATOR_ID_OCTETS]; /* for whom, when `known` */
    uint32_t known;                                 /* else for the first that comes */
    /* That it may have: KBTP_FEATURE_RECORD_COMPLETION; DIRECT_LOAD and DIRECT_ALLOC only for those
     * that are trusted for all blocks that these expose (draft: MUST). Others are not told the
     * STags; but a region's STag works on every connection (net/rdma.h), so all of this device's
     * initiators must be trusted not to guess. And where the device has RDMA_CAP_INV_REGION, who
     * knows one can invalidate it with a Send, for everybody: that is trusted too. With
     * DIRECT_ALLOC its quota is a partition (ref/partition.h). */
    uint16_t features;
    uint16_t trust_domain; /* where there are several, blocks are cleared when they are freed */
    uint32_t quota;        /* Allocation Quota, blocks */
    uint32_t handle_count;
    uint32_t first_entry; /* filled in by kbtp_sessions_init() */
    uint32_t partition;   /* filled in by kbtp_target_init(): its number + 1; 0: none */
    /* Who may LOAD the handles of this range (R-SESS-29): whoever has it, and those with a
     * reader_class whose bit, 1 << reader_class, is set. 0: everybody. */
    uint32_t readable_by;
    uint32_t reader_class; /* below KBTP_READER_CLASSES */
};
#define KBTP_READER_CLASSES 32u

/* The state is in the low octet of its word; above it endings are counted, so that each has a
 * name. */
#define KBTP_SESSION_STATE_BITS 8
static inline enum kbtp_session_state kbtp_session_state_in(uint64_t word)
{
    return (enum kbtp_session_state)(word & ((1u << KBTP_SESSION_STATE_BITS) - 1));
}
const char *kbtp_session_state_name(uint64_t word);

/* Does the connection of an ACTIVE session live? Asked by a HELLO with its Initiator ID (I-16). */
enum kbtp_probe {
    KBTP_PROBE_NONE,
    KBTP_PROBE_ASKED,
    KBTP_PROBE_ANSWERED, /* it did */
};

/* In shared memory. */
struct kbtp_session {
    mem64 state; /* see above */
    mem64 id[2]; /* Initiator ID, unless it is known; changed under the lock only */
    mem64 usage; /* blocks, while RETAINED; an ACTIVE session's is its worker's */
    /* With a partition, while no connection serves it: no earlier ticket is unbound. */
    mem64 oldest_ticket;
    /* enum kbtp_probe in the low octet; above it, as in `state`, of which connection */
    mem64 probe;
};

struct kbtp_sessions {
    struct kbtp_session *sessions;
    struct kbtp_grant *grants; /* one each */
    mem64 *lock;
    uint32_t count;
    /* The grants are not all of one trust domain; who may not read what another one stores does not
     * find it in a block that was freed either. */
    uint16_t several_domains;
    uint16_t restricted; /* not everybody may read everything */
};

/*
 * Lays out the handle ranges one after the other. Returns the number of handles, or -EINVAL when
 * there are more than 2^31 - 1, the quotas' sum is above block_count, an ID is there twice, a
 * reader class is none, a count is zero, or DIRECT_LOAD, which exposes all blocks, is for somebody
 * who may not read all of them (R-DL-01). A quota may be zero: that initiator only loads.
 */
int64_t kbtp_sessions_init(struct mem *m, struct kbtp_sessions *all, struct kbtp_session *sessions,
                           struct kbtp_grant *grants, mem64 *lock, uint32_t count,
                           uint32_t block_count);

/* May the session of grant `index` LOAD what every range holds? */
bool kbtp_grant_reads_all(const struct kbtp_grant *grants, uint32_t count, uint32_t index);
/* May session `index` LOAD this entry, which is one of the table? */
bool kbtp_session_may_read(const struct kbtp_sessions *all, uint32_t index, uint32_t entry);

/*
 * A HELLO: finds or makes the session of this initiator and makes it ACTIVE. Returns its index, or
 *   -EAGAIN  it is ENDING, or another worker looks just now: ask again;
 *   -EBUSY   it is ACTIVE: to be rejected (draft: MUST reject);
 *   -ENOSPC  none is left for an unknown initiator.
 *
 * `name` is 0 before the first call for a HELLO and the caller leaves it alone until the last; then
 * it names the session's new connection. With `asks`, an ACTIVE session is -EAGAIN until its
 * connection, asked since the first call, has answered or has ended (I-16); without, it is -EBUSY
 * at once.
 */
int kbtp_session_open(struct mem *m, const struct kbtp_sessions *all,
                      const uint8_t id[KBTP_INITIATOR_ID_OCTETS], bool asks, uint64_t *name,
                      uint32_t *usage, bool *restored);

/* For the worker with the connection that `name` names: does a HELLO ask whether it lives? One
 * load. */
bool kbtp_session_is_asked(struct mem *m, const struct kbtp_sessions *all, uint32_t index,
                           uint64_t name);
/* It does. */
void kbtp_session_answers(struct mem *m, const struct kbtp_sessions *all, uint32_t index,
                          uint64_t name);

/* Its connection has failed or said GOODBYE, but is not drained yet. */
void kbtp_session_ending(struct mem *m, const struct kbtp_sessions *all, uint32_t index);

/*
 * Nothing of its connection can take effect any more. RELEASE: nothing is bound either. Returns
 * what names this retention.
 */
uint64_t kbtp_session_end(struct mem *m, const struct kbtp_sessions *all, uint32_t index,
                          uint32_t usage, bool released);

/*
 * The retention time is over (I-33). True when the session is still, or was never anything else
 * than, RETAINED as `retention` names it: it is ENDING now, and the caller frees what it has bound
 * and then calls kbtp_session_end() with RELEASE. Until then its quota is reserved.
 */
bool kbtp_session_expire(struct mem *m, const struct kbtp_sessions *all, uint32_t index,
                         uint64_t retention);

#endif
