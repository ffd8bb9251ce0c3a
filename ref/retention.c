/* SPDX-License-Identifier: BSD-3-Clause */
/* Sessions without a connection, until their retention time is over (draft: Session Establishment;
 * I-33). The worker that ended a session looks after it. */
#include <assert.h>

#include "ref/worker_state.h"

bool kbtp_release_handle(struct kbtp_worker *w, const struct kbtp_cpu *cpu, uint32_t session,
                         uint32_t n)
{
    const struct kbtp_pool *pool = &w->target->pool;
    uint32_t entry = w->target->sessions.grants[session].first_entry + n;
    if (!(kbtp_table_read(cpu->mem, &pool->table, entry).flags & KBTP_ENTRY_VALID))
        return false;
    int freed = kbtp_pool_free(cpu->mem, pool, &w->deferred, entry);
    assert(freed >= 0 && "a deferred list has room for every block");
    kbtp_count(w, KBTP_COUNT_RELEASED_BLOCKS);
    if (freed == KBTP_FREE_PINNED)
        kbtp_count(w, KBTP_COUNT_FREES_PINNED);
    return true;
}

void kbtp_retain(struct kbtp_worker *w, const struct kbtp_cpu *cpu, uint32_t session, uint64_t name)
{
    if (!w->retentions || w->stopping)
        return;
    struct kbtp_retention *retention = &w->retentions[session];
    retention->name = name;
    retention->stage = KBTP_RETENTION_BEGINS;
    if (rdma_timer(cpu->rdma, session, w->target->config.retention_ns) == 0)
        retention->stage = KBTP_RETENTION_LASTS;
}

void kbtp_retention_expired(struct kbtp_worker *w, const struct kbtp_cpu *cpu, uint32_t session)
{
    if (!w->retentions || session >= w->target->sessions.count)
        return;
    struct kbtp_retention *retention = &w->retentions[session];
    if (retention->stage != KBTP_RETENTION_LASTS)
        return;
    /* A connection, of any worker, may have restored it meanwhile. */
    bool over = kbtp_session_expire(cpu->mem, &w->target->sessions, session, retention->name);
    if (over)
        kbtp_count(w, KBTP_COUNT_EXPIRED);
    *retention =
        (struct kbtp_retention){.stage = over ? KBTP_RETENTION_RELEASE : KBTP_RETENTION_NONE};
}

static void advance(struct kbtp_worker *w, const struct kbtp_cpu *cpu, uint32_t session)
{
    struct kbtp_retention *retention = &w->retentions[session];
    if (retention->stage == KBTP_RETENTION_BEGINS) {
        kbtp_retain(w, cpu, session, retention->name);
    } else if (retention->stage == KBTP_RETENTION_RELEASE) {
        kbtp_release_handle(w, cpu, session, retention->next++);
        if (retention->next < w->target->sessions.grants[session].handle_count)
            return;
        *retention = (struct kbtp_retention){.stage = KBTP_RETENTION_NONE};
        kbtp_session_end(cpu->mem, &w->target->sessions, session, 0, true);
    }
}

void kbtp_retentions_advance(struct kbtp_worker *w, const struct kbtp_cpu *cpu)
{
    for (uint32_t i = 0; w->retentions && i < w->target->sessions.count; i++)
        advance(w, cpu, i);
}

uint32_t kbtp_retentions_releases(const struct kbtp_worker *w)
{
    uint32_t count = 0;
    for (uint32_t i = 0; w->retentions && i < w->target->sessions.count; i++)
        count += w->retentions[i].stage == KBTP_RETENTION_RELEASE;
    return count;
}

void kbtp_retentions_stop(struct kbtp_worker *w, const struct kbtp_cpu *cpu)
{
    for (uint32_t i = 0; w->retentions && i < w->target->sessions.count; i++) {
        if (w->retentions[i].stage == KBTP_RETENTION_LASTS)
            rdma_timer(cpu->rdma, i, 0);
        if (w->retentions[i].stage != KBTP_RETENTION_RELEASE)
            w->retentions[i] = (struct kbtp_retention){.stage = KBTP_RETENTION_NONE};
    }
}
