/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/cpu_rdma.h"

#include <errno.h>

#include "sim/cpu_state.h"
#include "sim/rnic_state.h"

#define MAX_POLLED 16u /* completions that one look takes */

static struct sim_agent *agent_of(struct rdma *r)
{
    return (struct sim_agent *)((char *)r - offsetof(struct sim_agent, rdma));
}

static void observe(const struct sim_agent *agent, struct sim_access access)
{
    access.cpu = agent->index;
    cpu_observe(agent, access);
}

/* Results that are longer than a word are repeated too. */
static void repeat(struct sim_agent *agent, void *to, uint32_t octets)
{
    struct sim_world *w = agent->world;
    memcpy(to, &results_of(agent)[w->cursor], octets);
    w->cursor += words_of(octets);
}

/* The same, before the call has its effect: there must be room. */
static void keep(struct sim_agent *agent, const void *octets, uint32_t count)
{
    memcpy(&results_of(agent)[agent->cpu->accesses], octets, count);
    cpu_log(agent, NULL, words_of(count));
}

static void keep_word(struct sim_agent *agent, int64_t value)
{
    uint64_t word = (uint64_t)value;
    cpu_log(agent, &word, 1);
}

/* ---- posting ----------------------------------------------------------------------------- */

void cpu_doorbell(struct sim_agent *agent, const struct sim_buffered *entry)
{
    bool receives = entry->value >> 32 != 0;
    rnic_ring(agent->handle, entry->place, receives, (uint32_t)entry->value);
    observe(agent, (struct sim_access){.kind = SIM_RING,
                                       .conn = entry->place,
                                       .op = receives ? RDMA_RECV : RDMA_SEND,
                                       .value = (uint32_t)entry->value});
}

/* What a posted BIND told the window is repeated: it may lie in memory that is rolled back. */
static uint32_t binds_of(const struct rdma_wr *wrs, uint32_t count)
{
    uint32_t binds = 0;
    for (uint32_t i = 0; i < count; i++)
        binds += wrs[i].op == RDMA_BIND;
    return binds;
}

static void keep_windows(struct sim_agent *agent, const struct rdma_wr *wrs, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (wrs[i].op == RDMA_BIND)
            keep(agent, wrs[i].bind.window, sizeof *wrs[i].bind.window);
}

static void repeat_windows(struct sim_agent *agent, const struct rdma_wr *wrs, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (wrs[i].op == RDMA_BIND)
            repeat(agent, wrs[i].bind.window, sizeof *wrs[i].bind.window);
}

/*
 * The doorbell enters the store buffer, which nobody sees. Without one it is seen at once, and so
 * is one for receives when nothing that this step has shown can make the peer use them: then
 * nobody can tell it from having been earlier.
 */
static int post(struct rdma *r, uint32_t conn, const struct rdma_wr *wrs, uint32_t count,
                bool receives)
{
    struct sim_agent *agent = agent_of(r);
    struct sim_world *w = agent->world;
    uint64_t result;
    uint32_t binds = receives ? 0 : binds_of(wrs, count);
    if (repeated(agent, &result)) {
        if (result == 0 && binds != 0)
            repeat_windows(agent, wrs, count);
        return (int)(int64_t)result;
    }
    int failed = receives ? rnic_check_receives(agent->handle, conn, wrs, count)
                          : rnic_check_sends(agent->handle, conn, wrs, count);
    if (failed || count == 0) {
        keep_word(agent, failed);
        return failed;
    }
    bool unnoticed =
        receives && w->stepping.private_steps && agent->cpu->buffered == 0 && !w->shown;
    bool buffered = agent->memory != SIM_MEMORY_SC && !unnoticed;
    cpu_take_turn(agent, receives ? NEXT_POST_RECEIVE : NEXT_POST, NULL, conn,
                  unnoticed || (buffered && w->stepping.private_steps));
    cpu_need_results(agent, 1 + binds * words_of(sizeof(struct rdma_window)));
    if (receives)
        rnic_post_receives(agent->handle, conn, wrs, count);
    else
        rnic_post_sends(agent->handle, conn, wrs, count);
    observe(agent, (struct sim_access){.kind = SIM_POST,
                                       .conn = conn,
                                       .op = receives ? RDMA_RECV : wrs[0].op,
                                       .buffered = buffered,
                                       .value = count});
    struct sim_buffered doorbell = {
        .value = (uint64_t)receives << 32 | count, .place = conn, .release = SIM_DOORBELL};
    if (buffered) {
        cpu_buffer_push(agent, doorbell);
    } else {
        cpu_doorbell(agent, &doorbell);
        w->shown = w->shown || !unnoticed;
    }
    keep_word(agent, 0);
    if (binds != 0)
        keep_windows(agent, wrs, count);
    return 0;
}

