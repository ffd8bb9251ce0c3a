/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/net/verbs_world.h"

#include <CUnit/CUnit.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define PATIENCE 3000u

/* ---- what fails says so ------------------------------------------------------------------ */

int vw_returned(struct vw *w, int result, const char *words)
{
    int error = 0;
    CU_ASSERT(result >= 0 || (result > -4096 && result != -1));
    if (result >= 0)
        return result;
    w->errors++;
    const char *call = fake_failed(&error);
    /* The first that is returned after a call failed is about that call. */
    if (call && w->errors == 1) {
        const char *at = strstr(words, call), *errno_words = strerrordesc_np(error);
        CU_ASSERT(at != NULL && strncmp(at + strlen(call), ": ", 2) == 0);
        CU_ASSERT(strstr(words, errno_words) != NULL);
        CU_ASSERT(w->device == NULL || strncmp(words, "fake0: ", 7) == 0);
        if (!at)
            (void)printf("%s failed: \"%s\" (%d)\n", call, words, result);
    }
    return result;
}

static int from(struct vw *w, const struct vw_side *side, int result)
{
    return vw_returned(w, result, rdma_verbs_failure(side->rdma));
}

/* ---- opening ----------------------------------------------------------------------------- */

static int open_side(struct vw *w, struct vw_side *side, const char *name)
{
    const uint32_t atomics = w->caps.bits & RDMA_CAP_FETCH_ADD ? RDMA_REMOTE_ATOMIC : 0;
    const uint32_t windows = w->caps.bits & RDMA_CAP_WINDOW ? RDMA_BIND_WINDOW : 0;
    side->name = name;
    int error =
        from(w, side,
             rdma_reg(side->rdma, side->memory, VW_OCTETS,
                      RDMA_LOCAL_WRITE | RDMA_REMOTE_READ | RDMA_REMOTE_WRITE | atomics | windows,
                      0x10000, &side->region));
    side->has_region = error == 0;
    if (error == 0)
        error = from(w, side, rdma_cq_create(side->rdma, 2 * VW_DEPTH, &side->cq));
    side->has_cq = error == 0;
    return error;
}

int vw_open(struct vw *w, uint32_t connect_ms)
{
    const struct rdma_verbs_config wanted = {
        .connections = 3, .timers = 4, .connect_ms = connect_ms};
    memset(w, 0, sizeof *w);
    int error = vw_returned(w, rdma_verbs_open(&wanted, &w->device, w->words), w->words);
    struct vw_side *const sides[] = {&w->a, &w->b};
    for (uint32_t i = 0; i < 2 && error == 0; i++)
        error = vw_returned(w, rdma_verbs_handle(w->device, &sides[i]->rdma, w->words), w->words);
    if (error != 0)
        return error;
    rdma_caps(w->a.rdma, &w->caps);
    error = open_side(w, &w->a, "a");
    if (error == 0)
        error = open_side(w, &w->b, "b");
    if (error == 0 && w->caps.bits & RDMA_CAP_WINDOW) {
        error = from(w, &w->b, rdma_window_alloc(w->b.rdma, &w->window));
        w->has_window = error == 0;
    }
    if (error == 0)
        error = from(w, &w->b, rdma_listen(w->b.rdma, VW_ADDRESS));
    return error;
}

/* ---- connecting -------------------------------------------------------------------------- */

static struct rdma_conn_config config_of(const struct vw *w, const struct vw_side *side)
{
    return (struct rdma_conn_config){.cq = side->cq,
                                     .send_depth = VW_DEPTH,
                                     .recv_depth = VW_DEPTH,
                                     .max_sge = 2,
                                     .max_inline = w->caps.max_inline < 64 ? 0 : 64,
                                     .reads_out = 2,
                                     .reads_in = 2};
}

