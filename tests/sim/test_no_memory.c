/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Every allocation of the simulator fails in turn: the k-th alone, then the k-th and all after it,
 * for k = 1, 2, 3, ... until none is left to fail. Each run must end with its documented error and
 * leave nothing behind, and the next must work.
 *
 * malloc() and its like are defined here, so that the allocations of libyaml, libcyaml and the C
 * library fail too.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "sim/explore.h"
#include "sim/replay.h"
#include "sim/trace.h"
#include "tests/run.h"

/* ---- allocations that fail --------------------------------------------------------------- */

/* ThreadSanitizer allocates before it can watch anything. */
#define EARLY __attribute__((no_sanitize("thread")))

#define REAL(type, name, ...) \
    extern type __libc_##name(__VA_ARGS__) __attribute__((weak)); \
    extern type __interceptor_##name(__VA_ARGS__) __attribute__((weak)); \
    typedef type real_##name(__VA_ARGS__); \
    EARLY static real_##name *name##_of(void) \
    { \
        return __interceptor_##name ? __interceptor_##name : __libc_##name; \
    }

/* Those of a sanitizer when there is one. */
REAL(void *, malloc, size_t)
REAL(void *, calloc, size_t, size_t)
REAL(void *, realloc, void *, size_t)
REAL(void, free, void *)

extern void __tsan_init(void) __attribute__((weak));

static bool armed, all_after;
static unsigned count, fail_at; /* allocations while armed; the first to fail, from 1 */
static long blocks;             /* that are not freed yet */
static size_t mapped;           /* octets */

EARLY static bool must_fail(void)
{
    if (!armed)
        return false;
    count++;
    bool fails = count == fail_at || (all_after && count > fail_at);
    if (fails)
        errno = ENOMEM;
    return fails;
}

EARLY void *malloc(size_t size)
{
    void *memory = must_fail() ? NULL : malloc_of()(size);
    blocks += memory != NULL;
    return memory;
}

EARLY void *calloc(size_t nmemb, size_t size)
{
    void *memory = must_fail() ? NULL : calloc_of()(nmemb, size);
    blocks += memory != NULL;
    return memory;
}

EARLY void *realloc(void *ptr, size_t size)
{
    if (size != 0 && must_fail())
        return NULL;
    void *memory = realloc_of()(ptr, size);
    bool freed = ptr && (memory || size == 0);
    blocks += (memory != NULL) - freed;
    return memory;
}

EARLY void free(void *ptr)
{
    blocks -= ptr != NULL;
    free_of()(ptr);
}

EARLY char *strdup(const char *s)
{
    size_t size = strlen(s) + 1;
    char *copy = malloc(size);
    return copy ? memcpy(copy, s, size) : NULL;
}

EARLY void *mmap(void *addr, size_t len, int prot, int flags, int fd, off_t offset)
{
    if (must_fail())
        return MAP_FAILED;
    long got = syscall(SYS_mmap, addr, len, prot, flags, fd, offset);
    if (got != -1)
        mapped += len;
    return (void *)got; /* -1 is MAP_FAILED */
}

EARLY int munmap(void *addr, size_t len)
{
    long failed = syscall(SYS_munmap, addr, len);
    if (failed == 0)
        mapped -= len;
    return (int)failed;
}

/* ---- the k-th, for every k --------------------------------------------------------------- */

enum outcome {
    DONE,    /* the right result */
    REFUSED, /* the documented error */
    WRONG,
};

static char error[300];

static void arm(void)
{
    count = 0;
    armed = fail_at != 0;
    error[0] = '\0';
}

static void disarm(void)
{
    armed = false;
}

static bool is_one_line(const char *line)
{
    return line[0] != '\0' && strcspn(line, "\n\r") == strlen(line);
}

/* `attempt` calls arm() and disarm() around what is tested, and frees all it has made. */
typedef enum outcome attempt(const void *context);

