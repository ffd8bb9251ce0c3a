/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A world of steps: everything that can happen is a step of some agent. Enabled steps are derived
 * from state, never stored; who picks the next one makes the difference between exploring, random
 * walks and replay.
 */
#ifndef KBTP_SIM_WORLD_H
#define KBTP_SIM_WORLD_H

#include <setjmp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net/mem.h"
#include "net/rdma.h"
#include "sim/arena.h"
#include "sim/scenario.h"

#define SIM_MAX_AGENTS 24u
#define SIM_MAX_STEPS 2048u /* enabled in one state: ring_world.c, rnic.c show that it suffices */
#define SIM_MAX_CHECKERS 32u
#define SIM_MAX_REACH 64u
#define SIM_MAX_FOOTPRINT 32u
#define SIM_MAX_PRIVATE 32768u /* octets of an agent's private state */

enum sim_step_kind {
    SIM_STEP_CHOOSE = 1, /* begin what `arg` names, and make the first access */
    SIM_STEP_ACCESS,     /* make the one visible access the agent stands before */
    SIM_STEP_PIECE,      /* move piece `piece` of the read or write the agent stands before */
    SIM_STEP_DRAIN,      /* entry `queue` of the store buffer becomes visible */
    SIM_STEP_FAULT,      /* agent `queue` dies */
    SIM_STEP_CUT,        /* of the environment too: link `arg` is cut (sim_rnic_cut()) */
    SIM_STEP_EXPIRE,     /* of a CPU: its timer `queue` expires */

    /*
     * Of an RNIC (sim/rnic.h). `queue` is its connection end; `piece` a place in one of its queues:
     * of messages on the way to it (place), of READs and atomics of its peer (read, atomic); `arg`
     * a piece of memory (gather, place, read).
     */
    SIM_STEP_FETCH,    /* the next WQE is snapshotted */
    SIM_STEP_GATHER,   /* reads a piece of local memory for the message being made */
    SIM_STEP_EMIT,     /* that message leaves for the wire */
    SIM_STEP_PLACE,    /* writes a piece of a message that arrives into memory */
    SIM_STEP_DELIVER,  /* the first message on the way has its effect */
    SIM_STEP_READ,     /* reads a piece of memory for a READ of the peer */
    SIM_STEP_ATOMIC,   /* executes an atomic of the peer, or its first or second half */
    SIM_STEP_REPLY,    /* the response to a READ or atomic leaves for the wire */
    SIM_STEP_COMPLETE, /* a completion of the send queue */
    SIM_STEP_CONNECT,  /* a request for a connection, or the answer to it, arrives */
    SIM_STEP_NOTICE,   /* the end notices that the connection ends: DISCONNECTED */
    SIM_STEP_FLUSH,    /* its engine stops, and what is posted completes FLUSHED */
    SIM_STEP_SNAPSHOT, /* copies the next enabled work request of a chain queue from its memory */
    SIM_STEP_GIVE_UP,  /* it has tried often enough to send: nobody answers */

    SIM_STEP_SILENCE, /* of the environment: agent `queue` dies, and its peers are told nothing */
    SIM_STEP_KINDS,
};

/* A trace is a list of these. */
struct sim_step {
    uint8_t kind; /* enum sim_step_kind */
    uint8_t agent;
    uint8_t queue;
    uint8_t piece;
    uint32_t arg;
};

/* Steps of the environment: a world is quiescent whether or not one is enabled. */
static inline bool sim_step_is_environment(const struct sim_step *step)
{
    return step->kind == SIM_STEP_FAULT || step->kind == SIM_STEP_CUT ||
           step->kind == SIM_STEP_SILENCE || step->kind == SIM_STEP_EXPIRE;
}

/* What a step costs in a timed run: a class; the cost model says how much. */
enum sim_cost {
    SIM_COST_NONE, /* faults, timers */
    SIM_COST_CPU,
    SIM_COST_DOORBELL,
    SIM_COST_WQE_FETCH,
    SIM_COST_DMA_READ,
    SIM_COST_DMA_WRITE,
    SIM_COST_ATOMIC,
    SIM_COST_PACKET,
    SIM_COST_CQE,
    SIM_COST_CONTROL, /* connections */
};

