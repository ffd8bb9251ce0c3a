/* SPDX-License-Identifier: BSD-3-Clause */
#include "ref/chain_load.h"

#include <errno.h>
#include <string.h>

#include "ref/table.h"
#include "ref/wire.h"

/*
 * Scratch memory of a run. In four words a verdict lies beside what is compared: it begins in the
 * first with all bits set, and each check that passes clears its bit.
 */
#define HEADER 0u /* Version, Opcode, Flags; verdict */
#define HEADER_VERDICT 4u
#define RANGE 8u /* upper six octets of the handle; verdict */
#define RANGE_VERDICT 14u
#define LENGTH 16u /* Data Length of the entry; verdict */
#define LENGTH_VERDICT 20u
#define GENERATION 24u /* the request's, the entry's; verdict */
#define ENTRY_GENERATION 26u
#define GENERATION_VERDICT 28u
#define UNUSED 32u /* what nobody needs is written here */
#define OLD 40u    /* and what atomics return */
#define ENTRY 48u  /* as it lies in the table */
/* The completion, in pieces that are gathered; Request ID and Block Handle are the request's. */
#define COMPLETION 68u
#define REQUEST_ID 72u
#define HANDLE 80u
#define STATUS 88u
#define BODY 104u /* Data Length, reserved, Block Offset */
#define ZERO 120u /* instead of the entry's Generation and BODY */
#define STAG 136u /* the request's */

/* Bits of the verdict. */
#define NOT_INVALIDATE 0x20u
#define NOT_ALLOW_UNSEALED 0x10u
#define NOT_SUCH_A_REQUEST 0x08u
#define NOT_IN_RANGE 0x04u
#define NOT_THIS_LENGTH 0x02u
#define NOT_THIS_GENERATION 0x01u
#define VERDICTS 0x40u

/* Flags with which a LOAD is answered. */
#define FLAGS (KBTP_FLAG_ALLOW_UNSEALED | KBTP_FLAG_INVALIDATE)

/* Octets of what is where. */
#define IN_SCRATCH(place, count) \
    { \
        .at = KBTP_AT_SCRATCH, .octets = (count), .offset = (place) \
    }
#define IN_FIELD(number, name, first, count) \
    { \
        .at = KBTP_AT_FIELD, .octets = (count), .wr = (number), .field = (name), .lane = (first) \
    }
#define IN_SGE(number, which, name, first, count) \
    { \
        .at = KBTP_AT_FIELD, .octets = (count), .wr = (number), .field = (name), .sge = (which), \
        .lane = (first) \
    }
#define IN_COMPARE(number, first, count) \
    { \
        .at = KBTP_AT_OPERAND, .octets = (count), .wr = (number), .field = RDMA_FIELD_COMPARE, \
        .lane = (first) \
    }

#define MOVE(what) .op = RDMA_READ, .queue = KBTP_CHAIN_LOOP, .flags = (what), .local_count
#define CHECK(word, what) \
    .op = RDMA_CAS, .queue = KBTP_CHAIN_LOOP, .flags = (what), .local_count = 1, \
    .remote = IN_SCRATCH(word, 8), .local = {IN_SCRATCH(OLD, 8)}
#define WAIT_FOR(counted, completions) \
    { \
        .op = RDMA_WAIT, .queue = KBTP_CHAIN_CTRL, .other = (counted), .number = (completions) \
    }
#define ENABLE(enabled, wrs) \
    { \
        .op = RDMA_ENABLE, .queue = KBTP_CHAIN_CTRL, .other = (enabled), .number = (wrs) \
    }

