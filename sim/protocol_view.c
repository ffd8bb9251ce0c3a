/* SPDX-License-Identifier: BSD-3-Clause */
/* What checkers ask of a protocol world. */
#include <string.h>

#include "sim/protocol_agents.h"

uint32_t sim_protocol_initiator(const struct sim_world *w, uint32_t agent)
{
    const struct sim_protocol_world *p = sim_protocol_of(w);
    return agent - p->first_initiator < p->initiators ? agent - p->first_initiator : SIM_NOBODY;
}

uint32_t sim_protocol_session(const struct sim_world *w, uint32_t initiator)
{
    return w->scenario->protocol.initiators[initiator].session;
}

const struct sim_request *sim_protocol_request(const struct sim_world *w, uint32_t tag)
{
    const struct sim_protocol_world *p = sim_protocol_of(w);
    for (uint32_t i = p->initiators; tag != 0 && i-- > 0;)
        if (tag > p->first_tag[i]) {
            const struct sim_initiator *s = &w->scenario->protocol.initiators[i];
            uint32_t request = tag - p->first_tag[i] - 1;
            return request < s->program_count ? &s->program[request] : NULL;
        }
    return NULL;
}

uint32_t sim_protocol_tag(const char *at, uint32_t octets)
{
    for (uint32_t i = 1; i < octets; i++)
        if (at[i] != at[0])
            return 0;
    return octets != 0 ? (unsigned char)at[0] : 0;
}

uint32_t sim_protocol_block(const struct sim_protocol_world *p, const char *at)
{
    uint64_t octets = p->ring.block_count * p->ring.block_size;
    if (at < p->blocks || at >= p->blocks + octets)
        return RING_NO_BLOCK;
    return (uint32_t)((uint64_t)(at - p->blocks) / p->ring.block_size);
}

uint32_t sim_protocol_pins(const struct sim_protocol_world *p, const char *at)
{
    if (at < p->pins || at >= p->pins + 8u * (size_t)p->ring.block_count)
        return RING_NO_BLOCK;
    return (uint32_t)(at - p->pins) / 8;
}

const struct sim_told *sim_protocol_told(const struct sim_world *w)
{
    return protocol_world_of(w)->told;
}

uint32_t sim_protocol_record(const struct sim_world *w, const char *at, uint32_t *slot)
{
    const struct sim_protocol_world *p = sim_protocol_of(w);
    for (uint32_t i = 0; i < p->initiators; i++) {
        const char *first = p->records[i];
        uint32_t depth = w->scenario->protocol.initiators[i].depth;
        if (!first || at < first || at >= first + depth * (size_t)KBTP_RECORD_OCTETS)
            continue;
        *slot = (uint32_t)(at - first) / KBTP_RECORD_OCTETS;
        return i;
    }
    return SIM_NOBODY;
}

const char *sim_protocol_buffer(const struct sim_world *w, uint32_t tag)
{
    const struct sim_protocol_world *p = sim_protocol_of(w);
    uint32_t initiator = p->initiators - 1;
    while (tag <= p->first_tag[initiator])
        initiator--;
    return protocol_world_of(w)->regions[initiator][tag - p->first_tag[initiator] - 1].addr;
}

bool sim_protocol_clears(const struct sim_world *w)
{
    const struct sim_protocol_part *part = &w->scenario->protocol;
    for (uint32_t i = 1; i < part->initiators_count; i++)
        if (part->initiators[i].trust_domain != part->initiators[0].trust_domain)
            return true;
    return false;
}

/* The ring of its partition, or NULL. */
static const struct sim_ring_memory *ring_of(const struct sim_world *w, uint32_t initiator)
{
    const struct sim_ring_world *ring = sim_ring_of(w);
    const char *name = w->scenario->protocol.initiators[initiator].name;
    for (uint32_t i = 1; i < ring->rings_count; i++)
        if (ring->rings[i].owner == name)
            return &ring->rings[i];
    return NULL;
}

struct sim_tickets sim_protocol_tickets_before(const struct sim_world *w, uint32_t initiator,
                                               uint32_t ticket)
{
    const struct sim_ring_memory *memory = ring_of(w, initiator);
    struct sim_tickets tickets = {0};
    for (uint32_t i = 1; memory && i <= memory->slot_count; i++) {
        const char *slot = memory->slots + 16u * ((ticket - i) % memory->slot_count);
        uint32_t behind = sim_ring_sequence(slot) - (ticket - i);
        bool filled = sim_ring_offset(sim_ring_of(w), slot) != UINT64_MAX;
        tickets.with_block += filled && (behind == 0 || behind > INT32_MAX);
        tickets.earlier += filled && behind > INT32_MAX;
        tickets.unbound += (filled && behind == 0) || behind > INT32_MAX;
    }
    return tickets;
}

struct sim_tickets sim_protocol_tickets(const struct sim_world *w, uint32_t initiator)
{
    const struct sim_ring_memory *memory = ring_of(w, initiator);
    uint32_t head = memory ? (uint32_t)(sim_ring_counter_value(memory->head) >> 32) : 0;
    return sim_protocol_tickets_before(w, initiator, head);
}

