/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/timed/clock.h"

#include <assert.h>
#include <stdlib.h>

/*
 * A heap in which each event has four children: half the levels, and siblings share a cache line.
 * Only when events happen moves in it; what happens stays at its place.
 */
#define CHILDREN 4u
#define FIRST_ROOM 1024u
#define PLACE_BITS 24u
#define MOST_ROOM (1u << PLACE_BITS)

/* Which of two comes first is a matter of chance: as a number, so that no branch has to guess. */
static inline unsigned __int128 rank(const struct sim_clock_key *key)
{
    return (unsigned __int128)key->at_ns << 64 | key->order;
}

static inline bool is_before(const struct sim_clock_key *a, const struct sim_clock_key *b)
{
    return rank(a) < rank(b);
}

void sim_clock_free(struct sim_clock *clock)
{
    free(clock->keys);
    free(clock->events);
    clock->keys = NULL;
    clock->events = NULL;
    clock->count = clock->room = clock->first_free = 0;
}

static bool make_room(struct sim_clock *clock)
{
    size_t room = clock->room ? 2 * clock->room : FIRST_ROOM;
    if (room > MOST_ROOM)
        return false;
    struct sim_clock_key *keys = realloc(clock->keys, room * sizeof *keys);
    if (!keys)
        return false;
    clock->keys = keys;
    struct sim_clock_event *events = realloc(clock->events, room * sizeof *events);
    if (!events)
        return false;
    clock->events = events;
    clock->room = room;
    return true;
}

/* The one that was free last; without one all before clock->count are taken. */
static uint64_t take_place(struct sim_clock *clock)
{
    if (clock->first_free == 0)
        return clock->count;
    uint64_t place = clock->first_free - 1;
    clock->first_free = clock->events[place].next_free;
    return place;
}

void sim_clock_plan(struct sim_clock *clock, uint64_t at_ns, uint64_t sequence,
                    sim_clock_fn *happens, void *context, uint64_t number)
{
    assert(at_ns >= clock->now_ns);
    if (sequence > UINT64_MAX >> PLACE_BITS || (clock->count == clock->room && !make_room(clock))) {
        clock->no_memory = clock->stopped = true;
        return;
    }
    uint64_t place = take_place(clock);
    clock->events[place] = (struct sim_clock_event){happens, context, number, 0};
    const struct sim_clock_key key = {at_ns, sequence << PLACE_BITS | place};
    struct sim_clock_key *keys = clock->keys;
    size_t at = clock->count++;
    if (clock->count > clock->most)
        clock->most = clock->count;
    while (at > 0 && is_before(&key, &keys[(at - 1) / CHILDREN])) {
        keys[at] = keys[(at - 1) / CHILDREN];
        at = (at - 1) / CHILDREN;
    }
    keys[at] = key;
}

uint64_t sim_clock_next(const struct sim_clock *clock)
{
    bool stopped = clock->stopped || (clock->stop && *clock->stop);
    if (stopped || clock->count == 0 || clock->keys[0].at_ns > clock->end_ns)
        return SIM_CLOCK_NEVER;
    return clock->keys[0].at_ns;
}

/* The first of the children of `at`, or of those that exist; `count` when there is none. */
static inline size_t first_child(const struct sim_clock_key *keys, size_t count, size_t at)
{
    size_t child = at * CHILDREN + 1;
    if (child + CHILDREN <= count) {
        size_t left = child + is_before(&keys[child + 1], &keys[child]);
        size_t right = child + 2 + is_before(&keys[child + 3], &keys[child + 2]);
        return is_before(&keys[right], &keys[left]) ? right : left;
    }
    if (child >= count)
        return count;
    size_t first = child;
    for (child++; child < count; child++)
        if (is_before(&keys[child], &keys[first]))
            first = child;
    return first;
}

/* The first one leaves the heap, the last one takes its place. */
static void remove_first(struct sim_clock_key *keys, size_t count)
{
    const struct sim_clock_key last = keys[count];
    size_t at = 0;
    for (size_t child; (child = first_child(keys, count, at)) < count; at = child) {
        if (is_before(&last, &keys[child]))
            break;
        keys[at] = keys[child];
    }
    keys[at] = last;
}

static const struct sim_clock_event *event_of(const struct sim_clock *clock, size_t at)
{
    return &clock->events[clock->keys[at].order & (MOST_ROOM - 1)];
}

/* With many hosts nothing of what happens next is in a cache any more. */
static void fetch_soon(const struct sim_clock *clock)
{
    for (size_t at = 1; at < clock->count && at <= CHILDREN; at++)
        __builtin_prefetch(event_of(clock, at));
    if (clock->count == 0)
        return;
    const struct sim_clock_event *next = event_of(clock, 0);
    __builtin_prefetch(next->context);
    __builtin_prefetch((const void *)(uintptr_t)next->number);
}

void sim_clock_step(struct sim_clock *clock)
{
    assert(clock->count > 0);
    const struct sim_clock_key first = clock->keys[0];
    uint64_t place = first.order & (MOST_ROOM - 1);
    const struct sim_clock_event event = clock->events[place];
    clock->events[place].next_free = clock->first_free;
    clock->first_free = place + 1;
    if (--clock->count > 0)
        remove_first(clock->keys, clock->count);
    fetch_soon(clock);
    clock->now_ns = first.at_ns;
    clock->current = first.order >> PLACE_BITS;
    clock->happened++;
    event.happens(event.context, event.number);
}
