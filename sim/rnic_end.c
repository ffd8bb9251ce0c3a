/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How connections end: DISCONNECTED, all that is posted FLUSHED, DRAINED. The cause lies in the
 * link (cut, failed, closed); each end notices for itself, and goes on with what it was doing until
 * its engine stops.
 */
#include <errno.h>

#include "sim/rnic_state.h"

/*
 * Of the messages that are on the way when the CPU disconnects, those arrive of which it knows that
 * they were sent. Of the others it cannot know, so they may as well not have left yet.
 */
static uint32_t owed_by(const struct end *end)
{
    const struct rnic_end *e = end->state;
    struct rnic_wire *wire = rnic_link_of(end)->wires[e->side].state;
    uint32_t unknown = 0, sent = 0, owed = 0;
    for (uint32_t i = e->completed - e->silent; i < e->launched; i++)
        unknown += !rnic_is_local(rnic_wqe(end, i)->op);
    for (uint32_t i = 0; i < wire->packets; i++)
        sent += rnic_packet(end->handle->w, wire, i)->type != PACKET_RESPONSE;
    for (uint32_t i = 0; i < wire->packets && sent > unknown; i++) {
        sent -= rnic_packet(end->handle->w, wire, i)->type != PACKET_RESPONSE;
        owed = i + 1;
    }
    return owed;
}

int rnic_disconnect(struct sim_handle *h, uint32_t conn)
{
    if (conn >= h->limits.connections || h->ends[conn].state->state != END_ESTABLISHED ||
        (h->ends[conn].state->known < KNOWN_CONNECTED && !h->ends[conn].state->heard))
        return -EINVAL;
    struct end *end = &h->ends[conn];
    struct link *link = rnic_link_of(end);
    rnic_look(h->w, link->segment);
    rnic_look(h->w, end->segment);
    if (link->state->ending != LINK_LIVES)
        return 0;
    rnic_touch(h->w, link->segment);
    rnic_touch(h->w, end->segment);
    link->state->ending = LINK_CLOSED;
    link->state->closer = end->state->side;
    if (!h->w->rnics->immediate) {
        rnic_look(h->w, link->wires[end->state->side].segment);
        link->state->owed = owed_by(end);
    }
    end->state->noticed = 1;
    rnic_raise(h, RDMA_EVENT_DISCONNECTED, conn, 0, 0);
    rnic_stir(end);
    struct end *peer = rnic_peer(end);
    if (peer)
        rnic_stir(peer);
    return 0;
}

int rnic_destroy(struct sim_handle *h, uint32_t conn)
{
    if (conn >= h->limits.connections || h->ends[conn].state->state == END_FREE)
        return -EINVAL;
    rnic_look(h->w, h->ends[conn].segment);
    if (h->ends[conn].state->known != KNOWN_OVER)
        return -EBUSY;
    rnic_release(&h->ends[conn]);
    return 0;
}

void rnic_release(struct end *end)
{
    struct sim_world *w = end->handle->w;
    struct link *link = rnic_link_of(end);
    uint32_t side = end->state->side;
    rnic_unbind_all(end);
    rnic_chain_forget(end);
    rnic_touch(w, link->segment);
    rnic_touch(w, end->segment);
    link->state->sides[side] = (struct rnic_link_side){0};
    bool last = link->state->sides[1 - side].handle == 0 ||
                (side == 0 && link->state->state == LINK_REQUESTING);
    if (w->rnics->immediate)
        memset(end->state, 0, sizeof *end->state);
    else
        memset(end->state, 0, end->segment->size);
    if (end->stage) {
        rnic_touch(w, end->stage_segment);
        memset(end->stage, 0, end->stage_segment->size);
    }
    if (!last)
        return;
    *link->state = (struct rnic_link){0};
    for (int i = 0; i < 2 && !w->rnics->immediate; i++) {
        rnic_touch(w, link->wires[i].segment);
        memset(link->wires[i].state, 0, link->wires[i].segment->size);
    }
}

void rnic_fail(struct end *end, int error)
{
    struct sim_world *w = end->handle->w;
    struct link *link = rnic_link_of(end);
    rnic_touch(w, link->segment);
    if (link->state->ending == LINK_LIVES) {
        link->state->ending = LINK_FAILED;
        link->state->error = error;
    }
    struct end *peer = rnic_peer(end);
    rnic_stir(end);
    if (peer)
        rnic_stir(peer);
}

/* ---- notice ------------------------------------------------------------------------------ */

