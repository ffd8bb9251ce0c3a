/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A scenario: what world to build and what it must reach, as read from YAML. The language is
 * documented in docs/kbtp-scenario.5.scd. scenario_schema.c holds its form for each kind of world,
 * scenario_ring.c and scenario_protocol.c the values.
 */
#ifndef KBTP_SIM_SCENARIO_H
#define KBTP_SIM_SCENARIO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sim/rnic_config.h"

enum sim_world_kind_id { SIM_KIND_RING, SIM_KIND_PROTOCOL };
enum sim_agent_kind { SIM_AGENT_CPU, SIM_AGENT_RNIC };
enum sim_memory { SIM_MEMORY_SC, SIM_MEMORY_TSO, SIM_MEMORY_RELAXED };
enum sim_dma_order { SIM_DMA_ANY, SIM_DMA_ASCENDING, SIM_DMA_DESCENDING };
enum sim_counters { SIM_COUNTERS_MASKED, SIM_COUNTERS_UNMASKED };
/* Towards whom an RNIC's atomics are atomic: all, or that RNIC alone (I-37). */
enum sim_atomics { SIM_ATOMICS_GLOBAL, SIM_ATOMICS_ADAPTER };
enum sim_free_completes { SIM_FREE_COMPLETES_DEFERRED, SIM_FREE_COMPLETES_WRITTEN };

#define SIM_MAX_SLOTS 65536u
#define SIM_MAX_BLOCKS 64u
#define SIM_MAX_HANDLES 64u /* of an allocator or a session */
#define SIM_MAX_NAME 15u
#define SIM_MAX_MUST_REACH 64u
#define SIM_ENVIRONMENT_NAME "fault" /* of the agent whose steps are faults */

/* How the machine behaves; the command line can override each. */
struct sim_machine {
    enum sim_memory memory;
    uint32_t store_buffer; /* entries, 1 to 16 */
    uint32_t tear;         /* octets of a DMA piece: 8 or 4 */
    enum sim_dma_order dma_order;
    enum sim_ordering ordering; /* of RDMA operations; worlds of kind ring have none */
};

/* ---- kind ring --------------------------------------------------------------------------- */

#define SIM_MAX_ALLOCATORS 8u
#define SIM_MAX_FREERS 4u
#define SIM_MAX_ALLOCATIONS 1000u

struct sim_allocator {
    char *name;
    enum sim_agent_kind agent;
    uint32_t allocations; /* K: 1 to SIM_MAX_ALLOCATIONS */
};

struct sim_freer {
    char *name;
};

struct sim_ring_part {
    uint32_t quota;   /* usage at most this; 0: no quota */
    uint32_t handles; /* table entries per allocator; 0: no block table in this world */
    uint32_t crashes; /* how many allocators may die between FetchAdd and slot read */
    enum sim_free_completes free_completes;
    struct sim_allocator *allocators;
    unsigned allocators_count; /* 1 to SIM_MAX_ALLOCATORS */
    struct sim_freer *freers;
    unsigned freers_count; /* 1 to SIM_MAX_FREERS */
};

/* ---- kind protocol ----------------------------------------------------------------------- */

#define SIM_MAX_WORKERS 4u
#define SIM_MAX_INITIATORS 6u
#define SIM_MAX_REQUESTS 32u /* of one initiator */
#define SIM_MAX_CREDITS 16u
#define SIM_MAX_RECONNECTS 4u
#define SIM_MAX_CONNECTIONS (SIM_MAX_RECONNECTS + 1u) /* of one initiator, one after the other */
#define SIM_MAX_LOSSES 4u
#define SIM_MAX_STOPS 2u
#define SIM_MAX_RESTARTS 2u
#define SIM_MAX_RETRIES 4u
#define SIM_MIN_BLOCK_OCTETS 8u
#define SIM_MAX_BLOCK_OCTETS 4096u
#define SIM_MAX_INLINE_OCTETS 4096u
#define SIM_MAX_LENGTH_OCTETS 8192u
#define SIM_RNIC_SUFFIX "-rnic"
/* Of workers and initiators: "NAME-rnic" is a name too. */
#define SIM_MAX_PEER_NAME (SIM_MAX_NAME - (unsigned)(sizeof SIM_RNIC_SUFFIX - 1))
#define SIM_TARGET_RNIC_NAME "target-rnic"

enum sim_request_op {
    SIM_REQUEST_LOAD,
    SIM_REQUEST_STORE,
    SIM_REQUEST_ALLOC_STORE,
    SIM_REQUEST_FREE,
    SIM_REQUEST_GOODBYE, /* the last of its program */
};

/* What the Generation of a request is. */
enum sim_request_generation {
    SIM_GENERATION_ANY,     /* 0 */
    SIM_GENERATION_CURRENT, /* of this initiator's last completion for the handle */
    SIM_GENERATION_STALE,   /* one that is wrong */
};

/* When a session without a connection is released. */
enum sim_retention {
    SIM_RETENTION_LASTS, /* never */
    SIM_RETENTION_ENDS,  /* at any time */
    SIM_RETENTION_LATE,  /* when its initiator will not come back */
};

/* Does a target ask the connection of a session for which another HELLO comes? */
enum sim_probes {
    SIM_PROBES_NONE,
    SIM_PROBES_TIMELY, /* an initiator that lives answers in time */
    SIM_PROBES_LATE,   /* or it may not */
};

#define SIM_NOBODY UINT32_MAX /* in place of an initiator's index */
#define SIM_STATUS_LOST 15u   /* after enum kbtp_status: a connection loss hid the outcome */

