/* SPDX-License-Identifier: BSD-3-Clause */
/* The arithmetic of atomics (RFC 7306 section 5) in the byte orders of both RNICs. */
#include "net/mem.h"
#include "sim/rnic_state.h"

/* Eight octets as they lie in memory, taken for a number. The same function turns it back. */
static uint64_t number(uint64_t octets, bool big_endian)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    return big_endian ? __builtin_bswap64(octets) : octets;
#else
    return big_endian ? octets : __builtin_bswap64(octets);
#endif
}

uint64_t rnic_atomic_result(const struct sim_rnic *target, uint32_t op, const uint64_t operand[4],
                            uint64_t octets)
{
    bool big_endian = target->config.atomic_memory_big_endian;
    uint64_t value = number(octets, big_endian);
    if (op == RDMA_FETCH_ADD)
        value = mem_masked_sum64(value, operand[0], operand[1]);
    else if (((operand[0] ^ value) & operand[1]) == 0)
        value = (value & ~operand[3]) | (operand[2] & operand[3]);
    return number(value, big_endian);
}

uint64_t rnic_atomic_reply(const struct sim_rnic *initiator, const struct sim_rnic *target,
                           uint64_t octets)
{
    return number(number(octets, target->config.atomic_memory_big_endian),
                  initiator->config.atomic_reply_big_endian);
}
