/* SPDX-License-Identifier: BSD-3-Clause */
/* The rules of windows and of invalidation, on devices and on worlds of all orderings. */
#include <errno.h>
#include <string.h>

#include "rnic_pair.h"
#include "tests/run.h"

#define OFFSET 64u /* of the window in b's region */
#define LENGTH 32u
#define WRITABLE (RDMA_REMOTE_READ | RDMA_REMOTE_WRITE | RDMA_REMOTE_ATOMIC)

static struct pair pair;
static struct pair_side *const a = &pair.a, *const b = &pair.b;
static struct pair_side a2, b2; /* another connection between them */
static struct rdma_window window;

/* Runs a test on each of them, connected, with a window of b that is not bound. */
static void on_all_with(struct sim_rnic_config config, void (*test)(void))
{
    for (int mode = 0; mode < PAIR_MODES; mode++) {
        pair_open_connected(&pair, (enum pair_mode)mode, config);
        CU_ASSERT_EQUAL_FATAL(rdma_window_alloc(b->rdma, &window), 0);
        test();
        pair_close(&pair);
    }
}

static void on_all(void (*test)(void))
{
    on_all_with((struct sim_rnic_config){0}, test);
}

static struct rdma_wr bind_wr(const struct rdma_region *region, uint64_t offset, uint64_t length,
                              uint32_t access)
{
    return (struct rdma_wr){.wr_id = 5,
                            .op = RDMA_BIND,
                            .flags = RDMA_SIGNALED,
                            .bind = {.window = &window,
                                     .region = region,
                                     .offset = offset,
                                     .length = length,
                                     .access = access}};
}

/* Posts what has no SGEs; its status. */
static uint32_t local(struct pair_side *side, struct rdma_wr wr)
{
    CU_ASSERT_EQUAL_FATAL(rdma_post_send(side->rdma, side->conn, &wr, 1), 0);
    struct rdma_wc wc = pair_wc(side);
    CU_ASSERT_EQUAL(wc.wr_id, 5);
    if (wc.status == RDMA_OK)
        CU_ASSERT_EQUAL(wc.op, wr.op);
    return wc.status;
}

static void bind(struct pair_side *side)
{
    CU_ASSERT_EQUAL(local(side, bind_wr(&b->region, OFFSET, LENGTH, WRITABLE)), RDMA_OK);
}

static uint32_t invalidate(struct pair_side *side, uint32_t stag)
{
    return local(side,
                 (struct rdma_wr){
                     .wr_id = 5, .op = RDMA_LOCAL_INV, .flags = RDMA_SIGNALED, .imm_stag = stag});
}

/* Eight octets through an STag, `at` octets into the window: are they in memory? If not, nothing
 * there has changed. */
static bool writes(struct pair_side *side, uint32_t stag, uint64_t at)
{
    struct rdma_wr wr = {.op = RDMA_WRITE,
                         .flags = RDMA_SIGNALED,
                         .remote_to = b->region.base_to + OFFSET + at,
                         .remote_stag = stag};
    char before[PAIR_OCTETS];
    memset(side->memory, 0x77, 8);
    memset(b->memory + OFFSET, 0, 128);
    memcpy(before, b->memory, sizeof before);
    CU_ASSERT_EQUAL(pair_post(side, &wr, 0, 8), 0);
    bool written = memcmp(b->memory + OFFSET + at, side->memory, 8) == 0;
    if (!written)
        CU_ASSERT_EQUAL(memcmp(b->memory, before, sizeof before), 0);
    struct rdma_wc wc = pair_wc(side);
    if (written)
        CU_ASSERT_EQUAL(wc.status, RDMA_OK)
    else if (pair.mode == PAIR_RDMAP)
        CU_ASSERT(wc.status == RDMA_OK || wc.status == RDMA_FLUSHED)
    else
        CU_ASSERT_EQUAL(wc.status, RDMA_REMOTE_ACCESS)
    return written;
}

/* What is refused ends the connection: both ends, with all that is posted. */
static void ended(struct pair_side *one, struct pair_side *other)
{
    pair_ends(one, -ECONNABORTED, 2);
    pair_ends(other, -ECONNABORTED, 2);
}

