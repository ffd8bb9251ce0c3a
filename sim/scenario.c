/* SPDX-License-Identifier: BSD-3-Clause */
/* The values of a scenario whose form is right (scenario_schema.h): defaults, ranges and names. */
#include "sim/scenario.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/ring_world.h"
#include "sim/scenario_schema.h"

/* libyaml's time can grow with the square of the length. */
#define TEXT_LIMIT ((size_t)1 << 20)

#define DEFAULT_BLOCK_SIZE UINT64_C(0x100004000) /* 4 GiB + 16 KiB */
#define MAX_QUOTA 1000000u

/* ---- numbers ----------------------------------------------------------------------------- */

/* Reads decimal digits, or hexadecimal ones after 0x. 010, which may mean 8, is refused. */
static bool read_digits(const char *text, uint64_t *value, const char **end)
{
    bool hexadecimal = text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
    const char *digits = hexadecimal ? text + 2 : text;
    size_t count = strspn(digits, hexadecimal ? "0123456789abcdefABCDEF" : "0123456789");
    if (count == 0 || (!hexadecimal && count > 1 && digits[0] == '0'))
        return false;
    errno = 0;
    *value = strtoull(digits, NULL, hexadecimal ? 16 : 10);
    *end = digits + count;
    return errno == 0;
}

static bool read_integer(const char *text, uint64_t *value)
{
    const char *end;
    return read_digits(text, value, &end) && *end == '\0';
}

static bool read_octets(const char *text, uint64_t *value)
{
    static const char *const suffixes[] = {"", "KiB", "MiB", "GiB", "TiB"};
    const char *end;
    if (!read_digits(text, value, &end))
        return false;
    for (unsigned i = 0; i < sizeof suffixes / sizeof *suffixes; i++)
        if (strcmp(end, suffixes[i]) == 0)
            return !__builtin_mul_overflow(*value, UINT64_C(1) << (10 * i), value);
    return false;
}

static bool read_number(const struct sim_text *text, const char *path, const char *raw,
                        uint32_t fallback, uint32_t least, uint32_t most, uint32_t *out)
{
    uint64_t value = fallback;
    if (raw != NULL && (!read_integer(raw, &value) || value < least || value > most))
        return sim_complain(text, path,
                            "%s is not a number from %u to %u, write it in decimal or as 0x...",
                            sim_quoted(raw).text, least, most);
    *out = (uint32_t)value;
    return true;
}

/* Those without a relation to others: default, smallest and largest value. */
static bool read_numbers(const struct sim_text *text, const struct sim_raw_scenario *raw,
                         struct sim_scenario *s)
{
    return read_number(text, "store_buffer", raw->store_buffer, 4, 1, 16,
                       &s->machine.store_buffer) &&
           read_number(text, "first_block", raw->first_block, 0, 0, UINT32_MAX, &s->first_block) &&
           read_number(text, "first_ticket", raw->first_ticket, 0, 0, UINT32_MAX,
                       &s->first_ticket) &&
           read_number(text, "first_generation", raw->first_generation, 1, 1, 65535,
                       &s->first_generation) &&
           read_number(text, "handles", raw->handles, 0, 0, 64, &s->handles) &&
           read_number(text, "crashes", raw->crashes, 0, 0, 8, &s->crashes);
}

static bool read_ring(const struct sim_text *text, const struct sim_raw_scenario *raw,
                      struct sim_scenario *s)
{
    if (!read_number(text, "slots", raw->slots, 0, 2, SIM_MAX_SLOTS, &s->slots) ||
        !read_number(text, "blocks", raw->blocks, 0, 1, SIM_RING_MAX_BLOCKS, &s->blocks))
        return false;
    uint32_t below = 2;
    while (below * 2 < s->slots)
        below *= 2;
    if (s->slots != below && s->slots != below * 2)
        return sim_complain(text, "slots", "%u is not a power of two, write %u or %u", s->slots,
                            below, below * 2);
    if (s->blocks > s->slots)
        return sim_complain(text, "blocks",
                            "%u blocks do not fit into %u slots, write at most %u or add slots",
                            s->blocks, s->slots, s->slots);
    return true;
}

