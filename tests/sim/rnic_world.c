/* SPDX-License-Identifier: BSD-3-Clause */
#include "rnic_world.h"

#include <CUnit/Basic.h>
#include <stdlib.h>
#include <string.h>

#include "bare_world.h"
#include "sim/random.h"
#include "sim/trace.h"
#include "tests/run.h"

const enum sim_ordering rw_orderings[RW_ORDERINGS] = {SIM_ORDERING_RDMAP, SIM_ORDERING_INFINIBAND,
                                                      SIM_ORDERING_STRONG};

/* The test that runs: the callbacks below have no other way to it. */
static const struct rw_test *running;
static struct rw rw;
static struct rw_outcomes *collected;
static uint64_t *cuts;

static int poll_code(struct sim_agent *agent, void *private, uint32_t argument)
{
    struct rw_private *p = private;
    (void)argument;
    p->done = running->code[agent->index](agent, &rw, p);
    return 0;
}

static bool is_due(const void *private)
{
    return ((const struct rw_private *)private)->done == 0;
}

static const struct sim_program program = {
    .private_size = sizeof(struct rw_private),
    .max_accesses = 48,
    .poll = poll_code,
    .ended = bare_ended,
    .choices = bare_choices,
    .due = is_due,
};

/* Asked in every quiescent state: the place to look at what came out. */
static bool collect(struct sim_world *w, char *why, size_t size)
{
    struct rw_outcome now = {0};
    (void)why, (void)size;
    for (uint32_t i = 0; i < running->agents; i++) {
        const struct rw_private *p = sim_cpu_private(&w->agents[i]);
        memcpy(now.result[i], p->result, sizeof now.result[i]);
    }
    memcpy(&now.x, (const void *)rw.x, 8);
    memcpy(&now.y, (const void *)rw.y, 8);
    memcpy(&now.z, (const void *)rw.z, 8);
    memcpy(now.pair, (const void *)rw.pair, 16);
    for (uint32_t i = 0; i < collected->count; i++)
        if (memcmp(&collected->all[i], &now, sizeof now) == 0)
            return false;
    CU_ASSERT_FATAL(collected->count < RW_OUTCOMES);
    collected->all[collected->count++] = now;
    return false;
}

static void describe(struct sim_world *w, const struct sim_access *access, char *out, size_t size)
{
    if (!sim_rnic_describe(w, access, out, size) && size)
        out[0] = 0;
}

static const struct sim_world_ops ops = {
    .wrote = bare_wrote,
    .published = bare_published,
    .open_requests = collect,
    .describe = describe,
};

/* ---- the fault --------------------------------------------------------------------------- */

static uint32_t fault_enabled(const struct sim_agent *agent, struct sim_step *out)
{
    struct sim_link_info info = sim_rnic_link(agent->world, 0);
    if (*cuts == running->cuts || info.ending || !info.exists)
        return 0;
    out[0] = (struct sim_step){.kind = running->dies ? SIM_STEP_FAULT : SIM_STEP_CUT,
                               .agent = (uint8_t)agent->index};
    return 1;
}

static void fault_run(struct sim_agent *agent, const struct sim_step *step)
{
    struct sim_world *w = agent->world;
    sim_ghost_write(w, cuts, sizeof *cuts);
    ++*cuts;
    if (step->kind == SIM_STEP_CUT) {
        CU_ASSERT(sim_rnic_cut(w, 0));
    } else {
        sim_cpu_kill(&w->agents[0]);
        sim_rnic_host_dies(w, 0);
    }
    if (*cuts < running->cuts)
        return;
    sim_rnic_may_be_lost_default(w, false);
    for (uint32_t link = 0; link < sim_rnic_links(w); link++)
        sim_rnic_may_be_lost(w, link, false);
}

static bool fault_at_rest(const struct sim_agent *agent)
{
    (void)agent;
    return true;
}

static const struct sim_agent_ops fault_ops = {
    .enabled = fault_enabled, .run = fault_run, .at_rest = fault_at_rest};

/* ---- building ---------------------------------------------------------------------------- */

