/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Scenarios of kind protocol: values, defaults and ranges of their keys, requests, what they wait
 * for, and complaints about each. What both kinds have: test_scenario.c and test_scenario_errors.c.
 */
#include "sim/scenario.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "ref/wire_names.h"
#include "scenario_fixture.h"
#include "sim/kind.h"
#include "sim/protocol_world.h"
#include "tests/run.h"

#define REQUESTS PROTOCOL_HEAD PROTOCOL_Y PROTOCOL_X /* those of X follow, from line 12 on */

static struct sim_scenario *parse_protocol(const char *lines)
{
    char text[2048];
    snprintf(text, sizeof text, PROTOCOL_MINIMAL "%s\n", lines);
    return parse(text);
}

/* The minimal scenario with one more line, 13. */
static void refuse_protocol(const char *line, const char *expected)
{
    char text[2048];
    snprintf(text, sizeof text, PROTOCOL_MINIMAL "%s\n", line);
    refuse(text, expected);
}

static struct sim_scenario *parse_requests(const char *requests)
{
    char text[2048];
    snprintf(text, sizeof text, REQUESTS "%s", requests);
    return parse(text);
}

/*
 * A second request of X, of line 13: refused at its key (or its start without a key) with this
 * message.
 */
static void refuse_request(const char *request, const char *key, const char *message)
{
    char text[2048], expected[400], start[40];
    snprintf(start, sizeof start, "%s:", key);
    const char *place = strstr(request, start);
    snprintf(text, sizeof text, REQUESTS "      - {op: load, handle: 0}\n      - %s\n", request);
    snprintf(expected, sizeof expected, "13:%zu: initiators[1].program[1].%s: %s",
             place != NULL ? (size_t)(place - request) + 9 : 9, key, message);
    refuse(text, expected);
}

/* ---- values ------------------------------------------------------------------------------ */

static void check_request(const struct sim_request *is, const struct sim_request *expected)
{
    CU_ASSERT_EQUAL(is->op, expected->op);
    CU_ASSERT_EQUAL(is->generation, expected->generation);
    CU_ASSERT_EQUAL(is->owner, expected->owner);
    CU_ASSERT_EQUAL(is->handle, expected->handle);
    CU_ASSERT_EQUAL(is->length, expected->length);
    CU_ASSERT_EQUAL(is->after_initiator, expected->after_initiator);
    CU_ASSERT_EQUAL(is->after_request, expected->after_request);
    CU_ASSERT_EQUAL(is->expect, expected->expect);
    CU_ASSERT_EQUAL(is->inline_data, expected->inline_data);
    CU_ASSERT_EQUAL(is->seal, expected->seal);
    CU_ASSERT_EQUAL(is->allow_unsealed, expected->allow_unsealed);
    CU_ASSERT_EQUAL(is->record, expected->record);
    CU_ASSERT_EQUAL(is->invalidate, expected->invalidate);
    CU_ASSERT_EQUAL(is->release, expected->release);
}

static void test_defaults(void)
{
    struct sim_scenario *s = parse(PROTOCOL_MINIMAL);
    CU_ASSERT_EQUAL(s->kind, SIM_KIND_PROTOCOL);
    CU_ASSERT_PTR_NULL(s->title);
    check_settings(s, &(struct sim_scenario){
                          .machine.memory = SIM_MEMORY_TSO,
                          .machine.store_buffer = 4,
                          .machine.tear = 8,
                          .machine.dma_order = SIM_DMA_ANY,
                          .machine.ordering = SIM_ORDERING_RDMAP,
                          .slots = 4,
                          .blocks = 4,
                          .first_block = 0,
                          .block_size = 16,
                          .first_ticket = 0,
                          .first_generation = 1,
                          .counters = SIM_COUNTERS_MASKED,
                          .addr_le = false,
                          .protocol.handles = 2,
                          .protocol.credits = 2,
                          .protocol.max_inline = 16,
                          .protocol.losses = 0,
                          .protocol.stops = 0,
                      });
    CU_ASSERT_PTR_NULL(s->ring.allocators);
    const struct sim_protocol_part *p = &s->protocol;
    CU_ASSERT_EQUAL_FATAL(p->initiators_count, 2);
    const struct sim_initiator *x = &p->initiators[1];
    CU_ASSERT_STRING_EQUAL(x->name, "X");
    CU_ASSERT_EQUAL(x->quota, 2);
    CU_ASSERT_EQUAL(x->depth, 1);
    CU_ASSERT_EQUAL(x->reconnects, 0);
    CU_ASSERT_EQUAL_FATAL(x->workers_count, 2);
    CU_ASSERT_EQUAL(x->workers[0], 0);
    CU_ASSERT_EQUAL(x->workers[1], 1);
    CU_ASSERT_EQUAL_FATAL(x->program_count, 1);
    check_request(x->program, &(struct sim_request){.op = SIM_REQUEST_STORE,
                                                    .generation = SIM_GENERATION_ANY,
                                                    .owner = 1,
                                                    .handle = 0,
                                                    .length = 16,
                                                    .after_initiator = SIM_NOBODY});
    CU_ASSERT_EQUAL(p->initiators[0].program[1].length, 0); /* of a FREE */
    CU_ASSERT_EQUAL(s->must_reach_count, 0);
    sim_scenario_free(s);
}

