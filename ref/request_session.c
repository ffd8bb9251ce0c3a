/* SPDX-License-Identifier: BSD-3-Clause */
/* HELLO and GOODBYE (draft: Session Establishment), and what is not allowed. */
#include <errno.h>

#include "ref/worker_state.h"

/* ---- HELLO ------------------------------------------------------------------------------- */

/* An error: the body of zeros discloses nothing (I-47), and the connection ends. */
static void refuse_hello(struct kbtp_worker *w, const struct kbtp_cpu *cpu,
                         struct kbtp_connection *c, struct kbtp_request *request,
                         enum kbtp_status status)
{
    struct kbtp_message message = {.header = {.version = KBTP_WIRE_VERSION,
                                              .opcode = KBTP_OP_HELLO_ACK,
                                              .status = (uint16_t)status}};
    request->flags = 0;
    kbtp_count(w, KBTP_COUNT_REFUSED);
    kbtp_answer_with(w, cpu, c, request, &message, true, NULL);
}

/* A COMPLETION per credit must find a receive at the initiator (I-27). */
static uint16_t credits_for(const struct kbtp_worker *w, const struct kbtp_hello *hello)
{
    uint32_t credits = w->target->config.request_credits;
    return (uint16_t)(hello->completion_credits < credits ? hello->completion_credits : credits);
}

/* What was asked for, may be had, and is there; ADDR_LE is the target's to say (I-46). */
static uint16_t features_for(const struct kbtp_worker *w, const struct kbtp_connection *c,
                             const struct kbtp_hello *hello)
{
    const struct kbtp_target *target = w->target;
    uint32_t features =
        hello->requested_features & target->sessions.grants[c->session].features & target->features;
    return (uint16_t)(features | (target->config.addr_le ? KBTP_FEATURE_ADDR_LE : 0));
}

static void describe_direct_load(const struct kbtp_target *target, struct kbtp_hello_ack *ack)
{
    const struct kbtp_pool *pool = &target->pool;
    ack->table = (struct kbtp_direct_descriptor){.stag = target->table_region.stag,
                                                 .tagged_offset = target->table_region.base_to,
                                                 .count = pool->table.entry_count};
    ack->table_base_handle = target->config.first_handle;
    ack->pool = (struct kbtp_direct_descriptor){.stag = target->pool_region.stag,
                                                .tagged_offset = target->pool_region.base_to,
                                                .count = pool->block_count};
}

static void welcome(struct kbtp_worker *w, const struct kbtp_cpu *cpu, struct kbtp_connection *c,
                    struct kbtp_request *request, const struct kbtp_hello *hello)
{
    const struct kbtp_target_config *config = &w->target->config;
    uint16_t credits = credits_for(w, hello), granted = features_for(w, c, hello);
    struct kbtp_hello_ack direct = {0};
    if (!kbtp_tickets_begin(w, cpu, c, &granted, &direct))
        return;
    const struct kbtp_grant *grant = &w->target->sessions.grants[c->session];
    struct kbtp_message message = {
        .header = {.version = KBTP_WIRE_VERSION, .opcode = KBTP_OP_HELLO_ACK},
        .hello_ack = {.features = granted,
                      .request_credits = credits,
                      .block_size = config->block_size,
                      .max_inline = config->max_inline,
                      .allocation_quota = grant->quota,
                      .handle_base = config->first_handle + grant->first_entry,
                      .handle_count = grant->handle_count,
                      .ticket_timeout_ms = direct.ticket_timeout_ms,
                      .partition = direct.partition,
                      .ring = direct.ring,
                      .head = direct.head}};
    if (granted & KBTP_FEATURE_DIRECT_LOAD)
        describe_direct_load(w->target, &message.hello_ack);
    request->flags = 0;
    c->features = granted;
    kbtp_answer_with(w, cpu, c, request, &message, false, NULL);
}

/* The body is read again: it does not fit into a struct kbtp_request. */
static bool read_hello(const struct kbtp_worker *w, const struct kbtp_cpu *cpu,
                       const struct kbtp_connection *c, const struct kbtp_request *request,
                       struct kbtp_message *message)
{
    uint8_t image[KBTP_HELLO_OCTETS];
    size_t number = (size_t)(request - c->requests);
    mem_read(cpu->mem, image, c->receives + number * w->receive_octets, sizeof image);
    return kbtp_wire_decode(image, sizeof image, false, message, NULL) == 0;
}

