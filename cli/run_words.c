/* SPDX-License-Identifier: BSD-3-Clause */
/* What came of a timed run, in words, in JSON and in CSV. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/cli.h"
#include "cli/json.h"
#include "cli/run.h"

#define US 1e3 /* nanoseconds */

static const struct {
    const char *name, *key;
    enum kbtp_counted_opcode opcode;
} kinds[SIM_MIX_KINDS] = {
    [SIM_MIX_LOAD] = {"LOAD", "load", KBTP_COUNTED_LOAD},
    [SIM_MIX_STORE] = {"STORE", "store", KBTP_COUNTED_STORE},
    [SIM_MIX_ALLOC_STORE] = {"ALLOC_STORE", "alloc_store", KBTP_COUNTED_ALLOC_STORE},
    [SIM_MIX_FREE] = {"FREE", "free", KBTP_COUNTED_FREE},
};

/* ---- figures ----------------------------------------------------------------------------- */

struct figures {
    double seconds; /* measured, of simulated time */
    uint64_t operations, octets;
    double in_flight, little;        /* on average, and as throughput times latency */
    double target_cpu, instance_cpu; /* CPUs that were busy, on average */
    double link, send, receive;      /* the highest share of time or rate of any */
    char link_name[40];
    uint32_t send_host, receive_host;
};

static double on_average(double ps, double seconds)
{
    return seconds > 0 ? ps / 1e12 / seconds : 0;
}

static double share(uint64_t busy_ps, double seconds)
{
    return on_average((double)busy_ps, seconds);
}

static struct figures figures_of(const struct sim_timed_run *run)
{
    struct figures f = {.seconds = (double)(run->ended_ns - run->began_ns) / 1e9};
    double latency_ps = 0;
    for (uint32_t i = 0; i < SIM_MIX_KINDS; i++) {
        f.operations += run->load.kinds[i].latency.count;
        f.octets += run->load.kinds[i].octets;
        latency_ps += run->load.kinds[i].latency_ps;
    }
    f.in_flight = on_average(run->load.outstanding_ps, f.seconds);
    f.little = on_average(latency_ps, f.seconds);
    f.target_cpu = share(run->target_cpu_ps, f.seconds);
    f.instance_cpu = share(run->instance_cpu_ps, f.seconds);
    for (uint32_t i = 0; i < run->topology.links_count && f.seconds > 0; i++) {
        const struct sim_link *link = &run->topology.links[i];
        double used = (double)run->link_octets[i] / (link->octets_per_ns * f.seconds * 1e9);
        if (used > f.link) {
            f.link = used;
            snprintf(f.link_name, sizeof f.link_name, "%s", link->name);
        }
    }
    for (uint32_t i = 0; i < run->topology.ports; i++) {
        double send = share(run->used[i].send_busy_ps, f.seconds);
        double receive = share(run->used[i].receive_busy_ps, f.seconds);
        if (send > f.send)
            f.send = send, f.send_host = i;
        if (receive > f.receive)
            f.receive = receive, f.receive_host = i;
    }
    return f;
}

/* CPU time of targets for a request of this kind; of the RDMA Reads all stores have a part. */
static double cpu_ns(const struct sim_timed_run *run, uint32_t kind)
{
    enum kbtp_counted_opcode opcode = kinds[kind].opcode;
    uint64_t count = run->served[opcode];
    uint64_t stores = run->served[KBTP_COUNTED_STORE] + run->served[KBTP_COUNTED_ALLOC_STORE];
    double ns = count ? (double)run->served_ps[opcode] / 1e3 / (double)count : 0;
    if (kind == SIM_MIX_STORE || kind == SIM_MIX_ALLOC_STORE)
        ns += stores ? (double)run->reads_ps / 1e3 / (double)stores : 0;
    return ns;
}

static double at_us(const struct sim_load_measured *m, double part)
{
    return (double)sim_histogram_at(&m->latency, part) / US;
}

/* ---- words ------------------------------------------------------------------------------- */

static void print_kinds(const struct sim_timed_run *run, double seconds)
{
    printf("%-12s %9s %12s %9s %9s %9s %9s %9s %14s\n", "", "count", "per second", "mean us",
           "p50 us", "p99 us", "p99.9 us", "max us", "target CPU ns");
    for (uint32_t i = 0; i < SIM_MIX_KINDS; i++) {
        const struct sim_load_measured *m = &run->load.kinds[i];
        uint64_t count = m->latency.count;
        if (count == 0)
            continue;
        printf("%-12s %9" PRIu64 " %12.0f %9.2f %9.2f %9.2f %9.2f %9.2f %14.0f\n", kinds[i].name,
               count, (double)count / seconds, m->latency_ps / 1e6 / (double)count, at_us(m, 0.5),
               at_us(m, 0.99), at_us(m, 0.999), at_us(m, 1), cpu_ns(run, i));
    }
}

