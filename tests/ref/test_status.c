/* SPDX-License-Identifier: BSD-3-Clause */
/* Every status that an operation can have: provoked by one fault, and which one wins of two. A
 * request that is refused changes nothing. */
#include <stdlib.h>
#include <string.h>

#include "tests/ref/fixture.h"

/*
 * The initiators do not check. Handles of initiator 0: 0 is bound and sealed (Generation 2, 32
 * octets), 1 is bound (2, 32 octets), the others are not (Generation 1).
 */
static void open_prepared(void)
{
    struct pair_config config = pair_defaults();
    config.unchecked = true;
    open_connected(&config);
    fill(0, 0x11);
    expect_status(run(0, KBTP_OP_ALLOC_STORE, 0, 32, KBTP_FLAG_SEAL), KBTP_STATUS_OK);
    expect_status(run(0, KBTP_OP_ALLOC_STORE, 1, 32, 0), KBTP_STATUS_OK);
    fill(0, 0x22);
}

/* ---- nothing changes --------------------------------------------------------------------- */

/* Everything that a refused request could have changed. */
struct snapshot {
    uint8_t blocks[16 * 64];
    uint8_t entries[48 * sizeof(struct kbtp_table_entry)];
    uint8_t slots[16 * sizeof(struct kbtp_slot)];
    uint8_t pins[16 * sizeof(mem64)];
    uint8_t data[PAIR_BUFFER];
    uint64_t head, tail;
    uint32_t usage;
};

static void take_snapshot(struct snapshot *s)
{
    pair_settle(&pair); /* a LOAD before has left its block */
    *s = (struct snapshot){.head = mem_load64(&pair.mem, pair.memory.head),
                           .tail = mem_load64(&pair.mem, pair.memory.tail),
                           .usage = usage_of(0)};
    mem_read(&pair.mem, s->blocks, pair.memory.blocks, sizeof s->blocks);
    mem_read(&pair.mem, s->entries, pair.memory.entries, sizeof s->entries);
    mem_read(&pair.mem, s->slots, pair.memory.slots, sizeof s->slots);
    mem_read(&pair.mem, s->pins, pair.memory.pins, sizeof s->pins);
    memcpy(s->data, pair.initiators[0].data, sizeof s->data);
}

/* R-VAL-02, -08, -09, -11, I-45. */
static void expect_refusal(const struct kbtp_operation *operation, enum kbtp_status status,
                           uint16_t generation)
{
    static struct snapshot before, after;
    take_snapshot(&before);
    expect_refused(pair_do(&pair, 0, operation), status, generation);
    take_snapshot(&after);
    CU_ASSERT_EQUAL(memcmp(&before, &after, sizeof before), 0);
    expect_status(run(0, KBTP_OP_LOAD, 0, 32, 0), KBTP_STATUS_OK);
    fill(0, 0x22);
}

/* The same for handle n of initiator 0. */
static void refused(uint8_t opcode, uint32_t n, uint32_t length, uint16_t flags,
                    uint16_t expected_generation, enum kbtp_status status, uint16_t generation)
{
    struct kbtp_operation operation = pair_operation(&pair, 0, opcode, n, length, flags);
    operation.generation = expected_generation;
    expect_refusal(&operation, status, generation);
}

/* ---- one fault --------------------------------------------------------------------------- */

/* R-ST-01, R-SEC-05: nothing is disclosed (I-45). Wrong peer: R-VAL-03, -04, R-STORE-03,
 * R-ALLOC-01, R-FREE-01. */
