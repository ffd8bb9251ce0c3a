/* SPDX-License-Identifier: BSD-3-Clause */
/* Ghost records of a protocol world, kept from what is seen in memory and on the wire. */
#include <string.h>

#include "sim/protocol_agents.h"
#include "sim/protocol_counts.h"
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
        const struct sim_ring_memory *memory = sim_ring_memory_at(ring, slot);
        if (block->place == RING_HELD) {
            sim_reach(w, memory->owner ? PROTOCOL_REACH_TICKET_ABANDONED
                                       : PROTOCOL_REACH_WORKER_RECLAIMS);
            protocol_count(w, SIM_COUNT_RECLAIMED);
        }
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
    p->requests[tag - 1].life = protocol_life(w);
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
    if (p->wire[owner]->releasing || p->wire[owner]->expired)
        protocol_count(w, SIM_COUNT_RELEASED_BLOCKS);
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

static void head_wrote(struct sim_world *w, const struct sim_ring_memory *memory,
                       const struct sim_write *write)
{
    uint32_t ticket = (uint32_t)(sim_ring_counter_value(write->old) >> 32);
    if (ticket != w->scenario->first_ticket && ticket % memory->slot_count == 0)
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
    if (freed && !(old & KBTP_PIN_FREED) && (old & KBTP_PIN_READERS)) {
        sim_reach(w, PROTOCOL_REACH_PINNED_FREE);
        protocol_count(w, SIM_COUNT_PINNED_FREES);
    }
    if (new == KBTP_PIN_FREED && old == KBTP_PIN_FREED + KBTP_PIN_READER)
        sim_reach(w, PROTOCOL_REACH_PIN_RETURNED);
    if (new == old + KBTP_PIN_READER && freed)
        protocol_count_late_reader(w);
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
    if (!expires)
        return;
    sim_reach(w, PROTOCOL_REACH_RETENTION_ENDED);
    protocol_count(w, SIM_COUNT_EXPIRED);
}

