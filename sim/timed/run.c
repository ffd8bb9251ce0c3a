/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/timed/run.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/random.h"

#define MAX_MESSAGE (1u << 30)
#define MAX_INLINE 256u
#define MAX_READS 64u
#define MAX_QUEUE 16384u
#define FIRST_SAMPLE_NS 1000u
#define GBIT_OCTETS 8.0
#define PS 1000u /* of a nanosecond */

/* ---- building ---------------------------------------------------------------------------- */

uint32_t sim_timed_hosts(const struct sim_timed *timed)
{
    uint32_t hosts = 0;
    for (unsigned i = 0; i < timed->pools_count; i++)
        hosts += timed->pools[i].count;
    for (unsigned i = 0; i < timed->instances_count; i++) {
        const struct sim_timed_instances *group = &timed->instances[i];
        hosts += (group->count + group->per_host - 1) / group->per_host;
    }
    return hosts;
}

/* Of a host: its group in the scenario, and which of the group's hosts it is. */
struct member {
    const char *list; /* "pools" */
    unsigned index;   /* in it */
    const char *name;
    uint32_t line, count, number;
};

static struct member member_of(const struct sim_timed *timed, uint32_t host)
{
    for (unsigned i = 0; i < timed->pools_count; i++) {
        const struct sim_timed_pool *pool = &timed->pools[i];
        if (host < pool->count)
            return (struct member){"pools", i, pool->name, pool->line, pool->count, host};
        host -= pool->count;
    }
    for (unsigned i = 0; i < timed->instances_count; i++) {
        const struct sim_timed_instances *group = &timed->instances[i];
        uint32_t hosts = (group->count + group->per_host - 1) / group->per_host;
        if (host < hosts)
            return (struct member){"instances", i, group->name, group->line, hosts, host};
        host -= hosts;
    }
    return (struct member){.list = "", .name = ""};
}

void sim_timed_host_name(const struct sim_timed *timed, uint32_t host, char *name, size_t size)
{
    struct member member = member_of(timed, host);
    if (member.count == 1)
        snprintf(name, size, "%s", member.name);
    else
        snprintf(name, size, "%s%u", member.name, member.number);
}

void sim_timed_identity(uint32_t instance, uint32_t host, uint8_t id[16])
{
    uint64_t random = (uint64_t)instance << 32 | host;
    for (uint32_t i = 0; i < 16; i++)
        id[i] = (uint8_t)(sim_random64(&random) >> 32);
}

/* Its hosts have the names that sim_timed_host_name() gives them. */
static int read_platform(struct sim_timed_run *run, char *why, size_t size)
{
    uint32_t ports = sim_timed_hosts(run->scenario);
    struct sim_host *hosts = calloc(ports ? ports : 1, sizeof *hosts);
    int failed = hosts ? 0 : -ENOMEM;
    for (uint32_t i = 0; !failed && i < ports; i++) {
        struct member member = member_of(run->scenario, i);
        sim_timed_host_name(run->scenario, i, hosts[i].name, sizeof hosts[i].name);
        snprintf(hosts[i].asked, sizeof hosts[i].asked, "%s[%u].name in line %u of the scenario",
                 member.list, member.index, member.line);
    }
    if (failed)
        snprintf(why, size, "no memory for %u hosts", ports);
    else
        failed = sim_topology_read(run->options.platform, hosts, ports, &run->topology, why, size);
    free(hosts);
    bool machine = failed == -ENOMEM || failed == -ENOSYS; /* else it is the file */
    return failed && !machine ? -EINVAL : failed;
}

static int make_shape(struct sim_timed_run *run, char *why, size_t size)
{
    const struct sim_timed *s = run->scenario;
    const struct sim_topology_shape shape = {
        .ports = sim_timed_hosts(s),
        .leaf_ports = s->leaf_ports,
        .oversubscription = s->oversubscription,
        .octets_per_ns = run->costs->link_gbits_s / GBIT_OCTETS,
        .latency_ns =
            (uint32_t)(s->latency_ns ? (double)s->latency_ns : run->costs->link_latency_ns),
        .spine_latency_ns = (uint32_t)s->spine_latency_ns};
    if (sim_topology_make(&run->topology, &shape) == 0)
        return 0;
    snprintf(why, size, "no memory for a network of %u hosts", shape.ports);
    return -ENOMEM;
}

