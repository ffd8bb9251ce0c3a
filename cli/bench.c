/* SPDX-License-Identifier: BSD-3-Clause */
/* `kbtp bench`: the command line, and the order of things. */
#include "cli/bench.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "cli/cli.h"
#include "cli/real.h"

#define OPTIONS struct bench_options
#include "cli/set.h"

#define MOST_WEIGHT 1000000u
#define MOST_DEPTH 4096u
#define MOST_SECONDS 1e6
#define DEFAULT_DURATION 5.0

static const char usage[] =
    "usage: kbtp bench HOST:PORT --trusted-network [OPTIONS]\n"
    "\n"
    "Drives a target with requests, checks what comes of them, and measures.\n"
    "\n"
    "what is asked for:\n"
    "  --mix KIND=N,...    KIND is load, store, or alloc-free: an ALLOC_STORE and a FREE of\n"
    "                      another handle in turn; N of the sum of all N are of this kind.\n"
    "                      Default load=70,store=10,alloc-free=20\n"
    "  --length SIZE       octets of each LOAD and store; default the target's block size\n"
    "  --inline            stores send them within the request; needs --length\n"
    "  --invalidate        each request has an STag of its own, which its completion takes back\n"
    "  --verify            store octets that tell whose they are, and check those of every LOAD\n"
    "  --seed N            of octets and of the order of requests; default a random one\n"
    "how much:\n"
    "  --duration TIME     default 5s\n"
    "  --count N           operations, instead of a duration\n"
    "  --warm-up TIME      before that; default 500ms; 0: none\n"
    "  --depth N           requests outstanding of each connection; default 16, or what the "
    "target\n"
    "                      gives\n"
    "  --connections N     each a session with an identity for once; default 1\n"
    "  --handles N         of each session, half of them filled first; default its quota, at most "
    "1024\n"
    "how:\n"
    "  --poll              never sleep: needs a core\n"
    "  --device NAME       the RDMA device; default the one that reaches HOST\n"
    "  --timeout TIME      for the target to connect, to answer and to let go, each; default 10s\n"
    "  --trusted-network   the network lets in only who is trusted; required, see kbtp target\n"
    "output:\n"
    "  --target-metrics HOST:PORT  where the target serves its metrics: to show its CPU time, too\n"
    "  --json              print one JSON object\n"
    "\n"
    "exit status: 0 all was answered OK, and with --verify every octet was right; 1 not so;\n"
    "             2 bad command line; 3 ended early by Ctrl-C; 4 no device, no connection, no\n"
    "             answer in time\n";

/* ---- options ----------------------------------------------------------------------------- */

#define SET_TIME(member) \
    static bool set_##member(const char *option, const char *value, void *into) \
    { \
        return set_time(option, value, &((struct bench_options *)into)->member); \
    }

static bool set_time(const char *option, const char *value, double *seconds)
{
    if (!cli_time(option, value, seconds))
        return false;
    if (*seconds <= MOST_SECONDS)
        return true;
    cli_complain("--%s: '%.60s' is more than %g s", option, value, MOST_SECONDS);
    return false;
}

SET_TEXT(device)
SET_TEXT(target_metrics)
SET_TRUE(is_inline)
SET_TRUE(invalidate)
SET_TRUE(verify)
SET_TRUE(poll)
SET_TRUE(json)
SET_TRUE(trusted)
SET_NUMBER(seed, 0, UINT64_MAX)
SET_NUMBER(count, 1, UINT64_MAX / 2)
SET_NUMBER(connections, 1, RDMA_VERBS_WAITED)
SET_NUMBER(handles, 1, UINT32_MAX)
SET_TIME(duration)
SET_TIME(timeout)

static bool set_warm_up(const char *option, const char *value, void *into)
{
    struct bench_options *o = into;
    if (strcmp(value, "0") != 0)
        return set_time(option, value, &o->warm_up);
    o->warm_up = 0;
    return true;
}

static bool set_depth(const char *option, const char *value, void *into)
{
    struct bench_options *o = into;
    o->depth_given = true;
    return cli_number(option, value, 1, MOST_DEPTH, &o->depth);
}

static bool set_length(const char *option, const char *value, void *into)
{
    struct bench_options *o = into;
    if (!cli_size(option, value, &o->length))
        return false;
    if (o->length <= INT32_MAX)
        return true;
    cli_complain("--%s: '%.60s' is more than any device moves at a time", option, value);
    return false;
}

/* KIND=N, of `length` octets. False: it is none, or comes again. */
static bool take_weight(const char *text, size_t length, uint32_t weights[SIM_MIX_DRAWS],
                        bool given[SIM_MIX_DRAWS])
{
    static const char *const draws[SIM_MIX_DRAWS] = {"load", "store", "alloc-free"};
    for (uint32_t i = 0; i < SIM_MIX_DRAWS; i++) {
        size_t name = strlen(draws[i]);
        if (length < name + 2 || strncmp(text, draws[i], name) != 0 || text[name] != '=' ||
            given[i] || text[name + 1] < '0' || text[name + 1] > '9')
            continue;
        char *end;
        uint64_t weight = strtoull(text + name + 1, &end, 10);
        weights[i] = (uint32_t)weight;
        given[i] = true;
        return end == text + length && weight <= MOST_WEIGHT;
    }
    return false;
}

