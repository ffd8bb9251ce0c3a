/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A run of a protocol world as a message sequence chart: the protocol's story. Messages are arrows
 * between RNICs, with the words of the messages; memory shows what it holds whenever that changes.
 * What says nothing of its own has no row: polls that find nothing, posting, doorbells, WQE
 * fetches, completions of SENDs, stores that only enter a store buffer, and all memory that is
 * private to one CPU. Accesses of one agent to one place after the other are one row.
 */
#ifndef KBTP_SIM_PROTOCOL_CHART_H
#define KBTP_SIM_PROTOCOL_CHART_H

#include "sim/chart.h"
#include "sim/replay.h"

/* As sim_ring_chart(). */
void sim_protocol_chart(struct sim_world *w, const struct sim_step *steps, uint32_t count,
                        struct chart *chart, struct sim_replay *replay);

/*
 * Words for charts (sim/protocol_words.c): out[0..size) is overwritten.
 *
 * A message: "ALLOC_STORE h0, inline 8, SEAL", "COMPLETION OK, h0 gen 2", "RDMA Write 16: X#1".
 * h0 is the handle of table entry 0.
 */
void sim_protocol_describe_message(const struct sim_world *w, const struct sim_message *message,
                                   char *out, size_t size);
/* Octets of a block: "X#1" are data of X's request 1, "-" are none, "X#1 -" one after the other. */
void sim_protocol_describe_octets(const struct sim_world *w, const char *at, uint32_t octets,
                                  char *out, size_t size);

#endif
