/* SPDX-License-Identifier: BSD-3-Clause */
/* net/verbs on an rdma-core for tests: how connections begin, are refused, break and end. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "tests/net/verbs_inside.h"
#include "tests/net/verbs_world.h"
#include "tests/run.h"

static struct vw world;
static struct vw *const w = &world;
static const struct fake_config plain[] = {{.kind = FAKE_SIW, .devices = 1},
                                           {.kind = FAKE_RXE, .devices = 1}};

static void open_world(const struct fake_config *config, uint32_t connect_ms)
{
    fake_open(config);
    CU_ASSERT_EQUAL_FATAL(vw_open(w, connect_ms), 0);
}

static void close_world(void)
{
    vw_close(w);
    CU_ASSERT_EQUAL(fake_close(), 0);
}

/* ---- beginning --------------------------------------------------------------------------- */

/* Each in its own words, and never later than the time that was given. */
static void peers_that_do_not_answer(void)
{
    static const struct {
        const char *address;
        int error;
        const char *words;
    } peers[] = {
        {FAKE_NO_ADDRESS ":7000", -ETIMEDOUT, "rdma_connect: Connection timed out"},
        {FAKE_BAD_ADDRESS ":7000", -ETIMEDOUT, "rdma_resolve_addr: Connection timed out; nobody"},
        {FAKE_BAD_ROUTE ":7000", -ETIMEDOUT, "rdma_resolve_route: Connection timed out; is the"},
        {FAKE_UNREACHABLE ":7000", -ETIMEDOUT, "rdma_connect: Connection timed out; the peer"},
        {FAKE_SILENT ":7000", -ETIMEDOUT, "rdma_connect: Connection timed out; the peer"},
        {FAKE_HERE ":7001", -ECONNREFUSED, "rdma_connect: Connection refused; nobody listens"},
    };
    for (int k = 0; k < 2; k++)
        for (size_t i = 0; i < sizeof peers / sizeof *peers; i++) {
            open_world(&plain[k], 20);
            CU_ASSERT_EQUAL(vw_connect_to(w, peers[i].address), 0);
            CU_ASSERT_EQUAL(rdma_destroy(w->a.rdma, w->a.conn), -EBUSY);
            CU_ASSERT_EQUAL(rdma_disconnect(w->a.rdma, w->a.conn), -EINVAL);
            for (uint32_t n = 0; w->a.stage != VW_OVER && n < 1000; n++) {
                CU_ASSERT_EQUAL(rdma_verbs_wait(w->a.rdma, 1000000000), 0);
                vw_step(w);
            }
            CU_ASSERT(w->a.rejected);
            CU_ASSERT_EQUAL(w->a.error, peers[i].error);
            CU_ASSERT(strstr(rdma_verbs_failure(w->a.rdma), peers[i].words) != NULL);
            if (!strstr(rdma_verbs_failure(w->a.rdma), peers[i].words))
                printf("%s: %s\n", peers[i].address, rdma_verbs_failure(w->a.rdma));
            CU_ASSERT_EQUAL(vw_receive(w, &w->a), -ENOTCONN);
            close_world();
        }
}

static void private_data_arrives(void)
{
    for (int k = 0; k < 2; k++) {
        uint32_t padded = k ? RDMA_MAX_PRIVATE : 6;
        open_world(&plain[k], 0);
        CU_ASSERT_FATAL(vw_request(w));
        CU_ASSERT_EQUAL(w->b.private_length, padded);
        CU_ASSERT_STRING_EQUAL(w->b.private_data, "from a");
        CU_ASSERT_EQUAL(vw_accept(w), 0);
        CU_ASSERT(vw_until(w, VW_CONNECTED, VW_CONNECTED));
        CU_ASSERT_EQUAL(w->a.private_length, padded);
        CU_ASSERT_STRING_EQUAL(w->a.private_data, "from b");
        CU_ASSERT_EQUAL(w->b.private_length, 0); /* not once more what the request said */
        vw_end(w);
        w->stay = false;
        w->reject = true;
        memset(w->a.private_data, 0, sizeof w->a.private_data);
        CU_ASSERT_EQUAL(vw_connect_to(w, VW_ADDRESS), 0);
        CU_ASSERT(vw_until(w, VW_OVER, VW_NOTHING));
        CU_ASSERT_EQUAL(w->a.error, -ECONNREFUSED);
        CU_ASSERT_STRING_EQUAL(w->a.private_data, "no");
        close_world();
    }
}

