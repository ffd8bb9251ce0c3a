/* SPDX-License-Identifier: BSD-3-Clause */
/* A protocol world in words. */
#include <stdio.h>
#include <string.h>

#include "sim/kind.h"
#include "sim/protocol_agents.h"
#include "sim/protocol_chart.h"
#include "sim/rnic.h"

const char *const sim_protocol_reach_names[] = {
    [SIM_REACH_LOAD_BEFORE_STORE] = "load-before-store",
    [PROTOCOL_REACH_DEFERRAL] = "deferral",
    [PROTOCOL_REACH_TWO_DEFERRALS] = "two-deferrals",
    [PROTOCOL_REACH_DEFERRED_WRITE] = "deferred-write",
    [PROTOCOL_REACH_WAIT] = "wait",
    [PROTOCOL_REACH_RING_WRAP] = "ring-wrap",
    [PROTOCOL_REACH_TICKET_WRAP] = "ticket-wrap",
    [PROTOCOL_REACH_GENERATION_WRAP] = "generation-wrap",
    [PROTOCOL_REACH_QUOTA_FULL] = "quota-full",
    [PROTOCOL_REACH_PINNED_FREE] = "pinned-free",
    [PROTOCOL_REACH_PIN_RETURNED] = "pin-returned",
    [PROTOCOL_REACH_STALE_LOAD] = "stale-load",
    [PROTOCOL_REACH_LOAD_WAITS_FOR_STORE] = "load-waits-for-store",
    [PROTOCOL_REACH_STORE_WAITS_FOR_LOAD] = "store-waits-for-load",
    [PROTOCOL_REACH_PIPELINED] = "pipelined",
    [PROTOCOL_REACH_CREDITS_USED_UP] = "credits-used-up",
    [PROTOCOL_REACH_NO_SPACE] = "no-space",
    [PROTOCOL_REACH_NOT_VALID] = "not-valid",
    [PROTOCOL_REACH_ALREADY_BOUND] = "already-bound",
    [PROTOCOL_REACH_CONNECTION_LOST] = "connection-lost",
    [PROTOCOL_REACH_RECONNECTED] = "reconnected",
    [PROTOCOL_REACH_IN_DOUBT] = "in-doubt",
    [PROTOCOL_REACH_SESSION_RESTORED] = "session-restored",
    [PROTOCOL_REACH_HELLO_HELD] = "hello-held",
    [PROTOCOL_REACH_REQUEST_DROPPED] = "request-dropped",
    [PROTOCOL_REACH_WORKER_RECLAIMS] = "worker-reclaims",
    [PROTOCOL_REACH_RETENTION_ENDED] = "retention-ended",
    [PROTOCOL_REACH_DIRECT_LOAD] = "direct-load",
    [PROTOCOL_REACH_DIRECT_LOAD_CHANGED] = "direct-load-changed",
    [PROTOCOL_REACH_DIRECT_ALLOC] = "direct-alloc",
    [PROTOCOL_REACH_SLOT_REREAD] = "slot-reread",
    [PROTOCOL_REACH_TICKET_ABANDONED] = "ticket-abandoned",
    [PROTOCOL_REACH_LATE_BIND] = "late-bind",
    [PROTOCOL_REACH_LATE_WRITE] = "late-write",
    [PROTOCOL_REACH_GIVEN_UP] = "given-up",
    [PROTOCOL_REACH_RECORD] = "record",
    [PROTOCOL_REACH_INVALIDATED] = "invalidated",
    [PROTOCOL_REACH_PROBE_ANSWERED] = "probe-answered",
    [PROTOCOL_REACH_PROBE_FAILED] = "probe-failed",
    [PROTOCOL_REACH_HELLO_REFUSED] = "hello-refused",
    [PROTOCOL_REACH_STOPPED] = "stopped",
    [PROTOCOL_REACH_RESTARTED] = "restarted",
    [PROTOCOL_REACH_STALE_GENERATION] = "stale-generation",
};
_Static_assert(PROTOCOL_REACH_COUNT <= SIM_MAX_REACH, "SIM_MAX_REACH");

static const char *plural(uint32_t count)
{
    return count == 1 ? "" : "s";
}

