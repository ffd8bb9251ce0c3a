/* SPDX-License-Identifier: BSD-3-Clause */
/* Ghost records of a protocol world, kept from what is seen in memory and on the wire. */
#include <string.h>

#include "sim/protocol_agents.h"
#include "sim/rnic.h"

/* ---- memory ------------------------------------------------------------------------------ */

static struct sim_ring_block *ghost_block(struct sim_world *w, uint32_t index)
{
    struct sim_ring_block *block = &sim_ring_of(w)->ghost->blocks[index];
    sim_ghost_write(w, block, sizeof *block);
    return block;
}

/* A slot's Block Offset: the block it held is taken, or one comes back. */
static void slot_wrote(struct sim_world *w, const char *slot, const struct sim_write *write)
{
    struct sim_ring_world *ring = sim_ring_of(w);
    char old_slot[16] = {0};
    memcpy(old_slot + 8, write->old, 8);
    uint32_t taken = sim_ring_block_at(ring, sim_ring_offset(ring, old_slot));
    uint32_t back = sim_ring_block_at(ring, sim_ring_offset(ring, slot));
    if (back == RING_NO_BLOCK && taken != RING_NO_BLOCK) {
        *ghost_block(w, taken) =
            (struct sim_ring_block){.place = RING_HELD, .agent = (uint8_t)write->agent};
    } else if (back != RING_NO_BLOCK) {
        struct sim_ring_block *block = ghost_block(w, back);
        if (block->place == RING_HELD)
            sim_reach(w, PROTOCOL_REACH_WORKER_RECLAIMS);
        *block = (struct sim_ring_block){.place = RING_IN_RING};
    }
}

/* The data under an entry has a name: it can be loaded under this Generation from now on. */
static void data_is_bound(struct sim_world *w, const char *entry)
{
    struct sim_protocol_world *p = sim_protocol_of(w);
    uint32_t block = sim_ring_block_at(&p->ring, sim_ring_offset(&p->ring, entry));
    uint32_t length = sim_ring_entry_length(entry);
    if (block == RING_NO_BLOCK || length > p->ring.block_size)
        return;
    uint32_t tag = sim_protocol_tag(p->blocks + block * p->ring.block_size, length);
    if (!sim_protocol_request(w, tag))
        return;
    sim_ghost_write(w, &p->requests[tag - 1], sizeof *p->requests);
    p->requests[tag - 1].generation = sim_ring_entry_generation(entry);
}

static void became_bound(struct sim_world *w, const char *entry, uint32_t number)
{
    struct sim_protocol_world *p = sim_protocol_of(w);
    uint32_t owner = sim_protocol_owner(p, number);
    uint32_t index = sim_ring_block_at(&p->ring, sim_ring_offset(&p->ring, entry));
    sim_ghost_write(w, p->wire[owner], sizeof *p->wire[owner]);
    p->wire[owner]->bound++;
    if (p->wire[owner]->bound == w->scenario->protocol.initiators[owner].quota)
        sim_reach(w, PROTOCOL_REACH_QUOTA_FULL);
    if (index == RING_NO_BLOCK)
        return;
    struct sim_ring_block *block = ghost_block(w, index);
    block->place = RING_BOUND;
    block->entry = (uint16_t)number;
    data_is_bound(w, entry);
}

static void became_free(struct sim_world *w, const char *entry, uint32_t number, uint32_t agent)
{
    struct sim_protocol_world *p = sim_protocol_of(w);
    uint32_t owner = sim_protocol_owner(p, number);
    uint32_t index = sim_ring_block_at(&p->ring, sim_ring_offset(&p->ring, entry));
    sim_ghost_write(w, p->wire[owner], sizeof *p->wire[owner]);
    p->wire[owner]->bound--;
    if (index == RING_NO_BLOCK)
        return;
    struct sim_ring_block *block = ghost_block(w, index);
    block->place = RING_FREEING;
    block->agent = (uint8_t)agent;
}

