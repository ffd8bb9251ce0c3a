/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The world of a scenario over a device: its target, with a handle for each worker, and its
 * initiators, with a handle each. One thread polls all of them, so that it knows when all is at
 * rest.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/capabilities.h"
#include "cli/cli.h"
#include "cli/real.h"
#include "cli/run_real.h"
#include "ref/worker.h"
#include "sim/program.h"

#define SPARE_CONNECTIONS 4u /* for those that are to hear that there are too many */
#define PROBE_NS 1000000000u
#define BUDGET 16u
#define JUDGING UINT32_MAX /* in place of a request's number */
#define STILL 3u           /* rounds on end in which nothing was new: all is at rest */
#define LEAVE_S 5.0

struct area {
    void *at;
    size_t octets;
};

struct cpu {
    struct mem mem;
    struct kbtp_cpu cpu;
};

struct real_worker {
    struct cpu on;
    struct kbtp_worker *worker;
    struct area private_memory, buffers;
};

struct real_initiator {
    struct cpu on;
    struct kbtp_initiator *library;
    struct kbtp_initiator_config config;
    struct area private_memory, buffers, records, data;
    struct rdma_region regions[SIM_MAX_REQUESTS];
    struct rdma_window windows[SIM_MAX_REQUESTS];
    bool has_window[SIM_MAX_REQUESTS];
    uint16_t generations[SIM_MAX_REQUESTS]; /* what each request was told; 0: none */
    uint32_t goodbye;                       /* 1 + its number, while it has no outcome */
    bool leaves;                            /* that the connection ends is as it should be */
    bool judged;                            /* the outcome of this LOAD is there */
    struct kbtp_outcome judgement;
};

struct real_run {
    const struct run_real_options *options;
    const struct sim_scenario *scenario;
    struct sim_in_turn *t;
    struct rdma_verbs *device;
    char address[RDMA_VERBS_ADDRESS];
    struct kbtp_target_config config;
    struct kbtp_target target;
    bool made; /* target */
    struct kbtp_grant grants[SIM_MAX_INITIATORS];
    struct area shared, blocks;
    struct real_worker workers[SIM_MAX_WORKERS];
    struct real_initiator initiators[SIM_MAX_INITIATORS];
};

static bool take_area(struct area *area, size_t octets, const char *what)
{
    area->octets = octets;
    area->at = real_memory(octets, what);
    return area->at != NULL;
}

static int complain_of(const struct cpu *on, const char *who, const char *what, int failed)
{
    cli_complain("%s: %s: %s", who, what, real_why(on->cpu.rdma, failed));
    return CLI_ENVIRONMENT;
}

static const struct sim_protocol_part *part_of(const struct real_run *r)
{
    return &r->scenario->protocol;
}

/* ---- the device -------------------------------------------------------------------------- */

static bool open_handle(struct real_run *r, struct cpu *on)
{
    char words[RDMA_VERBS_WORDS];
    on->cpu.mem = &on->mem;
    if (rdma_verbs_handle(r->device, &on->cpu.rdma, words) == 0)
        return true;
    cli_complain("%s", words);
    return false;
}

static int open_device(struct real_run *r)
{
    const struct run_real_options *o = r->options;
    const struct sim_protocol_part *part = part_of(r);
    char words[RDMA_VERBS_WORDS];
    uint32_t connections = r->config.max_connections + SPARE_CONNECTIONS;
    struct rdma_verbs_config config = {.device = o->device,
                                       .address = o->device ? NULL : r->address,
                                       .connections = connections,
                                       .timers =
                                           REAL_TIMERS + 2 * part->sessions_count + connections};
    if (real_open(&config, &r->device, words) != 0) {
        cli_complain("%s", words);
        return CLI_ENVIRONMENT;
    }
    bool well = true;
    for (uint32_t i = 0; i < part->workers_count && well; i++)
        well = open_handle(r, &r->workers[i].on);
    for (uint32_t i = 0; i < part->initiators_count && well; i++)
        well = open_handle(r, &r->initiators[i].on);
    return well ? CLI_DONE : CLI_ENVIRONMENT;
}