/* From rdma_connect() on, though there is no queue pair for a while. */
static void receives_before_the_queue_pair(void)
{
    struct rdma_sge sge;
    for (int k = 0; k < 2; k++) {
        open_world(&plain[k], 0);
        CU_ASSERT_EQUAL(vw_connect_to(w, VW_ADDRESS), 0);
        for (uint32_t i = VW_RECEIVES; i < VW_DEPTH; i++)
            CU_ASSERT_EQUAL(vw_receive(w, &w->a), 0);
        CU_ASSERT_EQUAL(vw_receive(w, &w->a), -ENOMEM);
        CU_ASSERT(vw_until(w, VW_CONNECTED, VW_CONNECTED));
        CU_ASSERT_EQUAL(vw_receive(w, &w->a), -ENOMEM);
        for (uint32_t i = 0; i < VW_DEPTH; i++) {
            struct rdma_wr wr = vw_wr(w, RDMA_SEND, &sge, 8);
            sge = (struct rdma_sge){w->b.memory, 8, w->b.region.lkey};
            CU_ASSERT_EQUAL(vw_do(w, &w->b, &wr), RDMA_OK);
        }
        vw_steps(w, 20);
        CU_ASSERT_EQUAL(w->a.receives, VW_DEPTH);
        close_world();
    }
}

/* Who asked has gone before the answer: who accepts is told, who rejects need not care. */
static void requests_whose_peer_went(void)
{
    for (int k = 0; k < 2; k++)
        for (int accepts = 0; accepts < 2; accepts++) {
            open_world(&plain[k], 20);
            CU_ASSERT_FATAL(vw_request(w));
            while (w->a.stage != VW_OVER) { /* until it has no patience any more */
                (void)rdma_verbs_wait(w->a.rdma, 1000000);
                vw_step(w);
            }
            vw_end(w);
            w->b.has_request = true;
            vw_steps(w, 5);
            int error = accepts ? vw_accept(w) : -1;
            CU_ASSERT(!accepts || error == (k ? 0 : -ECONNRESET));
            if (error == 0)
                CU_ASSERT(vw_until(w, VW_NOTHING, VW_OVER) && w->b.rejected)
            else
                (void)rdma_reject(w->b.rdma, w->b.conn, NULL, 0);
            CU_ASSERT(error != 0 || w->b.private_length == 0); /* that was the request's */
            CU_ASSERT_EQUAL(rdma_reject(w->b.rdma, w->b.conn, NULL, 0), -EINVAL);
            close_world();
        }
}

/* An accept that fails leaves the request, to be accepted again; nothing of it comes back. */
static void accepted_twice(void)
{
    static const char *const calls[] = {"rdma_create_qp", "ibv_post_recv", "rdma_accept"};
    for (int k = 0; k < 2; k++)
        for (uint32_t n = 1, seen = 0; seen < 3; n++) {
            int error;
            open_world(&plain[k], 0);
            CU_ASSERT_FATAL(vw_request(w) && n < 10);
            fake_fail(n);
            CU_ASSERT_EQUAL(rdma_destroy(w->b.rdma, w->b.conn), -EBUSY);
            int first = vw_accept(w);
            const char *call = fake_failed(&error);
            CU_ASSERT_FATAL(call != NULL);
            CU_ASSERT(first < 0 || strcmp(call, "rdma_set_option") == 0);
            for (int i = 0; i < 3; i++)
                seen += strcmp(call, calls[i]) == 0;
            if (first < 0)
                CU_ASSERT_EQUAL(vw_accept(w), 0);
            CU_ASSERT(vw_until(w, VW_CONNECTED, VW_CONNECTED));
            for (uint32_t i = VW_RECEIVES; i < VW_DEPTH; i++)
                CU_ASSERT_EQUAL(vw_receive(w, &w->b), 0);
            CU_ASSERT_EQUAL(w->b.stage, VW_CONNECTED);
            close_world();
        }
}

