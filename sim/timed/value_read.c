/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/timed/value.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/scenario_value.h"

/* Digits, perhaps with a point between them, perhaps with an exponent; nothing else that strtod()
 * takes (nan, 0x1p3, blanks). */
static bool read_decimal(const char *text, double *value, const char **end)
{
    static const char digits[] = "0123456789";
    size_t whole = strspn(text, digits), fraction = 0, at = whole;
    if (whole == 0)
        return false;
    if (text[at] == '.') {
        fraction = strspn(text + at + 1, digits);
        if (fraction == 0)
            return false;
        at += 1 + fraction;
    }
    if (text[at] == 'e') {
        size_t exponent = at + (text[at + 1] == '-' ? 2 : 1),
               more = strspn(text + exponent, digits);
        at = more ? exponent + more : at;
    }
    *value = strtod(text, NULL);
    *end = text + at;
    return true;
}

bool sim_read_decimal(const struct sim_text *text, const char *path, const char *raw,
                      double fallback, double least, double most, double *out)
{
    const char *end;
    *out = fallback;
    if (raw && (!read_decimal(raw, out, &end) || *end || *out < least || *out > most))
        return sim_complain(text, path, "%s is not a number from %g to %g, write it in decimal",
                            sim_quoted(raw).text, least, most);
    return true;
}

bool sim_read_time(const struct sim_text *text, const char *path, const char *raw,
                   uint64_t fallback, uint64_t least, uint64_t most, uint64_t *ns)
{
    static const struct {
        const char *suffix;
        double ns;
    } units[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}, {"min", 60e9}, {"h", 3600e9}};
    const char *end;
    double number;
    *ns = fallback;
    if (!raw)
        return true;
    if (read_decimal(raw, &number, &end))
        for (unsigned i = 0; i < sizeof units / sizeof *units; i++)
            if (strcmp(end, units[i].suffix) == 0 && number * units[i].ns >= (double)least &&
                number * units[i].ns <= (double)most) {
                *ns = (uint64_t)(number * units[i].ns + 0.5);
                return true;
            }
    return sim_complain(text, path,
                        "%s is not a time from %gs to %gs, write a number with ns, us, ms, s, min "
                        "or h behind it",
                        sim_quoted(raw).text, (double)least / 1e9, (double)most / 1e9);
}

bool sim_read_size(const struct sim_text *text, const char *path, const char *raw,
                   uint64_t fallback, uint64_t least, uint64_t most, uint64_t *octets)
{
    *octets = fallback;
    if (raw && (!sim_is_size(raw, octets) || *octets < least || *octets > most))
        return sim_complain(text, path,
                            "%s is not a size from %ju to %ju octets, write a number, with KiB, "
                            "MiB, GiB or TiB if you like",
                            sim_quoted(raw).text, (uintmax_t)least, (uintmax_t)most);
    return true;
}