static void describe_target(const struct sim_scenario *s, char *out, size_t size)
{
    const struct sim_protocol_part *p = &s->protocol;
    sim_kind_say(out, size, "N = %u, F = %u, blocks of %u octets, %u handle%s, %u credit%s; target",
                 s->slots, s->blocks, (uint32_t)s->block_size, p->handles, plural(p->handles),
                 p->credits, plural(p->credits));
    for (unsigned i = 0; i < p->workers_count; i++)
        sim_kind_say(out, size, " %s", p->workers[i].name);
    if (p->losses != 0)
        sim_kind_say(out, size, "; at most %u connection%s lost", p->losses, plural(p->losses));
    if (p->stops != 0)
        sim_kind_say(out, size, "; at most %u initiator%s stopped", p->stops, plural(p->stops));
    if (p->silent_stops != 0)
        sim_kind_say(out, size, "; at most %u initiator%s silent", p->silent_stops,
                     plural(p->silent_stops));
    if (p->restarts != 0)
        sim_kind_say(out, size, "; at most %u restart%s", p->restarts, plural(p->restarts));
    if (p->retention != SIM_RETENTION_LASTS)
        sim_kind_say(out, size, "; retention ends");
}

static void describe_initiator(const struct sim_protocol_part *p, unsigned index, char *out,
                               size_t size)
{
    const struct sim_initiator *initiator = &p->initiators[index];
    sim_kind_say(out, size, "%s: %u request%s, depth %u, quota %u, to", initiator->name,
                 initiator->program_count, plural(initiator->program_count), initiator->depth,
                 initiator->quota);
    for (uint32_t i = 0; i <= initiator->reconnects; i++) {
        unsigned last = initiator->workers_count - 1;
        uint32_t worker = initiator->workers[i < last ? i : last];
        sim_kind_say(out, size, "%s %s", i > 0 ? ", then" : "", p->workers[worker].name);
    }
}

bool sim_protocol_describe_world(const struct sim_scenario *s, unsigned line, char *out,
                                 size_t size)
{
    out[0] = '\0';
    if (line > s->protocol.initiators_count)
        return false;
    if (line == 0)
        describe_target(s, out, size);
    else
        describe_initiator(&s->protocol, line - 1, out, size);
    return true;
}

/* ---- accesses ---------------------------------------------------------------------------- */

/* "request 2: LOAD 1 of Y" */
static void describe_request(const struct sim_world *w, uint32_t initiator, uint32_t number,
                             char *out, size_t size)
{
    static const char *const ops[] = {[SIM_REQUEST_LOAD] = "LOAD",
                                      [SIM_REQUEST_STORE] = "STORE",
                                      [SIM_REQUEST_ALLOC_STORE] = "ALLOC_STORE",
                                      [SIM_REQUEST_FREE] = "FREE",
                                      [SIM_REQUEST_GOODBYE] = "GOODBYE"};
    const struct sim_protocol_part *p = &w->scenario->protocol;
    const struct sim_request *request = &p->initiators[initiator].program[number];
    sim_kind_say(out, size, "request %u: %s", number + 1, ops[request->op]);
    if (request->op == SIM_REQUEST_GOODBYE)
        return;
    sim_kind_say(out, size, " %u", request->handle);
    if (request->owner == SIM_NOBODY)
        sim_kind_say(out, size, " outside");
    else if (request->owner != initiator)
        sim_kind_say(out, size, " of %s", p->initiators[request->owner].name);
    if (request->inline_data)
        sim_kind_say(out, size, ", inline");
    if (request->direct)
        sim_kind_say(out, size, ", direct");
    if (request->record)
        sim_kind_say(out, size, ", by record");
    if (request->invalidate)
        sim_kind_say(out, size, ", in a window of its own");
}

static void describe_choice(const struct sim_world *w, const struct sim_access *access, char *out,
                            size_t size)
{
    uint32_t initiator = sim_protocol_initiator(w, access->agent);
    if (initiator == SIM_NOBODY || access->argument >> 16 == CHOICE_POLL)
        return;
    if (access->argument >> 16 == CHOICE_CONNECT) {
        sim_kind_say(out, size, "connects");
        return;
    }
    sim_kind_say(out, size, "submits ");
    describe_request(w, initiator, access->argument & 0xffff, out, size);
}

