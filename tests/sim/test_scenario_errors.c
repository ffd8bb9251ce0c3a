/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The scenario language: where and how it complains, about values, structure and YAML, and that no
 * input, however hostile, gets more out of it than one line. What is accepted: test_scenario.c.
 */
#include "sim/scenario.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "scenario_fixture.h"
#include "sim/kind.h"
#include "sim/ring_world.h"
#include "tests/run.h"

static const char every_key[] = EVERY_KEY;

/* ---- values ------------------------------------------------------------------------------ */

static void test_choices_refused(void)
{
    refuse_with("memory: TSO", "4:1: memory: 'TSO' is not known here, write sc, tso or relaxed");
    refuse_with("memory: 1", "4:1: memory: '1' is not known here, write sc, tso or relaxed");
    refuse_with("memory:", "4:1: memory: '' is not known here, write sc, tso or relaxed");
    refuse_with("tear: 16", "4:1: tear: '16' is not known here, write 8 or 4");
    refuse_with("tear: 8x", "4:1: tear: '8x' is not known here, write 8 or 4");
    refuse_with("dma_order: up", "4:1: dma_order: 'up' is not known here, write any, ascending or "
                                 "descending");
    refuse_with("counters: both",
                "4:1: counters: 'both' is not known here, write masked or unmasked");
    refuse_with("free_completes: never",
                "4:1: free_completes: 'never' is not known here, write deferred or written");
    refuse_with("address_le: flase",
                "4:1: address_le: 'flase' is not known here, write false or true");
    refuse_with("address_le: 1", "4:1: address_le: '1' is not known here, write false or true");
    refuse("kind: rung\n", "1:1: kind: 'rung' is not known here, write ring or protocol");
    refuse(HEAD "allocators:\n  - name: X\n    agent: gpu\n    allocations: 2\n" FREERS,
           "6:5: allocators[0].agent: 'gpu' is not known here, write cpu or rnic");
}

static void test_numbers_refused(void)
{
    static const char *const words[] = {
        "-1",    "+1",  "1.5",  "1e3",  "0x", "0xg",  "010",        "00",
        "1_000", "1 2", "four", "1KiB", "~",  "null", "4294967296", "18446744073709551617",
    };
    char line[64], expected[128];
    for (size_t i = 0; i < COUNT(words); i++) {
        snprintf(line, sizeof line, "first_ticket: %s", words[i]);
        snprintf(expected, sizeof expected,
                 "4:1: first_ticket: '%s' is not a number from 0 to 4294967295, ", words[i]);
        refuse_with(line, expected);
    }
    refuse_with("handles:", "4:1: handles: '' is not a number from 0 to 64, "
                            "write it in decimal or as 0x...");
    refuse_with("handles: 11111111111111111111111111111111111111112222",
                "4:1: handles: '1111111111111111111111111111111111111111...' is not a number");
    refuse(HEAD "allocators:\n  - {name: X, allocations: 0}\n" FREERS,
           "5:15: allocators[0].allocations: '0' is not a number from 1 to 1000, ");
    refuse(
        HEAD
        "allocators:\n  - {name: X, allocations: 1}\n  - name: Y\n    allocations: 1001\n" FREERS,
        "7:5: allocators[1].allocations: '1001' is not a number from 1 to 1000, ");
}

/* ---- structure --------------------------------------------------------------------------- */

static void test_required(void)
{
    static const struct refusal refusals[] = {
        {"slots: 4\nblocks: 4\n" TAIL, "1:1: kind: is required and missing, add it"},
        {"# one\n\n   kind: ring\n   blocks: 4\n", "3:4: slots: is required and missing, add it"},
        {"kind: ring\nslots: 4\n" TAIL, "1:1: blocks: is required and missing, add it"},
        {HEAD FREERS, "1:1: allocators: is required and missing, add it"},
        {HEAD ALLOCATORS, "1:1: freers: is required and missing, add it"},
        {"{}", "1:1: kind: is required and missing, add it"},
        {" { kind: ring }", "1:2: slots: is required and missing, add it"},
        {HEAD "allocators:\n  - allocations: 1\n" FREERS,
         "5:5: allocators[0].name: is required and missing, add it"},
        {HEAD "allocators:\n  - {name: X, allocations: 1}\n  -\n    name: Y\n" FREERS,
         "7:5: allocators[1].allocations: is required and missing, add it"},
        {HEAD ALLOCATORS "freers: [{name: a}, {}]\n",
         "6:21: freers[1].name: is required and missing, add it"},
    };
    refuse_each(refusals, COUNT(refusals));
}

