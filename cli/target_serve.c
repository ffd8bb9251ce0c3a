/* SPDX-License-Identifier: BSD-3-Clause */
/* Threads: a worker in each, and how they end. */
#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/real.h"
#include "cli/target.h"

#define BUDGET 64u     /* completions of one poll */
#define SPINS 2000u    /* polls without anything new while something waits */
#define NAP_NS 1000000 /* then it sleeps so long at a time */
#define STOP_S 5.0     /* for all that was begun to end */
#define ANSWER_S 1.0

/* ---- a worker ---------------------------------------------------------------------------- */

/* Does each poll do some of what is to be done? */
static bool works(const struct kbtp_worker_look *look)
{
    return look->releases || look->leaving;
}

/* Does something wait that no completion, event or timer tells of? */
static bool waits(const struct kbtp_worker_look *look)
{
    return look->deferred || look->drained || look->requests > look->reads + look->loads;
}

/* A HELLO may wait for another worker to ask its connection whether it lives, and that one may
 * sleep. */
static void wake_others(const struct server_worker *w)
{
    for (uint32_t i = 0; i < w->server->worker_count; i++)
        if (&w->server->workers[i] != w)
            rdma_verbs_wake(w->server->workers[i].cpu.rdma);
}

/* Nothing was new, `idle_polls` times by now. */
static int rest(struct server_worker *w, uint32_t idle_polls)
{
    struct kbtp_worker_look look;
    bool stopping = atomic_load_explicit(&w->server->stopping, memory_order_relaxed);
    if (w->server->options->poll)
        return 0;
    kbtp_worker_look(w->worker, &look);
    if (works(&look))
        return 0;
    if (!stopping && !waits(&look))
        return rdma_verbs_wait(w->cpu.rdma, -1);
    if (idle_polls < SPINS)
        return 0;
    if (look.hellos)
        wake_others(w);
    return rdma_verbs_wait(w->cpu.rdma, NAP_NS);
}

/* The sum is this thread's from when it was asked until it has answered. */
static void answer(struct server_worker *w)
{
    unsigned asked = atomic_load_explicit(&w->asked, memory_order_acquire);
    if (asked == atomic_load_explicit(&w->answered, memory_order_relaxed))
        return;
    kbtp_worker_counters(w->worker, &w->server->sum.counters);
    kbtp_worker_gauges(w->worker, &w->server->sum.gauges);
    atomic_store_explicit(&w->answered, asked, memory_order_release);
}

static void *work(void *argument)
{
    struct server_worker *w = argument;
    struct server *s = w->server;
    bool stopped = false;
    uint32_t idle_polls = 0;
    int taken = 0;
    while (!atomic_load_explicit(&s->over, memory_order_relaxed)) {
        if (!stopped && atomic_load_explicit(&s->stopping, memory_order_relaxed)) {
            kbtp_worker_stop(w->worker, &w->cpu);
            stopped = true;
        }
        taken = kbtp_worker_poll(w->worker, &w->cpu, BUDGET);
        if (taken < 0)
            break;
        answer(w);
        if (stopped)
            atomic_store(&w->idle, kbtp_worker_idle(w->worker));
        idle_polls = taken > 0 ? 0 : idle_polls + 1;
        if (taken == 0 && (taken = rest(w, idle_polls)) < 0)
            break;
    }
    if (taken < 0) {
        w->failed = taken;
        atomic_store(&w->idle, true); /* nobody waits for it */
        (void)kill(getpid(), SERVER_FAILED);
    }
    return NULL;
}

int server_start(struct server *s)
{
    for (uint32_t i = 0; s->workers && i < s->worker_count; i++) {
        int failed = pthread_create(&s->workers[i].thread, NULL, work, &s->workers[i]);
        if (failed) {
            cli_complain("no thread for a worker: %s", strerror(failed));
            return CLI_ENVIRONMENT;
        }
        s->workers[i].started = true;
    }
    return CLI_DONE;
}

/* ---- the end ----------------------------------------------------------------------------- */

int server_wait(void)
{
    sigset_t signals;
    int found = 0;
    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SERVER_FAILED);
    while (sigwait(&signals, &found) != 0)
        ;
    return found;
}

static void wake_all(const struct server *s)
{
    for (uint32_t i = 0; s->workers && i < s->worker_count; i++)
        if (s->workers[i].started)
            rdma_verbs_wake(s->workers[i].cpu.rdma);
}

static void nap(void)
{
    struct timespec time = {.tv_nsec = NAP_NS};
    (void)nanosleep(&time, NULL);
}

static bool all_idle(struct server *s)
{
    for (uint32_t i = 0; s->workers && i < s->worker_count; i++)
        if (s->workers[i].started && !atomic_load(&s->workers[i].idle))
            return false;
    return true;
}

/* All workers go on until each is idle: a free of one may wait for another's request. */
bool server_stop(struct server *s)
{
    bool clean = true;
    double until = real_now() + STOP_S;
    atomic_store(&s->stopping, true);
    wake_all(s);
    while (!all_idle(s) && real_now() < until)
        nap();
    atomic_store(&s->over, true);
    wake_all(s);
    for (uint32_t i = 0; s->workers && i < s->worker_count; i++) {
        struct server_worker *w = &s->workers[i];
        if (!w->started)
            continue;
        (void)pthread_join(w->thread, NULL);
        w->started = false;
        if (w->failed)
            cli_complain("worker %u: %s", i,
                         *rdma_verbs_failure(w->cpu.rdma) ? rdma_verbs_failure(w->cpu.rdma)
                                                          : strerror(-w->failed));
        else if (!kbtp_worker_idle(w->worker))
            cli_complain("worker %u: not idle %g s after the stop", i, STOP_S);
        else
            continue;
        clean = false;
    }
    return clean;
}

/* ---- counting ---------------------------------------------------------------------------- */

static bool has_answered(const struct server_worker *w)
{
    return atomic_load_explicit(&w->answered, memory_order_acquire) ==
           atomic_load_explicit(&w->asked, memory_order_relaxed);
}

static bool ask(struct server_worker *w)
{
    double until = real_now() + ANSWER_S;
    atomic_fetch_add_explicit(&w->asked, 1, memory_order_release);
    rdma_verbs_wake(w->cpu.rdma);
    while (!has_answered(w) && real_now() < until)
        nap();
    return has_answered(w);
}

bool server_count(struct server *s)
{
    struct mem mem = {NULL};
    for (uint32_t i = 0; s->workers && i < s->worker_count; i++)
        if (s->workers[i].started && !has_answered(&s->workers[i]))
            return false; /* since last time: the sum is not ours */
    s->sum.counters = (struct kbtp_counters){.values = {0}};
    kbtp_target_gauges(&mem, &s->target, s->sum.sessions, &s->sum.gauges);
    for (uint32_t i = 0; s->workers && i < s->worker_count; i++) {
        struct server_worker *w = &s->workers[i];
        if (w->started) {
            if (!ask(w))
                return false;
        } else if (w->worker) {
            kbtp_worker_counters(w->worker, &s->sum.counters);
            kbtp_worker_gauges(w->worker, &s->sum.gauges);
        }
    }
    return true;
}
