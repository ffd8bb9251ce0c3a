/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Chain queues: making them, what CPUs and work requests tell them, and their way from memory into
 * the send queue of an end, which then executes them as if they had been posted.
 *
 * A LOOP or CTRL queue is a connection between two ends of one handle, which no CPU sees: they lie
 * behind those that have numbers.
 */
#include <errno.h>

#include "sim/rnic_state.h"

#define RECEIVES 0x80000000u /* id of a RECV queue: this and the connection */
#define MAX_DEPTH 65536u

/* How far a number is beyond another; both wrap. */
static int32_t beyond(uint32_t number, uint32_t other)
{
    return (int32_t)(number - other);
}

static void touch_chain(const struct end *end)
{
    rnic_touch(end->handle->w, end->chain_segment);
}

static struct end *end_of(const struct sim_handle *h, uint32_t id)
{
    if (id >= h->limits.connections + 2 * h->limits.loops)
        return NULL;
    struct end *end = &h->ends[id];
    rnic_look(h->w, end->chain_segment);
    return rnic_is_managed(end) ? end : NULL;
}

struct end *rnic_chain_end(const struct sim_handle *h, const struct rdma_chain_queue *queue)
{
    return queue->kind == RDMA_CHAIN_RECV ? NULL : end_of(h, queue->id);
}

/* The count that a WAIT for queue `id` looks at, or NULL. */
static const uint32_t *count_of(const struct sim_handle *h, uint32_t id)
{
    uint32_t conn = id & ~RECEIVES;
    if ((id & RECEIVES) == 0) {
        const struct end *end = end_of(h, id);
        return end ? &end->chain->completions : NULL;
    }
    if (conn >= h->limits.connections)
        return NULL;
    const struct end *end = &h->ends[conn];
    rnic_look(h->w, end->chain_segment);
    return end->chain->counts_receives ? &end->chain->received : NULL;
}

/* A count moved: a WAIT of some queue may be over. */
static void stir_all(const struct sim_handle *h)
{
    for (uint32_t i = 0; i < h->limits.connections + 2 * h->limits.loops; i++)
        if (rnic_is_managed(&h->ends[i]))
            rnic_stir(&h->ends[i]);
}

/* ---- making and ending ------------------------------------------------------------------- */

static struct end *free_loop(const struct sim_handle *h)
{
    for (uint32_t i = 0; i < h->limits.loops; i++) {
        struct end *end = &h->ends[h->limits.connections + 2 * i];
        if (end->state->state == END_FREE)
            return end;
    }
    return NULL;
}

/* Both of its ends are connected, for good. */
static void join_loop(struct end *end)
{
    const struct sim_handle *h = end->handle;
    uint32_t number = (end->conn - h->limits.connections) / 2;
    struct link *link = &h->w->rnics->links[h->first_loop + number];
    rnic_touch(h->w, link->segment);
    *link->state =
        (struct rnic_link){.state = LINK_ESTABLISHED, .handles = {h->index + 1, h->index + 1}};
    for (uint32_t side = 0; side < 2; side++) {
        struct end *one = &h->ends[end->conn + side];
        link->state->sides[side] =
            (struct rnic_link_side){.handle = h->index + 1, .conn = one->conn};
        rnic_touch(h->w, one->segment);
        *one->state = (struct rnic_end){.state = END_ESTABLISHED,
                                        .known = KNOWN_CONNECTED,
                                        .side = (uint8_t)side,
                                        .link = h->first_loop + number + 1,
                                        .send_depth = h->limits.send_depth,
                                        .max_sge = h->limits.max_sge,
                                        .reads_out = h->limits.reads,
                                        .reads_in = h->limits.reads};
    }
}

