/* SPDX-License-Identifier: BSD-3-Clause */
/* RNICs and handles, completion queues, events and timers. */
#include "sim/timed/nic.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sim/random.h"
#include "sim/timed/nic_state.h"

#define FIRST_EVENTS 16u
#define FIRST_ROOM 8u /* of rings */
#define MOST_CQ (1u << 24)

/* ---- memory of the simulator ------------------------------------------------------------- */

void *nic_allocate(struct sim_nics *nics, size_t count, size_t octets)
{
    void *memory = calloc(count ? count : 1, octets ? octets : 1);
    if (memory)
        nics->memory_octets += count * octets;
    return memory;
}

void *nic_allocate_lines(struct sim_nics *nics, size_t count, size_t octets)
{
    size_t whole = (count * octets + NIC_LINE - 1) / NIC_LINE * NIC_LINE;
    void *memory = aligned_alloc(NIC_LINE, whole ? whole : NIC_LINE);
    if (memory) {
        memset(memory, 0, whole);
        nics->memory_octets += count * octets;
    }
    return memory;
}

void nic_release(struct sim_nics *nics, void *memory, size_t count, size_t octets)
{
    if (memory)
        nics->memory_octets -= count * octets;
    free(memory);
}

bool nic_ring_grow(struct sim_nics *nics, void **ring, uint32_t *room, uint32_t need,
                   uint32_t first, uint32_t count, size_t octets)
{
    uint32_t larger = *room ? *room : FIRST_ROOM;
    while (larger < need)
        larger *= 2;
    char *made = nic_allocate(nics, larger, octets);
    if (!made) {
        nics->clock->no_memory = nics->clock->stopped = true;
        return false;
    }
    for (uint32_t n = first; n != first + count; n++)
        memcpy(made + (n & (larger - 1)) * octets, (char *)*ring + (n & (*room - 1)) * octets,
               octets);
    nic_release(nics, *ring, *room, octets);
    *ring = made;
    *room = larger;
    return true;
}

/* ---- what is seen ------------------------------------------------------------------------ */

void nic_note(struct sim_nics *nics, uint64_t a, uint64_t b, uint64_t c)
{
    uint64_t digest = sim_mix64(nics->digest + 0x9e3779b97f4a7c15u + nics->clock->now_ns);
    nics->digest = sim_mix64(sim_mix64(sim_mix64(digest ^ a) ^ b) ^ c);
}

void nic_wake(struct nic_handle *h)
{
    if (h->cpu.wake)
        h->cpu.wake(h->cpu.context);
}

static bool make_room(struct nic_handle *h)
{
    uint32_t room = h->events_room ? 2 * h->events_room : FIRST_EVENTS;
    struct rdma_event *events = nic_allocate(nic_nics(h), room, sizeof *events);
    if (!events) {
        nic_nics(h)->clock->no_memory = nic_nics(h)->clock->stopped = true;
        return false;
    }
    for (uint32_t i = 0; i < h->events_count; i++)
        events[i] = h->events[(h->events_first + i) % h->events_room];
    nic_release(nic_nics(h), h->events, h->events_room, sizeof *events);
    h->events = events;
    h->events_room = room;
    h->events_first = 0;
    return true;
}

void nic_tell(struct nic_handle *h, uint32_t kind, uint32_t conn, int error,
              const void *private_data, uint32_t private_length)
{
    if (h->events_count == h->events_room && !make_room(h))
        return;
    struct rdma_event *event = &h->events[(h->events_first + h->events_count++) % h->events_room];
    *event = (struct rdma_event){
        .kind = kind, .conn = conn, .error = error, .private_length = private_length};
    if (private_length)
        memcpy(event->private_data, private_data, private_length);
    nic_note(nic_nics(h), (uint64_t)h->number << 32 | conn, kind, (uint64_t)(int64_t)error);
    nic_wake(h);
}

void nic_complete(struct nic_conn *c, const struct rdma_wc *wc, const void *at)
{
    struct nic_handle *h = c->handle;
    struct nic_cq *cq = &h->cqs[c->config.cq];
    if (cq->count == cq->depth)
        cq->overflowed = true;
    else if (cq->count < cq->room ||
             nic_ring_grow(nic_nics(h), (void **)&cq->entries, &cq->room, cq->count + 1, cq->first,
                           cq->count, sizeof *cq->entries))
        cq->entries[(cq->first + cq->count++) & (cq->room - 1)] = (struct nic_cqe){*wc, at};
    nic_note(nic_nics(h), (uint64_t)h->number << 32 | c->index, wc->wr_id,
             (uint64_t)wc->length << 32 | (uint64_t)wc->op << 8 | wc->status);
    nic_wake(h);
}

