/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The requesting side of a connection: work requests are fetched in order, one at a time gathers
 * its message, which then leaves for the wire; completions are raised in order.
 */
#include <errno.h>

#include "sim/rnic_state.h"

static enum sim_ordering ordering_of(const struct end *end)
{
    return end->handle->rnic->config.ordering;
}

static struct rnic_memory memory_of(const struct rnic_wqe *wqe)
{
    if ((wqe->flags & RDMA_INLINE) != 0)
        return (struct rnic_memory){0};
    return (struct rnic_memory){.sges = wqe->sges, .count = wqe->sge_count, .length = wqe->length};
}

/* ---- fetch ------------------------------------------------------------------------------- */

/* May the next work request begin, for all that those before it are doing? */
static bool may_begin(const struct end *end)
{
    const struct rnic_end *e = end->state;
    const struct rnic_wqe *next = rnic_wqe(end, e->launched);
    uint32_t reads = 0;
    if (next->op == RDMA_WAIT && !rnic_wait_is_over(end, next))
        return false;
    for (uint32_t i = e->completed; i < e->launched; i++) {
        const struct rnic_wqe *wqe = rnic_wqe(end, i);
        if (wqe->state == WQE_DONE)
            continue;
        if (ordering_of(end) == SIM_ORDERING_STRONG)
            return false;
        reads += rdma_is_answered(wqe->op);
    }
    if ((next->flags & RDMA_FENCE) != 0 && reads != 0)
        return false;
    return !rdma_is_answered(next->op) || reads < e->reads_out;
}

bool rnic_can_fetch(const struct end *end)
{
    const struct rnic_end *e = end->state;
    return e->state == END_ESTABLISHED && !e->stopped && !e->halted && e->launched < e->rung &&
           !end->stage->making && may_begin(end);
}

/* What the peer may do changes with a bind or an invalidation: when it is done is a choice. */
bool rnic_fetches_at_once(const struct end *end)
{
    uint16_t op = rnic_wqe(end, end->state->launched)->op;
    return op != RDMA_BIND && op != RDMA_LOCAL_INV;
}

static bool done_locally(struct end *end, const struct rnic_wqe *wqe)
{
    switch (wqe->op) {
    case RDMA_BIND:
        return rnic_bind(end, wqe);
    case RDMA_LOCAL_INV:
        return rnic_invalidate(end, wqe->imm_stag, false);
    case RDMA_WAIT:
        return rnic_wait_is_legal(end, wqe);
    case RDMA_ENABLE:
        return rnic_enable(end, wqe);
    default: /* a NOOP with a status stands for what cannot be executed */
        return wqe->status == RDMA_OK;
    }
}

/* Done without a message. */
static void do_local(struct end *end, struct rnic_wqe *wqe)
{
    struct rnic_end *e = end->state;
    if (!done_locally(end, wqe)) {
        rnic_fail_wqe(end, e->launched++, RDMA_LOCAL_ERROR);
        return;
    }
    wqe->state = WQE_DONE;
    e->launched++;
}

void rnic_do_fetch(struct end *end)
{
    struct sim_world *w = end->handle->w;
    struct rnic_end *e = end->state;
    struct rnic_wqe *wqe = rnic_wqe(end, e->launched);
    rnic_touch(w, end->segment);
    rnic_touch(w, end->stage_segment);
    rnic_observe(end, (struct sim_access){.kind = SIM_FETCH, .op = wqe->op, .value = wqe->wr_id});
    if (rnic_is_local(wqe->op)) {
        do_local(end, wqe);
        return;
    }
    struct rnic_memory memory = memory_of(wqe);
    if (!rnic_local_ok(end->handle->rnic, memory.sges, memory.count,
                       rdma_is_answered(wqe->op) ? RDMA_LOCAL_WRITE : 0)) {
        rnic_fail_wqe(end, e->launched++, RDMA_LOCAL_ERROR);
        return;
    }
    end->stage->making = 1;
    struct rnic_packet *packet = rnic_making(end);
    packet->type = rdma_is_answered(wqe->op) ? PACKET_REQUEST : PACKET_MESSAGE;
    packet->op = wqe->op;
    packet->flags = wqe->flags;
    packet->length = wqe->length;
    packet->stag = wqe->remote_stag;
    packet->remote_to = wqe->remote_to;
    packet->imm_stag = wqe->imm_stag;
    memcpy(packet->operand, wqe->operand, sizeof packet->operand);
    if ((wqe->flags & RDMA_INLINE) != 0)
        memcpy(rnic_payload(w, packet), wqe->sges, wqe->length);
}

/* ---- gather, emit ------------------------------------------------------------------------ */

struct rnic_memory rnic_source(const struct end *end)
{
    const struct rnic_wqe *wqe = rnic_wqe(end, end->state->launched);
    return rdma_is_answered(wqe->op) ? (struct rnic_memory){0} : memory_of(wqe);
}

bool rnic_source_awaited(const struct end *end)
{
    const struct rnic_end *e = end->state;
    struct rnic_memory source = rnic_source(end);
    for (uint32_t i = e->completed; i < e->launched; i++) {
        const struct rnic_wqe *wqe = rnic_wqe(end, i);
        struct rnic_memory sink = memory_of(wqe);
        if (rdma_is_answered(wqe->op) && wqe->state == WQE_WAITING && rnic_overlap(&source, &sink))
            return true;
    }
    return false;
}