static void test_unknown_keys(void)
{
    refuse_with("slot: 4", "4:1: slot: unknown key, did you mean 'slots'?");
    refuse_with("firstblock: 4", "4:1: firstblock: unknown key, did you mean 'first_block'?");
    refuse_with("Kind: ring", "4:1: Kind: unknown key, did you mean 'kind'?");
    refuse_with("colour: red", "4:1: colour: unknown key, remove it or take one of "
                               "kbtp-scenario(5)");
    refuse_with("'': 4", "4:1: '': unknown key, remove it or take one of kbtp-scenario(5)");
    refuse_with("\"a.b[0] \": 4", "4:1: 'a.b[0] ': unknown key, remove it");
    refuse_with("<<: {slots: 4}", "4:1: '<<': unknown key, remove it");
    refuse_with("deeper: {is: [not, looked, at]}", "4:1: deeper: unknown key, remove it");
    refuse(HEAD ALLOCATORS "  - {name: Y, allocations: 1, allocation: 1}\n" FREERS,
           "6:31: allocators[1].allocation: unknown key, did you mean 'allocations'?");
    refuse(HEAD ALLOCATORS "freers:\n  - name: Y\n    agent: cpu\n",
           "8:5: freers[0].agent: unknown key, remove it or take one of kbtp-scenario(5)");
    /* A key that looks like the path of another place. */
    refuse(MINIMAL "'allocators[0].name': 1\n", "8:1: 'allocators[0].name': unknown key, ");
}

/* The key may stand before the kind. */
static void test_other_kind(void)
{
    static const struct refusal refusals[] = {
        {MINIMAL "initiators: []\n",
         "8:1: initiators: is a key of kind protocol, remove it or write 'kind: protocol'"},
        {MINIMAL "ordering: strong\n", "8:1: ordering: is a key of kind protocol, remove it or"},
        {PROTOCOL_MINIMAL "quota: 4\n",
         "13:1: quota: is a key of kind ring, remove it or write 'kind: ring'"},
        {"slots: 2\nallocators: [{name: X, allocations: 1}]\nkind: protocol\n",
         "2:1: allocators: is a key of kind ring, remove it or write 'kind: ring'"},
        {"workers: [{name: X}]\n" MINIMAL, "1:1: workers: is a key of kind protocol, remove it"},
        {"workers: [{nome: X}]\n" MINIMAL, "1:12: workers[0].nome: unknown key, did you mean"},
        /* Only keys of the kind are suggested, of any kind while it is not known. */
        {MINIMAL "worker: []\n", "8:1: worker: unknown key, remove it or take one of"},
        {PROTOCOL_MINIMAL "freer: []\n", "13:1: freer: unknown key, remove it or take one of"},
        {"worker: []\n" MINIMAL, "1:1: worker: unknown key, did you mean 'workers'?"},
        {PROTOCOL_MINIMAL "initiator: []\n", "13:1: initiator: unknown key, did you mean "
                                             "'initiators'?"},
        {"initiators: []\n" MINIMAL, "1:1: initiators: has no entry, list 1 to 6"},
        {"slots: 2\nslots: 2\n" MINIMAL, "2:1: slots: is here for the second time, keep one"},
        {"initiators:\n  - {name: X, kind: ring}\n", "2:15: initiators[0].kind: unknown key, "},
    };
    refuse_each(refusals, COUNT(refusals));
    sim_scenario_free(parse("handles: 2\n" TAIL HEAD)); /* `kind` in the middle */
}