static void handles_out_of_range(void)
{
    static const uint8_t opcodes[] = {KBTP_OP_LOAD, KBTP_OP_STORE, KBTP_OP_ALLOC_STORE,
                                      KBTP_OP_FREE};
    const uint64_t nobodys[] = {
        0, 0x3fff, 0x4000 + 48, UINT64_MAX, UINT64_C(1) << 63, UINT64_C(0x100004000)};
    open_prepared();
    for (uint32_t i = 0; i < 4; i++) {
        struct kbtp_operation operation = pair_operation(&pair, 0, opcodes[i], 0, 16, 0);
        for (uint32_t j = 0; j < sizeof nobodys / sizeof *nobodys; j++) {
            operation.handle = nobodys[j];
            expect_refusal(&operation, KBTP_STATUS_INVALID_HANDLE, 0);
        }
        for (operation.handle = 0x4010; i != 0 && operation.handle < 0x4030; operation.handle += 31)
            expect_refusal(&operation, KBTP_STATUS_INVALID_HANDLE, 0); /* initiator 1's, 2's */
    }
    /* The last of its own range, and LOAD of another's. */
    expect_status(run(0, KBTP_OP_ALLOC_STORE, 15, 8, KBTP_FLAG_SEAL), KBTP_STATUS_OK);
    expect_status(run(1, KBTP_OP_ALLOC_STORE, 15, 8, KBTP_FLAG_SEAL), KBTP_STATUS_OK);
    expect_status(run(0, KBTP_OP_LOAD, 31, 8, 0), KBTP_STATUS_OK);
    close_pair();
}

/* R-ST-02, R-ALLOC-09, R-HDR-05. Wrong peer: R-VAL-07. */
static void stale_generations(void)
{
    static const uint16_t wrong[] = {1, 3, 0x8000};
    open_prepared();
    for (uint32_t i = 0; i < 3; i++) {
        refused(KBTP_OP_LOAD, 0, 64, 0, wrong[i], KBTP_STATUS_STALE_GENERATION, 2);
        refused(KBTP_OP_STORE, 1, 8, 0, wrong[i], KBTP_STATUS_STALE_GENERATION, 2);
        refused(KBTP_OP_STORE, 1, 8, KBTP_FLAG_INLINE, wrong[i], KBTP_STATUS_STALE_GENERATION, 2);
        refused(KBTP_OP_FREE, 1, 0, 0, wrong[i], KBTP_STATUS_STALE_GENERATION, 2);
        refused(KBTP_OP_ALLOC_STORE, 2, 8, 0, (uint16_t)(wrong[i] + 1),
                KBTP_STATUS_STALE_GENERATION, 1);
    }
    close_pair();
}

/* R-ST-03, R-STORE-01. Wrong peer: R-LOAD-02, R-FREE-01. */
static void unbound_handles(void)
{
    open_prepared();
    for (uint16_t generation = 0; generation < 2; generation++) {
        refused(KBTP_OP_LOAD, 2, 64, KBTP_FLAG_ALLOW_UNSEALED, generation, KBTP_STATUS_NOT_VALID,
                1);
        refused(KBTP_OP_STORE, 2, 8, 0, generation, KBTP_STATUS_NOT_VALID, 1);
        refused(KBTP_OP_FREE, 2, 0, 0, generation, KBTP_STATUS_NOT_VALID, 1);
    }
    expect_status(run(0, KBTP_OP_FREE, 1, 0, 0), KBTP_STATUS_OK);
    refused(KBTP_OP_FREE, 1, 0, 0, 0, KBTP_STATUS_NOT_VALID, 3);
    close_pair();
}

/* R-ST-04. Wrong peer: R-ALLOC-02. */
static void bound_handles(void)
{
    open_prepared();
    for (uint32_t n = 0; n < 2; n++) {
        refused(KBTP_OP_ALLOC_STORE, n, 8, 0, 0, KBTP_STATUS_ALREADY_BOUND, 2);
        refused(KBTP_OP_ALLOC_STORE, n, 8, KBTP_FLAG_INLINE, 2, KBTP_STATUS_ALREADY_BOUND, 2);
    }
    close_pair();
}

/* R-ST-06, -07, R-STORE-02, R-FLAG-02, R-GEN-06. Wrong peer: R-LOAD-03. */
static void sealed_and_not(void)
{
    open_prepared();
    refused(KBTP_OP_STORE, 0, 8, 0, 0, KBTP_STATUS_SEALED, 2);
    refused(KBTP_OP_STORE, 0, 8, KBTP_FLAG_INLINE | KBTP_FLAG_SEAL, 2, KBTP_STATUS_SEALED, 2);
    refused(KBTP_OP_STORE, 0, 0, 0, 0, KBTP_STATUS_SEALED, 2);
    refused(KBTP_OP_LOAD, 1, 64, 0, 0, KBTP_STATUS_NOT_SEALED, 2);
    close_pair();
}

/* R-ST-08, I-43: above Block Size, Max Inline, and the buffer. Wrong peer: R-VAL-05, -06,
 * R-LOAD-05. */
