/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory and sessions: all there is before the first request, and how it ends. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/bench.h"
#include "cli/cli.h"
#include "cli/identity.h"
#include "cli/real.h"

#define MOST_HANDLES 1024u /* of a connection that was not told */

int bench_complain(const struct bench *b, const struct bench_session *s, const char *what,
                   int failed)
{
    cli_complain("%.60s: %s: %s", b->options->name, what, real_why(s->cpu.rdma, failed));
    return CLI_ENVIRONMENT;
}

/* ---- device and sessions ----------------------------------------------------------------- */

static int open_device(struct bench *b)
{
    const struct bench_options *o = b->options;
    char words[RDMA_VERBS_WORDS];
    int failed = real_open_initiator(o->device, o->address, o->timeout, &b->device, words);
    for (uint32_t i = 0; !failed && i < b->count; i++) {
        struct bench_session *s = &b->sessions[i];
        s->cpu.mem = &s->mem;
        failed = rdma_verbs_handle(b->device, &s->cpu.rdma, words);
        b->waiting[i] = s->cpu.rdma;
    }
    if (failed)
        cli_complain("%s", words);
    return failed ? CLI_ENVIRONMENT : CLI_DONE;
}

static int make_session(struct bench *b, struct bench_session *s)
{
    const struct bench_options *o = b->options;
    s->config = real_initiator(o->address);
    s->config.depth = (uint32_t)o->depth;
    s->config.max_inline = o->is_inline ? (uint32_t)o->length : 0;
    int status = identity_random(s->config.initiator_id);
    if (status != CLI_DONE)
        return status;
    kbtp_initiator_memory(&s->config, &s->private_octets, &s->buffer_octets);
    s->private_memory = real_memory(s->private_octets, "a session");
    s->buffers = real_memory(s->buffer_octets, "messages");
    if (!s->private_memory || !s->buffers)
        return CLI_ENVIRONMENT;
    int failed =
        kbtp_initiator_init(&s->initiator, &s->cpu, &s->config, s->private_memory, s->buffers);
    if (failed == -EINVAL) {
        cli_complain("--depth: %ju is more than the queues of %s take", (uintmax_t)o->depth,
                     rdma_verbs_device_name(b->device));
        return CLI_BAD_INPUT;
    }
    if (!failed)
        failed = kbtp_initiator_connect(s->initiator, &s->cpu);
    return failed ? bench_complain(b, s, "cannot connect", failed) : CLI_DONE;
}

/* ---- waiting for sessions to be there ---------------------------------------------------- */

static int refused(const struct bench *b, const struct bench_session *s)
{
    int why = kbtp_initiator_why(s->initiator);
    if (why == -EPROTO)
        cli_complain("%.60s: cannot connect: what answers there is no KBTP target",
                     b->options->name);
    else if (why <= 0)
        return bench_complain(b, s, "cannot connect", why == 0 ? -ECONNRESET : why);
    else
        cli_complain("%.60s: no session for connection %zu of %" PRIu32 ": %s%s", b->options->name,
                     (size_t)(s - b->sessions) + 1, b->count, kbtp_status_name((uint16_t)why),
                     why == KBTP_STATUS_NO_SPACE ? "; the target has --sessions, with retained ones"
                                                 : "");
    return why > 0 ? CLI_FOUND : CLI_ENVIRONMENT;
}

static int wait_for_all(struct bench *b)
{
    const char *what = "cannot connect";
    double until = real_now() + b->options->timeout;
    for (;;) {
        uint32_t there = 0;
        for (uint32_t i = 0; i < b->count; i++) {
            struct bench_session *s = &b->sessions[i];
            struct kbtp_outcome outcome;
            int taken = kbtp_initiator_poll(s->initiator, &s->cpu, &outcome, 1);
            enum kbtp_initiator_state state = kbtp_initiator_state(s->initiator);
            if (taken < 0)
                return bench_complain(b, s, what, taken);
            if (state == KBTP_INITIATOR_DOWN)
                return refused(b, s);
            there += state == KBTP_INITIATOR_READY;
        }
        if (there == b->count)
            return CLI_DONE;
        if (bench_interrupted()) {
            cli_complain("%.60s: interrupted before all sessions were there", b->options->name);
            return CLI_STOPPED;
        }
        double left = until - real_now();
        if (left <= 0) {
            cli_complain("%.60s: %s: no answer within %g s (--timeout)", b->options->name, what,
                         b->options->timeout);
            return CLI_ENVIRONMENT;
        }
        int failed = rdma_verbs_wait_any(b->waiting, b->count, real_nanoseconds(left));
        if (failed)
            return bench_complain(b, &b->sessions[0], what, failed);
    }
}