/* The end that a queue of this kind is to be, if it can be. */
static int find_end(const struct sim_handle *h, const struct rdma_chain_config *config,
                    struct end **end)
{
    if (config->kind == RDMA_CHAIN_LOOP || config->kind == RDMA_CHAIN_CTRL) {
        *end = free_loop(h);
        return *end ? 0 : -ENOSPC;
    }
    if (config->conn >= h->limits.connections)
        return -EINVAL;
    *end = &h->ends[config->conn];
    const struct rnic_end *e = (*end)->state;
    if (config->kind == RDMA_CHAIN_RECV)
        return e->state != END_FREE && !(*end)->chain->counts_receives ? 0 : -EINVAL;
    bool can = e->state == END_ESTABLISHED && e->known == KNOWN_CONNECTED && e->posted == 0 &&
               !rnic_is_managed(*end);
    return can ? 0 : -EINVAL;
}

static void count_receives(const struct end *end, struct rdma_chain_queue *queue)
{
    touch_chain(end);
    end->chain->counts_receives = 1;
    end->chain->received = queue->first;
    queue->id = RECEIVES | end->conn;
}

static int manage(struct sim_handle *h, struct end *end, const struct rdma_chain_config *config,
                  struct rdma_chain_queue *queue)
{
    if (config->depth == 0 || config->depth > MAX_DEPTH || (uintptr_t)config->memory % 64 != 0)
        return -EINVAL;
    int failed = rnic_reg(h, config->memory, rnic_chain_octets(h, config->depth), RDMA_LOCAL_WRITE,
                          0, &queue->region);
    if (failed)
        return failed;
    if (rnic_is_loop(end))
        join_loop(end);
    touch_chain(end);
    struct rnic_chain *chain = end->chain;
    chain->memory = (uint64_t)(uintptr_t)config->memory;
    chain->depth = config->depth;
    chain->put = chain->enabled = chain->fetched = queue->first;
    chain->completed = chain->completions = queue->first;
    chain->kind = (uint8_t)config->kind;
    queue->id = end->conn;
    queue->depth = config->depth;
    return 0;
}

int rnic_chain_create(struct sim_handle *h, const struct rdma_chain_config *config,
                      struct rdma_chain_queue *queue)
{
    struct end *end;
    if (config->kind > RDMA_CHAIN_RECV)
        return -EINVAL;
    int failed = find_end(h, config, &end);
    if (failed)
        return failed;
    *queue = (struct rdma_chain_queue){.kind = config->kind, .first = h->rnic->config.chain_first};
    if (config->kind != RDMA_CHAIN_RECV)
        return manage(h, end, config, queue);
    count_receives(end, queue);
    return 0;
}

void rnic_chain_forget(struct end *end)
{
    if (!end->chain)
        return;
    touch_chain(end);
    memset(end->chain, 0, sizeof *end->chain);
}

static void release_loop(struct end *end)
{
    struct sim_rnic *rnic = end->handle->rnic;
    for (uint32_t side = 0; side < 2; side++) {
        struct end *one = end + side;
        if (rnic->host->atomic == one->index + 1) {
            rnic_touch(rnic->w, rnic->segment);
            rnic->host->atomic = 0;
        }
        rnic_release(one);
    }
}

int rnic_chain_destroy(struct sim_handle *h, struct rdma_chain_queue *queue)
{
    struct end *end = rnic_chain_end(h, queue);
    if (queue->kind == RDMA_CHAIN_RECV) {
        if (!count_of(h, queue->id))
            return -EINVAL;
        const struct end *counting = &h->ends[queue->id & ~RECEIVES];
        touch_chain(counting);
        counting->chain->received = counting->chain->counts_receives = 0;
    } else if (end && !rnic_is_loop(end)) {
        return -EBUSY;
    } else {
        int failed = rnic_dereg(h, &queue->region);
        if (failed)
            return failed;
        if (end)
            release_loop(end);
    }
    stir_all(h);
    return 0;
}

/* ---- calls about a queue ----------------------------------------------------------------- */

int rnic_chain_put(struct sim_handle *h, const struct rdma_chain_queue *queue, uint32_t number,
                   const struct rdma_wr *wr)
{
    struct end *end = rnic_chain_end(h, queue);
    if (!end)
        return -EINVAL;
    struct rnic_chain *chain = end->chain;
    if (beyond(number, chain->enabled) < 0 || beyond(number, chain->put) > 0)
        return -EINVAL;
    if (number - chain->completed >= chain->depth)
        return -ENOMEM;
    int failed = rnic_chain_check(end, wr);
    if (failed)
        return failed;
    rnic_chain_write(end, number, wr);
    touch_chain(end);
    if (number == chain->put)
        chain->put++;
    return 0;
}