/* The other end is rejected then, after it was connected: that is how connections end. */
static void end_early(void)
{
    CU_ASSERT_EQUAL(rdma_disconnect(w->b.rdma, w->b.conn), 0);
    CU_ASSERT(vw_until(w, VW_CONNECTED, VW_OVER));
    CU_ASSERT_EQUAL(rdma_destroy(w->b.rdma, w->b.conn), 0);
    w->b.has_conn = false;
    CU_ASSERT(vw_until(w, VW_OVER, VW_OVER));
    CU_ASSERT(!w->a.rejected && w->a.error == 0);
}

/* A message comes before CONNECTED: then it may be answered. */
static void established_late(void)
{
    const struct fake_config config = {.kind = FAKE_RXE, .devices = 1, .late_rtu = true};
    struct rdma_sge sge;
    for (int ends = 0; ends < 2; ends++) {
        open_world(&config, 0);
        CU_ASSERT_EQUAL(vw_connect_to(w, VW_ADDRESS), 0);
        CU_ASSERT(vw_until(w, VW_CONNECTED, VW_ASKED));
        struct rdma_wr wr = vw_wr(w, RDMA_SEND, &sge, 8), answer = wr;
        CU_ASSERT_EQUAL(vw_send(w, &w->b, &answer, 1), -ENOTCONN);
        CU_ASSERT_EQUAL(vw_send(w, &w->a, &wr, 1), 0);
        struct rdma_wc wc;
        CU_ASSERT_EQUAL_FATAL(rdma_cq_poll(w->b.rdma, w->b.cq, &wc, 1), 1);
        CU_ASSERT(wc.op == RDMA_RECV && wc.status == RDMA_OK);
        w->b.done[wc.wr_id]++;
        CU_ASSERT_EQUAL(w->b.stage, VW_ASKED);
        sge = (struct rdma_sge){w->b.memory, 8, w->b.region.lkey};
        CU_ASSERT_EQUAL(vw_send(w, &w->b, &answer, 1), 0);
        if (ends) /* in between: CONNECTED is told, and then the end */
            end_early();
        else
            CU_ASSERT(vw_until(w, VW_CONNECTED, VW_CONNECTED));
        close_world();
    }
}

/* And nothing comes at all: it was never connected. */
static void never_established(void)
{
    const struct fake_config config = {.kind = FAKE_RXE, .devices = 1, .late_rtu = true};
    open_world(&config, 20);
    w->wait = true;
    CU_ASSERT_EQUAL(vw_connect_to(w, VW_ADDRESS), 0);
    CU_ASSERT(vw_until(w, VW_CONNECTED, VW_OVER));
    CU_ASSERT(w->b.rejected && w->b.error == -ETIMEDOUT);
    CU_ASSERT_EQUAL(w->b.private_length, 0); /* that was the request's */
    close_world();
}

/* ---- ending ------------------------------------------------------------------------------ */

/* Work that was posted and not done, at both ends, and both ways. */
static void what_is_posted_is_flushed(void)
{
    struct rdma_sge sge;
    for (int k = 0; k < 2; k++)
        for (int cut = 0; cut < 3; cut++) {
            const struct fake_config config = {.kind = plain[k].kind, .devices = 1, .lazy = true};
            open_world(&config, 0);
            CU_ASSERT_EQUAL(vw_connect(w), 0);
            for (int i = 0; i < 8; i++) {
                struct rdma_wr wr = vw_wr(w, RDMA_WRITE, &sge, 8);
                wr.flags = i % 2 ? RDMA_SIGNALED : 0;
                CU_ASSERT_EQUAL(vw_send(w, &w->a, &wr, 1), 0);
            }
            if (cut == 2)
                verbs_inside_cut(w->a.rdma, w->a.conn);
            else
                CU_ASSERT_EQUAL(rdma_disconnect((cut ? &w->b : &w->a)->rdma, 0), 0);
            CU_ASSERT_EQUAL(vw_receive(w, &w->b), 0); /* the end was not told yet */
            struct rdma_wr late = vw_wr(w, RDMA_WRITE, &sge, 8);
            CU_ASSERT_EQUAL(vw_send(w, &w->a, &late, 1), 0);
            CU_ASSERT_EQUAL(rdma_destroy(w->a.rdma, w->a.conn), -EBUSY);
            CU_ASSERT(vw_until(w, VW_OVER, VW_OVER));
            CU_ASSERT_EQUAL(w->b.flushed, VW_RECEIVES + 1);
            CU_ASSERT(cut == 1 || w->a.flushed == VW_RECEIVES + 9);
            int error = cut == 2 ? -ECONNRESET : 0; /* else it ended in good order */
            CU_ASSERT(w->a.error == error && w->b.error == error);
            CU_ASSERT_EQUAL(rdma_disconnect(w->a.rdma, w->a.conn), 0); /* changes nothing */
            CU_ASSERT_EQUAL(vw_send(w, &w->a, &late, 1), -ENOTCONN);
            CU_ASSERT_EQUAL(vw_receive(w, &w->a), -ENOTCONN);
            close_world();
        }
}

