/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The rows of a protocol world's chart while it is built: what follows the last row may be folded
 * into it. Only sim/protocol_chart*.c look in here.
 */
#ifndef KBTP_SIM_PROTOCOL_CHART_ROWS_H
#define KBTP_SIM_PROTOCOL_CHART_ROWS_H

#include "sim/protocol_chart_lanes.h"
#include "sim/replay.h"

#define NO_ROW UINT32_MAX
#define MAX_FIELDS 16u /* that one row tells */
#define WORDS 96u

/* A part of an element of memory that the row tells of. */
struct field {
    const char *at;
    uint64_t value;
    uint32_t octets, times;
    char words[56];
};

/* The last row, as long as what follows may be folded into it. */
struct fold {
    uint32_t row;
    enum sim_access_kind kind;
    uint32_t agent;
    const char *element; /* NULL: a row without memory, `words` are what it says */
    char words[CHART_TEXT - 16];
    uint32_t times;
    uint32_t fields_count;
    struct field fields[MAX_FIELDS];
};

/* A message on its way, or one that was delivered and whose receiver has not looked yet. */
struct flight {
    uint32_t row;
    uint32_t link, from;
};
struct arrival {
    uint32_t cpu, conn;
    uint64_t wr_id;
    char words[WORDS];
    bool awaited; /* else this place is free */
};

#define MAX_CONNECTIONS 16u /* of one CPU, whose peers are remembered */
#define MAX_FLIGHTS 64u     /* the oldest are forgotten, and then draw no line to their arrival */
#define MAX_ARRIVALS 64u    /* the same; "takes a message" */

struct protocol_builder {
    struct protocol_lanes lanes;
    struct sim_replay *replay;
    struct fold fold;
    uint32_t fetched; /* a row that says no more than the message that may follow, or NO_ROW */
    const char *peers[SIM_MAX_AGENTS][MAX_CONNECTIONS];
    uint32_t flights_count, next_arrival;
    struct flight flights[MAX_FLIGHTS];
    struct arrival arrivals[MAX_ARRIVALS];
};

/* A new row of an agent, or NULL when there is no memory. */
struct chart_row *protocol_add_row(struct protocol_builder *b, uint32_t agent,
                                   enum chart_row_kind kind);
static inline uint32_t protocol_last_row(const struct protocol_builder *b)
{
    return b->lanes.chart->rows_count - 1;
}
/* A row without memory; the same words again are counted in it. */
void protocol_say(struct protocol_builder *b, uint32_t agent, enum chart_row_kind kind,
                  const char *format, ...) __attribute__((format(printf, 4, 5)));
/* An access to memory (access->at is set); none if it is private to one CPU. */
void protocol_say_memory(struct protocol_builder *b, const struct sim_access *access);

/* "RDMA Write", "FetchAdd" */
const char *protocol_message_name(uint32_t op);
/* Who is at the other end of a connection; NULL: nobody (any more). */
const char *protocol_link_peer(const struct sim_world *w, uint32_t cpu, uint32_t conn);
/* The same, or who was there last: what is left of a connection is told of by its peer's name. */
const char *protocol_peer_name(struct protocol_builder *b, uint32_t cpu, uint32_t conn);

#endif
