/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/fuzz/world.h"

#include <string.h>

#include "sim/device.h"

#define PATIENCE 2000u
#define BLOCKS 16u
#define BLOCK_OCTETS 64u
#define FIRST_OFFSET 0x100000u
#define FIRST_HANDLE 0x4000u
#define HANDLES 16u /* per session */
#define GOOD 0u
#define LOOKS 2u        /* in a Ticket Timeout */
#define TIMER_REREAD 1u /* of an initiator */
#define CONNECTIONS 4u  /* of a worker; behind their timers come those of the Ticket Timeout */
#define STILL 64u       /* rounds; more than a worker needs to go through all */

static const uint32_t kept_lengths[WORLD_KEPT] = {64, 40, 1, 0, 64};
#define KEPT_UNSEALED 4u

/* ---- opening ----------------------------------------------------------------------------- */

static struct pair_config config_of(uint32_t options)
{
    struct pair_config config = pair_defaults();
    config.target.block_count = BLOCKS;
    config.target.block_size = BLOCK_OCTETS;
    config.target.first_offset = FIRST_OFFSET;
    config.target.first_handle = FIRST_HANDLE;
    config.target.retention_ns = 1000;
    config.target.addr_le = options & WORLD_ADDR_LE;
    config.target.unmasked = options & WORLD_UNMASKED;
    if (options & WORLD_WRAPS) {
        config.target.first_ticket = UINT32_MAX - 6;
        config.target.first_generation = UINT16_MAX - 1;
    }
    config.features = (options & WORLD_DIRECT ? KBTP_FEATURE_DIRECT_LOAD : 0) |
                      (options & WORLD_TICKETS ? KBTP_FEATURE_DIRECT_ALLOC : 0);
    config.target.ticket_timeout_ms = 100;
    config.target.ticket_looks = LOOKS;
    config.target.max_connections = CONNECTIONS;
    config.handles = HANDLES;
    config.unchecked = true; /* one ALLOC_STORE more than the quota is refused by the target */
    config.last_unknown = true;
    return config;
}

static struct rdma *handle_on(struct sim_device *device, uint32_t host)
{
    const struct sim_rnic_limits limits = {.connections = 5,
                                           .send_depth = 16,
                                           .recv_depth = 16,
                                           .max_sge = 1,
                                           .timers = 2 * PAIR_INITIATORS + CONNECTIONS,
                                           .cqs = 1,
                                           .host = host};
    struct rdma *handle = sim_device_handle(device, &limits);
    fuzz_check(handle != NULL, "the device has a handle");
    return handle;
}

static void open_device(struct world *world)
{
    struct sim_device_config config = {
        .rnic = {.ordering = SIM_ORDERING_STRONG,
                 .bits = SIM_RNIC_BITS,
                 .max_message = 512,
                 .max_inline = 256,
                 .regions = 24,
                 .windows = PAIR_WORKERS * CONNECTIONS,
                 .max_reads = world->options & WORLD_ONE_READ ? 1 : 16},
        .hosts = 3,
        .octets = UINT64_C(128) << 10};
    if (world->options & WORLD_NO_SEND_INV)
        config.rnic.bits &=
            ~(uint32_t)(RDMA_CAP_SEND_INV | RDMA_CAP_INV_REGION | RDMA_CAP_INV_WINDOW);
    world->device = sim_device_open(&config);
    fuzz_check(world->device != NULL, "there is a device");
}

static struct kbtp_outcome good_does(struct world *world, uint8_t opcode, uint32_t n,
                                     uint32_t length, uint16_t flags)
{
    struct kbtp_operation it = pair_operation(&world->pair, GOOD, opcode, n, length, flags);
    return pair_do(&world->pair, GOOD, &it);
}

static uint8_t kept_octet(uint32_t n)
{
    return (uint8_t)(0xa0 + n);
}

static void bind_kept(struct world *world)
{
    for (uint32_t n = 0; n < WORLD_KEPT; n++) {
        memset(world->pair.initiators[GOOD].data, kept_octet(n), BLOCK_OCTETS);
        struct kbtp_outcome outcome = good_does(world, KBTP_OP_ALLOC_STORE, n, kept_lengths[n],
                                                n == KEPT_UNSEALED ? 0 : KBTP_FLAG_SEAL);
        fuzz_check(outcome.error == 0 && outcome.status == KBTP_STATUS_OK,
                   "the good initiator has its blocks");
    }
    memcpy(world->kept, world->pair.memory.entries, sizeof world->kept);
}

