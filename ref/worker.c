/* SPDX-License-Identifier: BSD-3-Clause */
/* Connections: how they come, what completes on them, how they end. */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "ref/worker_state.h"

#define BATCH 16u
#define LINE 64u

static size_t round_up(size_t octets, size_t to)
{
    return (octets + to - 1) / to * to;
}

/* ---- sizes ------------------------------------------------------------------------------- */

/* A request may post an RDMA Read or Write and its completion; one more for what has no credit. */
static uint32_t send_depth(const struct kbtp_target *target)
{
    uint32_t depth = 2 * (target->config.request_credits + 1);
    return depth < target->caps.max_queue ? depth : target->caps.max_queue;
}

static uint32_t receive_octets(const struct kbtp_target *target)
{
    return (uint32_t)round_up(KBTP_REQUEST_MAX_OCTETS + target->config.max_inline, 8);
}

/* The largest that a worker sends is HELLO_ACK. */
static uint32_t message_octets(const struct kbtp_target *target)
{
    return target->config.features != 0 ? KBTP_TO_INITIATOR_MAX_OCTETS : KBTP_HELLO_ACK_OCTETS;
}

static size_t buffers_of_connection(const struct kbtp_target *target)
{
    return (target->config.request_credits + 1) * (size_t)receive_octets(target) +
           send_depth(target) * (size_t)message_octets(target);
}

#define WORD_BITS 64u

static uint32_t busy_words(const struct kbtp_target *target)
{
    return (target->config.max_connections + WORD_BITS - 1) / WORD_BITS;
}

static bool has_partitions(const struct kbtp_target *target)
{
    return target->pool.partition_count != 0;
}

static uint32_t partition_slots(const struct kbtp_target *target)
{
    if (!has_partitions(target))
        return 0;
    const struct kbtp_partition *last = &target->pool.partitions[target->pool.partition_count - 1];
    return last->first_slot + last->ring.config.slot_count;
}

void kbtp_worker_memory(const struct kbtp_target *target, struct kbtp_worker_memory *memory)
{
    const struct kbtp_target_config *config = &target->config;
    size_t requests = config->request_credits + 1;
    size_t per_connection =
        sizeof(struct kbtp_connection) + requests * sizeof(struct kbtp_request) +
        round_up(requests * sizeof(uint16_t), 8) + round_up(requests * sizeof(uint32_t), 8);
    size_t retentions = config->retention_ns != 0 ? config->session_count : 0;
    size_t tickets = has_partitions(target) ? config->max_connections : 0;
    memory->private_octets =
        sizeof(struct kbtp_worker) + config->max_connections * per_connection +
        busy_words(target) * sizeof(uint64_t) + retentions * sizeof(struct kbtp_retention) +
        tickets * sizeof(struct kbtp_tickets) + round_up(partition_slots(target), 8) +
        round_up(target->ask_depth * sizeof(uint32_t), 8) +
        config->block_count * sizeof(struct kbtp_deferred_free) + round_up(config->staging, 8);
    memory->buffer_octets =
        round_up(config->max_connections * buffers_of_connection(target), LINE) +
        round_up(config->staging * (size_t)config->block_size, target->ask_depth ? LINE : 1) +
        target->ask_octets + target->ask_depth * sizeof(uint64_t);
}

/* Takes `octets` of private memory, which is zero. */
static void *carve(char **memory, size_t octets)
{
    void *taken = *memory;
    *memory += round_up(octets, 8);
    return taken;
}

static void carve_connection(struct kbtp_worker *w, struct kbtp_connection *c, char **memory)
{
    c->requests = carve(memory, w->requests * sizeof *c->requests);
    c->order = carve(memory, w->requests * sizeof *c->order);
    c->loads = carve(memory, w->requests * sizeof *c->loads);
}

/* What the device is to prepare for a connection of this worker. */
static struct rdma_conn_config connection_config(const struct kbtp_worker *w)
{
    const struct rdma_caps *caps = &w->target->caps;
    return (struct rdma_conn_config){
        .cq = w->cq,
        .send_depth = w->send_depth,
        .recv_depth = w->requests,
        .max_sge = 1,
        .max_inline = caps->max_inline < message_octets(w->target) ? caps->max_inline
                                                                   : message_octets(w->target),
        .reads_out = caps->max_reads < w->requests ? caps->max_reads : w->requests,
        .reads_in = w->target->features != 0 ? caps->max_reads : 0};
}