/* Returns how many allocations there are to fail. */
static unsigned fail_from(attempt *run, const void *context, bool all)
{
    unsigned wrong = 0, left_behind = 0;
    all_after = all;
    for (fail_at = 1;; fail_at++) {
        long blocks_before = blocks;
        size_t mapped_before = mapped;
        enum outcome outcome = run(context);
        left_behind += blocks != blocks_before || mapped != mapped_before;
        bool none_failed = count < fail_at;
        if (outcome == WRONG || (outcome == REFUSED && none_failed)) {
            fprintf(stderr, "\nwrong when allocation %u%s fails: %s\n", fail_at,
                    all ? " and all after it" : "", error);
            wrong++;
        }
        if (none_failed)
            break;
    }
    CU_ASSERT_EQUAL(wrong, 0);
    CU_ASSERT_EQUAL(left_behind, 0);
    return count;
}

static void fail_each(attempt *run, const void *context)
{
    fail_at = 0;
    CU_ASSERT_EQUAL(run(context), DONE);
    CU_ASSERT_TRUE(fail_from(run, context, false) != 0);
    CU_ASSERT_TRUE(fail_from(run, context, true) != 0);
    fail_at = 0;
    CU_ASSERT_EQUAL(run(context), DONE);
}

/* ---- worlds ------------------------------------------------------------------------------ */

/* All that a scenario can have. */
static const char full[] = "kind: ring\n"
                           "title: 'all keys' # comment\n"
                           "slots: 2\nblocks: 2\nfirst_block: 100\nblock_size: 4KiB\n"
                           "first_ticket: 0xffffffff\nfirst_generation: 65535\nquota: none\n"
                           "handles: 1\ncrashes: 1\ncounters: unmasked\n"
                           "free_completes: written\naddress_le: true\n"
                           "memory: relaxed\nstore_buffer: 2\ntear: 4\ndma_order: ascending\n"
                           "allocators:\n"
                           "- {name: X, agent: cpu, allocations: 1}\n"
                           "- {name: Y, agent: rnic, allocations: 1}\n"
                           "freers: [{name: f1}, {name: f2}]\n"
                           "must_reach: [wait, deferral]\n";
/* Nothing is wrong here. */
static const char sound[] = "kind: ring\nslots: 2\nblocks: 2\nmemory: tso\n"
                            "allocators: [{name: X, allocations: 1}]\n"
                            "freers: [{name: f1}]\n";
/* Its target restarts. */
static const char reborn[] = "kind: protocol\nslots: 2\nblocks: 2\nhandles: 1\nrestarts: 2\n"
                             "workers: [{name: W}]\n"
                             "initiators: [{name: X, workers: [W], quota: 1,\n"
                             "  program: [{op: load, handle: 0}]}]\n";
/* If one dies, the other gets stuck. */
static const char deadly[] = "kind: ring\nslots: 2\nblocks: 2\nmemory: sc\ncrashes: 1\n"
                             "allocators: [{name: X, allocations: 2}, {name: Y, allocations: 2}]\n"
                             "freers: [{name: f1}]\n";

static const struct sim_stepping stepping = {.private_steps = true};

static struct sim_scenario *parse(const char *text)
{
    return sim_scenario_parse("s.yaml", text, strlen(text), error, sizeof error);
}

static struct sim_world *new_world(const struct sim_scenario *scenario)
{
    return sim_world_new(scenario, &stepping, error, sizeof error);
}

/* Not armed, so this must work. */
static struct sim_world *set_up(const char *text)
{
    struct sim_scenario *scenario = parse(text);
    CU_ASSERT_PTR_NOT_NULL_FATAL(scenario);
    struct sim_world *w = new_world(scenario);
    CU_ASSERT_PTR_NOT_NULL_FATAL(w);
    return w;
}

static void tear_down(struct sim_world *w)
{
    struct sim_scenario *scenario = (struct sim_scenario *)(uintptr_t)w->scenario;
    sim_world_free(w);
    sim_scenario_free(scenario);
}

