/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/timed/load.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "sim/random.h"

#define PS 1000u
#define OUTCOMES 16u

static const uint8_t opcodes[SIM_MIX_KINDS] = {[SIM_MIX_LOAD] = KBTP_OP_LOAD,
                                               [SIM_MIX_STORE] = KBTP_OP_STORE,
                                               [SIM_MIX_ALLOC_STORE] = KBTP_OP_ALLOC_STORE,
                                               [SIM_MIX_FREE] = KBTP_OP_FREE};

static uint64_t now_ps(const struct sim_session *s)
{
    return s->instance->run->clock->now_ns * PS + sim_nic_spent_ps(s->cpu.rdma);
}

/* The first thing that is wrong is told; then nothing more happens. */
#define WRONG(run, ...) \
    do { \
        if (!*(run)->wrong) \
            (void)snprintf((run)->wrong, sizeof(run)->wrong, __VA_ARGS__); \
        (run)->clock->stopped = true; \
    } while (0)

/* ---- contents ---------------------------------------------------------------------------- */

/* What the first 16 octets of a block must be, if it is this handle's version. */
static struct sim_tag content_of(const struct sim_session *s, uint32_t handle)
{
    uint64_t who = s->ack->handle_base + handle;
    const struct sim_session *first = s->instance->sessions;
    who ^= (uint64_t)(s - first + 1) << 48 ^ (uint64_t)(s->instance->number + 1) << 24;
    return (struct sim_tag){.content = sim_mix64(who + s->versions[handle] * 0x9e3779b97f4a7c15u),
                            .length = s->instance->group->length};
}

/* Where the CPU finds the tag of a place's buffer. */
static void set_content(struct sim_session *s, uint32_t place, const struct sim_tag *tag)
{
    uint64_t spent_ps = sim_nic_spent_ps(s->cpu.rdma);
    mem_write(s->cpu.mem, s->data + (size_t)place * s->block_size, tag, sizeof *tag);
    sim_nic_run(s->cpu.rdma, spent_ps); /* who has data to store has made it before */
}

static struct sim_tag get_content(const struct sim_session *s, uint32_t place)
{
    struct sim_tag tag;
    mem_read(s->cpu.mem, &tag, s->data + (size_t)place * s->block_size, sizeof tag);
    return tag;
}

/* ---- outcomes ---------------------------------------------------------------------------- */

/* CPUs are ahead of the clock, and arrivals behind it: a time before the last one corrects what was
 * added up since. */
static void count_outstanding(struct sim_load_run *run, uint64_t at_ps, int more)
{
    if (run->phase == SIM_LOAD_MEASURES && at_ps < run->changed_ps) {
        run->outstanding_ps += more * (double)(run->changed_ps - at_ps);
    } else if (run->phase == SIM_LOAD_MEASURES) {
        run->outstanding_ps += (double)run->outstanding * (double)(at_ps - run->changed_ps);
        run->changed_ps = at_ps;
    }
    run->outstanding += (uint64_t)(int64_t)more;
}

static void check(struct sim_session *s, uint32_t place, const struct kbtp_outcome *outcome)
{
    struct sim_load_run *run = s->instance->run;
    const struct sim_place *p = &s->places[place];
    const char *name = kbtp_opcode_name(opcodes[p->kind]);
    if (outcome->error || outcome->status != KBTP_STATUS_OK) {
        const char *status =
            outcome->error ? strerror(-outcome->error) : kbtp_status_name(outcome->status);
        WRONG(run, "%s of handle 0x%" PRIx64 " by %s ended with %s", name, outcome->handle,
              s->instance->group->name, status ? status : "an unknown status");
        return;
    }
    if (p->kind == SIM_MIX_ALLOC_STORE)
        s->generations[p->handle] = outcome->generation;
    if (p->kind != SIM_MIX_LOAD)
        return;
    const struct sim_tag expected = content_of(s, p->handle), found = get_content(s, place);
    if (found.content != expected.content || outcome->generation != s->generations[p->handle] ||
        outcome->data_length != s->instance->group->length)
        WRONG(run,
              "LOAD of handle 0x%" PRIx64
              ", Generation %u, by %s said OK and brought %s (Generation "
              "%u, %" PRIu32 " octets)",
              outcome->handle, s->generations[p->handle], s->instance->group->name,
              found.content == expected.content ? "the right data" : "other data",
              outcome->generation, outcome->data_length);
    else
        run->verified_octets += outcome->data_length;
}

