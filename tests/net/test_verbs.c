/* SPDX-License-Identifier: BSD-3-Clause */
/* net/verbs on an rdma-core for tests: devices, work requests, windows, completions, waiting. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "tests/net/verbs_world.h"
#include "tests/run.h"

static struct vw world;
static struct vw *const w = &world;
static const enum fake_kind kinds[] = {FAKE_SIW, FAKE_RXE};

static void open_world(const struct fake_config *config)
{
    fake_open(config);
    CU_ASSERT_EQUAL_FATAL(vw_open(w, 0), 0);
}

static void open_connected(enum fake_kind kind)
{
    const struct fake_config config = {.kind = kind, .devices = 1};
    open_world(&config);
    CU_ASSERT_EQUAL_FATAL(vw_connect(w), 0);
}

static void close_world(void)
{
    vw_close(w);
    CU_ASSERT_EQUAL(fake_close(), 0);
}

/* ---- devices ----------------------------------------------------------------------------- */

static void expect_refused(const struct rdma_verbs_config *config, int error, const char *says)
{
    struct rdma_verbs *device;
    char words[RDMA_VERBS_WORDS];
    CU_ASSERT_EQUAL(rdma_verbs_open(config, &device, words), error);
    CU_ASSERT_PTR_NULL(device);
    CU_ASSERT(strstr(words, says) != NULL);
    if (!strstr(words, says))
        (void)printf("\"%s\"\n", words);
}

static void expect_opened(const struct rdma_verbs_config *config)
{
    struct rdma_verbs *device;
    char words[RDMA_VERBS_WORDS];
    CU_ASSERT_EQUAL_FATAL(rdma_verbs_open(config, &device, words), 0);
    CU_ASSERT_STRING_EQUAL(words, "");
    CU_ASSERT_STRING_EQUAL(rdma_verbs_device_name(device), "fake0");
    rdma_verbs_close(device);
}

/* By name, by an address, or because there is no other. */
static void devices_are_chosen(void)
{
    for (uint32_t devices = 0; devices < 3; devices++) {
        fake_open(&(struct fake_config){.kind = FAKE_RXE, .devices = devices});
        struct rdma_verbs_config config = {.connections = 1};
        if (devices == 0)
            expect_refused(&config, -ENODEV, "ib_uverbs");
        else if (devices == 1)
            expect_opened(&config);
        else
            expect_refused(&config, -EINVAL, "name one");
        config.device = "fake0";
        if (devices)
            expect_opened(&config);
        config.device = "mlx5_0";
        expect_refused(&config, -ENODEV, devices ? "mlx5_0: no such RDMA device" : "ib_uverbs");
        config.device = NULL;
        config.address = FAKE_HERE ":1"; /* ours */
        if (devices)
            expect_opened(&config);
        config.address = FAKE_SILENT ":1"; /* a peer's */
        if (devices)
            expect_opened(&config);
        config.address = "0.0.0.0:1";
        if (devices == 1)
            expect_opened(&config);
        else if (devices == 2)
            expect_refused(&config, -ENODEV, "0.0.0.0:1: rdma_resolve_addr: No such device");
        config.address = FAKE_BAD_ADDRESS ":1";
        if (devices)
            expect_refused(&config, -ETIMEDOUT, "nobody at this address answers");
        config.address = "nonsense";
        if (devices)
            expect_refused(&config, -EINVAL, "not of the form");
        config.connections = 65536;
        expect_refused(&config, -EINVAL, "65535");
        CU_ASSERT_EQUAL(fake_close(), 0);
    }
}

