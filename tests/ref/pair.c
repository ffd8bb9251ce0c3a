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

static void grant_each(const struct pair_config *config, struct kbtp_grant *grants)
{
    for (uint32_t i = 0; i < config->initiators; i++) {
        bool unknown = config->unknown || (config->last_unknown && i + 1 == config->initiators);
        grants[i] = (struct kbtp_grant){.known = !unknown,
                                        .features = config->features,
                                        .quota = config->quotas[i],
                                        .handle_count = config->handles,
                                        .readable_by = config->readable_by[i],
                                        .reader_class = config->reader_class[i]};
        grants[i].trust_domain = config->domains ? (uint16_t)i : 0;
        memset(grants[i].initiator_id, (int)i + 1, KBTP_INITIATOR_ID_OCTETS);
    }
}

static int open_target(struct pair *pair)
{
    const struct pair_config *from = &pair->config;
    struct kbtp_target_config *config = &pair->config.target;
    config->session_count = from->grants ? from->grants_count : from->initiators;
    config->features = from->features;
    struct kbtp_grant *grants = calloc(config->session_count, sizeof *grants);
    if (from->grants)
        memcpy(grants, from->grants, config->session_count * sizeof *grants);
    else
        grant_each(from, grants);
    pair->shared = zeroed(kbtp_target_octets(config, grants));
    kbtp_target_layout(config, grants, pair->shared, &pair->memory);
    pair->memory.blocks = zeroed((size_t)config->block_count * config->block_size);
    return kbtp_target_init(&pair->target, &pair->worker_cpus[0], config, &pair->memory);
}

static int open_worker(struct pair *pair, uint32_t i)
{
    struct kbtp_worker_memory need;
    kbtp_worker_memory(&pair->target, &need);
    pair->worker_private[i] = zeroed(need.private_octets);
    pair->worker_buffers[i] = zeroed(need.buffer_octets);
    return kbtp_worker_init(&pair->workers[i], &pair->target, &pair->worker_cpus[i], "target",
                            pair->worker_private[i], pair->worker_buffers[i]);
}

static int open_initiator(struct pair *pair, uint32_t i)
{
    struct pair_initiator *it = &pair->initiators[i];
    size_t private_octets, buffer_octets;
    it->config = (struct kbtp_initiator_config){.address = "target",
                                                .depth = pair->config.depth,
                                                .max_inline = pair->config.target.max_inline + 8,
                                                .features = pair->config.features,
                                                .unchecked = pair->config.unchecked};
    memset(it->config.initiator_id, (int)i + 1, KBTP_INITIATOR_ID_OCTETS);
    if (pair->config.grants && i < pair->config.grants_count && pair->config.grants[i].known)
        memcpy(it->config.initiator_id, pair->config.grants[i].initiator_id,
               KBTP_INITIATOR_ID_OCTETS);
    if (it->config.features & KBTP_FEATURE_RECORD_COMPLETION)
        it->config.records = it->records = zeroed(it->config.depth * (size_t)KBTP_RECORD_OCTETS);
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
        free(pair->initiators[i].records);
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
    if (!all_down(pair))
        return -ETIMEDOUT; /* the device may still use the memory: it stays */
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

static void poll_initiator(struct pair *pair, uint32_t i)
{
    struct pair_initiator *it = &pair->initiators[i];
    if (!it->initiator || it->outcomes_count == PAIR_OUTCOMES)
        return;
    int told = kbtp_initiator_poll(it->initiator, &it->cpu, &it->outcomes[it->outcomes_count],
                                   PAIR_OUTCOMES - it->outcomes_count);
    if (told < 0)
        keep(&pair->error, told);
    else
        it->outcomes_count += (uint32_t)told;
}

void pair_poll_worker(struct pair *pair, uint32_t i)
{
    if (!pair->workers[i])
        return;
    int taken = kbtp_worker_poll(pair->workers[i], &pair->worker_cpus[i], 4);
    if (taken < 0)
        keep(&pair->error, taken);
}

void pair_poll(struct pair *pair)
{
    for (uint32_t i = 0; i < pair->config.workers; i++)
        pair_poll_worker(pair, i);
    for (uint32_t i = 0; i < pair->config.initiators; i++)
        poll_initiator(pair, i);
}

void pair_settle(struct pair *pair)
{
    for (uint32_t n = 0; n < 100; n++)
        pair_poll(pair);
}

int pair_begin(struct pair *pair, uint32_t i)
{
    struct pair_initiator *it = &pair->initiators[i];
    return kbtp_initiator_connect(it->initiator, &it->cpu);
}

int pair_connect(struct pair *pair, uint32_t i)
{
    struct pair_initiator *it = &pair->initiators[i];
    int failed = pair_begin(pair, i);
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

bool pair_is_down(const struct pair *pair, uint32_t i)
{
    return kbtp_initiator_state(pair->initiators[i].initiator) == KBTP_INITIATOR_DOWN;
}

static int wait_until_down(struct pair *pair, uint32_t i)
{
    for (uint32_t n = 0; n < PATIENCE && !pair_is_down(pair, i); n++)
        pair_poll(pair);
    return pair_is_down(pair, i) ? 0 : -ETIMEDOUT;
}

int pair_disconnect(struct pair *pair, uint32_t i)
{
    struct pair_initiator *it = &pair->initiators[i];
    kbtp_initiator_disconnect(it->initiator, &it->cpu);
    return wait_until_down(pair, i);
}

int pair_goodbye(struct pair *pair, uint32_t i, bool release)
{
    struct pair_initiator *it = &pair->initiators[i];
    int failed = kbtp_initiator_goodbye(it->initiator, &it->cpu, release);
    if (!failed)
        failed = wait_until_down(pair, i);
    return failed ? failed : kbtp_initiator_why(it->initiator);
}

int pair_submit(struct pair *pair, uint32_t i, const struct kbtp_operation *operation,
                uint64_t cookie)
{
    struct pair_initiator *it = &pair->initiators[i];
    return kbtp_initiator_submit(it->initiator, &it->cpu, operation, cookie);
}

bool pair_take(struct pair *pair, uint32_t i, struct kbtp_outcome *outcome)
{
    struct pair_initiator *it = &pair->initiators[i];
    if (it->outcomes_count == 0)
        return false;
    *outcome = it->outcomes[0];
    it->outcomes_count--;
    memmove(it->outcomes, it->outcomes + 1, it->outcomes_count * sizeof *outcome);
    return true;
}

struct kbtp_outcome pair_wait(struct pair *pair, uint32_t i)
{
    struct kbtp_outcome outcome = {.error = -ETIMEDOUT};
    for (uint32_t n = 0; n < PATIENCE && !pair_take(pair, i, &outcome); n++)
        pair_poll(pair);
    return outcome;
}

struct kbtp_outcome pair_do(struct pair *pair, uint32_t i, const struct kbtp_operation *operation)
{
    int failed = pair_submit(pair, i, operation, 77);
    return failed ? (struct kbtp_outcome){.error = failed} : pair_wait(pair, i);
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
