/* SPDX-License-Identifier: BSD-3-Clause */
/* Scenarios of kind `timed` as YAML. */
#include <stdlib.h>
#include <string.h>

#include "net/rdma.h"
#include "sim/scenario_fields.h"
#include "sim/scenario_set.h"
#include "sim/scenario_text.h"
#include "sim/scenario_value.h"
#include "sim/timed/timed.h"
#include "sim/timed/value.h"

#define KIND "timed"
#define MOST_BLOCKS (1u << 28)
#define MOST_BLOCK_SIZE (UINT64_C(1) << 30)
#define MOST_DEPTH 4096u
#define DAY_NS (UINT64_C(24) * 3600 * 1000000000)

/* ---- the form ---------------------------------------------------------------------------- */

/* NULL: the key is not there. The members have the names of the keys. */
struct raw_pool {
    char *name, *count, *workers, *blocks, *block_size, *credits, *max_inline, *staging;
    int *memory; /* is it phantom? */
};

struct raw_mix {
    char *load, *store, *alloc_free;
};

struct raw_stall {
    char *at, *lasts;
};

struct raw_instances {
    char *name, *count, *per_host, *pool;
    int *to; /* enum sim_timed_to */
    char *depth, *handles, *fill, *length, *operations, *rate, *think;
    struct raw_mix *mix;
    struct raw_stall *stall;
    int *is_inline; /* the key `inline` */
    int *direct;
};

struct raw_network {
    char *leaf_ports, *oversubscription, *latency, *spine_latency;
};

struct raw_timed {
    int kind;
    char *title, *nic, *seed, *duration;
    int *binding; /* enum rdma_binding */
    struct raw_network *network;
    struct raw_pool *pools;
    unsigned pools_count;
    struct raw_instances *instances;
    unsigned instances_count;
};

static const cyaml_strval_t kinds[] = {{KIND, 0}};
static const cyaml_strval_t booleans[] = {{"false", false}, {"true", true}};
static const cyaml_strval_t memories[] = {{"real", false}, {"phantom", true}};
static const cyaml_strval_t directions[] = {{"each", SIM_TIMED_EACH}, {"share", SIM_TIMED_SHARE}};
static const cyaml_strval_t bindings[] = {{"rdmap", RDMA_BINDING_RDMAP},
                                          {"infiniband", RDMA_BINDING_INFINIBAND},
                                          {"roce", RDMA_BINDING_ROCE}};

static const cyaml_schema_field_t pool_fields[] = {
    STRING(raw_pool, name, REQUIRED),       STRING(raw_pool, count, OPTIONAL),
    STRING(raw_pool, workers, OPTIONAL),    STRING(raw_pool, blocks, OPTIONAL),
    STRING(raw_pool, block_size, REQUIRED), STRING(raw_pool, credits, OPTIONAL),
    STRING(raw_pool, max_inline, OPTIONAL), STRING(raw_pool, staging, OPTIONAL),
    CHOICE(raw_pool, memory, memories),     CYAML_FIELD_END,
};
static const cyaml_schema_value_t pool_schema = ENTRY(raw_pool, pool_fields);

static const cyaml_schema_field_t mix_fields[] = {
    STRING(raw_mix, load, OPTIONAL),
    STRING(raw_mix, store, OPTIONAL),
    STRING(raw_mix, alloc_free, OPTIONAL),
    CYAML_FIELD_END,
};

static const cyaml_schema_field_t stall_fields[] = {
    STRING(raw_stall, at, REQUIRED),
    STRING(raw_stall, lasts, REQUIRED),
    CYAML_FIELD_END,
};

static const cyaml_schema_field_t instances_fields[] = {
    STRING(raw_instances, name, REQUIRED),
    STRING(raw_instances, count, OPTIONAL),
    STRING(raw_instances, per_host, OPTIONAL),
    STRING(raw_instances, pool, REQUIRED),
    CHOICE(raw_instances, to, directions),
    STRING(raw_instances, depth, OPTIONAL),
    STRING(raw_instances, handles, OPTIONAL),
    STRING(raw_instances, fill, OPTIONAL),
    STRING(raw_instances, length, OPTIONAL),
    MAPPING(raw_instances, mix, OPTIONAL, mix_fields),
    STRING(raw_instances, operations, OPTIONAL),
    STRING(raw_instances, rate, OPTIONAL),
    STRING(raw_instances, think, OPTIONAL),
    MAPPING(raw_instances, stall, OPTIONAL, stall_fields),
    CHOICE_AS(raw_instances, "inline", is_inline, booleans),
    CHOICE(raw_instances, direct, booleans),
    CYAML_FIELD_END,
};
static const cyaml_schema_value_t instances_schema = ENTRY(raw_instances, instances_fields);

