/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/scenario_request.h"

#include <string.h>

#include "ref/wire_names.h"
#include "sim/scenario_value.h"

#define OP(name) (1u << SIM_REQUEST_##name)
#define STORES (OP(STORE) | OP(ALLOC_STORE))
#define WITH_DATA (OP(LOAD) | STORES)
#define WITH_HANDLE (WITH_DATA | OP(FREE))

/* A request while it is read. */
struct reader {
    const struct sim_text *text;
    const struct sim_raw_request *raw;
    const struct sim_scenario *s;
    uint32_t initiator, index;
    struct sim_request *request;
};

/* "initiators[1].program[0].length"; without `key` that of the request. */
static struct sim_string request_path(uint32_t initiator, uint32_t index, const char *key)
{
    struct sim_string path = sim_entry_path("initiators", initiator, "program");
    sim_path_add_entry(&path, index);
    if (key != NULL)
        sim_path_add_key(&path, key);
    return path;
}

#define complain(reader, key, ...) \
    sim_complain((reader)->text, request_path((reader)->initiator, (reader)->index, key).text, \
                 __VA_ARGS__)

/* ---- which keys an operation has --------------------------------------------------------- */

static bool complain_of_op(const struct reader *r, const char *key, unsigned ops)
{
    char names[64] = "";
    for (unsigned op = SIM_REQUEST_LOAD; op <= SIM_REQUEST_GOODBYE; op++)
        if ((ops >> op & 1) != 0)
            sim_list_add(names, sizeof names, sim_raw_op_name((enum sim_request_op)op));
    return complain(r, key, "is for op %s, not for %s, remove it", names,
                    sim_raw_op_name(r->request->op));
}

static bool check_keys(const struct reader *r)
{
    const struct sim_raw_request *raw = r->raw;
    const struct {
        const char *key;
        bool given;
        unsigned ops;
    } keys[] = {
        {"handle", raw->handle != NULL, WITH_HANDLE},
        {"length", raw->length != NULL, WITH_DATA},
        {"inline", raw->inline_data != NULL, STORES},
        {"seal", raw->seal != NULL, STORES},
        {"allow_unsealed", raw->allow_unsealed != NULL, OP(LOAD)},
        {"direct", raw->direct != NULL, OP(LOAD) | OP(ALLOC_STORE)},
        {"record", raw->record != NULL, WITH_HANDLE},
        {"invalidate", raw->invalidate != NULL, WITH_DATA},
        {"release", raw->release != NULL, OP(GOODBYE)},
        {"generation", raw->generation != NULL, WITH_HANDLE},
        {"expect", raw->expect != NULL, WITH_HANDLE},
    };
    unsigned op = r->request->op;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (keys[i].given && (keys[i].ops >> op & 1) == 0)
            return complain_of_op(r, keys[i].key, keys[i].ops);
    if (op == SIM_REQUEST_GOODBYE &&
        r->index + 1 < r->s->protocol.initiators[r->initiator].program_count)
        return complain(r, "op", "goodbye ends the session, make it the last request");
    return true;
}

/* ---- values ------------------------------------------------------------------------------ */

/* "NAME.number": the initiator's index, or SIM_NOBODY; *number is then what follows the dot. */
static uint32_t find_initiator(const struct sim_protocol_part *p, const char *raw,
                               const char **number)
{
    const char *dot = strchr(raw, '.');
    *number = dot != NULL ? dot + 1 : raw;
    for (uint32_t i = 0; dot != NULL && i < p->initiators_count; i++) {
        const char *name = p->initiators[i].name;
        if (strlen(name) == (size_t)(dot - raw) && memcmp(name, raw, (size_t)(dot - raw)) == 0)
            return i;
    }
    return SIM_NOBODY;
}

static bool complain_of_initiator(const struct reader *r, const char *key, const char *raw)
{
    char names[96] = "";
    for (unsigned i = 0; i < r->s->protocol.initiators_count; i++)
        sim_list_add(names, sizeof names, r->s->protocol.initiators[i].name);
    return complain(r, key, "%s names no initiator before the '.', write one of %s",
                    sim_quoted(raw).text, names);
}

