/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What kbtp and its module of SimGrid (kbtp-simgrid.so) have of each other. The module is C++ and
 * links libsimgrid; it is loaded when a run asks for it, so that no program needs SimGrid or C++ to
 * start. It gets our functions in a table, for programs do not export symbols.
 */
#ifndef KBTP_SIM_TIMED_WIRE_SIMGRID_H
#define KBTP_SIM_TIMED_WIRE_SIMGRID_H

#include "sim/timed/topology.h"

/* Both sides have been built from the same structures, as far as sizes tell. */
#define SIM_SIMGRID_BUILD \
    ((uint64_t)sizeof(struct sim_wire) << 36 ^ (uint64_t)sizeof(struct sim_link) << 48 ^ \
     (uint64_t)sizeof(struct sim_wire_flow) << 24 ^ (uint64_t)sizeof(struct sim_topology) << 12 ^ \
     (uint64_t)sizeof(struct sim_clock))

/* Of the program, for the module: of clock.h and wire.h. */
struct sim_simgrid_program {
    void (*plan)(struct sim_clock *clock, uint64_t at_ns, uint64_t sequence, sim_clock_fn *happens,
                 void *context, uint64_t number);
    uint64_t (*next)(const struct sim_clock *clock);
    void (*step)(struct sim_clock *clock);
    void (*is_through)(struct sim_wire *wire, struct sim_wire_flow *flow, uint64_t at_ns);
};

/* Of the module, for the program: its one symbol. */
#define SIM_SIMGRID_SYMBOL "kbtp_simgrid"
struct sim_simgrid_module {
    uint64_t build; /* SIM_SIMGRID_BUILD */
    struct sim_wire *(*open)(const struct sim_simgrid_program *program, struct sim_clock *clock,
                             struct sim_topology *topology, char *why, size_t size);
    int (*read)(const char *platform_xml, const struct sim_host *hosts, uint32_t ports,
                struct sim_topology *topology, char *why, size_t size);
};

#endif
