/* SPDX-License-Identifier: BSD-3-Clause */
#include "ref/wire_names.h"
#include "sim/check.h"
#include "sim/protocol_world.h"

static void complain(struct sim_world *w, const struct sim_told *told, const char *what)
{
    sim_violate(w, sim_check_load_exact.property,
                "%s is told OK for a LOAD (Generation %u), but %s",
                w->scenario->protocol.initiators[told->initiator].name, told->generation, what);
}

static bool untouched(const char *from, const char *end)
{
    while (from < end)
        if (*from++ != 0)
            return false;
    return true;
}

/* The buffer holds the octets that were bound to the handle under that Generation, no others. */
static void event(struct sim_world *w, uint32_t agent, uint32_t event, uint64_t tag)
{
    const struct sim_protocol_world *p = sim_protocol_of(w);
    const struct sim_told *told = sim_protocol_told(w);
    const struct sim_request *load = sim_protocol_request(w, (uint32_t)tag);
    (void)agent;
    if (event != PROTOCOL_OUTCOME || load->op != SIM_REQUEST_LOAD || told->error != 0 ||
        told->status != KBTP_STATUS_OK)
        return;
    if (told->data_length > load->length) {
        complain(w, told, "it is longer than the buffer");
        return;
    }
    if (!untouched(told->buffer + told->data_length, told->buffer + load->length))
        complain(w, told, "the buffer is written behind the data");
    if (told->data_length == 0)
        return;
    uint32_t stored = sim_protocol_tag(told->buffer, told->data_length);
    const struct sim_request *store = sim_protocol_request(w, stored);
    if (!store)
        complain(w, told, "the data is a mixture, or nobody's");
    else if (store->owner != load->owner || store->handle != load->handle)
        complain(w, told, "the data is that of another handle");
    else if (store->length != told->data_length ||
             p->requests[stored - 1].generation != told->generation)
        complain(w, told, "the data is that of another Generation");
    else if (p->requests[tag - 1].life != 0 &&
             p->requests[tag - 1].life != p->requests[stored - 1].life)
        complain(w, told, "it asked for the data from before the target's restart (I-11)");
}

const struct sim_checker sim_check_load_exact = {
    .property = "load-exact",
    .says =
        "a LOAD that is answered OK brings the octets of the Generation it names, and no others",
    .event = event,
};
