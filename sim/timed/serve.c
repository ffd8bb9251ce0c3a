/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/timed/serve.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/timed/nic.h"

#define BUDGET 16u
#define FIRST_HANDLE 0x10000u

/* ---- what it costs ----------------------------------------------------------------------- */

static double request_ns(const struct sim_costs *costs, enum kbtp_counted_opcode opcode)
{
    switch (opcode) {
    case KBTP_COUNTED_HELLO:
        return costs->hello_ns;
    case KBTP_COUNTED_LOAD:
        return costs->load_ns;
    case KBTP_COUNTED_STORE:
        return costs->store_ns;
    case KBTP_COUNTED_ALLOC_STORE:
        return costs->alloc_store_ns;
    case KBTP_COUNTED_FREE:
        return costs->free_ns;
    case KBTP_COUNTED_BIND:
        return costs->bind_ns;
    case KBTP_COUNTED_GOODBYE:
        return costs->goodbye_ns;
    default:
        return 0;
    }
}

/* A request was taken: its Opcode is the second octet (draft: Message Format). Or what was done for
 * one has completed. */
static double work_ns(void *context, uint32_t op, const void *octets, uint32_t length)
{
    struct sim_worker_cpu *w = context;
    w->reads += op == RDMA_READ;
    w->writes += op == RDMA_WRITE;
    if (op != RDMA_RECV || !octets || length < 2)
        return 0;
    enum kbtp_counted_opcode opcode = kbtp_counted_opcode(((const uint8_t *)octets)[1]);
    double ns = request_ns(w->core.costs, opcode);
    w->requests[opcode]++;
    w->requests_ns += ns;
    return ns;
}

/*
 * What the run took goes to the requests that were taken in it, or whose RDMA Write (LOAD) or Read
 * (stores) has completed; what is not theirs alone in equal parts.
 */
static void charge(struct sim_worker_cpu *w, uint64_t spent_ps)
{
    struct sim_target *t = w->target;
    uint64_t all = w->reads + w->writes, own_ps = (uint64_t)(w->requests_ns * 1000 + 0.5);
    uint64_t shared_ps = spent_ps > own_ps ? spent_ps - own_ps : 0;
    for (uint32_t i = 0; i < KBTP_COUNTED_OPCODES; i++)
        all += w->requests[i];
    uint64_t part_ps = all ? shared_ps / all : 0;
    for (uint32_t i = 0; i < KBTP_COUNTED_OPCODES; i++) {
        double own_ns = request_ns(w->core.costs, (enum kbtp_counted_opcode)i);
        t->served[i] += w->requests[i];
        t->cpu_ps[i] += w->requests[i] * ((uint64_t)(own_ns * 1000 + 0.5) + part_ps);
        w->requests[i] = 0;
    }
    t->cpu_ps[KBTP_COUNTED_LOAD] += w->writes * part_ps;
    t->reads_ps += w->reads * part_ps;
    w->requests_ns = 0;
    w->reads = w->writes = 0;
}

/* ---- the CPU of a worker ----------------------------------------------------------------- */

static uint64_t run_worker(void *context, bool *again)
{
    struct sim_worker_cpu *w = context;
    sim_nic_run(w->cpu.rdma, 0);
    int taken = kbtp_worker_poll(w->worker, &w->cpu, BUDGET);
    uint64_t spent_ps = sim_nic_spent_ps(w->cpu.rdma);
    if (taken < 0)
        w->target->failed = taken;
    *again = taken > 0 || kbtp_worker_waits(w->worker);
    if (spent_ps <= (uint64_t)(w->core.costs->poll_ns * 1000 + 0.5))
        return 0; /* a look that found nothing */
    charge(w, spent_ps);
    return spent_ps;
}

static bool worker_has_news(const void *context)
{
    return sim_nic_has_news(((const struct sim_worker_cpu *)context)->cpu.rdma);
}

static void wake_worker(void *context)
{
    sim_core_wake(&((struct sim_worker_cpu *)context)->core);
}

static int open_worker(struct sim_target *t, struct sim_worker_cpu *w,
                       const struct sim_costs *costs)
{
    struct kbtp_worker_memory need;
    const struct sim_nic_cpu cpu = {.wake = wake_worker, .work_ns = work_ns, .context = w};
    kbtp_worker_memory(&t->target, &need);
    w->private_memory = sim_core_memory(need.private_octets);
    w->buffers = sim_core_memory(need.buffer_octets);
    if (!w->private_memory || !w->buffers)
        return -ENOMEM;
    w->core = (struct sim_core){.clock = sim_nics_clock(t->nics),
                                .run = run_worker,
                                .has_news = worker_has_news,
                                .context = w,
                                .costs = costs};
    int failed = kbtp_worker_init(&w->worker, &t->target, &w->cpu, t->address, w->private_memory,
                                  w->buffers);
    if (failed)
        return failed;
    kbtp_worker_count_in(w->worker, &w->counters);
    sim_nic_attach(w->cpu.rdma, &cpu);
    return 0;
}

/* ---- the target -------------------------------------------------------------------------- */

