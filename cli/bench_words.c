/* SPDX-License-Identifier: BSD-3-Clause */
/* What was measured, as a table or as JSON. */
#include <inttypes.h>
#include <stdio.h>

#include "cli/bench.h"
#include "cli/cli.h"
#include "cli/json.h"

static const struct {
    const char *name, *json;
    double share;
} percentiles[] = {{"p50", "p50_us", 0.5},
                   {"p90", "p90_us", 0.9},
                   {"p99", "p99_us", 0.99},
                   {"p99.9", "p999_us", 0.999},
                   {"max", "max_us", 1}};
#define PERCENTILES (sizeof percentiles / sizeof *percentiles)

struct sum {
    uint64_t operations, octets;
};

static struct sum sum_of(const struct bench_result *r)
{
    struct sum sum = {0};
    for (uint32_t k = 0; k < SIM_MIX_KINDS; k++) {
        sum.operations += r->kinds[k].latency.count;
        sum.octets += r->kinds[k].octets;
    }
    return sum;
}

static double per(double what, double of)
{
    return of > 0 ? what / of : 0;
}

static const char *status_name(uint32_t status)
{
    const char *name = kbtp_status_name((uint16_t)status);
    return name ? name : "other";
}

/* ---- a table ----------------------------------------------------------------------------- */

static void print_row(const char *name, uint64_t operations, uint64_t octets, double seconds)
{
    printf("%-12s %10" PRIu64 " %11.0f %8.3f", name, operations, per((double)operations, seconds),
           per((double)octets, seconds) / 1e9);
}

static void print_kinds(const struct bench_result *r)
{
    printf("%-12s %10s %11s %8s", "", "operations", "ops/s", "GB/s");
    for (uint32_t i = 0; i < PERCENTILES; i++)
        printf(" %9s", percentiles[i].name);
    printf(" us\n");
    for (uint32_t k = 0; k < SIM_MIX_KINDS; k++) {
        const struct bench_measured *m = &r->kinds[k];
        if (m->latency.count == 0)
            continue;
        print_row(bench_kind_name(k), m->latency.count, m->octets, r->seconds);
        for (uint32_t i = 0; i < PERCENTILES; i++)
            printf(" %9.1f", (double)sim_histogram_at(&m->latency, percentiles[i].share) / 1e3);
        printf("\n");
    }
}

static void print_statuses(const struct bench_result *r)
{
    printf("statuses    ");
    for (uint32_t status = 0; status < BENCH_STATUSES; status++) {
        uint64_t count = 0;
        for (uint32_t k = 0; k < SIM_MIX_KINDS; k++)
            count += r->kinds[k].statuses[status];
        if (count != 0)
            printf(" %s %" PRIu64, status_name(status), count);
    }
    printf("\n");
}

static void print_all(const struct bench_options *o, const struct bench_result *r)
{
    const struct sum sum = sum_of(r);
    const struct rdma_verbs_counts *c = &r->counts;
    const double operations = (double)sum.operations;
    printf("%" PRIu64 " operations of %" PRIu32 " octets in %.3f s%s: %ju connection%s, depth %" //
           PRIu32 ", %" PRIu32 " handles each, seed %ju\n",
           sum.operations, r->length, r->seconds, r->interrupted ? " (interrupted)" : "",
           (uintmax_t)o->connections, o->connections == 1 ? "" : "s", r->depth, r->handles,
           (uintmax_t)o->seed);
    print_kinds(r);
    print_row("all", sum.operations, sum.octets, r->seconds);
    printf("\n");
    print_statuses(r);
    if (o->verify)
        printf("verified     %" PRIu64 " octets\n", r->verified_octets);
    printf("CPU          %.2f us per operation here", per(r->cpu_s * 1e6, operations));
    if (r->target_cpu_s >= 0)
        printf(", %.2f us at the target", per(r->target_cpu_s * 1e6, operations));
    printf("\nper operation %.3f doorbells for sends, %.3f posts of receives, %.3f work requests\n",
           per((double)c->send_batches, operations), per((double)c->recv_batches, operations),
           per((double)c->work_requests, operations));
    printf("in all       %" PRIu64 " registrations, %" PRIu64 " looks for events, %" PRIu64
           " waits\n",
           c->registrations, c->looks, c->waits);
}

