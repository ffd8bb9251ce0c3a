/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The simulated RNIC: a provider of net/rdma.h whose every action is a step of a simulated world.
 *
 * An RNIC is an agent of its own. CPUs are attached to it: each gets a handle, agent->rdma, with
 * connections, completion queues, events and timers; the region table is the RNIC's. All of it lies
 * in the arena. Order of set-up, before sim_cpu_start() and the arena is sealed:
 *
 *     int rnic = sim_rnic_add(w, "X-rnic", &config);
 *     int cpu = sim_cpu_add(w, "X", SIM_AGENT_CPU, &program);
 *     sim_rnic_attach(w, cpu, rnic, &limits);
 *     sim_rnic_route(w, initiator, listeners, count);         // once everybody is attached
 *     rdma_reg(&w->agents[cpu].rdma, ...); rdma_cq_create(...); rdma_listen(...)
 *
 * Calls of net/rdma.h made outside a poll act at once. Then the RNICs' steps are left to whoever
 * picks steps, or are made at the end of each call when w->direct is set (sim_rnic_run()). For
 * ordinary programs without a world see sim/device.h.
 *
 * What takes how many steps
 *   A doorbell enters the poster's store buffer and drains as a release store does. From there on:
 *   fetch (the WQE is snapshotted), gather (a piece of local memory), emit, place (a piece into the
 *   peer's memory), deliver (the message has its effect: a receive completes, a READ may begin, a
 *   response completes its request), read (a piece for a READ response), atomic (once, or twice:
 *   read and write, unless RDMA_CAP_ATOMIC_CPU or the word is private), reply, complete (a
 *   completion of the send queue), connect, notice (DISCONNECTED), flush (the engine stops and what
 *   is posted completes FLUSHED), expire (a timer).
 *   With w->stepping.private_steps those that no other agent can tell from taking place earlier are
 *   taken at once: fetch, emit, reply; pieces of memory that is private to the handle's CPU; and
 *   the arrival of messages, if the connection cannot be lost, the sender never disconnects, and
 *   one
 *   of the two CPUs is `isolated` and has no other connection.
 *
 * Ordering, of each connection (config.ordering)
 *   STRONG      A work request begins when all earlier ones are done.
 *   INFINIBAND  Messages are placed in order, each as a whole before the next. A WRITE or SEND
 *               completes after it was placed. READs and atomics are answered in order, but the
 *               answer may be made after later WRITEs and SENDs were placed; RDMA_FENCE.
 *   RDMAP       RFC 5040 5.5, RFC 7306: pieces of all messages on the way are placed in any order,
 *               messages are delivered in order. A WRITE or SEND completes when its data was
 *               gathered. READs begin when delivered and are read in any order, atomics in order.
 *
 * Limits, beyond which nothing is explored
 *   One WQE of a queue gathers at a time. A message of more than 32 pieces offers its lowest and
 *   highest 16 at any moment.
 *   With private steps taken at once, what arrives in private memory is there whole or not at all,
 *   also when the connection ends, and messages to one CPU's private memory seem to be placed in
 *   order. The protocol may not look there before a completion; a CPU that watches memory for
 *   WRITEs of its peer must have it in a shared segment (struct sim_segment, owner).
 */
#ifndef KBTP_SIM_RNIC_H
#define KBTP_SIM_RNIC_H

#include "net/rdma.h"
#include "sim/world.h"

/* Everything that is simulated. ORDERED_WRITES and WRITE_ACKED follow from the ordering. */
#define SIM_RNIC_BITS \
    (RDMA_CAP_SEND_INV | RDMA_CAP_INV_REGION | RDMA_CAP_IMM | RDMA_CAP_FETCH_ADD | \
     RDMA_CAP_MASKED | RDMA_CAP_CAS | RDMA_CAP_ATOMIC_CPU | RDMA_CAP_BASE_TO | RDMA_CAP_SOLICITED)

struct sim_rnic_config {
    enum sim_ordering ordering;
    uint32_t bits;        /* of SIM_RNIC_BITS; others are left out */
    uint32_t binding;     /* enum rdma_binding */
    uint32_t max_message; /* octets; the same for all RNICs that talk to each other */
    uint32_t max_inline;
    uint32_t max_reads; /* of one connection and direction */
    uint32_t regions;   /* at once */
    uint32_t reserved;
    uint64_t seed; /* of rdma_random() */
    bool wqe_big_endian, atomic_memory_big_endian, atomic_reply_big_endian;
};

