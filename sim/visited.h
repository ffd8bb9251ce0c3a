/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The set of visited states. By fingerprint: 8 octets a state, two different states are taken for
 * one with probability n * n / 2^65 for n states. Exact: the octets of every segment are kept, each
 * distinct content once (a state is a row of segment contents), and nothing is taken for another.
 */
#ifndef KBTP_SIM_VISITED_H
#define KBTP_SIM_VISITED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sim/arena.h"

struct sim_visited;

/* Holds at most `max_octets` of memory. NULL when there is none. */
struct sim_visited *sim_visited_new(bool exact, const struct sim_arena *arena, size_t max_octets);
void sim_visited_free(struct sim_visited *set);

/*
 * Adds the arena's present state: 1 when it is new, 0 when it was there, -ENOSPC at the bound,
 * -ENOMEM when the machine has no more memory.
 */
int sim_visited_add(struct sim_visited *set, const struct sim_arena *arena);

uint64_t sim_visited_count(const struct sim_visited *set);
/* Memory now, and at most so far: while a table doubles there are two. */
size_t sim_visited_octets(const struct sim_visited *set);
size_t sim_visited_peak(const struct sim_visited *set);

#endif