static void describe_outcome(const struct sim_world *w, const struct sim_access *access, char *out,
                             size_t size)
{
    uint32_t initiator = sim_protocol_initiator(w, access->agent);
    if (initiator == SIM_NOBODY || access->argument >> 16 != CHOICE_POLL || access->value != 1)
        return;
    const struct kbtp_outcome *outcome = &protocol_initiator_of(w, initiator)->outcome;
    if (outcome->error != 0)
        sim_kind_say(out, size, "is told that nobody knows, ");
    else
        sim_kind_say(out, size, "is told %s, Generation %u, ", kbtp_status_name(outcome->status),
                     outcome->generation);
    describe_request(w, initiator, (uint32_t)outcome->cookie, out, size);
}

/* Readers, and what else a word of pins says. */
static void describe_pins(uint64_t value, char *out, size_t size)
{
    sim_kind_say(out, size, "%u reader%s", (uint32_t)value, plural((uint32_t)value));
    if (value & KBTP_PIN_FREED)
        sim_kind_say(out, size, ", freed");
    if (value & KBTP_PIN_WRITER)
        sim_kind_say(out, size, ", STORE");
}

/* Whose request has this tag, and which of its program, from 1; NULL: none has. */
static const char *owner_of(const struct sim_world *w, uint32_t tag, uint32_t *number)
{
    const struct sim_protocol_world *p = sim_protocol_of(w);
    uint32_t owner = p->initiators - 1;
    if (!sim_protocol_request(w, tag))
        return NULL;
    while (tag <= p->first_tag[owner])
        owner--;
    *number = tag - p->first_tag[owner];
    return w->scenario->protocol.initiators[owner].name;
}

/* "data of X's request 1", or the octets. */
static void describe_data(const struct sim_world *w, const struct sim_access *access, char *out,
                          size_t size)
{
    uint32_t number;
    const char *owner =
        owner_of(w, sim_protocol_tag((const char *)&access->value, access->octets), &number);
    if (owner)
        sim_kind_say(out, size, "data of %s's request %u", owner, number);
    else
        sim_kind_say(out, size, "%#llx", (unsigned long long)access->value);
}

#define MAX_RUNS 3u /* of equal octets, before octets are called mixed */

void sim_protocol_describe_octets(const struct sim_world *w, const char *at, uint32_t octets,
                                  char *out, size_t size)
{
    uint32_t runs = 0, number;
    out[0] = '\0';
    for (uint32_t i = 0; i < octets; i++) {
        if (i > 0 && at[i] == at[i - 1])
            continue;
        if (runs++ == MAX_RUNS) {
            snprintf(out, size, "mixed");
            return;
        }
        const char *owner = owner_of(w, (unsigned char)at[i], &number);
        sim_kind_say(out, size, i > 0 ? " " : "");
        if (owner)
            sim_kind_say(out, size, "%s#%u", owner, number);
        else
            sim_kind_say(out, size, at[i] == 0 ? "-" : "?");
    }
}

/* False when the access is not to a session. */
static bool describe_session(const struct sim_world *w, const struct sim_access *access,
                             char *place, char *value, size_t size)
{
    const struct kbtp_session *sessions = protocol_world_of(w)->target->sessions.sessions;
    uint32_t initiators = sim_protocol_of(w)->initiators;
    const char *at = access->at, *first = (const char *)sessions;
    if (at < first || at >= first + initiators * sizeof *sessions)
        return false;
    size_t number = (size_t)(at - first) / sizeof *sessions;
    size_t field = (size_t)(at - first) % sizeof *sessions;
    const char *name = w->scenario->protocol.initiators[number].name;
    if (field == offsetof(struct kbtp_session, state)) {
        sim_kind_say(place, size, "%s's session", name);
        sim_kind_say(value, size, "%s", kbtp_session_state_name(access->value));
    } else if (field == offsetof(struct kbtp_session, usage)) {
        sim_kind_say(place, size, "%s's usage", name);
        sim_kind_say(value, size, "usage %u", (uint32_t)access->value);
    } else {
        sim_kind_say(place, size, "%s's ID", name);
    }
    return true;
}

