/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/protocol_agents.h"

#include <errno.h>
#include <string.h>

#include "sim/program.h"
#include "sim/rnic.h"

/* ---- workers ----------------------------------------------------------------------------- */

static int worker_poll(struct sim_agent *agent, void *private, uint32_t argument)
{
    const struct kbtp_cpu cpu = {&agent->mem, &agent->rdma};
    (void)argument;
    return kbtp_worker_poll(private, &cpu, 1);
}

static void worker_ended(struct sim_agent *agent, void *private, uint32_t argument, int result)
{
    struct sim_world *w = agent->world;
    struct kbtp_worker_look look;
    (void)argument, (void)result;
    if (!w->count_reached)
        return;
    /* What the list held at the start of the poll lies in the copy to roll back to. */
    uint32_t before = kbtp_worker_deferred((const struct kbtp_worker *)(const void *)w->rollback);
    kbtp_worker_look(private, &look);
    if (look.deferred > before)
        sim_reach(w, PROTOCOL_REACH_DEFERRAL);
    if (look.deferred > 1 && look.deferred > before)
        sim_reach(w, PROTOCOL_REACH_TWO_DEFERRALS);
    if (look.deferred < before)
        sim_reach(w, PROTOCOL_REACH_DEFERRED_WRITE);
    if (look.tickets != 0)
        sim_reach(w, PROTOCOL_REACH_WAIT);
    if (look.reads + look.loads > 1)
        sim_reach(w, PROTOCOL_REACH_PIPELINED);
    if (look.hellos != 0)
        sim_reach(w, PROTOCOL_REACH_HELLO_HELD);
}

static uint32_t no_choices(const struct sim_agent *agent, const void *private,
                           uint32_t out[SIM_MAX_CHOICES])
{
    (void)agent, (void)private, (void)out;
    return 0;
}

static void begin_nothing(struct sim_agent *agent, void *private, uint32_t argument)
{
    (void)agent, (void)private, (void)argument;
}

static bool always_due(const void *private)
{
    (void)private;
    return true;
}

/* Of sessions those of the target come first. */
static bool worker_may_expire(const struct sim_agent *agent, uint32_t timer)
{
    const struct sim_protocol_world *p = sim_protocol_of(agent->world);
    const struct sim_protocol_part *part = &agent->world->scenario->protocol;
    if (timer < p->sessions)
        return part->retention != SIM_RETENTION_LATE || protocol_is_left(agent->world, timer);
    return part->probes != SIM_PROBES_TIMELY ||
           !protocol_peer_lives(agent->world, agent->index, timer - p->sessions);
}

const struct sim_program protocol_worker_program = {
    .max_accesses = 128, /* and a block more, see add_worker() */
    .poll = worker_poll,
    .ended = worker_ended,
    .choices = no_choices,
    .begin = begin_nothing,
    .due = always_due,
    .may_expire = worker_may_expire,
};

/* ---- initiators: what they ask ----------------------------------------------------------- */

static const struct sim_initiator *program_of(const struct sim_agent *agent)
{
    return &agent->world->scenario->protocol
                .initiators[sim_protocol_initiator(agent->world, agent->index)];
}

static int submit(struct sim_agent *agent, struct protocol_initiator *it, uint32_t number)
{
    const struct kbtp_cpu cpu = {&agent->mem, &agent->rdma};
    const struct protocol_world *p = protocol_world_of(agent->world);
    const struct sim_initiator *s = program_of(agent);
    const struct sim_request *request = &s->program[number];
    uint32_t initiator = sim_protocol_initiator(agent->world, agent->index);
    struct rdma_window *window =
        request->invalidate ? protocol_window_of(p, s, it, initiator, number) : NULL;
    int failed = sim_program_submit(it->library, &cpu, agent->world->scenario, initiator, number,
                                    it->generations, &p->regions[initiator][number], window);
    if (failed != -ENOTSUP || !request->direct || request->op != SIM_REQUEST_ALLOC_STORE)
        return failed;
    /* When there is no more of it in this session, that is its outcome. */
    it->outcome = (struct kbtp_outcome){
        .cookie = number,
        .handle = sim_program_handle(&agent->world->scenario->protocol, request),
        .status = KBTP_STATUS_TICKET_ABANDONED};
    return 1;
}

