/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/histogram.h"

#define SUB (UINT64_C(1) << SIM_HISTOGRAM_SHIFT)

/* Of a number whose highest bit is `top`, the SHIFT bits below that tell. */
static uint32_t bucket_of(uint64_t value)
{
    if (value < 2 * SUB)
        return (uint32_t)value;
    uint32_t top = 63u - (uint32_t)__builtin_clzll(value), drop = top - SIM_HISTOGRAM_SHIFT;
    return (uint32_t)(drop * SUB + (value >> drop));
}

/* The largest number in it. */
static uint64_t top_of(uint32_t bucket)
{
    if (bucket < 2 * SUB)
        return bucket;
    uint32_t drop = (uint32_t)(bucket / SUB) - 1;
    return ((SUB + bucket % SUB) << drop) + ((UINT64_C(1) << drop) - 1);
}

void sim_histogram_add(struct sim_histogram *histogram, uint64_t value)
{
    histogram->buckets[bucket_of(value)]++;
    histogram->count++;
    if (value > histogram->max)
        histogram->max = value;
}

uint64_t sim_histogram_top(const struct sim_histogram *histogram, uint32_t bucket)
{
    return top_of(bucket) < histogram->max ? top_of(bucket) : histogram->max;
}

uint64_t sim_histogram_at(const struct sim_histogram *histogram, double share)
{
    double wanted = share * (double)histogram->count;
    uint64_t below = 0;
    for (uint32_t i = 0; i < SIM_HISTOGRAM_BUCKETS; i++) {
        below += histogram->buckets[i];
        if (histogram->buckets[i] != 0 && (double)below >= wanted)
            return sim_histogram_top(histogram, i);
    }
    return histogram->max;
}