static void connect_again(void)
{
    struct rdma_conn_config ca = pair_config(a), cb = pair_config(b);
    struct rdma_sge sges[2] = {{a->memory + 384, 64, a->region.lkey},
                               {b->memory + 384, 64, b->region.lkey}};
    struct rdma_wr receives[2][2];
    for (int i = 0; i < 2; i++)
        for (uint32_t j = 0; j < 2; j++)
            receives[i][j] = (struct rdma_wr){.wr_id = 1 + j, .sges = &sges[i], .sge_count = 1};
    a2 = *a;
    b2 = *b;
    CU_ASSERT_EQUAL_FATAL(rdma_connect(a->rdma, "b", &ca, receives[0], 2, NULL, 0, &a2.conn), 0);
    b2.conn = pair_event(b, RDMA_EVENT_REQUEST).conn;
    CU_ASSERT_EQUAL_FATAL(rdma_accept(b->rdma, b2.conn, &cb, receives[1], 2, NULL, 0), 0);
    pair_event(a, RDMA_EVENT_CONNECTED);
    pair_event(b, RDMA_EVENT_CONNECTED);
}

/* ---- what a window shows ----------------------------------------------------------------- */

static void shows_a_part(void)
{
    uint32_t stag = window.stag;
    bind(b);
    CU_ASSERT(window.stag != stag && window.length == LENGTH &&
              window.base_to == b->region.base_to + OFFSET);
    CU_ASSERT_NOT_EQUAL(window.stag, b->region.stag);
    CU_ASSERT(writes(a, window.stag, 0));
    CU_ASSERT(writes(a, window.stag, LENGTH - 8));
    struct rdma_wr add = {.wr_id = 5,
                          .op = RDMA_FETCH_ADD,
                          .flags = RDMA_SIGNALED,
                          .remote_to = window.base_to + 8,
                          .remote_stag = window.stag,
                          .fetch_add = {.add = 3}};
    struct rdma_wr read = add;
    read.op = RDMA_READ;
    CU_ASSERT_EQUAL(pair_post(a, &add, 0, 8), 0);
    CU_ASSERT_EQUAL(pair_wc(a).status, RDMA_OK);
    CU_ASSERT_EQUAL(pair_post(a, &read, 16, 8), 0);
    CU_ASSERT_EQUAL(pair_wc(a).status, RDMA_OK);
    CU_ASSERT_EQUAL(a->memory[16], 3);
}

static void not_behind_its_end(void)
{
    bind(b);
    CU_ASSERT_FALSE(writes(a, window.stag, LENGTH - 4));
    ended(a, b);
}

static void not_before_its_begin(void)
{
    bind(b);
    CU_ASSERT_FALSE(writes(a, window.stag, (uint64_t)-4));
    ended(a, b);
}

/* Through a window with some rights: an operation that needs one of them, or another. */
static void with_rights(uint32_t access, uint16_t op, bool allowed)
{
    char before[PAIR_OCTETS];
    CU_ASSERT_EQUAL(local(b, bind_wr(&b->region, OFFSET, LENGTH, access)), RDMA_OK);
    memset(a->memory, 0x77, 8);
    memcpy(before, b->memory, sizeof before);
    struct rdma_wr wr = {.op = op,
                         .flags = RDMA_SIGNALED,
                         .remote_to = window.base_to,
                         .remote_stag = window.stag,
                         .fetch_add = {.add = 1}};
    CU_ASSERT_EQUAL(pair_post(a, &wr, 0, 8), 0);
    struct rdma_wc wc = pair_wc(a);
    if (allowed) {
        CU_ASSERT_EQUAL(wc.status, RDMA_OK);
        return;
    }
    if (pair.mode != PAIR_RDMAP || op != RDMA_WRITE)
        CU_ASSERT_EQUAL(wc.status, RDMA_REMOTE_ACCESS);
    CU_ASSERT_EQUAL(memcmp(b->memory, before, sizeof before), 0);
    ended(a, b);
}