/*
 * One request. Of GOODBYE only `release`, `after_initiator` and `after_request` mean anything; the
 * rest is then as if no key was there (owner SIM_NOBODY).
 */
struct sim_request {
    enum sim_request_op op;
    enum sim_request_generation generation;
    uint32_t owner;  /* whose handle: index of an initiator; SIM_NOBODY: beyond every range */
    uint32_t handle; /* below `handles`, in the owner's range; 0 beyond every range */
    /* Octets: of the data to store, of the buffer of LOAD; 0 of FREE. Up to SIM_MAX_LENGTH_OCTETS,
     * so that it may exceed block_size, but not max_inline if inline_data. */
    uint32_t length;
    /* Begins when that request has completed: indices; SIM_NOBODY and 0: nothing to wait for. */
    uint32_t after_initiator;
    uint32_t after_request;
    uint32_t expect;     /* bit 1 << status, enum kbtp_status or SIM_STATUS_LOST; 0: anything */
    bool inline_data;    /* STORE, ALLOC_STORE: with the request; else by RDMA Read */
    bool seal;           /* STORE, ALLOC_STORE */
    bool allow_unsealed; /* LOAD */
    bool direct;         /* LOAD, ALLOC_STORE: by the initiator itself (draft: Direct Modes) */
    bool record;         /* not of GOODBYE: a completion record is asked for */
    bool invalidate;     /* LOAD, and STORE and ALLOC_STORE without inline_data */
    bool release;        /* GOODBYE */
};

struct sim_worker {
    char *name;
};

struct sim_initiator {
    char *name;
    /* Indices of the workers it connects to, one after the other; the last one repeats. */
    uint32_t workers[SIM_MAX_CONNECTIONS];
    unsigned workers_count; /* 1 to SIM_MAX_CONNECTIONS */
    uint32_t quota;         /* blocks, 0 to F; the sum over all initiators is at most F */
    uint32_t depth;         /* requests outstanding at most, 1 to credits */
    uint32_t reconnects;    /* 0 to SIM_MAX_RECONNECTS */
    uint32_t trust_domain;  /* 0 to 65535 */
    bool gives_up;          /* with ticket_timeout: its direct allocations, at any time */
    uint32_t retries;       /* by its library: 0 to SIM_MAX_RETRIES */
    uint32_t session;       /* whose grant it has: its own index, or that of an earlier initiator */
    bool stranger;          /* of another Initiator ID than that one, and comes last */
    bool restart;           /* of the same host: comes when that one has stopped */
    bool spared;            /* by losses and stops; else */
    uint32_t spared_until;  /* so many of its requests have begun */
    struct sim_request *program;
    unsigned program_count; /* 1 to SIM_MAX_REQUESTS */
};

struct sim_protocol_part {
    uint32_t handles;      /* of each session: 1 to SIM_MAX_HANDLES */
    uint32_t credits;      /* Request Credits: 1 to SIM_MAX_CREDITS */
    uint32_t max_inline;   /* octets: 0 to SIM_MAX_INLINE_OCTETS */
    uint32_t losses;       /* connections that may be lost: 0 to SIM_MAX_LOSSES */
    uint32_t stops;        /* initiators that may stop for good: 0 to SIM_MAX_STOPS */
    uint32_t silent_stops; /* the same, and their peers are told nothing */
    uint32_t restarts;     /* of the target: 0 to SIM_MAX_RESTARTS */
    bool connected;        /* all sessions are there at the start */
    enum sim_retention retention;
    enum sim_probes probes;
    /* A ticket that is not bound may be abandoned, and given up, at any time. */
    bool ticket_timeout;
    struct sim_worker *workers;
    unsigned workers_count; /* 1 to SIM_MAX_WORKERS */
    struct sim_initiator *initiators;
    unsigned initiators_count; /* 1 to SIM_MAX_INITIATORS */
    unsigned sessions_count;   /* the first so many of them have a grant of their own */
};

/* ---- every kind -------------------------------------------------------------------------- */

struct sim_scenario {
    enum sim_world_kind_id kind;
    char *title; /* or NULL */
    struct sim_machine machine;

    uint32_t slots;       /* N: a power of two, 2 to SIM_MAX_SLOTS */
    uint32_t blocks;      /* F: 1 to N, and at most SIM_MAX_BLOCKS */
    uint32_t first_block; /* number of the first block */
    /* Octets; Block Offset = block number * block_size. Kind protocol: a multiple of 8 from
     * SIM_MIN_BLOCK_OCTETS to SIM_MAX_BLOCK_OCTETS. */
    uint64_t block_size;
    uint32_t first_ticket;
    uint32_t first_generation; /* 1 to 65535 */
    enum sim_counters counters;
    enum sim_atomics atomics;
    bool addr_le;

    struct sim_ring_part ring;         /* zero in the other kind */
    struct sim_protocol_part protocol; /* so is this */

    char **must_reach;
    unsigned must_reach_count;
};

/*
 * Reads the scenario in text[0..length). `name` is what messages call it ("deferred-free.yaml").
 * Returns NULL with one line in `error` (size octets), "NAME:LINE:COLUMN: KEY: what, what to do",
 * without a newline, when it is not a legal scenario. Free with sim_scenario_free().
 */
struct sim_scenario *sim_scenario_parse(const char *name, const char *text, size_t length,
                                        char *error, size_t size);
void sim_scenario_free(struct sim_scenario *scenario);

#endif
