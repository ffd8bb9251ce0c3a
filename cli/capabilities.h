/* SPDX-License-Identifier: BSD-3-Clause */
/* What a device can do (net/rdma.h), in words, and what of KBTP it can therefore serve. */
#ifndef KBTP_CLI_CAPABILITIES_H
#define KBTP_CLI_CAPABILITIES_H

#include <stddef.h>
#include <stdint.h>

#include "net/rdma.h"

struct capability {
    uint32_t bit; /* enum rdma_cap */
    const char *name;
    const char *lacking; /* what is said of a device without it */
};
/* The n-th, or NULL when there are no more. */
const struct capability *capability(uint32_t n);

struct served {
    const char *name;  /* the draft's, where it has one */
    const char *says;  /* what it is */
    uint16_t feature;  /* enum kbtp_feature, or 0 */
    uint16_t reserved; /* 0 */
    uint32_t needs;    /* enum rdma_cap */
};
/* The n-th, or NULL when there are no more. */
const struct served *served(uint32_t n);
const struct served *served_feature(uint16_t feature);

/* Why a device cannot serve it; "" when it can. */
void served_why_not(const struct served *what, const struct rdma_caps *caps, char *out,
                    size_t size);

#endif
