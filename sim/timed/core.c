/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/timed/core.h"

#include <stdlib.h>

#define PS 1000u
#define LINE 64u

/* calloc() knows which memory is zero already, aligned_alloc() does not say. In front of the octets
 * lies what it has returned. */
void *sim_core_memory(size_t octets)
{
    char *allocated = calloc(1, sizeof(void *) + LINE + octets);
    if (!allocated)
        return NULL;
    char *memory = allocated + sizeof(void *);
    memory += LINE - (uintptr_t)memory % LINE;
    ((void **)(void *)memory)[-1] = allocated;
    return memory;
}

void sim_core_memory_free(void *memory)
{
    if (memory)
        free(((void **)memory)[-1]);
}

static void runs(void *context, uint64_t number);

static uint64_t after_stall(const struct sim_core *core, uint64_t at_ns)
{
    bool stalls = at_ns >= core->stall_from_ns && at_ns < core->stall_to_ns;
    return stalls ? core->stall_to_ns : at_ns;
}

static void plan(struct sim_core *core, uint64_t at_ns)
{
    core->planned = true;
    sim_clock_at(core->clock, after_stall(core, at_ns), runs, core, 0);
}

/* The next look at or after `at_ps`: looks follow each other since it was free. */
static uint64_t next_look_ps(const struct sim_core *core, uint64_t at_ps)
{
    uint64_t look_ps = (uint64_t)(core->costs->poll_ns * PS + 0.5);
    if (at_ps <= core->free_ps)
        return core->free_ps;
    uint64_t looks = (at_ps - core->free_ps + look_ps - 1) / look_ps;
    return core->free_ps + looks * look_ps;
}

void sim_core_wake(struct sim_core *core)
{
    if (!core->planned)
        plan(core, (next_look_ps(core, core->clock->now_ns * PS) + PS - 1) / PS);
}

void sim_core_begin(struct sim_core *core, uint64_t at_ns)
{
    if (!core->planned)
        plan(core, at_ns);
}

static void runs(void *context, uint64_t number)
{
    struct sim_core *core = context;
    bool again = false;
    (void)number;
    uint64_t begin_ps = core->clock->now_ns * PS;
    uint64_t stalled_ns = after_stall(core, core->clock->now_ns);
    if (stalled_ns != core->clock->now_ns) { /* it was told so after it was planned */
        plan(core, stalled_ns);
        return;
    }
    uint64_t spent_ps = core->run(core->context, &again);
    core->planned = false;
    core->free_ps = begin_ps + spent_ps;
    core->busy_ps += spent_ps;
    if (core->watch && spent_ps)
        core->watch(core->watcher, core, begin_ps, core->free_ps);
    if (core->has_news(core->context))
        plan(core, (core->free_ps + PS - 1) / PS);
    else if (again)
        plan(core, (next_look_ps(core, core->free_ps + 1) + PS - 1) / PS);
}