/* Of one handle. Memory is laid out for exactly this much, so worlds say what they need. */
struct sim_rnic_limits {
    uint32_t connections; /* at once; in a world 53 of all handles together */
    uint32_t send_depth, recv_depth;
    uint32_t max_sge;
    uint32_t reads;    /* in progress per connection and direction; up to config.max_reads */
    uint32_t timers;   /* ids below this */
    uint32_t cqs;      /* completion queues */
    uint32_t wire;     /* messages on the way per connection and direction; 0: send_depth */
    uint32_t links;    /* connections it made of which an end still exists; 0: as many as can be */
    uint32_t host;     /* sim/device.h only: which RNIC, below config.hosts */
    uint32_t connects; /* rdma_connect() succeeds so often in all; 0: without limit */
    /*
     * The CPU touches no shared memory (granted-memory watches over it): all that it learns and
     * lets others know goes through its connections.
     */
    bool isolated;
    /*
     * It never calls rdma_disconnect(): what it has posted is not lost by that, and while nothing
     * else can end its connections, a look for events that finds none is no step.
     */
    bool never_disconnects;
};

/* The agent's index, or -ENOSPC, -ENOMEM, -EINVAL. `name` is not copied. */
int sim_rnic_add(struct sim_world *w, const char *name, const struct sim_rnic_config *config);
/* Gives a CPU its handle, agent->rdma. 0, -ENOMEM, -EINVAL. */
int sim_rnic_attach(struct sim_world *w, uint32_t cpu_agent, uint32_t rnic_agent,
                    const struct sim_rnic_limits *limits);
/*
 * Where rdma_connect() of that CPU goes: its n-th one to the n-th listener, later ones to the last;
 * `address` means nothing. 0, -ENOMEM, -EINVAL.
 */
int sim_rnic_route(struct sim_world *w, uint32_t initiator, const uint32_t *listeners,
                   uint32_t count);

/*
 * Runs enabled steps of all RNICs in a fixed order until none is left. For set-up and for
 * w->direct; not in a step.
 */
void sim_rnic_run(struct sim_world *w);

/* ---- connections as the environment sees them ------------------------------------------- */

/*
 * A link is what lies between two ends: it exists from rdma_connect() until both ends are
 * destroyed. They are numbered from 0 to sim_rnic_links(w) - 1, each initiator has a range.
 */
struct sim_link_info {
    bool exists;
    bool established; /* CONNECTED was raised at the initiator's end, and neither end has ended */
    bool ending;      /* cut, failed or disconnected: ends notice, or have noticed */
    bool may_be_lost;
    uint32_t agent[2]; /* CPUs: who connected, who listened (UINT32_MAX before the request) */
    uint32_t conn[2];  /* their numbers for it */
};

uint32_t sim_rnic_links(const struct sim_world *w);
struct sim_link_info sim_rnic_link(const struct sim_world *w, uint32_t link);

/*
 * May the environment still cut this link? While it may, arrival is a step. New links get the
 * default. Both may be called in set-up and in steps of the environment.
 */
void sim_rnic_may_be_lost(struct sim_world *w, uint32_t link, bool may);
void sim_rnic_may_be_lost_default(struct sim_world *w, bool may);

/*
 * The fault: the connection breaks. What is on the way may still arrive until the receiving end
 * notices, each end at any time; then that end raises DISCONNECTED with -ECONNRESET and flushes.
 * False when it has ended, or is ending, already.
 */
bool sim_rnic_cut(struct sim_world *w, uint32_t link);
/*
 * The CPU's host stops for good: all its links are cut, its ends do nothing more and what they hold
 * is forgotten. See also sim_cpu_kill().
 */
void sim_rnic_host_dies(struct sim_world *w, uint32_t cpu_agent);

/* ---- for checkers, traces and timed runs ------------------------------------------------ */

/* Default words for accesses of kinds SIM_POST and above; false when it has none. */
bool sim_rnic_describe(struct sim_world *w, const struct sim_access *access, char *out,
                       size_t size);
/* "SEND", "READ", ...; "OK", "FLUSHED", ... */
const char *sim_rdma_op_name(uint32_t op);
const char *sim_rdma_status_name(uint32_t status);

#endif
