/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/net/probe.h"

#include <errno.h>
#include <string.h>

#include "tests/net/probe_windows.h"

#define WORD 4096u   /* where in side b's memory the word of an atomic is */
#define ROUNDS 1000u /* of what can only be refuted */

/* ---- messages ---------------------------------------------------------------------------- */

static struct probe_answer send_inv(struct probe_sides *s)
{
    struct rdma_wr wr = probe_wr(s, RDMA_SEND_INV, 0);
    struct rdma_wc wc;
    wr.imm_stag = s->b.region.stag;
    if (!(s->caps.bits & RDMA_CAP_INV_REGION))
        return probe_unknown("only windows can be invalidated, which is not tried");
    probe_fill(s, 0, 32, 3);
    if (probe_do(s, &wr, 0, 32) != RDMA_OK || !probe_wc(&s->b, &wc) || wc.status != RDMA_OK)
        return probe_broken("SEND_INV is not executed");
    if (wc.length != 32 || !probe_holds(s, &s->b, PROBE_RECEIVES_AT, 32, 3))
        return probe_broken("the message of a SEND_INV is not what was sent");
    return probe_honoured("SEND_INV arrives");
}

static struct probe_answer inv_region(struct probe_sides *s)
{
    struct rdma_wr write = probe_wr(s, RDMA_WRITE, 0), wr = probe_wr(s, RDMA_SEND_INV, 0);
    struct rdma_wc wc;
    wr.imm_stag = s->b.region.stag;
    if (!(s->caps.bits & RDMA_CAP_SEND_INV))
        return probe_broken("it is claimed without SEND_INV");
    if (probe_do(s, &write, 0, 8) != RDMA_OK)
        return probe_broken("the STag is unusable before");
    if (probe_do(s, &wr, 0, 8) != RDMA_OK || !probe_wc(&s->b, &wc) || wc.status != RDMA_OK)
        return probe_broken("SEND_INV of a region fails");
    probe_fill(s, 0, 8, 11); /* whose completion may say nothing about the peer */
    bool said_so = probe_do(s, &write, 0, 8) == RDMA_OK;
    if ((said_so && (s->caps.bits & RDMA_CAP_WRITE_ACKED)) || probe_holds(s, &s->b, 0, 8, 11))
        return probe_broken("the STag can still be used");
    return probe_honoured("the STag is unusable afterwards");
}

static struct probe_answer immediate(struct probe_sides *s)
{
    struct rdma_wr wr = probe_wr(s, RDMA_WRITE_IMM, 64);
    struct rdma_wc wc;
    wr.imm_stag = 0xfeedbeef;
    probe_fill(s, 0, 32, 5);
    if (probe_do(s, &wr, 0, 32) != RDMA_OK || !probe_wc(&s->b, &wc) || wc.status != RDMA_OK)
        return probe_broken("WRITE_IMM is not executed");
    if (wc.flags != (RDMA_WC_IMM | RDMA_WC_WRITE_IMM) || wc.imm != 0xfeedbeef)
        return probe_broken("the immediate is not what was sent");
    if (!probe_holds(s, &s->b, 64, 32, 5))
        return probe_broken("the data is not there when the immediate is");
    return probe_honoured("data and immediate arrive");
}

/* ---- atomics ----------------------------------------------------------------------------- */

static uint64_t in_order(uint64_t value, bool big_endian)
{
    return big_endian == (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__) ? value
                                                                  : __builtin_bswap64(value);
}

static mem64 *word_of(const struct probe_sides *s)
{
    return (mem64 *)(void *)(s->b.memory + WORD);
}

static void set_word(struct probe_sides *s, uint64_t value)
{
    mem_store_release64(&s->mem, word_of(s), in_order(value, s->caps.atomic_memory_big_endian));
}

static uint64_t get_word(struct probe_sides *s)
{
    return in_order(mem_load64(&s->mem, word_of(s)), s->caps.atomic_memory_big_endian);
}

/* From `before` the work request must make `after`, and return `before`. */
static bool changes(struct probe_sides *s, struct rdma_wr *wr, uint64_t before, uint64_t after)
{
    uint64_t reply;
    set_word(s, before);
    if (probe_do(s, wr, 0, 8) != RDMA_OK)
        return false;
    mem_read(&s->mem, &reply, s->a.memory, 8);
    return in_order(reply, s->caps.atomic_reply_big_endian) == before && get_word(s) == after;
}

