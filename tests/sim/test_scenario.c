/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The scenario language: what it accepts, and where and how it complains. Linked with
 * -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc the suite also makes every allocation of the
 * scenario's own code fail in turn; without, that test says that it is skipped.
 */
#include "sim/scenario.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "sim/read_file.h"
#include "sim/ring_world.h"
#include "tests/run.h"

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

/* The shortest scenario, to be taken apart by the tests: lines 1 to 3, and four more. */
#define HEAD "kind: ring\nslots: 4\nblocks: 3\n"
#define ALLOCATORS "allocators:\n  - {name: X, allocations: 2}\n"
#define FREERS "freers:\n  - {name: target}\n"
#define TAIL ALLOCATORS FREERS
#define MINIMAL HEAD TAIL

/* Defined by the linker's --wrap only. */
extern void *__real_malloc(size_t size) __attribute__((weak));
extern void *__real_calloc(size_t count, size_t size) __attribute__((weak));
extern void *__real_realloc(void *memory, size_t size) __attribute__((weak));
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *memory, size_t size);

static unsigned allocations; /* that came by */
static unsigned fail_at;     /* the one to fail, from 1; 0: none */

void *__wrap_malloc(size_t size)
{
    return ++allocations == fail_at ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
    return ++allocations == fail_at ? NULL : __real_calloc(count, size);
}

void *__wrap_realloc(void *memory, size_t size)
{
    return ++allocations == fail_at ? NULL : __real_realloc(memory, size);
}

static char error[512];

/* One line without its newline, of printable characters: what a terminal may be given. */
static bool is_one_line(const char *line)
{
    if (line[0] == '\0')
        return false;
    for (const char *c = line; *c != '\0'; c++)
        if ((unsigned char)*c < 0x20 || *c == 0x7f)
            return false;
    return true;
}

static struct sim_scenario *parse_octets(const char *text, size_t length)
{
    memset(error, 'E', sizeof error);
    error[0] = '\0';
    return sim_scenario_parse("s.yaml", text, length, error, sizeof error);
}

/* A scenario that must be legal. */
static struct sim_scenario *parse(const char *text)
{
    struct sim_scenario *scenario = parse_octets(text, strlen(text));
    if (scenario == NULL)
        fprintf(stderr, "\n%s\nis refused: %s\n", text, error);
    CU_ASSERT_PTR_NOT_NULL_FATAL(scenario);
    return scenario;
}

/* The minimal scenario with one more line. */
static struct sim_scenario *parse_with(const char *line)
{
    char text[512];
    snprintf(text, sizeof text, HEAD "%s\n" TAIL, line);
    return parse(text);
}

/* A text that must be refused with an error line that starts with "s.yaml:" and `expected`. */
static void refuse_octets(const char *text, size_t length, const char *expected)
{
    struct sim_scenario *scenario = parse_octets(text, length);
    bool good = scenario == NULL && strncmp(error, "s.yaml:", 7) == 0 &&
                strncmp(error + 7, expected, strlen(expected)) == 0;
    if (!good)
        fprintf(stderr, "\n%.*s\nexpected: s.yaml:%s\ngot:      %s\n", (int)length, text, expected,
                scenario == NULL ? error : "no error");
    CU_ASSERT(good);
    CU_ASSERT(scenario != NULL || is_one_line(error));
    sim_scenario_free(scenario);
}

static void refuse(const char *text, const char *expected)
{
    refuse_octets(text, strlen(text), expected);
}

static void refuse_with(const char *line, const char *expected)
{
    char text[1024];
    snprintf(text, sizeof text, HEAD "%s\n" TAIL, line);
    refuse(text, expected);
}

struct refusal {
    const char *text;
    const char *expected;
};

static void refuse_each(const struct refusal *refusals, size_t count)
{
    for (size_t i = 0; i < count; i++)
        refuse(refusals[i].text, refusals[i].expected);
}

/* ---- what is accepted -------------------------------------------------------------------- */

static void test_defaults(void)
{
    struct sim_scenario *s = parse(MINIMAL);
    CU_ASSERT_EQUAL(s->kind, SIM_KIND_RING);
    CU_ASSERT_PTR_NULL(s->title);
    CU_ASSERT_EQUAL(s->machine.memory, SIM_MEMORY_TSO);
    CU_ASSERT_EQUAL(s->machine.store_buffer, 4);
    CU_ASSERT_EQUAL(s->machine.tear, 8);
    CU_ASSERT_EQUAL(s->machine.dma_order, SIM_DMA_ANY);
    CU_ASSERT_EQUAL(s->slots, 4);
    CU_ASSERT_EQUAL(s->blocks, 3);
    CU_ASSERT_EQUAL(s->first_block, 0);
    CU_ASSERT_EQUAL(s->block_size, 4294983680);
    CU_ASSERT_EQUAL(s->first_ticket, 0);
    CU_ASSERT_EQUAL(s->first_generation, 1);
    CU_ASSERT_EQUAL(s->quota, 3);
    CU_ASSERT_EQUAL(s->handles, 0);
    CU_ASSERT_EQUAL(s->crashes, 0);
    CU_ASSERT_EQUAL(s->counters, SIM_COUNTERS_MASKED);
    CU_ASSERT_EQUAL(s->free_completes, SIM_FREE_COMPLETES_DEFERRED);
    CU_ASSERT_FALSE(s->addr_le);
    CU_ASSERT_EQUAL_FATAL(s->allocators_count, 1);
    CU_ASSERT_STRING_EQUAL(s->allocators[0].name, "X");
    CU_ASSERT_EQUAL(s->allocators[0].agent, SIM_AGENT_CPU);
    CU_ASSERT_EQUAL(s->allocators[0].allocations, 2);
    CU_ASSERT_EQUAL_FATAL(s->freers_count, 1);
    CU_ASSERT_STRING_EQUAL(s->freers[0].name, "target");
    CU_ASSERT_EQUAL(s->must_reach_count, 0);
    sim_scenario_free(s);
    sim_scenario_free(NULL);
}

static const char every_key[] = "# A comment.\n"
                                "kind: ring\n"
                                "title: \"Zwei Freigaben: gleicher Slot \xc3\xa4\"\n"
                                "memory: relaxed\n"
                                "store_buffer: 2\n"
                                "tear: 4\n"
                                "dma_order: descending\n"
                                "slots: 16\n"
                                "blocks: 12\n"
                                "first_block: 100\n"
                                "block_size: 32KiB\n"
                                "first_ticket: 0xFFFFFFFE\n"
                                "first_generation: 65535\n"
                                "quota: 7\n"
                                "handles: 3\n"
                                "crashes: 1\n"
                                "counters: unmasked\n"
                                "free_completes: written\n"
                                "address_le: true\n"
                                "allocators:\n"
                                "  - name: chain_of-X\n"
                                "    agent: rnic\n"
                                "    allocations: 1000\n"
                                "  - {name: Y, allocations: 0x10, agent: cpu}\n"
                                "freers: [{name: 1}, {name: fifteen_letters}]\n"
                                "must_reach: [deferral, 'ring-wrap', \"wait\"]\n";