/* What a step did to memory, for traces, charts and checkers. */
enum sim_access_kind {
    SIM_LOAD,
    SIM_STORE,  /* into the own store buffer, or at once when there is none */
    SIM_DRAIN,  /* a buffered store becomes visible */
    SIM_ATOMIC, /* a FetchAdd or compare-and-swap */
    SIM_READ,   /* a piece of a read */
    SIM_WRITE,  /* a piece of a write */
    SIM_CHOSEN, /* value: the argument */
    SIM_RESULT, /* a poll ended; value: its result */
    SIM_DIED,

    /* Of net/rdma.h and RNICs; `conn` and `op` are valid, and what is in brackets. */
    SIM_POST,   /* work requests are posted [value: how many; op RDMA_RECV: receives] */
    SIM_RING,   /* their doorbell is seen by the RNIC [as POST] */
    SIM_POLL,   /* a completion queue is polled [value: completions taken] */
    SIM_POLLED, /* one of them [op, status; value: wr_id; octets: length] */
    SIM_EVENT,  /* events are looked for [op: enum rdma_event_kind, or 0] */
    SIM_CALL,  /* another call [op: enum sim_call; value: its result; old: a timer's nanoseconds] */
    SIM_FETCH, /* a WQE is snapshotted */
    SIM_GATHER,        /* [at, octets, value] */
    SIM_EMIT,          /* [octets: payload; response: of a READ or atomic] */
    SIM_PLACE,         /* [at, octets, value] */
    SIM_DELIVER,       /* [octets; status, unless it was OK; response] */
    SIM_READ_REMOTE,   /* [at, octets, value] */
    SIM_ATOMIC_REMOTE, /* [at, octets, value, old] */
    SIM_ATOMIC_BEGUN,  /* its word is read, not yet written [at, octets, old] */
    SIM_COMPLETE,      /* [status; value: wr_id] */
    SIM_CONNECT,       /* [op: enum rdma_event_kind that it raises] */
    SIM_NOTICE,
    SIM_FLUSH,    /* [value: completions FLUSHED] */
    SIM_EXPIRE,   /* [value: timer] */
    SIM_CUT,      /* [value: link] */
    SIM_SNAPSHOT, /* [at, octets; value: its number] */
    SIM_GIVE_UP,
};

/* SIM_CALL */
enum sim_call {
    SIM_CALL_CONNECT,
    SIM_CALL_ACCEPT,
    SIM_CALL_REJECT,
    SIM_CALL_DISCONNECT,
    SIM_CALL_DESTROY,
    SIM_CALL_TIMER,
    SIM_CALL_REG,
    SIM_CALL_DEREG,
    SIM_CALL_ARM,
    SIM_CALL_WINDOW_ALLOC,
    SIM_CALL_WINDOW_FREE,
    SIM_CALL_CHAIN_PUT,
    SIM_CALL_CHAIN_ENABLE,
    SIM_CALL_CHAIN_STATE,
    SIM_CALLS,
};

/* Reached in any kind of world; the kind's own follow. */
enum { SIM_REACH_LOAD_BEFORE_STORE, SIM_REACH_OF_KIND };

struct sim_access {
    enum sim_access_kind kind;
    uint32_t agent;
    const void *at;
    uint32_t octets;
    uint32_t argument; /* of the poll that makes the access */
    bool buffered;     /* STORE: not visible yet */
    uint64_t value;    /* loaded, stored, or what an atomic left; octets as in memory */
    uint64_t old;      /* ATOMIC: from before */

    uint32_t cpu; /* from SIM_POST on: the agent whose connection it is */
    uint32_t conn;
    uint32_t op; /* enum rdma_op, unless the kind says otherwise */
    uint8_t status;
    bool response;
};

/* A write that becomes visible now. `at` already holds the new octets. */
struct sim_write {
    uint32_t agent;
    uint32_t octets;
    const char *at;
    const char *old; /* the octets from before */
};

