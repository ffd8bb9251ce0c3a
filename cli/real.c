/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/real.h"

#include <errno.h>
#include <netdb.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "cli/cli.h"

#define NS 1000000000.0
#define MOST_CONNECT_S 86400.0

void *real_memory(size_t octets, const char *what)
{
    void *area =
        mmap(NULL, octets ? octets : 1, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (area != MAP_FAILED)
        return area;
    cli_complain("no memory for %s, %zu octets: %s", what, octets, strerror(errno));
    return NULL;
}

void real_memory_end(void *area, size_t octets)
{
    if (area)
        (void)munmap(area, octets ? octets : 1);
}

int real_address(const char *name, char address[RDMA_VERBS_ADDRESS])
{
    char words[RDMA_VERBS_WORDS];
    int failed = rdma_verbs_resolve(name, address, words);
    if (!failed)
        return CLI_DONE;
    cli_complain("%s", words);
    return failed == -EINVAL ? CLI_BAD_INPUT : CLI_ENVIRONMENT;
}

int real_open(const struct rdma_verbs_config *config, struct rdma_verbs **device,
              char words[RDMA_VERBS_WORDS])
{
    (void)signal(SIGPIPE, SIG_IGN);
    return rdma_verbs_open(config, device, words);
}

const char *real_why(const struct rdma *handle, int failed)
{
    const char *words = handle ? rdma_verbs_failure(handle) : "";
    return failed == -EPROTO ? "a message that makes no sense" : *words ? words : strerror(-failed);
}

struct kbtp_initiator_config real_initiator(const char *address)
{
    return (struct kbtp_initiator_config){.address = address,
                                          .retry_first_ns = 200000000,
                                          .retry_longest_ns = 1000000000,
                                          .retries = 5};
}

int real_open_initiator(const char *name, const char *address, double timeout,
                        struct rdma_verbs **device, char words[RDMA_VERBS_WORDS])
{
    double connect_s = timeout < MOST_CONNECT_S ? timeout : MOST_CONNECT_S;
    const struct rdma_verbs_config config = {.device = name,
                                             .address = name ? NULL : address,
                                             .connections = 1,
                                             .timers = REAL_TIMERS,
                                             .connect_ms = (uint32_t)(connect_s * 1e3) + 1};
    return real_open(&config, device, words);
}

bool real_trusted(bool declared)
{
    if (!declared)
        cli_complain("a session begins with an Initiator ID, a secret, and nobody is authenticated "
                     "here; if the network lets in only who is trusted, say --trusted-network on "
                     "both sides");
    return declared;
}

uint64_t real_now_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

double real_now(void)
{
    return (double)real_now_ns() / NS;
}

double real_cpu(void)
{
    struct timespec used;
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    return (double)used.tv_sec + (double)used.tv_nsec / NS;
}

struct addrinfo *real_socket_address(char address[RDMA_VERBS_ADDRESS])
{
    struct addrinfo hints = {.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV,
                             .ai_socktype = SOCK_STREAM},
                    *at;
    char *colon = strrchr(address, ':'), *host = address;
    *colon = 0;
    if (*host == '[') {
        host++;
        host[strlen(host) - 1] = 0;
    }
    return getaddrinfo(host, colon + 1, &hints, &at) == 0 ? at : NULL;
}

int64_t real_nanoseconds(double seconds)
{
    return seconds <= 0 ? 0 : seconds < 1e9 ? (int64_t)(seconds * NS) : INT64_MAX;
}
