/* SPDX-License-Identifier: BSD-3-Clause */
/* What `kbtp bench --verify` checks blocks with: no wrong octet is missed. */
#include "cli/pattern.h"

#include <string.h>

#include "tests/run.h"

#define OCTETS 67u

static _Alignas(8) uint8_t data[OCTETS + 1];

static void every_octet_counts(void)
{
    for (size_t octets = 0; octets <= OCTETS; octets++) {
        data[octets] = 0x5a;
        pattern_fill(data, octets, 7);
        CU_ASSERT_EQUAL(data[octets], 0x5a);
        CU_ASSERT_EQUAL(pattern_differs(data, octets, 7), octets);
        for (size_t i = 0; i < octets; i++)
            for (unsigned bit = 1; bit < 256; bit <<= 1) {
                data[i] ^= (uint8_t)bit;
                CU_ASSERT_EQUAL(pattern_differs(data, octets, 7), i);
                data[i] ^= (uint8_t)bit;
            }
    }
}

/* Not those of another handle or version, nor shifted. */
static void no_other_octets(void)
{
    uint64_t key = pattern_key(1, 0x1000, 3);
    CU_ASSERT_NOT_EQUAL(key, pattern_key(2, 0x1000, 3));
    CU_ASSERT_NOT_EQUAL(key, pattern_key(1, 0x1001, 3));
    CU_ASSERT_NOT_EQUAL(key, pattern_key(1, 0x1000, 4));
    CU_ASSERT_NOT_EQUAL(key, pattern_key(1, 3, 0x1000));
    pattern_fill(data, 64, key);
    for (size_t shift = 8; shift < 64; shift += 8)
        CU_ASSERT_NOT_EQUAL(memcmp(data, data + shift, 8), 0);
    CU_ASSERT_EQUAL(pattern_differs(data, 64, ~key), 0);
}

int main(void)
{
    static const struct test tests[] = {{"every octet counts", every_octet_counts},
                                        {"no other octets", no_other_octets}};
    return run_tests("pattern", tests, sizeof tests / sizeof *tests);
}
