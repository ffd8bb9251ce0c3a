/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/ref/fixture.h"

#include <stdio.h>
#include <string.h>

struct pair pair;
const struct provider *provider;

/* ---- opening and closing ----------------------------------------------------------------- */

void open_with(const struct pair_config *config)
{
    struct rdma *handles[PAIR_WORKERS + PAIR_INITIATORS];
    CU_ASSERT_FATAL(provider->open());
    for (uint32_t i = 0; i < config->workers + config->initiators; i++)
        handles[i] = another_handle();
    CU_ASSERT_EQUAL_FATAL(pair_open(&pair, config, handles), 0);
}

void open_connected(const struct pair_config *config)
{
    open_with(config);
    for (uint32_t i = 0; i < config->initiators; i++)
        CU_ASSERT_EQUAL_FATAL(pair_connect(&pair, i), 0);
}

void open_pair(void)
{
    struct pair_config config = pair_defaults();
    open_connected(&config);
}

void close_pair(void)
{
    CU_ASSERT_EQUAL(pair_close(&pair), 0);
    CU_ASSERT_EQUAL(pair.error, 0);
    CU_ASSERT_EQUAL(provider->left(), 0);
    provider->close();
}

void lose_connection(uint32_t i)
{
    pair_settle(&pair);
    provider->cut(pair.initiators[i].cpu.rdma, 0);
    pair_settle(&pair);
    CU_ASSERT_FATAL(pair_is_down(&pair, i));
}

const struct kbtp_hello_ack *said(uint32_t i)
{
    return kbtp_initiator_target(pair.initiators[i].initiator);
}

struct rdma *another_handle(void)
{
    struct rdma *handle = provider->handle();
    CU_ASSERT_PTR_NOT_NULL_FATAL(handle);
    return handle;
}

/* ---- operations -------------------------------------------------------------------------- */

struct kbtp_outcome run(uint32_t i, uint8_t opcode, uint32_t n, uint32_t length, uint16_t flags)
{
    struct kbtp_operation operation = pair_operation(&pair, i, opcode, n, length, flags);
    return pair_do(&pair, i, &operation);
}

void submit(uint32_t i, uint8_t opcode, uint32_t n, uint32_t length, uint16_t flags,
            uint64_t cookie)
{
    struct kbtp_operation operation = pair_operation(&pair, i, opcode, n, length, flags);
    CU_ASSERT_EQUAL_FATAL(pair_submit(&pair, i, &operation, cookie), 0);
}

void expect_status(struct kbtp_outcome outcome, enum kbtp_status status)
{
    CU_ASSERT_EQUAL(outcome.error, 0);
    CU_ASSERT_EQUAL(outcome.status, status);
}

void expect_refused(struct kbtp_outcome outcome, enum kbtp_status status, uint16_t generation)
{
    expect_status(outcome, status);
    CU_ASSERT_EQUAL(outcome.generation, generation);
    CU_ASSERT_EQUAL(outcome.data_length, 0);
    CU_ASSERT_EQUAL(outcome.block_offset, 0);
}

void hold(uint32_t operations)
{
    CU_ASSERT_PTR_NOT_NULL_FATAL(provider->loop);
    pair_settle(&pair);
    for (uint32_t i = 0; i < pair.config.workers; i++)
        loop_hold(pair.worker_cpus[i].rdma, operations);
}

void let_go(void)
{
    for (uint32_t i = 0; i < pair.config.workers; i++)
        loop_hold(pair.worker_cpus[i].rdma, 0);
    pair_settle(&pair);
}

void fill(uint32_t i, uint8_t octet)
{
    memset(pair.initiators[i].data, octet, PAIR_BUFFER);
}

bool holds(uint32_t i, uint8_t octet, uint32_t length)
{
    for (uint32_t at = 0; at < length; at++)
        if (pair.initiators[i].data[at] != octet)
            return false;
    return pair.initiators[i].data[length] != octet;
}

/* ---- looking ----------------------------------------------------------------------------- */

enum kbtp_session_state state_of(uint32_t session)
{
    return kbtp_session_state_in(mem_load64(&pair.mem, &pair.memory.sessions[session].state));
}