bool rnic_can_emit(const struct end *end)
{
    if (!end->stage->making || end->state->stopped)
        return false;
    struct rnic_memory source = rnic_source(end);
    return rnic_all_moved(end, rnic_making(end), &source, true) && rnic_wire_room(end, false);
}

void rnic_do_emit(struct end *end)
{
    struct sim_world *w = end->handle->w;
    struct rnic_end *e = end->state;
    struct rnic_packet *packet = rnic_making(end);
    rnic_touch(w, end->segment);
    rnic_touch(w, end->stage_segment);
    struct rnic_wqe *wqe = rnic_wqe(end, e->launched++);
    /* RFC 5040 5.5 rule 9: what completes a Write or Send there says nothing about the peer. */
    bool done = ordering_of(end) == SIM_ORDERING_RDMAP && !rdma_is_answered(wqe->op);
    wqe->state = done ? WQE_DONE : WQE_WAITING;
    rnic_send(end, packet);
    end->stage->making = 0;
    memset(packet, 0, w->rnics->packet_octets);
}

/* ---- what becomes of it ------------------------------------------------------------------ */

uint32_t rnic_awaited(const struct end *end, uint32_t number)
{
    const struct rnic_end *e = end->state;
    for (uint32_t i = e->completed; i < e->launched; i++) {
        const struct rnic_wqe *wqe = rnic_wqe(end, i);
        if (rdma_is_answered(wqe->op) && wqe->state == WQE_WAITING && number-- == 0)
            return i;
    }
    return UINT32_MAX;
}

/* The oldest SEND or WRITE that is on the way. */
static uint32_t on_the_way(const struct end *end)
{
    const struct rnic_end *e = end->state;
    for (uint32_t i = e->completed; i < e->launched; i++) {
        const struct rnic_wqe *wqe = rnic_wqe(end, i);
        if (!rdma_is_answered(wqe->op) && wqe->state == WQE_WAITING)
            return i;
    }
    return UINT32_MAX;
}

void rnic_acknowledge(struct end *end)
{
    uint32_t place = on_the_way(end);
    if (place == UINT32_MAX || end->state->stopped)
        return;
    rnic_touch(end->handle->w, end->segment);
    rnic_wqe(end, place)->state = WQE_DONE;
    rnic_stir(end);
}

void rnic_refuse(struct end *end, uint8_t status)
{
    uint32_t place = on_the_way(end);
    if (place != UINT32_MAX && !end->state->stopped)
        rnic_fail_wqe(end, place, status);
}

void rnic_fail_awaited(struct end *end, uint32_t number, uint8_t status)
{
    uint32_t place = rnic_awaited(end, number);
    if (place != UINT32_MAX && !end->state->stopped)
        rnic_fail_wqe(end, place, status);
}

void rnic_fail_wqe(struct end *end, uint32_t place, uint8_t status)
{
    struct rnic_wqe *wqe = rnic_wqe(end, place);
    rnic_touch(end->handle->w, end->segment);
    wqe->state = WQE_FAILED;
    wqe->status = status;
    end->state->halted = 1;
    rnic_fail(end, -ECONNABORTED);
}

/* ---- completions ------------------------------------------------------------------------- */

bool rnic_can_complete(const struct end *end)
{
    const struct rnic_end *e = end->state;
    return !e->stopped && e->completed < e->launched &&
           rnic_wqe(end, e->completed)->state >= WQE_DONE;
}

bool rnic_completes_silently(const struct end *end)
{
    const struct rnic_wqe *wqe = rnic_wqe(end, end->state->completed);
    return wqe->state == WQE_DONE && (wqe->flags & RDMA_SIGNALED) == 0;
}

/* Nobody but a WAIT sees completions of a loop, and what a WAIT lets go on is fetched when it may
 * be. */
bool rnic_completes_at_once(const struct end *end)
{
    return rnic_completes_silently(end) || rnic_is_loop(end);
}

void rnic_do_complete(struct end *end)
{
    struct rnic_end *e = end->state;
    const struct rnic_wqe *wqe = rnic_wqe(end, e->completed);
    rnic_touch(end->handle->w, end->segment);
    if (rnic_is_managed(end)) {
        bool silent = rnic_completes_silently(end);
        rnic_observe(end, (struct sim_access){.kind = SIM_COMPLETE,
                                              .op = wqe->op,
                                              .status = wqe->status,
                                              .value = wqe->wr_id});
        rnic_chain_completed(end, !silent, wqe->status);
        return;
    }
    if (rnic_completes_silently(end)) {
        e->silent++;
    } else {
        uint8_t status = wqe->state == WQE_FAILED ? wqe->status : RDMA_OK;
        rnic_complete(end, wqe->wr_id, wqe->op, status,
                      status == RDMA_OK && rdma_is_answered(wqe->op) ? wqe->length : 0);
        rnic_observe(
            end, (struct sim_access){
                     .kind = SIM_COMPLETE, .op = wqe->op, .status = status, .value = wqe->wr_id});
    }
    e->completed++;
}
