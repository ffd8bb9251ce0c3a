/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A target and two initiators in one process and one thread, over the simulated RNIC: the writer
 * stores two blocks, the reader loads them, the writer frees one. docs/libkbtp.md explains it.
 *
 *     cc one-process.c $(pkg-config --cflags --libs kbtp-sim)
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ref/initiator.h"
#include "ref/worker.h"
#include "sim/device.h"

#define ADDRESS "target"
#define BLOCKS 8u
#define BLOCK_OCTETS 4096u
#define INLINE_OCTETS 64u
#define HANDLES 8u /* of each session */
#define SESSIONS 2u
#define CREDITS 4u

static struct mem native; /* no simulator behind it: accesses are C11 atomics */

struct server {
    struct kbtp_cpu cpu;
    struct kbtp_target target;
    struct kbtp_worker *worker;
    struct kbtp_grant grants[SESSIONS];
    void *shared, *blocks, *private_memory, *buffers;
};

struct client {
    const char *name;
    struct kbtp_cpu cpu;
    struct kbtp_initiator *initiator;
    struct kbtp_initiator_config config;
    void *private_memory, *buffers;
    unsigned char *data; /* one block, which the target reads and writes */
    struct rdma_region region;
};

/* An example has nobody to hand an error to. */
static int must(int result, const char *what)
{
    if (result < 0) {
        fprintf(stderr, "one-process: %s: %s\n", what, strerror(-result));
        exit(1);
    }
    return result;
}

static void expect(bool holds, const char *what)
{
    if (!holds) {
        fprintf(stderr, "one-process: not so: %s\n", what);
        exit(1);
    }
}

static void *memory(size_t octets)
{
    void *area = aligned_alloc(64, (octets + 63) / 64 * 64);
    expect(area != NULL, "there is memory");
    return area;
}

static struct kbtp_cpu cpu_on(struct sim_device *device)
{
    struct rdma *handle = sim_device_handle(device, &(struct sim_rnic_limits){0});
    expect(handle != NULL, "the device has a handle left");
    return (struct kbtp_cpu){.mem = &native, .rdma = handle};
}

/* ---- target ------------------------------------------------------------------------------ */

static void open_server(struct server *s)
{
    struct kbtp_target_config config = {.block_count = BLOCKS,
                                        .block_size = BLOCK_OCTETS,
                                        .max_inline = INLINE_OCTETS,
                                        .first_handle = 100,
                                        .request_credits = CREDITS,
                                        .max_connections = SESSIONS,
                                        .staging = 1,
                                        .session_count = SESSIONS};
    struct kbtp_target_memory places;
    struct kbtp_worker_memory need;
    s->shared = memory(kbtp_target_octets(&config, s->grants));
    s->blocks = memory((size_t)BLOCKS * BLOCK_OCTETS);
    kbtp_target_layout(&config, s->grants, s->shared, &places);
    places.blocks = s->blocks;
    must(kbtp_target_init(&s->target, &s->cpu, &config, &places), "target");

    kbtp_worker_memory(&s->target, &need);
    s->private_memory = memory(need.private_octets);
    s->buffers = memory(need.buffer_octets);
    must(kbtp_worker_init(&s->worker, &s->target, &s->cpu, ADDRESS, s->private_memory, s->buffers),
         "worker");
}

static void serve(struct server *s)
{
    must(kbtp_worker_poll(s->worker, &s->cpu, 16), "worker");
}

static void close_server(struct server *s)
{
    kbtp_worker_stop(s->worker, &s->cpu);
    while (!kbtp_worker_idle(s->worker))
        serve(s);
    must(kbtp_worker_end(s->worker, &s->cpu), "end of the worker");
    must(kbtp_target_end(&s->target, &s->cpu), "end of the target");
    free(s->buffers);
    free(s->private_memory);
    free(s->blocks);
    free(s->shared);
}

/* ---- initiators -------------------------------------------------------------------------- */

static void open_client(struct client *c)
{
    size_t private_octets, buffer_octets;
    kbtp_initiator_memory(&c->config, &private_octets, &buffer_octets);
    c->private_memory = memory(private_octets);
    c->buffers = memory(buffer_octets);
    c->data = memory(BLOCK_OCTETS);
    must(rdma_reg(c->cpu.rdma, c->data, BLOCK_OCTETS,
                  RDMA_LOCAL_WRITE | RDMA_REMOTE_READ | RDMA_REMOTE_WRITE, 0, &c->region),
         "registering a buffer");
    must(kbtp_initiator_init(&c->initiator, &c->cpu, &c->config, c->private_memory, c->buffers),
         "initiator");
}

/* Lets both sides take what has come; true with the outcome of a request. */
static bool progress(struct client *c, struct server *s, struct kbtp_outcome *outcome)
{
    serve(s);
    return must(kbtp_initiator_poll(c->initiator, &c->cpu, outcome, 1), "initiator") == 1;
}

static void connect_client(struct client *c, struct server *s)
{
    struct kbtp_outcome none;
    must(kbtp_initiator_connect(c->initiator, &c->cpu), "connecting");
    while (kbtp_initiator_state(c->initiator) == KBTP_INITIATOR_CONNECTING)
        progress(c, s, &none);
    expect(kbtp_initiator_state(c->initiator) == KBTP_INITIATOR_READY, "the target welcomes us");
    const struct kbtp_hello_ack *target = kbtp_initiator_target(c->initiator);
    printf("%-6s  is connected: handles from %llu, quota %u, blocks of %u octets\n", c->name,
           (unsigned long long)target->handle_base, target->allocation_quota, target->block_size);
}

