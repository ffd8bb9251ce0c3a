/* SPDX-License-Identifier: BSD-3-Clause */
#include "ref/chain.h"

#include <errno.h>
#include <string.h>

/* ---- numbers ----------------------------------------------------------------------------- */

/* Work requests of a queue before number `end` of the program; with `signaled` completions. */
static uint32_t count_of(const struct kbtp_chain_program *program, uint32_t queue, uint32_t end,
                         bool signaled)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < end; i++)
        count += program->wrs[i].queue == queue &&
                 (!signaled || (program->wrs[i].flags & RDMA_SIGNALED) != 0);
    return count;
}

static uint32_t per_run(const struct kbtp_chain_program *program, uint32_t queue)
{
    return count_of(program, queue, program->wrs_count, false);
}

/* The absolute number of work request `wr` in a run. */
static uint32_t number_of(const struct kbtp_chain *chain, const struct kbtp_chain_program *program,
                          uint32_t run, uint32_t wr)
{
    uint32_t queue = program->wrs[wr].queue;
    return chain->queues[queue].first + run * per_run(program, queue) +
           count_of(program, queue, wr, false);
}

/* The completions that a WAIT looks for, and the limit that an ENABLE sets. */
static uint32_t target_of(const struct kbtp_chain *chain, const struct kbtp_chain_program *program,
                          uint32_t run, const struct kbtp_chain_wr *wr)
{
    uint32_t each = 1;
    if (wr->other != KBTP_CHAIN_RECEIVES)
        each = count_of(program, wr->other, program->wrs_count, wr->op == RDMA_WAIT);
    return chain->queues[wr->other].first + run * each + wr->number;
}

/* ---- places ------------------------------------------------------------------------------ */

static char *scratch_of(const struct kbtp_chain *chain, uint32_t run)
{
    return (char *)chain->scratch.addr + (size_t)(run % chain->runs) * KBTP_CHAIN_SCRATCH;
}

/* Octets that follow each other in memory are one SGE. */
static int add_octet(struct rdma_sge *sges, uint32_t *count, char *at, uint32_t lkey)
{
    if (*count != 0) {
        struct rdma_sge *last = &sges[*count - 1];
        if (last->lkey == lkey && (char *)last->addr + last->length == at) {
            last->length++;
            return 0;
        }
    }
    if (*count == KBTP_CHAIN_SGES)
        return -ENOTSUP;
    sges[(*count)++] = (struct rdma_sge){at, 1, lkey};
    return 0;
}

static int add_field(const struct kbtp_cpu *cpu, const struct kbtp_chain *chain,
                     const struct kbtp_chain_program *program, uint32_t run,
                     const struct kbtp_chain_place *place, struct rdma_sge *sges, uint32_t *count)
{
    const struct rdma_chain_queue *queue = &chain->queues[program->wrs[place->wr].queue];
    uint32_t number = number_of(chain, program, run, place->wr);
    for (uint32_t i = 0; i < place->octets; i++) {
        uint32_t lane = place->lane + i;
        void *at;
        if (place->at == KBTP_AT_OPERAND && !chain->atomic_big_endian)
            lane = 7 - lane;
        int found = rdma_chain_field(cpu->rdma, queue, number, place->field, place->sge, lane, &at);
        int failed = found < 0 ? found : add_octet(sges, count, at, queue->region.lkey);
        if (failed)
            return failed;
    }
    return 0;
}

static int add_place(const struct kbtp_cpu *cpu, const struct kbtp_chain *chain,
                     const struct kbtp_chain_program *program, uint32_t run,
                     const struct kbtp_chain_place *place, struct rdma_sge *sges, uint32_t *count)
{
    if (place->at == KBTP_AT_FIELD || place->at == KBTP_AT_OPERAND)
        return add_field(cpu, chain, program, run, place, sges, count);
    if (*count == KBTP_CHAIN_SGES)
        return -ENOTSUP;
    if (place->at == KBTP_AT_POOL)
        sges[*count] = (struct rdma_sge){chain->pool.addr, place->octets, chain->pool.lkey};
    else
        sges[*count] = (struct rdma_sge){scratch_of(chain, run) + place->offset, place->octets,
                                         chain->scratch.lkey};
    ++*count;
    return 0;
}

static int sges_of(const struct kbtp_cpu *cpu, const struct kbtp_chain *chain,
                   const struct kbtp_chain_program *program, uint32_t run,
                   const struct kbtp_chain_place *places, uint32_t places_count,
                   struct rdma_sge *sges, uint32_t *count)
{
    *count = 0;
    for (uint32_t i = 0; i < places_count; i++) {
        int failed = add_place(cpu, chain, program, run, &places[i], sges, count);
        if (failed)
            return failed;
    }
    return 0;
}

