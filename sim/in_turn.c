/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/in_turn.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "ref/wire_names.h"
#include "sim/program.h"

/* ---- which scenarios --------------------------------------------------------------------- */

/* What its key leaves to the simulator, or NULL. */
static const char *key_that_chooses(const struct sim_protocol_part *part)
{
    const struct {
        bool is_there;
        const char *what;
    } keys[] = {
        {part->losses != 0, "losses: connections that may be lost"},
        {part->stops != 0, "stops: initiators that may stop"},
        {part->silent_stops != 0, "silent_stops: initiators that may stop"},
        {part->restarts != 0, "restarts: a target that may start again"},
        {part->retention != SIM_RETENTION_LASTS, "retention_ends: a time that may be over"},
        {part->probes == SIM_PROBES_LATE, "probes: a time that may be over"},
        {part->ticket_timeout, "ticket_timeout: a time that may be over"},
    };
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (keys[i].is_there)
            return keys[i].what;
    return NULL;
}

bool sim_in_turn_suits(const struct sim_scenario *s, char *why, size_t size)
{
    if (s->kind != SIM_KIND_PROTOCOL) {
        (void)snprintf(why, size, "kind: ring has no requests, only kind protocol has");
        return false;
    }
    const char *key = key_that_chooses(&s->protocol);
    if (key) {
        (void)snprintf(why, size, "%s, which only the simulator decides", key);
        return false;
    }
    for (uint32_t i = 0; i < s->protocol.initiators_count; i++)
        if (s->protocol.initiators[i].retries != 0) {
            (void)snprintf(why, size,
                           "initiators[%u].retries: another try, of which only the simulator "
                           "decides when it is made",
                           i);
            return false;
        }
    return true;
}

/* ---- the transcript ---------------------------------------------------------------------- */

void sim_in_turn_name(const struct sim_scenario *s, uint32_t initiator, uint32_t request, char *out,
                      size_t size)
{
    (void)snprintf(out, size, "%s.%u", s->protocol.initiators[initiator].name, request + 1);
}

static const char *const op_names[] = {"load", "store", "alloc_store", "free", "goodbye"};

static void name_handle(const struct sim_scenario *s, const struct sim_request *request, char *out,
                        size_t size)
{
    if (request->op == SIM_REQUEST_GOODBYE)
        (void)snprintf(out, size, "-");
    else if (request->owner == SIM_NOBODY)
        (void)snprintf(out, size, "outside");
    else
        (void)snprintf(out, size, "%s.%u", s->protocol.initiators[request->owner].name,
                       request->handle);
}

static const char *how(const struct sim_request *request, const struct kbtp_outcome *outcome)
{
    if (request->op == SIM_REQUEST_GOODBYE)
        return "";
    if (request->direct && request->op == SIM_REQUEST_LOAD)
        return " direct";
    return outcome->by_record ? " record" : "";
}

static void write_data(const struct sim_request *request, const struct sim_in_turn_outcome *told,
                       char *out, size_t size)
{
    bool moved = request->op != SIM_REQUEST_FREE && request->op != SIM_REQUEST_GOODBYE &&
                 told->outcome.error == 0 && told->outcome.status == KBTP_STATUS_OK;
    if (moved)
        (void)snprintf(out, size, "%s %016llx",
                       request->op == SIM_REQUEST_LOAD ? "loaded" : "stored",
                       (unsigned long long)told->hash);
    else
        (void)snprintf(out, size, "-");
}

static char *new_line(struct sim_in_turn *t)
{
    return t->lines[t->count++];
}

/* What is bound now, after a request with status OK. */
static void note_bound(struct sim_in_turn *t, uint32_t initiator, const struct sim_request *request,
                       uint32_t data_length)
{
    switch (request->op) {
    case SIM_REQUEST_STORE:
    case SIM_REQUEST_ALLOC_STORE:
        t->bound[request->owner][request->handle] = data_length;
        break;
    case SIM_REQUEST_FREE:
        t->bound[request->owner][request->handle] = 0;
        break;
    case SIM_REQUEST_GOODBYE:
        if (request->release)
            memset(t->bound[t->scenario->protocol.initiators[initiator].session], 0,
                   sizeof t->bound[0]);
        break;
    default:
        break;
    }
}

