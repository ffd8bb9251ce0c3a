/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A whole policy, from its YAML to what is answered (draft: Session Establishment): each grant that
 * cli/policy.c reads is what HELLO tells and what every request is judged by, with sessions that
 * are retained counted in. tests/cli/policy.sh tests what a file may say.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/policy.h"
#include "tests/ref/fixture.h"

#define BLOCKS 11u  /* F: the quotas below, that of the default for each of its sessions */
#define HANDLES 21u /* the same of the ranges */
#define BLOCK 64u   /* octets */

static const char text[] =
    "initiators:\n"
    "  - {id: a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1, quota: 4, handles: 8, features: [DIRECT_LOAD],\n"
    "     trust_domain: 1, class: engines, readable_by: [engines, gateways]}\n"
    "  - {id: b2b2b2b2b2b2b2b2b2b2b2b2b2b2b2b2, quota: 3, handles: 4, features: [DIRECT_ALLOC],\n"
    "     trust_domain: 1, class: engines, readable_by: [engines]}\n"
    "  - {id: c3c3c3c3c3c3c3c3c3c3c3c3c3c3c3c3, quota: 0, handles: 1, trust_domain: 2,\n"
    "     class: gateways}\n"
    "default: {sessions: 2, quota: 2, handles: 4, trust_domain: 3, readable_by: [engines]}\n";

/* Initiators of the pair, in the order of their sessions; nobody has a grant for the last one. */
enum { ENGINE, OTHER_ENGINE, GATEWAY, GUEST, OTHER_GUEST, ONE_TOO_MANY, INITIATORS };
#define SESSIONS ONE_TOO_MANY

static const struct {
    uint32_t quota, first, handles;
    uint16_t features;
} granted[SESSIONS] = {
    [ENGINE] = {4, 0, 8, KBTP_FEATURE_DIRECT_LOAD},
    [OTHER_ENGINE] = {3, 8, 4, KBTP_FEATURE_DIRECT_ALLOC},
    [GATEWAY] = {0, 12, 1, 0},
    [GUEST] = {2, 13, 4, 0},
    [OTHER_GUEST] = {2, 17, 4, 0},
};

/* Whose handles each may LOAD. */
static const bool may_read[SESSIONS][SESSIONS] = {
    [ENGINE] = {1, 1, 1, 1, 1}, [OTHER_ENGINE] = {1, 1, 1, 1, 1}, [GATEWAY] = {1, 0, 1, 0, 0},
    [GUEST] = {0, 0, 1, 1, 0},  [OTHER_GUEST] = {0, 0, 1, 0, 1},
};

static struct policy policy;

/* Reads the text for so many blocks. */
static int read_text(uint32_t blocks, char *error, size_t size)
{
    char path[] = "/tmp/kbtp-policy-XXXXXX";
    int file = mkstemp(path);
    CU_ASSERT_FATAL(file >= 0);
    CU_ASSERT_EQUAL(write(file, text, strlen(text)), (ssize_t)strlen(text));
    close(file);
    int result = policy_read(path, blocks, &policy, error, size);
    unlink(path);
    return result;
}

static struct pair_config with_policy(uint32_t blocks)
{
    struct pair_config config = pair_defaults();
    config.grants = policy.grants;
    config.grants_count = policy.grants_count;
    config.features = policy.features; /* offered, and asked for by everybody */
    config.initiators = INITIATORS;
    config.unchecked = true;
    config.target.block_count = blocks;
    return config;
}

static void open_policy(void)
{
    char error[200] = "";
    int failed = read_text(BLOCKS, error, sizeof error);
    if (failed)
        puts(error);
    CU_ASSERT_EQUAL_FATAL(failed, 0);
    CU_ASSERT_EQUAL_FATAL(policy.grants_count, SESSIONS);
    struct pair_config config = with_policy(BLOCKS);
    open_with(&config);
}

static void open_sessions(void)
{
    open_policy();
    for (uint32_t i = 0; i < SESSIONS; i++)
        CU_ASSERT_EQUAL_FATAL(pair_connect(&pair, i), 0);
}

static void close_policy(void)
{
    close_pair();
    policy_end(&policy);
}