/* Each operation needs its right, and no other; with every set of rights. */
static void rights(void)
{
    static const struct {
        uint32_t right;
        uint16_t op;
    } needs[] = {{RDMA_REMOTE_WRITE, RDMA_WRITE},
                 {RDMA_REMOTE_READ, RDMA_READ},
                 {RDMA_REMOTE_ATOMIC, RDMA_FETCH_ADD}};
    for (int mode = 0; mode < PAIR_MODES; mode++)
        for (uint32_t set = 0; set < 1u << 3; set++)
            for (size_t i = 0; i < sizeof needs / sizeof *needs; i++) {
                uint32_t access = 0;
                for (uint32_t j = 0; j < sizeof needs / sizeof *needs; j++)
                    access |= set >> j & 1 ? needs[j].right : 0;
                pair_open_connected(&pair, (enum pair_mode)mode, (struct sim_rnic_config){0});
                CU_ASSERT_EQUAL_FATAL(rdma_window_alloc(b->rdma, &window), 0);
                with_rights(access, needs[i].op, access & needs[i].right);
                pair_close(&pair);
            }
}

/* It is for the peer: no STag of a window is an lkey. */
static void is_no_local_memory(void)
{
    bind(b);
    struct rdma_sge sge = {b->memory + OFFSET, 8, window.stag};
    struct rdma_wr wr = {
        .wr_id = 5, .op = RDMA_SEND, .flags = RDMA_SIGNALED, .sges = &sge, .sge_count = 1};
    CU_ASSERT_EQUAL(local(b, wr), RDMA_LOCAL_ERROR);
    ended(b, a);
}

/* ---- binds that fail --------------------------------------------------------------------- */

static void bind_fails(const struct rdma_region *region, uint64_t offset, uint64_t length,
                       uint32_t access)
{
    CU_ASSERT_EQUAL(local(b, bind_wr(region, offset, length, access)), RDMA_LOCAL_ERROR);
    ended(b, a);
    CU_ASSERT_EQUAL(rdma_window_free(b->rdma, &window), 0);
}

static void no_octets(void)
{
    bind_fails(&b->region, OFFSET, 0, RDMA_REMOTE_READ);
}

static void too_long(void)
{
    bind_fails(&b->region, OFFSET, PAIR_OCTETS - OFFSET + 1, RDMA_REMOTE_READ);
}

static void behind_the_region(void)
{
    bind_fails(&b->region, UINT64_MAX, 2, RDMA_REMOTE_READ);
}

static void not_of_the_region(void)
{
    struct rdma_region less;
    CU_ASSERT_EQUAL(rdma_reg(b->rdma, b->memory, 64, RDMA_REMOTE_READ | RDMA_BIND_WINDOW, 0, &less),
                    0);
    bind_fails(&less, 0, 8, RDMA_REMOTE_WRITE);
}

static void of_a_region_without_windows(void)
{
    struct rdma_region less;
    CU_ASSERT_EQUAL(rdma_reg(b->rdma, b->memory, 64, RDMA_REMOTE_READ, 0, &less), 0);
    bind_fails(&less, 0, 8, RDMA_REMOTE_READ);
}

static void of_an_invalid_region(void)
{
    struct rdma_region more;
    CU_ASSERT_EQUAL(rdma_reg(b->rdma, b->memory, 64, RDMA_REMOTE_READ | RDMA_BIND_WINDOW, 0, &more),
                    0);
    CU_ASSERT_EQUAL(invalidate(b, more.stag), RDMA_OK);
    bind_fails(&more, 0, 8, RDMA_REMOTE_READ);
}

/* 2B: not until it was invalidated, and what was bound stays. */
static void bound_already(void)
{
    connect_again();
    bind(b);
    uint32_t stag = window.stag;
    CU_ASSERT_EQUAL(local(&b2, bind_wr(&b->region, 0, 8, WRITABLE)), RDMA_LOCAL_ERROR);
    ended(&b2, &a2);
    CU_ASSERT(writes(a, stag, 0));
}

