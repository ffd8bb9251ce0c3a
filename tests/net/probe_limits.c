/* SPDX-License-Identifier: BSD-3-Clause */
/* Probes of numbers: as much as is claimed is used. */
#include <string.h>

#include "tests/net/probe_sides.h"

#define MAX_WRS 1024u

/* ---- each number ------------------------------------------------------------------------- */

static void cut_up(const struct probe_side *side, uint32_t offset, struct rdma_sge *sges,
                   uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        sges[i] = (struct rdma_sge){side->memory + offset + 2 * i, 1, side->region.lkey};
}

/* A SEND from as many pieces into a receive of as many. */
static struct probe_answer sges(struct probe_sides *s, uint32_t count)
{
    struct rdma_sge from[PROBE_SGES], to[PROBE_SGES];
    struct rdma_wr wr = {.op = RDMA_SEND, .flags = RDMA_SIGNALED, .sges = from, .sge_count = count};
    struct rdma_wr receive = {.wr_id = 99, .op = RDMA_RECV, .sges = to, .sge_count = count};
    struct rdma_wc wc;
    cut_up(&s->a, 0, from, count);
    cut_up(&s->b, 8192, to, count);
    probe_fill(s, 0, 2 * count, 1);
    if (rdma_post_recv(s->b.rdma, s->b.conn, &receive, 1) != 0)
        return probe_broken("a receive of so many pieces is refused");
    for (uint32_t i = 0; i <= PROBE_RECEIVES; i++) /* the last one takes that receive */
        if (rdma_post_send(s->a.rdma, s->a.conn, &wr, 1) != 0 || !probe_wc(&s->a, &wc) ||
            wc.status != RDMA_OK || !probe_wc(&s->b, &wc) || wc.status != RDMA_OK)
            return probe_broken("a SEND of so many pieces fails");
    for (uint32_t i = 0; i < count; i++)
        if (!probe_holds(s, &s->b, 8192 + 2 * i, 1, (uint8_t)(1 + 14 * i)))
            return probe_broken("the pieces are not what was sent");
    return probe_honoured("so many pieces work");
}

static struct probe_answer read_sges(struct probe_sides *s, uint32_t count)
{
    struct rdma_sge to[PROBE_SGES];
    struct rdma_wr wr = probe_wr(s, RDMA_READ, 0);
    struct rdma_wc wc;
    cut_up(&s->a, 8192, to, count);
    wr.sges = to;
    wr.sge_count = count;
    for (uint32_t i = 0; i < count; i++)
        s->b.memory[i] = (uint8_t)(i + 1);
    if (rdma_post_send(s->a.rdma, s->a.conn, &wr, 1) != 0 || !probe_wc(&s->a, &wc) ||
        wc.status != RDMA_OK)
        return probe_broken("a READ into so many pieces fails");
    for (uint32_t i = 0; i < count; i++)
        if (!probe_holds(s, &s->a, 8192 + 2 * i, 1, (uint8_t)(i + 1)))
            return probe_broken("the pieces are not what was read");
    return probe_honoured("so many pieces work");
}

static struct probe_answer inline_octets(struct probe_sides *s, uint32_t octets)
{
    struct rdma_sge sge = {s->a.memory, octets, 0};
    struct rdma_wr wr = {
        .op = RDMA_SEND, .flags = RDMA_SIGNALED | RDMA_INLINE, .sges = &sge, .sge_count = 1};
    struct rdma_wc wc;
    probe_fill(s, 0, octets, 9);
    if (rdma_post_send(s->a.rdma, s->a.conn, &wr, 1) != 0)
        return probe_broken("so many octets are refused");
    memset(s->a.memory, 0, octets);
    if (!probe_wc(&s->a, &wc) || wc.status != RDMA_OK || !probe_wc(&s->b, &wc) ||
        wc.status != RDMA_OK)
        return probe_broken("so many octets are not sent");
    if (!probe_holds(s, &s->b, PROBE_RECEIVES_AT, octets, 9))
        return probe_broken("the octets are not taken when posted");
    return probe_honoured("so many octets are taken when posted");
}

static struct probe_answer message_octets(struct probe_sides *s, uint32_t octets)
{
    struct rdma_wr wr = probe_wr(s, RDMA_WRITE, 0);
    probe_fill(s, 0, octets, 11);
    if (probe_do(s, &wr, 0, octets) != RDMA_OK)
        return probe_broken("a message of so many octets fails");
    if (!probe_holds(s, &s->b, 0, octets, 11))
        return probe_broken("a message of so many octets is not what was sent");
    return probe_honoured("messages of so many octets work");
}