static const struct kbtp_chain_wr wrs[KBTP_LOAD_WRS] = {
    /* The low octets of the handle are those of the entry's offset in the strided view. */
    [KBTP_LOAD_HANDLE] = {MOVE(0) = 2, .remote = IN_SCRATCH(HANDLE, 8),
                          .local = {IN_SCRATCH(RANGE, 6),
                                    IN_FIELD(KBTP_LOAD_ENTRY, RDMA_FIELD_REMOTE_TO, 5, 2)}},
    [KBTP_LOAD_SINK] = {MOVE(0) = 1, .remote = IN_SCRATCH(STAG, 4),
                        .local = {IN_FIELD(KBTP_LOAD_WRITE, RDMA_FIELD_REMOTE_STAG, 0, 4)}},
    [KBTP_LOAD_TAKEN] = {MOVE(0) = 1, .remote = IN_SCRATCH(STAG, 4),
                         .local = {IN_FIELD(KBTP_LOAD_SEND, RDMA_FIELD_IMM_STAG, 0, 4)}},
    [KBTP_LOAD_EXPECTED] = {MOVE(RDMA_SIGNALED) = 1, .remote = IN_SCRATCH(GENERATION, 2),
                            .local = {IN_COMPARE(KBTP_LOAD_CHECK_GENERATION, 2, 2)}},

    [KBTP_LOAD_ENTRY] = {MOVE(0) = 1, .remote = {.at = KBTP_AT_TABLE},
                         .local = {IN_SCRATCH(ENTRY, 16)}},
    [KBTP_LOAD_SPREAD] = {MOVE(RDMA_FENCE) = 5, .remote = IN_SCRATCH(ENTRY, 16),
                          .local = {IN_SCRATCH(UNUSED, 1),
                                    IN_FIELD(KBTP_LOAD_LOOKUP, RDMA_FIELD_REMOTE_TO, 5, 1),
                                    IN_SCRATCH(ENTRY_GENERATION, 2), IN_SCRATCH(LENGTH, 4),
                                    IN_SGE(KBTP_LOAD_WRITE, 0, RDMA_FIELD_SGE_TO, 0, 8)}},
    [KBTP_LOAD_BODY] = {MOVE(0) = 2, .remote = IN_SCRATCH(ENTRY + 4, 12),
                        .local = {IN_SCRATCH(BODY, 4), IN_SCRATCH(BODY + 8, 8)}},
    [KBTP_LOAD_LENGTH] = {MOVE(0) = 1, .remote = IN_SCRATCH(ENTRY + 4, 4),
                          .local = {IN_SGE(KBTP_LOAD_WRITE, 0, RDMA_FIELD_SGE_LENGTH, 0, 4)}},
    [KBTP_LOAD_CHECK_HEADER] = {CHECK(HEADER, 0),
                                .compare = {KBTP_WIRE_VERSION, KBTP_OP_LOAD, 0, 0},
                                .mask = {0xff, 0xff, 0xff, (uint8_t)~FLAGS},
                                .clear = {[HEADER_VERDICT - HEADER] = NOT_SUCH_A_REQUEST}},
    [KBTP_LOAD_CHECK_UNSEALED] = {CHECK(HEADER, 0), .compare = {0, 0, 0, KBTP_FLAG_ALLOW_UNSEALED},
                                  .mask = {0, 0, 0, KBTP_FLAG_ALLOW_UNSEALED},
                                  .clear = {[HEADER_VERDICT - HEADER] = NOT_ALLOW_UNSEALED}},
    [KBTP_LOAD_CHECK_INVALIDATE] = {CHECK(HEADER, 0), .compare = {0, 0, 0, KBTP_FLAG_INVALIDATE},
                                    .mask = {0, 0, 0, KBTP_FLAG_INVALIDATE},
                                    .clear = {[HEADER_VERDICT - HEADER] = NOT_INVALIDATE}},
    [KBTP_LOAD_VERDICT_1] = {MOVE(RDMA_FENCE) = 1, .remote = IN_SCRATCH(HEADER_VERDICT, 1),
                             .local = {IN_SCRATCH(RANGE_VERDICT, 1)}},
    [KBTP_LOAD_CHECK_HANDLE] = {CHECK(RANGE, RDMA_FENCE),
                                .mask = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff},
                                .clear = {[RANGE_VERDICT - RANGE] = NOT_IN_RANGE}},
    [KBTP_LOAD_VERDICT_2] = {MOVE(RDMA_FENCE) = 1, .remote = IN_SCRATCH(RANGE_VERDICT, 1),
                             .local = {IN_SCRATCH(LENGTH_VERDICT, 1)}},
    /* Compared with Length, which the receive put there; before, with what no block has. */
    [KBTP_LOAD_CHECK_LENGTH] = {CHECK(LENGTH, RDMA_FENCE), .compare = {0xff, 0xff, 0xff, 0xff},
                                .mask = {0xff, 0xff, 0xff, 0xff},
                                .clear = {[LENGTH_VERDICT - LENGTH] = NOT_THIS_LENGTH}},
    [KBTP_LOAD_VERDICT_3] = {MOVE(RDMA_FENCE) = 1, .remote = IN_SCRATCH(LENGTH_VERDICT, 1),
                             .local = {IN_SCRATCH(GENERATION_VERDICT, 1)}},
    [KBTP_LOAD_CHECK_GENERATION] = {CHECK(GENERATION, RDMA_FENCE), .mask = {0, 0, 0xff, 0xff},
                                    .clear = {[GENERATION_VERDICT - GENERATION] =
                                                  NOT_THIS_GENERATION}},
    [KBTP_LOAD_CHECK_ANY] = {CHECK(GENERATION, 0), .mask = {0xff, 0xff},
                             .clear = {[GENERATION_VERDICT - GENERATION] = NOT_THIS_GENERATION}},
    [KBTP_LOAD_VERDICT_4] = {MOVE(RDMA_FENCE | RDMA_SIGNALED) = 1,
                             .remote = IN_SCRATCH(GENERATION_VERDICT, 1),
                             .local = {IN_FIELD(KBTP_LOAD_LOOKUP, RDMA_FIELD_REMOTE_TO, 6, 1)}},

    [KBTP_LOAD_LOOKUP] = {MOVE(RDMA_SIGNALED) = 5, .remote = {.at = KBTP_AT_LOOKUP},
                          .local = {IN_SCRATCH(STATUS, 2),
                                    IN_FIELD(KBTP_LOAD_WRITE, RDMA_FIELD_OP, 0, 1),
                                    IN_FIELD(KBTP_LOAD_SEND, RDMA_FIELD_OP, 0, 1),
                                    IN_SGE(KBTP_LOAD_SEND, 1, RDMA_FIELD_SGE_TO, 7, 1),
                                    IN_SGE(KBTP_LOAD_SEND, 3, RDMA_FIELD_SGE_TO, 7, 1)}},

    [KBTP_LOAD_WRITE] = {.op = RDMA_NOOP,
                         .queue = KBTP_CHAIN_CONN,
                         .local_count = 1,
                         .local = {{.at = KBTP_AT_POOL}}},
    [KBTP_LOAD_SEND] = {.op = RDMA_NOOP,
                        .queue = KBTP_CHAIN_CONN,
                        .flags = RDMA_SIGNALED,
                        .local_count = 4,
                        .local = {IN_SCRATCH(COMPLETION, 20), IN_SCRATCH(ENTRY_GENERATION, 2),
                                  IN_SCRATCH(STATUS, 2), IN_SCRATCH(BODY, 16)}},

    [KBTP_LOAD_WAIT_RECEIVE] = WAIT_FOR(KBTP_CHAIN_RECEIVES, 1),
    [KBTP_LOAD_ENABLE_1] = ENABLE(KBTP_CHAIN_LOOP, KBTP_LOAD_EXPECTED + 1),
    [KBTP_LOAD_WAIT_1] = WAIT_FOR(KBTP_CHAIN_LOOP, 1),
    [KBTP_LOAD_ENABLE_2] = ENABLE(KBTP_CHAIN_LOOP, KBTP_LOAD_VERDICT_4 + 1),
    [KBTP_LOAD_WAIT_2] = WAIT_FOR(KBTP_CHAIN_LOOP, 2),
    [KBTP_LOAD_ENABLE_3] = ENABLE(KBTP_CHAIN_LOOP, KBTP_LOAD_LOOKUP + 1),
    [KBTP_LOAD_WAIT_3] = WAIT_FOR(KBTP_CHAIN_LOOP, 3),
    [KBTP_LOAD_ENABLE_CONN] = ENABLE(KBTP_CHAIN_CONN, 2),
};

