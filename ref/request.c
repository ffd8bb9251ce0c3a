/* SPDX-License-Identifier: BSD-3-Clause */
/* LOAD, STORE, ALLOC_STORE and FREE (draft: Operations): how each moves from stage to stage. */
#include <assert.h>
#include <string.h>

#include "ref/worker_state.h"

/* ---- receiving --------------------------------------------------------------------------- */

/* A request that is answered with `status`, and has no other effect. */
static void refuse(struct kbtp_request *request, enum kbtp_status status, uint16_t generation)
{
    request->status = (uint16_t)status;
    request->generation = generation;
    request->stage = KBTP_STAGE_READY;
}

static void take_over(struct kbtp_request *request, const struct kbtp_message *message)
{
    const struct kbtp_header *header = &message->header;
    *request = (struct kbtp_request){.request_id = header->request_id,
                                     .handle = header->handle,
                                     .flags = header->flags,
                                     .generation = header->generation,
                                     .opcode = header->opcode,
                                     .staging = KBTP_NO_STAGING,
                                     .stage = KBTP_STAGE_NEW};
    if (header->opcode == KBTP_OP_LOAD || header->opcode == KBTP_OP_STORE ||
        header->opcode == KBTP_OP_ALLOC_STORE) {
        request->tagged_offset = message->operands.data.tagged_offset;
        request->stag = message->operands.data.stag;
        request->length = message->operands.data.length;
        request->inline_offset = message->operands.inline_offset;
    } else if (header->opcode == KBTP_OP_BIND) {
        request->flags = 0; /* it has none */
        request->length = message->bind.data_length;
        request->tagged_offset = message->bind.block_offset;
        request->alloc.ticket = message->bind.ticket;
    }
}

bool kbtp_request_received(struct kbtp_worker *w, const struct kbtp_cpu *cpu,
                           struct kbtp_connection *c, uint32_t number, uint32_t octets)
{
    uint8_t image[KBTP_REQUEST_MAX_OCTETS];
    struct kbtp_message message;
    struct kbtp_wire_error error = {.fault = KBTP_WIRE_WELL};
    mem_read(cpu->mem, image, c->receives + (size_t)number * w->receive_octets,
             octets < sizeof image ? octets : sizeof image);
    bool addr_le = c->state == KBTP_CONNECTION_READY && w->target->config.addr_le;
    /* What follows the fixed parts is inline data, which decoding does not look at. */
    kbtp_wire_decode(image, octets, addr_le, &message, &error);
    if (error.fault != KBTP_WIRE_WELL)
        kbtp_count(w, KBTP_COUNT_MALFORMED);
    if (error.fault == KBTP_WIRE_NO_HEADER)
        return false;
    assert(c->order_count < w->requests && c->requests[number].stage == KBTP_STAGE_UNUSED);
    take_over(&c->requests[number], &message);
    if (error.fault != KBTP_WIRE_WELL || kbtp_asks_too_much(c, &c->requests[number]))
        refuse(&c->requests[number], KBTP_STATUS_MALFORMED, 0);
    /* Opcode 0 stands for another Version: answered, then the end. What really has it is one of
     * those that initiators do not send. */
    if (message.header.version != KBTP_WIRE_VERSION)
        c->requests[number].opcode = 0;
    else if (message.header.opcode == 0)
        c->requests[number].opcode = KBTP_OP_COMPLETION;
    c->order[(c->order_first + c->order_count++) % w->requests] = (uint16_t)number;
    return true;
}

/* ---- the checks, in the order of I-31 ---------------------------------------------------- */

static bool in_own_range(const struct kbtp_worker *w, const struct kbtp_connection *c,
                         uint64_t index)
{
    const struct kbtp_grant *grant = &w->target->sessions.grants[c->session];
    return index - grant->first_entry < grant->handle_count;
}