static void measure(struct sim_session *s, uint32_t place, const struct kbtp_outcome *outcome)
{
    struct sim_load_run *run = s->instance->run;
    const struct sim_place *p = &s->places[place];
    struct sim_load_measured *m = &run->kinds[p->kind];
    uint64_t end_ps = now_ps(s), latency_ps = end_ps - p->begun_ps;
    count_outstanding(run, end_ps, -1);
    if (run->phase != SIM_LOAD_MEASURES)
        return;
    m->statuses[outcome->status < SIM_LOAD_STATUSES ? outcome->status : KBTP_STATUS_INTERNAL]++;
    m->octets += p->kind == SIM_MIX_FREE ? 0 : s->instance->group->length;
    m->latency_ps += (double)latency_ps;
    sim_histogram_add(&m->latency, (latency_ps + PS / 2) / PS);
    if (run->watch)
        run->watch(run->context, s, place, p->begun_ps, end_ps);
}

static void think(void *context, uint64_t number)
{
    (void)number;
    sim_core_wake(context);
}

static void ended(struct sim_session *s, const struct kbtp_outcome *outcome)
{
    struct sim_instance *i = s->instance;
    uint32_t place = (uint32_t)outcome->cookie;
    struct sim_place *p = &s->places[place];
    sim_nic_spend(s->cpu.rdma, i->run->costs->outcome_ns);
    measure(s, place, outcome);
    check(s, place, outcome);
    sim_mix_ended(&s->mix, (enum sim_mix_kind)p->kind, p->handle);
    i->outstanding--;
    if (i->group->think_ns != 0 && i->run->phase == SIM_LOAD_MEASURES) {
        p->thinks_until_ns = (now_ps(s) + PS - 1) / PS + i->group->think_ns;
        sim_clock_at(i->run->clock, p->thinks_until_ns, think, &i->core, 0);
    }
    s->idle[s->idle_count++] = place;
}

/* ---- beginning --------------------------------------------------------------------------- */

static int submit(struct sim_session *s, uint32_t place)
{
    const struct sim_timed_instances *group = s->instance->group;
    struct sim_place *p = &s->places[place];
    char *data = s->data + (size_t)place * s->block_size;
    if (p->kind == SIM_MIX_LOAD && group->direct) {
        const struct kbtp_direct_load load = {.handle = s->ack->handle_base + p->handle,
                                              .into = data,
                                              .lkey = s->region.lkey,
                                              .length = group->length,
                                              .generation = s->generations[p->handle]};
        return kbtp_initiator_direct_load(s->initiator, &s->cpu, &load, place);
    }
    struct kbtp_operation operation = {.handle = s->ack->handle_base + p->handle,
                                       .opcode = opcodes[p->kind],
                                       .stag = s->region.stag,
                                       .tagged_offset =
                                           s->region.base_to + (uint64_t)(data - s->data),
                                       .length = group->length};
    bool stores = p->kind == SIM_MIX_STORE || p->kind == SIM_MIX_ALLOC_STORE;
    if (p->kind != SIM_MIX_ALLOC_STORE)
        operation.generation = s->generations[p->handle];
    if (p->kind == SIM_MIX_ALLOC_STORE && group->direct)
        operation.flags |= KBTP_FLAG_SEAL;
    if (p->kind == SIM_MIX_LOAD)
        operation.flags |= KBTP_FLAG_ALLOW_UNSEALED;
    if (stores && group->is_inline) {
        operation.flags |= KBTP_FLAG_INLINE;
        operation.data = data;
        if (s->inline_data) {
            mem_read(s->cpu.mem, s->inline_data, data, group->length);
            operation.data = s->inline_data;
        }
    }
    if (p->kind == SIM_MIX_FREE || (stores && group->is_inline))
        operation.stag = 0, operation.tagged_offset = 0;
    if (p->kind == SIM_MIX_FREE)
        operation.length = 0;
    return kbtp_initiator_submit(s->initiator, &s->cpu, &operation, place);
}

/* A place that is not thinking, or UINT32_MAX: the last one became idle last. */
static uint32_t take_place(struct sim_session *s)
{
    uint64_t now_ns = s->instance->run->clock->now_ns;
    for (uint32_t n = s->idle_count; n-- > 0;) {
        uint32_t place = s->idle[n];
        if (s->places[place].thinks_until_ns > now_ns)
            continue;
        s->idle[n] = s->idle[--s->idle_count];
        return place;
    }
    return UINT32_MAX;
}

static bool prepare(struct sim_session *s, uint32_t place)
{
    struct sim_instance *i = s->instance;
    struct sim_place *p = &s->places[place];
    uint32_t handle;
    s->mix.fills = i->run->phase == SIM_LOAD_FILLS;
    enum sim_mix_kind kind = sim_mix_next(&s->mix, i->group->weights, &i->random, &handle);
    if (kind == SIM_MIX_KINDS)
        return false;
    p->kind = kind;
    p->handle = handle;
    if (kind == SIM_MIX_STORE || kind == SIM_MIX_ALLOC_STORE)
        s->versions[handle]++;
    const struct sim_tag wrong = {0}, right = content_of(s, handle);
    if (kind != SIM_MIX_FREE)
        set_content(s, place, kind == SIM_MIX_LOAD ? &wrong : &right);
    return true;
}