static int make_network(struct sim_timed_run *run, char *why, size_t size)
{
    int failed = run->options.platform ? read_platform(run, why, size) : make_shape(run, why, size);
    if (failed)
        return failed;
    if (run->options.wire == SIM_WIRE_SIMGRID)
        run->wire = sim_wire_simgrid(&run->clock, &run->topology, why, size);
    else if (!(run->wire = sim_wire_fifo(&run->clock, &run->topology)))
        snprintf(why, size, "no memory for a network of %u hosts", run->topology.ports);
    if (run->wire && run->options.opened)
        run->options.opened(run->options.context, run->wire);
    return run->wire ? 0 : -ENODEV;
}

static int make_nics(struct sim_timed_run *run)
{
    const struct sim_nic_config config = {.nics = run->topology.ports,
                                          .bits = SIM_NIC_BITS,
                                          .binding = run->scenario->binding,
                                          .max_message = MAX_MESSAGE,
                                          .max_inline = MAX_INLINE,
                                          .max_reads = MAX_READS,
                                          .max_queue = MAX_QUEUE,
                                          .seed = run->load.seed};
    run->nics = sim_nics_open(run->wire, run->costs, &config);
    run->load.nics = run->nics;
    return run->nics ? 0 : -ENOMEM;
}

static int make_targets(struct sim_timed_run *run)
{
    const struct sim_timed *s = run->scenario;
    uint32_t all = 0;
    for (unsigned i = 0; i < s->pools_count; i++)
        all += s->pools[i].count;
    run->targets = calloc(all ? all : 1, sizeof *run->targets);
    if (!run->targets)
        return -ENOMEM;
    for (unsigned i = 0; i < s->pools_count; i++)
        for (uint32_t n = 0; n < s->pools[i].count; n++) {
            uint32_t host = run->targets_count++;
            int failed = sim_target_open(&run->targets[host], run->nics, host, s, i, n, run->costs);
            if (failed)
                return failed;
        }
    return 0;
}

static uint32_t first_target(const struct sim_timed *s, uint32_t pool)
{
    uint32_t first = 0;
    for (uint32_t i = 0; i < pool; i++)
        first += s->pools[i].count;
    return first;
}

static int make_instance(struct sim_timed_run *run, const struct sim_timed_instances *group,
                         uint32_t number, uint32_t host)
{
    const struct sim_timed *s = run->scenario;
    const struct sim_timed_pool *pool = &s->pools[group->pool];
    uint32_t first = first_target(s, group->pool);
    uint32_t sessions = group->to == SIM_TIMED_EACH ? pool->count : 1;
    struct sim_instance *instance = &run->instances[run->instances_count];
    uint64_t seed = sim_mix64(run->load.seed + 0x9e3779b97f4a7c15u * (run->instances_count + 1));
    const struct sim_target **targets = calloc(sessions, sizeof *targets);
    if (!targets)
        return -ENOMEM;
    for (uint32_t i = 0; i < sessions; i++)
        targets[i] =
            &run->targets[first + (group->to == SIM_TIMED_EACH ? i : number % pool->count)];
    int failed = sim_instance_open(instance, &run->load, group, run->instances_count++, host,
                                   targets, sessions, seed);
    instance->stalls = group->stall_ns != 0 && number == 0;
    free(targets);
    return failed;
}

static int make_instances(struct sim_timed_run *run)
{
    const struct sim_timed *s = run->scenario;
    uint32_t all = 0, host = run->targets_count;
    for (unsigned i = 0; i < s->instances_count; i++)
        all += s->instances[i].count;
    run->instances = calloc(all ? all : 1, sizeof *run->instances);
    if (!run->instances)
        return -ENOMEM;
    for (unsigned i = 0; i < s->instances_count; i++) {
        const struct sim_timed_instances *group = &s->instances[i];
        for (uint32_t n = 0; n < group->count; n++) {
            int failed = make_instance(run, group, n, host + n / group->per_host);
            if (failed)
                return failed;
        }
        host += (group->count + group->per_host - 1) / group->per_host;
    }
    run->load.instances = all;
    return 0;
}

/* ---- what is measured -------------------------------------------------------------------- */

static uint64_t cpu_of_targets(const struct sim_timed_run *run)
{
    uint64_t busy_ps = 0;
    for (uint32_t i = 0; i < run->targets_count; i++)
        for (uint32_t n = 0; n < run->targets[i].workers_count; n++)
            busy_ps += run->targets[i].workers[n].core.busy_ps;
    return busy_ps;
}

static uint64_t cpu_of_instances(const struct sim_timed_run *run)
{
    uint64_t busy_ps = 0;
    for (uint32_t i = 0; i < run->instances_count; i++)
        busy_ps += run->instances[i].core.busy_ps;
    return busy_ps;
}

