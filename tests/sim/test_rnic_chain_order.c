/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What chain queues promise and what they do not, in every order of steps: WAIT and ENABLE, the
 * moment of the fetch, FENCE. A test is named after the rule or hazard; each looks at all three
 * orderings, at numbers that wrap, and at fields of both byte orders where it patches.
 */
#include "chain_world.h"

#include <string.h>

#include "tests/run.h"

#define RDMAP SIM_ORDERING_RDMAP
#define STRONG SIM_ORDERING_STRONG

static const enum sim_ordering orderings[] = {RDMAP, SIM_ORDERING_INFINIBAND, STRONG};
static const uint32_t firsts[] = {0, 0xfffffffeu, 0x7fffffffu};
static struct cw_outcomes o;

static void set_word(const struct cw *w, uint32_t word, uint64_t value)
{
    memcpy((void *)w->words[word], &value, sizeof value);
}

/* Word `word` is the same in all outcomes. */
static bool always(uint32_t word, uint64_t value)
{
    for (uint32_t i = 0; i < o.count; i++)
        if (o.all[i].word[word] != value)
            return false;
    return o.count != 0;
}

/* ---- WAIT, ENABLE ------------------------------------------------------------------------ */

/* Word 1 is read after a READ that fetched it from word 0 was waited for. */
static void two_reads_in_stages(const struct cw *w)
{
    set_word(w, 0, 5);
    cw_put_read(w, 0, 0, 1, RDMA_SIGNALED);
    cw_put_read(w, 1, 1, 2, RDMA_SIGNALED);
    cw_put_stage(w, 0, &w->loop, 1, &w->loop, 2);
    cw_enable(w, &w->loop, 1);
    cw_enable(w, &w->ctrl, 2);
}

static void wait_then_enable(void)
{
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++) {
            cw_run((struct cw_test){.set_up = two_reads_in_stages,
                                    .ordering = orderings[i],
                                    .first = firsts[j]},
                   &o);
            CU_ASSERT(always(1, 5));
            CU_ASSERT(always(2, 5));
            CU_ASSERT_EQUAL(o.all[0].completions[0], 2);
            CU_ASSERT_EQUAL(o.all[0].completions[1], 0); /* not SIGNALED */
        }
}

/* Counts are absolute: one that was reached before is over at once, one too high never. */
static void wait_for_too_many(const struct cw *w)
{
    two_reads_in_stages(w);
    cw_put_stage(w, 1, &w->loop, 1, &w->loop, 1); /* over; the limit does not fall */
    cw_put_stage(w, 2, &w->loop, 3, &w->send, 1);
    cw_enable(w, &w->ctrl, 6);
}

static void counts_are_absolute(void)
{
    for (int j = 0; j < 3; j++) {
        cw_run((struct cw_test){.set_up = wait_for_too_many, .first = firsts[j]}, &o);
        CU_ASSERT(always(2, 5));
        for (uint32_t i = 0; i < o.count; i++) {
            CU_ASSERT_EQUAL(o.all[i].completions[0], 2);
            CU_ASSERT_EQUAL(o.all[i].status[0], RDMA_OK);
            CU_ASSERT_EQUAL(o.all[i].completions[2], 0);
            CU_ASSERT_EQUAL(o.all[i].status[2], RDMA_OK); /* nothing of it was fetched */
        }
    }
}

/* ---- hazard 1: what was enabled may be fetched long before it is executed ---------------- */

/* Work request 1 writes word 3 to word 4 until a patch makes it word 5. */
static void put_patched(const struct cw *w, bool in_stages)
{
    void *first = NULL, *last = NULL;
    uint32_t number = w->first + 1;
    CU_ASSERT_EQUAL(rdma_chain_field(w->b, &w->loop, number, RDMA_FIELD_REMOTE_TO, 0, 0, &first),
                    8);
    CU_ASSERT_EQUAL(rdma_chain_field(w->b, &w->loop, number, RDMA_FIELD_REMOTE_TO, 0, 7, &last), 8);
    void *at = (uintptr_t)first < (uintptr_t)last ? first : last;
    uint8_t patch[8];
    CU_ASSERT_EQUAL(rdma_chain_encode(w->b, RDMA_FIELD_REMOTE_TO, cw_to(w, 5), patch), 8);
    memcpy((void *)w->words[0], patch, 8);
    set_word(w, 3, 7);
    struct rdma_sge sge = {at, 8, w->loop.region.lkey};
    struct rdma_wr read = {.op = RDMA_READ,
                           .flags = RDMA_SIGNALED,
                           .sges = &sge,
                           .sge_count = 1,
                           .remote_to = cw_to(w, 0),
                           .remote_stag = w->region.stag};
    cw_put(w, &w->loop, 0, &read);
    cw_put_write(w, 1, 3, 4, RDMA_SIGNALED | RDMA_FENCE);
    cw_put_stage(w, 0, &w->loop, 1, &w->loop, 2);
    cw_enable(w, &w->loop, in_stages ? 1 : 2);
    cw_enable(w, &w->ctrl, 2);
}

