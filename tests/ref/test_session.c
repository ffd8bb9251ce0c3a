/* SPDX-License-Identifier: BSD-3-Clause */
/* Sessions: who gets which range and quota, what is kept after a loss or a GOODBYE, what waits. */
#include <errno.h>
#include <string.h>

#include "tests/ref/fixture.h"
#include "tests/ref/peer.h"

static struct pair_config unchecked_config(void)
{
    struct pair_config config = pair_defaults();
    config.unchecked = true;
    return config;
}

static int why(uint32_t i)
{
    return kbtp_initiator_why(pair.initiators[i].initiator);
}

/* ---- what HELLO_ACK says ----------------------------------------------------------------- */

/* R-SESS-02, -16 to -18, -28, R-QUOTA-01: each has its own range and quota, and no feature. */
static void each_gets_its_own(void)
{
    open_pair();
    for (uint32_t i = 0; i < 3; i++) {
        const struct kbtp_hello_ack *ack = said(i);
        CU_ASSERT_EQUAL(ack->features, 0);
        CU_ASSERT_EQUAL(ack->request_credits, 4);
        CU_ASSERT_EQUAL(ack->block_size, 64);
        CU_ASSERT_EQUAL(ack->max_inline, 32);
        CU_ASSERT_EQUAL(ack->allocation_quota, pair.config.quotas[i]);
        CU_ASSERT_EQUAL(ack->handle_base, 0x4000 + 16 * i);
        CU_ASSERT_EQUAL(ack->handle_count, 16);
        CU_ASSERT_EQUAL(state_of(i), KBTP_SESSION_ACTIVE);
    }
    CU_ASSERT_EQUAL(look_at_workers().connections, 3);
    close_pair();
}

/* R-OPER-01: a session has its quota and range from beginning to end, and finds them again (I-32);
 * another configuration shows when a target is set up with it and the initiator comes again. */
static void quotas_change_by_reconnecting(void)
{
    for (uint32_t quota = 6; quota > 3; quota -= 2) {
        struct pair_config config = pair_defaults();
        config.quotas[0] = quota;
        config.handles = 10 + quota;
        open_connected(&config);
        struct kbtp_hello_ack ack = *said(0);
        CU_ASSERT_EQUAL(ack.allocation_quota, quota);
        CU_ASSERT_EQUAL(ack.handle_count, 10 + quota);
        expect_status(run(0, KBTP_OP_ALLOC_STORE, 0, 8, 0), KBTP_STATUS_OK);
        expect_status(run(0, KBTP_OP_FREE, 0, 0, 0), KBTP_STATUS_OK);
        CU_ASSERT_EQUAL(memcmp(&ack, said(0), sizeof ack), 0);
        lose_connection(0);
        CU_ASSERT_EQUAL_FATAL(pair_connect(&pair, 0), 0);
        CU_ASSERT_EQUAL(memcmp(&ack, said(0), sizeof ack), 0);
        close_pair();
    }
}

/* What a configuration may say. R-QUOTA-02, R-OPER-02: the quotas together are at most F. */
static void bad_grants_are_refused(void)
{
    static const struct {
        uint32_t count, quotas[2], handles[2], id[2];
        int64_t result;
    } cases[] = {
        {2, {8, 8}, {4, 4}, {1, 2}, 8},
        {2, {0, 16}, {4, 4}, {1, 2}, 8},
        {2, {9, 8}, {4, 4}, {1, 2}, -EINVAL},
        {2, {UINT32_MAX, 17}, {4, 4}, {1, 2}, -EINVAL},
        {2, {8, 8}, {4, 0}, {1, 2}, -EINVAL},
        {2, {8, 8}, {4, 4}, {1, 1}, -EINVAL},
        {0, {0, 0}, {4, 4}, {1, 2}, -EINVAL},
        {2, {8, 8}, {INT32_MAX, 1}, {1, 2}, -EINVAL},
        {1, {8, 0}, {INT32_MAX, 1}, {1, 2}, INT32_MAX},
    };
    struct mem m = {0};
    for (uint32_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct kbtp_sessions all;
        struct kbtp_session sessions[2];
        struct kbtp_grant grants[2] = {0};
        mem64 lock;
        for (uint32_t j = 0; j < 2; j++) {
            grants[j] = (struct kbtp_grant){
                .known = 1, .quota = cases[i].quotas[j], .handle_count = cases[i].handles[j]};
            memset(grants[j].initiator_id, (int)cases[i].id[j], sizeof grants[j].initiator_id);
        }
        CU_ASSERT_EQUAL(kbtp_sessions_init(&m, &all, sessions, grants, &lock, cases[i].count, 16),
                        cases[i].result);
    }
}

