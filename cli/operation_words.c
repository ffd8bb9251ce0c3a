/* SPDX-License-Identifier: BSD-3-Clause */
/* What came of it, in words. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/json.h"
#include "cli/operation.h"

static const char *const words[] = {
    [KBTP_STATUS_OK] = "done",
    [KBTP_STATUS_INVALID_HANDLE] = "the handle is none, or not for this identity",
    [KBTP_STATUS_STALE_GENERATION] = "the handle has another Generation than was asked for",
    [KBTP_STATUS_NOT_VALID] = "nothing is stored under the handle",
    [KBTP_STATUS_ALREADY_BOUND] = "the handle has a block; `kbtp store` replaces its content",
    [KBTP_STATUS_NO_SPACE] = "the quota of this identity is used up; free something",
    [KBTP_STATUS_SEALED] = "the content is sealed; free the handle to store something else",
    [KBTP_STATUS_NOT_SEALED] = "the content is not sealed; --allow-unsealed loads it as it is",
    [KBTP_STATUS_TOO_LARGE] = "the data is larger than the block, or than the buffer (--length)",
    [KBTP_STATUS_MALFORMED] = "the target cannot read the request",
    [KBTP_STATUS_INTERNAL] = "the target has failed, and nothing is changed",
    [KBTP_STATUS_TICKET_ABANDONED] =
        "no block came within the Ticket Timeout; the quota may be used up",
};

static const char *words_of(uint16_t status)
{
    return status < sizeof words / sizeof *words ? words[status] : "no status of the draft";
}

/* Of HELLO_ACK. */
static const char *words_of_refusal(uint16_t status)
{
    if (status == KBTP_STATUS_NO_SPACE)
        return "no session is left for an identity that the target does not know";
    if (status == KBTP_STATUS_INTERNAL)
        return "a session of this identity is in use";
    return words_of(status);
}

static const char *name_of(uint16_t status)
{
    const char *name = kbtp_status_name(status);
    return name ? name : "unknown status";
}

/* ---- the result -------------------------------------------------------------------------- */

static void tell_json(const struct operation *o, const struct result *result)
{
    const struct kbtp_outcome *outcome = &result->outcome;
    uint16_t status = result->refused ? result->refused : outcome->status;
    json_t *all = json_object();
    json_object_set_new(all, "operation", cli_json_text(kbtp_opcode_name(o->opcode)));
    json_object_set_new(all, "target", cli_json_text(o->name));
    json_object_set_new(all, "session", json_boolean(!result->refused));
    json_object_set_new(all, "status", cli_json_text(name_of(status)));
    json_object_set_new(
        all, "means", cli_json_text(result->refused ? words_of_refusal(status) : words_of(status)));
    if (!result->refused) {
        json_object_set_new(all, "handle", cli_json_hex(outcome->handle));
        json_object_set_new(all, "generation", json_integer(outcome->generation));
        json_object_set_new(all, "octets", json_integer(outcome->data_length));
        json_object_set_new(all, "first_handle", cli_json_hex(result->target.handle_base));
        json_object_set_new(all, "handles", json_integer(result->target.handle_count));
        json_object_set_new(all, "quota", json_integer(result->target.allocation_quota));
        json_object_set_new(all, "block_size", json_integer(result->target.block_size));
        json_object_set_new(all, "record", json_boolean(outcome->by_record));
        json_object_set_new(all, "answer_us", json_real(result->answer_s * 1e6));
        json_object_set_new(all, "left", json_boolean(result->left));
    }
    cli_json_print(all);
}

/* Standard output may be the data's. */
static void tell_text(const struct operation *o, const struct result *result)
{
    const struct kbtp_outcome *outcome = &result->outcome;
    FILE *out = o->opcode == KBTP_OP_LOAD && !o->output ? stderr : stdout;
    fprintf(out, "%s OK: handle 0x%" PRIx64 ", Generation %u, %" PRIu32 " octets%s\n",
            kbtp_opcode_name(o->opcode), outcome->handle, outcome->generation, outcome->data_length,
            outcome->by_record ? ", by a record" : "");
}

static int write_data(void *context, void *file)
{
    const struct result *result = context;
    size_t octets = result->outcome.data_length;
    return octets == 0 || fwrite(result->data, 1, octets, file) == octets ? 0 : -errno;
}

static bool keep_data(const struct operation *o, struct result *result)
{
    if (o->output)
        return cli_write_file(o->output, write_data, result);
    int failed = write_data(result, stdout);
    if (failed)
        cli_complain("standard output: %s", strerror(-failed));
    return !failed;
}

int operation_tell(const struct operation *o, const struct result *result)
{
    struct result data = *result;
    uint16_t status = result->refused ? result->refused : result->outcome.status;
    bool good = status == KBTP_STATUS_OK;
    if (good && o->opcode == KBTP_OP_LOAD && !keep_data(o, &data))
        return CLI_ENVIRONMENT;
    if (o->json)
        tell_json(o, result);
    else if (good)
        tell_text(o, result);
    else if (result->refused)
        cli_complain("%.60s: no session: %s: %s", o->name, name_of(status),
                     words_of_refusal(status));
    else
        cli_complain("%s of handle 0x%" PRIx64 ": %s: %s", kbtp_opcode_name(o->opcode),
                     result->outcome.handle, name_of(status), words_of(status));
    return good ? CLI_DONE : CLI_FOUND;
}

int operation_unsent(const struct operation *o, const struct kbtp_hello_ack *target,
                     uint64_t handle, int failed)
{
    uint16_t feature;
    switch (failed) {
    case -ENOTSUP:
        feature = !o->direct                  ? KBTP_FEATURE_RECORD_COMPLETION
                  : o->opcode == KBTP_OP_LOAD ? KBTP_FEATURE_DIRECT_LOAD
                                              : KBTP_FEATURE_DIRECT_ALLOC;
        cli_complain("%s: %s", o->direct ? "--direct" : "--record",
                     target->features & feature
                         ? "the target offers it, but not in a form that the device here can use"
                         : "the target does not offer that to this identity");
        return CLI_FOUND;
    case -EMSGSIZE:
        if (o->direct) {
            cli_complain("%zu octets, a block has %" PRIu32, o->data_octets, target->block_size);
            return CLI_FOUND;
        }
        cli_complain("--inline: %zu octets, the target takes %" PRIu32, o->data_octets,
                     target->max_inline);
        return CLI_BAD_INPUT;
    case -EINVAL:
        if (o->direct && o->opcode == KBTP_OP_LOAD) {
            cli_complain("handle 0x%" PRIx64 " is none of this target's", handle);
            return CLI_FOUND;
        }
        cli_complain("handle 0x%" PRIx64 " is not of this identity, which has %" PRIu32
                     " from 0x%" PRIx64 ", or +0",
                     handle, target->handle_count, target->handle_base);
        return CLI_BAD_INPUT;
    case -EDQUOT:
        cli_complain("this identity may only load: its quota is 0");
        return CLI_FOUND;
    default:
        cli_complain("%.60s: the request could not be sent: %s", o->name, strerror(-failed));
        return CLI_ENVIRONMENT;
    }
}