static void lay_out_asks(struct kbtp_worker *w, char **memory, uint8_t *buffers)
{
    struct kbtp_asks *asks = &w->asks;
    asks->depth = w->target->ask_depth;
    if (asks->depth == 0)
        return;
    asks->by = carve(memory, asks->depth * sizeof *asks->by);
    asks->memory = (char *)round_up((uintptr_t)buffers, LINE);
    asks->answers = (uint8_t *)asks->memory + w->target->ask_octets;
}

static void lay_out(struct kbtp_worker *w, char *memory, uint8_t *buffers)
{
    const struct kbtp_target_config *config = &w->target->config;
    w->connections = carve(&memory, config->max_connections * sizeof *w->connections);
    w->busy = carve(&memory, busy_words(w->target) * sizeof *w->busy);
    if (config->retention_ns != 0)
        w->retentions = carve(&memory, config->session_count * sizeof *w->retentions);
    if (has_partitions(w->target)) {
        w->tickets = carve(&memory, config->max_connections * sizeof *w->tickets);
        w->looks = carve(&memory, partition_slots(w->target));
    }
    for (uint32_t i = 0; i < config->max_connections; i++) {
        struct kbtp_connection *c = &w->connections[i];
        carve_connection(w, c, &memory);
        c->receives = buffers + i * buffers_of_connection(w->target);
        c->sends = (struct kbtp_sends){
            .slots = c->receives + w->requests * (size_t)w->receive_octets,
            .slot_octets = message_octets(w->target),
            .depth = w->send_depth,
            .max_inline = connection_config(w).max_inline,
            .no_inline_invalidate = w->target->caps.binding == RDMA_BINDING_RDMAP};
    }
    w->deferred = (struct kbtp_deferred){
        .frees = carve(&memory, config->block_count * sizeof(struct kbtp_deferred_free)),
        .capacity = config->block_count};
    w->staging_used = carve(&memory, config->staging);
    w->staging =
        buffers + round_up(config->max_connections * buffers_of_connection(w->target), LINE);
    lay_out_asks(w, &memory, w->staging + config->staging * (size_t)config->block_size);
}

static int free_windows(struct kbtp_worker *w, const struct kbtp_cpu *cpu, uint32_t count)
{
    int failed = 0;
    while (count != 0) {
        int failed_too = rdma_window_free(cpu->rdma, &w->tickets[--count].window);
        failed = failed ? failed : failed_too;
    }
    return failed;
}

/* A window for each connection, over the partition of its session. */
static int alloc_windows(struct kbtp_worker *w, const struct kbtp_cpu *cpu)
{
    for (uint32_t i = 0; w->tickets && i < w->target->config.max_connections; i++) {
        int failed = rdma_window_alloc(cpu->rdma, &w->tickets[i].window);
        if (failed) {
            free_windows(w, cpu, i);
            return failed;
        }
    }
    return 0;
}

static int free_all_windows(struct kbtp_worker *w, const struct kbtp_cpu *cpu)
{
    return free_windows(w, cpu, w->tickets ? w->target->config.max_connections : 0);
}

/* In the order in which it is given back. */
static int take_from_device(struct kbtp_worker *w, const struct kbtp_cpu *cpu, const char *address,
                            void *buffers, size_t octets)
{
    const struct kbtp_target_config *config = &w->target->config;
    int failed =
        rdma_cq_create(cpu->rdma, config->max_connections * (w->send_depth + w->requests), &w->cq);
    if (failed)
        return failed;
    failed = rdma_reg(cpu->rdma, buffers, octets, RDMA_LOCAL_WRITE, 0, &w->region);
    if (!failed) {
        failed = alloc_windows(w, cpu);
        if (!failed) {
            failed = kbtp_asks_begin(w, cpu);
            if (!failed) {
                failed = rdma_listen(cpu->rdma, address);
                if (failed)
                    kbtp_asks_end(w, cpu);
            }
            if (failed)
                free_all_windows(w, cpu);
        }
        if (failed)
            rdma_dereg(cpu->rdma, &w->region);
    }
    if (failed)
        rdma_cq_destroy(cpu->rdma, w->cq);
    return failed;
}

