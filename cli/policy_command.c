/* SPDX-License-Identifier: BSD-3-Clause */
/* `kbtp policy`: is a policy right, and what does it grant? */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/json.h"
#include "cli/policy.h"

#define SHOWN_OCTETS 4u /* of an Initiator ID, which is a secret (R-SESS-12) */

static const char usage[] =
    "usage: kbtp policy FILE [OPTIONS]\n"
    "\n"
    "Checks a policy, which says what each initiator of a target has, and prints its grants.\n"
    "kbtp-policy(5) describes the file. Of an Initiator ID, a secret, the first four octets are\n"
    "shown.\n"
    "\n"
    "  --blocks N       the blocks of the pool: the sum of all quotas may be at most N\n"
    "  --json           print one JSON object\n"
    "\n"
    "exit status: 0 the policy is good, 2 bad input, 4 machine\n";

struct policy_options {
    uint64_t blocks;
    bool json;
};

static bool set_blocks(const char *option, const char *value, void *into)
{
    return cli_number(option, value, 1, 1u << 28, &((struct policy_options *)into)->blocks);
}

static bool set_json(const char *option, const char *value, void *into)
{
    (void)option, (void)value;
    return ((struct policy_options *)into)->json = true;
}

static const struct cli_option options[] = {
    {"blocks", true, set_blocks}, {"json", false, set_json}, {NULL, false, NULL}};

/* ---- words ------------------------------------------------------------------------------- */

/* Of `default` there is one line for all its sessions. */
static uint32_t lines_of(const struct policy *policy)
{
    return policy->known_count + (policy->grants_count > policy->known_count);
}

static uint32_t sessions_of(const struct policy *policy, uint32_t line)
{
    return line < policy->known_count ? 1 : policy->grants_count - policy->known_count;
}

static void say_who(const struct kbtp_grant *grant, char out[16])
{
    if (!grant->known) {
        snprintf(out, 16, "default");
        return;
    }
    for (size_t i = 0; i < SHOWN_OCTETS; i++)
        snprintf(out + 2 * i, 16 - 2 * i, "%02x", grant->initiator_id[i]);
    snprintf(out + 2 * (size_t)SHOWN_OCTETS, 16 - 2 * (size_t)SHOWN_OCTETS, "...");
}

static void add_word(char *out, size_t size, const char *word)
{
    size_t used = strlen(out);
    snprintf(out + used, size - used, "%s%s", used ? "," : "", word);
}

static void say_features(const struct kbtp_grant *grant, char *out, size_t size)
{
    out[0] = 0;
    for (uint32_t bit = 1; bit <= UINT16_MAX; bit <<= 1)
        if (grant->features & bit)
            add_word(out, size, kbtp_feature_name((uint16_t)bit));
    if (!out[0])
        add_word(out, size, "-");
}

static void say_readers(const struct policy *policy, const struct kbtp_grant *grant, char *out,
                        size_t size)
{
    out[0] = 0;
    if (grant->readable_by == 0)
        add_word(out, size, "everybody");
    if (grant->readable_by & POLICY_NOBODY)
        add_word(out, size, "owner");
    for (uint32_t i = 1; i < policy->classes_count; i++)
        if (grant->readable_by >> i & 1u)
            add_word(out, size, policy->classes[i]);
}

/* ---- what is printed --------------------------------------------------------------------- */

static void print_text(const struct policy *policy, uint64_t blocks)
{
    char who[16], entries[32], names[80], readers[600];
    printf("%-11s  %8s  %9s  %-21s  %6s  %-15s  %-20s  %s\n", "initiator", "sessions", "quota",
           "entries", "domain", "class", "readable by", "features");
    for (uint32_t i = 0; i < lines_of(policy); i++) {
        const struct kbtp_grant *grant = &policy->grants[i];
        uint64_t count = (uint64_t)sessions_of(policy, i) * grant->handle_count;
        say_who(grant, who);
        say_features(grant, names, sizeof names);
        say_readers(policy, grant, readers, sizeof readers);
        snprintf(entries, sizeof entries, "%" PRIu32 "-%" PRIu64, grant->first_entry,
                 grant->first_entry + count - 1);
        printf("%-11s  %8" PRIu32 "  %9" PRIu32 "  %-21s  %6u  %-15s  %-20s  %s\n", who,
               sessions_of(policy, i), grant->quota, entries, grant->trust_domain,
               grant->reader_class ? policy->classes[grant->reader_class] : "-", readers, names);
    }
    printf("%" PRIu32 " sessions, quotas of %" PRIu64 " blocks", policy->grants_count,
           policy->quotas);
    if (blocks)
        printf(" out of %" PRIu64, blocks);
    printf(", %" PRIu64 " handles\n", policy->handles);
}

