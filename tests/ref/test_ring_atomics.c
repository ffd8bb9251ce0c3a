/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The counters of a ring and the atomics of an RNIC (draft: Free-Block Ring, RDMAP Binding,
 * InfiniBand and RoCEv2): what an initiator's FetchAdd on Head returns and leaves, in every byte
 * order of both hosts. CPUs see a counter in the order of their own memory.
 */
#include <string.h>

#include "ref/octets.h"
#include "ref/ring.h"
#include "sim/device.h"
#include "tests/ref/peer.h"
#include "tests/run.h"

#define SLOTS 4u
#define BLOCKS 3u
#define LAST 0xfffffffau /* the Ticket passes 2^32 on the way */

static struct peer target, initiator;
static struct mem mem;
static struct {
    struct kbtp_slot slots[SLOTS];
    mem64 head, tail;
} __attribute__((aligned(16))) memory;
static struct kbtp_ring ring;
static struct rdma_region head;
static struct rdma_caps caps;
static struct sim_device *device;

/* The 8 octets of a word in this order, as a number; and back. */
static uint64_t in_order(uint64_t word, bool big_endian)
{
    return big_endian == KBTP_HOST_IS_BIG ? word : __builtin_bswap64(word);
}

static void settle(void)
{
    for (uint32_t n = 0; n < 20; n++) {
        peer_poll(&target);
        peer_poll(&initiator);
    }
}

static void open_device(const struct sim_rnic_config *knobs, bool unmasked)
{
    const struct sim_rnic_limits limits = {0};
    struct sim_device_config config = {.rnic = *knobs, .octets = UINT64_C(16) << 20};
    config.rnic.bits = SIM_RNIC_BITS & ~(unmasked ? (uint32_t)RDMA_CAP_MASKED : 0);
    config.rnic.ordering = unmasked ? SIM_ORDERING_INFINIBAND : SIM_ORDERING_RDMAP;
    config.rnic.binding = unmasked ? RDMA_BINDING_INFINIBAND : RDMA_BINDING_RDMAP;
    config.rnic.max_message = 1u << 16;
    config.rnic.max_reads = 4;
    config.rnic.regions = 8;
    device = sim_device_open(&config);
    CU_ASSERT_PTR_NOT_NULL_FATAL(device);
    CU_ASSERT_EQUAL_FATAL(peer_open(&target, sim_device_handle(device, &limits)), 0);
    CU_ASSERT_EQUAL_FATAL(peer_open(&initiator, sim_device_handle(device, &limits)), 0);
    CU_ASSERT_EQUAL_FATAL(peer_listen(&target, "ring"), 0);
    CU_ASSERT_EQUAL_FATAL(peer_connect(&initiator, "ring"), 0);
    settle();
    CU_ASSERT_EQUAL_FATAL(initiator.state, PEER_CONNECTED);
    rdma_caps(initiator.rdma, &caps);
    CU_ASSERT_EQUAL_FATAL(rdma_reg(target.rdma, &memory.head, sizeof memory.head,
                                   RDMA_LOCAL_WRITE | RDMA_REMOTE_ATOMIC, 0x1000, &head),
                          0);
}

static void close_device(void)
{
    CU_ASSERT_EQUAL(rdma_dereg(target.rdma, &head), 0);
    peer_disconnect(&initiator);
    settle();
    peer_close(&initiator);
    peer_close(&target);
    sim_device_close(device);
}

static void open_ring(bool unmasked)
{
    const struct kbtp_ring_config config = {.slot_count = SLOTS,
                                            .block_count = BLOCKS,
                                            .first_ticket = LAST,
                                            .first_offset = 0x100000,
                                            .offset_step = 64,
                                            .unmasked = unmasked};
    CU_ASSERT_EQUAL_FATAL(
        kbtp_ring_init(&mem, &ring, &config, memory.slots, &memory.head, &memory.tail, NULL), 0);
}

