/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/scenario_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/read_file.h"
#include "sim/scenario_set.h"

const struct sim_place sim_top_of_text = {1, 1};

struct sim_text sim_text_of(const char *name, const char *octets, size_t length,
                            const struct sim_form *form, char *error, size_t error_size)
{
    return (struct sim_text){.name = name,
                             .octets = length > 0 ? octets : "",
                             .length = length,
                             .error = error,
                             .error_size = error_size,
                             .form = form};
}

bool sim_text_fits(const struct sim_text *text)
{
    return text->length <= SIM_TEXT_LIMIT ||
           sim_complain(text, "", "is larger than 1 MiB, shorten it");
}

/* ---- paths ------------------------------------------------------------------------------- */

void sim_path_add_key(struct sim_string *path, const char *key)
{
    bool plain = key[0] != '\0' && key[strspn(key, SIM_NAME_CHARACTERS)] == '\0';
    const char *quote = plain ? "" : "'";
    sim_string_add(path, "%s%s%s%s", path->length > 0 ? "." : "", quote, key, quote);
}

void sim_path_add_entry(struct sim_string *path, unsigned index)
{
    sim_string_add(path, "[%u]", index);
}

/* ---- complaints -------------------------------------------------------------------------- */

static void complain(const struct sim_text *text, struct sim_place place, const char *path,
                     const char *format, va_list args) __attribute__((format(printf, 4, 0)));

static void complain(const struct sim_text *text, struct sim_place place, const char *path,
                     const char *format, va_list args)
{
    char where[256];
    struct sim_setting *setting =
        text->settings != NULL ? sim_settings_blame(text, path, &place) : NULL;
    bool itself = setting != NULL && strcmp(path, setting->path) == 0;
    if (setting != NULL) {
        setting->blamed = true;
        snprintf(where, sizeof where, ": %s%s", itself ? "" : path, itself || !path[0] ? "" : ": ");
    } else
        snprintf(where, sizeof where, ":%zu:%zu: %s: ", place.line, place.column,
                 path[0] != '\0' ? path
                 : text->form    ? text->form->what
                                 : "scenario");
    sim_error_line(text->error, text->error_size, setting != NULL ? setting->called : text->name,
                   where, format, args);
}

bool sim_complain_by(const struct sim_text *text, const char *who, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    sim_error_line(text->error, text->error_size, who, ": ", format, args);
    va_end(args);
    return false;
}

bool sim_complain_at(const struct sim_text *text, struct sim_place place, const char *path,
                     const char *format, ...)
{
    va_list args;
    va_start(args, format);
    complain(text, place, path, format, args);
    va_end(args);
    return false;
}

const struct sim_mark *sim_text_marked(const struct sim_text *text, unsigned first,
                                       const char *path)
{
    for (unsigned i = first; i < text->marks_count; i++)
        if (strcmp(text->marks[i].path.text, path) == 0)
            return &text->marks[i];
    return NULL;
}

static struct sim_place place_of(const struct sim_text *text, const char *path)
{
    const struct sim_mark *mark = sim_text_marked(text, 0, path);
    return mark != NULL ? mark->place : sim_top_of_text;
}

bool sim_complain(const struct sim_text *text, const char *path, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    complain(text, place_of(text, path), path, format, args);
    va_end(args);
    return false;
}

/* ---- YAML -------------------------------------------------------------------------------- */

static struct sim_place place_of_mark(yaml_mark_t mark)
{
    return (struct sim_place){.line = mark.line + 1, .column = mark.column + 1};
}

struct sim_place sim_place_of_octet(const char *octets, size_t length, size_t offset)
{
    struct sim_place place = sim_top_of_text;
    for (size_t i = 0; i < offset && i < length; i++) {
        if (octets[i] == '\n')
            place = (struct sim_place){.line = place.line + 1, .column = 1};
        else if (((unsigned char)octets[i] & 0xc0) != 0x80)
            place.column++;
    }
    return place;
}

static struct sim_place place_of_octet(const struct sim_text *text, size_t offset)
{
    return sim_place_of_octet(text->octets, text->length, offset);
}

/* A scenario needs no YAML directive, and libyaml's time grows with the square of their number. */
static bool check_directives(const struct sim_text *text)
{
    const char *octets = text->octets;
    for (size_t i = 0; i < text->length; i++)
        if (octets[i] == '%' && (i == 0 || octets[i - 1] == '\n' || octets[i - 1] == '\r'))
            return sim_complain_at(text, place_of_octet(text, i), "",
                                   "has a line that starts with %%, remove it");
    return true;
}

bool sim_walk_open(struct sim_walk *walk, struct sim_text *text)
{
    *walk = (struct sim_walk){.text = text, .place = sim_top_of_text};
    if (!check_directives(text))
        return false;
    if (!yaml_parser_initialize(&walk->parser))
        return sim_complain_at(text, sim_top_of_text, "", SIM_NO_MEMORY);
    yaml_parser_set_encoding(&walk->parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&walk->parser, (const unsigned char *)text->octets, text->length);
    return true;
}

static bool complain_syntax(const struct sim_walk *walk)
{
    const yaml_parser_t *parser = &walk->parser;
    /* libyaml gives the octet, not the line, when it does not get as far as characters. */
    if (parser->error == YAML_READER_ERROR)
        return sim_complain_at(walk->text, place_of_octet(walk->text, parser->problem_offset), "",
                               "is not UTF-8 text (%s), remove what stands here", parser->problem);
    if (parser->error == YAML_MEMORY_ERROR || parser->problem == NULL)
        return sim_complain_at(walk->text, sim_top_of_text, "", SIM_NO_MEMORY);
    struct sim_string context = {.length = 0};
    if (parser->context != NULL && parser->context_mark.line != parser->problem_mark.line)
        sim_string_add(&context, " %s from line %zu on", parser->context,
                       parser->context_mark.line + 1);
    return sim_complain_at(
        walk->text, place_of_mark(parser->problem_mark), "",
        "is not YAML: %s%s, check quotes, brackets and indentation (spaces, no tabs)",
        parser->problem, context.text);
}

bool sim_walk_next(struct sim_walk *walk)
{
    do {
        yaml_event_delete(&walk->event);
        if (!yaml_parser_parse(&walk->parser, &walk->event))
            return complain_syntax(walk);
    } while (walk->event.type == YAML_STREAM_START_EVENT ||
             walk->event.type == YAML_DOCUMENT_END_EVENT);
    return true;
}

void sim_walk_close(struct sim_walk *walk)
{
    yaml_event_delete(&walk->event);
    yaml_parser_delete(&walk->parser);
}

struct sim_place sim_walk_place(const struct sim_walk *walk)
{
    return place_of_mark(walk->event.start_mark);
}

bool sim_walk_mark(const struct sim_walk *walk)
{
    struct sim_text *text = walk->text;
    if (text->marks_count == text->marks_room) {
        unsigned room = text->marks_room > 0 ? 2 * text->marks_room : 32;
        struct sim_mark *marks = realloc(text->marks, room * sizeof *marks);
        if (marks == NULL)
            return sim_complain_at(text, sim_top_of_text, "", SIM_NO_MEMORY);
        text->marks = marks;
        text->marks_room = room;
    }
    text->marks[text->marks_count++] = (struct sim_mark){walk->path, walk->place};
    return true;
}