static struct rdma_wr fetch_add_wr(const struct probe_sides *s, uint64_t add, uint64_t mask)
{
    struct rdma_wr wr = probe_wr(s, RDMA_FETCH_ADD, WORD);
    wr.fetch_add.add = add;
    wr.fetch_add.mask = mask;
    return wr;
}

static struct rdma_wr cas_wr(const struct probe_sides *s, uint64_t compare, uint64_t compare_mask,
                             uint64_t swap, uint64_t swap_mask)
{
    struct rdma_wr wr = probe_wr(s, RDMA_CAS, WORD);
    wr.cas.compare = compare;
    wr.cas.compare_mask = compare_mask;
    wr.cas.swap = swap;
    wr.cas.swap_mask = swap_mask;
    return wr;
}

static struct probe_answer fetch_add(struct probe_sides *s)
{
    struct rdma_wr wr = fetch_add_wr(s, 5, 0), ticket = fetch_add_wr(s, UINT64_C(1) << 32, 0);
    if (!changes(s, &wr, 0xfffffffe, UINT64_C(0x100000003)) ||
        !changes(s, &ticket, UINT64_MAX, 0xffffffff))
        return probe_broken("FETCH_ADD does not add, or does not return the value from before");
    return probe_honoured("FETCH_ADD adds");
}

/* The counter of a ring with four slots (draft: Examples). */
static struct probe_answer masked(struct probe_sides *s)
{
    struct rdma_wr wr = fetch_add_wr(s, UINT64_C(0x0000000100000010), UINT64_C(0x8000000080000020));
    struct rdma_wr cas = cas_wr(s, 0x34, 0xff, UINT64_C(0xab) << 56, UINT64_C(0xff) << 56);
    if (!changes(s, &wr, UINT64_C(0x0000000300000030), UINT64_C(0x0000000400000000)) ||
        !changes(s, &wr, UINT64_C(0xffffffff00000030), 0))
        return probe_broken("the carry of a masked FETCH_ADD is not discarded");
    if ((s->caps.bits & RDMA_CAP_CAS) &&
        (!changes(s, &cas, UINT64_C(0x1122334455667734), UINT64_C(0xab22334455667734)) ||
         !changes(s, &cas, 0x35, 0x35)))
        return probe_broken("the masks of a CAS are not kept");
    return probe_honoured("each field is by itself");
}

static struct probe_answer compare_and_swap(struct probe_sides *s)
{
    struct rdma_wr wr = cas_wr(s, 7, UINT64_MAX, 9, UINT64_MAX);
    if (!changes(s, &wr, 7, 9))
        return probe_broken("CAS does not swap what is equal");
    if (!changes(s, &wr, 8, 8))
        return probe_broken("CAS swaps what is not equal");
    return probe_honoured("CAS compares and swaps");
}

static struct probe_answer atomic_cpu(struct probe_sides *s)
{
    struct rdma_wr wr = fetch_add_wr(s, 1, 0);
    struct rdma_sge sge = {s->a.memory, 8, s->a.region.lkey};
    struct rdma_wc wc;
    wr.sges = &sge;
    wr.sge_count = 1;
    if (!(s->caps.bits & RDMA_CAP_FETCH_ADD))
        return probe_unknown("there is no FETCH_ADD to try it with");
    if (in_order(1, s->caps.atomic_memory_big_endian) != 1)
        return probe_unknown("the words are in another order than this CPU's");
    set_word(s, 0);
    for (uint32_t n = 0; n < ROUNDS; n++) {
        if (rdma_post_send(s->a.rdma, s->a.conn, &wr, 1) != 0)
            return probe_broken("FETCH_ADD is refused");
        mem_fetch_add64(&s->mem, word_of(s), UINT64_C(1) << 32);
        if (!probe_wc(&s->a, &wc) || wc.status != RDMA_OK)
            return probe_broken("FETCH_ADD fails");
    }
    if (get_word(s) != (UINT64_C(1) << 32 | 1) * ROUNDS)
        return probe_broken("an addition of a CPU or of the RNIC was lost");
    return probe_unknown("no addition was lost; that none ever is cannot be shown");
}