struct rdma_conn_config rw_config(const struct rw *w, uint32_t agent)
{
    return (struct rdma_conn_config){.cq = w->cq[agent],
                                     .send_depth = 4,
                                     .recv_depth = 2,
                                     .max_sge = 1,
                                     .max_inline = 16,
                                     .reads_out = 2,
                                     .reads_in = 2};
}

static uint32_t receives_of(uint32_t agent, struct rdma_sge sges[2], struct rdma_wr wrs[2])
{
    for (uint32_t i = 0; i < 2; i++) {
        sges[i] = (struct rdma_sge){rw.buffer[agent] + RW_RECEIVE + 16 * i, 16, rw.own[agent].lkey};
        wrs[i] = (struct rdma_wr){.wr_id = 100 + i, .sges = &sges[i], .sge_count = 1};
    }
    return running->no_receives ? 0 : 2;
}

/* Makes a connection, to the end. */
static void connect(struct sim_world *w, uint32_t from, uint32_t to, uint32_t *conn,
                    uint32_t *conn_to)
{
    struct rdma *a = &w->agents[from].rdma, *b = &w->agents[to].rdma;
    struct rdma_sge sges[2];
    struct rdma_wr wrs[2];
    struct rdma_event event;
    struct rdma_conn_config config = rw_config(&rw, from);
    uint32_t count = receives_of(from, sges, wrs);
    w->direct = true;
    CU_ASSERT_EQUAL_FATAL(rdma_connect(a, "", &config, wrs, count, NULL, 0, conn), 0);
    CU_ASSERT_EQUAL_FATAL(rdma_event(b, &event), 1);
    CU_ASSERT_EQUAL_FATAL(event.kind, RDMA_EVENT_REQUEST);
    *conn_to = event.conn;
    config = rw_config(&rw, to);
    count = receives_of(to, sges, wrs);
    CU_ASSERT_EQUAL_FATAL(rdma_accept(b, event.conn, &config, wrs, count, NULL, 0), 0);
    CU_ASSERT_EQUAL_FATAL(rdma_event(a, &event), 1);
    CU_ASSERT_EQUAL_FATAL(event.kind, RDMA_EVENT_CONNECTED);
    CU_ASSERT_EQUAL_FATAL(rdma_event(b, &event), 1);
    CU_ASSERT_EQUAL_FATAL(event.kind, RDMA_EVENT_CONNECTED);
    w->direct = false;
    rw.peer_host[from] = to != 0;
    rw.peer_host[to] = from != 0;
}

static void add_rnics(struct sim_world *w, int rnic[2])
{
    static const char *const names[] = {"host0-rnic", "host1-rnic"};
    struct sim_rnic_config config = {.ordering = running->ordering,
                                     .bits = running->bits ? running->bits : SIM_RNIC_BITS,
                                     .max_message = 16,
                                     .max_inline = 16,
                                     .max_reads = 2,
                                     .regions = 4,
                                     .windows = 2,
                                     .rnr_retry = running->rnr_retry,
                                     .seed = 1,
                                     .atomic_memory_big_endian = running->big_endian_memory,
                                     .atomic_reply_big_endian = running->big_endian_reply};
    for (int i = 0; i < 2; i++) {
        rnic[i] = sim_rnic_add(w, names[i], &config);
        CU_ASSERT_FATAL(rnic[i] >= 0);
    }
}

static void attach(struct sim_world *w, const int rnic[2])
{
    for (uint32_t i = 0; i < running->agents; i++) {
        struct sim_rnic_limits limits = {.connections = 2,
                                         .send_depth = 4,
                                         .recv_depth = 2,
                                         .max_sge = 1,
                                         .reads = 2,
                                         .timers = running->timers,
                                         .cqs = 1,
                                         .isolated = i == 0 && running->isolated,
                                         .never_disconnects = running->isolated};
        CU_ASSERT_EQUAL_FATAL(sim_rnic_attach(w, i, (uint32_t)rnic[i != 0], &limits), 0);
    }
    for (uint32_t i = 0; i + 1 < running->agents; i += 2) {
        uint32_t to = i == 2 ? 3 : 1;
        CU_ASSERT_EQUAL_FATAL(sim_rnic_route(w, i, &to, 1), 0);
    }
    if (running->third_connects) {
        const uint32_t to = 1;
        CU_ASSERT_EQUAL_FATAL(sim_rnic_route(w, 2, &to, 1), 0);
    }
}

