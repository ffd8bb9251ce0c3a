/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A target whose workers are threads, initiators that are threads, and a device that executes in
 * threads of its own: whatever they ask of each other, each outcome is the one that follows from
 * what this initiator has done before, and every octet that is loaded is one that was stored under
 * the Generation that the completion names. R-GEN-06, R-LOAD-04, -07, R-STORE-08, R-ALLOC-06,
 * R-FREE-02, R-SESS-15; under ThreadSanitizer also R-RING-25, R-ALLOC-08 and R-FREE-04: to the
 * device, octets of blocks are plain memory.
 *
 * No lock is shared by two workers (tests/net/threaded.h), so what orders one's use of a block and
 * another's is ring, table and pins alone. What threads of this test tell each other is relaxed.
 */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "ref/counters.h"
#include "tests/net/threaded.h"
#include "tests/ref/fixture.h"

#define TIME_LIMIT_S 120
#define HANDLES 6u
#define SESSIONS 600u /* of an initiator, in each run; fewer in builds that are slow */
#define SLOW_SESSIONS 100u
#define DEPTH 4u
#define BLOCK 256u
#define LEAST 8u /* octets: their head */
#define NO_PLACE UINT32_MAX
#define UNTOUCHED 0xee

struct setting {
    uint32_t workers, initiators;
    uint32_t quota; /* of each; F is the sum */
    bool domains, retention;
};

/* What an initiator knows of one of its handles. */
struct bound {
    uint32_t version; /* of its data: how often anything was stored */
    uint32_t length;
    uint16_t generation;
    bool valid, sealed;
    bool busy; /* a request is under way */
};

/* A request under way, and what follows from it if it is done. */
struct asked {
    struct bound then;
    uint32_t n; /* of the handle; of all initiators */
    uint16_t status;
    uint16_t generation; /* expected, or 0 */
    uint8_t opcode;
    bool used;
};

struct client {
    struct pair_initiator *it;
    const struct setting *setting;
    uint64_t random;
    uint64_t loaded, foreign, in_doubt, lost; /* what was reached */
    uint32_t number;
    uint32_t next; /* place to be looked at first */
    struct bound own[HANDLES];
    struct asked asked[DEPTH];
};

static struct threaded device;
static _Atomic uint32_t stopping, late, wrong;
static time_t deadline_s;
static uint32_t sessions;

/* ---- the provider ------------------------------------------------------------------------- */

static bool open_threaded(void)
{
    return threaded_init(&device) == 0;
}

static void close_threaded(void)
{
    threaded_end(&device);
}

static struct rdma *handle_of_threaded(void)
{
    return threaded_handle(&device);
}

static uint32_t left_in_threaded(void)
{
    return loop_regions(&device.loop) + loop_connections(&device.loop) + loop_cqs(&device.loop);
}

static const struct provider threaded_provider = {"threads",          open_threaded, close_threaded,
                                                  handle_of_threaded, NULL,          NULL,
                                                  left_in_threaded,   NULL,          false};

/* ---- what goes wrong ----------------------------------------------------------------------- */

/* CUnit's assertions are for one thread. */
static void expect(bool holds, const struct client *client, const char *what)
{
    if (holds)
        return;
    if (atomic_fetch_add_explicit(&wrong, 1, memory_order_relaxed) < 10)
        fprintf(stderr, "initiator %u: %s\n", client->number, what);
}

static bool goes_on(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    if (now.tv_sec >= deadline_s)
        atomic_store_explicit(&late, 1, memory_order_relaxed);
    return atomic_load_explicit(&late, memory_order_relaxed) == 0 &&
           atomic_load_explicit(&wrong, memory_order_relaxed) == 0;
}

/* xorshift64, below `limit`. */
static uint32_t pick(uint64_t *random, uint32_t limit)
{
    *random ^= *random << 13;
    *random ^= *random >> 7;
    *random ^= *random << 17;
    return (uint32_t)(*random >> 32) % limit;
}

/* ---- data ---------------------------------------------------------------------------------- */

