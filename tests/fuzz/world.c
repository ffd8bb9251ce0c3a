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
    config.features = options & WORLD_DIRECT ? KBTP_FEATURE_DIRECT_LOAD : 0;
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
                                           .timers = 3,
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
                 .regions = 16,
                 .windows = 1,
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
        sum.loads += one.loads;
        sum.releases += one.releases;
    }
    return sum;
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
    return now.deferred + now.requests + now.loads + now.releases == 0 &&
           now.connections == 1 + hostile;
}

/* Completions and events of a few rounds may still be under way when all looks quiet. */
void world_settle(struct world *world)
{
    uint32_t quiet = 0;
    for (uint32_t n = 0; quiet < 8; n++) {
        fuzz_check(n < PATIENCE, "everything comes to rest");
        pair_poll(&world->pair);
        for (uint32_t i = 0; i < WORLD_HOSTILES; i++)
            hostile_poll(&world->hostiles[i]);
        take_outcomes(world);
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
    struct kbtp_operation it = pair_operation(
        &world->pair, GOOD, opcode, kinds[what % 8].handle, opcode == KBTP_OP_FREE ? 0 : 64,
        opcode == KBTP_OP_LOAD ? KBTP_FLAG_ALLOW_UNSEALED : 0);
    pair_submit(&world->pair, GOOD, &it, 0); /* unless it has no credit */
}

void world_timer(struct world *world, uint32_t worker, uint32_t session)
{
    sim_device_expire(world->workers[worker % PAIR_WORKERS], session);
}

/* ---- invariants, from the octets in memory ----------------------------------------------- */

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

/* Draft: Sequence, reserved, Block Offset; the slots from Head to Tail hold what is free. */
static uint32_t see_ring(const struct world *world, bool seen[BLOCKS])
{
    const struct pair *pair = &world->pair;
    uint32_t slots = kbtp_target_slots(&pair->config.target);
    uint32_t head = (uint32_t)(*(const uint64_t *)pair->memory.head >> 32);
    uint32_t tail = (uint32_t)(*(const uint64_t *)pair->memory.tail >> 32);
    fuzz_check(tail - head <= slots, "the ring has at most its slots");
    for (uint32_t ticket = head; ticket != tail; ticket++) {
        const uint8_t *slot = (const uint8_t *)&pair->memory.slots[ticket % slots];
        fuzz_check(big_endian(slot, 4) == ticket, "a slot has its ticket");
        see_block(seen, address(world, slot + 8));
    }
    return tail - head;
}

static void check_blocks(const struct world *world)
{
    bool seen[BLOCKS] = {false};
    uint32_t places = see_ring(world, seen);
    for (uint32_t i = 0; i < HANDLES * PAIR_INITIATORS; i++) {
        if (!is_bound(world, i))
            continue;
        see_block(seen, address(world, entry_octets(world, i) + 8));
        fuzz_check(big_endian(entry_octets(world, i) + 4, 4) <= BLOCK_OCTETS,
                   "no more is bound than a block has");
        places++;
    }
    fuzz_check(places == BLOCKS, "every block is in the ring or bound");
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
        fuzz_check(bound == usage_of(world, session), "usage is what is bound");
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
}

void world_check(struct world *world)
{
    fuzz_check(world->pair.error == 0, "no poll fails");
    for (uint32_t i = 0; i < WORLD_HOSTILES; i++)
        hostile_check(&world->hostiles[i]);
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

/* The quota and not one more; then all of it is freed. */
static void allocate_all(struct world *world, uint32_t i)
{
    struct pair *pair = &world->pair;
    uint32_t quota = pair->config.quotas[i];
    fuzz_check(pair_connect(pair, i) == 0, "an initiator connects where hostile peers were");
    for (uint32_t n = 0; n <= quota; n++) {
        struct kbtp_operation it =
            pair_operation(pair, i, KBTP_OP_ALLOC_STORE, n, BLOCK_OCTETS, KBTP_FLAG_SEAL);
        struct kbtp_outcome outcome = pair_do(pair, i, &it);
        fuzz_check(outcome.error == 0 &&
                       outcome.status == (n < quota ? KBTP_STATUS_OK : KBTP_STATUS_NO_SPACE),
                   "an initiator can allocate its quota");
    }
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
