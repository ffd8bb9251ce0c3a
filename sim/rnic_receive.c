/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages that arrive. Their pieces are placed, as the ordering allows; the first one is delivered
 * when it is placed whole, and leaves the wire.
 */
#include <errno.h>

#include "sim/rnic_state.h"

static bool is_rdmap(const struct end *end)
{
    return end->handle->rnic->config.ordering == SIM_ORDERING_RDMAP;
}

static struct rnic_wire *wire_of(const struct end *end)
{
    return rnic_link_of(end)->wires[1 - end->state->side].state;
}

static void touch_wire(const struct end *end)
{
    rnic_touch(end->handle->w, rnic_link_of(end)->wires[1 - end->state->side].segment);
}

bool rnic_receives(const struct end *end)
{
    const struct rnic_end *e = end->state;
    if (e->stopped || (e->state != END_ESTABLISHED && e->state != END_ACCEPTED))
        return false;
    const struct link *link = rnic_link_of(end);
    rnic_look(end->handle->w, link->segment);
    return !link->state->sides[e->side].refuses;
}

uint32_t rnic_inbound_count(const struct end *end)
{
    rnic_look(end->handle->w, rnic_link_of(end)->wires[1 - end->state->side].segment);
    return wire_of(end)->packets;
}

struct rnic_packet *rnic_inbound(const struct end *end, uint32_t place)
{
    return rnic_packet(end->handle->w, wire_of(end), place);
}

/* InfiniBand: the message is sent again, and those behind it, until there is a receive. */
static bool waits_for_receive(const struct end *end, const struct rnic_packet *packet)
{
    const struct rnic_end *e = end->state;
    return end->handle->rnic->config.rnr_retry == SIM_RNR_FOREVER &&
           packet->type == PACKET_MESSAGE && rnic_takes_receive(packet->op) &&
           e->taken == e->receives_rung;
}

uint32_t rnic_inbound_next(const struct end *end)
{
    uint32_t packets = rnic_inbound_count(end);
    if (packets != 0 && !waits_for_receive(end, rnic_inbound(end, 0)))
        return 0;
    for (uint32_t i = 1; i < packets; i++)
        if (rnic_inbound(end, i)->type == PACKET_RESPONSE)
            return i;
    return UINT32_MAX;
}

static void take_off_wire(struct end *end, uint32_t place)
{
    struct sim_world *w = end->handle->w;
    struct rnic_wire *wire = wire_of(end);
    size_t octets = w->rnics->packet_octets;
    touch_wire(end);
    wire->packets--;
    struct link *link = rnic_link_of(end);
    rnic_look(w, link->segment);
    if (link->state->owed != 0 && link->state->closer != end->state->side) {
        rnic_touch(w, link->segment);
        link->state->owed--;
    }
    memmove(rnic_packet(w, wire, place), rnic_packet(w, wire, place + 1),
            (wire->packets - place) * octets);
    memset(rnic_packet(w, wire, wire->packets), 0, octets);
    struct end *peer = rnic_peer(end);
    if (peer)
        rnic_stir(peer); /* it may have waited for room */
}

/* ---- where it goes ----------------------------------------------------------------------- */

/* How many messages of a kind are on the way before this one. */
static uint32_t receives_before(const struct end *end, uint32_t place)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < place; i++) {
        const struct rnic_packet *packet = rnic_inbound(end, i);
        count += packet->type == PACKET_MESSAGE && rnic_takes_receive(packet->op);
    }
    return count;
}

static uint32_t responses_before(const struct end *end, uint32_t place)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < place; i++)
        count += rnic_inbound(end, i)->type == PACKET_RESPONSE;
    return count;
}

static uint8_t receive_for(const struct end *end, uint32_t place, struct rnic_memory *memory)
{
    const struct rnic_end *e = end->state;
    const struct rnic_packet *packet = rnic_inbound(end, place);
    uint32_t at = e->taken + receives_before(end, place);
    if (at >= e->receives_rung)
        return RDMA_RNR;
    const struct rnic_receive *receive = rnic_receive(end, at);
    if (packet->op == RDMA_WRITE_IMM)
        return RDMA_OK;
    if (packet->length > receive->length)
        return RDMA_LENGTH_ERROR;
    if (!rnic_local_ok(end->handle->rnic, receive->sges, receive->sge_count, RDMA_LOCAL_WRITE))
        return RDMA_LOCAL_ERROR;
    *memory = (struct rnic_memory){receive->sges, receive->sge_count, packet->length};
    return RDMA_OK;
}

static uint8_t tagged_for(const struct end *end, uint32_t place, struct rnic_memory *memory,
                          struct rdma_sge *tagged)
{
    const struct rnic_packet *packet = rnic_inbound(end, place);
    if (packet->length == 0 || packet->done)
        return RDMA_OK;
    tagged->addr =
        rnic_remote(end, packet->stag, packet->remote_to, packet->length, RDMA_REMOTE_WRITE);
    if (!tagged->addr)
        return RDMA_REMOTE_ACCESS;
    tagged->length = packet->length;
    *memory = (struct rnic_memory){tagged, 1, packet->length};
    return RDMA_OK;
}