/* DRAINED is there and was not taken: it is too early. */
static void drained_and_not_told(void)
{
    struct rdma_event event;
    struct rdma_wc wc;
    open_world(&plain[1], 0);
    CU_ASSERT_EQUAL(vw_connect(w), 0);
    CU_ASSERT_EQUAL(rdma_disconnect(w->a.rdma, w->a.conn), 0);
    CU_ASSERT_EQUAL(rdma_event(w->a.rdma, &event), 1);
    CU_ASSERT_EQUAL(event.kind, RDMA_EVENT_DISCONNECTED);
    w->a.stage = VW_ENDED;
    for (uint32_t i = 0; i < 20; i++)
        if (rdma_cq_poll(w->a.rdma, w->a.cq, &wc, 1) == 1)
            w->a.done[wc.wr_id]++;
    CU_ASSERT_EQUAL(rdma_destroy(w->a.rdma, w->a.conn), -EBUSY);
    close_world();
}

/* What nobody polled of a connection that was never made is nothing to the next one. */
static void flushed_and_not_polled(void)
{
    struct rdma_event event = {.kind = RDMA_EVENT_NONE};
    struct rdma_sge sge;
    for (int k = 0; k < 2; k++) {
        open_world(&plain[k], 20);
        CU_ASSERT_EQUAL(vw_connect_to(w, FAKE_SILENT ":7000"), 0);
        event.kind = RDMA_EVENT_NONE;
        while (event.kind != RDMA_EVENT_REJECTED) {
            (void)rdma_verbs_wait(w->a.rdma, 1000000);
            (void)rdma_event(w->a.rdma, &event);
        }
        w->a.stage = VW_OVER;
        w->a.rejected = true;
        vw_end(w);           /* which does not poll any more */
        w->a.has_cq = false; /* nor does it before it is connected */
        CU_ASSERT_EQUAL(vw_connect(w), 0);
        w->a.has_cq = true;
        struct rdma_wr wr = vw_wr(w, RDMA_SEND, &sge, 8);
        vw_steps(w, 10);
        CU_ASSERT_EQUAL(vw_do(w, &w->a, &wr), RDMA_OK);
        close_world();
    }
}

/* Who has nothing posted need not poll. */
static void drained_without_polling(void)
{
    for (int k = 0; k < 2; k++) {
        struct rdma_event event;
        open_world(&plain[k], 0);
        struct rdma_conn_config config = {
            .cq = w->a.cq, .send_depth = 1, .recv_depth = 1, .max_sge = 1};
        CU_ASSERT_EQUAL(rdma_connect(w->a.rdma, VW_ADDRESS, &config, NULL, 0, NULL, 0, &w->a.conn),
                        0);
        w->a.has_conn = true;
        w->a.stage = VW_ASKED;
        CU_ASSERT(vw_until(w, VW_CONNECTED, VW_CONNECTED));
        CU_ASSERT_EQUAL(rdma_disconnect(w->a.rdma, w->a.conn), 0);
        CU_ASSERT_EQUAL(rdma_event(w->a.rdma, &event), 1);
        CU_ASSERT_EQUAL(event.kind, RDMA_EVENT_DISCONNECTED);
        CU_ASSERT_EQUAL(rdma_event(w->a.rdma, &event), 1);
        CU_ASSERT_EQUAL(event.kind, RDMA_EVENT_DRAINED);
        w->a.stage = VW_OVER;
        close_world();
    }
}

