/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A cost model: how long things take with one kind of RNIC, its host and its link. Files of them
 * are in scenarios/nic/; kbtp-nic(5) describes the form. Each figure has a source there, or says
 * that it is assumed.
 */
#ifndef KBTP_SIM_TIMED_COSTS_H
#define KBTP_SIM_TIMED_COSTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Every figure: its key, the least and most it can be, and what it is. Nanoseconds may have
 * decimals: what is occupied is counted in picoseconds.
 *
 * "Occupied" is the time for which the next message has to wait: its reciprocal is a rate.
 * "Latency" is what a message takes besides, while others follow it.
 */
#define SIM_COSTS(X) \
    /* the RNIC */ \
    X(doorbell_ns, 0, 1e6, "latency of a doorbell: from the CPU's write until the RNIC has it") \
    X(inline_gbytes_s, 0.001, 1e5, \
      "rate at which a CPU hands over data within work requests, 10^9 octets a second") \
    X(wqe_fetch_ns, 0, 1e6, \
      "latency of fetching work requests; a single one goes with its doorbell") \
    X(send_message_ns, 0.001, 1e6, "the sending side is occupied, a message") \
    X(send_latency_ns, 0, 1e6, "latency of the sending side") \
    X(receive_message_ns, 0.001, 1e6, "the receiving side is occupied, a message") \
    X(receive_latency_ns, 0, 1e6, "latency of the receiving side") \
    X(dma_read_ns, 0, 1e6, "latency of reading the host's memory") \
    X(dma_read_gbytes_s, 0.001, 1e5, "rate of reading it, 10^9 octets a second") \
    X(dma_write_ns, 0, 1e6, "latency of writing the host's memory") \
    X(dma_write_gbytes_s, 0.001, 1e5, "rate of writing it") \
    X(completion_ns, 0, 1e6, "latency of a completion: until a polling CPU can see it") \
    X(acknowledge_ns, 0, 1e6, "latency of an acknowledgement in both RNICs, without the way") \
    X(atomic_ns, 0.001, 1e6, "the atomic unit is occupied, an atomic") \
    X(atomic_latency_ns, 0, 1e6, "latency of an atomic besides: it reaches the host's memory") \
    X(wait_ns, 0, 1e6, "latency of a WAIT: from the completion it waits for until it is over") \
    X(enable_ns, 0, 1e6, "latency of an ENABLE: until what it enables can be fetched") \
    X(chain_fetch_ns, 0, 1e6, "latency of fetching a work request of a managed queue") \
    X(connect_ns, 0, 1e9, "latency of each message of a connection's handshake in its host") \
    /* its link */ \
    X(link_gbits_s, 0.001, 1e5, "rate of its link, 10^9 bits a second") \
    X(link_latency_ns, 1, 1e9, "latency of a route: two cables and a switch") \
    X(mtu_octets, 64, 65536, "octets of a message in one packet at most") \
    X(header_octets, 0, 1024, "octets that a packet has besides, with the gap to the next one") \
    /* a CPU of the host */ \
    X(poll_ns, 0.001, 1e6, "a look at a completion queue") \
    X(take_ns, 0, 1e6, "a completion that is found there, besides") \
    X(post_ns, 0, 1e6, "a work request that is posted") \
    X(ring_ns, 0, 1e6, "a doorbell, besides") \
    X(access_ns, 0.001, 1e6, "an access to shared memory (worlds of steps)") \
    X(copy_gbytes_s, 0.001, 1e5, "rate of copying or clearing memory, 10^9 octets a second") \
    X(register_ns, 0, 1e9, "registering memory") \
    X(register_page_ns, 0, 1e6, "the same, a page of 4,096 octets") \
    /* the software target, a request, besides looks and posts */ \
    X(hello_ns, 0, 1e9, "HELLO") \
    X(load_ns, 0, 1e9, "LOAD") \
    X(store_ns, 0, 1e9, "STORE") \
    X(alloc_store_ns, 0, 1e9, "ALLOC_STORE") \
    X(free_ns, 0, 1e9, "FREE") \
    X(bind_ns, 0, 1e9, "BIND") \
    X(goodbye_ns, 0, 1e9, "GOODBYE") \
    /* the initiator's library */ \
    X(submit_ns, 0, 1e9, "a request, besides posting it") \
    X(outcome_ns, 0, 1e9, "its outcome, besides the look")

struct sim_costs {
#define SIM_COSTS_MEMBER(key, least, most, what) double key;
    SIM_COSTS(SIM_COSTS_MEMBER)
#undef SIM_COSTS_MEMBER
};

enum sim_figure_basis {
    SIM_FIGURE_PUBLISHED, /* `source` has it */
    SIM_FIGURE_INPUT,     /* set so that the model meets a published figure, which `source` names */
    SIM_FIGURE_MEASURED,  /* by a program of this project, which `source` names */
    SIM_FIGURE_ASSUMED,
};

/* Where a figure comes from. */
struct sim_figure_source {
    enum sim_figure_basis basis;
    char *source; /* NULL: none, of what is assumed */
};

struct sim_cost_model {
    struct sim_costs costs;
    char *title;
    struct sim_figure_source sources[sizeof(struct sim_costs) / sizeof(double)]; /* in that order */
};

struct sim_figure {
    const char *key, *what;
    double least, most;
};
#define SIM_FIGURES (sizeof(struct sim_costs) / sizeof(double))
extern const struct sim_figure sim_figures[SIM_FIGURES]; /* in the order of struct sim_costs */

static inline double *sim_figure_value(struct sim_costs *costs, unsigned figure)
{
    return (double *)costs + figure;
}

const char *sim_figure_basis_name(enum sim_figure_basis basis);

/*
 * Reads the cost model in text[0..length). NULL with one line in `error`, "NAME:LINE:COLUMN: KEY:
 * what, what to do", when it is none. Free with sim_cost_model_free().
 */
struct sim_cost_model *sim_cost_model_parse(const char *name, const char *text, size_t length,
                                            char *error, size_t size);
void sim_cost_model_free(struct sim_cost_model *model);

/* Octets on the wire of a message of so many octets. */
uint32_t sim_costs_wire_octets(const struct sim_costs *costs, uint32_t length);
/* Of its octets, how many are in its first and its last packet. */
uint32_t sim_costs_first_packet(const struct sim_costs *costs, uint32_t length);
uint32_t sim_costs_last_packet(const struct sim_costs *costs, uint32_t length);

#endif
