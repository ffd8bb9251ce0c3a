/* SPDX-License-Identifier: BSD-3-Clause */
/* Characters of strings that come from outside. */
#ifndef KBTP_SIM_UTF8_H
#define KBTP_SIM_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SIM_NO_CHARACTER UINT32_MAX

/*
 * The character at `text`, of which `length` octets may be looked at and none behind a NUL, and how
 * many octets it has. SIM_NO_CHARACTER and one octet when they are not UTF-8.
 */
static inline uint32_t sim_utf8(const char *text, size_t length, unsigned *octets)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    uint32_t code = (unsigned char)text[0];
    unsigned count = code < 0x80 ? 1 : code < 0xe0 ? 2 : code < 0xf0 ? 3 : 4;
    *octets = 1;
    if (count == 1)
        return code;
    if (code < 0xc2 || code > 0xf4 || count > length)
        return SIM_NO_CHARACTER;
    code &= 0x7fu >> count;
    for (unsigned i = 1; i < count; i++) {
        if (((unsigned char)text[i] & 0xc0) != 0x80)
            return SIM_NO_CHARACTER;
        code = code << 6 | ((unsigned char)text[i] & 0x3f);
    }
    if (code < least[count] || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff))
        return SIM_NO_CHARACTER;
    *octets = count;
    return code;
}

/* Would it end a line or steer a terminal? NUL, C0, DEL, C1, LS, PS, and what is no character. */
static inline bool sim_utf8_is_control(uint32_t code)
{
    return code < 0x20 || (code >= 0x7f && code < 0xa0) || code == 0x2028 || code == 0x2029 ||
           code == SIM_NO_CHARACTER;
}

#endif
