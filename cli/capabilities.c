/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/capabilities.h"

#include <stdio.h>
#include <string.h>

#include "ref/wire_names.h"

static const struct capability capabilities[] = {
    {RDMA_CAP_SEND_INV, "SEND_INV", "cannot send with invalidate"},
    {RDMA_CAP_INV_REGION, "INV_REGION", "regions cannot be invalidated by peers"},
    {RDMA_CAP_INV_WINDOW, "INV_WINDOW", "windows cannot be invalidated by peers"},
    {RDMA_CAP_IMM, "IMM", "no Immediate Data"},
    {RDMA_CAP_FETCH_ADD, "FETCH_ADD", "no FetchAdd"},
    {RDMA_CAP_MASKED, "MASKED", "no masked atomics"},
    {RDMA_CAP_CAS, "CAS", "no CmpSwap"},
    {RDMA_CAP_ATOMIC_CPU, "ATOMIC_CPU", "its atomics are none against those of CPUs (I-37)"},
    {RDMA_CAP_WINDOW, "WINDOW", "no type 2B memory windows"},
    {RDMA_CAP_BASE_TO, "BASE_TO", "base Tagged Offsets cannot be chosen"},
    {RDMA_CAP_ORDERED_WRITES, "ORDERED_WRITES", "RDMA Writes may become visible in any order"},
    {RDMA_CAP_WRITE_ACKED, "WRITE_ACKED", "an RDMA Write's completion proves no placement"},
    {RDMA_CAP_SOLICITED, "SOLICITED", "no solicited events"},
    {RDMA_CAP_CHAIN, "CHAIN", "no chains of work requests in this version"},
    {RDMA_CAP_CHAIN_WAITD, "CHAIN_WAITD", "chains cannot wait for data"},
    {RDMA_CAP_CHAIN_CENABLE, "CHAIN_CENABLE", "chains cannot branch"},
    {RDMA_CAP_CHAIN_CQE, "CHAIN_CQE", "chains cannot read completions"},
    {RDMA_CAP_CHAIN_STRIDED, "CHAIN_STRIDED", "no strided regions"},
    {RDMA_CAP_LOOP, "LOOP", "no queue pair of the device with itself"},
};

static const struct served all[] = {
    {.name = "requests", .says = "LOAD, STORE, ALLOC_STORE, FREE, answered by a CPU"},
    {.name = "DIRECT_LOAD",
     .says = "initiators read table and pool",
     .feature = KBTP_FEATURE_DIRECT_LOAD},
    {.name = "DIRECT_ALLOC",
     .says = "initiators take tickets and write blocks",
     .feature = KBTP_FEATURE_DIRECT_ALLOC,
     .needs = RDMA_CAP_WINDOW | RDMA_CAP_FETCH_ADD},
    {.name = "RECORD_COMPLETION",
     .says = "completions are written",
     .feature = KBTP_FEATURE_RECORD_COMPLETION,
     .needs = RDMA_CAP_IMM | RDMA_CAP_ORDERED_WRITES},
    {.name = "INVALIDATE",
     .says = "completions take back the STag of the request",
     .needs = RDMA_CAP_SEND_INV},
    {.name = "windows",
     .says = "an initiator's STags are valid for one request",
     .needs = RDMA_CAP_WINDOW},
    {.name = "chains", .says = "requests answered by the RNIC alone", .needs = RDMA_CAP_CHAIN},
};

const struct capability *capability(uint32_t n)
{
    return n < sizeof capabilities / sizeof *capabilities ? &capabilities[n] : NULL;
}

const struct served *served(uint32_t n)
{
    return n < sizeof all / sizeof *all ? &all[n] : NULL;
}

const struct served *served_feature(uint16_t feature)
{
    for (uint32_t n = 0; n < sizeof all / sizeof *all; n++)
        if (all[n].feature == feature)
            return &all[n];
    return NULL;
}

static void add(char *out, size_t size, const char *words)
{
    size_t used = strlen(out);
    (void)snprintf(out + used, size - used, "%s%s", used ? "; " : "", words);
}

void served_why_not(const struct served *what, const struct rdma_caps *caps, char *out, size_t size)
{
    uint32_t needs = what->needs;
    bool rdmap = caps->binding == RDMA_BINDING_RDMAP;
    out[0] = 0;
    /* Elsewhere counters may have the InfiniBand form (I-38). */
    if (what->feature == KBTP_FEATURE_DIRECT_ALLOC && rdmap)
        needs |= RDMA_CAP_MASKED;
    /* ALLOC_STORE takes tickets from the same Head: a CPU, or the device for it (I-37). */
    if (what->feature == KBTP_FEATURE_DIRECT_ALLOC && !(caps->bits & RDMA_CAP_LOOP))
        needs |= RDMA_CAP_ATOMIC_CPU;
    if (what->feature == KBTP_FEATURE_RECORD_COMPLETION && rdmap) {
        add(out, size, "RDMAP does not order a record behind its data");
        return;
    }
    for (uint32_t n = 0; n < sizeof capabilities / sizeof *capabilities; n++)
        if (needs & ~caps->bits & capabilities[n].bit)
            add(out, size, capabilities[n].lacking);
}