static void register_all(struct sim_world *w)
{
    const uint32_t all = RDMA_LOCAL_WRITE | RDMA_REMOTE_READ | RDMA_REMOTE_WRITE |
                         RDMA_REMOTE_ATOMIC | RDMA_BIND_WINDOW;
    size_t octets = (size_t)((char *)(rw.pair + 2) - (char *)rw.x);
    for (uint32_t i = 0; i < running->agents; i++) {
        struct rdma *r = &w->agents[i].rdma;
        if (i < 2)
            CU_ASSERT_EQUAL_FATAL(rdma_reg(r, rw.x, octets, all, 0, &rw.shared[i]), 0);
        rw.buffer[i] = bare_segment(w, "buffer", RW_BUFFER, i + 1);
        CU_ASSERT_EQUAL_FATAL(rdma_reg(r, rw.buffer[i], RW_BUFFER,
                                       RDMA_LOCAL_WRITE | RDMA_REMOTE_WRITE | RDMA_BIND_WINDOW, 0,
                                       &rw.own[i]),
                              0);
        CU_ASSERT_EQUAL_FATAL(rdma_cq_create(r, 12, &rw.cq[i]), 0);
        CU_ASSERT_EQUAL_FATAL(rdma_listen(r, ""), 0);
    }
}

static void add_fault(struct sim_world *w)
{
    cuts = sim_segment_new(&w->arena, "ghost", 64, SIM_STATE);
    CU_ASSERT_PTR_NOT_NULL_FATAL(cuts);
    w->agents[w->agents_count] = (struct sim_agent){
        .ops = &fault_ops, .world = w, .name = SIM_ENVIRONMENT_NAME, .index = w->agents_count};
    w->agents_count++;
}

static void build(struct sim_world *w)
{
    static const char *const names[] = {"A", "B", "C", "D"};
    int rnic[2];
    CU_ASSERT_EQUAL_FATAL(sim_arena_open(&w->arena, 1 << 22), 0);
    memset(&rw, 0, sizeof rw);
    w->ops = &ops;
    rw.x = bare_segment(w, "x", 8, 0);
    rw.y = bare_segment(w, "y", 8, 0);
    rw.z = bare_segment(w, "z", 8, 0);
    rw.pair = bare_segment(w, "pair", 16, 0);
    for (uint32_t i = 0; i < running->agents; i++)
        CU_ASSERT_FATAL(sim_cpu_add(w, names[i], SIM_AGENT_CPU, &program) >= 0);
    add_rnics(w, rnic);
    attach(w, rnic);
    register_all(w);
    if (running->cuts != 0) {
        add_fault(w);
        sim_rnic_may_be_lost_default(w, true);
    }
    if (!running->unconnected) {
        connect(w, 0, 1, &rw.conn[0], &rw.conn[1]);
        if (running->third_connects)
            connect(w, 2, 1, &rw.conn[2], &rw.second);
        else if (running->agents == 4)
            connect(w, 2, 3, &rw.conn[2], &rw.conn[3]);
    }
    if (running->checker)
        w->checkers[w->checkers_count++] = running->checker;
    if (running->set_up)
        running->set_up(w, &rw);
    sim_cpu_start(w);
    sim_arena_seal(&w->arena);
    w->arena.undo_used = w->arena.undo_start = 0;
}

/* ---- words ------------------------------------------------------------------------------- */

static void check_describe(void *context, const struct sim_access *access)
{
    char words[200] = "";
    bool described = sim_rnic_describe(context, access, words, sizeof words);
    CU_ASSERT_EQUAL(described, access->kind >= SIM_POST);
    CU_ASSERT_EQUAL(words[0] != 0, described);
    CU_ASSERT_PTR_NULL(strchr(words, '?'));
}