static bool read_block_size(const struct sim_text *text, const struct sim_raw_scenario *raw,
                            struct sim_scenario *s)
{
    s->block_size = DEFAULT_BLOCK_SIZE;
    if (raw->block_size != NULL &&
        (!read_octets(raw->block_size, &s->block_size) || s->block_size == 0))
        return sim_complain(text, "block_size",
                            "%s is not a size from 1 to 2^64 - 1 octets, write a number, with KiB, "
                            "MiB, GiB or TiB if you like",
                            sim_quoted(raw->block_size).text);
    /* The Block Offset of all ones means "consumed", so that no block may reach it. */
    uint64_t end;
    uint64_t blocks = (uint64_t)s->first_block + s->blocks;
    if (__builtin_mul_overflow(blocks, s->block_size, &end) || end == UINT64_MAX)
        return sim_complain(
            text, raw->block_size != NULL ? "block_size" : "first_block",
            "%ju blocks of %ju octets reach 2^64 - 1, lower block_size or first_block",
            (uintmax_t)blocks, (uintmax_t)s->block_size);
    return true;
}

static bool read_quota(const struct sim_text *text, const struct sim_raw_scenario *raw,
                       struct sim_scenario *s)
{
    uint64_t quota = s->blocks;
    if (raw->quota != NULL && strcmp(raw->quota, "none") == 0)
        quota = 0;
    else if (raw->quota != NULL && (!read_integer(raw->quota, &quota) || quota > MAX_QUOTA))
        return sim_complain(text, "quota", "%s is not a number from 1 to %u, write one, or none",
                            sim_quoted(raw->quota).text, MAX_QUOTA);
    s->quota = (uint32_t)quota;
    return true;
}

/* ---- words ------------------------------------------------------------------------------- */

static int choice(const int *chosen, int fallback)
{
    return chosen != NULL ? *chosen : fallback;
}

static void read_choices(const struct sim_raw_scenario *raw, struct sim_scenario *s)
{
    s->kind = (enum sim_world_kind_id)raw->kind;
    s->machine.memory = (enum sim_memory)choice(raw->memory, SIM_MEMORY_TSO);
    s->machine.tear = (uint32_t)choice(raw->tear, 8);
    s->machine.dma_order = (enum sim_dma_order)choice(raw->dma_order, SIM_DMA_ANY);
    s->counters = (enum sim_counters)choice(raw->counters, SIM_COUNTERS_MASKED);
    s->free_completes =
        (enum sim_free_completes)choice(raw->free_completes, SIM_FREE_COMPLETES_DEFERRED);
    s->addr_le = choice(raw->address_le, false);
}

/* A string changes hands. */
static char *take(char **string)
{
    char *taken = *string;
    *string = NULL;
    return taken;
}

/* "allocators[1].name"; without `key` "must_reach[2]". */
static struct sim_string entry_path(const char *list, unsigned index, const char *key)
{
    struct sim_string path = {.length = 0};
    sim_path_add_key(&path, list);
    sim_path_add_entry(&path, index);
    if (key != NULL)
        sim_path_add_key(&path, key);
    return path;
}

static bool take_must_reach(const struct sim_text *text, struct sim_raw_scenario *raw,
                            struct sim_scenario *s)
{
    s->must_reach = raw->must_reach;
    s->must_reach_count = raw->must_reach_count;
    raw->must_reach = NULL;
    raw->must_reach_count = 0;
    char names[256];
    sim_ring_reach_list(names, sizeof names);
    for (unsigned i = 0; i < s->must_reach_count; i++)
        if (sim_ring_reach_index(s->must_reach[i]) < 0)
            return sim_complain(text, entry_path("must_reach", i, NULL).text,
                                "%s is not known here, write one of %s",
                                sim_quoted(s->must_reach[i]).text, names);
    return true;
}

/* ---- agents ------------------------------------------------------------------------------ */

