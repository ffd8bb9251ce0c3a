/* SPDX-License-Identifier: BSD-3-Clause */
/* The agent: which steps are enabled, running one, and what is taken at once. */
#include <assert.h>

#include "sim/rnic_build.h"
#include "sim/rnic_state.h"

/* ---- telling ----------------------------------------------------------------------------- */

void rnic_observe(const struct end *end, struct sim_access access)
{
    struct sim_world *w = end->handle->w;
    if (__builtin_expect(w->observe == NULL, 1))
        return;
    access.agent = end->handle->rnic->agent;
    access.cpu = end->handle->agent->index;
    access.conn = end->conn;
    w->observe(w->observe_context, &access);
}

void rnic_tell(const struct end *end, struct rnic_packet *packet, bool delivered, uint8_t status,
               uint64_t wr_id)
{
    struct sim_world *w = end->handle->w;
    const struct rnic_link *link = rnic_link_of(end)->state;
    uint32_t from = delivered ? 1u - end->state->side : end->state->side;
    struct sim_message message = {
        .phase = delivered ? SIM_DELIVERED : SIM_SENT,
        .link = end->state->link - 1,
        .from = w->rnics->handles[link->handles[from] - 1]->agent->index,
        .to = w->rnics->handles[link->handles[1 - from] - 1]->agent->index,
        .op = packet->op,
        .status = status,
        .response = packet->type == PACKET_RESPONSE,
        .flags = packet->flags,
        .payload = packet->type == PACKET_REQUEST ? NULL : rnic_payload(w, packet),
        .length = packet->length,
        .stag = packet->stag,
        .remote_to = packet->remote_to,
        .imm = packet->imm_stag,
        .wr_id = wr_id,
    };
    for (uint32_t i = 0; i < w->checkers_count; i++)
        if (w->checkers[i]->message)
            w->checkers[i]->message(w, &message);
    if (w->ops && w->ops->message)
        w->ops->message(w, &message);
}

/* ---- the wire ---------------------------------------------------------------------------- */

/* Will anybody receive what this end sends? */
static bool is_heard(const struct end *end)
{
    const struct link *link = rnic_link_of(end);
    const struct rnic_link_side *other = &link->state->sides[1 - end->state->side];
    rnic_look(end->handle->w, link->segment);
    return other->handle != 0 && !other->stopped && !other->refuses;
}

bool rnic_wire_room(const struct end *end, bool response)
{
    const struct sim_world *w = end->handle->w;
    const struct link *link = rnic_link_of(end);
    if (!is_heard(end))
        return true;
    struct rnic_wire *wire = link->wires[end->state->side].state;
    uint32_t packets = wire->packets;
    rnic_look(end->handle->w, link->wires[end->state->side].segment);
    if (end->handle->rnic->config.rnr_retry != SIM_RNR_FOREVER)
        return packets < link->capacity;
    for (uint32_t i = 0; i < wire->packets; i++)
        packets -= rnic_packet(w, wire, i)->type == PACKET_RESPONSE;
    return response || packets < link->capacity;
}

void rnic_send(struct end *end, struct rnic_packet *packet)
{
    struct sim_world *w = end->handle->w;
    struct link *link = rnic_link_of(end);
    struct rnic_wire *wire = link->wires[end->state->side].state;
    rnic_observe(end, (struct sim_access){.kind = SIM_EMIT,
                                          .op = packet->op,
                                          .octets = packet->length,
                                          .response = packet->type == PACKET_RESPONSE});
    rnic_tell(end, packet, false, RDMA_OK, 0);
    rnic_sent_to(end, packet->type == PACKET_RESPONSE);
    if (!is_heard(end))
        return;
    rnic_touch(w, link->wires[end->state->side].segment);
    struct rnic_packet *sent = rnic_packet(w, wire, wire->packets++);
    memcpy(sent, packet, w->rnics->packet_octets);
    sent->moved_count = 0;
    memset(sent->moved, 0, w->rnics->packet_words * sizeof *sent->moved);
    struct end *peer = rnic_peer(end);
    if (peer)
        rnic_stir(peer);
}

/* ---- at once ----------------------------------------------------------------------------- */

