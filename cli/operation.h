/* SPDX-License-Identifier: BSD-3-Clause */
/* `kbtp load`, `store`, `alloc-store`, `free`: one request in a session of its own. */
#ifndef KBTP_CLI_OPERATION_H
#define KBTP_CLI_OPERATION_H

#include <stdbool.h>
#include <stddef.h>

#include "cli/cli.h"
#include "net/verbs/verbs.h"
#include "ref/initiator.h"

/* What was asked for. */
struct operation {
    const struct cli_command *command;
    const char *name; /* of the target, as it was typed */
    char address[RDMA_VERBS_ADDRESS];
    const char *device;
    const char *input, *output, *identity; /* paths; NULL: standard streams, an ID for once */
    char *data;                            /* to be stored */
    size_t data_octets;
    uint64_t handle; /* or, with `own`, how far it is from the first of the session's range */
    uint64_t length; /* of the buffer of LOAD; 0: Block Size */
    double timeout;  /* seconds for each: to connect, the answer, to leave */
    uint16_t flags;  /* enum kbtp_flag */
    uint16_t generation;
    uint8_t opcode;
    bool own, release, trusted, json;
    bool direct; /* LOAD, ALLOC_STORE: by this side, past the target's CPU */
    uint8_t id[KBTP_INITIATOR_ID_OCTETS];
};

/* What came of it. */
struct result {
    struct kbtp_hello_ack target;
    struct kbtp_outcome outcome;
    uint16_t refused; /* the status of HELLO_ACK when that is not OK: there was no session */
    bool left;        /* GOODBYE was heard */
    const char *data; /* that was loaded: outcome.data_length octets */
    double answer_s;  /* from the request to its outcome */
};

/* ---- operation_client.c */

struct client;
/*
 * Does it. CLI_DONE when there is an outcome, or a status of HELLO_ACK; else what to exit with,
 * after a complaint. Either way it is over with client_end().
 */
int client_run(const struct operation *operation, struct client **client, struct result *result);
void client_end(struct client *client);

/* ---- operation_words.c */

/* Says what came of it, and returns what to exit with. */
int operation_tell(const struct operation *operation, const struct result *result);
/* Why a request was not sent, given what kbtp_initiator_submit() returned. Returns as above. */
int operation_unsent(const struct operation *operation, const struct kbtp_hello_ack *target,
                     uint64_t handle, int failed);

#endif