static json_t *json_readers(const struct policy *policy, const struct kbtp_grant *grant)
{
    if (grant->readable_by == 0)
        return json_null();
    json_t *all = json_array();
    if (grant->readable_by & POLICY_NOBODY)
        json_array_append_new(all, json_string("owner"));
    for (uint32_t i = 1; i < policy->classes_count; i++)
        if (grant->readable_by >> i & 1u)
            json_array_append_new(all, json_string(policy->classes[i]));
    return all;
}

static json_t *json_features(const struct kbtp_grant *grant)
{
    json_t *all = json_array();
    for (uint32_t bit = 1; bit <= UINT16_MAX; bit <<= 1)
        if (grant->features & bit)
            json_array_append_new(all, json_string(kbtp_feature_name((uint16_t)bit)));
    return all;
}

static json_t *json_grant(const struct policy *policy, uint32_t line)
{
    const struct kbtp_grant *grant = &policy->grants[line];
    const char *name = grant->reader_class ? policy->classes[grant->reader_class] : NULL;
    char who[16];
    say_who(grant, who);
    json_t *all = json_object();
    json_object_set_new(all, "initiator", json_string(who));
    json_object_set_new(all, "sessions", json_integer(sessions_of(policy, line)));
    json_object_set_new(all, "quota", json_integer(grant->quota));
    json_object_set_new(all, "handles", json_integer(grant->handle_count));
    json_object_set_new(all, "first_entry", json_integer(grant->first_entry));
    json_object_set_new(all, "trust_domain", json_integer(grant->trust_domain));
    json_object_set_new(all, "class", cli_json_text(name));
    json_object_set_new(all, "readable_by", json_readers(policy, grant));
    json_object_set_new(all, "features", json_features(grant));
    return all;
}

static void print_json(const char *path, const struct policy *policy, uint64_t blocks)
{
    json_t *grants = json_array(), *all = json_object();
    for (uint32_t i = 0; i < lines_of(policy); i++)
        json_array_append_new(grants, json_grant(policy, i));
    json_object_set_new(all, "policy", cli_json_text(path));
    json_object_set_new(all, "blocks", blocks ? json_integer((json_int_t)blocks) : json_null());
    json_object_set_new(all, "sessions", json_integer(policy->grants_count));
    json_object_set_new(all, "quotas", json_integer((json_int_t)policy->quotas));
    json_object_set_new(all, "handles", json_integer((json_int_t)policy->handles));
    json_object_set_new(all, "grants", grants);
    cli_json_print(all);
}

static int run(int argc, char **argv)
{
    struct policy_options o = {0};
    const char *path;
    unsigned count;
    char error[800];
    struct policy policy;
    int status = cli_parse(&cli_policy, argc, argv, options, &o, &path, 1, &count);
    if (status >= 0)
        return status;
    if (count == 0) {
        cli_complain("which policy? Name its file");
        return CLI_BAD_INPUT;
    }
    if (policy_read(path, (uint32_t)o.blocks, &policy, error, sizeof error) != 0) {
        cli_complain("%s", error);
        return CLI_BAD_INPUT;
    }
    if (o.json)
        print_json(path, &policy, o.blocks);
    else
        print_text(&policy, o.blocks);
    policy_end(&policy);
    return CLI_DONE;
}

const struct cli_command cli_policy = {
    .name = "policy",
    .does = "check what a target grants to whom",
    .usage = usage,
    .run = run,
};
