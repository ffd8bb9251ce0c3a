/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/operation.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/identity.h"
#include "cli/real.h"

#define OPTIONS struct operation
#include "cli/set.h"

#define DEFAULT_TIMEOUT 10.0
#define FIRST_READ ((size_t)64 << 10)
#define MOST_OCTETS ((size_t)1 << 30) /* that are stored; no device takes more in a message */

#define COMMON \
    "  --identity FILE     the initiator to be: FILE keeps its ID, and is made (mode 0600) when " \
    "it\n" \
    "                      is not there. Without it the ID is a new one, for once\n" \
    "  --release           free all that this identity has bound when leaving\n" \
    "  --record            be told by a completion record (RECORD_COMPLETION)\n" \
    "  --trusted-network   the network lets in only who is trusted; required, as the ID is a " \
    "secret\n" \
    "                      and nobody is authenticated\n" \
    "  --device NAME       the RDMA device; default the one that reaches HOST\n" \
    "  --timeout TIME      for the target to connect, to answer and to let go, each; default " \
    "10s\n" \
    "  --json              print one JSON object\n" \
    "\n" \
    "HANDLE is a number, or +N: the N-th of the range that this identity has, from +0.\n" \
    "\n" \
    "exit status: 0 OK, 1 another status, 2 bad command line or file, 4 no device, no " \
    "connection,\n" \
    "             no answer in time\n"

static const char usage_load[] =
    "usage: kbtp load HOST:PORT HANDLE --trusted-network [OPTIONS]\n"
    "\n"
    "Loads what a target holds under a handle, to a file or standard output.\n"
    "\n"
    "  --output FILE       where to write it; default standard output\n"
    "  --length SIZE       of the buffer; default Block Size. More is TOO_LARGE\n"
    "  --generation N      only this content, by its Generation\n"
    "  --allow-unsealed    also content that is not sealed\n"
    "  --direct            read the target's memory (DIRECT_LOAD), past its CPU\n" COMMON;

#define STORES \
    "  --input FILE        what to store; default standard input\n" \
    "  --inline            within the request; else the target reads it by RDMA Read\n" \
    "  --seal              nobody changes the content from now on\n"

static const char usage_store[] =
    "usage: kbtp store HOST:PORT HANDLE --trusted-network [OPTIONS]\n"
    "\n"
    "Replaces what a target holds under a handle of this identity, if it is not sealed.\n"
    "\n" STORES "  --generation N      only if this is the Generation that it has\n" COMMON;

static const char usage_alloc_store[] =
    "usage: kbtp alloc-store HOST:PORT HANDLE --trusted-network [OPTIONS]\n"
    "\n"
    "Takes a new block for a handle of this identity and stores into it.\n"
    "\n" STORES "  --generation N      only if this is the Generation that it has\n"
    "  --direct            take the block and write it from here (DIRECT_ALLOC)\n" COMMON;

static const char usage_free[] =
    "usage: kbtp free HOST:PORT HANDLE --trusted-network [OPTIONS]\n"
    "\n"
    "Gives back the block of a handle of this identity.\n"
    "\n"
    "  --generation N      only if this is the Generation that it has\n" COMMON;

/* ---- options ----------------------------------------------------------------------------- */

#define SET_FLAG(name, flag) \
    static bool set_##name(const char *option, const char *value, void *into) \
    { \
        (void)option, (void)value; \
        ((struct operation *)into)->flags |= (flag); \
        return true; \
    }

SET_TEXT(input)
SET_TEXT(output)
SET_TEXT(identity)
SET_TEXT(device)
SET_TRUE(release)
SET_TRUE(trusted)
SET_TRUE(json)
SET_TRUE(direct)
SET_FLAG(inline, KBTP_FLAG_INLINE)
SET_FLAG(record, KBTP_FLAG_RECORD)
SET_FLAG(seal, KBTP_FLAG_SEAL)
SET_FLAG(unsealed, KBTP_FLAG_ALLOW_UNSEALED)

static bool set_generation(const char *option, const char *value, void *into)
{
    uint64_t number;
    if (!cli_number(option, value, 1, UINT16_MAX, &number))
        return false;
    ((struct operation *)into)->generation = (uint16_t)number;
    return true;
}

static bool set_length(const char *option, const char *value, void *into)
{
    struct operation *operation = into;
    if (!cli_size(option, value, &operation->length))
        return false;
    if (operation->length <= UINT32_MAX)
        return true;
    cli_complain("--%s: a buffer has at most %u octets", option, UINT32_MAX);
    return false;
}

static bool set_timeout(const char *option, const char *value, void *into)
{
    return cli_time(option, value, &((struct operation *)into)->timeout);
}

#define COMMON_OPTIONS \
    {"identity", true, set_identity}, {"release", false, set_release}, \
        {"record", false, set_record}, {"trusted-network", false, set_trusted}, \
        {"device", true, set_device}, {"timeout", true, set_timeout}, {"json", false, set_json}, \
        {"generation", true, set_generation}, \
    { \
        NULL, false, NULL \
    }

static const struct cli_option load_options[] = {{"output", true, set_output},
                                                 {"length", true, set_length},
                                                 {"allow-unsealed", false, set_unsealed},
                                                 {"direct", false, set_direct},
                                                 COMMON_OPTIONS};
#define STORE_OPTIONS \
    {"input", true, set_input}, {"inline", false, set_inline}, \
    { \
        "seal", false, set_seal \
    }
static const struct cli_option store_options[] = {STORE_OPTIONS, COMMON_OPTIONS};
static const struct cli_option alloc_store_options[] = {
    STORE_OPTIONS, {"direct", false, set_direct}, COMMON_OPTIONS};
static const struct cli_option free_options[] = {COMMON_OPTIONS};

/* ---- what is stored ---------------------------------------------------------------------- */