static void receives_of(struct vw_side *side, struct rdma_wr wrs[VW_RECEIVES],
                        struct rdma_sge sges[VW_RECEIVES])
{
    for (uint32_t i = 0; i < VW_RECEIVES; i++) {
        char *at = side->memory + VW_OCTETS - (i + 1) * VW_RECEIVE_OCTETS;
        sges[i] = (struct rdma_sge){at, VW_RECEIVE_OCTETS, side->region.lkey};
        wrs[i] = (struct rdma_wr){
            .wr_id = side->ids + 1 + i, .op = RDMA_RECV, .sges = &sges[i], .sge_count = 1};
    }
}

/* Those numbers are in use now. */
static int posted(struct vw_side *side, int error, uint32_t count)
{
    if (error == 0)
        side->ids += count;
    CU_ASSERT_FATAL(side->ids < VW_IDS);
    return error;
}

int vw_connect_to(struct vw *w, const char *address)
{
    struct rdma_wr wrs[VW_RECEIVES];
    struct rdma_sge sges[VW_RECEIVES];
    const struct rdma_conn_config config = config_of(w, &w->a);
    receives_of(&w->a, wrs, sges);
    int error =
        from(w, &w->a,
             rdma_connect(w->a.rdma, address, &config, wrs, VW_RECEIVES, "from a", 6, &w->a.conn));
    w->a.has_conn = error == 0;
    w->a.stage = error ? VW_NOTHING : VW_ASKED;
    return posted(&w->a, error, VW_RECEIVES);
}

int vw_accept(struct vw *w)
{
    struct rdma_wr wrs[VW_RECEIVES];
    struct rdma_sge sges[VW_RECEIVES];
    const struct rdma_conn_config config = config_of(w, &w->b);
    receives_of(&w->b, wrs, sges);
    int error =
        from(w, &w->b, rdma_accept(w->b.rdma, w->b.conn, &config, wrs, VW_RECEIVES, "from b", 6));
    if (error == 0) {
        w->b.has_request = false;
        w->b.has_conn = true;
        w->b.stage = VW_ASKED;
    }
    return posted(&w->b, error, VW_RECEIVES);
}

static void take_request(struct vw *w)
{
    if (w->stay)
        return;
    if (w->reject || vw_accept(w) != 0) {
        (void)from(w, &w->b, rdma_reject(w->b.rdma, w->b.conn, "no", 2));
        w->b.has_request = false;
    }
}

/* ---- looking ----------------------------------------------------------------------------- */

static void happened(struct vw *w, struct vw_side *side, const struct rdma_event *event)
{
    if (side->error == 0)
        side->error = event->error;
    w->told |= event->error < 0;
    CU_ASSERT(event->error <= 0 && event->error > -4096);
    if (event->kind != RDMA_EVENT_TIMER && event->kind != RDMA_EVENT_REQUEST)
        CU_ASSERT(side->has_conn && event->conn == side->conn);
    side->private_length = event->private_length;
    memcpy(side->private_data, event->private_data, event->private_length);
    switch (event->kind) {
    case RDMA_EVENT_REQUEST:
        CU_ASSERT(side == &w->b && !side->has_conn);
        side->conn = event->conn;
        side->has_request = true;
        take_request(w);
        break;
    case RDMA_EVENT_CONNECTED:
        CU_ASSERT_EQUAL(side->stage, VW_ASKED);
        side->stage = VW_CONNECTED;
        break;
    case RDMA_EVENT_REJECTED:
        CU_ASSERT_EQUAL(side->stage, VW_ASKED);
        CU_ASSERT(event->error < 0);
        side->stage = VW_OVER;
        side->rejected = true;
        break;
    case RDMA_EVENT_DISCONNECTED:
        CU_ASSERT_EQUAL(side->stage, VW_CONNECTED);
        side->stage = VW_ENDED;
        break;
    case RDMA_EVENT_DRAINED:
        CU_ASSERT_EQUAL(side->stage, VW_ENDED);
        side->stage = VW_OVER;
        for (uint32_t id = 1; id <= side->ids && !side->broken; id++)
            CU_ASSERT(side->done[id] == 1 || side->silent[id]);
        break;
    default:
        break;
    }
}

