/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/arena.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "sim/random.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#define REGION_SEGMENT_OCTETS 256u /* whole lines, so that nothing lies between two segments */
_Static_assert(REGION_SEGMENT_OCTETS % SIM_LINE == 0, "REGION_SEGMENT_OCTETS");

/* Follows the saved octets in the undo log, so that records can be popped from the end. */
struct undo_record {
    uint64_t old_hash;
    uint32_t segment;
    uint32_t size; /* octets saved, rounded up to 8 */
};

static int map_arena(struct sim_arena *arena, void *want, size_t size)
{
    memset(arena, 0, sizeof *arena);
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | (want ? MAP_FIXED_NOREPLACE : 0);
    char *base = mmap(want, size, PROT_READ | PROT_WRITE, flags, -1, 0);
    if (base == MAP_FAILED)
        return -errno;
    if (want && base != want) { /* a kernel before 4.17 takes the address for a hint */
        munmap(base, size);
        return -EEXIST;
    }
    arena->base = base;
    arena->size = size;
    size_t lines = size / SIM_LINE;
    arena->line_owner = calloc(lines, sizeof *arena->line_owner);
    /* All at once: agents keep pointers to their segments, so these must not move. */
    arena->segments_capacity = lines < UINT16_MAX ? (uint32_t)lines : UINT16_MAX;
    arena->segments = calloc(arena->segments_capacity, sizeof *arena->segments);
    if (!arena->line_owner || !arena->segments) {
        sim_arena_close(arena);
        return -ENOMEM;
    }
    return 0;
}

int sim_arena_open(struct sim_arena *arena, size_t size)
{
    return map_arena(arena, (void *)(uintptr_t)SIM_ARENA_BASE, size);
}

int sim_arena_open_anywhere(struct sim_arena *arena, size_t size)
{
    return map_arena(arena, NULL, size);
}

void sim_arena_close(struct sim_arena *arena)
{
    if (arena->base)
        munmap(arena->base, arena->size);
    free(arena->line_owner);
    free(arena->segments);
    free(arena->undo);
    memset(arena, 0, sizeof *arena);
}

void *sim_segment_new(struct sim_arena *arena, const char *name, size_t size,
                      enum sim_segment_kind kind)
{
    size_t space = (size + SIM_LINE - 1) / SIM_LINE * SIM_LINE;
    if (size == 0 || size > UINT32_MAX || space > arena->size - arena->used ||
        arena->segments_count == arena->segments_capacity)
        return NULL;
    uint32_t index = arena->segments_count++;
    arena->segments[index] = (struct sim_segment){
        .name = name,
        .at = arena->base + arena->used,
        .size = (uint32_t)size,
        .hashed = (uint32_t)size,
        .kind = (uint8_t)kind,
    };
    for (size_t i = 0; i < space / SIM_LINE; i++)
        arena->line_owner[arena->used / SIM_LINE + i] = (uint16_t)index;
    arena->used += space;
    return arena->segments[index].at;
}

char *sim_region_new(struct sim_arena *arena, const char *name, size_t octets, uint32_t owner)
{
    char *first = NULL;
    for (size_t done = 0; done < octets; done += REGION_SEGMENT_OCTETS) {
        size_t rest = octets - done;
        size_t size = rest < REGION_SEGMENT_OCTETS ? rest : REGION_SEGMENT_OCTETS;
        char *at = sim_segment_new(arena, name, size, SIM_STATE);
        if (!at)
            return NULL;
        sim_segment_of(arena, at)->granted = true;
        sim_segment_of(arena, at)->owner = (uint8_t)owner;
        if (!first)
            first = at;
    }
    return first;
}

struct sim_segment *sim_segment_find(struct sim_arena *arena, const void *at)
{
    uintptr_t place = (uintptr_t)at, base = (uintptr_t)arena->base;
    if (place < base || place - base >= arena->used)
        return NULL;
    struct sim_segment *segment = sim_segment_of(arena, at);
    return (uintptr_t)at - (uintptr_t)segment->at < segment->size ? segment : NULL;
}

