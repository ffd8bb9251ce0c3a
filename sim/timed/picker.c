/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/timed/picker.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/random.h"
#include "sim/rnic_state.h"

#define PS 1000.0 /* of a nanosecond */
#define NOT_DUE UINT64_MAX
#define ENDS 64u /* connection ends of an RNIC */
#define ON_THE_WAY \
    256u                  /* messages to one of them, of which it is known when they arrive, and its
                             work requests, of which it is known when it learns of them */
#define TIMERS 64u        /* of a CPU */
#define FAULT_NS 5000.0   /* on average, until the environment strikes: so much, or up to ... */
#define FAULT_DOUBLED 5.0 /* times doubled, another in each run */
#define INTERRUPTED 0.005 /* of a CPU's accesses */
#define INTERRUPTED_NS 30000.0
#define GOES_ON 0.875 /* the chance that a run waits for a timer, when nothing else happens */
#define MOST_TAIL 1000.0
#define GIVE_UP_NS 1e6 /* until a sender gives up whom nobody answers */

/* A step that is possible, and when it is due. */
struct due {
    struct sim_step step;
    uint32_t number; /* of the message that it is about: places in queues change */
    bool sleeps;     /* a CPU that waits for something to happen */
    bool met;        /* in the present list */
    bool over;       /* it was made: where it is possible again, it is another one */
    uint64_t at_ps;
    uint64_t sequence;
};

/* Messages to an end of a connection. */
struct inbound {
    uint32_t sent, delivered, answered;
    uint64_t arrives_ps[ON_THE_WAY];
    uint64_t received_ps[ON_THE_WAY]; /* by the receiving side; 0: that is not known yet */
    uint32_t taken;                   /* of those that have no answer */
    uint64_t taken_ps[ON_THE_WAY];
    bool takes;               /* the next one is of them */
    uint64_t last_deliver_ps; /* when it was done last */
    uint64_t last_reply_ps;
};

/*
 * Work requests that a CPU has posted to an end, and its message in the making. Of a world's steps
 * one is made at a time, while an RNIC works at several: what a message waits for but for the one
 * before it begins when the RNIC knows of it.
 */
struct outbound {
    uint32_t posted, fetched, completed; /* completed: of those that have no answer */
    uint64_t known_ps[ON_THE_WAY];       /* when the doorbell is there, and the work request */
    uint64_t begun_ps, gathered_ps;      /* of the message in the making */
    bool completes;                      /* the next one that does is of them */
    uint64_t last_emit_ps;               /* when that was done last */
    uint64_t last_snapshot_ps;           /* of a managed queue */
};

struct agent_time {
    uint64_t free_ps; /* of a CPU */
    bool sleeps;
    bool found;                  /* something, in the poll that it is in */
    uint64_t expires_ps[TIMERS]; /* of a CPU, the timers that it has set */
    uint64_t send_free_ps, receive_free_ps, read_free_ps, write_free_ps, atomic_free_ps;
    uint64_t up_free_ps, down_free_ps; /* of an RNIC's link */
};

struct sim_picker {
    const struct sim_world *w;
    const struct sim_costs *costs;
    double spread;
    uint64_t now_ps, sequence, chance;
    struct due *due; /* by the place of the enabled step */
    struct due *before;
    uint32_t count;
    struct agent_time agents[SIM_MAX_AGENTS];
    double fault_ns;
    double cpu_ns; /* of what the CPU did in the last step */
    struct inbound inbound[SIM_MAX_AGENTS][ENDS];
    struct outbound outbound[SIM_MAX_AGENTS][ENDS];
};

struct sim_picker *sim_picker_new(const struct sim_world *w, const struct sim_costs *costs,
                                  double spread)
{
    struct sim_picker *p = calloc(1, sizeof *p);
    if (!p)
        return NULL;
    p->w = w;
    p->costs = costs;
    p->spread = spread;
    p->due = calloc(SIM_MAX_STEPS, sizeof *p->due);
    p->before = calloc(SIM_MAX_STEPS, sizeof *p->before);
    if (p->due && p->before)
        return p;
    sim_picker_free(p);
    return NULL;
}

void sim_picker_free(struct sim_picker *p)
{
    if (!p)
        return;
    free(p->due);
    free(p->before);
    free(p);
}

uint64_t sim_picker_now_ns(const struct sim_picker *p)
{
    return p->now_ps / 1000;
}

