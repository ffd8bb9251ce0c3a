/* SPDX-License-Identifier: BSD-3-Clause */
#include "chain_world.h"

#include <CUnit/Basic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bare_world.h"
#include "chain_hosts.h"
#include "sim/random.h"
#include "sim/trace.h"
#include "tests/run.h"

static const struct cw_test *running;
static const struct cw *cw_now;
static struct cw_outcomes *collected;

/* ---- CPUs -------------------------------------------------------------------------------- */

static cw_code code_of(const struct sim_agent *agent)
{
    return agent->index == 0 ? running->a : running->b;
}

static int poll_code(struct sim_agent *agent, void *private, uint32_t argument)
{
    struct cw_private *p = private;
    cw_code code = code_of(agent);
    (void)argument;
    p->done = !code || code(agent, cw_now, p);
    return 0;
}

static bool is_due(const void *private)
{
    return ((const struct cw_private *)private)->done == 0;
}

static const struct sim_program program = {.private_size = sizeof(struct cw_private),
                                           .max_accesses = 48,
                                           .poll = poll_code,
                                           .ended = bare_ended,
                                           .choices = bare_choices,
                                           .due = is_due};

/* ---- outcomes ---------------------------------------------------------------------------- */

static void look_at_queue(const struct cw *w, const struct rdma_chain_queue *queue, uint32_t i,
                          struct cw_outcome *now)
{
    struct rdma_chain_state state = {0};
    CU_ASSERT_EQUAL_FATAL(rdma_chain_state(w->b, queue, &state), 0);
    now->status[i] = state.status;
    now->completions[i] = state.completions - w->first;
}

/* Asked in every quiescent state: the place to look at what came out. */
static bool collect(struct sim_world *world, char *why, size_t size)
{
    const struct cw *w = cw_now;
    struct cw_outcome now = {0};
    (void)why, (void)size;
    for (uint32_t i = 0; i < CW_WORDS; i++)
        memcpy(&now.word[i], (const void *)w->words[i], 8);
    memcpy(now.a, ((const struct cw_private *)sim_cpu_private(&world->agents[0]))->result,
           sizeof now.a);
    memcpy(now.b, ((const struct cw_private *)sim_cpu_private(&world->agents[1]))->result,
           sizeof now.b);
    const struct rdma_chain_queue *queues[] = {&w->loop, &w->ctrl, &w->send, &w->receives};
    for (uint32_t i = 0; i < 4; i++)
        look_at_queue(w, queues[i], i, &now);
    for (uint32_t i = 0; i < collected->count; i++)
        if (memcmp(&collected->all[i], &now, sizeof now) == 0)
            return false;
    CU_ASSERT_FATAL(collected->count < CW_OUTCOMES);
    collected->all[collected->count++] = now;
    return false;
}

static const struct sim_world_ops ops = {
    .wrote = bare_wrote, .published = bare_published, .open_requests = collect};

/* ---- building ---------------------------------------------------------------------------- */

static const struct rdma_conn_config conn_config = {
    .recv_depth = 2, .max_sge = 4, .max_inline = 16, .reads_out = 2, .reads_in = 2};

static uint32_t depth_of(const struct cw_test *test)
{
    return test->send_depth ? test->send_depth : 4;
}

static void add_rnics(struct sim_world *w, const struct cw_test *test)
{
    const struct sim_rnic_config config = {.ordering = test->ordering,
                                           .bits = SIM_RNIC_BITS | SIM_RNIC_CHAIN_BITS,
                                           .max_message = 32,
                                           .max_inline = 16,
                                           .max_reads = 2,
                                           .regions = 16,
                                           .chain_first = test->first,
                                           .wqe_big_endian = test->big_endian};
    static const char *const rnics[] = {"A-rnic", "B-rnic"};
    chain_hosts(w, rnics, &config, depth_of(test), 4);
}

static void register_all(struct cw *w)
{
    const uint32_t all =
        RDMA_LOCAL_WRITE | RDMA_REMOTE_READ | RDMA_REMOTE_WRITE | RDMA_REMOTE_ATOMIC;
    static const char *const names[] = {"w0", "w1", "w2", "w3", "w4", "w5", "w6", "w7"};
    for (uint32_t i = 0; i < CW_WORDS; i++)
        w->words[i] = bare_segment(w->w, names[i], 8, 0);
    size_t octets = (size_t)((char *)(w->words[CW_WORDS - 1] + 1) - (char *)w->words[0]);
    CU_ASSERT_EQUAL_FATAL(rdma_reg(w->b, w->words[0], octets, all, 0x1000, &w->region), 0);
    w->buffer = bare_segment(w->w, "buffer", 64, 1);
    CU_ASSERT_EQUAL_FATAL(rdma_reg(w->a, w->buffer, 64, all, 0, &w->of_a), 0);
    CU_ASSERT_EQUAL_FATAL(rdma_cq_create(w->a, 8, &w->cq_a), 0);
    CU_ASSERT_EQUAL_FATAL(rdma_cq_create(w->b, 8, &w->cq_b), 0);
}