/* The counts so far, less those that are there: what has come since. */
static void count_served(struct sim_timed_run *run)
{
    run->reads_ps = -run->reads_ps;
    for (uint32_t i = 0; i < run->targets_count; i++)
        run->reads_ps += run->targets[i].reads_ps;
    for (uint32_t n = 0; n < KBTP_COUNTED_OPCODES; n++) {
        run->served[n] = -run->served[n];
        run->served_ps[n] = -run->served_ps[n];
        for (uint32_t i = 0; i < run->targets_count; i++) {
            run->served[n] += run->targets[i].served[n];
            run->served_ps[n] += run->targets[i].cpu_ps[n];
        }
    }
}

static void subtract_use(struct sim_nic_use *use, const struct sim_nic_use *now)
{
    use->sent = now->sent - use->sent;
    use->received = now->received - use->received;
    use->send_busy_ps = now->send_busy_ps - use->send_busy_ps;
    use->receive_busy_ps = now->receive_busy_ps - use->receive_busy_ps;
    use->dma_read_busy_ps = now->dma_read_busy_ps - use->dma_read_busy_ps;
    use->dma_write_busy_ps = now->dma_write_busy_ps - use->dma_write_busy_ps;
    use->atomic_busy_ps = now->atomic_busy_ps - use->atomic_busy_ps;
}

/* What was counted up to now is the beginning; at the end what has come since is left. */
static void take_counts(struct sim_timed_run *run)
{
    run->target_cpu_ps = cpu_of_targets(run) - run->target_cpu_ps;
    run->instance_cpu_ps = cpu_of_instances(run) - run->instance_cpu_ps;
    for (uint32_t i = 0; i < run->topology.links_count; i++)
        run->link_octets[i] = run->topology.links[i].octets - run->link_octets[i];
    for (uint32_t i = 0; i < run->topology.ports; i++)
        subtract_use(&run->used[i], sim_nic_used(run->nics, i));
    count_served(run);
}

/* ---- samples ----------------------------------------------------------------------------- */

static uint64_t operations(const struct sim_timed_run *run)
{
    uint64_t count = 0;
    for (uint32_t i = 0; i < SIM_MIX_KINDS; i++)
        count += run->load.kinds[i].latency.count;
    return count;
}

uint32_t sim_timed_sampled(const struct sim_timed_run *run)
{
    return run->topology.links_count + 2 * run->topology.ports;
}

static void sample_all(const struct sim_timed_run *run, uint64_t *out)
{
    for (uint32_t i = 0; i < run->topology.links_count; i++)
        *out++ = run->topology.links[i].octets;
    for (uint32_t i = 0; i < run->topology.ports; i++) {
        *out++ = sim_nic_used(run->nics, i)->send_busy_ps;
        *out++ = sim_nic_used(run->nics, i)->receive_busy_ps;
    }
}

static void drop_every_second(struct sim_timed_run *run)
{
    size_t width = sim_timed_sampled(run);
    for (size_t i = 0; i < SIM_TIMED_SAMPLES / 2; i++) {
        run->samples[i] = run->samples[2 * i];
        if (run->sampled && i != 0)
            memcpy(run->sampled + i * width, run->sampled + 2 * i * width,
                   width * sizeof *run->sampled);
    }
    run->samples_count /= 2;
    run->sample_ns *= 2;
}

/* When there are too many, every second one is dropped, and they come half as often. */
static void take_sample(void *context, uint64_t number)
{
    struct sim_timed_run *run = context;
    (void)number;
    if (run->load.phase != SIM_LOAD_MEASURES)
        return;
    if (run->samples_count == SIM_TIMED_SAMPLES)
        drop_every_second(run);
    if (run->sampled)
        sample_all(run, run->sampled + (size_t)run->samples_count * sim_timed_sampled(run));
    run->samples[run->samples_count++] = (struct sim_timed_sample){
        .at_ns = run->clock.now_ns, .done = operations(run), .target_busy_ps = cpu_of_targets(run)};
    if (sim_clock_next(&run->clock) == SIM_CLOCK_NEVER && sim_nics_under_way(run->nics) == 0)
        return; /* nothing will happen any more: a sample would not change that */
    sim_clock_at(&run->clock, run->clock.now_ns + run->sample_ns, take_sample, run, 0);
}

/* ---- phases ------------------------------------------------------------------------------ */

static void begin_phase(struct sim_timed_run *run, enum sim_load_phase phase)
{
    run->load.phase = phase;
    run->load.done = 0;
    for (uint32_t i = 0; i < run->instances_count; i++)
        sim_instance_begin(&run->instances[i]);
}

