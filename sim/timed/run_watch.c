/* SPDX-License-Identifier: BSD-3-Clause */
/* What goes on in a timed run, told as spans of time. */
#include "ref/wire_names.h"
#include "sim/timed/run.h"

static const char *op_name(uint32_t op)
{
    static const char *const names[] = {
        [RDMA_SEND] = "SEND", [RDMA_SEND_INV] = "SEND_INV",   [RDMA_WRITE] = "WRITE",
        [RDMA_READ] = "READ", [RDMA_WRITE_IMM] = "WRITE_IMM", [RDMA_FETCH_ADD] = "FETCH_ADD",
        [RDMA_CAS] = "CAS",
    };
    return op < sizeof names / sizeof *names && names[op] ? names[op] : "?";
}

static void tell(const struct sim_timed_run *run, const struct sim_timed_span *span)
{
    run->options.span(run->options.context, span);
}

static void nic_span(void *context, enum sim_nic_span kind, uint32_t nic, uint32_t op,
                     uint32_t octets, uint64_t begin_ps, uint64_t end_ps)
{
    static const enum sim_timed_track tracks[] = {[SIM_SPAN_SEND] = SIM_TRACK_SEND,
                                                  [SIM_SPAN_WIRE] = SIM_TRACK_WIRE,
                                                  [SIM_SPAN_RECEIVE] = SIM_TRACK_RECEIVE};
    tell(context,
         &(struct sim_timed_span){nic, tracks[kind], 0, op_name(op), octets, begin_ps, end_ps});
}

static void worker_span(void *watcher, const struct sim_core *core, uint64_t begin_ps,
                        uint64_t end_ps)
{
    const struct sim_worker_cpu *w = core->context;
    tell(watcher,
         &(struct sim_timed_span){w->target->nic, SIM_TRACK_WORKER,
                                  (uint32_t)(w - w->target->workers), "", 0, begin_ps, end_ps});
}

static void instance_span(void *watcher, const struct sim_core *core, uint64_t begin_ps,
                          uint64_t end_ps)
{
    const struct sim_instance *i = core->context;
    tell(watcher,
         &(struct sim_timed_span){i->nic, SIM_TRACK_INSTANCE, i->number, "", 0, begin_ps, end_ps});
}

static void request_span(void *context, const struct sim_session *session, uint32_t place,
                         uint64_t begin_ps, uint64_t end_ps)
{
    static const uint8_t opcodes[SIM_MIX_KINDS] = {[SIM_MIX_LOAD] = KBTP_OP_LOAD,
                                                   [SIM_MIX_STORE] = KBTP_OP_STORE,
                                                   [SIM_MIX_ALLOC_STORE] = KBTP_OP_ALLOC_STORE,
                                                   [SIM_MIX_FREE] = KBTP_OP_FREE};
    const struct sim_instance *i = session->instance;
    uint32_t number = (uint32_t)(session - i->sessions) * i->group->depth + place;
    tell(context, &(struct sim_timed_span){i->nic, SIM_TRACK_REQUEST, number,
                                           kbtp_opcode_name(opcodes[session->places[place].kind]),
                                           i->group->length, begin_ps, end_ps});
}

void sim_timed_watch(struct sim_timed_run *run)
{
    const struct sim_nic_watch watch = {nic_span, run};
    sim_nics_watch(run->nics, &watch);
    run->load.watch = request_span;
    for (uint32_t i = 0; i < run->instances_count; i++) {
        run->instances[i].core.watch = instance_span;
        run->instances[i].core.watcher = run;
    }
    for (uint32_t i = 0; i < run->targets_count; i++)
        for (uint32_t n = 0; n < run->targets[i].workers_count; n++) {
            run->targets[i].workers[n].core.watch = worker_span;
            run->targets[i].workers[n].core.watcher = run;
        }
}