/* Initiator i, of handle n of the range of session `owner`. */
static struct kbtp_outcome ask(uint32_t i, uint8_t opcode, uint32_t owner, uint32_t n)
{
    struct kbtp_operation operation = pair_operation(&pair, i, opcode, 0, BLOCK, 0);
    if (opcode == KBTP_OP_LOAD)
        operation.flags = KBTP_FLAG_ALLOW_UNSEALED;
    operation.handle = pair.config.target.first_handle + granted[owner].first + n;
    return pair_do(&pair, i, &operation);
}

/* Octets that say whose they are. */
static uint8_t mark_of(uint32_t i)
{
    return (uint8_t)(0xa0 + i);
}

/* Its whole quota on handles from the first on, and not one more; blocks that were not `seen`. */
static void store_quota(uint32_t i, bool seen[BLOCKS])
{
    uint32_t n = 0;
    fill(i, mark_of(i));
    for (; n < granted[i].quota; n++) {
        struct kbtp_outcome outcome = ask(i, KBTP_OP_ALLOC_STORE, i, n);
        expect_status(outcome, KBTP_STATUS_OK);
        uint32_t block = kbtp_pool_block(&pair.target.pool, outcome.block_offset);
        CU_ASSERT_FATAL(block < BLOCKS);
        CU_ASSERT_FALSE(seen[block]);
        seen[block] = true;
    }
    expect_status(ask(i, KBTP_OP_ALLOC_STORE, i, n), KBTP_STATUS_NO_SPACE);
    CU_ASSERT_EQUAL(usage_of(i), granted[i].quota);
}

static void lose(uint32_t i)
{
    lose_connection(i);
    CU_ASSERT_EQUAL(state_of(i), KBTP_SESSION_RETAINED);
}

/* ---- at HELLO ---------------------------------------------------------------------------- */

/* R-SESS-15, -16, -18, -28, R-QUOTA-01: everybody is told what its grant says, and has no more
 * features than that; who has none is refused. */
static void what_hello_tells(void)
{
    open_sessions();
    for (uint32_t i = 0; i < SESSIONS; i++) {
        const struct kbtp_hello_ack *ack = said(i);
        CU_ASSERT_EQUAL(ack->allocation_quota, granted[i].quota);
        CU_ASSERT_EQUAL(ack->handle_base, pair.config.target.first_handle + granted[i].first);
        CU_ASSERT_EQUAL(ack->handle_count, granted[i].handles);
        CU_ASSERT_EQUAL(ack->features, granted[i].features);
        CU_ASSERT_EQUAL(ack->pool.stag != 0, i == ENGINE);
        CU_ASSERT_EQUAL(ack->partition.stag != 0, i == OTHER_ENGINE);
    }
    CU_ASSERT_EQUAL(pair_connect(&pair, ONE_TOO_MANY), KBTP_STATUS_NO_SPACE);
    close_policy();
}

/* ---- at every request -------------------------------------------------------------------- */

/* R-QUOTA-01, -04: each has its quota whatever the others do, all blocks are in use then, and the
 * next request is refused. */
static void quotas(void)
{
    bool seen[BLOCKS] = {false};
    open_sessions();
    for (uint32_t i = 0; i < SESSIONS; i++)
        store_quota(i, seen);
    for (uint32_t block = 0; block < BLOCKS; block++)
        CU_ASSERT(seen[block]);
    close_policy();
}

/* Wrong peer: R-SESS-28. Both ends of its own range, and of nobody else's. */
static void ranges(void)
{
    open_sessions();
    for (uint32_t i = 0; i < SESSIONS; i++)
        for (uint32_t owner = 0; owner < SESSIONS; owner++)
            for (uint32_t end = 0; end < 2; end++) {
                uint32_t n = end * (granted[owner].handles - 1);
                enum kbtp_status own = granted[i].quota ? KBTP_STATUS_OK : KBTP_STATUS_NO_SPACE;
                bool bound = i == owner && own == KBTP_STATUS_OK;
                expect_status(ask(i, KBTP_OP_ALLOC_STORE, owner, n),
                              i == owner ? own : KBTP_STATUS_INVALID_HANDLE);
                expect_status(ask(i, KBTP_OP_FREE, owner, n), bound ? KBTP_STATUS_OK
                                                              : i == owner
                                                                  ? KBTP_STATUS_NOT_VALID
                                                                  : KBTP_STATUS_INVALID_HANDLE);
            }
    close_policy();
}

