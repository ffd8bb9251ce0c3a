/* SPDX-License-Identifier: BSD-3-Clause */
/* The values of a scenario of kind protocol; those of its requests: scenario_request.c. */
#include "sim/scenario.h"

#include <stdlib.h>
#include <string.h>

#include "sim/scenario_request.h"
#include "sim/scenario_value.h"

#define DEFAULT_BLOCK_OCTETS 16u

static bool read_block_size(const struct sim_text *text, const struct sim_raw_scenario *raw,
                            struct sim_scenario *s)
{
    s->block_size = DEFAULT_BLOCK_OCTETS;
    if (raw->block_size != NULL &&
        (!sim_is_size(raw->block_size, &s->block_size) || s->block_size < SIM_MIN_BLOCK_OCTETS ||
         s->block_size > SIM_MAX_BLOCK_OCTETS || s->block_size % 8 != 0))
        return sim_complain(text, "block_size",
                            "%s is not a multiple of 8 from %u to %u octets, write one: these "
                            "octets exist and are moved",
                            sim_quoted(raw->block_size).text, SIM_MIN_BLOCK_OCTETS,
                            SIM_MAX_BLOCK_OCTETS);
    return sim_check_block_range(text, raw->block_size != NULL, s);
}

/* A restarted target has a new queue pair with itself, which this simulator cannot give it. */
static bool can_restart(const struct sim_text *text, const struct sim_scenario *s)
{
    if (s->protocol.restarts == 0 || s->atomics != SIM_ATOMICS_ADAPTER)
        return true;
    return sim_complain(text, "restarts", "not with atomics: adapter, leave one of them out");
}

static bool read_numbers(const struct sim_text *text, const struct sim_raw_scenario *raw,
                         struct sim_scenario *s)
{
    struct sim_protocol_part *p = &s->protocol;
    p->connected = sim_choice(raw->connected, true);
    p->retention = (enum sim_retention)sim_choice(raw->retention_ends, SIM_RETENTION_LASTS);
    p->probes = (enum sim_probes)sim_choice(raw->probes, SIM_PROBES_NONE);
    p->ticket_timeout = sim_choice(raw->ticket_timeout, false);
    return sim_read_number(text, "handles", raw->handles, 0, 1, SIM_MAX_HANDLES, &p->handles) &&
           sim_read_number(text, "credits", raw->credits, 2, 1, SIM_MAX_CREDITS, &p->credits) &&
           sim_read_number(text, "max_inline", raw->max_inline, (uint32_t)s->block_size, 0,
                           SIM_MAX_INLINE_OCTETS, &p->max_inline) &&
           sim_read_number(text, "losses", raw->losses, 0, 0, SIM_MAX_LOSSES, &p->losses) &&
           sim_read_number(text, "stops", raw->stops, 0, 0, SIM_MAX_STOPS, &p->stops) &&
           sim_read_number(text, "silent_stops", raw->silent_stops, 0, 0, SIM_MAX_STOPS,
                           &p->silent_stops) &&
           sim_read_number(text, "restarts", raw->restarts, 0, 0, SIM_MAX_RESTARTS, &p->restarts) &&
           can_restart(text, s);
}

/* ---- agents ------------------------------------------------------------------------------ */

static bool take_names(const struct sim_text *text, struct sim_raw_scenario *raw,
                       struct sim_protocol_part *p)
{
    p->workers = calloc(raw->workers_count, sizeof *p->workers);
    p->initiators = calloc(raw->initiators_count, sizeof *p->initiators);
    if (p->workers == NULL || p->initiators == NULL)
        return sim_complain(text, "", SIM_NO_MEMORY);
    p->workers_count = raw->workers_count;
    p->initiators_count = raw->initiators_count;
    for (unsigned i = 0; i < p->workers_count; i++)
        p->workers[i].name = sim_take(&raw->workers[i].name);
    for (unsigned i = 0; i < p->initiators_count; i++)
        p->initiators[i].name = sim_take(&raw->initiators[i].name);
    return true;
}

static bool check_agent_names(const struct sim_text *text, const struct sim_protocol_part *p)
{
    struct sim_named all[SIM_MAX_WORKERS + SIM_MAX_INITIATORS];
    unsigned count = 0;
    for (unsigned i = 0; i < p->workers_count; i++)
        all[count++] = (struct sim_named){p->workers[i].name, sim_entry_path("workers", i, "name")};
    for (unsigned i = 0; i < p->initiators_count; i++)
        all[count++] =
            (struct sim_named){p->initiators[i].name, sim_entry_path("initiators", i, "name")};
    return sim_check_names(text, all, count, SIM_MAX_PEER_NAME, SIM_RNIC_SUFFIX);
}

/* ---- initiators -------------------------------------------------------------------------- */

/* Worker `name`, or SIM_NOBODY. */
static uint32_t find_worker(const struct sim_protocol_part *p, const char *name)
{
    for (uint32_t i = 0; i < p->workers_count; i++)
        if (strcmp(p->workers[i].name, name) == 0)
            return i;
    return SIM_NOBODY;
}

static bool read_connections(const struct sim_text *text, const struct sim_protocol_part *p,
                             const struct sim_raw_initiator *from, unsigned index,
                             struct sim_initiator *to)
{
    to->workers_count = from->workers_count;
    for (unsigned i = 0; i < from->workers_count; i++) {
        to->workers[i] = find_worker(p, from->workers[i]);
        if (to->workers[i] != SIM_NOBODY)
            continue;
        char names[64] = "";
        for (unsigned j = 0; j < p->workers_count; j++)
            sim_list_add(names, sizeof names, p->workers[j].name);
        struct sim_string path = sim_entry_path("initiators", index, "workers");
        sim_path_add_entry(&path, i);
        return sim_complain(text, path.text, "%s is not a worker, write one of %s",
                            sim_quoted(from->workers[i]).text, names);
    }
    return true;
}

