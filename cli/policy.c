/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/policy.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "sim/read_file.h"
#include "sim/scenario_fields.h"
#include "sim/scenario_text.h"
#include "sim/scenario_value.h"

#define MAX_HANDLES ((uint32_t)INT32_MAX)
#define MAX_BLOCKS (UINT32_C(1) << 28)
#define MAX_FEATURES 3u
#define DEFAULT "default"
#define OWNER "owner"

/* ---- the form ---------------------------------------------------------------------------- */

/* NULL: the key is not there. */
struct raw_grant {
    char *id;       /* of an initiator */
    char *sessions; /* of `default` */
    char *quota;
    char *handles;
    int *features;
    unsigned features_count;
    char *trust_domain;
    char *reader_class; /* the key `class` */
    char **readable_by;
    unsigned readable_by_count;
};

struct raw_policy {
    struct raw_grant *initiators;
    unsigned initiators_count;
    struct raw_grant *others; /* the key `default` */
};

static const cyaml_strval_t features[] = {
    {"DIRECT_LOAD", KBTP_FEATURE_DIRECT_LOAD},
    {"DIRECT_ALLOC", KBTP_FEATURE_DIRECT_ALLOC},
    {"RECORD_COMPLETION", KBTP_FEATURE_RECORD_COMPLETION},
};
static const cyaml_schema_value_t feature_schema = {
    CYAML_VALUE_ENUM(CYAML_FLAG_STRICT, int, features, CYAML_ARRAY_LEN(features))};
static const cyaml_schema_value_t string_schema = STRING_ENTRY;

#define GRANT_FIELDS \
    STRING(raw_grant, quota, REQUIRED), STRING(raw_grant, handles, REQUIRED), \
        LIST(raw_grant, features, OPTIONAL, &feature_schema, 0, MAX_FEATURES), \
        STRING(raw_grant, trust_domain, OPTIONAL), \
        STRING_AS(raw_grant, "class", reader_class, OPTIONAL), \
        LIST(raw_grant, readable_by, OPTIONAL, &string_schema, 1, POLICY_CLASSES), CYAML_FIELD_END

static const cyaml_schema_field_t initiator_fields[] = {STRING(raw_grant, id, REQUIRED),
                                                        GRANT_FIELDS};
static const cyaml_schema_value_t initiator_schema = ENTRY(raw_grant, initiator_fields);
static const cyaml_schema_field_t default_fields[] = {STRING(raw_grant, sessions, REQUIRED),
                                                      GRANT_FIELDS};
static const cyaml_schema_field_t policy_fields[] = {
    LIST(raw_policy, initiators, OPTIONAL, &initiator_schema, 1, POLICY_MAX_INITIATORS),
    MAPPING_AS(raw_policy, DEFAULT, others, OPTIONAL, default_fields),
    CYAML_FIELD_END,
};
static const cyaml_schema_value_t policy_schema = WHOLE(raw_policy, policy_fields);

static const struct sim_form form = {
    .what = "policy", .begin = "initiators:", .page = "kbtp-policy(5)", .schema = &policy_schema};

/* ---- reading one grant ------------------------------------------------------------------- */

struct reading {
    const struct sim_text *text;
    const struct raw_policy *raw;
    struct policy *policy;
    uint32_t blocks;
    uint32_t others; /* sessions of `default` */
};

/* Initiators come first, then `default`. */
static const struct raw_grant *raw_of(const struct reading *r, unsigned index)
{
    return index < r->raw->initiators_count ? &r->raw->initiators[index] : r->raw->others;
}

static unsigned raw_count(const struct reading *r)
{
    return r->raw->initiators_count + (r->raw->others != NULL);
}

static struct sim_string path_of(const struct reading *r, unsigned index, const char *key)
{
    if (index < r->raw->initiators_count)
        return sim_entry_path("initiators", index, key);
    struct sim_string path = {.length = 0};
    sim_path_add_key(&path, DEFAULT);
    sim_path_add_key(&path, key);
    return path;
}

static bool number(const struct reading *r, unsigned index, const char *key, const char *raw,
                   uint32_t least, uint32_t most, uint32_t *out)
{
    return sim_read_number(r->text, path_of(r, index, key).text, raw, 0, least, most, out);
}

static unsigned digit_of(char c)
{
    return isdigit((unsigned char)c) ? (unsigned)(c - '0')
                                     : (unsigned)(tolower((unsigned char)c) - 'a' + 10);
}