/* What can be said without the entry. */
static enum kbtp_status check_request(const struct kbtp_worker *w, const struct kbtp_connection *c,
                                      struct kbtp_request *request)
{
    const struct kbtp_target_config *config = &w->target->config;
    uint64_t index = request->handle - config->first_handle;
    bool loads = request->opcode == KBTP_OP_LOAD;
    if (index >= w->target->pool.table.entry_count || (!loads && !in_own_range(w, c, index)))
        return KBTP_STATUS_INVALID_HANDLE;
    if (loads && !kbtp_session_may_read(&w->target->sessions, c->session, (uint32_t)index))
        return KBTP_STATUS_INVALID_HANDLE;
    request->entry = (uint32_t)index;
    if (loads || request->opcode == KBTP_OP_FREE)
        return KBTP_STATUS_OK;
    bool is_inline = request->flags & KBTP_FLAG_INLINE;
    if (request->length > config->block_size || (is_inline && request->length > config->max_inline))
        return KBTP_STATUS_TOO_LARGE;
    return KBTP_STATUS_OK;
}

static enum kbtp_status check_entry(const struct kbtp_request *request,
                                    const struct kbtp_entry *entry)
{
    bool valid = entry->flags & KBTP_ENTRY_VALID, sealed = entry->flags & KBTP_ENTRY_SEALED;
    if (request->generation != 0 && request->generation != entry->generation)
        return KBTP_STATUS_STALE_GENERATION;
    if (request->opcode == KBTP_OP_ALLOC_STORE || request->opcode == KBTP_OP_BIND)
        return valid ? KBTP_STATUS_ALREADY_BOUND : KBTP_STATUS_OK;
    if (!valid)
        return KBTP_STATUS_NOT_VALID;
    if (request->opcode == KBTP_OP_STORE && sealed)
        return KBTP_STATUS_SEALED;
    if (request->opcode != KBTP_OP_LOAD)
        return KBTP_STATUS_OK;
    if (!sealed && !(request->flags & KBTP_FLAG_ALLOW_UNSEALED))
        return KBTP_STATUS_NOT_SEALED;
    return entry->data_length > request->length ? KBTP_STATUS_TOO_LARGE : KBTP_STATUS_OK;
}

/* Reads the entry and checks; when it may go on, the request has what the answer needs. */
static bool passes(struct kbtp_worker *w, const struct kbtp_cpu *cpu, struct kbtp_request *request)
{
    struct kbtp_entry entry = kbtp_table_read(cpu->mem, &w->target->pool.table, request->entry);
    enum kbtp_status status = check_entry(request, &entry);
    if (status != KBTP_STATUS_OK) {
        refuse(request, status, entry.generation);
        return false;
    }
    request->generation = entry.generation;
    request->block_offset = entry.block_offset;
    return true;
}

/* ---- LOAD -------------------------------------------------------------------------------- */

/* The RDMA Write of a LOAD, and behind the same doorbell its completion when it is the oldest. */
static void post_load(struct kbtp_worker *w, const struct kbtp_cpu *cpu, struct kbtp_connection *c,
                      struct kbtp_request *request, bool oldest, uint32_t block)
{
    struct rdma_sge sge = {.addr = kbtp_pool_octets(&w->target->pool, block),
                           .length = request->data_length,
                           .lkey = w->target->region.lkey};
    struct rdma_wr write = {.op = RDMA_WRITE,
                            .sges = &sge,
                            .sge_count = 1,
                            .remote_to = request->tagged_offset,
                            .remote_stag = request->stag};
    bool posted = true;
    if (oldest) {
        posted = kbtp_answer(w, cpu, c, request, &write);
    } else if (kbtp_sends_post(cpu, &c->sends, kbtp_connection_number(w, c), &write, KBTP_WR_WRITE,
                               0, NULL) != 0) {
        kbtp_connection_lost(w, cpu, c);
        posted = false;
    }
    if (!posted) {
        kbtp_pool_unpin(cpu->mem, &w->target->pool, &w->deferred, block);
        return;
    }
    /* Pinned until the completion of the Write says that the block has been read. */
    c->loads[(c->loads_first + c->loads_count++) % w->requests] = block;
}

static void begin_load(struct kbtp_worker *w, const struct kbtp_cpu *cpu, struct kbtp_connection *c,
                       struct kbtp_request *request, bool oldest)
{
    struct kbtp_entry entry;
    if (c->loads_count == w->requests || kbtp_sends_room(&c->sends) < 2)
        return;
    if (!kbtp_pool_pin(cpu->mem, &w->target->pool, &w->deferred, request->entry, &entry))
        return;
    enum kbtp_status status = check_entry(request, &entry);
    bool pinned = entry.flags & KBTP_ENTRY_VALID;
    uint32_t block = kbtp_pool_block(&w->target->pool, entry.block_offset);
    if (status != KBTP_STATUS_OK) {
        refuse(request, status, entry.generation);
    } else {
        request->generation = entry.generation;
        request->block_offset = entry.block_offset;
        request->data_length = entry.data_length;
        request->stage = KBTP_STAGE_READY;
        if (entry.data_length != 0) { /* I-48: else there is nothing to write */
            post_load(w, cpu, c, request, oldest, block);
            return;
        }
    }
    if (pinned)
        kbtp_pool_unpin(cpu->mem, &w->target->pool, &w->deferred, block);
}