static void devices_are_described(void)
{
    for (int i = 0; i < 2; i++) {
        struct rdma_verbs_about about;
        char words[RDMA_VERBS_WORDS] = "";
        fake_open(&(struct fake_config){.kind = kinds[i], .devices = 2});
        CU_ASSERT_EQUAL(rdma_verbs_about(0, &about, words), 0);
        CU_ASSERT_STRING_EQUAL(about.name, "fake0"); /* the list is not sorted */
        CU_ASSERT_STRING_EQUAL(about.driver, i ? "rxe" : "siw");
        CU_ASSERT_STRING_EQUAL(about.transport, i ? "RoCE" : "iWARP");
        CU_ASSERT_STRING_EQUAL(about.state, "active");
        CU_ASSERT_EQUAL(about.caps.max_inline, i ? 512 : 80);
        CU_ASSERT_EQUAL(about.caps.max_message, i ? 8u << 20 : UINT32_MAX);
        CU_ASSERT_EQUAL(about.caps.max_read_sge, i ? 16 : 1);
        CU_ASSERT_EQUAL(about.caps.bits & RDMA_CAP_WINDOW, i ? RDMA_CAP_WINDOW : 0);
        CU_ASSERT_STRING_EQUAL(about.gid, i ? "::ffff:10.0.0.1 (1)" : "");
        CU_ASSERT_EQUAL(rdma_verbs_about(1, &about, words), 0);
        CU_ASSERT_STRING_EQUAL(about.name, "fake1");
        CU_ASSERT_EQUAL(rdma_verbs_about(2, &about, words), -ENOENT);
        CU_ASSERT_EQUAL(fake_close(), 0);
    }
}

/* ---- work requests ----------------------------------------------------------------------- */

static void data_moves(void)
{
    for (int i = 0; i < 2; i++) {
        struct rdma_sge sge;
        struct rdma_wr wr;
        open_connected(kinds[i]);
        memset(w->a.memory, 0x11, 64);
        wr = vw_wr(w, RDMA_WRITE, &sge, 64);
        CU_ASSERT_EQUAL(vw_do(w, &w->a, &wr), RDMA_OK);
        CU_ASSERT_EQUAL(memcmp(w->a.memory, w->b.memory, 64), 0);
        memset(w->b.memory, 0x22, 64);
        wr = vw_wr(w, RDMA_READ, &sge, 64);
        CU_ASSERT_EQUAL(vw_do(w, &w->a, &wr), RDMA_OK);
        CU_ASSERT_EQUAL(w->a.memory[63], 0x22);
        wr = vw_wr(w, RDMA_NOOP, &sge, 0);
        CU_ASSERT_EQUAL(vw_do(w, &w->a, &wr), RDMA_OK);
        wr = vw_wr(w, RDMA_SEND, &sge, 5);
        memcpy(w->a.memory, "hello", 5);
        CU_ASSERT_EQUAL(vw_do(w, &w->a, &wr), RDMA_OK);
        vw_steps(w, 2);
        CU_ASSERT_EQUAL(w->b.receives, 1);
        CU_ASSERT_EQUAL(w->b.last.length, 5);
        CU_ASSERT_EQUAL(w->b.last.flags, 0);
        CU_ASSERT_EQUAL(memcmp(w->b.memory + VW_OCTETS - VW_RECEIVE_OCTETS, "hello", 5), 0);
        wr = vw_wr(w, RDMA_WRITE_IMM, &sge, 8);
        wr.imm_stag = 0x12345678;
        CU_ASSERT_EQUAL(vw_do(w, &w->a, &wr), i ? RDMA_OK : -ENOTSUP);
        vw_steps(w, 2);
        CU_ASSERT_EQUAL(w->b.last.flags, i ? RDMA_WC_IMM | RDMA_WC_WRITE_IMM : 0);
        CU_ASSERT_EQUAL(w->b.last.imm, i ? 0x12345678 : 0);
        wr = vw_wr(w, RDMA_CAS, &sge, 8);
        wr.cas.compare_mask = wr.cas.swap_mask = UINT64_MAX;
        memset(w->b.memory, 0, 8);
        wr.cas.swap = 9;
        CU_ASSERT_EQUAL(vw_do(w, &w->a, &wr), i ? RDMA_OK : -ENOTSUP);
        CU_ASSERT_EQUAL(w->b.memory[0] + w->b.memory[7], i ? 9 : 0);
        wr.remote_to += 4;
        CU_ASSERT_EQUAL(vw_send(w, &w->a, &wr, 1), i ? -EINVAL : -ENOTSUP);
        close_world();
    }
}

