/* SPDX-License-Identifier: BSD-3-Clause */
/* Direct Load (draft: Direct Modes): what the initiator reads by itself, and what it may not. */
#include <errno.h>
#include <string.h>

#include "ref/octets.h"
#include "tests/ref/fixture.h"
#include "tests/ref/peer.h"

static struct pair_config with_direct_load(void)
{
    struct pair_config config = pair_defaults();
    config.features = KBTP_FEATURE_DIRECT_LOAD;
    return config;
}

static struct kbtp_direct_load load_of(uint32_t i, uint64_t handle, uint32_t length)
{
    struct pair_initiator *it = &pair.initiators[i];
    return (struct kbtp_direct_load){
        .handle = handle, .into = it->data, .lkey = it->region.lkey, .length = length};
}

/* To its end. */
static struct kbtp_outcome direct_load(uint32_t i, const struct kbtp_direct_load *load)
{
    struct pair_initiator *it = &pair.initiators[i];
    CU_ASSERT_EQUAL_FATAL(kbtp_initiator_direct_load(it->initiator, &it->cpu, load, 9), 0);
    struct kbtp_outcome outcome = pair_wait(&pair, i);
    CU_ASSERT_EQUAL(outcome.cookie, 9);
    CU_ASSERT_EQUAL(outcome.handle, load->handle);
    CU_ASSERT_EQUAL(outcome.opcode, KBTP_OP_LOAD);
    return outcome;
}

/* ---- what is offered --------------------------------------------------------------------- */

/* R-SESS-18, -20, -23, R-POOL-01, -02, R-TBL-01: Table and Pool descriptors say where all is. */
static void what_is_offered(void)
{
    if (!can(RDMA_CAP_BASE_TO))
        return;
    struct pair_config config = with_direct_load();
    open_connected(&config);
    for (uint32_t i = 0; i < config.initiators; i++) {
        const struct kbtp_hello_ack *ack = said(i);
        CU_ASSERT_EQUAL(ack->features, KBTP_FEATURE_DIRECT_LOAD);
        CU_ASSERT_EQUAL(ack->table.count, config.initiators * config.handles);
        CU_ASSERT_EQUAL(ack->table_base_handle, config.target.first_handle);
        CU_ASSERT_EQUAL(ack->pool.count, config.target.block_count);
        CU_ASSERT_EQUAL(ack->pool.tagged_offset, config.target.first_offset);
        CU_ASSERT(ack->table.stag != 0 && ack->pool.stag != 0 && ack->table.stag != ack->pool.stag);
        CU_ASSERT_EQUAL(kbtp_initiator_features(pair.initiators[i].initiator),
                        KBTP_FEATURE_DIRECT_LOAD);
    }
    close_pair();
}

/* I-46, R-SESS-18: only to those that may have it and ask for it. Wrong peer: R-DL-01. */
static void who_gets_it(void)
{
    for (uint32_t asks = 0; asks < 2; asks++)
        for (uint32_t may = 0; may < 2; may++) {
            struct pair_config config = with_direct_load();
            struct peer peer;
            struct kbtp_message hello = peer_hello(1, 4), answer;
            uint16_t granted = asks && may ? KBTP_FEATURE_DIRECT_LOAD : 0;
            open_with(&config);
            pair.memory.grants[0].features = may ? KBTP_FEATURE_DIRECT_LOAD : 0;
            hello.hello.requested_features = asks ? UINT16_MAX : 0;
            CU_ASSERT_EQUAL_FATAL(peer_open(&peer, another_handle()), 0);
            CU_ASSERT_EQUAL_FATAL(peer_connect(&peer, "target"), 0);
            for (uint32_t n = 0; n < 100; n++) {
                pair_poll(&pair);
                peer_poll(&peer);
                if (n == 30)
                    CU_ASSERT_EQUAL(peer_send_message(&peer, &hello), 0);
            }
            CU_ASSERT_EQUAL_FATAL(peer_take(&peer, &answer), 0);
            CU_ASSERT_EQUAL(answer.header.status, KBTP_STATUS_OK);
            CU_ASSERT_EQUAL(answer.hello_ack.features, granted);
            CU_ASSERT_EQUAL(answer.hello_ack.table.stag != 0, granted != 0);
            CU_ASSERT_EQUAL(answer.hello_ack.pool.stag != 0, granted != 0);
            peer_disconnect(&peer);
            for (uint32_t n = 0; n < 100; n++) {
                pair_poll(&pair);
                peer_poll(&peer);
            }
            peer_close(&peer);
            close_pair();
        }
}