static const cyaml_schema_field_t network_fields[] = {
    STRING(raw_network, leaf_ports, OPTIONAL),
    STRING(raw_network, oversubscription, OPTIONAL),
    STRING(raw_network, latency, OPTIONAL),
    STRING(raw_network, spine_latency, OPTIONAL),
    CYAML_FIELD_END,
};

static const cyaml_schema_field_t timed_fields[] = {
    CYAML_FIELD_ENUM("kind", CYAML_FLAG_STRICT, struct raw_timed, kind, kinds,
                     CYAML_ARRAY_LEN(kinds)),
    STRING(raw_timed, title, OPTIONAL),
    STRING(raw_timed, nic, REQUIRED),
    STRING(raw_timed, seed, OPTIONAL),
    STRING(raw_timed, duration, OPTIONAL),
    CHOICE(raw_timed, binding, bindings),
    MAPPING(raw_timed, network, OPTIONAL, network_fields),
    LIST(raw_timed, pools, REQUIRED, &pool_schema, 1, SIM_TIMED_GROUPS),
    LIST(raw_timed, instances, REQUIRED, &instances_schema, 1, SIM_TIMED_GROUPS),
    CYAML_FIELD_END,
};
static const cyaml_schema_value_t timed_schema = WHOLE(raw_timed, timed_fields);

static const struct sim_form form = {
    .what = "scenario", .begin = "kind: " KIND, .page = "kbtp-timed(5)", .schema = &timed_schema};

bool sim_timed_is(const char *text, size_t length)
{
    for (size_t at = 0; at < length;) { /* a key at the top stands at the beginning of its line */
        const char *line = text + at, *end = memchr(line, '\n', length - at);
        size_t octets = end ? (size_t)(end - line) : length - at;
        if (octets >= 5 && memcmp(line, "kind:", 5) == 0) {
            const char *word = line + 5;
            size_t left = octets - 5;
            while (left && (*word == ' ' || *word == '\t'))
                word++, left--;
            return left >= strlen(KIND) && memcmp(word, KIND, strlen(KIND)) == 0;
        }
        at += octets + 1;
    }
    return false;
}

static uint32_t line_of(const struct sim_text *t, const char *path)
{
    const struct sim_mark *mark = sim_text_marked(t, 0, path);
    return mark ? (uint32_t)mark->place.line : 0;
}

/* ---- pools ------------------------------------------------------------------------------- */

static bool read_pool(const struct sim_text *t, unsigned n, struct raw_pool *raw,
                      struct sim_timed_pool *p)
{
    uint64_t size = 0, max_inline = 0;
#define AT(key) sim_entry_path("pools", n, key).text
    p->name = sim_take(&raw->name);
    p->line = line_of(t, AT("name"));
    p->phantom = sim_choice(raw->memory, false);
    if (!sim_read_number(t, AT("count"), raw->count, 1, 1, SIM_TIMED_HOSTS, &p->count) ||
        !sim_read_number(t, AT("workers"), raw->workers, 1, 1, 64, &p->workers) ||
        !sim_read_number(t, AT("blocks"), raw->blocks, 0, 1, MOST_BLOCKS, &p->blocks) ||
        !sim_read_size(t, AT("block_size"), raw->block_size, 0, 16, MOST_BLOCK_SIZE, &size) ||
        !sim_read_number(t, AT("credits"), raw->credits, 64, 1, MOST_DEPTH, &p->credits) ||
        !sim_read_size(t, AT("max_inline"), raw->max_inline, 0, 0, 65536, &max_inline) ||
        !sim_read_number(t, AT("staging"), raw->staging, 8, 1, 4096, &p->staging))
        return false;
    if (size % 8 != 0)
        return sim_complain(t, AT("block_size"), "%ju is not a multiple of 8, write one",
                            (uintmax_t)size);
    if (max_inline > size)
        return sim_complain(t, AT("max_inline"),
                            "%ju octets are more than block_size, write %ju at most",
                            (uintmax_t)max_inline, (uintmax_t)size);
#undef AT
    p->block_size = (uint32_t)size;
    p->max_inline = (uint32_t)max_inline;
    return true;
}

/* ---- instances --------------------------------------------------------------------------- */

#define AT(key) sim_entry_path("instances", n, key).text