void protocol_wrote(struct sim_world *w, const struct sim_write *write)
{
    struct sim_protocol_world *p = sim_protocol_of(w);
    uint32_t session = session_at(w, write->at);
    const char *slot = sim_ring_slot_at(&p->ring, write->at);
    const struct sim_ring_memory *memory = sim_ring_memory_at(&p->ring, write->at);
    const char *entry = sim_ring_entry_at(&p->ring, write->at);
    uint32_t pinned = sim_protocol_pins(p, write->at);
    if (slot && write->at == slot + 8 && write->octets == 8)
        slot_wrote(w, slot, write);
    else if (entry && write->at == entry)
        flags_wrote(w, entry, write);
    else if (entry && write->at == entry + 4 && sim_ring_entry_is_valid(entry))
        data_is_bound(w, entry); /* a STORE into a bound block */
    else if (memory && write->at == memory->head)
        head_wrote(w, memory, write);
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

void protocol_forget(struct sim_world *w)
{
    struct sim_protocol_world *p = sim_protocol_of(w);
    for (uint32_t i = 0; i < p->ring.block_count; i++)
        *ghost_block(w, i) = (struct sim_ring_block){.place = RING_IN_RING};
    for (uint32_t i = 0; i < p->initiators; i++) {
        forget_requests(w, i);
        p->wire[i]->bound = 0;
        p->wire[i]->releasing = 0;
        p->wire[i]->leaving = 0;
        p->wire[i]->expired = 0;
    }
    protocol_counts_forget(w);
}

/* Direct allocations go on each by itself: the oldest one of this entry that has no outcome. */
static uint8_t request_of_bind(const struct sim_world *w, uint32_t initiator, uint16_t entry)
{
    const struct sim_protocol_world *p = sim_protocol_of(w);
    const struct sim_initiator *s = &w->scenario->protocol.initiators[initiator];
    uint8_t i = 0;
    while (i + 1u < s->program_count &&
           (!s->program[i].direct || s->program[i].op != SIM_REQUEST_ALLOC_STORE ||
            s->program[i].owner * p->handles + s->program[i].handle != entry ||
            p->requests[p->first_tag[initiator] + i].outcomes != 0))
        i++;
    return i;
}

/* Where the record of a request comes to, should it have one. */
static void slot_named(struct sim_world *w, uint32_t initiator, uint32_t request,
                       const struct sim_header *header)
{
    struct sim_protocol_world *p = sim_protocol_of(w);
    struct sim_request_ghost *ghost = &p->requests[p->first_tag[initiator] + request];
    sim_ghost_write(w, ghost, sizeof *ghost);
    ghost->slot = (uint8_t)(header->record_offset / KBTP_RECORD_OCTETS + 1);
}

static void request_sent(struct sim_world *w, uint32_t initiator, const struct sim_header *header)
{
    struct sim_protocol_world *p = sim_protocol_of(w);
    struct sim_wire_ghost *ghost = p->wire[initiator];
    const struct sim_initiator *s = &w->scenario->protocol.initiators[initiator];
    bool binds = header->opcode == KBTP_OP_BIND;
    while (!binds && ghost->next_request < s->program_count &&
           s->program[ghost->next_request].direct)
        ghost->next_request++; /* those are no messages, or BINDs sent later */
    if (ghost->open_count == p->credits + 1)
        return; /* more than credits allow: well-delivered says so */
    if (header->flags & KBTP_FLAG_RECORD)
        slot_named(w, initiator, ghost->next_request, header);
    ghost->open[ghost->open_count++] = (struct sim_open_request){
        .id = (uint32_t)header->request_id,
        .entry = entry_of(w, header->handle),
        .opcode = header->opcode,
        .request = binds ? request_of_bind(w, initiator, entry_of(w, header->handle))
                         : ghost->next_request++,
        .invalidate = header->flags & KBTP_FLAG_INVALIDATE ? header->stag : 0};
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
    if (status == KBTP_STATUS_STALE_GENERATION)
        sim_reach(w, PROTOCOL_REACH_STALE_GENERATION);
    if (status == KBTP_STATUS_ALREADY_BOUND)
        sim_reach(w, PROTOCOL_REACH_ALREADY_BOUND);
    if (status == KBTP_STATUS_TICKET_ABANDONED)
        sim_reach(w, PROTOCOL_REACH_LATE_BIND);
}

static void record_sent(struct sim_world *w, uint32_t initiator,
                        const struct sim_open_request *open, const struct sim_header *header)
{
    struct sim_protocol_world *p = sim_protocol_of(w);
    struct sim_request_ghost *ghost = &p->requests[p->first_tag[initiator] + open->request];
    sim_ghost_write(w, ghost, sizeof *ghost);
    ghost->recorded = header->status == KBTP_STATUS_OK ? header->data_length + 1 : 0;
}

static void completion_sent(struct sim_world *w, const struct sim_message *message,
                            uint32_t initiator, const struct sim_header *header)
{
    struct sim_protocol_world *p = sim_protocol_of(w);
    struct sim_wire_ghost *ghost = p->wire[initiator];
    struct sim_told told = {.initiator = initiator,
                            .place = SIM_NOBODY,
                            .header = header,
                            .invalidates = message->op == RDMA_SEND_INV ? message->imm : 0};
    for (uint32_t i = 0; i < ghost->open_count && told.place == SIM_NOBODY; i++)
        if (ghost->open[i].id == (uint32_t)header->request_id)
            told.place = i;
    if (told.place != SIM_NOBODY)
        told.open = &ghost->open[told.place];
    reach_status(w, header->status);
    if (told.open && message->op == RDMA_WRITE_IMM)
        record_sent(w, initiator, told.open, header);
    tell(w, message->from, PROTOCOL_COMPLETED,
         told.open ? p->first_tag[initiator] + told.open->request + 1 : 0, &told);
    if (!told.open || w->violation.property)
        return;
    protocol_count_answer(
        w, told.open->opcode, header,
        sim_protocol_request(w, p->first_tag[initiator] + told.open->request + 1));
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

static void request_delivered(struct sim_world *w, uint32_t initiator,
                              const struct sim_message *message, const struct sim_header *header)
{
    mark_delivered(w, initiator, header);
    if (message->status == RDMA_OK)
        protocol_count_received(w, header->opcode);
}

static void hello_answered(struct sim_world *w, uint32_t initiator, uint32_t link,
                           const struct sim_header *header)
{
    protocol_count_answer(w, KBTP_OP_HELLO, header, NULL);
    if (header->status == KBTP_STATUS_OK)
        welcome_sent(w, initiator, link);
    else
        sim_reach(w, PROTOCOL_REACH_HELLO_REFUSED);
}

void protocol_message(struct sim_world *w, const struct sim_message *message)
{
    struct sim_header header;
    if (message->op == RDMA_WRITE && message->phase == SIM_DELIVERED &&
        message->status != RDMA_OK && sim_protocol_initiator(w, message->from) != SIM_NOBODY)
        sim_reach(w, PROTOCOL_REACH_LATE_WRITE);
    bool send =
        message->op == RDMA_SEND || message->op == RDMA_SEND_INV || message->op == RDMA_WRITE_IMM;
    if (!send || message->response || !sim_protocol_header(w, message, &header))
        return;
    uint32_t sender = sim_protocol_initiator(w, message->from);
    uint32_t receiver = sim_protocol_initiator(w, message->to);
    if (message->phase == SIM_SENT && sender != SIM_NOBODY)
        sent_by_initiator(w, sender, &header);
    else if (message->phase == SIM_SENT && header.opcode == KBTP_OP_COMPLETION)
        completion_sent(w, message, receiver, &header);
    else if (message->phase == SIM_DELIVERED && sender != SIM_NOBODY)
        request_delivered(w, sender, message, &header);
    else if (message->phase == SIM_SENT && header.opcode == KBTP_OP_HELLO_ACK)
        hello_answered(w, receiver, message->link, &header);
}

/* ---- outcomes ---------------------------------------------------------------------------- */

static void reach_direct_alloc(struct sim_world *w, const struct kbtp_outcome *outcome)
{
    if (outcome->error == 0 && outcome->status == KBTP_STATUS_OK)
        sim_reach(w, PROTOCOL_REACH_DIRECT_ALLOC);
    if (outcome->error == 0 && outcome->status == KBTP_STATUS_TICKET_ABANDONED)
        sim_reach(w, PROTOCOL_REACH_GIVEN_UP);
}

static void reach_direct_load(struct sim_world *w, const struct kbtp_outcome *outcome)
{
    if (outcome->error != 0)
        return;
    if (outcome->status == KBTP_STATUS_OK)
        sim_reach(w, PROTOCOL_REACH_DIRECT_LOAD);
    else if (outcome->status == KBTP_STATUS_STALE_GENERATION)
        sim_reach(w, PROTOCOL_REACH_DIRECT_LOAD_CHANGED);
}

/* Of the data that a LOAD has brought: what it says of its Generation is of that life. */
static uint32_t life_of_data(const struct sim_world *w, const struct sim_told *told)
{
    uint32_t tag = told->error == 0 && told->status == KBTP_STATUS_OK
                       ? sim_protocol_tag(told->buffer, told->data_length)
                       : 0;
    return sim_protocol_request(w, tag) ? sim_protocol_of(w)->requests[tag - 1].life : 0;
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
    if (outcome->by_record)
        sim_reach(w, PROTOCOL_REACH_RECORD);
    if (outcome->invalidated)
        sim_reach(w, PROTOCOL_REACH_INVALIDATED);
    const struct sim_request *asked = sim_protocol_request(w, tag);
    if (asked->direct && asked->op == SIM_REQUEST_LOAD)
        reach_direct_load(w, outcome);
    else if (asked->direct)
        reach_direct_alloc(w, outcome);
    tell(w, p->first_initiator + initiator, PROTOCOL_OUTCOME, tag, &told);
    if (world->listener.told)
        world->listener.told(world->listener.context, initiator, request, outcome, region->addr);
    sim_ghost_write(w, &p->requests[tag - 1], sizeof *p->requests);
    if (asked->op == SIM_REQUEST_LOAD)
        p->requests[tag - 1].life = life_of_data(w, &told);
    if (p->requests[tag - 1].outcomes < UINT8_MAX)
        p->requests[tag - 1].outcomes++;
    /* Nobody looks at what was loaded any more: states that differ in it only are one. */
    if (sim_protocol_request(w, tag)->op == SIM_REQUEST_LOAD && region->length != 0) {
        sim_ghost_write(w, region->addr, (uint32_t)region->length);
        memset(region->addr, 0, region->length);
    }
}