static void test_every_key(void)
{
    struct sim_scenario *s = parse(every_key);
    CU_ASSERT_STRING_EQUAL(s->title, "Zwei Freigaben: gleicher Slot \xc3\xa4");
    CU_ASSERT_EQUAL(s->machine.memory, SIM_MEMORY_RELAXED);
    CU_ASSERT_EQUAL(s->machine.store_buffer, 2);
    CU_ASSERT_EQUAL(s->machine.tear, 4);
    CU_ASSERT_EQUAL(s->machine.dma_order, SIM_DMA_DESCENDING);
    CU_ASSERT_EQUAL(s->slots, 16);
    CU_ASSERT_EQUAL(s->blocks, 12);
    CU_ASSERT_EQUAL(s->first_block, 100);
    CU_ASSERT_EQUAL(s->block_size, 32768);
    CU_ASSERT_EQUAL(s->first_ticket, 0xfffffffe);
    CU_ASSERT_EQUAL(s->first_generation, 65535);
    CU_ASSERT_EQUAL(s->quota, 7);
    CU_ASSERT_EQUAL(s->handles, 3);
    CU_ASSERT_EQUAL(s->crashes, 1);
    CU_ASSERT_EQUAL(s->counters, SIM_COUNTERS_UNMASKED);
    CU_ASSERT_EQUAL(s->free_completes, SIM_FREE_COMPLETES_WRITTEN);
    CU_ASSERT_TRUE(s->addr_le);
    CU_ASSERT_EQUAL_FATAL(s->allocators_count, 2);
    CU_ASSERT_STRING_EQUAL(s->allocators[0].name, "chain_of-X");
    CU_ASSERT_EQUAL(s->allocators[0].agent, SIM_AGENT_RNIC);
    CU_ASSERT_EQUAL(s->allocators[0].allocations, 1000);
    CU_ASSERT_STRING_EQUAL(s->allocators[1].name, "Y");
    CU_ASSERT_EQUAL(s->allocators[1].agent, SIM_AGENT_CPU);
    CU_ASSERT_EQUAL(s->allocators[1].allocations, 16);
    CU_ASSERT_EQUAL_FATAL(s->freers_count, 2);
    CU_ASSERT_STRING_EQUAL(s->freers[0].name, "1");
    CU_ASSERT_STRING_EQUAL(s->freers[1].name, "fifteen_letters");
    CU_ASSERT_EQUAL_FATAL(s->must_reach_count, 3);
    CU_ASSERT_STRING_EQUAL(s->must_reach[0], "deferral");
    CU_ASSERT_STRING_EQUAL(s->must_reach[1], "ring-wrap");
    CU_ASSERT_STRING_EQUAL(s->must_reach[2], "wait");
    sim_scenario_free(s);
}

/* Every word of every choice, and how it is read. */
static const struct choice {
    const char *key, *word;
    unsigned value;
} choices[] = {
    {"memory", "sc", SIM_MEMORY_SC},
    {"memory", "tso", SIM_MEMORY_TSO},
    {"memory", "relaxed", SIM_MEMORY_RELAXED},
    {"tear", "8", 8},
    {"tear", "4", 4},
    {"dma_order", "any", SIM_DMA_ANY},
    {"dma_order", "ascending", SIM_DMA_ASCENDING},
    {"dma_order", "descending", SIM_DMA_DESCENDING},
    {"counters", "masked", SIM_COUNTERS_MASKED},
    {"counters", "unmasked", SIM_COUNTERS_UNMASKED},
    {"free_completes", "deferred", SIM_FREE_COMPLETES_DEFERRED},
    {"free_completes", "written", SIM_FREE_COMPLETES_WRITTEN},
    {"address_le", "false", false},
    {"address_le", "true", true},
};

static unsigned chosen(const struct sim_scenario *s, const char *key)
{
    if (strcmp(key, "memory") == 0)
        return s->machine.memory;
    if (strcmp(key, "tear") == 0)
        return s->machine.tear;
    if (strcmp(key, "dma_order") == 0)
        return s->machine.dma_order;
    if (strcmp(key, "counters") == 0)
        return s->counters;
    return strcmp(key, "free_completes") == 0 ? s->free_completes : s->addr_le;
}

static void test_choices(void)
{
    char line[64];
    for (size_t i = 0; i < COUNT(choices); i++) {
        snprintf(line, sizeof line, "%s: %s", choices[i].key, choices[i].word);
        struct sim_scenario *s = parse_with(line);
        CU_ASSERT_EQUAL(chosen(s, choices[i].key), choices[i].value);
        sim_scenario_free(s);
    }
}

static void test_choices_refused(void)
{
    refuse_with("memory: TSO", "4:1: memory: 'TSO' is not known here, write sc, tso or relaxed");
    refuse_with("memory: 1", "4:1: memory: '1' is not known here, write sc, tso or relaxed");
    refuse_with("memory:", "4:1: memory: '' is not known here, write sc, tso or relaxed");
    refuse_with("tear: 16", "4:1: tear: '16' is not known here, write 8 or 4");
    refuse_with("tear: 8x", "4:1: tear: '8x' is not known here, write 8 or 4");
    refuse_with("dma_order: up", "4:1: dma_order: 'up' is not known here, write any, ascending or "
                                 "descending");
    refuse_with("counters: both",
                "4:1: counters: 'both' is not known here, write masked or unmasked");
    refuse_with("free_completes: never",
                "4:1: free_completes: 'never' is not known here, write deferred or written");
    refuse_with("address_le: flase",
                "4:1: address_le: 'flase' is not known here, write false or true");
    refuse_with("address_le: 1", "4:1: address_le: '1' is not known here, write false or true");
    refuse("kind: rung\n", "1:1: kind: 'rung' is not known here, write ring");
    refuse(HEAD "allocators:\n  - name: X\n    agent: gpu\n    allocations: 2\n" FREERS,
           "6:5: allocators[0].agent: 'gpu' is not known here, write cpu or rnic");
}

/* ---- numbers ----------------------------------------------------------------------------- */