/* More lives than fit into any ring; numbers are used again, and nothing old is taken for new. */
static void many_lives(void)
{
    struct rdma_sge sge;
    for (int k = 0; k < 2; k++) {
        open_world(&plain[k], 0);
        for (uint32_t n = 0; n < 100; n++) {
            CU_ASSERT_EQUAL_FATAL(vw_connect(w), 0);
            CU_ASSERT_EQUAL(w->a.conn, 0);
            CU_ASSERT_EQUAL(w->b.conn, 0);
            for (int i = 0; i < 3; i++) { /* some completions are never polled in this life */
                struct rdma_wr wr = vw_wr(w, RDMA_SEND, &sge, 8);
                CU_ASSERT_EQUAL(vw_send(w, &w->a, &wr, 1), 0);
            }
            if (n % 3 == 0)
                verbs_inside_cut(w->a.rdma, 0);
            vw_end(w);
        }
        close_world();
    }
}

/* The queue overflows: an error, the end of its connections, and their memory is free again. */
static void a_queue_overflows(void)
{
    struct rdma_sge sge;
    for (int k = 0; k < 2; k++) {
        struct rdma_wc wc;
        open_world(&plain[k], 0);
        CU_ASSERT_EQUAL(rdma_cq_destroy(w->a.rdma, w->a.cq), 0);
        CU_ASSERT_EQUAL(rdma_cq_create(w->a.rdma, 2, &w->a.cq), 0);
        CU_ASSERT_EQUAL(vw_connect(w), 0);
        for (int i = 0; i < 3; i++) {
            struct rdma_wr wr = vw_wr(w, RDMA_WRITE, &sge, 8);
            CU_ASSERT_EQUAL(vw_send(w, &w->a, &wr, 1), 0);
        }
        w->a.broken = true; /* what is lost does not complete */
        CU_ASSERT_EQUAL(rdma_cq_poll(w->a.rdma, w->a.cq, &wc, 1), -EIO);
        CU_ASSERT_EQUAL(rdma_cq_poll(w->a.rdma, w->a.cq, &wc, 1), -EIO);
        CU_ASSERT_EQUAL(rdma_cq_destroy(w->a.rdma, w->a.cq), -EBUSY);
        CU_ASSERT(vw_until(w, VW_OVER, VW_OVER));
        CU_ASSERT_EQUAL(w->a.error, -EIO);
        close_world();
    }
}

/* Nobody polls: the device's event is enough. */
static void an_overflow_is_heard_of(void)
{
    struct rdma_sge sge;
    struct rdma_event event = {.kind = RDMA_EVENT_NONE};
    open_world(&plain[1], 0);
    CU_ASSERT_EQUAL(rdma_cq_destroy(w->a.rdma, w->a.cq), 0);
    CU_ASSERT_EQUAL(rdma_cq_create(w->a.rdma, 1, &w->a.cq), 0);
    CU_ASSERT_EQUAL(vw_connect(w), 0);
    struct rdma_wr wrs[2] = {vw_wr(w, RDMA_WRITE, &sge, 8), vw_wr(w, RDMA_WRITE, &sge, 8)};
    CU_ASSERT_EQUAL(vw_send(w, &w->a, wrs, 2), 0);
    w->a.broken = true;
    for (uint32_t n = 0; n < 5 * RDMA_VERBS_SPINS && event.kind == RDMA_EVENT_NONE; n++)
        (void)rdma_event(w->a.rdma, &event);
    CU_ASSERT_EQUAL(event.kind, RDMA_EVENT_DISCONNECTED);
    CU_ASSERT_EQUAL(event.error, -EIO);
    w->a.stage = VW_ENDED;
    CU_ASSERT(vw_until(w, VW_OVER, VW_OVER));
    close_world();
}

