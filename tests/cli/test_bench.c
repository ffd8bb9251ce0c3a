/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * `kbtp bench` against `kbtp target`, which has a thread of this process, over an rdma-core without
 * devices (tests/net/fake): what is asked, what is answered, and what it says of it.
 */
#include <jansson.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cli/cli.h"
#include "tests/net/fake/fake.h"
#include "tests/run.h"

#define MOST_ARGUMENTS 40
#define BLOCKS "64"

static const enum fake_kind kinds[] = {FAKE_SIW, FAKE_RXE};
static char address[] = FAKE_HERE ":7471";
static pthread_t target;
static char metrics[32]; /* where */
static char said[8192];  /* standard error of the last bench */
static json_t *found;    /* its standard output, or NULL */

static void *serve(void *nothing)
{
    static char *argv[] = {"target",
                           "--listen",
                           address,
                           "--trusted-network",
                           "--threads",
                           "2",
                           "--blocks",
                           BLOCKS,
                           "--block-size",
                           "4KiB",
                           "--sessions",
                           "4",
                           "--metrics",
                           metrics,
                           "--connections",
                           "8",
                           NULL};
    (void)nothing;
    return (void *)(intptr_t)cli_target.run((int)(sizeof argv / sizeof *argv) - 1, argv);
}

/* A port that was free a moment ago. */
static void choose_port(void)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof at;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    CU_ASSERT_EQUAL_FATAL(bind(fd, (struct sockaddr *)&at, size), 0);
    CU_ASSERT_EQUAL_FATAL(getsockname(fd, (struct sockaddr *)&at, &size), 0);
    (void)close(fd);
    (void)snprintf(metrics, sizeof metrics, "127.0.0.1:%u", ntohs(at.sin_port));
}

/* ---- bench ------------------------------------------------------------------------------- */

/* Lets a descriptor be that of a file without a name, which is returned. */
static FILE *divert(int fd, int *saved)
{
    FILE *file = tmpfile();
    *saved = dup(fd);
    (void)dup2(fileno(file), fd);
    return file;
}

static void restore(int fd, int saved)
{
    (void)dup2(saved, fd);
    (void)close(saved);
}

static int run(const char *const *options)
{
    char *argv[MOST_ARGUMENTS] = {"bench",  address,     "--trusted-network",
                                  "--json", "--timeout", "5s"};
    int argc = 6, out, err;
    while (*options)
        argv[argc++] = (char *)(uintptr_t)*options++;
    (void)fflush(stdout);
    FILE *out_file = divert(STDOUT_FILENO, &out), *err_file = divert(STDERR_FILENO, &err);
    int status = cli_bench.run(argc, argv);
    (void)fflush(stdout);
    restore(STDOUT_FILENO, out);
    restore(STDERR_FILENO, err);
    rewind(out_file);
    rewind(err_file);
    json_decref(found);
    found = json_loadf(out_file, 0, NULL);
    said[fread(said, 1, sizeof said - 1, err_file)] = 0;
    (void)fclose(out_file);
    (void)fclose(err_file);
    return status;
}
#define BENCH(...) run((const char *const[]){__VA_ARGS__, NULL})

static void expect(int status, int wanted)
{
    CU_ASSERT_EQUAL(status, wanted);
    if (status != wanted)
        (void)printf("status %d: %s", status, said);
}

static json_int_t number(const char *key)
{
    return json_integer_value(json_object_get(found, key));
}

static json_int_t count_of(const char *kind)
{
    return json_integer_value(
        json_object_get(json_object_get(json_object_get(found, "operations"), kind), "count"));
}

static bool says(const char *words)
{
    bool there = strstr(said, words) && strchr(said, '\n') == said + strlen(said) - 1;
    if (!there)
        (void)printf("not \"%s\": %s", words, said);
    return there;
}

/* ---- a target ---------------------------------------------------------------------------- */

/* What it says when it is ready, all at once, is no output of a bench: both have one stdout. */
static bool is_ready(FILE *file)
{
    char text[512] = "";
    for (int tries = 0; tries < 5000 && !strstr(text, "\nready"); tries++) {
        (void)usleep(1000);
        (void)pread(fileno(file), text, sizeof text - 1, 0);
    }
    return strstr(text, "\nready");
}

static void start(const struct fake_config *config)
{
    int saved;
    fake_open(config);
    choose_port();
    (void)fflush(stdout);
    FILE *file = divert(STDOUT_FILENO, &saved);
    int failed = pthread_create(&target, NULL, serve, NULL);
    bool ready = !failed && is_ready(file);
    restore(STDOUT_FILENO, saved);
    (void)fclose(file);
    CU_ASSERT_TRUE_FATAL(ready);
}

static void stop(void)
{
    void *status;
    (void)pthread_kill(target, SIGINT);
    CU_ASSERT_EQUAL(pthread_join(target, &status), 0);
    CU_ASSERT_EQUAL((intptr_t)status, CLI_DONE);
    CU_ASSERT_EQUAL(fake_breaches(), 0);
    if (fake_breaches())
        (void)printf("%s\n", fake_breach());
    CU_ASSERT_EQUAL(fake_close(), 0);
}

/* ---- tests ------------------------------------------------------------------------------- */

