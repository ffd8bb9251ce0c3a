/* SPDX-License-Identifier: BSD-3-Clause */
#include "net/mem.h"

#include <stdbool.h>
#include <string.h>

/* The largest piece that `at` and `octets` allow: what one native access moves. */
static size_t piece_at(const void *at, size_t octets)
{
    uintptr_t place = (uintptr_t)at;
    if (octets >= 8 && place % 8 == 0)
        return 8;
    if (octets >= 4 && place % 4 == 0)
        return 4;
    return 1;
}

void mem_read_native(void *to, const void *at, size_t octets)
{
    const char *from = at;
    for (char *out = to; octets != 0;) {
        size_t n = piece_at(from, octets);
        if (n == 8) {
            uint64_t v = __atomic_load_n((const uint64_t *)(const void *)from, __ATOMIC_ACQUIRE);
            memcpy(out, &v, n);
        } else if (n == 4) {
            uint32_t v = __atomic_load_n((const uint32_t *)(const void *)from, __ATOMIC_ACQUIRE);
            memcpy(out, &v, n);
        } else {
            *out = __atomic_load_n(from, __ATOMIC_ACQUIRE);
        }
        from += n;
        out += n;
        octets -= n;
    }
}

/* Writes `octets` from `from`, or from one 8-octet pattern again and again when `repeat` is set. */
static void write_pieces(char *at, const char *from, size_t octets, bool repeat)
{
    while (octets != 0) {
        size_t n = piece_at(at, octets);
        if (n == 8) {
            uint64_t v;
            memcpy(&v, from, n);
            __atomic_store_n((uint64_t *)(void *)at, v, __ATOMIC_RELAXED);
        } else if (n == 4) {
            uint32_t v;
            memcpy(&v, from, n);
            __atomic_store_n((uint32_t *)(void *)at, v, __ATOMIC_RELAXED);
        } else {
            __atomic_store_n(at, *from, __ATOMIC_RELAXED);
        }
        at += n;
        if (!repeat)
            from += n;
        octets -= n;
    }
}

void mem_write_native(void *at, const void *from, size_t octets)
{
    write_pieces(at, from, octets, false);
}

void mem_fill_native(void *at, uint8_t octet, size_t octets)
{
    char pattern[8];
    memset(pattern, octet, sizeof pattern);
    write_pieces(at, pattern, octets, true);
}
