/* SPDX-License-Identifier: BSD-3-Clause */
/* SplitMix64: the one source of chance; equal seeds give equal runs everywhere. */
#ifndef KBTP_SIM_RANDOM_H
#define KBTP_SIM_RANDOM_H

#include <stdint.h>

/* A bijection that spreads every bit over all. */
static inline uint64_t sim_mix64(uint64_t x)
{
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

static inline uint64_t sim_random64(uint64_t *state)
{
    return sim_mix64(*state += 0x9e3779b97f4a7c15u);
}

/* 0 to below - 1; below is at least 1 and far below 2^32, so the bias does not matter here. */
static inline uint32_t sim_random_below(uint64_t *state, uint32_t below)
{
    return (uint32_t)(((sim_random64(state) >> 32) * below) >> 32);
}

#endif