/* ---- durations --------------------------------------------------------------------------- */

/* From 0 to below 1. */
static double by_chance(struct sim_picker *p)
{
    return (double)(sim_random64(&p->chance) >> 11) / 9007199254740992.0;
}

void sim_picker_begin(struct sim_picker *p, uint64_t seed)
{
    p->now_ps = p->sequence = 0;
    p->chance = seed;
    p->count = 0;
    memset(p->agents, 0, sizeof p->agents);
    memset(p->inbound, 0, sizeof p->inbound);
    memset(p->outbound, 0, sizeof p->outbound);
    for (uint32_t i = 0; i < SIM_MAX_AGENTS * ENDS; i++)
        p->outbound[i / ENDS][i % ENDS].last_snapshot_ps = NOT_DUE;
    p->fault_ns = FAULT_NS * exp2(FAULT_DOUBLED * by_chance(p));
}

/* Half of the steps take little longer, one in a hundred a hundred times as long: as things are. */
static uint64_t vary(struct sim_picker *p, double ns)
{
    double factor = 1;
    if (p->spread > 0) {
        double u = by_chance(p), tail = u / (1 - u);
        factor += p->spread * (tail < MOST_TAIL ? tail : MOST_TAIL);
    }
    return (uint64_t)(ns * PS * factor + 0.5);
}

