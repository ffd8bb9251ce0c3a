/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A session of an initiator over the RDMA device that reaches a target, for the programs that the
 * tests in the guest use. What fails is said in one line, and ends the program as `kbtp` would: 1
 * for what is wrong, 2 for the command line, 4 when the device or the connection fails.
 */
#ifndef KBTP_TESTS_VM_SESSION_H
#define KBTP_TESTS_VM_SESSION_H

#include <time.h>

#include "net/verbs/verbs.h"
#include "ref/initiator.h"

#define SESSION_DEPTH 8u /* requests outstanding */
#define SESSION_MAX_INLINE 512u

struct session {
    struct rdma_verbs *device;
    struct mem mem;
    struct kbtp_cpu cpu;
    struct kbtp_initiator_config config;
    struct kbtp_initiator *initiator;
    void *private_memory, *buffers;
    uint8_t *data;             /* SESSION_DEPTH places of a block each */
    struct rdma_region region; /* of them */
    size_t data_octets;
    time_t since; /* when something was new */
    bool open;
};

/* A device for `address`, which is numeric; ends the program when there is none. */
struct rdma_verbs *session_device(const char *address);

/* Opens a handle, and begins to connect as the initiator with this number. 0, or -errno. */
int session_begin(struct session *s, struct rdma_verbs *device, const char *address,
                  uint32_t identity);
/* Until it is READY; ends the program when it is DOWN. Registers the data. */
void session_open(struct session *s);
/* Closes the handle, at whatever moment. */
void session_close(struct session *s);
/* Ends the session and closes the handle; ends the program when the target has not heard. */
void session_leave(struct session *s, bool release);

/* Takes an outcome: 1, or after a while with nothing new 0. Ends the program when the connection is
 * lost, or nothing new for 20 s. */
int session_poll(struct session *s, struct kbtp_outcome *outcome);

const struct kbtp_hello_ack *session_target(const struct session *s);

/* A request about handle `n` of the own range (or of a later one), whose data is at `place`. */
struct kbtp_operation session_operation(const struct session *s, uint8_t opcode, uint32_t n,
                                        uint32_t place);
uint8_t *session_place(const struct session *s, uint32_t place);
void session_submit(struct session *s, const struct kbtp_operation *operation, uint64_t cookie);
/* Submits it, alone, and waits for its outcome. */
struct kbtp_outcome session_do(struct session *s, const struct kbtp_operation *operation);

/* ---- data: whose it is and how often anything was stored there, then octets that follow */

#define DATA_LEAST 16u

void data_fill(uint8_t *to, uint32_t length, uint64_t handle, uint32_t version);
/* Whole, and of this handle? Then `version` is what it was stored with. */
bool data_is(const uint8_t *data, uint32_t length, uint64_t handle, uint32_t *version);

/* ---- the rest */

_Noreturn void give_up(int status, const char *format, ...) __attribute__((format(printf, 2, 3)));
uint32_t number_of(const char *text, const char *what);
/* xorshift64, below `limit`. */
uint32_t pick(uint64_t *random, uint32_t limit);

#endif