static int make_blocks(struct sim_target *t, const struct kbtp_target_config *config, char **blocks)
{
    size_t octets = (size_t)config->block_count * config->block_size;
    if (!t->pool->phantom)
        return (*blocks = t->blocks = sim_core_memory(octets)) ? 0 : -ENOMEM;
    t->phantom = sim_nic_phantom(t->nics, config->block_count, config->block_size);
    if (!t->phantom)
        return -ENOMEM;
    *blocks = t->phantom->base;
    return 0;
}

static int make_handles(struct sim_target *t, uint32_t sessions)
{
    const struct sim_nic_limits limits = {
        .nic = t->nic, .connections = sessions, .timers = 3 * sessions, .cqs = 1};
    for (uint32_t i = 0; i < t->pool->workers; i++) {
        struct sim_worker_cpu *w = &t->workers[i];
        w->target = t;
        w->cpu = (struct kbtp_cpu){&w->mem.mem, sim_nic_handle(t->nics, &limits)};
        if (!w->cpu.rdma)
            return -ENOMEM;
        sim_nic_mem(&w->mem, t->phantom, w->cpu.rdma);
    }
    t->cpu = t->workers[0].cpu;
    return 0;
}

/* A grant for each session, by the Initiator ID of its instance. False: no memory. */
static bool make_grants(struct sim_target *t, const struct sim_timed *s, uint32_t pool,
                        uint32_t number, uint32_t *sessions, uint64_t *quotas)
{
    uint32_t instance = 0;
    for (unsigned g = 0; g < s->instances_count; g++)
        *sessions += s->instances[g].pool == pool ? s->instances[g].count : 0;
    t->grants = calloc(*sessions ? *sessions : 1, sizeof *t->grants);
    *sessions = 0;
    for (unsigned g = 0; t->grants && g < s->instances_count; g++) {
        const struct sim_timed_instances *group = &s->instances[g];
        for (uint32_t n = 0; n < group->count; n++, instance++) {
            bool here = group->to == SIM_TIMED_EACH || n % s->pools[pool].count == number;
            if (group->pool != pool || !here)
                continue;
            struct kbtp_grant *grant = &t->grants[(*sessions)++];
            *grant = (struct kbtp_grant){.known = 1,
                                         .quota = group->handles,
                                         .handle_count = group->handles,
                                         .features = KBTP_FEATURE_DIRECT_LOAD};
            sim_timed_identity(instance, t->nic, grant->initiator_id);
            *quotas += group->handles;
        }
    }
    return t->grants != NULL;
}

int sim_target_open(struct sim_target *t, struct sim_nics *nics, uint32_t nic,
                    const struct sim_timed *scenario, uint32_t pool_number, uint32_t number,
                    const struct sim_costs *costs)
{
    const struct sim_timed_pool *pool = &scenario->pools[pool_number];
    struct kbtp_target_memory places;
    uint32_t sessions = 0;
    uint64_t quotas = 0;
    *t = (struct sim_target){.pool = pool, .nics = nics, .nic = nic};
    snprintf(t->address, sizeof t->address, "%s/%u", pool->name, number);
    t->workers = calloc(pool->workers, sizeof *t->workers);
    if (!t->workers || !make_grants(t, scenario, pool_number, number, &sessions, &quotas))
        return -ENOMEM;
    const struct kbtp_target_config config = {.block_count =
                                                  pool->blocks ? pool->blocks : (uint32_t)quotas,
                                              .block_size = pool->block_size,
                                              .max_inline = pool->max_inline,
                                              .first_offset = pool->block_size,
                                              .first_handle = FIRST_HANDLE,
                                              .request_credits = pool->credits,
                                              .max_connections = sessions,
                                              .staging = pool->staging,
                                              .session_count = sessions,
                                              .features = KBTP_FEATURE_DIRECT_LOAD};
    t->shared = sim_core_memory(kbtp_target_octets(&config, t->grants));
    if (!t->shared)
        return -ENOMEM;
    kbtp_target_layout(&config, t->grants, t->shared, &places);
    int failed = make_blocks(t, &config, &places.blocks);
    if (!failed)
        failed = make_handles(t, sessions);
    if (!failed)
        failed = kbtp_target_init(&t->target, &t->cpu, &config, &places);
    for (uint32_t i = 0; i < pool->workers && !failed; i++) {
        failed = open_worker(t, &t->workers[i], costs);
        t->workers_count += !failed;
    }
    return failed;
}

void sim_worker_stop(struct sim_worker_cpu *w)
{
    sim_nic_run(w->cpu.rdma, 0);
    kbtp_worker_stop(w->worker, &w->cpu);
    sim_core_wake(&w->core);
}

bool sim_target_is_whole(struct sim_target *t)
{
    struct kbtp_gauges gauges;
    kbtp_target_gauges(t->cpu.mem, &t->target, NULL, &gauges);
    for (uint32_t i = 0; i < t->workers_count; i++)
        if (kbtp_worker_deferred(t->workers[i].worker) != 0)
            return false;
    return gauges.values[KBTP_GAUGE_RING_TICKETS] == t->target.config.block_count;
}

void sim_target_close(struct sim_target *t)
{
    for (uint32_t i = 0; t->workers && i < t->pool->workers; i++) {
        sim_core_memory_free(t->workers[i].private_memory);
        sim_core_memory_free(t->workers[i].buffers);
    }
    free(t->workers);
    free(t->grants);
    sim_core_memory_free(t->shared);
    sim_core_memory_free(t->blocks);
}
