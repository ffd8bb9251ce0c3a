/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The probes find every provider as it says it is, and every lie that they can see. Of WINDOW,
 * INV_WINDOW, the five of CHAIN and SOLICITED that is little: the lie that is found below is that
 * the device has nothing of the kind and says -ENOTSUP (tests/net/probe.h).
 */
#include <stdio.h>
#include <string.h>

#include "tests/net/probe.h"
#include "tests/net/provider.h"
#include "tests/run.h"

#define ADDRESS "probe"
#define BITS 18u

static const struct provider *provider;
static struct rdma *a, *b;

static void open_device(void)
{
    CU_ASSERT_FATAL(provider->open());
    a = provider->handle();
    b = provider->handle();
    CU_ASSERT_FATAL(a && b);
    CU_ASSERT_EQUAL_FATAL(rdma_listen(b, ADDRESS), 0);
}

static void close_device(void)
{
    CU_ASSERT_EQUAL(provider->left(), 0);
    provider->close();
}

static struct probe_answer ask(uint32_t bit)
{
    struct probe_answer answer = probe_cap(a, b, ADDRESS, (enum rdma_cap)(1u << bit));
    CU_ASSERT_PTR_NOT_NULL(answer.words);
    CU_ASSERT_EQUAL(provider->left(), 0);
    return answer;
}

/* What the answer must be when the device is as it says: these can only be refuted. */
static bool can_be_shown(uint32_t bits, uint32_t bit)
{
    /* What is sent invalidates a region, where that is possible. */
    if (1u << bit == RDMA_CAP_SEND_INV && !(bits & RDMA_CAP_INV_REGION))
        return false;
    const uint32_t shown = RDMA_CAP_SEND_INV | RDMA_CAP_INV_REGION | RDMA_CAP_INV_WINDOW |
                           RDMA_CAP_WINDOW | RDMA_CAP_IMM | RDMA_CAP_FETCH_ADD | RDMA_CAP_MASKED |
                           RDMA_CAP_CAS | RDMA_CAP_BASE_TO;
    return shown & 1u << bit;
}

static void what_is_claimed_is_done(void)
{
    struct rdma_caps caps;
    open_device();
    rdma_caps(a, &caps);
    for (uint32_t bit = 0; bit < BITS; bit++) {
        struct probe_answer answer = ask(bit);
        bool shown = (caps.bits & 1u << bit) && can_be_shown(caps.bits, bit);
        CU_ASSERT_EQUAL(answer.result, shown ? PROBE_HONOURED : PROBE_UNKNOWN);
        if (answer.result == PROBE_BROKEN)
            printf("%s: %s\n", probe_cap_name((enum rdma_cap)(1u << bit)), answer.words);
        CU_ASSERT_EQUAL(strcmp(answer.words, "not claimed") == 0, !(caps.bits & 1u << bit));
    }
    close_device();
}

static void numbers_are_true(void)
{
    open_device();
    for (uint32_t limit = 0; limit < PROBE_LIMITS; limit++) {
        struct probe_answer answer = probe_limit(a, b, ADDRESS, (enum probe_limit)limit);
        CU_ASSERT_NOT_EQUAL(answer.result, PROBE_BROKEN);
        if (limit != PROBE_MAX_MESSAGE) /* which is more than the probe has */
            CU_ASSERT_EQUAL(answer.result, PROBE_HONOURED);
        if (answer.result == PROBE_BROKEN)
            printf("%s: %s\n", probe_limit_name((enum probe_limit)limit), answer.words);
        CU_ASSERT_EQUAL(provider->left(), 0);
    }
    close_device();
}

/* Every bit is known by its name, and none beyond. */
static void all_bits_have_names(void)
{
    for (uint32_t bit = 0; bit < 32; bit++)
        CU_ASSERT_EQUAL(probe_cap_name((enum rdma_cap)(1u << bit)) != NULL, bit < BITS);
    for (uint32_t limit = 0; limit <= PROBE_LIMITS; limit++)
        CU_ASSERT_EQUAL(probe_limit_name((enum probe_limit)limit) != NULL, limit < PROBE_LIMITS);
}

/* ---- lies -------------------------------------------------------------------------------- */

/* One lie for each bit: it is claimed, and what needs it is refused or done wrongly. */
static void every_lie_is_found(void)
{
    for (uint32_t bit = 0; bit < BITS; bit++) {
        open_device();
        provider->loop->caps.bits |= 1u << bit;
        provider->loop->lies = 1u << bit;
        struct probe_answer answer = ask(bit);
        CU_ASSERT_EQUAL(answer.result, PROBE_BROKEN);
        if (answer.result != PROBE_BROKEN)
            printf("%s: %s\n", probe_cap_name((enum rdma_cap)(1u << bit)), answer.words);
        /* Other probes do not mind. */
        if (1u << bit != RDMA_CAP_ORDERED_WRITES && 1u << bit != RDMA_CAP_WRITE_ACKED)
            CU_ASSERT_EQUAL(probe_cap(a, b, ADDRESS, RDMA_CAP_WRITE_ACKED).result, PROBE_UNKNOWN);
        close_device();
    }
}