static void put_patched_in_stages(const struct cw *w)
{
    put_patched(w, true);
}

static void put_patched_at_once(const struct cw *w)
{
    put_patched(w, false);
}

static void hazard_1_prefetch(void)
{
    for (int i = 0; i < 6; i++) {
        struct cw_test test = {.set_up = put_patched_in_stages,
                               .ordering = orderings[i % 3],
                               .first = firsts[i % 3],
                               .big_endian = i >= 3};
        cw_run(test, &o);
        CU_ASSERT(always(4, 0));
        CU_ASSERT(always(5, 7));
        /* FENCE alone is too late: it holds back the execution, not the fetch. */
        test.set_up = put_patched_at_once;
        cw_run(test, &o);
        CU_ASSERT(cw_has(&o, 4, 7));
        CU_ASSERT(cw_has(&o, 5, 7));
    }
}

/* A device that fetches nothing ahead hides it: work request 1 finds no room before 0 is done. */
static void prefetch_is_bounded(void)
{
    cw_run((struct cw_test){.set_up = put_patched_at_once, .send_depth = 1}, &o);
    CU_ASSERT(always(5, 7));
    CU_ASSERT(always(4, 0));
}

/* By the CPU: before the doorbell it is seen, after it may be. */
static void put_write_3_to_4(const struct cw *w)
{
    set_word(w, 3, 7);
    cw_put_write(w, 0, 3, 4, RDMA_SIGNALED);
}

static void patch_to_5(struct sim_agent *agent, const struct cw *w)
{
    uint8_t octet[8];
    void *at;
    uint64_t octets = cw_to(w, 5);
    CU_ASSERT_EQUAL(rdma_chain_encode(w->b, RDMA_FIELD_REMOTE_TO, octets, octet), 8);
    rdma_chain_field(w->b, &w->loop, w->first, RDMA_FIELD_REMOTE_TO, 0, 7, &at);
    mem_write(&agent->mem, at, octet, 8); /* little-endian: lane 7 lies lowest */
}

static bool patch_then_enable(struct sim_agent *agent, const struct cw *w, struct cw_private *p)
{
    patch_to_5(agent, w);
    p->result[0] = (uint64_t)rdma_chain_enable(&agent->rdma, &w->loop, w->first + 1);
    return true;
}

static bool enable_then_patch(struct sim_agent *agent, const struct cw *w, struct cw_private *p)
{
    p->result[0] = (uint64_t)rdma_chain_enable(&agent->rdma, &w->loop, w->first + 1);
    patch_to_5(agent, w);
    return true;
}

static void patches_by_the_cpu(void)
{
    cw_run((struct cw_test){.set_up = put_write_3_to_4, .b = patch_then_enable}, &o);
    CU_ASSERT(always(5, 7));
    CU_ASSERT(always(4, 0));
    cw_run((struct cw_test){.set_up = put_write_3_to_4, .b = enable_then_patch}, &o);
    CU_ASSERT(cw_has(&o, 4, 7));
    CU_ASSERT(cw_has(&o, 5, 7));
}

/* In a poll: put, enable, and ask how far it is until all is done. */
static bool put_and_wait(struct sim_agent *agent, const struct cw *w, struct cw_private *p)
{
    struct rdma_sge sge = cw_sge(w, 1);
    struct rdma_wr read = {.op = RDMA_READ,
                           .flags = RDMA_SIGNALED,
                           .sges = &sge,
                           .sge_count = 1,
                           .remote_to = cw_to(w, 0),
                           .remote_stag = w->region.stag};
    struct rdma_chain_state state;
    if (p->stage == 0) {
        p->stage = 1;
        p->result[0] = (uint64_t)rdma_chain_put(&agent->rdma, &w->loop, w->first, &read);
        p->result[1] = (uint64_t)rdma_chain_enable(&agent->rdma, &w->loop, w->first + 1);
        return false;
    }
    if (rdma_chain_state(&agent->rdma, &w->loop, &state) != 0 || state.completions != w->first + 1)
        return false;
    p->result[2] = mem_load64(&agent->mem, w->words[1]);
    return true;
}