/* I-11, R-TBL-06: where the Generations begin nobody knows, but never at 0, and not twice in the
 * same way. */
static void first_generations_differ(void)
{
    struct pair_config config = pair_defaults();
    config.target.first_generation = 0;
    config.handles = 512;
    open_with(&config);
    uint32_t same_as_next = 0;
    for (uint32_t n = 0; n < 3 * 512; n++) {
        uint16_t generation = kbtp_table_read(&pair.mem, &pair.target.pool.table, n).generation;
        CU_ASSERT_NOT_EQUAL(generation, 0);
        same_as_next +=
            n != 0 &&
            generation == kbtp_table_read(&pair.mem, &pair.target.pool.table, n - 1).generation;
    }
    CU_ASSERT(same_as_next < 5);
    close_pair();
}

/* ---- known and unknown initiators -------------------------------------------------------- */

/* R-SESS-15. Wrong peer: R-SESS-12. An ID that no grant knows takes a free one, and finds it again;
 * who does not know it does not: NO_SPACE. */
static void unknown_initiators_take_free_grants(void)
{
    struct pair_config config = unchecked_config();
    struct peer peer;
    struct kbtp_message hello = peer_hello(0x99, 4), answer;
    config.unknown = true;
    open_connected(&config);
    for (uint32_t i = 0; i < 3; i++) /* the first that come */
        CU_ASSERT_EQUAL(said(i)->handle_base, 0x4000 + 16 * i);
    run(1, KBTP_OP_ALLOC_STORE, 0, 8, 0);
    lose_connection(1);
    lose_connection(0);
    CU_ASSERT_EQUAL(pair_connect(&pair, 1), 0);
    CU_ASSERT_EQUAL(said(1)->handle_base, 0x4010);
    expect_status(run(1, KBTP_OP_FREE, 0, 0, 0), KBTP_STATUS_OK);
    CU_ASSERT_EQUAL_FATAL(peer_open(&peer, another_handle()), 0);
    for (uint32_t round = 0; round < 2; round++) {
        CU_ASSERT_EQUAL_FATAL(peer_connect(&peer, "target"), 0);
        for (uint32_t n = 0; n < 100; n++) {
            pair_poll(&pair);
            peer_poll(&peer);
            if (peer.state == PEER_CONNECTED && n == 30)
                CU_ASSERT_EQUAL(peer_send_message(&peer, &hello), 0);
        }
        CU_ASSERT_EQUAL(peer_take(&peer, &answer), 0);
        CU_ASSERT_EQUAL(answer.header.opcode, KBTP_OP_HELLO_ACK);
        CU_ASSERT_EQUAL(answer.header.status, round ? KBTP_STATUS_OK : KBTP_STATUS_NO_SPACE);
        if (round == 0) { /* 0 is retained for its initiator until that releases it */
            CU_ASSERT_EQUAL(pair_connect(&pair, 0), 0);
            CU_ASSERT_EQUAL(pair_goodbye(&pair, 0, true), 0);
        }
    }
    CU_ASSERT_EQUAL(answer.hello_ack.handle_base, 0x4000);
    peer_disconnect(&peer);
    pair_settle(&pair);
    peer_close(&peer);
    close_pair();
}

/* R-SESS-28 */
static void known_initiators_get_their_own(void)
{
    struct pair_config config = pair_defaults();
    open_with(&config);
    for (uint32_t i = 3; i-- > 0;) {
        CU_ASSERT_EQUAL(pair_connect(&pair, i), 0);
        CU_ASSERT_EQUAL(said(i)->handle_base, 0x4000 + 16 * i);
    }
    close_pair();
}