static void too_large(void)
{
    open_prepared();
    refused(KBTP_OP_STORE, 1, 65, 0, 0, KBTP_STATUS_TOO_LARGE, 2);
    refused(KBTP_OP_STORE, 1, UINT32_MAX, 0, 0, KBTP_STATUS_TOO_LARGE, 2);
    refused(KBTP_OP_ALLOC_STORE, 2, 65, 0, 0, KBTP_STATUS_TOO_LARGE, 1);
    refused(KBTP_OP_LOAD, 0, 31, 0, 0, KBTP_STATUS_TOO_LARGE, 2);
    refused(KBTP_OP_LOAD, 0, 0, 0, 0, KBTP_STATUS_TOO_LARGE, 2);
    refused(KBTP_OP_LOAD, 1, 31, KBTP_FLAG_ALLOW_UNSEALED, 0, KBTP_STATUS_TOO_LARGE, 2);
    expect_status(run(0, KBTP_OP_STORE, 1, 64, 0), KBTP_STATUS_OK);
    expect_status(run(0, KBTP_OP_STORE, 1, 32, KBTP_FLAG_INLINE), KBTP_STATUS_OK);
    expect_status(run(0, KBTP_OP_ALLOC_STORE, 2, 64, 0), KBTP_STATUS_OK);
    close_pair();
}

/* I-43: receive buffers are for Max Inline octets; a few more still come in, and are refused. */
static void too_large_inline(void)
{
    struct pair_config config = pair_defaults();
    config.unchecked = true;
    config.target.max_inline = 30; /* receive buffers are rounded up to 8 */
    open_connected(&config);
    expect_refused(run(0, KBTP_OP_ALLOC_STORE, 0, 31, KBTP_FLAG_INLINE), KBTP_STATUS_TOO_LARGE, 1);
    expect_refused(run(0, KBTP_OP_ALLOC_STORE, 0, 32, KBTP_FLAG_INLINE), KBTP_STATUS_TOO_LARGE, 1);
    expect_status(run(0, KBTP_OP_ALLOC_STORE, 0, 30, KBTP_FLAG_INLINE), KBTP_STATUS_OK);
    expect_refused(run(0, KBTP_OP_STORE, 0, 31, KBTP_FLAG_INLINE), KBTP_STATUS_TOO_LARGE, 2);
    close_pair();
}

/* R-ST-05, R-QUOTA-01, -03, -05, -16, -18, R-SEC-06: exactly at the limit, and back with each
 * FREE. Wrong peer: R-QUOTA-04. */
static void quota(void)
{
    struct pair_config config = pair_defaults();
    config.unchecked = true;
    config.quotas[2] = 0; /* only loads */
    open_connected(&config);
    for (uint32_t n = 0; n < 6; n++) {
        CU_ASSERT_EQUAL(usage_of(0), n);
        expect_status(run(0, KBTP_OP_ALLOC_STORE, n, 8, 0), KBTP_STATUS_OK);
    }
    uint64_t head = mem_load64(&pair.mem, pair.memory.head);
    expect_refused(run(0, KBTP_OP_ALLOC_STORE, 6, 8, 0), KBTP_STATUS_NO_SPACE, 1);
    CU_ASSERT_EQUAL(mem_load64(&pair.mem, pair.memory.head), head); /* I-04: no ticket was taken */
    CU_ASSERT_EQUAL(usage_of(0), 6);
    expect_status(run(0, KBTP_OP_FREE, 7, 0, 0), KBTP_STATUS_NOT_VALID); /* gives nothing back */
    expect_refused(run(0, KBTP_OP_ALLOC_STORE, 6, 8, 0), KBTP_STATUS_NO_SPACE, 1);
    expect_status(run(0, KBTP_OP_FREE, 3, 0, 0), KBTP_STATUS_OK);
    expect_status(run(0, KBTP_OP_ALLOC_STORE, 6, 8, 0), KBTP_STATUS_OK);
    expect_refused(run(0, KBTP_OP_ALLOC_STORE, 3, 8, 0), KBTP_STATUS_NO_SPACE, 3);
    expect_refused(run(2, KBTP_OP_ALLOC_STORE, 0, 8, 0), KBTP_STATUS_NO_SPACE, 1);
    expect_status(run(1, KBTP_OP_ALLOC_STORE, 0, 8, 0), KBTP_STATUS_OK); /* not its quota */
    close_pair();
}