static void set_word_0(const struct cw *w)
{
    set_word(w, 0, 5);
}

static void calls_in_a_poll(void)
{
    for (int i = 0; i < 3; i++) {
        cw_run((struct cw_test){.set_up = set_word_0,
                                .b = put_and_wait,
                                .ordering = orderings[i],
                                .first = firsts[i]},
               &o);
        CU_ASSERT_EQUAL(o.count, 1);
        CU_ASSERT_EQUAL(o.all[0].b[0], 0);
        CU_ASSERT_EQUAL(o.all[0].b[1], 0);
        CU_ASSERT_EQUAL(o.all[0].b[2], 5);
    }
}

/* ---- hazards 2 to 5 ---------------------------------------------------------------------- */

static uint16_t second_flags;

/* Hazard 2: what a READ brings is there for the next one only behind a FENCE. */
static void read_then_read(const struct cw *w)
{
    set_word(w, 0, 5);
    cw_put_read(w, 0, 0, 1, 0);
    cw_put_read(w, 1, 1, 2, second_flags | RDMA_SIGNALED);
    cw_enable(w, &w->loop, 2);
}

/* The same when the second one gathers. */
static void read_then_gather(const struct cw *w)
{
    set_word(w, 0, 5);
    cw_put_read(w, 0, 0, 1, 0);
    cw_put_write(w, 1, 1, 2, second_flags | RDMA_SIGNALED);
    cw_enable(w, &w->loop, 2);
}

static void hazard_2_landing(void)
{
    for (int i = 0; i < 6; i++) {
        struct cw_test test = {.set_up = i < 3 ? read_then_read : read_then_gather,
                               .ordering = orderings[i % 3]};
        second_flags = RDMA_FENCE;
        cw_run(test, &o);
        CU_ASSERT(always(2, 5));
        second_flags = 0;
        cw_run(test, &o);
        CU_ASSERT(cw_has(&o, 2, 5));
        CU_ASSERT_EQUAL(cw_has(&o, 2, 0), test.ordering != STRONG);
    }
}

/* Hazard 3: a slot is read, then consumed. RFC 5040 5.5 rule 12. */
static void read_then_overwrite(const struct cw *w)
{
    set_word(w, 0, 5);
    set_word(w, 1, UINT64_MAX);
    cw_put_read(w, 0, 0, 2, 0);
    cw_put_write(w, 1, 1, 0, second_flags | RDMA_SIGNALED);
    cw_enable(w, &w->loop, 2);
}

static void hazard_3_overwritten(void)
{
    for (int i = 0; i < 3; i++) {
        struct cw_test test = {.set_up = read_then_overwrite, .ordering = orderings[i]};
        second_flags = RDMA_FENCE;
        cw_run(test, &o);
        CU_ASSERT(always(2, 5));
        CU_ASSERT(always(0, UINT64_MAX));
        second_flags = 0;
        cw_run(test, &o);
        CU_ASSERT(cw_has(&o, 2, 5));
        CU_ASSERT_EQUAL(cw_has(&o, 2, UINT64_MAX), orderings[i] != STRONG);
    }
}

/* Hazard 4: the flags of an entry are written after its body. RFC 5040 5.5 rule 3. */
static void write_then_write(const struct cw *w)
{
    set_word(w, 0, 5);
    set_word(w, 1, 1);
    cw_put_write(w, 0, 0, 2, 0);
    if (second_flags == 0) {
        cw_put_write(w, 1, 1, 3, RDMA_SIGNALED);
        cw_enable(w, &w->loop, 2);
        return;
    }
    cw_put_read(w, 1, 0, 7, 0); /* a round trip */
    cw_put_write(w, 2, 1, 3, RDMA_SIGNALED | RDMA_FENCE);
    cw_enable(w, &w->loop, 3);
}