/* At the request, as for any key that is missing. */
static bool complain_of_no_handle(const struct reader *r)
{
    struct sim_string path = request_path(r->initiator, r->index, NULL);
    struct sim_place place = sim_text_marked(r->text, 0, path.text)->place;
    sim_path_add_key(&path, "handle");
    return sim_complain_at(r->text, place, path.text, "is required and missing, add it");
}

static bool read_handle(const struct reader *r)
{
    const struct sim_protocol_part *p = &r->s->protocol;
    const char *raw = r->raw->handle, *number;
    struct sim_request *request = r->request;
    request->owner = SIM_NOBODY;
    if (request->op == SIM_REQUEST_GOODBYE)
        return true;
    if (raw == NULL)
        return complain_of_no_handle(r);
    if (strcmp(raw, "outside") == 0)
        return true;
    request->owner = find_initiator(p, raw, &number);
    if (strchr(raw, '.') == NULL)
        request->owner = p->initiators[r->initiator].session;
    else if (request->owner == SIM_NOBODY)
        return complain_of_initiator(r, "handle", raw);
    else
        request->owner = p->initiators[request->owner].session;
    uint64_t handle;
    if (!sim_is_number(number, &handle) || handle >= p->handles)
        return complain(r, "handle",
                        "%s is not a handle, write a number from 0 to %u, NAME.number for that of "
                        "another initiator, or outside",
                        sim_quoted(raw).text, p->handles - 1);
    request->handle = (uint32_t)handle;
    return true;
}

static bool read_data(const struct reader *r)
{
    struct sim_request *request = r->request;
    uint32_t most = r->s->protocol.max_inline;
    if ((WITH_DATA >> request->op & 1) == 0)
        return true;
    if (!sim_read_number(r->text, request_path(r->initiator, r->index, "length").text,
                         r->raw->length, (uint32_t)r->s->block_size, 0, SIM_MAX_LENGTH_OCTETS,
                         &request->length))
        return false;
    if (request->inline_data && request->length > most)
        return complain(r, r->raw->length != NULL ? "length" : "inline",
                        "%u octets of inline data are more than max_inline (%u), lower length or "
                        "raise max_inline",
                        request->length, most);
    if (request->direct && (request->invalidate || request->allow_unsealed))
        return complain(r, request->invalidate ? "invalidate" : "allow_unsealed",
                        "what is direct sends no request that could say so, remove it or direct");
    if (request->direct && (request->inline_data || request->seal))
        return complain(r, request->seal ? "seal" : "inline",
                        "a direct allocation sends a BIND, which cannot say so, remove it or "
                        "direct");
    if (request->record && (request->direct || request->invalidate))
        return complain(r, "record", "%s, remove one of them",
                        request->direct ? "what is direct has no completion record"
                                        : "a completion record invalidates nothing");
    if (request->direct && request->op == SIM_REQUEST_LOAD && r->raw->handle != NULL &&
        strcmp(r->raw->handle, "outside") == 0)
        return complain(r, "handle", "a direct load reads the table only, name a handle in it");
    if (request->inline_data && request->invalidate)
        return complain(r, "invalidate",
                        "inline data has no STag that could be invalidated, remove invalidate or "
                        "inline");
    return true;
}

static bool read_after(const struct reader *r)
{
    const struct sim_protocol_part *p = &r->s->protocol;
    const char *raw = r->raw->after, *number;
    r->request->after_initiator = SIM_NOBODY;
    if (raw == NULL)
        return true;
    uint32_t initiator = find_initiator(p, raw, &number);
    if (initiator == SIM_NOBODY && strchr(raw, '.') != NULL)
        return complain_of_initiator(r, "after", raw);
    if (initiator == SIM_NOBODY)
        return complain(r, "after", "%s is not a request, write NAME.number, such as %s.1",
                        sim_quoted(raw).text, p->initiators[0].name);
    uint64_t request;
    uint32_t count = p->initiators[initiator].program_count;
    if (!sim_is_number(number, &request) || request < 1 || request > count)
        return complain(r, "after", "%s is not a request, those of %s are %s.1 to %s.%u",
                        sim_quoted(raw).text, p->initiators[initiator].name,
                        p->initiators[initiator].name, p->initiators[initiator].name, count);
    if (initiator == r->initiator && request > r->index)
        return complain(r, "after",
                        "%s is this request or a later one of the same initiator, name an earlier "
                        "one",
                        sim_quoted(raw).text);
    r->request->after_initiator = initiator;
    r->request->after_request = (uint32_t)request - 1;
    return true;
}