/* Keys that are plain numbers, with the first and the last value that are taken. */
static const struct number {
    const char *key;
    size_t offset;
    uint64_t least, most;
} numbers[] = {
    {"store_buffer", offsetof(struct sim_scenario, machine.store_buffer), 1, 16},
    {"first_ticket", offsetof(struct sim_scenario, first_ticket), 0, UINT32_MAX},
    {"first_generation", offsetof(struct sim_scenario, first_generation), 1, 65535},
    {"quota", offsetof(struct sim_scenario, quota), 0, 1000000},
    {"handles", offsetof(struct sim_scenario, handles), 0, 64},
    {"crashes", offsetof(struct sim_scenario, crashes), 0, 8},
};

static void test_numbers(void)
{
    char line[80], expected[128];
    for (size_t i = 0; i < COUNT(numbers); i++) {
        const struct number *n = &numbers[i];
        for (unsigned edge = 0; edge < 2; edge++) {
            uint64_t value = edge == 0 ? n->least : n->most;
            snprintf(line, sizeof line, edge == 0 ? "%s: %ju" : "%s: 0x%jX", n->key,
                     (uintmax_t)value);
            struct sim_scenario *s = parse_with(line);
            CU_ASSERT_EQUAL(*(uint32_t *)((char *)s + n->offset), value);
            sim_scenario_free(s);
        }
        snprintf(line, sizeof line, "%s: %ju", n->key, (uintmax_t)n->most + 1);
        snprintf(expected, sizeof expected, "4:1: %s: '%ju' is not a number from ", n->key,
                 (uintmax_t)n->most + 1);
        refuse_with(line, expected);
        if (n->least == 0)
            continue;
        snprintf(line, sizeof line, "%s: %ju", n->key, (uintmax_t)n->least - 1);
        snprintf(expected, sizeof expected, "4:1: %s: '%ju' is not a number from %ju to %ju, ",
                 n->key, (uintmax_t)n->least - 1, (uintmax_t)n->least, (uintmax_t)n->most);
        refuse_with(line, expected);
    }
}

static void test_numbers_refused(void)
{
    static const char *const words[] = {
        "-1",    "+1",  "1.5",  "1e3",  "0x", "0xg",  "010",        "00",
        "1_000", "1 2", "four", "1KiB", "~",  "null", "4294967296", "18446744073709551617",
    };
    char line[64], expected[128];
    for (size_t i = 0; i < COUNT(words); i++) {
        snprintf(line, sizeof line, "first_ticket: %s", words[i]);
        snprintf(expected, sizeof expected,
                 "4:1: first_ticket: '%s' is not a number from 0 to 4294967295, ", words[i]);
        refuse_with(line, expected);
    }
    refuse_with("handles:", "4:1: handles: '' is not a number from 0 to 64, "
                            "write it in decimal or as 0x...");
    refuse_with("handles: 11111111111111111111111111111111111111112222",
                "4:1: handles: '1111111111111111111111111111111111111111...' is not a number");
    refuse(HEAD "allocators:\n  - {name: X, allocations: 0}\n" FREERS,
           "5:15: allocators[0].allocations: '0' is not a number from 1 to 1000, ");
    refuse(
        HEAD
        "allocators:\n  - {name: X, allocations: 1}\n  - name: Y\n    allocations: 1001\n" FREERS,
        "7:5: allocators[1].allocations: '1001' is not a number from 1 to 1000, ");
}

static void test_ring_size(void)
{
    static const uint32_t legal[][2] = {{2, 1}, {2, 2}, {64, 64}, {65536, 64}};
    char text[256];
    for (size_t i = 0; i < COUNT(legal); i++) {
        snprintf(text, sizeof text, "kind: ring\nslots: %u\nblocks: %u\n" TAIL, legal[i][0],
                 legal[i][1]);
        struct sim_scenario *s = parse(text);
        CU_ASSERT_EQUAL(s->slots, legal[i][0]);
        CU_ASSERT_EQUAL(s->blocks, legal[i][1]);
        CU_ASSERT_EQUAL(s->quota, s->blocks);
        sim_scenario_free(s);
    }
    static const struct refusal refusals[] = {
        {"kind: ring\nslots: 4\nblocks: 5\n" TAIL,
         "3:1: blocks: 5 blocks do not fit into 4 slots, write at most 4 or add slots"},
        {"kind: ring\nslots: 6\nblocks: 4\n" TAIL,
         "2:1: slots: 6 is not a power of two, write 4 or 8"},
        {"kind: ring\nslots: 3\nblocks: 4\n" TAIL,
         "2:1: slots: 3 is not a power of two, write 2 or 4"},
        {"kind: ring\nblocks: 4\n\nslots: 65535\n" TAIL,
         "4:1: slots: 65535 is not a power of two, write 32768 or 65536"},
        {"kind: ring\nslots: 1\nblocks: 1\n" TAIL,
         "2:1: slots: '1' is not a number from 2 to 65536, "},
        {"kind: ring\nslots: 65537\nblocks: 1\n" TAIL,
         "2:1: slots: '65537' is not a number from 2 to 65536, "},
        {"kind: ring\nslots: 4\nblocks: 0\n" TAIL,
         "3:1: blocks: '0' is not a number from 1 to 64, "},
        {"kind: ring\nslots: 128\nblocks: 65\n" TAIL,
         "3:1: blocks: '65' is not a number from 1 to 64, "},
    };
    refuse_each(refusals, COUNT(refusals));
}

static void test_block_size(void)
{
    static const struct {
        const char *line;
        uint64_t octets;
    } legal[] = {
        {"block_size: 1", 1},
        {"block_size: 0x100", 256},
        {"block_size: 3KiB", 3072},
        {"block_size: 0x20KiB", 32768},
        {"block_size: 1MiB", 1048576},
        {"block_size: 4GiB", 4294967296},
        {"block_size: 2TiB", 2199023255552},
        {"block_size: 6148914691236517204", 6148914691236517204}, /* times 3 is 2^64 - 4 */
    };
    for (size_t i = 0; i < COUNT(legal); i++) {
        struct sim_scenario *s = parse_with(legal[i].line);
        CU_ASSERT_EQUAL(s->block_size, legal[i].octets);
        sim_scenario_free(s);
    }
    static const char *const illegal[] = {
        "0",     "0KiB",   "-1",     "4 GiB",          "4GB", "4gib", "KiB",
        "1KiBx", "1.5GiB", "010KiB", "17000000000TiB", "many"};
    char line[64], expected[128];
    for (size_t i = 0; i < COUNT(illegal); i++) {
        snprintf(line, sizeof line, "block_size: %s", illegal[i]);
        snprintf(expected, sizeof expected, "4:1: block_size: '%s' is not a size from 1 to ",
                 illegal[i]);
        refuse_with(line, expected);
    }
}

