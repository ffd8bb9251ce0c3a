/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/mix.h"

#include "sim/random.h"

void sim_mix_init(struct sim_mix *mix, uint32_t *lists, uint32_t handles, uint32_t fill)
{
    *mix = (struct sim_mix){.bound = lists, .unbound = lists + handles, .fill = fill};
    for (uint32_t i = 0; i < handles; i++)
        mix->unbound[mix->unbound_count++] = handles - 1 - i;
}

/* What a draw means now; SIM_MIX_KINDS: no handle is there for it. */
static enum sim_mix_kind kind_of(const struct sim_mix *mix, uint32_t draw)
{
    bool some_bound = mix->bound_count != 0, some_unbound = mix->unbound_count != 0;
    if (draw == SIM_MIX_ALLOC_FREES) {
        if (mix->frees_next ? some_bound : !some_unbound && some_bound)
            return SIM_MIX_FREE;
        return some_unbound ? SIM_MIX_ALLOC_STORE : SIM_MIX_KINDS;
    }
    if (!some_bound)
        return SIM_MIX_KINDS;
    return draw == SIM_MIX_LOADS ? SIM_MIX_LOAD : SIM_MIX_STORE;
}

static enum sim_mix_kind draw_kind(struct sim_mix *mix, const uint32_t weights[SIM_MIX_DRAWS],
                                   uint64_t *random)
{
    uint64_t all = 0;
    uint32_t draw = 0;
    if (mix->fills) {
        bool more = mix->fill != 0 && mix->unbound_count != 0;
        mix->fill -= more;
        return more ? SIM_MIX_ALLOC_STORE : SIM_MIX_KINDS;
    }
    for (uint32_t i = 0; i < SIM_MIX_DRAWS; i++)
        all += weights[i];
    for (uint64_t r = sim_random64(random) % all; r >= weights[draw]; draw++)
        r -= weights[draw];
    enum sim_mix_kind kind = kind_of(mix, draw);
    for (uint32_t i = 0; kind == SIM_MIX_KINDS && i < SIM_MIX_DRAWS; i++)
        if (weights[i] != 0)
            kind = kind_of(mix, i);
    return kind;
}

enum sim_mix_kind sim_mix_next(struct sim_mix *mix, const uint32_t weights[SIM_MIX_DRAWS],
                               uint64_t *random, uint32_t *handle)
{
    enum sim_mix_kind kind = draw_kind(mix, weights, random);
    if (kind == SIM_MIX_KINDS)
        return kind;
    if (kind == SIM_MIX_ALLOC_STORE) {
        *handle = mix->unbound[--mix->unbound_count];
    } else {
        uint32_t at = (uint32_t)(sim_random64(random) % mix->bound_count);
        *handle = mix->bound[at];
        mix->bound[at] = mix->bound[--mix->bound_count];
    }
    if (kind == SIM_MIX_ALLOC_STORE || kind == SIM_MIX_FREE)
        mix->frees_next = kind == SIM_MIX_ALLOC_STORE;
    return kind;
}

void sim_mix_ended(struct sim_mix *mix, enum sim_mix_kind kind, uint32_t handle)
{
    if (kind == SIM_MIX_FREE)
        mix->unbound[mix->unbound_count++] = handle;
    else
        mix->bound[mix->bound_count++] = handle;
}
