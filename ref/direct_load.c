/* SPDX-License-Identifier: BSD-3-Clause */
/* Direct Load: the initiator reads table and pool by itself (draft: Direct Modes; I-06). */
#include <assert.h>
#include <errno.h>

#include "ref/initiator_state.h"
#include "ref/table.h"

/* I-39: what is not aligned may tear even within 8 octets. */
bool kbtp_direct_load_offer_is_good(const struct kbtp_hello_ack *ack)
{
    return ack->table.tagged_offset % KBTP_ENTRY_OCTETS == 0 && ack->table.count != 0 &&
           ack->pool.count != 0 && ack->block_size != 0;
}

static bool is_in_pool(const struct kbtp_hello_ack *ack, uint64_t block_offset)
{
    uint64_t from_first = block_offset - ack->pool.tagged_offset;
    return from_first % ack->block_size == 0 && from_first / ack->block_size < ack->pool.count;
}

/* ---- reading ----------------------------------------------------------------------------- */

static int post_read(struct kbtp_initiator *i, const struct kbtp_cpu *cpu, uint32_t place,
                     struct rdma_sge sge, uint64_t remote_to, uint32_t stag)
{
    struct rdma_wr read = {
        .op = RDMA_READ, .sges = &sge, .sge_count = 1, .remote_to = remote_to, .remote_stag = stag};
    return kbtp_sends_post(cpu, &i->sends, i->conn, &read, KBTP_WR_READ, place, NULL);
}

int kbtp_direct_begun(struct kbtp_initiator *i, const struct kbtp_cpu *cpu, uint32_t place,
                      int failed)
{
    if (failed) {
        i->pending[place] = (struct kbtp_pending){0};
        i->direct[place] = (struct kbtp_direct){0};
        kbtp_initiator_abort(i, cpu, failed);
    } else {
        i->outstanding++;
    }
    return failed;
}

int kbtp_direct_read(struct kbtp_initiator *i, const struct kbtp_cpu *cpu, uint32_t place,
                     uint64_t remote_to, uint32_t stag)
{
    _Static_assert(KBTP_ENTRY_OCTETS == KBTP_SLOT_OCTETS, "a copy of either has its place");
    struct rdma_sge sge = {.addr = i->entries + place * KBTP_ENTRY_OCTETS,
                           .length = KBTP_ENTRY_OCTETS,
                           .lkey = i->region.lkey};
    return post_read(i, cpu, place, sge, remote_to, stag);
}

static int read_entry(struct kbtp_initiator *i, const struct kbtp_cpu *cpu, uint32_t place)
{
    uint64_t index = i->pending[place].handle - i->target.table_base_handle;
    return kbtp_direct_read(i, cpu, place,
                            i->target.table.tagged_offset + index * KBTP_ENTRY_OCTETS,
                            i->target.table.stag);
}

/* The Block Offset is the Tagged Offset in the Pool STag. */
static int read_block(struct kbtp_initiator *i, const struct kbtp_cpu *cpu, uint32_t place)
{
    const struct kbtp_direct *direct = &i->direct[place];
    struct rdma_sge sge = {
        .addr = direct->into, .length = direct->data_length, .lkey = direct->lkey};
    return post_read(i, cpu, place, sge, direct->block_offset, i->target.pool.stag);
}

int kbtp_initiator_direct_load(struct kbtp_initiator *initiator, const struct kbtp_cpu *cpu,
                               const struct kbtp_direct_load *load, uint64_t cookie)
{
    struct kbtp_initiator *i = initiator;
    if (i->state != KBTP_INITIATOR_READY)
        return -ENOTCONN;
    if (!(i->features & KBTP_FEATURE_DIRECT_LOAD))
        return -ENOTSUP;
    if (load->handle - i->target.table_base_handle >= i->target.table.count)
        return -EINVAL;
    if (kbtp_initiator_credits(i) == 0)
        return -EAGAIN;
    uint32_t place = kbtp_free_place(i);
    i->pending[place] = (struct kbtp_pending){.request_id = ++i->serial << 16 | place,
                                              .cookie = cookie,
                                              .handle = load->handle,
                                              .opcode = KBTP_OP_LOAD,
                                              .length = load->length};
    i->direct[place] = (struct kbtp_direct){.into = load->into,
                                            .lkey = load->lkey,
                                            .generation = load->generation,
                                            .stage = KBTP_DIRECT_FIRST};
    return kbtp_direct_begun(i, cpu, place, read_entry(i, cpu, place));
}

/* ---- judging ----------------------------------------------------------------------------- */

/* As a target would (I-31). */
static enum kbtp_status judge_first(const struct kbtp_direct *direct,
                                    const struct kbtp_entry *entry)
{
    if (direct->generation != 0 && direct->generation != entry->generation)
        return KBTP_STATUS_STALE_GENERATION;
    if (!(entry->flags & KBTP_ENTRY_VALID))
        return KBTP_STATUS_NOT_VALID;
    return entry->flags & KBTP_ENTRY_SEALED ? KBTP_STATUS_OK : KBTP_STATUS_NOT_SEALED;
}

