/* SPDX-License-Identifier: BSD-3-Clause */
/* What a caller of the protocol hands in: its CPU's ways to shared memory and to the device. */
#ifndef KBTP_REF_CPU_H
#define KBTP_REF_CPU_H

#include "net/mem.h"
#include "net/rdma.h"

struct kbtp_cpu {
    struct mem *mem;
    struct rdma *rdma;
};

#endif