static bool look_at_flags_then_body(struct sim_agent *agent, const struct cw *w,
                                    struct cw_private *p)
{
    p->result[0] = mem_load64(&agent->mem, w->words[3]);
    p->result[1] = mem_load64(&agent->mem, w->words[2]);
    return true;
}

static void hazard_4_write_then_write(void)
{
    for (int i = 0; i < 6; i++) {
        bool flags_without_body = false, both = false;
        second_flags = i >= 3;
        cw_run((struct cw_test){.set_up = write_then_write,
                                .b = look_at_flags_then_body,
                                .ordering = orderings[i % 3]},
               &o);
        for (uint32_t j = 0; j < o.count; j++) {
            flags_without_body |= o.all[j].b[0] == 1 && o.all[j].b[1] == 0;
            both |= o.all[j].b[0] == 1 && o.all[j].b[1] == 5;
        }
        CU_ASSERT(both);
        CU_ASSERT_EQUAL(flags_without_body, second_flags == 0 && orderings[i % 3] == RDMAP);
    }
}

/* Hazard 5: a WRITE that completed was not placed (rule 9), so a stage ends with a READ. */
static void write_then_read_in_stages(const struct cw *w)
{
    set_word(w, 0, 5);
    cw_put_write(w, 0, 0, 1, RDMA_SIGNALED);
    cw_put_stage(w, 0, &w->loop, 1, &w->send, 1);
    struct rdma_sge sge = cw_sge(w, 1); /* of the word that the WRITE wrote */
    struct rdma_wr send = {.op = RDMA_SEND, .flags = RDMA_SIGNALED, .sges = &sge, .sge_count = 1};
    cw_put(w, &w->send, 0, &send);
    cw_enable(w, &w->loop, 1);
    cw_enable(w, &w->ctrl, 2);
}

static bool take_message(struct sim_agent *agent, const struct cw *w, struct cw_private *p)
{
    struct rdma_wc wc;
    if (rdma_cq_poll(&agent->rdma, w->cq_a, &wc, 1) != 1)
        return false;
    CU_ASSERT_EQUAL(wc.status, RDMA_OK);
    mem_read(&agent->mem, &p->result[0], w->buffer, 8);
    return true;
}

static bool a_has(uint64_t value)
{
    for (uint32_t i = 0; i < o.count; i++)
        if (o.all[i].a[0] == value)
            return true;
    return false;
}

static void with_barrier(const struct cw *w)
{
    set_word(w, 0, 5);
    cw_put_write(w, 0, 0, 1, 0);
    cw_put_read(w, 1, 0, 7, RDMA_SIGNALED); /* rule 5: delivered behind the WRITE */
    cw_put_stage(w, 0, &w->loop, 1, &w->send, 1);
    struct rdma_sge sge = cw_sge(w, 1);
    struct rdma_wr send = {.op = RDMA_SEND, .flags = RDMA_SIGNALED, .sges = &sge, .sge_count = 1};
    cw_put(w, &w->send, 0, &send);
    cw_enable(w, &w->loop, 2);
    cw_enable(w, &w->ctrl, 2);
}

static void hazard_5_write_completes_early(void)
{
    for (int i = 0; i < 3; i++) {
        struct cw_test test = {
            .set_up = write_then_read_in_stages, .a = take_message, .ordering = orderings[i]};
        cw_run(test, &o);
        CU_ASSERT(a_has(5));
        CU_ASSERT_EQUAL(a_has(0), orderings[i] == RDMAP);
        test.set_up = with_barrier;
        cw_run(test, &o);
        CU_ASSERT(a_has(5));
        CU_ASSERT(!a_has(0));
    }
}

/* ---- hazard 17: what fails counts -------------------------------------------------------- */

static void bad_read_then_send(const struct cw *w)
{
    struct rdma_sge sge = cw_sge(w, 1);
    struct rdma_wr read = {.op = RDMA_READ,
                           .sges = &sge,
                           .sge_count = 1,
                           .remote_to = cw_to(w, 0),
                           .remote_stag = w->region.stag + 1};
    struct rdma_wr noop = {.op = RDMA_NOOP, .flags = RDMA_SIGNALED};
    set_word(w, 0, 5);
    cw_put(w, &w->loop, 0, &read);
    cw_put_read(w, 1, 0, 2, RDMA_FENCE); /* not SIGNALED: counts when it is flushed */
    cw_put_read(w, 2, 0, 3, 0);
    cw_put(w, &w->send, 0, &noop);
    cw_put_stage(w, 0, &w->loop, 2, &w->loop, 3);
    cw_put_stage(w, 1, &w->loop, 3, &w->send, 1);
    cw_enable(w, &w->loop, 2);
    cw_enable(w, &w->ctrl, 4);
}