bool rnic_can_notice(const struct end *end)
{
    const struct rnic_end *e = end->state;
    if (e->state != END_ESTABLISHED || e->noticed || rnic_is_loop(end))
        return false;
    const struct link *link = rnic_link_of(end);
    const struct rnic_link *l = link->state;
    rnic_look(end->handle->w, link->segment);
    if (l->ending != LINK_CLOSED || end->handle->w->rnics->immediate ||
        end->handle->rnic->config.ordering == SIM_ORDERING_INFINIBAND)
        return l->ending != LINK_LIVES;
    /* What was sent before a stream is closed in good order arrives before its end. */
    return (l->sides[l->closer].handle == 0 || l->sides[l->closer].stopped) &&
           (l->sides[e->side].refuses || l->owed == 0);
}

void rnic_do_notice(struct end *end)
{
    const struct rnic_link *link = rnic_link_of(end)->state;
    rnic_touch(end->handle->w, end->segment);
    end->state->noticed = 1;
    rnic_observe(end, (struct sim_access){.kind = SIM_NOTICE});
    rnic_raise(end->handle, RDMA_EVENT_DISCONNECTED, end->conn,
               link->ending == LINK_CLOSED ? 0 : link->error, 0);
    rnic_stir(end);
}

/* ---- a peer that answers no more --------------------------------------------------------- */

/* Without an answer to it the sender tries again, and at last gives up. InfiniBand: whoever asked
 * for a response has to ask for it again. */
static bool wants_answer(const struct end *end, bool response)
{
    return !response || end->handle->rnic->config.ordering != SIM_ORDERING_INFINIBAND;
}

void rnic_sent_to(const struct end *end, bool response)
{
    struct link *link = rnic_link_of(end);
    struct rnic_link_side *other = &link->state->sides[1 - end->state->side];
    if (!other->silent || other->owes || !wants_answer(end, response))
        return;
    rnic_touch(end->handle->w, link->segment);
    other->owes = 1;
}

/* Of what the peer has sent something has not arrived, or was not answered. */
static bool owes_an_answer(const struct end *end, const struct end *peer)
{
    const struct sim_world *w = end->handle->w;
    struct rnic_wire *wire = rnic_link_of(end)->wires[peer->state->side].state;
    for (uint32_t i = 0; i < wire->packets; i++)
        if (wants_answer(peer, rnic_packet(w, wire, i)->type == PACKET_RESPONSE))
            return true;
    for (uint32_t i = peer->state->completed; i < peer->state->launched; i++)
        if (rnic_wqe(peer, i)->state == WQE_WAITING)
            return true;
    return false;
}

/* What it has sent may still arrive. */
void rnic_falls_silent(struct end *end)
{
    struct sim_world *w = end->handle->w;
    struct link *link = rnic_link_of(end);
    uint32_t side = end->state->side, number = end->state->link - 1;
    struct end *peer = rnic_peer(end);
    bool quiet = link->state->state == LINK_ESTABLISHED && link->state->ending == LINK_LIVES &&
                 peer && peer->state->state == END_ESTABLISHED;
    if (!quiet) {
        sim_rnic_cut(w, number); /* there is somebody who waits for it to be made, or to end */
        rnic_release(end);
        return;
    }
    rnic_touch(w, link->segment);
    bool owes = owes_an_answer(end, peer);
    rnic_touch(w, link->wires[1 - side].segment);
    memset(link->wires[1 - side].state, 0, link->wires[1 - side].segment->size);
    rnic_release(end);
    link->state->sides[side].silent = 1;
    link->state->sides[side].owes = owes;
    rnic_stir(peer);
}

bool rnic_can_give_up(const struct end *end)
{
    const struct rnic_end *e = end->state;
    if (e->state != END_ESTABLISHED || e->noticed)
        return false;
    const struct link *link = rnic_link_of(end);
    rnic_look(end->handle->w, link->segment);
    return link->state->ending == LINK_LIVES && link->state->sides[1 - e->side].owes;
}

void rnic_do_give_up(struct end *end)
{
    const struct rnic_end *e = end->state;
    rnic_observe(end, (struct sim_access){.kind = SIM_GIVE_UP});
    rnic_fail(end, -ETIMEDOUT);
    for (uint32_t i = e->completed; i < e->launched; i++)
        if (rnic_wqe(end, i)->state == WQE_WAITING) {
            rnic_fail_wqe(end, i, RDMA_LOST);
            return;
        }
}