/* I-16: INTERNAL, and the first one keeps working. Wrong peer: R-SESS-14. */
static void an_active_id_is_rejected(void)
{
    struct pair_config config = pair_defaults();
    config.initiators = 2;
    open_with(&config);
    CU_ASSERT_EQUAL(pair_connect(&pair, 0), 0);
    struct kbtp_initiator_config twin_config = pair.initiators[0].config;
    static uint64_t memory[1024], buffers[1024];
    struct kbtp_cpu cpu = {&pair.mem, another_handle()};
    struct kbtp_initiator *twin;
    struct kbtp_outcome outcome;
    CU_ASSERT_EQUAL_FATAL(kbtp_initiator_init(&twin, &cpu, &twin_config, memory, buffers), 0);
    CU_ASSERT_EQUAL(kbtp_initiator_connect(twin, &cpu), 0);
    for (uint32_t n = 0; n < 100; n++) {
        pair_poll(&pair);
        kbtp_initiator_poll(twin, &cpu, &outcome, 1);
    }
    CU_ASSERT_EQUAL(kbtp_initiator_state(twin), KBTP_INITIATOR_DOWN);
    CU_ASSERT_EQUAL(kbtp_initiator_why(twin), KBTP_STATUS_INTERNAL); /* R-ST-10 */
    CU_ASSERT_EQUAL(kbtp_initiator_end(twin, &cpu), 0);
    expect_status(run(0, KBTP_OP_ALLOC_STORE, 0, 8, 0), KBTP_STATUS_OK);
    close_pair();
}

/* ---- after the end ----------------------------------------------------------------------- */

/* What initiator 0 bound before is there again: handle 2, 40 octets, Generation 2, usage 1. */
static void expect_bindings(void)
{
    CU_ASSERT_EQUAL(said(0)->handle_base, 0x4000);
    CU_ASSERT_EQUAL(said(0)->handle_count, 16);
    CU_ASSERT_EQUAL(said(0)->allocation_quota, 6);
    CU_ASSERT_EQUAL(usage_of(0), 1);
    fill(0, 0);
    struct kbtp_outcome outcome = run(0, KBTP_OP_LOAD, 2, 64, 0);
    expect_status(outcome, KBTP_STATUS_OK);
    CU_ASSERT_EQUAL(outcome.generation, 2);
    CU_ASSERT_EQUAL(outcome.data_length, 40);
    CU_ASSERT(holds(0, 0x66, 40));
}

/* R-SESS-10, -15, -30, -32, -33: after a loss, a disconnection, and a GOODBYE. */
static void bindings_are_kept(void)
{
    struct pair_config config = unchecked_config();
    open_connected(&config);
    fill(0, 0x66);
    expect_status(run(0, KBTP_OP_ALLOC_STORE, 2, 40, KBTP_FLAG_SEAL), KBTP_STATUS_OK);
    for (uint32_t round = 0; round < 6; round++) {
        if (round % 3 == 0) {
            lose_connection(0);
        } else {
            int failed = round % 3 == 1 ? pair_goodbye(&pair, 0, false) : pair_disconnect(&pair, 0);
            CU_ASSERT_EQUAL(failed, 0);
        }
        CU_ASSERT_EQUAL(why(0), round % 3 == 1 ? 0 : -ECONNRESET);
        pair_settle(&pair);
        CU_ASSERT_EQUAL(state_of(0), KBTP_SESSION_RETAINED);
        CU_ASSERT_EQUAL(mem_load64(&pair.mem, &pair.memory.sessions[0].usage), 1);
        CU_ASSERT_EQUAL(usage_of(0), UINT32_MAX);
        CU_ASSERT_EQUAL_FATAL(pair_connect(&pair, 0), 0);
        expect_bindings();
    }
    CU_ASSERT_EQUAL(pair_goodbye(&pair, 0, true), 0);
    CU_ASSERT_EQUAL_FATAL(pair_connect(&pair, 0), 0);
    expect_all_blocks();
    close_pair();
}

