/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An initiator that has always something under way, to be killed. Of its handles the first are kept
 * for as long as its session is there: they are stored once, sealed, and looked at in between. The
 * others are allocated, stored to, loaded and freed at random. Every status is one that follows
 * from what it has done, and whatever it loads was stored there; those of another initiator too.
 *
 * Usage: vm-work ADDRESS IDENTITY SECONDS SEED
 * Prints "kept HANDLE GENERATION" for each that is, by this or an earlier process with this
 * identity, and then "busy". By SIGTERM or in the end it leaves with GOODBYE, without RELEASE.
 */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <time.h>

#include "tests/vm/session.h"

#define HANDLES 10u /* the quota is at least as much */
#define KEPT 2u

struct bound {
    uint32_t version; /* how often anything was stored */
    uint16_t generation;
    bool valid, sealed, busy;
};

struct asked {
    uint32_t n; /* of the handle: from HANDLES on another's */
    uint8_t opcode;
    bool used, seals;
};

struct work {
    struct session session;
    struct bound bound[HANDLES];
    struct asked asked[SESSION_DEPTH];
    uint64_t random, done;
    uint32_t identity;
};

static volatile sig_atomic_t stopped;

static void stop(int signal_number)
{
    (void)signal_number;
    stopped = 1;
}

static uint64_t handle_of(const struct work *w, uint32_t n)
{
    return session_target(&w->session)->handle_base + n;
}

static void expect(bool holds, const struct work *w, uint32_t n, const char *what, unsigned value)
{
    if (!holds)
        give_up(1, "identity %u, handle 0x%" PRIx64 ": %s (%u)", w->identity, handle_of(w, n), what,
                value);
}

/* ---- what an earlier process has left ---------------------------------------------------- */

static void look_at(struct work *w, uint32_t n)
{
    struct bound *bound = &w->bound[n];
    struct kbtp_operation load = session_operation(&w->session, KBTP_OP_LOAD, n, 0);
    struct kbtp_outcome outcome = session_do(&w->session, &load);
    bound->sealed = outcome.status == KBTP_STATUS_OK;
    if (outcome.status == KBTP_STATUS_NOT_SEALED) {
        load.flags = KBTP_FLAG_ALLOW_UNSEALED;
        outcome = session_do(&w->session, &load);
    }
    bound->valid = outcome.status == KBTP_STATUS_OK;
    bound->generation = outcome.generation;
    expect(bound->valid || outcome.status == KBTP_STATUS_NOT_VALID, w, n, "status of LOAD",
           outcome.status);
    if (bound->valid)
        expect(data_is(session_place(&w->session, 0), outcome.data_length, handle_of(w, n),
                       &bound->version),
               w, n, "other octets than were stored", outcome.data_length);
}

static void keep(struct work *w, uint32_t n)
{
    struct bound *bound = &w->bound[n];
    if (!bound->valid) {
        struct kbtp_operation store = session_operation(&w->session, KBTP_OP_ALLOC_STORE, n, 0);
        store.flags = KBTP_FLAG_SEAL;
        data_fill(session_place(&w->session, 0), store.length, store.handle, 0);
        struct kbtp_outcome outcome = session_do(&w->session, &store);
        expect(outcome.status == KBTP_STATUS_OK, w, n, "status of ALLOC_STORE", outcome.status);
        *bound = (struct bound){.valid = true, .sealed = true, .generation = outcome.generation};
    }
    printf("kept 0x%" PRIx64 " %u\n", handle_of(w, n), bound->generation);
}

static void begin(struct work *w)
{
    uint32_t used = 0;
    session_open(&w->session);
    if (session_target(&w->session)->allocation_quota < HANDLES)
        give_up(2, "a quota of at least %u is needed", HANDLES);
    for (uint32_t n = 0; n < HANDLES; n++) {
        look_at(w, n);
        used += w->bound[n].valid;
    }
    (void)kbtp_initiator_set_usage(w->session.initiator, used);
    for (uint32_t n = 0; n < KEPT; n++)
        keep(w, n);
    printf("busy\n");
    (void)fflush(stdout);
}

/* ---- work -------------------------------------------------------------------------------- */

static void store(struct work *w, struct asked *asked, struct kbtp_operation *operation)
{
    struct bound *bound = &w->bound[asked->n];
    uint8_t *data = session_place(&w->session, (uint32_t)(asked - w->asked));
    uint32_t most = operation->length;
    if (pick(&w->random, 4) == 0) {
        operation->flags = KBTP_FLAG_INLINE;
        operation->data = data;
        operation->stag = 0;
        operation->tagged_offset = 0;
        most = SESSION_MAX_INLINE;
    }
    operation->length = DATA_LEAST + pick(&w->random, most - DATA_LEAST + 1);
    asked->seals = pick(&w->random, 3) == 0;
    if (asked->seals)
        operation->flags |= KBTP_FLAG_SEAL;
    data_fill(data, operation->length, operation->handle, ++bound->version);
}

