/* SPDX-License-Identifier: BSD-3-Clause */
/* Every operation and every error, on devices and on worlds of all orderings. */
#include <errno.h>
#include <string.h>

#include "rnic_pair.h"
#include "sim/random.h"
#include "tests/run.h"

static struct pair pair;
static struct pair_side *const a = &pair.a, *const b = &pair.b;

/* Runs a test on each of them, connected. */
static void on_all(void (*test)(void))
{
    for (int mode = 0; mode < PAIR_MODES; mode++) {
        pair_open_connected(&pair, (enum pair_mode)mode, (struct sim_rnic_config){0});
        test();
        pair_close(&pair);
    }
}

static struct rdma_wr remote(uint16_t op, uint64_t offset)
{
    return (struct rdma_wr){.wr_id = 9,
                            .op = op,
                            .flags = RDMA_SIGNALED,
                            .remote_to = b->region.base_to + offset,
                            .remote_stag = b->region.stag};
}

static void fill(char *at, size_t octets)
{
    for (size_t i = 0; i < octets; i++)
        at[i] = (char)(i * 7 + 1);
}

static void expect_done(uint32_t op)
{
    struct rdma_wc wc = pair_wc(a);
    CU_ASSERT_EQUAL(wc.status, RDMA_OK);
    CU_ASSERT_EQUAL(wc.op, op);
    CU_ASSERT_EQUAL(wc.wr_id, 9);
    CU_ASSERT(pair_no_wc(a));
}

/* ---- SEND -------------------------------------------------------------------------------- */

static void sends(void)
{
    for (uint32_t octets = 0; octets <= 64; octets += 16) {
        struct rdma_wr wr = {.wr_id = 9, .op = RDMA_SEND, .flags = RDMA_SIGNALED | RDMA_SOLICIT};
        fill(a->memory, octets);
        memset(b->memory + 256, 0, 64);
        CU_ASSERT_EQUAL(pair_post(a, &wr, 0, octets), 0);
        expect_done(RDMA_SEND);
        struct rdma_wc wc = pair_wc(b);
        CU_ASSERT_EQUAL(wc.status, RDMA_OK);
        CU_ASSERT_EQUAL(wc.op, RDMA_RECV);
        CU_ASSERT_EQUAL(wc.length, octets);
        CU_ASSERT_EQUAL(wc.flags, 0);
        uint32_t at = wc.wr_id == 1 ? 256 : 320;
        CU_ASSERT_EQUAL(memcmp(b->memory + at, a->memory, octets), 0);
        CU_ASSERT_EQUAL(pair_receive(b, wc.wr_id, at, 64), 0);
    }
}

static void sends_from_and_to_many_places(void)
{
    struct rdma_sge from[3] = {{a->memory + 3, 5, a->region.lkey},
                               {a->memory + 100, 0, 12345}, /* no octets: nothing is checked */
                               {a->memory + 17, 30, a->region.lkey}};
    struct rdma_sge to[3] = {{b->memory + 1, 20, b->region.lkey},
                             {b->memory + 40, 3, b->region.lkey},
                             {b->memory + 50, 40, b->region.lkey}};
    struct rdma_wr receive = {.wr_id = 3, .sges = to, .sge_count = 3};
    struct rdma_wr wr = {
        .wr_id = 9, .op = RDMA_SEND, .flags = RDMA_SIGNALED, .sges = from, .sge_count = 3};
    char expected[35];
    fill(a->memory, 64);
    memcpy(expected, a->memory + 3, 5);
    memcpy(expected + 5, a->memory + 17, 30);
    CU_ASSERT_EQUAL(rdma_post_recv(b->rdma, b->conn, &receive, 1), 0);
    for (int i = 0; i < 3; i++) { /* the third takes that receive */
        CU_ASSERT_EQUAL(rdma_post_send(a->rdma, a->conn, &wr, 1), 0);
        expect_done(RDMA_SEND);
        CU_ASSERT_EQUAL(pair_wc(b).length, 35);
    }
    CU_ASSERT_EQUAL(memcmp(b->memory + 1, expected, 20), 0);
    CU_ASSERT_EQUAL(memcmp(b->memory + 40, expected + 20, 3), 0);
    CU_ASSERT_EQUAL(memcmp(b->memory + 50, expected + 23, 12), 0);
    CU_ASSERT_EQUAL(b->memory[62], 0);
}

