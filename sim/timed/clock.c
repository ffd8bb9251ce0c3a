/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/timed/clock.h"

#include <assert.h>
#include <stdlib.h>

/* A heap in which each event has four children: half the levels, and siblings share cache lines. */
#define CHILDREN 4u
#define FIRST_ROOM 1024u

static bool is_before(const struct sim_clock_event *a, const struct sim_clock_event *b)
{
    return a->at_ns != b->at_ns ? a->at_ns < b->at_ns : a->sequence < b->sequence;
}

void sim_clock_free(struct sim_clock *clock)
{
    free(clock->events);
    clock->events = NULL;
    clock->count = clock->room = 0;
}

static bool make_room(struct sim_clock *clock)
{
    size_t room = clock->room ? 2 * clock->room : FIRST_ROOM;
    struct sim_clock_event *events = realloc(clock->events, room * sizeof *events);
    if (!events)
        return false;
    clock->events = events;
    clock->room = room;
    return true;
}

void sim_clock_plan(struct sim_clock *clock, uint64_t at_ns, uint64_t sequence,
                    sim_clock_fn *happens, void *context, uint64_t number)
{
    assert(at_ns >= clock->now_ns);
    if (clock->count == clock->room && !make_room(clock)) {
        clock->no_memory = clock->stopped = true;
        return;
    }
    const struct sim_clock_event event = {at_ns, sequence, happens, context, number};
    struct sim_clock_event *events = clock->events;
    size_t at = clock->count++;
    if (clock->count > clock->most)
        clock->most = clock->count;
    while (at > 0 && is_before(&event, &events[(at - 1) / CHILDREN])) {
        events[at] = events[(at - 1) / CHILDREN];
        at = (at - 1) / CHILDREN;
    }
    events[at] = event;
}

uint64_t sim_clock_next(const struct sim_clock *clock)
{
    if (clock->stopped || clock->count == 0 || clock->events[0].at_ns > clock->end_ns)
        return SIM_CLOCK_NEVER;
    return clock->events[0].at_ns;
}

/* The first of the children of `at`, or of those that exist; `count` when there is none. */
static size_t first_child(const struct sim_clock_event *events, size_t count, size_t at)
{
    size_t child = at * CHILDREN + 1, end = child + CHILDREN;
    if (child >= count)
        return count;
    if (end > count)
        end = count;
    size_t first = child;
    for (child++; child < end; child++)
        if (is_before(&events[child], &events[first]))
            first = child;
    return first;
}

void sim_clock_step(struct sim_clock *clock)
{
    assert(clock->count > 0);
    struct sim_clock_event *events = clock->events;
    const struct sim_clock_event event = events[0];
    size_t count = --clock->count, at = 0;
    if (count > 0) {
        const struct sim_clock_event *last = &events[count];
        for (size_t child; (child = first_child(events, count, at)) < count; at = child) {
            if (is_before(last, &events[child]))
                break;
            events[at] = events[child];
        }
        events[at] = *last;
    }
    clock->now_ns = event.at_ns;
    clock->current = event.sequence;
    clock->happened++;
    event.happens(event.context, event.number);
}