static void flags_wrote(struct sim_world *w, const char *entry, const struct sim_write *write)
{
    uint32_t number = (uint32_t)(entry - sim_ring_of(w)->table) / 16;
    bool was = sim_ring_entry_is_valid(write->old), is = sim_ring_entry_is_valid(entry);
    if (is && !was)
        became_bound(w, entry, number);
    if (was && !is)
        became_free(w, entry, number, write->agent);
    if (sim_ring_entry_generation(entry) < sim_ring_entry_generation(write->old))
        sim_reach(w, PROTOCOL_REACH_GENERATION_WRAP);
}

static void head_wrote(struct sim_world *w, const struct sim_write *write)
{
    uint32_t ticket = (uint32_t)(sim_ring_counter_value(write->old) >> 32);
    if (ticket != w->scenario->first_ticket && ticket % w->scenario->slots == 0)
        sim_reach(w, PROTOCOL_REACH_RING_WRAP);
    if (ticket < w->scenario->first_ticket)
        sim_reach(w, PROTOCOL_REACH_TICKET_WRAP);
}

/*
 * Readers of a block in the low half, then FREED, then WRITER (ref/pins.h): only to know what was
 * reached.
 */
static void pins_wrote(struct sim_world *w, const struct sim_write *write, uint32_t block)
{
    struct sim_protocol_world *p = sim_protocol_of(w);
    uint64_t old, new;
    memcpy(&old, write->old, 8);
    memcpy(&new, write->at, 8);
    bool freed = new &KBTP_PIN_FREED, writer = new &KBTP_PIN_WRITER;
    if (freed && !(old & KBTP_PIN_FREED) && (old & KBTP_PIN_READERS))
        sim_reach(w, PROTOCOL_REACH_PINNED_FREE);
    if (new == KBTP_PIN_FREED && old == KBTP_PIN_FREED + KBTP_PIN_READER)
        sim_reach(w, PROTOCOL_REACH_PIN_RETURNED);
    if (new == old + KBTP_PIN_READER && writer)
        sim_reach(w, PROTOCOL_REACH_LOAD_WAITS_FOR_STORE);
    if (new == old + KBTP_PIN_READER && p->ring.ghost->blocks[block].place != RING_BOUND)
        sim_reach(w, PROTOCOL_REACH_STALE_LOAD);
    if (writer && !(old & KBTP_PIN_WRITER) && (old & KBTP_PIN_READERS))
        sim_reach(w, PROTOCOL_REACH_STORE_WAITS_FOR_LOAD);
}

/* The initiator whose session's state `at` is, or SIM_NOBODY. */
static uint32_t session_at(const struct sim_world *w, const char *at)
{
    const struct kbtp_sessions *all = &protocol_world_of(w)->target->sessions;
    for (uint32_t i = 0; i < all->count; i++)
        if (at == (const char *)&all->sessions[i].state)
            return i;
    return SIM_NOBODY;
}

/* Its connection ends; while a HELLO asks whether it lives: it has not answered. */
static void session_ends(struct sim_world *w, uint32_t agent, uint32_t initiator, uint64_t old)
{
    const struct kbtp_session *session =
        &protocol_world_of(w)->target->sessions.sessions[initiator];
    struct mem direct = {.sim = NULL};
    uint64_t probe = mem_load64(&direct, &session->probe);
    struct sim_link_info info = sim_rnic_link(w, sim_protocol_of(w)->wire[initiator]->link);
    if (probe == (old ^ KBTP_SESSION_ACTIVE ^ KBTP_PROBE_ASKED) && info.agent[0] == UINT32_MAX)
        sim_reach(w, PROTOCOL_REACH_PROBE_FAILED);
    sim_event(w, agent, PROTOCOL_SESSION_ENDS, initiator);
}

/* The initiator whose session's probe `at` is, or SIM_NOBODY. */
static uint32_t probe_at(const struct sim_world *w, const char *at)
{
    const struct kbtp_sessions *all = &protocol_world_of(w)->target->sessions;
    for (uint32_t i = 0; i < all->count; i++)
        if (at == (const char *)&all->sessions[i].probe)
            return i;
    return SIM_NOBODY;
}

