/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Protocol operations a second when one schedule is run straight through: a target with one worker
 * and an initiator in one thread, over the simulated RNIC in direct mode (sim/device.h). What is
 * measured is the code of ref/ on both sides and the RNIC's, on one core, without any network.
 *
 *     operations [SECONDS]         seconds per row, default 1
 *
 * Every second batch of a row is one in which the target counts what it does (ref/counters.h): what
 * that costs is the ratio of the two, which do not differ in anything else.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "ref/counters.h"
#include "ref/initiator.h"
#include "ref/worker.h"
#include "sim/device.h"

#define BLOCK 4096u
#define INLINE 64u
#define DEPTH 16u
#define HANDLES 64u
#define BATCH 10000u /* operations */

struct bench {
    struct sim_device *device;
    struct mem mem;
    struct kbtp_cpu target_cpu, initiator_cpu;
    struct kbtp_target target;
    struct kbtp_worker *worker;
    struct kbtp_counters counters;
    struct kbtp_initiator *initiator;
    struct rdma_region region;
    char *data;
};

/* For good: there is nothing to free. */
static void *zeroed(size_t octets)
{
    static _Alignas(64) char memory[1u << 20];
    static size_t used;
    size_t size = (octets + 63) / 64 * 64;
    if (size > sizeof memory - used) {
        fprintf(stderr, "operations: no memory\n");
        exit(4);
    }
    used += size;
    return memory + used - size;
}

static void must(int failed, const char *what)
{
    if (failed) {
        fprintf(stderr, "operations: %s: %s\n", what, strerror(-failed));
        exit(4);
    }
}

static void open_target(struct bench *b)
{
    struct kbtp_target_config config = {.block_count = HANDLES,
                                        .block_size = BLOCK,
                                        .max_inline = INLINE,
                                        .first_offset = BLOCK,
                                        .request_credits = DEPTH,
                                        .max_connections = 1,
                                        .staging = 1,
                                        .session_count = 1};
    struct kbtp_target_memory memory;
    struct kbtp_worker_memory need;
    struct kbtp_grant *grants = zeroed(sizeof *grants);
    grants[0] = (struct kbtp_grant){.quota = HANDLES, .handle_count = HANDLES};
    kbtp_target_layout(&config, grants, zeroed(kbtp_target_octets(&config, grants)), &memory);
    memory.blocks = zeroed((size_t)HANDLES * BLOCK);
    must(kbtp_target_init(&b->target, &b->target_cpu, &config, &memory), "target");
    kbtp_worker_memory(&b->target, &need);
    must(kbtp_worker_init(&b->worker, &b->target, &b->target_cpu, "target",
                          zeroed(need.private_octets), zeroed(need.buffer_octets)),
         "worker");
}

static void open_initiator(struct bench *b)
{
    struct kbtp_initiator_config config = {
        .address = "target", .initiator_id = {1}, .depth = DEPTH, .max_inline = INLINE};
    size_t private_octets, buffer_octets;
    kbtp_initiator_memory(&config, &private_octets, &buffer_octets);
    must(kbtp_initiator_init(&b->initiator, &b->initiator_cpu, &config, zeroed(private_octets),
                             zeroed(buffer_octets)),
         "initiator");
    b->data = zeroed(BLOCK);
    must(rdma_reg(b->initiator_cpu.rdma, b->data, BLOCK,
                  RDMA_LOCAL_WRITE | RDMA_REMOTE_READ | RDMA_REMOTE_WRITE, 0, &b->region),
         "buffer");
}

static void open_all(struct bench *b)
{
    struct sim_rnic_limits limits = {
        .connections = 1, .send_depth = 64, .recv_depth = 64, .max_sge = 1, .cqs = 1};
    struct sim_device_config config = {.rnic = {.ordering = SIM_ORDERING_RDMAP,
                                                .bits = SIM_RNIC_BITS,
                                                .max_message = BLOCK,
                                                .max_inline = 256,
                                                .max_reads = DEPTH,
                                                .regions = 16,
                                                .seed = 1}};
    b->device = sim_device_open(&config);
    if (!b->device)
        must(-12, "device");
    b->target_cpu = (struct kbtp_cpu){&b->mem, sim_device_handle(b->device, &limits)};
    b->initiator_cpu = (struct kbtp_cpu){&b->mem, sim_device_handle(b->device, &limits)};
    open_target(b);
    open_initiator(b);
    must(kbtp_initiator_connect(b->initiator, &b->initiator_cpu), "connect");
    struct kbtp_outcome outcome;
    for (int i = 0; i < 1000 && kbtp_initiator_state(b->initiator) != KBTP_INITIATOR_READY; i++) {
        kbtp_worker_poll(b->worker, &b->target_cpu, 16);
        kbtp_initiator_poll(b->initiator, &b->initiator_cpu, &outcome, 1);
    }
    if (kbtp_initiator_state(b->initiator) != KBTP_INITIATOR_READY)
        must(-110, "session");
}

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Submits up to `depth` requests, the n-th of which `make` makes, and takes their outcomes. */
static uint64_t run(struct bench *b, uint32_t depth, uint64_t count,
                    struct kbtp_operation (*make)(const struct bench *b, uint64_t n))
{
    struct kbtp_outcome outcomes[16];
    uint64_t submitted = 0, done = 0;
    while (done < count) {
        while (submitted < count && kbtp_initiator_outstanding(b->initiator) < depth) {
            struct kbtp_operation operation = make(b, submitted);
            must(kbtp_initiator_submit(b->initiator, &b->initiator_cpu, &operation, submitted),
                 "submit");
            submitted++;
        }
        kbtp_worker_poll(b->worker, &b->target_cpu, 16);
        int told = kbtp_initiator_poll(b->initiator, &b->initiator_cpu, outcomes, 16);
        for (int i = 0; i < told; i++)
            if (outcomes[i].error != 0 || outcomes[i].status != KBTP_STATUS_OK) {
                fprintf(stderr, "operations: request %" PRIu64 " ends with status %u\n",
                        outcomes[i].cookie, outcomes[i].status);
                exit(1);
            }
        done += told > 0 ? (uint64_t)told : 0;
    }
    return done;
}