/* All that this CPU lets others know, or learns, goes through this one connection. */
static bool is_only_way(const struct end *end)
{
    const struct sim_handle *h = end->handle;
    if (!h->limits.isolated)
        return false;
    for (uint32_t i = 0; i < h->limits.connections; i++) {
        rnic_look(h->w, h->ends[i].segment);
        if (&h->ends[i] != end && h->ends[i].state->state != END_FREE)
            return false;
    }
    return true;
}

bool rnic_at_once(const struct end *end)
{
    const struct sim_world *w = end->handle->w;
    const struct link *link = rnic_link_of(end);
    if (!w->stepping.private_steps)
        return false;
    rnic_look(end->handle->w, link->segment);
    if (link->state->may_be_lost || link->state->ending != LINK_LIVES)
        return false;
    const struct end *peer = rnic_peer(end);
    if (!peer || !peer->handle->limits.never_disconnects)
        return false; /* what it has posted may be lost */
    return is_only_way(end) || is_only_way(peer);
}

/* Makes the message that a work request gathers; true when something was done. */
static bool advance_making(struct end *end)
{
    if (rnic_can_fetch(end) && rnic_fetches_at_once(end)) {
        rnic_do_fetch(end);
        return true;
    }
    if (!end->stage->making || end->state->stopped)
        return false;
    struct rnic_memory source = rnic_source(end);
    bool moved = false;
    if (!rnic_all_moved(end, rnic_making(end), &source, true) && !rnic_source_awaited(end)) {
        rnic_touch(end->handle->w, end->stage_segment);
        moved = rnic_gather(end, rnic_making(end), &source, RNIC_PRIVATE, 0, SIM_GATHER);
    }
    if (!rnic_can_emit(end))
        return moved;
    rnic_do_emit(end);
    return true;
}

static bool advance_inbound(struct end *end)
{
    if (!rnic_receives(end))
        return false;
    uint32_t next = rnic_inbound_next(end);
    if (next == UINT32_MAX || (rnic_sink_gathered(end, next) && !rnic_can_deliver(end, true)))
        return false;
    if (!rnic_can_deliver(end, false) || !rnic_delivers_at_once(end))
        return false;
    rnic_do_deliver(end);
    return true;
}

static bool advance_reads(struct end *end)
{
    for (uint32_t i = 0; i < end->stage->reads; i++) {
        struct rnic_memory memory;
        struct rdma_sge tagged;
        const struct rnic_packet *packet = rnic_read(end, i);
        if (!rnic_may_respond(end, i) || packet->done || rdma_is_atomic(packet->op) ||
            !rnic_read_source(end, i, &memory, &tagged) ||
            !rnic_all_moved(end, packet, &memory, false))
            continue;
        rnic_do_read(end, i, RNIC_ALL, 0);
        return true;
    }
    if (!rnic_can_reply(end))
        return false;
    rnic_do_reply(end);
    return true;
}

/* Does one thing that no other agent can tell from having been done earlier, if there is any. */
static bool advance(struct end *end)
{
    const struct rnic_end *e = end->state;
    if ((e->state != END_ESTABLISHED && e->state != END_ACCEPTED) || e->stopped)
        return false;
    rnic_look(end->handle->w, end->segment);
    rnic_look(end->handle->w, end->stage_segment);
    if (advance_making(end) || advance_inbound(end) || advance_reads(end))
        return true;
    if (!rnic_can_complete(end) || !rnic_completes_at_once(end))
        return false;
    rnic_do_complete(end);
    return true;
}

void rnic_settle(struct sim_world *w)
{
    struct sim_rnics *rnics = w->rnics;
    while (rnics->dirty) {
        struct end *end = rnics->dirty;
        rnics->dirty = end->next_dirty;
        end->dirty = false;
        while (w->stepping.private_steps && !w->violation.property && advance(end))
            ;
    }
}

/* ---- enabled steps ----------------------------------------------------------------------- */

struct offer {
    const struct end *end;
    struct sim_step *out;
    uint32_t count;
    uint32_t room; /* for pieces of memory; other steps are few */
    bool all;      /* also what would be taken at once */
};

static void offer(struct offer *o, enum sim_step_kind kind, uint32_t piece)
{
    o->out[o->count++] = (struct sim_step){.kind = (uint8_t)kind,
                                           .agent = (uint8_t)o->end->handle->rnic->agent,
                                           .queue = (uint8_t)o->end->index,
                                           .piece = (uint8_t)piece};
}