static void refused_posts(void)
{
    const struct rdma_wr good = bind_wr(&b->region, 0, 8, RDMA_REMOTE_READ);
    struct rdma_wr bad[5] = {good, good, good, good, good};
    struct rdma_sge sge = {b->memory, 8, b->region.lkey};
    uint32_t stag = window.stag;
    bad[0].bind.window = NULL;
    bad[1].bind.region = NULL;
    bad[2].bind.access = RDMA_LOCAL_WRITE;
    bad[3].sges = &sge;
    bad[3].sge_count = 1;
    bad[4].flags = RDMA_INLINE;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        CU_ASSERT_EQUAL(rdma_post_send(b->rdma, b->conn, &bad[i], 1), -EINVAL);
    CU_ASSERT_EQUAL(window.stag, stag);
    CU_ASSERT(pair_no_wc(b));
}

/* ---- invalidation ------------------------------------------------------------------------ */

static void stale_after_rebind(void)
{
    bind(b);
    uint32_t first = window.stag;
    CU_ASSERT_EQUAL(invalidate(b, first), RDMA_OK);
    bind(b);
    CU_ASSERT_NOT_EQUAL(window.stag, first);
    CU_ASSERT(writes(a, window.stag, 0));
    CU_ASSERT_FALSE(writes(a, first, 0));
    ended(a, b);
}

static void not_twice(void)
{
    bind(b);
    CU_ASSERT_EQUAL(invalidate(b, window.stag), RDMA_OK);
    CU_ASSERT_EQUAL(invalidate(b, window.stag), RDMA_LOCAL_ERROR);
    ended(b, a);
}

/* a sends; how it fared, and whether b's receive says that `stag` was invalidated. */
static bool send_invalidates(struct pair_side *from, struct pair_side *to, uint32_t stag)
{
    struct rdma_wr send = {
        .wr_id = 9, .op = RDMA_SEND_INV, .flags = RDMA_SIGNALED, .imm_stag = stag};
    CU_ASSERT_EQUAL(pair_post(from, &send, 0, 8), 0);
    struct rdma_wc wc = pair_wc(from), received = {0};
    if (rdma_cq_poll(to->rdma, to->cq, &received, 1) != 1 || received.status != RDMA_OK) {
        CU_ASSERT(received.status == RDMA_OK || received.status == RDMA_FLUSHED);
        if (pair.mode != PAIR_RDMAP)
            CU_ASSERT_EQUAL(wc.status, RDMA_REMOTE_ACCESS);
        return false;
    }
    CU_ASSERT_EQUAL(wc.status, RDMA_OK);
    CU_ASSERT_EQUAL(received.flags, RDMA_WC_INVALIDATED);
    CU_ASSERT_EQUAL(received.imm, stag);
    CU_ASSERT_EQUAL(pair_receive(to, received.wr_id, 256, 64), 0);
    return true;
}

static void by_the_peer(void)
{
    bind(b);
    uint32_t stag = window.stag;
    CU_ASSERT(send_invalidates(a, b, stag));
    bind(b);
    CU_ASSERT(writes(a, window.stag, 0));
    CU_ASSERT_FALSE(writes(a, stag, 0));
    ended(a, b);
}

/* The last receive of b was taken from its queue here, flushed. */
static void ended_after_refusal(void)
{
    pair_ends(a, -ECONNABORTED, 2);
    pair_ends(b, -ECONNABORTED, 1);
}

static void by_the_peer_not_twice(void)
{
    bind(b);
    CU_ASSERT(send_invalidates(a, b, window.stag));
    CU_ASSERT_FALSE(send_invalidates(a, b, window.stag));
    ended_after_refusal();
}

static void not_by_the_peer(void)
{
    bind(b);
    CU_ASSERT_FALSE(send_invalidates(a, b, window.stag));
    ended_after_refusal();
}

static void capability_of_windows(void)
{
    const uint32_t all = SIM_RNIC_BITS;
    on_all_with((struct sim_rnic_config){.bits = all & ~(uint32_t)RDMA_CAP_INV_WINDOW},
                not_by_the_peer);
    on_all_with((struct sim_rnic_config){.bits = all & ~(uint32_t)RDMA_CAP_INV_REGION},
                by_the_peer);
}

static void region_not_by_the_peer(void)
{
    CU_ASSERT_FALSE(send_invalidates(a, b, b->region.stag));
    ended_after_refusal();
}

static void capability_of_regions(void)
{
    on_all_with((struct sim_rnic_config){.bits = SIM_RNIC_BITS & ~(uint32_t)RDMA_CAP_INV_REGION},
                region_not_by_the_peer);
}

