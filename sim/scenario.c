/* SPDX-License-Identifier: BSD-3-Clause */
/* The values that scenarios of every kind have. The rest: scenario_ring.c, scenario_protocol.c. */
#include "sim/scenario.h"

#include <stdlib.h>
#include <string.h>

#include "sim/kind.h"
#include "sim/scenario_value.h"

/* ---- values ------------------------------------------------------------------------------ */

static bool read_blocks(const struct sim_text *text, const struct sim_raw_scenario *raw,
                        struct sim_scenario *s)
{
    if (!sim_read_number(text, "slots", raw->slots, 0, 2, SIM_MAX_SLOTS, &s->slots) ||
        !sim_read_number(text, "blocks", raw->blocks, 0, 1, SIM_MAX_BLOCKS, &s->blocks))
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

static bool read_numbers(const struct sim_text *text, const struct sim_raw_scenario *raw,
                         struct sim_scenario *s)
{
    return sim_read_number(text, "store_buffer", raw->store_buffer, 4, 1, 16,
                           &s->machine.store_buffer) &&
           sim_read_number(text, "first_block", raw->first_block, 0, 0, UINT32_MAX,
                           &s->first_block) &&
           sim_read_number(text, "first_ticket", raw->first_ticket, 0, 0, UINT32_MAX,
                           &s->first_ticket) &&
           sim_read_number(text, "first_generation", raw->first_generation, 1, 1, 65535,
                           &s->first_generation);
}

static void read_choices(const struct sim_raw_scenario *raw, struct sim_scenario *s)
{
    s->machine.memory = (enum sim_memory)sim_choice(raw->memory, SIM_MEMORY_TSO);
    s->machine.tear = (uint32_t)sim_choice(raw->tear, 8);
    s->machine.dma_order = (enum sim_dma_order)sim_choice(raw->dma_order, SIM_DMA_ANY);
    s->machine.ordering = (enum sim_ordering)sim_choice(raw->ordering, SIM_ORDERING_RDMAP);
    s->counters = (enum sim_counters)sim_choice(raw->counters, SIM_COUNTERS_MASKED);
    s->atomics = (enum sim_atomics)sim_choice(raw->atomics, SIM_ATOMICS_GLOBAL);
    s->addr_le = sim_choice(raw->address_le, false);
}

static bool take_must_reach(const struct sim_text *text, struct sim_raw_scenario *raw,
                            struct sim_scenario *s)
{
    s->must_reach = raw->must_reach;
    s->must_reach_count = raw->must_reach_count;
    raw->must_reach = NULL;
    raw->must_reach_count = 0;
    char names[640] = "";
    for (uint32_t i = 0; i < text->kind->reach_count; i++)
        sim_list_add(names, sizeof names, text->kind->reach_names[i]);
    for (unsigned i = 0; i < s->must_reach_count; i++)
        if (sim_kind_reach_index(text->kind, s->must_reach[i]) < 0)
            return sim_complain(text, sim_entry_path("must_reach", i, NULL).text,
                                "%s is not known here, write one of %s",
                                sim_quoted(s->must_reach[i]).text, names);
    return true;
}

/* ---- the scenario ------------------------------------------------------------------------ */

static bool build(const struct sim_text *text, void *what, void *whole)
{
    struct sim_raw_scenario *raw = what;
    struct sim_scenario *s = whole;
    s->kind = (enum sim_world_kind_id)(text->kind - sim_kinds);
    s->title = sim_take(&raw->title);
    read_choices(raw, s);
    return read_numbers(text, raw, s) && read_blocks(text, raw, s) &&
           text->kind->read(text, raw, s) && take_must_reach(text, raw, s);
}

struct sim_scenario *sim_scenario_parse(const char *name, const char *text, size_t length,
                                        char *error, size_t size)
{
    static const char byte_order_mark[] = "\xef\xbb\xbf";
    struct sim_text t = sim_text_of(name, text, length, NULL, error, size);
    if (length >= 3 && memcmp(text, byte_order_mark, 3) == 0) {
        t.octets += 3;
        t.length -= 3;
    }
    if (!sim_text_fits(&t))
        return NULL;
    struct sim_scenario *scenario = calloc(1, sizeof *scenario);
    if (sim_form_read(&t, build, scenario))
        return scenario;
    sim_scenario_free(scenario);
    return NULL;
}

static void free_ring(struct sim_ring_part *ring)
{
    for (unsigned i = 0; i < ring->allocators_count; i++)
        free(ring->allocators[i].name);
    for (unsigned i = 0; i < ring->freers_count; i++)
        free(ring->freers[i].name);
    free(ring->allocators);
    free(ring->freers);
}

static void free_protocol(struct sim_protocol_part *protocol)
{
    for (unsigned i = 0; i < protocol->workers_count; i++)
        free(protocol->workers[i].name);
    for (unsigned i = 0; i < protocol->initiators_count; i++) {
        free(protocol->initiators[i].name);
        free(protocol->initiators[i].program);
    }
    free(protocol->workers);
    free(protocol->initiators);
}

void sim_scenario_free(struct sim_scenario *scenario)
{
    if (scenario == NULL)
        return;
    free_ring(&scenario->ring);
    free_protocol(&scenario->protocol);
    for (unsigned i = 0; i < scenario->must_reach_count; i++)
        free(scenario->must_reach[i]);
    free(scenario->must_reach);
    free(scenario->title);
    free(scenario);
}