/*
 * N-01: where regions can be invalidated remotely, who knows an STag takes Direct Load from all, by
 * one Send, over a connection that has said no HELLO. What is loaded by the target goes on.
 */
static void one_can_end_it_for_all(void)
{
    struct pair_config config = with_direct_load();
    struct peer peer;
    if (!can(RDMA_CAP_SEND_INV | RDMA_CAP_INV_REGION))
        return;
    open_connected(&config);
    fill(0, 0x3c);
    expect_status(run(0, KBTP_OP_ALLOC_STORE, 0, 40, KBTP_FLAG_SEAL), KBTP_STATUS_OK);
    uint64_t handle = said(0)->handle_base;
    struct kbtp_direct_load load = load_of(0, handle, 40);
    CU_ASSERT_EQUAL(direct_load(0, &load).status, KBTP_STATUS_OK);
    CU_ASSERT_EQUAL_FATAL(peer_open(&peer, another_handle()), 0);
    CU_ASSERT_EQUAL_FATAL(peer_connect(&peer, "target"), 0);
    struct rdma_wr how = {.op = RDMA_SEND_INV, .imm_stag = said(1)->table.stag};
    for (uint32_t n = 0; n < 200; n++) {
        pair_poll(&pair);
        peer_poll(&peer);
        if (n == 50)
            CU_ASSERT_EQUAL(peer_send_as(&peer, &how, "x", 1), 0);
    }
    struct kbtp_outcome lost = direct_load(0, &load);
    CU_ASSERT_EQUAL(lost.error, -ECONNRESET);
    CU_ASSERT_EQUAL_FATAL(pair_connect(&pair, 0), 0);
    expect_status(run(0, KBTP_OP_LOAD, 0, 40, 0), KBTP_STATUS_OK);
    peer_close(&peer);
    close_pair();
}

/* Without RDMA_CAP_BASE_TO two regions of the same memory need not have the same offsets: then a
 * Block Offset would be no Tagged Offset, and the feature is not there. */
static void not_where_offsets_differ(void)
{
    struct pair_config config = with_direct_load();
    for (uint32_t differ = 0; differ < 2; differ++) {
        struct rdma *handles[PAIR_WORKERS + PAIR_INITIATORS];
        CU_ASSERT_FATAL(provider->open());
        provider->loop->caps.bits &= ~(uint32_t)RDMA_CAP_BASE_TO;
        provider->loop->base_step = differ ? 4096 : 0;
        for (uint32_t i = 0; i < PAIR_WORKERS + PAIR_INITIATORS; i++)
            handles[i] = another_handle();
        CU_ASSERT_EQUAL_FATAL(pair_open(&pair, &config, handles), 0);
        CU_ASSERT_EQUAL_FATAL(pair_connect(&pair, 0), 0);
        fill(0, 0x3c);
        expect_status(run(0, KBTP_OP_ALLOC_STORE, 0, 40, KBTP_FLAG_SEAL), KBTP_STATUS_OK);
        struct pair_initiator *it = &pair.initiators[0];
        struct kbtp_direct_load load = load_of(0, said(0)->handle_base, 64);
        if (differ) {
            CU_ASSERT_EQUAL(kbtp_initiator_features(it->initiator), 0);
            CU_ASSERT_EQUAL(said(0)->pool.stag, 0);
            CU_ASSERT_EQUAL(kbtp_initiator_direct_load(it->initiator, &it->cpu, &load, 1),
                            -ENOTSUP);
        } else {
            fill(0, 0);
            expect_status(direct_load(0, &load), KBTP_STATUS_OK);
            CU_ASSERT(holds(0, 0x3c, 40));
        }
        close_pair();
    }
}

/* ---- loading ----------------------------------------------------------------------------- */