static uint64_t later(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* Takes what is used for `occupied_ns` from when it is free: when that is. */
static uint64_t use(struct sim_picker *p, uint64_t *free_ps, uint64_t from_ps, double occupied_ns)
{
    uint64_t begin_ps = later(from_ps, *free_ps);
    *free_ps = begin_ps + vary(p, occupied_ns);
    return begin_ps;
}

/* The same, until it is over. */
static uint64_t use_up(struct sim_picker *p, uint64_t *free_ps, uint64_t from_ps,
                       double occupied_ns)
{
    use(p, free_ps, from_ps, occupied_ns);
    return *free_ps;
}

/* ---- messages on the way ----------------------------------------------------------------- */

static struct inbound *inbound_of(struct sim_picker *p, uint32_t rnic, uint32_t end)
{
    return &p->inbound[rnic][end % ENDS];
}

/* A message has left this end: when its last octet is there follows from both links. */
static void leaves(struct sim_picker *p, const struct end *end, uint32_t octets)
{
    const struct end *peer = rnic_peer(end);
    const struct sim_costs *costs = p->costs;
    if (!peer)
        return;
    uint32_t from = end->handle->rnic->agent, to = peer->handle->rnic->agent;
    struct inbound *in = inbound_of(p, to, peer->index);
    uint64_t *arrives_ps = &in->arrives_ps[in->sent % ON_THE_WAY];
    in->received_ps[in->sent++ % ON_THE_WAY] = 0;
    *arrives_ps = p->now_ps;
    if (from == to) /* it turns round within the RNIC */
        return;
    double passes_ns = sim_costs_wire_octets(costs, octets) * 8 / costs->link_gbits_s;
    uint64_t first_ps = later(p->now_ps, p->agents[from].up_free_ps);
    p->agents[from].up_free_ps = first_ps + vary(p, passes_ns);
    uint64_t down_ps = later(first_ps, p->agents[to].down_free_ps);
    p->agents[to].down_free_ps = down_ps + vary(p, passes_ns);
    *arrives_ps = later(p->agents[from].up_free_ps, p->agents[to].down_free_ps) +
                  vary(p, costs->link_latency_ns);
}

/* Of `count` so far, when number `number`; 0: nothing is to be waited for. */
static uint64_t known_ps(const uint64_t known[ON_THE_WAY], uint32_t count, uint32_t number)
{
    return number < count && count - number <= ON_THE_WAY ? known[number % ON_THE_WAY] : 0;
}

static struct outbound *outbound_of(struct sim_picker *p, uint32_t rnic, uint32_t end)
{
    return &p->outbound[rnic][end % ENDS];
}

/* The RNIC learns of work requests that its CPU posts; receives cost the CPU nothing, as their
 * doorbell is in memory. */
static void posts(struct sim_picker *p, const struct sim_access *access)
{
    const struct sim_costs *costs = p->costs;
    const struct sim_handle *h = p->w->agents[access->cpu].handle;
    uint32_t count = (uint32_t)access->value;
    if (access->op == RDMA_RECV)
        return;
    p->cpu_ns += costs->ring_ns + costs->post_ns * count;
    struct outbound *out = outbound_of(p, h->rnic->agent, h->ends[access->conn].index);
    double ns = costs->doorbell_ns + (count > 1 ? costs->wqe_fetch_ns : 0);
    uint64_t at_ps = p->now_ps + (uint64_t)(p->cpu_ns * PS) + vary(p, ns);
    for (uint32_t i = 0; i < count; i++)
        out->known_ps[out->posted++ % ON_THE_WAY] = at_ps;
}

void sim_picker_observe(struct sim_picker *p, const struct sim_access *access)
{
    const struct sim_costs *costs = p->costs;
    switch (access->kind) {
    case SIM_EMIT: {
        const struct sim_handle *h = p->w->agents[access->cpu].handle;
        leaves(p, &h->ends[access->conn], access->octets);
        break;
    }
    case SIM_POST:
        posts(p, access);
        break;
    case SIM_CALL:
        if (access->op == SIM_CALL_TIMER)
            p->agents[access->cpu].expires_ps[access->conn % TIMERS] =
                p->now_ps + access->old * (uint64_t)PS;
        break;
    case SIM_POLL:
        p->cpu_ns += costs->poll_ns;
        break;
    case SIM_POLLED:
        p->cpu_ns += costs->take_ns;
        break;
    default:
        break;
    }
}

/* ---- when steps are due ------------------------------------------------------------------ */

/* On average so long, if not never. */
static uint64_t some_time(struct sim_picker *p, double ns)
{
    return (uint64_t)(-log(1 - by_chance(p)) * ns * PS);
}

/* By chance a CPU is taken away for longer than anything here takes, within whatever it does. */
static uint64_t interruption(struct sim_picker *p)
{
    if (p->spread == 0 || by_chance(p) >= INTERRUPTED)
        return 0;
    return some_time(p, INTERRUPTED_NS);
}

static uint64_t cpu_due_ps(struct sim_picker *p, const struct sim_step *step)
{
    const struct sim_agent *agent = &p->w->agents[step->agent];
    if (step->kind == SIM_STEP_DRAIN) {
        bool rings = agent->ops->cost(agent, step) == SIM_COST_DOORBELL;
        return p->now_ps + vary(p, rings ? p->costs->doorbell_ns : p->costs->access_ns);
    }
    if (step->kind == SIM_STEP_EXPIRE)
        return later(p->now_ps, p->agents[step->agent].expires_ps[step->queue % TIMERS]);
    /* In worlds of kind ring an RNIC makes the accesses of an allocator. */
    double ns = agent->kind == SIM_AGENT_RNIC ? p->costs->dma_read_ns : p->costs->access_ns;
    return later(p->now_ps, p->agents[step->agent].free_ps) + vary(p, ns) + interruption(p);
}

static uint64_t environment_due_ps(struct sim_picker *p)
{
    return p->now_ps + some_time(p, p->fault_ns);
}

static const struct end *end_of(const struct sim_picker *p, const struct sim_step *step)
{
    return p->w->agents[step->agent].rnic->ends[step->queue];
}

/* What is inline comes with the doorbell. With a WAIT, or an ENABLE, this is all that is done. */
static uint64_t fetch_ps(struct sim_picker *p, const struct due *due)
{
    struct outbound *out = outbound_of(p, due->step.agent, due->step.queue);
    const struct end *end = end_of(p, &due->step);
    uint64_t at_ps = known_ps(out->known_ps, out->posted, due->number);
    const struct rnic_wqe *wqe = rnic_wqe(end, end->state->launched);
    if (wqe->op == RDMA_WAIT || wqe->op == RDMA_ENABLE)
        return p->now_ps + vary(p, wqe->op == RDMA_WAIT ? p->costs->wait_ns : p->costs->enable_ns);
    if (at_ps != 0 && (wqe->flags & RDMA_INLINE))
        at_ps += vary(p, wqe->length / p->costs->inline_gbytes_s);
    out->begun_ps = out->last_emit_ps == p->now_ps ? at_ps : later(p->now_ps, at_ps);
    out->gathered_ps = out->begun_ps;
    return later(p->now_ps, at_ps);
}

/* A piece of the message in the making is there. */
static uint64_t gather_ps(struct sim_picker *p, const struct sim_step *step, double piece_ns)
{
    struct outbound *out = outbound_of(p, step->agent, step->queue);
    uint64_t at_ps = use_up(p, &p->agents[step->agent].read_free_ps, out->begun_ps, piece_ns) +
                     vary(p, p->costs->dma_read_ns);
    out->gathered_ps = later(out->gathered_ps, at_ps);
    return later(p->now_ps, at_ps);
}

static uint64_t emit_ps(struct sim_picker *p, const struct sim_step *step)
{
    const struct outbound *out = outbound_of(p, step->agent, step->queue);
    uint64_t begin_ps =
        use(p, &p->agents[step->agent].send_free_ps, out->gathered_ps, p->costs->send_message_ns);
    return later(p->now_ps, begin_ps + vary(p, p->costs->send_latency_ns));
}

/* One that only waited for the answer before it was ready meanwhile. */
static uint64_t reply_ps(struct sim_picker *p, const struct sim_step *step)
{
    const struct sim_costs *c = p->costs;
    bool ready = inbound_of(p, step->agent, step->queue)->last_reply_ps == p->now_ps;
    return use(p, &p->agents[step->agent].send_free_ps, p->now_ps, c->send_message_ns) +
           vary(p, ready ? c->send_message_ns : c->send_latency_ns);
}

/* What is enabled together is fetched together, as far as there is room for it. */
static uint64_t snapshot_ps(struct sim_picker *p, const struct sim_step *step)
{
    if (outbound_of(p, step->agent, step->queue)->last_snapshot_ps == p->now_ps)
        return p->now_ps;
    return p->now_ps + vary(p, p->costs->chain_fetch_ns);
}

/*
 * An answer has its completion when it is delivered. An acknowledgement comes back from a message
 * that has been delivered: it left when that was received, before it was written to memory.
 */
static uint64_t complete_ps(struct sim_picker *p, const struct due *due)
{
    const struct sim_costs *c = p->costs;
    const struct end *end = end_of(p, &due->step), *peer = rnic_peer(end);
    uint16_t op = rnic_wqe(end, end->state->completed)->op;
    struct outbound *out = outbound_of(p, due->step.agent, due->step.queue);
    out->completes = !rdma_is_answered(op) && !rnic_is_local(op);
    if (!out->completes || rnic_is_loop(end) || !peer)
        return p->now_ps;
    const struct inbound *in = inbound_of(p, peer->handle->rnic->agent, peer->index);
    double ns = c->acknowledge_ns + c->link_latency_ns - c->dma_write_ns;
    return later(p->now_ps,
                 known_ps(in->taken_ps, in->taken, due->number) + vary(p, ns > 0 ? ns : 0));
}

/* When the receiving side has taken message `number` of those to this end. */
static uint64_t received_ps(struct sim_picker *p, const struct sim_step *step, uint32_t number)
{
    struct inbound *in = inbound_of(p, step->agent, step->queue);
    uint64_t arrives_ps = known_ps(in->arrives_ps, in->sent, number);
    uint64_t *received = &in->received_ps[number % ON_THE_WAY];
    if (arrives_ps == 0)
        return p->now_ps;
    if (*received == 0)
        *received = use(p, &p->agents[step->agent].receive_free_ps, arrives_ps,
                        p->costs->receive_message_ns) +
                    vary(p, p->costs->receive_latency_ns);
    return *received;
}

/* When all of it is in memory, and seen where somebody polls for it. */
static uint64_t deliver_ps(struct sim_picker *p, const struct due *due)
{
    const struct end *end = end_of(p, &due->step);
    const struct rnic_packet *packet = rnic_inbound(end, rnic_inbound_next(end));
    bool completes = packet->type == PACKET_RESPONSE ||
                     (packet->type == PACKET_MESSAGE && packet->op != RDMA_WRITE);
    struct inbound *in = inbound_of(p, due->step.agent, due->step.queue);
    in->takes = packet->type == PACKET_MESSAGE;
    uint64_t at_ps = later(p->now_ps, received_ps(p, &due->step, due->number));
    bool ready = in->last_deliver_ps == p->now_ps && at_ps == p->now_ps;
    return at_ps + (completes && !ready ? vary(p, p->costs->completion_ns) : 0);
}

static double pieces_ns(const struct sim_picker *p, double gbytes_s)
{
    return p->w->scenario->machine.tear / gbytes_s;
}

static uint64_t rnic_due_ps(struct sim_picker *p, const struct due *due)
{
    const struct sim_step *step = &due->step;
    const struct sim_costs *c = p->costs;
    struct agent_time *t = &p->agents[step->agent];
    uint64_t now_ps = p->now_ps;
    switch (step->kind) {
    case SIM_STEP_FETCH:
        return fetch_ps(p, due);
    case SIM_STEP_SNAPSHOT:
        return snapshot_ps(p, step);
    case SIM_STEP_GATHER:
        return gather_ps(p, step, pieces_ns(p, c->dma_read_gbytes_s));
    case SIM_STEP_READ:
        return use_up(p, &t->read_free_ps, now_ps, pieces_ns(p, c->dma_read_gbytes_s)) +
               vary(p, c->dma_read_ns);
    case SIM_STEP_EMIT:
        return emit_ps(p, step);
    case SIM_STEP_REPLY:
        return reply_ps(p, step);
    case SIM_STEP_PLACE:
        return later(now_ps, use_up(p, &t->write_free_ps, received_ps(p, step, due->number),
                                    pieces_ns(p, c->dma_write_gbytes_s)) +
                                 vary(p, c->dma_write_ns));
    case SIM_STEP_DELIVER:
        return deliver_ps(p, due);
    case SIM_STEP_ATOMIC:
        return use_up(p, &t->atomic_free_ps, now_ps, c->atomic_ns) + vary(p, c->atomic_latency_ns);
    case SIM_STEP_COMPLETE:
        return complete_ps(p, due);
    case SIM_STEP_CONNECT:
        return now_ps + vary(p, c->connect_ns + c->link_latency_ns);
    case SIM_STEP_GIVE_UP:
        return now_ps + vary(p, GIVE_UP_NS);
    default: /* NOTICE, FLUSH */
        return now_ps + vary(p, c->link_latency_ns);
    }
}

static uint64_t due_ps(struct sim_picker *p, const struct due *due)
{
    const struct sim_agent *agent = &p->w->agents[due->step.agent];
    if (due->step.kind == SIM_STEP_FAULT || due->step.kind == SIM_STEP_CUT ||
        due->step.kind == SIM_STEP_SILENCE)
        return environment_due_ps(p);
    return agent->rnic ? rnic_due_ps(p, due) : cpu_due_ps(p, &due->step);
}

/* ---- the list ---------------------------------------------------------------------------- */

static bool is_poll(const struct sim_step *step)
{
    return step->kind == SIM_STEP_CHOOSE || step->kind == SIM_STEP_ACCESS;
}

/* Which message a step is about, counted since the connection began. */
static uint32_t number_of(struct sim_picker *p, const struct sim_step *step)
{
    const struct inbound *in = inbound_of(p, step->agent, step->queue);
    if (step->kind == SIM_STEP_PLACE || step->kind == SIM_STEP_DELIVER)
        return in->delivered + step->piece;
    if (step->kind == SIM_STEP_READ || step->kind == SIM_STEP_ATOMIC)
        return in->answered + step->piece;
    const struct outbound *out = outbound_of(p, step->agent, step->queue);
    if (step->kind == SIM_STEP_FETCH)
        return out->fetched;
    if (step->kind == SIM_STEP_COMPLETE)
        return out->completed;
    return 0;
}

static bool is_same(const struct due *a, const struct due *b)
{
    return a->step.kind == b->step.kind && a->step.agent == b->step.agent &&
           a->step.queue == b->step.queue && a->number == b->number && a->step.arg == b->step.arg;
}

/* The same step in the list before, or NULL. Lists are alike: it is looked for from `*at` on. */
static struct due *find(struct sim_picker *p, uint32_t count, const struct due *due, uint32_t *at)
{
    for (uint32_t i = 0; i < count; i++) {
        uint32_t n = *at + i < count ? *at + i : *at + i - count;
        if (!p->before[n].met && is_same(&p->before[n], due)) {
            *at = n + 1 < count ? n + 1 : 0;
            p->before[n].met = true;
            return &p->before[n];
        }
    }
    return NULL;
}

static void make_list(struct sim_picker *p, const struct sim_step *steps, uint32_t count)
{
    struct due *list = p->before;
    uint32_t before = p->count, at = 0;
    p->before = p->due;
    p->due = list;
    p->count = count;
    for (uint32_t i = 0; i < before; i++)
        p->before[i].met = false;
    for (uint32_t i = 0; i < count; i++) {
        struct due *due = &p->due[i];
        *due = (struct due){.step = steps[i], .number = number_of(p, &steps[i])};
        const struct due *old = find(p, before, due, &at);
        bool sleeps = is_poll(&due->step) && p->agents[due->step.agent].sleeps;
        if (old && old->sleeps == sleeps && !old->over) {
            due->at_ps = old->at_ps;
            due->sequence = old->sequence;
        } else {
            due->at_ps = sleeps ? NOT_DUE : due_ps(p, due);
            due->sequence = p->sequence++;
        }
        due->sleeps = sleeps;
    }
}

static bool is_before(const struct due *a, const struct due *b)
{
    return a->at_ps != b->at_ps ? a->at_ps < b->at_ps : a->sequence < b->sequence;
}

bool sim_picker_goes_on(struct sim_picker *p, const struct sim_step *steps, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (steps[i].kind == SIM_STEP_EXPIRE)
            return by_chance(p) < GOES_ON;
    return false;
}

uint32_t sim_picker_next(struct sim_picker *p, const struct sim_step *steps, uint32_t count)
{
    uint32_t first = 0, sleeper = count, sleepers = 0;
    bool others = false;
    make_list(p, steps, count);
    for (uint32_t i = 0; i < count; i++) {
        if (is_before(&p->due[i], &p->due[first]))
            first = i;
        if (p->due[i].sleeps && by_chance(p) * ++sleepers < 1) /* any of them */
            sleeper = i;
        others |= !p->due[i].sleeps && !sim_step_is_environment(&p->due[i].step);
    }
    /* Only the environment could do something, perhaps for ever: some time all has come to rest. */
    if (!others && sleeper != count && by_chance(p) < 0.5)
        first = sleeper;
    if (p->due[first].at_ps != NOT_DUE && p->due[first].at_ps > p->now_ps)
        p->now_ps = p->due[first].at_ps;
    p->cpu_ns = 0;
    return first;
}

static void after_rnic(struct sim_picker *p, const struct sim_step *step)
{
    struct inbound *in = inbound_of(p, step->agent, step->queue);
    struct outbound *out = outbound_of(p, step->agent, step->queue);
    switch (step->kind) {
    case SIM_STEP_SNAPSHOT:
        out->last_snapshot_ps = p->now_ps;
        out->known_ps[out->posted++ % ON_THE_WAY] = p->now_ps;
        break;
    case SIM_STEP_FETCH:
        out->fetched += out->fetched != out->posted;
        break;
    case SIM_STEP_EMIT:
        out->last_emit_ps = p->now_ps;
        break;
    case SIM_STEP_DELIVER:
        in->delivered++;
        in->last_deliver_ps = p->now_ps;
        if (in->takes)
            in->taken_ps[in->taken++ % ON_THE_WAY] = p->now_ps;
        break;
    case SIM_STEP_REPLY:
        in->answered++;
        in->last_reply_ps = p->now_ps;
        break;
    case SIM_STEP_COMPLETE:
        out->completed += out->completes;
        break;
    case SIM_STEP_FLUSH: /* what was on the way will not be delivered, nor fetched */
        in->delivered = in->sent;
        in->taken = 0;
        out->fetched = out->posted;
        out->completed = 0;
        break;
    default:
        break;
    }
}

void sim_picker_after(struct sim_picker *p, const struct sim_step *step)
{
    const struct sim_agent *agent = &p->w->agents[step->agent];
    struct agent_time *t = &p->agents[step->agent];
    if (agent->rnic)
        after_rnic(p, step);
    if (p->w->effect)
        for (uint32_t i = 0; i < p->w->agents_count; i++)
            p->agents[i].sleeps = false;
    if (is_poll(step)) {
        t->free_ps = p->now_ps + vary(p, p->cpu_ns);
        t->found |= p->w->effect;
        bool ends = agent->ops->at_rest(agent);
        t->sleeps = ends && !t->found;
        t->found &= !ends;
    }
    for (uint32_t i = 0; i < p->count; i++) /* a CPU's next access is another one */
        if (p->due[i].step.agent == step->agent &&
            (is_poll(step) ? is_poll(&p->due[i].step)
                           : memcmp(&p->due[i].step, step, sizeof *step) == 0))
            p->due[i].over = true;
}
