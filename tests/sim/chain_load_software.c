/* SPDX-License-Identifier: BSD-3-Clause */
#include "chain_load_software.h"

#include <string.h>

#include "tests/ref/fixture.h"
#include "tests/ref/peer.h"

#define ID (SOFTWARE_ASKER + 1) /* Initiator ID of the peer; initiator 0 binds the handles */

static struct peer peer;
static uint8_t data[SOFTWARE_BLOCK];

static void bind(uint32_t n, uint32_t length, uint16_t flags)
{
    for (uint32_t i = 0; i < SOFTWARE_BLOCK; i++)
        pair.initiators[0].data[i] = (uint8_t)(0x10 * (n + 1) + i);
    expect_status(run(0, KBTP_OP_ALLOC_STORE, n, length, flags), KBTP_STATUS_OK);
}

static void bind_all(void)
{
    bind(SEALED_16, 16, KBTP_FLAG_SEAL);
    bind(UNSEALED_16, 16, 0);
    bind(SEALED_64, 64, KBTP_FLAG_SEAL);
    bind(SEALED_7, 7, KBTP_FLAG_SEAL);
    bind(SEALED_0, 0, KBTP_FLAG_SEAL);
    bind(FREED, 8, KBTP_FLAG_SEAL);
    expect_status(run(0, KBTP_OP_FREE, FREED, 0, 0), KBTP_STATUS_OK);
    bind(BOUND_TWICE, 8, 0);
    expect_status(run(0, KBTP_OP_FREE, BOUND_TWICE, 0, 0), KBTP_STATUS_OK);
    bind(BOUND_TWICE, 8, KBTP_FLAG_SEAL);
}

static void move(void)
{
    for (uint32_t i = 0; i < 20; i++) {
        pair_poll(&pair);
        peer_poll(&peer);
    }
}

bool software_open(void)
{
    struct pair_config config = pair_defaults();
    config.target.first_handle = SOFTWARE_FIRST_HANDLE;
    config.target.first_offset = SOFTWARE_FIRST_OFFSET;
    config.quotas[0] = 8;
    config.quotas[1] = config.quotas[2] = 4;
    provider = &providers[1];
    open_with(&config);
    if (pair_connect(&pair, 0) != 0)
        return false;
    bind_all();
    struct kbtp_message hello = peer_hello(ID, 4), ack;
    if (peer_open(&peer, another_handle()) != 0 || peer_connect(&peer, "target") != 0)
        return false;
    move();
    if (peer_send_message(&peer, &hello) != 0)
        return false;
    move();
    return peer_take(&peer, &ack) == 0 && ack.header.opcode == KBTP_OP_HELLO_ACK;
}

void software_close(void)
{
    peer_close(&peer);
    close_pair();
}

const struct kbtp_sessions *software_sessions(void)
{
    return &pair.target.sessions;
}

void software_memory(uint8_t entries[SOFTWARE_HANDLES * KBTP_ENTRY_OCTETS],
                     uint8_t blocks[SOFTWARE_BLOCKS * SOFTWARE_BLOCK])
{
    mem_read(&pair.mem, entries, pair.memory.entries, (size_t)SOFTWARE_HANDLES * KBTP_ENTRY_OCTETS);
    mem_read(&pair.mem, blocks, pair.memory.blocks, (size_t)SOFTWARE_BLOCKS * SOFTWARE_BLOCK);
}

void software_ask(const struct kbtp_message *request, struct software_answer *answer)
{
    struct kbtp_message asked = *request, ignored;
    struct rdma_region region; /* it may be invalidated */
    CU_ASSERT_EQUAL_FATAL(
        rdma_reg(peer.rdma, data, sizeof data, RDMA_LOCAL_WRITE | RDMA_REMOTE_WRITE, 0, &region),
        0);
    asked.operands.data.stag = region.stag;
    asked.operands.data.tagged_offset = region.base_to;
    memset(data, 0xee, sizeof data);
    memset(answer, 0, sizeof *answer);
    CU_ASSERT_EQUAL_FATAL(peer_send_message(&peer, &asked), 0);
    move();
    answer->answered = peer.got_count == 1 && peer.got_octets[0] == KBTP_COMPLETION_OCTETS;
    if (answer->answered)
        memcpy(answer->completion, peer.receives[peer.got[0]], sizeof answer->completion);
    peer_take(&peer, &ignored);
    memcpy(answer->data, data, sizeof data);
    CU_ASSERT_EQUAL(rdma_dereg(peer.rdma, &region), 0);
}