static void inline_data_is_taken_when_posted(void)
{
    char octets[48];
    struct rdma_sge sge = {octets, sizeof octets, 0};
    struct rdma_wr wr = {.wr_id = 9,
                         .op = RDMA_SEND,
                         .flags = RDMA_SIGNALED | RDMA_INLINE,
                         .sges = &sge,
                         .sge_count = 1};
    fill(octets, sizeof octets);
    CU_ASSERT_EQUAL(rdma_post_send(a->rdma, a->conn, &wr, 1), 0);
    CU_ASSERT_EQUAL(memcmp(b->memory + 256, octets, sizeof octets), 0);
    expect_done(RDMA_SEND);
    sge.length++;
    CU_ASSERT_EQUAL(rdma_post_send(a->rdma, a->conn, &wr, 1), -EINVAL);
}

/* ---- WRITE, READ ------------------------------------------------------------------------- */

static void writes_and_reads(void)
{
    for (uint32_t octets = 0; octets <= 200; octets += 40) {
        struct rdma_wr write = remote(RDMA_WRITE, 5), read = remote(RDMA_READ, 5);
        fill(a->memory, octets);
        memset(b->memory, 0, 256);
        memset(a->memory + 256, 0, 256);
        CU_ASSERT_EQUAL(pair_post(a, &write, 0, octets), 0);
        expect_done(RDMA_WRITE);
        CU_ASSERT_EQUAL(memcmp(b->memory + 5, a->memory, octets), 0);
        CU_ASSERT_EQUAL(b->memory[5 + octets], 0);
        CU_ASSERT_EQUAL(pair_post(a, &read, 256, octets), 0);
        struct rdma_wc wc = pair_wc(a);
        CU_ASSERT_EQUAL(wc.status, RDMA_OK);
        CU_ASSERT_EQUAL(wc.op, RDMA_READ);
        CU_ASSERT_EQUAL(wc.length, octets);
        CU_ASSERT_EQUAL(memcmp(a->memory + 256, a->memory, octets), 0);
    }
    CU_ASSERT(pair_no_wc(b));
}

static void writes_with_immediate(void)
{
    struct rdma_wr wr = remote(RDMA_WRITE_IMM, 16);
    wr.imm_stag = 0xfeedbeef;
    fill(a->memory, 24);
    fill(b->memory + 256, 64);
    CU_ASSERT_EQUAL(pair_post(a, &wr, 0, 24), 0);
    expect_done(RDMA_WRITE_IMM);
    struct rdma_wc wc = pair_wc(b);
    CU_ASSERT_EQUAL(wc.op, RDMA_RECV);
    CU_ASSERT_EQUAL(wc.wr_id, 1);
    CU_ASSERT_EQUAL(wc.flags, RDMA_WC_IMM | RDMA_WC_WRITE_IMM);
    CU_ASSERT_EQUAL(wc.imm, 0xfeedbeef);
    CU_ASSERT_EQUAL(memcmp(b->memory + 16, a->memory, 24), 0);
    char untouched[64];
    fill(untouched, 64);
    CU_ASSERT_EQUAL(memcmp(b->memory + 256, untouched, 64), 0);
}

/* ---- atomics ----------------------------------------------------------------------------- */

static uint64_t word(const char *at)
{
    uint64_t value;
    memcpy(&value, at, sizeof value);
    return value;
}

static void put_word(char *at, uint64_t value)
{
    memcpy(at, &value, sizeof value);
}

static void atomics(void)
{
    struct rdma_wr add = remote(RDMA_FETCH_ADD, 8), cas = remote(RDMA_CAS, 8);
    put_word(b->memory + 8, 40);
    add.fetch_add.add = 2;
    CU_ASSERT_EQUAL(pair_post(a, &add, 0, 8), 0);
    expect_done(RDMA_FETCH_ADD);
    CU_ASSERT(word(a->memory) == 40 && word(b->memory + 8) == 42);
    cas.cas.compare = 42;
    cas.cas.swap = 7;
    cas.cas.compare_mask = cas.cas.swap_mask = UINT64_MAX;
    CU_ASSERT_EQUAL(pair_post(a, &cas, 0, 8), 0);
    expect_done(RDMA_CAS);
    CU_ASSERT(word(a->memory) == 42 && word(b->memory + 8) == 7);
    CU_ASSERT_EQUAL(pair_post(a, &cas, 0, 8), 0); /* no longer equal */
    expect_done(RDMA_CAS);
    CU_ASSERT(word(a->memory) == 7 && word(b->memory + 8) == 7);
}

