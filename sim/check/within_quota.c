/* SPDX-License-Identifier: BSD-3-Clause */
#include "ref/wire_names.h"
#include "sim/check.h"
#include "sim/protocol_world.h"

/* A bind beyond the quota. The ghost's count is from before this write. */
static void wrote(struct sim_world *w, const struct sim_write *write)
{
    const struct sim_protocol_world *p = sim_protocol_of(w);
    const char *entry = sim_ring_entry_at(&p->ring, write->at);
    if (!entry || write->at != entry || sim_ring_entry_is_valid(write->old) ||
        !sim_ring_entry_is_valid(entry))
        return;
    uint32_t owner = sim_protocol_owner(p, (uint32_t)(entry - p->ring.table) / 16);
    const struct sim_initiator *s = &w->scenario->protocol.initiators[owner];
    if (p->wire[owner]->bound == s->quota)
        sim_violate(w, sim_check_within_quota.property,
                    "%s binds one block more than %s's quota, %u", w->agents[write->agent].name,
                    s->name, s->quota);
}

static void event(struct sim_world *w, uint32_t agent, uint32_t event, uint64_t tag)
{
    const struct sim_protocol_world *p = sim_protocol_of(w);
    const struct sim_told *told = sim_protocol_told(w);
    (void)tag;
    if (event != PROTOCOL_COMPLETED || told->header->status != KBTP_STATUS_NO_SPACE)
        return;
    uint32_t session = sim_protocol_session(w, told->initiator);
    if (sim_protocol_may_time_out(w, session))
        return; /* a ticket may have been reclaimed since that was found */
    const struct sim_initiator *s = &w->scenario->protocol.initiators[session];
    uint32_t taken = sim_protocol_tickets(w, session).unbound;
    if (p->wire[session]->bound + taken < s->quota)
        sim_violate(w, sim_check_within_quota.property,
                    "%s tells %s NO_SPACE, though of its quota, %u, only %u %s bound",
                    w->agents[agent].name, s->name, s->quota, p->wire[session]->bound,
                    p->wire[session]->bound == 1 ? "is" : "are");
}

/* At rest no ticket is taken: usage is what is bound. But an ALLOC_STORE may have one, and wait for
 * that of its slot to time out. */
static void quiescent(struct sim_world *w)
{
    const struct sim_protocol_world *p = sim_protocol_of(w);
    for (uint32_t i = 0; i < p->sessions; i++) {
        uint32_t usage, bound = p->wire[i]->bound;
        uint32_t tickets = sim_protocol_may_time_out(w, i) ? sim_protocol_tickets(w, i).unbound : 0;
        if (sim_protocol_usage(w, i, &usage) && (usage < bound || usage - bound > tickets))
            sim_violate(w, sim_check_within_quota.property,
                        "the target counts a usage of %u for %s, who has %u block%s bound", usage,
                        w->scenario->protocol.initiators[i].name, bound, bound == 1 ? "" : "s");
    }
}

const struct sim_checker sim_check_within_quota = {
    .property = "within-quota",
    .says = "usage is what the draft counts, never exceeds the quota, and NO_SPACE means just that",
    .wrote = wrote,
    .event = event,
    .quiescent = quiescent,
};
