/* SPDX-License-Identifier: BSD-3-Clause */
/* `kbtp target`: the command line, and the order of things. */
#include "cli/target.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/real.h"

#define OPTIONS struct target_options
#include "cli/set.h"

#define KIB 1024u
#define MAX_BLOCKS (UINT64_C(1) << 28)
#define MAX_HANDLES ((uint64_t)INT32_MAX)

static const char usage[] =
    "usage: kbtp target --listen HOST:PORT --trusted-network [OPTIONS]\n"
    "\n"
    "Serves a pool of blocks to initiators until SIGINT or SIGTERM, and says then what it "
    "counted.\n"
    "\n"
    "  --listen HOST:PORT  where initiators connect; port 0: one that is free\n"
    "  --trusted-network   the network lets in only who is trusted; required, as Initiator IDs "
    "are\n"
    "                      secrets and nobody is authenticated\n"
    "  --provider verbs    through rdma-core, the only one there is\n"
    "  --device NAME       the RDMA device; default the one that has HOST\n"
    "  --threads N         workers, each with a thread, over one pool; default 1\n"
    "  --poll              never sleep: a core for each worker\n"
    "pool:\n"
    "  --blocks N          default 1024\n"
    "  --block-size SIZE   a multiple of 8; default 64KiB\n"
    "  --max-inline SIZE   of data within a request; default 4KiB, or the block size\n"
    "who has what:\n"
    "  --policy FILE       kbtp-policy(5); or for everybody alike:\n"
    "  --sessions N        at a time; default 8\n"
    "  --quota N           blocks of each; default all blocks divided by the sessions\n"
    "  --handles N         of each; default 4096\n"
    "  --direct-load       initiators may read table and pool themselves\n"
    "  --direct-alloc      initiators may allocate themselves, where the device lets them\n"
    "  --records           completions may be written, where the device orders them\n"
    "  --first-handle N    default a random one, so that who knew an earlier target notices\n"
    "  --retention TIME    of a session without connection, or forever; default 10min\n"
    "  --ticket-timeout TIME   of direct allocations; default 1s\n"
    "  --connections N     of each worker; default 64\n"
    "  --credits N         requests outstanding of each connection; default 16\n"
    "output:\n"
    "  --metrics HOST:PORT serve http://HOST:PORT/metrics for Prometheus\n"
    "  --json              print JSON Lines: when ready, and at the end\n"
    "\n"
    "exit status: 0 ended by a signal, 2 bad command line or policy, 4 no device, address, "
    "memory\n";

/* ---- options ----------------------------------------------------------------------------- */

/* Of the grant that everybody has. */
#define SET_GRANT(member, least, most) \
    static bool set_##member(const char *option, const char *value, void *into) \
    { \
        ((struct target_options *)into)->grants_given = true; \
        return cli_number(option, value, least, most, &((struct target_options *)into)->member); \
    }
#define SET_FEATURE(name, feature) \
    static bool set_##name(const char *option, const char *value, void *into) \
    { \
        (void)option, (void)value; \
        ((struct target_options *)into)->features |= (feature); \
        return ((struct target_options *)into)->grants_given = true; \
    }

SET_TEXT(listen)
SET_TEXT(device)
SET_TEXT(policy)
SET_TEXT(metrics)
SET_TRUE(trusted)
SET_TRUE(poll)
SET_TRUE(json)
SET_NUMBER(threads, 1, TARGET_MAX_THREADS)
SET_NUMBER(blocks, 1, MAX_BLOCKS)
SET_NUMBER(first_handle, 0, UINT64_MAX - MAX_HANDLES - 1)
SET_NUMBER(connections, 1, UINT16_MAX - 1)
SET_NUMBER(credits, 1, KBTP_MAX_CREDITS)
SET_GRANT(sessions, 1, POLICY_MAX_SESSIONS)
SET_GRANT(quota, 0, MAX_BLOCKS)
SET_GRANT(handles, 1, MAX_HANDLES)
SET_FEATURE(direct_load, KBTP_FEATURE_DIRECT_LOAD)
SET_FEATURE(direct_alloc, KBTP_FEATURE_DIRECT_ALLOC)
SET_FEATURE(records, KBTP_FEATURE_RECORD_COMPLETION)

static bool set_provider(const char *option, const char *value, void *into)
{
    static const char *const words[] = {"verbs", NULL};
    int index;
    (void)into;
    return cli_word(option, value, words, &index);
}

static bool set_block_size(const char *option, const char *value, void *into)
{
    uint64_t *size = &((struct target_options *)into)->block_size;
    if (!cli_size(option, value, size))
        return false;
    if (*size % 8 == 0 && *size <= UINT32_MAX)
        return true;
    cli_complain("--%s: a block is a multiple of 8 octets, below 4GiB", option);
    return false;
}

static bool set_max_inline(const char *option, const char *value, void *into)
{
    return cli_size(option, value, &((struct target_options *)into)->max_inline);
}