int kbtp_worker_init(struct kbtp_worker **worker, const struct kbtp_target *target,
                     const struct kbtp_cpu *cpu, const char *address, void *private_memory,
                     void *buffers)
{
    struct kbtp_worker_memory need;
    kbtp_worker_memory(target, &need);
    memset(private_memory, 0, need.private_octets);
    struct kbtp_worker *w = private_memory;
    w->target = target;
    w->requests = target->config.request_credits + 1;
    w->receive_octets = receive_octets(target);
    w->send_depth = send_depth(target);
    lay_out(w, (char *)private_memory + sizeof *w, buffers);

    int failed = take_from_device(w, cpu, address, buffers, need.buffer_octets);
    if (failed)
        return failed;
    for (uint32_t i = 0; i < target->config.max_connections; i++)
        w->connections[i].sends.lkey = w->region.lkey;
    *worker = w;
    return 0;
}

int kbtp_worker_end(struct kbtp_worker *worker, const struct kbtp_cpu *cpu)
{
    assert(kbtp_worker_idle(worker));
    int failures[4];
    failures[0] = kbtp_asks_end(worker, cpu);
    failures[1] = free_all_windows(worker, cpu);
    failures[2] = rdma_dereg(cpu->rdma, &worker->region);
    failures[3] = rdma_cq_destroy(cpu->rdma, worker->cq);
    for (size_t i = 0; i < sizeof failures / sizeof failures[0]; i++)
        if (failures[i])
            return failures[i];
    return 0;
}

/* ---- the life of a connection ------------------------------------------------------------ */

static void reject(const struct kbtp_worker *w, const struct kbtp_cpu *cpu, uint32_t conn)
{
    kbtp_count(w, KBTP_COUNT_REJECTED);
    rdma_reject(cpu->rdma, conn, NULL, 0);
}

/* Whatever may make a connection busy says so; the end of the poll looks whether it still is. */
static void is_busy(struct kbtp_worker *w, uint32_t conn)
{
    w->busy[conn / WORD_BITS] |= UINT64_C(1) << conn % WORD_BITS;
}

/* One receive is there before the peer can send; it waits for the answer to its HELLO then. */
static void accept_request(struct kbtp_worker *w, const struct kbtp_cpu *cpu, uint32_t conn)
{
    if (conn >= w->target->config.max_connections || w->stopping) {
        reject(w, cpu, conn);
        return;
    }
    struct kbtp_connection *c = &w->connections[conn];
    assert(c->state == KBTP_CONNECTION_UNUSED);
    struct rdma_conn_config config = connection_config(w);
    struct rdma_sge sge;
    struct rdma_wr first = kbtp_receive(w, c, 0, &sge);
    if (rdma_accept(cpu->rdma, conn, &config, &first, 1, NULL, 0) != 0) {
        reject(w, cpu, conn);
        return;
    }
    c->state = KBTP_CONNECTION_OPEN;
    is_busy(w, conn);
    kbtp_count(w, KBTP_COUNT_ACCEPTED);
    for (uint32_t i = 1; i < w->requests; i++)
        if (kbtp_post_receive(w, cpu, c, i) != 0) {
            kbtp_connection_lost(w, cpu, c);
            return;
        }
}

void kbtp_connection_end(struct kbtp_worker *w, const struct kbtp_cpu *cpu,
                         struct kbtp_connection *c)
{
    if (!kbtp_connection_serves(c) && c->state != KBTP_CONNECTION_LAST)
        return;
    c->state = KBTP_CONNECTION_ENDING;
    kbtp_probe_end(w, cpu, c);
    if (c->has_session)
        kbtp_session_ending(cpu->mem, &w->target->sessions, c->session);
    /* It fails when the connection has ended by itself: DISCONNECTED and DRAINED come anyway. */
    rdma_disconnect(cpu->rdma, kbtp_connection_number(w, c));
}