#define BIT(status) (1u << KBTP_STATUS_##status)

static void check_every_request(const struct sim_initiator *x)
{
    CU_ASSERT_EQUAL_FATAL(x->program_count, 5);
    static const struct sim_request requests[] = {
        {.op = SIM_REQUEST_ALLOC_STORE,
         .handle = 2,
         .length = 24,
         .after_initiator = SIM_NOBODY,
         .inline_data = true,
         .seal = true},
        {.op = SIM_REQUEST_STORE,
         .owner = 1,
         .handle = 1,
         .length = 8192,
         .after_initiator = SIM_NOBODY,
         .expect = BIT(TOO_LARGE),
         .invalidate = true},
        {.op = SIM_REQUEST_LOAD,
         .generation = SIM_GENERATION_STALE,
         .owner = 2,
         .handle = 2,
         .length = 32,
         .after_initiator = 2,
         .after_request = 1,
         .expect = BIT(STALE_GENERATION) | BIT(NOT_VALID) | 1u << SIM_STATUS_LOST,
         .allow_unsealed = true,
         .invalidate = true},
        {.op = SIM_REQUEST_FREE,
         .generation = SIM_GENERATION_CURRENT,
         .owner = SIM_NOBODY,
         .after_request = 1},
        {.op = SIM_REQUEST_GOODBYE, .owner = SIM_NOBODY, .after_initiator = 1, .release = true},
    };
    for (size_t i = 0; i < COUNT(requests); i++)
        check_request(&x->program[i], &requests[i]);
}

static void test_every_key(void)
{
    struct sim_scenario *s = parse(EVERY_PROTOCOL_KEY);
    CU_ASSERT_STRING_EQUAL(s->title, "every key");
    check_settings(s, &(struct sim_scenario){
                          .machine.memory = SIM_MEMORY_RELAXED,
                          .machine.store_buffer = 2,
                          .machine.tear = 4,
                          .machine.dma_order = SIM_DMA_DESCENDING,
                          .machine.ordering = SIM_ORDERING_STRONG,
                          .slots = 8,
                          .blocks = 6,
                          .first_block = 100,
                          .block_size = 32,
                          .first_ticket = 0xfffffffe,
                          .first_generation = 65535,
                          .counters = SIM_COUNTERS_UNMASKED,
                          .addr_le = true,
                          .protocol.handles = 3,
                          .protocol.credits = 4,
                          .protocol.max_inline = 24,
                          .protocol.losses = 4,
                          .protocol.stops = 2,
                      });
    const struct sim_protocol_part *p = &s->protocol;
    CU_ASSERT_EQUAL_FATAL(p->workers_count, 2);
    CU_ASSERT_STRING_EQUAL(p->workers[0].name, "W0");
    CU_ASSERT_STRING_EQUAL(p->workers[1].name, "ten_letter");
    CU_ASSERT_EQUAL_FATAL(p->initiators_count, 3);
    const struct sim_initiator *x = &p->initiators[0];
    CU_ASSERT_STRING_EQUAL(x->name, "X");
    CU_ASSERT_EQUAL_FATAL(x->workers_count, 3);
    CU_ASSERT(x->workers[0] == 1 && x->workers[1] == 0 && x->workers[2] == 0);
    CU_ASSERT_EQUAL(x->quota, 4);
    CU_ASSERT_EQUAL(x->depth, 3);
    CU_ASSERT_EQUAL(x->reconnects, 2);
    check_every_request(x);
    CU_ASSERT_EQUAL(p->initiators[1].quota, 0);
    CU_ASSERT_EQUAL(p->initiators[2].program[0].length, 0);
    CU_ASSERT_EQUAL_FATAL(s->must_reach_count, 2);
    CU_ASSERT_STRING_EQUAL(s->must_reach[0], "pinned-free");
    CU_ASSERT_STRING_EQUAL(s->must_reach[1], "in-doubt");
    sim_scenario_free(s);
}

static const struct number {
    const char *key;
    size_t offset;
    uint32_t least, most;
} numbers[] = {
    {"store_buffer", offsetof(struct sim_scenario, machine.store_buffer), 1, 16},
    {"first_ticket", offsetof(struct sim_scenario, first_ticket), 0, UINT32_MAX},
    {"first_generation", offsetof(struct sim_scenario, first_generation), 1, 65535},
    {"credits", offsetof(struct sim_scenario, protocol.credits), 1, 16},
    {"max_inline", offsetof(struct sim_scenario, protocol.max_inline), 0, 4096},
    {"losses", offsetof(struct sim_scenario, protocol.losses), 0, 4},
    {"stops", offsetof(struct sim_scenario, protocol.stops), 0, 2},
    {"restarts", offsetof(struct sim_scenario, protocol.restarts), 0, 2},
};

