/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Networks made from a few numbers, or read from a platform file of SimGrid.
 *
 * Made ones: each port has a link to its switch and one back.
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

/* A port as a platform file knows it. */
struct sim_host {
    char name[48];
    char asked[64]; /* by whom, for messages: "instances[0].name in line 9 of the scenario" */
};

/* 0 or -ENOMEM. */
int sim_topology_make(struct sim_topology *topology, const struct sim_topology_shape *shape);
/*
 * That of a platform file of SimGrid, as SimGrid reads it, for any wire: port i is the host
 * hosts[i].name. Links keep their names (31 octets of them), rates and latencies (to whole
 * nanoseconds); those of policy FATPIPE are fat_pipe, WIFI is refused, and what changes in time
 * (profiles) stays as it is at first. Of CPUs and disks nothing is used.
 *
 * Needs SimGrid, as sim_wire_simgrid() does, and comes before that; one file a process. 0, or
 * -errno with a line in `why`, which names the file.
 */
int sim_topology_read(const char *platform_xml, const struct sim_host *hosts, uint32_t ports,
                      struct sim_topology *topology, char *why, size_t size);
void sim_topology_free(struct sim_topology *topology);

#endif
