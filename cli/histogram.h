/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Many numbers in little memory, as HdrHistogram keeps them: exact below 256, and above in buckets
 * of 1/128 of a power of two, so that a percentile is at most 0.8 % too large. Nothing is allocated
 * when a number is added.
 */
#ifndef KBTP_CLI_HISTOGRAM_H
#define KBTP_CLI_HISTOGRAM_H

#include <stdint.h>

#define HISTOGRAM_SHIFT 7u
#define HISTOGRAM_BUCKETS ((64u - HISTOGRAM_SHIFT + 1u) << HISTOGRAM_SHIFT)

/* All zero at first. */
struct histogram {
    uint64_t buckets[HISTOGRAM_BUCKETS];
    uint64_t count, max;
};

void histogram_add(struct histogram *histogram, uint64_t value);

/* That `share` (0 to 1) of the numbers are not above; 0 without numbers. */
uint64_t histogram_at(const struct histogram *histogram, double share);

#endif
