/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * LOAD as a chain (ref/chain_load.h): an initiator sends LOADs to a target whose CPU does nothing.
 * Every order of steps, the pieces of every DMA in any order, ends with the octets that the
 * software target sends for the same request over the same table and blocks. And what the program
 * rests on is needed: without it, some order of steps ends otherwise.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bare_world.h"
#include "chain_hosts.h"
#include "chain_load_software.h"
#include "ref/chain_load.h"
#include "sim/explore.h"
#include "sim/read_file.h"
#include "sim/rnic.h"
#include "sim/timed/costs.h"
#include "tests/run.h"

#define REQUESTS 2u
#define RUNS 2u
#define INITIATOR_OCTETS 320u
#define RECEIVE_AT(i) (64u * (i))
#define DATA_AT(i) (128u + SOFTWARE_BLOCK * (i))
#define CHAIN_OCTETS 24576u      /* kbtp_chain_octets(), and what is lost by aligning it */
#define DATA_TO UINT64_C(0x7000) /* Tagged Offset of the initiator's memory */

/* ---- the world --------------------------------------------------------------------------- */

struct chain_test {
    struct kbtp_message requests[REQUESTS];
    uint32_t count;
    bool pipelined; /* both are sent before an answer is there */
    enum sim_ordering ordering;
    enum sim_dma_order dma_order;
    uint32_t fetched_ahead; /* work requests of a queue; 0: 2 */
    bool atomic_big_endian;
    bool fields_little_endian;
    bool every_step;               /* no step is taken at once */
    bool by_chance;                /* walks instead of all orders: what is wrong is found soon */
    const struct sim_costs *costs; /* one run in time (SIM_TIMED) instead */
    /* What is wrong with the program; may be NULL. */
    void (*spoil)(struct kbtp_chain_wr *wrs, uint32_t which);
    uint32_t which;
};

/* What A remembers: the answers. */
struct asker {
    uint32_t sent, answered;
    uint8_t completions[REQUESTS][KBTP_COMPLETION_OCTETS];
    uint8_t data[REQUESTS][SOFTWARE_BLOCK];
    uint32_t invalidated[REQUESTS]; /* STags, as the completions of receives say */
};

static const struct chain_test *running;
static struct software_answer expected[REQUESTS];
static struct sim_world *world;
static char *memory_of_a;
static struct rdma_region region_of_a, region_of_data; /* the same memory */
static uint32_t cq_a, cq_b, conn_a, conn_b;
static struct kbtp_chain chain;
static struct kbtp_chain_program program;
static struct kbtp_chain_wr wrs[KBTP_LOAD_WRS];
static struct mem native;
static struct kbtp_cpu cpu; /* of set-up */

static void send_request(struct sim_agent *agent, uint32_t i, uint16_t flags)
{
    struct kbtp_message message = running->requests[i];
    uint8_t octets[KBTP_REQUEST_MAX_OCTETS];
    message.operands.data.stag = region_of_data.stag;
    message.operands.data.tagged_offset = DATA_TO + DATA_AT(i);
    int length = kbtp_wire_encode(&message, false, octets, sizeof octets);
    struct rdma_sge sge = {octets, (uint32_t)length, 0};
    struct rdma_wr send = {
        .op = RDMA_SEND, .flags = flags | RDMA_INLINE, .sges = &sge, .sge_count = 1};
    CU_ASSERT_EQUAL(rdma_post_send(&agent->rdma, conn_a, &send, 1), 0);
}

static int ask(struct sim_agent *agent, void *private, uint32_t argument)
{
    struct asker *p = private;
    struct rdma_wc wc;
    (void)argument;
    if (p->sent == p->answered || (running->pipelined && p->sent < running->count)) {
        send_request(agent, p->sent++, 0);
        return 0;
    }
    if (rdma_cq_poll(&agent->rdma, cq_a, &wc, 1) != 1)
        return 0;
    uint32_t i = p->answered++;
    if (wc.status != RDMA_OK || wc.length != KBTP_COMPLETION_OCTETS)
        return 0; /* zeros are nobody's answer */
    p->invalidated[i] = wc.flags & RDMA_WC_INVALIDATED ? wc.imm : 0;
    mem_read(&agent->mem, p->completions[i], memory_of_a + RECEIVE_AT(i), KBTP_COMPLETION_OCTETS);
    mem_read(&agent->mem, p->data[i], memory_of_a + DATA_AT(i), SOFTWARE_BLOCK);
    return 0;
}

static bool asks(const void *private)
{
    return ((const struct asker *)private)->answered < running->count;
}

static int do_nothing(struct sim_agent *agent, void *private, uint32_t argument)
{
    (void)agent, (void)private, (void)argument;
    return 0;
}

static bool never(const void *private)
{
    (void)private;
    return false;
}

static const struct sim_program asker_program = {.private_size = sizeof(struct asker),
                                                 .max_accesses = 64,
                                                 .poll = ask,
                                                 .ended = bare_ended,
                                                 .choices = bare_choices,
                                                 .due = asks};