/* ---- regions with windows ---------------------------------------------------------------- */

static void dereg_is_busy(void)
{
    struct rdma_region more;
    CU_ASSERT_EQUAL(rdma_reg(b->rdma, b->memory, 64, RDMA_REMOTE_READ | RDMA_BIND_WINDOW, 0, &more),
                    0);
    CU_ASSERT_EQUAL(local(b, bind_wr(&more, 0, 8, RDMA_REMOTE_READ)), RDMA_OK);
    CU_ASSERT_EQUAL(rdma_dereg(b->rdma, &more), -EBUSY);
    CU_ASSERT_EQUAL(invalidate(b, window.stag), RDMA_OK);
    CU_ASSERT_EQUAL(rdma_dereg(b->rdma, &more), 0);
}

static void region_is_not_invalidated(void)
{
    bind(b);
    CU_ASSERT_EQUAL(invalidate(b, b->region.stag), RDMA_LOCAL_ERROR);
    ended(b, a);
}

/* ---- one connection ---------------------------------------------------------------------- */

static void through_another_connection(void)
{
    connect_again();
    bind(b);
    CU_ASSERT_FALSE(writes(&a2, window.stag, 0));
    ended(&a2, &b2);
    CU_ASSERT(writes(a, window.stag, 0));
}

static void invalidated_through_another(void)
{
    connect_again();
    bind(b);
    CU_ASSERT_EQUAL(invalidate(&b2, window.stag), RDMA_LOCAL_ERROR);
    ended(&b2, &a2);
    CU_ASSERT(writes(a, window.stag, 0));
    connect_again();
    CU_ASSERT_FALSE(send_invalidates(&a2, &b2, window.stag));
    pair_ends(&a2, -ECONNABORTED, 2);
    pair_ends(&b2, -ECONNABORTED, 1);
    CU_ASSERT(writes(a, window.stag, 0));
}

static void ends_with_its_connection(void)
{
    struct rdma_region more;
    connect_again();
    CU_ASSERT_EQUAL(rdma_reg(b->rdma, b->memory, 64,
                             RDMA_LOCAL_WRITE | RDMA_REMOTE_WRITE | RDMA_BIND_WINDOW, 0, &more),
                    0);
    CU_ASSERT_EQUAL(local(b, bind_wr(&more, 0, 8, RDMA_REMOTE_WRITE)), RDMA_OK);
    CU_ASSERT_EQUAL(rdma_disconnect(a->rdma, a->conn), 0);
    CU_ASSERT_EQUAL(rdma_dereg(b->rdma, &more), -EBUSY);
    pair_ends(a, 0, 2);
    pair_ends(b, 0, 2);
    CU_ASSERT_EQUAL(rdma_dereg(b->rdma, &more), 0);
    uint32_t stag = window.stag;
    bind(&b2); /* again, elsewhere */
    CU_ASSERT(writes(&a2, window.stag, 0));
    CU_ASSERT_FALSE(writes(&a2, stag, 0));
    ended(&a2, &b2);
}

/* The place of the old connection is used again: the window does not come back with it. */
static void not_with_the_next_connection(void)
{
    bind(b);
    uint32_t conn = b->conn;
    CU_ASSERT_EQUAL(rdma_disconnect(b->rdma, b->conn), 0);
    pair_ends(b, 0, 2);
    pair_ends(a, 0, 2);
    connect_again();
    CU_ASSERT_EQUAL(b2.conn, conn);
    CU_ASSERT_FALSE(writes(&a2, window.stag, 0));
    ended(&a2, &b2);
}

/* ---- allocation -------------------------------------------------------------------------- */

static void freed(void)
{
    bind(b);
    struct rdma_window old = window;
    CU_ASSERT_EQUAL(rdma_window_free(b->rdma, &window), 0);
    CU_ASSERT_EQUAL(rdma_window_free(b->rdma, &window), -EINVAL);
    CU_ASSERT_EQUAL(rdma_window_alloc(b->rdma, &window), 0);
    bind(b);
    CU_ASSERT_NOT_EQUAL(window.stag, old.stag);
    CU_ASSERT(writes(a, window.stag, 0));
    CU_ASSERT_FALSE(writes(a, old.stag, 0));
    ended(a, b);
}

