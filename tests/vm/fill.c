/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fresh initiators, which together may have the whole pool, allocate all they may: every block is
 * had by one of them, every one is stored and read back, and all are freed.
 *
 * Usage: vm-fill ADDRESS SESSIONS BLOCKS IDENTITY
 * BLOCKS: that they get, all together. IDENTITY: of the first.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/vm/session.h"

#define MOST_BLOCKS 4096u

static uint64_t offsets[MOST_BLOCKS];
static uint32_t had;

static void expect_ok(const struct kbtp_outcome *outcome)
{
    if (outcome->status != KBTP_STATUS_OK)
        give_up(1, "block %u: %s of handle 0x%" PRIx64 ": %s", had,
                kbtp_opcode_name(outcome->opcode), outcome->handle,
                kbtp_status_name(outcome->status));
}

static void store(struct session *s, uint32_t n)
{
    struct kbtp_operation store = session_operation(s, KBTP_OP_ALLOC_STORE, n, 0);
    data_fill(session_place(s, 0), store.length, store.handle, n);
    struct kbtp_outcome outcome = session_do(s, &store);
    expect_ok(&outcome);
    if (had == MOST_BLOCKS)
        give_up(1, "more than %u blocks", MOST_BLOCKS);
    offsets[had++] = outcome.block_offset;
}

static void load(struct session *s, uint32_t n)
{
    uint32_t version;
    struct kbtp_operation load = session_operation(s, KBTP_OP_LOAD, n, 1);
    load.flags = KBTP_FLAG_ALLOW_UNSEALED;
    struct kbtp_outcome outcome = session_do(s, &load);
    expect_ok(&outcome);
    if (!data_is(session_place(s, 1), outcome.data_length, load.handle, &version) || version != n)
        give_up(1, "handle 0x%" PRIx64 ": other octets than were stored", load.handle);
}

static void for_all(struct session *sessions, uint32_t count,
                    void (*what)(struct session *s, uint32_t n))
{
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t n = 0; n < session_target(&sessions[i])->allocation_quota; n++)
            what(&sessions[i], n);
}

static int compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static void check_blocks(uint32_t wanted)
{
    qsort(offsets, had, sizeof offsets[0], compare);
    for (uint32_t i = 1; i < had; i++)
        if (offsets[i] == offsets[i - 1])
            give_up(1, "the block at 0x%" PRIx64 " was given twice", offsets[i]);
    if (had != wanted)
        give_up(1, "%u blocks, not %u", had, wanted);
}

int main(int argc, char **argv)
{
    if (argc != 5)
        give_up(2, "usage: vm-fill ADDRESS SESSIONS BLOCKS IDENTITY");
    uint32_t count = number_of(argv[2], "SESSIONS"), identity = number_of(argv[4], "IDENTITY");
    struct session *sessions = calloc(count, sizeof *sessions);
    struct rdma_verbs *device = session_device(argv[1]);
    if (!sessions)
        give_up(4, "no memory");
    for (uint32_t i = 0; i < count; i++) {
        if (session_begin(&sessions[i], device, argv[1], identity + i) != 0)
            give_up(4, "%s", rdma_verbs_failure(sessions[i].cpu.rdma));
        session_open(&sessions[i]);
    }
    for_all(sessions, count, store);
    check_blocks(number_of(argv[3], "BLOCKS"));
    for_all(sessions, count, load);
    for (uint32_t i = 0; i < count; i++)
        session_leave(&sessions[i], true);
    rdma_verbs_close(device);
    free(sessions);
    printf("%u blocks\n", had);
    return 0;
}