/* R-DL-02, -06, R-GEN-03: the same as a LOAD, without a message to the target. */
static void as_a_load(void)
{
    struct pair_config config = with_direct_load();
    for (int addr_le = 0; addr_le < 2; addr_le++) {
        config.target.addr_le = addr_le;
        open_connected(&config);
        fill(0, 0x3c);
        struct kbtp_outcome bound = run(0, KBTP_OP_ALLOC_STORE, 5, 40, KBTP_FLAG_SEAL);
        expect_status(bound, KBTP_STATUS_OK);
        for (uint32_t i = 0; i < 2; i++) {
            struct kbtp_direct_load load = load_of(i, said(0)->handle_base + 5, 64);
            load.generation = i ? bound.generation : 0;
            fill(i, 0);
            struct kbtp_outcome outcome = direct_load(i, &load);
            expect_status(outcome, KBTP_STATUS_OK);
            CU_ASSERT_EQUAL(outcome.data_length, 40);
            CU_ASSERT_EQUAL(outcome.generation, bound.generation);
            CU_ASSERT_EQUAL(outcome.block_offset, bound.block_offset);
            CU_ASSERT(holds(i, 0x3c, 40));
        }
        close_pair();
    }
}

/* Binds handle n of initiator 0; its Generation. */
static uint16_t stored(uint32_t n, uint32_t length, uint16_t flags)
{
    struct kbtp_outcome outcome = run(0, KBTP_OP_ALLOC_STORE, n, length, flags);
    expect_status(outcome, KBTP_STATUS_OK);
    return outcome.generation;
}

/* What a target would refuse the initiator finds by itself (R-DL-04). */
static void what_is_refused(void)
{
    struct pair_config config = with_direct_load();
    open_connected(&config);
    uint16_t sealed = stored(0, 40, KBTP_FLAG_SEAL);
    uint16_t open = stored(1, 40, 0);
    stored(3, 0, KBTP_FLAG_SEAL | KBTP_FLAG_INLINE);
    uint64_t first = config.target.first_handle;
    struct kbtp_direct_load load = load_of(1, first, 39);
    expect_refused(direct_load(1, &load), KBTP_STATUS_TOO_LARGE, sealed);
    load = load_of(1, first, 64);
    load.generation = (uint16_t)(sealed + 2);
    expect_refused(direct_load(1, &load), KBTP_STATUS_STALE_GENERATION, sealed);
    load = load_of(1, first + 1, 64);
    expect_refused(direct_load(1, &load), KBTP_STATUS_NOT_SEALED, open);
    load = load_of(1, first + 2, 64);
    expect_refused(direct_load(1, &load), KBTP_STATUS_NOT_VALID, config.target.first_generation);
    load = load_of(1, first + 3, 0); /* I-48 */
    struct kbtp_outcome empty = direct_load(1, &load);
    expect_status(empty, KBTP_STATUS_OK);
    CU_ASSERT_EQUAL(empty.data_length, 0);
    struct pair_initiator *it = &pair.initiators[1];
    const uint64_t beyond[] = {first - 1, first + said(1)->table.count, 0, UINT64_MAX};
    for (uint32_t i = 0; i < sizeof beyond / sizeof *beyond; i++) {
        load = load_of(1, beyond[i], 64);
        CU_ASSERT_EQUAL(kbtp_initiator_direct_load(it->initiator, &it->cpu, &load, 9), -EINVAL);
    }
    expect_status(run(0, KBTP_OP_FREE, 0, 0, 0), KBTP_STATUS_OK);
    load = load_of(1, first, 64);
    expect_refused(direct_load(1, &load), KBTP_STATUS_NOT_VALID, (uint16_t)(sealed + 1));
    close_pair();
}

#define MANY 200u