/* What is wrong with it is said without it: it is a secret (R-SESS-12). */
static bool read_id(const struct reading *r, unsigned index, struct kbtp_grant *grant)
{
    const char *id = raw_of(r, index)->id;
    const size_t digits = 2 * (size_t)KBTP_INITIATOR_ID_OCTETS;
    const struct sim_string where = path_of(r, index, "id");
    const char *path = where.text;
    if (strlen(id) != digits || strspn(id, "0123456789abcdefABCDEF") != digits)
        return sim_complain(r->text, path, "is not %zu hexadecimal digits, write all %u octets",
                            digits, KBTP_INITIATOR_ID_OCTETS);
    for (size_t i = 0; i < digits; i += 2)
        grant->initiator_id[i / 2] = (uint8_t)(digit_of(id[i]) << 4 | digit_of(id[i + 1]));
    for (unsigned i = 0; i < index; i++)
        if (memcmp(r->policy->grants[i].initiator_id, grant->initiator_id,
                   sizeof grant->initiator_id) == 0)
            return sim_complain(r->text, path, "is also that of initiators[%u], keep one of them",
                                i);
    grant->known = 1;
    return true;
}

static uint32_t class_named(const struct policy *policy, const char *name)
{
    uint32_t i = 1;
    while (i < policy->classes_count && strcmp(policy->classes[i], name) != 0)
        i++;
    return i;
}

static bool read_class(const struct reading *r, unsigned index, struct kbtp_grant *grant)
{
    struct policy *policy = r->policy;
    const char *name = raw_of(r, index)->reader_class;
    if (name == NULL)
        return true;
    struct sim_string path = path_of(r, index, "class");
    size_t length = strlen(name);
    if (length == 0 || length > POLICY_MAX_NAME || strspn(name, SIM_NAME_CHARACTERS) != length)
        return sim_complain(r->text, path.text,
                            "%s is not a name, write 1 to %u of A-Z a-z 0-9 _ -",
                            sim_quoted(name).text, POLICY_MAX_NAME);
    if (strcmp(name, OWNER) == 0)
        return sim_complain(r->text, path.text, "'%s' is who has a range, choose another name",
                            name);
    grant->reader_class = class_named(policy, name);
    if (grant->reader_class == POLICY_CLASSES)
        return sim_complain(r->text, path.text, "is one class too many, have at most %u",
                            POLICY_CLASSES - 1);
    if (grant->reader_class == policy->classes_count)
        memcpy(policy->classes[policy->classes_count++], name, length);
    return true;
}

/* When all classes are known. */
static bool read_readers(const struct reading *r, unsigned index, struct kbtp_grant *grant)
{
    const struct raw_grant *raw = raw_of(r, index);
    for (unsigned i = 0; i < raw->readable_by_count; i++) {
        const char *name = raw->readable_by[i];
        struct sim_string path = path_of(r, index, "readable_by");
        sim_path_add_entry(&path, i);
        uint32_t found = class_named(r->policy, name);
        if (strcmp(name, OWNER) == 0)
            grant->readable_by |= POLICY_NOBODY;
        else if (found == r->policy->classes_count)
            return sim_complain(r->text, path.text,
                                "no initiator is of class %s, write '%s' or what is a 'class'",
                                sim_quoted(name).text, OWNER);
        else
            grant->readable_by |= UINT32_C(1) << found;
    }
    return true;
}

static bool read_features(const struct reading *r, unsigned index, struct kbtp_grant *grant)
{
    const struct raw_grant *raw = raw_of(r, index);
    for (unsigned i = 0; i < raw->features_count; i++)
        grant->features |= (uint16_t)raw->features[i];
    r->policy->features |= grant->features;
    if ((grant->features & KBTP_FEATURE_DIRECT_ALLOC) && grant->quota == 0)
        return sim_complain(r->text, path_of(r, index, "features").text,
                            "DIRECT_ALLOC allocates nothing with a quota of 0, write a quota");
    return true;
}

static bool read_grant(const struct reading *r, unsigned index, struct kbtp_grant *grant)
{
    const struct raw_grant *raw = raw_of(r, index);
    uint32_t domain = 0;
    if ((raw->id != NULL && !read_id(r, index, grant)) ||
        !number(r, index, "quota", raw->quota, 0, MAX_BLOCKS, &grant->quota) ||
        !number(r, index, "handles", raw->handles, 1, MAX_HANDLES, &grant->handle_count) ||
        !number(r, index, "trust_domain", raw->trust_domain, 0, UINT16_MAX, &domain))
        return false;
    grant->trust_domain = (uint16_t)domain;
    return read_features(r, index, grant) && read_class(r, index, grant);
}

