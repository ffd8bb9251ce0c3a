/* SPDX-License-Identifier: BSD-3-Clause */
#include "scenario_fixture.h"

#include <CUnit/Basic.h>
#include <stdio.h>
#include <string.h>

char error_line[900];

bool is_one_line(const char *line)
{
    if (line[0] == '\0')
        return false;
    for (const char *c = line; *c != '\0'; c++)
        if ((unsigned char)*c < 0x20 || *c == 0x7f)
            return false;
    return true;
}

struct sim_scenario *parse_octets(const char *text, size_t length)
{
    memset(error_line, 'E', sizeof error_line);
    error_line[0] = '\0';
    return sim_scenario_parse("s.yaml", text, length, error_line, sizeof error_line);
}

struct sim_scenario *parse(const char *text)
{
    struct sim_scenario *scenario = parse_octets(text, strlen(text));
    if (scenario == NULL)
        fprintf(stderr, "\n%s\nis refused: %s\n", text, error_line);
    CU_ASSERT_PTR_NOT_NULL_FATAL(scenario);
    return scenario;
}

struct sim_scenario *parse_with(const char *line)
{
    char text[512];
    snprintf(text, sizeof text, HEAD "%s\n" TAIL, line);
    return parse(text);
}

void check_settings(const struct sim_scenario *s, const struct sim_scenario *expected)
{
    CU_ASSERT_EQUAL(s->machine.memory, expected->machine.memory);
    CU_ASSERT_EQUAL(s->machine.store_buffer, expected->machine.store_buffer);
    CU_ASSERT_EQUAL(s->machine.tear, expected->machine.tear);
    CU_ASSERT_EQUAL(s->machine.dma_order, expected->machine.dma_order);
    CU_ASSERT_EQUAL(s->machine.ordering, expected->machine.ordering);
    CU_ASSERT_EQUAL(s->slots, expected->slots);
    CU_ASSERT_EQUAL(s->blocks, expected->blocks);
    CU_ASSERT_EQUAL(s->first_block, expected->first_block);
    CU_ASSERT_EQUAL(s->block_size, expected->block_size);
    CU_ASSERT_EQUAL(s->first_ticket, expected->first_ticket);
    CU_ASSERT_EQUAL(s->first_generation, expected->first_generation);
    CU_ASSERT_EQUAL(s->counters, expected->counters);
    CU_ASSERT_EQUAL(s->addr_le, expected->addr_le);
    CU_ASSERT_EQUAL(s->ring.quota, expected->ring.quota);
    CU_ASSERT_EQUAL(s->ring.handles, expected->ring.handles);
    CU_ASSERT_EQUAL(s->ring.crashes, expected->ring.crashes);
    CU_ASSERT_EQUAL(s->ring.free_completes, expected->ring.free_completes);
    CU_ASSERT_EQUAL(s->protocol.handles, expected->protocol.handles);
    CU_ASSERT_EQUAL(s->protocol.credits, expected->protocol.credits);
    CU_ASSERT_EQUAL(s->protocol.max_inline, expected->protocol.max_inline);
    CU_ASSERT_EQUAL(s->protocol.losses, expected->protocol.losses);
    CU_ASSERT_EQUAL(s->protocol.stops, expected->protocol.stops);
}

void refuse_octets(const char *text, size_t length, const char *expected)
{
    struct sim_scenario *scenario = parse_octets(text, length);
    bool good = scenario == NULL && strncmp(error_line, "s.yaml:", 7) == 0 &&
                strncmp(error_line + 7, expected, strlen(expected)) == 0;
    if (!good)
        fprintf(stderr, "\n%.*s\nexpected: s.yaml:%s\ngot:      %s\n", (int)length, text, expected,
                scenario == NULL ? error_line : "no error");
    CU_ASSERT(good);
    CU_ASSERT(scenario != NULL || is_one_line(error_line));
    sim_scenario_free(scenario);
}

void refuse(const char *text, const char *expected)
{
    refuse_octets(text, strlen(text), expected);
}

void refuse_with(const char *line, const char *expected)
{
    char text[1024];
    snprintf(text, sizeof text, HEAD "%s\n" TAIL, line);
    refuse(text, expected);
}

void refuse_each(const struct refusal *refusals, size_t count)
{
    for (size_t i = 0; i < count; i++)
        refuse(refusals[i].text, refusals[i].expected);
}
