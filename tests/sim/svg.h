/* SPDX-License-Identifier: BSD-3-Clause */
/* Is a text well-formed XML, as far as the drawings of sim/chart_svg.c use it? */
#ifndef KBTP_TESTS_SIM_SVG_H
#define KBTP_TESTS_SIM_SVG_H

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "sim/chart_draw.h"

#define SVG_DEPTH 8

/* Behind the tag at `at` ('<'); open elements are kept in `open`. NULL when it is ill-formed. */
static inline const char *svg_scan_tag(const char *at, char open[SVG_DEPTH][16], unsigned *depth)
{
    bool closing = at[1] == '/';
    at += 1 + closing;
    size_t length = strspn(at, "abcdefghijklmnopqrstuvwxyz");
    if (length == 0 || length >= sizeof open[0])
        return NULL;
    if (closing) {
        if (*depth == 0 || strlen(open[--*depth]) != length ||
            memcmp(open[*depth], at, length) != 0)
            return NULL;
        return at[length] == '>' ? at + length + 1 : NULL;
    }
    if (*depth == SVG_DEPTH)
        return NULL;
    snprintf(open[(*depth)++], sizeof open[0], "%.*s", (int)length, at);
    for (at += length; *at != '>' && *at != '/'; at++) {
        if (*at == '"')
            at += 1 + strcspn(at + 1, "\"<");
        if (*at == '\0' || *at == '<')
            return NULL;
    }
    if (*at == '/') {
        --*depth;
        at++;
    }
    return *at == '>' ? at + 1 : NULL;
}

static inline bool svg_well_formed(const char *svg)
{
    static const char *const entities[] = {"&lt;", "&gt;", "&amp;", "&quot;"};
    char open[SVG_DEPTH][16];
    unsigned depth = 0;
    const char *at = strstr(svg, "?>\n");
    if (strncmp(svg, "<?xml ", 6) != 0 || !at)
        return false;
    for (at += 3; *at;) {
        if (*at == '<') {
            at = svg_scan_tag(at, open, &depth);
            if (!at)
                return false;
        } else if (*at == '&') {
            bool known = false;
            for (unsigned i = 0; i < 4; i++)
                known |= strncmp(at, entities[i], strlen(entities[i])) == 0;
            if (!known)
                return false;
            at++;
        } else if (*at == '\n') {
            at++;
        } else {
            const char *character = at;
            if (chart_next_char(&at) == CHART_UNPRINTABLE && memcmp(character, "\ufffd", 3) != 0)
                return false;
        }
    }
    return depth == 0;
}

#endif