static void connect(struct cw *w)
{
    struct rdma_event event;
    struct rdma_sge sges[2];
    struct rdma_wr wrs[2];
    struct rdma_conn_config config = conn_config;
    config.send_depth = depth_of(running);
    for (uint32_t i = 0; i < 2; i++) {
        sges[i] = (struct rdma_sge){w->buffer + (size_t)16 * i, 16, w->of_a.lkey};
        wrs[i] = (struct rdma_wr){.wr_id = 1 + i, .sges = &sges[i], .sge_count = 1};
    }
    CU_ASSERT_EQUAL_FATAL(rdma_listen(w->b, ""), 0);
    w->w->direct = true;
    CU_ASSERT_EQUAL_FATAL(rdma_connect(w->a, "", &config, wrs, 2, NULL, 0, &w->conn_a), 0);
    CU_ASSERT_EQUAL_FATAL(rdma_event(w->b, &event), 1);
    w->conn_b = event.conn;
    CU_ASSERT_EQUAL_FATAL(rdma_accept(w->b, event.conn, &config, NULL, 0, NULL, 0), 0);
    CU_ASSERT_EQUAL_FATAL(rdma_event(w->a, &event), 1);
    CU_ASSERT_EQUAL_FATAL(rdma_event(w->b, &event), 1);
    CU_ASSERT_EQUAL_FATAL(event.kind, RDMA_EVENT_CONNECTED);
}

static void create(const struct cw *w, uint32_t kind, struct rdma_chain_queue *queue)
{
    struct rdma_chain_config config = {.kind = kind, .conn = w->conn_b, .depth = CW_DEPTH};
    if (kind != RDMA_CHAIN_RECV) {
        config.memory = sim_region_new(&w->w->arena, "queue", rdma_chain_octets(w->b, CW_DEPTH), 0);
        CU_ASSERT_PTR_NOT_NULL_FATAL(config.memory);
    }
    CU_ASSERT_EQUAL_FATAL(rdma_chain_create(w->b, &config, queue), 0);
    CU_ASSERT_EQUAL_FATAL(queue->first, w->first);
}

static struct sim_scenario scenario;

void cw_open(struct cw *w, const struct cw_test *test)
{
    memset(w, 0, sizeof *w);
    running = test;
    cw_now = w;
    w->w = calloc(1, sizeof *w->w);
    CU_ASSERT_PTR_NOT_NULL_FATAL(w->w);
    scenario.machine.tear = 8;
    scenario.machine.store_buffer = 4;
    scenario.machine.dma_order = test->dma_order;
    w->w->scenario = &scenario;
    w->w->ops = &ops;
    w->w->stepping.private_steps = test->private_steps;
    w->first = test->first;
    CU_ASSERT_EQUAL_FATAL(sim_arena_open(&w->w->arena, 1 << 22), 0);
    CU_ASSERT_EQUAL_FATAL(sim_cpu_add(w->w, "A", SIM_AGENT_CPU, &program), 0);
    CU_ASSERT_EQUAL_FATAL(sim_cpu_add(w->w, "B", SIM_AGENT_CPU, &program), 1);
    add_rnics(w->w, test);
    w->a = &w->w->agents[0].rdma;
    w->b = &w->w->agents[1].rdma;
    register_all(w);
    connect(w);
    create(w, RDMA_CHAIN_LOOP, &w->loop);
    create(w, RDMA_CHAIN_CTRL, &w->ctrl);
    create(w, RDMA_CHAIN_SEND, &w->send);
    create(w, RDMA_CHAIN_RECV, &w->receives);
}

void cw_close(struct cw *w)
{
    sim_world_free(w->w);
}

/* ---- exploring --------------------------------------------------------------------------- */

static void check_describe(void *context, const struct sim_access *access)
{
    char words[200] = "";
    bool described = sim_rnic_describe(context, access, words, sizeof words);
    CU_ASSERT_EQUAL(described, access->kind >= SIM_POST);
    CU_ASSERT_PTR_NULL(strchr(words, '?'));
}

/* Some way through the world: all steps that are enabled have words, and all accesses, too. */
static void walk(struct sim_world *w, uint64_t chance)
{
    struct sim_step steps[SIM_MAX_STEPS], parsed;
    size_t mark = sim_arena_mark(&w->arena);
    w->observe = check_describe;
    w->observe_context = w;
    for (int i = 0; i < 100; i++) {
        uint32_t count = sim_world_enabled(w, steps);
        for (uint32_t j = 0; j < count; j++) {
            char words[64];
            sim_step_print(w, &steps[j], words, sizeof words);
            CU_ASSERT(sim_step_parse(w, words, &parsed));
            CU_ASSERT_EQUAL(memcmp(&parsed, &steps[j], sizeof parsed), 0);
        }
        if (count == 0 || !sim_world_step(w, &steps[sim_random_below(&chance, count)]))
            break;
    }
    w->observe = NULL;
    sim_arena_undo(&w->arena, mark);
}

