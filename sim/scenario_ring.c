/* SPDX-License-Identifier: BSD-3-Clause */
/* The values of a scenario of kind ring. */
#include "sim/scenario.h"

#include <stdlib.h>
#include <string.h>

#include "sim/scenario_value.h"

#define DEFAULT_BLOCK_SIZE UINT64_C(0x100004000) /* 4 GiB + 16 KiB */
#define MAX_QUOTA 1000000u

static bool read_block_size(const struct sim_text *text, const struct sim_raw_scenario *raw,
                            struct sim_scenario *s)
{
    s->block_size = DEFAULT_BLOCK_SIZE;
    if (raw->block_size != NULL &&
        (!sim_is_size(raw->block_size, &s->block_size) || s->block_size == 0))
        return sim_complain(text, "block_size",
                            "%s is not a size from 1 to 2^64 - 1 octets, write a number, with KiB, "
                            "MiB, GiB or TiB if you like",
                            sim_quoted(raw->block_size).text);
    return sim_check_block_range(text, raw->block_size != NULL, s);
}

static bool read_quota(const struct sim_text *text, const struct sim_raw_scenario *raw,
                       struct sim_scenario *s)
{
    uint64_t quota = s->blocks;
    if (raw->quota != NULL && strcmp(raw->quota, "none") == 0)
        quota = 0;
    else if (raw->quota != NULL && (!sim_is_number(raw->quota, &quota) || quota > MAX_QUOTA))
        return sim_complain(text, "quota", "%s is not a number from 1 to %u, write one, or none",
                            sim_quoted(raw->quota).text, MAX_QUOTA);
    s->ring.quota = (uint32_t)quota;
    return true;
}

static bool take_agents(const struct sim_text *text, struct sim_raw_scenario *raw,
                        struct sim_ring_part *ring)
{
    ring->allocators = calloc(raw->allocators_count, sizeof *ring->allocators);
    ring->freers = calloc(raw->freers_count, sizeof *ring->freers);
    if (ring->allocators == NULL || ring->freers == NULL)
        return sim_complain(text, "", SIM_NO_MEMORY);
    ring->allocators_count = raw->allocators_count;
    ring->freers_count = raw->freers_count;
    for (unsigned i = 0; i < ring->freers_count; i++)
        ring->freers[i].name = sim_take(&raw->freers[i].name);
    for (unsigned i = 0; i < ring->allocators_count; i++) {
        struct sim_raw_allocator *from = &raw->allocators[i];
        struct sim_allocator *to = &ring->allocators[i];
        to->name = sim_take(&from->name);
        to->agent = (enum sim_agent_kind)sim_choice(from->agent, SIM_AGENT_CPU);
        if (!sim_read_number(text, sim_entry_path("allocators", i, "allocations").text,
                             from->allocations, 0, 1, SIM_MAX_ALLOCATIONS, &to->allocations))
            return false;
    }
    return true;
}

static bool check_agent_names(const struct sim_text *text, const struct sim_ring_part *ring)
{
    struct sim_named all[SIM_MAX_ALLOCATORS + SIM_MAX_FREERS];
    unsigned count = 0;
    for (unsigned i = 0; i < ring->allocators_count; i++)
        all[count++] =
            (struct sim_named){ring->allocators[i].name, sim_entry_path("allocators", i, "name")};
    for (unsigned i = 0; i < ring->freers_count; i++)
        all[count++] =
            (struct sim_named){ring->freers[i].name, sim_entry_path("freers", i, "name")};
    return sim_check_names(text, all, count, SIM_MAX_NAME, NULL);
}

bool sim_scenario_read_ring(const struct sim_text *text, struct sim_raw_scenario *raw,
                            struct sim_scenario *s)
{
    s->ring.free_completes =
        (enum sim_free_completes)sim_choice(raw->free_completes, SIM_FREE_COMPLETES_DEFERRED);
    return sim_read_number(text, "handles", raw->handles, 0, 0, SIM_MAX_HANDLES,
                           &s->ring.handles) &&
           sim_read_number(text, "crashes", raw->crashes, 0, 0, SIM_MAX_ALLOCATORS,
                           &s->ring.crashes) &&
           read_block_size(text, raw, s) && read_quota(text, raw, s) &&
           take_agents(text, raw, &s->ring) && check_agent_names(text, &s->ring);
}
