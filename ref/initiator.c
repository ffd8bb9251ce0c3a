/* SPDX-License-Identifier: BSD-3-Clause */
#include "ref/initiator.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "ref/initiator_state.h"

#define MAX_DEPTH 4096u
#define BATCH 16u
#define RECEIVE_OCTETS KBTP_TO_INITIATOR_MAX_OCTETS
#define KNOWN_FEATURES \
    (KBTP_FEATURE_DIRECT_LOAD | KBTP_FEATURE_DIRECT_ALLOC | KBTP_FEATURE_RECORD_COMPLETION)
#define MAX_LOOKS 250u

/* ---- set-up ------------------------------------------------------------------------------ */

static uint32_t least(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

static uint32_t slot_octets(const struct kbtp_initiator_config *config)
{
    return (KBTP_REQUEST_MAX_OCTETS + config->max_inline + 7) / 8 * 8;
}

/* A request each, HELLO and GOODBYE, and as much again for those that are answered already, but
 * leave the queue only when a later one completes. With fewer, requests wait for room. */
static uint32_t send_depth(const struct kbtp_initiator_config *config)
{
    return 2 * (config->depth + 2);
}

static bool wants_direct(const struct kbtp_initiator_config *config)
{
    return config->features & (KBTP_FEATURE_DIRECT_LOAD | KBTP_FEATURE_DIRECT_ALLOC);
}

void kbtp_initiator_memory(const struct kbtp_initiator_config *config, size_t *private_octets,
                           size_t *buffer_octets)
{
    size_t direct = wants_direct(config) ? config->depth : 0;
    *private_octets = sizeof(struct kbtp_initiator) + config->depth * sizeof(struct kbtp_pending) +
                      direct * sizeof(struct kbtp_direct);
    *buffer_octets = (config->depth + 1) * (size_t)RECEIVE_OCTETS +
                     send_depth(config) * (size_t)slot_octets(config) + direct * KBTP_ENTRY_OCTETS;
}

static bool config_is_legal(const struct kbtp_initiator_config *config)
{
    bool records = config->features & KBTP_FEATURE_RECORD_COMPLETION;
    return config->depth != 0 && config->depth <= MAX_DEPTH &&
           config->max_inline <= UINT32_MAX / 2 && !(config->features & ~KNOWN_FEATURES) &&
           config->give_up_looks <= MAX_LOOKS && kbtp_back_off_is_legal(config) &&
           (!records || (config->records && (uintptr_t)config->records % 8 == 0));
}

/* Only what the target may write is in a region that it may write. */
static int register_memory(struct kbtp_initiator *i, const struct kbtp_cpu *cpu, size_t octets)
{
    int failed = rdma_reg(cpu->rdma, i->receives, octets, RDMA_LOCAL_WRITE, 0, &i->region);
    if (failed || !i->records)
        return failed;
    failed = rdma_reg(cpu->rdma, i->records, i->depth * (size_t)KBTP_RECORD_OCTETS,
                      RDMA_LOCAL_WRITE | RDMA_REMOTE_WRITE, 0, &i->record_region);
    if (failed)
        rdma_dereg(cpu->rdma, &i->region);
    return failed;
}

int kbtp_initiator_init(struct kbtp_initiator **initiator, const struct kbtp_cpu *cpu,
                        const struct kbtp_initiator_config *config, void *private_memory,
                        void *buffers)
{
    if (!config_is_legal(config))
        return -EINVAL;
    size_t private_octets, buffer_octets;
    struct rdma_caps caps;
    kbtp_initiator_memory(config, &private_octets, &buffer_octets);
    rdma_caps(cpu->rdma, &caps);
    if (config->depth + 1 > caps.max_queue ||
        KBTP_REQUEST_MAX_OCTETS + config->max_inline > caps.max_message)
        return -EINVAL;
    memset(private_memory, 0, private_octets);
    struct kbtp_initiator *i = private_memory;
    *i = (struct kbtp_initiator){.address = config->address,
                                 .pending = (struct kbtp_pending *)(i + 1),
                                 .receives = buffers,
                                 .depth = config->depth,
                                 .max_inline = config->max_inline,
                                 .requested = config->features,
                                 .unmasked = config->unmasked,
                                 .reread_ns = config->reread_ns,
                                 .give_up_looks = config->give_up_looks,
                                 .unchecked = config->unchecked,
                                 .patient = config->patient,
                                 .back_off = kbtp_back_off(config)};
    if (wants_direct(config))
        i->direct = (struct kbtp_direct *)(i->pending + config->depth);
    if (config->features & KBTP_FEATURE_RECORD_COMPLETION)
        i->records = config->records;
    memcpy(i->initiator_id, config->initiator_id, sizeof i->initiator_id);
    int failed = rdma_cq_create(cpu->rdma, send_depth(config) + config->depth + 1, &i->cq);
    if (failed)
        return failed;
    failed = register_memory(i, cpu, buffer_octets);
    if (failed) {
        rdma_cq_destroy(cpu->rdma, i->cq);
        return failed;
    }
    if (i->direct)
        i->entries = (uint8_t *)buffers + buffer_octets - i->depth * KBTP_ENTRY_OCTETS;
    i->sends = (struct kbtp_sends){.slots = i->receives + (i->depth + 1) * RECEIVE_OCTETS,
                                   .slot_octets = slot_octets(config),
                                   .lkey = i->region.lkey,
                                   .depth = least(send_depth(config), caps.max_queue),
                                   .max_inline = least(caps.max_inline, slot_octets(config))};
    *initiator = i;
    return 0;
}

int kbtp_initiator_end(struct kbtp_initiator *initiator, const struct kbtp_cpu *cpu)
{
    assert(initiator->state == KBTP_INITIATOR_DOWN);
    int failed = rdma_dereg(cpu->rdma, &initiator->region);
    int records = initiator->records ? rdma_dereg(cpu->rdma, &initiator->record_region) : 0;
    int cq = rdma_cq_destroy(cpu->rdma, initiator->cq);
    return failed ? failed : records ? records : cq;
}

/* ---- looking ----------------------------------------------------------------------------- */

enum kbtp_initiator_state kbtp_initiator_state(const struct kbtp_initiator *initiator)
{
    return (enum kbtp_initiator_state)initiator->state;
}

const struct kbtp_hello_ack *kbtp_initiator_target(const struct kbtp_initiator *initiator)
{
    return &initiator->target;
}

int kbtp_initiator_why(const struct kbtp_initiator *initiator)
{
    return initiator->why;
}

uint32_t kbtp_initiator_credits(const struct kbtp_initiator *initiator)
{
    if (initiator->state != KBTP_INITIATOR_READY || kbtp_sends_room(&initiator->sends) < 2)
        return 0; /* one is for GOODBYE */
    return initiator->credits - initiator->outstanding;
}

uint32_t kbtp_initiator_outstanding(const struct kbtp_initiator *initiator)
{
    return initiator->outstanding;
}

uint16_t kbtp_initiator_features(const struct kbtp_initiator *initiator)
{
    return initiator->state == KBTP_INITIATOR_READY ? initiator->features : 0;
}

bool kbtp_initiator_same_range(const struct kbtp_initiator *initiator)
{
    return initiator->same_range;
}

uint32_t kbtp_initiator_usage(const struct kbtp_initiator *initiator)
{
    return initiator->usage;
}

int kbtp_initiator_set_usage(struct kbtp_initiator *initiator, uint32_t blocks)
{
    if (initiator->outstanding != 0)
        return -EBUSY;
    initiator->usage = blocks;
    return 0;
}

/* ---- connecting -------------------------------------------------------------------------- */

static struct rdma_wr receive(const struct kbtp_initiator *i, uint32_t number, struct rdma_sge *sge)
{
    *sge = (struct rdma_sge){.addr = i->receives + (size_t)number * RECEIVE_OCTETS,
                             .length = RECEIVE_OCTETS,
                             .lkey = i->region.lkey};
    return (struct rdma_wr){.wr_id = kbtp_wr_id(KBTP_WR_RECEIVE, number, 0),
                            .op = RDMA_RECV,
                            .sges = sge,
                            .sge_count = 1};
}

static int post_receive(const struct kbtp_initiator *i, const struct kbtp_cpu *cpu, uint32_t number)
{
    struct rdma_sge sge;
    struct rdma_wr wr = receive(i, number, &sge);
    return rdma_post_recv(cpu->rdma, i->conn, &wr, 1);
}

void kbtp_initiator_abort(struct kbtp_initiator *i, const struct kbtp_cpu *cpu, int why)
{
    if (i->state == KBTP_INITIATOR_DOWN || i->state == KBTP_INITIATOR_WAITING ||
        i->state == KBTP_INITIATOR_ENDING)
        return;
    i->state = KBTP_INITIATOR_ENDING;
    i->why = why;
    rdma_disconnect(cpu->rdma, i->conn);
}

/* It ends after GOODBYE, but not because the target has heard it. */
static void goodbye_failed(struct kbtp_initiator *i, int why)
{
    if (i->state == KBTP_INITIATOR_ENDING && i->why == 0)
        i->why = why;
}

static int try_to_connect(struct kbtp_initiator *i, const struct kbtp_cpu *cpu)
{
    struct rdma_caps caps;
    rdma_caps(cpu->rdma, &caps);
    struct rdma_conn_config config = {.cq = i->cq,
                                      .send_depth = i->sends.depth,
                                      .recv_depth = i->depth + 1,
                                      .max_sge = 1,
                                      .max_inline = i->sends.max_inline,
                                      .reads_out = i->direct ? least(i->depth, caps.max_reads) : 0,
                                      .reads_in = caps.max_reads};
    struct rdma_sge sge;
    struct rdma_wr first = receive(i, 0, &sge);
    int failed = rdma_connect(cpu->rdma, i->address, &config, &first, 1, NULL, 0, &i->conn);
    if (failed)
        return failed;
    i->state = KBTP_INITIATOR_CONNECTING;
    i->why = 0;
    i->serial = 0;
    for (uint32_t number = 1; number <= i->depth; number++)
        if ((failed = post_receive(i, cpu, number)) != 0) {
            kbtp_initiator_abort(i, cpu, failed);
            break;
        }
    return 0;
}

int kbtp_initiator_connect(struct kbtp_initiator *initiator, const struct kbtp_cpu *cpu)
{
    if (initiator->state != KBTP_INITIATOR_DOWN && initiator->state != KBTP_INITIATOR_WAITING)
        return -EISCONN;
    kbtp_back_off_ends(initiator, cpu);
    initiator->state = KBTP_INITIATOR_DOWN;
    return try_to_connect(initiator, cpu);
}

/* The connection is gone, or there was none to be had. */
static void rest(struct kbtp_initiator *i, const struct kbtp_cpu *cpu)
{
    i->state = KBTP_INITIATOR_DOWN;
    if (kbtp_back_off_begins(i, cpu))
        i->state = KBTP_INITIATOR_WAITING;
    i->leaving = 0;
}

/* The time for another try has come. */
static void wait_is_over(struct kbtp_initiator *i, const struct kbtp_cpu *cpu)
{
    struct rdma_event event;
    if (rdma_event(cpu->rdma, &event) != 1 || event.kind != RDMA_EVENT_TIMER)
        return;
    int failed = try_to_connect(i, cpu);
    if (!failed)
        return;
    i->why = failed;
    rest(i, cpu);
}

static int send(struct kbtp_initiator *i, const struct kbtp_cpu *cpu,
                const struct kbtp_message *message, const void *data, uint32_t data_length)
{
    struct kbtp_outgoing outgoing = {.message = message,
                                     .data = data,
                                     .data_length = data_length,
                                     .addr_le = i->target.features & KBTP_FEATURE_ADDR_LE};
    return kbtp_sends_post(cpu, &i->sends, i->conn, NULL, KBTP_WR_MESSAGE, 0, &outgoing);
}

static void say_hello(struct kbtp_initiator *i, const struct kbtp_cpu *cpu)
{
    struct kbtp_message message = {
        .header = {.version = KBTP_WIRE_VERSION, .opcode = KBTP_OP_HELLO},
        .hello = {.requested_features = i->requested, .completion_credits = (uint16_t)i->depth}};
    memcpy(message.hello.initiator_id, i->initiator_id, sizeof i->initiator_id);
    i->target = (struct kbtp_hello_ack){0};
    int failed = send(i, cpu, &message, NULL, 0);
    if (failed)
        kbtp_initiator_abort(i, cpu, failed);
}

static void welcomed(struct kbtp_initiator *i, const struct kbtp_cpu *cpu,
                     const struct kbtp_message *message)
{
    if (message->header.status != KBTP_STATUS_OK) {
        kbtp_initiator_abort(i, cpu, message->header.status);
        return;
    }
    uint32_t credits = message->hello_ack.request_credits;
    if (credits == 0) {
        kbtp_initiator_abort(i, cpu, -EPROTO);
        return;
    }
    i->target = message->hello_ack;
    i->same_range = i->range_count != 0 && i->range_count == i->target.handle_count &&
                    i->range_base == i->target.handle_base;
    i->range_count = i->target.handle_count;
    i->range_base = i->target.handle_base;
    i->features = i->target.features & i->requested;
    if ((i->features & KBTP_FEATURE_DIRECT_LOAD) && !kbtp_direct_load_offer_is_good(&i->target))
        i->features &= (uint16_t)~KBTP_FEATURE_DIRECT_LOAD;
    struct rdma_caps caps;
    rdma_caps(cpu->rdma, &caps);
    if ((i->features & KBTP_FEATURE_DIRECT_ALLOC) && !kbtp_direct_alloc_offer_is_good(i, &caps))
        i->features &= (uint16_t)~KBTP_FEATURE_DIRECT_ALLOC;
    i->credits = least(credits, i->depth);
    i->state = KBTP_INITIATOR_READY;
    kbtp_back_off_ends(i, cpu);
}

/* ---- requests ---------------------------------------------------------------------------- */

/* Flags that make sense for an opcode (I-44), together: a record invalidates nothing (I-28), and
 * inline data has no STag (I-29). */
static bool flags_are_legal(const struct kbtp_initiator *i, uint8_t opcode, uint16_t flags)
{
    uint16_t legal = i->features & KBTP_FEATURE_RECORD_COMPLETION ? KBTP_FLAG_RECORD : 0;
    if (opcode == KBTP_OP_LOAD)
        legal |= KBTP_FLAG_INVALIDATE | KBTP_FLAG_ALLOW_UNSEALED;
    else if (opcode == KBTP_OP_STORE || opcode == KBTP_OP_ALLOC_STORE)
        legal |= KBTP_FLAG_INLINE | KBTP_FLAG_SEAL | KBTP_FLAG_INVALIDATE;
    return !(flags & ~legal) &&
           (!(flags & KBTP_FLAG_INVALIDATE) || !(flags & (KBTP_FLAG_INLINE | KBTP_FLAG_RECORD)));
}

static int check(const struct kbtp_initiator *i, const struct kbtp_operation *operation)
{
    uint8_t opcode = operation->opcode;
    bool is_inline = operation->flags & KBTP_FLAG_INLINE;
    if (opcode != KBTP_OP_LOAD && opcode != KBTP_OP_STORE && opcode != KBTP_OP_ALLOC_STORE &&
        opcode != KBTP_OP_FREE)
        return -EINVAL;
    if (is_inline && operation->length > i->max_inline)
        return -EMSGSIZE;
    if (i->unchecked)
        return 0;
    if (!flags_are_legal(i, opcode, operation->flags))
        return -EINVAL;
    if (opcode != KBTP_OP_LOAD &&
        operation->handle - i->target.handle_base >= i->target.handle_count)
        return -EINVAL;
    if (is_inline && operation->length > i->target.max_inline)
        return -EMSGSIZE;
    if (opcode == KBTP_OP_ALLOC_STORE && i->usage >= i->target.allocation_quota)
        return -EDQUOT;
    return 0;
}

uint32_t kbtp_free_place(const struct kbtp_initiator *i)
{
    uint32_t place = 0;
    while (i->pending[place].opcode != 0)
        place++;
    return place;
}

static struct kbtp_pending pending_for(const struct kbtp_operation *operation, uint64_t request_id,
                                       uint64_t cookie)
{
    bool names = operation->opcode != KBTP_OP_FREE && !(operation->flags & KBTP_FLAG_INLINE);
    return (struct kbtp_pending){
        .request_id = request_id,
        .cookie = cookie,
        .handle = operation->handle,
        .opcode = operation->opcode,
        .flags = operation->flags,
        .length = operation->length,
        .stag = names && (operation->flags & KBTP_FLAG_INVALIDATE) ? operation->stag : 0};
}

int kbtp_initiator_submit(struct kbtp_initiator *initiator, const struct kbtp_cpu *cpu,
                          const struct kbtp_operation *operation, uint64_t cookie)
{
    struct kbtp_initiator *i = initiator;
    if (i->state != KBTP_INITIATOR_READY)
        return -ENOTCONN;
    if (kbtp_initiator_credits(i) == 0)
        return -EAGAIN;
    int failed = check(i, operation);
    if (failed)
        return failed;
    uint32_t place = kbtp_free_place(i);
    struct kbtp_message message = {.header = {.version = KBTP_WIRE_VERSION,
                                              .opcode = operation->opcode,
                                              .flags = operation->flags,
                                              .request_id = ++i->serial << 16 | place,
                                              .handle = operation->handle,
                                              .generation = operation->generation},
                                   .operands.data = {.tagged_offset = operation->tagged_offset,
                                                     .stag = operation->stag,
                                                     .length = operation->length}};
    if ((operation->flags & KBTP_FLAG_RECORD) && i->records)
        kbtp_record_arm(i, cpu, place, &message.operands.completion);
    bool is_inline = operation->flags & KBTP_FLAG_INLINE;
    failed = send(i, cpu, &message, operation->data, is_inline ? operation->length : 0);
    if (failed) {
        kbtp_initiator_abort(i, cpu, failed);
        return failed;
    }
    i->pending[place] = pending_for(operation, message.header.request_id, cookie);
    i->outstanding++;
    if (operation->opcode == KBTP_OP_ALLOC_STORE)
        i->usage++;
    return 0;
}

int kbtp_initiator_goodbye(struct kbtp_initiator *initiator, const struct kbtp_cpu *cpu,
                           bool release)
{
    if (initiator->state != KBTP_INITIATOR_READY)
        return -ENOTCONN;
    if (initiator->outstanding != 0)
        return -EBUSY;
    struct kbtp_message message = {.header = {.version = KBTP_WIRE_VERSION,
                                              .opcode = KBTP_OP_GOODBYE,
                                              .flags = release ? KBTP_GOODBYE_RELEASE : 0}};
    int failed = send(initiator, cpu, &message, NULL, 0);
    if (failed) {
        kbtp_initiator_abort(initiator, cpu, failed);
        return failed;
    }
    initiator->state = KBTP_INITIATOR_ENDING; /* the target disconnects: that is its answer */
    initiator->why = 0;
    initiator->leaving = 1;
    initiator->releasing = release;
    return 0;
}

void kbtp_initiator_disconnect(struct kbtp_initiator *initiator, const struct kbtp_cpu *cpu)
{
    if (initiator->state == KBTP_INITIATOR_DOWN)
        return;
    if (initiator->state == KBTP_INITIATOR_WAITING) {
        kbtp_back_off_ends(initiator, cpu);
        initiator->state = KBTP_INITIATOR_DOWN;
        return;
    }
    initiator->leaving = 1;
    goodbye_failed(initiator, -ECONNRESET);
    if (initiator->state == KBTP_INITIATOR_ENDING) /* GOODBYE was said, and the target stays */
        rdma_disconnect(cpu->rdma, initiator->conn);
    else
        kbtp_initiator_abort(initiator, cpu, -ECONNRESET);
}

/* ---- outcomes ---------------------------------------------------------------------------- */

void kbtp_settle(struct kbtp_initiator *i, struct kbtp_pending *pending,
                 struct kbtp_outcome *outcome)
{
    outcome->cookie = pending->cookie;
    outcome->handle = pending->handle;
    outcome->opcode = (uint8_t)pending->opcode;
    bool well = outcome->error == 0 && outcome->status == KBTP_STATUS_OK;
    bool refused = outcome->error == 0 && !well;
    if ((pending->opcode == KBTP_OP_ALLOC_STORE && refused) ||
        (pending->opcode == KBTP_OP_FREE && well && i->usage != 0))
        i->usage--;
    /* Its ticket goes back when the connection has ended; nothing was bound. */
    if (pending->opcode == KBTP_OP_BIND && outcome->error != 0 &&
        i->direct[pending - i->pending].stage != KBTP_DIRECT_NONE)
        i->usage--;
    if (i->direct)
        i->direct[pending - i->pending] = (struct kbtp_direct){0};
    *pending = (struct kbtp_pending){0};
    i->outstanding--;
}

/* Is this request's answer the target's to give? */
static bool is_asked(const struct kbtp_initiator *i, uint64_t request_id)
{
    uint64_t place = request_id & 0xffff;
    return place < i->depth && i->pending[place].opcode != 0 &&
           i->pending[place].opcode != KBTP_INVALIDATION &&
           i->pending[place].request_id == request_id &&
           !(i->direct && i->direct[place].stage != 0);
}

bool kbtp_answered(struct kbtp_initiator *i, const struct kbtp_record *answer, uint32_t invalidated,
                   struct kbtp_outcome *outcome)
{
    if (!is_asked(i, answer->request_id))
        return false;
    struct kbtp_pending *pending = &i->pending[answer->request_id & 0xffff];
    if (pending->opcode == KBTP_OP_LOAD && answer->status == KBTP_STATUS_OK &&
        answer->data_length > pending->length)
        return false;
    if (invalidated != 0 && invalidated != pending->stag)
        return false;
    if (pending->opcode == KBTP_OP_BIND && answer->status != KBTP_STATUS_OK)
        kbtp_direct_alloc_refused(i, answer->status);
    *outcome = (struct kbtp_outcome){.block_offset = answer->block_offset,
                                     .data_length = answer->data_length,
                                     .status = answer->status,
                                     .generation = answer->generation,
                                     .by_record = outcome->by_record,
                                     .invalidated = invalidated != 0};
    kbtp_settle(i, pending, outcome);
    return true;
}

/* A COMPLETION. */
static bool completion_came(struct kbtp_initiator *i, const struct kbtp_message *message,
                            uint32_t invalidated, struct kbtp_outcome *outcome)
{
    const struct kbtp_record answer = {.request_id = message->header.request_id,
                                       .block_offset = message->completion.block_offset,
                                       .data_length = message->completion.data_length,
                                       .status = message->header.status,
                                       .generation = message->header.generation};
    return kbtp_answered(i, &answer, invalidated, outcome);
}

/* A message has come; true with an outcome. */
static bool received(struct kbtp_initiator *i, const struct kbtp_cpu *cpu, const struct rdma_wc *wc,
                     struct kbtp_outcome *outcome)
{
    uint8_t image[RECEIVE_OCTETS];
    struct kbtp_message message;
    uint32_t number = kbtp_wr_detail(wc->wr_id);
    bool immediate = wc->flags & RDMA_WC_WRITE_IMM; /* then there is no message */
    uint32_t length = immediate ? 0 : least(wc->length, sizeof image);
    mem_read(cpu->mem, image, i->receives + (size_t)number * RECEIVE_OCTETS, length);
    uint32_t invalidated = wc->flags & RDMA_WC_INVALIDATED ? wc->imm : 0;
    bool well = !immediate && kbtp_wire_decode(image, length, false, &message, NULL) == 0;
    /* Posted again before the credit is used again. */
    int failed = post_receive(i, cpu, number);
    if (failed) {
        kbtp_initiator_abort(i, cpu, failed);
    } else if (well && message.header.opcode == KBTP_OP_HELLO_ACK && invalidated == 0 &&
               i->state == KBTP_INITIATOR_CONNECTING) {
        welcomed(i, cpu, &message);
    } else if (i->state == KBTP_INITIATOR_READY &&
               (immediate || (well && message.header.opcode == KBTP_OP_COMPLETION))) {
        *outcome = (struct kbtp_outcome){0};
        if (immediate ? kbtp_record_came(i, cpu, outcome)
                      : completion_came(i, &message, invalidated, outcome))
            return true;
        kbtp_initiator_abort(i, cpu, -EPROTO);
    } else if (i->state != KBTP_INITIATOR_ENDING) {
        kbtp_initiator_abort(i, cpu, -EPROTO);
    }
    return false;
}

static bool direct_read(struct kbtp_initiator *i, const struct kbtp_cpu *cpu, uint32_t place,
                        struct kbtp_outcome *outcome)
{
    if (i->state != KBTP_INITIATOR_READY)
        return false; /* it came before the end, but was not seen in time */
    return i->direct[place].stage >= KBTP_DIRECT_TICKET
               ? kbtp_direct_alloc_read(i, cpu, place, outcome)
               : kbtp_direct_load_read(i, cpu, place, outcome);
}

static bool completed(struct kbtp_initiator *i, const struct kbtp_cpu *cpu,
                      const struct rdma_wc *wc, struct kbtp_outcome *outcome)
{
    bool is_receive = kbtp_wr_kind(wc->wr_id) == KBTP_WR_RECEIVE;
    if (!is_receive)
        kbtp_sends_retire(&i->sends, wc->wr_id);
    if (wc->status != RDMA_OK) {
        if (wc->status != RDMA_FLUSHED)
            goodbye_failed(i, -ECONNRESET);
        kbtp_initiator_abort(i, cpu, -ECONNRESET);
        return false;
    }
    if (kbtp_wr_kind(wc->wr_id) == KBTP_WR_INVALIDATE && i->state == KBTP_INITIATOR_READY) {
        kbtp_invalidated(i, kbtp_wr_detail(wc->wr_id), outcome);
        return true;
    }
    if (kbtp_wr_kind(wc->wr_id) == KBTP_WR_READ)
        return direct_read(i, cpu, kbtp_wr_detail(wc->wr_id), outcome);
    return is_receive && received(i, cpu, wc, outcome);
}

/* The oldest request that will never be answered. */
static struct kbtp_pending *oldest_pending(const struct kbtp_initiator *i)
{
    struct kbtp_pending *oldest = NULL;
    for (uint32_t place = 0; place < i->depth; place++) {
        struct kbtp_pending *pending = &i->pending[place];
        if (pending->opcode != 0 && (!oldest || pending->request_id < oldest->request_id))
            oldest = pending;
    }
    return oldest;
}

/* Nothing reads or writes for the connection any more: what it left open is lost. */
static int drain(struct kbtp_initiator *i, const struct kbtp_cpu *cpu,
                 struct kbtp_outcome *outcomes, uint32_t count)
{
    uint32_t told = 0;
    for (; told < count && i->outstanding != 0; told++) {
        outcomes[told] = (struct kbtp_outcome){.error = -ECONNRESET};
        kbtp_settle(i, oldest_pending(i), &outcomes[told]);
    }
    if (i->outstanding == 0) {
        rdma_destroy(cpu->rdma, i->conn);
        i->sends.posted = i->sends.retired = i->sends.unsignaled = 0;
        kbtp_direct_alloc_end(i, cpu);
        if (i->releasing && i->why == 0)
            i->usage = 0;
        i->drained = 0;
        i->releasing = 0;
        i->conn = i->credits = 0;
        i->serial = 0;
        rest(i, cpu);
    }
    return (int)told;
}

static void happened(struct kbtp_initiator *i, const struct kbtp_cpu *cpu,
                     const struct rdma_event *event)
{
    switch (event->kind) {
    case RDMA_EVENT_CONNECTED:
        if (i->state == KBTP_INITIATOR_CONNECTING)
            say_hello(i, cpu);
        else /* it was to end before it was there */
            rdma_disconnect(cpu->rdma, i->conn);
        break;
    case RDMA_EVENT_REJECTED:
        i->state = KBTP_INITIATOR_ENDING;
        if (i->why == 0)
            i->why = event->error ? event->error : -ECONNREFUSED;
        i->drained = 1;
        break;
    case RDMA_EVENT_DISCONNECTED:
        if (event->error)
            goodbye_failed(i, event->error);
        kbtp_initiator_abort(i, cpu, event->error ? event->error : -ECONNRESET);
        break;
    case RDMA_EVENT_DRAINED:
        i->drained = 1;
        break;
    case RDMA_EVENT_TIMER:
        kbtp_direct_alloc_expired(i, cpu, event->conn);
        break;
    default:
        break;
    }
}

int kbtp_initiator_poll(struct kbtp_initiator *initiator, const struct kbtp_cpu *cpu,
                        struct kbtp_outcome *outcomes, uint32_t count)
{
    struct kbtp_initiator *i = initiator;
    struct rdma_wc wc[BATCH];
    struct rdma_event event;
    if (i->state == KBTP_INITIATOR_DOWN)
        return 0;
    if (i->state == KBTP_INITIATOR_WAITING) {
        wait_is_over(i, cpu);
        return 0;
    }
    if (i->drained)
        return drain(i, cpu, outcomes, count);
    int taken = rdma_cq_poll(cpu->rdma, i->cq, wc, count < BATCH ? count : BATCH);
    int told = 0;
    for (int n = 0; n < taken; n++)
        told += completed(i, cpu, &wc[n], &outcomes[told]);
    if (taken != 0)
        return taken < 0 ? taken : told;
    if (rdma_event(cpu->rdma, &event) == 1)
        happened(i, cpu, &event);
    return 0;
}
