/* SPDX-License-Identifier: BSD-3-Clause */
/* Devices, calls that fail, and events of the device. */
#include "tests/net/fake/state.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

struct fake fake;
pthread_mutex_t fake_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t acknowledged = PTHREAD_COND_INITIALIZER;

/* ---- calls ------------------------------------------------------------------------------- */

bool fake_call(const char *name, int error)
{
    if (++fake.calls != fake.fails)
        return false;
    fake.failed = name;
    fake.failed_errno = errno = error;
    return true;
}

void fake_breaks(const char *rule)
{
    fake.breaches++;
    (void)snprintf(fake.breach, sizeof fake.breach, "%s", rule);
}

static _Noreturn void give_up(const char *call, const char *why)
{
    (void)fprintf(stderr, "%s would never return: %s\n", call, why);
    abort();
}

void fake_wait(const struct fake_reported *events, const char *what)
{
    struct timespec until;
    (void)clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 20;
    while (events->reported != events->acknowledged)
        if (pthread_cond_timedwait(&acknowledged, &fake_lock, &until) != 0)
            give_up(what, "an event was not acknowledged");
}

void fake_acknowledged(struct fake_reported *events)
{
    events->acknowledged++;
    (void)pthread_cond_broadcast(&acknowledged);
}

void fake_ready(int fd, bool ready)
{
    int flags = fcntl(fd, F_GETFL);
    uint64_t number = 1;
    (void)fcntl(fd, F_SETFL, flags | O_NONBLOCK);
    ssize_t got = read(fd, &number, sizeof number);
    number = 1;
    if (ready)
        got = write(fd, &number, sizeof number);
    (void)got;
    (void)fcntl(fd, F_SETFL, flags);
}

int fake_nothing(int fd, const char *call)
{
    if (!(fcntl(fd, F_GETFL) & O_NONBLOCK))
        give_up(call, "its descriptor blocks");
    errno = EAGAIN;
    return -1;
}

/* ---- for tests --------------------------------------------------------------------------- */

void fake_open(const struct fake_config *config)
{
    fake = (struct fake){.config = *config, .port = 40000};
    for (int i = 0; i < 2; i++) {
        struct ibv_device *device = &fake.devices[i];
        bool iwarp = config->kind == FAKE_SIW;
        device->node_type = iwarp ? IBV_NODE_RNIC : IBV_NODE_CA;
        device->transport_type = iwarp ? IBV_TRANSPORT_IWARP : IBV_TRANSPORT_IB;
        (void)snprintf(device->name, sizeof device->name, "fake%d", i);
        (void)snprintf(device->ibdev_path, sizeof device->ibdev_path, "/nonexistent/fake%d", i);
        fake.contexts[i] = (struct ibv_context){.device = device,
                                                .ops = {.alloc_mw = fake_alloc_mw,
                                                        .dealloc_mw = fake_dealloc_mw,
                                                        .poll_cq = fake_poll_cq,
                                                        .req_notify_cq = fake_req_notify_cq,
                                                        .post_send = fake_post_send,
                                                        .post_recv = fake_post_recv},
                                                .cmd_fd = -1,
                                                .async_fd = eventfd(0, EFD_CLOEXEC),
                                                .num_comp_vectors = 1};
    }
}

uint32_t fake_used(void)
{
    uint32_t used = 0;
    (void)pthread_mutex_lock(&fake_lock);
    for (uint32_t i = 0; i < FAKE_MRS; i++)
        used += fake.mrs[i] != NULL;
    for (uint32_t i = 0; i < FAKE_MWS; i++)
        used += fake.mws[i] != NULL;
    for (const struct fake_cq *cq = fake.cqs; cq; cq = cq->other)
        used++;
    for (const struct fake_qp *qp = fake.qps; qp; qp = qp->other)
        used++;
    (void)pthread_mutex_unlock(&fake_lock);
    return used;
}

uint32_t fake_left(void)
{
    uint32_t left = fake_used();
    (void)pthread_mutex_lock(&fake_lock);
    left += fake.pds + fake.channels;
    for (const struct fake_id *id = fake.ids; id; id = id->other)
        left++;
    (void)pthread_mutex_unlock(&fake_lock);
    return left;
}

uint32_t fake_close(void)
{
    uint32_t left = fake_left();
    (void)pthread_mutex_lock(&fake_lock);
    fake_free_ids();
    while (fake.qps)
        fake_free_qp(fake.qps);
    for (uint32_t i = 0; i < FAKE_MWS; i++)
        free(fake.mws[i]);
    for (uint32_t i = 0; i < FAKE_MRS; i++)
        free(fake.mrs[i]);
    while (fake.cqs) {
        struct fake_cq *cq = fake.cqs;
        fake.cqs = cq->other;
        free(cq->entries);
        free(cq);
    }
    while (fake.async) {
        struct fake_async *event = fake.async;
        fake.async = event->next;
        free(event);
    }
    for (int i = 0; i < 2; i++)
        (void)close(fake.contexts[i].async_fd);
    memset(&fake, 0, sizeof fake);
    (void)pthread_mutex_unlock(&fake_lock);
    return left;
}