static const struct sim_program idle_program = {.private_size = 8,
                                                .max_accesses = 1,
                                                .poll = do_nothing,
                                                .ended = bare_ended,
                                                .choices = bare_choices,
                                                .due = never};

/* I-29. */
static uint32_t stag_taken_back(uint32_t i)
{
    return running->requests[i].header.flags & KBTP_FLAG_INVALIDATE ? region_of_data.stag : 0;
}

/* Asked in every quiescent state: is everything there that must be, octet for octet? */
static bool judge(struct sim_world *w, char *why, size_t size)
{
    const struct asker *p = sim_cpu_private(&w->agents[0]);
    (void)why, (void)size;
    for (uint32_t i = 0; i < running->count; i++) {
        if (i >= p->answered) {
            if (expected[i].answered)
                sim_violate(w, "answered", "request %u has no answer", i);
            else if (memory_of_a[DATA_AT(i)] != (char)0xee)
                sim_violate(w, "as-software", "request %u wrote data without an answer", i);
            return false;
        }
        if (!expected[i].answered)
            sim_violate(w, "as-software", "request %u is answered", i);
        else if (memcmp(p->completions[i], expected[i].completion, KBTP_COMPLETION_OCTETS) != 0)
            sim_violate(w, "as-software", "completion %u differs", i);
        else if (memcmp(p->data[i], expected[i].data, SOFTWARE_BLOCK) != 0)
            sim_violate(w, "as-software", "data %u differ", i);
        else if (p->invalidated[i] != stag_taken_back(i))
            sim_violate(w, "as-software", "STag %x is taken back by %u", p->invalidated[i], i);
    }
    return false;
}

static const struct sim_world_ops ops = {
    .wrote = bare_wrote, .published = bare_published, .open_requests = judge};

static void add_hosts(bool big_endian_fields, uint32_t max_sge)
{
    const struct sim_rnic_config config = {.ordering = running->ordering,
                                           .bits = SIM_RNIC_BITS | SIM_RNIC_CHAIN_BITS,
                                           .max_message = 64,
                                           .max_inline = 48,
                                           .max_reads = 2,
                                           .regions = 12,
                                           .chain_first = 0xfffffff8u,
                                           .wqe_big_endian = big_endian_fields,
                                           .atomic_memory_big_endian = running->atomic_big_endian};
    CU_ASSERT_EQUAL_FATAL(sim_cpu_add(world, "A", SIM_AGENT_CPU, &asker_program), 0);
    CU_ASSERT_EQUAL_FATAL(sim_cpu_add(world, "T", SIM_AGENT_CPU, &idle_program), 1);
    static const char *const rnics[] = {"A-rnic", "T-rnic"};
    chain_hosts(world, rnics, &config, running->fetched_ahead ? running->fetched_ahead : 2,
                max_sge);
}

static void connect(struct rdma *a, struct rdma *t)
{
    struct rdma_event event;
    struct rdma_sge sges[REQUESTS];
    struct rdma_wr receives[REQUESTS];
    struct rdma_conn_config config = {.send_depth = 2, .recv_depth = 2, .max_inline = 48};
    for (uint32_t i = 0; i < REQUESTS; i++) {
        sges[i] = (struct rdma_sge){memory_of_a + RECEIVE_AT(i), 64, region_of_a.lkey};
        receives[i] = (struct rdma_wr){.wr_id = i, .sges = &sges[i], .sge_count = 1};
    }
    config.max_sge = 1;
    world->direct = true;
    CU_ASSERT_EQUAL_FATAL(rdma_listen(t, ""), 0);
    CU_ASSERT_EQUAL_FATAL(rdma_connect(a, "", &config, receives, REQUESTS, NULL, 0, &conn_a), 0);
    CU_ASSERT_EQUAL_FATAL(rdma_event(t, &event), 1);
    conn_b = event.conn;
    struct rdma_caps caps;
    rdma_caps(t, &caps);
    config.max_sge = caps.max_sge;
    CU_ASSERT_EQUAL_FATAL(rdma_accept(t, conn_b, &config, NULL, 0, NULL, 0), 0);
    CU_ASSERT_EQUAL_FATAL(rdma_event(a, &event), 1);
    CU_ASSERT_EQUAL_FATAL(rdma_event(t, &event), 1);
    world->direct = false;
}