static void the_device_dies(void)
{
    for (int k = 0; k < 2; k++)
        for (int waits = 0; waits < 2; waits++) {
            open_world(&plain[k], 0);
            w->wait = waits;
            CU_ASSERT_EQUAL(vw_connect(w), 0);
            fake_die();
            CU_ASSERT(vw_until(w, VW_OVER, VW_OVER));
            CU_ASSERT(w->a.error == -ENODEV && w->b.error == -ENODEV);
            close_world();
        }
}

/* ---- handles ----------------------------------------------------------------------------- */

/* Each handle that listens gets its share, and nothing else wakes for it. */
static void requests_are_shared(void)
{
    struct rdma *more[2];
    struct rdma_event event;
    uint32_t got[2] = {0}, conn;
    open_world(&plain[1], 0);
    for (int i = 0; i < 2; i++)
        CU_ASSERT_EQUAL_FATAL(rdma_verbs_handle(w->device, &more[i], w->words), 0);
    CU_ASSERT_EQUAL(rdma_listen(more[0], FAKE_HERE ":7001"), -EINVAL);
    CU_ASSERT_EQUAL(rdma_listen(more[0], VW_ADDRESS), 0);
    CU_ASSERT_EQUAL(rdma_listen(more[0], VW_ADDRESS), -EINVAL);
    CU_ASSERT_EQUAL(rdma_verbs_port(more[0]), 7000);
    CU_ASSERT_EQUAL(rdma_verbs_port(more[1]), 0);
    const struct rdma_conn_config config = {
        .cq = w->a.cq, .send_depth = 1, .recv_depth = 1, .max_sge = 1};
    struct rdma *listeners[2] = {w->b.rdma, more[0]};
    for (int n = 0; n < 2; n++) {
        CU_ASSERT_EQUAL(rdma_connect(w->a.rdma, VW_ADDRESS, &config, NULL, 0, NULL, 0, &conn), 0);
        (void)rdma_event(w->a.rdma, &event);
        struct rdma_verbs_counts counts[2];
        rdma_verbs_counts(more[1], &counts[0]);
        CU_ASSERT_EQUAL(rdma_verbs_wait(more[1], 0), 0);
        CU_ASSERT_EQUAL(rdma_verbs_wait(more[1], 3000000), 0); /* sleeps once, and long enough */
        for (uint32_t i = 0; i < 20 * RDMA_VERBS_SPINS; i++)
            if (rdma_event(listeners[i % 2], &event) == 1) {
                CU_ASSERT_EQUAL(event.kind, RDMA_EVENT_REQUEST);
                got[i % 2]++;
            }
    }
    CU_ASSERT(got[0] == 1 && got[1] == 1);
    /* Whatever is left is ended with its handle. */
    rdma_verbs_handle_close(more[1]);
    rdma_verbs_handle_close(more[0]);
    rdma_verbs_handle_close(w->b.rdma);
    rdma_verbs_handle_close(w->a.rdma);
    rdma_verbs_close(w->device);
    CU_ASSERT_EQUAL(fake_breaches(), 0);
    CU_ASSERT_EQUAL(fake_close(), 0);
}

/* ---- threads ----------------------------------------------------------------------------- */

#define LIVES 200u

struct thread {
    struct rdma *rdma;
    bool asks;
    uint32_t lives, requests, errors;
};

static atomic_bool over;