/* Polls what has completed, `count` at a time: each is the one that is expected next. */
static void expect_order(uint32_t first, uint32_t signaled, uint32_t count)
{
    struct rdma_wc wcs[8];
    uint32_t next = 0;
    for (uint32_t polls = 0; polls < 16; polls++) {
        int taken = rdma_cq_poll(w->a.rdma, w->a.cq, wcs, count);
        for (int i = 0; i < taken; i++) {
            while (!(signaled >> next & 1) && next < 8)
                next++;
            CU_ASSERT_EQUAL(wcs[i].wr_id, first + next);
            CU_ASSERT_EQUAL(wcs[i].op, next % 3 == 0 ? RDMA_READ : RDMA_WRITE);
            CU_ASSERT_EQUAL(wcs[i].status, RDMA_OK);
            w->a.done[wcs[i].wr_id] = 1;
            next++;
        }
    }
    CU_ASSERT_EQUAL(signaled >> next, 0);
}

/* siw completes what was posted behind a READ before it; here it does not. */
static void reads_that_complete_late(void)
{
    for (uint32_t count = 1; count <= 8; count += 7)
        for (uint32_t signaled = 0; signaled < 256; signaled++) {
            struct rdma_sge sges[8];
            struct rdma_wr wrs[8];
            open_world(&(struct fake_config){.kind = FAKE_SIW, .devices = 1, .late_reads = true});
            CU_ASSERT_EQUAL_FATAL(vw_connect(w), 0);
            uint32_t first = w->a.ids + 1, told = signaled | 0x49; /* READs are */
            for (uint32_t i = 0; i < 8; i++) {
                wrs[i] = vw_wr(w, i % 3 == 0 ? RDMA_READ : RDMA_WRITE, &sges[i], 8);
                wrs[i].flags = told >> i & 1 ? RDMA_SIGNALED : 0;
            }
            CU_ASSERT_EQUAL(vw_send(w, &w->a, wrs, 8), 0);
            expect_order(first, told, count);
            close_world();
        }
}

/* What a receive was taken by is told, also where its flags have other numbers (rxe). */
static void invalidation_is_told(void)
{
    struct rdma_sge sge;
    open_connected(FAKE_RXE);
    struct rdma_wr bind = {.op = RDMA_BIND,
                           .flags = RDMA_SIGNALED,
                           .bind = {.window = &w->window,
                                    .region = &w->b.region,
                                    .length = 64,
                                    .access = RDMA_REMOTE_WRITE}};
    CU_ASSERT_EQUAL(vw_do(w, &w->b, &bind), RDMA_OK);
    struct rdma_wr wr = vw_wr(w, RDMA_SEND_INV, &sge, 8);
    wr.imm_stag = w->window.stag;
    CU_ASSERT_EQUAL(vw_do(w, &w->a, &wr), RDMA_OK);
    vw_steps(w, 2);
    CU_ASSERT_EQUAL(w->b.last.flags, RDMA_WC_INVALIDATED);
    CU_ASSERT_EQUAL(w->b.last.imm, w->window.stag);
    CU_ASSERT_EQUAL(vw_do(w, &w->b, &bind), RDMA_OK); /* free again */
    wr = vw_wr(w, RDMA_SEND_INV, &sge, 8);
    wr.imm_stag = w->b.region.stag; /* not a window */
    CU_ASSERT_EQUAL(vw_do(w, &w->a, &wr), RDMA_REMOTE_ACCESS);
    CU_ASSERT(vw_until(w, VW_OVER, VW_OVER));
    CU_ASSERT(w->a.error == -ECONNRESET && w->a.bad == 1);
    close_world();
}

