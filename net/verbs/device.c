/* SPDX-License-Identifier: BSD-3-Clause */
/* What a device is and can do. */
#include "net/verbs/state.h"

#include <arpa/inet.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define GIDS 256u

/* ---- which driver -------------------------------------------------------------------------- */

static const struct {
    uint32_t vendor;
    enum ibv_transport_type transport;
    const char *driver;
    unsigned invalidated_flag;
} software[] = {
    {0x626d74, IBV_TRANSPORT_IWARP, "siw", IBV_WC_WITH_INV},
    /* rxe has the flags of completions as the kernel numbers them */
    {0xffffff, IBV_TRANSPORT_IB, "rxe", 1u << 2},
};

/* A device of a bus has a driver in sysfs; one of software is known by its vendor. */
static void learn_driver(struct rdma_verbs *d)
{
    char path[IBV_SYSFS_PATH_MAX + 32];
    char target[256];
    d->invalidated_flag = IBV_WC_WITH_INV;
    (void)snprintf(path, sizeof path, "%s/device/driver", d->context->device->ibdev_path);
    ssize_t length = readlink(path, target, sizeof target - 1);
    if (length > 0) {
        target[length] = 0;
        const char *name = strrchr(target, '/');
        (void)snprintf(d->driver, sizeof d->driver, "%.31s", name ? name + 1 : target);
        return;
    }
    (void)snprintf(d->driver, sizeof d->driver, "unknown");
    for (size_t i = 0; i < sizeof software / sizeof software[0]; i++)
        if (d->attr.vendor_id == software[i].vendor &&
            d->context->device->transport_type == software[i].transport) {
            (void)snprintf(d->driver, sizeof d->driver, "%s", software[i].driver);
            d->invalidated_flag = software[i].invalidated_flag;
        }
}

/* ---- capabilities -------------------------------------------------------------------------- */

static uint32_t at_least_1(int number)
{
    return number > 0 ? (uint32_t)number : 1;
}

static uint32_t capabilities(const struct rdma_verbs *d, bool iwarp)
{
    uint32_t flags = d->attr.device_cap_flags;
    uint32_t bits = RDMA_CAP_SOLICITED;
    if (flags & IBV_DEVICE_MEM_MGT_EXTENSIONS)
        bits |= RDMA_CAP_SEND_INV | (iwarp ? RDMA_CAP_INV_REGION : 0u);
    if (d->attr.atomic_cap != IBV_ATOMIC_NONE)
        bits |= RDMA_CAP_FETCH_ADD | RDMA_CAP_CAS;
    if (d->attr.atomic_cap == IBV_ATOMIC_GLOB)
        bits |= RDMA_CAP_ATOMIC_CPU;
    if (flags & IBV_DEVICE_MEM_WINDOW_TYPE_2B) {
        bits |= RDMA_CAP_WINDOW;
        if (bits & RDMA_CAP_SEND_INV)
            bits |= RDMA_CAP_INV_WINDOW;
    }
    /* No driver of iWARP has Immediate Data. BASE_TO: where drivers honour the base they take it
     * for local SGEs as well, whose addresses are the CPU's here; and siw ignores it. */
    if (!iwarp)
        bits |= RDMA_CAP_IMM | RDMA_CAP_ORDERED_WRITES | RDMA_CAP_WRITE_ACKED | RDMA_CAP_LOOP;
    return bits;
}

/* The most that a queue pair takes inline: there is no other way to find out. */
static int learn_inline(struct rdma_verbs *d, char words[RDMA_VERBS_WORDS])
{
    static const uint32_t sizes[] = {512, 448, 400, 256, 220, 192, 128, 96, 80, 64, 48, 32, 0};
    struct ibv_cq *cq = ibv_create_cq(d->context, 1, NULL, NULL, 0);
    if (!cq)
        return verbs_words(words, d->name, "ibv_create_cq", verbs_error(-1));
    int error = EINVAL;
    for (size_t i = 0; error != 0 && i < sizeof sizes / sizeof sizes[0]; i++) {
        struct ibv_qp_init_attr init = {
            .send_cq = cq,
            .recv_cq = cq,
            .qp_type = IBV_QPT_RC,
            .cap = {.max_send_wr = 1,
                    .max_recv_wr = 1,
                    .max_send_sge = 1,
                    .max_recv_sge = 1,
                    .max_inline_data = sizes[i]},
        };
        struct ibv_qp *qp = ibv_create_qp(d->pd, &init);
        error = qp ? 0 : verbs_error(-1);
        if (!qp)
            continue;
        d->caps.max_inline = sizes[i];
        (void)ibv_destroy_qp(qp);
    }
    (void)ibv_destroy_cq(cq);
    return error ? verbs_words(words, d->name, "ibv_create_qp", error) : 0;
}