void world_open(struct world *world, uint32_t options)
{
    struct pair_config config = config_of(options);
    struct rdma *handles[PAIR_WORKERS + PAIR_INITIATORS];
    world->options = options;
    open_device(world);
    for (uint32_t i = 0; i < PAIR_WORKERS + PAIR_INITIATORS; i++)
        handles[i] = handle_on(world->device, i < PAIR_WORKERS ? 0 : 1);
    memcpy(world->workers, handles, sizeof world->workers);
    fuzz_check(pair_open(&world->pair, &config, handles) == 0, "the target opens");
    fuzz_check(pair_connect(&world->pair, GOOD) == 0, "the good initiator connects");
    for (uint32_t i = 0; i < WORLD_HOSTILES; i++) {
        hostile_open(&world->hostiles[i], handle_on(world->device, 2));
        world->hostiles[i].first_handle = FIRST_HANDLE;
        world->hostiles[i].end_handle = FIRST_HANDLE + HANDLES * config.initiators;
        world->hostiles[i].addr_le = config.target.addr_le;
        world->hostiles[i].direct_world = options & WORLD_DIRECT;
        world->hostiles[i].table_octets = (const char *)world->pair.memory.entries;
        world->hostiles[i].table_length = 16 * HANDLES * PAIR_INITIATORS;
        world->hostiles[i].pool_octets = world->pair.memory.blocks;
        world->hostiles[i].pool_length = BLOCKS * BLOCK_OCTETS;
        world->hostiles[i].block_octets = BLOCK_OCTETS;
        world->hostiles[i].target = &world->pair.target;
        if (!(options & WORLD_TICKETS))
            continue;
        world->hostiles[i].partitions = world->pair.target.pool.partitions;
        world->hostiles[i].partitions_count = world->pair.target.pool.partition_count;
    }
    bind_kept(world);
}

void world_close(struct world *world)
{
    for (uint32_t i = 0; i < WORLD_HOSTILES; i++)
        hostile_close(&world->hostiles[i]);
    fuzz_check(pair_close(&world->pair) == 0, "the target gives everything back");
    sim_device_close(world->device);
}

/* ---- what the octets in memory say ------------------------------------------------------- */

static uint64_t big_endian(const void *octets, uint32_t count)
{
    uint64_t value = 0;
    for (uint32_t i = 0; i < count; i++)
        value = value << 8 | ((const uint8_t *)octets)[i];
    return value;
}

static uint64_t address(const struct world *world, const void *octets)
{
    uint64_t value = big_endian(octets, 8);
    return world->options & WORLD_ADDR_LE ? __builtin_bswap64(value) : value;
}

/* Draft: Flags, Generation, Data Length, Block Offset. */
static const uint8_t *entry_octets(const struct world *world, uint32_t index)
{
    return (const uint8_t *)&world->pair.memory.entries[index];
}

static bool is_bound(const struct world *world, uint32_t index)
{
    return big_endian(entry_octets(world, index), 2) & 1;
}

/* ---- moving ------------------------------------------------------------------------------ */

/* What the good initiator has asked in between. Its spare handle may be bound or not. */
static void take_outcomes(struct world *world)
{
    struct kbtp_outcome outcome;
    while (pair_take(&world->pair, GOOD, &outcome)) {
        fuzz_check(outcome.error == 0, "the good initiator keeps its session");
        uint64_t n = outcome.handle - FIRST_HANDLE;
        if (n < WORLD_KEPT)
            fuzz_check(outcome.status == KBTP_STATUS_OK && outcome.data_length == kept_lengths[n],
                       "the good initiator loads what it has bound");
        else
            fuzz_check(outcome.status == KBTP_STATUS_OK ||
                           outcome.status == KBTP_STATUS_NOT_VALID ||
                           outcome.status == KBTP_STATUS_ALREADY_BOUND,
                       "the good initiator may use its quota");
    }
}

static struct kbtp_worker_look look(const struct world *world)
{
    struct kbtp_worker_look sum = {0};
    for (uint32_t i = 0; i < PAIR_WORKERS; i++) {
        struct kbtp_worker_look one;
        kbtp_worker_look(world->pair.workers[i], &one);
        sum.deferred += one.deferred;
        sum.connections += one.connections;
        sum.requests += one.requests;
        sum.tickets += one.tickets;
        sum.loads += one.loads;
        sum.releases += one.releases;
    }
    return sum;
}