/* Of a handle under a Generation: in the head whose it is, behind it octets that follow. */
static uint8_t octet_of(uint32_t n, uint16_t generation, uint32_t version, uint32_t at)
{
    uint32_t head[2] = {n << 16 | generation, version};
    if (at < LEAST)
        return (uint8_t)(head[at / 4] >> at % 4 * 8);
    uint32_t mixed = (head[0] * 2654435761u) ^ (head[1] * 40503u) ^ (at * 2246822519u);
    return (uint8_t)(mixed >> 24);
}

static void fill_data(uint8_t *to, uint32_t n, const struct bound *bound)
{
    for (uint32_t at = 0; at < bound->length; at++)
        to[at] = octet_of(n, bound->generation, bound->version, at);
}

static uint32_t version_in(const uint8_t *data)
{
    return data[4] | (uint32_t)data[5] << 8 | (uint32_t)data[6] << 16 | (uint32_t)data[7] << 24;
}

/* Whole, of this handle and Generation, and nothing behind them was touched. */
static void check_data(const struct client *client, const uint8_t *data, uint32_t n,
                       const struct kbtp_outcome *outcome)
{
    uint32_t version = version_in(data), differ = 0;
    expect(outcome->data_length >= LEAST && outcome->data_length <= BLOCK, client, "Data Length");
    for (uint32_t at = 0; at < outcome->data_length && at < BLOCK; at++)
        differ += data[at] != octet_of(n, outcome->generation, version, at);
    for (uint32_t at = outcome->data_length; at < BLOCK; at++)
        differ += data[at] != UNTOUCHED;
    expect(differ == 0, client, "a LOAD brings octets that nobody has stored there");
}

static uint16_t generation_after(uint16_t generation)
{
    return generation == UINT16_MAX ? 1 : generation + 1;
}

/* ---- asking -------------------------------------------------------------------------------- */

static uint32_t own_number(const struct client *client, uint32_t handle)
{
    return client->number * HANDLES + handle;
}

static uint8_t *buffer_of(const struct client *client, uint32_t place)
{
    return client->it->data + (size_t)place * BLOCK;
}

static struct kbtp_operation operation_of(const struct client *client, uint32_t place,
                                          const struct asked *asked, uint32_t length,
                                          uint16_t flags)
{
    struct kbtp_operation operation = {.handle = pair.config.target.first_handle + asked->n,
                                       .length = length,
                                       .generation = asked->generation,
                                       .flags = flags,
                                       .opcode = asked->opcode};
    if (flags & KBTP_FLAG_INLINE) {
        operation.data = buffer_of(client, place);
    } else if (asked->opcode != KBTP_OP_FREE) {
        operation.stag = client->it->region.stag;
        operation.tagged_offset = client->it->region.base_to + place * (uint64_t)BLOCK;
    }
    return operation;
}

static uint32_t quota_used(const struct client *client)
{
    uint32_t used = 0;
    for (uint32_t i = 0; i < HANDLES; i++)
        used += client->own[i].valid;
    for (uint32_t i = 0; i < DEPTH; i++)
        used += client->asked[i].used && client->asked[i].opcode == KBTP_OP_ALLOC_STORE &&
                client->asked[i].status == KBTP_STATUS_OK;
    return used;
}

/* A store of new data: into a handle that is free, or into one that is bound. */
static void choose_store(struct client *client, struct asked *asked, const struct bound *bound,
                         uint16_t *flags)
{
    bool allocates = !bound->valid;
    asked->opcode = allocates ? KBTP_OP_ALLOC_STORE : KBTP_OP_STORE;
    bool is_inline = pick(&client->random, 2) == 0;
    uint32_t most = is_inline ? pair.config.target.max_inline : BLOCK;
    asked->then = *bound;
    asked->then.length = LEAST + pick(&client->random, most - LEAST + 1);
    asked->then.version++;
    asked->then.valid = true;
    asked->then.sealed = pick(&client->random, 3) == 0;
    if (allocates)
        asked->then.generation = generation_after(bound->generation);
    *flags =
        (uint16_t)((is_inline ? KBTP_FLAG_INLINE : 0) | (asked->then.sealed ? KBTP_FLAG_SEAL : 0));
    asked->status = bound->valid && bound->sealed ? KBTP_STATUS_SEALED : KBTP_STATUS_OK;
}

