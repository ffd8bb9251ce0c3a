/* SPDX-License-Identifier: BSD-3-Clause */
/* One request after the other: which, about what, and whether its outcome is what it must be. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/bench.h"
#include "cli/pattern.h"
#include "cli/real.h"

static const struct {
    uint8_t opcode;
    uint32_t access; /* of the target to the buffer */
} kinds[SIM_MIX_KINDS] = {
    [SIM_MIX_LOAD] = {KBTP_OP_LOAD, RDMA_REMOTE_WRITE},
    [SIM_MIX_STORE] = {KBTP_OP_STORE, RDMA_REMOTE_READ},
    [SIM_MIX_ALLOC_STORE] = {KBTP_OP_ALLOC_STORE, RDMA_REMOTE_READ},
    [SIM_MIX_FREE] = {KBTP_OP_FREE, 0},
};

const char *bench_kind_name(uint32_t kind)
{
    return kbtp_opcode_name(kinds[kind].opcode);
}

void bench_work_init(struct bench *b, struct bench_session *s, uint32_t *lists)
{
    for (uint32_t i = 0; i < b->depth; i++)
        s->idle[s->idle_count++] = b->depth - 1 - i;
    sim_mix_init(&s->mix, lists, b->handles, 0);
}

bool bench_is_idle(const struct bench_session *s)
{
    return !s->has_next && kbtp_initiator_outstanding(s->initiator) == 0;
}

/* ---- beginning --------------------------------------------------------------------------- */

static uint64_t key_of(const struct bench *b, const struct bench_session *s, uint32_t handle)
{
    return pattern_key(b->options->seed, s->target->handle_base + handle,
                       s->handles[handle].version);
}

/* The octets to store; or for a LOAD octets that are wrong everywhere. */
static void prepare_data(struct bench *b, struct bench_session *s, struct bench_place *p)
{
    if (!b->options->verify || p->kind == SIM_MIX_FREE)
        return;
    uint64_t key = key_of(b, s, p->handle);
    if (p->kind != SIM_MIX_LOAD)
        pattern_fill(p->data, b->length, p->holds = key);
    else if (p->holds == key)
        pattern_fill(p->data, b->length, p->holds = ~key);
}

static bool names_buffer(const struct bench *b, const struct bench_place *p)
{
    return p->kind == SIM_MIX_LOAD || (p->kind != SIM_MIX_FREE && !b->options->is_inline);
}

static struct kbtp_operation request_of(const struct bench *b, const struct bench_session *s,
                                        const struct bench_place *p)
{
    struct kbtp_operation operation = {.handle = s->target->handle_base + p->handle,
                                       .opcode = kinds[p->kind].opcode};
    if (p->kind != SIM_MIX_ALLOC_STORE)
        operation.generation = s->handles[p->handle].generation;
    if (p->kind == SIM_MIX_LOAD)
        operation.flags |= KBTP_FLAG_ALLOW_UNSEALED;
    if (p->kind != SIM_MIX_FREE)
        operation.length = b->length;
    if (!names_buffer(b, p)) {
        if (p->kind != SIM_MIX_FREE)
            operation.flags |= KBTP_FLAG_INLINE;
        operation.data = p->data;
    } else if (b->options->invalidate) {
        operation.flags |= KBTP_FLAG_INVALIDATE;
        operation.stag = p->window.stag;
        operation.tagged_offset = p->window.base_to;
    } else {
        operation.stag = b->region.stag;
        operation.tagged_offset = b->region.base_to + (uint64_t)(p->data - b->data);
    }
    return operation;
}

static int submit(struct bench *b, struct bench_session *s, struct bench_place *p)
{
    p->begun_ns = real_now_ns();
    if (b->options->invalidate && names_buffer(b, p) && !p->window.bound) {
        int failed =
            kbtp_initiator_bind(s->initiator, &s->cpu, &p->window, &b->region,
                                (uint64_t)(p->data - b->data), b->length, kinds[p->kind].access);
        if (failed)
            return failed;
    }
    struct kbtp_operation operation = request_of(b, s, p);
    return kbtp_initiator_submit(s->initiator, &s->cpu, &operation, s->next);
}

/* The next request, in a place of its own: it is to be submitted. False: none can begin now. */
static bool choose(struct bench *b, struct bench_session *s)
{
    uint32_t handle;
    if (b->to_begin == 0 || s->idle_count == 0 || kbtp_initiator_credits(s->initiator) == 0)
        return false;
    s->mix.fills = b->fills;
    enum sim_mix_kind kind = sim_mix_next(&s->mix, b->options->weights, &b->random, &handle);
    if (kind == SIM_MIX_KINDS)
        return false;
    s->next = s->idle[--s->idle_count];
    s->has_next = true;
    struct bench_place *p = &s->places[s->next];
    p->kind = kind;
    p->handle = handle;
    if (kind == SIM_MIX_ALLOC_STORE || kind == SIM_MIX_STORE)
        s->handles[handle].version++;
    prepare_data(b, s, p);
    b->to_begin--;
    return true;
}

