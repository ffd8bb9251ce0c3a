/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/real.h"

#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "cli/cli.h"

#define NS 1000000000.0

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

bool real_trusted(bool declared)
{
    if (!declared)
        cli_complain("a session begins with an Initiator ID, a secret, and nobody is authenticated "
                     "here; if the network lets in only who is trusted, say --trusted-network on "
                     "both sides");
    return declared;
}

double real_now(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / NS;
}

int64_t real_nanoseconds(double seconds)
{
    return seconds <= 0 ? 0 : seconds < 1e9 ? (int64_t)(seconds * NS) : INT64_MAX;
}
