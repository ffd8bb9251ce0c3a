/* SPDX-License-Identifier: BSD-3-Clause */
/* Windows over every provider in one process, behind one that makes their calls fail. */
#include <errno.h>
#include <stdio.h>

#include "tests/net/failing.h"
#include "tests/net/provider.h"
#include "tests/run.h"

#define OCTETS 4096u
#define SHOWN 64u /* octets that a window shows */

static const struct provider *provider;
static struct failing_plan plan;
static struct failing failing[2];
static struct rdma *a, *b;
static char memory[OCTETS];
static struct rdma_region region;
static uint32_t cqs[2], conns[2];

static bool has_windows(void)
{
    struct rdma_caps caps;
    if (!provider->open())
        return true; /* which is found out again */
    rdma_caps(provider->handle(), &caps);
    provider->close();
    return caps.bits & RDMA_CAP_WINDOW;
}

/* Things happen when somebody looks. */
static int next_event(struct rdma *r, struct rdma_event *event)
{
    struct rdma_wc wc;
    int got = 0;
    for (uint32_t n = 0; n < 100 && got == 0; n++) {
        CU_ASSERT_EQUAL(rdma_cq_poll(r, cqs[r == b], &wc, 1), 0);
        got = rdma_event(r, event);
    }
    return got;
}

static void open_all(void)
{
    const uint32_t access =
        RDMA_LOCAL_WRITE | RDMA_REMOTE_READ | RDMA_REMOTE_WRITE | RDMA_BIND_WINDOW;
    plan = (struct failing_plan){.cut = provider->cut};
    CU_ASSERT_FATAL(provider->open());
    a = failing_handle(&failing[0], provider->handle(), &plan);
    b = failing_handle(&failing[1], provider->handle(), &plan);
    CU_ASSERT_EQUAL_FATAL(rdma_reg(b, memory, OCTETS, access, (uintptr_t)memory, &region), 0);
    CU_ASSERT_EQUAL_FATAL(rdma_listen(b, "windows"), 0);
    CU_ASSERT_EQUAL_FATAL(rdma_cq_create(a, 8, &cqs[0]), 0);
    CU_ASSERT_EQUAL_FATAL(rdma_cq_create(b, 8, &cqs[1]), 0);
    struct rdma_conn_config config = {.send_depth = 4, .recv_depth = 1, .max_sge = 1};
    struct rdma_event event;
    config.cq = cqs[0];
    CU_ASSERT_EQUAL_FATAL(rdma_connect(a, "windows", &config, NULL, 0, NULL, 0, &conns[0]), 0);
    CU_ASSERT_EQUAL(rdma_event(a, &event), 0); /* it may have to find the peer first */
    CU_ASSERT_EQUAL_FATAL(next_event(b, &event), 1);
    CU_ASSERT_EQUAL(event.kind, RDMA_EVENT_REQUEST);
    conns[1] = event.conn;
    config.cq = cqs[1];
    CU_ASSERT_EQUAL_FATAL(rdma_accept(b, conns[1], &config, NULL, 0, NULL, 0), 0);
    CU_ASSERT_EQUAL_FATAL(next_event(a, &event), 1);
    CU_ASSERT_EQUAL(event.kind, RDMA_EVENT_CONNECTED);
    CU_ASSERT_EQUAL_FATAL(next_event(b, &event), 1);
    CU_ASSERT_EQUAL(event.kind, RDMA_EVENT_CONNECTED);
}

/* Both ends are over, and destroyed. */
static void end_all(void)
{
    struct rdma *const sides[] = {a, b};
    struct rdma_event event;
    CU_ASSERT_EQUAL(rdma_disconnect(a, conns[0]), 0);
    for (int i = 0; i < 2; i++) {
        CU_ASSERT_EQUAL_FATAL(next_event(sides[i], &event), 1);
        CU_ASSERT_EQUAL(event.kind, RDMA_EVENT_DISCONNECTED);
        CU_ASSERT_EQUAL_FATAL(next_event(sides[i], &event), 1);
        CU_ASSERT_EQUAL(event.kind, RDMA_EVENT_DRAINED);
        CU_ASSERT_EQUAL(rdma_destroy(sides[i], conns[i]), 0);
        CU_ASSERT_EQUAL(rdma_cq_destroy(sides[i], cqs[i]), 0);
    }
}