static uint8_t response_for(const struct end *end, uint32_t place, struct rnic_memory *memory)
{
    uint32_t at = rnic_awaited(end, responses_before(end, place));
    if (at == UINT32_MAX)
        return RDMA_REMOTE_ERROR;
    const struct rnic_wqe *wqe = rnic_wqe(end, at);
    if (!rnic_local_ok(end->handle->rnic, wqe->sges, wqe->sge_count, RDMA_LOCAL_WRITE))
        return RDMA_LOCAL_ERROR;
    *memory = (struct rnic_memory){wqe->sges, wqe->sge_count, wqe->length};
    return RDMA_OK;
}

uint8_t rnic_sink(const struct end *end, uint32_t place, struct rnic_memory *memory,
                  struct rdma_sge *tagged)
{
    const struct rnic_packet *packet = rnic_inbound(end, place);
    *memory = (struct rnic_memory){0};
    if (packet->type == PACKET_REQUEST)
        return RDMA_OK;
    if (packet->type == PACKET_RESPONSE)
        return response_for(end, place, memory);
    if (packet->op == RDMA_SEND || packet->op == RDMA_SEND_INV)
        return receive_for(end, place, memory);
    return tagged_for(end, place, memory, tagged);
}

bool rnic_sink_gathered(const struct end *end, uint32_t place)
{
    const struct rnic_end *e = end->state;
    struct rnic_memory sink;
    struct rdma_sge tagged;
    if (rnic_inbound(end, place)->type != PACKET_RESPONSE ||
        rnic_sink(end, place, &sink, &tagged) != RDMA_OK)
        return false;
    for (uint32_t i = e->launched; i < e->rung; i++) {
        const struct rnic_wqe *wqe = rnic_wqe(end, i);
        struct rnic_memory source = {wqe->sges, wqe->sge_count, wqe->length};
        if (!rdma_is_answered(wqe->op) && (wqe->flags & RDMA_INLINE) == 0 &&
            rnic_overlap(&source, &sink))
            return true;
    }
    return false;
}

/* ---- place ------------------------------------------------------------------------------- */

bool rnic_may_place(const struct end *end, uint32_t place)
{
    return place == 0 || is_rdmap(end) || place == rnic_inbound_next(end);
}

/* Once a WRITE is placed whole nobody asks again whether it may be: the right may be gone. */
void rnic_do_place(struct end *end, uint32_t place, enum rnic_which which, uint32_t piece)
{
    struct rnic_packet *packet = rnic_inbound(end, place);
    struct rnic_memory memory;
    struct rdma_sge tagged;
    if (rnic_sink(end, place, &memory, &tagged) != RDMA_OK)
        return;
    touch_wire(end);
    rnic_look(end->handle->w, end->segment);
    rnic_place(end, packet, &memory, which, piece);
    if (packet->op == RDMA_WRITE || packet->op == RDMA_WRITE_IMM)
        packet->done = rnic_all_moved(end, packet, &memory, true);
}

/* ---- deliver ----------------------------------------------------------------------------- */

bool rnic_can_deliver(const struct end *end, bool private_too)
{
    struct rnic_memory memory;
    struct rdma_sge tagged;
    if (!rnic_receives(end))
        return false;
    uint32_t next = rnic_inbound_next(end);
    if (next == UINT32_MAX)
        return false;
    if (rnic_sink(end, next, &memory, &tagged) != RDMA_OK)
        return true; /* and fails */
    return rnic_all_moved(end, rnic_inbound(end, next), &memory, private_too);
}

/* Does its fate depend on when the CPU binds or invalidates a window? */
static bool goes_through_window(const struct end *end, const struct rnic_packet *packet)
{
    uint32_t stag = packet->op == RDMA_SEND_INV ? packet->imm_stag : packet->stag;
    return packet->type != PACKET_RESPONSE && !packet->done &&
           rnic_names_window(end->handle->rnic, stag);
}

/*
 * A request is noticed by what it sets off. So is a WRITE or response whose pieces all were steps
 * of their own.
 */
bool rnic_delivers_at_once(const struct end *end)
{
    uint32_t next = rnic_inbound_next(end);
    const struct rnic_packet *packet = rnic_inbound(end, next);
    struct rnic_memory memory;
    struct rdma_sge tagged;
    if (goes_through_window(end, packet))
        return false;
    if (packet->type == PACKET_REQUEST || rnic_at_once(end))
        return true;
    if (packet->type == PACKET_MESSAGE && packet->op != RDMA_WRITE)
        return false;
    return packet->moved_count != 0 && rnic_sink(end, next, &memory, &tagged) == RDMA_OK &&
           rnic_all_moved(end, packet, &memory, true);
}