/* A FetchAdd of the initiator on Head, in the form of the ring: what it was told, as a number. */
static uint64_t fetch_add(void)
{
    struct rdma_sge sge = {initiator.sends, 8, initiator.region.lkey};
    struct rdma_wr wr = {.op = RDMA_FETCH_ADD,
                         .flags = RDMA_SIGNALED,
                         .sges = &sge,
                         .sge_count = 1,
                         .remote_to = head.base_to,
                         .remote_stag = head.stag,
                         .fetch_add = {kbtp_ring_add_data(&ring), kbtp_ring_add_mask(&ring)}};
    struct rdma_wc wc = {.status = RDMA_LOST};
    uint64_t word;
    CU_ASSERT_EQUAL_FATAL(rdma_post_send(initiator.rdma, initiator.conn, &wr, 1), 0);
    CU_ASSERT_EQUAL(rdma_cq_poll(initiator.rdma, initiator.cq, &wc, 1), 1);
    CU_ASSERT_EQUAL(wc.status, RDMA_OK);
    memcpy(&word, initiator.sends, sizeof word);
    return in_order(word, caps.atomic_reply_big_endian);
}

/* The draft: Ticket in the high half, 16 * (t mod N) in the low, or with unmasked FetchAdd zero. */
static uint64_t counter_at(uint32_t ticket, bool unmasked)
{
    return (uint64_t)ticket << 32 | (unmasked ? 0 : 16 * (ticket % SLOTS));
}

/*
 * R-RDMAP-06, R-RING-08, -10, R-IB-02, -03: tickets taken by RNIC and by CPU follow each other, in
 * the memory order of this host and any order of the reply; each gets the block of its slot.
 */
static void take_turns(bool reply_big_endian, bool unmasked)
{
    open_device(&(struct sim_rnic_config){.atomic_memory_big_endian = KBTP_HOST_IS_BIG,
                                          .atomic_reply_big_endian = reply_big_endian},
                unmasked);
    open_ring(unmasked);
    for (uint32_t n = 0; n < 3 * SLOTS; n++) {
        struct kbtp_deferred_free room[BLOCKS];
        struct kbtp_deferred deferred = {.frees = room, .capacity = BLOCKS};
        struct kbtp_alloc alloc = {0};
        uint32_t ticket = LAST + n;
        if (n % 3 == 2) {
            kbtp_ring_take_ticket(&mem, &ring, &alloc);
        } else {
            uint64_t told = fetch_add();
            CU_ASSERT_EQUAL(told, counter_at(ticket, unmasked));
            kbtp_ring_adopt_ticket(&alloc, told);
        }
        CU_ASSERT_EQUAL(alloc.ticket, ticket);
        CU_ASSERT_EQUAL(mem_load64(&mem, &memory.head), counter_at(ticket + 1, unmasked));
        CU_ASSERT_TRUE(kbtp_ring_poll_ordered(&mem, &ring, &alloc));
        CU_ASSERT_EQUAL(alloc.block_offset, 0x100000 + 64 * (n % BLOCKS));
        CU_ASSERT_EQUAL(kbtp_ring_free(&mem, &ring, &deferred, alloc.block_offset),
                        KBTP_FREE_WRITTEN);
        CU_ASSERT_EQUAL(mem_load64(&mem, &memory.tail), counter_at(ticket + 1 + BLOCKS, unmasked));
    }
    close_device();
}

static void tickets_of_rnic_and_cpu(void)
{
    for (uint32_t knobs = 0; knobs < 4; knobs++)
        take_turns(knobs & 1, knobs & 2);
}

/* R-RING-10: a target of the other byte order, of which this side sees nothing but the replies. */
static void a_target_of_the_other_order(void)
{
    for (uint32_t knobs = 0; knobs < 4; knobs++) {
        bool unmasked = knobs & 2;
        const bool other = !KBTP_HOST_IS_BIG;
        open_device(&(struct sim_rnic_config){.atomic_memory_big_endian = other,
                                              .atomic_reply_big_endian = knobs & 1},
                    unmasked);
        open_ring(unmasked);
        mem_store64(&mem, &memory.head, in_order(counter_at(LAST, unmasked), other));
        for (uint32_t n = 0; n < 2 * SLOTS; n++) {
            CU_ASSERT_EQUAL(fetch_add(), counter_at(LAST + n, unmasked));
            CU_ASSERT_EQUAL(in_order(mem_load64(&mem, &memory.head), other),
                            counter_at(LAST + n + 1, unmasked));
        }
        close_device();
    }
}

int main(void)
{
    static const struct test tests[] = {
        {"tickets of RNIC and CPU", tickets_of_rnic_and_cpu},
        {"a target of the other order", a_target_of_the_other_order},
    };
    return run_tests("ring and atomics", tests, sizeof tests / sizeof *tests);
}