/* A window is bound, invalidated and bound again behind one doorbell. */
static void windows_are_bound_again(void)
{
    struct rdma_sge sge;
    struct rdma_wr wrs[6];
    struct rdma_verbs_counts before, after;
    open_connected(FAKE_RXE);
    for (int i = 0; i < 6; i += 2) {
        wrs[i] = (struct rdma_wr){.op = RDMA_BIND,
                                  .bind = {.window = &w->window,
                                           .region = &w->b.region,
                                           .offset = 64,
                                           .length = 64,
                                           .access = RDMA_REMOTE_WRITE}};
        wrs[i + 1] = (struct rdma_wr){.op = RDMA_LOCAL_INV};
    }
    /* Tags can be foretold here: each is one more. */
    struct rdma_wr first = wrs[0];
    first.flags = RDMA_SIGNALED;
    CU_ASSERT_EQUAL(vw_do(w, &w->b, &first), RDMA_OK);
    uint32_t stag = w->window.stag;
    CU_ASSERT_EQUAL(w->window.base_to, w->b.region.base_to + 64);
    struct rdma_wr invalidate = {.op = RDMA_LOCAL_INV, .flags = RDMA_SIGNALED, .imm_stag = stag};
    CU_ASSERT_EQUAL(vw_do(w, &w->b, &invalidate), RDMA_OK);
    for (int i = 1; i < 6; i += 2)
        wrs[i].imm_stag = (stag & ~0xffu) | ((stag + (uint32_t)(i + 1) / 2) & 0xff);
    wrs[4].flags = RDMA_SIGNALED;
    rdma_verbs_counts(w->b.rdma, &before);
    CU_ASSERT_EQUAL(vw_send(w, &w->b, wrs, 5), 0);
    rdma_verbs_counts(w->b.rdma, &after);
    CU_ASSERT_EQUAL(after.send_batches - before.send_batches, 3);
    vw_steps(w, 3);
    CU_ASSERT_EQUAL(w->b.bad, 0);
    CU_ASSERT_EQUAL(w->b.last.op, RDMA_BIND);
    struct rdma_wr write = vw_wr(w, RDMA_WRITE, &sge, 8);
    write.remote_stag = w->window.stag;
    write.remote_to = w->window.base_to;
    CU_ASSERT_EQUAL(vw_do(w, &w->a, &write), RDMA_OK);
    CU_ASSERT_EQUAL(vw_do(w, &w->b, &first), RDMA_LOCAL_ERROR); /* it is bound */
    CU_ASSERT(vw_until(w, VW_OVER, VW_OVER));
    vw_end(w);
    /* The connection took it away; another one can have it, and its region is free. */
    CU_ASSERT_EQUAL(vw_connect(w), 0);
    CU_ASSERT_EQUAL(vw_do(w, &w->b, &first), RDMA_OK);
    CU_ASSERT_EQUAL(rdma_dereg(w->b.rdma, &w->b.region), -EBUSY);
    close_world();
}

/* Each ends the connection, with the status that it should have. */
static void errors_have_names(void)
{
    static const struct {
        uint32_t op;
        enum rdma_status rxe, siw;
        const char *what;
    } errors[] = {
        {RDMA_WRITE, RDMA_REMOTE_ACCESS, RDMA_OK, "stag"},
        {RDMA_READ, RDMA_REMOTE_ACCESS, RDMA_FLUSHED, "stag"},
        {RDMA_WRITE, RDMA_LOCAL_ERROR, RDMA_LOCAL_ERROR, "lkey"},
        {RDMA_SEND, RDMA_LENGTH_ERROR, RDMA_OK, "length"},
        {RDMA_SEND, RDMA_RNR, RDMA_OK, "receive"},
    };
    for (int k = 0; k < 2; k++)
        for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
            struct rdma_sge sge;
            open_connected(kinds[k]);
            bool too_long = strcmp(errors[i].what, "length") == 0;
            struct rdma_wr wr = vw_wr(w, errors[i].op, &sge, too_long ? 200 : 8);
            if (strcmp(errors[i].what, "stag") == 0)
                wr.remote_stag ^= 0x70;
            if (strcmp(errors[i].what, "lkey") == 0)
                sge.lkey ^= 0x70;
            for (uint32_t n = 0; n < VW_RECEIVES && strcmp(errors[i].what, "receive") == 0; n++)
                CU_ASSERT_EQUAL(vw_do(w, &w->a, &wr), RDMA_OK);
            int status = vw_do(w, &w->a, &wr);
            CU_ASSERT_EQUAL(status, (int)(k ? errors[i].rxe : errors[i].siw));
            if (status != (int)(k ? errors[i].rxe : errors[i].siw))
                (void)printf("%s: %s: %d\n", k ? "rxe" : "siw", errors[i].what, status);
            CU_ASSERT(vw_until(w, VW_OVER, VW_OVER));
            close_world();
        }
}