static void test_numbers(void)
{
    char line[80], expected[128];
    for (size_t i = 0; i < COUNT(numbers); i++) {
        const struct number *n = &numbers[i];
        for (unsigned edge = 0; edge < 2; edge++) {
            uint32_t value = edge == 0 ? n->least : n->most;
            snprintf(line, sizeof line, "%s: %u", n->key, value);
            struct sim_scenario *s = parse_protocol(line);
            CU_ASSERT_EQUAL(*(uint32_t *)((char *)s + n->offset), value);
            sim_scenario_free(s);
        }
        for (unsigned edge = n->least == 0; edge < 2; edge++) {
            uint64_t value = edge == 0 ? n->least - UINT64_C(1) : n->most + UINT64_C(1);
            snprintf(line, sizeof line, "%s: %ju", n->key, (uintmax_t)value);
            snprintf(expected, sizeof expected, "13:1: %s: '%ju' is not a number from %u to %u, ",
                     n->key, (uintmax_t)value, n->least, n->most);
            refuse_protocol(line, expected);
        }
    }
}

static void test_ordering(void)
{
    static const char *const words[] = {"rdmap", "infiniband", "strong"};
    char line[40];
    for (unsigned i = 0; i < COUNT(words); i++) {
        snprintf(line, sizeof line, "ordering: %s", words[i]);
        struct sim_scenario *s = parse_protocol(line);
        CU_ASSERT_EQUAL(s->machine.ordering, i);
        sim_scenario_free(s);
    }
    refuse_protocol("ordering: weak",
                    "13:1: ordering: 'weak' is not known here, write rdmap, infiniband or strong");
}

static void test_block_size(void)
{
    static const char *const legal[] = {"8", "0x10", "4096", "1KiB", "4KiB"};
    static const uint32_t octets[] = {8, 16, 4096, 1024, 4096};
    char line[60], expected[160];
    for (size_t i = 0; i < COUNT(legal); i++) {
        snprintf(line, sizeof line, "block_size: %s", legal[i]);
        struct sim_scenario *s = parse_protocol(line);
        CU_ASSERT_EQUAL(s->block_size, octets[i]);
        CU_ASSERT_EQUAL(s->protocol.max_inline, octets[i]);
        CU_ASSERT_EQUAL(s->protocol.initiators[0].program[0].length, octets[i]);
        sim_scenario_free(s);
    }
    static const char *const illegal[] = {"0", "4", "12", "4104", "5KiB", "4GiB", "-8", "x", ""};
    for (size_t i = 0; i < COUNT(illegal); i++) {
        snprintf(line, sizeof line, "block_size: %s", illegal[i]);
        snprintf(expected, sizeof expected,
                 "13:1: block_size: '%s' is not a multiple of 8 from 8 to 4096 octets, write one",
                 illegal[i]);
        refuse_protocol(line, expected);
    }
    sim_scenario_free(parse_protocol("first_block: 0xFFFFFFFF\nblock_size: 4096"));
}

static void test_handles(void)
{
    static const struct refusal refusals[] = {
        {"kind: protocol\nslots: 2\nblocks: 2\nworkers: [{name: W}]\n",
         "1:1: handles: is required and missing, add it"},
        {"kind: protocol\nslots: 2\nblocks: 2\nhandles: 0\nworkers: [{name: W}]\n" PROTOCOL_Y,
         "4:1: handles: '0' is not a number from 1 to 64, "},
        {"kind: protocol\nslots: 2\nblocks: 2\nhandles: 65\nworkers: [{name: W}]\n" PROTOCOL_Y,
         "4:1: handles: '65' is not a number from 1 to 64, "},
    };
    refuse_each(refusals, COUNT(refusals));
}

/* ---- agents ------------------------------------------------------------------------------ */

#define PROGRAM "program: [{op: free, handle: 0}]"

static void refuse_agents(const char *agents, const char *expected)
{
    char text[2048];
    snprintf(text, sizeof text, "kind: protocol\nslots: 4\nblocks: 4\nhandles: 1\n%s\n", agents);
    refuse(text, expected);
}

static void test_names(void)
{
    static const struct refusal refusals[] = {
        {"workers: [{name: eleven_long}]\ninitiators: [{name: X, workers: [W], quota: 1, " PROGRAM
         "}]",
         "5:12: workers[0].name: 'eleven_long' is not a name, write 1 to 10 of A-Z a-z 0-9 _ -"},
        {"workers: [{name: W}]\ninitiators: [{name: target-rnic, workers: [W], quota: 1, " PROGRAM
         "}]",
         "6:15: initiators[0].name: 'target-rnic' is a name for an RNIC, choose one without "
         "'-rnic' at its end"},
        {"workers: [{name: X-rnic}]\ninitiators: [{name: X, workers: [X-rnic], quota: 1, " PROGRAM
         "}]",
         "5:12: workers[0].name: 'X-rnic' is a name for an RNIC, choose one without '-rnic'"},
        {"workers: [{name: fault}]\ninitiators: [{name: X, workers: [fault], quota: 1, " PROGRAM
         "}]",
         "5:12: workers[0].name: 'fault' is the environment, choose another name"},
        {"workers: [{name: W}]\ninitiators: [{name: W, workers: [W], quota: 1, " PROGRAM "}]",
         "6:15: initiators[0].name: 'W' is also workers[0].name, choose another name"},
        {"workers: [{name: W}, {name: W}]\ninitiators: [{name: X, workers: [W], quota: 1, " PROGRAM
         "}]",
         "5:23: workers[1].name: 'W' is also workers[0].name, choose another name"},
        {"workers: [{name: W}]\ninitiators: [{name: a.b, workers: [W], quota: 1, " PROGRAM "}]",
         "6:15: initiators[0].name: 'a.b' is not a name, write 1 to 10"},
    };
    for (size_t i = 0; i < COUNT(refusals); i++)
        refuse_agents(refusals[i].text, refusals[i].expected);
}

