/* SPDX-License-Identifier: BSD-3-Clause */
#include "ref/counters.h"

/* ---- the table --------------------------------------------------------------------------- */

static const uint8_t counted[256] = {
    [KBTP_OP_HELLO] = KBTP_COUNTED_HELLO,     [KBTP_OP_LOAD] = KBTP_COUNTED_LOAD,
    [KBTP_OP_STORE] = KBTP_COUNTED_STORE,     [KBTP_OP_ALLOC_STORE] = KBTP_COUNTED_ALLOC_STORE,
    [KBTP_OP_FREE] = KBTP_COUNTED_FREE,       [KBTP_OP_BIND] = KBTP_COUNTED_BIND,
    [KBTP_OP_GOODBYE] = KBTP_COUNTED_GOODBYE,
};

enum kbtp_counted_opcode kbtp_counted_opcode(uint8_t opcode)
{
    return (enum kbtp_counted_opcode)counted[opcode];
}

static const char *counted_name(uint32_t row)
{
    for (uint32_t opcode = 0; opcode < sizeof counted && row != KBTP_COUNTED_OTHER; opcode++)
        if (counted[opcode] == row)
            return kbtp_opcode_name((uint8_t)opcode);
    return "other";
}

/* Names and units as Prometheus wants them, but that its bytes are octets here. */
static const struct kbtp_metric metrics[] = {
    {.name = "kbtp_requests_total",
     .help = "Requests answered, by Opcode and Status. A GOODBYE that ended its connection is OK.",
     .labels = {"opcode", "status"},
     .source = KBTP_METRIC_REQUESTS,
     .count = KBTP_COUNTED_OPCODES * KBTP_COUNTED_STATUSES},
    {.name = "kbtp_requests_dropped_total",
     .help = "Requests received whose connection ended before they were answered.",
     .source = KBTP_METRIC_COUNTERS,
     .first = KBTP_COUNT_DROPPED,
     .count = 1},
    {.name = "kbtp_malformed_total",
     .help = "Messages received that are not well-formed, whether they could be answered or not.",
     .source = KBTP_METRIC_COUNTERS,
     .first = KBTP_COUNT_MALFORMED,
     .count = 1},
    {.name = "kbtp_loaded_octets_total",
     .help = "Octets that LOADs answered OK have written to initiators.",
     .source = KBTP_METRIC_COUNTERS,
     .first = KBTP_COUNT_LOADED,
     .count = 1},
    {.name = "kbtp_stored_octets_total",
     .help = "Octets of STOREs and ALLOC_STOREs answered OK, by the way they came.",
     .labels = {"by"},
     .values = {"inline", "read"},
     .source = KBTP_METRIC_COUNTERS,
     .first = KBTP_COUNT_STORED_INLINE,
     .count = 2},
    {.name = "kbtp_connections_accepted_total",
     .help = "Connections accepted.",
     .source = KBTP_METRIC_COUNTERS,
     .first = KBTP_COUNT_ACCEPTED,
     .count = 1},
    {.name = "kbtp_connections_rejected_total",
     .help = "Connections rejected: there were as many as may be, or the target was stopping.",
     .source = KBTP_METRIC_COUNTERS,
     .first = KBTP_COUNT_REJECTED,
     .count = 1},
    {.name = "kbtp_connections_lost_total",
     .help = "Connections that ended while they were served, without a GOODBYE.",
     .source = KBTP_METRIC_COUNTERS,
     .first = KBTP_COUNT_LOST,
     .count = 1},
    {.name = "kbtp_sessions_opened_total",
     .help = "Sessions that a HELLO has opened: new ones, and retained ones restored.",
     .labels = {"kind"},
     .values = {"new", "restored"},
     .source = KBTP_METRIC_COUNTERS,
     .first = KBTP_COUNT_OPENED,
     .count = 2},
    {.name = "kbtp_sessions_refused_total",
     .help = "HELLOs answered with an error.",
     .source = KBTP_METRIC_COUNTERS,
     .first = KBTP_COUNT_REFUSED,
     .count = 1},
    {.name = "kbtp_sessions_ended_total",
     .help = "Sessions whose connection has ended, and whose blocks were retained or released.",
     .labels = {"blocks"},
     .values = {"retained", "released"},
     .source = KBTP_METRIC_COUNTERS,
     .first = KBTP_COUNT_RETAINED,
     .count = 2},
    {.name = "kbtp_sessions_expired_total",
     .help = "Retained sessions whose retention time was over.",
     .source = KBTP_METRIC_COUNTERS,
     .first = KBTP_COUNT_EXPIRED,
     .count = 1},
    {.name = "kbtp_frees_deferred_total",
     .help = "Frees whose ring slot was not yet consumed.",
     .source = KBTP_METRIC_COUNTERS,
     .first = KBTP_COUNT_FREES_DEFERRED,
     .count = 1},
    {.name = "kbtp_frees_written_later_total",
     .help = "Deferred frees that were written to the ring since.",
     .source = KBTP_METRIC_COUNTERS,
     .first = KBTP_COUNT_FREES_WRITTEN,
     .count = 1},
    {.name = "kbtp_frees_pinned_total",
     .help = "Blocks freed while a LOAD read them; the last reader returns them to the ring.",
     .source = KBTP_METRIC_COUNTERS,
     .first = KBTP_COUNT_FREES_PINNED,
     .count = 1},
    {.name = "kbtp_reclaimed_total",
     .help = "ALLOC_STOREs dropped that had a ticket only, or a block already; both came back.",
     .labels = {"what"},
     .values = {"ticket", "block"},
     .source = KBTP_METRIC_COUNTERS,
     .first = KBTP_COUNT_RECLAIMED_TICKETS,
     .count = 2},
    {.name = "kbtp_released_blocks_total",
     .help = "Blocks freed by GOODBYE with RELEASE, or at the end of retention.",
     .source = KBTP_METRIC_COUNTERS,
     .first = KBTP_COUNT_RELEASED_BLOCKS,
     .count = 1},
    {.name = "kbtp_ring_tickets",
     .help = "Occupancy of the free-block ring, Tail - Head; below zero allocations wait.",
     .type = KBTP_METRIC_GAUGE,
     .source = KBTP_METRIC_GAUGES,
     .first = KBTP_GAUGE_RING_TICKETS,
     .count = 1},
    {.name = "kbtp_oldest_ticket",
     .help = "Tickets taken since the oldest whose block is still in its slot; above the number of "
             "slots, an allocation waits for that.",
     .type = KBTP_METRIC_GAUGE,
     .source = KBTP_METRIC_GAUGES,
     .first = KBTP_GAUGE_OLDEST_TICKET,
     .count = 1},
    {.name = "kbtp_deferred_frees",
     .help = "Frees that wait for their ring slot.",
     .type = KBTP_METRIC_GAUGE,
     .source = KBTP_METRIC_GAUGES,
     .first = KBTP_GAUGE_DEFERRED,
     .count = 1},
    {.name = "kbtp_pins",
     .help = "Pins of blocks that LOADs read.",
     .type = KBTP_METRIC_GAUGE,
     .source = KBTP_METRIC_GAUGES,
     .first = KBTP_GAUGE_PINS,
     .count = 1},
    {.name = "kbtp_connections",
     .help = "Connections in use, those included that are being drained.",
     .type = KBTP_METRIC_GAUGE,
     .source = KBTP_METRIC_GAUGES,
     .first = KBTP_GAUGE_CONNECTIONS,
     .count = 1},
    {.name = "kbtp_requests_in_progress",
     .help = "Requests received and not yet answered.",
     .type = KBTP_METRIC_GAUGE,
     .source = KBTP_METRIC_GAUGES,
     .first = KBTP_GAUGE_REQUESTS,
     .count = 1},
    {.name = "kbtp_tickets_waiting",
     .help = "Requests in progress that wait for their ring slot to be filled.",
     .type = KBTP_METRIC_GAUGE,
     .source = KBTP_METRIC_GAUGES,
     .first = KBTP_GAUGE_TICKETS,
     .count = 1},
    {.name = "kbtp_sessions",
     .help = "Sessions, by state.",
     .labels = {"state"},
     .type = KBTP_METRIC_GAUGE,
     .source = KBTP_METRIC_STATES,
     .first = KBTP_GAUGE_SESSIONS,
     .count = KBTP_GAUGES - KBTP_GAUGE_SESSIONS},
    {.name = "kbtp_session_blocks",
     .help = "Blocks bound and tickets taken that count against the quota of a session.",
     .labels = {"session"},
     .type = KBTP_METRIC_GAUGE,
     .source = KBTP_METRIC_SESSION_USAGE},
    {.name = "kbtp_session_quota_blocks",
     .help = "Allocation Quota of a session.",
     .labels = {"session"},
     .type = KBTP_METRIC_GAUGE,
     .source = KBTP_METRIC_SESSION_QUOTA},
};