static bool read_pool_name(const struct sim_text *t, unsigned n, const struct raw_instances *raw,
                           const struct sim_timed *s, struct sim_timed_instances *g)
{
    char names[SIM_TIMED_GROUPS * (SIM_TIMED_NAME + 2) + 1] = "";
    for (g->pool = 0; g->pool < s->pools_count; g->pool++) {
        if (strcmp(s->pools[g->pool].name, raw->pool) == 0)
            return true;
        sim_list_add(names, sizeof names, s->pools[g->pool].name);
    }
    return sim_complain(t, AT("pool"), "%s is none of the pools, write one of %s",
                        sim_quoted(raw->pool).text, names);
}

static struct sim_string below(unsigned n, const char *key, const char *inner)
{
    struct sim_string path = sim_entry_path("instances", n, key);
    sim_path_add_key(&path, inner);
    return path;
}

static bool read_mix(const struct sim_text *t, unsigned n, const struct raw_mix *raw,
                     struct sim_timed_instances *g)
{
    g->weights[SIM_MIX_LOADS] = raw == NULL;
    if (!raw)
        return true;
    if (!sim_read_number(t, below(n, "mix", "load").text, raw->load, 0, 0, 1000000,
                         &g->weights[SIM_MIX_LOADS]) ||
        !sim_read_number(t, below(n, "mix", "store").text, raw->store, 0, 0, 1000000,
                         &g->weights[SIM_MIX_STORES]) ||
        !sim_read_number(t, below(n, "mix", "alloc_free").text, raw->alloc_free, 0, 0, 1000000,
                         &g->weights[SIM_MIX_ALLOC_FREES]))
        return false;
    for (unsigned i = 0; i < SIM_MIX_DRAWS; i++)
        if (g->weights[i] != 0)
            return true;
    return sim_complain(t, AT("mix"), "has no weight above 0, write one, such as 'load: 1'");
}

static bool read_work(const struct sim_text *t, unsigned n, const struct raw_instances *raw,
                      const struct sim_timed *s, struct sim_timed_instances *g)
{
    uint32_t operations = 0;
    if (!sim_read_number(t, AT("operations"), raw->operations, 0, 1, UINT32_MAX, &operations) ||
        !sim_read_decimal(t, AT("rate"), raw->rate, 0, 1e-3, 1e9, &g->rate) ||
        !sim_read_time(t, AT("think"), raw->think, 0, 0, DAY_NS, &g->think_ns))
        return false;
    g->operations = operations;
    if (raw->stall && (!sim_read_time(t, below(n, "stall", "at").text, raw->stall->at, 0, 0, DAY_NS,
                                      &g->stall_at_ns) ||
                       !sim_read_time(t, below(n, "stall", "lasts").text, raw->stall->lasts, 0, 1,
                                      DAY_NS, &g->stall_ns)))
        return false;
    if (operations == 0 && s->duration_ns == 0)
        return sim_complain(t, AT("name"),
                            "would go on for ever, write operations here or duration at the top");
    return true;
}

static bool read_sizes(const struct sim_text *t, unsigned n, const struct raw_instances *raw,
                       const struct sim_timed *s, struct sim_timed_instances *g)
{
    const struct sim_timed_pool *pool = &s->pools[g->pool];
    uint64_t length;
    if (!sim_read_number(t, AT("depth"), raw->depth, 1, 1, MOST_DEPTH, &g->depth) ||
        !sim_read_number(t, AT("handles"), raw->handles, g->depth, 1, MOST_BLOCKS, &g->handles) ||
        !sim_read_size(t, AT("length"), raw->length, pool->block_size, 16, pool->block_size,
                       &length))
        return false;
    g->length = (uint32_t)length;
    if (g->depth > pool->credits)
        return sim_complain(t, AT("depth"), "%u is more than the pool's credits, write %u at most",
                            g->depth, pool->credits);
    bool fills = g->weights[SIM_MIX_LOADS] || g->weights[SIM_MIX_STORES];
    if (!sim_read_number(t, AT("fill"), raw->fill, fills ? g->handles : 0, 0, g->handles, &g->fill))
        return false;
    if (fills && g->fill == 0 && g->weights[SIM_MIX_ALLOC_FREES] == 0)
        return sim_complain(t, AT("fill"), "0 leaves nothing to load or store to, write 1 or more");
    if (g->direct && g->weights[SIM_MIX_STORES] != 0)
        return sim_complain(t, AT("direct"),
                            "is for blocks that are sealed, into which no store goes: remove store "
                            "from mix");
    if (g->is_inline && g->length > pool->max_inline)
        return sim_complain(t, AT("inline"),
                            "%u octets are more than the pool's max_inline, lower length or write "
                            "max_inline in the pool",
                            g->length);
    return true;
}