/* ---- data of stores ---------------------------------------------------------------------- */

/* Between shared memory and shared memory, through the CPU. */
static void copy(struct mem *m, char *to, const uint8_t *from, size_t octets)
{
    uint64_t chunk[32];
    for (size_t done = 0; done < octets; done += sizeof chunk) {
        size_t rest = octets - done, n = rest < sizeof chunk ? rest : sizeof chunk;
        mem_read(m, chunk, from + done, n);
        mem_write(m, to + done, chunk, n);
    }
}

static void copy_inline(const struct kbtp_worker *w, const struct kbtp_cpu *cpu,
                        const struct kbtp_connection *c, const struct kbtp_request *request,
                        uint64_t block_offset)
{
    const struct kbtp_pool *pool = &w->target->pool;
    const uint8_t *receive = c->receives + (size_t)(request - c->requests) * w->receive_octets;
    copy(cpu->mem, kbtp_pool_octets(pool, kbtp_pool_block(pool, block_offset)),
         receive + request->inline_offset, request->length);
}

static uint8_t *staging_octets(const struct kbtp_worker *w, uint32_t staging)
{
    return w->staging + (size_t)staging * w->target->config.block_size;
}

/* Posts the RDMA Read of a store: into its new block, or for a mapped STORE, which must not leave
 * a mixed block behind when the Read fails (I-25), into staging memory. */
static void fetch(struct kbtp_worker *w, const struct kbtp_cpu *cpu, struct kbtp_connection *c,
                  struct kbtp_request *request)
{
    const struct kbtp_pool *pool = &w->target->pool;
    if (kbtp_sends_room(&c->sends) < 2) /* one is for completions */
        return;
    struct rdma_sge sge = {.length = request->length};
    if (request->staging == KBTP_NO_STAGING) {
        sge.addr = kbtp_pool_octets(pool, kbtp_pool_block(pool, request->alloc.block_offset));
        sge.lkey = w->target->region.lkey;
    } else {
        sge.addr = staging_octets(w, request->staging);
        sge.lkey = w->region.lkey;
    }
    struct rdma_wr read = {.op = RDMA_READ,
                           .sges = &sge,
                           .sge_count = 1,
                           .remote_to = request->tagged_offset,
                           .remote_stag = request->stag};
    if (kbtp_sends_post(cpu, &c->sends, kbtp_connection_number(w, c), &read, KBTP_WR_READ,
                        (uint32_t)(request - c->requests), NULL) != 0)
        kbtp_connection_lost(w, cpu, c);
    else
        request->stage = KBTP_STAGE_READING;
}

void kbtp_request_data_is_there(struct kbtp_request *request)
{
    assert(request->stage == KBTP_STAGE_READING);
    request->stage = KBTP_STAGE_READY;
}

/* Where the data comes from decides what is next. A store of nothing reads nothing (I-48). */
static bool needs_fetch(const struct kbtp_request *request)
{
    return !(request->flags & KBTP_FLAG_INLINE) && request->length != 0;
}

/* ---- ALLOC_STORE ------------------------------------------------------------------------- */

static void ask_for_ticket(struct kbtp_worker *w, const struct kbtp_cpu *cpu,
                           struct kbtp_connection *c, struct kbtp_request *request)
{
    kbtp_tickets_ask(w, cpu, c); /* before: from now on it may be taken */
    int failed = kbtp_ask(w, cpu, c);
    if (failed) {
        kbtp_tickets_asked(w, c);
        if (failed != -EAGAIN)
            kbtp_connection_lost(w, cpu, c);
        return;
    }
    c->usage++;
    request->stage = KBTP_STAGE_ASKING;
}

