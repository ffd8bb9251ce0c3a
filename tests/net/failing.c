/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/net/failing.h"

#include <errno.h>

#define ERRORS 4u

/* What net/rdma.h says of each. */
static const struct {
    const char *name;
    int errors[ERRORS];
} calls[FAILING_CALLS] = {
    [FAILING_REG] = {"reg", {-ENOMEM, -ENOSPC, -EINVAL}},
    [FAILING_DEREG] = {"dereg", {-EBUSY}},
    [FAILING_WINDOW_ALLOC] = {"window_alloc", {-ENOTSUP, -ENOMEM}},
    [FAILING_WINDOW_FREE] = {"window_free", {-EINVAL}},
    [FAILING_CQ_CREATE] = {"cq_create", {-EINVAL, -ENOMEM}},
    [FAILING_CQ_DESTROY] = {"cq_destroy", {-EBUSY}},
    [FAILING_CQ_POLL] = {"cq_poll", {-EIO}},
    [FAILING_CQ_ARM] = {"cq_arm", {-ENOTSUP}},
    [FAILING_LISTEN] = {"listen", {-EADDRINUSE, -EADDRNOTAVAIL, -EINVAL}},
    [FAILING_CONNECT] = {"connect", {-EINVAL, -ENOSPC, -ENOMEM}},
    [FAILING_ACCEPT] = {"accept", {-EINVAL, -ENOMEM}},
    [FAILING_DISCONNECT] = {"disconnect", {-EINVAL}},
    [FAILING_DESTROY] = {"destroy", {-EBUSY}},
    [FAILING_POST_SEND] = {"post_send", {-ENOMEM, -EINVAL, -ENOTCONN, -ENOTSUP}},
    [FAILING_POST_RECV] = {"post_recv", {-ENOMEM, -EINVAL, -ENOTCONN}},
    [FAILING_TIMER] = {"timer", {-EINVAL}},
    [FAILING_RANDOM] = {"random", {-EIO}},
    [FAILING_CHAIN_CREATE] = {"chain_create", {-EINVAL, -ENOSPC, -ENOMEM}},
    [FAILING_CHAIN_DESTROY] = {"chain_destroy", {-EBUSY}},
    [FAILING_CHAIN_PUT] = {"chain_put", {-ENOMEM, -EINVAL, -ENOTSUP}},
    [FAILING_CHAIN_ENABLE] = {"chain_enable", {-EINVAL}},
    [FAILING_CHAIN_STATE] = {"chain_state", {-EINVAL}},
};

const char *failing_call_name(enum failing_call call)
{
    return calls[call].name;
}

int failing_error(enum failing_call call, uint32_t n)
{
    return n < ERRORS ? calls[call].errors[n] : 0;
}

static struct failing *self(struct rdma *r)
{
    return (struct failing *)r;
}

static struct rdma *inner(struct rdma *r)
{
    return self(r)->inner;
}

/* This call is made; the error when it is the one that fails. */
static int fails(struct rdma *r, enum failing_call call)
{
    struct failing_plan *plan = self(r)->plan;
    plan->calls[call]++;
    if (plan->call != call || plan->call_number != plan->calls[call])
        return 0;
    plan->injected = true;
    return plan->error;
}

/* ---- calls that pass, or fail ------------------------------------------------------------ */

static void caps(struct rdma *r, struct rdma_caps *out)
{
    rdma_caps(inner(r), out);
}

static int reg(struct rdma *r, void *addr, uint64_t length, uint32_t access, uint64_t wanted_base,
               struct rdma_region *region)
{
    int error = fails(r, FAILING_REG);
    return error ? error : rdma_reg(inner(r), addr, length, access, wanted_base, region);
}

static int dereg(struct rdma *r, struct rdma_region *region)
{
    int error = fails(r, FAILING_DEREG);
    return error ? error : rdma_dereg(inner(r), region);
}

static int window_alloc(struct rdma *r, struct rdma_window *window)
{
    int error = fails(r, FAILING_WINDOW_ALLOC);
    return error ? error : rdma_window_alloc(inner(r), window);
}

