/* SPDX-License-Identifier: BSD-3-Clause */
#include "ref/target.h"

#include <errno.h>

#define LINE 64u

uint32_t kbtp_target_slots(const struct kbtp_target_config *config)
{
    return config->slot_count ? config->slot_count : kbtp_ring_slots_for(config->block_count);
}

/* Places in one area, each on lines of its own. Without a base only their extent counts. */
struct area {
    char *base;
    size_t used;
};

static void *carve(struct area *area, size_t octets)
{
    void *taken = area->base ? area->base + area->used : NULL;
    area->used += (octets + LINE - 1) / LINE * LINE;
    return taken;
}

bool kbtp_target_has_partition(const struct kbtp_target_config *config,
                               const struct kbtp_grant *grant)
{
    return (config->features & grant->features & KBTP_FEATURE_DIRECT_ALLOC) && grant->quota != 0;
}

uint32_t kbtp_target_partitions(const struct kbtp_target_config *config,
                                const struct kbtp_grant *grants)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < config->session_count; i++)
        count += kbtp_target_has_partition(config, &grants[i]);
    return count;
}

/* The Head on lines of its own: peers' RNICs write to it. */
static void lay_out_partitions(const struct kbtp_target_config *config,
                               const struct kbtp_grant *grants, struct area *area,
                               struct kbtp_target_memory *memory)
{
    uint32_t count = kbtp_target_partitions(config, grants), next = 0;
    memory->partitions = carve(area, count * sizeof *memory->partitions);
    for (uint32_t i = 0; i < config->session_count; i++) {
        if (!kbtp_target_has_partition(config, &grants[i]))
            continue;
        struct kbtp_ring ring = {
            .slots = carve(area, kbtp_partition_slots(grants[i].quota) * sizeof(struct kbtp_slot)),
            .head = carve(area, sizeof(mem64)),
            .tail = carve(area, sizeof(mem64))};
        if (area->base)
            memory->partitions[next++] = (struct kbtp_partition){.ring = ring};
    }
}

static size_t lay_out(const struct kbtp_target_config *config, const struct kbtp_grant *grants,
                      void *base, struct kbtp_target_memory *memory)
{
    struct area area = {.base = base};
    size_t handle_count = 0;
    for (uint32_t i = 0; i < config->session_count; i++)
        handle_count += grants[i].handle_count;
    memory->head = carve(&area, sizeof(mem64));
    memory->tail = carve(&area, sizeof(mem64));
    memory->sessions_lock = carve(&area, sizeof(mem64));
    memory->sessions = carve(&area, config->session_count * sizeof(struct kbtp_session));
    memory->slots = carve(&area, kbtp_target_slots(config) * sizeof(struct kbtp_slot));
    memory->entries = carve(&area, handle_count * sizeof(struct kbtp_table_entry));
    memory->pins = carve(&area, config->block_count * sizeof(mem64));
    lay_out_partitions(config, grants, &area, memory);
    return area.used;
}

size_t kbtp_target_octets(const struct kbtp_target_config *config, const struct kbtp_grant *grants)
{
    struct kbtp_target_memory memory;
    return lay_out(config, grants, NULL, &memory);
}

void kbtp_target_layout(const struct kbtp_target_config *config, struct kbtp_grant *grants,
                        void *area, struct kbtp_target_memory *memory)
{
    lay_out(config, grants, area, memory);
    memory->grants = grants;
}

static bool config_is_legal(const struct kbtp_target_config *config)
{
    return config->block_count >= 1 && config->block_count <= KBTP_RING_MAX_SLOTS &&
           config->block_size >= 8 && config->block_size % 8 == 0 &&
           config->max_inline <= config->block_size && config->request_credits >= 1 &&
           config->request_credits <= KBTP_MAX_CREDITS && config->max_connections >= 1 &&
           config->max_connections <= UINT16_MAX && config->staging >= 1 &&
           config->session_count >= 1 && config->ticket_looks <= KBTP_MAX_TICKET_LOOKS;
}

/* A block in one RDMA Write, every message in one Send, a receive per credit and one more. */
static bool device_is_enough(const struct kbtp_target_config *config, const struct rdma_caps *caps)
{
    return config->block_size <= caps->max_message &&
           KBTP_REQUEST_MAX_OCTETS + (uint64_t)config->max_inline <= caps->max_message &&
           KBTP_HELLO_ACK_OCTETS <= caps->max_message &&
           config->request_credits + 1 <= caps->max_queue;
}

/* Can the counters have the draft's form? RDMAP asks for it. Elsewhere a device that cannot mask
 * leaves the low half alone, and so does everybody else then (I-38). */
static bool masks(const struct rdma_caps *caps)
{
    return caps->binding == RDMA_BINDING_RDMAP || (caps->bits & RDMA_CAP_MASKED);
}

