/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Litmus tests of simulated RNICs: a few CPUs on two hosts, connected before the search begins,
 * each polling one short function until it is done. Explored exhaustively; the outcomes are what
 * the agents found and what shared memory holds in the end.
 */
#ifndef KBTP_TESTS_SIM_RNIC_WORLD_H
#define KBTP_TESTS_SIM_RNIC_WORLD_H

#include "sim/cpu.h"
#include "sim/explore.h"
#include "sim/rnic.h"

#define RW_AGENTS 4
#define RW_RESULTS 6
#define RW_OUTCOMES 2048
#define RW_BUFFER 64u

/* Where things lie in a CPU's private buffer. */
enum { RW_SOURCE = 0, RW_SINK = 16, RW_RECEIVE = 32 };

/* What the functions see; constant. */
struct rw {
    mem64 *x, *y, *z, *pair; /* shared; pair: 16 octets. Tagged Offset: address - x */
    char *buffer[RW_AGENTS]; /* private */
    struct rdma_region own[RW_AGENTS];
    struct rdma_region shared[2]; /* by host */
    uint32_t cq[RW_AGENTS];
    uint32_t conn[RW_AGENTS]; /* 0 to 1, and back; 2 to 3 (or to 1), and back */
    uint32_t peer_host[RW_AGENTS];
    uint32_t second; /* of agent 1 with agent 2, when that goes to 1 */
};

struct rw_private {
    uint64_t result[RW_RESULTS];
    uint64_t stage;
    uint64_t done;
    struct rdma_window window;
};

/* One poll; true when the function has ended. */
typedef bool (*rw_code)(struct sim_agent *a, const struct rw *w, struct rw_private *p);

struct rw_test {
    rw_code code[RW_AGENTS];
    uint32_t agents;
    enum sim_ordering ordering;
    enum sim_memory memory;
    enum sim_dma_order dma_order;
    uint32_t store_buffer; /* 0: 4 */
    uint32_t tear;         /* 0: 8 */
    uint32_t bits;         /* 0: SIM_RNIC_BITS */
    uint32_t timers;
    uint32_t rnr_retry;
    uint32_t cuts;       /* the first connection may be cut so often */
    bool dies;           /* agent 0 and its host stop instead */
    bool third_connects; /* agent 2 to agent 1; else to agent 3, if there is one */
    bool big_endian_memory, big_endian_reply;
    bool isolated;    /* agent 0, which then may not touch x, y, z and pair itself */
    bool unconnected; /* the functions connect */
    bool no_receives;
    bool private_steps, check_commute;
    const struct sim_costs *costs; /* one run in time (SIM_TIMED), instead of all there are */
    /* Before the search begins; may be NULL. */
    void (*set_up)(struct sim_world *w, struct rw *rw);
    const struct sim_checker *checker; /* or NULL */
};

/* All of them. */
#define RW_ORDERINGS 3
extern const enum sim_ordering rw_orderings[RW_ORDERINGS];

struct rw_outcome {
    uint64_t result[RW_AGENTS][RW_RESULTS];
    uint64_t x, y, z, pair[2];
};

struct rw_outcomes {
    struct rw_outcome all[RW_OUTCOMES];
    uint32_t count;
    struct sim_report report;
};

/* Explores in one way. */
void rw_explore(const struct rw_test *test, struct rw_outcomes *outcomes);
/*
 * Explores with private steps taken at once, and with all of them as choices; both must find the
 * same outcomes and all steps must commute. What is returned is of the former.
 */
void rw_run(struct rw_test test, struct rw_outcomes *outcomes);
bool rw_same(const struct rw_outcomes *a, const struct rw_outcomes *b);
/* Is there an outcome where agent `agent` found these first two results? */
bool rw_has(const struct rw_outcomes *o, uint32_t agent, uint64_t r0, uint64_t r1);

/* ---- for the functions ------------------------------------------------------------------- */

/* Work requests with 8 octets: a value posted inline, or memory of the own buffer. */
int rw_write(struct sim_agent *a, const struct rw *w, const mem64 *to, uint64_t value,
             uint16_t flags);
int rw_send(struct sim_agent *a, const struct rw *w, uint64_t value, uint16_t flags);
int rw_read(struct sim_agent *a, const struct rw *w, const mem64 *from, uint32_t sink,
            uint16_t flags);
int rw_fetch_add(struct sim_agent *a, const struct rw *w, const mem64 *at, uint64_t add,
                 uint64_t mask, uint32_t sink, uint16_t flags);
int rw_post(struct sim_agent *a, const struct rw *w, struct rdma_wr *wr, const void *at,
            uint32_t octets);
/* A work request that is about remote memory. */
struct rdma_wr rw_remote(const struct sim_agent *a, const struct rw *w, uint16_t op,
                         const mem64 *at, uint16_t flags);
/* The next completion, if there is one. */
bool rw_poll(struct sim_agent *a, const struct rw *w, struct rdma_wc *wc);
/* Takes a completion, which must be a good one of this operation; false: there is none. */
bool rw_completed(struct sim_agent *a, const struct rw *w, uint32_t op);
/* The same, and then the word of the own buffer that the operation brought. */
bool rw_take(struct sim_agent *a, const struct rw *w, uint32_t op, uint32_t at, uint64_t *word);
/* result[0]: 1 + the status of the next completion, if there is one. */
bool rw_take_status(struct sim_agent *a, const struct rw *w, struct rw_private *p);
bool rw_event(struct sim_agent *a, struct rdma_event *event);
/* A word of the own buffer. */
uint64_t rw_word(struct sim_agent *a, const struct rw *w, uint32_t at);
struct rdma_conn_config rw_config(const struct rw *w, uint32_t agent);
/* A function that does nothing. */
bool rw_idle(struct sim_agent *a, const struct rw *w, struct rw_private *p);

#endif
