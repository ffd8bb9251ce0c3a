/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Each call about chains from plain code: what it does, what it refuses. What the queues promise in
 * every order of steps: test_rnic_chain_order.c.
 */
#include "chain_world.h"

#include <errno.h>
#include <string.h>

#include "sim/device.h"
#include "tests/run.h"

static struct cw w;

static void open_world(uint32_t first, bool big_endian)
{
    static struct cw_test test;
    test = (struct cw_test){.first = first, .big_endian = big_endian};
    cw_open(&w, &test);
}

static struct rdma_chain_state state_of(const struct rdma_chain_queue *queue)
{
    struct rdma_chain_state state = {0};
    CU_ASSERT_EQUAL(rdma_chain_state(w.b, queue, &state), 0);
    return state;
}

static uint64_t word(uint32_t i)
{
    uint64_t value;
    memcpy(&value, (const void *)w.words[i], sizeof value);
    return value;
}

static void set_word(uint32_t i, uint64_t value)
{
    memcpy((void *)w.words[i], &value, sizeof value);
}

/* ---- create, destroy --------------------------------------------------------------------- */

static int create(uint32_t kind, uint32_t conn, uint32_t depth, size_t offset)
{
    char *memory = sim_region_new(&w.w->arena, "more", rdma_chain_octets(w.b, 4) + 64, 0);
    struct rdma_chain_config config = {
        .kind = kind, .conn = conn, .depth = depth, .memory = memory + offset};
    struct rdma_chain_queue queue;
    return rdma_chain_create(w.b, &config, &queue);
}

static void creating(void)
{
    open_world(0, false);
    CU_ASSERT_EQUAL(create(RDMA_CHAIN_RECV + 1, 0, 4, 0), -EINVAL);
    CU_ASSERT_EQUAL(create(RDMA_CHAIN_LOOP, 0, 4, 0), -ENOSPC); /* both are used */
    CU_ASSERT_EQUAL(create(RDMA_CHAIN_SEND, w.conn_b, 4, 0), -EINVAL);
    CU_ASSERT_EQUAL(create(RDMA_CHAIN_RECV, w.conn_b, 0, 0), -EINVAL);
    CU_ASSERT_EQUAL(create(RDMA_CHAIN_SEND, 9, 4, 0), -EINVAL);
    CU_ASSERT_EQUAL(rdma_chain_destroy(w.b, &w.loop), 0);
    CU_ASSERT_EQUAL(create(RDMA_CHAIN_LOOP, 0, 0, 0), -EINVAL);
    CU_ASSERT_EQUAL(create(RDMA_CHAIN_LOOP, 0, 65537, 0), -EINVAL);
    CU_ASSERT_EQUAL(create(RDMA_CHAIN_LOOP, 0, 4, 8), -EINVAL);
    CU_ASSERT_EQUAL(create(RDMA_CHAIN_LOOP, 0, 4, 64), 0);
    CU_ASSERT_EQUAL(create(RDMA_CHAIN_CTRL, 0, 4, 0), -ENOSPC);
    cw_close(&w);
}

static void ending(void)
{
    struct rdma_chain_state state;
    struct rdma_event event;
    open_world(5, false);
    CU_ASSERT_EQUAL(rdma_chain_destroy(w.b, &w.send), -EBUSY);
    CU_ASSERT_EQUAL(rdma_chain_destroy(w.b, &w.receives), 0);
    CU_ASSERT_EQUAL(rdma_chain_destroy(w.b, &w.receives), -EINVAL);
    CU_ASSERT_EQUAL(rdma_chain_state(w.b, &w.receives, &state), -EINVAL);
    CU_ASSERT_EQUAL(rdma_chain_destroy(w.b, &w.ctrl), 0);
    CU_ASSERT_EQUAL(rdma_chain_state(w.b, &w.ctrl, &state), -EINVAL);
    CU_ASSERT_EQUAL(rdma_chain_destroy(w.b, &w.ctrl), -EINVAL); /* its region is gone */
    CU_ASSERT_EQUAL(rdma_disconnect(w.b, w.conn_b), 0);
    CU_ASSERT_EQUAL(rdma_event(w.b, &event), 1);
    CU_ASSERT_EQUAL(rdma_event(w.b, &event), 1);
    CU_ASSERT_EQUAL(event.kind, RDMA_EVENT_DRAINED);
    CU_ASSERT_EQUAL(rdma_destroy(w.b, w.conn_b), 0);
    CU_ASSERT_EQUAL(rdma_chain_destroy(w.b, &w.send), 0);
    cw_close(&w);
}