static int poll_post_send(struct rdma *r, uint32_t conn, const struct rdma_wr *wrs, uint32_t count)
{
    return post(r, conn, wrs, count, false);
}

static int poll_post_recv(struct rdma *r, uint32_t conn, const struct rdma_wr *wrs, uint32_t count)
{
    return post(r, conn, wrs, count, true);
}

/* ---- looking ----------------------------------------------------------------------------- */

static int poll_cq_poll(struct rdma *r, uint32_t cq, struct rdma_wc *wc, uint32_t count)
{
    struct sim_agent *agent = agent_of(r);
    uint64_t result;
    if (count > MAX_POLLED)
        count = MAX_POLLED;
    if (repeated(agent, &result)) {
        if ((int64_t)result > 0)
            repeat(agent, wc, (uint32_t)result * (uint32_t)sizeof *wc);
        return (int)(int64_t)result;
    }
    cpu_take_turn(agent, NEXT_POLL, NULL, cq, false);
    if (cq < agent->handle->limits.cqs && agent->handle->cqs[cq].state &&
        agent->handle->cqs[cq].state->count < count)
        count = agent->handle->cqs[cq].state->count;
    cpu_need_results(agent, 1 + words_of(count * (uint32_t)sizeof *wc));
    int taken = rnic_cq_poll(agent->handle, cq, wc, count);
    observe(agent, (struct sim_access){.kind = SIM_POLL, .value = (uint64_t)(int64_t)taken});
    for (int i = 0; i < taken; i++)
        observe(agent, (struct sim_access){.kind = SIM_POLLED,
                                           .conn = wc[i].conn,
                                           .op = wc[i].op,
                                           .status = wc[i].status,
                                           .octets = wc[i].length,
                                           .value = wc[i].wr_id});
    keep_word(agent, taken);
    if (taken > 0)
        keep(agent, wc, (uint32_t)taken * (uint32_t)sizeof *wc);
    return taken;
}

/* What is kept of an event; private data follows. */
struct kept_event {
    uint32_t kind;
    uint32_t conn;
    int32_t error;
    uint32_t private_length;
};

static int repeat_event(struct sim_agent *agent, struct rdma_event *event, int result)
{
    struct kept_event kept;
    if (result != 1)
        return result;
    repeat(agent, &kept, sizeof kept);
    *event = (struct rdma_event){.kind = kept.kind,
                                 .conn = kept.conn,
                                 .error = kept.error,
                                 .private_length = kept.private_length};
    repeat(agent, event->private_data, kept.private_length);
    return 1;
}

static void keep_event(struct sim_agent *agent, const struct rdma_event *event)
{
    struct kept_event kept = {event->kind, event->conn, event->error, event->private_length};
    keep(agent, &kept, sizeof kept);
    if (kept.private_length != 0)
        keep(agent, event->private_data, kept.private_length);
}

static int poll_event(struct rdma *r, struct rdma_event *event)
{
    struct sim_agent *agent = agent_of(r);
    struct sim_handle *h = agent->handle;
    uint64_t result;
    if (repeated(agent, &result))
        return repeat_event(agent, event, (int)(int64_t)result);
    /* The oldest event stays what it is: who else acts does not change what is found. */
    rnic_look(h->w, h->port_segment);
    bool at_once =
        agent->world->stepping.private_steps && (h->port->events != 0 || !rnic_event_may_come(h));
    cpu_take_turn(agent, NEXT_EVENT, NULL, 0, at_once);
    cpu_need_results(agent, 1 + words_of(sizeof(struct kept_event)) + words_of(RDMA_MAX_PRIVATE));
    int taken = rnic_event(h, event);
    observe(agent, (struct sim_access){.kind = SIM_EVENT,
                                       .conn = taken ? event->conn : 0,
                                       .op = taken ? event->kind : RDMA_EVENT_NONE});
    keep_word(agent, taken);
    if (taken == 1)
        keep_event(agent, event);
    else if (at_once)
        cpu_was_quiet(agent, 1);
    return taken;
}

/* ---- calls that wait for an empty store buffer ------------------------------------------- */

