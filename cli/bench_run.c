/* SPDX-License-Identifier: BSD-3-Clause */
/* The phases: filling the handles, warming up, measuring. Between them nothing is outstanding. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "cli/bench.h"
#include "cli/cli.h"
#include "cli/pattern.h"
#include "cli/real.h"
#include "cli/scrape.h"

#define BATCH 16u
#define IDLE_ROUNDS 64u  /* between two looks at the clock */
#define NAP_NS 100000000 /* a signal that comes just before a wait is seen after it */
#define CPU_SECONDS "process_cpu_seconds_total"

struct phase {
    uint64_t begun_ns, until_ns; /* UINT64_MAX: no end but that of its operations */
    uint64_t last_ns;            /* of an outcome */
};

static volatile sig_atomic_t interrupted;

static void interrupt(int signal_number)
{
    (void)signal_number;
    interrupted = 1;
}

/* The second one ends the program at once. */
void bench_take_signals(void)
{
    struct sigaction action = {.sa_handler = interrupt, .sa_flags = (int)SA_RESETHAND};
    (void)sigaction(SIGINT, &action, NULL);
    (void)sigaction(SIGTERM, &action, NULL);
}

bool bench_interrupted(void)
{
    return interrupted;
}

/* ---- a phase ----------------------------------------------------------------------------- */

/* Outcomes, then new requests in their places. How many outcomes there were, or -errno. */
static int serve(struct bench *b, struct bench_session *s, struct phase *phase)
{
    struct kbtp_outcome outcomes[BATCH];
    int taken = kbtp_initiator_poll(s->initiator, &s->cpu, outcomes, BATCH);
    if (taken > 0)
        phase->last_ns = real_now_ns();
    for (int i = 0; i < taken; i++) {
        int failed =
            outcomes[i].error ? outcomes[i].error : bench_ended(b, s, &outcomes[i], phase->last_ns);
        if (failed)
            return failed;
    }
    if (kbtp_initiator_state(s->initiator) != KBTP_INITIATOR_READY)
        return kbtp_initiator_why(s->initiator) ? kbtp_initiator_why(s->initiator) : -ECONNRESET;
    int failed = taken < 0 ? taken : bench_begin(b, s);
    return failed ? failed : taken;
}

static bool all_idle(const struct bench *b)
{
    for (uint32_t i = 0; i < b->count; i++)
        if (!bench_is_idle(&b->sessions[i]))
            return false;
    return true;
}

/* Nothing came, for a while. */
static int rest(struct bench *b, struct phase *phase)
{
    uint64_t now = real_now_ns();
    if (interrupted || now >= phase->until_ns)
        b->to_begin = 0;
    if (now - phase->last_ns > (uint64_t)real_nanoseconds(b->options->timeout))
        return -ETIMEDOUT;
    if (b->options->poll)
        return 0;
    uint64_t left = phase->until_ns - now;
    int64_t nap = b->to_begin != 0 && left < NAP_NS ? (int64_t)left : NAP_NS;
    return rdma_verbs_wait_any(b->waiting, b->count, nap);
}

static int lost(const struct bench *b, const struct bench_session *s, int failed)
{
    if (failed == -ETIMEDOUT) {
        cli_complain("%.60s: no answer within %g s (--timeout)", b->options->name,
                     b->options->timeout);
        return CLI_ENVIRONMENT;
    }
    return bench_complain(b, s, "the connection was lost", failed);
}