void nic_look_drained(struct nic_conn *c)
{
    if (c->state != NIC_ENDED || c->flushed != 0 || c->drained_told)
        return;
    c->drained_told = true;
    nic_tell(c->handle, RDMA_EVENT_DRAINED, c->index, 0, NULL, 0);
}

bool sim_nic_has_news(const struct rdma *handle)
{
    const struct nic_handle *h = (const struct nic_handle *)handle;
    for (uint32_t i = 0; i < h->limits.cqs; i++)
        if (h->cqs[i].count != 0)
            return true;
    return h->events_count != 0;
}

/* ---- the CPU of a handle ----------------------------------------------------------------- */

void sim_nic_attach(struct rdma *handle, const struct sim_nic_cpu *cpu)
{
    nic_handle_of(handle)->cpu = *cpu;
}

void sim_nic_run(struct rdma *handle, uint64_t spent_ps)
{
    nic_handle_of(handle)->spent_ps = spent_ps;
}

void sim_nic_spend(struct rdma *handle, double ns)
{
    nic_handle_of(handle)->spent_ps += nic_ps(ns);
}

uint64_t sim_nic_spent_ps(const struct rdma *handle)
{
    return ((const struct nic_handle *)handle)->spent_ps;
}

/* ---- net/rdma.h -------------------------------------------------------------------------- */

static void nic_caps(struct rdma *r, struct rdma_caps *caps)
{
    const struct sim_nic_config *config = &nic_nics(nic_handle_of(r))->config;
    *caps = (struct rdma_caps){.bits = config->bits,
                               .binding = config->binding,
                               .max_message = config->max_message,
                               .max_inline = config->max_inline,
                               .max_sge = SIM_NIC_SGES,
                               .max_read_sge = SIM_NIC_SGES,
                               .max_reads = config->max_reads,
                               .max_private = RDMA_MAX_PRIVATE,
                               .max_queue = config->max_queue,
                               .max_cq = MOST_CQ};
}

static int nic_cq_create(struct rdma *r, uint32_t depth, uint32_t *cq)
{
    struct nic_handle *h = nic_handle_of(r);
    uint32_t free_one = 0;
    if (depth == 0 || depth > MOST_CQ)
        return -EINVAL;
    while (free_one < h->limits.cqs && h->cqs[free_one].used)
        free_one++;
    if (free_one == h->limits.cqs)
        return -ENOMEM;
    h->cqs[free_one] = (struct nic_cq){.depth = depth, .used = true};
    *cq = free_one;
    return 0;
}

static int nic_cq_destroy(struct rdma *r, uint32_t cq)
{
    struct nic_handle *h = nic_handle_of(r);
    if (cq >= h->limits.cqs || !h->cqs[cq].used)
        return -EINVAL;
    if (h->cqs[cq].connections != 0)
        return -EBUSY;
    nic_release(nic_nics(h), h->cqs[cq].entries, h->cqs[cq].room, sizeof(struct nic_cqe));
    h->cqs[cq] = (struct nic_cq){0};
    return 0;
}

static void taken(struct nic_handle *h, const struct nic_cqe *entry)
{
    const struct rdma_wc *wc = &entry->wc;
    const struct sim_costs *costs = nic_nics(h)->costs;
    struct nic_conn *c = &h->conns[wc->conn];
    h->spent_ps += nic_ps(costs->take_ns);
    if (h->cpu.work_ns && wc->status == RDMA_OK)
        h->spent_ps += nic_ps(h->cpu.work_ns(h->cpu.context, wc->op, entry->at, wc->length));
    if (wc->status == RDMA_FLUSHED) {
        c->flushed--;
        nic_look_drained(c);
    } else if (wc->status == RDMA_OK && wc->op == RDMA_RECV && c->state == NIC_CONNECTED) {
        c->may_send = true;
    }
}

