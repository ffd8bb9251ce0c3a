/* SPDX-License-Identifier: BSD-3-Clause */
/* Building RNICs and handles, and links as the environment sees them. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "sim/rnic_build.h"
#include "sim/rnic_state.h"

/* ---- RNICs ------------------------------------------------------------------------------- */

static void *segment_new(struct sim_world *w, const char *name, size_t octets,
                         struct sim_segment **segment)
{
    void *at = sim_segment_new(&w->arena, name, octets, SIM_STATE);
    if (at)
        *segment = sim_segment_of(&w->arena, at);
    return at;
}

/* Pieces of a message: those that its octets fill, and a broken one more for each SGE. */
static uint32_t words_for_pieces(const struct sim_world *w, uint32_t max_message)
{
    uint32_t pieces = max_message / w->scenario->machine.tear + SIM_RNIC_MAX_SGE + 1;
    return (pieces + 63) / 64;
}

static int rnics_new(struct sim_world *w, const struct sim_rnic_config *config, bool immediate)
{
    struct sim_rnics *rnics = calloc(1, sizeof *rnics);
    if (!rnics)
        return -ENOMEM;
    w->rnics = rnics;
    rnics->immediate = immediate;
    rnics->defaults = segment_new(w, "links", sizeof *rnics->defaults, &rnics->defaults_segment);
    if (!rnics->defaults)
        return -ENOMEM;
    if (immediate)
        return 0;
    rnics->packet_words = words_for_pieces(w, config->max_message);
    rnics->packet_octets =
        (uint32_t)(sizeof(struct rnic_packet) + rnics->packet_words * sizeof(uint64_t) +
                   (config->max_message + 7u) / 8 * 8);
    return 0;
}

struct sim_rnic *rnic_new(struct sim_world *w, const struct sim_rnic_config *config, bool immediate)
{
    if ((!w->rnics && rnics_new(w, config, immediate) != 0) ||
        w->rnics->rnics_count == SIM_MAX_AGENTS)
        return NULL;
    struct sim_rnic *rnic = calloc(1, sizeof *rnic);
    if (!rnic)
        return NULL;
    *rnic = (struct sim_rnic){
        .w = w, .index = w->rnics->rnics_count, .agent = UINT32_MAX, .config = *config};
    w->rnics->rnics[w->rnics->rnics_count++] = rnic;
    const uint32_t ordered = RDMA_CAP_ORDERED_WRITES | RDMA_CAP_WRITE_ACKED;
    rnic->config.bits &= immediate ? SIM_RNIC_BITS : SIM_RNIC_BITS | SIM_RNIC_CHAIN_BITS;
    if (config->ordering != SIM_ORDERING_RDMAP)
        rnic->config.bits |= ordered;
    if (config->windows == 0)
        rnic->config.bits &= ~(uint32_t)(RDMA_CAP_WINDOW | RDMA_CAP_INV_WINDOW);
    rnic->host = segment_new(w, "regions",
                             sizeof *rnic->host + config->regions * sizeof(struct rnic_region) +
                                 config->windows * sizeof(struct rnic_window),
                             &rnic->segment);
    return rnic->host ? rnic : NULL;
}

bool rnic_config_legal(const struct sim_rnic_config *config)
{
    return config->regions != 0 && config->regions <= SIM_RNIC_MAX_REGIONS &&
           config->windows <= SIM_RNIC_MAX_REGIONS - config->regions && config->max_reads <= 64 &&
           config->rnr_retry <= (config->ordering == SIM_ORDERING_RDMAP ? 0 : SIM_RNR_FOREVER);
}

/* Can it talk to those that are there? */
static bool fits(const struct sim_world *w, const struct sim_rnic_config *config)
{
    if (!w->rnics || w->rnics->rnics_count == 0)
        return true;
    const struct sim_rnic_config *first = &w->rnics->rnics[0]->config;
    return config->max_message == first->max_message && config->rnr_retry == first->rnr_retry;
}

