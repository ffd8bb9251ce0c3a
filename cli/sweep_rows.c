/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of a sweep: rows by the numbers of the runs, whatever order they ended in. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/json.h"
#include "cli/sweep.h"

#define JSON_FORM (JSON_COMPACT | JSON_ENCODE_ANY | JSON_REAL_PRECISION(9))

/* Unless the file says which. Of those that no run has there is no column. */
#define OF(operation) \
    "operations." operation ".count", "operations." operation ".per_s", \
        "operations." operation ".mean_us", "operations." operation ".p50_us", \
        "operations." operation ".p99_us", "operations." operation ".p999_us", \
        "operations." operation ".max_us", "operations." operation ".cpu_ns_per_op"
static const char *const usual[] = {"digest",           "simulated_s",     "measured_s",
                                    "operations_per_s", "octets",          "in_flight",
                                    "target_cpus",      "instance_cpus",   OF("load"),
                                    OF("store"),        OF("alloc_store"), OF("free")};

/* ---- the table --------------------------------------------------------------------------- */

bool sweep_table_open(struct sweep_table *t, const struct sweep *sweep)
{
    unsigned count = sweep->columns.count;
    *t = (struct sweep_table){.sweep = sweep,
                              .columns_count = count ? count : sizeof usual / sizeof *usual};
    t->rows = calloc(sweep->runs, sizeof *t->rows);
    t->columns = calloc(t->columns_count, sizeof *t->columns);
    t->seen = calloc(t->columns_count, sizeof *t->seen);
    if (!t->rows || !t->columns || !t->seen)
        return false;
    for (uint32_t run = 0; run < sweep->runs; run++)
        t->rows[run].status = -1;
    for (unsigned i = 0; i < t->columns_count; i++)
        t->columns[i] = count ? sweep->columns.all[i].text : usual[i];
    return true;
}

void sweep_table_close(struct sweep_table *t)
{
    for (uint32_t run = 0; t->rows && run < t->sweep->runs; run++)
        json_decref(t->rows[run].figures);
    free(t->rows);
    free(t->columns);
    free(t->seen);
}

/* The entry of a list that has this "name". */
static json_t *named(json_t *list, const char *name)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        json_t *entry = json_array_get(list, i);
        const char *is = json_string_value(json_object_get(entry, "name"));
        if (is && strcmp(is, name) == 0)
            return entry;
    }
    return NULL;
}

/* "operations.load.p99_us", "links.port0-up.used"; NULL: there is none. */
static json_t *figure(json_t *all, const char *column)
{
    char part[64];
    for (size_t length; all; column += length + 1) {
        length = strcspn(column, ".");
        snprintf(part, sizeof part, "%.*s", (int)length, column);
        all = json_is_array(all) ? named(all, part) : json_object_get(all, part);
        if (column[length] == '\0')
            break;
    }
    return all;
}

bool sweep_table_take(struct sweep_table *t, uint32_t run, const char *json)
{
    json_t *all = json_loads(json, 0, NULL), *figures = json_array();
    bool good = json_is_object(all) && figures;
    for (unsigned i = 0; i < t->columns_count && good; i++) {
        json_t *it = figure(all, t->columns[i]);
        t->seen[i] = t->seen[i] || it;
        good = json_array_append_new(figures, it ? json_incref(it) : json_null()) == 0;
    }
    json_decref(all);
    if (!good) {
        json_decref(figures);
        return false;
    }
    json_decref(t->rows[run].figures);
    t->rows[run].figures = figures;
    return true;
}

/* Is there such a column? */
static bool shown(const struct sweep_table *t, unsigned column)
{
    return t->seen[column] || t->sweep->columns.count;
}

/* ---- CSV (RFC 4180) ---------------------------------------------------------------------- */

static void put_cell(FILE *out, const char *text)
{
    if (!strpbrk(text, ",\"\r\n")) {
        fputs(text, out);
        return;
    }
    putc('"', out);
    for (; *text; text++)
        fprintf(out, *text == '"' ? "\"\"" : "%c", *text);
    putc('"', out);
}

