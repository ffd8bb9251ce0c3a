/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Worlds of kind `protocol`: initiators with a program of requests each, connected through
 * simulated RNICs to the workers of one target, all of them running ref/.
 *
 * Below is what checkers look at: memory in the draft's formats (as in ring worlds), the messages
 * on the wire, and ghost records that the simulator keeps of both.
 *
 * The data of each request that stores is its tag, an octet, again and again: tag 1 is the first
 * request of the first initiator. So octets in a block or a buffer say whose they are.
 */
#ifndef KBTP_SIM_PROTOCOL_WORLD_H
#define KBTP_SIM_PROTOCOL_WORLD_H

#include "sim/ring_world.h"

/* What must_reach can name; kbtp-scenario(5) says what each means. */
enum sim_protocol_reach {
    PROTOCOL_REACH_DEFERRAL = SIM_REACH_OF_KIND,
    PROTOCOL_REACH_TWO_DEFERRALS,
    PROTOCOL_REACH_DEFERRED_WRITE,
    PROTOCOL_REACH_WAIT,
    PROTOCOL_REACH_RING_WRAP,
    PROTOCOL_REACH_TICKET_WRAP,
    PROTOCOL_REACH_GENERATION_WRAP,
    PROTOCOL_REACH_QUOTA_FULL,
    PROTOCOL_REACH_PINNED_FREE,
    PROTOCOL_REACH_PIN_RETURNED,
    PROTOCOL_REACH_STALE_LOAD,
    PROTOCOL_REACH_LOAD_WAITS_FOR_STORE,
    PROTOCOL_REACH_STORE_WAITS_FOR_LOAD,
    PROTOCOL_REACH_PIPELINED,
    PROTOCOL_REACH_CREDITS_USED_UP,
    PROTOCOL_REACH_NO_SPACE,
    PROTOCOL_REACH_NOT_VALID,
    PROTOCOL_REACH_ALREADY_BOUND,
    PROTOCOL_REACH_CONNECTION_LOST,
    PROTOCOL_REACH_RECONNECTED,
    PROTOCOL_REACH_IN_DOUBT,
    PROTOCOL_REACH_SESSION_RESTORED,
    PROTOCOL_REACH_HELLO_HELD,
    PROTOCOL_REACH_REQUEST_DROPPED,
    PROTOCOL_REACH_WORKER_RECLAIMS,
    PROTOCOL_REACH_RETENTION_ENDED,
    PROTOCOL_REACH_DIRECT_LOAD,
    PROTOCOL_REACH_DIRECT_LOAD_CHANGED,
    PROTOCOL_REACH_DIRECT_ALLOC,
    PROTOCOL_REACH_SLOT_REREAD,
    PROTOCOL_REACH_TICKET_ABANDONED,
    PROTOCOL_REACH_LATE_BIND,
    PROTOCOL_REACH_LATE_WRITE,
    PROTOCOL_REACH_GIVEN_UP,
    PROTOCOL_REACH_RECORD,
    PROTOCOL_REACH_INVALIDATED,
    PROTOCOL_REACH_PROBE_ANSWERED,
    PROTOCOL_REACH_PROBE_FAILED,
    PROTOCOL_REACH_HELLO_REFUSED,
    PROTOCOL_REACH_STOPPED,
    PROTOCOL_REACH_RESTARTED,
    PROTOCOL_REACH_STALE_GENERATION,
    PROTOCOL_REACH_COUNT,
};

extern const char *const sim_protocol_reach_names[PROTOCOL_REACH_COUNT];

#define SIM_PROTOCOL_FIRST_HANDLE UINT64_C(0x4000)

/* Octets that are hashed have no padding. */
#pragma GCC diagnostic push
#pragma GCC diagnostic error "-Wpadded"

/* A request that was sent and whose completion was not: of an initiator, the oldest first. */
struct sim_open_request {
    uint32_t id;    /* low half of its Request ID */
    uint16_t entry; /* of the table; SIM_NO_ENTRY: beyond it */
    uint8_t opcode;
    uint8_t request;   /* of the initiator's program */
    uint8_t delivered; /* the target has it */
    uint8_t zero[3];
    uint32_t invalidate; /* STag that its completion is to invalidate; 0: none */
};
#define SIM_NO_ENTRY UINT16_MAX

/* By initiator; the last five only of those with a grant of their own, for all that have it. */
struct sim_wire_ghost {
    uint32_t open_count;
    uint8_t next_request; /* of the program: what the next request sent is */
    uint8_t hellos;       /* it has sent one */
    uint8_t releasing;    /* GOODBYE with RELEASE was sent */
    uint8_t bound;        /* entries of its range that are VALID */
    uint8_t link;         /* on which its session was begun last */
    uint8_t expired;      /* its retention has ended; it is not free again yet */
    uint8_t leaving;      /* GOODBYE was sent */
    uint8_t zero;
    struct sim_open_request open[]; /* room for `credits` + 1 */
};

/* By request of all programs, by tag - 1. */
struct sim_request_ghost {
    uint16_t generation; /* under which its data can be loaded; 0: not (yet) */
    uint8_t outcomes;    /* its initiator was told; at most 1 */
    uint8_t slot;        /* for its completion record, from 1; 0: none */
    uint32_t recorded;   /* 1 + Data Length in the record that was sent with OK; 0: none was */
    /* In worlds of restarts: 1 + how many there were when its data was bound, or, of a LOAD, that
     * from which it knows its Generation; 0: neither. */
    uint32_t life;
};

#pragma GCC diagnostic pop