static void check_words(const struct sim_world *w, const struct sim_step *step)
{
    char words[64];
    struct sim_step parsed;
    const struct sim_agent *agent = &w->agents[step->agent];
    sim_step_print(w, step, words, sizeof words);
    if (!sim_step_parse(w, words, &parsed) || memcmp(&parsed, step, sizeof parsed) != 0)
        CU_FAIL("a step does not come back from its words");
    if (agent->ops->cost)
        CU_ASSERT_EQUAL(agent->ops->cost(agent, step) == SIM_COST_NONE,
                        step->kind == SIM_STEP_EXPIRE);
}

/* Some way through the world: all steps that are enabled have words, and all accesses, too. */
static void walk(struct sim_world *w, uint64_t chance)
{
    struct sim_step steps[SIM_MAX_STEPS];
    size_t mark = sim_arena_mark(&w->arena);
    w->observe = check_describe;
    w->observe_context = w;
    for (int i = 0; i < 100; i++) {
        uint32_t count = sim_world_enabled(w, steps);
        for (uint32_t j = 0; j < count; j++)
            check_words(w, &steps[j]);
        if (count == 0 || !sim_world_step(w, &steps[sim_random_below(&chance, count)]))
            break;
    }
    w->observe = NULL;
    w->violation.property = NULL;
    sim_arena_undo(&w->arena, mark);
}

void rw_explore(const struct rw_test *test, struct rw_outcomes *outcomes)
{
    struct sim_scenario scenario = {
        .machine = {.memory = test->memory,
                    .store_buffer = test->store_buffer ? test->store_buffer : 4,
                    .tear = test->tear ? test->tear : 8,
                    .dma_order = test->dma_order}};
    struct sim_world *w = calloc(1, sizeof *w);
    CU_ASSERT_PTR_NOT_NULL_FATAL(w);
    memset(outcomes, 0, sizeof *outcomes);
    running = test;
    collected = outcomes;
    w->scenario = &scenario;
    w->stepping = (struct sim_stepping){.private_steps = test->private_steps};
    build(w);
    uint64_t hash = w->arena.hash;
    for (uint64_t i = 0; i < 10 && !w->violation.property; i++)
        walk(w, i);
    struct sim_explore options = {.mode = SIM_EXHAUSTIVE, .check_commute = test->check_commute};
    if (test->costs)
        options = (struct sim_explore){.mode = SIM_TIMED, .runs = 1, .costs = test->costs};
    CU_ASSERT_EQUAL(sim_explore(w, &options, &outcomes->report), 0);
    CU_ASSERT_EQUAL(w->arena.hash, hash);
    if (outcomes->report.result == SIM_OK)
        CU_ASSERT_PTR_NULL(sim_arena_check(&w->arena));
    sim_report_free(&outcomes->report);
    sim_world_free(w);
}

bool rw_same(const struct rw_outcomes *a, const struct rw_outcomes *b)
{
    uint32_t found = 0;
    for (uint32_t i = 0; i < a->count; i++)
        for (uint32_t j = 0; j < b->count; j++)
            found += memcmp(&a->all[i], &b->all[j], sizeof a->all[i]) == 0;
    return found == a->count && a->count == b->count;
}

static void expect_ok(const struct rw_outcomes *o)
{
    CU_ASSERT_EQUAL(o->report.result, SIM_OK);
    if (o->report.result == SIM_VIOLATION)
        fprintf(stderr, "\n%s: %s\n", o->report.violation.property, o->report.violation.text);
}

void rw_run(struct rw_test test, struct rw_outcomes *outcomes)
{
    static struct rw_outcomes all;
    test.check_commute = true;
    test.private_steps = false;
    rw_explore(&test, &all);
    expect_ok(&all);
    test.private_steps = true;
    rw_explore(&test, outcomes);
    expect_ok(outcomes);
    CU_ASSERT(rw_same(outcomes, &all));
    if (getenv("RNIC_STATES"))
        fprintf(stderr, "%llu states, %llu with private steps as choices, %u outcomes\n",
                (unsigned long long)outcomes->report.states, (unsigned long long)all.report.states,
                outcomes->count);
}

bool rw_has(const struct rw_outcomes *o, uint32_t agent, uint64_t r0, uint64_t r1)
{
    for (uint32_t i = 0; i < o->count; i++)
        if (o->all[i].result[agent][0] == r0 && o->all[i].result[agent][1] == r1)
            return true;
    return false;
}

