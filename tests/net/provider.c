/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/net/provider.h"

#include "sim/device.h"
#include "tests/net/provider_timed.h"
#include "tests/net/provider_verbs.h"
#include "tests/net/verbs_inside.h"

/* ---- the trivial one --------------------------------------------------------------------- */

static struct loop loop;

static bool open_loop(void)
{
    loop_init(&loop);
    return true;
}

static void close_loop(void)
{
}

static struct rdma *handle_of_loop(void)
{
    return loop_handle(&loop);
}

static uint32_t left_in_loop(void)
{
    return loop_regions(&loop) + loop_windows(&loop) + loop_connections(&loop) + loop_cqs(&loop);
}

/* ---- the simulated RNIC ------------------------------------------------------------------ */

static struct sim_device *device;

static bool open_device(void)
{
    struct sim_device_config config = {.rnic = {.ordering = SIM_ORDERING_STRONG,
                                                .bits = SIM_RNIC_BITS,
                                                .max_message = 1u << 20,
                                                .max_inline = 256,
                                                .max_reads = 16,
                                                .regions = 64},
                                       .octets = UINT64_C(16) << 20};
    device = sim_device_open(&config);
    return device != NULL;
}

static bool open_infiniband(void)
{
    const uint32_t others = RDMA_CAP_INV_REGION | RDMA_CAP_MASKED;
    struct sim_device_config config = {.rnic = {.ordering = SIM_ORDERING_INFINIBAND,
                                                .bits = SIM_RNIC_BITS & ~others,
                                                .binding = RDMA_BINDING_INFINIBAND,
                                                .max_message = 1u << 20,
                                                .max_inline = 256,
                                                .max_reads = 16,
                                                .regions = 64,
                                                .windows = 16},
                                       .octets = UINT64_C(16) << 20};
    device = sim_device_open(&config);
    return device != NULL;
}

static void close_device(void)
{
    sim_device_close(device);
}

static struct rdma *handle_of_device(void)
{
    const struct sim_rnic_limits limits = {0};
    return sim_device_handle(device, &limits);
}

static void cut_in_device(struct rdma *r, uint32_t conn)
{
    sim_device_cut(r, conn);
}

static uint32_t nobody_knows(void)
{
    return 0;
}

const struct provider providers[PROVIDERS] = {
    {"loop", open_loop, close_loop, handle_of_loop, loop_cut, loop_expire, left_in_loop, &loop,
     false},
    {"simulated RNIC", open_device, close_device, handle_of_device, cut_in_device,
     sim_device_expire, nobody_knows, NULL, false},
    {"timed RNIC", provider_timed_open, provider_timed_close, provider_timed_handle,
     provider_timed_cut, provider_timed_expire, provider_timed_left, NULL, true},
    {"verbs on siw", provider_verbs_open_siw, provider_verbs_close, provider_verbs_handle,
     verbs_inside_cut, verbs_inside_expire, provider_verbs_left, NULL, true},
    {"verbs on rxe", provider_verbs_open_rxe, provider_verbs_close, provider_verbs_handle,
     verbs_inside_cut, verbs_inside_expire, provider_verbs_left, NULL, true},
};

const struct provider provider_infiniband = {
    "InfiniBand",  open_infiniband,   close_device, handle_of_device,
    cut_in_device, sim_device_expire, nobody_knows, NULL,
    false};