/* R-SESS-31, I-33: everything is freed, with new Generations; nothing of others. */
static void release_frees_all(void)
{
    struct pair_config config = unchecked_config();
    open_connected(&config);
    for (uint32_t n = 0; n < 6; n++)
        run(0, KBTP_OP_ALLOC_STORE, 2 * n, 8, n % 2 ? KBTP_FLAG_SEAL : 0);
    run(1, KBTP_OP_ALLOC_STORE, 0, 8, KBTP_FLAG_SEAL);
    CU_ASSERT_EQUAL(pair_goodbye(&pair, 0, true), 0);
    CU_ASSERT_EQUAL(why(0), 0);
    pair_settle(&pair);
    CU_ASSERT_EQUAL(state_of(0), KBTP_SESSION_FREE);
    for (uint32_t n = 0; n < 16; n++) {
        struct kbtp_entry entry = kbtp_table_read(&pair.mem, &pair.target.pool.table, n);
        CU_ASSERT_EQUAL(entry.flags, 0);
        CU_ASSERT_EQUAL(entry.generation, n < 12 && n % 2 == 0 ? 3 : 1);
    }
    CU_ASSERT_EQUAL(usage_of(1), 1);
    CU_ASSERT_EQUAL_FATAL(pair_connect(&pair, 0), 0);
    CU_ASSERT_EQUAL(usage_of(0), 0);
    expect_status(run(1, KBTP_OP_LOAD, 0, 8, 0), KBTP_STATUS_OK);
    run(1, KBTP_OP_FREE, 0, 0, 0);
    expect_all_blocks();
    close_pair();
}

/* I-01, R-LOAD-07, R-SESS-31: the blocks come back when the LOADs of others are over. */
static void release_while_others_load(void)
{
    struct pair_config config = unchecked_config();
    config.workers = 1;
    open_connected(&config);
    fill(0, 0x66);
    run(0, KBTP_OP_ALLOC_STORE, 0, 8, KBTP_FLAG_SEAL);
    run(0, KBTP_OP_ALLOC_STORE, 1, 8, KBTP_FLAG_SEAL);
    hold(1u << RDMA_WRITE);
    fill(1, 0);
    struct kbtp_operation load = pair_operation(&pair, 0, KBTP_OP_LOAD, 0, 8, 0);
    load.stag = pair.initiators[1].region.stag;
    CU_ASSERT_EQUAL(pair_submit(&pair, 1, &load, 1), 0);
    pair_settle(&pair);
    uint64_t tail = mem_load64(&pair.mem, pair.memory.tail);
    CU_ASSERT_EQUAL(pair_goodbye(&pair, 0, true), 0);
    pair_settle(&pair);
    CU_ASSERT_EQUAL(mem_load64(&pair.mem, pair.memory.tail) >> 32, (tail >> 32) + 1);
    CU_ASSERT_EQUAL(state_of(0), KBTP_SESSION_FREE);
    let_go();
    expect_status(pair_wait(&pair, 1), KBTP_STATUS_OK);
    CU_ASSERT(holds(1, 0x66, 8));
    pair_settle(&pair);
    CU_ASSERT_EQUAL(mem_load64(&pair.mem, pair.memory.tail) >> 32, (tail >> 32) + 2);
    CU_ASSERT_EQUAL_FATAL(pair_connect(&pair, 0), 0);
    expect_all_blocks();
    close_pair();
}