/* ---- flush ------------------------------------------------------------------------------- */

/* Nobody is told: whoever asks for the state of the queue finds out. */
static bool loop_failed(const struct end *end)
{
    if (!rnic_is_loop(end) || end->state->state == END_FREE)
        return false;
    const struct link *link = rnic_link_of(end);
    rnic_look(end->handle->w, link->segment);
    return link->state->ending != LINK_LIVES;
}

bool rnic_can_flush(const struct end *end)
{
    const struct rnic_end *e = end->state;
    if (!e->noticed && !loop_failed(end))
        return false;
    return !e->stopped || e->rung > e->completed || e->receives_rung > e->taken;
}

/* The engine stops: nothing of this connection reads or writes memory here from now on. */
static void stop(struct end *end)
{
    struct sim_world *w = end->handle->w;
    struct link *link = rnic_link_of(end);
    uint32_t side = end->state->side;
    end->state->stopped = 1;
    rnic_touch(w, link->segment);
    link->state->sides[side].stopped = 1;
    if (w->rnics->immediate)
        return;
    rnic_touch(w, end->stage_segment);
    memset(end->stage, 0, end->stage_segment->size);
    rnic_touch(w, link->wires[1 - side].segment);
    memset(link->wires[1 - side].state, 0, link->wires[1 - side].segment->size);
    rnic_look(w, end->handle->rnic->segment);
    if (end->handle->rnic->host->atomic == end->index + 1) {
        rnic_touch(w, end->handle->rnic->segment);
        end->handle->rnic->host->atomic = 0;
    }
    struct end *peer = rnic_peer(end);
    if (peer)
        rnic_stir(peer); /* it may wait for this to notice the end of the stream */
}

/* All that was fetched; what is fetched later is flushed then. */
static uint32_t flush_chain(struct end *end)
{
    struct rnic_end *e = end->state;
    uint32_t flushed = 0;
    bool done = true;
    e->launched = e->rung;
    while (e->rung != 0) {
        const struct rnic_wqe *wqe = rnic_wqe(end, 0);
        done = done && wqe->state == WQE_DONE;
        flushed += !done;
        rnic_chain_completed(end, !done || (wqe->flags & RDMA_SIGNALED) != 0,
                             wqe->state == WQE_FAILED ? wqe->status
                             : done                   ? RDMA_OK
                                                      : RDMA_FLUSHED);
    }
    return flushed;
}

/* What was done in order, and asks for no completion, has none. */
static uint32_t flush_sends(struct end *end)
{
    struct rnic_end *e = end->state;
    uint32_t flushed = 0;
    if (rnic_is_managed(end))
        return flush_chain(end);
    for (; e->completed < e->rung; e->completed++) {
        const struct rnic_wqe *wqe = rnic_wqe(end, e->completed);
        if (flushed == 0 && wqe->state == WQE_DONE && (wqe->flags & RDMA_SIGNALED) == 0) {
            e->silent++;
            continue;
        }
        rnic_complete(end, wqe->wr_id, wqe->op,
                      wqe->state == WQE_FAILED ? wqe->status : RDMA_FLUSHED, 0);
        flushed++;
    }
    e->launched = e->rung;
    return flushed;
}

static uint32_t flush_receives(struct end *end)
{
    struct rnic_end *e = end->state;
    uint32_t flushed = e->receives_rung - e->taken;
    while (e->taken < e->receives_rung)
        rnic_receive_done(end, &(struct rnic_cqe){.op = RDMA_RECV, .status = RDMA_FLUSHED});
    return flushed;
}

void rnic_do_flush(struct end *end)
{
    rnic_touch(end->handle->w, end->segment);
    if (!end->state->stopped)
        stop(end);
    uint32_t flushed = end->handle->w->rnics->immediate ? 0 : flush_sends(end);
    flushed += flush_receives(end);
    rnic_observe(end, (struct sim_access){.kind = SIM_FLUSH, .value = flushed});
    rnic_look_drained(end);
}

void rnic_look_drained(struct end *end)
{
    struct rnic_end *e = end->state;
    if (e->state != END_ESTABLISHED || e->known != KNOWN_DISCONNECTED || !e->stopped ||
        e->drained || e->posted != e->silent || e->receives != 0)
        return;
    rnic_touch(end->handle->w, end->segment);
    e->drained = 1;
    rnic_raise(end->handle, RDMA_EVENT_DRAINED, end->conn, 0, 0);
}