/* Nothing lands after the return, and the next queue begins anew. */
static void ending_with_work(void)
{
    struct rdma_wr wait = {.op = RDMA_WAIT};
    open_world(0, false);
    wait.wait.queue = w.ctrl.id;
    wait.wait.count = 1;
    set_word(0, 5);
    cw_put(&w, &w.loop, 0, &wait);
    cw_put_read(&w, 1, 0, 1, RDMA_SIGNALED);
    cw_enable(&w, &w.loop, 2);
    CU_ASSERT_EQUAL(state_of(&w.loop).completed, 0);
    CU_ASSERT_EQUAL(rdma_chain_destroy(w.b, &w.loop), 0);
    CU_ASSERT_EQUAL(create(RDMA_CHAIN_LOOP, 0, 4, 0), 0);
    struct rdma_wr noop = {.op = RDMA_ENABLE, .flags = RDMA_SIGNALED};
    noop.enable.queue = w.ctrl.id;
    cw_put(&w, &w.ctrl, 0, &noop);
    cw_enable(&w, &w.ctrl, 1);
    CU_ASSERT_EQUAL(state_of(&w.ctrl).completions, 1);
    CU_ASSERT_EQUAL(word(1), 0);
    cw_close(&w);
}

/* ---- put, enable, state ------------------------------------------------------------------ */

static int put_op(const struct rdma_chain_queue *queue, uint16_t op, uint16_t flags)
{
    struct rdma_sge sge = cw_sge(&w, 0);
    struct rdma_wr wr = {.op = op,
                         .flags = flags,
                         .sges = &sge,
                         .sge_count = op != RDMA_WAIT && op != RDMA_ENABLE && op != RDMA_NOOP,
                         .remote_stag = w.region.stag};
    if (op == RDMA_CAS)
        wr.cas.compare_mask = wr.cas.swap_mask = UINT64_MAX;
    return rdma_chain_put(w.b, queue, w.first, &wr);
}

/* Which kinds have which work requests. */
static void what_queues_have(void)
{
    static const struct {
        uint16_t op;
        bool loop, ctrl, send;
    } has[] = {
        {RDMA_NOOP, true, false, true},      {RDMA_SEND, false, false, true},
        {RDMA_SEND_INV, false, false, true}, {RDMA_WRITE, true, false, true},
        {RDMA_READ, true, false, true},      {RDMA_WRITE_IMM, false, false, true},
        {RDMA_FETCH_ADD, true, false, true}, {RDMA_CAS, true, false, true},
        {RDMA_WAIT, true, true, true},       {RDMA_ENABLE, true, true, true},
        {RDMA_BIND, false, false, false},    {RDMA_LOCAL_INV, false, false, false},
        {RDMA_WAITD, false, false, false},   {RDMA_CENABLE, false, false, false},
        {RDMA_RECV, false, false, false},
    };
    open_world(0, false);
    for (size_t i = 0; i < sizeof has / sizeof *has; i++) {
        CU_ASSERT_EQUAL(put_op(&w.loop, has[i].op, 0), has[i].loop ? 0 : -EINVAL);
        CU_ASSERT_EQUAL(put_op(&w.ctrl, has[i].op, 0), has[i].ctrl ? 0 : -EINVAL);
        CU_ASSERT_EQUAL(put_op(&w.send, has[i].op, 0), has[i].send ? 0 : -EINVAL);
        CU_ASSERT_EQUAL(put_op(&w.receives, has[i].op, 0), -EINVAL);
    }
    CU_ASSERT_EQUAL(put_op(&w.loop, RDMA_WRITE, RDMA_INLINE), -EINVAL);
    CU_ASSERT_EQUAL(put_op(&w.loop, RDMA_WAIT, RDMA_SOLICIT), -EINVAL);
    CU_ASSERT_EQUAL(put_op(&w.loop, RDMA_READ, 0x100), -EINVAL);
    cw_close(&w);
}

