/* SPDX-License-Identifier: BSD-3-Clause */
#include <ctype.h>
#include <errno.h>
#include <langinfo.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cli/cli.h"

#define DEFAULT_WIDTH 120u
#define MIN_WIDTH 60u
#define MAX_WIDTH 240u
#define MAX_OPTIONS 40u

static const char *complaining = "kbtp";

void cli_complain(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fprintf(stderr, "kbtp %s: ", complaining);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
}

static int refuse(const struct cli_command *command)
{
    fprintf(stderr, "try `kbtp help %s`\n", command->name);
    return CLI_BAD_INPUT;
}

int cli_parse(const struct cli_command *command, int argc, char **argv,
              const struct cli_option *options, void *into, const char **operands,
              unsigned operands_max, unsigned *operands_count)
{
    struct option known[MAX_OPTIONS + 2] = {{"help", no_argument, NULL, 'h'}};
    for (unsigned i = 0; i < MAX_OPTIONS && options[i].name; i++)
        known[i + 1] = (struct option){options[i].name, options[i].takes_value, NULL, 0};
    complaining = command->name;
    opterr = 0;
    optind = 0;
    for (;;) {
        int index = 0;
        int found = getopt_long(argc, argv, ":h", known, &index);
        if (found == -1)
            break;
        if (found == 'h') {
            fputs(command->usage, stdout);
            return CLI_DONE;
        }
        if (found == 0) {
            const struct cli_option *option = &options[index - 1];
            if (!option->set(option->name, optarg, into))
                return CLI_BAD_INPUT;
            continue;
        }
        if (found == ':')
            cli_complain("%s needs a value", argv[optind - 1]);
        else
            cli_complain("there is no option %s, or it takes no value", argv[optind - 1]);
        return refuse(command);
    }
    *operands_count = (unsigned)(argc - optind);
    if (*operands_count > operands_max) {
        cli_complain("'%s' is one operand too many", argv[optind + (int)operands_max]);
        return refuse(command);
    }
    for (unsigned i = 0; i < *operands_count; i++)
        operands[i] = argv[optind + (int)i];
    return -1;
}

bool cli_number(const char *option, const char *value, uint64_t least, uint64_t most,
                uint64_t *number)
{
    char *end;
    errno = 0;
    *number = strtoull(value, &end, strncmp(value, "0x", 2) == 0 ? 16 : 10);
    if (!isdigit((unsigned char)value[0]) || *end != 0 || errno != 0 || *number < least ||
        *number > most) {
        cli_complain("--%s: '%s' is not a number from %llu to %llu", option, value,
                     (unsigned long long)least, (unsigned long long)most);
        return false;
    }
    return true;
}

bool cli_size(const char *option, const char *value, uint64_t *octets)
{
    static const char *const units[] = {"", "KiB", "MiB", "GiB", "TiB"};
    char *end;
    errno = 0;
    unsigned long long number = strtoull(value, &end, 10);
    for (unsigned i = 0; i < sizeof units / sizeof *units; i++) {
        if (strcmp(end, units[i]) != 0 || !isdigit((unsigned char)value[0]) || errno != 0)
            continue;
        if (number == 0 || number > (UINT64_MAX >> 10 * i))
            break;
        *octets = (uint64_t)number << 10 * i;
        return true;
    }
    cli_complain("--%s: '%s' is not a size such as 4096, 64KiB or 2GiB", option, value);
    return false;
}

bool cli_time(const char *option, const char *value, double *seconds)
{
    static const struct {
        const char *unit;
        double seconds;
    } units[] = {{"", 1}, {"s", 1}, {"ms", 1e-3}, {"us", 1e-6}, {"min", 60}, {"h", 3600}};
    char *end;
    double number = strtod(value, &end);
    for (unsigned i = 0; i < sizeof units / sizeof *units; i++) {
        if (strcmp(end, units[i].unit) != 0 || !isdigit((unsigned char)value[0]) ||
            !(number > 0 && number < 1e12))
            continue;
        *seconds = number * units[i].seconds;
        return true;
    }
    cli_complain("--%s: '%s' is not a time such as 250ms, 30s or 5min", option, value);
    return false;
}

bool cli_word(const char *option, const char *value, const char *const *words, int *index)
{
    char all[160] = "";
    for (int i = 0; words[i]; i++) {
        if (strcmp(words[i], value) == 0) {
            *index = i;
            return true;
        }
        size_t used = strlen(all);
        snprintf(all + used, sizeof all - used, "%s%s", i ? ", " : "", words[i]);
    }
    cli_complain("--%s: '%s' is none of %s", option, value, all);
    return false;
}

bool cli_write_file(const char *path, int (*write)(void *context, void *file), void *context)
{
    char beside[4096];
    if (snprintf(beside, sizeof beside, "%s.%ld.tmp", path, (long)getpid()) >= (int)sizeof beside) {
        cli_complain("%.60s...: the path is too long", path);
        return false;
    }
    FILE *file = fopen(beside, "wx");
    if (!file) {
        cli_complain("%s: cannot be written: %s", path, strerror(errno));
        return false;
    }
    int failed = write(context, file);
    if (fclose(file) != 0 && !failed)
        failed = -errno;
    if (!failed && rename(beside, path) != 0)
        failed = -errno;
    if (failed) {
        unlink(beside);
        cli_complain("%s: cannot be written: %s", path, strerror(-failed));
    }
    return !failed;
}

unsigned cli_width(void)
{
    struct winsize size;
    if (!isatty(STDOUT_FILENO) || ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0)
        return DEFAULT_WIDTH;
    return size.ws_col < MIN_WIDTH ? MIN_WIDTH : size.ws_col > MAX_WIDTH ? MAX_WIDTH : size.ws_col;
}

bool cli_utf8(void)
{
    return strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
}
