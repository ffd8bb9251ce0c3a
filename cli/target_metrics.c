/* SPDX-License-Identifier: BSD-3-Clause */
/* `--metrics`: what is counted, as text for Prometheus, over HTTP in libmicrohttpd's own thread. */
#include <microhttpd.h>
#include <netdb.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/counted.h"
#include "cli/real.h"
#include "cli/target.h"

#define CONNECTIONS 16u
#define PATIENCE_S 5u /* with who connects and asks nothing */
#define PATH "/metrics"
#define PROCESS_OCTETS 256u

struct server_metrics {
    struct MHD_Daemon *daemon;
};

static enum MHD_Result respond(struct MHD_Connection *connection, unsigned status, char *text,
                               size_t octets, const char *type)
{
    struct MHD_Response *response =
        MHD_create_response_from_buffer(octets, text, MHD_RESPMEM_MUST_FREE);
    if (!response) {
        free(text);
        return MHD_NO;
    }
    (void)MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type);
    if (status == MHD_HTTP_METHOD_NOT_ALLOWED)
        (void)MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW, "GET, HEAD");
    enum MHD_Result result = MHD_queue_response(connection, status, response);
    MHD_destroy_response(response);
    return result;
}

static enum MHD_Result respond_with(struct MHD_Connection *connection, unsigned status,
                                    const char *words)
{
    char *text = strdup(words);
    return text ? respond(connection, status, text, strlen(text), "text/plain") : MHD_NO;
}

/* Adds what Prometheus' own clients tell of a process. NULL: no memory. */
static char *with_process(char *text, size_t *octets)
{
    char *more = text ? realloc(text, *octets + PROCESS_OCTETS) : NULL;
    if (!more) {
        free(text);
        return NULL;
    }
    *octets += (size_t)snprintf(more + *octets, PROCESS_OCTETS,
                                "# HELP process_cpu_seconds_total User and system CPU time spent, "
                                "in seconds.\n"
                                "# TYPE process_cpu_seconds_total counter\n"
                                "process_cpu_seconds_total %.6f\n",
                                real_cpu());
    return more;
}

static enum MHD_Result respond_with_counters(struct MHD_Connection *connection, struct server *s)
{
    const struct kbtp_report report = {.counters = &s->sum.counters, .gauges = &s->sum.gauges};
    size_t octets;
    if (!server_count(s))
        return respond_with(connection, MHD_HTTP_SERVICE_UNAVAILABLE, "a worker does not answer\n");
    char *text = with_process(counted_text(&report, &octets), &octets);
    return text ? respond(connection, MHD_HTTP_OK, text, octets, "text/plain; version=0.0.4")
                : MHD_NO;
}

static enum MHD_Result handle(void *context, struct MHD_Connection *connection, const char *url,
                              const char *method, const char *version, const char *upload,
                              size_t *upload_octets, void **state)
{
    (void)version, (void)upload, (void)state;
    if (strcmp(method, MHD_HTTP_METHOD_GET) != 0 && strcmp(method, MHD_HTTP_METHOD_HEAD) != 0) {
        *upload_octets = 0;
        return respond_with(connection, MHD_HTTP_METHOD_NOT_ALLOWED, "only GET\n");
    }
    if (strcmp(url, PATH) != 0)
        return respond_with(connection, MHD_HTTP_NOT_FOUND, "it is at " PATH "\n");
    return respond_with_counters(connection, context);
}

/* Its threads have the signals blocked that this one has; libmicrohttpd wants no SIGPIPE. */
static struct MHD_Daemon *start(struct server *s, const struct addrinfo *at)
{
    sigset_t pipe, before;
    sigemptyset(&pipe);
    sigaddset(&pipe, SIGPIPE);
    (void)pthread_sigmask(SIG_BLOCK, &pipe, &before);
    unsigned flags = MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_AUTO;
    if (at->ai_family == AF_INET6)
        flags |= MHD_USE_IPv6;
    errno = 0;
    struct MHD_Daemon *daemon =
        MHD_start_daemon(flags, 0, NULL, NULL, handle, s, MHD_OPTION_SOCK_ADDR, at->ai_addr,
                         MHD_OPTION_CONNECTION_LIMIT, CONNECTIONS, MHD_OPTION_CONNECTION_TIMEOUT,
                         PATIENCE_S, MHD_OPTION_LISTENING_ADDRESS_REUSE, 1u, MHD_OPTION_END);
    int failed = errno;
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = failed;
    return daemon;
}

/* `numeric` is what real_address() gave. */
static struct MHD_Daemon *start_at(struct server *s, char *numeric)
{
    struct addrinfo *at = real_socket_address(numeric);
    if (!at) {
        errno = EINVAL;
        return NULL;
    }
    struct MHD_Daemon *daemon = start(s, at);
    int failed = errno;
    freeaddrinfo(at);
    errno = failed;
    return daemon;
}

int metrics_start(struct server *s, const char *address)
{
    char numeric[RDMA_VERBS_ADDRESS];
    int status = real_address(address, numeric);
    if (status != CLI_DONE)
        return status;
    s->metrics = calloc(1, sizeof *s->metrics);
    if (!s->metrics) {
        cli_complain("no memory for metrics");
        return CLI_ENVIRONMENT;
    }
    s->metrics->daemon = start_at(s, numeric);
    if (s->metrics->daemon)
        return CLI_DONE;
    cli_complain("--metrics: cannot listen at %.200s: %s", address,
                 errno ? strerror(errno) : "libmicrohttpd does not start");
    return CLI_ENVIRONMENT;
}

void metrics_stop(struct server *s)
{
    if (!s->metrics)
        return;
    if (s->metrics->daemon)
        MHD_stop_daemon(s->metrics->daemon);
    free(s->metrics);
    s->metrics = NULL;
}

uint16_t metrics_port(const struct server *s)
{
    const union MHD_DaemonInfo *info =
        s->metrics ? MHD_get_daemon_info(s->metrics->daemon, MHD_DAEMON_INFO_BIND_PORT) : NULL;
    return info ? info->port : 0;
}
