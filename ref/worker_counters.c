/* SPDX-License-Identifier: BSD-3-Clause */
/* What a worker, and the memory it shares with others, say for ref/counters.h. */
#include "ref/worker_state.h"

void kbtp_worker_count_in(struct kbtp_worker *worker, struct kbtp_counters *counters)
{
    worker->counters = counters;
}

void kbtp_worker_counters(const struct kbtp_worker *worker, struct kbtp_counters *sum)
{
    const struct kbtp_counters *counters = worker->counters;
    if (!counters)
        return;
    for (uint32_t i = 0; i < KBTP_COUNTERS; i++)
        sum->values[i] += counters->values[i];
    /* A free that was deferred has been written since, or it is still on the list: so nothing in
     * the pool needs to count them. */
    sum->values[KBTP_COUNT_FREES_DEFERRED] +=
        counters->values[KBTP_COUNT_FREES_WRITTEN] + worker->deferred.count;
    for (uint32_t row = 0; row < KBTP_COUNTED_OPCODES; row++)
        for (uint32_t status = 0; status < KBTP_COUNTED_STATUSES; status++)
            sum->requests[row][status] += counters->requests[row][status];
}

/* The usage of an ACTIVE session is its worker's to say. */
static void look_at_session(struct mem *m, const struct kbtp_target *target, uint32_t n,
                            struct kbtp_gauges *gauges)
{
    const struct kbtp_session *session = &target->sessions.sessions[n];
    enum kbtp_session_state state = kbtp_session_state_in(mem_load64(m, &session->state));
    gauges->values[KBTP_GAUGE_SESSIONS + state]++;
    if (!gauges->sessions)
        return;
    gauges->sessions[n] = (struct kbtp_session_gauges){
        .usage = state == KBTP_SESSION_ACTIVE ? 0 : (uint32_t)mem_load64(m, &session->usage),
        .quota = target->sessions.grants[n].quota};
}

static int32_t tickets_in(struct mem *m, const struct kbtp_ring *ring)
{
    uint32_t tail = kbtp_counter_ticket(mem_load64(m, ring->tail));
    uint32_t head = kbtp_counter_ticket(mem_load64(m, ring->head));
    return (int32_t)(tail - head);
}

static void look_at_ring(struct mem *m, const struct kbtp_ring *ring, struct kbtp_gauges *gauges)
{
    int64_t oldest = kbtp_ring_oldest(m, ring);
    gauges->values[KBTP_GAUGE_RING_TICKETS] += tickets_in(m, ring);
    if (oldest > gauges->values[KBTP_GAUGE_OLDEST_TICKET])
        gauges->values[KBTP_GAUGE_OLDEST_TICKET] = oldest;
}

void kbtp_target_gauges(struct mem *m, const struct kbtp_target *target,
                        struct kbtp_session_gauges *sessions, struct kbtp_gauges *gauges)
{
    *gauges = (struct kbtp_gauges){.sessions = sessions,
                                   .session_count = sessions ? target->sessions.count : 0};
    look_at_ring(m, &target->pool.ring, gauges);
    for (uint32_t i = 0; i < target->pool.partition_count; i++)
        look_at_ring(m, &target->pool.partitions[i].ring, gauges);
    for (uint32_t n = 0; n < target->sessions.count; n++)
        look_at_session(m, target, n, gauges);
}

void kbtp_worker_gauges(const struct kbtp_worker *worker, struct kbtp_gauges *gauges)
{
    struct kbtp_worker_look look;
    kbtp_worker_look(worker, &look);
    gauges->values[KBTP_GAUGE_DEFERRED] += look.deferred;
    gauges->values[KBTP_GAUGE_PINS] += look.loads; /* each holds one, until its Write is over */
    gauges->values[KBTP_GAUGE_CONNECTIONS] += look.connections;
    gauges->values[KBTP_GAUGE_REQUESTS] += look.requests;
    gauges->values[KBTP_GAUGE_TICKETS] += look.tickets;
    for (uint32_t i = 0; i < worker->target->config.max_connections; i++) {
        const struct kbtp_connection *c = &worker->connections[i];
        if (c->has_session && c->session < gauges->session_count)
            gauges->sessions[c->session].usage = c->usage;
    }
}
