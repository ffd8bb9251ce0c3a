/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/pattern.h"

#include <string.h>

#include "sim/random.h"

/* Odd, so that no two words of a block are the same. */
#define STEP UINT64_C(0x9e3779b97f4a7c15)

uint64_t pattern_key(uint64_t seed, uint64_t handle, uint64_t version)
{
    uint64_t key = seed;
    key = sim_random64(&key) ^ handle;
    key = sim_random64(&key) ^ version;
    return sim_random64(&key);
}

void pattern_fill(void *data, size_t octets, uint64_t key)
{
    uint64_t *words = data;
    for (size_t i = 0; i < octets / 8; i++)
        words[i] = key + i * STEP;
    uint64_t last = key + octets / 8 * STEP;
    memcpy(words + octets / 8, &last, octets % 8);
}

size_t pattern_differs(const void *data, size_t octets, uint64_t key)
{
    const uint64_t *words = data;
    uint64_t wrong = 0;
    for (size_t i = 0; i < octets / 8; i++)
        wrong |= words[i] ^ (key + i * STEP);
    uint64_t last = key + octets / 8 * STEP;
    if (wrong == 0 && memcmp(words + octets / 8, &last, octets % 8) == 0)
        return octets;
    for (size_t i = 0; i < octets; i++) {
        uint64_t word = key + i / 8 * STEP;
        if (memcmp((const char *)data + i, (const char *)&word + i % 8, 1) != 0)
            return i;
    }
    return octets;
}
