/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/protocol_counts.h"

#include <errno.h>
#include <string.h>

#include "sim/protocol_agents.h"
#include "sim/rnic.h"

_Static_assert(SIM_COUNTED_STATUSES == KBTP_COUNTED_STATUSES, "the draft's statuses");

/* ---- what the simulator has seen --------------------------------------------------------- */

/* The row of an Opcode, or SIM_COUNTED_OPCODES. */
static enum sim_counted row_of(uint8_t opcode)
{
    switch (opcode) {
    case KBTP_OP_HELLO:
        return SIM_COUNTED_HELLO;
    case KBTP_OP_LOAD:
        return SIM_COUNTED_LOAD;
    case KBTP_OP_STORE:
        return SIM_COUNTED_STORE;
    case KBTP_OP_ALLOC_STORE:
        return SIM_COUNTED_ALLOC_STORE;
    case KBTP_OP_FREE:
        return SIM_COUNTED_FREE;
    case KBTP_OP_BIND:
        return SIM_COUNTED_BIND;
    case KBTP_OP_GOODBYE:
        return SIM_COUNTED_GOODBYE;
    default:
        return SIM_COUNTED_OPCODES;
    }
}

int protocol_counts_memory(struct sim_world *w)
{
    struct protocol_world *p = protocol_world_of(w);
    p->seen = sim_segment_new(&w->arena, "ghost counts", sizeof *p->seen, SIM_STATE);
    if (!p->seen)
        return -ENOMEM;
    sim_segment_of(&w->arena, p->seen)->hashed = 0;
    return 0;
}

/* Undone like all that is written, but neither state nor what steps depend on: sums commute. */
static struct sim_counts *seen(struct sim_world *w)
{
    struct sim_counts *counts = protocol_world_of(w)->seen;
    sim_touch(&w->arena, sim_segment_of(&w->arena, counts));
    return counts;
}

void protocol_count(struct sim_world *w, enum sim_count count)
{
    seen(w)->values[count]++;
}

void protocol_counts_forget(struct sim_world *w)
{
    struct sim_counts *counts = seen(w);
    memset(counts, 0, sizeof *counts);
}

void protocol_count_late_reader(struct sim_world *w)
{
    seen(w)->late_readers++;
}

void protocol_count_received(struct sim_world *w, uint8_t opcode)
{
    enum sim_counted row = row_of(opcode);
    if (row == SIM_COUNTED_OPCODES)
        return;
    seen(w)->received[row]++;
    if (row == SIM_COUNTED_GOODBYE) /* the end of the connection is its answer (I-34) */
        seen(w)->answered[row][KBTP_STATUS_OK]++;
}

static void count_octets(struct sim_world *w, const struct sim_header *answer,
                         const struct sim_request *request)
{
    if (request->op == SIM_REQUEST_LOAD)
        seen(w)->values[SIM_COUNT_LOADED] += answer->data_length;
    else if (request->direct)
        return; /* the initiator has stored them itself */
    else if (request->op == SIM_REQUEST_STORE || request->op == SIM_REQUEST_ALLOC_STORE)
        seen(w)->values[request->inline_data ? SIM_COUNT_STORED_INLINE : SIM_COUNT_STORED_READ] +=
            answer->data_length;
}

void protocol_count_answer(struct sim_world *w, uint8_t opcode, const struct sim_header *answer,
                           const struct sim_request *request)
{
    enum sim_counted row = row_of(opcode);
    if (row == SIM_COUNTED_OPCODES || answer->status >= SIM_COUNTED_STATUSES)
        return;
    seen(w)->answered[row][answer->status]++;
    if (row == SIM_COUNTED_HELLO)
        protocol_count(w,
                       answer->status == KBTP_STATUS_OK ? SIM_COUNT_SESSIONS : SIM_COUNT_REFUSED);
    if (request && answer->status == KBTP_STATUS_OK)
        count_octets(w, answer, request);
}

const struct sim_counts *sim_protocol_seen(const struct sim_world *w)
{
    return protocol_world_of(w)->seen;
}

bool sim_protocol_has_lost(const struct sim_world *w)
{
    return protocol_had_faults(w) ||
           w->scenario->protocol.ticket_timeout; /* a late RDMA Write ends a connection */
}

bool sim_protocol_workers_at_rest(const struct sim_world *w)
{
    for (uint32_t i = 0; i < sim_protocol_of(w)->workers; i++)
        if (!w->agents[i].ops->at_rest(&w->agents[i]))
            return false;
    return true;
}

/* ---- what the target says ---------------------------------------------------------------- */

void protocol_counts_worker(const struct sim_world *w, uint32_t worker)
{
    kbtp_worker_count_in(protocol_worker_of(w, worker), sim_cpu_path(&w->agents[worker]));
}

