/* SPDX-License-Identifier: BSD-3-Clause */
/* What the commands share that run over devices of this machine (net/verbs). */
#ifndef KBTP_CLI_REAL_H
#define KBTP_CLI_REAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net/verbs/verbs.h"
#include "ref/initiator.h"

/* Zero octets in whole pages; NULL after a complaint that says what they were for. */
void *real_memory(size_t octets, const char *what);
void real_memory_end(void *area, size_t octets);

/* "HOST:PORT" to a numeric address. CLI_DONE, or what to exit with, after a complaint. */
int real_address(const char *name, char address[RDMA_VERBS_ADDRESS]);

/*
 * Connections over verbs authenticate nobody, and every HELLO holds an Initiator ID, a secret: so
 * somebody has to say that the network is trusted (R-SESS-13). False after a complaint.
 */
bool real_trusted(bool declared);

/* rdma_verbs_open(), in a process that no SIGPIPE ends: siw sends to TCP within ibv_post_send(),
 * and to a peer that is gone the kernel answers with that signal. */
int real_open(const struct rdma_verbs_config *config, struct rdma_verbs **device,
              char words[RDMA_VERBS_WORDS]);

/* Why something over this handle failed: what the device said last, or what the number means. */
const char *real_why(const struct rdma *handle, int failed);

#define REAL_TIMERS 3u /* of an initiator's handle */
/* What the commands that are initiators have alike: a target that still has a session of theirs is
 * asked again for some seconds. */
struct kbtp_initiator_config real_initiator(const char *address);
/* Their device, which is `name` or (NULL) the one that leads to `address`; `timeout`: seconds until
 * a connection is there. As real_open(). */
int real_open_initiator(const char *name, const char *address, double timeout,
                        struct rdma_verbs **device, char words[RDMA_VERBS_WORDS]);

/* What real_address() gave, which is cut to pieces, for sockets: freeaddrinfo() it. NULL: it is
 * none. */
struct addrinfo;
struct addrinfo *real_socket_address(char address[RDMA_VERBS_ADDRESS]);

/* CPU seconds of this process. */
double real_cpu(void);
/* Of a clock that only goes forward. */
uint64_t real_now_ns(void);
/* Seconds that only go forward. */
double real_now(void);
int64_t real_nanoseconds(double seconds);

#endif
