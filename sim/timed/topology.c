/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/timed/topology.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

/* Links: of port p 2p from it and 2p + 1 to it, behind them 2l up from leaf l and 2l + 1 down. */
struct shape {
    struct sim_topology_shape shape;
    struct sim_link links[];
};

static uint32_t route(const struct sim_topology *topology, uint32_t from, uint32_t to,
                      uint32_t links[SIM_WIRE_MAX_ROUTE])
{
    const struct sim_topology_shape *shape = topology->context;
    uint32_t count = 0;
    links[count++] = 2 * from;
    if (shape->leaf_ports && from / shape->leaf_ports != to / shape->leaf_ports) {
        links[count++] = 2 * (shape->ports + from / shape->leaf_ports);
        links[count++] = 2 * (shape->ports + to / shape->leaf_ports) + 1;
    }
    links[count++] = 2 * to + 1;
    return count;
}

static struct sim_link link_of(const struct sim_topology_shape *shape, uint32_t index)
{
    struct sim_link link = {.octets_per_ns = shape->octets_per_ns};
    const char *which = index % 2 ? "down" : "up";
    uint32_t port = index / 2;
    if (port < shape->ports) {
        /* Half of the way to the switch, half from it; an odd nanosecond is in the second. */
        link.latency_ns = (shape->latency_ns + index % 2) / 2;
        snprintf(link.name, sizeof link.name, "port%u-%s", port, which);
        return link;
    }
    uint32_t leaf = port - shape->ports, ports = shape->ports - leaf * shape->leaf_ports;
    if (ports > shape->leaf_ports)
        ports = shape->leaf_ports;
    link.octets_per_ns *= ports / shape->oversubscription;
    link.latency_ns = (shape->spine_latency_ns + index % 2) / 2;
    snprintf(link.name, sizeof link.name, "leaf%u-%s", leaf, which);
    return link;
}

int sim_topology_make(struct sim_topology *topology, const struct sim_topology_shape *shape)
{
    uint32_t leaves =
        shape->leaf_ports ? (shape->ports + shape->leaf_ports - 1) / shape->leaf_ports : 0;
    uint32_t count = 2 * (shape->ports + leaves);
    struct shape *made = malloc(sizeof *made + count * sizeof made->links[0]);
    if (!made)
        return -ENOMEM;
    made->shape = *shape;
    for (uint32_t i = 0; i < count; i++)
        made->links[i] = link_of(shape, i);
    *topology = (struct sim_topology){.ports = shape->ports,
                                      .links_count = count,
                                      .links = made->links,
                                      .route = route,
                                      .context = made};
    return 0;
}

void sim_topology_free(struct sim_topology *topology)
{
    if (topology->release)
        topology->release(topology);
    else
        free((void *)(uintptr_t)topology->context);
    *topology = (struct sim_topology){0};
}
