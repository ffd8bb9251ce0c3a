/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * When an initiator tries again: a target rejects a HELLO while the session has a connection that
 * answers (draft: MUST reject), and that may be one which is about to end (I-16).
 */
#include <errno.h>

#include "ref/initiator_state.h"

#define TIMER 0u

bool kbtp_back_off_is_legal(const struct kbtp_initiator_config *config)
{
    return config->retries == 0 ||
           (config->retries <= KBTP_MAX_RETRIES && config->retry_first_ns != 0 &&
            config->retry_first_ns <= config->retry_longest_ns);
}

struct kbtp_back_off kbtp_back_off(const struct kbtp_initiator_config *config)
{
    return (struct kbtp_back_off){.first_ns = config->retry_first_ns,
                                  .longest_ns = config->retry_longest_ns,
                                  .retries = (uint16_t)config->retries,
                                  .lost = config->retry_lost};
}

/* Other reasons stay: what this side wanted, messages that make no sense, no session left. */
static bool may_pass(const struct kbtp_initiator *i)
{
    if (i->leaving)
        return false;
    return i->why == KBTP_STATUS_INTERNAL || (i->back_off.lost && i->why < 0 && i->why != -EPROTO);
}

/* Many that lost their connections at once do not come again at once. */
static uint64_t shortened(const struct kbtp_cpu *cpu, uint64_t delay_ns)
{
    uint64_t chance;
    if (rdma_random(cpu->rdma, &chance, sizeof chance) != 0)
        return delay_ns;
    return delay_ns - chance % (delay_ns / 2 + 1);
}

static uint64_t delay_of(const struct kbtp_back_off *b)
{
    return b->first_ns > b->longest_ns >> b->tried ? b->longest_ns : b->first_ns << b->tried;
}

bool kbtp_back_off_begins(struct kbtp_initiator *i, const struct kbtp_cpu *cpu)
{
    struct kbtp_back_off *b = &i->back_off;
    if (b->tried == b->retries || !may_pass(i) ||
        rdma_timer(cpu->rdma, TIMER, shortened(cpu, delay_of(b))) != 0) {
        b->tried = 0;
        return false;
    }
    b->tried++;
    return true;
}

void kbtp_back_off_ends(struct kbtp_initiator *i, const struct kbtp_cpu *cpu)
{
    if (i->state == KBTP_INITIATOR_WAITING)
        rdma_timer(cpu->rdma, TIMER, 0);
    i->back_off.tried = 0;
}
