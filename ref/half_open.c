/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Half-open connections (I-16): a target that only receives never notices that its peer has died.
 * When a HELLO with the Initiator ID of an ACTIVE session asks for it, the worker that has the
 * session's connection has the peer's device answer something that changes nothing. Without an
 * answer in time the connection has ended, as after any loss; with one it is that HELLO which is
 * rejected. So a HELLO alone ends nobody's session (draft: MUST reject).
 */
#include "ref/worker_state.h"

static uint32_t timer_of(const struct kbtp_worker *w, const struct kbtp_connection *c)
{
    return w->target->sessions.count + kbtp_connection_number(w, c);
}

void kbtp_probe_end(struct kbtp_worker *w, const struct kbtp_cpu *cpu, struct kbtp_connection *c)
{
    if (c->probe != KBTP_PROBING_NOT)
        rdma_timer(cpu->rdma, timer_of(w, c), 0);
    c->probe = KBTP_PROBING_NOT;
}

static void lives(struct kbtp_worker *w, const struct kbtp_cpu *cpu, struct kbtp_connection *c)
{
    kbtp_probe_end(w, cpu, c);
    kbtp_session_answers(cpu->mem, &w->target->sessions, c->session, c->name);
}

/*
 * An RDMA Write of no octets, or where its completion says nothing about the peer (RFC 5040 5.5) an
 * RDMA Read of none; neither names memory. What cannot even be posted tells nothing against the
 * peer: when the connection is over that shows otherwise.
 */
static void post(struct kbtp_worker *w, const struct kbtp_cpu *cpu, struct kbtp_connection *c)
{
    bool acked = w->target->caps.bits & RDMA_CAP_WRITE_ACKED;
    struct rdma_wr probe = {.op = acked ? RDMA_WRITE : RDMA_READ};
    if (kbtp_sends_room(&c->sends) < 1)
        return;
    c->probe = KBTP_PROBING_POSTED;
    if (kbtp_sends_post(cpu, &c->sends, kbtp_connection_number(w, c), &probe, KBTP_WR_PROBE, 0,
                        NULL) != 0)
        lives(w, cpu, c);
}

void kbtp_probe_advance(struct kbtp_worker *w, const struct kbtp_cpu *cpu,
                        struct kbtp_connection *c)
{
    if (w->target->config.probe_ns == 0 || c->state != KBTP_CONNECTION_READY)
        return;
    if (c->probe == KBTP_PROBING_NOT &&
        kbtp_session_is_asked(cpu->mem, &w->target->sessions, c->session, c->name) &&
        rdma_timer(cpu->rdma, timer_of(w, c), w->target->config.probe_ns) == 0)
        c->probe = KBTP_PROBING_WAITS;
    if (c->probe == KBTP_PROBING_WAITS)
        post(w, cpu, c);
}

void kbtp_probe_answered(struct kbtp_worker *w, const struct kbtp_cpu *cpu,
                         struct kbtp_connection *c)
{
    if (c->probe == KBTP_PROBING_POSTED)
        lives(w, cpu, c);
    kbtp_sends_rest(&c->sends);
}

void kbtp_probe_expired(struct kbtp_worker *w, const struct kbtp_cpu *cpu,
                        struct kbtp_connection *c)
{
    if (c->probe == KBTP_PROBING_NOT)
        return;
    kbtp_connection_lost(w, cpu, c);
}
