/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * RNICs in simulated time, a message at a time: a provider of net/rdma.h for runs that are too
 * large for worlds of steps (sim/rnic.h). What a message does it does at one moment; when that is
 * follows from the cost model, from what occupies the RNICs and PCIe, and from the wire.
 *
 * A message in stages, each with its time in struct sim_costs:
 *
 *     doorbell, fetch      from the end of what the CPU did before; a single work request goes with
 *                          its doorbell, several are fetched together
 *     sending side         one message after the other
 *     DMA read             of its octets, which may be slower than the link
 *     wire                 sim/timed/wire.h; a packet leaves when it is read
 *     receiving side       one message after the other
 *     DMA write            of its octets; a packet is written when it is here
 *     completion           at the receiver; at the sender when it was acknowledged
 *
 * A READ or atomic has its request go there without octets, is answered by the RNIC in the same
 * stages, and completes with the answer. Messages of a connection are placed and delivered in
 * order, which all bindings allow; so what depends on orders (I-03, I-06) is not seen here.
 *
 * An RNIC is one port of the wire. A CPU is attached by a handle. What it does takes time, which
 * begins at the clock's `now` and is added up while it runs: sim_nic_spent_ps().
 *
 * Phantom memory stands for pools of any size: addresses without octets. What is moved is a tag a
 * block (struct sim_tag), which says whose content it is. It takes as long as the octets would.
 *
 * What is occupied is given away in the order in which messages are begun, not in that in which
 * they are ready: one that has still to be fetched, or comes over a longer route, can hold up one
 * that is ready before it, by what it is later.
 *
 * Limits: no chains. Acknowledgements, completions and work requests are no octets on link or PCIe.
 * What is on the way when a connection ends does not arrive.
 */
#ifndef KBTP_SIM_TIMED_NIC_H
#define KBTP_SIM_TIMED_NIC_H

#include "net/mem.h"
#include "net/rdma.h"
#include "sim/timed/costs.h"
#include "sim/timed/wire.h"

#define SIM_NIC_SGES 4u

/* Everything that it can do. */
#define SIM_NIC_BITS \
    (RDMA_CAP_SEND_INV | RDMA_CAP_INV_REGION | RDMA_CAP_INV_WINDOW | RDMA_CAP_IMM | \
     RDMA_CAP_FETCH_ADD | RDMA_CAP_MASKED | RDMA_CAP_CAS | RDMA_CAP_ATOMIC_CPU | RDMA_CAP_WINDOW | \
     RDMA_CAP_BASE_TO | RDMA_CAP_ORDERED_WRITES | RDMA_CAP_WRITE_ACKED | RDMA_CAP_SOLICITED)

struct sim_nics;

struct sim_nic_config {
    uint32_t nics;    /* as many as the wire has ports */
    uint32_t bits;    /* of SIM_NIC_BITS */
    uint32_t binding; /* enum rdma_binding */
    uint32_t max_message, max_inline, max_reads, max_queue;
    uint64_t seed; /* of rdma_random() */
};

/* Of a handle. */
struct sim_nic_limits {
    uint32_t nic;
    uint32_t connections, timers, cqs;
};

/* NULL: no memory. The wire's `arrives` is theirs from now on. Wire and costs outlast them. */
struct sim_nics *sim_nics_open(struct sim_wire *wire, const struct sim_costs *costs,
                               const struct sim_nic_config *config);
void sim_nics_close(struct sim_nics *nics);
struct sim_clock *sim_nics_clock(const struct sim_nics *nics);

/* Owned by the RNICs. NULL: no memory. Several handles may listen at one address: each connection
 * goes to the next of them. */
struct rdma *sim_nic_handle(struct sim_nics *nics, const struct sim_nic_limits *limits);

/* ---- the CPU of a handle ----------------------------------------------------------------- */