static bool set_mix(const char *option, const char *value, void *into)
{
    struct bench_options *o = into;
    bool given[SIM_MIX_DRAWS] = {false}, good = true;
    uint64_t sum = 0;
    memset(o->weights, 0, sizeof o->weights);
    for (const char *at = value; good; at++) {
        size_t length = strcspn(at, ",");
        good = take_weight(at, length, o->weights, given);
        at += length;
        if (*at == 0)
            break;
    }
    for (uint32_t i = 0; i < SIM_MIX_DRAWS; i++)
        sum += o->weights[i];
    if (good && sum != 0)
        return true;
    cli_complain("--%s: '%.60s' is not like load=70,store=10,alloc-free=20, with numbers up to %u "
                 "that are not all 0",
                 option, value, MOST_WEIGHT);
    return false;
}

static const struct cli_option options[] = {{"mix", true, set_mix},
                                            {"length", true, set_length},
                                            {"inline", false, set_is_inline},
                                            {"invalidate", false, set_invalidate},
                                            {"verify", false, set_verify},
                                            {"seed", true, set_seed},
                                            {"duration", true, set_duration},
                                            {"count", true, set_count},
                                            {"warm-up", true, set_warm_up},
                                            {"depth", true, set_depth},
                                            {"connections", true, set_connections},
                                            {"handles", true, set_handles},
                                            {"poll", false, set_poll},
                                            {"device", true, set_device},
                                            {"timeout", true, set_timeout},
                                            {"trusted-network", false, set_trusted},
                                            {"target-metrics", true, set_target_metrics},
                                            {"json", false, set_json},
                                            {NULL, false, NULL}};

/* CLI_DONE, or what to exit with after a complaint. */
static int prepare(struct bench_options *o, const char *const *operands, unsigned count)
{
    char metrics[RDMA_VERBS_ADDRESS];
    if (count < 1) {
        cli_complain("which target? HOST:PORT");
        return CLI_BAD_INPUT;
    }
    o->name = operands[0];
    if (o->count != 0 && o->duration > 0) {
        cli_complain("--count or --duration, not both");
        return CLI_BAD_INPUT;
    }
    if (o->count == 0 && o->duration == 0)
        o->duration = DEFAULT_DURATION;
    if (o->is_inline && o->length == 0) {
        cli_complain("--inline: how many octets? --length SIZE");
        return CLI_BAD_INPUT;
    }
    if (!real_trusted(o->trusted))
        return CLI_BAD_INPUT;
    int status = real_address(o->name, o->address);
    if (status == CLI_DONE && o->target_metrics)
        status = real_address(o->target_metrics, metrics);
    return status;
}

/* ------------------------------------------------------------------------------------------ */

static int measure(const struct bench_options *o, struct bench_result *result)
{
    struct bench bench = {.options = o};
    bench_take_signals();
    int status = bench_open(&bench, o, result);
    if (status == CLI_DONE)
        status = bench_run(&bench);
    bool left = bench_leave(&bench);
    bench_close(&bench);
    /* What was measured is told, whatever came later; of what is wrong nothing gets lost. */
    if (status == CLI_DONE || result->seconds > 0 || *result->wrong) {
        int told = bench_tell(o, result);
        status = told == CLI_FOUND || status == CLI_DONE ? told : status;
    }
    if (!left) {
        cli_complain("%.60s: no answer to GOODBYE within %g s (--timeout)", o->name, o->timeout);
        status = status == CLI_DONE ? CLI_ENVIRONMENT : status;
    }
    return status;
}

static int run(int argc, char **argv)
{
    struct bench_options o = {
        .weights = {70, 10, 20}, .warm_up = 0.5, .timeout = 10, .depth = 16, .connections = 1};
    const char *operands[1];
    unsigned count;
    if (getrandom(&o.seed, sizeof o.seed, GRND_NONBLOCK) != sizeof o.seed)
        o.seed = real_now_ns();
    int status = cli_parse(&cli_bench, argc, argv, options, &o, operands, 1, &count);
    if (status < 0)
        status = prepare(&o, operands, count);
    else
        return status;
    if (status != CLI_DONE)
        return status;
    struct bench_result *result = calloc(1, sizeof *result);
    if (!result) {
        cli_complain("no memory for what is measured");
        return CLI_ENVIRONMENT;
    }
    status = measure(&o, result);
    free(result);
    return status;
}

const struct cli_command cli_bench = {
    .name = "bench",
    .does = "measure a target over an RDMA device",
    .usage = usage,
    .run = run,
};
