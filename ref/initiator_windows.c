/* SPDX-License-Identifier: BSD-3-Clause */
/* STags that are valid for a single request (draft: Security Considerations): windows that are
 * bound for it, and end with its completion. */
#include <errno.h>

#include "ref/initiator_state.h"

#define ROOM 3u /* this, the request that is to use it, and GOODBYE */

int kbtp_initiator_bind(struct kbtp_initiator *initiator, const struct kbtp_cpu *cpu,
                        struct rdma_window *window, const struct rdma_region *region,
                        uint64_t offset, uint64_t length, uint32_t access)
{
    struct kbtp_initiator *i = initiator;
    if (i->state != KBTP_INITIATOR_READY)
        return -ENOTCONN;
    if (kbtp_sends_room(&i->sends) < ROOM)
        return -EAGAIN;
    struct rdma_wr bind = {.op = RDMA_BIND,
                           .bind = {.window = window,
                                    .region = region,
                                    .offset = offset,
                                    .length = length,
                                    .access = access}};
    return kbtp_sends_post(cpu, &i->sends, i->conn, &bind, KBTP_WR_BIND, 0, NULL);
}

int kbtp_initiator_invalidate(struct kbtp_initiator *initiator, const struct kbtp_cpu *cpu,
                              uint32_t stag, uint64_t cookie)
{
    struct kbtp_initiator *i = initiator;
    if (i->state != KBTP_INITIATOR_READY)
        return -ENOTCONN;
    if (kbtp_initiator_credits(i) == 0)
        return -EAGAIN;
    uint32_t place = kbtp_free_place(i);
    struct rdma_wr wr = {.op = RDMA_LOCAL_INV, .imm_stag = stag};
    int failed = kbtp_sends_post(cpu, &i->sends, i->conn, &wr, KBTP_WR_INVALIDATE, place, NULL);
    if (failed)
        return failed;
    i->pending[place] = (struct kbtp_pending){
        .request_id = ++i->serial << 16 | place, .cookie = cookie, .opcode = KBTP_INVALIDATION};
    i->outstanding++;
    return 0;
}

void kbtp_invalidated(struct kbtp_initiator *i, uint32_t place, struct kbtp_outcome *outcome)
{
    *outcome = (struct kbtp_outcome){.invalidated = 1};
    kbtp_settle(i, &i->pending[place], outcome);
}