/* From when its request is without outcome: from now on, or since it came by itself. */
static void count_begun(struct sim_session *s, struct sim_place *p)
{
    struct sim_instance *i = s->instance;
    if (i->group->rate == 0 || i->run->phase != SIM_LOAD_MEASURES) {
        p->begun_ps = now_ps(s);
        count_outstanding(i->run, p->begun_ps, 1);
        return;
    }
    p->begun_ps = i->arrivals[i->arrivals_first] * PS;
    i->arrivals_first = (i->arrivals_first + 1) % i->arrivals_room;
    i->arrivals_count--;
}

static bool may_begin(const struct sim_instance *i)
{
    if (i->run->phase == SIM_LOAD_FILLS)
        return true;
    return i->to_begin != 0 && (i->group->rate == 0 || i->arrivals_count != 0);
}

/* Begins one request of this session; false: none can be begun now. */
static bool begin_one(struct sim_session *s)
{
    struct sim_instance *i = s->instance;
    if (!s->ready || s->leaving || !may_begin(i) || kbtp_initiator_credits(s->initiator) == 0)
        return false;
    uint32_t place = take_place(s);
    if (place == UINT32_MAX)
        return false;
    if (!prepare(s, place)) {
        s->idle[s->idle_count++] = place;
        return false;
    }
    struct sim_place *p = &s->places[place];
    count_begun(s, p);
    sim_nic_spend(s->cpu.rdma, i->run->costs->submit_ns);
    i->outstanding++;
    if (i->run->phase == SIM_LOAD_MEASURES && i->to_begin != UINT64_MAX)
        i->to_begin--;
    int failed = submit(s, place);
    if (failed)
        WRONG(i->run, "%s of %s could not be submitted: %s", kbtp_opcode_name(opcodes[p->kind]),
              i->group->name, strerror(-failed));
    return !failed;
}

/* ---- the CPU of an instance -------------------------------------------------------------- */

static void phase_ended(struct sim_instance *i)
{
    i->done = true;
    if (++i->run->done == i->run->instances)
        i->run->phase_over(i->run->context);
}

/* Sessions come, fill and leave by themselves. */
static void advance(struct sim_session *s)
{
    struct sim_load_run *run = s->instance->run;
    enum kbtp_initiator_state state = kbtp_initiator_state(s->initiator);
    if (s->gone)
        return;
    if (s->connecting && state == KBTP_INITIATOR_READY) {
        s->connecting = false;
        s->ready = true;
        s->ack = kbtp_initiator_target(s->initiator);
    } else if (state == KBTP_INITIATOR_DOWN && s->leaving) {
        s->gone = true;
    } else if (state == KBTP_INITIATOR_DOWN) {
        int why = kbtp_initiator_why(s->initiator);
        WRONG(run, "the session of %s ended: %s", s->instance->group->name,
              why > 0 ? kbtp_status_name((uint16_t)why) : strerror(-why));
    }
}

static bool is_phase_over(const struct sim_instance *i)
{
    if (i->done || i->outstanding != 0)
        return false;
    for (uint32_t n = 0; n < i->sessions_count; n++) {
        const struct sim_session *s = &i->sessions[n];
        if (i->run->phase == SIM_LOAD_FILLS && (!s->ready || s->mix.fill != 0))
            return false;
        if (i->run->phase == SIM_LOAD_LEAVES && !s->gone)
            return false;
    }
    return i->run->phase != SIM_LOAD_MEASURES || i->to_begin == 0;
}

static void session_polls(struct sim_session *s)
{
    struct kbtp_outcome outcomes[OUTCOMES];
    int count = kbtp_initiator_poll(s->initiator, &s->cpu, outcomes, OUTCOMES);
    /* What comes of the last event is found with the next look. */
    if (count == 0 && s->leaving && !sim_nic_has_news(s->cpu.rdma))
        count = kbtp_initiator_poll(s->initiator, &s->cpu, outcomes, OUTCOMES);
    if (count < 0)
        WRONG(s->instance->run, "the completion queue of %s: %s", s->instance->group->name,
              strerror(-count));
    for (int n = 0; n < count; n++)
        ended(s, &outcomes[n]);
    advance(s);
}

