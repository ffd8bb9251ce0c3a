/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Allocations that fail on demand, in programs that are linked with the linker's option --wrap for
 * them (tests/CMakeLists.txt); in others nothing is counted, and nothing fails.
 */
#ifndef KBTP_TESTS_SIM_WRAPPED_H
#define KBTP_TESTS_SIM_WRAPPED_H

extern unsigned wrapped; /* allocations that came by */
extern unsigned fail_at; /* the one to fail, from 1; 0: none */

#endif