/* R-QUOTA-08, R-OPER-02, R-POOL-01, -04, R-RING-26, -27: all quotas together are all blocks. */
static void all_blocks_can_be_had(void)
{
    struct pair_config config = pair_defaults();
    config.unchecked = true;
    open_connected(&config);
    for (uint32_t round = 0; round < 3; round++)
        expect_all_blocks();
    close_pair();
}

/* ---- two faults -------------------------------------------------------------------------- */

/* I-31, but for MALFORMED (test_malformed.c): INVALID_HANDLE, TOO_LARGE (descriptor),
 * STALE_GENERATION, NOT_VALID or ALREADY_BOUND, SEALED or NOT_SEALED, TOO_LARGE (buffer), NO_SPACE.
 */
static void the_first_of_two_faults_is_told(void)
{
    open_prepared();
    refused(KBTP_OP_STORE, 20, 65, 0, 0, KBTP_STATUS_INVALID_HANDLE, 0);
    refused(KBTP_OP_ALLOC_STORE, 20, 8, 0, 9, KBTP_STATUS_INVALID_HANDLE, 0);
    refused(KBTP_OP_FREE, 20, 0, 0, 0, KBTP_STATUS_INVALID_HANDLE, 0);
    refused(KBTP_OP_STORE, 1, 65, 0, 9, KBTP_STATUS_TOO_LARGE, 2);
    refused(KBTP_OP_STORE, 2, 65, 0, 0, KBTP_STATUS_TOO_LARGE, 1);
    refused(KBTP_OP_ALLOC_STORE, 0, 65, 0, 0, KBTP_STATUS_TOO_LARGE, 2);
    refused(KBTP_OP_STORE, 0, 65, 0, 0, KBTP_STATUS_TOO_LARGE, 2);
    refused(KBTP_OP_FREE, 2, 0, 0, 9, KBTP_STATUS_STALE_GENERATION, 1);
    refused(KBTP_OP_LOAD, 2, 8, 0, 9, KBTP_STATUS_STALE_GENERATION, 1);
    refused(KBTP_OP_ALLOC_STORE, 0, 8, 0, 9, KBTP_STATUS_STALE_GENERATION, 2);
    refused(KBTP_OP_STORE, 0, 8, 0, 9, KBTP_STATUS_STALE_GENERATION, 2);
    refused(KBTP_OP_LOAD, 1, 64, 0, 9, KBTP_STATUS_STALE_GENERATION, 2);
    refused(KBTP_OP_LOAD, 0, 8, 0, 9, KBTP_STATUS_STALE_GENERATION, 2);
    refused(KBTP_OP_LOAD, 2, 0, 0, 0, KBTP_STATUS_NOT_VALID, 1);
    refused(KBTP_OP_LOAD, 1, 0, 0, 0, KBTP_STATUS_NOT_SEALED, 2);
    for (uint32_t n = 2; n < 6; n++)
        run(0, KBTP_OP_ALLOC_STORE, n, 8, 0);
    refused(KBTP_OP_ALLOC_STORE, 20, 8, 0, 0, KBTP_STATUS_INVALID_HANDLE, 0);
    refused(KBTP_OP_ALLOC_STORE, 6, 65, 0, 0, KBTP_STATUS_TOO_LARGE, 1);
    refused(KBTP_OP_ALLOC_STORE, 6, 8, 0, 9, KBTP_STATUS_STALE_GENERATION, 1);
    refused(KBTP_OP_ALLOC_STORE, 0, 8, 0, 0, KBTP_STATUS_ALREADY_BOUND, 2);
    close_pair();
}

int main(void)
{
    static const struct test tests[] = {
        {"handles out of range", handles_out_of_range},
        {"stale generations", stale_generations},
        {"unbound handles", unbound_handles},
        {"bound handles", bound_handles},
        {"sealed and not", sealed_and_not},
        {"too large", too_large},
        {"too large inline", too_large_inline},
        {"quota", quota},
        {"all blocks can be had", all_blocks_can_be_had},
        {"the first of two faults is told", the_first_of_two_faults_is_told},
    };
    return run_over_providers("ref/status", tests, sizeof tests / sizeof *tests, PROVIDERS);
}
