/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages over a wire, planned before it runs, and what then happened, in order. The same traffic
 * can run on each wire; on SimGrid's in a process of its own, as SimGrid runs once a process.
 */
#ifndef KBTP_TESTS_SIM_TIMED_TRAFFIC_H
#define KBTP_TESTS_SIM_TIMED_TRAFFIC_H

#include "sim/timed/topology.h"

/* A message was sent, or has arrived. */
struct traffic_event {
    uint64_t at_ns;
    uint32_t message; /* from 0, as they were planned */
    bool arrived;
};

struct traffic_log {
    uint64_t end_ns;                /* the last arrival */
    uint32_t count;                 /* of events */
    int failed;                     /* what sim_wire_run() said */
    char why[200];                  /* why there was no wire */
    uint32_t early;                 /* calls of wire->arrives before the last octet had left */
    long printed;                   /* octets, by SimGrid's process */
    struct traffic_event events[1]; /* as many as happen: traffic_log_new() */
};

struct traffic_message {
    struct sim_wire_message message; /* first */
    struct sim_wire_flow *flow;
};

struct traffic {
    struct sim_topology topology;
    struct sim_clock clock;
    struct sim_wire *wire;
    struct sim_wire_flow *flows;
    struct traffic_message *messages;
    uint32_t flows_count, messages_count;
    struct traffic_log *log; /* of a run: shared with the process it runs in */
};

/* The topology is the traffic's from then on. */
void traffic_open(struct traffic *t, const struct sim_topology *topology, uint32_t flows,
                  uint32_t messages);
void traffic_close(struct traffic *t);
/* A flow's number. */
uint32_t traffic_flow(struct traffic *t, uint32_t from, uint32_t to);
void traffic_send(struct traffic *t, uint32_t flow, uint64_t at_ns, uint32_t octets);
/* Of every wire that runs it: wire->arrives. */
void traffic_arrives(struct sim_wire_flow *flow, struct sim_wire_message *message, uint64_t at_ns);
/* On the fifo wire; once. */
const struct traffic_log *traffic_fifo(struct traffic *t);
/* On SimGrid's, in another process: as often as one wants, before the other one. */
struct traffic_log *traffic_simgrid(struct traffic *t);
void traffic_log_free(struct traffic *t, struct traffic_log *log);
/* What happened is the same, in the same order and at the same time. */
bool traffic_is_same(const struct traffic_log *a, const struct traffic_log *b);

/* Like a die, from a seed that is not 0. */
uint32_t traffic_chance(uint64_t *seed, uint32_t below);

#endif
