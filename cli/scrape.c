/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/scrape.h"

#include <errno.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/real.h"

#define MOST_OCTETS ((size_t)1 << 20)

static const char request[] = "GET /metrics HTTP/1.0\r\n\r\n";

/* A socket, or -errno. */
static int connect_to(const char *numeric, double timeout)
{
    char address[RDMA_VERBS_ADDRESS];
    (void)memccpy(address, numeric, 0, sizeof address);
    struct addrinfo *at = real_socket_address(address);
    if (!at)
        return -EINVAL;
    int fd = socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0), failed = 0;
    const struct timeval patience = {.tv_sec = (time_t)timeout + 1};
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience) != 0 ||
        setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) != 0 ||
        connect(fd, at->ai_addr, at->ai_addrlen) != 0)
        failed = errno == EINPROGRESS ? -ETIMEDOUT : -errno;
    freeaddrinfo(at);
    if (failed && fd >= 0)
        (void)close(fd);
    return failed ? failed : fd;
}

/* All that comes until the other side closes. 0 or -errno. */
static int exchange(int fd, char *text, size_t size)
{
    size_t length = 0;
    if (send(fd, request, sizeof request - 1, MSG_NOSIGNAL) != (ssize_t)sizeof request - 1)
        return -errno;
    while (length + 1 < size) {
        ssize_t got = recv(fd, text + length, size - 1 - length, 0);
        if (got < 0 && errno != EINTR)
            return errno == EAGAIN ? -ETIMEDOUT : -errno;
        if (got == 0)
            break;
        length += got > 0 ? (size_t)got : 0;
    }
    text[length] = 0;
    return 0;
}

static bool find(const char *text, const char *name, double *number)
{
    size_t length = strlen(name);
    if (strncmp(text, "HTTP/1.", 7) != 0 || text[7] == 0 || strncmp(text + 8, " 200 ", 5) != 0)
        return false;
    for (const char *line = text; (line = strchr(line, '\n')) != NULL;) {
        char *end;
        line++;
        if (strncmp(line, name, length) != 0 || line[length] != ' ')
            continue;
        *number = strtod(line + length + 1, &end);
        return end != line + length + 1;
    }
    return false;
}

int scrape(const char *address, const char *name, double timeout, double *number)
{
    char numeric[RDMA_VERBS_ADDRESS];
    int status = real_address(address, numeric);
    if (status != CLI_DONE)
        return status;
    char *text = calloc(1, MOST_OCTETS);
    int fd = text ? connect_to(numeric, timeout) : -ENOMEM;
    int failed = fd < 0 ? fd : exchange(fd, text, MOST_OCTETS);
    if (fd >= 0)
        (void)close(fd);
    if (failed)
        cli_complain("--target-metrics: %.60s: %s", address, strerror(-failed));
    else if (!find(text, name, number))
        cli_complain("--target-metrics: %.60s: no %s there; is it `kbtp target --metrics`?",
                     address, name);
    else
        failed = 1;
    free(text);
    return failed == 1 ? CLI_DONE : CLI_ENVIRONMENT;
}