static void begin_alloc_store(struct kbtp_worker *w, const struct kbtp_cpu *cpu,
                              struct kbtp_connection *c, struct kbtp_request *request)
{
    if (!passes(w, cpu, request))
        return;
    if (!kbtp_tickets_within_quota(w, cpu, c, c->usage + 1)) {
        refuse(request, KBTP_STATUS_NO_SPACE, request->generation);
        return;
    }
    if (kbtp_asks(w, c)) {
        ask_for_ticket(w, cpu, c, request);
        return;
    }
    c->usage++;
    kbtp_ring_take_ticket(cpu->mem, kbtp_ring_of(w, c), &request->alloc);
    kbtp_tickets_settle(w, c);
    request->stage = KBTP_STAGE_TICKET;
}

void kbtp_request_has_ticket(struct kbtp_worker *w, struct kbtp_connection *c, bool well,
                             uint64_t counter)
{
    for (uint32_t n = 0; n < c->order_count; n++) {
        struct kbtp_request *request = kbtp_nth_request(w, c, n);
        if (request->stage != KBTP_STAGE_ASKING)
            continue;
        kbtp_tickets_asked(w, c);
        request->stage = well ? KBTP_STAGE_TICKET : KBTP_STAGE_NEW;
        if (!well) {
            c->usage--;
            return;
        }
        kbtp_ring_adopt_ticket(&request->alloc, counter);
        kbtp_tickets_settle(w, c);
    }
}

/* Looks at the slot of its ticket; the data comes only when the slot is consumed (I-05). */
static void look_at_slot(struct kbtp_worker *w, const struct kbtp_cpu *cpu,
                         struct kbtp_connection *c, struct kbtp_request *request)
{
    if (!kbtp_ring_poll_ordered(cpu->mem, kbtp_ring_of(w, c), &request->alloc))
        return;
    kbtp_tickets_consumed(w, c, request->alloc.ticket);
    request->stage = needs_fetch(request) ? KBTP_STAGE_FETCH : KBTP_STAGE_READY;
    if (request->stage == KBTP_STAGE_READY)
        copy_inline(w, cpu, c, request, request->alloc.block_offset);
    /* A free of this worker may have waited for just this slot. */
    kbtp_retry_deferred(w, cpu);
}

static void bind(struct kbtp_worker *w, const struct kbtp_cpu *cpu, struct kbtp_connection *c,
                 struct kbtp_request *request)
{
    request->block_offset = request->alloc.block_offset;
    request->data_length = request->length;
    request->generation =
        kbtp_table_bind(cpu->mem, &w->target->pool.table, request->entry, request->block_offset,
                        request->length, request->flags & KBTP_FLAG_SEAL);
    request->alloc.stage = KBTP_ALLOC_IDLE; /* the block is the entry's now */
    kbtp_answer(w, cpu, c, request, NULL);
}

/* ---- BIND -------------------------------------------------------------------------------- */

/* The initiator has written the block: consume the slot, write the entry, complete. A BIND cannot
 * seal (I-07). Ticket and Block Offset are judged last: a refused BIND leaves the ticket as it was.
 */
static void bind_ticket(struct kbtp_worker *w, const struct kbtp_cpu *cpu,
                        struct kbtp_connection *c, struct kbtp_request *request)
{
    if (kbtp_tickets_asking(w, c))
        return; /* this one may be it, for all that is known */
    if (passes(w, cpu, request)) {
        request->block_offset = request->tagged_offset;
        enum kbtp_status status = kbtp_tickets_bind(w, cpu, c, request);
        if (status != KBTP_STATUS_OK) {
            refuse(request, status, request->generation);
        } else {
            c->usage++;
            request->data_length = request->length;
            request->generation = kbtp_table_bind(cpu->mem, &w->target->pool.table, request->entry,
                                                  request->block_offset, request->length, false);
            /* A free of this worker may have waited for just this slot. */
            kbtp_retry_deferred(w, cpu);
        }
    }
    kbtp_answer(w, cpu, c, request, NULL);
}

/* ---- STORE ------------------------------------------------------------------------------- */

static uint32_t take_staging(struct kbtp_worker *w)
{
    for (uint32_t i = 0; i < w->target->config.staging; i++)
        if (!w->staging_used[i]) {
            w->staging_used[i] = 1;
            return i;
        }
    return KBTP_NO_STAGING;
}

