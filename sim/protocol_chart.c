/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/protocol_chart.h"

#include <stdio.h>
#include <string.h>

#include "sim/chart_draw.h"
#include "sim/kind.h"
#include "sim/protocol_chart_rows.h"
#include "sim/rnic.h"

/* ---- messages ---------------------------------------------------------------------------- */

static uint32_t rnic_of(const struct sim_world *w, uint32_t cpu)
{
    const struct sim_protocol_world *p = sim_protocol_of(w);
    uint32_t initiator = sim_protocol_initiator(w, cpu);
    uint32_t target_rnic = p->first_initiator + p->initiators;
    return initiator == SIM_NOBODY ? target_rnic : target_rnic + 1 + initiator;
}

static void sent(struct protocol_builder *b, const struct sim_message *message)
{
    struct sim_world *w = b->lanes.w;
    if (b->fetched != NO_ROW && b->fetched == protocol_last_row(b))
        b->lanes.chart->rows_count--;
    struct chart_row *row = protocol_add_row(b, rnic_of(w, message->from), CHART_LEAVES);
    if (!row)
        return;
    row->memory_lane = b->lanes.agents[rnic_of(w, message->to)];
    sim_protocol_describe_message(w, message, row->text, sizeof row->text);
    if (b->flights_count == MAX_FLIGHTS)
        memmove(b->flights, b->flights + 1, --b->flights_count * sizeof *b->flights);
    b->flights[b->flights_count++] =
        (struct flight){protocol_last_row(b), message->link, message->from};
}

/* Messages of one direction are delivered in the order they were sent. */
static uint32_t landing_row(struct protocol_builder *b, const struct sim_message *message)
{
    for (uint32_t i = 0; i < b->flights_count; i++) {
        struct flight *flight = &b->flights[i];
        if (flight->link != message->link || flight->from != message->from)
            continue;
        uint32_t row = flight->row;
        b->flights_count--;
        memmove(flight, flight + 1, (b->flights_count - i) * sizeof *flight);
        return row;
    }
    return NO_ROW;
}

/* Its receiver will find a completion, and is to be quoted what it is of. */
static void await(struct protocol_builder *b, const struct sim_message *message)
{
    const struct sim_world *w = b->lanes.w;
    struct sim_link_info info = sim_rnic_link(w, message->link);
    struct arrival *arrival = &b->arrivals[b->next_arrival++ % MAX_ARRIVALS];
    arrival->awaited = true;
    arrival->cpu = message->to;
    arrival->conn = info.conn[info.agent[0] == message->to ? 0 : 1];
    arrival->wr_id = message->wr_id;
    sim_protocol_describe_message(w, message, arrival->words, sizeof arrival->words);
}

static void delivered(struct protocol_builder *b, const struct sim_message *message)
{
    uint32_t sent_row = landing_row(b, message);
    struct chart *chart = b->lanes.chart;
    if ((message->op == RDMA_SEND || message->op == RDMA_SEND_INV) && !message->response)
        await(b, message);
    if (sent_row != NO_ROW && (sent_row == protocol_last_row(b) ||
                               chart->rows[sent_row].step == b->replay->steps_run + 1)) {
        chart->rows[sent_row].kind = CHART_MESSAGE;
        return;
    }
    struct chart_row *row = protocol_add_row(b, rnic_of(b->lanes.w, message->from), CHART_ARRIVES);
    if (!row)
        return;
    row->memory_lane = b->lanes.agents[rnic_of(b->lanes.w, message->to)];
    sim_protocol_describe_message(b->lanes.w, message, row->text, sizeof row->text);
    sim_kind_say(row->text, sizeof row->text, " arrives");
}

/* As a checker of the world it is shown every message. It judges nothing. */
static void show_message(struct sim_world *w, const struct sim_message *message)
{
    struct protocol_builder *b = w->observe_context;
    if (!w->observe) /* a look for what can still happen */
        return;
    if (message->phase == SIM_SENT)
        sent(b, message);
    else
        delivered(b, message);
}

static const struct sim_checker onlooker = {.property = "", .says = "", .message = show_message};

/* ---- CPUs and connections ---------------------------------------------------------------- */

/* What its initiator is told of a completion says more than that it came. */
static void took(struct protocol_builder *b, const struct sim_access *access)
{
    bool initiator = sim_protocol_initiator(b->lanes.w, access->agent) != SIM_NOBODY;
    const char *words = "a message";
    for (uint32_t i = 0; i < MAX_ARRIVALS; i++) {
        struct arrival *arrival = &b->arrivals[i];
        if (!arrival->awaited || arrival->cpu != access->agent || arrival->conn != access->conn ||
            arrival->wr_id != access->value)
            continue;
        arrival->awaited = false;
        words = arrival->words;
        break;
    }
    if (!initiator)
        protocol_say(b, access->agent, CHART_LOCAL, "takes %.*s of %s", (int)strcspn(words, ","),
                     words, protocol_peer_name(b, access->agent, access->conn));
    else if (strncmp(words, "COMPLETION", 10) != 0)
        protocol_say(b, access->agent, CHART_LOCAL, "takes %s", words);
}