static void what_sges_may_be(void)
{
    open_world(0, false);
    struct rdma_sge sges[5] = {cw_sge(&w, 0), cw_sge(&w, 1), cw_sge(&w, 2), cw_sge(&w, 3),
                               cw_sge(&w, 4)};
    struct rdma_wr wr = {.op = RDMA_READ, .sges = sges, .sge_count = 4};
    CU_ASSERT_EQUAL(rdma_chain_put(w.b, &w.loop, 0, &wr), 0);
    wr.sge_count = 5;
    CU_ASSERT_EQUAL(rdma_chain_put(w.b, &w.loop, 0, &wr), -EINVAL);
    wr.sge_count = 1;
    sges[0].length = 33; /* max_message */
    CU_ASSERT_EQUAL(rdma_chain_put(w.b, &w.loop, 0, &wr), -EINVAL);
    sges[0].length = 8;
    sges[0].lkey++;
    CU_ASSERT_EQUAL(rdma_chain_put(w.b, &w.loop, 0, &wr), -EINVAL);
    cw_close(&w);
}

/* Numbers: put in order, into places that are free, below the limit no more. */
static void numbers_of_places(void)
{
    const uint32_t firsts[] = {0, 0xfffffffau};
    for (int i = 0; i < 2; i++) {
        open_world(firsts[i], false);
        struct rdma_wr noop = {.op = RDMA_NOOP};
        CU_ASSERT_EQUAL(rdma_chain_put(w.b, &w.loop, w.first + 1, &noop), -EINVAL);
        CU_ASSERT_EQUAL(rdma_chain_put(w.b, &w.loop, w.first - 1, &noop), -EINVAL);
        for (uint32_t j = 0; j < CW_DEPTH; j++)
            cw_put(&w, &w.loop, j, &noop);
        CU_ASSERT_EQUAL(rdma_chain_put(w.b, &w.loop, w.first + CW_DEPTH, &noop), -ENOMEM);
        CU_ASSERT_EQUAL(rdma_chain_enable(w.b, &w.loop, w.first + CW_DEPTH + 1), -EINVAL);
        CU_ASSERT_EQUAL(rdma_chain_enable(w.b, &w.receives, w.first), -EINVAL);
        cw_enable(&w, &w.loop, 1);
        CU_ASSERT_EQUAL(state_of(&w.loop).enabled, w.first + 1);
        CU_ASSERT_EQUAL(state_of(&w.loop).completed, w.first + 1);
        CU_ASSERT_EQUAL(rdma_chain_put(w.b, &w.loop, w.first, &noop), -EINVAL);
        cw_put(&w, &w.loop, 1, &noop);        /* again */
        cw_put(&w, &w.loop, CW_DEPTH, &noop); /* one place is free */
        CU_ASSERT_EQUAL(rdma_chain_put(w.b, &w.loop, w.first + CW_DEPTH + 1, &noop), -ENOMEM);
        cw_enable(&w, &w.loop, 0); /* the limit does not fall */
        CU_ASSERT_EQUAL(state_of(&w.loop).enabled, w.first + 1);
        cw_close(&w);
    }
}

/* Three times around, over the end of the numbers. */
static void places_are_used_again(void)
{
    open_world(0xfffffff0u, true);
    for (uint32_t i = 0; i < 3 * CW_DEPTH; i++) {
        set_word(0, i + 1);
        cw_put_read(&w, i, 0, 1, i % 2 ? RDMA_SIGNALED : 0);
        cw_enable(&w, &w.loop, i + 1);
        CU_ASSERT_EQUAL(word(1), i + 1);
        CU_ASSERT_EQUAL(state_of(&w.loop).completions, w.first + (i + 1) / 2);
        CU_ASSERT_EQUAL(state_of(&w.loop).status, RDMA_OK);
    }
    cw_close(&w);
}

/* An ENABLE says too much: what the place held one turn before is not executed again. */
static void what_a_place_held_before(void)
{
    open_world(0, false);
    for (uint32_t i = 0; i < CW_DEPTH; i++)
        cw_put_read(&w, i, 0, 1, 0);
    cw_enable(&w, &w.loop, CW_DEPTH);
    set_word(0, 5);
    struct rdma_wr enable = {.op = RDMA_ENABLE};
    enable.enable.queue = w.loop.id;
    enable.enable.count = CW_DEPTH + 1;
    cw_put(&w, &w.ctrl, 0, &enable);
    cw_enable(&w, &w.ctrl, 1);
    CU_ASSERT_EQUAL(state_of(&w.loop).status, RDMA_LOCAL_ERROR);
    CU_ASSERT_EQUAL(state_of(&w.loop).completions, 1);
    CU_ASSERT_EQUAL(word(1), 0);
    cw_close(&w);
}

