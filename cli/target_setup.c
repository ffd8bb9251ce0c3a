/* SPDX-License-Identifier: BSD-3-Clause */
/* Making a target, and taking it down. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "cli/cli.h"
#include "cli/real.h"
#include "cli/target.h"

#define BUDGET_STAGING 8u
#define SPARE_CONNECTIONS 4u /* for those that are to hear that there are too many */
#define PROBE_NS 1000000000u

/* ---- who has what ------------------------------------------------------------------------ */

static bool make_grants(struct server *s)
{
    const struct target_options *o = s->options;
    char error[800];
    if (o->policy) {
        if (policy_read(o->policy, (uint32_t)o->blocks, &s->policy, error, sizeof error) == 0)
            return true;
        cli_complain("%s", error);
        return false;
    }
    s->policy.grants_count = (uint32_t)o->sessions;
    s->policy.features = o->features;
    s->policy.grants = calloc(o->sessions, sizeof *s->policy.grants);
    if (!s->policy.grants) {
        cli_complain("no memory for %ju sessions", (uintmax_t)o->sessions);
        return false;
    }
    for (uint32_t i = 0; i < s->policy.grants_count; i++)
        s->policy.grants[i] = (struct kbtp_grant){.features = o->features,
                                                  .quota = (uint32_t)o->quota,
                                                  .handle_count = (uint32_t)o->handles};
    return true;
}

/* So that those who knew an earlier target notice (I-11); far from all that it may have had. */
static uint64_t first_handle(const struct target_options *o)
{
    uint16_t random = 0;
    if (o->first_handle != UINT64_MAX)
        return o->first_handle;
    if (getrandom(&random, sizeof random, 0) != sizeof random)
        random = 0;
    return ((uint64_t)random + 1) << 32;
}

static void configure(struct server *s)
{
    const struct target_options *o = s->options;
    s->config = (struct kbtp_target_config){
        .block_count = (uint32_t)o->blocks,
        .block_size = (uint32_t)o->block_size,
        .max_inline = (uint32_t)o->max_inline,
        .first_handle = first_handle(o),
        .request_credits = (uint32_t)o->credits,
        .max_connections = (uint32_t)o->connections,
        .staging = BUDGET_STAGING,
        .session_count = s->policy.grants_count,
        .retention_ns = (uint64_t)real_nanoseconds(o->retention),
        .probe_ns = PROBE_NS,
        .features = s->policy.features,
        .ticket_timeout_ms = (uint32_t)(o->ticket_timeout * 1e3),
    };
}

/* ---- device and memory ------------------------------------------------------------------- */

static int open_device(struct server *s, const char *address)
{
    const struct target_options *o = s->options;
    char words[RDMA_VERBS_WORDS];
    struct rdma_verbs_config config = {.device = o->device,
                                       .address = o->device ? NULL : address,
                                       .connections = s->config.max_connections + SPARE_CONNECTIONS,
                                       /* retention, tickets; the half-open */
                                       .timers =
                                           2 * s->config.session_count + s->config.max_connections};
    if (config.connections > UINT16_MAX)
        config.connections = UINT16_MAX;
    if (real_open(&config, &s->device, words) != 0) {
        cli_complain("%s", words);
        return CLI_ENVIRONMENT;
    }
    for (uint32_t i = 0; i < s->worker_count; i++) {
        struct server_worker *w = &s->workers[i];
        w->server = s;
        w->cpu.mem = &w->mem;
        if (rdma_verbs_handle(s->device, &w->cpu.rdma, words) != 0) {
            cli_complain("%s", words);
            return CLI_ENVIRONMENT;
        }
    }
    return CLI_DONE;
}

/* What the device cannot do at all is said before it is asked for. */
static int check_device(const struct server *s)
{
    struct rdma_caps caps;
    rdma_caps(s->workers[0].cpu.rdma, &caps);
    const struct kbtp_target_config *config = &s->config;
    uint64_t completions =
        (uint64_t)config->max_connections * (3 * (uint64_t)config->request_credits + 3);
    if (config->block_size > caps.max_message)
        cli_complain("--block-size: %s moves at most %" PRIu32 " octets at a time",
                     rdma_verbs_device_name(s->device), caps.max_message);
    else if (config->request_credits + 1 > caps.max_queue)
        cli_complain("--credits: queues of %s have %" PRIu32 " places, one more than credits",
                     rdma_verbs_device_name(s->device), caps.max_queue);
    else if (completions > caps.max_cq)
        cli_complain("--connections: completion queues of %s have %" PRIu32 " places, and %" PRIu64
                     " are needed; or lower --credits",
                     rdma_verbs_device_name(s->device), caps.max_cq, completions);
    else
        return CLI_DONE;
    return CLI_ENVIRONMENT;
}