static void hazard_17_errors_count(void)
{
    for (int i = 0; i < 3; i++) {
        cw_run((struct cw_test){.set_up = bad_read_then_send,
                                .ordering = orderings[i],
                                .first = firsts[i]},
               &o);
        CU_ASSERT(always(2, 0)); /* nothing after it begins */
        CU_ASSERT(always(3, 0));
        for (uint32_t j = 0; j < o.count; j++) {
            CU_ASSERT_EQUAL(o.all[j].status[0], RDMA_REMOTE_ACCESS);
            CU_ASSERT_EQUAL(o.all[j].completions[0], 3);
            CU_ASSERT_EQUAL(o.all[j].completions[2], 1); /* the chain went on */
        }
    }
}

/* An ENABLE of more than was put: what the place holds is no work request of that number. */
static void enable_too_much(const struct cw *w)
{
    set_word(w, 0, 5);
    cw_put_read(w, 0, 0, 1, RDMA_SIGNALED);
    cw_put_stage(w, 0, &w->loop, 0, &w->loop, 2);
    cw_enable(w, &w->ctrl, 2);
}

/* And of a queue that is none, or a WAIT for it. */
static void enable_nobody(const struct cw *w)
{
    struct rdma_wr enable = {.op = RDMA_ENABLE};
    enable.enable.queue = w->receives.id;
    cw_put(w, &w->ctrl, 0, &enable);
    cw_enable(w, &w->ctrl, 1);
}

static void wait_for_nobody(const struct cw *w)
{
    struct rdma_wr wait = {.op = RDMA_WAIT};
    wait.wait.queue = 77;
    cw_put(w, &w->ctrl, 0, &wait);
    cw_enable(w, &w->ctrl, 1);
}

static void bad_counts_fail(void)
{
    cw_run((struct cw_test){.set_up = enable_too_much}, &o);
    for (uint32_t i = 0; i < o.count; i++) {
        CU_ASSERT_EQUAL(o.all[i].status[0], RDMA_LOCAL_ERROR);
        CU_ASSERT_EQUAL(o.all[i].completions[0], 2);
    }
    cw_run((struct cw_test){.set_up = enable_nobody}, &o);
    CU_ASSERT_EQUAL(o.count, 1);
    CU_ASSERT_EQUAL(o.all[0].status[1], RDMA_LOCAL_ERROR);
    cw_run((struct cw_test){.set_up = wait_for_nobody}, &o);
    CU_ASSERT_EQUAL(o.count, 1);
    CU_ASSERT_EQUAL(o.all[0].status[1], RDMA_LOCAL_ERROR);
}

/* ---- receives ---------------------------------------------------------------------------- */

/*
 * A's message is scattered: 8 octets become the remote Tagged Offset of B's WRITE, 8 the data. No
 * CPU of B has a part in the answer.
 */
static void serve_one(const struct cw *w)
{
    void *at;
    rdma_chain_field(w->b, &w->send, w->first, RDMA_FIELD_REMOTE_TO, 0, 7, &at);
    struct rdma_sge sges[] = {{at, 8, w->send.region.lkey}, cw_sge(w, 0)};
    struct rdma_wr receive = {.wr_id = 1, .sges = sges, .sge_count = 2};
    CU_ASSERT_EQUAL(rdma_post_recv(w->b, w->conn_b, &receive, 1), 0);
    struct rdma_wr write = {
        .op = RDMA_WRITE, .sges = &sges[1], .sge_count = 1, .remote_stag = w->of_a.stag};
    struct rdma_wr send = {.op = RDMA_SEND};
    cw_put(w, &w->send, 0, &write);
    cw_put(w, &w->send, 1, &send);
    cw_put_stage(w, 0, &w->receives, 1, &w->send, 2);
    cw_enable(w, &w->ctrl, 2);
}