/* Gives each grant that is to have one its partition, behind the blocks that all share. */
static uint32_t assign_partitions(struct kbtp_target *target, struct mem *m,
                                  const struct kbtp_target_memory *memory)
{
    const struct kbtp_target_config *config = &target->config;
    struct kbtp_pool *pool = &target->pool;
    uint32_t shared = config->block_count, slots = 0;
    if (!(target->features & KBTP_FEATURE_DIRECT_ALLOC))
        return shared;
    for (uint32_t i = 0; i < config->session_count; i++)
        if (kbtp_target_has_partition(config, &memory->grants[i]))
            shared -= memory->grants[i].quota;
    for (uint32_t i = 0, next = shared; i < config->session_count; i++) {
        struct kbtp_grant *grant = &memory->grants[i];
        if (!kbtp_target_has_partition(config, grant))
            continue;
        struct kbtp_partition *partition = &memory->partitions[pool->partition_count++];
        partition->first_block = next;
        partition->block_count = grant->quota;
        partition->first_slot = slots;
        grant->partition = pool->partition_count;
        mem_store64(m, &memory->sessions[i].oldest_ticket, config->first_ticket);
        next += grant->quota;
        slots += kbtp_partition_slots(grant->quota);
    }
    pool->partitions = memory->partitions;
    return shared;
}

static int init_rings(struct kbtp_target *target, const struct kbtp_cpu *cpu,
                      const struct kbtp_target_memory *memory)
{
    const struct kbtp_target_config *config = &target->config;
    struct kbtp_ring_config ring = {.slot_count = kbtp_target_slots(config),
                                    .block_count = assign_partitions(target, cpu->mem, memory),
                                    .first_ticket = config->first_ticket,
                                    .first_offset = target->pool.first_offset,
                                    .offset_step = config->block_size,
                                    .unmasked = config->unmasked,
                                    .addr_le = config->addr_le};
    int failed = kbtp_ring_init(cpu->mem, &target->pool.ring, &ring, memory->slots, memory->head,
                                memory->tail, NULL);
    uint32_t count = target->pool.partition_count, made = 0;
    while (!failed && made < count) {
        failed = kbtp_partition_init(cpu, &memory->partitions[made], &ring);
        made += !failed;
    }
    while (failed && made != 0)
        kbtp_partition_end(cpu, &memory->partitions[--made]);
    return failed;
}

static int end_rings(const struct kbtp_target *target, const struct kbtp_cpu *cpu)
{
    int failed = 0;
    for (uint32_t i = 0; i < target->pool.partition_count; i++) {
        struct kbtp_partition gone = target->pool.partitions[i];
        int failed_too = kbtp_partition_end(cpu, &gone);
        failed = failed ? failed : failed_too;
    }
    return failed;
}

static int init_table(struct kbtp_target *target, const struct kbtp_cpu *cpu,
                      struct kbtp_table_entry *entries, uint32_t entry_count)
{
    uint16_t first = target->config.first_generation;
    int failed = kbtp_table_init(cpu->mem, &target->pool.table, entries, entry_count,
                                 target->config.addr_le, NULL);
    for (uint32_t i = 0; i < entry_count && !failed; i++) {
        /* A restarted target does not repeat the generations of its predecessor (I-11). */
        uint16_t random = first;
        if (!first)
            failed = rdma_random(cpu->rdma, &random, sizeof random);
        kbtp_table_start(cpu->mem, &target->pool.table, i, random ? random : 1);
    }
    return failed;
}

/* A record may not be seen before the data of a LOAD (draft: Completion). RDMAP never promises that
 * (MUST NOT advertise); elsewhere it takes a device that orders Writes, and Immediates. */
static void offer_records(struct kbtp_target *target)
{
    const uint32_t needed = RDMA_CAP_IMM | RDMA_CAP_ORDERED_WRITES;
    if (target->caps.binding != RDMA_BINDING_RDMAP && (target->caps.bits & needed) == needed)
        target->features |= target->config.features & KBTP_FEATURE_RECORD_COMPLETION;
}

/* An error says that peers may read on. */
static int withdraw_direct_load(struct kbtp_target *target, const struct kbtp_cpu *cpu)
{
    if (!(target->features & KBTP_FEATURE_DIRECT_LOAD))
        return 0;
    target->features &= ~(uint32_t)KBTP_FEATURE_DIRECT_LOAD;
    int failed = rdma_dereg(cpu->rdma, &target->table_region);
    int failed_too = rdma_dereg(cpu->rdma, &target->pool_region);
    return failed ? failed : failed_too;
}

/* The Table and the Pool STag (draft: Session Establishment), read-only. A Block Offset is the
 * Tagged Offset in the latter. */