/* What the software target has, in the memory of this one. No chain may write there. */
static void copy_memory(struct kbtp_chain_config *config)
{
    static uint8_t entries[SOFTWARE_HANDLES * KBTP_ENTRY_OCTETS];
    static uint8_t blocks[SOFTWARE_BLOCKS * SOFTWARE_BLOCK];
    char *table = sim_segment_new(&world->arena, "table", sizeof entries, SIM_CONST);
    char *pool = sim_segment_new(&world->arena, "blocks", sizeof blocks, SIM_CONST);
    char *lookup =
        sim_segment_new(&world->arena, "lookup", KBTP_CHAIN_LOAD_LOOKUP_OCTETS, SIM_CONST);
    CU_ASSERT_FATAL(table && pool && lookup);
    software_memory(entries, blocks);
    memcpy(table, entries, sizeof entries);
    memcpy(pool, blocks, sizeof blocks);
    CU_ASSERT_EQUAL_FATAL(kbtp_chain_load_fill(&cpu, lookup), 0);
    CU_ASSERT_EQUAL_FATAL(rdma_chain_reg_strided(cpu.rdma, table, SOFTWARE_HANDLES,
                                                 KBTP_ENTRY_OCTETS, KBTP_CHAIN_LOAD_STRIDE,
                                                 RDMA_REMOTE_READ, &config->table),
                          0);
    CU_ASSERT_EQUAL_FATAL(rdma_reg(cpu.rdma, lookup, KBTP_CHAIN_LOAD_LOOKUP_OCTETS,
                                   RDMA_REMOTE_READ, 0, &config->lookup),
                          0);
    CU_ASSERT_EQUAL_FATAL(
        rdma_reg(cpu.rdma, pool, sizeof blocks, 0, SOFTWARE_FIRST_OFFSET, &config->pool), 0);
}

static struct sim_scenario scenario;

/* Up to the chain itself. */
static void open_hosts(const struct chain_test *test, bool big_endian_fields, uint32_t max_sge,
                       struct kbtp_chain_config *config)
{
    running = test;
    world = calloc(1, sizeof *world);
    CU_ASSERT_PTR_NOT_NULL_FATAL(world);
    scenario.machine.tear = 8;
    scenario.machine.store_buffer = 4;
    scenario.machine.dma_order = test->dma_order;
    world->scenario = &scenario;
    world->ops = &ops;
    world->stepping.private_steps = !test->every_step;
    CU_ASSERT_EQUAL_FATAL(sim_arena_open(&world->arena, 1 << 22), 0);
    add_hosts(big_endian_fields, max_sge);
    struct rdma *a = &world->agents[0].rdma;
    cpu = (struct kbtp_cpu){&native, &world->agents[1].rdma};
    memory_of_a = bare_segment(world, "initiator", INITIATOR_OCTETS, 1);
    memset(memory_of_a + DATA_AT(0), 0xee, SOFTWARE_BLOCK * REQUESTS);
    CU_ASSERT_EQUAL_FATAL(
        rdma_reg(a, memory_of_a, INITIATOR_OCTETS, RDMA_LOCAL_WRITE, 0, &region_of_a), 0);
    CU_ASSERT_EQUAL_FATAL(rdma_reg(a, memory_of_a, INITIATOR_OCTETS,
                                   RDMA_LOCAL_WRITE | RDMA_REMOTE_WRITE, DATA_TO, &region_of_data),
                          0);
    CU_ASSERT_EQUAL_FATAL(rdma_cq_create(a, 8, &cq_a), 0);
    CU_ASSERT_EQUAL_FATAL(rdma_cq_create(cpu.rdma, 8, &cq_b), 0);
    connect(a, cpu.rdma);
    *config = (struct kbtp_chain_config){.conn = conn_b, .runs = RUNS};
    copy_memory(config);
    CU_ASSERT_EQUAL_FATAL(kbtp_chain_load_for(software_sessions(), SOFTWARE_ASKER,
                                              SOFTWARE_FIRST_HANDLE, wrs, &program),
                          0);
    config->memory = sim_region_new(&world->arena, "chain", CHAIN_OCTETS, 0);
    CU_ASSERT_PTR_NOT_NULL_FATAL(config->memory);
    CU_ASSERT_FATAL(kbtp_chain_octets(&cpu, &program, RUNS) <= CHAIN_OCTETS - KBTP_CHAIN_SCRATCH);
}

static void open_world(const struct chain_test *test)
{
    struct kbtp_chain_config config;
    open_hosts(test, !test->fields_little_endian, 16, &config);
    /* Aligned to what a run takes. */
    config.memory =
        (char *)config.memory +
        (KBTP_CHAIN_SCRATCH - (uintptr_t)config.memory % KBTP_CHAIN_SCRATCH) % KBTP_CHAIN_SCRATCH;
    if (test->spoil)
        test->spoil(wrs, test->which);
    CU_ASSERT_EQUAL_FATAL(kbtp_chain_init(&cpu, &chain, &program, &config), 0);
    for (uint32_t i = 0; i < RUNS; i++)
        CU_ASSERT_EQUAL_FATAL(kbtp_chain_post(&cpu, &chain, &program), 0);
}

/* ---- exploring --------------------------------------------------------------------------- */

static uint64_t states, simulated_ns;