/* ---- for the functions ------------------------------------------------------------------- */

int rw_post(struct sim_agent *a, const struct rw *w, struct rdma_wr *wr, const void *at,
            uint32_t octets)
{
    uint32_t host = a->index != 0;
    const char *place = at;
    bool own = place >= w->buffer[a->index] && place < w->buffer[a->index] + RW_BUFFER;
    struct rdma_sge sge = {(void *)(uintptr_t)at, octets,
                           own ? w->own[a->index].lkey : w->shared[host].lkey};
    wr->sges = &sge;
    wr->sge_count = 1;
    return rdma_post_send(&a->rdma, w->conn[a->index], wr, 1);
}

struct rdma_wr rw_remote(const struct sim_agent *a, const struct rw *w, uint16_t op,
                         const mem64 *at, uint16_t flags)
{
    return (struct rdma_wr){.op = op,
                            .flags = flags,
                            .remote_to = (uint64_t)((const char *)at - (const char *)w->x),
                            .remote_stag = w->shared[w->peer_host[a->index]].stag};
}

int rw_write(struct sim_agent *a, const struct rw *w, const mem64 *to, uint64_t value,
             uint16_t flags)
{
    struct rdma_wr wr = rw_remote(a, w, RDMA_WRITE, to, flags | RDMA_INLINE);
    return rw_post(a, w, &wr, &value, sizeof value);
}

int rw_send(struct sim_agent *a, const struct rw *w, uint64_t value, uint16_t flags)
{
    struct rdma_wr wr = {.op = RDMA_SEND, .flags = flags | RDMA_INLINE};
    return rw_post(a, w, &wr, &value, sizeof value);
}

int rw_read(struct sim_agent *a, const struct rw *w, const mem64 *from, uint32_t sink,
            uint16_t flags)
{
    struct rdma_wr wr = rw_remote(a, w, RDMA_READ, from, flags);
    return rw_post(a, w, &wr, w->buffer[a->index] + sink, 8);
}

int rw_fetch_add(struct sim_agent *a, const struct rw *w, const mem64 *at, uint64_t add,
                 uint64_t mask, uint32_t sink, uint16_t flags)
{
    struct rdma_wr wr = rw_remote(a, w, RDMA_FETCH_ADD, at, flags);
    wr.fetch_add.add = add;
    wr.fetch_add.mask = mask;
    return rw_post(a, w, &wr, w->buffer[a->index] + sink, 8);
}

bool rw_poll(struct sim_agent *a, const struct rw *w, struct rdma_wc *wc)
{
    return rdma_cq_poll(&a->rdma, w->cq[a->index], wc, 1) == 1;
}

bool rw_completed(struct sim_agent *a, const struct rw *w, uint32_t op)
{
    struct rdma_wc wc;
    if (!rw_poll(a, w, &wc))
        return false;
    CU_ASSERT_EQUAL(wc.status, RDMA_OK);
    CU_ASSERT_EQUAL(wc.op, op);
    return true;
}

bool rw_take(struct sim_agent *a, const struct rw *w, uint32_t op, uint32_t at, uint64_t *word)
{
    if (!rw_completed(a, w, op))
        return false;
    *word = rw_word(a, w, at);
    return true;
}

bool rw_take_status(struct sim_agent *a, const struct rw *w, struct rw_private *p)
{
    struct rdma_wc wc;
    if (!rw_poll(a, w, &wc))
        return false;
    p->result[0] = 1u + wc.status;
    return true;
}

bool rw_event(struct sim_agent *a, struct rdma_event *event)
{
    return rdma_event(&a->rdma, event) == 1;
}

uint64_t rw_word(struct sim_agent *a, const struct rw *w, uint32_t at)
{
    uint64_t value;
    mem_read(&a->mem, &value, w->buffer[a->index] + at, sizeof value);
    return value;
}

bool rw_idle(struct sim_agent *a, const struct rw *w, struct rw_private *p)
{
    (void)a, (void)w, (void)p;
    return true;
}
