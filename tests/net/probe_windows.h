/* SPDX-License-Identifier: BSD-3-Clause */
/* Probes of RDMA_CAP_WINDOW and RDMA_CAP_INV_WINDOW; between the files of tests/net/probe*. */
#ifndef KBTP_TESTS_NET_PROBE_WINDOWS_H
#define KBTP_TESTS_NET_PROBE_WINDOWS_H

#include "tests/net/probe_sides.h"

struct probe_answer probe_window(struct probe_sides *s);
struct probe_answer probe_inv_window(struct probe_sides *s);

#endif
