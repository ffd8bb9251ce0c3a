/* SPDX-License-Identifier: BSD-3-Clause */
/* Regions and windows. */
#include "tests/net/fake/state.h"

#include <stdlib.h>

/* Keys are never the same twice in a while. */
static uint32_t key_of(uint32_t place)
{
    return (place + 1) << 8 | ++fake.keys;
}

static struct fake_mr *mr_of(uint32_t key)
{
    uint32_t place = (key >> 8) - 1;
    struct fake_mr *mr = place < FAKE_MRS ? fake.mrs[place] : NULL;
    return mr && mr->mr.rkey == key ? mr : NULL;
}

static struct fake_mw *mw_of(uint32_t key)
{
    uint32_t place = ((key & ~FAKE_WINDOW_KEY) >> 8) - 1;
    struct fake_mw *mw = key & FAKE_WINDOW_KEY && place < FAKE_MWS ? fake.mws[place] : NULL;
    return mw && mw->rkey == key ? mw : NULL;
}

/* ---- regions ------------------------------------------------------------------------------- */

struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
                                unsigned int access)
{
    struct fake_mr *mr = NULL;
    (void)pthread_mutex_lock(&fake_lock);
    uint32_t place = 0;
    while (place < FAKE_MRS && fake.mrs[place])
        place++;
    if (fake_call("ibv_reg_mr_iova", ENOMEM) || place == FAKE_MRS) {
        errno = ENOMEM;
    } else {
        uint32_t key = key_of(place);
        mr = calloc(1, sizeof *mr);
        mr->mr = (struct ibv_mr){.context = pd->context,
                                 .pd = pd,
                                 .addr = addr,
                                 .length = length,
                                 .lkey = key,
                                 .rkey = key};
        mr->base = fake.config.kind == FAKE_SIW ? (uint64_t)(uintptr_t)addr : iova;
        mr->access = access;
        mr->valid = true;
        fake.mrs[place] = mr;
    }
    (void)pthread_mutex_unlock(&fake_lock);
    return mr ? &mr->mr : NULL;
}

int ibv_dereg_mr(struct ibv_mr *mr)
{
    struct fake_mr *mine = (struct fake_mr *)mr;
    (void)pthread_mutex_lock(&fake_lock);
    int error = fake_call("ibv_dereg_mr", EBUSY) ? EBUSY : mine->windows ? EINVAL : 0;
    if (error == 0) {
        fake.mrs[(mr->rkey >> 8) - 1] = NULL;
        free(mine);
    }
    (void)pthread_mutex_unlock(&fake_lock);
    return error;
}

static bool within(uint64_t to, uint64_t length, uint64_t base, uint64_t octets)
{
    return to >= base && to - base <= octets && length <= octets - (to - base);
}

struct fake_mr *fake_local(const struct ibv_sge *sge, unsigned access)
{
    struct fake_mr *mr = mr_of(sge->lkey);
    if (!mr || (mr->access & access) != access ||
        !within(sge->addr, sge->length, (uint64_t)(uintptr_t)mr->mr.addr, mr->mr.length))
        return NULL;
    return mr;
}

char *fake_remote(const struct fake_qp *through, uint32_t rkey, uint64_t to, uint64_t length,
                  unsigned access)
{
    const struct fake_mw *mw = mw_of(rkey);
    const struct fake_mr *mr = mw ? mw->mr : mr_of(rkey);
    unsigned has = mw ? mw->access : mr ? mr->access : 0;
    if (!mr || (!mw && !mr->valid) || (has & access) != access || (mw && mw->qp != through) ||
        !within(to, length, mw ? mw->base : mr->base, mw ? mw->length : mr->mr.length) ||
        mr->mr.pd != through->qp.pd)
        return NULL;
    return (char *)mr->mr.addr + (to - mr->base);
}

/* ---- windows ------------------------------------------------------------------------------- */

struct ibv_mw *fake_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type)
{
    struct fake_mw *mw = NULL;
    (void)pthread_mutex_lock(&fake_lock);
    uint32_t place = 0;
    while (place < FAKE_MWS && fake.mws[place])
        place++;
    if (fake_call("ibv_alloc_mw", ENOMEM) || place == FAKE_MWS) {
        errno = ENOMEM;
    } else if (fake.config.kind == FAKE_SIW || type != IBV_MW_TYPE_2) {
        errno = EOPNOTSUPP;
    } else {
        mw = calloc(1, sizeof *mw);
        mw->rkey = FAKE_WINDOW_KEY | key_of(place);
        mw->mw = (struct ibv_mw){
            .context = pd->context, .pd = pd, .rkey = mw->rkey, .type = IBV_MW_TYPE_2};
        fake.mws[place] = mw;
    }
    (void)pthread_mutex_unlock(&fake_lock);
    return mw ? &mw->mw : NULL;
}

static void unbind(struct fake_mw *mw)
{
    if (mw->qp)
        mw->mr->windows--;
    mw->qp = NULL;
    mw->mr = NULL;
}

int fake_dealloc_mw(struct ibv_mw *it)
{
    struct fake_mw *mw = (struct fake_mw *)it;
    (void)pthread_mutex_lock(&fake_lock);
    int error = fake_call("ibv_dealloc_mw", EIO) ? EIO : 0;
    if (error == 0) {
        unbind(mw);
        fake.mws[((mw->rkey & ~FAKE_WINDOW_KEY) >> 8) - 1] = NULL;
        free(mw);
    }
    (void)pthread_mutex_unlock(&fake_lock);
    return error;
}

enum ibv_wc_status fake_bind(struct fake_qp *qp, const struct fake_send *send)
{
    const struct ibv_mw_bind_info *info = &send->wr.bind_mw.bind_info;
    struct fake_mw *mw = mw_of(send->mw_rkey); /* as it was when this was posted */
    struct fake_mr *mr = (struct fake_mr *)info->mr;
    const unsigned changes = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;
    if (!mw || mw->qp || !mr->valid || !(mr->access & IBV_ACCESS_MW_BIND) ||
        (send->wr.bind_mw.rkey ^ mw->rkey) >> 8 != 0 || send->wr.bind_mw.rkey == mw->rkey ||
        info->length == 0 || !within(info->addr, info->length, mr->base, mr->mr.length) ||
        (info->mw_access_flags & changes && !(mr->access & IBV_ACCESS_LOCAL_WRITE)))
        return IBV_WC_MW_BIND_ERR;
    mw->rkey = send->wr.bind_mw.rkey;
    mw->qp = qp;
    mw->mr = mr;
    mw->base = info->addr;
    mw->length = info->length;
    mw->access = info->mw_access_flags;
    mr->windows++;
    return IBV_WC_SUCCESS;
}

bool fake_invalidate(struct fake_qp *qp, uint32_t rkey, bool by_peer)
{
    struct fake_mw *mw = mw_of(rkey);
    if (mw && mw->qp == qp) {
        unbind(mw);
        return true;
    }
    /* iWARP has no windows here: its peers invalidate regions (their rights taken for granted). */
    struct fake_mr *mr = mr_of(rkey);
    const unsigned remote =
        IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;
    if (!mr || !by_peer || fake.config.kind != FAKE_SIW || !mr->valid || !(mr->access & remote))
        return false;
    mr->valid = false;
    return true;
}

bool fake_unbind_all(struct fake_qp *qp)
{
    bool any = false;
    for (uint32_t i = 0; i < FAKE_MWS; i++)
        if (fake.mws[i] && fake.mws[i]->qp == qp) {
            unbind(fake.mws[i]);
            any = true;
        }
    return any;
}