/* A hostile peer that takes tickets may keep frees of its blocks waiting, and its own allocations;
 * while it is there. */
static bool may_wait(const struct world *world)
{
    for (uint32_t i = 0; i < WORLD_HOSTILES; i++)
        if (world->hostiles[i].takes_tickets && world->hostiles[i].peer.state == PEER_CONNECTED)
            return true;
    return false;
}

static bool waits(const struct world *world)
{
    struct kbtp_worker_look now = look(world);
    return may_wait(world) && now.tickets != 0;
}

static bool is_quiet(const struct world *world)
{
    struct kbtp_worker_look now = look(world);
    uint32_t hostile = 0;
    for (uint32_t i = 0; i < WORLD_HOSTILES; i++) {
        enum peer_state state = world->hostiles[i].peer.state;
        if (state != PEER_DOWN && state != PEER_CONNECTED)
            return false;
        hostile += state == PEER_CONNECTED;
    }
    if (now.connections != 1 + hostile || now.loads + now.releases != 0)
        return false;
    return (now.deferred == 0 || may_wait(world)) && (now.requests == 0 || waits(world)) &&
           kbtp_initiator_outstanding(world->pair.initiators[GOOD].initiator) == 0;
}

/* The good initiator's ticket may wait for a block that a hostile peer reads. */
static void let_good_reread(struct world *world)
{
    const struct pair_initiator *good = &world->pair.initiators[GOOD];
    if (kbtp_initiator_waiting(good->initiator) != 0)
        sim_device_expire(good->cpu.rdma, TIMER_REREAD);
}

/* Completions and events of a few rounds may still be under way when all looks quiet. */
void world_settle(struct world *world)
{
    uint32_t quiet = 0;
    for (uint32_t n = 0; quiet < (may_wait(world) ? STILL : 8); n++) {
        fuzz_check(n < PATIENCE, "everything comes to rest");
        pair_poll(&world->pair);
        for (uint32_t i = 0; i < WORLD_HOSTILES; i++)
            hostile_poll(&world->hostiles[i]);
        take_outcomes(world);
        let_good_reread(world);
        quiet = is_quiet(world) ? quiet + 1 : 0;
    }
}

/* Of a kept handle that is sealed, past the target. */
static void good_reads(struct world *world, uint32_t n)
{
    struct pair_initiator *good = &world->pair.initiators[GOOD];
    struct kbtp_direct_load load = {.handle = FIRST_HANDLE + n,
                                    .into = good->data,
                                    .lkey = good->region.lkey,
                                    .length = BLOCK_OCTETS};
    kbtp_initiator_direct_load(good->initiator, &good->cpu, &load, 0); /* unless all is in use */
}

/* Its spare handle, unless that is bound or about to be: a ticket whose BIND is refused is held. */
static void good_allocates(struct world *world)
{
    struct pair_initiator *good = &world->pair.initiators[GOOD];
    struct kbtp_direct_store store = {.handle = FIRST_HANDLE + WORLD_KEPT,
                                      .data = good->data,
                                      .lkey = good->region.lkey,
                                      .length = BLOCK_OCTETS};
    if (is_bound(world, WORLD_KEPT) || kbtp_initiator_outstanding(good->initiator) != 0)
        return;
    fuzz_check(kbtp_initiator_direct_store(good->initiator, &good->cpu, &store, 0) == 0,
               "the good initiator can take a ticket");
}

