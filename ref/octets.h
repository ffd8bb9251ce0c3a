/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Byte orders of the draft (Conventions and Definitions): network order everywhere, except the
 * address fields, which are little-endian when the target selects ADDR_LE.
 *
 * Each function maps a host value to the value whose octets in memory are in the named order, and
 * back: they are their own inverses.
 */
#ifndef KBTP_REF_OCTETS_H
#define KBTP_REF_OCTETS_H

#include <stdbool.h>
#include <stdint.h>

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define KBTP_HOST_IS_BIG 0
#else
#define KBTP_HOST_IS_BIG 1
#endif

static inline uint32_t octets_be32(uint32_t value)
{
    return KBTP_HOST_IS_BIG ? value : __builtin_bswap32(value);
}

/* An address field: little-endian with ADDR_LE, else network order. */
static inline uint64_t octets_address64(uint64_t value, bool addr_le)
{
    return addr_le == !KBTP_HOST_IS_BIG ? value : __builtin_bswap64(value);
}

#endif
