/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/vm/session.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FAILED 1
#define BAD_INPUT 2
#define ENVIRONMENT 4

#define SLICE_NS 100000000 /* of waiting */
#define PATIENCE_S 40
#define RETRY_FIRST_NS 50000000u
#define RETRY_LONGEST_NS 400000000u

_Noreturn void give_up(int status, const char *format, ...)
{
    va_list values;
    va_start(values, format);
    (void)vfprintf(stderr, format, values); /* NOLINT(clang-analyzer-valist.Uninitialized) */
    va_end(values);
    (void)fputc('\n', stderr);
    exit(status);
}

uint32_t number_of(const char *text, const char *what)
{
    char *end;
    errno = 0;
    unsigned long number = strtoul(text, &end, 10);
    if (*text < '0' || *text > '9' || *end || errno || number > UINT32_MAX)
        give_up(BAD_INPUT, "%s: '%s' is not a number", what, text);
    return (uint32_t)number;
}

uint32_t pick(uint64_t *random, uint32_t limit)
{
    *random ^= *random << 13;
    *random ^= *random >> 7;
    *random ^= *random << 17;
    return (uint32_t)(*random >> 32) % limit;
}

static void *memory(size_t octets)
{
    size_t whole = (octets / 64 + 1) * 64;
    void *area = aligned_alloc(64, whole);
    if (!area)
        give_up(ENVIRONMENT, "no memory");
    memset(area, 0, whole);
    return area;
}

/* ---- data -------------------------------------------------------------------------------- */

static void fill_head(uint8_t head[DATA_LEAST], uint32_t length, uint64_t handle, uint32_t version)
{
    memcpy(head, &handle, 8);
    memcpy(head + 8, &version, 4);
    memcpy(head + 12, &length, 4);
}

static uint8_t octet_at(const uint8_t *head, uint32_t at)
{
    return (uint8_t)(head[at % DATA_LEAST] + at * 7u + (at >> 8));
}

void data_fill(uint8_t *to, uint32_t length, uint64_t handle, uint32_t version)
{
    fill_head(to, length, handle, version);
    for (uint32_t at = DATA_LEAST; at < length; at++)
        to[at] = octet_at(to, at);
}

bool data_is(const uint8_t *data, uint32_t length, uint64_t handle, uint32_t *version)
{
    uint8_t head[DATA_LEAST];
    if (length < DATA_LEAST)
        return false;
    memcpy(version, data + 8, 4);
    fill_head(head, length, handle, *version);
    bool is = memcmp(head, data, DATA_LEAST) == 0;
    for (uint32_t at = DATA_LEAST; at < length; at++)
        is &= data[at] == octet_at(head, at);
    return is;
}

/* ---- a session --------------------------------------------------------------------------- */

struct rdma_verbs *session_device(const char *address)
{
    char words[RDMA_VERBS_WORDS];
    struct rdma_verbs *device;
    struct rdma_verbs_config config = {
        .address = address, .connections = 1, .timers = 3, .connect_ms = 10000};
    (void)signal(SIGPIPE, SIG_IGN); /* as kbtp does: net/verbs/verbs.h */
    if (rdma_verbs_open(&config, &device, words) != 0)
        give_up(ENVIRONMENT, "%s", words);
    return device;
}

static void lost(const struct session *s, const char *what)
{
    int why = kbtp_initiator_why(s->initiator);
    const char *words = rdma_verbs_failure(s->cpu.rdma);
    if (why > 0)
        give_up(FAILED, "%s: refused with %s", what, kbtp_status_name((uint16_t)why));
    give_up(ENVIRONMENT, "%s: %s%s%s", what, strerror(-why), *words ? "; " : "", words);
}

int session_begin(struct session *s, struct rdma_verbs *device, const char *address,
                  uint32_t identity)
{
    char words[RDMA_VERBS_WORDS];
    size_t private_octets, buffer_octets;
    *s = (struct session){.device = device,
                          .config = {.address = address,
                                     .depth = SESSION_DEPTH,
                                     .max_inline = SESSION_MAX_INLINE,
                                     .retry_first_ns = RETRY_FIRST_NS,
                                     .retry_longest_ns = RETRY_LONGEST_NS,
                                     .retries = KBTP_MAX_RETRIES}};
    memcpy(s->config.initiator_id, "of a test", 10);
    memcpy(s->config.initiator_id + 12, &identity, 4);
    s->cpu.mem = &s->mem;
    if (rdma_verbs_handle(device, &s->cpu.rdma, words) != 0)
        give_up(ENVIRONMENT, "%s", words);
    kbtp_initiator_memory(&s->config, &private_octets, &buffer_octets);
    s->private_memory = memory(private_octets);
    s->buffers = memory(buffer_octets);
    int failed =
        kbtp_initiator_init(&s->initiator, &s->cpu, &s->config, s->private_memory, s->buffers);
    return failed ? failed : kbtp_initiator_connect(s->initiator, &s->cpu);
}