static int device_failed(const struct server_worker *w, const char *what, int failed)
{
    cli_complain("%s: %s", what, real_why(w->cpu.rdma, failed));
    return CLI_ENVIRONMENT;
}

static int make_target(struct server *s)
{
    struct kbtp_target_memory memory;
    s->shared_octets = kbtp_target_octets(&s->config, s->policy.grants);
    s->blocks_octets = (size_t)s->config.block_count * s->config.block_size;
    s->shared = real_memory(s->shared_octets, "the block table");
    s->blocks = real_memory(s->blocks_octets, "the blocks");
    if (!s->shared || !s->blocks)
        return CLI_ENVIRONMENT;
    kbtp_target_layout(&s->config, s->policy.grants, s->shared, &memory);
    memory.blocks = s->blocks;
    int failed = kbtp_target_init(&s->target, &s->workers[0].cpu, &s->config, &memory);
    s->made = failed == 0;
    return failed ? device_failed(&s->workers[0], "cannot make the target", failed) : CLI_DONE;
}

static int make_worker(struct server *s, struct server_worker *w, const char *address)
{
    struct kbtp_worker_memory need;
    kbtp_worker_memory(&s->target, &need);
    w->private_octets = need.private_octets;
    w->buffer_octets = need.buffer_octets;
    w->private_memory = real_memory(w->private_octets, "a worker");
    w->buffers = real_memory(w->buffer_octets, "messages");
    if (!w->private_memory || !w->buffers)
        return CLI_ENVIRONMENT;
    int failed =
        kbtp_worker_init(&w->worker, &s->target, &w->cpu, address, w->private_memory, w->buffers);
    if (failed) {
        w->worker = NULL;
        return device_failed(w, "cannot listen", failed);
    }
    kbtp_worker_count_in(w->worker, &w->counters);
    return CLI_DONE;
}

/* With the port that it has. */
static void learn_address(struct server *s, const char *address)
{
    const char *colon = strrchr(address, ':');
    int host = (int)(colon - address);
    (void)snprintf(s->address, sizeof s->address, "%.*s:%u", host, address,
                   rdma_verbs_port(s->workers[0].cpu.rdma));
}

/* ------------------------------------------------------------------------------------------ */

static int allocate(struct server *s)
{
    s->worker_count = (uint32_t)s->options->threads;
    s->workers = real_memory(s->worker_count * sizeof *s->workers, "the workers");
    if (s->policy.grants_count <= TARGET_SHOWN_SESSIONS)
        s->sum.sessions = calloc(s->policy.grants_count, sizeof *s->sum.sessions);
    return s->workers ? CLI_DONE : CLI_ENVIRONMENT;
}

int server_open(struct server *s, const struct target_options *options)
{
    char address[RDMA_VERBS_ADDRESS];
    s->options = options;
    int status = real_address(options->listen, address);
    if (status == CLI_DONE && !make_grants(s))
        status = CLI_BAD_INPUT;
    if (status != CLI_DONE)
        return status;
    configure(s);
    status = allocate(s);
    if (status == CLI_DONE)
        status = open_device(s, address);
    if (status == CLI_DONE)
        status = check_device(s);
    if (status == CLI_DONE)
        status = make_target(s);
    for (uint32_t i = 0; status == CLI_DONE && i < s->worker_count; i++)
        status = make_worker(s, &s->workers[i], address);
    if (status == CLI_DONE)
        learn_address(s, address);
    return status;
}

/* What is not idle keeps its memory until its handle is closed, which ends it. */
static void close_workers(struct server *s)
{
    bool all_ended = true;
    for (uint32_t i = 0; s->workers && i < s->worker_count; i++) {
        struct server_worker *w = &s->workers[i];
        if (!w->worker)
            continue;
        if (kbtp_worker_idle(w->worker) && !w->failed)
            (void)kbtp_worker_end(w->worker, &w->cpu);
        else
            all_ended = false;
    }
    if (s->made && all_ended)
        (void)kbtp_target_end(&s->target, &s->workers[0].cpu);
    for (uint32_t i = 0; s->workers && i < s->worker_count; i++)
        if (s->workers[i].cpu.rdma)
            rdma_verbs_handle_close(s->workers[i].cpu.rdma);
}

void server_close(struct server *s)
{
    close_workers(s);
    rdma_verbs_close(s->device);
    for (uint32_t i = 0; s->workers && i < s->worker_count; i++) {
        real_memory_end(s->workers[i].private_memory, s->workers[i].private_octets);
        real_memory_end(s->workers[i].buffers, s->workers[i].buffer_octets);
    }
    real_memory_end(s->shared, s->shared_octets);
    real_memory_end(s->blocks, s->blocks_octets);
    real_memory_end(s->workers, s->worker_count * sizeof *s->workers);
    free(s->sum.sessions);
    policy_end(&s->policy);
}
