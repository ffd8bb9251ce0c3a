/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * As much of CUnit as the tests use, for hosts that it is not installed for. Assertions are counted
 * and go on; a _FATAL one ends its test.
 */
#ifndef KBTP_TESTS_HOSTS_CUNIT_BASIC_H
#define KBTP_TESTS_HOSTS_CUNIT_BASIC_H

#include <setjmp.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

typedef void (*CU_TestFunc)(void);
typedef struct {
    const char *name;
} CU_Suite;

enum { CUE_SUCCESS, CU_BRM_NORMAL };

#define CU_HOST_TESTS 128u

struct cu_host {
    CU_Suite suite;
    const char *names[CU_HOST_TESTS];
    CU_TestFunc tests[CU_HOST_TESTS];
    unsigned count, failed;
    unsigned long asserts;
    jmp_buf end;
};
/* One for all files of a program. */
extern struct cu_host cu_host;
__attribute__((weak)) struct cu_host cu_host;

static inline void cu_host_assert(bool holds, bool fatal, const char *words, const char *file,
                                  int line)
{
    cu_host.asserts++;
    if (holds)
        return;
    cu_host.failed++;
    printf("%s:%d: %s\n", file, line, words);
    if (fatal)
        longjmp(cu_host.end, 1);
}

static inline int CU_initialize_registry(void)
{
    memset(&cu_host, 0, sizeof cu_host);
    return CUE_SUCCESS;
}

static inline CU_Suite *CU_add_suite(const char *name, const void *begin, const void *end)
{
    (void)begin, (void)end;
    cu_host.suite.name = name;
    return &cu_host.suite;
}

static inline void CU_add_test(const CU_Suite *suite, const char *name, CU_TestFunc test)
{
    (void)suite;
    if (cu_host.count == CU_HOST_TESTS)
        return;
    cu_host.names[cu_host.count] = name;
    cu_host.tests[cu_host.count++] = test;
}

static inline int CU_basic_run_tests(void)
{
    for (unsigned i = 0; i < cu_host.count; i++) {
        unsigned before = cu_host.failed;
        if (setjmp(cu_host.end) == 0)
            cu_host.tests[i]();
        if (cu_host.failed != before)
            printf("FAILED: %s: %s\n", cu_host.suite.name, cu_host.names[i]);
    }
    printf("%s: %u tests, %lu assertions, %u failed\n", cu_host.suite.name, cu_host.count,
           cu_host.asserts, cu_host.failed);
    return CUE_SUCCESS;
}

#define CU_get_error() CUE_SUCCESS
#define CU_basic_set_mode(mode) ((void)(mode))
#define CU_get_number_of_failures() (cu_host.failed)
#define CU_get_number_of_tests_run() (cu_host.count)
#define CU_cleanup_registry() ((void)0)

/* In braces, as CUnit's are. */
#define CU_HOST_ASSERT(holds, fatal, words) \
    { \
        cu_host_assert((holds), fatal, words, __FILE__, __LINE__); \
    }
#define CU_ASSERT(a) CU_HOST_ASSERT((a), false, #a)
#define CU_ASSERT_TRUE(a) CU_HOST_ASSERT((a), false, #a)
#define CU_ASSERT_FALSE(a) CU_HOST_ASSERT(!(a), false, "not " #a)
#define CU_ASSERT_EQUAL(a, b) CU_HOST_ASSERT((a) == (b), false, #a " == " #b)
#define CU_ASSERT_NOT_EQUAL(a, b) CU_HOST_ASSERT((a) != (b), false, #a " != " #b)
#define CU_ASSERT_PTR_NULL(a) CU_HOST_ASSERT((a) == NULL, false, #a " is NULL")
#define CU_ASSERT_PTR_NOT_NULL(a) CU_HOST_ASSERT((a) != NULL, false, #a " is not NULL")
#define CU_ASSERT_STRING_EQUAL(a, b) CU_HOST_ASSERT(strcmp(a, b) == 0, false, #a " equals " #b)
#define CU_ASSERT_STRING_NOT_EQUAL(a, b) CU_HOST_ASSERT(strcmp(a, b) != 0, false, #a " differs")
#define CU_ASSERT_FATAL(a) CU_HOST_ASSERT((a), true, #a)
#define CU_ASSERT_TRUE_FATAL(a) CU_HOST_ASSERT((a), true, #a)
#define CU_ASSERT_EQUAL_FATAL(a, b) CU_HOST_ASSERT((a) == (b), true, #a " == " #b)
#define CU_ASSERT_PTR_NOT_NULL_FATAL(a) CU_HOST_ASSERT((a) != NULL, true, #a " is not NULL")

#endif