static int initiator_poll(struct sim_agent *agent, void *private, uint32_t argument)
{
    const struct kbtp_cpu cpu = {&agent->mem, &agent->rdma};
    struct protocol_initiator *it = private;
    switch (argument >> 16) {
    case CHOICE_CONNECT:
        return kbtp_initiator_connect(it->library, &cpu);
    case CHOICE_SUBMIT:
        return submit(agent, it, argument & 0xffff);
    default:
        return kbtp_initiator_poll(it->library, &cpu, &it->outcome, 1);
    }
}

/* ---- initiators: what they may do -------------------------------------------------------- */

static bool is_finished(const struct sim_initiator *s, const struct protocol_initiator *it)
{
    return it->next == s->program_count && kbtp_initiator_outstanding(it->library) == 0;
}

/*
 * Is there room for one connection more? The target may be slow to notice that earlier ones
 * ended.
 */
static bool has_link(const struct sim_agent *agent)
{
    uint32_t first, count;
    sim_rnic_links_of(agent->world, agent->index, &first, &count);
    for (uint32_t i = 0; i < count; i++)
        if (!sim_rnic_link(agent->world, first + i).exists)
            return true;
    return false;
}

/* The request that another one waits for, or NULL. */
static struct sim_request_ghost *awaited(const struct sim_world *w,
                                         const struct sim_request *request)
{
    struct sim_protocol_world *p = sim_protocol_of(w);
    if (request->after_initiator == SIM_NOBODY)
        return NULL;
    return &p->requests[p->first_tag[request->after_initiator] + request->after_request];
}

static bool may_connect(const struct sim_agent *agent, const struct sim_initiator *s,
                        const struct protocol_initiator *it)
{
    return kbtp_initiator_state(it->library) == KBTP_INITIATOR_DOWN && !is_finished(s, it) &&
           !it->refused && (!it->was_ready || it->reconnects < s->reconnects) && has_link(agent) &&
           (!s->stranger || protocol_is_over(agent->world, agent->index)) &&
           (!s->restart || protocol_has_stopped(agent->world, s->session));
}

static bool may_submit(const struct sim_agent *agent, const struct sim_initiator *s,
                       const struct protocol_initiator *it)
{
    if (it->next == s->program_count || it->goodbye)
        return false;
    const struct sim_request *request = &s->program[it->next];
    const struct sim_request_ghost *before = awaited(agent->world, request);
    uint32_t outstanding = kbtp_initiator_outstanding(it->library);
    if (before && before->outcomes == 0)
        return false;
    if (request->op == SIM_REQUEST_GOODBYE)
        return kbtp_initiator_state(it->library) == KBTP_INITIATOR_READY && outstanding == 0;
    return outstanding < s->depth && kbtp_initiator_credits(it->library) != 0;
}

/* Who comes for a session of another one says HELLO when it has something to ask. */
static bool may_say_hello(const struct sim_agent *agent, const struct sim_initiator *s,
                          const struct protocol_initiator *it)
{
    if (s->session == sim_protocol_initiator(agent->world, agent->index) || s->restart ||
        it->next != 0)
        return true;
    const struct sim_request_ghost *before = awaited(agent->world, &s->program[0]);
    return !before || before->outcomes != 0;
}

/*
 * In worlds of faults one that has all it asked for, or waits for the next try, looks again when
 * there is something to see. What others do meanwhile it would not tell apart.
 */
static bool sleeps(const struct sim_agent *agent, const struct sim_initiator *s,
                   const struct protocol_initiator *it)
{
    const struct sim_protocol_part *part = &agent->world->scenario->protocol;
    bool may = part->sessions_count != part->initiators_count;
    for (uint32_t i = 0; i < part->initiators_count; i++)
        may |= part->initiators[i].spared || part->initiators[i].spared_until != 0;
    enum kbtp_initiator_state state = kbtp_initiator_state(it->library);
    bool still =
        state == KBTP_INITIATOR_WAITING || (state == KBTP_INITIATOR_READY && is_finished(s, it));
    return may && still && !sim_rnic_has_news(agent->world, agent->index);
}

