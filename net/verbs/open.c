/* SPDX-License-Identifier: BSD-3-Clause */
/* Devices and handles: opening and closing. */
#include "net/verbs/state.h"

#include <fcntl.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

static void caps(struct rdma *r, struct rdma_caps *out)
{
    *out = verbs_of(r)->device->caps;
}

static const struct rdma_ops operations = {
    .caps = caps,
    .reg = verbs_reg,
    .dereg = verbs_dereg,
    .window_alloc = verbs_window_alloc,
    .window_free = verbs_window_free,
    .cq_create = verbs_cq_create,
    .cq_destroy = verbs_cq_destroy,
    .cq_poll = verbs_cq_poll,
    .cq_arm = verbs_cq_arm,
    .listen = verbs_listen,
    .connect = verbs_connect,
    .accept = verbs_accept,
    .reject = verbs_reject,
    .disconnect = verbs_disconnect,
    .destroy = verbs_destroy,
    .event = verbs_event,
    .post_send = verbs_post_send,
    .post_recv = verbs_post_recv,
    .timer = verbs_timer,
    .random = verbs_random,
    .chain = &verbs_loop_ops,
};

/* ---- which device -------------------------------------------------------------------------- */

/* The device through which librdmacm reaches an address, or which has it. */
static int device_of(struct rdma_verbs *d, const char *address, char words[RDMA_VERBS_WORDS])
{
    struct sockaddr_storage to;
    if (!verbs_parse_address(address, &to)) {
        (void)snprintf(words, RDMA_VERBS_WORDS, "%.100s: not of the form IP:PORT or [IP]:PORT",
                       address);
        return -EINVAL;
    }
    /* Without a channel calls wait until they are done. */
    struct rdma_cm_id *id;
    if (rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP) != 0)
        return verbs_words(words, address, "rdma_create_id", verbs_error(-1));
    int error = 0;
    const char *call = "rdma_resolve_addr";
    ((struct sockaddr_in *)&to)->sin_port = 0; /* in the same place for IPv6 */
    if (rdma_bind_addr(id, (struct sockaddr *)&to) != 0) {
        error = verbs_error(-1);
        if (error == EADDRNOTAVAIL || error == ENODEV) { /* a peer's */
            error = 0;
            ((struct sockaddr_in *)&to)->sin_port = htons(1);
            if (rdma_resolve_addr(id, NULL, (struct sockaddr *)&to, 2000) != 0)
                error = verbs_error(-1);
        } else {
            call = "rdma_bind_addr";
        }
    }
    if (error == 0 && !id->verbs)
        error = ENODEV; /* a wildcard, or the loopback interface */
    if (error == 0)
        d->context = id->verbs;
    (void)rdma_destroy_id(id);
    return error ? verbs_words(words, address, call, error) : 0;
}

static int choose(struct rdma_verbs *d, const struct rdma_verbs_config *config,
                  char words[RDMA_VERBS_WORDS])
{
    int count = 0;
    struct ibv_context **list = rdma_get_devices(&count);
    if (!list || count == 0) {
        int error = list ? ENODEV : verbs_error(-1);
        if (list)
            rdma_free_devices(list);
        return verbs_words(words, NULL, "rdma_get_devices", error);
    }
    int error = 0;
    if (config->device) {
        for (int i = 0; i < count && !d->context; i++)
            if (strcmp(ibv_get_device_name(list[i]->device), config->device) == 0)
                d->context = list[i];
        if (!d->context) {
            (void)snprintf(words, RDMA_VERBS_WORDS, "%.64s: no such RDMA device; see kbtp devices",
                           config->device);
            error = -ENODEV;
        }
    } else if (config->address) {
        error = device_of(d, config->address, words);
        if (error == -ENODEV && count == 1) { /* a wildcard: every device */
            d->context = list[0];
            error = 0;
            *words = 0;
        }
    } else if (count == 1) {
        d->context = list[0];
    } else {
        (void)snprintf(words, RDMA_VERBS_WORDS,
                       "there are %d RDMA devices: name one, or an address", count);
        error = -EINVAL;
    }
    rdma_free_devices(list); /* contexts stay open, for librdmacm shares them */
    return error;
}

/* ---- devices ------------------------------------------------------------------------------- */

static int set_nonblocking(int fd)
{
    int flags = fcntl(fd, F_GETFL);
    return flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) != 0 ? -1 : 0;
}