void fake_fail(uint32_t n)
{
    (void)pthread_mutex_lock(&fake_lock);
    fake.fails = n;
    fake.calls = 0;
    fake.failed = NULL;
    (void)pthread_mutex_unlock(&fake_lock);
}

uint32_t fake_calls(void)
{
    (void)pthread_mutex_lock(&fake_lock);
    uint32_t calls = fake.calls;
    (void)pthread_mutex_unlock(&fake_lock);
    return calls;
}

const char *fake_failed(int *error)
{
    (void)pthread_mutex_lock(&fake_lock);
    const char *failed = fake.failed;
    *error = fake.failed_errno;
    (void)pthread_mutex_unlock(&fake_lock);
    return failed;
}

uint32_t fake_breaches(void)
{
    (void)pthread_mutex_lock(&fake_lock);
    uint32_t breaches = fake.breaches;
    (void)pthread_mutex_unlock(&fake_lock);
    return breaches;
}

const char *fake_breach(void)
{
    return fake.breach;
}

void fake_die(void)
{
    (void)pthread_mutex_lock(&fake_lock);
    fake.dead = true;
    for (struct fake_qp *qp = fake.qps; qp; qp = qp->other)
        qp->qp.state = IBV_QPS_RESET; /* nothing is flushed by what is dead */
    fake_raise(IBV_EVENT_DEVICE_FATAL, NULL, NULL);
    (void)pthread_mutex_unlock(&fake_lock);
}

/* ---- lists of devices -------------------------------------------------------------------- */

struct ibv_device **ibv_get_device_list(int *num_devices)
{
    (void)pthread_mutex_lock(&fake_lock);
    struct ibv_device **list = NULL;
    if (!fake_call("ibv_get_device_list", ENOSYS)) {
        list = calloc(3, sizeof *list);
        for (uint32_t i = 0; list && i < fake.config.devices; i++)
            list[i] = &fake.devices[fake.config.devices - 1 - i];
        *num_devices = (int)fake.config.devices;
    }
    (void)pthread_mutex_unlock(&fake_lock);
    return list;
}

void ibv_free_device_list(struct ibv_device **list)
{
    free((void *)list);
}

const char *ibv_get_device_name(struct ibv_device *device)
{
    return device->name;
}

struct ibv_context *ibv_open_device(struct ibv_device *device)
{
    (void)pthread_mutex_lock(&fake_lock);
    bool failed = fake_call("ibv_open_device", EACCES);
    (void)pthread_mutex_unlock(&fake_lock);
    return failed ? NULL : &fake.contexts[device - fake.devices];
}

int ibv_close_device(struct ibv_context *context)
{
    (void)context;
    return 0;
}

struct ibv_context **rdma_get_devices(int *num_devices)
{
    (void)pthread_mutex_lock(&fake_lock);
    struct ibv_context **list = NULL;
    if (!fake_call("rdma_get_devices", ENODEV)) {
        list = calloc(3, sizeof *list);
        for (uint32_t i = 0; list && i < fake.config.devices; i++)
            list[i] = &fake.contexts[i];
        *num_devices = (int)fake.config.devices;
    }
    (void)pthread_mutex_unlock(&fake_lock);
    return list;
}

void rdma_free_devices(struct ibv_context **list)
{
    free((void *)list);
}

/* ---- what they are ----------------------------------------------------------------------- */

int ibv_query_device(struct ibv_context *context, struct ibv_device_attr *attr)
{
    (void)context;
    (void)pthread_mutex_lock(&fake_lock);
    bool iwarp = fake.config.kind == FAKE_SIW;
    int error = fake_call("ibv_query_device", EIO) ? EIO : 0;
    *attr =
        (struct ibv_device_attr){.max_mr_size = UINT64_MAX,
                                 .vendor_id = iwarp ? 0x626d74 : 0xffffff,
                                 .max_qp_wr = FAKE_WRS,
                                 .device_cap_flags = IBV_DEVICE_MEM_MGT_EXTENSIONS |
                                                     (iwarp ? 0u : IBV_DEVICE_MEM_WINDOW_TYPE_2B),
                                 .max_sge = iwarp ? 6 : 32,
                                 .max_sge_rd = iwarp ? 1 : 32,
                                 .max_cqe = FAKE_CQES,
                                 .max_mr = FAKE_MRS,
                                 .max_qp_rd_atom = iwarp ? 16 : 128,
                                 .max_qp_init_rd_atom = iwarp ? 16 : 128,
                                 .atomic_cap = iwarp ? IBV_ATOMIC_NONE : IBV_ATOMIC_HCA,
                                 .max_mw = iwarp ? 0 : (int)FAKE_MWS,
                                 .phys_port_cnt = 1};
    (void)pthread_mutex_unlock(&fake_lock);
    return error;
}

