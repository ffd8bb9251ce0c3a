/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/protocol_chart_rows.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "sim/kind.h"
#include "sim/protocol_chart.h"
#include "sim/rnic.h"

/* ---- names ----------------------------------------------------------------------------- */

const char *protocol_message_name(uint32_t op)
{
    return op == RDMA_WRITE ? "RDMA Write" : op == RDMA_READ ? "RDMA Read" : sim_rdma_op_name(op);
}

const char *protocol_link_peer(const struct sim_world *w, uint32_t cpu, uint32_t conn)
{
    for (uint32_t i = 0; i < sim_rnic_links(w); i++) {
        struct sim_link_info info = sim_rnic_link(w, i);
        for (unsigned side = 0; info.exists && side < 2; side++)
            if (info.agent[side] == cpu && info.conn[side] == conn &&
                info.agent[1 - side] < w->agents_count)
                return w->agents[info.agent[1 - side]].name;
    }
    return NULL;
}

const char *protocol_peer_name(struct protocol_builder *b, uint32_t cpu, uint32_t conn)
{
    const char *name = protocol_link_peer(b->lanes.w, cpu, conn);
    const char **known = conn < MAX_CONNECTIONS ? &b->peers[cpu][conn] : &name;
    if (name)
        *known = name;
    return *known ? *known : "its peer";
}

/* ---- rows -------------------------------------------------------------------------------- */

struct chart_row *protocol_add_row(struct protocol_builder *b, uint32_t agent,
                                   enum chart_row_kind kind)
{
    struct chart_row *row = chart_add_row(b->lanes.chart);
    b->fold.row = b->fetched = NO_ROW;
    if (!row)
        return NULL;
    row->step = b->replay->steps_run + 1;
    row->agent_lane = b->lanes.agents[agent];
    row->kind = kind;
    return row;
}

static void say_times(struct chart_row *row, uint32_t times)
{
    if (times > 1)
        sim_kind_say(row->text, sizeof row->text, ", %u times", times);
}

void protocol_say(struct protocol_builder *b, uint32_t agent, enum chart_row_kind kind,
                  const char *format, ...)
{
    char words[sizeof b->fold.words];
    va_list args;
    va_start(args, format);
    vsnprintf(words, sizeof words, format, args);
    va_end(args);
    struct fold *fold = &b->fold;
    struct chart_row *row;
    if (fold->row != NO_ROW && !fold->element && fold->agent == agent &&
        strcmp(fold->words, words) == 0) {
        row = &b->lanes.chart->rows[fold->row];
    } else {
        row = protocol_add_row(b, agent, kind);
        if (!row)
            return;
        fold->row = protocol_last_row(b);
        fold->agent = agent;
        fold->element = NULL;
        fold->times = 0;
        snprintf(fold->words, sizeof fold->words, "%s", words);
    }
    snprintf(row->text, sizeof row->text, "%s", words);
    say_times(row, ++fold->times);
}

/* ---- memory ------------------------------------------------------------------------------ */

static enum chart_row_kind memory_row_kind(const struct sim_access *access)
{
    switch (access->kind) {
    case SIM_LOAD:
    case SIM_READ:
    case SIM_GATHER:
    case SIM_READ_REMOTE:
    case SIM_ATOMIC_BEGUN:
        return CHART_READ;
    case SIM_ATOMIC:
    case SIM_ATOMIC_REMOTE:
        return CHART_BOTH;
    default:
        return CHART_WRITE;
    }
}

/* "loads slot 0", "reads block 100 for RDMA Write to X", "places Read Response in block 100" */
static void say_verb(struct protocol_builder *b, const struct sim_access *access, const char *place,
                     struct chart_row *row)
{
    static const char *const verbs[] = {
        [SIM_LOAD] = "loads", [SIM_STORE] = "stores", [SIM_DRAIN] = "drains"};
    bool known = access->kind < sizeof verbs / sizeof *verbs;
    bool reads = memory_row_kind(access) == CHART_READ;
    bool answers = access->kind == SIM_READ_REMOTE || access->op == RDMA_READ;
    const char *message = answers ? "Read Response" : protocol_message_name(access->op);
    row->text[0] = '\0';
    if (access->kind == SIM_PLACE)
        sim_kind_say(row->text, sizeof row->text, "places %s in %s", message, place);
    else
        sim_kind_say(row->text, sizeof row->text, "%s %s",
                     known   ? verbs[access->kind]
                     : reads ? "reads"
                             : "writes",
                     place);
    if (access->kind == SIM_GATHER || access->kind == SIM_READ_REMOTE)
        sim_kind_say(row->text, sizeof row->text, " for %s to %s", message,
                     protocol_peer_name(b, access->cpu, access->conn));
}

static const char not_valid[] = ", not VALID";

