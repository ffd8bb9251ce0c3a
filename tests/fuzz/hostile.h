/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A peer that sends whatever it likes, and remembers what: every answer is judged against the
 * message that it answers. What is judged follows from the two alone, so that it holds whatever the
 * target was doing:
 *   - each message of 24 octets or more gets one COMPLETION or HELLO_ACK, in order, with a status
 *     of the draft, its Request ID and its Block Handle; or the connection ends (I-30, I-47);
 *   - nothing takes effect outside the handle range of HELLO_ACK;
 *   - DIRECT_LOAD is granted to nobody who has not asked for it, and opens for reading alone;
 *   - DIRECT_ALLOC opens the blocks of its own partition for writing, and nothing else of the pool,
 *     and no longer when one of its tickets was abandoned (tests/fuzz/tickets.c);
 *   - an expected Generation, the Generation of the answer and its status agree (I-31, I-45).
 */
#ifndef KBTP_TESTS_FUZZ_HOSTILE_H
#define KBTP_TESTS_FUZZ_HOSTILE_H

#include "ref/target.h"
#include "tests/ref/peer.h"

#define HOSTILE_DATA 512u /* octets for the target to read and write */
#define HOSTILE_SENT 128u /* messages of one connection */
#define HOSTILE_TICKETS 8u

/* Ends the process, with these words, unless it is so. */
void fuzz_check(bool is_so, const char *what);

/* What an answer is judged against; both readings of what depends on ADDR_LE. */
struct hostile_sent {
    uint64_t request_id, handle, handle_le;
    uint32_t length, length_le; /* of the Data Descriptor, or 0 */
    uint32_t ticket, bound;     /* of a BIND; Data Length */
    uint16_t flags, generation;
    uint16_t credits, features; /* of a HELLO */
    uint8_t version, opcode;
};

struct hostile_ticket {
    uint32_t ticket;
    bool filled; /* it has seen its block */
    uint64_t block_offset;
};

struct hostile {
    struct peer peer;
    uint8_t data[HOSTILE_DATA];
    struct rdma_region region;
    uint64_t first_handle, end_handle; /* of the target's table */
    bool addr_le;
    /* Of the connection that there is or was last: */
    struct hostile_sent sent[HOSTILE_SENT];
    uint32_t sent_count, answered;
    bool must_end; /* it has sent what cannot be answered, or got a last answer */
    bool ready;    /* has a session, with this range: */
    uint64_t handle_base;
    uint32_t handle_count;
    /* With DIRECT_LOAD: what it may read, and where that lies in this process. */
    struct kbtp_direct_descriptor table, pool;
    const char *table_octets, *pool_octets;
    uint32_t table_length, pool_length, block_octets;
    bool direct_world; /* the target's regions are readable, also by who guesses an STag */
    /* With DIRECT_ALLOC: what it may use, and the partition of each session. */
    struct kbtp_direct_descriptor partition, ring, head;
    const struct kbtp_target *target;
    const struct kbtp_partition *partitions; /* NULL: nobody has one */
    uint32_t partitions_count;
    struct hostile_ticket tickets[HOSTILE_TICKETS]; /* the last ones that it has taken */
    uint32_t tickets_count, session;
    bool takes_tickets;        /* it has used its Head */
    bool plays_foul;           /* by other than one ticket */
    bool was_looked_at;        /* the timer of the Ticket Timeout has expired */
    uint8_t last[PEER_OCTETS]; /* what it has sent last */
    uint32_t last_octets;
};

void hostile_open(struct hostile *it, struct rdma *rdma);
void hostile_close(struct hostile *it);

/* Does nothing unless it is DOWN. `receives` are posted. */
void hostile_connect(struct hostile *it, uint32_t receives);
/* Octets as they are; nothing happens without a connection. */
void hostile_send(struct hostile *it, const uint8_t *octets, uint32_t length);
/* An operation of RDMA itself upon `stag`: all but an empty WRITE fail, and end the connection. */
void hostile_rdma(struct hostile *it, enum rdma_op op, uint32_t stag, uint64_t to, uint32_t length);
/* With DIRECT_LOAD: an RDMA Read of table or pool brings what is there, or the connection ends. */
void hostile_direct_read(struct hostile *it, bool of_table, uint64_t at, uint32_t length);
/* With DIRECT_ALLOC, each acts at once (tests/fuzz/tickets.c). FetchAdd on Head; `mask` bits end
 * carries. */
void hostile_add_to_head(struct hostile *it, uint64_t add, uint64_t mask);
void hostile_takes_ticket(struct hostile *it);
/* Reads the slot of the ticket that was taken n tickets ago. */
void hostile_reads_slot(struct hostile *it, uint32_t n);
/* Writes `length` octets, `at` octets from where its partition begins; or of a ticket's block. */
void hostile_writes(struct hostile *it, int64_t at, uint32_t length);
void hostile_writes_block(struct hostile *it, uint32_t n, uint32_t at, uint32_t length);
/* The Ticket that Head has. */
uint32_t hostile_head(const struct hostile *it);
/* What it has taken n tickets ago; zeros: nothing. */
struct hostile_ticket *hostile_nth_ticket(struct hostile *it, uint32_t n);
/* Does this STag name a Head, or a ring, of anybody? */
bool hostile_knows_as_head(const struct hostile *it, uint32_t stag);
bool hostile_knows_as_ring(const struct hostile *it, uint32_t stag);
/* Or whatever else the target lets peers reach? */
bool hostile_knows_as_region(const struct hostile *it, uint32_t stag);

/* Takes what has come, and judges it. */
void hostile_poll(struct hostile *it);
/* When everything has come to rest: every message was answered, or the connection has ended.
 * `waits`: its own ticket keeps an allocation waiting, and what it has sent behind. */
void hostile_check(const struct hostile *it, bool waits);

#endif