/* One after the other, so that no session is behind another for long. */
static void begin_some(struct sim_instance *i, uint64_t *spent_ps)
{
    for (uint32_t refused = 0; refused < i->sessions_count && !i->run->clock->stopped;) {
        struct sim_session *s = &i->sessions[i->next];
        i->next = i->next + 1 == i->sessions_count ? 0 : i->next + 1;
        sim_nic_run(s->cpu.rdma, *spent_ps);
        refused = begin_one(s) ? 0 : refused + 1;
        *spent_ps = sim_nic_spent_ps(s->cpu.rdma);
    }
}

static uint64_t run_instance(void *context, bool *again)
{
    struct sim_instance *i = context;
    uint64_t spent_ps = 0;
    for (uint32_t n = 0; n < i->sessions_count && !i->run->clock->stopped; n++) {
        struct sim_session *s = &i->sessions[n];
        if (!sim_nic_has_news(s->cpu.rdma))
            continue;
        sim_nic_run(s->cpu.rdma, spent_ps);
        session_polls(s);
        spent_ps = sim_nic_spent_ps(s->cpu.rdma);
    }
    if (i->run->phase != SIM_LOAD_LEAVES)
        begin_some(i, &spent_ps);
    if (is_phase_over(i))
        phase_ended(i);
    *again = false;
    return spent_ps;
}

static bool instance_has_news(const void *context)
{
    const struct sim_instance *i = context;
    for (uint32_t n = 0; n < i->sessions_count; n++)
        if (sim_nic_has_news(i->sessions[n].cpu.rdma))
            return true;
    return false;
}

void sim_instance_core(struct sim_instance *i)
{
    i->core = (struct sim_core){.clock = i->run->clock,
                                .run = run_instance,
                                .has_news = instance_has_news,
                                .context = i,
                                .costs = i->run->costs};
}

/* ---- requests that come by themselves ---------------------------------------------------- */

static void plan_arrival(struct sim_instance *i);

static void arrives(void *context, uint64_t number)
{
    struct sim_instance *i = context;
    (void)number;
    if (i->run->phase != SIM_LOAD_MEASURES || i->arrivals_count == i->to_begin)
        return; /* as many wait as will be begun */
    if (i->arrivals_count == i->arrivals_room) {
        WRONG(i->run, "%s has %u operations waiting, its rate is more than can be done",
              i->group->name, i->arrivals_count);
        return;
    }
    uint32_t at = (i->arrivals_first + i->arrivals_count++) % i->arrivals_room;
    i->arrivals[at] = i->run->clock->now_ns;
    count_outstanding(i->run, i->arrivals[at] * PS, 1);
    sim_core_wake(&i->core);
    plan_arrival(i);
}

/* Exponentially distributed, from 32 bits of chance. */
static void plan_arrival(struct sim_instance *i)
{
    double u = ((double)(sim_random64(&i->random) >> 32) + 1) / 4294967296.0;
    double wait_ns = -log(u) / i->group->rate * 1e9;
    sim_clock_at(i->run->clock, i->run->clock->now_ns + (uint64_t)(wait_ns + 0.5), arrives, i, 0);
}

/* ---- phases ------------------------------------------------------------------------------ */

static void leave(struct sim_instance *i)
{
    for (uint32_t n = 0; n < i->sessions_count; n++) {
        struct sim_session *s = &i->sessions[n];
        s->leaving = true;
        sim_nic_run(s->cpu.rdma, 0);
        int failed = kbtp_initiator_goodbye(s->initiator, &s->cpu, true);
        if (failed)
            WRONG(i->run, "GOODBYE of %s: %s", i->group->name, strerror(-failed));
    }
}

void sim_instance_begin(struct sim_instance *i)
{
    i->done = false;
    if (i->run->phase == SIM_LOAD_FILLS) {
        for (uint32_t n = 0; n < i->sessions_count; n++) {
            struct sim_session *s = &i->sessions[n];
            s->connecting = true;
            sim_nic_run(s->cpu.rdma, 0);
            i->failed = kbtp_initiator_connect(s->initiator, &s->cpu);
            if (i->failed)
                WRONG(i->run, "connecting %s: %s", i->group->name, strerror(-i->failed));
        }
        return;
    }
    if (i->run->phase == SIM_LOAD_LEAVES) {
        leave(i);
        return;
    }
    i->to_begin = i->group->operations ? i->group->operations : UINT64_MAX;
    if (i->stalls) {
        i->core.stall_from_ns = i->run->clock->now_ns + i->group->stall_at_ns;
        i->core.stall_to_ns = i->core.stall_from_ns + i->group->stall_ns;
    }
    if (i->group->rate != 0)
        plan_arrival(i);
    sim_core_wake(&i->core);
}

void sim_instance_stop(struct sim_instance *i)
{
    i->to_begin = 0;
    count_outstanding(i->run, i->run->clock->now_ns * PS, -(int)i->arrivals_count);
    i->arrivals_count = 0;
    sim_core_wake(&i->core);
}