#undef ibv_query_port
int ibv_query_port(struct ibv_context *context, uint8_t port_num,
                   struct _compat_ibv_port_attr *port_attr)
{
    struct ibv_port_attr *attr = (struct ibv_port_attr *)port_attr;
    (void)context;
    (void)pthread_mutex_lock(&fake_lock);
    int error = fake_call("ibv_query_port", EIO) ? EIO : 0;
    attr->state = IBV_PORT_ACTIVE;
    attr->max_msg_sz = fake.config.kind == FAKE_SIW ? UINT32_MAX : 8u << 20;
    attr->link_layer = IBV_LINK_LAYER_ETHERNET;
    (void)pthread_mutex_unlock(&fake_lock);
    return port_num == 1 ? error : EINVAL;
}

ssize_t _ibv_query_gid_table(struct ibv_context *context, struct ibv_gid_entry *entries,
                             size_t max_entries, uint32_t flags, size_t entry_size)
{
    (void)context, (void)flags, (void)entry_size;
    (void)pthread_mutex_lock(&fake_lock);
    bool failed = fake_call("ibv_query_gid_table", ENODATA);
    (void)pthread_mutex_unlock(&fake_lock);
    if (failed)
        return -ENODATA;
    static const uint8_t here[16] = {[10] = 0xff, [11] = 0xff, [12] = 10, [15] = 1};
    for (uint32_t i = 0; i < 2 && i < max_entries; i++) {
        entries[i] = (struct ibv_gid_entry){
            .gid_index = i, .port_num = 1, .gid_type = IBV_GID_TYPE_ROCE_V1 + i, .ndev_ifindex = 1};
        memcpy(entries[i].gid.raw, here, sizeof here);
    }
    return max_entries < 2 ? (ssize_t)max_entries : 2;
}

struct ibv_pd *ibv_alloc_pd(struct ibv_context *context)
{
    struct ibv_pd *pd = NULL;
    (void)pthread_mutex_lock(&fake_lock);
    if (!fake_call("ibv_alloc_pd", ENOMEM)) {
        pd = calloc(1, sizeof *pd);
        pd->context = context;
        fake.pds++;
    }
    (void)pthread_mutex_unlock(&fake_lock);
    return pd;
}

int ibv_dealloc_pd(struct ibv_pd *pd)
{
    (void)pthread_mutex_lock(&fake_lock);
    bool used = false;
    for (uint32_t i = 0; i < FAKE_MRS; i++)
        used |= fake.mrs[i] && fake.mrs[i]->mr.pd == pd;
    for (const struct fake_qp *qp = fake.qps; qp; qp = qp->other)
        used |= qp->qp.pd == pd;
    if (used)
        fake_breaks("a protection domain is freed that is in use");
    fake.pds--;
    free(pd);
    (void)pthread_mutex_unlock(&fake_lock);
    return 0;
}

/* ---- events of the device ---------------------------------------------------------------- */

void fake_raise(enum ibv_event_type type, struct fake_qp *qp, struct fake_cq *cq)
{
    struct fake_async *event = calloc(1, sizeof *event), **at = &fake.async;
    event->event.event_type = type;
    if (qp)
        event->event.element.qp = &qp->qp;
    else if (cq)
        event->event.element.cq = &cq->cq;
    while (*at)
        at = &(*at)->next;
    *at = event;
    fake_ready(fake.contexts[0].async_fd, true);
}

/* Whose event it is; NULL: the device's. */
static struct fake_reported *counter(const struct ibv_async_event *event)
{
    switch (event->event_type) {
    case IBV_EVENT_CQ_ERR:
        return &((struct fake_cq *)event->element.cq)->async;
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
    case IBV_EVENT_COMM_EST:
        return &((struct fake_qp *)event->element.qp)->async;
    default:
        return NULL;
    }
}

int ibv_get_async_event(struct ibv_context *context, struct ibv_async_event *event)
{
    (void)pthread_mutex_lock(&fake_lock);
    int result = 0;
    struct fake_async *first = fake.async;
    if (!first) {
        result = fake_nothing(context->async_fd, "ibv_get_async_event");
    } else if (fake_call("ibv_get_async_event", EIO)) {
        result = -1;
    } else {
        struct fake_reported *events = counter(&first->event);
        *event = first->event;
        if (events)
            events->reported++;
        fake.async = first->next;
        free(first);
        fake_ready(context->async_fd, fake.async != NULL);
    }
    (void)pthread_mutex_unlock(&fake_lock);
    return result;
}

void ibv_ack_async_event(struct ibv_async_event *event)
{
    (void)pthread_mutex_lock(&fake_lock);
    struct fake_reported *events = counter(event);
    if (events)
        fake_acknowledged(events);
    (void)pthread_mutex_unlock(&fake_lock);
}