static int offer_direct_load(struct kbtp_target *target, const struct kbtp_cpu *cpu)
{
    const struct kbtp_pool *pool = &target->pool;
    if (!(target->config.features & KBTP_FEATURE_DIRECT_LOAD))
        return 0;
    int failed = rdma_reg(cpu->rdma, pool->blocks, (uint64_t)pool->block_count * pool->block_size,
                          RDMA_REMOTE_READ, pool->first_offset, &target->pool_region);
    if (failed)
        return failed;
    failed = rdma_reg(cpu->rdma, pool->table.entries,
                      pool->table.entry_count * sizeof(struct kbtp_table_entry), RDMA_REMOTE_READ,
                      0, &target->table_region);
    if (failed) {
        rdma_dereg(cpu->rdma, &target->pool_region);
        return failed;
    }
    target->features |= KBTP_FEATURE_DIRECT_LOAD;
    if (target->pool_region.base_to != pool->first_offset) /* RDMA_CAP_BASE_TO */
        return withdraw_direct_load(target, cpu);
    return 0;
}

/* One of each connection at a time, as far as the device's queues go. A power of 2, so that places
 * follow each other when numbers wrap. */
uint32_t kbtp_target_ask_depth(const struct kbtp_target_config *config,
                               const struct rdma_caps *caps)
{
    uint32_t most = caps->max_queue < caps->max_cq ? caps->max_queue : caps->max_cq, depth = 1;
    while (depth < config->max_connections && 2 * depth <= most)
        depth *= 2;
    return depth;
}

/* Where CPUs may not, the RNIC takes the tickets of partitions. */
static int plan_asks(struct kbtp_target *target, const struct kbtp_cpu *cpu,
                     const struct kbtp_grant *grants)
{
    if (!(target->features & KBTP_FEATURE_DIRECT_ALLOC) ||
        (target->caps.bits & RDMA_CAP_ATOMIC_CPU) ||
        kbtp_target_partitions(&target->config, grants) == 0)
        return 0;
    target->ask_depth = kbtp_target_ask_depth(&target->config, &target->caps);
    target->ask_octets = rdma_chain_octets(cpu->rdma, target->ask_depth);
    return target->ask_octets != 0 ? 0 : -EINVAL;
}

int kbtp_target_init(struct kbtp_target *target, const struct kbtp_cpu *cpu,
                     const struct kbtp_target_config *config,
                     const struct kbtp_target_memory *memory)
{
    if (!config_is_legal(config) || (uintptr_t)memory->pins % 8 != 0 ||
        (uintptr_t)memory->blocks % 8 != 0)
        return -EINVAL;
    *target = (struct kbtp_target){.config = *config};
    rdma_caps(cpu->rdma, &target->caps);
    target->config.unmasked |= !masks(&target->caps);
    if (!device_is_enough(config, &target->caps))
        return -EINVAL;
    int64_t entries =
        kbtp_sessions_init(cpu->mem, &target->sessions, memory->sessions, memory->grants,
                           memory->sessions_lock, config->session_count, config->block_count);
    if (entries < 0)
        return (int)entries;
    for (uint32_t i = 0; i < config->block_count; i++)
        mem_store64(cpu->mem, &memory->pins[i], 0);
    for (uint32_t i = 0; i < config->session_count; i++)
        memory->grants[i].partition = 0;
    uint32_t access = RDMA_LOCAL_WRITE;
    if ((config->features & KBTP_FEATURE_DIRECT_ALLOC) &&
        kbtp_partitions_can_be(&target->caps, target->config.unmasked)) {
        target->features = KBTP_FEATURE_DIRECT_ALLOC;
        access |= RDMA_BIND_WINDOW;
    }
    int failed = plan_asks(target, cpu, memory->grants);
    if (failed)
        return failed;
    failed = rdma_reg(cpu->rdma, memory->blocks, (uint64_t)config->block_count * config->block_size,
                      access, config->first_offset, &target->region);
    if (failed)
        return failed;
    target->pool = (struct kbtp_pool){.pins = memory->pins,
                                      .blocks = memory->blocks,
                                      .first_offset = target->region.base_to,
                                      .block_size = config->block_size,
                                      .block_count = config->block_count,
                                      .clears = target->sessions.several_domains};
    failed = init_rings(target, cpu, memory);
    if (!failed) {
        failed = init_table(target, cpu, memory->entries, (uint32_t)entries);
        if (!failed)
            failed = offer_direct_load(target, cpu);
        if (failed)
            end_rings(target, cpu);
    }
    offer_records(target);
    if (failed)
        rdma_dereg(cpu->rdma, &target->region);
    return failed;
}

int kbtp_target_end(struct kbtp_target *target, const struct kbtp_cpu *cpu)
{
    int failed = withdraw_direct_load(target, cpu);
    int failed_too = end_rings(target, cpu);
    int failed_at_last = rdma_dereg(cpu->rdma, &target->region);
    return failed ? failed : failed_too ? failed_too : failed_at_last;
}