void kbtp_connection_lost(struct kbtp_worker *w, const struct kbtp_cpu *cpu,
                          struct kbtp_connection *c)
{
    if (kbtp_connection_serves(c))
        kbtp_count(w, KBTP_COUNT_LOST);
    kbtp_connection_end(w, cpu, c);
}

static void forget(struct kbtp_worker *w, const struct kbtp_cpu *cpu, struct kbtp_connection *c)
{
    rdma_destroy(cpu->rdma, kbtp_connection_number(w, c));
    c->sends.posted = c->sends.retired = c->sends.unsignaled = 0;
    c->session = c->usage = 0;
    c->name = 0;
    c->has_session = c->released = 0;
    c->features = 0;
    c->state = KBTP_CONNECTION_UNUSED;
}

/* All FLUSHED are polled and nothing reads or writes for this connection any more. */
static void finish(struct kbtp_worker *w, const struct kbtp_cpu *cpu, struct kbtp_connection *c)
{
    assert(c->loads_count == 0);
    if (!kbtp_requests_reclaim(w, cpu, c) || !kbtp_tickets_end(w, cpu, c))
        return;
    kbtp_tickets_forget(w, cpu, c);
    if (c->has_session) {
        uint64_t retention =
            kbtp_session_end(cpu->mem, &w->target->sessions, c->session, c->usage, c->released);
        kbtp_count(w, c->released ? KBTP_COUNT_RELEASED : KBTP_COUNT_RETAINED);
        if (!c->released)
            kbtp_retain(w, cpu, c->session, retention);
    }
    forget(w, cpu, c);
}

/* ---- what happened ----------------------------------------------------------------------- */

/* An RDMA Write of a LOAD is over, well or not: its block has been read. */
static void load_is_over(struct kbtp_worker *w, const struct kbtp_cpu *cpu,
                         struct kbtp_connection *c)
{
    assert(c->loads_count != 0);
    uint32_t block = c->loads[c->loads_first];
    c->loads[c->loads_first] = 0;
    c->loads_first = c->loads_count == 1 ? 0 : (c->loads_first + 1) % w->requests;
    c->loads_count--;
    kbtp_pool_unpin(cpu->mem, &w->target->pool, &w->deferred, block);
}

static void received(struct kbtp_worker *w, const struct kbtp_cpu *cpu, struct kbtp_connection *c,
                     const struct rdma_wc *wc)
{
    if (!kbtp_connection_serves(c))
        return; /* it came before the end, but was not seen in time */
    is_busy(w, wc->conn);
    if (wc->flags & RDMA_WC_WRITE_IMM)
        kbtp_count(w, KBTP_COUNT_MALFORMED);
    if ((wc->flags & RDMA_WC_WRITE_IMM) ||
        !kbtp_request_received(w, cpu, c, kbtp_wr_detail(wc->wr_id), wc->length))
        kbtp_connection_end(w, cpu, c);
}

static void completed(struct kbtp_worker *w, const struct kbtp_cpu *cpu, const struct rdma_wc *wc)
{
    struct kbtp_connection *c = &w->connections[wc->conn];
    enum kbtp_wr_kind kind = kbtp_wr_kind(wc->wr_id);
    if (kind != KBTP_WR_RECEIVE)
        kbtp_sends_retire(&c->sends, wc->wr_id);
    if (kind == KBTP_WR_WRITE)
        load_is_over(w, cpu, c);
    if (wc->status != RDMA_OK) {
        kbtp_connection_lost(w, cpu, c);
        return;
    }
    if (kind == KBTP_WR_RECEIVE)
        received(w, cpu, c, wc);
    else if (kind == KBTP_WR_READ)
        kbtp_request_data_is_there(&c->requests[kbtp_wr_detail(wc->wr_id)]);
    else if (kind == KBTP_WR_REVOKE)
        kbtp_tickets_revoked(w, c);
    else if (kind == KBTP_WR_PROBE)
        kbtp_probe_answered(w, cpu, c);
    else if (kind == KBTP_WR_LAST)
        kbtp_connection_end(w, cpu, c);
}

