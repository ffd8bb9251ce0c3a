/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <string.h>

#include "ref/wire_names.h"
#include "sim/check.h"
#include "sim/protocol_counts.h"
#include "sim/rnic.h"

static const char *const rows[SIM_COUNTED_OPCODES] = {
    [SIM_COUNTED_HELLO] = "HELLOs",     [SIM_COUNTED_LOAD] = "LOADs",
    [SIM_COUNTED_STORE] = "STOREs",     [SIM_COUNTED_ALLOC_STORE] = "ALLOC_STOREs",
    [SIM_COUNTED_FREE] = "FREEs",       [SIM_COUNTED_BIND] = "BINDs",
    [SIM_COUNTED_GOODBYE] = "GOODBYEs",
};

static const struct {
    const char *name;
    bool by_wire; /* else by memory, where nothing is lost */
} values[SIM_COUNTS] = {
    [SIM_COUNT_LOADED] = {"octets loaded", true},
    [SIM_COUNT_STORED_INLINE] = {"octets stored inline", true},
    [SIM_COUNT_STORED_READ] = {"octets stored by RDMA Read", true},
    [SIM_COUNT_SESSIONS] = {"sessions begun", true},
    [SIM_COUNT_REFUSED] = {"HELLOs refused", true},
    [SIM_COUNT_EXPIRED] = {"retentions that have ended", false},
    [SIM_COUNT_PINNED_FREES] = {"frees of blocks that a LOAD read", false},
    [SIM_COUNT_RECLAIMED] = {"blocks reclaimed", false},
    [SIM_COUNT_RELEASED_BLOCKS] = {"blocks released", false},
};

static void differs(struct sim_world *w, const char *what, int64_t counted, int64_t seen)
{
    sim_violate(w, sim_check_counters_agree.property, "%s: the target counts %lld, and it was %lld",
                what, (long long)counted, (long long)seen);
}

/* ---- counters ---------------------------------------------------------------------------- */

/*
 * A worker counts an answer when it is posted. With a connection that is lost it may never be seen
 * on the wire; and a GOODBYE that was delivered may be lost with it before the worker looks.
 */
static bool fits(enum sim_counted row, uint32_t counted, uint32_t seen, bool lost)
{
    if (!lost)
        return counted == seen;
    return row == SIM_COUNTED_GOODBYE ? counted <= seen : counted >= seen;
}

static void check_answers(struct sim_world *w, const struct sim_counts *counted,
                          const struct sim_counts *seen)
{
    bool lost = sim_protocol_has_lost(w);
    for (uint32_t row = 0; row < SIM_COUNTED_OPCODES; row++) {
        uint32_t all = 0;
        for (uint32_t status = 0; status < SIM_COUNTED_STATUSES; status++) {
            uint32_t is = counted->answered[row][status], was = seen->answered[row][status];
            char what[64];
            snprintf(what, sizeof what, "%s answered %s", rows[row],
                     kbtp_status_name((uint16_t)status));
            all += is;
            if (!fits((enum sim_counted)row, is, was, lost))
                differs(w, what, is, was);
        }
        if (all > seen->received[row])
            sim_violate(w, sim_check_counters_agree.property,
                        "the target counts %u %s as answered, and received %u", all, rows[row],
                        seen->received[row]);
    }
}

static void check_values(struct sim_world *w, const struct sim_counts *counted,
                         const struct sim_counts *seen)
{
    bool lost = sim_protocol_has_lost(w);
    for (uint32_t i = 0; i < SIM_COUNTS; i++) {
        uint32_t is = counted->values[i], was = seen->values[i], most = was;
        if (values[i].by_wire && lost)
            most = UINT32_MAX;
        if (i == SIM_COUNT_PINNED_FREES) /* a reader may come while the freer looks */
            most += seen->late_readers;
        if (i == SIM_COUNT_RELEASED_BLOCKS &&
            w->scenario->protocol.retention != SIM_RETENTION_LASTS)
            most = UINT32_MAX; /* whether it was time to is for own-handles */
        if (is < was || is > most)
            differs(w, values[i].name, is, was);
    }
}

/* ---- gauges ------------------------------------------------------------------------------ */

/* What memory and ghost records show. */
struct truth {
    uint32_t readers, pinned_frees, freeing; /* of all blocks */
    uint32_t received;                       /* requests not yet answered */
    uint32_t links, established;
};

/* Requests that were delivered and not answered; a GOODBYE is when the target says so. */
static uint32_t unanswered(const struct sim_world *w)
{
    const struct sim_counts *seen = sim_protocol_seen(w);
    struct sim_counts counted;
    sim_protocol_counted(w, &counted);
    uint32_t open = 0;
    for (uint32_t row = 0; row < SIM_COUNTED_OPCODES; row++) {
        const struct sim_counts *by = row == SIM_COUNTED_GOODBYE ? &counted : seen;
        open += seen->received[row];
        for (uint32_t status = 0; status < SIM_COUNTED_STATUSES; status++)
            open -= by->answered[row][status];
    }
    return open;
}