static bool read_instances(const struct sim_text *t, unsigned n, struct raw_instances *raw,
                           const struct sim_timed *s, struct sim_timed_instances *g)
{
    g->name = sim_take(&raw->name);
    g->line = line_of(t, AT("name"));
    g->to = (enum sim_timed_to)sim_choice(raw->to, SIM_TIMED_SHARE);
    g->is_inline = sim_choice(raw->is_inline, false);
    g->direct = sim_choice(raw->direct, false);
    return sim_read_number(t, AT("count"), raw->count, 1, 1, SIM_TIMED_HOSTS, &g->count) &&
           sim_read_number(t, AT("per_host"), raw->per_host, 1, 1, SIM_TIMED_HOSTS, &g->per_host) &&
           read_pool_name(t, n, raw, s, g) && read_mix(t, n, raw->mix, g) &&
           read_sizes(t, n, raw, s, g) && read_work(t, n, raw, s, g);
}

#undef AT

/* ---- the whole --------------------------------------------------------------------------- */

static bool read_network(const struct sim_text *t, const struct raw_network *raw,
                         struct sim_timed *s)
{
    s->oversubscription = 1;
    s->spine_latency_ns = 0;
    if (!raw)
        return true;
    uint64_t latency = 0, spine = 0;
    if (!sim_read_number(t, "network.leaf_ports", raw->leaf_ports, 0, 1, SIM_TIMED_HOSTS,
                         &s->leaf_ports) ||
        !sim_read_decimal(t, "network.oversubscription", raw->oversubscription, 1, 1, 1000,
                          &s->oversubscription) ||
        !sim_read_time(t, "network.latency", raw->latency, 0, 1, 1000000000, &latency) ||
        !sim_read_time(t, "network.spine_latency", raw->spine_latency, 0, 0, 1000000000, &spine))
        return false;
    s->latency_ns = latency;
    s->spine_latency_ns = spine;
    return s->leaf_ports != 0 || (!raw->oversubscription && !raw->spine_latency) ||
           sim_complain(
               t, raw->oversubscription ? "network.oversubscription" : "network.spine_latency",
               "is for two levels of switches, write leaf_ports too");
}

/* A group of hosts: "store", or "store0" to "store3". */
struct group {
    const char *name;
    uint64_t hosts;
};

/* Has a host of `b` the name of one of `a`, whose name b's begins with? */
static bool is_among(struct group a, struct group b)
{
    size_t length = strlen(a.name);
    const char *rest = b.name + length;
    if (a.hosts == 1 || strncmp(a.name, b.name, length) != 0 || !*rest ||
        strspn(rest, "0123456789") != strlen(rest) || strlen(rest) > 5)
        return false;
    if (rest[0] == '0')
        return b.hosts == 1 && !rest[1];
    return strtoull(rest, NULL, 10) * (b.hosts == 1 ? 1 : 10) < a.hosts;
}

static struct group group_of(const struct sim_timed *s, unsigned i)
{
    if (i < s->pools_count)
        return (struct group){s->pools[i].name, s->pools[i].count};
    const struct sim_timed_instances *g = &s->instances[i - s->pools_count];
    return (struct group){g->name, ((uint64_t)g->count + g->per_host - 1) / g->per_host};
}

static bool check_host_names(const struct sim_text *t, const struct sim_timed *s,
                             const struct sim_named *all, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        for (unsigned j = 0; j < count; j++)
            if (i != j && is_among(group_of(s, i), group_of(s, j)))
                return sim_complain(
                    t, all[j].path.text,
                    "'%s' gives a host the name of one of '%s', choose another name", all[j].name,
                    all[i].name);
    return true;
}

static bool check_group_names(const struct sim_text *t, const struct sim_timed *s)
{
    struct sim_named all[2 * SIM_TIMED_GROUPS];
    unsigned count = 0;
    for (unsigned i = 0; i < s->pools_count; i++)
        all[count++] = (struct sim_named){s->pools[i].name, sim_entry_path("pools", i, "name")};
    for (unsigned i = 0; i < s->instances_count; i++)
        all[count++] =
            (struct sim_named){s->instances[i].name, sim_entry_path("instances", i, "name")};
    return sim_check_names(t, all, count, SIM_TIMED_NAME, NULL) &&
           check_host_names(t, s, all, count);
}

