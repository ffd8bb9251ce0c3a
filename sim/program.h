/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a scenario of kind `protocol` asks of ref/: the configuration of its target and initiators,
 * their grants, and the requests of their programs. The same for simulated worlds and for devices.
 */
#ifndef KBTP_SIM_PROGRAM_H
#define KBTP_SIM_PROGRAM_H

#include "ref/initiator.h"
#include "ref/target.h"
#include "sim/scenario.h"

/* What its program needs: enum kbtp_feature. */
uint16_t sim_program_features(const struct sim_initiator *s);
bool sim_program_allocates_directly(const struct sim_initiator *s);
bool sim_program_asks_for_records(const struct sim_initiator *s);
/* Requests with INVALIDATE: each has a window of its own. */
uint32_t sim_program_windows(const struct sim_initiator *s);

/* But for max_connections. */
struct kbtp_target_config sim_program_target(const struct sim_scenario *s);
/* Kept for an Initiator ID, unless a stranger is to get it in the end. */
struct kbtp_grant sim_program_grant(const struct sim_protocol_part *part, uint32_t session);
/* But for address and records. */
struct kbtp_initiator_config sim_program_initiator(const struct sim_scenario *s,
                                                   uint32_t initiator);

/*
 * Of the requests of this initiator before `request` that which was the last to be told a
 * Generation of its handle, or SIM_NOBODY. generations[]: what each was told, or 0.
 */
uint32_t sim_program_known_from(const struct sim_initiator *s, const uint16_t generations[],
                                uint32_t request);

uint64_t sim_program_handle(const struct sim_protocol_part *part,
                            const struct sim_request *request);

/*
 * Makes a request of a program; its number is the cookie. `region` holds its buffer; with
 * INVALIDATE `window` is free, or NULL: then the STag is the region's. Returns as ref/initiator.h.
 */
int sim_program_submit(struct kbtp_initiator *library, const struct kbtp_cpu *cpu,
                       const struct sim_scenario *s, uint32_t initiator, uint32_t request,
                       const uint16_t generations[], const struct rdma_region *region,
                       struct rdma_window *window);

#endif