/* Behind the timers of retention come those of probes, and those of tickets. */
static void expired_behind_retention(struct kbtp_worker *w, const struct kbtp_cpu *cpu,
                                     uint32_t timer)
{
    uint32_t connections = w->target->config.max_connections;
    if (timer < connections)
        kbtp_probe_expired(w, cpu, &w->connections[timer]);
    else
        kbtp_tickets_expired(w, timer - connections);
}

static void happened(struct kbtp_worker *w, const struct kbtp_cpu *cpu,
                     const struct rdma_event *event)
{
    if (event->kind == RDMA_EVENT_REQUEST) {
        accept_request(w, cpu, event->conn);
        return;
    }
    if (event->kind == RDMA_EVENT_TIMER) {
        if (event->conn < w->target->sessions.count)
            kbtp_retention_expired(w, cpu, event->conn);
        else
            expired_behind_retention(w, cpu, event->conn - w->target->sessions.count);
        return;
    }
    if (event->conn >= w->target->config.max_connections)
        return; /* of a connection that was rejected */
    struct kbtp_connection *c = &w->connections[event->conn];
    switch (event->kind) {
    case RDMA_EVENT_CONNECTED:
        if (c->state == KBTP_CONNECTION_ENDING) /* it was to end before it was there */
            rdma_disconnect(cpu->rdma, event->conn);
        break;
    case RDMA_EVENT_REJECTED: /* the peer has gone before it was connected */
        if (kbtp_connection_serves(c))
            kbtp_count(w, KBTP_COUNT_LOST);
        forget(w, cpu, c);
        break;
    case RDMA_EVENT_DISCONNECTED:
        kbtp_connection_lost(w, cpu, c);
        break;
    case RDMA_EVENT_DRAINED:
        c->state = KBTP_CONNECTION_DRAINED;
        is_busy(w, event->conn);
        break;
    default:
        break;
    }
}

/* Of the busy ones that are left of a word. */
static struct kbtp_connection *lowest(const struct kbtp_worker *w, uint32_t word, uint64_t rest)
{
    return &w->connections[word * WORD_BITS + (uint32_t)__builtin_ctzll(rest)];
}

/* Completions, or when there are none an event. Returns how many were taken; `emptied`: no more
 * completions were there. */
static int take(struct kbtp_worker *w, const struct kbtp_cpu *cpu, uint32_t budget, bool *emptied)
{
    struct rdma_wc wc[BATCH];
    struct rdma_event event;
    uint32_t most = budget < BATCH ? budget : BATCH;
    int count = rdma_cq_poll(cpu->rdma, w->cq, wc, most);
    *emptied = count < (int)most;
    for (int i = 0; i < count; i++)
        completed(w, cpu, &wc[i]);
    if (count != 0)
        return count;
    count = rdma_event(cpu->rdma, &event);
    if (count == 1)
        happened(w, cpu, &event);
    return count;
}

void kbtp_retry_deferred(struct kbtp_worker *w, const struct kbtp_cpu *cpu)
{
    if (w->deferred.count == 0)
        return;
    uint32_t written = kbtp_pool_retry_all(cpu->mem, &w->target->pool, &w->deferred);
    if (w->counters)
        w->counters->values[KBTP_COUNT_FREES_WRITTEN] += written;
}

/* What others wait for needs no completion: it goes on without. */
static void leave_ring(struct kbtp_worker *w, const struct kbtp_cpu *cpu)
{
    kbtp_asks_advance(w, cpu);
    for (uint32_t i = 0; i < w->target->config.max_connections; i++)
        kbtp_requests_leave_tickets(w, cpu, &w->connections[i]);
    kbtp_retry_deferred(w, cpu);
}

static void advance(struct kbtp_worker *w, const struct kbtp_cpu *cpu, struct kbtp_connection *c,
                    uint32_t taken, bool emptied)
{
    kbtp_probe_advance(w, cpu, c);
    if (kbtp_connection_serves(c))
        kbtp_requests_advance(w, cpu, c);
    if (kbtp_connection_serves(c))
        kbtp_tickets_advance(w, cpu, c, taken, emptied);
    else if (c->state == KBTP_CONNECTION_DRAINED)
        finish(w, cpu, c);
}