void protocol_describe_place(const struct sim_world *w, const struct sim_access *access,
                             char *place, char *value, size_t size)
{
    const struct sim_protocol_world *p = sim_protocol_of(w);
    const char *at = access->at;
    uint32_t block = sim_protocol_block(p, at), pinned = sim_protocol_pins(p, at);
    place[0] = value[0] = '\0';
    if (sim_ring_memory_at(&p->ring, at) || sim_ring_entry_at(&p->ring, at)) {
        sim_ring_describe_place(w, access, place, value, size);
    } else if (pinned != RING_NO_BLOCK) {
        sim_kind_say(place, size, "pins of block %u", p->ring.first_block + pinned);
        describe_pins(access->value, value, size);
    } else if (describe_session(w, access, place, value, size)) {
        return;
    } else if (block != RING_NO_BLOCK) {
        sim_kind_say(place, size, "block %u +%u", p->ring.first_block + block,
                     (uint32_t)((uint64_t)(at - p->blocks) % p->ring.block_size));
        describe_data(w, access, value, size);
    } else {
        const struct sim_segment *segment =
            sim_segment_find((struct sim_arena *)&w->arena, access->at);
        sim_kind_say(place, size, "%s", segment ? segment->name : "memory");
        describe_data(w, access, value, size);
    }
}

/* ---- messages ---------------------------------------------------------------------------- */

static void describe_handle(const struct sim_world *w, uint64_t handle, char *out, size_t size)
{
    uint64_t entry = handle - SIM_PROTOCOL_FIRST_HANDLE;
    if (entry < sim_ring_of(w)->entry_count)
        sim_kind_say(out, size, "h%u", (unsigned)entry);
    else
        sim_kind_say(out, size, "handle %#llx", (unsigned long long)handle);
}

static void describe_completion(const struct sim_world *w, const struct kbtp_header *header,
                                char *out, size_t size)
{
    const char *status = kbtp_status_name(header->status);
    sim_kind_say(out, size, " %s, ", status ? status : "?");
    describe_handle(w, header->handle, out, size);
    if (header->generation != 0)
        sim_kind_say(out, size, " gen %u", header->generation);
}

static void describe_operands(const struct sim_world *w, const struct kbtp_message *message,
                              char *out, size_t size)
{
    const struct kbtp_header *header = &message->header;
    sim_kind_say(out, size, " ");
    describe_handle(w, header->handle, out, size);
    if (header->generation != 0)
        sim_kind_say(out, size, " gen %u", header->generation);
    if (header->flags & KBTP_FLAG_INLINE)
        sim_kind_say(out, size, ", inline %u", message->operands.inline_length);
    else if (header->opcode == KBTP_OP_STORE || header->opcode == KBTP_OP_ALLOC_STORE)
        sim_kind_say(out, size, ", %u octets", message->operands.data.length);
    for (uint32_t bit = KBTP_FLAG_SEAL; bit <= UINT16_MAX; bit <<= 1) {
        const char *name = kbtp_flag_name(header->opcode, (uint16_t)bit);
        if ((header->flags & bit) && name)
            sim_kind_say(out, size, ", %s", name);
    }
}

static void describe_sent(const struct sim_world *w, const struct sim_message *sent, char *out,
                          size_t size)
{
    struct kbtp_message message;
    const struct kbtp_header *header = &message.header;
    if (kbtp_wire_decode(sent->payload, sent->length, w->scenario->addr_le, &message, NULL) != 0) {
        sim_kind_say(out, size, "%u octets that are no message", sent->length);
        return;
    }
    sim_kind_say(out, size, "%s", kbtp_opcode_name(header->opcode));
    if (header->opcode == KBTP_OP_COMPLETION)
        describe_completion(w, header, out, size);
    else if (header->opcode == KBTP_OP_HELLO_ACK)
        sim_kind_say(out, size, " %s",
                     kbtp_status_name(header->status) ? kbtp_status_name(header->status) : "?");
    else if (header->opcode == KBTP_OP_GOODBYE && (header->flags & KBTP_GOODBYE_RELEASE))
        sim_kind_say(out, size, " RELEASE");
    else if (header->opcode >= KBTP_OP_LOAD && header->opcode <= KBTP_OP_FREE)
        describe_operands(w, &message, out, size);
}