static int window_free(struct rdma *r, struct rdma_window *window)
{
    int error = fails(r, FAILING_WINDOW_FREE);
    return error ? error : rdma_window_free(inner(r), window);
}

static int cq_create(struct rdma *r, uint32_t depth, uint32_t *cq)
{
    int error = fails(r, FAILING_CQ_CREATE);
    return error ? error : rdma_cq_create(inner(r), depth, cq);
}

static int cq_destroy(struct rdma *r, uint32_t cq)
{
    int error = fails(r, FAILING_CQ_DESTROY);
    return error ? error : rdma_cq_destroy(inner(r), cq);
}

static int cq_arm(struct rdma *r, uint32_t cq, bool solicited_only)
{
    int error = fails(r, FAILING_CQ_ARM);
    return error ? error : rdma_cq_arm(inner(r), cq, solicited_only);
}

static int failing_listen(struct rdma *r, const char *address)
{
    int error = fails(r, FAILING_LISTEN);
    return error ? error : rdma_listen(inner(r), address);
}

static int failing_connect(struct rdma *r, const char *address,
                           const struct rdma_conn_config *config, const struct rdma_wr *receives,
                           uint32_t count, const void *private_data, uint32_t private_length,
                           uint32_t *conn)
{
    int error = fails(r, FAILING_CONNECT);
    if (!error)
        error = rdma_connect(inner(r), address, config, receives, count, private_data,
                             private_length, conn);
    if (!error)
        self(r)->broken[*conn % FAILING_CONNS] = false;
    return error;
}

static int failing_accept(struct rdma *r, uint32_t conn, const struct rdma_conn_config *config,
                          const struct rdma_wr *receives, uint32_t count, const void *private_data,
                          uint32_t private_length)
{
    int error = fails(r, FAILING_ACCEPT);
    if (!error)
        error = rdma_accept(inner(r), conn, config, receives, count, private_data, private_length);
    self(r)->broken[conn % FAILING_CONNS] = false;
    return error;
}

/* "conn is free again, also after an error": so it is passed on in any case, and never fails. */
static int reject(struct rdma *r, uint32_t conn, const void *private_data, uint32_t private_length)
{
    return rdma_reject(inner(r), conn, private_data, private_length);
}

static int failing_disconnect(struct rdma *r, uint32_t conn)
{
    int error = fails(r, FAILING_DISCONNECT);
    return error ? error : rdma_disconnect(inner(r), conn);
}

static int destroy(struct rdma *r, uint32_t conn)
{
    int error = fails(r, FAILING_DESTROY);
    return error ? error : rdma_destroy(inner(r), conn);
}

static int event(struct rdma *r, struct rdma_event *out)
{
    return rdma_event(inner(r), out);
}

static int post_send(struct rdma *r, uint32_t conn, const struct rdma_wr *wrs, uint32_t count)
{
    int error = fails(r, FAILING_POST_SEND);
    return error ? error : rdma_post_send(inner(r), conn, wrs, count);
}

static int post_recv(struct rdma *r, uint32_t conn, const struct rdma_wr *wrs, uint32_t count)
{
    int error = fails(r, FAILING_POST_RECV);
    return error ? error : rdma_post_recv(inner(r), conn, wrs, count);
}

static int timer(struct rdma *r, uint32_t id, uint64_t delay_ns)
{
    int error = fails(r, FAILING_TIMER);
    return error ? error : rdma_timer(inner(r), id, delay_ns);
}

static int failing_random(struct rdma *r, void *octets, uint32_t length)
{
    int error = fails(r, FAILING_RANDOM);
    return error ? error : rdma_random(inner(r), octets, length);
}

/* ---- chains ------------------------------------------------------------------------------ */

static uint32_t chain_octets(struct rdma *r, uint32_t depth)
{
    return rdma_chain_octets(inner(r), depth);
}

static int chain_create(struct rdma *r, const struct rdma_chain_config *config,
                        struct rdma_chain_queue *queue)
{
    int error = fails(r, FAILING_CHAIN_CREATE);
    return error ? error : rdma_chain_create(inner(r), config, queue);
}

