/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/net/probe_sides.h"

#include <errno.h>
#include <string.h>

#define PATIENCE 1000000u
#define CQ_DEPTH 1024u

static _Alignas(4096) uint8_t memories[2][PROBE_OCTETS];

/* ---- set-up ------------------------------------------------------------------------------ */

static int open_side(struct probe_side *side, struct rdma *rdma, uint8_t *memory, uint32_t cq_depth,
                     uint32_t access)
{
    *side = (struct probe_side){.rdma = rdma, .memory = memory};
    memset(memory, 0, PROBE_OCTETS);
    int failed = rdma_reg(rdma, memory, PROBE_OCTETS, access, (uintptr_t)memory, &side->region);
    if (failed)
        return failed;
    side->has_region = true;
    failed = rdma_cq_create(rdma, cq_depth, &side->cq);
    side->has_cq = failed == 0;
    return failed;
}

static void receives_of(const struct probe_side *side, struct rdma_wr wrs[PROBE_RECEIVES],
                        struct rdma_sge sges[PROBE_RECEIVES])
{
    for (uint32_t i = 0; i < PROBE_RECEIVES; i++) {
        sges[i] = (struct rdma_sge){side->memory + PROBE_RECEIVES_AT + i * PROBE_RECEIVE_OCTETS,
                                    PROBE_RECEIVE_OCTETS, side->region.lkey};
        wrs[i] = (struct rdma_wr){.wr_id = i, .op = RDMA_RECV, .sges = &sges[i], .sge_count = 1};
    }
}

static int accept_it(struct probe_side *side, struct rdma_conn_config config, uint32_t conn)
{
    struct rdma_wr wrs[PROBE_RECEIVES];
    struct rdma_sge sges[PROBE_RECEIVES];
    config.cq = side->cq;
    receives_of(side, wrs, sges);
    int failed = rdma_accept(side->rdma, conn, &config, wrs, PROBE_RECEIVES, NULL, 0);
    if (failed)
        rdma_reject(side->rdma, conn, NULL, 0);
    side->conn = conn;
    side->has_conn = failed == 0;
    return failed;
}

static int wait_for_connection(struct probe_sides *s)
{
    uint32_t connected = 0;
    struct rdma_event event;
    struct probe_side *const sides[] = {&s->a, &s->b};
    for (uint32_t n = 0; n < PATIENCE && connected < 2; n++) {
        struct probe_side *side = sides[n % 2];
        if (rdma_event(side->rdma, &event) != 1)
            continue;
        int failed = 0;
        if (event.kind == RDMA_EVENT_REQUEST)
            failed = accept_it(side, s->config, event.conn);
        else if (event.kind == RDMA_EVENT_CONNECTED)
            connected++;
        else
            failed = -ECONNREFUSED;
        if (failed) {
            side->ended |= event.kind == RDMA_EVENT_REJECTED;
            return failed;
        }
    }
    return connected == 2 ? 0 : -ETIMEDOUT;
}

static int connect_sides(struct probe_sides *s)
{
    struct rdma_wr wrs[PROBE_RECEIVES];
    struct rdma_sge sges[PROBE_RECEIVES];
    struct rdma_conn_config mine = s->config;
    mine.cq = s->a.cq;
    receives_of(&s->a, wrs, sges);
    int failed =
        rdma_connect(s->a.rdma, s->address, &mine, wrs, PROBE_RECEIVES, NULL, 0, &s->a.conn);
    s->a.has_conn = failed == 0;
    return failed ? failed : wait_for_connection(s);
}

int probe_open(struct probe_sides *s, struct rdma *a, struct rdma *b, const char *address,
               const struct rdma_conn_config *config)
{
    *s = (struct probe_sides){.config = *config, .address = address};
    rdma_caps(a, &s->caps);
    uint32_t atomics = s->caps.bits & (RDMA_CAP_FETCH_ADD | RDMA_CAP_CAS) ? RDMA_REMOTE_ATOMIC : 0;
    uint32_t access = RDMA_LOCAL_WRITE | RDMA_REMOTE_READ | RDMA_REMOTE_WRITE | atomics;
    uint32_t cq_depth = s->caps.max_cq < CQ_DEPTH ? s->caps.max_cq : CQ_DEPTH;
    int failed = open_side(&s->a, a, memories[0], cq_depth, access);
    if (!failed)
        failed = open_side(&s->b, b, memories[1], cq_depth, access);
    return failed ? failed : connect_sides(s);
}