int verbs_learn(struct rdma_verbs *d, char words[RDMA_VERBS_WORDS])
{
    int result = ibv_query_device(d->context, &d->attr);
    if (result != 0)
        return verbs_words(words, d->name, "ibv_query_device", verbs_error(result));
    result = ibv_query_port(d->context, 1, &d->port);
    if (result != 0)
        return verbs_words(words, d->name, "ibv_query_port", verbs_error(result));
    learn_driver(d);
    bool iwarp = d->context->device->transport_type == IBV_TRANSPORT_IWARP;
    uint32_t binding = RDMA_BINDING_INFINIBAND;
    if (iwarp)
        binding = RDMA_BINDING_RDMAP;
    else if (d->port.link_layer == IBV_LINK_LAYER_ETHERNET)
        binding = RDMA_BINDING_ROCE;
    d->caps = (struct rdma_caps){
        .bits = capabilities(d, iwarp),
        .binding = binding,
        .max_message = d->port.max_msg_sz ? d->port.max_msg_sz : 1u << 30,
        .max_sge = verbs_smaller(at_least_1(d->attr.max_sge), VERBS_SGES),
        .max_read_sge =
            verbs_smaller(at_least_1(iwarp ? d->attr.max_sge_rd : d->attr.max_sge), VERBS_SGES),
        .max_reads = verbs_smaller(at_least_1(d->attr.max_qp_rd_atom),
                                   at_least_1(d->attr.max_qp_init_rd_atom)),
        .max_private = RDMA_MAX_PRIVATE,
        .max_queue = at_least_1(d->attr.max_qp_wr),
        .max_cq = at_least_1(d->attr.max_cqe),
    };
    return learn_inline(d, words);
}

/* ---- lists --------------------------------------------------------------------------------- */

/* How much better than others, of those in choose_gid(); 0: there is none. */
static uint32_t best_gid(struct ibv_context *context, struct ibv_gid_entry *best)
{
    struct ibv_gid_entry entries[GIDS];
    ssize_t count = ibv_query_gid_table(context, entries, GIDS, 0);
    uint32_t best_rank = 0;
    for (ssize_t i = 0; i < count; i++) {
        if (entries[i].port_num != 1)
            continue; /* the first port is the one that is used */
        const uint8_t *raw = entries[i].gid.raw;
        static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
        uint32_t rank = 5;
        if (entries[i].gid_type == IBV_GID_TYPE_ROCE_V1)
            rank = 1;
        else if (entries[i].gid_type == IBV_GID_TYPE_ROCE_V2)
            rank = memcmp(raw, mapped, sizeof mapped) == 0 ? 4 : raw[0] == 0xfe ? 2 : 3;
        if (rank <= best_rank)
            continue;
        best_rank = rank;
        *best = entries[i];
    }
    return best_rank;
}

bool verbs_best_gid(struct ibv_context *context, struct ibv_gid_entry *gid)
{
    return best_gid(context, gid) != 0;
}

