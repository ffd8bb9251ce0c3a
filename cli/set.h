/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What most options do: put their value into a member of a command's options. For one file each,
 * which defines OPTIONS, the type of these, before it includes this.
 */
#ifndef KBTP_CLI_SET_H
#define KBTP_CLI_SET_H

#include "cli/cli.h"

#define SET_TEXT(member) \
    static bool set_##member(const char *option, const char *value, void *into) \
    { \
        (void)option; \
        ((OPTIONS *)into)->member = value; \
        return true; \
    }
#define SET_TRUE(member) \
    static bool set_##member(const char *option, const char *value, void *into) \
    { \
        (void)option, (void)value; \
        return ((OPTIONS *)into)->member = true; \
    }
#define SET_NUMBER(member, least, most) \
    static bool set_##member(const char *option, const char *value, void *into) \
    { \
        return cli_number(option, value, least, most, &((OPTIONS *)into)->member); \
    }

#endif
