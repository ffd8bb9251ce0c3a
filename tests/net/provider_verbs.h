/* SPDX-License-Identifier: BSD-3-Clause */
/* net/verbs on the rdma-core for tests, as tests/net/provider.h wants it. */
#ifndef KBTP_TESTS_NET_PROVIDER_VERBS_H
#define KBTP_TESTS_NET_PROVIDER_VERBS_H

#include <stdbool.h>
#include <stdint.h>

struct rdma;

bool provider_verbs_open_siw(void);
bool provider_verbs_open_rxe(void);
void provider_verbs_close(void);
struct rdma *provider_verbs_handle(void);
uint32_t provider_verbs_left(void);

#endif