/* Nothing more is placed here, and the connection ends. */
static void fail_inbound(struct end *end, struct rnic_packet *packet, uint8_t status)
{
    struct sim_world *w = end->handle->w;
    struct link *link = rnic_link_of(end);
    struct end *peer = rnic_peer(end);
    rnic_tell(end, packet, true, status, 0);
    if (packet->type == PACKET_RESPONSE) {
        uint32_t place = rnic_awaited(end, 0);
        if (place != UINT32_MAX)
            rnic_fail_wqe(end, place, status);
    } else if (packet->type == PACKET_REQUEST) {
        rnic_refuse_read(end, end->stage->reads, status);
    } else {
        if (status == RDMA_LENGTH_ERROR || status == RDMA_LOCAL_ERROR) {
            rnic_touch(w, end->segment);
            rnic_receive_done(end, &(struct rnic_cqe){.op = RDMA_RECV, .status = status});
        }
        if (peer)
            rnic_refuse(peer, status == RDMA_LOCAL_ERROR ? RDMA_REMOTE_ERROR : status);
    }
    rnic_touch(w, link->segment);
    touch_wire(end);
    link->state->sides[end->state->side].refuses = 1;
    memset(wire_of(end), 0, link->wires[1 - end->state->side].segment->size);
    rnic_fail(end, -ECONNABORTED);
}

/* The receive that a message takes completes. */
static uint8_t take_receive(struct end *end, const struct rnic_packet *packet)
{
    struct rnic_cqe cqe = {.op = RDMA_RECV, .length = packet->length};
    if (end->state->taken == end->state->receives_rung)
        return RDMA_RNR;
    if (packet->op == RDMA_SEND_INV) {
        if (!rnic_invalidate(end, packet->imm_stag, true))
            return RDMA_REMOTE_ACCESS;
        cqe.flags = RDMA_WC_INVALIDATED;
        cqe.imm = packet->imm_stag;
    } else if (packet->op == RDMA_WRITE_IMM) {
        cqe.flags = RDMA_WC_IMM | RDMA_WC_WRITE_IMM;
        cqe.imm = packet->imm_stag;
    }
    rnic_touch(end->handle->w, end->segment);
    rnic_receive_done(end, &cqe);
    return RDMA_OK;
}

/* A READ or atomic may begin; until it is answered it lies with this end. */
static uint8_t take_request(struct end *end, const struct rnic_packet *packet)
{
    struct sim_world *w = end->handle->w;
    if (packet->op == RDMA_READ && packet->length != 0 &&
        !rnic_remote(end, packet->stag, packet->remote_to, packet->length, RDMA_REMOTE_READ))
        return RDMA_REMOTE_ACCESS;
    if (rdma_is_atomic(packet->op)) {
        const char *at = rnic_remote(end, packet->stag, packet->remote_to, 8, RDMA_REMOTE_ATOMIC);
        if (!at)
            return RDMA_REMOTE_ACCESS;
        if ((uintptr_t)at % 8 != 0)
            return RDMA_REMOTE_ERROR;
    }
    rnic_touch(w, end->stage_segment);
    memcpy(rnic_read(end, end->stage->reads++), packet, w->rnics->packet_octets);
    return RDMA_OK;
}

static void response_done(struct end *end)
{
    rnic_touch(end->handle->w, end->segment);
    rnic_wqe(end, rnic_awaited(end, 0))->state = WQE_DONE;
}

void rnic_do_deliver(struct end *end)
{
    struct rnic_memory memory;
    struct rdma_sge tagged;
    uint32_t next = rnic_inbound_next(end);
    struct rnic_packet *packet = rnic_inbound(end, next);
    struct end *peer = rnic_peer(end);
    uint64_t wr_id = 0;
    rnic_look(end->handle->w, end->segment);
    uint8_t status = rnic_sink(end, next, &memory, &tagged);
    if (status == RDMA_OK) {
        touch_wire(end);
        rnic_place(end, packet, &memory, RNIC_ALL, 0);
        if (packet->type == PACKET_REQUEST) {
            status = take_request(end, packet);
        } else if (packet->type == PACKET_MESSAGE && rnic_takes_receive(packet->op)) {
            if (end->state->taken < end->state->receives_rung)
                wr_id = rnic_receive(end, end->state->taken)->wr_id;
            status = take_receive(end, packet);
        }
    }
    rnic_observe(end, (struct sim_access){.kind = SIM_DELIVER,
                                          .op = packet->op,
                                          .octets = packet->length,
                                          .response = packet->type == PACKET_RESPONSE,
                                          .status = status});
    if (status != RDMA_OK) {
        fail_inbound(end, packet, status);
        return;
    }
    rnic_tell(end, packet, true, RDMA_OK, wr_id);
    if (packet->type == PACKET_RESPONSE)
        response_done(end);
    else if (packet->type == PACKET_MESSAGE && peer && !is_rdmap(end))
        rnic_acknowledge(peer);
    take_off_wire(end, next);
    rnic_stir(end);
}
