/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The memory of one message, piece by piece. A piece is naturally aligned, `tear` octets at most.
 */
#include "sim/rnic_state.h"

#define OFFERED_EACH_END 16u /* of very many pieces */

struct span {
    char *at;
    uint32_t octets;
    uint32_t offset; /* in the message */
};

static uint32_t pieces_of(uint32_t tear, uint64_t at, uint32_t octets)
{
    return octets == 0 ? 0 : (uint32_t)((at % tear + octets + tear - 1) / tear);
}

/* Octets of the message that SGE `i` holds, `offset` octets being in those before it. */
static uint32_t part_of(const struct rnic_memory *memory, uint32_t i, uint32_t offset)
{
    uint32_t rest = memory->length - offset;
    return memory->sges[i].length < rest ? memory->sges[i].length : rest;
}

uint32_t rnic_pieces(const struct sim_world *w, const struct rnic_memory *memory)
{
    uint32_t pieces = 0, offset = 0;
    for (uint32_t i = 0; i < memory->count; i++) {
        uint32_t part = part_of(memory, i, offset);
        pieces +=
            pieces_of(w->scenario->machine.tear, (uint64_t)(uintptr_t)memory->sges[i].addr, part);
        offset += part;
    }
    return pieces;
}

static struct span span_of(const struct sim_world *w, const struct rnic_memory *memory,
                           uint32_t piece)
{
    uint32_t tear = w->scenario->machine.tear, offset = 0;
    for (uint32_t i = 0;; i++) {
        uint32_t part = part_of(memory, i, offset);
        uint64_t at = (uint64_t)(uintptr_t)memory->sges[i].addr;
        uint32_t pieces = pieces_of(tear, at, part);
        if (piece >= pieces) {
            piece -= pieces;
            offset += part;
            continue;
        }
        uint32_t before = (uint32_t)(at % tear);
        uint32_t from = piece == 0 ? 0 : piece * tear - before;
        uint32_t to = (piece + 1) * tear - before;
        if (to > part)
            to = part;
        return (struct span){(char *)memory->sges[i].addr + from, to - from, offset + from};
    }
}

static bool is_private(const struct end *end, const char *at)
{
    return sim_segment_of(&end->handle->w->arena, at)->owner != 0;
}

static bool is_moved(const struct rnic_packet *packet, uint32_t piece)
{
    return (packet->moved[piece / 64] >> piece % 64 & 1) != 0;
}

/* Is this piece a step that is still to come? */
static bool awaits_step(const struct end *end, const struct rnic_packet *packet,
                        const struct rnic_memory *memory, uint32_t piece, bool private_too)
{
    return !is_moved(packet, piece) &&
           (private_too || !is_private(end, span_of(end->handle->w, memory, piece).at));
}

bool rnic_all_moved(const struct end *end, const struct rnic_packet *packet,
                    const struct rnic_memory *memory, bool private_too)
{
    const struct sim_world *w = end->handle->w;
    uint32_t pieces = rnic_pieces(w, memory);
    if (packet->moved_count == pieces || packet->done)
        return true;
    if (private_too)
        return false;
    for (uint32_t i = 0; i < pieces; i++)
        if (awaits_step(end, packet, memory, i, false))
            return false;
    return true;
}

/* ---- which may be next ------------------------------------------------------------------- */

uint32_t rnic_offer(const struct end *end, const struct rnic_packet *packet,
                    const struct rnic_memory *memory, bool private_too, struct sim_step step,
                    struct sim_step *out, uint32_t room)
{
    const struct sim_world *w = end->handle->w;
    enum sim_dma_order order = w->scenario->machine.dma_order;
    uint32_t pieces = rnic_pieces(w, memory), count = 0;
    uint32_t most = order == SIM_DMA_ANY ? OFFERED_EACH_END : 1;
    if (most > room / 2)
        most = room / 2 != 0 ? room / 2 : 1;
    uint32_t low = 0, high = pieces;
    if (packet->moved_count == pieces)
        return 0;
    step.agent = (uint8_t)end->handle->rnic->agent;
    step.queue = (uint8_t)end->index;
    if (order != SIM_DMA_DESCENDING)
        for (uint32_t taken = 0; low < pieces && taken < most; low++) {
            if (!awaits_step(end, packet, memory, low, private_too))
                continue;
            step.arg = low;
            out[count++] = step;
            taken++;
        }
    if (order != SIM_DMA_ASCENDING)
        for (uint32_t taken = 0; high > low && taken < most; high--) {
            if (!awaits_step(end, packet, memory, high - 1, private_too))
                continue;
            step.arg = high - 1;
            out[count++] = step;
            taken++;
        }
    return count;
}