static void set_remote(const struct kbtp_chain *chain, uint32_t run,
                       const struct kbtp_chain_place *place, struct rdma_wr *wr)
{
    const struct rdma_region *region = place->at == KBTP_AT_TABLE    ? &chain->table
                                       : place->at == KBTP_AT_LOOKUP ? &chain->lookup
                                                                     : &chain->scratch;
    if (place->at == KBTP_AT_NOWHERE)
        return;
    wr->remote_stag = region->stag;
    wr->remote_to = region->base_to;
    if (place->at == KBTP_AT_SCRATCH)
        wr->remote_to += (uint64_t)(run % chain->runs) * KBTP_CHAIN_SCRATCH + place->offset;
}

/* ---- work requests ----------------------------------------------------------------------- */

/* Octets in the order of memory, as the number that the device's atomics take them for. */
static uint64_t operand_of(const struct kbtp_chain *chain, const uint8_t octets[8])
{
    uint64_t value = 0;
    for (uint32_t i = 0; i < 8; i++)
        value = value << 8 | octets[chain->atomic_big_endian ? i : 7 - i];
    return value;
}

static void set_operands(const struct kbtp_chain *chain, const struct kbtp_chain_program *program,
                         uint32_t run, const struct kbtp_chain_wr *from, struct rdma_wr *wr)
{
    if (from->op == RDMA_CAS) {
        wr->cas.compare = operand_of(chain, from->compare);
        wr->cas.compare_mask = operand_of(chain, from->mask);
        wr->cas.swap_mask = operand_of(chain, from->clear);
    } else if (from->op == RDMA_WAIT) {
        wr->wait.queue = chain->queues[from->other].id;
        wr->wait.count = target_of(chain, program, run, from);
    } else if (from->op == RDMA_ENABLE) {
        wr->enable.queue = chain->queues[from->other].id;
        wr->enable.count = target_of(chain, program, run, from);
    }
}

static int put(const struct kbtp_cpu *cpu, const struct kbtp_chain *chain,
               const struct kbtp_chain_program *program, uint32_t run, uint32_t i)
{
    const struct kbtp_chain_wr *from = &program->wrs[i];
    struct rdma_sge sges[KBTP_CHAIN_SGES];
    struct rdma_wr wr = {.wr_id = run, .op = from->op, .flags = from->flags, .sges = sges};
    int failed =
        sges_of(cpu, chain, program, run, from->local, from->local_count, sges, &wr.sge_count);
    if (failed)
        return failed;
    set_remote(chain, run, &from->remote, &wr);
    set_operands(chain, program, run, from, &wr);
    return rdma_chain_put(cpu->rdma, &chain->queues[from->queue], number_of(chain, program, run, i),
                          &wr);
}

static int post_receive(const struct kbtp_cpu *cpu, const struct kbtp_chain *chain,
                        const struct kbtp_chain_program *program, uint32_t run)
{
    struct rdma_sge sges[KBTP_CHAIN_SGES];
    struct rdma_wr receive = {.wr_id = run, .op = RDMA_RECV, .sges = sges};
    int failed = sges_of(cpu, chain, program, run, program->receive, program->receive_count, sges,
                         &receive.sge_count);
    return failed ? failed : rdma_post_recv(cpu->rdma, chain->conn, &receive, 1);
}

int kbtp_chain_post(const struct kbtp_cpu *cpu, struct kbtp_chain *chain,
                    const struct kbtp_chain_program *program)
{
    uint32_t run = chain->posted, done;
    int failed = kbtp_chain_done(cpu, chain, &done);
    if (failed)
        return failed;
    if (run - done >= chain->runs)
        return -ENOMEM;
    mem_write(cpu->mem, scratch_of(chain, run), program->scratch, KBTP_CHAIN_SCRATCH);
    for (uint32_t i = 0; i < program->wrs_count; i++) {
        failed = put(cpu, chain, program, run, i);
        if (failed)
            return failed;
    }
    failed = post_receive(cpu, chain, program, run);
    if (failed)
        return failed;
    chain->posted++;
    const struct rdma_chain_queue *ctrl = &chain->queues[KBTP_CHAIN_CTRL];
    return rdma_chain_enable(cpu->rdma, ctrl,
                             ctrl->first + chain->posted * per_run(program, KBTP_CHAIN_CTRL));
}

/* ---- queues ------------------------------------------------------------------------------ */

uint64_t kbtp_chain_octets(const struct kbtp_cpu *cpu, const struct kbtp_chain_program *program,
                           uint32_t runs)
{
    uint64_t octets = (uint64_t)runs * KBTP_CHAIN_SCRATCH;
    for (uint32_t i = 0; i < KBTP_CHAIN_QUEUES; i++) {
        uint32_t of_queue = rdma_chain_octets(cpu->rdma, runs * per_run(program, i));
        if (of_queue == 0)
            return 0;
        octets += of_queue;
    }
    return octets;
}

/* SGEs at most: octets of a field that the device has in the other order lie apart. */
static uint32_t most_sges(const struct rdma_caps *caps, const struct kbtp_chain_place *places,
                          uint32_t count)
{
    uint32_t sges = 0;
    for (uint32_t i = 0; i < count; i++) {
        bool together = places[i].at == KBTP_AT_OPERAND
                            ? caps->wqe_big_endian == caps->atomic_memory_big_endian
                            : places[i].at != KBTP_AT_FIELD || caps->wqe_big_endian;
        sges += together ? 1 : places[i].octets;
    }
    return sges;
}