void sim_protocol_describe_message(const struct sim_world *w, const struct sim_message *message,
                                   char *out, size_t size)
{
    char data[48] = "";
    struct sim_header header;
    out[0] = '\0';
    if (message->op == RDMA_SEND || message->op == RDMA_SEND_INV) {
        describe_sent(w, message, out, size);
        return;
    }
    if (message->op == RDMA_WRITE_IMM && sim_protocol_header(w, message, &header)) {
        const char *status = kbtp_status_name(header.status);
        sim_kind_say(out, size, "completion record %s", status ? status : "?");
        if (header.generation != 0)
            sim_kind_say(out, size, ", gen %u", header.generation);
        return;
    }
    if (message->payload)
        sim_protocol_describe_octets(w, message->payload, message->length, data, sizeof data);
    const char *name = message->op == RDMA_WRITE  ? "RDMA Write"
                       : message->op != RDMA_READ ? sim_rdma_op_name(message->op)
                       : message->response        ? "Read Response"
                                                  : "Read Request";
    sim_kind_say(out, size, "%s %u%s%s", name, message->length, data[0] ? ": " : "", data);
}

/* ---- accesses in words ------------------------------------------------------------------- */

/* What was done to a block's word of pins: "pins block 100: 1 reader". */
static void describe_pinning(const struct sim_world *w, const struct sim_access *access,
                             const char *value, char *out, size_t size)
{
    static const struct {
        uint64_t added;
        const char *verb, *rest;
    } words[] = {
        {0, "looks at the pins of", ""},
        {KBTP_PIN_READER, "pins", ""},
        {-KBTP_PIN_READER, "unpins", ""},
        {KBTP_PIN_FREED, "marks", " freed"},
        {-KBTP_PIN_FREED, "takes", " back"},
        {KBTP_PIN_WRITER, "locks", " to store"},
        {-KBTP_PIN_WRITER, "unlocks", " after the store"},
    };
    const struct sim_protocol_world *p = sim_protocol_of(w);
    uint32_t block = sim_protocol_pins(p, access->at) + p->ring.first_block;
    const char *verb = "changes the pins of", *rest = "";
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (access->value - access->old == words[i].added) {
            verb = words[i].verb;
            rest = words[i].rest;
        }
    sim_kind_say(out, size, "%s block %u%s: %s", verb, block, rest, value);
}

static void describe_atomic(const struct sim_world *w, const struct sim_access *access,
                            const char *place, const char *value, char *out, size_t size)
{
    const struct sim_protocol_world *p = sim_protocol_of(w);
    const char *at = access->at;
    const struct sim_ring_memory *memory = sim_ring_memory_at(&p->ring, at);
    if (memory && (at == memory->head || at == memory->tail))
        sim_kind_say(out, size, "FetchAdd %s: ticket %u", place, (uint32_t)(access->old >> 32));
    else if (sim_protocol_pins(p, at) != RING_NO_BLOCK)
        describe_pinning(w, access, value, out, size);
    else
        sim_kind_say(out, size, "atomic on %s: %s", place, value);
}

static const char *verb(const struct sim_access *access)
{
    switch (access->kind) {
    case SIM_LOAD:
        return "loads";
    case SIM_READ:
        return "reads";
    case SIM_DRAIN:
        return "drains";
    case SIM_WRITE:
        return "writes";
    default:
        return access->buffered ? "buffers" : "stores";
    }
}

void protocol_describe(struct sim_world *w, const struct sim_access *access, char *out, size_t size)
{
    char place[80], value[80];
    out[0] = '\0';
    switch (access->kind) {
    case SIM_CHOSEN:
        describe_choice(w, access, out, size);
        return;
    case SIM_RESULT:
        describe_outcome(w, access, out, size);
        return;
    case SIM_DIED:
        if (access->agent >= sim_protocol_of(w)->workers)
            sim_kind_say(out, size, "stops for good");
        else if (access->agent == 0) /* for all workers, which are one host */
            sim_kind_say(out, size, "the target stops, and starts as new");
        return;
    default:
        break;
    }
    if (access->kind >= SIM_POST) {
        sim_rnic_describe(w, access, out, size);
        return;
    }
    protocol_describe_place(w, access, place, value, sizeof place);
    if (access->kind == SIM_ATOMIC)
        describe_atomic(w, access, place, value, out, size);
    else
        sim_kind_say(out, size, "%s %s: %s", verb(access), place, value);
}