int sim_rnic_add(struct sim_world *w, const char *name, const struct sim_rnic_config *config)
{
    if (!rnic_config_legal(config) || !fits(w, config))
        return -EINVAL;
    if (w->agents_count == SIM_MAX_AGENTS)
        return -ENOSPC;
    struct sim_rnic *rnic = rnic_new(w, config, false);
    if (!rnic)
        return -ENOMEM;
    rnic->agent = w->agents_count++;
    w->agents[rnic->agent] = (struct sim_agent){.ops = &rnic_agent_ops,
                                                .world = w,
                                                .name = name,
                                                .index = rnic->agent,
                                                .kind = SIM_AGENT_RNIC,
                                                .memory = SIM_MEMORY_SC,
                                                .rnic = rnic,
                                                .segment = rnic->segment};
    return (int)rnic->agent;
}

/* ---- handles ----------------------------------------------------------------------------- */

static int add_end(struct sim_handle *h, uint32_t conn)
{
    struct sim_world *w = h->w;
    struct end *end = &h->ends[conn];
    *end = (struct end){.handle = h, .conn = conn, .index = h->rnic->ends_count};
    end->state = segment_new(w, "connection",
                             sizeof *end->state + (size_t)h->limits.send_depth * h->wqe_octets +
                                 (size_t)h->limits.recv_depth * h->receive_octets,
                             &end->segment);
    if (!end->state)
        return -ENOMEM;
    if (!w->rnics->immediate) {
        end->stage = segment_new(
            w, "stage", sizeof *end->stage + (h->limits.reads + 1) * w->rnics->packet_octets,
            &end->stage_segment);
        if (!end->stage)
            return -ENOMEM;
    }
    if ((h->rnic->config.bits & RDMA_CAP_CHAIN) != 0) {
        end->chain = segment_new(w, "chain", sizeof *end->chain, &end->chain_segment);
        if (!end->chain)
            return -ENOMEM;
    }
    h->rnic->ends[h->rnic->ends_count++] = end;
    return 0;
}

static uint32_t ends_wanted(const struct sim_rnic_limits *limits)
{
    return limits->connections + 2 * limits->loops;
}

static int add_ends(struct sim_handle *h)
{
    struct sim_rnic *rnic = h->rnic;
    uint32_t count = ends_wanted(&h->limits);
    struct end **grown = realloc(rnic->ends, (rnic->ends_count + count) * sizeof(struct end *));
    h->ends = calloc(count, sizeof *h->ends);
    if (grown)
        rnic->ends = grown;
    if (!grown || !h->ends)
        return -ENOMEM;
    for (uint32_t i = 0; i < count; i++)
        if (add_end(h, i) != 0)
            return -ENOMEM;
    return 0;
}

static int add_link(struct sim_handle *h, struct link *link)
{
    struct sim_world *w = h->w;
    link->state = segment_new(w, "link", sizeof *link->state, &link->segment);
    if (!link->state)
        return -ENOMEM;
    link->capacity = h->limits.wire;
    uint32_t answers = h->rnic->config.rnr_retry == SIM_RNR_FOREVER ? h->limits.reads : 0;
    for (int i = 0; i < 2 && !w->rnics->immediate; i++) {
        link->wires[i].state =
            segment_new(w, "wire",
                        sizeof *link->wires[i].state +
                            (size_t)(link->capacity + answers) * w->rnics->packet_octets,
                        &link->wires[i].segment);
        if (!link->wires[i].state)
            return -ENOMEM;
    }
    return 0;
}

static int add_links(struct sim_handle *h, uint32_t count, uint32_t *first)
{
    struct sim_rnics *rnics = h->w->rnics;
    *first = rnics->links_count;
    if (count == 0)
        return 0;
    struct link *grown = realloc(rnics->links, (rnics->links_count + count) * sizeof *rnics->links);
    if (!grown)
        return -ENOMEM;
    rnics->links = grown;
    for (uint32_t i = 0; i < count; i++)
        if (add_link(h, &rnics->links[rnics->links_count++]) != 0)
            return -ENOMEM;
    return 0;
}

