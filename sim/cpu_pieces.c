/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads and writes of agents of kind RNIC in worlds without connections: pieces, in any order. */
#include "sim/cpu_state.h"

#define MAX_PIECES 32u
_Static_assert(MAX_PIECES * 8 <= SIM_MAX_FILL, "SIM_MAX_FILL");

static uint32_t piece_size(const struct sim_agent *agent)
{
    return agent->world->scenario->machine.tear;
}

static uint32_t pieces_of(const struct sim_agent *agent, uint32_t octets)
{
    return (octets + piece_size(agent) - 1) / piece_size(agent);
}

/* The octets of piece `piece` of a transfer, from *first on. */
static uint32_t piece_span(const struct sim_agent *agent, uint32_t octets, uint32_t piece,
                           uint32_t *first)
{
    *first = piece * piece_size(agent);
    uint32_t rest = octets - *first;
    return rest < piece_size(agent) ? rest : piece_size(agent);
}

/* Moves the piece this step is for; true when it was the last one. */
static bool move_piece(struct sim_agent *agent, enum next_op op, char *at, char *data,
                       uint32_t octets)
{
    struct sim_world *w = agent->world;
    struct sim_cpu *cpu = agent->cpu;
    uint32_t first, count = piece_span(agent, octets, w->piece, &first);
    w->allowance = ALLOW_NONE;
    cpu->pieces |= 1u << w->piece;
    if (op == NEXT_READ) {
        memcpy(data + first, at + first, count);
        sim_footprint_note(w, at + first, count, false);
    } else {
        sim_write(w, agent->index, at + first, data + first, count);
    }
    cpu_observe(agent, (struct sim_access){.kind = op == NEXT_READ ? SIM_READ : SIM_WRITE,
                                           .at = at + first,
                                           .octets = count,
                                           .value = value_at(data + first, count)});
    uint32_t pieces = pieces_of(agent, octets);
    return cpu->pieces == (uint32_t)((UINT64_C(1) << pieces) - 1);
}

/* Stands before the transfer until all its pieces are moved; data is where they come from or go. */
static void transfer(struct sim_agent *agent, enum next_op op, const void *place, char *data,
                     uint32_t octets)
{
    struct sim_cpu *cpu = agent->cpu;
    char *at = (char *)(uintptr_t)place;
    cpu_check_transfer(agent, op, at, octets);
    if (pieces_of(agent, octets) > MAX_PIECES ||
        (op == NEXT_READ && cpu->accesses + words_of(octets) > agent->program->max_accesses)) {
        sim_violate(agent->world, "bounded-poll", "%s moves %u octets at once", agent->name,
                    octets);
        cpu_stop_before(agent, NEXT_NONE, NULL, 0);
    }
    if (agent->world->allowance != ALLOW_PIECE || !move_piece(agent, op, at, data, octets))
        cpu_stop_before(agent, op, at, octets);
    cpu->pieces = 0;
    leave_behind(agent);
}

void cpu_read_pieces(struct sim_agent *agent, void *to, const void *at, uint32_t octets)
{
    struct sim_world *w = agent->world;
    struct sim_cpu *cpu = agent->cpu;
    if (w->cursor >= cpu->accesses) {
        /* What has arrived so far lies where the results will be. */
        transfer(agent, NEXT_READ, at, (char *)&results_of(agent)[cpu->accesses], octets);
        cpu->accesses += words_of(octets);
    }
    memcpy(to, &results_of(agent)[w->cursor], octets);
    w->cursor += words_of(octets);
}

void cpu_write_pieces(struct sim_agent *agent, void *at, const void *from, uint32_t octets)
{
    uint64_t nothing = 0;
    if (repeated(agent, &nothing))
        return;
    transfer(agent, NEXT_WRITE, at, (char *)(uintptr_t)from, octets);
    cpu_log(agent, &nothing, 1);
}

uint32_t cpu_enabled_pieces(const struct sim_agent *agent, uint32_t octets, struct sim_step *out)
{
    uint32_t pieces = pieces_of(agent, octets), moved = agent->cpu->pieces, count = 0;
    enum sim_dma_order order = agent->world->scenario->machine.dma_order;
    for (uint32_t i = 0; i < pieces; i++) {
        uint32_t piece = order == SIM_DMA_DESCENDING ? pieces - 1 - i : i;
        if (moved & 1u << piece)
            continue;
        out[count++] = (struct sim_step){
            .kind = SIM_STEP_PIECE, .agent = (uint8_t)agent->index, .piece = (uint8_t)piece};
        if (order != SIM_DMA_ANY)
            break;
    }
    return count;
}