void world_good_asks(struct world *world, uint32_t what)
{
    static const struct {
        uint8_t opcode;
        uint32_t handle;
    } kinds[8] = {{KBTP_OP_LOAD, 0},
                  {KBTP_OP_LOAD, 1},
                  {KBTP_OP_LOAD, 2},
                  {KBTP_OP_LOAD, 3},
                  {KBTP_OP_LOAD, KEPT_UNSEALED},
                  {KBTP_OP_ALLOC_STORE, WORLD_KEPT},
                  {KBTP_OP_FREE, WORLD_KEPT},
                  {KBTP_OP_LOAD, WORLD_KEPT}};
    if ((world->options & WORLD_DIRECT) && what % 8 < KEPT_UNSEALED) {
        good_reads(world, what % 8);
        return;
    }
    uint8_t opcode = kinds[what % 8].opcode;
    if ((world->options & WORLD_TICKETS) && opcode == KBTP_OP_ALLOC_STORE) {
        good_allocates(world);
        return;
    }
    struct kbtp_operation it = pair_operation(
        &world->pair, GOOD, opcode, kinds[what % 8].handle, opcode == KBTP_OP_FREE ? 0 : 64,
        opcode == KBTP_OP_LOAD ? KBTP_FLAG_ALLOW_UNSEALED : 0);
    pair_submit(&world->pair, GOOD, &it, 0); /* unless it has no credit */
}

void world_timer(struct world *world, uint32_t worker, uint32_t session)
{
    sim_device_expire(world->workers[worker % PAIR_WORKERS], session);
}

void world_ticket_timer(struct world *world, uint32_t session)
{
    if (session == GOOD)
        return;
    for (uint32_t i = 0; i < PAIR_WORKERS; i++)
        sim_device_expire(world->workers[i], PAIR_INITIATORS + CONNECTIONS + session);
    for (uint32_t i = 0; i < WORLD_HOSTILES; i++)
        world->hostiles[i].was_looked_at = true;
}

/* ---- invariants -------------------------------------------------------------------------- */

uint16_t world_generation(struct world *world, uint64_t handle)
{
    uint64_t index = handle - FIRST_HANDLE;
    if (index >= HANDLES * PAIR_INITIATORS)
        return 1;
    return (uint16_t)big_endian(entry_octets(world, (uint32_t)index) + 2, 2);
}

static void see_block(bool seen[BLOCKS], uint64_t block_offset)
{
    uint64_t from_first = block_offset - FIRST_OFFSET;
    fuzz_check(from_first % BLOCK_OCTETS == 0 && from_first / BLOCK_OCTETS < BLOCKS,
               "a Block Offset names a block");
    fuzz_check(!seen[from_first / BLOCK_OCTETS], "a block is in one place");
    seen[from_first / BLOCK_OCTETS] = true;
}

/* Draft: Sequence, reserved, Block Offset. Every slot with a block counts, whoever has its ticket.
 * Unless it `may_wait`, those are free: the ones from Head to Tail. */
static uint32_t see_ring(const struct world *world, const struct kbtp_ring *ring,
                         bool may_have_holes, bool seen[BLOCKS])
{
    uint32_t slots = ring->config.slot_count, places = 0;
    uint32_t head = (uint32_t)(*(const uint64_t *)ring->head >> 32);
    uint32_t tail = (uint32_t)(*(const uint64_t *)ring->tail >> 32);
    for (uint32_t i = 0; i < slots; i++) {
        const uint8_t *slot = (const uint8_t *)&ring->slots[i];
        uint32_t ticket = (uint32_t)big_endian(slot, 4);
        uint64_t block_offset = address(world, slot + 8);
        fuzz_check(ticket % slots == i, "a slot has tickets of its own");
        if (block_offset == UINT64_MAX)
            continue;
        fuzz_check(may_have_holes || ticket - head < tail - head, "what is free is not taken");
        see_block(seen, block_offset);
        places++;
    }
    fuzz_check(may_have_holes || (places == tail - head && places <= slots),
               "the slots from Head to Tail have blocks");
    return places;
}

static bool is_in_partition(const struct world *world, uint32_t session, uint64_t block_offset)
{
    const struct kbtp_partition *partition = &world->pair.target.pool.partitions[session];
    uint64_t block = (block_offset - FIRST_OFFSET) / BLOCK_OCTETS;
    return block - partition->first_block < partition->block_count;
}

static uint32_t see_partition(const struct world *world, uint32_t session, bool seen[BLOCKS])
{
    const struct kbtp_partition *partition = &world->pair.target.pool.partitions[session];
    bool here[BLOCKS] = {false};
    uint32_t places = see_ring(world, &partition->ring, session != GOOD && may_wait(world), here);
    for (uint32_t i = 0; i < BLOCKS; i++) {
        if (!here[i])
            continue;
        fuzz_check(i - partition->first_block < partition->block_count,
                   "a ring lists blocks of its partition");
        see_block(seen, FIRST_OFFSET + (uint64_t)i * BLOCK_OCTETS);
    }
    return places;
}

