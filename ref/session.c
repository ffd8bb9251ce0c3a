/* SPDX-License-Identifier: BSD-3-Clause */
#include "ref/session.h"

#include <errno.h>
#include <string.h>

/* An Initiator ID as two words; only ever compared, so their byte order does not matter. */
struct id_words {
    uint64_t word[2];
};

static struct id_words words_of(const uint8_t id[KBTP_INITIATOR_ID_OCTETS])
{
    struct id_words words;
    memcpy(&words, id, sizeof words);
    return words;
}

/* Takes as long for every ID. */
static bool same(struct id_words a, struct id_words b)
{
    return ((a.word[0] ^ b.word[0]) | (a.word[1] ^ b.word[1])) == 0;
}

static bool may_read(const struct kbtp_grant *owner, const struct kbtp_grant *reader)
{
    return owner == reader || owner->readable_by == 0 ||
           (owner->readable_by >> reader->reader_class & 1u);
}

bool kbtp_grant_reads_all(const struct kbtp_grant *grants, uint32_t count, uint32_t index)
{
    for (uint32_t i = 0; i < count; i++)
        if (!may_read(&grants[i], &grants[index]))
            return false;
    return true;
}

/* Whose range has this entry: the last one that begins at or before it. */
static const struct kbtp_grant *owner_of(const struct kbtp_sessions *all, uint32_t entry)
{
    uint32_t first = 0, behind = all->count;
    while (behind - first > 1) {
        uint32_t middle = first + (behind - first) / 2;
        if (all->grants[middle].first_entry <= entry)
            first = middle;
        else
            behind = middle;
    }
    return &all->grants[first];
}

bool kbtp_session_may_read(const struct kbtp_sessions *all, uint32_t index, uint32_t entry)
{
    return !all->restricted || may_read(owner_of(all, entry), &all->grants[index]);
}

static bool classes_are_legal(const struct kbtp_grant *grants, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (grants[i].reader_class >= KBTP_READER_CLASSES)
            return false;
    for (uint32_t i = 0; i < count; i++)
        if ((grants[i].features & KBTP_FEATURE_DIRECT_LOAD) &&
            !kbtp_grant_reads_all(grants, count, i))
            return false;
    return true;
}

static bool grants_are_legal(const struct kbtp_grant *grants, uint32_t count, uint32_t block_count)
{
    uint64_t quotas = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (grants[i].handle_count == 0)
            return false;
        quotas += grants[i].quota;
        for (uint32_t j = 0; j < i && grants[i].known; j++)
            if (grants[j].known &&
                same(words_of(grants[i].initiator_id), words_of(grants[j].initiator_id)))
                return false;
    }
    return quotas <= block_count && classes_are_legal(grants, count);
}

int64_t kbtp_sessions_init(struct mem *m, struct kbtp_sessions *all, struct kbtp_session *sessions,
                           struct kbtp_grant *grants, mem64 *lock, uint32_t count,
                           uint32_t block_count)
{
    uint64_t entries = 0;
    bool several = false, restricted = false;
    if (count == 0 || !grants_are_legal(grants, count, block_count))
        return -EINVAL;
    for (uint32_t i = 0; i < count; i++) {
        if (entries + grants[i].handle_count > INT32_MAX)
            return -EINVAL;
        grants[i].first_entry = (uint32_t)entries;
        entries += grants[i].handle_count;
        several |= grants[i].trust_domain != grants[0].trust_domain;
        restricted |= grants[i].readable_by != 0;
        mem_store64(m, &sessions[i].id[0], 0);
        mem_store64(m, &sessions[i].id[1], 0);
        mem_store64(m, &sessions[i].usage, 0);
        mem_store64(m, &sessions[i].oldest_ticket, 0);
        mem_store64(m, &sessions[i].probe, KBTP_PROBE_NONE);
        mem_store64(m, &sessions[i].state, KBTP_SESSION_FREE);
    }
    mem_store_release64(m, lock, 0);
    *all = (struct kbtp_sessions){.sessions = sessions,
                                  .grants = grants,
                                  .lock = lock,
                                  .count = count,
                                  .several_domains = several || restricted,
                                  .restricted = restricted};
    return (int64_t)entries;
}

const char *kbtp_session_state_name(uint64_t word)
{
    static const char *const names[] = {[KBTP_SESSION_FREE] = "free",
                                        [KBTP_SESSION_ACTIVE] = "active",
                                        [KBTP_SESSION_ENDING] = "ending",
                                        [KBTP_SESSION_RETAINED] = "retained"};
    uint32_t state = kbtp_session_state_in(word);
    return state < sizeof names / sizeof *names ? names[state] : "?";
}

static uint64_t with_state(uint64_t word, enum kbtp_session_state state)
{
    return word >> KBTP_SESSION_STATE_BITS << KBTP_SESSION_STATE_BITS | state;
}

static uint64_t with_probe(uint64_t word, enum kbtp_probe probe)
{
    return word >> KBTP_SESSION_STATE_BITS << KBTP_SESSION_STATE_BITS | probe;
}

/*
 * Asks whether the connection lives for which an ACTIVE session's state is `word`. An answer counts
 * for who had asked before it was given: the one found at first is of another time.
 */
