/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/ref/ends.h"

#include <stdlib.h>

#include "tests/ref/fixture.h"

static struct mem mem;
struct kbtp_cpu cpu;
struct kbtp_initiator *initiator;
static void *private_memory, *buffers;
struct peer peer;
struct kbtp_outcome outcomes[16];
uint32_t outcomes_count;

/* ---- both ends --------------------------------------------------------------------------- */

struct kbtp_initiator_config plain_config(void)
{
    struct kbtp_initiator_config config = {.address = "peer", .depth = 4, .max_inline = 32};
    for (uint8_t i = 0; i < KBTP_INITIATOR_ID_OCTETS; i++)
        config.initiator_id[i] = (uint8_t)(0xa0 + i);
    return config;
}

void open_ends(const struct kbtp_initiator_config *config)
{
    size_t private_octets, buffer_octets;
    CU_ASSERT_FATAL(provider->open());
    cpu = (struct kbtp_cpu){&mem, another_handle()};
    CU_ASSERT_EQUAL_FATAL(peer_open(&peer, another_handle()), 0);
    CU_ASSERT_EQUAL_FATAL(peer_listen(&peer, "peer"), 0);
    kbtp_initiator_memory(config, &private_octets, &buffer_octets);
    private_memory = malloc(private_octets);
    buffers = aligned_alloc(64, (buffer_octets + 63) / 64 * 64);
    CU_ASSERT_EQUAL_FATAL(kbtp_initiator_init(&initiator, &cpu, config, private_memory, buffers),
                          0);
    outcomes_count = 0;
}

void settle(void)
{
    for (uint32_t n = 0; n < 60; n++) {
        peer_poll(&peer);
        int told =
            kbtp_initiator_poll(initiator, &cpu, &outcomes[outcomes_count], 16 - outcomes_count);
        CU_ASSERT_FATAL(told >= 0);
        outcomes_count += (uint32_t)told;
    }
}

void close_ends(void)
{
    kbtp_initiator_disconnect(initiator, &cpu);
    settle();
    CU_ASSERT_EQUAL(kbtp_initiator_state(initiator), KBTP_INITIATOR_DOWN);
    CU_ASSERT_EQUAL(kbtp_initiator_outstanding(initiator), 0);
    CU_ASSERT_EQUAL(kbtp_initiator_end(initiator, &cpu), 0);
    peer_close(&peer);
    free(private_memory);
    free(buffers);
    CU_ASSERT_EQUAL(provider->left(), 0);
    provider->close();
}

struct kbtp_message good_ack(void)
{
    return (struct kbtp_message){.header = {.version = 1, .opcode = KBTP_OP_HELLO_ACK},
                                 .hello_ack = {.request_credits = 4,
                                               .block_size = 64,
                                               .max_inline = 16,
                                               .allocation_quota = 2,
                                               .handle_base = 0x4000,
                                               .handle_count = 16}};
}

struct kbtp_message completion(uint64_t request_id, uint16_t status)
{
    return (struct kbtp_message){.header = {.version = 1,
                                            .opcode = KBTP_OP_COMPLETION,
                                            .request_id = request_id,
                                            .generation = 5,
                                            .status = status},
                                 .completion = {.block_offset = 0x777, .data_length = 8}};
}

void tell(const struct kbtp_message *message)
{
    CU_ASSERT_EQUAL(peer_send_message(&peer, message), 0);
    settle();
}

struct kbtp_message heard(void)
{
    struct kbtp_message message = {0};
    CU_ASSERT_EQUAL(peer_take(&peer, &message), 0);
    return message;
}

struct kbtp_message begin(void)
{
    CU_ASSERT_EQUAL_FATAL(kbtp_initiator_connect(initiator, &cpu), 0);
    settle();
    CU_ASSERT_EQUAL(kbtp_initiator_state(initiator), KBTP_INITIATOR_CONNECTING);
    return heard();
}

void begin_with(const struct kbtp_message *ack)
{
    begin();
    tell(ack);
}

void open_ready(const struct kbtp_initiator_config *config)
{
    struct kbtp_message ack = good_ack();
    open_ends(config);
    begin_with(&ack);
    CU_ASSERT_EQUAL_FATAL(kbtp_initiator_state(initiator), KBTP_INITIATOR_READY);
}

void expect_down(int why)
{
    CU_ASSERT_EQUAL(kbtp_initiator_state(initiator), KBTP_INITIATOR_DOWN);
    CU_ASSERT_EQUAL(kbtp_initiator_why(initiator), why);
    CU_ASSERT_EQUAL(peer.state, PEER_DOWN);
}

struct kbtp_operation operation(uint8_t opcode, uint64_t handle, uint32_t length, uint16_t flags)
{
    return (struct kbtp_operation){.handle = handle,
                                   .data = "0123456789abcdef0123456789abcdef",
                                   .stag = 0x1234,
                                   .tagged_offset = 0x5678,
                                   .length = length,
                                   .flags = flags,
                                   .opcode = opcode};
}

int submit_it(uint8_t opcode, uint64_t handle, uint32_t length, uint16_t flags)
{
    struct kbtp_operation it = operation(opcode, handle, length, flags);
    return kbtp_initiator_submit(initiator, &cpu, &it, 3);
}

uint64_t load(void)
{
    CU_ASSERT_EQUAL_FATAL(submit_it(KBTP_OP_LOAD, 0x4000, 64, 0), 0);
    settle();
    return heard().header.request_id;
}