static void test_duplicates(void)
{
    refuse_with("blocks: 3", "4:1: blocks: is here for the second time, keep one of them");
    refuse(MINIMAL FREERS, "8:1: freers: is here for the second time, keep one of them");
    refuse(HEAD ALLOCATORS "  - name: Y\n    allocations: 1\n    name: Z\n" FREERS,
           "8:5: allocators[1].name: is here for the second time, keep one of them");
    refuse(HEAD ALLOCATORS "freers: [{name: a}, {name: b, name: c}]\n",
           "6:31: freers[1].name: is here for the second time, keep one of them");
}

static void test_types(void)
{
    static const struct refusal refusals[] = {
        {"- kind: ring\n", "1:1: scenario: is not a mapping, start with 'kind: ring'"},
        {"\n ring\n", "2:2: scenario: is not a mapping, start with 'kind: ring'"},
        {"--- ''\n", "1:5: scenario: is not a mapping, start with 'kind: ring'"},
        {"kind: [ring]\n", "1:1: kind: is a list or a mapping, write a single value"},
        {"kind: ring\nslots: {a: 4}\n", "2:1: slots: is a list or a mapping, write a single value"},
        {"kind: ring\nmemory:\n  - tso\n",
         "2:1: memory: is a list or a mapping, write a single value"},
        {HEAD "allocators: X\n" FREERS,
         "4:1: allocators: is not a list, write one '- ' for each entry"},
        {HEAD "allocators: {name: X, allocations: 1}\n" FREERS,
         "4:1: allocators: is not a list, write one '- ' for each entry"},
        {HEAD "allocators:\n" FREERS,
         "4:1: allocators: is not a list, write one '- ' for each entry"},
        {HEAD "allocators:\n  - X\n" FREERS,
         "5:5: allocators[0]: is not a mapping, write keys with values, such as 'name: X'"},
        {HEAD ALLOCATORS "  - [X]\n" FREERS,
         "6:5: allocators[1]: is not a mapping, write keys with values, such as 'name: X'"},
        {HEAD ALLOCATORS "  - {name: {}, allocations: 1}\n" FREERS,
         "6:6: allocators[1].name: is a list or a mapping, write a single value"},
        {MINIMAL "must_reach: deferral\n",
         "8:1: must_reach: is not a list, write one '- ' for each entry"},
        {MINIMAL "must_reach: [deferral, wait: 1]\n",
         "8:24: must_reach[1]: is a list or a mapping, write a single value"},
        {MINIMAL "title: [a]\n", "8:1: title: is a list or a mapping, write a single value"},
        {MINIMAL "? [a, b]\n: c\n",
         "8:3: scenario: has a key that is no word, write a word before the ':'"},
        {HEAD "allocators:\n  - {{a: b}: c}\n",
         "5:6: allocators[0]: has a key that is no word, write a word before the ':'"},
    };
    refuse_each(refusals, COUNT(refusals));
}

/* `count` entries of a list, in the flow style. */
static void list(char *text, size_t size, const char *start, const char *entry, unsigned count,
                 const char *end)
{
    size_t length = (size_t)snprintf(text, size, "%s", start);
    for (unsigned i = 0; i < count && length < size; i++)
        length += (size_t)snprintf(text + length, size - length, entry, i);
    snprintf(text + length, size - length, "]\n%s", end);
}

static void test_counts(void)
{
    char text[2048];
    list(text, sizeof text, HEAD "allocators: [", "{name: a%u, allocations: 1},\n", 8, FREERS);
    struct sim_scenario *s = parse(text);
    CU_ASSERT_EQUAL(s->ring.allocators_count, SIM_MAX_ALLOCATORS);
    sim_scenario_free(s);
    list(text, sizeof text, HEAD "allocators: [", "{name: a%u, allocations: 1},\n", 9, FREERS);
    refuse(text, "12:1: allocators[8]: is one entry too many, list at most 8");
    list(text, sizeof text, HEAD "freers: [", "{name: f%u}, ", 4, ALLOCATORS);
    s = parse(text);
    CU_ASSERT_EQUAL(s->ring.freers_count, SIM_MAX_FREERS);
    sim_scenario_free(s);
    list(text, sizeof text, HEAD "freers: [", "{name: f%u}, ", 5, ALLOCATORS);
    refuse(text, "4:58: freers[4]: is one entry too many, list at most 4");
    list(text, sizeof text, MINIMAL "must_reach: [", "deferral, ", SIM_MAX_MUST_REACH, "");
    s = parse(text);
    CU_ASSERT_EQUAL(s->must_reach_count, SIM_MAX_MUST_REACH);
    sim_scenario_free(s);
    list(text, sizeof text, MINIMAL "must_reach: [", "", 0, "");
    s = parse(text);
    CU_ASSERT_EQUAL(s->must_reach_count, 0);
    sim_scenario_free(s);
    list(text, sizeof text, MINIMAL "must_reach: [", "deferral, ", SIM_MAX_MUST_REACH + 1, "");
    refuse(text, "8:654: must_reach[64]: is one entry too many, list at most 64");
    refuse(HEAD "allocators: []\n" FREERS, "4:1: allocators: has no entry, list 1 to 8");
    refuse(HEAD ALLOCATORS "\nfreers:\n []\n", "7:1: freers: has no entry, list 1 to 4");
}

