/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/ref/pair.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PATIENCE 10000u

struct pair_config pair_defaults(void)
{
    return (struct pair_config){
        .target = {.block_count = 16,
                   .block_size = 64,
                   .max_inline = 32,
                   .first_offset = 0x100000,
                   .first_handle = 0x4000,
                   .request_credits = 4,
                   .max_connections = 4,
                   .staging = 2,
                   .first_generation = 1},
        .quotas = {6, 5, 5},
        .handles = 16,
        .depth = 4,
        .workers = 2,
        .initiators = 3,
    };
}

static void *zeroed(size_t octets)
{
    size_t size = (octets + 63) / 64 * 64;
    void *memory = aligned_alloc(64, size);
    if (memory)
        memset(memory, 0, size);
    return memory;
}

/* ---- opening and closing ----------------------------------------------------------------- */

static int open_target(struct pair *pair)
{
    struct kbtp_target_config *config = &pair->config.target;
    uint32_t handles = pair->config.handles * pair->config.initiators;
    config->session_count = pair->config.initiators;
    pair->shared = zeroed(kbtp_target_octets(config, handles));
    kbtp_target_layout(config, handles, pair->shared, &pair->memory);
    pair->memory.blocks = zeroed((size_t)config->block_count * config->block_size);
    pair->memory.grants = calloc(config->session_count, sizeof *pair->memory.grants);
    for (uint32_t i = 0; i < config->session_count; i++) {
        pair->memory.grants[i] = (struct kbtp_grant){
            .known = 1, .quota = pair->config.quotas[i], .handle_count = pair->config.handles};
        memset(pair->memory.grants[i].initiator_id, (int)i + 1, KBTP_INITIATOR_ID_OCTETS);
    }
    return kbtp_target_init(&pair->target, &pair->worker_cpus[0], config, &pair->memory);
}

static int open_worker(struct pair *pair, uint32_t i)
{
    struct kbtp_worker_memory need;
    kbtp_worker_memory(&pair->target, &need);
    pair->worker_private[i] = zeroed(need.private_octets);
    pair->worker_buffers[i] = zeroed(need.buffer_octets);
    static const char *const addresses[] = {"target", "target"};
    return kbtp_worker_init(&pair->workers[i], &pair->target, &pair->worker_cpus[i], addresses[i],
                            pair->worker_private[i], pair->worker_buffers[i]);
}

static int open_initiator(struct pair *pair, uint32_t i)
{
    struct pair_initiator *it = &pair->initiators[i];
    size_t private_octets, buffer_octets;
    it->config = (struct kbtp_initiator_config){.address = "target",
                                                .depth = pair->config.depth,
                                                .max_inline = pair->config.target.max_inline + 8,
                                                .unchecked = pair->config.unchecked};
    memset(it->config.initiator_id, (int)i + 1, KBTP_INITIATOR_ID_OCTETS);
    kbtp_initiator_memory(&it->config, &private_octets, &buffer_octets);
    it->private_memory = zeroed(private_octets);
    it->buffers = zeroed(buffer_octets);
    it->data = zeroed(PAIR_BUFFER);
    int failed =
        rdma_reg(it->cpu.rdma, it->data, PAIR_BUFFER,
                 RDMA_LOCAL_WRITE | RDMA_REMOTE_READ | RDMA_REMOTE_WRITE, 0x5000, &it->region);
    if (failed)
        return failed;
    failed =
        kbtp_initiator_init(&it->initiator, &it->cpu, &it->config, it->private_memory, it->buffers);
    if (failed)
        rdma_dereg(it->cpu.rdma, &it->region);
    return failed;
}

static void release(struct pair *pair)
{
    for (uint32_t i = 0; i < PAIR_INITIATORS; i++) {
        free(pair->initiators[i].private_memory);
        free(pair->initiators[i].buffers);
        free(pair->initiators[i].data);
    }
    for (uint32_t i = 0; i < PAIR_WORKERS; i++) {
        free(pair->worker_private[i]);
        free(pair->worker_buffers[i]);
    }
    free(pair->memory.blocks);
    free(pair->memory.grants);
    free(pair->shared);
}

int pair_open(struct pair *pair, const struct pair_config *config, struct rdma *const *handles)
{
    *pair = (struct pair){.config = *config};
    for (uint32_t i = 0; i < config->workers; i++)
        pair->worker_cpus[i] = (struct kbtp_cpu){&pair->mem, handles[i]};
    for (uint32_t i = 0; i < config->initiators; i++)
        pair->initiators[i].cpu = (struct kbtp_cpu){&pair->mem, handles[config->workers + i]};
    int failed = open_target(pair);
    if (failed) {
        release(pair);
        return failed;
    }
    for (uint32_t i = 0; i < config->workers && !failed; i++)
        failed = open_worker(pair, i);
    for (uint32_t i = 0; i < config->initiators && !failed; i++)
        failed = open_initiator(pair, i);
    if (failed)
        pair_close(pair);
    return failed;
}