static void test_initiators(void)
{
    static const struct refusal refusals[] = {
        {"workers: []\ninitiators: [{name: X}]", "5:1: workers: has no entry, list 1 to 4"},
        {"atomics: adapter\nrestarts: 1\nworkers: [{name: W}]\n"
         "initiators: [{name: X, workers: [W], quota: 1, " PROGRAM "}]",
         "6:1: restarts: not with atomics: adapter, leave one of them out"},
        {"workers: [{name: W}]\ninitiators: []", "6:1: initiators: has no entry, list 1 to 6"},
        {"workers: [{name: W}]", "1:1: initiators: is required and missing, add it"},
        {"workers: [{name: W}]\ninitiators: [{name: X, quota: 1, " PROGRAM "}]",
         "6:14: initiators[0].workers: is required and missing, add it"},
        {"workers: [{name: W}]\ninitiators: [{name: X, workers: [W], " PROGRAM "}]",
         "6:14: initiators[0].quota: is required and missing, add it"},
        {"workers: [{name: W}]\ninitiators: [{name: X, workers: [W], quota: 1}]",
         "6:14: initiators[0].program: is required and missing, add it"},
        {"workers: [{name: W}]\ninitiators: [{name: X, workers: [], quota: 1, " PROGRAM "}]",
         "6:24: initiators[0].workers: has no entry, list 1 to 5"},
        {"workers: [{name: W}]\ninitiators: [{name: X, workers: [W, W, W, W, W, W], quota: 1}]",
         "6:49: initiators[0].workers[5]: is one entry too many, list at most 5"},
        {"workers: [{name: W}]\ninitiators: [{name: X, workers: [W], quota: 1, program: []}]",
         "6:48: initiators[0].program: has no entry, list 1 to 32"},
        {"workers: [{name: W}, {name: V}]\n"
         "initiators: [{name: X, workers: [V, U], quota: 1, " PROGRAM "}]",
         "6:37: initiators[0].workers[1]: 'U' is not a worker, write one of W, V"},
        {"workers: [{name: W}]\ninitiators: [{name: X, workers: [X], quota: 1, " PROGRAM "}]",
         "6:34: initiators[0].workers[0]: 'X' is not a worker, write one of W"},
        {"workers: [{name: W}]\ninitiators: [{name: X, workers: [W], quota: none, " PROGRAM "}]",
         "6:38: initiators[0].quota: 'none' is not a number from 0 to 64, "},
        {"workers: [{name: W}]\ninitiators: [{name: X, workers: [W], quota: 5, " PROGRAM "}]",
         "6:38: initiators[0].quota: the quotas up to here add up to 5 and there are 4 blocks, "},
        {"workers: [{name: W}]\ninitiators:\n- {name: X, workers: [W], quota: 2, " PROGRAM "}\n"
         "- {name: Y, workers: [W], quota: 3, " PROGRAM "}",
         "8:27: initiators[1].quota: the quotas up to here add up to 5 and there are 4 blocks, "
         "lower one or add blocks"},
        {"workers: [{name: W}]\n"
         "initiators: [{name: X, workers: [W], quota: 1, depth: 0, " PROGRAM "}]",
         "6:48: initiators[0].depth: '0' is not a number from 1 to 16, "},
        {"workers: [{name: W}]\n"
         "initiators: [{name: X, workers: [W], quota: 1, depth: 3, " PROGRAM "}]",
         "6:48: initiators[0].depth: 3 requests at once are more than the credits (2), "},
        {"workers: [{name: W}]\n"
         "initiators: [{name: X, workers: [W], quota: 1, reconnects: 5, " PROGRAM "}]",
         "6:48: initiators[0].reconnects: '5' is not a number from 0 to 4, "},
        {"workers: [{name: W}]\n"
         "initiators: [{name: X, workers: [W], quota: 1, reconects: 1, " PROGRAM "}]",
         "6:48: initiators[0].reconects: unknown key, did you mean 'reconnects'?"},
    };
    for (size_t i = 0; i < COUNT(refusals); i++)
        refuse_agents(refusals[i].text, refusals[i].expected);
}

#define TWO "workers: [{name: W}]\ninitiators:\n- {name: X, workers: [W], quota: 1, " PROGRAM "}\n"

