/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Networks made from a few numbers. Each port has a link to its switch and one back.
 *
 *     star      one switch: a route is the sender's link and the receiver's
 *     fat tree  `leaf_ports` ports a leaf switch, and a link up and one down between each leaf and
 *               the spine, which have the rates of all its ports together divided by
 *               `oversubscription` (as many cables would with perfect spreading)
 */
#ifndef KBTP_SIM_TIMED_TOPOLOGY_H
#define KBTP_SIM_TIMED_TOPOLOGY_H

#include "sim/timed/wire.h"

struct sim_topology_shape {
    uint32_t ports;            /* 2 or more */
    uint32_t leaf_ports;       /* 0: a star */
    double oversubscription;   /* of a fat tree: 1 or more */
    double octets_per_ns;      /* of a port's links */
    uint32_t latency_ns;       /* of a route within a leaf or a star: the cables and the switch */
    uint32_t spine_latency_ns; /* what a route through the spine has besides */
};

/* 0 or -ENOMEM. */
int sim_topology_make(struct sim_topology *topology, const struct sim_topology_shape *shape);
void sim_topology_free(struct sim_topology *topology);

#endif