static void too_much_is_refused(void)
{
    struct rdma_sge sge, sges[3];
    open_connected(FAKE_RXE);
    struct rdma_wr wrs[VW_DEPTH + 1];
    for (uint32_t i = 0; i <= VW_DEPTH; i++) {
        wrs[i] = vw_wr(w, RDMA_WRITE, &sge, 8);
        wrs[i].flags = 0;
    }
    CU_ASSERT_EQUAL(vw_send(w, &w->a, wrs, VW_DEPTH + 1), -ENOMEM);
    CU_ASSERT_EQUAL(vw_send(w, &w->a, wrs, VW_DEPTH), 0);
    CU_ASSERT_EQUAL(vw_send(w, &w->a, wrs, 1), -ENOMEM); /* none is signaled: full for ever */
    CU_ASSERT_EQUAL(w->b.stage, VW_CONNECTED);
    struct rdma_wr wr = vw_wr(w, RDMA_SEND, &sge, 65);
    wr.flags = RDMA_INLINE;
    CU_ASSERT_EQUAL(rdma_post_send(w->b.rdma, w->b.conn, &wr, 1), -EINVAL);
    for (int i = 0; i < 3; i++)
        sges[i] = sge;
    wr.flags = 0;
    wr.sges = sges;
    wr.sge_count = 3;
    CU_ASSERT_EQUAL(rdma_post_send(w->b.rdma, w->b.conn, &wr, 1), -EINVAL);
    CU_ASSERT_EQUAL(rdma_post_recv(w->b.rdma, w->b.conn, &wr, 1), -EINVAL);
    for (uint32_t i = VW_RECEIVES; i < VW_DEPTH; i++)
        CU_ASSERT_EQUAL(vw_receive(w, &w->b), 0);
    CU_ASSERT_EQUAL(vw_receive(w, &w->b), -ENOMEM);
    close_world();
}

/* ---- waiting ----------------------------------------------------------------------------- */

static uint64_t looks(struct rdma *r)
{
    struct rdma_verbs_counts counts;
    rdma_verbs_counts(r, &counts);
    return counts.looks;
}

/* Who polls only makes no system call but once in RDMA_VERBS_SPINS; who waits is woken. */
static void waiting_and_not(void)
{
    struct rdma_sge sge;
    struct rdma_event event;
    struct rdma_wc wc;
    open_connected(FAKE_RXE);
    uint64_t before = looks(w->b.rdma);
    for (uint32_t i = 0; i < 10 * RDMA_VERBS_SPINS; i++)
        CU_ASSERT_EQUAL(rdma_event(w->b.rdma, &event), 0);
    CU_ASSERT_EQUAL(looks(w->b.rdma) - before, 10);
    CU_ASSERT_EQUAL(rdma_verbs_wait(w->b.rdma, 0), 0); /* arms */
    struct rdma_wr wr = vw_wr(w, RDMA_SEND, &sge, 8);
    CU_ASSERT_EQUAL(vw_do(w, &w->a, &wr), RDMA_OK);
    CU_ASSERT_EQUAL(w->b.receives, 1);
    CU_ASSERT_EQUAL(rdma_verbs_wait(w->b.rdma, -1), 0); /* arms again, for something was taken */
    wr = vw_wr(w, RDMA_SEND, &sge, 8);
    CU_ASSERT_EQUAL(vw_send(w, &w->a, &wr, 1), 0);
    CU_ASSERT_EQUAL(rdma_verbs_wait(w->b.rdma, -1), 0); /* hangs when nothing was armed */
    CU_ASSERT_EQUAL(rdma_cq_poll(w->b.rdma, w->b.cq, &wc, 1), 1);
    w->b.done[wc.wr_id]++;
    /* A queue that was made in the meantime wakes as well. */
    uint32_t other;
    CU_ASSERT_EQUAL(rdma_verbs_wait(w->b.rdma, 0), 0);
    CU_ASSERT_EQUAL(rdma_cq_create(w->b.rdma, 8, &other), 0);
    struct rdma_verbs_counts counts[2];
    rdma_verbs_counts(w->b.rdma, &counts[0]);
    CU_ASSERT_EQUAL(rdma_verbs_wait(w->b.rdma, 1000000000), 0);
    rdma_verbs_counts(w->b.rdma, &counts[1]);
    CU_ASSERT_EQUAL(counts[0].waits, counts[1].waits);
    CU_ASSERT_EQUAL(rdma_cq_destroy(w->b.rdma, other), 0);
    close_world();
}