/* The octets of a LOAD (draft: Common Header, Data Descriptor). */
static const struct kbtp_chain_place receive[] = {
    IN_SCRATCH(HEADER, 4),
    IN_SCRATCH(REQUEST_ID, 16), /* and Block Handle */
    IN_SCRATCH(GENERATION, 2),
    IN_SCRATCH(UNUSED, 2), /* Status */
    IN_SCRATCH(STAG, 4),
    IN_FIELD(KBTP_LOAD_WRITE, RDMA_FIELD_REMOTE_TO, 0, 8),
    IN_COMPARE(KBTP_LOAD_CHECK_LENGTH, 0, 4),
};

static const uint8_t scratch[KBTP_CHAIN_SCRATCH] = {
    [HEADER_VERDICT] = VERDICTS - 1,
    [COMPLETION] = KBTP_WIRE_VERSION,
    [COMPLETION + 1] = KBTP_OP_COMPLETION,
};

const struct kbtp_chain_program kbtp_chain_load = {
    .wrs = wrs,
    .receive = receive,
    .scratch = scratch,
    .wrs_count = KBTP_LOAD_WRS,
    .receive_count = sizeof receive / sizeof *receive,
};

int kbtp_chain_load_for(const struct kbtp_sessions *sessions, uint32_t index, uint64_t first_handle,
                        struct kbtp_chain_wr memory[KBTP_LOAD_WRS],
                        struct kbtp_chain_program *program)
{
    if (first_handle % 65536 != 0)
        return -EINVAL;
    if (!kbtp_grant_reads_all(sessions->grants, sessions->count, index))
        return -EACCES;
    memcpy(memory, wrs, sizeof wrs);
    for (uint32_t i = 0; i < 6; i++)
        memory[KBTP_LOAD_CHECK_HANDLE].compare[i] = (uint8_t)(first_handle >> (56 - 8 * i));
    *program = kbtp_chain_load;
    program->wrs = memory;
    return 0;
}