/* What the request needs of the device and the scenario's target would grant, or NULL. */
static const struct served *needs(const struct real_run *r, const struct rdma_caps *caps,
                                  const struct sim_request *request, uint32_t n)
{
    const struct served *what = served(n);
    bool direct = (request->direct &&
                   what->feature == (request->op == SIM_REQUEST_LOAD ? KBTP_FEATURE_DIRECT_LOAD
                                                                     : KBTP_FEATURE_DIRECT_ALLOC));
    bool record = request->record && what->feature == KBTP_FEATURE_RECORD_COMPLETION &&
                  r->config.features & KBTP_FEATURE_RECORD_COMPLETION;
    /* Of a window, or where there are none of a region. */
    bool invalidate = request->invalidate &&
                      (strcmp(what->name, "INVALIDATE") == 0 ||
                       (strcmp(what->name, "windows") == 0 && !(caps->bits & RDMA_CAP_INV_REGION)));
    return direct || record || invalidate ? what : NULL;
}

static bool can_serve(const struct real_run *r, uint32_t initiator, uint32_t number,
                      const struct rdma_caps *caps)
{
    const struct sim_request *request = &part_of(r)->initiators[initiator].program[number];
    for (uint32_t n = 0; served(n); n++) {
        char why[200] = "", name[24];
        const struct served *what = needs(r, caps, request, n);
        if (what)
            served_why_not(what, caps, why, sizeof why);
        if (!*why)
            continue;
        sim_in_turn_name(r->scenario, initiator, number, name, sizeof name);
        cli_complain("%s cannot serve %s: %s: %s", rdma_verbs_device_name(r->device), name,
                     what->name, why);
        return false;
    }
    return true;
}

/* What the device cannot do is said before it is asked for. */
static int check_device(const struct real_run *r)
{
    struct rdma_caps caps;
    rdma_caps(r->workers[0].on.cpu.rdma, &caps);
    for (uint32_t i = 0; i < part_of(r)->initiators_count; i++)
        for (uint32_t j = 0; j < part_of(r)->initiators[i].program_count; j++)
            if (!can_serve(r, i, j, &caps))
                return CLI_ENVIRONMENT;
    return CLI_DONE;
}

/* ---- the target -------------------------------------------------------------------------- */

static void configure(struct real_run *r)
{
    const struct sim_protocol_part *part = part_of(r);
    r->config = sim_program_target(r->scenario);
    /* Each initiator's, and the old one of a session that comes again. */
    r->config.max_connections = 2 * part->initiators_count;
    if (r->config.probe_ns)
        r->config.probe_ns = PROBE_NS;
    /* As in the simulator: with this ordering nobody is granted records (draft: Completion). */
    if (r->scenario->machine.ordering == SIM_ORDERING_RDMAP)
        r->config.features &= (uint16_t)~KBTP_FEATURE_RECORD_COMPLETION;
    for (uint32_t i = 0; i < part->sessions_count; i++)
        r->grants[i] = sim_program_grant(part, i);
}

static int make_worker(struct real_run *r, struct real_worker *w)
{
    struct kbtp_worker_memory need;
    kbtp_worker_memory(&r->target, &need);
    if (!take_area(&w->private_memory, need.private_octets, "a worker") ||
        !take_area(&w->buffers, need.buffer_octets, "messages"))
        return CLI_ENVIRONMENT;
    int failed = kbtp_worker_init(&w->worker, &r->target, &w->on.cpu, r->address,
                                  w->private_memory.at, w->buffers.at);
    if (!failed)
        return CLI_DONE;
    w->worker = NULL;
    return complain_of(&w->on, "target", "cannot listen", failed);
}

