/* SPDX-License-Identifier: BSD-3-Clause */
/* Names, and words for what RNICs do. */
#include <stdio.h>

#include "sim/rnic.h"

const char *sim_rdma_op_name(uint32_t op)
{
    static const char *const names[] = {
        [RDMA_NOOP] = "NOOP",           [RDMA_SEND] = "SEND",
        [RDMA_SEND_INV] = "SEND_INV",   [RDMA_WRITE] = "WRITE",
        [RDMA_WRITE_IMM] = "WRITE_IMM", [RDMA_READ] = "READ",
        [RDMA_FETCH_ADD] = "FetchAdd",  [RDMA_CAS] = "CAS",
        [RDMA_BIND] = "BIND",           [RDMA_LOCAL_INV] = "LOCAL_INV",
        [RDMA_WAIT] = "WAIT",           [RDMA_ENABLE] = "ENABLE",
        [RDMA_WAITD] = "WAITD",         [RDMA_CENABLE] = "CENABLE",
        [RDMA_RECV] = "receive",
    };
    return op < sizeof names / sizeof *names ? names[op] : "?";
}

const char *sim_rdma_status_name(uint32_t status)
{
    static const char *const names[] = {
        [RDMA_OK] = "OK",
        [RDMA_FLUSHED] = "FLUSHED",
        [RDMA_LOCAL_ERROR] = "LOCAL_ERROR",
        [RDMA_LENGTH_ERROR] = "LENGTH_ERROR",
        [RDMA_REMOTE_ACCESS] = "REMOTE_ACCESS",
        [RDMA_REMOTE_ERROR] = "REMOTE_ERROR",
        [RDMA_RNR] = "RNR",
        [RDMA_LOST] = "LOST",
    };
    return status < sizeof names / sizeof *names ? names[status] : "?";
}

static const char *event_name(uint32_t kind)
{
    static const char *const names[] = {
        [RDMA_EVENT_NONE] = "none",
        [RDMA_EVENT_REQUEST] = "REQUEST",
        [RDMA_EVENT_CONNECTED] = "CONNECTED",
        [RDMA_EVENT_REJECTED] = "REJECTED",
        [RDMA_EVENT_DISCONNECTED] = "DISCONNECTED",
        [RDMA_EVENT_DRAINED] = "DRAINED",
        [RDMA_EVENT_TIMER] = "TIMER",
    };
    return kind < sizeof names / sizeof *names ? names[kind] : "?";
}

static const char *call_name(uint32_t call)
{
    static const char *const names[SIM_CALLS] = {
        [SIM_CALL_CONNECT] = "connects",
        [SIM_CALL_ACCEPT] = "accepts",
        [SIM_CALL_REJECT] = "rejects",
        [SIM_CALL_DISCONNECT] = "disconnects",
        [SIM_CALL_DESTROY] = "destroys",
        [SIM_CALL_TIMER] = "sets timer",
        [SIM_CALL_REG] = "registers memory",
        [SIM_CALL_DEREG] = "deregisters memory",
        [SIM_CALL_ARM] = "arms its completion queue",
        [SIM_CALL_WINDOW_ALLOC] = "allocates window",
        [SIM_CALL_WINDOW_FREE] = "frees window",
        [SIM_CALL_CHAIN_PUT] = "puts a work request into queue",
        [SIM_CALL_CHAIN_ENABLE] = "enables queue",
        [SIM_CALL_CHAIN_STATE] = "asks for the state of queue",
    };
    return call < SIM_CALLS ? names[call] : "?";
}

