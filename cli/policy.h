/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The policy of a target: who may come, and what each has. Read from YAML, which kbtp-policy(5)
 * describes, into the grants that a target is made with (ref/session.h).
 */
#ifndef KBTP_CLI_POLICY_H
#define KBTP_CLI_POLICY_H

#include <stddef.h>
#include <stdint.h>

#include "ref/session.h"

#define POLICY_MAX_INITIATORS 4096u
#define POLICY_MAX_SESSIONS 65536u /* of `default` */
#define POLICY_MAX_NAME 15u        /* of a reader class */
/* Class 0 has no name, and is of those without `class`. The last one has no member: a range that
 * only its owner reads is readable by this one. */
#define POLICY_CLASSES (KBTP_READER_CLASSES - 1)
#define POLICY_NOBODY (UINT32_C(1) << POLICY_CLASSES)

struct policy {
    /* Those of known initiators in the order of the file, then those of `default`. first_entry is
     * filled in, as kbtp_sessions_init() will do; partition is not. */
    struct kbtp_grant *grants;
    uint32_t grants_count; /* session_count of a target */
    uint32_t known_count;
    uint32_t classes_count; /* 1 or more */
    uint16_t features;      /* that some grant may have: `features` of a target */
    uint16_t reserved;
    char classes[POLICY_CLASSES][POLICY_MAX_NAME + 1];
    uint64_t quotas; /* their sum, those of sessions that may be retained among them */
    uint64_t handles;
};

/*
 * Reads the policy in the file `path` for a target of `blocks` blocks (0: however many it takes).
 * Returns 0, or -1 with one line in `error` (size octets), "PATH:LINE:COLUMN: KEY: what, what to
 * do". That line holds no Initiator ID (R-SESS-12). Give it back with policy_end().
 */
int policy_read(const char *path, uint32_t blocks, struct policy *policy, char *error, size_t size);
void policy_end(struct policy *policy);

#endif
