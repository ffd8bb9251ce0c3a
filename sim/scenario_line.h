/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What is wrong with a file, in one line for a person. What comes from the input passes through
 * here, where nothing is let through that could move a terminal's cursor or break the line.
 * Included by sim/scenario*.c, sim/read_file.c and cli/policy.c only.
 */
#ifndef KBTP_SIM_SCENARIO_LINE_H
#define KBTP_SIM_SCENARIO_LINE_H

#include <stdarg.h>
#include <stddef.h>

/* A short string with a final NUL; what does not fit is cut off. */
struct sim_string {
    char text[128];
    size_t length;
};

void sim_string_add(struct sim_string *string, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void sim_string_cut(struct sim_string *string, size_t length);

/* A value of the input in quotes, cut to 40 octets. */
struct sim_string sim_quoted(const char *value);

/* The octets of the character at text[0], or 0 if it is no printable character in UTF-8. */
size_t sim_printable(const char *text, size_t length);

/*
 * Writes `name`, `where` and the message into error[0..size), always as a whole line without its
 * newline. A long name loses its start, a line that does not fit ends in "...".
 */
void sim_error_line(char *error, size_t size, const char *name, const char *where,
                    const char *format, va_list args) __attribute__((format(printf, 5, 0)));

#endif