/* No Block Offset, nor the end of a block, may reach 2^64 - 1. */
static void test_block_range(void)
{
    sim_scenario_free(parse_with("first_block: 0xFFFFFFFF\nblock_size: 4294967293"));
    refuse_with("block_size: 6148914691236517205", /* times 3 is 2^64 - 1 */
                "4:1: block_size: 3 blocks of 6148914691236517205 octets reach 2^64 - 1, "
                "lower block_size or first_block");
    refuse_with("block_size: 6148914691236517206", "4:1: block_size: 3 blocks of ");
    refuse_with("first_block: 4294967295\nblock_size: 4294967296",
                "5:1: block_size: 4294967298 blocks of 4294967296 octets reach 2^64 - 1, ");
    refuse_with("first_block: 4294967295",
                "4:1: first_block: 4294967298 blocks of 4294983680 octets reach 2^64 - 1, ");
}

static void test_quota(void)
{
    struct sim_scenario *s = parse_with("quota: none");
    CU_ASSERT_EQUAL(s->quota, 0);
    sim_scenario_free(s);
    refuse_with("quota: None", "4:1: quota: 'None' is not a number from 1 to 1000000, "
                               "write one, or none");
    refuse_with("quota:", "4:1: quota: '' is not a number from 1 to 1000000, write one, or none");
}

/* ---- structure --------------------------------------------------------------------------- */

static void test_required(void)
{
    static const struct refusal refusals[] = {
        {"slots: 4\nblocks: 4\n" TAIL, "1:1: kind: is required and missing, add it"},
        {"# one\n\n   kind: ring\n   blocks: 4\n", "3:4: slots: is required and missing, add it"},
        {"kind: ring\nslots: 4\n" TAIL, "1:1: blocks: is required and missing, add it"},
        {HEAD FREERS, "1:1: allocators: is required and missing, add it"},
        {HEAD ALLOCATORS, "1:1: freers: is required and missing, add it"},
        {"{}", "1:1: kind: is required and missing, add it"},
        {" { kind: ring }", "1:2: slots: is required and missing, add it"},
        {HEAD "allocators:\n  - allocations: 1\n" FREERS,
         "5:5: allocators[0].name: is required and missing, add it"},
        {HEAD "allocators:\n  - {name: X, allocations: 1}\n  -\n    name: Y\n" FREERS,
         "7:5: allocators[1].allocations: is required and missing, add it"},
        {HEAD ALLOCATORS "freers: [{name: a}, {}]\n",
         "6:21: freers[1].name: is required and missing, add it"},
    };
    refuse_each(refusals, COUNT(refusals));
}

static void test_unknown_keys(void)
{
    refuse_with("slot: 4", "4:1: slot: unknown key, did you mean 'slots'?");
    refuse_with("firstblock: 4", "4:1: firstblock: unknown key, did you mean 'first_block'?");
    refuse_with("Kind: ring", "4:1: Kind: unknown key, did you mean 'kind'?");
    refuse_with("colour: red", "4:1: colour: unknown key, remove it or take one of "
                               "kbtp-scenario(5)");
    refuse_with("'': 4", "4:1: '': unknown key, remove it or take one of kbtp-scenario(5)");
    refuse_with("\"a.b[0] \": 4", "4:1: 'a.b[0] ': unknown key, remove it");
    refuse_with("<<: {slots: 4}", "4:1: '<<': unknown key, remove it");
    refuse_with("deeper: {is: [not, looked, at]}", "4:1: deeper: unknown key, remove it");
    refuse(HEAD ALLOCATORS "  - {name: Y, allocations: 1, allocation: 1}\n" FREERS,
           "6:31: allocators[1].allocation: unknown key, did you mean 'allocations'?");
    refuse(HEAD ALLOCATORS "freers:\n  - name: Y\n    agent: cpu\n",
           "8:5: freers[0].agent: unknown key, remove it or take one of kbtp-scenario(5)");
    /* A key that looks like the path of another place. */
    refuse(MINIMAL "'allocators[0].name': 1\n", "8:1: 'allocators[0].name': unknown key, ");
}

static void test_duplicates(void)
{
    refuse_with("blocks: 3", "4:1: blocks: is here for the second time, keep one of them");
    refuse(MINIMAL FREERS, "8:1: freers: is here for the second time, keep one of them");
    refuse(HEAD ALLOCATORS "  - name: Y\n    allocations: 1\n    name: Z\n" FREERS,
           "8:5: allocators[1].name: is here for the second time, keep one of them");
    refuse(HEAD ALLOCATORS "freers: [{name: a}, {name: b, name: c}]\n",
           "6:31: freers[1].name: is here for the second time, keep one of them");
}

static void test_types(void)
{
    static const struct refusal refusals[] = {
        {"- kind: ring\n", "1:1: scenario: is not a mapping, start with 'kind: ring'"},
        {"\n ring\n", "2:2: scenario: is not a mapping, start with 'kind: ring'"},
        {"--- ''\n", "1:5: scenario: is not a mapping, start with 'kind: ring'"},
        {"kind: [ring]\n", "1:1: kind: is a list or a mapping, write a single value"},
        {"kind: ring\nslots: {a: 4}\n", "2:1: slots: is a list or a mapping, write a single value"},
        {"kind: ring\nmemory:\n  - tso\n",
         "2:1: memory: is a list or a mapping, write a single value"},
        {HEAD "allocators: X\n" FREERS,
         "4:1: allocators: is not a list, write one '- ' for each entry"},
        {HEAD "allocators: {name: X, allocations: 1}\n" FREERS,
         "4:1: allocators: is not a list, write one '- ' for each entry"},
        {HEAD "allocators:\n" FREERS,
         "4:1: allocators: is not a list, write one '- ' for each entry"},
        {HEAD "allocators:\n  - X\n" FREERS,
         "5:5: allocators[0]: is not a mapping, write keys with values, such as 'name: X'"},
        {HEAD ALLOCATORS "  - [X]\n" FREERS,
         "6:5: allocators[1]: is not a mapping, write keys with values, such as 'name: X'"},
        {HEAD ALLOCATORS "  - {name: {}, allocations: 1}\n" FREERS,
         "6:6: allocators[1].name: is a list or a mapping, write a single value"},
        {MINIMAL "must_reach: deferral\n",
         "8:1: must_reach: is not a list, write one '- ' for each entry"},
        {MINIMAL "must_reach: [deferral, wait: 1]\n",
         "8:24: must_reach[1]: is a list or a mapping, write a single value"},
        {MINIMAL "title: [a]\n", "8:1: title: is a list or a mapping, write a single value"},
        {MINIMAL "? [a, b]\n: c\n",
         "8:3: scenario: has a key that is no word, write a word before the ':'"},
        {HEAD "allocators:\n  - {{a: b}: c}\n",
         "5:6: allocators[0]: has a key that is no word, write a word before the ':'"},
    };
    refuse_each(refusals, COUNT(refusals));
}