struct sim_protocol_world {
    struct sim_ring_world ring;        /* first: memory of ring, table and blocks' places */
    char *pins;                        /* 8 octets a block */
    char *blocks;                      /* block_size octets each */
    char *records[SIM_MAX_INITIATORS]; /* `depth` slots; NULL: it asks for no records */
    struct sim_wire_ghost *wire[SIM_MAX_INITIATORS];
    struct sim_request_ghost *requests;
    uint32_t first_tag[SIM_MAX_INITIATORS]; /* of its requests, less 1 */
    uint32_t initiators, workers;           /* agents: workers come first */
    uint32_t first_initiator;               /* agent */
    uint32_t sessions;                      /* the first so many initiators have one of their own */
    uint32_t handles, credits;
};

static inline struct sim_protocol_world *sim_protocol_of(const struct sim_world *w)
{
    return w->kind;
}

/* The initiator whose agent this is, or SIM_NOBODY. */
uint32_t sim_protocol_initiator(const struct sim_world *w, uint32_t agent);
/* Whose grant an initiator has. */
uint32_t sim_protocol_session(const struct sim_world *w, uint32_t initiator);
/* In whose range an entry is. */
static inline uint32_t sim_protocol_owner(const struct sim_protocol_world *p, uint32_t entry)
{
    return entry / p->handles;
}
/* The request with a tag, or NULL. */
const struct sim_request *sim_protocol_request(const struct sim_world *w, uint32_t tag);
/* The tag of `octets` octets that are all alike; 0: they are not, or none is. */
uint32_t sim_protocol_tag(const char *at, uint32_t octets);
/*
 * Tickets that initiators have taken by themselves and whose slots hold a block: of this one's
 * partition. Of these, those of earlier laps, for whose consumption later tickets wait (I-09). And
 * of the last N all that are not bound, those that wait for a block too.
 */
struct sim_tickets {
    uint32_t with_block, earlier, unbound;
};
struct sim_tickets sim_protocol_tickets(const struct sim_world *w, uint32_t initiator);
/* The same, but only of tickets before this one. */
struct sim_tickets sim_protocol_tickets_before(const struct sim_world *w, uint32_t initiator,
                                               uint32_t ticket);
/* Is this block of its partition? */
bool sim_protocol_has_in_partition(const struct sim_world *w, uint32_t initiator, uint32_t block);
/* May such a ticket be abandoned some time? It has a connection, and the Ticket Timeout. */
bool sim_protocol_may_time_out(const struct sim_world *w, uint32_t initiator);
/* No connection serves it: then its session's word says which tickets the next one will look at,
 * this one and those behind it. */
bool sim_protocol_is_parted(const struct sim_world *w, uint32_t initiator, uint32_t *oldest_ticket);
/* The block `at` lies in, or RING_NO_BLOCK. */
uint32_t sim_protocol_block(const struct sim_protocol_world *p, const char *at);
/* The block whose word of pins `at` lies in, or RING_NO_BLOCK. */
uint32_t sim_protocol_pins(const struct sim_protocol_world *p, const char *at);
/* Whose slot for completion records `at` lies in, and which; SIM_NOBODY: in none. */
uint32_t sim_protocol_record(const struct sim_world *w, const char *at, uint32_t *slot);
/* The buffer of the request with a tag. */
const char *sim_protocol_buffer(const struct sim_world *w, uint32_t tag);
/* Are freed blocks to be cleared? */
bool sim_protocol_clears(const struct sim_world *w);
/* No connection serves this session, and its retention time may be over some time. */
bool sim_protocol_is_retained(const struct sim_world *w, uint32_t session);
/* What the target counts for an initiator; false where no worker and no session says. */
bool sim_protocol_usage(const struct sim_world *w, uint32_t initiator, uint32_t *usage);

/* A message in the draft's format: its common header, the body of a COMPLETION, and of a request
 * what its completion is about. A completion record is shown as the COMPLETION that it replaces. */
struct sim_header {
    uint8_t opcode;
    uint16_t flags;
    uint64_t request_id;
    uint64_t handle;
    uint16_t generation;
    uint16_t status;
    uint32_t data_length;
    uint64_t block_offset;
    uint64_t record_offset; /* Tagged Offset of the Completion Descriptor, with RECORD */
    uint32_t stag;          /* of the Data Descriptor; 0: none */
};
/* False when `length` octets are no message. Addresses in requests follow ADDR_LE. */
bool sim_protocol_header(const struct sim_world *w, const struct sim_message *message,
                         struct sim_header *header);

/* Told to checkers (value: the tag of the request; see struct sim_told). */
enum sim_protocol_event {
    /* an initiator is told the outcome of a request. Behind those of rings: some checkers are told
     * both */
    PROTOCOL_OUTCOME = RING_EVENTS_END,
    PROTOCOL_COMPLETED,    /* a worker sends the completion of one */
    PROTOCOL_SESSION_ENDS, /* value: whose, the initiator with a grant of its own */
};
/* What the event is about; valid during the event. */
struct sim_told {
    uint32_t initiator;
    uint32_t place; /* COMPLETED: among the open requests, SIM_NOBODY: it is none of them */
    const struct sim_open_request *open;
    const struct sim_header *header; /* COMPLETED */
    uint32_t invalidates;            /* COMPLETED: the STag that goes with it, or 0 */
    /* OUTCOME */
    int error;
    uint16_t status, generation;
    uint32_t data_length;
    const char *buffer; /* of a LOAD */
};
const struct sim_told *sim_protocol_told(const struct sim_world *w);

/* For the table of kinds (sim/kind.h). */
bool sim_protocol_describe_world(const struct sim_scenario *s, unsigned line, char *out,
                                 size_t size);
int sim_protocol_world_build(struct sim_world *w);

#endif