static int nic_cq_poll(struct rdma *r, uint32_t cq_number, struct rdma_wc *wc, uint32_t count)
{
    struct nic_handle *h = nic_handle_of(r);
    struct nic_cq *cq = &h->cqs[cq_number];
    uint32_t some = 0;
    h->spent_ps += nic_ps(nic_nics(h)->costs->poll_ns);
    if (cq->overflowed)
        return -EIO;
    for (; some < count && cq->count != 0; some++) {
        const struct nic_cqe *entry = &cq->entries[cq->first++ & (cq->room - 1)];
        wc[some] = entry->wc;
        cq->count--;
        taken(h, entry);
    }
    return (int)some;
}

static int nic_cq_arm(struct rdma *r, uint32_t cq, bool solicited_only)
{
    (void)cq;
    bool can = nic_nics(nic_handle_of(r))->config.bits & RDMA_CAP_SOLICITED;
    return solicited_only && !can ? -ENOTSUP : 0;
}

static int nic_event(struct rdma *r, struct rdma_event *event)
{
    struct nic_handle *h = nic_handle_of(r);
    if (h->events_count == 0)
        return 0;
    *event = h->events[h->events_first];
    h->events_first = (h->events_first + 1) % h->events_room;
    h->events_count--;
    if (event->kind == RDMA_EVENT_CONNECTED || event->kind == RDMA_EVENT_DISCONNECTED)
        h->conns[event->conn].may_send = event->kind == RDMA_EVENT_CONNECTED;
    return 1;
}

/* ---- timers ------------------------------------------------------------------------------ */

static bool expire(struct nic_handle *h, uint32_t id)
{
    if (!h->timers[id].armed)
        return false;
    h->timers[id].armed = false;
    nic_tell(h, RDMA_EVENT_TIMER, id, 0, NULL, 0);
    return true;
}

#define GENERATIONS (UINT64_C(1) << 40) /* after so many, an old one would be taken for a new one */

static void timer_expires(void *context, uint64_t number)
{
    struct nic_handle *h = context;
    uint32_t id = (uint32_t)(number / GENERATIONS);
    nic_nics(h)->timers_armed--;
    if (h->timers[id].generation % GENERATIONS == number % GENERATIONS)
        expire(h, id);
}

static int nic_timer(struct rdma *r, uint32_t id, uint64_t delay_ns)
{
    struct nic_handle *h = nic_handle_of(r);
    struct sim_nics *nics = nic_nics(h);
    if (id >= h->limits.timers)
        return -EINVAL;
    struct nic_timer *timer = &h->timers[id];
    timer->generation++;
    timer->armed = delay_ns != 0;
    if (!timer->armed)
        return 0;
    uint64_t at_ns = nic_ns(nic_now_ps(nics) + h->spent_ps);
    at_ns = delay_ns < UINT64_MAX / 2 - at_ns ? at_ns + delay_ns : UINT64_MAX / 2;
    nics->timers_armed++;
    sim_clock_at(nics->clock, at_ns, timer_expires, h,
                 id * GENERATIONS + timer->generation % GENERATIONS);
    return 0;
}

bool sim_nic_expire(struct rdma *handle, uint32_t id)
{
    struct nic_handle *h = nic_handle_of(handle);
    return id < h->limits.timers && expire(h, id);
}

uint64_t sim_nics_timers(const struct sim_nics *nics)
{
    return nics->timers_armed;
}

static int nic_random(struct rdma *r, void *octets, uint32_t length)
{
    uint8_t *out = octets;
    for (uint32_t i = 0; i < length; i++)
        out[i] = (uint8_t)(sim_random64(&nic_nics(nic_handle_of(r))->random) >> 32);
    return 0;
}

const struct rdma_ops nic_ops = {
    .caps = nic_caps,
    .reg = nic_reg,
    .dereg = nic_dereg,
    .window_alloc = nic_window_alloc,
    .window_free = nic_window_free,
    .cq_create = nic_cq_create,
    .cq_destroy = nic_cq_destroy,
    .cq_poll = nic_cq_poll,
    .cq_arm = nic_cq_arm,
    .listen = nic_listen,
    .connect = nic_connect,
    .accept = nic_accept,
    .reject = nic_reject,
    .disconnect = nic_disconnect,
    .destroy = nic_destroy,
    .event = nic_event,
    .post_send = nic_post_send,
    .post_recv = nic_post_recv,
    .timer = nic_timer,
    .random = nic_random,
};

