/* SPDX-License-Identifier: BSD-3-Clause */
#include <ctype.h>
#include <errno.h>
#include <langinfo.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/cli.h"
#include "sim/utf8.h"

#define DEFAULT_WIDTH 120u
#define MIN_WIDTH 60u
#define MAX_WIDTH 240u
#define MAX_OPTIONS 40u
#define MAX_COMPLAINT 600
#define FIRST_OPTION 256 /* what getopt_long returns: no character */

static const char *complaining = "kbtp";

void cli_complain(const char *format, ...)
{
    char text[MAX_COMPLAINT];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    /* What was typed may hold anything; a complaint is one line. */
    for (char *c = text; *c; c++)
        if ((unsigned char)*c < 0x20 || *c == 0x7f)
            *c = '?';
    fprintf(stderr, "kbtp %s: %s%s\n", complaining, text, length >= (int)sizeof text ? "..." : "");
}

static int refuse(const struct cli_command *command)
{
    fprintf(stderr, "try `kbtp help %s`\n", command->name);
    return CLI_BAD_INPUT;
}

/* What getopt_long did not like. Of a cluster such as -xh only the letter is known. */
static void complain_of_option(int found, const char *word)
{
    if (found == ':')
        cli_complain("%.60s needs a value", word);
    else if (optopt > 0 && optopt < FIRST_OPTION)
        cli_complain("there is no option -%c", optopt);
    else if (optopt >= FIRST_OPTION)
        cli_complain("%.60s takes no value", word);
    else
        cli_complain("there is no option %.60s, or it can mean several", word);
}

/* The option that a letter is short for; or the end of the options. */
static unsigned option_of(const struct cli_option *options, int letter)
{
    unsigned i = 0;
    while (options[i].name && options[i].name[0] != letter)
        i++;
    return i;
}

/* Adds a command's letters to what getopt_long is to know. */
static void add_letters(const struct cli_command *command, const struct cli_option *options,
                        char *known, size_t size)
{
    for (const char *letter = command->letters; letter && *letter; letter++) {
        size_t used = strlen(known);
        bool takes_value = options[option_of(options, *letter)].takes_value;
        snprintf(known + used, size - used, "%c%s", *letter, takes_value ? ":" : "");
    }
}

int cli_parse(const struct cli_command *command, int argc, char **argv,
              const struct cli_option *options, void *into, const char **operands,
              unsigned operands_max, unsigned *operands_count)
{
    struct option known[MAX_OPTIONS + 2] = {{"help", no_argument, NULL, 'h'}};
    for (unsigned i = 0; i < MAX_OPTIONS && options[i].name; i++)
        known[i + 1] =
            (struct option){options[i].name, options[i].takes_value, NULL, FIRST_OPTION + (int)i};
    char letters[16] = ":h";
    add_letters(command, options, letters, sizeof letters);
    complaining = command->name;
    opterr = 0;
    optind = 0;
    for (int found; (found = getopt_long(argc, argv, letters, known, NULL)) != -1;) {
        if (found == 'h') {
            fputs(command->usage, stdout);
            return CLI_DONE;
        }
        if (found != '?' && found != ':') {
            const struct cli_option *option =
                &options[found >= FIRST_OPTION ? (unsigned)(found - FIRST_OPTION)
                                               : option_of(options, found)];
            if (!option->set(option->name, optarg, into))
                return CLI_BAD_INPUT;
            continue;
        }
        complain_of_option(found, argv[optind - 1]);
        return refuse(command);
    }
    *operands_count = (unsigned)(argc - optind);
    if (*operands_count > operands_max) {
        cli_complain("'%.60s' is one operand too many", argv[optind + (int)operands_max]);
        return refuse(command);
    }
    for (unsigned i = 0; i < *operands_count; i++)
        operands[i] = argv[optind + (int)i];
    return -1;
}

static int base_of(const char *value)
{
    return strncmp(value, "0x", 2) == 0 ? 16 : 10;
}