static void completed(struct vw_side *side, const struct rdma_wc *wc)
{
    CU_ASSERT(side->has_conn && wc->conn == side->conn && side->stage != VW_OVER);
    CU_ASSERT_FATAL(wc->wr_id >= 1 && wc->wr_id <= side->ids);
    CU_ASSERT(side->done[wc->wr_id]++ == 0);
    if (wc->status == RDMA_FLUSHED) {
        CU_ASSERT_EQUAL(side->stage, VW_ENDED);
        side->flushed++;
        return;
    }
    side->last = *wc;
    side->oks += wc->status == RDMA_OK;
    side->bad += wc->status != RDMA_OK;
    side->receives += wc->op == RDMA_RECV && wc->status == RDMA_OK;
}

static void look(struct vw *w, struct vw_side *side)
{
    struct rdma_wc wcs[3];
    struct rdma_event event;
    if (!side->rdma)
        return;
    if (w->wait)
        (void)from(w, side, rdma_verbs_wait(side->rdma, 100000));
    int got = side->has_cq ? rdma_cq_poll(side->rdma, side->cq, wcs, 3) : 0;
    if (got < 0 && !side->broken)
        (void)from(w, side, got);
    side->broken |= got < 0;
    for (int i = 0; i < got; i++)
        completed(side, &wcs[i]);
    got = from(w, side, rdma_event(side->rdma, &event));
    if (got == 1)
        happened(w, side, &event);
}

void vw_step(struct vw *w)
{
    look(w, &w->a);
    look(w, &w->b);
}

void vw_steps(struct vw *w, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        vw_step(w);
}

bool vw_until(struct vw *w, enum vw_stage a, enum vw_stage b)
{
    for (uint32_t n = 0; n < PATIENCE; n++) {
        if (w->a.stage >= a && w->b.stage >= b)
            return true;
        vw_step(w);
    }
    return false;
}

bool vw_request(struct vw *w)
{
    w->stay = true;
    int error = vw_connect_to(w, VW_ADDRESS);
    for (uint32_t n = 0; n < PATIENCE && error == 0 && !w->b.has_request; n++)
        vw_step(w);
    return w->b.has_request;
}

int vw_connect(struct vw *w)
{
    int error = vw_connect_to(w, VW_ADDRESS);
    for (uint32_t n = 0; n < PATIENCE && error == 0; n++) {
        if (w->a.stage >= VW_CONNECTED && (w->b.stage >= VW_CONNECTED || w->a.rejected))
            break;
        vw_step(w);
    }
    return error ? error : w->a.stage == VW_CONNECTED && w->b.stage == VW_CONNECTED ? 0 : -EIO;
}

/* ---- traffic ----------------------------------------------------------------------------- */

int vw_send(struct vw *w, struct vw_side *side, struct rdma_wr *wrs, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        wrs[i].wr_id = side->ids + 1 + i;
    for (uint32_t i = 0; i < count && wrs[i].wr_id < VW_IDS; i++)
        side->silent[wrs[i].wr_id] = !(wrs[i].flags & RDMA_SIGNALED);
    return posted(side, from(w, side, rdma_post_send(side->rdma, side->conn, wrs, count)), count);
}

int vw_receive(struct vw *w, struct vw_side *side)
{
    struct rdma_sge sge = {side->memory + VW_OCTETS - VW_RECEIVE_OCTETS, VW_RECEIVE_OCTETS,
                           side->region.lkey};
    struct rdma_wr wr = {.wr_id = side->ids + 1, .op = RDMA_RECV, .sges = &sge, .sge_count = 1};
    return posted(side, from(w, side, rdma_post_recv(side->rdma, side->conn, &wr, 1)), 1);
}