static int make_target(struct real_run *r)
{
    struct kbtp_target_memory memory;
    size_t blocks = (size_t)r->config.block_count * r->config.block_size;
    if (!take_area(&r->shared, kbtp_target_octets(&r->config, r->grants), "the block table") ||
        !take_area(&r->blocks, blocks, "the blocks"))
        return CLI_ENVIRONMENT;
    kbtp_target_layout(&r->config, r->grants, r->shared.at, &memory);
    memory.blocks = r->blocks.at;
    int failed = kbtp_target_init(&r->target, &r->workers[0].on.cpu, &r->config, &memory);
    r->made = failed == 0;
    if (failed)
        return complain_of(&r->workers[0].on, "target", "cannot be made", failed);
    int status = CLI_DONE;
    for (uint32_t i = 0; i < part_of(r)->workers_count && status == CLI_DONE; i++)
        status = make_worker(r, &r->workers[i]);
    return status;
}

/* With the port that it has. */
static void learn_address(struct real_run *r)
{
    char *port = strrchr(r->address, ':') + 1;
    (void)snprintf(port, sizeof r->address - (size_t)(port - r->address), "%u",
                   rdma_verbs_port(r->workers[0].on.cpu.rdma));
}

/* ---- initiators -------------------------------------------------------------------------- */

/* Octets of a store say which request they are of, as in the simulator (sim/protocol_world.h). */
static uint8_t tag_of(const struct real_run *r, uint32_t initiator, uint32_t request)
{
    uint32_t tag = request + 1;
    for (uint32_t i = 0; i < initiator; i++)
        tag += part_of(r)->initiators[i].program_count;
    return (uint8_t)tag;
}

static int register_buffer(struct real_run *r, uint32_t initiator, uint32_t number)
{
    struct real_initiator *it = &r->initiators[initiator];
    const struct sim_initiator *s = &part_of(r)->initiators[initiator];
    const struct sim_request *request = &s->program[number];
    char *at = (char *)it->data.at + (size_t)number * SIM_MAX_LENGTH_OCTETS;
    if (request->length == 0)
        return CLI_DONE;
    if (request->op != SIM_REQUEST_LOAD)
        memset(at, tag_of(r, initiator, number), request->length);
    struct rdma_caps caps;
    rdma_caps(it->on.cpu.rdma, &caps);
    bool window = request->invalidate && caps.bits & RDMA_CAP_WINDOW;
    uint32_t access =
        RDMA_LOCAL_WRITE | RDMA_REMOTE_READ | RDMA_REMOTE_WRITE | (window ? RDMA_BIND_WINDOW : 0);
    int failed = rdma_reg(it->on.cpu.rdma, at, request->length, access, 0, &it->regions[number]);
    if (!failed && window)
        failed = rdma_window_alloc(it->on.cpu.rdma, &it->windows[number]);
    it->has_window[number] = !failed && window;
    return failed ? complain_of(&it->on, s->name, "cannot register a buffer", failed) : CLI_DONE;
}

static int make_initiator(struct real_run *r, uint32_t initiator)
{
    struct real_initiator *it = &r->initiators[initiator];
    const struct sim_initiator *s = &part_of(r)->initiators[initiator];
    size_t private_octets, buffer_octets;
    it->config = sim_program_initiator(r->scenario, initiator);
    it->config.address = r->address;
    if (!take_area(&it->records, (size_t)s->depth * KBTP_RECORD_OCTETS, "records"))
        return CLI_ENVIRONMENT;
    it->config.records = it->records.at;
    kbtp_initiator_memory(&it->config, &private_octets, &buffer_octets);
    if (!take_area(&it->private_memory, private_octets, "a session") ||
        !take_area(&it->buffers, buffer_octets, "messages") ||
        !take_area(&it->data, (size_t)s->program_count * SIM_MAX_LENGTH_OCTETS, "data"))
        return CLI_ENVIRONMENT;
    int failed = kbtp_initiator_init(&it->library, &it->on.cpu, &it->config, it->private_memory.at,
                                     it->buffers.at);
    if (failed) {
        it->library = NULL;
        return complain_of(&it->on, s->name, "cannot begin", failed);
    }
    int status = CLI_DONE;
    for (uint32_t i = 0; i < s->program_count && status == CLI_DONE; i++)
        status = register_buffer(r, initiator, i);
    return status;
}