/* ---- the look-up table ------------------------------------------------------------------- */

/* Row by Flags of the entry and verdict; what a READ of it brings. */
#define ROW_OCTETS 6u
#define ROW_OF_FLAGS(flags) ((size_t)(flags) << 16)
#define ROW_OF_VERDICT(verdict) ((size_t)(verdict) << 8)

struct answer {
    enum kbtp_status status;
    bool answered;
    bool generation; /* the entry's is told */
};

/* As the software target judges, in this order (I-31). */
static struct answer judge(uint32_t flags, uint32_t verdict)
{
    if (verdict & NOT_SUCH_A_REQUEST)
        return (struct answer){KBTP_STATUS_OK, false, false};
    if (verdict & NOT_IN_RANGE)
        return (struct answer){KBTP_STATUS_INVALID_HANDLE, true, false};
    if (verdict & NOT_THIS_GENERATION)
        return (struct answer){KBTP_STATUS_STALE_GENERATION, true, true};
    if (!(flags & KBTP_ENTRY_VALID))
        return (struct answer){KBTP_STATUS_NOT_VALID, true, true};
    if (!(flags & KBTP_ENTRY_SEALED) && (verdict & NOT_ALLOW_UNSEALED))
        return (struct answer){KBTP_STATUS_NOT_SEALED, true, true};
    return (struct answer){KBTP_STATUS_OK, (verdict & NOT_THIS_LENGTH) == 0, true};
}

static int op_octet(const struct kbtp_cpu *cpu, uint32_t op, uint8_t *octet)
{
    uint8_t octets[8] = {0};
    int count = rdma_chain_encode(cpu->rdma, RDMA_FIELD_OP, op, octets);
    *octet = octets[0];
    return count < 0 ? count : count == 1 ? 0 : -ENOTSUP;
}

/* What the device calls the operations that a row can hold. */
struct ops {
    uint8_t noop, write, send, send_inv;
};

static int ops_of(const struct kbtp_cpu *cpu, struct ops *ops)
{
    struct rdma_caps caps;
    rdma_caps(cpu->rdma, &caps);
    bool invalidates = (caps.bits & RDMA_CAP_SEND_INV) != 0;
    int failed = op_octet(cpu, RDMA_NOOP, &ops->noop);
    failed = failed ? failed : op_octet(cpu, RDMA_WRITE, &ops->write);
    failed = failed ? failed : op_octet(cpu, RDMA_SEND, &ops->send);
    return failed ? failed : op_octet(cpu, invalidates ? RDMA_SEND_INV : RDMA_SEND, &ops->send_inv);
}

static void fill_row(const struct kbtp_cpu *cpu, const struct ops *ops, uint32_t flags,
                     uint32_t verdict, char *row)
{
    struct answer answer = judge(flags, verdict);
    bool loads = answer.answered && answer.status == KBTP_STATUS_OK;
    uint8_t send = verdict & NOT_INVALIDATE ? ops->send : ops->send_inv;
    const uint8_t octets[ROW_OCTETS] = {0,
                                        (uint8_t)answer.status,
                                        loads ? ops->write : ops->noop,
                                        answer.answered ? send : ops->noop,
                                        answer.generation ? ENTRY_GENERATION : ZERO,
                                        loads ? BODY : ZERO};
    mem_write(cpu->mem, row, octets, sizeof octets);
}

int kbtp_chain_load_fill(const struct kbtp_cpu *cpu, void *lookup)
{
    struct ops ops;
    int failed = ops_of(cpu, &ops);
    if (failed)
        return failed;
    for (uint32_t flags = 0; flags <= (KBTP_ENTRY_VALID | KBTP_ENTRY_SEALED); flags++)
        for (uint32_t verdict = 0; verdict < VERDICTS; verdict++)
            fill_row(cpu, &ops, flags, verdict,
                     (char *)lookup + ROW_OF_FLAGS(flags) + ROW_OF_VERDICT(verdict));
    return 0;
}
