/* SPDX-License-Identifier: BSD-3-Clause */
/* `kbtp devices`: which RDMA devices are here, and what of KBTP each can serve. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/capabilities.h"
#include "cli/cli.h"
#include "cli/json.h"
#include "net/verbs/verbs.h"

#define WHY 400u

static const char usage[] =
    "usage: kbtp devices [DEVICE] [OPTIONS]\n"
    "\n"
    "Lists the RDMA devices of this machine: state, address, capabilities and limits; which\n"
    "features of KBTP each can serve, and why not the others.\n"
    "\n"
    "  --json           print a JSON object for each device, one a line\n"
    "\n"
    "exit status: 0 done, 2 bad command line, 4 no device, or one that cannot be opened\n";

static bool set_json(const char *option, const char *value, void *into)
{
    (void)option, (void)value;
    return *(bool *)into = true;
}

static const struct cli_option options[] = {{"json", false, set_json}, {NULL, false, NULL}};

/* ---- text -------------------------------------------------------------------------------- */

static void print_capabilities(const struct rdma_caps *caps)
{
    printf("  can       ");
    for (uint32_t n = 0; capability(n); n++)
        if (caps->bits & capability(n)->bit)
            printf(" %s", capability(n)->name);
    printf("\n  limits     messages of %" PRIu32 " octets, %" PRIu32 " inline; %" PRIu32
           " SGEs, %" PRIu32 " of a Read; %" PRIu32 " Reads at a time\n"
           "             queues of %" PRIu32 ", completion queues of %" PRIu32 "\n",
           caps->max_message, caps->max_inline, caps->max_sge, caps->max_read_sge, caps->max_reads,
           caps->max_queue, caps->max_cq);
}

static void print_served(const struct rdma_caps *caps)
{
    for (uint32_t n = 0; served(n); n++) {
        char why[WHY];
        served_why_not(served(n), caps, why, sizeof why);
        printf("  %-17s  %-3s  %s\n", served(n)->name, *why ? "no" : "yes",
               *why ? why : served(n)->says);
    }
}

static void print_device(const struct rdma_verbs_about *about)
{
    printf("%s  %s, driver %s, port %s%s%s\n", about->name, about->transport, about->driver,
           about->state, *about->netdev ? ", interface " : "", about->netdev);
    printf("  GID        %s%s%s\n", about->gid, *about->gid ? ": " : "", about->gid_why);
    print_capabilities(&about->caps);
    printf("             %" PRIu32 " regions of up to %" PRIu64 " octets\n", about->max_regions,
           about->max_region_octets);
    print_served(&about->caps);
}

/* ---- JSON -------------------------------------------------------------------------------- */

static json_t *json_capabilities(const struct rdma_caps *caps)
{
    json_t *names = json_array();
    for (uint32_t n = 0; capability(n); n++)
        if (caps->bits & capability(n)->bit)
            json_array_append_new(names, json_string(capability(n)->name));
    return names;
}

static json_t *json_limits(const struct rdma_verbs_about *about)
{
    const struct rdma_caps *caps = &about->caps;
    const struct {
        const char *name;
        uint64_t value;
    } limits[] = {
        {"max_message", caps->max_message}, {"max_inline", caps->max_inline},
        {"max_sge", caps->max_sge},         {"max_read_sge", caps->max_read_sge},
        {"max_reads", caps->max_reads},     {"max_queue", caps->max_queue},
        {"max_cq", caps->max_cq},           {"max_regions", about->max_regions},
    };
    json_t *object = json_object();
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++)
        json_object_set_new(object, limits[i].name, json_integer((json_int_t)limits[i].value));
    return object;
}

/* Per feature null, or why it cannot be served. */
static json_t *json_served(const struct rdma_caps *caps)
{
    json_t *object = json_object();
    for (uint32_t n = 0; served(n); n++) {
        char why[WHY];
        served_why_not(served(n), caps, why, sizeof why);
        json_object_set_new(object, served(n)->name, *why ? json_string(why) : json_null());
    }
    return object;
}

static void print_json(const struct rdma_verbs_about *about)
{
    json_t *object = json_object();
    json_object_set_new(object, "device", cli_json_text(about->name));
    json_object_set_new(object, "driver", cli_json_text(about->driver));
    json_object_set_new(object, "transport", cli_json_text(about->transport));
    json_object_set_new(object, "state", cli_json_text(about->state));
    json_object_set_new(object, "interface", cli_json_text(*about->netdev ? about->netdev : NULL));
    json_object_set_new(object, "gid", cli_json_text(*about->gid ? about->gid : NULL));
    json_object_set_new(object, "gid_why", cli_json_text(about->gid_why));
    json_object_set_new(object, "capabilities", json_capabilities(&about->caps));
    json_object_set_new(object, "limits", json_limits(about));
    json_object_set_new(object, "not_served", json_served(&about->caps));
    cli_json_print(object);
}

/* ------------------------------------------------------------------------------------------ */

/* Says something of every device called `name` (NULL: of all). Returns how many there were. */
static unsigned list(const char *name, bool json, int *status)
{
    struct rdma_verbs_about about;
    char words[RDMA_VERBS_WORDS];
    unsigned found = 0;
    for (uint32_t i = 0;; i++) {
        int failed = rdma_verbs_about(i, &about, words);
        if (failed == -ENOENT || (failed && !*about.name))
            return found;
        if (name && strcmp(name, about.name) != 0)
            continue;
        found++;
        if (failed) {
            cli_complain("%s", words);
            *status = CLI_ENVIRONMENT;
        } else if (json) {
            print_json(&about);
        } else {
            print_device(&about);
        }
    }
}

static int run(int argc, char **argv)
{
    bool json = false;
    const char *name = NULL;
    unsigned count;
    int status = cli_parse(&cli_devices, argc, argv, options, &json, &name, 1, &count);
    if (status >= 0)
        return status;
    status = CLI_DONE;
    if (list(count ? name : NULL, json, &status))
        return status;
    if (count)
        cli_complain("%.60s: no such RDMA device; `kbtp devices` lists those that are here", name);
    else
        cli_complain("no RDMA device is here, or the module ib_uverbs is not loaded");
    return CLI_ENVIRONMENT;
}

const struct cli_command cli_devices = {
    .name = "devices",
    .does = "list RDMA devices and what each can serve",
    .usage = usage,
    .run = run,
};