struct sim_nic_cpu {
    /* Something is there to be polled; the clock's now says since when. */
    void (*wake)(void *context);
    /* A completion is polled that is OK: what the CPU will do about it takes so long. `octets`: of
     * a receive, `length` of them, else NULL. May be NULL. */
    double (*work_ns)(void *context, uint32_t op, const void *octets, uint32_t length);
    /* A WRITE of the peer is in memory now, of which no completion tells. May be NULL. */
    void (*written)(void *context);
    void *context;
};
void sim_nic_attach(struct rdma *handle, const struct sim_nic_cpu *cpu);
/* The CPU runs from now on; so much is spent already. */
void sim_nic_run(struct rdma *handle, uint64_t spent_ps);
void sim_nic_spend(struct rdma *handle, double ns);
uint64_t sim_nic_spent_ps(const struct rdma *handle);
/* Would a poll of its completion queues or events find something? */
bool sim_nic_has_news(const struct rdma *handle);

/* ---- phantom memory ---------------------------------------------------------------------- */

/*
 * What the first 16 octets of a block say. When a block is moved between phantom and real memory
 * they are all that is moved; the rest of the real octets stay as they are. All zero: nothing was
 * ever put there.
 */
struct sim_tag {
    uint64_t content;
    uint32_t length; /* octets */
    uint32_t reserved;
};

struct sim_phantom {
    char *base; /* addresses that nobody may touch */
    uint64_t octets;
    uint32_t block; /* octets: one tag each; nothing that is moved is in two of them */
    struct sim_tag *tags;
};

/* Of `count` blocks; owned by the RNICs. NULL: no memory, or no address space. */
struct sim_phantom *sim_nic_phantom(struct sim_nics *nics, uint64_t count, uint32_t block);
struct sim_tag *sim_phantom_tag(const struct sim_phantom *phantom, const void *at);

/*
 * How the CPU of a handle reaches memory: copying and clearing take it time. Of phantom memory,
 * which may be NULL, it copies and clears the tags.
 */
struct sim_nic_mem {
    struct mem mem; /* first */
    const struct sim_phantom *phantom;
    struct rdma *handle;
};
void sim_nic_mem(struct sim_nic_mem *mem, const struct sim_phantom *phantom, struct rdma *handle);

/* ---- what it was like -------------------------------------------------------------------- */

struct sim_nic_use {
    uint64_t sent, received; /* messages; answers to READs and atomics too */
    uint64_t send_busy_ps, receive_busy_ps, dma_read_busy_ps, dma_write_busy_ps, atomic_busy_ps;
};
const struct sim_nic_use *sim_nic_used(const struct sim_nics *nics, uint32_t nic);
/* Of every completion and event, with its time. */
uint64_t sim_nics_digest(const struct sim_nics *nics);
/* Messages that are made and have not been done with: until one of them is, the clock may have no
 * event, as those on a wire have none. */
uint64_t sim_nics_under_way(const struct sim_nics *nics);
/* Octets of memory in use, and messages under way, each at most. */
size_t sim_nics_memory(const struct sim_nics *nics);
uint64_t sim_nics_most_under_way(const struct sim_nics *nics);

/* Timed events, for pictures; called when it is known. */
enum sim_nic_span { SIM_SPAN_SEND, SIM_SPAN_WIRE, SIM_SPAN_RECEIVE };
struct sim_nic_watch {
    void (*span)(void *context, enum sim_nic_span kind, uint32_t nic, uint32_t op, uint32_t octets,
                 uint64_t begin_ps, uint64_t end_ps);
    void *context;
};
void sim_nics_watch(struct sim_nics *nics, const struct sim_nic_watch *watch);

/* ---- the environment --------------------------------------------------------------------- */

/* The connection breaks: both ends notice, this one now. -EINVAL: there is none. */
int sim_nic_cut(struct rdma *handle, uint32_t conn);
/* For tests: timer `id` expires now. False: it is not armed. */
bool sim_nic_expire(struct rdma *handle, uint32_t id);
/* Timers that are armed: they alone are left where nothing else will happen. */
uint64_t sim_nics_timers(const struct sim_nics *nics);

#endif