/* Nothing for null. False: no memory. */
static bool put_figure(FILE *out, const json_t *value)
{
    putc(',', out);
    if (!value || json_is_null(value))
        return true;
    if (json_is_string(value)) {
        put_cell(out, json_string_value(value));
        return true;
    }
    char *text = json_dumps(value, JSON_FORM);
    if (text)
        put_cell(out, text);
    free(text);
    return text != NULL;
}

static void put_header(FILE *out, const struct sweep_table *t)
{
    for (unsigned i = 0; i < t->sweep->parameters_count; i++) {
        put_cell(out, t->sweep->parameters[i].key);
        putc(',', out);
    }
    fprintf(out, "%sstatus", t->sweep->seeds.count ? "seed," : "");
    for (unsigned i = 0; i < t->columns_count; i++)
        if (shown(t, i)) {
            putc(',', out);
            put_cell(out, t->columns[i]);
        }
    putc('\n', out);
}

int sweep_write_csv(void *table, void *file)
{
    const struct sweep_table *t = table;
    FILE *out = file;
    put_header(out, t);
    for (uint32_t run = 0; run < t->sweep->runs; run++) {
        const struct sweep_row *row = &t->rows[run];
        if (row->status < 0)
            continue;
        for (unsigned i = 0; i < t->sweep->parameters_count; i++) {
            put_cell(out, sweep_value_of(t->sweep, run, i));
            putc(',', out);
        }
        if (t->sweep->seeds.count)
            fprintf(out, "%s,", sweep_seed_of(t->sweep, run));
        fprintf(out, "%d", row->status);
        for (unsigned i = 0; i < t->columns_count; i++)
            if (shown(t, i) && !put_figure(out, json_array_get(row->figures, i)))
                return -ENOMEM;
        putc('\n', out);
    }
    return fflush(out) != 0 || ferror(out) ? (errno ? -errno : -EIO) : 0;
}

/* ---- JSON Lines -------------------------------------------------------------------------- */

/* A number where JSON would write the same digits, else a string. */
static json_t *json_value(const char *text)
{
    json_t *number = json_loads(text, JSON_DECODE_ANY, NULL);
    char *again = json_is_number(number) ? json_dumps(number, JSON_FORM) : NULL;
    bool same = again && strcmp(again, text) == 0;
    free(again);
    if (same)
        return number;
    json_decref(number);
    return cli_json_text(text);
}

static json_t *json_row(const struct sweep_table *t, uint32_t run)
{
    const struct sweep_row *row = &t->rows[run];
    json_t *all = json_object(), *set = json_object();
    bool good = true;
    for (unsigned i = 0; i < t->sweep->parameters_count; i++)
        good &= json_object_set_new(set, t->sweep->parameters[i].key,
                                    json_value(sweep_value_of(t->sweep, run, i))) == 0;
    good &= json_object_set_new(all, "set", set) == 0;
    if (t->sweep->seeds.count)
        good &= json_object_set_new(all, "seed", json_value(sweep_seed_of(t->sweep, run))) == 0;
    good &= json_object_set_new(all, "status", json_integer(row->status)) == 0;
    for (unsigned i = 0; i < t->columns_count; i++) {
        json_t *value = json_array_get(row->figures, i);
        if (shown(t, i))
            good &= json_object_set_new(all, t->columns[i],
                                        value ? json_incref(value) : json_null()) == 0;
    }
    if (good)
        return all;
    json_decref(all);
    return NULL;
}

int sweep_write_jsonl(void *table, void *file)
{
    const struct sweep_table *t = table;
    FILE *out = file;
    for (uint32_t run = 0; run < t->sweep->runs; run++) {
        if (t->rows[run].status < 0)
            continue;
        json_t *row = json_row(t, run);
        if (!row || json_dumpf(row, out, JSON_FORM) != 0) {
            json_decref(row);
            return row ? -EIO : -ENOMEM;
        }
        json_decref(row);
        putc('\n', out);
    }
    return fflush(out) != 0 || ferror(out) ? (errno ? -errno : -EIO) : 0;
}