static void look_at_gauges(const struct sim_world *w, struct kbtp_session_gauges *sessions,
                           struct kbtp_gauges *gauges)
{
    const struct protocol_world *p = protocol_world_of(w);
    struct mem direct = {.sim = NULL};
    kbtp_target_gauges(&direct, p->target, sessions, gauges);
    for (uint32_t i = 0; i < p->view.workers; i++)
        kbtp_worker_gauges(protocol_worker_of(w, i), gauges);
}

void sim_protocol_statistics(const struct sim_world *w, struct sim_statistics *statistics)
{
    memset(statistics, 0, sizeof *statistics);
    for (uint32_t i = 0; i < sim_protocol_of(w)->workers; i++)
        kbtp_worker_counters(protocol_worker_of(w, i), &statistics->counters);
    look_at_gauges(w, statistics->sessions, &statistics->gauges);
}

void sim_protocol_counted(const struct sim_world *w, struct sim_counts *counts)
{
    static const uint32_t rows[] = {[SIM_COUNTED_HELLO] = KBTP_COUNTED_HELLO,
                                    [SIM_COUNTED_LOAD] = KBTP_COUNTED_LOAD,
                                    [SIM_COUNTED_STORE] = KBTP_COUNTED_STORE,
                                    [SIM_COUNTED_ALLOC_STORE] = KBTP_COUNTED_ALLOC_STORE,
                                    [SIM_COUNTED_FREE] = KBTP_COUNTED_FREE,
                                    [SIM_COUNTED_BIND] = KBTP_COUNTED_BIND,
                                    [SIM_COUNTED_GOODBYE] = KBTP_COUNTED_GOODBYE};
    struct kbtp_counters sum = {0};
    for (uint32_t i = 0; i < sim_protocol_of(w)->workers; i++)
        kbtp_worker_counters(protocol_worker_of(w, i), &sum);
    memset(counts, 0, sizeof *counts);
    for (uint32_t row = 0; row < SIM_COUNTED_OPCODES; row++)
        for (uint32_t status = 0; status < SIM_COUNTED_STATUSES; status++)
            counts->answered[row][status] = (uint32_t)sum.requests[rows[row]][status];
    const uint64_t *values = sum.values;
    const uint64_t numbers[SIM_COUNTS] = {
        [SIM_COUNT_LOADED] = values[KBTP_COUNT_LOADED],
        [SIM_COUNT_STORED_INLINE] = values[KBTP_COUNT_STORED_INLINE],
        [SIM_COUNT_STORED_READ] = values[KBTP_COUNT_STORED_READ],
        [SIM_COUNT_SESSIONS] = values[KBTP_COUNT_OPENED] + values[KBTP_COUNT_RESTORED],
        [SIM_COUNT_REFUSED] = values[KBTP_COUNT_REFUSED],
        [SIM_COUNT_EXPIRED] = values[KBTP_COUNT_EXPIRED],
        [SIM_COUNT_PINNED_FREES] = values[KBTP_COUNT_FREES_PINNED],
        [SIM_COUNT_RECLAIMED] =
            values[KBTP_COUNT_RECLAIMED_TICKETS] + values[KBTP_COUNT_RECLAIMED_BLOCKS],
        [SIM_COUNT_RELEASED_BLOCKS] = values[KBTP_COUNT_RELEASED_BLOCKS]};
    for (uint32_t i = 0; i < SIM_COUNTS; i++)
        counts->values[i] = (uint32_t)numbers[i];
}

void sim_protocol_gauges(const struct sim_world *w, struct sim_gauges *gauges)
{
    struct kbtp_session_gauges sessions[SIM_MAX_INITIATORS] = {0};
    struct kbtp_gauges told;
    look_at_gauges(w, sessions, &told);
    const int64_t *values = told.values;
    *gauges =
        (struct sim_gauges){.ring_tickets = values[KBTP_GAUGE_RING_TICKETS],
                            .oldest_ticket = values[KBTP_GAUGE_OLDEST_TICKET],
                            .deferred = (uint32_t)values[KBTP_GAUGE_DEFERRED],
                            .pins = (uint32_t)values[KBTP_GAUGE_PINS],
                            .connections = (uint32_t)values[KBTP_GAUGE_CONNECTIONS],
                            .requests = (uint32_t)values[KBTP_GAUGE_REQUESTS],
                            .tickets = (uint32_t)values[KBTP_GAUGE_TICKETS],
                            .active = (uint32_t)values[KBTP_GAUGE_SESSIONS + KBTP_SESSION_ACTIVE]};
    for (uint32_t i = KBTP_GAUGE_SESSIONS; i < KBTP_GAUGES; i++)
        gauges->sessions += (uint32_t)values[i];
    for (uint32_t i = 0; i < told.session_count; i++) {
        gauges->usage[i] = sessions[i].usage;
        gauges->quota[i] = sessions[i].quota;
    }
}
