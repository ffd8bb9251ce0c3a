/* SPDX-License-Identifier: BSD-3-Clause */
/* The memory of instances and their sessions. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sim/random.h"
#include "sim/timed/load.h"

#define TIMERS 3u
#define MOST_ARRIVALS (1u << 16) /* that wait: more would say nothing new */

static int make_lists(struct sim_session *s, const struct sim_timed_instances *group)
{
    s->places = calloc(group->depth, sizeof *s->places);
    s->idle = calloc(group->depth, sizeof *s->idle);
    s->lists = calloc((size_t)group->handles * 2, sizeof *s->lists);
    s->versions = calloc(group->handles, sizeof *s->versions);
    s->generations = calloc(group->handles, sizeof *s->generations);
    if (!s->places || !s->idle || !s->lists || !s->versions || !s->generations)
        return -ENOMEM;
    for (uint32_t n = 0; n < group->depth; n++)
        s->idle[s->idle_count++] = group->depth - 1 - n;
    sim_mix_init(&s->mix, s->lists, group->handles, group->fill);
    return 0;
}

/* A block for each place. */
static int make_data(struct sim_session *s, const struct sim_timed_instances *group, bool phantom)
{
    const uint32_t access = RDMA_LOCAL_WRITE | RDMA_REMOTE_READ | RDMA_REMOTE_WRITE;
    uint64_t octets = (uint64_t)group->depth * s->block_size;
    struct sim_nics *nics = s->instance->run->nics;
    const struct sim_phantom *made =
        phantom ? sim_nic_phantom(nics, group->depth, s->block_size) : NULL;
    if (!phantom)
        s->data = s->real_data = sim_core_memory(octets);
    else if (made)
        s->data = made->base;
    if (phantom && group->is_inline)
        s->inline_data = sim_core_memory(group->length);
    sim_nic_mem(&s->mem, made, s->cpu.rdma);
    if (!s->data || (phantom && group->is_inline && !s->inline_data))
        return -ENOMEM;
    return rdma_reg(s->cpu.rdma, s->data, octets, access, s->block_size, &s->region);
}

static void wake(void *context)
{
    sim_core_wake(&((struct sim_instance *)context)->core);
}

static int open_session(struct sim_instance *i, struct sim_session *s,
                        const struct sim_target *target)
{
    const struct sim_timed_instances *group = i->group;
    const struct sim_nic_limits limits = {
        .nic = i->nic, .connections = 1, .timers = TIMERS, .cqs = 1};
    const struct sim_nic_cpu cpu = {.wake = wake, .context = i};
    size_t private_octets, buffer_octets;
    s->cpu = (struct kbtp_cpu){&s->mem.mem, sim_nic_handle(i->run->nics, &limits)};
    if (!s->cpu.rdma)
        return -ENOMEM;
    int failed = make_lists(s, group);
    if (!failed)
        failed = make_data(s, group, target->pool->phantom);
    if (failed)
        return failed;
    s->config =
        (struct kbtp_initiator_config){.address = target->address,
                                       .depth = group->depth,
                                       .max_inline = group->is_inline ? group->length : 0,
                                       .features = group->direct ? KBTP_FEATURE_DIRECT_LOAD : 0};
    sim_timed_identity(i->number, target->nic, s->config.initiator_id);
    kbtp_initiator_memory(&s->config, &private_octets, &buffer_octets);
    s->private_memory = sim_core_memory(private_octets);
    s->buffers = sim_core_memory(buffer_octets);
    if (!s->private_memory || !s->buffers)
        return -ENOMEM;
    sim_nic_attach(s->cpu.rdma, &cpu);
    return kbtp_initiator_init(&s->initiator, &s->cpu, &s->config, s->private_memory, s->buffers);
}

int sim_instance_open(struct sim_instance *i, struct sim_load_run *run,
                      const struct sim_timed_instances *group, uint32_t number, uint32_t nic,
                      const struct sim_target *const *targets, uint32_t sessions, uint64_t seed)
{
    *i = (struct sim_instance){
        .run = run, .group = group, .number = number, .nic = nic, .random = seed};
    sim_instance_core(i);
    i->sessions = calloc(sessions, sizeof *i->sessions);
    i->arrivals_room = group->rate != 0 ? MOST_ARRIVALS : 0;
    i->arrivals = calloc(i->arrivals_room ? i->arrivals_room : 1, sizeof *i->arrivals);
    if (!i->sessions || !i->arrivals)
        return -ENOMEM;
    for (uint32_t n = 0; n < sessions; n++) {
        i->sessions_count++;
        i->sessions[n].instance = i;
        i->sessions[n].block_size = targets[n]->pool->block_size;
        int failed = open_session(i, &i->sessions[n], targets[n]);
        if (failed)
            return failed;
    }
    return 0;
}

void sim_instance_close(struct sim_instance *i)
{
    for (uint32_t n = 0; n < i->sessions_count; n++) {
        struct sim_session *s = &i->sessions[n];
        free(s->places);
        free(s->idle);
        free(s->lists);
        free(s->versions);
        free(s->generations);
        sim_core_memory_free(s->real_data);
        sim_core_memory_free(s->inline_data);
        sim_core_memory_free(s->private_memory);
        sim_core_memory_free(s->buffers);
    }
    free(i->sessions);
    free(i->arrivals);
}
