/* SPDX-License-Identifier: BSD-3-Clause */
/* What tests do to net/verbs that nobody else can. */
#ifndef KBTP_TESTS_NET_VERBS_INSIDE_H
#define KBTP_TESTS_NET_VERBS_INSIDE_H

#include <stdbool.h>
#include <stdint.h>

struct rdma;

/* The connection is lost at both ends. */
void verbs_inside_cut(struct rdma *r, uint32_t conn);
/* The timer is due at once: the clock rings. false: it is not armed. */
bool verbs_inside_expire(struct rdma *r, uint32_t id);
/* The next rdma_event() looks. */
void verbs_inside_look(struct rdma *r);

#endif