int bench_begin(struct bench *b, struct bench_session *s)
{
    for (;;) {
        if (!s->has_next && !choose(b, s))
            return 0;
        int failed = submit(b, s, &s->places[s->next]);
        if (failed) /* the send queue is full until something completes */
            return failed == -EAGAIN ? 0 : failed;
        s->has_next = false;
    }
}

/* ---- outcomes ---------------------------------------------------------------------------- */

/* The first thing that is wrong is told; then no request begins any more. */
#define WRONG(bench, ...) \
    do { \
        if (!*(bench)->result->wrong) \
            (void)snprintf((bench)->result->wrong, sizeof(bench)->result->wrong, __VA_ARGS__); \
        (bench)->to_begin = 0; \
    } while (0)

static void check_data(struct bench *b, struct bench_session *s, struct bench_place *p)
{
    uint64_t key = key_of(b, s, p->handle);
    size_t wrong = pattern_differs(p->data, b->length, key);
    p->holds = key;
    if (wrong == b->length)
        b->result->verified_octets += b->measures ? b->length : 0;
    else
        WRONG(b,
              "LOAD of handle 0x%" PRIx64 ", Generation %u, said OK and brought other data: "
              "octet %zu of %" PRIu32 " is the first that is wrong",
              s->target->handle_base + p->handle, s->handles[p->handle].generation, wrong,
              b->length);
}

static void check_outcome(struct bench *b, struct bench_session *s, struct bench_place *p,
                          const struct kbtp_outcome *outcome)
{
    struct bench_handle *h = &s->handles[p->handle];
    const char *name = bench_kind_name(p->kind);
    uint32_t octets = p->kind == SIM_MIX_FREE ? 0 : b->length;
    if (outcome->status != KBTP_STATUS_OK) {
        const char *status = kbtp_status_name(outcome->status);
        WRONG(b, "%s of handle 0x%" PRIx64 " was answered with %s", name, outcome->handle,
              status ? status : "an unknown status");
        return;
    }
    if (p->kind == SIM_MIX_ALLOC_STORE)
        h->generation = outcome->generation;
    if (p->kind != SIM_MIX_FREE && outcome->generation != h->generation)
        WRONG(b, "%s of handle 0x%" PRIx64 " was answered with Generation %u, and it has %u", name,
              outcome->handle, outcome->generation, h->generation);
    else if (p->kind != SIM_MIX_FREE && outcome->data_length != octets)
        WRONG(b,
              "%s of handle 0x%" PRIx64 " was answered with %" PRIu32 " octets instead of %" //
              PRIu32,
              name, outcome->handle, outcome->data_length, octets);
    else if (p->kind == SIM_MIX_LOAD && b->options->verify)
        check_data(b, s, p);
}

static void count(struct bench *b, const struct bench_place *p, const struct kbtp_outcome *outcome,
                  uint64_t now_ns)
{
    struct bench_measured *m = &b->result->kinds[p->kind];
    uint32_t status = outcome->status;
    if (!b->measures)
        return;
    m->statuses[status < BENCH_STATUSES ? status : KBTP_STATUS_INTERNAL]++;
    m->octets += status == KBTP_STATUS_OK && p->kind != SIM_MIX_FREE ? b->length : 0;
    sim_histogram_add(&m->latency, now_ns - p->begun_ns);
}

int bench_ended(struct bench *b, struct bench_session *s, const struct kbtp_outcome *outcome,
                uint64_t now_ns)
{
    struct bench_place *p = &s->places[outcome->cookie];
    if (!p->revoking) {
        count(b, p, outcome, now_ns);
        check_outcome(b, s, p, outcome);
        sim_mix_ended(&s->mix, (enum sim_mix_kind)p->kind, p->handle);
    }
    /* A target that cannot takes no STag back: this side does, before the next BIND. */
    bool was_bound = p->window.bound && !p->revoking && !outcome->invalidated;
    if (was_bound && names_buffer(b, p)) {
        p->revoking = true;
        return kbtp_initiator_invalidate(s->initiator, &s->cpu, p->window.stag, outcome->cookie);
    }
    p->window.bound = 0;
    p->revoking = false;
    s->idle[s->idle_count++] = (uint32_t)outcome->cookie;
    return 0;
}
