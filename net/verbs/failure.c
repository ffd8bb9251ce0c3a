/* SPDX-License-Identifier: BSD-3-Clause */
#include "net/verbs/state.h"

#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

/* What a person can do about an error of a call; NULL: the errno says it. */
static const char *advice(const char *call, int error)
{
    static const struct {
        const char *call; /* begins with this */
        int error;
        const char *words;
    } known[] = {
        {"ibv_open_device", EACCES, "may this user open /dev/infiniband/uverbs*?"},
        {"rdma_create_event_channel", EACCES, "may this user open /dev/infiniband/rdma_cm?"},
        {"rdma_create_event_channel", ENOENT, "is the module rdma_ucm loaded?"},
        {"rdma_create_event_channel", ENODEV, "is the module rdma_ucm loaded?"},
        {"rdma_get_devices", ENOENT,
         "no RDMA device is here, or the module ib_uverbs is not loaded"},
        {"rdma_get_devices", ENODEV,
         "no RDMA device is here, or the module ib_uverbs is not loaded"},
        {"rdma_get_devices", EACCES, "may this user open /dev/infiniband/uverbs*?"},
        {"ibv_alloc_pd", ENOMEM, "is the limit of locked memory (ulimit -l) too small?"},
        {"ibv_create", ENOMEM, "is the limit of locked memory (ulimit -l) too small?"},
        {"rdma_create_qp", ENOMEM, "is the limit of locked memory (ulimit -l) too small?"},
        {"ibv_create", EINVAL, "more than the device can: see kbtp devices"},
        {"rdma_create_qp", EINVAL, "more than the device can: see kbtp devices"},
        {"ibv_query_gid", ENODATA, "the port has no GID: give its network interface an address"},
        {"rdma_bind_addr", ENODEV, "no RDMA device has this address: see kbtp devices"},
        {"rdma_bind_addr", EADDRNOTAVAIL, "no network interface here has this address"},
        {"rdma_resolve_addr", ENODEV, "no RDMA device reaches this address: see kbtp devices"},
        {"rdma_resolve_addr", ETIMEDOUT,
         "nobody at this address answers: is it up, in this network?"},
        {"rdma_resolve_route", ETIMEDOUT, "is the port up at both ends?"},
        {"rdma_connect", ECONNREFUSED, "nobody listens at this address and port"},
        {"rdma_connect", ETIMEDOUT, "the peer does not answer: is it up, and the port open?"},
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (known[i].error == error && strncmp(call, known[i].call, strlen(known[i].call)) == 0)
            return known[i].words;
    return NULL;
}

int verbs_words(char words[RDMA_VERBS_WORDS], const char *device, const char *call, int error)
{
    const char *more = advice(call, error);
    const char *name = strerrordesc_np(error);
    char limit[96] = "";
    if (error == ENOMEM && strncmp(call, "ibv_reg_mr", 10) == 0) {
        struct rlimit locked;
        if (getrlimit(RLIMIT_MEMLOCK, &locked) == 0 && locked.rlim_cur != RLIM_INFINITY)
            (void)snprintf(limit, sizeof limit,
                           "the limit of locked memory (ulimit -l) is %llu KiB",
                           (unsigned long long)locked.rlim_cur / 1024);
        more = *limit ? limit : "is there so much memory?";
    }
    (void)snprintf(words, RDMA_VERBS_WORDS, "%s%s%s: %s%s%s", device ? device : "",
                   device ? ": " : "", call, name ? name : "unknown error", more ? "; " : "",
                   more ? more : "");
    return -error;
}

int verbs_failed(struct verbs_handle *h, const char *call, int error)
{
    return verbs_words(h->words, h->device->name, call, error);
}

int verbs_error(int result)
{
    int error = result == -1 ? errno : result < 0 ? -result : result;
    return error ? error : EIO;
}

const char *rdma_verbs_failure(const struct rdma *handle)
{
    return ((const struct verbs_handle *)handle)->words;
}