/* What of `answered` is false was said of the chain: the software answers all. */
static struct sim_violation explore(const struct chain_test *test, enum sim_result *result)
{
    struct sim_report report;
    open_world(test);
    sim_cpu_start(world);
    sim_arena_seal(&world->arena);
    world->arena.undo_used = world->arena.undo_start = 0;
    struct sim_explore options = {.mode = test->by_chance ? SIM_RANDOM : SIM_EXHAUSTIVE,
                                  .seed = 1,
                                  .runs = getenv("SLOW") ? 200 : 2000,
                                  .check_commute = test->every_step};
    if (test->costs)
        options = (struct sim_explore){.mode = SIM_TIMED, .runs = 1, .costs = test->costs};
    CU_ASSERT_EQUAL(sim_explore(world, &options, &report), 0);
    CU_ASSERT_PTR_NULL(sim_arena_check(&world->arena));
    CU_ASSERT(report.result == SIM_VIOLATION || report.quiescent != 0);
    *result = report.result;
    states = report.states;
    simulated_ns = report.simulated_ns;
    if (getenv("RNIC_STATES"))
        fprintf(stderr, "%llu states, depth %u, %llu quiescent, %.1f s, %s\n",
                (unsigned long long)report.states, report.depth_max,
                (unsigned long long)report.quiescent, report.seconds,
                report.result == SIM_VIOLATION ? report.violation.text : "");
    sim_report_free(&report);
    sim_world_free(world);
    return report.violation;
}

static struct kbtp_message load(uint32_t handle, uint16_t generation, uint32_t length)
{
    return (struct kbtp_message){.header = {.version = KBTP_WIRE_VERSION,
                                            .opcode = KBTP_OP_LOAD,
                                            .request_id = UINT64_C(0xa1a2a3a4a5a6a7a8) + handle,
                                            .handle = SOFTWARE_FIRST_HANDLE + handle,
                                            .generation = generation},
                                 .operands = {.data = {.length = length}}};
}

/* The chain answers as the software does, or not at all. */
static void expect_as_software(struct chain_test *test, bool answered)
{
    enum sim_result result;
    for (uint32_t i = 0; i < test->count; i++) {
        software_ask(&test->requests[i], &expected[i]);
        CU_ASSERT(expected[i].answered);
        expected[i].answered = answered;
    }
    struct sim_violation violation = explore(test, &result);
    CU_ASSERT_EQUAL(result, SIM_OK);
    if (violation.property)
        fprintf(stderr, "\n%s: %s\n", violation.property, violation.text);
}

/* ---- what is answered -------------------------------------------------------------------- */

static const struct answered {
    uint32_t handle;
    uint16_t generation;
    uint16_t status;
    uint32_t length;
    uint16_t flags;
} answered[] = {
    {SEALED_16, 2, KBTP_STATUS_OK, 16, 0},
    {SEALED_16, 0, KBTP_STATUS_OK, 16, 0},
    {SEALED_7, 2, KBTP_STATUS_OK, 7, 0},
    {SEALED_0, 0, KBTP_STATUS_OK, 0, 0},
    {SEALED_64, 2, KBTP_STATUS_OK, 64, 0},
    {BOUND_TWICE, 4, KBTP_STATUS_OK, 8, 0},
    {BOUND_TWICE, 2, KBTP_STATUS_STALE_GENERATION, 8, 0},
    {SEALED_16, 0x0200, KBTP_STATUS_STALE_GENERATION, 16, 0},
    {UNBOUND, 0, KBTP_STATUS_NOT_VALID, 16, 0},
    {FREED, 3, KBTP_STATUS_NOT_VALID, 8, 0},
    {FREED, 2, KBTP_STATUS_STALE_GENERATION, 8, 0},
    {UNSEALED_16, 2, KBTP_STATUS_NOT_SEALED, 16, 0},
    {UNSEALED_16, 0, KBTP_STATUS_NOT_SEALED, 99, 0}, /* which is said before TOO_LARGE */
    {0x10000, 0, KBTP_STATUS_INVALID_HANDLE, 16, 0},
    {0x10000 + SEALED_16, 7, KBTP_STATUS_INVALID_HANDLE, 16, 0},
    {UNSEALED_16, 2, KBTP_STATUS_OK, 16, KBTP_FLAG_ALLOW_UNSEALED},
    {SEALED_16, 2, KBTP_STATUS_OK, 16, KBTP_FLAG_ALLOW_UNSEALED},
    {UNBOUND, 0, KBTP_STATUS_NOT_VALID, 16, KBTP_FLAG_ALLOW_UNSEALED},
    {SEALED_16, 2, KBTP_STATUS_OK, 16, KBTP_FLAG_INVALIDATE},
    {SEALED_16, 1, KBTP_STATUS_STALE_GENERATION, 16, KBTP_FLAG_INVALIDATE},
    {UNSEALED_16, 0, KBTP_STATUS_OK, 16, KBTP_FLAG_ALLOW_UNSEALED | KBTP_FLAG_INVALIDATE},
};

/* R-EXEC-01, R-GEN-02. R-LOAD-01 to -04, -06, R-VAL-03, -10, R-FLAG-05. */
static void as_software(enum sim_ordering ordering)
{
    const size_t count = 2 * (sizeof answered / sizeof *answered);
    for (size_t i = 0; i < count; i += getenv("SLOW") ? 16 : 1) { /* of each byte order */
        const struct answered *a = &answered[i / 2];
        struct chain_test test = {.requests = {load(a->handle, a->generation, a->length)},
                                  .count = 1,
                                  .ordering = ordering,
                                  .atomic_big_endian = i % 2};
        test.requests[0].header.flags = a->flags;
        expect_as_software(&test, true);
        CU_ASSERT_EQUAL(expected[0].completion[23], a->status);
    }
}

