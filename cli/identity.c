/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include "cli/identity.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/cli.h"

#define DIGITS (2u * KBTP_INITIATOR_ID_OCTETS)
#define OTHERS (S_IRWXG | S_IRWXO)

int identity_random(uint8_t id[KBTP_INITIATOR_ID_OCTETS])
{
    if (getrandom(id, KBTP_INITIATOR_ID_OCTETS, 0) == KBTP_INITIATOR_ID_OCTETS)
        return CLI_DONE;
    cli_complain("no random numbers for an Initiator ID: %s", strerror(errno));
    return CLI_ENVIRONMENT;
}

static unsigned digit_of(char c)
{
    return isdigit((unsigned char)c) ? (unsigned)(c - '0')
                                     : (unsigned)(tolower((unsigned char)c) - 'a' + 10);
}

/* What is wrong with it is said without it. */
static bool parse(const char *text, size_t length, uint8_t id[KBTP_INITIATOR_ID_OCTETS])
{
    if (length == DIGITS + 1u && text[DIGITS] == '\n')
        length--;
    if (length != DIGITS)
        return false;
    for (size_t i = 0; i < DIGITS; i++)
        if (!isxdigit((unsigned char)text[i]))
            return false;
    for (size_t i = 0; i < DIGITS; i += 2)
        id[i / 2] = (uint8_t)(digit_of(text[i]) << 4 | digit_of(text[i + 1]));
    return true;
}

static int read_open(const char *path, int fd, uint8_t id[KBTP_INITIATOR_ID_OCTETS])
{
    struct stat about;
    char text[DIGITS + 2];
    if (fstat(fd, &about) != 0 || !S_ISREG(about.st_mode)) {
        cli_complain("%.200s: is no file that can keep an Initiator ID", path);
        return CLI_BAD_INPUT;
    }
    if (about.st_mode & OTHERS || (about.st_uid != geteuid() && geteuid() != 0)) {
        cli_complain("%.200s: holds a secret and is not its reader's alone (mode %04o); make a new "
                     "one, or chmod 600 if nobody has read it",
                     path, (unsigned)about.st_mode & 07777);
        return CLI_BAD_INPUT;
    }
    ssize_t length = read(fd, text, sizeof text);
    bool good = length >= 0 && parse(text, (size_t)length, id);
    explicit_bzero(text, sizeof text);
    if (!good)
        cli_complain("%.200s: is not %u hexadecimal digits", path, DIGITS);
    return good ? CLI_DONE : CLI_BAD_INPUT;
}

/* Writes a new one. 0 or -errno. */
static int write_open(int fd)
{
    uint8_t id[KBTP_INITIATOR_ID_OCTETS];
    char text[DIGITS + 2];
    if (getrandom(id, sizeof id, 0) != sizeof id || fchmod(fd, S_IRUSR | S_IWUSR) != 0)
        return -errno;
    for (size_t i = 0; i < sizeof id; i++)
        (void)snprintf(text + 2 * i, 3, "%02x", id[i]);
    text[DIGITS] = '\n';
    ssize_t written = write(fd, text, DIGITS + 1);
    int failed = written < 0 ? -errno : written != DIGITS + 1 ? -ENOSPC : 0;
    if (!failed && fsync(fd) != 0)
        failed = -errno;
    explicit_bzero(text, sizeof text);
    explicit_bzero(id, sizeof id);
    return failed;
}

/* A whole file or none, and never another's in its place: who comes first has made it. */
static int make(const char *path)
{
    char beside[PATH_MAX];
    const int length = snprintf(beside, sizeof beside, "%s.%ld.tmp", path, (long)getpid());
    if (length < 0 || length >= (int)sizeof beside)
        return -ENAMETOOLONG;
    int fd = open(beside, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, S_IRUSR | S_IWUSR);
    if (fd < 0)
        return -errno;
    int failed = write_open(fd);
    if (close(fd) != 0 && !failed)
        failed = -errno;
    if (!failed && link(beside, path) != 0 && errno != EEXIST)
        failed = -errno;
    (void)unlink(beside);
    return failed;
}

int identity_read(const char *path, uint8_t id[KBTP_INITIATOR_ID_OCTETS])
{
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT) {
        int failed = make(path);
        if (failed) {
            cli_complain("%.200s: cannot be made: %s", path, strerror(-failed));
            return CLI_ENVIRONMENT;
        }
        fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    }
    if (fd < 0) {
        cli_complain("%.200s: cannot be read: %s", path, strerror(errno));
        return CLI_BAD_INPUT;
    }
    int status = read_open(path, fd, id);
    (void)close(fd);
    return status;
}