static bool is_same_binding(const struct kbtp_direct *direct, const struct kbtp_entry *entry)
{
    return entry->generation == direct->generation && (entry->flags & KBTP_ENTRY_VALID) &&
           (entry->flags & KBTP_ENTRY_SEALED);
}

/* Nothing is read from where it leads unless it makes sense: it may be torn. */
static enum kbtp_status judge_second(const struct kbtp_initiator *i, uint32_t place,
                                     const struct kbtp_entry *entry)
{
    if (!is_same_binding(&i->direct[place], entry) ||
        !is_in_pool(&i->target, entry->block_offset) || entry->data_length > i->target.block_size)
        return KBTP_STATUS_STALE_GENERATION;
    return KBTP_STATUS_OK;
}

static bool fits(const struct kbtp_initiator *i, uint32_t place)
{
    return i->direct[place].data_length <= i->pending[place].length;
}

/* Only now is the length known to be that of this binding. */
static enum kbtp_status judge_third(const struct kbtp_initiator *i, uint32_t place,
                                    const struct kbtp_entry *entry)
{
    const struct kbtp_direct *direct = &i->direct[place];
    bool same = is_same_binding(direct, entry) && entry->block_offset == direct->block_offset &&
                entry->data_length == direct->data_length;
    if (!same)
        return KBTP_STATUS_STALE_GENERATION;
    return fits(i, place) ? KBTP_STATUS_OK : KBTP_STATUS_TOO_LARGE;
}

/* ---- going on ---------------------------------------------------------------------------- */

/* An entry is there: what is next, or with a status that ends it, OK only in the end. */
static enum kbtp_status take_entry(struct kbtp_initiator *i, uint32_t place,
                                   const struct kbtp_entry *entry)
{
    struct kbtp_direct *direct = &i->direct[place];
    enum kbtp_status status;
    switch (direct->stage) {
    case KBTP_DIRECT_FIRST:
        status = judge_first(direct, entry);
        direct->generation = entry->generation;
        direct->stage = KBTP_DIRECT_SECOND;
        return status;
    case KBTP_DIRECT_SECOND:
        status = judge_second(i, place, entry);
        direct->block_offset = entry->block_offset;
        direct->data_length = entry->data_length;
        direct->stage =
            entry->data_length != 0 && fits(i, place) ? KBTP_DIRECT_BLOCK : KBTP_DIRECT_THIRD;
        return status;
    default:
        assert(direct->stage == KBTP_DIRECT_THIRD);
        status = judge_third(i, place, entry);
        direct->stage = KBTP_DIRECT_NONE;
        return status;
    }
}

static struct kbtp_entry entry_that_came(const struct kbtp_initiator *i, const struct kbtp_cpu *cpu,
                                         uint32_t place)
{
    uint8_t image[KBTP_ENTRY_OCTETS];
    struct kbtp_entry entry;
    mem_read(cpu->mem, image, i->entries + place * KBTP_ENTRY_OCTETS, sizeof image);
    kbtp_entry_decode(image, i->target.features & KBTP_FEATURE_ADDR_LE, &entry);
    return entry;
}

static void finish(struct kbtp_initiator *i, uint32_t place, enum kbtp_status status,
                   uint16_t generation, struct kbtp_outcome *outcome)
{
    const struct kbtp_direct *direct = &i->direct[place];
    bool well = status == KBTP_STATUS_OK;
    *outcome = (struct kbtp_outcome){.block_offset = well ? direct->block_offset : 0,
                                     .data_length = well ? direct->data_length : 0,
                                     .status = (uint16_t)status,
                                     .generation = generation};
    kbtp_settle(i, &i->pending[place], outcome);
}

bool kbtp_direct_load_read(struct kbtp_initiator *i, const struct kbtp_cpu *cpu, uint32_t place,
                           struct kbtp_outcome *outcome)
{
    struct kbtp_direct *direct = &i->direct[place];
    if (direct->stage == KBTP_DIRECT_BLOCK) {
        direct->stage = KBTP_DIRECT_THIRD;
    } else {
        struct kbtp_entry entry = entry_that_came(i, cpu, place);
        enum kbtp_status status = take_entry(i, place, &entry);
        if (status != KBTP_STATUS_OK || direct->stage == KBTP_DIRECT_NONE) {
            finish(i, place, status, entry.generation, outcome);
            return true;
        }
    }
    int failed =
        direct->stage == KBTP_DIRECT_BLOCK ? read_block(i, cpu, place) : read_entry(i, cpu, place);
    if (failed)
        kbtp_initiator_abort(i, cpu, failed);
    return false;
}