/* Every key and as many entries as can be; the last complaint that can be made about them. */
static void test_largest(void)
{
    char text[2048];
    size_t length =
        (size_t)snprintf(text, sizeof text, "%.*sallocators:\n",
                         (int)(strstr(every_key, "allocators:") - every_key), every_key);
    for (unsigned i = 0; i < SIM_MAX_ALLOCATORS; i++)
        length += (size_t)snprintf(text + length, sizeof text - length,
                                   "  - {name: a%u, agent: cpu, allocations: 1}\n", i);
    list(text + length, sizeof text - length, "must_reach: [", "wait, ", SIM_MAX_MUST_REACH, "");
    length = strlen(text);
    list(text + length, sizeof text - length, "freers: [", "{name: f%u}, ", SIM_MAX_FREERS, "");
    sim_scenario_free(parse(text));
    text[strlen(text) - strlen("3}, ]\n")] = '2';
    refuse(text, "30:47: freers[3].name: 'f2' is also freers[2].name, choose another name");
}

static void test_names(void)
{
    static const char *const illegal[] = {"", "sixteen_letters_", "two words", "a.b", "\xc3\xa4"};
    char text[256], expected[128];
    for (size_t i = 0; i < COUNT(illegal); i++) {
        snprintf(text, sizeof text, HEAD ALLOCATORS "freers:\n  - name: '%s'\n", illegal[i]);
        snprintf(expected, sizeof expected,
                 "7:5: freers[0].name: '%s' is not a name, write 1 to 15 of A-Z a-z 0-9 _ -",
                 illegal[i]);
        refuse(text, expected);
    }
    static const struct refusal refusals[] = {
        {HEAD ALLOCATORS "  - {allocations: 1, name: X}\n" FREERS,
         "6:22: allocators[1].name: 'X' is also allocators[0].name, choose another name"},
        {HEAD ALLOCATORS "freers: [{name: a}, {name: X}]\n",
         "6:22: freers[1].name: 'X' is also allocators[0].name, choose another name"},
        {HEAD ALLOCATORS "freers: [{name: a}, {name: fault}]\n",
         "6:22: freers[1].name: 'fault' is the environment, choose another name"},
        {HEAD ALLOCATORS "freers: [{name: a}, {name: a}]\n",
         "6:22: freers[1].name: 'a' is also freers[0].name, choose another name"},
    };
    refuse_each(refusals, COUNT(refusals));
    /* Names are told apart by case. */
    sim_scenario_free(parse(HEAD ALLOCATORS "freers: [{name: x}]\n"));
}

static const char unknown_event[] = "8:25: must_reach[1]: 'waits' is not known here, write one of ";