static void offer_pieces(struct offer *o, enum sim_step_kind kind, uint32_t piece,
                         const struct rnic_packet *packet, const struct rnic_memory *memory,
                         bool private_too)
{
    struct sim_step step = {.kind = (uint8_t)kind, .piece = (uint8_t)piece};
    if (o->room == 0)
        return;
    uint32_t count =
        rnic_offer(o->end, packet, memory, private_too, step, o->out + o->count, o->room);
    o->count += count;
    o->room -= count < o->room ? count : o->room;
}

static void offer_making(struct offer *o)
{
    const struct end *end = o->end;
    if (rnic_can_fetch(end) && (o->all || !rnic_fetches_at_once(end)))
        offer(o, SIM_STEP_FETCH, 0);
    if (!end->stage->making || end->state->stopped)
        return;
    struct rnic_memory source = rnic_source(end);
    offer_pieces(o, SIM_STEP_GATHER, 0, rnic_making(end), &source,
                 o->all || rnic_source_awaited(end));
    if (o->all && rnic_can_emit(end))
        offer(o, SIM_STEP_EMIT, 0);
}

static void offer_inbound(struct offer *o)
{
    const struct end *end = o->end;
    if (!rnic_receives(end))
        return;
    bool private_too = o->all;
    uint32_t packets = rnic_inbound_count(end), next = rnic_inbound_next(end);
    for (uint32_t i = 0; i < packets; i++) {
        struct rnic_memory memory;
        struct rdma_sge tagged;
        if (!rnic_may_place(end, i))
            continue;
        bool gathered = rnic_sink_gathered(end, i);
        if (rnic_sink(end, i, &memory, &tagged) == RDMA_OK)
            offer_pieces(o, SIM_STEP_PLACE, i, rnic_inbound(end, i), &memory, o->all || gathered);
        if (i == next)
            private_too = o->all || gathered;
    }
    if (next != UINT32_MAX && rnic_can_deliver(end, private_too) &&
        (o->all || !rnic_delivers_at_once(end)))
        offer(o, SIM_STEP_DELIVER, 0);
}

static void offer_reads(struct offer *o)
{
    const struct end *end = o->end;
    for (uint32_t i = 0; i < end->stage->reads && rnic_may_respond(end, i); i++) {
        struct rnic_memory memory;
        struct rdma_sge tagged;
        const struct rnic_packet *packet = rnic_read(end, i);
        if (packet->done)
            continue;
        if (rdma_is_atomic(packet->op)) {
            if (rnic_can_atomic(end, i))
                offer(o, SIM_STEP_ATOMIC, i);
        } else if (!rnic_read_source(end, i, &memory, &tagged) ||
                   rnic_pieces(end->handle->w, &memory) == 0) {
            offer(o, SIM_STEP_READ, i);
        } else {
            offer_pieces(o, SIM_STEP_READ, i, packet, &memory, true);
        }
    }
    if (o->all && rnic_can_reply(end))
        offer(o, SIM_STEP_REPLY, 0);
}

static void offer_steps(struct offer *o)
{
    const struct end *end = o->end;
    if (rnic_can_connect(end))
        offer(o, SIM_STEP_CONNECT, 0);
    if (rnic_can_notice(end))
        offer(o, SIM_STEP_NOTICE, 0);
    if (rnic_can_flush(end))
        offer(o, SIM_STEP_FLUSH, 0);
    if (rnic_can_snapshot(end))
        offer(o, SIM_STEP_SNAPSHOT, 0);
    if (rnic_can_give_up(end))
        offer(o, SIM_STEP_GIVE_UP, 0);
    if ((end->state->state != END_ESTABLISHED && end->state->state != END_ACCEPTED) ||
        end->state->stopped)
        return;
    offer_making(o);
    offer_inbound(o);
    offer_reads(o);
    if (rnic_can_complete(end) && (o->all || !rnic_completes_at_once(end)))
        offer(o, SIM_STEP_COMPLETE, 0);
}

static uint32_t rnic_enabled(const struct sim_agent *agent, struct sim_step *out)
{
    const struct sim_rnic *rnic = agent->rnic;
    struct offer o = {.out = out,
                      .room = SIM_RNIC_PIECE_STEPS / agent->world->rnics->rnics_count,
                      .all = !agent->world->stepping.private_steps};
    for (uint32_t i = 0; i < rnic->ends_count; i++) {
        o.end = rnic->ends[i];
        if (o.end->state->state != END_FREE)
            offer_steps(&o);
    }
    return o.count;
}