/* False with the result when the call was made in an earlier step. */
static bool begin_call(struct sim_agent *agent, enum sim_call call, uint32_t conn, int *result)
{
    uint64_t word;
    if (repeated(agent, &word)) {
        *result = (int)(int64_t)word;
        return false;
    }
    cpu_take_turn(agent, NEXT_CALL, NULL, (uint32_t)call << 16 | conn, false);
    cpu_need_results(agent, 8);
    agent->world->shown = true;
    return true;
}

static int end_call_about(struct sim_agent *agent, enum sim_call call, uint32_t conn,
                          uint64_t about, int result)
{
    observe(
        agent,
        (struct sim_access){
            .kind = SIM_CALL, .op = call, .conn = conn, .value = (uint64_t)result, .old = about});
    keep_word(agent, result);
    return result;
}

static int end_call(struct sim_agent *agent, enum sim_call call, uint32_t conn, int result)
{
    return end_call_about(agent, call, conn, 0, result);
}

static int poll_connect(struct rdma *r, const char *address, const struct rdma_conn_config *config,
                        const struct rdma_wr *receives, uint32_t count, const void *private_data,
                        uint32_t private_length, uint32_t *conn)
{
    struct sim_agent *agent = agent_of(r);
    int result;
    if (!begin_call(agent, SIM_CALL_CONNECT, 0, &result)) {
        uint64_t word;
        repeat(agent, &word, sizeof word);
        *conn = (uint32_t)word;
        return result;
    }
    uint32_t made = 0;
    result = rnic_connect(agent->handle, address, config, receives, count, private_data,
                          private_length, &made);
    end_call(agent, SIM_CALL_CONNECT, made, result);
    keep_word(agent, made);
    *conn = made;
    return result;
}

static int poll_accept(struct rdma *r, uint32_t conn, const struct rdma_conn_config *config,
                       const struct rdma_wr *receives, uint32_t count, const void *private_data,
                       uint32_t private_length)
{
    struct sim_agent *agent = agent_of(r);
    int result;
    if (!begin_call(agent, SIM_CALL_ACCEPT, conn, &result))
        return result;
    result =
        rnic_accept(agent->handle, conn, config, receives, count, private_data, private_length);
    return end_call(agent, SIM_CALL_ACCEPT, conn, result);
}

static int poll_reject(struct rdma *r, uint32_t conn, const void *private_data,
                       uint32_t private_length)
{
    struct sim_agent *agent = agent_of(r);
    int result;
    if (!begin_call(agent, SIM_CALL_REJECT, conn, &result))
        return result;
    return end_call(agent, SIM_CALL_REJECT, conn,
                    rnic_reject(agent->handle, conn, private_data, private_length));
}

static int poll_disconnect(struct rdma *r, uint32_t conn)
{
    struct sim_agent *agent = agent_of(r);
    int result;
    if (!begin_call(agent, SIM_CALL_DISCONNECT, conn, &result))
        return result;
    return end_call(agent, SIM_CALL_DISCONNECT, conn, rnic_disconnect(agent->handle, conn));
}

static int poll_destroy(struct rdma *r, uint32_t conn)
{
    struct sim_agent *agent = agent_of(r);
    int result;
    if (!begin_call(agent, SIM_CALL_DESTROY, conn, &result))
        return result;
    return end_call(agent, SIM_CALL_DESTROY, conn, rnic_destroy(agent->handle, conn));
}

static int poll_timer(struct rdma *r, uint32_t id, uint64_t delay_ns)
{
    struct sim_agent *agent = agent_of(r);
    int result;
    if (!begin_call(agent, SIM_CALL_TIMER, id, &result))
        return result;
    return end_call_about(agent, SIM_CALL_TIMER, id, delay_ns,
                          rnic_timer(agent->handle, id, delay_ns));
}

static int poll_cq_arm(struct rdma *r, uint32_t cq, bool solicited_only)
{
    struct sim_agent *agent = agent_of(r);
    int result;
    if (!begin_call(agent, SIM_CALL_ARM, cq, &result))
        return result;
    return end_call(agent, SIM_CALL_ARM, cq, rnic_cq_arm(agent->handle, cq, solicited_only));
}