const struct kbtp_hello_ack *session_target(const struct session *s)
{
    return kbtp_initiator_target(s->initiator);
}

int session_poll(struct session *s, struct kbtp_outcome *outcome)
{
    int taken = kbtp_initiator_poll(s->initiator, &s->cpu, outcome, 1);
    if (taken == 0 && kbtp_initiator_state(s->initiator) != KBTP_INITIATOR_DOWN)
        taken = rdma_verbs_wait(s->cpu.rdma, SLICE_NS);
    if (taken < 0)
        give_up(ENVIRONMENT, "%s", rdma_verbs_failure(s->cpu.rdma));
    bool down = kbtp_initiator_state(s->initiator) == KBTP_INITIATOR_DOWN;
    if (taken == 1 ? outcome->error != 0 : s->open && down)
        lost(s, "the connection was lost");
    time_t now = time(NULL);
    if (taken == 1 || s->since == 0)
        s->since = now;
    if (now - s->since > PATIENCE_S)
        give_up(ENVIRONMENT, "nothing new for %u s; %u requests without outcome", PATIENCE_S,
                kbtp_initiator_outstanding(s->initiator));
    return taken;
}

void session_open(struct session *s)
{
    struct kbtp_outcome outcome;
    while (kbtp_initiator_state(s->initiator) != KBTP_INITIATOR_READY) {
        if (kbtp_initiator_state(s->initiator) == KBTP_INITIATOR_DOWN)
            lost(s, "cannot connect");
        (void)session_poll(s, &outcome);
    }
    s->data_octets = (size_t)session_target(s)->block_size * SESSION_DEPTH;
    s->data = memory(s->data_octets);
    uint32_t access = RDMA_LOCAL_WRITE | RDMA_REMOTE_READ | RDMA_REMOTE_WRITE;
    if (rdma_reg(s->cpu.rdma, s->data, s->data_octets, access, 0, &s->region) != 0)
        give_up(ENVIRONMENT, "%s", rdma_verbs_failure(s->cpu.rdma));
    s->open = true;
}

void session_close(struct session *s)
{
    if (s->initiator && kbtp_initiator_state(s->initiator) == KBTP_INITIATOR_DOWN)
        (void)kbtp_initiator_end(s->initiator, &s->cpu);
    if (s->region.length)
        (void)rdma_dereg(s->cpu.rdma, &s->region);
    rdma_verbs_handle_close(s->cpu.rdma);
    free(s->data);
    free(s->buffers);
    free(s->private_memory);
}

void session_leave(struct session *s, bool release)
{
    struct kbtp_outcome outcome;
    if (kbtp_initiator_goodbye(s->initiator, &s->cpu, release) != 0)
        give_up(FAILED, "GOODBYE cannot be sent");
    s->open = false;
    while (kbtp_initiator_state(s->initiator) != KBTP_INITIATOR_DOWN)
        (void)session_poll(s, &outcome);
    if (kbtp_initiator_why(s->initiator) != 0)
        lost(s, "GOODBYE");
    session_close(s);
}

/* ---- requests ---------------------------------------------------------------------------- */

uint8_t *session_place(const struct session *s, uint32_t place)
{
    return s->data + (size_t)place * session_target(s)->block_size;
}

struct kbtp_operation session_operation(const struct session *s, uint8_t opcode, uint32_t n,
                                        uint32_t place)
{
    struct kbtp_operation operation = {.handle = session_target(s)->handle_base + n,
                                       .opcode = opcode};
    if (opcode != KBTP_OP_FREE) {
        operation.length = session_target(s)->block_size;
        operation.stag = s->region.stag;
        operation.tagged_offset = s->region.base_to + (uint64_t)place * operation.length;
    }
    return operation;
}

void session_submit(struct session *s, const struct kbtp_operation *operation, uint64_t cookie)
{
    int failed = kbtp_initiator_submit(s->initiator, &s->cpu, operation, cookie);
    if (failed == -ENOTCONN || failed == -EIO)
        lost(s, "the connection was lost");
    if (failed)
        give_up(FAILED, "%s of handle 0x%llx cannot be sent: %s",
                kbtp_opcode_name(operation->opcode), (unsigned long long)operation->handle,
                strerror(-failed));
}

struct kbtp_outcome session_do(struct session *s, const struct kbtp_operation *operation)
{
    struct kbtp_outcome outcome;
    session_submit(s, operation, 0);
    while (session_poll(s, &outcome) == 0)
        ;
    return outcome;
}