const struct kbtp_metric *kbtp_metric(uint32_t n)
{
    return n < sizeof metrics / sizeof *metrics ? &metrics[n] : NULL;
}

/* ---- going through all ------------------------------------------------------------------- */

/* How many numbers of a metric are in the report. */
static uint32_t samples_of(const struct kbtp_report *report, const struct kbtp_metric *metric)
{
    if (metric->type == KBTP_METRIC_COUNTER)
        return report->counters ? metric->count : 0;
    if (!report->gauges)
        return 0;
    return metric->count != 0 ? metric->count : report->gauges->session_count;
}

static int64_t value_of(const struct kbtp_report *report, const struct kbtp_metric *metric,
                        uint32_t index)
{
    switch (metric->source) {
    case KBTP_METRIC_REQUESTS:
        return (int64_t)report->counters
            ->requests[index / KBTP_COUNTED_STATUSES][index % KBTP_COUNTED_STATUSES];
    case KBTP_METRIC_COUNTERS:
        return (int64_t)report->counters->values[metric->first + index];
    case KBTP_METRIC_SESSION_USAGE:
        return report->gauges->sessions[index].usage;
    case KBTP_METRIC_SESSION_QUOTA:
        return report->gauges->sessions[index].quota;
    default:
        return report->gauges->values[metric->first + index];
    }
}

