/* SPDX-License-Identifier: BSD-3-Clause */
#include "net/verbs/verbs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/net/fake/fake.h"
#include "tests/net/provider_verbs.h"
#include "tests/net/verbs_inside.h"

#define HANDLES 8u

static struct rdma_verbs *device;
static struct rdma *handles[HANDLES];
static uint32_t handles_count;

/* Those of a handle, but for what follows. */
static struct rdma_ops theirs, ours;

/* Tests listen at names. */
static const char *address_of(const char *name, char address[RDMA_VERBS_ADDRESS])
{
    uint32_t port = 5381;
    for (const char *at = name; *at; at++)
        port = port * 33 + (uint8_t)*at;
    (void)snprintf(address, RDMA_VERBS_ADDRESS, FAKE_HERE ":%u", 1024 + port % 30000);
    return address;
}

static int listen_at(struct rdma *r, const char *name)
{
    char address[RDMA_VERBS_ADDRESS];
    return theirs.listen(r, address_of(name, address));
}

static int connect_to(struct rdma *r, const char *name, const struct rdma_conn_config *config,
                      const struct rdma_wr *receives, uint32_t count, const void *private_data,
                      uint32_t private_length, uint32_t *conn)
{
    char address[RDMA_VERBS_ADDRESS];
    return theirs.connect(r, address_of(name, address), config, receives, count, private_data,
                          private_length, conn);
}

/* Tests count calls, so that none of them is spared. */
static int event(struct rdma *r, struct rdma_event *out)
{
    verbs_inside_look(r);
    return theirs.event(r, out);
}

/* Time passes when tests say so. */
static int timer(struct rdma *r, uint32_t id, uint64_t delay_ns)
{
    return theirs.timer(r, id, delay_ns ? UINT64_MAX : 0);
}

static bool open_as(enum fake_kind kind)
{
    const struct fake_config config = {.kind = kind, .devices = 1, .late_reads = kind == FAKE_SIW};
    const struct rdma_verbs_config wanted = {.connections = 16, .timers = 32};
    char words[RDMA_VERBS_WORDS];
    fake_open(&config);
    handles_count = 0;
    return rdma_verbs_open(&wanted, &device, words) == 0;
}

bool provider_verbs_open_siw(void)
{
    return open_as(FAKE_SIW);
}

bool provider_verbs_open_rxe(void)
{
    return open_as(FAKE_RXE);
}

void provider_verbs_close(void)
{
    for (uint32_t i = 0; i < handles_count; i++)
        rdma_verbs_handle_close(handles[i]);
    rdma_verbs_close(device);
    device = NULL;
    if (fake_breaches() || fake_left()) { /* not in a test, perhaps, so that it cannot assert */
        (void)fprintf(stderr, "%s; %u are left\n", fake_breach(), fake_left());
        abort();
    }
    (void)fake_close();
}

struct rdma *provider_verbs_handle(void)
{
    char words[RDMA_VERBS_WORDS];
    if (handles_count == HANDLES || rdma_verbs_handle(device, &handles[handles_count], words) != 0)
        return NULL;
    struct rdma *r = handles[handles_count++];
    theirs = ours = *r->ops;
    ours.listen = listen_at;
    ours.connect = connect_to;
    ours.event = event;
    ours.timer = timer;
    r->ops = &ours;
    return r;
}

uint32_t provider_verbs_left(void)
{
    return fake_used();
}
