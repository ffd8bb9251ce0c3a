/* SPDX-License-Identifier: BSD-3-Clause */
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/sweep.h"

const char *sweep_seed_of(const struct sweep *sweep, uint32_t run)
{
    return sweep->seeds.count ? sweep->seeds.all[run % sweep->seeds.count].text : NULL;
}

const char *sweep_value_of(const struct sweep *sweep, uint32_t run, unsigned parameter)
{
    if (sweep->seeds.count)
        run /= sweep->seeds.count;
    for (unsigned i = sweep->parameters_count; i-- > parameter + 1;)
        run /= sweep->parameters[i].count;
    return sweep->parameters[parameter].all[run % sweep->parameters[parameter].count].text;
}

/* As a word of a POSIX shell. */
static void put_word(FILE *out, const char *before, const char *text)
{
    static const char plain[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-./,:=+@%";
    if (*text && text[strspn(text, plain)] == '\0' && before[strspn(before, plain)] == '\0') {
        fprintf(out, "%s%s", before, text);
        return;
    }
    fprintf(out, "'%s", before); /* a path of the scenario has no quotes */
    for (; *text; text++)
        if (*text == '\'')
            fputs("'\\''", out);
        else
            putc(*text, out);
    putc('\'', out);
}

/* "kbtp" if typing that would run this program. */
static const char *program(void)
{
    static char found[PATH_MAX];
    static const char *known;
    const char *folder = getenv("PATH"), *self = cli_program();
    for (size_t length; !known && folder && *folder; folder += length + (folder[length] == ':')) {
        length = strcspn(folder, ":");
        snprintf(found, sizeof found, "%.*s/kbtp", (int)length, folder);
        if (access(found, X_OK) == 0)
            known = cli_same_file(found, self) ? "kbtp" : self;
    }
    if (!known)
        known = self;
    return known;
}

void sweep_print_command(FILE *out, const struct sweep *sweep, uint32_t run)
{
    put_word(out, "", program());
    fputs(" run ", out);
    put_word(out, "", sweep->scenario);
    for (unsigned i = 0; i < sweep->options.count; i++) {
        putc(' ', out);
        put_word(out, "", sweep->options.all[i].text);
    }
    for (unsigned i = 0; i < sweep->parameters_count; i++) {
        char before[160];
        fputs(" --set ", out);
        snprintf(before, sizeof before, "%s=", sweep->parameters[i].key);
        put_word(out, before, sweep_value_of(sweep, run, i));
    }
    if (sweep_seed_of(sweep, run))
        fprintf(out, " --seed %s", sweep_seed_of(sweep, run));
    fputs(" --json", out);
}