/* One end of many connections: each sends until something ends it. */
static void *run_thread(void *argument)
{
    struct thread *t = argument;
    struct rdma *r = t->rdma;
    static char memory[2][64];
    struct rdma_region region;
    uint32_t cq, conn = 0, done = 0, spare;
    bool connected = false, any = false;
    t->errors += rdma_reg(r, memory[t->asks], 64, RDMA_LOCAL_WRITE, 0, &region) != 0;
    t->errors += rdma_cq_create(r, 64, &cq) != 0;
    struct rdma_sge sge = {memory[t->asks], 8, region.lkey};
    struct rdma_wr receive = {.op = RDMA_RECV, .sges = &sge, .sge_count = 1};
    struct rdma_wr receives[4] = {receive, receive, receive, receive};
    struct rdma_wr send = {.op = RDMA_SEND, .flags = RDMA_SIGNALED, .sges = &sge, .sge_count = 1};
    const struct rdma_conn_config config = {
        .cq = cq, .send_depth = 8, .recv_depth = 8, .max_sge = 1};
    while (!atomic_load(&over)) {
        struct rdma_event event;
        struct rdma_wc wcs[4];
        if (t->asks && !any) {
            any = rdma_connect(r, VW_ADDRESS, &config, receives, 4, NULL, 0, &conn) == 0;
            t->errors += !any;
        }
        (void)rdma_verbs_wait(r, 100000);
        /* Queues come and go while others take the device's events. */
        if (rdma_cq_create(r, 4, &spare) == 0)
            (void)rdma_cq_destroy(r, spare);
        int got = rdma_cq_poll(r, cq, wcs, 4);
        t->errors += got < 0;
        for (int i = 0; i < got; i++)
            if (wcs[i].status == RDMA_OK && wcs[i].op == RDMA_RECV && ++done % 7 == 0 && t->asks)
                (void)rdma_disconnect(r, conn);
        if (connected)
            (void)rdma_post_send(r, conn, &send, 1); /* in time the other end has no receive */
        if (rdma_event(r, &event) != 1)
            continue;
        if (event.kind == RDMA_EVENT_REQUEST) {
            conn = event.conn;
            t->requests++;
            if (rdma_accept(r, conn, &config, receives, 4, NULL, 0) != 0)
                (void)rdma_reject(r, conn, NULL, 0);
        } else if (event.kind == RDMA_EVENT_CONNECTED) {
            connected = true;
        } else if (event.kind == RDMA_EVENT_DISCONNECTED) {
            connected = false;
        } else if (event.kind == RDMA_EVENT_DRAINED || event.kind == RDMA_EVENT_REJECTED) {
            t->errors += rdma_destroy(r, event.conn) != 0;
            any = connected = false;
            if (++t->lives == LIVES)
                atomic_store(&over, true);
        }
    }
    return NULL;
}

/* Handles in threads of their own, whose queue pairs fail so that events of the device are taken by
 * whoever looks. For ThreadSanitizer, above all. */
static void handles_in_threads(void)
{
    for (int k = 0; k < 2; k++) {
        pthread_t ids[2];
        struct thread threads[2];
        open_world(&plain[k], 0);
        atomic_store(&over, false);
        threads[0] = (struct thread){.rdma = w->a.rdma, .asks = true};
        threads[1] = (struct thread){.rdma = w->b.rdma};
        for (int i = 0; i < 2; i++)
            CU_ASSERT_EQUAL_FATAL(pthread_create(&ids[i], NULL, run_thread, &threads[i]), 0);
        for (int i = 0; i < 2; i++) {
            (void)pthread_join(ids[i], NULL);
            CU_ASSERT_EQUAL(threads[i].errors, 0);
        }
        CU_ASSERT(threads[0].lives + threads[1].lives >= LIVES);
        rdma_verbs_handle_close(w->a.rdma);
        rdma_verbs_handle_close(w->b.rdma);
        rdma_verbs_close(w->device);
        CU_ASSERT_EQUAL(fake_breaches(), 0);
        CU_ASSERT_EQUAL(fake_close(), 0);
    }
}

int main(void)
{
    static const struct test tests[] = {
        {"peers that do not answer", peers_that_do_not_answer},
        {"private data arrives", private_data_arrives},
        {"receives before the queue pair", receives_before_the_queue_pair},
        {"requests whose peer went", requests_whose_peer_went},
        {"accepted twice", accepted_twice},
        {"established late", established_late},
        {"never established", never_established},
        {"what is posted is flushed", what_is_posted_is_flushed},
        {"drained and not told", drained_and_not_told},
        {"flushed and not polled", flushed_and_not_polled},
        {"drained without polling", drained_without_polling},
        {"many lives", many_lives},
        {"a queue overflows", a_queue_overflows},
        {"an overflow is heard of", an_overflow_is_heard_of},
        {"the device dies", the_device_dies},
        {"requests are shared", requests_are_shared},
        {"handles in threads", handles_in_threads},
    };
    return run_tests("net/verbs, ends", tests, sizeof tests / sizeof *tests);
}
