/* SPDX-License-Identifier: BSD-3-Clause */
/* The session: connect, one request, leave. */
#include <stdlib.h>
#include <string.h>

#include "cli/operation.h"
#include "cli/real.h"

struct client {
    const struct operation *operation;
    struct rdma_verbs *device;
    struct mem mem;
    struct kbtp_cpu cpu;
    struct kbtp_initiator *initiator;
    struct kbtp_initiator_config config;
    void *private_memory, *buffers, *data;
    size_t private_octets, buffer_octets, data_octets;
    struct rdma_region region;                               /* of data */
    uint64_t records[KBTP_RECORD_OCTETS / sizeof(uint64_t)]; /* one, for the target to write */
    struct kbtp_outcome outcome;
    bool answered;
};

/* ---- opening ----------------------------------------------------------------------------- */

static int open_device(struct client *c)
{
    const struct operation *o = c->operation;
    char words[RDMA_VERBS_WORDS];
    if (real_open_initiator(o->device, o->address, o->timeout, &c->device, words) != 0 ||
        rdma_verbs_handle(c->device, &c->cpu.rdma, words) != 0) {
        cli_complain("%s", words);
        return CLI_ENVIRONMENT;
    }
    c->cpu.mem = &c->mem;
    return CLI_DONE;
}

static int complain_of(const struct client *c, const char *what, int failed)
{
    cli_complain("%.60s: %s: %s", c->operation->name, what, real_why(c->cpu.rdma, failed));
    return CLI_ENVIRONMENT;
}

static int make_initiator(struct client *c)
{
    const struct operation *o = c->operation;
    bool is_inline = o->flags & KBTP_FLAG_INLINE;
    uint16_t features = 0;
    if (o->direct)
        features = o->opcode == KBTP_OP_LOAD ? KBTP_FEATURE_DIRECT_LOAD : KBTP_FEATURE_DIRECT_ALLOC;
    if (o->flags & KBTP_FLAG_RECORD)
        features |= KBTP_FEATURE_RECORD_COMPLETION;
    c->config = real_initiator(o->address);
    c->config.depth = 1;
    c->config.features = features;
    c->config.records = c->records;
    c->config.max_inline = is_inline ? (uint32_t)o->data_octets : 0;
    memcpy(c->config.initiator_id, o->id, sizeof c->config.initiator_id);
    kbtp_initiator_memory(&c->config, &c->private_octets, &c->buffer_octets);
    c->private_memory = real_memory(c->private_octets, "the session");
    c->buffers = real_memory(c->buffer_octets, "messages");
    if (!c->private_memory || !c->buffers)
        return CLI_ENVIRONMENT;
    int failed =
        kbtp_initiator_init(&c->initiator, &c->cpu, &c->config, c->private_memory, c->buffers);
    return failed ? complain_of(c, "cannot begin", failed) : CLI_DONE;
}

/* ---- waiting ----------------------------------------------------------------------------- */

static enum kbtp_initiator_state state_of(const struct client *c)
{
    return kbtp_initiator_state(c->initiator);
}

static bool is_connected(const struct client *c)
{
    return state_of(c) == KBTP_INITIATOR_READY || state_of(c) == KBTP_INITIATOR_DOWN;
}

static bool is_answered(const struct client *c)
{
    return c->answered || state_of(c) == KBTP_INITIATOR_DOWN;
}

static bool is_down(const struct client *c)
{
    return state_of(c) == KBTP_INITIATOR_DOWN;
}

/* Until that is so. CLI_DONE, or CLI_ENVIRONMENT after a complaint: the time is over. */
static int wait_for(struct client *c, bool (*so)(const struct client *), const char *what)
{
    double until = real_now() + c->operation->timeout;
    while (!so(c)) {
        struct kbtp_outcome outcome;
        int taken = kbtp_initiator_poll(c->initiator, &c->cpu, &outcome, 1);
        if (taken == 1) {
            c->outcome = outcome;
            c->answered = true;
        }
        double left = until - real_now();
        if (taken < 0)
            return complain_of(c, what, taken);
        if (left <= 0 && !so(c)) {
            cli_complain("%.60s: %s: no answer within %g s (--timeout)", c->operation->name, what,
                         c->operation->timeout);
            return CLI_ENVIRONMENT;
        }
        if (taken == 0 && !so(c)) {
            int failed = rdma_verbs_wait(c->cpu.rdma, real_nanoseconds(left));
            if (failed)
                return complain_of(c, what, failed);
        }
    }
    return CLI_DONE;
}

/* ---- the session ------------------------------------------------------------------------- */

static int connect_to_target(struct client *c, struct result *result)
{
    int failed = kbtp_initiator_connect(c->initiator, &c->cpu);
    if (failed)
        return complain_of(c, "cannot connect", failed);
    int status = wait_for(c, is_connected, "cannot connect");
    if (status != CLI_DONE)
        return status;
    if (state_of(c) == KBTP_INITIATOR_READY) {
        result->target = *kbtp_initiator_target(c->initiator);
        return CLI_DONE;
    }
    int why = kbtp_initiator_why(c->initiator);
    if (why > 0) {
        result->refused = (uint16_t)why;
        return CLI_DONE;
    }
    if (why == -EPROTO) {
        cli_complain("%.60s: cannot connect: what answers there is no KBTP target", //
                     c->operation->name);
        return CLI_ENVIRONMENT;
    }
    return complain_of(c, "cannot connect", why);
}