/* Is the world back in its initial state? One whose undo log has failed can only be given up. */
static bool is_initial(const struct sim_world *w, uint64_t hash)
{
    return w->arena.failed ||
           (w->arena.hash == hash && !sim_arena_check(&w->arena) && w->arena.undo_used == 0);
}

static enum outcome parse_once(const void *text)
{
    arm();
    struct sim_scenario *scenario = parse(text);
    disarm();
    enum outcome outcome = scenario ? DONE : is_one_line(error) ? REFUSED : WRONG;
    sim_scenario_free(scenario);
    return outcome;
}

static void a_scenario_is_parsed(void)
{
    fail_each(parse_once, full);
    fail_each(parse_once, deadly);
}

/* A complaint needs memory as well: the text is read again for the place. */
static enum outcome complain_once(const void *text)
{
    arm();
    struct sim_scenario *scenario = parse(text);
    disarm();
    sim_scenario_free(scenario);
    return !scenario && is_one_line(error) ? DONE : WRONG;
}

static void a_wrong_scenario_is_refused(void)
{
    static const char *const texts[] = {
        "kind: ring\nslots: 2\nblocks: 2\nallocators:\n- {name: X, allocations: 1, agnet: cpu}\n"
        "freers: [{name: f1}]\n",
        "kind: ring\nslots: 2\nblocks: 2\nallocators:\n- {name: X, allocations: 0}\n"
        "freers: [{name: f1}]\n",
        "kind: ring\nslots: 2\nblocks: 2\nallocators:\n- {name: X, allocations: 1}\n"
        "freers: [{name: X}]\n",
        "kind: [",
        "kind: ring\n",
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        fail_each(complain_once, texts[i]);
}

static enum outcome build_once(const void *scenario)
{
    arm();
    struct sim_world *w = new_world(scenario);
    disarm();
    enum outcome outcome = w ? DONE : is_one_line(error) ? REFUSED : WRONG;
    sim_world_free(w);
    return outcome;
}

static void a_world_is_built(void)
{
    static const char *const texts[] = {full, sound, reborn};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct sim_scenario *scenario = parse(texts[i]);
        CU_ASSERT_PTR_NOT_NULL_FATAL(scenario);
        fail_each(build_once, scenario);
        sim_scenario_free(scenario);
    }
}

/* ---- exploring --------------------------------------------------------------------------- */

/* What is explored, and what comes out when there is memory. */
struct search {
    const char *text;
    struct sim_explore options;
    enum sim_result result;
    bool small_log; /* begin with an undo log that must soon grow */
    uint64_t digest;
    uint32_t trace_steps;
};

static bool is_told(int failed, const struct sim_report *report)
{
    if (failed)
        return failed == -ENOMEM && !report->trace;
    return report->result == SIM_NO_MEMORY;
}

static bool is_right(const struct search *search, int failed, const struct sim_report *report)
{
    return failed == 0 && report->result == search->result && report->digest == search->digest &&
           report->trace_steps == search->trace_steps;
}

static void make_log_small(struct sim_arena *arena)
{
    arena->undo_size = 64;
    arena->undo = realloc(arena->undo, arena->undo_size);
    CU_ASSERT_PTR_NOT_NULL_FATAL(arena->undo);
}

static enum outcome explore_once(const void *context)
{
    const struct search *search = context;
    struct sim_world *w = set_up(search->text);
    struct sim_report report, again;
    uint64_t initial = w->arena.hash;
    if (search->small_log)
        make_log_small(&w->arena);
    arm();
    int failed = sim_explore(w, &search->options, &report);
    disarm();
    snprintf(error, sizeof error, "status %d, result %d", failed, report.result);
    enum outcome outcome = WRONG;
    if (is_right(search, failed, &report) && !w->arena.failed)
        outcome = DONE;
    else if (is_told(failed, &report))
        outcome = REFUSED;
    if (!is_initial(w, initial))
        outcome = WRONG;
    if (!w->arena.failed) { /* the same world can be explored again */
        failed = sim_explore(w, &search->options, &again);
        if (!is_right(search, failed, &again) || !is_initial(w, initial))
            outcome = WRONG;
        sim_report_free(&again);
    }
    sim_report_free(&report);
    tear_down(w);
    return outcome;
}