static void as_software_rdmap(void)
{
    as_software(SIM_ORDERING_RDMAP);
}

static void as_software_infiniband(void)
{
    as_software(SIM_ORDERING_INFINIBAND);
}

/* In time: the same answer, and what a LOAD takes. docs/validation.md has this figure. */
static void in_time(void)
{
    char error[900], *text;
    size_t length;
    CU_ASSERT_FATAL(sim_read_file(NIC, 1u << 20, &text, &length, error, sizeof error) == 0);
    struct sim_cost_model *model = sim_cost_model_parse(NIC, text, length, error, sizeof error);
    CU_ASSERT_PTR_NOT_NULL_FATAL(model);
    struct chain_test test = {.requests = {load(SEALED_16, 2, 16), load(SEALED_16, 2, 16)},
                              .count = 1,
                              .ordering = SIM_ORDERING_INFINIBAND,
                              .every_step = true,
                              .fetched_ahead = 16,
                              .costs = &model->costs};
    expect_as_software(&test, true);
    uint64_t one_ns = simulated_ns;
    test.count = 2;
    expect_as_software(&test, true);
    printf("| LOAD of 16 octets by the chain | %llu |\n",
           (unsigned long long)(simulated_ns - one_ns));
    sim_cost_model_free(model);
    free(text);
}

/* ---- more than one request --------------------------------------------------------------- */

static struct chain_test two(bool pipelined, enum sim_ordering ordering)
{
    return (struct chain_test){.requests = {load(SEALED_16, 2, 16), load(BOUND_TWICE, 0, 8)},
                               .count = 2,
                               .pipelined = pipelined,
                               .ordering = ordering};
}

/* R-VAL-01: answers come in the order of the requests, each with its own Request ID. */
static void one_after_the_other(void)
{
    struct chain_test test = two(false, SIM_ORDERING_RDMAP);
    expect_as_software(&test, true);
    test = two(false, SIM_ORDERING_INFINIBAND);
    expect_as_software(&test, true);
    /* One that is refused does not disturb the next. */
    test.requests[0] = load(UNBOUND, 0, 16);
    expect_as_software(&test, true);
}

/* Both are on the way at once. One order of pieces: with any, there are millions of states. */
static void pipelined(void)
{
    struct chain_test test = two(true, SIM_ORDERING_RDMAP);
    test.dma_order = SIM_DMA_DESCENDING;
    expect_as_software(&test, true);
    test.ordering = SIM_ORDERING_INFINIBAND;
    expect_as_software(&test, true);
    test.by_chance = true;
    test.dma_order = SIM_DMA_ANY;
    expect_as_software(&test, true);
    test.ordering = SIM_ORDERING_RDMAP;
    expect_as_software(&test, true);
}

/* ---- what changes nothing ---------------------------------------------------------------- */

/* Without private steps; and with more fetched ahead. */
static void searched_otherwise(void)
{
    struct chain_test test = {.requests = {load(SEALED_16, 2, 16)}, .count = 1, .every_step = true};
    expect_as_software(&test, true);
    test.ordering = SIM_ORDERING_INFINIBAND;
    expect_as_software(&test, true);
    test =
        (struct chain_test){.requests = {load(SEALED_16, 2, 16)}, .count = 1, .fetched_ahead = 16};
    expect_as_software(&test, true);
    CU_ASSERT(states > 10000);
}

/* Fields of work requests in the other order: octets of one lie apart, there are more pieces. */
static void little_endian_fields(void)
{
    struct chain_test test = {.requests = {load(SEALED_16, 2, 16)},
                              .count = 1,
                              .dma_order = SIM_DMA_DESCENDING,
                              .fields_little_endian = true};
    expect_as_software(&test, true);
    test.requests[0] = load(BOUND_TWICE, 2, 8);
    expect_as_software(&test, true);
    test.dma_order = SIM_DMA_ANY;
    test.by_chance = true;
    expect_as_software(&test, true);
}

/* ---- what is not answered ---------------------------------------------------------------- */

static void not_such_a_request(void)
{
    struct kbtp_message messages[] = {
        load(SEALED_16, 2, 15), load(SEALED_16, 2, 17), load(SEALED_16, 2, 0),
        load(SEALED_16, 2, 16), load(SEALED_16, 2, 16), load(SEALED_16, 2, 16),
    };
    messages[3].header.flags = KBTP_FLAG_SEAL;
    messages[4].header.flags = 0x8000; /* unknown ones: software ignores them */
    messages[5].header.opcode = KBTP_OP_STORE;
    messages[5].header.handle = SOFTWARE_FIRST_HANDLE + 16; /* INVALID_HANDLE: not the peer's */
    for (size_t i = 0; i < sizeof messages / sizeof *messages; i++) {
        struct chain_test test = {.requests = {messages[i]}, .count = 1};
        expect_as_software(&test, false);
        test.ordering = SIM_ORDERING_INFINIBAND;
        expect_as_software(&test, false);
    }
}