/* Its retention ends when nobody but the target wants that: then it is released. */
static void session_wrote(struct sim_world *w, const struct sim_write *write, uint32_t initiator)
{
    struct sim_wire_ghost *ghost = sim_protocol_of(w)->wire[initiator];
    uint64_t old, new;
    memcpy(&old, write->old, 8);
    memcpy(&new, write->at, 8);
    bool expires = kbtp_session_state_in(old) == KBTP_SESSION_RETAINED &&
                   kbtp_session_state_in(new) == KBTP_SESSION_ENDING;
    if (kbtp_session_state_in(old) == KBTP_SESSION_ACTIVE &&
        kbtp_session_state_in(new) != KBTP_SESSION_ACTIVE)
        session_ends(w, write->agent, initiator, old);
    if (old == new || (!expires && !ghost->expired))
        return; /* a swap that failed; or it was no retention that ended */
    sim_ghost_write(w, ghost, sizeof *ghost);
    ghost->expired = expires;
    if (expires)
        sim_reach(w, PROTOCOL_REACH_RETENTION_ENDED);
}

void protocol_wrote(struct sim_world *w, const struct sim_write *write)
{
    struct sim_protocol_world *p = sim_protocol_of(w);
    uint32_t session = session_at(w, write->at);
    const char *slot = sim_ring_slot_at(&p->ring, write->at);
    const char *entry = sim_ring_entry_at(&p->ring, write->at);
    uint32_t pinned = sim_protocol_pins(p, write->at);
    if (slot && write->at == slot + 8 && write->octets == 8)
        slot_wrote(w, slot, write);
    else if (entry && write->at == entry)
        flags_wrote(w, entry, write);
    else if (entry && write->at == entry + 4 && sim_ring_entry_is_valid(entry))
        data_is_bound(w, entry); /* a STORE into a bound block */
    else if (write->at == p->ring.head)
        head_wrote(w, write);
    else if (pinned != RING_NO_BLOCK)
        pins_wrote(w, write, pinned);
    else if (session != SIM_NOBODY)
        session_wrote(w, write, session);
    else if (probe_at(w, write->at) != SIM_NOBODY && write->at[0] == KBTP_PROBE_ANSWERED &&
             write->old[0] == KBTP_PROBE_ASKED)
        sim_reach(w, PROTOCOL_REACH_PROBE_ANSWERED);
}

/* ---- the wire ---------------------------------------------------------------------------- */

static void tell(struct sim_world *w, uint32_t agent, enum sim_protocol_event event, uint32_t tag,
                 const struct sim_told *told)
{
    protocol_world_of(w)->told = told;
    sim_event(w, agent, (uint32_t)event, tag);
    protocol_world_of(w)->told = NULL;
}

static uint16_t entry_of(const struct sim_world *w, uint64_t handle)
{
    uint64_t entry = handle - SIM_PROTOCOL_FIRST_HANDLE;
    return entry < sim_ring_of(w)->entry_count ? (uint16_t)entry : SIM_NO_ENTRY;
}

static uint32_t octets_of(const struct sim_protocol_world *p)
{
    return (uint32_t)(sizeof(struct sim_wire_ghost) +
                      (p->credits + 1) * sizeof(struct sim_open_request));
}

/*
 * A session begins, on this link: from now on nothing that was asked on an earlier one takes effect
 * any more (I-10).
 */
static void forget_requests(struct sim_world *w, uint32_t initiator)
{
    struct sim_protocol_world *p = sim_protocol_of(w);
    struct sim_wire_ghost *ghost = p->wire[initiator];
    sim_ghost_write(w, ghost, octets_of(p));
    for (uint32_t i = 0; i < ghost->open_count; i++)
        if (ghost->open[i].delivered)
            sim_reach(w, PROTOCOL_REACH_REQUEST_DROPPED);
    memset(ghost->open, 0, (p->credits + 1) * sizeof *ghost->open);
    ghost->open_count = 0;
}