/* The GID that librdmacm would take, most likely, and why. */
static void choose_gid(const struct rdma_verbs *d, struct rdma_verbs_about *about)
{
    if (d->caps.binding == RDMA_BINDING_RDMAP) {
        (void)snprintf(about->gid_why, sizeof about->gid_why,
                       "iWARP runs over TCP: addresses of the interface are used");
        return;
    }
    static const char *const why[] = {"none: give the network interface an address",
                                      "RoCE v1 only: stays in one Ethernet segment",
                                      "RoCE v2, link-local: stays in one network",
                                      "RoCE v2, an IPv6 address of the interface",
                                      "RoCE v2, the IPv4 address of the interface",
                                      "of the InfiniBand port"};
    struct ibv_gid_entry gid;
    uint32_t rank = best_gid(d->context, &gid);
    if (rank != 0) {
        (void)inet_ntop(AF_INET6, gid.gid.raw, about->gid, sizeof about->gid);
        size_t length = strlen(about->gid);
        (void)snprintf(about->gid + length, sizeof about->gid - length, " (%u)", gid.gid_index);
    }
    (void)snprintf(about->gid_why, sizeof about->gid_why, "%s", why[rank]);
}

/* The interface of the first GID that has one; iWARP devices have one as well. */
static void find_netdev(const struct rdma_verbs *d, struct rdma_verbs_about *about)
{
    struct ibv_gid_entry entries[GIDS];
    ssize_t count = ibv_query_gid_table(d->context, entries, GIDS, 0);
    char name[IF_NAMESIZE] = "";
    for (ssize_t i = 0; i < count && *name == 0; i++)
        if (entries[i].ndev_ifindex == 0 || if_indextoname(entries[i].ndev_ifindex, name) == NULL)
            *name = 0;
    (void)snprintf(about->netdev, sizeof about->netdev, "%.15s", name);
}

static int describe(struct rdma_verbs *d, struct rdma_verbs_about *about,
                    char words[RDMA_VERBS_WORDS])
{
    static const char *const bindings[] = {"iWARP", "InfiniBand", "RoCE"};
    static const char *const states[] = {"no change", "down",   "initializing",
                                         "armed",     "active", "active, deferred"};
    d->pd = ibv_alloc_pd(d->context);
    if (!d->pd)
        return verbs_words(words, d->name, "ibv_alloc_pd", verbs_error(-1));
    int error = verbs_learn(d, words);
    (void)ibv_dealloc_pd(d->pd);
    if (error != 0)
        return error;
    (void)snprintf(about->driver, sizeof about->driver, "%s", d->driver);
    (void)snprintf(about->transport, sizeof about->transport, "%s", bindings[d->caps.binding]);
    uint32_t state = (uint32_t)d->port.state;
    (void)snprintf(about->state, sizeof about->state, "%.15s",
                   state < sizeof states / sizeof states[0] ? states[state] : "unknown");
    find_netdev(d, about);
    choose_gid(d, about);
    about->caps = d->caps;
    about->max_regions = at_least_1(d->attr.max_mr);
    about->max_region_octets = d->attr.max_mr_size;
    return 0;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(ibv_get_device_name(*(struct ibv_device *const *)a),
                  ibv_get_device_name(*(struct ibv_device *const *)b));
}

int rdma_verbs_about(uint32_t index, struct rdma_verbs_about *about, char words[RDMA_VERBS_WORDS])
{
    *about = (struct rdma_verbs_about){.name = ""};
    int count = 0;
    struct ibv_device **list = ibv_get_device_list(&count);
    if (!list)
        return verbs_words(words, NULL, "ibv_get_device_list", verbs_error(-1));
    int error = -ENOENT;
    if (index < (uint32_t)count) {
        struct ibv_device **mine = malloc((size_t)count * sizeof *mine); /* the list is const */
        if (!mine) {
            ibv_free_device_list(list);
            return verbs_words(words, NULL, "malloc", ENOMEM);
        }
        memcpy(mine, list, (size_t)count * sizeof *mine);
        qsort(mine, (size_t)count, sizeof *mine, by_name);
        struct rdma_verbs d = {.name = ""};
        (void)snprintf(d.name, sizeof d.name, "%.63s", ibv_get_device_name(mine[index]));
        memcpy(about->name, d.name, sizeof about->name);
        d.context = ibv_open_device(mine[index]);
        if (d.context) {
            error = describe(&d, about, words);
            (void)ibv_close_device(d.context);
        } else {
            error = verbs_words(words, d.name, "ibv_open_device", verbs_error(-1));
        }
        free(mine);
    }
    ibv_free_device_list(list);
    return error;
}