/* In decimal, at the end of the 20 octets and a NUL that `end` points behind. */
static const char *decimal(uint64_t value, char *end)
{
    *--end = '\0';
    do
        *--end = (char)('0' + value % 10);
    while ((value /= 10) != 0);
    return end;
}

/* The value of label `n`. */
static const char *label_of(struct kbtp_sample *sample, uint32_t n)
{
    uint32_t index = sample->index;
    switch (sample->metric->source) {
    case KBTP_METRIC_REQUESTS:
        return n == 0 ? counted_name(index / KBTP_COUNTED_STATUSES)
                      : kbtp_status_name((uint16_t)(index % KBTP_COUNTED_STATUSES));
    case KBTP_METRIC_STATES:
        return kbtp_session_state_name(index);
    case KBTP_METRIC_SESSION_USAGE:
    case KBTP_METRIC_SESSION_QUOTA:
        return decimal(index, sample->text + sizeof sample->text);
    default:
        return sample->metric->values[index];
    }
}

bool kbtp_counters_next(const struct kbtp_report *report, struct kbtp_counters_iterator *iterator,
                        struct kbtp_sample *sample)
{
    const struct kbtp_metric *metric = kbtp_metric(iterator->metric);
    while (metric && iterator->index >= samples_of(report, metric)) {
        metric = kbtp_metric(++iterator->metric);
        iterator->index = 0;
    }
    if (!metric)
        return false;
    *sample = (struct kbtp_sample){.metric = metric,
                                   .index = iterator->index,
                                   .value = value_of(report, metric, iterator->index)};
    for (uint32_t n = 0; n < KBTP_METRIC_LABELS && metric->labels[n]; n++)
        sample->labels[sample->label_count++] =
            (struct kbtp_label){.name = metric->labels[n], .value = label_of(sample, n)};
    iterator->index++;
    return true;
}

/* ---- text -------------------------------------------------------------------------------- */

struct text {
    char *to;
    size_t octets;
    size_t length; /* of what there is to write, which may be more */
};

static void put_char(struct text *text, char c)
{
    if (text->length + 1 < text->octets)
        text->to[text->length] = c;
    text->length++;
}

static void put(struct text *text, const char *string)
{
    for (; *string; string++)
        put_char(text, *string);
}

/* In a help text `quote` is as good as any other character. */
static void put_escaped(struct text *text, const char *string, bool quote)
{
    for (; *string; string++) {
        if (*string == '\\' || *string == '\n' || (*string == '"' && quote))
            put_char(text, '\\');
        if (*string == '\n')
            put_char(text, 'n');
        else
            put_char(text, *string);
    }
}

static void put_value(struct text *text, const struct kbtp_sample *sample)
{
    char digits[21];
    uint64_t value = (uint64_t)sample->value;
    if (sample->metric->type != KBTP_METRIC_COUNTER && sample->value < 0) {
        put_char(text, '-');
        value = -value;
    }
    put(text, decimal(value, digits + sizeof digits));
}

static void put_head(struct text *text, const struct kbtp_metric *metric)
{
    put(text, "# HELP ");
    put(text, metric->name);
    put_char(text, ' ');
    put_escaped(text, metric->help, false);
    put(text, "\n# TYPE ");
    put(text, metric->name);
    put(text, metric->type == KBTP_METRIC_COUNTER ? " counter\n" : " gauge\n");
}

static void put_label(struct text *text, const struct kbtp_label *label, bool first)
{
    put_char(text, first ? '{' : ',');
    put(text, label->name);
    put(text, "=\"");
    put_escaped(text, label->value, true);
    put_char(text, '"');
}

static void put_sample(struct text *text, const struct kbtp_report *report,
                       const struct kbtp_sample *sample)
{
    uint32_t given = report->label_count, all = given + sample->label_count;
    put(text, sample->metric->name);
    for (uint32_t n = 0; n < all; n++)
        put_label(text, n < given ? &report->labels[n] : &sample->labels[n - given], n == 0);
    put(text, all != 0 ? "} " : " ");
    put_value(text, sample);
    put_char(text, '\n');
}

size_t kbtp_counters_text(const struct kbtp_report *report, char *text, size_t octets)
{
    struct text out = {.to = text, .octets = octets};
    struct kbtp_counters_iterator iterator = {0};
    struct kbtp_sample sample;
    while (kbtp_counters_next(report, &iterator, &sample)) {
        if (sample.index == 0)
            put_head(&out, sample.metric);
        put_sample(&out, report, &sample);
    }
    if (octets != 0)
        text[out.length < octets ? out.length : octets - 1] = '\0';
    return out.length;
}