/* The names that a message lists, and that an exploration counts, are one list. */
static void test_events(void)
{
    refuse(MINIMAL "must_reach: [deferral,  waits, wait]\n", unknown_event);
    char names[256], text[512];
    snprintf(names, sizeof names, "%s", strstr(error_line, "one of ") + strlen("one of "));
    snprintf(text, sizeof text, MINIMAL "must_reach: [%s]\n", names);
    struct sim_scenario *s = parse(text);
    CU_ASSERT_EQUAL_FATAL(s->must_reach_count, RING_REACH_COUNT);
    bool listed[RING_REACH_COUNT] = {false};
    for (unsigned i = 0; i < RING_REACH_COUNT; i++) {
        int index = sim_kind_reach_index(&sim_kinds[SIM_KIND_RING], s->must_reach[i]);
        CU_ASSERT_FATAL(index >= 0 && index < RING_REACH_COUNT);
        CU_ASSERT_FALSE(listed[index]);
        listed[index] = true;
    }
    sim_scenario_free(s);
    refuse(MINIMAL "must_reach:\n  - wait\n  - ''\n", "10:5: must_reach[1]: '' is not known ");
    refuse(MINIMAL "must_reach: [Wait]\n", "8:14: must_reach[0]: 'Wait' is not known here, ");
}

/* ---- YAML -------------------------------------------------------------------------------- */

static void test_empty(void)
{
    static const struct refusal refusals[] = {
        {"", "1:1: scenario: is empty, start with 'kind: ring'"},
        {"\n \n\n", "1:1: scenario: is empty, start with 'kind: ring'"},
        {"# kind: ring\n", "1:1: scenario: is empty, start with 'kind: ring'"},
        {"\xef\xbb\xbf", "1:1: scenario: is empty, start with 'kind: ring'"},
    };
    refuse_each(refusals, COUNT(refusals));
    CU_ASSERT_PTR_NULL(sim_scenario_parse("s.yaml", NULL, 0, error_line, sizeof error_line));
    CU_ASSERT_STRING_EQUAL(error_line, "s.yaml:1:1: scenario: is empty, start with 'kind: ring'");
}

/* What follows "is not YAML: " is libyaml's. */
static void test_syntax(void)
{
    static const struct refusal refusals[] = {
        {"kind: ring\n\tslots: 4\n", "2:1: scenario: is not YAML: "},
        {"kind: ring\nslots: 4\n  blocks: 4\n", "3:9: scenario: is not YAML: "},
        {"kind: ring\nslots 4\nblocks: 4\n", "3:1: scenario: is not YAML: "},
        {"kind: \"ring\nslots: 4\n", "3:1: scenario: is not YAML: "},
        {"kind: ring\nmust_reach: [a, b\n", "3:1: scenario: is not YAML: "},
        {"kind: ring\nmust_reach: [a]\nslots: }\n", "3:8: scenario: is not YAML: "},
        {"kind: @ring\n", "1:7: scenario: is not YAML: "},
        {"kind: ring\n%TAG\n", "2:1: scenario: has a line that starts with %, remove it"},
        {"%YAML 1.1\n---\nkind: ring\n", "1:1: scenario: has a line that starts with %, remove it"},
    };
    refuse_each(refusals, COUNT(refusals));
    refuse("kind: \"ring\nslots: 4\n",
           "3:1: scenario: is not YAML: found unexpected end of stream while scanning a quoted "
           "scalar from line 1 on, check quotes, brackets and indentation (spaces, no tabs)");
}

static void test_aliases(void)
{
    static const struct refusal refusals[] = {
        {"kind: &k ring\ntitle: *k\n", "2:1: title: is an alias, write the value itself"},
        {"kind: ring\nmust_reach: &a [x]\nslots: *a\n",
         "3:1: slots: is an alias, write the value itself"},
        {"title: &a x\nmust_reach: [wait, *a]\n",
         "2:20: must_reach[1]: is an alias, write the value itself"},
        {"kind: ring\n*k : 1\n",
         "2:1: scenario: has a key that is no word, write a word before the ':'"},
        {"*k\n", "1:1: scenario: is an alias, write the value itself"},
    };
    refuse_each(refusals, COUNT(refusals));
    sim_scenario_free(parse_with("title: &anchored but not used")); /* harmless */
}

static void test_documents(void)
{
    refuse("---\n" MINIMAL "---\n" MINIMAL,
           "9:1: scenario: a second document starts here, keep one in each file");
    refuse(MINIMAL "...\n--- nonsense\n",
           "9:1: scenario: a second document starts here, keep one in each file");
    refuse(MINIMAL "...\nnonsense\n", "9:1: scenario: is not YAML: ");
    sim_scenario_free(parse("---\n" MINIMAL "...\n# the end\n"));
}

