/* SPDX-License-Identifier: BSD-3-Clause */
/* A run of a ring world as a message sequence chart. */
#ifndef KBTP_SIM_RING_CHART_H
#define KBTP_SIM_RING_CHART_H

#include "sim/chart.h"
#include "sim/replay.h"

/*
 * Replays the steps from the present state (see sim_replay), and adds lanes and rows to an empty
 * chart. Leaves the world where the steps ended.
 */
void sim_ring_chart(struct sim_world *w, const struct sim_step *steps, uint32_t count,
                    struct chart *chart, struct sim_replay *replay);

#endif