static void timers_expire(void)
{
    struct rdma_event event = {.kind = RDMA_EVENT_NONE};
    open_world(&(struct fake_config){.kind = FAKE_SIW, .devices = 1});
    struct rdma *r = w->a.rdma;
    CU_ASSERT_EQUAL(rdma_timer(r, 4, 1), -EINVAL);
    CU_ASSERT_EQUAL(rdma_timer(r, 0, UINT64_MAX), 0);
    CU_ASSERT_EQUAL(rdma_timer(r, 1, 2000000), 0);
    CU_ASSERT_EQUAL(rdma_timer(r, 2, 1000), 0);
    CU_ASSERT_EQUAL(rdma_timer(r, 3, 1000), 0);
    CU_ASSERT_EQUAL(rdma_timer(r, 3, 0), 0);
    uint32_t got[4] = {0}, count = 0;
    while (count < 2) {
        CU_ASSERT_EQUAL(rdma_verbs_wait(r, -1), 0);
        while (rdma_event(r, &event) == 1) {
            CU_ASSERT_EQUAL(event.kind, RDMA_EVENT_TIMER);
            got[event.conn]++;
            count++;
        }
    }
    CU_ASSERT(got[1] == 1 && got[2] == 1);
    CU_ASSERT_EQUAL(rdma_verbs_wait(r, 5000000), 0);
    CU_ASSERT_EQUAL(rdma_event(r, &event), 0);
    /* One that has expired and was not told yet is cancelled as well. */
    CU_ASSERT_EQUAL(rdma_timer(r, 1, 1), 0);
    CU_ASSERT_EQUAL(rdma_verbs_wait(r, -1), 0);
    CU_ASSERT_EQUAL(rdma_verbs_wait(r, -1), 0);
    CU_ASSERT_EQUAL(rdma_timer(r, 1, 0), 0);
    CU_ASSERT_EQUAL(rdma_event(r, &event), 0);
    close_world();
}

/* ---- a queue pair of the device with itself ---------------------------------------------- */

#define LOOP_DEPTH 4u
static _Alignas(64) char loop_memory[4096];
static struct rdma_chain_queue loop;

static int open_loop(enum fake_kind kind)
{
    const struct fake_config config = {.kind = kind, .devices = 1};
    const struct rdma_chain_config wanted = {
        .kind = RDMA_CHAIN_LOOP, .depth = LOOP_DEPTH, .memory = loop_memory};
    open_world(&config);
    CU_ASSERT(rdma_chain_octets(w->a.rdma, LOOP_DEPTH) <= sizeof loop_memory);
    return rdma_chain_create(w->a.rdma, &wanted, &loop);
}