int kbtp_worker_poll(struct kbtp_worker *worker, const struct kbtp_cpu *cpu, uint32_t budget)
{
    bool emptied;
    int taken = take(worker, cpu, budget ? budget : 1, &emptied);
    if (taken < 0) {
        leave_ring(worker, cpu);
        return taken;
    }
    kbtp_asks_advance(worker, cpu);
    for (uint32_t word = 0; word < busy_words(worker->target); word++)
        for (uint64_t rest = worker->busy[word]; rest != 0; rest &= rest - 1) {
            struct kbtp_connection *c = lowest(worker, word, rest);
            advance(worker, cpu, c, (uint32_t)taken, emptied);
            if (!kbtp_connection_is_busy(worker, c))
                worker->busy[word] &= ~(rest & -rest);
        }
    kbtp_retentions_advance(worker, cpu);
    kbtp_retry_deferred(worker, cpu);
    return taken;
}

void kbtp_worker_stop(struct kbtp_worker *worker, const struct kbtp_cpu *cpu)
{
    worker->stopping = 1;
    kbtp_retentions_stop(worker, cpu);
    for (uint32_t i = 0; i < worker->target->config.max_connections; i++)
        kbtp_connection_end(worker, cpu, &worker->connections[i]);
}

bool kbtp_worker_idle(const struct kbtp_worker *worker)
{
    for (uint32_t i = 0; i < worker->target->config.max_connections; i++)
        if (worker->connections[i].state != KBTP_CONNECTION_UNUSED)
            return false;
    return worker->deferred.count == 0 && kbtp_retentions_releases(worker) == 0;
}

/* ---- looking ----------------------------------------------------------------------------- */

static void look_at_connection(const struct kbtp_worker *w, const struct kbtp_connection *c,
                               struct kbtp_worker_look *look)
{
    look->connections++;
    look->loads += c->loads_count;
    look->probes += c->probe != KBTP_PROBING_NOT;
    look->drained += c->state == KBTP_CONNECTION_DRAINED;
    for (uint32_t n = 0; n < c->order_count; n++) {
        const struct kbtp_request *request = kbtp_nth_request(w, c, n);
        look->requests += request->stage != KBTP_STAGE_DONE; /* a GOODBYE, until drained */
        look->tickets += request->stage == KBTP_STAGE_TICKET || request->stage == KBTP_STAGE_ASKING;
        look->reads += request->stage == KBTP_STAGE_READING;
        look->locked += request->stage == KBTP_STAGE_LOCKED;
        look->leaving += request->stage == KBTP_STAGE_RELEASE;
        look->hellos +=
            request->stage == KBTP_STAGE_READY && c->state == KBTP_CONNECTION_OPEN && n == 0;
    }
}

void kbtp_worker_look(const struct kbtp_worker *worker, struct kbtp_worker_look *look)
{
    *look = (struct kbtp_worker_look){.deferred = worker->deferred.count,
                                      .releases = kbtp_retentions_releases(worker)};
    for (uint32_t i = 0; i < worker->target->config.max_connections; i++)
        if (worker->connections[i].state != KBTP_CONNECTION_UNUSED)
            look_at_connection(worker, &worker->connections[i], look);
}

bool kbtp_worker_waits(const struct kbtp_worker *worker)
{
    struct kbtp_worker_look look = {.deferred = worker->deferred.count,
                                    .releases = kbtp_retentions_releases(worker)};
    for (uint32_t word = 0; word < busy_words(worker->target); word++)
        for (uint64_t rest = worker->busy[word]; rest != 0; rest &= rest - 1)
            look_at_connection(worker, lowest(worker, word, rest), &look);
    return look.deferred || look.tickets || look.locked || look.hellos || look.releases ||
           look.leaving || look.drained;
}

uint32_t kbtp_worker_deferred(const struct kbtp_worker *worker)
{
    return worker->deferred.count;
}

bool kbtp_worker_usage(const struct kbtp_worker *worker, uint32_t session, uint32_t *usage)
{
    for (uint32_t i = 0; i < worker->target->config.max_connections; i++) {
        const struct kbtp_connection *c = &worker->connections[i];
        if (c->has_session && c->session == session) {
            *usage = c->usage;
            return true;
        }
    }
    return false;
}