static void a_send_queue_is_the_chains(void)
{
    open_world(0, false);
    struct rdma_sge sge = cw_sge(&w, 0);
    struct rdma_wr send = {
        .wr_id = 7, .op = RDMA_SEND, .flags = RDMA_SIGNALED, .sges = &sge, .sge_count = 1};
    struct rdma_wc wc;
    CU_ASSERT_EQUAL(rdma_post_send(w.b, w.conn_b, &send, 1), -EBUSY);
    set_word(0, 5);
    cw_put(&w, &w.send, 0, &send);
    cw_enable(&w, &w.send, 1);
    CU_ASSERT_EQUAL(rdma_cq_poll(w.b, w.cq_b, &wc, 1), 0); /* counted, no more */
    CU_ASSERT_EQUAL(state_of(&w.send).completions, 1);
    CU_ASSERT_EQUAL(rdma_cq_poll(w.a, w.cq_a, &wc, 1), 1);
    CU_ASSERT_EQUAL(w.buffer[0], 5);
    CU_ASSERT_EQUAL(wc.length, 8);
    cw_close(&w);
}

/* ---- patch points ------------------------------------------------------------------------ */

static void fields_have_places(void)
{
    static const uint8_t octets[RDMA_FIELDS] = {1, 4, 8, 4, 8, 4, 4, 8, 8, 8, 8, 8, 8, 8, 8};
    for (int big = 0; big < 2; big++) {
        open_world(0, big != 0);
        const char *from = w.loop.region.addr;
        for (uint32_t field = 0; field < RDMA_FIELDS; field++) {
            bool of_sge = field >= RDMA_FIELD_SGE_TO && field <= RDMA_FIELD_SGE_LKEY;
            void *first = NULL, *last = NULL, *other;
            uint32_t n = octets[field];
            CU_ASSERT_EQUAL(rdma_chain_field(w.b, &w.loop, 9, field, 0, 0, &first), (int)n);
            CU_ASSERT_EQUAL(rdma_chain_field(w.b, &w.loop, 9, field, 0, n - 1, &last), (int)n);
            CU_ASSERT_EQUAL((char *)last - (char *)first, big ? (int)n - 1 : 1 - (int)n);
            CU_ASSERT((char *)first >= from + w.loop.region.length / CW_DEPTH);
            CU_ASSERT((char *)first < from + w.loop.region.length / CW_DEPTH * 2);
            CU_ASSERT_EQUAL(rdma_chain_field(w.b, &w.loop, 9, field, 0, n, &other), -EINVAL);
            CU_ASSERT_EQUAL(rdma_chain_field(w.b, &w.loop, 9, field, 1, 0, &other),
                            of_sge ? (int)n : -EINVAL);
            CU_ASSERT_EQUAL(rdma_chain_field(w.b, &w.loop, 9, field, 4, 0, &other), -EINVAL);
            CU_ASSERT_EQUAL(rdma_chain_field(w.b, &w.receives, 9, field, 0, 0, &other), -EINVAL);
        }
        CU_ASSERT_EQUAL(rdma_chain_field(w.b, &w.loop, 0, RDMA_FIELDS, 0, 0, &(void *){0}),
                        -EINVAL);
        cw_close(&w);
    }
}

static void values_of_fields(void)
{
    uint8_t octets[8];
    open_world(0, true);
    CU_ASSERT_EQUAL(rdma_chain_encode(w.b, RDMA_FIELD_SGE_LENGTH, 0x01020304, octets), 4);
    CU_ASSERT_EQUAL(memcmp(octets, "\1\2\3\4", 4), 0);
    CU_ASSERT_EQUAL(rdma_chain_encode(w.b, RDMA_FIELD_SGE_LENGTH, UINT64_C(1) << 32, octets),
                    -EINVAL);
    CU_ASSERT_EQUAL(rdma_chain_encode(w.b, RDMA_FIELD_OP, RDMA_RECV, octets), -EINVAL);
    CU_ASSERT_EQUAL(rdma_chain_encode(w.b, RDMA_FIELDS, 0, octets), -EINVAL);
    CU_ASSERT_EQUAL(rdma_chain_encode(w.b, RDMA_FIELD_ADD, UINT64_MAX, octets), 8);
    cw_close(&w);
    open_world(0, false);
    CU_ASSERT_EQUAL(rdma_chain_encode(w.b, RDMA_FIELD_SGE_LENGTH, 0x01020304, octets), 4);
    CU_ASSERT_EQUAL(memcmp(octets, "\4\3\2\1", 4), 0);
    cw_close(&w);
}