static bool all_down(const struct pair *pair)
{
    for (uint32_t i = 0; i < pair->config.initiators; i++)
        if (pair->initiators[i].initiator &&
            kbtp_initiator_state(pair->initiators[i].initiator) != KBTP_INITIATOR_DOWN)
            return false;
    for (uint32_t i = 0; i < pair->config.workers; i++)
        if (pair->workers[i] && !kbtp_worker_idle(pair->workers[i]))
            return false;
    return true;
}

static void keep(int *first, int result)
{
    if (*first == 0)
        *first = result;
}

int pair_close(struct pair *pair)
{
    int failed = 0;
    for (uint32_t i = 0; i < pair->config.initiators; i++)
        if (pair->initiators[i].initiator)
            kbtp_initiator_disconnect(pair->initiators[i].initiator, &pair->initiators[i].cpu);
    for (uint32_t i = 0; i < pair->config.workers; i++)
        if (pair->workers[i])
            kbtp_worker_stop(pair->workers[i], &pair->worker_cpus[i]);
    for (uint32_t n = 0; n < PATIENCE && !all_down(pair); n++)
        pair_poll(pair);
    if (!all_down(pair)) {
        release(pair);
        return -ETIMEDOUT;
    }
    for (uint32_t i = 0; i < pair->config.initiators; i++) {
        struct pair_initiator *it = &pair->initiators[i];
        if (it->initiator) {
            keep(&failed, kbtp_initiator_end(it->initiator, &it->cpu));
            keep(&failed, rdma_dereg(it->cpu.rdma, &it->region));
        }
    }
    for (uint32_t i = 0; i < pair->config.workers; i++)
        if (pair->workers[i])
            keep(&failed, kbtp_worker_end(pair->workers[i], &pair->worker_cpus[i]));
    keep(&failed, kbtp_target_end(&pair->target, &pair->worker_cpus[0]));
    release(pair);
    return failed;
}

/* ---- moving ------------------------------------------------------------------------------ */

static uint32_t poll_initiator(struct pair *pair, uint32_t i, struct kbtp_outcome *outcome)
{
    struct pair_initiator *it = &pair->initiators[i];
    int told = kbtp_initiator_poll(it->initiator, &it->cpu, outcome, 1);
    return told > 0 ? (uint32_t)told : 0;
}

static void poll_workers(struct pair *pair)
{
    for (uint32_t i = 0; i < pair->config.workers; i++)
        if (pair->workers[i])
            kbtp_worker_poll(pair->workers[i], &pair->worker_cpus[i], 4);
}

void pair_poll(struct pair *pair)
{
    struct kbtp_outcome outcome;
    poll_workers(pair);
    for (uint32_t i = 0; i < pair->config.initiators; i++)
        if (pair->initiators[i].initiator)
            poll_initiator(pair, i, &outcome);
}

void pair_settle(struct pair *pair)
{
    for (uint32_t n = 0; n < 200; n++)
        pair_poll(pair);
}

int pair_connect(struct pair *pair, uint32_t i)
{
    struct pair_initiator *it = &pair->initiators[i];
    int failed = kbtp_initiator_connect(it->initiator, &it->cpu);
    if (failed)
        return failed;
    for (uint32_t n = 0; n < PATIENCE; n++) {
        if (kbtp_initiator_state(it->initiator) == KBTP_INITIATOR_READY)
            return 0;
        if (kbtp_initiator_state(it->initiator) == KBTP_INITIATOR_DOWN)
            return kbtp_initiator_why(it->initiator);
        pair_poll(pair);
    }
    return -ETIMEDOUT;
}

struct kbtp_outcome pair_do(struct pair *pair, uint32_t i, const struct kbtp_operation *operation)
{
    struct pair_initiator *it = &pair->initiators[i];
    struct kbtp_outcome outcome = {0};
    int failed = kbtp_initiator_submit(it->initiator, &it->cpu, operation, 77);
    if (failed)
        return (struct kbtp_outcome){.error = failed};
    for (uint32_t n = 0; n < PATIENCE; n++) {
        if (poll_initiator(pair, i, &outcome) == 1)
            return outcome;
        poll_workers(pair);
    }
    return (struct kbtp_outcome){.error = -ETIMEDOUT};
}

struct kbtp_operation pair_operation(const struct pair *pair, uint32_t i, uint8_t opcode,
                                     uint32_t n, uint32_t length, uint16_t flags)
{
    const struct pair_initiator *it = &pair->initiators[i];
    return (struct kbtp_operation){.handle = pair->config.target.first_handle +
                                             i * pair->config.handles + n,
                                   .tagged_offset = it->region.base_to,
                                   .data = it->data,
                                   .stag = it->region.stag,
                                   .length = length,
                                   .flags = flags,
                                   .opcode = opcode};
}