static void release_staging(struct kbtp_worker *w, struct kbtp_request *request)
{
    if (request->staging != KBTP_NO_STAGING)
        w->staging_used[request->staging] = 0;
    request->staging = KBTP_NO_STAGING;
}

static void begin_store(struct kbtp_worker *w, const struct kbtp_cpu *cpu,
                        struct kbtp_request *request)
{
    if (passes(w, cpu, request))
        request->stage = needs_fetch(request) ? KBTP_STAGE_STAGING : KBTP_STAGE_READY;
}

/* A ticket of a partition may wait for its initiator; what others need is not held meanwhile. */
static bool waits_for_initiator(const struct kbtp_worker *w, const struct kbtp_connection *c,
                                uint32_t n)
{
    for (uint32_t i = 0; kbtp_tickets_of(w, c) && i < n; i++)
        if (kbtp_nth_request(w, c, i)->stage == KBTP_STAGE_TICKET)
            return true;
    return false;
}

static void wait_for_staging(struct kbtp_worker *w, const struct kbtp_connection *c,
                             struct kbtp_request *request, uint32_t n)
{
    if (waits_for_initiator(w, c, n))
        return;
    request->staging = take_staging(w);
    if (request->staging != KBTP_NO_STAGING)
        request->stage = KBTP_STAGE_FETCH;
}

static mem64 *pins_of(const struct kbtp_worker *w, uint64_t block_offset)
{
    const struct kbtp_pool *pool = &w->target->pool;
    return &pool->pins[kbtp_pool_block(pool, block_offset)];
}

/* Loads of the block and this excluded each other (I-40): now it is changed. */
static void store_when_quiet(struct kbtp_worker *w, const struct kbtp_cpu *cpu,
                             struct kbtp_connection *c, struct kbtp_request *request)
{
    const struct kbtp_pool *pool = &w->target->pool;
    mem64 *pins = pins_of(w, request->block_offset);
    if (!kbtp_pins_quiet(cpu->mem, pins))
        return;
    if (request->staging == KBTP_NO_STAGING)
        copy_inline(w, cpu, c, request, request->block_offset);
    else
        copy(cpu->mem, kbtp_pool_octets(pool, kbtp_pool_block(pool, request->block_offset)),
             staging_octets(w, request->staging), request->length);
    kbtp_table_update(cpu->mem, &pool->table, request->entry, request->length,
                      request->flags & KBTP_FLAG_SEAL);
    kbtp_pins_unlock(cpu->mem, pins);
    release_staging(w, request);
    request->data_length = request->length;
    request->stage = KBTP_STAGE_READY; /* unless the answer is posted */
    kbtp_answer(w, cpu, c, request, NULL);
}

/* ---- FREE -------------------------------------------------------------------------------- */

static void free_block(struct kbtp_worker *w, const struct kbtp_cpu *cpu, struct kbtp_connection *c,
                       struct kbtp_request *request)
{
    if (passes(w, cpu, request)) {
        int freed = kbtp_pool_free(cpu->mem, &w->target->pool, &w->deferred, request->entry);
        assert(freed >= 0 && "a deferred list has room for every block");
        c->usage--;
        request->generation = kbtp_generation_next(request->generation);
        if (freed == KBTP_FREE_PINNED)
            kbtp_count(w, KBTP_COUNT_FREES_PINNED);
    }
    kbtp_answer(w, cpu, c, request, NULL);
}

/* ---- all --------------------------------------------------------------------------------- */

static bool is_operation(const struct kbtp_worker *w, const struct kbtp_connection *c,
                         const struct kbtp_request *request)
{
    if (request->opcode == KBTP_OP_BIND) {
        const struct kbtp_tickets *t = kbtp_tickets_of(w, c);
        return t && t->granted;
    }
    return request->opcode == KBTP_OP_LOAD || request->opcode == KBTP_OP_STORE ||
           request->opcode == KBTP_OP_ALLOC_STORE || request->opcode == KBTP_OP_FREE;
}

/* Of those that begin when all before them are complete. */
static bool goes_alone(const struct kbtp_request *request)
{
    return request->opcode == KBTP_OP_FREE || request->opcode == KBTP_OP_BIND;
}