/* ---- polling ----------------------------------------------------------------------------- */

static enum kbtp_initiator_state state_of(const struct real_initiator *it)
{
    return kbtp_initiator_state(it->library);
}

static void goodbye_ended(struct real_run *r, uint32_t initiator)
{
    struct real_initiator *it = &r->initiators[initiator];
    struct kbtp_outcome gone = {.status = KBTP_STATUS_OK, .error = kbtp_initiator_why(it->library)};
    sim_in_turn_told(r->t, initiator, it->goodbye - 1, &gone, NULL);
    it->goodbye = 0;
}

static int poll_initiator(struct real_run *r, uint32_t initiator)
{
    struct real_initiator *it = &r->initiators[initiator];
    struct kbtp_outcome outcome;
    int taken = kbtp_initiator_poll(it->library, &it->on.cpu, &outcome, 1);
    if (taken == 1 && outcome.cookie == JUDGING) {
        it->judgement = outcome;
        it->judged = true;
    } else if (taken == 1) {
        uint32_t request = (uint32_t)outcome.cookie;
        it->generations[request] = outcome.error ? 0 : outcome.generation;
        sim_in_turn_told(r->t, initiator, request, &outcome, it->regions[request].addr);
    }
    if (it->goodbye && state_of(it) == KBTP_INITIATOR_DOWN)
        goodbye_ended(r, initiator);
    return taken;
}

/* How many completions and outcomes were taken; -EIO after a complaint. Where nothing is new,
 * events are looked for (net/verbs/verbs.h: who only polls sees them late). */
static int poll_all(struct real_run *r)
{
    int sum = 0;
    for (uint32_t i = 0; i < part_of(r)->workers_count; i++) {
        struct real_worker *w = &r->workers[i];
        int taken = kbtp_worker_poll(w->worker, &w->on.cpu, BUDGET);
        if (taken == 0)
            taken = rdma_verbs_wait(w->on.cpu.rdma, 0);
        if (taken < 0)
            return complain_of(&w->on, "target", "cannot go on", taken), -EIO;
        sum += taken;
    }
    for (uint32_t i = 0; i < part_of(r)->initiators_count; i++) {
        struct real_initiator *it = &r->initiators[i];
        int taken = poll_initiator(r, i);
        if (taken == 0)
            taken = rdma_verbs_wait(it->on.cpu.rdma, 0);
        if (taken < 0)
            return complain_of(&it->on, part_of(r)->initiators[i].name, "cannot go on", taken),
                   -EIO;
        sum += taken;
    }
    return sum;
}

/* ---- rest -------------------------------------------------------------------------------- */

static bool worker_rests(const struct kbtp_worker_look *look)
{
    return look->requests + look->deferred + look->loads + look->hellos + look->probes +
               look->releases + look->leaving + look->drained ==
           0;
}

/* Nothing is under way, and each end of a connection has another end. */
static bool all_rests(const struct real_run *r)
{
    uint32_t connections = 0, ready = 0;
    for (uint32_t i = 0; i < part_of(r)->workers_count; i++) {
        struct kbtp_worker_look look;
        kbtp_worker_look(r->workers[i].worker, &look);
        if (!worker_rests(&look))
            return false;
        connections += look.connections;
    }
    for (uint32_t i = 0; i < part_of(r)->initiators_count; i++) {
        const struct real_initiator *it = &r->initiators[i];
        if (kbtp_initiator_outstanding(it->library) != 0 ||
            (state_of(it) != KBTP_INITIATOR_READY && state_of(it) != KBTP_INITIATOR_DOWN))
            return false;
        ready += state_of(it) == KBTP_INITIATOR_READY;
    }
    return connections == ready;
}