/* Sets a field of work request 0 of the loop as a chain would: octet by octet. */
static void patch(uint32_t field, uint32_t sge, uint64_t value)
{
    uint8_t octets[8];
    int count = rdma_chain_encode(w.b, field, value, octets);
    CU_ASSERT_FATAL(count > 0);
    struct rdma_caps caps;
    rdma_caps(w.b, &caps);
    for (int i = 0; i < count; i++) {
        void *at;
        uint32_t lane = (uint32_t)(caps.wqe_big_endian ? i : count - 1 - i);
        CU_ASSERT_EQUAL(rdma_chain_field(w.b, &w.loop, w.first, field, sge, lane, &at), count);
        memcpy(at, &octets[i], 1);
    }
}

/* A NOOP that was given all that a WRITE needs becomes one; so does every field have its effect. */
static void patched_fields_have_effect(void)
{
    for (int big = 0; big < 2; big++) {
        open_world(0, big != 0);
        struct rdma_sge sges[2] = {cw_sge(&w, 0), cw_sge(&w, 1)};
        struct rdma_wr noop = {.op = RDMA_NOOP, .sges = sges, .sge_count = 2};
        cw_put(&w, &w.loop, 0, &noop);
        set_word(0, 5);
        set_word(2, 7);
        patch(RDMA_FIELD_OP, 0, RDMA_WRITE);
        patch(RDMA_FIELD_REMOTE_TO, 0, cw_to(&w, 4));
        patch(RDMA_FIELD_REMOTE_STAG, 0, w.region.stag);
        patch(RDMA_FIELD_SGE_TO, 0, cw_to(&w, 2)); /* 7 instead of 5 */
        patch(RDMA_FIELD_SGE_LENGTH, 0, 2);
        patch(RDMA_FIELD_SGE_LENGTH, 1, 0);
        set_word(4, UINT64_MAX);
        cw_enable(&w, &w.loop, 1);
        CU_ASSERT_EQUAL(state_of(&w.loop).status, RDMA_OK);
        CU_ASSERT_EQUAL(word(4), 0xffffffffffff0007);
        cw_close(&w);
    }
}

/* What is patched to nonsense fails when it is executed. */
static void patched_to_nonsense(void)
{
    static const struct {
        uint64_t value;
        uint32_t field, status;
    } nonsense[] = {
        {RDMA_SEND, RDMA_FIELD_OP, RDMA_LOCAL_ERROR},
        {RDMA_BIND, RDMA_FIELD_OP, RDMA_LOCAL_ERROR},
        {0xdead, RDMA_FIELD_SGE_LKEY, RDMA_LOCAL_ERROR},
        {1, RDMA_FIELD_SGE_TO, RDMA_LOCAL_ERROR},
        {0x10000, RDMA_FIELD_SGE_LENGTH, RDMA_LOCAL_ERROR},
        {1, RDMA_FIELD_REMOTE_STAG, RDMA_REMOTE_ACCESS},
        {1, RDMA_FIELD_REMOTE_TO, RDMA_REMOTE_ACCESS},
    };
    for (size_t i = 0; i < sizeof nonsense / sizeof *nonsense; i++) {
        open_world(3, false);
        cw_put_read(&w, 0, 0, 1, 0);
        patch(nonsense[i].field, 0, nonsense[i].value);
        cw_enable(&w, &w.loop, 1);
        CU_ASSERT_EQUAL(state_of(&w.loop).status, nonsense[i].status);
        CU_ASSERT_EQUAL(state_of(&w.loop).completions, 4);
        cw_put_read(&w, 1, 0, 1, 0);
        cw_enable(&w, &w.loop, 2); /* flushed, and counted */
        CU_ASSERT_EQUAL(state_of(&w.loop).completions, 5);
        CU_ASSERT_EQUAL(state_of(&w.loop).status, nonsense[i].status);
        cw_close(&w);
    }
}