/* Whose session it has. */
static void test_sessions(void)
{
    static const struct refusal refusals[] = {
        {TWO "- {name: Y, workers: [W], quota: 0, same_id: Z, " PROGRAM "}",
         "8:37: initiators[1].same_id: 'Z' is not an earlier initiator with a grant of its own, "
         "name one"},
        {TWO "- {name: Y, workers: [W], quota: 0, follows: Y, " PROGRAM "}",
         "8:37: initiators[1].follows: 'Y' is not an earlier initiator with a grant of its own, "
         "name one"},
        {TWO "- {name: Y, workers: [W], quota: 1, restart_of: X, " PROGRAM "}",
         "8:27: initiators[1].quota: its quota is that of X, write 0"},
        {TWO "- {name: Y, workers: [W], quota: 0, same_id: X, follows: X, " PROGRAM "}",
         "8:49: initiators[1].follows: an initiator has one of same_id, restart_of and follows, "
         "remove it or same_id"},
        {TWO "- {name: Y, workers: [W], quota: 0, same_id: X, " PROGRAM "}\n"
             "- {name: Z, workers: [W], quota: 0, " PROGRAM "}",
         "9:4: initiators[2].name: has a grant of its own, list it before those that have not"},
        {TWO "- {name: Y, workers: [W], quota: 0, retries: 5, " PROGRAM "}",
         "8:37: initiators[1].retries: '5' is not a number from 0 to 4, "},
        {TWO "- {name: Y, workers: [W], quota: 0, spared_until: 2, " PROGRAM "}",
         "8:37: initiators[1].spared_until: '2' is not a number from 0 to 1, "},
    };
    for (size_t i = 0; i < COUNT(refusals); i++)
        refuse_agents(refusals[i].text, refusals[i].expected);
    struct sim_scenario *s =
        parse(PROTOCOL_HEAD "initiators:\n"
                            "- {name: X, workers: [W0], quota: 1, spared: true, " PROGRAM "}\n"
                            "- {name: Y, workers: [W0], quota: 0, restart_of: X, " PROGRAM "}\n"
                            "- {name: Z, workers: [W0], quota: 0, follows: X, " PROGRAM "}\n"
                            "silent_stops: 1\nprobes: late\nretention_ends: late\n");
    const struct sim_protocol_part *p = &s->protocol;
    CU_ASSERT_EQUAL(p->sessions_count, 1);
    for (uint32_t i = 0; i < 3; i++) {
        CU_ASSERT_EQUAL(p->initiators[i].session, 0);
        CU_ASSERT_EQUAL(p->initiators[i].program[0].owner, 0);
        CU_ASSERT_EQUAL(p->initiators[i].restart, i == 1);
        CU_ASSERT_EQUAL(p->initiators[i].stranger, i == 2);
        CU_ASSERT_EQUAL(p->initiators[i].spared, i != 1);
    }
    CU_ASSERT_EQUAL(p->silent_stops, 1);
    CU_ASSERT_EQUAL(p->probes, SIM_PROBES_LATE);
    CU_ASSERT_EQUAL(p->retention, SIM_RETENTION_LATE);
    sim_scenario_free(s);
}

/* Every list as long as can be. */
static void test_largest(void)
{
    static char text[1 << 16];
    size_t length = (size_t)snprintf(
        text, sizeof text,
        "ordering: rdmap\nhandles: 64\ncredits: 16\nmax_inline: 0\nlosses: 0\nstops: 0\n"
        "kind: protocol\nslots: 64\nblocks: 64\n"
        "workers: [{name: W0}, {name: W1}, {name: W2}, {name: W3}]\ninitiators:\n");
    for (unsigned i = 0; i < SIM_MAX_INITIATORS; i++) {
        length += (size_t)snprintf(text + length, sizeof text - length,
                                   "  - name: X%u\n    workers: [W0, W1, W2, W3, W0]\n"
                                   "    quota: 10\n    depth: 16\n    reconnects: 4\n"
                                   "    program:\n",
                                   i);
        for (unsigned j = 0; j < SIM_MAX_REQUESTS; j++)
            length += (size_t)snprintf(
                text + length, sizeof text - length,
                "      - {op: load, handle: 63, length: 8192, invalidate: true, allow_unsealed: "
                "true, generation: any, after: X0.1, expect: [OK, INVALID_HANDLE, "
                "STALE_GENERATION, NOT_VALID, ALREADY_BOUND, NO_SPACE, SEALED, NOT_SEALED, "
                "TOO_LARGE, MALFORMED, INTERNAL, TICKET_ABANDONED, LOST]}\n");
    }
    /* X0.1 must not wait for itself. */
    char *first = strstr(text, "after: X0.1");
    memcpy(first, "seal: false", strlen("seal: false"));
    refuse(text, "18:103: initiators[0].program[0].seal: is for op store, alloc_store, "
                 "not for load, remove it");
    memset(first - 2, ' ', strlen(", seal: false"));
    struct sim_scenario *s = parse(text);
    CU_ASSERT_EQUAL(s->protocol.initiators_count, SIM_MAX_INITIATORS);
    CU_ASSERT_EQUAL(s->protocol.initiators[5].program_count, SIM_MAX_REQUESTS);
    CU_ASSERT_EQUAL(s->protocol.initiators[5].program[31].expect, 0x8fff);
    CU_ASSERT_EQUAL(s->protocol.initiators[5].quota, 10);
    sim_scenario_free(s);
    snprintf(text + length, sizeof text - length, "      - {op: free}\n");
    char *last = strrchr(text, '-');
    refuse(text, "240:9: initiators[5].program[32]: is one entry too many, list at most 32");
    snprintf(last - 6, 100, "must_reach: [wait, nothing]\n");
    refuse(text, "240:20: must_reach[1]: 'nothing' is not known here, write one of ");
}