static void test_encodings(void)
{
    sim_scenario_free(parse("\xef\xbb\xbf" MINIMAL));
    sim_scenario_free(parse("kind: ring\r\nslots: 2\r\nblocks: 1\r\n"
                            "allocators: [{name: X, allocations: 1}]\r\nfreers: [{name: t}]"));
    refuse("\xef\xbb\xbfkind: rung", "1:1: kind: 'rung' is not known here");
    refuse("kind: ring\r\nslots: x\r\n", "1:1: blocks: is required");
    refuse("kind: ring\n# \xff\n", "2:3: scenario: is not UTF-8 text (");
    refuse("kind: ring\n\xc3\xa4\xc3\xa4: \xed\xa0\x80\n", "2:5: scenario: is not UTF-8 text (");
    refuse("kind: ring\ntitle: \xc3", "2:8: scenario: is not UTF-8 text (");
    refuse("kind: ring\ntitle: \x1b[2J\n", "2:8: scenario: is not UTF-8 text (");
    static const char nul[] = "kind: ring\nslots: 4\0\n";
    refuse_octets(nul, sizeof nul - 1, "2:9: scenario: is not UTF-8 text (");
    static const char nuls[64];
    refuse_octets(nuls, sizeof nuls, "1:1: scenario: is not UTF-8 text (");
    static const char utf16[] = "\xff\xfek\0i\0n\0d\0:\0 \0r\0i\0n\0g\0";
    refuse_octets(utf16, sizeof utf16 - 1, "1:1: scenario: is not UTF-8 text (");
    static const char elf[] = "\x7f"
                              "ELF\2\1\1\0\0\0\0\0\0\0\0\0";
    refuse_octets(elf, sizeof elf - 1, "1:1: scenario: is not UTF-8 text (");
}

/* Escapes can bring in what the text itself may not have. */
static void test_control_characters(void)
{
    refuse_with("title: \"a\\0b\"", "4:1: title: has a control character (octet 0x00), remove it");
    refuse_with("title: \"a\\e[2Jb\"",
                "4:1: title: has a control character (octet 0x1B), remove it");
    refuse_with("title: \"a\\x9b\"", "4:1: title: has a control character (octet 0xC2), remove it");
    refuse_with("\"sl\\0ots\": 4", "4:1: sl: has a control character (octet 0x00), remove it");
    refuse_with("title: |\n  one\n  two", "4:1: title: has a line break, write it in one line");
    refuse(MINIMAL "must_reach: [a, \"b\\nc\"]\n",
           "8:17: must_reach[1]: has a line break, write it in one line");
    refuse("kind: \"ring\\0\"\n", "1:1: kind: has a control character (octet 0x00), remove it");
    refuse("\"k\\e[1m\": ring\n",
           "1:1: 'k\\x1B[1m': has a control character (octet 0x1B), remove it");
    struct sim_scenario *s = parse_with("title: >-\n  folded\n  to one");
    CU_ASSERT_STRING_EQUAL(s->title, "folded to one");
    sim_scenario_free(s);
    s = parse_with("title:");
    CU_ASSERT_STRING_EQUAL(s->title, "");
    sim_scenario_free(s);
}

/* What would take libyaml hours if it were read to the end. */
static void test_large(void)
{
    static const char *const parts[] = {"[", "{a: ", "- ",  "? ",  "a: [", "---\n", "%TAG !a! b\n",
                                        "a", "\"",   "&a ", "*a ", "!a ",  "\n",    "a: 1\n"};
    size_t size = (size_t)1 << 20;
    char *text = malloc(size + 1);
    CU_ASSERT_PTR_NOT_NULL_FATAL(text);
    for (size_t i = 0; i < COUNT(parts); i++) {
        size_t length = strlen(parts[i]);
        for (size_t at = 0; at < size; at++)
            text[at] = parts[i][at % length];
        CU_ASSERT_PTR_NULL(parse_octets(text, size));
        CU_ASSERT(is_one_line(error_line));
    }
    memset(text, ' ', size + 1);
    memcpy(text, MINIMAL, sizeof MINIMAL - 1);
    struct sim_scenario *s = parse_octets(text, size);
    CU_ASSERT_PTR_NOT_NULL(s);
    sim_scenario_free(s);
    refuse_octets(text, size + 1, "1:1: scenario: is larger than 1 MiB, shorten it");
    free(text);
}