static void atomics_of_a_loop(void)
{
    open_world(0, true);
    struct rdma_sge sge = cw_sge(&w, 1);
    struct rdma_wr add = {.op = RDMA_FETCH_ADD,
                          .sges = &sge,
                          .sge_count = 1,
                          .remote_to = cw_to(&w, 0),
                          .remote_stag = w.region.stag};
    struct rdma_wr cas = add;
    add.fetch_add.add = 0xff;
    add.fetch_add.mask = 0x80;
    cas.op = RDMA_CAS;
    cas.cas.compare = 0x7fffffff00ff;
    cas.cas.compare_mask = 0xff;
    cas.cas.swap = 0x3300;
    cas.cas.swap_mask = 0xff00;
    set_word(0, 0x1100);
    cw_put(&w, &w.loop, 0, &add);
    cw_enable(&w, &w.loop, 1);
    CU_ASSERT_EQUAL(word(0), 0x11ff);
    CU_ASSERT_EQUAL(word(1), 0x1100);
    cw_put(&w, &w.loop, 1, &cas);
    cw_enable(&w, &w.loop, 2);
    CU_ASSERT_EQUAL(word(0), 0x33ff);
    CU_ASSERT_EQUAL(word(1), 0x11ff);
    cas.cas.compare = 0xfe;
    cw_put(&w, &w.loop, 2, &cas);
    set_word(0, 0x44ff);
    cw_enable(&w, &w.loop, 3);
    CU_ASSERT_EQUAL(word(0), 0x44ff);
    cw_close(&w);
}

/* ---- strided regions --------------------------------------------------------------------- */

/* Reads `octets` at a Tagged Offset of a region into word 7; the status. */
static uint32_t read_at(const struct rdma_region *region, uint64_t to, uint32_t octets, uint32_t i)
{
    struct rdma_sge sge = {w.words[7], octets, w.region.lkey};
    struct rdma_wr read = {.op = RDMA_READ,
                           .sges = &sge,
                           .sge_count = 1,
                           .remote_to = to,
                           .remote_stag = region->stag};
    cw_put(&w, &w.loop, i, &read);
    cw_enable(&w, &w.loop, i + 1);
    return state_of(&w.loop).status;
}

static void strided_regions(void)
{
    struct rdma_region region;
    open_world(0, false);
    uint64_t *table = (uint64_t *)(void *)sim_region_new(&w.w->arena, "table", 64, 0);
    for (uint64_t i = 0; i < 8; i++)
        table[i] = i + 1;
    CU_ASSERT_EQUAL(rdma_chain_reg_strided(w.b, table, 4, 16, 256, RDMA_REMOTE_READ, &region), 0);
    CU_ASSERT_EQUAL(region.base_to, 0);
    CU_ASSERT_EQUAL(read_at(&region, 0, 8, 0), RDMA_OK);
    CU_ASSERT_EQUAL(word(7), 1);
    CU_ASSERT_EQUAL(read_at(&region, 0x308, 8, 1), RDMA_OK);
    CU_ASSERT_EQUAL(word(7), 8);
    /* Not for local use, and with the rights it was given. */
    struct rdma_sge sge = {table, 8, region.lkey};
    struct rdma_wr write = {.op = RDMA_WRITE,
                            .sges = &sge,
                            .sge_count = 1,
                            .remote_to = cw_to(&w, 0),
                            .remote_stag = w.region.stag};
    cw_put(&w, &w.loop, 2, &write);
    cw_enable(&w, &w.loop, 3);
    CU_ASSERT_EQUAL(state_of(&w.loop).status, RDMA_LOCAL_ERROR);
    cw_close(&w);
}

static void strided_regions_end(void)
{
    static const struct {
        uint64_t to;
        uint32_t octets;
    } outside[] = {{0x10, 1}, {0x0c, 8}, {0xff, 1}, {0x400, 1}, {UINT64_MAX, 1}, {0xff00, 8}};
    for (size_t i = 0; i < sizeof outside / sizeof *outside; i++) {
        struct rdma_region region;
        open_world(0, false);
        char *table = sim_region_new(&w.w->arena, "table", 128, 0);
        CU_ASSERT_EQUAL(rdma_chain_reg_strided(w.b, table, 4, 16, 256, RDMA_REMOTE_READ, &region),
                        0);
        CU_ASSERT_EQUAL(read_at(&region, outside[i].to, outside[i].octets, 0), RDMA_REMOTE_ACCESS);
        cw_close(&w);
    }
}