static void bound_when_freed(void)
{
    CU_ASSERT_EQUAL(rdma_window_free(b->rdma, &window), 0);
    CU_ASSERT_EQUAL(local(b, bind_wr(&b->region, 0, 8, RDMA_REMOTE_READ)), RDMA_LOCAL_ERROR);
    ended(b, a);
}

static void no_window_is_left(void)
{
    struct rdma_window more[64], none = {.stag = b->region.stag};
    uint32_t count = 0;
    while (count < 64 && rdma_window_alloc(b->rdma, &more[count]) == 0)
        count++;
    CU_ASSERT_EQUAL(count, 1);
    CU_ASSERT_EQUAL(rdma_window_alloc(b->rdma, &more[1]), -ENOMEM);
    CU_ASSERT_NOT_EQUAL(more[0].stag, window.stag);
    CU_ASSERT_EQUAL(rdma_window_free(b->rdma, &none), -EINVAL);
    CU_ASSERT_EQUAL(rdma_window_free(b->rdma, &more[0]), 0);
    CU_ASSERT_EQUAL(rdma_window_alloc(b->rdma, &more[0]), 0);
}

/* ---- tests ------------------------------------------------------------------------------- */

#define ON_ALL(name) \
    static void all_##name(void) \
    { \
        on_all(name); \
    }
ON_ALL(shows_a_part)
ON_ALL(not_behind_its_end)
ON_ALL(not_before_its_begin)
ON_ALL(is_no_local_memory)
ON_ALL(no_octets)
ON_ALL(too_long)
ON_ALL(behind_the_region)
ON_ALL(not_of_the_region)
ON_ALL(of_a_region_without_windows)
ON_ALL(of_an_invalid_region)
ON_ALL(bound_already)
ON_ALL(refused_posts)
ON_ALL(stale_after_rebind)
ON_ALL(not_twice)
ON_ALL(by_the_peer)
ON_ALL(by_the_peer_not_twice)
ON_ALL(dereg_is_busy)
ON_ALL(region_is_not_invalidated)
ON_ALL(through_another_connection)
ON_ALL(invalidated_through_another)
ON_ALL(ends_with_its_connection)
ON_ALL(not_with_the_next_connection)
ON_ALL(freed)
ON_ALL(bound_when_freed)
ON_ALL(no_window_is_left)

int main(void)
{
    static const struct test tests[] = {
        {"a window shows a part", all_shows_a_part},
        {"nothing behind its end", all_not_behind_its_end},
        {"nothing before its begin", all_not_before_its_begin},
        {"rights", rights},
        {"an STag of a window is no lkey", all_is_no_local_memory},
        {"BIND of no octets", all_no_octets},
        {"BIND of too many octets", all_too_long},
        {"BIND behind the region", all_behind_the_region},
        {"BIND of rights that the region has not", all_not_of_the_region},
        {"BIND of a region without BIND_WINDOW", all_of_a_region_without_windows},
        {"BIND of an invalid region", all_of_an_invalid_region},
        {"BIND of what is bound", all_bound_already},
        {"BIND of what was freed", all_bound_when_freed},
        {"refused posts", all_refused_posts},
        {"stale STag after a rebind", all_stale_after_rebind},
        {"LOCAL_INV twice", all_not_twice},
        {"SEND_INV", all_by_the_peer},
        {"SEND_INV twice", all_by_the_peer_not_twice},
        {"INV_WINDOW", capability_of_windows},
        {"INV_REGION", capability_of_regions},
        {"dereg with a window bound", all_dereg_is_busy},
        {"LOCAL_INV of a region with a window bound", all_region_is_not_invalidated},
        {"through another connection", all_through_another_connection},
        {"invalidated through another connection", all_invalidated_through_another},
        {"ends with its connection", all_ends_with_its_connection},
        {"gone in the next connection", all_not_with_the_next_connection},
        {"freed while bound", all_freed},
        {"no window is left", all_no_window_is_left},
    };
    return run_tests("rnic_windows", tests, sizeof tests / sizeof *tests);
}