static void polled(struct protocol_builder *b, const struct sim_access *access)
{
    if (access->op == RDMA_RECV && access->status == RDMA_FLUSHED)
        return; /* it was never used */
    if (access->status != RDMA_OK)
        protocol_say(b, access->agent, CHART_LOCAL, "finds its %s %s",
                     protocol_message_name(access->op), sim_rdma_status_name(access->status));
    else if (access->op == RDMA_RECV)
        took(b, access);
    else if (access->op != RDMA_SEND && access->op != RDMA_SEND_INV)
        protocol_say(b, access->agent, CHART_LOCAL, "finds its %s done",
                     protocol_message_name(access->op));
}

static void event(struct protocol_builder *b, const struct sim_access *access)
{
    static const char *const words[] = {
        [RDMA_EVENT_REQUEST] = "is asked for a connection by",
        [RDMA_EVENT_CONNECTED] = "is connected to",
        [RDMA_EVENT_REJECTED] = "is rejected by",
        [RDMA_EVENT_DISCONNECTED] = "learns of the end of its connection to",
        [RDMA_EVENT_DRAINED] = "learns that nothing more comes from",
    };
    if (access->op == RDMA_EVENT_TIMER)
        protocol_say(b, access->agent, CHART_LOCAL, "learns that timer %u expired", access->conn);
    else if (access->op < sizeof words / sizeof *words && words[access->op])
        protocol_say(b, access->agent, CHART_LOCAL, "%s %s", words[access->op],
                     protocol_peer_name(b, access->agent, access->conn));
}

static void call(struct protocol_builder *b, const struct sim_access *access)
{
    static const char *const words[SIM_CALLS] = {
        [SIM_CALL_ACCEPT] = "accepts",
        [SIM_CALL_REJECT] = "rejects",
        [SIM_CALL_DISCONNECT] = "disconnects from",
    };
    char failure[160];
    if ((int64_t)access->value < 0) {
        protocol_describe(b->lanes.w, access, failure, sizeof failure);
        protocol_say(b, access->agent, CHART_LOCAL, "%s", failure);
    } else if (access->op == SIM_CALL_DESTROY) {
        protocol_say(b, access->agent, CHART_LOCAL, "is through with the connection");
    } else if (access->op < SIM_CALLS && words[access->op]) {
        protocol_say(b, access->agent, CHART_LOCAL, "%s %s", words[access->op],
                     protocol_peer_name(b, access->agent, access->conn));
    }
}

static void cut(struct protocol_builder *b, const struct sim_access *access)
{
    const struct sim_world *w = b->lanes.w;
    struct sim_link_info info = sim_rnic_link(w, (uint32_t)access->value);
    protocol_say(b, access->agent, CHART_FAULT, "the connection of %s to %s breaks",
                 w->agents[info.agent[0]].name,
                 info.agent[1] < w->agents_count ? w->agents[info.agent[1]].name : "the target");
}

static void rnic(struct protocol_builder *b, const struct sim_access *access)
{
    const struct sim_world *w = b->lanes.w;
    const char *of = w->agents[access->cpu].name;
    const char *peer = protocol_peer_name(b, access->cpu, access->conn);
    switch (access->kind) {
    case SIM_FETCH:
        protocol_say(b, access->agent, CHART_LOCAL, "begins %s to %s for %s",
                     protocol_message_name(access->op), peer, of);
        b->fetched = protocol_last_row(b);
        break;
    case SIM_DELIVER:
        if (access->status != RDMA_OK)
            protocol_say(b, access->agent, CHART_LOCAL, "cannot take %s from %s: %s",
                         protocol_message_name(access->op), peer,
                         sim_rdma_status_name(access->status));
        break;
    case SIM_COMPLETE:
        if (access->status != RDMA_OK)
            protocol_say(b, access->agent, CHART_LOCAL, "%s of %s fails: %s",
                         protocol_message_name(access->op), of,
                         sim_rdma_status_name(access->status));
        break;
    case SIM_CONNECT:
        protocol_say(b, access->agent, CHART_LOCAL,
                     !protocol_link_peer(w, access->cpu, access->conn)
                         ? "%s's request for a connection arrives"
                         : "%s's connection is answered",
                     of);
        break;
    case SIM_NOTICE:
        protocol_say(b, access->agent, CHART_LOCAL, "notices that %s's connection to %s ends", of,
                     peer);
        break;
    case SIM_FLUSH:
        protocol_say(b, access->agent, CHART_LOCAL, "stops %s's connection to %s, %u flushed", of,
                     peer, (unsigned)access->value);
        break;
    case SIM_GIVE_UP:
        protocol_say(b, access->agent, CHART_LOCAL, "gives up: nobody answers on connection %u",
                     access->conn);
        break;
    case SIM_EXPIRE:
        protocol_say(b, access->agent, CHART_LOCAL, "timer %u of %s expires",
                     (unsigned)access->value, of);
        break;
    default:
        break;
    }
}

