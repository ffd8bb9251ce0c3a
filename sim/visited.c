/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/visited.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define FIRST_SLOTS (UINT64_C(1) << 16)

/* An open table of 64-bit keys, linear probing; 0 marks a free place. Keys are well mixed. */
struct table {
    uint64_t *keys;
    uint64_t slots; /* a power of two */
    uint64_t count;
};

/*
 * Contents of the exact form: rows of equal width lie one after the other in `rows`; the table maps
 * a hash to a row number (+1). Two rows with one hash sit in different places of the table.
 */
struct rows {
    struct table hashes;
    uint32_t *numbers; /* by place in the table */
    char *rows;
    size_t width, used, size;
};

struct sim_visited {
    struct table states;   /* by fingerprint */
    struct rows *contents; /* exact: one per STATE segment */
    struct rows whole;     /* exact: a state is a row of content numbers */
    uint32_t *row;         /* exact: the present state */
    uint32_t segments;
    bool exact;
    size_t octets, peak_octets, max_octets;
};

/* False at the bound. */
static bool claim(struct sim_visited *set, size_t octets)
{
    if (octets > set->max_octets - set->octets)
        return false;
    set->octets += octets;
    if (set->octets > set->peak_octets)
        set->peak_octets = set->octets;
    return true;
}

/* Large tables are probed at random: huge pages save most of the misses in the TLB. */
static int map_new(struct sim_visited *set, size_t octets, void **at)
{
    if (!claim(set, octets))
        return -ENOSPC;
    *at = mmap(NULL, octets, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (*at == MAP_FAILED) {
        *at = NULL;
        set->octets -= octets;
        return -ENOMEM;
    }
    madvise(*at, octets, MADV_HUGEPAGE);
    return 0;
}

static void map_free(struct sim_visited *set, void *at, size_t octets)
{
    if (!at)
        return;
    munmap(at, octets);
    set->octets -= octets;
}

static uint64_t place_of(const struct table *table, uint64_t key)
{
    return (key * 0x9e3779b97f4a7c15u) >> (64 - __builtin_ctzll(table->slots));
}

static bool is_full(const struct table *table)
{
    return table->slots == 0 || table->count >= table->slots / 8 * 5;
}

/* Doubles the table; moves `numbers` along when there are any. */
static int table_grow(struct sim_visited *set, struct table *table, uint32_t **numbers,
                      uint64_t first_slots)
{
    uint64_t slots = table->slots ? table->slots * 2 : first_slots;
    struct table grown = {.slots = slots, .count = table->count};
    uint32_t *grown_numbers = NULL;
    void *at = NULL;
    int failed = map_new(set, slots * sizeof *grown.keys, &at);
    grown.keys = at;
    if (!failed && numbers) {
        failed = map_new(set, slots * sizeof *grown_numbers, &at);
        grown_numbers = at;
    }
    if (failed) {
        map_free(set, grown.keys, slots * sizeof *grown.keys);
        return failed;
    }
    for (uint64_t i = 0; i < table->slots; i++) {
        if (table->keys[i] == 0)
            continue;
        uint64_t place = place_of(&grown, table->keys[i]);
        while (grown.keys[place] != 0)
            place = (place + 1) & (slots - 1);
        grown.keys[place] = table->keys[i];
        if (numbers)
            grown_numbers[place] = (*numbers)[i];
    }
    map_free(set, table->keys, table->slots * sizeof *table->keys);
    if (numbers) {
        map_free(set, *numbers, table->slots * sizeof **numbers);
        *numbers = grown_numbers;
    }
    *table = grown;
    return 0;
}

/* Where the key is, or would be put. */
static uint64_t find_key(const struct table *table, uint64_t key)
{
    uint64_t place = place_of(table, key);
    while (table->keys[place] != 0 && table->keys[place] != key)
        place = (place + 1) & (table->slots - 1);
    return place;
}

static int fingerprint_add(struct sim_visited *set, uint64_t key)
{
    struct table *table = &set->states;
    key += key == 0;
    if (table->slots != 0 && table->keys[find_key(table, key)] == key)
        return 0;
    if (is_full(table)) {
        int failed = table_grow(set, table, NULL, FIRST_SLOTS);
        if (failed)
            return failed;
    }
    table->keys[find_key(table, key)] = key;
    table->count++;
    return 1;
}

static int rows_append(struct sim_visited *set, struct rows *rows, const void *content)
{
    if (rows->used + rows->width > rows->size) {
        size_t size = rows->size ? rows->size * 2 : 64 * rows->width;
        assert(size != 0);     /* no segment is empty */
        if (!claim(set, size)) /* both are there for a moment */
            return -ENOSPC;
        char *grown = realloc(rows->rows, size);
        set->octets -= grown ? rows->size : size;
        if (!grown)
            return -ENOMEM;
        rows->rows = grown;
        rows->size = size;
    }
    memcpy(rows->rows + rows->used, content, rows->width);
    rows->used += rows->width;
    return 0;
}

/* The place of a content, or where it would be put. */
static uint64_t find_row(const struct rows *rows, uint64_t hash, const void *content)
{
    const struct table *table = &rows->hashes;
    uint64_t place = place_of(table, hash);
    while (table->keys[place] != 0 &&
           (table->keys[place] != hash ||
            memcmp(rows->rows + rows->numbers[place] * rows->width, content, rows->width) != 0))
        place = (place + 1) & (table->slots - 1);
    return place;
}

/* Finds or adds a content: 1 new, 0 there, negative at the bound; *number is its number. */
static int rows_add(struct sim_visited *set, struct rows *rows, uint64_t hash, const void *content,
                    uint32_t *number)
{
    struct table *table = &rows->hashes;
    hash += hash == 0;
    if (table->slots != 0) {
        uint64_t place = find_row(rows, hash, content);
        *number = rows->numbers[place];
        if (table->keys[place] != 0)
            return 0;
    }
    int failed = is_full(table) ? table_grow(set, table, &rows->numbers, 64) : 0;
    if (!failed)
        failed = table->count == UINT32_MAX ? -ENOSPC : rows_append(set, rows, content);
    if (failed)
        return failed;
    uint64_t place = find_row(rows, hash, content);
    *number = (uint32_t)table->count++;
    table->keys[place] = hash;
    rows->numbers[place] = *number;
    return 1;
}

static int exact_add(struct sim_visited *set, const struct sim_arena *arena)
{
    uint32_t columns = 0, number;
    for (uint32_t i = 0; i < arena->segments_count; i++) {
        const struct sim_segment *segment = &arena->segments[i];
        if (segment->kind != SIM_STATE)
            continue;
        int added =
            rows_add(set, &set->contents[i], segment->hash, segment->at, &set->row[columns++]);
        if (added < 0)
            return added;
    }
    return rows_add(set, &set->whole, arena->hash, set->row, &number);
}

static bool exact_open(struct sim_visited *set, const struct sim_arena *arena)
{
    set->segments = arena->segments_count;
    set->contents = calloc(set->segments, sizeof *set->contents);
    set->row = calloc(set->segments, sizeof *set->row);
    if (!set->contents || !set->row)
        return false;
    uint32_t columns = 0;
    for (uint32_t i = 0; i < set->segments; i++) {
        set->contents[i].width = arena->segments[i].hashed;
        columns += arena->segments[i].kind == SIM_STATE;
    }
    set->whole.width = columns * sizeof *set->row;
    return true;
}

struct sim_visited *sim_visited_new(bool exact, const struct sim_arena *arena, size_t max_octets)
{
    struct sim_visited *set = calloc(1, sizeof *set);
    if (!set)
        return NULL;
    set->exact = exact;
    set->max_octets = max_octets;
    if (exact && !exact_open(set, arena)) {
        sim_visited_free(set);
        return NULL;
    }
    return set;
}

static void rows_free(struct sim_visited *set, struct rows *rows)
{
    map_free(set, rows->hashes.keys, rows->hashes.slots * sizeof *rows->hashes.keys);
    map_free(set, rows->numbers, rows->hashes.slots * sizeof *rows->numbers);
    free(rows->rows);
}

void sim_visited_free(struct sim_visited *set)
{
    if (!set)
        return;
    map_free(set, set->states.keys, set->states.slots * sizeof *set->states.keys);
    for (uint32_t i = 0; set->contents && i < set->segments; i++)
        rows_free(set, &set->contents[i]);
    rows_free(set, &set->whole);
    free(set->contents);
    free(set->row);
    free(set);
}

int sim_visited_add(struct sim_visited *set, const struct sim_arena *arena)
{
    return set->exact ? exact_add(set, arena) : fingerprint_add(set, arena->hash);
}

uint64_t sim_visited_count(const struct sim_visited *set)
{
    return set->exact ? set->whole.hashes.count : set->states.count;
}

size_t sim_visited_octets(const struct sim_visited *set)
{
    return set->octets;
}

size_t sim_visited_peak(const struct sim_visited *set)
{
    return set->peak_octets;
}