bool cli_number(const char *option, const char *value, uint64_t least, uint64_t most,
                uint64_t *number)
{
    char *end;
    errno = 0;
    *number = strtoull(value, &end, base_of(value));
    if (!isdigit((unsigned char)value[0]) || *end != 0 || errno != 0 || *number < least ||
        *number > most) {
        cli_complain("--%s: '%.60s' is not a number from %llu to %llu", option, value,
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
    unsigned long long number = strtoull(value, &end, base_of(value));
    for (unsigned i = 0; i < sizeof units / sizeof *units; i++) {
        if (strcmp(end, units[i]) != 0 || !isdigit((unsigned char)value[0]) || errno != 0)
            continue;
        if (number == 0 || number > (UINT64_MAX >> 10 * i))
            break;
        *octets = (uint64_t)number << 10 * i;
        return true;
    }
    cli_complain("--%s: '%.60s' is not a size such as 4096, 64KiB or 2GiB", option, value);
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
            base_of(value) != 10 || !(number > 0 && number < 1e12))
            continue;
        *seconds = number * units[i].seconds;
        return true;
    }
    cli_complain("--%s: '%.60s' is not a time such as 250ms, 30s or 5min", option, value);
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
    cli_complain("--%s: '%.60s' is none of %s", option, value, all);
    return false;
}

/* Where to write for `path` until all is well: in the same directory. False: too long. */
static bool place_beside(const char *path, char *beside, size_t size)
{
    const char *slash = strrchr(path, '/');
    int directory = slash ? (int)(slash - path) + 1 : 0;
    return snprintf(beside, size, "%.*s.kbtp-%ld.tmp", directory, path, (long)getpid()) < (int)size;
}

/* Writes a new file and gives it the name `path` when all was written. Returns 0 or -errno. */
static int replace(const char *path, int (*write)(void *context, void *file), void *context)
{
    char beside[PATH_MAX];
    if (!place_beside(path, beside, sizeof beside))
        return -ENAMETOOLONG;
    FILE *file = fopen(beside, "wx");
    if (!file)
        return -errno;
    int failed = write(context, file);
    if (fclose(file) != 0 && !failed)
        failed = -errno;
    if (!failed && rename(beside, path) != 0)
        failed = -errno;
    if (failed)
        unlink(beside);
    return failed;
}

/* Pipes and devices are written to, files are replaced, links followed. Returns 0 or -errno. */
static int write_to(const char *path, int (*write)(void *context, void *file), void *context)
{
    char real[PATH_MAX];
    struct stat there, link;
    bool exists = stat(path, &there) == 0;
    if (!exists && errno != ENOENT)
        return -errno;
    if (exists && S_ISREG(there.st_mode))
        return realpath(path, real) ? replace(real, write, context) : -errno;
    if (!exists && lstat(path, &link) != 0)
        return replace(path, write, context);
    FILE *file = fopen(path, "w");
    if (!file)
        return -errno;
    int failed = write(context, file);
    if (fclose(file) != 0 && !failed)
        failed = -errno;
    return failed;
}

bool cli_write_file(const char *path, int (*write)(void *context, void *file), void *context)
{
    int failed = write_to(path, write, context);
    if (failed)
        cli_complain("%.200s: cannot be written: %s", path, strerror(-failed));
    return !failed;
}

void cli_printable(char *out, size_t size, const char *text)
{
    size_t used = 0;
    unsigned octets;
    for (; *text && used + 5 < size; text += octets) {
        bool plain = !sim_utf8_is_control(sim_utf8(text, SIZE_MAX, &octets));
        memcpy(out + used, plain ? text : "?", plain ? octets : 1);
        used += plain ? octets : 1;
    }
    out[used] = 0;
}

bool cli_same_file(const char *a, const char *b)
{
    struct stat first, second;
    return stat(a, &first) == 0 && stat(b, &second) == 0 && S_ISREG(first.st_mode) &&
           first.st_dev == second.st_dev && first.st_ino == second.st_ino;
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