static void choose_load(struct client *client, struct asked *asked, const struct bound *bound,
                        uint16_t *flags)
{
    bool unsealed = pick(&client->random, 2) == 0;
    asked->opcode = KBTP_OP_LOAD;
    asked->then = *bound;
    *flags = unsealed ? KBTP_FLAG_ALLOW_UNSEALED : 0;
    if (!bound->valid)
        asked->status = KBTP_STATUS_NOT_VALID;
    else
        asked->status = bound->sealed || unsealed ? KBTP_STATUS_OK : KBTP_STATUS_NOT_SEALED;
}

static void choose_free(struct asked *asked, const struct bound *bound)
{
    asked->opcode = KBTP_OP_FREE;
    asked->status = bound->valid ? KBTP_STATUS_OK : KBTP_STATUS_NOT_VALID;
    asked->then = *bound;
    asked->then.valid = asked->then.sealed = false;
    if (bound->valid)
        asked->then.generation = generation_after(bound->generation);
}

/* Something about one of the own handles; false: there is nothing to ask. */
static bool choose_own(struct client *client, struct asked *asked, uint16_t *flags)
{
    uint32_t handle = pick(&client->random, HANDLES), kind = pick(&client->random, 8);
    struct bound *bound = &client->own[handle];
    if (bound->busy)
        return false;
    asked->n = own_number(client, handle);
    if (kind < 4) {
        if (!bound->valid && quota_used(client) == client->setting->quota)
            return false;
        choose_store(client, asked, bound, flags);
    } else if (kind < 6) {
        choose_load(client, asked, bound, flags);
    } else {
        choose_free(asked, bound);
    }
    if (pick(&client->random, 4) == 0)
        asked->generation = bound->generation;
    bound->busy = true;
    return true;
}

/* A LOAD of anybody's handle: nobody knows what comes of it. */
static void choose_foreign(struct client *client, struct asked *asked, uint16_t *flags)
{
    uint32_t owner = pick(&client->random, client->setting->initiators - 1);
    owner += owner >= client->number;
    asked->opcode = KBTP_OP_LOAD;
    asked->n = owner * HANDLES + pick(&client->random, HANDLES);
    asked->generation = (uint16_t)(pick(&client->random, 4) == 0 ? 1 + client->loaded % 8 : 0);
    *flags = pick(&client->random, 2) ? KBTP_FLAG_ALLOW_UNSEALED : 0;
}

static bool is_own(const struct client *client, const struct asked *asked)
{
    return asked->n / HANDLES == client->number;
}

static uint32_t free_place(const struct client *client)
{
    for (uint32_t i = 0; i < DEPTH; i++)
        if (!client->asked[(client->next + i) % DEPTH].used)
            return (client->next + i) % DEPTH;
    return NO_PLACE;
}

static void send(struct client *client, uint32_t place, const struct asked *asked, uint16_t flags)
{
    uint32_t length = BLOCK;
    client->next = (place + 1) % DEPTH;
    client->asked[place] = *asked;
    client->asked[place].used = true;
    if (asked->opcode == KBTP_OP_STORE || asked->opcode == KBTP_OP_ALLOC_STORE) {
        length = asked->then.length;
        fill_data(buffer_of(client, place), asked->n, &asked->then);
    } else {
        memset(buffer_of(client, place), UNTOUCHED, BLOCK);
    }
    struct kbtp_operation operation = operation_of(client, place, asked, length, flags);
    if (asked->opcode == KBTP_OP_FREE)
        operation.length = 0;
    int failed = kbtp_initiator_submit(client->it->initiator, &client->it->cpu, &operation, place);
    expect(failed == 0 || kbtp_initiator_state(client->it->initiator) != KBTP_INITIATOR_READY,
           client, "a request is refused");
    if (failed == 0)
        return;
    client->asked[place].used = false;
    if (is_own(client, asked))
        client->own[asked->n % HANDLES].busy = false;
}