/* ---- what is needed ---------------------------------------------------------------------- */

static void no_fence(struct kbtp_chain_wr *program_wrs, uint32_t which)
{
    program_wrs[which].flags &= (uint16_t)~RDMA_FENCE;
}

/* Ends otherwise in some order of steps. */
static bool is_found(enum sim_ordering ordering, void (*spoil)(struct kbtp_chain_wr *, uint32_t),
                     uint32_t which)
{
    struct kbtp_message requests[] = {load(SEALED_16, 2, 16), load(SEALED_16, 0, 16),
                                      load(SEALED_16, 2, 16), load(BOUND_TWICE, 2, 8)};
    bool found = false;
    requests[2].header.flags = KBTP_FLAG_INVALIDATE;
    for (int i = 0; i < 4 && !found; i++) {
        enum sim_result result;
        struct chain_test test = {.requests = {requests[i]},
                                  .count = 1,
                                  .ordering = ordering,
                                  .fetched_ahead = 16,
                                  .by_chance = true,
                                  .spoil = spoil,
                                  .which = which};
        software_ask(&test.requests[0], &expected[0]);
        explore(&test, &result);
        found = result == SIM_VIOLATION;
    }
    return found;
}

static void every_fence_is_needed(void)
{
    uint32_t fences = 0;
    for (uint32_t i = 0; i < KBTP_LOAD_WRS; i++) {
        if ((kbtp_chain_load.wrs[i].flags & RDMA_FENCE) == 0)
            continue;
        fences++;
        bool found = is_found(SIM_ORDERING_RDMAP, no_fence, i);
        CU_ASSERT(found);
        if (!found)
            fprintf(stderr, "\nthe FENCE of work request %u is not missed\n", i);
    }
    CU_ASSERT_EQUAL(fences, 8);
}

static void no_fences(struct kbtp_chain_wr *program_wrs, uint32_t which)
{
    (void)which;
    for (uint32_t i = 0; i < KBTP_LOAD_WRS; i++)
        no_fence(program_wrs, i);
}

static void enable_all(struct kbtp_chain_wr *program_wrs, uint32_t which)
{
    program_wrs[which].number = KBTP_LOAD_LOOKUP + 1;
}

/* It waits for one completion less. */
static void wait_for_less(struct kbtp_chain_wr *program_wrs, uint32_t which)
{
    program_wrs[which].number--;
}

static void parts_are_needed(void)
{
    static const enum sim_ordering orderings[] = {SIM_ORDERING_RDMAP, SIM_ORDERING_INFINIBAND};
    static const uint32_t waits[] = {KBTP_LOAD_WAIT_RECEIVE, KBTP_LOAD_WAIT_1, KBTP_LOAD_WAIT_2,
                                     KBTP_LOAD_WAIT_3};
    for (int i = 0; i < 2; i++) {
        CU_ASSERT(is_found(orderings[i], no_fences, 0));
        CU_ASSERT(is_found(orderings[i], enable_all, KBTP_LOAD_ENABLE_1));
        CU_ASSERT(is_found(orderings[i], enable_all, KBTP_LOAD_ENABLE_2));
        for (int j = 0; j < 4; j++)
            CU_ASSERT(is_found(orderings[i], wait_for_less, waits[j]));
    }
}

static void no_check(struct kbtp_chain_wr *program_wrs, uint32_t which)
{
    memset(program_wrs[which].mask, 0, sizeof program_wrs[which].mask);
}

/* Every check of the program decides about some request. */
static void every_check_is_needed(void)
{
    static const struct {
        uint32_t check;
        uint32_t handle;
        uint16_t generation;
        uint32_t length;
        uint16_t flags;
        bool is_answered;
    } checks[] = {
        {KBTP_LOAD_CHECK_HEADER, SEALED_16, 2, 16, 0x8000, false},
        {KBTP_LOAD_CHECK_UNSEALED, UNSEALED_16, 2, 16, 0, true},
        {KBTP_LOAD_CHECK_INVALIDATE, SEALED_16, 2, 16, 0, true},
        {KBTP_LOAD_CHECK_HANDLE, 0x10000, 0, 16, 0, true},
        {KBTP_LOAD_CHECK_LENGTH, SEALED_16, 2, 17, 0, false},
        {KBTP_LOAD_CHECK_GENERATION, SEALED_16, 1, 16, 0, true},
        {KBTP_LOAD_CHECK_ANY, SEALED_16, 1, 16, 0, true},
    };
    for (size_t i = 0; i < sizeof checks / sizeof *checks; i++) {
        enum sim_result result;
        struct chain_test test = {
            .requests = {load(checks[i].handle, checks[i].generation, checks[i].length)},
            .count = 1,
            .spoil = no_check,
            .which = checks[i].check};
        test.requests[0].header.flags = checks[i].flags;
        software_ask(&test.requests[0], &expected[0]);
        expected[0].answered = checks[i].is_answered;
        explore(&test, &result);
        CU_ASSERT_EQUAL(result, SIM_VIOLATION);
        test.spoil = NULL;
        explore(&test, &result);
        CU_ASSERT_EQUAL(result, SIM_OK);
    }
}