/* `count` entries of a list, in the flow style. */
static void list(char *text, size_t size, const char *start, const char *entry, unsigned count,
                 const char *end)
{
    size_t length = (size_t)snprintf(text, size, "%s", start);
    for (unsigned i = 0; i < count && length < size; i++)
        length += (size_t)snprintf(text + length, size - length, entry, i);
    snprintf(text + length, size - length, "]\n%s", end);
}

static void test_counts(void)
{
    char text[2048];
    list(text, sizeof text, HEAD "allocators: [", "{name: a%u, allocations: 1},\n", 8, FREERS);
    struct sim_scenario *s = parse(text);
    CU_ASSERT_EQUAL(s->allocators_count, SIM_MAX_ALLOCATORS);
    sim_scenario_free(s);
    list(text, sizeof text, HEAD "allocators: [", "{name: a%u, allocations: 1},\n", 9, FREERS);
    refuse(text, "12:1: allocators[8]: is one entry too many, list at most 8");
    list(text, sizeof text, HEAD "freers: [", "{name: f%u}, ", 4, ALLOCATORS);
    s = parse(text);
    CU_ASSERT_EQUAL(s->freers_count, SIM_MAX_FREERS);
    sim_scenario_free(s);
    list(text, sizeof text, HEAD "freers: [", "{name: f%u}, ", 5, ALLOCATORS);
    refuse(text, "4:58: freers[4]: is one entry too many, list at most 4");
    list(text, sizeof text, MINIMAL "must_reach: [", "deferral, ", 32, "");
    s = parse(text);
    CU_ASSERT_EQUAL(s->must_reach_count, SIM_MAX_MUST_REACH);
    sim_scenario_free(s);
    list(text, sizeof text, MINIMAL "must_reach: [", "", 0, "");
    s = parse(text);
    CU_ASSERT_EQUAL(s->must_reach_count, 0);
    sim_scenario_free(s);
    list(text, sizeof text, MINIMAL "must_reach: [", "deferral, ", 33, "");
    refuse(text, "8:334: must_reach[32]: is one entry too many, list at most 32");
    refuse(HEAD "allocators: []\n" FREERS, "4:1: allocators: has no entry, list 1 to 8");
    refuse(HEAD ALLOCATORS "\nfreers:\n []\n", "7:1: freers: has no entry, list 1 to 4");
}

/* Every key and as many entries as can be; the last complaint that can be made about them. */
static void test_largest(void)
{
    char text[2048];
    size_t length =
        (size_t)snprintf(text, sizeof text, "%.*sallocators:\n",
                         (int)(strstr(every_key, "allocators:") - every_key), every_key);
    for (unsigned i = 0; i < SIM_MAX_ALLOCATORS; i++)
        length += (size_t)snprintf(text + length, sizeof text - length,
                                   "  - {name: a%u, agent: cpu, allocations: 1}\n", i);
    list(text + length, sizeof text - length, "must_reach: [", "wait, ", SIM_MAX_MUST_REACH, "");
    length = strlen(text);
    list(text + length, sizeof text - length, "freers: [", "{name: f%u}, ", SIM_MAX_FREERS, "");
    sim_scenario_free(parse(text));
    text[strlen(text) - strlen("3}, ]\n")] = '2';
    refuse(text, "30:47: freers[3].name: 'f2' is also freers[2].name, choose another name");
}

static void test_names(void)
{
    static const char *const illegal[] = {"", "sixteen_letters_", "two words", "a.b", "\xc3\xa4"};
    char text[256], expected[128];
    for (size_t i = 0; i < COUNT(illegal); i++) {
        snprintf(text, sizeof text, HEAD ALLOCATORS "freers:\n  - name: '%s'\n", illegal[i]);
        snprintf(expected, sizeof expected,
                 "7:5: freers[0].name: '%s' is not a name, write 1 to 15 of A-Z a-z 0-9 _ -",
                 illegal[i]);
        refuse(text, expected);
    }
    static const struct refusal refusals[] = {
        {HEAD ALLOCATORS "  - {allocations: 1, name: X}\n" FREERS,
         "6:22: allocators[1].name: 'X' is also allocators[0].name, choose another name"},
        {HEAD ALLOCATORS "freers: [{name: a}, {name: X}]\n",
         "6:22: freers[1].name: 'X' is also allocators[0].name, choose another name"},
        {HEAD ALLOCATORS "freers: [{name: a}, {name: fault}]\n",
         "6:22: freers[1].name: 'fault' is the environment, choose another name"},
        {HEAD ALLOCATORS "freers: [{name: a}, {name: a}]\n",
         "6:22: freers[1].name: 'a' is also freers[0].name, choose another name"},
    };
    refuse_each(refusals, COUNT(refusals));
    /* Names are told apart by case. */
    sim_scenario_free(parse(HEAD ALLOCATORS "freers: [{name: x}]\n"));
}

static const char unknown_event[] = "8:25: must_reach[1]: 'waits' is not known here, write one of ";

/* The names that a message lists, and that an exploration counts, are one list. */
static void test_events(void)
{
    refuse(MINIMAL "must_reach: [deferral,  waits, wait]\n", unknown_event);
    char names[256], text[512];
    snprintf(names, sizeof names, "%s", strstr(error, "one of ") + strlen("one of "));
    snprintf(text, sizeof text, MINIMAL "must_reach: [%s]\n", names);
    struct sim_scenario *s = parse(text);
    CU_ASSERT_EQUAL_FATAL(s->must_reach_count, RING_REACH_COUNT);
    bool listed[RING_REACH_COUNT] = {false};
    for (unsigned i = 0; i < RING_REACH_COUNT; i++) {
        int index = sim_ring_reach_index(s->must_reach[i]);
        CU_ASSERT_FATAL(index >= 0 && index < RING_REACH_COUNT);
        CU_ASSERT_FALSE(listed[index]);
        listed[index] = true;
    }
    sim_scenario_free(s);
    refuse(MINIMAL "must_reach:\n  - wait\n  - ''\n", "10:5: must_reach[1]: '' is not known ");
    refuse(MINIMAL "must_reach: [Wait]\n", "8:14: must_reach[0]: 'Wait' is not known here, ");
}

/* ---- YAML -------------------------------------------------------------------------------- */

static void test_empty(void)
{
    static const struct refusal refusals[] = {
        {"", "1:1: scenario: is empty, start with 'kind: ring'"},
        {"\n \n\n", "1:1: scenario: is empty, start with 'kind: ring'"},
        {"# kind: ring\n", "1:1: scenario: is empty, start with 'kind: ring'"},
        {"\xef\xbb\xbf", "1:1: scenario: is empty, start with 'kind: ring'"},
    };
    refuse_each(refusals, COUNT(refusals));
    CU_ASSERT_PTR_NULL(sim_scenario_parse("s.yaml", NULL, 0, error, sizeof error));
    CU_ASSERT_STRING_EQUAL(error, "s.yaml:1:1: scenario: is empty, start with 'kind: ring'");
}

