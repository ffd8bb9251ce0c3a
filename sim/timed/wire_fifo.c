/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages meet on a link one after the other, in the order in which they were sent. */
#include "sim/timed/wire.h"

#include <math.h>
#include <stdlib.h>

#define PS 1000u /* of a nanosecond: links are occupied to the picosecond */
/* 106 days: later than anything that happens, and what is added to it does not overflow. */
#define LATEST_PS (UINT64_MAX / 2)

struct fifo {
    struct sim_wire wire;
    uint64_t free_ps[]; /* by link: when the last message begun on it will have passed */
};

/*
 * When the last octet passes the end of the route, less the latencies: on each link the first octet
 * is there a latency after it began on the one before, and waits for those before it; the last one
 * comes off the link that is through with it last.
 * A link is taken when the message is sent, though its first octet may come later: over links
 * before it, or with other latencies than messages from elsewhere.
 */
static uint64_t through_ps(struct fifo *fifo, const struct sim_wire_flow *flow)
{
    const struct sim_topology *topology = fifo->wire.topology;
    uint64_t begin_ps = fifo->wire.clock->now_ns * PS, through_ps = 0;
    for (uint32_t i = 0; i < flow->link_count; i++) {
        uint32_t link = flow->links[i];
        double octets = flow->under_way->octets;
        double passes_ps = ceil(octets * PS / topology->links[link].octets_per_ns - 1e-6);
        if (fifo->free_ps[link] > begin_ps)
            begin_ps = fifo->free_ps[link];
        uint64_t passed_ps =
            passes_ps < (double)(LATEST_PS - begin_ps) ? begin_ps + (uint64_t)passes_ps : LATEST_PS;
        if (!topology->links[link].fat_pipe)
            fifo->free_ps[link] = passed_ps;
        if (passed_ps > through_ps)
            through_ps = passed_ps;
    }
    return through_ps;
}

static int fifo_begin(struct sim_wire *wire, struct sim_wire_flow *flow)
{
    uint64_t through = through_ps((struct fifo *)wire, flow);
    sim_wire_is_through(wire, flow, (through + PS - 1) / PS);
    return 0;
}

static int fifo_run(struct sim_wire *wire)
{
    while (sim_clock_next(wire->clock) != SIM_CLOCK_NEVER)
        sim_clock_step(wire->clock);
    return 0;
}

static void fifo_close(struct sim_wire *wire)
{
    free(wire);
}

static const struct sim_wire_ops fifo_ops = {fifo_begin, fifo_run, fifo_close};

struct sim_wire *sim_wire_fifo(struct sim_clock *clock, struct sim_topology *topology)
{
    struct fifo *fifo = calloc(1, sizeof *fifo + topology->links_count * sizeof fifo->free_ps[0]);
    if (!fifo)
        return NULL;
    fifo->wire = (struct sim_wire){.ops = &fifo_ops, .clock = clock, .topology = topology};
    return &fifo->wire;
}