/* ---- from plain code --------------------------------------------------------------------- */

static void open_direct(const struct chain_test *test)
{
    open_world(test);
    world->direct = true;
}

/* Sends request 0 of `running`, and expects it to be answered so; or not at all. */
static void ask_directly(uint32_t receive)
{
    struct rdma *a = &world->agents[0].rdma;
    struct rdma_wc wc;
    memset(memory_of_a + DATA_AT(0), 0xee, SOFTWARE_BLOCK);
    send_request(&world->agents[0], 0, RDMA_SIGNALED);
    CU_ASSERT_EQUAL(rdma_cq_poll(a, cq_a, &wc, 1), 1);
    CU_ASSERT_EQUAL(wc.op, RDMA_SEND);
    CU_ASSERT_EQUAL(rdma_cq_poll(a, cq_a, &wc, 1), expected[0].answered);
    if (!expected[0].answered)
        return;
    char *at = memory_of_a + RECEIVE_AT(receive);
    CU_ASSERT_EQUAL(wc.length, KBTP_COMPLETION_OCTETS);
    CU_ASSERT_EQUAL(memcmp(at, expected[0].completion, KBTP_COMPLETION_OCTETS), 0);
    CU_ASSERT_EQUAL(memcmp(memory_of_a + DATA_AT(0), expected[0].data, SOFTWARE_BLOCK), 0);
    struct rdma_sge sge = {at, 64, region_of_a.lkey};
    struct rdma_wr wr = {.wr_id = receive, .sges = &sge, .sge_count = 1};
    CU_ASSERT_EQUAL(rdma_post_recv(a, conn_a, &wr, 1), 0);
}

/*
 * Every request again and again on one connection: runs use places, scratch memory and receives of
 * earlier ones, and what those patched is as it was. Credits are given anew when the CPU looks.
 */
static void runs_follow_each_other(void)
{
    static struct chain_test test;
    uint32_t runs = 0, done;
    test = (struct chain_test){.count = 1};
    open_direct(&test);
    CU_ASSERT_EQUAL(kbtp_chain_post(&cpu, &chain, &program), -ENOMEM);
    for (uint32_t round = 0; round < 3; round++)
        for (size_t i = 0; i < sizeof answered / sizeof *answered; i++) {
            const struct answered *a = &answered[i];
            if (a->flags & KBTP_FLAG_INVALIDATE)
                continue; /* there is one STag */
            test.requests[0] = load(a->handle, a->generation, a->length + (round == 1));
            test.requests[0].header.flags = a->flags;
            bool as_long = round != 1 || a->status != KBTP_STATUS_OK;
            software_ask(&test.requests[0], &expected[0]);
            expected[0].answered = as_long;
            static uint32_t receive;
            receive = runs == 0 ? 0 : receive;
            ask_directly(receive);
            receive ^= as_long;
            CU_ASSERT_EQUAL(kbtp_chain_done(&cpu, &chain, &done), 0);
            CU_ASSERT_EQUAL(done, ++runs);
            struct rdma_wc wc;
            CU_ASSERT_EQUAL(rdma_cq_poll(cpu.rdma, cq_b, &wc, 1), 1); /* the receive */
            CU_ASSERT_EQUAL(wc.wr_id, runs - 1);
            CU_ASSERT_EQUAL(kbtp_chain_post(&cpu, &chain, &program), 0);
        }
    sim_world_free(world);
}

/* A stop that is said in chain_load.h: the queue fails, and nothing is sent. */
static void beyond_the_table(void)
{
    static struct chain_test test;
    uint32_t done;
    test = (struct chain_test){.requests = {load(SOFTWARE_HANDLES, 0, 16)}, .count = 1};
    open_direct(&test);
    expected[0].answered = false;
    ask_directly(0);
    CU_ASSERT_EQUAL(kbtp_chain_done(&cpu, &chain, &done), -EIO);
    CU_ASSERT_EQUAL(kbtp_chain_post(&cpu, &chain, &program), -EIO);
    test.requests[0] = load(SEALED_16, 2, 16);
    ask_directly(0);
    CU_ASSERT_EQUAL((uint8_t)memory_of_a[DATA_AT(0)], 0xee);
    sim_world_free(world);
}

/* A message that ends early: Length stays what no block has. */
static void too_short(void)
{
    static struct chain_test test;
    uint32_t done;
    test = (struct chain_test){.requests = {load(SEALED_16, 2, 16)}, .count = 1};
    open_direct(&test);
    uint8_t octets[KBTP_REQUEST_MAX_OCTETS];
    int length = kbtp_wire_encode(&test.requests[0], false, octets, sizeof octets);
    struct rdma_sge sge = {octets, (uint32_t)length - 1, 0};
    struct rdma_wr send = {.op = RDMA_SEND, .flags = RDMA_INLINE, .sges = &sge, .sge_count = 1};
    struct rdma_wc wc;
    CU_ASSERT_EQUAL(rdma_post_send(&world->agents[0].rdma, conn_a, &send, 1), 0);
    CU_ASSERT_EQUAL(rdma_cq_poll(&world->agents[0].rdma, cq_a, &wc, 1), 0);
    CU_ASSERT_EQUAL(kbtp_chain_done(&cpu, &chain, &done), 0);
    CU_ASSERT_EQUAL(done, 1);
    sim_world_free(world);
}

