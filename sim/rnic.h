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
 *   one of the two CPUs is `isolated` and has no other connection. Never at once: the fetch of a
 *   BIND or LOCAL_INV, which is its execution, and the arrival of what names a window's STag, since
 *   it depends on those.
 *
 * Regions and windows
 *   Rights are looked up for every piece that is placed or read, and for both halves of an atomic:
 *   after an invalidation no further piece moves, and the message fails with REMOTE_ACCESS when it
 *   is delivered, unless all of it was placed before.
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
 * Chains (RDMA_CAP_CHAIN, in worlds only; limits.loops)
 *   The memory of chain queues, and what chains patch or read, must be shared. A work request is
 *   copied from it in a step, snapshot, at any time after it was enabled, and as long as there is
 *   room in the send queue it is part of (limits.send_depth says how many are fetched ahead): then
 *   it is as if posted. rdma_chain_put() is one step, since nobody may look before it is enabled.
 *   At once: WAIT, ENABLE and the completions of LOOP and CTRL queues, which let others go on to a
 *   snapshot and nothing else. When a loop fails it flushes, and all that is enabled later, too.
 *   No BIND, LOCAL_INV, RDMA_INLINE, WAITD, CENABLE.
 *
 * No receive posted (config.rnr_retry)
 *   Below SIM_RNR_FOREVER the message fails with RNR when it is delivered, and the connection ends.
 *   1 to 6 are as 0: where a message may arrive at any time, trying again so often leads nowhere
 *   else. With SIM_RNR_FOREVER (not RDMAP) it waits until there is one, and so do all messages
 *   and requests of that sender behind it; earlier ones have had their effect, the data of a
 *   WRITE_IMM that waits may be placed, and answers to READs and atomics of the peer pass by.
 *   It completes when it was delivered, or FLUSHED. The NAKs that are exchanged are no steps.
 *
 * Limits, beyond which nothing is explored
 *   With private steps taken at once, a receive is posted with the access before it in its poll:
 *   that a message comes just in between, and fails with RNR, is not seen.
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
#include "sim/rnic_config.h"
#include "sim/world.h"

/* The agent's index, or -ENOSPC, -ENOMEM, -EINVAL. `name` is not copied. */
int sim_rnic_add(struct sim_world *w, const char *name, const struct sim_rnic_config *config);
/* Gives a CPU its handle, agent->rdma. 0, -ENOMEM, -EINVAL. */
int sim_rnic_attach(struct sim_world *w, uint32_t cpu_agent, uint32_t rnic_agent,
                    const struct sim_rnic_limits *limits);
/* What rdma_chain_octets() says of handles with so many SGEs, before there is one. */
uint32_t sim_rnic_chain_octets(uint32_t max_sge, uint32_t depth);
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
/* The range of those that this CPU may make. */
void sim_rnic_links_of(const struct sim_world *w, uint32_t cpu_agent, uint32_t *first,
                       uint32_t *count);
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
/*
 * The same, as when the power fails: its peers are told nothing. What they send is not answered, so
 * that a sender, and only a sender, finds out: at any time it gives up (a step), its oldest work
 * request without an answer completes with LOST, and the connection ends. Connections that are yet
 * to be made, or end already, are cut.
 */
void sim_rnic_host_falls_silent(struct sim_world *w, uint32_t cpu_agent);

/* Does this segment hold what the CPU's handle or its RNIC keeps, other than connections? */
bool sim_rnic_is_of_host(const struct sim_world *w, uint32_t cpu_agent,
                         const struct sim_segment *segment);

/* Would a poll of this CPU's completion queues or events find anything? */
bool sim_rnic_has_news(const struct sim_world *w, uint32_t cpu_agent);

/* ---- for checkers, traces and timed runs ------------------------------------------------ */

/* Default words for accesses of kinds SIM_POST and above; false when it has none. */
bool sim_rnic_describe(struct sim_world *w, const struct sim_access *access, char *out,
                       size_t size);
/* "SEND", "READ", ...; "OK", "FLUSHED", ... */
const char *sim_rdma_op_name(uint32_t op);
const char *sim_rdma_status_name(uint32_t status);

#endif