static void hello(struct kbtp_worker *w, const struct kbtp_cpu *cpu, struct kbtp_connection *c,
                  struct kbtp_request *request)
{
    struct kbtp_message message;
    if (request->status != KBTP_STATUS_OK || !read_hello(w, cpu, c, request, &message) ||
        credits_for(w, &message.hello) == 0) {
        refuse_hello(w, cpu, c, request, KBTP_STATUS_MALFORMED);
        return;
    }
    bool restored;
    int session =
        kbtp_session_open(cpu->mem, &w->target->sessions, message.hello.initiator_id,
                          w->target->config.probe_ns != 0, &c->name, &c->usage, &restored);
    if (session == -EAGAIN)
        return; /* its old connection is not drained yet (I-10), or is asked whether it lives */
    if (session < 0) {
        refuse_hello(w, cpu, c, request,
                     session == -ENOSPC ? KBTP_STATUS_NO_SPACE : KBTP_STATUS_INTERNAL);
        return;
    }
    c->session = (uint32_t)session;
    c->has_session = 1;
    c->state = KBTP_CONNECTION_READY;
    kbtp_count(w, restored ? KBTP_COUNT_RESTORED : KBTP_COUNT_OPENED);
    welcome(w, cpu, c, request, &message.hello);
}

/* ---- GOODBYE ----------------------------------------------------------------------------- */

bool kbtp_release_next(struct kbtp_worker *w, const struct kbtp_cpu *cpu, struct kbtp_connection *c,
                       struct kbtp_request *request)
{
    const struct kbtp_grant *grant = &w->target->sessions.grants[c->session];
    if (request->entry == grant->handle_count)
        return true;
    if (kbtp_release_handle(w, cpu, c->session, request->entry++))
        c->usage--;
    return request->entry == grant->handle_count;
}

/* There is no completion: that the connection ends is the answer (I-34). */
static void goodbye(struct kbtp_worker *w, const struct kbtp_cpu *cpu, struct kbtp_connection *c,
                    struct kbtp_request *request)
{
    if (request->status != KBTP_STATUS_OK) {
        kbtp_answer(w, cpu, c, request, NULL);
    } else if (request->flags & KBTP_GOODBYE_RELEASE) {
        request->entry = 0;
        request->stage = KBTP_STAGE_RELEASE;
    } else {
        request->stage = KBTP_STAGE_DONE;
        kbtp_count_request(w, KBTP_OP_GOODBYE, KBTP_STATUS_OK);
        kbtp_connection_end(w, cpu, c);
    }
}

/* ---- all --------------------------------------------------------------------------------- */

/* Said once, and then the connection ends: the peers do not understand each other (I-30, I-47). */
static void refuse_and_end(struct kbtp_worker *w, const struct kbtp_cpu *cpu,
                           struct kbtp_connection *c, struct kbtp_request *request)
{
    struct kbtp_message message = {.header = {.version = KBTP_WIRE_VERSION,
                                              .opcode = KBTP_OP_COMPLETION,
                                              .request_id = request->request_id,
                                              .handle = request->handle,
                                              .status = KBTP_STATUS_MALFORMED}};
    request->flags = 0;
    kbtp_answer_with(w, cpu, c, request, &message, true, NULL);
}

void kbtp_session_request(struct kbtp_worker *w, const struct kbtp_cpu *cpu,
                          struct kbtp_connection *c, struct kbtp_request *request)
{
    bool ready = c->state == KBTP_CONNECTION_READY;
    if (!ready && request->opcode == KBTP_OP_HELLO) {
        hello(w, cpu, c, request);
    } else if (!ready && request->opcode == 0) {
        refuse_hello(w, cpu, c, request, KBTP_STATUS_MALFORMED); /* says which Version is spoken */
    } else if (!ready || request->opcode == 0 || request->opcode == KBTP_OP_HELLO) {
        refuse_and_end(w, cpu, c, request);
    } else if (request->opcode == KBTP_OP_GOODBYE) {
        goodbye(w, cpu, c, request);
    } else { /* BIND without DIRECT_ALLOC, what only targets send, and unknown opcodes */
        request->status = KBTP_STATUS_MALFORMED;
        request->generation = 0;
        request->flags = 0;
        kbtp_answer(w, cpu, c, request, NULL);
    }
}