static void explore_each(struct search search)
{
    struct sim_world *w = set_up(search.text);
    struct sim_report report;
    CU_ASSERT_EQUAL_FATAL(sim_explore(w, &search.options, &report), 0);
    CU_ASSERT_EQUAL_FATAL(report.result, search.result);
    search.digest = report.digest;
    search.trace_steps = report.trace_steps;
    sim_report_free(&report);
    tear_down(w);
    fail_each(explore_once, &search);
}

static void explore_in_mode(enum sim_mode mode)
{
    for (int variant = 0; variant < 8; variant++) {
        bool violated = variant & 1;
        explore_each((struct search){
            .text = violated ? deadly : sound,
            .options = {.mode = mode,
                        .seed = 1,
                        .runs = violated ? 100000 : 3,
                        .pct_depth = 3,
                        .exact = variant & 2},
            .result = violated ? SIM_VIOLATION : SIM_OK,
            .small_log = variant & 4,
        });
    }
}

static void a_world_is_explored(void)
{
    explore_in_mode(SIM_EXHAUSTIVE);
}

static void a_world_is_walked(void)
{
    explore_in_mode(SIM_RANDOM);
}

static void a_world_is_walked_by_priority(void)
{
    explore_in_mode(SIM_PCT);
}

/* ---- shrinking --------------------------------------------------------------------------- */

#define MOST_STEPS 1000u

/* Steps to a violation of `stuck` in the world `deadly`, as found and shrunk. */
struct finding {
    struct sim_step found[MOST_STEPS], shrunk[MOST_STEPS];
    uint32_t found_count, shrunk_count;
    bool small_log;
};

static bool same_steps(const struct sim_step *a, uint32_t a_count, const struct sim_step *b,
                       uint32_t b_count)
{
    return a_count == b_count && memcmp(a, b, a_count * sizeof *a) == 0;
}

static enum outcome shrink_once(const void *context)
{
    const struct finding *finding = context;
    struct sim_world *w = set_up(deadly);
    uint64_t initial = w->arena.hash;
    struct sim_step steps[MOST_STEPS];
    uint32_t steps_count = finding->found_count;
    memcpy(steps, finding->found, steps_count * sizeof *steps);
    if (finding->small_log)
        make_log_small(&w->arena);
    arm();
    int failed = sim_shrink(w, "stuck", steps, &steps_count, NULL);
    disarm();
    enum outcome outcome = WRONG;
    if (failed == 0 && !w->arena.failed &&
        same_steps(steps, steps_count, finding->shrunk, finding->shrunk_count))
        outcome = DONE;
    else if (failed == -ENOMEM &&
             same_steps(steps, steps_count, finding->found, finding->found_count))
        outcome = REFUSED;
    if (!is_initial(w, initial))
        outcome = WRONG;
    tear_down(w);
    return outcome;
}

static void find(struct finding *finding)
{
    struct sim_world *w = set_up(deadly);
    struct sim_explore options = {.mode = SIM_RANDOM, .seed = 3, .runs = 100000};
    struct sim_report report;
    CU_ASSERT_EQUAL_FATAL(sim_explore(w, &options, &report), 0);
    CU_ASSERT_EQUAL_FATAL(report.result, SIM_VIOLATION);
    CU_ASSERT_FATAL(report.trace_steps <= MOST_STEPS);
    finding->found_count = finding->shrunk_count = report.trace_steps;
    memcpy(finding->found, report.trace, report.trace_steps * sizeof *report.trace);
    memcpy(finding->shrunk, report.trace, report.trace_steps * sizeof *report.trace);
    CU_ASSERT_EQUAL(sim_shrink(w, "stuck", finding->shrunk, &finding->shrunk_count, NULL), 0);
    CU_ASSERT_TRUE(finding->shrunk_count < finding->found_count);
    sim_report_free(&report);
    tear_down(w);
}