/* What follows "is not YAML: " is libyaml's. */
static void test_syntax(void)
{
    static const struct refusal refusals[] = {
        {"kind: ring\n\tslots: 4\n", "2:1: scenario: is not YAML: "},
        {"kind: ring\nslots: 4\n  blocks: 4\n", "3:9: scenario: is not YAML: "},
        {"kind: ring\nslots 4\nblocks: 4\n", "3:1: scenario: is not YAML: "},
        {"kind: \"ring\nslots: 4\n", "3:1: scenario: is not YAML: "},
        {"kind: ring\nmust_reach: [a, b\n", "3:1: scenario: is not YAML: "},
        {"kind: ring\nmust_reach: [a]\nslots: }\n", "3:8: scenario: is not YAML: "},
        {"kind: @ring\n", "1:7: scenario: is not YAML: "},
        {"kind: ring\n%TAG\n", "2:1: scenario: has a line that starts with %, remove it"},
        {"%YAML 1.1\n---\nkind: ring\n", "1:1: scenario: has a line that starts with %, remove it"},
    };
    refuse_each(refusals, COUNT(refusals));
    refuse("kind: \"ring\nslots: 4\n",
           "3:1: scenario: is not YAML: found unexpected end of stream while scanning a quoted "
           "scalar from line 1 on, check quotes, brackets and indentation (spaces, no tabs)");
}

static void test_aliases(void)
{
    static const struct refusal refusals[] = {
        {"kind: &k ring\ntitle: *k\n", "2:1: title: is an alias, write the value itself"},
        {"kind: ring\nmust_reach: &a [x]\nslots: *a\n",
         "3:1: slots: is an alias, write the value itself"},
        {"title: &a x\nmust_reach: [wait, *a]\n",
         "2:20: must_reach[1]: is an alias, write the value itself"},
        {"kind: ring\n*k : 1\n",
         "2:1: scenario: has a key that is no word, write a word before the ':'"},
        {"*k\n", "1:1: scenario: is an alias, write the value itself"},
    };
    refuse_each(refusals, COUNT(refusals));
    sim_scenario_free(parse_with("title: &anchored but not used")); /* harmless */
}

static void test_documents(void)
{
    refuse("---\n" MINIMAL "---\n" MINIMAL,
           "9:1: scenario: a second document starts here, keep one in each file");
    refuse(MINIMAL "...\n--- nonsense\n",
           "9:1: scenario: a second document starts here, keep one in each file");
    refuse(MINIMAL "...\nnonsense\n", "9:1: scenario: is not YAML: ");
    sim_scenario_free(parse("---\n" MINIMAL "...\n# the end\n"));
}

static void test_encodings(void)
{
    sim_scenario_free(parse("\xef\xbb\xbf" MINIMAL));
    sim_scenario_free(parse("kind: ring\r\nslots: 2\r\nblocks: 1\r\n"
                            "allocators: [{name: X, allocations: 1}]\r\nfreers: [{name: t}]"));
    refuse("\xef\xbb\xbfkind: rung", "1:1: kind: 'rung' is not known here");
    refuse("kind: ring\r\nslots: x\r\n", "1:1: blocks: is required");
    refuse("kind: ring\n# \xff\n", "2:3: scenario: is not UTF-8 text (");
    refuse("kind: ring\n\xc3\xa4\xc3\xa4: \xed\xa0\x80\n", "2:5: scenario: is not UTF-8 text (");
    refuse("kind: ring\ntitle: \xc3", "2:8: scenario: is not UTF-8 text (");
    refuse("kind: ring\ntitle: \x1b[2J\n", "2:8: scenario: is not UTF-8 text (");
    static const char nul[] = "kind: ring\nslots: 4\0\n";
    refuse_octets(nul, sizeof nul - 1, "2:9: scenario: is not UTF-8 text (");
    static const char nuls[64];
    refuse_octets(nuls, sizeof nuls, "1:1: scenario: is not UTF-8 text (");
    static const char utf16[] = "\xff\xfek\0i\0n\0d\0:\0 \0r\0i\0n\0g\0";
    refuse_octets(utf16, sizeof utf16 - 1, "1:1: scenario: is not UTF-8 text (");
    static const char elf[] = "\x7f"
                              "ELF\2\1\1\0\0\0\0\0\0\0\0\0";
    refuse_octets(elf, sizeof elf - 1, "1:1: scenario: is not UTF-8 text (");
}

/* Escapes can bring in what the text itself may not have. */
static void test_control_characters(void)
{
    refuse_with("title: \"a\\0b\"", "4:1: title: has a control character (octet 0x00), remove it");
    refuse_with("title: \"a\\e[2Jb\"",
                "4:1: title: has a control character (octet 0x1B), remove it");
    refuse_with("title: \"a\\x9b\"", "4:1: title: has a control character (octet 0xC2), remove it");
    refuse_with("\"sl\\0ots\": 4", "4:1: sl: has a control character (octet 0x00), remove it");
    refuse_with("title: |\n  one\n  two", "4:1: title: has a line break, write it in one line");
    refuse(MINIMAL "must_reach: [a, \"b\\nc\"]\n",
           "8:17: must_reach[1]: has a line break, write it in one line");
    refuse("kind: \"ring\\0\"\n", "1:1: kind: has a control character (octet 0x00), remove it");
    refuse("\"k\\e[1m\": ring\n",
           "1:1: 'k\\x1B[1m': has a control character (octet 0x1B), remove it");
    struct sim_scenario *s = parse_with("title: >-\n  folded\n  to one");
    CU_ASSERT_STRING_EQUAL(s->title, "folded to one");
    sim_scenario_free(s);
    s = parse_with("title:");
    CU_ASSERT_STRING_EQUAL(s->title, "");
    sim_scenario_free(s);
}

/* What would take libyaml hours if it were read to the end. */
static void test_large(void)
{
    static const char *const parts[] = {"[", "{a: ", "- ",  "? ",  "a: [", "---\n", "%TAG !a! b\n",
                                        "a", "\"",   "&a ", "*a ", "!a ",  "\n",    "a: 1\n"};
    size_t size = (size_t)1 << 20;
    char *text = malloc(size + 1);
    CU_ASSERT_PTR_NOT_NULL_FATAL(text);
    for (size_t i = 0; i < COUNT(parts); i++) {
        size_t length = strlen(parts[i]);
        for (size_t at = 0; at < size; at++)
            text[at] = parts[i][at % length];
        CU_ASSERT_PTR_NULL(parse_octets(text, size));
        CU_ASSERT(is_one_line(error));
    }
    memset(text, ' ', size + 1);
    memcpy(text, MINIMAL, sizeof MINIMAL - 1);
    struct sim_scenario *s = parse_octets(text, size);
    CU_ASSERT_PTR_NOT_NULL(s);
    sim_scenario_free(s);
    refuse_octets(text, size + 1, "1:1: scenario: is larger than 1 MiB, shorten it");
    free(text);
}