int probe_again(struct probe_sides *s, const struct probe_sides *of)
{
    *s = *of;
    struct probe_side *const sides[] = {&s->a, &s->b};
    for (uint32_t i = 0; i < 2; i++)
        sides[i]->has_region = sides[i]->has_cq = sides[i]->has_conn = sides[i]->ended = false;
    return connect_sides(s);
}

/* ---- the end ----------------------------------------------------------------------------- */

static bool is_over(const struct probe_side *side)
{
    return !side->has_conn || side->ended;
}

static void poll_to_the_end(struct probe_side *side)
{
    struct rdma_wc wc;
    struct rdma_event event;
    if (is_over(side))
        return;
    while (rdma_cq_poll(side->rdma, side->cq, &wc, 1) == 1)
        ;
    if (rdma_event(side->rdma, &event) == 1)
        side->ended = event.kind == RDMA_EVENT_DRAINED || event.kind == RDMA_EVENT_REJECTED;
}

static void close_side(struct probe_side *side)
{
    if (side->has_conn)
        rdma_destroy(side->rdma, side->conn);
    if (side->has_cq)
        rdma_cq_destroy(side->rdma, side->cq);
    if (side->has_region)
        rdma_dereg(side->rdma, &side->region);
}

void probe_close(struct probe_sides *s)
{
    if (s->a.has_conn)
        rdma_disconnect(s->a.rdma, s->a.conn);
    for (uint32_t n = 0; n < PATIENCE && !(is_over(&s->a) && is_over(&s->b)); n++) {
        poll_to_the_end(&s->a);
        poll_to_the_end(&s->b);
    }
    close_side(&s->a);
    close_side(&s->b);
}

/* ---- what a probe does ------------------------------------------------------------------- */

bool probe_wc(struct probe_side *side, struct rdma_wc *wc)
{
    for (uint32_t n = 0; n < PATIENCE; n++)
        if (rdma_cq_poll(side->rdma, side->cq, wc, 1) == 1)
            return true;
    return false;
}

struct rdma_wr probe_wr(const struct probe_sides *s, enum rdma_op op, uint32_t offset)
{
    return (struct rdma_wr){.wr_id = 77,
                            .op = (uint16_t)op,
                            .flags = RDMA_SIGNALED,
                            .remote_to = s->b.region.base_to + offset,
                            .remote_stag = s->b.region.stag};
}

int probe_do(struct probe_sides *s, struct rdma_wr *wr, uint32_t offset, uint32_t octets)
{
    struct rdma_sge sge = {s->a.memory + offset, octets, s->a.region.lkey};
    struct rdma_wc wc;
    wr->sges = &sge;
    wr->sge_count = 1;
    int failed = rdma_post_send(s->a.rdma, s->a.conn, wr, 1);
    if (failed)
        return failed;
    return probe_wc(&s->a, &wc) ? (int)wc.status : -ETIMEDOUT;
}

void probe_fill(struct probe_sides *s, uint32_t offset, uint32_t octets, uint8_t first)
{
    for (uint32_t i = 0; i < octets; i++)
        s->a.memory[offset + i] = (uint8_t)(first + 7 * i);
}

bool probe_holds(struct probe_sides *s, const struct probe_side *side, uint32_t offset,
                 uint32_t octets, uint8_t first)
{
    for (uint32_t i = 0; i < octets; i++) {
        uint8_t octet;
        mem_read(&s->mem, &octet, side->memory + offset + i, 1);
        if (octet != (uint8_t)(first + 7 * i))
            return false;
    }
    return true;
}