static void time_is_up(void *context, uint64_t number)
{
    struct sim_timed_run *run = context;
    (void)number;
    for (uint32_t i = 0; run->load.phase == SIM_LOAD_MEASURES && i < run->instances_count; i++)
        sim_instance_stop(&run->instances[i]);
}

static void next_phase(void *context, uint64_t number)
{
    struct sim_timed_run *run = context;
    (void)number;
    switch (run->load.phase) {
    case SIM_LOAD_FILLS:
        run->began_ns = run->clock.now_ns;
        run->load.changed_ps = run->began_ns * 1000;
        take_counts(run);
        run->sample_ns = FIRST_SAMPLE_NS;
        begin_phase(run, SIM_LOAD_MEASURES);
        sim_clock_at(&run->clock, run->began_ns, take_sample, run, 0);
        if (run->scenario->duration_ns)
            sim_clock_at(&run->clock, run->began_ns + run->scenario->duration_ns, time_is_up, run,
                         0);
        return;
    case SIM_LOAD_MEASURES:
        run->ended_ns = run->clock.now_ns;
        take_counts(run);
        begin_phase(run, SIM_LOAD_LEAVES);
        return;
    default:
        run->over = true;
        for (uint32_t i = 0; i < run->targets_count; i++)
            for (uint32_t n = 0; n < run->targets[i].workers_count; n++)
                sim_worker_stop(&run->targets[i].workers[n]);
    }
}

/* Of the instance that was last: at the end of what its CPU does. */
static void phase_over(void *context)
{
    struct sim_timed_run *run = context;
    sim_clock_at(&run->clock,
                 (run->load.changed_ps + 999) / 1000 > run->clock.now_ns
                     ? (run->load.changed_ps + 999) / 1000
                     : run->clock.now_ns,
                 next_phase, run, 0);
}

/* ---- the run ----------------------------------------------------------------------------- */

static int build(struct sim_timed_run *run, char *why, size_t size)
{
    int failed = make_network(run, why, size);
    if (failed)
        return failed;
    run->link_octets = calloc(run->topology.links_count, sizeof *run->link_octets);
    run->used = calloc(run->topology.ports, sizeof *run->used);
    if (run->options.samples_all)
        run->sampled =
            calloc((size_t)SIM_TIMED_SAMPLES * sim_timed_sampled(run), sizeof *run->sampled);
    bool enough = run->link_octets && run->used && (run->sampled || !run->options.samples_all);
    failed = enough ? make_nics(run) : -ENOMEM;
    if (!failed)
        failed = make_targets(run);
    if (!failed)
        failed = make_instances(run);
    if (failed)
        snprintf(why, size, "%s cannot be made: %s",
                 run->instances_count ? "an instance"
                 : run->targets_count ? "a target"
                                      : "the network",
                 strerror(-failed));
    return failed;
}

int sim_timed_run(struct sim_timed_run *run, const struct sim_timed *scenario,
                  const struct sim_costs *costs, const struct sim_timed_options *options, char *why,
                  size_t size)
{
    *run = (struct sim_timed_run){.scenario = scenario, .costs = costs, .options = *options};
    run->clock.end_ns = SIM_TIMED_MOST_NS;
    run->clock.stop = options->stop;
    run->load.seed = options->has_seed ? options->seed : scenario->seed;
    run->load.clock = &run->clock;
    run->load.costs = costs;
    run->load.phase_over = phase_over;
    run->load.context = run;
    int failed = build(run, why, size);
    if (failed)
        return failed;
    if (options->span)
        sim_timed_watch(run);
    begin_phase(run, SIM_LOAD_FILLS);
    failed = sim_wire_run(run->wire);
    if (failed) {
        snprintf(why, size, "the run ended early: %s", strerror(-failed));
        return failed;
    }
    run->events = run->clock.happened;
    run->late = !run->over && !run->clock.stopped && run->clock.count != 0;
    run->messages = run->wire->messages;
    run->digest = sim_nics_digest(run->nics);
    run->whole = run->over;
    for (uint32_t i = 0; run->whole && i < run->targets_count; i++)
        run->whole = sim_target_is_whole(&run->targets[i]);
    return 0;
}

void sim_timed_close(struct sim_timed_run *run)
{
    for (uint32_t i = 0; i < run->instances_count; i++)
        sim_instance_close(&run->instances[i]);
    for (uint32_t i = 0; i < run->targets_count; i++)
        sim_target_close(&run->targets[i]);
    sim_nics_close(run->nics);
    sim_wire_close(run->wire);
    if (run->topology.context)
        sim_topology_free(&run->topology);
    sim_clock_free(&run->clock);
    free(run->instances);
    free(run->targets);
    free(run->link_octets);
    free(run->used);
    free(run->sampled);
}