static struct truth look(const struct sim_world *w)
{
    const struct sim_protocol_world *p = sim_protocol_of(w);
    struct truth truth = {0};
    for (uint32_t i = 0; i < p->ring.block_count; i++) {
        uint32_t halves[2]; /* sim/protocol_ghost.c: readers in the low one, then FREED */
        memcpy(halves, p->pins + 8u * (size_t)i, sizeof halves);
        bool low_first = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__;
        uint32_t readers = halves[low_first ? 0 : 1];
        truth.readers += readers <= INT32_MAX ? readers : 0; /* below zero: for block-once */
        truth.pinned_frees += halves[low_first ? 1 : 0] & 1;
        truth.freeing += p->ring.ghost->blocks[i].place == RING_FREEING;
    }
    truth.received += unanswered(w);
    for (uint32_t i = 0; i < sim_rnic_links(w); i++) {
        struct sim_link_info link = sim_rnic_link(w, i);
        truth.links += link.exists;
        truth.established += link.established && !link.ending;
    }
    return truth;
}

static int64_t ticket(const char *counter)
{
    return (int64_t)(sim_ring_counter_value(counter) >> 32);
}

/* How many tickets ago the oldest was taken whose block is still in its slot (I-05); 0: none. */
static int64_t oldest_ticket(const struct sim_world *w, const struct sim_ring_memory *ring)
{
    int64_t oldest = 0;
    for (uint32_t i = 0; i < ring->slot_count; i++) {
        const char *slot = ring->slots + 16 * (size_t)i;
        int32_t age = (int32_t)((uint32_t)ticket(ring->head) - sim_ring_sequence(slot));
        if (sim_ring_offset(sim_ring_of(w), slot) != UINT64_MAX && age > oldest)
            oldest = age;
    }
    return oldest;
}

/*
 * Whether the target's accounts are right is for within-quota; here, whether the gauges tell them.
 */
static void check_usage(struct sim_world *w, const struct sim_gauges *gauges)
{
    const struct sim_initiator *s = w->scenario->protocol.initiators;
    for (uint32_t i = 0; i < sim_protocol_of(w)->initiators; i++) {
        uint32_t usage;
        if (gauges->quota[i] != s[i].quota)
            differs(w, "blocks of a quota", gauges->quota[i], s[i].quota);
        if (sim_protocol_usage(w, i, &usage) && gauges->usage[i] != usage)
            differs(w, "blocks used by a session", gauges->usage[i], usage);
    }
}

/* What holds whenever every worker is between two polls. */
static void check_gauges(struct sim_world *w)
{
    const struct sim_protocol_world *p = sim_protocol_of(w);
    struct truth truth = look(w);
    struct sim_gauges gauges;
    sim_protocol_gauges(w, &gauges);
    int32_t tickets = 0;
    int64_t oldest = 0;
    for (uint32_t i = 0; i < p->ring.rings_count; i++) {
        int64_t age = oldest_ticket(w, &p->ring.rings[i]);
        oldest = age > oldest ? age : oldest;
        tickets +=
            (int32_t)(uint32_t)(ticket(p->ring.rings[i].tail) - ticket(p->ring.rings[i].head));
    }
    if (gauges.oldest_ticket != oldest)
        differs(w, "tickets since the oldest", gauges.oldest_ticket, oldest);
    if (gauges.ring_tickets != tickets)
        differs(w, "tickets in the ring", gauges.ring_tickets, tickets);
    if (gauges.sessions != w->scenario->protocol.sessions_count)
        differs(w, "sessions", gauges.sessions, w->scenario->protocol.sessions_count);
    if (gauges.connections > truth.links)
        differs(w, "connections", gauges.connections, truth.links);
    if (sim_protocol_has_lost(w))
        return; /* what is given back is in no gauge until it is */
    check_usage(w, &gauges);
    if (gauges.pins < truth.readers) /* whether each of them has pinned is for load-exact */
        differs(w, "pins", gauges.pins, truth.readers);
    if (gauges.requests > truth.received)
        differs(w, "requests in progress", gauges.requests, truth.received);
}

/* At rest nobody reads, no request is in progress, and every session is served or waits. */
static void check_rest(struct sim_world *w)
{
    struct truth truth = look(w);
    struct sim_gauges gauges;
    sim_protocol_gauges(w, &gauges);
    if (gauges.active != truth.established && !sim_protocol_has_lost(w))
        differs(w, "active sessions", gauges.active, truth.established);
    if (gauges.pins != truth.readers)
        differs(w, "pins", gauges.pins, truth.readers);
    if (truth.pinned_frees <= truth.freeing && /* else it is for block-once */
        gauges.deferred + truth.pinned_frees != truth.freeing)
        differs(w, "frees deferred", gauges.deferred, (int64_t)truth.freeing - truth.pinned_frees);
}

/* ---- the checker ------------------------------------------------------------------------- */

static void event(struct sim_world *w, uint32_t agent, uint32_t event, uint64_t tag)
{
    (void)agent, (void)tag;
    if (event == PROTOCOL_OUTCOME && sim_protocol_workers_at_rest(w))
        check_gauges(w);
}

static void quiescent(struct sim_world *w)
{
    struct sim_counts counted;
    sim_protocol_counted(w, &counted);
    check_answers(w, &counted, sim_protocol_seen(w));
    check_values(w, &counted, sim_protocol_seen(w));
    check_gauges(w);
    check_rest(w);
}

const struct sim_checker sim_check_counters_agree = {
    .property = "counters-agree",
    .says = "counters and gauges of the target say what wire and memory have shown",
    .event = event,
    .quiescent = quiescent,
};