/* Nobody's connection may be lost in such a run. */
static int complain_of_losses(const struct real_run *r)
{
    for (uint32_t i = 0; i < part_of(r)->initiators_count; i++) {
        const struct real_initiator *it = &r->initiators[i];
        int why = kbtp_initiator_why(it->library);
        if (r->t->came[i] && !it->leaves && state_of(it) == KBTP_INITIATOR_DOWN && why <= 0)
            return complain_of(&it->on, part_of(r)->initiators[i].name, "the connection was lost",
                               why);
    }
    return CLI_DONE;
}

static int complain_of_time(const struct real_run *r)
{
    char open[200] = "";
    for (uint32_t i = 0; i < part_of(r)->initiators_count; i++)
        for (uint32_t j = 0; j < r->t->begun[i]; j++) {
            char name[24];
            sim_in_turn_name(r->scenario, i, j, name, sizeof name);
            size_t used = strlen(open);
            if (!r->t->outcomes[i][j].told)
                (void)snprintf(open + used, sizeof open - used, "%s%s", used ? ", " : "", name);
        }
    cli_complain("not at rest within %g s (--timeout)%s%s", r->options->timeout,
                 *open ? "; without outcome: " : "", open);
    return CLI_ENVIRONMENT;
}

static int rest(void *world)
{
    struct real_run *r = world;
    double until = real_now() + r->options->timeout;
    for (uint32_t still = 0; still < STILL;) {
        int taken = poll_all(r);
        if (taken < 0)
            return CLI_ENVIRONMENT;
        still = taken == 0 && all_rests(r) ? still + 1 : 0;
        if (still == 0 && real_now() > until)
            return complain_of_time(r);
    }
    return complain_of_losses(r);
}

/* ---- turns ------------------------------------------------------------------------------- */

static int connect_one(void *world, uint32_t initiator)
{
    struct real_run *r = world;
    struct real_initiator *it = &r->initiators[initiator];
    int failed = kbtp_initiator_connect(it->library, &it->on.cpu);
    return failed ? complain_of(&it->on, part_of(r)->initiators[initiator].name, "cannot connect",
                                failed)
                  : CLI_DONE;
}

static int submit(void *world, uint32_t initiator, uint32_t number)
{
    struct real_run *r = world;
    struct real_initiator *it = &r->initiators[initiator];
    int failed = sim_program_submit(it->library, &it->on.cpu, r->scenario, initiator, number,
                                    it->generations, &it->regions[number],
                                    it->has_window[number] ? &it->windows[number] : NULL);
    if (failed) {
        char name[24];
        sim_in_turn_name(r->scenario, initiator, number, name, sizeof name);
        return complain_of(&it->on, name, "cannot be sent", failed);
    }
    it->leaves = part_of(r)->initiators[initiator].program[number].op == SIM_REQUEST_GOODBYE;
    it->goodbye = it->leaves ? number + 1 : 0;
    return CLI_DONE;
}

static uint16_t refused(void *world, uint32_t initiator)
{
    const struct real_initiator *it = &((const struct real_run *)world)->initiators[initiator];
    return state_of(it) == KBTP_INITIATOR_DOWN ? (uint16_t)kbtp_initiator_why(it->library)
                                               : KBTP_STATUS_OK;
}

static bool is_over(void *world, uint32_t initiator)
{
    struct real_run *r = world;
    struct mem mem = {NULL};
    for (uint32_t i = 0; i < part_of(r)->initiators_count; i++) {
        bool stranger = part_of(r)->initiators[i].stranger;
        if (i != initiator && !stranger && state_of(&r->initiators[i]) != KBTP_INITIATOR_DOWN)
            return false;
    }
    for (uint32_t i = 0; i < part_of(r)->sessions_count; i++)
        if (kbtp_session_state_in(mem_load64(&mem, &r->target.sessions.sessions[i].state)) !=
            KBTP_SESSION_FREE)
            return false;
    return true;
}