/* What the sessions of a pool's targets may use; each target has some. */
static bool check_pool(const struct sim_text *t, const struct sim_timed *s, unsigned p)
{
    const struct sim_timed_pool *pool = &s->pools[p];
    uint64_t quotas = 0;
    uint32_t with_sessions = 0;
    for (unsigned i = 0; i < s->instances_count; i++) {
        const struct sim_timed_instances *g = &s->instances[i];
        bool each = g->to == SIM_TIMED_EACH;
        uint64_t here = each ? g->count : (g->count + pool->count - 1) / pool->count;
        if (g->pool != p)
            continue;
        quotas += here * g->handles;
        if (each || g->count >= pool->count)
            with_sessions = pool->count;
        else if (g->count > with_sessions)
            with_sessions = g->count;
    }
    if (with_sessions < pool->count)
        return sim_complain(t, sim_entry_path("pools", p, "name").text,
                            "%u of %u targets have an instance, add instances or lower count",
                            with_sessions, pool->count);
    if (quotas > MOST_BLOCKS)
        return sim_complain(t, sim_entry_path("pools", p, "name").text,
                            "would need %ju blocks, lower handles to have %u at most",
                            (uintmax_t)quotas, MOST_BLOCKS);
    return pool->blocks == 0 || quotas <= pool->blocks ||
           sim_complain(t, sim_entry_path("pools", p, "blocks").text,
                        "%u are less than the handles of its sessions, write %ju or more",
                        pool->blocks, (uintmax_t)quotas);
}

static bool check_pools(const struct sim_text *t, const struct sim_timed *s)
{
    for (unsigned p = 0; p < s->pools_count; p++)
        if (!check_pool(t, s, p))
            return false;
    return true;
}

static bool read_all(const struct sim_text *t, void *what, void *whole)
{
    struct raw_timed *raw = what;
    struct sim_timed *s = whole;
    uint32_t seed;
    s->title = sim_take(&raw->title);
    s->nic = sim_take(&raw->nic);
    s->binding = (uint32_t)sim_choice(raw->binding, RDMA_BINDING_INFINIBAND);
    s->pools = calloc(raw->pools_count, sizeof *s->pools);
    s->instances = calloc(raw->instances_count, sizeof *s->instances);
    if (!s->pools || !s->instances)
        return sim_complain(t, "", SIM_NO_MEMORY);
    if (!sim_read_number(t, "seed", raw->seed, 1, 0, UINT32_MAX, &seed) ||
        !sim_read_time(t, "duration", raw->duration, 0, 1, DAY_NS, &s->duration_ns) ||
        !read_network(t, raw->network, s))
        return false;
    s->seed = seed;
    for (; s->pools_count < raw->pools_count; s->pools_count++)
        if (!read_pool(t, s->pools_count, &raw->pools[s->pools_count], &s->pools[s->pools_count]))
            return s->pools_count++, false;
    for (; s->instances_count < raw->instances_count; s->instances_count++) {
        unsigned n = s->instances_count;
        if (!read_instances(t, n, &raw->instances[n], s, &s->instances[n]))
            return s->instances_count++, false;
    }
    if (!check_group_names(t, s) || !check_pools(t, s))
        return false;
    return sim_timed_hosts(s) <= SIM_TIMED_HOSTS ||
           sim_complain(t, "", "has %u hosts, have %u at most", sim_timed_hosts(s),
                        SIM_TIMED_HOSTS);
}

struct sim_timed *sim_timed_parse_set(const char *name, const char *text, size_t length,
                                      struct sim_setting *settings, unsigned count, char *error,
                                      size_t size)
{
    struct sim_text t = sim_text_of(name, text, length, &form, error, size);
    struct sim_settings all = {.all = settings, .count = count};
    struct sim_timed *timed = NULL;
    if (sim_text_fits(&t) && (count == 0 || sim_settings_apply(&t, &all))) {
        timed = calloc(1, sizeof *timed);
        if (!sim_form_read(&t, read_all, timed)) {
            sim_timed_free(timed);
            timed = NULL;
        }
    }
    sim_settings_end(&t);
    return timed;
}

struct sim_timed *sim_timed_parse(const char *name, const char *text, size_t length, char *error,
                                  size_t size)
{
    return sim_timed_parse_set(name, text, length, NULL, 0, error, size);
}

void sim_timed_free(struct sim_timed *timed)
{
    if (!timed)
        return;
    for (unsigned i = 0; i < timed->pools_count; i++)
        free(timed->pools[i].name);
    for (unsigned i = 0; i < timed->instances_count; i++)
        free(timed->instances[i].name);
    free(timed->pools);
    free(timed->instances);
    free(timed->title);
    free(timed->nic);
    free(timed);
}
