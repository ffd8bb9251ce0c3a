/* SPDX-License-Identifier: BSD-3-Clause */
/* What `kbtp bench` counts latencies with. */
#include "sim/histogram.h"

#include <stdlib.h>

#include "tests/run.h"

static struct sim_histogram histogram;

static void empty(void)
{
    histogram = (struct sim_histogram){0};
    CU_ASSERT_EQUAL(sim_histogram_at(&histogram, 0.5), 0);
    CU_ASSERT_EQUAL(sim_histogram_at(&histogram, 1), 0);
}

static void small_numbers_are_exact(void)
{
    histogram = (struct sim_histogram){0};
    for (uint64_t value = 0; value < 256; value++)
        sim_histogram_add(&histogram, 255 - value);
    for (uint64_t value = 0; value < 256; value++)
        CU_ASSERT_EQUAL(sim_histogram_at(&histogram, (double)(value + 1) / 256), value);
    CU_ASSERT_EQUAL(histogram.count, 256);
    CU_ASSERT_EQUAL(histogram.max, 255);
}

/* A percentile is never too small, and too large by less than 1/128; the largest is exact. */
static void all_numbers(void)
{
    for (unsigned bit = 0; bit < 64; bit++)
        for (uint64_t mix = 0; mix < 64; mix++) {
            uint64_t value = (UINT64_C(1) << bit) | ((UINT64_C(1) << bit) - 1) / 63 * mix;
            histogram = (struct sim_histogram){0};
            sim_histogram_add(&histogram, value);
            sim_histogram_add(&histogram, UINT64_MAX);
            uint64_t found = sim_histogram_at(&histogram, 0.5);
            CU_ASSERT_TRUE(found >= value);
            CU_ASSERT_TRUE(found - value <= value / 128);
            CU_ASSERT_EQUAL(sim_histogram_at(&histogram, 1), UINT64_MAX);
        }
}

static void percentiles(void)
{
    histogram = (struct sim_histogram){0};
    for (int i = 0; i < 9990; i++)
        sim_histogram_add(&histogram, 10);
    for (int i = 0; i < 9; i++)
        sim_histogram_add(&histogram, 100);
    sim_histogram_add(&histogram, 1000003);
    CU_ASSERT_EQUAL(sim_histogram_at(&histogram, 0.5), 10);
    CU_ASSERT_EQUAL(sim_histogram_at(&histogram, 0.999), 10);
    CU_ASSERT_EQUAL(sim_histogram_at(&histogram, 0.9991), 100);
    CU_ASSERT_EQUAL(sim_histogram_at(&histogram, 1), 1000003);
}

int main(void)
{
    static const struct test tests[] = {{"empty", empty},
                                        {"small numbers are exact", small_numbers_are_exact},
                                        {"all numbers", all_numbers},
                                        {"percentiles", percentiles}};
    return run_tests("histogram", tests, sizeof tests / sizeof *tests);
}