/* ---- requests ---------------------------------------------------------------------------- */

static void test_handle_of_request(void)
{
    struct sim_scenario *s = parse_requests("      - {op: free, handle: 0x1}\n"
                                            "      - {op: free, handle: X.1}\n"
                                            "      - {op: free, handle: Y.0}\n"
                                            "      - {op: free, handle: outside}\n");
    const struct sim_request *program = s->protocol.initiators[1].program;
    CU_ASSERT(program[0].owner == 1 && program[0].handle == 1);
    CU_ASSERT(program[1].owner == 1 && program[1].handle == 1);
    CU_ASSERT(program[2].owner == 0 && program[2].handle == 0);
    CU_ASSERT(program[3].owner == SIM_NOBODY && program[3].handle == 0);
    sim_scenario_free(s);
    refuse_request("{op: free}", "handle", "is required and missing, add it");
    static const char *const illegal[] = {"2", "-1", "Y.2", "Y.", "X.Y.1", "Y", "''", "00", "Y.01"};
    char request[60], message[160];
    for (size_t i = 0; i < COUNT(illegal); i++) {
        snprintf(request, sizeof request, "{op: load, handle: %s}", illegal[i]);
        if (strcmp(illegal[i], "''") == 0)
            snprintf(message, sizeof message, "'' is not a handle, write a number");
        else
            snprintf(message, sizeof message,
                     "'%s' is not a handle, write a number from 0 to 1, NAME.number for that of "
                     "another initiator, or outside",
                     illegal[i]);
        refuse_request(request, "handle", message);
    }
    refuse_request("{op: load, handle: Z.0}", "handle",
                   "'Z.0' names no initiator before the '.', write one of Y, X");
    refuse_request("{op: load, handle: W0.0}", "handle", "'W0.0' names no initiator before the ");
    refuse_request("{op: load, handle: .0}", "handle", "'.0' names no initiator before the '.'");
    refuse_request("{op: load, handle: outside.0}", "handle", "'outside.0' names no initiator ");
}

static void test_keys_of_ops(void)
{
    static const char *const ops[] = {"load", "store", "alloc_store", "free", "goodbye"};
    static const struct {
        const char *key, *value;
        unsigned ops; /* a bit for each */
        const char *names;
    } keys[] = {
        {"handle", "0", 0xf, "load, store, alloc_store, free"},
        {"length", "8", 0x7, "load, store, alloc_store"},
        {"inline", "true", 0x6, "store, alloc_store"},
        {"seal", "false", 0x6, "store, alloc_store"},
        {"allow_unsealed", "true", 0x1, "load"},
        {"record", "true", 0xf, "load, store, alloc_store, free"},
        {"invalidate", "true", 0x7, "load, store, alloc_store"},
        {"generation", "stale", 0xf, "load, store, alloc_store, free"},
        {"expect", "[OK]", 0xf, "load, store, alloc_store, free"},
        {"release", "true", 0x10, "goodbye"},
        {"after", "Y.1", 0x1f, ""},
    };
    char request[120], message[160];
    for (unsigned op = 0; op < COUNT(ops); op++)
        for (size_t i = 0; i < COUNT(keys); i++) {
            bool handle = op != 4 && i != 0;
            snprintf(request, sizeof request, "{op: %s, %s%s: %s}", ops[op],
                     handle ? "handle: 0, " : "", keys[i].key, keys[i].value);
            if (keys[i].ops >> op & 1) {
                char line[160];
                snprintf(line, sizeof line, "      - %s\n", request);
                sim_scenario_free(parse_requests(line));
                continue;
            }
            snprintf(message, sizeof message, "is for op %s, not for %s, remove it", keys[i].names,
                     ops[op]);
            refuse_request(request, keys[i].key, message);
        }
    refuse_request("{op: fetch, handle: 0}", "op",
                   "'fetch' is not known here, write load, store, alloc_store, free or goodbye");
    refuse_request("{handle: 0}", "op", "is required and missing, add it");
    refuse_request("{op: load, handle: 0, unsealed: true}", "unsealed", "unknown key, remove it");
    refuse_request("{op: load, handle: 0, lenght: 8}", "lenght",
                   "unknown key, did you mean 'length'?");
    refuse_request("{op: store, handle: 0, inline: yes}", "inline",
                   "'yes' is not known here, write false or true");
    refuse_request("{op: store, handle: 0, generation: 7}", "generation",
                   "'7' is not known here, write any, current or stale");
}

static void test_goodbye(void)
{
    struct sim_scenario *s = parse_requests("      - {op: goodbye}\n");
    check_request(s->protocol.initiators[1].program,
                  &(struct sim_request){.op = SIM_REQUEST_GOODBYE,
                                        .owner = SIM_NOBODY,
                                        .after_initiator = SIM_NOBODY});
    sim_scenario_free(s);
    refuse(REQUESTS "      - {op: goodbye}\n      - {op: load, handle: 0}\n",
           "12:10: initiators[1].program[0].op: goodbye ends the session, make it the last "
           "request");
}

