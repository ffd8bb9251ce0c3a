/* SPDX-License-Identifier: BSD-3-Clause */
/* A cost model for sums that can be done by hand. */
#ifndef KBTP_TESTS_SIM_ROUND_COSTS_H
#define KBTP_TESTS_SIM_ROUND_COSTS_H

#include "sim/timed/costs.h"

/* Round numbers: 10 octets a nanosecond everywhere, but 20 on PCIe. No headers. */
static const struct sim_costs round_costs = {.doorbell_ns = 100,
                                             .inline_gbytes_s = 1,
                                             .wqe_fetch_ns = 1000,
                                             .send_message_ns = 10,
                                             .send_latency_ns = 40,
                                             .receive_message_ns = 10,
                                             .receive_latency_ns = 60,
                                             .dma_read_ns = 300,
                                             .dma_read_gbytes_s = 20,
                                             .dma_write_ns = 200,
                                             .dma_write_gbytes_s = 20,
                                             .completion_ns = 50,
                                             .acknowledge_ns = 5,
                                             .atomic_ns = 70,
                                             .atomic_latency_ns = 25,
                                             .wait_ns = 3000,
                                             .enable_ns = 20000,
                                             .chain_fetch_ns = 100000,
                                             .connect_ns = 1000,
                                             .link_gbits_s = 80,
                                             .link_latency_ns = 400,
                                             .mtu_octets = 1000,
                                             .poll_ns = 7,
                                             .take_ns = 3,
                                             .post_ns = 20,
                                             .ring_ns = 30,
                                             .access_ns = 1,
                                             .copy_gbytes_s = 10};

#endif