static void ask(struct client *client)
{
    struct asked asked = {0};
    uint16_t flags = 0;
    uint32_t place = free_place(client);
    if (place == NO_PLACE || kbtp_initiator_credits(client->it->initiator) == 0)
        return;
    if (pick(&client->random, 3) == 0)
        choose_foreign(client, &asked, &flags);
    else if (!choose_own(client, &asked, &flags))
        return;
    send(client, place, &asked, flags);
}

/* ---- being told ---------------------------------------------------------------------------- */

static void told_own(struct client *client, const struct asked *asked, const uint8_t *data,
                     const struct kbtp_outcome *outcome)
{
    struct bound *bound = &client->own[asked->n % HANDLES];
    bool well = asked->status == KBTP_STATUS_OK;
    expect(outcome->status == asked->status, client, "another status than must be");
    if (well)
        *bound = asked->then;
    bound->busy = false;
    expect(outcome->generation == bound->generation, client, "another Generation than must be");
    expect(outcome->data_length == (well && asked->opcode != KBTP_OP_FREE ? bound->length : 0),
           client, "another Data Length than must be");
    if (asked->opcode == KBTP_OP_LOAD && well)
        expect(version_in(data) == bound->version, client, "a LOAD is older than a STORE before");
}

static void told_foreign(struct client *client, const struct asked *asked,
                         const struct kbtp_outcome *outcome)
{
    bool known = outcome->status == KBTP_STATUS_OK || outcome->status == KBTP_STATUS_NOT_VALID ||
                 outcome->status == KBTP_STATUS_NOT_SEALED ||
                 (asked->generation != 0 && outcome->status == KBTP_STATUS_STALE_GENERATION);
    expect(known, client, "a status that no LOAD can have");
    if (outcome->status == KBTP_STATUS_OK && asked->generation != 0)
        expect(outcome->generation == asked->generation, client, "OK, of another Generation");
    client->foreign += outcome->status == KBTP_STATUS_OK;
}

static void told(struct client *client, const struct kbtp_outcome *outcome)
{
    struct asked *asked = &client->asked[outcome->cookie % DEPTH];
    const uint8_t *data = buffer_of(client, (uint32_t)outcome->cookie % DEPTH);
    expect(asked->used, client, "an outcome that nobody waits for");
    bool in_doubt = outcome->error != 0;
    if (!in_doubt && asked->opcode == KBTP_OP_LOAD && outcome->status == KBTP_STATUS_OK) {
        check_data(client, data, asked->n, outcome);
        client->loaded++;
    }
    client->lost += in_doubt;
    if (!in_doubt && is_own(client, asked))
        told_own(client, asked, data, outcome);
    else if (!in_doubt)
        told_foreign(client, asked, outcome);
    /* In doubt: what it would have been stays, for find_out(). */
    if (!in_doubt || !is_own(client, asked) || asked->opcode == KBTP_OP_LOAD) {
        if (in_doubt && is_own(client, asked))
            client->own[asked->n % HANDLES].busy = false;
        *asked = (struct asked){0};
    }
}

static void poll(struct client *client)
{
    struct kbtp_outcome outcomes[DEPTH];
    int count = kbtp_initiator_poll(client->it->initiator, &client->it->cpu, outcomes, DEPTH);
    expect(count >= 0, client, "a poll fails");
    for (int i = 0; i < count; i++)
        told(client, &outcomes[i]);
    if (count == 0)
        sched_yield();
}

/* ---- sessions ------------------------------------------------------------------------------ */

static bool is_in(const struct client *client, enum kbtp_initiator_state state)
{
    return kbtp_initiator_state(client->it->initiator) == state;
}

static bool poll_until(struct client *client, enum kbtp_initiator_state state)
{
    while (!is_in(client, state) && goes_on())
        poll(client);
    return is_in(client, state);
}

/* Again and again: the worker may not yet have noticed that the last connection has ended. */
static bool connect_to_target(struct client *client)
{
    while (goes_on()) {
        int failed = kbtp_initiator_connect(client->it->initiator, &client->it->cpu);
        expect(failed == 0, client, "cannot connect");
        while (!is_in(client, KBTP_INITIATOR_READY) && !is_in(client, KBTP_INITIATOR_DOWN) &&
               goes_on())
            poll(client);
        if (is_in(client, KBTP_INITIATOR_READY))
            return true;
    }
    return false;
}