/* ---- all of them ------------------------------------------------------------------------- */

/* A retained session keeps its grant, so the sum over all grants is what can be bound at once. */
static bool add_up(const struct reading *r, unsigned index, struct kbtp_grant *grant)
{
    struct policy *policy = r->policy;
    uint64_t sessions = index < r->raw->initiators_count ? 1 : r->others;
    policy->quotas += sessions * grant->quota;
    policy->handles += sessions * grant->handle_count;
    const struct sim_string quota = path_of(r, index, "quota");
    if (policy->quotas > MAX_BLOCKS)
        return sim_complain(r->text, quota.text,
                            "the quotas up to here are %ju blocks, a pool has at most %u, lower "
                            "them",
                            (uintmax_t)policy->quotas, MAX_BLOCKS);
    if (r->blocks != 0 && policy->quotas > r->blocks)
        return sim_complain(r->text, quota.text,
                            "the quotas up to here are %ju blocks and the pool has %u, lower them "
                            "or add blocks",
                            (uintmax_t)policy->quotas, r->blocks);
    if (policy->handles > MAX_HANDLES)
        return sim_complain(r->text, path_of(r, index, "handles").text,
                            "the ranges up to here are %ju handles, a table has at most %u",
                            (uintmax_t)policy->handles, MAX_HANDLES);
    return true;
}

/* From the one grant of `default` the others, and where each range begins. */
static void lay_out(const struct reading *r)
{
    struct policy *policy = r->policy;
    uint32_t entry = 0;
    for (uint32_t i = 0; i < policy->grants_count; i++) {
        if (i > policy->known_count)
            policy->grants[i] = policy->grants[policy->known_count];
        policy->grants[i].first_entry = entry;
        entry += policy->grants[i].handle_count;
    }
}

/* R-DL-01. */
static bool check_direct_load(const struct reading *r)
{
    const struct policy *policy = r->policy;
    for (unsigned i = 0; i < raw_count(r); i++)
        if ((policy->grants[i].features & KBTP_FEATURE_DIRECT_LOAD) &&
            !kbtp_grant_reads_all(policy->grants, policy->grants_count, i))
            return sim_complain(r->text, path_of(r, i, "features").text,
                                "DIRECT_LOAD exposes all blocks and not all ranges are readable "
                                "by this class, remove it or widen readable_by");
    return true;
}

static bool read_grants(const struct reading *r)
{
    struct policy *policy = r->policy;
    for (unsigned i = 0; i < raw_count(r); i++)
        if (!read_grant(r, i, &policy->grants[i]) || !add_up(r, i, &policy->grants[i]))
            return false;
    for (unsigned i = 0; i < raw_count(r); i++)
        if (!read_readers(r, i, &policy->grants[i]))
            return false;
    lay_out(r);
    return check_direct_load(r);
}

static bool read_policy(const struct sim_text *text, void *raw, void *whole)
{
    struct reading *r = whole;
    struct policy *policy = r->policy;
    r->text = text;
    r->raw = raw;
    if (raw_count(r) == 0)
        return sim_complain(r->text, "", "grants nothing, add 'initiators:' or '%s:'", DEFAULT);
    if (r->raw->others != NULL &&
        !sim_read_number(r->text, DEFAULT ".sessions", r->raw->others->sessions, 1, 1,
                         POLICY_MAX_SESSIONS, &r->others))
        return false;
    policy->known_count = r->raw->initiators_count;
    policy->grants_count = policy->known_count + r->others;
    policy->classes_count = 1;
    policy->grants = calloc(policy->grants_count, sizeof *policy->grants);
    return policy->grants != NULL ? read_grants(r) : sim_complain(r->text, "", SIM_NO_MEMORY);
}

int policy_read(const char *path, uint32_t blocks, struct policy *policy, char *error, size_t size)
{
    char *octets;
    size_t length;
    *policy = (struct policy){.grants = NULL};
    if (sim_read_file(path, SIM_TEXT_LIMIT, &octets, &length, error, size) != 0)
        return -1;
    struct sim_text text = sim_text_of(path, octets, length, &form, error, size);
    struct reading reading = {.policy = policy, .blocks = blocks};
    bool good = sim_form_read(&text, read_policy, &reading);
    free(octets);
    if (!good)
        policy_end(policy);
    return good ? 0 : -1;
}

void policy_end(struct policy *policy)
{
    free(policy->grants);
    *policy = (struct policy){.grants = NULL};
}