/* ---- memory and order -------------------------------------------------------------------- */

static struct probe_answer base_to(struct probe_sides *s)
{
    /* As far into its page as the address: some devices ask for that. */
    const uint64_t in_page = (uintptr_t)(s->b.memory + 8192) % 4096;
    const uint64_t wanted[] = {in_page, 0x100000 + in_page, (UINT64_C(1) << 40) + in_page};
    for (uint32_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        struct rdma_region region;
        struct rdma_wr wr = probe_wr(s, RDMA_WRITE, 0);
        if (rdma_reg(s->b.rdma, s->b.memory + 8192, 64, RDMA_LOCAL_WRITE | RDMA_REMOTE_WRITE,
                     wanted[i], &region) != 0)
            return probe_broken("the region is not registered");
        wr.remote_stag = region.stag;
        wr.remote_to = wanted[i] + 16;
        probe_fill(s, 0, 48, (uint8_t)(i + 1));
        bool placed = region.base_to == wanted[i] && probe_do(s, &wr, 0, 48) == RDMA_OK &&
                      probe_holds(s, &s->b, 8192 + 16, 48, (uint8_t)(i + 1));
        rdma_dereg(s->b.rdma, &region);
        if (!placed)
            return probe_broken("the base is not what was wanted");
    }
    return probe_honoured("the base is what was wanted");
}

static struct probe_answer ordered_writes(struct probe_sides *s)
{
    for (uint32_t n = 0; n < ROUNDS; n++) {
        uint8_t first = (uint8_t)(n % 250 + 1);
        struct rdma_sge sges[2] = {{s->a.memory, 64, s->a.region.lkey},
                                   {s->a.memory + 64, 4, s->a.region.lkey}};
        struct rdma_wr wrs[2] = {probe_wr(s, RDMA_WRITE, 0), probe_wr(s, RDMA_WRITE, WORD)};
        struct rdma_wc wc;
        wrs[0].flags = 0;
        for (uint32_t i = 0; i < 2; i++) {
            wrs[i].sges = &sges[i];
            wrs[i].sge_count = 1;
        }
        probe_fill(s, 0, 68, first);
        set_word(s, 0);
        if (rdma_post_send(s->a.rdma, s->a.conn, wrs, 2) != 0)
            return probe_broken("WRITE is refused");
        uint32_t polls = 0;
        while (!probe_holds(s, &s->b, WORD, 4, (uint8_t)(first + 7 * 64)) && polls++ < 1000)
            ;
        if (polls < 1000 && !probe_holds(s, &s->b, 0, 64, first))
            return probe_broken("a later WRITE is visible before an earlier one");
        if (!probe_wc(&s->a, &wc) || wc.status != RDMA_OK)
            return probe_broken("WRITE fails");
    }
    return probe_unknown("no WRITE came too early; that none ever does cannot be shown");
}

static struct probe_answer write_acked(struct probe_sides *s)
{
    for (uint32_t n = 0; n < ROUNDS; n++) {
        struct rdma_wr wr = probe_wr(s, RDMA_WRITE, 0);
        probe_fill(s, 0, 64, (uint8_t)(n + 1));
        if (probe_do(s, &wr, 0, 64) != RDMA_OK)
            return probe_broken("WRITE fails");
        if (!probe_holds(s, &s->b, 0, 64, (uint8_t)(n + 1)))
            return probe_broken("a WRITE was complete before its data was placed");
    }
    return probe_unknown("all data was there; that it always is cannot be shown");
}

/* ---- what is hardly tried ---------------------------------------------------------------- */

/* These find a device that has nothing of the kind, and no other lie; see probe.h. */

static struct probe_answer solicited(struct probe_sides *s)
{
    if (rdma_cq_arm(s->b.rdma, s->b.cq, true) != 0)
        return probe_broken("arming for solicited events is refused");
    return probe_unknown("arming works; whom it wakes is not seen here");
}

static struct probe_answer chain(struct probe_sides *s)
{
    return s->a.rdma->ops->chain ? probe_unknown("there are operations; they are not tried")
                                 : probe_broken("there are no operations for chains");
}

/* ---- not claimed ------------------------------------------------------------------------- */