/* The draft's example of Head with N = 4: ticket and slot offset advance on their own. */
static void masked_atomics(void)
{
    struct rdma_wr add = remote(RDMA_FETCH_ADD, 0), cas = remote(RDMA_CAS, 0);
    const uint64_t expected[] = {0x0000000100000010, 0x0000000200000020, 0x0000000300000030,
                                 0x0000000400000000};
    add.fetch_add.add = 0x0000000100000010;
    add.fetch_add.mask = 0x8000000080000020;
    for (int i = 0; i < 4; i++) {
        uint64_t before = word(b->memory);
        CU_ASSERT_EQUAL(pair_post(a, &add, 0, 8), 0);
        expect_done(RDMA_FETCH_ADD);
        CU_ASSERT_EQUAL(word(a->memory), before);
        CU_ASSERT_EQUAL(word(b->memory), expected[i]);
    }
    cas.cas.compare = 0x00000004ffffffff;
    cas.cas.compare_mask = 0xffffffff00000000;
    cas.cas.swap = 0xabababababababab;
    cas.cas.swap_mask = 0xffff;
    CU_ASSERT_EQUAL(pair_post(a, &cas, 0, 8), 0);
    expect_done(RDMA_CAS);
    CU_ASSERT_EQUAL(word(b->memory), 0x000000040000abab);
}

static void byte_orders_of_atomics(void)
{
    for (int mode = 0; mode < PAIR_MODES; mode++)
        for (int orders = 0; orders < 4; orders++) {
            bool memory_be = orders & 1, reply_be = orders & 2;
            pair_open_connected(&pair, (enum pair_mode)mode,
                                (struct sim_rnic_config){.atomic_memory_big_endian = memory_be,
                                                         .atomic_reply_big_endian = reply_be});
            struct rdma_wr add = remote(RDMA_FETCH_ADD, 0);
            const char little[] = {1, 2, 0, 0, 0, 0, 0, 0}, big[] = {0, 0, 0, 0, 0, 0, 2, 1};
            const char after_little[] = {2, 4, 0, 0, 0, 0, 0, 0};
            const char after_big[] = {0, 0, 0, 0, 0, 0, 4, 2};
            add.fetch_add.add = 0x0201;
            memcpy(b->memory, memory_be ? big : little, 8);
            CU_ASSERT_EQUAL(pair_post(a, &add, 0, 8), 0);
            expect_done(RDMA_FETCH_ADD);
            CU_ASSERT_EQUAL(memcmp(b->memory, memory_be ? after_big : after_little, 8), 0);
            CU_ASSERT_EQUAL(memcmp(a->memory, reply_be ? big : little, 8), 0);
            pair_close(&pair);
        }
}

/* ---- invalidation, NOOP ------------------------------------------------------------------ */

/*
 * How a request fails that the peer refuses: on a stream, one that needs no answer may have been
 * completed before (RFC 5040 5.5 rule 9).
 */
static void expect_refused(uint32_t status, bool answered)
{
    struct rdma_wc wc = pair_wc(a);
    if (pair.mode == PAIR_RDMAP && !answered)
        CU_ASSERT(wc.status == RDMA_OK || wc.status == RDMA_FLUSHED)
    else
        CU_ASSERT_EQUAL(wc.status, status)
    CU_ASSERT_EQUAL(wc.wr_id, 9);
}

static void send_invalidates(void)
{
    struct rdma_region more;
    struct rdma_wr send = {.wr_id = 9, .op = RDMA_SEND_INV, .flags = RDMA_SIGNALED};
    struct rdma_wr write = remote(RDMA_WRITE, 0);
    CU_ASSERT_EQUAL(
        rdma_reg(b->rdma, b->memory, 64, RDMA_LOCAL_WRITE | RDMA_REMOTE_WRITE, 0, &more), 0);
    CU_ASSERT_NOT_EQUAL(more.stag, b->region.stag);
    CU_ASSERT_NOT_EQUAL(more.stag, a->region.stag);
    send.imm_stag = more.stag;
    CU_ASSERT_EQUAL(pair_post(a, &send, 0, 8), 0);
    expect_done(RDMA_SEND_INV);
    struct rdma_wc wc = pair_wc(b);
    CU_ASSERT_EQUAL(wc.flags, RDMA_WC_INVALIDATED);
    CU_ASSERT_EQUAL(wc.imm, more.stag);
    write.remote_stag = more.stag;
    write.remote_to = 0;
    CU_ASSERT_EQUAL(pair_post(a, &write, 0, 8), 0);
    expect_refused(RDMA_REMOTE_ACCESS, false);
    pair_ends(b, -ECONNABORTED, 1);
    pair_ends(a, -ECONNABORTED, 2);
}