bool sim_protocol_has_in_partition(const struct sim_world *w, uint32_t initiator, uint32_t block)
{
    const struct sim_ring_memory *memory = ring_of(w, initiator);
    return memory && block - memory->first_block < memory->block_count;
}

static enum kbtp_session_state state_of(const struct kbtp_session *session)
{
    struct mem direct = {.sim = NULL};
    return kbtp_session_state_in(mem_load64(&direct, &session->state));
}

bool sim_protocol_is_parted(const struct sim_world *w, uint32_t initiator, uint32_t *oldest_ticket)
{
    struct mem direct = {.sim = NULL};
    const struct kbtp_session *session =
        &protocol_world_of(w)->target->sessions.sessions[initiator];
    enum kbtp_session_state state = state_of(session);
    *oldest_ticket = (uint32_t)mem_load64(&direct, &session->oldest_ticket);
    return state == KBTP_SESSION_FREE || state == KBTP_SESSION_RETAINED;
}

bool sim_protocol_may_time_out(const struct sim_world *w, uint32_t initiator)
{
    return w->scenario->protocol.ticket_timeout &&
           state_of(&protocol_world_of(w)->target->sessions.sessions[initiator]) ==
               KBTP_SESSION_ACTIVE;
}

bool sim_protocol_is_retained(const struct sim_world *w, uint32_t session)
{
    return w->scenario->protocol.retention != SIM_RETENTION_LASTS &&
           state_of(&protocol_world_of(w)->target->sessions.sessions[session]) ==
               KBTP_SESSION_RETAINED;
}

bool sim_protocol_usage(const struct sim_world *w, uint32_t initiator, uint32_t *usage)
{
    const struct protocol_world *p = protocol_world_of(w);
    for (uint32_t i = 0; i < p->view.workers; i++)
        if (kbtp_worker_usage(protocol_worker_of(w, i), initiator, usage))
            return true;
    struct mem direct = {.sim = NULL};
    const struct kbtp_session *session = &p->target->sessions.sessions[initiator];
    if (kbtp_session_state_in(mem_load64(&direct, &session->state)) != KBTP_SESSION_RETAINED)
        return false;
    *usage = (uint32_t)mem_load64(&direct, &session->usage);
    return true;
}

/* ---- messages ---------------------------------------------------------------------------- */

static uint64_t number(const uint8_t *at, uint32_t octets, bool little)
{
    uint64_t value = 0;
    for (uint32_t i = 0; i < octets; i++)
        value = value << 8 | at[little ? octets - 1 - i : i];
    return value;
}

/* A record is shown as a COMPLETION without a handle. */
static bool record_header(const struct sim_message *message, struct sim_header *header)
{
    const uint8_t *at = message->payload;
    *header = (struct sim_header){.opcode = KBTP_OP_COMPLETION};
    if (message->length != KBTP_RECORD_OCTETS)
        return false;
    header->request_id = number(at, 8, false);
    header->status = (uint16_t)number(at + 8, 2, false);
    header->generation = (uint16_t)number(at + 10, 2, false);
    header->data_length = (uint32_t)number(at + 12, 4, false);
    header->block_offset = number(at + 16, 8, false);
    return true;
}

/* Of LOAD, STORE, ALLOC_STORE and FREE: the descriptors behind the header. */
static void read_descriptors(const struct sim_message *message, bool addr_le,
                             struct sim_header *header)
{
    const uint8_t *at = (const uint8_t *)message->payload + KBTP_HEADER_OCTETS;
    const uint8_t *end = (const uint8_t *)message->payload + message->length;
    if (header->opcode != KBTP_OP_FREE) {
        if (end - at < (ptrdiff_t)KBTP_DESCRIPTOR_OCTETS)
            return;
        header->stag = (uint32_t)number(at, 4, addr_le);
        at += KBTP_DESCRIPTOR_OCTETS;
    }
    if ((header->flags & KBTP_FLAG_RECORD) && end - at >= (ptrdiff_t)KBTP_DESCRIPTOR_OCTETS)
        header->record_offset = number(at + 4, 8, addr_le);
}

bool sim_protocol_header(const struct sim_world *w, const struct sim_message *message,
                         struct sim_header *header)
{
    const uint8_t *at = message->payload;
    if (message->op == RDMA_WRITE_IMM)
        return record_header(message, header);
    if (message->length < KBTP_HEADER_OCTETS || at[0] != KBTP_WIRE_VERSION)
        return false;
    bool request = at[1] >= KBTP_OP_LOAD && at[1] < KBTP_OP_COMPLETION;
    *header = (struct sim_header){
        .opcode = at[1],
        .flags = (uint16_t)number(at + 2, 2, false),
        .request_id = number(at + 4, 8, false),
        .handle = number(at + 12, 8, request && w->scenario->addr_le),
        .generation = (uint16_t)number(at + 20, 2, false),
        .status = (uint16_t)number(at + 22, 2, false),
    };
    if (header->opcode == KBTP_OP_COMPLETION && message->length >= KBTP_COMPLETION_OCTETS) {
        header->data_length = (uint32_t)number(at + 24, 4, false);
        header->block_offset = number(at + 32, 8, false);
    }
    if (header->opcode >= KBTP_OP_LOAD && header->opcode <= KBTP_OP_FREE)
        read_descriptors(message, w->scenario->addr_le, header);
    return true;
}
