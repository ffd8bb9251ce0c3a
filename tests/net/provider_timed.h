/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The RNIC in simulated time (sim/timed/nic.h) as a provider whose calls act at once: each lets
 * everything happen that comes of it. Timers expire in provider_timed_expire() only.
 */
#ifndef KBTP_TESTS_NET_PROVIDER_TIMED_H
#define KBTP_TESTS_NET_PROVIDER_TIMED_H

#include "net/rdma.h"

bool provider_timed_open(void);
void provider_timed_close(void);
struct rdma *provider_timed_handle(void);
void provider_timed_cut(struct rdma *r, uint32_t conn);
bool provider_timed_expire(struct rdma *r, uint32_t id);
uint32_t provider_timed_left(void);

#endif