static uint64_t hash_segment(const struct sim_arena *arena, const struct sim_segment *segment)
{
    /*
     * The index is mixed in well: the hash of the world is a sum, and states that are each other's
     * mirror image (two agents have changed places) must differ like any others.
     */
    uint64_t index = (uint64_t)(segment - arena->segments) + 1;
    return sim_mix64(XXH3_64bits(segment->at, segment->hashed) + sim_mix64(index));
}

void sim_arena_seal(struct sim_arena *arena)
{
    arena->hash = 0;
    for (uint32_t i = 0; i < arena->segments_count; i++) {
        arena->segments[i].hash = hash_segment(arena, &arena->segments[i]);
        if (arena->segments[i].kind == SIM_STATE)
            arena->hash += arena->segments[i].hash;
    }
}

static bool undo_grow(struct sim_arena *arena, size_t need)
{
    size_t size = arena->undo_size ? arena->undo_size : 1u << 20;
    while (size < need)
        size *= 2;
    char *grown = realloc(arena->undo, size);
    if (!grown)
        return false;
    arena->undo = grown;
    arena->undo_size = size;
    return true;
}

void sim_touch_record(struct sim_arena *arena, struct sim_segment *segment)
{
    uint32_t size = (segment->size + 7u) & ~7u;
    assert(segment->kind == SIM_STATE);
    size_t need = arena->undo_used + size + sizeof(struct undo_record);
    if (need > arena->undo_size && !undo_grow(arena, need)) {
        arena->failed = true; /* the step cannot be taken back: whoever runs steps looks here */
        return;
    }
    char *at = arena->undo + arena->undo_used;
    memcpy(at, segment->at, segment->size);
    struct undo_record record = {
        .old_hash = segment->hash, .segment = (uint32_t)(segment - arena->segments), .size = size};
    memcpy(at + size, &record, sizeof record);
    arena->undo_used = need;
    segment->stamp = arena->step_stamp;
}

/* The record that ends at `end` of the undo log. */
static struct undo_record record_before(const struct sim_arena *arena, size_t end)
{
    struct undo_record record;
    memcpy(&record, arena->undo + end - sizeof record, sizeof record);
    return record;
}

void sim_arena_commit(struct sim_arena *arena)
{
    for (size_t end = arena->undo_used; end > arena->undo_start;) {
        struct undo_record record = record_before(arena, end);
        struct sim_segment *segment = &arena->segments[record.segment];
        uint64_t hash = hash_segment(arena, segment);
        arena->hash += hash - segment->hash;
        segment->hash = hash;
        end -= record.size + sizeof record;
    }
}

void sim_arena_undo(struct sim_arena *arena, size_t mark)
{
    while (arena->undo_used > mark) {
        struct undo_record record = record_before(arena, arena->undo_used);
        struct sim_segment *segment = &arena->segments[record.segment];
        arena->undo_used -= record.size + sizeof record;
        memcpy(segment->at, arena->undo + arena->undo_used, segment->size);
        arena->hash += record.old_hash - segment->hash;
        segment->hash = record.old_hash;
    }
    arena->undo_start = arena->undo_used;
}

void *sim_arena_save(const struct sim_arena *arena)
{
    void *saved = malloc(arena->used);
    if (saved)
        memcpy(saved, arena->base, arena->used);
    return saved;
}

void sim_arena_restore(struct sim_arena *arena, const void *saved)
{
    memcpy(arena->base, saved, arena->used);
    sim_arena_seal(arena);
}

const char *sim_arena_check(const struct sim_arena *arena)
{
    if (arena->failed)
        return NULL; /* what was touched since has no record */
    for (uint32_t i = 0; i < arena->segments_count; i++)
        if (hash_segment(arena, &arena->segments[i]) != arena->segments[i].hash)
            return arena->segments[i].name;
    return NULL;
}
