/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The scenario language: what it accepts, with which values and defaults, and the files it is read
 * from. Linked with -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc the suite also makes every
 * allocation of the scenario's own code fail in turn; without, that test says that it is skipped.
 * What is refused, and where: test_scenario_errors.c.
 */
#include "sim/scenario.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "scenario_fixture.h"
#include "sim/read_file.h"
#include "tests/run.h"
#include "wrapped.h"

/* ---- what is accepted -------------------------------------------------------------------- */

static void test_defaults(void)
{
    struct sim_scenario *s = parse(MINIMAL);
    CU_ASSERT_EQUAL(s->kind, SIM_KIND_RING);
    CU_ASSERT_PTR_NULL(s->title);
    check_settings(s, &(struct sim_scenario){
                          .machine.memory = SIM_MEMORY_TSO,
                          .machine.store_buffer = 4,
                          .machine.tear = 8,
                          .machine.dma_order = SIM_DMA_ANY,
                          .slots = 4,
                          .blocks = 3,
                          .first_block = 0,
                          .block_size = 4294983680,
                          .first_ticket = 0,
                          .first_generation = 1,
                          .ring.quota = 3,
                          .ring.handles = 0,
                          .ring.crashes = 0,
                          .counters = SIM_COUNTERS_MASKED,
                          .ring.free_completes = SIM_FREE_COMPLETES_DEFERRED,
                          .addr_le = false,
                      });
    CU_ASSERT_EQUAL_FATAL(s->ring.allocators_count, 1);
    CU_ASSERT_STRING_EQUAL(s->ring.allocators[0].name, "X");
    CU_ASSERT_EQUAL(s->ring.allocators[0].agent, SIM_AGENT_CPU);
    CU_ASSERT_EQUAL(s->ring.allocators[0].allocations, 2);
    CU_ASSERT_EQUAL_FATAL(s->ring.freers_count, 1);
    CU_ASSERT_STRING_EQUAL(s->ring.freers[0].name, "target");
    CU_ASSERT_EQUAL(s->must_reach_count, 0);
    sim_scenario_free(s);
    sim_scenario_free(NULL);
}

static const char every_key[] = EVERY_KEY;

static void test_every_key(void)
{
    struct sim_scenario *s = parse(every_key);
    CU_ASSERT_STRING_EQUAL(s->title, "Zwei Freigaben: gleicher Slot \xc3\xa4");
    check_settings(s, &(struct sim_scenario){
                          .machine.memory = SIM_MEMORY_RELAXED,
                          .machine.store_buffer = 2,
                          .machine.tear = 4,
                          .machine.dma_order = SIM_DMA_DESCENDING,
                          .slots = 16,
                          .blocks = 12,
                          .first_block = 100,
                          .block_size = 32768,
                          .first_ticket = 0xfffffffe,
                          .first_generation = 65535,
                          .ring.quota = 7,
                          .ring.handles = 3,
                          .ring.crashes = 1,
                          .counters = SIM_COUNTERS_UNMASKED,
                          .ring.free_completes = SIM_FREE_COMPLETES_WRITTEN,
                          .addr_le = true,
                      });
    CU_ASSERT_EQUAL_FATAL(s->ring.allocators_count, 2);
    CU_ASSERT_STRING_EQUAL(s->ring.allocators[0].name, "chain_of-X");
    CU_ASSERT_EQUAL(s->ring.allocators[0].agent, SIM_AGENT_RNIC);
    CU_ASSERT_EQUAL(s->ring.allocators[0].allocations, 1000);
    CU_ASSERT_STRING_EQUAL(s->ring.allocators[1].name, "Y");
    CU_ASSERT_EQUAL(s->ring.allocators[1].agent, SIM_AGENT_CPU);
    CU_ASSERT_EQUAL(s->ring.allocators[1].allocations, 16);
    CU_ASSERT_EQUAL_FATAL(s->ring.freers_count, 2);
    CU_ASSERT_STRING_EQUAL(s->ring.freers[0].name, "1");
    CU_ASSERT_STRING_EQUAL(s->ring.freers[1].name, "fifteen_letters");
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
    return strcmp(key, "free_completes") == 0 ? s->ring.free_completes : s->addr_le;
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
    {"quota", offsetof(struct sim_scenario, ring.quota), 0, 1000000},
    {"handles", offsetof(struct sim_scenario, ring.handles), 0, 64},
    {"crashes", offsetof(struct sim_scenario, ring.crashes), 0, 8},
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
        CU_ASSERT_EQUAL(s->ring.quota, s->blocks);
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
    CU_ASSERT_EQUAL(s->ring.quota, 0);
    sim_scenario_free(s);
    refuse_with("quota: None", "4:1: quota: 'None' is not a number from 1 to 1000000, "
                               "write one, or none");
    refuse_with("quota:", "4:1: quota: '' is not a number from 1 to 1000000, write one, or none");
}

/* ---- out of memory ----------------------------------------------------------------------- */

static void test_no_memory(void)
{
    wrapped = 0;
    sim_scenario_free(parse(every_key));
    if (wrapped == 0) {
        printf("skipped: not linked with -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc ");
        return;
    }
    const char *const texts[] = {every_key, EVERY_PROTOCOL_KEY};
    for (size_t i = 0; i < COUNT(texts); i++) {
        struct sim_scenario *s = NULL;
        for (fail_at = 1; s == NULL && fail_at < 1000; fail_at++) {
            wrapped = 0;
            s = parse_octets(texts[i], strlen(texts[i]));
            CU_ASSERT(s != NULL || is_one_line(error_line));
        }
        CU_ASSERT(fail_at > 10);
        CU_ASSERT_PTR_NOT_NULL(s);
        fail_at = 0;
        sim_scenario_free(s);
    }
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
    CU_ASSERT_EQUAL(sim_read_file(path, limit, &text, &length, error_line, sizeof error_line), -1);
    CU_ASSERT_STRING_EQUAL(error_line, line);
    CU_ASSERT_PTR_NULL(text);
    CU_ASSERT_EQUAL(length, 77);
}

static void reads(const char *path, size_t limit, const char *octets, size_t count)
{
    char *text = NULL;
    size_t length = 0;
    CU_ASSERT_EQUAL_FATAL(sim_read_file(path, limit, &text, &length, error_line, sizeof error_line),
                          0);
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
    CU_ASSERT_EQUAL(sim_read_file(path, 1 << 24, &text, &length, error_line, sizeof error_line), 0);
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
    {"numbers", test_numbers},
    {"ring size", test_ring_size},
    {"block size", test_block_size},
    {"block range", test_block_range},
    {"quota", test_quota},
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
