/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How a work request of a chain queue lies in memory. Numbers are in the byte order of the device.
 * The layout is this device's own: nobody else knows it.
 */
#include <errno.h>

#include "sim/rnic_state.h"

/* Which fields stand where; an SGE's are in each of those behind SIM_RNIC_WQE_OCTETS. */
#define AT_NUMBER 0u /* in the queue: tells a work request from what a place held before */
#define AT_OP 4u
#define AT_FLAGS 5u
#define AT_SGE_COUNT 6u
#define AT_WR_ID 8u
#define AT_REMOTE_TO 16u
#define AT_REMOTE_STAG 24u
#define AT_IMM_STAG 28u
#define AT_OPERANDS 32u
#define SGE_TO 0u
#define SGE_LENGTH 8u
#define SGE_LKEY 12u

#define FIRST_OP 0x20u /* the octet of op 0: cleared memory is no NOOP */

static const struct field {
    uint8_t at, octets, of_sge;
} fields[RDMA_FIELDS] = {
    [RDMA_FIELD_OP] = {AT_OP, 1, 0},
    [RDMA_FIELD_IMM_STAG] = {AT_IMM_STAG, 4, 0},
    [RDMA_FIELD_REMOTE_TO] = {AT_REMOTE_TO, 8, 0},
    [RDMA_FIELD_REMOTE_STAG] = {AT_REMOTE_STAG, 4, 0},
    [RDMA_FIELD_SGE_TO] = {SGE_TO, 8, 1},
    [RDMA_FIELD_SGE_LENGTH] = {SGE_LENGTH, 4, 1},
    [RDMA_FIELD_SGE_LKEY] = {SGE_LKEY, 4, 1},
    [RDMA_FIELD_ADD] = {AT_OPERANDS, 8, 0},
    [RDMA_FIELD_ADD_MASK] = {AT_OPERANDS + 8, 8, 0},
    [RDMA_FIELD_COMPARE] = {AT_OPERANDS, 8, 0},
    [RDMA_FIELD_COMPARE_MASK] = {AT_OPERANDS + 8, 8, 0},
    [RDMA_FIELD_SWAP] = {AT_OPERANDS + 16, 8, 0},
    [RDMA_FIELD_SWAP_MASK] = {AT_OPERANDS + 24, 8, 0},
    [RDMA_FIELD_QUEUE] = {AT_OPERANDS, 8, 0},
    [RDMA_FIELD_COUNT] = {AT_OPERANDS + 8, 8, 0},
};

uint32_t rnic_chain_wqe_octets(const struct sim_handle *h)
{
    return sim_rnic_chain_octets(h->limits.max_sge, 1);
}

uint32_t sim_rnic_chain_octets(uint32_t max_sge, uint32_t depth)
{
    return depth * (SIM_RNIC_WQE_OCTETS + (max_sge * 16u + 63u) / 64 * 64);
}

uint32_t rnic_chain_octets(const struct sim_handle *h, uint32_t depth)
{
    return depth * rnic_chain_wqe_octets(h);
}

/* ---- numbers ----------------------------------------------------------------------------- */

static void put_number(const struct sim_handle *h, uint8_t *at, uint64_t value, uint32_t octets)
{
    for (uint32_t i = 0; i < octets; i++) {
        uint32_t shift = 8 * (h->rnic->config.wqe_big_endian ? octets - 1 - i : i);
        at[i] = (uint8_t)(value >> shift);
    }
}

static uint64_t number_at(const struct sim_handle *h, const uint8_t *at, uint32_t octets)
{
    uint64_t value = 0;
    for (uint32_t i = 0; i < octets; i++)
        value = value << 8 | at[h->rnic->config.wqe_big_endian ? i : octets - 1 - i];
    return value;
}

/* ---- patch points ------------------------------------------------------------------------ */

int rnic_chain_field(const struct sim_handle *h, const struct rdma_chain_queue *queue,
                     uint32_t number, uint32_t field, uint32_t sge, uint32_t lane, void **at)
{
    const struct end *end = rnic_chain_end(h, queue);
    if (!end || field >= RDMA_FIELDS)
        return -EINVAL;
    const struct field *f = &fields[field];
    if (lane >= f->octets || sge >= (f->of_sge ? h->limits.max_sge : 1))
        return -EINVAL;
    uint32_t octet = h->rnic->config.wqe_big_endian ? lane : f->octets - 1 - lane;
    uint32_t from = f->of_sge ? SIM_RNIC_WQE_OCTETS + 16 * sge : 0;
    *at = rnic_chain_place(end, number) + from + f->at + octet;
    return f->octets;
}