/* Is an earlier request, not yet complete, about the same handle? LOADs do not mind each other. */
static bool must_wait(const struct kbtp_worker *w, const struct kbtp_connection *c, uint32_t n)
{
    const struct kbtp_request *request = kbtp_nth_request(w, c, n);
    for (uint32_t i = 0; i < n; i++) {
        const struct kbtp_request *earlier = kbtp_nth_request(w, c, i);
        if (earlier->handle == request->handle &&
            !(earlier->opcode == KBTP_OP_LOAD && request->opcode == KBTP_OP_LOAD))
            return true;
    }
    return false;
}

static void begin(struct kbtp_worker *w, const struct kbtp_cpu *cpu, struct kbtp_connection *c,
                  struct kbtp_request *request, uint32_t n)
{
    bool oldest = n == 0;
    if (!oldest && (!is_operation(w, c, request) || goes_alone(request) ||
                    c->state != KBTP_CONNECTION_READY || must_wait(w, c, n)))
        return;
    if (c->state != KBTP_CONNECTION_READY || !is_operation(w, c, request)) {
        request->stage = KBTP_STAGE_READY; /* HELLO, GOODBYE, and what is not allowed here */
        return;
    }
    enum kbtp_status status = check_request(w, c, request);
    if (status == KBTP_STATUS_INVALID_HANDLE)
        refuse(request, status, 0); /* tells nothing of entries that are not its own (I-45) */
    else if (status != KBTP_STATUS_OK)
        refuse(request, status,
               kbtp_table_read(cpu->mem, &w->target->pool.table, request->entry).generation);
    else if (request->opcode == KBTP_OP_LOAD)
        begin_load(w, cpu, c, request, oldest);
    else if (request->opcode == KBTP_OP_STORE)
        begin_store(w, cpu, request);
    else if (request->opcode == KBTP_OP_ALLOC_STORE)
        begin_alloc_store(w, cpu, c, request);
    else
        request->stage = KBTP_STAGE_READY;
}

/* The oldest request takes effect and is answered. */
static void take_effect(struct kbtp_worker *w, const struct kbtp_cpu *cpu,
                        struct kbtp_connection *c, struct kbtp_request *request)
{
    if (kbtp_sends_room(&c->sends) < 1)
        return;
    if (c->state != KBTP_CONNECTION_READY || !is_operation(w, c, request)) {
        kbtp_session_request(w, cpu, c, request);
    } else if (request->status != KBTP_STATUS_OK || request->opcode == KBTP_OP_LOAD) {
        kbtp_answer(w, cpu, c, request, NULL);
    } else if (request->opcode == KBTP_OP_ALLOC_STORE) {
        bind(w, cpu, c, request);
    } else if (request->opcode == KBTP_OP_FREE) {
        free_block(w, cpu, c, request);
    } else if (request->opcode == KBTP_OP_BIND) {
        bind_ticket(w, cpu, c, request);
    } else {
        kbtp_pins_lock(cpu->mem, pins_of(w, request->block_offset));
        request->stage = KBTP_STAGE_LOCKED;
    }
}

/* Moves the n-th oldest request on, as far as it can go now. */
static void step(struct kbtp_worker *w, const struct kbtp_cpu *cpu, struct kbtp_connection *c,
                 struct kbtp_request *request, uint32_t n)
{
    if (request->stage == KBTP_STAGE_NEW)
        begin(w, cpu, c, request, n);
    if (request->stage == KBTP_STAGE_TICKET)
        look_at_slot(w, cpu, c, request);
    if (request->stage == KBTP_STAGE_STAGING)
        wait_for_staging(w, c, request, n);
    if (request->stage == KBTP_STAGE_FETCH)
        fetch(w, cpu, c, request);
    if (request->stage == KBTP_STAGE_READY && n == 0)
        take_effect(w, cpu, c, request);
    if (request->stage == KBTP_STAGE_LOCKED)
        store_when_quiet(w, cpu, c, request);
    if (request->stage == KBTP_STAGE_RELEASE && kbtp_release_next(w, cpu, c, request)) {
        c->released = 1;
        request->stage = KBTP_STAGE_DONE;
        kbtp_count_request(w, KBTP_OP_GOODBYE, KBTP_STATUS_OK);
        kbtp_connection_end(w, cpu, c);
    }
}

static void drop_oldest(struct kbtp_worker *w, struct kbtp_connection *c)
{
    struct kbtp_request *request = kbtp_nth_request(w, c, 0);
    memset(request, 0, sizeof *request);
    c->order[c->order_first] = 0;
    c->order_first = c->order_count == 1 ? 0 : (c->order_first + 1) % w->requests;
    c->order_count--;
}