/* As many at once as requests, mixed with them; each has one outcome. */
static void many_at_once(void)
{
    struct pair_config config = with_direct_load();
    open_connected(&config);
    stored(0, 64, KBTP_FLAG_SEAL);
    struct pair_initiator *it = &pair.initiators[0];
    bool told[MANY] = {false};
    uint32_t rounds = 0;
    for (uint64_t sent = 0, outcomes = 0; outcomes < MANY; rounds++) {
        CU_ASSERT_FATAL(rounds < 100 * MANY);
        struct kbtp_direct_load direct = load_of(0, said(0)->handle_base, 64);
        struct kbtp_operation load = pair_operation(&pair, 0, KBTP_OP_LOAD, 0, 64, 0);
        while (sent < MANY && kbtp_initiator_credits(it->initiator) != 0) {
            int failed = sent % 3 == 0
                             ? pair_submit(&pair, 0, &load, sent)
                             : kbtp_initiator_direct_load(it->initiator, &it->cpu, &direct, sent);
            CU_ASSERT_EQUAL_FATAL(failed, 0);
            sent++;
        }
        if (sent < MANY)
            CU_ASSERT_EQUAL(kbtp_initiator_direct_load(it->initiator, &it->cpu, &direct, 0),
                            -EAGAIN);
        struct kbtp_outcome outcome;
        pair_poll(&pair);
        while (pair_take(&pair, 0, &outcome)) {
            expect_status(outcome, KBTP_STATUS_OK);
            CU_ASSERT_FATAL(outcome.cookie < sent && !told[outcome.cookie]);
            told[outcome.cookie] = true;
            outcomes++;
        }
    }
    CU_ASSERT_EQUAL(kbtp_initiator_outstanding(it->initiator), 0);
    close_pair();
}

/* I-35: the connection ends between two reads; then the buffer is the caller's again. */
static void a_loss_between_two_reads(void)
{
    struct pair_config config = with_direct_load();
    uint32_t lost = 0;
    for (uint32_t polls = 0; polls < 12; polls++) {
        open_connected(&config);
        stored(0, 64, KBTP_FLAG_SEAL);
        struct pair_initiator *it = &pair.initiators[1];
        struct kbtp_direct_load load = load_of(1, said(0)->handle_base, 64);
        struct kbtp_outcome outcome;
        CU_ASSERT_EQUAL_FATAL(kbtp_initiator_direct_load(it->initiator, &it->cpu, &load, 4), 0);
        for (uint32_t i = 0; i < polls; i++)
            pair_poll(&pair);
        bool was_told = pair_take(&pair, 1, &outcome);
        provider->cut(it->cpu.rdma, 0);
        if (!was_told)
            outcome = pair_wait(&pair, 1);
        CU_ASSERT_EQUAL(outcome.cookie, 4);
        /* The last read may have been done, and its completion not seen yet. */
        CU_ASSERT(outcome.error == -ECONNRESET || outcome.status == KBTP_STATUS_OK);
        lost += outcome.error == -ECONNRESET;
        CU_ASSERT(!was_told || outcome.error == 0);
        pair_settle(&pair);
        CU_ASSERT(pair_is_down(&pair, 1));
        CU_ASSERT_EQUAL_FATAL(pair_connect(&pair, 1), 0);
        expect_status(direct_load(1, &load), KBTP_STATUS_OK);
        close_pair();
    }
    CU_ASSERT(lost >= 2 && lost < 12);
}

/* R-FREE-06, R-DL-04: the block is freed and bound anew while it is read, after any of the reads.
 * Whoever is told OK has the block that was bound when it began; else the entry has changed. */
static void a_free_between_two_reads(void)
{
    struct pair_config config = with_direct_load();
    uint32_t changed = 0;
    for (uint32_t polls = 0; polls < 12; polls++) {
        open_connected(&config);
        fill(0, 0x3c);
        uint16_t generation = stored(0, 40, KBTP_FLAG_SEAL);
        struct pair_initiator *it = &pair.initiators[1];
        struct kbtp_direct_load load = load_of(1, said(0)->handle_base, 64);
        fill(1, 0);
        CU_ASSERT_EQUAL_FATAL(kbtp_initiator_direct_load(it->initiator, &it->cpu, &load, 4), 0);
        for (uint32_t i = 0; i < polls; i++)
            pair_poll(&pair);
        loop_hold(it->cpu.rdma, 1u << RDMA_READ);
        expect_status(run(0, KBTP_OP_FREE, 0, 0, 0), KBTP_STATUS_OK);
        fill(0, 0x55);
        stored(0, 40, KBTP_FLAG_SEAL);
        loop_hold(it->cpu.rdma, 0);
        struct kbtp_outcome outcome = pair_wait(&pair, 1);
        CU_ASSERT_EQUAL(outcome.error, 0);
        changed += outcome.status == KBTP_STATUS_STALE_GENERATION;
        if (outcome.status == KBTP_STATUS_OK) {
            uint8_t octet = outcome.generation == generation ? 0x3c : 0x55;
            CU_ASSERT(holds(1, octet, 40));
        }
        close_pair();
    }
    CU_ASSERT(changed >= 2 && changed < 6);
}