static void send_cannot_invalidate(void)
{
    struct rdma_wr send = {.wr_id = 9, .op = RDMA_SEND_INV, .flags = RDMA_SIGNALED};
    send.imm_stag = 0x00300100;
    CU_ASSERT_EQUAL(pair_post(a, &send, 0, 8), 0);
    expect_refused(RDMA_REMOTE_ACCESS, false);
    pair_ends(b, -ECONNABORTED, 2);
    pair_ends(a, -ECONNABORTED, 2);
}

static void local_invalidation(void)
{
    struct rdma_region more;
    CU_ASSERT_EQUAL(rdma_reg(a->rdma, a->memory, 64, 0, 0, &more), 0);
    struct rdma_wr wrs[2] = {
        {.wr_id = 9, .op = RDMA_NOOP, .flags = RDMA_SIGNALED},
        {.wr_id = 9, .op = RDMA_LOCAL_INV, .flags = RDMA_SIGNALED, .imm_stag = more.stag}};
    CU_ASSERT_EQUAL(rdma_post_send(a->rdma, a->conn, wrs, 2), 0);
    CU_ASSERT_EQUAL(pair_wc(a).op, RDMA_NOOP);
    expect_done(RDMA_LOCAL_INV);
    CU_ASSERT_EQUAL(rdma_post_send(a->rdma, a->conn, &wrs[1], 1), 0); /* not valid any more */
    CU_ASSERT_EQUAL(pair_wc(a).status, RDMA_LOCAL_ERROR);
    pair_ends(a, -ECONNABORTED, 2);
    pair_ends(b, -ECONNABORTED, 2);
}

/* ---- errors ------------------------------------------------------------------------------ */

static void expect_local_error(struct rdma_wr wr, const struct rdma_sge *sge)
{
    wr.sges = sge;
    wr.sge_count = 1;
    CU_ASSERT_EQUAL(rdma_post_send(a->rdma, a->conn, &wr, 1), 0);
    struct rdma_wc wc = pair_wc(a);
    CU_ASSERT_EQUAL(wc.status, RDMA_LOCAL_ERROR);
    CU_ASSERT_EQUAL(wc.wr_id, 9);
    pair_ends(a, -ECONNABORTED, 2);
    pair_ends(b, -ECONNABORTED, 2);
}

static void local_error_key(void)
{
    expect_local_error(remote(RDMA_WRITE, 0), &(struct rdma_sge){a->memory, 8, b->region.lkey});
}

static void local_error_bounds(void)
{
    expect_local_error((struct rdma_wr){.wr_id = 9, .op = RDMA_SEND}, /* not signaled, but told */
                       &(struct rdma_sge){a->memory + PAIR_OCTETS - 7, 8, a->region.lkey});
}

static void local_error_rights(void)
{
    struct rdma_region constant;
    CU_ASSERT_EQUAL(rdma_reg(a->rdma, a->memory, 64, 0, 0, &constant), 0);
    expect_local_error(remote(RDMA_READ, 0), &(struct rdma_sge){a->memory, 8, constant.lkey});
}

static void local_error_of_receive(void)
{
    struct rdma_wr send = {.wr_id = 9, .op = RDMA_SEND, .flags = RDMA_SIGNALED};
    struct rdma_sge sge = {b->memory, 64, a->region.lkey};
    struct rdma_wr receive = {.wr_id = 3, .sges = &sge, .sge_count = 1};
    CU_ASSERT_EQUAL(rdma_post_recv(b->rdma, b->conn, &receive, 1), 0);
    for (int i = 0; i < 2; i++) {
        CU_ASSERT_EQUAL(pair_post(a, &send, 0, 8), 0);
        expect_done(RDMA_SEND);
        pair_wc(b);
    }
    CU_ASSERT_EQUAL(pair_post(a, &send, 0, 8), 0);
    expect_refused(RDMA_REMOTE_ERROR, false);
    struct rdma_wc wc = pair_wc(b);
    CU_ASSERT(wc.status == RDMA_LOCAL_ERROR && wc.wr_id == 3);
    pair_ends(b, -ECONNABORTED, 0);
    pair_ends(a, -ECONNABORTED, 2);
}