/* A work request that needs a bit that is not set is refused with -ENOTSUP (net/rdma.h). */
static struct probe_answer not_claimed(struct probe_sides *s, enum rdma_cap bit)
{
    struct rdma_wr wr = {0};
    if (bit == RDMA_CAP_SEND_INV)
        wr = probe_wr(s, RDMA_SEND_INV, 0);
    else if (bit == RDMA_CAP_IMM)
        wr = probe_wr(s, RDMA_WRITE_IMM, 0);
    else if (bit == RDMA_CAP_FETCH_ADD)
        wr = fetch_add_wr(s, 1, 0);
    else if (bit == RDMA_CAP_MASKED)
        wr = fetch_add_wr(s, 1, UINT64_C(1) << 31);
    else if (bit == RDMA_CAP_CAS)
        wr = cas_wr(s, 1, UINT64_MAX, 1, UINT64_MAX);
    struct rdma_window it;
    bool refused = true;
    if (wr.op != RDMA_NOOP)
        refused = probe_do(s, &wr, 0, 8) == -ENOTSUP;
    else if (bit == RDMA_CAP_SOLICITED)
        refused = rdma_cq_arm(s->b.rdma, s->b.cq, true) == -ENOTSUP;
    else if (bit == RDMA_CAP_WINDOW)
        refused = rdma_window_alloc(s->b.rdma, &it) == -ENOTSUP;
    return refused ? probe_unknown("not claimed")
                   : probe_broken("not claimed, but not refused with -ENOTSUP");
}

/* ---- all --------------------------------------------------------------------------------- */

static const struct {
    enum rdma_cap bit;
    const char *name;
    struct probe_answer (*probe)(struct probe_sides *s);
} probes[] = {
    {RDMA_CAP_SEND_INV, "SEND_INV", send_inv},
    {RDMA_CAP_INV_REGION, "INV_REGION", inv_region},
    {RDMA_CAP_INV_WINDOW, "INV_WINDOW", probe_inv_window},
    {RDMA_CAP_IMM, "IMM", immediate},
    {RDMA_CAP_FETCH_ADD, "FETCH_ADD", fetch_add},
    {RDMA_CAP_MASKED, "MASKED", masked},
    {RDMA_CAP_CAS, "CAS", compare_and_swap},
    {RDMA_CAP_ATOMIC_CPU, "ATOMIC_CPU", atomic_cpu},
    {RDMA_CAP_WINDOW, "WINDOW", probe_window},
    {RDMA_CAP_BASE_TO, "BASE_TO", base_to},
    {RDMA_CAP_ORDERED_WRITES, "ORDERED_WRITES", ordered_writes},
    {RDMA_CAP_WRITE_ACKED, "WRITE_ACKED", write_acked},
    {RDMA_CAP_SOLICITED, "SOLICITED", solicited},
    {RDMA_CAP_CHAIN, "CHAIN", chain},
    {RDMA_CAP_CHAIN_WAITD, "CHAIN_WAITD", chain},
    {RDMA_CAP_CHAIN_CENABLE, "CHAIN_CENABLE", chain},
    {RDMA_CAP_CHAIN_CQE, "CHAIN_CQE", chain},
    {RDMA_CAP_CHAIN_STRIDED, "CHAIN_STRIDED", chain},
};

#define PROBES (sizeof probes / sizeof *probes)

static uint32_t index_of(enum rdma_cap bit)
{
    uint32_t i = 0;
    while (i < PROBES && probes[i].bit != bit)
        i++;
    return i;
}

const char *probe_cap_name(enum rdma_cap bit)
{
    uint32_t i = index_of(bit);
    return i < PROBES ? probes[i].name : NULL;
}

struct probe_answer probe_cap(struct rdma *a, struct rdma *b, const char *address,
                              enum rdma_cap bit)
{
    const struct rdma_conn_config config = {
        .send_depth = 4, .recv_depth = 4, .max_sge = 1, .reads_out = 1, .reads_in = 1};
    struct probe_sides sides;
    uint32_t i = index_of(bit);
    if (i == PROBES)
        return probe_unknown("nobody knows this bit");
    struct probe_answer answer = probe_broken("no connection can be made");
    if (probe_open(&sides, a, b, address, &config) == 0)
        answer = sides.caps.bits & bit ? probes[i].probe(&sides) : not_claimed(&sides, bit);
    probe_close(&sides);
    return answer;
}
