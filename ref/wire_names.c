/* SPDX-License-Identifier: BSD-3-Clause */
#include "ref/wire_names.h"

#include <stddef.h>

#include "ref/table.h"

struct name {
    uint16_t value;
    const char *name;
};

static const struct name opcodes[] = {
    {KBTP_OP_HELLO, "HELLO"}, {KBTP_OP_HELLO_ACK, "HELLO_ACK"},     {KBTP_OP_LOAD, "LOAD"},
    {KBTP_OP_STORE, "STORE"}, {KBTP_OP_ALLOC_STORE, "ALLOC_STORE"}, {KBTP_OP_FREE, "FREE"},
    {KBTP_OP_BIND, "BIND"},   {KBTP_OP_COMPLETION, "COMPLETION"},   {KBTP_OP_GOODBYE, "GOODBYE"},
};

static const struct name statuses[] = {
    {KBTP_STATUS_OK, "OK"},
    {KBTP_STATUS_INVALID_HANDLE, "INVALID_HANDLE"},
    {KBTP_STATUS_STALE_GENERATION, "STALE_GENERATION"},
    {KBTP_STATUS_NOT_VALID, "NOT_VALID"},
    {KBTP_STATUS_ALREADY_BOUND, "ALREADY_BOUND"},
    {KBTP_STATUS_NO_SPACE, "NO_SPACE"},
    {KBTP_STATUS_SEALED, "SEALED"},
    {KBTP_STATUS_NOT_SEALED, "NOT_SEALED"},
    {KBTP_STATUS_TOO_LARGE, "TOO_LARGE"},
    {KBTP_STATUS_MALFORMED, "MALFORMED"},
    {KBTP_STATUS_INTERNAL, "INTERNAL"},
    {KBTP_STATUS_TICKET_ABANDONED, "TICKET_ABANDONED"},
};

static const struct name flags[] = {
    {KBTP_FLAG_INLINE, "INLINE"},
    {KBTP_FLAG_SEAL, "SEAL"},
    {KBTP_FLAG_RECORD, "RECORD"},
    {KBTP_FLAG_INVALIDATE, "INVALIDATE"},
    {KBTP_FLAG_ALLOW_UNSEALED, "ALLOW_UNSEALED"},
};

static const struct name goodbye_flags[] = {
    {KBTP_GOODBYE_RELEASE, "RELEASE"},
};

static const struct name features[] = {
    {KBTP_FEATURE_DIRECT_LOAD, "DIRECT_LOAD"},
    {KBTP_FEATURE_DIRECT_ALLOC, "DIRECT_ALLOC"},
    {KBTP_FEATURE_RECORD_COMPLETION, "RECORD_COMPLETION"},
    {KBTP_FEATURE_ADDR_LE, "ADDR_LE"},
};

static const struct name entry_flags[] = {
    {KBTP_ENTRY_VALID, "VALID"},
    {KBTP_ENTRY_SEALED, "SEALED"},
};

static const char *find(const struct name *names, size_t count, uint16_t value)
{
    for (size_t i = 0; i < count; i++)
        if (names[i].value == value)
            return names[i].name;
    return NULL;
}

#define FIND(names, value) find(names, sizeof(names) / sizeof *(names), value)

const char *kbtp_opcode_name(uint8_t opcode)
{
    return FIND(opcodes, opcode);
}

const char *kbtp_status_name(uint16_t status)
{
    return FIND(statuses, status);
}

const char *kbtp_flag_name(uint8_t opcode, uint16_t bit)
{
    switch (opcode) {
    case KBTP_OP_LOAD:
    case KBTP_OP_STORE:
    case KBTP_OP_ALLOC_STORE:
    case KBTP_OP_FREE:
        return FIND(flags, bit);
    case KBTP_OP_GOODBYE:
        return FIND(goodbye_flags, bit);
    default:
        return NULL;
    }
}

const char *kbtp_feature_name(uint16_t bit)
{
    return FIND(features, bit);
}

const char *kbtp_entry_flag_name(uint16_t bit)
{
    return FIND(entry_flags, bit);
}
