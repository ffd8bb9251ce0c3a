/* SPDX-License-Identifier: BSD-3-Clause */
#include "ref/sends.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

/* Half of the queue may be waiting for a completion that is yet to be asked for. */
static bool must_signal(const struct kbtp_sends *sends, const struct kbtp_outgoing *outgoing)
{
    return outgoing->last || sends->unsignaled + 1 >= sends->depth / 2;
}

static int encode(const struct kbtp_outgoing *outgoing, uint8_t *image, uint32_t image_size)
{
    if (!outgoing->record)
        return kbtp_wire_encode(outgoing->message, outgoing->addr_le, image, image_size);
    kbtp_record_encode(outgoing->record, image);
    return KBTP_RECORD_OCTETS;
}

/* The octets of the message lie where the device finds them: in the caller's `image` when they are
 * posted inline (SEND_INV is not: net/rdma.h), else in the slot of work request number `posted`. */
static int place_message(const struct kbtp_cpu *cpu, const struct kbtp_sends *sends,
                         uint32_t posted, const struct kbtp_outgoing *outgoing, uint8_t *image,
                         uint32_t image_size, struct rdma_sge *sge)
{
    int octets = encode(outgoing, image, image_size);
    if (octets < 0)
        return octets;
    uint32_t length = (uint32_t)octets + outgoing->data_length;
    if (length > sends->slot_octets)
        return -EMSGSIZE;
    *sge = (struct rdma_sge){.addr = image, .length = length, .lkey = sends->lkey};
    bool may_inline = outgoing->invalidate == 0 || !sends->no_inline_invalidate;
    if (may_inline && length <= sends->max_inline &&
        outgoing->data_length <= image_size - (uint32_t)octets) {
        if (outgoing->data_length != 0)
            memcpy(image + octets, outgoing->data, outgoing->data_length);
        return RDMA_INLINE;
    }
    uint8_t *slot = sends->slots + (size_t)(posted % sends->depth) * sends->slot_octets;
    mem_write(cpu->mem, slot, image, (size_t)octets);
    if (outgoing->data_length != 0)
        mem_write(cpu->mem, slot + octets, outgoing->data, outgoing->data_length);
    sge->addr = slot;
    return 0;
}

/* How the message goes: a record by RDMA Write with Immediate (draft: InfiniBand and RoCEv2), whose
 * immediate is the low half of the Request ID (I-28). */
static void set_operation(struct rdma_wr *wr, const struct kbtp_outgoing *outgoing)
{
    wr->op = outgoing->invalidate ? RDMA_SEND_INV : RDMA_SEND;
    wr->imm_stag = outgoing->invalidate;
    if (!outgoing->record)
        return;
    wr->op = RDMA_WRITE_IMM;
    wr->imm_stag = (uint32_t)outgoing->record->request_id;
    wr->remote_to = outgoing->slot.tagged_offset;
    wr->remote_stag = outgoing->slot.stag;
}

int kbtp_sends_post(const struct kbtp_cpu *cpu, struct kbtp_sends *sends, uint32_t conn,
                    struct rdma_wr *before, enum kbtp_wr_kind kind, uint32_t detail,
                    const struct kbtp_outgoing *outgoing)
{
    uint8_t image[512];
    struct rdma_sge sge;
    struct rdma_wr wrs[2] = {{0}};
    uint32_t count = 0, posted = sends->posted;
    bool signaled = before != NULL;
    if (before) {
        wrs[count] = *before;
        wrs[count].wr_id = kbtp_wr_id(kind, detail, ++posted);
        wrs[count++].flags |= RDMA_SIGNALED;
    }
    if (outgoing) {
        int placed = place_message(cpu, sends, posted, outgoing, image, sizeof image, &sge);
        if (placed < 0)
            return placed;
        signaled = must_signal(sends, outgoing);
        wrs[count] = (struct rdma_wr){
            .wr_id = kbtp_wr_id(outgoing->last ? KBTP_WR_LAST : KBTP_WR_MESSAGE, 0, ++posted),
            .flags = (uint16_t)(placed | (signaled ? RDMA_SIGNALED : 0)),
            .sges = &sge,
            .sge_count = 1};
        set_operation(&wrs[count++], outgoing);
    }
    assert(count <= kbtp_sends_room(sends));
    int failed = rdma_post_send(cpu->rdma, conn, wrs, count);
    if (failed)
        return failed;
    sends->posted = posted;
    sends->unsignaled = signaled ? 0 : outgoing && before ? 1 : sends->unsignaled + 1;
    return 0;
}
