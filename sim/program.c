/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/program.h"

#include <string.h>

#include "sim/protocol_world.h"

/* Exploring, a timer may expire at any time. In timed runs these are long against a request, and
 * about as long as coming back to a target. */
#define RETENTION_NS 200000u
#define PROBE_NS 200000u
#define RETRY_NS 20000u

/* ---- features ---------------------------------------------------------------------------- */

bool sim_program_allocates_directly(const struct sim_initiator *s)
{
    for (uint32_t i = 0; i < s->program_count; i++)
        if (s->program[i].direct && s->program[i].op == SIM_REQUEST_ALLOC_STORE)
            return true;
    return false;
}

bool sim_program_asks_for_records(const struct sim_initiator *s)
{
    for (uint32_t i = 0; i < s->program_count; i++)
        if (s->program[i].record)
            return true;
    return false;
}

uint32_t sim_program_windows(const struct sim_initiator *s)
{
    uint32_t windows = 0;
    for (uint32_t i = 0; i < s->program_count; i++)
        windows += s->program[i].invalidate;
    return windows;
}

uint16_t sim_program_features(const struct sim_initiator *s)
{
    uint16_t features =
        (uint16_t)((sim_program_allocates_directly(s) ? KBTP_FEATURE_DIRECT_ALLOC : 0) |
                   (sim_program_asks_for_records(s) ? KBTP_FEATURE_RECORD_COMPLETION : 0));
    for (uint32_t i = 0; i < s->program_count; i++)
        if (s->program[i].direct && s->program[i].op == SIM_REQUEST_LOAD)
            features |= KBTP_FEATURE_DIRECT_LOAD;
    return features;
}

/* ---- configurations ---------------------------------------------------------------------- */

static uint16_t features_of_all(const struct sim_protocol_part *part)
{
    uint16_t features = 0;
    for (uint32_t i = 0; i < part->initiators_count; i++)
        features |= sim_program_features(&part->initiators[i]);
    return features;
}

struct kbtp_target_config sim_program_target(const struct sim_scenario *s)
{
    const struct sim_protocol_part *part = &s->protocol;
    return (struct kbtp_target_config){
        .block_count = s->blocks,
        .slot_count = s->slots,
        .block_size = (uint32_t)s->block_size,
        .max_inline = part->max_inline < s->block_size ? part->max_inline : (uint32_t)s->block_size,
        .first_offset = s->first_block * s->block_size,
        .first_handle = SIM_PROTOCOL_FIRST_HANDLE,
        .request_credits = part->credits,
        .staging = 1,
        .session_count = part->sessions_count,
        .retention_ns = part->retention != SIM_RETENTION_LASTS ? RETENTION_NS : 0,
        .probe_ns = part->probes != SIM_PROBES_NONE ? PROBE_NS : 0,
        .ticket_timeout_ms = part->ticket_timeout ? 1 : 0,
        .ticket_looks = 1,
        .first_ticket = s->first_ticket,
        .first_generation = (uint16_t)s->first_generation,
        .addr_le = s->addr_le,
        .unmasked = s->counters == SIM_COUNTERS_UNMASKED,
        .features = features_of_all(part)};
}

struct kbtp_grant sim_program_grant(const struct sim_protocol_part *part, uint32_t session)
{
    const struct sim_initiator *s = &part->initiators[session];
    struct kbtp_grant grant = {.known = 1,
                               .features = sim_program_features(s),
                               .trust_domain = (uint16_t)s->trust_domain,
                               .quota = s->quota,
                               .handle_count = part->handles};
    for (uint32_t i = part->sessions_count; i < part->initiators_count; i++)
        if (part->initiators[i].session == session && part->initiators[i].stranger)
            grant.known = 0;
    memset(grant.initiator_id, (int)session + 1, sizeof grant.initiator_id);
    return grant;
}

struct kbtp_initiator_config sim_program_initiator(const struct sim_scenario *s, uint32_t initiator)
{
    const struct sim_initiator *of = &s->protocol.initiators[initiator];
    struct kbtp_initiator_config config = {.depth = of->depth,
                                           .max_inline = s->protocol.max_inline,
                                           .features = sim_program_features(of),
                                           .give_up_looks = 1,
                                           .patient = !of->gives_up,
                                           .unmasked = s->counters == SIM_COUNTERS_UNMASKED,
                                           .retry_first_ns = RETRY_NS,
                                           .retry_longest_ns = RETRY_NS,
                                           .retries = of->retries,
                                           .unchecked = true};
    memset(config.initiator_id, (int)(of->stranger ? initiator : of->session) + 1,
           sizeof config.initiator_id);
    return config;
}

/* ---- requests ---------------------------------------------------------------------------- */