/* ---- what may come of it ----------------------------------------------------------------- */

#define LAST_STATUS KBTP_STATUS_TICKET_ABANDONED

static const char *expected_name(uint32_t status)
{
    if (status == SIM_STATUS_LOST)
        return "LOST";
    return status <= LAST_STATUS ? kbtp_status_name((uint16_t)status) : NULL;
}

/* Above SIM_STATUS_LOST: there is no such name. */
static uint32_t expected_status(const char *name)
{
    uint32_t status = 0;
    for (; status <= SIM_STATUS_LOST; status++)
        if (expected_name(status) != NULL && strcmp(expected_name(status), name) == 0)
            break;
    return status;
}

static bool complain_of_status(const struct reader *r, unsigned i)
{
    char names[192] = "";
    for (uint32_t status = 0; status <= SIM_STATUS_LOST; status++)
        if (expected_name(status) != NULL)
            sim_list_add(names, sizeof names, expected_name(status));
    struct sim_string path = request_path(r->initiator, r->index, "expect");
    sim_path_add_entry(&path, i);
    return sim_complain(r->text, path.text, "%s is not a status, write one of %s",
                        sim_quoted(r->raw->expect[i]).text, names);
}

static bool read_expect(const struct reader *r)
{
    for (unsigned i = 0; i < r->raw->expect_count; i++) {
        uint32_t status = expected_status(r->raw->expect[i]);
        if (status > SIM_STATUS_LOST)
            return complain_of_status(r, i);
        r->request->expect |= 1u << status;
    }
    return true;
}

bool sim_scenario_read_request(const struct sim_text *text, const struct sim_raw_request *raw,
                               struct sim_scenario *s, uint32_t initiator, uint32_t index)
{
    struct sim_request *request = &s->protocol.initiators[initiator].program[index];
    struct reader r = {text, raw, s, initiator, index, request};
    *request = (struct sim_request){
        .op = (enum sim_request_op)raw->op,
        .generation = (enum sim_request_generation)sim_choice(raw->generation, SIM_GENERATION_ANY),
        .inline_data = sim_choice(raw->inline_data, false),
        .seal = sim_choice(raw->seal, false),
        .allow_unsealed = sim_choice(raw->allow_unsealed, false),
        .direct = sim_choice(raw->direct, false),
        .record = sim_choice(raw->record, false),
        .invalidate = sim_choice(raw->invalidate, false),
        .release = sim_choice(raw->release, false),
    };
    return check_keys(&r) && read_handle(&r) && read_data(&r) && read_after(&r) && read_expect(&r);
}

/* ---- order ------------------------------------------------------------------------------- */

/* Lets requests begin, in the order of each program, until none can; begun[] counts them. */
static void begin_all(const struct sim_protocol_part *p, uint32_t begun[SIM_MAX_INITIATORS])
{
    for (bool progress = true; progress;) {
        progress = false;
        for (uint32_t i = 0; i < p->initiators_count; i++) {
            const struct sim_initiator *initiator = &p->initiators[i];
            const struct sim_request *next = &initiator->program[begun[i]];
            if (begun[i] == initiator->program_count ||
                (next->after_initiator != SIM_NOBODY &&
                 next->after_request >= begun[next->after_initiator]))
                continue;
            begun[i]++;
            progress = true;
        }
    }
}

bool sim_scenario_check_order(const struct sim_text *text, const struct sim_protocol_part *p)
{
    uint32_t begun[SIM_MAX_INITIATORS] = {0}, at = 0;
    begin_all(p, begun);
    while (at < p->initiators_count && begun[at] == p->initiators[at].program_count)
        at++;
    if (at == p->initiators_count)
        return true;
    /* Whoever cannot go on waits for another such: so many times further is within the circle. */
    for (uint32_t i = 0; i < p->initiators_count; i++)
        at = p->initiators[at].program[begun[at]].after_initiator;
    const struct sim_request *waits = &p->initiators[at].program[begun[at]];
    return sim_complain(text, request_path(at, begun[at], "after").text,
                        "%s.%u waits for %s.%u, which waits for it in turn, break this circle",
                        p->initiators[at].name, begun[at] + 1,
                        p->initiators[waits->after_initiator].name, waits->after_request + 1);
}