static bool has_sges(const struct rdma_caps *caps, const struct kbtp_chain_program *program)
{
    for (uint32_t i = 0; i < program->wrs_count; i++) {
        const struct kbtp_chain_wr *wr = &program->wrs[i];
        uint32_t most = wr->op == RDMA_READ ? caps->max_read_sge : caps->max_sge;
        if (most_sges(caps, wr->local, wr->local_count) > most)
            return false;
    }
    return most_sges(caps, program->receive, program->receive_count) <= caps->max_sge;
}

static int check(const struct kbtp_cpu *cpu, struct kbtp_chain *chain,
                 const struct kbtp_chain_program *program, const struct kbtp_chain_config *config)
{
    const uint32_t needed = RDMA_CAP_CHAIN | RDMA_CAP_CAS | RDMA_CAP_MASKED;
    struct rdma_caps caps;
    rdma_caps(cpu->rdma, &caps);
    if ((caps.bits & needed) != needed || !has_sges(&caps, program))
        return -ENOTSUP;
    chain->atomic_big_endian = caps.atomic_memory_big_endian;
    return config->runs != 0 && (uintptr_t)config->memory % KBTP_CHAIN_SCRATCH == 0 ? 0 : -EINVAL;
}

/* CONN can only be taken back with its connection, so it is made when all else is. */
static int make_queues(const struct kbtp_cpu *cpu, struct kbtp_chain *chain,
                       const struct kbtp_chain_program *program,
                       const struct kbtp_chain_config *config)
{
    static const struct {
        uint8_t queue, kind;
    } order[] = {{KBTP_CHAIN_CTRL, RDMA_CHAIN_CTRL},
                 {KBTP_CHAIN_LOOP, RDMA_CHAIN_LOOP},
                 {KBTP_CHAIN_RECEIVES, RDMA_CHAIN_RECV},
                 {KBTP_CHAIN_CONN, RDMA_CHAIN_SEND}};
    char *memory = (char *)config->memory + (size_t)config->runs * KBTP_CHAIN_SCRATCH;
    for (uint32_t i = 0; i < 4; i++) {
        uint32_t queue = order[i].queue;
        struct rdma_chain_config one = {
            .kind = order[i].kind, .conn = config->conn, .memory = memory};
        if (queue != KBTP_CHAIN_RECEIVES) {
            one.depth = config->runs * per_run(program, queue);
            memory += rdma_chain_octets(cpu->rdma, one.depth);
        }
        int failed = rdma_chain_create(cpu->rdma, &one, &chain->queues[queue]);
        if (!failed)
            continue;
        while (i-- != 0)
            rdma_chain_destroy(cpu->rdma, &chain->queues[order[i].queue]);
        return failed;
    }
    return 0;
}

int kbtp_chain_init(const struct kbtp_cpu *cpu, struct kbtp_chain *chain,
                    const struct kbtp_chain_program *program,
                    const struct kbtp_chain_config *config)
{
    memset(chain, 0, sizeof *chain);
    chain->table = config->table;
    chain->lookup = config->lookup;
    chain->pool = config->pool;
    chain->conn = config->conn;
    chain->runs = config->runs;
    int failed = check(cpu, chain, program, config);
    if (failed)
        return failed;
    failed = rdma_reg(cpu->rdma, config->memory, (uint64_t)config->runs * KBTP_CHAIN_SCRATCH,
                      RDMA_LOCAL_WRITE | RDMA_REMOTE_READ | RDMA_REMOTE_ATOMIC, 0, &chain->scratch);
    if (failed)
        return failed;
    failed = chain->scratch.base_to % KBTP_CHAIN_SCRATCH != 0
                 ? -EINVAL
                 : make_queues(cpu, chain, program, config);
    if (failed)
        rdma_dereg(cpu->rdma, &chain->scratch);
    return failed;
}

int kbtp_chain_done(const struct kbtp_cpu *cpu, const struct kbtp_chain *chain, uint32_t *runs)
{
    struct rdma_chain_state state;
    for (uint32_t i = 0; i < KBTP_CHAIN_QUEUES; i++) {
        int failed = rdma_chain_state(cpu->rdma, &chain->queues[i], &state);
        if (failed)
            return failed;
        if (state.status != RDMA_OK)
            return -EIO;
    }
    /* CONN is the last to work in a run, and its last work request completes. */
    *runs = state.completions - chain->queues[KBTP_CHAIN_CONN].first;
    return 0;
}

int kbtp_chain_end(const struct kbtp_cpu *cpu, struct kbtp_chain *chain)
{
    int first = 0;
    for (uint32_t i = 0; i < KBTP_CHAIN_QUEUES; i++) {
        int failed = rdma_chain_destroy(cpu->rdma, &chain->queues[i]);
        first = first ? first : failed;
    }
    int failed = rdma_dereg(cpu->rdma, &chain->scratch);
    return first ? first : failed;
}