static void length_error(void)
{
    struct rdma_wr send = {.wr_id = 9, .op = RDMA_SEND, .flags = RDMA_SIGNALED};
    CU_ASSERT_EQUAL(pair_post(a, &send, 0, 65), 0);
    expect_refused(RDMA_LENGTH_ERROR, false);
    struct rdma_wc wc = pair_wc(b);
    CU_ASSERT(wc.status == RDMA_LENGTH_ERROR && wc.wr_id == 1);
    pair_ends(b, -ECONNABORTED, 1);
    pair_ends(a, -ECONNABORTED, 2);
}

static void no_receive(void)
{
    struct rdma_wr send = {.wr_id = 9, .op = RDMA_SEND, .flags = RDMA_SIGNALED};
    for (int i = 0; i < 2; i++) {
        CU_ASSERT_EQUAL(pair_post(a, &send, 0, 8), 0);
        expect_done(RDMA_SEND);
    }
    CU_ASSERT_EQUAL(pair_post(a, &send, 0, 8), 0);
    expect_refused(RDMA_RNR, false);
    pair_wc(b);
    pair_wc(b);
    pair_ends(b, -ECONNABORTED, 0);
    pair_ends(a, -ECONNABORTED, 2);
}

/* A request that the peer must refuse. */
static void expect_remote_error(struct rdma_wr wr, uint32_t status)
{
    bool answered = wr.op == RDMA_READ || wr.op == RDMA_FETCH_ADD || wr.op == RDMA_CAS;
    CU_ASSERT_EQUAL(pair_post(a, &wr, 0, 8), 0);
    expect_refused(status, answered);
    pair_ends(a, -ECONNABORTED, 2);
    pair_ends(b, -ECONNABORTED, 2);
}

static struct rdma_wr bad_stag(uint16_t op)
{
    struct rdma_wr wr = remote(op, 0);
    wr.remote_stag++;
    return wr;
}

static void remote_access(void)
{
    static const uint16_t ops[] = {RDMA_WRITE, RDMA_READ, RDMA_FETCH_ADD, RDMA_CAS};
    static const uint32_t rights[] = {RDMA_REMOTE_WRITE, RDMA_REMOTE_READ, RDMA_REMOTE_ATOMIC,
                                      RDMA_REMOTE_ATOMIC};
    const uint32_t all = RDMA_REMOTE_READ | RDMA_REMOTE_WRITE | RDMA_REMOTE_ATOMIC;
    for (int mode = 0; mode < PAIR_MODES; mode++)
        for (int i = 0; i < 4; i++)
            for (int why = 0; why < 5; why++) {
                pair_open_connected(&pair, (enum pair_mode)mode, (struct sim_rnic_config){0});
                struct rdma_wr wr = why == 0   ? bad_stag(ops[i])
                                    : why == 1 ? remote(ops[i], PAIR_OCTETS - 4)
                                    : why == 2 ? remote(ops[i], UINT64_MAX - 2)
                                               : remote(ops[i], 0);
                struct rdma_region less;
                if (why == 3) { /* just that right is missing */
                    CU_ASSERT_EQUAL(rdma_reg(b->rdma, b->memory, 64,
                                             RDMA_LOCAL_WRITE | (all & ~rights[i]), 0, &less),
                                    0);
                    wr.remote_stag = less.stag;
                    wr.remote_to = 0;
                } else if (why ==
                           4) { /* deregistered; in its place is another, with another STag */
                    CU_ASSERT_EQUAL(rdma_dereg(b->rdma, &b->region), 0);
                    CU_ASSERT_EQUAL(rdma_reg(b->rdma, b->memory, PAIR_OCTETS,
                                             RDMA_LOCAL_WRITE | all, 4096, &b->region),
                                    0);
                }
                expect_remote_error(wr, RDMA_REMOTE_ACCESS);
                pair_close(&pair);
            }
}

static void misaligned_atomic(void)
{
    expect_remote_error(remote(RDMA_FETCH_ADD, 4), RDMA_REMOTE_ERROR);
}

static void nothing_is_checked_of_no_octets(void)
{
    struct rdma_wr write = bad_stag(RDMA_WRITE), read = bad_stag(RDMA_READ);
    write.remote_to = read.remote_to = UINT64_MAX;
    CU_ASSERT_EQUAL(pair_post(a, &write, 0, 0), 0);
    expect_done(RDMA_WRITE);
    CU_ASSERT_EQUAL(pair_post(a, &read, 0, 0), 0);
    expect_done(RDMA_READ);
}

/* ---- what is not taken ------------------------------------------------------------------- */

static int post(struct rdma_wr wr)
{
    struct rdma_sge sges[4];
    for (int i = 0; i < 4; i++)
        sges[i] = (struct rdma_sge){a->memory, 8, a->region.lkey};
    if (!wr.sges)
        wr.sges = sges;
    return rdma_post_send(a->rdma, a->conn, &wr, 1);
}

