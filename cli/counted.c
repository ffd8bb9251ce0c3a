/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/counted.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli/json.h"

static json_t *sample_json(const struct kbtp_sample *sample)
{
    json_t *all = json_object(), *labels = json_object();
    for (uint32_t i = 0; i < sample->label_count; i++)
        json_object_set_new(labels, sample->labels[i].name, cli_json_text(sample->labels[i].value));
    json_object_set_new(all, "name", cli_json_text(sample->metric->name));
    json_object_set_new(all, "labels", labels);
    json_object_set_new(all, "value", json_integer((json_int_t)sample->value));
    return all;
}

json_t *counted_json(const struct kbtp_report *report)
{
    struct kbtp_counters_iterator iterator = {0};
    struct kbtp_sample sample;
    json_t *all = json_array();
    while (kbtp_counters_next(report, &iterator, &sample))
        json_array_append_new(all, sample_json(&sample));
    return all;
}

char *counted_text(const struct kbtp_report *report, size_t *octets)
{
    *octets = kbtp_counters_text(report, NULL, 0);
    char *text = malloc(*octets + 1);
    if (text)
        kbtp_counters_text(report, text, *octets + 1);
    return text;
}

void counted_print(const struct kbtp_report *report)
{
    struct kbtp_counters_iterator iterator = {0};
    struct kbtp_sample sample;
    while (kbtp_counters_next(report, &iterator, &sample)) {
        if (sample.value == 0)
            continue;
        printf("%s", sample.metric->name);
        for (uint32_t i = 0; i < sample.label_count; i++)
            printf("%s%s=\"%s\"", i ? "," : "{", sample.labels[i].name, sample.labels[i].value);
        printf("%s %" PRId64 "\n", sample.label_count ? "}" : "", sample.value);
    }
}