static void write_outcome(struct sim_in_turn *t, uint32_t initiator, uint32_t number)
{
    const struct sim_request *request =
        &t->scenario->protocol.initiators[initiator].program[number];
    const struct sim_in_turn_outcome *told = &t->outcomes[initiator][number];
    const struct kbtp_outcome *outcome = &told->outcome;
    uint32_t status = outcome->error ? SIM_STATUS_LOST : outcome->status;
    char name[24], handle[24], data[32];
    sim_in_turn_name(t->scenario, initiator, number, name, sizeof name);
    name_handle(t->scenario, request, handle, sizeof handle);
    write_data(request, told, data, sizeof data);
    (void)snprintf(
        new_line(t), SIM_IN_TURN_OCTETS, "%-6s %-11s %-8s %-16s generation %-5u octets %-4u %s%s",
        name, op_names[request->op], handle,
        outcome->error ? "LOST" : kbtp_status_name(outcome->status), (unsigned)outcome->generation,
        outcome->data_length, data, how(request, outcome));
    if (status == KBTP_STATUS_OK)
        note_bound(t, initiator, request, outcome->data_length);
    t->unexpected += request->expect != 0 && !(request->expect >> status & 1);
}

static void write_refusal(struct sim_in_turn *t, uint32_t initiator, uint16_t status)
{
    (void)snprintf(new_line(t), SIM_IN_TURN_OCTETS, "%-6s %-11s %-8s %s",
                   t->scenario->protocol.initiators[initiator].name, "hello", "-",
                   kbtp_status_name(status));
}

static void write_what_never_began(struct sim_in_turn *t)
{
    const struct sim_protocol_part *part = &t->scenario->protocol;
    for (uint32_t i = 0; i < part->initiators_count; i++)
        for (uint32_t j = t->begun[i]; j < part->initiators[i].program_count; j++) {
            const struct sim_request *request = &part->initiators[i].program[j];
            char name[24], handle[24];
            sim_in_turn_name(t->scenario, i, j, name, sizeof name);
            name_handle(t->scenario, request, handle, sizeof handle);
            (void)snprintf(new_line(t), SIM_IN_TURN_OCTETS, "%-6s %-11s %-8s not begun", name,
                           op_names[request->op], handle);
        }
}

/* A handle with data that goes into such a buffer. */
static bool find_bound(const struct sim_in_turn *t, uint32_t length, struct sim_request *found)
{
    for (uint32_t i = 0; i < t->scenario->protocol.sessions_count; i++)
        for (uint32_t j = 0; j < t->scenario->protocol.handles; j++)
            if (t->bound[i][j] != 0 && t->bound[i][j] <= length) {
                *found = (struct sim_request){.owner = i, .handle = j};
                return true;
            }
    return false;
}

static int judge(struct sim_in_turn *t, uint32_t initiator, uint32_t number)
{
    const struct sim_request *request =
        &t->scenario->protocol.initiators[initiator].program[number];
    const struct sim_in_turn_outcome *told = &t->outcomes[initiator][number];
    const char *verdict = told->outcome.invalidated ? SIM_STAG_REVOKED : SIM_STAG_VALID;
    struct sim_request bound;
    char name[24];
    if (!request->invalidate || request->op != SIM_REQUEST_LOAD || told->outcome.error != 0 ||
        !find_bound(t, request->length, &bound))
        return 0;
    int failed = t->ops->judge
                     ? t->ops->judge(t->world, initiator, number,
                                     sim_program_handle(&t->scenario->protocol, &bound), &verdict)
                     : 0;
    sim_in_turn_name(t->scenario, initiator, number, name, sizeof name);
    (void)snprintf(new_line(t), SIM_IN_TURN_OCTETS, "%-6s %s", name, verdict);
    t->unexpected += strcmp(verdict, SIM_STAG_REVOKED) != 0;
    return failed;
}

static int judge_stags(struct sim_in_turn *t)
{
    int failed = 0;
    for (uint32_t i = 0; i < t->scenario->protocol.initiators_count; i++)
        for (uint32_t j = t->begun[i]; j-- > 0 && !failed;)
            failed = judge(t, i, j);
    return failed;
}