static void explore(const struct cw_test *test, struct cw_outcomes *outcomes, bool commute)
{
    static struct cw w;
    memset(outcomes, 0, sizeof *outcomes);
    collected = outcomes;
    cw_open(&w, test);
    w.w->direct = false;
    if (test->set_up)
        test->set_up(&w);
    sim_cpu_start(w.w);
    sim_arena_seal(&w.w->arena);
    w.w->arena.undo_used = w.w->arena.undo_start = 0;
    for (uint64_t i = 0; i < 4; i++)
        walk(w.w, i);
    struct sim_explore options = {.mode = SIM_EXHAUSTIVE, .check_commute = commute};
    if (test->costs)
        options = (struct sim_explore){.mode = SIM_TIMED, .runs = 1, .costs = test->costs};
    CU_ASSERT_EQUAL(sim_explore(w.w, &options, &outcomes->report), 0);
    CU_ASSERT_EQUAL(outcomes->report.result, SIM_OK);
    if (outcomes->report.result == SIM_VIOLATION)
        fprintf(stderr, "\n%s: %s\n", outcomes->report.violation.property,
                outcomes->report.violation.text);
    CU_ASSERT_PTR_NULL(sim_arena_check(&w.w->arena));
    sim_report_free(&outcomes->report);
    cw_close(&w);
}

void cw_run(struct cw_test test, struct cw_outcomes *outcomes)
{
    static struct cw_outcomes all;
    test.private_steps = false;
    explore(&test, &all, true);
    test.private_steps = true;
    explore(&test, outcomes, true);
    uint32_t found = 0;
    for (uint32_t i = 0; i < all.count; i++)
        for (uint32_t j = 0; j < outcomes->count; j++)
            found += memcmp(&all.all[i], &outcomes->all[j], sizeof all.all[i]) == 0;
    CU_ASSERT(found == all.count && all.count == outcomes->count);
    if (getenv("RNIC_STATES"))
        fprintf(stderr, "%llu states, %llu with private steps as choices, %u outcomes\n",
                (unsigned long long)outcomes->report.states, (unsigned long long)all.report.states,
                outcomes->count);
}

double cw_run_ns(const struct cw_test *test, struct cw_outcomes *outcomes)
{
    explore(test, outcomes, false);
    CU_ASSERT_EQUAL(outcomes->report.quiescent, 1);
    return (double)outcomes->report.simulated_ns;
}

bool cw_has(const struct cw_outcomes *o, uint32_t word, uint64_t value)
{
    for (uint32_t i = 0; i < o->count; i++)
        if (o->all[i].word[word] == value)
            return true;
    return false;
}

/* ---- for set-up -------------------------------------------------------------------------- */

void cw_put(const struct cw *w, const struct rdma_chain_queue *queue, uint32_t i,
            const struct rdma_wr *wr)
{
    CU_ASSERT_EQUAL(rdma_chain_put(w->b, queue, w->first + i, wr), 0);
}

void cw_enable(const struct cw *w, const struct rdma_chain_queue *queue, uint32_t i)
{
    CU_ASSERT_EQUAL(rdma_chain_enable(w->b, queue, w->first + i), 0);
}

struct rdma_sge cw_sge(const struct cw *w, uint32_t word)
{
    return (struct rdma_sge){w->words[word], 8, w->region.lkey};
}

uint64_t cw_to(const struct cw *w, uint32_t word)
{
    return w->region.base_to + (uint64_t)((char *)w->words[word] - (char *)w->words[0]);
}

static void put_move(const struct cw *w, uint32_t i, uint16_t op, uint32_t local, uint32_t remote,
                     uint16_t flags)
{
    struct rdma_sge sge = cw_sge(w, local);
    struct rdma_wr wr = {.wr_id = i,
                         .op = op,
                         .flags = flags,
                         .sges = &sge,
                         .sge_count = 1,
                         .remote_to = cw_to(w, remote),
                         .remote_stag = w->region.stag};
    cw_put(w, &w->loop, i, &wr);
}

void cw_put_read(const struct cw *w, uint32_t i, uint32_t from, uint32_t to, uint16_t flags)
{
    put_move(w, i, RDMA_READ, to, from, flags);
}

void cw_put_write(const struct cw *w, uint32_t i, uint32_t from, uint32_t to, uint16_t flags)
{
    put_move(w, i, RDMA_WRITE, from, to, flags);
}

void cw_put_stage(const struct cw *w, uint32_t i, const struct rdma_chain_queue *queue,
                  uint32_t count, const struct rdma_chain_queue *other, uint32_t limit)
{
    struct rdma_wr wait = {.op = RDMA_WAIT}, enable = {.op = RDMA_ENABLE};
    wait.wait.queue = queue->id;
    wait.wait.count = w->first + count;
    enable.enable.queue = other->id;
    enable.enable.count = w->first + limit;
    cw_put(w, &w->ctrl, 2 * i, &wait);
    cw_put(w, &w->ctrl, 2 * i + 1, &enable);
}
