/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two handles on two hosts, used from plain code: of a device, or of a world whose RNICs run to
 * rest after every call, in each ordering. What works on one must work on all.
 */
#ifndef KBTP_TESTS_SIM_RNIC_PAIR_H
#define KBTP_TESTS_SIM_RNIC_PAIR_H

#include <CUnit/Basic.h>

#include "sim/cpu.h"
#include "sim/device.h"

enum pair_mode { PAIR_DEVICE, PAIR_RDMAP, PAIR_INFINIBAND, PAIR_STRONG, PAIR_MODES };

#define PAIR_OCTETS 512u

struct pair_side {
    struct rdma *rdma;
    char *memory; /* PAIR_OCTETS */
    struct rdma_region region;
    uint32_t cq;
    uint32_t conn;
};

struct pair {
    enum pair_mode mode;
    struct pair_side a, b; /* a connects to b */
    struct sim_device *device;
    struct sim_world *world;
    struct sim_scenario scenario;
};

/* Bits 0: SIM_RNIC_BITS. All but bits and byte orders of `config` is filled in. */
void pair_open(struct pair *pair, enum pair_mode mode, struct sim_rnic_config config);
/* Also connects. Each end has two receives posted at 256 and 320, of 64 octets: wr_id 1 and 2. */
void pair_open_connected(struct pair *pair, enum pair_mode mode, struct sim_rnic_config config);
void pair_close(struct pair *pair);

struct rdma_conn_config pair_config(const struct pair_side *side);
/* A receive of `octets` at `offset`. */
int pair_receive(struct pair_side *side, uint64_t wr_id, uint32_t offset, uint32_t octets);
/* Posts one work request with one SGE. */
int pair_post(struct pair_side *side, struct rdma_wr *wr, uint32_t offset, uint32_t octets);
/* The next completion, which there must be. */
struct rdma_wc pair_wc(struct pair_side *side);
bool pair_no_wc(struct pair_side *side);
/* The next event, which must be of this kind. */
struct rdma_event pair_event(struct pair_side *side, uint32_t kind);
bool pair_no_event(struct pair_side *side);
/*
 * DISCONNECTED with this error, `flushed` completions FLUSHED, DRAINED, and the end is destroyed.
 */
void pair_ends(struct pair_side *side, int error, uint32_t flushed);

#endif