/* R-TBL-12: bits of an entry's Flags that the draft does not define mean nothing to those who read
 * it, target or initiator, and are zero when it is written. */
static void undefined_entry_flags(void)
{
    struct pair_config config = with_direct_load();
    open_connected(&config);
    stored(0, 40, KBTP_FLAG_SEAL);
    stored(1, 40, 0);
    for (uint32_t i = 0; i < 3; i++) {
        mem32 *word = &pair.memory.entries[i].flags_generation;
        mem_store32(&pair.mem, word, mem_load32(&pair.mem, word) | octets_be32(0xfffc0000));
    }
    struct kbtp_direct_load load = load_of(1, said(0)->handle_base, 64);
    expect_status(direct_load(1, &load), KBTP_STATUS_OK);
    expect_status(run(0, KBTP_OP_LOAD, 0, 64, 0), KBTP_STATUS_OK);
    expect_status(run(0, KBTP_OP_LOAD, 1, 64, 0), KBTP_STATUS_NOT_SEALED);
    expect_status(run(0, KBTP_OP_LOAD, 2, 64, 0), KBTP_STATUS_NOT_VALID);
    expect_status(run(0, KBTP_OP_STORE, 1, 32, KBTP_FLAG_SEAL), KBTP_STATUS_OK);
    expect_status(run(0, KBTP_OP_FREE, 0, 0, 0), KBTP_STATUS_OK);
    expect_status(run(0, KBTP_OP_ALLOC_STORE, 2, 8, 0), KBTP_STATUS_OK);
    static const uint16_t flags[] = {0, KBTP_ENTRY_VALID | KBTP_ENTRY_SEALED, KBTP_ENTRY_VALID};
    for (uint32_t i = 0; i < 3; i++)
        CU_ASSERT_EQUAL(kbtp_table_read(&pair.mem, &pair.target.pool.table, i).flags, flags[i]);
    close_pair();
}

/* ---- rights ------------------------------------------------------------------------------ */

static struct rdma_wr aimed(uint16_t op, uint32_t stag, uint64_t to)
{
    return (struct rdma_wr){.op = op,
                            .flags = RDMA_SIGNALED,
                            .sge_count = 1,
                            .remote_stag = stag,
                            .remote_to = to,
                            .fetch_add = {.add = 1}};
}

/* A connected peer does this to the target's memory; returns how it ended. */
static enum rdma_status attempt(struct rdma_wr wr, uint32_t octets)
{
    struct rdma *r = another_handle();
    struct rdma_region region;
    struct rdma_conn_config config = {
        .send_depth = 4, .recv_depth = 1, .max_sge = 1, .reads_out = 1};
    uint64_t memory[8] = {0};
    uint32_t conn;
    struct rdma_event event;
    struct rdma_wc wc = {.status = RDMA_LOST};
    struct rdma_sge sge = {.addr = memory, .length = octets};
    CU_ASSERT_EQUAL_FATAL(rdma_cq_create(r, 8, &config.cq), 0);
    CU_ASSERT_EQUAL_FATAL(rdma_reg(r, memory, sizeof memory, RDMA_LOCAL_WRITE, 0, &region), 0);
    CU_ASSERT_EQUAL_FATAL(rdma_connect(r, "target", &config, NULL, 0, NULL, 0, &conn), 0);
    sge.lkey = region.lkey;
    wr.sges = &sge;
    bool drained = false, polled = false;
    for (uint32_t n = 0; n < 200 && !drained; n++) {
        pair_poll(&pair);
        while (!polled && rdma_cq_poll(r, config.cq, &wc, 1) == 1)
            polled = true;
        if (polled && wc.status == RDMA_OK)
            rdma_disconnect(r, conn);
        if (rdma_event(r, &event) != 1)
            continue;
        int failed = event.kind == RDMA_EVENT_CONNECTED ? rdma_post_send(r, conn, &wr, 1) : 0;
        if (failed) {
            CU_ASSERT_EQUAL(failed, -EINVAL); /* the target lets nobody have READs in progress */
            CU_ASSERT_NOT_EQUAL(wr.op, RDMA_WRITE);
            polled = true;
            wc.status = RDMA_REMOTE_ACCESS;
            rdma_disconnect(r, conn);
        }
        drained = event.kind == RDMA_EVENT_DRAINED;
    }
    CU_ASSERT(polled && drained);
    pair_settle(&pair);
    rdma_destroy(r, conn);
    rdma_dereg(r, &region);
    rdma_cq_destroy(r, config.cq);
    return wc.status;
}