void run_print_text(const struct run_told *told)
{
    const struct sim_timed_run *run = told->run;
    const struct sim_timed *s = run->scenario;
    struct figures f = figures_of(run);
    char send[48], receive[48];
    sim_timed_host_name(s, f.send_host, send, sizeof send);
    sim_timed_host_name(s, f.receive_host, receive, sizeof receive);
    if (s->title)
        printf("%s\n", s->title);
    printf("%s, wire %s, %u hosts, %u instances, %u targets\n\n", told->model->title,
           run->options.wire == SIM_WIRE_FIFO ? "fifo" : "simgrid", run->topology.ports,
           run->instances_count, run->targets_count);
    print_kinds(run, f.seconds);
    printf("\n%" PRIu64 " operations in %.6f s: %.0f a second, %.3f GB/s; %.2f in flight\n",
           f.operations, f.seconds, (double)f.operations / f.seconds,
           (double)f.octets / f.seconds / 1e9, f.in_flight);
    printf("busy: targets' CPUs %.2f, instances' CPUs %.2f; link %s %.1f %%; RNIC sending %s %.1f "
           "%%, receiving %s %.1f %%\n",
           f.target_cpu, f.instance_cpu, f.link_name, f.link * 100, send, f.send * 100, receive,
           f.receive * 100);
    printf("%" PRIu64 " octets loaded and verified, all blocks free at the end\n",
           run->load.verified_octets);
    printf("%" PRIu64 " events in %.2f s: %.0f operations a second; digest %016" PRIx64 "\n",
           run->events, told->wall_s, (double)f.operations / told->wall_s, run->digest);
}

/* ---- JSON -------------------------------------------------------------------------------- */

static json_t *json_kind(const struct sim_timed_run *run, uint32_t i, double seconds)
{
    const struct sim_load_measured *m = &run->load.kinds[i];
    uint64_t count = m->latency.count;
    return json_pack("{s:I, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:I}", "count", (json_int_t)count,
                     "per_s", (double)count / seconds, "mean_us",
                     m->latency_ps / 1e6 / (double)count, "p50_us", at_us(m, 0.5), "p99_us",
                     at_us(m, 0.99), "p999_us", at_us(m, 0.999), "max_us", at_us(m, 1),
                     "cpu_ns_per_op", cpu_ns(run, i), "octets", (json_int_t)m->octets);
}

static json_t *json_statuses(const struct sim_timed_run *run)
{
    json_t *statuses = json_object();
    for (uint16_t status = 0; status < SIM_LOAD_STATUSES; status++) {
        uint64_t count = 0;
        const char *name = kbtp_status_name(status);
        for (uint32_t i = 0; i < SIM_MIX_KINDS; i++)
            count += run->load.kinds[i].statuses[status];
        if (count)
            json_object_set_new(statuses, name ? name : "unknown",
                                json_pack("{s:I}", "count", (json_int_t)count));
    }
    return statuses;
}

static json_t *json_hosts(const struct sim_timed_run *run, double seconds)
{
    json_t *hosts = json_array();
    char name[48];
    for (uint32_t i = 0; i < run->topology.ports; i++) {
        const struct sim_nic_use *use = &run->used[i];
        sim_timed_host_name(run->scenario, i, name, sizeof name);
        json_array_append_new(hosts, json_pack("{s:s, s:I, s:I, s:f, s:f, s:f, s:f}", "name", name,
                                               "sent", (json_int_t)use->sent, "received",
                                               (json_int_t)use->received, "send",
                                               share(use->send_busy_ps, seconds), "receive",
                                               share(use->receive_busy_ps, seconds), "dma_read",
                                               share(use->dma_read_busy_ps, seconds), "dma_write",
                                               share(use->dma_write_busy_ps, seconds)));
    }
    return hosts;
}

static json_t *json_links(const struct sim_timed_run *run, double seconds)
{
    json_t *links = json_array();
    for (uint32_t i = 0; i < run->topology.links_count; i++) {
        const struct sim_link *link = &run->topology.links[i];
        if (run->link_octets[i] == 0)
            continue;
        json_array_append_new(
            links, json_pack("{s:s, s:I, s:f}", "name", link->name, "octets",
                             (json_int_t)run->link_octets[i], "used",
                             (double)run->link_octets[i] / (link->octets_per_ns * seconds * 1e9)));
    }
    return links;
}