static void close_all(void)
{
    CU_ASSERT_EQUAL(rdma_dereg(b, &region), 0);
    CU_ASSERT_EQUAL(provider->left(), 0);
    provider->close();
}

static uint32_t bind(struct rdma_window *window)
{
    struct rdma_wr wr = {
        .op = RDMA_BIND,
        .flags = RDMA_SIGNALED,
        .bind = {
            .window = window, .region = &region, .length = SHOWN, .access = RDMA_REMOTE_WRITE}};
    struct rdma_wc wc;
    CU_ASSERT_EQUAL(rdma_post_send(b, conns[1], &wr, 1), 0);
    CU_ASSERT_EQUAL_FATAL(rdma_cq_poll(b, cqs[1], &wc, 1), 1);
    return wc.status;
}

/* It holds the region until it is freed, or its connection is destroyed. */
static void holds_its_region(void)
{
    struct rdma_window window;
    for (int freed = 0; freed < 2; freed++) {
        open_all();
        CU_ASSERT_EQUAL(rdma_window_alloc(b, &window), 0);
        uint32_t stag = window.stag;
        CU_ASSERT_EQUAL(bind(&window), RDMA_OK);
        CU_ASSERT(window.stag != stag && window.base_to == region.base_to &&
                  window.length == SHOWN);
        CU_ASSERT_EQUAL(rdma_dereg(b, &region), -EBUSY);
        if (freed) {
            CU_ASSERT_EQUAL(rdma_window_free(b, &window), 0);
            CU_ASSERT_EQUAL(rdma_window_free(b, &window), -EINVAL);
            end_all();
        } else {
            end_all();
            CU_ASSERT_EQUAL(rdma_dereg(b, &region), 0);
            CU_ASSERT_EQUAL(rdma_window_free(b, &window), 0);
            CU_ASSERT_EQUAL(rdma_reg(b, memory, 8, 0, 0, &region), 0);
        }
        close_all();
    }
}

/* Every error of every call; what failed was not done. */
static void calls_fail(void)
{
    static const enum failing_call calls[] = {FAILING_WINDOW_ALLOC, FAILING_WINDOW_FREE};
    struct rdma_window window;
    for (int i = 0; i < 2; i++) {
        CU_ASSERT_NOT_EQUAL(failing_error(calls[i], 0), 0);
        for (uint32_t n = 0; failing_error(calls[i], n) != 0; n++) {
            int error = failing_error(calls[i], n), failed_alloc, failed_free;
            open_all();
            plan.call = calls[i];
            plan.call_number = 1;
            plan.error = error;
            failed_alloc = rdma_window_alloc(b, &window);
            CU_ASSERT_EQUAL(failed_alloc, i == 0 ? error : 0);
            if (failed_alloc)
                CU_ASSERT_EQUAL(rdma_window_alloc(b, &window), 0);
            CU_ASSERT_EQUAL(bind(&window), RDMA_OK);
            failed_free = rdma_window_free(b, &window);
            CU_ASSERT_EQUAL(failed_free, i == 1 ? error : 0);
            CU_ASSERT_EQUAL(rdma_dereg(b, &region), i == 1 ? -EBUSY : 0);
            if (failed_free)
                CU_ASSERT_EQUAL(rdma_window_free(b, &window), 0)
            else
                CU_ASSERT_EQUAL(rdma_reg(b, memory, 8, 0, 0, &region), 0)
            CU_ASSERT(plan.injected);
            end_all();
            close_all();
        }
    }
}

int main(void)
{
    static const struct test tests[] = {
        {"a window holds its region", holds_its_region},
        {"calls fail", calls_fail},
    };
    int failed = 0;
    for (uint32_t i = 0; i < PROVIDERS; i++) {
        char name[64];
        provider = &providers[i];
        if (!has_windows())
            continue;
        snprintf(name, sizeof name, "net/windows of %s", provider->name);
        failed |= run_tests(name, tests, sizeof tests / sizeof *tests);
    }
    return failed;
}
