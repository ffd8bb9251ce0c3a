/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/replay.h"

#include <string.h>

#include "sim/random.h"

static enum sim_replay_end end_of_steps(struct sim_world *w)
{
    if (!w->violation.property && sim_world_quiescent(w))
        sim_world_judge_quiescent(w);
    return w->violation.property ? SIM_REPLAY_VIOLATION : SIM_REPLAY_RAN;
}

void sim_replay(struct sim_world *w, const struct sim_step *steps, uint32_t count,
                struct sim_replay *replay)
{
    *replay = (struct sim_replay){.digest = sim_mix64(w->arena.hash)};
    for (uint32_t i = 0; i < count; i++) {
        if (!sim_world_is_enabled(w, &steps[i])) {
            replay->end = SIM_REPLAY_NOT_ENABLED;
            return;
        }
        bool well = sim_world_step(w, &steps[i]);
        replay->steps_run++;
        replay->digest = sim_mix64(replay->digest ^ w->arena.hash);
        if (!well) {
            replay->end = w->violation.property ? SIM_REPLAY_VIOLATION : SIM_REPLAY_NO_MEMORY;
            return;
        }
    }
    replay->end = end_of_steps(w);
}