/* False with errno; EFBIG: more than MOST_OCTETS. */
static bool read_all(struct operation *operation, FILE *file)
{
    size_t room = 0;
    for (;;) {
        if (operation->data_octets == room) {
            room = room ? 2 * room : FIRST_READ;
            char *more = room <= 2 * MOST_OCTETS ? realloc(operation->data, room) : NULL;
            if (!more) {
                errno = room <= 2 * MOST_OCTETS ? ENOMEM : EFBIG;
                return false;
            }
            operation->data = more;
        }
        size_t want = room - operation->data_octets;
        size_t got = fread(operation->data + operation->data_octets, 1, want, file);
        operation->data_octets += got;
        if (got < want)
            return !ferror(file);
    }
}

/* Before there is a session: whoever types it may take his time. */
static bool read_input(struct operation *operation)
{
    FILE *file = operation->input ? fopen(operation->input, "rb") : stdin;
    bool good = file && read_all(operation, file);
    if (!good)
        cli_complain("%.200s: cannot be read: %s",
                     operation->input ? operation->input : "standard input", strerror(errno));
    if (file && file != stdin)
        (void)fclose(file);
    return good;
}

/* ------------------------------------------------------------------------------------------ */

static bool read_handle(struct operation *operation, const char *text)
{
    operation->own = text[0] == '+';
    char *end;
    const char *digits = text + operation->own;
    errno = 0;
    operation->handle = strtoull(digits, &end, strncmp(digits, "0x", 2) == 0 ? 16 : 10);
    bool good = digits[0] >= '0' && digits[0] <= '9' && *end == 0 && errno == 0;
    if (!good)
        cli_complain("'%.60s' is not a handle: a number, or +N of the own range", text);
    return good;
}

/* What the draft has no direct form of. */
static bool can_be_direct(const struct operation *operation)
{
    const char *other = operation->flags & KBTP_FLAG_INLINE           ? "--inline"
                        : operation->flags & KBTP_FLAG_SEAL           ? "--seal"
                        : operation->flags & KBTP_FLAG_ALLOW_UNSEALED ? "--allow-unsealed"
                        : operation->flags & KBTP_FLAG_RECORD         ? "--record"
                                                                      : NULL;
    if (operation->direct && other)
        cli_complain("%s has no direct form: leave out one of %s and --direct", other, other);
    return !operation->direct || !other;
}

/* CLI_DONE, or what to exit with. */
static int prepare(struct operation *operation, const char *const *operands, unsigned count)
{
    if (count < 2) {
        cli_complain(count ? "which handle? A number, or +0 for the first of the own range"
                           : "which target? HOST:PORT, then a handle");
        return CLI_BAD_INPUT;
    }
    if (!read_handle(operation, operands[1]))
        return CLI_BAD_INPUT;
    if (operation->json && operation->opcode == KBTP_OP_LOAD && !operation->output) {
        cli_complain("--json is for standard output, the data needs an --output");
        return CLI_BAD_INPUT;
    }
    if (!can_be_direct(operation) || !real_trusted(operation->trusted))
        return CLI_BAD_INPUT;
    operation->name = operands[0];
    int status = real_address(operation->name, operation->address);
    if (status == CLI_DONE)
        status = operation->identity ? identity_read(operation->identity, operation->id)
                                     : identity_random(operation->id);
    bool stores = operation->opcode == KBTP_OP_STORE || operation->opcode == KBTP_OP_ALLOC_STORE;
    if (status == CLI_DONE && stores && !read_input(operation))
        status = CLI_BAD_INPUT;
    /* Who comes once leaves nothing behind, unless it is what was stored. */
    if (!operation->identity && operation->opcode != KBTP_OP_ALLOC_STORE)
        operation->release = true;
    return status;
}

static int operate(const struct cli_command *command, const struct cli_option *options,
                   uint8_t opcode, int argc, char **argv)
{
    struct operation operation = {.command = command, .opcode = opcode, .timeout = DEFAULT_TIMEOUT};
    struct result result = {.left = false};
    struct client *client = NULL;
    const char *operands[2];
    unsigned count;
    int status = cli_parse(command, argc, argv, options, &operation, operands, 2, &count);
    if (status >= 0)
        return status;
    status = prepare(&operation, operands, count);
    if (status == CLI_DONE)
        status = client_run(&operation, &client, &result);
    if (status == CLI_DONE)
        status = operation_tell(&operation, &result);
    client_end(client);
    free(operation.data);
    explicit_bzero(operation.id, sizeof operation.id);
    return status;
}

static int run_load(int argc, char **argv)
{
    return operate(&cli_load, load_options, KBTP_OP_LOAD, argc, argv);
}

static int run_store(int argc, char **argv)
{
    return operate(&cli_store, store_options, KBTP_OP_STORE, argc, argv);
}

static int run_alloc_store(int argc, char **argv)
{
    return operate(&cli_alloc_store, alloc_store_options, KBTP_OP_ALLOC_STORE, argc, argv);
}

static int run_free(int argc, char **argv)
{
    return operate(&cli_free, free_options, KBTP_OP_FREE, argc, argv);
}

const struct cli_command cli_load = {.name = "load",
                                     .does = "load from a target what a handle stands for",
                                     .usage = usage_load,
                                     .run = run_load};
const struct cli_command cli_store = {.name = "store",
                                      .does = "replace what a target holds under a handle",
                                      .usage = usage_store,
                                      .run = run_store};
const struct cli_command cli_alloc_store = {.name = "alloc-store",
                                            .does = "store into a new block of a target",
                                            .usage = usage_alloc_store,
                                            .run = run_alloc_store};
const struct cli_command cli_free = {
    .name = "free", .does = "give a block back to a target", .usage = usage_free, .run = run_free};