/* To the first word of the region from the second one on; both are a's. */
static int add_one(uint32_t number, uint32_t stag)
{
    struct rdma_sge sge = {w->a.memory + 8 + 8 * (number % LOOP_DEPTH), 8, w->a.region.lkey};
    struct rdma_wr add = {.op = RDMA_FETCH_ADD,
                          .flags = RDMA_SIGNALED,
                          .sges = &sge,
                          .sge_count = 1,
                          .remote_to = w->a.region.base_to,
                          .remote_stag = stag,
                          .fetch_add = {.add = 1}};
    return rdma_chain_put(w->a.rdma, &loop, number, &add);
}

static struct rdma_chain_state loop_state(void)
{
    struct rdma_chain_state state = {0};
    CU_ASSERT_EQUAL(rdma_chain_state(w->a.rdma, &loop, &state), 0);
    return state;
}

static uint64_t word(uint32_t n)
{
    uint64_t value;
    memcpy(&value, w->a.memory + 8 * n, sizeof value);
    return value;
}

static void the_device_for_itself(void)
{
    CU_ASSERT_EQUAL_FATAL(open_loop(FAKE_RXE), 0);
    memset(w->a.memory, 0, 64);
    for (uint32_t n = 0; n < 3 * LOOP_DEPTH; n++) {
        CU_ASSERT_EQUAL(add_one(n, w->a.region.stag), 0);
        CU_ASSERT_EQUAL(loop_state().completed, n);
        CU_ASSERT_EQUAL(word(0), n);
        CU_ASSERT_EQUAL(rdma_chain_enable(w->a.rdma, &loop, n + 1), 0);
        CU_ASSERT_EQUAL(word(1 + n % LOOP_DEPTH), n); /* what was there before */
    }
    struct rdma_chain_state state = loop_state();
    CU_ASSERT_EQUAL(state.completed, 3 * LOOP_DEPTH);
    CU_ASSERT_EQUAL(state.completions, 3 * LOOP_DEPTH);
    CU_ASSERT_EQUAL(state.status, RDMA_OK);
    CU_ASSERT_EQUAL(rdma_chain_destroy(w->a.rdma, &loop), 0);
    CU_ASSERT_EQUAL(rdma_chain_destroy(w->a.rdma, &loop), -EINVAL);
    close_world();
}

/* Several behind one doorbell; no more than there are places. */
static void several_behind_one_doorbell(void)
{
    struct rdma_verbs_counts counts;
    CU_ASSERT_EQUAL_FATAL(open_loop(FAKE_RXE), 0);
    memset(w->a.memory, 0, 64);
    CU_ASSERT_EQUAL(rdma_chain_enable(w->a.rdma, &loop, 1), -EINVAL); /* none was put */
    for (uint32_t n = 0; n < LOOP_DEPTH; n++)
        CU_ASSERT_EQUAL(add_one(n, w->a.region.stag), 0);
    CU_ASSERT_EQUAL(add_one(LOOP_DEPTH, w->a.region.stag), -ENOMEM);
    CU_ASSERT_EQUAL(add_one(LOOP_DEPTH + 1, w->a.region.stag), -EINVAL);
    CU_ASSERT_EQUAL(rdma_chain_enable(w->a.rdma, &loop, LOOP_DEPTH), 0);
    rdma_verbs_counts(w->a.rdma, &counts);
    CU_ASSERT_EQUAL(counts.send_batches, 1);
    CU_ASSERT_EQUAL(loop_state().completed, LOOP_DEPTH);
    CU_ASSERT_EQUAL(word(0), LOOP_DEPTH);
    close_world(); /* the handle ends it */
}