/* ---- STags ------------------------------------------------------------------------------- */

/* LOADs through the STag of a request of the past; what comes of it is in it->judgement. */
static int load_through(struct real_run *r, uint32_t initiator, uint32_t number, uint64_t handle)
{
    struct real_initiator *it = &r->initiators[initiator];
    const struct rdma_region *region = &it->regions[number];
    const struct rdma_window *window = &it->windows[number];
    bool bound = it->has_window[number];
    const struct kbtp_operation operation = {.handle = handle,
                                             .data = region->addr,
                                             .stag = bound ? window->stag : region->stag,
                                             .tagged_offset =
                                                 bound ? window->base_to : region->base_to,
                                             .length = (uint32_t)region->length,
                                             .flags = KBTP_FLAG_ALLOW_UNSEALED,
                                             .opcode = KBTP_OP_LOAD};
    it->judged = false;
    it->leaves = true; /* if all is well the connection is lost */
    memset(region->addr, 0, region->length);
    int failed = kbtp_initiator_submit(it->library, &it->on.cpu, &operation, JUDGING);
    return failed ? complain_of(&it->on, part_of(r)->initiators[initiator].name, "cannot be sent",
                                failed)
                  : rest(r);
}

static bool is_untouched(const struct rdma_region *region)
{
    const char *at = region->addr;
    for (uint64_t i = 0; i < region->length; i++)
        if (at[i] != 0)
            return false;
    return true;
}

/* By using it. That of a window is valid on one connection alone: when that is lost, with an STag
 * judged before, what the device said of the completion has to do. */
static int judge(void *world, uint32_t initiator, uint32_t number, uint64_t handle,
                 const char **verdict)
{
    struct real_run *r = world;
    struct real_initiator *it = &r->initiators[initiator];
    int status = CLI_DONE;
    if (state_of(it) == KBTP_INITIATOR_DOWN) {
        if (it->has_window[number])
            return CLI_DONE;
        status = connect_one(r, initiator);
        if (status == CLI_DONE)
            status = rest(r);
    }
    if (status == CLI_DONE)
        status = load_through(r, initiator, number, handle);
    if (status != CLI_DONE)
        return status;
    if (it->judged && it->judgement.error && is_untouched(&it->regions[number]))
        *verdict = SIM_STAG_REVOKED;
    else
        *verdict = it->judged && it->judgement.status == KBTP_STATUS_OK ? SIM_STAG_VALID
                                                                        : "STag not judged";
    return CLI_DONE;
}

static const struct sim_in_turn_ops ops = {
    .connect = connect_one,
    .submit = submit,
    .rest = rest,
    .refused = refused,
    .is_over = is_over,
    .judge = judge,
};

/* ---- the end ----------------------------------------------------------------------------- */

static bool all_ended(const struct real_run *r)
{
    bool ended = true;
    for (uint32_t i = 0; i < part_of(r)->initiators_count; i++)
        ended &= state_of(&r->initiators[i]) == KBTP_INITIATOR_DOWN;
    for (uint32_t i = 0; i < part_of(r)->workers_count; i++)
        ended &= kbtp_worker_idle(r->workers[i].worker);
    return ended;
}

/* Connections end in order, if they do so in time. */
static void leave(struct real_run *r)
{
    double until = real_now() + LEAVE_S;
    for (uint32_t i = 0; i < part_of(r)->initiators_count; i++) {
        struct real_initiator *it = &r->initiators[i];
        if (state_of(it) != KBTP_INITIATOR_DOWN)
            kbtp_initiator_disconnect(it->library, &it->on.cpu);
    }
    for (uint32_t i = 0; i < part_of(r)->workers_count; i++)
        kbtp_worker_stop(r->workers[i].worker, &r->workers[i].on.cpu);
    while (!all_ended(r) && real_now() < until && poll_all(r) >= 0)
        ;
}