/* The request in doubt about this handle, or NULL. */
static struct asked *doubt_about(struct client *client, uint32_t n)
{
    for (uint32_t i = 0; i < DEPTH; i++)
        if (client->asked[i].used && client->asked[i].n == n)
            return &client->asked[i];
    return NULL;
}

static struct kbtp_outcome load_own(struct client *client, uint32_t handle)
{
    const uint32_t place = DEPTH; /* of nobody's */
    const struct asked load = {.opcode = KBTP_OP_LOAD, .n = own_number(client, handle)};
    struct kbtp_operation operation =
        operation_of(client, place, &load, BLOCK, KBTP_FLAG_ALLOW_UNSEALED);
    struct kbtp_outcome outcome = {.error = -ETIMEDOUT};
    memset(buffer_of(client, place), UNTOUCHED, BLOCK);
    int failed = kbtp_initiator_submit(client->it->initiator, &client->it->cpu, &operation, place);
    expect(failed == 0, client, "a LOAD is refused");
    while (failed == 0 && goes_on() &&
           kbtp_initiator_poll(client->it->initiator, &client->it->cpu, &outcome, 1) == 0)
        sched_yield();
    return outcome;
}

/* As it was before, or as the request in doubt would have left it; or all was freed meanwhile. */
static void find_out(struct client *client, uint32_t handle, bool may_be_freed)
{
    struct bound *bound = &client->own[handle];
    struct asked *doubt = doubt_about(client, own_number(client, handle));
    struct kbtp_outcome outcome = load_own(client, handle);
    if (outcome.error != 0) { /* the time is over */
        expect(!goes_on(), client, "lost in the middle of a session");
        return;
    }
    bool valid = outcome.status == KBTP_STATUS_OK;
    const uint8_t *data = buffer_of(client, DEPTH);
    expect(valid || outcome.status == KBTP_STATUS_NOT_VALID, client, "a LOAD of the own handle");
    if (valid)
        check_data(client, data, own_number(client, handle), &outcome);
    struct bound now = *bound;
    if (doubt && doubt->status == KBTP_STATUS_OK && outcome.generation != bound->generation)
        now = doubt->then;
    if (doubt && doubt->opcode == KBTP_OP_STORE && doubt->status == KBTP_STATUS_OK && valid &&
        version_in(data) == doubt->then.version)
        now = doubt->then;
    if (!valid && now.valid && may_be_freed) {
        now.valid = now.sealed = false;
        now.generation = generation_after(now.generation);
    } else if (!valid && doubt && doubt->opcode == KBTP_OP_ALLOC_STORE && may_be_freed &&
               outcome.generation == generation_after(doubt->then.generation)) {
        now = doubt->then;
        now.valid = now.sealed = false;
        now.generation = outcome.generation;
    }
    client->in_doubt += doubt != NULL;
    expect(valid == now.valid, client, "bound, or not, against all that was asked");
    expect(outcome.generation == now.generation, client, "a Generation that cannot be");
    expect(!valid || version_in(data) == now.version, client, "data that cannot be");
    *bound = now;
    bound->busy = false;
    if (doubt)
        *doubt = (struct asked){0};
}

static void find_out_all(struct client *client, bool may_be_freed)
{
    uint32_t usage = 0;
    for (uint32_t handle = 0; handle < HANDLES && goes_on(); handle++) {
        find_out(client, handle, may_be_freed);
        usage += client->own[handle].valid;
    }
    if (goes_on())
        expect(kbtp_initiator_set_usage(client->it->initiator, usage) == 0, client, "busy");
}