void run_print_json(const struct run_told *told)
{
    const struct sim_timed_run *run = told->run;
    struct figures f = figures_of(run);
    json_t *operations = json_object();
    for (uint32_t i = 0; i < SIM_MIX_KINDS; i++)
        if (run->load.kinds[i].latency.count != 0)
            json_object_set_new(operations, kinds[i].key, json_kind(run, i, f.seconds));
    json_t *all = json_pack(
        "{s:o, s:o, s:s, s:o, s:I, s:f, s:f, s:f, s:f, s:I, s:f, s:f, s:f, s:f, s:I}", "scenario",
        cli_json_text(told->path), "nic", cli_json_text(told->model->title), "wire",
        run->options.wire == SIM_WIRE_FIFO ? "fifo" : "simgrid", "digest",
        cli_json_hex(run->digest), "seed", (json_int_t)run->load.seed, "simulated_s",
        (double)run->clock.now_ns / 1e9, "measured_s", f.seconds, "wall_s", told->wall_s,
        "operations_per_s", (double)f.operations / f.seconds, "octets", (json_int_t)f.octets,
        "in_flight", f.in_flight, "throughput_latency", f.little, "target_cpus", f.target_cpu,
        "instance_cpus", f.instance_cpu, "events", (json_int_t)run->events);
    json_object_set_new(all, "memory_octets", json_integer((json_int_t)sim_nics_memory(run->nics)));
    json_object_set_new(all, "messages_under_way",
                        json_integer((json_int_t)sim_nics_most_under_way(run->nics)));
    json_object_set_new(all, "operations", operations);
    json_object_set_new(all, "statuses", json_statuses(run));
    json_object_set_new(all, "hosts", json_hosts(run, f.seconds));
    json_object_set_new(all, "links", json_links(run, f.seconds));
    cli_json_print(all);
}

/* ---- CSV --------------------------------------------------------------------------------- */

static int write_latency(void *context, void *file)
{
    const struct run_told *told = context;
    FILE *out = file;
    fprintf(out, "operation,latency_us,share\n");
    for (uint32_t i = 0; i < SIM_MIX_KINDS; i++) {
        const struct sim_histogram *h = &told->run->load.kinds[i].latency;
        uint64_t below = 0;
        for (uint32_t b = 0; b < SIM_HISTOGRAM_BUCKETS; b++) {
            if (h->buckets[b] == 0)
                continue;
            below += h->buckets[b];
            fprintf(out, "%s,%.3f,%.6f\n", kinds[i].key, (double)sim_histogram_top(h, b) / US,
                    (double)below / (double)h->count);
        }
    }
    return ferror(out) ? -1 : 0;
}

/* The column of those from `first` on that grows most. */
static uint32_t busiest(const struct sim_timed_run *run, uint32_t first, uint32_t end)
{
    uint32_t width = sim_timed_sampled(run), most = first;
    const uint64_t *last = run->sampled + (size_t)(run->samples_count - 1) * width;
    for (uint32_t i = first; i < end; i++)
        if (last[i] - run->sampled[i] > last[most] - run->sampled[most])
            most = i;
    return most;
}

static int write_utilisation(void *context, void *file)
{
    const struct run_told *told = context;
    const struct sim_timed_run *run = told->run;
    const struct sim_topology *topology = &run->topology;
    uint32_t width = sim_timed_sampled(run);
    uint32_t link = busiest(run, 0, topology->links_count);
    uint32_t side = busiest(run, topology->links_count, width);
    FILE *out = file;
    fprintf(out, "time_us,operations_per_s,target_cpus,rnic,link\n");
    for (uint32_t i = 1; i < run->samples_count; i++) {
        const struct sim_timed_sample *a = &run->samples[i - 1], *b = &run->samples[i];
        const uint64_t *from = run->sampled + (size_t)(i - 1) * width, *to = from + width;
        double ns = (double)(b->at_ns - a->at_ns);
        fprintf(out, "%.3f,%.0f,%.4f,%.4f,%.4f\n", (double)(b->at_ns - run->began_ns) / US,
                (double)(b->done - a->done) / ns * 1e9,
                (double)(b->target_busy_ps - a->target_busy_ps) / 1e3 / ns,
                (double)(to[side] - from[side]) / 1e3 / ns,
                (double)(to[link] - from[link]) / (topology->links[link].octets_per_ns * ns));
    }
    return ferror(out) ? -1 : 0;
}

bool run_write_csv(const struct run_told *told, const char *folder)
{
    char path[4096];
    if (mkdir(folder, 0777) != 0 && errno != EEXIST) {
        cli_complain("%.200s: %s", folder, strerror(errno));
        return false;
    }
    snprintf(path, sizeof path, "%s/latency.csv", folder);
    if (!cli_write_file(path, write_latency, (void *)(uintptr_t)told))
        return false;
    snprintf(path, sizeof path, "%s/utilisation.csv", folder);
    return cli_write_file(path, write_utilisation, (void *)(uintptr_t)told);
}