uint32_t sim_in_turn_compare(const struct sim_in_turn *a, const struct sim_in_turn *b)
{
    uint32_t i = 0;
    while (i < a->count && i < b->count && strcmp(a->lines[i], b->lines[i]) == 0)
        i++;
    return i;
}

void sim_in_turn_told(struct sim_in_turn *t, uint32_t initiator, uint32_t request,
                      const struct kbtp_outcome *outcome, const void *buffer)
{
    uint32_t length = t->scenario->protocol.initiators[initiator].program[request].length;
    t->outcomes[initiator][request] = (struct sim_in_turn_outcome){
        .outcome = *outcome, .hash = buffer ? XXH3_64bits(buffer, length) : 0, .told = true};
}

/* ---- the order --------------------------------------------------------------------------- */

static bool may_begin(const struct sim_in_turn *t, const struct sim_request *request)
{
    return request->after_initiator == SIM_NOBODY ||
           t->outcomes[request->after_initiator][request->after_request].told;
}

static bool is_alone(const struct sim_request *request)
{
    return request->direct || request->op == SIM_REQUEST_GOODBYE;
}

/* Does it come now? It has not yet. */
static bool comes(const struct sim_in_turn *t, uint32_t initiator)
{
    const struct sim_initiator *s = &t->scenario->protocol.initiators[initiator];
    if (s->session == initiator)
        return true;
    return !s->restart && may_begin(t, &s->program[0]) &&
           (!s->stranger || t->ops->is_over(t->world, initiator));
}

static int come(struct sim_in_turn *t, uint32_t initiator)
{
    t->came[initiator] = true;
    int failed = t->ops->connect(t->world, initiator);
    if (!failed)
        failed = t->ops->rest(t->world);
    if (failed)
        return failed;
    uint16_t status = t->ops->refused(t->world, initiator);
    t->refused[initiator] = status != KBTP_STATUS_OK;
    if (t->refused[initiator])
        write_refusal(t, initiator, status);
    return 0;
}

/* Begins what can begin; *last is behind it. */
static int begin(struct sim_in_turn *t, uint32_t initiator, uint32_t *last)
{
    const struct sim_initiator *s = &t->scenario->protocol.initiators[initiator];
    uint32_t first = t->begun[initiator];
    for (; *last < s->program_count && *last - first < s->depth; ++*last) {
        const struct sim_request *request = &s->program[*last];
        if (!may_begin(t, request) || (*last != first && is_alone(request)))
            break;
        t->begun[initiator]++;
        int failed = t->ops->submit(t->world, initiator, *last);
        if (failed)
            return failed;
        if (is_alone(request)) {
            ++*last;
            break;
        }
    }
    return 0;
}

/* *acts: it has not missed its turn. */
static int turn(struct sim_in_turn *t, uint32_t initiator, bool *acts, char *unfinished,
                size_t size)
{
    int failed = 0;
    if (!t->came[initiator] && comes(t, initiator)) {
        failed = come(t, initiator);
        *acts = true;
    }
    if (failed || !t->came[initiator] || t->refused[initiator])
        return failed;
    uint32_t first = t->begun[initiator], last = first;
    failed = begin(t, initiator, &last);
    if (failed || first == last)
        return failed;
    *acts = true;
    failed = t->ops->rest(t->world);
    for (uint32_t i = first; i < last && !failed; i++) {
        if (t->outcomes[initiator][i].told) {
            write_outcome(t, initiator, i);
            continue;
        }
        sim_in_turn_name(t->scenario, initiator, i, unfinished, size);
        failed = -EBUSY;
    }
    return failed;
}

int sim_in_turn_run(struct sim_in_turn *t, char *unfinished, size_t size)
{
    const struct sim_protocol_part *part = &t->scenario->protocol;
    int failed = 0;
    for (uint32_t i = 0; i < part->sessions_count && !failed; i++)
        failed = come(t, i);
    for (bool acts = true; acts && !failed;) {
        acts = false;
        for (uint32_t i = 0; i < part->initiators_count && !failed; i++)
            failed = turn(t, i, &acts, unfinished, size);
    }
    if (failed)
        return failed;
    write_what_never_began(t);
    return judge_stags(t);
}