/* ---- the run ----------------------------------------------------------------------------- */

static void own_words(struct protocol_builder *b, const struct sim_access *access)
{
    char words[160];
    b->lanes.w->ops->describe(b->lanes.w, access, words, sizeof words);
    if (words[0])
        protocol_say(b, access->agent, access->kind == SIM_DIED ? CHART_FAULT : CHART_LOCAL, "%s",
                     words);
}

static void observe(void *context, const struct sim_access *access)
{
    struct protocol_builder *b = context;
    switch (access->kind) {
    case SIM_CHOSEN:
    case SIM_RESULT:
    case SIM_DIED:
        own_words(b, access);
        break;
    case SIM_POLLED:
        polled(b, access);
        break;
    case SIM_EVENT:
        event(b, access);
        break;
    case SIM_CALL:
        call(b, access);
        break;
    case SIM_POST:
    case SIM_RING:
    case SIM_POLL:
    case SIM_EMIT: /* show_message() knows more */
        break;
    case SIM_CUT:
        cut(b, access);
        break;
    default:
        if (access->at)
            protocol_say_memory(b, access);
        else
            rnic(b, access);
    }
}

static void add_violation(struct protocol_builder *b, const struct sim_step *steps, uint32_t count)
{
    const struct sim_violation *violation = &b->lanes.w->violation;
    struct chart_row *row = protocol_add_row(b, count ? steps[count - 1].agent : 0, CHART_FAULT);
    if (!row)
        return;
    row->step = b->replay->steps_run;
    row->text[0] = '\0';
    sim_kind_say(row->text, sizeof row->text, "%s: %s", violation->property, violation->text);
}

/* Do the pins of this lane tell of readers or a STORE, and not only that a block was freed? */
static bool pins_matter(const struct chart *chart, uint32_t lane)
{
    for (uint32_t i = 0; i < chart->rows_count; i++) {
        const struct chart_row *row = &chart->rows[i];
        if (row->memory_lane == lane && row->kind == CHART_BOTH && strcmp(row->value, "0") != 0 &&
            strcmp(row->value, "freed") != 0)
            return true;
    }
    return false;
}

/* The rows stay, without arrows. */
static void leave_lane(struct chart *chart, uint32_t lane)
{
    for (uint32_t i = 0; i < chart->rows_count; i++)
        if (chart_is_access(chart, &chart->rows[i]) && chart->rows[i].memory_lane == lane)
            chart->rows[i].kind = CHART_LOCAL;
}

/* What only the whole run tells. */
static void finish(struct protocol_builder *b)
{
    struct chart *chart = b->lanes.chart;
    uint32_t pins = b->lanes.places[PLACE_PINS].lane, count = b->lanes.places[PLACE_PINS].count;
    for (uint32_t i = 0; i < chart->rows_count; i++)
        if (chart->rows[i].kind == CHART_LEAVES)
            sim_kind_say(chart->rows[i].text, sizeof chart->rows[i].text, " leaves");
    for (uint32_t lane = pins; lane < pins + count; lane++)
        if (!pins_matter(chart, lane))
            leave_lane(chart, lane);
    chart_rest_idle_lanes(chart);
}

void sim_protocol_chart(struct sim_world *w, const struct sim_step *steps, uint32_t count,
                        struct chart *chart, struct sim_replay *replay)
{
    struct protocol_builder b = {.replay = replay, .fold.row = NO_ROW, .fetched = NO_ROW};
    protocol_lanes_add(&b.lanes, w, chart);
    w->checkers[w->checkers_count++] = &onlooker;
    w->observe = observe;
    w->observe_context = &b;
    sim_replay(w, steps, count, replay);
    w->observe = NULL;
    w->observe_context = NULL;
    w->checkers_count--;
    if (replay->end == SIM_REPLAY_VIOLATION)
        add_violation(&b, steps, count);
    finish(&b);
}