/* ---- the error line ---------------------------------------------------------------------- */

static const char *error_with(const char *name, const char *text, size_t size)
{
    memset(error, 'E', sizeof error);
    CU_ASSERT_PTR_NULL(sim_scenario_parse(name, text, strlen(text), error, size));
    return error;
}

/* Whatever its size, the buffer holds one line, and nothing is written behind it. */
static void test_line_sizes(void)
{
    static const char full[] = "scenarios/ring/2+1.yaml:2:1: "
                               "slots: '\xc3\xa4\xc3\xa4' is not a number from 2 to 65536, "
                               "write it in decimal or as 0x...";
    for (size_t size = 0; size < sizeof full + 4; size++) {
        error_with("scenarios/ring/2+1.yaml",
                   "kind: ring\nslots: \xc3\xa4\xc3\xa4\nblocks: 1\n" TAIL, size);
        CU_ASSERT_EQUAL(error[size], 'E');
        if (size == 0)
            continue;
        CU_ASSERT(memchr(error, '\0', size) != NULL);
        if (size >= sizeof full) {
            CU_ASSERT_STRING_EQUAL(error, full);
            continue;
        }
        size_t length = strlen(error);
        CU_ASSERT(length + 2 >= size); /* no more is lost than a half character */
        if (length >= 3)
            CU_ASSERT_STRING_EQUAL(error + length - 3, "...");
        CU_ASSERT(strstr(error, "\xc3...") == NULL);
        if (size / 2 >= strlen("scenarios/ring/2+1.yaml"))
            CU_ASSERT(strncmp(error, full, length - 3) == 0);
    }
}

static void test_line_names(void)
{
    CU_ASSERT_STRING_EQUAL(error_with("a\nb\x1b[0m\xc3\xa4\xff", "", sizeof error),
                           "a\\x0Ab\\x1B[0m\xc3\xa4\\xFF:1:1: scenario: is empty, "
                           "start with 'kind: ring'");
    CU_ASSERT_STRING_EQUAL(error_with("\xc2\x9b\xe2\x80\xa8\xf5\xc0\x80", "", 100),
                           "\\xC2\\x9B\\xE2\\x80\\xA8\\xF5\\xC0\\x80:1:1: scenario: is empty, "
                           "start with 'kind: ring'");
    CU_ASSERT_STRING_EQUAL(error_with("\xc3(\xe2\x82", "", sizeof error),
                           "\\xC3(\\xE2\\x82:1:1: scenario: is empty, start with 'kind: ring'");
    /* The end of a long name is kept, from a whole character on. */
    CU_ASSERT_STRING_EQUAL(error_with("abcdefgh\xc3\xa4.yaml", "", 12), "....yaml...");
    char name[300];
    memset(name, 'n', sizeof name);
    memcpy(name + sizeof name - sizeof "/s.yaml", "/s.yaml", sizeof "/s.yaml");
    error_with(name, "", 80);
    CU_ASSERT_EQUAL(strlen(error), 79);
    CU_ASSERT(strncmp(error, "...nnnnn", 8) == 0);
    CU_ASSERT_STRING_EQUAL(strchr(error, '/'), "/s.yaml:1:1: scenario: is empty, start w...");
}

static void test_line_input(void)
{
    error_with("s",
               "kind: '\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac"
               "\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac"
               "\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac'\n",
               sizeof error);
    /* 13 characters of three octets are the most that fit into 40 octets. */
    CU_ASSERT_STRING_EQUAL(
        error, "s:1:1: kind: '\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac"
               "\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac"
               "\xe2\x82\xac\xe2\x82\xac...' is not known here, write ring");
    char text[600] = "";
    memset(text, 'k', 500);
    memcpy(text + 500, ": 1\n", sizeof ": 1\n");
    CU_ASSERT(strncmp(error_with("s", text, sizeof error), "s:1:1: kkkk", 11) == 0);
    CU_ASSERT(strstr(error, "kkk: unknown key, remove it") != NULL);
    error_with("s", "kind: 100%s%n%d\n", sizeof error);
    CU_ASSERT_STRING_EQUAL(error, "s:1:1: kind: '100%s%n%d' is not known here, write ring");
}

/* ---- hostile input ----------------------------------------------------------------------- */

static uint64_t random_state = 0x9e3779b97f4a7c15;

static uint32_t random_below(uint32_t bound)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (uint32_t)((random_state >> 32) % bound);
}

/* Flips, replaces, cuts, doubles or moves a piece of text[0..length). Returns the new length. */
static size_t mutate(char *text, size_t length, size_t capacity)
{
    static const char special[] = "\0\t\n\r \"'#%&*,-:<>?@[]{|}!`~\\0x\x80\xc3\xff";
    if (length == 0)
        return 0;
    size_t at = random_below((uint32_t)length);
    size_t count = 1 + random_below((uint32_t)(length - at < 40 ? length - at : 40));
    switch (random_below(6)) {
    case 0:
        text[at] = (char)(text[at] ^ (1 << random_below(8)));
        return length;
    case 1:
        text[at] = special[random_below(sizeof special)];
        return length;
    case 2:
        return at;
    case 3:
        memmove(text + at, text + at + count, length - at - count);
        return length - count;
    case 4:
        if (length + count > capacity)
            return length;
        memmove(text + at + count, text + at, length - at);
        return length + count;
    default:
        memmove(text + random_below((uint32_t)(length - count + 1)), text + at, count);
        return length;
    }
}

static void test_mutations(void)
{
    unsigned accepted = 0;
    for (unsigned i = 0; i < 20000; i++) {
        char text[2 * sizeof every_key];
        size_t length = sizeof every_key - 1;
        memcpy(text, every_key, length);
        for (unsigned n = 1 + random_below(4); n > 0; n--)
            length = mutate(text, length, sizeof text);
        /* On the heap, so that a sanitizer sees a read past the end. */
        char *copy = malloc(length > 0 ? length : 1);
        CU_ASSERT_PTR_NOT_NULL_FATAL(copy);
        memcpy(copy, text, length);
        struct sim_scenario *s = parse_octets(copy, length);
        accepted += s != NULL;
        if (s == NULL && (!is_one_line(error) || strncmp(error, "s.yaml:", 7) != 0))
            CU_FAIL("an error that is no line");
        sim_scenario_free(s);
        free(copy);
    }
    /* Both ways were taken. */
    CU_ASSERT(accepted > 100);
    CU_ASSERT(accepted < 19000);
}

