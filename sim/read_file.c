/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/read_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sim/scenario_line.h"

static int complain(const char *path, char *error, size_t size, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

static int complain(const char *path, char *error, size_t size, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    sim_error_line(error, size, path, ": ", format, args);
    va_end(args);
    return -1;
}

/* What a file that is not a regular one is called, or NULL. */
static const char *special_kind(mode_t mode)
{
    switch (mode & S_IFMT) {
    case S_IFREG:
        return NULL;
    case S_IFDIR:
        return "directory";
    case S_IFIFO:
        return "pipe";
    case S_IFSOCK:
        return "socket";
    default:
        return "device";
    }
}

/* Reads to the end, or one octet more than `limit`. NULL with errno set when it cannot. */
static char *read_to_end(int fd, size_t limit, size_t *length)
{
    char *text = malloc(limit + 2); /* that octet, and the NUL */
    if (text == NULL)
        return NULL;
    *length = 0;
    while (*length <= limit) {
        ssize_t n = read(fd, text + *length, limit + 1 - *length);
        if (n == 0)
            break;
        if (n > 0)
            *length += (size_t)n;
        else if (errno != EINTR) {
            free(text);
            return NULL;
        }
    }
    text[*length] = '\0';
    return text;
}

int sim_read_file(const char *path, size_t limit, char **text, size_t *length, char *error,
                  size_t size)
{
    /* Only a regular file is opened: opening a pipe waits, opening a device can do anything. */
    struct stat status;
    if (stat(path, &status) != 0)
        return complain(path, error, size, "cannot be read: %s", strerror(errno));
    const char *special = special_kind(status.st_mode);
    if (special != NULL)
        return complain(path, error, size, "is a %s, name a regular file", special);
    if ((uintmax_t)status.st_size > limit)
        return complain(path, error, size, "is larger than %zu octets", limit);

    /* The name may lead elsewhere by now; O_NONBLOCK then keeps a pipe from waiting. */
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    size_t read_length = 0;
    char *read_text = fd >= 0 ? read_to_end(fd, limit, &read_length) : NULL;
    int failed = errno;
    if (fd >= 0)
        close(fd);
    if (read_text == NULL)
        return complain(path, error, size, "cannot be read: %s", strerror(failed));
    if (read_length == 0 || read_length > limit) {
        free(read_text);
        if (read_length == 0)
            return complain(path, error, size, "is empty");
        return complain(path, error, size, "is larger than %zu octets", limit);
    }
    *text = read_text;
    *length = read_length;
    return 0;
}
