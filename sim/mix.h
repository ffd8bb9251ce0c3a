/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A mix of requests about the handles of one session: which one is next, drawn by weights. Each
 * handle is in one request at a time, so that it is known what it holds. For timed runs and for
 * `kbtp bench`.
 */
#ifndef KBTP_SIM_MIX_H
#define KBTP_SIM_MIX_H

#include <stdbool.h>
#include <stdint.h>

enum sim_mix_kind { SIM_MIX_LOAD, SIM_MIX_STORE, SIM_MIX_ALLOC_STORE, SIM_MIX_FREE, SIM_MIX_KINDS };
/* What has a weight: the last is ALLOC_STORE and FREE, one after the other. */
enum sim_mix_draw { SIM_MIX_LOADS, SIM_MIX_STORES, SIM_MIX_ALLOC_FREES, SIM_MIX_DRAWS };

struct sim_mix {
    uint32_t *bound, *unbound; /* handles that no request is about; room for all of them in each */
    uint32_t bound_count, unbound_count;
    uint32_t fill; /* handles that are to be stored to before all else */
    bool fills;    /* nothing else is drawn */
    bool frees_next;
};

/* Lists for `handles` handles, none of them bound: `lists` has room for twice as many. */
void sim_mix_init(struct sim_mix *mix, uint32_t *lists, uint32_t handles, uint32_t fill);
/*
 * The next request: its kind, and *handle. As the weights say, or when there is no handle for it
 * any other that has weight. SIM_MIX_KINDS: there is none now.
 */
enum sim_mix_kind sim_mix_next(struct sim_mix *mix, const uint32_t weights[SIM_MIX_DRAWS],
                               uint64_t *random, uint32_t *handle);
/* It has ended, as it was to. */
void sim_mix_ended(struct sim_mix *mix, enum sim_mix_kind kind, uint32_t handle);

#endif