int rdma_verbs_open(const struct rdma_verbs_config *config, struct rdma_verbs **device,
                    char words[RDMA_VERBS_WORDS])
{
    *words = 0;
    *device = NULL;
    if (config->connections < 1 || config->connections > UINT16_MAX) {
        (void)snprintf(words, RDMA_VERBS_WORDS, "%u connections: 1 to %u", config->connections,
                       UINT16_MAX);
        return -EINVAL;
    }
    struct rdma_verbs *d = calloc(1, sizeof *d);
    if (!d)
        return verbs_words(words, NULL, "calloc", ENOMEM);
    d->config = *config;
    d->config.device = d->config.address = NULL;
    if (d->config.connect_ms == 0)
        d->config.connect_ms = 5000;
    if (d->config.ack_timeout == 0)
        d->config.ack_timeout = 14;
    (void)pthread_mutex_init(&d->lock, NULL);
    int error = choose(d, config, words);
    if (error == 0) {
        (void)snprintf(d->name, sizeof d->name, "%.63s", ibv_get_device_name(d->context->device));
        const char *call = "rdma_create_event_channel";
        d->listening = rdma_create_event_channel();
        if (d->listening) {
            call = "fcntl";
            if (set_nonblocking(d->listening->fd) == 0 &&
                set_nonblocking(d->context->async_fd) == 0) {
                call = "ibv_alloc_pd";
                d->pd = ibv_alloc_pd(d->context);
            }
        }
        if (!d->pd)
            error = verbs_words(words, d->name, call, verbs_error(-1));
    }
    if (error == 0)
        error = verbs_learn(d, words);
    if (error != 0) {
        rdma_verbs_close(d);
        return error;
    }
    *device = d;
    return 0;
}

void rdma_verbs_close(struct rdma_verbs *d)
{
    if (!d)
        return;
    for (uint32_t i = 0; i < d->mw_count; i++)
        if (d->mws[i].mw)
            (void)ibv_dealloc_mw(d->mws[i].mw);
    for (uint32_t i = 0; i < d->mr_count; i++)
        if (d->mrs[i].mr)
            (void)ibv_dereg_mr(d->mrs[i].mr);
    free(d->mws);
    free(d->mrs);
    if (d->pd)
        (void)ibv_dealloc_pd(d->pd);
    if (d->listening)
        rdma_destroy_event_channel(d->listening);
    (void)pthread_mutex_destroy(&d->lock);
    free(d);
}

const char *rdma_verbs_device_name(const struct rdma_verbs *device)
{
    return device->name;
}

/* ---- handles ------------------------------------------------------------------------------- */

static bool allocate(struct verbs_handle *h, const struct rdma_verbs_config *config)
{
    h->events_size = 4 * config->connections; /* of each life: REQUEST and three more at most */
    h->conns = calloc(config->connections, sizeof *h->conns);
    h->timers = calloc(config->timers ? config->timers : 1, sizeof *h->timers);
    h->events = calloc(h->events_size, sizeof *h->events);
    h->wrs = calloc(VERBS_BATCH, sizeof *h->wrs);
    h->recvs = calloc(VERBS_BATCH, sizeof *h->recvs);
    h->sges = calloc((size_t)VERBS_BATCH * VERBS_SGES, sizeof *h->sges);
    return h->conns && h->timers && h->events && h->wrs && h->recvs && h->sges;
}

static int watch(struct verbs_handle *h, int fd, uint32_t events)
{
    struct epoll_event event = {.events = events, .data.fd = fd};
    return epoll_ctl(h->epoll, EPOLL_CTL_ADD, fd, &event);
}

/* The call that failed, with errno, or NULL. */
static const char *prepare(struct verbs_handle *h)
{
    h->channel = rdma_create_event_channel();
    if (!h->channel)
        return "rdma_create_event_channel";
    h->completions = ibv_create_comp_channel(h->device->context);
    if (!h->completions)
        return "ibv_create_comp_channel";
    h->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (h->epoll < 0)
        return "epoll_create1";
    h->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    if (h->timer_fd < 0)
        return "timerfd_create";
    h->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (h->wake_fd < 0)
        return "eventfd";
    if (set_nonblocking(h->channel->fd) != 0 || set_nonblocking(h->completions->fd) != 0)
        return "fcntl";
    /* Whoever waits is woken by what concerns the device; one of them takes it. Requests are
     * watched for by those who listen. */
    if (watch(h, h->channel->fd, EPOLLIN) != 0 || watch(h, h->completions->fd, EPOLLIN) != 0 ||
        watch(h, h->timer_fd, EPOLLIN) != 0 || watch(h, h->wake_fd, EPOLLIN) != 0 ||
        watch(h, h->device->context->async_fd, EPOLLIN) != 0)
        return "epoll_ctl";
    return NULL;
}

int rdma_verbs_handle(struct rdma_verbs *device, struct rdma **handle, char words[RDMA_VERBS_WORDS])
{
    *words = 0;
    struct verbs_handle *h = calloc(1, sizeof *h);
    if (!h)
        return verbs_words(words, device->name, "calloc", ENOMEM);
    h->rdma.ops = &operations;
    h->device = device;
    h->epoll = h->timer_fd = h->wake_fd = -1;
    const char *call = "calloc";
    errno = ENOMEM;
    if (allocate(h, &device->config))
        call = prepare(h);
    (void)pthread_mutex_lock(&device->lock);
    h->next = device->handles;
    device->handles = h;
    (void)pthread_mutex_unlock(&device->lock);
    if (call) {
        int error = verbs_words(words, device->name, call, verbs_error(-1));
        rdma_verbs_handle_close(&h->rdma);
        return error;
    }
    for (uint32_t i = 0; i < device->config.connections; i++) {
        h->conns[i].handle = h;
        h->conns[i].number = i;
    }
    *handle = &h->rdma;
    return 0;
}

