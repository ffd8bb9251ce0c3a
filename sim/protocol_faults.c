/* SPDX-License-Identifier: BSD-3-Clause */
/* The environment of a protocol world: connections are lost, initiators stop; and who is still
 * there. */
#include "sim/protocol_agents.h"
#include "sim/rnic.h"

/* ---- who is still there ------------------------------------------------------------------ */

bool protocol_is_finished(const struct sim_world *w, uint32_t initiator)
{
    const struct protocol_initiator *it = protocol_initiator_of(w, initiator);
    return it->next == w->scenario->protocol.initiators[initiator].program_count &&
           kbtp_initiator_outstanding(it->library) == 0;
}

bool protocol_has_stopped(const struct sim_world *w, uint32_t initiator)
{
    const struct protocol_world *p = protocol_world_of(w);
    return p->faults && p->faults->stopped[initiator];
}

/* It has no connection and makes none any more. */
static bool is_through(const struct sim_world *w, uint32_t initiator)
{
    const struct protocol_initiator *it = protocol_initiator_of(w, initiator);
    const struct sim_initiator *s = &w->scenario->protocol.initiators[initiator];
    if (protocol_has_stopped(w, initiator))
        return true;
    return kbtp_initiator_state(it->library) == KBTP_INITIATOR_DOWN &&
           (it->refused || protocol_is_finished(w, initiator) ||
            (it->was_ready && it->reconnects == s->reconnects));
}

bool protocol_is_left(const struct sim_world *w, uint32_t session)
{
    for (uint32_t i = 0; i < sim_protocol_of(w)->initiators; i++) {
        const struct sim_initiator *s = &w->scenario->protocol.initiators[i];
        if (s->session == session && !s->stranger && !is_through(w, i))
            return false;
    }
    return true;
}

static bool session_is(const struct sim_world *w, uint32_t session, enum kbtp_session_state state)
{
    const struct kbtp_sessions *all = &protocol_world_of(w)->target->sessions;
    struct mem direct = {.sim = NULL};
    return kbtp_session_state_in(mem_load64(&direct, &all->sessions[session].state)) == state;
}

bool protocol_is_over(const struct sim_world *w, uint32_t agent)
{
    const struct sim_protocol_world *p = sim_protocol_of(w);
    for (uint32_t i = 0; i < p->initiators; i++)
        if (i != sim_protocol_initiator(w, agent) &&
            !w->scenario->protocol.initiators[i].stranger && !is_through(w, i))
            return false;
    for (uint32_t i = 0; i < p->sessions; i++)
        if (!session_is(w, i, KBTP_SESSION_FREE))
            return false;
    for (uint32_t i = 0; i < p->workers; i++)
        if (!kbtp_worker_idle(protocol_worker_of(w, i)) || !sim_cpu_buffer_empty(&w->agents[i]))
            return false;
    return true;
}

void protocol_note_all(struct sim_world *w)
{
    const struct sim_protocol_world *p = sim_protocol_of(w);
    for (uint32_t i = 0; i < p->first_initiator + p->initiators; i++)
        sim_footprint_note(w, w->agents[i].segment->at, w->agents[i].segment->size, false);
    const struct protocol_faults *faults = protocol_world_of(w)->faults;
    if (faults)
        sim_footprint_note(w, faults, sizeof *faults, false);
    const struct kbtp_sessions *all = &protocol_world_of(w)->target->sessions;
    sim_footprint_note(w, all->sessions, all->count * (uint32_t)sizeof *all->sessions, false);
}

bool protocol_peer_lives(const struct sim_world *w, uint32_t worker, uint32_t conn)
{
    for (uint32_t i = 0; i < sim_rnic_links(w); i++) {
        struct sim_link_info info = sim_rnic_link(w, i);
        if (info.exists && info.agent[1] == worker && info.conn[1] == conn)
            return info.established && !info.ending;
    }
    return false;
}

/* ---- faults ------------------------------------------------------------------------------ */

static bool is_spared(const struct sim_world *w, uint32_t agent)
{
    uint32_t initiator = sim_protocol_initiator(w, agent);
    const struct sim_initiator *s = &w->scenario->protocol.initiators[initiator];
    return s->spared || protocol_initiator_of(w, initiator)->next < s->spared_until;
}

/* What a step that restarts the target names: its first worker. */
#define TARGET 0u