static void describe_cpu(const struct sim_access *a, char *out, size_t size)
{
    const char *op = sim_rdma_op_name(a->op);
    switch (a->kind) {
    case SIM_POST:
        snprintf(out, size, "posts %u of %s on connection %u", (unsigned)a->value, op, a->conn);
        break;
    case SIM_RING:
        snprintf(out, size, "rings for %u %s on connection %u", (unsigned)a->value,
                 a->op == RDMA_RECV ? "receives" : "sends", a->conn);
        break;
    case SIM_POLL:
        snprintf(out, size, "polls its completions: %d", (int)(int64_t)a->value);
        break;
    case SIM_POLLED:
        snprintf(out, size, "has %s %s of connection %u, %u octets", op,
                 sim_rdma_status_name(a->status), a->conn, a->octets);
        break;
    case SIM_EVENT:
        if (a->op == RDMA_EVENT_NONE)
            snprintf(out, size, "looks for events: none");
        else
            snprintf(out, size, "takes %s of %s %u", event_name(a->op),
                     a->op == RDMA_EVENT_TIMER ? "timer" : "connection", a->conn);
        break;
    default:
        snprintf(out, size, "%s %u: %d", call_name(a->op), a->conn, (int)(int64_t)a->value);
    }
}

static void describe_rnic(struct sim_world *w, const struct sim_access *a, char *out, size_t size)
{
    const char *op = sim_rdma_op_name(a->op), *of = w->agents[a->cpu].name;
    const char *response = a->response ? " response" : "";
    switch (a->kind) {
    case SIM_FETCH:
        snprintf(out, size, "fetches %s of %s", op, of);
        break;
    case SIM_EMIT:
        snprintf(out, size, "sends %s%s of %s, %u octets", op, response, of, a->octets);
        break;
    case SIM_DELIVER:
        snprintf(out, size, "delivers %s%s to %s, %u octets%s%s", op, response, of, a->octets,
                 a->status == RDMA_OK ? "" : ": ",
                 a->status == RDMA_OK ? "" : sim_rdma_status_name(a->status));
        break;
    case SIM_COMPLETE:
        snprintf(out, size, "completes %s of %s: %s", op, of, sim_rdma_status_name(a->status));
        break;
    case SIM_CONNECT:
        snprintf(out, size, "connects %s further", of);
        break;
    case SIM_NOTICE:
        snprintf(out, size, "notices that connection %u of %s ends", a->conn, of);
        break;
    case SIM_FLUSH:
        snprintf(out, size, "stops connection %u of %s, %u flushed", a->conn, of,
                 (unsigned)a->value);
        break;
    case SIM_SNAPSHOT:
        snprintf(out, size, "takes %s, number %u of a queue of %s, from memory", op,
                 (unsigned)a->value, of);
        break;
    case SIM_GIVE_UP:
        snprintf(out, size, "gives up: nobody answers on connection %u of %s", a->conn, of);
        break;
    case SIM_EXPIRE:
        snprintf(out, size, "timer %u of %s expires", (unsigned)a->value, of);
        break;
    default:
        snprintf(out, size, "cuts link %u", (unsigned)a->value);
    }
}

static void describe_memory(struct sim_world *w, const struct sim_access *a, char *out, size_t size)
{
    const struct sim_segment *segment = sim_segment_find(&w->arena, a->at);
    const char *verb = a->kind == SIM_GATHER         ? "gathers"
                       : a->kind == SIM_PLACE        ? "places"
                       : a->kind == SIM_READ_REMOTE  ? "reads"
                       : a->kind == SIM_ATOMIC_BEGUN ? "reads"
                                                     : "changes";
    snprintf(out, size, "%s %s +%u for %s: %#llx", verb, segment ? segment->name : "memory",
             segment ? (unsigned)((const char *)a->at - segment->at) : 0, sim_rdma_op_name(a->op),
             (unsigned long long)a->value);
}

bool sim_rnic_describe(struct sim_world *w, const struct sim_access *access, char *out, size_t size)
{
    switch (access->kind) {
    case SIM_POST:
    case SIM_RING:
    case SIM_POLL:
    case SIM_POLLED:
    case SIM_EVENT:
    case SIM_CALL:
        describe_cpu(access, out, size);
        return true;
    case SIM_GATHER:
    case SIM_PLACE:
    case SIM_READ_REMOTE:
    case SIM_ATOMIC_REMOTE:
    case SIM_ATOMIC_BEGUN:
        describe_memory(w, access, out, size);
        return true;
    default:
        if (access->kind < SIM_POST)
            return false;
        describe_rnic(w, access, out, size);
        return true;
    }
}