static void a_mix_is_verified(void)
{
    for (int k = 0; k < 2; k++)
        for (int polls = 0; polls < 2; polls++) {
            start(&(struct fake_config){.kind = kinds[k], .devices = 1, .late_reads = k == 0});
            /* Twice as many handles as requests at a time: no kind has to stand in for another. */
            expect(BENCH("--connections", "4", "--count", "4000", "--verify", "--seed", "7",
                         "--depth", "8", "--mix", "load=50,store=20,alloc-free=30",
                         "--target-metrics", metrics, polls ? "--poll" : "--verify"),
                   CLI_DONE);
            CU_ASSERT_EQUAL(number("count"), 4000);
            CU_ASSERT_EQUAL(count_of("LOAD") + count_of("STORE") + count_of("ALLOC_STORE") +
                                count_of("FREE"),
                            4000);
            CU_ASSERT_EQUAL(number("verified_octets"), count_of("LOAD") * 4096);
            CU_ASSERT_TRUE(count_of("LOAD") > 1800 && count_of("LOAD") < 2200);
            CU_ASSERT_TRUE(count_of("STORE") > 650 && count_of("STORE") < 950);
            CU_ASSERT_EQUAL(number("registrations"), 0);
            CU_ASSERT_EQUAL(number("handles"), 16);
            CU_ASSERT_TRUE(json_is_real(json_object_get(found, "target_cpu_ns_per_op")));
            CU_ASSERT_TRUE(json_is_null(json_object_get(found, "wrong")));
            stop();
        }
}

static void other_ways(void)
{
    for (int k = 0; k < 2; k++) {
        start(&(struct fake_config){.kind = kinds[k], .devices = 1});
        expect(BENCH("--count", "300", "--verify", "--inline", "--length", "999", "--depth", "3"),
               CLI_DONE);
        expect(BENCH("--count", "100", "--verify", "--handles", "1", "--mix", "store=1,load=1"),
               CLI_DONE);
        expect(BENCH("--count", "100", "--verify", "--handles", "1"), CLI_DONE);
        expect(BENCH("--duration", "50ms", "--warm-up", "10ms", "--mix", "alloc-free=1"), CLI_DONE);
        CU_ASSERT_EQUAL(count_of("LOAD") + count_of("STORE"), 0);
        int status = BENCH("--count", "500", "--verify", "--invalidate", "--connections", "2");
        expect(status, k ? CLI_DONE : CLI_ENVIRONMENT);
        CU_ASSERT_TRUE(k ? number("registrations") == 0 && number("count") == 500
                         : says("has no memory windows"));
        stop();
    }
}

/* One octet of one block is wrong, and it is found: in a LOAD after the first 16, which fill. */
static void wrong_data_is_found(void)
{
    for (uint32_t wrong = 2; wrong < 60; wrong += 19) {
        start(&(struct fake_config){.kind = FAKE_RXE, .devices = 1, .wrong_write = wrong});
        expect(BENCH("--count", "200", "--verify", "--mix", "load=1", "--warm-up", "0"), CLI_FOUND);
        CU_ASSERT_TRUE(says("brought other data: octet 4095 of 4096"));
        CU_ASSERT_TRUE(json_is_string(json_object_get(found, "wrong")));
        CU_ASSERT_TRUE(number("count") < 200);
        expect(BENCH("--count", "200", "--verify"), CLI_DONE); /* that was all */
        stop();
    }
}

static void too_much_is_refused(void)
{
    start(&(struct fake_config){.kind = FAKE_RXE, .devices = 1});
    expect(BENCH("--depth", "17"), CLI_BAD_INPUT);
    CU_ASSERT_TRUE(says("the target gives 16 credits"));
    expect(BENCH("--length", "4097"), CLI_BAD_INPUT);
    CU_ASSERT_TRUE(says("a block of this target has 4096 octets"));
    expect(BENCH("--handles", "17"), CLI_BAD_INPUT);
    CU_ASSERT_TRUE(says("a quota of 16 blocks"));
    expect(BENCH("--connections", "5"), CLI_FOUND);
    CU_ASSERT_TRUE(says("no session for connection"));
    expect(BENCH("--target-metrics", "127.0.0.1:1"), CLI_ENVIRONMENT);
    CU_ASSERT_TRUE(says("--target-metrics: 127.0.0.1:1: Connection refused"));
    /* All sessions were given back. */
    expect(BENCH("--connections", "4", "--count", "64"), CLI_DONE);
    stop();
}

static void *interrupt(void *thread)
{
    (void)usleep(300000);
    (void)pthread_kill(*(pthread_t *)thread, SIGINT);
    return NULL;
}

static void it_can_be_interrupted(void)
{
    pthread_t self = pthread_self(), other;
    sigset_t signals;
    start(&(struct fake_config){.kind = FAKE_SIW, .devices = 1});
    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    (void)pthread_sigmask(SIG_UNBLOCK, &signals, NULL);
    CU_ASSERT_EQUAL_FATAL(pthread_create(&other, NULL, interrupt, &self), 0);
    expect(BENCH("--duration", "1h", "--warm-up", "0"), CLI_STOPPED);
    (void)pthread_join(other, NULL);
    CU_ASSERT_TRUE(json_is_true(json_object_get(found, "interrupted")));
    CU_ASSERT_TRUE(number("count") > 0);
    stop();
}

int main(void)
{
    static const struct test tests[] = {{"a mix is verified", a_mix_is_verified},
                                        {"other ways", other_ways},
                                        {"wrong data is found", wrong_data_is_found},
                                        {"too much is refused", too_much_is_refused},
                                        {"it can be interrupted", it_can_be_interrupted}};
    sigset_t signals; /* the target's, whose threads inherit this */
    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    (void)pthread_sigmask(SIG_BLOCK, &signals, NULL);
    int status = run_tests("kbtp bench", tests, sizeof tests / sizeof *tests);
    json_decref(found);
    return status;
}