static void bad_posts(void)
{
    struct rdma_sge much = {a->memory, 257, a->region.lkey};
    struct rdma_sge nine = {a->memory, 9, a->region.lkey};
    struct rdma_wr noop = {.op = RDMA_NOOP};
    CU_ASSERT_EQUAL(post((struct rdma_wr){.op = RDMA_SEND, .sge_count = 4}), -EINVAL);
    CU_ASSERT_EQUAL(post((struct rdma_wr){.op = RDMA_SEND, .sge_count = 1, .sges = &much}),
                    -EINVAL);
    CU_ASSERT_EQUAL(post((struct rdma_wr){.op = RDMA_SEND, .sge_count = 1, .flags = 0x80}),
                    -EINVAL);
    CU_ASSERT_EQUAL(post((struct rdma_wr){.op = RDMA_RECV, .sge_count = 1}), -EINVAL);
    CU_ASSERT_EQUAL(post((struct rdma_wr){.op = 99, .sge_count = 1}), -EINVAL);
    CU_ASSERT_EQUAL(post((struct rdma_wr){.op = RDMA_FETCH_ADD, .sge_count = 2}), -EINVAL);
    CU_ASSERT_EQUAL(post((struct rdma_wr){.op = RDMA_FETCH_ADD, .sge_count = 1, .sges = &nine}),
                    -EINVAL);
    CU_ASSERT_EQUAL(post((struct rdma_wr){.op = RDMA_READ, .sge_count = 1, .flags = RDMA_INLINE}),
                    -EINVAL);
    CU_ASSERT_EQUAL(post((struct rdma_wr){.op = RDMA_BIND, .sge_count = 0}), -EINVAL);
    CU_ASSERT_EQUAL(post((struct rdma_wr){.op = RDMA_WAIT, .sge_count = 0}), -ENOTSUP);
    CU_ASSERT_EQUAL(post((struct rdma_wr){.op = RDMA_WAITD, .sge_count = 1}), -ENOTSUP);
    CU_ASSERT_EQUAL(post((struct rdma_wr){.op = RDMA_CENABLE, .sge_count = 1}), -ENOTSUP);
    CU_ASSERT_EQUAL(rdma_post_send(a->rdma, 1, &noop, 1), -ENOTCONN);
    CU_ASSERT_EQUAL(rdma_post_send(a->rdma, 2, &noop, 1), -EINVAL);
    CU_ASSERT_EQUAL(rdma_post_recv(a->rdma, 1, &noop, 1), -ENOTCONN);
    struct rdma_wr five[5] = {noop, noop, noop, noop, noop};
    CU_ASSERT_EQUAL(rdma_post_send(a->rdma, a->conn, five, 5), -ENOMEM);
    CU_ASSERT_EQUAL(rdma_post_recv(a->rdma, a->conn, five, 3), -ENOMEM);
    CU_ASSERT(pair_no_wc(a));
}

/* What is not signaled leaves the queue when a later one completes. */
static void unsignaled(void)
{
    struct rdma_wr quiet = {.op = RDMA_SEND}, loud = {.op = RDMA_NOOP, .flags = RDMA_SIGNALED};
    for (uint32_t round = 0; round < 5; round++) {
        for (int i = 0; i < 2; i++)
            CU_ASSERT_EQUAL(pair_post(a, &quiet, 0, 8), 0);
        CU_ASSERT(pair_no_wc(a));
        CU_ASSERT_EQUAL(rdma_post_send(a->rdma, a->conn, &loud, 1), 0);
        CU_ASSERT_EQUAL(rdma_post_send(a->rdma, a->conn, &loud, 1), 0);
        CU_ASSERT_EQUAL(rdma_post_send(a->rdma, a->conn, &loud, 1), -ENOMEM);
        CU_ASSERT_EQUAL(pair_wc(a).op, RDMA_NOOP); /* three places are free again */
        struct rdma_wr three[3] = {loud, loud, loud}, four[4] = {loud, loud, loud, loud};
        CU_ASSERT_EQUAL(rdma_post_send(a->rdma, a->conn, four, 4), -ENOMEM);
        CU_ASSERT_EQUAL(rdma_post_send(a->rdma, a->conn, three, 3), 0);
        for (int i = 0; i < 4; i++)
            CU_ASSERT_EQUAL(pair_wc(a).op, RDMA_NOOP);
        for (int i = 0; i < 2; i++) {
            struct rdma_wc wc = pair_wc(b);
            CU_ASSERT_EQUAL(pair_receive(b, wc.wr_id, wc.wr_id == 1 ? 256 : 320, 64), 0);
        }
    }
}