/* ---- moving ------------------------------------------------------------------------------ */

static void mark_moved(struct rnic_packet *packet, uint32_t piece)
{
    packet->moved[piece / 64] |= UINT64_C(1) << piece % 64;
    packet->moved_count++;
}

static uint64_t value_at(const char *at, uint32_t octets)
{
    uint64_t value = 0;
    memcpy(&value, at, octets);
    return value;
}

static void gather_piece(const struct end *end, struct rnic_packet *packet, struct span span,
                         enum sim_access_kind kind)
{
    struct sim_world *w = end->handle->w;
    memcpy(rnic_payload(w, packet) + span.offset, span.at, span.octets);
    sim_footprint_note(w, span.at, span.octets, false);
    rnic_observe(end, (struct sim_access){.kind = kind,
                                          .at = span.at,
                                          .octets = span.octets,
                                          .value = value_at(span.at, span.octets),
                                          .op = packet->op});
}

static void place_piece(const struct end *end, struct rnic_packet *packet, struct span span)
{
    struct sim_world *w = end->handle->w;
    sim_write(w, end->handle->rnic->agent, span.at, rnic_payload(w, packet) + span.offset,
              span.octets);
    rnic_observe(end, (struct sim_access){.kind = SIM_PLACE,
                                          .at = span.at,
                                          .octets = span.octets,
                                          .value = value_at(span.at, span.octets),
                                          .op = packet->op});
}

/* Moves the wanted pieces; `kind` SIM_PLACE: into memory, else out of it. */
static bool move(const struct end *end, struct rnic_packet *packet,
                 const struct rnic_memory *memory, enum rnic_which which, uint32_t piece,
                 enum sim_access_kind kind)
{
    const struct sim_world *w = end->handle->w;
    uint32_t pieces = rnic_pieces(w, memory), moved = packet->moved_count;
    uint32_t first = which == RNIC_ONE ? piece : 0;
    uint32_t behind = which == RNIC_ONE ? piece + 1 : pieces;
    for (uint32_t i = first; i < behind && packet->moved_count < pieces; i++) {
        if (is_moved(packet, i))
            continue;
        struct span span = span_of(w, memory, i);
        if (which == RNIC_PRIVATE && !is_private(end, span.at))
            continue;
        mark_moved(packet, i);
        if (kind == SIM_PLACE)
            place_piece(end, packet, span);
        else
            gather_piece(end, packet, span, kind);
    }
    return packet->moved_count != moved;
}

bool rnic_gather(const struct end *end, struct rnic_packet *packet,
                 const struct rnic_memory *memory, enum rnic_which which, uint32_t piece,
                 enum sim_access_kind kind)
{
    return move(end, packet, memory, which, piece, kind);
}

bool rnic_place(const struct end *end, struct rnic_packet *packet, const struct rnic_memory *memory,
                enum rnic_which which, uint32_t piece)
{
    return move(end, packet, memory, which, piece, SIM_PLACE);
}

bool rnic_overlap(const struct rnic_memory *a, const struct rnic_memory *b)
{
    for (uint32_t i = 0; i < a->count; i++)
        for (uint32_t j = 0; j < b->count; j++) {
            const char *x = a->sges[i].addr, *y = b->sges[j].addr;
            if (x < y + b->sges[j].length && y < x + a->sges[i].length)
                return true;
        }
    return false;
}