static int add_handle(struct sim_rnics *rnics, struct sim_handle *h)
{
    if (rnics->handles_count == rnics->handles_capacity) {
        uint32_t capacity = rnics->handles_capacity ? 2 * rnics->handles_capacity : 8;
        struct sim_handle **grown = realloc(rnics->handles, capacity * sizeof(struct sim_handle *));
        if (!grown)
            return -ENOMEM;
        rnics->handles = grown;
        rnics->handles_capacity = capacity;
    }
    h->index = rnics->handles_count;
    rnics->handles[rnics->handles_count++] = h;
    return 0;
}

/* Octets of an entry of the send queue: SGEs or, in their place, inline data. */
static uint32_t wqe_octets(const struct sim_handle *h)
{
    uint32_t sges = h->limits.max_sge * (uint32_t)sizeof(struct rdma_sge);
    uint32_t inlined = (h->rnic->config.max_inline + 7) / 8 * 8;
    return (uint32_t)sizeof(struct rnic_wqe) + (sges > inlined ? sges : inlined);
}

static uint32_t ends_of_all(const struct sim_rnics *rnics)
{
    uint32_t ends = 0;
    for (uint32_t i = 0; i < rnics->rnics_count; i++)
        ends += rnics->rnics[i]->ends_count;
    return ends;
}

static bool limits_legal(const struct sim_rnic *rnic, const struct sim_rnic_limits *limits)
{
    bool immediate = rnic->w->rnics->immediate;
    return limits->connections != 0 && limits->send_depth != 0 && limits->recv_depth != 0 &&
           limits->max_sge != 0 && limits->max_sge <= SIM_RNIC_MAX_SGE &&
           limits->reads <= rnic->config.max_reads && limits->timers <= 255 &&
           (limits->loops == 0 || (rnic->config.bits & RDMA_CAP_CHAIN) != 0) &&
           (immediate || ends_of_all(rnic->w->rnics) + ends_wanted(limits) <= SIM_RNIC_MAX_ENDS);
}

struct sim_handle *rnic_handle_new(struct sim_rnic *rnic, const struct sim_rnic_limits *limits)
{
    struct sim_world *w = rnic->w;
    if (!limits_legal(rnic, limits))
        return NULL;
    struct sim_handle *h = calloc(1, sizeof *h);
    if (!h || add_handle(w->rnics, h) != 0) {
        free(h);
        return NULL;
    }
    h->w = w;
    h->rnic = rnic;
    h->limits = *limits;
    if (limits->wire == 0)
        h->limits.wire = limits->send_depth;
    if (w->rnics->immediate)
        h->limits.links = limits->connections;
    h->wqe_octets = w->rnics->immediate ? 0 : wqe_octets(h);
    h->receive_octets =
        (uint32_t)(sizeof(struct rnic_receive) + limits->max_sge * sizeof(struct rdma_sge));
    h->port = segment_new(w, "events and timers",
                          sizeof *h->port + limits->timers * sizeof(uint64_t) +
                              SIM_RNIC_EVENTS(limits) * sizeof(struct rnic_event),
                          &h->port_segment);
    h->cqs = calloc(limits->cqs ? limits->cqs : 1, sizeof *h->cqs);
    if (!h->port || !h->cqs || add_ends(h) != 0 ||
        (w->rnics->immediate && add_links(h, h->limits.links, &h->first_link) != 0) ||
        add_links(h, h->limits.loops, &h->first_loop) != 0)
        return NULL; /* what there is goes with the world */
    return h;
}

int sim_rnic_attach(struct sim_world *w, uint32_t cpu_agent, uint32_t rnic_agent,
                    const struct sim_rnic_limits *limits)
{
    struct sim_agent *agent = &w->agents[cpu_agent];
    struct sim_rnic *rnic = w->agents[rnic_agent].rnic;
    if (!rnic || !agent->cpu || agent->handle || !limits_legal(rnic, limits))
        return -EINVAL;
    struct sim_handle *h = rnic_handle_new(rnic, limits);
    if (!h)
        return -ENOMEM;
    h->agent = agent;
    agent->handle = h;
    agent->rdma.ops = &rnic_agent_rdma_ops;
    return 0;
}