uint32_t usage_of(uint32_t session)
{
    uint32_t usage;
    for (uint32_t i = 0; i < pair.config.workers; i++)
        if (kbtp_worker_usage(pair.workers[i], session, &usage))
            return usage;
    return UINT32_MAX;
}

struct kbtp_worker_look look_at_workers(void)
{
    struct kbtp_worker_look sum = {0}, look;
    for (uint32_t i = 0; i < pair.config.workers; i++) {
        kbtp_worker_look(pair.workers[i], &look);
        sum.deferred += look.deferred;
        sum.connections += look.connections;
        sum.requests += look.requests;
        sum.tickets += look.tickets;
        sum.reads += look.reads;
        sum.locked += look.locked;
        sum.hellos += look.hellos;
        sum.loads += look.loads;
        sum.probes += look.probes;
    }
    return sum;
}

/* ---- all blocks -------------------------------------------------------------------------- */

static uint32_t block_of(struct kbtp_outcome outcome)
{
    return kbtp_pool_block(&pair.target.pool, outcome.block_offset);
}

/* Stores until the quota is used up; `seen` are blocks. */
static void allocate_quota(uint32_t i, bool *seen)
{
    for (uint32_t n = 0; n < pair.config.quotas[i]; n++) {
        fill(i, (uint8_t)(16 * (i + 1) + n));
        struct kbtp_outcome outcome = run(i, KBTP_OP_ALLOC_STORE, n, 64, KBTP_FLAG_SEAL);
        expect_status(outcome, KBTP_STATUS_OK);
        uint32_t block = block_of(outcome);
        CU_ASSERT_FATAL(block < pair.config.target.block_count);
        CU_ASSERT_FALSE(seen[block]);
        seen[block] = true;
    }
    expect_status(run(i, KBTP_OP_ALLOC_STORE, pair.config.quotas[i], 64, 0), KBTP_STATUS_NO_SPACE);
    CU_ASSERT_EQUAL(usage_of(i), pair.config.quotas[i]);
}

static void load_and_free(uint32_t i)
{
    for (uint32_t n = 0; n < pair.config.quotas[i]; n++) {
        fill(i, 0);
        expect_status(run(i, KBTP_OP_LOAD, n, 64, 0), KBTP_STATUS_OK);
        CU_ASSERT(holds(i, (uint8_t)(16 * (i + 1) + n), 64));
        expect_status(run(i, KBTP_OP_FREE, n, 0, 0), KBTP_STATUS_OK);
    }
    CU_ASSERT_EQUAL(usage_of(i), 0);
}

void expect_all_blocks(void)
{
    bool seen[64] = {false};
    CU_ASSERT_FATAL(pair.config.target.block_count <= 64);
    for (uint32_t i = 0; i < pair.config.initiators; i++)
        allocate_quota(i, seen);
    for (uint32_t block = 0; block < pair.config.target.block_count; block++)
        CU_ASSERT(seen[block]);
    for (uint32_t i = 0; i < pair.config.initiators; i++)
        load_and_free(i);
}

/* ---- running ----------------------------------------------------------------------------- */

static uint32_t missing(uint32_t bits)
{
    struct rdma_caps caps = {0};
    if (!provider->open())
        return 0; /* which the test will find */
    struct rdma *handle = provider->handle();
    if (handle)
        rdma_caps(handle, &caps);
    provider->close();
    return bits & ~caps.bits;
}

bool can(uint32_t bits)
{
    uint32_t without = missing(bits);
    if (without)
        printf("not over %s, which lacks capabilities 0x%x ... ", provider->name, without);
    return without == 0;
}

int run_over_capable(const char *suite, const struct test *tests, size_t count, uint32_t bits)
{
    int failed = 0;
    for (uint32_t i = 0; i < PROVIDERS; i++) {
        char name[64];
        provider = &providers[i];
        snprintf(name, sizeof name, "%s over %s", suite, provider->name);
        if (missing(bits) == 0)
            failed |= run_tests(name, tests, count);
    }
    return failed;
}

int run_over_providers(const char *suite, const struct test *tests, size_t count,
                       uint32_t provider_count)
{
    int failed = 0;
    for (uint32_t i = 0; i < provider_count; i++) {
        char name[64];
        provider = &providers[i];
        snprintf(name, sizeof name, "%s over %s", suite, provider->name);
        failed |= run_tests(name, tests, count);
    }
    return failed;
}