static void welcome_sent(struct sim_world *w, uint32_t initiator, uint32_t link)
{
    struct sim_protocol_world *p = sim_protocol_of(w);
    uint32_t session = sim_protocol_session(w, initiator);
    struct sim_wire_ghost *ghost = p->wire[session];
    for (uint32_t i = 0; i < p->initiators; i++)
        if (sim_protocol_session(w, i) == session)
            forget_requests(w, i);
    if (ghost->bound != 0)
        sim_reach(w, PROTOCOL_REACH_SESSION_RESTORED);
    ghost->releasing = 0;
    ghost->leaving = 0;
    ghost->link = (uint8_t)link;
    p->wire[initiator]->next_request = (uint8_t)protocol_initiator_of(w, initiator)->next;
}

static void request_sent(struct sim_world *w, uint32_t initiator, const struct sim_header *header)
{
    struct sim_protocol_world *p = sim_protocol_of(w);
    struct sim_wire_ghost *ghost = p->wire[initiator];
    const struct sim_initiator *s = &w->scenario->protocol.initiators[initiator];
    while (ghost->next_request < s->program_count && s->program[ghost->next_request].direct)
        ghost->next_request++; /* those are no messages */
    if (ghost->open_count == p->credits + 1)
        return; /* more than credits allow: well-delivered says so */
    ghost->open[ghost->open_count++] =
        (struct sim_open_request){.id = (uint32_t)header->request_id,
                                  .entry = entry_of(w, header->handle),
                                  .opcode = header->opcode,
                                  .request = ghost->next_request++};
    if (ghost->open_count == p->credits)
        sim_reach(w, PROTOCOL_REACH_CREDITS_USED_UP);
}

static void sent_by_initiator(struct sim_world *w, uint32_t initiator,
                              const struct sim_header *header)
{
    struct sim_protocol_world *p = sim_protocol_of(w);
    struct sim_wire_ghost *ghost = p->wire[initiator];
    sim_ghost_write(w, ghost, octets_of(p));
    if (header->opcode == KBTP_OP_HELLO) {
        if (ghost->hellos != 0)
            sim_reach(w, PROTOCOL_REACH_RECONNECTED);
        ghost->hellos = 1;
    } else if (header->opcode == KBTP_OP_GOODBYE) {
        ghost = p->wire[sim_protocol_session(w, initiator)];
        sim_ghost_write(w, ghost, octets_of(p));
        ghost->releasing = header->flags & KBTP_GOODBYE_RELEASE;
        ghost->leaving = 1;
    } else {
        request_sent(w, initiator, header);
    }
}

static void reach_status(struct sim_world *w, uint16_t status)
{
    if (status == KBTP_STATUS_NO_SPACE)
        sim_reach(w, PROTOCOL_REACH_NO_SPACE);
    if (status == KBTP_STATUS_NOT_VALID)
        sim_reach(w, PROTOCOL_REACH_NOT_VALID);
    if (status == KBTP_STATUS_ALREADY_BOUND)
        sim_reach(w, PROTOCOL_REACH_ALREADY_BOUND);
}

static void completion_sent(struct sim_world *w, uint32_t agent, uint32_t initiator,
                            const struct sim_header *header)
{
    struct sim_protocol_world *p = sim_protocol_of(w);
    struct sim_wire_ghost *ghost = p->wire[initiator];
    struct sim_told told = {.initiator = initiator, .place = SIM_NOBODY, .header = header};
    for (uint32_t i = 0; i < ghost->open_count && told.place == SIM_NOBODY; i++)
        if (ghost->open[i].id == (uint32_t)header->request_id)
            told.place = i;
    if (told.place != SIM_NOBODY)
        told.open = &ghost->open[told.place];
    reach_status(w, header->status);
    tell(w, agent, PROTOCOL_COMPLETED,
         told.open ? p->first_tag[initiator] + told.open->request + 1 : 0, &told);
    if (!told.open || w->violation.property)
        return;
    sim_ghost_write(w, ghost, octets_of(p));
    ghost->open_count--;
    memmove(&ghost->open[told.place], &ghost->open[told.place + 1],
            (ghost->open_count - told.place) * sizeof *ghost->open);
    memset(&ghost->open[ghost->open_count], 0, sizeof *ghost->open);
}

