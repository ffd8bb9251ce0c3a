/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/timed/costs.h"

#include <stdlib.h>

const struct sim_figure sim_figures[SIM_FIGURES] = {
#define SIM_COSTS_ROW(key, least, most, what) {#key, what, least, most},
    SIM_COSTS(SIM_COSTS_ROW)
#undef SIM_COSTS_ROW
};

const char *sim_figure_basis_name(enum sim_figure_basis basis)
{
    static const char *const names[] = {[SIM_FIGURE_PUBLISHED] = "published",
                                        [SIM_FIGURE_INPUT] = "input",
                                        [SIM_FIGURE_MEASURED] = "measured",
                                        [SIM_FIGURE_ASSUMED] = "assumed"};
    return names[basis];
}

uint32_t sim_costs_wire_octets(const struct sim_costs *costs, uint32_t length)
{
    uint32_t mtu = (uint32_t)costs->mtu_octets;
    uint32_t packets = length ? (length + mtu - 1) / mtu : 1;
    return length + packets * (uint32_t)costs->header_octets;
}

uint32_t sim_costs_first_packet(const struct sim_costs *costs, uint32_t length)
{
    uint32_t mtu = (uint32_t)costs->mtu_octets;
    return length < mtu ? length : mtu;
}

uint32_t sim_costs_last_packet(const struct sim_costs *costs, uint32_t length)
{
    uint32_t mtu = (uint32_t)costs->mtu_octets;
    return length ? (length - 1) % mtu + 1 : 0;
}

void sim_cost_model_free(struct sim_cost_model *model)
{
    if (!model)
        return;
    for (unsigned i = 0; i < SIM_FIGURES; i++)
        free(model->sources[i].source);
    free(model->title);
    free(model);
}