/* Memory that the target reads or writes, for this request alone. */
static int register_data(struct client *c, const struct kbtp_hello_ack *target)
{
    const struct operation *o = c->operation;
    bool loads = o->opcode == KBTP_OP_LOAD;
    c->data_octets = loads ? o->length ? o->length : target->block_size : o->data_octets;
    if (o->opcode == KBTP_OP_FREE || o->flags & KBTP_FLAG_INLINE || c->data_octets == 0)
        return CLI_DONE;
    c->data = real_memory(c->data_octets, "the data");
    if (!c->data)
        return CLI_ENVIRONMENT;
    if (!loads)
        memcpy(c->data, o->data, c->data_octets);
    uint32_t access = loads ? RDMA_LOCAL_WRITE : 0;
    if (!o->direct) /* the target moves it */
        access |= loads ? RDMA_REMOTE_WRITE : RDMA_REMOTE_READ;
    int failed = rdma_reg(c->cpu.rdma, c->data, c->data_octets, access, 0, &c->region);
    return failed ? complain_of(c, "cannot register the data", failed) : CLI_DONE;
}

static int submit_direct(struct client *c, uint64_t handle)
{
    const struct operation *o = c->operation;
    if (o->opcode == KBTP_OP_LOAD) {
        struct kbtp_direct_load load = {.handle = handle,
                                        .into = c->data,
                                        .lkey = c->region.lkey,
                                        .length = (uint32_t)c->data_octets,
                                        .generation = o->generation};
        return kbtp_initiator_direct_load(c->initiator, &c->cpu, &load, 0);
    }
    struct kbtp_direct_store store = {.handle = handle,
                                      .data = c->data,
                                      .lkey = c->region.lkey,
                                      .length = (uint32_t)c->data_octets,
                                      .generation = o->generation};
    return kbtp_initiator_direct_store(c->initiator, &c->cpu, &store, 0);
}

static int submit(struct client *c, uint64_t handle)
{
    const struct operation *o = c->operation;
    if (o->direct)
        return submit_direct(c, handle);
    bool records = kbtp_initiator_features(c->initiator) & KBTP_FEATURE_RECORD_COMPLETION;
    if (o->flags & KBTP_FLAG_RECORD && !records)
        return -ENOTSUP;
    struct kbtp_operation operation = {.handle = handle,
                                       .tagged_offset = c->region.base_to,
                                       .stag = c->region.stag,
                                       .data = o->data,
                                       .length =
                                           o->opcode == KBTP_OP_FREE ? 0 : (uint32_t)c->data_octets,
                                       .generation = o->generation,
                                       .flags = o->flags,
                                       .opcode = o->opcode};
    return kbtp_initiator_submit(c->initiator, &c->cpu, &operation, 0);
}

static int request(struct client *c, struct result *result)
{
    const struct operation *o = c->operation;
    uint64_t handle = o->own ? result->target.handle_base + o->handle : o->handle;
    double begin = real_now();
    int failed = submit(c, handle);
    if (failed)
        return operation_unsent(o, &result->target, handle, failed);
    int status = wait_for(c, is_answered, "no answer");
    if (status != CLI_DONE)
        return status;
    if (!c->answered || c->outcome.error) {
        int why = kbtp_initiator_why(c->initiator);
        cli_complain("%.60s: the connection was lost, and nobody knows whether it was done: %s",
                     o->name, real_why(c->cpu.rdma, why));
        return CLI_ENVIRONMENT;
    }
    result->answer_s = real_now() - begin;
    result->outcome = c->outcome;
    result->data = c->data;
    return CLI_DONE;
}

/* Whatever came of the request; whether the target has heard is no part of that. */
static bool leave(struct client *c)
{
    if (state_of(c) != KBTP_INITIATOR_READY ||
        kbtp_initiator_goodbye(c->initiator, &c->cpu, c->operation->release) != 0)
        return false;
    return wait_for(c, is_down, "GOODBYE") == CLI_DONE && kbtp_initiator_why(c->initiator) == 0;
}

int client_run(const struct operation *operation, struct client **client, struct result *result)
{
    struct client *c = calloc(1, sizeof *c);
    if (!c) {
        cli_complain("no memory for the session");
        return CLI_ENVIRONMENT;
    }
    *client = c;
    c->operation = operation;
    int status = open_device(c);
    if (status == CLI_DONE)
        status = make_initiator(c);
    if (status == CLI_DONE)
        status = connect_to_target(c, result);
    if (status != CLI_DONE || result->refused)
        return status;
    status = register_data(c, &result->target);
    if (status == CLI_DONE)
        status = request(c, result);
    result->left = leave(c);
    return status;
}

void client_end(struct client *c)
{
    if (!c)
        return;
    /* Whatever is left of the connection ends with its handle, then nothing reaches the memory. */
    bool down = c->initiator && state_of(c) == KBTP_INITIATOR_DOWN;
    if (down)
        (void)kbtp_initiator_end(c->initiator, &c->cpu);
    if (c->region.length)
        (void)rdma_dereg(c->cpu.rdma, &c->region);
    if (c->cpu.rdma)
        rdma_verbs_handle_close(c->cpu.rdma);
    rdma_verbs_close(c->device);
    real_memory_end(c->data, c->data_octets);
    if (c->private_memory)
        explicit_bzero(c->private_memory, c->private_octets);
    if (c->buffers)
        explicit_bzero(c->buffers, c->buffer_octets);
    real_memory_end(c->private_memory, c->private_octets);
    real_memory_end(c->buffers, c->buffer_octets);
    explicit_bzero(&c->config, sizeof c->config);
    free(c);
}