/* Writes of nothing, all behind one doorbell; the receives are those of set-up, and more. */
static struct probe_answer queue(struct probe_sides *s, uint32_t depth)
{
    static struct rdma_wr wrs[MAX_WRS];
    struct rdma_wc wc;
    for (uint32_t i = 0; i < depth; i++) {
        wrs[i] = probe_wr(s, RDMA_WRITE, 0);
        wrs[i].flags = i + 1 == depth ? RDMA_SIGNALED : 0;
    }
    if (rdma_post_send(s->a.rdma, s->a.conn, wrs, depth) != 0)
        return probe_broken("so many work requests are refused");
    if (!probe_wc(&s->a, &wc) || wc.status != RDMA_OK)
        return probe_broken("so many work requests fail");
    struct rdma_sge sge = {s->b.memory, 8, s->b.region.lkey};
    struct rdma_wr receive = {.op = RDMA_RECV, .sges = &sge, .sge_count = 1};
    for (uint32_t i = PROBE_RECEIVES; i < depth; i++)
        if (rdma_post_recv(s->b.rdma, s->b.conn, &receive, 1) != 0)
            return probe_broken("so many receives are refused");
    return probe_honoured("so many work requests and receives fit");
}

static struct probe_answer reads(struct probe_sides *s, uint32_t count)
{
    struct rdma_wc wc;
    for (uint32_t i = 0; i < count; i++)
        s->b.memory[i] = (uint8_t)(i + 1);
    for (uint32_t i = 0; i < count; i++) {
        struct rdma_sge sge = {s->a.memory + i, 1, s->a.region.lkey};
        struct rdma_wr wr = probe_wr(s, RDMA_READ, i);
        wr.sges = &sge;
        wr.sge_count = 1;
        if (rdma_post_send(s->a.rdma, s->a.conn, &wr, 1) != 0)
            return probe_broken("so many READs are refused");
    }
    for (uint32_t i = 0; i < count; i++)
        if (!probe_wc(&s->a, &wc) || wc.status != RDMA_OK)
            return probe_broken("so many READs fail");
    for (uint32_t i = 0; i < count; i++)
        if (!probe_holds(s, &s->a, i, 1, (uint8_t)(i + 1)))
            return probe_broken("a READ does not give what is there");
    return probe_honoured("so many READs at once work");
}

/* ---- all --------------------------------------------------------------------------------- */

static uint32_t claimed(const struct rdma_caps *caps, enum probe_limit limit)
{
    const uint32_t claims[PROBE_LIMITS] = {caps->max_sge,     caps->max_read_sge, caps->max_inline,
                                           caps->max_message, caps->max_queue,    caps->max_reads};
    return claims[limit];
}

static const struct {
    const char *name;
    uint32_t most; /* what there is memory for */
    uint32_t least;
    struct probe_answer (*probe)(struct probe_sides *s, uint32_t number);
} limits[PROBE_LIMITS] = {
    [PROBE_MAX_SGE] = {"max_sge", PROBE_SGES, 1, sges},
    [PROBE_MAX_READ_SGE] = {"max_read_sge", PROBE_SGES, 1, read_sges},
    [PROBE_MAX_INLINE] = {"max_inline", PROBE_RECEIVE_OCTETS, 0, inline_octets},
    [PROBE_MAX_MESSAGE] = {"max_message", PROBE_RECEIVES_AT, 1, message_octets},
    [PROBE_MAX_QUEUE] = {"max_queue", MAX_WRS, PROBE_RECEIVES, queue},
    [PROBE_MAX_READS] = {"max_reads", 250, 1, reads},
};

const char *probe_limit_name(enum probe_limit limit)
{
    return limit < PROBE_LIMITS ? limits[limit].name : NULL;
}

/* A connection with as much of this as is tried, and little of the rest. */
static struct rdma_conn_config config_for(enum probe_limit limit, uint32_t number)
{
    struct rdma_conn_config config = {.send_depth = 4,
                                      .recv_depth = PROBE_RECEIVES + 1,
                                      .max_sge = 1,
                                      .reads_out = 1,
                                      .reads_in = 1};
    if (limit == PROBE_MAX_SGE || limit == PROBE_MAX_READ_SGE)
        config.max_sge = number;
    if (limit == PROBE_MAX_INLINE)
        config.max_inline = number;
    if (limit == PROBE_MAX_QUEUE)
        config.send_depth = config.recv_depth = number;
    if (limit == PROBE_MAX_READS)
        config.reads_out = config.reads_in = config.send_depth = number;
    return config;
}

struct probe_answer probe_limit(struct rdma *a, struct rdma *b, const char *address,
                                enum probe_limit limit)
{
    struct rdma_caps caps;
    struct probe_sides sides;
    rdma_caps(a, &caps);
    uint32_t number = claimed(&caps, limit), most = limits[limit].most;
    if (number < limits[limit].least)
        return probe_broken("it is less than anybody can use");
    struct rdma_conn_config config = config_for(limit, number < most ? number : most);
    struct probe_answer answer = probe_broken("no connection can be made with so much");
    if (probe_open(&sides, a, b, address, &config) == 0)
        answer = limits[limit].probe(&sides, number < most ? number : most);
    probe_close(&sides);
    if (number > most && answer.result == PROBE_HONOURED)
        return probe_unknown("less than that works; more was not tried");
    return answer;
}
