/* SPDX-License-Identifier: BSD-3-Clause */
/* What a target says: when it is ready, and at the end. */
#include <ifaddrs.h>
#include <inttypes.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>

#include "cli/capabilities.h"
#include "cli/cli.h"
#include "cli/counted.h"
#include "cli/json.h"
#include "cli/target.h"

#define WHY 400u

static const char *const bindings[] = {
    [RDMA_BINDING_RDMAP] = "iWARP",
    [RDMA_BINDING_INFINIBAND] = "InfiniBand",
    [RDMA_BINDING_ROCE] = "RoCE",
};

/* ---- where it is ------------------------------------------------------------------------- */

static bool is_wildcard(const char *address)
{
    return strncmp(address, "0.0.0.0:", 8) == 0 || strncmp(address, "[::]:", 5) == 0;
}

/* The first address of the device's network interface, but none of a single link. */
static bool address_of_interface(const char *interface, char host[NI_MAXHOST])
{
    struct ifaddrs *all;
    bool found = false;
    if (!*interface || getifaddrs(&all) != 0)
        return false;
    for (const struct ifaddrs *i = all; i && !found; i = i->ifa_next) {
        int family = i->ifa_addr ? i->ifa_addr->sa_family : AF_UNSPEC;
        if (strcmp(i->ifa_name, interface) != 0 || (family != AF_INET && family != AF_INET6))
            continue;
        socklen_t octets =
            family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
        found = getnameinfo(i->ifa_addr, octets, host, NI_MAXHOST, NULL, 0, NI_NUMERICHOST) == 0 &&
                !strchr(host, '%');
    }
    freeifaddrs(all);
    return found;
}

/* Of a device among those of this machine. */
static bool interface_of(const char *device, char interface[16])
{
    struct rdma_verbs_about about;
    char words[RDMA_VERBS_WORDS];
    for (uint32_t i = 0; rdma_verbs_about(i, &about, words) != -ENOENT && *about.name; i++)
        if (strcmp(about.name, device) == 0) {
            (void)snprintf(interface, 16, "%.15s", about.netdev);
            return true;
        }
    return false;
}

/* What the other side types. */
static void say_address(const struct server *s, char *out, size_t size)
{
    char interface[16], host[NI_MAXHOST];
    const char *port = strrchr(s->address, ':');
    if (!is_wildcard(s->address))
        (void)snprintf(out, size, "%s", s->address);
    else if (interface_of(rdma_verbs_device_name(s->device), interface) &&
             address_of_interface(interface, host))
        (void)snprintf(out, size, strchr(host, ':') ? "[%s]%s" : "%s%s", host, port);
    else
        (void)snprintf(out, size, "HOST%s", port);
}

/* ---- ready ------------------------------------------------------------------------------- */

/* A feature that was asked for and is not served; NULL when there are no more behind `n`. */
static const struct served *refused(const struct server *s, uint32_t *n)
{
    const struct served *what;
    uint32_t missing = s->config.features & ~s->target.features;
    while ((what = served((*n)++)) != NULL)
        if (what->feature & missing)
            return what;
    return NULL;
}

static void why_refused(const struct server *s, const struct served *what, char *out, size_t size)
{
    served_why_not(what, &s->target.caps, out, size);
    if (!*out)
        (void)snprintf(out, size, "the device cannot");
}

static const char *identity_words(const struct server *s)
{
    return s->policy.known_count == s->policy.grants_count ? " # FILE with an ID of the policy"
                                                           : "";
}

#define COMMAND "kbtp %s %s +0%s --identity kbtp.id --trusted-network"