static void end_initiator(struct real_initiator *it)
{
    if (it->library && state_of(it) == KBTP_INITIATOR_DOWN)
        (void)kbtp_initiator_end(it->library, &it->on.cpu);
    for (uint32_t i = 0; i < SIM_MAX_REQUESTS; i++) {
        if (it->has_window[i])
            (void)rdma_window_free(it->on.cpu.rdma, &it->windows[i]);
        if (it->regions[i].length)
            (void)rdma_dereg(it->on.cpu.rdma, &it->regions[i]);
    }
}

/* What is not idle ends with its handle; the memory goes after that. */
static void close_all(struct real_run *r)
{
    bool idle = true;
    for (uint32_t i = 0; i < SIM_MAX_INITIATORS; i++)
        end_initiator(&r->initiators[i]);
    for (uint32_t i = 0; i < SIM_MAX_WORKERS; i++) {
        struct real_worker *w = &r->workers[i];
        if (w->worker && kbtp_worker_idle(w->worker))
            (void)kbtp_worker_end(w->worker, &w->on.cpu);
        else
            idle &= !w->worker;
    }
    if (r->made && idle)
        (void)kbtp_target_end(&r->target, &r->workers[0].on.cpu);
    for (uint32_t i = 0; i < SIM_MAX_INITIATORS; i++)
        if (r->initiators[i].on.cpu.rdma)
            rdma_verbs_handle_close(r->initiators[i].on.cpu.rdma);
    for (uint32_t i = 0; i < SIM_MAX_WORKERS; i++)
        if (r->workers[i].on.cpu.rdma)
            rdma_verbs_handle_close(r->workers[i].on.cpu.rdma);
    rdma_verbs_close(r->device);
}

static void give_back(struct area *area)
{
    real_memory_end(area->at, area->octets);
}

static void free_all(struct real_run *r)
{
    for (uint32_t i = 0; i < SIM_MAX_INITIATORS; i++) {
        give_back(&r->initiators[i].private_memory);
        give_back(&r->initiators[i].buffers);
        give_back(&r->initiators[i].records);
        give_back(&r->initiators[i].data);
    }
    for (uint32_t i = 0; i < SIM_MAX_WORKERS; i++) {
        give_back(&r->workers[i].private_memory);
        give_back(&r->workers[i].buffers);
    }
    give_back(&r->shared);
    give_back(&r->blocks);
    free(r);
}

/* ------------------------------------------------------------------------------------------ */

static int start(struct real_run *r)
{
    configure(r);
    int status = open_device(r);
    if (status == CLI_DONE)
        status = check_device(r);
    if (status == CLI_DONE)
        status = make_target(r);
    if (status == CLI_DONE)
        learn_address(r);
    for (uint32_t i = 0; i < part_of(r)->initiators_count && status == CLI_DONE; i++)
        status = make_initiator(r, i);
    return status;
}

int run_real_over_device(const struct run_real_options *options, struct sim_in_turn *t)
{
    char unfinished[24];
    struct real_run *r = calloc(1, sizeof *r);
    if (!r) {
        cli_complain("no memory");
        return CLI_ENVIRONMENT;
    }
    r->options = options;
    r->scenario = t->scenario;
    r->t = t;
    t->ops = &ops;
    t->world = r;
    int status = real_address(options->listen, r->address);
    if (status == CLI_DONE)
        status = start(r);
    if (status == CLI_DONE) {
        status = sim_in_turn_run(t, unfinished, sizeof unfinished);
        if (status == -EBUSY) {
            cli_complain("%s has no outcome, though all is at rest", unfinished);
            status = CLI_FOUND;
        }
        leave(r);
    }
    close_all(r);
    free_all(r);
    return status;
}