void rdma_verbs_handle_close(struct rdma *handle)
{
    struct verbs_handle *h = verbs_of(handle);
    struct rdma_verbs *d = h->device;
    for (uint32_t i = 0; h->conns && i < d->config.connections; i++)
        if (h->conns[i].state != VERBS_UNUSED)
            verbs_conn_free(&h->conns[i]);
    verbs_loops_end(h);
    for (uint32_t i = 0; i < h->cq_count; i++)
        if (h->cqs[i]) {
            (void)ibv_destroy_cq(h->cqs[i]->cq);
            free(h->cqs[i]);
        }
    verbs_stop_listening(h);
    (void)pthread_mutex_lock(&d->lock);
    struct verbs_handle **at = &d->handles;
    while (*at && *at != h)
        at = &(*at)->next;
    if (*at)
        *at = h->next;
    (void)pthread_mutex_unlock(&d->lock);
    if (h->completions)
        (void)ibv_destroy_comp_channel(h->completions);
    if (h->channel)
        rdma_destroy_event_channel(h->channel);
    if (h->timer_fd >= 0)
        (void)close(h->timer_fd);
    if (h->wake_fd >= 0)
        (void)close(h->wake_fd);
    if (h->epoll >= 0)
        (void)close(h->epoll);
    free(h->conns);
    free(h->cqs);
    free(h->timers);
    free(h->events);
    free(h->wrs);
    free(h->recvs);
    free(h->sges);
    free(h);
}

void rdma_verbs_counts(const struct rdma *handle, struct rdma_verbs_counts *counts)
{
    *counts = ((const struct verbs_handle *)handle)->counts;
}

/* ---- addresses ----------------------------------------------------------------------------- */

/* Divides "HOST:PORT" or "[HOST]:PORT" into two strings. */
static bool divide(const char *name, char host[NI_MAXHOST], char port[8])
{
    const char *colon = strrchr(name, ':');
    if (!colon || colon == name || colon[1] == 0 || strlen(colon + 1) > 5)
        return false;
    const char *begin = name, *end = colon;
    if (*name == '[') {
        begin++;
        end--;
        if (*end != ']')
            return false;
    } else if (memchr(name, ':', (size_t)(colon - name))) {
        return false; /* IPv6 wants brackets */
    }
    size_t length = (size_t)(end - begin);
    if (length == 0 || length >= NI_MAXHOST)
        return false;
    memcpy(host, begin, length);
    host[length] = 0;
    (void)snprintf(port, 8, "%s", colon + 1);
    char *rest;
    unsigned long number = strtoul(port, &rest, 10);
    return *rest == 0 && port[0] >= '0' && port[0] <= '9' && number <= 65535;
}

/* 0 or what getaddrinfo() returned, EAI_NONAME for another form. */
static int look_up(const char *name, int flags, struct sockaddr_storage *to)
{
    char host[NI_MAXHOST], port[8];
    if (!divide(name, host, port))
        return EAI_NONAME;
    struct addrinfo hints = {.ai_flags = AI_NUMERICSERV | flags, .ai_socktype = SOCK_STREAM}, *list;
    int result = getaddrinfo(host, port, &hints, &list);
    if (result != 0)
        return result;
    *to = (struct sockaddr_storage){.ss_family = 0};
    memcpy(to, list->ai_addr, list->ai_addrlen);
    freeaddrinfo(list);
    return 0;
}

bool verbs_parse_address(const char *address, struct sockaddr_storage *to)
{
    return look_up(address, AI_NUMERICHOST, to) == 0;
}

int rdma_verbs_resolve(const char *name, char address[RDMA_VERBS_ADDRESS],
                       char words[RDMA_VERBS_WORDS])
{
    struct sockaddr_storage to;
    char host[NI_MAXHOST], port[8];
    if (!divide(name, host, port)) {
        (void)snprintf(words, RDMA_VERBS_WORDS,
                       "%.100s: not of the form HOST:PORT (IPv6: [ADDRESS]:PORT)", name);
        return -EINVAL;
    }
    int result = look_up(name, 0, &to);
    if (result != 0) {
        (void)snprintf(words, RDMA_VERBS_WORDS, "%.100s: %s", name, gai_strerror(result));
        return -EADDRNOTAVAIL;
    }
    result = getnameinfo((struct sockaddr *)&to, sizeof to, host, sizeof host, port, sizeof port,
                         NI_NUMERICHOST | NI_NUMERICSERV);
    if (result != 0 || strlen(host) + sizeof port + 4 > RDMA_VERBS_ADDRESS) {
        (void)snprintf(words, RDMA_VERBS_WORDS, "%.100s: %s", name,
                       result ? gai_strerror(result) : "its address is too long");
        return -EADDRNOTAVAIL;
    }
    (void)snprintf(address, RDMA_VERBS_ADDRESS,
                   to.ss_family == AF_INET6 ? "[%.50s]:%s" : "%.50s:%s", host, port);
    return 0;
}
