/* SPDX-License-Identifier: BSD-3-Clause */
#include "bare_world.h"

#include <CUnit/Basic.h>

void *bare_segment(struct sim_world *w, const char *name, size_t octets, uint32_t owner)
{
    void *at = sim_segment_new(&w->arena, name, octets, SIM_STATE);
    CU_ASSERT_PTR_NOT_NULL_FATAL(at);
    sim_segment_of(&w->arena, at)->granted = true;
    sim_segment_of(&w->arena, at)->owner = (uint8_t)owner;
    return at;
}

void bare_ended(struct sim_agent *agent, void *private, uint32_t argument, int result)
{
    (void)agent, (void)private, (void)argument, (void)result;
}

uint32_t bare_choices(const struct sim_agent *agent, const void *private,
                      uint32_t out[SIM_MAX_CHOICES])
{
    (void)agent, (void)private, (void)out;
    return 0;
}

void bare_wrote(struct sim_world *w, const struct sim_write *write)
{
    (void)w, (void)write;
}

void bare_published(struct sim_world *w, uint32_t agent, uint32_t event, uint64_t value)
{
    (void)w, (void)agent, (void)event, (void)value;
}