/* Of each an end still exists: its own, or that of somebody it connects to. */
static uint32_t most_links(const struct sim_handle *h)
{
    uint32_t links = h->limits.connections;
    for (uint32_t i = 0; i < h->route_count; i++) {
        bool counted = false;
        for (uint32_t j = 0; j < i; j++)
            counted = counted || h->route[j] == h->route[i];
        if (!counted)
            links += h->w->agents[h->route[i]].handle->limits.connections;
    }
    return links;
}

int sim_rnic_route(struct sim_world *w, uint32_t initiator, const uint32_t *listeners,
                   uint32_t count)
{
    struct sim_handle *h = w->agents[initiator].handle;
    if (!h || h->route || count == 0)
        return -EINVAL;
    for (uint32_t i = 0; i < count; i++)
        if (listeners[i] >= w->agents_count || !w->agents[listeners[i]].handle)
            return -EINVAL;
    h->route = calloc(count, sizeof *h->route);
    if (!h->route)
        return -ENOMEM;
    memcpy(h->route, listeners, count * sizeof *listeners);
    h->route_count = count;
    if (h->limits.links == 0)
        h->limits.links = most_links(h);
    return add_links(h, h->limits.links, &h->first_link);
}

void rnic_free_all(struct sim_world *w)
{
    struct sim_rnics *rnics = w->rnics;
    if (!rnics)
        return;
    for (uint32_t i = 0; i < rnics->handles_count; i++) {
        free(rnics->handles[i]->ends);
        free(rnics->handles[i]->cqs);
        free(rnics->handles[i]->route);
        free(rnics->handles[i]->address);
        free(rnics->handles[i]);
    }
    for (uint32_t i = 0; i < rnics->rnics_count; i++) {
        free(rnics->rnics[i]->ends);
        free(rnics->rnics[i]);
    }
    free(rnics->handles);
    free(rnics->links);
    free(rnics);
    w->rnics = NULL;
}

bool sim_rnic_is_of_host(const struct sim_world *w, uint32_t cpu_agent,
                         const struct sim_segment *segment)
{
    const struct sim_handle *h = w->agents[cpu_agent].handle;
    for (uint32_t i = 0; i < h->limits.cqs; i++)
        if (h->cqs[i].state && h->cqs[i].segment == segment)
            return true;
    return segment == h->port_segment || segment == h->rnic->segment;
}

bool sim_rnic_has_news(const struct sim_world *w, uint32_t cpu_agent)
{
    const struct sim_handle *h = w->agents[cpu_agent].handle;
    for (uint32_t i = 0; i < h->limits.cqs; i++)
        if (h->cqs[i].state && h->cqs[i].state->count != 0)
            return true;
    return h->port->events != 0;
}

/* ---- links ------------------------------------------------------------------------------- */

uint32_t sim_rnic_links(const struct sim_world *w)
{
    return w->rnics ? w->rnics->links_count : 0;
}

void sim_rnic_links_of(const struct sim_world *w, uint32_t cpu_agent, uint32_t *first,
                       uint32_t *count)
{
    const struct sim_handle *h = w->agents[cpu_agent].handle;
    *first = h->first_link;
    *count = h->limits.links;
}

static bool side_lives(const struct sim_world *w, const struct rnic_link *link, uint32_t side)
{
    const struct end *end = rnic_end_at(w, link, side);
    return end && end->state->state == END_ESTABLISHED && !end->state->noticed;
}

/* What lies between the ends of a chain queue concerns nobody else. */
static bool is_loop(const struct sim_world *w, const struct rnic_link *link)
{
    const struct end *end = rnic_end_at(w, link, 0);
    return end && rnic_is_loop(end);
}