static void check_blocks(const struct world *world)
{
    bool seen[BLOCKS] = {false}, partitions = world->options & WORLD_TICKETS;
    uint32_t places = see_ring(world, &world->pair.target.pool.ring, false, seen);
    for (uint32_t session = 0; partitions && session < PAIR_INITIATORS; session++)
        places += see_partition(world, session, seen);
    for (uint32_t i = 0; i < HANDLES * PAIR_INITIATORS; i++) {
        if (!is_bound(world, i))
            continue;
        uint64_t block_offset = address(world, entry_octets(world, i) + 8);
        see_block(seen, block_offset);
        fuzz_check(!partitions || is_in_partition(world, i / HANDLES, block_offset),
                   "a handle has a block of its initiator's partition");
        fuzz_check(big_endian(entry_octets(world, i) + 4, 4) <= BLOCK_OCTETS,
                   "no more is bound than a block has");
        places++;
    }
    struct kbtp_worker_look now = look(world);
    places += now.deferred;
    fuzz_check(places == BLOCKS ||
                   (waits(world) && places < BLOCKS && places + now.requests >= BLOCKS),
               "every block is in a ring or bound, or with a request that waits");
    for (uint32_t i = 0; i < BLOCKS; i++)
        fuzz_check(*(const uint64_t *)&world->pair.memory.pins[i] == 0, "nobody reads any more");
}

static uint32_t usage_of(const struct world *world, uint32_t session)
{
    uint32_t usage;
    for (uint32_t i = 0; i < PAIR_WORKERS; i++)
        if (kbtp_worker_usage(world->pair.workers[i], session, &usage))
            return usage;
    return (uint32_t) * (const uint64_t *)&world->pair.memory.sessions[session].usage;
}

static enum kbtp_session_state state_of(const struct world *world, uint32_t session)
{
    return kbtp_session_state_in(*(const uint64_t *)&world->pair.memory.sessions[session].state);
}

static void check_sessions(const struct world *world)
{
    for (uint32_t session = 0; session < PAIR_INITIATORS; session++) {
        uint32_t bound = 0;
        for (uint32_t n = 0; n < HANDLES; n++)
            bound += is_bound(world, session * HANDLES + n);
        uint32_t usage = usage_of(world, session);
        fuzz_check(bound == usage || (bound < usage && waits(world)), "usage is what is bound");
        fuzz_check(bound <= world->pair.config.quotas[session], "nobody exceeds its quota");
        fuzz_check(state_of(world, session) != KBTP_SESSION_ENDING, "what ends has its end");
        fuzz_check(bound == 0 || state_of(world, session) != KBTP_SESSION_FREE,
                   "without a session nothing is bound");
    }
}

static void check_good(struct world *world)
{
    struct pair_initiator *good = &world->pair.initiators[GOOD];
    fuzz_check(state_of(world, GOOD) == KBTP_SESSION_ACTIVE &&
                   kbtp_initiator_state(good->initiator) == KBTP_INITIATOR_READY &&
                   kbtp_initiator_outstanding(good->initiator) == 0,
               "the good initiator has its session");
    fuzz_check(memcmp(world->kept, world->pair.memory.entries, sizeof world->kept) == 0,
               "the good initiator's entries are as they were");
    for (uint32_t n = 0; n < WORLD_KEPT; n++) {
        memset(good->data, 0, BLOCK_OCTETS);
        struct kbtp_outcome outcome =
            good_does(world, KBTP_OP_LOAD, n, BLOCK_OCTETS, KBTP_FLAG_ALLOW_UNSEALED);
        fuzz_check(outcome.error == 0 && outcome.status == KBTP_STATUS_OK &&
                       outcome.generation == big_endian((const uint8_t *)&world->kept[n] + 2, 2) &&
                       outcome.data_length == kept_lengths[n],
                   "the good initiator loads its handles");
        for (uint32_t i = 0; i < BLOCK_OCTETS; i++)
            fuzz_check(good->data[i] == (i < kept_lengths[n] ? kept_octet(n) : 0),
                       "the good initiator's blocks have its data");
    }
    memset(good->data, kept_octet(KEPT_UNSEALED), BLOCK_OCTETS);
    struct kbtp_outcome outcome =
        good_does(world, KBTP_OP_STORE, KEPT_UNSEALED, kept_lengths[KEPT_UNSEALED], 0);
    fuzz_check(outcome.error == 0 && outcome.status == KBTP_STATUS_OK,
               "the good initiator stores what it has");
}

