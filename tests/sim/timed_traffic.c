/* SPDX-License-Identifier: BSD-3-Clause */
#include "timed_traffic.h"

#include <CUnit/Basic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

void traffic_open(struct traffic *t, const struct sim_topology *topology, uint32_t flows,
                  uint32_t messages)
{
    *t = (struct traffic){.topology = *topology, .clock = {.end_ns = SIM_CLOCK_NEVER - 1}};
    t->flows = calloc(flows, sizeof *t->flows);
    t->messages = calloc(messages, sizeof *t->messages);
    CU_ASSERT_PTR_NOT_NULL_FATAL(t->flows);
    CU_ASSERT_PTR_NOT_NULL_FATAL(t->messages);
}

static size_t log_size(const struct traffic *t)
{
    return sizeof(struct traffic_log) + 2 * t->messages_count * sizeof(struct traffic_event);
}

static struct traffic_log *log_new(const struct traffic *t)
{
    void *shared =
        mmap(NULL, log_size(t), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CU_ASSERT_PTR_NOT_EQUAL_FATAL(shared, MAP_FAILED);
    return shared;
}

void traffic_log_free(struct traffic *t, struct traffic_log *log)
{
    munmap(log, log_size(t));
}

void traffic_close(struct traffic *t)
{
    if (t->log)
        traffic_log_free(t, t->log);
    sim_wire_close(t->wire);
    sim_clock_free(&t->clock);
    sim_topology_free(&t->topology);
    free(t->flows);
    free(t->messages);
}

uint32_t traffic_flow(struct traffic *t, uint32_t from, uint32_t to)
{
    t->flows[t->flows_count] = (struct sim_wire_flow){.from = from, .to = to, .context = t};
    return t->flows_count++;
}

static void note(struct traffic *t, uint64_t number, bool arrived)
{
    t->log->events[t->log->count++] = (struct traffic_event){
        .at_ns = t->clock.now_ns, .message = (uint32_t)number, .arrived = arrived};
}

static void has_arrived(void *context, uint64_t number)
{
    struct traffic *t = context;
    note(t, number, true);
    t->log->end_ns = t->clock.now_ns;
}

void traffic_arrives(struct sim_wire_flow *flow, struct sim_wire_message *message, uint64_t at_ns)
{
    struct traffic *t = flow->context;
    t->log->early += at_ns != t->clock.now_ns + flow->latency_ns;
    sim_clock_plan(&t->clock, at_ns, message->sequence, has_arrived, t,
                   (uint64_t)((struct traffic_message *)message - t->messages));
}

static void send_now(void *context, uint64_t number)
{
    struct traffic *t = context;
    note(t, number, false);
    sim_wire_send(t->wire, t->messages[number].flow, &t->messages[number].message);
}

void traffic_send(struct traffic *t, uint32_t flow, uint64_t at_ns, uint32_t octets)
{
    t->messages[t->messages_count] =
        (struct traffic_message){.message.octets = octets, .flow = &t->flows[flow]};
    sim_clock_at(&t->clock, at_ns, send_now, t, t->messages_count++);
}

static void run(struct traffic *t)
{
    t->wire->arrives = traffic_arrives;
    t->log->failed = sim_wire_run(t->wire);
}

const struct traffic_log *traffic_fifo(struct traffic *t)
{
    t->log = log_new(t);
    t->wire = sim_wire_fifo(&t->clock, &t->topology);
    CU_ASSERT_PTR_NOT_NULL_FATAL(t->wire);
    run(t);
    return t->log;
}

struct traffic_log *traffic_simgrid(struct traffic *t)
{
    struct traffic_log *log = log_new(t);
    log->failed = -1; /* until it says otherwise */
    fflush(stdout);
    pid_t child = fork();
    CU_ASSERT_FATAL(child >= 0);
    if (child == 0) {
        FILE *said = tmpfile();
        if (!said || dup2(fileno(said), STDOUT_FILENO) < 0 || dup2(fileno(said), STDERR_FILENO) < 0)
            _exit(1);
        t->log = log;
        t->wire = sim_wire_simgrid(&t->clock, &t->topology, log->why, sizeof log->why);
        if (t->wire)
            run(t);
        sim_wire_close(t->wire);
        fflush(stdout);
        log->printed = lseek(STDOUT_FILENO, 0, SEEK_END);
        _exit(0);
    }
    int status = -1;
    CU_ASSERT_EQUAL(waitpid(child, &status, 0), child);
    CU_ASSERT_EQUAL(status, 0);
    CU_ASSERT_STRING_EQUAL(log->why, "");
    CU_ASSERT_EQUAL(log->printed, 0);
    CU_ASSERT_EQUAL(log->early, 0); /* so what its callbacks do has the order of events */
    return log;
}

bool traffic_is_same(const struct traffic_log *a, const struct traffic_log *b)
{
    uint32_t count = a->count < b->count ? a->count : b->count;
    for (uint32_t i = 0; i < count; i++) {
        const struct traffic_event *of_a = &a->events[i], *of_b = &b->events[i];
        if (of_a->at_ns != of_b->at_ns || of_a->message != of_b->message ||
            of_a->arrived != of_b->arrived) {
            printf("event %u: message %u %s at %llu ns, and message %u %s at %llu ns\n", i,
                   of_a->message, of_a->arrived ? "arrives" : "is sent",
                   (unsigned long long)of_a->at_ns, of_b->message,
                   of_b->arrived ? "arrives" : "is sent", (unsigned long long)of_b->at_ns);
            return false;
        }
    }
    return a->count == b->count && a->failed == b->failed;
}

uint32_t traffic_chance(uint64_t *seed, uint32_t below)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    return (uint32_t)(*seed >> 32) % below;
}