struct rdma_wr vw_wr(const struct vw *w, enum rdma_op op, struct rdma_sge *sge, uint32_t octets)
{
    *sge = (struct rdma_sge){(char *)(uintptr_t)w->a.memory, octets, w->a.region.lkey};
    return (struct rdma_wr){.op = (uint16_t)op,
                            .flags = RDMA_SIGNALED,
                            .sges = sge,
                            .sge_count = 1,
                            .remote_to = w->b.region.base_to,
                            .remote_stag = w->b.region.stag};
}

int vw_do(struct vw *w, struct vw_side *side, struct rdma_wr *wr)
{
    int error = vw_send(w, side, wr, 1);
    uint64_t id = side->ids;
    for (uint32_t n = 0; n < PATIENCE && error == 0 && !side->done[id]; n++)
        vw_step(w);
    if (error)
        return error;
    return side->last.wr_id == id ? (int)side->last.status : RDMA_FLUSHED;
}

/* ---- the end ----------------------------------------------------------------------------- */

static bool is_over(const struct vw_side *side)
{
    return !side->has_conn || side->stage == VW_OVER;
}

static void forget(struct vw *w, struct vw_side *side)
{
    if (side->has_conn)
        CU_ASSERT_EQUAL(from(w, side, rdma_destroy(side->rdma, side->conn)), 0);
    memset(side->done, 0, sizeof side->done);
    memset(side->silent, 0, sizeof side->silent);
    side->error = 0;
    side->ids = side->oks = side->receives = side->flushed = side->bad = 0;
    side->has_conn = side->has_request = side->rejected = false;
    side->stage = VW_NOTHING;
}

void vw_end(struct vw *w)
{
    struct vw_side *const sides[] = {&w->a, &w->b};
    for (uint32_t i = 0; i < 2; i++)
        if (sides[i]->has_conn && !is_over(sides[i]))
            (void)rdma_disconnect(sides[i]->rdma, sides[i]->conn); /* -EINVAL: not connected */
    for (uint32_t n = 0; n < PATIENCE && !(is_over(&w->a) && is_over(&w->b)); n++) {
        if (n > PATIENCE / 2)
            (void)usleep(100); /* it needs a clock */
        vw_step(w);
    }
    CU_ASSERT(is_over(&w->a) && is_over(&w->b));
    for (uint32_t i = 0; i < 2; i++)
        if (is_over(sides[i]))
            forget(w, sides[i]);
}

/* Once more, when a call that failed was about to give it back. */
static void give_back(struct vw *w, struct vw_side *side)
{
    if (side->has_region && from(w, side, rdma_dereg(side->rdma, &side->region)) != 0)
        CU_ASSERT_EQUAL(rdma_dereg(side->rdma, &side->region), 0);
    if (side->has_cq && from(w, side, rdma_cq_destroy(side->rdma, side->cq)) != 0)
        CU_ASSERT_EQUAL(rdma_cq_destroy(side->rdma, side->cq), 0);
}

void vw_close(struct vw *w)
{
    struct vw_side *const sides[] = {&w->a, &w->b};
    vw_end(w);
    if (w->has_window && from(w, &w->b, rdma_window_free(w->b.rdma, &w->window)) != 0)
        CU_ASSERT_EQUAL(rdma_window_free(w->b.rdma, &w->window), 0);
    for (uint32_t i = 0; i < 2; i++)
        if (sides[i]->rdma)
            give_back(w, sides[i]);
    for (uint32_t i = 0; i < 2; i++)
        if (sides[i]->rdma)
            rdma_verbs_handle_close(sides[i]->rdma);
    rdma_verbs_close(w->device);
    int error; /* a window that cannot be freed stays bound */
    const char *call = fake_failed(&error);
    bool excused = call && strcmp(call, "ibv_dealloc_mw") == 0;
    CU_ASSERT(fake_breaches() == 0 || excused);
    if (fake_breaches() && !excused)
        (void)printf("%s\n", fake_breach());
}