static void raise_limit(struct end *end, uint32_t limit)
{
    if (beyond(limit, end->chain->enabled) <= 0)
        return;
    touch_chain(end);
    end->chain->enabled = limit;
}

int rnic_chain_ring(struct sim_handle *h, const struct rdma_chain_queue *queue, uint32_t limit)
{
    struct end *end = rnic_chain_end(h, queue);
    if (!end || beyond(limit, end->chain->put) > 0)
        return -EINVAL;
    raise_limit(end, limit);
    return 0;
}

int rnic_chain_state(struct sim_handle *h, const struct rdma_chain_queue *queue,
                     struct rdma_chain_state *state)
{
    const uint32_t *count = count_of(h, queue->id);
    if (!count)
        return -EINVAL;
    *state = (struct rdma_chain_state){.completions = *count};
    const struct end *end = rnic_chain_end(h, queue);
    if (end) {
        state->enabled = end->chain->enabled;
        state->completed = end->chain->completed;
        state->status = end->chain->status;
    }
    return 0;
}

/* ---- of the engine ----------------------------------------------------------------------- */

/* A loop that failed goes on fetching: what is enabled is flushed. */
bool rnic_can_snapshot(const struct end *end)
{
    const struct rnic_end *e = end->state;
    return rnic_is_managed(end) && (!e->stopped || rnic_is_loop(end)) &&
           beyond(end->chain->enabled, end->chain->fetched) > 0 && e->posted < e->send_depth;
}

void rnic_do_snapshot(struct end *end)
{
    struct sim_world *w = end->handle->w;
    struct rnic_end *e = end->state;
    rnic_touch(w, end->segment);
    touch_chain(end);
    uint32_t number = end->chain->fetched++;
    struct rnic_wqe *wqe = rnic_wqe(end, e->posted++);
    if (!rnic_chain_read(end, number, wqe))
        *wqe = (struct rnic_wqe){.op = RDMA_NOOP, .status = RDMA_LOCAL_ERROR};
    e->rung++;
    const char *place = rnic_chain_place(end, number);
    uint32_t octets = rnic_chain_wqe_octets(end->handle);
    sim_footprint_note(w, place, octets, false);
    rnic_observe(
        end,
        (struct sim_access){
            .kind = SIM_SNAPSHOT, .at = place, .octets = octets, .value = number, .op = wqe->op});
    rnic_stir(end);
}

bool rnic_wait_is_over(const struct end *end, const struct rnic_wqe *wait)
{
    const uint32_t *count = count_of(end->handle, (uint32_t)wait->operand[0]);
    return !count || beyond(*count, (uint32_t)wait->operand[1]) >= 0;
}

bool rnic_wait_is_legal(const struct end *end, const struct rnic_wqe *wait)
{
    return count_of(end->handle, (uint32_t)wait->operand[0]) != NULL;
}

bool rnic_enable(const struct end *end, const struct rnic_wqe *enable)
{
    struct end *other = end_of(end->handle, (uint32_t)enable->operand[0]);
    if (!other)
        return false;
    raise_limit(other, (uint32_t)enable->operand[1]);
    return true;
}

void rnic_chain_completed(struct end *end, bool counts, uint8_t status)
{
    struct rnic_chain *chain = end->chain;
    rnic_touch(end->handle->w, end->segment);
    touch_chain(end);
    chain->completed++;
    if (chain->status == RDMA_OK || (chain->status == RDMA_FLUSHED && status != RDMA_OK))
        chain->status = status; /* the cause, also when what was before it is flushed */
    end->state->completed++;
    rnic_retire_sends(end, 1);
    if (!counts)
        return;
    chain->completions++;
    stir_all(end->handle);
}

void rnic_chain_received(const struct end *end)
{
    if (!end->chain || !end->chain->counts_receives)
        return;
    touch_chain(end);
    end->chain->received++;
    stir_all(end->handle);
}