/* Wrong peer: R-SESS-21, -22, R-TBL-08, R-DA-09. Table and pool are for reading only. */
static void nobody_writes_through_it(void)
{
    if (!can(RDMA_CAP_WRITE_ACKED | RDMA_CAP_FETCH_ADD))
        return;
    static const uint16_t ops[] = {RDMA_WRITE, RDMA_FETCH_ADD};
    for (uint32_t i = 0; i < 4; i++) {
        struct pair_config config = with_direct_load();
        config.initiators = 1;
        config.workers = 1;
        open_connected(&config);
        fill(0, 0x3c);
        stored(0, config.target.block_size, KBTP_FLAG_SEAL);
        const struct kbtp_direct_descriptor *to = i / 2 ? &said(0)->pool : &said(0)->table;
        const void *there = i / 2 ? (const void *)pair.memory.blocks : pair.memory.entries;
        uint64_t before, after;
        memcpy(&before, there, sizeof before);
        CU_ASSERT_EQUAL(attempt(aimed(RDMA_READ, to->stag, to->tagged_offset), 8), RDMA_OK);
        CU_ASSERT_EQUAL(attempt(aimed(ops[i % 2], to->stag, to->tagged_offset), 8),
                        RDMA_REMOTE_ACCESS);
        memcpy(&after, there, sizeof after);
        CU_ASSERT_EQUAL(after, before);
        close_pair();
    }
}

/* Wrong peer: R-SEC-01, -02. In default mode no STag of the target's opens anything. */
static void nobody_reads_in_default_mode(void)
{
    if (!can(RDMA_CAP_WRITE_ACKED | RDMA_CAP_FETCH_ADD))
        return;
    for (uint32_t i = 0; i < 6; i++) {
        struct pair_config config = pair_defaults();
        config.initiators = 1;
        config.workers = 1;
        open_connected(&config);
        const struct rdma_region *region = &pair.target.region;
        uint32_t stag = i < 3 ? region->stag : region->lkey;
        static const uint16_t ops[] = {RDMA_READ, RDMA_WRITE, RDMA_FETCH_ADD};
        CU_ASSERT_EQUAL(attempt(aimed(ops[i % 3], stag, region->base_to), 8), RDMA_REMOTE_ACCESS);
        CU_ASSERT_EQUAL(said(0)->features, 0);
        struct kbtp_direct_load load = load_of(0, said(0)->handle_base, 64);
        struct pair_initiator *it = &pair.initiators[0];
        CU_ASSERT_EQUAL(kbtp_initiator_direct_load(it->initiator, &it->cpu, &load, 1), -ENOTSUP);
        close_pair();
    }
}

int main(void)
{
    static const struct test tests[] = {
        {"what is offered", what_is_offered},
        {"who gets it", who_gets_it},
        {"as a LOAD", as_a_load},
        {"what is refused", what_is_refused},
        {"many at once", many_at_once},
        {"a loss between two reads", a_loss_between_two_reads},
        {"undefined entry flags", undefined_entry_flags},
        {"nobody writes through it", nobody_writes_through_it},
        {"nobody reads in default mode", nobody_reads_in_default_mode},
        {"one can end it for all", one_can_end_it_for_all},
    };
    /* Only the loop gives its regions other offsets than were asked for, and holds READs back. */
    static const struct test of_loop[] = {
        {"not where offsets differ", not_where_offsets_differ},
        {"a FREE between two reads", a_free_between_two_reads},
    };
    return run_over_providers("ref/direct_load", tests, sizeof tests / sizeof *tests, PROVIDERS) ||
           run_over_providers("ref/direct_load", of_loop, sizeof of_loop / sizeof *of_loop, 1);
}