void world_check(struct world *world)
{
    fuzz_check(world->pair.error == 0, "no poll fails");
    for (uint32_t i = 0; i < WORLD_HOSTILES; i++)
        hostile_check(&world->hostiles[i], waits(world));
    check_blocks(world);
    check_sessions(world);
    check_good(world);
}

/* ---- afterwards -------------------------------------------------------------------------- */

static void expire_all(struct world *world)
{
    for (uint32_t worker = 0; worker < PAIR_WORKERS; worker++)
        for (uint32_t session = 0; session < PAIR_INITIATORS; session++)
            world_timer(world, worker, session);
    world_settle(world);
}

/* Every second one directly, where that is possible. */
static struct kbtp_outcome allocate(struct world *world, uint32_t i, uint32_t n)
{
    struct pair_initiator *it = &world->pair.initiators[i];
    struct kbtp_operation operation =
        pair_operation(&world->pair, i, KBTP_OP_ALLOC_STORE, n, BLOCK_OCTETS, 0);
    struct kbtp_direct_store store = {.handle = operation.handle,
                                      .data = it->data,
                                      .lkey = it->region.lkey,
                                      .length = BLOCK_OCTETS};
    bool directly =
        (world->options & WORLD_TICKETS) && n % 2 == 0 && n < world->pair.config.quotas[i];
    memset(it->data, (int)(0xc0 + n), BLOCK_OCTETS);
    if (!directly)
        return pair_do(&world->pair, i, &operation);
    int failed = kbtp_initiator_direct_store(it->initiator, &it->cpu, &store, 77);
    return failed ? (struct kbtp_outcome){.error = failed} : pair_wait(&world->pair, i);
}

static void load_back(struct world *world, uint32_t i, uint32_t n)
{
    struct pair_initiator *it = &world->pair.initiators[i];
    struct kbtp_operation load =
        pair_operation(&world->pair, i, KBTP_OP_LOAD, n, BLOCK_OCTETS, KBTP_FLAG_ALLOW_UNSEALED);
    memset(it->data, 0, BLOCK_OCTETS);
    struct kbtp_outcome outcome = pair_do(&world->pair, i, &load);
    fuzz_check(outcome.error == 0 && outcome.status == KBTP_STATUS_OK &&
                   outcome.data_length == BLOCK_OCTETS,
               "what was stored can be loaded");
    for (uint32_t k = 0; k < BLOCK_OCTETS; k++)
        fuzz_check(it->data[k] == 0xc0 + n, "a block has what was stored last");
}

/* The quota and not one more; then all of it is freed. */
static void allocate_all(struct world *world, uint32_t i)
{
    struct pair *pair = &world->pair;
    uint32_t quota = pair->config.quotas[i];
    fuzz_check(pair_connect(pair, i) == 0, "an initiator connects where hostile peers were");
    for (uint32_t n = 0; n <= quota; n++) {
        struct kbtp_outcome outcome = allocate(world, i, n);
        fuzz_check(outcome.error == 0 &&
                       outcome.status == (n < quota ? KBTP_STATUS_OK : KBTP_STATUS_NO_SPACE),
                   "an initiator can allocate its quota");
    }
    for (uint32_t n = 0; n < quota; n++)
        load_back(world, i, n);
    for (uint32_t n = 0; n < 8; n++) /* the last load is told before the block is let go */
        pair_poll(pair);
    check_blocks(world);
    fuzz_check(pair_goodbye(pair, i, true) == 0, "an initiator releases what it has");
}

void world_forgets_hostiles(struct world *world)
{
    for (uint32_t i = 0; i < WORLD_HOSTILES; i++)
        peer_disconnect(&world->hostiles[i].peer);
    world_settle(world);
    world_check(world);
    expire_all(world);
    for (uint32_t session = 1; session < PAIR_INITIATORS; session++)
        fuzz_check(state_of(world, session) == KBTP_SESSION_FREE, "a session can be forgotten");
    if (world->options & WORLD_ALLOCATES) {
        for (uint32_t i = 1; i < PAIR_INITIATORS; i++)
            allocate_all(world, i);
        world_settle(world);
    }
    world_check(world);
}