static bool ask(struct sim_agent *agent, const struct cw *w, struct cw_private *p)
{
    const uint64_t message[] = {40, 9};
    struct rdma_wc wc;
    if (p->stage == 0) {
        struct rdma_sge sge = {(void *)(uintptr_t)message, 16, 0};
        struct rdma_wr send = {.op = RDMA_SEND, .flags = RDMA_INLINE, .sges = &sge, .sge_count = 1};
        p->stage = 1;
        p->result[0] = (uint64_t)rdma_post_send(&agent->rdma, w->conn_a, &send, 1);
        return false;
    }
    if (rdma_cq_poll(&agent->rdma, w->cq_a, &wc, 1) != 1)
        return false;
    p->result[1] = 1u + wc.status;
    mem_read(&agent->mem, &p->result[2], w->buffer + 40, 8);
    return true;
}

static void receive_sets_off(void)
{
    for (int i = 0; i < 3; i++) {
        cw_run(
            (struct cw_test){
                .set_up = serve_one, .a = ask, .ordering = orderings[i], .first = firsts[i]},
            &o);
        CU_ASSERT_EQUAL(o.count, 1);
        CU_ASSERT_EQUAL(o.all[0].a[0], 0);
        CU_ASSERT_EQUAL(o.all[0].a[1], 1u + RDMA_OK);
        CU_ASSERT_EQUAL(o.all[0].a[2], 9);
        CU_ASSERT_EQUAL(o.all[0].completions[3], 1);
    }
}

/* ---- the end of the connection ----------------------------------------------------------- */

/* B disconnects while its send queue waits: what was fetched is counted as flushed, no more. */
static void hold_a_wait(const struct cw *w)
{
    struct rdma_wr wait = {.op = RDMA_WAIT}, noop = {.op = RDMA_NOOP};
    wait.wait.queue = w->receives.id;
    wait.wait.count = w->first + 1;
    cw_put(w, &w->send, 0, &wait);
    cw_put(w, &w->send, 1, &noop);
    cw_enable(w, &w->send, 2);
}

static bool disconnect_and_drain(struct sim_agent *agent, const struct cw *w, struct cw_private *p)
{
    struct rdma_event event;
    if (p->stage == 0) {
        p->stage = 1;
        p->result[0] = (uint64_t)rdma_disconnect(&agent->rdma, w->conn_b);
        return false;
    }
    if (rdma_event(&agent->rdma, &event) != 1)
        return false;
    p->result[p->stage++] = event.kind;
    return p->stage == 3;
}

static void a_connection_ends(void)
{
    for (int i = 0; i < 3; i++) {
        cw_run((struct cw_test){.set_up = hold_a_wait,
                                .b = disconnect_and_drain,
                                .ordering = orderings[i]},
               &o);
        CU_ASSERT(o.count >= 1);
        for (uint32_t j = 0; j < o.count; j++) {
            CU_ASSERT_EQUAL(o.all[j].b[0], 0);
            CU_ASSERT_EQUAL(o.all[j].b[1], RDMA_EVENT_DISCONNECTED);
            CU_ASSERT_EQUAL(o.all[j].b[2], RDMA_EVENT_DRAINED);
            CU_ASSERT(o.all[j].status[2] == (o.all[j].completions[2] ? RDMA_FLUSHED : RDMA_OK));
        }
    }
}

int main(void)
{
    static const struct test tests[] = {
        {"WAIT, then ENABLE", wait_then_enable},
        {"counts are absolute, limits do not fall", counts_are_absolute},
        {"hazard 1: fetched long before", hazard_1_prefetch},
        {"no more is fetched ahead than the queue holds", prefetch_is_bounded},
        {"patches by the CPU, before and after the doorbell", patches_by_the_cpu},
        {"put, enable and state within a poll", calls_in_a_poll},
        {"hazard 2: a response has landed behind FENCE", hazard_2_landing},
        {"hazard 3: read, then overwritten", hazard_3_overwritten},
        {"hazard 4: the flags overtake the body", hazard_4_write_then_write},
        {"hazard 5: a WRITE completes before it is placed", hazard_5_write_completes_early},
        {"hazard 17: errors count", hazard_17_errors_count},
        {"what was not put fails", bad_counts_fail},
        {"a receive sets off the send queue", receive_sets_off},
        {"the connection ends under a chain", a_connection_ends},
    };
    return run_tests("sim.rnic_chain_order", tests, sizeof tests / sizeof *tests);
}