/* ---- running one ------------------------------------------------------------------------- */

static void do_gather(struct end *end, uint32_t piece)
{
    struct rnic_memory source = rnic_source(end);
    rnic_look(end->handle->w, end->segment);
    rnic_touch(end->handle->w, end->stage_segment);
    rnic_gather(end, rnic_making(end), &source, RNIC_ONE, piece, SIM_GATHER);
}

static void rnic_run(struct sim_agent *agent, const struct sim_step *step)
{
    struct end *end = agent->rnic->ends[step->queue];
    rnic_look(agent->world, end->segment);
    rnic_look(agent->world, end->stage_segment);
    rnic_stir(end);
    switch (step->kind) {
    case SIM_STEP_FETCH:
        rnic_do_fetch(end);
        break;
    case SIM_STEP_GATHER:
        do_gather(end, step->arg);
        break;
    case SIM_STEP_EMIT:
        rnic_do_emit(end);
        break;
    case SIM_STEP_PLACE:
        rnic_do_place(end, step->piece, RNIC_ONE, step->arg);
        break;
    case SIM_STEP_DELIVER:
        rnic_do_deliver(end);
        break;
    case SIM_STEP_READ:
        rnic_do_read(end, step->piece, RNIC_ONE, step->arg);
        break;
    case SIM_STEP_ATOMIC:
        rnic_do_atomic(end, step->piece);
        break;
    case SIM_STEP_REPLY:
        rnic_do_reply(end);
        break;
    case SIM_STEP_COMPLETE:
        rnic_do_complete(end);
        break;
    case SIM_STEP_CONNECT:
        rnic_do_connect(end);
        break;
    case SIM_STEP_NOTICE:
        rnic_do_notice(end);
        break;
    case SIM_STEP_FLUSH:
        rnic_do_flush(end);
        break;
    case SIM_STEP_SNAPSHOT:
        rnic_do_snapshot(end);
        break;
    case SIM_STEP_GIVE_UP:
        rnic_do_give_up(end);
        break;
    default:
        assert(false && "a step this agent has not");
    }
}

/* What an RNIC has begun shows by its enabled steps. */
static bool rnic_at_rest(const struct sim_agent *agent)
{
    (void)agent;
    return true;
}

static enum sim_cost rnic_cost(const struct sim_agent *agent, const struct sim_step *step)
{
    static const uint8_t costs[SIM_STEP_KINDS] = {
        [SIM_STEP_FETCH] = SIM_COST_WQE_FETCH,    [SIM_STEP_GATHER] = SIM_COST_DMA_READ,
        [SIM_STEP_EMIT] = SIM_COST_PACKET,        [SIM_STEP_PLACE] = SIM_COST_DMA_WRITE,
        [SIM_STEP_DELIVER] = SIM_COST_CQE,        [SIM_STEP_READ] = SIM_COST_DMA_READ,
        [SIM_STEP_ATOMIC] = SIM_COST_ATOMIC,      [SIM_STEP_REPLY] = SIM_COST_PACKET,
        [SIM_STEP_COMPLETE] = SIM_COST_CQE,       [SIM_STEP_CONNECT] = SIM_COST_CONTROL,
        [SIM_STEP_NOTICE] = SIM_COST_CONTROL,     [SIM_STEP_FLUSH] = SIM_COST_CQE,
        [SIM_STEP_SNAPSHOT] = SIM_COST_WQE_FETCH, [SIM_STEP_GIVE_UP] = SIM_COST_CONTROL,
    };
    (void)agent;
    return (enum sim_cost)costs[step->kind];
}

const struct sim_agent_ops rnic_agent_ops = {
    .enabled = rnic_enabled,
    .run = rnic_run,
    .at_rest = rnic_at_rest,
    .cost = rnic_cost,
};

void sim_rnic_run(struct sim_world *w)
{
    struct sim_step steps[SIM_MAX_STEPS];
    rnic_settle(w);
    for (uint32_t i = 0; i < w->rnics->rnics_count;) {
        struct sim_agent *agent = &w->agents[w->rnics->rnics[i]->agent];
        if (agent->ops->enabled(agent, steps) == 0) {
            i++;
            continue;
        }
        agent->ops->run(agent, &steps[0]);
        rnic_settle(w);
        i = 0;
    }
}