/* What the fields hold; those of a block that all hold the same are one. */
static void say_fields(const struct protocol_builder *b, enum protocol_place place,
                       struct chart_row *row)
{
    const struct fold *fold = &b->fold;
    uint32_t octets = 0, times = 0;
    bool alike = true;
    for (uint32_t i = 0; i < fold->fields_count; i++) {
        const struct field *field = &fold->fields[i];
        alike = alike && strcmp(field->words, fold->fields[0].words) == 0;
        octets += field->octets;
        times = field->times > times ? field->times : times;
    }
    bool whole = place == PLACE_BLOCK && alike && octets == b->lanes.places[place].octets;
    bool one = whole || strstr(fold->fields[0].words, not_valid);
    for (uint32_t i = 0; i < (one ? 1 : fold->fields_count); i++) {
        const struct field *field = &fold->fields[i];
        sim_kind_say(row->text, sizeof row->text, i > 0 ? ", " : ": ");
        if (place == PLACE_BLOCK && !whole)
            sim_kind_say(row->text, sizeof row->text, "+%u ",
                         (unsigned)(field->at - fold->element));
        sim_kind_say(row->text, sizeof row->text, "%s", field->words);
    }
    say_times(row, times);
}

/* What the first word of an entry says besides VALID and its Generation. */
static const char *entry_words(const struct sim_access *access)
{
    uint16_t flags = sim_ring_entry_flags((const char *)&access->value);
    if (access->kind == SIM_LOAD && !(flags & KBTP_ENTRY_VALID))
        return not_valid; /* all else in it means nothing */
    return flags & KBTP_ENTRY_SEALED ? ", SEALED" : "";
}

static void describe_field(const struct protocol_builder *b, const struct sim_access *access,
                           enum protocol_place place, uint32_t offset, struct field *field)
{
    char where[80], value[80];
    protocol_describe_place(b->lanes.w, access, where, value, sizeof where);
    if (place == PLACE_BLOCK)
        sim_protocol_describe_octets(b->lanes.w, (const char *)&access->value, access->octets,
                                     field->words, sizeof field->words);
    else
        snprintf(field->words, sizeof field->words, "%s%.32s%s",
                 place == PLACE_SLOT && offset == 0 ? "Sequence " : "", value,
                 place == PLACE_ENTRY && offset == 0 ? entry_words(access) : "");
}

/* The row that this access belongs to, with room for its field; NULL when it needs a new one. */
static struct field *fold_field(struct fold *fold, const struct sim_access *access,
                                const char *element)
{
    if (fold->row == NO_ROW || fold->element != element || fold->kind != access->kind ||
        fold->agent != access->agent)
        return NULL;
    for (uint32_t i = 0; i < fold->fields_count; i++) {
        struct field *field = &fold->fields[i];
        if (field->at == access->at)
            return field->value == access->value && field->octets == access->octets ? field : NULL;
    }
    if (fold->fields_count == MAX_FIELDS)
        return NULL;
    struct field *added = &fold->fields[fold->fields_count++];
    added->times = 0;
    return added;
}

static struct field *begin_fold(struct protocol_builder *b, const struct sim_access *access,
                                const char *element)
{
    struct fold *fold = &b->fold;
    fold->row = protocol_last_row(b);
    fold->kind = access->kind;
    fold->agent = access->agent;
    fold->element = element;
    fold->fields_count = 1;
    fold->fields->times = 0;
    return fold->fields;
}

static void element_row(struct protocol_builder *b, const struct sim_access *access, uint32_t lane,
                        const char *element, enum protocol_place place)
{
    struct fold *fold = &b->fold;
    struct field *field = fold_field(fold, access, element);
    struct chart_row *row;
    if (!field) {
        row = protocol_add_row(b, access->agent, memory_row_kind(access));
        if (!row)
            return;
        field = begin_fold(b, access, element);
    } else {
        row = &b->lanes.chart->rows[fold->row];
    }
    if (field->times == 0) {
        *field = (struct field){.at = access->at, .value = access->value, .octets = access->octets};
        describe_field(b, access, place, (uint32_t)(field->at - element), field);
    }
    field->times++;
    row->memory_lane = lane;
    say_verb(b, access, b->lanes.chart->lanes[lane].name, row);
    say_fields(b, place, row);
    if (row->kind == CHART_WRITE)
        protocol_lanes_value(&b->lanes, lane, row->value, sizeof row->value);
}

/* Atomics say what they do; each is a row. */
static void atomic_row(struct protocol_builder *b, const struct sim_access *access, uint32_t lane)
{
    struct chart_row *row = protocol_add_row(b, access->agent, CHART_BOTH);
    if (!row)
        return;
    row->memory_lane = lane;
    protocol_describe(b->lanes.w, access, row->text, sizeof row->text);
    protocol_lanes_value(&b->lanes, lane, row->value, sizeof row->value);
}

void protocol_say_memory(struct protocol_builder *b, const struct sim_access *access)
{
    const char *element = NULL;
    enum protocol_place place;
    uint32_t lane = protocol_lanes_find(&b->lanes, access->at, &element, &place);
    const struct sim_segment *segment = sim_segment_find(&b->lanes.w->arena, access->at);
    char words[160];
    if (access->kind == SIM_STORE && access->buffered)
        return;
    if (lane != UINT32_MAX && memory_row_kind(access) == CHART_BOTH) {
        atomic_row(b, access, lane);
    } else if (lane != UINT32_MAX) {
        element_row(b, access, lane, element, place);
    } else if (!segment || segment->owner == 0) {
        protocol_describe(b->lanes.w, access, words, sizeof words);
        protocol_say(b, access->agent, CHART_LOCAL, "%s", words);
    }
}