int rnic_chain_encode(const struct sim_handle *h, uint32_t field, uint64_t value, uint8_t octets[8])
{
    if (field >= RDMA_FIELDS)
        return -EINVAL;
    uint32_t count = fields[field].octets;
    if ((count < 8 && value >> 8 * count != 0) || (field == RDMA_FIELD_OP && value >= RDMA_RECV))
        return -EINVAL;
    put_number(h, octets, field == RDMA_FIELD_OP ? value + FIRST_OP : value, count);
    return (int)count;
}

char *rnic_chain_place(const struct end *end, uint32_t number)
{
    const struct rnic_chain *chain = end->chain;
    uint32_t place = (number - end->handle->rnic->config.chain_first) % chain->depth;
    return (char *)(uintptr_t)chain->memory + (size_t)place * rnic_chain_wqe_octets(end->handle);
}

/* ---- may it be one? ---------------------------------------------------------------------- */

static bool kind_has(uint32_t kind, uint32_t op)
{
    switch (op) {
    case RDMA_WAIT:
    case RDMA_ENABLE:
        return true;
    case RDMA_NOOP:
    case RDMA_READ:
    case RDMA_WRITE:
    case RDMA_FETCH_ADD:
    case RDMA_CAS:
        return kind != RDMA_CHAIN_CTRL;
    case RDMA_SEND:
    case RDMA_SEND_INV:
    case RDMA_WRITE_IMM:
        return kind == RDMA_CHAIN_SEND;
    default:
        return false;
    }
}

int rnic_chain_check(const struct end *end, const struct rdma_wr *wr)
{
    const struct sim_handle *h = end->handle;
    if (!kind_has(end->chain->kind, wr->op) || (wr->flags & RDMA_INLINE) != 0)
        return -EINVAL;
    if (wr->op == RDMA_WAIT || wr->op == RDMA_ENABLE)
        return wr->sge_count == 0 && (wr->flags & ~(RDMA_SIGNALED | RDMA_FENCE)) == 0 ? 0 : -EINVAL;
    for (uint32_t i = 0; i < wr->sge_count; i++)
        if (!rnic_region_of(h->rnic, wr->sges[i].lkey))
            return -EINVAL;
    return rnic_check_send(h, end->state, wr);
}

/* ---- into memory and back ---------------------------------------------------------------- */

/* As eight octets each, whatever they mean. */
static void operands_of(const struct rdma_wr *wr, uint64_t operand[4])
{
    rdma_request_operands(wr, operand);
    if (wr->op == RDMA_WAIT) {
        operand[0] = wr->wait.queue;
        operand[1] = wr->wait.count;
    } else if (wr->op == RDMA_ENABLE) {
        operand[0] = wr->enable.queue;
        operand[1] = wr->enable.count;
    }
}

static void image_of(const struct end *end, uint32_t number, const struct rdma_wr *wr, uint8_t *at)
{
    const struct sim_handle *h = end->handle;
    uint64_t operand[4];
    put_number(h, at + AT_NUMBER, number, 4);
    at[AT_OP] = (uint8_t)(wr->op + FIRST_OP);
    at[AT_FLAGS] = (uint8_t)wr->flags;
    at[AT_SGE_COUNT] = (uint8_t)wr->sge_count;
    put_number(h, at + AT_WR_ID, wr->wr_id, 8);
    put_number(h, at + AT_REMOTE_TO, wr->remote_to, 8);
    put_number(h, at + AT_REMOTE_STAG, wr->remote_stag, 4);
    put_number(h, at + AT_IMM_STAG, wr->imm_stag, 4);
    operands_of(wr, operand);
    for (uint32_t i = 0; i < 4; i++)
        put_number(h, at + AT_OPERANDS + (size_t)8 * i, operand[i], 8);
    for (uint32_t i = 0; i < wr->sge_count; i++) {
        const struct rdma_sge *sge = &wr->sges[i];
        const struct rnic_region *r = rnic_region_of(h->rnic, sge->lkey);
        uint8_t *to = at + SIM_RNIC_WQE_OCTETS + (size_t)16 * i;
        put_number(h, to + SGE_TO, (uint64_t)(uintptr_t)sge->addr - r->addr + r->base_to, 8);
        put_number(h, to + SGE_LENGTH, sge->length, 4);
        put_number(h, to + SGE_LKEY, sge->lkey, 4);
    }
}