/* ---- the error line ---------------------------------------------------------------------- */

static const char *error_with(const char *name, const char *text, size_t size)
{
    memset(error_line, 'E', sizeof error_line);
    CU_ASSERT_PTR_NULL(sim_scenario_parse(name, text, strlen(text), error_line, size));
    return error_line;
}

/* Whatever its size, the buffer holds one line, and nothing is written behind it. */
static void test_line_sizes(void)
{
    static const char full[] = "scenarios/ring/2+1.yaml:2:1: "
                               "slots: '\xc3\xa4\xc3\xa4' is not a number from 2 to 65536, "
                               "write it in decimal or as 0x...";
    for (size_t size = 0; size < sizeof full + 4; size++) {
        error_with("scenarios/ring/2+1.yaml",
                   "kind: ring\nslots: \xc3\xa4\xc3\xa4\nblocks: 1\n" TAIL, size);
        CU_ASSERT_EQUAL(error_line[size], 'E');
        if (size == 0)
            continue;
        CU_ASSERT(memchr(error_line, '\0', size) != NULL);
        if (size >= sizeof full) {
            CU_ASSERT_STRING_EQUAL(error_line, full);
            continue;
        }
        size_t length = strlen(error_line);
        CU_ASSERT(length + 2 >= size); /* no more is lost than a half character */
        if (length >= 3)
            CU_ASSERT_STRING_EQUAL(error_line + length - 3, "...");
        CU_ASSERT(strstr(error_line, "\xc3...") == NULL);
        if (size / 2 >= strlen("scenarios/ring/2+1.yaml"))
            CU_ASSERT(strncmp(error_line, full, length - 3) == 0);
    }
}

static void test_line_names(void)
{
    CU_ASSERT_STRING_EQUAL(error_with("a\nb\x1b[0m\xc3\xa4\xff", "", sizeof error_line),
                           "a\\x0Ab\\x1B[0m\xc3\xa4\\xFF:1:1: scenario: is empty, "
                           "start with 'kind: ring'");
    CU_ASSERT_STRING_EQUAL(error_with("\xc2\x9b\xe2\x80\xa8\xf5\xc0\x80", "", 100),
                           "\\xC2\\x9B\\xE2\\x80\\xA8\\xF5\\xC0\\x80:1:1: scenario: is empty, "
                           "start with 'kind: ring'");
    CU_ASSERT_STRING_EQUAL(error_with("\xc3(\xe2\x82", "", sizeof error_line),
                           "\\xC3(\\xE2\\x82:1:1: scenario: is empty, start with 'kind: ring'");
    /* The end of a long name is kept, from a whole character on. */
    CU_ASSERT_STRING_EQUAL(error_with("abcdefgh\xc3\xa4.yaml", "", 12), "....yaml...");
    char name[300];
    memset(name, 'n', sizeof name);
    memcpy(name + sizeof name - sizeof "/s.yaml", "/s.yaml", sizeof "/s.yaml");
    error_with(name, "", 80);
    CU_ASSERT_EQUAL(strlen(error_line), 79);
    CU_ASSERT(strncmp(error_line, "...nnnnn", 8) == 0);
    CU_ASSERT_STRING_EQUAL(strchr(error_line, '/'), "/s.yaml:1:1: scenario: is empty, start w...");
}

