/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The network of a timed run: how long messages take from the port of one host to that of another.
 * It moves no octets and knows nothing of RDMA: a message is a number of octets, those of its
 * headers included.
 *
 * Links have a rate and a latency, routes are lists of links. A message cuts through: its first
 * octet goes on as soon as it is there, so that without others on its way it takes the sum of the
 * latencies and its octets at the lowest of the rates. Two wires differ in what happens when
 * messages meet on a link:
 *
 *     fifo      one after the other, in the order in which they were sent. Our own: for millions of
 *               messages.
 *     simgrid   they share it: SimGrid's max-min fairness (model CM02). SimGrid is loaded when it
 *               is asked for (wire_simgrid.c): nothing else needs it.
 *
 * A flow is what one queue pair sends to another. Of a flow one message is on the way at a time,
 * the others queue behind it: with many more SimGrid's solver takes too long. The next one begins
 * when the last octet of the one before has left, as far as the slowest link lets it.
 *
 * Equal runs on both wires have equal event times as long as no two flows share a link: times are
 * rounded up to whole nanoseconds, and events are ordered by sequences taken when they were sent.
 * That holds for rates of whole Gbit/s up to 2,000 and up to 100 s: wire_simgrid.cc says why.
 */
#ifndef KBTP_SIM_TIMED_WIRE_H
#define KBTP_SIM_TIMED_WIRE_H

#include "sim/timed/clock.h"

#define SIM_WIRE_MAX_ROUTE 16u /* links from port to port */

struct sim_link {
    char name[32];
    double octets_per_ns; /* above 0 */
    uint32_t latency_ns;
    uint64_t octets; /* that it has carried, or begun to */
    bool fat_pipe;   /* each message has the whole rate, however many there are */
};

/*
 * Ports, links, and the way from each port to each other one. Owned by the caller, constant while a
 * wire uses it, but for what links count.
 */
struct sim_topology {
    uint32_t ports, links_count;
    struct sim_link *links;
    /*
     * Writes the links from port to port; returns how many, 1 to SIM_WIRE_MAX_ROUTE. 0: there is no
     * such way, and the run is void.
     */
    uint32_t (*route)(const struct sim_topology *topology, uint32_t from, uint32_t to,
                      uint32_t links[SIM_WIRE_MAX_ROUTE]);
    const void *context;                            /* of `route` */
    void (*release)(struct sim_topology *topology); /* instead of free(context); NULL: that */
};

struct sim_wire_message {
    struct sim_wire_message *next; /* the wire's, as long as it has the message */
    uint64_t sequence;             /* for the event that its arrival is: sim_clock_plan() */
    uint32_t octets;               /* on the wire, headers included; above 0 */
};

/* All zero at first, but for `from`, `to` (different ports) and `context`. */
struct sim_wire_flow {
    uint32_t from, to;
    /* The wire's; what each message needs lies together. */
    struct sim_wire_message *under_way, *first, *last;
    uint64_t end_sequence;
    uint64_t free_ns;                /* fifo: when the next one may begin */
    uint32_t link_count, latency_ns; /* of all links; valid when link_count is not 0 */
    uint32_t links[SIM_WIRE_MAX_ROUTE];
    void *backend;
    void *context; /* the caller's */
};

struct sim_wire;

struct sim_wire_ops {
    /* The message begins now; nothing of its flow is under way. 0 or -errno. */
    int (*begin)(struct sim_wire *wire, struct sim_wire_flow *flow);
    /* Lets events happen, until there is none or the clock has stopped. 0 or -errno. */
    int (*run)(struct sim_wire *wire);
    void (*close)(struct sim_wire *wire);
};

struct sim_wire {
    const struct sim_wire_ops *ops;
    struct sim_clock *clock;
    struct sim_topology *topology;
    /*
     * It is known when a message will have arrived as a whole: at_ns, now or later. To be planned
     * with message->sequence. The message is the caller's again. Of one flow in the order of
     * sending, and with at_ns ascending.
     */
    void (*arrives)(struct sim_wire_flow *flow, struct sim_wire_message *message, uint64_t at_ns);
    uint64_t messages; /* begun */
    int failed; /* what `begin` returned, or that there is no way: the run is void, and stopped */
};

/* NULL: no memory. */
struct sim_wire *sim_wire_fifo(struct sim_clock *clock, struct sim_topology *topology);
/*
 * One engine a process: SimGrid cannot be opened twice, not even one after the other. A run that
 * was stopped, or that end_ns ended, with messages on their way cannot go on: sim_wire_run() is
 * -ECANCELED then. NULL with a line in `why`: it could not be opened, and what to do.
 */
struct sim_wire *sim_wire_simgrid(struct sim_clock *clock, struct sim_topology *topology, char *why,
                                  size_t size);
void sim_wire_close(struct sim_wire *wire);

/* Sends a message, behind those of the flow that are not yet through. */
void sim_wire_send(struct sim_wire *wire, struct sim_wire_flow *flow,
                   struct sim_wire_message *message);
/* The latency of a flow's route, without any message; 0 when there is no route. */
uint32_t sim_wire_latency_ns(struct sim_wire *wire, struct sim_wire_flow *flow);
/* Lets everything happen. 0, or -errno when the run is void. */
int sim_wire_run(struct sim_wire *wire);

/* ---- for wires --------------------------------------------------------------------------- */

/*
 * The last octet of the message under way has left at `at_ns` (now), or will have left then (later,
 * when nothing can change that any more): `arrives` is called, and at at_ns the next one begins.
 */
void sim_wire_is_through(struct sim_wire *wire, struct sim_wire_flow *flow, uint64_t at_ns);

#endif