void rnic_chain_write(const struct end *end, uint32_t number, const struct rdma_wr *wr)
{
    const struct sim_handle *h = end->handle;
    uint8_t image[SIM_RNIC_WQE_OCTETS + 16 * 16u] = {0};
    char *place = rnic_chain_place(end, number);
    rnic_look(h->w, h->rnic->segment);
    image_of(end, number, wr, image);
    for (uint32_t i = 0; i < rnic_chain_wqe_octets(h); i += 8)
        if (memcmp(place + i, image + i, 8) != 0)
            sim_write(h->w, h->agent->index, place + i, image + i, 8);
}

static void operands_at(const struct sim_handle *h, const uint8_t *at, struct rdma_wr *wr)
{
    uint64_t operand[4];
    for (uint32_t i = 0; i < 4; i++)
        operand[i] = number_at(h, at + AT_OPERANDS + (size_t)8 * i, 8);
    if (wr->op == RDMA_FETCH_ADD) {
        wr->fetch_add.add = operand[0];
        wr->fetch_add.mask = operand[1];
    } else if (wr->op == RDMA_CAS) {
        wr->cas.compare = operand[0];
        wr->cas.compare_mask = operand[1];
        wr->cas.swap = operand[2];
        wr->cas.swap_mask = operand[3];
    } else if (wr->op == RDMA_WAIT || wr->op == RDMA_ENABLE) {
        wr->wait.queue = (uint32_t)operand[0];
        wr->wait.count = (uint32_t)operand[1];
    }
}

/* An lkey that is unknown leads nowhere; the rest is looked at when the work request begins. */
static void sges_at(const struct sim_handle *h, const uint8_t *at, uint32_t count,
                    struct rdma_sge *sges)
{
    for (uint32_t i = 0; i < count; i++) {
        const uint8_t *from = at + SIM_RNIC_WQE_OCTETS + (size_t)16 * i;
        uint64_t to = number_at(h, from + SGE_TO, 8);
        sges[i].length = (uint32_t)number_at(h, from + SGE_LENGTH, 4);
        sges[i].lkey = (uint32_t)number_at(h, from + SGE_LKEY, 4);
        const struct rnic_region *r = rnic_region_of(h->rnic, sges[i].lkey);
        sges[i].addr = r ? (void *)(uintptr_t)(to - r->base_to + r->addr) : NULL;
    }
}

bool rnic_chain_read(const struct end *end, uint32_t number, struct rnic_wqe *wqe)
{
    const struct sim_handle *h = end->handle;
    const uint8_t *at = (const uint8_t *)rnic_chain_place(end, number);
    struct rdma_sge sges[16];
    rnic_look(h->w, h->rnic->segment);
    if (number_at(h, at + AT_NUMBER, 4) != number || at[AT_OP] < FIRST_OP ||
        at[AT_SGE_COUNT] > h->limits.max_sge)
        return false;
    struct rdma_wr wr = {.wr_id = number_at(h, at + AT_WR_ID, 8),
                         .sges = sges,
                         .sge_count = at[AT_SGE_COUNT],
                         .remote_to = number_at(h, at + AT_REMOTE_TO, 8),
                         .remote_stag = (uint32_t)number_at(h, at + AT_REMOTE_STAG, 4),
                         .imm_stag = (uint32_t)number_at(h, at + AT_IMM_STAG, 4),
                         .op = (uint16_t)(at[AT_OP] - FIRST_OP),
                         .flags = at[AT_FLAGS]};
    operands_at(h, at, &wr);
    sges_at(h, at, wr.sge_count, sges);
    if (wr.op == RDMA_NOOP)
        wr.sge_count = 0; /* a template that stayed one */
    if (rnic_chain_check(end, &wr) != 0)
        return false;
    rnic_write_wqe(wqe, &wr);
    if (wr.op == RDMA_WAIT || wr.op == RDMA_ENABLE) {
        wqe->operand[0] = wr.wait.queue;
        wqe->operand[1] = wr.wait.count;
    }
    return true;
}