/* One request, to its end. Others would submit more before they poll. */
static struct kbtp_outcome run(struct client *c, struct server *s, struct kbtp_operation operation,
                               enum kbtp_status expected)
{
    struct kbtp_outcome outcome;
    operation.data = c->data;
    operation.stag = c->region.stag;
    operation.tagged_offset = c->region.base_to;
    must(kbtp_initiator_submit(c->initiator, &c->cpu, &operation, 0), "submitting");
    while (!progress(c, s, &outcome))
        ;
    must(outcome.error, "the connection");
    printf("%-6s  %-11s handle %llu: %s, generation %u, %u octets\n", c->name,
           kbtp_opcode_name(operation.opcode), (unsigned long long)operation.handle,
           kbtp_status_name(outcome.status), outcome.generation, outcome.data_length);
    expect(outcome.status == expected, "the status is as expected");
    return outcome;
}

static void close_client(struct client *c, struct server *s)
{
    struct kbtp_outcome none;
    must(kbtp_initiator_goodbye(c->initiator, &c->cpu, true), "GOODBYE");
    while (kbtp_initiator_state(c->initiator) != KBTP_INITIATOR_DOWN)
        progress(c, s, &none);
    must(kbtp_initiator_end(c->initiator, &c->cpu), "end of the initiator");
    must(rdma_dereg(c->cpu.rdma, &c->region), "deregistering the buffer");
    free(c->data);
    free(c->buffers);
    free(c->private_memory);
}

/* ---- what happens ------------------------------------------------------------------------ */

static void fill(struct client *c, int octet)
{
    memset(c->data, octet, BLOCK_OCTETS);
}

static bool holds(const struct client *c, int octet, size_t octets)
{
    for (size_t i = 0; i < octets; i++)
        if (c->data[i] != octet)
            return false;
    return true;
}

static void store_load_free(struct client *writer, struct client *reader, struct server *s)
{
    uint64_t first = kbtp_initiator_target(writer->initiator)->handle_base, second = first + 1;

    /* A new block, which the target fills by RDMA Read, and one out of the message itself. */
    struct kbtp_operation store = {
        .opcode = KBTP_OP_ALLOC_STORE, .handle = first, .length = BLOCK_OCTETS};
    store.flags = KBTP_FLAG_SEAL;
    fill(writer, 'r');
    uint16_t generation = run(writer, s, store, KBTP_STATUS_OK).generation;
    store.handle = second;
    store.length = INLINE_OCTETS;
    store.flags = KBTP_FLAG_SEAL | KBTP_FLAG_INLINE;
    fill(writer, 'i');
    run(writer, s, store, KBTP_STATUS_OK);

    /* Whoever knows the handle loads; the target writes into the buffer. */
    struct kbtp_operation load = {.opcode = KBTP_OP_LOAD, .length = BLOCK_OCTETS};
    load.handle = second;
    expect(run(reader, s, load, KBTP_STATUS_OK).data_length == INLINE_OCTETS, "its length");
    expect(holds(reader, 'i', INLINE_OCTETS), "it holds what was stored");
    load.handle = first;
    load.generation = generation; /* this content and no other */
    expect(run(reader, s, load, KBTP_STATUS_OK).data_length == BLOCK_OCTETS, "its length");
    expect(holds(reader, 'r', BLOCK_OCTETS), "it holds what was stored");

    /* FREE changes the Generation: what the reader knew is stale. */
    struct kbtp_operation free_it = {.opcode = KBTP_OP_FREE, .handle = first};
    run(writer, s, free_it, KBTP_STATUS_OK);
    run(reader, s, load, KBTP_STATUS_STALE_GENERATION);
}

int main(void)
{
    struct sim_device *device =
        sim_device_open(&(struct sim_device_config){.rnic = {.bits = SIM_RNIC_BITS}});
    expect(device != NULL, "there is a device");
    struct server server = {.cpu = cpu_on(device)};
    struct client clients[SESSIONS] = {{.name = "writer"}, {.name = "reader"}};
    for (uint32_t i = 0; i < SESSIONS; i++) {
        struct client *c = &clients[i];
        c->cpu = cpu_on(device);
        c->config = (struct kbtp_initiator_config){
            .address = ADDRESS, .depth = CREDITS, .max_inline = INLINE_OCTETS};
        must(rdma_random(c->cpu.rdma, c->config.initiator_id, KBTP_INITIATOR_ID_OCTETS), "random");
        /* The target knows whom it serves, and what each may have: the reader allocates nothing. */
        server.grants[i] =
            (struct kbtp_grant){.known = 1, .quota = i == 0 ? 4 : 0, .handle_count = HANDLES};
        memcpy(server.grants[i].initiator_id, c->config.initiator_id, KBTP_INITIATOR_ID_OCTETS);
    }

    open_server(&server);
    for (uint32_t i = 0; i < SESSIONS; i++) {
        open_client(&clients[i]);
        connect_client(&clients[i], &server);
    }
    store_load_free(&clients[0], &clients[1], &server);
    for (uint32_t i = 0; i < SESSIONS; i++)
        close_client(&clients[i], &server);
    close_server(&server);
    sim_device_close(device);
    return 0;
}
