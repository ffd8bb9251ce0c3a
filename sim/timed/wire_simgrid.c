/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>

#include "sim/timed/wire.h"

struct sim_wire *sim_wire_simgrid(struct sim_clock *clock, struct sim_topology *topology, char *why,
                                  size_t size)
{
    (void)clock, (void)topology;
    snprintf(why, size, "this program was built without SimGrid, use --wire fifo");
    return NULL;
}