static int chain_destroy(struct rdma *r, struct rdma_chain_queue *queue)
{
    int error = fails(r, FAILING_CHAIN_DESTROY);
    return error ? error : rdma_chain_destroy(inner(r), queue);
}

static int chain_put(struct rdma *r, const struct rdma_chain_queue *queue, uint32_t number,
                     const struct rdma_wr *wr)
{
    int error = fails(r, FAILING_CHAIN_PUT);
    return error ? error : rdma_chain_put(inner(r), queue, number, wr);
}

static int chain_enable(struct rdma *r, const struct rdma_chain_queue *queue, uint32_t limit)
{
    int error = fails(r, FAILING_CHAIN_ENABLE);
    return error ? error : rdma_chain_enable(inner(r), queue, limit);
}

static int chain_state(struct rdma *r, const struct rdma_chain_queue *queue,
                       struct rdma_chain_state *state)
{
    struct failing_plan *plan = self(r)->plan;
    int error = fails(r, FAILING_CHAIN_STATE);
    if (!error)
        error = rdma_chain_state(inner(r), queue, state);
    if (!error && plan->chain_number != 0 && plan->chain_number == state->completed) {
        plan->injected = true;
        state->status = plan->status;
    }
    return error;
}

static const struct rdma_chain_ops failing_chain_ops = {.octets = chain_octets,
                                                        .create = chain_create,
                                                        .destroy = chain_destroy,
                                                        .put = chain_put,
                                                        .enable = chain_enable,
                                                        .state = chain_state};

/* ---- completions ------------------------------------------------------------------------- */

/* Nothing else is valid then. */
static void make_error(struct rdma_wc *wc, enum rdma_status status)
{
    *wc = (struct rdma_wc){.wr_id = wc->wr_id,
                           .conn = wc->conn,
                           .op = 0xee,
                           .status = (uint8_t)status,
                           .flags = 0xeeee,
                           .length = 0xeeeeeeee,
                           .imm = 0xeeeeeeee};
}

static void look_at(struct rdma *r, struct rdma_wc *wc)
{
    struct failing *f = self(r);
    struct failing_plan *plan = f->plan;
    if (wc->status != RDMA_OK) {
        make_error(wc, (enum rdma_status)wc->status);
        return;
    }
    bool *broken = &f->broken[wc->conn % FAILING_CONNS], is_receive = wc->op == RDMA_RECV;
    if (*broken && !is_receive) {
        make_error(wc, RDMA_FLUSHED);
        return;
    }
    uint32_t number = ++plan->completions[wc->op];
    if (plan->op != wc->op || plan->completion_number != number)
        return;
    plan->injected = true;
    *broken = !is_receive;
    make_error(wc, plan->status);
    plan->cut(f->inner, wc->conn);
}

static int cq_poll(struct rdma *r, uint32_t cq, struct rdma_wc *wc, uint32_t count)
{
    int error = fails(r, FAILING_CQ_POLL);
    int taken = error ? error : rdma_cq_poll(inner(r), cq, wc, count);
    for (int i = 0; i < taken; i++)
        look_at(r, &wc[i]);
    return taken;
}

static const struct rdma_ops failing_ops = {
    .caps = caps,
    .reg = reg,
    .dereg = dereg,
    .window_alloc = window_alloc,
    .window_free = window_free,
    .cq_create = cq_create,
    .cq_destroy = cq_destroy,
    .cq_poll = cq_poll,
    .cq_arm = cq_arm,
    .listen = failing_listen,
    .connect = failing_connect,
    .accept = failing_accept,
    .reject = reject,
    .disconnect = failing_disconnect,
    .destroy = destroy,
    .event = event,
    .post_send = post_send,
    .post_recv = post_recv,
    .timer = timer,
    .random = failing_random,
    .chain = &failing_chain_ops,
};

struct rdma *failing_handle(struct failing *failing, struct rdma *wrapped,
                            struct failing_plan *plan)
{
    *failing = (struct failing){.rdma.ops = &failing_ops, .inner = wrapped, .plan = plan};
    return &failing->rdma;
}