/* Without the bit, the operation is not there. */
static void missing_capabilities(void)
{
    static const struct {
        uint32_t bit;
        uint16_t op;
        bool masked;
    } needs[] = {{RDMA_CAP_SEND_INV, RDMA_SEND_INV, false},
                 {RDMA_CAP_IMM, RDMA_WRITE_IMM, false},
                 {RDMA_CAP_FETCH_ADD, RDMA_FETCH_ADD, false},
                 {RDMA_CAP_MASKED, RDMA_FETCH_ADD, true},
                 {RDMA_CAP_CAS, RDMA_CAS, false},
                 {RDMA_CAP_WINDOW, RDMA_BIND, false},
                 {RDMA_CAP_MASKED, RDMA_CAS, true}};
    for (int mode = 0; mode < PAIR_MODES; mode++)
        for (size_t i = 0; i < sizeof needs / sizeof *needs; i++) {
            pair_open_connected(&pair, (enum pair_mode)mode,
                                (struct sim_rnic_config){.bits = SIM_RNIC_BITS & ~needs[i].bit});
            struct rdma_wr wr = remote(needs[i].op, 0);
            struct rdma_caps caps;
            struct rdma_window window;
            if (wr.op == RDMA_BIND)
                CU_ASSERT_EQUAL(rdma_window_alloc(a->rdma, &window), -ENOTSUP)
            else if (wr.op == RDMA_FETCH_ADD)
                wr.fetch_add.mask = needs[i].masked;
            else
                wr.cas.compare_mask = wr.cas.swap_mask = needs[i].masked ? 1 : UINT64_MAX;
            CU_ASSERT_EQUAL(pair_post(a, &wr, 0, 8), -ENOTSUP);
            rdma_caps(a->rdma, &caps);
            CU_ASSERT_EQUAL(caps.bits & needs[i].bit, 0);
            pair_close(&pair);
        }
}

/* ---- all of them do the same ------------------------------------------------------------- */

#define SEQUENCES 200
#define OPERATIONS 25

/* What one sequence led to. */
struct trail {
    char memory[2][PAIR_OCTETS];
    struct rdma_wc wcs[2][4 * OPERATIONS];
    uint32_t counts[2];
};

static void random_operation(uint64_t *chance)
{
    static const uint16_t ops[] = {RDMA_SEND, RDMA_WRITE,     RDMA_WRITE_IMM, RDMA_READ,
                                   RDMA_NOOP, RDMA_FETCH_ADD, RDMA_CAS};
    struct pair_side *from = sim_random_below(chance, 2) ? a : b, *to = from == a ? b : a;
    uint32_t octets = sim_random_below(chance, 65), offset = sim_random_below(chance, 128);
    uint32_t at = sim_random_below(chance, 128);
    struct rdma_wr wr = {.wr_id = sim_random_below(chance, 1000),
                         .op = ops[sim_random_below(chance, 7)],
                         .remote_stag = to->region.stag,
                         .imm_stag = sim_random_below(chance, 100)};
    wr.flags = (uint16_t)(sim_random_below(chance, 3) ? RDMA_SIGNALED : 0);
    if (sim_random_below(chance, 2))
        wr.flags |= RDMA_FENCE;
    if (octets <= 48 && wr.op < RDMA_READ && wr.op != RDMA_NOOP && sim_random_below(chance, 2))
        wr.flags |= RDMA_INLINE;
    if (wr.op == RDMA_FETCH_ADD || wr.op == RDMA_CAS) {
        octets = 8;
        at &= ~7u;
        wr.cas.compare = sim_random64(chance); /* also what is added, and its mask */
        wr.cas.compare_mask = UINT64_C(1) << sim_random_below(chance, 64);
        wr.cas.swap = sim_random64(chance);
        wr.cas.swap_mask = sim_random64(chance);
    }
    wr.remote_to = to->region.base_to + at;
    if (wr.op == RDMA_NOOP) {
        wr.flags |= RDMA_SIGNALED; /* so that the queue is never full for long */
        octets = 0;
    }
    CU_ASSERT_EQUAL(pair_post(from, &wr, offset, octets), 0);
}