/* A message between RNICs, as checkers see it. */
struct sim_message {
    enum { SIM_SENT, SIM_DELIVERED } phase;
    uint32_t link; /* sim_rnic_link() */
    uint32_t from; /* CPU agents, by whose connection it goes */
    uint32_t to;
    uint32_t op;    /* enum rdma_op of the work request */
    uint8_t status; /* DELIVERED: enum rdma_status; not OK: it had no effect, and the link ends */
    bool response;  /* to a READ or atomic; else the message of the work request itself */
    uint16_t flags; /* enum rdma_flag of the work request */
    const void *payload; /* SEND, WRITE, response; valid during the call */
    uint32_t length;     /* octets of it; of a READ request, those wanted */
    uint32_t stag;
    uint64_t remote_to;
    uint32_t imm;   /* immediate or STag to invalidate */
    uint64_t wr_id; /* DELIVERED, when it took a receive: that one's */
};

struct sim_world;

/* A property, judged from memory, the wire and ghost records; calls nothing in ref/. */
struct sim_checker {
    const char *property;
    const char *says; /* one sentence: what holds while it is silent */
    void (*wrote)(struct sim_world *w, const struct sim_write *write);
    void (*event)(struct sim_world *w, uint32_t agent, uint32_t event, uint64_t value);
    void (*message)(struct sim_world *w, const struct sim_message *message);
    void (*quiescent)(struct sim_world *w);
};

/* Judged in every kind of world, by the world itself; without functions. */
extern const struct sim_checker sim_always[];
extern const uint32_t sim_always_count;

struct sim_agent {
    struct mem mem;            /* first: the agent is found from the handle */
    struct rdma rdma;          /* of a CPU that is attached to an RNIC */
    struct sim_handle *handle; /* the same, in sim/rnic_state.h; else NULL */
    struct sim_rnic *rnic;     /* of an RNIC; else NULL */
    const struct sim_agent_ops *ops;
    struct sim_world *world;
    const char *name;
    const struct sim_program *program;
    uint32_t index;
    enum sim_agent_kind kind;
    enum sim_memory memory; /* SC for an RNIC: what it writes is visible at once */
    struct sim_cpu *cpu;    /* in the arena */
    struct sim_segment *segment;
};

/* What kinds of agents do. */
struct sim_agent_ops {
    /* Appends the enabled steps to out; returns how many (never above SIM_MAX_STEPS in sum). */
    uint32_t (*enabled)(const struct sim_agent *agent, struct sim_step *out);
    void (*run)(struct sim_agent *agent, const struct sim_step *step);
    /* Is the agent between two polls, with nothing read, buffered or half moved? */
    bool (*at_rest)(const struct sim_agent *agent);
    enum sim_cost (*cost)(const struct sim_agent *agent, const struct sim_step *step);
};

struct sim_range {
    const char *at;
    uint32_t octets;
    bool writes;
};

/* Ranges touched by one step, recorded while `footprint` of the world is set. */
struct sim_footprint {
    uint32_t count;
    bool overflowed; /* too many: depends on everything */
    struct sim_range ranges[SIM_MAX_FOOTPRINT];
};

struct sim_violation {
    const char *property; /* NULL while there is none */
    char text[240];
};

/* Options that change how the world steps, not what it means. */
struct sim_stepping {
    bool private_steps; /* what no other agent can notice happens at once */
    bool merged_drains; /* an atomic drains the store buffer within its own step */
};

struct sim_world_ops {
    /* A write became visible: bring ghost records up to date (after the checkers looked). */
    void (*wrote)(struct sim_world *w, const struct sim_write *write);
    /* A published event of a program took effect (sim_cpu_publish). */
    void (*published)(struct sim_world *w, uint32_t agent, uint32_t event, uint64_t value);
    /* A message left for the wire or was delivered (after the checkers looked); may be NULL. */
    void (*message)(struct sim_world *w, const struct sim_message *message);
    /* Are requests open? Then `why` (size octets) says which. Asked in quiescent states. */
    bool (*open_requests)(struct sim_world *w, char *why, size_t size);
    /* Words for an access, for one trace line. */
    void (*describe)(struct sim_world *w, const struct sim_access *access, char *out, size_t size);
};