static void a_trace_is_shrunk(void)
{
    static struct finding finding;
    find(&finding);
    fail_each(shrink_once, &finding);
    finding.small_log = true;
    fail_each(shrink_once, &finding);
}

/* ---- trace files ------------------------------------------------------------------------- */

#define STEPS 3000u /* several times what the first buffer holds */
#define FILE_OCTETS 65536u

static char file_octets[FILE_OCTETS], whole_file[FILE_OCTETS];
static size_t whole_length;

static int write_file(const struct sim_trace *trace, size_t *length)
{
    static char stream_buffer[4096];
    FILE *out = fmemopen(file_octets, sizeof file_octets, "w");
    CU_ASSERT_PTR_NOT_NULL_FATAL(out);
    setvbuf(out, stream_buffer, _IOFBF, sizeof stream_buffer);
    arm();
    int failed = sim_trace_write(out, trace);
    disarm();
    *length = (size_t)ftell(out);
    fclose(out);
    return failed;
}

static enum outcome write_once(const void *trace)
{
    size_t length;
    int failed = write_file(trace, &length);
    if (failed)
        return failed == -ENOMEM ? REFUSED : WRONG;
    return length == whole_length && memcmp(file_octets, whole_file, length) == 0 ? DONE : WRONG;
}

static enum outcome read_once(const void *context)
{
    const struct sim_trace *written = context;
    arm();
    struct sim_trace *trace =
        sim_trace_parse("t.trace", whole_file, whole_length, error, sizeof error);
    disarm();
    enum outcome outcome = is_one_line(error) ? REFUSED : WRONG;
    if (trace)
        outcome = trace->steps_count == written->steps_count &&
                          strcmp(trace->scenario_text, written->scenario_text) == 0
                      ? DONE
                      : WRONG;
    sim_trace_free(trace);
    return outcome;
}

static char name[] = "s.yaml", scenario_text[sizeof deadly];
static char *steps[STEPS];

static struct sim_trace sample(unsigned steps_count)
{
    memcpy(scenario_text, deadly, sizeof deadly);
    for (unsigned i = 0; i < steps_count; i++)
        steps[i] = name;
    return (struct sim_trace){
        .version = name,
        .mutant = name,
        .machine = {.store_buffer = 1, .tear = 8},
        .property = name,
        .what = name,
        .scenario_name = name,
        .scenario_text = scenario_text,
        .steps = steps,
        .steps_count = steps_count,
    };
}

static void write_whole(const struct sim_trace *trace)
{
    fail_at = 0;
    CU_ASSERT_EQUAL_FATAL(write_file(trace, &whole_length), 0);
    memcpy(whole_file, file_octets, whole_length);
}

static void a_trace_is_written(void)
{
    struct sim_trace trace = sample(STEPS);
    write_whole(&trace);
    CU_ASSERT_TRUE(whole_length > 4 * 4096);
    fail_each(write_once, &trace);
}

static void a_trace_is_read(void)
{
    struct sim_trace trace = sample(10);
    write_whole(&trace);
    fail_each(read_once, &trace);
}

int main(void)
{
    static const struct test tests[] = {
        {"a scenario is parsed", a_scenario_is_parsed},
        {"a wrong scenario is refused", a_wrong_scenario_is_refused},
        {"a world is built", a_world_is_built},
        {"a world is explored", a_world_is_explored},
        {"a world is walked", a_world_is_walked},
        {"a world is walked by priority", a_world_is_walked_by_priority},
        {"a trace is shrunk", a_trace_is_shrunk},
        {"a trace is written", a_trace_is_written},
        {"a trace is read", a_trace_is_read},
    };
    if (__tsan_init) {
        puts("skipped: ThreadSanitizer makes allocations of its own");
        return 77;
    }
    return run_tests("sim/no_memory", tests, sizeof tests / sizeof tests[0]);
}