static void print_ready(const struct server *s, const char *address)
{
    char why[WHY];
    const struct kbtp_target_config *config = &s->config;
    printf("serving %" PRIu32 " blocks of %" PRIu32 " octets on %s (%s) at %s: %" PRIu32
           " worker%s, %" PRIu32 " session%s, handles from 0x%" PRIx64 "\n",
           config->block_count, config->block_size, rdma_verbs_device_name(s->device),
           bindings[s->target.caps.binding], s->address, s->worker_count,
           s->worker_count == 1 ? "" : "s", config->session_count,
           config->session_count == 1 ? "" : "s", config->first_handle);
    for (uint32_t bit = 1; bit <= UINT16_MAX; bit <<= 1)
        if (s->target.features & bit && kbtp_feature_name((uint16_t)bit))
            printf("offers %s\n", kbtp_feature_name((uint16_t)bit));
    uint32_t n = 0;
    for (const struct served *what; (what = refused(s, &n)) != NULL;) {
        why_refused(s, what, why, sizeof why);
        printf("does not offer %s: %s\n", what->name, why);
    }
    if (s->metrics)
        printf("metrics at port %u, /metrics\n", metrics_port(s));
    printf("ready; on the other side:\n"
           "  echo hello | " COMMAND "%s\n"
           "  " COMMAND "\n",
           "alloc-store", address, " --seal", identity_words(s), "load", address, "");
}

static json_t *features_json(const struct server *s)
{
    json_t *all = json_array();
    for (uint32_t bit = 1; bit <= UINT16_MAX; bit <<= 1)
        if (s->target.features & bit && kbtp_feature_name((uint16_t)bit))
            json_array_append_new(all, json_string(kbtp_feature_name((uint16_t)bit)));
    return all;
}

static json_t *refused_json(const struct server *s)
{
    json_t *all = json_object();
    uint32_t n = 0;
    for (const struct served *what; (what = refused(s, &n)) != NULL;) {
        char why[WHY];
        why_refused(s, what, why, sizeof why);
        json_object_set_new(all, what->name, json_string(why));
    }
    return all;
}

static void print_ready_json(const struct server *s, const char *address)
{
    const struct kbtp_target_config *config = &s->config;
    json_t *all = json_object();
    json_object_set_new(all, "event", json_string("ready"));
    json_object_set_new(all, "device", cli_json_text(rdma_verbs_device_name(s->device)));
    json_object_set_new(all, "binding", json_string(bindings[s->target.caps.binding]));
    json_object_set_new(all, "address", cli_json_text(address));
    json_object_set_new(all, "threads", json_integer(s->worker_count));
    json_object_set_new(all, "blocks", json_integer(config->block_count));
    json_object_set_new(all, "block_size", json_integer(config->block_size));
    json_object_set_new(all, "sessions", json_integer(config->session_count));
    json_object_set_new(all, "first_handle", cli_json_hex(config->first_handle));
    json_object_set_new(all, "offers", features_json(s));
    json_object_set_new(all, "not_offered", refused_json(s));
    json_object_set_new(all, "metrics_port",
                        s->metrics ? json_integer(metrics_port(s)) : json_null());
    json_object_set_new(all, "command", json_sprintf(COMMAND, "alloc-store", address, " --seal"));
    cli_json_print(all);
}

void server_says_ready(const struct server *s)
{
    char address[NI_MAXHOST + 16];
    say_address(s, address, sizeof address);
    if (s->options->json)
        print_ready_json(s, address);
    else
        print_ready(s, address);
    (void)fflush(stdout); /* who waits for it reads a file or a pipe */
}

/* ---- ended ------------------------------------------------------------------------------- */

static const char *reason(int signal_number)
{
    switch (signal_number) {
    case SIGINT:
        return "SIGINT";
    case SIGTERM:
        return "SIGTERM";
    default:
        return "a worker failed";
    }
}

void server_says_ended(struct server *s, int signal_number, bool clean)
{
    (void)server_count(s);
    const struct kbtp_report report = {.counters = &s->sum.counters, .gauges = &s->sum.gauges};
    if (!s->options->json) {
        printf("ended by %s%s; counted:\n", reason(signal_number), clean ? "" : ", not cleanly");
        counted_print(&report);
        return;
    }
    json_t *all = json_object();
    json_object_set_new(all, "event", json_string("ended"));
    json_object_set_new(all, "by", json_string(reason(signal_number)));
    json_object_set_new(all, "clean", json_boolean(clean));
    json_object_set_new(all, "counters", counted_json(&report));
    cli_json_print(all);
}
