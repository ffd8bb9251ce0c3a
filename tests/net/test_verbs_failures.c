/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Every call of rdma-core that net/verbs makes fails once, in a whole life: set-up, connection,
 * traffic, end, and all given back. Nothing crashes, hangs or is lost, what was posted completes
 * once, events keep their order, and what is returned says what failed (tests/net/verbs_world.h).
 */
#include <stdio.h>
#include <string.h>

#include "tests/net/verbs_world.h"
#include "tests/run.h"

static struct vw world;

/* ---- a life ------------------------------------------------------------------------------ */

static void traffic(struct vw *w)
{
    struct rdma_sge sges[8];
    struct rdma_wr wrs[8], back;
    uint32_t count = 0;
    wrs[count] = vw_wr(w, RDMA_WRITE, &sges[count], 64);
    wrs[count++].flags = 0;
    wrs[count] = vw_wr(w, RDMA_SEND, &sges[count], 32);
    wrs[count++].flags = RDMA_INLINE;
    wrs[count] = vw_wr(w, RDMA_READ, &sges[count], 64);
    count++;
    wrs[count] = vw_wr(w, RDMA_SEND, &sges[count], 100);
    wrs[count++].flags = RDMA_SIGNALED | RDMA_FENCE | RDMA_SOLICIT;
    if (w->caps.bits & RDMA_CAP_FETCH_ADD) {
        wrs[count] = vw_wr(w, RDMA_FETCH_ADD, &sges[count], 8);
        wrs[count++].fetch_add.add = 1;
        wrs[count] = vw_wr(w, RDMA_WRITE_IMM, &sges[count], 16);
        count++;
    }
    if (w->a.stage == VW_CONNECTED)
        (void)vw_send(w, &w->a, wrs, count);
    if (w->b.has_conn)
        (void)vw_receive(w, &w->b);
    back = vw_wr(w, RDMA_NOOP, &sges[0], 0);
    if (w->has_window) {
        back.op = RDMA_BIND;
        back.sge_count = 0;
        back.bind.window = &w->window;
        back.bind.region = &w->b.region;
        back.bind.offset = 128;
        back.bind.length = 64;
        back.bind.access = RDMA_REMOTE_READ;
    }
    vw_steps(w, 5);
    if (w->b.stage == VW_CONNECTED)
        (void)vw_send(w, &w->b, &back, 1);
    vw_steps(w, 20);
}

/* The device adds to its own memory. */
static void loop(struct vw *w)
{
    static _Alignas(64) char memory[1024];
    const struct rdma_chain_config config = {.kind = RDMA_CHAIN_LOOP, .depth = 2, .memory = memory};
    struct rdma *r = w->a.rdma;
    struct rdma_sge sge = {w->a.memory + 8, 8, w->a.region.lkey};
    struct rdma_wr add = {.op = RDMA_FETCH_ADD,
                          .flags = RDMA_SIGNALED,
                          .sges = &sge,
                          .sge_count = 1,
                          .remote_to = w->a.region.base_to,
                          .remote_stag = w->a.region.stag,
                          .fetch_add = {.add = 1}};
    struct rdma_chain_queue queue;
    struct rdma_chain_state state = {0};
    CU_ASSERT(rdma_chain_octets(r, 2) <= sizeof memory);
    if (vw_returned(w, rdma_chain_create(r, &config, &queue), rdma_verbs_failure(r)) != 0)
        return;
    CU_ASSERT_EQUAL(rdma_chain_put(r, &queue, 0, &add), 0);
    CU_ASSERT_EQUAL(rdma_chain_enable(r, &queue, 1), 0);
    for (uint32_t n = 0; n < 100 && state.completed == 0; n++)
        CU_ASSERT_EQUAL(rdma_chain_state(r, &queue, &state), 0);
    CU_ASSERT_EQUAL(state.completed, 1);
    w->told |= state.status != RDMA_OK;
    (void)vw_returned(w, rdma_chain_destroy(r, &queue), rdma_verbs_failure(r));
}

static void life(const struct fake_config *config, uint32_t fails)
{
    struct vw *w = &world;
    struct rdma_verbs_about about;
    memset(w, 0, sizeof *w);
    fake_open(config);
    fake_fail(fails);
    (void)vw_returned(w, rdma_verbs_about(0, &about, w->words), w->words);
    if (!w->errors && vw_open(w, 20) == 0 && vw_connect_to(w, VW_ADDRESS) == 0) {
        (void)vw_until(w, VW_CONNECTED, config->late_rtu ? VW_ASKED : VW_CONNECTED);
        traffic(w);
        if (w->caps.bits & RDMA_CAP_LOOP)
            loop(w);
    }
    vw_close(w);
}

/* Calls whose failure nobody is told of, since nobody could do anything. */
static bool is_quiet(const char *call)
{
    static const char *const quiet[] = {
        "rdma_set_option", "ibv_modify_qp",   "rdma_disconnect",     "ibv_create_qp",
        "ibv_dealloc_mw",  "ibv_destroy_cq",  "rdma_get_cm_event",   "ibv_query_gid_table",
        "rdma_notify",     "rdma_migrate_id", "ibv_get_async_event", "ibv_get_cq_event"};
    for (size_t i = 0; i < sizeof quiet / sizeof *quiet; i++)
        if (strcmp(call, quiet[i]) == 0)
            return true;
    return false;
}

static void every_call_fails(const struct fake_config *config)
{
    uint32_t n = 0, quiet = 0;
    const char *call;
    do {
        int error;
        life(config, ++n);
        call = fake_failed(&error);
        bool told = world.errors > 0 || world.told;
        if (call && !told) {
            quiet++;
            CU_ASSERT(is_quiet(call));
            if (!is_quiet(call))
                (void)printf("%s failed, and nobody said so\n", call);
        }
        /* What could not be given back, because giving it back failed. */
        uint32_t left = fake_close();
        bool excused =
            call && (strcmp(call, "ibv_dealloc_mw") == 0 || strcmp(call, "ibv_destroy_cq") == 0);
        CU_ASSERT(left == 0 || excused);
        if (left && !excused)
            (void)printf("%u are left after %s failed (%u)\n", left, call ? call : "nothing", n);
    } while (call && n < 2000);
    CU_ASSERT(n > 40 && n < 2000);
    CU_ASSERT(quiet > 0);
    (void)printf("%u calls, %u of them quiet ... ", n - 1, quiet);
}

static void on_siw(void)
{
    every_call_fails(&(struct fake_config){.kind = FAKE_SIW, .devices = 1});
}

static void on_rxe(void)
{
    every_call_fails(&(struct fake_config){.kind = FAKE_RXE, .devices = 1});
}

static void when_lazy(void)
{
    every_call_fails(&(struct fake_config){.kind = FAKE_SIW, .devices = 1, .lazy = true});
    every_call_fails(&(struct fake_config){.kind = FAKE_RXE, .devices = 1, .lazy = true});
}

static void when_told_late(void)
{
    every_call_fails(&(struct fake_config){.kind = FAKE_RXE, .devices = 1, .late_rtu = true});
}

int main(void)
{
    static const struct test tests[] = {
        {"every call fails on siw", on_siw},
        {"every call fails on rxe", on_rxe},
        {"every call fails when the device is slow", when_lazy},
        {"every call fails when ESTABLISHED comes late", when_told_late},
    };
    return run_tests("net/verbs, failures", tests, sizeof tests / sizeof *tests);
}
