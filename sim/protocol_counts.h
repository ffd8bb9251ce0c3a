/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What has been done on the way to this state, counted twice: by the target (ref/counters.h), and
 * by the simulator from the wire and from memory. Two ways to one state may differ in it, so it is
 * no part of the state: it is undone with the steps, and not hashed.
 */
#ifndef KBTP_SIM_PROTOCOL_COUNTS_H
#define KBTP_SIM_PROTOCOL_COUNTS_H

#include "ref/counters.h"
#include "sim/protocol_world.h"

/* Rows of requests. */
enum sim_counted {
    SIM_COUNTED_HELLO,
    SIM_COUNTED_LOAD,
    SIM_COUNTED_STORE,
    SIM_COUNTED_ALLOC_STORE,
    SIM_COUNTED_FREE,
    SIM_COUNTED_BIND,
    SIM_COUNTED_GOODBYE,
    SIM_COUNTED_OPCODES
};
#define SIM_COUNTED_STATUSES 12u

/* Other numbers. */
enum sim_count {
    SIM_COUNT_LOADED, /* octets of LOADs and stores that are answered OK */
    SIM_COUNT_STORED_INLINE,
    SIM_COUNT_STORED_READ,
    SIM_COUNT_SESSIONS, /* opened or restored */
    SIM_COUNT_REFUSED,
    SIM_COUNT_EXPIRED,
    SIM_COUNT_PINNED_FREES,    /* blocks freed while a LOAD reads them */
    SIM_COUNT_RECLAIMED,       /* blocks taken that went back without having been bound */
    SIM_COUNT_RELEASED_BLOCKS, /* freed by a GOODBYE, or at the end of retention */
    SIM_COUNTS
};

struct sim_counts {
    uint32_t answered[SIM_COUNTED_OPCODES][SIM_COUNTED_STATUSES];
    uint32_t received[SIM_COUNTED_OPCODES]; /* the simulator's: delivered to the target */
    uint32_t values[SIM_COUNTS];
    uint32_t late_readers; /* the simulator's: they came to a block freed, but not yet returned */
};

/* At one moment. */
struct sim_gauges {
    int64_t ring_tickets, oldest_ticket;
    uint32_t deferred, pins, connections, requests, tickets;
    uint32_t sessions, active; /* in any state; ACTIVE */
    uint32_t usage[SIM_MAX_INITIATORS], quota[SIM_MAX_INITIATORS];
};

/* What the target says. */
void sim_protocol_counted(const struct sim_world *w, struct sim_counts *counts);
void sim_protocol_gauges(const struct sim_world *w, struct sim_gauges *gauges);
/* What the simulator has seen. */
const struct sim_counts *sim_protocol_seen(const struct sim_world *w);
/* Has a connection been lost, or an initiator stopped, on the way here? */
bool sim_protocol_has_lost(const struct sim_world *w);
/* Does no worker stand within a poll, with something read or a store that is not visible? */
bool sim_protocol_workers_at_rest(const struct sim_world *w);

/* All that the target counts, and its gauges. */
struct sim_statistics {
    struct kbtp_counters counters;
    struct kbtp_gauges gauges; /* its sessions are those below */
    struct kbtp_session_gauges sessions[SIM_MAX_INITIATORS];
};
void sim_protocol_statistics(const struct sim_world *w, struct sim_statistics *statistics);

/* ---- for sim/protocol_*.c ---------------------------------------------------------------- */

/* Set-up: memory for what is seen; a worker counts in the path of its agent. */
int protocol_counts_memory(struct sim_world *w);
void protocol_counts_worker(const struct sim_world *w, uint32_t worker);

/* Seen: a message of an initiator was delivered to the target. */
void protocol_count_received(struct sim_world *w, uint8_t opcode);
/* An answer was sent: to a request of a program, which stored or loaded; or to another one. */
void protocol_count_answer(struct sim_world *w, uint8_t opcode, const struct sim_header *answer,
                           const struct sim_request *request);
void protocol_count(struct sim_world *w, enum sim_count count);
/* The target begins to count again. */
void protocol_counts_forget(struct sim_world *w);
void protocol_count_late_reader(struct sim_world *w);

#endif