/* What fails ends it: all that was enabled is over, and nothing is begun any more. */
static void a_loop_that_fails(void)
{
    CU_ASSERT_EQUAL_FATAL(open_loop(FAKE_RXE), 0);
    memset(w->a.memory, 0, 64);
    CU_ASSERT_EQUAL(add_one(0, w->a.region.stag), 0);
    CU_ASSERT_EQUAL(add_one(1, w->a.region.stag ^ 0xff00), 0);
    CU_ASSERT_EQUAL(add_one(2, w->a.region.stag), 0);
    CU_ASSERT_EQUAL(rdma_chain_enable(w->a.rdma, &loop, 3), 0);
    struct rdma_chain_state state = loop_state();
    CU_ASSERT_EQUAL(state.completed, 3);
    CU_ASSERT_EQUAL(state.completions, 3);
    CU_ASSERT_EQUAL(state.status, RDMA_REMOTE_ACCESS);
    CU_ASSERT_EQUAL(word(0), 1);
    CU_ASSERT_EQUAL(add_one(3, w->a.region.stag), 0);
    CU_ASSERT_EQUAL(rdma_chain_enable(w->a.rdma, &loop, 4), 0);
    CU_ASSERT_EQUAL(loop_state().completed, 4);
    CU_ASSERT_EQUAL(word(0), 1);
    for (uint32_t i = 0; i < 2; i++) /* those who listen for the device's events survive this */
        vw_steps(w, 2);
    CU_ASSERT_EQUAL(rdma_chain_destroy(w->a.rdma, &loop), 0);
    close_world();
}

static void what_a_loop_refuses(void)
{
    CU_ASSERT_EQUAL(open_loop(FAKE_SIW), -ENOTSUP);
    CU_ASSERT_EQUAL(rdma_chain_octets(w->a.rdma, 1), 0);
    close_world();
    CU_ASSERT_EQUAL_FATAL(open_loop(FAKE_RXE), 0);
    struct rdma_sge sge = {w->a.memory, 8, w->a.region.lkey};
    struct rdma_wr wr = {.op = RDMA_SEND, .sges = &sge, .sge_count = 1};
    CU_ASSERT_EQUAL(rdma_chain_put(w->a.rdma, &loop, 0, &wr), -EINVAL);
    wr.op = RDMA_WAIT;
    CU_ASSERT_EQUAL(rdma_chain_put(w->a.rdma, &loop, 0, &wr), -ENOTSUP);
    wr.op = RDMA_FETCH_ADD;
    wr.fetch_add.mask = 1;
    CU_ASSERT_EQUAL(rdma_chain_put(w->a.rdma, &loop, 0, &wr), -ENOTSUP);
    wr.op = RDMA_WRITE;
    wr.flags = RDMA_INLINE;
    CU_ASSERT_EQUAL(rdma_chain_put(w->a.rdma, &loop, 0, &wr), -EINVAL);
    struct rdma_chain_config wanted = {.kind = RDMA_CHAIN_CTRL, .depth = 1, .memory = loop_memory};
    struct rdma_chain_queue other;
    CU_ASSERT_EQUAL(rdma_chain_create(w->a.rdma, &wanted, &other), -ENOTSUP);
    wanted.kind = RDMA_CHAIN_LOOP;
    wanted.memory = loop_memory + 8;
    CU_ASSERT_EQUAL(rdma_chain_create(w->a.rdma, &wanted, &other), -EINVAL);
    wanted.memory = loop_memory;
    CU_ASSERT_EQUAL(rdma_chain_create(w->a.rdma, &wanted, &other), 0);
    CU_ASSERT_EQUAL(rdma_chain_create(w->a.rdma, &wanted, &other), -ENOSPC);
    close_world();
}

int main(void)
{
    static const struct test tests[] = {
        {"devices are chosen", devices_are_chosen},
        {"devices are described", devices_are_described},
        {"data moves", data_moves},
        {"reads that complete late", reads_that_complete_late},
        {"invalidation is told", invalidation_is_told},
        {"windows are bound again", windows_are_bound_again},
        {"errors have names", errors_have_names},
        {"too much is refused", too_much_is_refused},
        {"waiting and not", waiting_and_not},
        {"timers expire", timers_expire},
        {"the device for itself", the_device_for_itself},
        {"several behind one doorbell", several_behind_one_doorbell},
        {"a loop that fails", a_loop_that_fails},
        {"what a loop refuses", what_a_loop_refuses},
    };
    return run_tests("net/verbs", tests, sizeof tests / sizeof *tests);
}
