/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/scenario_value.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- numbers ----------------------------------------------------------------------------- */

/* Reads decimal digits, or hexadecimal ones after 0x. 010, which may mean 8, is refused. */
static bool read_digits(const char *text, uint64_t *value, const char **end)
{
    bool hexadecimal = text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
    const char *digits = hexadecimal ? text + 2 : text;
    size_t count = strspn(digits, hexadecimal ? "0123456789abcdefABCDEF" : "0123456789");
    if (count == 0 || (!hexadecimal && count > 1 && digits[0] == '0'))
        return false;
    errno = 0;
    *value = strtoull(digits, NULL, hexadecimal ? 16 : 10);
    *end = digits + count;
    return errno == 0;
}

bool sim_is_number(const char *text, uint64_t *value)
{
    const char *end;
    return read_digits(text, value, &end) && *end == '\0';
}

bool sim_is_size(const char *text, uint64_t *octets)
{
    static const char *const suffixes[] = {"", "KiB", "MiB", "GiB", "TiB"};
    const char *end;
    if (!read_digits(text, octets, &end))
        return false;
    for (unsigned i = 0; i < sizeof suffixes / sizeof *suffixes; i++)
        if (strcmp(end, suffixes[i]) == 0)
            return !__builtin_mul_overflow(*octets, UINT64_C(1) << (10 * i), octets);
    return false;
}

bool sim_read_number(const struct sim_text *text, const char *path, const char *raw,
                     uint32_t fallback, uint32_t least, uint32_t most, uint32_t *out)
{
    uint64_t value = fallback;
    if (raw != NULL && (!sim_is_number(raw, &value) || value < least || value > most))
        return sim_complain(text, path,
                            "%s is not a number from %u to %u, write it in decimal or as 0x...",
                            sim_quoted(raw).text, least, most);
    *out = (uint32_t)value;
    return true;
}

bool sim_check_block_range(const struct sim_text *text, bool size_given,
                           const struct sim_scenario *s)
{
    uint64_t end;
    uint64_t blocks = (uint64_t)s->first_block + s->blocks;
    if (__builtin_mul_overflow(blocks, s->block_size, &end) || end == UINT64_MAX)
        return sim_complain(
            text, size_given ? "block_size" : "first_block",
            "%ju blocks of %ju octets reach 2^64 - 1, lower block_size or first_block",
            (uintmax_t)blocks, (uintmax_t)s->block_size);
    return true;
}

/* ---- words and names --------------------------------------------------------------------- */

int sim_choice(const int *chosen, int fallback)
{
    return chosen != NULL ? *chosen : fallback;
}

char *sim_take(char **string)
{
    char *taken = *string;
    *string = NULL;
    return taken;
}

struct sim_string sim_entry_path(const char *list, unsigned index, const char *key)
{
    struct sim_string path = {.length = 0};
    sim_path_add_key(&path, list);
    sim_path_add_entry(&path, index);
    if (key != NULL)
        sim_path_add_key(&path, key);
    return path;
}

static bool ends_in(const char *name, size_t length, const char *suffix)
{
    return length >= strlen(suffix) && strcmp(name + length - strlen(suffix), suffix) == 0;
}

bool sim_check_names(const struct sim_text *text, const struct sim_named *all, unsigned count,
                     unsigned most, const char *rnic_suffix)
{
    for (unsigned i = 0; i < count; i++) {
        const char *name = all[i].name, *path = all[i].path.text;
        size_t length = strlen(name);
        if (rnic_suffix != NULL && ends_in(name, length, rnic_suffix))
            return sim_complain(text, path,
                                "%s is a name for an RNIC, choose one without '%s' at its end",
                                sim_quoted(name).text, rnic_suffix);
        if (length == 0 || length > most || strspn(name, SIM_NAME_CHARACTERS) != length)
            return sim_complain(text, path, "%s is not a name, write 1 to %u of A-Z a-z 0-9 _ -",
                                sim_quoted(name).text, most);
        if (strcmp(name, SIM_ENVIRONMENT_NAME) == 0)
            return sim_complain(text, path, "'%s' is the environment, choose another name", name);
        for (unsigned j = 0; j < i; j++)
            if (strcmp(all[j].name, name) == 0)
                return sim_complain(text, path, "'%s' is also %s, choose another name", name,
                                    all[j].path.text);
    }
    return true;
}

void sim_list_add(char *list, size_t size, const char *name)
{
    size_t used = strlen(list);
    snprintf(list + used, size - used, "%s%s", used > 0 ? ", " : "", name);
}