/* ---- JSON -------------------------------------------------------------------------------- */

static json_t *statuses_json(const struct bench_measured *m)
{
    json_t *all = json_object();
    for (uint32_t status = 0; status < BENCH_STATUSES; status++)
        if (m->statuses[status] != 0)
            json_object_set_new(all, status_name(status),
                                json_integer((json_int_t)m->statuses[status]));
    return all;
}

static json_t *kind_json(const struct bench_measured *m, double seconds)
{
    json_t *all = json_object();
    json_object_set_new(all, "count", json_integer((json_int_t)m->latency.count));
    json_object_set_new(all, "ops_per_s", json_real(per((double)m->latency.count, seconds)));
    json_object_set_new(all, "gb_per_s", json_real(per((double)m->octets, seconds) / 1e9));
    for (uint32_t i = 0; i < PERCENTILES; i++)
        json_object_set_new(
            all, percentiles[i].json,
            json_real((double)sim_histogram_at(&m->latency, percentiles[i].share) / 1e3));
    json_object_set_new(all, "statuses", statuses_json(m));
    return all;
}

static void set_counts(json_t *all, const struct rdma_verbs_counts *c)
{
    json_object_set_new(all, "registrations", json_integer((json_int_t)c->registrations));
    json_object_set_new(all, "send_doorbells", json_integer((json_int_t)c->send_batches));
    json_object_set_new(all, "receive_posts", json_integer((json_int_t)c->recv_batches));
    json_object_set_new(all, "work_requests", json_integer((json_int_t)c->work_requests));
    json_object_set_new(all, "looks", json_integer((json_int_t)c->looks));
    json_object_set_new(all, "waits", json_integer((json_int_t)c->waits));
}

static void print_json(const struct bench_options *o, const struct bench_result *r)
{
    const struct sum sum = sum_of(r);
    const double operations = (double)sum.operations;
    json_t *all = json_object(), *kinds = json_object();
    for (uint32_t k = 0; k < SIM_MIX_KINDS; k++)
        if (r->kinds[k].latency.count != 0)
            json_object_set_new(kinds, bench_kind_name(k), kind_json(&r->kinds[k], r->seconds));
    json_object_set_new(all, "target", cli_json_text(o->name));
    json_object_set_new(all, "connections", json_integer((json_int_t)o->connections));
    json_object_set_new(all, "depth", json_integer(r->depth));
    json_object_set_new(all, "handles", json_integer(r->handles));
    json_object_set_new(all, "block_size", json_integer(r->block_size));
    json_object_set_new(all, "length", json_integer(r->length));
    json_object_set_new(all, "seed", cli_json_hex(o->seed));
    json_object_set_new(all, "interrupted", json_boolean(r->interrupted));
    json_object_set_new(all, "wrong", *r->wrong ? json_string(r->wrong) : json_null());
    json_object_set_new(all, "seconds", json_real(r->seconds));
    json_object_set_new(all, "count", json_integer((json_int_t)sum.operations));
    json_object_set_new(all, "ops_per_s", json_real(per(operations, r->seconds)));
    json_object_set_new(all, "gb_per_s", json_real(per((double)sum.octets, r->seconds) / 1e9));
    json_object_set_new(all, "operations", kinds);
    json_object_set_new(all, "verified_octets", json_integer((json_int_t)r->verified_octets));
    json_object_set_new(all, "cpu_ns_per_op", json_real(per(r->cpu_s * 1e9, operations)));
    json_object_set_new(all, "target_cpu_ns_per_op",
                        r->target_cpu_s < 0 ? json_null()
                                            : json_real(per(r->target_cpu_s * 1e9, operations)));
    set_counts(all, &r->counts);
    cli_json_print(all);
}

/* ------------------------------------------------------------------------------------------ */

int bench_tell(const struct bench_options *o, const struct bench_result *r)
{
    if (o->json)
        print_json(o, r);
    else
        print_all(o, r);
    if (*r->wrong)
        cli_complain("%s", r->wrong);
    return *r->wrong ? CLI_FOUND : r->interrupted ? CLI_STOPPED : CLI_DONE;
}