/* In one of three ways: without a word, requests under way; with GOODBYE; with RELEASE. */
static bool leave(struct client *client)
{
    uint32_t how = pick(&client->random, 3);
    if (how == 0) {
        kbtp_initiator_disconnect(client->it->initiator, &client->it->cpu);
        poll_until(client, KBTP_INITIATOR_DOWN);
        return client->setting->retention;
    }
    while (kbtp_initiator_outstanding(client->it->initiator) != 0 && goes_on())
        poll(client);
    int failed = kbtp_initiator_goodbye(client->it->initiator, &client->it->cpu, how == 2);
    expect(failed == 0 || !goes_on(), client, "cannot say GOODBYE");
    poll_until(client, KBTP_INITIATOR_DOWN);
    return how == 2 || client->setting->retention;
}

static void *be_initiator(void *argument)
{
    struct client *client = argument;
    bool may_be_freed = false;
    for (uint32_t session = 0; session < sessions && goes_on(); session++) {
        if (!connect_to_target(client))
            break;
        find_out_all(client, may_be_freed);
        for (uint32_t n = 20 + pick(&client->random, 100); n != 0 && goes_on(); n--) {
            ask(client);
            poll(client);
        }
        may_be_freed = leave(client);
    }
    return NULL;
}

/* ---- the target ---------------------------------------------------------------------------- */

static void *be_worker(void *argument)
{
    uint32_t i = (uint32_t)(uintptr_t)argument;
    while (atomic_load_explicit(&stopping, memory_order_relaxed) == 0) {
        int taken = kbtp_worker_poll(pair.workers[i], &pair.worker_cpus[i], 4);
        if (taken < 0)
            atomic_store_explicit(&wrong, 1, memory_order_relaxed);
        if (taken == 0)
            sched_yield();
    }
    return NULL;
}

/* Executes what worker i has posted, and lets its timers expire. */
static void *be_device(void *argument)
{
    uint32_t i = (uint32_t)(uintptr_t)argument;
    for (uint32_t turn = 0; atomic_load_explicit(&stopping, memory_order_relaxed) == 0; turn++) {
        threaded_execute(pair.worker_cpus[i].rdma);
        if (pair.config.target.retention_ns != 0 && turn % 64 == 0)
            threaded_expire(pair.worker_cpus[i].rdma, turn / 64 % pair.config.initiators);
        sched_yield();
    }
    return NULL;
}

/* ---- tests --------------------------------------------------------------------------------- */

static struct pair_config config_of(const struct setting *setting)
{
    struct pair_config config = pair_defaults();
    config.target.block_count = setting->quota * setting->initiators;
    config.target.block_size = BLOCK;
    config.target.max_connections = 8;
    config.target.max_inline = 64;
    config.target.retention_ns = setting->retention ? 1 : 0;
    config.workers = setting->workers;
    config.initiators = setting->initiators;
    config.handles = HANDLES;
    config.depth = DEPTH + 1;
    config.domains = setting->domains;
    config.unchecked = true;
    for (uint32_t i = 0; i < PAIR_INITIATORS; i++)
        config.quotas[i] = setting->quota;
    return config;
}

/* What Writes and Reads do waits for the device's thread. */
static const uint32_t held = 1u << RDMA_WRITE | 1u << RDMA_READ;

static uint32_t start(pthread_t *threads, struct client *clients, const struct setting *setting)
{
    uint32_t started = 0;
    for (uint32_t i = 0; i < setting->workers; i++) {
        void *number = (void *)(uintptr_t)i; // NOLINT(performance-no-int-to-ptr)
        threaded_hold(pair.worker_cpus[i].rdma, held);
        CU_ASSERT_EQUAL_FATAL(pthread_create(&threads[started++], NULL, be_worker, number), 0);
        CU_ASSERT_EQUAL_FATAL(pthread_create(&threads[started++], NULL, be_device, number), 0);
    }
    for (uint32_t i = 0; i < setting->initiators; i++) {
        clients[i] = (struct client){.number = i,
                                     .it = &pair.initiators[i],
                                     .setting = setting,
                                     .random = UINT64_C(0x9e3779b97f4a7c15) * (i + 1)};
        for (uint32_t handle = 0; handle < HANDLES; handle++)
            clients[i].own[handle].generation = pair.config.target.first_generation;
        CU_ASSERT_EQUAL_FATAL(pthread_create(&threads[started++], NULL, be_initiator, &clients[i]),
                              0);
    }
    return started;
}