static void test_no_memory(void)
{
    if (__real_malloc == NULL || __real_calloc == NULL || __real_realloc == NULL) {
        printf("skipped: not linked with -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc ");
        return;
    }
    struct sim_scenario *s = NULL;
    for (fail_at = 1; s == NULL && fail_at < 1000; fail_at++) {
        allocations = 0;
        s = parse_octets(every_key, sizeof every_key - 1);
        CU_ASSERT(s != NULL || is_one_line(error));
    }
    CU_ASSERT(fail_at > 10);
    CU_ASSERT_PTR_NOT_NULL(s);
    fail_at = 0;
    sim_scenario_free(s);
}

/* ---- files ------------------------------------------------------------------------------- */

static char directory[64];

static const char *file_path(const char *name)
{
    static char path[100];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    return path;
}

static const char *write_file(const char *name, const char *octets, size_t count)
{
    FILE *file = fopen(file_path(name), "wb");
    CU_ASSERT_PTR_NOT_NULL_FATAL(file);
    CU_ASSERT_EQUAL(fwrite(octets, 1, count, file), count);
    fclose(file);
    return file_path(name);
}

static void read_fails(const char *path, size_t limit, const char *expected)
{
    char line[400], *text = NULL;
    size_t length = 77;
    snprintf(line, sizeof line, "%s: %s", path, expected);
    CU_ASSERT_EQUAL(sim_read_file(path, limit, &text, &length, error, sizeof error), -1);
    CU_ASSERT_STRING_EQUAL(error, line);
    CU_ASSERT_PTR_NULL(text);
    CU_ASSERT_EQUAL(length, 77);
}

static void reads(const char *path, size_t limit, const char *octets, size_t count)
{
    char *text = NULL;
    size_t length = 0;
    CU_ASSERT_EQUAL_FATAL(sim_read_file(path, limit, &text, &length, error, sizeof error), 0);
    CU_ASSERT_EQUAL_FATAL(length, count);
    CU_ASSERT(memcmp(text, octets, count) == 0);
    CU_ASSERT_EQUAL(text[count], '\0');
    free(text);
}

static void test_read_file(void)
{
    static const char octets[] = "a\0b\n\xff";
    const char *path = write_file("five", octets, 5);
    reads(path, 5, octets, 5);
    reads(path, 1 << 20, octets, 5);
    read_fails(path, 4, "is larger than 4 octets");
    read_fails(path, 0, "is larger than 0 octets");
    read_fails(write_file("none", "", 0), 5, "is empty");
    CU_ASSERT_EQUAL(symlink("five", file_path("link")), 0);
    reads(file_path("link"), 5, octets, 5);
}

/* A file whose size is not known beforehand, as those of /proc. */
static void test_read_unsized_file(void)
{
    char *text = NULL;
    size_t length = 0;
    struct stat status;
    const char *path = "/proc/self/maps";
    if (stat(path, &status) != 0 || status.st_size != 0)
        return;
    CU_ASSERT_EQUAL(sim_read_file(path, 1 << 24, &text, &length, error, sizeof error), 0);
    CU_ASSERT(length > 100);
    free(text);
    read_fails(path, 100, "is larger than 100 octets");
}

static void test_read_what_is_no_file(void)
{
    read_fails(directory, 5, "is a directory, name a regular file");
    read_fails("/dev/null", 5, "is a device, name a regular file");
    read_fails("/dev/zero", 5, "is a device, name a regular file");
    CU_ASSERT_EQUAL(mkfifo(file_path("pipe"), 0600), 0);
    alarm(30); /* should it wait for a writer */
    read_fails(file_path("pipe"), 5, "is a pipe, name a regular file");
    alarm(0);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "%s", file_path("socket"));
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    if (fd >= 0 && bind(fd, (struct sockaddr *)&address, sizeof address) == 0)
        read_fails(file_path("socket"), 5, "is a socket, name a regular file");
    if (fd >= 0)
        close(fd);
    read_fails(file_path("missing"), 5, "cannot be read: No such file or directory");
    read_fails("", 5, "cannot be read: No such file or directory");
    if (access("/proc/self/mem", R_OK) == 0) /* a regular file that fails when it is read */
        read_fails("/proc/self/mem", 5, "cannot be read: Input/output error");
    CU_ASSERT_EQUAL(symlink("loop", file_path("loop")), 0);
    read_fails(file_path("loop"), 5, "cannot be read: Too many levels of symbolic links");
    if (geteuid() != 0) {
        CU_ASSERT_EQUAL(chmod(write_file("secret", "x", 1), 0), 0);
        read_fails(file_path("secret"), 5, "cannot be read: Permission denied");
    }
}

static void remove_files(void)
{
    static const char *const names[] = {"five", "none", "link", "pipe", "socket", "loop", "secret"};
    for (size_t i = 0; i < COUNT(names); i++)
        unlink(file_path(names[i]));
    rmdir(directory);
}

static const struct test tests[] = {
    {"defaults", test_defaults},
    {"every key", test_every_key},
    {"choices", test_choices},
    {"choices refused", test_choices_refused},
    {"numbers", test_numbers},
    {"numbers refused", test_numbers_refused},
    {"ring size", test_ring_size},
    {"block size", test_block_size},
    {"block range", test_block_range},
    {"quota", test_quota},
    {"required keys", test_required},
    {"unknown keys", test_unknown_keys},
    {"duplicate keys", test_duplicates},
    {"types", test_types},
    {"counts", test_counts},
    {"largest", test_largest},
    {"names", test_names},
    {"events", test_events},
    {"empty", test_empty},
    {"syntax", test_syntax},
    {"aliases", test_aliases},
    {"documents", test_documents},
    {"encodings", test_encodings},
    {"control characters", test_control_characters},
    {"large", test_large},
    {"line: sizes", test_line_sizes},
    {"line: names", test_line_names},
    {"line: input", test_line_input},
    {"20,000 mutations", test_mutations},
    {"no memory, at each allocation", test_no_memory},
    {"files", test_read_file},
    {"files of unknown size", test_read_unsized_file},
    {"what is no file", test_read_what_is_no_file},
};

int main(void)
{
    const char *temporary = getenv("TMPDIR");
    snprintf(directory, sizeof directory, "%s/kbtp-scenario-XXXXXX",
             temporary != NULL && strlen(temporary) < 30 ? temporary : "/tmp");
    if (mkdtemp(directory) == NULL) {
        perror(directory);
        return 2;
    }
    int status = run_tests("scenario", tests, COUNT(tests));
    remove_files();
    return status;
}