static void strided_shapes(void)
{
    static const uint32_t shapes[][3] = {{4, 16, 16}, {4, 12, 256},   {4, 16, 300},
                                         {4, 0, 256}, {4, 16, 65536}, {0, 16, 256}};
    struct rdma_region region;
    open_world(0, false);
    char *table = sim_region_new(&w.w->arena, "table", 128, 0);
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        CU_ASSERT_EQUAL(rdma_chain_reg_strided(w.b, table, shapes[i][0], shapes[i][1], shapes[i][2],
                                               RDMA_REMOTE_READ, &region),
                        -EINVAL);
    CU_ASSERT_EQUAL(rdma_chain_reg_strided(w.b, table, 4, 16, 256,
                                           RDMA_REMOTE_READ | RDMA_BIND_WINDOW, &region),
                    -EINVAL);
    cw_close(&w);
}

/* ---- devices without --------------------------------------------------------------------- */

static void devices_without_chains(void)
{
    const struct sim_device_config config = {.rnic.bits = SIM_RNIC_BITS | SIM_RNIC_CHAIN_BITS};
    const struct sim_rnic_limits limits = {0};
    struct sim_device *device = sim_device_open(&config);
    CU_ASSERT_PTR_NOT_NULL_FATAL(device);
    struct rdma *r = sim_device_handle(device, &limits);
    CU_ASSERT_PTR_NOT_NULL_FATAL(r);
    struct rdma_chain_config queue_config = {0};
    struct rdma_chain_queue queue = {0};
    struct rdma_chain_state state;
    struct rdma_region region;
    struct rdma_wr wr = {0};
    struct rdma_caps caps;
    uint8_t octets[8];
    void *at;
    rdma_caps(r, &caps);
    CU_ASSERT_EQUAL(caps.bits & SIM_RNIC_CHAIN_BITS, 0);
    CU_ASSERT_EQUAL(rdma_chain_octets(r, 4), 0);
    CU_ASSERT_EQUAL(rdma_chain_create(r, &queue_config, &queue), -ENOTSUP);
    CU_ASSERT_EQUAL(rdma_chain_destroy(r, &queue), -ENOTSUP);
    CU_ASSERT_EQUAL(rdma_chain_put(r, &queue, 0, &wr), -ENOTSUP);
    CU_ASSERT_EQUAL(rdma_chain_enable(r, &queue, 0), -ENOTSUP);
    CU_ASSERT_EQUAL(rdma_chain_state(r, &queue, &state), -ENOTSUP);
    CU_ASSERT_EQUAL(rdma_chain_field(r, &queue, 0, 0, 0, 0, &at), -ENOTSUP);
    CU_ASSERT_EQUAL(rdma_chain_encode(r, 0, 0, octets), -ENOTSUP);
    CU_ASSERT_EQUAL(rdma_chain_reg_strided(r, octets, 1, 1, 2, 0, &region), -ENOTSUP);
    sim_device_close(device);
}

int main(void)
{
    static const struct test tests[] = {
        {"creating queues", creating},
        {"ending queues", ending},
        {"ending a queue with work", ending_with_work},
        {"what queues have", what_queues_have},
        {"what SGEs may be", what_sges_may_be},
        {"numbers of places", numbers_of_places},
        {"places are used again", places_are_used_again},
        {"what a place held before", what_a_place_held_before},
        {"a send queue is the chain's", a_send_queue_is_the_chains},
        {"fields have places", fields_have_places},
        {"values of fields", values_of_fields},
        {"patched fields have effect", patched_fields_have_effect},
        {"patched to nonsense", patched_to_nonsense},
        {"atomics of a loop", atomics_of_a_loop},
        {"strided regions", strided_regions},
        {"strided regions end", strided_regions_end},
        {"strided shapes", strided_shapes},
        {"devices without chains", devices_without_chains},
    };
    return run_tests("sim.rnic_chain", tests, sizeof tests / sizeof *tests);
}