/* An earlier initiator that has a grant of its own, or SIM_NOBODY. */
static uint32_t find_session(const struct sim_protocol_part *p, const char *name, unsigned index)
{
    for (uint32_t i = 0; i < index; i++)
        if (p->initiators[i].session == i && strcmp(p->initiators[i].name, name) == 0)
            return i;
    return SIM_NOBODY;
}

/* Whose grant it has. Those with one of their own come first. */
static bool read_session(const struct sim_text *text, struct sim_protocol_part *p,
                         const struct sim_raw_initiator *from, unsigned index,
                         struct sim_initiator *to)
{
    const struct {
        const char *key, *name;
    } keys[] = {
        {"same_id", from->same_id}, {"restart_of", from->restart_of}, {"follows", from->follows}};
    const char *key = NULL, *name = NULL;
    for (unsigned i = 0; i < 3; i++) {
        if (keys[i].name == NULL)
            continue;
        if (name != NULL)
            return sim_complain(text, sim_entry_path("initiators", index, keys[i].key).text,
                                "an initiator has one of same_id, restart_of and follows, remove "
                                "it or %s",
                                key);
        key = keys[i].key;
        name = keys[i].name;
    }
    to->session = index;
    to->stranger = from->follows != NULL;
    to->restart = from->restart_of != NULL;
    if (name == NULL) {
        p->sessions_count = index + 1;
        if (index != 0 && p->initiators[index - 1].session != index - 1)
            return sim_complain(text, sim_entry_path("initiators", index, "name").text,
                                "has a grant of its own, list it before those that have not");
        return true;
    }
    to->session = find_session(p, name, index);
    if (to->session == SIM_NOBODY)
        return sim_complain(text, sim_entry_path("initiators", index, key).text,
                            "%s is not an earlier initiator with a grant of its own, name one",
                            sim_quoted(name).text);
    if (to->quota != 0)
        return sim_complain(text, sim_entry_path("initiators", index, "quota").text,
                            "its quota is that of %s, write 0", name);
    return true;
}

static bool read_initiator(const struct sim_text *text, struct sim_scenario *s,
                           const struct sim_raw_initiator *from, unsigned index)
{
    struct sim_protocol_part *p = &s->protocol;
    struct sim_initiator *to = &p->initiators[index];
    to->gives_up = sim_choice(from->gives_up, true);
    if (!read_connections(text, p, from, index, to) ||
        !sim_read_number(text, sim_entry_path("initiators", index, "quota").text, from->quota, 0, 0,
                         SIM_MAX_BLOCKS, &to->quota) ||
        !sim_read_number(text, sim_entry_path("initiators", index, "reconnects").text,
                         from->reconnects, 0, 0, SIM_MAX_RECONNECTS, &to->reconnects) ||
        !sim_read_number(text, sim_entry_path("initiators", index, "trust_domain").text,
                         from->trust_domain, 0, 0, UINT16_MAX, &to->trust_domain) ||
        !sim_read_number(text, sim_entry_path("initiators", index, "retries").text, from->retries,
                         0, 0, SIM_MAX_RETRIES, &to->retries) ||
        !sim_read_number(text, sim_entry_path("initiators", index, "spared_until").text,
                         from->spared_until, 0, 0, from->program_count, &to->spared_until) ||
        !read_session(text, p, from, index, to) ||
        !sim_read_number(text, sim_entry_path("initiators", index, "depth").text, from->depth, 1, 1,
                         SIM_MAX_CREDITS, &to->depth))
        return false;
    to->spared = to->stranger || sim_choice(from->spared, false);
    if (to->depth > p->credits)
        return sim_complain(text, sim_entry_path("initiators", index, "depth").text,
                            "%u requests at once are more than the credits (%u), lower depth or "
                            "raise credits",
                            to->depth, p->credits);
    to->program = calloc(from->program_count, sizeof *to->program);
    if (to->program == NULL)
        return sim_complain(text, "", SIM_NO_MEMORY);
    to->program_count = from->program_count;
    return true;
}

/* A target reserves free blocks for the sum of quotas (draft: Operational Considerations). */
static bool check_quotas(const struct sim_text *text, const struct sim_scenario *s)
{
    uint32_t sum = 0;
    for (unsigned i = 0; i < s->protocol.initiators_count; i++) {
        sum += s->protocol.initiators[i].quota;
        if (sum > s->blocks)
            return sim_complain(text, sim_entry_path("initiators", i, "quota").text,
                                "the quotas up to here add up to %u and there are %u blocks, lower "
                                "one or add blocks",
                                sum, s->blocks);
    }
    return true;
}

static bool read_initiators(const struct sim_text *text, const struct sim_raw_scenario *raw,
                            struct sim_scenario *s)
{
    for (unsigned i = 0; i < raw->initiators_count; i++)
        if (!read_initiator(text, s, &raw->initiators[i], i))
            return false;
    /* Requests name other initiators' requests, so that all have to be known. */
    for (unsigned i = 0; i < raw->initiators_count; i++)
        for (unsigned j = 0; j < raw->initiators[i].program_count; j++)
            if (!sim_scenario_read_request(text, &raw->initiators[i].program[j], s, i, j))
                return false;
    return check_quotas(text, s) && sim_scenario_check_order(text, &s->protocol);
}

bool sim_scenario_read_protocol(const struct sim_text *text, struct sim_raw_scenario *raw,
                                struct sim_scenario *s)
{
    return read_block_size(text, raw, s) && read_numbers(text, raw, s) &&
           take_names(text, raw, &s->protocol) && check_agent_names(text, &s->protocol) &&
           read_initiators(text, raw, s);
}