/* ---- opening and closing ----------------------------------------------------------------- */

struct sim_nics *sim_nics_open(struct sim_wire *wire, const struct sim_costs *costs,
                               const struct sim_nic_config *config)
{
    size_t octets = sizeof(struct sim_nics) + config->nics * sizeof(struct nic);
    struct sim_nics *nics = calloc(1, octets);
    if (!nics)
        return NULL;
    nics->wire = wire;
    nics->clock = wire->clock;
    nics->costs = costs;
    nics->config = *config;
    nics->config.bits &= SIM_NIC_BITS;
    nics->random = config->seed;
    nics->memory_octets = octets;
    for (uint32_t i = 0; i < config->nics; i++) {
        nics->nics[i].nics = nics;
        nics->nics[i].index = i;
    }
    wire->arrives = nic_arrives;
    return nics;
}

struct sim_clock *sim_nics_clock(const struct sim_nics *nics)
{
    return nics->clock;
}

static void free_handle(struct nic_handle *h)
{
    for (uint32_t i = 0; h->conns && h->cqs && i < h->limits.connections; i++)
        nic_conn_free(&h->conns[i]);
    for (uint32_t i = 0; h->cqs && i < h->limits.cqs; i++)
        free(h->cqs[i].entries);
    free(h->conns);
    free(h->cqs);
    free(h->timers);
    free(h->events);
    free(h->address);
    free(h);
}

void sim_nics_close(struct sim_nics *nics)
{
    if (!nics)
        return;
    for (uint32_t i = 0; i < nics->config.nics; i++) {
        for (struct nic_handle *h = nics->nics[i].handles, *next; h; h = next) {
            next = h->next;
            free_handle(h);
        }
        nic_memory_free(&nics->nics[i]);
    }
    nic_phantoms_free(nics);
    nic_handshakes_free(nics);
    nic_flows_free(nics);
    for (struct nic_message *m = nics->messages, *next; m; m = next) {
        next = m->next;
        free(m);
    }
    free(nics);
}

struct rdma *sim_nic_handle(struct sim_nics *nics, const struct sim_nic_limits *limits)
{
    struct nic_handle *h = nic_allocate(nics, 1, sizeof *h);
    if (!h)
        return NULL;
    h->rdma.ops = &nic_ops;
    h->nic = &nics->nics[limits->nic];
    h->limits = *limits;
    h->number = nics->handles_count++;
    h->conns = nic_allocate_lines(nics, limits->connections, sizeof *h->conns);
    h->cqs = nic_allocate(nics, limits->cqs, sizeof *h->cqs);
    h->timers = nic_allocate(nics, limits->timers, sizeof *h->timers);
    if (!h->conns || !h->cqs || !h->timers) {
        free_handle(h);
        return NULL;
    }
    for (uint32_t i = 0; i < limits->connections; i++) {
        h->conns[i].handle = h;
        h->conns[i].nic = h->nic;
        h->conns[i].index = i;
    }
    h->next = h->nic->handles;
    h->nic->handles = h;
    return &h->rdma;
}

/* ---- what it was like -------------------------------------------------------------------- */

const struct sim_nic_use *sim_nic_used(const struct sim_nics *nics, uint32_t nic)
{
    return &nics->nics[nic].use;
}

uint64_t sim_nics_digest(const struct sim_nics *nics)
{
    return nics->digest;
}

uint64_t sim_nics_under_way(const struct sim_nics *nics)
{
    return nics->under_way;
}

size_t sim_nics_memory(const struct sim_nics *nics)
{
    return nics->memory_octets;
}

uint64_t sim_nics_most_under_way(const struct sim_nics *nics)
{
    return nics->most_under_way;
}

void sim_nics_watch(struct sim_nics *nics, const struct sim_nic_watch *watch)
{
    nics->watch = *watch;
}

int sim_nic_cut(struct rdma *handle, uint32_t conn)
{
    struct nic_handle *h = nic_handle_of(handle);
    if (conn >= h->limits.connections || h->conns[conn].state != NIC_CONNECTED)
        return -EINVAL;
    nic_end(&h->conns[conn], -ECONNRESET);
    return 0;
}