static void test_data(void)
{
    sim_scenario_free(parse_requests("      - {op: store, handle: 0, length: 8192}\n"
                                     "      - {op: store, handle: 0, length: 0, inline: true}\n"
                                     "      - {op: store, handle: 0, inline: true}\n"
                                     "      - {op: store, handle: 0, inline: true, "
                                     "invalidate: false}\n"
                                     "      - {op: store, handle: 0, inline: false, length: 17, "
                                     "invalidate: true}\n"));
    refuse_request("{op: load, handle: 0, length: 8193}", "length",
                   "'8193' is not a number from 0 to 8192, ");
    refuse_request("{op: load, handle: 0, length: -1}", "length", "'-1' is not a number from 0 ");
    refuse_request("{op: alloc_store, handle: 0, inline: true, length: 17}", "length",
                   "17 octets of inline data are more than max_inline (16), lower length or raise "
                   "max_inline");
    refuse("max_inline: 8\n" REQUESTS "      - {op: alloc_store, handle: 0, inline: true}\n",
           "13:38: initiators[1].program[0].inline: 16 octets of inline data are more than "
           "max_inline (8), ");
    refuse_request(
        "{op: store, handle: 0, inline: true, invalidate: true}", "invalidate",
        "inline data has no STag that could be invalidated, remove invalidate or inline");
    refuse_request("{op: load, handle: 0, record: true, invalidate: true}", "record",
                   "a completion record invalidates nothing, remove one of them");
    refuse_request("{op: load, handle: 0, direct: true, record: true}", "record",
                   "what is direct has no completion record, remove one of them");
    struct sim_scenario *s = parse_requests("      - {op: free, handle: 0, record: true}\n");
    CU_ASSERT_TRUE(s->protocol.initiators[1].program[0].record);
    sim_scenario_free(s);
}

static void test_expect(void)
{
    char line[100], names[256] = "";
    for (uint32_t status = 0; status <= KBTP_STATUS_TICKET_ABANDONED; status++) {
        const char *name = kbtp_status_name((uint16_t)status);
        snprintf(line, sizeof line, "      - {op: load, handle: 0, expect: [%s, %s]}\n", name,
                 name);
        struct sim_scenario *s = parse_requests(line);
        CU_ASSERT_EQUAL(s->protocol.initiators[1].program[0].expect, 1u << status);
        sim_scenario_free(s);
        snprintf(names + strlen(names), sizeof names - strlen(names), "%s, ", name);
    }
    char message[400];
    snprintf(message, sizeof message,
             "13:44: initiators[1].program[1].expect[1]: 'Ok' is not a status, write one of %sLOST",
             names);
    refuse(REQUESTS "      - {op: load, handle: 0}\n"
                    "      - {op: load, handle: 0, expect: [OK, Ok]}\n",
           message);
    refuse_request("{op: free, handle: 0, expect: []}", "expect", "has no entry, list 1 to 13");
    refuse_request("{op: free, handle: 0, expect: OK}", "expect", "is not a list, write one '- '");
    refuse(REQUESTS "      - {op: load, handle: 0, expect: [ABANDONED]}\n",
           "12:40: initiators[1].program[0].expect[0]: 'ABANDONED' is not a status, ");
}

/* ---- what requests wait for -------------------------------------------------------------- */

static void test_after(void)
{
    struct sim_scenario *s = parse_requests("      - {op: free, handle: 0, after: Y.2}\n"
                                            "      - {op: free, handle: 0, after: X.1}\n"
                                            "      - {op: free, handle: 0}\n");
    const struct sim_request *program = s->protocol.initiators[1].program;
    CU_ASSERT(program[0].after_initiator == 0 && program[0].after_request == 1);
    CU_ASSERT(program[1].after_initiator == 1 && program[1].after_request == 0);
    CU_ASSERT(program[2].after_initiator == SIM_NOBODY && program[2].after_request == 0);
    sim_scenario_free(s);
    refuse_request("{op: load, handle: 0, after: Y.0}", "after",
                   "'Y.0' is not a request, those of Y are Y.1 to Y.2");
    refuse_request("{op: load, handle: 0, after: Y.3}", "after",
                   "'Y.3' is not a request, those of Y are Y.1 to Y.2");
    refuse_request("{op: load, handle: 0, after: Y.x}", "after", "'Y.x' is not a request, those ");
    refuse_request("{op: load, handle: 0, after: Y}", "after",
                   "'Y' is not a request, write NAME.number, such as Y.1");
    refuse_request("{op: load, handle: 0, after: 1}", "after", "'1' is not a request, write NAME");
    refuse_request("{op: load, handle: 0, after: W0.1}", "after",
                   "'W0.1' names no initiator before the '.', write one of Y, X");
    refuse_request("{op: load, handle: 0, after: X.2}", "after",
                   "'X.2' is this request or a later one of the same initiator, name an earlier");
    refuse(REQUESTS "      - {op: free, handle: 0, after: X.2}\n      - {op: free, handle: 0}\n",
           "12:31: initiators[1].program[0].after: 'X.2' is this request or a later one");
}

