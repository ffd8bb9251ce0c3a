/* SPDX-License-Identifier: BSD-3-Clause */
/* READs and atomics of the peer: from their delivery until the response has left. */
#include <errno.h>

#include "sim/rnic_state.h"

bool rnic_may_respond(const struct end *end, uint32_t place)
{
    /* RFC 5040 5.5 rule 20: responses in order, actual reading in any order. */
    return !end->state->stopped &&
           (place == 0 || end->handle->rnic->config.ordering == SIM_ORDERING_RDMAP);
}

void rnic_refuse_read(struct end *end, uint32_t place, uint8_t status)
{
    struct sim_world *w = end->handle->w;
    const struct link *link = rnic_link_of(end);
    struct rnic_wire *out = link->wires[end->state->side].state;
    struct end *peer = rnic_peer(end);
    uint32_t before = place; /* and those whose answers are on the way */
    rnic_look(w, link->wires[end->state->side].segment);
    for (uint32_t i = 0; i < out->packets; i++)
        before += rnic_packet(w, out, i)->type == PACKET_RESPONSE;
    if (peer)
        rnic_fail_awaited(peer, before, status);
}

/* The STag may have been invalidated since the request was delivered. */
static void fail_request(struct end *end, uint32_t place)
{
    struct sim_world *w = end->handle->w;
    rnic_refuse_read(end, place, RDMA_REMOTE_ACCESS);
    /* Nothing behind it is answered. */
    rnic_touch(w, end->stage_segment);
    for (uint32_t i = place; i < end->stage->reads; i++)
        memset(rnic_read(end, i), 0, w->rnics->packet_octets);
    end->stage->reads = place;
    rnic_fail(end, -ECONNABORTED);
}

/* ---- READ -------------------------------------------------------------------------------- */

bool rnic_read_source(const struct end *end, uint32_t place, struct rnic_memory *memory,
                      struct rdma_sge *tagged)
{
    const struct rnic_packet *packet = rnic_read(end, place);
    *memory = (struct rnic_memory){0};
    if (packet->length == 0)
        return true;
    tagged->addr =
        rnic_remote(end, packet->stag, packet->remote_to, packet->length, RDMA_REMOTE_READ);
    tagged->length = packet->length;
    if (!tagged->addr)
        return false;
    *memory = (struct rnic_memory){tagged, 1, packet->length};
    return true;
}

void rnic_do_read(struct end *end, uint32_t place, enum rnic_which which, uint32_t piece)
{
    struct rnic_packet *packet = rnic_read(end, place);
    struct rnic_memory memory;
    struct rdma_sge tagged;
    rnic_touch(end->handle->w, end->stage_segment);
    if (!rnic_read_source(end, place, &memory, &tagged)) {
        fail_request(end, place);
        return;
    }
    rnic_gather(end, packet, &memory, which, piece, SIM_READ_REMOTE);
    packet->done = rnic_all_moved(end, packet, &memory, true);
}

/* ---- atomics ----------------------------------------------------------------------------- */

bool rnic_can_atomic(const struct end *end, uint32_t place)
{
    const struct sim_rnic *rnic = end->handle->rnic;
    for (uint32_t i = 0; i < place; i++)
        if (rdma_is_atomic(rnic_read(end, i)->op) && !rnic_read(end, i)->done)
            return false; /* RFC 7306: among themselves in order */
    rnic_look(end->handle->w, rnic->segment);
    return rnic->host->atomic == 0 || rnic->host->atomic == end->index + 1;
}

static void atomic_writes(struct end *end, struct rnic_packet *packet, char *at)
{
    struct sim_world *w = end->handle->w;
    uint64_t old;
    memcpy(&old, rnic_payload(w, packet), sizeof old);
    uint64_t value = rnic_atomic_result(end->handle->rnic, packet->op, packet->operand, old);
    sim_write(w, end->handle->rnic->agent, at, &value, sizeof value);
    packet->done = 1;
    rnic_observe(end, (struct sim_access){.kind = SIM_ATOMIC_REMOTE,
                                          .at = at,
                                          .octets = sizeof value,
                                          .value = value,
                                          .old = old,
                                          .op = packet->op});
}

/*
 * Towards other atomics of this RNIC it is one step: the unit is busy in between. CPUs can get in
 * between, unless the device says otherwise (I-37).
 */
void rnic_do_atomic(struct end *end, uint32_t place)
{
    struct sim_world *w = end->handle->w;
    struct sim_rnic *rnic = end->handle->rnic;
    struct rnic_packet *packet = rnic_read(end, place);
    rnic_touch(w, end->stage_segment);
    char *at =
        rnic_remote(end, packet->stag, packet->remote_to, sizeof(uint64_t), RDMA_REMOTE_ATOMIC);
    if (!at) {
        if (rnic->host->atomic == end->index + 1) {
            rnic_touch(w, rnic->segment);
            rnic->host->atomic = 0;
        }
        fail_request(end, place);
        return;
    }
    bool second = rnic->host->atomic == end->index + 1;
    if (!second) {
        memcpy(rnic_payload(w, packet), at, sizeof(uint64_t));
        sim_footprint_note(w, at, sizeof(uint64_t), false);
    }
    bool whole =
        (rnic->config.bits & RDMA_CAP_ATOMIC_CPU) != 0 || sim_segment_of(&w->arena, at)->owner != 0;
    if (whole || second) {
        atomic_writes(end, packet, at);
    } else {
        uint64_t old;
        memcpy(&old, at, sizeof old);
        rnic_observe(end, (struct sim_access){.kind = SIM_ATOMIC_BEGUN,
                                              .at = at,
                                              .octets = sizeof old,
                                              .old = old,
                                              .value = old,
                                              .op = packet->op});
    }
    if (!whole) {
        rnic_touch(w, rnic->segment);
        rnic->host->atomic = second ? 0 : end->index + 1;
    }
}

/* ---- reply ------------------------------------------------------------------------------- */

bool rnic_can_reply(const struct end *end)
{
    return !end->state->stopped && end->stage->reads != 0 && rnic_read(end, 0)->done &&
           rnic_wire_room(end, true);
}

void rnic_do_reply(struct end *end)
{
    struct sim_world *w = end->handle->w;
    struct rnic_packet *packet = rnic_read(end, 0);
    const struct end *peer = rnic_peer(end);
    rnic_touch(w, end->stage_segment);
    packet->type = PACKET_RESPONSE;
    packet->done = 0;
    if (rdma_is_atomic(packet->op) && peer) {
        uint64_t old;
        memcpy(&old, rnic_payload(w, packet), sizeof old);
        old = rnic_atomic_reply(peer->handle->rnic, end->handle->rnic, old);
        memcpy(rnic_payload(w, packet), &old, sizeof old);
        packet->length = sizeof old;
    }
    memset(packet->operand, 0, sizeof packet->operand);
    rnic_send(end, packet);
    end->stage->reads--;
    size_t octets = w->rnics->packet_octets;
    memmove(rnic_read(end, 0), rnic_read(end, 1), end->stage->reads * octets);
    memset(rnic_read(end, end->stage->reads), 0, octets);
}
