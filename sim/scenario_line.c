/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/scenario_line.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "sim/utf8.h"

/* ---- short strings ----------------------------------------------------------------------- */

void sim_string_add(struct sim_string *string, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    size_t room = sizeof string->text - string->length;
    int n = vsnprintf(string->text + string->length, room, format, args);
    va_end(args);
    string->length += n < 0 ? 0 : (size_t)n < room ? (size_t)n : room - 1;
}

void sim_string_cut(struct sim_string *string, size_t length)
{
    string->length = length;
    string->text[length] = '\0';
}

static bool continues_character(char octet)
{
    return ((unsigned char)octet & 0xc0) == 0x80;
}

struct sim_string sim_quoted(const char *value)
{
    struct sim_string string = {.length = 0};
    size_t length = strlen(value);
    bool cut = length > 40;
    if (cut)
        for (length = 40; length > 0 && continues_character(value[length]);)
            length--;
    sim_string_add(&string, "'%.*s%s'", (int)length, value, cut ? "..." : "");
    return string;
}

/* ---- the line ---------------------------------------------------------------------------- */

struct line {
    char *out;
    size_t size;
    size_t length;
    size_t dots; /* where "..." goes should the line not fit */
    bool full;
};

size_t sim_printable(const char *text, size_t length)
{
    unsigned octets;
    return sim_utf8_is_control(sim_utf8(text, length, &octets)) ? 0 : octets;
}

/* Adds a whole character, or an escape for what is none. */
static void line_put(struct line *line, const char *octets, size_t count)
{
    line->full = line->full || line->length + count >= line->size;
    if (line->full)
        return;
    memcpy(line->out + line->length, octets, count);
    line->length += count;
    if (line->length + sizeof "..." <= line->size)
        line->dots = line->length;
}

static void line_add(struct line *line, const char *text)
{
    for (size_t left = strlen(text), n; left > 0; text += n, left -= n) {
        n = sim_printable(text, left);
        if (n > 0) {
            line_put(line, text, n);
            continue;
        }
        char escaped[sizeof "\\xFF"];
        snprintf(escaped, sizeof escaped, "\\x%02X", (unsigned char)text[0]);
        line_put(line, escaped, sizeof escaped - 1);
        n = 1;
    }
}

/* Of a long name the end says most; half the line is left for the message. */
static void line_add_name(struct line *line, const char *name)
{
    size_t length = strlen(name);
    if (length > line->size / 2) {
        line_add(line, "...");
        name += length - line->size / 2;
        while (continues_character(*name))
            name++;
    }
    line_add(line, name);
}

static void line_end(struct line *line)
{
    if (line->size == 0)
        return;
    if (line->full) {
        line->length = line->dots;
        while (line->length < line->dots + 3 && line->length + 1 < line->size)
            line->out[line->length++] = '.';
    }
    line->out[line->length] = '\0';
}

void sim_error_line(char *error, size_t size, const char *name, const char *where,
                    const char *format, va_list args)
{
    struct line line = {.out = error, .size = size};
    char message[800];
    vsnprintf(message, sizeof message, format, args);
    line_add_name(&line, name);
    line_add(&line, where);
    line_add(&line, message);
    line_end(&line);
}
