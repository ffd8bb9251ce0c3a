/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What worlds of tests that are no kind of scenario have in common: segments, and the callbacks
 * that such a world must have and has no use for.
 */
#ifndef KBTP_TESTS_SIM_BARE_WORLD_H
#define KBTP_TESTS_SIM_BARE_WORLD_H

#include "sim/cpu.h"

/* A segment of state that is granted; owner 0: to all. */
void *bare_segment(struct sim_world *w, const char *name, size_t octets, uint32_t owner);

/* For a struct sim_program: nothing is to be done, and nothing can be chosen. */
void bare_ended(struct sim_agent *agent, void *private, uint32_t argument, int result);
uint32_t bare_choices(const struct sim_agent *agent, const void *private,
                      uint32_t out[SIM_MAX_CHOICES]);

/* For a struct sim_world_ops: nothing is recorded. */
void bare_wrote(struct sim_world *w, const struct sim_write *write);
void bare_published(struct sim_world *w, uint32_t agent, uint32_t event, uint64_t value);

#endif