static int ask(struct mem *m, struct kbtp_session *session, uint64_t word, uint64_t *name)
{
    uint64_t asked = with_probe(word, KBTP_PROBE_ASKED);
    uint64_t probe = mem_load64(m, &session->probe);
    if (*name == word && probe == with_probe(word, KBTP_PROBE_ANSWERED))
        return -EBUSY;
    if (probe == asked || mem_cas64(m, &session->probe, probe, asked) == probe)
        *name = word;
    return -EAGAIN;
}

bool kbtp_session_is_asked(struct mem *m, const struct kbtp_sessions *all, uint32_t index,
                           uint64_t name)
{
    return mem_load64(m, &all->sessions[index].probe) == with_probe(name, KBTP_PROBE_ASKED);
}

void kbtp_session_answers(struct mem *m, const struct kbtp_sessions *all, uint32_t index,
                          uint64_t name)
{
    mem_cas64(m, &all->sessions[index].probe, with_probe(name, KBTP_PROBE_ASKED),
              with_probe(name, KBTP_PROBE_ANSWERED));
}

/* What kbtp_session_open() is told, and tells. */
struct opening {
    bool asks;
    uint64_t *name;
    uint32_t *usage;
    bool *restored;
};

/* FREE or RETAINED -> ACTIVE. */
static int activate(struct mem *m, const struct kbtp_sessions *all, uint32_t index,
                    const struct opening *opening)
{
    struct kbtp_session *session = &all->sessions[index];
    uint64_t word = mem_load64(m, &session->state);
    if (kbtp_session_state_in(word) == KBTP_SESSION_ACTIVE)
        return opening->asks ? ask(m, session, word, opening->name) : -EBUSY;
    if (kbtp_session_state_in(word) == KBTP_SESSION_ENDING)
        return -EAGAIN;
    *opening->restored = kbtp_session_state_in(word) == KBTP_SESSION_RETAINED;
    *opening->usage = (uint32_t)mem_load64(m, &session->usage);
    uint64_t active = with_state(word, KBTP_SESSION_ACTIVE);
    if (mem_cas64(m, &session->state, word, active) != word)
        return -EAGAIN; /* another connection with this ID, or the end of retention, was faster */
    *opening->name = active;
    return (int)index;
}

/* Under the lock: the session that has this ID, or the first free one, or `count`. */
static uint32_t find_unknown(struct mem *m, const struct kbtp_sessions *all, struct id_words id)
{
    uint32_t found = all->count;
    for (uint32_t i = all->count; i-- > 0;) {
        struct kbtp_session *session = &all->sessions[i];
        if (all->grants[i].known)
            continue;
        if (kbtp_session_state_in(mem_load64(m, &session->state)) == KBTP_SESSION_FREE) {
            found = i;
            continue;
        }
        struct id_words other = {{mem_load64(m, &session->id[0]), mem_load64(m, &session->id[1])}};
        if (same(other, id))
            return i;
    }
    return found;
}

static int open_unknown(struct mem *m, const struct kbtp_sessions *all, struct id_words id,
                        const struct opening *opening)
{
    if (mem_cas64(m, all->lock, 0, 1) != 0)
        return -EAGAIN;
    int index = -ENOSPC;
    uint32_t found = find_unknown(m, all, id);
    if (found < all->count) {
        mem_store64(m, &all->sessions[found].id[0], id.word[0]);
        mem_store64(m, &all->sessions[found].id[1], id.word[1]);
        index = activate(m, all, found, opening);
    }
    mem_store_release64(m, all->lock, 0);
    return index;
}

int kbtp_session_open(struct mem *m, const struct kbtp_sessions *all,
                      const uint8_t id[KBTP_INITIATOR_ID_OCTETS], bool asks, uint64_t *name,
                      uint32_t *usage, bool *restored)
{
    const struct opening opening = {asks, name, usage, restored};
    struct id_words words = words_of(id);
    uint32_t known = all->count;
    for (uint32_t i = 0; i < all->count; i++)
        if (all->grants[i].known && same(words_of(all->grants[i].initiator_id), words))
            known = i;
    if (known < all->count)
        return activate(m, all, known, &opening);
    return open_unknown(m, all, words, &opening);
}

void kbtp_session_ending(struct mem *m, const struct kbtp_sessions *all, uint32_t index)
{
    mem_fetch_add64(m, &all->sessions[index].state, KBTP_SESSION_ENDING - KBTP_SESSION_ACTIVE);
}

uint64_t kbtp_session_end(struct mem *m, const struct kbtp_sessions *all, uint32_t index,
                          uint32_t usage, bool released)
{
    struct kbtp_session *session = &all->sessions[index];
    uint64_t next = released ? KBTP_SESSION_FREE : KBTP_SESSION_RETAINED;
    uint64_t step = (UINT64_C(1) << KBTP_SESSION_STATE_BITS) + next - KBTP_SESSION_ENDING;
    mem_store64(m, &session->usage, released ? 0 : usage);
    return mem_fetch_add64(m, &session->state, step) + step;
}

bool kbtp_session_expire(struct mem *m, const struct kbtp_sessions *all, uint32_t index,
                         uint64_t retention)
{
    uint64_t ending = with_state(retention, KBTP_SESSION_ENDING);
    return mem_cas64(m, &all->sessions[index].state, retention, ending) == retention;
}
