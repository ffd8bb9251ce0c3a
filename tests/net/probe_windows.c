/* SPDX-License-Identifier: BSD-3-Clause */
/* Probes of windows: side b shows a part of its memory to side a. */
#include "tests/net/probe_windows.h"

#define SHOWN 8192u /* where in b's memory a region of its own begins */
#define REGION 4096u
#define OFFSET 512u
#define LENGTH 256u

struct shown {
    struct probe_sides *s;
    struct rdma_region region;
    struct rdma_window window;
};

/* Posts what has no SGEs to side b's end, and waits for it. */
static bool b_does(struct probe_sides *s, const struct rdma_wr *wr)
{
    struct rdma_wc wc;
    return rdma_post_send(s->b.rdma, s->b.conn, wr, 1) == 0 && probe_wc(&s->b, &wc) &&
           wc.status == RDMA_OK;
}

static bool b_binds(struct shown *it)
{
    const struct rdma_wr wr = {.op = RDMA_BIND,
                               .flags = RDMA_SIGNALED,
                               .bind = {.window = &it->window,
                                        .region = &it->region,
                                        .offset = OFFSET,
                                        .length = LENGTH,
                                        .access = RDMA_REMOTE_READ | RDMA_REMOTE_WRITE}};
    return b_does(it->s, &wr);
}

static bool b_invalidates(struct shown *it)
{
    const struct rdma_wr wr = {
        .op = RDMA_LOCAL_INV, .flags = RDMA_SIGNALED, .imm_stag = it->window.stag};
    return b_does(it->s, &wr);
}

/* Does side a of this connection change memory with this STag? */
static bool a_writes(struct probe_sides *s, const struct shown *it, uint32_t stag, uint8_t first)
{
    struct rdma_wr wr = probe_wr(s, RDMA_WRITE, 0);
    wr.remote_stag = stag;
    wr.remote_to = it->region.base_to + OFFSET;
    probe_fill(s, 0, 32, first);
    return probe_do(s, &wr, 0, 32) == RDMA_OK && probe_holds(s, &s->b, SHOWN + OFFSET, 32, first);
}

/* What is refused ends its connection, so each is tried on a connection of its own. */
static struct probe_answer try_window(struct shown *it)
{
    struct probe_sides other;
    if (!b_binds(it))
        return probe_broken("BIND is not executed");
    if (it->window.base_to != it->region.base_to + OFFSET || it->window.length != LENGTH)
        return probe_broken("the window is not what was bound");
    uint32_t stag = it->window.stag;
    if (!a_writes(it->s, it, stag, 1))
        return probe_broken("nothing can be written through the window");
    bool connected = probe_again(&other, it->s) == 0;
    bool confined = connected && !a_writes(&other, it, stag, 2);
    probe_close(&other);
    if (!confined)
        return probe_broken(connected ? "the window is valid on another connection"
                                      : "no second connection can be made");
    if (!b_invalidates(it) || !b_binds(it))
        return probe_broken("the window cannot be invalidated and bound again");
    if (it->window.stag == stag || !a_writes(it->s, it, it->window.stag, 3))
        return probe_broken("the window is not usable with a new STag");
    if (a_writes(it->s, it, stag, 4))
        return probe_broken("the STag from before can still be used");
    return probe_honoured("a window is valid on its connection, until it is invalidated");
}

static struct probe_answer try_inv_window(struct shown *it)
{
    struct rdma_wr wr = probe_wr(it->s, RDMA_SEND_INV, 0);
    struct rdma_wc wc;
    if (!b_binds(it) || !a_writes(it->s, it, it->window.stag, 1))
        return probe_broken("the window is unusable before");
    wr.imm_stag = it->window.stag;
    if (probe_do(it->s, &wr, 0, 8) != RDMA_OK || !probe_wc(&it->s->b, &wc) || wc.status != RDMA_OK)
        return probe_broken("SEND_INV of a window fails");
    if (a_writes(it->s, it, it->window.stag, 2))
        return probe_broken("the STag can still be used");
    return probe_honoured("the STag is unusable afterwards");
}

static struct probe_answer with_window(struct probe_sides *s,
                                       struct probe_answer (*try)(struct shown *it))
{
    struct shown it = {.s = s};
    uint8_t *at = s->b.memory + SHOWN;
    if (rdma_reg(s->b.rdma, at, REGION,
                 RDMA_LOCAL_WRITE | RDMA_REMOTE_READ | RDMA_REMOTE_WRITE | RDMA_BIND_WINDOW,
                 (uintptr_t)at, &it.region) != 0)
        return probe_broken("no region for windows can be had");
    struct probe_answer answer = probe_broken("no window can be had");
    if (rdma_window_alloc(s->b.rdma, &it.window) == 0) {
        answer = try(&it);
        if (rdma_window_free(s->b.rdma, &it.window) != 0)
            answer = probe_broken("a window cannot be given back");
    }
    if (rdma_dereg(s->b.rdma, &it.region) != 0)
        answer = probe_broken("the region cannot be deregistered when its window is freed");
    return answer;
}

struct probe_answer probe_window(struct probe_sides *s)
{
    return with_window(s, try_window);
}

struct probe_answer probe_inv_window(struct probe_sides *s)
{
    const uint32_t needed = RDMA_CAP_WINDOW | RDMA_CAP_SEND_INV;
    if ((s->caps.bits & needed) != needed)
        return probe_broken("it is claimed without WINDOW or SEND_INV");
    return with_window(s, try_inv_window);
}