static int poll_reg(struct rdma *r, void *addr, uint64_t length, uint32_t access,
                    uint64_t wanted_base, struct rdma_region *region)
{
    struct sim_agent *agent = agent_of(r);
    int result;
    if (!begin_call(agent, SIM_CALL_REG, 0, &result)) {
        if (result == 0)
            repeat(agent, region, sizeof *region);
        return result;
    }
    result = rnic_reg(agent->handle, addr, length, access, wanted_base, region);
    end_call(agent, SIM_CALL_REG, 0, result);
    if (result == 0)
        keep(agent, region, sizeof *region);
    return result;
}

static int poll_dereg(struct rdma *r, struct rdma_region *region)
{
    struct sim_agent *agent = agent_of(r);
    int result;
    if (!begin_call(agent, SIM_CALL_DEREG, region->id, &result))
        return result;
    return end_call(agent, SIM_CALL_DEREG, region->id, rnic_dereg(agent->handle, region));
}

static int poll_window_alloc(struct rdma *r, struct rdma_window *window)
{
    struct sim_agent *agent = agent_of(r);
    int result;
    if (!begin_call(agent, SIM_CALL_WINDOW_ALLOC, 0, &result)) {
        if (result == 0)
            repeat(agent, window, sizeof *window);
        return result;
    }
    result = end_call(agent, SIM_CALL_WINDOW_ALLOC, 0, rnic_window_alloc(agent->handle, window));
    if (result == 0)
        keep(agent, window, sizeof *window);
    return result;
}

static int poll_window_free(struct rdma *r, struct rdma_window *window)
{
    struct sim_agent *agent = agent_of(r);
    int result;
    if (!begin_call(agent, SIM_CALL_WINDOW_FREE, window->id, &result))
        return result;
    return end_call(agent, SIM_CALL_WINDOW_FREE, window->id,
                    rnic_window_free(agent->handle, window));
}

static int poll_chain_put(struct rdma *r, const struct rdma_chain_queue *queue, uint32_t number,
                          const struct rdma_wr *wr)
{
    struct sim_agent *agent = agent_of(r);
    int result;
    if (!begin_call(agent, SIM_CALL_CHAIN_PUT, queue->id & 0xffff, &result))
        return result;
    return end_call(agent, SIM_CALL_CHAIN_PUT, queue->id & 0xffff,
                    rnic_chain_put(agent->handle, queue, number, wr));
}

static int poll_chain_enable(struct rdma *r, const struct rdma_chain_queue *queue, uint32_t limit)
{
    struct sim_agent *agent = agent_of(r);
    int result;
    if (!begin_call(agent, SIM_CALL_CHAIN_ENABLE, queue->id & 0xffff, &result))
        return result;
    return end_call(agent, SIM_CALL_CHAIN_ENABLE, queue->id & 0xffff,
                    rnic_chain_ring(agent->handle, queue, limit));
}

static int poll_chain_state(struct rdma *r, const struct rdma_chain_queue *queue,
                            struct rdma_chain_state *state)
{
    struct sim_agent *agent = agent_of(r);
    int result;
    if (!begin_call(agent, SIM_CALL_CHAIN_STATE, queue->id & 0xffff, &result)) {
        if (result == 0)
            repeat(agent, state, sizeof *state);
        return result;
    }
    result = end_call(agent, SIM_CALL_CHAIN_STATE, queue->id & 0xffff,
                      rnic_chain_state(agent->handle, queue, state));
    if (result == 0)
        keep(agent, state, sizeof *state);
    return result;
}

const struct rdma_chain_ops cpu_poll_chain_ops = {
    .put = poll_chain_put, .enable = poll_chain_enable, .state = poll_chain_state};

/* Nobody else sees how many were drawn. */
static int poll_random(struct rdma *r, void *octets, uint32_t length)
{
    struct sim_agent *agent = agent_of(r);
    if (agent->world->cursor < agent->cpu->accesses) {
        repeat(agent, octets, length);
        return 0;
    }
    cpu_need_results(agent, words_of(length));
    rnic_random(agent->handle, octets, length);
    keep(agent, octets, length);
    return 0;
}

const struct rdma_ops cpu_poll_rdma_ops = {
    .reg = poll_reg,
    .dereg = poll_dereg,
    .window_alloc = poll_window_alloc,
    .window_free = poll_window_free,
    .cq_poll = poll_cq_poll,
    .cq_arm = poll_cq_arm,
    .connect = poll_connect,
    .accept = poll_accept,
    .reject = poll_reject,
    .disconnect = poll_disconnect,
    .destroy = poll_destroy,
    .event = poll_event,
    .post_send = poll_post_send,
    .post_recv = poll_post_recv,
    .timer = poll_timer,
    .random = poll_random,
};
