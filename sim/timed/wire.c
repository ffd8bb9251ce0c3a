/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/timed/wire.h"

#include <assert.h>
#include <errno.h>

static void find_route(struct sim_wire *wire, struct sim_wire_flow *flow)
{
    struct sim_topology *topology = wire->topology;
    flow->link_count = topology->route(topology, flow->from, flow->to, flow->links);
    if (flow->link_count == 0) {
        wire->failed = -ENETUNREACH;
        wire->clock->stopped = true;
    }
    flow->latency_ns = 0;
    for (uint32_t i = 0; i < flow->link_count; i++)
        flow->latency_ns += topology->links[flow->links[i]].latency_ns;
}

uint32_t sim_wire_latency_ns(struct sim_wire *wire, struct sim_wire_flow *flow)
{
    if (flow->link_count == 0)
        find_route(wire, flow);
    return flow->latency_ns;
}

/* The first of the queue. */
static void begin(struct sim_wire *wire, struct sim_wire_flow *flow)
{
    struct sim_wire_message *message = flow->first;
    flow->first = message->next;
    if (!flow->first)
        flow->last = NULL;
    message->next = NULL;
    flow->under_way = message;
    message->sequence = sim_clock_sequence(wire->clock);
    flow->end_sequence = sim_clock_sequence(wire->clock);
    wire->messages++;
    for (uint32_t i = 0; i < flow->link_count; i++)
        wire->topology->links[flow->links[i]].octets += message->octets;
    int failed = wire->ops->begin(wire, flow);
    if (failed) {
        wire->failed = failed;
        wire->clock->stopped = true;
    }
}

/* The one before is through. */
static void go_on(void *context, uint64_t number)
{
    struct sim_wire *wire = context;
    struct sim_wire_flow *flow = (struct sim_wire_flow *)(uintptr_t)number;
    begin(wire, flow);
}

/* Is the last octet of the one before away? At the same time the sequence decides. */
static bool is_free(const struct sim_clock *clock, const struct sim_wire_flow *flow)
{
    return flow->free_ns < clock->now_ns ||
           (flow->free_ns == clock->now_ns && flow->end_sequence < clock->current);
}

void sim_wire_send(struct sim_wire *wire, struct sim_wire_flow *flow,
                   struct sim_wire_message *message)
{
    if (flow->link_count == 0)
        find_route(wire, flow);
    if (flow->link_count == 0)
        return; /* the run has stopped */
    message->next = NULL;
    if (flow->last)
        flow->last->next = message;
    else
        flow->first = message;
    flow->last = message;
    if (flow->under_way || flow->first != message)
        return;
    if (is_free(wire->clock, flow))
        begin(wire, flow);
    else
        sim_clock_plan(wire->clock, flow->free_ns, flow->end_sequence, go_on, wire,
                       (uint64_t)(uintptr_t)flow);
}

void sim_wire_is_through(struct sim_wire *wire, struct sim_wire_flow *flow, uint64_t at_ns)
{
    struct sim_wire_message *message = flow->under_way;
    flow->under_way = NULL;
    flow->free_ns = at_ns;
    if (flow->first)
        sim_clock_plan(wire->clock, at_ns, flow->end_sequence, go_on, wire,
                       (uint64_t)(uintptr_t)flow);
    wire->arrives(flow, message, at_ns + flow->latency_ns);
}

int sim_wire_run(struct sim_wire *wire)
{
    int failed = wire->ops->run(wire);
    if (wire->failed)
        return wire->failed;
    return wire->clock->no_memory ? -ENOMEM : failed;
}

void sim_wire_close(struct sim_wire *wire)
{
    if (wire)
        wire->ops->close(wire);
}