/* R-RING-26, -27: a fresh session of each, and all blocks can be had, differ, and are read back. */
static void check_end(const struct setting *setting)
{
    for (uint32_t i = 0; i < setting->workers; i++)
        threaded_hold(pair.worker_cpus[i].rdma, 0);
    for (uint32_t i = 0; i < setting->initiators; i++) {
        CU_ASSERT_EQUAL_FATAL(pair_connect(&pair, i), 0);
        CU_ASSERT_EQUAL(pair_goodbye(&pair, i, true), 0);
        CU_ASSERT_EQUAL_FATAL(pair_connect(&pair, i), 0);
        CU_ASSERT_EQUAL(usage_of(i), 0);
    }
    expect_all_blocks();
    for (uint32_t block = 0; block < pair.config.target.block_count; block++)
        CU_ASSERT_EQUAL(mem_load64(&pair.mem, &pair.memory.pins[block]), 0);
    CU_ASSERT_EQUAL(look_at_workers().deferred, 0);
}

static void check_reached(const struct client *clients, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        CU_ASSERT_NOT_EQUAL(clients[i].loaded, 0);
        CU_ASSERT_NOT_EQUAL(clients[i].foreign, 0);
        CU_ASSERT_NOT_EQUAL(clients[i].lost, 0);
        CU_ASSERT_NOT_EQUAL(clients[i].in_doubt, 0);
        printf("\n  initiator %u: %lu loaded, %lu of them another's, %lu lost", i,
               (unsigned long)clients[i].loaded, (unsigned long)clients[i].foreign,
               (unsigned long)clients[i].lost);
    }
}

static void run_threads(const struct setting *setting)
{
    static struct client clients[PAIR_INITIATORS];
    static struct kbtp_counters counted[PAIR_WORKERS];
    pthread_t threads[2 * PAIR_WORKERS + PAIR_INITIATORS];
    struct pair_config config = config_of(setting);
    open_with(&config);
    memset(counted, 0, sizeof counted);
    for (uint32_t i = 0; i < setting->workers; i++)
        kbtp_worker_count_in(pair.workers[i], &counted[i]);
    atomic_store_explicit(&stopping, 0, memory_order_relaxed);
    uint32_t started = start(threads, clients, setting);
    for (uint32_t i = 2 * setting->workers; i < started; i++)
        CU_ASSERT_EQUAL(pthread_join(threads[i], NULL), 0);
    atomic_store_explicit(&stopping, 1, memory_order_relaxed);
    for (uint32_t i = 0; i < 2 * setting->workers; i++)
        CU_ASSERT_EQUAL(pthread_join(threads[i], NULL), 0);
    CU_ASSERT_EQUAL(wrong, 0);
    CU_ASSERT_EQUAL_FATAL(late, 0);
    if (wrong == 0) {
        check_reached(clients, setting->initiators);
        check_end(setting);
    }
    close_pair();
}

static void two_workers(void)
{
    run_threads(&(struct setting){.workers = 2, .initiators = 3, .quota = 4});
}

static void two_workers_that_clear(void)
{
    run_threads(&(struct setting){.workers = 2, .initiators = 3, .quota = 4, .domains = true});
}

static void three_workers_that_release(void)
{
    run_threads(&(struct setting){.workers = 3, .initiators = 4, .quota = 4, .retention = true});
}

static void four_workers(void)
{
    run_threads(&(struct setting){.workers = 4, .initiators = 4, .quota = 2});
}

int main(void)
{
    static const struct test tests[] = {
        {"two workers", two_workers},
        {"two workers that clear blocks", two_workers_that_clear},
        {"three workers that end sessions", three_workers_that_release},
        {"four workers", four_workers},
    };
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    deadline_s = now.tv_sec + TIME_LIMIT_S;
    alarm(TIME_LIMIT_S + 10); /* in case a call does not return */
    provider = &threaded_provider;
    sessions = getenv("SLOW") ? SLOW_SESSIONS : SESSIONS;
    return run_tests("ref between threads", tests, sizeof tests / sizeof *tests);
}
