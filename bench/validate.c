/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Compares cost models with published figures (sim/timed/verbs.h).
 *
 *     validate FIGURES.csv NICS [--csv]
 *
 * FIGURES.csv: series,nic,figure,octets,hops,max_inline,depth,value,use,source. NICS is the folder
 * with the cost models. Prints a table for docs/validation.md: figures of `use` input have set the
 * model and prove nothing.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "net/rdma.h"
#include "sim/read_file.h"
#include "sim/timed/verbs.h"

#define FIELDS 10u
#define LINE 512u
#define READS 16u /* under way, of perftest */

static const struct {
    const char *name;
    uint32_t op;
    bool rate;
} figures[] = {{"write_us", RDMA_WRITE, false},  {"send_us", RDMA_SEND, false},
               {"read_us", RDMA_READ, false},    {"fetch_add_us", RDMA_FETCH_ADD, false},
               {"write_mops", RDMA_WRITE, true}, {"read_mops", RDMA_READ, true},
               {"send_mops", RDMA_SEND, true},   {"fetch_add_mops", RDMA_FETCH_ADD, true}};

static struct sim_cost_model *read_model(const char *folder, const char *name)
{
    char path[1024], error[900], *text;
    size_t length;
    struct sim_cost_model *model = NULL;
    snprintf(path, sizeof path, "%s/%s.yaml", folder, name);
    if (sim_read_file(path, 1u << 20, &text, &length, error, sizeof error) == 0) {
        model = sim_cost_model_parse(path, text, length, error, sizeof error);
        free(text);
    }
    if (!model)
        fprintf(stderr, "validate: %s\n", error);
    return model;
}

static double simulate(const struct sim_costs *costs, uint32_t figure, char *const *field)
{
    const struct sim_verbs verbs = {.op = figures[figure].op,
                                    .octets = (uint32_t)strtoul(field[3], NULL, 10),
                                    .hops = (uint32_t)strtoul(field[4], NULL, 10),
                                    .max_inline = (uint32_t)strtoul(field[5], NULL, 10),
                                    .depth = (uint32_t)strtoul(field[6], NULL, 10),
                                    .reads = READS};
    return figures[figure].rate ? sim_verbs_rate(costs, &verbs) / 1e6
                                : sim_verbs_latency_ns(costs, &verbs) / 1e3;
}

/* The fields of a line; the last one may have commas. */
static bool split(char *line, char *field[FIELDS])
{
    line[strcspn(line, "\n")] = '\0';
    for (uint32_t i = 0; i < FIELDS; i++) {
        field[i] = line;
        line = i + 1 < FIELDS ? strchr(line, ',') : line;
        if (!line)
            return false;
        if (i + 1 < FIELDS)
            *line++ = '\0';
    }
    return true;
}

static int row(const char *folder, char *const *field, bool csv)
{
    struct sim_cost_model *model = read_model(folder, field[1]);
    uint32_t figure = 0, count = sizeof figures / sizeof *figures;
    while (figure < count && strcmp(figures[figure].name, field[2]) != 0)
        figure++;
    if (!model || figure == count) {
        if (model)
            fprintf(stderr, "validate: there is no figure %s\n", field[2]);
        sim_cost_model_free(model);
        return 2;
    }
    double published = strtod(field[7], NULL), found = simulate(&model->costs, figure, field);
    double error = (found / published - 1) * 100;
    if (csv)
        printf("%s,%s,%s,%s,%s,%s,%.6f,%.2f,%s\n", field[0], field[1], field[2], field[3], field[4],
               field[7], found, error, field[8]);
    else
        printf("| %s | %s | %s | %s | %s | %.*f | %+.1f %% | %s |\n", field[0], field[1], field[2],
               field[3], field[7], figures[figure].rate ? 4 : 2, found, error, field[8]);
    sim_cost_model_free(model);
    return 0;
}

int main(int argc, char **argv)
{
    bool csv = argc == 4 && strcmp(argv[3], "--csv") == 0;
    char line[LINE], *field[FIELDS];
    FILE *in = argc == 3 || csv ? fopen(argv[1], "r") : NULL;
    int status = 0;
    if (!in) {
        fprintf(stderr, "usage: validate FIGURES.csv NICS [--csv]\n");
        return 2;
    }
    if (csv)
        printf("series,nic,figure,octets,hops,published,simulated,error_percent,use\n");
    else
        printf("| series | cost model | figure | octets | published | simulated | error | use |\n"
               "|---|---|---|---|---|---|---|---|\n");
    for (bool head = true; status == 0 && fgets(line, sizeof line, in); head = false)
        if (!head)
            status = split(line, field) ? row(argv[2], field, csv) : 2;
    fclose(in);
    return status;
}
