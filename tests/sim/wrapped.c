/* SPDX-License-Identifier: BSD-3-Clause */
#include "wrapped.h"

#include <stddef.h>

unsigned wrapped;
unsigned fail_at;

/* Defined by --wrap only. */
extern void *__real_malloc(size_t size) __attribute__((weak));
extern void *__real_calloc(size_t count, size_t size) __attribute__((weak));
extern void *__real_realloc(void *memory, size_t size) __attribute__((weak));
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *memory, size_t size);

void *__wrap_malloc(size_t size)
{
    return ++wrapped == fail_at ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
    return ++wrapped == fail_at ? NULL : __real_calloc(count, size);
}

void *__wrap_realloc(void *memory, size_t size)
{
    return ++wrapped == fail_at ? NULL : __real_realloc(memory, size);
}
