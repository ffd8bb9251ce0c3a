/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How the forms of YAML files are written down for libcyaml. A field is a member of `struct type`:
 * a pointer, NULL when the key is not there. Numbers are strings, since sim_read_number() is
 * stricter than libcyaml. Included by the files that have schemas, and by no headers.
 */
#ifndef KBTP_SIM_SCENARIO_FIELDS_H
#define KBTP_SIM_SCENARIO_FIELDS_H

#include <cyaml/cyaml.h>

#define OPTIONAL CYAML_FLAG_OPTIONAL
#define REQUIRED CYAML_FLAG_DEFAULT

/* A key that is called as the member is; ..._AS: one that is not. */
#define STRING_AS(type, key, member, need) \
    CYAML_FIELD_STRING_PTR(key, need, struct type, member, 0, CYAML_UNLIMITED)
#define STRING(type, key, need) STRING_AS(type, #key, key, need)

/* One of `words`, an array; optional. */
#define CHOICE_AS(type, key, member, words) \
    CYAML_FIELD_ENUM_PTR(key, OPTIONAL | CYAML_FLAG_STRICT, struct type, member, words, \
                         CYAML_ARRAY_LEN(words))
#define CHOICE(type, key, words) CHOICE_AS(type, #key, key, words)

/* From `least` to `most` entries; their number is in a member of this name with _count behind. */
#define LIST(type, key, need, entry, least, most) \
    CYAML_FIELD_SEQUENCE(#key, (need) | CYAML_FLAG_POINTER, struct type, key, entry, least, most)

#define MAPPING_AS(type, key, member, need, fields) \
    CYAML_FIELD_MAPPING_PTR(key, need, struct type, member, fields)
#define MAPPING(type, key, need, fields) MAPPING_AS(type, #key, key, need, fields)

/* Entries of lists: mappings of these fields, and strings. */
#define ENTRY(type, fields) \
    { \
        CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, struct type, fields) \
    }
#define STRING_ENTRY \
    { \
        CYAML_VALUE_STRING(CYAML_FLAG_POINTER, char *, 0, CYAML_UNLIMITED) \
    }

/* The whole of a file. */
#define WHOLE(type, fields) \
    { \
        CYAML_VALUE_MAPPING(CYAML_FLAG_POINTER, struct type, fields) \
    }

#endif