void kbtp_requests_advance(struct kbtp_worker *w, const struct kbtp_cpu *cpu,
                           struct kbtp_connection *c)
{
    for (uint32_t n = 0; n < c->order_count;) {
        struct kbtp_request *request = kbtp_nth_request(w, c, n);
        step(w, cpu, c, request, n);
        if (!kbtp_connection_serves(c))
            return;
        if (request->stage == KBTP_STAGE_DONE)
            drop_oldest(w, c); /* the next one is the oldest now */
        else if (request->stage == KBTP_STAGE_NEW || request->stage == KBTP_STAGE_ASKING)
            return; /* those behind begin after it */
        else
            n++;
    }
}

/* ---- after the connection has ended ------------------------------------------------------ */

/* An ALLOC_STORE that took no effect: its block goes back, under a new ticket (I-04). A ticket of a
 * partition is looked after with those of the initiator: it may be none that ever gets a block. */
static bool give_block_back(struct kbtp_worker *w, const struct kbtp_cpu *cpu,
                            struct kbtp_connection *c, struct kbtp_request *request)
{
    const struct kbtp_ring *ring = kbtp_ring_of(w, c);
    bool ticket_only = request->alloc.stage == KBTP_ALLOC_WAIT;
    if (ticket_only && kbtp_tickets_of(w, c)) {
        c->usage--;
        return true;
    }
    if (ticket_only && !kbtp_ring_poll_ordered(cpu->mem, ring, &request->alloc))
        return false;
    if (request->alloc.stage == KBTP_ALLOC_DONE) {
        kbtp_count(w, ticket_only ? KBTP_COUNT_RECLAIMED_TICKETS : KBTP_COUNT_RECLAIMED_BLOCKS);
        kbtp_pool_return(cpu->mem, &w->target->pool, &w->deferred, request->alloc.block_offset);
        c->usage--;
    }
    return true;
}

static bool reclaim(struct kbtp_worker *w, const struct kbtp_cpu *cpu, struct kbtp_connection *c,
                    struct kbtp_request *request)
{
    if (request->stage == KBTP_STAGE_LOCKED)
        kbtp_pins_unlock(cpu->mem, pins_of(w, request->block_offset));
    if (request->stage == KBTP_STAGE_RELEASE) { /* what it began it brings to its end */
        c->released = kbtp_release_next(w, cpu, c, request);
        return c->released;
    }
    release_staging(w, request);
    if (request->stage == KBTP_STAGE_ASKING)
        return false; /* the RNIC may write the answer yet */
    if (request->stage == KBTP_STAGE_DONE)
        return true;
    return give_block_back(w, cpu, c, request);
}

/* What becomes of a request that the connection has not outlived. */
static void count_left(const struct kbtp_worker *w, const struct kbtp_request *request)
{
    if (request->stage == KBTP_STAGE_RELEASE)
        kbtp_count_request(w, KBTP_OP_GOODBYE, KBTP_STATUS_OK);
    else if (request->stage != KBTP_STAGE_DONE)
        kbtp_count(w, KBTP_COUNT_DROPPED);
}

bool kbtp_requests_reclaim(struct kbtp_worker *w, const struct kbtp_cpu *cpu,
                           struct kbtp_connection *c)
{
    while (c->order_count != 0) {
        struct kbtp_request *request = kbtp_nth_request(w, c, 0);
        if (!reclaim(w, cpu, c, request))
            return false;
        count_left(w, request);
        drop_oldest(w, c);
    }
    return true;
}

/* Other workers' allocations wait for their slots (I-05). A consumed slot is nobody's business any
 * more, and no device knows of these blocks yet. */
void kbtp_requests_leave_tickets(struct kbtp_worker *w, const struct kbtp_cpu *cpu,
                                 struct kbtp_connection *c)
{
    for (uint32_t n = 0; n < c->order_count; n++) {
        struct kbtp_request *request = kbtp_nth_request(w, c, n);
        if (request->stage != KBTP_STAGE_TICKET || !give_block_back(w, cpu, c, request))
            continue;
        request->alloc.stage = KBTP_ALLOC_IDLE;
        refuse(request, KBTP_STATUS_INTERNAL, request->generation);
    }
}
