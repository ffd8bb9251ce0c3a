/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Worlds of chains: A on one host is connected to B on another, whose RNIC has chain queues: a
 * loop, its control queue, the send queue of the connection, and the count of its receives. Words
 * of memory that all see; their values when all is quiet are the outcomes.
 */
#ifndef KBTP_TESTS_SIM_CHAIN_WORLD_H
#define KBTP_TESTS_SIM_CHAIN_WORLD_H

#include "sim/cpu.h"
#include "sim/explore.h"
#include "sim/rnic.h"

#define CW_WORDS 8u
#define CW_OUTCOMES 64u
#define CW_DEPTH 8u
#define CW_RESULTS 4u

/* What set-up and the functions see; constant. */
struct cw {
    struct sim_world *w;
    struct rdma *a, *b;
    mem64 *words[CW_WORDS]; /* each in a segment of its own, all in one region of B's RNIC */
    struct rdma_region region;
    struct rdma_region of_a; /* A's: 64 octets, private to A */
    char *buffer;            /* them; two receives of 16 octets are at its start */
    struct rdma_chain_queue loop, ctrl, send, receives;
    uint32_t cq_a, cq_b, conn_a, conn_b;
    uint32_t first; /* number and count that queues begin with */
};

struct cw_private {
    uint64_t result[CW_RESULTS];
    uint64_t stage;
    uint64_t done;
};

/* One poll of A or B; true when the function has ended. */
typedef bool (*cw_code)(struct sim_agent *agent, const struct cw *w, struct cw_private *p);

struct cw_test {
    void (*set_up)(const struct cw *w); /* puts and enables */
    cw_code a, b;                       /* may be NULL */
    enum sim_ordering ordering;
    enum sim_dma_order dma_order;
    uint32_t first;
    uint32_t send_depth; /* 0: 4. How many are fetched ahead */
    bool big_endian;     /* fields */
    bool private_steps;
    const struct sim_costs *costs; /* of cw_run_ns() */
};

struct cw_outcome {
    uint64_t word[CW_WORDS];
    uint64_t a[CW_RESULTS], b[CW_RESULTS];
    uint32_t status[4]; /* of loop, ctrl, send; 0 */
    uint32_t completions[4];
};

struct cw_outcomes {
    struct cw_outcome all[CW_OUTCOMES];
    uint32_t count;
    struct sim_report report;
};

/* In plain code: every call runs the RNICs to rest. */
void cw_open(struct cw *w, const struct cw_test *test);
void cw_close(struct cw *w);

/*
 * Explores, with private steps taken at once and with all of them as choices: both must find the
 * same outcomes, and all steps must commute. What is returned is of the former.
 */
void cw_run(struct cw_test test, struct cw_outcomes *outcomes);
/* One run in time (SIM_TIMED): how long it takes, until all is quiet. */
double cw_run_ns(const struct cw_test *test, struct cw_outcomes *outcomes);
/* Is there an outcome with this value of a word? */
bool cw_has(const struct cw_outcomes *o, uint32_t word, uint64_t value);

/* Puts work request `i` of a queue, which must succeed. */
void cw_put(const struct cw *w, const struct rdma_chain_queue *queue, uint32_t i,
            const struct rdma_wr *wr);
/* Lets those of a queue below number `i` be fetched. */
void cw_enable(const struct cw *w, const struct rdma_chain_queue *queue, uint32_t i);
struct rdma_sge cw_sge(const struct cw *w, uint32_t word);
/* 8 octets: a word of memory is read into another, or written to it. */
void cw_put_read(const struct cw *w, uint32_t i, uint32_t from, uint32_t to, uint16_t flags);
void cw_put_write(const struct cw *w, uint32_t i, uint32_t from, uint32_t to, uint16_t flags);
/* ctrl 2i and 2i + 1: WAIT until `queue` has counted `count`, then ENABLE `other` below `limit`. */
void cw_put_stage(const struct cw *w, uint32_t i, const struct rdma_chain_queue *queue,
                  uint32_t count, const struct rdma_chain_queue *other, uint32_t limit);
uint64_t cw_to(const struct cw *w, uint32_t word);

#endif