/* So many operations, or for so long (seconds); until all have their outcomes. */
static int run_phase(struct bench *b, uint64_t operations, double duration, struct phase *phase)
{
    uint64_t span = (uint64_t)real_nanoseconds(duration);
    phase->begun_ns = phase->last_ns = real_now_ns();
    phase->until_ns = operations ? UINT64_MAX : phase->begun_ns + span;
    b->to_begin = operations ? operations : UINT64_MAX;
    for (uint32_t idle_rounds = 0; !(b->to_begin == 0 && all_idle(b));) {
        bool some = false;
        for (uint32_t i = 0; i < b->count; i++) {
            int taken = serve(b, &b->sessions[i], phase);
            if (taken < 0)
                return lost(b, &b->sessions[i], taken);
            some |= taken > 0;
        }
        idle_rounds = some ? 0 : idle_rounds + 1;
        if (interrupted || phase->last_ns >= phase->until_ns)
            b->to_begin = 0;
        if (some || (b->options->poll && idle_rounds % IDLE_ROUNDS != 0))
            continue;
        int failed = rest(b, phase);
        if (failed)
            return lost(b, &b->sessions[0], failed);
    }
    return CLI_DONE;
}

/* ---- what is read before and after ------------------------------------------------------- */

static void add_counts(const struct bench *b, struct rdma_verbs_counts *sum, int sign)
{
    for (uint32_t i = 0; i < b->count; i++) {
        struct rdma_verbs_counts c;
        rdma_verbs_counts(b->sessions[i].cpu.rdma, &c);
        uint64_t times = sign < 0 ? UINT64_MAX : 1; /* modulo 2^64: -1 */
        sum->registrations += times * c.registrations;
        sum->send_batches += times * c.send_batches;
        sum->recv_batches += times * c.recv_batches;
        sum->work_requests += times * c.work_requests;
        sum->looks += times * c.looks;
        sum->waits += times * c.waits;
    }
}

static int read_target_cpu(const struct bench *b, double *seconds)
{
    *seconds = -1;
    if (!b->options->target_metrics)
        return CLI_DONE;
    return scrape(b->options->target_metrics, CPU_SECONDS, b->options->timeout, seconds);
}

static int measure(struct bench *b)
{
    const struct bench_options *o = b->options;
    struct bench_result *r = b->result;
    struct phase phase;
    double target_before, target_after;
    int status = read_target_cpu(b, &target_before);
    if (status != CLI_DONE)
        return status;
    add_counts(b, &r->counts, -1);
    double before = real_cpu();
    b->measures = true;
    status = run_phase(b, o->count, o->duration, &phase);
    b->measures = false;
    r->cpu_s = real_cpu() - before;
    add_counts(b, &r->counts, 1);
    r->seconds = (double)(phase.last_ns - phase.begun_ns) / 1e9;
    r->interrupted = interrupted;
    /* Who cannot be asked any more has said why; what was measured stands. */
    bool asked = status == CLI_DONE && read_target_cpu(b, &target_after) == CLI_DONE;
    r->target_cpu_s = asked && target_before >= 0 ? target_after - target_before : -1;
    return status;
}

/* What is stored first, and never again without --verify. */
static void fill_buffers(struct bench *b)
{
    for (uint32_t i = 0; i < b->count; i++)
        for (uint32_t n = 0; n < b->depth; n++) {
            struct bench_place *p = &b->sessions[i].places[n];
            pattern_fill(p->data, b->length, p->holds = pattern_key(b->options->seed, i, n));
        }
}

int bench_run(struct bench *b)
{
    const struct bench_options *o = b->options;
    struct phase phase;
    fill_buffers(b);
    /* Half of the handles have a block, so that there is one for each kind of request. */
    for (uint32_t i = 0; i < b->count; i++)
        b->sessions[i].mix.fill = (b->handles + 1) / 2;
    b->fills = true;
    int status = run_phase(b, (uint64_t)b->count * ((b->handles + 1) / 2), 0, &phase);
    b->fills = false;
    if (status == CLI_DONE && o->warm_up > 0 && !*b->result->wrong && !interrupted)
        status = run_phase(b, 0, o->warm_up, &phase);
    if (status == CLI_DONE && !*b->result->wrong && !interrupted)
        status = measure(b);
    b->result->interrupted = interrupted;
    return status;
}