static uint8_t choose(struct work *w, uint32_t n)
{
    const struct bound *bound = n < HANDLES ? &w->bound[n] : NULL;
    if (n < KEPT || n >= HANDLES)
        return KBTP_OP_LOAD;
    if (!bound->valid)
        return KBTP_OP_ALLOC_STORE;
    uint32_t kind = pick(&w->random, 4);
    if (kind < 2)
        return KBTP_OP_LOAD;
    return kind == 2 && !bound->sealed ? KBTP_OP_STORE : KBTP_OP_FREE;
}

/* One more request, at a place that is free; none when the handle that was picked is busy. */
static void ask(struct work *w, uint32_t place)
{
    struct asked *asked = &w->asked[place];
    const struct kbtp_hello_ack *target = session_target(&w->session);
    uint32_t n = pick(&w->random, HANDLES + 2);
    if (n < HANDLES && w->bound[n].busy)
        return;
    if (n >= HANDLES) /* the next one's, whose range follows; there may be none */
        n = target->handle_count + pick(&w->random, HANDLES);
    *asked = (struct asked){.n = n, .opcode = choose(w, n), .used = true};
    struct kbtp_operation operation = session_operation(&w->session, asked->opcode, n, place);
    if (asked->opcode == KBTP_OP_STORE || asked->opcode == KBTP_OP_ALLOC_STORE)
        store(w, asked, &operation);
    else if (asked->opcode == KBTP_OP_LOAD && n < HANDLES && !w->bound[n].sealed)
        operation.flags = KBTP_FLAG_ALLOW_UNSEALED;
    session_submit(&w->session, &operation, place);
    if (n < HANDLES)
        w->bound[n].busy = true;
}

static void check_own(struct work *w, const struct asked *asked, uint32_t place,
                      const struct kbtp_outcome *outcome)
{
    struct bound *bound = &w->bound[asked->n];
    uint32_t version = 0;
    expect(outcome->status == KBTP_STATUS_OK, w, asked->n, kbtp_opcode_name(asked->opcode),
           outcome->status);
    bound->busy = false;
    if (asked->opcode == KBTP_OP_LOAD) {
        expect(outcome->generation == bound->generation, w, asked->n, "Generation",
               outcome->generation);
        expect(data_is(session_place(&w->session, place), outcome->data_length, outcome->handle,
                       &version),
               w, asked->n, "other octets than were stored", outcome->data_length);
        expect(version == bound->version, w, asked->n, "older octets", version);
        return;
    }
    bound->valid = asked->opcode != KBTP_OP_FREE;
    bound->sealed = asked->seals;
    bound->generation = outcome->generation;
}

static void check_other(struct work *w, const struct asked *asked, uint32_t place,
                        const struct kbtp_outcome *outcome)
{
    uint32_t version;
    if (outcome->status == KBTP_STATUS_OK)
        expect(data_is(session_place(&w->session, place), outcome->data_length, outcome->handle,
                       &version),
               w, asked->n, "other octets than were stored", outcome->data_length);
    else
        expect(outcome->status == KBTP_STATUS_NOT_VALID ||
                   outcome->status == KBTP_STATUS_NOT_SEALED ||
                   outcome->status == KBTP_STATUS_INVALID_HANDLE,
               w, asked->n, "LOAD of another's", outcome->status);
}

static void take(struct work *w)
{
    struct kbtp_outcome outcome;
    if (session_poll(&w->session, &outcome) == 0)
        return;
    uint32_t place = (uint32_t)outcome.cookie;
    struct asked asked = w->asked[place];
    w->asked[place].used = false;
    w->done++;
    if (asked.n < HANDLES)
        check_own(w, &asked, place, &outcome);
    else
        check_other(w, &asked, place, &outcome);
}

int main(int argc, char **argv)
{
    static struct work w;
    if (argc != 5)
        give_up(2, "usage: vm-work ADDRESS IDENTITY SECONDS SEED");
    w.identity = number_of(argv[2], "IDENTITY");
    time_t until = time(NULL) + number_of(argv[3], "SECONDS");
    w.random = (number_of(argv[4], "SEED") + UINT64_C(1)) * UINT64_C(0x9e3779b97f4a7c15);
    if (session_begin(&w.session, session_device(argv[1]), argv[1], w.identity) != 0)
        give_up(4, "%s", rdma_verbs_failure(w.session.cpu.rdma));
    begin(&w);
    (void)signal(SIGTERM, stop);
    while (!stopped && time(NULL) < until) {
        for (uint32_t place = 0; place < SESSION_DEPTH; place++)
            if (!w.asked[place].used)
                ask(&w, place);
        take(&w);
    }
    while (kbtp_initiator_outstanding(w.session.initiator) > 0)
        take(&w);
    printf("%" PRIu64 " requests\n", w.done);
    session_leave(&w.session, false);
    rdma_verbs_close(w.session.device);
    return 0;
}
