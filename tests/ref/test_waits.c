/* SPDX-License-Identifier: BSD-3-Clause */
/* Allocations that wait for another one (draft: Allocation Quotas; I-05): what the gauges say of
 * it, and that a worker without a completion queue keeps nobody waiting. */
#include <errno.h>

#include "ref/counters.h"
#include "tests/ref/fixture.h"

#define BLOCKS 16u /* of pair_defaults(): as many slots */

static struct rdma_ops broken;

/* ---- the ring, as another worker has it -------------------------------------------------- */

static struct kbtp_alloc allocs[BLOCKS];

static void take_tickets(uint32_t count)
{
    for (uint32_t n = 0; n < count; n++) {
        allocs[n] = (struct kbtp_alloc){0};
        kbtp_ring_take_ticket(&pair.mem, &pair.target.pool.ring, &allocs[n]);
    }
}

static bool consume(uint32_t n)
{
    return kbtp_ring_poll_ordered(&pair.mem, &pair.target.pool.ring, &allocs[n]);
}

static void give_back(uint32_t n)
{
    struct kbtp_deferred_free frees[1];
    struct kbtp_deferred deferred = {.frees = frees, .capacity = 1};
    CU_ASSERT_EQUAL(
        kbtp_ring_free(&pair.mem, &pair.target.pool.ring, &deferred, allocs[n].block_offset),
        KBTP_FREE_WRITTEN);
}

static int64_t gauge(enum kbtp_gauge which)
{
    struct kbtp_gauges gauges;
    kbtp_target_gauges(&pair.mem, &pair.target, NULL, &gauges);
    for (uint32_t i = 0; i < pair.config.workers; i++)
        kbtp_worker_gauges(pair.workers[i], &gauges);
    return gauges.values[which];
}

/* One worker: the test is the other one. */
static void open_one(void)
{
    struct pair_config config = pair_defaults();
    config.workers = 1;
    config.unchecked = true;
    open_connected(&config);
}

/* N - 1 tickets come and go, and the free that gets ticket N waits for that of ticket 0. */
static void a_lap(void)
{
    for (uint32_t n = 1; n < BLOCKS; n++) {
        expect_status(run(0, KBTP_OP_ALLOC_STORE, 0, 8, 0), KBTP_STATUS_OK);
        expect_status(run(0, KBTP_OP_FREE, 0, 0, 0), KBTP_STATUS_OK);
        CU_ASSERT_EQUAL(gauge(KBTP_GAUGE_OLDEST_TICKET), n + 1);
    }
    CU_ASSERT_EQUAL(gauge(KBTP_GAUGE_DEFERRED), 1);
}

static void submit_one(void)
{
    submit(0, KBTP_OP_ALLOC_STORE, 0, 8, 0, 1);
    pair_settle(&pair);
}

/* ---- a worker that makes no step --------------------------------------------------------- */

/*
 * R-RING-18: the test is a worker with ticket 0 that stalls. Each lap of the others costs them a
 * block more; that their allocations wait shows when the oldest ticket is more than N old.
 */
static void the_oldest_ticket(void)
{
    open_one();
    CU_ASSERT_EQUAL(gauge(KBTP_GAUGE_OLDEST_TICKET), 0);
    take_tickets(1);
    CU_ASSERT_EQUAL(gauge(KBTP_GAUGE_OLDEST_TICKET), 1);
    a_lap();
    CU_ASSERT_EQUAL(gauge(KBTP_GAUGE_TICKETS), 0);
    submit_one(); /* ticket N: its block was freed, but is not there */
    CU_ASSERT_EQUAL(gauge(KBTP_GAUGE_OLDEST_TICKET), BLOCKS + 1);
    CU_ASSERT_EQUAL(gauge(KBTP_GAUGE_TICKETS), 1);
    CU_ASSERT_EQUAL(gauge(KBTP_GAUGE_RING_TICKETS), BLOCKS - 2);
    CU_ASSERT_FATAL(consume(0));
    expect_status(pair_wait(&pair, 0), KBTP_STATUS_OK);
    CU_ASSERT_EQUAL(gauge(KBTP_GAUGE_OLDEST_TICKET), 0);
    CU_ASSERT_EQUAL(gauge(KBTP_GAUGE_TICKETS), 0);
    give_back(0);
    close_pair();
}

/* ---- a worker whose completion queue is broken ------------------------------------------- */

static int cq_poll_fails(struct rdma *r, uint32_t cq, struct rdma_wc *wc, uint32_t count)
{
    (void)r, (void)cq, (void)wc, (void)count;
    return -EIO;
}

static struct rdma *rdma_of_worker(void)
{
    return pair.worker_cpus[0].rdma;
}

/* The worker learns of nothing any more. Returns what to restore. */
static const struct rdma_ops *break_queue(void)
{
    struct rdma *rdma = rdma_of_worker();
    const struct rdma_ops *whole = rdma->ops;
    broken = *whole;
    broken.cq_poll = cq_poll_fails;
    rdma->ops = &broken;
    return whole;
}

static void poll_broken(void)
{
    CU_ASSERT_EQUAL(kbtp_worker_poll(pair.workers[0], &pair.worker_cpus[0], 1), -EIO);
}

/* R-QUOTA-18: the slot of its ticket is consumed when it is filled, and the block goes back, once,
 * whatever becomes of the request. */
static void broken_with_a_ticket(bool stops)
{
    open_one();
    take_tickets(BLOCKS);
    for (uint32_t n = 0; n < BLOCKS; n++)
        CU_ASSERT_FATAL(consume(n));
    submit_one();
    const struct rdma_ops *whole = break_queue();
    poll_broken();
    CU_ASSERT_EQUAL(gauge(KBTP_GAUGE_TICKETS), 1);
    give_back(0); /* for that ticket */
    CU_ASSERT_EQUAL(gauge(KBTP_GAUGE_OLDEST_TICKET), 1);
    poll_broken();
    CU_ASSERT_EQUAL(gauge(KBTP_GAUGE_OLDEST_TICKET), 0);
    take_tickets(1); /* the next one */
    CU_ASSERT_FATAL(consume(0));
    for (uint32_t n = 0; n < BLOCKS; n++)
        give_back(n);
    rdma_of_worker()->ops = whole;
    if (stops) {
        kbtp_worker_stop(pair.workers[0], &pair.worker_cpus[0]);
        pair_settle(&pair);
        CU_ASSERT_EQUAL(gauge(KBTP_GAUGE_RING_TICKETS), BLOCKS);
    } else {
        expect_status(pair_wait(&pair, 0), KBTP_STATUS_INTERNAL);
        expect_all_blocks();
    }
    close_pair();
}

static void a_broken_queue_and_a_ticket(void)
{
    broken_with_a_ticket(false);
    broken_with_a_ticket(true);
}

/* Its free is written when the slot is consumed. */
static void a_broken_queue_and_a_free(void)
{
    open_one();
    take_tickets(1);
    a_lap();
    const struct rdma_ops *whole = break_queue();
    CU_ASSERT_FATAL(consume(0));
    poll_broken();
    CU_ASSERT_EQUAL(gauge(KBTP_GAUGE_DEFERRED), 0);
    give_back(0);
    rdma_of_worker()->ops = whole;
    close_pair();
}

int main(void)
{
    static const struct test tests[] = {
        {"the oldest ticket", the_oldest_ticket},
        {"a broken queue and a ticket", a_broken_queue_and_a_ticket},
        {"a broken queue and a free", a_broken_queue_and_a_free},
    };
    return run_over_providers("ref/waits", tests, sizeof tests / sizeof *tests, PROVIDERS);
}