static void ending(void)
{
    static struct chain_test test;
    struct rdma_event event;
    struct rdma_wc wc;
    test = (struct chain_test){.requests = {load(SEALED_16, 2, 16)}, .count = 1};
    open_direct(&test);
    CU_ASSERT_EQUAL(rdma_disconnect(cpu.rdma, conn_b), 0);
    CU_ASSERT_EQUAL(rdma_event(cpu.rdma, &event), 1);
    for (uint32_t i = 0; i < RUNS; i++)
        CU_ASSERT_EQUAL(rdma_cq_poll(cpu.rdma, cq_b, &wc, 1), 1); /* receives */
    CU_ASSERT_EQUAL(rdma_event(cpu.rdma, &event), 1);
    CU_ASSERT_EQUAL(event.kind, RDMA_EVENT_DRAINED);
    CU_ASSERT_EQUAL(rdma_destroy(cpu.rdma, conn_b), 0);
    CU_ASSERT_EQUAL(kbtp_chain_end(&cpu, &chain), 0);
    CU_ASSERT_EQUAL(kbtp_chain_end(&cpu, &chain), -EINVAL);
    sim_world_free(world);
}

/* ---- what is refused --------------------------------------------------------------------- */

static void refused_by_init(void)
{
    static struct chain_test test;
    struct kbtp_chain_config config;
    struct kbtp_chain_wr some[KBTP_LOAD_WRS];
    struct kbtp_chain_program other;
    CU_ASSERT_EQUAL(kbtp_chain_load_for(software_sessions(), SOFTWARE_ASKER, 0x4000, some, &other),
                    -EINVAL);
    test = (struct chain_test){.count = 1};
    open_hosts(&test, true, 16, &config);
    config.memory = (char *)config.memory + 8;
    CU_ASSERT_EQUAL(kbtp_chain_init(&cpu, &chain, &program, &config), -EINVAL);
    config.memory = (char *)config.memory - 8;
    config.runs = 0;
    CU_ASSERT_EQUAL(kbtp_chain_init(&cpu, &chain, &program, &config), -EINVAL);
    config.runs = RUNS;
    config.conn = 7;
    config.memory =
        (char *)config.memory +
        (KBTP_CHAIN_SCRATCH - (uintptr_t)config.memory % KBTP_CHAIN_SCRATCH) % KBTP_CHAIN_SCRATCH;
    /* Nothing is left of it: so often it would run out of queues and regions. */
    for (int i = 0; i < 20; i++)
        CU_ASSERT_EQUAL(kbtp_chain_init(&cpu, &chain, &program, &config), -EINVAL);
    config.conn = conn_b;
    CU_ASSERT_EQUAL(kbtp_chain_init(&cpu, &chain, &program, &config), 0);
    sim_world_free(world);
    test.atomic_big_endian = true;
    open_hosts(&test, false, 16, &config); /* a receive would need 17 SGEs */
    CU_ASSERT_EQUAL(kbtp_chain_init(&cpu, &chain, &program, &config), -ENOTSUP);
    sim_world_free(world);
    test.atomic_big_endian = false;
    open_hosts(&test, true, 9, &config); /* one too few */
    CU_ASSERT_EQUAL(kbtp_chain_init(&cpu, &chain, &program, &config), -ENOTSUP);
    sim_world_free(world);
}

static void open_software(void)
{
    CU_ASSERT_FATAL(software_open());
}

int main(void)
{
    static const struct test tests[] = {
        {"a software target to compare with", open_software},
        {"as the software target, RDMAP", as_software_rdmap},
        {"as the software target, InfiniBand", as_software_infiniband},
        {"in time", in_time},
        {"what is not answered", not_such_a_request},
        {"runs follow each other", runs_follow_each_other},
        {"a handle beyond the table", beyond_the_table},
        {"a message that is too short", too_short},
        {"ending", ending},
        {"refused by init", refused_by_init},
        {"the software target ends", software_close},
    };
    /* Builds that check every step take minutes for these. */
    static const struct test large[] = {
        {"a software target to compare with", open_software},
        {"one request after the other", one_after_the_other},
        {"fields in the other order", little_endian_fields},
        {"two requests at once", pipelined},
        {"searched otherwise", searched_otherwise},
        {"every FENCE is needed", every_fence_is_needed},
        {"parts are needed", parts_are_needed},
        {"every check is needed", every_check_is_needed},
        {"the software target ends", software_close},
    };
    int failed = run_tests("sim.chain_load", tests, sizeof tests / sizeof *tests);
    if (!getenv("SLOW"))
        failed |= run_tests("sim.chain_load, large", large, sizeof large / sizeof *large);
    return failed;
}