static bool take_agents(const struct sim_text *text, struct sim_raw_scenario *raw,
                        struct sim_scenario *s)
{
    s->allocators = calloc(raw->allocators_count, sizeof *s->allocators);
    s->freers = calloc(raw->freers_count, sizeof *s->freers);
    if (s->allocators == NULL || s->freers == NULL)
        return sim_complain(text, "", SIM_NO_MEMORY);
    s->allocators_count = raw->allocators_count;
    s->freers_count = raw->freers_count;
    for (unsigned i = 0; i < s->freers_count; i++)
        s->freers[i].name = take(&raw->freers[i].name);
    for (unsigned i = 0; i < s->allocators_count; i++) {
        struct sim_raw_allocator *from = &raw->allocators[i];
        struct sim_allocator *to = &s->allocators[i];
        to->name = take(&from->name);
        to->agent = (enum sim_agent_kind)choice(from->agent, SIM_AGENT_CPU);
        if (!read_number(text, entry_path("allocators", i, "allocations").text, from->allocations,
                         0, 1, SIM_MAX_ALLOCATIONS, &to->allocations))
            return false;
    }
    return true;
}

/* Agent `index`, counted through the allocators, then the freers: its name and the path to it. */
static const char *agent_name(const struct sim_scenario *s, unsigned index, struct sim_string *path)
{
    if (index < s->allocators_count) {
        *path = entry_path("allocators", index, "name");
        return s->allocators[index].name;
    }
    index -= s->allocators_count;
    *path = entry_path("freers", index, "name");
    return s->freers[index].name;
}

static bool check_names(const struct sim_text *text, const struct sim_scenario *s)
{
    struct sim_string path, other;
    for (unsigned i = 0; i < s->allocators_count + s->freers_count; i++) {
        const char *name = agent_name(s, i, &path);
        size_t length = strlen(name);
        if (length == 0 || length > SIM_MAX_NAME || strspn(name, SIM_NAME_CHARACTERS) != length)
            return sim_complain(text, path.text,
                                "%s is not a name, write 1 to %u of A-Z a-z 0-9 _ -",
                                sim_quoted(name).text, SIM_MAX_NAME);
        if (strcmp(name, SIM_ENVIRONMENT_NAME) == 0)
            return sim_complain(text, path.text, "'%s' is the environment, choose another name",
                                name);
        for (unsigned j = 0; j < i; j++)
            if (strcmp(agent_name(s, j, &other), name) == 0)
                return sim_complain(text, path.text, "'%s' is also %s, choose another name", name,
                                    other.text);
    }
    return true;
}

/* ---- the scenario ------------------------------------------------------------------------ */

static bool build(const struct sim_text *text, struct sim_raw_scenario *raw, struct sim_scenario *s)
{
    s->title = take(&raw->title);
    read_choices(raw, s);
    return read_numbers(text, raw, s) && read_ring(text, raw, s) && read_block_size(text, raw, s) &&
           read_quota(text, raw, s) && take_agents(text, raw, s) && check_names(text, s) &&
           take_must_reach(text, raw, s);
}

static struct sim_scenario *read_scenario(struct sim_text *text)
{
    struct sim_raw_scenario *raw = sim_scenario_load(text);
    if (raw == NULL)
        return NULL;
    struct sim_scenario *s = calloc(1, sizeof *s);
    if (s == NULL) {
        sim_complain(text, "", SIM_NO_MEMORY);
    } else if (!build(text, raw, s)) {
        sim_scenario_free(s);
        s = NULL;
    }
    sim_scenario_unload(raw);
    return s;
}

struct sim_scenario *sim_scenario_parse(const char *name, const char *text, size_t length,
                                        char *error, size_t size)
{
    static const char byte_order_mark[] = "\xef\xbb\xbf";
    struct sim_text t = {.name = name,
                         .octets = length > 0 ? text : "",
                         .length = length,
                         .error = error,
                         .error_size = size};
    if (length >= 3 && memcmp(text, byte_order_mark, 3) == 0) {
        t.octets += 3;
        t.length -= 3;
    }
    if (t.length > TEXT_LIMIT) {
        sim_complain(&t, "", "is larger than 1 MiB, shorten it");
        return NULL;
    }
    return read_scenario(&t);
}

void sim_scenario_free(struct sim_scenario *scenario)
{
    if (scenario == NULL)
        return;
    for (unsigned i = 0; i < scenario->allocators_count; i++)
        free(scenario->allocators[i].name);
    for (unsigned i = 0; i < scenario->freers_count; i++)
        free(scenario->freers[i].name);
    for (unsigned i = 0; i < scenario->must_reach_count; i++)
        free(scenario->must_reach[i]);
    free(scenario->allocators);
    free(scenario->freers);
    free(scenario->must_reach);
    free(scenario->title);
    free(scenario);
}