struct sim_world {
    struct sim_arena arena;
    const struct sim_world_ops *ops;
    const struct sim_scenario *scenario;
    void *kind;              /* of the kind of world, not in the arena, constant after set-up */
    struct sim_rnics *rnics; /* all that is constant of RNICs and handles, or NULL */
    struct sim_stepping stepping;
    bool direct; /* a call of net/rdma.h outside a poll runs all RNICs to rest */

    bool count_reached;
    uint32_t reach_count;
    const char *const *reach_names;  /* of this kind of world */
    uint64_t reached[SIM_MAX_REACH]; /* by how many transitions */

    uint32_t agents_count, checkers_count;
    struct sim_agent agents[SIM_MAX_AGENTS];
    const struct sim_checker *checkers[SIM_MAX_CHECKERS];

    /*
     * Of the running or last step: it changed memory, ghost records, a store buffer, or an agent's
     * private state at the end of a poll: more than what an agent has read so far. Where no step
     * has an effect, all is quiet.
     */
    bool effect;
    bool shown;     /* it has let others see something of the agent whose poll is re-executed */
    uint32_t polls; /* begun in it */
    struct sim_violation violation;
    struct sim_footprint *footprint;                                 /* record here, when set */
    void (*observe)(void *context, const struct sim_access *access); /* tell here, when set */
    void *observe_context;

    /* The poll being re-executed. */
    struct sim_agent *polling; /* whose it is; NULL outside polls */
    jmp_buf stop;
    uint32_t cursor;    /* accesses repeated so far */
    uint32_t allowance; /* enum sim_allowance, in cpu.c */
    uint32_t piece;
    uint32_t poll_accesses; /* results of the poll that ended last */
    /* The agent's private state at the start of the poll. */
    _Alignas(8) char rollback[SIM_MAX_PRIVATE];
};

/* Runs one step, which must be enabled. False when a violation was found or memory ran out. */
bool sim_world_step(struct sim_world *w, const struct sim_step *step);
/* All enabled steps, in a fixed order. */
uint32_t sim_world_enabled(const struct sim_world *w, struct sim_step out[SIM_MAX_STEPS]);
bool sim_world_is_enabled(const struct sim_world *w, const struct sim_step *step);
/*
 * Does no step change anything but what has been read? Tries each enabled step and runs its agent
 * on to the end of its poll; leaves the state as it was. Then sim_world_judge_quiescent() looks for
 * open requests (`stuck`) and asks the checkers.
 */
bool sim_world_quiescent(struct sim_world *w);
/* A step of an agent that is no timer's and no fault's; false: it has none. Where memory stands
 * still the order of the pieces of a DMA makes no difference, and any of them will do. */
bool sim_next_of_its_own(const struct sim_agent *agent, struct sim_step *step);
void sim_world_judge_quiescent(struct sim_world *w);

/* For agents, kinds of worlds and checkers. */
void sim_violate(struct sim_world *w, const char *property, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* A write of at most 8 octets becomes visible. */
void sim_write(struct sim_world *w, uint32_t agent, void *at, const void *octets, uint32_t count);
/* Something happened to ghost records: checkers are told. */
void sim_event(struct sim_world *w, uint32_t agent, uint32_t event, uint64_t value);
/* Before the first write to ghost records at `at`. */
void sim_ghost_write(struct sim_world *w, const void *at, uint32_t octets);

void sim_footprint_add(struct sim_world *w, const void *at, uint32_t octets, bool writes);
bool sim_footprints_disjoint(const struct sim_footprint *a, const struct sim_footprint *b);

static inline void sim_reach(struct sim_world *w, uint32_t what)
{
    if (w->count_reached)
        w->reached[what]++;
}

static inline void sim_footprint_note(struct sim_world *w, const void *at, uint32_t octets,
                                      bool writes)
{
    if (__builtin_expect(w->footprint != NULL, 0))
        sim_footprint_add(w, at, octets, writes);
}

/* A world of the scenario's kind; NULL with one line in `error` when it cannot be built. */
struct sim_world *sim_world_new(const struct sim_scenario *scenario,
                                const struct sim_stepping *stepping, char *error, size_t size);
void sim_world_free(struct sim_world *w);

#endif