/* Of each initiator the requests, as what they wait for; "" for nothing. */
static void programs(char *text, size_t size, const char *const (*after)[4], unsigned count)
{
    size_t length = (size_t)snprintf(text, size, "%s", PROTOCOL_HEAD "initiators:\n");
    for (unsigned i = 0; i < count; i++) {
        length += (size_t)snprintf(text + length, size - length,
                                   "  - name: %c\n    workers: [W0]\n    quota: 1\n    program:\n",
                                   'A' + (int)i);
        for (unsigned j = 0; j < 4 && after[i][j] != NULL; j++)
            length += (size_t)snprintf(text + length, size - length, "      - {op: free, %s%s%s}\n",
                                       after[i][j][0] != 0 ? "after: " : "", after[i][j],
                                       after[i][j][0] != 0 ? ", handle: 0" : "handle: 0");
    }
}

static void test_circles(void)
{
    char text[2048];
    static const char *const ladder[][4] = {
        {"", "B.1", "B.2", "C.3"}, {"A.1", "A.2", "A.3"}, {"B.1", "A.1", "B.3"}};
    programs(text, sizeof text, ladder, 3);
    sim_scenario_free(parse(text));
    static const char *const pair[][4] = {{"B.1"}, {"A.1"}};
    programs(text, sizeof text, pair, 2);
    refuse(text, "11:20: initiators[0].program[0].after: A.1 waits for B.1, which waits for it in "
                 "turn, break this circle");
    /* Requests begin in order: A.1 waits for B.2, which begins after B.1, which waits for A.2. */
    static const char *const crossed[][4] = {{"B.2", ""}, {"A.2", ""}};
    programs(text, sizeof text, crossed, 2);
    refuse(text, "11:20: initiators[0].program[0].after: A.1 waits for B.2, which waits for it ");
    /* A waits for a circle, but is not in it. */
    static const char *const outside[][4] = {{"", "B.1"}, {"C.1"}, {"D.1"}, {"B.1"}};
    programs(text, sizeof text, outside, 4);
    struct sim_scenario *s = parse_octets(text, strlen(text));
    CU_ASSERT_PTR_NULL(s);
    CU_ASSERT_PTR_NOT_NULL(strstr(error_line, "break this circle"));
    CU_ASSERT_PTR_NULL(strstr(error_line, "initiators[0]"));
}

/* ---- words ------------------------------------------------------------------------------- */

static void test_events(void)
{
    char text[900], names[800];
    refuse_protocol("must_reach: [crash]",
                    "13:14: must_reach[0]: 'crash' is not known here, write one of load-before-");
    snprintf(names, sizeof names, "%s", strstr(error_line, "one of ") + strlen("one of "));
    snprintf(text, sizeof text, "must_reach: [%s]", names);
    struct sim_scenario *s = parse_protocol(text);
    CU_ASSERT_EQUAL_FATAL(s->must_reach_count, PROTOCOL_REACH_COUNT);
    for (unsigned i = 0; i < s->must_reach_count; i++)
        CU_ASSERT_EQUAL(sim_kind_reach_index(sim_kind_of(s), s->must_reach[i]), (int)i);
    CU_ASSERT_EQUAL(sim_kind_reach_index(sim_kind_of(s), "crash"), -1);
    sim_scenario_free(s);
}

static void test_description(void)
{
    char line[512];
    struct sim_scenario *s = parse(EVERY_PROTOCOL_KEY);
    const struct sim_kind *kind = sim_kind_of(s);
    CU_ASSERT_STRING_EQUAL(kind->name, "protocol");
    CU_ASSERT_TRUE(kind->describe(s, 0, line, sizeof line));
    CU_ASSERT_STRING_EQUAL(line,
                           "N = 8, F = 6, blocks of 32 octets, 3 handles, 4 credits; target W0 "
                           "ten_letter; at most 4 connections lost; at most 2 initiators stopped");
    CU_ASSERT_TRUE(kind->describe(s, 1, line, sizeof line));
    CU_ASSERT_STRING_EQUAL(line,
                           "X: 5 requests, depth 3, quota 4, to ten_letter, then W0, then W0");
    CU_ASSERT_TRUE(kind->describe(s, 2, line, sizeof line));
    CU_ASSERT_STRING_EQUAL(line, "Y: 1 request, depth 1, quota 0, to W0");
    CU_ASSERT_TRUE(kind->describe(s, 3, line, sizeof line));
    CU_ASSERT_FALSE(kind->describe(s, 4, line, sizeof line));
    CU_ASSERT_TRUE(kind->describe(s, 0, line, 20));
    CU_ASSERT_STRING_EQUAL(line, "N = 8, F = 6, block");
    sim_scenario_free(s);
}

static const struct test tests[] = {
    {"defaults", test_defaults},
    {"every key", test_every_key},
    {"numbers", test_numbers},
    {"ordering", test_ordering},
    {"block size", test_block_size},
    {"handles", test_handles},
    {"names", test_names},
    {"initiators", test_initiators},
    {"sessions", test_sessions},
    {"largest", test_largest},
    {"handle of a request", test_handle_of_request},
    {"keys of operations", test_keys_of_ops},
    {"goodbye", test_goodbye},
    {"data", test_data},
    {"expect", test_expect},
    {"after", test_after},
    {"circles", test_circles},
    {"events", test_events},
    {"description", test_description},
};

int main(void)
{
    return run_tests("scenario protocol", tests, COUNT(tests));
}
