/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The values of a scenario whose form is right (scenario_schema.h): numbers, words and names, and
 * what each kind of world makes of them. Functions that return a bool complain when it is false.
 * Included by sim/scenario*.c, sim/kind.c and cli/policy.c only.
 */
#ifndef KBTP_SIM_SCENARIO_VALUE_H
#define KBTP_SIM_SCENARIO_VALUE_H

#include "sim/scenario_schema.h"
#include "sim/scenario_text.h"

/* A number in decimal digits, or in hexadecimal ones after 0x; no complaint. */
bool sim_is_number(const char *text, uint64_t *value);
/* The same with KiB, MiB, GiB or TiB behind it. */
bool sim_is_size(const char *text, uint64_t *octets);
/* A value of the key at `path`: NULL, which means `fallback`, or a number in this range. */
bool sim_read_number(const struct sim_text *text, const char *path, const char *raw,
                     uint32_t fallback, uint32_t least, uint32_t most, uint32_t *out);
/* No block may end at 2^64 - 1, the Block Offset that means "consumed". */
bool sim_check_block_range(const struct sim_text *text, bool size_given,
                           const struct sim_scenario *s);

/* The value of a word that may be missing. */
int sim_choice(const int *chosen, int fallback);
/* A string changes hands. */
char *sim_take(char **string);

/* "allocators[1].name"; without `key` "must_reach[2]". */
struct sim_string sim_entry_path(const char *list, unsigned index, const char *key);

struct sim_named {
    const char *name;
    struct sim_string path;
};

/*
 * Are these names legal, and each there only once? None is longer than `most`, or ends in
 * `rnic_suffix` (NULL: whatever it ends in).
 */
bool sim_check_names(const struct sim_text *text, const struct sim_named *all, unsigned count,
                     unsigned most, const char *rnic_suffix);
/* Adds ", NAME", or NAME alone as the first one, for messages that list what can be written. */
void sim_list_add(char *list, size_t size, const char *name);

/*
 * What only one kind has, when all that every kind has is read (but for must_reach). These may
 * leave half a scenario after a complaint.
 */
bool sim_scenario_read_ring(const struct sim_text *text, struct sim_raw_scenario *raw,
                            struct sim_scenario *s);
bool sim_scenario_read_protocol(const struct sim_text *text, struct sim_raw_scenario *raw,
                                struct sim_scenario *s);

#endif