/* Without INV_REGION or SEND_INV, without WINDOW: claims that hang in the air. */
static void claims_without_what_they_need(void)
{
    open_device();
    provider->loop->caps.bits &= ~(uint32_t)RDMA_CAP_SEND_INV;
    CU_ASSERT_EQUAL(ask(1).result, PROBE_BROKEN);  /* INV_REGION */
    CU_ASSERT_EQUAL(ask(2).result, PROBE_BROKEN);  /* INV_WINDOW */
    CU_ASSERT_EQUAL(ask(0).result, PROBE_UNKNOWN); /* SEND_INV is not claimed, and refused */
    provider->loop->caps.bits |= RDMA_CAP_SEND_INV;
    provider->loop->caps.bits &= ~(uint32_t)RDMA_CAP_WINDOW;
    CU_ASSERT_EQUAL(ask(2).result, PROBE_BROKEN);  /* INV_WINDOW */
    CU_ASSERT_EQUAL(ask(8).result, PROBE_UNKNOWN); /* WINDOW is not claimed, and refused */
    provider->loop->caps.bits &= ~(uint32_t)RDMA_CAP_FETCH_ADD;
    CU_ASSERT_EQUAL(ask(7).result, PROBE_UNKNOWN); /* ATOMIC_CPU: nothing to try it with */
    close_device();
}

/* What is not claimed is refused: probed by taking each bit away. */
static void what_is_not_claimed_is_refused(void)
{
    for (uint32_t bit = 0; bit < BITS; bit++) {
        open_device();
        provider->loop->caps.bits &= ~(1u << bit);
        struct probe_answer answer = ask(bit);
        CU_ASSERT_EQUAL(answer.result, PROBE_UNKNOWN);
        CU_ASSERT_EQUAL(strcmp(answer.words, "not claimed"), 0);
        close_device();
    }
}

/* More is claimed than there is. */
static void every_wrong_number_is_found(void)
{
    for (uint32_t limit = 0; limit < PROBE_LIMITS; limit++) {
        open_device();
        struct rdma_caps *caps = &provider->loop->caps;
        provider->loop->real.max_message = 1000;
        caps->max_message = limit == PROBE_MAX_MESSAGE ? 1001 : 1000;
        uint32_t *const numbers[PROBE_LIMITS] = {&caps->max_sge,    &caps->max_read_sge,
                                                 &caps->max_inline, &caps->max_message,
                                                 &caps->max_queue,  &caps->max_reads};
        CU_ASSERT_EQUAL(probe_limit(a, b, ADDRESS, PROBE_MAX_MESSAGE).result,
                        limit == PROBE_MAX_MESSAGE ? PROBE_BROKEN : PROBE_HONOURED);
        if (limit != PROBE_MAX_MESSAGE)
            ++*numbers[limit];
        CU_ASSERT_EQUAL(probe_limit(a, b, ADDRESS, (enum probe_limit)limit).result, PROBE_BROKEN);
        *numbers[limit] = 0;
        CU_ASSERT_EQUAL(probe_limit(a, b, ADDRESS, (enum probe_limit)limit).result,
                        limit == PROBE_MAX_INLINE ? PROBE_HONOURED : PROBE_BROKEN);
        close_device();
    }
}

static int run_over(const struct provider *it, const struct test *tests, size_t count)
{
    char name[64];
    provider = it;
    snprintf(name, sizeof name, "net/probe of %s", it->name);
    return run_tests(name, tests, count);
}

int main(void)
{
    static const struct test tests[] = {
        {"what is claimed is done", what_is_claimed_is_done},
        {"numbers are true", numbers_are_true},
        {"all bits have names", all_bits_have_names},
    };
    static const struct test of_liars[] = {
        {"every lie is found", every_lie_is_found},
        {"claims without what they need", claims_without_what_they_need},
        {"what is not claimed is refused", what_is_not_claimed_is_refused},
        {"every wrong number is found", every_wrong_number_is_found},
    };
    int failed = 0;
    for (uint32_t i = 0; i < PROVIDERS; i++)
        failed |= run_over(&providers[i], tests, sizeof tests / sizeof *tests);
    return failed || run_over(&providers[0], of_liars, sizeof of_liars / sizeof *of_liars);
}