/* Initiators that may stop; of those that are through, silence alone would be noticed. */
static uint32_t stops_enabled(const struct sim_agent *agent, enum sim_step_kind kind,
                              struct sim_step *out)
{
    const struct sim_world *w = agent->world;
    const struct protocol_world *p = protocol_world_of(w);
    uint32_t count = 0;
    for (uint32_t i = 0; i < p->view.initiators; i++) {
        uint32_t stops = p->view.first_initiator + i;
        if (p->faults->stopped[i] || is_spared(w, stops) ||
            (kind == SIM_STEP_FAULT && protocol_is_finished(w, i)))
            continue;
        out[count++] = (struct sim_step){
            .kind = (uint8_t)kind, .agent = (uint8_t)agent->index, .queue = (uint8_t)stops};
    }
    return count;
}

/* While somebody has something to ask still. */
static bool may_restart(const struct sim_world *w)
{
    const struct sim_protocol_world *p = sim_protocol_of(w);
    if (protocol_world_of(w)->faults->restarts == w->scenario->protocol.restarts)
        return false;
    for (uint32_t i = 0; i < p->initiators; i++)
        if (!protocol_has_stopped(w, i) && !protocol_is_finished(w, i))
            return true;
    return false;
}

bool protocol_had_faults(const struct sim_world *w)
{
    const struct protocol_faults *f = protocol_world_of(w)->faults;
    return f && f->losses + f->stops + f->silent_stops + f->restarts != 0;
}

static uint32_t fault_enabled(const struct sim_agent *agent, struct sim_step *out)
{
    const struct sim_world *w = agent->world;
    const struct sim_protocol_part *s = &w->scenario->protocol;
    const struct protocol_world *p = protocol_world_of(w);
    uint32_t count = 0;
    for (uint32_t link = 0; p->faults->losses < s->losses && link < sim_rnic_links(w); link++) {
        struct sim_link_info info = sim_rnic_link(w, link);
        if (!info.established || info.ending || is_spared(w, info.agent[0]))
            continue;
        out[count++] =
            (struct sim_step){.kind = SIM_STEP_CUT, .agent = (uint8_t)agent->index, .arg = link};
    }
    if (p->faults->stops < s->stops)
        count += stops_enabled(agent, SIM_STEP_FAULT, out + count);
    if (p->faults->silent_stops < s->silent_stops)
        count += stops_enabled(agent, SIM_STEP_SILENCE, out + count);
    if (may_restart(w))
        out[count++] = (struct sim_step){
            .kind = SIM_STEP_FAULT, .agent = (uint8_t)agent->index, .queue = TARGET};
    return count;
}

/* When no more can be lost, arrival is no event of its own any more. */
static void lose(struct sim_world *w, struct protocol_world *p, uint32_t link)
{
    sim_rnic_cut(w, link);
    sim_reach(w, PROTOCOL_REACH_CONNECTION_LOST);
    if (++p->faults->losses < w->scenario->protocol.losses ||
        w->scenario->protocol.stops + w->scenario->protocol.silent_stops +
                w->scenario->protocol.restarts !=
            0)
        return;
    sim_rnic_may_be_lost_default(w, false);
    for (uint32_t other = 0; other < sim_rnic_links(w); other++)
        if (sim_rnic_link(w, other).exists)
            sim_rnic_may_be_lost(w, other, false);
}

static void fault_run(struct sim_agent *agent, const struct sim_step *step)
{
    struct sim_world *w = agent->world;
    struct protocol_world *p = protocol_world_of(w);
    sim_ghost_write(w, p->faults, sizeof *p->faults);
    if (step->kind == SIM_STEP_CUT) {
        lose(w, p, step->arg);
        return;
    }
    if (step->queue == TARGET) {
        protocol_note_all(w);
        p->faults->restarts++;
        protocol_restart(w);
        return;
    }
    p->faults->stopped[step->queue - p->view.first_initiator] = 1;
    sim_reach(w, PROTOCOL_REACH_STOPPED);
    sim_cpu_kill(&w->agents[step->queue]);
    if (step->kind == SIM_STEP_FAULT) {
        p->faults->stops++;
        sim_rnic_host_dies(w, step->queue);
    } else {
        p->faults->silent_stops++;
        sim_rnic_host_falls_silent(w, step->queue);
    }
}

static bool fault_at_rest(const struct sim_agent *agent)
{
    (void)agent;
    return true;
}

const struct sim_agent_ops protocol_fault_ops = {
    .enabled = fault_enabled,
    .run = fault_run,
    .at_rest = fault_at_rest,
};
