/* SPDX-License-Identifier: BSD-3-Clause */
/* The binding to InfiniBand and RoCEv2 (draft: InfiniBand and RoCEv2): the form of the counters,
 * and the same messages and operations as over RDMAP. */
#include <string.h>

#include "tests/ref/fixture.h"

static bool low_halves_are_zero(void)
{
    return (uint32_t)mem_load64(&pair.mem, pair.memory.head) == 0 &&
           (uint32_t)mem_load64(&pair.mem, pair.memory.tail) == 0;
}

/* Are the counters of a target on such a device unmasked? */
static bool unmasked_over(uint32_t binding, uint32_t without, bool wanted)
{
    struct rdma *handles[PAIR_WORKERS + PAIR_INITIATORS];
    struct pair_config config = pair_defaults();
    config.target.unmasked = wanted;
    CU_ASSERT_FATAL(provider->open());
    provider->loop->caps.binding = binding;
    provider->loop->caps.bits &= ~without;
    for (uint32_t i = 0; i < PAIR_WORKERS + PAIR_INITIATORS; i++)
        handles[i] = another_handle();
    CU_ASSERT_EQUAL_FATAL(pair_open(&pair, &config, handles), 0);
    CU_ASSERT_EQUAL_FATAL(pair_connect(&pair, 0), 0);
    expect_status(run(0, KBTP_OP_ALLOC_STORE, 0, 8, 0), KBTP_STATUS_OK);
    bool unmasked = kbtp_ring_add_mask(&pair.target.pool.ring) == 0;
    CU_ASSERT_EQUAL(low_halves_are_zero(), unmasked);
    close_pair();
    return unmasked;
}

/* I-38, R-RDMAP-06, R-IB-02: masked in the RDMAP binding, whatever the device can; elsewhere where
 * it can, and unless unmasked ones are wanted. */
static void the_form_of_the_counters(void)
{
    provider = &providers[0];
    CU_ASSERT_FALSE(unmasked_over(RDMA_BINDING_RDMAP, 0, false));
    CU_ASSERT_FALSE(unmasked_over(RDMA_BINDING_RDMAP, RDMA_CAP_MASKED, false));
    CU_ASSERT_FALSE(unmasked_over(RDMA_BINDING_INFINIBAND, 0, false));
    CU_ASSERT(unmasked_over(RDMA_BINDING_INFINIBAND, RDMA_CAP_MASKED, false));
    CU_ASSERT(unmasked_over(RDMA_BINDING_ROCE, RDMA_CAP_MASKED, false));
    CU_ASSERT(unmasked_over(RDMA_BINDING_INFINIBAND, 0, true));
}

/* R-IB-01 to -03, R-LE-01, -02, -04, -06: every operation, with the ring around several times, in
 * both orders of addresses. */
static void every_operation(void)
{
    provider = &provider_infiniband;
    for (uint32_t addr_le = 0; addr_le < 2; addr_le++) {
        struct pair_config config = pair_defaults();
        config.target.addr_le = addr_le;
        config.target.first_ticket = 0xfffffff0;
        config.unchecked = true;
        open_connected(&config);
        for (uint32_t round = 0; round < 50; round++) {
            uint16_t how = round % 2 ? KBTP_FLAG_INLINE : 0;
            fill(0, (uint8_t)(1 + round));
            struct kbtp_outcome stored = run(0, KBTP_OP_ALLOC_STORE, 2, 24, how);
            expect_status(stored, KBTP_STATUS_OK);
            CU_ASSERT_EQUAL(stored.block_offset, 0x100000 + 64 * (round % 16));
            expect_status(run(0, KBTP_OP_STORE, 2, 32, how | KBTP_FLAG_SEAL), KBTP_STATUS_OK);
            fill(0, 0);
            expect_status(run(0, KBTP_OP_LOAD, 2, 64, 0), KBTP_STATUS_OK);
            CU_ASSERT(holds(0, (uint8_t)(1 + round), 32));
            expect_status(run(0, KBTP_OP_FREE, 2, 0, 0), KBTP_STATUS_OK);
            CU_ASSERT(low_halves_are_zero());
            CU_ASSERT_EQUAL(mem_load64(&pair.mem, pair.memory.head) >> 32,
                            (uint32_t)(0xfffffff0 + round + 1));
        }
        expect_all_blocks();
        close_pair();
    }
}

int main(void)
{
    static const struct test tests[] = {
        {"the form of the counters", the_form_of_the_counters},
        {"every operation", every_operation},
    };
    return run_tests("InfiniBand", tests, sizeof tests / sizeof *tests);
}
