/* SPDX-License-Identifier: BSD-3-Clause */
/* The store buffer: stores, doorbells and events that are not yet visible. */
#include "sim/cpu_state.h"

uint32_t cpu_buffered_stores(const struct sim_agent *agent)
{
    uint32_t stores = 0;
    for (uint32_t i = 0; i < agent->cpu->buffered; i++)
        stores += buffer_of(agent)[i].octets != 0 || buffer_of(agent)[i].release == SIM_DOORBELL;
    return stores;
}

bool sim_cpu_buffer_empty(const struct sim_agent *agent)
{
    return agent->cpu->buffered == 0;
}

uint32_t sim_cpu_waiting(const struct sim_agent *agent, const void *at, uint64_t *octets,
                         uint32_t most)
{
    uint32_t count = 0;
    for (uint32_t i = 0; agent->cpu && i < agent->cpu->buffered && count < most; i++) {
        const struct sim_buffered *entry = &buffer_of(agent)[i];
        if (entry->octets != 0 && place_of(agent, entry) == at)
            octets[count++] = entry->value;
    }
    return count;
}

void cpu_buffer_push(struct sim_agent *agent, struct sim_buffered entry)
{
    struct sim_cpu *cpu = agent->cpu;
    if (cpu->buffered == buffer_entries(agent)) {
        sim_violate(agent->world, "bounded-poll", "%s publishes more than its buffer holds",
                    agent->name);
        return;
    }
    buffer_of(agent)[cpu->buffered++] = entry;
    agent->world->effect = true;
}

static struct sim_buffered take(struct sim_agent *agent, uint32_t index)
{
    struct sim_buffered *buffer = buffer_of(agent), taken = buffer[index];
    uint32_t last = --agent->cpu->buffered;
    memmove(&buffer[index], &buffer[index + 1], (last - index) * sizeof *buffer);
    memset(&buffer[last], 0, sizeof *buffer);
    return taken;
}

bool cpu_may_drain(const struct sim_agent *agent, uint32_t index)
{
    if (index == 0)
        return true;
    const struct sim_buffered *buffer = buffer_of(agent), *entry = &buffer[index];
    if (agent->memory != SIM_MEMORY_RELAXED || entry->release)
        return false;
    for (uint32_t i = 0; i < index; i++)
        if (overlaps(agent, &buffer[i], place_of(agent, entry), entry->octets))
            return false;
    return true;
}

static bool is_event(const struct sim_buffered *entry)
{
    return entry->octets == 0 && entry->release != SIM_DOORBELL;
}

/* Events are noticed only through what they set off, so they do not wait once they may go. */
static void drain_events(struct sim_agent *agent)
{
    while (agent->cpu->buffered != 0 && is_event(&buffer_of(agent)[0])) {
        struct sim_buffered event = take(agent, 0);
        agent->world->ops->published(agent->world, agent->index, event.event, event.value);
    }
}

void cpu_drain(struct sim_agent *agent, uint32_t index)
{
    struct sim_buffered entry = take(agent, index);
    agent->world->effect = true;
    agent->world->shown = true;
    if (entry.release == SIM_DOORBELL) {
        cpu_doorbell(agent, &entry);
    } else {
        char *at = place_of(agent, &entry);
        sim_write(agent->world, agent->index, at, &entry.value, entry.octets);
        cpu_observe(agent,
                    (struct sim_access){
                        .kind = SIM_DRAIN, .at = at, .octets = entry.octets, .value = entry.value});
    }
    drain_events(agent);
}

void sim_cpu_publish(struct sim_agent *agent, uint32_t event, uint64_t value)
{
    if (agent->cpu->buffered == 0)
        agent->world->ops->published(agent->world, agent->index, event, value);
    else
        cpu_buffer_push(
            agent, (struct sim_buffered){.value = value, .release = 1, .event = (uint16_t)event});
}