/* R-SESS-29, I-45: who may read has the octets, who may not has INVALID_HANDLE. */
static void readers(void)
{
    bool seen[BLOCKS] = {false};
    open_sessions();
    for (uint32_t owner = 0; owner < SESSIONS; owner++)
        store_quota(owner, seen);
    for (uint32_t i = 0; i < SESSIONS; i++)
        for (uint32_t owner = 0; owner < SESSIONS; owner++) {
            fill(i, 0);
            struct kbtp_outcome outcome = ask(i, KBTP_OP_LOAD, owner, 0);
            bool loads = may_read[i][owner] && granted[owner].quota != 0;
            if (!may_read[i][owner])
                expect_refused(outcome, KBTP_STATUS_INVALID_HANDLE, 0);
            else
                expect_status(outcome, loads ? KBTP_STATUS_OK : KBTP_STATUS_NOT_VALID);
            CU_ASSERT_EQUAL(holds(i, mark_of(owner), BLOCK), loads);
        }
    close_policy();
}

/* R-DL-01, I-46: what was not granted is not there to be used. */
static void features(void)
{
    bool seen[BLOCKS] = {false};
    open_sessions();
    store_quota(OTHER_ENGINE, seen);
    expect_status(ask(OTHER_ENGINE, KBTP_OP_FREE, OTHER_ENGINE, 0), KBTP_STATUS_OK);
    for (uint32_t i = 0; i < SESSIONS; i++) {
        struct pair_initiator *it = &pair.initiators[i];
        fill(i, 0);
        struct kbtp_direct_load load = {.handle = said(OTHER_ENGINE)->handle_base + 1,
                                        .into = it->data,
                                        .lkey = it->region.lkey,
                                        .length = BLOCK};
        int sent = kbtp_initiator_direct_load(it->initiator, &it->cpu, &load, 0);
        CU_ASSERT_EQUAL(sent, i == ENGINE ? 0 : -ENOTSUP);
        if (sent == 0)
            expect_status(pair_wait(&pair, i), KBTP_STATUS_NOT_SEALED);
        struct kbtp_direct_store store = {.handle = said(i)->handle_base,
                                          .data = it->data,
                                          .lkey = it->region.lkey,
                                          .length = BLOCK};
        sent = kbtp_initiator_direct_store(it->initiator, &it->cpu, &store, 0);
        CU_ASSERT_EQUAL(sent, i == OTHER_ENGINE ? 0 : -ENOTSUP);
        if (sent == 0)
            expect_status(pair_wait(&pair, i), KBTP_STATUS_OK);
    }
    close_policy();
}

/* R-SESS-29: there are several trust domains, so what is freed is cleared. */
static void trust_domains(void)
{
    bool seen[BLOCKS] = {false};
    open_sessions();
    store_quota(GUEST, seen);
    for (uint32_t n = 0; n < granted[GUEST].quota; n++)
        expect_status(ask(GUEST, KBTP_OP_FREE, GUEST, n), KBTP_STATUS_OK);
    for (uint32_t at = 0; at < BLOCKS * BLOCK; at++)
        CU_ASSERT_EQUAL(pair.memory.blocks[at], 0);
    close_policy();
}

/* ---- sessions that are retained ---------------------------------------------------------- */

/* R-QUOTA-02, R-SESS-15, I-32: a retained session has its blocks, its quota and its place among
 * those of the default, until it is released. */
