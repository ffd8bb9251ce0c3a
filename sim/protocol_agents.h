/* SPDX-License-Identifier: BSD-3-Clause */
/* The agents of a protocol world; only sim/protocol_*.c look in here. */
#ifndef KBTP_SIM_PROTOCOL_AGENTS_H
#define KBTP_SIM_PROTOCOL_AGENTS_H

#include "ref/initiator.h"
#include "ref/worker.h"
#include "sim/cpu.h"
#include "sim/protocol_world.h"

/* Octets that are hashed have no padding. */
#pragma GCC diagnostic push
#pragma GCC diagnostic error "-Wpadded"
_Static_assert(sizeof(struct kbtp_outcome) == 3 * 8 + 2 * 4 + 2 * 2 + 4, "padding");

/* Private state of an initiator; what its library keeps follows. */
struct protocol_initiator {
    struct kbtp_initiator *library;
    struct kbtp_outcome outcome; /* of the poll in progress */
    uint32_t next;               /* request of the program to begin */
    uint32_t reconnects;         /* made */
    uint16_t was_ready;          /* since it connected last */
    uint16_t refused;            /* the answer to its last HELLO */
    uint32_t goodbye;            /* said; counts as answered when the connection is gone */
    uint16_t generations[SIM_MAX_REQUESTS]; /* what each completion said; 0: none yet */
};

/* Of the environment. */
struct protocol_faults {
    uint32_t losses, stops, silent_stops, restarts; /* so far */
    uint8_t stopped[SIM_MAX_INITIATORS];
    uint8_t zero[6];
};

#pragma GCC diagnostic pop

/* What an initiator's poll does: kind in the upper half, request in the lower. */
enum protocol_choice { CHOICE_POLL = 1, CHOICE_CONNECT, CHOICE_SUBMIT };
#define CHOICE(kind, request) ((uint32_t)(kind) << 16 | (request))

/*
 * Connections of one initiator of which an end still exists: the old one, and when it comes again
 * the new one. One that was refused must be gone at the target's end too before the next.
 */
#define PROTOCOL_LINKS(initiator) \
    ((initiator)->reconnects != 0 || (initiator)->retries != 0 ? 2u : 1u)

struct sim_counts;
struct protocol_restart;

/* Who is told the outcomes of requests; NULL functions are not called. */
struct protocol_listener {
    void (*told)(void *context, uint32_t initiator, uint32_t request,
                 const struct kbtp_outcome *outcome, const void *buffer);
    void *context;
};

/* The world as its programs see it. */
struct protocol_world {
    struct sim_protocol_world view;   /* first: what checkers see */
    struct kbtp_target *target;       /* in the arena, constant */
    struct protocol_faults *faults;   /* NULL: none can happen */
    struct protocol_restart *restart; /* what the target is as new; NULL: it never restarts */
    struct sim_counts *seen;          /* sim/protocol_counts.h */
    const struct sim_told *told;      /* of the event being told */
    struct protocol_listener listener;
    struct sim_program worker_program, initiator_programs[SIM_MAX_INITIATORS];
    char names[SIM_MAX_INITIATORS][SIM_MAX_NAME + 1];                 /* of their RNICs */
    struct rdma_region regions[SIM_MAX_INITIATORS][SIM_MAX_REQUESTS]; /* a request's buffer each */
    uint32_t windows_at[SIM_MAX_INITIATORS]; /* where they begin in its private state */
};

/* The windows of an initiator, one for each of its requests with INVALIDATE, in their order. */
static inline struct rdma_window *protocol_window_of(const struct protocol_world *p,
                                                     const struct sim_initiator *s,
                                                     struct protocol_initiator *it,
                                                     uint32_t initiator, uint32_t request)
{
    uint32_t place = 0;
    for (uint32_t i = 0; i < request; i++)
        place += s->program[i].invalidate;
    return (struct rdma_window *)(void *)((char *)it + p->windows_at[initiator]) + place;
}

static inline struct protocol_world *protocol_world_of(const struct sim_world *w)
{
    return w->kind;
}

static inline struct protocol_initiator *protocol_initiator_of(const struct sim_world *w,
                                                               uint32_t initiator)
{
    return sim_cpu_private(&w->agents[sim_protocol_of(w)->first_initiator + initiator]);
}

/* A worker's private state is what kbtp_worker_init() made of it. */
static inline struct kbtp_worker *protocol_worker_of(const struct sim_world *w, uint32_t worker)
{
    return sim_cpu_private(&w->agents[worker]);
}

extern const struct sim_program protocol_worker_program, protocol_initiator_program;
/* Connections are lost, initiators stop. */
extern const struct sim_agent_ops protocol_fault_ops;

/* sim/protocol_faults.c */
/* Has it made all of its requests, and had their outcomes? */
bool protocol_is_finished(const struct sim_world *w, uint32_t initiator);
bool protocol_has_stopped(const struct sim_world *w, uint32_t initiator);
/* Will nobody come back to this session? */
bool protocol_is_left(const struct sim_world *w, uint32_t session);
/* Is nobody else there any more, every session FREE again, and the target at rest? */
bool protocol_is_over(const struct sim_world *w, uint32_t agent);
/* The running step rests on that. */
void protocol_note_all(struct sim_world *w);
/* Is there a live initiator at the other end of this connection of a worker? */
bool protocol_peer_lives(const struct sim_world *w, uint32_t worker, uint32_t conn);

/* Have there been faults, by which initiators lose connections? */
bool protocol_had_faults(const struct sim_world *w);

/*
 * sim/protocol_settle.c: lets agents act, one after the other, until nothing changes any more or a
 * property is violated. No request begins, nothing is lost, and no timer expires. Who comes for a
 * session of another one says HELLO if its bit, 1 << initiator, is in `called`. 0, or -ETIMEDOUT.
 */
int protocol_settle(struct sim_world *w, uint32_t called);

/* sim/protocol_restart.c */
/* A first Generation that no other life of the target has. */
uint16_t protocol_first_generation(const struct sim_scenario *s, uint32_t life);
/* Places for what the target is as new, when its memory and agents are made; `segments`: so many of
 * the first are its memory. */
int protocol_restart_memory(struct sim_world *w, uint32_t segments);
/* Its block table, as kbtp_target_init() leaves it, in the life after so many restarts. */
void protocol_restart_table(struct sim_world *w, uint32_t life);
/* Everything else, when all of it has started. */
int protocol_restart_rest(struct sim_world *w);
/* The fault. */
void protocol_restart(struct sim_world *w);
/* 1 + restarts so far where there may be some; else 0. */
uint32_t protocol_life(const struct sim_world *w);

/* Ghost records (sim/protocol_ghost.c). */
/* The target is as new: nothing is bound, asked or held. */
void protocol_forget(struct sim_world *w);
void protocol_wrote(struct sim_world *w, const struct sim_write *write);
void protocol_message(struct sim_world *w, const struct sim_message *message);
/* An initiator was told: `request` of its program. */
void protocol_outcome(struct sim_world *w, uint32_t initiator, uint32_t request,
                      const struct kbtp_outcome *outcome);

/* The place and the value of an access to memory: "block 101 +8", "data of X's request 1". */
void protocol_describe_place(const struct sim_world *w, const struct sim_access *access,
                             char *place, char *value, size_t size);
void protocol_describe(struct sim_world *w, const struct sim_access *access, char *out,
                       size_t size);

#endif
