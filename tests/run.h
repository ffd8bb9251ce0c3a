/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The main() of a CUnit test program: one suite, the basic interface, exit status 1 when an
 * assertion failed.
 */
#ifndef KBTP_TESTS_RUN_H
#define KBTP_TESTS_RUN_H

#include <CUnit/Basic.h>
#include <stddef.h>

struct test {
    const char *name;
    CU_TestFunc run;
};

static inline int run_tests(const char *suite_name, const struct test *tests, size_t count)
{
    if (CU_initialize_registry() != CUE_SUCCESS)
        return 2;
    CU_Suite *suite = CU_add_suite(suite_name, NULL, NULL);
    for (size_t i = 0; suite && i < count; i++)
        CU_add_test(suite, tests[i].name, tests[i].run);
    int status = 2;
    if (CU_get_error() == CUE_SUCCESS) {
        CU_basic_set_mode(CU_BRM_NORMAL);
        CU_basic_run_tests();
        status = CU_get_number_of_failures() == 0 && CU_get_number_of_tests_run() == count ? 0 : 1;
    }
    CU_cleanup_registry();
    return status;
}

#endif