static void retained_sessions_count(void)
{
    bool seen[BLOCKS] = {false};
    open_sessions();
    store_quota(ENGINE, seen);
    store_quota(GUEST, seen);
    lose(ENGINE);
    lose(GUEST);
    store_quota(OTHER_ENGINE, seen);
    store_quota(OTHER_GUEST, seen);
    CU_ASSERT_EQUAL(pair_connect(&pair, ONE_TOO_MANY), KBTP_STATUS_NO_SPACE);
    CU_ASSERT_EQUAL_FATAL(pair_connect(&pair, ENGINE), 0);
    CU_ASSERT_EQUAL_FATAL(pair_connect(&pair, GUEST), 0);
    for (uint32_t i = ENGINE; i <= GUEST; i += GUEST - ENGINE) {
        CU_ASSERT_EQUAL(usage_of(i), granted[i].quota);
        expect_status(ask(i, KBTP_OP_ALLOC_STORE, i, granted[i].quota), KBTP_STATUS_NO_SPACE);
        expect_status(ask(i, KBTP_OP_FREE, i, 0), KBTP_STATUS_OK);
        expect_status(ask(i, KBTP_OP_ALLOC_STORE, i, 0), KBTP_STATUS_OK);
    }
    /* Released, it is the next one's: range, quota and all. */
    CU_ASSERT_EQUAL(pair_goodbye(&pair, GUEST, true), 0);
    pair_settle(&pair);
    CU_ASSERT_EQUAL_FATAL(pair_connect(&pair, ONE_TOO_MANY), 0);
    CU_ASSERT_EQUAL(said(ONE_TOO_MANY)->handle_base,
                    pair.config.target.first_handle + granted[GUEST].first);
    for (uint32_t n = 0; n <= granted[GUEST].quota; n++)
        expect_status(ask(ONE_TOO_MANY, KBTP_OP_ALLOC_STORE, GUEST, n),
                      n < granted[GUEST].quota ? KBTP_STATUS_OK : KBTP_STATUS_NO_SPACE);
    close_policy();
}

/* ---- at the start ------------------------------------------------------------------------ */

/* A pair that may not begin. */
static int open_with_blocks(uint32_t blocks)
{
    struct pair_config config = with_policy(blocks);
    struct rdma *handles[PAIR_WORKERS + PAIR_INITIATORS];
    CU_ASSERT_FATAL(provider->open());
    for (uint32_t i = 0; i < config.workers + config.initiators; i++)
        handles[i] = another_handle();
    int failed = pair_open(&pair, &config, handles);
    if (failed)
        provider->close();
    return failed;
}

/* R-QUOTA-02, R-OPER-02: with every session of the default, the quotas are at most F; else neither
 * the policy is read for so many blocks, nor does a target begin with its grants. */
static void quotas_are_at_most_the_pool(void)
{
    char error[200] = "";
    struct mem m = {0};
    struct kbtp_sessions all;
    struct kbtp_session sessions[SESSIONS];
    mem64 lock;
    CU_ASSERT_EQUAL(read_text(BLOCKS - 1, error, sizeof error), -1);
    CU_ASSERT_PTR_NOT_NULL(strstr(error, "default.quota: the quotas up to here are 11 blocks"));
    CU_ASSERT_EQUAL_FATAL(read_text(0, error, sizeof error), 0);
    CU_ASSERT_EQUAL(policy.quotas, BLOCKS);
    CU_ASSERT_EQUAL(policy.handles, HANDLES);
    for (uint32_t blocks = BLOCKS - 1; blocks <= BLOCKS; blocks++)
        CU_ASSERT_EQUAL(
            kbtp_sessions_init(&m, &all, sessions, policy.grants, &lock, SESSIONS, blocks),
            blocks < BLOCKS ? -EINVAL : (int)HANDLES);
    for (uint32_t i = 0; i < SESSIONS; i++)
        CU_ASSERT_EQUAL(policy.grants[i].first_entry, granted[i].first);
    CU_ASSERT_EQUAL(open_with_blocks(BLOCKS - 1), -EINVAL);
    CU_ASSERT_EQUAL_FATAL(open_with_blocks(BLOCKS), 0);
    close_policy();
}

int main(void)
{
    static const struct test tests[] = {
        {"what HELLO tells", what_hello_tells},
        {"quotas", quotas},
        {"ranges", ranges},
        {"readers", readers},
        {"features", features},
        {"trust domains", trust_domains},
        {"retained sessions count", retained_sessions_count},
        {"quotas are at most the pool", quotas_are_at_most_the_pool},
    };
    return run_over_capable("ref/policy", tests, sizeof tests / sizeof *tests,
                            RDMA_CAP_FETCH_ADD | RDMA_CAP_ATOMIC_CPU | RDMA_CAP_WINDOW |
                                RDMA_CAP_BASE_TO);
}
