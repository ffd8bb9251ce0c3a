/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Many numbers in little memory, as HdrHistogram keeps them: exact below 256, and above in buckets
 * of 1/128 of a power of two, so that a percentile is at most 0.8 % too large. Nothing is allocated
 * when a number is added.
 */
#ifndef KBTP_SIM_HISTOGRAM_H
#define KBTP_SIM_HISTOGRAM_H

#include <stdint.h>

#define SIM_HISTOGRAM_SHIFT 7u
#define SIM_HISTOGRAM_BUCKETS ((64u - SIM_HISTOGRAM_SHIFT + 1u) << SIM_HISTOGRAM_SHIFT)

/* All zero at first. */
struct sim_histogram {
    uint64_t buckets[SIM_HISTOGRAM_BUCKETS];
    uint64_t count, max;
};

void sim_histogram_add(struct sim_histogram *histogram, uint64_t value);

/* That `share` (0 to 1) of the numbers are not above; 0 without numbers. */
uint64_t sim_histogram_at(const struct sim_histogram *histogram, double share);

/* The largest number that a bucket counts, or the largest there is. */
uint64_t sim_histogram_top(const struct sim_histogram *histogram, uint32_t bucket);

#endif
