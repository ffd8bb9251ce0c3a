/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/net/verbs_inside.h"

#include "net/verbs/state.h"
#include "tests/net/fake/fake.h"

void verbs_inside_cut(struct rdma *r, uint32_t conn)
{
    fake_cut(verbs_of(r)->conns[conn].id);
}

bool verbs_inside_expire(struct rdma *r, uint32_t id)
{
    struct verbs_handle *h = verbs_of(r);
    if (id >= h->device->config.timers || !h->timers[id].armed)
        return false;
    h->timers[id].due_ns = 1;
    verbs_set_clock(h);
    return true;
}

void verbs_inside_look(struct rdma *r)
{
    verbs_of(r)->spins = RDMA_VERBS_SPINS;
}
