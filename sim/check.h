/* SPDX-License-Identifier: BSD-3-Clause */
/* The checkers: one file each in sim/check/, named after the property. */
#ifndef KBTP_SIM_CHECK_H
#define KBTP_SIM_CHECK_H

#include "sim/world.h"

extern const struct sim_checker sim_check_block_exists;
extern const struct sim_checker sim_check_block_once;
extern const struct sim_checker sim_check_slot_not_overwritten;
extern const struct sim_checker sim_check_sequence_in_order;
extern const struct sim_checker sim_check_counter_by_one;
extern const struct sim_checker sim_check_free_accepted;
extern const struct sim_checker sim_check_ring_whole;
extern const struct sim_checker sim_check_entry_published_whole;
extern const struct sim_checker sim_check_generation_steps;
extern const struct sim_checker sim_check_entry_cleared_first;
extern const struct sim_checker sim_check_bind_taken;
extern const struct sim_checker sim_check_entry_has_data;
extern const struct sim_checker sim_check_block_quiet;
extern const struct sim_checker sim_check_load_exact;
extern const struct sim_checker sim_check_effect_first;
extern const struct sim_checker sim_check_completes_once;
extern const struct sim_checker sim_check_requests_in_order;
extern const struct sim_checker sim_check_own_handles;
extern const struct sim_checker sim_check_within_quota;
extern const struct sim_checker sim_check_well_delivered;
extern const struct sim_checker sim_check_expected_status;
extern const struct sim_checker sim_check_nothing_lost;
extern const struct sim_checker sim_check_cleared_first;
extern const struct sim_checker sim_check_initiator_accepts;
extern const struct sim_checker sim_check_counters_agree;
extern const struct sim_checker sim_check_record_after_data;
extern const struct sim_checker sim_check_stag_revoked;
extern const struct sim_checker sim_check_live_session_kept;

#endif