static void mark_delivered(struct sim_world *w, uint32_t initiator, const struct sim_header *header)
{
    struct sim_protocol_world *p = sim_protocol_of(w);
    struct sim_wire_ghost *ghost = p->wire[initiator];
    for (uint32_t i = 0; i < ghost->open_count; i++)
        if (ghost->open[i].id == (uint32_t)header->request_id && header->opcode != KBTP_OP_HELLO) {
            sim_ghost_write(w, &ghost->open[i], sizeof ghost->open[i]);
            ghost->open[i].delivered = 1;
        }
}

void protocol_message(struct sim_world *w, const struct sim_message *message)
{
    struct sim_header header;
    bool send = message->op == RDMA_SEND || message->op == RDMA_SEND_INV;
    if (!send || message->response || !sim_protocol_header(w, message, &header))
        return;
    uint32_t sender = sim_protocol_initiator(w, message->from);
    uint32_t receiver = sim_protocol_initiator(w, message->to);
    if (message->phase == SIM_SENT && sender != SIM_NOBODY)
        sent_by_initiator(w, sender, &header);
    else if (message->phase == SIM_SENT && header.opcode == KBTP_OP_COMPLETION)
        completion_sent(w, message->from, receiver, &header);
    else if (message->phase == SIM_DELIVERED && sender != SIM_NOBODY)
        mark_delivered(w, sender, &header);
    else if (message->phase == SIM_SENT && header.opcode == KBTP_OP_HELLO_ACK &&
             header.status == KBTP_STATUS_OK)
        welcome_sent(w, receiver, message->link);
    else if (message->phase == SIM_SENT && header.opcode == KBTP_OP_HELLO_ACK)
        sim_reach(w, PROTOCOL_REACH_HELLO_REFUSED);
}

/* ---- outcomes ---------------------------------------------------------------------------- */

static void reach_direct_load(struct sim_world *w, const struct kbtp_outcome *outcome)
{
    if (outcome->error != 0)
        return;
    if (outcome->status == KBTP_STATUS_OK)
        sim_reach(w, PROTOCOL_REACH_DIRECT_LOAD);
    else if (outcome->status == KBTP_STATUS_STALE_GENERATION)
        sim_reach(w, PROTOCOL_REACH_DIRECT_LOAD_CHANGED);
}

void protocol_outcome(struct sim_world *w, uint32_t initiator, uint32_t request,
                      const struct kbtp_outcome *outcome)
{
    struct protocol_world *world = protocol_world_of(w);
    struct sim_protocol_world *p = &world->view;
    const struct rdma_region *region = &world->regions[initiator][request];
    uint32_t tag = p->first_tag[initiator] + request + 1;
    struct sim_told told = {.initiator = initiator,
                            .place = SIM_NOBODY,
                            .error = outcome->error,
                            .status = outcome->status,
                            .generation = outcome->generation,
                            .data_length = outcome->data_length,
                            .buffer = region->addr};
    if (outcome->error != 0)
        sim_reach(w, PROTOCOL_REACH_IN_DOUBT);
    if (sim_protocol_request(w, tag)->direct)
        reach_direct_load(w, outcome);
    tell(w, p->first_initiator + initiator, PROTOCOL_OUTCOME, tag, &told);
    sim_ghost_write(w, &p->requests[tag - 1], sizeof *p->requests);
    if (p->requests[tag - 1].outcomes < UINT8_MAX)
        p->requests[tag - 1].outcomes++;
    /* Nobody looks at what was loaded any more: states that differ in it only are one. */
    if (sim_protocol_request(w, tag)->op == SIM_REQUEST_LOAD && region->length != 0) {
        sim_ghost_write(w, region->addr, (uint32_t)region->length);
        memset(region->addr, 0, region->length);
    }
}