static uint32_t initiator_choices(const struct sim_agent *agent, const void *private,
                                  uint32_t out[SIM_MAX_CHOICES])
{
    const struct protocol_initiator *it = private;
    const struct sim_initiator *s = program_of(agent);
    uint32_t count = 0;
    if (may_connect(agent, s, it))
        out[count++] = CHOICE(CHOICE_CONNECT, 0);
    if (may_submit(agent, s, it))
        out[count++] = CHOICE(CHOICE_SUBMIT, it->next);
    if (kbtp_initiator_state(it->library) != KBTP_INITIATOR_DOWN && may_say_hello(agent, s, it) &&
        !sleeps(agent, s, it))
        out[count++] = CHOICE(CHOICE_POLL, 0);
    return count;
}

/* A LOAD names a Generation, and so the life of the target that this is of. */
static void note_life(struct sim_world *w, const struct sim_initiator *s,
                      const struct protocol_initiator *it, uint32_t initiator, uint32_t request)
{
    struct sim_protocol_world *p = sim_protocol_of(w);
    struct sim_request_ghost *ghosts = &p->requests[p->first_tag[initiator]];
    uint32_t from = sim_program_known_from(s, it->generations, request);
    if (protocol_life(w) == 0 || s->program[request].op != SIM_REQUEST_LOAD ||
        s->program[request].generation != SIM_GENERATION_CURRENT || from == SIM_NOBODY)
        return;
    sim_ghost_write(w, &ghosts[request], sizeof *ghosts);
    ghosts[request].life = ghosts[from].life;
}

static void initiator_begin(struct sim_agent *agent, void *private, uint32_t argument)
{
    struct protocol_initiator *it = private;
    struct sim_world *w = agent->world;
    if (argument >> 16 == CHOICE_CONNECT) {
        if (program_of(agent)->stranger || program_of(agent)->restart)
            protocol_note_all(w);
        it->reconnects += it->was_ready;
        it->was_ready = 0;
    }
    const struct sim_request_ghost *first = awaited(w, &program_of(agent)->program[0]);
    if (first && it->next == 0)
        sim_footprint_note(w, first, sizeof *first, false);
    if (argument >> 16 != CHOICE_SUBMIT)
        return;
    note_life(w, program_of(agent), it, sim_protocol_initiator(w, agent->index), it->next);
    const struct sim_request *request = &program_of(agent)->program[it->next++];
    const struct sim_request_ghost *before = awaited(w, request);
    if (before) /* it rests on this */
        sim_ghost_write(w, before, sizeof *before);
    it->goodbye = request->op == SIM_REQUEST_GOODBYE;
}

static void initiator_ended(struct sim_agent *agent, void *private, uint32_t argument, int result)
{
    struct protocol_initiator *it = private;
    struct sim_world *w = agent->world;
    uint32_t initiator = sim_protocol_initiator(w, agent->index);
    enum kbtp_initiator_state state = kbtp_initiator_state(it->library);
    if (state == KBTP_INITIATOR_READY)
        it->was_ready = 1;
    if (kbtp_initiator_waiting(it->library) != 0)
        sim_reach(w, PROTOCOL_REACH_SLOT_REREAD);
    it->refused = state == KBTP_INITIATOR_DOWN && kbtp_initiator_why(it->library) > 0;
    if (argument >> 16 != CHOICE_POLL && result != 1) {
        if (result != 0)
            sim_violate(w, "initiator-accepts", "%s refuses what its program asks: %s", agent->name,
                        strerror(-result));
        return;
    }
    if (result == 1) {
        uint32_t request = (uint32_t)it->outcome.cookie;
        it->generations[request] = it->outcome.error ? 0 : it->outcome.generation;
        protocol_outcome(w, initiator, request, &it->outcome);
    }
    if (it->goodbye && state == KBTP_INITIATOR_DOWN) {
        struct kbtp_outcome gone = {.status = KBTP_STATUS_OK};
        it->goodbye = 0;
        protocol_outcome(w, initiator, it->next - 1, &gone);
    }
    memset(&it->outcome, 0, sizeof it->outcome);
}

static bool never_due(const void *private)
{
    (void)private;
    return false;
}

/* No try is made before the target has forgotten the last one. */
static bool initiator_may_expire(const struct sim_agent *agent, uint32_t timer)
{
    (void)timer;
    return has_link(agent);
}

const struct sim_program protocol_initiator_program = {
    .max_accesses = 64,
    .poll = initiator_poll,
    .ended = initiator_ended,
    .choices = initiator_choices,
    .begin = initiator_begin,
    .due = never_due,
    .may_expire = initiator_may_expire,
};