/* ---- what the target lets us do ---------------------------------------------------------- */

static bool fits(const struct bench *b, const struct kbtp_hello_ack *target)
{
    const struct bench_options *o = b->options;
    if (b->length > target->block_size)
        cli_complain("--length: %" PRIu32 ", and a block of this target has %" PRIu32 " octets",
                     b->length, target->block_size);
    else if (o->is_inline && b->length > target->max_inline)
        cli_complain("--inline: %" PRIu32 " octets, the target takes %" PRIu32 " (--length)",
                     b->length, target->max_inline);
    else if (o->depth_given && o->depth > target->request_credits)
        cli_complain("--depth: %ju, and the target gives %u credits", (uintmax_t)o->depth,
                     target->request_credits);
    else if (o->handles > target->handle_count || o->handles > target->allocation_quota)
        cli_complain("--handles: %ju, and each session has a quota of %" PRIu32 " blocks and %" //
                     PRIu32 " handles",
                     (uintmax_t)o->handles, target->allocation_quota, target->handle_count);
    else
        return true;
    return false;
}

static uint32_t least(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* All sessions are alike: what the first one has is what each can do. */
static int learn(struct bench *b)
{
    const struct bench_options *o = b->options;
    for (uint32_t i = 0; i < b->count; i++) {
        struct bench_session *s = &b->sessions[i];
        s->target = kbtp_initiator_target(s->initiator);
        if (i == 0)
            b->length = o->length ? (uint32_t)o->length : s->target->block_size;
        if (!fits(b, s->target))
            return CLI_BAD_INPUT;
        uint32_t has = least(s->target->allocation_quota, s->target->handle_count);
        if (has == 0) {
            cli_complain("%.60s: these identities may only load: their quota is 0", o->name);
            return CLI_FOUND;
        }
        has = least(has, o->handles ? (uint32_t)o->handles : MOST_HANDLES);
        b->handles = i == 0 ? has : least(b->handles, has);
        uint32_t credits = least((uint32_t)o->depth, s->target->request_credits);
        b->depth = i == 0 ? credits : least(b->depth, credits);
    }
    return CLI_DONE;
}

/* ---- places ------------------------------------------------------------------------------ */

static void *carve(char **memory, size_t octets)
{
    void *taken = *memory;
    *memory += (octets + 7) / 8 * 8;
    return taken;
}

static void lay_out(struct bench *b)
{
    char *memory = b->lists, *data = b->data;
    for (uint32_t i = 0; i < b->count; i++) {
        struct bench_session *s = &b->sessions[i];
        s->places = carve(&memory, b->depth * sizeof *s->places);
        s->handles = carve(&memory, b->handles * sizeof *s->handles);
        s->idle = carve(&memory, b->depth * sizeof *s->idle);
        uint32_t *lists = carve(&memory, b->handles * 2 * sizeof *lists);
        for (uint32_t n = 0; n < b->depth; n++)
            s->places[n].data = carve(&data, b->length);
        bench_work_init(b, s, lists);
    }
}

/* So that nothing is registered while it is measured. */
static bool has_windows(const struct bench *b)
{
    struct rdma_caps caps;
    rdma_caps(b->sessions[0].cpu.rdma, &caps);
    if (caps.bits & RDMA_CAP_WINDOW)
        return true;
    cli_complain("--invalidate: %s has no memory windows, so each STag would be a registration",
                 rdma_verbs_device_name(b->device));
    return false;
}

static int make_windows(struct bench *b)
{
    for (uint32_t i = 0; i < b->count; i++)
        for (uint32_t n = 0; n < b->depth; n++) {
            struct bench_session *s = &b->sessions[i];
            int failed = rdma_window_alloc(s->cpu.rdma, &s->places[n].window);
            if (failed)
                return bench_complain(b, s, "no memory window", failed);
        }
    return CLI_DONE;
}

static int make_places(struct bench *b)
{
    const size_t each = b->depth * (sizeof(struct bench_place) + sizeof(uint32_t)) +
                        b->handles * (sizeof(struct bench_handle) + 2 * sizeof(uint32_t)) + 3 * 8;
    const size_t padded = ((size_t)b->length + 7) / 8 * 8;
    b->lists_octets = b->count * each;
    b->data_octets = b->count * (size_t)b->depth * padded;
    b->lists = real_memory(b->lists_octets, "requests");
    b->data = real_memory(b->data_octets, "the data");
    if (!b->lists || !b->data)
        return CLI_ENVIRONMENT;
    lay_out(b);
    uint32_t access =
        RDMA_LOCAL_WRITE |
        (b->options->invalidate ? RDMA_BIND_WINDOW : RDMA_REMOTE_READ | RDMA_REMOTE_WRITE);
    struct bench_session *first = &b->sessions[0];
    int failed = rdma_reg(first->cpu.rdma, b->data, b->data_octets, access, 0, &b->region);
    if (failed)
        return bench_complain(b, first, "cannot register the data", failed);
    return b->options->invalidate ? make_windows(b) : CLI_DONE;
}

/* ------------------------------------------------------------------------------------------ */

int bench_open(struct bench *b, const struct bench_options *o, struct bench_result *result)
{
    b->options = o;
    b->result = result;
    b->count = (uint32_t)o->connections;
    b->random = o->seed;
    b->sessions = calloc(b->count, sizeof *b->sessions);
    b->waiting = calloc(b->count, sizeof(struct rdma *));
    if (!b->sessions || !b->waiting) {
        cli_complain("no memory for %" PRIu32 " sessions", b->count);
        return CLI_ENVIRONMENT;
    }
    int status = open_device(b);
    if (status == CLI_DONE && o->invalidate && !has_windows(b))
        status = CLI_ENVIRONMENT;
    for (uint32_t i = 0; status == CLI_DONE && i < b->count; i++)
        status = make_session(b, &b->sessions[i]);
    if (status == CLI_DONE)
        status = wait_for_all(b);
    if (status == CLI_DONE)
        status = learn(b);
    if (status == CLI_DONE)
        status = make_places(b);
    result->block_size = status == CLI_DONE ? b->sessions[0].target->block_size : 0;
    result->length = b->length;
    result->depth = b->depth;
    result->handles = b->handles;
    return status;
}

/* Is a session that said GOODBYE still there? */
static bool some_leave(struct bench *b)
{
    bool some = false;
    for (uint32_t i = 0; i < b->count; i++) {
        struct bench_session *s = &b->sessions[i];
        struct kbtp_outcome outcome;
        if (s->leaves && kbtp_initiator_poll(s->initiator, &s->cpu, &outcome, 1) >= 0)
            some |= kbtp_initiator_state(s->initiator) == KBTP_INITIATOR_ENDING;
    }
    return some;
}

bool bench_leave(struct bench *b)
{
    double until = real_now() + b->options->timeout, left = b->options->timeout;
    for (uint32_t i = 0; b->sessions && i < b->count; i++) {
        struct bench_session *s = &b->sessions[i];
        s->leaves = s->initiator && kbtp_initiator_goodbye(s->initiator, &s->cpu, true) == 0;
    }
    while (b->sessions && some_leave(b) && left > 0) {
        if (rdma_verbs_wait_any(b->waiting, b->count, real_nanoseconds(left)) != 0)
            return false;
        left = until - real_now();
    }
    return left > 0;
}

/* Whatever is left of a connection ends with its handle; then nothing reaches the memory. Windows
 * go with the device. */
static void close_session(struct bench *b, struct bench_session *s)
{
    if (s->initiator && kbtp_initiator_state(s->initiator) == KBTP_INITIATOR_DOWN)
        (void)kbtp_initiator_end(s->initiator, &s->cpu);
    if (s == &b->sessions[0] && b->region.length)
        (void)rdma_dereg(s->cpu.rdma, &b->region);
    if (s->cpu.rdma)
        rdma_verbs_handle_close(s->cpu.rdma);
    real_memory_end(s->private_memory, s->private_octets);
    real_memory_end(s->buffers, s->buffer_octets);
}

void bench_close(struct bench *b)
{
    for (uint32_t i = b->sessions ? b->count : 0; i > 0; i--)
        close_session(b, &b->sessions[i - 1]);
    rdma_verbs_close(b->device);
    real_memory_end(b->data, b->data_octets);
    real_memory_end(b->lists, b->lists_octets);
    free(b->waiting);
    free(b->sessions);
}