/* Takes all completions, and posts used receives again. */
static void take_completions(struct trail *trail)
{
    struct pair_side *const sides[] = {a, b};
    for (int i = 0; i < 2; i++) {
        struct rdma_wc wc;
        while (rdma_cq_poll(sides[i]->rdma, sides[i]->cq, &wc, 1) == 1) {
            trail->wcs[i][trail->counts[i]++] = wc;
            if (wc.op == RDMA_RECV)
                CU_ASSERT_EQUAL(pair_receive(sides[i], wc.wr_id, wc.wr_id == 1 ? 256 : 320, 64), 0);
        }
        /* What is not signaled leaves the queue with this. */
        struct rdma_wr noop = {.wr_id = 7, .op = RDMA_NOOP, .flags = RDMA_SIGNALED};
        CU_ASSERT_EQUAL(rdma_post_send(sides[i]->rdma, sides[i]->conn, &noop, 1), 0);
        wc = pair_wc(sides[i]);
        CU_ASSERT(wc.wr_id == 7 && wc.status == RDMA_OK);
    }
}

static void run_sequence(enum pair_mode mode, uint64_t seed, struct trail *trail)
{
    uint64_t chance = seed;
    memset(trail, 0, sizeof *trail);
    pair_open_connected(&pair, mode, (struct sim_rnic_config){0});
    fill(a->memory, PAIR_OCTETS);
    for (int i = 0; i < OPERATIONS; i++) {
        random_operation(&chance);
        take_completions(trail);
    }
    memcpy(trail->memory[0], a->memory, PAIR_OCTETS);
    memcpy(trail->memory[1], b->memory, PAIR_OCTETS);
    pair_close(&pair);
}

static void sequences_lead_to_the_same(void)
{
    static struct trail first, other;
    for (uint64_t seed = 1; seed <= SEQUENCES; seed++) {
        run_sequence(PAIR_DEVICE, seed, &first);
        for (int mode = PAIR_RDMAP; mode < PAIR_MODES; mode++) {
            run_sequence((enum pair_mode)mode, seed, &other);
            CU_ASSERT_EQUAL(memcmp(&first, &other, sizeof first), 0);
        }
    }
}

/* ---- tests ------------------------------------------------------------------------------- */

#define ON_ALL(name) \
    static void all_##name(void) \
    { \
        on_all(name); \
    }
ON_ALL(sends)
ON_ALL(sends_from_and_to_many_places)
ON_ALL(inline_data_is_taken_when_posted)
ON_ALL(writes_and_reads)
ON_ALL(writes_with_immediate)
ON_ALL(atomics)
ON_ALL(masked_atomics)
ON_ALL(send_invalidates)
ON_ALL(send_cannot_invalidate)
ON_ALL(local_invalidation)
ON_ALL(local_error_key)
ON_ALL(local_error_bounds)
ON_ALL(local_error_rights)
ON_ALL(local_error_of_receive)
ON_ALL(length_error)
ON_ALL(no_receive)
ON_ALL(misaligned_atomic)
ON_ALL(nothing_is_checked_of_no_octets)
ON_ALL(bad_posts)
ON_ALL(unsignaled)

int main(void)
{
    static const struct test tests[] = {
        {"SEND", all_sends},
        {"gather and scatter", all_sends_from_and_to_many_places},
        {"inline data", all_inline_data_is_taken_when_posted},
        {"WRITE and READ", all_writes_and_reads},
        {"WRITE_IMM", all_writes_with_immediate},
        {"FETCH_ADD and CAS", all_atomics},
        {"masks", all_masked_atomics},
        {"byte orders of atomics", byte_orders_of_atomics},
        {"SEND_INV", all_send_invalidates},
        {"SEND_INV of what is not there", all_send_cannot_invalidate},
        {"LOCAL_INV and NOOP", all_local_invalidation},
        {"LOCAL_ERROR: key", all_local_error_key},
        {"LOCAL_ERROR: bounds", all_local_error_bounds},
        {"LOCAL_ERROR: rights", all_local_error_rights},
        {"LOCAL_ERROR: receive", all_local_error_of_receive},
        {"LENGTH_ERROR", all_length_error},
        {"RNR", all_no_receive},
        {"REMOTE_ACCESS", remote_access},
        {"REMOTE_ERROR: misaligned atomic", all_misaligned_atomic},
        {"zero length", all_nothing_is_checked_of_no_octets},
        {"refused posts", all_bad_posts},
        {"unsignaled work requests", all_unsignaled},
        {"missing capabilities", missing_capabilities},
        {"random sequences", sequences_lead_to_the_same},
    };
    return run_tests("rnic_operations", tests, sizeof tests / sizeof *tests);
}