uint32_t sim_program_known_from(const struct sim_initiator *s, const uint16_t generations[],
                                uint32_t request)
{
    for (uint32_t i = request; i-- > 0;)
        if (generations[i] != 0 && s->program[i].owner == s->program[request].owner &&
            s->program[i].handle == s->program[request].handle)
            return i;
    return SIM_NOBODY;
}

static uint16_t generation_for(const struct sim_initiator *s, const uint16_t generations[],
                               uint32_t request)
{
    uint32_t from = sim_program_known_from(s, generations, request);
    uint16_t known = from != SIM_NOBODY ? generations[from] : 0;
    switch (s->program[request].generation) {
    case SIM_GENERATION_CURRENT:
        return known;
    case SIM_GENERATION_STALE:
        return known > 0x8000 ? known - 0x4000 : known + 0x4000;
    default:
        return 0;
    }
}

static uint16_t flags_for(const struct sim_request *request)
{
    return (uint16_t)((request->inline_data ? KBTP_FLAG_INLINE : 0) |
                      (request->seal ? KBTP_FLAG_SEAL : 0) |
                      (request->allow_unsealed ? KBTP_FLAG_ALLOW_UNSEALED : 0) |
                      (request->record ? KBTP_FLAG_RECORD : 0) |
                      (request->invalidate ? KBTP_FLAG_INVALIDATE : 0));
}

uint64_t sim_program_handle(const struct sim_protocol_part *part, const struct sim_request *request)
{
    uint32_t owner = request->owner == SIM_NOBODY ? part->sessions_count : request->owner;
    return SIM_PROTOCOL_FIRST_HANDLE + owner * part->handles + request->handle;
}

/* An STag for this request alone (draft: Security Considerations). */
static int bind_window(struct kbtp_initiator *library, const struct kbtp_cpu *cpu,
                       const struct rdma_region *region, struct rdma_window *window,
                       struct kbtp_operation *operation)
{
    uint32_t access = operation->opcode == KBTP_OP_LOAD ? RDMA_REMOTE_WRITE : RDMA_REMOTE_READ;
    int failed = kbtp_initiator_bind(library, cpu, window, region, 0, region->length, access);
    operation->stag = window->stag;
    operation->tagged_offset = window->base_to;
    return failed;
}

/* What the initiator does by itself (draft: Direct Modes). */
static int submit_direct(struct kbtp_initiator *library, const struct kbtp_cpu *cpu,
                         const struct sim_request *asked, uint64_t handle, uint16_t generation,
                         const struct rdma_region *region, uint64_t cookie)
{
    const struct kbtp_direct_store store = {.handle = handle,
                                            .data = region->addr,
                                            .lkey = region->lkey,
                                            .length = asked->length,
                                            .generation = generation};
    const struct kbtp_direct_load load = {.handle = handle,
                                          .into = region->addr,
                                          .lkey = region->lkey,
                                          .length = asked->length,
                                          .generation = generation};
    return asked->op == SIM_REQUEST_LOAD
               ? kbtp_initiator_direct_load(library, cpu, &load, cookie)
               : kbtp_initiator_direct_store(library, cpu, &store, cookie);
}

int sim_program_submit(struct kbtp_initiator *library, const struct kbtp_cpu *cpu,
                       const struct sim_scenario *s, uint32_t initiator, uint32_t request,
                       const uint16_t generations[], const struct rdma_region *region,
                       struct rdma_window *window)
{
    static const uint8_t opcodes[] = {[SIM_REQUEST_LOAD] = KBTP_OP_LOAD,
                                      [SIM_REQUEST_STORE] = KBTP_OP_STORE,
                                      [SIM_REQUEST_ALLOC_STORE] = KBTP_OP_ALLOC_STORE,
                                      [SIM_REQUEST_FREE] = KBTP_OP_FREE};
    const struct sim_initiator *of = &s->protocol.initiators[initiator];
    const struct sim_request *asked = &of->program[request];
    if (asked->op == SIM_REQUEST_GOODBYE)
        return kbtp_initiator_goodbye(library, cpu, asked->release);
    uint64_t handle = sim_program_handle(&s->protocol, asked);
    uint16_t generation = generation_for(of, generations, request);
    if (asked->direct)
        return submit_direct(library, cpu, asked, handle, generation, region, request);
    struct kbtp_operation operation = {.handle = handle,
                                       .data = region->addr,
                                       .length = asked->length,
                                       .generation = generation,
                                       .flags = flags_for(asked),
                                       .opcode = opcodes[asked->op]};
    if (!asked->inline_data && asked->op != SIM_REQUEST_FREE) {
        operation.stag = region->stag;
        operation.tagged_offset = region->base_to;
    }
    int failed = asked->invalidate && asked->length != 0 && window
                     ? bind_window(library, cpu, region, window, &operation)
                     : 0;
    return failed ? failed : kbtp_initiator_submit(library, cpu, &operation, request);
}
