/* SPDX-License-Identifier: BSD-3-Clause */
/* What a worker posts: receives, completions (messages or records) and other messages. */
#include "ref/worker_state.h"

struct rdma_wr kbtp_receive(const struct kbtp_worker *w, const struct kbtp_connection *c,
                            uint32_t number, struct rdma_sge *sge)
{
    *sge = (struct rdma_sge){.addr = c->receives + (size_t)number * w->receive_octets,
                             .length = w->receive_octets,
                             .lkey = w->region.lkey};
    return (struct rdma_wr){.wr_id = kbtp_wr_id(KBTP_WR_RECEIVE, number, 0),
                            .op = RDMA_RECV,
                            .sges = sge,
                            .sge_count = 1};
}

int kbtp_post_receive(const struct kbtp_worker *w, const struct kbtp_cpu *cpu,
                      const struct kbtp_connection *c, uint32_t number)
{
    struct rdma_sge sge;
    struct rdma_wr receive = kbtp_receive(w, c, number, &sge);
    return rdma_post_recv(cpu->rdma, kbtp_connection_number(w, c), &receive, 1);
}

/* The STag that the completion takes back (I-29): that of a request which could be parsed and has
 * one. A device that cannot say so sends a plain message. */
static uint32_t stag_to_invalidate(const struct kbtp_worker *w, const struct kbtp_request *request)
{
    bool wanted = (request->flags & KBTP_FLAG_INVALIDATE) && !(request->flags & KBTP_FLAG_INLINE) &&
                  request->opcode != KBTP_OP_FREE;
    return wanted && (w->target->caps.bits & RDMA_CAP_SEND_INV) ? request->stag : 0;
}

static void count_answer(const struct kbtp_worker *w, const struct kbtp_request *request,
                         uint16_t status)
{
    if (!w->counters)
        return;
    kbtp_count_request(w, request->opcode, status);
    if (status != KBTP_STATUS_OK)
        return;
    uint64_t *values = w->counters->values;
    if (request->opcode == KBTP_OP_LOAD)
        values[KBTP_COUNT_LOADED] += request->data_length;
    else if (request->opcode == KBTP_OP_STORE || request->opcode == KBTP_OP_ALLOC_STORE)
        values[request->flags & KBTP_FLAG_INLINE ? KBTP_COUNT_STORED_INLINE
                                                 : KBTP_COUNT_STORED_READ] += request->data_length;
}

static bool post_answer(struct kbtp_worker *w, const struct kbtp_cpu *cpu,
                        struct kbtp_connection *c, struct kbtp_request *request,
                        const struct kbtp_outgoing *outgoing, uint16_t status,
                        struct rdma_wr *write)
{
    uint32_t number = (uint32_t)(request - c->requests);
    /* The receive first: the initiator may use the credit as soon as it sees the completion. */
    int failed = kbtp_post_receive(w, cpu, c, number);
    if (!failed)
        failed = kbtp_sends_post(cpu, &c->sends, kbtp_connection_number(w, c), write, KBTP_WR_WRITE,
                                 0, outgoing);
    if (failed) {
        kbtp_connection_lost(w, cpu, c);
    } else {
        request->stage = KBTP_STAGE_DONE;
        count_answer(w, request, status);
        if (outgoing->last)
            c->state = KBTP_CONNECTION_LAST;
    }
    return !failed;
}

bool kbtp_answer_with(struct kbtp_worker *w, const struct kbtp_cpu *cpu, struct kbtp_connection *c,
                      struct kbtp_request *request, const struct kbtp_message *message, bool last,
                      struct rdma_wr *write)
{
    const struct kbtp_outgoing outgoing = {
        .message = message, .invalidate = stag_to_invalidate(w, request), .last = last};
    return post_answer(w, cpu, c, request, &outgoing, message->header.status, write);
}

/* ---- completion records ------------------------------------------------------------------ */

static bool wants_record(const struct kbtp_connection *c, const struct kbtp_request *request)
{
    return (c->features & KBTP_FEATURE_RECORD_COMPLETION) && (request->flags & KBTP_FLAG_RECORD) &&
           request->opcode >= KBTP_OP_LOAD && request->opcode <= KBTP_OP_FREE;
}

bool kbtp_asks_too_much(const struct kbtp_connection *c, const struct kbtp_request *request)
{
    return wants_record(c, request) && (request->flags & KBTP_FLAG_INVALIDATE);
}

/* Where the record of a request goes; false: it is answered by a message, as is one that cannot be
 * parsed. The descriptor is read again from the receive buffer: few requests have one. */
static bool record_slot(const struct kbtp_worker *w, const struct kbtp_cpu *cpu,
                        const struct kbtp_connection *c, const struct kbtp_request *request,
                        struct kbtp_completion_descriptor *slot)
{
    uint8_t image[KBTP_REQUEST_MAX_OCTETS];
    struct kbtp_message message;
    if (!wants_record(c, request) || request->status == KBTP_STATUS_MALFORMED)
        return false;
    size_t octets = KBTP_HEADER_OCTETS +
                    (request->opcode == KBTP_OP_FREE ? 1 : 2) * KBTP_DESCRIPTOR_OCTETS +
                    (request->flags & KBTP_FLAG_INLINE ? request->length : 0);
    mem_read(cpu->mem, image, c->receives + (size_t)(request - c->requests) * w->receive_octets,
             sizeof image);
    if (kbtp_wire_decode(image, octets, w->target->config.addr_le, &message, NULL) != 0)
        return false;
    *slot = message.operands.completion;
    return true;
}

static bool answer_by_record(struct kbtp_worker *w, const struct kbtp_cpu *cpu,
                             struct kbtp_connection *c, struct kbtp_request *request,
                             const struct kbtp_completion_descriptor *slot, struct rdma_wr *write)
{
    bool well = request->status == KBTP_STATUS_OK;
    const struct kbtp_record record = {.request_id = request->request_id,
                                       .block_offset = well ? request->block_offset : 0,
                                       .data_length = well ? request->data_length : 0,
                                       .status = request->status,
                                       .generation = request->generation};
    const struct kbtp_outgoing outgoing = {.record = &record, .slot = *slot};
    return post_answer(w, cpu, c, request, &outgoing, request->status, write);
}

bool kbtp_answer(struct kbtp_worker *w, const struct kbtp_cpu *cpu, struct kbtp_connection *c,
                 struct kbtp_request *request, struct rdma_wr *write)
{
    struct kbtp_completion_descriptor slot;
    if (record_slot(w, cpu, c, request, &slot))
        return answer_by_record(w, cpu, c, request, &slot, write);
    bool well = request->status == KBTP_STATUS_OK;
    struct kbtp_message message = {
        .header = {.version = KBTP_WIRE_VERSION,
                   .opcode = KBTP_OP_COMPLETION,
                   .request_id = request->request_id,
                   .handle = request->handle,
                   .generation = request->generation,
                   .status = request->status},
        .completion = {.block_offset = well ? request->block_offset : 0, /* I-45 */
                       .data_length = well ? request->data_length : 0}};
    return kbtp_answer_with(w, cpu, c, request, &message, false, write);
}
