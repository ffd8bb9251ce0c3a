/* SPDX-License-Identifier: BSD-3-Clause */
#include "chart_fixture.h"

#include <CUnit/Basic.h>
#include <stdio.h>
#include <string.h>

char *draw(const struct chart *chart, unsigned width, bool utf8)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    CU_ASSERT_PTR_NOT_NULL_FATAL(out);
    CU_ASSERT_EQUAL(width ? chart_print_text(chart, out, width, utf8) : chart_write_svg(chart, out),
                    0);
    fclose(out);
    CU_ASSERT_EQUAL(strlen(text), size);
    return text;
}

unsigned occurrences(const char *text, const char *what)
{
    unsigned found = 0;
    for (; (text = strstr(text, what)) != NULL; text += strlen(what))
        found++;
    return found;
}