static struct kbtp_operation operation(const struct bench *b, uint8_t opcode, uint64_t handle,
                                       uint32_t length, uint16_t flags)
{
    return (struct kbtp_operation){.handle = handle,
                                   .tagged_offset = b->region.base_to,
                                   .data = b->data,
                                   .stag = b->region.stag,
                                   .length = length,
                                   .flags = flags,
                                   .opcode = opcode};
}

/* Each handle is allocated, then freed. */
static struct kbtp_operation alloc_and_free(const struct bench *b, uint64_t n, uint32_t length,
                                            uint16_t flags)
{
    uint64_t handle = n / 2 % (HANDLES - 1) + 1; /* handle 0 is for loads */
    return n % 2 == 0 ? operation(b, KBTP_OP_ALLOC_STORE, handle, length, flags)
                      : operation(b, KBTP_OP_FREE, handle, 0, 0);
}

static struct kbtp_operation make_inline(const struct bench *b, uint64_t n)
{
    return alloc_and_free(b, n, INLINE, KBTP_FLAG_INLINE | KBTP_FLAG_SEAL);
}

static struct kbtp_operation make_read(const struct bench *b, uint64_t n)
{
    return alloc_and_free(b, n, BLOCK, KBTP_FLAG_SEAL);
}

static struct kbtp_operation make_load(const struct bench *b, uint64_t n)
{
    (void)n;
    return operation(b, KBTP_OP_LOAD, 0, BLOCK, 0);
}

static struct kbtp_operation make_first(const struct bench *b, uint64_t n)
{
    (void)n;
    return operation(b, KBTP_OP_ALLOC_STORE, 0, BLOCK, KBTP_FLAG_SEAL);
}

static struct kbtp_operation make_small(const struct bench *b, uint64_t n)
{
    (void)n;
    return operation(b, KBTP_OP_STORE, 1, 8, KBTP_FLAG_INLINE);
}

static struct kbtp_operation make_small_first(const struct bench *b, uint64_t n)
{
    (void)n;
    return operation(b, KBTP_OP_ALLOC_STORE, 1, 8, KBTP_FLAG_INLINE);
}

static void measure(struct bench *b, const char *name, uint32_t depth, double seconds,
                    struct kbtp_operation (*make)(const struct bench *b, uint64_t n))
{
    double elapsed[2] = {0}; /* without and with counters */
    uint64_t batches = 0;
    while (elapsed[0] + elapsed[1] < seconds || batches % 2 != 0) {
        double start = now_s();
        kbtp_worker_count_in(b->worker, batches % 2 != 0 ? &b->counters : NULL);
        run(b, depth, BATCH, make);
        elapsed[batches++ % 2] += now_s() - start;
    }
    double done = (double)batches / 2 * BATCH;
    printf("%-34s %6u %12.0f %10.0f %8.3f\n", name, depth, done / elapsed[0],
           elapsed[0] / done * 1e9, elapsed[1] / elapsed[0]);
}

int main(int argc, char **argv)
{
    double seconds = argc > 1 ? strtod(argv[1], NULL) : 1;
    struct bench b = {0};
    open_all(&b);
    printf("%-34s %6s %12s %10s %8s\n", "operation", "depth", "operations/s", "ns each",
           "counting");
    run(&b, 1, 1, make_first);
    measure(&b, "LOAD of 4 KiB", 1, seconds, make_load);
    measure(&b, "LOAD of 4 KiB", DEPTH, seconds, make_load);
    measure(&b, "ALLOC_STORE 64 inline, FREE", 1, seconds, make_inline);
    measure(&b, "ALLOC_STORE 64 inline, FREE", DEPTH, seconds, make_inline);
    measure(&b, "ALLOC_STORE 4 KiB by Read, FREE", DEPTH, seconds, make_read);
    run(&b, 1, 1, make_small_first);
    measure(&b, "STORE 8 inline", DEPTH, seconds, make_small);
    sim_device_close(b.device);
    return 0;
}