static bool set_retention(const char *option, const char *value, void *into)
{
    struct target_options *o = into;
    if (strcmp(value, "forever") != 0)
        return cli_time(option, value, &o->retention);
    o->retention = 0;
    return true;
}

static bool set_ticket_timeout(const char *option, const char *value, void *into)
{
    struct target_options *o = into;
    if (!cli_time(option, value, &o->ticket_timeout))
        return false;
    if (o->ticket_timeout >= 1e-3 && o->ticket_timeout <= 86400)
        return true;
    cli_complain("--%s: '%.60s' is not from 1ms to 24h", option, value);
    return false;
}

static const struct cli_option options[] = {{"listen", true, set_listen},
                                            {"provider", true, set_provider},
                                            {"device", true, set_device},
                                            {"threads", true, set_threads},
                                            {"poll", false, set_poll},
                                            {"blocks", true, set_blocks},
                                            {"block-size", true, set_block_size},
                                            {"max-inline", true, set_max_inline},
                                            {"policy", true, set_policy},
                                            {"sessions", true, set_sessions},
                                            {"quota", true, set_quota},
                                            {"handles", true, set_handles},
                                            {"direct-load", false, set_direct_load},
                                            {"direct-alloc", false, set_direct_alloc},
                                            {"records", false, set_records},
                                            {"first-handle", true, set_first_handle},
                                            {"retention", true, set_retention},
                                            {"ticket-timeout", true, set_ticket_timeout},
                                            {"connections", true, set_connections},
                                            {"credits", true, set_credits},
                                            {"trusted-network", false, set_trusted},
                                            {"metrics", true, set_metrics},
                                            {"json", false, set_json},
                                            {NULL, false, NULL}};

/* False after a complaint. */
static bool check(struct target_options *o)
{
    if (!o->listen) {
        cli_complain("where to listen? --listen HOST:PORT, with the address of an RDMA device");
        return false;
    }
    if (o->policy && o->grants_given) {
        cli_complain("--policy says who has what: leave --sessions, --quota, --handles and "
                     "features away");
        return false;
    }
    if (o->max_inline > o->block_size) {
        cli_complain("--max-inline: more than a block, of %ju octets", (uintmax_t)o->block_size);
        return false;
    }
    if (o->max_inline == 0)
        o->max_inline = o->block_size < 4 * KIB ? o->block_size : 4 * KIB;
    if (o->quota == UINT64_MAX)
        o->quota = o->blocks / o->sessions;
    if (!o->policy && o->quota * o->sessions > o->blocks) {
        cli_complain("--quota: %ju sessions of %ju blocks are more than %ju blocks",
                     (uintmax_t)o->sessions, (uintmax_t)o->quota, (uintmax_t)o->blocks);
        return false;
    }
    if (!o->policy && o->handles * o->sessions > MAX_HANDLES) {
        cli_complain("--handles: %ju sessions of %ju handles are more than a table has",
                     (uintmax_t)o->sessions, (uintmax_t)o->handles);
        return false;
    }
    return real_trusted(o->trusted);
}

/* ------------------------------------------------------------------------------------------ */

/* For this thread and those it starts. */
static void block_signals(void)
{
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SERVER_FAILED);
    (void)pthread_sigmask(SIG_BLOCK, &signals, NULL);
}

/* Another one ends the program at once; that a worker has failed is known. */
static void unblock_signals(void)
{
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    (void)pthread_sigmask(SIG_UNBLOCK, &signals, NULL);
}

static int serve(struct server *server, const struct target_options *o)
{
    block_signals();
    int status = server_open(server, o);
    if (status == CLI_DONE)
        status = server_start(server);
    if (status == CLI_DONE && o->metrics)
        status = metrics_start(server, o->metrics);
    int signal_number = 0;
    if (status == CLI_DONE) {
        server_says_ready(server);
        signal_number = server_wait();
    }
    unblock_signals();
    metrics_stop(server);
    bool clean = server_stop(server);
    if (signal_number)
        server_says_ended(server, signal_number, clean);
    return status == CLI_DONE && !clean ? CLI_ENVIRONMENT : status;
}

static int run(int argc, char **argv)
{
    struct target_options o = {.blocks = 1024,
                               .block_size = 64 * KIB,
                               .sessions = 8,
                               .quota = UINT64_MAX,
                               .handles = 4096,
                               .first_handle = UINT64_MAX,
                               .connections = 64,
                               .credits = 16,
                               .threads = 1,
                               .retention = 600,
                               .ticket_timeout = 1};
    const char *none;
    unsigned count;
    int status = cli_parse(&cli_target, argc, argv, options, &o, &none, 0, &count);
    if (status >= 0)
        return status;
    if (!check(&o))
        return CLI_BAD_INPUT;
    struct server *server = calloc(1, sizeof *server);
    if (!server) {
        cli_complain("no memory");
        return CLI_ENVIRONMENT;
    }
    status = serve(server, &o);
    server_close(server);
    free(server);
    return status;
}

const struct cli_command cli_target = {
    .name = "target",
    .does = "serve a block pool over an RDMA device",
    .usage = usage,
    .run = run,
};