struct sim_link_info sim_rnic_link(const struct sim_world *w, uint32_t link)
{
    const struct rnic_link *l = w->rnics->links[link].state;
    if (is_loop(w, l))
        return (struct sim_link_info){.agent = {UINT32_MAX, UINT32_MAX}};
    struct sim_link_info info = {.exists = l->state != LINK_FREE,
                                 .ending = l->ending != LINK_LIVES,
                                 .may_be_lost = l->may_be_lost,
                                 .agent = {UINT32_MAX, UINT32_MAX}};
    for (uint32_t side = 0; side < 2; side++) {
        const struct end *end = rnic_end_at(w, l, side);
        if (!end)
            continue;
        info.agent[side] = end->handle->agent ? end->handle->agent->index : UINT32_MAX;
        info.conn[side] = end->conn;
    }
    info.established =
        l->state == LINK_ESTABLISHED && side_lives(w, l, 0) &&
        (side_lives(w, l, 1) ||
         (rnic_end_at(w, l, 1) && rnic_end_at(w, l, 1)->state->state == END_ACCEPTED));
    return info;
}

static void stir_both(struct sim_world *w, const struct rnic_link *link)
{
    for (uint32_t side = 0; side < 2; side++) {
        struct end *end = rnic_end_at(w, link, side);
        if (end)
            rnic_stir(end);
    }
}

void sim_rnic_may_be_lost(struct sim_world *w, uint32_t link, bool may)
{
    struct link *l = &w->rnics->links[link];
    if (l->state->state == LINK_FREE || l->state->may_be_lost == may)
        return;
    rnic_touch(w, l->segment);
    l->state->may_be_lost = may;
    stir_both(w, l->state);
}

void sim_rnic_may_be_lost_default(struct sim_world *w, bool may)
{
    rnic_touch(w, w->rnics->defaults_segment);
    w->rnics->defaults->may_be_lost = may;
}

bool sim_rnic_cut(struct sim_world *w, uint32_t link)
{
    struct link *l = &w->rnics->links[link];
    rnic_look(w, l->segment);
    if (l->state->state == LINK_FREE || l->state->ending != LINK_LIVES || is_loop(w, l->state))
        return false;
    rnic_touch(w, l->segment);
    l->state->ending = LINK_CUT;
    l->state->error = -ECONNRESET;
    l->state->may_be_lost = 0;
    stir_both(w, l->state);
    const struct end *end = rnic_end_at(w, l->state, 0);
    if (end && !w->rnics->immediate)
        rnic_observe(end, (struct sim_access){.kind = SIM_CUT, .value = link});
    return true;
}

void sim_rnic_host_dies(struct sim_world *w, uint32_t cpu_agent)
{
    rnic_host_dies(w->agents[cpu_agent].handle, false);
}

void sim_rnic_host_falls_silent(struct sim_world *w, uint32_t cpu_agent)
{
    rnic_host_dies(w->agents[cpu_agent].handle, true);
}

static void end_dies(struct end *end, bool silently)
{
    struct sim_handle *h = end->handle;
    struct sim_world *w = h->w;
    rnic_look(w, h->rnic->segment);
    if (h->rnic->host->atomic == end->index + 1) {
        rnic_touch(w, h->rnic->segment);
        h->rnic->host->atomic = 0;
    }
    if (silently) {
        rnic_falls_silent(end);
        return;
    }
    sim_rnic_cut(w, end->state->link - 1);
    struct end *peer = rnic_peer(end);
    if (peer)
        rnic_stir(peer);
    rnic_release(end);
}

void rnic_host_dies(struct sim_handle *h, bool silently)
{
    struct sim_world *w = h->w;
    rnic_touch(w, h->port_segment);
    for (uint32_t i = 0; i < ends_wanted(&h->limits); i++)
        if (h->ends[i].state->state != END_FREE)
            end_dies(&h->ends[i], silently);
    for (uint32_t i = 0; i < h->limits.cqs; i++) {
        if (!h->cqs[i].state)
            continue;
        rnic_touch(w, h->cqs[i].segment);
        struct rnic_cq *cq = h->cqs[i].state;
        *cq = (struct rnic_cq){.depth = cq->depth, .used = cq->used};
        memset(cq->entries, 0, cq->depth * sizeof *cq->entries);
    }
    memset(h->port, 0, h->port_segment->size);
    h->port->dead = 1;
}
