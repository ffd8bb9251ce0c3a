/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tickets of partitions, taken by the RNIC for the target. The initiator advances the Head of its
 * partition by its own FetchAdd, which the target's RNIC executes. Where the atomics of that RNIC
 * are none against those of CPUs, a CPU's FetchAdd could undo it, and two allocations would have
 * one ticket (I-37). There the worker posts its FetchAdd to a queue pair of its own, both ends
 * of which are here: all that advances a Head is then one RNIC.
 */
#include <errno.h>
#include <string.h>

#include "ref/worker_state.h"

static uint32_t place_of(const struct kbtp_asks *asks, uint32_t number)
{
    return (number - asks->queue.first) % asks->depth;
}

/* Its completions are counted from `first` on, as numbers are. */
static int create(struct kbtp_worker *w, const struct kbtp_cpu *cpu)
{
    struct kbtp_asks *asks = &w->asks;
    struct rdma_chain_config config = {
        .kind = RDMA_CHAIN_LOOP, .depth = asks->depth, .memory = asks->memory};
    int failed = rdma_chain_create(cpu->rdma, &config, &asks->queue);
    if (failed)
        return failed;
    asks->exists = 1;
    asks->broken = 0;
    asks->asked = asks->answered = asks->queue.first;
    return 0;
}

int kbtp_asks_begin(struct kbtp_worker *w, const struct kbtp_cpu *cpu)
{
    return w->asks.depth != 0 ? create(w, cpu) : 0;
}

int kbtp_asks_end(struct kbtp_worker *w, const struct kbtp_cpu *cpu)
{
    int failed = w->asks.exists ? rdma_chain_destroy(cpu->rdma, &w->asks.queue) : 0;
    w->asks.exists = failed != 0;
    return failed;
}

/* A queue that has failed once begins nothing any more. */
static int renew(struct kbtp_worker *w, const struct kbtp_cpu *cpu)
{
    int failed = kbtp_asks_end(w, cpu);
    return failed ? failed : create(w, cpu);
}

int kbtp_ask(struct kbtp_worker *w, const struct kbtp_cpu *cpu, struct kbtp_connection *c)
{
    struct kbtp_asks *asks = &w->asks;
    const struct kbtp_partition *partition =
        &w->target->pool.partitions[w->target->sessions.grants[c->session].partition - 1];
    if ((asks->broken || !asks->exists) && asks->asked == asks->answered) {
        int failed = renew(w, cpu);
        if (failed)
            return failed;
    }
    if (asks->broken || asks->asked - asks->answered == asks->depth)
        return -EAGAIN;
    uint32_t place = place_of(asks, asks->asked);
    struct rdma_sge sge = {.addr = asks->answers + place * sizeof(uint64_t),
                           .length = sizeof(uint64_t),
                           .lkey = w->region.lkey};
    struct rdma_wr add = {.op = RDMA_FETCH_ADD,
                          .flags = RDMA_SIGNALED,
                          .sges = &sge,
                          .sge_count = 1,
                          .remote_to = partition->head_region.base_to,
                          .remote_stag = partition->head_region.stag,
                          .fetch_add = {.add = kbtp_ring_add_data(&partition->ring),
                                        .mask = kbtp_ring_add_mask(&partition->ring)}};
    int failed = rdma_chain_put(cpu->rdma, &asks->queue, asks->asked, &add);
    if (failed == -ENOMEM)
        return -EAGAIN; /* the place is not free yet */
    if (!failed)
        failed = rdma_chain_enable(cpu->rdma, &asks->queue, asks->asked + 1);
    if (failed)
        return failed;
    asks->by[place] = kbtp_connection_number(w, c);
    asks->asked++;
    return 0;
}

/* Once the queue has failed, nobody knows whether this was executed, for all that were under way:
 * the end of the session looks after the ticket. */
static void answer(struct kbtp_worker *w, const struct kbtp_cpu *cpu, bool well)
{
    struct kbtp_asks *asks = &w->asks;
    uint32_t place = place_of(asks, asks->answered++);
    struct kbtp_connection *c = &w->connections[asks->by[place]];
    uint64_t octets;
    asks->by[place] = 0;
    mem_read(cpu->mem, &octets, asks->answers + place * sizeof octets, sizeof octets);
    kbtp_request_has_ticket(w, c, well, kbtp_atomic_reply(&w->target->caps, octets));
    if (!well)
        kbtp_connection_lost(w, cpu, c);
}

void kbtp_asks_advance(struct kbtp_worker *w, const struct kbtp_cpu *cpu)
{
    struct kbtp_asks *asks = &w->asks;
    struct rdma_chain_state state;
    if (asks->asked == asks->answered)
        return;
    if (rdma_chain_state(cpu->rdma, &asks->queue, &state) != 0) {
        if (kbtp_asks_end(w, cpu) != 0)
            return; /* its answers may still land */
        state = (struct rdma_chain_state){.completed = asks->asked, .status = RDMA_LOST};
    }
    asks->broken |= state.status != RDMA_OK;
    while (asks->answered != state.completed)
        answer(w, cpu, !asks->broken);
}