/* I-34, R-SESS-30, -31: GOODBYE comes after all requests before it; no completion of its own. */
static void goodbye_waits_for_requests(void)
{
    struct pair_config config = pair_defaults();
    struct peer peer;
    struct kbtp_message answer, hello = peer_hello(3, 4);
    open_with(&config);
    CU_ASSERT_EQUAL_FATAL(peer_open(&peer, another_handle()), 0);
    CU_ASSERT_EQUAL_FATAL(peer_connect(&peer, "target"), 0);
    for (uint32_t n = 0; n < 100; n++) {
        pair_poll(&pair);
        peer_poll(&peer);
        if (n == 40)
            CU_ASSERT_EQUAL(peer_send_message(&peer, &hello), 0);
        if (n != 60)
            continue;
        for (uint32_t i = 0; i < 4; i++) {
            struct kbtp_message request = peer_request(KBTP_OP_ALLOC_STORE, i, 0x4020 + i, 0);
            CU_ASSERT_EQUAL(peer_send_message(&peer, &request), 0);
        }
        struct kbtp_message goodbye = peer_request(KBTP_OP_GOODBYE, 9, 0, KBTP_GOODBYE_RELEASE);
        CU_ASSERT_EQUAL(peer_send_message(&peer, &goodbye), 0);
    }
    CU_ASSERT_EQUAL(peer.state, PEER_DOWN);
    CU_ASSERT_EQUAL(peer.failed, RDMA_OK);
    CU_ASSERT_EQUAL(peer.got_count, 5);
    CU_ASSERT_EQUAL(
        kbtp_wire_decode(peer.receives[peer.got[4]], peer.got_octets[4], false, &answer, NULL), 0);
    CU_ASSERT_EQUAL(answer.header.opcode, KBTP_OP_COMPLETION);
    CU_ASSERT_EQUAL(answer.header.request_id, 3);
    CU_ASSERT_EQUAL(state_of(2), KBTP_SESSION_FREE);
    peer_close(&peer);
    close_pair();
}

/* I-10: a HELLO waits until the old connection of its session is drained. */
static void a_hello_waits_for_the_old_connection(void)
{
    struct pair_config config = unchecked_config();
    config.initiators = 1;
    open_connected(&config); /* at worker 0 */
    pair_settle(&pair);
    provider->cut(pair.initiators[0].cpu.rdma, 0);
    /* One completion, or some looks: worker 0 knows of the end, but has not polled all that was
     * flushed. */
    for (uint32_t n = 0; n < 10 && state_of(0) != KBTP_SESSION_ENDING; n++)
        CU_ASSERT(kbtp_worker_poll(pair.workers[0], &pair.worker_cpus[0], 1) == 1 ||
                  provider->real);
    CU_ASSERT_EQUAL(state_of(0), KBTP_SESSION_ENDING);
    struct kbtp_outcome outcome;
    struct pair_initiator *it = &pair.initiators[0];
    for (uint32_t n = 0; n < 100 && !pair_is_down(&pair, 0); n++)
        kbtp_initiator_poll(it->initiator, &it->cpu, &outcome, 1);
    CU_ASSERT_EQUAL_FATAL(pair_begin(&pair, 0), 0);
    for (uint32_t n = 0; n < 50; n++) {
        pair_poll_worker(&pair, 1);
        kbtp_initiator_poll(it->initiator, &it->cpu, &outcome, 1);
    }
    CU_ASSERT_EQUAL(kbtp_initiator_state(it->initiator), KBTP_INITIATOR_CONNECTING);
    CU_ASSERT_EQUAL(look_at_workers().hellos, 1);
    CU_ASSERT_EQUAL(state_of(0), KBTP_SESSION_ENDING);
    pair_settle(&pair);
    CU_ASSERT_EQUAL(kbtp_initiator_state(it->initiator), KBTP_INITIATOR_READY);
    CU_ASSERT_EQUAL(look_at_workers().hellos, 0);
    expect_status(run(0, KBTP_OP_ALLOC_STORE, 0, 8, 0), KBTP_STATUS_OK);
    close_pair();
}

int main(void)
{
    static const struct test tests[] = {
        {"each gets its own", each_gets_its_own},
        {"quotas change by reconnecting", quotas_change_by_reconnecting},
        {"bad grants are refused", bad_grants_are_refused},
        {"first generations differ", first_generations_differ},
        {"unknown initiators take free grants", unknown_initiators_take_free_grants},
        {"known initiators get their own", known_initiators_get_their_own},
        {"an active ID is rejected", an_active_id_is_rejected},
        {"bindings are kept", bindings_are_kept},
        {"RELEASE frees all", release_frees_all},
        {"GOODBYE waits for requests", goodbye_waits_for_requests},
        {"a HELLO waits for the old connection", a_hello_waits_for_the_old_connection},
    };
    static const struct test of_loop[] = {
        {"RELEASE while others load", release_while_others_load},
    };
    return run_over_providers("ref/session", tests, sizeof tests / sizeof *tests, PROVIDERS) ||
           run_over_providers("ref/session", of_loop, sizeof of_loop / sizeof *of_loop, 1);
}