static void test_line_input(void)
{
    error_with("s",
               "kind: '\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac"
               "\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac"
               "\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac'\n",
               sizeof error_line);
    /* 13 characters of three octets are the most that fit into 40 octets. */
    CU_ASSERT_STRING_EQUAL(
        error_line, "s:1:1: kind: '\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac"
                    "\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac"
                    "\xe2\x82\xac\xe2\x82\xac...' is not known here, write ring or protocol");
    char text[600] = "";
    memset(text, 'k', 500);
    memcpy(text + 500, ": 1\n", sizeof ": 1\n");
    CU_ASSERT(strncmp(error_with("s", text, sizeof error_line), "s:1:1: kkkk", 11) == 0);
    CU_ASSERT(strstr(error_line, "kkk: unknown key, remove it") != NULL);
    error_with("s", "kind: 100%s%n%d\n", sizeof error_line);
    CU_ASSERT_STRING_EQUAL(error_line,
                           "s:1:1: kind: '100%s%n%d' is not known here, write ring or protocol");
}

/* ---- hostile input ----------------------------------------------------------------------- */

static uint64_t random_state = 0x9e3779b97f4a7c15;

static uint32_t random_below(uint32_t bound)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (uint32_t)((random_state >> 32) % bound);
}

/* Flips, replaces, cuts, doubles or moves a piece of text[0..length). Returns the new length. */
static size_t mutate(char *text, size_t length, size_t capacity)
{
    static const char special[] = "\0\t\n\r \"'#%&*,-:<>?@[]{|}!`~\\0x\x80\xc3\xff";
    if (length == 0)
        return 0;
    size_t at = random_below((uint32_t)length);
    size_t count = 1 + random_below((uint32_t)(length - at < 40 ? length - at : 40));
    switch (random_below(6)) {
    case 0:
        text[at] = (char)(text[at] ^ (1 << random_below(8)));
        return length;
    case 1:
        text[at] = special[random_below(sizeof special)];
        return length;
    case 2:
        return at;
    case 3:
        memmove(text + at, text + at + count, length - at - count);
        return length - count;
    case 4:
        if (length + count > capacity)
            return length;
        memmove(text + at + count, text + at, length - at);
        return length + count;
    default:
        memmove(text + random_below((uint32_t)(length - count + 1)), text + at, count);
        return length;
    }
}

static void mutate_and_parse(const char *original, size_t octets)
{
    unsigned accepted = 0;
    for (unsigned i = 0; i < 20000; i++) {
        char text[2 * sizeof EVERY_PROTOCOL_KEY];
        size_t length = octets;
        memcpy(text, original, length);
        for (unsigned n = 1 + random_below(4); n > 0; n--)
            length = mutate(text, length, sizeof text);
        /* On the heap, so that a sanitizer sees a read past the end. */
        char *copy = malloc(length > 0 ? length : 1);
        CU_ASSERT_PTR_NOT_NULL_FATAL(copy);
        memcpy(copy, text, length);
        struct sim_scenario *s = parse_octets(copy, length);
        accepted += s != NULL;
        if (s == NULL && (!is_one_line(error_line) || strncmp(error_line, "s.yaml:", 7) != 0))
            CU_FAIL("an error that is no line");
        sim_scenario_free(s);
        free(copy);
    }
    /* Both ways were taken. */
    CU_ASSERT(accepted > 50);
    CU_ASSERT(accepted < 19000);
}

static void test_mutations(void)
{
    mutate_and_parse(every_key, sizeof every_key - 1);
    mutate_and_parse(EVERY_PROTOCOL_KEY, sizeof EVERY_PROTOCOL_KEY - 1);
}

static const struct test tests[] = {
    {"choices refused", test_choices_refused},
    {"numbers refused", test_numbers_refused},
    {"required keys", test_required},
    {"unknown keys", test_unknown_keys},
    {"keys of another kind", test_other_kind},
    {"duplicate keys", test_duplicates},
    {"types", test_types},
    {"counts", test_counts},
    {"largest", test_largest},
    {"names", test_names},
    {"events", test_events},
    {"empty", test_empty},
    {"syntax", test_syntax},
    {"aliases", test_aliases},
    {"documents", test_documents},
    {"encodings", test_encodings},
    {"control characters", test_control_characters},
    {"large", test_large},
    {"line: sizes", test_line_sizes},
    {"line: names", test_line_names},
    {"line: input", test_line_input},
    {"40,000 mutations", test_mutations},
};

int main(void)
{
    return run_tests("scenario errors", tests, COUNT(tests));
}
